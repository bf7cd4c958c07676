/* gp_fit.h - where a fit starts (gp_starts.c, gp_choose.c, gp_periods.c) and what it leaves in
 * the parameters (gp_fit.c). */
#ifndef FRGI_GP_FIT_H
#define FRGI_GP_FIT_H

#include "gp/gp_process.h"

#pragma GCC visibility push(hidden)

/** Sets gp->theta to the first start of a fit: what frgi_gp_choose_start makes of it; then, where
 *  the kernel correlates no two points, or all completely, the free lengthscales become the median
 *  distances, with a warning.  FRG_INTERRUPTED, FRG_TIME_LIMIT: the start is as it was. */
FRG_MUST_USE frg_status frgi_gp_check_start(frg_gp *gp, int starts);
/** Parameters that still have the values from the data get others of larger ell + log prior
 *  (gp_choose.c); where there are several starts every parameter gets the interval that random ones
 *  are drawn from.  A positive status: stopped. */
FRG_MUST_USE frg_status frgi_gp_choose_start(frg_gp *gp, int starts);
/** The median of `count` values, which are sorted; 0 where there are none. */
double frgi_gp_median(double *v, ptrdiff_t count);
enum { FRGI_GP_PERIODS = 4 };
/** The periods of the highest peaks of a periodogram of y along a column of x, the highest
 *  first. */
FRG_MUST_USE frg_status frgi_gp_periods(const frg_gp *gp, ptrdiff_t column,
                                        double periods[FRGI_GP_PERIODS], int *count);
/** Random values of the free parameters in theta: from their priors, else log-uniform within the
 *  intervals of frgi_gp_choose_start, the bounds of the text, or a factor of 100 of theta. */
void frgi_gp_random_start(const frg_gp *gp, int64_t number, double *theta);

/** Which parameters ended at a bound, with one warning for all; forgets their standard errors. */
void frgi_gp_set_active(frg_gp *gp);

#pragma GCC visibility pop
#endif
