/* gp_value.c - the value at one theta: build, jitter policy, factor, solves, and how far to trust
 * it.
 *
 *     K = C + N (+ jitter),  K = L L',  z = L^-1 r,  a = L^-T z
 *     ell = -1/2 |z|^2 - sum_i log L_ii - n/2 log 2 pi                         for each column of y
 *     restricted: ell - 1/2 log |H'K^-1 H| + m/2 log 2 pi
 *     with a profiled scale: K is R, r is r / sqrt(f), and ell loses N/2 log f (gp_scale.c)
 *
 * n^3/3 flop.  Jitter: 0 first; where a pivot is not positive K is built again with j0 10^t times
 * its mean diagonal, t = 0, 1, ...  Within a fit (monotone) it never goes back, so that the
 * objective stays one function. A pivot that is rounding counts as not positive: two equal points
 * without noise leave 1e-16 or -1e-16 by chance, and the logarithm of the first would be a value
 * made of noise.
 *
 * Rounding.  The factor and the kernel's own rounding change K by some D with |D_ij| of a few u
 * K_max, and ell by 1/2 a'D a - 1/2 tr(K^-1 D).  With independent entries that is about
 *
 *     u K_max (|a|^2 + sum_i 1 / L_ii^2)
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
#include <stdio.h>
#include <string.h>

#include "gp/gp_process.h"
#include "gp/gp_trust.h"

static const double LOG_2PI = 1.8378770664093454836;
/* A pivot within so many times sqrt(i + 1) roundings of its diagonal is none: i subtractions leave
 * that of 0. */
static const double SINGULAR = 4;
enum {
    CLOSEST_MOST = 5000,
    PAIR_BYTES = 160
}; /* points whose pairs are looked through after a failure */

/* ---- states ---------------------------------------------------------------------------------- */

/** The process's own arithmetic and the other change places. */
static void swap_sides(frg_gp *gp)
{
    const frgi_gp_side own = gp->own;
    gp->own = gp->other;
    gp->other = own;
    gp->state.swapped = !gp->state.swapped;
    gp->state.matrix = MATRIX_NONE;
    gp->state.kept_ready = false;
}

void frgi_gp_forget(frg_gp *gp)
{
    gp->state.matrix = MATRIX_NONE;
    gp->own.bound = gp->other.bound = NULL;
    gp->state.low_inverse = gp->state.kept_ready = false;
    if (gp->state.swapped && !gp->mode.monotone) {
        swap_sides(gp);
    }
}

void frgi_gp_set_monotone(frg_gp *gp, bool monotone)
{
    gp->mode.monotone = monotone;
    gp->mode.jitter_warned = false;
    if (monotone) {
        gp->state.jitter = 0;
        gp->mode.relaxed = true;
    }
}

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

/* ---- the matrix ------------------------------------------------------------------------------ */

void frgi_gp_noise(const frg_gp *gp, double *nu)
{
    const double *const learned = gp->model.theta + gp->model.params.noise_first;
    const int count = gp->model.params.noise_count;
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        nu[i] = (gp->data.known_noise ? gp->data.known_noise[i] : 0) +
                (count == 0        ? 0
                 : gp->data.groups ? learned[gp->data.groups[i]]
                                   : learned[0]);
    }
}

frg_status frgi_gp_build_jittered(frg_gp *gp)
{
    const double began = frgi_seconds();
    const frg_status status =
        frgi_gp_build(gp->ctx, frgi_gp_need_bound(gp), &gp->own.matrix, gp->own.kept);
    if (status != FRG_OK) {
        return status;
    }
    gp->state.kept_ready = gp->own.kept != NULL;
    frgi_spd_diagonal(&gp->own.matrix, gp->vectors.diagonal);
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        gp->vectors.diagonal[i] += gp->vectors.noise[i];
        gp->vectors.scratch[i] = gp->vectors.diagonal[i] + gp->state.jitter;
    }
    frgi_spd_set_diagonal(&gp->own.matrix, gp->vectors.scratch);
    gp->result.value.build_seconds += frgi_seconds() - began;
    return FRG_OK;
}

static double roundoff(const frg_gp *gp)
{
    return frgi_spd_is_single(&gp->own.matrix) ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
}

/** Is every pivot more than its own rounding?  The L_ii are in scratch. */
static bool is_regular(frg_gp *gp)
{
    const double unit = SINGULAR * roundoff(gp);
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        const double pivot = gp->vectors.scratch[i] * gp->vectors.scratch[i];
        if (!(pivot > unit * sqrt((double)i + 1) * (gp->vectors.diagonal[i] + gp->state.jitter))) {
            gp->state.pivots.pivot = i;
            gp->state.pivots.value = pivot;
            return false;
        }
    }
    return true;
}

/** Is there one right side alone?  It goes along with the factor. */
static bool goes_along(const frg_gp *gp)
{
    return gp->data.q + gp->profile.count == 1;
}

/** Does a go along with the inverse?  In f64 alone: the check of f32 needs L. */
bool frgi_gp_carries(const frg_gp *gp)
{
    return goes_along(gp) && frgi_spd_dtype(&gp->own.matrix) == FRG_F64;
}

/** Is K^-1 to come with L, in one sweep? */
static bool sweeps(const frg_gp *gp)
{
    return gp->mode.with_inverse && frgi_gp_carries(gp) && gp->opts.precision != FRG_GP_MIXED &&
           !gp->opts.profile_scale;
}

/** L^-1 r in alpha, L^-T of that in swept, the L_ii in scratch. */
static frg_status sweep(frg_gp *gp)
{
    const double began = frgi_seconds();
    memcpy(gp->vectors.alpha, gp->vectors.residual, (size_t)gp->data.n * sizeof(double));
    const frg_status status =
        frgi_spd_sweep(gp->ctx, &gp->own.matrix, gp->vectors.alpha, gp->vectors.swept,
                       gp->vectors.scratch, &gp->state.logdet, &gp->state.pivots);
    gp->result.value.inverse_seconds += frgi_seconds() - began;
    return status == FRG_OK && !is_regular(gp) ? FRG_NOT_POSDEF : status;
}

/** L, and L^-1 r where r goes along. */
static frg_status factor(frg_gp *gp)
{
    const double began = frgi_seconds();
    const bool single = frgi_spd_is_single(&gp->own.matrix), along = goes_along(gp);
    void *const b = single ? (void *)gp->vectors.solved_low : gp->vectors.alpha;
    if (along && single) {
        frgi_gp_narrow(gp->data.n, gp->vectors.residual, gp->vectors.solved_low);
    } else if (along) {
        memcpy(gp->vectors.alpha, gp->vectors.residual, (size_t)gp->data.n * sizeof(double));
    }
    const frg_status status = frgi_spd_factor_forward(gp->ctx, &gp->own.matrix, along ? b : NULL,
                                                      &gp->state.logdet, &gp->state.pivots);
    if (along && single) {
        frgi_gp_widen(gp->data.n, gp->vectors.solved_low, gp->vectors.alpha);
    }
    frgi_spd_diagonal(&gp->own.matrix, gp->vectors.scratch);
    gp->result.value.factor_seconds += frgi_seconds() - began;
    return status == FRG_OK && !is_regular(gp) ? FRG_NOT_POSDEF : status;
}

static double mean_diagonal(const frg_gp *gp)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        sum += gp->vectors.diagonal[i];
    }
    return sum / (double)gp->data.n;
}

/** The next jitter above the current one; false where the policy has no more. */
static bool raise_jitter(frg_gp *gp)
{
    static const struct {
        double first;
        int tries;
    } policy[2][2] = {/* relative, gpytorch */ {{1e-10, 6}, {1e-8, 3}} /* f64 */,
                      {{1e-7, 5}, {1e-6, 3}} /* f32 */};
    const bool single = frgi_spd_is_single(&gp->own.matrix),
               relative = gp->opts.jitter == FRG_GP_JITTER_RELATIVE;
    const double unit = relative ? mean_diagonal(gp) : 1;
    if (gp->opts.jitter == FRG_GP_JITTER_NONE || !(unit > 0 && isfinite(unit))) {
        return false;
    }
    double level = policy[single][!relative].first * unit;
    for (int t = 0; t < policy[single][!relative].tries; t++) {
        if (level > gp->state.jitter * (1 + DBL_EPSILON)) {
            gp->state.jitter = level;
            return true;
        }
        level *= 10;
    }
    return false;
}

static double squared_distance(const frg_gp *gp, ptrdiff_t i, ptrdiff_t j)
{
    double sum = 0;
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        const double difference = gp->data.x[i * gp->data.d + k] - gp->data.x[j * gp->data.d + k];
        sum += difference * difference;
    }
    return sum;
}

static void find_closest(frg_gp *gp)
{
    double least = INFINITY;
    for (ptrdiff_t i = 1; gp->data.n <= CLOSEST_MOST && i < gp->data.n && least > 0; i++) {
        for (ptrdiff_t j = 0; j < i; j++) {
            const double square = squared_distance(gp, i, j);
            if (square < least) {
                least = square;
                gp->result.value.closest[0] = j;
                gp->result.value.closest[1] = i;
            }
        }
    }
}

/** "; the closest points are rows 3 and 7, at the distance 0" */
static const char *describe_closest(const frg_gp *gp, char text[PAIR_BYTES])
{
    const int64_t i = gp->result.value.closest[0], j = gp->result.value.closest[1];
    text[0] = '\0';
    if (i < 0) {
        return text;
    }
    const double distance = sqrt(squared_distance(gp, i, j));
    const bool differ = distance <= 0 && gp->data.y[i] != gp->data.y[j];
    snprintf(text, PAIR_BYTES,
             "; the closest points are rows %lld and %lld%s, at the distance %.3g%s",
             frgi_nth(gp->ctx, i), frgi_nth(gp->ctx, j), gp->data.masked ? " of those kept" : "",
             distance, differ ? ": inconsistent duplicates, their y differ" : "");
    return text;
}

static void warn_jitter(frg_gp *gp)
{
    char pair[PAIR_BYTES];
    if (gp->mode.monotone && gp->mode.jitter_warned) {
        return;
    }
    gp->mode.jitter_warned = true;
    frgi_warn(gp->ctx, W_JITTER,
              "jitter %.3g was added to the diagonal after %d tr%s: pivot %lld was not positive%s",
              gp->state.jitter, gp->result.value.jitter_tries,
              gp->result.value.jitter_tries == 1 ? "y" : "ies",
              frgi_nth(gp->ctx, gp->result.value.pivot), describe_closest(gp, pair));
}

/** K = L L' with as little jitter as it takes.  Records no failure. */
static frg_status factor_with_jitter(frg_gp *gp, bool may_raise)
{
    for (;;) {
        frg_status status = frgi_gp_build_jittered(gp);
        if (status == FRG_OK) {
            status = sweeps(gp) ? sweep(gp) : factor(gp);
        }
        if (status != FRG_NOT_POSDEF) {
            return status;
        }
        if (gp->result.value.pivot < 0) {
            gp->result.value.pivot = gp->state.pivots.pivot;
            if (!gp->mode.jitter_warned) {
                find_closest(gp);
            }
        }
        if (!may_raise || !raise_jitter(gp)) {
            return FRG_NOT_POSDEF;
        }
        gp->result.value.jitter_tries++;
    }
}

/* ---- solves ---------------------------------------------------------------------------------- */

void frgi_gp_narrow(ptrdiff_t n, const double *from, float *to)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] = (float)from[i];
    }
}

void frgi_gp_widen(ptrdiff_t n, const float *from, double *to)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] = (double)from[i];
    }
}

/** alpha (and the columns of H behind it) <- L^-1 or L^-T of it, in the process's arithmetic. */
static frg_status solve_triangle(frg_gp *gp, bool transposed)
{
    const ptrdiff_t n = gp->data.n, columns = gp->data.q + gp->profile.count;
    const bool single = frgi_spd_is_single(&gp->own.matrix);
    if (single) {
        frgi_gp_narrow(n * columns, gp->vectors.alpha, gp->vectors.solved_low);
    }
    void *const b = single ? (void *)gp->vectors.solved_low : gp->vectors.alpha;
    const frg_status status = transposed
                                  ? frgi_spd_backward(gp->ctx, &gp->own.matrix, columns, b, n)
                                  : frgi_spd_forward(gp->ctx, &gp->own.matrix, columns, b, n);
    if (single && status == FRG_OK) {
        frgi_gp_widen(n * columns, gp->vectors.solved_low, gp->vectors.alpha);
    }
    return status;
}

/** alpha <- L^-1 r, and L^-1 H behind it. */
static frg_status solve_forward(frg_gp *gp)
{
    const ptrdiff_t n = gp->data.n, m = gp->profile.count;
    memcpy(gp->vectors.alpha, gp->vectors.residual, (size_t)(n * gp->data.q) * sizeof(double));
    if (m > 0) {
        memcpy(gp->profile.solved, gp->profile.basis, (size_t)(n * m) * sizeof(double));
    }
    return solve_triangle(gp, false);
}

/** a, quad, the profiled mean and scale from L^-1 r (and L^-1 H); FRG_NOT_POSDEF with pivot -1
 *  where H'K^-1 H is singular, FRG_BROKE_DOWN with scale 0 where nothing is left to scale.  swept:
 *  a is there. */
static frg_status solve(frg_gp *gp, bool swept)
{
    const ptrdiff_t m = gp->profile.count;
    if (m > 0 && !frgi_gp_mean_profile(gp)) {
        gp->state.pivots.pivot = -1;
        return FRG_NOT_POSDEF;
    }
    if (!frgi_gp_scale_profile(gp)) {
        return FRG_BROKE_DOWN;
    }
    if (frgi_gp_carries(gp)) {
        memcpy(gp->vectors.forward, gp->vectors.alpha, (size_t)gp->data.n * sizeof(double));
    }
    if (swept) {
        memcpy(gp->vectors.alpha, gp->vectors.swept, (size_t)gp->data.n * sizeof(double));
        return FRG_OK;
    }
    const frg_status status = solve_triangle(gp, true);
    if (m > 0 && status == FRG_OK) {
        frgi_gp_mean_correction(gp);
    }
    return status;
}

/* ---- accuracy -------------------------------------------------------------------------------- */

/** The L_ii are in scratch. */
static void bound_error(frg_gp *gp)
{
    double largest = 0, square = 0, inverse = 0;
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        largest = gp->vectors.diagonal[i] > largest ? gp->vectors.diagonal[i] : largest;
        inverse += 1 / (gp->vectors.scratch[i] * gp->vectors.scratch[i]);
    }
    for (ptrdiff_t i = 0; i < gp->data.n * gp->data.q; i++) {
        square += gp->vectors.alpha[i] * gp->vectors.alpha[i];
    }
    gp->state.rounding = largest * (square + (double)gp->data.q * inverse);
    gp->result.value.error_estimate =
        frgi_gp_rounding_bound(frgi_spd_dtype(&gp->own.matrix), gp->data.n, gp->state.rounding);
}

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
    bound_error(gp);
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

/** In f64 nothing better is at hand, so that the bound is a warning: once a value, of a fit at its
 *  end. */
static void warn_rounding(frg_gp *gp)
{
    const frg_gp_value *const v = &gp->result.value;
    if (gp->mode.monotone || gp->mode.rounding_warned ||
        frgi_spd_dtype(&gp->own.matrix) != FRG_F64 || is_accurate(gp)) {
        return;
    }
    gp->mode.rounding_warned = true;
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
    const frg_status status = frgi_gp_sampled_error(gp, &error);
    if (status != FRG_OK) {
        return status;
    }
    gp->result.value.error_estimate = fmin(error, gp->result.value.error_estimate);
    return is_accurate(gp) ? FRG_OK : FRG_BROKE_DOWN;
}

/** Factor, solves and check of the accuracy in the arithmetic at hand.  FRG_NOT_POSDEF and
 *  FRG_BROKE_DOWN (too inaccurate) are not recorded yet. */
static frg_status evaluate(frg_gp *gp, bool may_raise)
{
    if (frgi_gp_unresolved(gp) >= 0 || frgi_gp_lost_phase(gp) >= 0) {
        gp->result.value.error_estimate = (double)INFINITY;
        return FRG_BROKE_DOWN;
    }
    frg_status status = factor_with_jitter(gp, may_raise);
    const double began = frgi_seconds();
    if (status == FRG_OK && !goes_along(gp)) {
        status = solve_forward(gp);
    }
    if (status == FRG_OK) {
        status = solve(gp, sweeps(gp));
    }
    if (status == FRG_OK) {
        fill_value(gp);
        gp->result.value.factor_seconds += frgi_seconds() - began;
        status = check_accuracy(gp);
    }
    return status;
}

static frg_status refuse(frg_gp *gp, frg_status status)
{
    char pair[PAIR_BYTES];
    const frg_gp_value *const v = &gp->result.value;
    if (status == FRG_NOT_POSDEF && gp->state.pivots.pivot < 0) {
        FAIL(gp->ctx, E_NOT_POSDEF, "the columns of the profiled mean are collinear under K");
    }
    if (status == FRG_NOT_POSDEF) {
        FAIL(gp->ctx, E_NOT_POSDEF,
             "pivot %lld of %lld is %.3g of the mean diagonal with jitter %.3g (%d tries)%s",
             frgi_nth(gp->ctx, gp->state.pivots.pivot), (long long)gp->data.n,
             gp->state.pivots.value / mean_diagonal(gp), gp->state.jitter, v->jitter_tries,
             describe_closest(gp, pair));
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

/** f32 gives way to f64 at this theta, and until the end of the fit. */
static frg_status promote(frg_gp *gp)
{
    gp->result.value.pivot = gp->result.value.closest[0] = gp->result.value.closest[1] = -1;
    swap_sides(gp);
    const frg_status status = evaluate(gp, true);
    if (status == FRG_OK && !gp->mode.monotone) {
        frgi_warn(gp->ctx, W_PRECISION_GP, "float32 is not enough here: computed in float64");
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
        swap_sides(gp);
    }
    gp->state.matrix = MATRIX_NONE;
    gp->state.jitter = jitter;
    gp->result.value = *value;
    if (status == FRG_OK && value->jitter_tries > 0) {
        warn_jitter(gp);
    }
}

/** The end of an evaluation that began at kept_jitter: a step that is not taken leaves the
 *  objective alone. */
static frg_status finish(frg_gp *gp, frg_status status, double kept_jitter,
                         frgi_gp_matrix_state done)
{
    if (status == FRG_OK && !isfinite(gp->result.value.log_likelihood)) {
        status = FRG_BROKE_DOWN;
    }
    if (status != FRG_OK) {
        status = refuse(gp, status);
        gp->state.jitter = kept_jitter;
        return status;
    }
    if (gp->result.value.jitter_tries > 0) {
        warn_jitter(gp);
    }
    gp->state.matrix = done;
    return FRG_OK;
}

frg_status frgi_gp_value(frg_gp *gp)
{
    if (gp->state.matrix != MATRIX_NONE) {
        warn_rounding(gp);
        return FRG_OK;
    }
    const double kept_jitter = gp->mode.monotone ? gp->state.jitter : 0;
    gp->state.jitter = kept_jitter;
    gp->result.value = (frg_gp_value){.pivot = -1,
                                      .closest = {-1, -1},
                                      .trace_residual = (double)NAN,
                                      .jitter = gp->state.jitter};
    gp->mode.rounding_warned = false;
    frgi_gp_noise(gp, gp->vectors.noise);
    frgi_gp_mean_residual(gp);
    frg_status status = evaluate(gp, !may_promote(gp));
    if ((status == FRG_NOT_POSDEF || status == FRG_BROKE_DOWN) && may_promote(gp)) {
        status = promote(gp);
    }
    status = finish(gp, status, kept_jitter, sweeps(gp) ? MATRIX_INVERSE : MATRIX_FACTOR);
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
    frgi_gp_mean_residual(gp); /* a profiled mean has been taken out of it */
    const frg_status status = promote(gp);
    return finish(gp, status, gp->state.jitter, sweeps(gp) ? MATRIX_INVERSE : MATRIX_FACTOR);
}

static frg_status solve_anew(frg_gp *gp)
{
    frgi_gp_mean_residual(gp); /* a profiled mean has been taken out of it */
    const frg_status status = solve_forward(gp);
    return status == FRG_OK ? solve(gp, false) : status;
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
    gp->state.matrix = MATRIX_NONE;
    gp->state.low_inverse = false; /* an inverse and alpha in f32 were of the factor before */
    gp->result.value =
        (frg_gp_value){.pivot = -1, .closest = {-1, -1}, .trace_residual = (double)NAN};
    gp->mode.rounding_warned = false;
    gp->state.logdet = frgi_spd_logdet(gp->ctx, &gp->own.matrix, &gp->state.pivots);
    frgi_spd_diagonal(&gp->own.matrix, gp->vectors.scratch);
    const frg_status status = solve_anew(gp);
    if (status == FRG_OK) {
        fill_value(gp);
    }
    return finish(gp, status, gp->state.jitter, MATRIX_FACTOR);
}
