/* gp_columns.h - columns of a tiled triangle (gp_spd.h) as plain vectors of doubles, and a process
 * that takes over a factor written in this way. */
#ifndef FRGI_GP_COLUMNS_H
#define FRGI_GP_COLUMNS_H

#include "gp/gp_process.h"

/** Place of entry (i, j), i >= j; the rows below it in the same tile follow. */
static inline ptrdiff_t frgi_gp_place(const frgi_spd_shape *s, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t t = s->tile;
    return frgi_spd_tile(s, i / t, j / t) + i % t + j % t * s->ld;
}

/** to <- rows from .. end-1 of column j, from >= j. */
static inline void frgi_gp_read_column(const frgi_spd_shape *s, const void *a, ptrdiff_t j,
                                       ptrdiff_t from, ptrdiff_t end, double *to)
{
    for (ptrdiff_t i = from; i < end;) {
        const ptrdiff_t stop =
            (i / s->tile + 1) * s->tile < end ? (i / s->tile + 1) * s->tile : end;
        const ptrdiff_t at = frgi_gp_place(s, i, j) - i;
        for (; i < stop; i++) {
            to[i - from] = s->dtype == FRG_F64 ? ((const double *)a)[at + i]
                                               : (double)((const float *)a)[at + i];
        }
    }
}

/** The other direction. */
static inline void frgi_gp_write_column(const frgi_spd_shape *s, void *a, ptrdiff_t j,
                                        ptrdiff_t from, ptrdiff_t end, const double *from_vector)
{
    for (ptrdiff_t i = from; i < end;) {
        const ptrdiff_t stop =
            (i / s->tile + 1) * s->tile < end ? (i / s->tile + 1) * s->tile : end;
        const ptrdiff_t at = frgi_gp_place(s, i, j) - i;
        for (; i < stop; i++) {
            if (s->dtype == FRG_F64) {
                ((double *)a)[at + i] = from_vector[i - from];
            } else {
                ((float *)a)[at + i] = (float)from_vector[i - from];
            }
        }
    }
}

#pragma GCC visibility push(hidden)

/** `matrix` holds the n columns of a factor at gp->jitter: padding, noise and diagonal, then value
 *  and solves. */
FRG_MUST_USE frg_status frgi_gp_adopt_factor(frg_gp *gp);

#pragma GCC visibility pop
#endif
