/* soap.h - the SOAP optimizer: Adam in the eigenbasis of Shampoo's factors, refreshed as often as
 * every step.
 *
 *     K_i <- beta K_i + (1 - beta) mat_i(G) mat_i(G)^T     a factor for every axis of every
 *                                                          parameter
 *     Q_i <- orth(K_i Q_i)                                 its basis, by a QR; those of all factors
 *                                                          in one loop
 *     G' = G in the bases,  Adam on G',  W <- W - lr N,  N: Adam's update N' taken out of the bases
 *
 * Notation: Vyas et al. (2024), SOAP; ^T is the transpose.
 *
 * A handle knows all parameters; a step does each of these for all of them at once:
 *
 *     frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);   o.lr = 3e-3;
 *     frg_soap_create(&soap, ctx, &o);                      group 0
 *     for each parameter:  frg_soap_add_param(soap, 0, w, "block.0.wq", NULL);
 *     for each batch:      frg_soap_step(soap, gradients, n, NULL);
 *     frg_soap_destroy(soap);
 *
 * The handle keeps the views of W, which must stay valid, and changes them in place; gradients are
 * read during the step alone and never written.  State is f32 whatever the parameters are.  The
 * same gradients give the same bits for any number of threads, and after a save and a load.  One
 * handle belongs to one thread at a time.
 */
#ifndef FOURGE_SOAP_H
#define FOURGE_SOAP_H

#include "fourge/fourge.h"
#include "fourge/qr.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whose defaults and conventions. */
typedef enum {
    FRG_SOAP_EMERGING,    /* NVIDIA Emerging-Optimizers 0.2 */
    FRG_SOAP_EMERGING_04, /* NVIDIA Emerging-Optimizers 0.4 */
    FRG_SOAP_NIKHILVYAS   /* nikhilvyas/SOAP */
} frg_soap_profile;

/** How W decays; lr: learning rate, wd: weight_decay. */
typedef enum {
    FRG_DECAY_DECOUPLED,       /* W -= lr wd W, before the update */
    FRG_DECAY_DECOUPLED_AFTER, /* the same after it */
    FRG_DECAY_INDEPENDENT,     /* W -= wd W */
    FRG_DECAY_L2,              /* G += wd W, which the factors do not see */
    FRG_DECAY_PALM             /* W -= lr^2 wd W */
} frg_soap_decay;

/** Which factors pass the adaptive test. */
typedef enum {
    FRG_SCOPE_PARAMETER, /* all of a parameter's or none of them */
    FRG_SCOPE_FACTOR     /* each by itself */
} frg_soap_scope;
/** The test of a basis, Frobenius norms. */
typedef enum {
    FRG_ADAPTIVE_DIAGONAL,   /* |diag(Q^T K Q)| >= (1 - tolerance) |K| */
    FRG_ADAPTIVE_OFFDIAGONAL /* |Q^T K Q - diag(Q^T K Q)| <= tolerance |K| */
} frg_soap_form;
/** What a refresh orders by the eigenvalues. */
typedef enum {
    FRG_SORT_BEFORE_QR, /* the columns of K Q before its QR */
    FRG_SORT_AFTER_QR   /* the columns of the basis after it */
} frg_soap_sort;
/** Second moments when columns of a basis are reordered. */
typedef enum {
    FRG_MOMENT2_FOLLOW, /* they move along */
    FRG_MOMENT2_RANK,   /* they stay with the rank of the eigenvalue */
    FRG_MOMENT2_ROTATE  /* they are recombined with the squares of the rotation (of refreshes by QR;
                           refused with use_eigh) */
} frg_soap_moment2;
/** What a gradient does first. */
typedef enum {
    FRG_GRAD_FIRST,  /* it enters the factors and refreshes the bases */
    FRG_UPDATE_FIRST /* it updates W in the bases there are */
} frg_soap_order;
/** Where the first moment is stored. */
typedef enum {
    FRG_BASIS_AUTO,  /* in the parameter's own coordinates where the frequency is constant and 1 or
                          2, else in the bases */
    FRG_BASIS_EIGEN, /* in the bases */
    FRG_BASIS_ORIGINAL /* in the parameter's own coordinates */
} frg_soap_basis;
/** What the second moments of adam_warmup_steps become when bases begin. */
typedef enum {
    FRG_WARMUP_V_KEEP,  /* they stay */
    FRG_WARMUP_V_RESET, /* zeros */
    FRG_WARMUP_V_ROTATE /* turned with squares of Q */
} frg_soap_warmup_v;
/** KL-Shampoo's eigenvalues of the other axis at the first step, when there are none yet. */
typedef enum {
    FRG_KL_REFERENCE, /* zeros, raised to eps */
    FRG_KL_UNIT       /* ones */
} frg_soap_kl_init;
/** What a gradient with NaN or infinities does. */
typedef enum {
    FRG_NONFINITE_SKIP,     /* its parameter is left alone, and the step is FRG_PARTIAL */
    FRG_NONFINITE_ERROR,    /* the step fails and changes nothing */
    FRG_NONFINITE_PROPAGATE /* it is used */
} frg_soap_nonfinite;
/** Which axes merge_dims joins. */
typedef enum {
    /** Neighbours, while their product is at most max_precond_dim; where all of them become one,
     *  that has a factor whatever precondition_1d is, as in nikhilvyas/SOAP. */
    FRG_MERGE_LEFT,
    /** All but the first, from the right, likewise. */
    FRG_MERGE_FAN_IN,
    /** The default of emerging-0.4, from its StackedSoap: a stack of b matrices m x n, whatever
     *  their size, is one of b m x n, or of m x b n where n <= m, so that the shorter axis grows;
     *  its state has that shape.  Parameters of other than three axes stay. */
    FRG_MERGE_STACKED
} frg_soap_merge;

/** Options of a group.  Those under "layout" are read when a parameter is added, the others at
 *  every step.  The first number or word of a comment is the default: of all profiles, or of
 *  emerging and emerging-0.4, and N: of nikhilvyas, 04: of emerging-0.4 where theirs is another. */
typedef struct {
    size_t struct_size; /* set by frg_soap_defaults */
    /** Whose conventions; frg_soap_defaults sets it and the profile's defaults.  Where the bias
     *  correction goes, how bases begin after adam_warmup_steps, what shapes are taken (04). */
    frg_soap_profile profile;
    double lr;           /* 1e-3, N: 3e-3; W <- W - lr N */
    double beta1, beta2; /* 0.9, N: 0.95; 0.95: weight of the past in the first and second
                                 moment */
    double shampoo_beta; /* 0.95, N: -1; weight of the past in the factors; -1: beta2 */
    double eps;          /* 1e-8, added to the root of the second moment */
    double weight_decay; /* 0.01 */
    frg_soap_decay weight_decay_method; /* decoupled, N: decoupled after */
    int nesterov;                  /* 0; 1: the numerator of Adam looks a step ahead; refused by
                                      N */
    int maximize;                  /* 0; 1: gradients with the other sign */
    int correct_bias;              /* 1: moments divided by 1 - beta^t, N: lr instead */
    int correct_shampoo_beta_bias; /* -1: as correct_bias, N: 0; 1: the factors' averages are
                                      corrected alike */
    double max_update_rms;         /* 0: off; longer updates are shortened to this root mean
                                      square */
    int normalize_update;          /* 0; 1: updates are divided by their root mean square */
    int trace_normalization;       /* 0; 1: updates are multiplied with the root of the first
                                      factor's trace */
    /** Adds denom_floor u sqrt(max d_i) max|G'| to Adam's denominator, u = 2^-24, d_i the sizes; 0:
     *  off, as in the other packages.  16 keeps rounding residues of the first step, whose basis
     *  is made of its own gradient, from becoming updates as long as the others: it is then
     *  -lr U V^T, of the singular vectors of G, to an eighth at most (5 to 7 % at orders 64 to 128,
     *  11 % at 16). */
    double denom_floor;
    /* refresh of the bases */
    int64_t precondition_frequency; /* 1, N: 10 steps between refreshes */
    /** Frequency by step: rows (from step t0 on, frequency), ascending, n_frequencies of them;
     *  NULL: constant. */
    const int64_t (*frequencies)[2];
    int64_t n_frequencies; /* rows of frequencies; 0 */
    /** Frequency at the 0-based step t0; NULL: as above.  Must be >= 1. */
    int64_t (*frequency)(int64_t t0, void *user);
    void *user;                        /* handed to `frequency` */
    int64_t precondition_warmup_steps; /* 0; refresh at every step up to this one,
                                          counted from 0 */
    /** Plain Adam before step t0 = this, at which the first bases are eigenvectors; 0.  With the
     *  gradient first alone.  Emerging, as Emerging-Optimizers 0.2: where no refresh is due at this
     *  step, bases are I until one is, which is then a step of orthogonal iteration from I (with
     *  use_eigh: eigenvectors).  Where stagger or a warmup_v other than keep is set, which are not
     *  theirs, and in other profiles, there are eigenvectors at this step whatever is due. */
    int64_t adam_warmup_steps;
    int stagger; /* 0; 1: factors take turns within the frequency */
    /** The refresh goes on, on a thread of the handle's, after the step has returned; the next call
     *  on the handle waits for it.  Same bits; its part of the report is in the next step's.  For
     *  order FRG_UPDATE_FIRST alone; where one group has it, the refreshes of all groups of that
     *  order go on.  0. */
    int refresh_async;
    int power_iter_steps;           /* 1: products with K and QRs of a refresh; 1 with use_eigh */
    int use_eigh;                   /* 0; 1: refresh by an eigendecomposition of K */
    int use_adaptive_criteria;      /* 0; 1: a basis that passes the test below is not refreshed */
    double adaptive_tolerance;      /* 1e-7; below n u, about 1e-5 here, it decides by rounding
                                       noise */
    frg_soap_scope adaptive_scope;  /* parameter */
    frg_soap_form adaptive_form;    /* diagonal */
    int use_kl_shampoo;             /* 0; 1: KL-Shampoo's factors; two axes, or a stack of matrices
                                       merged to two */
    frg_soap_kl_init kl_init;       /* reference */
    frg_soap_sort sort_when;        /* before, 04: after */
    frg_soap_moment2 moment2_order; /* follow, 04: rank */
    frg_soap_order order;           /* gradient first, N: update first */
    frg_soap_warmup_v warmup_v;     /* keep */
    frg_soap_basis moment1_basis;   /* auto; not visible outside */
    frg_qr_method qr_method;        /* auto */
    /** Quotients q_j^T K q_j below ridge_c u norm_F(K), u = 2^-24, are raised to it for a refresh,
     *  so that directions in which K is rounding noise stay where they were: they turn by about
     *  0.2 / ridge_c a refresh.  64. */
    double ridge_c;
    /** What the Cholesky cascade must reach, max |Q^T Q - I|, before it falls back to Householder
     *  (which keeps 1e-5 anyway); 1e-5.  Below that a pass that would suffice is verified by one
     *  more Gram matrix. */
    double ortho_tol;
    frg_soap_nonfinite nonfinite; /* skip */
    /* layout */
    int precondition_1d;       /* 0; 1: parameters of one axis have a factor too */
    int64_t max_precond_dim;   /* 10000; a longer axis has no factor, its basis is I; -1: none is
                                  too long, 0: plain Adam */
    int64_t block_dim;         /* 0: off; longer axes are split into blocks with a factor each,
                                  those beyond max_precond_dim where that is -1 alone */
    int merge_dims;            /* 0, 04: 1; 1: axes are joined by merge_rule */
    frg_soap_merge merge_rule; /* left, 04: stacked */
    /* at every step again */
    /** bf16 and f16 parameters are rounded up or down by chance, so that the mean is right and
     *  updates below half a unit are not lost; by the parameter's name, its step and the seed
     *  alone: the same for any number of threads and after a load.  0: to the nearest. */
    int stochastic_rounding;
    int64_t rounding_seed; /* 0 */
} frg_soap_opts;

/** What a step did. */
typedef struct {
    int64_t updated;   /* parameters */
    int64_t nonfinite; /* parameters skipped for NaN or infinity */
    /** Axes, of the parameters with a gradient, that have no factor because they are longer than
     *  max_precond_dim.  None of groups where that is 0, and none of parameters of one axis without
     *  precondition_1d. */
    int64_t long_axes;
    /** Factors due for a refresh, and those of them that passed the adaptive test and were left. */
    int64_t due, skipped;
    int64_t householder, single_pass, second_pass, eigh; /* refreshes by what did them; LAPACK's
                                                            QR counts as householder */
    int64_t eigh_failures; /* bases that could not be had and stayed */
    double orthogonality;  /* largest estimate of |Q^T Q - I| over the refreshed bases */
    /** Refreshed factors with a Rayleigh quotient below zero, which is rounding, and the lowest
     *  such quotient over norm_F(K), 0 where there is none: some u = 2^-24 where the ridge (ridge_c
     *  u norm_F(K)) absorbs it. */
    int64_t indefinite;
    double lowest_quotient; /* as above */
    double seconds;         /* the whole step */
    /** Of K's averages, of the refreshes, of the projections of gradients and moments, of the
     *  updates; summed over threads. */
    double factors_seconds, refresh_seconds, project_seconds, update_seconds;
} frg_soap_report;

/** All parameters with their groups and states, and the workspaces of a step.  Made by
 *  frg_soap_create, freed by frg_soap_destroy before its context. */
typedef struct frg_soap frg_soap;

/** The profile's defaults into the first struct_size bytes of o. */
FRG_API void frg_soap_defaults(frg_soap_opts *o, size_t struct_size, frg_soap_profile profile);
/** The fields of frg_soap_opts (frg_option); defaults are those of the profile emerging. */
FRG_API const frg_option *frg_soap_options(void);

/** A handle with group 0.  o NULL: the profile emerging with lr 1e-3.  Errors: E_OPTION for values
 *  outside their range, E_UNSUPPORTED for options that do not go together, E_ARG, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_create(frg_soap **out, frg_context *ctx,
                                                const frg_soap_opts *o);
/** Waits for a refresh that goes on, then frees groups and states; the parameters are the caller's.
 *  NULL is fine. */
FRG_API void frg_soap_destroy(frg_soap *soap);
/** Another group; *group <- its number.  Errors: E_OPTION, E_UNSUPPORTED, E_ARG, E_MEMORY,
 *  as of frg_soap_create. */
FRG_API FRG_MUST_USE frg_status frg_soap_add_group(frg_soap *soap, const frg_soap_opts *o,
                                                   int *group);
/** w: f32, f64, bf16 or f16, any strides, changed by every step.  name is copied (NULL:
 *  "param.ID").  The memory of its state is taken by the first call that needs it
 *  (frg_soap_prepare, a step, a load, ...), not by this one; E_MEMORY: that memory by itself is
 *  beyond the memory limit, or the machine. id may be NULL; parameters are numbered from 0 in the
 *  order they are added.  E_ALIAS: it shares numbers with one that was added before (interleaved
 *  ones, such as blocks of columns, share none). */
FRG_API FRG_MUST_USE frg_status frg_soap_add_param(frg_soap *soap, int group, frg_array w,
                                                   const char *name, int64_t *id);
/** What the optimizer takes: counted, not measured, before anything is taken or done. */
typedef struct {
    int64_t parameters, numbers; /* numbers: in all parameters */
    int64_t factors, long_axes;  /* long_axes: as in frg_soap_report, of all parameters */
    int64_t largest_factor;      /* its order n: it takes 8 n^2 bytes of state, a refresh of it some
                                    5 n^3 operations */
    const char *largest_of;      /* name of the first parameter that has one such, NULL: no factor;
                                    the handle's */
    int largest_axis;            /* of it, after merging */
    size_t state_bytes;          /* moments, factors, bases: what frg_soap_state_bytes tells */
    size_t bytes;                /* with the workspaces of the threads: frg_soap_bytes between
                                    steps */
    size_t peak_bytes;           /* the most during the next step: with the workspace of its
                                    eigendecompositions */
    /** Seconds of the next step, where every parameter has a gradient; of a later one that
     *  refreshes every basis; of one that refreshes none.  A guess from counts of operations and
     *  the speeds of one machine for each CPU level: within a factor of three on an idle machine
     *  where steps take more than some milliseconds. */
    double next_seconds, refresh_seconds, plain_seconds;
} frg_soap_size;

/** Memory and time of the steps of the handle as it is, before the first one or between two; takes
 *  no memory for them. Waits for a refresh that goes on; calls the function frequency of each
 *  parameter once, as the next step will. Errors: E_ARG for NULL, and for a frequency below 1. */
FRG_API FRG_MUST_USE frg_status frg_soap_estimate(frg_soap *soap, frg_soap_size *out);
/** Takes the memory that steps need between them, state and workspaces, and warns (W_SLOW_STEP,
 *  once until a parameter is added) where the next step, or one that refreshes every basis, will
 *  take more than a second by frg_soap_estimate.  A step does this itself; called before, the
 *  warning is there before the work is.  Errors: of frg_soap_estimate, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_prepare(frg_soap *soap);
/** One step.  grads[i] belongs to parameter i and has its shape; data NULL: the parameter is left
 *  alone. n: number of parameters.  Gradients share numbers with no parameter.  FRG_PARTIAL: some
 *  were skipped for NaN or infinity.  A step that has begun comes to its end: half of one is no
 *  state to go on from.  report may be NULL.  Errors: E_SHAPE, E_DTYPE, E_ALIAS; E_GRADIENT with
 *  FRG_NONFINITE_ERROR; of frg_soap_prepare. */
FRG_API FRG_MUST_USE frg_status frg_soap_step(frg_soap *soap, const frg_array grads[], int64_t n,
                                              frg_soap_report *report);

/** The options of a group into the first struct_size bytes of o, to read, change and hand back.
 *  Errors: E_ARG for a group that is not there. */
FRG_API FRG_MUST_USE frg_status frg_soap_get_group(const frg_soap *soap, int group,
                                                   frg_soap_opts *o, size_t struct_size);
/** Options of a group from the next step on: schedules change lr, betas, ... between steps.  Once
 *  the group has parameters those under "layout" and profile, order, use_kl_shampoo,
 *  moment2_order and warmup_v stay.  Waits for a refresh that goes on.  Errors: E_ARG for a group
 *  that is not there and for another value of what stays; of frg_soap_create: E_OPTION,
 *  E_UNSUPPORTED. */
FRG_API FRG_MUST_USE frg_status frg_soap_set_group(frg_soap *soap, int group,
                                                   const frg_soap_opts *o);

/** Bytes of moments, factors and bases of all parameters, which the handle has from the first call
 *  on that needs them. */
FRG_API size_t frg_soap_state_bytes(const frg_soap *soap);
/** Bytes that the handle holds now: the states that are there, and workspaces. */
FRG_API size_t frg_soap_bytes(const frg_soap *soap);

/** The state of all parameters into a file that appears whole or not at all; weights and options
 *  are not in it.  Errors: E_CREATE, E_WRITE, E_MEMORY, E_ARG. */
FRG_API FRG_MUST_USE frg_status frg_soap_save(frg_soap *soap, const char *path);
/** The state from such a file, after which the same gradients give the same bits; a load that
 *  fails leaves the handle as it was.  The parameters must have been added in the same order with
 *  the same shapes.  Errors: E_NO_INPUT, E_READ, E_STATE for a state that is damaged or of other
 *  parameters, E_MEMORY, E_ARG.  FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped while it waited for a
 *  pipe, the handle as it was; so of frg_soap_import. */
FRG_API FRG_MUST_USE frg_status frg_soap_load(frg_soap *soap, const char *path);
/** As frg_soap_save to `capacity` bytes, *count <- how many the state takes; bytes NULL: the count
 *  alone.  Errors: E_ARG for too small a capacity, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_save_bytes(frg_soap *soap, void *bytes, int64_t capacity,
                                                    int64_t *count);
/** As frg_soap_load from `count` bytes; name stands in messages, NULL: "state".  Errors: E_STATE,
 *  E_ARG, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_load_bytes(frg_soap *soap, const void *bytes,
                                                    int64_t count, const char *name);

/** The state of one parameter: the bytes that a handle with it alone has.  So a run goes on with
 *  its parameters dealt to other handles (other ranks), to the bit; but that the turns of
 *  staggered refreshes are dealt anew.  bytes, capacity and count as of
 *  frg_soap_save_bytes.  Errors: E_ARG for an id that is not there or too small a capacity,
 *  E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_save_param(frg_soap *soap, int64_t id, void *bytes,
                                                    int64_t capacity, int64_t *count);
/** The state of one parameter from such bytes, as frg_soap_load_bytes.  Errors: E_ARG for an id
 *  that is not there, E_STATE, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_load_param(frg_soap *soap, int64_t id, const void *bytes,
                                                    int64_t count, const char *name);

/** Copies a part of the state of parameter id.  Parts have the names of other packages'
 *  checkpoints:
 *    "step" (one element),
 *    "exp_avg", "exp_avg_sq" (the parameter's shape, in the bases), "exp_avg.plain" (the first in
 *    the parameter's own coordinates), "GG.i", "Q.i", "eig.i" of axis i; for two axes also "L",
 *    "R", "Q_L", "Q_R", "eigvals_L", "eigvals_R".
 *  Arrays have the order of columns that the profile documents; with block_dim, factors are
 *  "GG.i.b".  to: f32 or f64 of that shape, any strides; "step" besides i64.  Errors: E_OPTION for
 *  a key that is none, E_SHAPE (for a part that the parameter does not have, too), E_DTYPE,
 *  E_ARG, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_state_get(frg_soap *soap, int64_t id, const char *key,
                                                   frg_array to);
/** Sets a part of the state from an array of the same names, shapes and types as of
 *  frg_soap_state_get.  Errors: as there: E_OPTION, E_SHAPE, E_DTYPE, E_ARG, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_state_set(frg_soap *soap, int64_t id, const char *key,
                                                   frg_array from);
/** The state of a parameter as before its first step; W stays.  Errors: E_ARG for an id that is not
 *  there, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_reset(frg_soap *soap, int64_t id);
/** Shape of a part; ndim 0 and data NULL for a part that the parameter does not have.  Errors:
 *  E_OPTION for a key that is none, E_ARG, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_state_shape(frg_soap *soap, int64_t id, const char *key,
                                                     frg_array *shape);

/** A part of the state where it lies. */
typedef struct {
    frg_array array; /* to be read, not written */
    /** Of "Q.i", "GG.i" and "eig.i": order[p] is the column (slot) of the p-th largest eigenvalue;
     *  NULL for other parts. */
    const int32_t *order;
    double unit;  /* what the numbers are to be multiplied with: a power of two, 1 but for gradients
                     beyond 2^40 */
    int in_bases; /* of moments: they stand in the bases, not in the parameter's own coordinates */
} frg_soap_view;

/** The same parts without a copy, as the step keeps them: f32, "eig.i" f64, "step" i64; columns of
 *  the bases, and moments that stand in them along each axis, are in slots, which do not move when
 *  eigenvalues change their order; "exp_avg" is in the bases or not, as moment1_basis has it; of
 *  "GG.i" the lower triangle is kept.  For logs, and for loops that send state elsewhere.  It is
 *  there until the next step, load or set of the handle; reading changes no bit of the run. Errors:
 *  E_OPTION for a name that is none (or "exp_avg.plain", which is not kept by itself), E_SHAPE for
 *  a part that the parameter does not have. */
FRG_API FRG_MUST_USE frg_status frg_soap_state_view(frg_soap *soap, int64_t id, const char *key,
                                                    frg_soap_view *view);

/** Whose names and conventions a file of named arrays has. */
typedef enum {
    FRG_LAYOUT_EMERGING,    /* step, exp_avg, exp_avg_sq, GG.i, Q.i; the moments in the bases */
    FRG_LAYOUT_EMERGING_04, /* step, exp_avg, exp_avg_sq, L, R, Q_L, Q_R, eigvals_L, eigvals_R */
    FRG_LAYOUT_NIKHILVYAS,  /* the first; besides precondition_frequency, shampoo_beta */
    FRG_LAYOUT_PYTORCH_OPTIMIZER /* the same without step, exp_avg in the parameter's own
                                    coordinates; param_groups.G.step counts the group's steps, the
                                    first one included */
} frg_soap_layout;

/** The state of all parameters for another package: an .npz archive with the arrays
 *  "state.ID.PART", as state_dict()["state"][ID][PART] has them there (list elements:
 *  "state.ID.GG.0").  f32; the archive appears whole or not at all.  Options are not in it.
 *  Errors: E_SHAPE where a layout cannot say it (emerging-0.4: two axes in one block each), E_STATE
 *  for numbers beyond f32. */
FRG_API FRG_MUST_USE frg_status frg_soap_export(frg_soap *soap, const char *path,
                                                frg_soap_layout layout);
/** Takes such an archive, written here or by numpy.savez from another package's state_dict; f16,
 *  f32 or f64.  ID may be the parameter's name too.  A parameter of which the file has nothing
 *  starts anew.  The run goes on with the same numbers up to rounding; for the same bits see
 *  frg_soap_save.  Errors: E_NO_INPUT, E_FORMAT and the like for files that are no archives,
 *  E_STATE for parts that are missing, too many, of another shape, not finite, or no bases; then
 *  the handle is as it was. */
FRG_API FRG_MUST_USE frg_status frg_soap_import(frg_soap *soap, const char *path,
                                                frg_soap_layout layout);
/** The same from bytes; name stands in messages.  Errors: as of frg_soap_import but those of
 *  opening a file: E_FORMAT, E_STATE, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_soap_import_bytes(frg_soap *soap, const void *bytes,
                                                      int64_t count, const char *name,
                                                      frg_soap_layout layout);

#ifdef __cplusplus
}
#endif
#endif
