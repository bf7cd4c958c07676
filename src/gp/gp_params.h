/* gp_params.h - the parameter vector: values, transforms, bounds, priors, fixings, starts.
 *
 * Order: the kernel's tree depth-first (a node: variance or scale, lengthscales 1..d, others),
 * noise, mean. The optimisers work on raw values v = T(raw); gradients inside src/gp are per log v,
 * or per v where v may be negative (means, identity transform): `per_value`.
 */
#ifndef FRGI_GP_PARAMS_H
#define FRGI_GP_PARAMS_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

/** What the start and the bounds of a parameter are set from. */
typedef enum {
    GP_ROLE_VARIANCE,           /* var(y) */
    GP_ROLE_LENGTH,             /* 0.5 sqrt(d) sd(x_k) */
    GP_ROLE_PERIOD,             /* half the range of x_k */
    GP_ROLE_SHAPE,              /* a pure number: 1 */
    GP_ROLE_SLOPE,              /* variance of a slope: var(y) / sum_k mean(x_k^2) */
    GP_ROLE_FREQUENCY,          /* 1 / range of x_k */
    GP_ROLE_FREQUENCY_WIDTH,    /* 1 / (2 pi l_k) */
    GP_ROLE_FREQUENCY_VARIANCE, /* its square */
    GP_ROLE_NOISE,              /* 0.1 var(y) */
    GP_ROLE_MEAN,               /* given */
    GP_ROLE_USER                /* given */
} frgi_gp_role;

typedef enum {
    GP_PRIOR_NONE,
    GP_PRIOR_GAMMA,
    GP_PRIOR_LOGNORMAL,
    GP_PRIOR_NORMAL,
    GP_PRIOR_HALF_NORMAL,
    GP_PRIOR_HALF_CAUCHY,
    GP_PRIOR_INVERSE_GAMMA,
    GP_PRIOR_UNIFORM,
    GP_PRIOR_SMOOTH_BOX,
    GP_PRIOR_HORSESHOE,
    GP_PRIOR_LOG_UNIFORM
} frgi_gp_prior_kind;

typedef struct {
    frgi_gp_prior_kind kind;
    double a, b, c;
} frgi_gp_prior;

typedef struct {
    const char *name; /* owned by the params, shared by the entries of a vector */
    int entry;        /* of a vector parameter, -1 scalar */
    frgi_gp_role role;
    ptrdiff_t column;    /* the input column a lengthscale or period belongs to, -1: all of
                            `columns` */
    uint64_t columns;    /* bit set of the columns the node sees; all ones where one is beyond the
                            64th */
    double value;        /* NaN until it is set from the data */
    double start_factor; /* of the value from the data; 0 is taken as 1 */
    double natural;      /* the value from the data; 0: the text or the caller gave it */
    double likely[2];    /* the interval that random starts are drawn from, of fits; 0, 0: none is
                            known */
    double lower, upper; /* NaN: the role's default from the data */
    frg_gp_transform transform;
    bool fixed;
    bool held;        /* fixed, as the columns it divides are constant */
    bool bounded;     /* by the text, in(lo,hi) */
    bool per_value;   /* gradient per value instead of per log */
    double std_error; /* NaN before a fit */
    int active;
    frgi_gp_prior prior;
    int tie; /* 1 + the index of the parameter it follows, which follows none; 0: itself */
} frgi_gp_param;

/** Does input column k belong to p? */
static inline bool frgi_gp_param_sees(const frgi_gp_param *p, ptrdiff_t k)
{
    return p->column >= 0 ? p->column == k
                          : p->columns == UINT64_MAX || (k < 64 && (p->columns >> k) & 1);
}

typedef struct {
    frg_context *ctx;
    frgi_gp_param *p;
    int count, capacity;
    int kernel_count; /* the first ones, of the kernel */
    int noise_first, noise_count;
    int mean_first, mean_count;
    bool jacobian;
} frgi_gp_params;

/** sum_i (v_i - from)^power, power 1 or 2, of n values `step` apart; four sums side by side, as one
 *  would wait for every addition. */
static inline double frgi_gp_sum_of(const double *v, ptrdiff_t n, ptrdiff_t step, double from,
                                    const int power)
{
    double sum[4] = {0};
    ptrdiff_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (int k = 0; k < 4; k++) {
            const double t = v[(i + k) * step] - from;
            sum[k] += power == 2 ? t * t : t;
        }
    }
    for (; i < n; i++) {
        const double t = v[i * step] - from;
        sum[0] += power == 2 ? t * t : t;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
/** sum_i a_i b_i, in order. */
static inline double frgi_gp_dot(ptrdiff_t n, const double *a, const double *b)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}
/** The mean of n values `step` apart, from the differences to the first: exact where all are
 *  equal. */
static inline double frgi_gp_mean_of(const double *v, ptrdiff_t n, ptrdiff_t step)
{
    return n > 0 ? v[0] + frgi_gp_sum_of(v, n, step, v[0], 1) / (double)n : 0;
}

void frgi_gp_params_open(frgi_gp_params *ps, frg_context *ctx);
void frgi_gp_params_close(frgi_gp_params *ps);
/** Appends one; `name` is copied, numbered (rbf, rbf2) by the caller; lower, upper NaN: from the
 *  data; the entry after one of the same name is the next of a vector. */
FRG_MUST_USE frg_status frgi_gp_params_add(frgi_gp_params *ps, const char *name, frgi_gp_param p);
/** Values, bounds and transforms that are still open, from data or preset: l = 0.5 sqrt(d) sd_k
 *  within [1e-5, 1e5] range_k, variances var(y) within [1e-6, 1e6] var(y), noise 0.1 var(y).  A
 *  value that is there stays. x: n x d row-major, y: n x q column-major: var(y) is the mean of the
 *  columns' variances, 1 where that is 0 or y NULL. Means come with their values. */
FRG_MUST_USE frg_status frgi_gp_params_start(frgi_gp_params *ps, const double *x, const double *y,
                                             ptrdiff_t n, ptrdiff_t d, ptrdiff_t q,
                                             frg_gp_preset preset, frg_dtype dtype);
/** After points were appended: lengths that were held for constant columns are free where these are
 *  not so any more. */
void frgi_gp_params_release(frgi_gp_params *ps, const double *x, ptrdiff_t n, ptrdiff_t d);
/** Where a search may put a parameter. */
typedef struct {
    double lower, upper;
} frgi_gp_range;
/** What a search may put parameter i and all that follow it to: within their bounds, without ends
 *  that do not belong to the values, and within the supports of their priors.  lower > upper:
 *  nowhere. */
frgi_gp_range frgi_gp_params_range(const frgi_gp_params *ps, int i);
static inline double frgi_gp_within(frgi_gp_range r, double v)
{
    return v < r.lower ? r.lower : v > r.upper ? r.upper : v;
}
/** E_PRIOR where a prior has no density at a fixed value, or anywhere in a free parameter's range;
 *  everywhere: at any value of theta. */
FRG_MUST_USE frg_status frgi_gp_params_check_priors(const frgi_gp_params *ps, const double *theta,
                                                    bool everywhere);
/** The interval that p's prior has a density in; false: it has no ends that lie inside the
 *  parameter's own. */
bool frgi_gp_prior_support(const frgi_gp_param *p, frgi_gp_range *out);
/** "rbf.l=gamma(3,6); noise=lognormal(-4,1)".  E_PRIOR with the position. */
FRG_MUST_USE frg_status frgi_gp_params_priors(frgi_gp_params *ps, const char *text);
/** One noise a group: the single noise parameter becomes `groups` entries.  Before the mean's are
 *  added. */
FRG_MUST_USE frg_status frgi_gp_params_noise_groups(frgi_gp_params *ps, int groups);
/** "rbf.l", or "rbf.l[2]" for an entry of a vector, which counts as messages do (frgi_nth). */
void frgi_gp_params_label(const frgi_gp_params *ps, int i, char out[96]);
enum { FRGI_GP_LISTED = 4 };
/** What one message says of several parameters: of the first FRGI_GP_LISTED each, of the others how
 *  many they are. */
typedef struct {
    int count;
    size_t used;
    char text[FRGI_GP_LISTED * 160 + 32];
} frgi_gp_list;
void frgi_gp_list_add(frgi_gp_list *l, const char *format, ...) FRG_PRINTF(2, 3);
/** The text, with "; and 3 more" behind it where it has not all of them. */
const char *frgi_gp_list_text(frgi_gp_list *l);
/** E_PARAMETER where a value is not finite, not positive where it must be, or out of bounds. */
FRG_MUST_USE frg_status frgi_gp_params_check(const frgi_gp_params *ps, const double *theta);
/** Is parameter i one that a search moves: neither fixed nor following another? */
static inline bool frgi_gp_params_moves(const frgi_gp_params *ps, int i)
{
    return !ps->p[i].fixed && ps->p[i].tie == 0;
}
/** The parameter whose value parameter i has: itself where it follows none. */
static inline int frgi_gp_params_leader(const frgi_gp_params *ps, int i)
{
    return ps->p[i].tie > 0 ? ps->p[i].tie - 1 : i;
}
/** Tied entries of theta take their leaders' values. */
void frgi_gp_params_follow(const frgi_gp_params *ps, double *theta);
/** Log density of all priors; adds its derivative (per log v or per v, as each gradient is) to
 *  `gradient`, and minus its second derivative, where positive, to `curvature` (either NULL). */
double frgi_gp_params_prior(const frgi_gp_params *ps, const double *theta, double *gradient,
                            double *curvature);

/** v = T(raw), its inverse, and dv/draw; softplus v = lower + log1p(e^raw) in its stable form. */
double frgi_gp_transform_value(const frgi_gp_param *p, double raw);
double frgi_gp_transform_raw(const frgi_gp_param *p, double value);
double frgi_gp_transform_slope(const frgi_gp_param *p, double raw);

#pragma GCC visibility pop
#endif
