/* graph.c - graphs: built from arcs, components, order of proximity.
 *
 * Rows are sorted by two counting sorts (by target, then by tail), parallel arcs are merged on the
 * way: linear in the arcs, and the result does not depend on the order they came in.
 */
#include "graph/graph.h"
#include "core/opts.h"

#include <math.h>
#include <string.h>

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(frgi_graph_ops, frgi_graph_ops);
#pragma GCC visibility pop

const frgi_graph_ops *frgi_graph_ops_of(const frg_context *ctx)
{
    static const frgi_graph_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_graph_ops);
    return table[frgi_context_isa(ctx)];
}

#define OPTIONS_OF frg_graph_opts
static const frg_option options[] = {
#include "graph/graph_opts.def"
    {.name = NULL}};

const frg_option *frg_graph_options(void)
{
    return options;
}

void frg_graph_defaults(frg_graph_opts *o, size_t struct_size)
{
    frg_graph_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

/* ---- components ------------------------------------------------------------------------------ */

/* The path is halved on the way (Tarjan and van Leeuwen 1984). */
int32_t frgi_root_of(int32_t *parent, int32_t v)
{
    while (parent[v] != v) {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    return v;
}

int64_t frgi_components(int64_t n, const frgi_edge *edges, int64_t count, int32_t *component)
{
    for (int64_t v = 0; v < n; v++) {
        component[v] = (int32_t)v;
    }
    for (int64_t e = 0; e < count; e++) {
        const int32_t a = frgi_root_of(component, edges[e].from),
                      b = frgi_root_of(component, edges[e].to);
        component[a > b ? a : b] = a > b ? b : a;
    }
    /* a parent is lower than its child, so it has its number when the child's turn comes */
    int32_t seen = 0;
    for (int64_t v = 0; v < n; v++) {
        const int32_t up = component[v];
        component[v] = up == v ? -1 - seen++ : component[up];
    }
    for (int64_t v = 0; v < n; v++) {
        component[v] = -1 - component[v];
    }
    return seen;
}

/* ---- building -------------------------------------------------------------------------------- */

/** sorted <- edges in order of (by tail ? from : to), stable; at: n + 1 counters. */
static void sort_edges(const frgi_edge *edges, int64_t count, frgi_edge *sorted, int64_t n,
                       int64_t *at, bool by_tail)
{
    memset(at, 0, (size_t)(n + 1) * sizeof *at);
    for (int64_t e = 0; e < count; e++) {
        at[(by_tail ? edges[e].from : edges[e].to) + 1]++;
    }
    for (int64_t v = 0; v < n; v++) {
        at[v + 1] += at[v];
    }
    for (int64_t e = 0; e < count; e++) {
        sorted[at[by_tail ? edges[e].from : edges[e].to]++] = edges[e];
    }
}

/** edges, sorted, without parallels and loops; returns their number. */
static int64_t merge_parallel(frgi_edge *edges, int64_t count)
{
    int64_t kept = 0;
    for (int64_t e = 0; e < count; e++) {
        const frgi_edge x = edges[e];
        if (x.from == x.to) {
            continue;
        }
        if (kept && edges[kept - 1].from == x.from && edges[kept - 1].to == x.to) {
            edges[kept - 1].length = fminf(edges[kept - 1].length, x.length);
        } else {
            edges[kept++] = x;
        }
    }
    return kept;
}

frg_status frgi_graph_build(frg_graph **out, frg_context *ctx, int64_t n, const frgi_edge *edges,
                            int64_t count, bool directed)
{
    frg_status status = FRG_OK;
    frg_graph *g = NULL;
    frgi_edge *first = NULL, *second = NULL;
    int32_t *component = NULL;
    const int64_t most = directed ? count : 2 * count;
    TRY(NEW0(ctx, &g, 1, "a graph"));
    g->ctx = ctx;
    g->n = n;
    TRY_TO(done, NEW(ctx, &g->starts, n + 2, "a graph"));
    TRY_TO(done, NEW(ctx, &first, most, "arcs"));
    TRY_TO(done, NEW(ctx, &second, most, "arcs"));
    TRY_TO(done, NEW(ctx, &component, n, "components"));
    if (count) {
        memcpy(first, edges, (size_t)count * sizeof *first);
    }
    for (int64_t e = 0; e < count && !directed; e++) {
        first[count + e] = (frgi_edge){edges[e].to, edges[e].from, edges[e].length};
    }
    sort_edges(first, most, second, n, g->starts, false);
    sort_edges(second, most, first, n, g->starts, true);
    const int64_t arcs = merge_parallel(first, most);
    TRY_TO(done, NEW(ctx, &g->targets, arcs, "a graph"));
    TRY_TO(done, NEW(ctx, &g->lengths, arcs, "a graph"));
    memset(g->starts, 0, (size_t)(n + 1) * sizeof *g->starts);
    for (int64_t e = 0; e < arcs; e++) {
        g->starts[first[e].from + 1]++;
        g->targets[e] = first[e].to;
        g->lengths[e] = first[e].length;
    }
    for (int64_t v = 0; v < n; v++) {
        g->starts[v + 1] += g->starts[v];
    }
    g->report = (frg_graph_report){.n = n,
                                   .arcs = arcs,
                                   .components = frgi_components(n, first, arcs, component),
                                   .directed = directed};
done:
    DROP(ctx, &first);
    DROP(ctx, &second);
    DROP(ctx, &component);
    if (status < 0) {
        frg_graph_destroy(g);
        return status;
    }
    *out = g;
    return FRG_OK;
}

void frg_graph_destroy(frg_graph *g)
{
    if (!g) {
        return;
    }
    frg_context *const ctx = g->ctx;
    DROP(ctx, &g->starts);
    DROP(ctx, &g->targets);
    DROP(ctx, &g->lengths);
    DROP(ctx, &g->order);
    DROP(ctx, &g);
}

frg_graph_report frg_graph_get(const frg_graph *g)
{
    if (!g) {
        return (frg_graph_report){0};
    }
    return g->report;
}

void frg_graph_arcs(const frg_graph *g, const int64_t **starts, const int32_t **targets,
                    const float **weights)
{
    if (!g) {
        return;
    }
    *starts = g->starts;
    *targets = g->targets;
    *weights = g->lengths;
}

/* ---- a caller's graph ------------------------------------------------------------------------ */

/** Element i of an integer vector. */
static int64_t whole(const frg_array *a, int64_t i)
{
    const char *const base = frgi_array_base(a);
    return a->dtype == FRG_I64 ? ((const int64_t *)(const void *)base)[i * a->stride[0]]
                               : ((const int32_t *)(const void *)base)[i * a->stride[0]];
}

static double real(const frg_array *a, int64_t i)
{
    const char *const base = frgi_array_base(a);
    return a->dtype == FRG_F64 ? ((const double *)(const void *)base)[i * a->stride[0]]
                               : (double)((const float *)(const void *)base)[i * a->stride[0]];
}

static frg_status fill_edges(frg_context *ctx, const frg_array *starts, const frg_array *targets,
                             const frg_array *weights, frgi_edge *edges)
{
    const int64_t n = starts->shape[0] - 1;
    for (int64_t v = 0; v < n; v++) {
        for (int64_t e = whole(starts, v); e < whole(starts, v + 1); e++) {
            const int64_t to = whole(targets, e);
            const double length = weights ? real(weights, e) : 1;
            if (to < 0 || to >= n) {
                frgi_at(ctx, "targets, entry %lld", (long long)e + 1);
                FAIL(ctx, E_GRAPH, "node %lld has an arc to %lld, nodes are 0 .. %lld",
                     (long long)v, (long long)to, (long long)n - 1);
            }
            if (!(length >= 0 && length <= FRGI_LENGTH_MAX)) {
                frgi_at(ctx, "weights, entry %lld", (long long)e + 1);
                FAIL(ctx, E_GRAPH, "the arc from %lld to %lld has the length %g", (long long)v,
                     (long long)to, length);
            }
            edges[e] = (frgi_edge){(int32_t)v, (int32_t)to, (float)length};
        }
    }
    return FRG_OK;
}

frg_status frg_graph_csr(frg_graph **out, frg_context *ctx, frg_array starts, frg_array targets,
                         const frg_array *weights, int directed)
{
    REQUIRE(ctx, out, "out is NULL");
    *out = NULL;
    const unsigned integers = 1u << FRG_I32 | 1u << FRG_I64, reals = 1u << FRG_F32 | 1u << FRG_F64;
    TRY(frgi_array_check(ctx, &starts, "starts", 1, integers));
    TRY(frgi_array_check(ctx, &targets, "targets", 1, integers));
    const int64_t n = starts.shape[0] - 1, arcs = targets.shape[0];
    REQUIRE(ctx, n >= 1 && n < INT32_MAX, "a graph has 1 to 2^31 - 2 nodes, starts has %lld values",
            (long long)n + 1);
    if (weights) {
        TRY(frgi_array_check(ctx, weights, "weights", 1, reals));
        if (weights->shape[0] != arcs) {
            FAIL(ctx, E_SHAPE, "targets has %lld values, weights has %lld", (long long)arcs,
                 (long long)weights->shape[0]);
        }
    }
    for (int64_t v = 0; v <= n; v++) {
        const int64_t s = whole(&starts, v);
        if (s < (v ? whole(&starts, v - 1) : 0) || (v == 0 && s != 0) || (v == n && s != arcs)) {
            frgi_at(ctx, "starts, value %lld", (long long)v + 1);
            FAIL(ctx, E_GRAPH, "starts is %lld here; it begins with 0, rises, and ends with %lld",
                 (long long)s, (long long)arcs);
        }
    }
    frgi_edge *edges;
    TRY(NEW(ctx, &edges, arcs, "arcs"));
    frg_status status = fill_edges(ctx, &starts, &targets, weights, edges);
    if (status >= 0) {
        status = frgi_graph_build(out, ctx, n, edges, arcs, directed != 0);
    }
    DROP(ctx, &edges);
    return status;
}

/* ---- order of proximity ---------------------------------------------------------------------- */

/** Partly sorts order so that the first `want` have the smallest features[.][c] (Hoare's
 *  selection). */
static void select_first(const float *features, int64_t d, int64_t c, int32_t *order, int64_t n,
                         int64_t want)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const float pivot = features[order[low + (high - low) / 2] * d + c];
        int64_t i = low, j = high;
        while (i <= j) {
            while (features[order[i] * d + c] < pivot) {
                i++;
            }
            while (features[order[j] * d + c] > pivot) {
                j--;
            }
            if (i <= j) {
                const int32_t swap = order[i];
                order[i++] = order[j];
                order[j--] = swap;
            }
        }
        if (want <= j) {
            high = j;
        } else if (want >= i) {
            low = i;
        } else {
            return;
        }
    }
}

static int64_t widest(const float *features, int64_t d, const int32_t *order, int64_t n)
{
    int64_t best = 0;
    float spread = -1;
    for (int64_t c = 0; c < d; c++) {
        float low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            const float x = features[order[i] * d + c];
            low = fminf(low, x);
            high = fmaxf(high, x);
        }
        if (high - low > spread) {
            spread = high - low;
            best = c;
        }
    }
    return best;
}

void frgi_bisect(const float *features, int64_t d, int32_t *order, int64_t n)
{
    while (n > FRGI_LANES) {
        const int64_t blocks = (n + FRGI_LANES - 1) / FRGI_LANES;
        const int64_t half = blocks / 2 * FRGI_LANES;
        select_first(features, d, widest(features, d, order, n), order, n, half);
        frgi_bisect(features, d, order, half);
        order += half;
        n -= half;
    }
}
