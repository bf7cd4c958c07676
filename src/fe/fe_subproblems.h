/* fe_subproblems.h - S split into the components of its graph where these call for different
 * solvers.
 *
 * Levels of different components never meet in a row, so that S is block diagonal: each subproblem
 * (a component, or several that call for the same solver) has rows, a cascade and a stopping test
 * of its own, and no iteration of one passes over the rows of another.  A column's sum of squares
 * is one for all subproblems: what the earlier ones have taken out of it is subtracted before the
 * next one's stopping test, and the audit of the whole decides.
 *
 * Levels that are components by themselves (all rows of their eliminated levels are theirs) belong
 * to no subproblem: S is 0 there.
 */
#ifndef FRGI_FE_SUBPROBLEMS_H
#define FRGI_FE_SUBPROBLEMS_H

#include "fe/fe_cascade.h"

#pragma GCC visibility push(hidden)

/** *out stays NULL where all would be one subproblem. */
FRG_MUST_USE frg_status frgi_fe_subproblems_create(fe_subproblems **out, frg_context *ctx,
                                                   const fe_rows *g, const frg_demean_opts *o);
/** Adds the solution of S a = w->cg.r to w->answer; arguments as those of frgi_fe_cascade_solve.
 *  FE_FROM_FACTOR factors the subproblems that hold most of the error. */
FRG_MUST_USE frg_status frgi_fe_subproblems_solve(fe_subproblems *p, frg_context *ctx,
                                                  const fe_block_work *w, fe_cascade_start start,
                                                  const fe_cg_target *target, fe_cg_column *column);
/** As frgi_fe_cascade_error, after a solve of the same kind of block. */
FRG_MUST_USE frg_status frgi_fe_subproblems_error(const fe_subproblems *p, const fe_block_work *w,
                                                  const double *s, const double *lambda,
                                                  bool prepared, double *error);
/** Does no solver follow the last solve: all subproblems were factored, or those that had to be? */
bool frgi_fe_subproblems_at_end(const fe_subproblems *p);
/** "direct by components", "cg by components", or both. */
const char *frgi_fe_subproblems_method(const fe_subproblems *p);
size_t frgi_fe_subproblems_bytes(const fe_subproblems *p);
/** Rank of S: the sum over the subproblems of what frgi_fe_cascade_count counts. */
FRG_MUST_USE frg_status frgi_fe_subproblems_rank(fe_subproblems *p, frg_context *ctx,
                                                 bool cheap_only, int64_t *rank);
/** Records the level means of a column's result (n_reduced of the whole), whose largest times
 *  `scale` is its audit; lane: as in the targets of its solves.  What was recorded last for a
 *  block's columns counts once it is committed. */
FRG_MUST_USE frg_status frgi_fe_subproblems_record(fe_subproblems *p, int lane, const double *mean,
                                                   double scale);
void frgi_fe_subproblems_commit(fe_subproblems *p, int lanes);
/** The number of subproblems, with those that a subproblem was split into in its place, and the
 *  report of the i-th. */
int64_t frgi_fe_subproblems_count(const fe_subproblems *p);
frg_demean_part frgi_fe_subproblems_get(const fe_subproblems *p, int64_t i);
void frgi_fe_subproblems_destroy(fe_subproblems *p, frg_context *ctx);

#pragma GCC visibility pop
#endif
