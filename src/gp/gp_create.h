/* gp_create.h - what a process takes of a caller: numbers of any type and strides, their sizes, and
 * processes that take the place of others. */
#ifndef FRGI_GP_CREATE_H
#define FRGI_GP_CREATE_H

#include <string.h>

#include "core/core.h"
#include "fourge/gp.h"
#include "gp/gp_steps.h"

#pragma GCC visibility push(hidden)

/** What |x| and |y| may be in the process's arithmetic, and the refusal of what is not. */
double frgi_gp_largest_x(const frg_gp_opts *o);
double frgi_gp_largest_y(const frg_gp_opts *o);
frg_status frgi_gp_refuse_size(frg_context *ctx, const char *name, int64_t i, int64_t j, double v,
                               double most);

/** frg_gp_create with these steps. */
FRG_MUST_USE frg_status frgi_gp_create(frg_gp **out, frg_context *ctx, frg_array x, frg_array y,
                                       const char *kernel, const frg_gp_opts *o,
                                       const frgi_gp_steps *steps);
/** frg_gp_create in *reused, which is NULL or what an earlier call with this expression and these
 *  options left there: a process of enough capacity takes the new data as a new one would.  The
 *  caller destroys *reused at the end, also after a failure.  model: NULL, or such a process (on
 *  any context) with the same steps that outlives it, whose expression may serve. */
FRG_MUST_USE frg_status frgi_gp_create_from(frg_gp **reused, frg_context *ctx, frg_array x,
                                            frg_array y, const char *kernel, const frg_gp_opts *o,
                                            const frg_gp *model, const frgi_gp_steps *steps);

/** A process from the bytes of a model file (gp_file.c); `name` stands in messages.  E_MODEL where
 *  the bytes are not a whole, unchanged model of a known version. */
FRG_MUST_USE frg_status frgi_gp_parse_model(frg_gp **out, frg_context *ctx, const char *bytes,
                                            size_t count, const char *name);

/** Numbers of a caller's array: any strides, any alignment, f32 or f64. */

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

/** Element (i, j) of an f64 result of one or two axes. */
static inline void frgi_gp_set_element(const frg_array *a, int64_t i, int64_t j, double v)
{
    const int64_t at = i * a->stride[0] + (a->ndim == 2 ? j * a->stride[1] : 0);
    memcpy(frgi_array_base(a) + at * (int64_t)sizeof v, &v, sizeof v);
}

#pragma GCC visibility pop
#endif
