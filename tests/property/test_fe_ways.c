/* test_fe_ways.c - ways of the demeaner that are rarely taken, and what it refuses: ranks counted
 * by pivots or not at all, factors that the cap forbids, slopes whose factor is weighed against
 * steps that a probe forecasts, arguments that are off.
 */
#include "panel.h"

/* ---- ranks ----------------------------------------------------------------------------------- */

enum { UNITS = 3000, EACH = 4, FIRMS = 400, JOBS = 360 };

/** Units whose rows have different firms and jobs, so that no two rows differ in one of them alone
 *  and none of their levels merge.  A job's class, 0, 1 or 2, is the parity of the unit and that of
 *  the firm added: three of all columns are redundant, two of which pairs of factors show; the
 *  parities less the classes are zero in every row. */
static panel tied_by_three(void)
{
    panel d = panel_make(UNITS * EACH, 3, 2);
    int64_t firm = 0, job = 0;
    for (int64_t i = 0; i < d.n; i++) {
        int32_t *const c = d.codes + 3 * i;
        firm = i % EACH == 0 ? test_below(FIRMS) : firm + 1 + test_below(FIRMS / EACH - 1);
        job = i % EACH == 0 ? test_below(JOBS / 3) : job + 1;
        c[0] = (int32_t)(i / EACH);
        c[1] = (int32_t)(firm % FIRMS);
        c[2] = (int32_t)(c[0] % 2 + c[1] % 2 + 3 * (job % (JOBS / 3)));
    }
    return d;
}

static frg_status rank_of(const panel *d, frg_fe_dof dof, size_t fill_cap, frg_demean_rank *rank)
{
    frg_context *const ctx = test_context();
    frg_demean_opts o = panel_options();
    frg_demean *plan = NULL;
    o.dof = dof;
    o.fill_cap = fill_cap;
    CHECK_OK(ctx, panel_create(&plan, ctx, d, &o));
    const frg_status status = frg_demean_get_rank(plan, rank);
    if (status < 0)
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-012");
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    return status;
}

/** The exact count of 760 columns that the rows leave takes 32 bytes an entry, a factor in doubles
 *  8: a cap between them leaves the pivots, which nothing verifies; one below refuses the exact
 *  rank, and makes auto count by pairs. */
static void ranks(void)
{
    panel d = tied_by_three();
    const int64_t exact = UNITS + FIRMS + JOBS - 3;
    frg_demean_rank r = {0};
    CHECK_STATUS(rank_of(&d, FRG_DOF_EXACT, 0, &r), FRG_OK);
    CHECK(r.exact && r.rank == exact && strcmp(r.method, "exact") == 0);
    CHECK_STATUS(rank_of(&d, FRG_DOF_EXACT, 4000000, &r), FRG_OK);
    CHECK_SAYS(!r.exact && r.rank == exact && strcmp(r.method, "pivots") == 0, "%lld by %s",
               (long long)r.rank, r.method);
    CHECK_STATUS(rank_of(&d, FRG_DOF_EXACT, 4000, &r), FRG_NO_MEMORY);
    CHECK_STATUS(rank_of(&d, FRG_DOF_AUTO, 4000, &r), FRG_OK);
    CHECK_SAYS(!r.exact && r.rank == exact + 1 && strcmp(r.method, "pairwise") == 0, "%lld by %s",
               (long long)r.rank, r.method);
    panel_free(&d);
}

/* ---- factors that cannot be had -------------------------------------------------------------- */

/** Two results are no further apart than both bounds say; these are estimates by the smallest Ritz
 *  value: ten times, and 1e-12 for what is exact but for its rounding.  A NaN stands for a column
 *  that took no step. */
static void check_same(const panel *d, const double *r, const frg_demean_column *of_r,
                       const double *want, const frg_demean_column *of_want)
{
    for (int c = 0; c < d->p; c++) {
        const double bound = (isnan(of_r[c].error_bound) ? 0 : of_r[c].error_bound) +
                             (isnan(of_want[c].error_bound) ? 0 : of_want[c].error_bound);
        const double gap =
            panel_norm(d, r + c * d->n, want + c * d->n) / panel_centred_norm(d, d->x + c * d->n);
        CHECK(of_r[c].converged && of_want[c].converged);
        CHECK_SAYS(gap <= 10 * bound + 1e-12, "column %d: %g apart, the bounds say %g", c, gap,
                   bound);
    }
}

/** Forced ways fail by name and leave the output; auto runs CG through the rows and converges. */
static void forbidden_factors(void)
{
    static const struct {
        frg_fe_method method;
        frg_fe_precond precond;
        const char *says;
    } forced[] = {{FRG_FE_DIRECT, FRG_FE_PRECOND_AUTO, "method direct needs an assembled matrix"},
                  {FRG_FE_CG, FRG_FE_PRECOND_AC, "precond ac needs an assembled matrix"},
                  {FRG_FE_CG, FRG_FE_PRECOND_SCHWARZ, "precond schwarz needs an assembled matrix"}};
    panel d = tied_by_three();
    double *const want = panel_zeros(d.n * d.p, sizeof *want);
    double *const r = panel_zeros(d.n * d.p, sizeof *r);
    frg_demean_column columns[PANEL_COLUMNS], of_want[PANEL_COLUMNS];
    frg_context *const ctx = test_context();
    frg_demean_opts o = panel_options();
    CHECK_OK(ctx, panel_demean(ctx, &d, &o, want, of_want, NULL));
    o.fill_cap = 4000;
    for (size_t k = 0; k < sizeof forced / sizeof *forced; k++) {
        o.method = forced[k].method;
        o.precond = forced[k].precond;
        r[0] = 17;
        CHECK_STATUS(panel_demean(ctx, &d, &o, r, columns, NULL), FRG_NO_MEMORY);
        CHECK_SAYS(strstr(frg_message(ctx), forced[k].says) != NULL, "%s", frg_message(ctx));
        CHECK(r[0] == 17);
    }
    o.method = FRG_FE_AUTO;
    o.precond = FRG_FE_PRECOND_AUTO;
    panel_report report;
    CHECK_OK(ctx, panel_demean(ctx, &d, &o, r, columns, &report));
    CHECK_SAYS(strncmp(report.plan.method, "cg rows", 7) == 0, "%s", report.plan.method);
    check_same(&d, r, columns, want, of_want);
    frg_context_destroy(ctx);
    free(want);
    free(r);
    panel_free(&d);
}

/** However many rows a unit has, S has no more entries than pairs of levels: a factor of 3 levels
 *  fits anywhere. */
static void long_units(void)
{
    panel d = panel_make(60000, 2, 1);
    panel_random_codes(&d, (const int64_t[]){4, 3});
    frg_context *const ctx = test_context();
    double *const r = panel_zeros(d.n, sizeof *r), *const want = panel_zeros(d.n, sizeof *want);
    frg_demean_column column, of_want;
    frg_demean_opts o = panel_options();
    CHECK_OK(ctx, panel_demean(ctx, &d, &o, want, &of_want, NULL));
    o.method = FRG_FE_DIRECT;
    o.fill_cap = 1 << 20;
    panel_report report;
    if (CHECK_OK(ctx, panel_demean(ctx, &d, &o, r, &column, &report))) {
        CHECK_TEXT(report.plan.method, "direct");
        check_same(&d, r, &column, want, &of_want);
    }
    frg_context_destroy(ctx);
    free(r);
    free(want);
    panel_free(&d);
}

/* ---- slopes ---------------------------------------------------------------------------------- */

/** A slope in the second factor of a graph: units among neighbours on a grid, where steps are many
 *  and a factor pays, or among all at random, where steps are few and it fills.  What comes out is
 *  what LSMR alone gives, to the bounds. */
static void slopes_weighed(void)
{
    for (int random = 0; random < 2; random++) {
        enum { SIDE = 40, ROWS = 8000 };
        panel d = panel_make(ROWS, 2, 1);
        d.n_slopes = 1;
        d.slope_values = panel_zeros(d.n, sizeof *d.slope_values);
        for (int64_t i = 0; i < d.n; i++) {
            const int64_t unit = i / 4 % (SIDE * SIDE),
                          to = unit + (i % 2 ? 1 : SIDE) * (i / 2 % 2);
            d.codes[2 * i] = (int32_t)(i / 4);
            d.codes[2 * i + 1] = (int32_t)(random ? test_below(SIDE * SIDE) : to % (SIDE * SIDE));
            d.slope_values[i] = test_normal();
        }
        d.slopes[0] = (frg_slope){.factor = 1, .z = d.slope_values};
        frg_context *const ctx = test_context();
        double *const r = panel_zeros(d.n, sizeof *r), *const want = panel_zeros(d.n, sizeof *r);
        frg_demean_column column, plain;
        frg_demean_opts o = panel_options();
        o.max_iter = 20000;
        frg_demean *plan = NULL;
        CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
        CHECK_OK(ctx,
                 frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r), &column, NULL));
        const frg_demean_report report = frg_demean_get(plan);
        printf("# %s: %s, %lld steps\n", random ? "at random" : "grid", report.method,
               (long long)column.iterations);
        frg_demean_destroy(plan);
        o.method = FRG_FE_LSMR;
        CHECK_OK(ctx, panel_demean(ctx, &d, &o, want, &plain, NULL));
        check_same(&d, r, &column, want, &plain);
        frg_context_destroy(ctx);
        free(r);
        free(want);
        panel_free(&d);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void bad_options(void)
{
    static const struct {
        frg_demean_opts o;
        frg_status status;
        const char *says;
    } table[] = {
        {{.tol = 1e-8, .max_iter = 1, .block = 8, .cond_limit = -1}, FRG_BAD_ARG, "cond_limit"},
        {{.tol = 1e-8, .max_iter = 1, .block = 33}, FRG_BAD_ARG, "block is 33"},
        {{.tol = 1e-8, .max_iter = 1, .block = 8, .method = (frg_fe_method)9},
         FRG_BAD_ARG,
         "method is 9"},
        {{.tol = 1e-8, .max_iter = 1, .block = 8, .precond = (frg_fe_precond)9},
         FRG_BAD_ARG,
         "precond is 9"},
        {{.tol = 1e-8, .max_iter = 1, .block = 8, .dtype = (frg_fe_dtype)9},
         FRG_BAD_ARG,
         "dtype is 9"},
        {{.tol = 1e-8, .max_iter = 1, .block = 8, .dof = (frg_fe_dof)9}, FRG_BAD_ARG, "dof is 9"},
        {{.tol = 1e-8, .max_iter = 1, .block = 8, .method = FRG_FE_MAP},
         FRG_BAD_ARG,
         "method map has max_sweeps"},
        {{.tol = 1e-8,
          .max_iter = 1,
          .block = 8,
          .method = FRG_FE_DIRECT,
          .precond = FRG_FE_PRECOND_SCHWARZ},
         FRG_BAD_ARG,
         "precond is of methods auto and cg"},
        {{.tol = 1e-8,
          .max_iter = 1,
          .block = 8,
          .method = FRG_FE_LSMR,
          .precond = FRG_FE_PRECOND_DIAG},
         FRG_BAD_ARG,
         "precond is of methods auto and cg"},
        {{.tol = 1e-8, .max_iter = 1, .block = 8, .method = FRG_FE_DIRECT, .dtype = FRG_FE_MIXED},
         FRG_BAD_ARG,
         "dtype mixed is of conjugate gradients"},
    };
    panel d = panel_cycle(5);
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_demean_opts o = table[i].o;
        o.struct_size = sizeof o;
        o.max_sweeps = panel_options().max_sweeps;
        frg_demean *plan = (frg_demean *)ctx;
        const frg_status status = panel_create(&plan, ctx, &d, &o);
        CHECK_SAYS(status == table[i].status && strstr(frg_message(ctx), table[i].says),
                   "%s: %s '%s'", table[i].says, frg_status_name(status), frg_message(ctx));
        CHECK(plan == NULL);
        size_t bytes, with_factor;
        double seconds;
        const frg_demean_shape shape = {.n = d.n, .p = 1, .n_factors = 2};
        CHECK_STATUS(frg_demean_estimate(ctx, &shape, &o, &bytes, &with_factor, &seconds), status);
    }
    frg_context_destroy(ctx);
    panel_free(&d);
}

static void bad_calls(void)
{
    panel d = panel_cycle(6);
    frg_context *const ctx = test_context();
    frg_demean *plan = NULL;
    frg_demean_part part;
    frg_demean_rank rank;
    float narrow[12] = {0};
    double wide[12] = {0}, alpha[12];
    CHECK_OK(ctx, panel_create(&plan, ctx, &d, NULL));
    CHECK_STATUS(frg_demean_effects(plan, 0, alpha), FRG_BAD_ARG); /* nothing has run */
    const frg_array in = panel_columns(&d, d.x), out = frg_matrix_columns(wide, FRG_F64, 12, 1, 12);
    CHECK_STATUS(
        frg_demean_run(plan, in, frg_matrix_columns(narrow, FRG_F32, 12, 1, 12), NULL, NULL),
        FRG_BAD_ARG);
    CHECK_SAYS(strstr(frg_message(ctx), "x holds f64 and out f32") != NULL, "%s", frg_message(ctx));
    CHECK_STATUS(frg_demean_run(plan, frg_matrix_columns(wide, FRG_F64, 6, 1, 6),
                                frg_matrix_columns(alpha, FRG_F64, 6, 1, 6), NULL, NULL),
                 FRG_BAD_ARG);
    CHECK_OK(ctx, frg_demean_run(plan, in, out, NULL, NULL));
    CHECK_OK(ctx, frg_demean_effects(plan, 0, alpha));
    CHECK_STATUS(frg_demean_effects(plan, 1, alpha), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_effects(plan, -1, alpha), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_effects(plan, 0, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_effects(NULL, 0, alpha), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_get_part(plan, -1, &part), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_get_part(NULL, 0, &part), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_get_rank(NULL, &rank), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_get_rank(plan, NULL), FRG_BAD_ARG);
    CHECK(frg_demean_get(NULL).n == 0);
    frg_demean_destroy(plan);
    frg_demean_destroy(NULL);

    const frg_slope slope = {.factor = 2, .z = d.x}, empty = {.factor = 0};
    const frg_array codes = frg_matrix(d.codes, FRG_I32, d.n, 2, 2);
    CHECK_STATUS(frg_demean_create(&plan, ctx, codes, NULL, &slope, 1, 0, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_create(&plan, ctx, codes, NULL, &empty, 1, 0, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_create(&plan, ctx, codes, NULL, NULL, 1, 0, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_create(&plan, ctx, codes, NULL, NULL, -1, 0, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_create(&plan, ctx, codes, NULL, NULL, 0, 4, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_create(NULL, ctx, codes, NULL, NULL, 0, 0, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_create(&plan, ctx, frg_matrix(d.codes, FRG_I32, d.n, 0, 2), NULL, NULL,
                                   0, 0, NULL),
                 FRG_BAD_ARG);
    CHECK(plan == NULL);

    static const int64_t levels[] = {4, 13};
    const frg_demean_shape bad[] = {{.n = -1, .n_factors = 1},
                                    {.n = 12, .p = -1, .n_factors = 1},
                                    {.n = 12, .n_factors = 0},
                                    {.n = 12, .n_factors = 65},
                                    {.n = 12, .n_factors = 1, .n_slopes = -1},
                                    {.n = 12, .n_factors = 1, .n_slopes = 1},
                                    {.n = 12, .n_factors = 2, .levels = levels}};
    size_t bytes, with_factor;
    double seconds;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STATUS(frg_demean_estimate(ctx, &bad[i], NULL, &bytes, &with_factor, &seconds),
                     FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_estimate(ctx, NULL, NULL, &bytes, &with_factor, &seconds), FRG_BAD_ARG);
    frg_context_destroy(ctx);
    panel_free(&d);
}

static const test_case cases[] = {
    {"ranks", ranks},
    {"forbidden factors", forbidden_factors},
    {"long units", long_units},
    {"slopes weighed", slopes_weighed},
    {"bad options", bad_options},
    {"bad calls", bad_calls},
};
TEST_MAIN(cases)
