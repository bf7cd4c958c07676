/* test_gw_device.c - Sinkhorn's passes on every machine that is there: the plain C life of the
 * kernels, and OpenCL at two sizes of a group, against the host's in double.
 *
 * Bounds.  In f64 a pass does the same operations as the host's in another order: sums of at most
 * 151 terms, potentials of size 1 / epsilon: 1e-12.  In f32 an exponent of size k max(c) = 29 is
 * off by 29 2^-24, which moves a potential by as many units of epsilon log 2: 6e-8, and the sums'
 * rounding by less; a pass begins with the errors of the one before, which the iteration
 * contracts.  Plans of runs to an error of 1e-9: the error falls by more than half a pass, so that
 * each is within 2e-9 of the limit, 10 times that allowed for momentum.
 */
#include "devices.h"
#include "fault.h"
#include "fourge/gw.h"
#include "gw/gw_sinkhorn.h"
#include "sinkhorn_bodies.h"

enum { N = 90, M = 151 };

typedef struct {
    double *cost, *a, *b;
    float *narrow;
} problem;

static void fill_weights(double *w, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += w[i] = 0.2 + test_uniform();
    for (int64_t i = 0; i < n; i++)
        w[i] /= sum;
}

static problem make(void)
{
    problem p = {malloc(N * M * sizeof(double)), malloc(N * sizeof(double)),
                 malloc(M * sizeof(double)), malloc(N * M * sizeof(float))};
    for (int64_t i = 0; i < N * M; i++)
        p.cost[i] = (double)(p.narrow[i] = (float)test_uniform());
    fill_weights(p.a, N);
    fill_weights(p.b, M);
    return p;
}

static void release(problem *p)
{
    free(p->cost);
    free(p->a);
    free(p->b);
    free(p->narrow);
}

static frg_sinkhorn *solve(frg_context *ctx, frgi_sinkhorn_place where, const problem *p,
                           bool floats, const frg_sinkhorn_opts *o, frg_status want)
{
    frg_sinkhorn *s = NULL;
    const frg_array cost =
        floats ? frg_matrix(p->narrow, FRG_F32, N, M, M) : frg_matrix(p->cost, FRG_F64, N, M, M);
    if (!CHECK_OK(ctx, frgi_sinkhorn_open(&s, ctx, where, cost, p->a, p->b, o)))
        return NULL;
    const frg_status status = frg_sinkhorn_run(s, NULL);
    CHECK_SAYS(status == want, "run: %d %s", status, frg_message(ctx));
    return s;
}

static frg_sinkhorn_opts options(void)
{
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    return o;
}

static void read_plan(frg_context *ctx, const frg_sinkhorn *s, double *plan)
{
    CHECK_OK(ctx, frg_plan_rows(frg_sinkhorn_plan(s), 0, N, frg_matrix(plan, FRG_F64, N, M, M)));
}

/** The plan there and the host's; a device without double ends at what floats can tell, and the
 *  plans then differ by 20 times that error. */
static void compare(frg_context *ctx, frgi_sinkhorn_place where, const problem *p, bool floats,
                    frg_sinkhorn_opts o, double tolerance)
{
    const bool to_tol = o.tol > 0; /* else max_iter passes */
    const frg_status end = to_tol ? FRG_OK : FRG_MAX_ITER;
    if (!frgi_device_is(where.dev)->f64 && to_tol && o.tol < 1e-5) {
        o.tol = 1e-5;
        tolerance = 2e-4;
    }
    double *const here = malloc(N * M * sizeof *here), *const there = malloc(N * M * sizeof *there);
    const frg_gw_store store = o.cost_store;
    o.cost_store = FRG_GW_STORE_F64;
    frg_sinkhorn *h = solve(ctx, (frgi_sinkhorn_place){.dev = NULL}, p, floats, &o, end);
    o.cost_store = store;
    frg_sinkhorn *d = solve(ctx, where, p, floats, &o, end);
    read_plan(ctx, h, here);
    read_plan(ctx, d, there);
    double gap = 0;
    for (int64_t i = 0; i < N * M; i++)
        gap += fabs(here[i] - there[i]) / 2;
    CHECK_SAYS(gap <= tolerance, "plans differ by %.3g > %.3g", gap, tolerance);
    CHECK_INT(frg_sinkhorn_get(d).converged, to_tol);
    CHECK_NEAR(frg_sinkhorn_get(d).cost, frg_sinkhorn_get(h).cost, 2 * tolerance);
    const bool holds = isinf(o.rho_source) && isinf(o.rho_target) && !(o.mass > 0);
    CHECK(isnan(frg_sinkhorn_get(d).objective) == !holds);
    if (holds && to_tol) /* off by less than <f, error> */
        CHECK_NEAR(frg_sinkhorn_get(d).objective, frg_sinkhorn_get(h).objective, 2 * tolerance);
    const frg_plan_report of_h = frg_plan_get(frg_sinkhorn_plan(h)),
                          of_d = frg_plan_get(frg_sinkhorn_plan(d));
    CHECK_NEAR(of_d.mass, of_h.mass, 4 * tolerance);
    CHECK_INT(of_d.rounded, of_h.rounded);
    if (of_d.rounded && !(o.mass > 0)) { /* rows and columns sum to a and b */
        CHECK(of_d.source_error < 1e-13);
        CHECK(of_d.target_error < 1e-13);
    }
    frg_sinkhorn_destroy(h);
    frg_sinkhorn_destroy(d);
    free(here);
    free(there);
}

static void parity_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_sinkhorn_place where = {.dev = dev, .group = group};
    problem made = make(), *const p = &made;
    const bool doubles = frgi_device_is(where.dev)->f64;
    static const frg_gw_store stores[] = {FRG_GW_STORE_AUTO, FRG_GW_STORE_U16, FRG_GW_STORE_F64};
    frg_sinkhorn_opts o = options();
    o.tol = 1e-9;
    /* an OpenCL driver compiles each kernel for each size of group, seconds each: all at one */
    const bool all = group != 256;
    for (int q = 0; q < 3 && doubles; q++) {
        o.cost_store = stores[q];
        if (q == 0 || all)
            compare(ctx, where, p, q != 2, o, 2e-8);
        if (q == 0 && all)
            compare(ctx, where, p, false, o, 2e-8);
    }
    o.cost_store = FRG_GW_STORE_AUTO;
    o.accel = FRG_GW_ACCEL_NONE;
    compare(ctx, where, p, true, o, 2e-8);
    /* c / epsilon up to 1000: rows and columns whose sums vanish at first.  A half pass is a
     * logarithm of sums of exponentials, which carries an error of its exponents on without making
     * it larger, and adds its own: products k c and potentials are up to 1.443 / 0.001 and less
     * than 20 more for the weights, so that the two potentials, their sum and the product, each
     * rounded by 2^-24 of that, shift an exponent by 4 x 1463 x 2^-24 = 3.5e-4.  After 10 passes
     * and the plan's own exponents 21 times that, 7.4e-3: an entry is within 5.2e-3 of itself, and
     * half of these sum to 2.6e-3. */
    o.epsilon = 0.001;
    o.tol = 0;
    o.max_iter = 10;
    o.round = 0;
    compare(ctx, where, p, true, o, 2.6e-3);
    o.max_iter = 1; /* whose potentials are folded into exponents behind the last pass */
    compare(ctx, where, p, true, o, 2.6e-3);
    release(p);
}

static void parity(void)
{
    on_host(parity_on);
}

static void parity_opencl(void)
{
    on_opencl(parity_on);
}

/** Costs far from 0 beside a small rho: penalties exp(-f / rho) of e^-4000 and e^4000, and rows with
 *  2^326 of their mass before the columns are moved. */
static void far_penalties_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_sinkhorn_place where = {.dev = dev, .group = group};
    problem made = make(), *const p = &made;
    frg_sinkhorn_opts o = options();
    o.tol = 1e-9;
    o.rho_source = 0.003;
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (int64_t e = 0; e < N * M; e++)
            p->cost[e] = (double)(p->narrow[e] = (float)(test_uniform() + sign * 12));
        o.rho_target = (double)INFINITY;
        compare(ctx, where, p, true, o, 2e-8);
        o.rho_target = 30;
        compare(ctx, where, p, true, o, 2e-8);
    }
    for (int64_t e = 0; e < N * M; e++) /* a constant alone, which no other step tells */
        p->cost[e] = (double)(p->narrow[e] = 1);
    o.rho_source = o.rho_target = 0.1;
    compare(ctx, where, p, true, o, 2e-8);
    release(p);
}

static void marginals_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_sinkhorn_place where = {.dev = dev, .group = group};
    problem made = make(), *const p = &made;
    frg_sinkhorn_opts o = options();
    o.tol = 1e-9;
    o.rho_source = 0.3;
    compare(ctx, where, p, true, o, 2e-8);
    o.rho_target = 0.1;
    compare(ctx, where, p, true, o, 2e-8);
    o.rho_source = (double)INFINITY;
    o.reference = FRG_GW_REFERENCE_PRODUCT;
    compare(ctx, where, p, true, o, 2e-8);
    o = options();
    o.tol = 1e-9;
    o.mass = 0.6;
    compare(ctx, where, p, true, o, 2e-8);
    o.mass = 0;
    problem zeros = *p; /* points without weight */
    const double a = p->a[3], b = p->b[7];
    p->a[4] += a;
    p->a[3] = 0;
    p->b[8] += b;
    p->b[7] = 0;
    compare(ctx, where, &zeros, true, o, 2e-8);
    o.mass = 0.6; /* these are no part of the dummy's sums */
    compare(ctx, where, &zeros, true, o, 2e-8);
    p->a[3] = a;
    p->a[4] -= a;
    p->b[7] = b;
    p->b[8] -= b;
    release(p);
}

/** With the device's double precision hidden. */
static void floats_opencl(void)
{
    setenv("FOURGE_OPENCL_F64", "0", 1);
    on_opencl(parity_on);
    on_opencl(marginals_on);
    setenv("FOURGE_OPENCL_F64", "1", 1);
}

static void marginals(void)
{
    on_host(marginals_on);
}

static void marginals_opencl(void)
{
    on_opencl(marginals_on);
}

static void far_penalties(void)
{
    on_host(far_penalties_on);
}

static void far_penalties_opencl(void)
{
    on_opencl(far_penalties_on);
}

/** Pass by pass, without acceleration: in f64, and in f32. */
static void iterates_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_sinkhorn_place where = {.dev = dev, .group = group};
    problem made = make(), *const p = &made;
    frg_sinkhorn_opts o = options();
    o.accel = FRG_GW_ACCEL_NONE;
    o.tol = 0;
    double g[2][M];
    for (int form = 0; form < 2; form++) {
        for (o.max_iter = 1; o.max_iter <= 9; o.max_iter += 4) {
            for (int q = 0; q < 2; q++) {
                o.cost_store = form == 0 || q == 0 ? FRG_GW_STORE_F64 : FRG_GW_STORE_F32;
                frg_sinkhorn *s = solve(ctx, q == 0 ? (frgi_sinkhorn_place){.dev = NULL} : where, p,
                                        true, &o, FRG_MAX_ITER);
                CHECK_INT(frg_sinkhorn_get(s).iterations, o.max_iter);
                CHECK_OK(ctx, frg_sinkhorn_potentials(s, NULL, g[q]));
                frg_sinkhorn_destroy(s);
            }
            for (int64_t j = 0; j < M; j++)
                CHECK_NEAR(g[1][j], g[0][j], form == 0 ? 1e-12 : 4 * 6e-8);
        }
    }
    release(p);
}

static void iterates(void)
{
    on_host(iterates_on);
}

static void iterates_opencl(void)
{
    on_opencl(iterates_on);
}

/** The same bits from run to run; launches and waits are those of the model. */
static void counts_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_sinkhorn_place where = {.dev = dev, .group = group};
    problem made = make(), *const p = &made;
    frg_sinkhorn_opts o = options();
    o.tol = 0;
    frgi_device_counts at[2];
    double g[2][M];
    for (int q = 0; q < 2; q++) {
        o.max_iter = 23 + 16 * q; /* batches of 1, 2, 4, 8, 8, and two of 8 more */
        frg_sinkhorn *s = solve(ctx, where, p, true, &o, FRG_MAX_ITER);
        *frgi_device_counted(where.dev) = (frgi_device_counts){0};
        CHECK_STATUS(frg_sinkhorn_run(s, NULL), FRG_MAX_ITER);
        at[q] = *frgi_device_counted(where.dev);
        frg_sinkhorn_destroy(s);
    }
    CHECK_INT(at[1].launches - at[0].launches, 16 * 2 + 2);
    CHECK_INT(at[1].waits - at[0].waits, 2);
    CHECK_INT(at[1].bytes_in - at[0].bytes_in, 0);
    CHECK(at[1].bytes_out - at[0].bytes_out <= 2 * 128); /* a state a poll */
    for (int q = 0; q < 2; q++) {
        frg_sinkhorn *s = solve(ctx, where, p, true, &o, FRG_MAX_ITER);
        CHECK_OK(ctx, frg_sinkhorn_potentials(s, NULL, g[q]));
        frg_sinkhorn_destroy(s);
    }
    CHECK_BITS(g[0], g[1], sizeof g[0]);
    release(p);
}

static void counts(void)
{
    on_host(counts_on);
}

static void counts_opencl(void)
{
    on_opencl(counts_on);
}

static void refused_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_sinkhorn_place where = {.dev = dev, .group = group};
    problem made = make(), *const p = &made;
    frg_sinkhorn_opts o[4] = {options(), options(), options(), options()};
    static const char *const says[] = {"cost_store u16r", "cost_store fly", "domain kernel",
                                       "auto_store"};
    o[0].cost_store = FRG_GW_STORE_U16R;
    o[1].cost_store = FRG_GW_STORE_FLY;
    o[2].domain = FRG_GW_DOMAIN_KERNEL;
    o[3].auto_store = 1;
    for (int q = 0; q < 4; q++) {
        frg_sinkhorn *s = (frg_sinkhorn *)ctx;
        CHECK_STATUS(frgi_sinkhorn_open(&s, ctx, where, frg_matrix(p->cost, FRG_F64, N, M, M), p->a,
                                        p->b, &o[q]),
                     FRG_UNSUPPORTED);
        CHECK(!s);
        CHECK_SAYS(strstr(frg_message(ctx), says[q]) != NULL, "%s", frg_message(ctx));
    }
    release(p);
}

static void refused(void)
{
    on_host(refused_on);
}

static void refused_opencl(void)
{
    on_opencl(refused_on);
}

/** Groups of 32 on few points, but several groups of every kernel, for the checker of races
 *  (tests/build/kernel_races.sh).  The plan is that of groups of one: exponents of at most 29 and
 *  potentials of 20 more, floats, are off by 4 (29 + 20) 2^-24 a half pass, which 6 passes and the
 *  plan's own exponents carry on (`parity_on`): 13 times that, in units of log 2, 1e-4. */
static void small_groups_on(frg_context *ctx, frgi_device *dev, const problem *p,
                            const frg_sinkhorn_opts *o)
{
    enum { FEW_X = 18, FEW_Y = 68 };
    static double plans[2][FEW_X * FEW_Y];
    frgi_device *plain = NULL;
    CHECK_OK(ctx, frgi_device_open(&plain, ctx, (frg_device){FRG_CPU, 0}));
    for (int q = 0; q < 2; q++) {
        frg_sinkhorn *s = NULL;
        if (CHECK_OK(ctx, frgi_sinkhorn_open(
                              &s, ctx, (frgi_sinkhorn_place){.dev = q ? dev : plain, .group = 32},
                              frg_matrix(p->narrow, FRG_F32, FEW_X, FEW_Y, M), NULL, NULL, o))) {
            CHECK_STATUS(frg_sinkhorn_run(s, NULL), FRG_MAX_ITER);
            CHECK_OK(ctx, frg_plan_rows(frg_sinkhorn_plan(s), 0, FEW_X,
                                        frg_matrix(plans[q], FRG_F64, FEW_X, FEW_Y, FEW_Y)));
        }
        frg_sinkhorn_destroy(s);
    }
    frgi_device_close(&plain);
    double gap = 0;
    for (int64_t e = 0; e < FEW_X * FEW_Y; e++)
        gap += fabs(plans[0][e] - plans[1][e]) / 2;
    CHECK_SAYS(gap <= 1e-4, "plans differ by %.3g", gap);
}

static void small_groups(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    if (dev) {
        problem p = make();
        frg_sinkhorn_opts o = options();
        o.tol = 0;
        o.max_iter = 6;
        static const frg_gw_store stores[] = {FRG_GW_STORE_AUTO, FRG_GW_STORE_U16,
                                              FRG_GW_STORE_F64};
        for (int q = 0; q < 3; q++) {
            o.cost_store = stores[q];
            o.mass = q == 1 ? 0.6 : 0;
            o.rho_source = q == 2 ? 0.3 : (double)INFINITY;
            small_groups_on(ctx, dev, &p, &o);
        }
        release(&p);
        frgi_device_close(&dev);
    }
    frg_context_destroy(ctx);
}

/** Costs, plans and vectors of the caller's on the device, in its queue. */
static void in_place_opencl(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    const bool there = dev && frgi_device_is(dev)->f64;
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    if (there)
        sinkhorn_in_place_on((frg_device){kind_asked(), 0});
}

/** A device without double precision leaves the plan's sums to the host, which costs there are out of
 *  reach for. */
static void in_place_without_f64(void)
{
    static double costs[4] = {0, 1, 1, 0};
    frg_sinkhorn *s;
    caller c;
    setenv("FOURGE_OPENCL_F64", "0", 1);
    frg_context *own = test_context();
    frgi_device *dev = open_opencl(own);
    if (dev && kind_asked() == FRG_OPENCL && caller_open(&c, (frg_device){FRG_OPENCL, 0})) {
        frg_context *ctx = caller_context(&c);
        void *const array = caller_array(&c, costs, sizeof costs);
        const frg_array cost = caller_matrix(&c, array, FRG_F64, 2, 2);
        CHECK_STATUS(frg_sinkhorn_create(&s, ctx, cost, NULL, NULL, NULL), FRG_UNSUPPORTED);
        CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-010");
        CHECK(!s && strstr(frg_message(ctx), "give a copy in host memory"));
        frg_context_destroy(ctx);
        caller_free(&c, array);
        caller_close(&c);
    }
    frgi_device_close(&dev);
    frg_context_destroy(own);
    setenv("FOURGE_OPENCL_F64", "", 1);
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const problem *const p = user;
    frgi_device *dev = NULL;
    frg_sinkhorn *s = NULL;
    frg_sinkhorn_opts o = options();
    double g[9];
    frg_status status = frgi_device_open(&dev, ctx, (frg_device){FRG_CPU, 0});
    if (status >= 0)
        status = frgi_sinkhorn_open(&s, ctx, (frgi_sinkhorn_place){.dev = dev},
                                    frg_matrix(p->narrow, FRG_F32, 8, 9, 9), NULL, NULL, &o);
    if (status >= 0)
        status = frg_sinkhorn_run(s, NULL);
    if (status >= 0)
        status = frg_sinkhorn_potentials(s, NULL, g);
    if (status >= 0)
        fault_hash(hash, g, sizeof g);
    frg_sinkhorn_destroy(s);
    frgi_device_close(&dev);
    return status;
}

static void faults(void)
{
    problem p = make();
    fault_sweep("sinkhorn on a device", body, &p, 1);
    release(&p);
}

static const test_case cases[] = {{"parity", parity},
                                  {"parity on OpenCL", parity_opencl},
                                  {"marginals", marginals},
                                  {"marginals on OpenCL", marginals_opencl},
                                  {"far penalties", far_penalties},
                                  {"far penalties on OpenCL", far_penalties_opencl},
                                  {"iterates", iterates},
                                  {"iterates on OpenCL", iterates_opencl},
                                  {"counts", counts},
                                  {"counts on OpenCL", counts_opencl},
                                  {"floats on OpenCL", floats_opencl},
                                  {"refused", refused},
                                  {"refused on OpenCL", refused_opencl},
                                  {"small groups on OpenCL", small_groups},
                                  {"in place on OpenCL", in_place_opencl},
                                  {"in place without doubles", in_place_without_f64},
                                  {"faults", faults}};
TEST_MAIN(cases)
