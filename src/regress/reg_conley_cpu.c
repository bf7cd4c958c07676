/* reg_conley_cpu.c - the kernels of reg_conley.h, compiled once per CPU level.
 *
 * A distance is the angle between unit vectors by their chord c, 2 asin(c / 2), which loses nothing
 * where points are close.  asin(s) / s = 1 + s^2 / 6 + 3 s^4 / 40 + ..., to 1e-16 for s^2 <= 0.01.
 */
#include <math.h>

#include "regress/reg_conley.h"

#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)

static void uniform(const double p[3], const frgi_sphere *q, int64_t begin, int64_t n, double c2,
                    double *restrict w)
{
    const double *restrict const x = q->x + begin, *restrict const y = q->y + begin,
                                 *restrict const z = q->z + begin;
    const double px = p[0], py = p[1], pz = p[2];
#pragma omp simd
    for (ptrdiff_t r = 0; r < n; r++) {
        const double a = x[r] - px, b = y[r] - py, c = z[r] - pz;
        w[r] = a * a + b * b + c * c <= c2 ? 1.0 : 0.0;
    }
}

static void bartlett(const double p[3], const frgi_sphere *q, int64_t begin, int64_t n, double c2,
                     double angle, double *restrict w)
{
    const double *restrict const x = q->x + begin, *restrict const y = q->y + begin,
                                 *restrict const z = q->z + begin;
    const double px = p[0], py = p[1], pz = p[2], scale = 2 / angle;
#pragma omp simd
    for (ptrdiff_t r = 0; r < n; r++) {
        const double a = x[r] - px, b = y[r] - py, c = z[r] - pz;
        const double d2 = a * a + b * b + c * c, t = 0.25 * d2;
        double f = 143.0 / 10240;
        f = f * t + 231.0 / 13312;
        f = f * t + 63.0 / 2816;
        f = f * t + 35.0 / 1152;
        f = f * t + 5.0 / 112;
        f = f * t + 3.0 / 40;
        f = f * t + 1.0 / 6;
        const double k = 1 - scale * sqrt(t) * (f * t + 1);
        w[r] = d2 <= c2 && k > 0 ? k : 0.0;
    }
}

static double dot(const double *restrict w, const double *restrict s, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t r = 0; r < n; r++) {
        sum += w[r] * s[r];
    }
    return sum;
}

#pragma GCC visibility push(hidden)
extern const frgi_conley_ops CAT(frgi_conley_ops, ISA);
#pragma GCC visibility pop
const frgi_conley_ops CAT(frgi_conley_ops,
                          ISA) = {.uniform = uniform, .bartlett = bartlett, .dot = dot};
