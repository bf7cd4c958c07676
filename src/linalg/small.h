/* small.h - eigenvalues of a symmetric matrix of a few to a few hundred rows. */
#ifndef FRGI_SMALL_H
#define FRGI_SMALL_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** Eigenvalues and eigenvectors (rows of v) of the symmetric a, which is spoilt, by Jacobi's
 *  rotations. */
void frgi_eigen(int k, double *a, double *values, double *v);

#pragma GCC visibility pop
#endif
