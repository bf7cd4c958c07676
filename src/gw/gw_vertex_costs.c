/* gw_vertex_costs.c - what the mode vertex computes with: dense costs and products of them, two
 * spaces, the energy of a plan that is a list.
 */
#include "gw/gw_vertex.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/denormals.h"
#include "core/tree_sum.h"
#include "linalg/blas.h"

enum { BLOCK = 128, WIDTH = 384, MANY = 200000 }; /* MANY: costs that are worth a team */

/* ---- dense costs ----------------------------------------------------------------------------- */

frg_status frgi_costs_open(frgi_costs *c, frg_context *ctx, int64_t rows, int64_t columns,
                           bool single, const char *what)
{
    char *at = NULL;
    *c = (frgi_costs){NULL, rows, columns, frgi_costs_ld(columns), single};
    TRY(NEW0(ctx, &at, frgi_costs_bytes(c), what));
    c->at = at;
    return FRG_OK;
}

void frgi_costs_close(frgi_costs *c, frg_context *ctx)
{
    char *at = c->at;
    DROP(ctx, &at);
    c->at = NULL;
}

static void take_workspaces(frgi_products *p, frgi_arena *a)
{
    const frgi_product_way usual = frgi_product_way_of(p->ctx);
    /* OpenBLAS takes CPUs that are younger than itself for ones without vectors */
    const bool own = usual == PRODUCT_BLAS && frgi_context_isa(p->ctx) == ISA_V4;
    const frgi_product_way way = own ? PRODUCT_AVX512 : usual;
    for (int t = 0; t < p->count; t++) {
        frgi_product_workspace_take(a, &p->workspaces[t], way);
    }
}

frg_status frgi_products_open(frgi_products *p, frg_context *ctx, int threads, bool single)
{
    *p = (frgi_products){.ctx = ctx, .count = threads};
    if (!single) {
        return FRG_OK;
    }
    TRY(NEW0(ctx, &p->workspaces, p->count, "products of costs"));
    take_workspaces(p, &p->arena);
    TRY(frgi_arena_open(&p->arena, ctx, "products of costs"));
    take_workspaces(p, &p->arena);
    return FRG_OK;
}

void frgi_products_close(frgi_products *p)
{
    if (p->ctx) {
        frgi_arena_close(&p->arena, p->ctx);
        DROP(p->ctx, &p->workspaces);
    }
}

/** Zeros in columns from .. end-1. */
static void clear_rows(frgi_costs *to, int64_t first, int64_t rows, int64_t from, int64_t end)
{
    const size_t size = frgi_costs_size(to->single);
    for (int64_t i = first; i < first + rows; i++) {
        memset((char *)frgi_costs_row(to, i) + (size_t)from * size, 0, (size_t)(end - from) * size);
    }
}

void frgi_costs_blend(const frgi_products *w, double past, frgi_costs *to, const void *left,
                      int64_t ld_left, const void *right, int64_t ld_right, int64_t count,
                      double scale)
{
    const frgi_blas_guard guard = frgi_blas_begin();
    const int64_t down = (to->rows + BLOCK - 1) / BLOCK;
    const int64_t width = down > 1 ? to->columns : WIDTH; /* few rows are cut the other way */
    const int64_t across = (to->columns + width - 1) / width;
    const bool large = to->rows * to->columns * count > 1000000;
#pragma omp parallel for schedule(static) num_threads(w->count) if (large)
    for (int64_t block = 0; block < down * across; block++) {
        const int64_t first = block / across * BLOCK, from = block % across * width;
        const bool last = from + width >= to->columns;
        const int64_t end = last ? to->columns : from + width;
        const int rows = (int)(to->rows - first < BLOCK ? to->rows - first : BLOCK);
        const bool stopped = frgi_stopped(w->ctx) != FRG_OK; /* who asked for it asks that, too */
        if (past == 0) {
            clear_rows(to, first, rows, stopped ? from : end, last ? to->ld : end);
        }
        if (stopped) {
            continue;
        }
        frgi_blas_single();
        const unsigned mode = frgi_flush_denormals(); /* annealed plans are full of them */
        if (to->single) { /* row-major C = A' B is column-major C' = B' A */
            frgi_product_blend(&w->workspaces[omp_get_thread_num()], 'N', 'T', end - from, rows,
                               count, (float)scale, (const float *)right + from, ld_right,
                               (const float *)left + first, ld_left, (float)past,
                               (float *)to->at + first * to->ld + from, to->ld);
        } else {
            frgi_dgemm('N', 'T', (int)(end - from), rows, (int)count, scale,
                       (const double *)right + from, (int)ld_right, (const double *)left + first,
                       (int)ld_left, past, (double *)to->at + first * to->ld + from, (int)to->ld);
        }
        frgi_restore_denormals(mode);
    }
    frgi_blas_end(guard);
}

/* ---- spaces ---------------------------------------------------------------------------------- */

size_t frgi_spaces_bytes(int64_t n, int64_t m, bool single)
{
    return frgi_costs_size(single) * (size_t)(n * frgi_costs_ld(n) + m * frgi_costs_ld(m));
}

frg_status frgi_linear_of(frgi_spaces *s, const float *all, int64_t ld, const int32_t *of_x,
                          const int32_t *of_y, float **to)
{
    TRY(NEW(s->ctx, to, frgi_mul((size_t)s->n, (size_t)s->m), "the linear cost"));
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t j = 0; j < s->m; j++) {
            (*to)[i * s->m + j] = all[of_x[i] * ld + of_y[j]];
        }
    }
    s->linear = *to;
    s->ld_linear = s->m;
    return FRG_OK;
}

void frgi_costs_linear(const frgi_spaces *s, frgi_costs *to)
{
    const size_t row = (size_t)to->ld * frgi_costs_size(to->single);
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (s->n * s->m > MANY)
    for (int64_t i = 0; i < s->n; i++) {
        memset(frgi_costs_row(to, i), 0, row);
        for (int64_t j = 0; j < s->m && s->linear; j++) {
            frgi_costs_put(to, i, j, s->theta * (double)s->linear[i * s->ld_linear + j]);
        }
    }
}

void frgi_costs_set(const frgi_products *w, const frgi_spaces *s, frgi_costs *to, const void *left,
                    int64_t ld_left, const void *right, int64_t ld_right, int64_t count,
                    double scale)
{
    if (s->linear) {
        frgi_costs_linear(s, to);
    }
    frgi_costs_blend(w, s->linear ? 1 : 0, to, left, ld_left, right, ld_right, count, scale);
}

void frgi_costs_copy(const frg_context *ctx, frgi_costs *to, const frgi_costs *from)
{
    const size_t row = (size_t)to->ld * frgi_costs_size(to->single);
#pragma omp parallel for schedule(static)                                                          \
    num_threads(frg_threads(ctx)) if (to->rows * to->columns > MANY)
    for (int64_t i = 0; i < to->rows; i++) {
        memcpy(frgi_costs_row(to, i), frgi_costs_row(from, i), row);
    }
}

void frgi_costs_add_row(const frgi_costs *c, int64_t i, double scale, void *out)
{
    if (c->single) {
        const float *const row = frgi_costs_row(c, i);
        for (int64_t k = 0; k < c->columns; k++) {
            ((float *)out)[k] += (float)scale * row[k];
        }
    } else {
        const double *const row = frgi_costs_row(c, i);
        for (int64_t k = 0; k < c->columns; k++) {
            ((double *)out)[k] += scale * row[k];
        }
    }
}

/** sum w C^2 w, and sum w C w. */
static void moments(const frg_context *ctx, const frgi_costs *c, const double *w, double *square,
                    double *mean)
{
    enum { PARTS = 64 };
    double part[PARTS][2], both[2];
#pragma omp parallel for schedule(static)                                                          \
    num_threads(frg_threads(ctx)) if (c->rows * c->columns > MANY)
    for (int64_t q = 0; q < PARTS; q++) {
        part[q][0] = part[q][1] = 0;
        for (int64_t i = q * c->rows / PARTS; i < (q + 1) * c->rows / PARTS; i++) {
            double of_square = 0, of_mean = 0;
            for (int64_t k = 0; k < c->columns; k++) {
                const double x = frgi_costs_get(c, i, k);
                of_square += x * x * w[k];
                of_mean += x * w[k];
            }
            part[q][0] += w[i] * of_square;
            part[q][1] += w[i] * of_mean;
        }
    }
    frgi_tree_rows(part[0], PARTS, 2, 2, both);
    *square = both[0];
    *mean = both[1];
}

void frgi_spaces_finish(frgi_spaces *s)
{
    double square_x, square_y, mean_x, mean_y, linear = 0;
    bool equal = s->n == s->m;
    moments(s->ctx, &s->x, s->a, &square_x, &mean_x);
    moments(s->ctx, &s->y, s->b, &square_y, &mean_y);
    for (int64_t i = 0; i < s->n && equal; i++) {
        equal = fabs(s->a[i] - s->a[0]) <= 1e-12 * s->a[0] &&
                fabs(s->b[i] - s->a[0]) <= 1e-12 * s->a[0];
    }
    for (int64_t i = 0; i < s->n && s->linear; i++) {
        for (int64_t j = 0; j < s->m; j++) {
            linear += s->a[i] * s->b[j] * (double)s->linear[i * s->ld_linear + j];
        }
    }
    s->assigns = equal;
    s->square_x = square_x;
    s->constant = square_x + square_y;
    s->product = (1 - s->theta) * (s->constant - 2 * mean_x * mean_y) + 2 * s->theta * linear;
}

void frgi_spaces_close(frgi_spaces *s)
{
    if (s->ctx) {
        frgi_costs_close(&s->x, s->ctx);
        frgi_costs_close(&s->y, s->ctx);
        DROP(s->ctx, &s->a);
        DROP(s->ctx, &s->b);
    }
}

/** m C D of an entry, of a row of each. */
static inline double cross_of_entry(const void *x, const void *y, const frgi_entry *e, bool single)
{
    return single ? e->mass * (double)((const float *)x)[e->i] * (double)((const float *)y)[e->j]
                  : e->mass * ((const double *)x)[e->i] * ((const double *)y)[e->j];
}

/** sum_f m_f C_f D_f, in four sums: one would wait for each of its additions. */
static inline double cross_of_row(const void *x, const void *y, const frgi_entry *p, int64_t count,
                                  bool single)
{
    enum { SUMS = 4 };
    double sum[SUMS] = {0};
    int64_t f = 0;
    for (; f + SUMS <= count; f += SUMS) {
#pragma GCC unroll 4
        for (int k = 0; k < SUMS; k++) {
            sum[k] += cross_of_entry(x, y, &p[f + k], single);
        }
    }
    for (; f < count; f++) {
        sum[0] += cross_of_entry(x, y, &p[f], single);
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/** sum over the entries e of first .. last-1, and f <= e, of m_e m_f C_ef D_ef, pairs of two
 *  entries twice: distances are symmetric. */
static double cross_of(const frgi_spaces *s, const frgi_sparse *p, int64_t first, int64_t last)
{
    double cross = 0;
    for (int64_t e = first; e < last; e++) {
        const frgi_entry *const at = &p->entries[e];
        const void *const x = frgi_costs_row(&s->x, at->i), *const y = frgi_costs_row(&s->y, at->j);
        const double sum = s->single ? cross_of_row(x, y, p->entries, e, true)
                                     : cross_of_row(x, y, p->entries, e, false);
        const double own =
            frgi_costs_get(&s->x, at->i, at->i) * frgi_costs_get(&s->y, at->j, at->j);
        cross += at->mass * (2 * sum + at->mass * own);
    }
    return cross;
}

double frgi_sparse_energy(const frgi_spaces *s, const frgi_sparse *p)
{
    enum { PARTS = 64 };
    double part[PARTS], cross, linear = 0;
    const bool many = p->count > 1500;
#pragma omp parallel for schedule(static, 1) num_threads(frg_threads(s->ctx)) if (many)
    for (int64_t q = 0; q < PARTS; q++) { /* the later, the longer */
        part[q] = cross_of(s, p, q * p->count / PARTS, (q + 1) * p->count / PARTS);
    }
    frgi_tree_rows(part, PARTS, 1, 1, &cross);
    for (int64_t e = 0; e < p->count && s->linear; e++) {
        const frgi_entry *const at = &p->entries[e];
        linear += at->mass * (double)s->linear[at->i * s->ld_linear + at->j];
    }
    return (1 - s->theta) * (s->constant - 2 * cross) + 2 * s->theta * linear;
}
