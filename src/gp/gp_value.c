/* gp_value.c - the value and the gradient at one theta: the algorithm, at the end, in steps of
 * gp_steps.h; before it how far to trust the result.
 *
 *     K = C + N (+ jitter),  K = L L',  z = L^-1 r,  a = L^-T z
 *     ell = -1/2 |z|^2 - sum_i log L_ii - n/2 log 2 pi                         for each column of y
 *     restricted: ell - 1/2 log |H'K^-1 H| + m/2 log 2 pi
 *     with a profiled scale: K is R, r is r / sqrt(f), and ell loses N/2 log f (gp_mean.c)
 *
 * n^3/3 flop.  The jitter of K is that of gp_matrix.c.
 *
 * Rounding.  The factor and the kernel's own rounding change K by some D with |D_ij| of a few u
 * K_max, and ell by 1/2 a'D a - 1/2 tr(K^-1 D).  With independent entries that is about
 *
 *     u K_max (|a|^2 + q sum_i 1 / L_ii^2)                        |a|^2 over all columns of y
 *
 * and up to n / 5 times as much has been seen where they are not: n / 4 is the bound, 8 at least.
 * In f64 a bound above the accuracy asked for is a warning: columns far from 0 under linear(v),
 * variances far above the noise.  In f32 a bound that is too large for the accuracy asked for gives
 * way to an estimate (gp_trust.c), and a value that is not good enough by that is refused or
 * computed in f64.  The trace residual is no such guard: a signed sum, it cancels (1e-7 beside an
 * error of 2.6 has been seen).
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gp/gp_process.h"
#include "gp/gp_trust.h"

static const double LOG_2PI = 1.8378770664093454836;

/* ---- parameters and state -------------------------------------------------------------------- */

frg_status frgi_gp_set_theta(frg_gp *gp, const double *theta)
{
    TRY(frgi_gp_params_check(&gp->model.params, theta));
    const size_t bytes = (size_t)gp->model.params.count * sizeof *theta;
    if (memcmp(gp->model.theta, theta, bytes) != 0) {
        memcpy(gp->model.theta, theta, bytes);
        for (int i = 0; i < gp->model.params.count; i++) {
            gp->model.params.p[i].value = theta[i];
        }
        frgi_gp_forget(gp);
    }
    return FRG_OK;
}

/* ---- accuracy -------------------------------------------------------------------------------- */

static void fill_likelihood(frg_gp *gp)
{
    const double n = (double)gp->data.n, q = (double)gp->data.q;
    frg_gp_value *const v = &gp->result.value;
    v->log_likelihood = -0.5 * (gp->state.quad + q * gp->state.logdet + q * n * LOG_2PI);
    if (gp->opts.reml) {
        v->log_likelihood += 0.5 * q * ((double)gp->profile.count * LOG_2PI - gp->profile.logdet);
    }
    if (gp->opts.profile_scale) {
        v->log_likelihood -= 0.5 * frgi_gp_scale_count(gp) * log(gp->state.scale);
    }
    v->log_prior = frgi_gp_params_prior(&gp->model.params, gp->model.theta, NULL, NULL);
    v->per_point = (v->log_likelihood + v->log_prior) / (double)(gp->data.n + gp->data.masked);
}

static void fill_value(frg_gp *gp)
{
    frg_gp_value *const v = &gp->result.value;
    fill_likelihood(gp);
    v->jitter = gp->state.jitter;
    v->scale = gp->state.scale;
    gp->steps->value.bound(gp);
    v->error_estimate =
        frgi_gp_rounding_bound(frgi_spd_dtype(&gp->own.matrix), gp->data.n, gp->state.rounding);
    v->storage = gp->memory.storage;
    v->promoted = gp->state.swapped;
}

/** On the way of a fit ell goes through 0, where nothing is relative to it: a thousandth of a unit
 *  a point will do. */
static double error_allowed(const frg_gp *gp)
{
    return gp->opts.accuracy *
           (fabs(gp->result.value.log_likelihood) + (gp->mode.relaxed ? (double)gp->data.n : 1));
}

static bool is_accurate(const frg_gp *gp)
{
    return gp->result.value.error_estimate <= error_allowed(gp); /* not so: NaN */
}

/** In f64 there is no better arithmetic, so that a bound above the accuracy is a warning: one for a
 *  value, one at the end of a fit. */
static void warn_rounding(frg_gp *gp)
{
    const frg_gp_value *const v = &gp->result.value;
    if (gp->mode.monotone || gp->result.rounding_warned ||
        frgi_spd_dtype(&gp->own.matrix) != FRG_F64 || is_accurate(gp)) {
        return;
    }
    gp->result.rounding_warned = true;
    frgi_warn(gp->ctx, W_ROUNDING_GP,
              "the log-likelihood %.6g may be wrong by %.2g in float64, %.2g is asked for",
              v->log_likelihood, v->error_estimate, error_allowed(gp));
}

/** FRG_BROKE_DOWN where f32 is not good enough. */
static frg_status check_accuracy(frg_gp *gp)
{
    if (frgi_spd_dtype(&gp->own.matrix) == FRG_F64 || is_accurate(gp)) {
        return FRG_OK;
    }
    double error;
    const frg_status status = gp->steps->value.sampled_error(gp, &error);
    if (status != FRG_OK) {
        return status;
    }
    gp->result.value.error_estimate = fmin(error, gp->result.value.error_estimate);
    return is_accurate(gp) ? FRG_OK : FRG_BROKE_DOWN;
}

static frg_status refuse(frg_gp *gp, frg_status status)
{
    char pair[GP_PAIR_BYTES];
    const frg_gp_value *const v = &gp->result.value;
    if (status == FRG_NOT_POSDEF && gp->state.pivots.pivot < 0) {
        FAIL(gp->ctx, E_NOT_POSDEF, "the columns of the profiled mean are collinear under K");
    }
    if (status == FRG_NOT_POSDEF) {
        FAIL(gp->ctx, E_NOT_POSDEF,
             "pivot %lld of %lld is %.3g of the mean diagonal with jitter %.3g (%d tries)%s",
             frgi_nth(gp->ctx, gp->state.pivots.pivot), (long long)gp->data.n,
             gp->state.pivots.value / gp->steps->value.mean_diagonal(gp), gp->state.jitter,
             v->jitter_tries, frgi_gp_describe_closest(gp, pair));
    }
    const ptrdiff_t apart = frgi_gp_unresolved(gp);
    if (status == FRG_BROKE_DOWN && apart >= 0) {
        FAIL(gp->ctx, E_PRECISION_GP,
             "column %s has a value at %.3g from the others, which lie within about %.2g: in %s "
             "they "
             "would be one point",
             gp->data.column_names[apart], gp->columns.largest[apart], gp->columns.spread[apart],
             frg_dtype_name(frgi_spd_dtype(&gp->own.matrix)));
    }
    const ptrdiff_t lost = frgi_gp_lost_phase(gp);
    if (status == FRG_BROKE_DOWN && lost >= 0) {
        FAIL(gp->ctx, E_PHASE,
             "column %s has a value at %.3g from the others: so many periods that its phase is "
             "unknown in %s",
             gp->data.column_names[lost], gp->columns.largest[lost],
             frg_dtype_name(frgi_spd_dtype(&gp->own.matrix)));
    }
    if (status == FRG_BROKE_DOWN && !(gp->state.scale > 0)) {
        FAIL(gp->ctx, E_OPTION,
             "profile_scale: all residuals are 0 or rounding, nothing is left to estimate from");
    }
    if (status == FRG_BROKE_DOWN && !isfinite(v->log_likelihood)) {
        FAIL(gp->ctx, E_RANGE_GP, "r'K^-1 r overflows in %s",
             frg_dtype_name(frgi_spd_dtype(&gp->own.matrix)));
    }
    if (status == FRG_BROKE_DOWN) {
        FAIL(gp->ctx, E_PRECISION_GP,
             "the log-likelihood %.6g may be wrong by %.2g in float32, %.2g is asked for",
             v->log_likelihood, v->error_estimate, error_allowed(gp));
    }
    return status;
}

static bool may_promote(const frg_gp *gp)
{
    return gp->opts.precision == FRG_GP_F32 && gp->opts.auto_promote && !gp->state.swapped;
}

void frgi_gp_recall(frg_gp *gp, frg_status status, const frg_gp_value *value, double jitter,
                    bool swapped)
{
    if (gp->state.swapped != swapped) {
        frgi_gp_swap_sides(gp);
    }
    frgi_gp_set_matrix(gp, MATRIX_NONE);
    frgi_gp_set_jitter(gp, jitter);
    gp->result.value = *value;
    if (status == FRG_OK && value->jitter_tries > 0) {
        frgi_gp_warn_jitter(gp);
    }
}

/** The end of an evaluation that began at kept_jitter.  One that failed restores that jitter, so
 *  that the objective of a fit remains one function. */
static frg_status finish(frg_gp *gp, frg_status status, double kept_jitter,
                         frgi_gp_matrix_state done)
{
    if (status == FRG_OK && !isfinite(gp->result.value.log_likelihood)) {
        status = FRG_BROKE_DOWN;
    }
    if (status != FRG_OK) {
        status = refuse(gp, status);
        frgi_gp_set_jitter(gp, kept_jitter);
        return status;
    }
    if (gp->result.value.jitter_tries > 0) {
        frgi_gp_warn_jitter(gp);
    }
    frgi_gp_set_matrix(gp, done);
    return FRG_OK;
}

/** Clears the result; kept_jitter: of the evaluation before within a fit, 0 elsewhere. */
static void begin(frg_gp *gp, double kept_jitter)
{
    frgi_gp_set_jitter(gp, kept_jitter);
    gp->result.value = (frg_gp_value){.pivot = -1,
                                      .closest = {-1, -1},
                                      .trace_residual = (double)NAN,
                                      .jitter = gp->state.jitter};
    gp->result.rounding_warned = false;
}

/** What the matrix is after an evaluation. */
static frgi_gp_matrix_state reached(const frg_gp *gp)
{
    return frgi_gp_sweeps(gp) ? MATRIX_INVERSE : MATRIX_FACTOR;
}

static frg_status solve_anew(frg_gp *gp)
{
    gp->steps->value.residual(gp); /* a profiled mean has been taken out of it */
    const frg_status status = gp->steps->value.forward(gp);
    return status == FRG_OK ? gp->steps->value.solve(gp, false) : status;
}

frg_status frgi_gp_solve_anew(frg_gp *gp)
{
    const frg_status status = solve_anew(gp);
    if (status == FRG_OK) {
        fill_likelihood(gp);
    }
    return status == FRG_OK ? FRG_OK : refuse(gp, status);
}

frg_status frgi_gp_take_factor(frg_gp *gp)
{
    gp->result.value =
        (frg_gp_value){.pivot = -1, .closest = {-1, -1}, .trace_residual = (double)NAN};
    gp->result.rounding_warned = false;
    gp->steps->value.take_over(gp);
    const frg_status status = solve_anew(gp);
    if (status == FRG_OK) {
        fill_value(gp);
    }
    return finish(gp, status, gp->state.jitter, MATRIX_FACTOR);
}

frg_status frgi_gp_adopt_factor(frg_gp *gp)
{
    gp->steps->value.adopt(gp);
    return frgi_gp_take_factor(gp);
}

/** The factor once more, at the jitter of the value.  a and all else that is kept are computed from
 *  this factor again, so that a process that is saved now and loaded has the same bits: after an
 *  update they had come from another factor, which differs in its last bits. */
static frg_status refactor(frg_gp *gp)
{
    const double seconds = gp->result.value.build_seconds;
    frg_status status = gp->steps->value.refactor(gp);
    if (status == FRG_OK) {
        status = frgi_gp_solve_anew(gp);
    }
    gp->result.value.build_seconds = seconds;
    frgi_gp_set_matrix(gp, status == FRG_OK ? MATRIX_FACTOR : MATRIX_NONE);
    return status;
}

frg_status frgi_gp_need_factor(frg_gp *gp)
{
    return gp->state.matrix == MATRIX_INVERSE ? refactor(gp) : frgi_gp_value(gp);
}

frg_status frgi_gp_need_inverse(frg_gp *gp)
{
    frgi_gp_expect_inverse(gp, true);
    const frg_status valued = frgi_gp_value(gp);
    frgi_gp_expect_inverse(gp, false);
    return valued == FRG_OK && gp->state.matrix != MATRIX_INVERSE ? gp->steps->gradient.invert(gp)
                                                                  : valued;
}

/* ---- the algorithm --------------------------------------------------------------------------- */

/** One evaluation in the arithmetic at hand; noise and residual are there.  FRG_NOT_POSDEF and
 *  FRG_BROKE_DOWN (too inaccurate) are not recorded yet. */
static frg_status evaluate(frg_gp *gp, bool may_raise)
{
    if (frgi_gp_unresolved(gp) >= 0 || frgi_gp_lost_phase(gp) >= 0) {
        gp->result.value.error_estimate = (double)INFINITY;
        return FRG_BROKE_DOWN;
    }
    /* K = C + N + jitter I = L L',  log |K| = 2 sum_i log L_ii; of one column r the same sweep over
     * pivot blocks makes z = L^-1 r, and K^-1 and a where a gradient is to follow */
    frg_status status = frgi_gp_factor(gp, may_raise);
    const double began = frgi_seconds();
    /* z = L^-1 r,  Z = L^-1 H */
    if (status == FRG_OK && !frgi_gp_goes_along(gp)) {
        status = gp->steps->value.forward(gp);
    }
    /* b = (Z'Z)^-1 Z'z,  z <- z - Z b  (profiled mean);  f = |z|^2 / N  (profiled scale);
     * a = L^-T z */
    if (status == FRG_OK) {
        status = gp->steps->value.solve(gp, frgi_gp_sweeps(gp));
    }
    /* ell = -1/2 |z|^2 - 1/2 log |K| - n/2 log 2 pi, and a bound of its rounding error, which the
     * check compares with it */
    if (status == FRG_OK) {
        fill_value(gp);
        gp->result.value.factor_seconds += frgi_seconds() - began;
        status = check_accuracy(gp);
    }
    return status;
}

/** f32 gives way to f64 at this theta, and until the end of the fit. */
static frg_status promote(frg_gp *gp)
{
    gp->result.value.pivot = gp->result.value.closest[0] = gp->result.value.closest[1] = -1;
    frgi_gp_swap_sides(gp);
    const frg_status status = evaluate(gp, true);
    if (status == FRG_OK && !gp->mode.monotone) {
        frgi_warn(gp->ctx, W_PRECISION_GP, "float32 is not enough here: computed in float64");
    }
    return status;
}

frg_status frgi_gp_value(frg_gp *gp)
{
    if (gp->state.matrix != MATRIX_NONE) {
        warn_rounding(gp);
        return FRG_OK;
    }
    const double kept_jitter = gp->mode.monotone ? gp->state.jitter : 0;
    begin(gp, kept_jitter);
    /* nu_i = known + learned noise of point i */
    gp->steps->value.noise(gp);
    /* r = y - m(x) */
    gp->steps->value.residual(gp);
    /* ell and a; in f64 where f32 is not enough */
    frg_status status = evaluate(gp, !may_promote(gp));
    if ((status == FRG_NOT_POSDEF || status == FRG_BROKE_DOWN) && may_promote(gp)) {
        status = promote(gp);
    }
    status = finish(gp, status, kept_jitter, reached(gp));
    if (status == FRG_OK) {
        warn_rounding(gp);
    }
    return status;
}

frg_status frgi_gp_promote(frg_gp *gp)
{
    if (!may_promote(gp)) {
        FAIL(gp->ctx, E_PRECISION_GP, "the trace of K^-1 K is off by %.2g of n in %s",
             gp->result.value.trace_residual, frg_dtype_name(frgi_spd_dtype(&gp->own.matrix)));
    }
    gp->steps->value.residual(gp); /* a profiled mean has been taken out of it */
    const frg_status status = promote(gp);
    return finish(gp, status, gp->state.jitter, reached(gp));
}

frg_status frgi_gp_gradient(frg_gp *gp, double *gradient, double *dx)
{
    /* L, a, and L -> K^-1 in place: mixed keeps L, and inverts a copy in f32 */
    frg_status status =
        gp->opts.precision == FRG_GP_MIXED ? frgi_gp_value(gp) : frgi_gp_need_inverse(gp);
    /* W = a a' - q K^-1 (+ Q),  d ell/dlog t = 1/2 sum_ij W_ij dK_ij/dlog t,
     * d ell/dx_i = sum_j W_ij dk(x_i, x_j)/dx_i */
    if (status == FRG_OK) {
        status = frgi_gp_gradient_pass(gp, gradient, dx);
    }
    /* the same in f64 where tr K^-1 K is not n */
    if (status == FRG_OK && frgi_gp_gradient_is_lost(gp)) {
        status = frgi_gp_promote(gp);
        status = status == FRG_OK ? frgi_gp_gradient_pass(gp, gradient, dx) : status;
    }
    if (status != FRG_OK) {
        return status;
    }
    /* d ell/dlog s_g = s_g/2 sum_{i in g} W_ii,  d ell/db = (dm/db)' a,  and dm/dx a joins dx */
    gp->steps->gradient.of_points(gp, gradient, dx);
    /* + d log p(theta)/dlog theta; 0 for what is fixed: must be last */
    frgi_gp_params_prior(&gp->model.params, gp->model.theta, gradient, NULL);
    for (int i = 0; i < gp->model.params.count; i++) {
        gradient[i] = gp->model.params.p[i].fixed ? 0 : gradient[i];
    }
    return FRG_OK;
}
