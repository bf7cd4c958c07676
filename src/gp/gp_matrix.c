/* gp_matrix.c - the matrix of a process: its states, its two arithmetics, the jitter of its factor,
 * its inverse, and solves with it.
 *
 * Jitter: 0 first; where a pivot is not positive K is built again with j0 10^t times its mean
 * diagonal, t = 0, 1, ...  Within a fit (monotone) it never goes back, so that the objective stays
 * one function. A pivot that is rounding counts as not positive: two equal points without noise
 * leave 1e-16 or -1e-16 by chance, and the logarithm of the first would be a value made of noise.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gp/gp_process.h"

/* A pivot within so many times sqrt(i + 1) roundings of its diagonal is none: i subtractions leave
 * that of 0. */
static const double SINGULAR = 4;
enum { CLOSEST_MOST = 5000 }; /* points whose pairs are searched after a failure */

/* ---- states ---------------------------------------------------------------------------------- */

void frgi_gp_swap_sides(frg_gp *gp)
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
        frgi_gp_swap_sides(gp);
    }
}

void frgi_gp_data_changed(frg_gp *gp)
{
    gp->mode.monotone = false;
    frgi_gp_forget(gp);
}

void frgi_gp_parameters_changed(frg_gp *gp)
{
    gp->mode.relaxed = gp->mode.relaxed && gp->state.matrix != MATRIX_NONE;
}

void frgi_gp_forget_fit(frg_gp *gp)
{
    gp->mode.relaxed = gp->mode.jitter_warned = false;
    gp->state.jitter = 0;
}

void frgi_gp_open_state(frg_gp *gp)
{
    gp->state.swapped = gp->mode.monotone = false;
    gp->state.jitter = 0;
}

void frgi_gp_set_jitter(frg_gp *gp, double jitter)
{
    gp->state.jitter = jitter;
}

bool frgi_gp_mute_jitter(frg_gp *gp, bool mute)
{
    const bool was = gp->mode.jitter_warned;
    gp->mode.jitter_warned = mute;
    return was;
}

void frgi_gp_expect_inverse(frg_gp *gp, bool expected)
{
    gp->mode.with_inverse = expected;
}

void frgi_gp_set_matrix(frg_gp *gp, frgi_gp_matrix_state state)
{
    gp->state.matrix = state;
}

void frgi_gp_overwrite(frg_gp *gp, const frgi_spd *a)
{
    gp->state.kept_ready = gp->state.kept_ready && a->elements != gp->own.kept;
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

/** Is L_ii^2 > SINGULAR u sqrt(i + 1) K_ii for every pivot?  The L_ii are in scratch. */
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

bool frgi_gp_goes_along(const frg_gp *gp)
{
    return gp->data.q + gp->profile.count == 1;
}

/* In f64 alone: the check of f32 needs L. */
bool frgi_gp_carries(const frg_gp *gp)
{
    return frgi_gp_goes_along(gp) && frgi_spd_dtype(&gp->own.matrix) == FRG_F64;
}

bool frgi_gp_sweeps(const frg_gp *gp)
{
    return gp->mode.with_inverse && frgi_gp_carries(gp) && gp->opts.precision != FRG_GP_MIXED &&
           !gp->opts.profile_scale;
}

/** K <- K^-1; z = L^-1 r in alpha, a = L^-T z in swept, the L_ii in scratch. */
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

/** K <- L; z = L^-1 r in alpha where frgi_gp_goes_along, the L_ii in scratch. */
static frg_status factor(frg_gp *gp)
{
    const double began = frgi_seconds();
    const bool single = frgi_spd_is_single(&gp->own.matrix), along = frgi_gp_goes_along(gp);
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

double frgi_gp_mean_diagonal(const frg_gp *gp)
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
    const double unit = relative ? frgi_gp_mean_diagonal(gp) : 1;
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

const char *frgi_gp_describe_closest(const frg_gp *gp, char text[GP_PAIR_BYTES])
{
    const int64_t i = gp->result.value.closest[0], j = gp->result.value.closest[1];
    text[0] = '\0';
    if (i < 0) {
        return text;
    }
    const double distance = sqrt(squared_distance(gp, i, j));
    const bool differ = distance <= 0 && gp->data.y[i] != gp->data.y[j];
    snprintf(text, GP_PAIR_BYTES,
             "; the closest points are rows %lld and %lld%s, at the distance %.3g%s",
             frgi_nth(gp->ctx, i), frgi_nth(gp->ctx, j), gp->data.masked ? " of those kept" : "",
             distance, differ ? ": inconsistent duplicates, their y differ" : "");
    return text;
}

void frgi_gp_warn_jitter(frg_gp *gp)
{
    char pair[GP_PAIR_BYTES];
    if (gp->mode.monotone && gp->mode.jitter_warned) {
        return;
    }
    gp->mode.jitter_warned = true;
    frgi_warn(gp->ctx, W_JITTER,
              "jitter %.3g was added to the diagonal after %d tr%s: pivot %lld was not positive%s",
              gp->state.jitter, gp->result.value.jitter_tries,
              gp->result.value.jitter_tries == 1 ? "y" : "ies",
              frgi_nth(gp->ctx, gp->result.value.pivot), frgi_gp_describe_closest(gp, pair));
}

frg_status frgi_gp_factor(frg_gp *gp, bool may_raise)
{
    for (;;) {
        frg_status status = frgi_gp_build_jittered(gp);
        if (status == FRG_OK) {
            status = frgi_gp_sweeps(gp) ? sweep(gp) : factor(gp);
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

frg_status frgi_gp_factor_again(frg_gp *gp)
{
    gp->state.matrix = MATRIX_NONE;
    const frg_status status = frgi_gp_build_jittered(gp);
    return status == FRG_OK
               ? frgi_spd_factor(gp->ctx, &gp->own.matrix, &gp->state.logdet, &gp->state.pivots)
               : status;
}

void frgi_gp_take_over(frg_gp *gp)
{
    gp->state.matrix = MATRIX_NONE;
    gp->state.low_inverse = false; /* that belonged to the factor before */
    gp->state.logdet = frgi_spd_logdet(gp->ctx, &gp->own.matrix, &gp->state.pivots);
    frgi_spd_diagonal(&gp->own.matrix, gp->vectors.scratch);
}

/* ---- the inverse ----------------------------------------------------------------------------- */

frg_status frgi_gp_invert(frg_gp *gp)
{
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

frg_status frgi_gp_need_low_inverse(frg_gp *gp)
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

frg_status frgi_gp_solve_triangle(frg_gp *gp, bool transposed)
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
