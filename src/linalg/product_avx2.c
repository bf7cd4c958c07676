/* product_avx2.c - single-precision products by fused multiply-adds on the sixteen registers of
 * AVX2, or the thirty-two of AVX-512.
 *
 *     C (16 x 6) += sum_k a_k b_k'     twelve registers of C, two of a_k, b_k by broadcasts: 12
 *                                      operations to 8 loads, which the two units and the two load
 *                                      ports of a core just keep up with
 *     C (64 x 6), AVX-512              twenty-four registers of C, four of a_k, the panels of four
 *                                      such blocks; rows that are left over go by the blocks above
 *
 * Loops: `depth` of k (at most 256, in equal pieces) for 516 columns of C, packed in panels of 6,
 * which stay in the last cache level; then 192 rows, packed in panels of 16 to 196 KB of L2; a
 * panel of columns, 6 KB, stays in L1 while all rows go by it.  GFLOP/s on a Zen 3 core of 100,
 * and OpenBLAS's: at orders 128, 256, 384 86, 92, 94 (80, 87, 90); with a symmetric operand 85, 92,
 * 92 (76, 85, 88); from 512 on equal.  Squares A A' stay with OpenBLAS, which is faster along the
 * diagonal.
 *
 * Bits do not depend on threads: one product, one thread; nor on `count`; nor on the registers: an
 * element's sum goes over k in order in both kernels.
 *
 * Reference: Goto and van de Geijn (2008), Anatomy of high-performance matrix multiplication. */
#include "linalg/product_ways.h"

enum {
    ROWS = 16, /* of C in registers */
    WIDTH = 6, /* columns of it */
    DEPTH = 256,
    MOST_ROWS = 192,
    MOST_COLUMNS = 516,
    PANELS = 4, /* of rows in the registers of AVX-512 */
    SPARE = 8,  /* floats past the packed columns, which are stored by eights */
};

size_t frgi_product_avx2_columns(void)
{
    return ((size_t)DEPTH * MOST_COLUMNS + SPARE) * sizeof(float);
}

size_t frgi_product_avx2_rows(void)
{
    return (size_t)DEPTH * MOST_ROWS * sizeof(float);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define ON_AVX2     __attribute__((target("avx2,fma")))
#define ON_AVX512   __attribute__((target("avx512f")))
#define AVX2_INLINE ON_AVX2 static inline __attribute__((always_inline))

typedef frgi_product_target target;
typedef frgi_product_operand operand;

static ptrdiff_t pieces_of(ptrdiff_t n, ptrdiff_t most)
{
    return (n + most - 1) / most;
}

/* ---- packing --------------------------------------------------------------------------------- */

/** The first n of eight lanes. */
AVX2_INLINE __m256i first_lanes(ptrdiff_t n)
{
    const __m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n < 8 ? n : 8)), number);
}

/** v[r] <- `length` numbers of line r, zeros from line `lines` on. */
AVX2_INLINE void load(const float *x, ptrdiff_t ld, ptrdiff_t lines, ptrdiff_t length, __m256 v[8])
{
    if (lines >= 8 && length >= 8) {
        for (int r = 0; r < 8; r++) {
            v[r] = _mm256_loadu_ps(x + r * ld);
        }
        return;
    }
    const __m256i lanes = first_lanes(length);
    for (int r = 0; r < 8; r++) {
        v[r] = r < lines ? _mm256_maskload_ps(x + r * ld, lanes) : _mm256_setzero_ps();
    }
}

AVX2_INLINE void transpose(__m256 v[8])
{
    __m256 t[8];
    for (int r = 0; r < 8; r += 2) {
        t[r] = _mm256_unpacklo_ps(v[r], v[r + 1]);
        t[r + 1] = _mm256_unpackhi_ps(v[r], v[r + 1]);
    }
    for (int r = 0; r < 8; r += 4) {
        for (int h = 0; h < 2; h++) {
            v[r + 2 * h] = _mm256_shuffle_ps(t[r + h], t[r + h + 2], 0x44);
            v[r + 2 * h + 1] = _mm256_shuffle_ps(t[r + h], t[r + h + 2], 0xee);
        }
    }
    for (int r = 0; r < 4; r++) {
        t[r] = _mm256_permute2f128_ps(v[r], v[r + 4], 0x20);
        t[r + 4] = _mm256_permute2f128_ps(v[r], v[r + 4], 0x31);
    }
    for (int r = 0; r < 8; r++) {
        v[r] = t[r];
    }
}

/** v[r] holds k + r of eight i; what is beyond `most` of them, or of the operand, is zero. */
AVX2_INLINE void fetch(const operand *o, ptrdiff_t i, ptrdiff_t most, ptrdiff_t k, __m256 v[8])
{
    const ptrdiff_t count = frgi_smaller(most, o->count - i), depth = o->k - k;
    if (o->symmetric && i < k + 8 && k < i + 8) { /* around the diagonal */
        _Alignas(32) float block[8][8] = {{0}};
        for (ptrdiff_t r = 0; r < frgi_smaller(depth, 8); r++) {
            for (ptrdiff_t p = 0; p < frgi_smaller(count, 8); p++) {
                const ptrdiff_t low = i + p > k + r ? i + p : k + r, high = i + k + p + r - low;
                block[r][p] = o->x[high * o->ld + low];
            }
        }
        for (int r = 0; r < 8; r++) {
            v[r] = _mm256_load_ps(block[r]);
        }
    } else if (o->symmetric ? i > k : o->lines_of_k) {
        load(o->x + k * o->ld + i, o->ld, depth, count, v);
    } else {
        load(o->x + i * o->ld + k, o->ld, count, depth, v);
        transpose(v);
    }
}

/** Rows i .. of op(A) in panels of 16, each with all its k. */
ON_AVX2 static void pack_rows(const operand *o, ptrdiff_t i, ptrdiff_t count, ptrdiff_t k,
                              ptrdiff_t depth, float *to)
{
    for (ptrdiff_t at = 0; at < count; at += ROWS, to += ROWS * depth) {
        for (ptrdiff_t p = 0; p < depth; p += 8) {
            __m256 a[8], b[8];
            fetch(o, i + at, 8, k + p, a);
            fetch(o, i + at + 8, 8, k + p, b);
            for (int r = 0; r < 8; r++) {
                _mm256_store_ps(to + (p + r) * ROWS, a[r]);
                _mm256_store_ps(to + (p + r) * ROWS + 8, b[r]);
            }
        }
    }
}

/** Columns of op(B) in panels of 6.  A store of eight reaches into the next six, which come
 *  later. */
ON_AVX2 static void pack_columns(const operand *o, ptrdiff_t j, ptrdiff_t count, ptrdiff_t k,
                                 ptrdiff_t depth, float *to)
{
    for (ptrdiff_t at = 0; at < count; at += WIDTH, to += WIDTH * depth) {
        for (ptrdiff_t p = 0; p < depth; p += 8) {
            __m256 a[8];
            fetch(o, j + at, WIDTH, k + p, a);
            for (int r = 0; r < 8; r++) {
                _mm256_storeu_ps(to + (p + r) * WIDTH, a[r]);
            }
        }
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/** Sixteen rows of a column of C. */
AVX2_INLINE void give(const target *t, float *c, float past, __m256 low, __m256 high)
{
    const __m256 weight = _mm256_set1_ps(t->weight);
    low = _mm256_mul_ps(weight, low);
    high = _mm256_mul_ps(weight, high);
    if (past != 0) {
        const __m256 keep = _mm256_set1_ps(past);
        low = _mm256_fmadd_ps(keep, _mm256_loadu_ps(c), low);
        high = _mm256_fmadd_ps(keep, _mm256_loadu_ps(c + 8), high);
    }
    _mm256_storeu_ps(c, low);
    _mm256_storeu_ps(c + 8, high);
}

/** The same for what lies within C. */
AVX2_INLINE void give_edge(const target *t, ptrdiff_t i, float *c, float past, __m256 low,
                           __m256 high)
{
    _Alignas(32) float sums[ROWS];
    _mm256_store_ps(sums, low);
    _mm256_store_ps(sums + 8, high);
    for (ptrdiff_t r = 0; r < frgi_smaller(ROWS, t->m - i); r++) {
        const float x = t->weight * sums[r];
        c[r] = past != 0 ? __builtin_fmaf(past, c[r], x) : x;
    }
}

/** The block of C at (i, j) from a panel of rows and one of columns. */
ON_AVX2 static void block(const target *t, ptrdiff_t i, ptrdiff_t j, float past, ptrdiff_t depth,
                          const float *restrict rows, const float *restrict columns)
{
    __m256 x[WIDTH], y[WIDTH];
    const ptrdiff_t width = frgi_smaller(WIDTH, t->n - j);
#pragma GCC unroll 6
    for (int q = 0; q < WIDTH; q++) {
        x[q] = y[q] = _mm256_setzero_ps();
        _mm_prefetch((const char *)(t->c + (j + (q < width ? q : 0)) * t->ldc + i), _MM_HINT_T0);
    }
#pragma GCC unroll 4
    for (ptrdiff_t p = 0; p < depth; p++, rows += ROWS, columns += WIDTH) {
        const __m256 a = _mm256_load_ps(rows), b = _mm256_load_ps(rows + 8);
#pragma GCC unroll 6
        for (int q = 0; q < WIDTH; q++) {
            const __m256 e = _mm256_broadcast_ss(columns + q);
            x[q] = _mm256_fmadd_ps(a, e, x[q]);
            y[q] = _mm256_fmadd_ps(b, e, y[q]);
        }
    }
    const bool all_rows = i + ROWS <= t->m;
#pragma GCC unroll 6
    for (int q = 0; q < WIDTH; q++) {
        float *const c = t->c + (j + q) * t->ldc + i;
        if (all_rows && q < width) {
            give(t, c, past, x[q], y[q]);
        } else if (q < width) {
            give_edge(t, i, c, past, x[q], y[q]);
        }
    }
}

/** The block of C at (i, j), all of whose rows C has, from PANELS panels of rows and one of
 *  columns. */
ON_AVX512 static void wide_block(const target *t, ptrdiff_t i, ptrdiff_t j, float past,
                                 ptrdiff_t depth, const float *restrict rows,
                                 const float *restrict columns)
{
    __m512 sum[WIDTH][PANELS];
    const ptrdiff_t width = frgi_smaller(WIDTH, t->n - j), panel = ROWS * depth;
#pragma GCC unroll 6
    for (int q = 0; q < WIDTH; q++) {
#pragma GCC unroll 4
        for (int r = 0; r < PANELS; r++) {
            sum[q][r] = _mm512_setzero_ps();
        }
    }
    for (ptrdiff_t p = 0; p < depth; p++, rows += ROWS, columns += WIDTH) {
        __m512 a[PANELS];
#pragma GCC unroll 4
        for (int r = 0; r < PANELS; r++) {
            a[r] = _mm512_load_ps(rows + r * panel);
        }
#pragma GCC unroll 6
        for (int q = 0; q < WIDTH; q++) {
            const __m512 e = _mm512_set1_ps(columns[q]);
#pragma GCC unroll 4
            for (int r = 0; r < PANELS; r++) {
                sum[q][r] = _mm512_fmadd_ps(a[r], e, sum[q][r]);
            }
        }
    }
    const __m512 weight = _mm512_set1_ps(t->weight), keep = _mm512_set1_ps(past);
#pragma GCC unroll 6
    for (int q = 0; q < WIDTH; q++) {
        if (q >= width) {
            break;
        }
#pragma GCC unroll 4
        for (int r = 0; r < PANELS; r++) {
            const __m512 x = _mm512_mul_ps(weight, sum[q][r]);
            float *const at = t->c + (j + q) * t->ldc + i + r * ROWS;
            _mm512_storeu_ps(at, past != 0 ? _mm512_fmadd_ps(keep, _mm512_loadu_ps(at), x) : x);
        }
    }
}

/** All rows of one C by the packed columns jc .. jc + nc, over `depth` of k. */
static void add_slab(const frgi_product_workspace *work, const target *t, const operand *rows,
                     ptrdiff_t jc, ptrdiff_t nc, ptrdiff_t kc, ptrdiff_t depth)
{
    float *const packed = (float *)(void *)work->rows;
    const float *const columns = (const float *)(const void *)work->columns;
    const float past = kc == 0 ? t->past : 1;
    for (ptrdiff_t ic = 0; ic < t->m; ic += MOST_ROWS) {
        const ptrdiff_t mc = frgi_smaller(t->m - ic, MOST_ROWS);
        const ptrdiff_t wide = work->way == PRODUCT_AVX512 ? mc - mc % (PANELS * ROWS) : 0;
        pack_rows(rows, ic, mc, kc, depth, packed);
        for (ptrdiff_t j = 0; j < nc; j += WIDTH) {
            for (ptrdiff_t i = 0; i < wide; i += PANELS * ROWS) {
                wide_block(t, ic + i, jc + j, past, depth, packed + i * depth, columns + j * depth);
            }
            for (ptrdiff_t i = wide; i < mc; i += ROWS) {
                block(t, ic + i, jc + j, past, depth, packed + i * depth, columns + j * depth);
            }
        }
    }
}

void frgi_product_avx2(const frgi_product_workspace *work, const target *t, const operand *rows,
                       const operand *columns)
{
    const ptrdiff_t pieces = pieces_of(t->k, DEPTH),
                    depth = pieces_of(pieces_of(t->k, pieces), 8) * 8;
    for (ptrdiff_t jc = 0; jc < t->n; jc += MOST_COLUMNS) {
        const ptrdiff_t nc = frgi_smaller(t->n - jc, MOST_COLUMNS);
        for (ptrdiff_t kc = 0; kc < t->k; kc += depth) {
            pack_columns(columns, jc, nc, kc, depth, (float *)(void *)work->columns);
            for (ptrdiff_t each = 0; each < t->count; each++) {
                target mine = *t;
                operand own = *rows;
                mine.c += each * t->step;
                own.x += each * t->step;
                add_slab(work, &mine, &own, jc, nc, kc, depth);
            }
        }
    }
}
#else
void frgi_product_avx2(const frgi_product_workspace *work, const frgi_product_target *t,
                       const frgi_product_operand *rows, const frgi_product_operand *columns)
{
    (void)work, (void)t, (void)rows, (void)columns; /* not chosen on this machine */
}
#endif
