/* regress.c - the regression on top of the demeaner; `fit` is its algorithm.
 *
 *     formula -> rows, effects, columns          (formula.c, reg_frame.c, reg_design.c)
 *     [y X]                                      (reg_matrix.c)
 *     [y~ X~] = (I - P_D) [y X]                  (reg_absorb.c: the demeaner)
 *     drop what is absorbed or collinear, b, e   (reg_screen.c, reg_estimate.c; reg_iv.c)
 *     or all of it again and again, reweighted   (reg_glm.c)
 *     covariances                                (reg_vcov.c)
 *
 * Without effects but with an intercept the columns are centred and a column of ones is kept beside
 * them: the Gram matrix is then as well conditioned as the correlations allow.  The intercept as
 * written is mean(y) - mean(x)'b, and its covariances follow by the same linear map.
 */
#include <math.h>
#include <string.h>

#include "core/host_alone.h"
#include "core/opts.h"
#include "fe/fe_demean.h"
#include "formula/mistyped.h"
#include "regress/reg_two_stage.h"
#include "regress/reg_vcov.h"

static const double PERFECT = 1e-11; /* residuals below this share of y's variation are round-off */
enum { VCOVS = sizeof((frg_fe_opts *)0)->vcov / sizeof *((frg_fe_opts *)0)->vcov };

/* ---- options --------------------------------------------------------------------------------- */

#define OPTIONS_OF frg_fe_opts
static const frg_option options[] = {
#include "regress/fe_opts.def"
    {.name = NULL}};

const frg_option *frg_fe_options(void)
{
    return options;
}

void frg_fe_defaults(frg_fe_opts *o, size_t struct_size)
{
    frg_fe_opts defaults = {0};
    frgi_options_set(options, &defaults);
    defaults.vcov[0] = "iid";
    defaults.n_vcov = 1;
    frg_demean_defaults(&defaults.demean, sizeof defaults.demean);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

frg_status frgi_fe_check_vcovs(frg_context *ctx, const frg_fe_opts *o)
{
    if (o->n_vcov < 0 || o->n_vcov > (int)VCOVS) {
        FAIL(ctx, E_OPTION, "n_vcov must be 0 .. %d, got %d", (int)VCOVS, o->n_vcov);
    }
    return FRG_OK;
}

static frg_status check_options(frg_context *ctx, const frg_fe_opts *o)
{
    TRY(frgi_options_check(ctx, options, o));
    TRY(frgi_fe_check_vcovs(ctx, o));
    if (o->split_value && !o->split) {
        FAIL(ctx, E_OPTION, "split_value is a level of split, which is not given");
    }
    if ((o->split && !o->split_value) || o->fsplit) {
        FAIL(ctx, E_OPTION, "split makes several models, and this fits one; name its split_value");
    }
    if (o->store && o->keep_effects) {
        FAIL(ctx, E_UNSUPPORTED, "the effects of a fit whose columns are kept in a store");
    }
    if (o->plan && (o->family != FRG_FAMILY_OLS || o->first_stage)) {
        FAIL(ctx, E_UNSUPPORTED, "a plan in a file is of least squares in one stage: %s",
             o->first_stage ? "the effects of first_stage are those of other rows"
                            : "the weights of a family change from step to step");
    }
    return FRG_OK;
}

/* ---- the result ------------------------------------------------------------------------------ */

/** The level that the rows have in common, if they were split. */
static frg_status describe_split(frg_fe *f)
{
    frg_fe_result *const r = &f->report.result;
    const frg_fe_opts *const o = &f->policy.options;
    if (o->split) {
        TRY(frgi_strdup(f->ctx, &f->report.split_name, o->split, strlen(o->split)));
        TRY(frgi_strdup(f->ctx, &f->report.split_value, o->split_value, strlen(o->split_value)));
    }
    r->split_name = f->report.split_name;
    r->split_value = f->report.split_value;
    return FRG_OK;
}

/** The names of factors and columns, and the rows that were left out. */
static frg_status describe_data(frg_fe *f)
{
    frg_fe_result *const r = &f->report.result;
    const frgi_frame *const frame = &f->data.frame;
    TRY(describe_split(f));
    TRY(NEW(f->ctx, &f->report.factor_names, frame->n_effects, "names"));
    for (int q = 0; q < frame->n_effects; q++) {
        f->report.factor_names[q] = frame->keys[q].name;
    }
    r->n_demeaned = frame->n_effects ? f->data.p + 1 : 0;
    TRY(NEW(f->ctx, &f->report.column_names, r->n_demeaned, "names"));
    for (int c = 0; c < (int)r->n_demeaned; c++) {
        f->report.column_names[c] = frgi_fe_column_name(f, c);
    }
    r->formula = f->data.formula.text;
    r->depvar = frgi_fe_column_name(f, 0);
    r->column_names = f->report.column_names;
    r->columns = f->matrix.reports;
    r->n_rows = frame->n_rows;
    r->n = (int64_t)frame->count;
    r->n_missing = frame->n_missing;
    r->n_subset = frame->n_subset;
    r->n_zero_weight = frame->n_zero_weight;
    r->n_uncompared = frame->n_uncompared;
    r->n_singleton = frame->n_singleton;
    r->singleton_rounds = frame->singleton_rounds;
    r->n_disconnected = frame->n_disconnected;
    r->n_groups = frame->n_groups;
    r->n_factors = frame->n_effects;
    r->factor_name = f->report.factor_names;
    r->factor_levels = frame->levels;
    return FRG_OK;
}

/** What the demeaner says of the effects. */
static void describe_effects(frg_fe *f)
{
    frg_fe_result *const r = &f->report.result;
    const frgi_fe_absorbed *const a = &f->absorbed;
    r->rank = (int64_t)a->rank;
    r->rank_method = a->rank_method ? a->rank_method : "none";
    r->demean = a->report;
    r->n_components = a->components;
    r->plan_read = a->plan_read;
    r->parts = a->subproblems;
}

/** r2 = 1 - rss / tss and its kin; a fit without error is warned of. */
static void describe_estimates(frg_fe *f)
{
    frg_fe_result *const r = &f->report.result;
    const frgi_fe_estimates *const q = &f->fit;
    const frgi_frame *const frame = &f->data.frame;
    const double n = frame->count, left = n - (q->k + f->absorbed.rank);
    r->n_coefficients = frgi_fe_shown(f);
    r->n_dropped = q->n_dropped;
    r->dropped = q->dropped;
    r->df_residual = (int64_t)left;
    r->rss = ldexp(q->rss, frame->weight_exponent);
    r->tss = ldexp(q->tss, frame->weight_exponent);
    r->rmse = ldexp(sqrt(q->rss / n), frame->weight_exponent / 2);
    r->r2 = q->no_variation ? 1 : 1 - q->rss / q->tss;
    r->r2_adjusted = r->df_residual > 0 ? 1 - (1 - r->r2) * (n - 1) / left : (double)NAN;
    r->r2_within = frame->n_effects == 0 ? (double)NAN : q->within > 0 ? 1 - q->rss / q->within : 1;
    if (f->glm.family) {
        return; /* reg_glm_result.c says the rest */
    }
    if (q->no_variation || q->rss <= PERFECT * PERFECT * q->tss) {
        frgi_warn(f->ctx, W_PERFECT, "'%s' is fitted without error", r->depvar);
    }
}

/** The requests' covariances; what of them was taken over is empty afterwards. */
static frg_status covariances(frg_fe *f, frgi_vcov_request *requests, int count, frg_status *worst)
{
    frg_fe_result *const r = &f->report.result;
    TRY(NEW0(f->ctx, &f->report.vcov_array, count, "covariances"));
    for (int i = 0; i < count; i++) {
        frgi_vcov *v;
        const frg_status status = frgi_vcov_create(&v, f, &requests[i], &f->policy.ssc);
        TRY(status);
        *worst = status > 0 ? status : *worst;
        f->report.vcov_array[i] = v->v;
    }
    r->vcov = f->report.vcov_array;
    r->n_vcov = count;
    r->coefficients = count ? f->report.vcov_array[0].coefficients : NULL;
    return FRG_OK;
}

/* ---- the fit --------------------------------------------------------------------------------- */

bool frgi_fe_ended(const frg_fe *f, frg_status *worst)
{
    const frg_status now = frgi_stopped(f->ctx);
    *worst = now != FRG_OK ? now : *worst;
    return frgi_fe_stops(f) && (*worst == FRG_INTERRUPTED || *worst == FRG_TIME_LIMIT);
}

static frg_status beat(const frg_fe *f, const char *phase, int64_t done, frg_status worst)
{
    const frg_progress p = {.solver = "fe",
                            .phase = phase,
                            .done = done,
                            .total = 4,
                            .residual = (double)NAN,
                            .target = (double)NAN};
    const frg_status status = frgi_heartbeat(f->ctx, &p);
    return status > 0 ? status : worst;
}

static frg_status make_depvar(frg_fe *f)
{
    const frgi_syntax *const s = &f->data.formula.syntax;
    TRY(frgi_program_create(&f->data.depvar, f->ctx, s, s->left, f->data.table));
    if (f->data.depvar.column && f->data.depvar.column->kind == FRG_CATEGORY) {
        TRY(frgi_refuse_mistyped(f->ctx, s, s->left, f->data.depvar.column));
        frgi_syntax_at(s, f->ctx, s->left);
        FAIL(f->ctx, E_TYPE, "the dependent variable '%s' holds text", f->data.depvar.column->name);
    }
    return FRG_OK;
}

static frgi_frame_input frame_input(const frg_fe *f, const frgi_key *clusters, int n_clusters)
{
    return (frgi_frame_input){.table = f->data.table,
                              .formula = &f->data.formula,
                              .variables = f->data.variables,
                              .depvar = &f->data.depvar,
                              .offset = f->data.has_offset ? &f->data.offset : NULL,
                              .family = f->glm.family,
                              .clusters = clusters,
                              .n_clusters = n_clusters,
                              .options = &f->policy.options,
                              .pool = f->policy.pool};
}

/** The keys that the columns and the covariances take, beside the effects. */
static frg_status list_keys(const frg_fe *f, const frgi_vcov_request *requests, int count,
                            frgi_key_list *keys)
{
    for (int32_t id = 0; id < f->data.formula.names.count; id++) {
        for (int k = 0; k < f->data.variables[id].n_factors; k++) {
            const frgi_key key = frgi_variable_key(&f->data.variables[id], k);
            TRY(frgi_key_list_add(keys, f->ctx, &key));
        }
    }
    for (int i = 0; i < count; i++) {
        TRY(frgi_vcov_add_keys(&requests[i], f->ctx, keys));
    }
    return FRG_OK;
}

static frg_status make_rows(frg_fe *f, const frgi_vcov_request *requests, int count)
{
    frgi_key_list later = {.n = 0};
    frgi_key clusters[FRGI_CLUSTERS * VCOVS];
    int n_clusters = 0;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < requests[i].n; k++) {
            clusters[n_clusters++] = requests[i].keys[k];
        }
    }
    frgi_frame_input in = frame_input(f, clusters, n_clusters);
    in.later = &later;
    frg_status status = f->policy.pool ? FRG_OK : list_keys(f, requests, count, &later);
    status = status < 0 ? status : frgi_frame_create(&f->data.frame, f->ctx, &in);
    frgi_key_list_destroy(&later, f->ctx);
    return status;
}

static frg_status no_columns(const frg_fe *f)
{
    FAIL(f->ctx, E_NO_REGRESSOR, "no regressor is left: %s",
         f->data.formula.n_terms ? "every factor has a single level"
                                 : "the formula has neither terms nor effects");
}

/** Slopes alone do not span the constant: as in fixest the intercept stays then. */
static bool spans_constant(const frgi_formula *formula)
{
    for (int q = 0; q < formula->n_effects; q++) {
        if (formula->effects[q].intercept) {
            return true;
        }
    }
    return false;
}

/** The columns by name; codes: of the factors among them. */
static frg_status make_design(frg_fe *f, frgi_factor_codes **codes)
{
    const bool spanned = spans_constant(&f->data.formula);
    TRY(frgi_design_create(&f->data.design, codes, f->ctx, &f->data.formula, f->data.variables,
                           spanned || f->data.formula.intercept, f->data.frame.rows,
                           f->data.frame.weights, f->data.frame.n, &f->data.frame.later));
    f->data.ones = !spanned && f->data.formula.intercept && !f->two_stage.text;
    f->data.centred = f->data.ones && f->data.frame.n_effects == 0;
    f->data.p = f->data.design.n + f->data.ones;
    return FRG_OK;
}

/** Columns that an iteratively reweighted fit has beside matrix and plan: while it looks for
 *  separated rows, or from then on. */
static int64_t glm_columns(const frg_fe *f)
{
    enum { SEARCH = 5, FIT = 6 }; /* sign, weights, u, v, z;  y, eta, mu, z, next, W */
    const int64_t matrix = f->data.p + 1;
    const bool keeps = f->policy.options.keep_effects && f->data.frame.n_effects;
    const int64_t fit = FIT + f->data.has_offset + (keeps ? matrix : 0);
    return !f->glm.family ? 0 : SEARCH + matrix > fit ? SEARCH + matrix : fit;
}

/** How often the fill cap may be used up at a time: by the plan's factor, by the count of the rank,
 *  which two factors without slopes do not take, and by the factor of leverages. */
static size_t count_factors(const frg_fe *f, const frg_demean_shape *shape)
{
    const bool counts = shape->n_factors > 2 || shape->n_slopes > 0;
    return shape->n_factors == 0 ? 0 : 1 + (size_t)counts + (size_t)f->policy.leverages;
}

/** On the disk, at most: what is there, columns, residuals, scores, codes of keys, and a plan:
 *  of the columns, or of leverages and beside what else they take. */
static frg_status measure_spool(const frg_fe *f, frg_demean_shape *shape, frg_fe_size *out)
{
    enum { ROW_BYTES = 8 + 8 + 4 };
    const size_t cap = out->with_factor_bytes - out->plan_bytes;
    const size_t numbers = (size_t)(2 * glm_columns(f) + f->data.frame.later.n);
    size_t plan = 0, with_factor, beside = 0, row = ROW_BYTES + 4 * numbers;
    double seconds;
    out->spool_bytes = 0;
    if (!frgi_spools(f->ctx)) {
        return FRG_OK;
    }
    if (f->policy.leverages) {
        row += frgi_vcov_leverage_bytes(f, f->policy.estimated_leverages, &shape->p, &beside);
    }
    if (f->policy.leverages && shape->p > 0) {
        TRY(frgi_fe_demean_estimate(f->ctx, shape, !frgi_fe_is_scattered(f),
                                    &f->policy.options.demean, &plan, &with_factor, &seconds));
    }
    plan = frgi_add(plan > out->plan_bytes ? plan : out->plan_bytes, beside);
    out->spool_bytes = frgi_add(frgi_add(frgi_spool_held(f->ctx), frgi_mul((size_t)out->n, row)),
                                frgi_add(out->matrix_bytes, plan));
    out->spool_with_factor_bytes =
        frgi_add(out->spool_bytes, frgi_mul(count_factors(f, shape), cap));
    return FRG_OK;
}

/** Passes along all rows: the file, each key's codes, the columns, an order there and back in two
 *  each, the demeaner's right-hand sides, residuals and audit, X~'W X~, the residuals, and one a
 *  covariance. */
static int count_passes(const frg_fe *f)
{
    enum { FILE_COLUMNS_GRAM_RESIDUALS = 4, ORDERS = 4, DEMEANER = 3 };
    const int effects = f->data.frame.n_effects;
    return FILE_COLUMNS_GRAM_RESIDUALS + effects + (effects ? DEMEANER : 0) +
           (effects && frgi_fe_is_scattered(f) ? ORDERS : 0) + f->policy.options.n_vcov;
}

/** What the columns, the plan and a factor would take. */
static frg_status measure(const frg_fe *f, frg_fe_size *out)
{
    const frgi_frame *const frame = &f->data.frame;
    *out = (frg_fe_size){.n = frame->n,
                         .n_factors = frame->n_effects,
                         .n_columns = f->data.p + 1,
                         .seconds = (double)NAN,
                         .passes = count_passes(f)};
    out->matrix_bytes = frgi_mul(frgi_mul((size_t)out->n_columns, (size_t)out->n), sizeof(double));
    frg_slope *slopes = NULL;
    frg_demean_shape shape = {.n = frame->n,
                              .p = out->n_columns,
                              .n_factors = frame->n_effects,
                              .levels = frame->levels,
                              .weighted = frame->weights != NULL,
                              .n_slopes = f->data.formula.n_slopes};
    if (frame->n_effects == 0) {
        return measure_spool(f, &shape, out);
    }
    out->layout_bytes =
        frgi_add(frgi_frame_save_bytes(frame, frame->n_rows), frg_demean_layout_bytes(&shape));
    TRY(frgi_fe_slopes(f, &slopes, &shape.no_intercept));
    shape.slopes = slopes;
    frg_status status =
        frgi_fe_demean_estimate(f->ctx, &shape, !frgi_fe_is_scattered(f), &f->policy.options.demean,
                                &out->plan_bytes, &out->with_factor_bytes, &out->seconds);
    status = status < 0 ? status : measure_spool(f, &shape, out);
    DROP(f->ctx, &slopes);
    return status;
}

/** The disk has room for what the fit will put there, or says so before it begins. */
static frg_status expect_room(const frg_fe *f)
{
    frg_fe_size size;
    if (!frgi_spools(f->ctx)) {
        return FRG_OK;
    }
    TRY(measure(f, &size));
    return frgi_spool_expect(f->ctx, size.spool_bytes - frgi_spool_held(f->ctx), "the fit");
}

static frg_status make_matrix(frg_fe *f)
{
    const bool effects = f->data.frame.n_effects > 0;
    frgi_factor_codes *codes = NULL;
    TRY(make_design(f, &codes));
    frg_status status = FRG_OK;
    if (f->data.p == 0 && (!effects || f->data.formula.n_terms)) {
        status = no_columns(f);
    }
    status = status < 0 ? status : expect_room(f);
    status = status < 0 ? status : frgi_fe_fill_matrix(f, codes);
    frgi_factor_codes_free(&codes, f->ctx, f->data.design.n_variables);
    return status;
}

/** Rows out that a combination of columns and effects predicts perfectly, until there are none. */
static frg_status leave_separated_out(frg_fe *f)
{
    const bool looks = f->glm.family && f->glm.family->edges != EDGES_NONE &&
                       f->policy.options.separation == FRG_SEPARATION_AUTO;
    const frgi_frame_input in = frame_input(f, NULL, 0);
    int64_t count = looks;
    while (count > 0) {
        unsigned char *gone;
        TRY(NEW0(f->ctx, &gone, f->data.frame.n, "separated rows"));
        frg_status status = frgi_separated_rows(f, gone, &count);
        if (status >= 0 && count > 0) {
            status = frgi_frame_separate(&f->data.frame, f->ctx, &in, gone, count);
            frgi_design_destroy(&f->data.design, f->ctx);
            DROP(f->ctx, &f->matrix.values);
            DROP(f->ctx, &f->matrix.columns);
            DROP(f->ctx, &f->matrix.moments);
            status = status < 0 ? status : make_matrix(f);
        }
        DROP(f->ctx, &gone);
        TRY(status);
    }
    if (f->data.frame.n_separated > 0) {
        frgi_warn(f->ctx, W_SEPARATED, "%lld row%s left out that %s predicted perfectly",
                  (long long)f->data.frame.n_separated,
                  f->data.frame.n_separated == 1 ? " is" : "s are",
                  f->data.frame.n_separated == 1 ? "is" : "are");
    }
    return FRG_OK;
}

/** A regression without data, and the covariances asked for. */
typedef struct {
    frg_fe *f;
    frgi_vcov_request requests[VCOVS];
} job;

static frg_status open_job(job *j, frg_context *ctx, const frg_table *data, const frg_fe_opts *o)
{
    *j = (job){0};
    TRY(NEW0(ctx, &j->f, 1, "a regression"));
    j->f->ctx = ctx;
    j->f->data.table = data;
    frg_fe_defaults(&j->f->policy.options, sizeof j->f->policy.options);
    TRY(frgi_take_opts(ctx, &j->f->policy.options, sizeof j->f->policy.options, o));
    if (j->f->policy.options.n_vcov == 0) { /* the estimates are shown under some covariance */
        j->f->policy.options.vcov[0] = "iid";
        j->f->policy.options.n_vcov = 1;
    }
    return FRG_OK;
}

static void close_job(job *j, frg_context *ctx)
{
    for (size_t i = 0; i < VCOVS; i++) {
        frgi_vcov_request_destroy(&j->requests[i], ctx);
    }
    frg_fe_destroy(j->f);
}

/** The columns of l(), f() and d() beside those of the table. */
static frg_status make_lags(frg_fe *f)
{
    const char *const spec = f->policy.options.panel;
    const frgi_panel *const panel = f->policy.pool ? f->policy.pool->panel : NULL;
    TRY(frgi_panel_extend(&f->data.lagged, f->ctx, &f->data.formula, f->data.table, spec, false,
                          panel));
    if (f->data.lagged) {
        f->data.table = f->data.lagged;
        return frgi_strdup(f->ctx, &f->data.panel, spec, strlen(spec));
    }
    return FRG_OK;
}

/** y less the first stage, and the rows that have one. */
static frg_status impute(job *j, frg_status *worst)
{
    frg_fe *const f = j->f;
    int64_t uncompared = 0;
    TRY(frgi_two_stage_first(f, &uncompared, worst));
    if (!f->two_stage.first) { /* stopped */
        return FRG_OK;
    }
    frgi_frame_destroy(&f->data.frame, f->ctx);
    TRY(make_rows(f, j->requests, f->policy.options.n_vcov));
    f->data.frame.n_missing -= uncompared;
    f->data.frame.n_uncompared += uncompared;
    return FRG_OK;
}

/** Everything up to the rows, the effects' codes and the slopes; worst NULL: nothing is solved. */
static frg_status prepare(job *j, const char *formula, frg_status *worst)
{
    frg_fe *const f = j->f;
    const int count = f->policy.options.n_vcov;
    TRY(check_options(f->ctx, &f->policy.options));
    TRY(frgi_ssc_parse(&f->policy.ssc, f->ctx, f->policy.options.ssc));
    TRY(frgi_formula_create(&f->data.formula, f->ctx, formula, (int64_t)strlen(formula)));
    TRY(make_lags(f));
    TRY(frgi_variables_create(&f->data.variables, f->ctx, &f->data.formula, f->data.table));
    TRY(make_depvar(f));
    TRY(frgi_glm_choose(f));
    for (int i = 0; i < count; i++) {
        bool approx;
        TRY(frgi_vcov_request_create(&j->requests[i], f->ctx, f->policy.options.vcov[i],
                                     f->data.table));
        f->policy.leverages |= frgi_vcov_takes_leverages(&j->requests[i], &approx);
        f->policy.estimated_leverages |= approx;
    }
    TRY(frgi_two_stage_check(f));
    TRY(make_rows(f, j->requests, count));
    if (f->policy.options.plan && f->data.frame.n_effects == 0) {
        FAIL(f->ctx, E_OPTION, "plan: the formula has no fixed effects, whose solver a plan is");
    }
    return f->two_stage.text && worst ? impute(j, worst) : FRG_OK;
}

/** The seconds since the clock was read last, which is set to now. */
static double lap(double *clock)
{
    const double before = *clock;
    *clock = frgi_seconds();
    return *clock - before;
}

/** [y~ X~] in the place of [y X]. */
static frg_status project(frg_fe *f, frg_status *worst, bool *stopped)
{
    if (f->data.frame.n_effects) {
        return frgi_fe_absorb(f, worst, stopped);
    }
    if (f->data.centred) {
        frgi_fe_centre(f);
    }
    if (f->data.frame.sample) {
        frgi_sample_finish(f->data.frame.sample);
    }
    return FRG_OK;
}

/** Least squares, in one stage or two; *stopped as of `fit`. */
static frg_status linear(frg_fe *f, frg_status *worst, bool *stopped)
{
    /* [y~ X~] = (I - P_D) [y X]; without effects [y X] less its means, or as it is */
    TRY(project(f, worst, stopped));
    if (*stopped) {
        return FRG_OK;
    }
    /* X~'W X~ = L L' in formula order, columns without a pivot dropped;
     * b = (X~'W X~)^-1 X~'W y~,  e = y~ - X~ b;  with instruments X^ = P_Z~ X~ for X~ but in e */
    TRY(f->data.design.n_endogenous ? frgi_iv_estimate(f) : frgi_fe_estimate(f));
    *stopped = frgi_fe_ended(f, worst);
    return FRG_OK;
}

/** The algorithm; *stopped: it ended before there was a result. */
static frg_status fit(job *j, const char *formula, frg_status *worst, bool *stopped)
{
    frg_fe *const f = j->f;
    frg_fe_result *const r = &f->report.result;
    const double start = frgi_seconds();
    double clock = start;

    /* terms, effects and slopes of the formula; the rows in use; D as codes of levels */
    TRY(prepare(j, formula, worst));
    if (f->data.frame.n_effects == 0) { /* the demeaning is what devices have */
        TRY(frgi_host_alone(f->ctx, "a regression without fixed effects"));
    }
    *worst = beat(f, "rows", 1, *worst);
    *stopped = f->two_stage.text && !f->two_stage.first;
    if (*stopped) {
        return FRG_OK;
    }

    /* [y X], n x (p + 1), with the moments of its columns */
    TRY(make_matrix(f));
    TRY(leave_separated_out(f));
    *worst = beat(f, "columns", 2, *worst);
    *stopped = frgi_fe_ended(f, worst);
    if (*stopped) {
        return FRG_OK;
    }
    r->encode_seconds = lap(&clock);

    TRY(f->glm.family ? frgi_glm_fit(f, worst, stopped) : linear(f, worst, stopped));
    if (*stopped) {
        return FRG_OK;
    }
    TRY(f->two_stage.first ? frgi_two_stage_scores(f, worst) : FRG_OK);
    r->converged = *worst == FRG_OK;
    TRY(frgi_fe_make_means(f));
    TRY(describe_data(f));
    describe_effects(f);
    describe_estimates(f);
    TRY(f->glm.family ? frgi_glm_describe(f) : FRG_OK);
    r->solve_seconds = lap(&clock);
    *worst = beat(f, "covariances", 3, *worst);

    /* V = (X~'W X~)^-1 M (X~'W X~)^-1, M by the errors that are assumed (reg_vcov.c) */
    TRY(covariances(f, j->requests, f->policy.options.n_vcov, worst));
    TRY(frgi_iv_describe(f));
    r->vcov_seconds = lap(&clock);
    r->total_seconds = clock - start;
    *stopped = frgi_fe_ended(f, worst);
    f->fitted = !*stopped;
    return frgi_spool_check(f->ctx);
}

frg_status frgi_fe_fit_one(frg_fe **out, frg_context *ctx, const char *formula,
                           const frg_table *data, const frg_fe_opts *o, frgi_pool *pool)
{
    *out = NULL;
    job j;
    TRY(open_job(&j, ctx, data, o));
    j.f->policy.pool = pool;
    frg_status worst = FRG_OK;
    bool stopped = false;
    const frg_status status = fit(&j, formula, &worst, &stopped);
    j.f->policy.pool = NULL;
    if (status >= 0 && !stopped) {
        *out = j.f;
        j.f = NULL;
    }
    close_job(&j, ctx);
    return status < 0 ? status : worst;
}

frg_status frg_fe_fit(frg_fe **out, frg_context *ctx, const char *formula, const frg_table *data,
                      const frg_fe_opts *o)
{
    REQUIRE(ctx, out && ctx && formula && data,
            "frg_fe_fit takes a place, a context, a formula and a table");
    frgi_run_begins(ctx);
    return frgi_fe_fit_one(out, ctx, formula, data, o, NULL);
}

frg_status frg_fe_estimate(frg_context *ctx, const char *formula, const frg_table *data,
                           const frg_fe_opts *o, frg_fe_size *out)
{
    REQUIRE(ctx, ctx && formula && data && out,
            "frg_fe_estimate takes a context, a formula, a table and a place for the size");
    job j;
    frgi_factor_codes *codes = NULL;
    frgi_run_begins(ctx);
    TRY(open_job(&j, ctx, data, o));
    frg_status status = prepare(&j, formula, NULL);
    status = status < 0 ? status : make_design(j.f, &codes);
    status = status < 0 ? status : measure(j.f, out);
    frgi_factor_codes_free(&codes, ctx, j.f->data.design.n_variables);
    close_job(&j, ctx);
    return status;
}

const frg_fe_result *frg_fe_get(const frg_fe *f)
{
    return f ? &f->report.result : NULL;
}

void frg_fe_destroy(frg_fe *f)
{
    if (!f) {
        return;
    }
    frg_context *const ctx = f->ctx;
    while (f->report.vcovs) {
        frgi_vcov *const next = f->report.vcovs->next;
        frgi_vcov_destroy(f->report.vcovs, ctx);
        f->report.vcovs = next;
    }
    for (int i = 0; i < f->fit.n_dropped; i++) {
        DROP(ctx, &f->fit.dropped[i].reason);
    }
    frg_demean_destroy(f->absorbed.plan);
    frg_demean_destroy(f->absorbed.unsaved);
    DROP(ctx, &f->report.vcov_array);
    DROP(ctx, &f->absorbed.subproblems);
    DROP(ctx, &f->fit.dropped);
    DROP(ctx, &f->absorbed.rank_method);
    DROP(ctx, &f->absorbed.method);
    DROP(ctx, &f->report.factor_names);
    DROP(ctx, &f->report.column_names);
    DROP(ctx, &f->report.split_name);
    DROP(ctx, &f->report.split_value);
    DROP(ctx, &f->matrix.values);
    DROP(ctx, &f->matrix.columns);
    DROP(ctx, &f->matrix.shared);
    DROP(ctx, &f->matrix.moments);
    DROP(ctx, &f->matrix.reports);
    DROP(ctx, &f->fit.column_of);
    DROP(ctx, &f->fit.x);
    DROP(ctx, &f->fit.b);
    DROP(ctx, &f->fit.b_of_e);
    DROP(ctx, &f->fit.bread);
    DROP(ctx, &f->fit.e);
    frgi_iv_destroy(f);
    frgi_glm_destroy(f);
    frgi_fe_destroy_means(f);
    frgi_two_stage_destroy(f);
    frgi_program_destroy(&f->data.offset, ctx);
    frgi_syntax_free(&f->data.offset_text, ctx);
    frgi_design_destroy(&f->data.design, ctx);
    frgi_frame_destroy(&f->data.frame, ctx);
    frgi_variables_destroy(&f->data.variables, ctx, &f->data.formula);
    frgi_program_destroy(&f->data.depvar, ctx);
    frgi_formula_destroy(&f->data.formula, ctx);
    frg_table_destroy(f->data.lagged);
    DROP(ctx, &f->data.panel);
    DROP(ctx, &f);
}
