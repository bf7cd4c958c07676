/* gp_loo.c - leave-one-out predictions, their log density and its gradient, from one inverse.
 *
 * With P = K^-1, or K^-1 - E E' where a mean H beta is estimated with each point left out, c_i = P_ii, a = P y:
 *
 *     mean y_i - a_i/c_i,  variance 1/c_i (noise included),  ell_loo = sum_i 1/2 log c_i - a_i^2/(2 c_i) - 1/2 log 2 pi
 *     u = a/c,  z = P u,  w_i = 1/2 (1/c_i + a_i^2/c_i^2),  V = 1/2 (z a' + a z') - P diag(w) P
 *     d ell_loo/dt = sum_ij V_ij dK_ij/dt,   d ell_loo/db = (dm/db)' z
 *
 * summed over the columns of y.  Values are free once the inverse is there; the gradient takes n^3 more flop and
 * a second triangle: FULL has one in `kept`, PACKED takes one at the first call.
 * Rasmussen and Williams (2006), 5.4.2; Dubrule (1983) for estimated means.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_room.h"

static const double LOG_2PI = 1.8378770664093454836;

typedef struct {
    ptrdiff_t n, q;
    double *c;    /* n */
    double *w;    /* n: w / q, as the pass weighs the matrix by q */
    double *u;    /* n x q: a / c */
    double *z;    /* n x q: P u */
    float *z_low; /* n x q, f32 */
    float *a_low; /* n x q, f32 */
    void *second; /* a triangle, gradient alone */
} work;

static void lay_out(frgi_arena *a, const frg_gp *gp, work *k, bool gradient)
{
    const size_t triangle =
        frgi_mul((size_t)frgi_spd_elements(&gp->shape), frg_sizeof(gp->shape.dtype));
    const bool single = gp->opts.precision == FRG_GP_F32;
    k->n = gp->n;
    k->q = gp->q;
    k->c = TAKE(a, double, k->n);
    k->w = TAKE(a, double, k->n);
    k->u = TAKE(a, double, k->n * k->q);
    k->z = TAKE(a, double, k->n * k->q);
    k->z_low = single ? TAKE(a, float, k->n * k->q) : NULL;
    k->a_low = single ? TAKE(a, float, k->n * k->q) : NULL;
    k->second = gp->kept || !gradient ? gp->kept : frgi_take(a, triangle);
}

/** The matrix K^-1 becomes P = K^-1 - E E'. */
static void remove_mean(frg_gp *gp)
{
    const frgi_spd_shape *const s = &gp->shape;
    const ptrdiff_t n = gp->n, m = gp->profile.count;
    const double *const e = gp->profile.half;
    for (ptrdiff_t j = 0; j < n; j++) {
        for (ptrdiff_t i = j; i < n; i++) {
            double sum = 0;
            for (ptrdiff_t k = 0; k < m; k++) {
                sum += e[k * n + i] * e[k * n + j];
            }
            const ptrdiff_t at =
                frgi_spd_tile(s, i / s->tile, j / s->tile) + i % s->tile + j % s->tile * s->ld;
            if (s->dtype == FRG_F64) {
                ((double *)gp->matrix)[at] -= sum;
            } else {
                ((float *)gp->matrix)[at] = (float)((double)((float *)gp->matrix)[at] - sum);
            }
        }
    }
}

/** c = diag P from the inverse at hand. */
static frg_status find_precisions(const frg_gp *gp, double *c)
{
    const ptrdiff_t n = gp->n;
    frgi_spd_diagonal(&gp->shape, gp->matrix, c);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double whole = c[i];
        for (ptrdiff_t k = 0; k < gp->profile.count; k++) {
            c[i] -= gp->profile.half[k * n + i] * gp->profile.half[k * n + i];
        }
        REQUIRE(gp->ctx, c[i] > 1e-12 * whole,
                "row %lld alone carries a coefficient of the mean: without it nothing is left to "
                "estimate that from",
                (long long)i + 1);
    }
    return FRG_OK;
}

/** z <- P u. */
static frg_status apply(frg_gp *gp, const work *k)
{
    const ptrdiff_t n = k->n, q = k->q;
    if (gp->shape.dtype == FRG_F64) {
        return frgi_spd_times(gp->ctx, &gp->shape, gp->matrix, q, k->u, n, k->z, n, gp->work);
    }
    frgi_gp_narrow(n * q, k->u, k->a_low);
    const frg_status status =
        frgi_spd_times(gp->ctx, &gp->shape, gp->matrix, q, k->a_low, n, k->z_low, n, gp->work);
    frgi_gp_widen(n * q, k->z_low, k->z);
    frgi_gp_narrow(n * q, gp->alpha, k->a_low);
    return status;
}

/** V into the pass: 1/2 (z a' + a z') - B with B = P diag(w) P, and what its diagonal gives. */
static frg_status pass_gradient(frg_gp *gp, const work *k, double *gradient)
{
    const frgi_gp_params *const ps = &gp->params;
    const bool single = gp->shape.dtype == FRG_F32;
    const frgi_gp_pass pass = {
        .inverse = k->second,
        .alpha = single ? (const void *)k->z_low : k->z,
        .beta = single ? (const void *)k->a_low : gp->alpha,
        .q = k->q,
        .gradient = gradient,
    };
    const frg_status status = frgi_gp_run_pass(gp->ctx, gp->bound, &gp->shape, &pass);
    if (status != FRG_OK) {
        return status;
    }
    for (int i = 0; i < ps->count; i++) {
        gradient[i] = i < ps->kernel_count ? 2 * gradient[i] : 0; /* the pass gives half the sum */
    }
    double *const b = gp->scratch;
    frgi_spd_diagonal(&gp->shape, k->second, b);
    for (ptrdiff_t i = 0; ps->noise_count > 0 && i < k->n; i++) {
        double v = -(double)k->q * b[i];
        for (ptrdiff_t c = 0; c < k->q; c++) {
            v += k->z[c * k->n + i] * gp->alpha[c * k->n + i];
        }
        const int at = ps->noise_first + (gp->groups ? gp->groups[i] : 0);
        gradient[at] += v * gp->theta[at];
    }
    frgi_gp_mean_gradient(gp, k->z, gradient, NULL);
    for (int i = 0; i < ps->count; i++) {
        gradient[i] = ps->p[i].fixed ? 0 : gradient[i];
    }
    return FRG_OK;
}

static frg_status find_gradient(frg_gp *gp, const work *k, double *gradient)
{
    const ptrdiff_t n = k->n, q = k->q;
    for (ptrdiff_t i = 0; i < n; i++) {
        k->w[i] = 0;
        for (ptrdiff_t c = 0; c < q; c++) {
            const double u = gp->alpha[c * n + i] / k->c[i];
            k->u[c * n + i] = u;
            k->w[i] += 0.5 * (1 / k->c[i] + u * u) / (double)q;
        }
    }
    if (gp->profile.count > 0) {
        remove_mean(gp);
    }
    frg_status status = apply(gp, k);
    if (status == FRG_OK) {
        gp->kept_ready = gp->kept_ready && k->second != gp->kept;
        status = frgi_spd_congruence(gp->ctx, &gp->shape, gp->matrix, k->w, k->second, gp->work);
    }
    if (status == FRG_OK) {
        status = pass_gradient(gp, k, gradient);
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
    TRY(frgi_gp_need_memory(gp, &gp->loo_memory, measure, "leave-one-out"));
    lay_out(&gp->loo_memory, gp, &k, gradient != NULL);
    TRY(find_precisions(gp, k.c));
    if (gradient) {
        status = find_gradient(gp, &k, gp->gradient);
        if (status != FRG_OK) {
            return status;
        }
        memcpy(gradient, gp->gradient, (size_t)gp->params.count * sizeof *gradient);
    }
    double density = 0, square = 0;
    for (ptrdiff_t i = 0; i < k.n; i++) {
        for (ptrdiff_t c = 0; c < k.q; c++) {
            const double a = gp->alpha[c * k.n + i], e = a / k.c[i];
            density += 0.5 * (log(k.c[i]) - a * e - LOG_2PI);
            square += e * e;
            if (mean) {
                mean[i * k.q + c] = gp->y[c * k.n + i] - e;
            }
        }
        if (variance) {
            variance[i] = 1 / k.c[i];
        }
    }
    if (out) {
        *out = (frg_gp_loo){.log_density = density, .rmse = sqrt(square / (double)(k.n * k.q))};
    }
    return FRG_OK;
}
