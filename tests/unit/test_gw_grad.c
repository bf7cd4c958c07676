/* test_gw_grad.c - derivatives of values and plans against central differences. */
#include "fault.h"
#include "fourge/gw.h"

enum { N = 7, M = 9 };

static frg_array matrix(const double *x, int64_t n, int64_t m)
{
    return frg_matrix(x, FRG_F64, n, m, m);
}

typedef struct {
    double c[N * N], d[M * M], linear[N * M], a[N], b[M], plan[N * M];
    double theta, epsilon;
} problem;

static problem make(void)
{
    problem p = {.theta = 0.3, .epsilon = 0.15};
    double x[N * 2], y[M * 3], sa = 0, sb = 0;
    for (int i = 0; i < N * 2; i++)
        x[i] = test_uniform();
    for (int i = 0; i < M * 3; i++)
        y[i] = test_uniform();
    for (int i = 0; i < N; i++) {
        sa += p.a[i] = 0.5 + test_uniform();
        for (int k = 0; k < N; k++)
            p.c[i * N + k] = hypot(x[2 * i] - x[2 * k], x[2 * i + 1] - x[2 * k + 1]);
    }
    for (int j = 0; j < M; j++) {
        sb += p.b[j] = 0.5 + test_uniform();
        for (int l = 0; l < M; l++)
            p.d[j * M + l] =
                sqrt(pow(y[3 * j] - y[3 * l], 2) + pow(y[3 * j + 1] - y[3 * l + 1], 2) +
                     pow(y[3 * j + 2] - y[3 * l + 2], 2));
    }
    for (int i = 0; i < N; i++)
        p.a[i] /= sa;
    for (int j = 0; j < M; j++)
        p.b[j] /= sb;
    for (int i = 0; i < N * M; i++)
        p.linear[i] = test_uniform();
    for (int i = 0; i < N * M; i++)
        p.plan[i] = p.a[i / M] * p.b[i % M];
    return p;
}

/* (1-theta) L(P) + theta M for any C, D (not only symmetric ones). */
static void linearise(const problem *p, double *cost)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                for (int l = 0; l < M; l++) {
                    const double one = p->c[i * N + k] - p->d[j * M + l],
                                 two = p->c[k * N + i] - p->d[l * M + j];
                    sum += (one * one + two * two) / 2 * p->plan[k * M + l];
                }
            cost[i * M + j] = (1 - p->theta) * sum + p->theta * p->linear[i * M + j];
        }
}

static void sinkhorn(const problem *p, const double *cost, double *plan)
{
    double u[N], v[M];
    for (int j = 0; j < M; j++)
        v[j] = 1;
    for (int t = 0; t < 3000; t++) {
        double off = 0;
        for (int i = 0; i < N; i++) {
            double s = 0;
            for (int j = 0; j < M; j++)
                s += exp(-cost[i * M + j] / p->epsilon) * v[j];
            u[i] = p->a[i] / s;
        }
        for (int j = 0; j < M; j++) {
            double s = 0;
            for (int i = 0; i < N; i++)
                s += exp(-cost[i * M + j] / p->epsilon) * u[i];
            off = fmax(off, fabs(s * v[j] - p->b[j]));
            v[j] = p->b[j] / s;
        }
        if (off < 1e-16)
            break;
    }
    for (int i = 0; i < N * M; i++)
        plan[i] = u[i / M] * exp(-cost[i] / p->epsilon) * v[i % M];
}

/* min J near p->plan, by the iteration P <- Sinkhorn(L(P)). */
static double value(problem *p)
{
    double cost[N * M], plan[N * M], j = 0;
    for (int t = 0; t < 500; t++) {
        double change = 0;
        linearise(p, cost);
        sinkhorn(p, cost, plan);
        for (int i = 0; i < N * M; i++) {
            change = fmax(change, fabs(plan[i] - p->plan[i]));
            p->plan[i] = plan[i];
        }
        if (change < 1e-16)
            break;
    }
    for (int i = 0; i < N * M; i++) {
        for (int k = 0; k < N * M; k++)
            j += (1 - p->theta) * pow(p->c[i / M * N + k / M] - p->d[i % M * M + k % M], 2) *
                 p->plan[i] * p->plan[k];
        j += 2 * p->theta * p->linear[i] * p->plan[i] +
             2 * p->epsilon * p->plan[i] * (log(p->plan[i]) - 1);
    }
    return j;
}

/* Central differences of fourth order, (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12 h:  off by h^4
 * |J^(5)| / 30 and some eps |J| / h, here 1e-11 in all at h = 1e-3.  So every derivative is asked
 * for to 1e-6 of itself, not of the largest, but for NOISE of that one. */
#define NOISE 1e-9
static bool is_near(double got, double want, double most)
{
    return fabs(got - want) <= 1e-6 * fabs(want) + NOISE * most;
}

#define STEP 2.5e-4

/** Of order 4.  Masses are 1/27 and more: the fifth derivative of b log b leaves 0.2 (STEP / b)^4 =
 *  4e-10. */
static double difference(const problem *at, double *entry_of_at, double *second_of_at, double sign)
{
    static const struct {
        double at, weight;
    } stencil[] = {{STEP, 8}, {-STEP, -8}, {2 * STEP, -1}, {-2 * STEP, 1}};
    double sum = 0;
    const ptrdiff_t one = (char *)entry_of_at - (const char *)at,
                    two = second_of_at ? (char *)second_of_at - (const char *)at : -1;
    for (int q = 0; q < 4; q++) {
        problem p = *at;
        *(double *)(void *)((char *)&p + one) += stencil[q].at;
        if (two >= 0)
            *(double *)(void *)((char *)&p + two) += sign * stencil[q].at;
        sum += stencil[q].weight * value(&p);
    }
    return sum / (12 * STEP);
}

static double largest(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* T18 */
static void values(void)
{
    frg_context *ctx = test_context();
    problem p = make();
    value(&p);
    double gc[N * N] = {0}, gd[M * M] = {0}, gl[N * M] = {0}, ga[N], gb[M];
    const frg_array ac = matrix(gc, N, N), ad = matrix(gd, M, M), al = matrix(gl, N, M),
                    linear = matrix(p.linear, N, M);
    const frg_gw_point at = {.c = matrix(p.c, N, N),
                             .d = matrix(p.d, M, M),
                             .plan = matrix(p.plan, N, M),
                             .linear = &linear,
                             .linear_weight = p.theta,
                             .epsilon = p.epsilon};
    const frg_gw_gradients out = {.c = &ac, .d = &ad, .linear = &al, .a = ga, .b = gb};
    CHECK_OK(ctx, frg_gw_gradient(ctx, &at, &out));
    const struct {
        double *at, *gradient;
        int64_t size;
    } sides[] = {{p.c, gc, N}, {p.d, gd, M}};
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0, n = sides[side].size; i < n; i++)
            for (int64_t k = 0; k < i; k++) { /* both entries of a pair move: C stays symmetric */
                double *const x = sides[side].at, *const g = sides[side].gradient;
                CHECK(is_near(g[i * n + k] + g[k * n + i],
                              difference(&p, &x[i * n + k], &x[k * n + i], 1), largest(g, n * n)));
            }
    for (int i = 0; i < N * M; i++)
        CHECK(is_near(gl[i], difference(&p, &p.linear[i], NULL, 0), largest(gl, N * M)));
    for (int i = 1; i < N; i++) /* mass moves from one point to another */
        CHECK(is_near(ga[i] - ga[0], difference(&p, &p.a[i], &p.a[0], -1), largest(ga, N)));
    for (int j = 1; j < M; j++)
        CHECK(is_near(gb[j] - gb[0], difference(&p, &p.b[j], &p.b[0], -1), largest(gb, M)));
    frg_context_destroy(ctx);
}

/* ---- through a plan -------------------------------------------------------------------------- */

static frg_sinkhorn *transport(frg_context *ctx, const double *cost, const problem *p)
{
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = 0.2;
    o.cost_store = FRG_GW_STORE_F64;
    o.tol = 1e-14;
    o.max_iter = 5000;
    frg_sinkhorn *s = NULL;
    if (CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, matrix(cost, N, M), p->a, p->b, &o))) {
        const frg_status status = frg_sinkhorn_run(s, NULL);
        CHECK_SAYS(status >= 0, "%s", frg_message(ctx));
    }
    return s;
}

static double loss(frg_context *ctx, const double *cost, const problem *p, const double *g)
{
    double plan[N * M] = {0}, sum = 0;
    frg_sinkhorn *s = transport(ctx, cost, p);
    CHECK_OK(ctx, frg_plan_rows(frg_sinkhorn_plan(s), 0, N, matrix(plan, N, M)));
    for (int i = 0; i < N * M; i++)
        sum += g[i] * plan[i];
    frg_sinkhorn_destroy(s);
    return sum;
}

/* T18.  The passes end at 1e-14 of the marginals: differences of fourth order are off by some 1e-14
 * / h, 1e-11. */
static void plans(void)
{
    static const double ways[] = {1, -1, 2, -2}, weights[] = {8, -8, -1, 1};
    frg_context *ctx = test_context();
    problem p = make();
    const double h = 1e-3;
    double g[N * M], out[N * M] = {0}, x[N], y[M], frozen[N * M] = {0}, plan[N * M] = {0};
    for (int i = 0; i < N * M; i++)
        g[i] = test_normal();
    frg_sinkhorn *s = transport(ctx, p.linear, &p);
    const frg_plan *const solved = frg_sinkhorn_plan(s);
    CHECK_OK(ctx,
             frg_plan_vjp(solved, matrix(g, N, M), FRG_GW_GRAD_IMPLICIT, matrix(out, N, M), x, y));
    CHECK_OK(ctx, frg_plan_vjp(solved, matrix(g, N, M), FRG_GW_GRAD_FROZEN, matrix(frozen, N, M),
                               NULL, NULL));
    CHECK_OK(ctx, frg_plan_rows(solved, 0, N, matrix(plan, N, M)));
    for (int i = 0; i < N * M; i++)
        CHECK_NEAR(frozen[i], -plan[i] * g[i] / 0.2, 1e-12);
    frg_sinkhorn_destroy(s);
    for (int i = 0; i < N * M; i++) {
        double cost[N * M], want = 0;
        memcpy(cost, p.linear, sizeof cost);
        for (int q = 0; q < 4; q++) {
            cost[i] = p.linear[i] + ways[q] * h;
            want += weights[q] / 12 / h * loss(ctx, cost, &p, g);
        }
        CHECK_SAYS(is_near(out[i], want, largest(out, N * M)), "entry %d: %.9g, differences %.9g",
                   i, out[i], want);
    }
    for (int k = 1; k < N + M - 1; k++) { /* mass moves to point 0 of a side */
        const bool source = k < N;
        const int at = source ? k : k - N + 1;
        double want = 0;
        for (int q = 0; q < 4; q++) {
            problem moved = p;
            double *const w = source ? moved.a : moved.b;
            w[at] += ways[q] * h;
            w[0] -= ways[q] * h;
            want += weights[q] / 12 / h * loss(ctx, p.linear, &moved, g);
        }
        const double got = source ? x[at] - x[0] : y[at] - y[0];
        CHECK_SAYS(is_near(got, want, largest(source ? x : y, source ? N : M)),
                   "weight %d of side %d: %.9g, differences %.9g", at, !source, got, want);
    }
    frg_context_destroy(ctx);
}

/* ---- through its passes ---------------------------------------------------------------------- */

typedef struct {
    const char *name;
    int64_t passes;
    frg_gw_accel accel;
    double rho_source, rho_target, mass;
    frg_gw_reference reference;
} unrolled_case;

static frg_sinkhorn *few_passes(frg_context *ctx, const double *cost, const problem *p,
                                const unrolled_case *how)
{
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = 0.2;
    o.cost_store = FRG_GW_STORE_F64;
    o.tol = 0;
    o.max_iter = how->passes;
    o.accel = how->accel;
    o.rho_source = how->rho_source;
    o.rho_target = how->rho_target;
    o.mass = how->mass;
    o.reference = how->reference;
    o.round = 0;
    frg_sinkhorn *s = NULL;
    CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, matrix(cost, N, M), p->a, p->b, &o));
    CHECK_STATUS(frg_sinkhorn_run(s, NULL), FRG_MAX_ITER);
    return s;
}

static double loss_of_few(frg_context *ctx, const problem *p, const unrolled_case *how,
                          const double *g)
{
    double plan[N * M] = {0}, sum = 0;
    frg_sinkhorn *s = few_passes(ctx, p->linear, p, how);
    CHECK_OK(ctx, frg_plan_rows(frg_sinkhorn_plan(s), 0, N, matrix(plan, N, M)));
    for (int i = 0; i < N * M; i++)
        sum += g[i] * plan[i];
    frg_sinkhorn_destroy(s);
    return sum;
}

/* The same number of passes on either side of a difference, far from converged ones too: the
 * derivative is that of the passes, and off by no more than O(h^2) |J'''| and rounding / h, about
 * 1e-8 of the largest entry (some units). */
static void unrolled_differences(frg_context *ctx, const unrolled_case *how)
{
    problem p = make();
    const double h = 1e-4;
    const bool holds = isinf(how->rho_source) && isinf(how->rho_target) && !(how->mass > 0);
    double g[N * M], out[N * M] = {0}, x[N], y[M];
    for (int i = 0; i < N * M; i++)
        g[i] = test_normal();
    frg_sinkhorn *s = few_passes(ctx, p.linear, &p, how);
    CHECK_OK(ctx, frg_plan_vjp(frg_sinkhorn_plan(s), matrix(g, N, M), FRG_GW_GRAD_UNROLLED,
                               matrix(out, N, M), x, y));
    frg_sinkhorn_destroy(s);
    for (int i = 0; i < N * M; i += 4) {
        problem sides[2] = {p, p};
        sides[0].linear[i] -= h, sides[1].linear[i] += h;
        const double wanted =
            (loss_of_few(ctx, &sides[1], how, g) - loss_of_few(ctx, &sides[0], how, g)) / (2 * h);
        CHECK_SAYS(fabs(out[i] - wanted) < 1e-6, "%s, cost %d: %.9g, differences %.9g", how->name,
                   i, out[i], wanted);
    }
    for (int side = 0; side < 2; side++) {
        double *const weights = side ? p.b : p.a, *const by = side ? y : x;
        problem low = p, high = p;
        double *const down = side ? low.b : low.a, *const up = side ? high.b : high.a;
        down[2] = weights[2] - h, up[2] = weights[2] + h;
        if (holds) /* the sum stays: mass moves from one point to another */
            down[0] = weights[0] + h, up[0] = weights[0] - h;
        const double wanted =
            (loss_of_few(ctx, &high, how, g) - loss_of_few(ctx, &low, how, g)) / (2 * h);
        const double got = holds ? by[2] - by[0] : by[2];
        CHECK_SAYS(fabs(got - wanted) < 1e-6, "%s, weights of side %d: %.9g, differences %.9g",
                   how->name, side, got, wanted);
    }
}

static void unrolled(void)
{
    const double none = (double)INFINITY;
    const unrolled_case table[] = {
        {"one pass", 1, FRG_GW_ACCEL_NONE, none, none, 0, FRG_GW_REFERENCE_COUNTING},
        {"four passes", 4, FRG_GW_ACCEL_NONE, none, none, 0, FRG_GW_REFERENCE_COUNTING},
        {"momentum", 9, FRG_GW_ACCEL_MOMENTUM, none, none, 0, FRG_GW_REFERENCE_COUNTING},
        {"past a mark of the tape", 37, FRG_GW_ACCEL_MOMENTUM, none, none, 0,
         FRG_GW_REFERENCE_COUNTING},
        {"barely relaxed", 5, FRG_GW_ACCEL_NONE, 40, 60, 0, FRG_GW_REFERENCE_COUNTING},
        {"both relative to the product", 5, FRG_GW_ACCEL_NONE, 0.4, 0.6, 0,
         FRG_GW_REFERENCE_PRODUCT},
        {"both relaxed", 5, FRG_GW_ACCEL_NONE, 0.5, 0.3, 0, FRG_GW_REFERENCE_COUNTING},
        {"target relaxed", 5, FRG_GW_ACCEL_NONE, none, 0.3, 0, FRG_GW_REFERENCE_COUNTING},
        {"relative to the product", 5, FRG_GW_ACCEL_NONE, 0.4, none, 0, FRG_GW_REFERENCE_PRODUCT},
        {"partial", 6, FRG_GW_ACCEL_NONE, none, none, 0.7, FRG_GW_REFERENCE_COUNTING},
        {"partial, momentum", 12, FRG_GW_ACCEL_MOMENTUM, none, none, 0.7,
         FRG_GW_REFERENCE_COUNTING}};
    frg_context *ctx = test_context();
    for (size_t c = 0; c < sizeof table / sizeof *table; c++)
        unrolled_differences(ctx, &table[c]);
    frg_context_destroy(ctx);
}

/* Of many passes the tape holds the last ones alone, and they are enough: each contracts what came
 * before. */
static void unrolled_settles(void)
{
    frg_context *ctx = test_context();
    problem p = make();
    double g[N * M], out[N * M] = {0}, fixed[N * M] = {0}, x[2][N], y[2][M];
    for (int i = 0; i < N * M; i++)
        g[i] = test_normal();
    const unrolled_case how = {.name = "many",
                               .passes = 1200,
                               .rho_source = (double)INFINITY,
                               .rho_target = (double)INFINITY};
    frg_sinkhorn *s = few_passes(ctx, p.linear, &p, &how);
    const frg_plan *const plan = frg_sinkhorn_plan(s);
    CHECK_OK(ctx, frg_plan_vjp(plan, matrix(g, N, M), FRG_GW_GRAD_UNROLLED, matrix(out, N, M), x[0],
                               y[0]));
    CHECK_OK(ctx, frg_plan_vjp(plan, matrix(g, N, M), FRG_GW_GRAD_IMPLICIT, matrix(fixed, N, M),
                               x[1], y[1]));
    for (int i = 0; i < N * M; i++)
        CHECK_NEAR(out[i], fixed[i], 1e-9);
    for (int i = 0; i < N; i++)
        CHECK_NEAR(x[0][i], x[1][i], 1e-9);
    for (int j = 0; j < M; j++)
        CHECK_NEAR(y[0][j], y[1][j], 1e-9);
    frg_sinkhorn_destroy(s);
    frg_context_destroy(ctx);
}

/* Exponents far from their potentials are built anew on the way, in f32, with rows and columns
 * without weight. */
static void unrolled_in_floats(void)
{
    enum { ROWS = 60, COLUMNS = 70 };
    frg_context *ctx = test_context();
    double cost[ROWS * COLUMNS], g[ROWS * COLUMNS], a[ROWS], b[COLUMNS];
    double out[2][ROWS * COLUMNS] = {{0}};
    for (int i = 0; i < ROWS; i++)
        a[i] = i == 7 ? 0 : 1.0 / (ROWS - 1);
    for (int j = 0; j < COLUMNS; j++)
        b[j] = j == 9 ? 0 : 1.0 / (COLUMNS - 1);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        cost[i] = 40 * test_uniform();
        g[i] = test_normal();
    }
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = 0.5; /* costs of 80 epsilon */
    o.tol = 0;
    o.max_iter = 45;
    o.round = 0;
    for (int wide = 0; wide < 2; wide++) {
        frg_sinkhorn *s = NULL;
        o.cost_store = wide ? FRG_GW_STORE_F64 : FRG_GW_STORE_FLY;
        o.accel = FRG_GW_ACCEL_NONE;
        const frg_array shape = matrix(cost, ROWS, COLUMNS);
        CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, shape, a, b, &o));
        CHECK(frg_sinkhorn_run(s, NULL) >= 0);
        CHECK_OK(ctx,
                 frg_plan_vjp(frg_sinkhorn_plan(s), matrix(g, ROWS, COLUMNS), FRG_GW_GRAD_UNROLLED,
                              matrix(out[wide], ROWS, COLUMNS), NULL, NULL));
        frg_sinkhorn_destroy(s);
    }
    /* exponents of 115 in f32 are off by 115 2^-24 = 7e-6, entries of the derivative, at most |g| /
     * epsilon times an entry of the plan, by some times that: 1e-5 max|g| max P / epsilon at
     * most */
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK_NEAR(out[0][i], out[1][i], 1e-5 * 4 / 60.0 / 0.5 * 8);
    frg_context_destroy(ctx);
}

static void refusals(void)
{
    frg_context *ctx = test_context();
    problem p = make();
    double out[N * M] = {0};
    frg_gw_point at = {
        .c = matrix(p.c, N, N), .d = matrix(p.d, M, M), .plan = matrix(p.plan, N, M)};
    frg_gw_gradients none = {.a = out};
    CHECK_STATUS(frg_gw_gradient(ctx, &at, &none), FRG_BAD_ARG); /* epsilon is 0 */
    at.epsilon = 1;
    at.linear_weight = 0.5;
    CHECK_STATUS(frg_gw_gradient(ctx, &at, &none), FRG_BAD_ARG); /* no linear cost */
    at.linear_weight = 0;
    at.d = matrix(p.c, N, N);
    CHECK_STATUS(frg_gw_gradient(ctx, &at, &none), FRG_BAD_ARG);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.rho_target = 1;
    frg_sinkhorn *s = NULL;
    CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, matrix(p.linear, N, M), NULL, NULL, &o));
    CHECK(frg_sinkhorn_run(s, NULL) >= 0);
    CHECK_STATUS(frg_plan_vjp(frg_sinkhorn_plan(s), matrix(p.linear, N, M), FRG_GW_GRAD_IMPLICIT,
                              matrix(out, N, M), NULL, NULL),
                 FRG_UNSUPPORTED);
    CHECK_OK(ctx, frg_plan_vjp(frg_sinkhorn_plan(s), matrix(p.linear, N, M), FRG_GW_GRAD_FROZEN,
                               matrix(out, N, M), NULL, NULL));
    frg_sinkhorn_destroy(s);
    frg_context_destroy(ctx);
}

static frg_status both(frg_context *ctx, void *user, uint64_t *hash)
{
    const problem *const p = user;
    double gc[N * N] = {0}, ga[N], out[N * M] = {0};
    const frg_array ac = matrix(gc, N, N);
    const frg_gw_point at = {.c = matrix(p->c, N, N),
                             .d = matrix(p->d, M, M),
                             .plan = matrix(p->plan, N, M),
                             .epsilon = p->epsilon};
    frg_status status = frg_gw_gradient(ctx, &at, &(frg_gw_gradients){.c = &ac, .a = ga});
    if (status < 0)
        return status;
    fault_hash(hash, gc, sizeof gc);
    fault_hash(hash, ga, sizeof ga);
    frg_sinkhorn *s = NULL;
    status = frg_sinkhorn_create(&s, ctx, matrix(p->linear, N, M), p->a, p->b, NULL);
    if (status >= 0)
        status = frg_sinkhorn_run(s, NULL);
    if (status >= 0)
        status = frg_plan_vjp(frg_sinkhorn_plan(s), matrix(p->linear, N, M), FRG_GW_GRAD_IMPLICIT,
                              matrix(out, N, M), NULL, NULL);
    if (status >= 0)
        fault_hash(hash, out, sizeof out);
    if (status >= 0)
        status = frg_plan_vjp(frg_sinkhorn_plan(s), matrix(p->linear, N, M), FRG_GW_GRAD_UNROLLED,
                              matrix(out, N, M), NULL, NULL);
    if (status >= 0)
        fault_hash(hash, out, sizeof out);
    frg_sinkhorn_destroy(s);
    return status;
}

static void memory(void)
{
    problem p = make();
    fault_sweep("gradients", both, &p, 1);
}

static const test_case cases[] = {{"values", values},
                                  {"plans", plans},
                                  {"unrolled", unrolled},
                                  {"unrolled_settles", unrolled_settles},
                                  {"unrolled_in_floats", unrolled_in_floats},
                                  {"refusals", refusals},
                                  {"memory", memory}};
TEST_MAIN(cases)
