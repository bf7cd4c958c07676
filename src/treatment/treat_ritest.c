/* treat_ritest.c - randomisation inference: how often a permuted regressor does as much as it did
 * itself (Fisher 1935).
 *
 *     d_r = d, its values in the rows in use, or those of groups of rows, in the r-th random order,
 *           each within its stratum
 *     s_r = the estimate or the t statistic of d_r in the place of d, s that of d
 *     p = #(|s_r| >= |s|) / reps
 *
 * A draw is a regression like any other: BLOCK of them are the models sw(d_1, d_2, ...) of one
 * call, which share rows, plan and the demeaned columns beside d (reg_multi.c), so that every
 * covariance, family and option of a fit is one of a draw.  d itself is fitted along with the first
 * of them.  A draw depends on the seed and its number alone, and its bits on nothing beside it.
 */
#include <math.h>
#include <string.h>

#include "core/context.h"
#include "core/opts.h"
#include "formula/keys.h"
#include "io/io.h"
#include "regress/regress.h"

enum { BLOCK = 64, CELLS = 1 << 26 }; /* draws at a time, and their values at most */
static const uint64_t STREAM = 0x72697465;
static const double TIE = 1e-12; /* a draw that gives s itself counts, but for its rounding */
static const double SAME = 1e-6; /* between a fit and the same one, at any tolerance */

#define OPTIONS_OF frg_ritest_opts
static const frg_option options[] = {
#include "treatment/ritest_opts.def"
    {.name = NULL}};

const frg_option *frg_ritest_options(void)
{
    return options;
}

void frg_ritest_defaults(frg_ritest_opts *o, size_t struct_size)
{
    frg_ritest_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

/** The permutations of one fit. */
typedef struct {
    const frg_fe *f;
    frg_context *ctx;
    frg_ritest_opts o;
    frg_fe_opts fit;              /* of a draw */
    const frg_coefficient *shown; /* of d */
    const frg_column *column;     /* d */
    int32_t node;                 /* where it stands in the formula */
    uint64_t seed;
    int64_t m;       /* values that are permuted: rows, or groups */
    double *values;  /* m */
    int32_t *groups; /* n: of each row in use; NULL: rows are permuted */
    int64_t *places; /* m: of the values, stratum after stratum; NULL: they are one stratum */
    int64_t *begins; /* m: where in `places` the stratum of each begins */
    int64_t n_strata;
    double *permuted; /* block x m */
    double *drawn;    /* of the table: a column */
    char **names;     /* block */
    int block;
    double *statistics; /* reps */
    int64_t done;       /* of them */
    double observed;
} job;

/* ---- the regressor --------------------------------------------------------------------------- */

/** The node of the one term that is the column; E_OPTION where it is none, or stands elsewhere. */
static frg_status find_node(job *j)
{
    const frgi_formula *const f = &j->f->data.formula;
    const frgi_syntax *const s = &f->syntax;
    const char *const name = j->column->name;
    j->node = -1;
    for (int32_t k = 0; k < f->n_exogenous; k++) {
        const int32_t node = f->terms[k].n == 1 ? f->nodes[f->terms[k].atom[0]] : -1;
        if (node >= 0 && frgi_syntax_names(s, node, name)) {
            j->node = node;
        }
    }
    if (frgi_syntax_count(s, name) != 1 || j->node < 0) {
        FAIL(j->ctx, E_OPTION,
             "ritest: '%s' is not one regressor of '%s' that stands nowhere else in it", name,
             f->text);
    }
    return FRG_OK;
}

static const frg_coefficient *coefficient(const frg_fe_result *r, const char *name,
                                          const char *behind)
{
    const size_t length = strlen(name);
    for (int i = 0; i < r->n_coefficients; i++) {
        const char *const term = r->coefficients[i].term;
        if (strncmp(term, name, length) == 0 && strcmp(term + length, behind) == 0) {
            return &r->coefficients[i];
        }
    }
    return NULL;
}

/** Why the column has no coefficient. */
static frg_status no_term(const job *j)
{
    const frg_fe_result *const r = &j->f->report.result;
    for (int i = 0; i < r->n_dropped; i++) {
        if (strcmp(r->dropped[i].term, j->column->name) == 0) {
            FAIL(j->ctx, E_OPTION, "ritest: '%s' was dropped from the regression, %s",
                 j->column->name, r->dropped[i].reason);
        }
    }
    FAIL(j->ctx, E_OPTION, "ritest: '%s' has no coefficient of its own%s", j->column->name,
         r->iv ? " in the second stage" : "");
}

/** The column, its place and its coefficient; a logical's has TRUE behind it, with which it may be
 *  named, too. */
static frg_status find_variable(job *j)
{
    const frg_table *const table = j->f->data.table;
    const char *const name = j->o.variable;
    const size_t length = name ? strlen(name) : 0;
    if (!name) {
        FAIL(j->ctx, E_OPTION, "ritest: no variable is named");
    }
    j->column = frg_table_find(table, name);
    if (!j->column && length > 4 && strcmp(name + length - 4, "TRUE") == 0) {
        char *bare;
        TRY(frgi_strdup(j->ctx, &bare, name, length - 4));
        j->column = frg_table_find(table, bare);
        DROP(j->ctx, &bare);
    }
    if (!j->column) {
        return frgi_column_named(&j->column, j->ctx, name, "ritest", table);
    }
    TRY(find_node(j));
    if (j->column->kind == FRG_CATEGORY) {
        FAIL(j->ctx, E_TYPE, "ritest: '%s' holds text, and one number is permuted",
             j->column->name);
    }
    const frg_fe_result *const r = &j->f->report.result;
    const bool one = j->column->kind == FRG_BOOL && !coefficient(r, j->column->name, "FALSE");
    j->shown = coefficient(r, j->column->name, one ? "TRUE" : "");
    return j->shown ? FRG_OK : no_term(j);
}

/* ---- what is permuted ------------------------------------------------------------------------ */

/** The codes of the rows in use by a column in which none of them is missing; `what` it holds. */
static frg_status encode_rows(job *j, const char *name, const char *what, const frg_column **by,
                              frgi_key_job *key)
{
    const frgi_frame *const frame = &j->f->data.frame;
    TRY(frgi_column_named(by, j->ctx, name, "ritest", j->f->data.table));
    for (int64_t i = 0; i < frame->n; i++) {
        const int64_t row = frame->rows ? frame->rows[i] : i;
        double value;
        frgi_column_block(*by, NULL, row, 1, &value);
        if (isnan(value)) {
            FAIL(j->ctx, E_PERMUTED, "ritest: the %s '%s' is missing in row %lld of the fit", what,
                 (*by)->name, frgi_nth(j->ctx, row));
        }
    }
    TRY(NEW(j->ctx, &key->codes, frame->n, "groups of a permutation"));
    key->column = *by;
    return frgi_keys_encode(j->ctx, key, 1, frame->rows, frame->n);
}

/** The value of each group, which all of its rows have. */
static frg_status group_rows(job *j)
{
    const frgi_frame *const frame = &j->f->data.frame;
    const frg_column *by;
    frgi_key_job key = {.codes = NULL};
    const frg_status status = encode_rows(j, j->o.cluster, "group", &by, &key);
    j->groups = key.codes;
    TRY(status);
    j->m = 0;
    for (int64_t i = 0; i < frame->n; i++) { /* groups are numbered as they come */
        const int32_t g = j->groups[i];
        const double value = j->values[i];
        if (g == j->m) {
            j->values[j->m++] = value;
        } else if (j->values[g] != value) {
            const int64_t row = frame->rows ? frame->rows[i] : i;
            FAIL(j->ctx, E_PERMUTED,
                 "ritest: '%s' is not the same in all rows of a value of '%s', as in row %lld",
                 j->column->name, by->name, frgi_nth(j->ctx, row));
        }
    }
    return FRG_OK;
}

/** strata: from those of the n rows to those of the m values. */
static frg_status value_strata(job *j, const frg_column *by, int32_t *strata)
{
    const frgi_frame *const frame = &j->f->data.frame;
    int64_t seen = 0;
    for (int64_t i = 0; i < frame->n; i++) {
        const int64_t g = j->groups ? j->groups[i] : i;
        if (g == seen) {
            strata[seen++] = strata[i];
        } else if (strata[g] != strata[i]) {
            const int64_t row = frame->rows ? frame->rows[i] : i;
            FAIL(j->ctx, E_PERMUTED,
                 "ritest: a value of '%s' lies in several strata of '%s', as in row %lld",
                 j->o.cluster, by->name, frgi_nth(j->ctx, row));
        }
    }
    return FRG_OK;
}

/** The places of the values by stratum; E_PERMUTED where no order differs from another. */
static frg_status sort_strata(job *j, const frg_column *by, const int32_t *strata)
{
    int64_t *ends;
    bool varies = false;
    TRY(NEW(j->ctx, &j->places, j->m, "values by stratum"));
    TRY(NEW(j->ctx, &j->begins, j->m, "values by stratum"));
    TRY(NEW0(j->ctx, &ends, j->n_strata + 1, "strata"));
    for (int64_t i = 0; i < j->m; i++) {
        ends[strata[i] + 1]++;
    }
    for (int64_t k = 0; k < j->n_strata; k++) {
        ends[k + 1] += ends[k]; /* ends[k] is the begin of stratum k until its values are placed */
    }
    for (int64_t i = 0; i < j->m; i++) {
        j->places[ends[strata[i]]++] = i;
    }
    for (int64_t p = 0; p < j->m; p++) {
        const int32_t k = strata[j->places[p]];
        j->begins[p] = k > 0 ? ends[k - 1] : 0;
        varies |= j->values[j->places[p]] != j->values[j->places[j->begins[p]]];
    }
    DROP(j->ctx, &ends);
    if (!varies) {
        FAIL(j->ctx, E_PERMUTED,
             "ritest: '%s' has one value within each stratum of '%s', which no order changes",
             j->column->name, by->name);
    }
    return FRG_OK;
}

static frg_status stratify(job *j)
{
    const frg_column *by;
    frgi_key_job key = {.codes = NULL};
    frg_status status = encode_rows(j, j->o.strata, "stratum", &by, &key);
    j->n_strata = key.n_levels;
    status = status < 0 ? status : value_strata(j, by, key.codes);
    status = status < 0 ? status : sort_strata(j, by, key.codes);
    DROP(j->ctx, &key.codes);
    return status;
}

/** The names of the drawn columns, which no other has. */
static frg_status name_columns(job *j)
{
    frgi_text wanted = {0};
    frg_status status = FRG_OK;
    for (int k = 0; k < j->block && status >= 0; k++) {
        wanted.length = 0;
        status = frgi_text_printf(j->ctx, &wanted, "%s permuted %d", j->column->name, k + 1);
        status =
            status < 0 ? status : frgi_table_free_name(j->f->data.table, wanted.text, &j->names[k]);
    }
    frgi_text_free(j->ctx, &wanted);
    return status;
}

static frg_status prepare(job *j)
{
    const frgi_frame *const frame = &j->f->data.frame;
    const int64_t room = CELLS / (frame->n + 1);
    j->block = room < 1 ? 1 : room < BLOCK ? (int)room : BLOCK;
    j->m = frame->n;
    TRY(NEW(j->ctx, &j->values, frame->n, "values that are permuted"));
    for (int64_t i = 0; i < frame->n; i++) {
        frgi_column_block(j->column, NULL, frame->rows ? frame->rows[i] : i, 1, &j->values[i]);
    }
    j->n_strata = 1;
    TRY(j->o.cluster ? group_rows(j) : FRG_OK);
    TRY(j->o.strata ? stratify(j) : FRG_OK);
    TRY(NEW(j->ctx, &j->permuted, j->block * j->m, "permuted values"));
    TRY(NEW(j->ctx, &j->drawn, frame->n_rows, "a permuted column"));
    TRY(NEW0(j->ctx, &j->names, j->block, "names of permuted columns"));
    return name_columns(j);
}

/* ---- draws ----------------------------------------------------------------------------------- */

/** The values in the order of draw r, from 0; -1: as they stand. */
static void permute(const job *j, int64_t r, double *out)
{
    memcpy(out, j->values, (size_t)j->m * sizeof *out);
    for (int64_t i = j->m - 1; i > 0 && r >= 0; i--) {
        uint32_t word[4];
        frgi_philox(j->seed, STREAM, (uint64_t)r, (uint64_t)i, word);
        const uint64_t random = (uint64_t)word[0] << 32 | word[1];
        const int64_t first = j->begins ? j->begins[i] : 0;
        const uint64_t choices = (uint64_t)(i - first + 1);
        const int64_t k = first + (int64_t)((unsigned __int128)random * choices >> 64);
        double *const one = &out[j->places ? j->places[i] : i];
        double *const other = &out[j->places ? j->places[k] : k];
        const double value = *one;
        *one = *other;
        *other = value;
    }
}

/** The table with the columns of the draws first .. first + count - 1; missing in rows that are not
 *  in use. */
static frg_status add_columns(job *j, frg_table *t, int64_t first, int count)
{
    const frgi_frame *const frame = &j->f->data.frame;
#pragma omp parallel for schedule(dynamic, 1) num_threads(frg_threads(j->ctx))
    for (int k = 0; k < count; k++) {
        permute(j, first + k, j->permuted + k * j->m);
    }
    for (int k = 0; k < count; k++) {
        const double *const values = j->permuted + k * j->m;
        for (int64_t i = 0; i < frame->n_rows && frame->rows; i++) {
            j->drawn[i] = (double)NAN;
        }
        for (int64_t i = 0; i < frame->n; i++) {
            j->drawn[frame->rows ? frame->rows[i] : i] = values[j->groups ? j->groups[i] : i];
        }
        TRY(frg_table_add_numbers(t, j->names[k], j->drawn));
    }
    return FRG_OK;
}

/** The formula with the drawn columns, a model each, in the place of d. */
static frg_status write_formula(const job *j, int count, frgi_text *out)
{
    const frgi_syntax *const s = &j->f->data.formula.syntax;
    const frgi_node *const d = &s->nodes[j->node];
    TRY(frgi_text_printf(j->ctx, out, "%.*s%s", d->at, s->text, count > 1 ? "sw(" : ""));
    for (int k = 0; k < count; k++) {
        TRY(frgi_text_printf(j->ctx, out, "%s`%s`", k > 0 ? ", " : "", j->names[k]));
    }
    return frgi_text_printf(j->ctx, out, "%s%s", count > 1 ? ")" : "", s->text + d->at + d->length);
}

/** The statistics of the fits of a block. */
static frg_status take_statistics(job *j, const frg_fe_many *fits, int64_t first, int count)
{
    for (int k = 0; k < count; k++) {
        const frg_fe_result *const r = frg_fe_get(frg_fe_many_get(fits, k));
        const frg_coefficient *const c =
            r && frg_fe_many_count(fits) == count ? coefficient(r, j->names[k], "") : NULL;
        if (!c) {
            FAIL(j->ctx, E_NO_REGRESSOR,
                 "ritest: in the order of draw %lld '%s' is collinear with the effects or the "
                 "other regressors",
                 (long long)(first + k + 1), j->column->name);
        }
        const double s = j->o.statistic == FRG_RITEST_STATISTIC ? c->statistic : c->estimate;
        if (first + k >= 0) {
            j->statistics[first + k] = s;
            continue;
        }
        j->observed = s;
        if (!(fabs(c->estimate - j->shown->estimate) <= SAME * fabs(j->shown->estimate))) {
            FAIL(
                j->ctx, E_OPTION,
                "ritest: the options are not those of the fit: they make the estimate %.9g of %.9g",
                c->estimate, j->shown->estimate);
        }
    }
    return FRG_OK;
}

/** Draws first .. first + count - 1; *worst as of the fits. */
static frg_status run_block(job *j, int64_t first, int count, frg_status *worst)
{
    frg_table *t = NULL;
    frg_fe_many *fits = NULL;
    frgi_text formula = {0};
    frg_status status;
    const int warnings = frg_warning_count(j->ctx); /* those of the fit say what there is to say */
    TRY_TO(done, frgi_table_borrow(&t, j->ctx, j->f->data.table));
    TRY_TO(done, add_columns(j, t, first, count));
    TRY_TO(done, write_formula(j, count, &formula));
    TRY_TO(done, frgi_fe_fit_many(&fits, j->ctx, formula.text, t, &j->fit));
    *worst = status > 0 ? status : *worst;
    if (fits) { /* not stopped */
        status = take_statistics(j, fits, first, count);
    }
done:
    frgi_warnings_forget(j->ctx, warnings);
    frgi_text_free(j->ctx, &formula);
    frg_fe_many_destroy(fits);
    frg_table_destroy(t);
    return status;
}

static bool is_stop(frg_status status)
{
    return status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT;
}

/** All draws, behind d itself, whose number is -1. */
static frg_status run_blocks(job *j, frg_status *worst)
{
    int64_t first = -1;
    while (first < j->o.reps && !is_stop(*worst)) {
        const frg_progress p = {.solver = "fe",
                                .phase = "permutations",
                                .done = first + 1,
                                .total = j->o.reps,
                                .residual = (double)NAN,
                                .target = (double)NAN};
        const frg_status beat = frgi_heartbeat(j->ctx, &p);
        *worst = beat > 0 ? beat : *worst;
        const int64_t left = j->o.reps - first;
        const int count = left < j->block ? (int)left : j->block;
        TRY(is_stop(*worst) ? FRG_OK : run_block(j, first, count, worst));
        j->done = is_stop(*worst) ? first : first + count;
        first += count;
    }
    return FRG_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

static void count_draws(const job *j, frg_status worst, frg_ritest *out)
{
    const int64_t reps = j->o.reps;
    const double least = fabs(j->observed) * (1 - TIE);
    int64_t as_large = 0;
    for (int64_t r = 0; r < reps; r++) {
        as_large += fabs(j->statistics[r]) >= least;
    }
    const double p = (double)as_large / (double)reps;
    *out = (frg_ritest){.term = j->shown->term,
                        .estimate = j->shown->estimate,
                        .observed = j->observed,
                        .p_value = p,
                        .std_error = sqrt(p * (1 - p) / (double)reps),
                        .reps = reps,
                        .permuted = j->m,
                        .strata = j->n_strata,
                        .converged = worst == FRG_OK};
}

static frg_status take_options(job *j, const frg_fe_opts *fit, const frg_ritest_opts *o)
{
    frg_ritest_defaults(&j->o, sizeof j->o);
    TRY(frgi_take_opts(j->ctx, &j->o, sizeof j->o, o));
    TRY(frgi_options_check(j->ctx, options, &j->o));
    j->seed = j->o.seed < 0 ? frg_seed(j->ctx) : (uint64_t)j->o.seed;
    frg_fe_defaults(&j->fit, sizeof j->fit);
    TRY(frgi_take_opts(j->ctx, &j->fit, sizeof j->fit, fit));
    j->fit.n_vcov = j->fit.n_vcov > 1 ? 1 : j->fit.n_vcov;
    if (j->o.statistic == FRG_RITEST_ESTIMATE) { /* which no covariance changes */
        j->fit.vcov[0] = "iid";
        j->fit.n_vcov = 1;
        j->fit.ssc = NULL;
    }
    j->fit.keep_effects = 0;
    j->fit.store = NULL;
    j->fit.plan = NULL;
    if (j->f->two_stage.text) {
        FAIL(j->ctx, E_UNSUPPORTED,
             "ritest of a fit in two stages: the first stage's rows are those of the true "
             "treatment, and a permutation would act in the second alone");
    }
    return FRG_OK;
}

static void close_job(job *j)
{
    for (int k = 0; j->names && k < j->block; k++) {
        DROP(j->ctx, &j->names[k]);
    }
    DROP(j->ctx, &j->names);
    DROP(j->ctx, &j->values);
    DROP(j->ctx, &j->groups);
    DROP(j->ctx, &j->places);
    DROP(j->ctx, &j->begins);
    DROP(j->ctx, &j->permuted);
    DROP(j->ctx, &j->drawn);
    DROP(j->ctx, &j->statistics);
}

frg_status frg_fe_ritest(const frg_fe *f, const frg_fe_opts *fit, const frg_ritest_opts *o,
                         double *statistics, frg_ritest *out)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    REQUIRE(f->ctx, o && out, "frg_fe_ritest takes options and a place for the result");
    const double start = frgi_seconds();
    job j = {.f = f, .ctx = f->ctx};
    frg_status worst = FRG_OK, status;
    frgi_run_begins(f->ctx);
    *out = (frg_ritest){.reps = 0};
    TRY_TO(done, take_options(&j, fit, o));
    TRY_TO(done, find_variable(&j));
    TRY_TO(done, NEW(f->ctx, &j.statistics, j.o.reps, "statistics of permutations"));
    TRY_TO(done, prepare(&j));
    TRY_TO(done, run_blocks(&j, &worst));
    if (!is_stop(worst)) {
        count_draws(&j, worst, out);
        out->seconds = frgi_seconds() - start;
        if (statistics) {
            memcpy(statistics, j.statistics, (size_t)j.o.reps * sizeof *statistics);
        }
    } else {
        frgi_warn(f->ctx, worst == FRG_TIME_LIMIT ? E_TIME_LIMIT : E_STOPPED,
                  "ritest: after %lld of %lld draws; there is no p value",
                  (long long)(j.done < 0 ? 0 : j.done), (long long)j.o.reps);
    }
done:
    close_job(&j);
    return status < 0 ? status : worst;
}
