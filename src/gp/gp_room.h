/* gp_room.h - what the files of src/gp share: the process, its storage, and the states of its
 * matrix.
 *
 *     MATRIX_NONE -> build, jitter, factor -> MATRIX_FACTOR -> inverse -> MATRIX_INVERSE
 *
 * One buffer goes through all three; changing a parameter or the data returns to NONE.  Prediction
 * needs the factor and builds it again where the inverse stands.
 */
#ifndef FRGI_GP_ROOM_H
#define FRGI_GP_ROOM_H

#include "core/core.h"
#include "fourge/gp.h"
#include "gp/gp_kernel.h"
#include "gp/gp_params.h"
#include "gp/gp_spd.h"

#pragma GCC visibility push(hidden)

typedef enum { MATRIX_NONE, MATRIX_FACTOR, MATRIX_INVERSE } frgi_gp_state;
typedef enum {
    GP_MEAN_ZERO,
    GP_MEAN_CONST,
    GP_MEAN_LINEAR,
    GP_MEAN_PROFILED,
    GP_MEAN_VALUES
} frgi_gp_mean;

/** A second arithmetic beside the process's own: f32 for mixed; f64 for f32, with auto_promote a
 *  matrix in the same memory, without one none. */
typedef struct {
    frgi_spd_shape shape;
    void *matrix, *kept;
    void *points_memory, *bound_memory;
    frgi_gp_points points;
    frgi_gp_bound *bound;
} frgi_gp_side;

/** Profiled mean H beta: beta = (H' K^-1 H)^-1 H' K^-1 y, valid from MATRIX_FACTOR on. */
typedef struct {
    ptrdiff_t count;    /* m columns of H: 1, and the centred inputs; 0 where the mean is not
                           profiled */
    double *basis;      /* H, n x m column-major, as everything of n here */
    double *solved;     /* K^-1 H, n x m: the columns behind alpha */
    double *correction; /* E = K^-1 H R^-T, n x m: E E' is what K^-1 loses when beta is estimated */
    double *extra;      /* sqrt(q) E */
    double *root;       /* R, m x m row-major, lower: R R' = H' K^-1 H */
    double *beta;       /* m x q */
    double logdet;      /* log |H' K^-1 H| */
} frgi_gp_profile;

/** Bytes of what depends on the arithmetic, own and second, for n points on so many threads; n = 0:
 *  of nothing yet. */
typedef struct {
    ptrdiff_t n;
    int threads;
    frg_gp_precision precision;
    size_t matrix[2], work[2], bound[2];
} frgi_gp_sizes;

struct frg_gp {
    frg_context *ctx;
    frg_gp_opts opts;    /* texts and arrays in it are not kept */
    char **column_names; /* d */
    frgi_text names;     /* their characters */
    frgi_text *printed;  /* the expression with current values, for the report */

    ptrdiff_t n, d, q, masked;
    ptrdiff_t capacity; /* points that the memory holds (frgi_gp_resize) */
    double *x;          /* n x d row-major, as given */
    double *y;          /* n x q column-major */
    bool has_known_noise, has_groups;
    double *known_noise; /* n or NULL */
    int32_t *groups;     /* n or NULL */
    double *given_mean;  /* n or NULL */
    double *largest;     /* d: of |x - centre| */
    double *spread;      /* d: how far from the centre others are, 0: at it */
    double *centre;      /* d, taken out of the points (gp_centre.c) */

    frgi_gp_kernel *kernel;
    frgi_gp_params params;
    double *theta; /* params.count current values */
    frgi_gp_mean mean;
    double mean_start; /* "const(v)": v, NaN: mean(y) */
    bool mean_fixed;   /* "const(v!)" */

    frgi_gp_sizes sizes;  /* as they were measured last; copies need not do it again */
    frgi_arena memory;    /* everything below that grows with n */
    frgi_spd_shape shape; /* of `matrix` */
    frg_gp_storage storage;
    void *matrix;        /* K -> L -> K^-1 */
    void *kept;          /* FULL: h or k; NULL otherwise */
    void *work;          /* of the dense steps */
    void *points_memory; /* structure-of-arrays copy of x */
    frgi_gp_points points;
    void *bound_memory;
    frgi_gp_bound *bound; /* to the current theta; NULL after a change */
    frgi_gp_side other;   /* mixed, auto_promote */
    bool swapped;         /* auto_promote: `other` has taken the place of f32 */
    bool other_ready;     /* mixed: other.matrix holds the inverse in f32 */
    bool kept_ready;      /* kept belongs to the matrix */

    frgi_gp_state state;
    double jitter;        /* added to the diagonal, absolute */
    bool monotone;        /* within a fit: jitter (and a promotion) never goes back */
    bool relaxed;         /* in a fit, at its result: the error of f32 is compared with |ell| + n,
                             not |ell| + 1 */
    bool rounding_warned; /* W_ROUNDING_GP was given for this value */
    bool jitter_warned;   /* W_JITTER was given in this fit; frgi_gp_set_monotone clears it */
    double *residual;     /* n x q: r */
    double *alpha;        /* n x q: K^-1 r, valid from MATRIX_FACTOR on; one column in f64 is L^-T z
                             by L while L is there, by the rows of L^-1 while K^-1 is: the same
                             whatever was asked before */
    double *forward;      /* n: z = L^-1 r of the one column that goes along */
    double *swept;        /* n: L^-T z as a sweep of factor and inverse leaves it */
    bool sweeps;          /* the inverse will be wanted too: one sweep does both */
    void *trust_memory;   /* f32: of frgi_gp_sampled_error */
    float *solved_low;    /* n x (q + m): the same in f32, where a step is in f32 */
    double *noise;        /* n: nu */
    double *diagonal;     /* n: of K = C + N, without jitter */
    double *scratch;      /* n */
    double *dx;           /* n x d: gradient with respect to x, before it is handed out */
    double *gradient;     /* params.count: the same */
    frgi_gp_profile profile;
    double scale;           /* f of a profiled scale: matrix is R, residual r / sqrt(f), alpha R^-1
                               of it; 1 */
    double quad;            /* sum_c r_c' a_c */
    double logdet;          /* log |K| */
    double rounding;        /* K_max (|a|^2 + q sum 1/L_ii^2): times u, what one rounding of each
                               K_ij does to ell */
    frgi_spd_pivots pivots; /* of the last factor */
    frg_gp_value value;     /* of the current theta from MATRIX_FACTOR on */
    frgi_arena loo_memory;  /* leave-one-out: second triangle and vectors, had at its first call */
    frgi_arena information_memory; /* the same for the information */
    frg_gp_trace *trace;           /* of the last fit */
    int64_t n_trace;
    frg_gp_start *starts;               /* of the last fit */
    int64_t start_values, start_points; /* likelihoods on how many points that chose its first
                                           start */
    frgi_gp_param *unset; /* frgi_gp_create_from: the parameters as the expression left them */
    frg_gp_saver save;    /* of fits; NULL: nobody wants states */
    void *save_user;
    const frg_checkpoint *from;          /* the state that the next fit goes on from, NULL: none */
    struct frgi_gp_fit_state *fit_state; /* of the fit under way, where states are wanted
                                            (gp_state.h) */
    bool shares;                         /* expression, names and unset are another's (gp_copy.c) */
};

/* ---- gp.c ---- */

/** What |x| and |y| may be in the process's arithmetic, and the refusal of what is not. */
double frgi_gp_largest_x(const frg_gp_opts *o);
double frgi_gp_largest_y(const frg_gp_opts *o);
frg_status frgi_gp_refuse_size(frg_context *ctx, const char *name, int64_t i, int64_t j, double v,
                               double most);

/* ---- gp_value.c ---- */

/** Value at gp->theta: build, jitter policy, factor, alpha; leaves MATRIX_FACTOR.  Nothing is done
 *  where it is there already.  FRG_NOT_POSDEF, and FRG_BROKE_DOWN (f32 that is not good enough),
 *  leave MATRIX_NONE and are steps not to be taken for an optimiser; so do FRG_INTERRUPTED and
 *  FRG_TIME_LIMIT. */
FRG_MUST_USE frg_status frgi_gp_value(frg_gp *gp);
/** Gradient at gp->theta (-> MATRIX_INVERSE; MIXED keeps MATRIX_FACTOR); includes the prior, 0 for
 *  fixed parameters.  dx: n x d row-major, dy: n x q column-major, either may be NULL. */
FRG_MUST_USE frg_status frgi_gp_gradient(frg_gp *gp, double *gradient, double *dx, double *dy);
/** K with the current jitter into `matrix`, and what goes with it. */
FRG_MUST_USE frg_status frgi_gp_build_jittered(frg_gp *gp);
/** nu_i: the known variances and the learned ones, of all points. */
void frgi_gp_noise(const frg_gp *gp, double *nu);
void frgi_gp_narrow(ptrdiff_t n, const double *from, float *to);
void frgi_gp_widen(ptrdiff_t n, const float *from, double *to);
/** Again in f64 where auto_promote allows it, E_PRECISION_GP where not: the inverse in f32 was no
 *  inverse. */
FRG_MUST_USE frg_status frgi_gp_promote(frg_gp *gp);
/** The value from a factor that was not made here (an update, a file): matrix holds L at
 *  gp->jitter, noise and diagonal are filled, the expression is bound; residual, solves, check of
 *  the accuracy -> MATRIX_FACTOR. */
FRG_MUST_USE frg_status frgi_gp_take_factor(frg_gp *gp);
/** L^-1 r, a, what is profiled and the likelihood once more from the L that is there and its
 *  logdet. */
FRG_MUST_USE frg_status frgi_gp_solve_anew(frg_gp *gp);
/** Makes sure the factor and alpha of the current theta are there. */
FRG_MUST_USE frg_status frgi_gp_need_factor(frg_gp *gp);
/** Does alpha follow the matrix from L to K^-1: one column in f64? */
bool frgi_gp_carries(const frg_gp *gp);
/** Makes sure that `matrix` holds K^-1 in the process's own arithmetic. */
FRG_MUST_USE frg_status frgi_gp_need_inverse(frg_gp *gp);
/** Forgets the matrix after theta or the data changed. */
void frgi_gp_forget(frg_gp *gp);
/** Starts (jitter 0, kept from then on) or ends a stretch of evaluations with one continuous
 *  objective. */
void frgi_gp_set_monotone(frg_gp *gp, bool monotone);
/** What an evaluation at gp->theta has left, as if it had been made, but for the matrix: another
 *  one factors anew. */
void frgi_gp_recall(frg_gp *gp, frg_status status, const frg_gp_value *value, double jitter,
                    bool swapped);
/** gp->theta <- theta (checked), forgets the matrix where a value differs. */
FRG_MUST_USE frg_status frgi_gp_set_theta(frg_gp *gp, const double *theta);

/* ---- gp_trust.c ---- */

/** An estimate of how far ell in f32 is off, from residuals in f64 on a sample of rows; alpha must
 *  be there. */
FRG_MUST_USE frg_status frgi_gp_sampled_error(frg_gp *gp, double *error);

/* ---- gp_memory.c ---- */

/** The number of points becomes n: memory is taken, the data of the first min(n, old n) points are
 *  kept, the matrix is forgotten.  Fills nothing else: the caller writes the new rows of x, y and
 *  so on, then calls frgi_gp_refresh.  On failure the process is as before. */
FRG_MUST_USE frg_status frgi_gp_resize(frg_gp *gp, ptrdiff_t n);
/** frg_gp_create in *reused, which is NULL or what an earlier call with this expression and these
 *  options left there: a process of enough capacity takes the new data as a new one would.  The
 *  caller destroys *reused at the end, also after a failure.  model: NULL, or such a process (on
 *  any context) that outlives it, whose expression may serve. */
FRG_MUST_USE frg_status frgi_gp_create_from(frg_gp **reused, frg_context *ctx, frg_array x,
                                            frg_array y, const char *kernel, const frg_gp_opts *o,
                                            const frg_gp *model);
/** *kept grows to hold what `measured` counted; its contents are lost where it does. */
FRG_MUST_USE frg_status frgi_gp_need_memory(frg_gp *gp, frgi_arena *kept, frgi_arena measured,
                                            const char *what);
/** Measures gp->sizes for n points, once: a model's copies begin with them. */
void frgi_gp_measure_sizes(frg_gp *gp, ptrdiff_t n, int threads);
/** Bytes of the arena for n points. */
size_t frgi_gp_memory_bytes(const frg_gp *gp, ptrdiff_t n);
/** After x changed: centres, H; the points of each arithmetic follow when they are bound. */
void frgi_gp_refresh(frg_gp *gp);
/** The expression bound to the points at the current theta, in the process's own arithmetic and in
 *  the second one. */
const frgi_gp_bound *frgi_gp_need_bound(frg_gp *gp);
const frgi_gp_bound *frgi_gp_need_other_bound(frg_gp *gp);
/** Bytes of m points in the layout that frgi_gp_set_points fills, and the filling: x is m x d
 *  row-major. */
size_t frgi_gp_points_bytes(const frg_gp *gp, ptrdiff_t m);
void frgi_gp_set_points(const frg_gp *gp, const double *x, ptrdiff_t m, void *memory,
                        frgi_gp_points *out);

/* ---- gp_centre.c ---- */

/** After x changed: centre, largest and spread. */
void frgi_gp_measure_columns(frg_gp *gp);
/** The first column with values so far from the others that the arithmetic at hand would take
 *  different points for one; -1: none. */
ptrdiff_t frgi_gp_unresolved(const frg_gp *gp);
/** The first column with values so many periods of a leaf from the centre that no phase is left of
 *  them; -1: none. */
ptrdiff_t frgi_gp_lost_phase(const frg_gp *gp);
/** E_PHASE where that is so for one of m new points (m x d row-major). */
FRG_MUST_USE frg_status frgi_gp_check_phases(frg_gp *gp, const char *name, const double *x,
                                             ptrdiff_t m);
/** E_PRECISION_GP where m points more (m x d row-major) would make a column unresolved that is not
 *  so now. */
FRG_MUST_USE frg_status frgi_gp_check_new_points(const frg_gp *gp, const double *x, ptrdiff_t m);

/* ---- gp_copy.c ---- */

/** Another process at the same data and parameters, on ctx; it shares what never changes. */
FRG_MUST_USE frg_status frgi_gp_worker_copy(frg_gp **out, frg_context *ctx, const frg_gp *gp);
/** A process in float64 of m of the rows, at the same parameters and on the same context, whose
 *  factor has no jitter. */
FRG_MUST_USE frg_status frgi_gp_subset(frg_gp **out, const frg_gp *gp, ptrdiff_t m,
                                       const ptrdiff_t *rows);
/** One without points, with the parameters as the expression left them; model: of
 *  frgi_gp_create_from. */
FRG_MUST_USE frg_status frgi_gp_empty_copy(frg_gp **out, frg_context *ctx, const frg_gp *model);

/* ---- gp_mean.c ---- */

/** Reads "zero", "const", "const(v)", "const(v!)", "linear", "profiled", "profiled(linear)" or
 *  "values"; sets gp->mean and profile.count. */
FRG_MUST_USE frg_status frgi_gp_mean_parse(frg_gp *gp, const char *text);
/** Appends the parameters, and sets from y what is still open. */
FRG_MUST_USE frg_status frgi_gp_mean_add(frg_gp *gp);
void frgi_gp_mean_start(frg_gp *gp);
/** E_ARG where the columns of a profiled mean are collinear in the data. */
FRG_MUST_USE frg_status frgi_gp_mean_check(frg_gp *gp);
/** residual <- y - m, for profiled means y minus its column means. */
void frgi_gp_mean_residual(frg_gp *gp);
/** Profiled means, between the two triangular solves: beta from z_H = L^-1 H and z_y = L^-1 y
 *  (columns of alpha), z_y <- z_y - z_H beta.  False where H'K^-1 H is singular in this
 *  arithmetic. */
bool frgi_gp_mean_profile(frg_gp *gp);
/** After the second solve: E from K^-1 H. */
void frgi_gp_mean_correction(frg_gp *gp);
/** Adds (dm/db)' a to the means' entries of gradient, and dm/dx a to dx (NULL: not wanted). */
void frgi_gp_mean_gradient(const frg_gp *gp, const double *a, double *gradient, double *dx);
/** Mean function at points x (m x d row-major) under the current parameters, column c of y.
 *  Profiled means need the factor; given values are unknown elsewhere: 0. */
void frgi_gp_mean_at(const frg_gp *gp, ptrdiff_t m, const double *x, ptrdiff_t c, double *out);

/* ---- gp_scale.c ---- */

/** Parameters of a profiled scale: fixes one where all of R could be multiplied by free ones. */
void frgi_gp_scale_hold(frg_gp *gp);
/** Observations that f is the mean square of: n q, (n - m) q under REML. */
double frgi_gp_scale_count(const frg_gp *gp);
/** Between the two triangular solves: quad, f, and residual and alpha divided by its root.  False
 *  where the residual is rounding. */
bool frgi_gp_scale_profile(frg_gp *gp);

/* ---- gp_information.c ---- */

/** AI of all parameters, p x p (see fourge/gp.h), fixed ones zero. */
FRG_MUST_USE frg_status frgi_gp_information(frg_gp *gp, double *information);
/** params.p[i].std_error from the inverse of AI and the priors' curvature over the free
 *  parameters. */
FRG_MUST_USE frg_status frgi_gp_standard_errors(frg_gp *gp);

#pragma GCC visibility pop
#endif
