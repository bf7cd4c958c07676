/* test_gw_lowrank.c - plans in factors: their marginals, their energy beside the dense plan's,
 * memory, threads. */
#include "fault.h"
#include "fourge/gw.h"

static frg_array matrix(const double *x, int64_t n, int64_t d)
{
    return frg_matrix(x, FRG_F64, n, d, d);
}

/* Two clouds on a bent line, one of them with a third coordinate. */
static void clouds(double *x, int64_t n, double *y, int64_t m)
{
    for (int64_t i = 0; i < n; i++) {
        const double t = 0.3 + 4.0 * (double)i / (double)n;
        x[2 * i] = t * cos(t) + 0.02 * test_normal();
        x[2 * i + 1] = t * sin(t) + 0.02 * test_normal();
    }
    for (int64_t j = 0; j < m; j++) {
        const double t = 0.3 + 4.0 * (double)j / (double)m;
        y[3 * j] = t * cos(t) + 0.02 * test_normal();
        y[3 * j + 1] = 0.1 * test_normal();
        y[3 * j + 2] = t * sin(t) + 0.02 * test_normal();
    }
}

static frg_gw_opts options(int64_t rank)
{
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.epsilon = 0.002;
    o.rank = rank;
    return o;
}

static frg_gw *align(frg_context *ctx, const double *x, int64_t n, const double *y, int64_t m,
                     const frg_gw_opts *o)
{
    const frg_array ax = matrix(x, n, 2), ay = matrix(y, m, 3);
    frg_gw *s = NULL;
    if (CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay},
                                    NULL, o))) {
        const frg_status status = frg_gw_run(s, NULL);
        CHECK_SAYS(status >= 0, "%s", frg_message(ctx));
    }
    return s;
}

/* T21.  The factors' marginals hold to 1e-4 (asked for: 1e-7 in L1), the rounded plan's to sums in
 * double.  The blurs of Q and of W add, so that at full rank the plan is about as blurred as the
 * dense one of twice the epsilon: its energy is at most 5 % above that one's.  Energy falls with
 * the rank. */
static void factors(void)
{
    enum { N = 30, M = 36 };
    frg_context *ctx = test_context();
    double x[2 * N], y[3 * M], q[N * N], w[M * N], h[N], plan[N * M] = {0}, energy[3];
    clouds(x, N, y, M);
    frg_gw_opts dense = options(0);
    dense.mode = FRG_GW_EXACT;
    dense.epsilon *= 2;
    frg_gw *s = align(ctx, x, N, y, M, &dense);
    const double want = frg_gw_get(s)->energy;
    CHECK_INT(frg_gw_rank(s), 0);
    CHECK_STATUS(frg_gw_factors(s, q, NULL, NULL), FRG_BAD_ARG);
    frg_gw_destroy(s);
    const int64_t ranks[] = {3, 12, 1000};
    for (int k = 0; k < 3; k++) {
        frg_gw_opts o = options(ranks[k]);
        o.anchors = k == 2 ? 1500 : 100;
        s = align(ctx, x, N, y, M, &o);
        const int64_t r = frg_gw_rank(s);
        CHECK_INT(r, ranks[k] < N ? ranks[k] : N);
        CHECK_OK(ctx, frg_gw_factors(s, q, w, h));
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, N, matrix(plan, N, M)));
        const frg_plan_report p = frg_plan_get(frg_gw_plan(s));
        CHECK(p.rounded && p.source_error < 1e-12 && p.target_error < 1e-12);
        /* f32 exponents of the rows: 2^-24 times |log2 P / a| <= 120, over the mass */
        CHECK(p.target_before < 1e-4);
        double outer = 0, inner = 0, off = 0;
        for (int64_t i = 0; i < N; i++) {
            double sum = 0;
            for (int64_t c = 0; c < r; c++)
                sum += q[i * r + c];
            outer += fabs(sum - 1.0 / N);
        }
        for (int64_t c = 0; c < r; c++) {
            double sum = 0;
            for (int64_t j = 0; j < M; j++)
                sum += w[j * r + c];
            inner += fabs(sum - h[c]);
        }
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < M; j++) {
                double sum = 0;
                for (int64_t c = 0; c < r; c++)
                    sum += q[i * r + c] * w[j * r + c] / h[c];
                off += fabs(sum - plan[i * M + j]);
            }
        CHECK_SAYS(outer < 1e-4 && inner < 1e-4, "rank %d: %g and %g", (int)r, outer, inner);
        CHECK_SAYS(off < 2e-4, "rank %d: the plan is %g from its factors", (int)r, off);
        energy[k] = frg_gw_get(s)->energy;
        printf("# rank %d: energy %.5f, dense %.5f\n", (int)r, energy[k], want);
        frg_gw_destroy(s);
    }
    CHECK(energy[0] > energy[1] && energy[1] > 0);
    CHECK_SAYS(energy[2] < 1.05 * want, "%g beside %g", energy[2], want);
    frg_context_destroy(ctx);
}

/** E of a plan by its definition, in double: sum (C_ik - D_jl)^2 P_ij P_kl. */
static double plain_energy(const double *c, int n, const double *d, int m, const double *plan)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            for (int k = 0; k < n; k++)
                for (int l = 0; l < m; l++) {
                    const double gap = c[i * n + k] - d[j * m + l];
                    sum += gap * gap * plan[i * m + j] * plan[k * m + l];
                }
    return sum;
}

enum { SAME_N = 20, SAME_M = 24, PAIRS = 11 };

/** - sum v log v */
static double entropy(const double *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum -= v[i] > 0 ? v[i] * log(v[i]) : 0;
    return sum;
}

/** H(Q) + H(W) + H(h) of the factors of s. */
static double entropy_of_factors(frg_context *ctx, const frg_gw *s, int n, int m)
{
    double q[SAME_M * SAME_M], w[SAME_M * SAME_M], h[SAME_M];
    CHECK_OK(ctx, frg_gw_factors(s, q, w, h));
    const int r = (int)frg_gw_rank(s);
    return entropy(q, n * r) + entropy(w, m * r) + entropy(h, r);
}

/** energy[0 .. 3] of a pair of clouds: dense at epsilon, from there at twice it; factors of full
 *  rank; these from the first plan, from Y to X.  Each is that of the plan handed out, to the
 *  rounding of distances in float: 2^-23 of a gap's two terms, of the order of the distances'
 *  squares.  lost[2 .. 3]: what the factors' E - 2 epsilon (H(Q) + H(W) + H(h)) has above that of
 *  the first plan P written as factors, Q = P, W and h its columns' weights, or the other way
 *  round, all in units of E. */
static void energies_of_a_pair(frg_context *ctx, double *energy, double *lost)
{
    enum { N = SAME_N, M = SAME_M };
    double of_dense = 0;
    double x[2 * N], y[3 * M], plan[N * M] = {0}, back[N * M], found[N * M], c[N * N], d[M * M];
    clouds(x, N, y, M);
    for (int j = 0; j < M; j++)
        y[3 * j + 1] = 2 * test_normal();
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 3);
    for (int k = 0; k < 4; k++) {
        const bool across = k == 3;
        const int n = across ? M : N, m = across ? N : M;
        frg_gw_opts o = options(k < 2 ? 0 : N);
        o.mode = k < 2 ? FRG_GW_EXACT : FRG_GW_SAMPLED;
        o.epsilon = k == 1 ? 0.002 : 0.001;
        o.anchors = k < 2 ? o.anchors : 400; /* the exact mode has none */
        o.n_start = 1;
        o.max_iter = 600;
        const frg_gw_side source = {.data = &ax}, target = {.data = &ay};
        frg_gw *s = NULL;
        CHECK_OK(ctx, frg_gw_create(&s, ctx, across ? target : source, across ? source : target,
                                    NULL, &o));
        if (k % 2)
            CHECK_OK(ctx, frg_gw_start_plan(s, across ? matrix(back, M, N) : matrix(plan, N, M)));
        CHECK(frg_gw_run(s, NULL) >= 0);
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, n, matrix(found, n, m)));
        CHECK_OK(ctx, frg_gw_distances(s, across, matrix(c, N, N)));
        CHECK_OK(ctx, frg_gw_distances(s, !across, matrix(d, M, M)));
        double most = 0;
        for (int i = 0; i < N * N; i++)
            most = fmax(most, c[i]);
        for (int i = 0; i < M * M; i++)
            most = fmax(most, d[i]);
        energy[k] = across ? plain_energy(d, M, c, N, found) : plain_energy(c, N, d, M, found);
        CHECK_NEAR(frg_gw_get(s)->energy, energy[k], 8 * 0x1p-23 * most * most);
        for (int i = 0; k == 0 && i < N * M; i++) {
            plan[i] = found[i];
            back[i % M * N + i / M] = found[i];
        }
        /* full rank is N: W and h, or Q and h, are the N equal weights of the shorter side */
        if (k == 0)
            of_dense = entropy(plan, N * M) + 2 * log(N);
        if (k >= 2)
            lost[k] = energy[k] - energy[0] -
                      2 * o.epsilon * most * most * (entropy_of_factors(ctx, s, n, m) - of_dense);
        CHECK_NEAR(frg_gw_get(s)->epsilon_end, o.epsilon, 1e-12);
        CHECK_INT(frg_gw_get(s)->starts, 1);
        frg_gw_destroy(s);
    }
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* T21 at the same epsilon.  With c for the components and full rank, P is the law of the ends of a
 * chain i - c - j, and what is lowered, <L, P> - epsilon (H(Q) + H(W) + H(h)), pays each leg its
 * own entropy: where L grows as a square around what matches, each leg has the spread of a dense
 * plan at epsilon, spreads add, and the plan is about one of 2 epsilon.  So energies of factors are
 * near the dense ones and not theirs.
 *
 * What has to hold of the least value of E - 2 epsilon (H(Q) + H(W) + H(h)), in units of the
 * scale's square: it is not above that of any factors, the dense plan's among them, which are
 * allowed at full rank.  Both sides come from what is handed out. One start may end in another
 * valley (one pair in 275 did, its energy 16 % up): the median of eleven is judged.  The 5 % are
 * the specification's; 0.3 to 2.9 % were seen, by either start, and 3 % of the dense plan at twice
 * epsilon. */
static void at_the_same_epsilon(void)
{
    frg_context *ctx = test_context();
    double above[4][PAIRS], lost[4][PAIRS];
    for (int pair = 0; pair < PAIRS; pair++) {
        double energy[4], more[4];
        energies_of_a_pair(ctx, energy, more);
        for (int k = 1; k < 4; k++)
            above[k][pair] = energy[k] / energy[0];
        for (int k = 2; k < 4; k++)
            lost[k][pair] = more[k] / energy[0];
    }
    for (int k = 1; k < 4; k++)
        qsort(above[k], PAIRS, sizeof *above[k], rising);
    printf("# of the dense plan's energy at twice epsilon: median %.4f, most %.4f\n",
           above[1][PAIRS / 2], above[1][PAIRS - 1]);
    for (int k = 2; k < 4; k++) {
        static const char *const how[] = {"from the points", "given its plan"};
        qsort(lost[k], PAIRS, sizeof *lost[k], rising);
        printf("# factors %s: median %.4f, most %.4f; their objective %.4f to %.4f above\n",
               how[k - 2], above[k][PAIRS / 2], above[k][PAIRS - 1], lost[k][0],
               lost[k][PAIRS - 1]);
        CHECK_SAYS(lost[k][PAIRS / 2] <= 0,
                   "factors %s: the objective is %g of E above the dense "
                   "plan's",
                   how[k - 2], lost[k][PAIRS / 2]);
        CHECK_SAYS(above[k][PAIRS / 2] < 1.05, "factors %s: %g", how[k - 2], above[k][PAIRS / 2]);
    }
    frg_context_destroy(ctx);
}

/* Of five points a side epsilon leaves hardly more than one weight a row, and passes come near the
 * marginals as slowly as 1 / their number: what they are off is told, and the factors handed out
 * are rounded.  Sums of at most 36 doubles. */
static void marginals_of_factors(void)
{
    enum { N = 5, RANK = 5, SEEDS = 12 };
    int64_t warned = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        frg_context *ctx = test_context();
        double x[2 * N], y[3 * N], a[N], b[N], q[N * RANK], w[N * RANK], h[RANK];
        clouds(x, N, y, N);
        for (int i = 0; i < N; i++) {
            a[i] = 0.1 + test_uniform();
            b[i] = seed % 2 && i == 2 ? 0 : 0.1 + test_uniform();
        }
        double sum_a = 0, sum_b = 0, off = 0;
        for (int i = 0; i < N; i++) {
            sum_a += a[i];
            sum_b += b[i];
        }
        for (int i = 0; i < N; i++) {
            a[i] /= sum_a;
            b[i] /= sum_b;
        }
        const frg_array ax = matrix(x, N, 2), ay = matrix(y, N, 3);
        frg_gw_opts o = options(RANK);
        o.epsilon = 0.005;
        frg_gw *s = NULL;
        CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax, .weights = a},
                                    (frg_gw_side){.data = &ay, .weights = b}, NULL, &o));
        CHECK(frg_gw_run(s, NULL) >= 0);
        CHECK_OK(ctx, frg_gw_factors(s, q, w, h));
        for (int i = 0; i < N; i++) {
            double of_q = -a[i], of_w = -b[i], q_of = -h[i], w_of = -h[i];
            for (int c = 0; c < RANK; c++) {
                of_q += q[i * RANK + c];
                of_w += w[i * RANK + c];
                q_of += q[c * RANK + i];
                w_of += w[c * RANK + i];
                CHECK(q[i * RANK + c] >= 0 && w[i * RANK + c] >= 0);
            }
            off += fabs(of_q) + fabs(of_w) + fabs(q_of) + fabs(w_of);
        }
        CHECK_SAYS(off <= 1e-12, "seed %d: off by %g", seed, off);
        for (int64_t k = 0; k < frg_warning_count(ctx); k++)
            warned += strcmp(frg_warning_code(ctx, (int)k), "FRG-GW-101") == 0;
        frg_gw_destroy(s);
        frg_context_destroy(ctx);
    }
    printf("# %d of %d runs say that passes did not end\n", (int)warned, SEEDS);
}

/* Nothing of size n m: 2000 x 2333 in f32 would be 19 MB.  (Below 2e9 products n m (n + m) the
 * energy is computed exactly, from a dense plan.) */
static void memory_grows_with_the_points(void)
{
    const int64_t n = test_size(2000, 1200), m = n + n / 6;
    frg_context *ctx = test_context();
    double *const x = malloc((size_t)(2 * n) * sizeof *x), *const y =
                                                               malloc((size_t)(3 * m) * sizeof *y);
    int64_t *const match = malloc((size_t)n * sizeof *match);
    clouds(x, n, y, m);
    frg_gw_opts o = options(4);
    o.distance = FRG_GW_DISTANCE_LANDMARK;
    o.landmarks = 10;
    o.k = 5;
    o.anchors = 20;
    o.max_iter = o.min_iter = 3;
    o.n_start = 1;
    const size_t before = frg_bytes_held(ctx);
    frg_peak_reset(ctx);
    frg_gw *s = align(ctx, x, n, y, m, &o);
    CHECK_OK(ctx, frg_plan_argmax(frg_gw_plan(s), match));
    const size_t peak = frg_peak_bytes(ctx) - before;
    /* 64 chunks of column sums, and about 40 vectors of doubles a rank, anchor or neighbour;
     * besides the distances of at most 1024 points of each side, which the coarse start keeps in
     * float */
    const int64_t coarse = 2 * 1024 * 1024 * (int64_t)sizeof(float);
    CHECK_SAYS(peak < (size_t)((n + m) * 8 * (40 + 64 + 8 * (4 + 20 + 10)) + coarse), "%zu bytes",
               peak);
    frg_gw_destroy(s);
    free(x);
    free(y);
    free(match);
    frg_context_destroy(ctx);
}

/* T13 for factors. */
static void threads(void)
{
    enum { N = 30, M = 36 };
    double x[2 * N], y[3 * M], first[N * M] = {0}, other[N * M] = {0};
    clouds(x, N, y, M);
    const int counts[] = {1, 2, 3, 8};
    for (int k = 0; k < 4; k++) {
        frg_context *ctx = test_context_with(counts[k], NULL, NULL);
        frg_gw_opts o = options(6);
        o.max_iter = 30;
        frg_gw *s = align(ctx, x, N, y, M, &o);
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, N, matrix(k ? other : first, N, M)));
        if (k)
            CHECK_BITS(other, first, sizeof first);
        frg_gw_destroy(s);
        frg_context_destroy(ctx);
    }
}

/* Equal points say nothing and the linear cost does: the plan leaves the product and carries mass
 * along it.  Mass that lies in blocks of 1 / rank on the diagonal costs rank times 1 / (6 rank^3) /
 * (1 / rank), 1 / (6 rank^2); the product costs 1/6.  The blur of epsilon is a tenth of the blocks'
 * length, on both ends of each, and points are 1/60 apart: 8 % more, 20 % are let pass.  Every
 * start has blocks and gets there, however it is judged: what judges is the next test's. */
static void a_linear_cost_alone(void)
{
    enum { N = 60, M = 70, RANK = 5 };
    frg_context *ctx = test_context();
    for (int equal = 0; equal < 2; equal++) {
        double x[2 * N], y[3 * M], linear[N * M], plan[N * M] = {0}, cost = 0;
        clouds(x, N, y, M);
        for (int i = 0; i < 2 * N; i++)
            x[i] = 1;
        for (int i = 0; i < 3 * M && equal; i++)
            y[i] = 1;
        for (int i = 0; i < N * M; i++)
            linear[i] = pow((i / M + 0.5) / N - (i % M + 0.5) / M, 2);
        const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 3), al = matrix(linear, N, M);
        frg_gw_opts o = options(RANK);
        o.linear_weight = 0.5;
        frg_gw *s = NULL;
        CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay},
                                    &al, &o));
        CHECK(frg_gw_run(s, NULL) >= 0);
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, N, matrix(plan, N, M)));
        for (int i = 0; i < N * M; i++)
            cost += plan[i] * linear[i];
        CHECK_SAYS(cost <= 1.2 / (6 * RANK * RANK),
                   "cost %g (the product's: %g) after %lld steps, %s", cost, 1.0 / 6,
                   (long long)frg_gw_get(s)->outer_iterations,
                   frg_gw_reason_name(frg_gw_get(s)->reason));
        frg_gw_destroy(s);
    }
    frg_context_destroy(ctx);
}

/* A linear cost of 0 and 1 in four interleaved blocks and equal points: steps in which both factors
 * answered the other as it had been ended at 1, where the product has 3/4.  Four ranks or more
 * carry everything at 0.  With four of them two blocks may share one from the first step on, which
 * costs 1/4 for each such pair: of 24 starts, of the same energy but for the linear cost, one is
 * without, and it has to be chosen. */
static void blocks_of_a_linear_cost(void)
{
    enum { N = 40, M = 36 };
    static const int64_t ranks[] = {4, 10, 36};
    double x[2 * N], y[3 * M], linear[N * M], plan[N * M] = {0};
    for (int i = 0; i < 2 * N; i++)
        x[i] = 1;
    for (int i = 0; i < 3 * M; i++)
        y[i] = 1;
    for (int i = 0; i < N * M; i++)
        linear[i] = i / M % 4 != i % M % 4;
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 3), al = matrix(linear, N, M);
    for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++) {
        for (int run = 0; run < (ranks[k] == 4 ? 8 : 2); run++) {
            frg_context_opts c;
            frg_context_defaults(&c, sizeof c);
            c.seed = (uint64_t)(run / 2);
            c.threads = 1;
            frg_context *ctx = NULL;
            CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
            frg_gw_opts o = options(ranks[k]);
            o.linear_weight = run % 2 ? 0.5 : 0.1;
            o.n_start = ranks[k] == 4 ? 24 : 4;
            frg_gw *s = NULL;
            double cost = 0;
            CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax},
                                        (frg_gw_side){.data = &ay}, &al, &o));
            CHECK(frg_gw_run(s, NULL) >= 0);
            CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, N, matrix(plan, N, M)));
            for (int i = 0; i < N * M; i++)
                cost += plan[i] * linear[i];
            CHECK_SAYS(cost <= 0.01, "rank %lld, weight %g: cost %g, %s", (long long)ranks[k],
                       o.linear_weight, cost, frg_gw_reason_name(frg_gw_get(s)->reason));
            frg_gw_destroy(s);
            frg_context_destroy(ctx);
        }
    }
}

static void refusals(void)
{
    frg_context *ctx = test_context();
    double x[2 * 8], y[3 * 8];
    clouds(x, 8, y, 8);
    const frg_array ax = matrix(x, 8, 2), ay = matrix(y, 8, 3);
    frg_gw *s = NULL;
    for (int k = 0; k < 4; k++) {
        frg_gw_opts o = options(k == 3 ? -1 : 2);
        o.rho_target = k == 0 ? 1 : o.rho_target;
        o.mass = k == 1 ? 0.5 : 0;
        o.mode = k == 2 ? FRG_GW_EXACT : FRG_GW_SAMPLED;
        CHECK_STATUS(frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay},
                                   NULL, &o),
                     k == 3 ? FRG_BAD_ARG : FRG_UNSUPPORTED);
    }
    const frg_gw_opts o = options(2);
    s = align(ctx, x, 8, y, 8, &o);
    double f[8];
    CHECK_STATUS(frg_gw_potentials(s, f, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gw_start_plan(s, matrix(x, 2, 8)), FRG_BAD_ARG);
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
}

static frg_status sweep_once(frg_context *ctx, void *user, uint64_t *hash)
{
    double *const x = user;
    const frg_array ax = matrix(x, 20, 2), ay = matrix(x + 40, 20, 3);
    frg_gw_opts o = options(3);
    o.max_iter = 11;
    o.anchors = 10;
    o.n_start = 1;
    frg_gw *s = NULL;
    frg_status status =
        frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay}, NULL, &o);
    if (status < 0)
        return status;
    status = frg_gw_run(s, NULL);
    if (status >= 0)
        fault_hash(hash, &frg_gw_get(s)->energy, sizeof(double));
    frg_gw_destroy(s);
    return status;
}

static void memory(void)
{
    double x[40 + 60];
    clouds(x, 20, x + 40, 20);
    fault_sweep("factors", sweep_once, x, 1);
}

/* Steps end where the held-out cost, looked at every 5 of them from min_iter on, has not fallen for
 * 20 steps or half of min_iter; never at an epsilon above the last one. */
static void when_they_end(void)
{
    static const struct {
        int64_t min_iter, max_iter, least; /* steps */
        frg_gw_anneal anneal;
        frg_gw_reason reason;
    } each[] = {
        {20, 100, 20 + 20, FRG_GW_ANNEAL_NONE, FRG_GW_CONVERGED_PLATEAU},
        {73, 250, 75 + 36, FRG_GW_ANNEAL_NONE, FRG_GW_CONVERGED_PLATEAU},
        {60, 60, 60, FRG_GW_ANNEAL_NONE, FRG_GW_MAX_ITER},
        /* 10 of the start, 8 epsilons of 5, the last of which is the first to be looked at */
        {20, 200, 10 + 8 * 5 + 20, FRG_GW_ANNEAL_PROGRESS, FRG_GW_CONVERGED_PLATEAU}};
    enum { N = 30, M = 36, EVERY = 5 };
    frg_context *ctx =
        NULL; /* of one seed and one pair of arcs: how soon noise looks like a plateau is chance */
    CHECK_STATUS(frg_context_create(&ctx, NULL), FRG_OK);
    double x[2 * N], y[3 * M];
    for (int i = 0; i < 2 * N; i++)
        x[i] = i % 2 ? cos(0.1 * (i / 2)) : sin(0.1 * (i / 2));
    for (int j = 0; j < 3 * M; j++)
        y[j] = j % 3 == 2 ? 0.1 : j % 3 ? cos(0.08 * (j / 3)) : sin(0.08 * (j / 3));
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        frg_gw_opts o = options(6);
        o.n_start = 1;
        o.epsilon = 0.005;
        o.min_iter = each[k].min_iter;
        o.max_iter = each[k].max_iter;
        o.anneal = each[k].anneal;
        frg_gw *s = align(ctx, x, N, y, M, &o);
        const frg_gw_report *const r = frg_gw_get(s);
        const int64_t steps = r->outer_iterations;
        CHECK_INT(r->reason, each[k].reason);
        CHECK_SAYS(steps >= each[k].least && steps % EVERY == 0, "%d: %d steps", (int)k,
                   (int)steps);
        CHECK_NEAR(r->epsilon_end, o.epsilon * (o.anneal == FRG_GW_ANNEAL_NONE ? 1 : 0.1), 1e-12);
        frg_gw_destroy(s);
    }
    frg_context_destroy(ctx);
}

/* Distances that are not scaled, a million times epsilon and more: the dense start takes them to
 * 1. */
static void not_scaled(void)
{
    enum { N = 20, M = 24 };
    for (int e = 3; e <= 9; e += 3) {
        frg_context *ctx = test_context();
        double x[2 * N], y[3 * M];
        clouds(x, N, y, M);
        for (int i = 0; i < 2 * N; i++)
            x[i] *= pow(10, e);
        for (int j = 0; j < 3 * M; j++)
            y[j] *= pow(10, e);
        frg_gw_opts o = options(5);
        o.scale = FRG_GW_SCALE_NONE;
        o.n_start = 1;
        frg_gw *s = align(ctx, x, N, y, M, &o);
        CHECK(isfinite(frg_gw_get(s)->energy));
        frg_gw_destroy(s);
        frg_context_destroy(ctx);
    }
}

static int at_once(const frg_progress *p, void *user)
{
    ++*(int *)user;
    (void)p;
    return *(int *)user == 2;
}

/* A progress function that says stop once, in the second step of the dense start: that ends the
 * run, with a plan. */
static void stopped_in_the_dense_start(void)
{
    enum { N = 20, M = 24 };
    int calls = 0;
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.on_progress = at_once;
    c.user = &calls;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    double x[2 * N], y[3 * M];
    clouds(x, N, y, M);
    const frg_gw_opts o = options(5);
    frg_gw *s = align(ctx, x, N, y, M, &o);
    CHECK_INT(calls, 2);
    CHECK_INT(frg_gw_get(s)->reason, FRG_GW_CANCELLED);
    CHECK_INT(frg_gw_get(s)->coarse_iterations, 2);
    CHECK(frg_plan_get(frg_gw_plan(s)).source_error < 1e-12);
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
}

/** Of a pair (i, j) that P draws, the variance of sum_kl (C_ik - D_jl)^2 P_kl. */
static double variance_of_means(const double *c, int n, const double *d, int m, const double *plan)
{
    double mean = 0, square = 0;
    for (int p = 0; p < n * m; p++) {
        double h = 0;
        for (int q = 0; q < n * m; q++)
            h += pow(c[p / m * n + q / m] - d[p % m * m + q % m], 2) * plan[q];
        mean += plan[p] * h;
        square += plan[p] * h * h;
    }
    return square - mean * mean;
}

/* The standard error of an energy that is estimated from two sets of 256 pairs is that of both
 * (Hoeffding 1948): its square is twice the variance above over 256, to the sampling of a variance,
 * a tenth for each set and a thirtieth of that of all runs, and a part in 256 of the variance within
 * a mean.  Of one set it is half of that. */
static void standard_errors(void)
{
    enum { N = 14, M = 16, RUNS = 8, COUNT = 256 };
    double x[2 * N], y[3 * M], ratio = 0;
    clouds(x, N, y, M);
    for (int run = 0; run < RUNS; run++) {
        double plan[N * M], c[N * N], d[M * M];
        int64_t count = 0;
        frg_context *ctx = test_context();
        frg_gw_opts o = options(4);
        o.scale = FRG_GW_SCALE_NONE;
        o.epsilon = 0.05;
        o.n_start = 1;
        o.max_iter = o.min_iter = 10; /* E is estimated behind the last of them, at the plan */
        frg_gw *s = align(ctx, x, N, y, M, &o);
        const frg_gw_iteration *const rows = frg_gw_trace(s, &count);
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, N, matrix(plan, N, M)));
        CHECK_OK(ctx, frg_gw_distances(s, 0, matrix(c, N, N)));
        CHECK_OK(ctx, frg_gw_distances(s, 1, matrix(d, M, M)));
        ratio += pow(rows[count - 1].cost_error, 2) /
                 (2 * variance_of_means(c, N, d, M, plan) / COUNT) / RUNS;
        frg_gw_destroy(s);
        frg_context_destroy(ctx);
    }
    CHECK_SAYS(ratio > 0.85 && ratio < 1.15, "%.3f of the variance of both sets", ratio);
}

/* Factors that are not rounded and whose passes end before the marginals hold, as those of full
 * rank and few points do: it is told, of both sides of the plan, and "converged" is not. */
static void not_rounded(void)
{
    enum { N = 5, SEEDS = 4 };
    int missed = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        frg_context *ctx = test_context();
        double x[2 * N], y[3 * N];
        clouds(x, N, y, N);
        frg_gw_opts o = options(N);
        o.epsilon = 0.005;
        o.polish_tol = 1e-9;
        o.round = 0;
        frg_gw *s = align(ctx, x, N, y, N, &o);
        const frg_plan_report p = frg_plan_get(frg_gw_plan(s));
        const bool off = fmax(p.source_error, p.target_error) > o.polish_tol;
        CHECK_INT(frg_gw_get(s)->reason == FRG_GW_NOT_CONFIRMED, off);
        CHECK_INT(frg_warning_count(ctx), off);
        missed += off;
        frg_gw_destroy(s);
        frg_context_destroy(ctx);
    }
    CHECK_SAYS(missed > 0, "all of them hold");
}

static const test_case cases[] = {{"standard errors", standard_errors},
                                  {"not rounded", not_rounded},
                                  {"factors", factors},
                                  {"at the same epsilon", at_the_same_epsilon},
                                  {"marginals of factors", marginals_of_factors},
                                  {"memory grows with the points", memory_grows_with_the_points},
                                  {"threads", threads},
                                  {"a linear cost alone", a_linear_cost_alone},
                                  {"blocks of a linear cost", blocks_of_a_linear_cost},
                                  {"when they end", when_they_end},
                                  {"stopped in the dense start", stopped_in_the_dense_start},
                                  {"not scaled", not_scaled},
                                  {"refusals", refusals},
                                  {"memory", memory}};
TEST_MAIN(cases)
