/* test_gw_align_device.c - the sampled iteration of alignments on every machine that is there: the
 * plain C life of the kernels, OpenCL at two sizes of a group, CUDA's stand-in driver; against the
 * host's.
 *
 * Bounds.  With fewer than 16 pairs a step the host keeps its factors as floats, as devices do, so
 * that both make the same cost but for rounding: sums of R = 15 products of distances of at most 1
 * (whose square roots are off by 2^-23) and one of means, 2 (2 R + 4) 2^-24 = 4.1e-6 at most, which
 * over epsilon = 0.05 is 8.1e-5; exponents are floats of size k c = 58, off by 58 2^-24 = 3.5e-6
 * on the host alone.  Where the rows and columns of two plans sum to the same and their costs
 * differ by d epsilon at most, entries differ by a factor e^(4 d) at most (both potentials by up
 * to 2 d each less what they share), so that half the sum of all differences is below
 * (e^(4 d) - 1) / 2 = 1.8e-4; each is polished to an L1 error of 1e-9.  The terms of rows and
 * columns of a cost that has them are sums of as many squares, within the same bound; a linear cost
 * of at most 1 and weight 0.3 is rounded once more.
 *
 * Relaxed marginals: with t = rho / (rho + epsilon) potentials solve f = -t_a softmin(c - g),
 * g = -t_b softmin(c - f), whose changes are |df| <= t_a (d + |dg|), |dg| <= t_b (d + |df|), so
 * that |df| + |dg| + d <= (2 + 4 r / epsilon) d where r is the least rho: entries change by a
 * factor of at most its exponential.  A partial plan is a balanced one with a dummy row and column,
 * whose costs do not change.
 *
 * The mode landmark, whose cost depends on the plan: distances are at most 1, so that factors of
 * their squares, w numbers a point, multiply to sums of absolute terms of at most 2 4 4 = 32,
 * floats with w + 3 roundings on either side: d epsilon = 64 (w + 3) 2^-24.  Averaged plans that differ by
 * delta, half of the sum of all differences, have costs that differ by delta more:
 * 2 (C - 1/2) dP (D - 1/2), rows and columns of dP being 0 (20 passes at so large an epsilon).  The
 * next plans then differ by 2 (d + delta / epsilon) at most, their averages by
 * (1 - alpha) delta + alpha times that.
 *
 * Scale batch_max: two roundings more of each distance, so that d is less than twice as large.
 * Terms of L from averaged marginals (diag_exact), whose L1 errors relative to the mass are 2 delta
 * at most where the averaged plans differ by delta: two means of squares of at most 1, each off by
 * 4 delta as the sum that it is divided by is off, too.  Of a plan in the loop, which s steps of
 * three passes have made, exponents differ by d twice a pass.
 */

#include "align_bodies.h"
#include "cuda_driver.h"
#include "devices.h"
#include "fault.h"
#include "fourge/gw.h"
#include "gw/gw_align.h"
#include "gw/gw_distances.h"
#include "gw/gw_level_device.h"
#include "gw/gw_vertex.h"
#include "test.h"

enum { N = 70, M = 90, D = 3 };
#define SQUARE 14.2 /* no distance has a larger one: coordinates are up to 1.02, 2.02 and 3.02 */

typedef struct {
    double *x, *y;   /* points */
    double *cx, *cy; /* their distances */
    double *a, *b;
    double *linear; /* N x M */
} problem;

static void distances_of(const double *x, int64_t n, double *c)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < n; k++) {
            double square = 0;
            for (int64_t q = 0; q < D; q++)
                square += (x[i * D + q] - x[k * D + q]) * (x[i * D + q] - x[k * D + q]);
            c[i * n + k] = sqrt(square);
        }
    }
}

static void fill_weights(double *w, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += w[i] = 0.5 + test_uniform();
    for (int64_t i = 0; i < n; i++)
        w[i] /= sum;
}

static problem make(void)
{
    problem p = {malloc(N * D * sizeof(double)), malloc(M * D * sizeof(double)),
                 malloc(N * N * sizeof(double)), malloc(M * M * sizeof(double)),
                 malloc(N * sizeof(double)),     malloc(M * sizeof(double)),
                 malloc(N * M * sizeof(double))};
    for (int64_t i = 0; i < N * D; i++)
        p.x[i] = test_uniform() * (double)(1 + i % D);
    for (int64_t i = 0; i < M * D; i++)
        p.y[i] = i < N * D ? p.x[i] + 0.02 * test_uniform() : test_uniform() * (double)(1 + i % D);
    distances_of(p.x, N, p.cx);
    distances_of(p.y, M, p.cy);
    fill_weights(p.a, N);
    fill_weights(p.b, M);
    for (int64_t e = 0; e < N * M; e++)
        p.linear[e] = test_uniform();
    return p;
}

static void release(problem *p)
{
    free(p->x);
    free(p->y);
    free(p->cx);
    free(p->cy);
    free(p->a);
    free(p->b);
    free(p->linear);
}

/** A few steps at one epsilon, from the product, without a test for an end. */
static frg_gw_opts options(void)
{
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
    o.epsilon = 0.05;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.anchors = 15;
    o.n_start = 1;
    o.start_from = FRG_GW_START_PRODUCT;
    o.max_iter = o.min_iter = 6;
    o.marginal_tol = 0;
    o.polish_tol = 1e-9;
    o.polish_passes = 4000;
    return o;
}

/** The same in the mode landmark, of points. */
static frg_gw_opts landmark_options(void)
{
    frg_gw_opts o = options();
    o.mode = FRG_GW_LANDMARK;
    o.anchors = 80; /* the default, of which this mode has none */
    o.max_inner = 20;
    o.max_iter = o.min_iter = 2;
    o.epsilon = 0.5;
    return o;
}

static frg_gw *open(frg_context *ctx, frgi_gw_place where, const problem *p, const frg_gw_opts *o)
{
    frg_gw *s = NULL;
    const bool matrix = o->distance == FRG_GW_DISTANCE_MATRIX;
    const frg_array x = matrix ? frg_matrix(p->cx, FRG_F64, N, N, N)
                               : frg_matrix(p->x, FRG_F64, N, D, D),
                    y = matrix ? frg_matrix(p->cy, FRG_F64, M, M, M)
                               : frg_matrix(p->y, FRG_F64, M, D, D),
                    linear = frg_matrix(p->linear, FRG_F64, N, M, M);
    CHECK_OK(ctx, frgi_gw_open(&s, ctx, where, (frg_gw_side){.data = &x, .weights = p->a},
                               (frg_gw_side){.data = &y, .weights = p->b},
                               o->linear_weight > 0 ? &linear : NULL, o));
    return s;
}

static frg_gw *solve(frg_context *ctx, frgi_gw_place where, const problem *p, const frg_gw_opts *o)
{
    frg_gw *const s = open(ctx, where, p, o);
    if (s) {
        const frg_status status = frg_gw_run(s, NULL);
        const frg_gw_reason reason = frg_gw_get(s)->reason;
        const bool judged = reason == FRG_GW_BEATEN || reason == FRG_GW_NOT_CONFIRMED;
        CHECK_SAYS(status == FRG_OK || judged, "%s: %s", frg_status_name(status), frg_message(ctx));
    }
    return s;
}

static void read_plan(frg_context *ctx, const frg_gw *s, double *plan)
{
    CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, N, frg_matrix(plan, FRG_F64, N, M, M)));
}

/** The pairs drawn from the last plan. */
static void compare_pairs(frg_context *ctx, const frg_gw *here, const frg_gw *there)
{
    int64_t other = 0;
    CHECK_INT(there->level.sampled.drawn, here->level.sampled.drawn);
    for (int64_t r = 0; r < here->level.sampled.drawn; r++) {
        const frgi_pair one = here->level.sampled.lagged[0][r],
                        two = there->level.sampled.lagged[0][r];
        CHECK_INT(two.i, one.i);
        other += one.j != two.j;
    }
    (void)ctx;
    CHECK_INT(other, 0);
}

/** sum_ijkl (C_ik - D_jl)^2 P_ij P_kl */
static double energy_of(const problem *p, const double *plan)
{
    double energy = 0;
    for (int64_t i = 0; i < N; i++) {
        for (int64_t k = 0; k < N; k++) {
            const double c = p->cx[i * N + k];
            for (int64_t j = 0; j < M; j++) {
                const double *const d = p->cy + j * M, *const row = plan + k * M;
                double sum = 0;
                for (int64_t l = 0; l < M; l++)
                    sum += (c - d[l]) * (c - d[l]) * row[l];
                energy += plan[i * M + j] * sum;
            }
        }
    }
    return energy;
}

/** What the plans of two costs differ by at most, relative to their mass. */
static double gap_allowed(const frg_gw_opts *o, double epsilon)
{
    if (o->mode == FRG_GW_LANDMARK) {
        const bool points = o->distance == FRG_GW_DISTANCE_EUCLIDEAN;
        const double wide = (double)(points ? D : o->landmarks) + 2;
        double averaged = 0, last = 0;
        for (int64_t step = 0; step < o->max_iter; step++) {
            last = (exp(4 * (64 * (wide + 3) * 0x1p-24 + averaged) / epsilon) - 1) / 2;
            averaged += o->damping * (last - averaged);
        }
        return last;
    }
    const double once = 8.1e-5 * 0.05 / epsilon, rho = fmin(o->rho_source, o->rho_target);
    double d = o->scale == FRG_GW_SCALE_BATCH_MAX ? 2 * once : once, averaged = 0;
    for (int64_t step = 1; step < o->max_iter && o->diag_exact; step++) {
        averaged += o->damping * ((exp(2 * 3 * (double)step * d) - 1) / 2 - averaged);
        d = once + 8 * averaged / epsilon;
    }
    return (exp((isinf(rho) ? 4 : 2 + 4 * rho / epsilon) * d) - 1) / 2;
}

/** The verdict of a device is the host's: plans that are nearly the same are judged alike, by the
 *  same starts or steps, and the numbers that it comes from differ by as much as plans may. */
static void compare_verdicts(const frg_gw_report *here, const frg_gw_report *there, double allowed)
{
    CHECK_TEXT(there->verdict, here->verdict);
    CHECK_INT(there->reason, here->reason);
    CHECK_INT(there->verdict_points, here->verdict_points);
    const double of_h[] = {here->sharpened_energy, here->blur, here->other_energy, here->step_gain},
                 of_d[] = {there->sharpened_energy, there->blur, there->other_energy,
                           there->step_gain};
    for (size_t q = 0; q < sizeof of_h / sizeof *of_h; q++) {
        CHECK_INT(isfinite(of_d[q]), isfinite(of_h[q]));
        if (isfinite(of_h[q]))
            CHECK_NEAR(of_d[q], of_h[q], allowed);
    }
}

/** Marginals that do not hold, or not those of all mass: the host's and a device's plan from the
 *  same pairs, and what it says of the plan. */
static void compare_open(frg_context *ctx, frgi_gw_place where, const problem *p,
                         const frg_gw_opts *o)
{
    static double here[N * M], there[N * M];
    frg_gw *h = solve(ctx, (frgi_gw_place){.dev = NULL}, p, o), *d = solve(ctx, where, p, o);
    if (!h || !d)
        return;
    compare_pairs(ctx, h, d);
    read_plan(ctx, h, here);
    read_plan(ctx, d, there);
    double gap = 0, mass = 0, off = 0;
    for (int64_t i = 0; i < N; i++) {
        double sum = 0;
        for (int64_t j = 0; j < M; j++) {
            gap += fabs(here[i * M + j] - there[i * M + j]) / 2;
            sum += there[i * M + j];
        }
        off += fabs(sum - p->a[i]);
        mass += sum;
    }
    const frg_gw_report *const of_h = frg_gw_get(h), *const of_d = frg_gw_get(d);
    const double allowed = gap_allowed(o, of_h->epsilon_end) * mass;
    CHECK_SAYS(gap <= allowed, "plans differ by %.3g > %.3g", gap, allowed);
    /* E = <L(P), P> and L is linear, no entry above the square of a distance times the mass */
    CHECK_NEAR(of_d->energy, energy_of(p, there), 1e-5 * SQUARE * mass * mass);
    CHECK_NEAR(of_d->energy, of_h->energy, 4 * allowed * SQUARE * mass);
    CHECK_NEAR(of_d->epsilon_end, of_h->epsilon_end, 1e-15);
    CHECK_INT(of_d->outer_iterations, of_h->outer_iterations);
    compare_verdicts(of_h, of_d, 4 * allowed * SQUARE);
    const frg_plan_report plan = frg_plan_get(frg_gw_plan(d));
    CHECK_NEAR(plan.mass, mass, 1e-12);
    CHECK_NEAR(plan.source_error, off, 1e-12);
    if (o->mass > 0)
        CHECK_NEAR(plan.mass, o->mass, 1e-12);
    frg_gw_destroy(h);
    frg_gw_destroy(d);
}

static void open_marginals_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    problem p = make();
    frg_gw_opts o = options();
    o.polish_tol = 1e-8; /* of a step of the potentials */
    o.rho_source = 0.3;
    compare_open(ctx, where, &p, &o);
    o.rho_target = 0.1;
    o.sampling = FRG_GW_MULTINOMIAL;
    compare_open(ctx, where, &p, &o);
    o.rho_source = (double)INFINITY;
    o.reference = FRG_GW_REFERENCE_PRODUCT;
    o.linear_weight = 0.3;
    compare_open(ctx, where, &p, &o);
    o = options();
    o.mass = 0.6;
    compare_open(ctx, where, &p, &o);
    o.anneal = FRG_GW_ANNEAL_ITER; /* each step at another epsilon, the last at a tenth */
    o.epsilon = 0.5;
    compare_open(ctx, where, &p, &o);
    o.mass = 0;
    o.rho_source = o.rho_target = 0.2;
    compare_open(ctx, where, &p, &o);
    release(&p);
}

static void open_marginals(void)
{
    on_host(open_marginals_on);
}

static void open_marginals_opencl(void)
{
    on_opencl(open_marginals_on);
}

/** The host's and a device's plan from the same pairs. */
static void compare(frg_context *ctx, frgi_gw_place where, const problem *p, const frg_gw_opts *o)
{
    static double here[N * M], there[N * M];
    frg_gw *h = solve(ctx, (frgi_gw_place){.dev = NULL}, p, o), *d = solve(ctx, where, p, o);
    if (!h || !d)
        return;
    if (o->mode == FRG_GW_SAMPLED)
        compare_pairs(ctx, h, d);
    read_plan(ctx, h, here);
    read_plan(ctx, d, there);
    double gap = 0, far = 0, row_error = 0;
    for (int64_t i = 0; i < N; i++) {
        double sum = 0;
        for (int64_t j = 0; j < M; j++) {
            gap += fabs(here[i * M + j] - there[i * M + j]) / 2;
            far += fabs(here[i * M + j] - p->a[i] * p->b[j]) / 2;
            sum += there[i * M + j];
        }
        row_error = fmax(row_error, fabs(sum - p->a[i]));
    }
    const double allowed = gap_allowed(o, o->epsilon);
    CHECK_SAYS(gap <= allowed, "plans differ by %.3g > %.3g", gap, allowed);
    CHECK_SAYS(far > 5 * allowed, "the plan is %.3g from the product", far);
    CHECK(row_error < 1e-13);
    double f[2][N], g[2][M];
    CHECK_OK(ctx, frg_gw_potentials(h, f[0], g[0]));
    CHECK_OK(ctx, frg_gw_potentials(d, f[1], g[1]));
    for (int64_t i = 1; i < N; i++) { /* the constant between them is free */
        const double one = f[0][i] + g[0][i], other = f[1][i] + g[1][i];
        if (p->a[i] > 0 && p->b[i] > 0)
            CHECK_NEAR(other, one, 4 * 8.1e-5 * o->epsilon + 1e-5);
    }
    const frg_gw_report *const of_h = frg_gw_get(h), *const of_d = frg_gw_get(d);
    const double most = (double)fmaxf(h->x.most, h->y.most), square = most * most;
    CHECK_NEAR(of_d->energy, of_h->energy, 4 * allowed * square);
    if (isfinite(of_d->energy_product))
        CHECK_NEAR(of_d->energy_product, of_h->energy_product, 1e-6 * square);
    if (o->scale == FRG_GW_SCALE_BATCH_MAX) /* whose unit changes by the step */
        CHECK(isnan(of_d->objective) && isnan(of_h->objective));
    else
        CHECK_NEAR(of_d->objective, of_h->objective, 0.01);
    CHECK_INT(of_d->outer_iterations, of_h->outer_iterations);
    compare_verdicts(of_h, of_d, 4 * allowed * square);
    const frg_plan_report plan = frg_plan_get(frg_gw_plan(d));
    CHECK(plan.target_before < 1e-8);
    CHECK(plan.source_error < 1e-13);
    CHECK(plan.target_error < 1e-13);
    frg_gw_destroy(h);
    frg_gw_destroy(d);
}

static void parity_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    problem p = make();
    frg_gw_opts o = options();
    compare(ctx, where, &p, &o);
    o.distance = FRG_GW_DISTANCE_MATRIX;
    o.sampling = FRG_GW_MULTINOMIAL;
    compare(ctx, where, &p, &o);
    frg_gw_opts exact = options();
    exact.mode = FRG_GW_EXACT;
    exact.anchors = 80; /* the default, of which this mode has none */
    exact.max_inner = 20;
    compare(ctx, where, &p, &exact);
    frg_gw_opts landmark = landmark_options();
    compare(ctx, where, &p, &landmark);
    landmark.linear_weight = exact.linear_weight = o.linear_weight = 0.3;
    compare(ctx, where, &p, &landmark);
    compare(ctx, where, &p, &exact);
    compare(ctx, where, &p, &o);
    o.linear_weight = 0;
    const double a = p.a[3], b = p.b[7]; /* points without weight */
    p.a[4] += a;
    p.a[3] = 0;
    p.b[8] += b;
    p.b[7] = 0;
    compare(ctx, where, &p, &o);
    release(&p);
}

/** The plan of these options is another one than that of the others, by ten times what two plans of
 *  the same costs may differ. */
static void check_other(frg_context *ctx, frgi_gw_place where, const problem *p,
                        const frg_gw_opts *one, const frg_gw_opts *other)
{
    static double plans[2][N * M];
    frg_gw *s[2] = {solve(ctx, where, p, one), solve(ctx, where, p, other)};
    double gap = 0;
    for (int q = 0; q < 2 && s[0] && s[1]; q++)
        read_plan(ctx, s[q], plans[q]);
    for (int64_t e = 0; e < N * M; e++)
        gap += fabs(plans[0][e] - plans[1][e]) / 2;
    const double least = 10 * gap_allowed(one, one->epsilon);
    CHECK_SAYS(gap > least, "plans differ by %.3g <= %.3g", gap, least);
    frg_gw_destroy(s[0]);
    frg_gw_destroy(s[1]);
}

/** Distances divided by the largest of a step; the averaged plan, kept; terms of its marginals. */
enum { DIVIDED, KEPT, TERMS, KEPT_OPTIONS };

/** usual: the same without that option. */
static frg_gw_opts kept_options(int which, bool usual)
{
    frg_gw_opts o = options();
    o.damping = 0.4;
    if (which == TERMS) {
        o.mass = 0.6;
        o.epsilon = 0.5;
        o.max_iter = o.min_iter = 2;
        o.polish_tol = 1e-8;
    }
    o.scale = which == DIVIDED && !usual ? FRG_GW_SCALE_BATCH_MAX : o.scale;
    o.store_plan = which == KEPT && !usual;
    o.diag_exact = which == TERMS && !usual;
    return o;
}

static void kept_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    problem p = make();
    frg_gw_opts o = kept_options(DIVIDED, false);
    compare(ctx, where, &p, &o);
    o.rho_source = 0.3;
    o.polish_tol = 1e-8; /* of a step of the potentials */
    compare_open(ctx, where, &p, &o);
    o = kept_options(KEPT, false);
    compare(ctx, where, &p, &o);
    o.sampling = FRG_GW_MULTINOMIAL;
    o.linear_weight = 0.3;
    compare(ctx, where, &p, &o);
    o = kept_options(TERMS, false);
    o.store_plan = 1;
    compare_open(ctx, where, &p, &o);
    o.mass = 0;
    o.store_plan = 0;
    o.rho_source = o.rho_target = 0.2;
    compare_open(ctx, where, &p, &o);
    release(&p);
}

static void kept(void)
{
    on_host(kept_on);
}

static void kept_opencl(void)
{
    on_opencl(kept_on);
}

static void kept_matters_on(frg_context *ctx, frgi_device *dev, int group)
{
    problem p = make();
    for (int which = 0; which < KEPT_OPTIONS; which++) {
        const frg_gw_opts one = kept_options(which, false), other = kept_options(which, true);
        check_other(ctx, (frgi_gw_place){.dev = dev, .group = group}, &p, &one, &other);
    }
    release(&p);
}

static void kept_matters(void)
{
    on_host(kept_matters_on);
}

/** Distances of other kinds; both have the same lengths of paths (test `paths`), coordinates of few
 *  landmarks as those of points. */
static void kinds_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const struct {
        frg_gw_distance distance;
        frg_gw_landmark_metric metric;
        frg_gw_mode mode;
    } kinds[] = {{FRG_GW_DISTANCE_PRECOMPUTED, FRG_GW_LANDMARK_L2, FRG_GW_SAMPLED},
                 {FRG_GW_DISTANCE_PRECOMPUTED, FRG_GW_LANDMARK_L2, FRG_GW_EXACT},
                 {FRG_GW_DISTANCE_DIJKSTRA, FRG_GW_LANDMARK_L2, FRG_GW_SAMPLED},
                 {FRG_GW_DISTANCE_LANDMARK, FRG_GW_LANDMARK_L2, FRG_GW_SAMPLED},
                 {FRG_GW_DISTANCE_LANDMARK, FRG_GW_LANDMARK_L2, FRG_GW_LANDMARK},
                 {FRG_GW_DISTANCE_LANDMARK, FRG_GW_LANDMARK_LOWER, FRG_GW_SAMPLED},
                 {FRG_GW_DISTANCE_LANDMARK, FRG_GW_LANDMARK_MID, FRG_GW_SAMPLED},
                 {FRG_GW_DISTANCE_LANDMARK, FRG_GW_LANDMARK_UPPER, FRG_GW_SAMPLED}};
    const frgi_gw_place where = {.dev = dev, .group = group};
    problem p = make();
    for (size_t q = 0; q < sizeof kinds / sizeof *kinds; q++) {
        const bool sampled = kinds[q].mode == FRG_GW_SAMPLED;
        frg_gw_opts o = sampled ? options() : landmark_options();
        o.mode = kinds[q].mode;
        o.distance = kinds[q].distance;
        o.landmark_metric = kinds[q].metric;
        o.landmarks = 4;
        o.k = 5;
        o.epsilon = o.mode == FRG_GW_LANDMARK ? 0.5 : 0.2;
        compare(ctx, where, &p, &o);
    }
    release(&p);
}

static void kinds(void)
{
    on_host(kinds_on);
}

static void kinds_opencl(void)
{
    on_opencl(kinds_on);
}

/** Lengths of paths between all nodes: the bits of the host's search, whose every path is a sum
 *  from its source on too, and by Floyd and Warshall in double, off by a rounding for each of at most
 *  n arcs. */
static void check_paths(frg_context *ctx, frgi_device *dev, int group, frg_graph *graph)
{
    const int64_t n = frg_graph_get(graph).n;
    frg_gw_opts o = options();
    o.distance = FRG_GW_DISTANCE_PRECOMPUTED;
    const frg_gw_side side = {.graph = graph};
    frgi_distances here, there;
    CHECK_OK(ctx, frgi_distances_open(&here, ctx, &side, &o, "source"));
    CHECK_OK(ctx, frgi_distances_open_for(&there, ctx, dev, group, &side, &o, "source"));
    CHECK_BITS(here.dense, there.dense, (size_t)(n * n) * sizeof *here.dense);
    double *const all = malloc((size_t)(n * n) * sizeof *all);
    const int64_t *starts;
    const int32_t *targets;
    const float *lengths;
    frg_graph_arcs(graph, &starts, &targets, &lengths);
    for (int64_t e = 0; e < n * n; e++)
        all[e] = e / n == e % n ? 0 : (double)INFINITY;
    for (int64_t v = 0; v < n; v++)
        for (int64_t e = starts[v]; e < starts[v + 1]; e++)
            all[v * n + targets[e]] = (double)lengths[e];
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                all[i * n + j] = fmin(all[i * n + j], all[i * n + k] + all[k * n + j]);
    double worst = 0;
    for (int64_t e = 0; e < n * n; e++) {
        CHECK(isinf(all[e]) == isinf((double)there.dense[e]));
        if (isfinite(all[e]) && all[e] > 0)
            worst = fmax(worst, fabs((double)there.dense[e] / all[e] - 1));
    }
    CHECK_SAYS(worst <= (double)n * 0x1p-24, "lengths are off by %.3g", worst);
    frgi_distances_close(&here);
    frgi_distances_close(&there);
    free(all);
}

static void paths_on(frg_context *ctx, frgi_device *dev, int group)
{
    enum { NODES = 60, LINE = 41 };
    frg_graph_opts g;
    frg_graph *graph = NULL;
    double points[NODES * D];
    frg_graph_defaults(&g, sizeof g);
    g.k = 3;
    for (int parts = 0; parts < 2; parts++) { /* of neighbours, in one part and in several */
        for (int64_t i = 0; i < NODES * D; i++)
            points[i] = test_uniform() + (parts ? 10.0 * (double)(i / D % 3) : 0);
        g.stitch = !parts;
        CHECK_OK(ctx, frg_graph_knn(&graph, ctx, frg_matrix(points, FRG_F64, NODES, D, D), &g));
        CHECK((frg_graph_get(graph).components > 1) == parts);
        check_paths(ctx, dev, group, graph);
        frg_graph_destroy(graph);
    }
    int64_t starts[LINE + 1],
        targets[LINE]; /* a line, whose ends are far apart, and a node alone */
    double lengths[LINE];
    for (int64_t v = 0; v < LINE; v++) {
        starts[v] = v < LINE - 2 ? v : LINE - 2;
        targets[v] = v + 1;
        lengths[v] = 1 + 0.01 * (double)v;
    }
    starts[LINE] = LINE - 2;
    const frg_array weights = frg_vector(lengths, FRG_F64, LINE - 2);
    CHECK_OK(ctx, frg_graph_csr(&graph, ctx, frg_vector(starts, FRG_I64, LINE + 1),
                                frg_vector(targets, FRG_I64, LINE - 2), &weights, 0));
    check_paths(ctx, dev, group, graph);
    frg_graph_destroy(graph);
}

static void paths(void)
{
    on_host(paths_on);
}

static void paths_opencl(void)
{
    on_opencl(paths_on);
}

static void parity(void)
{
    on_host(parity_on);
}

static void parity_opencl(void)
{
    on_opencl(parity_on);
}

/** Everything that a run of the defaults has: several starts, local distributions, annealing, the
 *  average over the steps, tests for an end, the polish.  A draw that falls to the other side of a
 *  rounding leads to another minimum, as another seed does, so that the host's energy says nothing
 *  of the device's: that it says is its plan's, and below the product's. */
static void whole_on(frg_context *ctx, frgi_device *dev, int group)
{
    static double plan[N * M];
    problem p = make();
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
    o.max_iter = 60;
    frg_gw *const s = open(ctx, (frgi_gw_place){.dev = dev, .group = group}, &p, &o);
    if (s) {
        const frg_status status = frg_gw_run(s, NULL);
        CHECK(status == FRG_OK || status == FRG_MAX_ITER || status == FRG_STALLED);
        const frg_gw_report *const r = frg_gw_get(s);
        read_plan(ctx, s, plan);
        CHECK_NEAR(r->energy, energy_of(&p, plan), 1e-5 * r->energy_product);
        CHECK_SAYS(r->energy < r->energy_product, "energy %g, of the product %g", r->energy,
                   r->energy_product);
        CHECK_SAYS(strncmp(r->verdict, "not compared", 12) != 0, "%s", r->verdict);
        CHECK(frg_plan_get(frg_gw_plan(s)).target_error < 1e-13);
    }
    frg_gw_destroy(s);
    release(&p);
}

static void whole(void)
{
    on_host(whole_on);
}

static void whole_opencl(void)
{
    on_opencl(whole_on);
}

/** The mode vertex, which auto takes, with costs from there: of the same vertex the energy, a sum
 *  over the list, is the host's, and floats end at another one at most where energies are within
 *  their rounding, some 1e-7 of the constant. */
static void vertex_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place places[] = {{.dev = NULL}, {.dev = dev, .group = group}};
    static const struct {
        frg_gw_dtype dtype;
        double linear, far;
        bool square; /* as many points on both sides, of equal weights: assignments */
    } of[] = {{FRG_GW_DTYPE_AUTO, 0, 1e-12, false},
              {FRG_GW_DTYPE_F32, 0, 2e-6, true},
              {FRG_GW_DTYPE_F32, 0.3, 2e-6, false}};
    problem p = make();
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        double energy[2] = {0}, objective[2] = {0}, product = 0;
        for (int q = 0; q < 2; q++) {
            const int64_t m = of[k].square ? N : M;
            const frg_array x = frg_matrix(p.x, FRG_F64, N, D, D),
                            y = frg_matrix(p.y, FRG_F64, m, D, D),
                            linear = frg_matrix(p.linear, FRG_F64, N, m, M);
            frg_gw_opts o;
            frg_gw *s = NULL;
            frg_gw_defaults(&o, sizeof o);
            o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
            o.dtype = of[k].dtype;
            o.linear_weight = of[k].linear;
            CHECK_OK(ctx,
                     frgi_gw_open(&s, ctx, places[q],
                                  (frg_gw_side){.data = &x, .weights = of[k].square ? NULL : p.a},
                                  (frg_gw_side){.data = &y, .weights = of[k].square ? NULL : p.b},
                                  of[k].linear > 0 ? &linear : NULL, &o));
            if (s) {
                frg_info info;
                *frgi_device_counted(dev) = (frgi_device_counts){0};
                const frg_status status = frg_gw_run(s, &info);
                CHECK(status == FRG_OK || status == FRG_MAX_ITER);
                CHECK_INT(frg_gw_get(s)->mode, FRG_GW_VERTEX);
                CHECK_TEXT(info.device_name, q ? frgi_device_name(dev) : "cpu");
                CHECK((frgi_device_counted(dev)->launches > 0) == (q > 0));
                energy[q] = frg_gw_get(s)->energy;
                product = frg_gw_get(s)->energy_product;
                CHECK_SAYS(of[k].linear > 0 || energy[q] < 0.5 * product,
                           "energy %g, of the product %g", energy[q], product);
                objective[q] = frg_gw_get(s)->objective;
            }
            frg_gw_destroy(s);
        }
        CHECK_NEAR(energy[1], energy[0], of[k].far * product);
        CHECK_NEAR(objective[1], objective[0], of[k].far * product);
    }
    release(&p);
}

/** Two spaces of floats or doubles, their points equally heavy, on a device. */
static frgi_spaces spaces_of(frg_context *ctx, frgi_gw_place where, int64_t n, int64_t m,
                             bool single)
{
    frgi_spaces s = {
        .ctx = ctx, .n = n, .m = m, .single = single, .dev = where.dev, .group = where.group};
    CHECK_OK(ctx, frgi_costs_open(&s.x, ctx, n, n, single, "distances"));
    CHECK_OK(ctx, frgi_costs_open(&s.y, ctx, m, m, single, "distances"));
    for (int second = 0; second < 2; second++) {
        frgi_costs *const c = second ? &s.y : &s.x;
        for (int64_t i = 0; i < c->rows; i++)
            for (int64_t k = 0; k <= i; k++) {
                const double x = test_uniform();
                frgi_costs_put(c, i, k, x);
                frgi_costs_put(c, k, i, x);
            }
    }
    s.a = malloc((size_t)(n + m) * sizeof *s.a);
    s.b = s.a + n;
    for (int64_t i = 0; i < n + m; i++)
        s.a[i] = 1 / (double)(i < n ? n : m);
    frgi_spaces_finish(&s);
    return s;
}

/** Costs of a list, several entries to a row or column of the fewer points, on a device: the plain
 *  sum -2 sum_e m_e C_ie D_je of `count` terms of mass 1 / count, each below 2 m_e, added twice, in
 *  a product and to what is there. */
static void costs_of_list(frg_context *ctx, frgi_gw_place where, int64_t n, int64_t m, bool single)
{
    frgi_spaces s = spaces_of(ctx, where, n, m, single);
    frgi_descent d;
    graph_tasks tasks = {0};
    const int64_t count = n + m - 1;
    const double bound = 4 * ((double)count + 4) * (single ? 0x1p-24 : 0x1p-53);
    if (CHECK_OK(ctx, frgi_descent_open(&d, &s, 2))) {
        d.tasks = &tasks;
        for (int64_t e = 0; e < count; e++)
            d.plan.entries[e] =
                (frgi_entry){(int32_t)(e * n / count), (int32_t)(e * 7 % m), 1 / (double)count};
        d.plan.count = count;
        const int64_t launches = frgi_device_counted(where.dev)->launches,
                      waits = frgi_device_counted(where.dev)->waits, fewer = m < n ? m : n;
        frgi_descent_costs(&d, &d.plan, 1, &d.k_plan);
        /* rows of either side and their product, 256 at once; one wait */
        CHECK_INT(frgi_device_counted(where.dev)->launches - launches, 3 * ((fewer + 255) / 256));
        CHECK_INT(frgi_device_counted(where.dev)->waits - waits, 1);
        CHECK_INT(tasks.status, FRG_OK);
        const int64_t step = n > 100 ? 37 : 1; /* of many some rows */
        for (int64_t i = 0; i < n; i += step)
            for (int64_t j = 0; j < m; j++) {
                double sum = 0;
                for (int64_t e = 0; e < count; e++)
                    sum -= 2 * d.plan.entries[e].mass *
                           frgi_costs_get(&s.x, i, d.plan.entries[e].i) *
                           frgi_costs_get(&s.y, d.plan.entries[e].j, j);
                CHECK_NEAR(frgi_costs_get(&d.k_plan, i, j), sum, bound);
            }
    }
    frgi_descent_close(&d);
    frgi_costs_close(&s.x, ctx);
    frgi_costs_close(&s.y, ctx);
    free(s.a);
}

static void costs_of_lists_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    costs_of_list(ctx, where, 70, 90, false);
    costs_of_list(ctx, where, 90, 66, true);
    costs_of_list(ctx, where, 300, 290, true);
}

static void costs_of_lists(void)
{
    on_host(costs_of_lists_on);
}

static void costs_of_lists_opencl(void)
{
    on_opencl(costs_of_lists_on);
}

static void vertex(void)
{
    on_host(vertex_on);
}

static void vertex_opencl(void)
{
    on_opencl(vertex_on);
}

/** What a step launches, copies and waits for is that of the model: `launches` beside the passes,
 *  `bytes` for each pair that is drawn. */
static void count_steps(frg_context *ctx, frgi_gw_place where, const problem *p, frg_gw_opts o,
                        int64_t launches, int64_t bytes)
{
    enum { MORE = 4 };
    const bool draws = o.mode == FRG_GW_SAMPLED;
    const int64_t passes = draws ? 3 : o.max_inner;
    frgi_device_counts at[2];
    int64_t drawn = 0;
    for (int q = 0; q < 2; q++) {
        o.max_iter = o.min_iter = 6 + MORE * q;
        frg_gw *const s = open(ctx, where, p, &o);
        if (!s)
            return;
        frg_gw_reason reason;
        int64_t steps = 0;
        *frgi_device_counted(where.dev) = (frgi_device_counts){0};
        CHECK_OK(ctx, frgi_level_reset(&s->level, 0));
        CHECK_OK(ctx, draws ? frgi_level_loop(&s->level, s->o.max_iter, s->o.max_iter, false,
                                              &reason, &steps)
                            : frgi_exact_loop(&s->level, true, &reason, &steps));
        at[q] = *frgi_device_counted(where.dev);
        CHECK_INT(steps, o.max_iter);
        drawn = s->level.sampled.drawn;
        CHECK_INT(s->level.spent.passes, passes * o.max_iter);
        frg_gw_destroy(s);
    }
    CHECK_INT(at[1].launches - at[0].launches, MORE * (2 * passes + launches));
    CHECK_INT(at[1].waits - at[0].waits, MORE);
    /* where pairs are */
    CHECK_INT(at[1].bytes_in - at[0].bytes_in, draws ? MORE * (15 * 4 + drawn * bytes) : 0);
    CHECK(at[1].bytes_out - at[0].bytes_out <= MORE * 128); /* a state */
}

static void counts_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    problem p = make();
    frg_gw_opts o = options();
    /* rows of both sides, cost, new potentials, change, state, draw; rows and random numbers */
    count_steps(ctx, where, &p, o, 2 + 1 + 1 + 1 + 1 + 1, 4 + 8);
    o.linear_weight = 0.3;
    count_steps(ctx, where, &p, o, 2 + 1 + 1 + 1 + 1 + 1, 4 + 8);
    /* the terms of both sides, a draw of rows; a random number for the row */
    o.rho_source = 1;
    count_steps(ctx, where, &p, o, 2 + 2 + 1 + 1 + 1 + 1 + 2, 8 + 8);
    o.rho_source = (double)INFINITY;
    o.mass = 0.5; /* and the sum of the potentials' powers */
    count_steps(ctx, where, &p, o, 2 + 2 + 1 + 2 + 1 + 1 + 2, 8 + 8);
    /* the left factor, cost, new potentials, change, state; the image of the plan, its core */
    count_steps(ctx, where, &p, landmark_options(), 1 + 1 + 1 + 1 + 1 + 2, 0);
    release(&p);
}

static void counts(void)
{
    on_host(counts_on);
}

static void counts_opencl(void)
{
    on_opencl(counts_on);
}

/** The same bits from run to run, of one alignment and of two. */
static void check_bits(frg_context *ctx, frgi_gw_place where, const problem *of,
                       const frg_gw_opts *o)
{
    double f[3][N], g[3][M], energy[3];
    frg_gw *s = NULL;
    for (int q = 0; q < 3; q++) {
        if (q < 2) {
            frg_gw_destroy(s);
            s = solve(ctx, where, of, o);
        } else {
            CHECK_OK(ctx, frg_gw_run(s, NULL));
        }
        CHECK_OK(ctx, frg_gw_potentials(s, f[q], g[q]));
        energy[q] = frg_gw_get(s)->energy;
    }
    frg_gw_destroy(s);
    for (int q = 1; q < 3; q++) {
        CHECK_BITS(f[0], f[q], sizeof f[0]);
        CHECK_BITS(g[0], g[q], sizeof g[0]);
        CHECK_BITS(&energy[0], &energy[q], sizeof energy[0]);
    }
}

static void bits_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    problem p = make();
    frg_gw_opts o = options();
    check_bits(ctx, where, &p, &o);
    o.linear_weight = 0.3;
    o.mass = 0.5;
    check_bits(ctx, where, &p, &o);
    o = landmark_options();
    check_bits(ctx, where, &p, &o);
    release(&p);
}

static void bits(void)
{
    on_host(bits_on);
}

static void bits_opencl(void)
{
    on_opencl(bits_on);
}

/** Starts that are given: a plan, potentials of a few epsilon, beyond which the host's exponents
 *  are too rough for the same draws, the plan of the mode vertex. */
static void starts_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place places[] = {{.dev = NULL}, {.dev = dev, .group = group}};
    static double plan[N * M], out[2][N * M];
    problem p = make();
    frg_gw_opts o = options();
    double f[N], g[M];
    for (int64_t i = 0; i < N; i++)
        f[i] = 0.05 * p.x[i];
    for (int64_t j = 0; j < M; j++)
        g[j] = 0.05 * p.y[j];
    for (int64_t e = 0; e < N * M; e++)
        plan[e] = p.a[e / M] * p.b[e % M] * (1 + (e / M == e % M ? 30 : 0));
    for (int form = 0; form < 3; form++) {
        o.start_from = form == 2 ? FRG_GW_START_VERTEX : FRG_GW_START_PRODUCT;
        for (int q = 0; q < 2; q++) {
            frg_gw *const s = open(ctx, places[q], &p, &o);
            if (!s)
                return;
            if (form == 0)
                CHECK_OK(ctx, frg_gw_start_plan(s, frg_matrix(plan, FRG_F64, N, M, M)));
            else if (form == 1)
                CHECK_OK(ctx, frg_gw_start_potentials(s, f, g));
            const frg_status status = frg_gw_run(s, NULL);
            CHECK(status == FRG_OK || frg_gw_get(s)->reason == FRG_GW_BEATEN);
            read_plan(ctx, s, out[q]);
            frg_gw_destroy(s);
        }
        double gap = 0;
        for (int64_t e = 0; e < N * M; e++)
            gap += fabs(out[0][e] - out[1][e]) / 2;
        CHECK_SAYS(gap <= 1.8e-4, "plans differ by %.3g", gap);
    }
    release(&p);
}

static void starts(void)
{
    on_host(starts_on);
}

/** Without passes at the end the plan is that of the last step, its rows exact: of potentials of the
 *  same passes, floats there and doubles on the host, whose exponents differ by the 8.1e-5 of the
 *  costs, twice a pass, each within the row or column. */
static void unpolished_on(frg_context *ctx, frgi_device *dev, int group)
{
    static double here[N * M], there[N * M];
    problem p = make();
    frg_gw_opts o = options();
    o.polish = o.round = 0;
    frg_gw *h = solve(ctx, (frgi_gw_place){.dev = NULL}, &p, &o),
           *d = solve(ctx, (frgi_gw_place){.dev = dev, .group = group}, &p, &o);
    if (h && d) {
        read_plan(ctx, h, here);
        read_plan(ctx, d, there);
        double gap = 0, far = 0;
        for (int64_t e = 0; e < N * M; e++) {
            gap += fabs(here[e] - there[e]) / 2;
            far += fabs(here[e] - p.a[e / M] * p.b[e % M]) / 2;
        }
        const double allowed = (exp(2 * 3 * (double)o.max_iter * 8.1e-5) - 1) / 2;
        CHECK_SAYS(gap <= allowed, "plans differ by %.3g > %.3g", gap, allowed);
        CHECK_SAYS(far > 10 * allowed, "the plan is %.3g from the product", far);
    }
    frg_gw_destroy(h);
    frg_gw_destroy(d);
    release(&p);
}

static void unpolished(void)
{
    on_host(unpolished_on);
}

/** So many that the energy is estimated from pairs, with the mean distances taken off, and so many
 *  pairs a step that those of a set end anywhere in memory: the estimate is within five standard
 *  errors of the energy of the plan. */
static void many_points_on(frg_context *ctx, frgi_device *dev, int group)
{
    enum { POINTS = 1010 };
    double *const x = malloc(POINTS * D * sizeof *x), *const y = malloc(POINTS * D * sizeof *y),
                  *const plan = malloc((size_t)POINTS * POINTS * sizeof *plan),
                  *const cx = malloc((size_t)POINTS * POINTS * sizeof *cx),
                  *const cy = malloc((size_t)POINTS * POINTS * sizeof *cy);
    for (int64_t i = 0; i < POINTS * D; i++)
        y[i] = (x[i] = test_uniform() * (double)(1 + i % D)) + 0.1 * test_uniform();
    const frg_array source = frg_matrix(x, FRG_F64, POINTS, D, D),
                    target = frg_matrix(y, FRG_F64, POINTS, D, D);
    frg_gw_opts o = options();
    frg_gw *s = NULL;
    o.anchors = 257;
    o.max_iter = o.min_iter = 2;
    o.polish_passes = 10;
    CHECK_OK(ctx, frgi_gw_open(&s, ctx, (frgi_gw_place){.dev = dev, .group = group},
                               (frg_gw_side){.data = &source}, (frg_gw_side){.data = &target}, NULL,
                               &o));
    if (s && CHECK_OK(ctx, frg_gw_run(s, NULL))) {
        const frg_gw_report *const r = frg_gw_get(s);
        double energy = 0;
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, POINTS,
                                    frg_matrix(plan, FRG_F64, POINTS, POINTS, POINTS)));
        CHECK(r->energy_standard_error > 0);
        distances_of(x, POINTS, cx);
        distances_of(y, POINTS, cy);
        CHECK_OK(ctx, frg_gw_energy(ctx, frg_matrix(cx, FRG_F64, POINTS, POINTS, POINTS),
                                    frg_matrix(cy, FRG_F64, POINTS, POINTS, POINTS),
                                    frg_matrix(plan, FRG_F64, POINTS, POINTS, POINTS), &energy));
        CHECK_SAYS(fabs(r->energy - energy) <= 5 * r->energy_standard_error,
                   "energy %g, estimated %g +- %g", energy, r->energy, r->energy_standard_error);
    }
    frg_gw_destroy(s);
    free(x);
    free(y);
    free(plan);
    free(cx);
    free(cy);
}

static void many_points(void)
{
    on_host(many_points_on);
}

static void many_points_opencl(void)
{
    on_opencl(many_points_on);
}

static void refused_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    problem p = make();
    static const char *const says[] = {"cost_store fly", "auto_store"};
    enum { COUNT = sizeof says / sizeof *says };
    frg_gw_opts o[COUNT];
    for (int q = 0; q < COUNT; q++) {
        frg_gw_defaults(&o[q], sizeof o[q]);
        o[q].mode = FRG_GW_SAMPLED;
        o[q].distance = FRG_GW_DISTANCE_EUCLIDEAN;
    }
    o[0].cost_store = FRG_GW_STORE_FLY;
    o[1].auto_store = 1;
    for (int q = 0; q < COUNT; q++) {
        frg_gw *s = (frg_gw *)ctx;
        const frg_array x = frg_matrix(p.x, FRG_F64, N, D, D),
                        y = frg_matrix(p.y, FRG_F64, M, D, D);
        CHECK_STATUS(frgi_gw_open(&s, ctx, where, (frg_gw_side){.data = &x},
                                  (frg_gw_side){.data = &y}, NULL, &o[q]),
                     FRG_UNSUPPORTED);
        CHECK(!s);
        CHECK_SAYS(strstr(frg_message(ctx), says[q]) != NULL, "%s: %s", says[q], frg_message(ctx));
    }
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-013");
    release(&p);
}

static void refused(void)
{
    on_host(refused_on);
}

/** Groups of eight on few points, but several groups of every kernel: what tests/build/kernel_races.sh
 *  runs under a checker of races, which takes thousands of times as long.  The plan is that of groups
 *  of one, within the bound of two plans of nearly the same cost. */
static void small_groups_on(frg_context *ctx, frgi_device *dev, const problem *p, int form)
{
    enum { FEW_X = 18, FEW_Y = 68 };
    frgi_device *plain = NULL;
    frg_gw_opts o = options();
    o.max_iter = o.min_iter = 2;
    o.anchors = 5;
    o.k = 4;
    o.epsilon = 0.3; /* where the few passes at the end are enough */
    o.max_inner = 3;
    o.polish_passes = 12;
    if (form == 1) {
        o.mass = 0.6;
        o.linear_weight = 0.3;
        o.distance = FRG_GW_DISTANCE_PRECOMPUTED;
    } else if (form == 2) {
        o.mode = FRG_GW_EXACT;
        o.anchors = 80;
        o.distance = FRG_GW_DISTANCE_LANDMARK;
        o.landmark_metric = FRG_GW_LANDMARK_MID;
        o.landmarks = 3;
    } else if (form == 3) {
        o.mode = FRG_GW_LANDMARK;
        o.anchors = 80;
        o.epsilon = 0.5;
    } else if (form == 4) {
        o.scale = FRG_GW_SCALE_BATCH_MAX;
        o.store_plan = o.diag_exact = 1;
        o.mass = 0.6;
    }
    static double plans[2][FEW_X * FEW_Y];
    const frg_array x = frg_matrix(p->x, FRG_F64, FEW_X, D, D),
                    y = frg_matrix(p->y, FRG_F64, FEW_Y, D, D),
                    linear = frg_matrix(p->linear, FRG_F64, FEW_X, FEW_Y, M);
    CHECK_OK(ctx, frgi_device_open(&plain, ctx, (frg_device){FRG_CPU, 0}));
    for (int q = 0; q < 2; q++) {
        frg_gw *s = NULL;
        CHECK_OK(ctx, frgi_gw_open(&s, ctx, (frgi_gw_place){.dev = q ? dev : plain, .group = 8},
                                   (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y},
                                   o.linear_weight > 0 ? &linear : NULL, &o));
        if (s && CHECK_OK(ctx, frg_gw_run(s, NULL)))
            CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, FEW_X,
                                        frg_matrix(plans[q], FRG_F64, FEW_X, FEW_Y, FEW_Y)));
        frg_gw_destroy(s);
    }
    frgi_device_close(&plain);
    double gap = 0;
    for (int64_t e = 0; e < FEW_X * FEW_Y; e++)
        gap += fabs(plans[0][e] - plans[1][e]) / 2;
    CHECK_SAYS(gap <= gap_allowed(&o, o.epsilon), "form %d: plans differ by %.3g", form, gap);
}

static void small_groups(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    if (dev) {
        problem p = make();
        for (int form = 0; form < 5; form++)
            small_groups_on(ctx, dev, &p, form);
        costs_of_list(ctx, (frgi_gw_place){.dev = dev, .group = 8}, 18, 68, false);
        costs_of_list(ctx, (frgi_gw_place){.dev = dev, .group = 8}, 18, 17, true);
        release(&p);
        frgi_device_close(&dev);
    }
    frg_context_destroy(ctx);
}

/** A small alignment, of options that come into its own. */
typedef struct {
    const problem *p;
    bool open; /* marginals are partial, and there is a linear cost; the points' distances are
                * paths */
    frg_gw_mode mode;
} small_problem;

/** Options of the modes vertex and landmark, of points, with few steps. */
static frg_gw_opts other_mode(frg_gw_mode mode)
{
    frg_gw_opts o = landmark_options();
    o.polish_passes = 4;
    if (mode == FRG_GW_VERTEX) {
        frg_gw_defaults(&o, sizeof o);
        o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
        o.max_iter = 1;
    }
    return o;
}

/** A small alignment of points with a matrix on a device of its own. */
static frg_status small_on(frg_context *ctx, frg_device which, const small_problem *of, double g[9])
{
    const problem *const p = of->p;
    frgi_device *dev = NULL;
    frg_gw *s = NULL;
    frg_gw_opts o = options();
    const frg_array x = frg_matrix(p->x, FRG_F64, 8, D, D),
                    y = of->open ? frg_matrix(p->y, FRG_F64, 9, D, D)
                                 : frg_matrix(p->cy, FRG_F64, 9, 2, M),
                    linear = frg_matrix(p->linear, FRG_F64, 8, 9, M);
    o.max_iter = 2;
    o.polish_passes = 4; /* each of their launches fails once */
    o.mass = of->open ? 0.5 : 0;
    o.distance = of->open ? FRG_GW_DISTANCE_PRECOMPUTED : o.distance;
    o.k = 3;
    o.linear_weight = of->open ? 0.3 : 0;
    o = of->mode == FRG_GW_SAMPLED ? o : other_mode(of->mode);
    frg_status status = frgi_device_open(&dev, ctx, which);
    if (status >= 0)
        status = frgi_gw_open(&s, ctx, (frgi_gw_place){.dev = dev}, (frg_gw_side){.data = &x},
                              (frg_gw_side){.data = &y}, of->open ? &linear : NULL, &o);
    if (status >= 0)
        status = frg_gw_run(s, NULL);
    if (status >= 0 && of->mode == FRG_GW_VERTEX)
        g[0] = frg_gw_get(s)->energy;
    else if (status >= 0)
        status = frg_gw_potentials(s, NULL, g);
    frg_gw_destroy(s);
    frgi_device_close(&dev);
    return status;
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    double g[9];
    TRY(small_on(ctx, (frg_device){FRG_CPU, 0}, user, g));
    fault_hash(hash, g, sizeof g);
    return FRG_OK;
}

static frg_status small_body(frg_context *ctx, frg_device which, const void *user, double *out)
{
    return small_on(ctx, which, user, out);
}

/** Calls in the middle of a run of the mode vertex, whose steps cannot fail on the host, fail: the
 *  run says so, and makes no plan. */
static void some_calls_fail(const problem *p)
{
    const small_problem of = {p, false, FRG_GW_VERTEX};
    frg_context *ctx = test_context();
    double energy[9] = {0};
    driver->calls = 0;
    CHECK(small_body(ctx, cuda, &of, energy) >= 0); /* one step may not be enough */
    const int64_t calls = driver->calls;
    for (int64_t quarter = 1; quarter < 4; quarter++) {
        driver->calls = 0;
        driver->fail_at = quarter * calls / 4;
        driver->fail_with = 999;
        CHECK_STATUS(small_body(ctx, cuda, &of, energy), FRG_NO_DEVICE);
        CHECK_SAYS(strstr(frg_message(ctx), "cuda:0") != NULL, "%s", frg_message(ctx));
        check_clean("a call failed");
        driver->fail_at = 0;
    }
    frg_context_destroy(ctx);
}

/** Late, and with groups in random order. */
static void each_call_fails(void)
{
    double want[9], got[9];
    if (!with_driver())
        return;
    problem p = make();
    const small_problem of = {&p, true, FRG_GW_SAMPLED}; /* which has the more calls */
    fail_each_call(small_body, &of, 0, want, got, sizeof want);
    some_calls_fail(&p);
    release(&p);
}

static void faults(void)
{
    problem p = make();
    for (int open = 0; open < 2; open++) {
        small_problem of = {&p, open, FRG_GW_SAMPLED};
        fault_sweep("alignment on a device", body, &of, 1);
    }
    small_problem landmark = {&p, false, FRG_GW_LANDMARK};
    fault_sweep("landmarks on a device", body, &landmark, 1);
    release(&p);
}

/** The caller's distances on the device, in its queue, at two sizes of a group. */
static void in_place_opencl(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    const bool there = dev && frgi_device_is(dev)->f64;
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    if (there)
        align_in_place_on((frg_device){kind_asked(), 0}, false);
}

/** An alignment of distances there is made, and no more, in groups of 32: for the checker of races.  A row
 *  that comes over is (C + C') / 2 over the scale. */
static void opened_in_place(void)
{
    frg_context *own = test_context();
    frgi_device *dev = open_opencl(own);
    caller c;
    draw_alignment();
    if (dev && frgi_device_is(dev)->f64 && caller_open(&c, (frg_device){kind_asked(), 0})) {
        frg_context *ctx = caller_context(&c);
        align_arrays s = sides_here(false);
        move_sides(&c, &s);
        const frgi_gw_place where = {.dev = frgi_device_of(ctx), .group = 32};
        const frg_gw_opts o = few_steps(FRG_GW_SAMPLED);
        frg_gw *gw = NULL;
        float row[SIDE_X];
        if (CHECK_OK(ctx, open_alignment(&gw, ctx, where, &s, &o)))
            CHECK_OK(ctx, frgi_distances_rows(&gw->x, &(int32_t){7}, 1, row, SIDE_X));
        for (int i = 0; gw && i < SIDE_X; i++)
            CHECK(row[i] == (float)align_in.x[7 * SIDE_TALL + i] / 4);
        frg_gw_destroy(gw);
        frg_context_destroy(ctx);
        free_sides(&c, &s);
        caller_close(&c);
    }
    frgi_device_close(&dev);
    frg_context_destroy(own);
}

static const test_case cases[] = {{"parity", parity},
                                  {"parity on OpenCL", parity_opencl},
                                  {"what is kept of the plan", kept},
                                  {"what is kept of the plan, on OpenCL", kept_opencl},
                                  {"what is kept matters", kept_matters},
                                  {"paths", paths},
                                  {"paths on OpenCL", paths_opencl},
                                  {"other distances", kinds},
                                  {"other distances on OpenCL", kinds_opencl},
                                  {"marginals that do not hold", open_marginals},
                                  {"marginals that do not hold, on OpenCL", open_marginals_opencl},
                                  {"the plan without passes at the end", unpolished},
                                  {"many points", many_points},
                                  {"many points on OpenCL", many_points_opencl},
                                  {"whole", whole},
                                  {"whole on OpenCL", whole_opencl},
                                  {"costs of lists", costs_of_lists},
                                  {"costs of lists on OpenCL", costs_of_lists_opencl},
                                  {"vertex", vertex},
                                  {"vertex on OpenCL", vertex_opencl},
                                  {"counts", counts},
                                  {"counts on OpenCL", counts_opencl},
                                  {"bits", bits},
                                  {"bits on OpenCL", bits_opencl},
                                  {"small groups on OpenCL", small_groups},
                                  {"starts", starts},
                                  {"opened in place on OpenCL", opened_in_place},
                                  {"in place on OpenCL", in_place_opencl},
                                  {"refused", refused},
                                  {"each call of CUDA's driver fails", each_call_fails},
                                  {"faults", faults}};
TEST_MAIN(cases)
