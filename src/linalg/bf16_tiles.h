/* bf16_tiles.h - the tiles of x86 (AMX) as a kernel for single precision: a 32 x 32 block of C from
 * packed panels.
 *
 * A float is the sum of three bfloat16, x = hi + mid + lo, each rounded to nearest: |mid| <= 2^-8
 * |x|, |lo| <= 2^-16 |x|. Of the nine products of two such sums six are formed,
 *
 *     lo hi + mid hi + mid mid + hi mid + hi lo + hi hi,
 *
 * the rest is below 2^-23 |a b| and of either sign, 2^-26 as a rule.  Small products come first,
 * while the sums are 2^-8 of what they become: where all of them do (not `together`), their
 * roundings do not count, and as many are left as in a loop of fused multiply-adds; together with
 * hi hi, piece after piece, saves loads where k is short.
 *
 * A panel is 16 rows (or columns) of C with all its k, in pieces of 32 of k: tiles hi, mid and lo,
 * 1 KB each.  A word of a tile pairs k with k + 16.  Tiles of rows have a line for each pair, those
 * of columns one for each column.
 *
 * Dangers: numbers below 2^-126 count as zero, also as terms of larger ones; an infinity becomes
 * NaN.  The tiles' shape belongs to the thread: between bf16_open() and bf16_close() nobody else
 * may set it. */
#ifndef FRGI_BF16_TILES_H
#define FRGI_BF16_TILES_H

enum {
    BF16_TILE = 16,    /* rows of a tile */
    BF16_DEPTH = 32,   /* of k in a tile */
    BF16_TERMS = 3,    /* hi, mid, lo */
    BF16_BYTES = 1024, /* of a tile */
    BF16_BLOCK = 32,   /* of C in registers, each way */
};

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ON_TILES     __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16")))
#define TILES_INLINE ON_TILES static inline __attribute__((always_inline))

/** x to the nearest bfloat16, as a float. */
TILES_INLINE __m512i bf16_nearest(__m512 x)
{
    const __m512i half = _mm512_set1_epi32(0x8000), keep = _mm512_set1_epi32((int)0xffff0000);
    return _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), keep);
}

/** The next terms of x and y, and what is left of them. */
TILES_INLINE __m512i bf16_split(__m512 *x, __m512 *y)
{
    const __m512i p = bf16_nearest(*x), q = bf16_nearest(*y);
    *x = _mm512_sub_ps(*x, _mm512_castsi512_ps(p));
    *y = _mm512_sub_ps(*y, _mm512_castsi512_ps(q));
    return _mm512_or_si512(_mm512_srli_epi32(p, 16), q);
}

/** The last terms: what is left after two has eight bits, but where it is below 2^-126. */
TILES_INLINE __m512i bf16_split_last(__m512 x, __m512 y)
{
    const __m512i keep = _mm512_set1_epi32((int)0xffff0000);
    return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(x), 16),
                           _mm512_and_si512(_mm512_castps_si512(y), keep));
}

/** 16 x 16 words: by pairs, fours within quarters, then the quarters. */
TILES_INLINE void bf16_transpose(__m512i v[BF16_TILE])
{
    __m512i t[BF16_TILE];
#pragma GCC unroll 8
    for (int r = 0; r < BF16_TILE; r += 2) {
        t[r] = _mm512_unpacklo_epi32(v[r], v[r + 1]);
        t[r + 1] = _mm512_unpackhi_epi32(v[r], v[r + 1]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < BF16_TILE; r += 4) {
        for (int h = 0; h < 2; h++) {
            v[r + 2 * h] = _mm512_unpacklo_epi64(t[r + h], t[r + h + 2]);
            v[r + 2 * h + 1] = _mm512_unpackhi_epi64(t[r + h], t[r + h + 2]);
        }
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        const __m512i a = _mm512_shuffle_i32x4(v[c], v[c + 4], 0x88);
        const __m512i b = _mm512_shuffle_i32x4(v[c], v[c + 4], 0xdd);
        const __m512i d = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0x88);
        const __m512i e = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0xdd);
        t[c] = _mm512_shuffle_i32x4(a, d, 0x88);
        t[c + 8] = _mm512_shuffle_i32x4(a, d, 0xdd);
        t[c + 4] = _mm512_shuffle_i32x4(b, e, 0x88);
        t[c + 12] = _mm512_shuffle_i32x4(b, e, 0xdd);
    }
    for (int r = 0; r < BF16_TILE; r++) {
        v[r] = t[r];
    }
}

/** Eight tiles of so many lines of 64 bytes. */
ON_TILES static inline void bf16_open_lines(const unsigned char lines[8])
{
    struct {
        unsigned char palette, start, reserved[14];
        uint16_t bytes[16];
        unsigned char lines[16];
    } shape = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shape.bytes[i] = 64;
        shape.lines[i] = lines[i];
    }
    __asm__ volatile("" ::"r"(&shape) : "memory"); /* the compiler sees eight of the bytes read */
    _tile_loadconfig(&shape);
}

ON_TILES static inline void bf16_open(void)
{
    bf16_open_lines((const unsigned char[8]){16, 16, 16, 16, 16, 16, 16, 16});
}

ON_TILES static inline void bf16_close(void)
{
    _tile_release();
}

#define LOAD_COLUMNS(part)                                                                         \
    _tile_loadd(4, c0 + at + (part)*BF16_BYTES, 64);                                               \
    _tile_loadd(5, c1 + at + (part)*BF16_BYTES, 64)
#define LOAD_ROWS(part)                                                                            \
    _tile_loadd(6, r0 + at + (part)*BF16_BYTES, 64);                                               \
    _tile_loadd(7, r1 + at + (part)*BF16_BYTES, 64)
#define MULTIPLY                                                                                   \
    _tile_dpbf16ps(0, 4, 6);                                                                       \
    _tile_dpbf16ps(1, 4, 7);                                                                       \
    _tile_dpbf16ps(2, 5, 6);                                                                       \
    _tile_dpbf16ps(3, 5, 7)

/** The sums that follow start at zero. */
TILES_INLINE void bf16_start(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/** Or at a block whose columns are `ld` apart. */
TILES_INLINE void bf16_load(const float *block, ptrdiff_t ld)
{
    const ptrdiff_t stride = ld * (ptrdiff_t)sizeof *block;
    __asm__ volatile("" ::: "memory"); /* what was written is in memory */
    _tile_loadd(0, block, stride);
    _tile_loadd(1, block + BF16_TILE, stride);
    _tile_loadd(2, block + BF16_TILE * ld, stride);
    _tile_loadd(3, block + BF16_TILE * (ld + 1), stride);
}

TILES_INLINE void bf16_store(float *block, ptrdiff_t ld)
{
    const ptrdiff_t stride = ld * (ptrdiff_t)sizeof *block;
    _tile_stored(0, block, stride);
    _tile_stored(1, block + BF16_TILE, stride);
    _tile_stored(2, block + BF16_TILE * ld, stride);
    _tile_stored(3, block + BF16_TILE * (ld + 1), stride);
    __asm__ volatile("" ::: "memory");
}

/** The sums grow by sum_k of 32 columns and 32 rows, two panels of each; pieces: of 32 of k.
 *  `together` is a constant at every call. */
TILES_INLINE void bf16_add(ptrdiff_t pieces, bool together, const unsigned char *c0,
                           const unsigned char *c1, const unsigned char *r0,
                           const unsigned char *r1)
{
    enum { HI, MID, LO };
    const ptrdiff_t piece = BF16_TERMS * BF16_BYTES, end = pieces * piece;
    __asm__ volatile("" ::: "memory"); /* what was packed is in memory */
    for (ptrdiff_t at = 0; at < end; at += piece) {
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
        if (together) {
            LOAD_ROWS(HI);
            MULTIPLY;
        }
    }
    for (ptrdiff_t at = together ? end : 0; at < end; at += piece) {
        LOAD_COLUMNS(HI);
        LOAD_ROWS(HI);
        MULTIPLY;
    }
}

/** sums[32 j + i] <- sum_k of 32 columns j and 32 rows i. */
TILES_INLINE void bf16_block(ptrdiff_t pieces, bool together, const unsigned char *c0,
                             const unsigned char *c1, const unsigned char *r0,
                             const unsigned char *r1, float *sums)
{
    bf16_start();
    bf16_add(pieces, together, c0, c1, r0, r1);
    bf16_store(sums, BF16_BLOCK);
}

#undef LOAD_COLUMNS
#undef LOAD_ROWS
#undef MULTIPLY
#endif
#endif
