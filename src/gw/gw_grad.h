/* gw_grad.h - what the ways through a plan share. */
#ifndef FRGI_GW_GRAD_H
#define FRGI_GW_GRAD_H

#include "gw/gw_plan.h"

#pragma GCC visibility push(hidden)

enum { FRGI_GRAD_CHUNKS = 8 };

static inline double frgi_entry(const frg_array *a, int64_t i, int64_t j)
{
    const int64_t at = i * a->stride[0] + j * a->stride[1];
    const char *const base = frgi_array_base(a);
    return a->dtype == FRG_F64 ? ((const double *)(const void *)base)[at]
                               : (double)((const float *)(const void *)base)[at];
}

static inline void frgi_put_entry(const frg_array *a, int64_t i, int64_t j, double value)
{
    const int64_t at = i * a->stride[0] + j * a->stride[1];
    char *const base = frgi_array_base(a);
    if (a->dtype == FRG_F64) {
        ((double *)(void *)base)[at] = value;
    } else {
        ((float *)(void *)base)[at] = (float)value;
    }
}

/** out <- the sums (chunks x m) of all chunks, in their order. */
void frgi_sum_chunks(const double *sums, int64_t m, double *out);
/** Takes the mean over the entries of weight > 0 from them; the others become 0. */
void frgi_centre(double *x, const double *weight, int64_t n);

#pragma GCC visibility pop
#endif
