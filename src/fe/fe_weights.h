/* fe_weights.h - weights brought near 1.
 *
 * Residuals, estimates and their errors do not depend on a common factor of the weights, sums of w
 * x^2 do: at weights of 1e-200 they underflow, at 1e200 they overflow.  So demeaner and regression
 * take weights times a power of two that brings the largest into [1, 4), which changes
 * no bit of a result.  The power is even: its root is one too. */
#ifndef FRGI_FE_WEIGHTS_H
#define FRGI_FE_WEIGHTS_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** Positive weights and where they are; all 0 where there are none. */
typedef struct {
    double largest, least;
    int64_t largest_at, least_at;
} frgi_weight_range;

/** Of n weights >= 0. */
frgi_weight_range frgi_weights_study(const double *w, ptrdiff_t stride, int64_t n);
/** E: weights times 2^-E lie near 1. */
int frgi_weights_exponent(const frgi_weight_range *r);
/** Are they so far apart (2^500) that a product of two would vanish beside one? */
bool frgi_weights_apart(const frgi_weight_range *r);
/** The root of the least one once they lie near 1, 1 at most: products with values so many
 *  times smaller underflow. */
double frgi_weights_root(const frgi_weight_range *r);

#pragma GCC visibility pop
#endif
