/* gw_marginals.h - weights of both sides as marginals of a plan: checked, normalised, partial; and
 * Sinkhorn's iteration and dense products inside of a run. */
#ifndef FRGI_GW_MARGINALS_H
#define FRGI_GW_MARGINALS_H

#include "core/core.h"
#include "fourge/gw.h"

#pragma GCC visibility push(hidden)

#define FRGI_LOG2_E 1.4426950408889634

/** sum_k c_k^2 w_k of a row of distances: a term of L(P). */
static inline double frgi_square_term(const double *row, const double *w, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        sum += row[k] * row[k] * w[k];
    }
    return sum;
}

/** w <- the weights given (NULL: 1/n each), checked; *sum <- their sum. */
FRG_MUST_USE frg_status frgi_take_weights(frg_context *ctx, const double *given, int64_t n,
                                          const char *name, double *w, double *sum);
/** Weights of a side as frgi_take_weights left them; not given: uniform, and of any sum. */
typedef struct {
    double *w;
    int64_t n;
    double sum;
    bool given;
} frgi_weights;
/** Divides both by their sums; E_MARGINAL where these differ, W_TOTALS where they are not 1, by
 *  more than 1e-6. */
FRG_MUST_USE frg_status frgi_normalise_weights(frg_context *ctx, frgi_weights a, frgi_weights b);
/** frg_sinkhorn_run inside of a run, whose time limit goes on. */
FRG_MUST_USE frg_status frgi_sinkhorn_solve(frg_sinkhorn *s, frg_info *info);
/** frg_emd inside of a run, of arrays of these shapes. */
FRG_MUST_USE frg_status frgi_emd_solve(frg_context *ctx, frg_array cost, const double *a,
                                       const double *b, frg_array plan, double *f, double *g,
                                       frg_emd_report *report);
/** Whether a mass to carry, which is checked to be at most both sums, is a part: not all of sums
 *  that are the same. */
bool frgi_is_partial(double mass, double sum_a, double sum_b);
/** Part of the mass is carried relative to nothing but the counting measure. */
FRG_MUST_USE frg_status frgi_check_partial(frg_context *ctx, frg_gw_reference reference);

#pragma GCC visibility pop
#endif
