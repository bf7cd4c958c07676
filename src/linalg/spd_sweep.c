/* spd_sweep.c - Cholesky factor, inverse and congruence: steps over pivot blocks, each one panel
 * and one update.
 *
 * Step p, rows and columns by pivot blocks (B: the memory of A while L gives way to the inverse,
 * L_ip the factor, which still stands below row p):
 *
 *     factor      V_i = A_ip L_pp^-T  (i > p)                    A_ij -= V_i V_j'    for i >= j > p
 *                 (and b_p = L_pp^-1 b_p, b_i -= V_i b_p)
 *     inverse     V_j = (L_pp^-1 B_pj)'  (j < p)                 B_ij += V_i V_j'    for p > i >= j
 *                 B_pj = L_pp^-T V_j',  B_ip = -L_ip L_pp^-1     B_ij -= L_ip V_j'   for i > p > j
 *                 B_pp = L_pp^-T L_pp^-1
 *                 (and s_j += V_j b_p  (j < p), s_p = L_pp^-T b_p: s = L^-T b)
 *     both        the steps p of the two, one behind the other: half as many phases, each with the
 *                 same work
 *     congruence  V_i = A_ip diag(w_p)^(1/2)  (all i)            B_ij += V_i V_j'    for all i >= j
 *
 * When step p begins, row p of B is L_pp times row p of L^-1, to the left of the diagonal, so that
 * V_j = ((L^-1)_pj)'; after the last step B is sum_p V_i V_j' = A^-1, what the symmetric sweep of
 * Bientinesi, Gunter and van de Geijn (2008) leaves, with the sign changed.  The panel V is packed
 * once and serves as both operands of the update.
 *
 * Two barriers a step.  While the others update, thread 0 first updates, factors and inverts the
 * next diagonal block, then joins them.  Panels of even and odd steps have memory of their own: a
 * cache line that the other core has just read is slow to write to.
 *
 * Cost: n^3/3, 2 n^3/3 and n^3 flop; beyond them about 1.5 nb n^2 for the products with inverses.
 * Products with L_pp^-1 instead of solves with L_pp: their relative error is about cond(L_pp) u,
 * which the inverse has anyway. */
#include <float.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "linalg/spd_run.h"

enum { LN2_CHUNK = 64 };

/** Where a step updates: columns of [col_from, col_to), rows of up to two stretches. */
typedef struct {
    ptrdiff_t col_from, col_to;
    struct {
        ptrdiff_t from, to;
        int sign;
    } rows[2];
    int stretches;
} region;

/** Where a task lies within a stretch of rows: rows [row, row_end), columns [col, col_end). */
typedef struct {
    ptrdiff_t row, row_end, col, col_end;
} rectangle;

static ptrdiff_t larger(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

static ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

/** What a stretch of g has in common with `rows` rows from `row` on and tile column `col`. */
static rectangle clip(const frgi_spd_run *r, const region *g, int stretch, ptrdiff_t row,
                      ptrdiff_t rows, ptrdiff_t col)
{
    const ptrdiff_t first = col * r->s->tile;
    rectangle x = {larger(row, g->rows[stretch].from), smaller(row + rows, g->rows[stretch].to),
                   larger(first, g->col_from), smaller(first + r->s->tile, g->col_to)};
    x.col_end = smaller(x.col_end, x.row_end);
    return x;
}

/** Where rows from `row` on of the split panel begin. */
static unsigned char *split_at(unsigned char *panel, ptrdiff_t row, ptrdiff_t k)
{
    return panel + frgi_spd_split_bytes(row, k);
}

/** Splits rows of the panel that have just been packed for the CPU's tiles. */
static void split(const frgi_spd_run *r, const frgi_spd_block *b, ptrdiff_t row, ptrdiff_t rows)
{
    if (r->amx)
        frgi_spd_split(b->k, rows, (const float *)(const void *)frgi_spd_panel(r, b->p, row, b->k),
                       split_at(r->as_rows, row, b->k), split_at(r->as_columns, row, b->k));
}

static void update_rectangle(const frgi_spd_run *r, int sign, const rectangle *x,
                             const frgi_spd_block *b, char *to)
{
    const ptrdiff_t k = b->k;
    const ptrdiff_t rows = x->row_end - x->row, cols = x->col_end - x->col, ld = r->s->ld;
    if (r->amx)
        frgi_spd_update_tiles(sign, k, rows, split_at(r->as_rows, x->row, k), cols,
                              split_at(r->as_columns, x->col, k), (float *)(void *)to, ld,
                              x->row - x->col);
    else
        r->ops->update[sign](k, rows, frgi_spd_panel(r, b->p, x->row, k), cols,
                             frgi_spd_panel(r, b->p, x->col, k), to, ld, x->row - x->col);
}

/** The step of b on a chunk of rows within tile column `col`. */
static void update_task(const frgi_spd_run *r, const region *g, const frgi_spd_block *b,
                        ptrdiff_t chunk, ptrdiff_t col, char *to)
{
    ptrdiff_t row;
    const ptrdiff_t rows = frgi_spd_chunk(r, chunk, &row);
    for (int i = 0; i < g->stretches; i++) {
        const rectangle x = clip(r, g, i, row, rows, col);
        if (x.row < x.row_end && x.col < x.col_end)
            update_rectangle(r, g->rows[i].sign, &x, b,
                             to + (size_t)frgi_spd_at(r->s, x.row, x.col) * r->size);
    }
}

static frgi_team_rows update_tasks(const frgi_spd_run *r)
{
    return (frgi_team_rows){.rows = r->s->tiles, .each = r->chunks / r->s->tiles, .triangle = true};
}

/** The update of step b on region g, by all threads; to: where entry (0, 0) of the matrix lies. */
static void update(frgi_spd_run *r, int me, const region *g, const frgi_spd_block *b, char *to)
{
    const frgi_team_rows tasks = update_tasks(r);
    for (ptrdiff_t u, row; (u = frgi_team_take_dealt(&r->team, me, &tasks, &row)) >= 0;)
        update_task(r, g, b, row * tasks.each + u % tasks.each, u / tasks.each, to);
}

/** The chunks of a panel, and where `diagonal` the pivot block as one task more: chunk number
 *  r->chunks. */
static frgi_team_rows panel_tasks(const frgi_spd_run *r, bool diagonal)
{
    return (frgi_team_rows){.rows = r->s->tiles, .each = r->chunks / r->s->tiles, .more = diagonal};
}

static ptrdiff_t take_chunk(frgi_spd_run *r, int me, const frgi_team_rows *tasks)
{
    ptrdiff_t row;
    const ptrdiff_t u = frgi_team_take_dealt(&r->team, me, tasks, &row);
    return u < 0 ? u : row * tasks->each + u;
}

/** The caller's callback is called on the caller's thread alone. */
static void poll(frgi_spd_run *r, ptrdiff_t p)
{
    if (omp_get_thread_num() > 0)
        return;
    r->progress.done = p;
    r->progress.total = r->blocks;
    const frg_status s = frgi_heartbeat(r->ctx, &r->progress);
    if (r->status == FRG_OK)
        r->status = s;
}

/* ---- factor ---- */

/** A_pp <- L_pp, z <- L_pp^-1; b_p <- L_pp^-1 b_p. */
static void factor_block(frgi_spd_run *r, ptrdiff_t p)
{
    const frgi_spd_block b = frgi_spd_block_at(r, p);
    const ptrdiff_t bad = r->ops->cholesky(b.k, frgi_spd_entry(r, b.first, b.first), r->s->ld,
                                           r->z[p & 1], r->s->block, r->scratch, &r->pivots->value);
    if (bad >= 0) {
        r->pivots->pivot = b.first + bad;
        r->status = FRG_NOT_POSDEF;
    } else if (r->b) { /* b_p has lost L_pj b_j of all j < p */
        r->ops->forward(b.k, frgi_spd_entry(r, b.first, b.first), r->s->ld, 1,
                        r->b + (size_t)b.first * r->size, r->s->padded);
    }
}

/** A_qq -= V_q V_q' for the block q behind b, the last update that it needs. */
static void update_ahead(frgi_spd_run *r, frgi_spd_block b)
{
    const frgi_spd_block next = frgi_spd_block_at(r, b.p + 1);
    const char *const v = frgi_spd_panel(r, b.p, next.first, b.k);
    r->ops->update[SPD_MINUS](b.k, next.k, v, next.k, v, frgi_spd_entry(r, next.first, next.first),
                              r->s->ld, 0);
}

/** V_i = A_ip L_pp^-T for the rows of a chunk, packed as well; b_i -= V_i b_p. */
static void solve_chunk(frgi_spd_run *r, frgi_spd_block b, ptrdiff_t chunk)
{
    ptrdiff_t row, end = frgi_spd_chunk(r, chunk, &row);
    end += row;
    row = larger(row, b.end);
    if (row >= end)
        return;
    r->ops->trsm(b.k, end - row, frgi_spd_entry(r, row, b.first), r->s->ld, r->z[b.p & 1],
                 r->s->block, frgi_spd_panel(r, b.p, row, b.k));
    split(r, &b, row, end - row);
    if (r->b)
        r->ops->times[SPD_MINUS](end - row, b.k, frgi_spd_entry(r, row, b.first), r->s->ld, 1,
                                 r->b + (size_t)b.first * r->size, r->s->padded,
                                 r->b + (size_t)row * r->size, r->s->padded);
}

static void factor_body(void *run, int me)
{
    frgi_spd_run *const r = run;
    const frgi_team_rows chunks = panel_tasks(r, false), tasks = update_tasks(r);
    if (me == 0)
        factor_block(r, 0);
    for (ptrdiff_t p = 0; p + 1 < r->blocks; p++) {
        const frgi_spd_block b = frgi_spd_block_at(r, p), next = frgi_spd_block_at(r, p + 1);
        frgi_team_deal(&r->team, me, &chunks);
        frgi_team_meet(&r->team);
        if (r->status != FRG_OK)
            return;
        for (ptrdiff_t u; (u = take_chunk(r, me, &chunks)) >= 0;)
            solve_chunk(r, b, u);
        const region g = {b.end, r->s->padded, {{next.end, r->s->padded, SPD_MINUS}}, 1};
        frgi_team_deal(&r->team, me, &tasks);
        frgi_team_meet(&r->team);
        if (me == 0) {
            update_ahead(r, b);
            factor_block(r, next.p);
            poll(r, p);
        }
        update(r, me, &g, &b, r->a);
    }
}

/** L_ii. */
static double root_at(const frgi_spd_run *r, ptrdiff_t i)
{
    const char *const at = frgi_spd_entry(r, i, i);
    return r->s->dtype == FRG_F64 ? *(const double *)(const void *)at
                                  : (double)*(const float *)(const void *)at;
}

/** The sum of 2 log L_ii: mantissas multiplied, exponents added, one logarithm for LN2_CHUNK of
 *  them. */
static double logarithms(const frgi_spd_run *r, ptrdiff_t n, frgi_spd_pivots *pivots)
{
    double sum = 0, product = 1, smallest = HUGE_VAL, largest = 0;
    int64_t exponents = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double l = r->roots ? r->roots[i] : root_at(r, i);
        smallest = l < smallest ? l : smallest;
        largest = l > largest ? l : largest;
        uint64_t bits;
        memcpy(&bits, &l, sizeof bits);
        if (l < DBL_MIN) { /* no mantissa to cut out */
            sum += log(l);
            continue;
        }
        exponents += (int64_t)(bits >> 52) - 1023;
        bits = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1023 << 52;
        double mantissa;
        memcpy(&mantissa, &bits, sizeof mantissa);
        product *= mantissa;
        if (i % LN2_CHUNK == LN2_CHUNK - 1) {
            sum += log(product);
            product = 1;
        }
    }
    pivots->smallest = smallest;
    pivots->largest = largest;
    return 2 * (sum + log(product) + (double)exponents * 0.693147180559945309417);
}

/** rhs <- b, 0 in the rows behind it; NULL: there is none. */
static void take_rhs(frgi_spd_run *r, const void *b)
{
    const size_t bytes = (size_t)r->s->n * r->size;
    r->b = b ? r->rhs : NULL;
    if (b) {
        memcpy(r->b, b, bytes);
        memset(r->b + bytes, 0, (size_t)r->s->padded * r->size - bytes);
    }
}

static void give_vector(const frgi_spd_run *r, const char *from, void *b)
{
    if (b)
        memcpy(b, from, (size_t)r->s->n * r->size);
}

static frg_status factor_by(frgi_spd_run *r, void (*body)(void *, int), void *b, double *logdet,
                            frgi_spd_pivots *pivots)
{
    frgi_spd_pivots found = {.pivot = -1, .value = NAN};
    r->progress.phase = "factor";
    r->pivots = &found;
    take_rhs(r, b);
    frgi_spd_go(r, SPD_THREADS_FROM, body);
    const double sum = logarithms(r, found.pivot >= 0 ? found.pivot : r->s->n, &found);
    if (r->status == FRG_OK)
        *logdet = sum;
    give_vector(r, r->rhs, b);
    *pivots = found;
    return r->status;
}

frg_status frgi_spd_factor_forward(frg_context *ctx, const frgi_spd *a, void *b, double *logdet,
                                   frgi_spd_pivots *pivots)
{
    frgi_spd_pad(a);
    return factor_by(frgi_spd_begin(ctx, a), factor_body, b, logdet, pivots);
}

frg_status frgi_spd_factor(frg_context *ctx, const frgi_spd *a, double *logdet,
                           frgi_spd_pivots *pivots)
{
    return frgi_spd_factor_forward(ctx, a, NULL, logdet, pivots);
}

double frgi_spd_logdet(frg_context *ctx, const frgi_spd *l, frgi_spd_pivots *pivots)
{
    *pivots = (frgi_spd_pivots){.pivot = -1, .value = NAN};
    return logarithms(frgi_spd_begin(ctx, l), l->layout.n, pivots);
}

/* ---- inverse ---- */

/** z <- L_pp^-1, t <- its transpose. */
static void invert_block(frgi_spd_run *r, ptrdiff_t p)
{
    const frgi_spd_block b = frgi_spd_block_at(r, p);
    r->ops->invert(b.k, frgi_spd_entry(r, b.first, b.first), r->s->ld, r->z[p & 1], r->s->block);
    r->ops->transpose(b.k, r->z[p & 1], r->t[p & 1], r->s->block);
}

/** s_j += V_j b_p for rows of the packed panel before the pivot block; s_p = L_pp^-T b_p where they
 *  are its own. */
static void add_solution(const frgi_spd_run *r, const frgi_spd_block *b, ptrdiff_t row,
                         ptrdiff_t rows)
{
    const ptrdiff_t group = SPD_LINE / (ptrdiff_t)r->size, k = b->k;
    const char *const bp = r->b + (size_t)b->first * r->size;
    char *const to = r->solved + (size_t)row * r->size;
    if (row == b->first) {
        memset(to, 0, (size_t)k * r->size);
        r->ops->times[SPD_PLUS](k, k, r->t[b->p & 1], r->s->block, 1, bp, k, to, k);
        return;
    }
    for (ptrdiff_t i = 0; i < rows; i += group)
        r->ops->times[SPD_PLUS](group, k, frgi_spd_panel(r, b->p, row + i, k), group, 1, bp, k,
                                to + (size_t)i * r->size, group);
}

/** The inverse's panels V_j, B_pj, B_ip of the rows of a chunk; the task behind the last chunk is
 *  B_pp. */
static void invert_chunk(frgi_spd_run *r, frgi_spd_block b, ptrdiff_t chunk)
{
    const void *const z = r->z[b.p & 1], *const t = r->t[b.p & 1];
    const ptrdiff_t ld = r->s->ld, ldz = r->s->block;
    if (chunk == r->chunks) {
        r->ops->square(b.k, t, ldz, frgi_spd_entry(r, b.first, b.first), ld);
        if (r->b)
            add_solution(r, &b, b.first, b.k);
        return;
    }
    ptrdiff_t row, end = frgi_spd_chunk(r, chunk, &row);
    end += row;
    const ptrdiff_t before = smaller(end, b.first), after = larger(row, b.end);
    if (row < before) {
        r->ops->transpose_panel(b.k, before - row, frgi_spd_entry(r, b.first, row), ld, z, t, ldz,
                                frgi_spd_panel(r, b.p, row, b.k));
        split(r, &b, row, before - row);
        if (r->b)
            add_solution(r, &b, row, before - row);
    }
    if (after < end) {
        r->ops->update_panel(b.k, end - after, frgi_spd_entry(r, after, b.first), ld, t, ldz,
                             frgi_spd_panel(r, b.p, after, b.k));
        split(r, &b, after, end - after);
    }
}

static void inverse_body(void *run, int me)
{
    frgi_spd_run *const r = run;
    const frgi_team_rows chunks = panel_tasks(r, true), tasks = update_tasks(r);
    if (me == 0)
        invert_block(r, 0);
    for (ptrdiff_t p = 0; p < r->blocks; p++) {
        const frgi_spd_block b = frgi_spd_block_at(r, p);
        frgi_team_deal(&r->team, me, &chunks);
        frgi_team_meet(&r->team);
        if (r->status != FRG_OK)
            return;
        for (ptrdiff_t u; (u = take_chunk(r, me, &chunks)) >= 0;)
            invert_chunk(r, b, u);
        const region g = {
            0, b.first, {{0, b.first, SPD_PLUS}, {b.end, r->s->padded, SPD_MINUS}}, 2};
        frgi_team_deal(&r->team, me, &tasks);
        frgi_team_meet(&r->team);
        if (me == 0) {
            if (p + 1 < r->blocks)
                invert_block(r, p + 1);
            poll(r, p);
        }
        update(r, me, &g, &b, r->a);
    }
}

frg_status frgi_spd_inverse(frg_context *ctx, const frgi_spd *l, void *b)
{
    frgi_spd_run *const r = frgi_spd_begin(ctx, l);
    r->progress.phase = "inverse";
    take_rhs(r, b);
    frgi_spd_pad(l); /* a factor that was not made here may be without */
    frgi_spd_go(r, SPD_THREADS_FROM, inverse_body);
    give_vector(r, r->solved, b);
    return r->status;
}

/* ---- both ---- */

/** factor_block and invert_block, with copies of the L_ii, which B_pp overwrites. */
static void both_block(frgi_spd_run *r, ptrdiff_t p)
{
    const frgi_spd_block b = frgi_spd_block_at(r, p);
    factor_block(r, p);
    if (r->status != FRG_OK)
        return;
    r->ops->transpose(b.k, r->z[p & 1], r->t[p & 1], r->s->block); /* z is the factor's */
    for (ptrdiff_t i = b.first; i < smaller(b.end, r->s->n); i++)
        r->roots[i] = root_at(r, i);
}

static void both_body(void *run, int me)
{
    frgi_spd_run *const r = run;
    const frgi_team_rows chunks = panel_tasks(r, true), tasks = update_tasks(r);
    if (me == 0)
        both_block(r, 0);
    for (ptrdiff_t p = 0; p < r->blocks; p++) {
        const frgi_spd_block b = frgi_spd_block_at(r, p), next = frgi_spd_block_at(r, p + 1);
        const bool last = p + 1 == r->blocks;
        frgi_team_deal(&r->team, me, &chunks);
        frgi_team_meet(&r->team);
        if (r->status != FRG_OK)
            return;
        for (ptrdiff_t u; (u = take_chunk(r, me, &chunks)) >= 0;) {
            if (u < r->chunks)
                solve_chunk(r, b, u);
            invert_chunk(r, b, u);
        }
        const region inverse = {
            0, b.first, {{0, b.first, SPD_PLUS}, {b.end, r->s->padded, SPD_MINUS}}, 2};
        const region factor = {b.end, r->s->padded, {{next.end, r->s->padded, SPD_MINUS}}, !last};
        frgi_team_deal(&r->team, me, &tasks);
        frgi_team_meet(&r->team);
        if (me == 0 && !last) {
            update_ahead(r, b);
            both_block(r, p + 1);
        }
        if (me == 0)
            poll(r, p);
        for (ptrdiff_t u, row; (u = frgi_team_take_dealt(&r->team, me, &tasks, &row)) >= 0;) {
            const ptrdiff_t chunk = row * tasks.each + u % tasks.each, col = u / tasks.each;
            update_task(r, &inverse, &b, chunk, col, r->a);
            update_task(r, &factor, &b, chunk, col, r->a);
        }
    }
}

frg_status frgi_spd_sweep(frg_context *ctx, const frgi_spd *a, void *b, void *solved, double *roots,
                          double *logdet, frgi_spd_pivots *pivots)
{
    frgi_spd_run *const r = frgi_spd_begin(ctx, a);
    r->roots = roots;
    frgi_spd_pad(a);
    const frg_status status = factor_by(r, both_body, b, logdet, pivots);
    give_vector(r, r->solved, solved);
    return status;
}

/* ---- congruence ---- */

/** V_i = A_ip diag(w_p)^(1/2) for the rows of a chunk, packed; the task behind the last chunk is
 *  the diagonal block. */
static void scale_chunk(frgi_spd_run *r, frgi_spd_block b, const double *scale, ptrdiff_t chunk)
{
    const ptrdiff_t ld = r->s->ld;
    if (chunk == r->chunks) {
        r->ops->pack_symmetric(b.k, frgi_spd_entry(r, b.first, b.first), ld, scale,
                               frgi_spd_panel(r, b.p, b.first, b.k));
        split(r, &b, b.first, b.k);
        return;
    }
    ptrdiff_t row, end = frgi_spd_chunk(r, chunk, &row);
    end += row;
    const ptrdiff_t before = smaller(end, b.first), after = larger(row, b.end);
    if (row < before) {
        r->ops->pack_transposed(b.k, before - row, frgi_spd_entry(r, b.first, row), ld, scale,
                                frgi_spd_panel(r, b.p, row, b.k));
        split(r, &b, row, before - row);
    }
    if (after < end) {
        r->ops->pack(b.k, end - after, frgi_spd_entry(r, after, b.first), ld, scale,
                     frgi_spd_panel(r, b.p, after, b.k));
        split(r, &b, after, end - after);
    }
}

static void congruence_body(void *run, int me)
{
    frgi_spd_run *const r = run;
    const frgi_team_rows chunks = panel_tasks(r, true), tasks = update_tasks(r);
    const region g = {0, r->s->padded, {{0, r->s->padded, SPD_PLUS}}, 1};
    double scale[SPD_BLOCK_MAX];
    for (ptrdiff_t p = 0; p < r->blocks; p++) {
        const frgi_spd_block b = frgi_spd_block_at(r, p);
        for (ptrdiff_t i = 0; i < b.k; i++)
            scale[i] = b.first + i < r->s->n ? sqrt(r->scale[b.first + i]) : 0;
        frgi_team_deal(&r->team, me, &chunks);
        frgi_team_meet(&r->team);
        if (r->status != FRG_OK)
            return;
        for (ptrdiff_t u; (u = take_chunk(r, me, &chunks)) >= 0;)
            scale_chunk(r, b, scale, u);
        frgi_team_deal(&r->team, me, &tasks);
        frgi_team_meet(&r->team);
        if (me == 0)
            poll(r, p);
        update(r, me, &g, &b, r->b);
    }
}

frg_status frgi_spd_congruence(frg_context *ctx, const frgi_spd *a, const double *w,
                               const frgi_spd *b)
{
    frgi_spd_run *const r = frgi_spd_begin(ctx, a);
    r->progress.phase = "congruence";
    r->scale = w;
    r->b = b->elements;
    frgi_spd_clear(b);
    frgi_spd_go(r, SPD_THREADS_FROM, congruence_body);
    return r->status;
}
