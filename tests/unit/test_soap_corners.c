/* test_soap_corners.c - rules of the optimizer that only show where two things meet: factors under
 * KL weights by hand, scaled gradients with every option that has a scale, columns that changed
 * places, blocks of an axis, tests in turns. */
#include "soap_data.h"

static frg_soap_opts options(frg_soap_profile profile)
{
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, profile);
    o.lr = 0.1;
    o.eps = 0.05;
    o.weight_decay = 0;
    return o;
}

/* ---- KL weights ------------------------------------------------------------------------------ */

enum { M = 5, N = 3 };

/** L += (1 - beta) (G diag(max(R_jj, eps))^-1 G' / N - L), R alike over M, in the bases I of a
 *  warm-up, whose quotients are the diagonals; both from the old ones, and 1/eps at the first
 *  step. */
static void kl_average(double beta, double eps, const double *g, double *l, double *r)
{
    double next[M * M + N * N] = {0}, *const next_r = next + M * M;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            const double by_l = fmax(l[i * M + i], eps), by_r = fmax(r[j * N + j], eps);
            for (int k = 0; k < M; k++)
                next[i * M + k] += g[i * N + j] * g[k * N + j] / by_r / N;
            for (int k = 0; k < N; k++)
                next_r[j * N + k] += g[i * N + j] * g[i * N + k] / by_l / M;
        }
    for (int i = 0; i < M * M; i++)
        l[i] += (1 - beta) * (next[i] - l[i]);
    for (int i = 0; i < N * N; i++)
        r[i] += (1 - beta) * (next_r[i] - r[i]);
}

static void check_factor(frg_context *ctx, frg_soap *soap, const char *key, int n,
                         const double *want)
{
    float k[M * M] = {0};
    double top = 0;
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, key, matrix(k, n, n)));
    for (int i = 0; i < n * n; i++)
        top = fmax(top, fabs(want[i]));
    for (int i = 0; i < n * n; i++)
        CHECK_NEAR((double)k[i] / top, want[i] / top, 1e-6); /* some 10 roundings of u */
}

/** Factors of a matrix that is not square, some quotients below eps; for gradients of size 1, and
 *  for such that pass 2^40 at the second step, where units change. */
static void kl_factors(void)
{
    static const double scales[] = {1, 0x1p38};
    for (int s = 0; s < 2; s++) {
        frg_context *ctx = test_context();
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.use_kl_shampoo = 1;
        o.adam_warmup_steps = 10;
        o.eps = scales[s];
        float w[M * N] = {0}, g[M * N];
        double exact[M * N], l[M * M] = {0}, r[N * N] = {0};
        frg_soap *soap = optimizer(ctx, &o, matrix(w, M, N));
        for (int t = 0; t < 4; t++) {
            gaussian(t == 1 ? scales[s] * 8 : scales[s], g, M * N);
            for (int i = 0; i < M * N; i++)
                exact[i] = (double)g[i];
            const frg_array grad = matrix(g, M, N);
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
            kl_average(1 - (1 - 0.95) / (1 - pow(0.95, t + 1)), o.eps, exact, l, r);
            check_factor(ctx, soap, "GG.0", M, l);
            check_factor(ctx, soap, "GG.1", N, r);
        }
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/* ---- scale ----------------------------------------------------------------------------------- */

/** Gradients, eps and what else has their scale times 2^38: the same W to rounding of the bases
 *  (see test_soap.c).  The fourth gradient is beyond 2^40, where units change and what was averaged
 *  before goes along. */
static void scaled_gradients(void)
{
    enum { SIZE = 8, STEPS = 10 };
    static const struct {
        const char *name;
        int kl, trace;
        double l2, eps;
        frg_soap_profile profile;
    } rows[] = {{"plain", 0, 0, 0, 0.05, FRG_SOAP_EMERGING},
                {"l2", 0, 0, 0.3, 0.05, FRG_SOAP_EMERGING},
                {"trace", 0, 1, 0, 0.5, FRG_SOAP_EMERGING},
                {"KL", 1, 0, 0, 0.05, FRG_SOAP_EMERGING},
                {"KL, trace", 1, 1, 0, 0.5, FRG_SOAP_EMERGING},
                {"KL by quotients that are kept", 1, 0, 0, 0.05, FRG_SOAP_EMERGING_04}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        float w[2][SIZE * SIZE], g[2][SIZE * SIZE];
        frg_context *ctx = test_context();
        frg_soap *soap[2];
        gaussian(1, w[0], SIZE * SIZE);
        memcpy(w[1], w[0], sizeof w[0]);
        for (int big = 0; big < 2; big++) {
            const double unit = big ? 0x1p38 : 1;
            frg_soap_opts o = options(rows[k].profile);
            o.use_kl_shampoo = rows[k].kl;
            o.adam_warmup_steps = rows[k].kl ? 2 : 0;
            o.trace_normalization = rows[k].trace;
            o.eps = rows[k].eps * unit;
            /* the trace is that of G G', or of G itself under KL weights */
            o.lr = rows[k].trace ? 0.1 / (rows[k].kl ? sqrt(unit) : unit) : 0.1;
            o.weight_decay = rows[k].l2 * unit;
            o.weight_decay_method = FRG_DECAY_L2;
            soap[big] = optimizer(ctx, &o, matrix(w[big], SIZE, SIZE));
        }
        for (int t = 0; t < STEPS; t++) {
            gaussian(t == 3 ? 8 : 1, g[0], SIZE * SIZE);
            for (int i = 0; i < SIZE * SIZE; i++)
                g[1][i] = g[0][i] * 0x1p38f;
            for (int big = 0; big < 2; big++) {
                const frg_array grad = matrix(g[big], SIZE, SIZE);
                CHECK_OK(ctx, frg_soap_step(soap[big], &grad, 1, NULL));
            }
            double worst = 0;
            for (int i = 0; i < SIZE * SIZE; i++)
                worst = fmax(worst, fabs((double)w[0][i] - (double)w[1][i]));
            CHECK_SAYS(worst <= 3e-3 * 0.1 * (t + 1), "%s, step %d: W differs by %.2g",
                       rows[k].name, t + 1, worst);
        }
        frg_soap_destroy(soap[0]);
        frg_soap_destroy(soap[1]);
        frg_context_destroy(ctx);
    }
}

/* ---- columns, blocks, turns ------------------------------------------------------------------ */

/** A part of the state that is read and set again moves columns that changed places; the run goes
 *  on as it was, whether the first moment is in the bases or not. */
static void parts_that_are_set(void)
{
    enum { SIZE = 8, STEPS = 12 };
    static const frg_soap_basis bases[] = {FRG_BASIS_EIGEN, FRG_BASIS_ORIGINAL};
    for (int b = 0; b < 2; b++) {
        frg_context *ctx = test_context();
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.shampoo_beta = 0.5; /* eigenvalues cross at every step */
        o.moment1_basis = bases[b];
        float w[2][SIZE * SIZE] = {{0}}, g[SIZE * SIZE], v[SIZE * SIZE] = {0};
        frg_soap *soap[2] = {optimizer(ctx, &o, matrix(w[0], SIZE, SIZE)),
                             optimizer(ctx, &o, matrix(w[1], SIZE, SIZE))};
        for (int t = 0; t < STEPS; t++) {
            gaussian(1, g, SIZE * SIZE);
            const frg_array grad = matrix(g, SIZE, SIZE), part = matrix(v, SIZE, SIZE);
            if (t == 6) {
                CHECK_OK(ctx, frg_soap_state_get(soap[1], 0, "exp_avg_sq", part));
                CHECK_OK(ctx, frg_soap_state_set(soap[1], 0, "exp_avg_sq", part));
            }
            for (int k = 0; k < 2; k++)
                CHECK_OK(ctx, frg_soap_step(soap[k], &grad, 1, NULL));
            for (int i = 0; i < SIZE * SIZE; i++)
                CHECK_NEAR((double)w[0][i], (double)w[1][i], 3e-3 * 0.1 * (t + 1));
        }
        frg_soap_destroy(soap[0]);
        frg_soap_destroy(soap[1]);
        frg_context_destroy(ctx);
    }
}

/** A parameter that is reset goes on as in an optimizer that sees it for the first time, to the
 *  bit, its neighbour as if nothing had been; also where the refresh of the step before is still
 *  under way. */
static void reset_alone(void)
{
    enum { SIZE = 12, STEPS = 4 };
    for (int later = 0; later < 2; later++) {
        frg_context *ctx = test_context();
        frg_soap_opts o = options(later ? FRG_SOAP_NIKHILVYAS : FRG_SOAP_EMERGING);
        o.refresh_async = later;
        /* 0 and 1: both, 1 is reset; 2: a fresh one that takes the place of 1; 3: 0 left alone */
        static float w[4][SIZE * SIZE], g[2][SIZE * SIZE];
        double step = -1;
        frg_soap *both = optimizer(ctx, &o, matrix(w[0], SIZE, SIZE)), *fresh = NULL;
        frg_soap *alone = optimizer(ctx, &o, matrix(w[3], SIZE, SIZE));
        CHECK_OK(ctx, frg_soap_add_param(both, 0, matrix(w[1], SIZE, SIZE), "second", NULL));
        for (int k = 0; k < 4; k++)
            memset(w[k], 0, sizeof w[k]);
        for (int t = 0; t < 2 * STEPS; t++) {
            if (t == STEPS) {
                CHECK_OK(ctx, frg_soap_reset(both, 1));
                CHECK_OK(ctx, frg_soap_state_get(both, 1, "step", frg_vector(&step, FRG_F64, 1)));
                CHECK(step == 0);
                CHECK_STATUS(frg_soap_reset(both, 2), FRG_BAD_ARG);
                memcpy(w[2], w[1], sizeof w[1]);
                fresh = optimizer(ctx, &o, matrix(w[2], SIZE, SIZE));
            }
            for (int k = 0; k < 2; k++)
                gaussian(1, g[k], SIZE * SIZE);
            const frg_array grads[2] = {matrix(g[0], SIZE, SIZE), matrix(g[1], SIZE, SIZE)};
            CHECK_OK(ctx, frg_soap_step(both, grads, 2, NULL));
            CHECK_OK(ctx, frg_soap_step(alone, grads, 1, NULL));
            if (fresh)
                CHECK_OK(ctx, frg_soap_step(fresh, grads + 1, 1, NULL));
        }
        CHECK_BITS(w[0], w[3], sizeof w[0]);
        CHECK_BITS(w[1], w[2], sizeof w[1]);
        frg_soap_destroy(both);
        frg_soap_destroy(alone);
        frg_soap_destroy(fresh);
        frg_context_destroy(ctx);
    }
}

/** Parts by names and shapes that are none. */
static void wrong_parts(void)
{
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    float w[12] = {0}, other[12] = {0};
    o.max_precond_dim = 3; /* no factor of the longer axis */
    frg_soap *soap = optimizer(ctx, &o, matrix(w, 4, 3));
    CHECK_STATUS(frg_soap_state_get(soap, 0, "exp_avg", matrix(other, 3, 4)), FRG_BAD_ARG);
    CHECK_SAYS(strstr(frg_message(ctx), "axis 0 of exp_avg has length 3, expected 4") != NULL, "%s",
               frg_message(ctx));
    CHECK_STATUS(frg_soap_state_get(soap, 0, "Q.0", matrix(other, 3, 3)), FRG_BAD_ARG);
    CHECK_SAYS(strstr(frg_message(ctx), "'w' has no part Q.0") != NULL, "%s", frg_message(ctx));
    CHECK_STATUS(frg_soap_state_set(soap, 0, "nothing", matrix(other, 4, 3)), FRG_BAD_ARG);
    for (int i = 0; i < 3; i++) {
        static const double steps[3] = {-1, 0.5, 0x1p60};
        CHECK_STATUS(frg_soap_state_set(soap, 0, "step",
                                        frg_vector((void *)(uintptr_t)&steps[i], FRG_F64, 1)),
                     FRG_BAD_ARG);
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/** Two blocks of a vector are two vectors, also where one of them passes the adaptive test while
 *  second moments are recombined along the axis that both lie on. */
static void blocks_in_turn(void)
{
    enum { HALF = 4, STEPS = 10 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    o.precondition_1d = 1;
    o.block_dim = HALF;
    o.moment2_order = FRG_MOMENT2_ROTATE;
    o.use_adaptive_criteria = 1;
    o.adaptive_scope = FRG_SCOPE_FACTOR;
    o.adaptive_tolerance = 1e-3;
    float w[2 * HALF] = {0}, alone[2][HALF] = {{0}}, g[2 * HALF];
    frg_soap *whole = optimizer(ctx, &o, frg_vector(w, FRG_F32, 2 * HALF));
    frg_soap *half[2] = {optimizer(ctx, &o, frg_vector(alone[0], FRG_F32, HALF)),
                         optimizer(ctx, &o, frg_vector(alone[1], FRG_F32, HALF))};
    int64_t skipped = 0, refreshed = 0;
    for (int t = 0; t < STEPS; t++) {
        frg_soap_report report;
        gaussian(1, g, 2 * HALF);
        for (int i = 0; i < HALF; i++)
            g[i] = i == 0; /* this block has its basis, the other one never */
        const frg_array grad = frg_vector(g, FRG_F32, 2 * HALF);
        CHECK_OK(ctx, frg_soap_step(whole, &grad, 1, &report));
        skipped += report.skipped == 1;
        refreshed += report.householder == 1;
        for (int k = 0; k < 2; k++) {
            const frg_array part = frg_vector(g + k * HALF, FRG_F32, HALF);
            CHECK_OK(ctx, frg_soap_step(half[k], &part, 1, NULL));
            for (int i = 0; i < HALF; i++)
                CHECK_NEAR((double)w[k * HALF + i], (double)alone[k][i], 1e-5);
        }
    }
    CHECK(skipped >= 1 && refreshed >= 1);
    frg_soap_destroy(whole);
    frg_soap_destroy(half[0]);
    frg_soap_destroy(half[1]);
    frg_context_destroy(ctx);
}

/** Over a parameter only the factors that are due have to pass; a first basis is made whatever the
 *  test says. */
static void tests_in_turns(void)
{
    enum { SIZE = 6 };
    for (int scope = 0; scope < 2; scope++) {
        frg_context *ctx = test_context();
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.use_adaptive_criteria = 1;
        o.adaptive_scope = (frg_soap_scope)scope;
        o.adaptive_tolerance = 1.9; /* everything passes */
        o.stagger = 1;
        o.precondition_frequency = 2;
        float w[SIZE * SIZE] = {0}, g[SIZE * SIZE] = {0};
        for (int i = 0; i < SIZE; i++)
            g[i * SIZE + i] = (float)(i + 1);
        frg_soap *soap = optimizer(ctx, &o, matrix(w, SIZE, SIZE));
        int64_t due = 0;
        for (int t = 0; t < 8; t++) {
            frg_soap_report report;
            const frg_array grad = matrix(g, SIZE, SIZE);
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
            CHECK_INT(report.eigh, t == 0 ? 2 : 0);
            CHECK_INT(report.skipped, t == 0 ? 0 : report.due);
            CHECK_INT(report.householder, 0);
            CHECK(t == 0 || report.due <= 1);
            due += t == 0 ? 0 : report.due;
            gaussian(1, g, SIZE * SIZE);
        }
        CHECK_INT(due, 7);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/** The least over null vectors p_i of K of max_j |p_i'q_j|: 1 where the basis still has them. */
static double least_kept(int n, int count, const float *p, const float *q)
{
    double least = 1;
    for (int i = n - count; i < n; i++) { /* noise orders them: whichever it is now */
        double most = 0;
        for (int j = 0; j < n; j++) {
            double dot = 0;
            for (int k = 0; k < n; k++)
                dot += (double)p[k * n + i] * (double)q[k * n + j];
            most = fmax(most, fabs(dot));
        }
        least = fmin(least, most);
    }
    return least;
}

/** Directions that no gradient has had keep their vectors over 20 refreshes of K = U C_t U' with
 *  new C_t and U of rank 3.  A refresh turns such a column by 0.2 / ridge_c in the mean
 *  (soap_factor.c), the worst of 21 columns by less than 1 / ridge_c, in the worst case always the
 *  same way: 20 / 64, a cosine of 0.95.  Without the ridge they are gone. */
static void empty_directions(void)
{
    enum { SIZE = 24, RANK = 3, STEPS = 21 };
    for (int kind = 0; kind < 3; kind++) {
        frg_context *ctx = test_context();
        frg_soap_opts o = options(kind == 2 ? FRG_SOAP_EMERGING_04 : FRG_SOAP_EMERGING);
        o.ridge_c = kind == 1 ? 0 : o.ridge_c;
        float w[SIZE * RANK] = {0}, u[SIZE * RANK], c[RANK * RANK], g[SIZE * RANK];
        float q[2][SIZE * SIZE] = {{0}};
        gaussian(1, u, SIZE * RANK);
        frg_soap *soap = optimizer(ctx, &o, matrix(w, SIZE, RANK));
        for (int t = 0; t < STEPS; t++) {
            const frg_array grad = matrix(g, SIZE, RANK);
            gaussian(1, c, RANK * RANK);
            for (int i = 0; i < SIZE; i++)
                for (int j = 0; j < RANK; j++) {
                    g[i * RANK + j] = 0;
                    for (int k = 0; k < RANK; k++)
                        g[i * RANK + j] += u[i * RANK + k] * c[k * RANK + j];
                }
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
            CHECK_OK(ctx, frg_soap_state_get(soap, 0, "Q.0", matrix(q[t > 0], SIZE, SIZE)));
        }
        const double least = least_kept(SIZE, SIZE - RANK, q[0], q[1]);
        CHECK_SAYS(kind == 1 ? least < 0.9 : least >= 0.95, "ridge %g: %g", o.ridge_c, least);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/** Random roundings hang on the parameter's name and on the step. */
static void chances(void)
{
    enum { SIZE = 256, STEPS = 3 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    o.lr = 0x1p-8; /* half a unit below 1 */
    o.stochastic_rounding = 1;
    static uint16_t w[2][SIZE], seen[2 * STEPS][SIZE];
    float g[SIZE];
    frg_soap *soap = optimizer(ctx, &o, frg_vector(w[0], FRG_BF16, SIZE));
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, frg_vector(w[1], FRG_BF16, SIZE), "v", NULL));
    for (int i = 0; i < SIZE; i++)
        g[i] = -1;
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < SIZE; i++)
            w[0][i] = w[1][i] = 0x3f80; /* 1 */
        const frg_array grads[2] = {frg_vector(g, FRG_F32, SIZE), frg_vector(g, FRG_F32, SIZE)};
        CHECK_OK(ctx, frg_soap_step(soap, grads, 2, NULL));
        memcpy(seen[2 * t], w, sizeof w);
    }
    for (int a = 0; a < 2 * STEPS; a++)
        for (int b = 0; b < a; b++) { /* each pair agrees by chance alone: 128 +- 8 */
            int same = 0;
            for (int i = 0; i < SIZE; i++)
                same += seen[a][i] == seen[b][i];
            CHECK_SAYS(same < SIZE - 64 && same > 64, "%d and %d agree %d times", a, b, same);
        }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/* ---- what a review found --------------------------------------------------------------------- */

/** A group that updates first beside one that takes the gradient first: both make their first bases
 *  in the first step, and each steps as it does alone. */
static void both_orders(void)
{
    frg_context *ctx = test_context_with(2, NULL, NULL);
    const frg_soap_opts o[2] = {options(FRG_SOAP_EMERGING), options(FRG_SOAP_NIKHILVYAS)};
    float w[2][36] = {{0}}, alone[2][36] = {{0}}, g[2][36];
    frg_soap *both = optimizer(ctx, &o[0], matrix(w[0], 6, 6)), *each[2];
    int group;
    CHECK_OK(ctx, frg_soap_add_group(both, &o[1], &group));
    CHECK_OK(ctx, frg_soap_add_param(both, group, matrix(w[1], 6, 6), "second", NULL));
    for (int k = 0; k < 2; k++)
        each[k] = optimizer(ctx, &o[k], matrix(alone[k], 6, 6));
    for (int t = 0; t < 12; t++) {
        gaussian(1, g[0], 72);
        const frg_array grads[2] = {matrix(g[0], 6, 6), matrix(g[1], 6, 6)};
        CHECK_OK(ctx, frg_soap_step(both, grads, 2, NULL));
        for (int k = 0; k < 2; k++) {
            CHECK_OK(ctx, frg_soap_step(each[k], &grads[k], 1, NULL));
            CHECK_BITS(w[k], alone[k], sizeof w[k]);
        }
    }
    for (int k = 0; k < 2; k++)
        frg_soap_destroy(each[k]);
    frg_soap_destroy(both);
    frg_context_destroy(ctx);
}

static int64_t four(int64_t t0, void *user)
{
    (void)t0, (void)user;
    return 4;
}

/** Four factors take turns in four steps whether the frequency is a number, a table or a function,
 *  and from the step on at which stagger is switched on. */
static void stagger_by_any_name(void)
{
    static const int64_t table[1][2] = {{0, 4}};
    for (int kind = 0; kind < 4; kind++) {
        frg_context *ctx = test_context();
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.stagger = kind != 3;
        o.precondition_frequency = kind == 0 || kind == 3 ? 4 : 1;
        o.frequencies = kind == 1 ? table : NULL;
        o.n_frequencies = kind == 1;
        o.frequency = kind == 2 ? four : NULL;
        float w[2][12] = {{0}}, g[2][12];
        frg_soap *soap = optimizer(ctx, &o, matrix(w[0], 4, 3));
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w[1], 4, 3), NULL, NULL));
        for (int t = 0; t < 9; t++) {
            gaussian(1, g[0], 24);
            const frg_array grads[2] = {matrix(g[0], 4, 3), matrix(g[1], 4, 3)};
            frg_soap_report report;
            CHECK_OK(ctx, frg_soap_step(soap, grads, 2, &report));
            CHECK_SAYS(report.due == (t == 0 ? 4 : 1), "%d: step %d: %lld", kind, t,
                       (long long)report.due);
            o.stagger = 1;
            CHECK_OK(ctx, frg_soap_set_group(soap, 0, &o));
        }
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/** A basis that zero gradients could not give is made at the next due step, under KL weights and
 *  whatever scope the adaptive test has. */
static void lost_under_kl(void)
{
    for (int scope = 0; scope < 2; scope++) {
        frg_context *ctx = test_context();
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.use_kl_shampoo = o.use_adaptive_criteria = 1;
        o.adaptive_scope = scope ? FRG_SCOPE_FACTOR : FRG_SCOPE_PARAMETER;
        o.precondition_frequency = 4;
        float w[12] = {0}, g[12] = {0};
        frg_soap *soap = optimizer(ctx, &o, matrix(w, 4, 3));
        const frg_array grad = matrix(g, 4, 3);
        frg_soap_report report = {0};
        for (int t = 0; t < 5; t++) {
            gaussian(t == 4, g, 12);
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
        }
        CHECK_INT(report.due, 2);
        CHECK_INT(report.skipped, 0);
        CHECK_INT(report.eigh, 2);
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
}

/** Options at their ends: the largest block is the whole axis, the least eps under KL weights is a
 *  floor that factors survive, and a factor beyond what LAPACK can count is refused with its
 *  remedy. */
static void ends(void)
{
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    static float high[2 * 40000];
    float w[12] = {0}, g[12];
    const frg_array grad = matrix(g, 4, 3);
    frg_soap_report report = {0};
    o.block_dim = INT64_MAX;
    o.max_precond_dim = -1;
    frg_soap *soap = optimizer(ctx, &o, matrix(w, 4, 3));
    gaussian(1, g, 12);
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
    CHECK_INT(report.due, 2);
    CHECK_STATUS(frg_soap_add_param(soap, 0, matrix(high, 2, 40000), "high", NULL), FRG_BAD_ARG);
    o.block_dim = 0;
    o.use_kl_shampoo = 1;
    o.eps = 1e-40;
    frg_soap_destroy(soap);
    soap = optimizer(ctx, &o, matrix(w, 4, 3));
    CHECK_STATUS(frg_soap_add_param(soap, 0, matrix(high, 2, 40000), "high", NULL), FRG_BAD_ARG);
    CHECK_SAYS(strstr(frg_message(ctx), "block_dim") != NULL, "%s", frg_message(ctx));
    for (int t = 0; t < 20; t++) {
        gaussian(1, g, 12);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
        CHECK_INT(report.eigh_failures, 0);
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"factors under KL weights", kl_factors},
    {"scaled gradients", scaled_gradients},
    {"parts that are set", parts_that_are_set},
    {"reset alone", reset_alone},
    {"wrong parts", wrong_parts},
    {"blocks in turn", blocks_in_turn},
    {"tests in turns", tests_in_turns},
    {"empty directions", empty_directions},
    {"chances", chances},
    {"both orders", both_orders},
    {"stagger by any name", stagger_by_any_name},
    {"lost under KL", lost_under_kl},
    {"ends", ends},
};
TEST_MAIN(cases)
