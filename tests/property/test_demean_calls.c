/* test_demean_calls.c - the demeaner as it is called: layouts, types, effects, stopping, bad input,
 * limits. */
#include "core/context.h"
#include "panel.h"

static void layouts(void)
{
    panel d = panel_usual();
    double *want = panel_residuals(&d, NULL, 2);
    const int64_t n = d.n, ld = d.p + 2;
    double *rows = panel_zeros(n * ld, sizeof *rows);
    int32_t *codes = panel_zeros(n * 3, sizeof *codes);
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < d.p; c++)
            rows[i * ld + c + 1] = d.x[c * n + i];
        for (int f = 0; f < 3; f++)
            codes[f * n + i] = d.codes[3 * i + f];
    }
    const frg_array weights = frg_vector(d.weights, FRG_F64, n);
    frg_context *ctx = test_context();
    frg_demean *plan = NULL;
    CHECK_OK(ctx, frg_demean_create(&plan, ctx, frg_matrix_columns(codes, FRG_I32, n, 3, n),
                                    &weights, NULL, 0, 0, NULL));
    memset(codes, 0x7f, (size_t)(3 * n) * sizeof *codes); /* the plan has its own copy */
    frg_array in_place = frg_matrix(rows, FRG_F64, n, d.p, ld);
    in_place.offset = sizeof *rows;
    frg_demean_column columns[PANEL_COLUMNS];
    if (plan)
        CHECK_OK(ctx, frg_demean_run(plan, in_place, in_place, columns, NULL));
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < d.p; c++)
            CHECK_BITS(&rows[i * ld + c + 1], &want[c * n + i], sizeof *rows);
        CHECK(rows[i * ld] == 0 && rows[i * ld + d.p + 1] == 0);
    }
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    free(rows);
    free(codes);
    free(want);
    panel_free(&d);
}

/** mixed is f64 to 1e-9; f32 arrays come out rounded; f32 alone is right to about 1e-4 and says
 *  so. */
static void types(void)
{
    panel d = panel_usual();
    double *want = panel_residuals(&d, NULL, 2);
    frg_demean_opts o = panel_options();
    o.dtype = FRG_FE_MIXED;
    double *mixed = panel_residuals(&d, &o, 2);
    for (int c = 0; c < d.p; c++)
        CHECK(panel_norm(&d, mixed + c * d.n, want + c * d.n) <=
              1e-9 * panel_norm(&d, d.x + c * d.n, NULL));
    const int64_t count = d.n * d.p;
    float *in = panel_zeros(count, sizeof *in), *out = panel_zeros(count, sizeof *out);
    for (int64_t i = 0; i < count; i++)
        in[i] = (float)d.x[i];
    frg_context *ctx = test_context();
    frg_demean_column columns[PANEL_COLUMNS];
    for (int f32 = 0; f32 < 2; f32++) {
        frg_demean *plan = NULL;
        o.dtype = f32 ? FRG_FE_F32 : FRG_FE_F64;
        CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
        if (plan)
            CHECK_OK(ctx, frg_demean_run(plan, frg_matrix_columns(in, FRG_F32, d.n, d.p, d.n),
                                         frg_matrix_columns(out, FRG_F32, d.n, d.p, d.n), columns,
                                         NULL));
        for (int64_t i = 0; i < count; i++)
            CHECK_NEAR((double)out[i], want[i],
                       f32 ? 1e-3 : 4e-6); /* inputs were rounded: 4 eps32 8 */
        frg_demean_destroy(plan);
    }
    frg_context_destroy(ctx);
    free(in);
    free(out);
    free(mixed);
    free(want);
    panel_free(&d);
}

static int times_raised(const frg_context *ctx)
{
    int times = 0;
    for (int i = 0; i < frg_warning_count(ctx); i++)
        times += strcmp(frg_warning_code(ctx, i), "FRG-FE-105") == 0;
    return times;
}

/** Two runs over float32 columns: a column that converges by more than tol is said, once, and the
 *  report has the tolerance that it was judged by, which its certificate meets.  Returns whether
 *  there was one. */
static bool judged(const panel *d, const frg_demean_opts *o, const float *in)
{
    float *out = panel_zeros(d->n * d->p, sizeof *out);
    frg_demean_column columns[PANEL_COLUMNS];
    frg_context *ctx = test_context();
    frg_demean *plan = NULL;
    bool beyond = false;
    CHECK_OK(ctx, panel_create(&plan, ctx, d, o));
    for (int run = 0; run < 2; run++)
        CHECK_OK(ctx,
                 frg_demean_run(plan, frg_matrix_columns(in, FRG_F32, d->n, d->p, d->n),
                                frg_matrix_columns(out, FRG_F32, d->n, d->p, d->n), columns, NULL));
    const double used = frg_demean_get(plan).tol;
    for (int c = 0; c < d->p; c++) {
        CHECK(columns[c].converged && columns[c].gradient <= used);
        beyond |= columns[c].gradient > o->tol || columns[c].audit > o->tol;
    }
    CHECK_INT(times_raised(ctx), beyond);
    CHECK_BITS(&used, &(double){beyond ? 4 * (double)FLT_EPSILON : o->tol}, sizeof used);
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    free(out);
    return beyond;
}

/** The rounding of a stored float32 column alone leaves level means of about 3e-8 / sqrt(n_l) of
 *  its deviation: 1e-10 is out of reach where what is stored is audited, 1e-3 is not. */
static void what_a_type_reaches(void)
{
    static const frg_fe_method methods[] = {FRG_FE_MAP,    FRG_FE_LSMR, FRG_FE_MLSMR,
                                            FRG_FE_DIRECT, FRG_FE_CG,   FRG_FE_AUTO};
    panel d = panel_usual();
    float *in = panel_zeros(d.n * d.p, sizeof *in);
    for (int64_t i = 0; i < d.n * d.p; i++)
        in[i] = (float)d.x[i];
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        frg_demean_opts o = panel_options();
        o.method = methods[i];
        CHECK(judged(&d, &o, in) || i > 2);
        o.tol = 1e-3;
        CHECK(!judged(&d, &o, in));
    }
    free(in);
    panel_free(&d);
}

/** dtype f32 has one tolerance, in double columns too, whatever the method; f64 has the one asked
 *  for, but below its own rounding. */
static void tolerance_of_f32(void)
{
    static const frg_fe_method methods[] = {FRG_FE_MAP, FRG_FE_LSMR, FRG_FE_DIRECT, FRG_FE_CG};
    static const struct {
        frg_fe_dtype dtype;
        double asked, used;
    } jobs[] = {{FRG_FE_F32, 1e-10, 3.6e-7},
                {FRG_FE_F32, 1e-4, 1e-4},
                {FRG_FE_F64, 1e-10, 1e-10},
                {FRG_FE_F64, 1e-7, 1e-7}};
    panel d = panel_usual();
    double *r = panel_zeros(d.n * d.p, sizeof *r);
    for (size_t i = 0; i < 16; i++) {
        const size_t j = i % 4;
        frg_context *ctx = test_context();
        frg_demean_column columns[PANEL_COLUMNS];
        panel_report report = {.plan = {.n = 0}};
        frg_demean_opts o = panel_options();
        o.method = methods[i / 4];
        o.dtype = jobs[j].dtype;
        o.tol = jobs[j].asked;
        CHECK_OK(ctx, panel_demean(ctx, &d, &o, r, columns, &report));
        CHECK_BITS(&report.plan.tol, &jobs[j].used, sizeof report.plan.tol);
        CHECK_INT(times_raised(ctx), jobs[j].used > jobs[j].asked);
        for (int c = 0; c < d.p; c++)
            CHECK(columns[c].gradient <= jobs[j].used);
        frg_context_destroy(ctx);
    }
    free(r);
    panel_free(&d);
}

/** b = D alpha + r. */
static void effects(void)
{
    panel d = panel_usual();
    double *r = panel_zeros(d.n * d.p, sizeof *r), *alpha = panel_zeros(432, sizeof *alpha);
    frg_context *ctx = test_context();
    frg_demean *plan = NULL;
    frg_demean_column columns[PANEL_COLUMNS];
    if (CHECK_OK(ctx, panel_create(&plan, ctx, &d, NULL)) &&
        CHECK_OK(ctx, frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r), columns,
                                     NULL)) &&
        CHECK_INT(frg_demean_get(plan).levels, 432)) {
        for (int c = 0; c < d.p; c++) {
            CHECK_OK(ctx, frg_demean_effects(plan, c, alpha));
            for (int64_t i = 0; i < d.n; i++)
                CHECK_NEAR(r[c * d.n + i] + alpha[d.codes[3 * i]] +
                               alpha[300 + d.codes[3 * i + 1]] + alpha[420 + d.codes[3 * i + 2]],
                           d.x[c * d.n + i], 1e-12);
        }
        CHECK(frg_demean_effects(plan, d.p, alpha) < 0);
        CHECK(frg_demean_effects(plan, -1, alpha) < 0);
    }
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    free(r);
    free(alpha);
    panel_free(&d);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static int stop_at_third(const frg_progress *p, void *user)
{
    CHECK(p->solver && p->phase);
    return ++*(int *)user >= 3;
}

static int interrupt_soon(const frg_progress *p, void *user)
{
    (void)p;
    frg_context **box = user;
    frg_interrupt(*box);
    return 0;
}

/** A cycle takes LSMR p steps, projections many more, and can be stopped anywhere. */
static void stop(frg_context *ctx, frg_demean_opts *o, frg_status want, const char *how)
{
    panel d = panel_cycle(400);
    double *r = panel_zeros(d.n, sizeof *r);
    frg_demean_column column = {0};
    frg_demean *plan = NULL;
    frg_info info = {0};
    if (CHECK_OK(ctx, panel_create(&plan, ctx, &d, o))) {
        const frg_status s =
            frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r), &column, &info);
        CHECK_SAYS(s == want, "%s gave %s", how, frg_status_name(s));
        CHECK(column.status == want && !column.converged && info.status == want);
        for (int64_t i = 0; i < d.n; i++)
            CHECK(isfinite(r[i]));
        const panel_audit a = panel_check(&d, d.x, r);
        CHECK_SAYS(column.absorbed ||
                       fabs(a.gradient - column.gradient) <= 1e-6 * a.gradient + 1e-14,
                   "%s: eta %.3g, reported %.3g", how, a.gradient, column.gradient);
    }
    frg_demean_destroy(plan);
    free(r);
    panel_free(&d);
}

/** Stops of a method that takes long: after three steps, by the callback, by a flag, by the clock. */
static void stopped_by(frg_fe_method method)
{
    int calls = 0;
    frg_context *ctx = NULL;
    frg_context_opts c;
    frg_demean_opts o = panel_options();
    o.method = method;

    frg_demean_opts three = o;
    *(method == FRG_FE_MAP ? &three.max_sweeps : &three.max_iter) = 3;
    ctx = test_context();
    stop(ctx, &three, FRG_MAX_ITER, "three steps");
    frg_context_destroy(ctx);

    frg_context_defaults(&c, sizeof c);
    c.on_progress = stop_at_third;
    c.user = &calls;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    stop(ctx, &o, FRG_INTERRUPTED, "the callback");
    CHECK_SAYS(calls >= 3 && calls <= 4, "the callback was asked %d times", calls);
    frg_context_destroy(ctx);

    frg_context_defaults(&c, sizeof c);
    c.on_progress = interrupt_soon;
    c.user = &ctx;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    stop(ctx, &o, FRG_INTERRUPTED, "frg_interrupt");
    frg_interrupt_clear(ctx);
    frg_context_destroy(ctx);

    frg_context_defaults(&c, sizeof c);
    c.time_limit = 1e-9;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    stop(ctx, &o, FRG_TIME_LIMIT, "the clock");
    frg_context_destroy(ctx);
}

static void stopped(void)
{
    stopped_by(FRG_FE_LSMR);
    stopped_by(FRG_FE_MAP);
}

static int stop_in_factor(const frg_progress *p, void *user)
{
    *(int *)user += strcmp(p->phase, "factor") == 0;
    return strcmp(p->phase, "factor") == 0;
}

/** A factor that was not finished is not solved with: not for the audit's error bound either. */
static void stopped_factor(void)
{
    int calls = 0;
    frg_context *ctx = NULL;
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.on_progress = stop_in_factor;
    c.user = &calls;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    panel d = panel_make(24000, 2, 1);
    panel_random_codes(&d, (const int64_t[]){3000, 800});
    double *r = panel_zeros(d.n, sizeof *r);
    frg_demean_column column = {0};
    frg_demean_opts o = panel_options();
    o.method = FRG_FE_DIRECT;
    CHECK_STATUS(panel_demean(ctx, &d, &o, r, &column, NULL), FRG_INTERRUPTED);
    CHECK(calls > 0 && !column.converged && column.status == FRG_INTERRUPTED);
    const panel_audit a = panel_check(&d, d.x, r);
    CHECK_SAYS(fabs(a.gradient - column.gradient) <= 1e-6 * a.gradient, "eta %.3g, reported %.3g",
               a.gradient, column.gradient);
    frg_context_destroy(ctx);
    free(r);
    panel_free(&d);
}

typedef struct {
    int calls, last; /* asked while S is assembled; the call that says stop */
} assembly_stop;

static int stop_in_assembly(const frg_progress *p, void *user)
{
    assembly_stop *const s = user;
    s->calls += strcmp(p->phase, "assembly") == 0;
    return strcmp(p->phase, "assembly") == 0 && s->calls == s->last;
}

/** A stop while S is assembled, at each of its calls: the column says so, its result is what its
 *  report says, and the next run of the plan has the bits of one that nobody stopped. */
static void stopped_assembly(void)
{
    panel d = panel_make(24000, 2, 1);
    panel_random_codes(&d, (const int64_t[]){3000, 800});
    double *r = panel_zeros(d.n, sizeof *r), *whole = panel_zeros(d.n, sizeof *whole);
    frg_demean_opts o = panel_options();
    o.method = FRG_FE_DIRECT;
    assembly_stop s = {0};
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.on_progress = stop_in_assembly;
    c.user = &s;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    frg_demean_column column = {0};
    CHECK_STATUS(panel_demean(ctx, &d, &o, whole, &column, NULL), FRG_OK);
    const int all = s.calls;
    CHECK_INT(all, 3);
    for (int k = 1; k <= all; k++) {
        s = (assembly_stop){.last = k};
        frg_demean *plan = NULL;
        if (!CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o))) {
            continue;
        }
        CHECK_STATUS(
            frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r), &column, NULL),
            FRG_INTERRUPTED);
        CHECK_INT(s.calls, k);
        CHECK(!column.converged && column.status == FRG_INTERRUPTED);
        const panel_audit a = panel_check(&d, d.x, r);
        CHECK_SAYS(fabs(a.gradient - column.gradient) <= 1e-6 * a.gradient,
                   "stop %d: eta %.3g, reported %.3g", k, a.gradient, column.gradient);
        CHECK_STATUS(
            frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r), &column, NULL),
            FRG_OK);
        CHECK(memcmp(r, whole, (size_t)d.n * sizeof *r) == 0);
        frg_demean_destroy(plan);
    }
    CHECK_INT((int64_t)frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
    free(r);
    free(whole);
    panel_free(&d);
}

/** max_iter is the most steps that a column makes, whatever the method, the solvers it goes through
 *  and the rounds; each column says whether that has done. */
static void steps_of_a_column(void)
{
    static const struct {
        frg_fe_method method;
        frg_fe_precond precond;
        frg_fe_dtype dtype;
    } ways[] = {{FRG_FE_AUTO, FRG_FE_PRECOND_AUTO, FRG_FE_F64},
                {FRG_FE_CG, FRG_FE_PRECOND_AUTO, FRG_FE_F64},
                {FRG_FE_CG, FRG_FE_PRECOND_OFF, FRG_FE_F32},
                {FRG_FE_AUTO, FRG_FE_PRECOND_DIAG, FRG_FE_MIXED},
                {FRG_FE_AUTO, FRG_FE_PRECOND_AC, FRG_FE_F64},
                {FRG_FE_CG, FRG_FE_PRECOND_SCHWARZ, FRG_FE_F64},
                {FRG_FE_LSMR, FRG_FE_PRECOND_AUTO, FRG_FE_F64},
                {FRG_FE_DIRECT, FRG_FE_PRECOND_AUTO, FRG_FE_F64}};
    int64_t short_of = 0;
    frg_context *ctx = test_context();
    for (int design = 0; design < 3; design++) {
        panel d = design == 0   ? panel_usual()
                  : design == 1 ? panel_cycle(400)
                                : panel_workers(3000, 2, 3);
        double *r = panel_zeros(d.n * d.p, sizeof *r);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            frg_demean_opts o = panel_options();
            frg_demean_column column[PANEL_COLUMNS];
            o.method = ways[w].method;
            o.precond = ways[w].precond;
            o.dtype = ways[w].dtype;
            o.max_iter = 1 + test_below(12);
            const frg_status status = panel_demean(ctx, &d, &o, r, column, NULL);
            CHECK_SAYS(status >= 0, "way %zu: %s", w, frg_message(ctx));
            for (int c = 0; c < d.p && status >= 0; c++) {
                CHECK_SAYS(column[c].iterations <= o.max_iter,
                           "design %d, way %zu: %lld steps of %lld", design, w,
                           (long long)column[c].iterations, (long long)o.max_iter);
                CHECK((column[c].status == FRG_OK) == (column[c].converged != 0));
                short_of += column[c].status == FRG_MAX_ITER;
            }
        }
        free(r);
        panel_free(&d);
    }
    CHECK(short_of > 0); /* a cycle takes 200 steps, and forced CG has nothing else */
    frg_context_destroy(ctx);
}

/* ---- bad input ------------------------------------------------------------------------------- */

static void refuse(frg_context *ctx, const panel *d, const frg_demean_opts *o, frg_status want,
                   const char *code, const char *says)
{
    frg_demean *plan = (frg_demean *)&want; /* must become NULL */
    const frg_status s = panel_create(&plan, ctx, d, o);
    CHECK_SAYS(s == want, "%s: gave %s: %s", says, frg_status_name(s), frg_message(ctx));
    CHECK(plan == NULL);
    if (s < 0) {
        CHECK_TEXT(frg_error_code(ctx), code);
        CHECK_SAYS(strstr(frg_message(ctx), says) || strstr(frg_error_where(ctx), says),
                   "\"%s\" (%s) does not say %s", frg_message(ctx), frg_error_where(ctx), says);
    } else {
        frg_demean_destroy(plan);
    }
}

static void bad_input(void)
{
    frg_context *ctx = test_context();
    panel d = panel_make(100, 2, 2);
    panel_random_codes(&d, (const int64_t[]){7, 5});
    panel_random_weights(&d, 1, 2);

    d.codes[2 * 41 + 1] = -3;
    refuse(ctx, &d, NULL, FRG_BAD_DATA, "FRG-FE-004", "42");
    d.codes[2 * 41 + 1] = 0;
    for (int k = 0; k < 3; k++) {
        d.weights[16] = (const double[]){-1, INFINITY, NAN}[k];
        refuse(ctx, &d, NULL, FRG_BAD_DATA, "FRG-FE-003", "17");
    }
    d.weights[16] = 1;

    frg_demean_opts o = panel_options();
    o.tol = 0;
    refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", "tol");
    o.tol = 1;
    refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", "tol");
    o.tol = NAN;
    refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", "tol");
    o = panel_options();
    o.max_iter = 0;
    refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", "max_iter");
    o = panel_options();
    o.block = 33;
    refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", "block");
    o = panel_options();
    o.method = (frg_fe_method)99;
    refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", "method");
    static const struct {
        frg_fe_method method;
        frg_fe_precond precond;
        frg_fe_dtype dtype;
        double cond_limit;
        const char *says;
    } idle[] = {{FRG_FE_AUTO, FRG_FE_PRECOND_AUTO, FRG_FE_F64, 1e8, "cond_limit"},
                {FRG_FE_CG, FRG_FE_PRECOND_AUTO, FRG_FE_F64, 1e8, "cond_limit"},
                {FRG_FE_LSMR, FRG_FE_PRECOND_OFF, FRG_FE_F64, 0, "precond"},
                {FRG_FE_MLSMR, FRG_FE_PRECOND_AC, FRG_FE_F64, 0, "precond"},
                {FRG_FE_DIRECT, FRG_FE_PRECOND_DIAG, FRG_FE_F64, 0, "precond"},
                {FRG_FE_LSMR, FRG_FE_PRECOND_AUTO, FRG_FE_MIXED, 0, "dtype mixed"},
                {FRG_FE_MAP, FRG_FE_PRECOND_AUTO, FRG_FE_F64, 1e8, "cond_limit"},
                {FRG_FE_MAP, FRG_FE_PRECOND_DIAG, FRG_FE_F64, 0, "precond"},
                {FRG_FE_MAP, FRG_FE_PRECOND_AUTO, FRG_FE_MIXED, 0, "dtype mixed"},
                {FRG_FE_DIRECT, FRG_FE_PRECOND_AUTO, FRG_FE_MIXED, 0, "dtype mixed"}};
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
        o = panel_options();
        o.method = idle[i].method;
        o.precond = idle[i].precond;
        o.dtype = idle[i].dtype;
        o.cond_limit = idle[i].cond_limit;
        refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", idle[i].says);
    }

    o = panel_options();
    o.max_sweeps = 77;
    refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", "max_iter");
    o = panel_options();
    o.method = FRG_FE_MAP;
    o.max_iter = 77;
    refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", "max_sweeps");
    o.max_iter = 1000;
    o.max_sweeps = 0;
    refuse(ctx, &d, &o, FRG_BAD_ARG, "FRG-CORE-006", "max_sweeps");

    const frg_array codes = frg_matrix(d.codes, FRG_I32, 100, 2, 2);
    const frg_array short_weights = frg_vector(d.weights, FRG_F64, 99);
    frg_demean *plan = NULL;
    CHECK_STATUS(frg_demean_create(&plan, ctx, codes, &short_weights, NULL, 0, 0, NULL),
                 FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "99") && strstr(frg_message(ctx), "100"));
    CHECK_STATUS(
        frg_demean_create(&plan, ctx, frg_matrix(d.x, FRG_F64, 100, 2, 2), NULL, NULL, 0, 0, NULL),
        FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-008");
    CHECK_STATUS(
        frg_demean_create(&plan, ctx, frg_matrix(NULL, FRG_I32, 100, 2, 2), NULL, NULL, 0, 0, NULL),
        FRG_BAD_ARG);
    CHECK(plan == NULL);

    CHECK_OK(ctx, panel_create(&plan, ctx, &d, NULL));
    if (plan) {
        double out[200], kept[200];
        memset(out, 0x55, sizeof out);
        memcpy(kept, out, sizeof out);
        frg_demean_column columns[2];
        d.x[100 + 7] = NAN;
        CHECK_STATUS(
            frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, out), columns, NULL),
            FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-005");
        CHECK_SAYS(strstr(frg_message(ctx), "8") != NULL, "\"%s\" does not name row 8",
                   frg_message(ctx));
        d.x[100 + 7] = 1;
        double small[200]; /* squares of 1e-200 are zeros: its columns would count as absorbed */
        for (int i = 0; i < 200; i++)
            small[i] = 1e-200 * d.x[i];
        CHECK_STATUS(
            frg_demean_run(plan, panel_columns(&d, small), panel_columns(&d, out), columns, NULL),
            FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-005");
        CHECK(strstr(frg_message(ctx), "too small") != NULL);
        CHECK_STATUS(frg_demean_run(plan, frg_matrix_columns(d.x, FRG_F64, 99, 2, 100),
                                    panel_columns(&d, out), columns, NULL),
                     FRG_BAD_ARG);
        CHECK_STATUS(frg_demean_run(plan, panel_columns(&d, d.x),
                                    frg_matrix_columns(out, FRG_F64, 100, 1, 100), columns, NULL),
                     FRG_BAD_ARG);
        CHECK_STATUS(frg_demean_run(plan, frg_matrix(d.codes, FRG_I32, 100, 2, 2),
                                    panel_columns(&d, out), columns, NULL),
                     FRG_BAD_ARG);
        CHECK_BITS(out, kept, sizeof out);
        CHECK_OK(ctx, frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, out), columns,
                                     NULL));
    }
    frg_demean_destroy(plan);
    frg_demean_destroy(NULL);
    frg_context_destroy(ctx);
    panel_free(&d);
}

/** Columns carry whatever is drawn: weights, gaps, slopes with and without intercepts, every
 *  method; the levels are counted by the plan.  The bound holds, and known levels leave at most the
 *  order of the rows, the numbers of the levels and a second lane to it: no more than twice. */
static void estimates(void)
{
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_CG, FRG_FE_LSMR, FRG_FE_MLSMR,
                                            FRG_FE_DIRECT};
    frg_context *ctx = test_context();
    for (int round = 0; round < test_size(100, 30); round++) {
        const int q = 1 + (int)test_below(3), p = 1 + (int)test_below(9);
        const int64_t n = 1 + test_below(round % 20 ? 400 : 60000);
        panel d = panel_make(n, q, p);
        int64_t most[3], levels[3];
        for (int f = 0; f < q; f++)
            most[f] = 1 + test_below(test_below(2) ? n : 12);
        panel_random_codes(&d, most);
        if (test_below(2))
            panel_random_weights(&d, 0.5, 2);
        for (int f = 0; f < q; f++) {
            char *const seen = panel_zeros(most[f], 1);
            levels[f] = 0;
            for (int64_t i = 0; i < n; i++) {
                levels[f] += !seen[d.codes[i * q + f]];
                seen[d.codes[i * q + f]] = 1;
            }
            free(seen);
        }
        frg_demean_opts o = panel_options();
        o.method = methods[test_below(5)];
        o.block = 1 + (int)test_below(12);
        o.max_iter = 5;
        if (round % 3 == 0) {
            d.slope_values = panel_zeros(n, sizeof(double));
            for (int64_t i = 0; i < n; i++)
                d.slope_values[i] = test_normal();
            d.slopes[0] = (frg_slope){.factor = (int)test_below(q), .z = d.slope_values};
            d.n_slopes = 1;
            d.no_intercept = (uint64_t)test_below(2) << d.slopes[0].factor;
        }
        double *const r = panel_zeros(n * p, sizeof *r), seconds = 0;
        frg_demean_column columns[PANEL_COLUMNS];
        frg_demean *plan = NULL;
        frg_demean_shape shape = {.n = n,
                                  .p = p,
                                  .n_factors = q,
                                  .levels = levels,
                                  .weighted = d.weights != NULL,
                                  .slopes = d.slopes,
                                  .n_slopes = d.n_slopes,
                                  .no_intercept = d.no_intercept};
        size_t known = 0, unknown = 0, all = 0;
        CHECK_OK(ctx, frg_demean_estimate(ctx, &shape, &o, &known, &all, &seconds));
        shape.levels = NULL;
        CHECK_OK(ctx, frg_demean_estimate(ctx, &shape, &o, &unknown, &all, &seconds));
        CHECK(panel_create(&plan, ctx, &d, &o) >= 0);
        CHECK(frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r), columns, NULL) >=
              0);
        const frg_demean_report report = frg_demean_get(plan);
        const size_t held = report.plan_bytes - report.factor_bytes;
        CHECK_SAYS(held <= known && known <= unknown && known <= 2 * held + 4096,
                   "round %d: %lld rows, %d factors: %zu bytes, bounds %zu and %zu", round,
                   (long long)n, q, held, known, unknown);
        frg_demean_destroy(plan);
        free(r);
        panel_free(&d);
    }
    frg_demean_shape none = {.n = 5, .p = 1};
    size_t plan, all;
    double seconds;
    CHECK_STATUS(frg_demean_estimate(ctx, &none, NULL, &plan, &all, &seconds), FRG_BAD_ARG);
    none.n_factors = 1;
    none.n = (int64_t)1 << 33; /* more than a plan takes */
    CHECK_STATUS(frg_demean_estimate(ctx, &none, NULL, &plan, &all, &seconds), FRG_NO_MEMORY);
    CHECK(strstr(frg_message(ctx), "2^32") != NULL);
    none.n = 5;
    none.levels = &(const int64_t){6};
    CHECK_STATUS(frg_demean_estimate(ctx, &none, NULL, &plan, &all, &seconds), FRG_BAD_ARG);
    frg_context_destroy(ctx);
}

/** A memory limit below the plan is an answer, not a crash. */
static void memory_limit(void)
{
    panel d = panel_workers(20000, 2, 1);
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.memory_limit = 100000;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    frg_demean *plan = NULL;
    CHECK_STATUS(panel_create(&plan, ctx, &d, NULL), FRG_NO_MEMORY);
    CHECK(plan == NULL);
    size_t plan_bytes = 0, with_factor = 0;
    double seconds = 0;
    CHECK_OK(ctx, frg_demean_estimate(ctx, &(frg_demean_shape){.n = d.n, .p = 1, .n_factors = 2},
                                      NULL, &plan_bytes, &with_factor, &seconds));
    CHECK(plan_bytes > 100000 && with_factor >= plan_bytes && seconds >= 0);
    frg_context_destroy(ctx);

    ctx = test_context();
    double *r = panel_zeros(d.n, sizeof *r);
    frg_demean_column column;
    panel_report report;
    CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, &column, &report));
    CHECK_SAYS(report.plan.plan_bytes - report.plan.factor_bytes <= plan_bytes,
               "%zu bytes > the bound %zu", report.plan.plan_bytes - report.plan.factor_bytes,
               plan_bytes);
    frg_context_destroy(ctx);
    free(r);
    panel_free(&d);
}

/** A common factor of the weights that is a power of four changes no bit, however far it takes them
 *  from 1; nor does one of the columns change what is left of them, relative to it.  500 digits and
 *  no more lie between two weights. */
static void weights_near_one(void)
{
    static const int powers[] = {-1000, -700, -332, -2, 2, 332, 700, 1018};
    for (int slopes = 0; slopes < 2; slopes++) {
        panel d = panel_usual();
        d.slope_values = panel_zeros(d.n, sizeof(double));
        for (int64_t i = 0; i < d.n; i++)
            d.slope_values[i] = test_normal();
        d.n_slopes = slopes;
        d.slopes[0] = (frg_slope){.factor = 1, .z = d.slope_values};
        const size_t bytes = (size_t)(d.n * d.p) * sizeof *d.x;
        double *const want = panel_zeros(d.n * d.p, sizeof *want), *const r = panel_zeros(
                                                                       d.n * d.p, sizeof *r);
        double *const weights = panel_zeros(d.n, sizeof *weights);
        double *const x = panel_zeros(d.n * d.p, sizeof *x);
        frg_demean_column columns[PANEL_COLUMNS], found[PANEL_COLUMNS];
        frg_context *ctx = test_context();
        memcpy(weights, d.weights, (size_t)d.n * sizeof *weights);
        memcpy(x, d.x, bytes);
        CHECK_OK(ctx, panel_demean(ctx, &d, NULL, want, columns, NULL));
        for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
            for (int64_t i = 0; i < d.n; i++)
                d.weights[i] = ldexp(weights[i], powers[k]);
            CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, found, NULL));
            CHECK_SAYS(memcmp(r, want, bytes) == 0, "other bits at 2^%d", powers[k]);
            for (int c = 0; c < d.p; c++)
                CHECK(found[c].audit == columns[c].audit && found[c].converged &&
                      found[c].error_bound == columns[c].error_bound);
            const int value = powers[k] < -400 ? -400 : powers[k] > 400 ? 400 : powers[k];
            for (int64_t i = 0; i < d.n * d.p; i++)
                d.x[i] = ldexp(x[i], value);
            CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, found, NULL));
            for (int64_t i = 0; i < d.n * d.p; i++)
                r[i] = ldexp(r[i], -value);
            CHECK_SAYS(memcmp(r, want, bytes) == 0, "other bits of columns at 2^%d", value);
            memcpy(d.x, x, bytes);
        }
        memcpy(d.weights, weights, (size_t)d.n * sizeof *weights);
        d.weights[17] = 0x1p-510;
        frg_demean *plan = NULL;
        CHECK_STATUS(panel_create(&plan, ctx, &d, NULL), FRG_BAD_DATA);
        CHECK_SAYS(strstr(frg_message(ctx), "row 18 has the weight"), "%s", frg_message(ctx));
        /* a column that only a faint row could show is refused, one of ordinary size is not */
        d.weights[17] = 0x1p-490;
        CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, found, NULL));
        for (int64_t i = 0; i < d.n; i++)
            d.x[i] = i == 17 ? 0x1p-300 : 0;
        if (!slopes)
            CHECK_STATUS(panel_demean(ctx, &d, NULL, r, found, NULL), FRG_BAD_DATA);
        frg_context_destroy(ctx);
        free(want);
        free(r);
        free(weights);
        free(x);
        panel_free(&d);
    }
}

/** Columns without rows are done. */
static void no_rows(void)
{
    panel d = panel_make(0, 2, 2);
    frg_demean_column columns[2];
    frg_context *ctx = test_context();
    CHECK_OK(ctx, panel_demean(ctx, &d, NULL, d.x, columns, NULL));
    for (int c = 0; c < 2; c++)
        CHECK(columns[c].converged && columns[c].status == FRG_OK && columns[c].audit == 0);
    frg_context_destroy(ctx);
    panel_free(&d);
}

/** A value that is refused in any of several blocks of columns: nothing is written, by either way of
 *  strides and in place as well. */
static void nothing_written(void)
{
    enum { N = 12000, P = 20 };
    static const double bad[] = {NAN, INFINITY, 1e160, 1e-200};
    frg_context *const ctx = test_context();
    panel d = panel_make(N, 2, 1);
    panel_random_codes(&d, (const int64_t[]){50, 40});
    double *const x = panel_zeros(N * P, sizeof *x), *const y = panel_zeros(N * P, sizeof *y);
    const frg_demean_opts o = panel_options();
    frg_demean *plan = NULL;
    CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
    for (int trial = 0; trial < 16 && plan; trial++) {
        const bool by_columns = trial % 2;
        const int64_t column = (3 * trial + 7) % P, row = 311 * trial;
        const double wrong = bad[trial / 2 % 4];
        for (int64_t i = 0; i < N * P; i++)
            x[i] = y[i] = (double)(i % 97) + 1;
        for (int64_t i = 0; i < N && wrong < 1; i++) /* else it is the least of larger ones */
            x[by_columns ? column * N + i : i * P + column] = 0;
        x[by_columns ? column * N + row : row * P + column] = wrong;
        const frg_array in = by_columns ? frg_matrix_columns(x, FRG_F64, N, P, N)
                                        : frg_matrix(x, FRG_F64, N, P, P),
                        out = by_columns ? frg_matrix_columns(y, FRG_F64, N, P, N)
                                         : frg_matrix(y, FRG_F64, N, P, P);
        CHECK_STATUS(frg_demean_run(plan, in, out, NULL, NULL), FRG_BAD_DATA);
        char place[32];
        snprintf(place, sizeof place, "row %lld", (long long)row + 1);
        CHECK_SAYS(strstr(frg_message(ctx), place) || strstr(frg_error_where(ctx), place),
                   "trial %d: %s (%s)", trial, frg_message(ctx), frg_error_where(ctx));
        int64_t changed = 0;
        for (int64_t i = 0; i < N * P; i++)
            changed += y[i] != (double)(i % 97) + 1;
        CHECK_INT(changed, 0);
    }
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    free(x);
    free(y);
    panel_free(&d);
}

/** A stop that a callback asked for ends the run that it was asked in, and no later call. */
static void stop_is_heard_once(void)
{
    panel d = panel_usual();
    frg_context *ctx = test_context();
    frg_demean *plan = NULL;
    frg_demean_rank rank;
    const frg_array codes = frg_matrix(d.codes, FRG_I32, d.n, 3, 3);
    atomic_store(&ctx->pass.asked, 1);
    CHECK_STATUS(frgi_stopped(ctx), FRG_INTERRUPTED);
    CHECK_STATUS(frg_demean_create(&plan, ctx, codes, NULL, NULL, 0, 0, NULL), FRG_OK);
    CHECK_STATUS(frgi_stopped(ctx), FRG_OK);
    atomic_store(&ctx->pass.asked, 1);
    CHECK_STATUS(frg_demean_get_rank(plan, &rank), FRG_OK);
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    panel_free(&d);
}

static const test_case cases[] = {
    {"a stop is heard once", stop_is_heard_once},
    {"no rows", no_rows},
    {"weights near one", weights_near_one},
    {"layouts", layouts},
    {"types", types},
    {"what a type reaches", what_a_type_reaches},
    {"tolerance of f32", tolerance_of_f32},
    {"effects", effects},
    {"stopped", stopped},
    {"stopped while factoring", stopped_factor},
    {"stop in the assembly", stopped_assembly},
    {"steps of a column", steps_of_a_column},
    {"bad input", bad_input},
    {"nothing written", nothing_written},
    {"estimates", estimates},
    {"memory limit", memory_limit},
};
TEST_MAIN(cases)
