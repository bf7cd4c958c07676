/* gw_order.c - rows and columns of a transport problem in an order of proximity, and back.
 *
 * Passes leave out vectors of 16 columns that are negligible in 8 rows (gw_sweep.h).  Of a narrow
 * plan that is most of them where points that are near each other come one after another, and none
 * where points come in any order.  The distances to some anchors tell what is near: points are
 * bisected by them, blocks of 16 stay together.  Moving the exponents there and back costs about as
 * much as four passes over them.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_solver.h"

enum { FEATURES = 16, SAMPLED_GROUPS = 16 };
/* Entries of a plan that is as well polished in any order, and the share of the vectors looked at
 * that has to remain for a move to be worth it. */
#define SMALL 1e6
#define WORTH 0.6

frg_status frgi_host_order(const frgi_level *l, bool second, int32_t *order)
{
    frgi_not_beside_device(l->ctx, "an order of the points");
    const int64_t n = second ? l->y->n : l->x->n, R = l->sampled.count;
    const float *const rows = second ? l->product.rows_y : l->product.rows_x;
    const int64_t d = R < FEATURES ? R : FEATURES;
    float *features;
    TRY(NEW(l->ctx, &features, frgi_mul((size_t)n, (size_t)d), "an order of the points"));
    for (int64_t i = 0; i < n; i++) {
        order[i] = (int32_t)i;
        for (int64_t c = 0; c < d; c++) {
            features[i * d + c] = rows[c * R / d * n + i];
        }
    }
    frgi_bisect(features, d, order, n);
    DROP(l->ctx, &features);
    return FRG_OK;
}

/** Whether 8 rows have a weight that counts in the 16 columns from place j0 on. */
static bool is_active(const frgi_sweep *s, const int32_t *row, const int32_t *column, int64_t i0,
                      int64_t j0, float negligible)
{
    const float *const x = s->x.at, *const g = s->g;
    for (int64_t p = i0; p < i0 + FRGI_GROUP && p < s->n; p++) {
        const float *const at = x + (row ? row[p] : p) * s->ld;
        for (int64_t q = j0; q < j0 + FRGI_MARK && q < s->m; q++) {
            const int64_t j = column ? column[q] : q;
            if (at[j] + g[j] > negligible) {
                return true;
            }
        }
    }
    return false;
}

/** The fraction of the vectors of 16 columns that a marking pass would list, from SAMPLED_GROUPS
 *  groups of 8 rows; NULL: the order as it is. */
double frgi_host_share(const frgi_transport *t, const int32_t *row, const int32_t *column)
{
    frgi_not_beside_device(t->ctx, "the share of active vectors");
    const frgi_sweep *const s = &t->s;
    const int64_t groups = s->n / FRGI_GROUP;
    const float negligible = log2f(s->active.negligible);
    int64_t listed = 0, sampled = 0;
    for (int64_t q = 0; q < SAMPLED_GROUPS; q++) {
        const int64_t i0 = q * groups / SAMPLED_GROUPS * FRGI_GROUP;
        for (int64_t j0 = 0; j0 < s->m; j0 += FRGI_MARK) {
            listed += is_active(s, row, column, i0, j0, negligible);
            sampled++;
        }
    }
    return (double)listed / (double)sampled;
}

/** to[place] <- from[order[place]] */
#define MOVE(name, type)                                                                           \
    static void name(const int32_t *order, int64_t n, const type *restrict from,                   \
                     type *restrict to)                                                            \
    {                                                                                              \
        for (int64_t p = 0; p < n; p++) {                                                          \
            to[p] = from[order[p]];                                                                \
        }                                                                                          \
    }
MOVE(move_floats, float)
MOVE(move_doubles, double)

static void move_all(const int32_t *order, int64_t n, double *const *doubles, float *const *floats,
                     double *scratch)
{
    for (; *doubles; doubles++) {
        memcpy(scratch, *doubles, (size_t)n * sizeof *scratch);
        move_doubles(order, n, scratch, *doubles);
    }
    float *const floats_scratch = (float *)(void *)scratch;
    for (; *floats; floats++) {
        memcpy(floats_scratch, *floats, (size_t)n * sizeof *floats_scratch);
        move_floats(order, n, floats_scratch, *floats);
    }
}

/** Rows of x, by cycles: every place is filled from the next one.  Threads have columns of their
 *  own. */
static void move_rows(const int32_t *order, const unsigned char *first, const frgi_transport *t)
{
    enum { STRIP = 512 };
    const frgi_sweep *const s = &t->s;
    float *const x = s->x.at;
#pragma omp parallel for schedule(static) num_threads(t->work.threads)
    for (int64_t c = 0; c < s->ld; c += STRIP) {
        float held[STRIP];
        const size_t bytes = (size_t)(s->ld - c < STRIP ? s->ld - c : STRIP) * sizeof *x;
        for (int64_t start = 0; start < s->n; start++) {
            if (!first[start] || order[start] == start) {
                continue;
            }
            int64_t p = start;
            memcpy(held, x + start * s->ld + c, bytes);
            for (; order[p] != start; p = order[p]) {
                memcpy(x + p * s->ld + c, x + order[p] * s->ld + c, bytes);
            }
            memcpy(x + p * s->ld + c, held, bytes);
        }
    }
}

static void move_columns(const int32_t *order, const frgi_transport *t)
{
    const frgi_sweep *const s = &t->s;
    float *const x = s->x.at;
#pragma omp parallel for schedule(static) num_threads(t->work.threads)
    for (int64_t part = 0; part < t->work.threads; part++) {
        float *const scratch =
            (float *)(void *)(t->work.scratch + (size_t)part * t->work.scratch_bytes);
        for (int64_t i = part * s->n / t->work.threads; i < (part + 1) * s->n / t->work.threads;
             i++) {
            memcpy(scratch, x + i * s->ld, (size_t)s->m * sizeof *x);
            move_floats(order, s->m, scratch, x + i * s->ld);
        }
    }
}

/** All vectors of rows and of columns, and the exponents; base.h and base.g are filled again before
 *  they are read. */
void frgi_host_move(frgi_transport *t, const int32_t *row, const int32_t *column,
                    const unsigned char *first, double *scratch)
{
    frgi_not_beside_device(t->ctx, "points put into an order");
    enum { COLUMNS = 6 };
    frgi_sweep *const s = &t->s;
    double *const rows[] = {(double *)(uintptr_t)s->to.a,
                            (double *)(uintptr_t)s->to.log_a,
                            s->base.H0,
                            s->F,
                            s->p,
                            s->dummy.row,
                            s->mass,
                            NULL};
    double *columns[COLUMNS + 2 * FRGI_SAVED_SLOTS + 2] = {(double *)(uintptr_t)s->to.b,
                                                           (double *)(uintptr_t)s->to.log_b,
                                                           s->base.G0,
                                                           s->G,
                                                           s->G_last,
                                                           s->col};
    float *const row_floats[] = {s->base.past_h, NULL}, *const column_floats[] = {
                                                            s->base.past_g,
                                                            frgi_is_wide(s) ? NULL : s->g, NULL};
    double **last = columns + COLUMNS;
    if (frgi_is_wide(s)) {
        *last++ = s->g;
    }
    const int64_t slots = (t->saved.passes + FRGI_SAVED_STRIDE - 1) / FRGI_SAVED_STRIDE;
    for (int64_t q = 0; q < slots && q < FRGI_SAVED_SLOTS; q++) {
        *last++ = t->saved.G + q * s->ld;
        *last++ = t->saved.G_last + q * s->ld;
    }
    move_all(row, s->n, rows, row_floats, scratch);
    move_all(column, s->m, columns, column_floats, scratch);
    move_columns(column, t);
    move_rows(row, first, t);
    t->skip.holds = false;
}

/** *back <- the order that undoes this one. */
static frg_status invert(frg_context *ctx, const int32_t *order, int64_t n, int32_t **back)
{
    TRY(NEW(ctx, back, n, "an order of the points"));
    for (int64_t p = 0; p < n; p++) {
        (*back)[order[p]] = (int32_t)p;
    }
    return FRG_OK;
}

/** first[i] <- whether i is the smallest of its cycle. */
static void find_cycles(const int32_t *order, int64_t n, unsigned char *first)
{
    memset(first, 1, (size_t)n);
    for (int64_t start = 0; start < n; start++) {
        for (int64_t p = order[start]; first[start] && p != start; p = order[p]) {
            first[p] = 0;
        }
    }
}

frg_status frgi_order_open(frgi_order *o, frgi_level *l)
{
    frg_context *const ctx = l->ctx;
    frgi_sweep *const s = &l->t.s;
    const bool stored =
        s->x.at && s->x.store == FRGI_X32 && !s->x.fresh && l->factors.past == s->x.at;
    memset(o, 0, sizeof *o);
    if (!stored || !frgi_is_balanced(l->o) || (double)s->n * (double)s->m < SMALL) {
        return FRG_OK;
    }
    const double now = l->t.steps->share(&l->t, NULL, NULL);
    TRY(NEW(ctx, &o->row, s->n, "an order of the points"));
    TRY(NEW(ctx, &o->column, s->m, "an order of the points"));
    TRY(l->t.steps->pairs->order(l, false, o->row));
    TRY(l->t.steps->pairs->order(l, true, o->column));
    if (l->t.steps->share(&l->t, o->row, o->column) > WORTH * now) {
        return FRG_OK;
    }
    TRY(invert(ctx, o->row, s->n, &o->row_back));
    TRY(invert(ctx, o->column, s->m, &o->column_back));
    TRY(NEW(ctx, &o->first, s->n, "an order of the points"));
    TRY(NEW(ctx, &o->memory, s->n > s->m ? s->n : s->m, "an order of the points"));
    find_cycles(o->row, s->n, o->first);
    l->t.steps->move(&l->t, o->row, o->column, o->first, o->memory);
    o->moved = true;
    return FRG_OK;
}

void frgi_order_close(frgi_order *o, frgi_level *l)
{
    if (o->moved) {
        l->t.steps->move(&l->t, o->row_back, o->column_back, o->first, o->memory);
    }
    DROP(l->ctx, &o->row);
    DROP(l->ctx, &o->column);
    DROP(l->ctx, &o->row_back);
    DROP(l->ctx, &o->column_back);
    DROP(l->ctx, &o->first);
    DROP(l->ctx, &o->memory);
}
