/* fe_reweight.c - see fe_reweight.h.
 *
 * Iteratively reweighted least squares changes the weights at every step and nothing else.  Of a
 * plan these decide N_u and N_l, the weighted counts, and what the cascade has made of S; codes,
 * order and chunks, and the order of a factor, do not depend on them.  One pass over the rows.
 */
#include "fe/fe_reweight.h"

#include <math.h>
#include <string.h>

#include "fe/fe_demean_plan.h"
#include "fe/fe_weights.h"

/** The weights in row order, near 1. */
static void take(fe_rows *g, const double *w, const frgi_weight_range *range)
{
    const double scale = ldexp(1, -frgi_weights_exponent(range));
    g->weight_root = frgi_weights_root(range);
    for (int64_t i = 0; i < g->n; i++) {
        g->weight[i] = w[g->order ? g->order[i] : i] * scale;
    }
}

/** N_u and N_l with their inverses, row by row. */
static void add(fe_rows *g)
{
    for (int64_t u = 0; u < g->n_elim; u++) {
        double total = 0;
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            total += g->weight[i];
        }
        g->elim_inverse[u] = total > 0 ? 1 / total : 0;
    }
    memset(g->level_weight, 0, (size_t)g->n_reduced * sizeof *g->level_weight);
    for (int64_t i = 0; i < g->n; i++) {
        for (int r = 0; r < g->n_remaining; r++) {
            g->level_weight[g->index[i * g->n_remaining + r]] += g->weight[i];
        }
    }
    for (int64_t l = 0; l < g->n_reduced; l++) {
        g->level_inverse[l] = g->level_weight[l] > 0 ? 1 / g->level_weight[l] : 0;
    }
}

frg_status frgi_demean_reweight(frg_demean *d, const double *weights, double tol)
{
    fe_rows *const g = &d->rows;
    if (d->row_lsmr || d->has_slopes || !g->weight || frgi_fe_cascade_has_device(d->cascade)) {
        return FRG_UNSUPPORTED;
    }
    const frgi_weight_range range = frgi_weights_study(weights, 1, g->n);
    if (frgi_weights_apart(&range)) {
        FAIL(d->ctx, E_WEIGHT, "row %lld has the weight %g, which vanishes beside %g",
             (long long)range.least_at + 1, range.least, range.largest);
    }
    frgi_fe_take_tol(d, tol);
    if (frgi_fe_cascade_subproblems(d->cascade)) { /* they have copies of their rows */
        fe_cascade *fresh;
        TRY(frgi_fe_cascade_create(&fresh, d->ctx, g, &d->opts));
        frgi_fe_cascade_destroy(d->cascade, d->ctx);
        d->cascade = fresh;
    } else {
        frgi_fe_cascade_renew(d->cascade, d->ctx, d->opts.tol);
    }
    take(g, weights, &range);
    add(g);
    return FRG_OK;
}
