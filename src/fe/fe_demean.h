/* fe_demean.h - the demeaner for callers inside the library. */
#ifndef FRGI_FE_DEMEAN_H
#define FRGI_FE_DEMEAN_H

#include "fe/fe_device.h"
#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

/** Varying slopes as frg_demean_create takes them. */
typedef struct {
    const frg_slope *slopes;
    int count;
    uint64_t no_intercept;
} fe_slopes_asked;
/** frg_demean_create on a device, or the host. */
FRG_MUST_USE frg_status frgi_fe_demean_open(frg_demean **out, frg_context *ctx,
                                            fe_device_place where, frg_array codes,
                                            const frg_array *weights, const fe_slopes_asked *asked,
                                            const frg_demean_opts *o);

/** frg_demean_run as a part of a run that has begun already: the clock of the time limit goes
 *  on. */
frg_status frgi_fe_demean_run(frg_demean *d, frg_array in, frg_array out,
                              frg_demean_column columns[], frg_info *info);

/** Is it a plan that a file can hold?  E_UNSUPPORTED for those whose solver is no cascade's, which
 *  have nothing that a file would save. */
FRG_MUST_USE frg_status frgi_fe_plan_check(const frg_demean *d);
/** frg_demean_load as a part of a run that has begun already. */
FRG_MUST_USE frg_status frgi_fe_plan_load(frg_demean *d, const char *path);
/** The plan `d` with other weights (n, each > 0, d has weights already) and another tolerance: the
 *  layout of the rows and the memory of runs stay, solvers are chosen anew.  Plans with slopes,
 *  with method lsmr or on a device are not: FRG_UNSUPPORTED, nothing is changed.  E_WEIGHT as
 *  frg_demean_create. */
FRG_MUST_USE frg_status frgi_demean_reweight(frg_demean *d, const double *weights, double tol);

#pragma GCC visibility pop
#endif
