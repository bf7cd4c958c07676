/* reg_dense.h - small dense matrices of a regression's tests, row-major, of any units. */
#ifndef FRGI_REG_DENSE_H
#define FRGI_REG_DENSE_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** a (k x k, symmetric, positive on its diagonal) <- its inverse, through correlations.  *sound is
 *  false, and a spoilt, where a variance is not positive or a pivot of the correlations not above
 *  tol. */
FRG_MUST_USE frg_status frgi_dense_inverse(frg_context *ctx, int k, double *a, double tol,
                                           bool *sound);
/** x' A^-1 x for a symmetric A (spoilt); NaN where it is not positive definite. */
FRG_MUST_USE frg_status frgi_dense_form(frg_context *ctx, int k, double *a, const double *x,
                                        double *out);
/** out (r x c) <- A' B,  A is n x r, B n x c. */
void frgi_dense_cross(int n, int r, int c, const double *a, const double *b, double *out);
/** out (r x c) <- A B,  A is r x n, B n x c. */
void frgi_dense_product(int r, int n, int c, const double *a, const double *b, double *out);
/** values (k, falling) and vectors (rows of c) of  A c = lambda B c,  c' B c = 1, A symmetric and B
 *  symmetric and positive definite; both are spoilt.  *sound is false where B is not. */
FRG_MUST_USE frg_status frgi_dense_pencil(frg_context *ctx, int k, double *a, double *b,
                                          double *values, double *c, bool *sound);

#pragma GCC visibility pop
#endif
