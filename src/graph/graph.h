/* graph.h - inside a graph, and the steps on it that are compiled once per CPU level. */
#ifndef FRGI_GRAPH_H
#define FRGI_GRAPH_H

#include "core/core.h"
#include "fourge/gw.h"

#pragma GCC visibility push(hidden)

enum {
    FRGI_LANES = 16,  /* points side by side in a block, sources of a search */
    FRGI_TILE = 64,   /* nodes of a side of a tile */
    FRGI_QUERIES = 4, /* points whose distances to a block are computed together */
};

/** frg_progress.solver of the public functions on graphs. */
#define GRAPH_SOLVER "graph"
/** Lengths above this are refused: sums along a path of 2^31 arcs stay finite in f32. */
#define FRGI_LENGTH_MAX 1e28

/** An arc as the searches read it: 8 bytes, so that an arc never straddles two cache lines. */
typedef struct {
    int32_t to;
    float length;
} frgi_arc;

/** An arc with its tail, while a graph is built. */
typedef struct {
    int32_t from, to;
    float length;
} frgi_edge;

struct frg_graph {
    frg_context *ctx;
    int64_t n;
    int64_t *starts; /* n + 1 */
    int32_t *targets;
    float *lengths;
    int32_t *order; /* nodes in order of proximity: order[place] = node; NULL until it is needed */
    frg_graph_report report;
};

/** *out <- the graph of `count` edges: loops dropped, parallel arcs merged by the smaller length,
 *  and unless directed every arc in both directions. */
FRG_MUST_USE frg_status frgi_graph_build(frg_graph **out, frg_context *ctx, int64_t n,
                                         const frgi_edge *edges, int64_t count, bool directed);
/** Refuses points whose squared distances would all vanish in f32; most: the largest difference of
 *  coordinates. */
FRG_MUST_USE frg_status frgi_check_apart(frg_context *ctx, const char *name, double most);
/** The root of v in a forest of parents. */
int32_t frgi_root_of(int32_t *parent, int32_t v);
/** Component of every node, numbered by first appearance; returns how many. */
int64_t frgi_components(int64_t n, const frgi_edge *edges, int64_t count, int32_t *component);

/** Order of proximity of points with d features, by recursive bisection; blocks of 16 stay
 *  together. order holds 0 .. n-1 on entry in any order. */
void frgi_bisect(const float *features, int64_t d, int32_t *order, int64_t n);

/** As frg_graph_knn, within a run of `solver` (of frg_progress) that has begun; positive: stopped,
 *  nothing is written. */
FRG_MUST_USE frg_status frgi_graph_knn(frg_graph **out, frg_context *ctx, frg_array points,
                                       const frg_graph_opts *o, const char *solver);
/** Chooses landmarks as frg_graph_landmarks; rows (count x n) <- the distances by landmark. */
FRG_MUST_USE frg_status frgi_landmark_rows(const frg_graph *g, int64_t count, int64_t *nodes,
                                           float *rows, int64_t *found);
/** rows[s] (length n, at rows + s * stride) <- distances from sources[s]; all different.  solver:
 *  that of the progress which is reported; rows are left undone where it is stopped (positive
 *  status); NULL: no report, no stop. */
FRG_MUST_USE frg_status frgi_path_rows(const frg_graph *g, const int32_t *sources, int64_t count,
                                       float *rows, int64_t stride, const char *solver,
                                       frg_paths_report *report);

/** The parser behind frg_graph_read, on bytes (graph_read.c); `name` stands in messages. */
FRG_MUST_USE frg_status frgi_graph_parse(frg_graph **out, frg_context *ctx, const char *bytes,
                                         int64_t count, const char *name, int directed);

/* ---- steps per CPU level --------------------------------------------------------------------- */

/** What a search of 16 sources works in. */
typedef struct {
    int64_t n;
    const int64_t *starts; /* nodes numbered by proximity */
    const frgi_arc *arcs;
    float bucket_width;
    int64_t most_visits; /* of arcs; the search gives up with the first one more */
    float *distance;     /* n x 16, 64-byte aligned */
    float *key;          /* n */
    int32_t *next;       /* n; lists of the buckets */
    int32_t *before;     /* n */
    int32_t *bucket;     /* n; -1: in none */
} frgi_search;

enum { FRGI_BUCKETS = 2048 };

typedef struct {
    /** distance[v][lane] <- the shortest paths from sources[lane]; returns the arcs visited: where
     *  these are more than most_visits the distances are not the shortest ones. */
    int64_t (*search)(const frgi_search *s, const int32_t *sources, int count, int32_t *heads);
    /** out[lane][j] <- distance[place[j]][lane], lanes at a distance of `stride`. */
    void (*spread)(int64_t n, const float *distance, const int32_t *place, int count, float *out,
                   int64_t stride);
    /** One tile of Floyd and Warshall:  c <- min(c, a (+) b), 64 x 64 tiles of matrices with
     *  leading dimension ld; in_order: the steps k in turn, as tiles need that depend on
     *  themselves. */
    void (*tile)(float *c, const float *a, const float *b, int64_t ld, bool in_order);
    /** The k nearest points of order[first .. last-1], by rising (squared distance, index), at row
     *  node * k of both lists.  blocks: the points in `order`, 16 side by side. */
    void (*nearest)(const float *blocks, const int32_t *order, int64_t n, int64_t d,
                    const float *points, int64_t first, int64_t last, int64_t k, float *squared,
                    int32_t *index);
    /** For the points first .. last-1 the nearest point of another component: squared distance and
     *  index (infinite and -1 where there is none). */
    void (*outside)(const float *blocks, const int32_t *order, int64_t n, int64_t d,
                    const float *points, const int32_t *component, int64_t first, int64_t last,
                    float *squared, int32_t *index);
    /** out[q * stride + i] <- |point i - query q|, i < n, for up to FRGI_QUERIES of them; blocks of
     *  FRGI_LANES points side by side. */
    void (*euclid)(const float *blocks, int64_t n, int64_t d, const float *const *queries,
                   int count, float *out, int64_t stride);
    /** to[i] <- scale times from[i], of an infinite one times beyond, less means[i] (NULL: 0); to
     *  may be from. */
    void (*rescale)(const float *from, int64_t n, float scale, float beyond, const float *means,
                    float *to);
    /** The largest finite one, 0 where there is none; *cut where one is infinite. */
    float (*farthest)(const float *row, int64_t n, bool *cut);
} frgi_graph_ops;

const frgi_graph_ops *frgi_graph_ops_of(const frg_context *ctx);

#pragma GCC visibility pop
#endif
