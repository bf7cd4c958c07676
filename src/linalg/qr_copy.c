/* qr_copy.c - matrices in and out.  Tiles of 16 x 16 keep both sides in the L1 cache whatever the
 * strides. */
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

/** A copy in or out; where it goes in, rows and columns beyond the array's are set to 0. */
typedef struct {
    const frg_array *a;
    frg_dtype own;
    ptrdiff_t rows, columns, ld; /* of the inner side */
    char *x;
    bool in;
    void (*then)(void *user, ptrdiff_t j);
    void *user;
} copying;

static void pad(const copying *c, ptrdiff_t from, ptrdiff_t to)
{
    const ptrdiff_t size = size_of(c->own), m = (ptrdiff_t)c->a->shape[0];
    for (ptrdiff_t j = from; j < to; j++) {
        const ptrdiff_t first = j < c->a->shape[1] ? m : 0;
        memset(c->x + size * (j * c->ld + first), 0, (size_t)(size * (c->rows - first)));
    }
}

/** Columns from .. to, at most TILE_SIDE of them. */
static void copy_columns(const copying *c, ptrdiff_t from, ptrdiff_t to)
{
    const frg_array *const a = c->a;
    const ptrdiff_t size = size_of(a->dtype), own_size = size_of(c->own);
    const ptrdiff_t m = (ptrdiff_t)a->shape[0];
    char *const base = frgi_array_base(a);
    if (a->dtype == c->own && a->stride[0] == 1) {
        for (ptrdiff_t j = from; j < to; j++) {
            char *const outer = base + size * (j * a->stride[1]);
            char *const inner = c->x + size * (j * c->ld);
            memcpy(c->in ? inner : outer, c->in ? outer : inner, (size_t)(m * size));
        }
        return;
    }
    for (ptrdiff_t i = 0; i < m; i += TILE_SIDE) {
        const ptrdiff_t rows = m - i < TILE_SIDE ? m - i : TILE_SIDE, columns = to - from;
        const int64_t down = a->stride[0], right = a->stride[1];
        char *const outer = base + size * (i * down + from * right);
        char *const inner = c->x + own_size * (from * c->ld + i);
        if (a->dtype == FRG_F32 && c->own == FRG_F32) {
            tile(outer, FRG_F32, down, right, inner, FRG_F32, c->ld, rows, columns, c->in);
        } else if (a->dtype == FRG_F64 && c->own == FRG_F64) {
            tile(outer, FRG_F64, down, right, inner, FRG_F64, c->ld, rows, columns, c->in);
        } else {
            tile(outer, a->dtype, down, right, inner, c->own, c->ld, rows, columns, c->in);
        }
    }
}

static void copy_tile_columns(const copying *c, ptrdiff_t from)
{
    const ptrdiff_t n = (ptrdiff_t)c->a->shape[1], to = from + TILE_SIDE;
    if (c->in) {
        pad(c, from, to < c->columns ? to : c->columns);
    }
    if (from < n) {
        copy_columns(c, from, to < n ? to : n);
    }
    for (ptrdiff_t j = from; c->then && j < (to < n ? to : n); j++) {
        c->then(c->user, j);
    }
}

static void copy(const copying *c, int team)
{
    if (team == 1) { /* within a region of the caller's */
        for (ptrdiff_t j = 0; j < c->columns; j += TILE_SIDE) {
            copy_tile_columns(c, j);
        }
        return;
    }
#pragma omp parallel for schedule(static) num_threads(team)
    for (ptrdiff_t j = 0; j < c->columns; j += TILE_SIDE) {
        copy_tile_columns(c, j);
    }
}

void frgi_qr_take(const frg_array *a, bool f64, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t ld,
                  void *to, int team, void (*then)(void *user, ptrdiff_t j), void *user)
{
    const copying c = {a, f64 ? FRG_F64 : FRG_F32, rows, columns, ld, to, true, then, user};
    copy(&c, team);
}

void frgi_qr_give(const frg_array *a, bool f64, ptrdiff_t ld, const void *from, int team)
{
    const copying c = {.a = a,
                       .own = f64 ? FRG_F64 : FRG_F32,
                       .columns = (ptrdiff_t)a->shape[1],
                       .ld = ld,
                       .x = (char *)from};
    copy(&c, team);
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
