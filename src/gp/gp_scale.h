/* gp_scale.h - a scale that is profiled: K = f R. */
#ifndef FRGI_GP_SCALE_H
#define FRGI_GP_SCALE_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

/** Parameters of a profiled scale: fixes one where all of R could be multiplied by free ones. */
void frgi_gp_scale_hold(frg_gp *gp);
/** Observations that f is the mean square of: n q, (n - m) q under REML. */
double frgi_gp_scale_count(const frg_gp *gp);
/** Between the two triangular solves: quad, f, and residual and alpha divided by its root.  False
 *  where the residual is rounding. */
bool frgi_gp_scale_profile(frg_gp *gp);

#pragma GCC visibility pop
#endif
