/* gp_matrix.c - the matrix of a process: its states, its two arithmetics, the jitter of its factor,
 * its inverse, solves with it, and the table of the host's steps (gp_steps.h).
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
#include "gp/gp_trust.h"

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

double frgi_gp_noise_at(const frg_gp *gp, ptrdiff_t i)
{
    const double *const learned = gp->model.theta + gp->model.params.noise_first;
    return (gp->data.known_noise ? gp->data.known_noise[i] : 0) +
           (gp->model.params.noise_count == 0 ? 0
            : gp->data.groups                 ? learned[gp->data.groups[i]]
                                              : learned[0]);
}

void frgi_gp_noise(frg_gp *gp)
{
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        gp->vectors.noise[i] = frgi_gp_noise_at(gp, i);
    }
}

/** K with the current jitter into the matrix, and what goes with it. */
static frg_status build(frg_gp *gp)
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
static frg_status factor_alone(frg_gp *gp)
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

static frg_status factor(frg_gp *gp)
{
    return frgi_gp_sweeps(gp) ? sweep(gp) : factor_alone(gp);
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
    const double unit = relative ? gp->steps->value.mean_diagonal(gp) : 1;
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
        frg_status status = gp->steps->value.build(gp);
        if (status == FRG_OK) {
            status = gp->steps->value.factor(gp);
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

/** The factor once more, at the jitter that was found. */
static frg_status refactor(frg_gp *gp)
{
    gp->state.matrix = MATRIX_NONE;
    const frg_status status = build(gp);
    return status == FRG_OK
               ? frgi_spd_factor(gp->ctx, &gp->own.matrix, &gp->state.logdet, &gp->state.pivots)
               : status;
}

static void adopt(frg_gp *gp)
{
    frgi_spd_pad(&gp->own.matrix);
    frgi_gp_noise(gp);
    frgi_gp_self_training(frgi_gp_need_bound(gp), &gp->own.points, 0, gp->data.n,
                          gp->vectors.diagonal);
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        gp->vectors.diagonal[i] += gp->vectors.noise[i];
    }
}

/** The matrix holds a factor from elsewhere: its logdet, its L_ii in scratch; the state is NONE. */
static void take_over(frg_gp *gp)
{
    gp->state.matrix = MATRIX_NONE;
    gp->state.low_inverse = false; /* that belonged to the factor before */
    gp->state.logdet = frgi_spd_logdet(gp->ctx, &gp->own.matrix, &gp->state.pivots);
    frgi_spd_diagonal(&gp->own.matrix, gp->vectors.scratch);
}

/* ---- the inverse ----------------------------------------------------------------------------- */

static frg_status invert(frg_gp *gp)
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

static frg_status low_inverse(frg_gp *gp)
{
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
static frg_status forward(frg_gp *gp)
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

/** The L_ii are in scratch. */
static void bound(frg_gp *gp)
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
}

/* ---- columns, and the table ------------------------------------------------------------------ */

static frg_status forward_columns(const frg_gp *gp, ptrdiff_t m, double *b)
{
    return frgi_spd_forward(gp->ctx, &gp->own.matrix, m, b, gp->data.n);
}

static void read_column(const frg_gp *gp, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end, double *v)
{
    frgi_spd_read_column(&gp->own.matrix, j, from, end, v);
}

static void write_column(const frg_gp *gp, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end,
                         const double *v)
{
    frgi_spd_write_column(&gp->own.matrix, j, from, end, v);
}

const frgi_gp_steps frgi_gp_host_steps = {.open = frgi_arena_open,
                                          .close = frgi_arena_close,
                                          .value = {.basis = frgi_gp_mean_basis,
                                                    .noise = frgi_gp_noise,
                                                    .residual = frgi_gp_mean_residual,
                                                    .build = build,
                                                    .factor = factor,
                                                    .refactor = refactor,
                                                    .forward = forward,
                                                    .solve = solve,
                                                    .bound = bound,
                                                    .sampled_error = frgi_gp_sampled_error,
                                                    .mean_diagonal = mean_diagonal,
                                                    .adopt = adopt,
                                                    .take_over = take_over},
                                          .gradient = {.invert = invert,
                                                       .low_inverse = low_inverse,
                                                       .pass = frgi_gp_pass_over_pairs,
                                                       .of_points = frgi_gp_gradient_of_points,
                                                       .of_values = frgi_gp_gradient_of_values,
                                                       .leave_out = frgi_gp_leave_out,
                                                       .leave_blocks_out = frgi_gp_leave_blocks_out,
                                                       .information = frgi_gp_fill_information},
                                          .factor = {.predict = frgi_gp_predict_block,
                                                     .forward = forward_columns,
                                                     .read = read_column,
                                                     .write = write_column},
                                          .lanes = {.run = frgi_gp_fill_and_run,
                                                    .take_value = frgi_gp_take_value,
                                                    .take_gradient = frgi_gp_take_gradient}};
