/* direct_cpu.c - the kernels of direct_ops.h; compiled once per CPU level.
 *
 * All the arithmetic of the factor is one shape, the 8 x 8 tile
 *
 *     C[:, c] -= sum_k a_k b_k[c]          a_k: 8 rows of panel i, b_k: 8 rows of panel j, column k
 *
 * held in registers: 8 accumulators of 8 doubles where registers are 512 bits, two passes of 4
 * otherwise. Vectors are GCC's vector extension, so the same text serves SSE2, AVX2, AVX-512 and
 * other machines. The sums run over k in order for each entry, whatever the tiling: bits depend on
 * the level alone. */
#include "core/registers.h"
#include "sparse/direct_ops.h"

#include <math.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)

typedef double v8 __attribute__((vector_size(64), may_alias));
typedef double v4 __attribute__((vector_size(32), may_alias));

static inline double *panel_values(const frgi_panels *s, ptrdiff_t i)
{
    return s->values + (s->offset ? s->offset[i] : (ptrdiff_t)TILE * s->blocks * i);
}

static inline ptrdiff_t panel_start(const frgi_panels *s, ptrdiff_t i)
{
    return s->start ? s->start[i] : 0;
}

#if VECTOR_BYTES == 64
typedef v8 vector; /* of a column of the tile: what one register holds */
#else
typedef v4 vector;
#endif
enum { VECTORS = sizeof(v8) / sizeof(vector) };

/** Columns 4h .. 4h+3 of the tile, in halves: c -= sum_k a_k b_k[c]. */
static inline void subtract_columns(ptrdiff_t n, const double *restrict a, const double *restrict b,
                                    v4 *restrict c)
{
    v4 c00 = c[0], c01 = c[1], c10 = c[2], c11 = c[3], c20 = c[4], c21 = c[5], c30 = c[6],
       c31 = c[7];
    for (ptrdiff_t k = 0; k < n; k++) {
        const v4 x0 = *(const v4 *)(a + PANEL * k), x1 = *(const v4 *)(a + PANEL * k + 4);
        const double *const y = b + PANEL * k;
        c00 -= x0 * y[0];
        c01 -= x1 * y[0];
        c10 -= x0 * y[1];
        c11 -= x1 * y[1];
        c20 -= x0 * y[2];
        c21 -= x1 * y[2];
        c30 -= x0 * y[3];
        c31 -= x1 * y[3];
    }
    c[0] = c00;
    c[1] = c01;
    c[2] = c10;
    c[3] = c11;
    c[4] = c20;
    c[5] = c21;
    c[6] = c30;
    c[7] = c31;
}

static inline void minus(ptrdiff_t n, const double *restrict a, const double *restrict b,
                         v8 *restrict c)
{
#if VECTOR_BYTES == 64
    v8 c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4], c5 = c[5], c6 = c[6], c7 = c[7];
    for (ptrdiff_t k = 0; k < n; k++) {
        const v8 x = *(const v8 *)(a + PANEL * k);
        const double *const y = b + PANEL * k;
        c0 -= x * y[0];
        c1 -= x * y[1];
        c2 -= x * y[2];
        c3 -= x * y[3];
        c4 -= x * y[4];
        c5 -= x * y[5];
        c6 -= x * y[6];
        c7 -= x * y[7];
    }
    c[0] = c0;
    c[1] = c1;
    c[2] = c2;
    c[3] = c3;
    c[4] = c4;
    c[5] = c5;
    c[6] = c6;
    c[7] = c7;
#else
    subtract_columns(n, a, b, (v4 *)c);
    subtract_columns(n, a, b + 4, (v4 *)(c + 4));
#endif
}

static void product(ptrdiff_t n, const double *a, const double *b, double *tile)
{
    v8 c[PANEL] = {{0}};
    minus(n, a, b, c);
    for (int j = 0; j < PANEL; j++)
        *(v8 *)(tile + PANEL * j) = -c[j];
}

/** x <- x L^-T for 8 rows x, L the diagonal block d of lower triangle. */
static inline void divide(const double *restrict d, const double *restrict inverse,
                          double *restrict x)
{
    for (int h = 0; h < VECTORS; h++) {
        vector *const restrict c = (vector *)x + h;
#pragma GCC unroll 8
        for (int j = 0; j < PANEL; j++) {
            const vector y = c[VECTORS * j] * inverse[j];
            c[VECTORS * j] = y;
#pragma GCC unroll 8
            for (int l = j + 1; l < PANEL; l++)
                c[VECTORS * l] -= y * d[PANEL * j + l];
        }
    }
}

/** Cholesky of the diagonal tile d; rows below the real columns are carried along. */
static inline int64_t pivots(double *restrict d, double *restrict inverse,
                             const double *restrict lowest)
{
    int64_t nulls = 0;
    v8 *const c = (v8 *)d;
    for (int j = 0; j < PANEL; j++) {
        const double pivot = d[PANEL * j + j];
        const bool sound = pivot > lowest[j];
        const double r = sound ? 1 / sqrt(pivot) : 0;
        nulls += !sound;
        inverse[j] = r;
        v8 y = c[j] * r;
        for (int l = 0; l < j; l++)
            y[l] = 0;
        c[j] = y;
        for (int l = j + 1; l < PANEL; l++)
            c[l] -= y * d[PANEL * j + l];
    }
    return nulls;
}

static int64_t factor(const frgi_panels *s, ptrdiff_t i)
{
    double *const a = panel_values(s, i);
    const ptrdiff_t first = panel_start(s, i);
    const ptrdiff_t end = i < s->blocks ? i : s->blocks;
    for (ptrdiff_t j = first; j < end; j++) {
        const double *const b = panel_values(s, j);
        const ptrdiff_t first_j = panel_start(s, j);
        const ptrdiff_t from = first > first_j ? first : first_j;
        double *const c = a + TILE * (j - first);
        minus(PANEL * (j - from), a + TILE * (from - first), b + TILE * (from - first_j), (v8 *)c);
        divide(b + TILE * (j - first_j), s->inverse + PANEL * j, c);
    }
    if (i >= s->blocks)
        return 0;
    double *const d = a + TILE * (i - first);
    minus(PANEL * (i - first), a, a, (v8 *)d);
    return pivots(d, s->inverse + PANEL * i, s->floor + PANEL * i);
}

#define vec   v4
#define FN(f) f##_4
#include "sparse/direct_cpu.tmpl.h"
#undef vec
#undef FN
#define vec   v8
#define FN(f) f##_8
#include "sparse/direct_cpu.tmpl.h"

const frgi_direct_ops JOIN(frgi_direct_ops, ISA) = {
    .factor = factor,
    .product = product,
    .forward = {[WIDTH_4] = forward_4, [WIDTH_8] = forward_8},
    .backward = {[WIDTH_4] = backward_4, [WIDTH_8] = backward_8},
};
