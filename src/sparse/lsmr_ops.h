/* lsmr_ops.h - the vector kernels of LSMR, one table per CPU level.
 *
 * Vectors have `rows` rows of k doubles.  Coefficients come as a pattern: the k values repeated for
 * SPAN rows, so that every kernel is one flat loop over SPAN k doubles whatever k is.  A sum over
 * the rows of a column goes into SPAN partial sums (row i into number i mod SPAN), which are added
 * in a fixed tree: the bits of a column's sum do not depend on k.  Every multiply-add is an
 * explicit one where the machine has it, because compilers contract scalar and vector code
 * differently. */
#ifndef FRGI_LSMR_OPS_H
#define FRGI_LSMR_OPS_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { SPAN = 16, LSMR_CHUNK = 2048 }; /* rows of a pattern; rows whose sums are added at a time */

typedef struct frgi_lsmr_ops {
    /** sums[c] = sum_i x_ic y_ic */
    void (*dot)(ptrdiff_t rows, ptrdiff_t k, const double *x, const double *y, double *sums);
    /** y <- t - a y, sums[c] = sum_i y_ic^2; t may be y's own product with anything */
    void (*step)(ptrdiff_t rows, ptrdiff_t k, const double *a, const double *t, double *y,
                 double *sums);
    /** y <- a x, x may be y */
    void (*scale)(ptrdiff_t rows, ptrdiff_t k, const double *a, const double *x, double *y);
    /** hb <- h - a hb;  x <- x + b hb;  h <- v - c h;  sums[c] = sum_i x_ic^2 */
    void (*update)(ptrdiff_t rows, ptrdiff_t k, const double *a, const double *b, const double *c,
                   const double *v, double *h, double *hb, double *x, double *sums);
    /** y_i <- sum_e values[e] x[columns[e]] for rows first .. end - 1, e from starts[i] to
     *  starts[i+1] - 1 */
    void (*sparse)(ptrdiff_t first, ptrdiff_t end, ptrdiff_t k, const int64_t *starts,
                   const int32_t *columns, const double *values, const double *x, double *y);
} frgi_lsmr_ops;

DECLARE_LEVELS(frgi_lsmr_ops, frgi_lsmr_ops);
/** The table of the context's CPU level. */
const frgi_lsmr_ops *frgi_lsmr_ops_of(const frg_context *ctx);

#pragma GCC visibility pop
#endif
