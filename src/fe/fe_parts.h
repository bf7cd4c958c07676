/* fe_parts.h - a design taken apart where its graph falls into components that want different rungs.
 *
 * Levels of different components never meet in a row, so that S is block diagonal: each part (a component, or
 * several that want the same) has rows, a ladder and a stopping test of its own, and no step of one passes over
 * the rows of another.  A column's sum of squares is one for all parts: what the parts before have taken out of
 * it leaves the scale of the next one's test, and the audit of the whole is what counts.
 *
 * Levels that are components by themselves (all of their units' rows are theirs) belong to no part: S is 0 there.
 */
#ifndef FRGI_FE_PARTS_H
#define FRGI_FE_PARTS_H

#include "fe/fe_ladder.h"

#pragma GCC visibility push(hidden)

/** *out stays NULL where all would be one part. */
FRG_MUST_USE frg_status frgi_fe_parts_create(fe_parts **out, frg_context *ctx, const fe_rows *g,
                                             const frg_demean_opts *o);
/** Adds the solution of S a = w->cg.r to w->answer; arguments as those of frgi_fe_ladder_solve.  Of the parts,
 *  FE_FROM_FACTOR takes those to the factor that most of the error is in. */
FRG_MUST_USE frg_status frgi_fe_parts_solve(fe_parts *p, frg_context *ctx, const fe_block_work *w,
                                            fe_ladder_start start, const fe_cg_target *target,
                                            fe_cg_column *column);
/** As frgi_fe_ladder_error, after a solve of the same kind of block. */
void frgi_fe_parts_error(const fe_parts *p, const fe_block_work *w, const double *s,
                         const double *lambda, bool prepared, double *error);
/** Is there nothing beyond the last solve: all parts were factored, or those that had to be? */
bool frgi_fe_parts_at_end(const fe_parts *p);
/** "direct by components", "cg by components", or both. */
const char *frgi_fe_parts_method(const fe_parts *p);
size_t frgi_fe_parts_bytes(const fe_parts *p);
/** Rank of S, counted part by part as frgi_fe_ladder_count does. */
FRG_MUST_USE frg_status frgi_fe_parts_rank(fe_parts *p, frg_context *ctx, bool cheap_only,
                                           int64_t *rank);
/** The level means of a column's result (n_coef of the whole), which it has as its audit when times `scale`; lane: as in
 *  the targets of its solves.  What was seen last of a block's columns counts once they are settled. */
void frgi_fe_parts_see(fe_parts *p, int lane, const double *mean, double scale);
void frgi_fe_parts_settle(fe_parts *p, int lanes);
/** Parts, a part's own parts in its place, and what is known of the i-th. */
int64_t frgi_fe_parts_count(const fe_parts *p);
frg_demean_part frgi_fe_parts_part(const fe_parts *p, int64_t i);
void frgi_fe_parts_destroy(fe_parts *p, frg_context *ctx);

#pragma GCC visibility pop
#endif
