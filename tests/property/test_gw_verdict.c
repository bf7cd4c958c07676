/* test_gw_verdict.c - what is said of plans of the modes with entropy: energies without the blur
 * and from other starts.
 *
 * All energies are recomputed in double from distances in double; floats of a run are off by 2^-24
 * of the constant in E for each of a few sums, 1e-6 of the product's energy at the most.
 */
#include "gw_data.h"

#define ROUNDING 1e-6

/** Points on a line in steps that grow: turned round they are nearly the same, so that the mirror
 *  image is a minimum. */
static void on_a_line(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)i + 0.004 * (double)(i * i);
}

/** E of the plan in double. */
static double energy_of(const double *c, int64_t n, const double *d, int64_t m, const double *p)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            for (int64_t k = 0; p[i * m + j] > 0 && k < n; k++)
                for (int64_t l = 0; l < m; l++)
                    sum += pow(c[i * n + k] - d[j * m + l], 2) * p[i * m + j] * p[k * m + l];
    return sum;
}

/** K(P) = -2 (1 - theta) C P D + theta M; M NULL: theta is 0. */
static void linearise(const double *c, int64_t n, const double *d, int64_t m, const double *p,
                      const double *linear, double theta, double *k)
{
    double *const turned = malloc((size_t)(n * m) * sizeof *turned);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            turned[i * m + j] = 0;
            for (int64_t q = 0; q < n; q++)
                turned[i * m + j] += c[i * n + q] * p[q * m + j];
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            k[i * m + j] = linear ? theta * linear[i * m + j] : 0;
            for (int64_t l = 0; l < m; l++)
                k[i * m + j] -= 2 * (1 - theta) * turned[i * m + l] * d[l * m + j];
        }
    free(turned);
}

/** J(P) = (1 - theta) E(P) + 2 theta <M, P> of uniform marginals; k <- K(P). */
static double objective(const double *c, int64_t n, const double *d, int64_t m, const double *p,
                        const double *linear, double theta, double *k)
{
    double sum = 0;
    linearise(c, n, d, m, p, linear, theta, k);
    for (int64_t i = 0; i < n * n; i++)
        sum += (1 - theta) * c[i] * c[i] / (double)(n * n);
    for (int64_t j = 0; j < m * m; j++)
        sum += (1 - theta) * d[j] * d[j] / (double)(m * m);
    for (int64_t i = 0; i < n * m; i++)
        sum += p[i] * (k[i] + (linear ? theta * linear[i] : 0));
    return sum;
}

/** sum p (log p - 1) */
static double entropy_of(const double *p, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += p[i] > 0 ? p[i] * (log(p[i]) - 1) : 0;
    return sum;
}

/** p <- the plan of uniform marginals for the costs k, by Sinkhorn's iteration on logarithms. */
static void sinkhorn_plan(const double *k, int64_t n, int64_t m, double epsilon, double *p)
{
    enum { PASSES = 100, MOST = 40 };
    double f[MOST] = {0}, g[MOST] = {0};
    for (int pass = 0; pass < 2 * PASSES; pass++) {
        const bool rows = pass % 2 == 0;
        for (int64_t u = 0; u < (rows ? n : m); u++) {
            double top = -INFINITY, sum = 0;
            for (int looks = 0; looks < 2; looks++)
                for (int64_t v = 0; v < (rows ? m : n); v++) {
                    const double x =
                        ((rows ? g : f)[v] - k[rows ? u * m + v : v * m + u]) / epsilon;
                    top = looks ? top : fmax(top, x);
                    sum += looks ? exp(x - top) : 0;
                }
            (rows ? f : g)[u] = -epsilon * (top + log(sum) + log((double)(rows ? n : m)));
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            p[i * m + j] = exp((f[i] + g[j] - k[i * m + j]) / epsilon);
}

/** The run of a solver of two sets of distances; a plan to start from, or NULL. */
static frg_gw_report run_from(frg_context *ctx, const frg_gw_opts *o, frg_gw_side x, frg_gw_side y,
                              const frg_array *linear, double *start, double *plan,
                              frg_status *status)
{
    frg_gw *s = NULL;
    frg_gw_report r = {0};
    frg_warnings_clear(ctx);
    if (!CHECK_OK(ctx, frg_gw_create(&s, ctx, x, y, linear, o)))
        return r;
    const int64_t n = frg_gw_get(s)->n, m = frg_gw_get(s)->m;
    if (start)
        CHECK_OK(ctx, frg_gw_start_plan(s, matrix(start, n, m)));
    *status = frg_gw_run(s, NULL);
    r = *frg_gw_get(s);
    if (*status >= 0 && plan)
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, n, matrix(plan, n, m)));
    frg_gw_destroy(s);
    return r;
}

/** Whether the run warned of another start. */
static bool is_warned(const frg_context *ctx)
{
    bool warned = false;
    for (int w = 0; w < frg_warning_count(ctx); w++)
        warned = warned || strcmp(frg_warning_code(ctx, w), "FRG-GW-108") == 0;
    return warned;
}

/** From the mirror image the exact mode stays there: it is said that the answer is another, with a
 *  warning that names what to do; from the answer nothing is.  Of both the blur is what E has above
 *  that of the permutation. */
static void beaten(void)
{
    enum { N = 30 };
    double x[N], c[N * N], start[N * N] = {0}, plan[N * N], at[N * N] = {0};
    on_a_line(x, N);
    distances_of(x, N, 1, c);
    const frg_array ac = matrix(c, N, N);
    const frg_gw_side side = {.data = &ac};
    frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
    o.mode = FRG_GW_EXACT;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.epsilon = 1e-4;
    frg_context *ctx = test_context();
    for (int mirrored = 0; mirrored < 2; mirrored++) {
        for (int i = 0; i < N * N; i++)
            start[i] = at[i] = 0;
        for (int i = 0; i < N; i++)
            start[i * N + (mirrored ? N - 1 - i : i)] = 1.0 / N;
        frg_status status = FRG_OK;
        const frg_gw_report r = run_from(ctx, &o, side, side, NULL, start, plan, &status);
        const double e = energy_of(c, N, c, N, plan), of_start = energy_of(c, N, c, N, start);
        const double near = ROUNDING * r.energy_product;
        CHECK_NEAR(r.energy, e, near);
        CHECK_NEAR(r.sharpened_energy, of_start, near);
        CHECK_NEAR(r.blur, e - of_start, 2 * near);
        CHECK_NEAR(r.other_energy, 0, near);
        CHECK_STATUS(status, mirrored ? FRG_STALLED : FRG_OK);
        CHECK_TEXT(frg_gw_reason_name(r.reason), mirrored ? "beaten" : "converged_change");
        CHECK_TEXT(r.verdict, mirrored ? "another start is lower" : "no other start is lower");
        CHECK_INT(frg_warning_count(ctx), mirrored);
        if (mirrored)
            CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-GW-108");
        CHECK(!mirrored || of_start > 1e-3 * r.energy_product);
    }
    o.max_iter = 1; /* a run that has not converged stays one, and is told all the same */
    frg_status status = FRG_OK;
    for (int i = 0; i < N * N; i++)
        start[i] = i / N + i % N == N - 1 ? 1.0 / N : 0;
    const frg_gw_report r = run_from(ctx, &o, side, side, NULL, start, NULL, &status);
    CHECK_TEXT(frg_gw_reason_name(r.reason), "max_iter");
    CHECK_TEXT(r.verdict, "another start is lower");
    CHECK(is_warned(ctx));
    frg_context_destroy(ctx);
}

/** Where epsilon is large a lower vertex need not be a better plan: "converged" is about the
 *  entropy too.  From the mirror image over a range of epsilons, plain, with distances of 7 times
 *  the size that are scaled to 1, and with a linear cost besides: the verdict is the one of J with
 *  the entropy of the plan, and of the answer blurred by the same epsilon in the four steps that
 *  the verdict takes, all of it computed here.  Each of the three is said somewhere. */
static void broad(void)
{
    enum { N = 30, STEPS = 8, ROUNDS = 4 };
    static const char *const verdicts[] = {
        "no other start is lower", "another start is lower",
        "another start is lower, but not with the entropy of epsilon"};
    double x[N], c[N * N], given[N * N], linear[N * N], start[N * N] = {0}, plan[N * N], k[N * N];
    on_a_line(x, N);
    distances_of(x, N, 1, given);
    for (int i = 0; i < N; i++)
        start[i * N + N - 1 - i] = 1.0 / N;
    frg_context *ctx = test_context();
    for (int way = 0; way < 3; way++) {
        const double size = way ? 7 : 1, most = given[N - 1], theta = way == 2 ? 0.1 : 0;
        int said[3] = {0};
        double each[N * N];
        for (int i = 0; i < N * N; i++) {
            each[i] = size * given[i];
            c[i] = way ? given[i] / most : given[i];
            linear[i] = i / N == i % N ? 0 : 0.003 * c[i]; /* of the answer it is 0 */
        }
        const double square = way == 1 ? pow(size * most, 2) : 1;
        const frg_array ac = matrix(each, N, N), al = matrix(linear, N, N);
        const frg_gw_side side = {.data = &ac};
        frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
        o.mode = FRG_GW_EXACT;
        o.anneal = FRG_GW_ANNEAL_NONE;
        o.max_iter = 3000;
        o.linear_weight = theta;
        o.scale = way ? FRG_GW_SCALE_FIXED : FRG_GW_SCALE_NONE;
        for (int step = 0; step < STEPS; step++) {
            frg_status status = FRG_OK;
            o.epsilon = (way ? 1 : most * most) * (0.076 + 0.0035 * step);
            const frg_gw_report r =
                run_from(ctx, &o, side, side, way == 2 ? &al : NULL, start, plan, &status);
            const double rounding = ROUNDING * r.energy_product / square;
            const double alone = objective(c, N, c, N, plan, linear, theta, k),
                         with_entropy = alone + 2 * o.epsilon * entropy_of(plan, N * N);
            CHECK_NEAR((r.sharpened_energy + r.blur) / square, alone, 3 * rounding);
            double of_other = INFINITY, p[N * N] = {0};
            for (int i = 0; i < N; i++)
                p[i * N + i] = 1.0 / N;
            objective(c, N, c, N, p, linear, theta, k);
            for (int round = 0; round < ROUNDS && !(of_other < with_entropy - rounding); round++) {
                sinkhorn_plan(k, N, N, o.epsilon, p);
                of_other = objective(c, N, c, N, p, linear, theta, k) +
                           2 * o.epsilon * entropy_of(p, N * N);
            }
            const bool lower = r.other_energy < r.sharpened_energy * (1 - 1e-3) - rounding * square;
            const int want = !lower ? 0 : of_other < with_entropy - rounding ? 1 : 2;
            /* potentials of floats: J of either is off by the rounding at most */
            if (fabs(of_other - (with_entropy - rounding)) > 3 * rounding)
                CHECK_SAYS(strcmp(r.verdict, verdicts[want]) == 0, "%s, not %s", r.verdict,
                           verdicts[want]);
            CHECK((r.reason == FRG_GW_BEATEN) == (strcmp(r.verdict, verdicts[1]) == 0));
            CHECK_INT(frg_warning_count(ctx), strcmp(r.verdict, verdicts[1]) == 0);
            for (int v = 0; v < 3; v++)
                said[v] += strcmp(r.verdict, verdicts[v]) == 0;
        }
        CHECK_SAYS(said[0] && said[1] && said[2], "way %d: %d, %d, %d", way, said[0], said[1],
                   said[2]);
    }
    frg_context_destroy(ctx);
}

/** E where conditional gradient ends from the vertex that is least for K(plan), by frg_emd in
 *  double; *steps: behind that one.  E is concave, so that every step ends at a vertex. */
static double descend(frg_context *ctx, const double *c, int64_t n, const double *d, int64_t m,
                      const double *plan, int *steps)
{
    double p[24 * 24], k[24 * 24], energy = INFINITY;
    objective(c, n, d, m, plan, NULL, 0, k);
    for (*steps = -1; *steps < 30; ++*steps) {
        CHECK_OK(ctx, frg_emd(ctx, matrix(k, n, m), NULL, NULL, matrix(p, n, m), NULL, NULL, NULL));
        const double now = objective(c, n, d, m, p, NULL, 0, k);
        if (!(now < energy - 1e-12))
            break;
        energy = now;
    }
    return energy;
}

/** Of points of the plane that are not random, as many on both sides and fewer on one: the
 *  sharpened energy is that of the conditional gradient above from the plan as it is read, and
 *  takes steps in some sets; the other one is no higher than that from the product, in some sets
 *  the same and in some below. */
static void descents(void)
{
    enum { SETS = 12, N = 24 };
    frg_context *ctx = test_context();
    int longer = 0, from_product = 0, from_profiles = 0;
    for (int set = 0; set < SETS; set++) {
        double x[N * 2], y[N * 2], c[N * N], d[N * N], plan[N * N], even[N * N];
        const int64_t m = set % 2 ? N : N - 3;
        for (int i = 0; i < N * 2; i++) {
            x[i] = sin(1.0 + (i * i + 3 * i) * (1.7 + 0.31 * set));
            y[i] = cos(2.0 + (i * i + 5 * i) * (1.3 + 0.23 * set));
        }
        for (int64_t i = 0; i < N * m; i++)
            even[i] = 1.0 / (double)(N * m);
        distances_of(x, N, 2, c);
        distances_of(y, m, 2, d);
        const frg_array ac = matrix(c, N, N), ad = matrix(d, m, m);
        frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
        o.mode = FRG_GW_EXACT;
        o.anneal = FRG_GW_ANNEAL_NONE;
        o.epsilon = 0.05;
        frg_status status = FRG_OK;
        const frg_gw_report r = run_from(ctx, &o, (frg_gw_side){.data = &ac},
                                         (frg_gw_side){.data = &ad}, NULL, NULL, plan, &status);
        int steps, others;
        const double near = ROUNDING * r.energy_product,
                     sharpened = descend(ctx, c, N, d, m, plan, &steps),
                     product = descend(ctx, c, N, d, m, even, &others);
        CHECK_NEAR(r.sharpened_energy, sharpened, near);
        CHECK_SAYS(r.other_energy <= product + near, "%g, from the product %g", r.other_energy,
                   product);
        longer += steps > 0;
        from_product += fabs(r.other_energy - product) <= near;
        from_profiles += r.other_energy < product - near;
    }
    CHECK_SAYS(longer > 0 && from_product > 0 && from_profiles > 0, "%d, %d, %d", longer,
               from_product, from_profiles);
    frg_context_destroy(ctx);
}

/** Of distances that are any numbers E is not concave, and a plan with entropy may be below where
 *  conditional gradient ends: then there is no blur, never one below 0. */
static void not_concave(void)
{
    enum { N = 3, SETS = 50 };
    frg_context *ctx = test_context();
    int below = 0;
    for (int set = 0; set < SETS; set++) {
        double c[2][N * N] = {{0}};
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < N; i++)
                for (int k = 0; k < i; k++)
                    c[side][i * N + k] = c[side][k * N + i] =
                        1 + sin(1.0 + (2 * i + k) * (1.3 + 0.21 * set + 3.7 * side));
        const frg_array ac = matrix(c[0], N, N), ad = matrix(c[1], N, N);
        frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
        o.mode = FRG_GW_EXACT;
        o.epsilon = 0.03;
        o.max_iter = 200;
        frg_status status = FRG_OK;
        const frg_gw_report r = run_from(ctx, &o, (frg_gw_side){.data = &ac},
                                         (frg_gw_side){.data = &ad}, NULL, NULL, NULL, &status);
        CHECK_SAYS(r.sharpened_energy <= r.energy && r.blur >= 0, "%g, %g", r.sharpened_energy,
                   r.energy);
        below += r.sharpened_energy >= r.energy;
    }
    CHECK_SAYS(below > 0 && below < SETS, "%d of %d", below, SETS);
    frg_context_destroy(ctx);
}

/** Sampled steps that began at a vertex: it is among the others, and where it is the lowest of them
 *  it has to be below J of the plan with more entropy than any plan has, the lesser of the sums
 *  over the weights of the sides; by the report's own numbers.  Both verdicts are said somewhere,
 *  and a run that has converged is beaten where it is lower. */
static void from_vertex(void)
{
    enum { N = 16, SETS = 40 };
    frg_context *ctx = test_context();
    int said[2] = {0};
    for (int set = 0; set < SETS; set++) {
        double x[N * 2], y[N * 2], c[N * N], d[N * N], plan[N * N], b[N], a[N];
        for (int i = 0; i < N * 2; i++) {
            x[i] = sin(1.0 + (i * i + 3 * i) * (1.7 + 0.31 * set));
            y[i] = cos(2.0 + (i * i + 5 * i) * (1.3 + 0.23 * set));
        }
        for (int i = 0; i < N; i++) {
            a[i] = 1.0 / N;
            b[i] = (i + 1.0) / (N * (N + 1) / 2);
        }
        distances_of(x, N, 2, c);
        distances_of(y, N, 2, d);
        const frg_array ac = matrix(c, N, N), ad = matrix(d, N, N);
        frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
        o.start_from = FRG_GW_START_VERTEX;
        o.scale = FRG_GW_SCALE_NONE;
        o.epsilon = 0.02 * (1 + set % 8);
        frg_status status = FRG_OK;
        const frg_gw_report r =
            run_from(ctx, &o, (frg_gw_side){.data = &ac, .weights = a},
                     (frg_gw_side){.data = &ad, .weights = b}, NULL, NULL, plan, &status);
        const double rounding = ROUNDING * r.energy_product;
        CHECK_SAYS(r.other_energy <= r.vertex_energy, "%g, %g", r.other_energy, r.vertex_energy);
        const bool lower =
            r.other_energy < r.sharpened_energy - fmax(1e-3 * r.sharpened_energy, rounding);
        const double with_entropy = r.energy + 2 * r.epsilon_end * entropy_of(plan, N * N),
                     bound = r.vertex_energy +
                             2 * r.epsilon_end * fmin(entropy_of(a, N), entropy_of(b, N));
        if (!lower || r.other_energy < r.vertex_energy || fabs(bound - with_entropy) < 3 * rounding)
            continue; /* nothing is lower, or it is another one; too near */
        CHECK((r.reason == FRG_GW_BEATEN) == (bound < with_entropy));
        said[bound < with_entropy]++;
        CHECK_TEXT(r.verdict, bound < with_entropy
                                  ? "another start is lower"
                                  : "another start is lower, but not with the entropy of epsilon");
    }
    CHECK_SAYS(said[0] && said[1], "%d, %d", said[0], said[1]);
    frg_context_destroy(ctx);
}

/** By how much another vertex has to be lower: the mirror image of points with noise is made worse
 *  than the answer by 4 and by 0.3 parts of a thousand, by the bend of the line. */
static void margins(void)
{
    enum { N = 30 };
    static const double above[] = {4e-3, 3e-4};
    double x[N], y[N], c[N * N], d[N * N], start[N * N] = {0}, mirror[N * N], k[N * N];
    double *const answer = calloc(N * N, sizeof *answer);
    for (int i = 0; i < N; i++) {
        answer[i * N + i] = 1.0 / N;
        start[i * N + N - 1 - i] = 1.0 / N;
    }
    memcpy(mirror, start, sizeof mirror);
    frg_context *ctx = test_context();
    for (int which = 0; which < 2; which++) {
        double low = 0, high = 0.02, e = 0, e_mirror = 0;
        for (int step = 0; step < 60; step++) { /* of the bend */
            const double bend = (low + high) / 2;
            for (int i = 0; i < N; i++) {
                x[i] = i + bend * i * i;
                y[i] = 1.1 * x[i];
            }
            distances_of(x, N, 1, c);
            distances_of(y, N, 1, d);
            e = objective(c, N, d, N, answer, NULL, 0, k);
            e_mirror = objective(c, N, d, N, mirror, NULL, 0, k);
            *(e_mirror > e * (1 + above[which]) ? &high : &low) = bend;
        }
        const frg_array ac = matrix(c, N, N), ad = matrix(d, N, N);
        frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
        o.mode = FRG_GW_EXACT;
        o.anneal = FRG_GW_ANNEAL_NONE;
        o.epsilon = 1e-5;
        frg_status status = FRG_OK;
        const frg_gw_report r = run_from(ctx, &o, (frg_gw_side){.data = &ac},
                                         (frg_gw_side){.data = &ad}, NULL, start, NULL, &status);
        CHECK_TEXT(r.verdict, which ? "no other start is lower" : "another start is lower");
    }
    free(answer);
    frg_context_destroy(ctx);
}

/** With a linear cost energies are J without entropy, scaled; points without weight count
 *  nothing. */
static void fused(void)
{
    enum { N = 24, M = 21 };
    double x[N * 2], y[M * 2], c[N * N], d[M * M], linear[N * M], a[N], b[M], plan[N * M];
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal();
    for (int j = 0; j < M * 2; j++)
        y[j] = test_normal();
    for (int i = 0; i < N * M; i++)
        linear[i] = fabs(test_normal());
    for (int i = 0; i < N; i++)
        a[i] = i % 5 == 3 ? 0 : 1.0 / (N - 5);
    for (int j = 0; j < M; j++)
        b[j] = j % 7 == 2 ? 0 : 1.0 / (M - 3);
    distances_of(x, N, 2, c);
    distances_of(y, M, 2, d);
    const frg_array ac = matrix(c, N, N), ad = matrix(d, M, M), al = matrix(linear, N, M);
    frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
    frg_context *ctx = test_context();
    for (int mode = 0; mode < 2; mode++) {
        o.mode = mode ? FRG_GW_EXACT : FRG_GW_SAMPLED;
        o.scale = FRG_GW_SCALE_NONE;
        o.linear_weight = 0.3;
        o.epsilon = 0.05;
        frg_status status = FRG_OK;
        const frg_gw_report r =
            run_from(ctx, &o, (frg_gw_side){.data = &ac, .weights = a},
                     (frg_gw_side){.data = &ad, .weights = b}, &al, NULL, plan, &status);
        double cost = 0, product = 0, product_cost = 0, even[N * M];
        for (int i = 0; i < N * M; i++) {
            even[i] = a[i / M] * b[i % M];
            cost += linear[i] * plan[i];
            product_cost += linear[i] * even[i];
        }
        product = 0.7 * energy_of(c, N, d, M, even) + 2 * 0.3 * product_cost;
        const double j = 0.7 * energy_of(c, N, d, M, plan) + 2 * 0.3 * cost;
        CHECK_NEAR(r.energy_product, product, ROUNDING * product);
        CHECK_NEAR(r.sharpened_energy + r.blur, j, 3 * ROUNDING * product);
        CHECK(r.sharpened_energy <= j && r.other_energy > 0 && strstr(r.verdict, "start"));
    }
    frg_context_destroy(ctx);
}

/** What is not compared says why, and the run is what it was. */
static void left_out(void)
{
    enum { N = 40 };
    static const struct {
        const char *why;
        int64_t n;
        frg_gw_opts o;
    } each[] = {{"the plan is stationary", N, {.rho_target = 0.1}},
                {"the plan is stationary", N, {.mass = 0.5}},
                {"not compared: the unit of costs changes by the step",
                 N,
                 {.mass = 0.5, .scale = FRG_GW_SCALE_BATCH_MAX}},
                {"not compared: the rank is bounded", N, {.rank = 3}},
                {"not compared: no steps were done", N, {.max_iter = -1}},
                {"not compared: no steps were done", 1, {.max_iter = 0}},
                {"no other start is lower", N, {.mode = FRG_GW_VERTEX}}};
    double x[N * 2];
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal();
    frg_context *ctx = test_context();
    for (size_t q = 0; q < sizeof each / sizeof *each; q++) {
        const frg_gw_opts *const e = &each[q].o;
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        if (e->mode == FRG_GW_VERTEX)
            frg_gw_defaults(&o, sizeof o);
        o.mode = e->mode ? e->mode : FRG_GW_SAMPLED;
        o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
        o.rank = e->rank;
        o.mass = e->mass;
        o.scale = e->scale;
        o.rho_target = e->rho_target > 0 ? e->rho_target : o.rho_target;
        o.max_iter = e->max_iter < 0 ? 0 : e->max_iter > 0 ? e->max_iter : o.max_iter;
        const frg_array ax = matrix(x, each[q].n, 2);
        frg_status status = FRG_OK;
        const frg_gw_report r = run_from(ctx, &o, (frg_gw_side){.data = &ax},
                                         (frg_gw_side){.data = &ax}, NULL, NULL, NULL, &status);
        CHECK_TEXT(r.verdict, each[q].why);
        if (o.mode == FRG_GW_VERTEX) {
            CHECK(r.blur <= 0 && r.blur >= 0 && r.sharpened_energy >= r.energy);
        } else {
            CHECK(isnan(r.sharpened_energy) && isnan(r.blur) && isnan(r.other_energy));
            CHECK_INT(isfinite(r.step_gain), strstr(each[q].why, "stationary") != NULL);
        }
    }
    frg_context_destroy(ctx);
}

/** n points in five heaps of other sizes that no turn or mirror maps to themselves, and the first m
 *  of them moved a little, in reverse order. */
static void heaps(double *x, int64_t n, double *y, int64_t m)
{
    static const double at[5][3] = {
        {0, 0, 0}, {2, 0, 0}, {0, 3, 0}, {0.5, 0.5, 1.5}, {-1, -2, 0.3}};
    static const int heap[20] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4};
    for (int64_t i = 0; i < n; i++)
        for (int q = 0; q < 3; q++)
            x[3 * i + q] = at[heap[i % 20]][q] + 0.3 * test_normal();
    for (int64_t j = 0; j < m; j++)
        for (int q = 0; q < 3; q++)
            y[3 * (m - 1 - j) + q] = x[3 * j + q] + 0.02 * test_normal();
}

/** Of more points than vertices have time for, as many on both sides and fewer on one: few steps
 *  from the product plan alone are said to be beaten where they end far above what they can, 0.06
 *  to 0.1, and those from a vertex never. */
static void sampled(void)
{
    enum { SETS = 3, MOST = 1500 };
    const int64_t most = test_size(MOST, 700), half = test_size(1000, 640);
    const int64_t sizes[SETS][2] = {
        {half, half}, {test_size(800, 660), test_size(700, 640)}, {most, most}};
    double *const x = malloc(sizeof *x * MOST * 6), *const y = x + 3 * MOST;
    frg_context *ctx = test_context();
    for (int set = 0; set < SETS; set++) {
        if (!test_turn(set, 3))
            continue;
        const int64_t n = sizes[set][0], m = sizes[set][1];
        heaps(x, n, y, m);
        const frg_array ax = matrix(x, n, 3), ay = matrix(y, m, 3);
        for (int at_vertex = 0; at_vertex < 1 + (set == 0); at_vertex++) {
            frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
            o.epsilon = 0.001;
            o.n_start = 1;
            o.multiscale = FRG_GW_MULTISCALE_OFF;
            o.start_from = at_vertex ? FRG_GW_START_VERTEX : FRG_GW_START_PRODUCT;
            o.max_iter = 60;
            frg_status status = FRG_OK;
            const frg_gw_report r = run_from(ctx, &o, (frg_gw_side){.data = &ax},
                                             (frg_gw_side){.data = &ay}, NULL, NULL, NULL, &status);
            const bool beaten_here = is_warned(ctx);
            CHECK_SAYS(beaten_here == (r.energy > 0.25), "%d, E %g", beaten_here, r.energy);
            CHECK_TEXT(r.verdict, beaten_here ? "another start is lower"
                                              : "no other start is lower on a sample");
            CHECK(!at_vertex || !beaten_here);
            CHECK_INT(r.verdict_points, 64);
            CHECK(!beaten_here || r.other_energy < r.energy);
            CHECK(!beaten_here ||
                  (r.reason != FRG_GW_CONVERGED_PLATEAU && r.reason != FRG_GW_CONVERGED_CHANGE));
            CHECK(isnan(r.sharpened_energy) && isnan(r.blur));
        }
    }
    free(x);
    frg_context_destroy(ctx);
}

/** Exact steps from points on a line to themselves, in steps that grow or are equal, or to their
 *  mirror image; they stay where they begin.  theta: weight of a linear cost, the distance on the
 *  line over its length. */
static frg_gw_report from_line(frg_context *ctx, int64_t n, bool grow, bool mirror, double theta,
                               double *plan, frg_status *status)
{
    double *const x = malloc(sizeof *x * (size_t)n), *const c = malloc(sizeof *c * (size_t)(n * n)),
                  *const start = calloc((size_t)(n * n), sizeof *start);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (double)i * (grow ? 1 + 1e-3 * (double)i : 1);
        start[i * n + (mirror ? n - 1 - i : i)] = 1.0 / (double)n;
    }
    distances_of(x, n, 1, c);
    const frg_array ac = matrix(c, n, n);
    const frg_gw_side side = {.data = &ac};
    frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
    o.mode = FRG_GW_EXACT;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.epsilon = 0.001;
    o.max_iter = 6;
    o.polish_passes = 30;
    o.linear_weight = theta;
    o.scale_linear = FRG_GW_LINEAR_MAX;
    const frg_gw_report r =
        run_from(ctx, &o, side, side, theta > 0 ? &ac : NULL, start, plan, status);
    free(x);
    free(c);
    free(start);
    return r;
}

/** The mirror image is beaten where steps grow, by the answer, and not where they are equal, as
 *  both are answers there.  The answer never is. */
static void mirrored(void)
{
    frg_context *ctx = test_context();
    for (int grow = 0; grow < 2; grow++)
        for (int mirror = 0; mirror < 2; mirror++) {
            frg_status status = FRG_OK;
            const frg_gw_report r = from_line(ctx, 640, grow, mirror, 0, NULL, &status);
            CHECK_INT(is_warned(ctx), grow && mirror);
            CHECK_TEXT(r.verdict, !grow    ? "other plans are as low on a sample"
                                  : mirror ? "another start is lower"
                                           : "no other start is lower on a sample");
        }
    frg_context_destroy(ctx);
}

/** Of equal steps a linear cost alone tells the mirror image from the answer: J of the former is
 *  2 theta times the mean of |n - 1 - 2 i| / (n - 1), which is theta n / (n - 1), to the blur of
 *  epsilon, and of the latter 0. */
static void fused_sample(void)
{
    enum { N = 640 };
    const double theta = 0.05;
    frg_context *ctx = test_context();
    for (int mirror = 0; mirror < 2; mirror++) {
        frg_status status = FRG_OK;
        const frg_gw_report r = from_line(ctx, N, false, mirror, theta, NULL, &status);
        CHECK_INT(is_warned(ctx), mirror);
        CHECK_INT(r.verdict_points, 64);
        CHECK_TEXT(r.verdict,
                   mirror ? "another start is lower" : "no other start is lower on a sample");
        CHECK_SAYS(mirror ? fabs(r.other_energy) < 0.2 * theta : isnan(r.other_energy), "other %g",
                   r.other_energy);
    }
    frg_context_destroy(ctx);
}

/** A frg_progress callback that stops in the verdict, user: how often it was called there. */
static int stop_there(const frg_progress *p, void *user)
{
    int *const calls = user;
    *calls += strcmp(p->phase, "verdict") == 0;
    return *calls == 2;
}

/** A stop there, of n points: the plan is the run's, and nothing is said of it. */
static void stop_at(int64_t n)
{
    double *const plan = malloc(sizeof *plan * (size_t)(n * n));
    int calls = 0;
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.on_progress = stop_there;
    c.user = &calls;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    frg_status status = FRG_OK;
    const frg_gw_report r = from_line(ctx, n, true, true, 0, plan, &status);
    CHECK_STATUS(status, FRG_INTERRUPTED);
    CHECK_INT(calls, 2);
    CHECK_TEXT(r.verdict, "not compared: stopped");
    CHECK(isnan(r.sharpened_energy) && isnan(r.other_energy) && r.reason == FRG_GW_CANCELLED);
    double mass = 0;
    for (int64_t i = 0; i < n * n; i++)
        mass += plan[i];
    CHECK_NEAR(mass, 1, 1e-12);
    CHECK_INT(r.verdict_points, 0);
    free(plan);
    frg_context_destroy(ctx);
}

static void stopped(void)
{
    stop_at(40);
    stop_at(640);
}

/** The same bits from any number of threads. */
static void bits(void)
{
    enum { N = 160 };
    const int64_t n = test_size(N, 90);
    double x[N * 2];
    for (int64_t i = 0; i < n * 2; i++)
        x[i] = test_normal();
    const frg_array ax = matrix(x, n, 2);
    double first[3] = {0};
    for (int threads = 1; threads < 4; threads++) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.mode = FRG_GW_EXACT;
        o.max_iter = 30;
        frg_status status = FRG_OK;
        const frg_gw_report r = run_from(ctx, &o, (frg_gw_side){.data = &ax},
                                         (frg_gw_side){.data = &ax}, NULL, NULL, NULL, &status);
        const double now[3] = {r.sharpened_energy, r.blur, r.other_energy};
        if (threads == 1)
            memcpy(first, now, sizeof first);
        CHECK_BITS(now, first, sizeof first);
        CHECK(!isnan(now[0]) && !isnan(now[2]));
        frg_context_destroy(ctx);
    }
}

/** The same where the other start is one of a sample. */
static void bits_of_sample(void)
{
    double first = 0;
    for (int threads = 1; threads < 4; threads++) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        frg_status status = FRG_OK;
        const frg_gw_report r = from_line(ctx, 640, true, true, 0, NULL, &status);
        first = threads == 1 ? r.other_energy : first;
        CHECK(!isnan(first) && is_warned(ctx));
        CHECK_BITS(&r.other_energy, &first, sizeof first);
        frg_context_destroy(ctx);
    }
}

static const test_case cases[] = {{"beaten", beaten},
                                  {"broad", broad},
                                  {"descents", descents},
                                  {"not concave", not_concave},
                                  {"from vertex", from_vertex},
                                  {"margins", margins},
                                  {"fused", fused},
                                  {"left out", left_out},
                                  {"sampled", sampled},
                                  {"mirrored", mirrored},
                                  {"fused sample", fused_sample},
                                  {"stopped", stopped},
                                  {"bits", bits},
                                  {"bits of a sample", bits_of_sample}};
TEST_MAIN(cases)
