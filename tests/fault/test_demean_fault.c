/* test_demean_fault.c - every allocation of the demeaner failed in turn: create, run, effects,
 * destroy.
 *
 * One design for each path through the cascade, small: the number of allocations does not grow with
 * n.  A run may answer a solver that cannot be built with an earlier one; then it gives the
 * fault-free bits or FRG_NO_MEMORY.
 */
#include "fault.h"
#include "panel.h"

typedef struct {
    panel d;
    frg_demean_opts o;
} job;

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const job *j = user;
    const int64_t count = j->d.n * j->d.p;
    double *out = panel_zeros(count, sizeof *out), *alpha = NULL;
    memset(out, 0x55, (size_t)count * sizeof *out);
    const double untouched = out[0];
    frg_demean_column columns[PANEL_COLUMNS];
    frg_demean *plan = (frg_demean *)out; /* must become NULL on failure */
    frg_status s = panel_create(&plan, ctx, &j->d, &j->o);
    if (s < 0) {
        CHECK(plan == NULL);
        free(out);
        return s;
    }
    s = frg_demean_run(plan, panel_columns(&j->d, j->d.x), panel_columns(&j->d, out), columns,
                       NULL);
    for (int64_t i = 0; i < count && s < 0; i++)
        CHECK_BITS(&out[i], &untouched, sizeof untouched);
    if (s >= 0)
        s = frg_demean_run(plan, panel_columns(&j->d, j->d.x), panel_columns(&j->d, out), columns,
                           NULL);
    if (s >= 0) {
        fault_hash(hash, out, (size_t)count * sizeof *out);
        alpha = panel_zeros(frg_demean_get(plan).levels + j->d.n_slopes * j->d.n, sizeof *alpha);
        frg_demean_rank rank = {0};
        const frg_status effects = frg_demean_effects(plan, 0, alpha);
        const frg_status counted = frg_demean_get_rank(plan, &rank);
        fault_hash(hash, &rank.rank, sizeof rank.rank);
        s = effects < 0 ? effects : counted < 0 ? counted : s;
    }
    frg_demean_destroy(plan);
    free(alpha);
    free(out);
    return s;
}

static void sweep(const char *name, job *j)
{
    const int64_t k = fault_sweep(name, body, j, test_now.threads);
    printf("# %s: %" PRId64 " allocations\n", name, k);
    CHECK_SAYS(k > 1, "%s: only %" PRId64 " allocations were seen", name, k);
    panel_free(&j->d);
}

static void cascade(void)
{
    job one = {panel_make(40, 1, 2), panel_options()};
    panel_random_codes(&one.d, (const int64_t[]){7});
    sweep("one factor", &one);

    job two = {panel_make(80, 2, 3), panel_options()};
    panel_random_codes(&two.d, (const int64_t[]){20, 9});
    sweep("two factors", &two);

    job three = {panel_workers(240, 3, 2), panel_options()};
    panel_random_weights(&three.d, 0.5, 2);
    sweep("three factors, weights", &three);

    job path = {panel_make(60, 2, 1), panel_options()};
    for (int64_t i = 0; i < 60; i++) {
        path.d.codes[2 * i] = (int32_t)(i / 2);
        path.d.codes[2 * i + 1] = (int32_t)((i + 1) / 2);
    }
    sweep("path", &path);

    job ring = {panel_make(400, 2, 1), panel_options()};
    for (int64_t i = 0; i < 400; i++) {
        ring.d.codes[2 * i] = (int32_t)(i / 2);
        ring.d.codes[2 * i + 1] = (int32_t)((i + 1) / 2 % 200);
    }
    sweep("ring", &ring);

    job subproblems = {panel_make(600 + 17400, 2, 1),
                       panel_options()}; /* a ring beside a dense component */
    for (int64_t i = 0; i < subproblems.d.n; i++) {
        const bool in_ring = i < 600;
        subproblems.d.codes[2 * i] = (int32_t)(in_ring ? i / 2 : 300 + (i - 600) / 60);
        subproblems.d.codes[2 * i + 1] =
            (int32_t)(in_ring ? (i + 1) / 2 % 300 : 300 + test_below(290));
    }
    sweep("subproblems", &subproblems);
}

static void methods(void)
{
    static const struct {
        const char *name;
        frg_fe_method method;
    } each[] = {
        {"cg", FRG_FE_CG}, {"lsmr", FRG_FE_LSMR}, {"direct", FRG_FE_DIRECT}, {"map", FRG_FE_MAP}};
    for (size_t m = 0; m < sizeof each / sizeof *each; m++) {
        job j = {panel_workers(160, 3, 2), panel_options()};
        j.o.method = each[m].method;
        j.o.dof = FRG_DOF_EXACT;
        sweep(each[m].name, &j);
    }
}

/** Preconditioners that are asked for, over two factors and three: the approximate factor stands on
 *  the blocks of single factors. */
static void preconditioners(void)
{
    static const struct {
        const char *name;
        frg_fe_precond precond;
        int factors;
    } each[] = {{"approximate factor", FRG_FE_PRECOND_AC, 2},
                {"approximate factor, three factors", FRG_FE_PRECOND_AC, 3},
                {"pairs", FRG_FE_PRECOND_SCHWARZ, 3},
                {"diagonal", FRG_FE_PRECOND_DIAG, 3},
                {"none", FRG_FE_PRECOND_OFF, 3}};
    for (size_t m = 0; m < sizeof each / sizeof *each; m++) {
        job j = {panel_workers(160, each[m].factors, 2), panel_options()};
        j.o.precond = each[m].precond;
        sweep(each[m].name, &j);
    }
}

static void precisions(void)
{
    job mixed = {panel_workers(160, 2, 2), panel_options()};
    mixed.o.dtype = FRG_FE_MIXED;
    sweep("mixed", &mixed);
    job f32 = {panel_workers(160, 2, 2), panel_options()};
    f32.o.dtype = FRG_FE_F32;
    sweep("f32", &f32);
}

static job with_slopes(int64_t n, int64_t levels, frg_fe_method method)
{
    job j = {panel_make(n, 2, 2), panel_options()};
    panel_random_codes(&j.d, (const int64_t[]){levels, 5});
    j.o.method = method;
    j.d.slope_values = panel_zeros(j.d.n, sizeof(double));
    for (int64_t i = 0; i < j.d.n; i++)
        j.d.slope_values[i] = test_normal();
    j.d.n_slopes = 1;
    j.d.slopes[0] = (frg_slope){.factor = 0, .z = j.d.slope_values};
    return j;
}

/** By LSMR on orthonormal columns of the levels, and by the factor of the Schur complement with
 *  slopes. */
static void slopes(void)
{
    job chosen = with_slopes(80, 9, FRG_FE_AUTO), factor = with_slopes(240, 40, FRG_FE_DIRECT),
        steps = with_slopes(80, 9, FRG_FE_LSMR), sweeps = with_slopes(80, 9, FRG_FE_MAP);
    sweep("slopes", &chosen);
    sweep("slopes by the factor", &factor);
    sweep("slopes by LSMR", &steps);
    sweep("slopes by projections", &sweeps);
}

static const test_case cases[] = {{"cascade", cascade},
                                  {"methods", methods},
                                  {"preconditioners", preconditioners},
                                  {"precisions", precisions},
                                  {"slopes", slopes}};
TEST_MAIN(cases)
