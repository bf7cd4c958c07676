/* fe_bounded_rank.c - the rank of D between two bounds, which is exact where they meet.
 *
 * Notation: level l of factor q has the column e_l of D; f_q stands for a vector over the levels of
 * factor q, and for the vector over the rows that it makes.
 *
 * From above: D f = 0 means f_1 + ... + f_Q = 0 on every row.  A vector over the levels of q that
 * is constant on the components of the graph of p and q is one over the levels of p, too, so that
 * each
 *
 *     f_q = sum over p < q of a_p,  a_p constant on the components of (p, q),
 *
 * has an f with D f = 0 that is 0 behind q.  Those of different q are independent; of one q there
 * are as many as the rank of its levels' dummies of components, which is counted from below by the
 * same substitution.
 *
 * From below: call some levels free.  A row all of whose levels but one are free or determined
 * determines that one.  Rows that do so, in this order, are a triangle of ones: if all levels are
 * reached rank D >= levels - free.  Where no row determines a level, one of a row that lacks two is
 * made free.
 *
 * Exporter and year, importer and year, and pair meet so; years and firms drawn by lot do not.
 * Cost: a pass for each pair of factors, three more, and a visit to each entry of D.
 * Memory: 4 Q + 9 bytes a row.
 */
#include <string.h>

#include "fe/fe_graph.h"

/** A matrix of dummies: row i has a one in the columns level[f][stride[f] i] of each factor f. */
typedef struct {
    int64_t n;
    int factors;
    int64_t columns;
    const int32_t *level[FE_MAX_FACTORS];
    int stride[FE_MAX_FACTORS];
} dummies;

static int32_t column_of(const dummies *d, int f, int64_t i)
{
    return d->level[f][d->stride[f] * i];
}

/** The columns that are known, and the rows that have unknown ones. */
typedef struct {
    int32_t *start;         /* columns + 1 */
    int32_t *row;           /* factors x n: rows of a column */
    unsigned char *unknown; /* n: columns of the row that were not yet passed on */
    unsigned char *known;   /* columns */
    int32_t *queue;         /* columns: known, to be passed on */
    int32_t *lacks_two;     /* n: rows */
    int64_t head, tail, n_lacking, next_row;
} substitution;

static void lay_out(frgi_arena *a, const dummies *d, substitution *s)
{
    s->start = TAKE(a, int32_t, d->columns + 1);
    s->row = TAKE(a, int32_t, d->n * d->factors);
    s->unknown = TAKE(a, unsigned char, d->n);
    s->known = TAKE(a, unsigned char, d->columns);
    s->queue = TAKE(a, int32_t, d->columns);
    s->lacks_two = TAKE(a, int32_t, d->n);
}

/** Lists the rows of each column. */
static void list_rows(const dummies *d, const substitution *s)
{
    memset(s->start, 0, (size_t)(d->columns + 1) * sizeof *s->start);
    memset(s->known, 0, (size_t)d->columns);
    memset(s->unknown, d->factors, (size_t)d->n);
    for (int f = 0; f < d->factors; f++) {
        for (int64_t i = 0; i < d->n; i++) {
            s->start[column_of(d, f, i)]++;
        }
    }
    int32_t sum = 0;
    for (int64_t c = 0; c <= d->columns; c++) {
        sum += s->start[c];
        s->start[c] = sum;
    }
    for (int f = d->factors - 1; f >= 0; f--) {
        for (int64_t i = d->n - 1; i >= 0; i--) {
            s->row[--s->start[column_of(d, f, i)]] = (int32_t)i;
        }
    }
}

/** The column of row i is known from now on, if one is not yet. */
static void determine(const dummies *d, substitution *s, int64_t i)
{
    for (int f = 0; f < d->factors; f++) {
        const int32_t c = column_of(d, f, i);
        if (!s->known[c]) {
            s->known[c] = 1;
            s->queue[s->tail++] = c;
            return;
        }
    }
}

/** Substitutes what is known into all rows. */
static void pass_on(const dummies *d, substitution *s)
{
    while (s->head < s->tail) {
        const int32_t c = s->queue[s->head++];
        for (int32_t e = s->start[c]; e < s->start[c + 1]; e++) {
            const int32_t i = s->row[e];
            const int left = --s->unknown[i];
            if (left == 1) {
                determine(d, s, i);
            } else if (left == 2) {
                s->lacks_two[s->n_lacking++] = i;
            }
        }
    }
}

/** A row that lacks two columns, or else the first that lacks any; -1: none does. */
static int64_t lacking_row(const dummies *d, substitution *s)
{
    while (s->n_lacking > 0) {
        const int32_t i = s->lacks_two[--s->n_lacking];
        if (s->unknown[i] == 2) {
            return i;
        }
    }
    while (s->next_row < d->n && s->unknown[s->next_row] == 0) {
        s->next_row++;
    }
    return s->next_row < d->n ? s->next_row : -1;
}

/** *rank <- columns less free ones, a bound from below; -1 with more than `most` free ones. */
static frg_status count_from_below(const dummies *d, frg_context *ctx, int64_t most, int64_t *rank)
{
    substitution s = {0};
    frgi_arena memory = {0};
    lay_out(&memory, d, &s);
    TRY(frgi_arena_open(&memory, ctx, "bounds of the rank"));
    lay_out(&memory, d, &s);
    list_rows(d, &s);
    int64_t n_free = 0;
    for (int64_t i; n_free <= most && (i = lacking_row(d, &s)) >= 0; n_free++) {
        determine(d, &s, i);
        pass_on(d, &s);
    }
    *rank = n_free <= most ? d->columns - n_free : -1;
    frgi_arena_close(&memory, ctx);
    return FRG_OK;
}

/* ---- the bound from above -------------------------------------------------------------------- */

/** *count <- the independent f that are 0 behind remaining factor r, with the eliminated factor
 *  before all others. */
static frg_status count_dependent(const fe_rows *g, frg_context *ctx, int r, int64_t *count)
{
    dummies d = {.n = fe_remaining(g, r)->levels, .factors = r + 1};
    frg_status status = FRG_OK;
    int32_t *labels;
    TRY(NEW(ctx, &labels, d.n * d.factors, "components"));
    for (int s = -1; s < r && status == FRG_OK; s++) {
        int32_t *const label = labels + (s + 1) * d.n;
        int64_t components = 0;
        d.level[s + 1] = label;
        d.stride[s + 1] = 1;
        status = frgi_fe_label_pair(g, ctx, r, s, label, &components);
        for (int64_t l = 0; l < d.n; l++) {
            label[l] += (int32_t)d.columns;
        }
        d.columns += components;
    }
    *count = d.columns;
    if (status == FRG_OK && r > 0) {
        status = count_from_below(&d, ctx, d.columns, count);
    }
    DROP(ctx, &labels);
    return status;
}

/* ---- both ------------------------------------------------------------------------------------ */

/** The rows of g as dummies, the eliminated levels, which elim (n) takes, behind the reduced
 *  unknowns. */
static void fill(const fe_rows *g, dummies *d, int32_t *elim)
{
    for (int r = 0; r < g->n_remaining; r++) {
        d->level[r] = g->index + r;
        d->stride[r] = g->n_remaining;
    }
    d->level[g->n_remaining] = elim;
    d->stride[g->n_remaining] = 1;
    for (int64_t u = 0; u < g->n_elim; u++) {
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            elim[i] = (int32_t)(g->n_reduced + u);
        }
    }
}

frg_status frgi_fe_bounded_rank(const fe_rows *g, frg_context *ctx, size_t byte_cap, int64_t *rank)
{
    dummies d = {.n = g->n, .factors = g->n_factors, .columns = g->n_elim + g->n_reduced};
    const double bytes = (4. * g->n_factors + 9) * (double)g->n;
    int64_t dependent = 0;
    int32_t *elim;
    *rank = -1;
    if (g->source || bytes > (double)byte_cap || g->n * g->n_factors > INT32_MAX ||
        d.columns > INT32_MAX) {
        return FRG_OK;
    }
    for (int r = 0; r < g->n_remaining; r++) {
        int64_t more = 0;
        const frg_status status = count_dependent(g, ctx, r, &more);
        if (status != FRG_OK) {
            return status;
        }
        dependent += more;
    }
    TRY(NEW(ctx, &elim, d.n, "bounds of the rank"));
    fill(g, &d, elim);
    const frg_status status = count_from_below(&d, ctx, dependent, rank);
    DROP(ctx, &elim);
    return status;
}
