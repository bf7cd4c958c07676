/* spd_solve.c - triangular solves and products with a few columns.
 *
 * Columns are copied into the memory of the packed panel, `block` of them at a time at most, padded
 * with zero rows and to 1 or a multiple of 8 columns; pivot blocks go one after another, and below
 * (forward) or before (backward) them chunks of rows or columns are handed out.  Memory-bound:
 * n^2/2 elements are read a chunk of columns, twice by frgi_spd_times (rows by their owners, then
 * columns by theirs, so that no two write the same place). */
#include <string.h>

#include "linalg/spd_run.h"

enum { THREADS_FROM = 1500 };

static ptrdiff_t rounded(ptrdiff_t q)
{
    return q == 1 ? 1 : (q + SPD_COLUMNS - 1) / SPD_COLUMNS * SPD_COLUMNS;
}

static char *element(const frgi_spd_run *r, char *x, ptrdiff_t i)
{
    return x + (size_t)i * r->size;
}

/** Rows [from, to) of chunk u within [lo, hi). */
static bool chunk_in(const frgi_spd_run *r, ptrdiff_t u, ptrdiff_t lo, ptrdiff_t hi,
                     ptrdiff_t *from, ptrdiff_t *to)
{
    ptrdiff_t row, end = frgi_spd_chunk(r, u, &row);
    end += row;
    *from = row > lo ? row : lo;
    *to = end < hi ? end : hi;
    return *from < *to;
}

/** x_p <- L_pp^-1 x_p, then x_i -= L_ip x_p for i > p; p = 0, 1, ... */
static void forward_body(void *run, int me)
{
    frgi_spd_run *const r = run;
    const ptrdiff_t ld = r->s->ld, ldx = r->s->padded;
    for (ptrdiff_t p = 0; p < r->blocks; p++) {
        const frgi_spd_block b = frgi_spd_block_at(r, p);
        if (me == 0)
            r->ops->forward(b.k, frgi_spd_entry(r, b.first, b.first), ld, r->q,
                            element(r, r->panel[0], b.first), ldx);
        frgi_team_offer_equal(&r->team, me, r->chunks);
        frgi_team_meet(&r->team);
        for (ptrdiff_t u, from, to; (u = frgi_team_take(&r->team, me)) >= 0;) {
            if (chunk_in(r, u, b.end, r->s->padded, &from, &to))
                r->ops->times[SPD_MINUS](to - from, b.k, frgi_spd_entry(r, from, b.first), ld, r->q,
                                         element(r, r->panel[0], b.first), ldx,
                                         element(r, r->panel[0], from), ldx);
        }
        frgi_team_meet(&r->team);
    }
}

/** x_p <- L_pp^-T x_p, then x_j -= L_pj' x_p for j < p; p from the last on. */
static void backward_body(void *run, int me)
{
    frgi_spd_run *const r = run;
    const ptrdiff_t ld = r->s->ld, ldx = r->s->padded;
    for (ptrdiff_t p = r->blocks - 1; p >= 0; p--) {
        const frgi_spd_block b = frgi_spd_block_at(r, p);
        if (me == 0)
            r->ops->backward(b.k, frgi_spd_entry(r, b.first, b.first), ld, r->q,
                             element(r, r->panel[0], b.first), ldx);
        frgi_team_offer_equal(&r->team, me, r->chunks);
        frgi_team_meet(&r->team);
        for (ptrdiff_t u, from, to; (u = frgi_team_take(&r->team, me)) >= 0;) {
            if (chunk_in(r, u, 0, b.first, &from, &to))
                r->ops->times_transposed[SPD_MINUS](
                    b.k, to - from, frgi_spd_entry(r, b.first, from), ld, r->q,
                    element(r, r->panel[0], b.first), ldx, element(r, r->panel[0], from), ldx);
        }
        frgi_team_meet(&r->team);
    }
}

/** y_i += A_ii x_i + sum_{j < i} A_ij x_j for the rows i of a chunk. */
static void times_rows(frgi_spd_run *r, ptrdiff_t from, ptrdiff_t to)
{
    const ptrdiff_t ld = r->s->ld, ldx = r->s->padded, tile = r->s->tile;
    char *const y = element(r, r->b, from);
    for (ptrdiff_t c = 0; c < from; c = c / tile * tile + tile) {
        const ptrdiff_t end = c / tile * tile + tile < from ? c / tile * tile + tile : from;
        r->ops->times[SPD_PLUS](to - from, end - c, frgi_spd_entry(r, from, c), ld, r->q,
                                element(r, r->panel[0], c), ldx, y, ldx);
    }
    r->ops->times_symmetric(to - from, frgi_spd_entry(r, from, from), ld, r->q,
                            element(r, r->panel[0], from), ldx, y, ldx);
}

/** y_j += sum_{i > j} A_ij' x_i for the columns j of a chunk. */
static void times_columns(frgi_spd_run *r, ptrdiff_t from, ptrdiff_t to)
{
    const ptrdiff_t ld = r->s->ld, ldx = r->s->padded, tile = r->s->tile;
    for (ptrdiff_t c = to, end; c < r->s->padded; c = end) {
        end = c / tile * tile + tile < r->s->padded ? c / tile * tile + tile : r->s->padded;
        r->ops->times_transposed[SPD_PLUS](end - c, to - from, frgi_spd_entry(r, c, from), ld, r->q,
                                           element(r, r->panel[0], c), ldx, element(r, r->b, from),
                                           ldx);
    }
}

static void times_body(void *run, int me)
{
    frgi_spd_run *const r = run;
    for (int transposed = 0; transposed < 2; transposed++) {
        frgi_team_offer_equal(&r->team, me, r->chunks);
        frgi_team_meet(&r->team);
        for (ptrdiff_t u, from, to; (u = frgi_team_take(&r->team, me)) >= 0;) {
            if (chunk_in(r, u, 0, r->s->padded, &from, &to))
                (transposed ? times_columns : times_rows)(r, from, to);
        }
        frgi_team_meet(&r->team);
    }
}

/* ---- columns in and out of the padded memory ---- */

static void take_columns(const frgi_spd_run *r, ptrdiff_t q, const char *b, ptrdiff_t ldb)
{
    const ptrdiff_t n = r->s->n, padded = r->s->padded;
    for (ptrdiff_t c = 0; c < r->q; c++) {
        char *const to = element(r, r->panel[0], c * padded);
        const ptrdiff_t rows = c < q ? n : 0;
        if (rows > 0)
            memcpy(to, b + (size_t)(c * ldb) * r->size, (size_t)rows * r->size);
        memset(element(r, to, rows), 0, (size_t)(padded - rows) * r->size);
    }
}

static void give_columns(const frgi_spd_run *r, const char *from, ptrdiff_t q, char *b,
                         ptrdiff_t ldb)
{
    for (ptrdiff_t c = 0; c < q; c++)
        memcpy(b + (size_t)(c * ldb) * r->size, from + (size_t)(c * r->s->padded) * r->size,
               (size_t)r->s->n * r->size);
}

static frg_status solve(frg_context *ctx, const frgi_spd *l, ptrdiff_t q, void *b, ptrdiff_t ldb,
                        void (*body)(void *, int))
{
    frgi_spd_run *const r = frgi_spd_begin(ctx, l);
    for (ptrdiff_t c = 0; c < q; c += r->s->block) {
        const ptrdiff_t count = q - c < r->s->block ? q - c : r->s->block;
        char *const at = (char *)b + (size_t)(c * ldb) * r->size;
        r->q = rounded(count);
        take_columns(r, count, at, ldb);
        frgi_spd_go(r, THREADS_FROM, body);
        give_columns(r, r->panel[0], count, at, ldb);
    }
    return FRG_OK;
}

frg_status frgi_spd_forward(frg_context *ctx, const frgi_spd *l, ptrdiff_t q, void *b,
                            ptrdiff_t ldb)
{
    return solve(ctx, l, q, b, ldb, forward_body);
}

frg_status frgi_spd_backward(frg_context *ctx, const frgi_spd *l, ptrdiff_t q, void *b,
                             ptrdiff_t ldb)
{
    return solve(ctx, l, q, b, ldb, backward_body);
}

frg_status frgi_spd_times(frg_context *ctx, const frgi_spd *a, ptrdiff_t q, const void *x,
                          ptrdiff_t ldx, void *y, ptrdiff_t ldy)
{
    frgi_spd_run *const r = frgi_spd_begin(ctx, a);
    const ptrdiff_t most = r->s->block / 2;
    r->b = element(r, r->panel[0], most * r->s->padded);
    for (ptrdiff_t c = 0; c < q; c += most) {
        const ptrdiff_t count = q - c < most ? q - c : most;
        r->q = rounded(count);
        take_columns(r, count, (const char *)x + (size_t)(c * ldx) * r->size, ldx);
        memset(r->b, 0, (size_t)(r->q * r->s->padded) * r->size);
        frgi_spd_go(r, THREADS_FROM, times_body);
        give_columns(r, r->b, count, (char *)y + (size_t)(c * ldy) * r->size, ldy);
    }
    return FRG_OK;
}
