/* gw_distances_device.c - the host's side of kernels/gw/gw_distances.cl.h.
 *
 * The graph of a side, its landmarks and the scale of its distances are the host's; the lengths of
 * the paths between all nodes and the distances of vectors are made there.  All pairs that the host
 * wants as a matrix come over once, and stay there for the alignment.
 */
#include <math.h>

#include "gw/gw_distances.h"
#include "gw/gw_stage_device.h"

enum { SOURCES_AT_ONCE = 256, SOURCES_A_WAIT = 1024 };

static int group_of(const frgi_distances *d)
{
    return frgi_stage_group(d->there.dev, d->there.group);
}

static frg_status load(const frgi_distances *d, const frgi_program **p)
{
    return frgi_device_load(d->there.dev, &frgi_kernels_gw, FRGI_MIXED, p);
}

/* ---- shortest paths -------------------------------------------------------------------------- */

/** A graph there, and room for the sources that are under way. */
typedef struct {
    frgi_device_arena memory;
    frgi_buffer starts, targets, lengths, spare;
} paths_memory;

static void layout(const frg_graph *g, paths_memory *m)
{
    const size_t n = (size_t)g->n, arcs = (size_t)g->starts[g->n],
                 sources = n < SOURCES_AT_ONCE ? n : SOURCES_AT_ONCE;
    m->starts = frgi_device_take(&m->memory, (n + 1) * sizeof *g->starts);
    m->targets = frgi_device_take(&m->memory, arcs * sizeof *g->targets);
    m->lengths = frgi_device_take(&m->memory, arcs * sizeof *g->lengths);
    m->spare = frgi_device_take(&m->memory, frgi_mul(sources, n) * sizeof(float));
}

static frg_status put_graph(const frgi_distances *d, const paths_memory *m)
{
    frgi_device *const dev = d->there.dev;
    const frg_graph *const g = d->graph;
    TRY(frgi_device_put(dev, m->starts, g->starts, m->starts.bytes));
    if (g->starts[g->n] > 0) {
        TRY(frgi_device_put(dev, m->targets, g->targets, m->targets.bytes));
        TRY(frgi_device_put(dev, m->lengths, g->lengths, m->lengths.bytes));
    }
    return frgi_device_wait(dev);
}

/** Sources in batches; positive: stopped. */
static frg_status search(const frgi_distances *d, const paths_memory *m, frgi_buffer to)
{
    frgi_device *const dev = d->there.dev;
    const int64_t n = d->graph->n;
    const frgi_program *program;
    TRY(load(d, &program));
    for (int64_t first = 0; first < n;) {
        const int64_t end = first + SOURCES_A_WAIT < n ? first + SOURCES_A_WAIT : n;
        for (; first < end; first += SOURCES_AT_ONCE) {
            const int64_t count = n - first < SOURCES_AT_ONCE ? n - first : SOURCES_AT_ONCE;
            TRY(LAUNCH(dev, program, "level_paths", count, 1, group_of(d), BUFFER(to),
                       BUFFER(m->spare), BUFFER(m->starts), BUFFER(m->targets), BUFFER(m->lengths),
                       INT64(n), INT64(first), REAL((double)INFINITY)));
        }
        TRY(frgi_device_wait(dev));
        const frg_status beat = frgi_heartbeat(d->ctx, &(frg_progress){.solver = "gw",
                                                                       .phase = "paths",
                                                                       .done = end,
                                                                       .total = n,
                                                                       .residual = (double)NAN,
                                                                       .target = (double)NAN});
        if (beat != FRG_OK) {
            return beat;
        }
    }
    return FRG_OK;
}

/** to <- the lengths of all paths.  Positive: stopped. */
static frg_status find_paths(const frgi_distances *d, frgi_buffer to)
{
    paths_memory m = {.memory = {.align = frgi_device_is(d->there.dev)->align}};
    frg_status status = FRG_OK;
    layout(d->graph, &m);
    TRY_TO(done, frgi_device_arena_open(&m.memory, d->there.dev, "shortest paths on a device"));
    layout(d->graph, &m);
    TRY_TO(done, put_graph(d, &m));
    status = search(d, &m, to);
done:
    frgi_device_arena_close(&m.memory, d->there.dev);
    return status;
}

frg_status frgi_distances_paths_there(frgi_distances *d)
{
    frgi_device *const dev = d->there.dev;
    const size_t bytes = frgi_mul((size_t)d->n, (size_t)d->n) * sizeof(float);
    TRY(frgi_device_alloc(dev, bytes, "lengths of paths", &d->there.lengths));
    const frg_status status = find_paths(d, d->there.lengths);
    if (status != FRG_OK) {
        return status;
    }
    TRY(frgi_device_get(dev, d->dense, d->there.lengths, bytes));
    return frgi_device_wait(dev);
}

void frgi_distances_forget_there(frgi_distances *d)
{
    if (d->there.dev) {
        frgi_device_free(d->there.dev, &d->there.lengths);
    }
}

/* ---- all distances, scaled ------------------------------------------------------------------- */

/** From the vectors of the points. */
static frg_status from_vectors(const frgi_distances *d, const frgi_program *program, frgi_buffer to)
{
    frgi_device *const dev = d->there.dev;
    const size_t bytes = frgi_mul((size_t)d->n, (size_t)d->d) * sizeof(float);
    const double upper = d->metric == FRG_GW_LANDMARK_LOWER ? 0
                         : d->metric == FRG_GW_LANDMARK_MID ? 0.5
                                                            : 1;
    frgi_buffer points = {0};
    frg_status status = FRG_OK;
    TRY(frgi_device_alloc(dev, bytes, "points", &points));
    TRY_TO(done, frgi_device_put(dev, points, d->points, bytes));
    if (frgi_distances_euclidean(d)) {
        TRY_TO(done, LAUNCH(dev, program, "level_distances", d->n, 1, group_of(d), BUFFER(to),
                            BUFFER(points), INT64(d->n), INT64(d->d), REAL((double)d->scale)));
    } else {
        TRY_TO(done, LAUNCH(dev, program, "level_bounds", d->n, 1, group_of(d), BUFFER(to),
                            BUFFER(points), INT64(d->n), INT64(d->d), REAL((double)d->scale),
                            REAL(upper)));
    }
    TRY_TO(done, frgi_device_wait(dev));
done:
    frgi_device_free(dev, &points);
    return status;
}

frg_status frgi_distances_rescale_there(const frgi_distances *d, frgi_buffer to, frgi_buffer from)
{
    const int64_t count = d->n * d->n;
    const frgi_program *program;
    TRY(load(d, &program));
    return LAUNCH(d->there.dev, program, "level_rescale", (count + SK_NARROW - 1) / SK_NARROW, 1,
                  group_of(d), BUFFER(to), BUFFER(from), INT64(count), REAL((double)d->scale),
                  REAL((double)d->beyond), REAL((double)INFINITY));
}

frgi_buffer frgi_distances_take(const frgi_distances *d, frgi_device_arena *a)
{
    return d->kind == FRGI_AWAY
               ? d->there.all
               : frgi_device_take(a, frgi_mul((size_t)d->n, (size_t)d->n) * sizeof(float));
}

frg_status frgi_distances_all_there(frgi_distances *d, frgi_buffer to)
{
    frgi_device *const dev = d->there.dev;
    if (d->kind == FRGI_AWAY) {
        return FRG_OK;
    }
    if (d->kind == FRGI_VECTOR) {
        const frgi_program *program;
        TRY(load(d, &program));
        return from_vectors(d, program, to);
    }
    if (d->kind == FRGI_ROWS) {
        const frg_status status = find_paths(d, to);
        return status == FRG_OK ? frgi_distances_rescale_there(d, to, to) : status;
    }
    if (d->there.lengths.handle) {
        TRY(frgi_distances_rescale_there(d, to, d->there.lengths));
        TRY(frgi_device_wait(dev));
        frgi_distances_forget_there(d);
        return FRG_OK;
    }
    TRY(frgi_device_put(dev, to, d->dense, to.bytes));
    TRY(frgi_distances_rescale_there(d, to, to));
    return frgi_device_wait(dev);
}
