/* gw_pairs.c - what a step of the mode sampled makes of its pairs of points: distances to them, the
 * row and column terms, the factors of its cost (formulas in gw_level.c).
 *
 * These arrays are reached by steps alone (frgi_pairs_steps in gw_solver.h).  Draws of pairs stand
 * in gw_anchors.c, the order of proximity in gw_order.c.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_solver.h"
#include "gw/gw_tiles.h"

enum { MANY_ANCHORS = 16 };
enum { MEAN_POINTS = 512 }; /* of vectors and of rows on demand, which are computed each time */
#define ROUNDING 0.06       /* log2 units: sampling moves exponents by tens */

static const struct frgi_pairs_steps *steps_of(const frgi_level *l)
{
    return l->t.steps->pairs;
}

/* ---- opening --------------------------------------------------------------------------------- */

/** Whether pairs are centred by the mean distances. */
static bool are_centred(const frgi_level *l)
{
    const frg_gw_opts *const o = l->o;
    const bool sampled = o->mode == FRG_GW_SAMPLED && o->rank == 0;
    return sampled && frgi_is_balanced(o) && o->scale != FRG_GW_SCALE_BATCH_MAX;
}

static void lay_out(frgi_arena *a, frgi_level *l)
{
    frgi_samples *const p = &l->sampled;
    frgi_level_product *const f = &l->product;
    const int64_t n = l->x->n, m = l->y->n, capacity = frgi_drawn_of(l->o, p->count_most);
    for (int q = 0; q < FRGI_LAGS; q++) {
        p->lagged[q] = TAKE(a, frgi_pair, capacity);
    }
    p->now = TAKE(a, frgi_pair, capacity);
    p->nodes = TAKE(a, int32_t, capacity);
    f->terms = TAKE(a, float, l->t.s.rows + l->t.s.ld);
    f->means = are_centred(l) ? TAKE(a, float, n + m) : NULL;
    f->rows_x = TAKE(a, float, frgi_mul((size_t)f->rank, (size_t)n));
    f->rows_y = TAKE(a, float, frgi_mul((size_t)f->rank, (size_t)m));
    l->stopping.g_before = TAKE(a, double, l->t.s.ld);
}

static void lay_out_factors(frgi_level_product *f, size_t left, size_t right)
{
    f->left = TAKE(&f->factors, float, left);
    f->right = TAKE(&f->factors, float, right);
}

static frg_status open_factors(frgi_level *l, size_t left, size_t right, const char *what)
{
    frgi_level_product *const f = &l->product;
    if (f->factors.bytes > 0) {
        l->t.steps->close(&f->factors, l->ctx);
    }
    lay_out_factors(f, left, right);
    TRY(l->t.steps->open(&f->factors, l->ctx, what));
    lay_out_factors(f, left, right);
    return FRG_OK;
}

frg_status frgi_pairs_widen(frgi_level *l, int64_t rank, const char *what)
{
    l->product.packed = FRGI_AS_FLOATS;
    l->product.rank = rank;
    TRY(open_factors(l, frgi_mul((size_t)l->t.s.rows, (size_t)rank),
                     frgi_mul((size_t)l->t.s.ld, (size_t)rank), what));
    steps_of(l)->no_cost(l);
    return FRG_OK;
}

/** Floats in a factor, however it is packed. */
static size_t floats_of_factor(int64_t points, int64_t rank)
{
    const size_t floats = frgi_mul((size_t)rank, (size_t)points),
                 tiles = frgi_tiles_bytes(points, rank) / sizeof(float);
    return floats > tiles ? floats : tiles;
}

frg_status frgi_pairs_open(frgi_level *l)
{
    frgi_level_product *const f = &l->product;
    const char *const what = "anchor distances";
    f->rank = l->sampled.count_most > FRGI_QUANTILES ? l->sampled.count_most : FRGI_QUANTILES;
    lay_out(&f->memory, l);
    TRY(l->t.steps->open(&f->memory, l->ctx, what));
    lay_out(&f->memory, l);
    TRY(open_factors(l, floats_of_factor(l->t.s.rows, f->rank),
                     floats_of_factor(l->t.s.ld, f->rank), what));
    steps_of(l)->clear(l);
    return f->means ? steps_of(l)->means(l) : FRG_OK;
}

void frgi_pairs_close(frgi_level *l)
{
    frgi_arena *const arenas[] = {&l->product.memory, &l->product.factors};
    for (int q = 0; q < 2; q++) {
        if (arenas[q]->bytes > 0) {
            l->t.steps->close(arenas[q], l->ctx);
        }
    }
}

static void clear(frgi_level *l)
{
    const size_t capacity = (size_t)frgi_drawn_of(l->o, l->sampled.count_most);
    for (int q = 0; q < FRGI_LAGS; q++) {
        memset(l->sampled.lagged[q], 0, capacity * sizeof *l->sampled.lagged[q]);
    }
    memset(l->product.terms, 0, (size_t)(l->t.s.rows + l->t.s.ld) * sizeof *l->product.terms);
    memset(l->stopping.g_before, 0, (size_t)l->t.s.ld * sizeof *l->stopping.g_before);
}

static void no_cost(frgi_level *l)
{
    memset(l->product.factors.base, 0, l->product.factors.bytes);
}

/* ---- distances ------------------------------------------------------------------------------- */

static frg_status means(frgi_level *l)
{
    const int64_t most_x = frgi_distances_whole(l->x) ? l->x->n : MEAN_POINTS,
                  most_y = frgi_distances_whole(l->y) ? l->y->n : MEAN_POINTS;
    TRY(frgi_distances_means(l->x, l->a, most_x, l->product.means));
    return frgi_distances_means(l->y, l->b, most_y, l->product.means + l->x->n);
}

static void take(frgi_level *l, const frgi_waiting *places, int64_t count)
{
    frgi_not_beside_device(l->ctx, "pairs of points");
    for (int64_t r = 0; r < count; r++) {
        l->sampled.now[r] = l->sampled.lagged[places[r].age][places[r].at];
    }
}

static frg_status distances(frgi_level *l, int64_t R)
{
    frgi_not_beside_device(l->ctx, "distances of pairs");
    const frgi_samples *const p = &l->sampled;
    const frgi_level_product *const f = &l->product;
    for (int64_t r = 0; r < R; r++) {
        p->nodes[r] = p->now[r].i;
    }
    TRY(frgi_distances_centred(l->x, p->nodes, R, f->means, f->rows_x, l->x->n));
    for (int64_t r = 0; r < R; r++) {
        p->nodes[r] = p->now[r].j;
    }
    const float *const means_y = f->means ? f->means + l->x->n : NULL;
    return frgi_distances_centred(l->y, p->nodes, R, means_y, f->rows_y, l->y->n);
}

static void divide_by_largest(const frgi_build_ops *ops, float *rows, int64_t count)
{
    const float most = ops->largest(rows, count);
    const float scale = most > 0 ? 1 / most : 1;
    for (int64_t i = 0; i < count; i++) {
        rows[i] *= scale;
    }
}

static void divide(frgi_level *l, int64_t R)
{
    frgi_not_beside_device(l->ctx, "distances over the largest");
    const frgi_build_ops *const ops = frgi_build_ops_of(l->ctx);
    divide_by_largest(ops, l->product.rows_x, R * l->x->n);
    divide_by_largest(ops, l->product.rows_y, R * l->y->n);
}

/* ---- row and column terms -------------------------------------------------------------------- */

/** Balanced: no terms of their own, so the means lie where padding follows them. */
static void terms_from_means(frgi_level *l)
{
    const frgi_sweep *const s = &l->t.s;
    frgi_level_product *const f = &l->product;
    memcpy(f->terms, f->means, (size_t)s->n * sizeof *f->terms);
    memcpy(f->terms + s->rows, f->means + s->n, (size_t)s->m * sizeof *f->terms);
}

static void terms(frgi_level *l, int64_t R, double scale)
{
    frgi_not_beside_device(l->ctx, "terms of rows and columns");
    const frgi_sweep *const s = &l->t.s;
    frgi_level_product *const f = &l->product;
    const float each = (float)scale / (float)R;
    if (f->means) {
        terms_from_means(l);
        return;
    }
    memset(f->terms, 0, (size_t)(s->rows + s->ld) * sizeof *f->terms);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t i = 0; i < s->n; i++) {
            f->terms[i] += each * f->rows_x[r * s->n + i] * f->rows_x[r * s->n + i];
        }
        for (int64_t j = 0; j < s->m; j++) {
            f->terms[s->rows + j] += each * f->rows_y[r * s->m + j] * f->rows_y[r * s->m + j];
        }
    }
}

static void put_terms(frgi_level *l, const double *of_rows, const double *of_columns)
{
    for (int64_t i = 0; of_rows && i < l->t.s.n; i++) {
        l->product.terms[i] = (float)of_rows[i];
    }
    for (int64_t j = 0; of_columns && j < l->t.s.m; j++) {
        l->product.terms[l->t.s.rows + j] = (float)of_columns[j];
    }
}

static void mean_squares(const frgi_level *l, bool second, double *out)
{
    const int64_t n = second ? l->y->n : l->x->n, R = l->sampled.count;
    const frgi_level_product *const f = &l->product;
    const float *const rows = second ? f->rows_y : f->rows_x; /* centred where there are means */
    const float *const mean = f->means && second ? f->means + l->x->n : f->means;
    for (int64_t i = 0; i < n; i++) {
        out[i] = mean ? (double)mean[i] * (double)mean[i] : 0;
        for (int64_t r = 0; r < R; r++) {
            out[i] += (double)rows[r * n + i] * (double)rows[r * n + i] / (double)R;
        }
    }
}

/* ---- factors --------------------------------------------------------------------------------- */

/** How factors of R distances up to most_x and most_y are kept: as integers or tiles where the
 *  error that this adds to exponents, root mean square,
 *
 *      2 k / sqrt(R) error most_x most_y,   error = sqrt(2 / 12) / FRGI_WHOLE of integers,
 *                                                   2^-18 of two bfloat16
 *
 *  is below ROUNDING (a distance is off by step / sqrt(12), both factors of a product are). */
static frgi_packed way_to_pack(const frgi_level *l, int64_t R, double most_x, double most_y)
{
    const frgi_packed fast =
        frgi_context_tiles(l->ctx) ? FRGI_AS_TILES : frgi_build_ops_of(l->ctx)->prefers;
    const double error = fast == FRGI_AS_TILES ? 0x1p-18 : sqrt(1.0 / 6) / (double)FRGI_WHOLE;
    const double moved = 2 * FRGI_LOG2_E / l->epsilon / sqrt((double)R) * error * most_x * most_y;
    /* what is divided by the largest has to have an inverse */
    const bool fits = fmin(most_x, most_y) > 1e-30 && fmax(most_x, most_y) < 1e30;
    return R >= MANY_ANCHORS && fits && moved < ROUNDING ? fast : FRGI_AS_FLOATS;
}

/** A thread's part of the factors. */
static void pack_share(frgi_level *l, int64_t R, float most_x, float most_y, int part, int parts)
{
    const frgi_build_ops *const ops = frgi_build_ops_of(l->ctx);
    const frgi_sweep *const s = &l->t.s;
    const frgi_level_product *const f = &l->product;
    const bool tiles = f->packed == FRGI_AS_TILES;
    const int64_t groups =
        tiles ? (s->rows + FRGI_BLOCK_ROWS - 1) / FRGI_BLOCK_ROWS : s->rows / FRGI_GROUP;
    const int64_t panels = s->ld / (tiles ? FRGI_BLOCK_ROWS : FRGI_PANEL);
    const int64_t g0 = part * groups / parts, g1 = (part + 1) * groups / parts;
    const int64_t p0 = part * panels / parts, p1 = (part + 1) * panels / parts;
    switch (f->packed) {
    case FRGI_AS_TILES:
        frgi_tiles_pack_left(f->rows_x, s->n, R, 1 / most_x, f->left, g0, g1);
        frgi_tiles_pack_right(f->rows_y, s->m, R, 1 / most_y, f->right, p0, p1);
        break;
    case FRGI_AS_WHOLE:
        ops->pack_pairs(f->rows_x, s->n, R, s->n, FRGI_GROUP, most_x / FRGI_WHOLE,
                        (int32_t *)(void *)f->left, g0, g1);
        ops->pack_pairs(f->rows_y, s->m, R, s->m, FRGI_PANEL, most_y / FRGI_WHOLE,
                        (int32_t *)(void *)f->right, p0, p1);
        break;
    case FRGI_AS_FLOATS:
        ops->pack(f->rows_x, s->n, R, s->n, FRGI_GROUP, 2 / (float)R, f->left, g0, g1);
        ops->pack(f->rows_y, s->m, R, s->m, FRGI_PANEL, 1, f->right, p0, p1);
    }
}

static void pack(frgi_level *l, int64_t R)
{
    frgi_not_beside_device(l->ctx, "factors of costs");
    const frgi_build_ops *const ops = frgi_build_ops_of(l->ctx);
    const int threads = frg_threads(l->ctx);
    const float most_x = ops->largest(l->product.rows_x, R * l->t.s.n),
                most_y = ops->largest(l->product.rows_y, R * l->t.s.m);
    const float scale = 2 / (float)R, whole = FRGI_WHOLE;
    l->product.packed = way_to_pack(l, R, (double)most_x, (double)most_y);
    const float units[] = {[FRGI_AS_FLOATS] = 1,
                           [FRGI_AS_WHOLE] = scale * (most_x / whole) * (most_y / whole),
                           [FRGI_AS_TILES] = scale * most_x * most_y};
    l->product.scale = units[l->product.packed];
    l->product.rank = R;
#pragma omp parallel for schedule(static)                                                          \
    num_threads(threads) if ((double)R * (double)l->t.s.ld > 1e5)
    for (int part = 0; part < threads; part++) {
        pack_share(l, R, most_x, most_y, part, threads);
    }
}

const struct frgi_pairs_steps frgi_pairs_host_steps = {.clear = clear,
                                                       .no_cost = no_cost,
                                                       .means = means,
                                                       .draw_product = frgi_host_draw_product,
                                                       .draw = frgi_host_draw,
                                                       .take = take,
                                                       .distances = distances,
                                                       .divide = divide,
                                                       .terms = terms,
                                                       .put_terms = put_terms,
                                                       .pack = pack,
                                                       .mean_squares = mean_squares,
                                                       .order = frgi_host_order};
