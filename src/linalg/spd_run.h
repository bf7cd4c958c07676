/* spd_run.h - what the drivers on the symmetric matrix share: kernels, scratch and the cutting into
 * tasks.
 *
 * Three kinds of tiles: storage tiles (spd.h), which names here mean; register tiles (spd_cpu.c);
 * the CPU's tiles (AMX, spd_tiles.c), `amx` here. */
#ifndef FRGI_SPD_RUN_H
#define FRGI_SPD_RUN_H

#include "linalg/spd.h"
#include "linalg/spd_ops.h"
#include "linalg/team.h"

#pragma GCC visibility push(hidden)

/* Rows from which a sweep is worth threads. */
enum { SPD_THREADS_FROM = 380 };

typedef struct {
    frgi_team team;
    frg_context *ctx;
    const frgi_spd_layout *s;
    const frgi_spd_ops *ops;
    char *a;
    size_t size;      /* bytes of an element */
    ptrdiff_t blocks; /* pivot blocks */
    ptrdiff_t chunk;  /* rows of a chunk, the piece of a tile row that is a task */

    char *panel[2];    /* padded x block, packed; of even and odd steps, as the next two are */
    char *z[2], *t[2]; /* inverses of pivot blocks */
    char *scratch;     /* block x 16 */
    char *rhs;         /* padded: the right-hand side that is solved for with the factor */
    char *solved;      /* padded: L^-T of it, summed over the rows of L^-1 */
    bool amx;          /* updates by the CPU's tiles: panels are split into the next two */
    unsigned char *as_rows, *as_columns;
    ptrdiff_t chunks; /* of rows, over all tile rows */

    /* what a driver keeps */
    frg_progress progress; /* solver and phase of it */
    frg_status status;
    frgi_spd_pivots *pivots;
    double *roots;       /* n: copies of the L_ii, where the inverse overwrites them; or NULL */
    const double *scale; /* n: w of a congruence */
    char *b;     /* factor and inverse: rhs, NULL without one; times: the product; congruence: B */
    ptrdiff_t q; /* columns of a solve or a product */
} frgi_spd_run;

/** Pivot block p: rows first .. end-1. */
typedef struct {
    ptrdiff_t p, first, end, k;
} frgi_spd_block;
static inline frgi_spd_block frgi_spd_block_at(const frgi_spd_run *r, ptrdiff_t p)
{
    const ptrdiff_t first = p * r->s->block, end = first + r->s->block;
    const ptrdiff_t last = end < r->s->padded ? end : r->s->padded;
    return (frgi_spd_block){p, first, last, last - first};
}
/** Entry (i, j), i's tile row not above j's. */
static inline char *frgi_spd_entry(const frgi_spd_run *r, ptrdiff_t i, ptrdiff_t j)
{
    return r->a + (size_t)frgi_spd_at(r->s, i, j) * r->size;
}
/** Row `row` of the packed panel of step p, which has k columns. */
static inline char *frgi_spd_panel(const frgi_spd_run *r, ptrdiff_t p, ptrdiff_t row, ptrdiff_t k)
{
    return r->panel[p & 1] + (size_t)(row * k) * r->size;
}
/** Chunk number u: its rows; n may be 0 past the end. */
static inline ptrdiff_t frgi_spd_chunk(const frgi_spd_run *r, ptrdiff_t u, ptrdiff_t *row)
{
    const ptrdiff_t a_tile = (r->s->tile + r->chunk - 1) / r->chunk;
    const ptrdiff_t tile = u / a_tile * r->s->tile, from = tile + u % a_tile * r->chunk;
    const ptrdiff_t tile_end = tile + r->s->tile < r->s->padded ? tile + r->s->tile : r->s->padded;
    const ptrdiff_t end = from + r->chunk < tile_end ? from + r->chunk : tile_end;
    *row = from;
    return end > from ? end - from : 0;
}

/** Lays the scratch out. */
frgi_spd_run *frgi_spd_begin(frg_context *ctx, const frgi_spd *a);
/** Runs body on the threads that are worth it from `rows` rows on. */
void frgi_spd_go(frgi_spd_run *r, ptrdiff_t rows, void (*body)(void *run, int me));

#pragma GCC visibility pop
#endif
