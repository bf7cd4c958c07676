/* gw_vertex.h - plans at vertices: conditional gradient without sampling and without entropy
 * (gw_vertex.c), the starts that are raced (gw_vertex_starts.c), and the order of both for an
 * alignment (gw_vertex_run.c).
 */
#ifndef FRGI_GW_VERTEX_H
#define FRGI_GW_VERTEX_H

#include "device/device.h"
#include "fourge/gw.h"
#include "graph/graph_tasks.h"
#include "gw/gw_transport.h"
#include "linalg/product.h"
#include "transport/assign.h"

#pragma GCC visibility push(hidden)

/** Two dense spaces; every point has weight. */
typedef struct {
    frg_context *ctx;
    int64_t n, m;
    bool single, assigns; /* floats; all weights equal and n = m */
    frgi_costs x, y;      /* distances: n x n, m x m */
    double *a, *b;        /* of unit mass */
    const float *linear;  /* n x m, ld_linear apart; NULL: none */
    int64_t ld_linear;
    double theta;    /* weight of the linear cost */
    double square_x; /* sum a C^2 a */
    double constant; /* sum a C^2 a + sum b D^2 b */
    double product;  /* J of a b' */
    uint64_t seed;
    const frgi_transport_steps *steps; /* of descents; NULL: the host's */
    frgi_device *dev; /* of the products of their costs; NULL: the host (gw_vertex_device.c) */
    int group;        /* work-items there, 0: the usual */
} frgi_spaces;

/** A list of entries of a plan, by rows. */
typedef struct {
    frgi_entry *entries;
    int64_t count;
} frgi_sparse;

/** Memory of the threads for products of floats. */
typedef struct {
    frg_context *ctx;
    frgi_arena arena;
    frgi_product_workspace *workspaces; /* one a thread; NULL: of doubles */
    int count;
} frgi_products;

/** Two rows whose images may be exchanged. */
typedef struct {
    double gain;
    int32_t i, k;
} frgi_exchange;

/** What frgi_descent_swap works in: n each; NULL of transports. */
typedef struct {
    frgi_exchange *found;
    int32_t *images;
    bool *taken;
} frgi_exchanges;

enum { FRGI_RANK = 64, FRGI_LIFTING = 3 };
/** Distances of a side as Q W Q', Q of orthonormal columns. */
typedef struct {
    int64_t rank, ld; /* ld: of rows of rank reals */
    float *rows;      /* Q */
    float *columns;   /* Q', ld as that of distances */
    float *inner;     /* W; behind rows */
} frgi_lifted;

typedef struct frgi_descent_device frgi_descent_device;

/** One descent: the plan P, the vertex V of least <K(P), V>, and the costs K of both.  K is half
 *  the gradient of J = (1 - theta) E + 2 theta <M, P>, M the linear cost, without its terms of rows
 *  and of columns: K(P) = -2 (1 - theta) C P D + theta M.  Whoever opens it sets tasks and, for
 *  rough steps, lifted. */
typedef struct frgi_descent {
    const frgi_spaces *s;
    const frgi_transport_steps *steps; /* whose memory it is */
    frgi_products products;
    frgi_descent_device *there; /* NULL: K is made here */
    frgi_assign assign;         /* one of the two */
    frgi_simplex *simplex;
    frgi_costs k_plan, k_vertex;    /* K(P), K(V); where annealed, a dense plan is in k_vertex */
    frgi_sparse plan, vertex, last; /* P, V; last: the vertex whose costs k_vertex has */
    frgi_sparse scratch;
    int64_t most;               /* entries of a plan */
    void *left, *right;         /* rows of distances that are multiplied */
    double energy;              /* J of plan; infinite: none yet */
    bool is_vertex, stationary; /* stationary: no vertex is lower to first order */
    bool known;                 /* k_plan has the costs of plan, k_vertex those of last */
    bool follows;               /* duals are kept from one kind of costs to the next */
    frgi_exchanges swaps;
    int64_t done; /* steps, since it began or was resumed */
    graph_tasks *tasks;
    const frgi_lifted *lifted; /* both sides, for rough steps; NULL: these take some rows */
    frgi_arena memory;         /* all arrays but those of products, assign and simplex */
} frgi_descent;

struct frgi_features;
/** The steps on lists, costs and rows of products of a descent; nothing else touches these arrays
 *  (test_gw_steps).  They are part of a table of steps of a transport problem. */
struct frgi_descent_steps {
    /** Rows of products 0. */
    void (*clear)(frgi_descent *d);
    /** K <- the costs of a start by its number; of a list of the caller's, on distances of low rank
     *  where d has them; the caller's, n x m with the ld of K; and these <- K. */
    void (*start)(const struct frgi_features *f, int which, frgi_descent *d);
    void (*linearise)(frgi_descent *d, const frgi_sparse *p);
    void (*put_costs)(frgi_descent *d, const frgi_costs *from);
    void (*get_costs)(const frgi_descent *d, frgi_costs *to);
    /** What the functions below say: frgi_descent_begin, _resume, _plan, _dual, _duals. */
    void (*begin)(frgi_descent *d);
    void (*resume)(frgi_descent *d, const frgi_sparse *plan, double energy, bool is_vertex,
                   bool follows);
    void (*get_plan)(const frgi_descent *d, frgi_entry *out);
    double (*dual)(const frgi_descent *d);
    void (*duals)(const frgi_descent *d, double *f, double *g);
    /** V <- argmin <K, V>, K that of P + beta (P - last) from every `every`th row; false: a vertex,
     *  but not yet the least. */
    bool (*rough_vertex)(frgi_descent *d, int64_t every, double beta);
    /** J(V). */
    double (*vertex_energy)(const frgi_descent *d);
    /** last <- P, P <- V of this J. */
    void (*move_to_vertex)(frgi_descent *d, double energy);
    /** K(P) from all of its entries. */
    void (*know_costs)(frgi_descent *d);
    /** V <- argmin <K(P), V> and K(V); moved: frgi_assign_solve; false as above. */
    bool (*vertex)(frgi_descent *d, bool moved);
    /** t <- argmin J(P + t (V - P)) in [0, 1]; *gain: what J loses. */
    double (*line_search)(const frgi_descent *d, double *gain);
    /** P <- V, if J(V) < J(P). */
    bool (*take_vertex)(frgi_descent *d);
    /** P <- P + t (V - P), K(P) likewise; false: its list is full. */
    bool (*move_inside)(frgi_descent *d, double t, double gain);
    /** P <- last, if that is as low. */
    void (*take_last)(frgi_descent *d);
    /** Of an assignment: P <- P with some images exchanged, if that is lower. */
    bool (*exchange)(frgi_descent *d);
};

/** From weights of unit mass and distances that s has; J of a b' and the constant. */
void frgi_spaces_finish(frgi_spaces *s);
void frgi_spaces_close(frgi_spaces *s);
/** Bytes of distances, and of a descent. */
size_t frgi_spaces_bytes(int64_t n, int64_t m, bool single);
size_t frgi_descent_bytes(int64_t n, int64_t m, bool single);
/** threads: those that share its products where it runs alone.  To be closed, failed or not. */
FRG_MUST_USE frg_status frgi_descent_open(frgi_descent *d, const frgi_spaces *s, int threads);
void frgi_descent_close(frgi_descent *d);

/** Zeros.  To be closed, failed or not. */
FRG_MUST_USE frg_status frgi_costs_open(frgi_costs *c, frg_context *ctx, int64_t rows,
                                        int64_t columns, bool single, const char *what);
void frgi_costs_close(frgi_costs *c, frg_context *ctx);

/** To be closed, failed or not. */
FRG_MUST_USE frg_status frgi_products_open(frgi_products *p, frg_context *ctx, int threads,
                                           bool single);
void frgi_products_close(frgi_products *p);
/** to <- theta M, zeros in the padding. */
void frgi_costs_linear(const frgi_spaces *s, frgi_costs *to);
/** The linear cost of s <- that of points among all, rows of which are ld apart; to is dropped by
 *  whoever asks. */
FRG_MUST_USE frg_status frgi_linear_of(frgi_spaces *s, const float *all, int64_t ld,
                                       const int32_t *of_x, const int32_t *of_y, float **to);
/** to <- past to + scale sum_k left_k right_k' over `count` rows of both, ld as those of their
 *  side; what stands in `to` is not read where past is 0, and its padding becomes 0. */
void frgi_costs_blend(const frgi_products *w, double past, frgi_costs *to, const void *left,
                      int64_t ld_left, const void *right, int64_t ld_right, int64_t count,
                      double scale);
/** The same with what stands there. */
static inline void frgi_costs_add(const frgi_products *w, frgi_costs *to, const void *left,
                                  int64_t ld_left, const void *right, int64_t ld_right,
                                  int64_t count, double scale)
{
    frgi_costs_blend(w, 1, to, left, ld_left, right, ld_right, count, scale);
}
/** to <- theta M + scale sum_k left_k right_k', zeros in the padding. */
void frgi_costs_set(const frgi_products *w, const frgi_spaces *s, frgi_costs *to, const void *left,
                    int64_t ld_left, const void *right, int64_t ld_right, int64_t count,
                    double scale);
/** to <- from, of the same size. */
void frgi_costs_copy(const frg_context *ctx, frgi_costs *to, const frgi_costs *from);
/** out <- out + scale times row i of c, of its type. */
void frgi_costs_add_row(const frgi_costs *c, int64_t i, double scale, void *out);
/** J of a list, exact, in double: O(count^2). */
double frgi_sparse_energy(const frgi_spaces *s, const frgi_sparse *p);
/** K <- the costs of a start by its number (gw_vertex_starts.c). */
static inline void frgi_start_costs(const struct frgi_features *f, int which, frgi_descent *d)
{
    d->steps->descent->start(f, which, d);
}
/** P <- the vertex of least <K, V>, without duals of before. */
static inline void frgi_descent_begin(frgi_descent *d)
{
    d->steps->descent->begin(d);
}
/** Goes on from a plan of this energy, without duals; follows: with those that are there. */
static inline void frgi_descent_resume(frgi_descent *d, const frgi_sparse *plan, double energy,
                                       bool is_vertex, bool follows)
{
    d->steps->descent->resume(d, plan, energy, is_vertex, follows);
}
/** out <- the d->plan.count entries of P. */
static inline void frgi_descent_plan(const frgi_descent *d, frgi_entry *out)
{
    d->steps->descent->get_plan(d, out);
}
/** <K, V> of the vertex where the descent began. */
static inline double frgi_descent_dual(const frgi_descent *d)
{
    return d->steps->descent->dual(d);
}
/** Its duals: f_i + g_j <= K_ij. */
static inline void frgi_descent_duals(const frgi_descent *d, double *f, double *g)
{
    d->steps->descent->duals(d, f, g);
}
/** Vertices from vertices on costs of some rows alone, or on distances of low rank, as long as J
 *  falls; stationary: it does no more.  Of transports, where it falls, the next costs are those of
 *  P + beta (P - P_before), beta = 1, then 2: many small steps in one direction become a few. */
void frgi_descent_rough(frgi_descent *d, int64_t every, int64_t most);
/** Conditional gradient with exact line search, until it gains no more. */
void frgi_descend(frgi_descent *d, int64_t most);
/** Exchanges images of an assignment's points as long as J falls; whether it did. */
bool frgi_descent_swap(frgi_descent *d);

/* ---- within the host's steps ----------------------------------------------------------------- */

/** to <- K of the list; of some of its rows, `every` apart, scaled to all mass. */
void frgi_descent_costs(frgi_descent *d, const frgi_sparse *p, int64_t every, frgi_costs *to);
void frgi_host_start(const struct frgi_features *f, int which, frgi_descent *d);
void frgi_host_begin(frgi_descent *d);
/** P <- V, if that is lower by more than rounding. */
bool frgi_host_take(frgi_descent *d);
bool frgi_host_exchange(frgi_descent *d);

/* ---- products on a device (gw_vertex_device.c) ----------------------------------------------- */

/** Distances of d->s on its device; one descent of a device at a time. */
FRG_MUST_USE frg_status frgi_descent_device_open(frgi_descent *d);
void frgi_descent_device_close(frgi_descent *d);
/** Places for the starts of the groups of the entries that are added, and of their end. */
int64_t *frgi_descent_device_starts(const frgi_descent *d);
/** to <- to + scale sum over the groups q of C_i (sum_e m_e D_je)', or (sum_e m_e C_ie) D_j' by
 *  columns; a failure stops d->tasks, and leaves `to` as it was. */
void frgi_descent_device_add(frgi_descent *d, const frgi_entry *e, int64_t groups, bool by_column,
                             double scale, frgi_costs *to);

/* ---- lists ----------------------------------------------------------------------------------- */

/** The vertex of the north-west corner rule, n + m - 1 entries at most. */
void frgi_descent_first(const frgi_spaces *s, frgi_sparse *plan);

/* ---- the problem of an alignment (gw_vertex_run.c) ---- */

/** What scaled distances of x and of y are multiplied by in energies: to be the caller's; with a
 *  linear cost, which stands beside scaled ones, 1.  Returns the larger. */
double frgi_gw_units(const frg_gw *g, double units[2]);

/** Its points of positive weight as two dense spaces. */
typedef struct {
    frgi_spaces s;
    int32_t *of_x, *of_y; /* which they are */
    float *linear;
    double square; /* scale of energies to the caller's units (with a linear cost: scaled ones) */
} frgi_gw_problem;
/** In floats or in doubles; auto: by the number of points.  To be closed, failed or not. */
FRG_MUST_USE frg_status frgi_gw_problem_open(frg_gw *g, frg_gw_dtype dtype, frgi_gw_problem *p);
void frgi_gw_problem_close(frgi_gw_problem *p);

enum { FRGI_PLANS = 6 };
/** Plans to start from, the best first, and how many there are. */
typedef struct {
    frgi_sparse plans[FRGI_PLANS];
    frgi_entry *memory; /* to be dropped, failed or not */
    int64_t count;
    bool sure; /* the first one is what enough starts came to */
} frgi_plans;
/** The best plans of a race on these spaces, FRGI_FARTHEST points a side at most, each another
 *  one. */
FRG_MUST_USE frg_status frgi_plans_of(const frgi_spaces *s, graph_tasks *tasks, frgi_plans *out);

/* ---- fewer points (gw_vertex_coarse.c) ---- */

enum { FRGI_FARTHEST = 256 }; /* points of a coarser level up to which they are the farthest ones */
/** `count` points of a side and the distances between them; more than FRGI_FARTHEST, but fewer than
 *  all, are spread, so that their weights are equal.  All three are to be dropped, failed or
 *  not. */
FRG_MUST_USE frg_status frgi_coarse_side(frg_context *ctx, const frgi_costs *c, const double *w,
                                         int64_t count, bool single, frgi_costs *out,
                                         double **share, int32_t **chosen);
/** Of plans of a coarser level, *count <- 1, the one that is lowest once its points have taken
 *  their images among all points of the other side.  In floats. */
FRG_MUST_USE frg_status frgi_place_best(const frgi_spaces *s, frgi_sparse *plans, int64_t *count,
                                        graph_tasks *tasks);

/* ---- the annealed start in floats (gw_vertex_anneal.c) ---- */

FRG_MUST_USE frg_status frgi_lifted_open(frgi_lifted l[2], const frgi_spaces *s);
/** Of one side, distances c in place of its own, after some steps of subspace iteration. */
FRG_MUST_USE frg_status frgi_lifted_side(frgi_lifted *l, const frgi_spaces *s, int side,
                                         const frgi_costs *c, int steps);
void frgi_lifted_close(frgi_lifted l[2], frg_context *ctx);
/** The variance of distances in a row that a side's low rank leaves out, as a share; of some
 *  rows. */
double frgi_lifted_tail(const frgi_lifted *l, const frgi_costs *c);
/** d->k_plan <- the costs of a list on distances of low rank. */
void frgi_lifted_costs(const frgi_lifted l[2], const frgi_sparse *p, frgi_descent *d);
/** d->k_plan <- the costs of the plan at the last epsilon, which falls from `spread` on; those that
 *  are there are held for the first `held` steps of 20. */
void frgi_annealed_costs(const frgi_lifted l[2], double spread, int held, frgi_descent *d);

/* ---- starts from spectra and from near distances, in floats (gw_vertex_spectral.c) ---- */

/** The eigenvectors of a side's distances, of its FRGI_RANK largest eigenvalues. */
typedef struct {
    int64_t rank;
    float *vectors; /* rank rows, ld as that of distances */
    double value[FRGI_RANK],
        sum[FRGI_RANK]; /* over points: eigenvalue per point; of the vector, weighted */
} frgi_spectrum;
FRG_MUST_USE frg_status frgi_spectra_open(frgi_spectrum e[2], const frgi_spaces *s);
void frgi_spectra_close(frgi_spectrum e[2], frg_context *ctx);
/** d->k_plan <- costs that are low where eigenvectors of near eigenvalues agree. */
void frgi_spectral_costs(const frgi_spectrum e[2], frgi_descent *d);
/** Near distances 1 - exp(-(x / r)^2) of both sides, r a quantile of the distances of a side. */
FRG_MUST_USE frg_status frgi_near_open(frgi_lifted l[2], const frgi_spaces *s, double quantile);
/** d->k_plan <- the costs of the product on distances of low rank, annealed. */
void frgi_near_costs(const frgi_lifted l[2], frgi_descent *d);

/* ---- starts (gw_vertex_starts.c) ---- */

enum { FRGI_AXES = 3, FRGI_NEAR = 2 };
/** Numbers of starts, for frgi_start_costs: of all points; from FRGI_BY_AXES on axes with each
 *  choice of signs, then turned and random ones by turns; from FRGI_REHEATED on, where
 *  frgi_may_anneal, two of each of these, cooled from its vertex; and in floats spectra, near
 *  distances, and of each of these three again, cooled from its vertex. */
enum { FRGI_BY_PROFILES, FRGI_BY_PRODUCT, FRGI_BY_ANNEALING, FRGI_BY_AXES, FRGI_REHEATED = 64 };
enum {
    FRGI_SPECTRAL = 128,
    FRGI_FIRST_NEAR,
    FRGI_HELD = FRGI_FIRST_NEAR + FRGI_NEAR,
    FRGI_MORE_STARTS = 2 * (1 + FRGI_NEAR)
};
/** What starts are made of. */
typedef struct frgi_features {
    const frgi_spaces *s;
    void *profile[2]; /* FRGI_QUANTILES rows of ld: means of the quantiles of distances from a
                         point, over sqrt(FRGI_QUANTILES) */
    bool whole;       /* of all distances */
    void *mean[2];    /* distances on average */
    void *axes[2];    /* FRGI_AXES rows: classical scaling */
    bool has_axes;
    bool anneals;                   /* in doubles */
    frgi_lifted lifted[2];          /* of that in floats; no rows: none */
    frgi_lifted near[FRGI_NEAR][2]; /* frgi_features_more */
    frgi_spectrum spectrum[2];
    double square; /* sum of squares of the profiles, weighted, of both sides */
} frgi_features;
FRG_MUST_USE frg_status frgi_features_open(frgi_features *f, const frgi_spaces *s, bool axes);
void frgi_features_close(frgi_features *f);
/** What the annealed start in floats needs. */
FRG_MUST_USE frg_status frgi_features_lift(frgi_features *f);
/** What starts need that are tried where others do not agree: axes; of floats near distances and
 *  spectra. */
FRG_MUST_USE frg_status frgi_features_more(frgi_features *f);
bool frgi_may_anneal(const frgi_features *f);
/** frg_gw_start of it. */
frg_gw_start frgi_start_kind(int which);

#pragma GCC visibility pop
#endif
