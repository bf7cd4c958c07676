/* spd_tiles.c - the update of the symmetric matrix in float32 on the CPU's tiles (AMX), see
 * linalg/bf16_tiles.h.
 *
 * The packed panel of a chunk is split into bfloat16 once, as rows and as columns of C, and then
 * read by all updates of the step: 12 bytes an element beside 4.  One core multiplies at 490
 * GFLOP/s instead of 140.
 *
 * Each entry's sum runs over k in the same order, whatever the chunk and the thread. */
#include "linalg/bf16_tiles.h"
#include "linalg/spd_ops.h"

#if defined(__x86_64__)

static ptrdiff_t pieces_of(ptrdiff_t k)
{
    return (k + BF16_DEPTH - 1) / BF16_DEPTH;
}

static ptrdiff_t panel_bytes(ptrdiff_t k)
{
    return pieces_of(k) * BF16_TERMS * BF16_BYTES;
}

size_t frgi_spd_split_bytes(ptrdiff_t rows, ptrdiff_t k)
{
    return (size_t)(rows / BF16_TILE * panel_bytes(k));
}

/** 16 rows by 32 of k: v of k, w of k + 16. */
TILES_INLINE void split_piece(const float *v, const float *w, unsigned char *rows,
                              unsigned char *columns)
{
    __m512 x[BF16_TILE], y[BF16_TILE];
    for (int i = 0; i < BF16_TILE; i++) {
        x[i] = _mm512_load_ps(v + i * BF16_TILE);
        y[i] = w ? _mm512_load_ps(w + i * BF16_TILE) : _mm512_setzero_ps();
    }
    for (ptrdiff_t term = 0; term < BF16_TERMS; term++) {
        __m512i words[BF16_TILE];
        for (int i = 0; i < BF16_TILE; i++) {
            words[i] = bf16_split(&x[i], &y[i]);
            _mm512_store_si512(rows + term * BF16_BYTES + i * 64, words[i]);
        }
        bf16_transpose(words);
        for (int i = 0; i < BF16_TILE; i++)
            _mm512_store_si512(columns + term * BF16_BYTES + i * 64, words[i]);
    }
}

ON_TILES void frgi_spd_split(ptrdiff_t k, ptrdiff_t rows, const float *panel,
                             unsigned char *as_rows, unsigned char *as_columns)
{
    for (ptrdiff_t r = 0; r < rows; r += BF16_TILE, panel += k * BF16_TILE) {
        for (ptrdiff_t kk = 0; kk < k; kk += BF16_DEPTH) {
            const float *const v = panel + kk * BF16_TILE;
            split_piece(v, kk + BF16_TILE < k ? v + BF16_TILE * BF16_TILE : NULL, as_rows,
                        as_columns);
            as_rows += BF16_TERMS * BF16_BYTES;
            as_columns += BF16_TERMS * BF16_BYTES;
        }
    }
}

/** A block of c and the sums that it changes by. */
typedef struct {
    ptrdiff_t rows, cols;
    float *c;
    const float *sums;
} change;

/** c -= or += sums, for whole groups of rows. */
TILES_INLINE void apply(int sign, const change *b, ptrdiff_t ld)
{
    for (ptrdiff_t j = 0; j < b->cols; j++) {
        for (ptrdiff_t i = 0; i < b->rows; i += BF16_TILE) {
            float *const to = b->c + i + j * ld;
            const __m512 s = _mm512_load_ps(b->sums + j * BF16_BLOCK + i), old = _mm512_load_ps(to);
            _mm512_store_ps(to, sign == SPD_MINUS ? _mm512_sub_ps(old, s) : _mm512_add_ps(old, s));
        }
    }
}

/** A block's sums are added while the tiles of the next are multiplied: just stored, they would
 *  have to be waited for. */
ON_TILES void frgi_spd_update_tiles(int sign, ptrdiff_t k, ptrdiff_t rows, const unsigned char *a,
                                    ptrdiff_t cols, const unsigned char *b, float *c, ptrdiff_t ld,
                                    ptrdiff_t below)
{
    _Alignas(64) float sums[2][BF16_BLOCK * BF16_BLOCK];
    const ptrdiff_t panel = panel_bytes(k), pieces = pieces_of(k);
    change last = {0};
    int side = 0;
    bf16_open();
    for (ptrdiff_t j = 0; j < cols; j += BF16_BLOCK) {
        const ptrdiff_t width = cols - j < BF16_BLOCK ? cols - j : BF16_BLOCK;
        const unsigned char *const bj = b + j / BF16_TILE * panel;
        const ptrdiff_t above = j - below, first = above > 0 ? above / BF16_BLOCK * BF16_BLOCK : 0;
        for (ptrdiff_t i = first; i < rows; i += BF16_BLOCK, side ^= 1) {
            const ptrdiff_t height = rows - i < BF16_BLOCK ? rows - i : BF16_BLOCK;
            const unsigned char *const ai = a + i / BF16_TILE * panel;
            /* where the block has one panel, it is computed twice and given once */
            bf16_block(pieces, false, bj, width > BF16_TILE ? bj + panel : bj, ai,
                       height > BF16_TILE ? ai + panel : ai, sums[side]);
            apply(sign, &last, ld);
            last = (change){height, width, c + i + j * ld, sums[side]};
            for (ptrdiff_t col = 0; col < width; col++) {
                __builtin_prefetch(last.c + col * ld, 1);
                __builtin_prefetch(last.c + col * ld + BF16_TILE, 1);
            }
        }
    }
    apply(sign, &last, ld);
    bf16_close();
}

#else /* never called: no context has tiles here */

size_t frgi_spd_split_bytes(ptrdiff_t rows, ptrdiff_t k)
{
    (void)rows, (void)k;
    return 0;
}

void frgi_spd_split(ptrdiff_t k, ptrdiff_t rows, const float *panel, unsigned char *as_rows,
                    unsigned char *as_columns)
{
    (void)k, (void)rows, (void)panel, (void)as_rows, (void)as_columns;
}

void frgi_spd_update_tiles(int sign, ptrdiff_t k, ptrdiff_t rows, const unsigned char *a,
                           ptrdiff_t cols, const unsigned char *b, float *c, ptrdiff_t ld,
                           ptrdiff_t below)
{
    (void)sign, (void)k, (void)rows, (void)a, (void)cols, (void)b, (void)c, (void)ld, (void)below;
}

#endif
