/* gw_vertex_coarse.c - fewer points that stand for all: farthest ones, or spread evenly; and which
 * plan between such points is best among all points.
 *
 * A plan of a coarser level joins points that lie apart by the distance between neighbours of that
 * level; what this adds to E hides whether a plan is mirrored (n = 10000, three dimensions, 1024
 * points: 3.9e-4 either way, 1e-5 and 1e-4 on all points).  So the points i_k of some rows look for
 * their images among all points of the other side,
 *
 *     j_k <- argmin_j sum_l w_l (C_(i_k i_l) - D_(j j_l))^2
 *     E_c  = sum_kl w_k w_l (C_(i_k i_l) - D_(j_k j_l))^2
 *
 * a few times over: rows' marginals hold, columns' do not.  O(K^2 m) for K rows.
 */
#include "gw/gw_vertex.h"

#include <math.h>
#include <string.h>

#include "core/tree_sum.h"

enum { PLACED = 512, PLACINGS = 3, AT_ONCE = 128 };

/** Farthest points of a dense side, from its heaviest one; weights of what is nearest to them. */
static void farthest(const frgi_costs *c, const double *w, int64_t count, double *gap,
                     int32_t *nearest, int32_t *chosen, double *share)
{
    int64_t next = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        gap[i] = (double)INFINITY;
        nearest[i] = 0;
        next = w[i] > w[next] ? i : next;
    }
    for (int64_t q = 0; q < count; q++) {
        chosen[q] = (int32_t)next;
        share[q] = 0;
        const int64_t from = next;
        for (int64_t i = 0; i < c->rows; i++) {
            const double x = i == from ? -1 : frgi_costs_get(c, from, i);
            if (x < gap[i]) {
                gap[i] = x;
                nearest[i] = (int32_t)q;
            }
            next = gap[i] > gap[next] || i == 0 ? i : next;
        }
        next = 0;
        for (int64_t i = 1; i < c->rows; i++) {
            next = gap[i] > gap[next] ? i : next;
        }
    }
    for (int64_t i = 0; i < c->rows; i++) {
        share[nearest[i]] += w[i];
    }
}

/** A point and its place along the line by which a part is halved. */
typedef struct {
    double x;
    int32_t point;
} placed;

static int by_place(const void *p, const void *q, const void *user)
{
    const placed *const a = p, *const b = q;
    (void)user;
    return a->x != b->x ? (a->x > b->x) - (a->x < b->x) : a->point - b->point;
}

/** Points in order that have a share of half / count of the weight, and leave a point for every
 *  part on both sides. */
static int64_t cut_of(const placed *points, const double *w, int64_t n, int64_t half, int64_t count)
{
    double total = 0, sum = 0;
    int64_t cut = 0;
    for (int64_t i = 0; i < n; i++) {
        total += w[points[i].point];
    }
    const double wanted = total * (double)half / (double)count * (1 + 1e-9);
    while (cut < half || (cut < n - (count - half) && sum + w[points[cut].point] <= wanted)) {
        sum += w[points[cut++].point];
    }
    return cut;
}

/** One point of each of `count` parts of nearly the same weight: points are halved, by which of two
 *  that lie far apart is nearer, until each part is one. */
static void spread(const frgi_costs *c, const double *w, placed *points, int64_t n, int64_t count,
                   int32_t *chosen)
{
    int64_t far[2] = {0, 0};
    if (count == 1) {
        chosen[0] = points[n / 2].point;
        return;
    }
    for (int end = 0; end < 2; end++) {
        for (int64_t i = 0; i < n; i++) {
            points[i].x = frgi_costs_get(c, points[far[end]].point, points[i].point);
        }
        int64_t at = 0;
        for (int64_t i = 1; i < n; i++) {
            at = points[i].x > points[at].x ? i : at;
        }
        far[!end] = at;
    }
    const int32_t first = points[far[0]].point, second = points[far[1]].point;
    for (int64_t i = 0; i < n; i++) {
        points[i].x =
            frgi_costs_get(c, first, points[i].point) - frgi_costs_get(c, second, points[i].point);
    }
    frgi_sort(points, n, sizeof *points, by_place, NULL);
    const int64_t half = count / 2, cut = cut_of(points, w, n, half, count);
    spread(c, w, points, cut, half, chosen);
    spread(c, w, points + cut, n - cut, count - half, chosen + half);
}

/** Points of a side that stand for nearly the same weight each, and have equal ones. */
static frg_status spread_side(frg_context *ctx, const frgi_costs *c, const double *w, int64_t count,
                              double *share, int32_t *chosen)
{
    placed *points = NULL;
    TRY(NEW(ctx, &points, c->rows, "points of a coarser level"));
    for (int64_t i = 0; i < c->rows; i++) {
        points[i].point = (int32_t)i;
    }
    spread(c, w, points, c->rows, count, chosen);
    for (int64_t q = 0; q < count; q++) {
        share[q] = 1 / (double)count;
    }
    DROP(ctx, &points);
    return FRG_OK;
}

frg_status frgi_coarse_side(frg_context *ctx, const frgi_costs *c, const double *w, int64_t count,
                            bool single, frgi_costs *out, double **share, int32_t **chosen)
{
    const char *const what = "farthest points";
    double *gap = NULL;
    int32_t *nearest = NULL;
    frg_status status = FRG_OK;
    *out = (frgi_costs){0};
    TRY_TO(done, NEW(ctx, &gap, c->rows, what));
    TRY_TO(done, NEW(ctx, &nearest, c->rows, what));
    TRY_TO(done, NEW(ctx, share, count, what));
    TRY_TO(done, NEW(ctx, chosen, count, what));
    TRY_TO(done, frgi_costs_open(out, ctx, count, count, single, what));
    if (count > FRGI_FARTHEST && count < c->rows) {
        TRY_TO(done, spread_side(ctx, c, w, count, *share, *chosen));
    } else {
        farthest(c, w, count, gap, nearest, *chosen, *share);
    }
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < count; k++) {
            frgi_costs_put(out, i, k, frgi_costs_get(c, (*chosen)[i], (*chosen)[k]));
        }
    }
done:
    DROP(ctx, &gap);
    DROP(ctx, &nearest);
    return status;
}

/* ---- plans among all points ------------------------------------------------------------------ */

/** Rows of a plan that look for their images. */
typedef struct {
    const frgi_spaces *s;
    frgi_products products;
    int64_t count;
    int32_t *x, *y;      /* count: points, and their images now */
    frgi_costs costs;    /* count x m */
    float *left, *right; /* AT_ONCE rows of C among the points, of D to all */
    double *square;      /* m: sum_l D_(j j_l)^2 */
} placing;

static frg_status open_placing(placing *p, const frgi_spaces *s)
{
    const char *const what = "images of points";
    const int64_t most = s->n < PLACED ? s->n : PLACED;
    *p = (placing){.s = s};
    TRY(frgi_products_open(&p->products, s->ctx, frg_threads(s->ctx), true));
    TRY(NEW(s->ctx, &p->x, most, what));
    TRY(NEW(s->ctx, &p->y, most, what));
    TRY(frgi_costs_open(&p->costs, s->ctx, most, s->m, true, what));
    TRY(NEW0(s->ctx, &p->left, AT_ONCE * frgi_costs_ld(most), what));
    TRY(NEW0(s->ctx, &p->right, AT_ONCE * s->y.ld, what));
    return NEW(s->ctx, &p->square, s->m, what);
}

static void close_placing(placing *p)
{
    frg_context *const ctx = p->s->ctx;
    frgi_products_close(&p->products);
    DROP(ctx, &p->x);
    DROP(ctx, &p->y);
    frgi_costs_close(&p->costs, ctx);
    DROP(ctx, &p->left);
    DROP(ctx, &p->right);
    DROP(ctx, &p->square);
}

/** PLACED entries of a plan at most, evenly spaced. */
static void take_rows(placing *p, const frgi_sparse *plan)
{
    p->count = plan->count < p->costs.rows ? plan->count : p->costs.rows;
    for (int64_t k = 0; k < p->count; k++) {
        const frgi_entry *const at = &plan->entries[k * plan->count / p->count];
        p->x[k] = at->i;
        p->y[k] = at->j;
    }
}

/** costs <- -2 sum_l C_(i_k i_l) D_(j_l j), square <- sum_l D_(j_l j)^2. */
static void placing_costs(placing *p)
{
    const frgi_spaces *const s = p->s;
    const int64_t ld = frgi_costs_ld(p->count), ld_y = s->y.ld;
    frgi_costs to = {p->costs.at, p->count, s->m, ld_y, true};
    memset(p->square, 0, (size_t)s->m * sizeof *p->square);
    for (int64_t first = 0; first < p->count; first += AT_ONCE) {
        const int64_t many = p->count - first < AT_ONCE ? p->count - first : AT_ONCE;
        for (int64_t l = 0; l < many; l++) {
            const float *const x = frgi_costs_row(&s->x, p->x[first + l]);
            const float *const y = frgi_costs_row(&s->y, p->y[first + l]);
            for (int64_t k = 0; k < p->count; k++) {
                p->left[l * ld + k] = x[p->x[k]];
            }
            for (int64_t j = 0; j < s->m; j++) {
                p->right[l * ld_y + j] = y[j];
                p->square[j] += (double)y[j] * (double)y[j];
            }
        }
        frgi_costs_blend(&p->products, first > 0, &to, p->left, ld, p->right, ld_y, many, -2);
    }
}

/** Each point takes the image that fits the others' best. */
static void take_images(placing *p)
{
    placing_costs(p);
#pragma omp parallel for schedule(static) num_threads(frg_threads(p->s->ctx))
    for (int64_t k = 0; k < p->count; k++) {
        const float *const row = (const float *)p->costs.at + k * p->costs.ld;
        int64_t best = 0;
        double least = (double)INFINITY;
        for (int64_t j = 0; j < p->s->m; j++) {
            const double cost = p->square[j] + (double)row[j];
            best = cost < least ? j : best;
            least = cost < least ? cost : least;
        }
        p->y[k] = (int32_t)best;
    }
}

/** sum_kl (C_(i_k i_l) - D_(j_k j_l))^2 / count^2 */
static double placing_energy(const placing *p)
{
    double of_row[PLACED] = {0}, sum;
#pragma omp parallel for schedule(static, 16) num_threads(frg_threads(p->s->ctx))
    for (int64_t k = 0; k < p->count; k++) { /* the later, the longer */
        for (int64_t l = 0; l < k; l++) {
            const double gap = frgi_costs_get(&p->s->x, p->x[k], p->x[l]) -
                               frgi_costs_get(&p->s->y, p->y[k], p->y[l]);
            of_row[k] += 2 * gap * gap;
        }
    }
    frgi_tree_rows(of_row, p->count, 1, 1, &sum);
    return sum / ((double)p->count * (double)p->count);
}

frg_status frgi_place_best(const frgi_spaces *s, frgi_sparse *plans, int64_t *count,
                           graph_tasks *tasks)
{
    placing p = {.s = s};
    double least = (double)INFINITY;
    int64_t best = 0;
    frg_status status = FRG_OK;
    if (*count < 2) {
        return FRG_OK;
    }
    TRY_TO(done, open_placing(&p, s));
    for (int64_t q = 0; q < *count; q++) {
        double energy = (double)INFINITY;
        take_rows(&p, &plans[q]);
        for (int step = 0; step < PLACINGS && graph_tasks_poll(tasks, s->ctx); step++) {
            take_images(&p);
            energy = fmin(energy, placing_energy(&p));
        }
        best = energy < least ? q : best;
        least = fmin(energy, least);
    }
    const frgi_sparse first = plans[0];
    plans[0] = plans[best];
    plans[best] = first;
    *count = 1;
done:
    close_placing(&p);
    return status;
}
