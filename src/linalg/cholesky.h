/* cholesky.h - dense symmetric matrices of a few to some thousand rows: Cholesky that tells
 * which rows depend on others, the inverse.
 *
 * Up to FRGI_CHOLESKY_TILE rows plain loops on the calling thread; above, tiles of as many rows,
 * each the work of one thread, by BLAS: the bits do not depend on the number of threads.
 */
#ifndef FRGI_CHOLESKY_H
#define FRGI_CHOLESKY_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { FRGI_CHOLESKY_TILE = 64 };

/** a (k x k, row-major, symmetric, unit diagonal or nearly so) <- its Cholesky rows, in order,
 *  without pivoting.  Row j is dropped (kept[j] = 0) when its remaining diagonal is below tol: then
 *  a[j][i] holds its projections on the kept rows before it and a[j][j] the remainder.  Returns the
 *  number kept. stops: a context whose stop ends it, with what was done so far (frgi_stopped says
 *  so); NULL: none. */
int frgi_cholesky_keep(int k, double *a, double tol, unsigned char *kept, int threads,
                       const frg_context *stops);
/** x <- the coefficients of a dropped row j on the kept rows i < j (0 for others): L' x = a[j]. */
void frgi_cholesky_relation(int k, const double *a, const unsigned char *kept, int j, double *x);

/** a (k x k, row-major, unit diagonal) <- its inverse; false, a spoilt, where a pivot is not above
 *  tol, or where `stops` (NULL: none) was stopped. */
bool frgi_inverse(int k, double *a, double tol, int threads, const frg_context *stops);

#pragma GCC visibility pop
#endif
