/* gp_loo.c - leave-one-out predictions, their log density and its gradient, from one inverse.
 *
 * With P = K^-1, or K^-1 - E E' where a mean H beta is estimated with each point left out, c_i =
 * P_ii, a = P y:
 *
 *     mean      y_i - a_i/c_i
 *     variance  1/c_i, noise included; of the function alone 1/c_i - nu_i
 *     ell_loo   sum_i 1/2 log c_i - a_i^2/(2 c_i) - 1/2 log 2 pi
 *     gradient  gp_loo.h with u = a/c, D = diag(1/c_i + u_i^2)
 *
 * summed over the columns of y.  Values are free once the inverse is there; the gradient takes n^3
 * more flop.  A profiled scale is estimated from all points, as theta is; u and 1/c are computed in
 * units of sqrt(f) and f and multiplied last.
 *
 * Rasmussen and Williams (2006), 5.4.2; Dubrule (1983) for estimated means.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_loo.h"

static const double LOG_2PI = 1.8378770664093454836;

struct frgi_gp_left_out {
    double *c; /* n */
    double *w; /* n: D / (2 q), see frgi_gp_density.second */
    frgi_gp_density density;
    double *mean, *variance, *gradient; /* the caller's, or NULL */
    frg_gp_loo sums;
};
typedef frgi_gp_left_out work;

static void lay_out(frgi_arena *a, const frg_gp *gp, work *k)
{
    k->c = TAKE(a, double, gp->data.n);
    k->w = TAKE(a, double, gp->data.n);
    frgi_gp_density_take(a, gp, k->gradient != NULL, &k->density);
}

/** The matrix K^-1 becomes P = K^-1 - E E'. */
static void remove_mean(frg_gp *gp)
{
    const ptrdiff_t n = gp->data.n, m = gp->profile.count;
    const double *const e = gp->profile.correction;
    for (ptrdiff_t j = 0; j < n; j++) {
        for (ptrdiff_t i = j; i < n; i++) {
            double sum = 0;
            for (ptrdiff_t k = 0; k < m; k++) {
                sum += e[k * n + i] * e[k * n + j];
            }
            frgi_spd_add(&gp->own.matrix, i, j, -sum);
        }
    }
}

/** c = diag P from the inverse at hand. */
static frg_status find_precisions(const frg_gp *gp, double *c)
{
    const ptrdiff_t n = gp->data.n;
    frgi_spd_diagonal(&gp->own.matrix, c);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double whole = c[i];
        for (ptrdiff_t k = 0; k < gp->profile.count; k++) {
            c[i] -= gp->profile.correction[k * n + i] * gp->profile.correction[k * n + i];
        }
        REQUIRE(gp->ctx, c[i] > 1e-12 * whole,
                "row %lld alone carries a coefficient of the mean: without it nothing is left to "
                "estimate that from",
                frgi_nth(gp->ctx, i));
    }
    return FRG_OK;
}

/** u = a/c and P D P / (2 q), then the gradient of gp_loo.h. */
static frg_status find_gradient(frg_gp *gp, work *k, double *gradient)
{
    const ptrdiff_t n = gp->data.n, q = gp->data.q;
    frgi_gp_density *const to = &k->density;
    to->scale_slope = -0.5 * (double)(n * q);
    for (ptrdiff_t i = 0; i < n; i++) {
        k->w[i] = 0;
        for (ptrdiff_t c = 0; c < q; c++) {
            const double u = gp->vectors.alpha[c * n + i] / k->c[i];
            to->u[c * n + i] = u;
            to->scale_slope += 0.5 * u * gp->vectors.alpha[c * n + i];
            k->w[i] += 0.5 * (1 / k->c[i] + u * u) / (double)q;
        }
    }
    frg_status status = frgi_gp_density_apply(gp, to);
    if (status == FRG_OK) {
        if (gp->profile.count > 0) {
            remove_mean(gp);
        }
        frgi_gp_overwrite(gp, &to->second);
        status = frgi_spd_congruence(gp->ctx, &gp->own.matrix, k->w, &to->second);
    }
    if (status == FRG_OK) {
        status = frgi_gp_density_pass(gp, to, gradient);
    }
    if (gp->profile.count > 0) {
        frgi_gp_forget(gp); /* the matrix is P */
    }
    return status;
}

static frg_status open_work(frg_gp *gp, work *k)
{
    frgi_arena measure = {0};
    lay_out(&measure, gp, k);
    TRY(frgi_gp_need_memory(gp, &gp->memory.loo, measure, "leave-one-out"));
    lay_out(&gp->memory.loo, gp, k);
    return FRG_OK;
}

/** Means, variances and the log density from c and a. */
static void predict(const frg_gp *gp, work *k)
{
    const ptrdiff_t n = gp->data.n, q = gp->data.q;
    const double unit = sqrt(gp->state.scale);
    double density = -0.5 * (double)(n * q) * log(gp->state.scale), square = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t c = 0; c < q; c++) {
            const double a = gp->vectors.alpha[c * n + i], e = a / k->c[i];
            density += 0.5 * (log(k->c[i]) - a * e - LOG_2PI);
            square += unit * e * unit * e;
            if (k->mean) {
                k->mean[i * q + c] = gp->data.y[c * n + i] - unit * e;
            }
        }
        if (k->variance) {
            k->variance[i] = gp->state.scale / k->c[i];
        }
    }
    k->sums = (frg_gp_loo){.log_density = density, .rmse = sqrt(square / (double)(n * q))};
}

frg_status frgi_gp_leave_out(frg_gp *gp, work *k)
{
    TRY(find_precisions(gp, k->c));
    if (k->gradient) {
        const frg_status status = find_gradient(gp, k, gp->result.gradient);
        if (status != FRG_OK) {
            return status;
        }
        memcpy(k->gradient, gp->result.gradient,
               (size_t)gp->model.params.count * sizeof *k->gradient);
    }
    predict(gp, k);
    return FRG_OK;
}

frg_status frg_gp_eval_loo(frg_gp *gp, double *mean, double *variance, double *gradient,
                           frg_gp_loo *out)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(gp->ctx);
    frg_status status = frgi_gp_need_inverse(gp);
    if (status != FRG_OK) {
        return status;
    }
    work k = {.mean = mean, .variance = variance, .gradient = gradient};
    TRY(open_work(gp, &k));
    status = gp->steps->gradient.leave_out(gp, &k);
    if (status == FRG_OK && out) {
        *out = k.sums;
    }
    return status;
}

frg_status frg_gp_eval_loo_latent(frg_gp *gp, double *variance)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    REQUIRE(gp->ctx, variance, "variance is NULL");
    const frg_status status = frg_gp_eval_loo(gp, NULL, variance, NULL, NULL);
    if (status != FRG_OK) {
        return status;
    }
    work k = {.variance = variance};
    TRY(open_work(gp, &k));
    frgi_gp_white(frgi_gp_need_bound(gp), &gp->own.points, 0, gp->data.n, k.w);
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        variance[i] = fmax(variance[i] - gp->state.scale *
                                             (frgi_gp_noise_at(gp, i) + gp->state.jitter + k.w[i]),
                           0);
    }
    return FRG_OK;
}

/* ---- the gradient of a density of rows left out ---------------------------------------------- */

void frgi_gp_density_take(frgi_arena *a, const frg_gp *gp, bool gradient, frgi_gp_density *k)
{
    const ptrdiff_t count = gradient ? gp->data.n * gp->data.q : 0;
    const frgi_spd *const own = &gp->own.matrix;
    const size_t bytes = frgi_spd_bytes(frgi_spd_order(own), frgi_spd_dtype(own));
    const bool single = gp->opts.precision == FRG_GP_F32;
    k->u = TAKE(a, double, count);
    k->z = TAKE(a, double, count);
    k->z_low = single ? TAKE(a, float, count) : NULL;
    k->a_low = single ? TAKE(a, float, count) : NULL;
    k->second = frgi_spd_like(own, gp->own.kept || !gradient ? gp->own.kept : frgi_take(a, bytes));
}

/** z <- z - E E'u. */
static void remove_mean_from(const frg_gp *gp, const frgi_gp_density *k)
{
    const ptrdiff_t n = gp->data.n;
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        for (ptrdiff_t m = 0; m < gp->profile.count; m++) {
            const double *const e = gp->profile.correction + m * n, *const u = k->u + c * n;
            double sum = 0;
            for (ptrdiff_t i = 0; i < n; i++) {
                sum += e[i] * u[i];
            }
            for (ptrdiff_t i = 0; i < n; i++) {
                k->z[c * n + i] -= sum * e[i];
            }
        }
    }
}

frg_status frgi_gp_density_apply(frg_gp *gp, const frgi_gp_density *k)
{
    const ptrdiff_t n = gp->data.n, q = gp->data.q;
    const bool single = frgi_spd_is_single(&gp->own.matrix);
    if (single) {
        frgi_gp_narrow(n * q, k->u, k->a_low);
    }
    const frg_status status =
        frgi_spd_times(gp->ctx, &gp->own.matrix, q, single ? (void *)k->a_low : k->u, n,
                       single ? (void *)k->z_low : k->z, n);
    if (single) {
        frgi_gp_widen(n * q, k->z_low, k->z);
    }
    remove_mean_from(gp, k);
    return status;
}

/** z <- z - e/N a, as a profiled scale depends on theta. */
static void follow_scale(const frg_gp *gp, const frgi_gp_density *k)
{
    const double share = gp->opts.profile_scale ? -k->scale_slope / frgi_gp_scale_count(gp) : 0;
    for (ptrdiff_t i = 0; share != 0 && i < gp->data.n * gp->data.q; i++) {
        k->z[i] += share * gp->vectors.alpha[i];
    }
}

frg_status frgi_gp_density_pass(frg_gp *gp, const frgi_gp_density *k, double *gradient)
{
    const frgi_gp_params *const ps = &gp->model.params;
    const ptrdiff_t n = gp->data.n, q = gp->data.q;
    const bool single = frgi_spd_is_single(&gp->own.matrix);
    follow_scale(gp, k);
    if (single) {
        frgi_gp_narrow(n * q, k->z, k->z_low);
        frgi_gp_narrow(n * q, gp->vectors.alpha, k->a_low);
    }
    const frgi_gp_pass pass = {
        .inverse = &k->second,
        .alpha = single ? (const void *)k->z_low : k->z,
        .beta = single ? (const void *)k->a_low : gp->vectors.alpha,
        .q = q,
        .gradient = gradient,
    };
    const frg_status status = frgi_gp_run_pass(gp->ctx, gp->own.bound, &pass);
    if (status != FRG_OK) {
        return status;
    }
    for (int i = 0; i < ps->count; i++) {
        gradient[i] = i < ps->kernel_count ? 2 * gradient[i] : 0; /* the pass gives half the sum */
    }
    double *const b = gp->vectors.scratch;
    frgi_spd_diagonal(&k->second, b);
    for (ptrdiff_t i = 0; ps->noise_count > 0 && i < n; i++) {
        double v = -(double)q * b[i];
        for (ptrdiff_t c = 0; c < q; c++) {
            v += k->z[c * n + i] * gp->vectors.alpha[c * n + i];
        }
        const int at = ps->noise_first + (gp->data.groups ? gp->data.groups[i] : 0);
        gradient[at] += v * gp->model.theta[at];
    }
    follow_scale(gp, k); /* a second time for d/db: f is quadratic in r */
    frgi_gp_mean_gradient(gp, k->z, gradient, NULL);
    for (int i = 0; i < ps->count; i++) {
        gradient[i] = ps->p[i].fixed ? 0 : gradient[i];
    }
    return FRG_OK;
}
