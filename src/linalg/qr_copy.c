/* qr_copy.c - matrices in and out.  Tiles of 16 x 16 keep both sides in the L1 cache whatever the strides. */
#include "linalg/qr_copy.h"

#include <string.h>

#include "linalg/half.h"

enum { TILE_SIDE = 16 };

static inline ptrdiff_t size_of(const frg_dtype t)
{
    return t == FRG_F64 ? 8 : t == FRG_F32 ? 4 : 2;
}

/** A block of rows x columns; the types and strides are constants where it is inlined. */
static inline __attribute__((always_inline)) void tile(char *a, const frg_dtype t, int64_t down,
                                                       int64_t right, char *x, const frg_dtype own,
                                                       ptrdiff_t ld, ptrdiff_t rows,
                                                       ptrdiff_t columns, const bool in)
{
    const ptrdiff_t size_a = size_of(t), size_x = size_of(own);
    for (ptrdiff_t j = 0; j < columns; j++) {
        for (ptrdiff_t i = 0; i < rows; i++) {
            char *const outer = a + (i * down + j * right) * size_a;
            char *const inner = x + (j * ld + i) * size_x;
            if (in) {
                frgi_element_put(inner, own, frgi_element_get(outer, t));
            } else {
                frgi_element_put(outer, t, frgi_element_get(inner, own));
            }
        }
    }
}

static void copy(const frg_array *a, bool f64, ptrdiff_t ld, char *x, const bool in)
{
    const frg_dtype own = f64 ? FRG_F64 : FRG_F32;
    const size_t size = frg_sizeof(a->dtype), own_size = frg_sizeof(own);
    const ptrdiff_t m = (ptrdiff_t)a->shape[0], n = (ptrdiff_t)a->shape[1];
    char *const base = frgi_array_base(a);
    if (a->dtype == own && a->stride[0] == 1) {
        for (ptrdiff_t j = 0; j < n; j++) {
            char *const outer = base + (ptrdiff_t)size * (j * a->stride[1]);
            char *const inner = x + (ptrdiff_t)size * (j * ld);
            memcpy(in ? inner : outer, in ? outer : inner, (size_t)m * size);
        }
        return;
    }
    for (ptrdiff_t j = 0; j < n; j += TILE_SIDE) {
        for (ptrdiff_t i = 0; i < m; i += TILE_SIDE) {
            const ptrdiff_t rows = m - i < TILE_SIDE ? m - i : TILE_SIDE;
            const ptrdiff_t columns = n - j < TILE_SIDE ? n - j : TILE_SIDE;
            char *const outer = base + (ptrdiff_t)size * (i * a->stride[0] + j * a->stride[1]);
            char *const inner = x + (ptrdiff_t)own_size * (j * ld + i);
            if (a->dtype == FRG_F32 && own == FRG_F32) {
                tile(outer, FRG_F32, a->stride[0], a->stride[1], inner, FRG_F32, ld, rows, columns,
                     in);
            } else if (a->dtype == FRG_F64 && own == FRG_F64) {
                tile(outer, FRG_F64, a->stride[0], a->stride[1], inner, FRG_F64, ld, rows, columns,
                     in);
            } else {
                tile(outer, a->dtype, a->stride[0], a->stride[1], inner, own, ld, rows, columns,
                     in);
            }
        }
    }
}

void frgi_qr_take(const frg_array *a, bool f64, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t ld,
                  void *to)
{
    const size_t size = f64 ? sizeof(double) : sizeof(float);
    const ptrdiff_t m = (ptrdiff_t)a->shape[0], n = (ptrdiff_t)a->shape[1];
    for (ptrdiff_t j = 0; j < columns; j++) {
        const ptrdiff_t first = j < n ? m : 0;
        memset((char *)to + (size_t)(j * ld + first) * size, 0, (size_t)(rows - first) * size);
    }
    copy(a, f64, ld, to, true);
}

void frgi_qr_give(const frg_array *a, bool f64, ptrdiff_t ld, const void *from)
{
    copy(a, f64, ld, (char *)from, false);
}

void frgi_qr_fill(const frg_array *a, double value)
{
    const ptrdiff_t size = (ptrdiff_t)frg_sizeof(a->dtype);
    for (int64_t j = 0; j < a->shape[1]; j++) {
        for (int64_t i = 0; i < a->shape[0]; i++) {
            frgi_element_put(frgi_array_base(a) + size * (i * a->stride[0] + j * a->stride[1]),
                             a->dtype, value);
        }
    }
}
