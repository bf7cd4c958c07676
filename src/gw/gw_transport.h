/* gw_transport.h - a transport problem with given exponents: passes, acceleration, polish,
 * rounding, rows.
 *
 * After frgi_transport_finish the plan is
 *
 *     P_ij = p_i y_j 2^(x_ij + g_j) + u_i v_j
 *
 * with the rank-one term of Altschuler, Weed and Rigollet (2017): rows and columns sum to a and b
 * up to the rounding of sums in double.
 */
#ifndef FRGI_GW_TRANSPORT_H
#define FRGI_GW_TRANSPORT_H

#include "core/host_step.h"
#include "core/oversubscription.h"
#include "gw/gw_floor.h"
#include "gw/gw_sweep.h"

#pragma GCC visibility push(hidden)

typedef struct {
    const double *a, *b; /* borrowed while it opens */
    double rho_a, rho_b; /* cost units; infinite: balanced */
    bool product;        /* reference measure a b' */
    double mass;         /* partial: less than both sums; 0: off */
} frgi_marginals;

typedef struct frgi_transport frgi_transport;
typedef struct frgi_transport_steps frgi_transport_steps;

/** What is kept of the exponents, for which passes there is room, and who touches them. */
typedef struct {
    frgi_store store;
    bool stored;                       /* false: they are filled for every pass */
    bool widens;                       /* X32 may become X32W */
    bool there;                        /* the outer iteration is a device's */
    const frgi_transport_steps *steps; /* NULL: the host's */
} frgi_cost_storage;

/** What the latest passes began with, for derivatives of the iteration: potentials every
 *  FRGI_SAVED_STRIDE passes, the momentum of each.  A ring: of many passes the last FRGI_SAVED_MOST
 *  - FRGI_SAVED_STRIDE at least. */
enum {
    FRGI_SAVED_STRIDE = 32,
    FRGI_SAVED_SLOTS = 16,
    FRGI_SAVED_MOST = FRGI_SAVED_STRIDE * FRGI_SAVED_SLOTS
};
typedef struct {
    int64_t passes;     /* over this cost at this epsilon */
    double *G, *G_last; /* slots x ld */
    double dummy_g[FRGI_SAVED_SLOTS];
    double momentum[FRGI_SAVED_MOST]; /* of the step that ends the pass */
} frgi_saved_iterates;

/** A plan that is a list instead: its entries by rows. */
typedef struct {
    int64_t *starts; /* n + 1 */
    int32_t *columns;
    double *values;
} frgi_transport_list;

/** Threads, and memory that a pass is done with. */
typedef struct {
    int threads;
    frgi_oversubscription oversubscription; /* whether a pass is for all of them */
    char *scratch;
    size_t scratch_bytes; /* of one thread */
    frgi_columns_result *blocks;
} frgi_workspace;

/** The terms of the plan that round it: y 1, u = v = 0 before. */
typedef struct {
    double *y, *u, *v;
    bool done;
} frgi_rounding;

/** Passes over the vectors of frgi_active alone. */
typedef struct {
    bool allowed; /* passes may leave out what weighs nothing */
    bool holds;   /* the lists do */
    double share; /* of the vectors that are listed */
    double *G;    /* potentials of the marking pass */
} frgi_skipping;

/** Of the last pass. */
typedef struct {
    double increment; /* largest |G - G0| */
    double error;     /* L1 relative to total, or where the target is relaxed the largest step of
                           * G in natural logarithms */
    bool at_floor;    /* the error is what rounding leaves */
    double shift;     /* relaxed: what it moved from G to F */
    double raised;    /* partial: what it put on G behind its step */
    int64_t out_of_range; /* rows */
} frgi_pass_result;

struct frgi_transport {
    frg_context *ctx;
    const frgi_transport_steps *steps;
    frgi_sweep s;
    const frgi_transport_list *list; /* NULL: the plan is that of the exponents */
    frgi_marginals how;
    frgi_cost_storage storage;
    void *kept;   /* s.x.at as it was opened: finishing reads exponents from their source */
    double k;     /* log2(e) / epsilon */
    double total; /* the mass that is carried */
    bool accelerate;
    bool cut; /* X16: exponents below s.x.low are stored as that */
    frgi_skipping skip;
    double momentum;
    int64_t since, passes; /* since a restart of the momentum; all */
    frgi_pass_result last;
    frgi_floor floor; /* of the errors since frgi_transport_watch */
    frgi_rounding rounding;
    double bytes; /* read from the store so far */
    frgi_saved_iterates saved;
    frgi_workspace work;
    frgi_arena weights; /* s.to */
    frgi_arena memory;  /* all other arrays; of the steps alone */
};

/** Marginals of the plan, L1 and largest, without rounding. */
typedef struct {
    double source_l1, target_l1, source_most, target_most, mass;
    double over; /* what rows have above a, and columns above b, in all */
} frgi_marginal_error;

/** Takes row i of the plan, m doubles. */
typedef void (*frgi_row_visitor)(void *user, int64_t i, const double *row, int64_t chunk);

/** The steps on the arrays of a problem: exponents, potentials, sums, rounding, saved iterates.
 *  Nothing else touches them (test_gw_steps keeps them in pages without rights in between), but for
 *  what brings them to a device and back (gw_stage_device.c).  They are called by the functions
 *  below, which say what they do. */
struct frgi_transport_steps {
    /** Memory for a->used bytes, and its end. */
    FRG_MUST_USE frg_status (*open)(frgi_arena *a, frg_context *ctx, const char *what);
    void (*close)(frgi_arena *a, frg_context *ctx);
    /** Potentials 0, as before the first pass. */
    void (*clear)(frgi_transport *t);
    void (*restart)(frgi_transport *t);
    void (*unround)(frgi_transport *t);
    void (*copy)(const frgi_transport *t, void *to, const void *from, size_t bytes);
    void (*set_dummy)(frgi_transport *t);
    void (*renew)(frgi_transport *t, double epsilon, frgi_fill fill, const void *source);
    void (*widen)(frgi_transport *t);
    void (*pass)(frgi_transport *t);
    void (*end_plain)(frgi_transport *t);
    FRG_MUST_USE frg_status (*solve)(frgi_transport *t, double tol, int64_t most);
    double (*change)(const frgi_transport *t, const double *before);
    void (*marginals)(const frgi_transport *t, double *rows, double *columns);
    double (*share)(const frgi_transport *t, const int32_t *row, const int32_t *column);
    void (*move)(frgi_transport *t, const int32_t *row, const int32_t *column,
                 const unsigned char *first, double *scratch);
    void (*rows)(const frgi_transport *t, int64_t first, int64_t last, int64_t chunks,
                 const int64_t *chosen, frgi_row_visitor visit, void *user);
    FRG_MUST_USE frg_status (*finish)(frgi_transport *t, bool round, frgi_marginal_error *before,
                                      frgi_marginal_error *after);
    FRG_MUST_USE frg_status (*unroll)(const frgi_transport *t, const frg_array *g,
                                      const frg_array *out, double *a, double *b);
    /** Of averaged plans in the modes exact and landmark (gw_solver.h), and of plans in factors
     *  (gw_lowrank.h). */
    const struct frgi_average_steps *exact, *landmark;
    const struct frgi_lowrank_steps *lowrank;
    /** Of pairs of points and what the mode sampled makes of them, and of what it keeps of its plan
     *  (gw_solver.h). */
    const struct frgi_pairs_steps *pairs;
    const struct frgi_kept_steps *kept;
    /** Of descents of the mode vertex (gw_vertex.h). */
    const struct frgi_descent_steps *descent;
};
extern const struct frgi_average_steps frgi_exact_host_steps, frgi_landmark_host_steps;
extern const struct frgi_lowrank_steps frgi_lowrank_host_steps;
extern const struct frgi_pairs_steps frgi_pairs_host_steps;
extern const struct frgi_kept_steps frgi_kept_host_steps;
extern const struct frgi_descent_steps frgi_descent_host_steps;
extern const frgi_transport_steps frgi_transport_host_steps;

/** a and b are copied. */
FRG_MUST_USE frg_status frgi_transport_open(frgi_transport *t, frg_context *ctx, int64_t n,
                                            int64_t m, frgi_cost_storage storage,
                                            const frgi_marginals *how);
/** Bytes that it would take. */
size_t frgi_transport_bytes(const frg_context *ctx, int64_t n, int64_t m,
                            frgi_cost_storage storage);
void frgi_transport_close(frgi_transport *t);
/** After frgi_transport_finish: ready for passes again, potentials as they are. */
static inline void frgi_transport_restart(frgi_transport *t)
{
    t->steps->restart(t);
}
/** The same with the exponents as finishing left them. */
static inline void frgi_transport_unround(frgi_transport *t)
{
    t->steps->unround(t);
}
/** Bytes of an array of the problem, out or in. */
static inline void frgi_transport_copy(const frgi_transport *t, void *to, const void *from,
                                       size_t bytes)
{
    t->steps->copy(t, to, from, bytes);
}

/** Begins a new regularisation or cost: exponents will be filled by `fill` from `source` during the
 *  next pass with the present potentials inside. */
static inline void frgi_transport_renew(frgi_transport *t, double epsilon, frgi_fill fill,
                                        const void *source)
{
    t->steps->renew(t, epsilon, fill, source);
}
/** The cost is another one from here on: passes before are none of those that a plan comes from. */
void frgi_transport_forget(frgi_transport *t);
/** Errors from here on are those that tell whether the floor of rounding is reached. */
void frgi_transport_watch(frgi_transport *t);
/** Potentials G were set from outside: the next pass begins with them.  x is left as it is, and no
 *  longer read where they are too far from those in it. */
void frgi_transport_place(frgi_transport *t);
/** Passes from here on are wide, over the same exponents; until the next restart. */
static inline void frgi_transport_widen(frgi_transport *t)
{
    t->steps->widen(t);
}
/** log2 sum_j 2^(x_j) over the entries of weight w_j > 0. */
double frgi_log_sum(const double *x, const double *w, int64_t n);
/** Partial: the potential of the dummy column from F, as a pass leaves it.  To be called where F
 *  was set. */
static inline void frgi_transport_set_dummy(frgi_transport *t)
{
    t->steps->set_dummy(t);
}
/** log of sum_i w_i exp(-rate x_i), x_i relative to log_w where `product`; entries of weight 0 left
 *  out. */
double frgi_log_penalty(const double *w, const double *log_w, const double *x, int64_t n,
                        bool product, double rate);
/** One full iteration; t->last.error is the L1 error of the columns before it. */
static inline void frgi_transport_pass(frgi_transport *t)
{
    t->steps->pass(t);
}
/** Of accelerated passes the last one ends on its plain step, not on its extrapolation. */
static inline void frgi_transport_end_plain(frgi_transport *t)
{
    t->steps->end_plain(t);
}
/** Passes until error <= tol, it is at the floor of rounding (t->last.at_floor; not where
 *  tol is 0), or `most` are done; E_NUMERIC where something is not a number. */
FRG_MUST_USE static inline frg_status frgi_transport_solve(frgi_transport *t, double tol,
                                                           int64_t most)
{
    return t->steps->solve(t, tol, most);
}
/** max |G - before| in natural logarithms, without the constant mode. */
static inline double frgi_transport_change(const frgi_transport *t, const double *before)
{
    return t->steps->change(t, before);
}
/** Sums of the plan as the last pass left them: of rows (n), and of columns (m; NULL: not wanted)
 *  before its step, what a dummy row has of them apart. */
static inline void frgi_transport_marginals(const frgi_transport *t, double *rows, double *columns)
{
    t->steps->marginals(t, rows, columns);
}

static inline double frgi_transport_sum(const double *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) {
        s += x[i];
    }
    return s;
}

/** Bytes of an exponent that a row of the plan is made from. */
static inline size_t frgi_exponent_size(const frgi_sweep *s)
{
    return s->x.store == FRGI_X64 ? sizeof(double) : sizeof(float);
}

/* ---- gw_round.c ---- */
/** Exponents of the group of rows from i0 on: where they are stored, or filled into `scratch`. */
const void *frgi_transport_group(const frgi_sweep *s, int64_t i0, void *scratch);
/** Rows are made exact, then rounding (unless relaxed); before and after. */
FRG_MUST_USE static inline frg_status frgi_transport_finish(frgi_transport *t, bool round,
                                                            frgi_marginal_error *before,
                                                            frgi_marginal_error *after)
{
    return t->steps->finish(t, round, before, after);
}

/** The plan's sums: row (n) and t->s.col, of P without its term of rank one; where exact_rows is
 *  set t->s.p is scaled so that rows sum to a. */
typedef frg_status (*frgi_add_plan)(void *user, double *row, bool exact_rows);
/** The same with sums from elsewhere, of the exponents as they are. */
FRG_MUST_USE frg_status frgi_transport_finish_with(frgi_transport *t, bool round,
                                                   frgi_add_plan sums, void *user,
                                                   frgi_marginal_error *before,
                                                   frgi_marginal_error *after);

/** Calls visit for rows first .. last-1 (P_i., m doubles), cut into `chunks` runs of rows: a run is
 *  visited in order by one thread, so that sums by run have the same bits for any number of
 *  threads. */
static inline void frgi_transport_rows(const frgi_transport *t, int64_t first, int64_t last,
                                       int64_t chunks, frgi_row_visitor visit, void *user)
{
    t->steps->rows(t, first, last, chunks, NULL, visit, user);
}

/** The same for the rows i with first[i] < first[i + 1] alone. */
static inline void frgi_transport_some_rows(const frgi_transport *t, const int64_t *first,
                                            frgi_row_visitor visit, void *user)
{
    t->steps->rows(t, 0, t->s.n, 16, first, visit, user);
}

/* ---- the host's steps of other files: gw_round.c, gw_order.c, gw_unroll.c ---- */
void frgi_host_rows(const frgi_transport *t, int64_t first, int64_t last, int64_t chunks,
                    const int64_t *chosen, frgi_row_visitor visit, void *user);
FRG_MUST_USE frg_status frgi_host_finish(frgi_transport *t, bool round, frgi_marginal_error *before,
                                         frgi_marginal_error *after);
/** Share of the vectors that a marking pass would list, from some groups of rows, in an order of
 *  the points; NULL: as they are. */
double frgi_host_share(const frgi_transport *t, const int32_t *row, const int32_t *column);
/** Points into that order; first: of cycles of `row` (frgi_order); scratch: n or m doubles. */
void frgi_host_move(frgi_transport *t, const int32_t *row, const int32_t *column,
                    const unsigned char *first, double *scratch);
/** out <- dLoss/dCost for g = dLoss/dP through the passes that are saved; a and b as in
 *  frg_plan_vjp. */
FRG_MUST_USE frg_status frgi_host_unroll(const frgi_transport *t, const frg_array *g,
                                         const frg_array *out, double *a, double *b);

#pragma GCC visibility pop
#endif
