/* gw_tiles.c - products of two long factors on the CPU's tiles (AMX).
 *
 * A float is taken as the sum of two bfloat16, x = hi + lo + e with |lo| <= 2^-8 |x|, |e| <= 2^-17
 * |x|; of the products
 *
 *     lo hi + hi lo + hi hi
 *
 * are formed, what is left out is below 2^-15 |x y|, of either sign: half the terms of a product in
 * single precision (bf16_tiles.h), and its error is far below the noise of the sampled pairs
 * (way_to_pack in gw_level.c).  Three products at sixteen times the speed of fused multiply-adds.
 *
 *     left    a line of 64 bytes for each row, 32 of r and part: [row][r / 32][part][r % 32]
 *     right   tiles of 16 lines of 16 columns: [column / 16][r / 32][part][r % 16][column % 16], r
 *             beside r + 16
 *
 * Lines of the left factor are apart, so that a tile begins at any row.
 *
 * Limits: numbers below 2^-126 count as zero, infinities become NaN: factors come scaled to 1.
 */
#include "gw/gw_tiles.h"

#include "linalg/bf16_tiles.h"

#if defined(__x86_64__)

enum { PARTS = 2, LINE = 64 };

static ptrdiff_t pieces_of(int64_t rank)
{
    return (rank + BF16_DEPTH - 1) / BF16_DEPTH;
}

size_t frgi_tiles_bytes(int64_t count, int64_t rank)
{
    return (size_t)((count + BF16_TILE - 1) / BF16_TILE * pieces_of(rank) * PARTS * BF16_BYTES);
}

/** 16 points of row r, zeros beyond n and rank. */
TILES_INLINE __m512 load_points(const float *rows, int64_t n, int64_t rank, float scale, int64_t r,
                                int64_t i)
{
    const unsigned all = 0xffff;
    const __mmask16 lanes = (__mmask16)(r >= rank || i >= n ? 0
                                        : n - i < BF16_TILE ? all >> (BF16_TILE - (n - i))
                                                            : all);
    return _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, rows + r * n + i), _mm512_set1_ps(scale));
}

/** The parts of 16 points and 32 of r: words[part][r] of the points' lanes. */
TILES_INLINE void split(const float *rows, int64_t n, int64_t rank, float scale, int64_t r0,
                        int64_t i, __m512i words[PARTS][BF16_TILE])
{
    for (int r = 0; r < BF16_TILE; r++) {
        __m512 x = load_points(rows, n, rank, scale, r0 + r, i);
        __m512 y = load_points(rows, n, rank, scale, r0 + r + BF16_TILE, i);
        for (int part = 0; part < PARTS; part++) {
            words[part][r] = bf16_split(&x, &y);
        }
    }
}

ON_TILES void frgi_tiles_pack_left(const float *rows, int64_t n, int64_t rank, float scale,
                                   void *out, int64_t first, int64_t last)
{
    const ptrdiff_t pieces = pieces_of(rank), row = pieces * PARTS * LINE;
    for (int64_t tile = first; tile < last; tile++) {
        for (ptrdiff_t piece = 0; piece < pieces; piece++) {
            __m512i words[PARTS][BF16_TILE];
            split(rows, n, rank, scale, piece * BF16_DEPTH, tile * BF16_TILE, words);
            for (int part = 0; part < PARTS; part++) {
                char *const to =
                    (char *)out + tile * BF16_TILE * row + (piece * PARTS + part) * LINE;
                bf16_transpose(words[part]);
                for (int i = 0; i < BF16_TILE; i++) {
                    _mm512_storeu_si512(to + i * row, words[part][i]);
                }
            }
        }
    }
}

ON_TILES void frgi_tiles_pack_right(const float *rows, int64_t n, int64_t rank, float scale,
                                    void *out, int64_t first, int64_t last)
{
    const ptrdiff_t pieces = pieces_of(rank);
    for (int64_t tile = first; tile < last; tile++) {
        for (ptrdiff_t piece = 0; piece < pieces; piece++) {
            __m512i words[PARTS][BF16_TILE];
            char *const to = (char *)out + (tile * pieces + piece) * PARTS * BF16_BYTES;
            split(rows, n, rank, scale, piece * BF16_DEPTH, tile * BF16_TILE, words);
            for (int part = 0; part < PARTS; part++) {
                for (int r = 0; r < BF16_TILE; r++) {
                    _mm512_storeu_si512(to + part * BF16_BYTES + r * LINE, words[part][r]);
                }
            }
        }
    }
}

ON_TILES void frgi_tiles_open(int lines)
{
    const unsigned char n = (unsigned char)lines, all = BF16_TILE;
    bf16_open_lines((const unsigned char[8]){n, n, n, n, n, all, all, all});
}

ON_TILES void frgi_tiles_close(void)
{
    bf16_close();
}

/* Tiles 0, 1, 2: sums; 3, 4: both parts of the rows; 5, 6, 7: columns. */
#define FOR_ALL(what, rows)                                                                        \
    what(0, rows, 5);                                                                              \
    what(1, rows, 6);                                                                              \
    what(2, rows, 7)
#define LOAD_COLUMNS(part)                                                                         \
    _tile_loadd(5, b + (part)*BF16_BYTES, LINE);                                                   \
    _tile_loadd(6, b + (part)*BF16_BYTES + panel, LINE);                                           \
    _tile_loadd(7, b + (part)*BF16_BYTES + 2 * panel, LINE)

ON_TILES void frgi_tiles_block(const void *left, int64_t i, const void *right, int64_t j,
                               int64_t rank, float *sums)
{
    enum { HI, LO };
    const ptrdiff_t pieces = pieces_of(rank), row = pieces * PARTS * LINE;
    const ptrdiff_t panel = pieces * PARTS * BF16_BYTES;
    const char *a = (const char *)left + i * row, *b = (const char *)right + j / BF16_TILE * panel;
    __asm__ volatile("" ::: "memory"); /* what was packed is in memory */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    for (ptrdiff_t piece = 0; piece < pieces; piece++) {
        _tile_loadd(3, a + HI * LINE, row);
        _tile_loadd(4, a + LO * LINE, row);
        LOAD_COLUMNS(LO);
        FOR_ALL(_tile_dpbf16ps, 3);
        LOAD_COLUMNS(HI);
        FOR_ALL(_tile_dpbf16ps, 4);
        FOR_ALL(_tile_dpbf16ps, 3);
        a += PARTS * LINE;
        b += PARTS * BF16_BYTES;
    }
    const ptrdiff_t stride = FRGI_BLOCK_COLUMNS * (ptrdiff_t)sizeof *sums;
    _tile_stored(0, sums, stride);
    _tile_stored(1, sums + BF16_TILE, stride);
    _tile_stored(2, sums + 2 * BF16_TILE, stride);
    __asm__ volatile("" ::: "memory");
}

#else /* never called: no context has tiles here */

size_t frgi_tiles_bytes(int64_t count, int64_t rank)
{
    (void)count, (void)rank;
    return 0;
}

void frgi_tiles_pack_left(const float *rows, int64_t n, int64_t rank, float scale, void *out,
                          int64_t first, int64_t last)
{
    (void)rows, (void)n, (void)rank, (void)scale, (void)out, (void)first, (void)last;
}

void frgi_tiles_pack_right(const float *rows, int64_t n, int64_t rank, float scale, void *out,
                           int64_t first, int64_t last)
{
    (void)rows, (void)n, (void)rank, (void)scale, (void)out, (void)first, (void)last;
}

void frgi_tiles_open(int lines)
{
    (void)lines;
}

void frgi_tiles_close(void)
{
}

void frgi_tiles_block(const void *left, int64_t i, const void *right, int64_t j, int64_t rank,
                      float *sums)
{
    (void)left, (void)i, (void)right, (void)j, (void)rank, (void)sums;
}

#endif
