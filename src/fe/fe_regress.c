/* fe_regress.c - the regression on top of the demeaner.
 *
 *     formula -> rows, effects, columns (formula.c, fe_frame.c, fe_design.c)
 *     [y~ X~] = [y X] less its projection on the effects     (the demeaner; or less the means, or
 *                                                            as they are)
 *     drop what is absorbed or collinear, b, e               (fe_estimate.c)
 *     covariances (fe_vcov.c)
 *
 * Without effects but with an intercept the columns are centred and a column of ones is kept beside
 * them: the Gram matrix is then as well conditioned as the correlations allow.  The intercept as
 * written is mean(y) - mean(x)'b, and its covariances follow by the same linear map.
 */
#include "fe/fe_regress.h"
#include "fe/fe_demean.h"
#include "fe/fe_verify.h"
#include "formula/mistyped.h"

#include <math.h>
#include <omp.h>
#include <string.h>

static const double PERFECT = 1e-11; /* residuals below this share of y's variation are round-off */

const char *frgi_fe_term(const frg_fe *f, int32_t c)
{
    if (f->ones && c == 1) {
        return "(Intercept)";
    }
    return frgi_names_text(&f->design.names, f->design.columns[c - 1 - f->ones].name);
}

/* ---- options --------------------------------------------------------------------------------- */

void frg_fe_defaults(frg_fe_opts *o, size_t struct_size)
{
    frg_fe_opts defaults = {.struct_size = struct_size,
                            .vcov = {"iid"},
                            .n_vcov = 1,
                            .collin_tol = 1e-9,
                            .level = 0.95};
    frg_demean_defaults(&defaults.demean, sizeof defaults.demean);
    memcpy(o, &defaults, struct_size < sizeof defaults ? struct_size : sizeof defaults);
}

static frg_status check_options(frg_context *ctx, const frg_fe_opts *o)
{
    const int most = (int)(sizeof o->vcov / sizeof *o->vcov);
    if (o->n_vcov < 0 || o->n_vcov > most) {
        FAIL(ctx, E_OPTION, "n_vcov must be 0 .. %d, got %d", most, o->n_vcov);
    }
    if (!(o->level > 0 && o->level < 1)) {
        FAIL(ctx, E_OPTION, "level must lie between 0 and 1, got %.15g", o->level);
    }
    if (!(o->collin_tol >= 0 && o->collin_tol < 1)) {
        FAIL(ctx, E_OPTION, "collin_tol must be at least 0 and less than 1, got %.15g",
             o->collin_tol);
    }
    if (o->collin != FRG_COLLIN_SHARE && o->collin != FRG_COLLIN_FIXEST) {
        FAIL(ctx, E_OPTION, "collin must be share or fixest, got %d", (int)o->collin);
    }
    if (o->connected != FRG_CONNECTED_ALL && o->connected != FRG_CONNECTED_LARGEST) {
        FAIL(ctx, E_OPTION, "connected must be all or largest, got %d", (int)o->connected);
    }
    if (o->store && o->keep_effects) {
        FAIL(ctx, E_UNSUPPORTED, "the effects of a fit whose columns are kept in a store");
    }
    if (o->weights_kind < FRG_WEIGHTS_ANALYTIC || o->weights_kind > FRG_WEIGHTS_PROBABILITY) {
        FAIL(ctx, E_OPTION, "weights_kind must be analytic, frequency or probability, got %d",
             (int)o->weights_kind);
    }
    return FRG_OK;
}

/* ---- the matrix ------------------------------------------------------------------------------ */

typedef struct {
    frg_fe *f;
    frgi_factor_codes *codes;
    int64_t runs, blocks; /* consecutive blocks of FRGI_BLOCK rows that share their moments */
    const frgi_gram_ops *ops;
    frgi_moments *partial;
    double *scratch;
    int64_t scratch_each;
} filler;

/** One block of rows of all columns, with their moments. */
static void fill_block(const filler *w, int64_t block, double *scratch, frgi_moments *moments)
{
    frg_fe *const f = w->f;
    const int64_t *const rows = f->frame.rows;
    const int64_t n = f->frame.n, begin = block * FRGI_BLOCK;
    const int64_t m = n - begin < FRGI_BLOCK ? n - begin : FRGI_BLOCK;
    const double *const weights = f->frame.weights ? f->frame.weights + begin : NULL;
    for (int c = 0; c <= f->p; c++) {
        double *const to = f->matrix + c * n + begin;
        if (c == 0) {
            frgi_program_block(&f->depvar, rows, begin, m, to, scratch);
        } else if (f->ones && c == 1) {
            for (ptrdiff_t i = 0; i < m; i++) {
                to[i] = 1;
            }
        } else {
            frgi_design_block(&f->design, f->variables, w->codes, c - 1 - f->ones, rows, begin, m,
                              to, scratch);
        }
        moments[c] = frgi_moments_join(moments[c], w->ops->moments(to, weights, m));
    }
}

static void fill_runs(const filler *w)
{
    const frg_fe *const f = w->f;
    const int columns = f->p + 1;
#pragma omp parallel for schedule(dynamic, 1)                                                      \
    num_threads(frgi_pass_threads(f->ctx, f->frame.n *columns))
    for (int64_t r = 0; r < w->runs; r++) {
        double *const scratch = w->scratch + omp_get_thread_num() * w->scratch_each;
        const int64_t end = (r + 1) * w->blocks / w->runs;
        for (int64_t b = r * w->blocks / w->runs; b < end && !frgi_fe_gives_up(f); b++) {
            fill_block(w, b, scratch, w->partial + r * columns);
        }
    }
    for (int64_t r = 0; r < w->runs; r++) {
        for (int c = 0; c < columns; c++) {
            f->moments[c] = frgi_moments_join(f->moments[c], w->partial[r * columns + c]);
        }
    }
}

/** The squares of column c, whose mean is this small, may all have underflowed: what is left of it
 *  is meaningless. */
static bool too_small(const frg_fe *f, int c)
{
    const frgi_moments *const m = &f->moments[c];
    if (m->mean * m->mean + m->square / m->weight > FE_SMALLEST * FE_SMALLEST) {
        return false;
    }
    double largest = 0;
    for (int64_t i = 0; i < f->frame.n; i++) {
        largest = fmax(largest, fabs(f->matrix[c * f->frame.n + i]));
    }
    return largest > 0 && largest * f->frame.weight_root < FE_SMALLEST;
}

/** Names the first infinite value of a column, or the largest one where that is why its squares are
 *  none. */
static frg_status not_finite(const frg_fe *f, int c)
{
    const double *const x = f->matrix + c * f->frame.n;
    const char *const name =
        c ? frgi_fe_term(f, c) : frgi_names_text(&f->formula.names, f->formula.depvar);
    int64_t i = 0, largest = 0;
    while (i < f->frame.n && isfinite(x[i])) {
        largest = fabs(x[i]) > fabs(x[largest]) ? i : largest;
        i++;
    }
    const bool finite = i == f->frame.n;
    i = finite ? largest : i;
    const long long row = (f->frame.rows ? f->frame.rows[i] : i) + 1;
    frgi_at(f->ctx, "%s:%lld", name, row);
    if (finite) {
        FAIL(f->ctx, E_NOT_FINITE,
             "'%s', row %lld: %g is too %s to be squared and added; scale the column", name, row,
             x[i], fabs(x[i]) < 1 ? "small" : "large");
    }
    FAIL(f->ctx, E_NOT_FINITE, "'%s', row %lld: the value is %s", name, row,
         isnan(x[i]) ? "not a number" : "infinite");
}

static frg_status fill_matrix(frg_fe *f, frgi_factor_codes *codes)
{
    enum { RUNS = 64 };
    const int threads = frgi_pass_threads(f->ctx, f->frame.n * (f->p + 1));
    filler w = {.f = f,
                .codes = codes,
                .ops = frgi_gram_ops_of(f->ctx),
                .blocks = (f->frame.n + FRGI_BLOCK - 1) / FRGI_BLOCK};
    int64_t stack = frgi_design_scratch(&f->design, f->variables);
    stack = f->depvar.stack > stack ? f->depvar.stack : stack;
    w.runs = w.blocks < RUNS ? w.blocks : RUNS;
    w.scratch_each = stack * FRGI_BLOCK;
    frg_status status;
    TRY(NEW(f->ctx, &f->matrix, (f->p + 1) * f->frame.n, "the model matrix"));
    TRY(NEW0(f->ctx, &f->moments, f->p + 1, "moments"));
    TRY_TO(done, NEW0(f->ctx, &w.partial, w.runs * (f->p + 1), "moments"));
    TRY_TO(done, NEW(f->ctx, &w.scratch, threads * w.scratch_each, "expressions"));
    fill_runs(&w);
    for (int c = 0; c <= f->p && !frgi_fe_gives_up(f); c++) {
        if (!isfinite(f->moments[c].square) || too_small(f, c)) {
            status = not_finite(f, c);
            goto done;
        }
    }
done:
    DROP(f->ctx, &w.partial);
    DROP(f->ctx, &w.scratch);
    return status;
}

static void centre(frg_fe *f)
{
    const int64_t n = f->frame.n;
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, n))
    for (int c = 0; c <= f->p; c++) {
        double *const x = f->matrix + c * n;
        const double mean = c == 1 ? 0 : f->moments[c].mean;
        for (ptrdiff_t i = 0; i < n; i++) {
            x[i] -= mean;
        }
    }
}

/* ---- demeaning ------------------------------------------------------------------------------- */

/** The formula's slopes for the demeaner; *no_intercept: the effects that have slopes alone. */
static frg_status list_slopes(const frg_fe *f, frg_slope **slopes, uint64_t *no_intercept)
{
    *no_intercept = 0;
    TRY(NEW(f->ctx, slopes, f->formula.n_slopes, "slopes"));
    for (int k = 0; k < f->formula.n_slopes; k++) {
        (*slopes)[k] = (frg_slope){.factor = f->formula.slopes[k].effect,
                                   .z = f->frame.slopes + k * f->frame.n};
    }
    for (int q = 0; q < f->frame.n_effects; q++) {
        *no_intercept |= (uint64_t)!f->formula.effects[q].intercept << q;
    }
    return FRG_OK;
}

frg_status frgi_fe_plan(const frg_fe *f, frg_demean **out)
{
    const frgi_frame *const frame = &f->frame;
    const frg_array codes =
        frg_matrix_columns(frame->codes, FRG_I32, frame->n, frame->n_effects, frame->n);
    const frg_array weights = frg_vector(frame->weights, FRG_F64, frame->n);
    uint64_t no_intercept;
    frg_slope *slopes = NULL;
    TRY(list_slopes(f, &slopes, &no_intercept));
    const frg_status status = frg_demean_create(
        out, f->ctx, codes, frame->weights ? &weights : NULL, f->formula.n_slopes ? slopes : NULL,
        f->formula.n_slopes, no_intercept, &f->options.demean);
    DROP(f->ctx, &slopes);
    return status;
}

/** The remedy for a column, by what ended its run. */
static void warn_columns(const frg_fe *f, frg_status end)
{
    const frgi_error why = end == FRG_TIME_LIMIT    ? E_TIME_LIMIT
                           : end == FRG_INTERRUPTED ? E_STOPPED
                                                    : W_NOT_CONVERGED;
    for (int c = 0; c <= f->p; c++) {
        const frg_demean_column *const r = &f->columns[c];
        if (!r->converged) {
            const char *const name =
                c ? frgi_fe_term(f, c) : frgi_names_text(&f->formula.names, f->formula.depvar);
            const bool known = r->worst_factor >= 0 && r->worst_factor < f->frame.n_effects;
            frgi_warn(f->ctx, why,
                      "'%s' after %lld iterations: eta %.3g, largest level mean %.3g, at level "
                      "%lld of '%s'",
                      name, (long long)r->iterations, r->gradient, r->audit,
                      (long long)r->worst_level + 1,
                      known ? f->frame.keys[r->worst_factor].name : "?");
        }
    }
}

static frg_status copy_text(frg_context *ctx, char **out, const char *s)
{
    return frgi_strdup(ctx, out, s ? s : "", s ? strlen(s) : 0);
}

/** In blocks of columns that the caller's store keeps; what it has of an earlier run is not done
 *  again. */
static frg_status demean_blocks(frg_fe *f, frg_status *worst)
{
    const frg_column_store *const s = f->options.store;
    const int64_t n = f->frame.n, p = f->p + 1, block = s->block > 0 ? s->block : 8;
    int64_t done = 0;
    TRY(s->load(s->user, n, p, f->matrix, f->columns, &done, worst));
    REQUIRE(f->ctx, done >= 0 && done < p, "the store has %lld of %lld columns", (long long)done,
            (long long)p);
    for (;;) {
        const int64_t m = p - done < block ? p - done : block;
        const frg_array some = frg_matrix_columns(f->matrix + done * n, FRG_F64, n, m, n);
        const frg_status status = frgi_fe_demean_run(f->plan, some, some, f->columns + done, NULL);
        TRY(status);
        f->stopped = status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT;
        done += f->stopped ? 0 : m;
        if (done == p) {
            *worst = status > 0 ? status : *worst;
            return FRG_OK;
        }
        TRY(s->save(s->user, n, p, f->matrix, f->columns, done,
                    status > 0 && !f->stopped ? status : *worst, f->stopped));
        *worst = status > 0 ? status : *worst;
        if (f->stopped) {
            return FRG_OK;
        }
    }
}

/** Copies the reports of the subproblems: the plan may go.  Their methods are texts of the
 *  library. */
static frg_status copy_subproblems(frg_fe *f, int64_t n)
{
    TRY(NEW0(f->ctx, &f->subproblems, n, "subproblems"));
    for (int64_t i = 0; i < n; i++) {
        TRY(frg_demean_get_part(f->plan, i, &f->subproblems[i]));
    }
    f->result.parts = f->subproblems;
    return FRG_OK;
}

/** Whether a fit with so much to do that a stop ends it was stopped; then there is no result. */
static bool gave_up(frg_fe *f, frg_status *worst)
{
    const frg_status now = frgi_stopped(f->ctx);
    *worst = now != FRG_OK ? now : *worst;
    f->stopped = frgi_fe_stops(f) && (*worst == FRG_INTERRUPTED || *worst == FRG_TIME_LIMIT);
    return f->stopped;
}

/** Demeans in place; *worst becomes the demeaner's status where that is positive. */
static frg_status demean(frg_fe *f, frg_status *worst)
{
    const frg_array all = frg_matrix_columns(f->matrix, FRG_F64, f->frame.n, f->p + 1, f->frame.n);
    TRY(frgi_fe_plan(f, &f->plan));
    TRY(NEW0(f->ctx, &f->columns, f->p + 1, "reports"));
    if (f->options.store) {
        TRY(demean_blocks(f, worst));
        if (f->stopped) {
            return FRG_OK;
        }
    } else {
        const frg_status status = frgi_fe_demean_run(f->plan, all, all, f->columns, NULL);
        TRY(status);
        *worst = status > 0 ? status : *worst;
    }
    if (gave_up(f, worst)) {
        return FRG_OK;
    }
    frg_demean_rank rank;
    TRY(frg_demean_get_rank(f->plan, &rank));
    f->rank = (double)rank.rank;
    f->rank_exact = rank.exact;
    frg_demean_report report = frg_demean_get_report(f->plan);
    TRY(copy_text(f->ctx, &f->rank_method, rank.method));
    TRY(copy_text(f->ctx, &f->method, report.method));
    report.method = f->method;
    f->result.demean = report;
    f->result.n_components = rank.components;
    TRY(copy_subproblems(f, report.n_parts));
    f->result.n_demeaned = f->p + 1;
    f->result.columns = f->columns;
    warn_columns(f, *worst);
    if (!rank.exact) {
        const bool pivots = strcmp(rank.method, "pivots") == 0;
        frgi_warn(f->ctx, W_DOF_BOUND,
                  pivots ? "the rank of the effects is %lld by the %s of a factor, not verified"
                         : "the rank of the effects is at most %lld (%s)",
                  (long long)rank.rank, f->rank_method);
    }
    if (!f->options.keep_effects) {
        frg_demean_destroy(f->plan);
        f->plan = NULL;
    }
    return FRG_OK;
}

/* ---- the result ------------------------------------------------------------------------------ */

static frg_status describe(frg_fe *f)
{
    frg_fe_result *const r = &f->result;
    const frgi_frame *const frame = &f->frame;
    const double n = frame->count, parameters = f->k + f->rank;
    TRY(NEW(f->ctx, &f->factor_names, frame->n_effects, "names"));
    for (int q = 0; q < frame->n_effects; q++) {
        f->factor_names[q] = frame->keys[q].name;
    }
    r->formula = f->formula.text;
    r->depvar = frgi_names_text(&f->formula.names, f->formula.depvar);
    TRY(NEW(f->ctx, &f->column_names, r->n_demeaned, "names"));
    for (int c = 0; c < (int)r->n_demeaned; c++) {
        f->column_names[c] = c ? frgi_fe_term(f, c) : r->depvar;
    }
    r->column_names = f->column_names;
    r->n_rows = frame->n_rows;
    r->n = (int64_t)n;
    r->n_missing = frame->n_missing;
    r->n_subset = frame->n_subset;
    r->n_zero_weight = frame->n_zero_weight;
    r->n_singleton = frame->n_singleton;
    r->singleton_rounds = frame->singleton_rounds;
    r->n_disconnected = frame->n_disconnected;
    r->n_groups = frame->n_groups;
    r->n_coefficients = f->k;
    r->dropped = f->dropped;
    r->n_factors = frame->n_effects;
    r->factor_name = f->factor_names;
    r->factor_levels = frame->levels;
    r->rank = (int64_t)f->rank;
    r->rank_method = f->rank_method ? f->rank_method : "none";
    r->df_residual = (int64_t)(n - parameters);
    r->rss = ldexp(f->rss, frame->weight_exponent);
    r->tss = ldexp(f->tss, frame->weight_exponent);
    r->r2 = f->perfect ? 1 : 1 - f->rss / f->tss;
    r->r2_adjusted = 1 - (1 - r->r2) * (n - 1) / (n - parameters);
    r->r2_within = frame->n_effects == 0 ? (double)NAN : f->within > 0 ? 1 - f->rss / f->within : 1;
    r->rmse = ldexp(sqrt(f->rss / n), frame->weight_exponent / 2);
    f->perfect |= f->rss <= PERFECT * PERFECT * f->tss;
    if (r->df_residual <= 0) {
        r->r2_adjusted = (double)NAN;
    }
    if (f->perfect) {
        frgi_warn(f->ctx, W_PERFECT, "'%s' is fitted without error", r->depvar);
    }
    return FRG_OK;
}

/** The requests' covariances; what of them was taken over is empty afterwards. */
static frg_status covariances(frg_fe *f, frgi_vcov_request *requests, int count)
{
    frg_fe_result *const r = &f->result;
    TRY(NEW0(f->ctx, &f->vcov_array, count, "covariances"));
    for (int i = 0; i < count; i++) {
        frgi_vcov *v;
        TRY(frgi_vcov_create(&v, f, &requests[i], &f->ssc));
        v->next = f->vcovs;
        f->vcovs = v;
        f->vcov_array[i] = v->v;
    }
    r->vcov = f->vcov_array;
    r->n_vcov = count;
    r->coefficients = count ? f->vcov_array[0].coefficients : NULL;
    return FRG_OK;
}

/* ---- the fit --------------------------------------------------------------------------------- */

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
    const frgi_syntax *const s = &f->formula.syntax;
    TRY(frgi_program_create(&f->depvar, f->ctx, s, s->left, f->table));
    if (f->depvar.column && f->depvar.column->kind == FRG_CATEGORY) {
        TRY(frgi_refuse_mistyped(f->ctx, s, s->left, f->depvar.column));
        frgi_syntax_at(s, f->ctx, s->left);
        FAIL(f->ctx, E_TYPE, "the dependent variable '%s' holds text", f->depvar.column->name);
    }
    return FRG_OK;
}

static frg_status make_rows(frg_fe *f, const frgi_vcov_request *requests, int count)
{
    frgi_key clusters[FRGI_CLUSTERS * (sizeof f->options.vcov / sizeof *f->options.vcov)];
    int n_clusters = 0;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < requests[i].n; k++) {
            clusters[n_clusters++] = requests[i].keys[k];
        }
    }
    return frgi_frame_create(&f->frame, f->ctx,
                             &(frgi_frame_input){.table = f->table,
                                                 .formula = &f->formula,
                                                 .variables = f->variables,
                                                 .depvar = &f->depvar,
                                                 .clusters = clusters,
                                                 .n_clusters = n_clusters,
                                                 .options = &f->options});
}

static frg_status no_columns(const frg_fe *f)
{
    FAIL(f->ctx, E_NO_REGRESSOR, "no regressor is left: %s",
         f->formula.n_terms ? "every factor has a single level"
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
    const bool spanned = spans_constant(&f->formula);
    TRY(frgi_design_create(&f->design, codes, f->ctx, &f->formula, f->variables,
                           spanned || f->formula.intercept, f->frame.rows, f->frame.n));
    f->ones = !spanned && f->formula.intercept;
    f->centred = f->ones && f->frame.n_effects == 0;
    f->p = f->design.n + f->ones;
    return FRG_OK;
}

static frg_status make_matrix(frg_fe *f)
{
    const bool effects = f->frame.n_effects > 0;
    frgi_factor_codes *codes = NULL;
    TRY(make_design(f, &codes));
    frg_status status = FRG_OK;
    if (f->p == 0 && (!effects || f->formula.n_terms)) {
        status = no_columns(f);
    }
    status = status < 0 ? status : fill_matrix(f, codes);
    frgi_factor_codes_free(&codes, f->ctx, f->design.n_variables);
    return status;
}

enum { VCOVS = sizeof((frg_fe_opts *)0)->vcov / sizeof *((frg_fe_opts *)0)->vcov };

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
    j->f->table = data;
    frg_fe_defaults(&j->f->options, sizeof j->f->options);
    TRY(frgi_take_opts(ctx, &j->f->options, sizeof j->f->options, o));
    if (j->f->options.n_vcov == 0) { /* the estimates are shown under some covariance */
        j->f->options.vcov[0] = "iid";
        j->f->options.n_vcov = 1;
    }
    frgi_run_begins(ctx);
    return FRG_OK;
}

static void close_job(job *j, frg_context *ctx)
{
    for (size_t i = 0; i < VCOVS; i++) {
        frgi_vcov_request_destroy(&j->requests[i], ctx);
    }
    frg_fe_destroy(j->f);
}

/** Everything up to the rows, the effects' codes and the slopes. */
static frg_status prepare(job *j, const char *formula)
{
    frg_fe *const f = j->f;
    const int count = f->options.n_vcov;
    TRY(check_options(f->ctx, &f->options));
    TRY(frgi_ssc_parse(&f->ssc, f->ctx, f->options.ssc));
    TRY(frgi_formula_create(&f->formula, f->ctx, formula, (int64_t)strlen(formula)));
    TRY(frgi_variables_create(&f->variables, f->ctx, &f->formula, f->table));
    TRY(make_depvar(f));
    for (int i = 0; i < count; i++) {
        TRY(frgi_vcov_request_create(&j->requests[i], f->ctx, f->options.vcov[i], f->table));
    }
    return make_rows(f, j->requests, count);
}

static frg_status fit(job *j, const char *formula, frg_status *worst)
{
    frg_fe *const f = j->f;
    frg_fe_result *const r = &f->result;
    const double start = frgi_seconds();
    TRY(prepare(j, formula));
    *worst = beat(f, "rows", 1, *worst);
    TRY(make_matrix(f));
    *worst = beat(f, "columns", 2, *worst);
    if (gave_up(f, worst)) {
        return FRG_OK;
    }
    const double encoded = frgi_seconds();
    r->encode_seconds = encoded - start;
    if (f->frame.n_effects) {
        TRY(demean(f, worst));
        if (f->stopped) {
            return FRG_OK;
        }
    } else if (f->centred) {
        centre(f);
    }
    r->converged = *worst == FRG_OK;
    TRY(frgi_fe_estimate(f));
    if (gave_up(f, worst)) {
        return FRG_OK;
    }
    TRY(describe(f));
    const double solved = frgi_seconds();
    r->solve_seconds = solved - encoded;
    *worst = beat(f, "covariances", 3, *worst);
    TRY(covariances(f, j->requests, f->options.n_vcov));
    r->vcov_seconds = frgi_seconds() - solved;
    r->total_seconds = frgi_seconds() - start;
    f->fitted = !gave_up(f, worst);
    return FRG_OK;
}

frg_status frg_fe_fit(frg_fe **out, frg_context *ctx, const char *formula, const frg_table *data,
                      const frg_fe_opts *o)
{
    REQUIRE(ctx, out && ctx && formula && data,
            "frg_fe_fit takes a place, a context, a formula and a table");
    *out = NULL;
    job j;
    TRY(open_job(&j, ctx, data, o));
    frg_status worst = FRG_OK;
    const frg_status status = fit(&j, formula, &worst);
    if (status >= 0 && !j.f->stopped) {
        *out = j.f;
        j.f = NULL;
    }
    close_job(&j, ctx);
    return status < 0 ? status : worst;
}

/** What the columns, the plan and a factor would take. */
static frg_status measure(const frg_fe *f, frg_fe_size *out)
{
    const frgi_frame *const frame = &f->frame;
    *out = (frg_fe_size){.n = frame->n,
                         .n_factors = frame->n_effects,
                         .n_columns = f->p + 1,
                         .seconds = (double)NAN};
    out->matrix_bytes = frgi_mul(frgi_mul((size_t)out->n_columns, (size_t)out->n), sizeof(double));
    if (frame->n_effects == 0) {
        return FRG_OK;
    }
    frg_slope *slopes = NULL;
    frg_demean_shape shape = {.n = frame->n,
                              .p = out->n_columns,
                              .n_factors = frame->n_effects,
                              .levels = frame->levels,
                              .weighted = frame->weights != NULL,
                              .n_slopes = f->formula.n_slopes};
    TRY(list_slopes(f, &slopes, &shape.no_intercept));
    shape.slopes = slopes;
    const frg_status status =
        frg_demean_estimate(f->ctx, &shape, &f->options.demean, &out->plan_bytes,
                            &out->with_factor_bytes, &out->seconds);
    DROP(f->ctx, &slopes);
    return status;
}

frg_status frg_fe_measure(frg_context *ctx, const char *formula, const frg_table *data,
                          const frg_fe_opts *o, frg_fe_size *out)
{
    REQUIRE(ctx, ctx && formula && data && out,
            "frg_fe_measure takes a context, a formula, a table and a place for the size");
    job j;
    frgi_factor_codes *codes = NULL;
    TRY(open_job(&j, ctx, data, o));
    frg_status status = prepare(&j, formula);
    status = status < 0 ? status : make_design(j.f, &codes);
    status = status < 0 ? status : measure(j.f, out);
    frgi_factor_codes_free(&codes, ctx, j.f->design.n_variables);
    close_job(&j, ctx);
    return status;
}

const frg_fe_result *frg_fe_get(const frg_fe *f)
{
    return f ? &f->result : NULL;
}

void frg_fe_destroy(frg_fe *f)
{
    if (!f) {
        return;
    }
    frg_context *const ctx = f->ctx;
    while (f->vcovs) {
        frgi_vcov *const next = f->vcovs->next;
        frgi_vcov_destroy(f->vcovs, ctx);
        f->vcovs = next;
    }
    for (int i = 0; i < f->result.n_dropped; i++) {
        DROP(ctx, &f->dropped[i].reason);
    }
    frg_demean_destroy(f->plan);
    DROP(ctx, &f->vcov_array);
    DROP(ctx, &f->subproblems);
    DROP(ctx, &f->dropped);
    DROP(ctx, &f->rank_method);
    DROP(ctx, &f->method);
    DROP(ctx, &f->factor_names);
    DROP(ctx, &f->column_names);
    DROP(ctx, &f->matrix);
    DROP(ctx, &f->moments);
    DROP(ctx, &f->columns);
    DROP(ctx, &f->column_of);
    DROP(ctx, &f->x);
    DROP(ctx, &f->b);
    DROP(ctx, &f->bread);
    DROP(ctx, &f->e);
    frgi_design_destroy(&f->design, ctx);
    frgi_frame_destroy(&f->frame, ctx);
    frgi_variables_destroy(&f->variables, ctx, &f->formula);
    frgi_program_destroy(&f->depvar, ctx);
    frgi_formula_destroy(&f->formula, ctx);
    DROP(ctx, &f);
}
