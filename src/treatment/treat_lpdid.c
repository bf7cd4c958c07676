/* treat_lpdid.c - local projections for difference in differences (Dube, Girardi, Jorda and Taylor
 * 2023): the columns that an ordinary fit makes the estimates of.
 *
 *     y_(t+h) - y_(t-1) = b_h (D_t - D_(t-1)) + x c + period effects,   D_t = 1 from the cohort on
 *
 * over the rows whose treatment begins at t and those that are untreated at t + h (h < 0: at t).
 * An outcome of the others is missing, so that each horizon has its own rows.  A subset decides on
 * cohorts and the window (treat_cohorts.c); outcomes at other times are looked up in all rows.
 * Pooled: the mean of y_t .. y_(t+H) for y_(t+h), and the untreated are so at t + H.  pmd, means of
 * periods before: that of y_(t-k) .. y_(t-1), or of all there are before t, for y_(t-1).
 *
 * Least squares weights the difference of a period by n1 n0 / (n1 + n0) of its treated and
 * untreated rows.  Reweighted by the inverse of n0 / (n1 + n0), each treated row counts alike:
 *
 *     b_h = mean over the treated of (y_(t+h) - y_(t-1) - x c - effect of t),
 *                                                        c and effects of the untreated rows
 *
 * the same without x, and with x what the authors call regression adjustment.  This is two-stage
 * difference in differences of the columns here (regress/reg_two_stage.c), errors included.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/opts.h"
#include "formula/mistyped.h"
#include "formula/program.h"
#include "io/io.h"
#include "regress/regress.h"
#include "treatment/treat_cohorts.h"

#define OPTIONS_OF frg_lpdid_opts
static const frg_option options[] = {
#include "treatment/lpdid_opts.def"
    {.name = NULL}};

const frg_option *frg_lpdid_options(void)
{
    return options;
}

void frg_lpdid_defaults(frg_lpdid_opts *o, size_t struct_size)
{
    frg_lpdid_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

struct frg_lpdid {
    frg_context *ctx;
    frg_table *table;
    frg_lpdid_outcome *outcomes;
    char **names; /* `most`: of the outcomes */
    int64_t most;
    char *term;
    frgi_text formula, first_stage, vcov;
    frg_lpdid_design design;
};

/** The study while its columns are made; arrays are of the table's rows. */
typedef struct {
    frg_context *ctx;
    const frg_table *data;
    frg_lpdid_opts o;
    frgi_formula formula;
    frgi_panel panel;
    int64_t n;
    char *memory; /* of the two names */
    const char *unit, *time;
    double *arrays; /* all of these */
    double *y, *first, *treat, *begins, *before;
    double *later, *untreated, *change; /* of the horizon at hand */
    unsigned char *used;                /* is the row in the subset? */
    int low, high;
} study;

/* ---- what is given --------------------------------------------------------------------------- */

static frg_status refuse(const study *s, int32_t node, const char *why)
{
    frgi_syntax_at(&s->formula.syntax, s->ctx, node);
    FAIL(s->ctx, E_OPTION, "lpdid: '%s': %s", s->formula.text, why);
}

/** "y ~ x": an outcome and regressors. */
static frg_status read_formula(study *s, const char *text)
{
    TRY(frgi_formula_create(&s->formula, s->ctx, text, (int64_t)strlen(text)));
    const frgi_syntax *const x = &s->formula.syntax;
    if (s->formula.n_effects > 0) {
        return refuse(s, x->section[1],
                      "the effects are those of the periods; write outcome and "
                      "regressors alone");
    }
    return s->formula.n_endogenous > 0 ? refuse(s, x->section[0], "instruments have no place here")
                                       : FRG_OK;
}

static frg_status evaluate_outcome(study *s)
{
    const frgi_syntax *const x = &s->formula.syntax;
    frgi_program p;
    double *scratch = NULL;
    TRY(frgi_program_create(&p, s->ctx, x, x->left, s->data));
    frg_status status = FRG_OK;
    if (p.column && p.column->kind == FRG_CATEGORY) {
        status = frgi_refuse_mistyped(s->ctx, x, x->left, p.column);
        frgi_syntax_at(x, s->ctx, x->left);
        status = status < 0 ? status
                            : frgi_fail(s->ctx, E_TYPE, __FILE__, __LINE__,
                                        "lpdid: the outcome '%s' holds text", p.column->name);
    }
    status = status < 0
                 ? status
                 : NEW(s->ctx, &scratch, ((int64_t)p.stack + 1) * FRGI_BLOCK, "an expression");
    for (int64_t i = 0; i < s->n && status >= 0; i += FRGI_BLOCK) {
        const int64_t m = s->n - i < FRGI_BLOCK ? s->n - i : FRGI_BLOCK;
        frgi_program_block(&p, NULL, i, m, s->y + i, scratch);
    }
    DROP(s->ctx, &scratch);
    frgi_program_destroy(&p, s->ctx);
    return status;
}

static frg_status read_panel(study *s)
{
    if (!s->o.panel || !s->o.cohort) {
        FAIL(s->ctx, E_OPTION, "lpdid: %s",
             s->o.panel ? "the column with the period of the first treatment is not named"
                        : "it goes by a panel UNIT,TIME, which is not given");
    }
    TRY(frgi_panel_names(s->ctx, s->o.panel, &s->memory, &s->unit, &s->time));
    return frgi_panel_create(&s->panel, s->ctx, s->o.panel, s->data);
}

/** Lags are of the row one period before: there have to be such rows. */
static frg_status check_steps(const study *s)
{
    const frgi_panel *const p = &s->panel;
    double least = INFINITY;
    for (int64_t k = 1; k < p->n; k++) {
        const int64_t i = p->order[k - 1], j = p->order[k];
        if (p->unit[i] == p->unit[j] && p->time[j] - p->time[i] < least) {
            least = p->time[j] - p->time[i];
        }
    }
    if (isinf(least)) {
        FAIL(s->ctx, E_PERIODS, "lpdid: no unit has rows at two times '%s'", s->time);
    }
    if (least > 1) {
        FAIL(s->ctx, E_PERIODS,
             "lpdid: no unit has rows at two times '%s' that follow each other; the least distance "
             "is %.15g",
             s->time, least);
    }
    return FRG_OK;
}

/* ---- horizons -------------------------------------------------------------------------------- */

/** The window's end, or the data's where it is `none`; E_OPTION where no row is so far from its
 *  treatment. */
static frg_status window(const study *s, const char *name, int given, int none, int *out)
{
    double low = INFINITY, high = -INFINITY;
    bool there = false;
    for (int64_t i = 0; i < s->n; i++) {
        const double since = s->panel.time[i] - s->first[i];
        if (s->used[i] && isfinite(since)) {
            low = fmin(low, since);
            high = fmax(high, since);
            there |= since == given;
        }
    }
    if (given != none && !there) {
        FAIL(s->ctx, E_OPTION, "%s=%d: the periods relative to the treatment are %.15g .. %.15g",
             name, given, low, high);
    }
    if (!(fabs(low) < INT32_MAX && fabs(high) < INT32_MAX)) {
        FAIL(s->ctx, E_COHORT, "lpdid: a cohort of '%s' is %.15g periods from its rows",
             s->o.cohort, fabs(low) < fabs(high) ? high : low);
    }
    *out = given != none ? given : none < 0 ? (int)low : (int)high;
    return FRG_OK;
}

/** Is the outcome of horizon -1, y_(t-1) - y_(t-1), zero? */
static bool has_reference(const study *s)
{
    return s->o.pmd == 1;
}

static frg_status find_horizons(study *s)
{
    TRY(window(s, "pre_window", s->o.pre_window, INT32_MIN, &s->low));
    TRY(window(s, "post_window", s->o.post_window, INT32_MAX, &s->high));
    if (s->o.pooled && s->high < 0) {
        FAIL(s->ctx, E_OPTION, "post_window=%d: a pooled estimate is of periods from 0 on",
             s->high);
    }
    if (s->low > s->high || (!s->o.pooled && s->low == -1 && s->high == -1 && has_reference(s))) {
        FAIL(s->ctx, E_OPTION,
             "lpdid: there is no horizon but the reference -1 from pre_window=%d to "
             "post_window=%d",
             s->low, s->high);
    }
    return FRG_OK;
}

/** before <- the mean of the outcomes that the unit has before t. */
static void mean_of_all(study *s)
{
    const frgi_panel *const p = &s->panel;
    double sum = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < p->n; k++) { /* unit after unit, in the order of time */
        const int64_t i = p->order[k];
        if (k == 0 || p->unit[i] != p->unit[p->order[k - 1]]) {
            sum = 0;
            count = 0;
        }
        s->before[i] = count > 0 ? sum / (double)count : (double)NAN;
        if (!isnan(s->y[i])) {
            sum += s->y[i];
            count++;
        }
    }
}

/** before <- what the later outcomes are compared with. */
static void find_before(study *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        s->before[i] = s->o.pmd > 0 ? 0 : (double)NAN;
    }
    if (s->o.pmd == 0) {
        mean_of_all(s);
        return;
    }
    for (int k = 1; k <= s->o.pmd; k++) {
        frgi_panel_lag(&s->panel, s->y, k, false, s->change);
        for (int64_t i = 0; i < s->n; i++) {
            s->before[i] += s->change[i];
        }
    }
    for (int64_t i = 0; i < s->n; i++) {
        s->before[i] /= s->o.pmd;
    }
}

/** begins <- D_t - D_(t-1), and what is before it. */
static frg_status find_begins(study *s)
{
    bool there = false;
    frgi_panel_lag(&s->panel, s->treat, 1, true, s->begins);
    find_before(s);
    for (int64_t i = 0; i < s->n; i++) {
        s->begins[i] = s->begins[i] < 0 ? 0 : s->begins[i]; /* NaN stays */
        there |= s->used[i] && s->begins[i] == 1 && !isnan(s->before[i]);
    }
    if (s->o.pmd > 1 && !there) {
        FAIL(s->ctx, E_OPTION,
             "pmd=%d: no unit has outcomes in so many periods before its treatment", s->o.pmd);
    }
    return FRG_OK;
}

/** later <- y_(t+h), or the mean of y_t .. y_(t+h). */
static void find_later(study *s, int h)
{
    if (!s->o.pooled) {
        frgi_panel_lag(&s->panel, s->y, -(int64_t)h, false, s->later);
        return;
    }
    memset(s->later, 0, sizeof *s->later * (size_t)s->n);
    for (int k = 0; k <= h; k++) {
        frgi_panel_lag(&s->panel, s->y, -(int64_t)k, false, s->change);
        for (int64_t i = 0; i < s->n; i++) {
            s->later[i] += s->change[i];
        }
    }
    for (int64_t i = 0; i < s->n; i++) {
        s->later[i] /= h + 1;
    }
}

/** change <- y_(t+h) - y_(t-1), missing in rows that horizon h does not compare. */
static void find_change(study *s, int h)
{
    find_later(s, h);
    frgi_panel_lag(&s->panel, s->treat, h > 0 ? -(int64_t)h : 0, false, s->untreated);
    for (int64_t i = 0; i < s->n; i++) {
        const bool compared = s->begins[i] == 1 || s->untreated[i] == 0;
        s->change[i] = compared ? s->later[i] - s->before[i] : (double)NAN;
    }
}

/* ---- the design ------------------------------------------------------------------------------ */

/** Adds the column, under a name like the wanted one that no other has. */
static frg_status add_column(frg_lpdid *l, char **name, const char *wanted, const double *values)
{
    TRY(frgi_table_free_name(l->table, wanted, name));
    return frg_table_add_numbers(l->table, *name, values);
}

static frg_status add_outcomes(frg_lpdid *l, study *s)
{
    frg_lpdid_design *const d = &l->design;
    const int from = s->o.pooled ? s->high : s->low;
    const int64_t most = (int64_t)s->high - from + 1;
    TRY(NEW0(l->ctx, &l->outcomes, most, "horizons"));
    TRY(NEW0(l->ctx, &l->names, most, "horizons"));
    l->most = most;
    for (int64_t h = from; h <= s->high; h++) {
        char name[32] = "change";
        if (h == -1 && !s->o.pooled && has_reference(s)) {
            continue;
        }
        if (!s->o.pooled) {
            snprintf(name, sizeof name, "change::%d", (int)h);
        }
        find_change(s, (int)h);
        TRY(add_column(l, &l->names[d->n], name, s->change));
        l->outcomes[d->n] =
            (frg_lpdid_outcome){.horizon = s->o.pooled ? 0 : (int)h, .name = l->names[d->n]};
        d->n++;
        d->last = (int)h;
    }
    return FRG_OK;
}

/** The name in backticks where the grammar of covariances needs them. */
static frg_status quote(frg_context *ctx, frgi_text *out, const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.";
    const bool bare = strspn(name, plain) == strlen(name) && !strchr("0123456789.", name[0]);
    return frgi_text_printf(ctx, out, bare ? "%s" : "`%s`", name);
}

/** x | `year` */
static frg_status write_right(frg_lpdid *l, const study *s, frgi_text *out)
{
    const frgi_syntax *const x = &s->formula.syntax;
    const frgi_node *const right = &x->nodes[x->section[0]];
    TRY(frgi_text_printf(l->ctx, out, "%.*s | ", right->length, x->text + right->at));
    return quote(l->ctx, out, s->time);
}

/** c(`change::-2`, ...) ~ treat_diff + x | `year`; reweighted the effect alone, and in a first
 *  stage what is beside it. */
static frg_status write_formula(frg_lpdid *l, const study *s)
{
    const bool several = l->design.n > 1;
    TRY(frgi_text_printf(l->ctx, &l->formula, "%s", several ? "c(" : ""));
    for (int i = 0; i < l->design.n; i++) {
        TRY(frgi_text_printf(l->ctx, &l->formula, "%s`%s`", i > 0 ? ", " : "", l->names[i]));
    }
    TRY(frgi_text_printf(l->ctx, &l->formula, "%s ~ %s%s", several ? ")" : "",
                         s->o.reweight ? "0 + " : "", l->term));
    if (s->o.reweight) {
        TRY(frgi_text_printf(l->ctx, &l->first_stage, "%s ~ ", l->term));
        TRY(write_right(l, s, &l->first_stage));
    } else {
        TRY(frgi_text_printf(l->ctx, &l->formula, " + "));
        TRY(write_right(l, s, &l->formula));
    }
    TRY(frgi_text_printf(l->ctx, &l->vcov, "cluster="));
    return quote(l->ctx, &l->vcov, s->unit);
}

static frg_status make_design(frg_lpdid *l, study *s)
{
    if (frgi_syntax_count(&s->formula.syntax, "treat_diff") > 0) {
        FAIL(l->ctx, E_OPTION,
             "lpdid: treat_diff is what the result calls the effect; give that column another "
             "name");
    }
    TRY(frgi_table_borrow(&l->table, l->ctx, s->data));
    TRY(find_begins(s));
    TRY(add_column(l, &l->term, "treat_diff", s->begins));
    TRY(add_outcomes(l, s));
    TRY(write_formula(l, s));
    l->design.table = l->table;
    l->design.formula = l->formula.text;
    l->design.first_stage = l->first_stage.text;
    l->design.term = l->term;
    l->design.vcov = l->vcov.text;
    l->design.outcomes = l->outcomes;
    return FRG_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

static frg_status allocate(study *s)
{
    double **const parts[] = {&s->y,      &s->first, &s->treat,     &s->begins,
                              &s->before, &s->later, &s->untreated, &s->change};
    enum { PARTS = sizeof parts / sizeof *parts };
    TRY(NEW(s->ctx, &s->arrays, frgi_mul(PARTS, (size_t)s->n), "local projections"));
    for (int i = 0; i < PARTS; i++) {
        *parts[i] = s->arrays + i * s->n;
    }
    return NEW(s->ctx, &s->used, s->n, "local projections");
}

static frg_status find_cohorts(const study *s)
{
    const frgi_cohorts c = {.ctx = s->ctx,
                            .what = "lpdid",
                            .data = s->data,
                            .n = s->n,
                            .unit = s->unit,
                            .cohort = s->o.cohort,
                            .subset = s->o.subset,
                            .never = s->o.never_treated,
                            .time = s->panel.time,
                            .first = s->first,
                            .treated = s->treat,
                            .used = s->used};
    return frgi_cohorts_find(&c);
}

static void close_study(study *s)
{
    DROP(s->ctx, &s->arrays);
    DROP(s->ctx, &s->used);
    DROP(s->ctx, &s->memory);
    frgi_panel_destroy(&s->panel, s->ctx);
    frgi_formula_destroy(&s->formula, s->ctx);
}

static frg_status run(frg_lpdid *l, study *s, const char *formula)
{
    TRY(frgi_options_check(s->ctx, options, &s->o));
    TRY(read_formula(s, formula));
    TRY(allocate(s));
    TRY(read_panel(s));
    TRY(evaluate_outcome(s));
    TRY(find_cohorts(s));
    TRY(check_steps(s));
    TRY(find_horizons(s));
    return make_design(l, s);
}

frg_status frg_lpdid_create(frg_lpdid **out, frg_context *ctx, const char *formula,
                            const frg_table *data, const frg_lpdid_opts *o)
{
    REQUIRE(ctx, out && ctx && formula && data && o,
            "frg_lpdid_create takes a place, a context, a formula, a table and options");
    *out = NULL;
    study s = {.ctx = ctx, .data = data, .n = frg_table_rows(data)};
    frg_lpdid *l;
    frg_lpdid_defaults(&s.o, sizeof s.o);
    TRY(frgi_take_opts(ctx, &s.o, sizeof s.o, o));
    TRY(NEW0(ctx, &l, 1, "local projections"));
    l->ctx = ctx;
    const frg_status status = run(l, &s, formula);
    close_study(&s);
    if (status < 0) {
        frg_lpdid_destroy(l);
        return status;
    }
    *out = l;
    return FRG_OK;
}

const frg_lpdid_design *frg_lpdid_get(const frg_lpdid *l)
{
    return l ? &l->design : NULL;
}

void frg_lpdid_destroy(frg_lpdid *l)
{
    if (!l) {
        return;
    }
    frg_context *const ctx = l->ctx;
    for (int64_t i = 0; i < l->most; i++) {
        DROP(ctx, &l->names[i]);
    }
    frg_table_destroy(l->table);
    frgi_text_free(ctx, &l->formula);
    frgi_text_free(ctx, &l->first_stage);
    frgi_text_free(ctx, &l->vcov);
    DROP(ctx, &l->names);
    DROP(ctx, &l->outcomes);
    DROP(ctx, &l->term);
    DROP(ctx, &l);
}
