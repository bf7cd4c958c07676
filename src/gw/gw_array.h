/* gw_array.h - elements of matrices that callers give, f64 or f32 with any strides, as doubles. */
#ifndef FRGI_GW_ARRAY_H
#define FRGI_GW_ARRAY_H

#include "core/core.h"

/** x_ij */
static inline double frgi_array_get(const frg_array *a, int64_t i, int64_t j)
{
    const int64_t at = i * a->stride[0] + j * a->stride[1];
    const char *const base = frgi_array_base(a);
    return a->dtype == FRG_F64 ? ((const double *)(const void *)base)[at]
                               : (double)((const float *)(const void *)base)[at];
}

/** x_ij <- value */
static inline void frgi_array_put(const frg_array *a, int64_t i, int64_t j, double value)
{
    const int64_t at = i * a->stride[0] + j * a->stride[1];
    char *const base = frgi_array_base(a);
    if (a->dtype == FRG_F64) {
        ((double *)(void *)base)[at] = value;
    } else {
        ((float *)(void *)base)[at] = (float)value;
    }
}

#endif
