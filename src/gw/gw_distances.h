/* gw_distances.h - the distances inside one side, however they are had. */
#ifndef FRGI_GW_DISTANCES_H
#define FRGI_GW_DISTANCES_H

#include "device/device.h"
#include "graph/graph.h"

#pragma GCC visibility push(hidden)

typedef enum {
    FRGI_DENSE,  /* n x n in memory */
    FRGI_VECTOR, /* |z_i - z_k|: landmark coordinates or points */
    FRGI_ROWS,   /* shortest paths, computed when asked for and cached */
    FRGI_AWAY    /* n x n on the device; rows come over when asked for and are cached */
} frgi_distance_kind;

/** The machine beside the host that an alignment's distances are for. */
typedef struct {
    frgi_device *dev;    /* NULL: none */
    int group;           /* work-items, 0: the usual */
    frgi_buffer lengths; /* n x n, of all paths, until all distances are asked for */
    frgi_buffer all;     /* AWAY: n x n floats, scaled, infinite ones filled */
    bool cut;            /* AWAY: some were infinite */
    uint64_t hash;       /* AWAY: of what was seen of the rows */
} frgi_distances_there;

typedef struct {
    frg_context *ctx;
    frgi_distance_kind kind;
    int64_t n;
    float *dense;
    frg_gw_landmark_metric metric; /* of VECTOR */
    int64_t d;                     /* VECTOR: coordinates of a point */
    double *exact; /* of dtype f64: the points (n x d) or distances (n x n) that were given */
    float *points; /* n x d */
    float *blocks; /* the same, 16 side by side */
    float *all;    /* n x n scaled distances of few vectors; NULL: from the points each time */
    const frg_graph *graph;
    frg_graph *own_graph;
    /* ROWS, AWAY: a ring of rows; at[v]: slot of node v, -1: not there */
    float *cache;
    int32_t *at, *owner;
    int64_t capacity, slots, next;
    float most;   /* the largest finite distance (2-sweep unless dense or a graph in parts) */
    float scale;  /* 1 / most, or 1 */
    float beyond; /* what stands for infinite: 1.5 times the largest */
    double graph_seconds, seconds;
    int64_t components;
    frgi_distances_there there;
} frgi_distances;

/** Are distances those of the vectors, not bounds that landmarks give? */
static inline bool frgi_distances_euclidean(const frgi_distances *d)
{
    return d->kind == FRGI_VECTOR && d->metric == FRG_GW_LANDMARK_L2;
}

/** Are rows fetched into the cache? */
static inline bool frgi_distances_cached(const frgi_distances *d)
{
    return d->kind == FRGI_ROWS || d->kind == FRGI_AWAY;
}

/** Are all distances there, on the host or on the device? */
static inline bool frgi_distances_whole(const frgi_distances *d)
{
    return d->kind == FRGI_DENSE || d->kind == FRGI_AWAY;
}

/** What is seen of a matrix of distances: the largest finite entry, of the diagonal, of
 *  |x_ij - x_ji|. */
typedef struct {
    double most, diagonal, gap;
} frgi_matrix_seen;
/** E_SHAPE where it is not square. */
FRG_MUST_USE frg_status frgi_matrix_square(frg_context *ctx, const frg_array *a, const char *name);
/** E_DISTANCE for an entry x that is none. */
FRG_MUST_USE frg_status frgi_matrix_refuse(frg_context *ctx, const char *name, int64_t i, int64_t j,
                                           double x);
/** Warnings; E_DISTANCE where all are too small. */
FRG_MUST_USE frg_status frgi_matrix_check_seen(frg_context *ctx, const char *name,
                                               const frgi_matrix_seen *seen);

/** Checks and opens.  `name` ("source", "target") stands in messages.  Positive: stopped, without
 *  distances. */
FRG_MUST_USE frg_status frgi_distances_open(frgi_distances *d, frg_context *ctx,
                                            const frg_gw_side *side, const frg_gw_opts *o,
                                            const char *name);
/** The same where they are for a device (dev not NULL), which finds the paths between all nodes;
 *  group 0: the usual one. */
FRG_MUST_USE frg_status frgi_distances_open_for(frgi_distances *d, frg_context *ctx,
                                                frgi_device *dev, int group,
                                                const frg_gw_side *side, const frg_gw_opts *o,
                                                const char *name);
void frgi_distances_close(frgi_distances *d);
/** Of what the distances come from. */
uint64_t frgi_distances_hash(const frgi_distances *d, uint64_t seed);
/** out[r * stride + i] <- scaled distances of nodes[r], infinite ones filled. */
FRG_MUST_USE frg_status frgi_distances_rows(frgi_distances *d, const int32_t *nodes, int64_t count,
                                            float *out, int64_t stride);
/** The same, less the means of the points: out[r * stride + i] - means[i]; NULL: 0. */
FRG_MUST_USE frg_status frgi_distances_centred(frgi_distances *d, const int32_t *nodes,
                                               int64_t count, const float *means, float *out,
                                               int64_t stride);
/** out[r * n_to + q] <- scaled distances from[r] - to[q]. */
FRG_MUST_USE frg_status frgi_distances_cross(frgi_distances *d, const int32_t *from, int64_t n_from,
                                             const int32_t *to, int64_t n_to, float *out);
/** The same from what was given, in doubles; d->exact is there. */
void frgi_distances_exact(const frgi_distances *d, const int32_t *from, int64_t n_from,
                          const int32_t *to, int64_t n_to, double *out);
/** Scaled distances of count points to all n: rows[r * n + i] of nodes[r], which stands for
 *  shares[r] of the weight. */
typedef struct {
    const int32_t *nodes;
    const double *shares;
    const float *rows;
    int64_t count, n;
} frgi_row_batch;
typedef void (*frgi_batch_visitor)(void *user, const frgi_row_batch *batch);
/** Visits the rows of all points, weights w, in batches; `most` and less than all points: of these
 *  many at equal steps of the weights, with equal shares of 1. */
FRG_MUST_USE frg_status frgi_distances_walk(frgi_distances *d, const double *w, int64_t most,
                                            frgi_batch_visitor visit, void *user);
/** out[i] <- sum_k C_ik^2 w_k, scaled; O(n^2). */
FRG_MUST_USE frg_status frgi_distances_squares(frgi_distances *d, const double *w, double *out);
/** count nodes at equal steps of the weights, in order; of n all. */
void frgi_distances_choose(const double *w, int64_t n, int64_t count, int32_t *nodes);
/** out[i] <- sum_k C_ik w_k / sum_k w_k, scaled; `most` and less than all points: over these many
 *  at equal steps of the weights. */
FRG_MUST_USE frg_status frgi_distances_means(frgi_distances *d, const double *w, int64_t most,
                                             float *out);
/** A dense side on some of the points; keeps the scale and the fill. */
FRG_MUST_USE frg_status frgi_distances_subset(frgi_distances *out, frgi_distances *d,
                                              const int32_t *nodes, int64_t count);
/** Farthest points from node 0 on, and for every point the nearest of them (a position in
 *  `chosen`). */
FRG_MUST_USE frg_status frgi_distances_spread(frgi_distances *d, int64_t count, int32_t *chosen,
                                              int32_t *nearest);

/* ---- on a device (gw_distances_device.c) ---- */

/** The lengths of the paths between all nodes there, and a copy as d->dense, which has room for it;
 *  infinite ones are INFINITY.  Positive: stopped. */
FRG_MUST_USE frg_status frgi_distances_paths_there(frgi_distances *d);
/** Drops that of them which is there. */
void frgi_distances_forget_there(frgi_distances *d);
/** to (n x n floats) <- from, scaled, infinite ones filled. */
FRG_MUST_USE frg_status frgi_distances_rescale_there(const frgi_distances *d, frgi_buffer to,
                                                     frgi_buffer from);
/** Room for all distances: of the arena, or where they are. */
frgi_buffer frgi_distances_take(const frgi_distances *d, frgi_device_arena *a);
/** to, of frgi_distances_take <- all distances, scaled, infinite ones filled.  Positive:
 *  stopped. */
FRG_MUST_USE frg_status frgi_distances_all_there(frgi_distances *d, frgi_buffer to);

/* ---- what the caller has on a device (gw_given_device.c) ---- */

/** A matrix of the caller's for the host. */
typedef struct {
    frg_context *ctx;
    frg_array here; /* as it was given, or a copy in its type, row by row */
    char *copy;
} frgi_given;
/** dev: the alignment's, NULL: the host.  Errors: those of frgi_array_check and frgi_device_adopt.
 *  To be closed, failed or not. */
FRG_MUST_USE frg_status frgi_given_open(frgi_given *g, frg_context *ctx, frgi_device *dev,
                                        const frg_array *a, const char *name);
void frgi_given_close(frgi_given *g);
/** AWAY: a matrix of distances of the caller's, looked at and copied there, not scaled yet. */
FRG_MUST_USE frg_status frgi_distances_adopt(frgi_distances *d, const frg_array *a,
                                             const char *name);
/** AWAY: scaled and filled. */
FRG_MUST_USE frg_status frgi_distances_scale_there(frgi_distances *d);
/** AWAY: rows (count x n) <- those of the nodes. */
FRG_MUST_USE frg_status frgi_distances_rows_there(const frgi_distances *d, const int32_t *nodes,
                                                  int64_t count, float *rows);
/** AWAY: out[i] <- sum_k C_ik w_k, or sum_k C_ik^2 w_k. */
FRG_MUST_USE frg_status frgi_distances_sums_there(const frgi_distances *d, const double *w,
                                                  bool squared, double *out);

#pragma GCC visibility pop
#endif
