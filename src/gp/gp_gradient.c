/* gp_gradient.c - the gradient at one theta: inverse in place, one pass over pairs, and what needs
 * no pass.
 *
 *     W = a a' - q K^-1 (+ Q under REML),   d ell/dt = 1/2 sum_ij W_ij dK_ij/dt kernel: the pass
 *     d ell/d nu_i = W_ii / 2,   d ell/d log s_g = s_g/2 sum_{i in g} W_ii noise: the diagonal
 *     d ell/db = (dm/db)' a,   d ell/dy = -a       (by sqrt(f) of a profiled scale)   mean, data
 *
 * 2 n^3/3 flop for the inverse, O(d n^2) for the pass.  The pass also gives sum_ij (K^-1)_ij C_ij,
 * which with the noise must be n: the trace residual.
 *
 * Mixed: the factor is rounded to f32 and inverted there; the pass, and a, are in f64 (a pass in
 * f32 rounds equal distances equally: on a grid it cost 8e-4 of the gradient where the inverse
 * costs 5e-6), and the scale comes from the diagonal.  What is left is E, the error of the inverse:
 * E is about K^-1 D K^-1 with |D_ij| of eps K_max, so that 1/2 tr(E dK) is at most eps K_max tr
 * K^-1 where it adds up, and 1/sqrt(n) of that where it does not: of 363 processes (eight kernels,
 * n to 900, noise 1e-5 to 0.1, grids among them) the worst had 1.9 / sqrt(n) of it.  MIXED_ROUNDING
 * / sqrt(n) of it must be within 1e-5 of the largest component (in a fit, of that and n), (max L_ii
 * / min L_ii)^2 <= 1e10 and the trace residual at most 1e-3; elsewhere the inverse is done in f64
 * and the result marked.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gp/gp_process.h"

static const double MIXED_SPREAD = 1e10, TRACE_MOST = 1e-3;
static const double MIXED_ROUNDING = 4, MIXED_ACCURACY = 1e-5;

/* ---- matrices -------------------------------------------------------------------------------- */

/** The factor once more, at the jitter of the value.  All that is kept follows from this factor and
 *  from nothing else, so that a process read from a file has it to the bit: after an update it was
 *  another in its last bits. */
static frg_status refactor(frg_gp *gp)
{
    const double seconds = gp->result.value.build_seconds;
    gp->state.matrix = MATRIX_NONE;
    frg_status status = frgi_gp_build_jittered(gp);
    if (status == FRG_OK) {
        status = frgi_spd_factor(gp->ctx, &gp->own.matrix, &gp->state.logdet, &gp->state.pivots);
    }
    if (status == FRG_OK) {
        status = frgi_gp_solve_anew(gp);
    }
    gp->result.value.build_seconds = seconds;
    gp->state.matrix = status == FRG_OK ? MATRIX_FACTOR : MATRIX_NONE;
    return status;
}

frg_status frgi_gp_need_factor(frg_gp *gp)
{
    return gp->state.matrix == MATRIX_INVERSE ? refactor(gp) : frgi_gp_value(gp);
}

frg_status frgi_gp_need_inverse(frg_gp *gp)
{
    gp->mode.with_inverse = true;
    const frg_status valued = frgi_gp_value(gp);
    gp->mode.with_inverse = false;
    if (valued != FRG_OK || gp->state.matrix == MATRIX_INVERSE) {
        return valued;
    }
    const double began = frgi_seconds();
    const bool carries = frgi_gp_carries(gp);
    if (carries) {
        memcpy(gp->vectors.alpha, gp->vectors.forward, (size_t)gp->data.n * sizeof(double));
    }
    const frg_status status =
        frgi_spd_inverse(gp->ctx, &gp->own.matrix, carries ? gp->vectors.alpha : NULL);
    gp->result.value.inverse_seconds += frgi_seconds() - began;
    gp->state.matrix = status == FRG_OK ? MATRIX_INVERSE : MATRIX_NONE;
    return status;
}

/** mixed: the inverse in f32 from the factor in f64, which stays. */
static frg_status need_low_inverse(frg_gp *gp)
{
    if (gp->state.low_inverse) {
        return FRG_OK;
    }
    const double began = frgi_seconds();
    frgi_gp_side *const low = &gp->other;
    frgi_spd_convert(gp->ctx, &gp->own.matrix, &low->matrix);
    const frg_status status = frgi_spd_inverse(gp->ctx, &low->matrix, NULL);
    gp->state.low_inverse = status == FRG_OK;
    gp->result.value.inverse_seconds += frgi_seconds() - began;
    return status;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/** W_ii of point i, the diagonal of the inverse being in scratch. */
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

/** 1/2 sum_ij W_ij C_ij without a pass: sum_ij W_ij K_ij = r'a - q (n - m), m under REML, less the
 *  diagonal N. */
static double scale_gradient(const frg_gp *gp)
{
    const ptrdiff_t lost = gp->opts.reml ? gp->profile.count : 0;
    double sum = gp->state.quad - (double)(gp->data.q * (gp->data.n - lost));
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        sum -= (gp->vectors.noise[i] + gp->state.jitter) * weight_of(gp, i);
    }
    return 0.5 * sum;
}

/** Kernel and trace from an inverse; scratch is left with its diagonal. */
static frg_status run_pass(frg_gp *gp, bool low, double *gradient, double *dx)
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

static void noise_gradient(const frg_gp *gp, double *gradient)
{
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

/** mixed: the pass in f32.  *enough: its guards held. */
static frg_status pass_low(frg_gp *gp, double *gradient, double *dx, bool *enough)
{
    const double spread = gp->state.pivots.largest / gp->state.pivots.smallest;
    frg_status status = FRG_OK;
    *enough = spread * spread <= MIXED_SPREAD && !gp->result.value.promoted;
    if (*enough && !gp->state.low_inverse) {
        status = frgi_gp_need_factor(gp); /* leave-one-out may have inverted it */
        status = status == FRG_OK ? need_low_inverse(gp) : status;
    }
    if (*enough && status == FRG_OK) {
        status = run_pass(gp, true, gradient, dx);
        *enough = gp->result.value.trace_residual <= TRACE_MOST && is_accurate(gp, gradient);
    }
    return status;
}

/** Inverse and pass in the arithmetic that the mode asks for; f64 where mixed is not enough. */
static frg_status pass_by_mode(frg_gp *gp, double *gradient, double *dx)
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
    return status == FRG_OK ? run_pass(gp, false, gradient, dx) : status;
}

frg_status frgi_gp_gradient(frg_gp *gp, double *gradient, double *dx, double *dy)
{
    frg_status status =
        gp->opts.precision == FRG_GP_MIXED ? frgi_gp_value(gp) : frgi_gp_need_inverse(gp);
    if (status == FRG_OK) {
        status = pass_by_mode(gp, gradient, dx);
    }
    if (status == FRG_OK && frgi_spd_is_single(&gp->own.matrix) &&
        !(gp->result.value.trace_residual <= TRACE_MOST)) {
        status = frgi_gp_promote(gp);
        status = status == FRG_OK ? pass_by_mode(gp, gradient, dx) : status;
    }
    if (status != FRG_OK) {
        return status;
    }
    const frgi_gp_params *const ps = &gp->model.params;
    for (int i = ps->kernel_count; i < ps->count; i++) {
        gradient[i] = 0;
    }
    noise_gradient(gp, gradient);
    frgi_gp_mean_gradient(gp, gp->vectors.alpha, gradient, dx);
    frgi_gp_params_prior(ps, gp->model.theta, gradient, NULL);
    for (int i = 0; i < ps->count; i++) {
        gradient[i] = ps->p[i].fixed ? 0 : gradient[i];
    }
    for (ptrdiff_t i = 0; dy && i < gp->data.n * gp->data.q; i++) {
        dy[i] = -gp->vectors.alpha[i] / sqrt(gp->state.scale);
    }
    return FRG_OK;
}
