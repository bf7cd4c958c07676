/* test_gw_golden.c - plans of POT (tests/golden/gw.txt, made by tools/make_gw_golden.py). */
#include "fourge/gw.h"
#include "golden_text.h"

enum { N = 20, M = 25 };

static bool golden(const char *name, double *out)
{
    return golden_array(FOURGE_SOURCE_DIR "/tests/golden/gw.txt", name, out);
}

static double furthest(const double *a, const double *b)
{
    double worst = 0;
    for (int i = 0; i < N * M; i++)
        worst = fmax(worst, fabs(a[i] - b[i]));
    return worst;
}

/* T9: the exact mode from a b', undamped: POT's projected gradient with twice the epsilon. */
static void gromov(void)
{
    double c[N * N], d[M * M], a[N], b[M], want[N * M], plan[N * M], value;
    if (!golden("c", c) || !golden("d", d) || !golden("a", a) || !golden("b", b))
        return;
    frg_context *ctx = test_context();
    const frg_array ac = frg_matrix(c, FRG_F64, N, N, N), ad = frg_matrix(d, FRG_F64, M, M, M);
    for (int e = 0; e < 2; e++) {
        char name[32];
        frg_gw_opts o;
        frg_gw_defaults(&o, sizeof o);
        snprintf(name, sizeof name, "gw_epsilon%d", e);
        golden(name, &o.epsilon);
        o.mode = FRG_GW_EXACT;
        o.distance = FRG_GW_DISTANCE_MATRIX;
        o.scale = FRG_GW_SCALE_NONE;
        o.anneal = FRG_GW_ANNEAL_NONE;
        o.damping = 1;
        o.max_inner = 500;
        o.marginal_tol = 3e-7; /* what f32 costs leave: at 2e-8 every solve took all its passes */
        o.max_iter = 200;
        o.tol = 1e-9;
        o.polish = 0;
        frg_gw *s = NULL;
        CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ac, .weights = a},
                                    (frg_gw_side){.data = &ad, .weights = b}, NULL, &o));
        CHECK(frg_gw_run(s, NULL) >= 0);
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, N, frg_matrix(plan, FRG_F64, N, M, M)));
        snprintf(name, sizeof name, "gw_plan%d", e);
        golden(name, want);
        /* costs in f32: 1e-7 / epsilon of an entry, entries to 0.05 */
        CHECK_SAYS(furthest(plan, want) <= 1e-6, "plan %d is off by %g", e, furthest(plan, want));
        snprintf(name, sizeof name, "gw_energy%d", e);
        golden(name, &value);
        CHECK_NEAR(frg_gw_get(s)->energy, value, 1e-6);
        frg_gw_destroy(s);
    }
    frg_context_destroy(ctx);
}

/* T9: of 5000 pairs a step the sampled mode is as good, 2 % of the energy. */
static void sampled(void)
{
    double c[N * N], d[M * M], a[N], b[M], value;
    if (!golden("c", c) || !golden("d", d) || !golden("a", a) || !golden("b", b) ||
        !golden("gw_energy0", &value))
        return;
    frg_context *ctx = test_context();
    const frg_array ac = frg_matrix(c, FRG_F64, N, N, N), ad = frg_matrix(d, FRG_F64, M, M, M);
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    golden("gw_epsilon0", &o.epsilon);
    o.distance = FRG_GW_DISTANCE_MATRIX;
    o.scale = FRG_GW_SCALE_NONE;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.anchors = 5000;
    o.max_inner = 100;
    o.n_start = 1; /* from a b', as POT */
    frg_gw *s = NULL;
    CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ac, .weights = a},
                                (frg_gw_side){.data = &ad, .weights = b}, NULL, &o));
    CHECK(frg_gw_run(s, NULL) >= 0);
    CHECK_NEAR(frg_gw_get(s)->energy / value, 1, 0.02);
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
}

/* T10, T12 */
static void transport(void)
{
    double cost[N * M], a[N], b[M], want[N * M], plan[N * M], exact;
    if (!golden("cost", cost) || !golden("a", a) || !golden("b", b) || !golden("emd", &exact))
        return;
    frg_context *ctx = test_context();
    for (int relaxed = 0; relaxed < 2; relaxed++) {
        frg_sinkhorn_opts o;
        frg_sinkhorn_defaults(&o, sizeof o);
        o.cost_store = FRG_GW_STORE_F64;
        o.tol = relaxed ? 0 : 1e-13;
        o.max_iter = 5000;
        o.accel = FRG_GW_ACCEL_NONE;
        if (relaxed) {
            o.rho_source = o.rho_target = 0.3;
            o.reference = FRG_GW_REFERENCE_PRODUCT;
        }
        frg_sinkhorn *s = NULL;
        CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, frg_matrix(cost, FRG_F64, N, M, M), a, b, &o));
        CHECK(frg_sinkhorn_run(s, NULL) >= 0);
        CHECK_OK(ctx,
                 frg_plan_rows(frg_sinkhorn_plan(s), 0, N, frg_matrix(plan, FRG_F64, N, M, M)));
        golden(relaxed ? "unbalanced" : "sinkhorn", want);
        CHECK_SAYS(furthest(plan, want) <= 1e-9, "relaxed %d: off by %g", relaxed,
                   furthest(plan, want));
        const double paid = frg_sinkhorn_get(s).cost;
        if (!relaxed) /* entropic plans cost at most epsilon log(nm) more than the best */
            CHECK(paid >= exact && paid <= exact + 0.05 * log((double)(N * M)));
        frg_sinkhorn_destroy(s);
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"gromov", gromov}, {"sampled", sampled}, {"transport", transport}};
TEST_MAIN(cases)
