/* gw_distances.c - distances inside one side where they are asked for: rows of a matrix, of
 * vectors, or of shortest paths and of a matrix on a device in a bounded cache; sums over batches
 * of them. */
#include "gw/gw_distances.h"

#include <math.h>
#include <string.h>

#include "core/oversubscription.h"

enum { BATCH = 64 };

/* ---- the cache ------------------------------------------------------------------------------- */

/** Room for `slots` rows; what is there stays. */
static frg_status grow_cache(frgi_distances *d, int64_t slots)
{
    if (slots <= d->slots) {
        return FRG_OK;
    }
    const int64_t grown = 2 * d->slots > slots ? 2 * d->slots : slots;
    const int64_t enlarged = grown < d->capacity || slots > d->capacity ? grown : d->capacity;
    TRY(GROW(d->ctx, &d->cache, frgi_mul((size_t)enlarged, (size_t)d->n),
             "the cache of distances"));
    TRY(GROW(d->ctx, &d->owner, enlarged, "the cache of distances"));
    for (int64_t s = d->slots; s < enlarged; s++) {
        d->owner[s] = -1;
    }
    d->slots = enlarged;
    return FRG_OK;
}

/** A slot for a new row: the oldest that this request does not need (needed[v] set). */
static int64_t take_slot(frgi_distances *d, const unsigned char *needed)
{
    for (int64_t tries = 0; tries < d->slots; tries++) {
        const int64_t s = d->next;
        d->next = (d->next + 1) % d->slots;
        if (d->owner[s] < 0 || !needed[d->owner[s]]) {
            if (d->owner[s] >= 0) {
                d->at[d->owner[s]] = -1;
            }
            return s;
        }
    }
    return -1; /* cannot be: there is room for all of a request */
}

static frg_status fetch(frgi_distances *d, const int32_t *nodes, int64_t count)
{
    frg_context *const ctx = d->ctx;
    unsigned char *needed = NULL;
    int32_t *missing = NULL;
    float *rows = NULL;
    int64_t distinct = 0, absent = 0;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW0(ctx, &needed, d->n, "the cache of distances"));
    TRY_TO(done, NEW(ctx, &missing, count, "the cache of distances"));
    for (int64_t r = 0; r < count; r++) {
        if (!needed[nodes[r]]) {
            needed[nodes[r]] = 1;
            distinct++;
            if (d->at[nodes[r]] < 0) {
                missing[absent++] = nodes[r];
            }
        }
    }
    if (absent == 0) {
        goto done;
    }
    int64_t held = 0;
    for (int64_t s = 0; s < d->slots; s++) {
        held += d->owner[s] >= 0;
    }
    const int64_t want = held + absent < d->capacity ? held + absent : d->capacity;
    TRY_TO(done, grow_cache(d, want > distinct ? want : distinct));
    TRY_TO(done, NEW(ctx, &rows, frgi_mul((size_t)absent, (size_t)d->n), "distances"));
    frg_paths_report report;
    TRY_TO(done, d->kind == FRGI_AWAY
                     ? frgi_distances_rows_there(d, missing, absent, rows)
                     : frgi_path_rows(d->graph, missing, absent, rows, d->n, NULL, &report));
    status = FRG_OK;
    for (int64_t r = 0; r < absent; r++) {
        const int64_t s = take_slot(d, needed);
        memcpy(d->cache + s * d->n, rows + r * d->n, (size_t)d->n * sizeof *rows);
        d->owner[s] = missing[r];
        d->at[missing[r]] = (int32_t)s;
    }
done:
    DROP(ctx, &needed);
    DROP(ctx, &missing);
    DROP(ctx, &rows);
    return status;
}

/** Back to the capacity after a request that was larger. */
static frg_status shrink(frgi_distances *d)
{
    if (d->slots <= d->capacity) {
        return FRG_OK;
    }
    for (int64_t s = d->capacity; s < d->slots; s++) {
        if (d->owner[s] >= 0) {
            d->at[d->owner[s]] = -1;
        }
    }
    d->slots = d->capacity;
    d->next = d->next < d->slots ? d->next : 0;
    TRY(GROW(d->ctx, &d->cache, frgi_mul((size_t)d->slots, (size_t)d->n),
             "the cache of distances"));
    return GROW(d->ctx, &d->owner, d->slots, "the cache of distances");
}

/* ---- rows ------------------------------------------------------------------------------------ */

/** Lower or upper bounds of path lengths, or their mean, to the points first .. last-1; a point is
 *  at distance 0 of itself. */
static void bounds_row(const frgi_distances *d, int64_t node, int64_t first, int64_t last,
                       float *to)
{
    const float up = d->metric == FRG_GW_LANDMARK_LOWER ? 0
                     : d->metric == FRG_GW_LANDMARK_MID ? 0.5f
                                                        : 1;
    for (int64_t i = first; i < last; i++) {
        float low, high;
        frg_landmark_bounds(d->points + node * d->d, d->points + i * d->d, d->d, &low, &high);
        to[i] = i == node ? 0 : (1 - up) * low + up * high;
    }
}

frg_status frgi_distances_rows(frgi_distances *d, const int32_t *nodes, int64_t count, float *out,
                               int64_t stride)
{
    return frgi_distances_centred(d, nodes, count, NULL, out, stride);
}

/** Up to FRGI_QUERIES rows, of them the points first .. last-1; first is a whole number of
 *  blocks. */
static void panel_of_rows(const frgi_distances *d, const frgi_graph_ops *ops, const int32_t *nodes,
                          int count, int64_t first, int64_t last, const float *means, float *out,
                          int64_t stride)
{
    const int64_t length = last - first;
    const bool scaled = d->all || d->kind == FRGI_AWAY;
    if (frgi_distances_euclidean(d) && !d->all) {
        const float *queries[FRGI_QUERIES];
        for (int r = 0; r < count; r++) {
            queries[r] = d->points + nodes[r] * d->d;
        }
        ops->euclid(d->blocks + first * d->d, length, d->d, queries, count, out + first, stride);
    }
    for (int r = 0; r < count; r++) {
        float *const to = out + r * stride;
        if (d->kind == FRGI_VECTOR && !frgi_distances_euclidean(d)) {
            bounds_row(d, nodes[r], first, last, to);
        }
        const float *const from = d->all                  ? d->all + nodes[r] * d->n
                                  : d->kind == FRGI_DENSE ? d->dense + (int64_t)nodes[r] * d->n
                                  : frgi_distances_cached(d)
                                      ? d->cache + (int64_t)d->at[nodes[r]] * d->n
                                      : to;
        ops->rescale(from + first, length, scaled ? 1 : d->scale, scaled ? 0 : d->beyond,
                     means ? means + first : NULL, to + first);
    }
}

frg_status frgi_distances_centred(frgi_distances *d, const int32_t *nodes, int64_t count,
                                  const float *means, float *out, int64_t stride)
{
    if (frgi_distances_cached(d)) {
        TRY(fetch(d, nodes, count));
    }
    const frgi_graph_ops *const ops = frgi_graph_ops_of(d->ctx);
    const int threads = frg_threads(d->ctx);
    const bool computed = d->kind == FRGI_VECTOR && !d->all;
    const bool many = (double)count * (double)d->n * (computed ? (double)d->d : 1) > 1e5;
    /* where there are fewer groups of rows than threads, a row is shared */
    const int64_t groups = (count + FRGI_QUERIES - 1) / FRGI_QUERIES;
    const int64_t pieces = many && groups < threads ? (threads + groups - 1) / groups : 1;
    const int64_t blocks = (d->n + FRGI_LANES - 1) / FRGI_LANES;
    const int64_t strip = (blocks + pieces - 1) / pieces * FRGI_LANES;
#pragma omp parallel for schedule(static) num_threads(threads) if (many) collapse(2)
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t piece = 0; piece < pieces; piece++) {
            const int64_t r = g * FRGI_QUERIES, first = piece * strip, behind = first + strip;
            const int rows = (int)(count - r < FRGI_QUERIES ? count - r : FRGI_QUERIES);
            if (first < d->n) {
                panel_of_rows(d, ops, nodes + r, rows, first, behind < d->n ? behind : d->n, means,
                              out + r * stride, stride);
            }
        }
    }
    return frgi_distances_cached(d) ? shrink(d) : FRG_OK;
}

/** Vectors need the points of `to` alone. */
static frg_status cross_vectors(const frgi_distances *d, const int32_t *from, int64_t n_from,
                                const int32_t *to, int64_t n_to, float *out)
{
    const frgi_graph_ops *const ops = frgi_graph_ops_of(d->ctx);
    const int64_t blocks = (n_to + FRGI_LANES - 1) / FRGI_LANES;
    float *packed;
    TRY(NEW(d->ctx, &packed, frgi_mul((size_t)(blocks * FRGI_LANES), (size_t)d->d), "distances"));
    for (int64_t b = 0; b < blocks; b++) {
        for (int64_t l = 0; l < FRGI_LANES; l++) {
            const int64_t q = b * FRGI_LANES + l < n_to ? b * FRGI_LANES + l : n_to - 1;
            for (int64_t c = 0; c < d->d; c++) {
                packed[(b * d->d + c) * FRGI_LANES + l] = d->points[to[q] * d->d + c];
            }
        }
    }
    /* a root costs about as much as sixteen products */
    const double work = (double)n_from * (double)n_to * (double)(d->d + 16);
    const int team = frgi_team_for(frg_threads(d->ctx), work);
#pragma omp parallel for schedule(static) num_threads(team)
    for (int64_t r0 = 0; r0 < n_from; r0 += FRGI_QUERIES) {
        const float *queries[FRGI_QUERIES];
        const int64_t r1 = r0 + FRGI_QUERIES < n_from ? r0 + FRGI_QUERIES : n_from;
        for (int64_t r = r0; r < r1; r++) {
            queries[r - r0] = d->points + from[r] * d->d;
        }
        ops->euclid(packed, n_to, d->d, queries, (int)(r1 - r0), out + r0 * n_to, n_to);
        for (int64_t i = r0 * n_to; i < r1 * n_to; i++) {
            out[i] *= d->scale;
        }
    }
    DROP(d->ctx, &packed);
    return FRG_OK;
}

frg_status frgi_distances_cross(frgi_distances *d, const int32_t *from, int64_t n_from,
                                const int32_t *to, int64_t n_to, float *out)
{
    if (frgi_distances_euclidean(d)) {
        return cross_vectors(d, from, n_from, to, n_to, out);
    }
    if (d->kind == FRGI_DENSE) {
#pragma omp parallel for schedule(static)                                                          \
    num_threads(frg_threads(d->ctx)) if (n_from * n_to > 10000)
        for (int64_t r = 0; r < n_from; r++) {
            const float *const row = d->dense + (int64_t)from[r] * d->n;
            for (int64_t q = 0; q < n_to; q++) {
                const float x = row[to[q]];
                out[r * n_to + q] = d->scale * (x < INFINITY ? x : d->beyond);
            }
        }
        return FRG_OK;
    }
    float *rows;
    TRY(NEW(d->ctx, &rows, frgi_mul(BATCH, (size_t)d->n), "distances"));
    frg_status status = FRG_OK;
    for (int64_t r0 = 0; r0 < n_from && status >= 0; r0 += BATCH) {
        const int64_t count = n_from - r0 < BATCH ? n_from - r0 : BATCH;
        status = frgi_distances_rows(d, from + r0, count, rows, d->n);
        for (int64_t r = 0; r < count && status >= 0; r++) {
            for (int64_t q = 0; q < n_to; q++) {
                out[(r0 + r) * n_to + q] = rows[r * d->n + to[q]];
            }
        }
    }
    DROP(d->ctx, &rows);
    return status;
}

/** |x - y| of d coordinates. */
static double distance_of(const double *x, const double *y, int64_t d)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++) {
        sum += (x[c] - y[c]) * (x[c] - y[c]);
    }
    return sqrt(sum);
}

void frgi_distances_exact(const frgi_distances *d, const int32_t *from, int64_t n_from,
                          const int32_t *to, int64_t n_to, double *out)
{
    const bool dense = d->kind == FRGI_DENSE;
#pragma omp parallel for schedule(static)                                                          \
    num_threads(frg_threads(d->ctx)) if (n_from * n_to > 10000)
    for (int64_t r = 0; r < n_from; r++) {
        const double *const row = d->exact + from[r] * (dense ? d->n : d->d);
        for (int64_t q = 0; q < n_to; q++) {
            const double x = dense ? row[to[q]] : distance_of(row, d->exact + to[q] * d->d, d->d);
            out[r * n_to + q] = (double)d->scale * (isinf(x) ? (double)d->beyond : x);
        }
    }
}

frg_status frgi_distances_subset(frgi_distances *out, frgi_distances *d, const int32_t *nodes,
                                 int64_t count)
{
    memset(out, 0, sizeof *out);
    out->ctx = d->ctx;
    out->kind = FRGI_DENSE;
    out->n = count;
    out->components = 1;
    out->scale = 1; /* rows come out scaled already */
    out->most = 1;
    out->beyond = 1.5f;
    TRY(NEW(d->ctx, &out->dense, frgi_mul((size_t)count, (size_t)count), "distances"));
    const frg_status status = frgi_distances_cross(d, nodes, count, nodes, count, out->dense);
    if (status < 0) {
        DROP(d->ctx, &out->dense);
    }
    return status;
}

frg_status frgi_distances_spread(frgi_distances *d, int64_t count, int32_t *chosen,
                                 int32_t *nearest)
{
    float *row = NULL, *closest = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(d->ctx, &row, d->n, "representatives"));
    TRY_TO(done, NEW(d->ctx, &closest, d->n, "representatives"));
    int32_t next = 0;
    for (int64_t i = 0; i < d->n; i++) {
        closest[i] = INFINITY;
        nearest[i] = 0;
    }
    for (int64_t c = 0; c < count; c++) {
        chosen[c] = next;
        TRY_TO(done, frgi_distances_rows(d, &chosen[c], 1, row, d->n));
        for (int64_t i = 0; i < d->n; i++) {
            const bool closer = row[i] < closest[i];
            nearest[i] = closer ? (int32_t)c : nearest[i];
            closest[i] = closer ? row[i] : closest[i];
        }
        float far = -1;
        for (int64_t i = 0; i < d->n; i++) {
            if (closest[i] > far) {
                far = closest[i];
                next = (int32_t)i;
            }
        }
    }
done:
    DROP(d->ctx, &row);
    DROP(d->ctx, &closest);
    return status;
}

void frgi_distances_choose(const double *w, int64_t n, int64_t count, int32_t *nodes)
{
    double total = 0, below = 0;
    for (int64_t k = 0; k < n; k++) {
        total += w[k];
    }
    int64_t k = 0;
    for (int64_t q = 0; q < count; q++) {
        if (count == n) {
            nodes[q] = (int32_t)q;
            continue;
        }
        const double at = ((double)q + 0.5) / (double)count * total;
        while (k < n - 1 && below + w[k] <= at) {
            below += w[k++];
        }
        nodes[q] = (int32_t)k;
    }
}

/* ---- batches of rows ------------------------------------------------------------------------- */

frg_status frgi_distances_walk(frgi_distances *d, const double *w, int64_t most,
                               frgi_batch_visitor visit, void *user)
{
    const int64_t n = d->n, count = most < n ? most : n;
    float *rows = NULL;
    int32_t *nodes = NULL;
    double shares[BATCH];
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(d->ctx, &rows, frgi_mul(BATCH, (size_t)n), "rows of distances"));
    TRY_TO(done, NEW(d->ctx, &nodes, count, "rows of distances"));
    frgi_distances_choose(w, n, count, nodes);
    for (int64_t q0 = 0; q0 < count; q0 += BATCH) {
        const frgi_row_batch batch = {.nodes = nodes + q0,
                                      .shares = shares,
                                      .rows = rows,
                                      .count = count - q0 < BATCH ? count - q0 : BATCH,
                                      .n = n};
        for (int64_t r = 0; r < batch.count; r++) {
            shares[r] = count < n ? 1 : w[batch.nodes[r]];
        }
        TRY_TO(done, frgi_distances_rows(d, batch.nodes, batch.count, rows, n));
        visit(user, &batch);
    }
done:
    DROP(d->ctx, &rows);
    DROP(d->ctx, &nodes);
    return status;
}

typedef struct {
    const frg_context *ctx;
    const double *w; /* of a mean of squares */
    double *sums;
    double total; /* of the shares */
} row_sums;

/** A frgi_batch_visitor, user row_sums: sums[node] <- sum_k C_k^2 w_k. */
static void sum_squares(void *user, const frgi_row_batch *batch)
{
    const row_sums *const s = user;
    const int64_t n = batch->n, count = batch->count;
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (count * n > 100000)
    for (int64_t r = 0; r < count; r++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) {
            sum += (double)batch->rows[r * n + k] * (double)batch->rows[r * n + k] * s->w[k];
        }
        s->sums[batch->nodes[r]] = sum;
    }
}

frg_status frgi_distances_squares(frgi_distances *d, const double *w, double *out)
{
    row_sums s = {.ctx = d->ctx, .w = w, .sums = out};
    if (d->kind == FRGI_AWAY) {
        return frgi_distances_sums_there(d, w, true, out);
    }
    frgi_host_step(d->ctx, FRGI_HOST_MEANS);
    return frgi_distances_walk(d, w, d->n, sum_squares, &s);
}

/** A frgi_batch_visitor, user row_sums: sums[i] += sum_r share_r C_ri. */
static void sum_distances(void *user, const frgi_row_batch *batch)
{
    row_sums *const s = user;
    const int64_t n = batch->n, count = batch->count;
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (count * n > 100000)
    for (int64_t piece = 0; piece < BATCH; piece++) {
        for (int64_t r = 0; r < count; r++) {
            for (int64_t i = piece * n / BATCH; i < (piece + 1) * n / BATCH; i++) {
                s->sums[i] += batch->shares[r] * (double)batch->rows[r * n + i];
            }
        }
    }
    for (int64_t r = 0; r < count; r++) {
        s->total += batch->shares[r];
    }
}

frg_status frgi_distances_means(frgi_distances *d, const double *w, int64_t most, float *out)
{
    row_sums s = {.ctx = d->ctx};
    frg_status status = FRG_OK;
    TRY_TO(done, NEW0(d->ctx, &s.sums, d->n, "means of distances"));
    if (d->kind == FRGI_AWAY && most >= d->n) {
        TRY_TO(done, frgi_distances_sums_there(d, w, false, s.sums));
        for (int64_t k = 0; k < d->n; k++) {
            s.total += w[k];
        }
    } else {
        frgi_host_step(d->ctx, FRGI_HOST_MEANS);
        TRY_TO(done, frgi_distances_walk(d, w, most, sum_distances, &s));
    }
    for (int64_t i = 0; i < d->n; i++) {
        out[i] = (float)(s.sums[i] / s.total);
    }
done:
    DROP(d->ctx, &s.sums);
    return status;
}
