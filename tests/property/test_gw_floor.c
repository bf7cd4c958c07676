/* test_gw_floor.c - tolerances that no arithmetic reaches: every iteration stops at its floor of
 * rounding and says so.
 *
 * Counted, not timed: 2000 passes at most, where the limits allow millions.
 */
#include "gw_data.h"

enum { PASSES = 2000, LIMIT = 1000000 };
#define NEVER 1e-300

/** Points in the plane whose distances have no symmetry, another set for each `set`.  Not random:
 *  how many passes a plan takes to settle has no bound over all sets of points. */
static void place(double *x, int64_t n, int set)
{
    for (int64_t i = 0; i < 2 * n; i++)
        x[i] = sin(1.0 + (double)(i * i + 3 * i) * (1.7 + 0.4 * set));
}

static frg_gw_opts unreachable(frg_gw_mode mode)
{
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o.mode = mode;
    o.tol = o.marginal_tol = o.polish_tol = NEVER;
    o.max_iter = o.max_inner = o.polish_passes = LIMIT;
    o.epsilon = 0.2;
    o.anneal = FRG_GW_ANNEAL_NONE;
    return o;
}

/** Alignments of n and n + 1 points.  Change and error are those of floats at the least: a plan's
 *  entries are off by 2^-24 (64 + 2 log2(e) / epsilon) of themselves where exponents are
 *  (gw_exact.c), and no floor lies above that. */
static void align_both(frg_gw_mode mode, int64_t n, int64_t rank, bool ends_at_floor)
{
    frg_context *ctx = test_context();
    double x[32 * 2], y[32 * 2];
    place(x, n, 0);
    place(y, n + 1, 1);
    const frg_array ax = matrix(x, n, 2), ay = matrix(y, n + 1, 2);
    frg_gw_opts o = unreachable(mode);
    o.rank = rank;
    frg_plan_report plan = {0};
    const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay},
                                        NULL, &o, NULL, &plan);
    CHECK_SAYS(r.inner_iterations <= PASSES, "%lld passes, %lld steps, %s",
               (long long)r.inner_iterations, (long long)r.outer_iterations,
               frg_gw_reason_name(r.reason));
    if (ends_at_floor) {
        CHECK_TEXT(frg_gw_reason_name(r.reason), "rounding_floor");
        const double bound = 0x1p-24 * (64 + 2 * 1.4426950408889634 / r.epsilon_end);
        CHECK_SAYS(r.rounding_floor >= 0 && r.rounding_floor <= bound, "a floor of %g, %g at most",
                   r.rounding_floor, bound);
    } else {
        CHECK_SAYS(r.reason != FRG_GW_MAX_ITER, "%s", frg_gw_reason_name(r.reason));
        CHECK(isnan(r.rounding_floor));
    }
    CHECK(plan.source_error <= 1e-12 && plan.target_error <= 1e-12);
    frg_context_destroy(ctx);
}

static void exact(void)
{
    align_both(FRG_GW_EXACT, 5, 0, true);
}

static void landmark(void)
{
    align_both(FRG_GW_LANDMARK, 5, 0, true);
}

static void sampled(void)
{
    align_both(FRG_GW_SAMPLED, 5, 0, false);
}

static void low_rank(void)
{
    align_both(FRG_GW_SAMPLED, 5, 3, false);
}

/** Every form of costs, balanced and relaxed: stalled, with the least error that was reached; a
 *  pass more leaves no less than half of what the bound of gw_transport.c has. */
static void sinkhorn(void)
{
    enum { N = 5, M = 7 };
    static const struct {
        frg_gw_store store;
        frg_gw_domain domain;
        double rho, unit;
    } each[] = {{FRG_GW_STORE_F32, FRG_GW_DOMAIN_LOG, INFINITY, 0x1p-24},
                {FRG_GW_STORE_U16, FRG_GW_DOMAIN_LOG, INFINITY, 0x1p-24},
                {FRG_GW_STORE_U16R, FRG_GW_DOMAIN_LOG, INFINITY, 0x1p-24},
                {FRG_GW_STORE_FLY, FRG_GW_DOMAIN_LOG, INFINITY, 0x1p-24},
                {FRG_GW_STORE_F64, FRG_GW_DOMAIN_LOG, INFINITY, 0x1p-53},
                {FRG_GW_STORE_AUTO, FRG_GW_DOMAIN_KERNEL, INFINITY, 0x1p-24},
                {FRG_GW_STORE_F64, FRG_GW_DOMAIN_LOG, 0.5, 0x1p-53},
                {FRG_GW_STORE_F32, FRG_GW_DOMAIN_LOG, 0.5, 0x1p-24}};
    frg_context *ctx = test_context();
    double cost[N * M];
    for (int i = 0; i < N * M; i++)
        cost[i] = test_uniform();
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        for (int accel = 0; accel < 2; accel++) {
            frg_sinkhorn_opts o;
            frg_sinkhorn_defaults(&o, sizeof o);
            o.tol = NEVER;
            o.max_iter = LIMIT;
            o.epsilon = 0.1;
            o.cost_store = each[k].store;
            o.domain = each[k].domain;
            o.rho_target = o.rho_source = each[k].rho;
            o.accel = accel ? FRG_GW_ACCEL_MOMENTUM : FRG_GW_ACCEL_NONE;
            frg_sinkhorn *s = NULL;
            CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, matrix(cost, N, M), NULL, NULL, &o));
            const frg_status status = frg_sinkhorn_run(s, NULL);
            const frg_sinkhorn_report r = frg_sinkhorn_get(s);
            CHECK_SAYS(status == FRG_STALLED || r.marginal_error <= NEVER, "case %zu: status %d", k,
                       (int)status);
            CHECK_SAYS(r.iterations <= PASSES, "case %zu: %lld passes", k, (long long)r.iterations);
            if (status == FRG_STALLED)
                CHECK_SAYS(!r.converged && r.rounding_floor <= 4 * each[k].unit * 100,
                           "case %zu: a floor of %g", k, r.rounding_floor);
            frg_sinkhorn_destroy(s);
        }
    }
    frg_context_destroy(ctx);
}

static void barycenter(void)
{
    enum { N = 5, SIZE = 4 };
    frg_context *ctx = test_context();
    double x[2][N * 2], c[2][N * N], out[SIZE * SIZE];
    frg_array spaces[2];
    for (int s = 0; s < 2; s++) {
        place(x[s], N, s);
        distances_of(x[s], N, 2, c[s]);
        spaces[s] = matrix(c[s], N, N);
    }
    frg_barycenter_opts o;
    frg_barycenter_defaults(&o, sizeof o);
    o.epsilon = 0.2;
    o.tol = o.outer_tol = NEVER;
    o.max_iter = o.max_outer = o.max_inner = LIMIT;
    frg_barycenter_report r;
    const frg_status status =
        frg_gw_barycenter(ctx, spaces, NULL, NULL, 2, NULL, NULL, &o, matrix(out, SIZE, SIZE), &r);
    CHECK_SAYS(r.inner_iterations <= PASSES, "%lld passes in %lld rounds",
               (long long)r.inner_iterations, (long long)r.iterations);
    /* distances that do not change in any bit have met every tolerance */
    CHECK(status == (r.converged ? FRG_OK : FRG_STALLED) && r.converged == (r.change <= NEVER));
    CHECK(r.converged ||
          (r.rounding_floor > 0 && r.rounding_floor <= 64 * 0x1p-53 * (64 + 4 / o.epsilon)));
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"exact", exact},       {"landmark", landmark},
                                  {"sampled", sampled},   {"low rank", low_rank},
                                  {"sinkhorn", sinkhorn}, {"barycenter", barycenter}};
TEST_MAIN(cases)
