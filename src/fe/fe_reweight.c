/* fe_reweight.c - see fe_reweight.h.
 *
 * Iteratively reweighted least squares changes the weights at every step and nothing else.  Of a
 * plan these decide N_u and N_l, the weighted counts, and what the cascade has made of S; codes,
 * order and chunks, and the order of a factor, do not depend on them.  One pass over the rows.
 */
#include "fe/fe_reweight.h"

#include "fe/fe_demean_plan.h"

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
    frgi_fe_rows_take_weights(g, weights, 1, &range, frg_threads(d->ctx));
    return FRG_OK;
}
