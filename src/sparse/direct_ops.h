/* direct_ops.h - the dense kernels of the direct factor, one table per CPU level.
 *
 * Everything is held in row panels of 8 rows, column after column, as the outer products want it:
 *
 *     panel i:  | rows 8i .. 8i+7 of column 8 start | of the next column | ... | of its last one |
 *
 * Column blocks are 8 wide too.  Panel i of an envelope reaches from block start[i] to the diagonal
 * block i; the panels of a supernode all start at block 0 and reach to the diagonal block or to the
 * last block.  The same steps factor and solve both. */
#ifndef FRGI_DIRECT_OPS_H
#define FRGI_DIRECT_OPS_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { PANEL = 8, TILE = PANEL * PANEL };

typedef struct {
    double *values; /* 64-byte aligned */
    const int64_t *
        offset; /* of panel i in values; NULL: panels follow each other, 8 blocks of columns each */
    const int32_t *start; /* first block of panel i; NULL: 0 */
    int64_t blocks;       /* column blocks */
    int64_t columns;      /* columns that are real, 8 (blocks - 1) < columns <= 8 blocks */
    double *inverse;      /* 8 blocks: 1 / diagonal of L, 0 for null pivots and unreal columns */
    const double *floor;  /* 8 blocks: a pivot not above it is null; infinite for unreal columns */
} frgi_panels;

enum { WIDTH_4, WIDTH_8, WIDTH_COUNT };

typedef struct {
    /** L of panel i from A of panel i and the panels before it.  Returns the null pivots found. */
    int64_t (*factor)(const frgi_panels *s, ptrdiff_t i);
    /** tile[8 c + r] = sum over n columns of a[8 k + r] b[8 k + c] */
    void (*product)(ptrdiff_t n, const double *a, const double *b, double *tile);
    /** x (rows of the panels, 4 or 8 wide): the share of panel i in solving L x = b and L' x =
     *  b. */
    void (*forward[WIDTH_COUNT])(const frgi_panels *s, ptrdiff_t i, double *x);
    void (*backward[WIDTH_COUNT])(const frgi_panels *s, ptrdiff_t i, double *x);
} frgi_direct_ops;

/** The heartbeat of both factors, in the name of `solver`: asks when `since`, the multiply-adds
 *  since it last did, is large enough. */
FRG_MUST_USE frg_status frgi_direct_poll(frg_context *ctx, const char *solver, double *since,
                                         int64_t done, int64_t total);

DECLARE_LEVELS(frgi_direct_ops, frgi_direct_ops);

#pragma GCC visibility pop
#endif
