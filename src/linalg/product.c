/* product.c - single-precision products on the tiles of x86 (AMX), which multiply bfloat16 alone.
 *
 * A float is split into three bfloat16 and six products of them are formed (bf16_tiles.h): what is
 * left out is less than the rounding of one operation in single precision, and a tile instruction
 * sums 32 products on its own before it adds to C, so that fewer roundings lie on a sum's way than
 * in a loop over k.  Six products at sixteen times the speed of fused multiply-adds (one core:
 * 3.1e12 against 0.21e12 operations a second) leave a gain of 2, packing included (250 to 300 of
 * 516 possible, where sgemm runs at 145).
 *
 *     C = A B is kept as C' = B' A':   rows of a tile of C' are columns of C
 *     columns   op(B)' in tiles of 16 columns by 32 of k, three tiles (hi, mid, lo) after one
 *               another
 *     rows      op(A)  in tiles of 16 pairs of k by 16 rows
 *
 * Operands that lie the other way are transposed 16 x 16 in registers.  Loops: 128 of k for 512
 * columns, packed to 0.4 MB, then 32 rows, packed to what stays in L1 and multiplied with the
 * weight; 2 x 2 tiles of C in registers, where they are loaded from C and stored to it: a detour by
 * a buffer waited for the tile unit in every block.
 *
 * Dangers: tiles take numbers below 2^-126 for zero, also terms of larger ones: the caller keeps
 * operands away from that (frgi_soap_products).  An infinity becomes NaN.  Bits do not depend on
 * threads: one product, one thread.
 *
 * References: Henry, Tang and Heinecke (2019), Leveraging the bfloat16 datatype for
 * higher-precision computations; Goto and van de Geijn (2008) for the loops. */
#include "linalg/product_ways.h"

#include "linalg/bf16_tiles.h"
#include "linalg/blas.h"

enum {
    COLUMNS = 512,
    INNER = 128,
    DEEP = 256,
    SMALLEST = 32, /* sizes below this go to BLAS */
};

frgi_product_way frgi_product_way_of(const frg_context *ctx)
{
    return frgi_context_tiles(ctx)           ? PRODUCT_TILES
           : frgi_context_isa(ctx) == ISA_V3 ? PRODUCT_AVX2
                                             : PRODUCT_BLAS;
}

void frgi_product_workspace_take(frgi_arena *arena, frgi_product_workspace *work,
                                 frgi_product_way way)
{
    const size_t bytes = (size_t)DEEP / BF16_DEPTH * BF16_TERMS * BF16_BYTES;
    const struct {
        size_t columns, rows;
    } packed[] = {
        [PRODUCT_AVX2] = {frgi_product_avx2_columns(), frgi_product_avx2_rows()},
        [PRODUCT_AVX512] = {frgi_product_avx2_columns(), frgi_product_avx2_rows()},
        [PRODUCT_TILES] = {COLUMNS / BF16_TILE * bytes, BF16_BLOCK / BF16_TILE * bytes},
    };
    work->way = way;
    work->columns = way == PRODUCT_BLAS ? NULL : frgi_take(arena, packed[way].columns);
    work->rows = way == PRODUCT_BLAS ? NULL : frgi_take(arena, packed[way].rows);
}

typedef frgi_product_target target;
typedef frgi_product_operand operand;

bool frgi_product_is_own(const frgi_product_workspace *work, ptrdiff_t least)
{
    return work->way != PRODUCT_BLAS && least >= SMALLEST;
}

/** Is the product to be computed here, and not by BLAS? */
static bool ours(const frgi_product_workspace *work, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    return frgi_product_is_own(work, frgi_smaller(m, frgi_smaller(n, k)));
}

#if defined(__x86_64__)
TILES_INLINE __mmask16 first_lanes(ptrdiff_t n)
{
    const unsigned all = 0xffff;
    return (__mmask16)(n >= BF16_TILE ? all : n <= 0 ? 0 : all >> (BF16_TILE - n));
}

TILES_INLINE void load(const float *x, ptrdiff_t ld, ptrdiff_t lines, ptrdiff_t length,
                       __m512i v[BF16_TILE])
{
    if (lines >= BF16_TILE && length >= BF16_TILE) {
#pragma GCC unroll 16
        for (int r = 0; r < BF16_TILE; r++) {
            v[r] = _mm512_loadu_si512(x + r * ld);
        }
        return;
    }
    const __mmask16 lanes = first_lanes(length);
    for (int r = 0; r < BF16_TILE; r++) {
        v[r] = r < lines ? _mm512_maskz_loadu_epi32(lanes, x + r * ld) : _mm512_setzero_si512();
    }
}

/** Lines of 64 bytes that will be wanted: sixteen streams are more than the hardware foresees. */
TILES_INLINE void ask_for(const float *x, ptrdiff_t ld, ptrdiff_t lines)
{
    if (lines >= BF16_TILE) {
#pragma GCC unroll 16
        for (int r = 0; r < BF16_TILE; r++) {
            _mm_prefetch((const char *)(x + r * ld), _MM_HINT_T0);
        }
    }
}

/** The 16 x 16 elements at (i, k): v[r] holds k + r of all i where rows_of_k, else i + r of all
 *  k. */
TILES_INLINE void fetch(const operand *o, ptrdiff_t i, ptrdiff_t k, bool rows_of_k,
                        __m512i v[BF16_TILE])
{
    const bool lines_of_k = o->symmetric ? i >= k : o->lines_of_k;
    const ptrdiff_t next = i + BF16_TILE < o->count ? i + BF16_TILE : i;
    if (lines_of_k) {
        ask_for(o->x + k * o->ld + next, o->ld, o->k - k);
        load(o->x + k * o->ld + i, o->ld, o->k - k, o->count - i, v);
    } else {
        ask_for(o->x + next * o->ld + k, o->ld, o->count - next);
        load(o->x + i * o->ld + k, o->ld, o->count - i, o->k - k, v);
    }
    if (o->symmetric && i == k) {
        __m512i mirrored[BF16_TILE];
        for (int r = 0; r < BF16_TILE; r++) {
            mirrored[r] = v[r];
        }
        bf16_transpose(mirrored);
        for (int r = 0; r < BF16_TILE; r++) {
            v[r] = _mm512_mask_blend_epi32((__mmask16)(0xffffu << r), mirrored[r], v[r]);
        }
    } else if (lines_of_k != rows_of_k) {
        bf16_transpose(v);
    }
}

/** weight times 16 elements of two pieces of k, in tiles. */
TILES_INLINE void pack_tile(const operand *o, float weight, ptrdiff_t i, ptrdiff_t k,
                            bool rows_of_k, unsigned char *to)
{
    __m512i a[BF16_TILE], b[BF16_TILE];
    const __m512 w = _mm512_set1_ps(weight);
    fetch(o, i, k, rows_of_k, a);
    fetch(o, i, k + BF16_TILE, rows_of_k, b);
#pragma GCC unroll 16
    for (int r = 0; r < BF16_TILE; r++) {
        __m512 x = _mm512_mul_ps(w, _mm512_castsi512_ps(a[r]));
        __m512 y = _mm512_mul_ps(w, _mm512_castsi512_ps(b[r]));
        _mm512_store_si512(to + r * 64, bf16_split(&x, &y));
        _mm512_store_si512(to + BF16_BYTES + r * 64, bf16_split(&x, &y));
        _mm512_store_si512(to + 2 * BF16_BYTES + r * 64, bf16_split_last(x, y));
    }
}

/** Elements (i .. i + count, k .. k + depth), panels of 16 with all their k after one another. */
ON_TILES static void pack(const operand *o, float weight, ptrdiff_t i, ptrdiff_t count, ptrdiff_t k,
                          ptrdiff_t depth, bool rows_of_k, unsigned char *to)
{
    for (ptrdiff_t at = 0; at < count; at += BF16_TILE) {
        for (ptrdiff_t q = 0; q < depth; q += BF16_DEPTH, to += BF16_TERMS * BF16_BYTES) {
            if (rows_of_k) {
                pack_tile(o, weight, i + at, k + q, true, to);
            } else {
                pack_tile(o, weight, i + at, k + q, false, to);
            }
        }
    }
}

/** Rows that C has of the column p of a block at (i, j), 16 from `row` on. */
TILES_INLINE __mmask16 lanes_of(const target *t, ptrdiff_t row, ptrdiff_t column)
{
    const __mmask16 lanes = first_lanes(t->m - row);
    return t->lower ? (__mmask16)(lanes & ~first_lanes(column - row)) : lanes;
}

/** sums <- past C, the block at (i, j); 0 where C has none. */
TILES_INLINE void take_block(const target *t, ptrdiff_t i, ptrdiff_t j, float past, float *sums)
{
    for (ptrdiff_t p = j; p < j + BF16_BLOCK; p++) {
        for (ptrdiff_t row = i; row < i + BF16_BLOCK; row += BF16_TILE, sums += BF16_TILE) {
            const __mmask16 lanes = p < t->n ? lanes_of(t, row, p) : 0;
            const __m512 x = _mm512_maskz_loadu_ps(lanes, t->c + p * t->ldc + row);
            _mm512_store_ps(sums, _mm512_mul_ps(_mm512_set1_ps(past), x));
        }
    }
}

TILES_INLINE void give_block(const target *t, ptrdiff_t i, ptrdiff_t j, const float *sums)
{
    for (ptrdiff_t p = j; p < j + BF16_BLOCK && p < t->n; p++) {
        for (ptrdiff_t row = i; row < i + BF16_BLOCK; row += BF16_TILE, sums += BF16_TILE) {
            _mm512_mask_storeu_ps(t->c + p * t->ldc + row, lanes_of(t, row, p),
                                  _mm512_load_ps(sums));
        }
    }
}

/** The block of C at (i, j) by packed panels.  Its sums go on from past C, in tiles where C lies,
 *  if they can: bits are the same by way of a buffer, in which a block at an edge of C is another's
 *  middle. */
TILES_INLINE void add_block(const target *t, ptrdiff_t i, ptrdiff_t j, float past, ptrdiff_t depth,
                            const unsigned char *columns, const unsigned char *rows)
{
    _Alignas(64) float sums[BF16_BLOCK * BF16_BLOCK];
    const ptrdiff_t pieces = depth / BF16_DEPTH, panel = pieces * BF16_TERMS * BF16_BYTES;
    const bool is_whole = i + BF16_BLOCK <= t->m && j + BF16_BLOCK <= t->n && !(t->lower && i == j);
    float *const c = t->c + j * t->ldc + i;
    if (past == 0) {
        bf16_start();
    } else if (past == 1 && is_whole) {
        bf16_load(c, t->ldc);
    } else {
        take_block(t, i, j, past, sums);
        bf16_load(sums, BF16_BLOCK);
    }
    bf16_add(pieces, true, columns, columns + panel, rows, rows + panel);
    if (is_whole) {
        bf16_store(c, t->ldc);
    } else {
        bf16_store(sums, BF16_BLOCK);
        give_block(t, i, j, sums);
    }
}

static ptrdiff_t whole(ptrdiff_t n, ptrdiff_t step)
{
    return (n + step - 1) / step * step;
}

/** All rows of C_each by the packed columns jc .. jc + nc, over `depth` of k. */
ON_TILES static void add_slab(const frgi_product_workspace *work, const target *t,
                              const operand *rows, ptrdiff_t each, ptrdiff_t jc, ptrdiff_t nc,
                              ptrdiff_t kc, ptrdiff_t depth)
{
    const ptrdiff_t panel = depth / BF16_DEPTH * BF16_TERMS * BF16_BYTES;
    const float past = kc == 0 ? t->past : 1;
    target mine = *t;
    operand own = *rows;
    mine.c += each * t->step;
    own.x += each * t->step;
    for (ptrdiff_t i = t->lower ? jc : 0; i < t->m; i += BF16_BLOCK) {
        const ptrdiff_t end = t->lower ? frgi_smaller(nc, i + BF16_BLOCK - jc) : nc;
        pack(&own, t->weight, i, BF16_BLOCK, kc, depth, true, work->rows);
        for (ptrdiff_t j = 0; j < end; j += BF16_BLOCK) {
            add_block(&mine, i, jc + j, past, depth, work->columns + j / BF16_TILE * panel,
                      work->rows);
        }
    }
}

/** Of k at a time.  Columns of C that lie 4096 bytes apart take each other's place in the L1 cache:
 *  they are passed over half as often. */
static ptrdiff_t depth_for(const target *t)
{
    return t->ldc % 1024 == 0 ? DEEP : INNER;
}

ON_TILES static void multiply_on_tiles(const frgi_product_workspace *work, const target *t,
                                       const operand *rows, const operand *columns)
{
    const ptrdiff_t most = depth_for(t);
    bf16_open();
    for (ptrdiff_t jc = 0; jc < t->n; jc += COLUMNS) {
        const ptrdiff_t nc = whole(frgi_smaller(t->n - jc, COLUMNS), BF16_BLOCK);
        for (ptrdiff_t kc = 0; kc < t->k; kc += most) {
            const ptrdiff_t depth = whole(frgi_smaller(t->k - kc, most), BF16_DEPTH);
            pack(columns, 1, jc, nc, kc, depth, false, work->columns);
            for (ptrdiff_t each = 0; each < t->count; each++) {
                add_slab(work, t, rows, each, jc, nc, kc, depth);
            }
        }
    }
    bf16_close();
}

#else
static void multiply_on_tiles(const frgi_product_workspace *work, const target *t,
                              const operand *rows, const operand *columns)
{
    (void)work, (void)t, (void)rows, (void)columns; /* there are no tiles here */
}
#endif

static void multiply(const frgi_product_workspace *work, const target *t, const operand *rows,
                     const operand *columns)
{
    (work->way == PRODUCT_TILES ? multiply_on_tiles : frgi_product_avx2)(work, t, rows, columns);
}

void frgi_product_blend(const frgi_product_workspace *work, char trans_a, char trans_b, ptrdiff_t m,
                        ptrdiff_t n, ptrdiff_t k, float weight, const float *a, ptrdiff_t lda,
                        const float *b, ptrdiff_t ldb, float past, float *c, ptrdiff_t ldc)
{
    if (!ours(work, m, n, k)) {
        frgi_sgemm(trans_a, trans_b, (int)m, (int)n, (int)k, weight, a, (int)lda, b, (int)ldb, past,
                   c, (int)ldc);
        return;
    }
    const target t = {
        .m = m, .n = n, .k = k, .past = past, .weight = weight, .c = c, .ldc = ldc, .count = 1};
    multiply(work, &t, &(operand){a, lda, m, k, trans_a == 'N', false},
             &(operand){b, ldb, n, k, trans_b == 'T', false});
}

void frgi_product(const frgi_product_workspace *work, char trans_a, char trans_b, ptrdiff_t m,
                  ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *b,
                  ptrdiff_t ldb, float *c, ptrdiff_t ldc)
{
    frgi_product_blend(work, trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
}

void frgi_product_each(const frgi_product_workspace *work, char trans_b, ptrdiff_t count,
                       ptrdiff_t step, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a,
                       ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc)
{
    if (!ours(work, m, n, k)) {
        for (ptrdiff_t i = 0; i < count; i++) {
            frgi_product(work, 'N', trans_b, m, n, k, a + i * step, lda, b, ldb, c + i * step, ldc);
        }
        return;
    }
    const target t = {
        .m = m, .n = n, .k = k, .weight = 1, .c = c, .ldc = ldc, .count = count, .step = step};
    multiply(work, &t, &(operand){a, lda, m, k, true, false},
             &(operand){b, ldb, n, k, trans_b == 'T', false});
}

void frgi_product_symmetric(const frgi_product_workspace *work, ptrdiff_t m, ptrdiff_t n,
                            const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c,
                            ptrdiff_t ldc)
{
    if (!ours(work, m, n, m)) {
        frgi_ssymm((int)m, (int)n, a, (int)lda, b, (int)ldb, c, (int)ldc);
        return;
    }
    const target t = {.m = m, .n = n, .k = m, .weight = 1, .c = c, .ldc = ldc, .count = 1};
    multiply(work, &t, &(operand){a, lda, m, m, false, true},
             &(operand){b, ldb, n, m, false, false});
}

void frgi_product_square(const frgi_product_workspace *work, char trans, ptrdiff_t n, ptrdiff_t k,
                         float weight, const float *a, ptrdiff_t lda, float past, float *c,
                         ptrdiff_t ldc)
{
    if (work->way != PRODUCT_TILES || !ours(work, n, n, k)) {
        frgi_ssyrk(trans, (int)n, (int)k, weight, a, (int)lda, past, c, (int)ldc);
        return;
    }
    const target t = {n, n, k, past, weight, true, c, ldc, 1, 0};
    const operand x = {a, lda, n, k, trans == 'N', false};
    multiply(work, &t, &x, &x);
}
