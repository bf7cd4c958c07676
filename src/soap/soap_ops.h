/* soap_ops.h - the elementwise steps of the optimizer, one table per CPU level.
 *
 * Everything is f32 and contiguous.  Sums are taken in double over blocks of fixed length, which
 * core/tree_sum.h adds. */
#ifndef FRGI_SOAP_OPS_H
#define FRGI_SOAP_OPS_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** N' = (from_m M' + from_g G') / (sqrt(scale_v V) + eps); 0 where the denominator is 0.  What the
 *  numbers are: rule_of in soap_apply.c. */
typedef struct {
    float rate1, rate2; /* 1 - beta1, 1 - beta2 */
    float from_m, from_g;
    float scale_v, eps;
} soap_adam;

typedef struct {
    /** Largest |x|; NaN where one is NaN or infinite. */
    double (*largest)(ptrdiff_t n, const float *x);
    double (*sum_squares)(ptrdiff_t n, const float *x);
    /** q^T w and w^T w */
    void (*inner)(ptrdiff_t n, const float *q, const float *w, double *qw, double *ww);
    /** a = w + c q */
    void (*ridge)(ptrdiff_t n, float c, const float *q, const float *w, float *a);
    /** m += rate (x - m) */
    void (*blend)(ptrdiff_t n, float rate, const float *x, float *m);
    /** g = G' of the bases: v += rate2 (g g - v), then g <- N'.  With m NULL the first moment is
     *  m_in_bases, else m += rate1 (g - m) before. */
    void (*adam)(ptrdiff_t n, const soap_adam *a, float *g, float *m, const float *m_in_bases,
                 float *v);
    /** w = keep w - lr d, or with `after` (w - lr d) keep */
    void (*write)(ptrdiff_t n, float keep, bool after, float lr, const float *d, float *w);
} soap_ops;

DECLARE_LEVELS(soap_ops, frgi_soap_ops);

#pragma GCC visibility pop
#endif
