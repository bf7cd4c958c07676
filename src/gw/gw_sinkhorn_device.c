/* gw_sinkhorn_device.c - the host's side of kernels/gw/gw_sinkhorn.cl.h.
 *
 * A run is one or two stages on the same problem.  `loop` has floats and the costs in the form of
 * cost_store; `end`, where the device has doubles, begins with the loop's potentials and goes on
 * in f64 over the costs as they were given until the error holds there.  Passes are submitted in
 * batches of 1, 2, 4, 8, 8, ...; between two polls nothing waits.  Potentials inside of the
 * exponents are taken anew where a poll finds that they have moved too far.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_marginals.h"
#include "gw/gw_sinkhorn.h"
#include "gw/gw_stage_device.h"

struct frgi_sinkhorn_device {
    frgi_stage_place place;
    frgi_stage loop, end;
    frgi_buffer given; /* the costs in their type, or as floats where there are no doubles */
    frgi_device_arena memory;
    double *by_row; /* n: costs of rows */
};

/* ---- memory ---------------------------------------------------------------------------------- */

/** Bytes of an element of the costs on the device; of the copy for the loop, 0: it reads them. */
static size_t given_size(const frg_sinkhorn *s)
{
    return s->device->end.on && s->cost.dtype == FRG_F64 ? sizeof(double) : sizeof(float);
}

static size_t loop_size(const frg_sinkhorn *s)
{
    return !s->device->loop.on                        ? 0
           : s->report.cost_store == FRG_GW_STORE_U16 ? sizeof(uint16_t)
           : given_size(s) == sizeof(double)          ? sizeof(float)
                                                      : 0;
}

static void layout(const frg_sinkhorn *s, frgi_device_arena *a)
{
    frgi_sinkhorn_device *const d = s->device;
    const size_t entries = (size_t)s->cost.shape[0] * (size_t)s->cost.shape[1];
    d->given = frgi_device_take(a, entries * given_size(s));
    d->loop.costs = loop_size(s) ? frgi_device_take(a, entries * loop_size(s)) : d->given;
    d->end.costs = d->given;
    frgi_stage_take(a, &d->loop);
    frgi_stage_take(a, &d->end);
}

/* ---- opening --------------------------------------------------------------------------------- */

frg_status frgi_sinkhorn_device_check(const frg_sinkhorn *s, frgi_device *dev)
{
    static const struct {
        frg_gw_store store;
        const char *what;
    } refused[] = {{FRG_GW_STORE_U16R, "cost_store u16r"}, {FRG_GW_STORE_FLY, "cost_store fly"}};
    const char *what = s->o.domain == FRG_GW_DOMAIN_KERNEL ? "domain kernel" : NULL;
    what = s->o.auto_store ? "auto_store" : what;
    for (size_t q = 0; q < sizeof refused / sizeof *refused; q++) {
        what = s->o.cost_store == refused[q].store ? refused[q].what : what;
    }
    if (what) {
        FAIL(s->ctx, E_DEVICE_STEP, "sinkhorn: %s does not run on %s", what, frgi_device_name(dev));
    }
    return FRG_OK;
}

static frg_status open_stages(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    const bool doubles = frgi_device_is(d->place.dev)->f64 != 0;
    const frg_gw_store store = s->report.cost_store;
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    const bool floats = s->cost.dtype == FRG_F32;
    if (store != FRG_GW_STORE_F64) {
        TRY(frgi_stage_open(&d->place, &d->loop, FRGI_F32, n, m));
    }
    if (doubles || store == FRG_GW_STORE_F64) {
        TRY(frgi_stage_open(&d->place, &d->end, FRGI_F64, n, m));
    }
    d->loop.rows = store == FRG_GW_STORE_U16 ? "sinkhorn_rows_fixed" : "sinkhorn_rows";
    d->loop.columns = store == FRG_GW_STORE_U16 ? "sinkhorn_columns_fixed" : "sinkhorn_columns";
    d->end.rows = floats ? "sinkhorn_rows_float" : "sinkhorn_rows";
    d->end.columns = floats ? "sinkhorn_columns_float" : "sinkhorn_columns";
    return FRG_OK;
}

/** Rows first .. last-1 of the costs in the type that they have on the device. */
static void pack_rows(const frg_sinkhorn *s, int64_t first, int64_t last)
{
    const frg_array *const c = &s->cost;
    const int64_t m = c->shape[1];
    const bool wide = given_size(s) == sizeof(double);
    for (int64_t i = first; i < last; i++) {
        const char *const row =
            frgi_array_base(c) + i * c->stride[0] * (int64_t)frg_sizeof(c->dtype);
        for (int64_t j = 0; j < m; j++) {
            const double x = c->dtype == FRG_F64
                                 ? ((const double *)(const void *)row)[j * c->stride[1]]
                                 : (double)((const float *)(const void *)row)[j * c->stride[1]];
            if (wide) {
                ((double *)s->device->place.buffer)[(i - first) * m + j] = x;
            } else {
                ((float *)s->device->place.buffer)[(i - first) * m + j] = (float)x;
            }
        }
    }
}

static frg_status put_costs(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    const size_t row = (size_t)m * given_size(s);
    const int64_t each = (int64_t)(d->place.room / row) > 1 ? (int64_t)(d->place.room / row) : 1;
    for (int64_t first = 0; first < n; first += each) {
        const int64_t last = first + each < n ? first + each : n;
        const size_t bytes = (size_t)(last - first) * row;
        pack_rows(s, first, last);
        const frgi_buffer to = {d->given.handle, d->given.offset + (size_t)first * row, bytes};
        TRY(frgi_device_put(d->place.dev, to, d->place.buffer, bytes));
        TRY(frgi_device_wait(d->place.dev));
    }
    const int64_t entries = n * m, groups = (entries + SK_NARROW - 1) / SK_NARROW;
    const frgi_program *const from =
        d->end.on && given_size(s) == sizeof(double) ? d->end.program : d->loop.program;
    if (loop_size(s) == sizeof(uint16_t)) {
        const double step = (s->high - s->low) / 65535;
        TRY(LAUNCH(d->place.dev, from, "sinkhorn_fix", groups, 1, d->place.group,
                   BUFFER(d->loop.costs), BUFFER(d->given), INT64(entries), REAL(s->low),
                   REAL(step > 0 ? 1 / step : 0)));
    } else if (loop_size(s)) {
        TRY(LAUNCH(d->place.dev, from, "sinkhorn_narrow", groups, 1, d->place.group,
                   BUFFER(d->loop.costs), BUFFER(d->given), INT64(entries)));
    }
    return frgi_device_wait(d->place.dev);
}

static frg_status set_problem(const frg_sinkhorn *s, frgi_stage *g)
{
    const frgi_sinkhorn_device *const d = s->device;
    /* what floats cannot tell is left to the doubles that follow */
    const bool hands_on = g == &d->loop && d->end.on && s->o.tol > 0;
    const frgi_stage_problem of = {.epsilon = s->o.epsilon,
                                   .tol = hands_on ? fmax(s->o.tol, frgi_stage_noise(g, s->t.s.n))
                                                   : s->o.tol,
                                   .low = s->low,
                                   .step = (s->high - s->low) / 65535};
    return frgi_stage_set(&d->place, g, &s->t, &of);
}

frg_status frgi_sinkhorn_device_open(frg_sinkhorn *s, frgi_sinkhorn_place where)
{
    frg_context *const ctx = s->ctx;
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    frgi_sinkhorn_device *d;
    TRY(NEW0(ctx, &d, 1, "a Sinkhorn solver on a device"));
    s->device = d;
    TRY(frgi_stage_place_open(&d->place, ctx, where.dev, where.group, n > m ? n : m));
    TRY(open_stages(s));
    TRY(NEW(ctx, &d->by_row, n, "costs"));
    d->memory.align = frgi_device_is(d->place.dev)->align;
    layout(s, &d->memory);
    TRY(frgi_device_arena_open(&d->memory, d->place.dev, "transport on a device"));
    layout(s, &d->memory);
    TRY(put_costs(s));
    if (d->loop.on) {
        TRY(set_problem(s, &d->loop));
    }
    return d->end.on ? set_problem(s, &d->end) : FRG_OK;
}

void frgi_sinkhorn_device_close(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    if (!d) {
        return;
    }
    frgi_device_arena_close(&d->memory, d->place.dev);
    frgi_stage_place_close(&d->place);
    DROP(s->ctx, &d->by_row);
    DROP(s->ctx, &s->device);
}

/* ---- passes ---------------------------------------------------------------------------------- */

static frg_status run_stage(frg_sinkhorn *s, frgi_stage *g, frgi_stage_state *st)
{
    const size_t each = g == &s->device->loop && loop_size(s) ? loop_size(s) : given_size(s);
    const frgi_stage_run_limits limits = {
        .most = s->o.max_iter - s->t.passes,
        .pass_bytes = (double)(s->cost.shape[0] * s->cost.shape[1]) * (double)each,
        .phase = "sinkhorn",
        .total = s->o.max_iter,
        .target = s->o.tol};
    return frgi_stage_run(&s->device->place, g, &s->t, &limits, st);
}

frg_status frgi_sinkhorn_device_passes(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    frgi_transport *const t = &s->t;
    frgi_stage_state st = {.of = {[SKS_ERROR] = INFINITY}};
    frg_status status = FRG_OK;
    if (d->loop.on) {
        status = run_stage(s, &d->loop, &st);
    }
    if (status == FRG_OK && d->end.on && t->passes < s->o.max_iter) {
        status = run_stage(s, &d->end, &st);
    }
    t->last.error = st.of[SKS_ERROR];
    t->last.at_floor = st.count[SKC_DONE] == SKD_AT_FLOOR;
    t->last.out_of_range = 0;
    t->floor.least = st.of[SKS_LEAST];
    return status;
}

bool frgi_sinkhorn_device_finishes(const frg_sinkhorn *s)
{
    return s->device && s->device->end.on;
}

const char *frgi_sinkhorn_device_name(const frg_sinkhorn *s)
{
    return s->device ? frgi_device_name(s->device->place.dev) : "cpu";
}

/* ---- the plan -------------------------------------------------------------------------------- */

/** <C, P> of the plan as it is rounded. */
static frg_status cost_of_plan(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    frgi_stage *const g = &d->end;
    const int64_t n = s->t.s.n;
    const bool floats = s->cost.dtype == FRG_F32;
    TRY(LAUNCH(d->place.dev, g->program,
               floats ? "sinkhorn_plan_costs_float" : "sinkhorn_plan_costs",
               (n + SK_ROWS - 1) / SK_ROWS, 1, d->place.group, BUFFER(g->costs), BUFFER(g->v),
               BUFFER(g->at)));
    TRY(frgi_stage_get(&d->place, g, SK_ROW_COST, d->by_row, n));
    s->report.cost = frgi_transport_sum(d->by_row, n);
    return FRG_OK;
}

frg_status frgi_sinkhorn_device_finish(frg_sinkhorn *s, frgi_marginal_error *before,
                                       frgi_marginal_error *after)
{
    const frgi_stage_plan plan = {&s->device->place, &s->device->end, &s->t,
                                  s->cost.dtype == FRG_F32};
    TRY(frgi_stage_finish(&plan, s->o.round != 0, before, after));
    return cost_of_plan(s);
}
