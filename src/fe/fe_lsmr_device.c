/* fe_lsmr_device.c - the host's side of kernels/fe_lsmr: LSMR in row space on a device.
 *
 * u = b / ||b|| is the host's, or b what the passes there have left; the host gives v = A'b /
 * ||A'b|| and the norms, all from double precision, so that a device in float sees the gradient of
 * a residual as it is, however small beside it.
 *
 * Fused, steps are submitted in batches and the scalars stay there; eager, the scalars of every
 * step are the host's (sparse/lsmr.c), in double: a wait and a copy a step.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "fe/fe_device_rows.h"
#include "fe/fe_lsmr_at.h"

extern const frgi_kernels frgi_kernels_fe_lsmr;
static const frgi_kernels *const kernels = &frgi_kernels_fe_lsmr;

static_assert((int)FL_CONSISTENT == FRG_LSMR_CONSISTENT && (int)FL_ZERO == FRG_LSMR_ZERO &&
                  (int)FL_MAX_ITER == FRG_LSMR_MAX_ITER && (int)FD_RUNNING == FRG_LSMR_RUNNING,
              "the kernels' reasons for a stop are those of the host");
static_assert((int)FL_END <= (int)FD_AT_COUNT, "places of LSMR");

static void place_levels(fe_device *d, int64_t *used)
{
    frgi_fe_device_place_at(d, FL_ROOT, d->design.unknowns, used);
}

static void place_columns(fe_device *d, int64_t *used)
{
    static const int vectors[] = {FL_V, FL_SCALED, FL_H, FL_H_BAR, FL_X};
    const int64_t k = d->at[FD_K], groups = d->at[FD_UPDATES];
    frgi_fe_device_place_at(d, FL_GOAL, FLG_COUNT * k, used);
    frgi_fe_device_place_at(d, FL_STATE, 2 * FLS_COUNT * k, used);
    frgi_fe_device_place_at(d, FL_STEP, FLC_COUNT * k, used);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        frgi_fe_device_place_at(d, vectors[i], d->design.unknowns * k, used);
    }
    frgi_fe_device_place_at(d, FL_OF_V, groups * k, used);
    frgi_fe_device_place_at(d, FL_OF_X, 2 * groups * k, used);
    frgi_fe_device_place_at(d, FL_U, d->g->weight ? d->g->n * k : 0, used);
    d->at[FL_U] = d->g->weight ? d->at[FL_U] : d->at[FD_Z];
}

static frg_status put_levels(fe_device *d, double *scratch)
{
    for (int64_t l = 0; l < d->design.unknowns; l++) {
        scratch[l] = sqrt(d->design.inverse[l]);
    }
    return frgi_fe_device_put(d, FL_ROOT, scratch, d->design.unknowns);
}

const fe_device_method frgi_fe_device_lsmr_method = {
    .name = {"lsmr rows on a device", "lsmr rows on a device, float32",
             "lsmr rows on a device, eager", "lsmr rows on a device, float32, eager"},
    .kernels = &kernels,
    .place_levels = place_levels,
    .place_columns = place_columns,
    .put_levels = put_levels,
};

/* ---- a solve --------------------------------------------------------------------------------- */

typedef struct {
    fe_device *d;
    const fe_device_system *b;
    const frgi_lsmr_rule *rule;
    int64_t most;              /* steps */
    double atol[FE_MAX_LANES]; /* by column, as all below */
    double back[FE_MAX_LANES]; /* 1 over the norm that u is begun with */
    frgi_lsmr_scalars q[FE_MAX_LANES];
    int32_t count[FDC_COUNT * FE_MAX_LANES];
    double state[FLS_COUNT * FE_MAX_LANES];
    double copy[FLS_COUNT * FE_MAX_LANES]; /* numbers that are being copied */
} solve;

static double real_at(const fe_device *d, const void *x, int64_t i)
{
    return d->real == sizeof(double) ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void set_real(const fe_device *d, void *x, int64_t i, double value)
{
    if (d->real == sizeof(double)) {
        ((double *)x)[i] = value;
    } else {
        ((float *)x)[i] = (float)value;
    }
}

/** Vector `which` <- x (rows x columns) times its columns' factors and the roots of `square`, a
 *  number a row (NULL: 1); idle lanes are 0.  Waits. */
static frg_status put_lanes(fe_device *d, int which, const double *x, int64_t rows, int64_t columns,
                            const double *factor, const double *square)
{
    const int64_t k = d->columns, most = d->capacity / k;
    for (int64_t first = 0; first < rows; first += most) {
        const int64_t left = rows - first, count = left < most ? left : most;
        for (int64_t i = 0; i < count; i++) {
            const double scale = square ? sqrt(square[first + i]) : 1;
            for (int64_t c = 0; c < k; c++) {
                const double value =
                    c < columns ? x[(first + i) * columns + c] * factor[c] * scale : 0;
                set_real(d, d->buffer, i * k + c, value);
            }
        }
        const frgi_buffer to = frgi_fe_device_range(d, which, first * k, count * k);
        TRY(frgi_device_put(d->dev, to, d->buffer, to.bytes));
        TRY(frgi_device_wait(d->dev));
    }
    return FRG_OK;
}

/** x (R x columns) <- the answer, times the columns' ||b||. */
static frg_status get_answer(solve *s, double *x)
{
    fe_device *const d = s->d;
    const int64_t k = d->columns, most = d->capacity / k, columns = s->b->columns;
    for (int64_t first = 0; first < d->design.unknowns; first += most) {
        const int64_t left = d->design.unknowns - first, count = left < most ? left : most;
        const frgi_buffer of = frgi_fe_device_range(d, FL_X, first * k, count * k);
        TRY(frgi_device_get(d->dev, d->buffer, of, of.bytes));
        TRY(frgi_device_wait(d->dev));
        for (int64_t i = 0; i < count; i++) {
            for (int64_t c = 0; c < columns; c++) {
                x[(first + i) * columns + c] =
                    real_at(d, d->buffer, i * k + c) * sqrt(s->b->square[c]);
            }
        }
    }
    return FRG_OK;
}

/** A few numbers; the next wait ends the use of s->copy. */
static frg_status put_small(solve *s, int which, const double *x, int64_t count)
{
    const fe_device *const d = s->d;
    const frgi_buffer to = frgi_fe_device_range(d, which, 0, count);
    for (int64_t i = 0; i < count; i++) {
        set_real(d, s->copy, i, x[i]);
    }
    return frgi_device_put(d->dev, to, s->copy, to.bytes);
}

static frg_status put_counts(solve *s)
{
    const size_t bytes = (size_t)(FDC_COUNT * s->d->columns) * sizeof *s->count;
    return frgi_device_put(s->d->dev, s->d->counts, s->count, bytes);
}

/** Scalars of the start: ||b|| is 1. */
static void set_state(solve *s)
{
    const int k = s->d->columns;
    for (int c = 0; c < k; c++) {
        double *const x = s->state + c;
        const double al = s->q[c].al;
        x[FLS_AL * k] = x[FLS_AB * k] = x[FLS_ZB * k] = x[FLS_A * k] = al;
        x[FLS_RHO * k] = x[FLS_RB * k] = x[FLS_CB * k] = 1;
        x[FLS_BDD * k] = x[FLS_RD * k] = x[FLS_R * k] = x[FLS_COND * k] = 1;
        x[FLS_SQUARE * k] = al * al;
        x[FLS_MN * k] = FLT_MAX;
    }
}

/** Targets, norms and counts; a column of float cannot be asked for more than its gain. */
static void study(solve *s)
{
    const int k = s->d->columns;
    for (int c = 0; c < k; c++) {
        const bool idle = c >= s->b->columns;
        const double be = idle ? 0 : sqrt(s->b->square[c]);
        const double al_be = idle ? 0 : sqrt(s->b->gradient_square[c]);
        const double al = be > 0 ? al_be / be : 0;
        const double gain = s->d->real == sizeof(float) ? frgi_fe_gain_f32 * al : 0;
        s->atol[c] = fmax(s->rule->atol, gain);
        s->q[c] = frgi_lsmr_begin(1, al);
        s->count[FDC_STEPS * k + c] = 0;
        s->count[FDC_DONE * k + c] = al > 0 ? FD_RUNNING : FL_ZERO;
        s->count[FDC_MOST * k + c] = (int32_t)s->most;
    }
    set_state(s);
}

static frg_status put_targets(solve *s)
{
    const fe_device *const d = s->d;
    const int k = d->columns;
    const double limit = s->rule->cond_limit > 0 ? 1 / s->rule->cond_limit : 0;
    double target[FLG_COUNT * FE_MAX_LANES];
    for (int c = 0; c < k; c++) {
        target[FLG_ATOL * k + c] = s->atol[c];
        target[FLG_BTOL * k + c] = s->rule->btol;
        target[FLG_COND * k + c] = limit;
        target[FLG_EPSILON * k + c] = DBL_EPSILON / 2;
    }
    TRY(put_small(s, FL_GOAL, target, FLG_COUNT * k));
    TRY(frgi_device_wait(d->dev));
    TRY(put_small(s, FL_STATE, s->state, FLS_COUNT * k));
    TRY(frgi_device_wait(d->dev));
    double step[FLC_COUNT * FE_MAX_LANES] = {0};
    for (int c = 0; c < k; c++) {
        step[FLC_BACK * k + c] = s->q[c].al * s->back[c];
    }
    TRY(put_small(s, FL_STEP, step, FLC_COUNT * k));
    TRY(put_counts(s));
    return frgi_device_wait(d->dev);
}

/** u = b / ||b||, or b, h = v = A'b / ||A'b||, hb = x = 0. */
static frg_status begin(solve *s)
{
    fe_device *const d = s->d;
    const int64_t columns = s->b->columns, unknowns = d->design.unknowns * d->columns;
    double of_b[FE_MAX_LANES], of_gradient[FE_MAX_LANES];
    for (int64_t c = 0; c < columns; c++) {
        of_b[c] = s->b->square[c] > 0 ? 1 / sqrt(s->b->square[c]) : 0;
        of_gradient[c] = s->b->gradient_square[c] > 0 ? 1 / sqrt(s->b->gradient_square[c]) : 0;
    }
    TRY(s->b->b ? put_lanes(d, FL_U, s->b->b, d->g->n, columns, of_b, NULL)
                : frgi_fe_device_columns_copy(d, &s->b->block, s->b->k, d->v, d->at[FL_U]));
    for (int64_t c = 0; c < columns; c++) {
        s->back[c] = s->b->b ? 1 : of_b[c];
    }
    TRY(put_lanes(d, FL_V, s->b->gradient, d->design.unknowns, columns, of_gradient, NULL));
    TRY(put_lanes(d, FL_SCALED, s->b->gradient, d->design.unknowns, columns, of_gradient,
                  d->design.inverse));
    const frgi_buffer v = frgi_fe_device_range(d, FL_V, 0, unknowns);
    const frgi_buffer h = frgi_fe_device_range(d, FL_H, 0, unknowns);
    const frgi_buffer h_bar = frgi_fe_device_range(d, FL_H_BAR, 0, unknowns);
    const frgi_buffer x = frgi_fe_device_range(d, FL_X, 0, unknowns);
    TRY(frgi_device_copy(d->dev, h, v, v.bytes));
    TRY(frgi_device_fill(d->dev, h_bar, 0, h_bar.bytes));
    TRY(frgi_device_fill(d->dev, x, 0, x.bytes));
    return put_targets(s);
}

/** The new u and v, before their norms are known. */
static frg_status bidiagonalise(fe_device *d, int slot)
{
    TRY(LAUNCH(d->dev, d->program, "lsmr_rows", d->at[FD_SPREADS], 1, d->group, BUFFER(d->v),
               BUFFER(frgi_fe_device_values(d)), BUFFER(d->rows.w), BUFFER(d->counts),
               BUFFER(d->places), INT32(slot)));
    TRY(frgi_fe_device_pieces(d, slot));
    return LAUNCH(d->dev, d->program, "lsmr_levels", d->at[FD_UPDATES], 1, d->group, BUFFER(d->v),
                  BUFFER(d->rows.w), BUFFER(d->counts), BUFFER(d->places), INT32(slot));
}

static frg_status step(fe_device *d, int slot, bool fused)
{
    return LAUNCH(d->dev, d->program, "lsmr_step", d->at[FD_UPDATES], 1, d->group, BUFFER(d->v),
                  BUFFER(d->counts), BUFFER(d->places), INT32(slot), INT32(fused));
}

static int running(const solve *s)
{
    int columns = 0;
    for (int c = 0; c < s->d->columns; c++) {
        columns += s->count[FDC_DONE * s->d->columns + c] == FD_RUNNING;
    }
    return columns;
}

static frg_status heartbeat(const solve *s, int64_t made)
{
    const int k = s->d->columns;
    double worst = 0;
    for (int c = 0; c < k; c++) {
        const double size = s->state[FLS_A * k + c] * s->state[FLS_R * k + c];
        worst = size > 0 ? fmax(worst, fabs(s->state[FLS_ZB * k + c]) / size) : worst;
    }
    return frgi_heartbeat(s->d->ctx, &(frg_progress){.solver = s->rule->solver,
                                                     .phase = s->rule->phase,
                                                     .done = made,
                                                     .total = s->most,
                                                     .residual = worst,
                                                     .target = s->rule->atol});
}

/* ---- fused: the scalars stay on the device --------------------------------------------------- */

/** The counts and states of all columns; the one wait between two batches. */
static frg_status poll(solve *s, int slot)
{
    fe_device *const d = s->d;
    const int64_t count = FLS_COUNT * d->columns;
    const frgi_buffer of = frgi_fe_device_range(d, FL_STATE, slot * count, count);
    TRY(frgi_device_get(d->dev, s->copy, of, of.bytes));
    TRY(frgi_fe_device_get_counts(d, slot, s->count));
    TRY(frgi_device_wait(d->dev));
    for (int64_t i = 0; i < count; i++) {
        s->state[i] = real_at(d, s->copy, i);
    }
    return FRG_OK;
}

static frg_status run_fused(solve *s)
{
    fe_device *const d = s->d;
    frg_status beat = FRG_OK;
    int slot = 0;
    for (int64_t made = 0, batch = 1; running(s) > 0 && beat == FRG_OK;
         batch = 2 * batch < FE_DEVICE_BATCH ? 2 * batch : FE_DEVICE_BATCH) {
        for (int64_t q = 0; q < batch; q++, made++) {
            TRY(bidiagonalise(d, slot));
            TRY(step(d, slot, true));
            slot = 1 - slot;
        }
        TRY(poll(s, slot));
        beat = heartbeat(s, made < s->most ? made : s->most);
    }
    TRY(frgi_fe_device_get_history(d, s->count));
    return beat;
}

/* ---- eager: the host computes the scalars of every step -------------------------------------- */

/** The sums of the groups of `which`, which lie in the buffer from *at on. */
static void add_groups(const fe_device *d, int64_t groups, int64_t *at, double *sum)
{
    for (int c = 0; c < d->columns; c++) {
        sum[c] = 0;
        for (int64_t g = 0; g < groups; g++) {
            sum[c] += real_at(d, d->buffer, *at + g * d->columns + c);
        }
    }
    *at += groups * d->columns;
}

/** ||u||^2 and ||v||^2 of this step, ||x||^2 of the last: the one wait of a step. */
static frg_status get_sums(fe_device *d, double *u, double *v, double *x)
{
    const int64_t groups[] = {d->at[FD_SPREADS], d->at[FD_UPDATES], d->at[FD_UPDATES]};
    const int64_t from[] = {0, 0, d->at[FD_UPDATES] * d->columns};
    static const int which[] = {FD_OF_SPREADS, FL_OF_V, FL_OF_X};
    double *const sums[] = {u, v, x};
    char *to = (char *)d->buffer;
    for (int q = 0; q < 3; q++) {
        const frgi_buffer of = frgi_fe_device_range(d, which[q], from[q], groups[q] * d->columns);
        TRY(frgi_device_get(d->dev, to, of, of.bytes));
        to += of.bytes;
    }
    TRY(frgi_device_wait(d->dev));
    int64_t at = 0;
    for (int q = 0; q < 3; q++) {
        add_groups(d, groups[q], &at, sums[q]);
    }
    return FRG_OK;
}

/** T = B'B as far as the step has made it, as the kernels record it. */
static void record_step(const fe_device *d, int c, const frgi_lsmr_scalars *q, double al_before)
{
    const int64_t k = d->columns, at = q->k - 1;
    double *const below2 = d->history + FD_KNOWN * k;
    if (at < FD_KNOWN) {
        d->history[at * k + c] = al_before * al_before + q->be * q->be;
    }
    if (at + 1 < FD_KNOWN) {
        below2[(at + 1) * k + c] = q->al * q->al * q->be * q->be;
    }
}

/** The scalars of column c's step from the three sums, or its stop. */
static void advance(solve *s, int c, double u, double v, double x, double *coefficient)
{
    const int k = s->d->columns;
    frgi_lsmr_scalars *const q = &s->q[c];
    frgi_lsmr_rule rule = *s->rule;
    rule.atol = s->atol[c];
    q->norm.x = sqrt(x);
    const int stop = q->k > 0 ? (int)frgi_lsmr_why_stop(q, &rule) : FD_RUNNING;
    s->count[FDC_DONE * k + c] = stop;
    if (stop != FD_RUNNING) {
        return;
    }
    const double al_before = q->al;
    q->be = sqrt(u);
    q->al = sqrt(v);
    const frgi_lsmr_coefficients to = frgi_lsmr_advance(q, 0);
    record_step(s->d, c, q, al_before);
    coefficient[FLC_H_BAR * k + c] = to.hb;
    coefficient[FLC_X * k + c] = to.x;
    coefficient[FLC_H * k + c] = to.h;
    coefficient[FLC_V * k + c] = q->al > 0 ? 1 / q->al : 0;
    coefficient[FLC_BACK * k + c] = q->be > 0 ? q->al / q->be : 0;
    s->count[FDC_STEPS * k + c] = (int32_t)q->k;
    s->state[FLS_A * k + c] = q->norm.a;
    s->state[FLS_R * k + c] = q->norm.r;
    s->state[FLS_ZB * k + c] = q->norm.ar;
}

static frg_status run_eager(solve *s)
{
    fe_device *const d = s->d;
    frg_status beat = FRG_OK;
    double u[FE_MAX_LANES], v[FE_MAX_LANES], x[FE_MAX_LANES];
    double coefficient[FLC_COUNT * FE_MAX_LANES] = {0};
    for (int64_t made = 0; running(s) > 0 && beat == FRG_OK; made++) {
        TRY(bidiagonalise(d, 0));
        TRY(get_sums(d, u, v, x));
        for (int c = 0; c < d->columns; c++) {
            if (s->count[FDC_DONE * d->columns + c] == FD_RUNNING) {
                advance(s, c, u[c], v[c], x[c], coefficient);
            }
        }
        TRY(put_small(s, FL_STEP, coefficient, FLC_COUNT * d->columns));
        TRY(put_counts(s));
        TRY(step(d, 0, false));
        beat = heartbeat(s, made < s->most ? made : s->most);
    }
    TRY(frgi_device_wait(d->dev));
    return beat;
}

frg_status frgi_fe_device_lsmr(fe_device *d, const fe_device_system *b, const frgi_lsmr_rule *rule,
                               double *x, fe_device_column columns[])
{
    const int64_t most = rule->max_iter < INT32_MAX ? rule->max_iter : INT32_MAX - 1;
    solve s = {.d = d, .b = b, .rule = rule, .most = most};
    TRY(frgi_fe_device_prepare(d, (int)b->columns));
    study(&s);
    TRY(begin(&s));
    const frg_status beat = d->eager ? run_eager(&s) : run_fused(&s);
    TRY(beat);
    TRY(get_answer(&s, x));
    for (int c = 0; c < b->columns; c++) {
        const int64_t steps = s.count[FDC_STEPS * d->columns + c];
        columns[c] = (fe_device_column){
            .stop = (frg_lsmr_stop)s.count[FDC_DONE * d->columns + c],
            .steps = steps,
            .norm_a = s.state[FLS_A * d->columns + c],
            .lambda = frgi_fe_device_ritz(d, c, steps),
        };
    }
    return beat;
}
