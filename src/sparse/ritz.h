/* ritz.h - the smallest eigenvalue that a Krylov method has seen.
 *
 * The method's steps make a symmetric tridiagonal matrix T whose eigenvalues (Ritz values) approach
 * those of the operator from within.  Operators here are singular by construction, and rounding
 * lets their null space into the recurrence: eigenvalues up to RITZ_NOISE stand for that and are
 * left out.
 */
#ifndef FRGI_RITZ_H
#define FRGI_RITZ_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** T_jj and T_(j,j-1)^2 for j = 0 .. n-1 (the first of the latter is not read), `stride` apart.  To
 *  1e-3 relative, which is plenty for a bound; NaN where no eigenvalue is left. */
double frgi_ritz_smallest(const double *diagonal, const double *below2, int64_t stride, int64_t n);
/** The largest eigenvalue, from above, as accurately; T is positive semidefinite. */
double frgi_ritz_largest(const double *diagonal, const double *below2, int64_t stride, int64_t n);

#pragma GCC visibility pop
#endif
