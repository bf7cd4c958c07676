/* gp_batch.h - processes in the lanes of a vector: what the batch's files share. */
#ifndef FRGI_GP_BATCH_H
#define FRGI_GP_BATCH_H

#include "gp/gp_lanes.h"
#include "gp/gp_process.h"
#include "gp/gp_tree.h"

#pragma GCC visibility push(hidden)

/** Processes in the lanes of one vector. */
typedef struct {
    frgi_gp_lanes g;
    const frgi_gp_lanes_ops *ops;
    frg_dtype type;
    frg_gp *gp[LANES_MOST]; /* NULL: idle */
    void *x, *reciprocal, *variance, *live, *diagonal, *residual;
} frgi_gp_batch_lanes;

/** Bytes of the lanes of members with n rows and d columns. */
size_t frgi_gp_lanes_bytes(const frgi_gp_lanes_ops *ops, frg_dtype type, ptrdiff_t n, ptrdiff_t d);
/** Sizes the lanes for the processes in them; they have one leaf kind and as many columns. */
void frgi_gp_lanes_open(frgi_gp_batch_lanes *r, const frg_context *ctx, frg_dtype type,
                        frg_gp *const *gp, int count);
/** Value, and where asked the gradient's sums, of every lane at gp->theta; *kept holds the
 *  memory. */
FRG_MUST_USE frg_status frgi_gp_run_lanes(frg_context *ctx, frgi_arena *kept,
                                          frgi_gp_batch_lanes *r, bool gradient);
/** gp->value from a lane; false where the lane's answer is not good enough. */
bool frgi_gp_take_value(const frgi_gp_batch_lanes *r, int lane);
/** gp->gradient from a lane, after its value, and the trace residual. */
void frgi_gp_take_gradient(const frgi_gp_batch_lanes *r, int lane);

/** Adam's fit of all processes of the lanes side by side.  done[i]: gp[i] is at its last point,
 *  with value and gradient; where false it is at its start and has to be fitted alone. */
FRG_MUST_USE frg_status frgi_gp_adam_lanes(frg_context *ctx, frgi_arena *kept,
                                           frgi_gp_batch_lanes *r, const frg_gp_fit_opts *o,
                                           bool done[LANES_MOST]);

#pragma GCC visibility pop
#endif
