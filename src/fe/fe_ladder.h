/* fe_ladder.h - ways to solve S a = b on the Schur complement, and the choice among them.
 *
 * The choice depends on the graph alone, never on a column, so that a column's bits do not depend on the
 * columns beside it: rung after rung a column that is not done goes on by itself.
 */
#ifndef FRGI_FE_LADDER_H
#define FRGI_FE_LADDER_H

#include "fe/fe_cg.h"
#include "fe/fe_rows.h"
#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

typedef struct fe_ladder fe_ladder;

/** Work memory of one block; b and the answer lie in it. */
typedef struct {
    fe_row_work rows;
    fe_cg_work cg;  /* cg.r takes b */
    double *answer; /* n_coef x lanes */
    double *keep;   /* n_coef x lanes: b, for the rungs after the first */
} fe_block_work;
void frgi_fe_block_work_layout(frgi_arena *a, const fe_rows *g, int lanes, fe_block_work *w);

FRG_MUST_USE frg_status frgi_fe_ladder_create(fe_ladder **out, frg_context *ctx, const fe_rows *g,
                                              const frg_demean_opts *o);
/** Solves for the block in w (b in w->cg.r, destroyed) into w->answer.  rung 0 begins at the first rung,
 *  1 begins one rung further: for a refinement that the rung before could not halve.
 *  Returns FRG_OK or the heartbeat's status; w->answer is then the iterate. */
FRG_MUST_USE frg_status frgi_fe_ladder_solve(fe_ladder *l, frg_context *ctx, const fe_block_work *w,
                                             int kind, int escalate, const fe_cg_target *target,
                                             fe_cg_column *column);
/** Bytes a factor may take: fill_cap, or a quarter of the memory limit or of what the process may use. */
size_t frgi_fe_fill_cap(const frg_context *ctx, const frg_demean_opts *o);
/** The last rung used, in words. */
const char *frgi_fe_ladder_method(const fe_ladder *l);
size_t frgi_fe_ladder_factor_bytes(const fe_ladder *l);
/** Rank of S where a factor has counted it; -1 otherwise. */
int64_t frgi_fe_ladder_rank(const fe_ladder *l);
/** Builds the factor whatever it costs (up to fill_cap) to count the rank of S. */
FRG_MUST_USE frg_status frgi_fe_ladder_count(fe_ladder *l, frg_context *ctx, int64_t *rank);
void frgi_fe_ladder_destroy(fe_ladder *l, frg_context *ctx);

#pragma GCC visibility pop
#endif
