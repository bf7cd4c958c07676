/* spd.c - layout of the symmetric matrix: sizes, scratch, diagonals, copies between layouts.
 *
 * Sizes.  A pivot block of nb columns costs nb n^2 flop of products with its inverse, of n^3 in
 * all, and the update reads and writes the matrix once a block: nb grows with n from 32 to 96.
 * Tiles of 288 rows waste at most 144 n elements over n^2/2; one tile up to ONE_TILE rows, tiles of
 * 144 as long as 288 would be too few to share out (both are multiples of the blocks and of any
 * chunk).  Tile rows lie in one piece each, as threads have them: what a prefetcher reads on past
 * an end is seldom the other core's.  No column starts a multiple of 512 bytes after the last one:
 * such strides fall on few cache sets. */
#include "linalg/spd_run.h"

#include <math.h>
#include <string.h>

enum { ONE_TILE = 288, FINE_TILE_ROWS = 144, FINE_TILES_TO = 700, TILE_ROWS = 288 };
enum { CACHE_STRIDE = 512, FINE_CHUNKS_BELOW = 1500 };
/* Rows from which splitting for the CPU's tiles costs less than they gain. */
enum { TILES_FROM = 900 };

static ptrdiff_t round_up(ptrdiff_t n, ptrdiff_t to)
{
    return (n + to - 1) / to * to;
}

static frgi_spd_layout plan(ptrdiff_t n, frg_dtype dtype)
{
    const ptrdiff_t size = (ptrdiff_t)frg_sizeof(dtype), group = SPD_LINE / size;
    frgi_spd_layout s = {.dtype = dtype, .n = n, .padded = round_up(n > 0 ? n : 1, group)};
    s.block = n <= 72 ? 32 : n <= 280 ? (size == 8 ? 40 : 48) : n <= 700 ? 48 : 96;
    s.tile = s.padded <= ONE_TILE ? s.padded : n <= FINE_TILES_TO ? FINE_TILE_ROWS : TILE_ROWS;
    s.tiles = (s.padded + s.tile - 1) / s.tile;
    s.ld = s.tile * size % CACHE_STRIDE ? s.tile : s.tile + group;
    return s;
}

static ptrdiff_t elements(const frgi_spd_layout *s)
{
    return s->tiles * (s->tiles + 1) / 2 * s->ld * s->tile;
}

frgi_spd frgi_spd_place(ptrdiff_t n, frg_dtype dtype, void *elements, void *work,
                        const char *solver)
{
    return (frgi_spd){
        .layout = plan(n, dtype), .elements = elements, .work = work, .solver = solver};
}

void frgi_spd_reorder(frgi_spd *a, ptrdiff_t n, frg_dtype dtype)
{
    a->layout = plan(n, dtype);
}

size_t frgi_spd_bytes(ptrdiff_t n, frg_dtype dtype)
{
    const frgi_spd_layout s = plan(n, dtype);
    return frgi_mul((size_t)elements(&s), frg_sizeof(dtype));
}

void frgi_spd_clear(const frgi_spd *a)
{
    const size_t size = frg_sizeof(a->layout.dtype);
    memset(a->elements, 0, frgi_mul((size_t)elements(&a->layout), size));
}

/* ---- scratch ---- */

static const frgi_spd_ops *kernels(const frg_context *ctx, frg_dtype dtype)
{
    static const frgi_spd_ops *const levels[ISA_COUNT] = EACH_LEVEL(frgi_spd_ops);
    return &levels[frgi_context_isa(ctx)][dtype == FRG_F64 ? SPD_F64 : SPD_F32];
}

/** Rows of a chunk: all of a tile where one thread does them, so that few calls each have what
 *  fills the register tile; the register tile's where a step has little to share out, several
 *  tiles' elsewhere. */
static ptrdiff_t chunk_rows(const frgi_spd_layout *s, bool amx)
{
    const ptrdiff_t tile = 3 * SPD_LINE / (ptrdiff_t)frg_sizeof(s->dtype);
    return s->n < SPD_THREADS_FROM ? s->tile : s->n < FINE_CHUNKS_BELOW && !amx ? tile : 96;
}

static bool may_split(const frgi_spd_layout *s)
{
    return s->dtype == FRG_F32 && s->n >= TILES_FROM;
}

/** Chunks are smallest, and most, without AMX; the panels split for AMX are laid out in any case,
 *  so that the bytes do not depend on the machine. */
static frgi_spd_run *lay_out(frgi_arena *a, const frgi_spd_layout *s, int threads, bool amx)
{
    const size_t size = frg_sizeof(s->dtype),
                 square = frgi_mul((size_t)(s->block * s->block), size);
    const ptrdiff_t chunk = chunk_rows(s, amx), a_tile = (s->tile + chunk - 1) / chunk;
    frgi_spd_run *const r = TAKE(a, frgi_spd_run, 1);
    frgi_spd_run head = {.s = s, .size = size, .chunk = chunk, .chunks = a_tile * s->tiles};
    head.blocks = (s->padded + s->block - 1) / s->block;
    head.team.share = TAKE(a, frgi_team_share, threads);
    for (int i = 0; i < 2; i++) {
        head.panel[i] = frgi_take(a, frgi_mul((size_t)(s->padded * s->block), size));
        head.z[i] = frgi_take(a, square);
        head.t[i] = frgi_take(a, square);
    }
    head.scratch = frgi_take(a, frgi_mul((size_t)(s->block * SPD_INNER), size));
    head.rhs = frgi_take(a, frgi_mul((size_t)s->padded, size));
    head.solved = frgi_take(a, frgi_mul((size_t)s->padded, size));
    head.amx = amx;
    head.as_rows = frgi_take(a, may_split(s) ? frgi_spd_split_bytes(s->padded, s->block) : 0);
    head.as_columns = frgi_take(a, may_split(s) ? frgi_spd_split_bytes(s->padded, s->block) : 0);
    if (r)
        *r = head;
    return r;
}

size_t frgi_spd_work_bytes(ptrdiff_t n, frg_dtype dtype, int threads)
{
    const frgi_spd_layout s = plan(n, dtype);
    frgi_arena a = {0};
    lay_out(&a, &s, threads, false);
    return a.used;
}

frgi_spd_run *frgi_spd_begin(frg_context *ctx, const frgi_spd *a)
{
    const frgi_spd_layout *const s = &a->layout;
    frgi_arena arena = {.base = a->work, .bytes = SIZE_MAX};
    const bool amx = may_split(s) && frgi_context_tiles(ctx);
    frgi_spd_run *const r = lay_out(&arena, s, frgi_team_size(ctx, true), amx);
    r->ctx = ctx;
    r->ops = kernels(ctx, s->dtype);
    r->a = a->elements;
    r->progress = (frg_progress){.solver = a->solver, .residual = NAN, .target = NAN};
    return r;
}

void frgi_spd_go(frgi_spd_run *r, ptrdiff_t rows, void (*body)(void *run, int me))
{
    frgi_team_run(&r->team, r->team.share, frgi_team_size(r->ctx, r->s->n >= rows), body, r);
}

/* ---- diagonals and copies ---- */

void frgi_spd_diagonal(const frgi_spd *a, double *d)
{
    const frgi_spd_layout *const s = &a->layout;
    for (ptrdiff_t t = 0; t < s->tiles; t++) {
        const ptrdiff_t rows = frgi_spd_rows(s, t), at = frgi_spd_tile(s, t, t);
        double *const to = d + t * s->tile;
        for (ptrdiff_t i = 0; s->dtype == FRG_F64 && i < rows; i++)
            to[i] = ((const double *)a->elements)[at + i * (s->ld + 1)];
        for (ptrdiff_t i = 0; s->dtype == FRG_F32 && i < rows; i++)
            to[i] = (double)((const float *)a->elements)[at + i * (s->ld + 1)];
    }
}

void frgi_spd_set_diagonal(const frgi_spd *a, const double *d)
{
    const frgi_spd_layout *const s = &a->layout;
    for (ptrdiff_t t = 0; t < s->tiles; t++) {
        const ptrdiff_t rows = frgi_spd_rows(s, t), at = frgi_spd_tile(s, t, t);
        const double *const from = d + t * s->tile;
        for (ptrdiff_t i = 0; s->dtype == FRG_F64 && i < rows; i++)
            ((double *)a->elements)[at + i * (s->ld + 1)] = from[i];
        for (ptrdiff_t i = 0; s->dtype == FRG_F32 && i < rows; i++)
            ((float *)a->elements)[at + i * (s->ld + 1)] = (float)from[i];
    }
}

/** n elements of a column, within one tile of either matrix. */
static void convert_run(ptrdiff_t n, frg_dtype from, const void *restrict a, frg_dtype to,
                        void *restrict b)
{
    if (from == to) {
        memcpy(b, a, (size_t)n * frg_sizeof(from));
    } else if (from == FRG_F64) {
        for (ptrdiff_t i = 0; i < n; i++)
            ((float *)b)[i] = (float)((const double *)a)[i];
    } else {
        for (ptrdiff_t i = 0; i < n; i++)
            ((double *)b)[i] = (double)((const float *)a)[i];
    }
}

static ptrdiff_t left_in_tile(const frgi_spd_layout *s, ptrdiff_t i)
{
    const ptrdiff_t end = (i / s->tile + 1) * s->tile;
    return (end < s->n ? end : s->n) - i;
}

void frgi_spd_pad(const frgi_spd *a)
{
    const frgi_spd_layout *const s = &a->layout;
    const size_t size = frg_sizeof(s->dtype);
    for (ptrdiff_t j = 0; j < s->padded && s->padded > s->n; j++) {
        const ptrdiff_t from = s->n > j ? s->n : j;
        memset((char *)a->elements + (size_t)frgi_spd_at(s, from, j) * size, 0,
               (size_t)(s->padded - from) * size);
    }
    for (ptrdiff_t i = s->n; i < s->padded; i++) {
        const ptrdiff_t k = frgi_spd_at(s, i, i);
        if (s->dtype == FRG_F64)
            ((double *)a->elements)[k] = 1;
        else
            ((float *)a->elements)[k] = 1;
    }
}

void frgi_spd_convert(frg_context *ctx, const frgi_spd *a, const frgi_spd *b)
{
    const frgi_spd_layout *const from = &a->layout, *const to = &b->layout;
    const size_t size_a = frg_sizeof(from->dtype), size_b = frg_sizeof(to->dtype);
    const int threads = frgi_team_size(ctx, from->n > ONE_TILE);
#pragma omp parallel for num_threads(threads) schedule(static, 16)
    for (ptrdiff_t j = 0; j < from->n; j++) {
        for (ptrdiff_t i = j, n; i < from->n; i += n) {
            const ptrdiff_t one = left_in_tile(from, i), two = left_in_tile(to, i);
            n = one < two ? one : two;
            convert_run(n, from->dtype,
                        (const char *)a->elements + (size_t)frgi_spd_at(from, i, j) * size_a,
                        to->dtype, (char *)b->elements + (size_t)frgi_spd_at(to, i, j) * size_b);
        }
    }
    frgi_spd_pad(b);
}

/* ---- entries and columns ---- */

void frgi_spd_add(const frgi_spd *a, ptrdiff_t i, ptrdiff_t j, double v)
{
    const ptrdiff_t k = frgi_spd_at(&a->layout, i, j);
    if (a->layout.dtype == FRG_F64)
        ((double *)a->elements)[k] += v;
    else
        ((float *)a->elements)[k] = (float)((double)((float *)a->elements)[k] + v);
}

void frgi_spd_read_column(const frgi_spd *a, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end, double *v)
{
    const frg_dtype dtype = a->layout.dtype;
    for (ptrdiff_t i = from, n; i < end; i += n) {
        const ptrdiff_t behind = left_in_tile(&a->layout, i), at = frgi_spd_at(&a->layout, i, j);
        n = behind < end - i ? behind : end - i;
        convert_run(n, dtype, (const char *)a->elements + (size_t)at * frg_sizeof(dtype), FRG_F64,
                    v + i - from);
    }
}

void frgi_spd_write_column(const frgi_spd *a, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end,
                           const double *v)
{
    const frg_dtype dtype = a->layout.dtype;
    for (ptrdiff_t i = from, n; i < end; i += n) {
        const ptrdiff_t behind = left_in_tile(&a->layout, i), at = frgi_spd_at(&a->layout, i, j);
        n = behind < end - i ? behind : end - i;
        convert_run(n, FRG_F64, v + i - from, dtype,
                    (char *)a->elements + (size_t)at * frg_sizeof(dtype));
    }
}

frgi_spd_piece frgi_spd_piece_at(const frgi_spd *a, ptrdiff_t i, ptrdiff_t j)
{
    const frgi_spd_layout *const s = &a->layout;
    return (frgi_spd_piece){.at = (char *)a->elements +
                                  (size_t)frgi_spd_at(s, i, j) * frg_sizeof(s->dtype),
                            .ld = s->ld,
                            .rows = left_in_tile(s, i),
                            .columns = left_in_tile(s, j)};
}
