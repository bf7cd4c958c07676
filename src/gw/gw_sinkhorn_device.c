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
    frgi_buffer own;   /* where they lie already; empty: on the host */
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

/** Costs on the device that kernels read as they are. */
static bool without_gaps(const frg_sinkhorn *s)
{
    const frg_array *const c = &s->cost;
    return s->device->own.bytes > 0 && (c->stride[1] == 1 || c->shape[1] == 1) &&
           (c->stride[0] == c->shape[1] || c->shape[0] == 1);
}

static void layout(const frg_sinkhorn *s, frgi_device_arena *a)
{
    frgi_sinkhorn_device *const d = s->device;
    const size_t entries = (size_t)s->cost.shape[0] * (size_t)s->cost.shape[1];
    d->given = without_gaps(s) ? d->own : frgi_device_take(a, entries * given_size(s));
    d->loop.costs = loop_size(s) ? frgi_device_take(a, entries * loop_size(s)) : d->given;
    d->end.costs = d->given;
    frgi_stage_take(a, &d->loop);
    frgi_stage_take(a, &d->end);
}

/* ---- costs that lie there -------------------------------------------------------------------- */

bool frgi_sinkhorn_is_away(const frg_sinkhorn *s)
{
    return s->device && s->device->own.bytes > 0;
}

/** The kernel of that name for costs of their type, in the program of doubles. */
#define OF_COSTS(s, name) ((s)->cost.dtype == FRG_F32 ? name "_float" : name)

/** E_DISTANCE for entry (i, j). */
static frg_status refuse_entry(const frg_sinkhorn *s, int64_t i, int64_t j)
{
    frgi_device *const dev = s->device->place.dev;
    const frg_array *const c = &s->cost;
    const size_t bytes = frg_sizeof(c->dtype);
    const size_t at = (size_t)(i * c->stride[0] + j * c->stride[1]) * bytes;
    double wide = 0;
    float narrow = 0;
    TRY(frgi_device_get(dev, bytes == sizeof wide ? (void *)&wide : &narrow,
                        frgi_device_slice(s->device->own, at, bytes), bytes));
    TRY(frgi_device_wait(dev));
    frgi_at(s->ctx, "cost, row %lld, column %lld", (long long)i + 1, (long long)j + 1);
    FAIL(s->ctx, E_DISTANCE, "an entry is %g", bytes == sizeof wide ? wide : (double)narrow);
}

/** The smallest entry and the largest from those of `groups` groups of rows, or the first that is
 *  not finite. */
static frg_status check_ranges(frg_sinkhorn *s, const double *of, int64_t groups)
{
    const int64_t m = s->cost.shape[1];
    s->low = (double)INFINITY;
    s->high = -(double)INFINITY;
    for (int64_t q = 0; q < groups; q++) {
        const double *const x = of + q * SK_SEEN_COUNT;
        if (x[SK_SEEN_BAD] >= 0) {
            const int64_t e = (int64_t)x[SK_SEEN_BAD];
            return refuse_entry(s, q * SK_ROWS + e / m, e % m);
        }
        s->low = fmin(s->low, x[SK_SEEN_LEAST]);
        s->high = fmax(s->high, x[SK_SEEN_MOST]);
    }
    return FRG_OK;
}

static frg_status see_entries(frg_sinkhorn *s, const frgi_program *program, frgi_buffer seen,
                              double *of, int64_t groups)
{
    const frgi_stage_place *const p = &s->device->place;
    const frg_array *const c = &s->cost;
    TRY(LAUNCH(p->dev, program, OF_COSTS(s, "sinkhorn_see"), groups, 1, p->group, BUFFER(seen),
               BUFFER(s->device->own), INT64(c->shape[0]), INT64(c->shape[1]), INT64(c->stride[0]),
               INT64(c->stride[1])));
    TRY(frgi_device_get(p->dev, of, seen, seen.bytes));
    TRY(frgi_device_wait(p->dev));
    return check_ranges(s, of, groups);
}

/** s->low, s->high of costs that lie on the device. */
static frg_status survey(frg_sinkhorn *s)
{
    frgi_device *const dev = s->device->place.dev;
    const int64_t groups = (s->cost.shape[0] + SK_ROWS - 1) / SK_ROWS;
    const size_t bytes = (size_t)groups * SK_SEEN_COUNT * sizeof(double);
    const frgi_program *program;
    frgi_buffer seen = {0};
    double *of;
    TRY(frgi_device_load(dev, &frgi_kernels_gw, FRGI_F64, &program));
    TRY(NEW(s->ctx, &of, groups * SK_SEEN_COUNT, "ranges of costs"));
    frg_status status = frgi_device_alloc(dev, bytes, "ranges of costs", &seen);
    if (status >= 0) {
        status = see_entries(s, program, seen, of, groups);
    }
    frgi_device_free(dev, &seen);
    DROP(s->ctx, &of);
    return status;
}

frg_status frgi_sinkhorn_device_take(frg_sinkhorn *s, frgi_sinkhorn_place where)
{
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    frgi_sinkhorn_device *d;
    TRY(NEW0(s->ctx, &d, 1, "a Sinkhorn solver on a device"));
    s->device = d;
    TRY(frgi_stage_place_open(&d->place, s->ctx, where.dev, where.group, n > m ? n : m));
    if (s->cost.device.kind == FRG_CPU) {
        return FRG_OK;
    }
    if (!frgi_device_is(where.dev)->f64) {
        FAIL(s->ctx, E_PRECISION,
             "cost lies on %s, which has no double precision for the plan's sums: give a copy in "
             "host memory",
             frgi_device_name(where.dev));
    }
    TRY(frgi_device_adopt(where.dev, &s->cost, "cost", &d->own));
    return survey(s);
}

/** The costs row by row where they are not. */
static frg_status gather(const frg_sinkhorn *s)
{
    const frgi_sinkhorn_device *const d = s->device;
    const frg_array *const c = &s->cost;
    const int64_t entries = c->shape[0] * c->shape[1];
    return without_gaps(s) ? FRG_OK
                           : LAUNCH(d->place.dev, d->end.program, OF_COSTS(s, "sinkhorn_collect"),
                                    (entries + SK_NARROW - 1) / SK_NARROW, 1, d->place.group,
                                    BUFFER(d->given), BUFFER(d->own), INT64(entries),
                                    INT64(c->shape[1]), INT64(c->stride[0]), INT64(c->stride[1]));
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

/** The costs in host memory, a few rows at a time. */
static frg_status copy_costs(const frg_sinkhorn *s)
{
    const frgi_sinkhorn_device *const d = s->device;
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    const size_t row = (size_t)m * given_size(s);
    const int64_t each =
        (int64_t)(d->place.capacity / row) > 1 ? (int64_t)(d->place.capacity / row) : 1;
    for (int64_t first = 0; first < n; first += each) {
        const int64_t last = first + each < n ? first + each : n;
        const size_t bytes = (size_t)(last - first) * row;
        pack_rows(s, first, last);
        const frgi_buffer to = frgi_device_slice(d->given, (size_t)first * row, bytes);
        TRY(frgi_device_put(d->place.dev, to, d->place.buffer, bytes));
        TRY(frgi_device_wait(d->place.dev));
    }
    return FRG_OK;
}

static frg_status put_costs(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    const int64_t entries = s->cost.shape[0] * s->cost.shape[1];
    TRY(frgi_sinkhorn_is_away(s) ? gather(s) : copy_costs(s));
    const int64_t groups = (entries + SK_NARROW - 1) / SK_NARROW;
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

frg_status frgi_sinkhorn_device_open(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    TRY(open_stages(s));
    TRY(NEW(s->ctx, &d->by_row, s->cost.shape[0], "costs"));
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
    if (d->place.dev) {
        frgi_device_arena_close(&d->memory, d->place.dev);
        frgi_device_disown(d->place.dev, &d->own);
    }
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

/* ---- rows of the plan ------------------------------------------------------------------------ */

/** Rows first .. last-1 into `to`, `down` elements from row to row, `right` from column to
 *  column. */
static frg_status write_rows(const frg_sinkhorn *s, int64_t first, int64_t last, frgi_buffer to,
                             const frg_array *like)
{
    const frgi_sinkhorn_device *const d = s->device;
    const frgi_stage *const g = &d->end;
    const bool narrow = like->dtype == FRG_F32;
    return LAUNCH(d->place.dev, g->program,
                  narrow ? OF_COSTS(s, "sinkhorn_plan_narrow") : OF_COSTS(s, "sinkhorn_plan_wide"),
                  (last - first + SK_ROWS - 1) / SK_ROWS, 1, d->place.group, BUFFER(g->costs),
                  BUFFER(g->v), BUFFER(g->at), BUFFER(to), INT64(first), INT64(last),
                  INT64(like->stride[0]), INT64(like->stride[1]));
}

frg_status frgi_sinkhorn_device_rows(const frg_sinkhorn *s, int64_t first, int64_t last,
                                     const frg_array *out)
{
    frgi_device *const dev = s->device->place.dev;
    frgi_buffer to;
    TRY(frgi_device_adopt(dev, out, "out", &to));
    frg_status status = to.bytes > 0 ? write_rows(s, first, last, to, out) : FRG_OK;
    if (status >= 0) {
        status = frgi_device_wait(dev); /* a buffer is let go of once it is done with */
    }
    frgi_device_disown(dev, &to);
    return status;
}

typedef struct {
    int64_t first, last, chunks;
    frgi_row_visitor visit;
    void *user;
} row_visit;

/** Visits the rows by way of `here`, `batch` rows in host memory, and `there`. */
static frg_status visit_by(const frg_sinkhorn *s, const row_visit *v, frgi_buffer there,
                           double *here, int64_t batch)
{
    frgi_device *const dev = s->device->place.dev;
    const int64_t m = s->cost.shape[1], all = v->last - v->first;
    const frg_array like = frg_matrix(NULL, FRG_F64, batch, m, m);
    for (int64_t i0 = v->first; i0 < v->last; i0 += batch) {
        const int64_t i1 = i0 + batch < v->last ? i0 + batch : v->last;
        TRY(write_rows(s, i0, i1, there, &like));
        TRY(frgi_device_get(dev, here, there, (size_t)((i1 - i0) * m) * sizeof *here));
        TRY(frgi_device_wait(dev));
        for (int64_t i = i0; i < i1; i++) {
            v->visit(v->user, i, here + (i - i0) * m, (i - v->first) * v->chunks / all);
        }
    }
    return FRG_OK;
}

frg_status frgi_sinkhorn_device_visit(const frg_sinkhorn *s, int64_t first, int64_t last,
                                      int64_t chunks, frgi_row_visitor visit, void *user)
{
    enum { NUMBERS = 1 << 20 }; /* on their way at a time */
    frgi_device *const dev = s->device->place.dev;
    const int64_t m = s->cost.shape[1], batch = NUMBERS / m > SK_ROWS ? NUMBERS / m : SK_ROWS;
    const row_visit v = {first, last, chunks, visit, user};
    frgi_buffer there = {0};
    double *here;
    TRY(NEW(s->ctx, &here, frgi_mul((size_t)batch, (size_t)m), "rows of a plan"));
    frg_status status =
        frgi_device_alloc(dev, (size_t)(batch * m) * sizeof *here, "rows of a plan", &there);
    if (status >= 0) {
        status = visit_by(s, &v, there, here, batch);
    }
    frgi_device_free(dev, &there);
    DROP(s->ctx, &here);
    return status;
}
