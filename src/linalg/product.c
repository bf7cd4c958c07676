/* product.c - single-precision products on the tiles of x86 (AMX), which multiply bfloat16 alone.
 *
 * A float is the exact sum of three bfloat16:  x = hi + mid + lo,  |mid| <= 2^-8 |x|,  |lo| <= 2^-16 |x|,  each
 * rounded to nearest.  Of the nine products of two such sums six are formed,
 *
 *     lo hi + mid hi + mid mid + hi mid + hi lo + hi hi,
 *
 * what is left out is below 2^-23 |a b| and of either sign, 2^-27 as a rule: less than the rounding of one
 * operation in single precision.  A tile instruction sums 32 products on its own before it adds to C, so that
 * fewer roundings lie on a sum's way than in a loop over k.  Six products at sixteen times the speed of fused
 * multiply-adds (one core: 3.1e12 against 0.21e12 operations a second) leave a gain of 1.6, packing included (217 to 240
 * of 516 possible, where sgemm runs at 145).
 *
 *     C = A B is kept as C' = B' A':   rows of a tile of C' are columns of C
 *     columns   op(B)' in tiles of 16 columns by 32 of k, three tiles (hi, mid, lo) after one another
 *     rows      op(A)  in tiles of 16 pairs of k by 16 rows
 *
 * A word of a tile pairs k with k + 16, not with k + 1: halves of two vectors then meet without a shuffle.
 * Operands that lie the other way are transposed 16 x 16 in registers.  Loops: 128 of k for 512 columns, packed
 * to 0.4 MB, then 32 rows, packed to what stays in L1; 2 x 2 tiles of C in registers.
 *
 * Dangers: tiles take numbers below 2^-126 for zero, also parts of larger ones: who calls keeps operands away from
 * that (soap_step.c).  An infinity becomes NaN.  Bits do not depend on threads: one product, one thread.
 *
 * References: Henry, Tang and Heinecke (2019), Leveraging the bfloat16 datatype for higher-precision computations;
 * Goto and van de Geijn (2008) for the loops. */
#include "linalg/product.h"

#include "linalg/blas.h"

enum {
    TILE = 16,  /* rows of a tile, and its columns of C */
    DEPTH = 32, /* of k in a tile */
    PARTS = 3,  /* hi, mid, lo */
    TILE_BYTES = 1024,
    STEP = 2 * TILE, /* of C in registers */
    COLUMNS = 512,
    INNER = 128,
    SMALLEST = 32, /* sizes below this go to BLAS */
};

void frgi_product_room_take(frgi_arena *arena, frgi_product_room *room, bool tiles)
{
    const size_t bytes = (size_t)INNER / DEPTH * PARTS * TILE_BYTES;
    room->tiles = tiles;
    room->columns = tiles ? frgi_take(arena, COLUMNS / TILE * bytes) : NULL;
    room->rows = tiles ? frgi_take(arena, STEP / TILE * bytes) : NULL;
}

/** C <- past C + weight op(A) op(B), the whole or its lower triangle. */
typedef struct {
    ptrdiff_t m, n, k;
    float past, weight;
    bool lower;
    float *c;
    ptrdiff_t ldc;
    ptrdiff_t count, step; /* so many A and C, each so far from the last */
} target;

/** An operand: element (i, k), i a row of op(A) or a column of op(B). */
typedef struct {
    const float *x;
    ptrdiff_t ld, count, k;
    bool lines_of_k; /* neighbours in memory differ in i, else in k */
    bool symmetric;  /* the lower triangle alone is read */
} operand;

static ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

static bool worth_tiles(const frgi_product_room *room, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    return room->tiles && m >= SMALLEST && n >= SMALLEST && k >= SMALLEST;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define ON_TILES __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16")))
#define INLINE   ON_TILES static inline __attribute__((always_inline))

INLINE __mmask16 first_lanes(ptrdiff_t n)
{
    const unsigned all = 0xffff;
    return (__mmask16)(n >= TILE ? all : n <= 0 ? 0 : all >> (TILE - n));
}

INLINE void load(const float *x, ptrdiff_t ld, ptrdiff_t lines, ptrdiff_t length, __m512 v[TILE])
{
    const __mmask16 lanes = first_lanes(length);
    for (int r = 0; r < TILE; r++) {
        v[r] = r < lines ? _mm512_maskz_loadu_ps(lanes, x + r * ld) : _mm512_setzero_ps();
    }
}

/** By pairs, fours within quarters, then the quarters. */
INLINE void transpose(__m512 v[TILE])
{
    __m512 t[TILE];
    for (int r = 0; r < TILE; r += 2) {
        t[r] = _mm512_unpacklo_ps(v[r], v[r + 1]);
        t[r + 1] = _mm512_unpackhi_ps(v[r], v[r + 1]);
    }
    for (int r = 0; r < TILE; r += 4) {
        for (int h = 0; h < 2; h++) {
            const __m512d a = _mm512_castps_pd(t[r + h]), b = _mm512_castps_pd(t[r + h + 2]);
            v[r + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            v[r + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }
    for (int c = 0; c < 4; c++) {
        const __m512 a = _mm512_shuffle_f32x4(v[c], v[c + 4], 0x88);
        const __m512 b = _mm512_shuffle_f32x4(v[c], v[c + 4], 0xdd);
        const __m512 d = _mm512_shuffle_f32x4(v[c + 8], v[c + 12], 0x88);
        const __m512 e = _mm512_shuffle_f32x4(v[c + 8], v[c + 12], 0xdd);
        t[c] = _mm512_shuffle_f32x4(a, d, 0x88);
        t[c + 8] = _mm512_shuffle_f32x4(a, d, 0xdd);
        t[c + 4] = _mm512_shuffle_f32x4(b, e, 0x88);
        t[c + 12] = _mm512_shuffle_f32x4(b, e, 0xdd);
    }
    for (int r = 0; r < TILE; r++) {
        v[r] = t[r];
    }
}

/** Lines of 64 bytes that will be wanted: sixteen streams are more than the hardware foresees. */
INLINE void ask_for(const float *x, ptrdiff_t ld, ptrdiff_t lines)
{
    for (int r = 0; r < TILE; r++) {
        if (r < lines) {
            _mm_prefetch((const char *)(x + r * ld), _MM_HINT_T0);
        }
    }
}

/** The 16 x 16 elements at (i, k): v[r] holds k + r of all i where rows_of_k, else i + r of all k. */
INLINE void fetch(const operand *o, ptrdiff_t i, ptrdiff_t k, bool rows_of_k, __m512 v[TILE])
{
    const bool lines_of_k = o->symmetric ? i >= k : o->lines_of_k;
    const ptrdiff_t next = i + TILE < o->count ? i + TILE : i;
    if (lines_of_k) {
        ask_for(o->x + k * o->ld + next, o->ld, o->k - k);
        load(o->x + k * o->ld + i, o->ld, o->k - k, o->count - i, v);
    } else {
        ask_for(o->x + next * o->ld + k, o->ld, o->count - next);
        load(o->x + i * o->ld + k, o->ld, o->count - i, o->k - k, v);
    }
    if (o->symmetric && i == k) {
        __m512 mirrored[TILE];
        for (int r = 0; r < TILE; r++) {
            mirrored[r] = v[r];
        }
        transpose(mirrored);
        for (int r = 0; r < TILE; r++) {
            v[r] = _mm512_mask_blend_ps((__mmask16)(0xffffu << r), mirrored[r], v[r]);
        }
    } else if (lines_of_k != rows_of_k) {
        transpose(v);
    }
}

/** x to the nearest bfloat16, as a float. */
INLINE __m512i nearest(__m512 x)
{
    const __m512i half = _mm512_set1_epi32(0x8000), keep = _mm512_set1_epi32((int)0xffff0000);
    return _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), keep);
}

INLINE __m512i pair(__m512i low, __m512i high)
{
    return _mm512_or_si512(_mm512_srli_epi32(low, 16), high);
}

INLINE void pack_tile(const operand *o, ptrdiff_t i, ptrdiff_t k, bool rows_of_k, unsigned char *to)
{
    __m512 a[TILE], b[TILE];
    fetch(o, i, k, rows_of_k, a);
    fetch(o, i, k + TILE, rows_of_k, b);
    for (int r = 0; r < TILE; r++) {
        __m512 x = a[r], y = b[r];
        for (int part = 0; part < PARTS; part++) {
            const __m512i p = nearest(x), q = nearest(y);
            x = _mm512_sub_ps(x, _mm512_castsi512_ps(p));
            y = _mm512_sub_ps(y, _mm512_castsi512_ps(q));
            _mm512_store_si512(to + part * TILE_BYTES + r * 64, pair(p, q));
        }
    }
}

/** Elements (i .. i + count, k .. k + depth), panels of 16 with all their k after one another. */
ON_TILES static void pack(const operand *o, ptrdiff_t i, ptrdiff_t count, ptrdiff_t k,
                          ptrdiff_t depth, bool rows_of_k, unsigned char *to)
{
    for (ptrdiff_t at = 0; at < count; at += TILE) {
        for (ptrdiff_t q = 0; q < depth; q += DEPTH, to += PARTS * TILE_BYTES) {
            if (rows_of_k) {
                pack_tile(o, i + at, k + q, true, to);
            } else {
                pack_tile(o, i + at, k + q, false, to);
            }
        }
    }
}

#define LOAD_COLUMNS(part)                                                                         \
    _tile_loadd(4, l + (part)*TILE_BYTES, 64);                                                     \
    _tile_loadd(5, l + panel + (part)*TILE_BYTES, 64)
#define LOAD_ROWS(part)                                                                            \
    _tile_loadd(6, r + (part)*TILE_BYTES, 64);                                                     \
    _tile_loadd(7, r + panel + (part)*TILE_BYTES, 64)
#define MULTIPLY                                                                                   \
    _tile_dpbf16ps(0, 4, 6);                                                                       \
    _tile_dpbf16ps(1, 4, 7);                                                                       \
    _tile_dpbf16ps(2, 5, 6);                                                                       \
    _tile_dpbf16ps(3, 5, 7)

/** sums (32 columns of 32 rows) = two panels of columns times two of rows; small products first. */
ON_TILES static void multiply_block(const unsigned char *l, const unsigned char *r, ptrdiff_t depth,
                                    float *sums)
{
    enum { HI, MID, LO };
    const ptrdiff_t blocks = depth / DEPTH, panel = blocks * PARTS * TILE_BYTES;
    __asm__ volatile("" ::: "memory"); /* what was packed is in memory */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (ptrdiff_t q = 0; q < blocks; q++, l += PARTS * TILE_BYTES, r += PARTS * TILE_BYTES) {
        LOAD_COLUMNS(LO);
        LOAD_ROWS(HI);
        MULTIPLY;
        LOAD_COLUMNS(MID);
        MULTIPLY;
        LOAD_ROWS(MID);
        MULTIPLY;
        LOAD_COLUMNS(HI);
        MULTIPLY;
        LOAD_ROWS(LO);
        MULTIPLY;
        LOAD_ROWS(HI);
        MULTIPLY;
    }
    const ptrdiff_t stride = STEP * (ptrdiff_t)sizeof *sums;
    _tile_stored(0, sums, stride);
    _tile_stored(1, sums + TILE, stride);
    _tile_stored(2, sums + TILE * STEP, stride);
    _tile_stored(3, sums + TILE * STEP + TILE, stride);
    __asm__ volatile("" ::: "memory");
}

INLINE void give(const target *t, ptrdiff_t i, ptrdiff_t j, float past, const float *sums)
{
    const __m512 weight = _mm512_set1_ps(t->weight), keep = _mm512_set1_ps(past);
    const ptrdiff_t columns = t->n - j < STEP ? t->n - j : STEP;
    for (ptrdiff_t p = 0; p < columns; p++) {
        for (ptrdiff_t row = i; row < i + STEP; row += TILE) {
            __mmask16 lanes = first_lanes(t->m - row);
            if (t->lower) {
                lanes = (__mmask16)(lanes & ~first_lanes(j + p - row));
            }
            float *const to = t->c + (j + p) * t->ldc + row;
            __m512 x = _mm512_mul_ps(weight, _mm512_load_ps(sums + p * STEP + row - i));
            if (past != 0) {
                x = _mm512_fmadd_ps(keep, _mm512_maskz_loadu_ps(lanes, to), x);
            }
            _mm512_mask_storeu_ps(to, lanes, x);
        }
    }
}

/** Asks for the 32 columns of 32 rows of C that grow next. */
INLINE void ask_for_block(const target *t, ptrdiff_t i, ptrdiff_t j)
{
    for (ptrdiff_t p = j; p < j + STEP && p < t->n && t->past != 0; p++) {
        _mm_prefetch((const char *)(t->c + p * t->ldc + i), _MM_HINT_T0);
        _mm_prefetch((const char *)(t->c + p * t->ldc + smaller(i + TILE, t->m - 1)), _MM_HINT_T0);
    }
}

static ptrdiff_t whole(ptrdiff_t n, ptrdiff_t step)
{
    return (n + step - 1) / step * step;
}

ON_TILES static void configure(void)
{
    struct {
        unsigned char palette, start, reserved[14];
        uint16_t bytes[16];
        unsigned char rows[16];
    } shape = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shape.bytes[i] = 64;
        shape.rows[i] = TILE;
    }
    _tile_loadconfig(&shape);
}

/** All rows of C_each by the packed columns jc .. jc + nc, over `depth` of k. */
ON_TILES static void add_slab(const frgi_product_room *room, const target *t, const operand *rows,
                              ptrdiff_t each, ptrdiff_t jc, ptrdiff_t nc, ptrdiff_t kc,
                              ptrdiff_t depth)
{
    _Alignas(64) float sums[STEP * STEP];
    const ptrdiff_t panel = depth / DEPTH * PARTS * TILE_BYTES;
    target mine = *t;
    operand own = *rows;
    mine.c += each * t->step;
    own.x += each * t->step;
    for (ptrdiff_t i = t->lower ? jc : 0; i < t->m; i += STEP) {
        const ptrdiff_t end = t->lower ? smaller(nc, i + STEP - jc) : nc;
        pack(&own, i, STEP, kc, depth, true, room->rows);
        for (ptrdiff_t j = 0; j < end; j += STEP) {
            ask_for_block(&mine, i, jc + j);
            multiply_block(room->columns + j / TILE * panel, room->rows, depth, sums);
            give(&mine, i, jc + j, kc == 0 ? t->past : 1, sums);
        }
    }
}

ON_TILES static void multiply(const frgi_product_room *room, const target *t, const operand *rows,
                              const operand *columns)
{
    configure();
    for (ptrdiff_t jc = 0; jc < t->n; jc += COLUMNS) {
        const ptrdiff_t nc = whole(smaller(t->n - jc, COLUMNS), STEP);
        for (ptrdiff_t kc = 0; kc < t->k; kc += INNER) {
            const ptrdiff_t depth = whole(smaller(t->k - kc, INNER), DEPTH);
            pack(columns, jc, nc, kc, depth, false, room->columns);
            for (ptrdiff_t each = 0; each < t->count; each++) {
                add_slab(room, t, rows, each, jc, nc, kc, depth);
            }
        }
    }
    _tile_release();
}

#else
static void multiply(const frgi_product_room *room, const target *t, const operand *rows,
                     const operand *columns)
{
    (void)room, (void)t, (void)rows, (void)columns; /* no room has tiles here */
}
#endif

void frgi_product(const frgi_product_room *room, char trans_a, char trans_b, ptrdiff_t m,
                  ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *b,
                  ptrdiff_t ldb, float *c, ptrdiff_t ldc)
{
    if (!worth_tiles(room, m, n, k)) {
        frgi_sgemm(trans_a, trans_b, (int)m, (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, 0, c,
                   (int)ldc);
        return;
    }
    const target t = {.m = m, .n = n, .k = k, .weight = 1, .c = c, .ldc = ldc, .count = 1};
    multiply(room, &t, &(operand){a, lda, m, k, trans_a == 'N', false},
             &(operand){b, ldb, n, k, trans_b == 'T', false});
}

void frgi_product_each(const frgi_product_room *room, char trans_b, ptrdiff_t count, ptrdiff_t step,
                       ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t lda,
                       const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc)
{
    if (!worth_tiles(room, m, n, k)) {
        for (ptrdiff_t i = 0; i < count; i++) {
            frgi_product(room, 'N', trans_b, m, n, k, a + i * step, lda, b, ldb, c + i * step, ldc);
        }
        return;
    }
    const target t = {
        .m = m, .n = n, .k = k, .weight = 1, .c = c, .ldc = ldc, .count = count, .step = step};
    multiply(room, &t, &(operand){a, lda, m, k, true, false},
             &(operand){b, ldb, n, k, trans_b == 'T', false});
}

void frgi_product_symmetric(const frgi_product_room *room, ptrdiff_t m, ptrdiff_t n, const float *a,
                            ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc)
{
    if (!worth_tiles(room, m, n, m)) {
        frgi_ssymm((int)m, (int)n, a, (int)lda, b, (int)ldb, c, (int)ldc);
        return;
    }
    const target t = {.m = m, .n = n, .k = m, .weight = 1, .c = c, .ldc = ldc, .count = 1};
    multiply(room, &t, &(operand){a, lda, m, m, false, true},
             &(operand){b, ldb, n, m, false, false});
}

void frgi_product_square(const frgi_product_room *room, char trans, ptrdiff_t n, ptrdiff_t k,
                         float weight, const float *a, ptrdiff_t lda, float past, float *c,
                         ptrdiff_t ldc)
{
    if (!worth_tiles(room, n, n, k)) {
        frgi_ssyrk(trans, (int)n, (int)k, weight, a, (int)lda, past, c, (int)ldc);
        return;
    }
    const target t = {n, n, k, past, weight, true, c, ldc, 1, 0};
    const operand x = {a, lda, n, k, trans == 'N', false};
    multiply(room, &t, &x, &x);
}
