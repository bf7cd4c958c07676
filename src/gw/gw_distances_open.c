/* gw_distances_open.c - a side's distances from points, a matrix or a graph, and their scale.
 *
 * One scale a side, found once: the exact maximum of a matrix, in the exact mode, and of a graph in
 * parts, else the largest distance met by two sweeps (the farthest from node 0, then the farthest
 * from that).  What cannot be reached counts as 1.5 times the largest, so that no other part is
 * nearer than a point of the same; two sweeps see one part alone.
 */
#include "gw/gw_distances.h"

#include <math.h>
#include <string.h>

#include "gw/gw_marginals.h"

enum { FEW_POINTS = 1024, SOURCES = 64 };

/** Points as vectors of f32, relative to the first one. */
static frg_status take_points(frgi_distances *d, const frg_array *a, const char *name)
{
    d->n = a->shape[0];
    d->d = a->shape[1];
    TRY(NEW(d->ctx, &d->points, frgi_mul((size_t)d->n, (size_t)d->d), "points"));
    double most = 0;
    for (int64_t i = 0; i < d->n; i++) {
        for (int64_t c = 0; c < d->d; c++) {
            const double x = frgi_array_get(a, i, c);
            if (!(fabs(x) <= 1e18)) {
                frgi_at(d->ctx, "%s, row %lld, column %lld", name, (long long)i + 1,
                        (long long)c + 1);
                FAIL(d->ctx, E_COORDINATE, "a coordinate is %g", x);
            }
            most = fmax(most, fabs(x - frgi_array_get(a, 0, c)));
            d->points[i * d->d + c] =
                (float)(x - (a->dtype == FRG_F64 ? frgi_array_get(a, 0, c) : 0));
        }
    }
    return frgi_check_apart(d->ctx, name, most);
}

static frg_status make_blocks(frgi_distances *d)
{
    const int64_t blocks = (d->n + FRGI_LANES - 1) / FRGI_LANES;
    TRY(NEW(d->ctx, &d->blocks, frgi_mul((size_t)(blocks * FRGI_LANES), (size_t)d->d), "points"));
    for (int64_t b = 0; b < blocks; b++) {
        for (int64_t c = 0; c < d->d; c++) {
            for (int64_t l = 0; l < FRGI_LANES; l++) {
                const int64_t i = b * FRGI_LANES + l < d->n ? b * FRGI_LANES + l : d->n - 1;
                d->blocks[(b * d->d + c) * FRGI_LANES + l] = d->points[i * d->d + c];
            }
        }
    }
    return FRG_OK;
}

/** The data as they are, of dtype f64: points, or the mean of a matrix and its transpose. */
static frg_status keep_exact(frgi_distances *d, const frg_array *a)
{
    const bool dense = d->kind == FRGI_DENSE;
    const int64_t width = a->shape[1];
    TRY(NEW(d->ctx, &d->exact, frgi_mul((size_t)d->n, (size_t)width), "distances in f64"));
    for (int64_t i = 0; i < d->n; i++) {
        for (int64_t c = 0; c < width; c++) {
            const double x = frgi_array_get(a, i, c);
            d->exact[i * width + c] = dense ? 0.5 * (x + frgi_array_get(a, c, i)) : x;
        }
    }
    return FRG_OK;
}

frg_status frgi_matrix_square(frg_context *ctx, const frg_array *a, const char *name)
{
    if (a->shape[1] != a->shape[0]) {
        FAIL(ctx, E_SHAPE, "the %s distances are %lld x %lld, a square matrix is needed", name,
             (long long)a->shape[0], (long long)a->shape[1]);
    }
    return FRG_OK;
}

frg_status frgi_matrix_refuse(frg_context *ctx, const char *name, int64_t i, int64_t j, double x)
{
    frgi_at(ctx, "%s, row %lld, column %lld", name, (long long)i + 1, (long long)j + 1);
    FAIL(ctx, E_DISTANCE,
         x > FRGI_LENGTH_MAX ? "a distance is %g: take a larger unit" : "a distance is %g", x);
}

frg_status frgi_matrix_check_seen(frg_context *ctx, const char *name, const frgi_matrix_seen *seen)
{
    if (seen->most > 0 && seen->most < 1 / FRGI_LENGTH_MAX) {
        FAIL(ctx, E_DISTANCE,
             "the %s distances are %g at most, too small for f32: take a smaller unit", name,
             seen->most);
    }
    if (seen->diagonal > 1e-6 * seen->most) {
        frgi_warn(ctx, W_DISTANCES, "the %s distances have up to %g on the diagonal", name,
                  seen->diagonal);
    }
    if (seen->gap > 1e-5 * seen->most) {
        frgi_warn(ctx, W_DISTANCES,
                  "the %s distances are not symmetric (by up to %g): (C + C') / 2 is used", name,
                  seen->gap);
    }
    return FRG_OK;
}

static frg_status take_matrix(frgi_distances *d, const frg_array *a, const char *name)
{
    frg_context *const ctx = d->ctx;
    d->n = a->shape[0];
    TRY(frgi_matrix_square(ctx, a, name));
    TRY(NEW(ctx, &d->dense, frgi_mul((size_t)d->n, (size_t)d->n), "distances"));
    frgi_matrix_seen seen = {0};
    for (int64_t i = 0; i < d->n; i++) {
        for (int64_t j = 0; j < d->n; j++) {
            const double x = frgi_array_get(a, i, j);
            if (!(x >= 0 && (x <= FRGI_LENGTH_MAX || isinf(x)))) {
                return frgi_matrix_refuse(ctx, name, i, j, x);
            }
            seen.most = x < (double)INFINITY ? fmax(seen.most, x) : seen.most;
            seen.gap = fmax(seen.gap, isfinite(x) ? fabs(x - frgi_array_get(a, j, i)) : 0);
            /* (C + C') / 2 of an asymmetric matrix, as the warning says */
            d->dense[i * d->n + j] = (float)(0.5 * (x + frgi_array_get(a, j, i)));
        }
        seen.diagonal = fmax(seen.diagonal, frgi_array_get(a, i, i));
    }
    d->kind = FRGI_DENSE;
    return frgi_matrix_check_seen(ctx, name, &seen);
}

static frg_status all_pairs(frgi_distances *d)
{
    frg_paths_report report;
    int32_t *nodes;
    TRY(NEW(d->ctx, &nodes, d->n, "nodes"));
    frg_status status = NEW(d->ctx, &d->dense, frgi_mul((size_t)d->n, (size_t)d->n), "distances");
    if (status >= 0) {
        for (int64_t v = 0; v < d->n; v++) {
            nodes[v] = (int32_t)v;
        }
        status = d->there.dev
                     ? frgi_distances_paths_there(d)
                     : frgi_path_rows(d->graph, nodes, d->n, d->dense, d->n, "gw", &report);
    }
    DROP(d->ctx, &nodes);
    d->kind = FRGI_DENSE;
    return status;
}

/** Landmark coordinates; what is infinite becomes 1.5 times the largest before differences are
 *  taken. */
static frg_status landmark_vectors(frgi_distances *d, int64_t count)
{
    frg_context *const ctx = d->ctx;
    const int64_t most = count < d->n ? count : d->n;
    int64_t *nodes = NULL, found = 0;
    float *rows = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(ctx, &nodes, most, "landmarks"));
    TRY_TO(done, NEW(ctx, &rows, frgi_mul((size_t)most, (size_t)d->n), "landmarks"));
    TRY_TO(done, frgi_landmark_rows(d->graph, most, nodes, rows, &found));
    float largest = 0;
    for (int64_t i = 0; i < found * d->n; i++) {
        largest = rows[i] < INFINITY && rows[i] > largest ? rows[i] : largest;
    }
    DROP(ctx, &d->points);
    d->d = found;
    TRY_TO(done, NEW(ctx, &d->points, frgi_mul((size_t)d->n, (size_t)found), "landmarks"));
    for (int64_t i = 0; i < d->n; i++) {
        for (int64_t l = 0; l < found; l++) {
            const float x = rows[l * d->n + i];
            d->points[i * found + l] = x < INFINITY ? x : 1.5f * (largest > 0 ? largest : 1);
        }
    }
    d->kind = FRGI_VECTOR;
    status = make_blocks(d);
done:
    DROP(ctx, &nodes);
    DROP(ctx, &rows);
    return status;
}

static frg_status open_cache(frgi_distances *d, frgi_distance_kind kind, int64_t rows)
{
    d->kind = kind;
    d->capacity = rows < d->n ? rows : d->n;
    d->capacity = d->capacity > 1 ? d->capacity : 1;
    TRY(NEW(d->ctx, &d->at, d->n, "the cache of distances"));
    for (int64_t v = 0; v < d->n; v++) {
        d->at[v] = -1;
    }
    return FRG_OK;
}

/** most <- the largest distance that two sweeps meet: to the farthest from node 0, and from
 *  there. */
static frg_status two_sweeps(frgi_distances *d, bool *cut)
{
    float *row;
    int32_t node = 0;
    TRY(NEW(d->ctx, &row, d->n, "distances"));
    frg_status status = FRG_OK;
    for (int sweep = 0; sweep < 2 && status >= 0; sweep++) {
        status = frgi_distances_rows(d, &node, 1, row, d->n);
        if (status >= 0) {
            const float far = frgi_graph_ops_of(d->ctx)->farthest(row, d->n, cut);
            d->most = far > d->most ? far : d->most;
            for (node = 0; node < d->n - 1 && row[node] != far; node++) {
            }
        }
    }
    DROP(d->ctx, &row);
    return status;
}

/** most <- that of all rows, where all will be needed anyway: it does not depend on the order of
 *  the points. */
static frg_status all_rows(frgi_distances *d, bool *cut)
{
    float *row;
    TRY(NEW(d->ctx, &row, d->n, "distances"));
    frg_status status = FRG_OK;
    for (int32_t node = 0; node < d->n && status >= 0; node++) {
        status = frgi_distances_rows(d, &node, 1, row, d->n);
        if (status >= 0) {
            const float far = frgi_graph_ops_of(d->ctx)->farthest(row, d->n, cut);
            d->most = far > d->most ? far : d->most;
        }
    }
    DROP(d->ctx, &row);
    return status;
}

/** most <- that of the paths from all nodes, SOURCES at a time, of a graph with several components.
 *  Positive: stopped. */
static frg_status all_components(frgi_distances *d)
{
    const frgi_graph_ops *const ops = frgi_graph_ops_of(d->ctx);
    float *rows;
    bool cut = true;
    TRY(NEW(d->ctx, &rows, frgi_mul(SOURCES, (size_t)d->n), "distances"));
    frg_status status = FRG_OK;
    for (int64_t first = 0; first < d->n && status == FRG_OK; first += SOURCES) {
        const int64_t count = d->n - first < SOURCES ? d->n - first : SOURCES;
        int32_t nodes[SOURCES];
        frg_paths_report report;
        for (int64_t r = 0; r < count; r++) {
            nodes[r] = (int32_t)(first + r);
        }
        status = frgi_path_rows(d->graph, nodes, count, rows, d->n, "gw", &report);
        const float far = status == FRG_OK ? ops->farthest(rows, count * d->n, &cut) : 0;
        d->most = far > d->most ? far : d->most;
    }
    DROP(d->ctx, &rows);
    return status;
}

/** most, scale and fill.  Positive: stopped. */
static frg_status find_scale(frgi_distances *d, const frg_gw_opts *o)
{
    bool cut = false;
    d->scale = 1;
    d->beyond = INFINITY;
    if (d->kind == FRGI_DENSE) {
        d->most = frgi_graph_ops_of(d->ctx)->farthest(d->dense, d->n * d->n, &cut);
    } else if (d->kind == FRGI_AWAY) { /* which was looked at there */
        cut = d->there.cut;
    } else {
        const bool all = o->mode == FRG_GW_EXACT;
        TRY(all ? all_rows(d, &cut) : two_sweeps(d, &cut));
        const frg_status status = cut && !all ? all_components(d) : FRG_OK;
        if (status != FRG_OK) {
            return status;
        }
    }
    d->beyond = d->most > 0 ? 1.5f * d->most : 1;
    if (cut && !(d->most > 0)) { /* components of equal points */
        d->most = d->beyond;
    }
    d->scale = o->scale == FRG_GW_SCALE_FIXED && d->most > 0 ? 1 / d->most : 1;
    return FRG_OK;
}

/** All distances at once where the steps of a run, `anchors` pairs each, ask for more rows than
 *  there are points. */
static frg_status find_all(frgi_distances *d, const frg_gw_opts *o)
{
    const bool sampled = o->mode == FRG_GW_AUTO || o->mode == FRG_GW_SAMPLED;
    const bool often =
        d->n <= FEW_POINTS && (double)o->max_iter * (double)o->anchors > (double)d->n;
    if (!sampled || !often || !frgi_distances_euclidean(d)) {
        return FRG_OK;
    }
    int32_t *nodes;
    TRY(NEW(d->ctx, &nodes, d->n, "nodes"));
    for (int64_t v = 0; v < d->n; v++) {
        nodes[v] = (int32_t)v;
    }
    frg_status status = NEW(d->ctx, &d->all, frgi_mul((size_t)d->n, (size_t)d->n), "distances");
    if (status >= 0) {
        status = frgi_distances_cross(d, nodes, d->n, nodes, d->n, d->all);
    }
    DROP(d->ctx, &nodes);
    return status;
}

static frg_status make_graph(frgi_distances *d, const frg_array *points, const frg_gw_opts *o)
{
    const double begin = frgi_seconds();
    frg_graph_opts g;
    frg_graph_defaults(&g, sizeof g);
    g.k = o->k;
    g.k_clamp = o->k_clamp;
    g.stitch = o->stitch;
    const frg_status status = frgi_graph_knn(&d->own_graph, d->ctx, *points, &g, "gw");
    d->graph = d->own_graph;
    d->n = points->shape[0];
    d->graph_seconds = frgi_seconds() - begin;
    return status;
}

/** A matrix that lies on the device stays there. */
static frg_status adopt_matrix(frgi_distances *d, const frg_array *a, const frg_gw_opts *o,
                               const char *name)
{
    if (o->dtype == FRG_GW_DTYPE_F64) {
        FAIL(d->ctx, E_DEVICE_STEP,
             "align: dtype f64 with the %s distances on %s, whose linear problems are the host's: "
             "give a copy in host memory",
             name, frgi_device_name(d->there.dev));
    }
    TRY(frgi_distances_adopt(d, a, name));
    return open_cache(d, FRGI_AWAY, o->cache_rows);
}

static bool is_away(const frg_array *a)
{
    return a && a->device.kind != FRG_CPU;
}

static frg_status open_kind(frgi_distances *d, const frg_gw_side *side, const frg_gw_opts *o,
                            const char *name)
{
    frg_gw_distance kind = o->distance;
    if (kind == FRG_GW_DISTANCE_AUTO) {
        kind = side->graph                                  ? FRG_GW_DISTANCE_GRAPH
               : side->data && side->data->shape[0] > 20000 ? FRG_GW_DISTANCE_LANDMARK
                                                            : FRG_GW_DISTANCE_PRECOMPUTED;
    }
    if (kind == FRG_GW_DISTANCE_MATRIX) {
        return is_away(side->data) ? adopt_matrix(d, side->data, o, name)
                                   : take_matrix(d, side->data, name);
    }
    if (kind == FRG_GW_DISTANCE_EUCLIDEAN) {
        TRY(take_points(d, side->data, name));
        d->kind = FRGI_VECTOR;
        return make_blocks(d);
    }
    if (side->graph) {
        d->graph = side->graph;
        d->n = frg_graph_get(side->graph).n;
        /* a graph of the caller's: all pairs where they fit, rows on demand above */
        kind = kind == FRG_GW_DISTANCE_GRAPH
                   ? (d->n <= 8000 ? FRG_GW_DISTANCE_PRECOMPUTED : FRG_GW_DISTANCE_DIJKSTRA)
                   : kind;
    } else {
        const frg_status status = make_graph(d, side->data, o);
        if (status != FRG_OK) {
            return status;
        }
    }
    d->components = frg_graph_get(d->graph).components;
    if (kind == FRG_GW_DISTANCE_LANDMARK) {
        d->metric = o->landmark_metric;
        return landmark_vectors(d, o->landmarks);
    }
    if (o->lazy && kind == FRG_GW_DISTANCE_PRECOMPUTED) {
        return open_cache(d, FRGI_ROWS, d->n);
    }
    return kind == FRG_GW_DISTANCE_DIJKSTRA ? open_cache(d, FRGI_ROWS, o->cache_rows)
                                            : all_pairs(d);
}

/** Distances and their scale from points in host memory, a matrix or a graph. */
static frg_status open_data(frgi_distances *d, const frg_gw_side *side, const frg_gw_opts *o,
                            const char *name)
{
    const double begin = frgi_seconds();
    frg_status status = open_kind(d, side, o, name);
    status = status == FRG_OK ? find_scale(d, o) : status;
    if (status != FRG_OK) {
        return status;
    }
    if (d->kind == FRGI_AWAY) {
        TRY(frgi_distances_scale_there(d));
    } else {
        frgi_host_step(d->ctx, FRGI_HOST_DISTANCES);
    }
    TRY(find_all(d, o));
    if (o->dtype == FRG_GW_DTYPE_F64) {
        TRY(keep_exact(d, side->data));
    }
    d->seconds = frgi_seconds() - begin - d->graph_seconds;
    return FRG_OK;
}

frg_status frgi_distances_open(frgi_distances *d, frg_context *ctx, const frg_gw_side *side,
                               const frg_gw_opts *o, const char *name)
{
    return frgi_distances_open_for(d, ctx, NULL, 0, side, o, name);
}

frg_status frgi_distances_open_for(frgi_distances *d, frg_context *ctx, frgi_device *dev, int group,
                                   const frg_gw_side *side, const frg_gw_opts *o, const char *name)
{
    memset(d, 0, sizeof *d);
    d->ctx = ctx;
    d->there.dev = dev;
    d->there.group = group;
    d->components = 1;
    const bool needs_graph = o->distance == FRG_GW_DISTANCE_GRAPH;
    REQUIRE(ctx, needs_graph ? side->graph != NULL : side->graph || side->data,
            "the %s side has no %s", name, needs_graph ? "graph" : "data");
    const bool needs_data =
        o->distance == FRG_GW_DISTANCE_MATRIX || o->distance == FRG_GW_DISTANCE_EUCLIDEAN;
    if (side->graph && frg_graph_get(side->graph).directed) {
        FAIL(ctx, E_UNSUPPORTED,
             "the %s graph is directed, and distances inside a side are symmetric here: make it "
             "without directed, or give the matrix of its path lengths, of which (C + C') / 2 is "
             "taken",
             name);
    }
    REQUIRE(ctx, !needs_data || side->data, "the %s side is a graph, and distance %s needs %s",
            name, o->distance == FRG_GW_DISTANCE_MATRIX ? "matrix" : "euclidean",
            o->distance == FRG_GW_DISTANCE_MATRIX ? "a matrix of all distances" : "points");
    if (side->data) {
        TRY(frgi_device_array_check(dev, ctx, side->data, name, 2, 1u << FRG_F32 | 1u << FRG_F64));
        const int64_t n = side->data->shape[0], width = side->data->shape[1];
        REQUIRE(ctx, n >= 1 && n < INT32_MAX && width >= 1,
                "the %s data are %lld x %lld, 1 to 2^31 - 2 rows and at least 1 column are needed",
                name, (long long)n, (long long)width);
    }
    if (!is_away(side->data) || o->distance == FRG_GW_DISTANCE_MATRIX) {
        return open_data(d, side, o, name);
    }
    frgi_given points;
    frg_status status = frgi_given_open(&points, ctx, dev, side->data, name);
    const frg_gw_side here = {&points.here, side->graph, side->weights};
    status = status >= 0 ? open_data(d, &here, o, name) : status;
    frgi_given_close(&points);
    return status;
}

void frgi_distances_close(frgi_distances *d)
{
    if (!d->ctx) {
        return;
    }
    frgi_distances_forget_there(d);
    frgi_device_free(d->there.dev, &d->there.all);
    DROP(d->ctx, &d->dense);
    DROP(d->ctx, &d->points);
    DROP(d->ctx, &d->blocks);
    DROP(d->ctx, &d->all);
    DROP(d->ctx, &d->exact);
    DROP(d->ctx, &d->cache);
    DROP(d->ctx, &d->at);
    DROP(d->ctx, &d->owner);
    frg_graph_destroy(d->own_graph);
    d->own_graph = NULL;
}

uint64_t frgi_distances_hash(const frgi_distances *d, uint64_t seed)
{
    const int64_t shape[3] = {(int64_t)d->kind, d->n, d->d};
    uint64_t h = frg_hash(seed, shape, sizeof shape);
    h = frg_hash(h + (uint64_t)d->metric, &d->scale, sizeof d->scale);
    if (d->kind == FRGI_AWAY) {
        return frg_hash(h, &d->there.hash, sizeof d->there.hash);
    }
    if (d->kind != FRGI_ROWS) {
        const bool dense = d->kind == FRGI_DENSE;
        return frg_hash(h, dense ? d->dense : d->points,
                        d->n * (dense ? d->n : d->d) * (int64_t)sizeof(float));
    }
    const int64_t *starts;
    const int32_t *targets;
    const float *weights;
    frg_graph_arcs(d->graph, &starts, &targets, &weights);
    h = frg_hash(h, starts, (d->n + 1) * (int64_t)sizeof *starts);
    h = frg_hash(h, targets, starts[d->n] * (int64_t)sizeof *targets);
    return frg_hash(h, weights, starts[d->n] * (int64_t)sizeof *weights);
}
