/* reg_conley.h - spatial kernels on ranges of sorted points, per CPU level. */
#ifndef FRGI_REG_CONLEY_H
#define FRGI_REG_CONLEY_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { FRGI_CONLEY_BLOCK = 512 };

/** Points of the unit sphere beside each other, n of them. */
typedef struct {
    const double *x, *y, *z;
} frgi_sphere;

/** K of a point and n <= FRGI_CONLEY_BLOCK points from `begin` on; c2 the square of the cutoff's
 *  chord. */
typedef struct {
    /** w_r = 1 where |p - q_r|^2 <= c2, else 0 */
    void (*uniform)(const double p[3], const frgi_sphere *q, int64_t begin, int64_t n, double c2,
                    double *w);
    /** w_r = max(0, 1 - 2 asin(|p - q_r| / 2) / angle) there; c2 <= 0.04 */
    void (*bartlett)(const double p[3], const frgi_sphere *q, int64_t begin, int64_t n, double c2,
                     double angle, double *w);
    /** sum_r w_r s_r */
    double (*dot)(const double *w, const double *s, int64_t n);
} frgi_conley_ops;

#pragma GCC visibility pop
#endif
