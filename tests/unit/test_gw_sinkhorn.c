/* test_gw_sinkhorn.c - Sinkhorn's iteration in every form against the textbook's, in double.
 *
 * The reference alternates f = epsilon (log a - lse(g - c)), g = epsilon (log b - lse(f - c)) with
 * log-sum-exps of its own: two passes where the library has one.
 */
#include "core/tree_sum.h"
#include "fourge/gw.h"
#include "gw/gw_sweep.h"
#include "oracle/gw_oracle.h"
#include "test.h"

typedef struct {
    int64_t n, m;
    double *cost, *a, *b, *f, *g, *plan;
    double tau_a, tau_b, epsilon;
    bool product; /* relaxed: the entropy is relative to a b' */
} problem;

static problem make(int64_t n, int64_t m, double epsilon)
{
    problem p = {.n = n, .m = m, .epsilon = epsilon, .tau_a = 1, .tau_b = 1};
    p.cost = malloc((size_t)(n * m) * sizeof(double));
    p.plan = malloc((size_t)(n * m) * sizeof(double));
    p.a = malloc((size_t)n * sizeof(double));
    p.b = malloc((size_t)m * sizeof(double));
    p.f = calloc((size_t)n, sizeof(double));
    p.g = calloc((size_t)m, sizeof(double));
    double sum_a = 0, sum_b = 0;
    for (int64_t i = 0; i < n * m; i++)
        p.cost[i] = (double)(float)test_uniform();
    for (int64_t i = 0; i < n; i++)
        sum_a += p.a[i] = 0.2 + test_uniform();
    for (int64_t j = 0; j < m; j++)
        sum_b += p.b[j] = 0.2 + test_uniform();
    for (int64_t i = 0; i < n; i++)
        p.a[i] /= sum_a;
    for (int64_t j = 0; j < m; j++)
        p.b[j] /= sum_b;
    return p;
}

static void release(problem *p)
{
    free(p->cost);
    free(p->plan);
    free(p->a);
    free(p->b);
    free(p->f);
    free(p->g);
}

/** One iteration; returns the L1 error of the columns between the two halves. */
static double step(problem *p)
{
    double error = 0;
    for (int64_t i = 0; i < p->n; i++)
        p->f[i] = (p->product ? 1 : p->tau_a) * p->epsilon * log(p->a[i]) -
                  p->tau_a * gw_oracle_log_sum_exp(p->g, p->cost + i * p->m, p->m, 1, p->epsilon);
    for (int64_t j = 0; j < p->m; j++) {
        const double column = gw_oracle_log_sum_exp(p->f, p->cost + j, p->n, p->m, p->epsilon);
        error += fabs(exp((p->g[j] + column) / p->epsilon) - p->b[j]);
        p->g[j] = (p->product ? 1 : p->tau_b) * p->epsilon * log(p->b[j]) - p->tau_b * column;
    }
    return error;
}

static void fill_plan(problem *p)
{
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t j = 0; j < p->m; j++)
            p->plan[i * p->m + j] = exp((p->f[i] + p->g[j] - p->cost[i * p->m + j]) / p->epsilon);
}

static double distance(const problem *p, const double *plan)
{
    double sum = 0;
    for (int64_t i = 0; i < p->n * p->m; i++)
        sum += fabs(plan[i] - p->plan[i]) / 2;
    return sum;
}

/** L1 error of both marginals. */
static double miss(const problem *p, const double *plan)
{
    double error = 0;
    for (int64_t j = 0; j < p->m; j++) {
        double sum = -p->b[j];
        for (int64_t i = 0; i < p->n; i++)
            sum += plan[i * p->m + j];
        error += fabs(sum);
    }
    for (int64_t i = 0; i < p->n; i++) {
        double sum = -p->a[i];
        for (int64_t j = 0; j < p->m; j++)
            sum += plan[i * p->m + j];
        error += fabs(sum);
    }
    return error;
}

static frg_sinkhorn *solve(frg_context *ctx, const problem *p, const frg_sinkhorn_opts *o,
                           double *plan)
{
    frg_sinkhorn *s = NULL;
    frg_status status =
        frg_sinkhorn_create(&s, ctx, frg_matrix(p->cost, FRG_F64, p->n, p->m, p->m), p->a, p->b, o);
    if (!CHECK_SAYS(status == FRG_OK, "create: %s", frg_message(ctx)))
        return NULL;
    status = frg_sinkhorn_run(s, NULL);
    CHECK_SAYS(status >= 0, "run: %s", frg_message(ctx));
    if (plan)
        CHECK_OK(ctx, frg_plan_rows(frg_sinkhorn_plan(s), 0, p->n,
                                    frg_matrix(plan, FRG_F64, p->n, p->m, p->m)));
    return s;
}

/* T11: one pass is the textbook's two, iterate by iterate, and its error is the error. */
static void iterates(void)
{
    frg_context *ctx = test_context();
    problem p = make(70, 101, 0.05);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = p.epsilon;
    o.accel = FRG_GW_ACCEL_NONE;
    o.tol = 0;
    o.cost_store = FRG_GW_STORE_F64;
    double *g = malloc((size_t)p.m * sizeof *g);
    for (int64_t t = 1; t <= 50; t++) {
        const double error = step(&p);
        o.max_iter = t;
        frg_sinkhorn *s = solve(ctx, &p, &o, NULL);
        /* 2^ with a relative error of 1e-15, sums of 101 terms, potentials of size 1 / epsilon */
        CHECK_NEAR(frg_sinkhorn_get(s).marginal_error, error, 1e-12);
        CHECK_OK(ctx, frg_sinkhorn_potentials(s, NULL, g));
        for (int64_t j = 0; j < p.m; j++)
            CHECK_NEAR(g[j], p.g[j], 1e-12);
        frg_sinkhorn_destroy(s);
    }
    free(g);
    release(&p);
    frg_context_destroy(ctx);
}

/* T10: the plan in every form of storage; the f64 reference is converged to 1e-13. */
static void stores(void)
{
    static const struct {
        const char *name;
        frg_gw_store store;
        frg_gw_domain domain;
        frg_gw_kernel_store kernel;
        double tv; /* half the largest relative error of an entry: rounding of exponents up to 30 in
                      f32, which coarser forms end in as well */
    } each[] = {{"f64", FRG_GW_STORE_F64, FRG_GW_DOMAIN_LOG, 0, 1e-9},
                {"f32", FRG_GW_STORE_F32, FRG_GW_DOMAIN_LOG, 0, 1e-5},
                {"fly", FRG_GW_STORE_FLY, FRG_GW_DOMAIN_LOG, 0, 1e-5},
                {"u16", FRG_GW_STORE_U16, FRG_GW_DOMAIN_LOG, 0, 1e-5},
                {"u16r", FRG_GW_STORE_U16R, FRG_GW_DOMAIN_LOG, 0, 1e-5},
                {"kernel f32", FRG_GW_STORE_AUTO, FRG_GW_DOMAIN_KERNEL, FRG_GW_KERNEL_F32, 1e-5},
                {"kernel bf16", FRG_GW_STORE_AUTO, FRG_GW_DOMAIN_KERNEL, FRG_GW_KERNEL_BF16, 1e-5}};
    frg_context *ctx = test_context();
    for (int e = 0; e < 3; e++) {
        problem p = make(130, 97, e == 0 ? 0.05 : e == 1 ? 0.02 : 0.2);
        double *plan = malloc((size_t)(p.n * p.m) * sizeof *plan);
        int64_t t = 0;
        for (; t < 20000 && step(&p) > 1e-13; t++)
            ;
        fill_plan(&p);
        for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
            for (int accel = 0; accel < 2; accel++) {
                frg_sinkhorn_opts o;
                frg_sinkhorn_defaults(&o, sizeof o);
                o.epsilon = p.epsilon;
                o.cost_store = each[i].store;
                o.domain = each[i].domain;
                o.kernel_store = each[i].kernel;
                o.accel = accel ? FRG_GW_ACCEL_MOMENTUM : FRG_GW_ACCEL_NONE;
                o.tol = each[i].store == FRG_GW_STORE_F64 ? 1e-11 : 2e-6;
                o.max_iter = 5000;
                frg_sinkhorn *s = solve(ctx, &p, &o, plan);
                const double tv = distance(&p, plan);
                CHECK_SAYS(frg_sinkhorn_get(s).converged, "%s: error %g after %" PRId64,
                           each[i].name, frg_sinkhorn_get(s).marginal_error,
                           frg_sinkhorn_get(s).iterations);
                CHECK_SAYS(tv <= each[i].tv, "%s: total variation %g > %g", each[i].name, tv,
                           each[i].tv);
                const frg_plan_report r = frg_plan_get(frg_sinkhorn_plan(s));
                CHECK_SAYS(r.source_error <= 1e-12 && r.target_error <= 1e-12 && r.rounded,
                           "%s: marginals %g, %g", each[i].name, r.source_error, r.target_error);
                const double worst = miss(&p, plan);
                CHECK_SAYS(worst <= 1e-12, "%s: the rows handed out miss the marginals by %g",
                           each[i].name, worst);
                frg_sinkhorn_destroy(s);
            }
        }
        free(plan);
        release(&p);
    }
    frg_context_destroy(ctx);
}

/* T12: the fixed point of the relaxed problem; a large rho is the balanced problem. */
static void relaxed(void)
{
    frg_context *ctx = test_context();
    for (int kind = 0; kind < 3; kind++) {
        if (!test_turn(kind, 3))
            continue;
        problem p = make(test_size(60, 21), test_size(75, 26), 0.05);
        double *plan = malloc((size_t)(p.n * p.m) * sizeof *plan);
        frg_sinkhorn_opts o;
        frg_sinkhorn_defaults(&o, sizeof o);
        o.epsilon = p.epsilon;
        o.cost_store = FRG_GW_STORE_F64;
        o.tol = 0;
        o.max_iter = 3000;
        o.rho_target = kind == 2 ? 1e6 : 0.1;
        o.rho_source = kind == 1 ? 0.3 : (double)INFINITY;
        p.tau_b = o.rho_target / (o.rho_target + p.epsilon);
        p.tau_a = kind == 1 ? o.rho_source / (o.rho_source + p.epsilon) : 1;
        for (int64_t t = 0; t < 3000; t++)
            step(&p);
        fill_plan(&p);
        frg_sinkhorn *s = solve(ctx, &p, &o, plan);
        /* kind 2: rows are made exact at the end, which moves them by g / rho, 1e-7 of their
         * weight */
        CHECK_SAYS(distance(&p, plan) <= (kind == 2 ? 1e-7 : 1e-9), "kind %d: %g", kind,
                   distance(&p, plan));
        const frg_plan_report r = frg_plan_get(frg_sinkhorn_plan(s));
        if (kind < 2)
            CHECK(r.target_error > 0.01 && !r.rounded);
        else
            CHECK(r.target_before < 1e-6);
        frg_sinkhorn_destroy(s);
        free(plan);
        release(&p);
    }
    frg_context_destroy(ctx);
}

/* One point a side: the least c P + epsilon (P log P - P) + (rho_a + rho_b) (P log P - P + 1) is at
 * P = exp(-c / (epsilon + rho_a + rho_b)).  One column has no shape to change, its constant alone: a
 * run that does not look at it ends on its first pass.  The last step of G is below tol epsilon, and
 * those that would follow sum to (1 - tau_a tau_b)^-1 < 2 of it, in F and in G.  The second mass,
 * e^-133, is below what column sums tell. */
static void one_relaxed_mass(void)
{
    static const struct {
        double cost, rho_a, rho_b;
    } jobs[] = {{1, 0.1, 0.1}, {12, 0.02, 0.02}, {-1, 0.05, 0.02}};
    frg_context *ctx = test_context();
    for (size_t q = 0; q < sizeof jobs / sizeof *jobs; q++) {
        problem p = make(1, 1, 0.05);
        double plan;
        frg_sinkhorn_opts o;
        frg_sinkhorn_defaults(&o, sizeof o);
        p.cost[0] = jobs[q].cost;
        o.epsilon = p.epsilon;
        o.cost_store = FRG_GW_STORE_F64;
        o.tol = 1e-9;
        o.rho_source = jobs[q].rho_a;
        o.rho_target = jobs[q].rho_b;
        frg_sinkhorn *s = solve(ctx, &p, &o, &plan);
        const double want = exp(-p.cost[0] / (p.epsilon + o.rho_source + o.rho_target));
        CHECK(frg_sinkhorn_get(s).converged);
        CHECK_SAYS(fabs(plan / want - 1) <= 4 * o.tol, "%g, expected %g", plan, want);
        frg_sinkhorn_destroy(s);
        release(&p);
    }
    frg_context_destroy(ctx);
}

/* Penalties far above epsilon: on its own the mean of f - g comes near by (1 - epsilon / rho) a
 * pass, 4000 of them for 1e-9 here; moved behind every pass it takes as many as balanced marginals
 * do. */
static void barely_relaxed(void)
{
    frg_context *ctx = test_context();
    for (int kind = 0; kind < 4; kind++) {
        if (!test_turn(kind, 4))
            continue;
        problem p = make(20, 25, 0.05);
        double *plan = malloc((size_t)(p.n * p.m) * sizeof *plan);
        for (int64_t i = 0; i < p.n; i++)
            p.a[i] *= 1.5; /* neither sum is 1 */
        frg_sinkhorn_opts o;
        frg_sinkhorn_defaults(&o, sizeof o);
        o.epsilon = p.epsilon;
        o.cost_store = FRG_GW_STORE_F64;
        o.tol = 1e-11;
        o.max_iter = 600;
        o.rho_source = kind == 1 ? (double)INFINITY : 10;
        o.rho_target = kind == 2 ? (double)INFINITY : 5;
        o.reference = kind == 3 ? FRG_GW_REFERENCE_PRODUCT : FRG_GW_REFERENCE_COUNTING;
        p.tau_a = kind == 1 ? 1 : o.rho_source / (o.rho_source + p.epsilon);
        p.tau_b = kind == 2 ? 1 : o.rho_target / (o.rho_target + p.epsilon);
        p.product = kind == 3;
        for (int64_t t = 0; t < 8000; t++)
            step(&p);
        fill_plan(&p);
        frg_sinkhorn *s = solve(ctx, &p, &o, plan);
        const frg_sinkhorn_report r = frg_sinkhorn_get(s);
        /* steps of 1e-11 and a rate of 0.9 or less: 1e-10 of the plan's mass of about 1 */
        CHECK_SAYS(r.converged && distance(&p, plan) <= 1e-9, "kind %d: %lld passes, %g off", kind,
                   (long long)r.iterations, distance(&p, plan));
        frg_sinkhorn_destroy(s);
        free(plan);
        release(&p);
    }
    frg_context_destroy(ctx);
}

/* Potentials of 1e10 epsilon in whole floats leave exponents that no plan comes of: an error, not a
 * plan of NaN.  A weight of 1e-300 is no such thing where its marginal is relaxed. */
static void out_of_reach(void)
{
    frg_context *ctx = test_context();
    problem p = make(6, 5, 0.1);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = p.epsilon;
    o.rho_source = o.rho_target = p.epsilon;
    p.a[0] = 1e-300;
    frg_sinkhorn *s = solve(ctx, &p, &o, NULL);
    CHECK(frg_sinkhorn_get(s).converged && frg_plan_get(frg_sinkhorn_plan(s)).mass > 0.1);
    frg_sinkhorn_destroy(s);
    for (int64_t e = 0; e < p.n * p.m; e++)
        p.cost[e] += 1e9;
    o.rho_source = o.rho_target = (double)INFINITY;
    o.epsilon = 1e-3;
    o.cost_store = FRG_GW_STORE_F64;
    CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, frg_matrix(p.cost, FRG_F64, p.n, p.m, p.m), NULL,
                                      NULL, &o));
    CHECK_STATUS(frg_sinkhorn_run(s, NULL), FRG_BROKE_DOWN);
    CHECK(strstr(frg_message(ctx), "has mass"));
    frg_sinkhorn_destroy(s);
    release(&p);
    frg_context_destroy(ctx);
}

/** Partial transport as transport: a virtual column takes sum(a) - mass of the rows, a virtual row
 *  sum(b) - mass of the columns, free of cost, and nothing goes between these two. */
static problem with_virtual(const problem *p, double mass)
{
    const int64_t n = p->n + 1, m = p->m + 1;
    problem e = make(n, m, p->epsilon);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            e.cost[i * m + j] = i < p->n && j < p->m ? p->cost[i * p->m + j] : 0;
    e.cost[n * m - 1] = 1e4 * p->epsilon;
    memcpy(e.a, p->a, (size_t)p->n * sizeof *e.a);
    memcpy(e.b, p->b, (size_t)p->m * sizeof *e.b);
    e.a[p->n] = e.b[p->m] = 1 - mass;
    return e;
}

/** Runs the reference until its columns hold to 1e-13; returns the share of the error that an
 *  iteration leaves. */
static double converge(problem *e)
{
    double error = 1, middle = 0;
    int64_t t = 0, from = 0;
    for (; t < 200000 && error > 1e-13; t++) {
        error = step(e);
        if (middle == 0 && error < 1e-5) {
            middle = error;
            from = t;
        }
    }
    CHECK_SAYS(error <= 1e-13, "the reference is %g off", error);
    return pow(error / middle, 1 / (double)(t - 1 - from));
}

/* The plan of the reference, the mass asked for within the marginals; a point that fits nowhere
 * carries nothing. */
static void partial(void)
{
    frg_context *ctx = test_context();
    for (int s_of = 1; s_of <= 3; s_of++) {
        problem p = make(50, 40, 0.02);
        frg_sinkhorn_opts o;
        frg_sinkhorn_defaults(&o, sizeof o);
        o.epsilon = p.epsilon;
        o.mass = 0.3 * s_of;
        o.cost_store = FRG_GW_STORE_F64;
        o.tol = 1e-11;
        o.max_iter = 20000;
        for (int64_t j = 0; j < p.m; j++)
            p.cost[7 * p.m + j] = 10; /* point 7 of X fits nowhere */
        double *plan = malloc((size_t)(p.n * p.m) * sizeof *plan), mass = 0, excess = 0,
               of_seven = 0;
        frg_sinkhorn *s = solve(ctx, &p, &o, plan);
        problem e = with_virtual(&p, o.mass);
        const double rate = converge(&e);
        fill_plan(&e);
        double apart = 0;
        for (int64_t i = 0; i < p.n * p.m; i++)
            apart += fabs(plan[i] - e.plan[i / p.m * e.m + i % p.m]);
        /* sums off by tol are 1 / (1 - rate) of it from the end; rounding moves as much again */
        CHECK_SAYS(frg_sinkhorn_get(s).converged && apart <= 2 * o.tol / (1 - rate),
                   "mass %g: %g from the reference, at rate %g", o.mass, apart, rate);
        release(&e);
        for (int64_t i = 0; i < p.n; i++) {
            double row = 0;
            for (int64_t j = 0; j < p.m; j++)
                row += plan[i * p.m + j];
            mass += row;
            excess = fmax(excess, row - p.a[i]);
            of_seven = i == 7 ? row : of_seven;
        }
        CHECK_NEAR(mass, o.mass, 2e-11);
        CHECK_SAYS(excess <= 1e-12, "a row carries %g too much", excess);
        CHECK(of_seven < 1e-3 * p.a[7]);
        frg_sinkhorn_destroy(s);
        free(plan);
        release(&p);
    }
    frg_context_destroy(ctx);
}

/* Wide ranges: costs of 1e4 epsilon, rows and columns apart by as much. */
static void wide(void)
{
    frg_context *ctx = test_context();
    problem p = make(40, 45, 0.01);
    for (int64_t i = 0; i < p.n; i++)
        for (int64_t j = 0; j < p.m; j++)
            p.cost[i * p.m + j] += 100.0 * (double)(i % 7) - 50.0 * (double)(j % 5);
    double *plan = malloc((size_t)(p.n * p.m) * sizeof *plan);
    for (int64_t t = 0; t < 3000; t++)
        step(&p);
    fill_plan(&p);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = p.epsilon;
    o.tol = 1e-9;
    o.max_iter = 3000;
    for (int store = FRG_GW_STORE_F32; store <= FRG_GW_STORE_F64; store++) {
        if (store == FRG_GW_STORE_U16)
            continue;
        o.cost_store = (frg_gw_store)store;
        o.tol = store == FRG_GW_STORE_F64 ? 1e-9 : 1e-5;
        frg_sinkhorn *s = solve(ctx, &p, &o, plan);
        /* f32: costs of 600 have a spacing of 6e-5, 0.6 % of epsilon */
        CHECK_SAYS(distance(&p, plan) <= (store == FRG_GW_STORE_F64 ? 1e-8 : 6e-3), "store %d: %g",
                   store, distance(&p, plan));
        frg_sinkhorn_destroy(s);
    }
    o.cost_store = FRG_GW_STORE_U16;
    frg_sinkhorn *none = NULL;
    CHECK_STATUS(
        frg_sinkhorn_create(&none, ctx, frg_matrix(p.cost, FRG_F64, p.n, p.m, p.m), NULL, NULL, &o),
        FRG_BAD_ARG);
    free(plan);
    release(&p);
    frg_context_destroy(ctx);
}

/** Potentials of the targets after `passes` in f32, beside the reference's: the largest
 *  difference. */
static double potentials_apart(frg_context *ctx, const problem *p, frg_sinkhorn_opts *o,
                               int64_t passes)
{
    double g[64], most = 0;
    o->max_iter = passes;
    frg_sinkhorn *s = solve(ctx, p, o, NULL);
    CHECK(s && p->m <= 64);
    CHECK_OK(ctx, frg_sinkhorn_potentials(s, NULL, g));
    for (int64_t j = 0; j < p->m; j++)
        most = fmax(most, isfinite(g[j]) ? fabs(g[j] - p->g[j]) : (double)INFINITY);
    frg_sinkhorn_destroy(s);
    return most;
}

enum { FAR_TARGET = 5 };

static problem make_far(double epsilon, double far)
{
    problem p = make(40, 45, epsilon);
    for (int64_t i = 0; i < p.n; i++)
        p.cost[i * p.m + FAR_TARGET] += far;
    return p;
}

/* A target that is 10000 epsilon away from all: its sum vanishes in f32, its potential comes of a
 * sum of its own. */
static void lost_column(void)
{
    frg_context *ctx = test_context();
    problem p = make_far(0.05, 500);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = p.epsilon;
    o.accel = FRG_GW_ACCEL_NONE;
    o.tol = 0;
    o.cost_store = FRG_GW_STORE_F32;
    for (int64_t t = 1; t <= 5; t++) {
        step(&p);
        /* Exponents of 14427 are 2^-10 apart, half of it in cost units is 1.7e-5, and no pass makes
         * potentials that differ differ more; from the second pass on they are made with the
         * potential inside, at most 32, 2^-19 apart: 3.3e-8 a pass. */
        const double apart = potentials_apart(ctx, &p, &o, t);
        CHECK_SAYS(apart <= 1.8e-5, "pass %d: %g", (int)t, apart);
    }
    release(&p);
    frg_context_destroy(ctx);
}

/* The same where no mass has to go there: exp(-200) of its weight does, below f32 in every pass. */
static void lost_column_relaxed(void)
{
    frg_context *ctx = test_context();
    for (int product = 0; product < 2; product++) {
        problem p = make_far(0.05, 20);
        frg_sinkhorn_opts o;
        frg_sinkhorn_defaults(&o, sizeof o);
        o.epsilon = p.epsilon;
        o.tol = 0;
        o.cost_store = FRG_GW_STORE_F32;
        o.rho_target = p.epsilon;
        o.reference = product ? FRG_GW_REFERENCE_PRODUCT : FRG_GW_REFERENCE_COUNTING;
        p.product = product;
        p.tau_b = 0.5;
        for (int t = 0; t < 200; t++)
            step(&p);
        /* exponents of 300 are 2^-15 apart, half of it in cost units 5.3e-7, half of that in the
         * potential; the step of the others goes through f32 as well */
        const double apart = potentials_apart(ctx, &p, &o, 200);
        CHECK_SAYS(apart <= 1e-6, "product %d: %g", product, apart);
        release(&p);
    }
    frg_context_destroy(ctx);
}

/* The only pass loses a column that weighs less than the tolerance: the plain step it ends on has
 * its potential. */
static void lost_in_the_last_pass(void)
{
    frg_context *ctx = test_context();
    problem p = make_far(0.05, 500);
    for (int64_t i = 0; i < p.n; i++) {
        p.a[i] = 1.0 / (double)p.n;
        for (int64_t j = 0; j < p.m; j++)
            p.cost[i * p.m + j] = j == FAR_TARGET ? 500 : 0;
    }
    for (int64_t j = 0; j < p.m; j++)
        p.b[j] = j == FAR_TARGET ? 1e-9 : (1 - 1e-9) / (double)(p.m - 1);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = p.epsilon;
    o.cost_store = FRG_GW_STORE_F32;
    step(&p);
    const double apart = potentials_apart(ctx, &p, &o, 100);
    CHECK_SAYS(apart <= 1.8e-5, "%g", apart); /* as the first pass of lost_column */
    release(&p);
    frg_context_destroy(ctx);
}

/* T13 */
static void threads(void)
{
    static const int counts[] = {1, 2, 3, 8};
    double *first = NULL;
    const int64_t size = 190 * 211;
    for (int store = 0; store < 7; store++) {
        for (int c = 0; c < 4; c++) {
            test_now.random = 5;
            frg_context *ctx = test_context_with(counts[c], NULL, NULL);
            problem p = make(190, 211, 0.05);
            frg_sinkhorn_opts o;
            frg_sinkhorn_defaults(&o, sizeof o);
            o.max_iter = 25;
            o.cost_store = store < 5 ? (frg_gw_store)(store + 1) : FRG_GW_STORE_AUTO;
            o.domain = store < 5 ? FRG_GW_DOMAIN_LOG : FRG_GW_DOMAIN_KERNEL;
            o.kernel_store = store == 6 ? FRG_GW_KERNEL_BF16 : FRG_GW_KERNEL_F32;
            double *plan = malloc((size_t)size * sizeof *plan);
            frg_sinkhorn_destroy(solve(ctx, &p, &o, plan));
            if (c == 0) {
                free(first);
                first = plan;
            } else {
                CHECK_BITS(plan, first, (size_t)size * sizeof *plan);
                free(plan);
            }
            release(&p);
            frg_context_destroy(ctx);
        }
    }
    free(first);
}

/* Potentials of one run start the next: it has nothing left to do. */
static void warm(void)
{
    frg_context *ctx = test_context();
    problem p = make(80, 60, 0.05);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = p.epsilon;
    o.tol = 1e-8;
    o.cost_store = FRG_GW_STORE_F64;
    frg_sinkhorn *s = solve(ctx, &p, &o, NULL), *again = NULL;
    CHECK_OK(ctx, frg_sinkhorn_potentials(s, p.f, p.g));
    CHECK_OK(ctx, frg_sinkhorn_create(&again, ctx, frg_matrix(p.cost, FRG_F64, p.n, p.m, p.m), p.a,
                                      p.b, &o));
    CHECK_OK(ctx, frg_sinkhorn_start(again, p.f, p.g));
    CHECK_OK(ctx, frg_sinkhorn_run(again, NULL));
    CHECK_INT(frg_sinkhorn_get(again).iterations, 1);
    frg_sinkhorn_destroy(again);
    frg_sinkhorn_destroy(s);
    release(&p);
    frg_context_destroy(ctx);
}

/* The first two passes of the reduced forms are over the costs as they came: a run that ends within
 * them, at the tolerance or at the limit of passes, tells the error of the last one as any other
 * form does. */
static void ends_early(void)
{
    static const struct {
        frg_gw_store store;
        frg_gw_domain domain;
        frg_gw_kernel_store kernel;
    } each[] = {{FRG_GW_STORE_F32, FRG_GW_DOMAIN_LOG, 0},
                {FRG_GW_STORE_U16R, FRG_GW_DOMAIN_LOG, 0},
                {FRG_GW_STORE_AUTO, FRG_GW_DOMAIN_KERNEL, FRG_GW_KERNEL_F32},
                {FRG_GW_STORE_AUTO, FRG_GW_DOMAIN_KERNEL, FRG_GW_KERNEL_BF16}};
    frg_context *ctx = test_context();
    for (int limit = 0; limit < 3; limit++) { /* of passes; 0: the tolerance ends the run */
        problem p = make(20, 17, limit ? 0.05 : 50);
        double want = 0;
        for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
            frg_sinkhorn_opts o;
            frg_sinkhorn_defaults(&o, sizeof o);
            o.epsilon = p.epsilon;
            o.cost_store = each[i].store;
            o.domain = each[i].domain;
            o.kernel_store = each[i].kernel;
            o.tol = 1e-4;
            o.max_iter = limit ? limit : o.max_iter;
            frg_sinkhorn *s = NULL;
            CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, frg_matrix(p.cost, FRG_F64, 20, 17, 17), p.a,
                                              p.b, &o));
            CHECK_INT(frg_sinkhorn_run(s, NULL), limit ? FRG_MAX_ITER : FRG_OK);
            const frg_sinkhorn_report r = frg_sinkhorn_get(s);
            CHECK(r.iterations <= 2 && r.converged == !limit);
            CHECK_SAYS(limit ? r.marginal_error > 0.01 : r.marginal_error <= o.tol,
                       "form %zu: error %g", i, r.marginal_error);
            want = i ? want : r.marginal_error;
            CHECK_NEAR(r.marginal_error, want, 1e-6); /* sums of f32 */
            frg_sinkhorn_destroy(s);
        }
        release(&p);
    }
    frg_context_destroy(ctx);
}

static void consumers(void)
{
    frg_context *ctx = test_context();
    problem p = make(37, 53, 0.05);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    double *plan = malloc((size_t)(p.n * p.m) * sizeof *plan);
    frg_sinkhorn *s = solve(ctx, &p, &o, plan);
    const frg_plan *q = frg_sinkhorn_plan(s);
    int64_t index[37 * 5], best[37], starts[38];
    double value[37 * 5], v[53 * 2], out[37 * 2], back[53 * 2], share[37];
    int32_t labels[53], label[37];
    CHECK_OK(ctx, frg_plan_top(q, 5, index, value));
    CHECK_OK(ctx, frg_plan_argmax(q, best));
    int64_t *const all = malloc((size_t)(p.n * p.m) * sizeof *all); /* a row in order, whole */
    double *const falling = malloc((size_t)(p.n * p.m) * sizeof *falling);
    CHECK_OK(ctx, frg_plan_top(q, p.m, all, falling));
    for (int64_t i = 0; i < p.n * p.m; i++)
        CHECK(i % p.m == 0 || falling[i] <= falling[i - 1]);
    CHECK_STATUS(frg_plan_top(q, p.m + 1, all, falling), FRG_BAD_ARG);
    CHECK_STATUS(frg_plan_top(q, 0, all, falling), FRG_BAD_ARG);
    free(all);
    free(falling);
    CHECK_OK(ctx, frg_plan_sparse(q, 1e-3, starts, NULL, NULL));
    int32_t *columns = malloc((size_t)(starts[p.n] + 1) * sizeof *columns);
    double *values = malloc((size_t)(starts[p.n] + 1) * sizeof *values);
    CHECK_OK(ctx, frg_plan_sparse(q, 1e-3, starts, columns, values));
    for (int64_t j = 0; j < p.m; j++) {
        v[2 * j] = test_normal();
        v[2 * j + 1] = test_normal();
        labels[j] = (int32_t)(j % 4) - 1;
    }
    CHECK_OK(ctx, frg_plan_apply(q, frg_matrix(v, FRG_F64, p.m, 2, 2), 0,
                                 frg_matrix(out, FRG_F64, p.n, 2, 2)));
    CHECK_OK(ctx, frg_plan_apply(q, frg_matrix(out, FRG_F64, p.n, 2, 2), 1,
                                 frg_matrix(back, FRG_F64, p.m, 2, 2)));
    CHECK_OK(ctx, frg_plan_labels(q, labels, 3, label, share));
    CHECK_STATUS(frg_plan_labels(q, NULL, 3, label, share), FRG_BAD_ARG);
    CHECK_STATUS(frg_plan_labels(q, labels, 3, NULL, share), FRG_BAD_ARG);
    CHECK_STATUS(frg_plan_labels(q, labels, 0, label, share), FRG_BAD_ARG);
    double want[53 * 2] = {0};
    for (int64_t i = 0; i < p.n; i++) {
        const double *row = plan + i * p.m;
        int64_t top = 0, kept = 0;
        double sum[2] = {0}, by_label[4] = {0};
        for (int64_t j = 0; j < p.m; j++) {
            int64_t above = 0;
            for (int64_t k = 0; k < p.m; k++)
                above += row[k] > row[j] || (row[k] == row[j] && k < j);
            if (above < 5) {
                CHECK_INT(index[i * 5 + above], j);
                CHECK(value[i * 5 + above] == row[j]);
            }
            top = row[j] > row[top] ? j : top;
            if (row[j] >= 1e-3) {
                CHECK_INT(columns[starts[i] + kept], j);
                CHECK(values[starts[i] + kept] == row[j]);
                kept++;
            }
            sum[0] += row[j] * v[2 * j];
            sum[1] += row[j] * v[2 * j + 1];
            by_label[labels[j] + 1] += row[j];
        }
        CHECK_INT(best[i], top);
        CHECK_INT(starts[i + 1] - starts[i], kept);
        for (int c = 0; c < 2; c++) {
            CHECK_NEAR(out[2 * i + c], sum[c], 1e-14);
            for (int64_t j = 0; j < p.m; j++)
                want[2 * j + c] += row[j] * out[2 * i + c];
        }
        const int most = by_label[1] >= by_label[2]   ? by_label[1] >= by_label[3] ? 0 : 2
                         : by_label[2] >= by_label[3] ? 1
                                                      : 2;
        CHECK_INT(label[i], most);
        CHECK_NEAR(share[i], by_label[most + 1] / (by_label[1] + by_label[2] + by_label[3]), 1e-13);
    }
    for (int64_t j = 0; j < 2 * p.m; j++)
        CHECK_NEAR(back[j], want[j], 1e-14);
    free(columns);
    free(values);
    free(plan);
    frg_sinkhorn_destroy(s);
    release(&p);
    frg_context_destroy(ctx);
}

static void divide_by_sum(double *w, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += w[i];
    for (int64_t i = 0; i < n; i++)
        w[i] /= sum;
}

/** Both sums, of the first side and of the second, of which a negative one is that of uniform
 *  weights not given: what balanced problems make of them. */
static void sums(void)
{
    static const struct {
        double a, b;
        frg_status status;
        int warnings;
    } each[] = {{1, 1, FRG_OK, 0},  {1, 1 + 1e-7, FRG_OK, 0},       {1, 1 + 1e-4, FRG_BAD_DATA, 0},
                {3, 3, FRG_OK, 1},  {3, 3 * (1 - 1e-7), FRG_OK, 1}, {3, 1, FRG_BAD_DATA, 0},
                {3, -1, FRG_OK, 1}, {-1, 0.25, FRG_OK, 1},          {-1, -1, FRG_OK, 0}};
    frg_context *ctx = test_context();
    problem p = make(30, 35, 0.05);
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        divide_by_sum(p.a, p.n);
        divide_by_sum(p.b, p.m);
        for (int64_t i = 0; i < p.n; i++)
            p.a[i] *= each[k].a;
        for (int64_t j = 0; j < p.m; j++)
            p.b[j] *= each[k].b;
        frg_warnings_clear(ctx);
        frg_sinkhorn *s = NULL;
        CHECK_STATUS(frg_sinkhorn_create(&s, ctx, frg_matrix(p.cost, FRG_F64, p.n, p.m, p.m),
                                         each[k].a < 0 ? NULL : p.a, each[k].b < 0 ? NULL : p.b,
                                         NULL),
                     each[k].status);
        CHECK_INT(frg_warning_count(ctx), each[k].warnings);
        if (each[k].status < 0)
            CHECK(!s && strstr(frg_message(ctx), "source weights sum to"));
        if (s) {
            CHECK_OK(ctx, frg_sinkhorn_run(s, NULL));
            CHECK_NEAR(frg_plan_get(frg_sinkhorn_plan(s)).mass, 1, 1e-12);
        }
        frg_sinkhorn_destroy(s);
        for (int64_t i = 0; i < p.n; i++)
            p.a[i] = fabs(p.a[i]);
        for (int64_t j = 0; j < p.m; j++)
            p.b[j] = fabs(p.b[j]);
    }
    release(&p);
    frg_context_destroy(ctx);
}

static void zero_weights(void)
{
    frg_context *ctx = test_context();
    problem p = make(30, 35, 0.05);
    p.a[3] = p.b[0] = p.b[34] = 0;
    divide_by_sum(p.a, p.n);
    divide_by_sum(p.b, p.m);
    double *plan = malloc((size_t)(p.n * p.m) * sizeof *plan);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    frg_sinkhorn *s = solve(ctx, &p, &o, plan);
    CHECK_INT(frg_warning_count(ctx), 0);
    for (int64_t j = 0; j < p.m; j++)
        CHECK(plan[3 * p.m + j] == 0);
    for (int64_t i = 0; i < p.n; i++)
        CHECK(plan[i * p.m] == 0 && plan[i * p.m + 34] == 0);
    CHECK(frg_plan_get(frg_sinkhorn_plan(s)).target_error <= 1e-12);
    free(plan);
    frg_sinkhorn_destroy(s);
    release(&p);
    frg_context_destroy(ctx);
}

static void refusals(void)
{
    frg_context *ctx = test_context();
    problem p = make(5, 6, 0.05);
    const frg_array c = frg_matrix(p.cost, FRG_F64, 5, 6, 6);
    frg_sinkhorn *s = NULL;
    frg_sinkhorn_opts o;
    p.cost[8] = NAN;
    CHECK_STATUS(frg_sinkhorn_create(&s, ctx, c, p.a, p.b, NULL), FRG_BAD_DATA);
    CHECK_TEXT(frg_error_where(ctx), "cost, row 2, column 3");
    p.cost[8] = 1;
    static const struct {
        const char *name;
        size_t at;
    } choices[] = {{"cost_store", offsetof(frg_sinkhorn_opts, cost_store)},
                   {"domain", offsetof(frg_sinkhorn_opts, domain)},
                   {"kernel_store", offsetof(frg_sinkhorn_opts, kernel_store)},
                   {"accel", offsetof(frg_sinkhorn_opts, accel)},
                   {"reference", offsetof(frg_sinkhorn_opts, reference)}};
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        frg_sinkhorn_defaults(&o, sizeof o);
        const int none = 77;
        memcpy((char *)&o + choices[k].at, &none, sizeof none);
        CHECK_STATUS(frg_sinkhorn_create(&s, ctx, c, p.a, p.b, &o), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), choices[k].name));
    }
    p.a[2] = -1;
    CHECK_STATUS(frg_sinkhorn_create(&s, ctx, c, p.a, p.b, NULL), FRG_BAD_DATA);
    CHECK_TEXT(frg_error_where(ctx), "a, value 3");
    memset(p.a, 0, 5 * sizeof *p.a);
    CHECK_STATUS(frg_sinkhorn_create(&s, ctx, c, p.a, p.b, NULL), FRG_BAD_DATA);
    static const struct {
        double epsilon, mass, rho;
    } bad[] = {{0, 0, 1},          {-1, 0, 1}, {NAN, 0, 1}, {1, -1, 1},
               {1, 1.5, INFINITY}, {1, 0, 0},  {1, 0, -2}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        frg_sinkhorn_defaults(&o, sizeof o);
        o.epsilon = bad[i].epsilon;
        o.mass = bad[i].mass;
        o.rho_target = bad[i].rho;
        CHECK_STATUS(frg_sinkhorn_create(&s, ctx, c, NULL, NULL, &o), FRG_BAD_ARG);
        CHECK(s == NULL && *frg_message(ctx));
    }
    frg_sinkhorn_defaults(&o, sizeof o);
    o.domain = FRG_GW_DOMAIN_KERNEL; /* its passes read what is kept */
    o.cost_store = FRG_GW_STORE_FLY;
    CHECK_STATUS(frg_sinkhorn_create(&s, ctx, c, NULL, NULL, &o), FRG_UNSUPPORTED);
    CHECK(s == NULL && strstr(frg_message(ctx), "cost_store fly"));
    frg_sinkhorn_defaults(&o, sizeof o);
    o.mass = 0.5; /* what stays behind has no product to be relative to */
    o.reference = FRG_GW_REFERENCE_PRODUCT;
    CHECK_STATUS(frg_sinkhorn_create(&s, ctx, c, NULL, NULL, &o), FRG_UNSUPPORTED);
    CHECK(s == NULL && strstr(frg_message(ctx), "reference product"));
    o.mass = 1; /* all of it: a balanced plan, the same for both */
    CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, c, NULL, NULL, &o));
    frg_sinkhorn_destroy(s);
    release(&p);
    frg_context_destroy(ctx);
}

/** A plan along a line: most powers are 0, and passes over stored exponents leave them out; made on
 *  the fly nothing is left out.  Both see the same exponents and differ by the order of sums: 200
 *  passes times 2^-22 in the logarithm of an entry are 5e-5 of it. */
static void narrow(void)
{
    enum { N = 160, M = 245, PASSES = 200 };
    frg_context *ctx = test_context();
    problem p = make(N, M, 1e-4);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < M; j++) {
            const double gap = (double)i / N - (double)j / M;
            p.cost[i * M + j] = gap * gap;
        }
    const frg_gw_store stores_of[2] = {FRG_GW_STORE_F32, FRG_GW_STORE_FLY};
    double *plans[2] = {malloc(N * M * sizeof(double)), malloc(N * M * sizeof(double))}, tv = 0;
    for (int q = 0; q < 2; q++) {
        frg_sinkhorn *s = NULL;
        frg_sinkhorn_opts o;
        frg_sinkhorn_defaults(&o, sizeof o);
        o.epsilon = p.epsilon;
        o.tol = 0;
        o.max_iter = PASSES;
        o.accel = FRG_GW_ACCEL_NONE;
        o.cost_store = stores_of[q];
        CHECK_OK(ctx,
                 frg_sinkhorn_create(&s, ctx, frg_matrix(p.cost, FRG_F64, N, M, M), p.a, p.b, &o));
        CHECK(frg_sinkhorn_run(s, NULL) >= 0);
        CHECK_OK(ctx,
                 frg_plan_rows(frg_sinkhorn_plan(s), 0, N, frg_matrix(plans[q], FRG_F64, N, M, M)));
        /* all exponents PASSES times would be 160 x 288 floats each time */
        CHECK(q == 1 || frg_sinkhorn_get(s).bytes_read < 0.8 * PASSES * N * 288 * 4);
        frg_sinkhorn_destroy(s);
    }
    for (int64_t i = 0; i < N * M; i++)
        tv += fabs(plans[0][i] - plans[1][i]) / 2;
    CHECK_NEAR(tv, 0, 5e-5);
    free(plans[0]);
    free(plans[1]);
    release(&p);
    frg_context_destroy(ctx);
}

/** What is called converged is within tol of the marginals before it is rounded, in every form of
 *  costs: the plan that is handed out, in doubles, and exp((f + g - c) / epsilon) of the potentials
 *  but for the rounding of f32: half a unit of exponents that are less than 64 off its own. */
static void keeps_its_word(frg_context *ctx, const problem *p, frg_sinkhorn_opts o)
{
    double *const plan = malloc((size_t)(p->n * p->m) * sizeof *plan);
    o.epsilon = p->epsilon;
    o.tol = 2e-6;
    o.max_iter = 20000;
    o.round = 0;
    frg_sinkhorn *s = solve(ctx, p, &o, plan);
    CHECK_OK(ctx, frg_sinkhorn_potentials(s, p->f, p->g));
    fill_plan((problem *)(uintptr_t)p);
    const frg_sinkhorn_report r = frg_sinkhorn_get(s);
    CHECK_SAYS(r.converged && r.marginal_error <= o.tol,
               "store %d, domain %d, %" PRId64 " x %" PRId64 ", epsilon %g: error %g",
               (int)o.cost_store, (int)o.domain, p->n, p->m, p->epsilon, r.marginal_error);
    const double *const of[] = {plan, p->plan}, unit = 64 * 0x1p-24;
    for (int which = 0; which < 2; which++) {
        const double error = miss(p, of[which]), most = which ? o.tol + unit : o.tol * (1 + 1e-9);
        CHECK_SAYS(error <= most,
                   "store %d, domain %d, %" PRId64 " x %" PRId64 ", epsilon %g: %s %g, told %g",
                   (int)o.cost_store, (int)o.domain, p->n, p->m, p->epsilon,
                   which ? "potentials" : "plan", error, r.marginal_error);
    }
    frg_sinkhorn_destroy(s);
    free(plan);
}

static void as_told(void)
{
    static const double epsilons[] = {0.2, 0.05, 0.02, 0.01};
    static const frg_gw_store each[] = {FRG_GW_STORE_F32, FRG_GW_STORE_FLY, FRG_GW_STORE_U16,
                                        FRG_GW_STORE_U16R};
    frg_context *ctx = test_context();
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    for (int e = 0; e < 4; e++) {
        problem two = make(2, 2, epsilons[e]), many = make(30, 40, epsilons[e]);
        const double costs[4] = {0.2, 0.9, 0.5, 0.7};
        memcpy(two.cost, costs, sizeof costs);
        two.a[0] = two.a[1] = 0.5;
        two.b[0] = 0.3;
        two.b[1] = 0.7;
        for (int64_t i = 0; i < 30; i++)
            for (int64_t j = 0; j < 40; j++)
                many.cost[i * 40 + j] += (double)j / 39;
        for (int form = 0; form < 6; form++) {
            o.domain = form < 4 ? FRG_GW_DOMAIN_LOG : FRG_GW_DOMAIN_KERNEL;
            o.cost_store = form < 4 ? each[form] : FRG_GW_STORE_AUTO;
            o.kernel_store = form == 4 ? FRG_GW_KERNEL_F32 : FRG_GW_KERNEL_BF16;
            keeps_its_word(ctx, &two, o);
            keeps_its_word(ctx, &many, o);
        }
        release(&two);
        release(&many);
    }
    frg_context_destroy(ctx);
}

/** user: the passes after which a run stops. */
static int stop_after(const frg_progress *p, void *user)
{
    return p->done >= *(const int64_t *)user;
}

/* What passes of fixed point and bf16 tell is of other costs than the plan's: after as many of them
 * as were asked for, and after a stop, the error is that of a pass over these: more than they told,
 * less than the step of bf16.  The plan, with columns made exact behind it and then the rows, is no
 * further off. */
static void coarse_ends(void)
{
    static const struct {
        frg_gw_store store;
        frg_gw_domain domain;
        int64_t
            stopped; /* after 200 passes, and the two first ones of reduced forms, and the last */
    } each[] = {{FRG_GW_STORE_U16, FRG_GW_DOMAIN_LOG, 201},
                {FRG_GW_STORE_U16R, FRG_GW_DOMAIN_LOG, 203},
                {FRG_GW_STORE_AUTO, FRG_GW_DOMAIN_KERNEL, 203}};
    problem p = make(60, 50, 0.1);
    double *const plan = malloc((size_t)(p.n * p.m) * sizeof *plan);
    for (int stops = 0; stops < 2; stops++) {
        int64_t after = stops ? 200 : INT64_MAX;
        frg_context_opts c;
        frg_context_defaults(&c, sizeof c);
        c.on_progress = stop_after;
        c.user = &after;
        frg_context *ctx = NULL;
        CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
        for (size_t form = 0; form < sizeof each / sizeof *each; form++) {
            frg_sinkhorn_opts o;
            frg_sinkhorn_defaults(&o, sizeof o);
            o.epsilon = p.epsilon;
            o.cost_store = each[form].store;
            o.domain = each[form].domain;
            o.kernel_store = FRG_GW_KERNEL_BF16;
            o.round = 0;
            o.tol = 0;
            o.max_iter = 300;
            frg_sinkhorn *s = solve(ctx, &p, &o, plan);
            const frg_sinkhorn_report r = frg_sinkhorn_get(s);
            CHECK_INT(r.iterations, stops ? each[form].stopped : 300);
            CHECK_SAYS(r.marginal_error > 1e-6 && r.marginal_error < 0x1p-8 &&
                           miss(&p, plan) <= r.marginal_error * (1 + 1e-9),
                       "form %zu: error %g, told %g", form, miss(&p, plan), r.marginal_error);
            frg_sinkhorn_destroy(s);
        }
        frg_context_destroy(ctx);
    }
    free(plan);
    release(&p);
}

static frg_context *limited(int64_t bytes)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.threads = 2;
    o.memory_limit = bytes;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    return ctx;
}

/** f and g of three passes; false where the solver is refused. */
static bool three_passes(frg_context *ctx, const problem *p, frg_sinkhorn_opts o, frg_gw_store *got,
                         double *fg)
{
    frg_sinkhorn *s = NULL;
    o.tol = 0;
    o.max_iter = 3;
    const frg_status status = frg_sinkhorn_create(
        &s, ctx, frg_matrix(p->cost, FRG_F64, p->n, p->m, p->m), p->a, p->b, &o);
    if (status < 0) {
        CHECK_STATUS(status, FRG_NO_MEMORY);
        return false;
    }
    CHECK_STATUS(frg_sinkhorn_run(s, NULL), FRG_MAX_ITER);
    CHECK_OK(ctx, frg_sinkhorn_potentials(s, fg, fg + p->n));
    *got = frg_sinkhorn_get(s).cost_store;
    frg_sinkhorn_destroy(s);
    return true;
}

/* Exponents of 1000 x 1000 take 8, 4, 2 and 0 MB as f64, f32, u16r and fly, all else less than 1.3
 * MB.  What has no room is refused and the next form named; where it may fall, the first form with
 * room is taken, is told, and has the bits of that form. */
static void forms_by_memory(void)
{
    enum { N = 1000 };
    static const struct {
        frg_gw_store asked;
        int64_t limit;
        frg_gw_store got;
        bool refused; /* whatever it may do */
    } each[] = {{FRG_GW_STORE_F64, 40000000, FRG_GW_STORE_F64, false},
                {FRG_GW_STORE_F64, 6000000, FRG_GW_STORE_F32, false},
                {FRG_GW_STORE_F32, 3700000, FRG_GW_STORE_U16R, false},
                {FRG_GW_STORE_AUTO, 3700000, FRG_GW_STORE_U16R, false},
                {FRG_GW_STORE_F32, 1800000, FRG_GW_STORE_FLY, false},
                {FRG_GW_STORE_U16, 1800000, FRG_GW_STORE_FLY, false},
                {FRG_GW_STORE_F32, 200000, FRG_GW_STORE_F32, true},
                {FRG_GW_STORE_FLY, 200000, FRG_GW_STORE_FLY, true}};
    problem p = make(N, N, 0.05);
    double *const fg = malloc(2 * N * sizeof *fg), *const want = malloc(2 * N * sizeof *want);
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        const bool falls = each[k].got != each[k].asked;
        frg_gw_store got = FRG_GW_STORE_AUTO;
        frg_context *ctx = limited(each[k].limit);
        o.cost_store = each[k].asked;
        for (int automatic = 0; automatic < 2; automatic++) {
            o.auto_store = automatic;
            frg_warnings_clear(ctx);
            const bool made = three_passes(ctx, &p, o, &got, fg);
            CHECK_SAYS(made == (!each[k].refused && (automatic || !falls)), "case %zu, %d: %s", k,
                       automatic, frg_message(ctx));
            if (!made)
                CHECK_SAYS(strstr(frg_message(ctx), "bytes") != NULL &&
                               (each[k].asked == FRG_GW_STORE_FLY ||
                                strstr(frg_message(ctx), "auto_store")),
                           "case %zu: %s", k, frg_message(ctx));
            if (made)
                CHECK_INT(got, each[k].got);
            const bool told = made && falls;
            CHECK_INT(frg_warning_count(ctx), told);
            if (told) {
                CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-GW-107");
                o.cost_store = each[k].got;
                CHECK(three_passes(ctx, &p, o, &got, want));
                CHECK_BITS(fg, want, 2 * N * sizeof *fg);
            }
        }
        frg_context_destroy(ctx);
    }
    frg_context *ctx = limited(3000000); /* kernels have no smaller form */
    frg_gw_store got;
    o = (frg_sinkhorn_opts){0};
    frg_sinkhorn_defaults(&o, sizeof o);
    o.domain = FRG_GW_DOMAIN_KERNEL;
    o.auto_store = 1;
    CHECK(!three_passes(ctx, &p, o, &got, fg));
    frg_context_destroy(ctx);
    free(fg);
    free(want);
    release(&p);
}

/* Sizes that an index, or 2^63 bytes, cannot hold, before any work: one cost is all of the
 * matrix. */
static void limits_of_an_index(void)
{
    frg_context *ctx = test_context();
    const float one = 1;
    const int64_t most = INT32_MAX;
    static const struct {
        int64_t less_rows, less_columns;
        frg_status status;
    } each[] = {{0, INT32_MAX - 2, FRG_BAD_ARG},
                {INT32_MAX - 2, 0, FRG_BAD_ARG},
                {1, 1, FRG_NO_MEMORY},
                {INT32_MAX, 3, FRG_BAD_ARG}};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        frg_array c =
            frg_matrix(&one, FRG_F32, most - each[k].less_rows, most - each[k].less_columns, 0);
        c.stride[1] = 0;
        frg_sinkhorn *s = NULL;
        CHECK_STATUS(frg_sinkhorn_create(&s, ctx, c, NULL, NULL, NULL), each[k].status);
        CHECK(!s && *frg_message(ctx));
    }
    frg_context_destroy(ctx);
}

/** Column sums of 13 chunks have the bits of one tree, in either precision, and are what the
 *  potentials move by: G + log2(b / col). */
static void columns_by_the_tree(void)
{
    enum { M = 600, CHUNKS = 13 };
    static double wide[CHUNKS * M], G[M], last[M], G0[M], log_b[M], b[M], col[M], g[M];
    static float narrow[CHUNKS * M];
    frg_context *ctx = test_context();
    for (int64_t i = 0; i < CHUNKS * M; i++)
        wide[i] = (double)(narrow[i] = (float)ldexp(test_uniform(), -(int)test_below(20)));
    for (int64_t j = 0; j < M; j++)
        log_b[j] = log2(b[j] = 1.0 / M);
    for (int store = 0; store < 2; store++) {
        frgi_sweep s = {.n = 1,
                        .m = M,
                        .ld = M,
                        .chunks = CHUNKS,
                        .x = {.store = store ? FRGI_X32W : FRGI_X32},
                        .to = {.b = b, .log_b = log_b, .tau_a = 1, .tau_b = 1},
                        .base = {.G0 = G0},
                        .G = G,
                        .G_last = last,
                        .g = g,
                        .partial = store ? (void *)wide : narrow,
                        .col = col};
        memset(G, 0, sizeof G);
        frgi_sweep_ops_of(ctx)->columns(&s, 0, M, 0);
        for (int64_t j = 0; j < M; j++) {
            frgi_tree_sum sum = {0};
            for (int64_t c = 0; c < CHUNKS; c++)
                frgi_tree_add(&sum, wide[c * M + j]);
            CHECK(col[j] == frgi_tree_total(&sum));
            CHECK_NEAR(G[j], log2(b[j] / col[j]), 1e-13);
        }
    }
    frg_context_destroy(ctx);
}

/** The objective of weights a, to 1e-12. */
static double objective_of(frg_context *ctx, const problem *p, frg_sinkhorn **out)
{
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = p->epsilon;
    o.tol = 1e-12;
    o.cost_store = FRG_GW_STORE_F64;
    o.round = 0;
    if (CHECK_OK(ctx, frg_sinkhorn_create(out, ctx, frg_matrix(p->cost, FRG_F64, p->n, p->m, p->m),
                                          p->a, p->b, &o)))
        CHECK_OK(ctx, frg_sinkhorn_run(*out, NULL));
    return frg_sinkhorn_get(*out).objective;
}

/** The dual's value is the primal's, and its differences are the plan and the potentials: central
 *  ones of step h are off by h^2 / 6 times the third derivative, which is of the size of the
 *  first over epsilon^2 (exponents of P are linear in C over epsilon; of a, log a): 1e-7 / 6 / 0.25 of
 *  it with h = 3e-4, and rounding 1e-16 / h adds 1e-12.  Marginals are off by 1e-12, which at
 *  potentials of size 3 moves the primal by 3e-12. */
static void objective(void)
{
    const double h = 3e-4;
    frg_context *ctx = test_context();
    problem p = make(9, 7, 0.5);
    double plan[63], f[9], sides[2], primal = 0;
    frg_sinkhorn *s = NULL, *other = NULL;
    const double dual = objective_of(ctx, &p, &s);
    CHECK_OK(ctx, frg_plan_rows(frg_sinkhorn_plan(s), 0, 9, frg_matrix(plan, FRG_F64, 9, 7, 7)));
    CHECK_OK(ctx, frg_sinkhorn_potentials(s, f, NULL));
    for (int e = 0; e < 63; e++)
        primal += plan[e] * (p.cost[e] + p.epsilon * (log(plan[e]) - 1));
    CHECK_NEAR(dual, primal, 1e-11);
    for (int way = 0; way < 2; way++) {
        p.cost[17] += way ? -2 * h : h;
        sides[way] = objective_of(ctx, &p, &other);
        frg_sinkhorn_destroy(other);
    }
    p.cost[17] += h;
    CHECK_NEAR((sides[0] - sides[1]) / (2 * h), plan[17], 1e-7 * plan[17] + 1e-11);
    const double step = h * p.a[3];
    for (int way = 0; way < 2; way++) { /* mass from one point to another */
        p.a[3] += way ? -2 * step : step;
        p.a[5] -= way ? -2 * step : step;
        sides[way] = objective_of(ctx, &p, &other);
        frg_sinkhorn_destroy(other);
    }
    CHECK_NEAR((sides[0] - sides[1]) / (2 * step), f[3] - f[5], 1e-6);
    frg_sinkhorn_destroy(s);
    release(&p);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"columns by the tree", columns_by_the_tree},
                                  {"forms by memory", forms_by_memory},
                                  {"limits of an index", limits_of_an_index},
                                  {"iterates", iterates},
                                  {"objective", objective},
                                  {"stores", stores},
                                  {"as told", as_told},
                                  {"coarse ends", coarse_ends},
                                  {"relaxed", relaxed},
                                  {"one relaxed mass", one_relaxed_mass},
                                  {"barely_relaxed", barely_relaxed},
                                  {"out of reach", out_of_reach},
                                  {"partial", partial},
                                  {"wide", wide},
                                  {"threads", threads},
                                  {"warm", warm},
                                  {"ends early", ends_early},
                                  {"consumers", consumers},
                                  {"sums", sums},
                                  {"zero weights", zero_weights},
                                  {"narrow", narrow},
                                  {"refusals", refusals},
                                  {"lost column", lost_column},
                                  {"lost column, relaxed", lost_column_relaxed},
                                  {"lost in the last pass", lost_in_the_last_pass}};
TEST_MAIN(cases)
