/* gp_starts.c - starting values of a fit: what gp_choose.c makes of the values that nobody gave,
 * checked, and random ones.
 *
 * A start at which K is diagonal to rounding (lengthscales far below all distances) or of rank one
 * (far above) has a gradient of next to 0.  It is recognised by the mean absolute correlation c of
 * a sample of pairs, below 1e-6 or above 1 - 1e-6.  Then l_k = sqrt(d) median |x_ik - x_jk| over
 * the pairs, so that a typical pair has s = sum_k (x_ik - x_jk)^2 / l_k^2 near 1.
 *
 * A constant column of y gives a warning.
 *
 * Random starts are functions of (seed, number of the start, parameter): the same for any number of
 * threads and whatever starts come before.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp/gp_fit.h"

enum { SAMPLE_ROWS = 32, DRAWS = 64 };
#define START_STREAM UINT64_C(0x67702d7374617274)
static const double LEAST_CORRELATION = 1e-6;

/* ---- the given start ------------------------------------------------------------------------- */

/** Sums |correlation| over the pairs of one row with all others. */
static void add_row(const frg_gp *gp, ptrdiff_t row, const void *k, const double *self, double *sum,
                    double *pairs)
{
    const double *const wide = k;
    const float *const narrow = k;
    for (ptrdiff_t j = 0; j < gp->data.n; j++) {
        const double c = frgi_spd_dtype(&gp->own.matrix) == FRG_F64 ? wide[j] : (double)narrow[j];
        const double size = sqrt(self[row] * self[j]);
        if (j != row && size > 0) {
            *sum += fabs(c) / size;
            *pairs += 1;
        }
    }
}

/** The mean absolute correlation of a sample of pairs; NaN where there is none. */
static frg_status mean_correlation(frg_gp *gp, double *out)
{
    const ptrdiff_t n = gp->data.n, rows = n < SAMPLE_ROWS ? n : SAMPLE_ROWS;
    double *self, sum = 0, pairs = 0;
    TRY(NEW(gp->ctx, &self, 2 * n, "a sample of correlations"));
    void *const k = self + n;
    frgi_gp_forget(gp); /* nothing of evaluations before the fit */
    const frgi_gp_bound *const b = frgi_gp_need_bound(gp);
    frgi_gp_self(b, &gp->own.points, 0, n, self);
    frg_status status = FRG_OK;
    for (ptrdiff_t r = 0; r < rows && status >= 0; r++) {
        const ptrdiff_t row = r * n / rows;
        status = frgi_gp_cross(gp->ctx, b, &gp->own.points, row, 1, k, 1);
        if (status >= 0) {
            add_row(gp, row, k, self, &sum, &pairs);
        }
    }
    DROP(gp->ctx, &self);
    *out = sum / pairs;
    return status;
}

static int ascending(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double frgi_gp_median(double *v, ptrdiff_t count)
{
    frgi_sort(v, count, sizeof *v, ascending, NULL);
    return count > 0 ? v[count / 2] : 0;
}

/** Median of |x_ik - x_jk| (or, for k < 0, of the distance) over a sample of pairs; 0 where all are
 *  equal. */
static double median_distance(const frg_gp *gp, ptrdiff_t k, double *work, ptrdiff_t most)
{
    const ptrdiff_t n = gp->data.n, d = gp->data.d;
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < most; i++) { /* pairs of rows spread by multiples of two primes */
        const double *const a = gp->data.x + i * 7919 % n * d;
        const double *const b = gp->data.x + (i * 104729 + 1) % n * d;
        double s = 0;
        for (ptrdiff_t c = k < 0 ? 0 : k; c < (k < 0 ? d : k + 1); c++) {
            s += (a[c] - b[c]) * (a[c] - b[c]);
        }
        work[count] = sqrt(s);
        count += s > 0;
    }
    return frgi_gp_median(work, count);
}

/** The free lengthscales become the medians of the head of this file, with a warning. */
static frg_status rescale(frg_gp *gp, double correlation)
{
    const ptrdiff_t most = 2 * gp->data.n < 4096 ? 2 * gp->data.n : 4096;
    const int count = gp->model.params.count;
    double *work;
    int changed = 0;
    TRY(NEW(gp->ctx, &work, most + count, "a sample of distances"));
    double *const theta = work + most;
    memcpy(theta, gp->model.theta, (size_t)count * sizeof *theta);
    for (int i = 0; i < count; i++) {
        const frgi_gp_param *p = &gp->model.params.p[i];
        if (p->role != GP_ROLE_LENGTH || !frgi_gp_params_moves(&gp->model.params, i)) {
            continue;
        }
        const double l = median_distance(gp, p->column, work, most) *
                         (p->column < 0 ? 1 : sqrt((double)gp->data.d));
        if (l > 0) {
            theta[i] = frgi_gp_within(frgi_gp_params_range(&gp->model.params, i), l);
            changed++;
        }
    }
    frgi_gp_params_follow(&gp->model.params, theta);
    const frg_status status = frgi_gp_set_theta(gp, theta);
    DROP(gp->ctx, &work);
    if (changed > 0 && status >= 0) {
        frgi_warn(gp->ctx, W_RESCALED,
                  "the mean correlation at the start is %.1e: %d lengthscale%s set to the median "
                  "distance of the points",
                  correlation, changed, changed > 1 ? "s were" : " was");
    }
    return status;
}

/** A warning for each constant column of y: the mean alone fits it, and every variance goes to its
 *  lower bound. */
static void warn_constant(const frg_gp *gp)
{
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        const double *const y = gp->data.y + c * gp->data.n;
        ptrdiff_t same = 1;
        while (same < gp->data.n && y[same] == y[0]) {
            same++;
        }
        if (same == gp->data.n) {
            frgi_warn(
                gp->ctx, W_CONSTANT_Y,
                "column %lld of y is constant: it says nothing about variances and lengthscales",
                frgi_nth(gp->ctx, c));
        }
    }
}

frg_status frgi_gp_check_start(frg_gp *gp, int starts)
{
    if (gp->data.n < 2) {
        return FRG_OK;
    }
    warn_constant(gp);
    double c;
    const frg_status chosen = frgi_gp_choose_start(gp, starts);
    if (chosen != FRG_OK) {
        return chosen;
    }
    TRY(mean_correlation(gp, &c));
    const bool sound = c >= LEAST_CORRELATION && c <= 1 - LEAST_CORRELATION;
    return sound || isnan(c) ? FRG_OK : rescale(gp, c);
}

/* ---- random starts --------------------------------------------------------------------------- */

/** A sequence of numbers of one parameter of one start. */
typedef struct {
    uint64_t seed, start, next;
} draws;

static double uniform(draws *r)
{
    double u[2];
    frgi_uniforms(r->seed, START_STREAM, r->start, r->next++, u);
    return u[0];
}

static double normal(draws *r)
{
    double z[2];
    frgi_normals(r->seed, START_STREAM, r->start, r->next++, z);
    return z[0];
}

/** Gamma(shape, 1), by Marsaglia and Tsang (2000); a shape below 1 through shape + 1. */
static double gamma_variate(draws *r, double shape)
{
    const double boost = shape < 1 ? pow(uniform(r), 1 / shape) : 1;
    const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);
    double v = 1;
    for (int k = 0; k < DRAWS / 4; k++) {
        const double z = normal(r), t = 1 + c * z;
        v = t * t * t;
        if (t > 0 && log(uniform(r)) < 0.5 * z * z + d - d * v + d * log(v)) {
            return boost * d * v;
        }
    }
    return boost * d;
}

static double log_uniform(draws *r, double low, double high)
{
    return low * exp(uniform(r) * log(high / low));
}

static double halfcauchy(draws *r, double scale)
{
    return scale * tan(0.5 * 3.14159265358979323846 * uniform(r));
}

/** NaN: no prior to draw from. */
static double from_prior(const frgi_gp_prior *p, draws *r)
{
    switch (p->kind) {
    case GP_PRIOR_GAMMA:
        return gamma_variate(r, p->a) / p->b;
    case GP_PRIOR_INVERSE_GAMMA:
        return p->b / gamma_variate(r, p->a);
    case GP_PRIOR_LOGNORMAL:
        return exp(p->a + p->b * normal(r));
    case GP_PRIOR_NORMAL:
        return p->a + p->b * normal(r);
    case GP_PRIOR_HALF_NORMAL:
        return p->a * fabs(normal(r));
    case GP_PRIOR_HALF_CAUCHY:
        return halfcauchy(r, p->a);
    case GP_PRIOR_HORSESHOE:
        return fabs(normal(r)) * halfcauchy(r, p->a);
    case GP_PRIOR_UNIFORM:
    case GP_PRIOR_SMOOTH_BOX:
        return p->a + uniform(r) * (p->b - p->a);
    case GP_PRIOR_LOG_UNIFORM:
        return log_uniform(r, p->a, p->b);
    case GP_PRIOR_NONE:
        break;
    }
    return (double)NAN;
}

void frgi_gp_random_start(const frg_gp *gp, int64_t number, double *theta)
{
    for (int i = 0; i < gp->model.params.count; i++) {
        const frgi_gp_param *p = &gp->model.params.p[i];
        draws r = {frg_seed(gp->ctx), (uint64_t)number, (uint64_t)i * DRAWS};
        if (!frgi_gp_params_moves(&gp->model.params, i)) {
            continue;
        }
        double v = from_prior(&p->prior, &r);
        const bool bounded = isfinite(p->upper) && p->lower > 0;
        const frgi_gp_range range = frgi_gp_params_range(&gp->model.params, i);
        const double low = fmax(p->likely[0], range.lower), high = fmin(p->likely[1], range.upper);
        if (isnan(v) && !p->bounded && low > 0 && low < high) {
            v = log_uniform(&r, low, high);
        }
        if (isnan(v) && !p->per_value) { /* no prior, no bounds: within a factor of 100 */
            v = bounded ? log_uniform(&r, p->lower, p->upper)
                        : log_uniform(&r, 0.01 * theta[i], 100 * theta[i]);
        }
        if (isfinite(v)) { /* means without a prior stay: the first step finds them */
            theta[i] = frgi_gp_within(range, v);
        }
    }
    frgi_gp_params_follow(&gp->model.params, theta);
}
