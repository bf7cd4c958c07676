/* test_gw_default_device.c - alignments on every machine that is there end where the host's do: those
 * of the defaults, those from a coarse level, and those whose verdict is that of a sample.
 */
#include "devices.h"
#include "gw/gw_align.h"
#include "gw_data.h"

/** A pair of spaces, with what an alignment of them is given. */
typedef struct {
    int64_t n, m, d;
    double *x, *y; /* points, or distances where d is n and m */
    double *a, *b; /* NULL: equal weights */
    double *linear;
    frg_gw_opts o;
} problem;

static double *fresh(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

/** Points of a spiral in space, those of the target in reverse order and moved by `noise`. */
static problem spirals(int64_t n, int64_t m, double noise)
{
    problem p = {.n = n, .m = m, .d = 3, .x = fresh(3 * n), .y = fresh(3 * m)};
    frg_gw_defaults(&p.o, sizeof p.o);
    p.o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0; i < (side ? m : n); i++) {
            const double t = 1 + 9 * (double)(side ? m - 1 - i : i) / (double)(side ? m : n);
            double *const at = side ? p.y + 3 * i : p.x + 3 * i;
            at[0] = t * cos(t) + noise * test_normal();
            at[1] = t * sin(t) + noise * test_normal();
            at[2] = 0.5 * t + noise * test_normal();
        }
    return p;
}

static double *weights_of(int64_t n)
{
    double *const w = fresh(n), sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += w[i] = 0.5 + test_uniform();
    for (int64_t i = 0; i < n; i++)
        w[i] /= sum;
    return w;
}

/** Points become their distances. */
static void make_matrices(problem *p)
{
    double *const c = fresh(p->n * p->n), *const d = fresh(p->m * p->m);
    distances_of(p->x, p->n, p->d, c);
    distances_of(p->y, p->m, p->d, d);
    free(p->x);
    free(p->y);
    p->x = c;
    p->y = d;
    p->d = 0;
    p->o.distance = FRG_GW_DISTANCE_MATRIX;
}

static void release(problem *p)
{
    free(p->x);
    free(p->y);
    free(p->a);
    free(p->b);
    free(p->linear);
}

static frg_gw *open(frg_context *ctx, frgi_gw_place where, const problem *p)
{
    frg_gw *s = NULL;
    const frg_array x = matrix(p->x, p->n, p->d ? p->d : p->n),
                    y = matrix(p->y, p->m, p->d ? p->d : p->m),
                    linear = matrix(p->linear, p->n, p->m);
    CHECK_OK(ctx, frgi_gw_open(&s, ctx, where, (frg_gw_side){.data = &x, .weights = p->a},
                               (frg_gw_side){.data = &y, .weights = p->b},
                               p->linear ? &linear : NULL, &p->o));
    return s;
}

/** Runs; the plan goes to `plan` where that is not NULL. */
static frg_gw_report run(frg_context *ctx, frgi_gw_place where, const problem *p,
                         const double *start, double *plan)
{
    frg_gw *const s = open(ctx, where, p);
    frg_gw_report r = {0};
    if (s) {
        if (start)
            CHECK_OK(ctx, frg_gw_start_plan(s, matrix(start, p->n, p->m)));
        CHECK_SAYS(frg_gw_run(s, NULL) >= 0, "%s", frg_message(ctx));
        if (plan)
            CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, p->n, matrix(plan, p->n, p->m)));
        r = *frg_gw_get(s);
    }
    frg_gw_destroy(s);
    return r;
}

/* ---- the defaults ---------------------------------------------------------------------------- */

enum { KINDS = 13 };

static problem kind(int which)
{
    problem p = which == 1 || which == 7 ? spirals(60, 48, 0.05) : spirals(50, 50, 0.05);
    switch (which) {
    case 2: /* weights of both sides */
        p.a = weights_of(p.n);
        p.b = weights_of(p.m);
        break;
    case 3:
        make_matrices(&p);
        break;
    case 4: /* floats */
        p.o.dtype = FRG_GW_DTYPE_F32;
        break;
    case 5: /* paths between all, of few neighbours */
        p.o.distance = FRG_GW_DISTANCE_PRECOMPUTED;
        p.o.k = 6;
        break;
    case 6: /* landmarks, the default of points */
        p.o.distance = FRG_GW_DISTANCE_AUTO;
        break;
    case 7: /* a linear cost, fewer points on one side */
    case 8:
        p.linear = fresh(p.n * p.m);
        for (int64_t e = 0; e < p.n * p.m; e++)
            p.linear[e] = test_uniform();
        p.o.linear_weight = which == 7 ? 0.3 : 0.7;
        break;
    case 9: /* a line, which is its own mirror image */
        for (int64_t e = 0; e < 150; e++)
            p.x[e] = p.y[e] = e % 3 ? 0 : (double)(e / 3);
        break;
    case 10: /* points without weight */
        p.a = weights_of(p.n);
        p.a[4] += p.a[3];
        p.a[3] = 0;
        break;
    case 11: /* three points */
        p.n = p.m = 3;
        break;
    case 12: /* one point, to which all mass goes: nothing to do there */
        p.m = 1;
        break;
    default:
        break;
    }
    return p;
}

/** Of the same vertex energies are the same sum over a list; costs of floats end at another one at
 *  most where energies are within their rounding, 2e-6 of the product's. */
static void defaults_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    for (int which = 0; which < KINDS; which++) {
        problem p = kind(which);
        const frg_gw_report here = run(ctx, (frgi_gw_place){.dev = NULL}, &p, NULL, NULL),
                            there = run(ctx, where, &p, NULL, NULL);
        CHECK_INT(here.reason == FRG_GW_DEGENERATE, which == 12);
        CHECK_INT(here.mode, FRG_GW_VERTEX);
        CHECK_INT(there.mode, FRG_GW_VERTEX);
        CHECK_INT(there.reason, here.reason);
        CHECK_TEXT(there.verdict, here.verdict);
        CHECK_SAYS(fabs(there.energy - here.energy) <= 2e-6 * here.energy_product,
                   "problem %d: energy %.12g, of the host %.12g", which, there.energy, here.energy);
        const bool went = there.device_launches > 0 && there.device_bytes_in > 0 &&
                          there.device_bytes_out > 0 && here.device_launches == 0;
        CHECK_SAYS(went || which == 12, "problem %d: %lld launches", which,
                   (long long)there.device_launches);
        release(&p);
    }
}

static void defaults(void)
{
    on_host(defaults_on);
}

static void defaults_opencl(void)
{
    on_opencl(defaults_on);
}

/* ---- a coarse level -------------------------------------------------------------------------- */

/** Both begin with the same bits, which a coarse level of the host gives, and take three steps on
 *  the same pairs: costs differ by 4.1e-6 at most (test_gw_align_device.c), over epsilon, and plans
 *  by (e^(4 d) - 1) / 2. */
static void coarse_on(frg_context *ctx, frgi_device *dev, int group)
{
    enum { POINTS = 90 };
    static double plans[2][POINTS * POINTS];
    problem p = spirals(POINTS, POINTS, 0.02);
    p.o.mode = FRG_GW_SAMPLED;
    p.o.multiscale = FRG_GW_MULTISCALE_ON;
    p.o.n_coarse = 24;
    p.o.n_start = 2;
    p.o.anchors = 15; /* factors of so few are floats on the host */
    p.o.epsilon = 0.005;
    p.o.anneal = FRG_GW_ANNEAL_NONE;
    p.o.polish_tol = 1e-9;
    p.o.polish_passes = 4000;
    const frgi_gw_place where = {.dev = dev, .group = group};
    const frg_gw_report here = run(ctx, (frgi_gw_place){.dev = NULL}, &p, NULL, plans[0]),
                        there = run(ctx, where, &p, NULL, plans[1]);
    double gap = 0, far = 0;
    for (int64_t e = 0; e < POINTS * POINTS; e++) {
        gap += fabs(plans[0][e] - plans[1][e]) / 2;
        far += fabs(plans[0][e] - 1.0 / POINTS / POINTS) / 2;
    }
    const double allowed = (exp(4 * 4.1e-6 / p.o.epsilon) - 1) / 2;
    CHECK_SAYS(gap <= allowed, "plans differ by %.3g > %.3g", gap, allowed);
    CHECK_SAYS(far > 100 * allowed, "the plan is %.3g from the product", far);
    CHECK(here.multiscale && there.multiscale);
    CHECK_INT(here.anchors, 15);
    CHECK_INT(there.anchors, 15);
    CHECK_INT(there.coarse_iterations, here.coarse_iterations);
    CHECK_INT(there.outer_iterations, here.outer_iterations);
    CHECK_INT(there.reason, here.reason);
    CHECK_TEXT(there.verdict, here.verdict);
    release(&p);
}

static void coarse(void)
{
    on_host(coarse_on);
}

static void coarse_opencl(void)
{
    on_opencl(coarse_on);
}

/** Left to us, a coarse level is the start of more than 1e6 pairs of points, there as here. */
static void coarse_by_auto_on(frg_context *ctx, frgi_device *dev, int group)
{
    problem p = spirals(1001, 1001, 0.02);
    p.o.mode = FRG_GW_SAMPLED;
    for (int there = 0; there < 2; there++) {
        frg_gw *const s = open(ctx, (frgi_gw_place){.dev = there ? dev : NULL, .group = group}, &p);
        CHECK(s && frgi_gw_is_multiscale(s));
        frg_gw_destroy(s);
    }
    release(&p);
}

static void coarse_by_auto(void)
{
    on_host(coarse_by_auto_on);
}

/* ---- the verdict of a sample ----------------------------------------------------------------- */

/** Points on a line in steps that grow, unequally heavy, to their mirror image, where a run stays
 *  that begins there: too many for vertices of all of them.  It is beaten by what the best start of
 *  a sample leads to, and no device says that it has converged. */
static void sample_on(frg_context *ctx, frgi_device *dev, int group)
{
    enum { POINTS = 176 };
    problem p = {.n = POINTS, .m = POINTS, .d = 1, .x = fresh(POINTS), .y = fresh(POINTS)};
    double *const start = fresh(POINTS * POINTS);
    p.a = fresh(POINTS);
    p.b = fresh(POINTS);
    frg_gw_defaults(&p.o, sizeof p.o);
    for (int64_t i = 0; i < POINTS; i++) {
        p.x[i] = p.y[i] = (double)i * (1 + 4e-3 * (double)i);
        p.a[i] = p.b[i] = (i < POINTS / 4 || i >= POINTS - POINTS / 4 ? 0.9 : 1.1) / POINTS;
        start[i * POINTS + POINTS - 1 - i] = p.a[i];
    }
    make_matrices(&p);
    p.o.mode = FRG_GW_EXACT;
    p.o.anneal = FRG_GW_ANNEAL_NONE;
    p.o.max_iter = 5;
    p.o.min_iter = 3;
    p.o.max_inner = 30;
    p.o.tol = 1; /* a step is enough */
    p.o.polish_passes = 30;
    const frg_gw_report here = run(ctx, (frgi_gw_place){.dev = NULL}, &p, start, NULL),
                        there =
                            run(ctx, (frgi_gw_place){.dev = dev, .group = group}, &p, start, NULL);
    CHECK_TEXT(here.verdict, "another start is lower");
    CHECK_TEXT(there.verdict, here.verdict);
    CHECK_INT(here.reason, FRG_GW_BEATEN);
    CHECK_INT(there.reason, here.reason);
    CHECK_INT(there.verdict_points, here.verdict_points);
    CHECK_SAYS(there.other_energy < there.energy, "energy %g, of the other %g", there.energy,
               there.other_energy);
    free(start);
    release(&p);
}

static void sample(void)
{
    on_host(sample_on);
}

static void sample_opencl(void)
{
    on_opencl(sample_on);
}

static const test_case cases[] = {{"the defaults", defaults},
                                  {"the defaults on OpenCL", defaults_opencl},
                                  {"a coarse level", coarse},
                                  {"a coarse level, on OpenCL", coarse_opencl},
                                  {"a coarse level, left to us", coarse_by_auto},
                                  {"the verdict of a sample", sample},
                                  {"the verdict of a sample, on OpenCL", sample_opencl}};
TEST_MAIN(cases)
