/* laplacian.h - systems with the Laplacian of a connected graph, many columns at once. */
#ifndef FRGI_LAPLACIAN_H
#define FRGI_LAPLACIAN_H

#include "sparse/approx_chol.h"

#pragma GCC visibility push(hidden)

typedef struct {
    double tol;         /* a column ends where ||b - L x|| <= tol ||b||; default 1e-10 */
    int64_t max_iter;   /* default 1000 */
    uint64_t seed;      /* of the preconditioner's samples */
    const char *solver; /* of the progress reports; default "laplacian" */
} frgi_laplacian_opts;

typedef struct {
    int64_t iterations; /* the most that a column took */
    int64_t failed;     /* columns that did not reach tol */
} frgi_laplacian_report;

void frgi_laplacian_defaults(frgi_laplacian_opts *o);
/** x <- L^+ b up to a constant a column: l n x n with row sums 0, b and x n x k row-major, x is b;
 *  the columns of b sum to 0.  Conjugate gradients with an approximate Cholesky factor; blocks of
 *  columns go to the threads, and a column's bits depend neither on its block nor on the threads.
 *  Returns FRG_OK, FRG_INTERRUPTED or FRG_TIME_LIMIT; a column that did not reach tol is in the
 *  report. */
FRG_MUST_USE frg_status frgi_laplacian_solve(frg_context *ctx, const frgi_symmetric *l, int64_t k,
                                             double *x, const frgi_laplacian_opts *o,
                                             frgi_laplacian_report *report);

#pragma GCC visibility pop
#endif
