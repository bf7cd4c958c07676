/* soap_state.h - what the files of src/soap share: parameters, factors, the workspaces of threads,
 * phases. */
#ifndef FRGI_SOAP_STATE_H
#define FRGI_SOAP_STATE_H

#include <pthread.h>

#include "core/core.h"
#include "core/oversubscription.h"
#include "fourge/soap.h"
#include "linalg/product.h"
#include "linalg/qr_engine.h"
#include "soap/soap_ops.h"

#pragma GCC visibility push(hidden)

enum { SOAP_ORDER = 32766 }; /* of a factor: LAPACK counts its workspace, 2 n^2, in int */
typedef enum { SOAP_UNTOUCHED, SOAP_BY_QR, SOAP_BY_EIGH, SOAP_FAILED } soap_outcome;

/** A factor: one block of one axis.  Matrices lie by columns, `size` apart.
 *
 *  A column of q keeps its place (slot) when eigenvalues change their order: order[p] is the slot
 *  of the p-th largest, and the second moments never move.  Reordering with the moments following
 *  is that, read through `order`; where they stay with the rank instead, columns are moved and
 *  order stays 0, 1, 2, ... */
typedef struct {
    int axis;
    ptrdiff_t at, size; /* along the axis */
    float *k;           /* size^2, the lower triangle */
    float *q;
    float *rotation; /* (Q_old'Q_new)^2 entrywise, for recombined second moments alone */
    double *lambda;  /* of the slots: Rayleigh quotients at the last refresh */
    int32_t *order;
    int64_t refresh_offset; /* staggered: refreshed where (t0 + this) mod f = 0 */
    bool lost;              /* its eigendecomposition failed, to be tried again */
    /* of the step in hand; fresh: K was 0 or forgotten before, it has no basis yet */
    bool fresh, due, refresh, passes, tested, rotated;
    double norm, hint; /* norm_F(K); min lambda_j^2 / norm(K q_j)^2 */
    frg_qr_report report;
    soap_outcome done;
} soap_factor;

/** What an array reaches over; nothing where it is empty. */
typedef struct {
    const char *first, *last; /* one past */
} soap_range;

typedef struct {
    char *name;
    int group;
    frg_array w;
    soap_range range; /* of w */
    ptrdiff_t count;
    int axes; /* after merging */
    ptrdiff_t dims[FRG_MAX_DIM];
    bool stacked; /* three axes are two: state has dims, not the shape of W */
    bool swapped; /* the first two axes of W and G change places: m x b n from b x m x n */
    int n_factors;
    soap_factor *factors; /* by axis, then block */
    int64_t long_axes;    /* without a factor for their length */
    float *m, *v;
    size_t state_bytes; /* of state, once it is open */
    frgi_arena state;
    int64_t step;
    int exponent;       /* moments and factors are those of 2^-exponent G: see frgi_soap_power */
    bool started;       /* update_first: the first gradient has been seen */
    int64_t generation; /* of the bases; 0: there are none */
    int64_t label;      /* basis that m is expressed in; 0: the parameter's own coordinates */
    /* of the step in hand */
    const frg_array *grad; /* NULL: left alone */
    double largest;
    bool active;
    int updates_in_order; /* frg_soap_order */
    bool first;           /* the first bases are made */
    bool updates;         /* W moves */
    bool basis_changes;   /* some basis changes */
} soap_param;

enum { SOAP_FACTORS, SOAP_REFRESH, SOAP_PROJECT, SOAP_UPDATE, SOAP_TIMES };

/** Memory of one thread, for the largest parameter and factor. */
typedef struct {
    frgi_qr_workspace qr;
    frgi_product_workspace product;
    float *g, *x, *y; /* count, 2 count, 2 count */
    int team; /* threads on the task in hand: this one's and those of the workspaces that follow */
    double seconds[SOAP_TIMES];
} soap_workspace;

typedef struct {
    soap_param *param;
    soap_factor *factor;
    double cost;
} soap_task;

struct frg_soap {
    frg_context *ctx;
    const soap_ops *ops;
    const frgi_qr_ops *qr;
    int threads;
    int most;                                  /* of them at the step in hand */
    frgi_oversubscription oversubscription[2]; /* of steps without and with new bases */
    double work;                               /* of the step in hand, multiply-adds */
    bool worth_more;                           /* some loop of it is worth several threads */
    int64_t n_groups, groups_capacity;
    frg_soap_opts *groups;
    int64_t n_params, params_capacity;
    soap_param **params;
    int64_t n_open;  /* the first of them have their state */
    bool forewarned; /* of slow steps */
    /* made at the first step after a parameter was added */
    bool planned;
    int64_t n_tasks;
    soap_task *factor_tasks, *param_tasks; /* most work first */
    double *costs;                         /* of the tasks of a loop */
    /* of the parameters by address, each up to where the farthest so far ends */
    soap_range *ranges;
    /* since the handle was made: tasks that all threads took part in, and loops dealt to several
     * threads */
    int64_t tasks_shared, loops_dealt;
    soap_workspace *workspaces;
    frgi_arena arena;
    /* workspaces for eigendecompositions, while there are any */
    frgi_arena eigh;
    float **eigh_work;
    int **eigh_integers;
    ptrdiff_t eigh_size;
    /* a refresh that goes on between two steps */
    bool pending,
        in_flight; /* new bases are to be taken over; a thread that must be waited for makes them */
    pthread_t worker;
    frg_soap_report late; /* what it did, for the next step's report */
};

/* ---- soap_options.c ---- */
FRG_MUST_USE frg_status frgi_soap_check(frg_context *ctx, const frg_soap_opts *o);
/** The frequency at step t0; E_ARG where a callback gives less than 1. */
FRG_MUST_USE frg_status frgi_soap_frequency(frg_context *ctx, const frg_soap_opts *o, int64_t t0,
                                            int64_t *f);
double frgi_soap_shampoo_beta(const frg_soap_opts *o, int64_t t);

/* ---- soap_alias.c ---- */
soap_range frgi_soap_range(const frg_array *a);
/** The parameter that has a number of `a` in its memory; NULL: none. */
const soap_param *frgi_soap_owner(const frg_soap *soap, const frg_array *a);
/** soap->ranges, which tell that an array overlaps no parameter without a test of each. */
void frgi_soap_note_ranges(frg_soap *soap);

/* ---- soap_team.c ---- */
enum { SOAP_ELEMENTS = 1 << 16 }; /* of a tensor, at least, where those are dealt in slices */
/** Slice `from` .. from + count - 1 of a task, by the thread of `work`. */
typedef void (*soap_slice)(const void *job, const soap_workspace *work, ptrdiff_t from,
                           ptrdiff_t count);
/** Deals 0 .. n - 1 to the workspace's team in slices of at least `width` (or one), which depend on
 *  n and width alone. */
void frgi_soap_share(const soap_workspace *work, ptrdiff_t n, ptrdiff_t width, soap_slice slice,
                     const void *job);
/** Columns of a product whose other sizes are at least `least`: as above, but in one slice where
 *  the team is one and products are our own, whose bits do not depend on the slices. */
void frgi_soap_share_product(const soap_workspace *work, const soap_param *p, ptrdiff_t columns,
                             ptrdiff_t least, soap_slice slice, const void *job);
/** How many of the first tasks of a loop are to be done by all threads, one after the other; cost:
 *  of every task, below zero for those that one thread has to do. */
int64_t frgi_soap_shared_tasks(int threads, int64_t n, const double cost[]);

/* ---- soap_tensor.c: parameters in and out, contractions ---- */
bool frgi_soap_contiguous(const frg_array *a);
/** W or G with its axes in the order of dims. */
frg_array frgi_soap_oriented(const soap_param *p, const frg_array *a);
/** to <- scale a, in the order of its indices. */
void frgi_soap_take(const frg_array *a, double scale, float *to);
/** How 16-bit parameters are rounded: to the nearest, or by random numbers of element, step, name
 *  and seed. */
typedef struct {
    bool stochastic;
    uint64_t seed, stream, step;
} soap_rounding;
soap_rounding frgi_soap_rounding(const frg_soap_opts *o, const soap_param *p);
/** w <- keep w - lr d (or (w - lr d) keep), computed in f32 or wider and rounded once. */
void frgi_soap_give(const soap_ops *ops, const soap_workspace *work, const frg_array *w,
                    double keep, bool after, double lr, soap_rounding rounding, const float *d);
/** a <- scale x. */
void frgi_soap_put(const frg_array *a, double scale, const float *x);
/** x <- x + scale w */
void frgi_soap_add(const frg_array *w, double scale, float *x);
/** The gradient as the factors see it: of sign and scale, contiguous; in work->g unless it lies so
 *  already. */
const float *frgi_soap_gradient(const frg_soap *soap, const soap_param *p, soap_workspace *work);
typedef enum { SOAP_IN, SOAP_OUT, SOAP_ROTATE } soap_direction;
/** The workspace for products of a parameter.  Tiles take numbers below 2^-126 for zero, also as
 *  the last eight bits of a larger one: gradients below 2^-40, whose squares are averaged, stay
 *  away from them. */
const frgi_product_workspace *frgi_soap_products(const soap_param *p, const soap_workspace *work);
/** Contracts `copies` tensors along one axis with its factors' q (or q', or rotation). */
void frgi_soap_contract(const soap_param *p, const soap_workspace *work, int axis,
                        soap_direction way, int copies, const float *from, float *to);
/** All axes that have factors, from x: the result stands in the pointer returned, x or y. */
float *frgi_soap_contract_all(const soap_param *p, const soap_workspace *work, soap_direction way,
                              int copies, float *x, float *y);

/* ---- soap_factor.c ---- */
/** A factor of x G is x^power that of G: x^2 for E[G G'], x where KL weights divide by the other
 *  factor. */
int frgi_soap_power(const frg_soap_opts *o);
void frgi_soap_accumulate(const frg_soap *soap, const soap_param *p, soap_factor *f,
                          soap_workspace *work);
/** K q, Rayleigh quotients, the adaptive test. */
void frgi_soap_rayleigh(const frg_soap *soap, const soap_param *p, soap_factor *f,
                        soap_workspace *work);
void frgi_soap_refresh(frg_soap *soap, const soap_param *p, soap_factor *f, soap_workspace *work,
                       int thread);
double frgi_soap_norm(const frg_soap *soap, const soap_factor *f);
/** Slots by descending lambda[slot], those of equal ones as they were; rank: n elements of work. */
void frgi_soap_sort_places(ptrdiff_t n, const double *lambda, int32_t *slots, int32_t *rank);
/** Q <- orth(A), a_j = W_j + max(0, floor - lambda_j) q_j, W in work->qr.other, columns in the
 *  order of the slots; false: not finite, Q is as before. last: the factor's report is of this one,
 *  and second moments rotate with it where that is asked for. */
bool frgi_soap_orthonormalise(const frg_soap *soap, const soap_param *p, soap_factor *f,
                              soap_workspace *work, double floor, bool last);

/* ---- soap_eigh.c ---- */
/** What becomes of a refresh, by norm(K): K = 0 tells nothing, one with NaN or infinities gives no
 *  basis. */
soap_outcome frgi_soap_of_norm(double norm, soap_outcome otherwise);
/** Does its first basis come from that of the parameter's other factor, which must be made
 *  before? */
bool frgi_soap_follows(const frg_soap_opts *o, const soap_param *p, const soap_factor *f);
/** The basis of a factor anew. */
void frgi_soap_decompose(const frg_soap *soap, const soap_param *p, soap_factor *f,
                         soap_workspace *work, int thread);
/** Tries a failed eigendecomposition in double precision; false: the basis stays. */
bool frgi_soap_rescue(frg_soap *soap, const soap_param *p, soap_factor *f);
FRG_MUST_USE frg_status frgi_soap_eigh_open(frg_soap *soap, ptrdiff_t n);
/** Bytes that it takes. */
size_t frgi_soap_eigh_bytes(const frg_soap *soap, ptrdiff_t n);
void frgi_soap_eigh_close(frg_soap *soap);

/* ---- soap_apply.c ---- */
/** Projects m back from its basis, before that changes. */
void frgi_soap_project_back(const frg_soap *soap, soap_param *p, soap_workspace *work);
/** Second moments follow bases that were rotated, where that is asked for. */
void frgi_soap_rotate(const frg_soap *soap, soap_param *p, soap_workspace *work);
void frgi_soap_apply(const frg_soap *soap, soap_param *p, soap_workspace *work);
/** Moments and factors in units of another power of two. */
void frgi_soap_rescale(const frg_soap *soap, soap_param *p, int exponent);

/** x with its coordinates in the order of the eigenvalues: stands in x or y. */
float *frgi_soap_in_order(const soap_param *p, float *x, float *y);
/** Columns, quotients and moments are moved so that places are slots: order becomes 0, 1, 2, ... */
void frgi_soap_apply_permutation(soap_param *p, soap_workspace *work);

/* ---- soap_size.c ---- */
/** The warning W_SLOW_STEP, where it is due and was not given. */
FRG_MUST_USE frg_status frgi_soap_forewarn(frg_soap *soap);

/* ---- soap_step.c ---- */
/** What the next step has to do where every parameter has a gradient: first, due, refresh, fresh of
 *  all; *eigh: the largest order to decompose, 0: none. */
FRG_MUST_USE frg_status frgi_soap_foresee(frg_soap *soap, ptrdiff_t *eigh);
/** Is a factor's basis, when it is due, an eigendecomposition's? */
bool frgi_soap_decomposes(const frg_soap_opts *o, const soap_param *p, const soap_factor *f);
/** The adaptive tests and the new bases of the pass in hand. */
void frgi_soap_change_bases(frg_soap *soap);
/** What follows a change of bases, on the caller's thread. */
void frgi_soap_end_refresh(frg_soap *soap, frg_soap_report *report);
/** Frees the workspace for eigendecompositions, once the step's last pass is done, unless every
 *  refresh needs it. */
void frgi_soap_end_eigh(frg_soap *soap);
void frgi_soap_sum_times(const frg_soap *soap, frg_soap_report *report);

/* ---- soap_async.c ---- */
/** frgi_soap_change_bases on a thread of its own. */
void frgi_soap_launch(frg_soap *soap);
/** Ends the refresh that is going on, if there is one. */
void frgi_soap_wait(frg_soap *soap);

/* ---- soap.c ---- */
/** Waits for a refresh that goes on, and takes the memory of states that have none yet: first in
 *  every call that reads or changes the state. */
FRG_MUST_USE frg_status frgi_soap_open(frg_soap *soap);
/** The states, the list of tasks, the workspaces of the threads. */
FRG_MUST_USE frg_status frgi_soap_plan(frg_soap *soap);
/** Bytes that the plan takes. */
size_t frgi_soap_plan_bytes(const frg_soap *soap);
/** A parameter's state as before its first step. */
void frgi_soap_clear(soap_param *p);
bool frgi_soap_original(const frg_soap_opts *o);

#pragma GCC visibility pop
#endif
