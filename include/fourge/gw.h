/* gw.h - Gromov-Wasserstein: graphs and shortest paths, Sinkhorn, alignment of two spaces.
 *
 * Problem.  X has n points and weights a, Y has m points and weights b; C (n x n) and D (m x m) hold the
 * distances inside each.  Wanted is a plan P (n x m), P 1 = a, P' 1 = b, of small energy
 *
 *     E(P) = sum_ijkl (C_ik - D_jl)^2 P_ij P_kl,           distance = sqrt(E)
 *
 * No 1/2 in E and no root.  Half of its gradient is L(P)_ij = sum_k C_ik^2 r_k + sum_l D_jl^2 c_l - 2 (C P D)_ij
 * with r = P 1, c = P' 1.
 */
#ifndef FOURGE_GW_H
#define FOURGE_GW_H

#include "fourge/fourge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graphs ------------------------------------------------------------------------------------- */

/** Nodes 0 .. n-1 and arcs of length >= 0; an undirected edge is two arcs. */
typedef struct frg_graph frg_graph;

typedef struct {
    size_t struct_size;
    int64_t k;   /* nearest neighbours of a point, itself not counted; 30 */
    int k_clamp; /* 1: k >= n becomes n - 1; 0: it is refused */
    int stitch;  /* 1: components are joined by the shortest edges between them */
} frg_graph_opts;

typedef struct {
    int64_t n;
    int64_t arcs;       /* an undirected edge counts twice */
    int64_t components; /* weakly connected, after stitching */
    int64_t stitched;   /* edges that stitching added */
    int directed;
} frg_graph_report;

FRG_API void frg_graph_defaults(frg_graph_opts *o, size_t struct_size);
/** The graph of the k nearest neighbours of each of the rows of points (n x d, f32 or f64), exact; ties go to
 *  the lower index.  An edge i-j is there if either lists the other; its length is their distance, 0 between
 *  equal points.  Errors: E_NOT_FINITE with row and column, E_ARG for k outside 1 .. n-1. */
FRG_API FRG_MUST_USE frg_status frg_graph_knn(frg_graph **out, frg_context *ctx, frg_array points,
                                              const frg_graph_opts *o);
/** A graph in compressed rows: node i has the arcs targets[starts[i] .. starts[i+1]) (starts, targets: i32 or
 *  i64) with `weights` (f32 or f64; NULL: all 1).  Explicit zeros are arcs of length 0; loops are left out;
 *  of several arcs between two nodes the shortest stays.  Not directed: both directions get the shorter one.
 *  Errors: E_GRAPH with row and entry. */
FRG_API FRG_MUST_USE frg_status frg_graph_csr(frg_graph **out, frg_context *ctx, frg_array starts,
                                              frg_array targets, const frg_array *weights,
                                              int directed);
/** Reads a Matrix Market file (coordinate; real, integer or pattern; general or symmetric) or an edge list:
 *  lines "from to [weight]", nodes counted from 0, blanks, commas or tabs between, # and % begin comments.
 *  The kind is seen from the first line.  Errors: E_FORMAT with the line, E_NO_INPUT, E_READ. */
FRG_API FRG_MUST_USE frg_status frg_graph_read(frg_graph **out, frg_context *ctx, const char *path,
                                               int directed);
FRG_API frg_graph_report frg_graph_get(const frg_graph *g);
/** The arcs by row, targets rising; alive as long as g. */
FRG_API void frg_graph_arcs(const frg_graph *g, const int64_t **starts, const int32_t **targets,
                            const float **weights);
FRG_API void frg_graph_destroy(frg_graph *g);

typedef struct {
    const char *method;         /* "dijkstra", "label correction", "floyd-warshall" */
    int64_t sources;            /* different ones */
    double relaxations_per_arc; /* by batch of 16 sources; 1 for dijkstra */
    double seconds;
} frg_paths_report;

/** out[s][v] <- the length of the shortest path from sources[s] to v; infinite where there is none.
 *  sources NULL: all nodes in order, n_sources = n.  out: n_sources x n, f32 or f64, any strides.  Lengths are
 *  sums in f32 along the path.  report may be NULL. */
FRG_API FRG_MUST_USE frg_status frg_graph_paths(const frg_graph *g, const int64_t *sources,
                                                int64_t n_sources, frg_array out,
                                                frg_paths_report *report);
/** Landmarks: node 0, then always the node farthest from those chosen (ties: the lower index; what cannot be
 *  reached is left out), until `count` are there or all others are at distance 0 of one.
 *  nodes[l] <- landmark l; out (n x count, f32 or f64) <- the distances to it; *found <- how many. */
FRG_API FRG_MUST_USE frg_status frg_graph_landmarks(const frg_graph *g, int64_t count, int64_t *nodes,
                                                    frg_array out, int64_t *found);
/** Bounds of the distance between two nodes from their distances to L landmarks:
 *  max_l |z_l - w_l| <= d <= min_l (z_l + w_l). */
FRG_API void frg_landmark_bounds(const float *z, const float *w, int64_t n_landmarks, float *lower,
                                 float *upper);

#ifdef __cplusplus
}
#endif
#endif
