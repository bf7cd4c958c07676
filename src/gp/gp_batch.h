/* gp_batch.h - processes in the lanes of a vector: what the batch's files share. */
#ifndef FRGI_GP_BATCH_H
#define FRGI_GP_BATCH_H

#include "gp/gp_lanes.h"
#include "gp/gp_process.h"
#include "gp/gp_tree.h"

#pragma GCC visibility push(hidden)

/** Processes in the lanes of one vector. */
struct frgi_gp_batch_lanes {
    const frgi_gp_steps *steps;
    frgi_gp_lanes g;
    const frgi_gp_lanes_ops *ops;
    frg_dtype type;
    frg_gp *gp[LANES_MOST]; /* NULL: idle */
    void *x, *reciprocal, *variance, *live, *diagonal, *residual;
};

/** Bytes of the lanes of members with n rows and d columns. */
size_t frgi_gp_lanes_bytes(const frgi_gp_lanes_ops *ops, frg_dtype type, ptrdiff_t n, ptrdiff_t d);
/** Sizes the lanes for the processes in them; they have one leaf kind and as many columns. */
void frgi_gp_lanes_open(frgi_gp_batch_lanes *r, const frg_context *ctx, const frgi_gp_steps *steps,
                        frg_dtype type, frg_gp *const *gp, int count);
/** The step `run` on lanes that *kept holds the memory of, which r->steps close. */
FRG_MUST_USE frg_status frgi_gp_run_lanes(frg_context *ctx, frgi_arena *kept,
                                          frgi_gp_batch_lanes *r, bool gradient);

/** Adam's fit of all processes of the lanes side by side.  done[i]: gp[i] is at its last point,
 *  with value and gradient; where false it is at its start and has to be fitted alone. */
FRG_MUST_USE frg_status frgi_gp_adam_lanes(frg_context *ctx, frgi_arena *kept,
                                           frgi_gp_batch_lanes *r, const frg_gp_fit_opts *o,
                                           bool done[LANES_MOST]);

/** frg_gp_batch_eval, or where fit is not NULL frg_gp_batch_fit, with these steps. */
FRG_MUST_USE frg_status frgi_gp_batch(frg_context *ctx, int64_t count, frg_gp_member *members,
                                      const char *kernel, const frg_gp_opts *o,
                                      const frg_gp_fit_opts *fit, const frgi_gp_steps *steps);

#pragma GCC visibility pop
#endif
