/* gp_loo.c - leave-one-out predictions, their log density and its gradient, from one inverse.
 *
 * With P = K^-1, or K^-1 - E E' where a mean H beta is estimated with each point left out, c_i =
 * P_ii, a = P y:
 *
 *     mean y_i - a_i/c_i, variance 1/c_i (noise included), ell_loo = sum_i 1/2 log c_i - a_i^2/(2
 *     c_i) - 1/2 log 2 pi
 *     of the function alone: 1/c_i - nu_i,   gradient: gp_density.h with u = a/c, D = diag(1/c_i +
 *                                            u_i^2)
 *
 * A profiled scale is that of all points, as theta is: e_i and 1/c_i are in its units until they
 * leave.
 *
 * summed over the columns of y.  Values are free once the inverse is there; the gradient takes n^3
 * more flop. Rasmussen and Williams (2006), 5.4.2; Dubrule (1983) for estimated means.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_density.h"

static const double LOG_2PI = 1.8378770664093454836;

typedef struct {
    double *c; /* n */
    double *w; /* n: w / q, as the pass weighs the matrix by q */
    frgi_gp_density density;
} work;

static void lay_out(frgi_arena *a, const frg_gp *gp, work *k, bool gradient)
{
    k->c = TAKE(a, double, gp->data.n);
    k->w = TAKE(a, double, gp->data.n);
    frgi_gp_density_take(a, gp, gradient, &k->density);
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
    work k;
    frgi_arena measure = {0};
    lay_out(&measure, gp, &k, gradient != NULL);
    TRY(frgi_gp_need_memory(gp, &gp->memory.loo, measure, "leave-one-out"));
    lay_out(&gp->memory.loo, gp, &k, gradient != NULL);
    TRY(find_precisions(gp, k.c));
    if (gradient) {
        status = find_gradient(gp, &k, gp->vectors.gradient);
        if (status != FRG_OK) {
            return status;
        }
        memcpy(gradient, gp->vectors.gradient, (size_t)gp->model.params.count * sizeof *gradient);
    }
    const ptrdiff_t n = gp->data.n, q = gp->data.q;
    const double unit = sqrt(gp->state.scale);
    double density = -0.5 * (double)(n * q) * log(gp->state.scale), square = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t c = 0; c < q; c++) {
            const double a = gp->vectors.alpha[c * n + i], e = a / k.c[i];
            density += 0.5 * (log(k.c[i]) - a * e - LOG_2PI);
            square += unit * e * unit * e;
            if (mean) {
                mean[i * q + c] = gp->data.y[c * n + i] - unit * e;
            }
        }
        if (variance) {
            variance[i] = gp->state.scale / k.c[i];
        }
    }
    if (out) {
        *out = (frg_gp_loo){.log_density = density, .rmse = sqrt(square / (double)(n * q))};
    }
    return FRG_OK;
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
    frgi_gp_white(frgi_gp_need_bound(gp), &gp->own.points, 0, gp->data.n, gp->vectors.scratch);
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        variance[i] =
            fmax(variance[i] - gp->state.scale * (gp->vectors.noise[i] + gp->state.jitter +
                                                  gp->vectors.scratch[i]),
                 0);
    }
    return FRG_OK;
}
