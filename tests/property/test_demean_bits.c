/* test_demean_bits.c - what may not change a bit of the demeaner's results, and what may by rounding alone.
 *
 * Bits are equal for any number of threads, for a column alone or in any company, for any block width, and
 * for the first, the second and a fresh plan's run.  CPU levels contract to FMA or do not: they differ by
 * rounding, which the solver's tolerance covers.
 */
#include "fault.h"
#include "panel.h"

/** The designs on which bits are compared: two that the ladder is fast on, a random and a regular one. */
static panel bits_panel(int which)
{
    const int64_t n = test_size(60000, 3000);
    panel d = which < 2 ? panel_workers(n, 2 + which, 3) : panel_make(n, 2, 3);
    if (which == 2)
        panel_random_codes(&d, (const int64_t[]){n / 30, n / 60});
    if (which == 3)
        for (int64_t i = 0; i < n; i++) {
            d.codes[2 * i] = (int32_t)(i / 20);
            d.codes[2 * i + 1] = (int32_t)(i % (n / 200 + 3));
        }
    if (which == 2 || which == 1)
        panel_random_weights(&d, 0.5, 2);
    return d;
}

enum { BITS_PANELS = 4 };

/** Stopped early or not, the bits are the same. */
static double *some_steps(const panel *d, frg_fe_method method, int threads)
{
    frg_demean_opts o = panel_options();
    o.method = method;
    o.max_iter = method == FRG_FE_AUTO ? 1000 : 25;
    double *r = panel_zeros(d->n * d->p, sizeof *r);
    frg_demean_column columns[PANEL_COLUMNS];
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    const frg_status s = panel_demean(ctx, d, &o, r, columns, NULL);
    CHECK_SAYS(s == FRG_OK || (s > 0 && method != FRG_FE_AUTO), "method %d: %s: %s", (int)method,
               frg_status_name(s), frg_message(ctx));
    frg_context_destroy(ctx);
    return r;
}

static void threads(void)
{
    static const int counts[] = {2, 3, 8};
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_LSMR, FRG_FE_CG};
    for (int which = 0; which < BITS_PANELS; which++) {
        panel d = bits_panel(which);
        for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
            double *want = some_steps(&d, methods[m], 1);
            for (size_t t = 0; t < sizeof counts / sizeof *counts; t++) {
                double *r = some_steps(&d, methods[m], counts[t]);
                CHECK_SAYS(memcmp(r, want, (size_t)(d.n * d.p) * sizeof *r) == 0,
                           "design %d, method %d: other bits with %d threads", which,
                           (int)methods[m], counts[t]);
                free(r);
            }
            free(want);
        }
        panel_free(&d);
    }
}

/** Slopes: the factor of S is made of parts that threads make; enough rows for them to begin. */
static void slopes(void)
{
    static const int counts[] = {2, 3, 8};
    panel d = panel_workers(test_size(60000, 20000), 2, 2);
    d.n_slopes = 2;
    d.slope_values = panel_zeros(2 * d.n, sizeof *d.slope_values);
    for (int64_t i = 0; i < 2 * d.n; i++)
        d.slope_values[i] = test_normal();
    for (int s = 0; s < 2; s++)
        d.slopes[s] = (frg_slope){.factor = s, .z = d.slope_values + s * d.n};
    double *want = some_steps(&d, FRG_FE_DIRECT, 1);
    for (size_t t = 0; t < sizeof counts / sizeof *counts; t++) {
        double *r = some_steps(&d, FRG_FE_DIRECT, counts[t]);
        CHECK_SAYS(memcmp(r, want, (size_t)(d.n * d.p) * sizeof *r) == 0,
                   "other bits with %d threads", counts[t]);
        free(r);
    }
    free(want);
    panel_free(&d);
}

/** A column has the same bits alone, in any company, and for any block width. */
static void blocks(void)
{
    static const int widths[] = {1, 2, 3, 8, 32};
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_LSMR, FRG_FE_CG};
    panel d = panel_workers(1600, 3, 11);
    for (int64_t i = 0; i < d.n; i++) /* columns that end early, at once, and absorbed */
        d.x[i + d.n] = d.codes[3 * i], d.x[i + 4 * d.n] = 0, d.x[i + 6 * d.n] = 1e3 + 1e-3 * d.x[i];
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        frg_demean_opts o = panel_options();
        o.method = methods[m];
        double *want = panel_residuals(&d, &o, 2);
        for (size_t b = 0; b < sizeof widths / sizeof *widths; b++) {
            o.block = widths[b];
            double *r = panel_residuals(&d, &o, 2);
            CHECK_SAYS(memcmp(r, want, (size_t)(d.n * d.p) * sizeof *r) == 0,
                       "method %d: other bits in blocks of %d", (int)methods[m], widths[b]);
            free(r);
        }
        for (int c = 0; c < d.p; c++) {
            panel one = d;
            one.p = 1;
            one.x = d.x + c * d.n;
            double *r = panel_residuals(&one, &o, 2);
            CHECK_SAYS(memcmp(r, want + c * d.n, (size_t)d.n * sizeof *r) == 0,
                       "method %d: column %d has other bits alone", (int)methods[m], c);
            free(r);
        }
        free(want);
    }
    panel_free(&d);
}

/** The CPU levels differ by rounding: contraction to FMA and nothing else. */
static void cpu_levels(void)
{
    static const char *const levels[] = {"plain", "v2", "v3", "v4"};
    const char *const asked = getenv("FOURGE_ISA");
    char kept[16] = "";
    if (asked)
        snprintf(kept, sizeof kept, "%s", asked);
    panel d = panel_workers(test_size(8000, 1500), 3, 3);
    double *want = NULL;
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        setenv("FOURGE_ISA", levels[l], 1);
        frg_context *ctx = test_context();
        if (ctx && strcmp(frg_isa(ctx), levels[l]) == 0) {
            double *r = panel_residuals(&d, NULL, 2);
            for (int c = 0; c < d.p && want; c++)
                CHECK_SAYS(panel_norm(&d, r + c * d.n, want + c * d.n) <=
                               1e-7 * panel_norm(&d, want + c * d.n, NULL),
                           "%s, column %d: %.3g", levels[l], c,
                           panel_norm(&d, r + c * d.n, want + c * d.n));
            free(want);
            want = r;
        } else {
            printf("# this processor lacks %s\n", levels[l]);
        }
        frg_context_destroy(ctx);
    }
    if (asked)
        setenv("FOURGE_ISA", kept, 1);
    else
        unsetenv("FOURGE_ISA");
    free(want);
    panel_free(&d);
}

/** The second run of a plan allocates nothing and gives the bits of the first. */
static void second_run(void)
{
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_LSMR, FRG_FE_CG, FRG_FE_DIRECT};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        for (int which = 0; which < 2; which++) {
            panel d = which ? panel_cycle(300) : panel_workers(2000, 3, 4);
            double *first = panel_zeros(d.n * d.p, sizeof *first);
            double *second = panel_zeros(d.n * d.p, sizeof *second);
            frg_demean_column columns[PANEL_COLUMNS];
            frg_demean_opts o = panel_options();
            o.method = methods[m];
            fault_memory memory;
            fault_memory_open(&memory);
            frg_context *ctx = test_context_with(2, &memory.table, NULL);
            frg_demean *plan = NULL;
            if (CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o))) {
                CHECK_OK(ctx, frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, first),
                                             columns, NULL));
                const int64_t before = memory.calls;
                const size_t held = frg_bytes_held(ctx);
                CHECK_OK(ctx, frg_demean_run(plan, panel_columns(&d, d.x),
                                             panel_columns(&d, second), columns, NULL));
                CHECK_INT(memory.calls, before);
                CHECK_INT(frg_bytes_held(ctx), held);
                CHECK_BITS(second, first, (size_t)(d.n * d.p) * sizeof *first);
            }
            frg_demean_destroy(plan);
            frg_context_destroy(ctx);
            CHECK_INT(memory.live_blocks, 0);
            free(first);
            free(second);
            panel_free(&d);
        }
    }
}

static const test_case cases[] = {
    {"threads, same bits", threads},
    {"slopes on threads, same bits", slopes},
    {"blocks, same bits", blocks},
    {"cpu levels", cpu_levels},
    {"second run allocates nothing", second_run},
};
TEST_MAIN(cases)
