/* gp_fit.h - where a fit starts: the data's doubts about the given start, and random starts beside it. */
#ifndef FRGI_GP_FIT_H
#define FRGI_GP_FIT_H

#include "gp/gp_room.h"

#pragma GCC visibility push(hidden)

/** Where the kernel correlates no two points, or all completely, at gp->theta: the free lengthscales become the
 *  median distances, with a warning. */
FRG_MUST_USE frg_status frgi_gp_check_start(frg_gp *gp);
/** Random values of the free parameters in theta: from their priors, else log-uniform within their bounds, or about
 *  what stands there. */
void frgi_gp_random_start(const frg_gp *gp, int64_t number, double *theta);

/** Which parameters ended at a bound, with one warning for all; forgets their standard errors. */
void frgi_gp_mark_active(frg_gp *gp);

#pragma GCC visibility pop
#endif
