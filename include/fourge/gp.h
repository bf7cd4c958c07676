/* gp.h - exact Gaussian processes: likelihood and gradient, fit, prediction.
 *
 * Model.  Inputs X (n x d), outputs y (n, or n x q with one kernel for all columns), parameters
 * theta:
 *
 *     K = C + N,   C_ij = k(x_i, x_j),   N = diag(nu_i),   r = y - m,   a = K^-1 r,   L L' = K
 *     ell(theta) = -1/2 r'a - sum_i log L_ii - n/2 log 2 pi                       (summed over the
 *                                                                                 q columns)
 *     d ell / dt = 1/2 sum_ij W_ij dK_ij/dt,   W = a a' - K^-1
 *
 * One evaluation costs n^3/3 flop for the value and 2 n^3/3 more for the gradient, in n^2/2
 * (PACKED) or n^2 (FULL) elements; the gradient is computed when it is asked for.  Rasmussen and
 * Williams (2006), chapters 2 and 5; the in-place inverse follows Bientinesi, Gunter and van de
 * Geijn (2008).
 *
 * Kernel expressions (the same text in C, on the command line and in Python):
 *
 *     1.7*rbf(l=0.2) + noise(0.04)          a number in front is a variance; noise is N, not part
 *                                           of C
 *     scale * matern52(ard) * on(t; periodic(l=1, p=in(0.5,2))) + linear
 *
 *     rbf  matern12  matern32  matern52  rq(l,alpha)  periodic(l,p[,form=gpytorch])  linear(v)
 *     poly(q,c)  cosine(p)  sm(q[,form=gpytorch])  const(v)  white(v)  user
 *
 * l=[0.1,0.3] or the word ard gives one lengthscale a dimension, on(a,b; KERNEL) picks columns by
 * name or number, =v! fixes a value, in(lo,hi) bounds one, @name follows a parameter that stands
 * before it (as in rbf(l=0.2)*matern32(l=@rbf.l), or one entry of a vector: @rbf.l[2]), and a value
 * left out is set from the data.
 *
 * Gradients are per log of a parameter that is positive (all but means, whose gradients are per
 * value).
 *
 * Profiled scale (profile_scale).  The expression is R, up to a factor f at which the likelihood is
 * maximal:
 *
 *     K = f R,   f = r'R^-1 r / (n q) (REML, m columns of H: (n - m) q),   a = R^-1 r
 *     ell = -1/2 [ n q (log 2 pi f + 1) + q log |R| ]
 *     d ell / dt = 1/2 sum_ij W_ij dR_ij/dt,   W = a a'/f - q R^-1
 *
 * One parameter less to search, and none to start.  Where all of R could be multiplied by free
 * parameters (a variance in every term, and the noise) the first of these is fixed, at 1 unless the
 * expression says more.  Values left out are set as if var(y) were 1; jitter is added to R.  f is
 * in frg_gp_value; predictions, draws, leave-one-out and folds have it; where a theta, y or a point
 * changes it is estimated anew.  Known noise variances, in the units of y, do not go with it.
 */
#ifndef FOURGE_GP_H
#define FOURGE_GP_H

#include "fourge/checkpoint.h"
#include "fourge/fourge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options --------------------------------------------------------------------------------- */

/** f64; f32: all arithmetic in float, sums in double; mixed: factor and value in f64 (the f64 value
 *  to the bit), the inverse in f32 where an estimate says that the gradient is within 1e-5 of its
 *  largest component (in a fit, of that and n), in f64 and `promoted` elsewhere. */
typedef enum {
    FRG_GP_F64,  /* double */
    FRG_GP_F32,  /* float */
    FRG_GP_MIXED /* the value in double, the inverse in float */
} frg_gp_precision;
/** How the lower triangle of K and what is made of it are held. */
typedef enum {
    FRG_GP_STORAGE_AUTO, /* by the memory that is allowed, see frg_gp_opts.storage */
    FRG_GP_FULL,         /* the kernel beside the factor: n^2 elements */
    FRG_GP_PACKED        /* the factor alone, the kernel is computed twice: n^2/2; mixed has it */
} frg_gp_storage;
/** Transforms, starts, bounds and priors of other packages, for comparable runs. */
typedef enum {
    FRG_GP_PRESET_NONE,     /* positive values by logarithm, starts from the data, no priors */
    FRG_GP_PRESET_GPYTORCH, /* softplus from 0 (noise 1e-4) on, raw values start at 0 */
    FRG_GP_PRESET_BOTORCH,  /* lengthscales from 0.025 and noise from 1e-4 on, untransformed, with
                               log-normal priors, at whose modes they start; else as gpytorch */
    FRG_GP_PRESET_SKLEARN   /* all start at 1 (means at 0), bounds 1e-5 and 1e5, by logarithm */
} frg_gp_preset;
/** What is done where K has no Cholesky factor: added to its diagonal, until it has. */
typedef enum {
    FRG_GP_JITTER_RELATIVE, /* growing jitter relative to the mean diagonal */
    FRG_GP_JITTER_GPYTORCH, /* GPyTorch's absolute one */
    FRG_GP_JITTER_NONE      /* nothing: E_NOT_POSDEF */
} frg_gp_jitter;
/** What NaN in y is. */
typedef enum {
    FRG_GP_NAN_ERROR, /* E_NOT_FINITE_GP */
    FRG_GP_NAN_MASK   /* the row is left out and counted */
} frg_gp_nan;

/** A user's covariance, called for tiles of pairs.  rows: m points, cols: n points, each d values,
 *  row-major.  Both functions must be safe to call from several threads.  The process keeps the
 *  functions and `user`. */
typedef struct {
    int n_parameters;    /* theta, all positive */
    const double *start; /* n_parameters, positive */
    /** Writes k(rows_i, cols_j) at k[i + j * ld]. */
    void (*fill)(const double *theta, int64_t m, const double *rows, int64_t n, const double *cols,
                 int64_t d, double *k, int64_t ld, void *user);
    /** Adds sum_ij w[i + j * ld] dk_ij/dtheta_t to gradient[t], per log theta_t. */
    void (*pull)(const double *theta, int64_t m, const double *rows, int64_t n, const double *cols,
                 int64_t d, const double *w, int64_t ld, double *gradient, void *user);
    void *user; /* handed to both */
} frg_gp_user_kernel;

/** Options of a process, which copies them and the arrays that they point to. */
typedef struct {
    size_t struct_size;              /* set by frg_gp_defaults */
    const char *const *column_names; /* d names for on(...); NULL: "x1", "x2", ... */
    const char *mean;                /* "zero", "const" (default), "const(v)", "const(v!)" (fixed),
                                        "linear": a constant and a slope an input, "profiled",
                                        "profiled(linear)", "values" */
    const double *mean_values;       /* n, for "values" */
    int reml;                        /* 0; 1: restricted likelihood, with a profiled mean */
    const double *noise_variances;   /* n known variances added to N, or NULL */
    const int32_t *noise_groups;     /* n codes 0 .. G-1: one learned noise a group, or NULL */
    const char *priors;              /* "rbf.l=gamma(3,6); noise=lognormal(-4,1)", NULL: none */
    int prior_jacobian;              /* 0: the mode in the value itself; 1: adds log |dv/draw| */
    frg_gp_preset preset;            /* none */
    frg_gp_precision precision;      /* f64 */
    frg_gp_storage storage;          /* auto: FULL where 8 n^2 is at most a quarter of the memory
                                        allowed */
    int auto_promote;                /* 0: f32 that is not good enough is an error; 1: run again in
                                        f64 */
    double accuracy;                 /* 1e-3: what f32 must reach in ell, relative to |ell| + 1; in
                                        a fit to |ell| + n.  A bound (error_estimate) that is above
                                        it in f64 is the warning W_ROUNDING_GP */
    frg_gp_jitter jitter;            /* relative */
    frg_gp_nan nan;                  /* error */
    const frg_gp_user_kernel *user_kernel; /* for the word `user` in the expression */
    int profile_scale;                     /* 0; 1: K = f R, the expression is R and f is estimated
                                              (below) */
} frg_gp_opts;

/* ---- a process with its data ----------------------------------------------------------------- */

/** A process with its data, its parameters and, once they are needed, factor, inverse and their
 *  memory.  Made by frg_gp_create or frg_gp_load, freed by frg_gp_destroy before its context. */
typedef struct frg_gp frg_gp;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_gp_defaults(frg_gp_opts *o, size_t struct_size);
/** The fields of frg_gp_opts (frg_option). */
FRG_API const frg_option *frg_gp_options(void);
/** x: n x d, y: n or n x q; f64 or f32, any strides; both are copied.  Values that the expression
 *  leaves out are set from the data (l = 0.5 sqrt(d) sd, variance = var(y), noise = 0.1 var(y),
 *  mean = mean(y)). Errors: E_KERNEL with the position in the text, E_SHAPE, E_DTYPE,
 *  E_NOT_FINITE_GP with row and column, E_NOISE, E_PRIOR, E_TOO_BIG_GP with the bytes needed,
 *  allowed, and the storage that would fit. */
FRG_API FRG_MUST_USE frg_status frg_gp_create(frg_gp **out, frg_context *ctx, frg_array x,
                                              frg_array y, const char *kernel,
                                              const frg_gp_opts *o);
/** Frees the process; NULL is fine. */
FRG_API void frg_gp_destroy(frg_gp *gp);
/** Bytes that frg_gp_create will hold for n points, before it does.  Errors: those of the
 *  expression and of the options that frg_gp_create has (E_KERNEL, E_PRIOR, E_OPTION); E_TOO_BIG_GP
 *  where no memory could hold it; E_ARG, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_gp_estimate(frg_context *ctx, int64_t n, int64_t d, int64_t q,
                                                const char *kernel, const frg_gp_opts *o,
                                                size_t *bytes);

/** How a value v follows from its raw value u, in which adam searches and whose derivative dv/du
 *  prior_jacobian adds. */
typedef enum {
    FRG_GP_LOG,      /* v = exp(u) */
    FRG_GP_SOFTPLUS, /* v = lower + log(1 + exp(u)) */
    FRG_GP_INTERVAL, /* v = lower + (upper - lower) / (1 + exp(-u)) */
    FRG_GP_IDENTITY  /* v = u */
} frg_gp_transform;

/** One parameter of the expression or the mean, a copy but for its name, which lives as long as the
 *  process. */
typedef struct {
    const char *name; /* "scale", "rbf.l", "rbf2.l", "noise", "mean"; a vector's entries share it */
    int entry;        /* within a vector parameter, -1 for a scalar */
    double value, lower, upper; /* theta_i and its bounds */
    frg_gp_transform transform; /* of it */
    int fixed;                  /* 1: a fit leaves it alone */
    int active;       /* after a fit: -1 at the lower bound, 1 at the upper one, 0 inside */
    double std_error; /* of the log parameter (of the value for means); NaN before a fit */
    int tied;         /* the parameter that it follows, -1: none */
} frg_gp_parameter;

/** The number of parameters p, fixed ones and the entries of vectors among them. */
FRG_API int frg_gp_parameter_count(const frg_gp *gp);
/** Parameter i, 0 <= i < frg_gp_parameter_count, into *out.  Errors: E_ARG for another i. */
FRG_API FRG_MUST_USE frg_status frg_gp_get_parameter(const frg_gp *gp, int i,
                                                     frg_gp_parameter *out);
/** Where the parameter called `name` is: the number of its one entry, or of the first; entries (or
 *  NULL): how many it has. E_PARAMETER lists the names that there are. */
FRG_API FRG_MUST_USE frg_status frg_gp_find_parameter(const frg_gp *gp, const char *name,
                                                      int *first, int *entries);
/** Another value, and other bounds, for a parameter. */
typedef struct {
    const char *name;           /* as in frg_gp_parameter */
    int entry;                  /* -1: all of them */
    double value, lower, upper; /* NaN: as it is */
} frg_gp_change;
/** All of the changes or none.  Values must lie within the bounds that hold afterwards, lower <
 *  upper, none below 0 where the parameter is positive (E_PARAMETER), and priors have a density
 *  there (E_PRIOR).  Those that are tied to a parameter take its value and keep bounds of their
 *  own.  Under FRG_GP_PRESET_GPYTORCH two finite bounds are an interval, else the lower one is a
 *  softplus's. */
FRG_API FRG_MUST_USE frg_status frg_gp_update_named(frg_gp *gp, const frg_gp_change *changes,
                                                    int count);
/** theta: parameter_count values; nothing is clamped: E_PARAMETER names a value that is not finite,
 *  not positive where it must be, or out of bounds. */
FRG_API FRG_MUST_USE frg_status frg_gp_update_parameters(frg_gp *gp, const double *theta);
/** Fixes or frees parameter i, and those tied to it.  Errors: E_ARG for a parameter that is not
 *  there. */
FRG_API FRG_MUST_USE frg_status frg_gp_update_fixed(frg_gp *gp, int i, int fixed);
/** Parameter i follows another one (to; -1: goes its own way again): it takes its value at once,
 *  and a fit moves both as one, within the bounds of both.  What i led follows too.  The gradient
 *  and the information still hold each parameter's own part: along a group parts add up.
 *  frg_gp_update_parameters wants equal values.  Errors: E_ARG for parameters that are not there or
 *  are not of one kind, E_PARAMETER where the value to follow is out of the bounds of i. */
FRG_API FRG_MUST_USE frg_status frg_gp_update_tied(frg_gp *gp, int i, int to);

/* ---- value and gradient ---------------------------------------------------------------------- */

/** One evaluation, with what makes it trustworthy. */
typedef struct {
    double log_likelihood;  /* ell; restricted where reml */
    double log_prior;       /* sum of the log densities of the priors; 0: none */
    double per_point;       /* (ell + log prior) / n */
    double jitter;          /* added to the diagonal; 0: none */
    int jitter_tries;       /* how often it was raised */
    int64_t pivot;          /* where the first failure was, -1: none */
    int64_t closest[2];     /* the closest pair of points after a failure (n <= 5000), -1
                              otherwise */
    double trace_residual;  /* |sum_ij (K^-1)_ij K_ij - n| / n; NaN before a gradient */
    double error_estimate;  /* bound on the rounding error of ell */
    int promoted;           /* the inverse (mixed) or all (f32, auto_promote) was done again in
                              f64 */
    frg_gp_storage storage; /* in use */
    /** Of the kernel's values, the factor with its solves, the inverse, the gradient; where factor
     *  and inverse are made in one sweep it is the inverse's. */
    double build_seconds, factor_seconds, inverse_seconds, gradient_seconds;
    int cusps;    /* 1: the gradient in x was asked of a kernel with a cusp (matern12), where two
                     equal points have none: it holds 0 for such a pair, the mean of both sides */
    double scale; /* f of a profiled scale; 1 */
} frg_gp_value;

/** ell at the current parameters.  FRG_NOT_POSDEF (E_NOT_POSDEF names pivot, size and closest pair)
 *  when no jitter helps; parameters and the next call are unharmed. */
FRG_API FRG_MUST_USE frg_status frg_gp_eval(frg_gp *gp, frg_gp_value *out);
/** The gradient at the current parameters; evaluates the value first unless it is there.  gradient:
 *  parameter_count values (fixed ones are 0), of ell + log prior, or NULL.  x (n x d), y (n or n x
 *  q): gradients of ell with respect to the data without the rows left out, f64, or NULL.  Errors:
 *  of frg_gp_eval, E_PRECISION_GP, E_SHAPE, E_DTYPE; E_UNSUPPORTED for x with a kernel of the user;
 *  E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_gp_eval_gradient(frg_gp *gp, double *gradient,
                                                     const frg_array *x, const frg_array *y,
                                                     frg_gp_value *out);
/** Average information, p x p row-major: AI_st = 1/2 (K_s a)' K^-1 (K_t a) (Gilmour, Thompson and
 *  Cullis 1995), K_t = dK/dlog theta_t; its inverse estimates the covariance of the estimates.
 *  Fixed parameters have zero rows.  Errors: of frg_gp_eval, E_PRECISION_GP, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_gp_eval_information(frg_gp *gp, double *information);

/** How well left-out points, or folds of them, are predicted. */
typedef struct {
    double log_density; /* sum_i log p(y_i | the others) */
    double rmse;        /* root mean square of y - mean, over all n q values */
} frg_gp_loo;
/** Leave-one-out by one inverse: c_i = (K^-1)_ii, mean y_i - a_i/c_i, variance 1/c_i (noise
 *  included); a profiled mean is estimated anew without each point.  mean, variance: n (n x q for
 *  mean, row-major) or NULL; gradient of the log density, without prior: parameter_count or NULL.
 *  The first call, and that of the information, take memory of their own. Rasmussen and Williams
 *  (2006), 5.4.2.  Errors: of frg_gp_eval_gradient; E_ARG for a row without which a profiled mean
 *  cannot be estimated. */
FRG_API FRG_MUST_USE frg_status frg_gp_eval_loo(frg_gp *gp, double *mean, double *variance,
                                                double *gradient, frg_gp_loo *out);
/** Leave-one-out variances of the function itself, 1/c_i - nu_i, as frg_gp_predict gives them
 *  without `observed`: neither noise, jitter nor white(...); n values, negative ones become 0.
 *  Errors: of frg_gp_eval_loo, E_ARG for NULL. */
FRG_API FRG_MUST_USE frg_status frg_gp_eval_loo_latent(frg_gp *gp, double *variance);
/** K-fold by the same inverse: rows with one code in folds (n codes 0 .. F-1, F <= n, of the rows
 *  that are kept) are predicted together from all others, P = K^-1: mean y_B - P_BB^-1 a_B,
 *  covariance P_BB^-1 (noise included), of which variance takes the diagonal; log_density is that
 *  of each fold's rows together, summed.  sum_B |B|^3 flop more, and for the gradient of
 *  log_density 2 n^3 and a second triangle.  A profiled mean is estimated anew without each fold.
 *  mean, variance, gradient: as above.  Errors: of frg_gp_eval_loo; E_ARG for a code outside 0 ..
 *  n-1. */
FRG_API FRG_MUST_USE frg_status frg_gp_eval_folds(frg_gp *gp, const int32_t *folds, double *mean,
                                                  double *variance, double *gradient,
                                                  frg_gp_loo *out);

/* ---- fit ------------------------------------------------------------------------------------- */

/** What maximises ell + log prior. */
typedef enum {
    FRG_GP_OPT_AUTO, /* ai or lbfgsb, see frg_gp_fit_opts.optimizer */
    FRG_GP_AI,       /* trust region steps on the average information (frg_gp_eval_information) */
    FRG_GP_LBFGSB,   /* limited-memory BFGS within bounds */
    FRG_GP_ADAM      /* Adam on the raw values, a fixed number of steps */
} frg_gp_optimizer;

/** Options of frg_gp_fit. */
typedef struct {
    size_t struct_size;         /* set by frg_gp_fit_defaults */
    frg_gp_optimizer optimizer; /* auto: ai for at most 64 parameters and n >= 200, lbfgsb
                                   otherwise */
    int64_t max_iter;           /* 200; steps of adam */
    double tol;                 /* 1e-5: largest projected gradient per point, see frg_gp_fit */
    double learning_rate;       /* 0.1, adam */
    int starts;                 /* 1; start 0 is the given one (below), others from priors or
                                   between the nearest distance of the points and their range;
                                   log-uniform in the bounds that the text gives */
    int standardize;            /* 1: means are searched in standard deviations of y; for a kernel
                                   whose terms have variances of their own that is all that
                                   standardising y would change */
    int standard_errors;        /* 1: from the average information at the optimum, into
                                   frg_gp_parameter.std_error; 0: NaN */
    int64_t max_evaluations;    /* 0: no limit; else values that each start may ask for:
                                   FRG_MAX_ITER with the best point so far (of adam: the last one)
                                   where it ended a search */
} frg_gp_fit_opts;

/** One accepted iterate. */
typedef struct {
    double log_likelihood, gradient_norm, seconds; /* ell; projected, per point; since the fit
                                                      began */
    int64_t values, gradients;                     /* evaluations so far */
} frg_gp_trace;

/** What became of one start. */
typedef struct {
    frg_status status; /* FRG_INTERRUPTED where its turn did not come */
    double objective;  /* ell + log prior where it ended, with the jitter of its search; NaN:
                          nowhere */
    /** Accepted steps; likelihoods and gradients that were asked for; those of them that failed, as
     *  there was no factor or no finite value. */
    int64_t iterations, values, gradients, failures;
} frg_gp_start;

/** What a fit found and did. */
typedef struct {
    frg_status status;                               /* of the best start, what the call returned */
    double log_likelihood;                           /* ell at the optimum */
    double gradient_norm;                            /* projected, per point */
    int64_t iterations, values, gradients, failures; /* as in frg_gp_start, over all starts */
    int best_start;                                  /* which start it came from, from 0 on */
    const char *optimizer;                           /* the one that ran */
    int64_t n_trace;                                 /* length of trace */
    const frg_gp_trace *trace; /* of the best start; lives as long as the process or its next fit */
    frg_gp_value value;        /* at the optimum */
    double total_seconds;      /* of the call */
    int64_t n_starts;          /* 0 where nothing is free */
    const frg_gp_start *starts; /* lives as long as the trace */
    const char *ended;          /* FRG_OK by which test: "gradient", "gain", "rounding", "steps"
                                   (adam); "" otherwise */
    int64_t starts_reached; /* starts that ended within FRG_GP_REACHED of the best objective, the
                               best one among them */
    double next_optimum;    /* how far below it the best of the others ended; NaN: there is none */
    int64_t choice_values, choice_points; /* likelihoods of how many of the points chose the first
                                             start; 0: it was given */
} frg_gp_fit_result;
/** How far below the best objective a start may end that counts as having reached it. */
#define FRG_GP_REACHED 0.01

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_gp_fit_defaults(frg_gp_fit_opts *o, size_t struct_size);
/** The fields of frg_gp_fit_opts (frg_option). */
FRG_API const frg_option *frg_gp_fit_options(void);
/** Maximises ell + log prior over the free parameters within their bounds, from the current ones;
 *  leaves the best parameters in gp.  Free parameters that still have the values that the data gave
 *  them begin at likelier ones where lengthscales or periods are among them: of a few, evaluated on
 *  at most 160 points, those of the largest ell + log prior.  A failed factor is a step that is not
 *  taken, never a gradient of zero. ai and lbfgsb: FRG_OK where gradient_norm <= tol; or where a
 *  step gained next to nothing, or none was found, and for a full step (components up to 2, a
 *  factor of 7) the average information predicts a gain of no more than 2.2e-9 of max(|ell + log
 *  prior|, n), or than error_estimate.  FRG_STALLED: no step was found although more is predicted.
 *  adam: FRG_OK once its steps are done, wherever that is. */
FRG_API FRG_MUST_USE frg_status frg_gp_fit(frg_gp *gp, const frg_gp_fit_opts *o,
                                           frg_gp_fit_result *out);

/** Called after an accepted iterate, on the thread that called frg_gp_fit; stopped: the fit ends
 *  early (interrupted, out of time).  frg_gp_fit_save gives the state then.  A negative status ends
 *  the fit with it. */
typedef frg_status (*frg_gp_saver)(void *user, const frg_gp *gp, int stopped);
/** Who keeps the states of the next fits; NULL: nobody.  A state is what the process has answered
 *  so far: p doubles and about 250 bytes an evaluation, p^2 more where the information is asked
 *  for.  Not with a kernel of the user (E_UNSUPPORTED from frg_gp_fit). */
FRG_API void frg_gp_fit_keep(frg_gp *gp, frg_gp_saver save, void *user);
/** From within the call: puts the state into c as the sections fit and answers, borrowed until the
 *  call returns.  Errors: E_ARG outside of the call. */
FRG_API FRG_MUST_USE frg_status frg_gp_fit_save(const frg_gp *gp, frg_checkpoint *c);
/** The next frg_gp_fit goes on from the state in c, which it needs until it returns, and ends with
 *  the bits of the fit that was not stopped, on any number of threads.  gp: a process of the same
 *  data, expression, starting values and options.  Errors, all of them from frg_gp_fit: E_MISMATCH
 *  where these differ (column_names, storage and nan may), or another version or CPU level wrote
 *  it; E_CHECKPOINT where it is damaged. */
FRG_API FRG_MUST_USE frg_status frg_gp_fit_resume(frg_gp *gp, const frg_checkpoint *c);

/* ---- prediction ------------------------------------------------------------------------------ */

/** What frg_gp_predict computes, and where to: views of the caller's. */
typedef struct {
    size_t struct_size;        /* set by frg_gp_predict_defaults */
    int observed;              /* 0: of the function; 1: of an observation, with noise (known or
                                  grouped noise: its mean over the data) and white(...) */
    frg_array *mean;           /* m, or m x q; f64; each may be NULL */
    frg_array *variance;       /* m */
    frg_array *covariance;     /* m x m */
    frg_array *mean_dx;        /* m x d: d mean / d x (q = 1) */
    frg_array *variance_dx;    /* m x d */
    double variance_floor;     /* 0: negative variances become 0; smaller ones than this become this
                                  (GPyTorch has 1e-10 in f64 and 1e-6 in f32, which preset gpytorch
                                  takes where this is 0) */
    const double *mean_values; /* m: m* where the mean of the data was given by "values", whose own
                                  mean_dx is not known and counts as 0; needed there for `mean`,
                                  NULL otherwise */
} frg_gp_predict_opts;

/** Defaults, no output asked for, into the first struct_size bytes of o. */
FRG_API void frg_gp_predict_defaults(frg_gp_predict_opts *o, size_t struct_size);
/** The fields of frg_gp_predict_opts (frg_option). */
FRG_API const frg_option *frg_gp_predict_options(void);
/** At m new points x (m x d): mean m* + k*'a, variance k** - |L^-1 k*|^2, clamped at 0, or at
 *  variance_floor (noise included), with a counted warning.  Refactors where the gradient has taken
 *  the factor's place.  Gradients of kernels with a cusp at the points (matern12) leave out the
 *  point's own term there.  Errors: of frg_gp_eval where there is no factor yet; E_SHAPE, E_DTYPE,
 *  E_NOT_FINITE_GP, E_PHASE, E_RANGE_GP of the points; E_OPTION for a variance_floor below 0;
 *  E_UNSUPPORTED for gradients in x with a kernel of the user; E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_gp_predict(frg_gp *gp, frg_array x,
                                               const frg_gp_predict_opts *o);
/** What frg_gp_predict_fantasies computes, and where to: views of the caller's. */
typedef struct {
    size_t struct_size;            /* set by frg_gp_fantasy_defaults */
    int observed;                  /* as in frg_gp_predict_opts */
    const double *noise_variances; /* sets x m known variances of the candidates, where the process
                                      has such */
    frg_array *mean;               /* sets x t x s (of q outputs: s q), f64; each may be NULL */
    frg_array *variance;           /* sets x t: it does not depend on y */
} frg_gp_fantasy_opts;

/** Defaults, no output asked for, into the first struct_size bytes of o. */
FRG_API void frg_gp_fantasy_defaults(frg_gp_fantasy_opts *o, size_t struct_size);
/** The fields of frg_gp_fantasy_opts (frg_option). */
FRG_API const frg_option *frg_gp_fantasy_options(void);
/** Predictions at the t points of `at` (t x d) as they would be after observing candidates: `sets`
 *  alternative sets of m points (x: sets x m x d), each with s alternative outcomes (y: sets x m x
 *  s).  The process stays as it is and its factor serves all sets: n^2 (t + sets m) flop, then sets
 *  n m t; equal to frg_gp_update_append and frg_gp_predict for each, but for a profiled scale,
 *  which stays as it is.  With q outputs y is sets x m x s q, the outputs of an outcome side by
 *  side.  Errors: of frg_gp_predict; E_ARG for a set without points, E_NOISE, E_NOT_POSDEF for
 *  candidates that are not distinguished; E_UNSUPPORTED with noise groups or given mean values. */
FRG_API FRG_MUST_USE frg_status frg_gp_predict_fantasies(frg_gp *gp, frg_array x, frg_array y,
                                                         frg_array at,
                                                         const frg_gp_fantasy_opts *o);
/** count joint draws at x (m x d) into out (count x m; with q outputs count x m x q; f64): of the
 *  posterior, or of the prior.  Where the mean was given by "values" (given_mean of the report)
 *  they are of the function without it, as means of fantasies are: add that of the points.  Draw s
 *  is the same whatever count and threads (counter-based, seed of the context).  Errors: of
 *  frg_gp_predict, E_NOT_POSDEF, E_ARG for count < 0. */
FRG_API FRG_MUST_USE frg_status frg_gp_sample(frg_gp *gp, frg_array x, int64_t count, int prior,
                                              int observed, frg_array out);

/** Adds m points (x: m x d, y: m or m x q, noise_variances: m where the process has known ones,
 *  else NULL), n^2 m flop; equal to a process of all points at the same parameters.  A point that
 *  the arithmetic cannot tell from the others beside the rest is refused, and so is what creation
 *  refuses; lengths held for constant columns are free once those are not so.  Errors: of
 *  frg_gp_create's data and of frg_gp_eval, E_PRECISION_GP for a point that is refused;
 *  E_UNSUPPORTED with noise groups or given mean values; E_ARG for noise_variances where the
 *  process has none or the reverse. */
FRG_API FRG_MUST_USE frg_status frg_gp_update_append(frg_gp *gp, frg_array x, frg_array y,
                                                     const double *noise_variances);
/** Removes point i (of those kept), O((n-i)^2); equal to a process of the others at the same
 *  parameters.  Errors: E_ARG for an i that is not there, E_NO_POINTS for the last point, E_MEMORY;
 *  of frg_gp_eval. */
FRG_API FRG_MUST_USE frg_status frg_gp_update_remove(frg_gp *gp, int64_t i);
/** Other outputs (n or n x q, of the points that are kept, f64 or f32) at the same points and
 *  parameters; the factor stays.  Errors: E_SHAPE, E_DTYPE, E_NOT_FINITE_GP with row and column,
 *  E_RANGE_GP; of frg_gp_eval. */
FRG_API FRG_MUST_USE frg_status frg_gp_update_y(frg_gp *gp, frg_array y);
/** The known noise variance of point i (of those kept) becomes another: a rank-one update of the
 *  factor, O((n-i)^2); where a smaller one would cost a pivot its digits the next call factors
 *  anew.  Errors: E_ARG for an i that is not there and a process without known noise, E_NOISE; of
 *  frg_gp_eval. */
FRG_API FRG_MUST_USE frg_status frg_gp_update_noise(frg_gp *gp, int64_t i, double variance);

/** Data, expression, parameters and factor into one checked file, which appears whole or not at
 *  all; the factor is made first where it is not there.  Errors: E_UNSUPPORTED for a process with a
 *  kernel of the user, E_CREATE, E_WRITE, E_MEMORY, E_ARG.  FRG_INTERRUPTED, FRG_TIME_LIMIT:
 *  stopped while the factor was made, no file. */
FRG_API FRG_MUST_USE frg_status frg_gp_save(frg_gp *gp, const char *path);
/** A process from such a file, which predicts to the bit as the saved one.  Errors: E_NO_INPUT,
 *  E_READ, E_MODEL for a file that is damaged, of another version or none of ours, E_MEMORY, E_ARG.
 *  FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped while it waited for a pipe, *out is NULL. */
FRG_API FRG_MUST_USE frg_status frg_gp_load(frg_gp **out, frg_context *ctx, const char *path);

/** What the process is. */
typedef struct {
    int64_t n, d, q;                 /* points that are kept, columns of x, outputs */
    int64_t n_masked;                /* rows left out for NaN in y */
    const char *kernel;              /* the expression with the current values */
    int given_mean;                  /* 1: the mean is "values" */
    const char *const *column_names; /* d */
    frg_gp_storage storage;          /* in use */
    frg_gp_precision precision;      /* of the options */
    size_t bytes;                    /* held by data, matrix and vectors */
    const double *x, *y; /* the points that are kept: n x d row-major, n x q column-major; until the
                            process changes */
} frg_gp_report;
/** The process as it is; what the report points to is the process's, the text of the kernel until
 *  the next report.  All zeros for NULL. */
FRG_API frg_gp_report frg_gp_get(const frg_gp *gp);

/* ---- many small processes -------------------------------------------------------------------- */

/** One member: n x d and n, f64 or f32 views. */
typedef struct {
    frg_array x, y;      /* read, not kept */
    const double *theta; /* parameter_count values, NULL: the expression's and the data's */
    frg_status status;   /* out: this member's, whatever the others did */
    frg_gp_value value;  /* out */
    double *gradient;    /* out: parameter_count, or NULL */
    double *fitted;      /* out of frg_gp_batch_fit: parameter_count */
    int n_warnings;      /* out: its warnings, which the context does not have */
    char message[400];   /* out: the error of a member that failed, else its warnings, "; " between
                            them; cut off */
} frg_gp_member;

/** Value (and gradient) of many independent processes with one expression; sizes may differ.  Up to
 *  about n = 128 (f64) and 200 (f32) a SIMD lane holds one member, above that a core does.
 *  FRG_PARTIAL when a member failed; the others' bits do not depend on it.  Errors: of the
 *  expression and the options (E_KERNEL, E_PRIOR, E_OPTION), E_ARG, E_MEMORY; those of a member are
 *  in its status and message.  FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped. */
FRG_API FRG_MUST_USE frg_status frg_gp_batch_eval(frg_context *ctx, int64_t count,
                                                  frg_gp_member *members, const char *kernel,
                                                  const frg_gp_opts *o);
/** The same with a fit of every member by frg_gp_fit's rules.  Errors: of frg_gp_batch_eval,
 *  E_OPTION of the fit. */
FRG_API FRG_MUST_USE frg_status frg_gp_batch_fit(frg_context *ctx, int64_t count,
                                                 frg_gp_member *members, const char *kernel,
                                                 const frg_gp_opts *o, const frg_gp_fit_opts *fit);

/* ---- the dense core -------------------------------------------------------------------------- */

/** For each of the leading batch matrices: inv_quad = r' K^-1 r and logdet = log |K|.  k: (.., n,
 *  n), only its lower triangle is read; r: (.., n); both f64 or both f32, any strides (0
 *  broadcasts).  Outputs of batch shape; a = K^-1 r (contiguous, shape of r, K's type) and inverse
 *  (contiguous, shape of k, symmetric) are computed where they are not NULL.  The backward of g_iq
 *  inv_quad + g_ld logdet is
 *      dK = g_ld K^-1 - g_iq a a',   dr = 2 g_iq a.
 *  ell = -1/2 (inv_quad + logdet + n log 2 pi) of f32 matrices must be within 1e-3 (|ell| + 1) of
 *  that of the matrix as it is given, by a bound or by residuals in f64; E_PRECISION_GP (nothing is
 *  written) where it may not be: convert to f64. In f64 a bound above |ell| is the warning
 *  W_ROUNDING_GP.  Members and rows count from 0 in messages. */
FRG_API FRG_MUST_USE frg_status frg_gp_invquad_logdet(frg_context *ctx, frg_array k, frg_array r,
                                                      double *inv_quad, double *logdet,
                                                      const frg_array *a, const frg_array *inverse);
/** dK and dr from what the forward left: g_iq, g_ld one value a batch member, either may be NULL
 *  (zero). inverse may be the array that dk overwrites.  Errors: E_SHAPE, E_DTYPE; E_ARG where dK
 *  needs an inverse and there is none. */
FRG_API FRG_MUST_USE frg_status frg_gp_invquad_logdet_backward(
    frg_context *ctx, const frg_array *inverse, frg_array a, const double *g_iq, const double *g_ld,
    const frg_array *dk, const frg_array *dr);

#ifdef __cplusplus
}
#endif
#endif
