/* gp_create.h - what a process takes of a caller: sizes, and processes that take the place
 * of others. */
#ifndef FRGI_GP_CREATE_H
#define FRGI_GP_CREATE_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

/** What |x| and |y| may be in the process's arithmetic, and the refusal of what is not. */
double frgi_gp_largest_x(const frg_gp_opts *o);
double frgi_gp_largest_y(const frg_gp_opts *o);
frg_status frgi_gp_refuse_size(frg_context *ctx, const char *name, int64_t i, int64_t j, double v,
                               double most);

/** frg_gp_create in *reused, which is NULL or what an earlier call with this expression and these
 *  options left there: a process of enough capacity takes the new data as a new one would.  The
 *  caller destroys *reused at the end, also after a failure.  model: NULL, or such a process (on
 *  any context) that outlives it, whose expression may serve. */
FRG_MUST_USE frg_status frgi_gp_create_from(frg_gp **reused, frg_context *ctx, frg_array x,
                                            frg_array y, const char *kernel, const frg_gp_opts *o,
                                            const frg_gp *model);

#pragma GCC visibility pop
#endif
