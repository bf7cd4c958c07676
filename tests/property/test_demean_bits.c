/* test_demean_bits.c - what may not change a bit of the demeaner's results, and what may by
 * rounding alone.
 *
 * Bits are equal for any number of threads, for a column alone or in any company, for any block
 * width, and for the first, the second and a fresh plan's run.  CPU levels contract to FMA or do
 * not: they differ by rounding, which the solver's tolerance covers.
 */
#include "fault.h"
#include "panel.h"

/** The designs on which bits are compared: two that the cascade is fast on, a random and a regular
 *  one. */
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
static void compare_company(const panel *d, frg_fe_method method)
{
    static const int widths[] = {1, 2, 3, 8, 32};
    frg_demean_opts o = panel_options();
    o.method = method;
    double *want = panel_residuals(d, &o, 2);
    for (size_t b = 0; b < sizeof widths / sizeof *widths; b++) {
        o.block = widths[b];
        double *r = panel_residuals(d, &o, 2);
        CHECK_SAYS(memcmp(r, want, (size_t)(d->n * d->p) * sizeof *r) == 0,
                   "method %d: other bits in blocks of %d", (int)method, widths[b]);
        free(r);
    }
    for (int c = 0; c < d->p; c++) {
        panel one = *d;
        one.p = 1;
        one.x = d->x + c * d->n;
        double *r = panel_residuals(&one, &o, 2);
        CHECK_SAYS(memcmp(r, want + c * d->n, (size_t)d->n * sizeof *r) == 0,
                   "method %d: column %d has other bits alone", (int)method, c);
        free(r);
    }
    free(want);
}

static void blocks(void)
{
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_LSMR, FRG_FE_CG};
    panel d = panel_workers(1600, 3, 11);
    for (int64_t i = 0; i < d.n; i++) /* columns that end early, at once, and absorbed */
        d.x[i + d.n] = d.codes[3 * i], d.x[i + 4 * d.n] = 0, d.x[i + 6 * d.n] = 1e3 + 1e-3 * d.x[i];
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
        compare_company(&d, methods[m]);
    panel_free(&d);
}

/** So many levels that steps go over to products in float32, column by column: columns of all sizes
 *  of effects, which come there at different steps.  Their audit holds as without. */
static void far_levels(void)
{
    const int64_t levels = 9000, n = test_size(10, 2) * levels;
    panel d = panel_make(n, 2, 4);
    panel_random_codes(&d, (const int64_t[]){n / 8, levels});
    for (int64_t i = 0; i < n; i++)
        d.codes[2 * i] = (int32_t)(i / 8);
    for (int64_t i = 0; i < n; i++) {
        const int64_t l = d.codes[2 * i + 1];
        d.x[i + n] += 1e4 * (double)(l % 97);
        d.x[i + 2 * n] = 1e-3 * d.x[i + 2 * n] + (double)(l % 7);
        d.x[i + 3 * n] += 1e2 * (double)(i / 8 % 31);
    }
    compare_company(&d, FRG_FE_CG);
    double *want = some_steps(&d, FRG_FE_CG, 1), *r = some_steps(&d, FRG_FE_CG, 3);
    CHECK_BITS(r, want, (size_t)(d.n * d.p) * sizeof *r);
    free(want);
    free(r);
    panel_free(&d);
}

/** Columns side by side that are larger than the caches leave by whole lines, wherever they begin
 *  and whatever lies around them. */
static void past_caches(void)
{
    enum { P = 3, ODD = 3 };
    const int64_t n = test_size(2900000, 3000); /* times P doubles: FE_STREAM_BYTES and more */
    panel d = panel_make(n, 2, 1);
    for (int64_t i = 0; i < n; i++) {
        d.codes[2 * i] = (int32_t)(i / 7);
        d.codes[2 * i + 1] = (int32_t)(i * i % 23);
    }
    double *x = panel_zeros(n * P, sizeof *x), *one = panel_zeros(n, sizeof *one);
    double *around = panel_zeros(n * P + 2 * ODD, sizeof *around), *out = around + ODD;
    for (int64_t i = 0; i < n * P; i++)
        x[i] = (double)((uint64_t)i * 0x9e3779b97f4a7c15u >> 40) * 0x1p-24;
    for (int k = 0; k < ODD; k++)
        around[k] = out[n * P + k] = 77;
    frg_context *ctx = test_context_with(2, NULL, NULL);
    frg_demean *plan = NULL;
    if (CHECK_OK(ctx, panel_create(&plan, ctx, &d, NULL))) {
        CHECK_OK(ctx, frg_demean_run(plan, frg_matrix(x, FRG_F64, n, P, P),
                                     frg_matrix(out, FRG_F64, n, P, P), NULL, NULL));
        for (int k = 0; k < ODD; k++)
            CHECK(around[k] == 77 && out[n * P + k] == 77);
        for (int c = 0; c < P; c++) {
            int64_t others = 0;
            CHECK_OK(ctx, frg_demean_run(plan, frg_matrix(x + c, FRG_F64, n, 1, P),
                                         frg_matrix(one, FRG_F64, n, 1, 1), NULL, NULL));
            for (int64_t i = 0; i < n; i++)
                others += one[i] != out[i * P + c];
            CHECK_INT(others, 0);
        }
    }
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    free(x);
    free(one);
    free(around);
    panel_free(&d);
}

/** The CPU levels differ by rounding: contraction to FMA and nothing else. */
static void cpu_levels(void)
{
    static const char *const levels[] = {"plain", "v3", "v4"};
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
            printf("# this machine or build lacks %s\n", levels[l]);
            test_skip("this machine or build lacks one of the levels; the others were compared");
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
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_LSMR, FRG_FE_CG, FRG_FE_DIRECT,
                                            FRG_FE_MAP};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        for (int which = 0; which < 2; which++) {
            panel d = which ? panel_cycle(300) : panel_workers(2000, 3, 4);
            double *first = panel_zeros(d.n * d.p, sizeof *first);
            double *second = panel_zeros(d.n * d.p, sizeof *second);
            frg_demean_column columns[PANEL_COLUMNS];
            frg_demean_opts o = panel_options();
            o.method = methods[m];
            if (methods[m] == FRG_FE_MAP)
                o.max_sweeps = 1000000;
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
    {"far levels, same bits", far_levels},
    {"past the caches, same bits", past_caches},
    {"cpu levels", cpu_levels},
    {"second run allocates nothing", second_run},
};
TEST_MAIN(cases)
