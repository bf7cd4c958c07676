/* symmetric.h - the sparse symmetric positive semidefinite matrix that the direct factor and the
 * approximate Cholesky factor take: the Schur complement on the levels, or any graph Laplacian. */
#ifndef FRGI_SYMMETRIC_H
#define FRGI_SYMMETRIC_H

#include <stdint.h>

/** Compressed rows of an n x n symmetric matrix; borrowed.  Columns within a row may come in any
 *  order, without repetition.  `upper` 0: both (i, j) and (j, i) are stored; 1: only j >= i is. The
 *  diagonal is stored explicitly (a row without one counts as diagonal 0). */
typedef struct {
    int64_t n;
    const int64_t *starts;  /* n + 1 */
    const int32_t *columns; /* starts[n] */
    const double *values;   /* starts[n] */
    int upper;
} frgi_symmetric;

#endif
