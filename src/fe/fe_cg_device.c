/* fe_cg_device.c - the host's side of kernels/fe/fe_cg.cl.h: conjugate gradients.
 *
 * Steps are submitted in batches, four kernels each; kernels behind a column's last step leave it
 * alone, and those behind the last of all do nothing.
 */
#include <math.h>
#include <string.h>

#include "fe/fe_device_rows.h"

#include "fe/fe_at.cl.h"

extern const frgi_kernels frgi_kernels_fe;
static const frgi_kernels *const kernels = &frgi_kernels_fe;

static void place_levels(fe_device *d, int64_t *used)
{
    frgi_fe_device_place_at(d, FD_BASE, d->g->n_reduced, used);
    frgi_fe_device_place_at(d, FD_INVERSE, d->g->n_reduced, used);
}

static void place_columns(fe_device *d, int64_t *used)
{
    const int64_t k = d->at[FD_K], unknowns = d->g->n_reduced * k;
    frgi_fe_device_place_at(d, FD_TARGET, FDT_COUNT * k, used);
    frgi_fe_device_place_at(d, FD_STATE, 2 * FDS_COUNT * k, used);
    frgi_fe_device_place_at(d, FD_ALPHA, k, used);
    frgi_fe_device_place_at(d, FD_A, unknowns, used);
    frgi_fe_device_place_at(d, FD_RESIDUAL, unknowns, used);
    frgi_fe_device_place_at(d, FD_P, unknowns, used);
    frgi_fe_device_place_at(d, FD_OF_UPDATES, d->at[FD_UPDATES] * 3 * k, used);
}

static frg_status put_levels(fe_device *d, double *scratch)
{
    const fe_rows *const g = d->g;
    for (int64_t l = 0; l < g->n_reduced; l++) {
        scratch[l] = d->by_level ? g->level_weight[l] : 0;
    }
    TRY(frgi_fe_device_put(d, FD_BASE, scratch, g->n_reduced));
    for (int64_t l = 0; l < g->n_reduced; l++) {
        scratch[l] = d->plain ? 1 : g->level_inverse[l];
    }
    return frgi_fe_device_put(d, FD_INVERSE, scratch, g->n_reduced);
}

const fe_device_method frgi_fe_device_cg_method = {
    .name = {"cg rows on a device", "cg rows on a device, float32"},
    .kernels = &kernels,
    .by_level = true,
    .place_levels = place_levels,
    .place_columns = place_columns,
    .put_levels = put_levels,
};

/** Where a solve is. */
typedef struct {
    int slot;
    int32_t count[FDC_COUNT * FE_MAX_LANES];
    double state[FDS_COUNT * FE_MAX_LANES];
} progress;

static frg_status update(fe_device *d, int slot, bool start)
{
    return LAUNCH(d->dev, d->program, "fe_update", d->at[FD_UPDATES], 1, d->group, BUFFER(d->v),
                  BUFFER(d->rows.w), BUFFER(d->counts), BUFFER(d->places), INT32(slot),
                  INT32(start));
}

static frg_status direction(fe_device *d, int slot, bool start)
{
    return LAUNCH(d->dev, d->program, "fe_direction", d->at[FD_UPDATES], 1, d->group, BUFFER(d->v),
                  BUFFER(d->counts), BUFFER(d->places), INT32(slot), INT32(start));
}

static frg_status submit(fe_device *d, int64_t steps, int *slot)
{
    for (int64_t s = 0; s < steps; s++) {
        TRY(LAUNCH(d->dev, d->program, "fe_spread", d->at[FD_SPREADS], 1, d->group, BUFFER(d->v),
                   BUFFER(d->rows.w), BUFFER(d->counts), BUFFER(d->places), INT32(*slot)));
        TRY(frgi_fe_device_pieces(d, *slot));
        TRY(update(d, *slot, false));
        TRY(direction(d, *slot, false));
        *slot = 1 - *slot;
    }
    return FRG_OK;
}

/** The counts and states of all columns; the one wait between two batches. */
static frg_status poll(fe_device *d, progress *p)
{
    const int64_t k = d->columns;
    float narrow[FDS_COUNT * FE_MAX_LANES];
    const bool wide = d->real == sizeof(double);
    const frgi_buffer of =
        frgi_fe_device_range(d, FD_STATE, p->slot * FDS_COUNT * k, FDS_COUNT * k);
    TRY(frgi_device_get(d->dev, wide ? (void *)p->state : narrow, of, of.bytes));
    TRY(frgi_fe_device_get_counts(d, p->slot, p->count));
    TRY(frgi_device_wait(d->dev));
    for (int64_t i = 0; i < FDS_COUNT * k && !wide; i++) {
        p->state[i] = (double)narrow[i];
    }
    return FRG_OK;
}

static frg_status put_targets(fe_device *d, const fe_cg_target *target, int64_t max_steps)
{
    const int k = d->columns;
    double numbers[FDT_COUNT * FE_MAX_LANES];
    int32_t count[FDC_COUNT * FE_MAX_LANES] = {0};
    for (int c = 0; c < k; c++) {
        const fe_cg_target *const t = &target[c];
        numbers[FDT_WEIGHT * k + c] = t->total_weight;
        numbers[FDT_WITHIN * k + c] = t->within;
        numbers[FDT_NOISE * k + c] = t->noise;
        numbers[FDT_TOTAL * k + c] = t->total;
        numbers[FDT_TOL * k + c] = t->tol;
        numbers[FDT_FLOOR * k + c] = t->floor;
        numbers[FDT_GAIN * k + c] = d->real == sizeof(double) ? 0 : frgi_fe_gain_f32;
        const int64_t most = t->most < max_steps ? t->most : max_steps;
        count[FDC_MOST * k + c] = (int32_t)(most < INT32_MAX ? most : INT32_MAX);
    }
    TRY(frgi_fe_device_put(d, FD_TARGET, numbers, FDT_COUNT * k));
    TRY(frgi_device_put(d->dev, d->counts, count, (size_t)(FDC_COUNT * k) * sizeof *count));
    return frgi_device_wait(d->dev);
}

/** How the columns ended; their smallest Ritz values. */
static frg_status finish(fe_device *d, const progress *p, fe_cg_column *column)
{
    const int k = d->columns;
    TRY(frgi_fe_device_get_history(d, p->count));
    for (int c = 0; c < k; c++) {
        const int done = p->count[FDC_DONE * k + c];
        const int64_t steps = p->count[FDC_STEPS * k + c];
        const double rho = p->state[FDS_RHO * k + c], first = p->state[FDS_FIRST_RHO * k + c];
        column[c] = (fe_cg_column){
            .steps = steps,
            .done = done == FD_REACHED || done == FD_NULL,
            .given_up = done == FD_GIVEN_UP,
            .energy = p->state[FDS_ENERGY * k + c],
            .rate = steps > 0 && first > 0 ? pow(rho / first, 0.5 / (double)steps) : 0,
            .lambda = frgi_fe_device_ritz(d, c, steps)};
    }
    return FRG_OK;
}

/** Columns that go on, and the largest of their residuals. */
static int count_running(const fe_device *d, const progress *p, const fe_cg_target *target,
                         double *worst)
{
    const int k = d->columns;
    int running = 0;
    *worst = 0;
    for (int c = 0; c < k; c++) {
        if (p->count[FDC_DONE * k + c] == FD_RUNNING) {
            running++;
            *worst = fmax(*worst, sqrt(p->state[FDS_GRADIENT * k + c] / target[c].total));
        }
    }
    return running;
}

frg_status frgi_fe_device_cg(fe_device *d, const fe_cg_work *w, int lanes, int64_t max_steps,
                             const char *phase, const fe_cg_target *target, fe_cg_column *column)
{
    const int64_t length = d->g->n_reduced * lanes;
    progress p = {.slot = 0};
    frg_status beat = FRG_OK;
    double worst;
    TRY(frgi_fe_device_prepare(d, lanes));
    const frgi_buffer a = frgi_fe_device_range(d, FD_A, 0, length);
    TRY(frgi_device_fill(d->dev, a, 0, a.bytes));
    TRY(frgi_fe_device_put(d, FD_RESIDUAL, w->r, length));
    TRY(put_targets(d, target, max_steps));
    TRY(update(d, p.slot, true));
    TRY(direction(d, p.slot, true));
    p.slot = 1 - p.slot;
    TRY(poll(d, &p));
    int running = count_running(d, &p, target, &worst);
    for (int64_t made = 0, batch = 1; running > 0 && made < max_steps && beat == FRG_OK;
         batch = 2 * batch < FE_DEVICE_BATCH ? 2 * batch : FE_DEVICE_BATCH) {
        const int64_t steps = batch < max_steps - made ? batch : max_steps - made;
        TRY(submit(d, steps, &p.slot));
        TRY(poll(d, &p));
        made += steps;
        running = count_running(d, &p, target, &worst);
        beat = frgi_heartbeat(d->ctx, &(frg_progress){.solver = "fe",
                                                      .phase = phase,
                                                      .done = made,
                                                      .total = max_steps,
                                                      .residual = worst,
                                                      .target = target[0].tol});
    }
    TRY(frgi_fe_device_get(d, FD_A, 0, w->x, length));
    TRY(frgi_fe_device_get(d, FD_RESIDUAL, 0, w->r, length));
    TRY(finish(d, &p, column));
    return beat;
}
