/* supernodal.h - the factor of a matrix in any order, by supernodes. */
#ifndef FRGI_SUPERNODAL_H
#define FRGI_SUPERNODAL_H

#include "fourge/checkpoint.h"
#include "sparse/direct_ops.h"
#include "sparse/ordering.h"

#pragma GCC visibility push(hidden)

/** Supernode s: columns first[s] .. first[s+1]-1, all with the rows below[s] .. below[s+1]-1 of
 *  `rows`. */
typedef struct {
    int64_t n, count;
    int32_t *first;    /* count + 1 */
    int32_t *parent;   /* count; -1: a root */
    int64_t *below;    /* count + 1 */
    int32_t *rows;     /* below[count], ascending within a supernode */
    int64_t *offset;   /* count + 1: its panels, in doubles */
    int64_t *diagonal; /* count + 1: its reciprocals and floors, in doubles */
    int64_t tallest; /* rows of the tallest supernode, its columns included, rounded up to panels */
    double flops, solve_flops;
    frgi_arena memory;
} frgi_supernodal;

/** Elimination tree, column counts, supernodes and their rows.  order is made a postorder of the
 *  tree (order[new] = old); place, its inverse, is written. */
FRG_MUST_USE frg_status frgi_supernodal_analyse(frgi_supernodal *t, frg_context *ctx,
                                                const frgi_pattern *a, int32_t *order,
                                                int32_t *place);
/** Writes `rows`, which frgi_supernodal_analyse only counts. */
FRG_MUST_USE frg_status frgi_supernodal_rows(frgi_supernodal *t, frg_context *ctx,
                                             const frgi_pattern *a, const int32_t *order,
                                             const int32_t *place);
size_t frgi_supernodal_bytes(const frgi_supernodal *t);

/** What the factor is computed with. */
typedef struct {
    const frgi_pattern *pattern;
    const double *matrix; /* values of the pattern */
    const int32_t *order, *place;
    const frgi_direct_ops *ops;
    double null_pivot;        /* pivots up to this fraction of the matrix's diagonal are null */
    const char *solver;       /* of the progress reports */
    double *panels, *inverse; /* results */
    double *lowest;           /* the pivots' floors: work from here on */
    int64_t *address;         /* tallest */
    int32_t *map;             /* n */
    int32_t *head, *next;     /* count: supernodes that update s next */
    int32_t *done;            /* count: rows of it that were passed on */
} frgi_supernodal_work;

/** *nulls counts null pivots, those of padding columns included. */
FRG_MUST_USE frg_status frgi_supernodal_factor(const frgi_supernodal *t,
                                               const frgi_supernodal_work *w, frg_context *ctx,
                                               int64_t *nulls);
/** x: n rows, 4 or 8 wide; local: tallest rows of the same width. */
void frgi_supernodal_solve(const frgi_supernodal *t, const frgi_direct_ops *ops, double *panels,
                           double *inverse, int width, double *x, double *local);
void frgi_supernodal_close(frgi_supernodal *t, frg_context *ctx);

/** Puts the arrays of an analysed tree with its rows into c, and makes the tree of n columns and
 *  `count` supernodes again.  E_CHECKPOINT where what is there is no such tree; t is empty then. */
FRG_MUST_USE frg_status frgi_supernodal_put(const frgi_supernodal *t, frg_checkpoint *c);
FRG_MUST_USE frg_status frgi_supernodal_get(frgi_supernodal *t, frg_context *ctx,
                                            const frg_checkpoint *c, int64_t n, int64_t count);

#pragma GCC visibility pop
#endif
