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

/** What is kept of the exponents, and for which passes there is room. */
typedef struct {
    frgi_store store;
    bool stored; /* false: they are filled for every pass */
    bool widens; /* X32 may become X32W */
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
                           * G in natural logarithms, its mean apart */
    bool at_floor;    /* the error is what rounding leaves */
    double shift;     /* relaxed: what it moved from G to F */
    double raised;    /* partial: what it put on G behind its step */
    int64_t out_of_range; /* rows */
} frgi_pass_result;

typedef struct {
    frg_context *ctx;
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
    frgi_arena memory;
} frgi_transport;

/** a and b are copied. */
FRG_MUST_USE frg_status frgi_transport_open(frgi_transport *t, frg_context *ctx, int64_t n,
                                            int64_t m, frgi_cost_storage storage,
                                            const frgi_marginals *how);
/** Bytes that it would take. */
size_t frgi_transport_bytes(const frg_context *ctx, int64_t n, int64_t m,
                            frgi_cost_storage storage);
void frgi_transport_close(frgi_transport *t);
/** After frgi_transport_finish: ready for passes again, potentials as they are. */
void frgi_transport_restart(frgi_transport *t);

/** Begins a new regularisation or cost: exponents will be filled by `fill` from `source` during the
 *  next pass with the present potentials inside. */
void frgi_transport_renew(frgi_transport *t, double epsilon, frgi_fill fill, const void *source);
/** The cost is another one from here on: passes before are none of those that a plan comes from. */
void frgi_transport_forget(frgi_transport *t);
/** Errors from here on are those that tell whether the floor of rounding is reached. */
void frgi_transport_watch(frgi_transport *t);
/** Potentials G were set from outside: the next pass begins with them.  x is left as it is, and no
 *  longer read where they are too far from those in it. */
void frgi_transport_place(frgi_transport *t);
/** Passes from here on are wide, over the same exponents; until the next restart. */
void frgi_transport_widen(frgi_transport *t);
/** log2 sum_j 2^(x_j) */
double frgi_log_sum(const double *x, int64_t n);
/** Partial: the potential of the dummy column from F, as a pass leaves it.  To be called where F
 *  was set. */
void frgi_transport_set_dummy(frgi_transport *t);
/** log of sum_i w_i exp(-rate x_i), x_i relative to log_w where `product`; entries of weight 0 left
 *  out. */
double frgi_log_penalty(const double *w, const double *log_w, const double *x, int64_t n,
                        bool product, double rate);
/** One full iteration; t->last.error is the L1 error of the columns before it. */
void frgi_transport_pass(frgi_transport *t);
/** Of accelerated passes the last one ends on its plain step, not on its extrapolation. */
void frgi_transport_end_plain(frgi_transport *t);
/** Passes until error <= tol, it is at the floor of rounding (t->last.at_floor; not where
 *  tol is 0), or `most` are done; E_NUMERIC where something is not a number. */
FRG_MUST_USE frg_status frgi_transport_solve(frgi_transport *t, double tol, int64_t most);

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
/** Exponents of the group of rows from i0 on: where they are stored, or filled into `room`. */
const void *frgi_transport_group(const frgi_sweep *s, int64_t i0, void *room);
/** Marginals of the plan, L1 and largest, without rounding. */
typedef struct {
    double source_l1, target_l1, source_most, target_most, mass;
} frgi_marginal_error;
/** Rows are made exact, then rounding (unless relaxed); before and after. */
FRG_MUST_USE frg_status frgi_transport_finish(frgi_transport *t, bool round,
                                              frgi_marginal_error *before,
                                              frgi_marginal_error *after);

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
typedef void (*frgi_row_visitor)(void *user, int64_t i, const double *row, int64_t chunk);
void frgi_transport_rows(const frgi_transport *t, int64_t first, int64_t last, int64_t chunks,
                         frgi_row_visitor visit, void *user);

/** The same for the rows i with first[i] < first[i + 1] alone. */
void frgi_transport_some_rows(const frgi_transport *t, const int64_t *first, frgi_row_visitor visit,
                              void *user);

#pragma GCC visibility pop
#endif
