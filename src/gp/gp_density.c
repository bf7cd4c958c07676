/* gp_density.c - see gp_density.h. */
#include "gp/gp_density.h"

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
static void remove_mean(const frg_gp *gp, const frgi_gp_density *k)
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
    remove_mean(gp, k);
    return status;
}

/** What a profiled scale that theta moves adds to z. */
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
    follow_scale(gp, k); /* f has r twice */
    frgi_gp_mean_gradient(gp, k->z, gradient, NULL);
    for (int i = 0; i < ps->count; i++) {
        gradient[i] = ps->p[i].fixed ? 0 : gradient[i];
    }
    return FRG_OK;
}
