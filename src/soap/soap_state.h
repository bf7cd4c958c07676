/* soap_state.h - what the files of src/soap share: parameters, factors, the workspaces of threads,
 * loops over tasks.
 *
 * Notation of all files here, as in Vyas et al. (2024): X^T is the transpose of X; G', M', N' are
 * gradient, first moment and update in the bases. */
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
/* types of parameters and gradients */
enum { SOAP_TYPES = 1 << FRG_F32 | 1 << FRG_F64 | 1 << FRG_F16 | 1 << FRG_BF16 };
typedef enum { SOAP_UNTOUCHED, SOAP_BY_QR, SOAP_BY_EIGH, SOAP_FAILED } soap_outcome;

/** What the current step does to a factor: masks of its tasks, which soap_decide.c sets. */
typedef struct {
    bool fresh;   /* no basis yet, and K is this gradient's alone: K was 0 before, or beta is 0 */
    bool due;     /* a new basis is due */
    bool refresh; /* it is made after all factors were tested */
} soap_factor_decision;

/** What became of it, as soap_factor.c found it. */
typedef struct {
    bool passes;       /* the adaptive test: the basis is good enough to stay */
    double norm, hint; /* norm_F(K); min lambda_j^2 / norm(K q_j)^2 */
    double lowest;     /* quotient that a refresh saw, over norm_F(K); 0: none is below zero */
    frg_qr_report report;
    soap_outcome done;
} soap_factor_result;

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
    float *rotation; /* (Q_old^T Q_new)^2 entrywise, for recombined second moments alone */
    /* of the slots: eigenvalues, or q_j^T K q_j at the last product K Q: with FRG_SORT_BEFORE_QR
     * those of the basis before its refresh */
    double *lambda;
    int32_t *order;
    int64_t refresh_offset; /* staggered: refreshed where (t0 + this) mod f = 0 */
    bool decompose_again;   /* the eigendecomposition failed, or K was 0: the next refresh is one */
    bool rotated;           /* rotation is that of the current step; soap_apply.c sets it */
    soap_factor_decision decided;
    soap_factor_result result;
} soap_factor;

/** What an array reaches over; nothing where it is empty. */
typedef struct {
    const char *first, *last; /* one past */
} soap_range;

/** What the current step does to a parameter: masks of its tasks, which soap_decide.c sets. */
typedef struct {
    bool first_bases;   /* the first bases are made */
    bool updates;       /* W moves */
    bool basis_changes; /* some basis changes after all factors were tested */
} soap_param_decision;

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
    int exponent;          /* moments and factors are those of 2^-exponent G: see frgi_soap_power */
    bool started;          /* update_first: the first gradient has been seen */
    int64_t generation;    /* of the bases; 0: there are none */
    int64_t m_generation;  /* of the bases that m is in; 0: the parameter's own coordinates */
    const frg_array *grad; /* of the current step; NULL: left alone */
    double largest;        /* of its numbers; NaN where one is NaN or infinite */
    soap_param_decision decided;
} soap_param;

enum { SOAP_FACTORS, SOAP_REFRESH, SOAP_PROJECT, SOAP_UPDATE, SOAP_TIMES };

/** Memory of one thread, for the largest parameter and factor. */
typedef struct {
    frgi_qr_workspace qr;
    frgi_product_workspace product;
    float *g, *x, *y; /* count, 2 count, 2 count */
    int team; /* threads on the current task: this one's and those of the workspaces that follow */
    double seconds[SOAP_TIMES];
} soap_workspace;

typedef struct {
    soap_param *param;
    soap_factor *factor;
    double cost;
} soap_task;

/** The tasks and the memory of the threads, made at the first step after a parameter was added. */
typedef struct {
    bool ready;
    int64_t n_factors;
    soap_task *factor_tasks, *param_tasks; /* most work first */
    double *costs;                         /* of the tasks of a loop */
    /* of the parameters by address, each up to where the farthest so far ends */
    soap_range *ranges;
    soap_workspace *workspaces; /* one a thread */
    frgi_arena arena;
} soap_plan;

/** How many threads the loops have. */
typedef struct {
    int most;                                  /* at the current step */
    frgi_oversubscription oversubscription[2]; /* of steps without and with new bases */
    double work;                               /* of the current step, see soap_work.c */
    bool worth_more;                           /* some loop of it is worth several threads */
    /* since the handle was made: tasks that all threads took part in, and loops dealt to several
     * threads */
    int64_t tasks_shared, loops_dealt;
} soap_threading;

/** Workspaces for eigendecompositions, while there are any: one a thread. */
typedef struct {
    frgi_arena arena;
    float **work;
    int **integers;
    ptrdiff_t size;
} soap_eigh;

/** A refresh that goes on between two steps. */
typedef struct {
    bool pending;   /* new bases are to be taken over */
    bool in_flight; /* a thread that must be waited for makes them */
    pthread_t worker;
    frg_soap_report report; /* what it did, for the next step's */
} soap_async;

typedef struct soap_steps soap_steps;

struct frg_soap {
    frg_context *ctx;
    const soap_ops *ops;
    const soap_steps *steps;
    const frgi_qr_ops *qr;
    int threads;
    int64_t n_groups, groups_capacity;
    frg_soap_opts *groups;
    int64_t n_params, params_capacity;
    soap_param **params;
    int64_t n_open;        /* the first of them have their state */
    int64_t warned_params; /* how many there were when W_SLOW_STEP was last considered */
    frg_soap_order order;  /* the current pass is that of the groups with this order */
    soap_plan plan;
    soap_threading threading;
    soap_eigh eigh;
    soap_async async;
};

/* ---- soap_options.c ---- */
FRG_MUST_USE frg_status frgi_soap_check(frg_context *ctx, const frg_soap_opts *o);
/** The frequency at step t0; E_ARG where a callback gives less than 1. */
FRG_MUST_USE frg_status frgi_soap_frequency(frg_context *ctx, const frg_soap_opts *o, int64_t t0,
                                            int64_t *f);
double frgi_soap_shampoo_beta(const frg_soap_opts *o, int64_t t);

/* ---- soap_alias.c ---- */
bool frgi_soap_is_empty(const frg_array *a);
soap_range frgi_soap_range(const frg_array *a);
/** The parameter that has a number of `a` in its memory; NULL: none. */
const soap_param *frgi_soap_owner(const frg_soap *soap, const frg_array *a);
/** The plan's ranges, which tell that an array overlaps no parameter without a test of each. */
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
/** Products of the sizes before an axis and after it. */
void frgi_soap_around(const soap_param *p, int axis, ptrdiff_t *outer, ptrdiff_t *inner);
/** Has an axis a factor? */
bool frgi_soap_has_factor(const soap_param *p, int axis);
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
/** w <- keep w - lr d (or (w - lr d) keep), d the update N, computed in f32 or wider and rounded
 *  once. */
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
/** Contracts `copies` tensors along one axis with its factors' q (or q^T, or rotation). */
void frgi_soap_contract(const soap_param *p, const soap_workspace *work, int axis,
                        soap_direction way, int copies, const float *from, float *to);
/** All axes that have factors, from x: the result stands in the pointer returned, x or y. */
float *frgi_soap_contract_all(const soap_param *p, const soap_workspace *work, soap_direction way,
                              int copies, float *x, float *y);

/* ---- soap_factor.c ---- */
/** A factor of x G is x^power that of G: x^2 for E[G G^T], x where KL weights divide by the other
 *  factor. */
int frgi_soap_power(const frg_soap_opts *o);
void frgi_soap_accumulate(const frg_soap *soap, const soap_param *p, soap_factor *f,
                          soap_workspace *work);
/** Before a step: nothing is known yet. */
void frgi_soap_begin_factor(soap_factor *f);
/** W = K Q in work->qr.other, lambda_j = q_j^T w_j, norm(K). */
void frgi_soap_rayleigh(const frg_soap *soap, const soap_param *p, soap_factor *f,
                        soap_workspace *work);
/** That, and the adaptive test of the basis. */
void frgi_soap_test(const frg_soap *soap, const soap_param *p, soap_factor *f,
                    soap_workspace *work);
/** Q <- orth(K Q), or eigenvectors; multiplied: K Q is that of frgi_soap_test in this workspace. */
void frgi_soap_refresh(const frg_soap *soap, const soap_param *p, soap_factor *f,
                       soap_workspace *work, bool multiplied);
/** After it: a decomposition that failed is tried in double precision, on the caller's thread. */
void frgi_soap_end_factor(frg_soap *soap, const soap_param *p, soap_factor *f);
double frgi_soap_norm(const frg_soap *soap, const soap_factor *f);
/** The lowest quotient that a refresh saw, for the report. */
void frgi_soap_note_lowest(soap_factor *f);
/** Slots by descending lambda[slot], those of equal ones as they were; rank: n elements of work. */
void frgi_soap_sort_places(ptrdiff_t n, const double *lambda, int32_t *slots, int32_t *rank);
/** Q <- orth(A), a_j = w_j + max(0, floor - lambda_j) q_j, W in work->qr.other, columns in the
 *  order of the slots, orthogonality measured; false: not finite, Q is as before. */
bool frgi_soap_orthonormalise(const frg_soap *soap, const soap_param *p, soap_factor *f,
                              soap_workspace *work, double floor);

/* ---- soap_eigh.c ---- */
/** What becomes of a refresh, by norm(K): K = 0 tells nothing, one with NaN or infinities gives no
 *  basis. */
soap_outcome frgi_soap_outcome_of(double norm, soap_outcome otherwise);
/** Is its first basis derived from that of the parameter's other factor, which must be made
 *  before? */
bool frgi_soap_is_derived(const frg_soap_opts *o, const soap_param *p, const soap_factor *f);
/** The basis of a factor anew. */
soap_outcome frgi_soap_decompose(const frg_soap *soap, const soap_param *p, soap_factor *f,
                                 soap_workspace *work);
/** Tries a failed eigendecomposition in double precision; false: the basis stays. */
bool frgi_soap_eigh_f64(frg_soap *soap, const soap_param *p, soap_factor *f);
FRG_MUST_USE frg_status frgi_soap_eigh_open(frg_soap *soap, ptrdiff_t n);
/** Bytes that it takes. */
size_t frgi_soap_eigh_bytes(const frg_soap *soap, ptrdiff_t n);
void frgi_soap_eigh_close(frg_soap *soap);
/** Closes it once the step's last pass is done, unless every refresh needs it. */
void frgi_soap_eigh_end(frg_soap *soap);

/* ---- soap_apply.c ---- */
/** Is m kept in the parameter's own coordinates? */
bool frgi_soap_is_m_original(const frg_soap_opts *o);
/** Projects m back from its basis, before that changes. */
void frgi_soap_project_back(soap_param *p, soap_workspace *work);
/** rotation <- the squares of turn = Q_old^T Q_new, entry by entry. */
void frgi_soap_set_rotation(soap_factor *f, const float *turn);
/** Second moments follow bases that were rotated, where that is asked for. */
void frgi_soap_rotate(const frg_soap *soap, soap_param *p, soap_workspace *work);

/** Weight decay and scale of an update. */
typedef struct {
    soap_adam adam;
    double lr;   /* what N is multiplied with */
    double keep; /* weight decay: what W is multiplied with */
    bool after;  /* the decay comes after the update */
} soap_rule;

/** A parameter on its way through a step; the arrays lie in the workspace. */
typedef struct {
    frg_array w;             /* its axes in the order of dims */
    float *x;                /* G', then N' */
    const float *m_in_bases; /* M'; NULL where m itself is in the bases, and Adam averages it */
    const float *d;          /* N */
    soap_rule rule;
} soap_update;

/** G' <- Q_L^T G Q_R (of every axis that has factors); where M is kept in the parameter's
 *  coordinates, M <- b1 M + (1 - b1) G, M' <- Q_L^T M Q_R. */
void frgi_soap_into_bases(const frg_soap *soap, soap_param *p, soap_workspace *work,
                          soap_update *u);
/** Where M is kept in the bases, M' <- b1 M' + (1 - b1) G'; V <- b2 V + (1 - b2) G' o G',
 *  N' = M' / (sqrt(V) + eps), with bias corrections. */
void frgi_soap_adam(const frg_soap *soap, soap_param *p, soap_workspace *work, soap_update *u);
/** N <- Q_L N' Q_R^T */
void frgi_soap_out_of_bases(const soap_param *p, soap_workspace *work, soap_update *u);
/** W <- keep W - lr N; the parameter's step is done. */
void frgi_soap_write(const frg_soap *soap, soap_param *p, soap_workspace *work, soap_update *u);
/** Moments and factors in units of another power of two. */
void frgi_soap_rescale(const frg_soap *soap, soap_param *p, int exponent);

/** x with its coordinates in the order of the eigenvalues: stands in x or y. */
float *frgi_soap_in_order(const soap_param *p, float *x, float *y);
/** Columns, quotients and moments are moved so that places are slots: order becomes 0, 1, 2, ... */
void frgi_soap_apply_permutation(soap_param *p, soap_workspace *work);

/* ---- soap_size.c ---- */
/** The warning W_SLOW_STEP, where a step will be slow and none was given for so many parameters. */
FRG_MUST_USE frg_status frgi_soap_warn_slow(frg_soap *soap);

/* ---- soap_gradients.c ---- */
/** The gradients of a step, checked and measured; NaN and infinities by the policies of groups. */
FRG_MUST_USE frg_status frgi_soap_take_gradients(frg_soap *soap, const frg_array grads[], int64_t n,
                                                 frg_soap_report *report);
/** Units of moments and factors in which squares of the gradients are in range. */
void frgi_soap_fit_range(frg_soap *soap);

/* ---- soap_decide.c ---- */
/** The masks of the step, before its first write: first, updates, due, fresh; of parameters with a
 *  gradient, or of `all` as if they had one.  *eigh: the largest order to decompose, 0: none. */
FRG_MUST_USE frg_status frgi_soap_decide(frg_soap *soap, bool all, ptrdiff_t *eigh);
/** The mask of the bases that had to wait, once all factors were tested: a parameter's moment is
 *  projected back only where one changes.  false: none does. */
bool frgi_soap_decide_waiting(frg_soap *soap);
/** Has it a gradient, and is it of the current pass? */
bool frgi_soap_in_pass(const frg_soap *soap, const soap_param *p);
/** Does the adaptive test decide whether a factor's basis changes? */
bool frgi_soap_tests(const frg_soap_opts *o, const soap_param *p, const soap_factor *f);
/** Is a basis made before all factors of its parameter were tested?  Not so where the adaptive test
 *  is over the parameter, where the first moment has to leave first, and with KL weights. */
bool frgi_soap_at_once(const frg_soap_opts *o, const soap_param *p, const soap_factor *f);
/** Is a factor's basis, when it is due, an eigendecomposition's? */
bool frgi_soap_decomposes(const frg_soap_opts *o, const soap_param *p, const soap_factor *f);

/* ---- soap_tasks.c ---- */
/** A loop of a step over the tasks of all factors or parameters. */
typedef struct {
    bool by_param;
    /** The mask: has the task anything to do?  NULL: all have. */
    bool (*wanted)(const frg_soap_opts *o, const soap_task *t);
    /** Of soap_work.c. */
    double (*cost)(const frg_soap_opts *o, const soap_task *t);
    void (*run)(frg_soap *soap, const soap_task *t, soap_workspace *work);
} soap_loop;
/** The steps on the states of parameters: m, v and the factors' k, q, rotation, lambda and order.
 *  In a step of the optimizer nothing else touches them (test_soap_steps keeps them in pages
 *  without rights in between).  Functions that read and write states from and into files and
 *  arrays do. */
struct soap_steps {
    /** The memory of a state, as before its first step; and its end. */
    FRG_MUST_USE frg_status (*open)(frg_soap *soap, soap_param *p);
    void (*close)(frg_soap *soap, soap_param *p);
    /** The tasks of a loop that are of the current pass and wanted. */
    void (*run)(frg_soap *soap, const soap_loop *loop);
    /** norm_F(K), which tells before the first write whether there is anything in it. */
    double (*norm)(const frg_soap *soap, const soap_factor *f);
    /** Moments and factors in units of another power of two. */
    void (*rescale)(const frg_soap *soap, soap_param *p, int exponent);
    /** Tries a failed eigendecomposition in double precision; false: the basis stays. */
    bool (*eigh_f64)(frg_soap *soap, const soap_param *p, soap_factor *f);
};
extern const soap_steps frgi_soap_host_steps;
void frgi_soap_run(frg_soap *soap, const soap_loop *loop);
/** Threads for a loop of so many multiply-adds. */
int frgi_soap_team_for(frg_soap *soap, double work);
/** The step has done no work yet. */
void frgi_soap_begin_threading(frg_soap *soap);
/** Sets how many threads the step has at most, by the steps before that are like it. */
void frgi_soap_choose_team(frg_soap *soap);
/** What the step has taken, for those that follow. */
void frgi_soap_end_threading(frg_soap *soap, bool by_eigh, double seconds);

/* ---- soap_work.c: costs of tasks ---- */
double frgi_soap_work_product(const frg_soap_opts *o, const soap_task *t); /* K Q */
double frgi_soap_work_average(const frg_soap_opts *o, const soap_task *t); /* K */
double frgi_soap_work_examine(const frg_soap_opts *o, const soap_task *t); /* test, and Q at once */
double frgi_soap_work_average_examine(const frg_soap_opts *o, const soap_task *t);
double frgi_soap_work_refresh(const frg_soap_opts *o, const soap_task *t); /* Q */
double frgi_soap_work_rotate(const frg_soap_opts *o, const soap_task *t);  /* V follows Q */
double frgi_soap_work_param(const frg_soap_opts *o, const soap_task *t);   /* of all its axes */

/* ---- soap_report.c ---- */
/** What a step is about to do. */
void frgi_soap_count_updates(const frg_soap *soap, frg_soap_report *report);
/** What the current pass has done to the factors, and their warnings. */
void frgi_soap_count_factors(const frg_soap *soap, frg_soap_report *report);
void frgi_soap_clear_times(frg_soap *soap);
void frgi_soap_sum_times(const frg_soap *soap, frg_soap_report *report);

/* ---- soap_step.c ---- */
/** The adaptive tests and the new bases of the current pass. */
void frgi_soap_change_bases(frg_soap *soap);
/** What follows a change of bases, on the caller's thread. */
void frgi_soap_end_refresh(frg_soap *soap, frg_soap_report *report);

/* ---- soap_async.c ---- */
/** frgi_soap_change_bases on a thread of its own. */
void frgi_soap_launch(frg_soap *soap);
/** Ends the refresh that is going on, if there is one. */
void frgi_soap_wait(frg_soap *soap);

/* ---- soap.c ---- */
/** E_ARG where there is no such group. */
FRG_MUST_USE frg_status frgi_soap_check_group(const frg_soap *soap, int group);

/* ---- soap_param.c ---- */
/** E_ARG where there is no such parameter. */
FRG_MUST_USE frg_status frgi_soap_check_id(const frg_soap *soap, int64_t id);
/** Waits for a refresh that goes on, and takes the memory of states that have none yet: first in
 *  every call that reads or changes the state. */
FRG_MUST_USE frg_status frgi_soap_open(frg_soap *soap);
/** A parameter's state as before its first step. */
void frgi_soap_clear(soap_param *p);
/** That, in memory that has been opened for it. */
void frgi_soap_lay_out(const frg_soap *soap, soap_param *p);
/** Closes its state; *at <- NULL, which it may be. */
void frgi_soap_drop_param(frg_soap *soap, soap_param **at);

/* ---- soap_plan.c ---- */
/** The states, the list of tasks, the workspaces of the threads. */
FRG_MUST_USE frg_status frgi_soap_plan(frg_soap *soap);
/** Bytes that the plan takes. */
size_t frgi_soap_plan_bytes(const frg_soap *soap);
void frgi_soap_drop_plan(frg_soap *soap);
/** Over how many steps a staggered group's refreshes are dealt: the frequency, the largest of a
 *  table, 1024 for a function.  A refresh_offset counts modulo the step's frequency. */
int64_t frgi_soap_stagger_interval(const frg_soap_opts *o);

#pragma GCC visibility pop
#endif
