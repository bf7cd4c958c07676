/* gw.h - Gromov-Wasserstein: graphs and shortest paths, Sinkhorn, alignment of two spaces.
 *
 * Problem.  X has n points and weights a, Y has m points and weights b; C (n x n) and D (m x m)
 * hold the distances inside each.  Wanted is a plan P (n x m), P 1 = a, P' 1 = b, of small energy
 *
 *     E(P) = sum_ijkl (C_ik - D_jl)^2 P_ij P_kl,           distance = sqrt(E)
 *
 * No 1/2 in E and no root.  Half of its gradient is L(P)_ij = sum_k C_ik^2 r_k + sum_l D_jl^2 c_l -
 * 2 (C P D)_ij with r = P 1, c = P' 1.
 */
#ifndef FOURGE_GW_H
#define FOURGE_GW_H

#include "fourge/checkpoint.h"
#include "fourge/fourge.h"
#include "fourge/mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graphs ---------------------------------------------------------------------------------- */

/** Nodes 0 .. n-1 and arcs of length >= 0; an undirected edge is two arcs. */
typedef struct frg_graph frg_graph;

/** Options of frg_graph_knn. */
typedef struct {
    size_t struct_size; /* set by frg_graph_defaults */
    int64_t k;          /* nearest neighbours of a point, itself not counted; 30 */
    int k_clamp;        /* 1: k >= n becomes n - 1; 0: it is refused */
    int stitch;         /* 1: components are joined by the shortest edges between them */
} frg_graph_opts;

/** What a graph is. */
typedef struct {
    int64_t n;          /* nodes */
    int64_t arcs;       /* an undirected edge counts twice */
    int64_t components; /* weakly connected, after stitching */
    int64_t stitched;   /* edges that stitching added */
    int directed;       /* as it was made; 0 of neighbours and meshes */
} frg_graph_report;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_graph_defaults(frg_graph_opts *o, size_t struct_size);
/** The fields of frg_graph_opts (frg_option). */
FRG_API const frg_option *frg_graph_options(void);
/** The graph of the k nearest neighbours of each of the rows of points (n x d, f32 or f64), exact;
 *  ties go to the lower index.  An edge i-j is there if either lists the other; its length is their
 *  distance, 0 between equal points.  n is at most 2^31 - 2. Errors: E_COORDINATE with row and
 *  column, E_ARG for k outside 1 .. n-1.  FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped, *out is
 *  NULL. */
FRG_API FRG_MUST_USE frg_status frg_graph_knn(frg_graph **out, frg_context *ctx, frg_array points,
                                              const frg_graph_opts *o);
/** A graph in compressed rows: node i has the arcs targets[starts[i] .. starts[i+1]) (starts,
 *  targets: i32 or i64) with `weights` (f32 or f64; NULL: all 1).  Explicit zeros are arcs of
 *  length 0; loops are left out; of several arcs between two nodes the shortest stays.  Not
 *  directed: both directions get the shorter one. Errors: E_GRAPH with row and entry. */
FRG_API FRG_MUST_USE frg_status frg_graph_csr(frg_graph **out, frg_context *ctx, frg_array starts,
                                              frg_array targets, const frg_array *weights,
                                              int directed);
/** Reads a Matrix Market file (coordinate; real, integer or pattern; general or symmetric) or an
 *  edge list: lines "from to [weight]", nodes counted from 0, blanks, commas or tabs between, # and
 *  % begin comments. The kind is seen from the first line.  Errors: E_FORMAT with the line,
 *  E_NO_INPUT, E_READ. FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped while it waited for a pipe, *out is
 *  NULL. */
FRG_API FRG_MUST_USE frg_status frg_graph_read(frg_graph **out, frg_context *ctx, const char *path,
                                               int directed);
/** The graph of a mesh's edges with their lengths, not directed.  Errors: E_ARG where it has points
 *  alone, E_GRAPH for an edge too long for f32. */
FRG_API FRG_MUST_USE frg_status frg_graph_mesh(frg_graph **out, frg_context *ctx,
                                               const frg_mesh *mesh);
/** The sizes of the graph; all zeros for NULL. */
FRG_API frg_graph_report frg_graph_get(const frg_graph *g);
/** The arcs by row, targets rising; alive as long as g. */
FRG_API void frg_graph_arcs(const frg_graph *g, const int64_t **starts, const int32_t **targets,
                            const float **weights);
/** Frees the graph; NULL is fine. */
FRG_API void frg_graph_destroy(frg_graph *g);

/** How shortest paths were found. */
typedef struct {
    const char *method;         /* "dijkstra", "label correction", "floyd-warshall"; "label
                                   correction, dijkstra" where lengths made the first take 64
                                   relaxations an arc, and the second took over */
    int64_t sources;            /* different ones */
    double relaxations_per_arc; /* by batch of 16 sources; 1 for dijkstra */
    double seconds;             /* of the call */
} frg_paths_report;

/** out[s][v] <- the length of the shortest path from sources[s] to v; infinite where there is none.
 *  sources NULL: all nodes in order, n_sources = n.  out: n_sources x n, f32 or f64, any strides.
 *  Lengths are sums in f32 along the path.  report may be NULL.  Errors: E_ARG for a node that is
 *  not there, E_SHAPE, E_DTYPE, E_MEMORY; FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped. */
FRG_API FRG_MUST_USE frg_status frg_graph_paths(const frg_graph *g, const int64_t *sources,
                                                int64_t n_sources, frg_array out,
                                                frg_paths_report *report);
/** Landmarks: node 0, then always the node farthest from those chosen (ties: the lower index; what
 *  cannot be reached is left out), until `count` are there or all others are at distance 0 of one.
 *  nodes[l] <- landmark l; out (n x count, f32 or f64) <- the distances to it; *found <- how
 *  many.  Errors: E_ARG for a count outside 1 .. n, E_SHAPE, E_DTYPE, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_graph_landmarks(const frg_graph *g, int64_t count,
                                                    int64_t *nodes, frg_array out, int64_t *found);
/** Bounds of the distance between two nodes from their distances to L landmarks:
 *  max_l |z_l - w_l| <= d <= min_l (z_l + w_l). */
FRG_API void frg_landmark_bounds(const float *z, const float *w, int64_t n_landmarks, float *lower,
                                 float *upper);

/* ---- plans ----------------------------------------------------------------------------------- */

/** A transport plan P (n x m) that is never stored: rows are made when they are asked for.  It
 *  belongs to what computed it and lives as long. */
typedef struct frg_plan frg_plan;

/** Size and marginals of a plan; errors beside the weights a and b. */
typedef struct {
    int64_t n, m;                              /* rows, columns */
    double mass;                               /* sum of P */
    double source_error, target_error;         /* L1 errors of the marginals of P */
    double source_error_max, target_error_max; /* the largest of one point */
    double source_before, target_before;       /* L1 errors before rounding */
    int rounded;                               /* the marginals are exact up to sums in double */
} frg_plan_report;

/** Size and marginals; all zeros for NULL. */
FRG_API frg_plan_report frg_plan_get(const frg_plan *p);
/** Rows first .. last-1 into out ((last - first) x m, f64 or f32, any strides).  Errors: E_ARG for
 *  rows that are not there, E_SHAPE, E_DTYPE.
 *
 *  Of a frg_sinkhorn that ran on a device with double precision out may lie there, too: it is
 *  written in place, by the device.  Where costs lie on a device, rows for the host, and those that
 *  the calls below go through, are made there and copied, a few at a time (E_MEMORY, E_DEVICE_LOST
 *  are errors of these calls then). */
FRG_API FRG_MUST_USE frg_status frg_plan_rows(const frg_plan *p, int64_t first, int64_t last,
                                              frg_array out);
/** The k largest entries of every row, falling, ties to the lower column; index and value: n x
 *  k.  Errors: E_ARG for k outside 1 .. m. */
FRG_API FRG_MUST_USE frg_status frg_plan_top(const frg_plan *p, int64_t k, int64_t *index,
                                             double *value);
/** The column of the largest entry of every row (-1 for a row without mass).  Errors: E_ARG for
 *  NULL. */
FRG_API FRG_MUST_USE frg_status frg_plan_argmax(const frg_plan *p, int64_t *index);
/** Entries >= threshold in compressed rows.  Call it with columns and values NULL first: starts (n
 *  + 1) is filled, starts[n] is the room that the second call needs.  Errors: E_ARG where one of
 *  columns and values alone is NULL. */
FRG_API FRG_MUST_USE frg_status frg_plan_sparse(const frg_plan *p, double threshold,
                                                int64_t *starts, int32_t *columns, double *values);
/** out (n x q) <- P V, V m x q; transposed: out (m x q) <- P' V, V n x q.  f64, any strides.
 *  Errors: E_SHAPE, E_DTYPE, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_plan_apply(const frg_plan *p, frg_array v, int transposed,
                                               frg_array out);
/** The label with the most mass in every row, of labels[j] in 0 .. n_labels-1 (negative: none), and
 *  its share of the row's labelled mass (share may be NULL).  Rows without labelled mass get -1.
 *  Errors: E_ARG for a label beyond n_labels - 1, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_plan_labels(const frg_plan *p, const int32_t *labels,
                                                int64_t n_labels, int32_t *out, double *share);

/* ---- Sinkhorn -------------------------------------------------------------------------------- */

/** How costs are held between the passes, n m entries.  Passes over fixed point end with passes,
 *  one at least, over the costs as they were given (f32, made anew for each), which the plan is of
 *  and whose error is reported; bfloat16 kernels alike. */
typedef enum {
    FRG_GW_STORE_AUTO, /* f32; see frg_gw_opts.cost_store for alignments */
    FRG_GW_STORE_F32,  /* float */
    FRG_GW_STORE_U16,  /* fixed point; refused where the range of the costs / epsilon > 1300 */
    FRG_GW_STORE_U16R, /* the same after two passes in f32, with their potentials: any range and
                          epsilon */
    FRG_GW_STORE_FLY,  /* nothing is stored */
    FRG_GW_STORE_F64   /* double */
} frg_gw_store;
/** What a pass of frg_sinkhorn_run works on. */
typedef enum {
    FRG_GW_DOMAIN_AUTO,  /* log */
    FRG_GW_DOMAIN_LOG,   /* costs: one exponential an entry and pass, any epsilon */
    FRG_GW_DOMAIN_KERNEL /* stored kernels exp(-C / epsilon): products alone; not with partial mass
                            or cost_store fly (E_UNSUPPORTED) */
} frg_gw_domain;
/** How the kernels of that domain are held. */
typedef enum {
    FRG_GW_KERNEL_AUTO, /* f32 */
    FRG_GW_KERNEL_F32,  /* float */
    FRG_GW_KERNEL_BF16  /* bfloat16 */
} frg_gw_kernel_store;
/** Acceleration of the passes. */
typedef enum {
    FRG_GW_ACCEL_NONE,    /* Sinkhorn's iteration as it is */
    FRG_GW_ACCEL_MOMENTUM /* Nesterov's momentum with restarts; plain where marginals are relaxed */
} frg_gw_accel;
/** What entropy is relative to.  Balanced plans are the same. */
typedef enum {
    FRG_GW_REFERENCE_COUNTING, /* sum P (log P - 1) */
    FRG_GW_REFERENCE_PRODUCT   /* KL(P | a b'); not with partial mass */
} frg_gw_reference;

/** Options of frg_sinkhorn_create. */
typedef struct {
    size_t struct_size;               /* set by frg_sinkhorn_defaults */
    double epsilon;                   /* 0.05, cost units */
    double tol;                       /* 1e-6: L1 error of the marginals relative to the mass; 0:
                                         max_iter passes */
    int64_t max_iter;                 /* 1000 passes */
    frg_gw_store cost_store;          /* auto */
    frg_gw_domain domain;             /* auto: log */
    frg_gw_kernel_store kernel_store; /* auto: f32 */
    frg_gw_accel accel;               /* momentum */
    /** Infinite (default): the marginal holds; else its KL penalty, cost units. */
    double rho_source, rho_target;
    frg_gw_reference reference; /* counting */
    /** 0: all; else the mass carried, at most the smaller sum.  What is not goes to and from a
     *  dummy point a side at a cost of 0, whose entries the entropy counts too. */
    double mass;
    int round;      /* 1: exact marginals at the end (not where they are relaxed) */
    int auto_store; /* 0; 1: where memory has no room for cost_store (auto: f32), the
                                   next smaller form of f64, f32, u16 or u16r, fly that it has room
                                   for (W_STORE); not of kernels */
} frg_sinkhorn_opts;

/** What the last run did. */
typedef struct {
    int64_t iterations;    /* passes */
    double marginal_error; /* of the last pass, or where all mass is carried and marginals hold of
                              the plan before rounding if that is more; L1 relative to the mass.
                              Where rho_target is finite the largest change of g / epsilon, which
                              `tol` then stands for */
    double cost;           /* <C, P> */
    /** Of frg_sinkhorn_create; of the passes; of rounding, marginals and cost; of all three. */
    double build_seconds, inner_seconds, polish_seconds, total_seconds;
    double bytes_read;       /* of the stored costs */
    int converged;           /* marginal_error <= tol */
    frg_gw_store cost_store; /* the form they had; auto in the kernel domain */
    double rounding_floor;   /* FRG_STALLED: the smallest error that was reached, which is what
                                rounding leaves; else NaN */
    /** On a device, while the solver was made, given potentials to start from and in the last run:
     *  kernels launched, waits of the host for them, bytes copied there and from there.  0 on the
     *  cpu.  What is read of the plan afterwards is not in it. */
    int64_t device_launches, device_waits, device_bytes_in, device_bytes_out;
    double objective; /* the least <C, P> + epsilon sum P (log P - 1), by its dual <f, a> + <g, b> -
                         epsilon sum P, of weights as they are normalised.  Its derivatives are P in
                         C, f in a and g in b (along changes that keep the sums).  NaN where
                         marginals are relaxed or partial */
    frg_host_steps host_steps; /* on a device, of frg_sinkhorn_create and the last run, left to the
                                  host; none on the cpu */
} frg_sinkhorn_report;

/** Costs, weights and potentials of entropic transport, and its plan.  Made by frg_sinkhorn_create,
 *  freed by frg_sinkhorn_destroy before its context. */
typedef struct frg_sinkhorn frg_sinkhorn;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_sinkhorn_defaults(frg_sinkhorn_opts *o, size_t struct_size);
/** The fields of frg_sinkhorn_opts (frg_option). */
FRG_API const frg_option *frg_sinkhorn_options(void);
/** cost: n x m, f32 or f64, any strides, alive as long as the solver.  a (n), b (m): f64 or NULL
 *  for uniform ones; n and m at most 2^31 - 2; balanced problems are normalised to mass 1 (W_TOTALS
 *  where the sums are not 1). Errors: E_DISTANCE with row and column, E_MARGINAL (for sums of a
 *  balanced problem that differ, too), E_ARG; E_MEMORY before any work, with the bytes that
 *  cost_store and the next smaller form need.
 *
 *  On a device (frg_context_opts.device) costs are copied there once, n m floats or doubles, and
 *  the passes, the plan's sums and its cost are computed there: passes in float over floats
 *  (cost_store auto, f32) or fixed point (u16), then in double over the costs as they were given
 *  until tol holds there (f64: these alone).  A device without double precision ends with the
 *  floats, and the plan's sums and its cost are the host's.  Rows of the plan are made on the host
 *  from `cost`.  Bits are equal from run to run on one device.  E_DEVICE_STEP for what does not run
 *  there: cost_store u16r and fly, domain kernel, auto_store.
 *
 *  A cost that lies on that device (frg_array.device) is read in place, and has to stay as it is
 *  until the solver is destroyed; with gaps between its elements, or in another order than row by
 *  row, it is copied there once.  Weights and potentials are the host's: frg_sinkhorn_create_arrays
 *  and the calls like it take those of a device.  E_DEVICE_HANDLE for a cost on another device;
 *  E_PRECISION where the device has no doubles, as the plan's sums would be the host's. */
FRG_API FRG_MUST_USE frg_status frg_sinkhorn_create(frg_sinkhorn **out, frg_context *ctx,
                                                    frg_array cost, const double *a,
                                                    const double *b, const frg_sinkhorn_opts *o);
/** The same with weights as vectors a (n), b (m) of f32 or f64, in host memory (any stride) or on
 *  the context's device, wherever the cost lies; NULL: uniform.  They are read once, before the
 *  call returns: those of a device are copied to the host, which checks and normalises them, and
 *  the report counts their bytes.  Errors as above, and E_SHAPE, E_DTYPE; E_DEVICE_HANDLE for a
 *  vector of another device, or one there whose elements do not follow each other. */
FRG_API FRG_MUST_USE frg_status frg_sinkhorn_create_arrays(frg_sinkhorn **out, frg_context *ctx,
                                                           frg_array cost, const frg_array *a,
                                                           const frg_array *b,
                                                           const frg_sinkhorn_opts *o);
/** Potentials to start from, cost units; either may be NULL.  Errors: E_ARG for values that are not
 *  finite. */
FRG_API FRG_MUST_USE frg_status frg_sinkhorn_start(frg_sinkhorn *s, const double *f,
                                                   const double *g);
/** The same from vectors f (n), g (m) as frg_sinkhorn_create_arrays takes them.  Errors: E_ARG,
 *  E_SHAPE, E_DTYPE, E_DEVICE_HANDLE. */
FRG_API FRG_MUST_USE frg_status frg_sinkhorn_start_arrays(frg_sinkhorn *s, const frg_array *f,
                                                          const frg_array *g);
/** The passes, from the potentials of frg_sinkhorn_start or of the last run, to tol; then the plan,
 *  and up to 127 passes more where it misses tol, which the last pass met.  info may be NULL; its
 *  residual is marginal_error.  FRG_MAX_ITER where tol was not reached, FRG_STALLED where rounding
 *  keeps it from there; FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped, the plan is that of the last
 *  pass. */
FRG_API FRG_MUST_USE frg_status frg_sinkhorn_run(frg_sinkhorn *s, frg_info *info);
/** What the last run did; all zeros for NULL. */
FRG_API frg_sinkhorn_report frg_sinkhorn_get(const frg_sinkhorn *s);
/** The plan of the last run, which s owns, until the next; NULL before the first. */
FRG_API const frg_plan *frg_sinkhorn_plan(const frg_sinkhorn *s);
/** f (n) and g (m) of P = exp((f + g - C) / epsilon), cost units; either may be NULL.  Errors:
 *  E_ARG before the first run. */
FRG_API FRG_MUST_USE frg_status frg_sinkhorn_potentials(const frg_sinkhorn *s, double *f,
                                                        double *g);
/** The same into vectors f (n), g (m) as frg_sinkhorn_create_arrays takes them, to the nearest
 *  number of their type.  Errors: E_ARG, E_SHAPE, E_DTYPE, E_DEVICE_HANDLE. */
FRG_API FRG_MUST_USE frg_status frg_sinkhorn_potentials_arrays(const frg_sinkhorn *s,
                                                               const frg_array *f,
                                                               const frg_array *g);
/** Frees the solver and its plan; NULL is fine. */
FRG_API void frg_sinkhorn_destroy(frg_sinkhorn *s);

/* ---- transport without entropy --------------------------------------------------------------- */

/** What frg_emd found. */
typedef struct {
    double cost;     /* <C, P> */
    int64_t entries; /* of P with mass: n + m - 1 at most */
    int optimal;     /* 0: the most pivots were done before, and P is a vertex none the less */
} frg_emd_report;

/** plan (n x m) <- a vertex P of least <C, P> over P 1 = a, P' 1 = b, the sides' points those of
 *  cost (n x m); f (n) and g (m) <- its duals, f_i + g_j <= C_ij to rounding, equal where P has
 *  mass; both or neither may be NULL, report may be.  All in double, any strides; a and b: NULL for
 *  uniform weights of sum 1, of equal sums to 1e-6 (b is scaled to a's), zeros allowed.  By
 *  assignment (Jonker and Volgenant 1987) where all weights are equal, else by a network simplex.
 *  Errors: E_DISTANCE with row and column, E_MARGINAL, E_SHAPE, E_ARG, E_MEMORY.  FRG_MAX_ITER:
 *  optimal is 0. FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped; all outputs are as they were. */
FRG_API FRG_MUST_USE frg_status frg_emd(frg_context *ctx, frg_array cost, const double *a,
                                        const double *b, frg_array plan, double *f, double *g,
                                        frg_emd_report *report);

/* ---- alignment ------------------------------------------------------------------------------- */

/** How an alignment is computed. */
typedef enum {
    FRG_GW_AUTO,     /* vertex, where no option is given that this mode has no part in (anchors,
                        epsilon, anneal, damping, min_iter, tol, max_inner, marginal_tol, reference,
                        lambda_ema_beta, scale, sampling, multiscale, n_coarse, n_start, fine_steps,
                        polish, round, polish_tol, polish_passes, cost_store, rank, store_plan,
                        diag_exact, auto_store, start_from; a plan or potentials to start from), all
                        mass is carried and marginals hold, and there are at most 30000 points a
                        side of equal weights, 5000 others, and memory for it; else sampled.  An
                        option is given where its value is not the default, or frg_gw_give named
                        it.  The report says which mode was taken, and why */
    FRG_GW_SAMPLED,  /* L(P) from R pairs drawn from P */
    FRG_GW_EXACT,    /* L(P) by two matrix products; no random numbers: what asks for pairs, several
                        starts or sizes is E_UNSUPPORTED, in the mode landmark too */
    FRG_GW_LANDMARK, /* squared landmark distances, L(P) exact in rank landmarks + 2 */
    FRG_GW_VERTEX /* no sampling and no entropy: several starts, each by conditional gradient with
                     exact line search to a plan that no vertex is lower than to first order, mostly
                     a vertex itself (n + m - 1 entries at most); the lowest one.  Memory: all
                     distances and a few n x m arrays.  On a device the costs of plans are made,
                     starts and linear problems are the host's */
} frg_gw_mode;
/** What the distances inside a side are. */
typedef enum {
    FRG_GW_DISTANCE_AUTO,        /* precomputed up to 20000 points, landmark above; matrix, graph
                                    where given */
    FRG_GW_DISTANCE_LANDMARK,    /* distance of the vectors of path lengths to landmarks */
    FRG_GW_DISTANCE_DIJKSTRA,    /* path lengths in the graph of neighbours, rows when they are
                                    needed; of a graph in parts all are looked at once for the
                                    largest, 1.5 times which is the distance of parts */
    FRG_GW_DISTANCE_PRECOMPUTED, /* the same, all pairs at once */
    FRG_GW_DISTANCE_EUCLIDEAN,   /* between the points as they are given */
    FRG_GW_DISTANCE_MATRIX,      /* the data are the distances */
    FRG_GW_DISTANCE_GRAPH        /* a graph is given: path lengths, all pairs at once up to 8000
                                    nodes, above them rows when they are needed */
} frg_gw_distance;
/** How epsilon falls from its first value to its last, max(epsilon / 10, min(5e-4, epsilon)).  With
 *  a rank progress and iter are the same: by 10^(1/8) every 5 steps. */
typedef enum {
    FRG_GW_ANNEAL_PROGRESS, /* by 10^(1/8) whenever the energy, in the mode exact the plan, has
                               settled */
    FRG_GW_ANNEAL_ITER,     /* at step t by (last / first)^(t / max_iter), t from 0 on */
    FRG_GW_ANNEAL_NONE      /* not at all */
} frg_gw_anneal;
/** The unit of the distances of a side. */
typedef enum {
    FRG_GW_SCALE_FIXED,     /* its largest distance */
    FRG_GW_SCALE_BATCH_MAX, /* the largest of its distances to the points of the pairs of a step; of
                               the mode sampled alone */
    FRG_GW_SCALE_NONE       /* 1 */
} frg_gw_scale;
/** How the rows of the pairs are drawn from the masses of the plan's rows. */
typedef enum {
    FRG_GW_SYSTEMATIC, /* at equal steps of the summed mass with one random offset */
    FRG_GW_MULTINOMIAL /* each for itself */
} frg_gw_sampling;
/** Whether an alignment of representatives of both sides comes first.  In the mode sampled, where
 *  marginals hold, there is no linear cost, no start is given and start_from is neither profiles
 *  nor vertex. */
typedef enum {
    FRG_GW_MULTISCALE_AUTO, /* where n m > 1e6 */
    FRG_GW_MULTISCALE_ON,   /* yes */
    FRG_GW_MULTISCALE_OFF   /* no */
} frg_gw_multiscale;
/** The plan of the first pairs.  Profiles: of the transport between the distributions of the
 *  distances that points have to all others, the plan of Memoli's third lower bound, which
 *  isometries leave as it is; product: a b'. */
typedef enum {
    FRG_GW_START_AUTO, /* product, and where n_start > 1 starts on all points are tried, marginals
                          hold, and there are no linear cost and no rank, profiles as the first of
                          them: 10 steps at the last epsilon.  When the others have come to their
                          end it goes on if its energy is below theirs by more than the noise of
                          both, and steps are left */
    FRG_GW_START_PRODUCT,  /* a b' */
    FRG_GW_START_PROFILES, /* that alone, without annealing */
    FRG_GW_START_VERTEX,   /* that of the mode vertex, without annealing and other starts: sampled
                              steps at the last epsilon blur it.  What auto is where the mode auto
                              takes sampled because of an option, at most 1e6 pairs of points, and
                              where none of n_start, multiscale, n_coarse, fine_steps and rank is
                              given */
    FRG_GW_START_GIVEN,    /* from here on in reports alone */
    FRG_GW_START_ANNEALED, /* the product, entropic steps with falling epsilon */
    FRG_GW_START_AXES,     /* classical multidimensional scaling of both sides, axes matched with
                              each choice of signs */
    FRG_GW_START_RANDOM,   /* axes turned at random, or independent points */
    FRG_GW_START_COARSE,   /* a plan between farthest points */
    FRG_GW_START_SPECTRAL, /* eigenvectors of both sides' distances, paired where their eigenvalues
                              are near */
    FRG_GW_START_NEAR /* annealed on distances that saturate: 1 - exp(-(x / r)^2), r a quantile of
                         them */
} frg_gw_start;
/** Settings of another package, for comparable runs. */
typedef enum {
    FRG_GW_PRESET_NONE, /* the options as they are */
    /** mode sampled, scale batch_max, anneal iter, sampling multinomial, max_inner 10, min_iter 50,
     *  lambda_ema_beta 0, mass 0, multiscale off, n_start 1, start_from product, polish 0. */
    FRG_GW_PRESET_TORCHGW
} frg_gw_preset;
/** What distances, costs, linear problems and line searches are computed in; sums of energies are
 *  f64 always.  f64 is there in the mode vertex for distances euclidean and matrix (others are
 *  lengths of paths, which are f32), up to 6000 points a side and without a linear cost; else
 *  E_UNSUPPORTED, where auto would take another mode, too.  Starts of more than 130 points a side
 *  are raced in f32 then, and the best goes to its end in f64. */
typedef enum {
    FRG_GW_DTYPE_AUTO, /* f32; in the mode vertex up to 130 points a side f64, of f32 distances */
    FRG_GW_DTYPE_F32,  /* float */
    FRG_GW_DTYPE_F64   /* double */
} frg_gw_dtype;

/** The unit of the linear cost. */
typedef enum {
    FRG_GW_LINEAR_AS_GIVEN, /* 1 */
    FRG_GW_LINEAR_MAX       /* its largest |value| */
} frg_gw_scale_linear;
/** Distance of two points from their path lengths z, w to the landmarks. */
typedef enum {
    FRG_GW_LANDMARK_L2,    /* |z - w|, Euclidean */
    FRG_GW_LANDMARK_LOWER, /* max_l |z_l - w_l|: at most the path's length */
    FRG_GW_LANDMARK_UPPER, /* min_l (z_l + w_l): at least the path's length */
    FRG_GW_LANDMARK_MID    /* the mean of these two */
} frg_gw_landmark_metric;

/** Why the outer iteration ended. */
typedef enum {
    FRG_GW_RUNNING,           /* it has not: there was no run */
    FRG_GW_CONVERGED_CHANGE,  /* the change of the plan is below `tol` */
    FRG_GW_CONVERGED_PLATEAU, /* the energy no longer falls, or the fine steps behind a coarse level
                                 are done */
    FRG_GW_MAX_ITER,          /* max_iter steps were done */
    FRG_GW_CANCELLED,         /* interrupted, or out of time */
    FRG_GW_STALLED_PRODUCT,   /* the plan is the product of its marginals: W_PRODUCT */
    FRG_GW_DEGENERATE,        /* every plan is as good: one point, or distances 0 */
    FRG_GW_STATIONARY,     /* mode vertex: no plan is lower to first order, and of the starts none
                               ended lower */
    FRG_GW_ROUNDING_FLOOR, /* the change of the plan is what rounding leaves, more than `tol`:
                               FRG_STALLED */
    FRG_GW_BEATEN,         /* the iteration has converged, to a plan that another start beats:
                               W_BEATEN, FRG_STALLED */
    FRG_GW_NOT_CONFIRMED   /* the iteration has converged, to a plan that does not confirm it: one
                               of relaxed or partial marginals that a step on exact costs leaves
                               (W_STATIONARY), or whose marginals were not rounded and miss
                               polish_tol (W_MARGINALS): FRG_STALLED */
} frg_gw_reason;

/** One side.  data: points (n x d), or the distances (n x n) with FRG_GW_DISTANCE_MATRIX, f32 or
 *  f64; graph: for FRG_GW_DISTANCE_GRAPH, not directed (E_UNSUPPORTED); weights: n f64 or NULL:
 *  uniform. Where marginals hold, sums that are given are to be equal (to 1e-6, else E_MARGINAL),
 *  and are normalised to 1 (W_TOTALS where they are not 1).  Borrowed until create returns (graphs:
 *  as long as the solver).
 *
 *  Data may lie on the context's device (frg_array.device).  Distances stay there: they are looked
 *  at and (C + C') / 2 is written there, n^2 floats; the host has sums over rows, and the rows that
 *  its own steps ask for, cache_rows of them kept (of the mode vertex and the verdict of small
 *  problems all of them).  Points are copied to the host, n d numbers, as they are when they go
 *  there from it.  The report's device_bytes_out has all of it.  Weights are the host's
 *  (frg_array_get). */
typedef struct {
    const frg_array *data;  /* points or distances; NULL with a graph */
    const frg_graph *graph; /* NULL without one */
    const double *weights;  /* n, >= 0; NULL: uniform */
} frg_gw_side;

/** Options of an alignment, which copies them. */
typedef struct {
    size_t struct_size;       /* set by frg_gw_defaults */
    frg_gw_mode mode;         /* auto */
    frg_gw_distance distance; /* auto */
    int64_t k;                /* 30 nearest neighbours of a point in its graph */
    int k_clamp, stitch;      /* 0, 1: as in frg_graph_opts */
    int64_t landmarks;        /* 50, of distance landmark */
    int64_t anchors;      /* 80: pairs a step; 8 times as many behind a coarse level whose plan is
                             so broad that sum P log (P / a b') < 1, as the noise of few pairs would
                             sharpen it */
    double epsilon;       /* 0.001, in units of the scaled costs; <= 0: 1e-4 */
    frg_gw_anneal anneal; /* progress: to max(epsilon / 10, min(5e-4, epsilon)) */
    double damping;       /* 0.9: alpha of the average P <- (1 - alpha) P + alpha Pnew */
    int64_t max_iter;     /* 500 outer steps, those of several starts among them; 0: a b', or the
                             plan to start from, scaled to the marginals.  A coarse level has as
                             many for each of its starts */
    int64_t min_iter;     /* 20 outer steps before the first test of the end, in every mode; where
                             max_iter is the same, so many are wanted: FRG_OK, not FRG_MAX_ITER */
    double tol;           /* 1e-5: change of the plan */
    int64_t max_inner;    /* passes a step; 0: 3, in the mode exact 100 */
    double marginal_tol;  /* 5e-4 inside the loop; in the mode exact tol / 10 (1e-6 at least) where
                             that is less, so that neither side has more of the plan than the
                             other */
    double mass;          /* 0: all; else the mass carried, at most the smaller sum */
    /** Infinite (default): the marginal holds; else its KL penalty, scaled cost units, beside the
     *  cost L(P / sum P): that of a plan of mass 1, whatever mass P has. */
    double rho_source, rho_target;
    frg_gw_reference reference; /* counting */
    double linear_weight;   /* 0 .. 1: theta of J = (1-theta) E + 2 theta <M, P> + 2 eps sum P (log
                               P - 1), M the linear cost; alpha of Vayer et al. (2019) is (1-theta)
                               / (1+theta) */
    double lambda_ema_beta; /* 0.5: largest weight of the new linearisation from step 30 on, 2 / (k
                               + 2) at the k-th of them at one epsilon, so that noise averages out;
                               0 or 1: no memory */
    frg_gw_scale scale;     /* fixed */
    frg_gw_sampling sampling;     /* systematic */
    frg_gw_multiscale multiscale; /* auto: on where n m > 1e6 */
    int64_t n_coarse;             /* representatives of a side; 0: a quarter of its points, 10 at
                                     least, 400 of the source and 500 of the target at most */
    int64_t n_start;       /* 4: short starts, of which the lowest energy goes on; as many as half
                              of max_iter has room for (of 5 steps, 10 with a rank; 15 of a coarse
                              level, n_start always), and one where it is < 40 or <= min_iter, or a
                              plan or potentials to start from are given; the report tells. With a
                              rank and no linear cost the first is the dense plan of 200 farthest
                              points a side */
    int64_t fine_steps;    /* 3 outer steps on all points behind a coarse level, max_iter at most */
    int polish, round;     /* 1, 1: accelerated passes at the end, to marginals of polish_tol; then
                              marginals made exact */
    double polish_tol;     /* 1e-4: L1 error of the columns before rounding; below 2e-5 the last
                              passes are in double */
    int64_t polish_passes; /* 400 at most */
    /** auto: f32 where it fits into a quarter of the memory allowed, else fly; f32, fly; no
     *  other.  On a device f32; fly is E_DEVICE_STEP: the distances that lie there whole are
     *  more than the costs. */
    frg_gw_store cost_store;
    int64_t cache_rows;   /* 2000: rows of the dijkstra distances that are kept of a side */
    frg_gw_preset preset; /* none; another takes the place of the options that frg_gw_apply_preset
                             sets */
    int64_t rank;         /* 0: no bound; else P = Q diag(1/h) W' of this rank, memory O((n +
                             m)(rank + anchors)) */
    int64_t lr_max_iter;  /* 5: mirror steps on factors per linearisation */
    int64_t lr_dykstra_max_iter;      /* 50: passes of the projection on their marginals */
    frg_gw_scale_linear scale_linear; /* none: the linear cost as given; max: divided by its largest
                                         |value| */
    frg_gw_landmark_metric landmark_metric; /* l2; the others not in the mode landmark */
    int lazy;       /* 0; 1: precomputed distances row by row as they are needed, all kept; the
                       scale is then that of two sweeps where the graph is in one part */
    int store_plan; /* 0; 1: the sampled mode keeps its averaged plan, n m floats: anchors come from
                       it and `tol` is its change (Frobenius) */
    int diag_exact; /* 0; 1: the row and column terms of L from the marginals of the plan instead of
                       the anchors, at O(n^2 + m^2) a step where these are relaxed or partial; not
                       with dijkstra or lazy */
    int auto_store; /* 0: f32 that memory has no room for is E_MEMORY; 1: fly takes its place
                       (W_STORE); E_DEVICE_STEP on a device, where f32 is the only form */
    frg_gw_start start_from; /* auto; profiles: in the sampled mode without a coarse level,
                                marginals that hold, no linear cost, no rank; vertex: the same, with
                                a linear cost too; a plan or potentials that are given come first */
    uint64_t given;          /* 0; bits of the options that frg_gw_give named */
    frg_gw_dtype dtype;      /* auto */
} frg_gw_opts;

/** What the last run found and did.  Texts are alive as long as the solver. */
typedef struct {
    int64_t n, m;                 /* points of the sides */
    double energy;                /* E of the returned plan, caller's units */
    double energy_standard_error; /* 0: exact */
    double objective;             /* J of the returned plan, scaled units; NaN where E is an
                                     estimate, the rank is bounded, marginals are relaxed or
                                     partial, or the unit changes by the step (scale batch_max) */
    double lower_bound;           /* of E; NaN where there is none */
    double epsilon_end;           /* of the last step, scaled units; 0 of the mode vertex */
    /** Steps on all points, those of several starts among them; passes of Sinkhorn's iteration, all
     *  in all; steps on representatives. */
    int64_t outer_iterations, inner_iterations, coarse_iterations;
    frg_gw_reason reason;                         /* why it ended */
    int multiscale;                               /* a coarse level was used */
    int64_t components_source, components_target; /* of the sides' graphs; 1 without */
    /** Of neighbours; of the other distances; of linearised costs; of passes; of drawing pairs and
     *  estimating energies; of polish, rounding and marginals; of all. */
    double graph_seconds, distances_seconds, build_seconds, inner_seconds, sample_seconds,
        polish_seconds, total_seconds;
    int64_t truncated_ages;    /* pairs that came from the newest plan because those of the lagged
                                  plan that was drawn were used up */
    int64_t anchors;           /* pairs of the last step; 0: exact */
    int64_t starts;            /* how many; 1 in the modes exact and landmark */
    frg_gw_store cost_store;   /* f32 or fly */
    frg_gw_start started_from; /* of the start that went on */
    double energy_product;     /* E (fused: J) of a b', caller's units (J: scaled); in the modes
                                  with entropy where all distances are there and marginals hold,
                                  without a linear cost; else NaN */
    /* the mode vertex; 0 and NaN in the others */
    double next_energy;   /* the lowest of the starts that ended higher, on all points, E (fused: J)
                                as energy_product; infinite: none did */
    int64_t starts_agree; /* how many of those on all points ended as low, to 1e-6 of
                                energy_product */
    int vertex;           /* the plan is a vertex */
    int symmetric;        /* another plan is as low and moves half of the points at least; 0: none
                                of those run on all points, often one above some 100 points */
    frg_gw_mode mode;     /* that was taken */
    double vertex_energy; /* E of the vertex that sampled steps began at: what E has above it is
                                the blur of epsilon (or the noise of the steps); NaN where there is
                                none, or with a linear cost */
    const char *mode_reason; /* "asked for", or why auto took it; alive as long as the solver */
    double rounding_floor;   /* the reason of that name: the smallest change that was reached, what
                                `tol` is compared with; NaN for other reasons */
    /* What vertices say of the plan of a mode with entropy that has come to its end, where
     * marginals hold and no rank is given, as long as n m (n + m) <= 5e8 (1e7 where weights or
     * numbers of points are unequal).  Beyond, other starts are raced on verdict_points farthest
     * points a side, and the best goes on on all of them where the plan is another:
     * sharpened_energy and blur are NaN.  Energies as energy_product has them */
    double sharpened_energy; /* of the vertex that is least to first order at the plan, and
                                conditional gradient from there; the plan's own where that is less.
                                Of the mode vertex: energy (fused: objective) */
    double blur;             /* E of the plan (fused: J without entropy) less sharpened_energy: what
                                epsilon and noise add */
    double other_energy;     /* the lowest of the vertices from starts that know nothing of the
                                plan: profiles, the product, the one that sampled steps began at.
                                Beyond: E (fused: J) of the plan of the same epsilon that the best
                                start of the sample led to, an estimate as energy is; NaN where that
                                is the plan itself.  Of the mode vertex: next_energy */
    /* Of relaxed and partial plans "a step from the plan is lower" (W_STATIONARY): step_gain is
     * above 2 % of the plan's cost and above half of epsilon times its mass; "the plan is
     * stationary"; "not told: " and why.  Of others: */
    const char *verdict;    /* "no other start is lower"; "another start is lower": other_energy is
                                below sharpened_energy by 0.1 %, and a plan of this epsilon from
                                there below this one, entropy counted (beyond: below by more than
                                three standard errors): W_BEATEN; "another start is lower, but not
                                with the entropy of epsilon"; "no other start is lower on a sample";
                                "other plans are as low on a sample", which does not tell near
                                symmetries; "not compared: " and why.  NULL: there was no run */
    frg_gw_dtype dtype;     /* f32, f64: what the plan came to its end in */
    int64_t verdict_points; /* of the larger side that the other starts of the verdict were raced
                                on; 0: on all, or nothing is compared */
    double step_gain; /* of a plan P of mass s whose marginals are relaxed or partial, scaled cost
                         units: the most of 0 and G(P) - G(Q), G = <L, .> + epsilon (entropy) + the
                         penalties (not of a side whose sums P and Q have alike to polish_tol), L
                         the cost of P / s by all pairs, Q what Sinkhorn's iteration on L comes to
                         within 200 to 5000 passes, and where n m (n + m) <= 1e7 a plan of least
                         <L, Q>.
                         Near 0 of a stationary plan, but for noise of the pairs of a step.  As long
                         as n m (n + m) <= 5e8, not with scale batch_max; else NaN */
    /** On a device, while the alignment was made and in the last run: kernels launched, waits of
     *  the host for them, bytes copied there and from there.  0 on the cpu. */
    int64_t device_launches, device_waits, device_bytes_in, device_bytes_out;
    frg_host_steps host_steps; /* of the same, left to the host; none on the cpu */
} frg_gw_report;

/** An alignment: distances, weights, the state of the iteration, plan and report.  Made by
 *  frg_gw_create, freed by frg_gw_destroy before its context. */
typedef struct frg_gw frg_gw;

/** "vertex" and the like. */
FRG_API const char *frg_gw_mode_name(frg_gw_mode m);
/** "converged_plateau" and the like. */
FRG_API const char *frg_gw_reason_name(frg_gw_reason r);
/** "profiles" and the like. */
FRG_API const char *frg_gw_start_name(frg_gw_start s);
/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_gw_defaults(frg_gw_opts *o, size_t struct_size);
/** The fields of frg_gw_opts (frg_option). */
FRG_API const frg_option *frg_gw_options(void);
/** The settings of a preset into o (mode, scale, sampling, annealing, inner passes, starts,
 *  polish).  To change some of them, call this, set them, and leave o->preset at
 *  FRG_GW_PRESET_NONE. */
FRG_API void frg_gw_apply_preset(frg_gw_opts *o, frg_gw_preset preset);
/** Says that `option` (the name of a field, or "potentials", which a plan of the mode vertex has
 *  not) is given, whatever its value: the mode auto takes sampled then, and the mode vertex refuses
 *  it.  Other names change nothing. */
FRG_API void frg_gw_give(frg_gw_opts *o, const char *option);
/** linear: n x m f32 or f64, needed where linear_weight > 0, else NULL (W_LINEAR: it has no
 *  effect).  FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped while distances were made; *out is there, and
 *  its run says the same and makes no plan. Errors: E_SHAPE, E_DTYPE, E_NOT_FINITE, E_DISTANCE,
 *  E_GRAPH, E_MARGINAL, each with its place, E_OPTION, E_ARG, E_UNSUPPORTED for options that do not
 *  go together, E_MEMORY, E_DEVICE_STEP for what does not run on the context's device, dtype f64
 *  with distances that lie there among it.  Each side has at most 2^31 - 2 points.  A linear cost
 *  on the context's device is copied to the host, which checks and scales it: n m numbers, counted
 *  in device_bytes_out; E_DEVICE_HANDLE for an array on another device. */
FRG_API FRG_MUST_USE frg_status frg_gw_create(frg_gw **out, frg_context *ctx, frg_gw_side x,
                                              frg_gw_side y, const frg_array *linear,
                                              const frg_gw_opts *o);
/** Start from a plan (n x m, f64 or f32, >= 0; one on the context's device is copied from there),
 *  which is scaled to mass 1.  With a rank it is
 *  factored first, its components the `rank` farthest points of the smaller side and what is
 *  nearest to each.  Entries below 0 by no more than rounding, 4096 roundings of the largest entry
 *  in f64 and 16 in f32, are zeros.  Errors: E_SHAPE, E_MARGINAL; E_UNSUPPORTED where no steps are
 *  done and the rank is bounded or marginals are partial or relaxed. */
FRG_API FRG_MUST_USE frg_status frg_gw_start_plan(frg_gw *s, frg_array plan);
/** Start from potentials f (n), g (m) in scaled cost units, as frg_gw_potentials gives them (their
 *  row and column terms are taken off again); either may be NULL, both: none.  They are where the
 *  passes of the first step begin; which plan its pairs come from they do not say: that is a b', or
 *  the plan to start from.  There is one start then, and no coarse level.  Errors: E_ARG;
 *  E_UNSUPPORTED where the plan has a rank or no steps are done. */
FRG_API FRG_MUST_USE frg_status frg_gw_start_potentials(frg_gw *s, const double *f,
                                                        const double *g);
/** FRG_INTERRUPTED or FRG_TIME_LIMIT where it was stopped: the plan is the best so far, reason
 *  FRG_GW_CANCELLED. */
FRG_API FRG_MUST_USE frg_status frg_gw_run(frg_gw *s, frg_info *info);

/** Called before every outer step; stopped: the run ends early (interrupted, out of time).
 *  frg_gw_save gives the state then, which costs a copy of what the next step depends on: O(n + m),
 *  n m floats where costs are averaged (from step 30 on) and in the exact mode.  A negative status
 *  ends the run with it.  The mode vertex calls it once, before its starts: a run that goes on from
 *  there does all of its work again, and ends with the same bits.  On a device the copies lie
 *  there, beside what they are copied from (E_MEMORY before the first step there without room),
 *  and come over in frg_gw_save alone: device_bytes_out counts them. */
typedef frg_status (*frg_gw_saver)(void *user, const frg_gw *s, int stopped);
/** NULL: no states. */
FRG_API void frg_gw_keep(frg_gw *s, frg_gw_saver save, void *user);
/** From within the call: puts the state into c as the sections format, run, F, G and others, and
 *  of a run on a device `device`, its kind, model and driver; borrowed until the call returns.
 *  Errors: E_ARG outside of the call; E_DEVICE_LOST. */
FRG_API FRG_MUST_USE frg_status frg_gw_save(const frg_gw *s, frg_checkpoint *c);
/** The next run goes on from the state in c, which it needs until it ends, and ends with the bits
 *  of the run that was not stopped, on any number of threads.  s: a solver of the same data,
 *  options and seed.  Errors: E_MISMATCH where these differ (cache_rows and auto_store, on which no
 *  bit depends, may), or another version or CPU level wrote it, or it is of a run on another device
 *  than that of s, by its kind, model and driver, or on none, whose sums have other bits (the
 *  message names both; which of several alike does not matter); E_CHECKPOINT where it is damaged,
 *  some of it found by frg_gw_run alone. */
FRG_API FRG_MUST_USE frg_status frg_gw_resume(frg_gw *s, const frg_checkpoint *c);
/** What the last run found and did, alive as long as s; NULL for NULL. */
FRG_API const frg_gw_report *frg_gw_get(const frg_gw *s);
/** The plan of the last run, which s owns, until the next; NULL where there is none. */
FRG_API const frg_plan *frg_gw_plan(const frg_gw *s);

/** What an outer iteration knew at its end. */
typedef struct {
    const char *phase;     /* "coarse starts", "coarse", "starts", "outer", "fine" */
    int64_t start;         /* which of the starts, or of the runs of the phase, from 0 on */
    double epsilon;        /* scaled units */
    double marginal_error; /* L1 error of the columns' sums before its last pass, relative to the
                              mass; NaN with a rank */
    double change;         /* of the plan, as `tol` sees it; NaN with a rank */
    double cost;           /* E in scaled units, with a linear cost (1-theta) E + 2 theta <C, P>,
                              from held-out pairs; NaN where it was not estimated: it is in every
                              fifth iteration, and at the end of a start */
    double cost_error;     /* its standard error; NaN as above */
} frg_gw_iteration;
/** The iterations of the last run in their order, *count of them, those of coarse levels and starts
 *  included; after frg_gw_resume those since the state.  Alive until the next run. */
FRG_API const frg_gw_iteration *frg_gw_trace(const frg_gw *s, int64_t *count);
/** Potentials of the last linearisation L, row and column terms of L included, scaled cost units: f
 *  (n), g (m), so that P = exp((f_i + g_j - L_ij) / epsilon) before rounding; either may be NULL.
 *  In the sampled mode L and its terms are estimates from the last pairs.  Errors: E_ARG before the
 *  first run and with a rank; E_UNSUPPORTED for a plan of the mode vertex. */
FRG_API FRG_MUST_USE frg_status frg_gw_potentials(const frg_gw *s, double *f, double *g);
/** The rank of the factors: rank, or min(n, m) where that is less; 0 where there are none. */
FRG_API int64_t frg_gw_rank(const frg_gw *s);
/** With rank > 0: Q (n x rank), W (m x rank), h (rank), row-major, P = Q diag(1/h) W'; any may be
 *  NULL.  The plan as its consumers see it is the same in f32, rounded.  Errors: E_ARG where there
 *  is no plan of low rank. */
FRG_API FRG_MUST_USE frg_status frg_gw_factors(const frg_gw *s, double *q, double *w, double *h);
/** The distances in use, caller's units, n x n (side 0) or m x m (side 1) into out (f32 or f64).
 *  Errors: E_SHAPE, E_DTYPE, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_gw_distances(frg_gw *s, int side, frg_array out);
/** Frees the alignment, its plan and report; NULL is fine. */
FRG_API void frg_gw_destroy(frg_gw *s);

/** E of a plan (n x m) for distance matrices c (n x n) and d (m x m); all f64, any strides.
 *  Errors: E_SHAPE, E_DTYPE, E_DISTANCE for values that are not finite, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_gw_energy(frg_context *ctx, frg_array c, frg_array d,
                                              frg_array plan, double *energy);
/** First lower bound of E for weights a, b (Memoli 2011): transport in one dimension between the
 *  eccentricities sqrt(sum_k C_ik^2 a_k).  Errors: E_SHAPE, E_DTYPE, E_DISTANCE, E_MARGINAL,
 *  E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_gw_lower_bound(frg_context *ctx, frg_array c, const double *a,
                                                   frg_array d, const double *b, double *bound);

/* ---- gradients ------------------------------------------------------------------------------- */

/** Where J = (1-theta) E + 2 theta <linear, P> + 2 epsilon sum P (log P - 1), minimised over plans
 *  with the marginals of `plan`, is differentiated: a plan of mass 1 at which the exact mode has
 *  settled.  c, d: symmetric; everything in the units that epsilon has. */
typedef struct {
    frg_array c, d, plan;    /* n x n, m x m, n x m; f64 or f32 */
    const frg_array *linear; /* n x m; NULL: none */
    double linear_weight;    /* theta */
    double epsilon;          /* > 0 where a or b are wanted */
} frg_gw_point;
/** NULL: not wanted.  The derivatives of weights are those along changes that keep the sum:
 *  centred. */
typedef struct {
    const frg_array *c, *d, *linear; /* shapes as above, f64 or f32, any strides */
    double *a, *b;                   /* n, m */
} frg_gw_gradients;
/** dJ/dC = (1-theta)(2 C .* r r' - 2 P D P'), dJ/dlinear = 2 theta P, dJ/da = 2 f (by the envelope
 *  theorem; J's gradient, not E's).  It does not flow through the scale, the choice of neighbours
 *  or the anchors. FRG_MAX_ITER: the potentials behind a and b did not converge. */
FRG_API FRG_MUST_USE frg_status frg_gw_gradient(frg_context *ctx, const frg_gw_point *at,
                                                const frg_gw_gradients *out);

/** What frg_plan_vjp differentiates. */
typedef enum {
    FRG_GW_GRAD_IMPLICIT, /* of the fixed point: exact for a converged balanced plan */
    FRG_GW_GRAD_UNROLLED, /* of the passes that were done, the last 480 at least, from the
                             potentials they began with */
    FRG_GW_GRAD_FROZEN    /* potentials held fixed: -P .* G / epsilon, inexact */
} frg_gw_grad_mode;
/** For g = dLoss/dP (n x m): out <- dLoss/dCost of the cost (of the last linearisation, scaled
 *  units) that the plan comes from; for the linear cost of a fused problem times linear_weight.  a
 *  (n), b (m): dLoss/dweights, centred; may be NULL; as they are, not centred, for relaxed and
 *  partial plans.  Unrolled: exact for plans that are not rounded, converged or not, whose passes
 *  are those over the last cost at the last epsilon; O(n + m) memory; rounding is left out.
 *  Errors: E_UNSUPPORTED for relaxed and partial plans with FRG_GW_GRAD_IMPLICIT, and for plans of
 *  low rank. */
FRG_API FRG_MUST_USE frg_status frg_plan_vjp(const frg_plan *p, frg_array g, frg_gw_grad_mode mode,
                                             frg_array out, double *a, double *b);

/* ---- joint embedding ------------------------------------------------------------------------- */

/** Options of frg_gw_embed. */
typedef struct {
    size_t struct_size; /* set by frg_embed_defaults */
    int64_t dimensions; /* 2: columns of the embedding */
    double lambda;      /* 1: weight of the plans beside the graphs */
    double tol;         /* 1e-8: of the linear systems, relative */
} frg_embed_opts;
/** A set with its graph (n nodes, not directed), its plan to the anchor (n x m), and out (n x
 *  dimensions, f64). */
typedef struct {
    const frg_graph *graph; /* n nodes */
    const frg_plan *plan;   /* n x m */
    frg_array out;          /* n x dimensions, written */
} frg_embed_query;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_embed_defaults(frg_embed_opts *o, size_t struct_size);
/** The fields of frg_embed_opts (frg_option). */
FRG_API const frg_option *frg_embed_options(void);
/** Coordinates of the anchor's m points (anchor_out, m x dimensions, f64) and of all queries' in
 *  one space: the leading singular vectors of the stacked S_q^-1 P_q S_Y^-1, S the graph's
 *  Laplacian with weights 1 / length plus lambda times the plan's masses; not scaled, the largest
 *  component of each anchor column positive.  *found: how many columns were filled, fewer than
 *  dimensions in small sets. Errors: E_ARG, E_SHAPE; E_UNSUPPORTED for directed graphs.
 *  FRG_MAX_ITER: the last column may not be settled. */
FRG_API FRG_MUST_USE frg_status frg_gw_embed(frg_context *ctx, const frg_graph *anchor,
                                             frg_array anchor_out, const frg_embed_query *queries,
                                             int64_t n_queries, const frg_embed_opts *o,
                                             int64_t *found);

/* ---- barycenter ------------------------------------------------------------------------------ */

/** Options of frg_gw_barycenter. */
typedef struct {
    size_t struct_size; /* set by frg_barycenter_defaults */
    double epsilon;     /* 5e-3, > 0, in units of the largest distance of all spaces */
    int64_t max_iter;   /* 100 rounds */
    double tol;         /* 1e-5: change of the distances, relative (Frobenius) */
    int64_t max_outer;  /* 100 steps of an alignment in a round */
    double outer_tol;   /* 1e-6: change of a plan that ends them */
    int64_t max_inner;  /* 300 passes in a step */
} frg_barycenter_opts;
/** What frg_gw_barycenter did. */
typedef struct {
    int64_t iterations;       /* rounds */
    double change;            /* of the last round */
    double energy;            /* sum_s share_s E_s of the last plans */
    int converged;            /* change <= tol */
    int64_t inner_iterations; /* passes of all rounds */
    double rounding_floor;    /* FRG_STALLED: the smallest change that was reached, which is what
                                 rounding leaves; else NaN */
} frg_barycenter_report;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_barycenter_defaults(frg_barycenter_opts *o, size_t struct_size);
/** The fields of frg_barycenter_opts (frg_option). */
FRG_API const frg_option *frg_barycenter_options(void);
/** The distances (out, size x size, f64) of the space of `size` points with weights p (NULL:
 *  uniform) that is nearest to all of n_spaces spaces: minimises sum_s share_s E(P_s) with entropy
 *  of strength epsilon (Peyre, Cuturi and Solomon 2016), C <- sum_s share_s P_s C_s P_s' / (p p'),
 *  in turn.  spaces[s]: n_s x n_s, f64 or f32; weights[s]: n_s or NULL (weights itself may be
 *  NULL); shares: n_spaces or NULL, equal.  start (size x size): distances to start from; NULL:
 *  those of the first space at points spread over it.  All in double.  FRG_MAX_ITER: not settled;
 *  FRG_STALLED: rounding keeps the distances from it. */
FRG_API FRG_MUST_USE frg_status frg_gw_barycenter(frg_context *ctx, const frg_array *spaces,
                                                  const double *const *weights,
                                                  const double *shares, int64_t n_spaces,
                                                  const double *p, const frg_array *start,
                                                  const frg_barycenter_opts *o, frg_array out,
                                                  frg_barycenter_report *report);

#ifdef __cplusplus
}
#endif
#endif
