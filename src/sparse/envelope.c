/* envelope.c - Cholesky factor within the envelope (skyline) of a matrix.
 *
 * L is zero left of the first entry of each row of A, so that nothing but these first columns need
 * be known: the symbolic phase is one pass over the entries.  Rows are taken 8 at a time (panels,
 * direct_ops.h) with a common first column rounded down to a multiple of 8, and panel i is
 * computed from those before it:
 *
 *     L_ij = (A_ij - sum_k L_ik L_jk') L_jj^-T    j = start[i] .. i - 1,
 *                                                 k from max(start[i], start[j])
 *     L_ii = chol(A_ii - sum_k L_ik L_ik')
 *
 * Variables held back to the end have long rows.  They cost what a forward solve with 8 right-hand
 * sides costs, because the sums over k start at start[j].
 *
 * Work of panel i in tile products: sum over its j of (j - max(start[i], start[j])); bounded by the
 * smaller of sum (j - start[j]), from prefix sums, and w (w - 1) / 2, w = i - start[i], so that
 * predicting takes linear time.  The first is exact for long rows over a band, the second for a
 * band. */
#include "sparse/envelope.h"

#include <math.h>
#include <string.h>

void frgi_envelope_layout(frgi_arena *a, frgi_envelope *e, int64_t n)
{
    e->blocks = (n + PANEL - 1) / PANEL;
    e->start = TAKE(a, int32_t, e->blocks);
    e->offset = TAKE(a, int64_t, e->blocks + 1);
}

/** Multiply-adds of panel i, given the sum of j - start[j] over the panels it touches. */
static double panel_flops(const frgi_envelope *e, int64_t i, double below)
{
    const double w = (double)(i - e->start[i]);
    const double band = w * (w - 1) / 2;
    return (double)(TILE * PANEL) * ((below < band ? below : band) + 1.5 * w + 1);
}

void frgi_envelope_profile(frgi_envelope *e, const frgi_pattern *a, const int32_t *order,
                           const int32_t *place)
{
    e->offset[0] = 0;
    e->flops = 0;
    for (int64_t b = 0; b < e->blocks; b++) {
        int32_t first = (int32_t)(PANEL * b);
        const int64_t end = PANEL * (b + 1) < a->n ? PANEL * (b + 1) : a->n;
        for (int64_t i = PANEL * b; i < end; i++) {
            const int32_t v = order[i];
            for (int64_t t = a->starts[v]; t < a->starts[v + 1]; t++) {
                const int32_t j = place[a->columns[t]];
                first = j < first ? j : first;
            }
        }
        e->start[b] = first / PANEL;
        e->offset[b + 1] = e->offset[b] + TILE * (b + 1 - e->start[b]);
        /* sum of (j - start[j]) over j = start[b] .. b - 1: tiles of these panels less their
         * diagonals */
        const int64_t tiles = (e->offset[b] - e->offset[e->start[b]]) / TILE;
        e->flops += panel_flops(e, b, (double)(tiles - (b - e->start[b])));
    }
}

/** Lays the matrix's rows of panel b into the panel, and sets its floors. */
static void fill(const frgi_envelope *e, const frgi_envelope_work *w, int64_t b)
{
    const frgi_pattern *const a = w->pattern;
    const int64_t spare = e->offset[e->blocks];
    memset(w->panels + e->offset[b], 0,
           (size_t)(e->offset[b + 1] - e->offset[b]) * sizeof *w->panels);
    for (int64_t i = PANEL * b; i < PANEL * (b + 1); i++) {
        w->lowest[i] = HUGE_VAL;
        if (i >= a->n)
            continue;
        const int64_t row = e->offset[b] - TILE * (int64_t)e->start[b] + i % PANEL;
        const int32_t v = w->order[i];
        for (int64_t t = a->starts[v]; t < a->starts[v + 1]; t++) {
            const int64_t j = w->place[a->columns[t]];
            w->panels[frgi_lower(i, j, row + PANEL * j, spare)] =
                w->matrix[a->where ? a->where[t] : t];
        }
        w->lowest[i] = w->null_pivot * w->panels[row + PANEL * i];
    }
}

frgi_panels frgi_envelope_panels(const frgi_envelope *e, double *panels, double *inverse,
                                 const double *lowest)
{
    return (frgi_panels){
        .values = panels,
        .offset = e->offset,
        .start = e->start,
        .blocks = e->blocks,
        .columns = PANEL * e->blocks,
        .inverse = inverse,
        .floor = lowest,
    };
}

frg_status frgi_envelope_factor(const frgi_envelope *e, const frgi_envelope_work *w,
                                frg_context *ctx, int64_t *nulls)
{
    const frgi_panels s = frgi_envelope_panels(e, w->panels, w->inverse, w->lowest);
    double since = 0;
    *nulls = 0;
    for (int64_t i = 0; i < e->blocks; i++) {
        fill(e, w, i); /* just before it is needed, while it stays in the cache */
        *nulls += w->ops->factor(&s, i);
        const double width = (double)(i - e->start[i]);
        since += (double)(TILE * PANEL) * width * width / 2;
        const frg_status status = frgi_direct_poll(ctx, w->solver, &since, i + 1, e->blocks);
        if (status)
            return status;
    }
    return FRG_OK;
}

void frgi_envelope_solve(const frgi_panels *s, const frgi_direct_ops *ops, int width, double *x)
{
    for (ptrdiff_t i = 0; i < s->blocks; i++)
        ops->forward[width](s, i, x);
    for (ptrdiff_t i = s->blocks - 1; i >= 0; i--)
        ops->backward[width](s, i, x);
}
