/* fe_ladder.h - ways to solve S a = b on the Schur complement, and the choice among them.
 *
 *     rows       conjugate gradients, S applied through the rows
 *     explicit   conjugate gradients on the assembled S
 *     direct     a sparse Cholesky factor of S
 *     ac         conjugate gradients on S, preconditioned by an approximate Cholesky factor
 *     parts      components of the graph apart, each on a ladder of its own (fe_parts.h)
 *
 * The choice depends on the graph alone, never on a column, so that a column's bits do not depend on the
 * columns beside it: a sample of the units tells what S would cost, a probe with a random right-hand side
 * how fast gradients contract, the symbolic analysis what a factor would cost.  A column that is not done
 * on one rung goes on, from where it is, on the next.
 */
#ifndef FRGI_FE_LADDER_H
#define FRGI_FE_LADDER_H

#include "fe/fe_cg.h"
#include "fe/fe_rows.h"
#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

typedef struct fe_ladder fe_ladder;
typedef struct fe_parts fe_parts;

/** Work memory of one block of 1 << kind columns. */
typedef struct {
    int kind;
    fe_row_work rows;
    fe_cg_work cg;  /* cg.r takes the right-hand side and keeps what is left of it */
    double *answer; /* n_coef x lanes */
    double *keep;   /* n_coef x lanes: the caller's */
} fe_block_work;
void frgi_fe_block_work_layout(frgi_arena *a, const fe_rows *g, int kind, fe_block_work *w);

FRG_MUST_USE frg_status frgi_fe_ladder_create(fe_ladder **out, frg_context *ctx, const fe_rows *g,
                                              const frg_demean_opts *o);
/** Where a solve begins. */
typedef enum {
    FE_FROM_ROWS,      /* where the graph says */
    FE_FROM_ASSEMBLED, /* beyond the rows: for the refinement of a column that they have not served */
    FE_FROM_FACTOR /* whatever it costs within fill_cap: for one that the rung before could not halve */
} fe_ladder_start;

/** Solves S a = w->cg.r into w->answer.  `single` is the work memory of one column, for the probe (it may
 *  be w).  column[k].climbed tells whether column k went beyond the rows.  Returns FRG_OK, the heartbeat's status (w->answer is then the
 *  iterate), or a failure to build a rung. */
FRG_MUST_USE frg_status frgi_fe_ladder_solve(fe_ladder *l, frg_context *ctx, const fe_block_work *w,
                                             const fe_block_work *single, fe_ladder_start start,
                                             const fe_cg_target *target, fe_cg_column *column);
/** error[k] <- an estimate of || W^(1/2) D_r e_k ||^2 over the solution's error e = S^+ s: exact with a
 *  factor, else s'M^-1 s / lambda_k with the rung's preconditioner M.  The rung is the last one used, or,
 *  prepared, the one that solves begin with, which no column has a say in.  Uses w->cg.z and w->cg.q. */
void frgi_fe_ladder_error(const fe_ladder *l, const fe_block_work *w, const double *s,
                          const double *lambda, bool prepared, double *error);

/** Fixes where solves will begin before any is made, by a probe through the rows, and builds the rung that serves
 *  beyond them: a matter of the graph.  Asked once, of the ladders of parts.  single: as for frgi_fe_ladder_solve. */
FRG_MUST_USE frg_status frgi_fe_ladder_prepare(fe_ladder *l, frg_context *ctx,
                                               const fe_block_work *single);
/** Does a solve from the rows begin beyond them? */
bool frgi_fe_ladder_begins_beyond(const fe_ladder *l);
/** The parts that components were taken apart into; NULL: none. */
fe_parts *frgi_fe_ladder_parts(const fe_ladder *l);

/** Bytes a factor may take: fill_cap, or a quarter of the memory limit or of what the process may use. */
size_t frgi_fe_fill_cap(const frg_context *ctx, const frg_demean_opts *o);
/** Was the last solve by the direct factor, or by those of the parts that needed one, beyond which there is
 *  nothing? */
bool frgi_fe_ladder_is_direct(const fe_ladder *l);
/** The last rung used, in words. */
const char *frgi_fe_ladder_method(const fe_ladder *l);
size_t frgi_fe_ladder_factor_bytes(const fe_ladder *l);
/** Counts the rank of S by its factor, built for this where it is not there: whatever it costs up to
 *  fill_cap, or, cheap_only, where it costs no more than a pass over the rows; *rank is -1 otherwise. */
FRG_MUST_USE frg_status frgi_fe_ladder_count(fe_ladder *l, frg_context *ctx, bool cheap_only,
                                             int64_t *rank);
void frgi_fe_ladder_destroy(fe_ladder *l, frg_context *ctx);

#pragma GCC visibility pop
#endif
