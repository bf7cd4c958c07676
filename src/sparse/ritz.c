/* ritz.c - bisection on Sturm sequences (Golub and Van Loan, 8.4.1). */
#include "sparse/ritz.h"

#include <math.h>

static const double RITZ_NOISE = 1e-13;

/** Eigenvalues below t: the negative pivots of T - t I. */
static int64_t count_below(const double *diagonal, const double *below2, int64_t stride, int64_t n,
                           double t)
{
    int64_t count = 0;
    double pivot = 1;
    for (int64_t j = 0; j < n; j++) {
        pivot = diagonal[j * stride] - t - (j > 0 ? below2[j * stride] / pivot : 0);
        pivot = pivot == 0 ? -1e-300 : pivot;
        count += pivot < 0;
    }
    return count;
}

double frgi_ritz_largest(const double *diagonal, const double *below2, int64_t stride, int64_t n)
{
    double high = 0;
    for (int64_t j = 0; j < n; j++) {
        high += diagonal[j * stride]; /* the trace */
    }
    double low = n > 0 ? high / (double)n : 0;
    while (high - low > 1e-3 * high) {
        const double t = 0.5 * (low + high);
        *(count_below(diagonal, below2, stride, n, t) == n ? &high : &low) = t;
    }
    return high;
}

double frgi_ritz_smallest(const double *diagonal, const double *below2, int64_t stride, int64_t n)
{
    double low = RITZ_NOISE, high = 2;
    const int64_t noise = count_below(diagonal, below2, stride, n, low);
    if (noise == n) {
        return (double)NAN;
    }
    while (count_below(diagonal, below2, stride, n, high) <= noise && high < 1e300) {
        high *= 16;
    }
    while (high - low > 1e-3 * high) {
        const double t = sqrt(low * high);
        *(count_below(diagonal, below2, stride, n, t) > noise ? &high : &low) = t;
    }
    return high;
}
