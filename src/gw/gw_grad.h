/* gw_grad.h - what the ways through a plan share. */
#ifndef FRGI_GW_GRAD_H
#define FRGI_GW_GRAD_H

#include "gw/gw_array.h"
#include "gw/gw_plan.h"

#pragma GCC visibility push(hidden)

enum { FRGI_GRAD_CHUNKS = 8 };

/** out <- the sums (chunks x m) of all chunks, added by the tree of core/tree_sum.h. */
void frgi_sum_chunks(const double *sums, int64_t m, double *out);
/** Takes the mean over the entries of weight > 0 from them; the others become 0. */
void frgi_centre(double *x, const double *weight, int64_t n);

/** out <- dLoss/dCost for g = dLoss/dP through the passes that are saved (gw_unroll.c); a and b as
 *  in frg_plan_vjp. */
FRG_MUST_USE frg_status frgi_unrolled_vjp(const frgi_transport *t, const frg_array *g,
                                          const frg_array *out, double *a, double *b);

#pragma GCC visibility pop
#endif
