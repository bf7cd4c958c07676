/* treat_cohorts.c - rows by the period in which the treatment of their unit begins. */
#include "treatment/treat_cohorts.h"

#include <math.h>
#include <string.h>

#include "formula/keys.h"
#include "formula/program.h"
#include "regress/regress.h"

/** used <- is the row in the subset? */
static frg_status find_used(const frgi_cohorts *c)
{
    frgi_syntax s = {0};
    frgi_program p = {0};
    double *scratch = NULL;
    frg_status status = FRG_OK;
    memset(c->used, 1, (size_t)c->n);
    if (!c->subset) {
        return FRG_OK;
    }
    TRY_TO(done, frgi_subset_program(&p, &s, c->ctx, c->subset, c->data));
    TRY_TO(done, NEW(c->ctx, &scratch, ((int64_t)p.stack + 1) * FRGI_BLOCK, "an expression"));
    for (int64_t i = 0; i < c->n; i += FRGI_BLOCK) {
        const int64_t m = c->n - i < FRGI_BLOCK ? c->n - i : FRGI_BLOCK;
        double *const values = scratch + (int64_t)p.stack * FRGI_BLOCK;
        frgi_program_block(&p, NULL, i, m, values, scratch);
        for (int64_t k = 0; k < m; k++) {
            c->used[i + k] = !isnan(values[k]) && values[k] != 0;
        }
    }
done:
    DROP(c->ctx, &scratch);
    frgi_program_destroy(&p, c->ctx);
    frgi_syntax_free(&s, c->ctx);
    return status;
}

/** first <- g; what begins after the last period in use is never treated. */
static frg_status read_cohorts(const frgi_cohorts *c)
{
    const frg_column *column;
    double last = -INFINITY;
    TRY(frgi_column_named(&column, c->ctx, c->cohort, c->what, c->data));
    if (column->kind == FRG_CATEGORY) {
        FAIL(c->ctx, E_COHORT, "%s: the cohort '%s' holds text", c->what, column->name);
    }
    frgi_column_block(column, NULL, 0, c->n, c->first);
    for (int64_t i = 0; i < c->n; i++) {
        last = c->used[i] ? fmax(last, c->time[i]) : last; /* which leaves a missing one out */
    }
    for (int64_t i = 0; i < c->n; i++) {
        const double g = c->first[i];
        const bool never = isnan(g) || g == c->never || (c->or_less && g < c->never);
        c->first[i] = never || (c->used[i] && g > last) ? (double)INFINITY : g;
    }
    return FRG_OK;
}

/** treated <- t >= g; `of`: whose rows they are, in the message. */
static frg_status find_treated(const frgi_cohorts *c, const char *of)
{
    int64_t treated = 0, untreated = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const double t = c->time[i], g = c->first[i];
        c->treated[i] = isnan(t) || isnan(g) ? (double)NAN : t >= g;
        treated += c->used[i] && c->treated[i] == 1;
        untreated += c->used[i] && c->treated[i] == 0;
    }
    if (untreated == 0) {
        FAIL(c->ctx, E_CONTROLS,
             "%s: every row is treated; there are no untreated observations to compare with",
             c->what);
    }
    if (treated == 0) {
        FAIL(c->ctx, E_TREATMENT, "%s: no row is treated%s", c->what, of);
    }
    return FRG_OK;
}

static int by_cohort(const void *a, const void *b, const void *user)
{
    const frgi_cohorts *const c = user;
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const double g = c->first[i], h = c->first[j];
    return g != h ? (g < h ? -1 : 1) : i < j ? -1 : i > j;
}

/** Leaves the cohort of the count rows out where it has rows in use, none of them before its
 *  treatment. */
static void leave_cohort_out(const frgi_cohorts *c, const int64_t *rows, int64_t count)
{
    const double g = c->first[rows[0]];
    bool there = false, before = isinf(g) && g > 0;
    for (int64_t k = 0; k < count; k++) {
        there |= c->used[rows[k]];
        before |= c->used[rows[k]] && c->time[rows[k]] < g;
    }
    for (int64_t k = 0; k < count && there && !before; k++) {
        c->first[rows[k]] = (double)NAN;
    }
}

/** Warns of the rows in use that are left out, whose places go to `rows`. */
static frg_status warn_left_out(const frgi_cohorts *c, int64_t *rows)
{
    const frg_column *unit;
    frgi_key_job key = {.codes = NULL};
    int64_t gone = 0, known = 0;
    TRY(frgi_column_named(&unit, c->ctx, c->unit, c->what, c->data));
    for (int64_t i = 0; i < c->n; i++) {
        double value;
        frgi_column_block(unit, NULL, i, 1, &value);
        if (c->used[i] && isnan(c->first[i])) {
            gone++;
            rows[known] = i;
            known += !isnan(value);
        }
    }
    if (gone == 0) {
        return FRG_OK;
    }
    TRY(NEW(c->ctx, &key.codes, known + 1, "units that are left out"));
    key.column = unit;
    const frg_status status = frgi_keys_encode(c->ctx, &key, 1, rows, known);
    DROP(c->ctx, &key.codes);
    TRY(status);
    frgi_warn(
        c->ctx, W_ALWAYS_TREATED,
        "%s: %lld rows of %lld units that are treated from their cohort's first period on are "
        "left out: nothing tells what they were before",
        c->what, (long long)gone, (long long)key.n_levels);
    return FRG_OK;
}

static frg_status leave_always_treated_out(const frgi_cohorts *c)
{
    int64_t *rows;
    TRY(NEW(c->ctx, &rows, c->n, "rows by cohort"));
    for (int64_t i = 0; i < c->n; i++) {
        rows[i] = i;
    }
    frgi_sort(rows, c->n, sizeof *rows, by_cohort, c);
    for (int64_t k = 0, end; k < c->n; k = end) {
        const double g = c->first[rows[k]];
        for (end = k + 1; end < c->n && c->first[rows[end]] == g;) {
            end++;
        }
        leave_cohort_out(c, rows + k, end - k);
    }
    const frg_status status = warn_left_out(c, rows);
    DROP(c->ctx, &rows);
    return status;
}

frg_status frgi_cohorts_find(const frgi_cohorts *c)
{
    TRY(find_used(c));
    TRY(read_cohorts(c));
    TRY(find_treated(c, ""));
    TRY(leave_always_treated_out(c));
    return find_treated(c, " of the units with a period before their treatment");
}
