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
/** frg_demean_create as a part of a run that has begun already. */
FRG_MUST_USE frg_status frgi_fe_demean_within(frg_demean **out, frg_context *ctx, frg_array codes,
                                              const frg_array *weights,
                                              const fe_slopes_asked *asked,
                                              const frg_demean_opts *o);

/** frg_demean_create of codes (n x q, factor behind factor) that stay as they are as long as the
 *  plan, with FE_ROWS_AHEAD numbers behind them that can be read: it may read them where they
 *  are.  files: as of frg_demean_create_kept. */
FRG_MUST_USE frg_status frgi_fe_demean_lent(frg_demean **out, frg_context *ctx, frg_array codes,
                                            const frg_array *weights, const fe_slopes_asked *asked,
                                            const frg_demean_opts *o,
                                            const frg_layout_files *files);

/** frg_demean_run as a part of a run that has begun already: the clock of the time limit goes
 *  on. */
frg_status frgi_fe_demean_run(frg_demean *d, frg_array in, frg_array out,
                              frg_demean_column columns[], frg_info *info);

/** frg_demean_get_rank as a part of a run that has begun already. */
FRG_MUST_USE frg_status frgi_fe_demean_rank(frg_demean *d, frg_demean_rank *out);

/** Was the last run stopped while columns on the disk were brought into another order?  Those that
 *  it had not done are as they came, with audits that are NaN. */
bool frgi_fe_demean_lost(const frg_demean *d);
/** frg_demean_estimate; grouped: the rows of each level of the largest factor stand together. */
FRG_MUST_USE frg_status frgi_fe_demean_estimate(frg_context *ctx, const frg_demean_shape *shape,
                                                bool grouped, const frg_demean_opts *o,
                                                size_t *plan_bytes, size_t *with_factor_bytes,
                                                double *seconds);

/** Is it a plan that a file can hold?  E_UNSUPPORTED for those whose solver is no cascade's, which
 *  have nothing that a file would save. */
FRG_MUST_USE frg_status frgi_fe_plan_check(const frg_demean *d);
/** frg_demean_load as a part of a run that has begun already. */
FRG_MUST_USE frg_status frgi_fe_plan_load(frg_demean *d, const char *path);
/** The plan `d` with other weights (n, each > 0, d has weights already) and another tolerance: the
 *  layout of the rows and the memory of runs stay, solvers are chosen anew.  Plans with slopes
 *  or with method lsmr are not: FRG_UNSUPPORTED, nothing is changed.  E_WEIGHT as
 *  frg_demean_create; a failure of a device leaves a plan that is to be destroyed. */
FRG_MUST_USE frg_status frgi_demean_reweight(frg_demean *d, const double *weights, double tol);

#pragma GCC visibility pop
#endif
