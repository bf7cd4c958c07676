/* gw_solver.h - inside an alignment, shared by the files of its outer iteration. */
#ifndef FRGI_GW_SOLVER_H
#define FRGI_GW_SOLVER_H

#include "gw/gw_build.h"
#include "gw/gw_distances.h"
#include "gw/gw_marginals.h"
#include "gw/gw_plan.h"

#pragma GCC visibility push(hidden)

enum { FRGI_LAGS = 6, FRGI_CHECK_EVERY = 5, FRGI_CHECK_PAIRS = 256 };
enum {
    FRGI_STARTS_KEPT = 2,
    FRGI_CANDIDATE = FRGI_STARTS_KEPT,
    FRGI_STARTS_HELD,
    FRGI_ARRAYS = 24
};
enum { FRGI_SMOOTH_FROM = 30 }; /* the step whose costs are averaged first */
enum { FRGI_QUANTILES = 64 };   /* of the distances from a point */
enum { FRGI_WIDE = 8 };         /* times the pairs a step where a plan is broad */
#define FRGI_BROAD 1.0 /* KL(P | a b') below which a plan is broad: a row has e^-1 of the columns */

/** A pair of points that the plan connects. */
typedef struct {
    int32_t i, j;
} frgi_pair;

/** Streams of random numbers: a draw depends on (seed, stream, step, index) alone. */
enum { STREAM_ROWS = 101, STREAM_COLUMNS, STREAM_ORDER, STREAM_AGE, STREAM_CHECK, STREAM_START };

/** What is left of one of several starts. */
typedef struct {
    double energy; /* infinite: none */
    uint64_t run;
    double epsilon;
    double information; /* sum P log (P / a b') */
    double error;       /* standard error of the energy, of the candidate start */
    double *F, *G;      /* NULL: none */
    int64_t drawn;      /* pairs */
    frgi_pair *pairs;
} frgi_start;

enum { FRGI_PIECES = 3 };
/** An array of a saved state, here or on a device, where it may be in pieces. */
typedef struct {
    char name[8];
    void *live; /* NULL: it is there */
    size_t bytes;
    frgi_buffer there[FRGI_PIECES]; /* in their order; those behind the last are empty */
} frgi_array;

/** Seconds of a run: making costs, passes over them, all that is made of the plan between; and how
 *  many passes. */
typedef struct {
    double build, inner, sample;
    int64_t passes;
} frgi_spent;

/** Rows of a run's iterations (gw_trace.c). */
typedef struct {
    frg_gw_iteration *rows;
    int64_t n, capacity;
} frgi_trace;

/** A pair that waits: how many steps ago it was drawn, and which of that plan's. */
typedef struct {
    int32_t age, at;
} frgi_waiting;

/** Pairs of points that a step's costs are sampled at, and those that wait for later steps. */
typedef struct {
    int64_t count;      /* pairs of a step */
    int64_t drawn;      /* of a plan: R / alpha are enough on average */
    int64_t count_most; /* what there is memory for */
    int64_t lagged_count[FRGI_LAGS], lagged_used[FRGI_LAGS];
    int64_t n_lagged, truncated;
    int area[FRGI_LAGS];  /* where those pairs are on a device */
    frgi_waiting *places; /* of the pairs of this step */
    frgi_pair *given;     /* pairs on their way to those that wait; as many as can be drawn */
    /* of the steps alone */
    frgi_pair *now;               /* of this step */
    int32_t *nodes;               /* points of one side; as many as can be drawn */
    frgi_pair *lagged[FRGI_LAGS]; /* pairs of the latest plans, the newest first */
} frgi_samples;

/** The factors whose product is a step's cost. */
typedef struct {
    int64_t rank; /* now */
    frgi_packed packed;
    float scale;
    double *row; /* rows + ld: a row of a plan, potentials or marginals on their way */
    /* of the steps alone */
    float *rows_x, *rows_y; /* most drawn x n, most drawn x m */
    float *left, *right;    /* packed in one way or another, products count `scale` */
    float *terms;           /* rows + ld: row and column terms in log2 units */
    float *means;           /* n + m: of the distances to a point; NULL: pairs are not centred */
    frgi_arena memory;      /* of them but left and right, of pairs and of stopping.g_before */
    frgi_arena factors;     /* of left and right */
} frgi_level_product;

/** State of the tests of annealing and stopping. */
typedef struct {
    double best, ema; /* of the held-out cost */
    int64_t bad, stale;
    double change;    /* of the potentials, relative to epsilon */
    double *g_before; /* potentials that it is measured from; of the steps alone */
    frgi_floor floor; /* of the changes at the last epsilon */
} frgi_stopping;

/** Costs averaged over the steps at one epsilon. */
typedef struct {
    bool on;       /* steps from `from` on average their costs with those before */
    int64_t from;  /* step */
    int64_t steps; /* how many did, at this epsilon */
} frgi_averaging;

/** What a run starts from. */
typedef struct {
    const float *plan;   /* n x m, or NULL: a b' */
    const double *f, *g; /* potentials, of the exponents, cost units; or NULL: 0 */
} frgi_initial;

/** What is kept of the plan between two steps (gw_kept.c); on a device it lies there. */
typedef struct {
    float *plan;       /* store_plan: n x m, averaged; zeros: nothing is known of it */
    double *rows;      /* n row sums, n squares of the last change */
    double *sums;      /* diag_exact, not balanced: averaged marginals, n + m */
    frgi_arena memory; /* of the steps alone */
    double *squares;   /* n + m: of distances, weighted by the sums */
} frgi_kept;

/** Where a level is in a run that is saved (gw_state.c). */
typedef struct {
    struct frgi_state *state; /* saved states; NULL: none */
    int phase;                /* a frgi_phase */
    int64_t turn;             /* which of the runs of the phase */
    frgi_array own[4];        /* arrays of the mode that belong to a state */
    int n_own;
} frgi_saving;

#define FRGI_CLOSE                                                                                 \
    1e-6 /* error of columns below which steps' passes are accelerated: they are many */

typedef struct frgi_level_device frgi_level_device;

/** One level: the problem itself, or that of its representatives. */
typedef struct {
    /* data and options */
    frg_context *ctx;
    const frg_gw_opts *o;
    frgi_distances *x, *y;
    const double *a, *b;
    const float *linear; /* rows x ld */
    frgi_initial initial;
    uint64_t seed, run; /* run: which of several starts */
    bool is_coarse;     /* fewer points than the problem, in a loop that full size has too */
    /* state */
    frgi_transport t;
    frgi_factors factors;
    double epsilon;
    int64_t step;              /* outer steps so far: the second counter of every draw */
    frgi_level_device *device; /* NULL: the host (gw_level_device.h) */
    frgi_samples sampled;
    frgi_level_product product;
    frgi_averaging average;
    frgi_kept kept;
    frgi_stopping stopping;
    frgi_start starts[FRGI_STARTS_HELD]; /* the best ones, the best first; the candidate start */
    /* what is reported and saved of it */
    frgi_spent spent;
    frgi_trace *trace; /* NULL: none */
    frgi_saving saved;
} frgi_level;

FRG_MUST_USE frg_status frgi_level_open(frgi_level *l, frg_context *ctx, const frg_gw_opts *o,
                                        frgi_distances *x, frgi_distances *y, const double *a,
                                        const double *b, const float *linear,
                                        frgi_cost_storage storage, bool may_widen);
/** What a level keeps of its exponents where they are stored, or are not. */
frgi_cost_storage frgi_level_storage(const frg_gw_opts *o, bool store);
/** Room for the pairs of a step with `count` of them. */
int64_t frgi_drawn_of(const frg_gw_opts *o, int64_t count);
void frgi_level_close(frgi_level *l);
/** Forgets the plan: potentials 0, anchors of the product a b'. */
FRG_MUST_USE frg_status frgi_level_reset(frgi_level *l, uint64_t run);
/** The potentials to start from at l->epsilon: 0 where none were given. */
FRG_MUST_USE frg_status frgi_level_potentials(frgi_level *l);
/** The first `count` pairs of sampled.given are those that wait, and all of them. */
FRG_MUST_USE frg_status frgi_level_put_pairs(frgi_level *l, int64_t count);
/** R rows of both sides, product.rows_x and product.rows_y, as factors of 2/R times their
 *  products. */
FRG_MUST_USE frg_status frgi_level_pack(frgi_level *l, int64_t R);
/** Whether some steps average their costs with those before; whether the next one does. */
bool frgi_level_may_average(const frgi_level *l);
bool frgi_level_averages(const frgi_level *l);
/** Rows of both sides at the next anchors, packed; the row and column terms where they matter. */
FRG_MUST_USE frg_status frgi_level_gather(frgi_level *l);
/** Passes on the factors product.left, product.right at l->epsilon. */
FRG_MUST_USE frg_status frgi_level_solve(frgi_level *l, int64_t passes, double tol);
/** Accelerated passes on the last costs to columns of error tol, `most` at most. Mass that has a
 *  long way to go is carried at larger epsilon first, at most that of the start, halved to
 *  l->epsilon.  Positive: stopped. */
FRG_MUST_USE frg_status frgi_level_final_passes(frgi_level *l, double tol, int64_t most);
/** frgi_transport_finish, where the level computes. */
FRG_MUST_USE frg_status frgi_level_finish(frgi_level *l, bool round, frgi_marginal_error *before,
                                          frgi_marginal_error *after);
/** One outer step of the sampled mode: anchors, factors, passes, new anchors. */
FRG_MUST_USE frg_status frgi_level_step(frgi_level *l, int64_t passes, double tol);

/** Keeps the present potentials and pairs as those of start l->run, if its energy is among the
 *  lowest. */
FRG_MUST_USE frg_status frgi_level_remember(frgi_level *l, double energy, double information);
/** Many pairs a step and room for them, where there is memory. */
void frgi_level_widen(frgi_level *l);
/** Goes on from a start that was kept. */
FRG_MUST_USE frg_status frgi_level_recall(frgi_level *l, const frgi_start *from);
/** Keeps the present pairs and potentials as the candidate start, to be compared with the run that
 *  went on. */
FRG_MUST_USE frg_status frgi_level_keep_candidate(frgi_level *l, double energy, double error);
/** Forgets the first `count` of those held. */
void frgi_level_forget(frgi_level *l, int count);
/** Takes a new held-out cost with its standard error into the average, every FRGI_CHECK_EVERY
 *  steps; whether the average is lower than ever, by more than its noise. */
bool frgi_level_falls(frgi_level *l, double cost, double error);
/** Steps without a fall after which a loop ends. */
int64_t frgi_patience(int64_t min_iter);
/** FRG_OK, or why the run ends: interrupted, out of time. */
frg_status frgi_level_beat(const frgi_level *l, const char *phase, int64_t done, int64_t most,
                           double residual, double target);

/* ---- the trace (gw_trace.c) ---- */

/** After an outer step: a row of the trace, its cost NaN. */
FRG_MUST_USE frg_status frgi_trace_add(const frgi_level *l);
/** The cost that was estimated behind the last step, and its standard error. */
void frgi_trace_cost(const frgi_level *l, double cost, double error);

/* ---- pairs of points, and what a step makes of them (gw_pairs.c, gw_anchors.c) ---- */

/** The steps on pairs and on the factors of the cost that is sampled at them; nothing else touches
 *  these arrays (test_gw_steps), but for copies of whole ones and what brings pairs to a device and
 *  back.  They are part of a table of steps of a transport problem. */
struct frgi_pairs_steps {
    /** No pair was drawn, and there are no terms. */
    void (*clear)(frgi_level *l);
    /** left, right <- 0: the next cost is 0. */
    void (*no_cost)(frgi_level *l);
    /** means <- sum_k C_ik a_k and sum_l D_jl b_l. */
    FRG_MUST_USE frg_status (*means)(frgi_level *l);
    /** lagged[0] <- pairs of a b', sampled.drawn of them. */
    void (*draw_product)(frgi_level *l, uint64_t stream);
    /** out <- count pairs of the present plan, or of the averaged one, in random order. */
    FRG_MUST_USE frg_status (*draw)(frgi_level *l, bool averaged, int64_t count, uint64_t stream,
                                    frgi_pair *out);
    /** now <- the pairs at these places among those that wait. */
    void (*take)(frgi_level *l, const frgi_waiting *places, int64_t count);
    /** rows_x, rows_y <- the distances to the first R pairs of `now`, less their means. */
    FRG_MUST_USE frg_status (*distances)(frgi_level *l, int64_t R);
    /** Both divided by the largest of them (scale batch_max). */
    void (*divide)(frgi_level *l, int64_t R);
    /** terms <- scale times the means over R rows of their squares; the means where there are. */
    void (*terms)(frgi_level *l, int64_t R, double scale);
    /** terms <- these, n and m; NULL: as they are. */
    void (*put_terms)(frgi_level *l, const double *of_rows, const double *of_columns);
    /** left, right <- R rows of both sides. */
    void (*pack)(frgi_level *l, int64_t R);
    /** out <- the means over the pairs of this step of squared distances to a side's points. */
    void (*mean_squares)(const frgi_level *l, bool second, double *out);
    /** order <- the points of a side, by bisection on the distances to some of the pairs. */
    FRG_MUST_USE frg_status (*order)(const frgi_level *l, bool second, int32_t *order);
};
FRG_MUST_USE frg_status frgi_pairs_open(frgi_level *l);
void frgi_pairs_close(frgi_level *l);
/** Factors of another cost, floats, `rank` wide; 0. */
FRG_MUST_USE frg_status frgi_pairs_widen(frgi_level *l, int64_t rank, const char *what);
/** The host's steps of gw_anchors.c and gw_order.c. */
void frgi_host_draw_product(frgi_level *l, uint64_t stream);
FRG_MUST_USE frg_status frgi_host_draw(frgi_level *l, bool averaged, int64_t count, uint64_t stream,
                                       frgi_pair *out);
FRG_MUST_USE frg_status frgi_host_order(const frgi_level *l, bool second, int32_t *order);

/** count pairs from the present plan, in random order. */
FRG_MUST_USE frg_status frgi_draw_pairs(frgi_level *l, int64_t count, uint64_t stream,
                                        frgi_pair *out);
/** The pairs to start from, of the present plan. */
FRG_MUST_USE frg_status frgi_draw_start(frgi_level *l);
/** After a step: keeps pairs of the new plan for the steps to come. */
FRG_MUST_USE frg_status frgi_keep_lagged(frgi_level *l);
/** Before a step: l->sampled.now from the averaged plan; on a device where they are there. */
void frgi_take_samples(frgi_level *l);
/** Two sets of count pairs to look at, of the present plan; on a device they are there alone. */
FRG_MUST_USE frg_status frgi_draw_checks(frgi_level *l, int64_t count, frgi_pair *one,
                                         frgi_pair *other);

/* ---- what is kept of the plan (gw_kept.c) ---- */

FRG_MUST_USE frg_status frgi_kept_open(frgi_level *l);
void frgi_kept_close(frgi_level *l);
/** The steps on the plan and the marginals that are kept; nothing else touches these arrays
 *  (test_gw_steps), but for copies of whole ones.  They are part of a table of steps of a transport
 *  problem. */
struct frgi_kept_steps {
    /** Nothing is known. */
    void (*clear)(frgi_level *l);
    /** What the functions below say of them, of the plan and of the marginals. */
    void (*reset)(frgi_level *l, bool known);
    void (*fold_plan)(frgi_level *l);
    void (*fold_sums)(frgi_level *l);
    void (*rows)(const frgi_level *l, const int64_t *first, frgi_row_visitor visit, void *user);
};
/** Whether the averaged plan is kept; its marginals. */
bool frgi_keeps_plan(const frgi_level *l);
bool frgi_keeps_sums(const frgi_level *l);
/** known: the plan is a b', or the one to start from; else it is what the next step makes it. */
FRG_MUST_USE frg_status frgi_kept_reset(frgi_level *l, bool known);
/** After a step: P <- (1 - alpha) P + alpha Pnew, or its marginals; with store_plan
 *  l->stopping.change is that of the plan. */
FRG_MUST_USE frg_status frgi_kept_fold(frgi_level *l);
/** Rows i of the averaged plan with first[i] < first[i + 1], in order. */
void frgi_kept_rows(const frgi_level *l, const int64_t *first, frgi_row_visitor visit, void *user);
/** product.terms <- scale times the row and column terms of the averaged marginals. */
FRG_MUST_USE frg_status frgi_kept_terms(frgi_level *l, double scale);

/* ---- energy (gw_energy.c) ---- */

/** The mean distance of every point to all others of its side, and the mean of these, scaled. */
typedef struct {
    float *u, *v; /* n, m; one array */
    double mean_u, mean_v;
} frgi_means;
/** O(n^2 + m^2).  u is to be dropped, failed or not. */
FRG_MUST_USE frg_status frgi_means_open(frgi_means *means, frgi_level *l);
/** E of a plan of mass 1 as a U-statistic: the mean over all r and q of the `count` pairs r and the
 *  `count` pairs q behind them, both drawn from it; *error: standard error, of both sets.  The rest
 *  as below; not on a device. */
FRG_MUST_USE frg_status frgi_energy_of_pairs(frgi_level *l, int64_t count, double scale_x,
                                             double scale_y, const frgi_means *means,
                                             const frgi_pair *pairs, double *energy, double *error);
/** E of the plan, of mass 1, as a U-statistic over two sets of `count` pairs; *error: standard
 *  error. scale_x and scale_y multiply the distances first (to undo the scale of a side).  means:
 *  NULL, or for plans whose marginals hold: most of the variance goes (gw_energy.c). */
FRG_MUST_USE frg_status frgi_energy_estimate(frgi_level *l, int64_t count, double scale_x,
                                             double scale_y, const frgi_means *means,
                                             double *energy, double *error);
/** The objective without entropy, estimated from pairs, scaled units: E; with a linear cost
 *  (1-theta) E + 2 theta <Clin, P>. */
FRG_MUST_USE frg_status frgi_cost_estimate(frgi_level *l, int64_t count, double *cost,
                                           double *error);
/** With a linear cost: *cost <- (1-theta) mass^2 *cost + 2 theta mass (mean of Clin over the
 *  pairs), its error alike; the pairs are here, not on a device. */
void frgi_join_linear(const frgi_level *l, const frgi_pair *pairs, int64_t count, double mass,
                      double *cost, double *error);
/** sum P (log P - 1) of the present plan, on the host: a look at all rows.  linear: NULL, or what
 *  becomes <Clin, P>, 0 without a linear cost. */
double frgi_plan_entropy(const frgi_level *l, double *linear);
/** All distances of a side, scaled; *out is to be dropped, failed or not. */
FRG_MUST_USE frg_status frgi_distances_all(frgi_distances *d, double **out);
/** Sums over the plan, scaled units. */
typedef struct {
    double x, y, cross;     /* sum r C^2 r, sum c D^2 c, <C P D, P> */
    double entropy, linear; /* sum P (log P - 1), <Clin, P>; 0 where not asked for */
} frgi_plan_sums;

/** All of them exactly, O(n m (n + m)); entropy and linear only where the objective is wanted. */
FRG_MUST_USE frg_status frgi_plan_sums_take(frgi_level *l, bool objective, frgi_plan_sums *out);
/** E; the scales multiply the distances first. */
double frgi_energy_of(const frgi_plan_sums *s, double scale_x, double scale_y);

/** From squared eccentricities and weights of unit mass. */
FRG_MUST_USE frg_status frgi_lower_bound(frg_context *ctx, const double *square_x, const double *a,
                                         int64_t n, const double *square_y, const double *b,
                                         int64_t m, double *bound);

/* ---- start from local distance distributions (gw_profiles.c) ---- */

/** Whether there is such a start; several: it would be one of several. */
bool frgi_starts_from_distributions(const frgi_level *l, bool several);
/** Behind a reset: pairs of the plan between local distance distributions, at the epsilon where the
 *  run ends: at that of its beginning plans may be so blurred that nothing would be left of it.
 *  Positive: stopped. */
FRG_MUST_USE frg_status frgi_distributions_start(frgi_level *l);

/** Goes on from the pairs that wait at the epsilon where the run ends, where the passes of the
 *  first step begin broad. Positive: stopped. */
FRG_MUST_USE frg_status frgi_start_from_pairs(frgi_level *l);

/* ---- start from a coarse level (gw_coarse.c) ---- */

FRG_MUST_USE frg_status frgi_coarse_start(frgi_level *fine, int64_t n_coarse, frg_gw_report *report,
                                          bool *done);

/* ---- an order of proximity (gw_order.c) ---- */

/** order[place] = point, where rows and columns of the transport problem are `moved`. */
typedef struct {
    bool moved;
    int32_t *row, *column;
    int32_t *row_back, *column_back; /* place of a point */
    unsigned char *first;            /* of the cycles of row and row_back */
    double *memory;
} frgi_order;

/** Moves rows and columns of a stored problem so that passes leave out more, where they do.  To be
 *  closed, failed or not: everything is in its place again then. */
FRG_MUST_USE frg_status frgi_order_open(frgi_order *o, frgi_level *l);
void frgi_order_close(frgi_order *o, frgi_level *l);

/* ---- linearisations without random numbers (gw_exact.c) ---- */

/** The name of an option that asks for what the modes exact and landmark do not do; NULL: there is
 *  none. */
const char *frgi_exact_idle_option(const frg_gw_opts *o);
/** What the modes exact and landmark average over their steps. */
typedef struct frgi_average frgi_average;
/** The steps on the averaged plan and what it is multiplied with; nothing else touches these arrays
 *  (test_gw_steps), but for copies of whole ones.  They are part of a table of steps of a transport
 *  problem. */
struct frgi_average_steps {
    /** One side's distances (n x n or m x m; exact) or factors of them (landmark: NULL). */
    void (*load)(frgi_average *e, bool second, const float *all);
    /** The plan that the loop starts from. */
    void (*begin)(frgi_average *e);
    /** l->product <- the factors of L(P). */
    FRG_MUST_USE frg_status (*linearise)(frgi_average *e);
    /** P <- (1 - alpha) P + alpha Pnew, and how far it went. */
    FRG_MUST_USE frg_status (*average)(frgi_average *e);
};
/** The loop of the modes exact and landmark: L(P) of the averaged plan, passes, until the change is
 *  < tol. */
FRG_MUST_USE frg_status frgi_exact_loop(frgi_level *l, bool landmark, frg_gw_reason *reason,
                                        int64_t *steps);

/** The loop of outer steps of a level (gw_level.c). */
FRG_MUST_USE frg_status frgi_level_loop(frgi_level *l, int64_t max_iter, int64_t min_iter,
                                        bool anneal, frg_gw_reason *reason, int64_t *steps);
/** How many starts of `trial` steps each: n_start, or as many as half of max_iter has room for; 1
 *  at least. */
int64_t frgi_starts(const frg_gw_opts *o, int64_t trial);
double frgi_epsilon_start(const frg_gw_opts *o);
double frgi_epsilon_end(const frg_gw_opts *o);
/** All mass, and marginals that hold. */
bool frgi_is_balanced(const frg_gw_opts *o);

#pragma GCC visibility pop
#endif
