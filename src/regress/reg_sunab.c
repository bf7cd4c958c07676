/* reg_sunab.c - the cohorts and periods that sunab() compares.
 *
 * A unit of cohort g is treated from period g on; in period t it is E = t - g periods from its
 * treatment.  A cohort that is no period of the data is never treated.  A cell is a treated cohort
 * in a period, and has a column of the design but where it is a reference: those of the relative
 * periods ref.p= and of the cohorts ref.c=.
 *
 * Two sorts of rows tell nothing of an effect and are left out before: those of cohorts that have
 * no period before their treatment, and, where no cohort is never treated, those of the periods in
 * which even the last cohort is treated.
 *
 * bin= groups periods and cohorts, bin.p= and bin.c= the one or the other, before all of this;
 * bin.rel= groups relative periods: a column is then one of a cohort in several periods.  What is
 * left out is decided before that.
 *
 * Source: Sun and Abraham (2021), section 4.1; Berge, Butts and McDermott (2026), fixest (the names
 * of the arguments).
 */
#include "regress/reg_sunab.h"

#include <math.h>
#include <string.h>

#include "formula/bins.h"
#include "formula/keys.h"

bool frgi_sunab_is(const frgi_syntax *s, int32_t node, const char *name)
{
    const int32_t value = frgi_formula_given(s, node, name);
    return value >= 0 && frgi_syntax_is(s, value, "TRUE");
}

bool frgi_sunab_bins(const frgi_syntax *s, int32_t node)
{
    static const char *const names[] = {"bin", "bin.c", "bin.p", "bin.rel"};
    bool found = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        found |= frgi_formula_given(s, node, names[k]) >= 0;
    }
    return found;
}

/* ---- values ---------------------------------------------------------------------------------- */

/** Groups values as the argument `name` says, where it is given. */
static frg_status group(frg_context *ctx, const frgi_syntax *s, int32_t node, const char *name,
                        double *values, int64_t n, double *more, int64_t n_more)
{
    const int32_t root = frgi_formula_given(s, node, name);
    frgi_bins bins;
    if (root < 0) {
        return FRG_OK;
    }
    frg_status status = frgi_bins_create(&bins, ctx, s, root);
    status = status < 0 ? status : frgi_bins_map(&bins, ctx, s, values, n, more, n_more);
    frgi_bins_free(&bins, ctx);
    return status;
}

/** Periods and cohorts by code, grouped; to be freed in any case. */
typedef struct {
    double *period, *cohort;
    int32_t *first_cohort; /* the first code of the cohort's value */
    bool *ever;            /* is the cohort treated in a period that is there? */
} calendar;

static void calendar_free(calendar *k, frg_context *ctx)
{
    DROP(ctx, &k->period);
    DROP(ctx, &k->cohort);
    DROP(ctx, &k->first_cohort);
    DROP(ctx, &k->ever);
}

static bool is_there(double value, const double *values, int32_t n)
{
    bool found = false;
    for (int32_t i = 0; i < n && !found; i++) {
        found = values[i] == value;
    }
    return found;
}

static frg_status calendar_create(calendar *k, frg_context *ctx, const frgi_syntax *s, int32_t node,
                                  const frgi_levels levels[2])
{
    const int32_t periods = levels[0].n, cohorts = levels[1].n;
    TRY(NEW(ctx, &k->period, periods, "cohorts"));
    TRY(NEW(ctx, &k->cohort, cohorts, "cohorts"));
    TRY(NEW(ctx, &k->first_cohort, cohorts, "cohorts"));
    TRY(NEW(ctx, &k->ever, cohorts, "cohorts"));
    memcpy(k->period, levels[0].values, sizeof *k->period * (size_t)periods);
    memcpy(k->cohort, levels[1].values, sizeof *k->cohort * (size_t)cohorts);
    TRY(group(ctx, s, node, "bin", k->period, periods, k->cohort, cohorts));
    TRY(group(ctx, s, node, "bin.p", k->period, periods, NULL, 0));
    TRY(group(ctx, s, node, "bin.c", k->cohort, cohorts, NULL, 0));
    for (int32_t g = 0; g < cohorts; g++) {
        k->first_cohort[g] = 0;
        while (k->first_cohort[g] < g && k->cohort[k->first_cohort[g]] != k->cohort[g]) {
            k->first_cohort[g]++;
        }
        k->ever[g] = is_there(k->cohort[g], k->period, periods);
    }
    return FRG_OK;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b, const void *user)
{
    const frgi_cohort_cell *const x = a, *const y = b;
    (void)user;
    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    return x->cohort_value < y->cohort_value ? -1 : x->cohort_value > y->cohort_value;
}

/** The number that node i of a reference means; false: it is a part of another. */
static bool reference_value(const frgi_syntax *s, int32_t i, int32_t root, double first,
                            double last, double *value)
{
    const frgi_node *const x = &s->nodes[i];
    const bool negative = i < root && s->nodes[i + 1].kind == NODE_NEGATIVE;
    *value = x->kind == NODE_NAME && frgi_syntax_is(s, i, ".F") ? first
             : x->kind == NODE_NAME                             ? last
             : negative                                         ? -x->value
                                                                : x->value;
    return x->kind == NODE_NUMBER || x->kind == NODE_NAME;
}

/** Marks the cells at `value`; E_REFERENCE where there is none. */
static frg_status refer(frg_context *ctx, frgi_cohort_cell *cells, int32_t n, bool cohorts,
                        double value)
{
    double low = INFINITY, high = -INFINITY;
    bool found = false;
    for (int32_t i = 0; i < n; i++) {
        const double at = cohorts ? cells[i].cohort_value : cells[i].time;
        low = fmin(low, at);
        high = fmax(high, at);
        cells[i].reference |= at == value;
        found |= at == value;
    }
    if (!found) {
        FAIL(ctx, E_REFERENCE, "sunab(): no treated cohort %s %.15g; they %s %.15g .. %.15g",
             cohorts ? "is" : "is observed at the relative period", value,
             cohorts ? "are" : "are observed at", low, high);
    }
    return FRG_OK;
}

/** The references that are given by one name; without ref.p= it is the period before. */
static frg_status refer_to_all(frg_context *ctx, const frgi_syntax *s, int32_t node,
                               const char *name, frgi_cohort_cell *cells, int32_t n)
{
    const bool cohorts = strcmp(name, "ref.c") == 0;
    const int32_t root = frgi_formula_given(s, node, name);
    if (root < 0) {
        return cohorts ? FRG_OK : refer(ctx, cells, n, false, -1);
    }
    for (int32_t i = s->nodes[root].begin; i <= root; i++) {
        double value;
        if (reference_value(s, i, root, cells[0].time, cells[n - 1].time, &value)) {
            TRY(refer(ctx, cells, n, cohorts, value));
        }
    }
    return FRG_OK;
}

/** Names the cohorts without a reference among their cells: of one of their other columns, which
 *  is then collinear with the effects, the design will make it. */
static frg_status warn_of_cohorts(frg_context *ctx, const frgi_cohort_cell *cells, int32_t n,
                                  const calendar *k, int32_t n_cohorts)
{
    enum { NAMED = 8 };
    frgi_text text = {0};
    unsigned char *seen; /* 1: has cells, 2: one of them is a reference */
    int32_t named = 0;
    frg_status status = FRG_OK;
    TRY(NEW0(ctx, &seen, n_cohorts, "cohorts"));
    for (int32_t i = 0; i < n; i++) {
        seen[cells[i].cohort] |= cells[i].reference ? 3 : 1;
    }
    for (int32_t g = 0; g < n_cohorts && status >= 0; g++) {
        if (seen[g] == 1 && named <= NAMED) {
            status = named == NAMED
                         ? frgi_text_printf(ctx, &text, ", ...")
                         : frgi_text_printf(ctx, &text, "%s%.15g", named ? ", " : "", k->cohort[g]);
            named++;
        }
    }
    DROP(ctx, &seen);
    if (status >= 0 && named > 0) {
        frgi_warn(ctx, W_NO_REFERENCE,
                  "sunab(): cohort%s %s without a row at a reference period (ref.p=, by default "
                  "-1): the effects there are measured from the period whose column was dropped",
                  named == 1 ? "" : "s", text.text);
    }
    frgi_text_free(ctx, &text);
    return status;
}

/** One cell for each period and treated cohort that rows have, by their sums of weights. */
static frg_status list_cells(frgi_cohort_cell **out, int32_t *n_cells, frg_context *ctx,
                             const calendar *k, const double *sums, int64_t n_periods,
                             int64_t n_cohorts)
{
    int32_t count = 0;
    for (int64_t i = 0; i < n_periods * n_cohorts; i++) {
        count += sums[i] > 0 && k->ever[i / n_periods];
    }
    TRY(NEW(ctx, out, count, "cohorts by period"));
    for (int64_t i = 0, at = 0; at < count; i++) {
        const int32_t period = (int32_t)(i % n_periods), cohort = (int32_t)(i / n_periods);
        if (sums[i] > 0 && k->ever[cohort]) {
            (*out)[at++] = (frgi_cohort_cell){.time = k->period[period] - k->cohort[cohort],
                                              .cohort_value = k->cohort[cohort],
                                              .period = period,
                                              .cohort = cohort,
                                              .weight = sums[i]};
        }
    }
    *n_cells = count;
    return FRG_OK;
}

/** Relative periods as bin.rel= groups them. */
static frg_status group_times(frg_context *ctx, const frgi_syntax *s, int32_t node,
                              frgi_cohort_cell *cells, int32_t n)
{
    double *times;
    TRY(NEW(ctx, &times, n, "relative periods"));
    for (int32_t i = 0; i < n; i++) {
        times[i] = cells[i].time;
    }
    const frg_status status = group(ctx, s, node, "bin.rel", times, n, NULL, 0);
    for (int32_t i = 0; i < n && status >= 0; i++) {
        cells[i].time = times[i];
    }
    DROP(ctx, &times);
    return status;
}

/** Sorts the cells and makes one of those that are alike; cell_of: the number of each. */
static void merge_cells(frgi_cohort_cell *cells, int32_t *n, const calendar *k, int64_t n_periods,
                        int32_t *cell_of)
{
    int32_t kept = 0;
    frgi_sort(cells, *n, sizeof *cells, compare, NULL);
    for (int32_t i = 0; i < *n; i++) {
        frgi_cohort_cell one = cells[i];
        const bool first = i == 0 || compare(&cells[kept - 1], &one, NULL) != 0;
        cell_of[one.cohort * n_periods + one.period] = first ? kept : kept - 1;
        one.cohort = k->first_cohort[one.cohort];
        if (first) {
            cells[kept++] = one;
        } else {
            cells[kept - 1].weight += one.weight;
        }
    }
    *n = kept;
}

frg_status frgi_cohort_cells(frgi_cohort_cell **out, int32_t *n_cells, int32_t **cell_of,
                             frg_context *ctx, const frgi_syntax *s, int32_t node,
                             const frgi_levels levels[2], int32_t *const codes[2],
                             const double *weights, int64_t n)
{
    const int64_t n_periods = levels[0].n, n_cohorts = levels[1].n;
    calendar k = {0};
    double *sums = NULL;
    frg_status status;
    TRY_TO(done, NEW0(ctx, &sums, n_periods * n_cohorts, "cohorts by period"));
    for (int64_t i = 0; i < n; i++) {
        sums[codes[1][i] * n_periods + codes[0][i]] += weights ? weights[i] : 1;
    }
    TRY_TO(done, calendar_create(&k, ctx, s, node, levels));
    TRY_TO(done, list_cells(out, n_cells, ctx, &k, sums, n_periods, n_cohorts));
    TRY_TO(done, group_times(ctx, s, node, *out, *n_cells));
    TRY_TO(done, NEW(ctx, cell_of, n_periods * n_cohorts, "cohorts by period"));
    memset(*cell_of, 0xff, sizeof **cell_of * (size_t)(n_periods * n_cohorts));
    merge_cells(*out, n_cells, &k, n_periods, *cell_of);
    if (*n_cells > 0) {
        TRY_TO(done, refer_to_all(ctx, s, node, "ref.p", *out, *n_cells));
        TRY_TO(done, refer_to_all(ctx, s, node, "ref.c", *out, *n_cells));
        TRY_TO(done, warn_of_cohorts(ctx, *out, *n_cells, &k, (int32_t)n_cohorts));
    }
done:
    DROP(ctx, &sums);
    calendar_free(&k, ctx);
    return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/** The cohorts among the rows that are used so far. */
typedef struct {
    int64_t n;
    int64_t *rows;
    int32_t *codes[2]; /* of the period and the cohort */
    frgi_levels levels[2];
    calendar k;
    double *first; /* of each cohort: its first period */
    bool *always;  /* and whether it is treated then */
    int32_t n_always, n_treated, n_never;
    double last; /* of those that are treated later */
} cohorts;

static frg_status read_cohorts(cohorts *c, frg_context *ctx, const frgi_syntax *s,
                               const frgi_variable *v, const unsigned char *mask, int64_t n_rows)
{
    TRY(NEW(ctx, &c->rows, n_rows, "cohorts"));
    for (int64_t i = 0; i < n_rows; i++) {
        c->rows[c->n] = i;
        c->n += mask[i] == 0;
    }
    for (int which = 0; which < 2; which++) {
        TRY(NEW(ctx, &c->codes[which], c->n, "cohorts"));
        frgi_key_job job = {.column = v->factor[which], .codes = c->codes[which]};
        TRY(frgi_keys_encode(ctx, &job, 1, c->rows, c->n));
        TRY(frgi_levels_create(&c->levels[which], ctx, job.column, c->rows, c->n, job.codes,
                               job.n_levels));
    }
    return calendar_create(&c->k, ctx, s, v->node, c->levels);
}

static frg_status sort_out(cohorts *c, frg_context *ctx)
{
    const int32_t n = c->levels[1].n;
    TRY(NEW(ctx, &c->first, n, "cohorts"));
    TRY(NEW(ctx, &c->always, n, "cohorts"));
    for (int32_t g = 0; g < n; g++) {
        c->first[g] = INFINITY;
    }
    for (int64_t i = 0; i < c->n; i++) {
        double *const first = &c->first[c->codes[1][i]];
        *first = fmin(*first, c->k.period[c->codes[0][i]]);
    }
    c->last = -INFINITY;
    for (int32_t g = 0; g < n; g++) {
        const double value = c->k.cohort[g];
        const bool ever = c->k.ever[g];
        c->always[g] = ever && c->first[g] >= value;
        c->n_always += c->always[g];
        c->n_never += !ever;
        c->n_treated += ever && !c->always[g];
        c->last = ever && !c->always[g] ? fmax(c->last, value) : c->last;
    }
    return FRG_OK;
}

static frg_status check_controls(const cohorts *c, frg_context *ctx, const frgi_variable *v)
{
    const char *const period = v->factor[0]->name, *const cohort = v->factor[1]->name;
    if (c->n_treated == 0) {
        FAIL(ctx, E_CONTROLS,
             "sunab(): of the %d cohorts '%s' none is a period '%s' with a period before it",
             c->levels[1].n, cohort, period);
    }
    if (c->n_never == 0 && c->n_treated < 2) {
        FAIL(ctx, E_CONTROLS,
             "sunab(): the cohort %.15g of '%s' is the only one with periods before its treatment, "
             "and none is never treated",
             c->last, cohort);
    }
    return FRG_OK;
}

frg_status frgi_cohorts_exclude(frg_context *ctx, const frgi_syntax *s, const frgi_variable *v,
                                unsigned char *mask, int64_t n_rows, unsigned char why, bool quiet)
{
    cohorts c = {0};
    int64_t early = 0, late = 0;
    frg_status status;
    TRY_TO(done, read_cohorts(&c, ctx, s, v, mask, n_rows));
    TRY_TO(done, sort_out(&c, ctx));
    TRY_TO(done, c.n > 0 ? check_controls(&c, ctx, v) : FRG_OK);
    for (int64_t i = 0; i < c.n; i++) {
        const bool always = c.always[c.codes[1][i]];
        const bool beyond = c.n_never == 0 && c.k.period[c.codes[0][i]] >= c.last;
        early += always;
        late += !always && beyond;
        mask[c.rows[i]] = always || beyond ? why : mask[c.rows[i]];
    }
    if (early > 0 && !quiet) {
        frgi_warn(ctx, W_ALWAYS_TREATED, "%lld rows of %d cohorts treated from their first period",
                  (long long)early, c.n_always);
    }
    if (c.n > 0 && c.n_never == 0 && !quiet) {
        frgi_warn(ctx, W_LAST_TREATED, "the cohort %.15g is the reference; %lld rows are later",
                  c.last, (long long)late);
    }
done:
    DROP(ctx, &c.rows);
    DROP(ctx, &c.first);
    DROP(ctx, &c.always);
    calendar_free(&c.k, ctx);
    for (int which = 0; which < 2; which++) {
        DROP(ctx, &c.codes[which]);
        frgi_levels_destroy(&c.levels[which], ctx);
    }
    return status;
}
