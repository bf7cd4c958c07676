/* gw_build_cpu.c - exponents from costs and from factors of costs for one CPU level; the contract
 * is in gw_build.h.
 *
 *     cross_ij = scale sum_r left_ir right_jr + 2 mean_row_i mean_column_j
 *     x_ij = (1 - keep) (k ((1 - theta) cross_ij - theta linear_ij) - row_i - column_j)
 *            + keep (x_ij of the last step without its potentials, at this k) + H0_i + G0_j
 *
 * A panel of 48 columns of the right factor is read once for all rows of a fill.  Products are of
 * floats, of pairs of integers of 16 bits (sums of 16 of them are exact), or on the CPU's tiles
 * (gw_tiles.c).
 *
 * Compiled once per level with -DISA=plain, v3, v4.
 */
#include "core/denormals.h"
#include "core/lanes.h"
#include "gw/gw_build.h"
#include "gw/gw_tiles.h"
#include "linalg/elementary.h"

/* ---- exponents from costs -------------------------------------------------------------------- */

static void from_costs(const frgi_sweep *s, int64_t i, const float *costs, float k, float *out)
{
    const float h = s->base.h[i];
    ptrdiff_t j = 0;
    for (; j + FLOATS <= s->m; j += FLOATS) {
        lanes_put(out + j, (lanes_at(s->base.g + j) + h) - k * lanes_at(costs + j));
    }
    for (; j < s->m; j++) {
        out[j] = (s->base.g[j] + h) - k * costs[j];
    }
    for (; j < s->ld; j++) {
        out[j] = 0;
    }
}

/* ---- exponents from factors ------------------------------------------------------------------ */

#if defined(__AVX512F__)
enum { TILE_ROWS = 8, TILE_VECTORS = 3 };
#else
enum { TILE_ROWS = 4, TILE_VECTORS = 2 };
#endif

#define EACH_OF_TILE                                                                               \
    _Pragma("GCC unroll 8") for (int i = 0; i < TILE_ROWS; i++)                                    \
        _Pragma("GCC unroll 3") for (int v = 0; v < TILE_VECTORS; v++)

/** out <- the cross terms of TILE_ROWS rows and TILE_VECTORS vectors of columns. */
INLINE void tile_product(int64_t rank, const float *left, const float *right,
                         lanes out[TILE_ROWS][TILE_VECTORS])
{
    lanes sum[TILE_ROWS][TILE_VECTORS];
    EACH_OF_TILE sum[i][v] = lanes_all(0);
    for (int64_t r = 0; r < rank; r++) {
        lanes b[TILE_VECTORS];
#pragma GCC unroll 3
        for (int v = 0; v < TILE_VECTORS; v++) {
            b[v] = lanes_at(right + r * FRGI_PANEL + v * FLOATS);
        }
        EACH_OF_TILE sum[i][v] += left[r * FRGI_GROUP + i] * b[v];
    }
    EACH_OF_TILE out[i][v] = sum[i][v];
}

/** The same of pairs of integers: 16 products are summed as integers, their sums as floats. */
INLINE void pair_product(int64_t pairs, const int32_t *left, const int32_t *right,
                         lanes out[TILE_ROWS][TILE_VECTORS])
{
    enum { AT_ONCE = 8 };
    EACH_OF_TILE out[i][v] = lanes_all(0);
    for (int64_t first = 0; first < pairs; first += AT_ONCE) {
        const int64_t last = first + AT_ONCE < pairs ? first + AT_ONCE : pairs;
        lane_mask sum[TILE_ROWS][TILE_VECTORS];
        EACH_OF_TILE sum[i][v] = (lane_mask){0};
        for (int64_t r = first; r < last; r++) {
            lane_mask b[TILE_VECTORS];
#pragma GCC unroll 3
            for (int v = 0; v < TILE_VECTORS; v++) {
                memcpy(&b[v], right + r * FRGI_PANEL + v * FLOATS, sizeof b[v]);
            }
            EACH_OF_TILE sum[i][v] += lanes_pairs((lane_mask){0} + left[r * FRGI_GROUP + i], b[v]);
        }
        EACH_OF_TILE out[i][v] += __builtin_convertvector(sum[i][v], lanes);
    }
}

/** What the exponents of a tile are made of: x = scale cross + share past costs + H0 + G0, and more
 *  where the cost has more. */
typedef struct {
    float keep; /* share of the past costs */
    float past; /* and what their exponents are multiplied by; 0: none */
    float k, of_products, scale;
    bool plain; /* no more than that */
} frgi_mix;

/** The exponents of a tile at row i and column j of the problem, to `at` and ld apart. */
INLINE void put_tile(const frgi_sweep *s, const frgi_mix *mix, bool past, bool means, int64_t i,
                     ptrdiff_t j, lanes sum[TILE_ROWS][TILE_VECTORS], float *at)
{
    const frgi_factors *const f = s->x.source;
    const float *const before = past ? f->past + i * s->ld + j : NULL;
#pragma GCC unroll 8
    for (int r = 0; r < TILE_ROWS; r++) {
        const float h = s->base.h[i + r] - (past ? mix->past * s->base.past_h[i + r] : 0);
        const float mean = means ? 2 * mix->k * f->mean_row[i + r] : 0;
#pragma GCC unroll 3
        for (int v = 0; v < TILE_VECTORS; v++) {
            const ptrdiff_t c = v * FLOATS;
            lanes base = lanes_at(s->base.g + j + c) + h;
            if (means) {
                base += mean * lanes_at(f->mean_column + j + c);
            }
            if (past) {
                base += mix->past *
                        (lanes_at(before + r * s->ld + c) - lanes_at(s->base.past_g + j + c));
            }
            lanes_put(at + r * s->ld + c, sum[r][v] * mix->scale + base);
        }
    }
}

/** The same with a linear cost or terms of rows and columns. */
static void put_mixed_tile(const frgi_sweep *s, const frgi_mix *mix, int64_t i0, ptrdiff_t j0,
                           lanes sum[TILE_ROWS][TILE_VECTORS], float *to)
{
    const frgi_factors *const f = s->x.source;
    for (int64_t i = i0; i < i0 + TILE_ROWS; i++) {
        for (int v = 0; v < TILE_VECTORS; v++) {
            const ptrdiff_t j = j0 + v * FLOATS, at = i * s->ld + j;
            lanes x = mix->of_products * sum[i - i0][v];
            if (f->mean_row) {
                x += 2 * f->mean_row[i] * lanes_at(f->mean_column + j);
            }
            if (f->linear) {
                x = (1 - f->theta) * x - f->theta * lanes_at(f->linear + at);
            }
            lanes base = lanes_at(s->base.g + j) + s->base.h[i];
            if (f->row) {
                base -= (1 - mix->keep) * (lanes_at(f->column + j) + f->row[i]);
            }
            if (mix->past > 0) {
                const lanes gone = lanes_at(s->base.past_g + j) + s->base.past_h[i];
                base += mix->past * (lanes_at(f->past + at) - gone);
            }
            lanes_put(to + (i - i0) * s->ld + v * FLOATS, x * mix->k + base);
        }
    }
}

/** The exponents of a tile, `to` being where row i0 and column j0 of what is built lie. */
INLINE void finish_tile(const frgi_sweep *s, const frgi_mix *mix, int64_t i, ptrdiff_t j,
                        lanes sum[TILE_ROWS][TILE_VECTORS], float *to)
{
    const bool means = ((const frgi_factors *)s->x.source)->mean_row != NULL;
    if (!mix->plain) {
        put_mixed_tile(s, mix, i, j, sum, to);
    } else if (mix->past > 0) {
        put_tile(s, mix, true, means, i, j, sum, to);
    } else {
        put_tile(s, mix, false, means, i, j, sum, to);
    }
}

/** Lines that are read or written last. */
INLINE void ask_for_tile(const float *to, ptrdiff_t ld, int lines)
{
    for (int r = 0; r < lines; r++) {
        __builtin_prefetch(to + r * ld, 1);
        __builtin_prefetch(to + r * ld + (TILE_VECTORS - 1) * FLOATS, 1);
    }
}

/** Rows i0 .. i1-1, a panel of the right factor after the other. */
static void build_rows(const frgi_sweep *s, const frgi_mix *mix, int64_t rank, int64_t i0,
                       int64_t i1, float *out)
{
    const frgi_factors *const f = s->x.source;
    const ptrdiff_t ld = s->ld;
    const int64_t pairs = (f->rank + 1) / 2;
    for (ptrdiff_t panel = 0; panel < ld; panel += FRGI_PANEL) {
        for (int64_t i = i0; i < i1; i += TILE_ROWS) {
            const int64_t group = i / FRGI_GROUP * FRGI_GROUP, within = i % FRGI_GROUP;
            for (int c = 0; c < FRGI_PANEL; c += FLOATS * TILE_VECTORS) {
                float *const to = out + (i - i0) * ld + panel + c;
                ask_for_tile(to, ld, TILE_ROWS);
                lanes sum[TILE_ROWS][TILE_VECTORS];
                if (f->packed == FRGI_AS_WHOLE) {
                    pair_product((rank + 1) / 2, (const int32_t *)f->left + group * pairs + within,
                                 (const int32_t *)f->right + panel * pairs + c, sum);
                } else {
                    tile_product(rank, (const float *)f->left + group * f->rank + within,
                                 (const float *)f->right + panel * f->rank + c, sum);
                }
                finish_tile(s, mix, i, panel + c, sum, to);
            }
        }
    }
}

/** Products of a block of rows and a panel, waiting. */
typedef struct {
    int64_t i;
    ptrdiff_t panel;
    const float *sums;
    float *to;
} tile_block;

static void finish_block(const frgi_sweep *s, const frgi_mix *mix, const tile_block *b, int lines)
{
    for (int i0 = 0; i0 < lines; i0 += TILE_ROWS) {
        for (int c = 0; c < FRGI_PANEL; c += FLOATS * TILE_VECTORS) {
            lanes sum[TILE_ROWS][TILE_VECTORS];
            EACH_OF_TILE sum[i][v] = lanes_at(b->sums + (i0 + i) * FRGI_PANEL + c + v * FLOATS);
            finish_tile(s, mix, b->i + i0, b->panel + c, sum, b->to + i0 * s->ld + c);
        }
    }
}

/** The same on the CPU's tiles.  A block's exponents are made while the next is multiplied: just
 *  stored, its products would have to be waited for. */
static void build_on_tiles(const frgi_sweep *s, const frgi_mix *mix, int64_t rank, int64_t i0,
                           int64_t i1, int lines, float *out)
{
    const frgi_factors *const f = s->x.source;
    _Alignas(64) float sums[2][FRGI_BLOCK_ROWS * FRGI_PANEL];
    tile_block last = {0};
    int side = 0;
    if (i0 == i1) {
        return;
    }
    memset(sums, 0, sizeof sums);
    frgi_tiles_open(lines);
    for (ptrdiff_t panel = 0; panel < s->ld; panel += FRGI_PANEL) {
        for (int64_t i = i0; i < i1; i += lines, side ^= 1) {
            const tile_block now = {i, panel, sums[side], out + (i - i0) * s->ld + panel};
            ask_for_tile(now.to, s->ld, lines);
            if (rank > 0) {
                frgi_tiles_block(f->left, i, f->right, panel, rank, sums[side]);
            }
            if (last.sums) {
                finish_block(s, mix, &last, lines);
            }
            last = now;
        }
    }
    finish_block(s, mix, &last, lines);
    frgi_tiles_close();
}

static void build(const frgi_sweep *s, int64_t i0, int64_t groups, void *out)
{
    const unsigned mode = frgi_flush_denormals();
    const frgi_factors *const f = s->x.source;
    const float keep = f->past ? f->keep : 0, unit = f->packed == FRGI_AS_FLOATS ? 1 : f->scale;
    const frgi_mix mix = {.keep = keep,
                          .past =
                              f->past ? (float)((double)keep * (double)f->k / s->base.past_k) : 0,
                          .k = (1 - keep) * f->k,
                          .of_products = unit,
                          .scale = (1 - keep) * f->k * unit,
                          .plain = !f->linear && !f->row};
    const int64_t rank = keep < 1 ? f->rank : 0, i1 = i0 + groups * FRGI_GROUP;
    if (f->packed == FRGI_AS_TILES) {
        const int64_t whole = i0 + (i1 - i0) / FRGI_BLOCK_ROWS * FRGI_BLOCK_ROWS;
        build_on_tiles(s, &mix, rank, i0, whole, FRGI_BLOCK_ROWS, out);
        build_on_tiles(s, &mix, rank, whole, i1, FRGI_GROUP, (float *)out + (whole - i0) * s->ld);
    } else {
        build_rows(s, &mix, rank, i0, i1, out);
    }
    frgi_restore_denormals(mode);
}

static void pack(const float *rows, int64_t stride, int64_t rank, int64_t n, int width, float scale,
                 float *out, int64_t first, int64_t last)
{
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t i0 = panel * width;
        const int64_t filled = n - i0 < width ? (n > i0 ? n - i0 : 0) : width;
        for (int64_t r = 0; r < rank; r++) {
            float *const to = out + (panel * rank + r) * width;
            for (int64_t i = 0; i < filled; i++) {
                to[i] = scale * rows[r * stride + i0 + i];
            }
            for (int64_t i = filled; i < width; i++) {
                to[i] = 0;
            }
        }
    }
}

/** The low bits of the result are x / step to the nearest, |x / step| < 2^22. */
INLINE uint32_t whole(float x, float inverse)
{
    return (uint32_t)frgi_bits_f32(x * inverse + 0x1.8p23f);
}

static void pack_pairs(const float *rows, int64_t stride, int64_t rank, int64_t n, int width,
                       float step, int32_t *out, int64_t first, int64_t last)
{
    const int64_t pairs = (rank + 1) / 2;
    const float inverse = 1 / step;
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t i0 = panel * width;
        const int64_t filled = n - i0 < width ? (n > i0 ? n - i0 : 0) : width;
        for (int64_t r = 0; r < pairs; r++) {
            const bool both = 2 * r + 1 < rank;
            const float *const even = rows + 2 * r * stride + i0, *const odd = even + both * stride;
            const float odd_inverse = both ? inverse : 0;
            int32_t *const to = out + (panel * pairs + r) * width;
            for (int64_t i = 0; i < filled; i++) {
                to[i] = (int32_t)((whole(even[i], inverse) & 0xffff) | whole(odd[i], odd_inverse)
                                                                           << 16);
            }
            for (int64_t i = filled; i < width; i++) {
                to[i] = 0;
            }
        }
    }
}

static float largest(const float *x, int64_t n)
{
    lanes most = {0};
    float top = 0;
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) {
        most = lanes_larger(most, lanes_larger(lanes_at(x + i), -lanes_at(x + i)));
    }
    for (; i < n; i++) {
        const float size = x[i] < 0 ? -x[i] : x[i];
        top = size > top ? size : top;
    }
    for (int l = 0; l < FLOATS; l++) {
        top = most[l] > top ? most[l] : top;
    }
    return top;
}

#pragma GCC visibility push(hidden)
extern const frgi_build_ops CAT(frgi_build_ops, ISA);
#pragma GCC visibility pop
const frgi_build_ops CAT(frgi_build_ops,
                         ISA) = {.from_costs = from_costs,
                                 .build = build,
                                 .prefers = FLOATS < 16 ? FRGI_AS_WHOLE : FRGI_AS_FLOATS,
                                 .pack_pairs = pack_pairs,
                                 .largest = largest,
                                 .pack = pack};
