/* gp_information.h - the average information, and standard errors from it. */
#ifndef FRGI_GP_INFORMATION_H
#define FRGI_GP_INFORMATION_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

/** AI of all parameters, p x p (see fourge/gp.h), fixed ones zero. */
FRG_MUST_USE frg_status frgi_gp_information(frg_gp *gp, double *information);
/** params.p[i].std_error from the inverse of AI and the priors' curvature over the free
 *  parameters. */
FRG_MUST_USE frg_status frgi_gp_standard_errors(frg_gp *gp);

#pragma GCC visibility pop
#endif
