/* reg_family_cpu.c - means and deviance of many rows, compiled once per CPU level.
 *
 *     mu = e^eta,   d(y, mu) = 2 (y log(y / mu) - (y - mu)) = 2 y (r - log(1 + r)),
 *     r = (mu - y) / y
 *
 * log(1 + r) does not cancel where y is near mu; where mu is far below y, log(mu / y) does not
 * lose r to the rounding of -1.
 */
#include "linalg/elementary.h"
#include "regress/reg_family.h"

#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)

static const double LOWEST = FRGI_LOWEST_MEAN, FAR_BELOW = -0.5;

static double poisson(ptrdiff_t n, const double *restrict eta, const double *restrict y,
                      const double *restrict w, double *restrict mu)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = frgi_exp_f64(eta[i]), m = value > LOWEST ? value : LOWEST;
        const double r = (m - y[i]) / y[i], near = frgi_log1p_f64(r), far = frgi_log_f64(m / y[i]);
        const double gap = y[i] * (r - (r > FAR_BELOW ? near : far));
        const double positive = gap > 0 ? gap : 0, half = y[i] > 0 ? positive : m;
        mu[i] = m;
        sum += (w ? w[i] : 1) * 2 * half + (m - m); /* NaN where a mean is infinite */
    }
    return sum;
}

#pragma GCC visibility push(hidden)
extern const frgi_family_ops CAT(frgi_family_ops, ISA);
#pragma GCC visibility pop
const frgi_family_ops CAT(frgi_family_ops, ISA) = {.poisson = poisson};
