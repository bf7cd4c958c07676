/* graph_paths.c - shortest paths: one source, batches of sixteen, all pairs; landmarks.
 *
 * Which way is taken by the sources asked for:
 *   fewer than 4             Dijkstra with a 4-ary heap, one after the other
 *   more                     label correction with 16 sources at a time (graph_cpu.c); the
 *                            sources are sorted by proximity first, and nodes and arcs are
 *                            renumbered by it, so that a batch stays in one corner of the graph and
 *                            of memory (64 n bytes of distances, 320 KB at 5000 nodes); a batch
 *                            that visits its arcs more than MOST_VISITS times on average, as
 *                            lengths that fall by halves make it, is done again by Dijkstra
 *   all, of a dense graph    Floyd and Warshall by tiles of 64 x 64: n^3 steps instead of n arcs
 * The first two give the same bits: of lengths >= 0, as rounding is monotone, both find the least
 * over all paths of the sums rounded arc by arc from the source on.  The third adds in another
 * order.
 */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "core/host_alone.h"
#include "graph/graph.h"
#include "graph/graph_tasks.h"

enum { FEW = 4, PIVOTS = 8 };
/* Dijkstra for 16 sources, 16 times the arcs with a heap, costs about as much as 64 visits of 16
 * lanes each: a batch that gives up has taken no longer than what follows */
enum { MOST_VISITS = 64 };

/* ---- one source ------------------------------------------------------------------------------ */

typedef struct {
    float key;
    int32_t node;
} heap_entry;

/** Shortest paths from one node by Dijkstra's algorithm with a 4-ary heap; heap: arcs + 1
 *  entries. */
static void dijkstra(const frg_graph *g, int32_t source, float *distance, heap_entry *heap)
{
    for (int64_t v = 0; v < g->n; v++) {
        distance[v] = INFINITY;
    }
    distance[source] = 0;
    int64_t size = 1;
    heap[0] = (heap_entry){0, source};
    while (size) {
        const heap_entry top = heap[0], last = heap[--size];
        int64_t hole = 0;
        for (int64_t child = 1; child < size; child = 4 * hole + 1) {
            int64_t least = child;
            for (int64_t c = child + 1; c < child + 4 && c < size; c++) {
                least = heap[c].key < heap[least].key ? c : least;
            }
            if (!(heap[least].key < last.key)) {
                break;
            }
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = last;
        if (top.key > distance[top.node]) {
            continue; /* a shorter path was found since */
        }
        for (int64_t e = g->starts[top.node]; e < g->starts[top.node + 1]; e++) {
            const int32_t to = g->targets[e];
            const float through = top.key + g->lengths[e];
            if (!(through < distance[to])) {
                continue;
            }
            distance[to] = through;
            int64_t at = size++;
            for (; at > 0 && through < heap[(at - 1) / 4].key; at = (at - 1) / 4) {
                heap[at] = heap[(at - 1) / 4];
            }
            heap[at] = (heap_entry){through, to};
        }
    }
}

/* The next landmark is argmax over v of min over the landmarks l so far of d(l, v), from node 0 on
 * (de Silva and Tenenbaum 2004, maxmin). */
frg_status frgi_landmark_rows(const frg_graph *g, int64_t count, int64_t *nodes, float *rows,
                              int64_t *found)
{
    heap_entry *heap = NULL;
    float *closest = NULL;
    frg_status status = FRG_OK;
    int64_t chosen = 0;
    int32_t next = 0;
    TRY_TO(done, NEW(g->ctx, &heap, g->report.arcs + 1, "a heap"));
    TRY_TO(done, NEW(g->ctx, &closest, g->n, "landmarks"));
    for (int64_t v = 0; v < g->n; v++) {
        closest[v] = INFINITY;
    }
    while (chosen < count) {
        float *const row = rows + chosen * g->n;
        nodes[chosen++] = next;
        dijkstra(g, next, row, heap);
        float farthest = 0; /* what cannot be reached is never chosen */
        for (int64_t v = 0; v < g->n; v++) {
            closest[v] = fminf(closest[v], row[v]);
            if (closest[v] > farthest && closest[v] < INFINITY) {
                farthest = closest[v];
                next = (int32_t)v;
            }
        }
        if (!(farthest > 0)) {
            break;
        }
    }
    *found = chosen;
done:
    DROP(g->ctx, &heap);
    DROP(g->ctx, &closest);
    return status;
}

/* ---- order of proximity of a bare graph ------------------------------------------------------ */

/** Distances to a few landmarks stand for coordinates. */
static frg_status find_order(frg_graph *g)
{
    if (g->order) {
        return FRG_OK;
    }
    frg_context *const ctx = g->ctx;
    float *rows = NULL, *features = NULL;
    int32_t *order = NULL;
    int64_t nodes[PIVOTS], found = 0;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(ctx, &rows, PIVOTS * g->n, "pivots"));
    TRY_TO(done, NEW(ctx, &features, PIVOTS * g->n, "pivots"));
    TRY_TO(done, NEW(ctx, &order, g->n, "an order of the nodes"));
    TRY_TO(done, frgi_landmark_rows(g, g->n < PIVOTS ? g->n : PIVOTS, nodes, rows, &found));
    for (int64_t v = 0; v < g->n; v++) {
        order[v] = (int32_t)v;
        for (int64_t l = 0; l < found; l++) {
            const float x = rows[l * g->n + v];
            features[v * found + l] = x < INFINITY ? x : 2e30f; /* other components apart */
        }
    }
    frgi_bisect(features, found, order, g->n);
    g->order = order;
    order = NULL;
done:
    DROP(ctx, &rows);
    DROP(ctx, &features);
    DROP(ctx, &order);
    return status;
}

/* ---- sixteen sources at a time --------------------------------------------------------------- */

typedef struct {
    int64_t *starts; /* renumbered by proximity */
    frgi_arc *arcs;
    int32_t *place; /* of a node in the order */
    float width;
} renumbered;

typedef struct {
    frgi_search s;
    int32_t *heads;
} workspace;

static void layout_graph(frgi_arena *a, const frg_graph *g, renumbered *r)
{
    r->starts = TAKE(a, int64_t, g->n + 1);
    r->arcs = TAKE(a, frgi_arc, g->report.arcs);
    r->place = TAKE(a, int32_t, g->n);
}

static void layout_work(frgi_arena *a, int64_t n, workspace *w)
{
    w->s.distance = TAKE(a, float, n *FRGI_LANES);
    w->s.key = TAKE(a, float, n);
    w->s.next = TAKE(a, int32_t, n);
    w->s.before = TAKE(a, int32_t, n);
    w->s.bucket = TAKE(a, int32_t, n);
    w->heads = TAKE(a, int32_t, FRGI_BUCKETS);
}

static void renumber(const frg_graph *g, renumbered *r)
{
    for (int64_t p = 0; p < g->n; p++) {
        r->place[g->order[p]] = (int32_t)p;
    }
    double total = 0;
    int64_t at = 0;
    r->starts[0] = 0;
    for (int64_t p = 0; p < g->n; p++) {
        const int32_t v = g->order[p];
        for (int64_t e = g->starts[v]; e < g->starts[v + 1]; e++) {
            r->arcs[at++] = (frgi_arc){r->place[g->targets[e]], g->lengths[e]};
            total += (double)g->lengths[e];
        }
        r->starts[p + 1] = at;
    }
    /* half the mean length: the best of half, one, two and four, measured at 5000 nodes */
    r->width = at && total > 0 ? (float)(0.5 * total / (double)at) : 1;
    r->width = r->width > 1e-30f ? r->width : 1e-30f;
}

/** One batch after another; sorted[i]: place << 32 | index of the source asked for. */
typedef struct {
    const frg_graph *g;
    const renumbered *r;
    const uint64_t *sorted;
    int64_t count;
    float *rows;
    int64_t stride;
    const char *solver;
    bool *gave_up; /* batches that are still to be done */
} batches;

static int64_t batches_of(int64_t sources)
{
    return (sources + FRGI_LANES - 1) / FRGI_LANES;
}

static int64_t run_batch(const batches *b, workspace *w, float *scratch, int64_t batch)
{
    const frgi_graph_ops *const ops = frgi_graph_ops_of(b->g->ctx);
    const int64_t first = batch * FRGI_LANES;
    const int lanes = (int)(b->count - first < FRGI_LANES ? b->count - first : FRGI_LANES);
    int32_t sources[FRGI_LANES];
    bool in_order = true;
    for (int l = 0; l < lanes; l++) {
        sources[l] = (int32_t)(b->sorted[first + l] >> 32);
        in_order &=
            (b->sorted[first + l] & UINT32_MAX) == (b->sorted[first] & UINT32_MAX) + (uint64_t)l;
    }
    const int64_t visits = ops->search(&w->s, sources, lanes, w->heads);
    const int64_t n = b->g->n;
    b->gave_up[batch] = visits > w->s.most_visits;
    if (b->gave_up[batch]) {
        return visits;
    }
    if (in_order) { /* the rows lie side by side */
        float *const to = b->rows + (int64_t)(b->sorted[first] & UINT32_MAX) * b->stride;
        ops->spread(n, w->s.distance, b->r->place, lanes, to, b->stride);
        return visits;
    }
    ops->spread(n, w->s.distance, b->r->place, lanes, scratch, n);
    for (int l = 0; l < lanes; l++) {
        memcpy(b->rows + (int64_t)(b->sorted[first + l] & UINT32_MAX) * b->stride, scratch + l * n,
               (size_t)n * sizeof(float));
    }
    return visits;
}

static int by_place(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static frg_status run_batches(batches *b, int threads, workspace *work, float *scratch,
                              int64_t *visits)
{
    const int64_t count = batches_of(b->count);
    graph_tasks tasks = {.solver = b->solver};
    int64_t visited = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < count; i++) {
        const int me = omp_get_thread_num();
        if (!graph_tasks_go_on(&tasks)) {
            continue;
        }
        const int64_t v = run_batch(b, &work[me], scratch + me * FRGI_LANES * b->g->n, i);
#pragma omp atomic
        visited += v;
        graph_tasks_count(&tasks, b->solver ? b->g->ctx : NULL, "paths", FRGI_LANES, b->count);
    }
    *visits = visited;
    return (frg_status)tasks.status;
}

/** Source by source what the batches gave up; *sources <- how many. */
static frg_status finish_batches(const batches *b, int threads, int64_t *sources)
{
    frg_context *const ctx = b->g->ctx;
    const int64_t capacity = b->g->report.arcs + 1;
    int64_t left = 0;
    for (int64_t i = 0; i < b->count; i++) {
        left += b->gave_up[i / FRGI_LANES];
    }
    *sources = left;
    if (left == 0) {
        return FRG_OK;
    }
    heap_entry *heaps;
    TRY(NEW(ctx, &heaps, frgi_mul((size_t)threads, (size_t)capacity), "heaps"));
    graph_tasks tasks = {.solver = b->solver};
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < b->count; i++) {
        if (b->gave_up[i / FRGI_LANES] && graph_tasks_go_on(&tasks)) {
            const int64_t source = (int64_t)(b->sorted[i] & UINT32_MAX);
            dijkstra(b->g, b->g->order[b->sorted[i] >> 32], b->rows + source * b->stride,
                     heaps + omp_get_thread_num() * capacity);
            graph_tasks_count(&tasks, b->solver ? ctx : NULL, "paths", 1, left);
        }
    }
    DROP(ctx, &heaps);
    return (frg_status)tasks.status;
}

/** The lesser of 2^62 and `times` visits of every arc. */
static int64_t visits_of(int64_t arcs, int64_t times)
{
    return arcs < INT64_MAX / 2 / times ? arcs * times : INT64_MAX / 2;
}

static frg_status label_correction(const frg_graph *g, const int32_t *sources, int64_t count,
                                   float *rows, int64_t stride, const char *solver,
                                   frg_paths_report *report)
{
    frg_context *const ctx = g->ctx;
    const int64_t n_batches = batches_of(count);
    const int threads = (int)(frg_threads(ctx) < n_batches ? frg_threads(ctx) : n_batches);
    TRY(find_order((frg_graph *)(uintptr_t)g)); /* a cache: the graph stays what it is */
    renumbered r = {0};
    workspace *work = NULL;
    uint64_t *sorted = NULL;
    float *scratch = NULL;
    bool *gave_up = NULL;
    frgi_arena graph = {0}, memory = {0};
    frg_status status = FRG_OK;
    layout_graph(&graph, g, &r);
    TRY_TO(done, frgi_arena_open(&graph, ctx, "paths"));
    layout_graph(&graph, g, &r);
    renumber(g, &r);
    TRY_TO(done, NEW0(ctx, &work, threads, "paths"));
    for (int t = 0; t < threads; t++) {
        layout_work(&memory, g->n, &work[t]);
    }
    TRY_TO(done, frgi_arena_open(&memory, ctx, "paths"));
    for (int t = 0; t < threads; t++) {
        layout_work(&memory, g->n, &work[t]);
        work[t].s.n = g->n;
        work[t].s.starts = r.starts;
        work[t].s.arcs = r.arcs;
        work[t].s.bucket_width = r.width;
        work[t].s.most_visits = visits_of(g->report.arcs, MOST_VISITS);
    }
    TRY_TO(done, NEW(ctx, &sorted, count, "paths"));
    TRY_TO(done, NEW(ctx, &scratch, threads * FRGI_LANES * g->n, "paths"));
    for (int64_t i = 0; i < count; i++) {
        sorted[i] = (uint64_t)r.place[sources[i]] << 32 | (uint64_t)i;
    }
    frgi_sort(sorted, count, sizeof *sorted, by_place, NULL);
    TRY_TO(done, NEW0(ctx, &gave_up, n_batches, "paths"));
    batches b = {g, &r, sorted, count, rows, stride, solver, gave_up};
    int64_t visits = 0, again = 0;
    status = run_batches(&b, threads, work, scratch, &visits);
    if (status == FRG_OK) {
        status = finish_batches(&b, threads, &again);
    }
    const double arcs = (double)g->report.arcs * (double)n_batches;
    *report =
        (frg_paths_report){.method = again ? "label correction, dijkstra" : "label correction",
                           .sources = count,
                           .relaxations_per_arc = arcs > 0 ? (double)visits / arcs : 0};
done:
    DROP(ctx, &work);
    DROP(ctx, &sorted);
    DROP(ctx, &scratch);
    DROP(ctx, &gave_up);
    frgi_arena_close(&graph, ctx);
    frgi_arena_close(&memory, ctx);
    return status;
}

static frg_status one_by_one(const frg_graph *g, const int32_t *sources, int64_t count, float *rows,
                             int64_t stride, frg_paths_report *report)
{
    heap_entry *heap;
    TRY(NEW(g->ctx, &heap, g->report.arcs + 1, "a heap"));
    for (int64_t i = 0; i < count; i++) {
        dijkstra(g, sources[i], rows + i * stride, heap);
    }
    DROP(g->ctx, &heap);
    *report = (frg_paths_report){.method = "dijkstra", .sources = count, .relaxations_per_arc = 1};
    return FRG_OK;
}

/* ---- dense graphs ---------------------------------------------------------------------------- */

static void fill_dense(const frg_graph *g, float *c, int64_t ld)
{
    for (int64_t i = 0; i < ld; i++) {
        for (int64_t j = 0; j < ld; j++) {
            c[i * ld + j] = i == j ? 0 : INFINITY;
        }
        for (int64_t e = i < g->n ? g->starts[i] : 0; i < g->n && e < g->starts[i + 1]; e++) {
            c[i * ld + g->targets[e]] = g->lengths[e];
        }
    }
}

/** For each diagonal tile k: itself, then its row and column of tiles, then all others. */
static frg_status floyd_warshall(const frg_graph *g, float *rows, int64_t stride,
                                 const char *solver, frg_paths_report *report)
{
    frg_context *const ctx = g->ctx;
    const frgi_graph_ops *const ops = frgi_graph_ops_of(ctx);
    const int64_t tiles = (g->n + FRGI_TILE - 1) / FRGI_TILE, ld = tiles * FRGI_TILE;
    float *c;
    TRY(NEW(ctx, &c, frgi_mul((size_t)ld, (size_t)ld), "all pairs of nodes"));
    fill_dense(g, c, ld);
    graph_tasks tasks = {.solver = solver}; /* a task: a row of tiles */
    for (int64_t k = 0; k < tiles && tasks.status == FRG_OK; k++) {
        const int64_t step = FRGI_TILE * ld;
        float *const row = c + k * step, *const pivot = row + k * FRGI_TILE;
        ops->tile(pivot, pivot, pivot, ld, true);
#pragma omp parallel num_threads(frg_threads(ctx)) if (tiles > 2)
        {
#pragma omp for schedule(dynamic, 4)
            for (int64_t j = 0; j < tiles; j++) {
                if (j != k) {
                    ops->tile(row + j * FRGI_TILE, pivot, row + j * FRGI_TILE, ld, true);
                    float *const left = c + j * step + k * FRGI_TILE;
                    ops->tile(left, left, pivot, ld, true);
                }
            }
#pragma omp for schedule(dynamic, 4)
            for (int64_t i = 0; i < tiles; i++) {
                if (!graph_tasks_go_on(&tasks)) {
                    continue;
                }
                for (int64_t j = 0; j < tiles && i != k; j++) {
                    if (j != k) {
                        ops->tile(c + i * step + j * FRGI_TILE, c + i * step + k * FRGI_TILE,
                                  row + j * FRGI_TILE, ld, false);
                    }
                }
                graph_tasks_count(&tasks, solver ? ctx : NULL, "paths", 1, tiles * tiles);
            }
        }
    }
    const frg_status status = (frg_status)tasks.status;
    for (int64_t i = 0; i < g->n && status == FRG_OK; i++) {
        memcpy(rows + i * stride, c + i * ld, (size_t)g->n * sizeof *c);
    }
    DROP(ctx, &c);
    *report = (frg_paths_report){
        .method = "floyd-warshall", .sources = g->n, .relaxations_per_arc = (double)NAN};
    return status;
}

static bool is_all(const frg_graph *g, const int32_t *sources, int64_t count)
{
    bool all = count == g->n;
    for (int64_t i = 0; all && i < count; i++) {
        all = sources[i] == i;
    }
    return all;
}

frg_status frgi_path_rows(const frg_graph *g, const int32_t *sources, int64_t count, float *rows,
                          int64_t stride, const char *solver, frg_paths_report *report)
{
    const double start = frgi_seconds();
    /* measured at 2500 nodes: a visit of an arc for 16 sources costs as much as 6 to 8 steps of
     * tiles */
    const bool dense = (double)g->report.arcs > (double)g->n * (double)g->n / 6;
    frg_status status;
    if (count < FEW) {
        status = one_by_one(g, sources, count, rows, stride, report);
    } else if (dense && g->n >= FRGI_TILE && is_all(g, sources, count)) {
        status = floyd_warshall(g, rows, stride, solver, report);
    } else {
        status = label_correction(g, sources, count, rows, stride, solver, report);
    }
    report->seconds = frgi_seconds() - start;
    return status;
}

/* ---- public ---------------------------------------------------------------------------------- */

/** to[i][j] <- from[i * ld + j] (or its transpose) for any type and strides. */
static void copy_out(const float *from, int64_t row, int64_t column, const frg_array *to)
{
    char *const base = frgi_array_base(to);
    for (int64_t i = 0; i < to->shape[0]; i++) {
        for (int64_t j = 0; j < to->shape[1]; j++) {
            const int64_t at = i * to->stride[0] + j * to->stride[1];
            const float x = from[i * row + j * column];
            if (to->dtype == FRG_F64) {
                ((double *)(void *)base)[at] = (double)x;
            } else {
                ((float *)(void *)base)[at] = x;
            }
        }
    }
}

static frg_status check_sources(const frg_graph *g, const int64_t *sources, int64_t count,
                                int32_t *narrow)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t v = sources ? sources[i] : i;
        REQUIRE(g->ctx, v >= 0 && v < g->n, "source %lld is node %lld, nodes are 0 .. %lld",
                (long long)i + 1, (long long)v, (long long)g->n - 1);
        narrow[i] = (int32_t)v;
    }
    return FRG_OK;
}

frg_status frg_graph_paths(const frg_graph *g, const int64_t *sources, int64_t count, frg_array out,
                           frg_paths_report *report)
{
    if (!g) {
        return FRG_BAD_ARG;
    }
    frg_context *const ctx = g->ctx;
    TRY(frgi_host_alone(ctx, "shortest paths"));
    frgi_run_begins(ctx);
    TRY(frgi_array_check(ctx, &out, "out", 2, 1u << FRG_F32 | 1u << FRG_F64));
    const int64_t expected = sources ? count : g->n;
    if (out.shape[0] != expected || out.shape[1] != g->n) {
        FAIL(ctx, E_SHAPE, "out is %lld x %lld, %lld x %lld is needed", (long long)out.shape[0],
             (long long)out.shape[1], (long long)expected, (long long)g->n);
    }
    const bool direct = out.dtype == FRG_F32 && out.stride[1] == 1 && out.stride[0] >= g->n;
    int32_t *narrow = NULL;
    float *rows = NULL;
    frg_paths_report r = {0};
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(ctx, &narrow, expected, "sources"));
    TRY_TO(done, check_sources(g, sources, expected, narrow));
    if (!direct) {
        TRY_TO(done, NEW(ctx, &rows, frgi_mul((size_t)expected, (size_t)g->n), "paths"));
    }
    TRY_TO(done, frgi_path_rows(g, narrow, expected,
                                direct ? (float *)(void *)frgi_array_base(&out) : rows,
                                direct ? out.stride[0] : g->n, GRAPH_SOLVER, &r));
    if (!direct && status == FRG_OK) {
        copy_out(rows, g->n, 1, &out);
    }
    if (report) {
        *report = r;
    }
done:
    DROP(ctx, &narrow);
    DROP(ctx, &rows);
    return status;
}

frg_status frg_graph_landmarks(const frg_graph *g, int64_t count, int64_t *nodes, frg_array out,
                               int64_t *found)
{
    if (!g) {
        return FRG_BAD_ARG;
    }
    frg_context *const ctx = g->ctx;
    TRY(frgi_host_alone(ctx, "landmarks of a graph"));
    REQUIRE(ctx, nodes && found, "nodes and found must not be NULL");
    TRY(frgi_array_check(ctx, &out, "out", 2, 1u << FRG_F32 | 1u << FRG_F64));
    REQUIRE(ctx, count >= 1 && count <= g->n, "count is %lld, 1 to %lld landmarks can be chosen",
            (long long)count, (long long)g->n);
    if (out.shape[0] != g->n || out.shape[1] != count) {
        FAIL(ctx, E_SHAPE, "out is %lld x %lld, %lld x %lld is needed", (long long)out.shape[0],
             (long long)out.shape[1], (long long)g->n, (long long)count);
    }
    float *rows;
    TRY(NEW(ctx, &rows, frgi_mul((size_t)count, (size_t)g->n), "landmarks"));
    const frg_status status = frgi_landmark_rows(g, count, nodes, rows, found);
    if (status >= 0) {
        out.shape[1] = *found;
        copy_out(rows, 1, g->n, &out);
    }
    DROP(ctx, &rows);
    return status;
}

/* max_l |z_l - w_l| <= d <= min_l (z_l + w_l) */
void frg_landmark_bounds(const float *z, const float *w, int64_t n_landmarks, float *lower,
                         float *upper)
{
    if (!z) {
        return;
    }
    float low = 0, high = INFINITY;
    for (int64_t l = 0; l < n_landmarks; l++) {
        const float gap = fabsf(z[l] - w[l]);
        low = gap > low ? gap : low; /* false where both are infinite */
        high = fminf(high, z[l] + w[l]);
    }
    *lower = low;
    *upper = high;
}
