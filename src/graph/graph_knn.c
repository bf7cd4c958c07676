/* graph_knn.c - the graph of the k nearest neighbours, exact, and the edges that join its
 * components.
 *
 * All pairs are looked at, 4 points against 16 at a time: n^2 d / 16 vector steps, about 5 ms for
 * 5000 points in 5 dimensions and a second for 100 000, less than a tree costs up to there.
 * Differences come before squares, so that equal points are at distance 0 exactly and no digits are
 * lost far from the origin.
 *
 * Joining follows the rule "take the component of node 0, add the shortest edge that leaves it,
 * repeat", which is Prim's algorithm on the components; Boruvka's finds the same edges (ties apart)
 * in log2(components) searches of all points instead of one for each component.
 */
#include <math.h>
#include <string.h>

#include "core/host_alone.h"
#include "graph/graph.h"
#include "graph/graph_tasks.h"

enum { ROWS = 64 }; /* a thread takes so many points at a time */

typedef struct {
    int64_t n, d, k;
    float *points;    /* n x d */
    int32_t *order;   /* of proximity */
    float *blocks;    /* in that order, 16 side by side: block b, dimension c, point l at
                         [(b d + c) 16 + l] */
    float *squared;   /* n x k */
    int32_t *index;   /* n x k */
    frgi_edge *edges; /* n k, and one less than the components */
    int64_t n_edges;
    int32_t *component;
    const char *solver; /* of frg_progress */
} search_state;

frg_status frgi_check_apart(frg_context *ctx, const char *name, double most)
{
    if (most > 0 && most < 1e-18) {
        FAIL(ctx, E_DISTANCE,
             "the %s coordinates differ by %g at most, too little for f32: take a smaller unit",
             name, most);
    }
    return FRG_OK;
}

static frg_status load_points(frg_context *ctx, const frg_array *a, search_state *s)
{
    const char *const base = frgi_array_base(a);
    double most = 0;
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t c = 0; c < s->d; c++) {
            const int64_t at = i * a->stride[0] + c * a->stride[1];
            /* doubles are taken relative to the first point, so that f32 keeps what they differ
             * by */
            const double x = a->dtype == FRG_F64
                                 ? ((const double *)(const void *)base)[at] -
                                       ((const double *)(const void *)base)[c * a->stride[1]]
                                 : (double)((const float *)(const void *)base)[at];
            if (!(fabs(x) <= 1e18)) { /* squares of differences stay finite */
                frgi_at(ctx, "points, row %lld, column %lld", (long long)i + 1, (long long)c + 1);
                FAIL(ctx, E_COORDINATE, "a coordinate is %g", x);
            }
            s->points[i * s->d + c] = (float)x;
            most = fmax(most, fabs(x - (double)s->points[c]));
        }
    }
    TRY(frgi_check_apart(ctx, "points'", most));
    for (int64_t i = 0; i < s->n; i++) {
        s->order[i] = (int32_t)i;
    }
    frgi_bisect(s->points, s->d, s->order, s->n);
    const int64_t blocks = (s->n + FRGI_LANES - 1) / FRGI_LANES;
    for (int64_t b = 0; b < blocks; b++) {
        for (int64_t c = 0; c < s->d; c++) {
            for (int64_t l = 0; l < FRGI_LANES; l++) {
                const int64_t i = b * FRGI_LANES + l;
                s->blocks[(b * s->d + c) * FRGI_LANES + l] =
                    s->points[s->order[i < s->n ? i : s->n - 1] * s->d + c];
            }
        }
    }
    return FRG_OK;
}

/** What is looked for in rows first .. last-1. */
typedef void (*row_search)(const frgi_graph_ops *ops, search_state *s, int64_t first, int64_t last);

static void nearest_rows(const frgi_graph_ops *ops, search_state *s, int64_t first, int64_t last)
{
    ops->nearest(s->blocks, s->order, s->n, s->d, s->points, first, last, s->k, s->squared,
                 s->index);
}

static void outside_rows(const frgi_graph_ops *ops, search_state *s, int64_t first, int64_t last)
{
    ops->outside(s->blocks, s->order, s->n, s->d, s->points, s->component, first, last,
                 s->squared + first, s->index + first);
}

/** Searches all rows on all threads.  Positive: stopped, some of them undone. */
static frg_status search_rows(frg_context *ctx, search_state *s, row_search search)
{
    const frgi_graph_ops *const ops = frgi_graph_ops_of(ctx);
    const int64_t tasks = (s->n + ROWS - 1) / ROWS;
    graph_tasks done = {.solver = s->solver};
#pragma omp parallel for schedule(dynamic, 1) num_threads(frg_threads(ctx)) if (tasks > 1)
    for (int64_t p = 0; p < tasks; p++) {
        if (graph_tasks_go_on(&done)) {
            search(ops, s, p * ROWS, (p + 1) * ROWS < s->n ? (p + 1) * ROWS : s->n);
            graph_tasks_count(&done, ctx, "neighbours", 1, tasks);
        }
    }
    return (frg_status)done.status;
}

static frg_status find_neighbours(frg_context *ctx, search_state *s)
{
    const frg_status status = s->k ? search_rows(ctx, s, nearest_rows) : FRG_OK;
    for (int64_t i = 0; i < s->n && status == FRG_OK; i++) {
        for (int64_t q = 0; q < s->k; q++) {
            s->edges[s->n_edges++] =
                (frgi_edge){(int32_t)i, s->index[i * s->k + q], sqrtf(s->squared[i * s->k + q])};
        }
    }
    return status;
}

/** Is the edge i - index[i] shorter than j - index[j]?  A strict order, so that no round can close
 *  a cycle. */
static bool shorter(const search_state *s, int64_t i, int64_t j)
{
    const float a = s->squared[i], b = s->squared[j];
    const int32_t i_low = (int32_t)i < s->index[i] ? (int32_t)i : s->index[i];
    const int32_t j_low = (int32_t)j < s->index[j] ? (int32_t)j : s->index[j];
    const int32_t i_high = (int32_t)i < s->index[i] ? s->index[i] : (int32_t)i;
    const int32_t j_high = (int32_t)j < s->index[j] ? s->index[j] : (int32_t)j;
    return a != b ? a < b : i_low != j_low ? i_low < j_low : i_high < j_high;
}

/** Joins the components; best, joined: a number for each.  Positive:
 *  stopped. */
static frg_status stitch(frg_context *ctx, search_state *s, int64_t components, int64_t *best,
                         int32_t *joined)
{
    while (components > 1) {
        const frg_status status = search_rows(ctx, s, outside_rows);
        if (status != FRG_OK) {
            return status;
        }
        for (int64_t c = 0; c < components; c++) {
            best[c] = -1;
            joined[c] = (int32_t)c;
        }
        for (int64_t i = 0; i < s->n; i++) {
            int64_t *const b = &best[s->component[i]];
            if (*b < 0 || shorter(s, i, *b)) {
                *b = i;
            }
        }
        /* two components may have chosen the same edge, or some of them edges of the same length
         * around a ring: what is joined already is left */
        for (int64_t c = 0; c < components; c++) {
            const int64_t i = best[c];
            const int32_t own = frgi_root_of(joined, (int32_t)c),
                          other = frgi_root_of(joined, s->component[s->index[i]]);
            if (own != other) {
                joined[own] = other;
                s->edges[s->n_edges++] = (frgi_edge){(int32_t)i, s->index[i], sqrtf(s->squared[i])};
            }
        }
        components = frgi_components(s->n, s->edges, s->n_edges, s->component);
    }
    return FRG_OK;
}

static void layout(frgi_arena *a, search_state *s)
{
    const int64_t blocks = (s->n + FRGI_LANES - 1) / FRGI_LANES;
    s->points = TAKE(a, float, s->n * s->d);
    s->blocks = TAKE(a, float, blocks *FRGI_LANES * s->d);
    s->squared = TAKE(a, float, s->n * s->k);
    s->index = TAKE(a, int32_t, s->n * s->k);
    s->edges = TAKE(a, frgi_edge, s->n * (s->k + 1));
    s->component = TAKE(a, int32_t, s->n);
}

static frg_status build(frg_graph **out, frg_context *ctx, const frg_array *points, search_state *s,
                        bool join)
{
    TRY(load_points(ctx, points, s));
    frg_status status = find_neighbours(ctx, s);
    if (status != FRG_OK) {
        return status;
    }
    const int64_t found = s->n_edges;
    const int64_t components = frgi_components(s->n, s->edges, found, s->component);
    if (join && components > 1) {
        int64_t *best;
        int32_t *joined = NULL;
        TRY(NEW(ctx, &best, components, "components"));
        status = NEW(ctx, &joined, components, "components");
        status = status < 0 ? status : stitch(ctx, s, components, best, joined);
        DROP(ctx, &best);
        DROP(ctx, &joined);
    }
    frg_graph *g = NULL;
    if (status == FRG_OK) {
        status = frgi_graph_build(&g, ctx, s->n, s->edges, s->n_edges, false);
    }
    if (status != FRG_OK) {
        return status;
    }
    g->order = s->order; /* passes to the graph */
    s->order = NULL;
    g->report.stitched = s->n_edges - found;
    *out = g;
    return FRG_OK;
}

frg_status frgi_graph_knn(frg_graph **out, frg_context *ctx, frg_array points,
                          const frg_graph_opts *given, const char *solver)
{
    frg_graph_opts o;
    frg_graph_defaults(&o, sizeof o);
    TRY(frgi_take_opts(ctx, &o, sizeof o, given));
    TRY(frgi_array_check(ctx, &points, "points", 2, 1u << FRG_F32 | 1u << FRG_F64));
    search_state s = {.n = points.shape[0], .d = points.shape[1], .k = o.k, .solver = solver};
    REQUIRE(ctx, s.n >= 1 && s.n < INT32_MAX && s.d >= 1,
            "points has the shape %lld x %lld, 1 to 2^31 - 2 rows and at least 1 column are needed",
            (long long)s.n, (long long)s.d);
    if (o.k_clamp && s.k >= s.n) {
        s.k = s.n - 1;
    }
    REQUIRE(ctx, s.n == 1 || (s.k >= 1 && s.k < s.n),
            "k is %lld, %lld points have 1 to %lld neighbours (k_clamp takes as many as there are)",
            (long long)o.k, (long long)s.n, (long long)s.n - 1);
    s.k = s.n == 1 ? 0 : s.k;
    frgi_arena arena = {0};
    layout(&arena, &s);
    TRY(frgi_arena_open(&arena, ctx, "nearest neighbours"));
    layout(&arena, &s);
    frg_status status = NEW(ctx, &s.order, s.n, "an order of the points");
    if (status >= 0) {
        status = build(out, ctx, &points, &s, o.stitch != 0);
    }
    DROP(ctx, &s.order);
    frgi_arena_close(&arena, ctx);
    return status;
}

frg_status frg_graph_knn(frg_graph **out, frg_context *ctx, frg_array points,
                         const frg_graph_opts *o)
{
    REQUIRE(ctx, out && ctx, "frg_graph_knn takes a place for the graph and a context");
    *out = NULL;
    TRY(frgi_host_alone(ctx, "a graph of nearest neighbours"));
    frgi_run_begins(ctx);
    return frgi_graph_knn(out, ctx, points, o, GRAPH_SOLVER);
}
