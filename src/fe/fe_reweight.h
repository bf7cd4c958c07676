/* fe_reweight.h - other weights for a plan of the demeaner. */
#ifndef FRGI_FE_REWEIGHT_H
#define FRGI_FE_REWEIGHT_H

#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

/** The plan `d` with other weights (n, each > 0, d has weights already) and
 *  another tolerance: the layout of the rows and the memory of runs stay, solvers are chosen
 *  anew.  Plans with slopes, with method lsmr or on a device are not: FRG_UNSUPPORTED, nothing is
 *  changed.
 *  E_WEIGHT as frg_demean_create. */
FRG_MUST_USE frg_status frgi_demean_reweight(frg_demean *d, const double *weights, double tol);

#pragma GCC visibility pop
#endif
