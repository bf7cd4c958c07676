/* fe_cascade.h - the solvers of S a = b on the Schur complement, and the choice among them.
 *
 *     rows          conjugate gradients, S applied through the rows
 *     explicit      conjugate gradients on the assembled S
 *     direct        a sparse Cholesky factor of S
 *     ac            conjugate gradients on S, preconditioned by an approximate Cholesky factor
 *     subproblems   components of the graph, each with a cascade of its own (fe_subproblems.h)
 *
 * On a device `rows` runs there, and stands for `explicit`, too; the factors are the host's, and
 * components are not solved apart.
 *
 * The choice depends on the graph alone, never on a column, so that a column's bits do not depend
 * on the columns beside it: a sample of the eliminated levels estimates what S would cost, a probe
 * with a random right-hand side how fast CG contracts, the symbolic analysis what a factor would
 * cost.  A column that one solver does not finish escalates to the next, which begins at the
 * iterate reached.
 */
#ifndef FRGI_FE_CASCADE_H
#define FRGI_FE_CASCADE_H

#include "fe/fe_cg.h"
#include "fe/fe_rows.h"
#include "fourge/checkpoint.h"
#include "fourge/fe.h"
#include "sparse/approx_chol.h"
#include "sparse/direct.h"

#pragma GCC visibility push(hidden)

typedef struct fe_cascade fe_cascade;
typedef struct fe_subproblems fe_subproblems;
typedef struct fe_device fe_device;

/** Work memory of one block of `lanes` columns. */
typedef struct {
    int lanes;
    fe_row_work rows;
    fe_cg_work cg;  /* cg.r takes the right-hand side and keeps what is left of it */
    double *answer; /* n_reduced x lanes */
    double *keep;   /* n_reduced x lanes: the caller's */
} fe_block_work;
/** passes: with the memory of passes on the host. */
void frgi_fe_block_work_layout(frgi_arena *a, const fe_rows *g, int lanes, bool passes,
                               fe_block_work *w);

FRG_MUST_USE frg_status frgi_fe_cascade_create(fe_cascade **out, frg_context *ctx, const fe_rows *g,
                                               const frg_demean_opts *o);
/** Solves through the rows are the device's from now on; the cascade destroys it. */
void frgi_fe_cascade_take_device(fe_cascade *c, fe_device *device);

/** The device where it solves; NULL: the host. */
fe_device *frgi_fe_cascade_device(const fe_cascade *c);
/** The device whose are right-hand sides and residuals; NULL: they are the host's, as those of no
 *  cascade. */
fe_device *frgi_fe_cascade_passes(const fe_cascade *c);
/** The weights of the rows are others on the device, too, where there is one. */
FRG_MUST_USE frg_status frgi_fe_cascade_reweight_device(fe_cascade *c);
/** Does it, and in float alone? */
bool frgi_fe_cascade_in_float(const fe_cascade *c);
/** The device's name where it has computed anything, else "cpu". */
const char *frgi_fe_cascade_place(const fe_cascade *c);

/** Where a solve begins. */
typedef enum {
    FE_FROM_ROWS,      /* where the graph says */
    FE_FROM_ASSEMBLED, /* beyond the rows: for the refinement of a column that has escalated */
    FE_FROM_FACTOR /* by the factor within fill_cap: the last solver did not halve the residual */
} fe_cascade_start;

/** Solves S a = w->cg.r into w->answer.  `work` is the work memory by lanes: of one column, for the
 *  probe (it may be w), and of the host's lanes for a block of another number.  column[k].escalated
 *  tells whether column k went beyond the rows.  Returns FRG_OK, the heartbeat's status (w->answer
 *  is then the iterate), or a failure to build a solver. */
FRG_MUST_USE frg_status frgi_fe_cascade_solve(fe_cascade *c, frg_context *ctx,
                                              const fe_block_work *w, const fe_block_work *work,
                                              fe_cascade_start start, const fe_cg_target *target,
                                              fe_cg_column *column);
/** error[k] <- an estimate of || W^(1/2) D_r e_k ||^2 over the solution's error e = S^+ s: exact
 *  with a factor, else s'M^-1 s / lambda_k with the solver's preconditioner M.  The solver is the
 *  last one used, or, if `prepared`, the one that solves begin with, which does not depend on the
 *  columns. Uses w->cg.z and w->cg.q. */
FRG_MUST_USE frg_status frgi_fe_cascade_error(const fe_cascade *c, const fe_block_work *w,
                                              const double *s, const double *lambda, bool prepared,
                                              double *error);

/** Fixes where solves will begin before any is made, by a probe through the rows, and builds the
 *  solver beyond them; both depend on the graph alone.  Called once for the cascade of each
 *  subproblem.  single: the work memory of one column. */
FRG_MUST_USE frg_status frgi_fe_cascade_prepare(fe_cascade *c, frg_context *ctx,
                                                const fe_block_work *single);
/** Does a solve from the rows begin beyond them? */
bool frgi_fe_cascade_begins_beyond(const fe_cascade *c);
/** The subproblems that S was split into; NULL: none. */
fe_subproblems *frgi_fe_cascade_subproblems(const fe_cascade *c);

/** Bytes a factor may take: fill_cap, or a quarter of the memory limit or of what the process may
 *  use. */
size_t frgi_fe_fill_cap(const frg_context *ctx, const frg_demean_opts *o);
/** Was the last solve by the direct factor, or by those of the subproblems that needed one, so that
 *  no further solver exists? */
bool frgi_fe_cascade_is_direct(const fe_cascade *c);
/** The name of the last solver used. */
const char *frgi_fe_cascade_method(const fe_cascade *c);
size_t frgi_fe_cascade_factor_bytes(const fe_cascade *c);
/** Counts the rank of S by its factor, built for this where it is not there: whatever it costs up
 *  to fill_cap, or, cheap_only, where it costs no more than a pass over the rows; *rank is -1
 *  otherwise. */
FRG_MUST_USE frg_status frgi_fe_cascade_count(fe_cascade *c, frg_context *ctx, bool cheap_only,
                                              int64_t *rank);
/** The weights of the rows are others, the graph is the same, and there are no subproblems: what
 *  depends on the weights is dropped; the estimate of the cost of S and the order of a factor
 *  stay, the order for an S of the same pattern. */
void frgi_fe_cascade_renew(fe_cascade *c, frg_context *ctx, double tol);
void frgi_fe_cascade_destroy(fe_cascade *c, frg_context *ctx);

/** What of a cascade stands in a file beside arrays; no padding. */
typedef struct {
    double products;
    int64_t refused, chosen, choice, split_tried, beyond, used;
    int64_t assembled, border, groups; /* of S */
    int64_t factored, approximate;     /* factors that are there */
    frgi_direct_facts direct;
    frgi_ac_facts ac;
} fe_cascade_facts;
/** Puts what has been found out and built into c, whose sections point to the cascade and to
 *  *facts until c is saved.  E_UNSUPPORTED on a device and where components are solved apart. */
FRG_MUST_USE frg_status frgi_fe_cascade_put(const fe_cascade *c, fe_cascade_facts *facts,
                                            frg_checkpoint *to);
/** Makes a fresh cascade of the same rows and options what the saved one was: its solves have the
 *  same bits, and neither assemble nor order nor factor.  E_CHECKPOINT: the sections are damaged,
 *  and the cascade is to be destroyed. */
FRG_MUST_USE frg_status frgi_fe_cascade_get(fe_cascade *c, const frg_checkpoint *from);

#pragma GCC visibility pop
#endif
