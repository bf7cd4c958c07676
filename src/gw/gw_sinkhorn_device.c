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

#include "gw/gw_at.cl.h"
#include "gw/gw_marginals.h"
#include "gw/gw_sinkhorn.h"

enum { ROW_GROUPS = 256, BATCH = 8, GROUP = 128, FAR = 60, LATE = 32 };
enum { MOST_REALS = SKS_COUNT };

/** One of the two forms that passes have on a device. */
typedef struct {
    bool on;
    const frgi_program *program;
    size_t real; /* bytes */
    const char *rows, *columns;
    frgi_buffer costs, v, counts, at;
    int64_t place[SK_AT_COUNT];
    int64_t reals; /* of v */
    int slot;
} stage;

/** What a poll brings. */
typedef struct {
    double of[SKS_COUNT];
    int32_t count[SKC_COUNT];
} stage_state;

struct frgi_sinkhorn_device {
    frgi_device *dev;
    stage loop, end;
    frgi_buffer given; /* the costs in their type, or as floats where there are no doubles */
    frgi_device_arena memory;
    int group;    /* work-items */
    void *buffer; /* of copies, `room` bytes */
    size_t room;
    double *row, *by_row; /* n: sums of the plan's rows; costs of rows */
};

extern const frgi_kernels frgi_kernels_gw;

/* ---- memory ---------------------------------------------------------------------------------- */

/** Places of the vectors of a stage; returns their number of reals. */
static int64_t set_places(int64_t *at, int64_t n, int64_t m)
{
    const int64_t each = ((n + ROW_GROUPS - 1) / ROW_GROUPS + SK_ROWS - 1) / SK_ROWS * SK_ROWS;
    at[SK_N] = n;
    at[SK_M] = m;
    at[SK_EACH] = each;
    at[SK_CHUNKS] = (n + each - 1) / each;
    at[SK_BLOCKS] = (m + SK_BLOCK_COLUMNS - 1) / SK_BLOCK_COLUMNS;
    int64_t used = 0;
    at[SK_PARAMETERS] = used;
    used += SKP_COUNT;
    at[SK_STATES] = used;
    used += 2 * SKS_COUNT;
    for (int q = SK_A; q <= SK_ROW_COST; q++) {
        at[q] = used;
        used += n;
    }
    for (int q = SK_B; q <= SK_V; q++) {
        at[q] = used;
        used += m;
    }
    at[SK_PARTIAL] = used;
    used += at[SK_CHUNKS] * m;
    at[SK_OF_CHUNKS] = used;
    used += 2 * at[SK_CHUNKS] * SK_CHUNK_COUNT;
    at[SK_OF_BLOCKS] = used;
    return used + at[SK_BLOCKS] * SK_BLOCK_COUNT;
}

static void take_stage(frgi_device_arena *a, stage *g)
{
    if (g->on) {
        g->v = frgi_device_take(a, (size_t)g->reals * g->real);
        g->counts = frgi_device_take(a, 2 * SKC_COUNT * sizeof(int32_t));
        g->at = frgi_device_take(a, SK_AT_COUNT * sizeof(int64_t));
    }
}

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
    take_stage(a, &d->loop);
    take_stage(a, &d->end);
}

/* ---- vectors to and from the device ---------------------------------------------------------- */

/** Vector q of a stage <- x in its type; waits. */
static frg_status put_vector(const frg_sinkhorn *s, const stage *g, int q, const double *x,
                             int64_t count)
{
    frgi_sinkhorn_device *const d = s->device;
    const frgi_buffer to = {g->v.handle, g->v.offset + (size_t)g->place[q] * g->real,
                            (size_t)count * g->real};
    float *const narrow = d->buffer;
    for (int64_t i = 0; i < count && g->real == sizeof(float); i++) {
        narrow[i] = (float)x[i];
    }
    TRY(frgi_device_put(d->dev, to, g->real == sizeof(float) ? d->buffer : (const void *)x,
                        (size_t)count * g->real));
    return frgi_device_wait(d->dev);
}

static frg_status get_vector(const frg_sinkhorn *s, const stage *g, int q, double *x, int64_t count)
{
    frgi_sinkhorn_device *const d = s->device;
    const frgi_buffer from = {g->v.handle, g->v.offset + (size_t)g->place[q] * g->real,
                              (size_t)count * g->real};
    TRY(frgi_device_get(d->dev, g->real == sizeof(float) ? d->buffer : (void *)x, from,
                        (size_t)count * g->real));
    TRY(frgi_device_wait(d->dev));
    const float *const narrow = d->buffer;
    for (int64_t i = 0; i < count && g->real == sizeof(float); i++) {
        x[i] = (double)narrow[i];
    }
    return FRG_OK;
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
    const bool doubles = frgi_device_is(d->dev)->f64 != 0;
    const frg_gw_store store = s->report.cost_store;
    d->loop.on = store != FRG_GW_STORE_F64;
    d->end.on = doubles || store == FRG_GW_STORE_F64;
    d->loop.real = sizeof(float);
    d->end.real = sizeof(double);
    d->loop.reals = set_places(d->loop.place, s->cost.shape[0], s->cost.shape[1]);
    d->end.reals = set_places(d->end.place, s->cost.shape[0], s->cost.shape[1]);
    d->loop.rows = store == FRG_GW_STORE_U16 ? "sinkhorn_rows_fixed" : "sinkhorn_rows";
    d->loop.columns = store == FRG_GW_STORE_U16 ? "sinkhorn_columns_fixed" : "sinkhorn_columns";
    const bool floats = s->cost.dtype == FRG_F32;
    d->end.rows = floats ? "sinkhorn_rows_float" : "sinkhorn_rows";
    d->end.columns = floats ? "sinkhorn_columns_float" : "sinkhorn_columns";
    if (d->loop.on) {
        TRY(frgi_device_load(d->dev, &frgi_kernels_gw, FRGI_F32, &d->loop.program));
    }
    if (d->end.on) {
        TRY(frgi_device_load(d->dev, &frgi_kernels_gw, FRGI_F64, &d->end.program));
    }
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
                ((double *)s->device->buffer)[(i - first) * m + j] = x;
            } else {
                ((float *)s->device->buffer)[(i - first) * m + j] = (float)x;
            }
        }
    }
}

static frg_status put_costs(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    const size_t row = (size_t)m * given_size(s);
    const int64_t each = (int64_t)(d->room / row) > 1 ? (int64_t)(d->room / row) : 1;
    for (int64_t first = 0; first < n; first += each) {
        const int64_t last = first + each < n ? first + each : n;
        const size_t bytes = (size_t)(last - first) * row;
        pack_rows(s, first, last);
        const frgi_buffer to = {d->given.handle, d->given.offset + (size_t)first * row, bytes};
        TRY(frgi_device_put(d->dev, to, d->buffer, bytes));
        TRY(frgi_device_wait(d->dev));
    }
    const int64_t entries = n * m, groups = (entries + SK_NARROW - 1) / SK_NARROW;
    const frgi_program *const from =
        d->end.on && given_size(s) == sizeof(double) ? d->end.program : d->loop.program;
    if (loop_size(s) == sizeof(uint16_t)) {
        const double step = (s->high - s->low) / 65535;
        TRY(LAUNCH(d->dev, from, "sinkhorn_fix", groups, 1, d->group, BUFFER(d->loop.costs),
                   BUFFER(d->given), INT64(entries), REAL(s->low), REAL(step > 0 ? 1 / step : 0)));
    } else if (loop_size(s)) {
        TRY(LAUNCH(d->dev, from, "sinkhorn_narrow", groups, 1, d->group, BUFFER(d->loop.costs),
                   BUFFER(d->given), INT64(entries)));
    }
    return frgi_device_wait(d->dev);
}

/** What does not change from pass to pass. */
static frg_status put_problem(frg_sinkhorn *s, stage *g)
{
    const frgi_transport *const t = &s->t;
    const frgi_marginals *const how = &t->how;
    const double k = FRGI_LOG2_E / s->o.epsilon, unit = g->real == 4 ? 0x1p-24 : 0x1p-53;
    const bool relaxed = isfinite(how->rho_a) || isfinite(how->rho_b);
    const double by_a = 1 / how->rho_a, by_b = 1 / how->rho_b;
    /* as noise_of in gw_transport.c; a group's sums of a column are of SK_EACH / 8 terms */
    const double noise = 0.5 * unit * (64 + (double)t->s.n / 64);
    /* what floats cannot tell is left to the doubles that follow */
    const bool hands_on = g == &s->device->loop && s->device->end.on && s->o.tol > 0;
    const double par[SKP_COUNT] = {
        [SKP_K] = k,
        [SKP_TOL] = hands_on ? fmax(s->o.tol, noise) : s->o.tol,
        [SKP_TOTAL] = t->total,
        [SKP_LOW] = s->low,
        [SKP_STEP] = (s->high - s->low) / 65535,
        [SKP_TAU_A] = isinf(how->rho_a) ? 1 : how->rho_a / (how->rho_a + s->o.epsilon),
        [SKP_TAU_B] = isinf(how->rho_b) ? 1 : how->rho_b / (how->rho_b + s->o.epsilon),
        [SKP_RATE_A] = by_a / k,
        [SKP_RATE_B] = by_b / k,
        [SKP_UNIT] = relaxed ? k / (by_a + by_b) : 0,
        [SKP_SUM_A] = frgi_transport_sum(t->s.to.a, t->s.n),
        [SKP_SUM_B] = frgi_transport_sum(t->s.to.b, t->s.m),
        [SKP_DUMMY_A] = t->s.dummy.a,
        [SKP_DUMMY_B] = t->s.dummy.b,
        [SKP_NOISE] = noise,
        [SKP_NOISE_OF_REACH] = g->real == 4 ? 0 : 0.5 * unit};
    g->place[SK_ACCELERATE] = t->accelerate;
    g->place[SK_RELAXED] = relaxed;
    g->place[SK_PRODUCT] = how->product;
    TRY(put_vector(s, g, SK_PARAMETERS, par, SKP_COUNT));
    TRY(put_vector(s, g, SK_A, t->s.to.a, t->s.n));
    TRY(put_vector(s, g, SK_LOG_A, t->s.to.log_a, t->s.n));
    TRY(put_vector(s, g, SK_B, t->s.to.b, t->s.m));
    TRY(put_vector(s, g, SK_LOG_B, t->s.to.log_b, t->s.m));
    TRY(frgi_device_put(s->device->dev, g->at, g->place, sizeof g->place));
    return frgi_device_wait(s->device->dev);
}

frg_status frgi_sinkhorn_device_open(frg_sinkhorn *s, frgi_sinkhorn_place where)
{
    frg_context *const ctx = s->ctx;
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    frgi_sinkhorn_device *d;
    TRY(NEW0(ctx, &d, 1, "a Sinkhorn solver on a device"));
    s->device = d;
    d->dev = where.dev;
    d->group = where.group > 0 ? where.group : GROUP;
    while (d->group > frgi_device_is(d->dev)->group_most) {
        d->group /= 2;
    }
    TRY(open_stages(s));
    const int64_t longest = n > m ? n : m;
    d->room = (size_t)(longest > 1 << 17 ? longest : 1 << 17) * sizeof(double);
    char *buffer;
    TRY(NEW(ctx, &buffer, d->room, "copies to a device"));
    d->buffer = buffer;
    TRY(NEW(ctx, &d->row, n, "row sums"));
    TRY(NEW(ctx, &d->by_row, n, "costs"));
    d->memory.align = frgi_device_is(d->dev)->align;
    layout(s, &d->memory);
    TRY(frgi_device_arena_open(&d->memory, d->dev, "transport on a device"));
    layout(s, &d->memory);
    TRY(put_costs(s));
    if (d->loop.on) {
        TRY(put_problem(s, &d->loop));
    }
    return d->end.on ? put_problem(s, &d->end) : FRG_OK;
}

void frgi_sinkhorn_device_close(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    if (!d) {
        return;
    }
    frgi_device_arena_close(&d->memory, d->dev);
    char *buffer = d->buffer;
    DROP(s->ctx, &buffer);
    DROP(s->ctx, &d->row);
    DROP(s->ctx, &d->by_row);
    DROP(s->ctx, &s->device);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/** Potentials of the host into the stage, whose state begins anew. */
static frg_status begin_stage(frg_sinkhorn *s, stage *g)
{
    frgi_sweep *const w = &s->t.s;
    const bool narrow = g->real == sizeof(float);
    double state[SKS_COUNT] = {[SKS_ERROR] = 1e30, [SKS_LEAST] = 1e30};
    int32_t count[SKC_COUNT] = {0};
    double *const base = w->base.G0, *const rest = s->t.skip.G; /* free between passes */
    state[SKS_LOG_G] = frgi_log_sum(w->G, w->m);
    state[SKS_DUMMY_G] = w->dummy.g;
    for (int64_t j = 0; j < w->m; j++) {
        base[j] = narrow ? (double)(float)w->G[j] : w->G[j];
        rest[j] = w->to.b[j] > 0 ? w->G[j] - base[j] : -1e30;
    }
    TRY(put_vector(s, g, SK_G0, base, w->m));
    TRY(put_vector(s, g, SK_G, rest, w->m));
    TRY(put_vector(s, g, SK_G_LAST, rest, w->m));
    for (int64_t i = 0; i < w->n; i++) {
        w->base.H0[i] = w->to.a[i] > 0 ? w->F[i] - w->to.log_a[i] : 0;
    }
    TRY(put_vector(s, g, SK_H0, w->base.H0, w->n));
    TRY(put_vector(s, g, SK_LP, w->to.log_a, w->n));
    TRY(put_vector(s, g, SK_STATES, state, SKS_COUNT));
    g->slot = 0;
    TRY(frgi_device_put(s->device->dev, g->counts, count, sizeof count));
    return frgi_device_wait(s->device->dev);
}

static frg_status poll(frg_sinkhorn *s, stage *g, stage_state *out)
{
    frgi_sinkhorn_device *const d = s->device;
    TRY(LAUNCH(d->dev, g->program, "sinkhorn_poll", 1, 1, d->group, BUFFER(g->v), BUFFER(g->counts),
               BUFFER(g->at), INT32(g->slot)));
    g->slot = 1 - g->slot;
    const size_t at = (size_t)(g->place[SK_STATES] + g->slot * SKS_COUNT) * g->real;
    double reals[MOST_REALS];
    TRY(frgi_device_get(d->dev, reals,
                        (frgi_buffer){g->v.handle, g->v.offset + at, SKS_COUNT * g->real},
                        SKS_COUNT * g->real));
    TRY(frgi_device_get(d->dev, out->count,
                        (frgi_buffer){g->counts.handle,
                                      g->counts.offset + (size_t)g->slot * sizeof out->count,
                                      sizeof out->count},
                        sizeof out->count));
    TRY(frgi_device_wait(d->dev));
    for (int q = 0; q < SKS_COUNT; q++) {
        out->of[q] =
            g->real == sizeof(float) ? (double)((const float *)(void *)reals)[q] : reals[q];
    }
    return FRG_OK;
}

static frg_status submit(frg_sinkhorn *s, stage *g, int64_t count)
{
    frgi_sinkhorn_device *const d = s->device;
    for (int64_t pass = 0; pass < count; pass++) {
        TRY(LAUNCH(d->dev, g->program, g->rows, g->place[SK_CHUNKS], 1, d->group, BUFFER(g->costs),
                   BUFFER(g->v), BUFFER(g->counts), BUFFER(g->at), INT32(g->slot)));
        g->slot = 1 - g->slot;
        TRY(LAUNCH(d->dev, g->program, g->columns, g->place[SK_BLOCKS], 1, d->group,
                   BUFFER(g->costs), BUFFER(g->v), BUFFER(g->counts), BUFFER(g->at),
                   INT32(g->slot)));
    }
    return FRG_OK;
}

static frg_status fold(frg_sinkhorn *s, stage *g)
{
    frgi_sinkhorn_device *const d = s->device;
    const int64_t most = s->t.s.n > s->t.s.m ? s->t.s.n : s->t.s.m;
    TRY(LAUNCH(d->dev, g->program, "sinkhorn_fold", (most + SK_FOLD - 1) / SK_FOLD, 1, d->group,
               BUFFER(g->v), BUFFER(g->counts), BUFFER(g->at), INT32(g->slot)));
    g->slot = 1 - g->slot;
    return FRG_OK;
}

/** The stage's potentials to the host: those behind the last pass, or of accelerated passes that
 *  have ended of the last plain step. */
static frg_status end_stage(frg_sinkhorn *s, stage *g, const stage_state *st)
{
    frgi_sweep *const w = &s->t.s;
    const bool relaxed = g->place[SK_RELAXED] != 0, plain = s->t.accelerate && st->count[SKC_DONE];
    double *const more = s->t.skip.G;
    TRY(get_vector(s, g, SK_G0, w->base.G0, w->m));
    TRY(get_vector(s, g, plain ? SK_G_LAST : SK_G, more, w->m));
    for (int64_t j = 0; j < w->m; j++) {
        w->G[j] = w->to.b[j] > 0 ? w->base.G0[j] + more[j] + st->of[SKS_SHIFT] : w->G[j];
    }
    TRY(get_vector(s, g, SK_H0, w->base.H0, w->n));
    TRY(get_vector(s, g, SK_LP, w->p, w->n));
    for (int64_t i = 0; i < w->n; i++) {
        const double shift = relaxed ? st->of[SKS_SHIFT] : 0;
        w->F[i] = w->to.a[i] > 0 ? w->base.H0[i] + w->p[i] - shift : w->to.log_a[i];
    }
    w->dummy.g = st->of[SKS_DUMMY_G];
    return FRG_OK;
}

/** Passes of a stage until tol, the floor or max_iter; *st is the last poll's. */
static frg_status run_stage(frg_sinkhorn *s, stage *g, stage_state *st)
{
    const int64_t before = s->t.passes, most = s->o.max_iter - before;
    const double pass_bytes =
        (double)(s->cost.shape[0] * s->cost.shape[1]) *
        (double)(g == &s->device->loop && loop_size(s) ? loop_size(s) : given_size(s));
    frg_status beat = FRG_OK;
    TRY(begin_stage(s, g));
    for (int64_t batch = 1; s->t.passes - before < most && beat == FRG_OK;
         batch = 2 * batch < BATCH ? 2 * batch : BATCH) {
        const int64_t left = most - (s->t.passes - before);
        TRY(submit(s, g, batch < left ? batch : left));
        TRY(poll(s, g, st));
        s->t.passes = before + st->count[SKC_PASSES];
        if (st->count[SKC_DONE] == 3) {
            FAIL(s->ctx, E_NUMERIC, "pass %lld of Sinkhorn's iteration at epsilon %g gave %g",
                 (long long)s->t.passes, s->o.epsilon, st->of[SKS_ERROR]);
        }
        if (st->count[SKC_DONE]) {
            break;
        }
        if (st->count[SKC_FAR] > 0 || st->of[SKS_INCREMENT] > FAR) {
            TRY(fold(s, g));
            st->of[SKS_SHIFT] = 0; /* it is inside */
        }
        beat = frgi_heartbeat(s->ctx, &(frg_progress){.solver = "gw",
                                                      .phase = "sinkhorn",
                                                      .done = s->t.passes,
                                                      .total = s->o.max_iter,
                                                      .residual = st->of[SKS_ERROR],
                                                      .target = s->o.tol});
    }
    s->t.bytes += pass_bytes * (double)(s->t.passes - before);
    TRY(end_stage(s, g, st));
    return beat;
}

frg_status frgi_sinkhorn_device_passes(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    frgi_transport *const t = &s->t;
    stage_state st = {.of = {[SKS_ERROR] = INFINITY}};
    frg_status status = FRG_OK;
    if (d->loop.on) {
        status = run_stage(s, &d->loop, &st);
    }
    if (status == FRG_OK && d->end.on && t->passes < s->o.max_iter) {
        status = run_stage(s, &d->end, &st);
    }
    t->last.error = st.of[SKS_ERROR];
    t->last.at_floor = st.count[SKC_DONE] == 2;
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
    return s->device ? frgi_device_name(s->device->dev) : "cpu";
}

/* ---- the plan -------------------------------------------------------------------------------- */

/** Sums of the plan's rows and columns as the host asks for them while it finishes. */
static frg_status sums_of_plan(void *user, double *row, bool exact_rows)
{
    frg_sinkhorn *const s = user;
    frgi_sinkhorn_device *const d = s->device;
    stage *const g = &d->end;
    frgi_sweep *const w = &s->t.s;
    const bool floats = s->cost.dtype == FRG_F32;
    g->place[SK_EXACT_ROWS] = exact_rows;
    TRY(frgi_device_put(d->dev, g->at, g->place, sizeof g->place));
    TRY(put_vector(s, g, SK_P, w->p, w->n));
    TRY(put_vector(s, g, SK_Y, s->t.rounding.y, w->m));
    TRY(LAUNCH(d->dev, g->program, floats ? "sinkhorn_plan_rows_float" : "sinkhorn_plan_rows",
               g->place[SK_CHUNKS], 1, d->group, BUFFER(g->costs), BUFFER(g->v), BUFFER(g->at)));
    TRY(LAUNCH(d->dev, g->program, "sinkhorn_plan_columns", g->place[SK_BLOCKS], 1, d->group,
               BUFFER(g->v), BUFFER(g->at)));
    TRY(get_vector(s, g, SK_P, w->p, w->n));
    TRY(get_vector(s, g, SK_ROW_SUM, row, w->n));
    return get_vector(s, g, SK_COL, w->col, w->m);
}

/** <C, P> of the plan as it is rounded. */
static frg_status cost_of_plan(frg_sinkhorn *s)
{
    frgi_sinkhorn_device *const d = s->device;
    stage *const g = &d->end;
    const frgi_sweep *const w = &s->t.s;
    const bool floats = s->cost.dtype == FRG_F32;
    TRY(put_vector(s, g, SK_P, w->p, w->n));
    TRY(put_vector(s, g, SK_U, s->t.rounding.u, w->n));
    TRY(put_vector(s, g, SK_Y, s->t.rounding.y, w->m));
    TRY(put_vector(s, g, SK_V, s->t.rounding.v, w->m));
    TRY(LAUNCH(d->dev, g->program, floats ? "sinkhorn_plan_costs_float" : "sinkhorn_plan_costs",
               (w->n + SK_ROWS - 1) / SK_ROWS, 1, d->group, BUFFER(g->costs), BUFFER(g->v),
               BUFFER(g->at)));
    TRY(get_vector(s, g, SK_ROW_COST, d->by_row, w->n));
    s->report.cost = frgi_transport_sum(d->by_row, w->n);
    return FRG_OK;
}

frg_status frgi_sinkhorn_device_finish(frg_sinkhorn *s, frgi_marginal_error *before,
                                       frgi_marginal_error *after)
{
    frgi_transport *const t = &s->t;
    stage *const g = &s->device->end;
    t->s.x.fresh = false;
    TRY(put_vector(s, g, SK_G0, t->s.base.G0, t->s.m));
    TRY(put_vector(s, g, SK_H0, t->s.base.H0, t->s.n));
    TRY(put_vector(s, g, SK_G, t->s.g, t->s.m));
    TRY(frgi_transport_finish_with(t, s->o.round != 0, sums_of_plan, s, before, after));
    return cost_of_plan(s);
}
