/* gp_gradient.c - steps of the gradient at one theta: one pass over pairs with the inverse, and
 * what needs no pass (gp_value.c calls them).
 *
 *     W = a a' - q K^-1 (+ q E E' under REML, E of gp_mean.c)
 *     d ell/dt = 1/2 sum_ij W_ij dK_ij/dt                                      kernel: the pass
 *     d ell/d nu_i = W_ii / 2,   d ell/d log s_g = s_g/2 sum_{i in g} W_ii     noise: the diagonal
 *     d ell/db = (dm/db)' a,   d ell/dy = -a   (each / sqrt(f) of a profiled scale)   mean, data
 *
 * 2 n^3/3 flop for the inverse, O(d n^2) for the pass.  The pass also gives sum_ij (K^-1)_ij C_ij,
 * which with the noise must be n: the trace residual.
 *
 * Mixed: the factor is rounded to f32 and inverted there; the pass, and a, are in f64 (a pass in
 * f32 rounds equal distances equally: on a grid it cost 8e-4 of the gradient where the inverse
 * costs 5e-6), and the gradient of a variance that multiplies all of C comes from the diagonal of
 * the inverse (scale_gradient).  What is left is the error of the inverse, about K^-1 D K^-1 with
 * |D_ij| of eps K_max: its share of the gradient, 1/2 tr(K^-1 D K^-1 dK), is at most eps K_max
 * tr K^-1 where it adds up, and 1/sqrt(n) of that where it does not: of 363 processes (eight
 * kernels, n to 900, noise 1e-5 to 0.1, grids among them) the worst had 1.9 / sqrt(n) of it.
 * MIXED_ROUNDING / sqrt(n) of it must be within 1e-5 of the largest component (in a fit, of that
 * and n), (max L_ii / min L_ii)^2 <= 1e10 and the trace residual at most 1e-3; elsewhere the
 * inverse is done in f64 and the result marked (promoted).
 */
#include <float.h>
#include <math.h>

#include "gp/gp_create.h"
#include "gp/gp_process.h"

static const double MIXED_SPREAD = 1e10, TRACE_MOST = 1e-3;
static const double MIXED_ROUNDING = 4, MIXED_ACCURACY = 1e-5;

/* ---- the pass -------------------------------------------------------------------------------- */

/** W_ii = sum_c a_ic^2 - q (K^-1)_ii + q sum_k E_ik^2 (REML); the (K^-1)_ii are in scratch. */
static double weight_of(const frg_gp *gp, ptrdiff_t i)
{
    const ptrdiff_t n = gp->data.n;
    double w = -(double)gp->data.q * gp->vectors.scratch[i];
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        w += gp->vectors.alpha[c * n + i] * gp->vectors.alpha[c * n + i];
    }
    for (ptrdiff_t c = 0; gp->opts.reml && c < gp->profile.count; c++) {
        w += gp->profile.extra[c * n + i] * gp->profile.extra[c * n + i];
    }
    return w;
}

/** 1/2 sum_ij W_ij C_ij without a pass: sum_ij W_ij K_ij = r'a - q (n - m), m = 0 but under REML,
 *  less sum_i W_ii (nu_i + jitter). */
static double scale_gradient(const frg_gp *gp)
{
    const ptrdiff_t lost = gp->opts.reml ? gp->profile.count : 0;
    double sum = gp->state.quad - (double)(gp->data.q * (gp->data.n - lost));
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        sum -= (gp->vectors.noise[i] + gp->state.jitter) * weight_of(gp, i);
    }
    return 0.5 * sum;
}

/** The kernel's entries of the gradient and the trace residual from an inverse, whose diagonal is
 *  then in scratch. */
frg_status frgi_gp_pass_over_pairs(frg_gp *gp, bool low, double *gradient, double *dx)
{
    const double began = frgi_seconds();
    const frgi_spd *const inverse = low ? &gp->other.matrix : &gp->own.matrix;
    const bool single = frgi_spd_is_single(&gp->own.matrix);
    frgi_spd_diagonal(inverse, gp->vectors.scratch);
    const double scale = single ? 0 : scale_gradient(gp); /* in f32 the difference cancels */
    double trace;
    const frgi_gp_pass pass = {
        .inverse = inverse,
        .alpha = single ? (const void *)gp->vectors.solved_low : gp->vectors.alpha,
        .q = gp->data.q,
        .kept = gp->state.kept_ready && !low ? gp->own.kept : NULL,
        .extra = gp->opts.reml ? gp->profile.extra : NULL,
        .extra_q = gp->opts.reml ? gp->profile.count : 0,
        .scale = single ? NULL : &scale,
        .gradient = gradient,
        .dx = dx,
        .trace = &trace,
    };
    const frg_status status = frgi_gp_run_pass(gp->ctx, frgi_gp_need_bound(gp), &pass);
    if (status != FRG_OK) {
        return status;
    }
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        trace += gp->vectors.scratch[i] * (gp->vectors.noise[i] + gp->state.jitter);
    }
    gp->result.value.trace_residual = fabs(trace - (double)gp->data.n) / (double)gp->data.n;
    gp->result.value.gradient_seconds += frgi_seconds() - began;
    return FRG_OK;
}

/** The noise's entries; 0 for all behind the kernel's that are not noise. */
static void noise_gradient(const frg_gp *gp, double *gradient)
{
    for (int i = gp->model.params.kernel_count; i < gp->model.params.count; i++) {
        gradient[i] = 0;
    }
    const int count = gp->model.params.noise_count;
    const double *const s = gp->model.theta + gp->model.params.noise_first;
    double *const out = gradient + gp->model.params.noise_first;
    for (ptrdiff_t i = 0; count > 0 && i < gp->data.n; i++) {
        out[gp->data.groups ? gp->data.groups[i] : 0] += weight_of(gp, i);
    }
    for (int g = 0; g < count; g++) {
        out[g] *= 0.5 * s[g];
    }
}

void frgi_gp_gradient_of_points(frg_gp *gp, double *gradient, double *dx)
{
    noise_gradient(gp, gradient);
    frgi_gp_mean_gradient(gp, gp->vectors.alpha, gradient, dx);
}

void frgi_gp_gradient_of_values(const frg_gp *gp, const frg_array *to)
{
    const double *a = gp->vectors.alpha;
    const double unit = sqrt(gp->state.scale);
    for (ptrdiff_t c = 0; c < gp->data.q; c++, a += gp->data.n) {
        for (ptrdiff_t i = 0; i < gp->data.n; i++) {
            frgi_gp_set_element(to, i, c, -a[i] / unit);
        }
    }
}

/** Is f32 enough for a gradient of this size? */
static bool is_accurate(const frg_gp *gp, const double *gradient)
{
    double largest = 0;
    for (int i = 0; i < gp->model.params.kernel_count; i++) {
        largest = fmax(largest, fabs(gradient[i]));
    }
    const double n = (double)gp->data.n, share = fmin(1, MIXED_ROUNDING / sqrt(n));
    return share * (double)FLT_EPSILON * gp->state.rounding <=
           MIXED_ACCURACY * (largest + (gp->mode.relaxed ? n : 0));
}

/** mixed: the pass with the inverse in f32.  *enough: the conditions of the head of this file
 *  hold. */
static frg_status pass_low(frg_gp *gp, double *gradient, double *dx, bool *enough)
{
    const double spread = gp->state.pivots.largest / gp->state.pivots.smallest;
    frg_status status = FRG_OK;
    *enough = spread * spread <= MIXED_SPREAD && !gp->result.value.promoted;
    if (*enough && !gp->state.low_inverse) {
        status = frgi_gp_need_factor(gp); /* leave-one-out may have inverted it */
        status = status == FRG_OK ? gp->steps->gradient.low_inverse(gp) : status;
    }
    if (*enough && status == FRG_OK) {
        status = gp->steps->gradient.pass(gp, true, gradient, dx);
        *enough = gp->result.value.trace_residual <= TRACE_MOST && is_accurate(gp, gradient);
    }
    return status;
}

frg_status frgi_gp_gradient_pass(frg_gp *gp, double *gradient, double *dx)
{
    if (gp->opts.precision == FRG_GP_MIXED) {
        bool enough;
        const frg_status status = pass_low(gp, gradient, dx, &enough);
        if (status != FRG_OK || enough) {
            return status;
        }
        if (!gp->result.value.promoted && !gp->mode.monotone) {
            frgi_warn(gp->ctx, W_PRECISION_GP,
                      "float32 is not enough here: the inverse was "
                      "computed in float64");
        }
        gp->result.value.promoted = 1;
    }
    const frg_status status = frgi_gp_need_inverse(gp);
    return status == FRG_OK ? gp->steps->gradient.pass(gp, false, gradient, dx) : status;
}

bool frgi_gp_gradient_is_lost(const frg_gp *gp)
{
    return frgi_spd_is_single(&gp->own.matrix) && !(gp->result.value.trace_residual <= TRACE_MOST);
}
