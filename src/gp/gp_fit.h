/* gp_fit.h - where a fit starts: the data's doubts about the given start, and random starts beside
 * it. */
#ifndef FRGI_GP_FIT_H
#define FRGI_GP_FIT_H

#include "gp/gp_process.h"

#pragma GCC visibility push(hidden)

/** The first start of a fit: the data choose it (below), and where the kernel correlates no two
 *  points, or all completely, at gp->theta: the free lengthscales become the median distances, with
 *  a warning.  FRG_INTERRUPTED, FRG_TIME_LIMIT: the start is as it was. */
FRG_MUST_USE frg_status frgi_gp_check_start(frg_gp *gp, int starts);
/** The parameters whose values are still those that the data gave them become a likelier start
 *  (gp_choose.c), and every parameter has the interval that random starts are drawn from, where
 *  there are several.  A positive status: stopped. */
FRG_MUST_USE frg_status frgi_gp_choose_start(frg_gp *gp, int starts);
enum { FRGI_GP_PERIODS = 4 };
/** The periods of the highest peaks of a periodogram of y along a column of x, the highest
 *  first. */
FRG_MUST_USE frg_status frgi_gp_periods(const frg_gp *gp, ptrdiff_t column,
                                        double periods[FRGI_GP_PERIODS], int *count);
/** Random values of the free parameters in theta: from their priors, else log-uniform within the
 *  intervals that the data make likely, the bounds of the text, or about what stands there. */
void frgi_gp_random_start(const frg_gp *gp, int64_t number, double *theta);

/** Which parameters ended at a bound, with one warning for all; forgets their standard errors. */
void frgi_gp_set_active(frg_gp *gp);

#pragma GCC visibility pop
#endif
