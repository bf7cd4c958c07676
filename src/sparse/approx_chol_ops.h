/* approx_chol_ops.h - the two sweeps of the approximate Cholesky factor, one table per CPU
 * level. */
#ifndef FRGI_APPROX_CHOL_OPS_H
#define FRGI_APPROX_CHOL_OPS_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** Vertices are numbered in the order of their elimination; entries starts[v] .. starts[v+1]-1 of
 *  vertex v are (row, f), the last with f = 1.  A vertex without entries is the last of its
 *  component. */
typedef struct {
    int64_t n;
    const int64_t *starts;
    const int32_t *rows;
    const double *f;
    const double *inverse; /* of the pivots; 0 where there are no entries */
} frgi_ac_factor;

enum { AC_WIDTH_4, AC_WIDTH_8, AC_WIDTHS };

typedef struct {
    /** x: n + 1 rows (the last is the ground's), 4 or 8 wide */
    void (*forward[AC_WIDTHS])(const frgi_ac_factor *a, double *x);
    void (*backward[AC_WIDTHS])(const frgi_ac_factor *a, double *x);
} frgi_ac_ops;

DECLARE_LEVELS(frgi_ac_ops, frgi_ac_ops);

#pragma GCC visibility pop
#endif
