/* gp_reader.h - numbers of a caller's array, wherever they lie: any strides, any alignment, f32 or
 * f64. */
#ifndef FRGI_GP_READER_H
#define FRGI_GP_READER_H

#include <string.h>

#include "core/core.h"

typedef struct {
    const char *at;
    int64_t step[3]; /* bytes from element to element, 0 behind the last dimension */
    bool wide;
} frgi_gp_reader;

static inline frgi_gp_reader frgi_gp_read(const frg_array *a)
{
    frgi_gp_reader r = {.at = frgi_array_base(a), .wide = a->dtype == FRG_F64};
    for (int k = 0; k < a->ndim && k < 3; k++) {
        r.step[k] = a->stride[k] * (int64_t)frg_sizeof(a->dtype);
    }
    return r;
}

static inline double frgi_gp_element(const frgi_gp_reader *r, int64_t i, int64_t j, int64_t k)
{
    const char *const p = r->at + i * r->step[0] + j * r->step[1] + k * r->step[2];
    double wide;
    float narrow;
    if (r->wide) {
        memcpy(&wide, p, sizeof wide);
        return wide;
    }
    memcpy(&narrow, p, sizeof narrow);
    return (double)narrow;
}

/** The numbers where they lie as doubles in one row-major run of so many columns (a vector: 1);
 *  NULL elsewhere. */
static inline const double *frgi_gp_run(const frgi_gp_reader *r, int64_t columns)
{
    const int64_t size = (int64_t)sizeof(double);
    const bool dense = r->step[0] == columns * size && (columns == 1 || r->step[1] == size);
    const bool aligned = (uintptr_t)r->at % _Alignof(double) == 0;
    return r->wide && dense && aligned ? (const double *)(const void *)r->at : NULL;
}

#endif
