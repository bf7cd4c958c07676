/* direct.h - a direct factor of a sparse symmetric positive semidefinite matrix.
 *
 * Use: analyse (orderings, predicted cost; no numbers touched), factor (numbers), solve as
 * often as wished, destroy.  Analysing again is not needed while the pattern stays. */
#ifndef FRGI_DIRECT_H
#define FRGI_DIRECT_H

#include "core/core.h"
#include "fourge/checkpoint.h"
#include "sparse/symmetric.h"

#pragma GCC visibility push(hidden)

typedef enum { FRGI_ORDER_RCM, FRGI_ORDER_AMD, FRGI_ORDER_COUNT } frgi_order;

typedef struct {
    size_t byte_cap; /* the factor and its index may take this many bytes; 0: no cap */
    unsigned orders; /* bit 1 << frgi_order: the candidates; 0: both */
    double
        null_pivot; /* a pivot <= this fraction of its original diagonal is null; default 1e-11 */
    double cheap_flops;  /* an envelope of at most this many multiply-adds ends the search; default
                            1e7 */
    int64_t amd_max_nnz; /* AMD is not tried on more entries than this (it can't be interrupted);
                            default 5e7 */
    const char *solver;  /* of the progress reports: who factors; default "direct" */
} frgi_direct_opts;

/** What a candidate would cost.  `tried` 0: not computed, the figures are 0. */
typedef struct {
    int tried;
    double flops;       /* multiply-adds of the numeric factor */
    double solve_flops; /* multiply-adds of one solve with one column, both sweeps */
    size_t bytes;       /* of the factor with its index */
    double seconds;     /* factor, estimated from flops at a typical rate on one thread */
} frgi_direct_cost;

typedef struct frgi_direct frgi_direct;

void frgi_direct_defaults(frgi_direct_opts *o);
/** Orders s and predicts.  `last`: n_last distinct indices to be eliminated last (dense rows of
 *  tiny factors); may be NULL with n_last 0.  E_TOO_BIG when every candidate exceeds the cap.  s is
 *  read here and by frgi_direct_factor; its pattern must be the same then. */
FRG_MUST_USE frg_status frgi_direct_analyse(frgi_direct **out, frg_context *ctx,
                                            const frgi_symmetric *s, const int32_t *last,
                                            int64_t n_last, const frgi_direct_opts *o);
/** Is the status the cap's refusal, rather than memory that could not be had? */
bool frgi_direct_refused(const frg_context *ctx, frg_status status);
/** The candidate chosen, and the figures of each. */
frgi_order frgi_direct_chosen(const frgi_direct *f);
frgi_direct_cost frgi_direct_costs(const frgi_direct *f, frgi_order order);
/** Computes the factor.  A pivot <= null_pivot times its original diagonal is a null pivot: the
 *  variable is grounded (its solution is 0).  Allocates the factor on the first call and nothing
 *  later. Polls the heartbeat: may return FRG_INTERRUPTED or FRG_TIME_LIMIT, and then there is no
 *  factor. */
FRG_MUST_USE frg_status frgi_direct_factor(frgi_direct *f, const frgi_symmetric *s);
/** Bytes held, all included. */
size_t frgi_direct_bytes(const frgi_direct *f);
/** n minus the null pivots, after frgi_direct_factor. */
int64_t frgi_direct_rank(const frgi_direct *f);
/** 1 where variable i was grounded (a null pivot). */
int frgi_direct_grounded(const frgi_direct *f, int64_t i);
/** Doubles of scratch that frgi_direct_solve needs for k columns. */
size_t frgi_direct_scratch(const frgi_direct *f, int64_t k);
/** x <- s^+ x for n x k row-major right-hand sides, in place (a generalised inverse: grounded
 *  entries of x become 0, which is an exact solution for every right-hand side in the range).  A
 *  column's bits depend neither on its neighbours nor on k.  Any k >= 1. */
void frgi_direct_solve(const frgi_direct *f, int64_t k, double *x, double *scratch);
void frgi_direct_destroy(frgi_direct *f);

/** The numbers of a factor beside its arrays, as they stand in a file. */
typedef struct {
    int64_t n, order, null_pivots, supernodes;
} frgi_direct_facts;
/** Puts a computed factor into c, whose sections point to it and to *facts until c is saved. */
FRG_MUST_USE frg_status frgi_direct_put(const frgi_direct *f, frgi_direct_facts *facts,
                                        frg_checkpoint *c);
/** The factor of s in c, for s as frgi_direct_analyse and _factor would make it with options o, but
 *  without costs.  E_CHECKPOINT where the sections are no factor of n unknowns: every index is
 *  looked at, and no number. */
FRG_MUST_USE frg_status frgi_direct_get(frgi_direct **out, frg_context *ctx,
                                        const frg_checkpoint *c, const frgi_symmetric *s,
                                        const frgi_direct_opts *o);

#pragma GCC visibility pop
#endif
