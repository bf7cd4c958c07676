/* gw_stage_device.c - the host's side of kernels/gw/gw_sinkhorn.cl.h.
 *
 * Passes are submitted in batches of 1, 2, 4, 8, 8, ...; between two polls nothing waits.
 * Potentials inside of the exponents are taken anew where a poll finds that they have moved too
 * far.
 */
#include "gw/gw_stage_device.h"

#include <math.h>
#include <string.h>

enum { ROW_GROUPS = 256, BATCH = 8 };

/* ---- opening --------------------------------------------------------------------------------- */

int frgi_stage_group(const frgi_device *dev, int asked)
{
    int group = asked > 0 ? asked : FRGI_STAGE_GROUP;
    while (group > frgi_device_is(dev)->group_most) {
        group /= 2;
    }
    return group;
}

frg_status frgi_stage_place_open(frgi_stage_place *p, frg_context *ctx, frgi_device *dev, int group,
                                 int64_t longest)
{
    *p = (frgi_stage_place){.ctx = ctx, .dev = dev, .group = frgi_stage_group(dev, group)};
    p->capacity = (size_t)(longest > 1 << 17 ? longest : 1 << 17) * sizeof(double);
    char *buffer;
    TRY(NEW(ctx, &buffer, p->capacity, "copies to a device"));
    p->buffer = buffer;
    return FRG_OK;
}

void frgi_stage_place_close(frgi_stage_place *p)
{
    if (p->ctx) {
        char *buffer = p->buffer;
        DROP(p->ctx, &buffer);
        p->buffer = NULL;
    }
}

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
    for (int q = SK_B; q <= SK_BEFORE_G; q++) {
        at[q] = used;
        used += m;
    }
    at[SK_CHANGE] = used;
    used += 1;
    at[SK_PARTIAL] = used;
    used += at[SK_CHUNKS] * m;
    at[SK_OF_CHUNKS] = used;
    used += 2 * at[SK_CHUNKS] * SK_CHUNK_COUNT;
    at[SK_OF_BLOCKS] = used;
    return used + at[SK_BLOCKS] * SK_BLOCK_COUNT;
}

frg_status frgi_stage_open(const frgi_stage_place *p, frgi_stage *g, frgi_kernel_type type,
                           int64_t n, int64_t m)
{
    g->on = true;
    g->real = type == FRGI_F64 ? sizeof(double) : sizeof(float);
    g->reals = set_places(g->place, n, m);
    return frgi_device_load(p->dev, &frgi_kernels_gw, type, &g->program);
}

void frgi_stage_take(frgi_device_arena *a, frgi_stage *g)
{
    if (g->on) {
        g->v = frgi_device_take(a, (size_t)g->reals * g->real);
        g->counts = frgi_device_take(a, 2 * SKC_COUNT * sizeof(int32_t));
        g->at = frgi_device_take(a, SK_AT_COUNT * sizeof(int64_t));
    }
}

/* ---- vectors to and from the device ---------------------------------------------------------- */

frgi_buffer frgi_stage_vector(const frgi_stage *g, int q, int64_t count)
{
    return frgi_device_slice(g->v, (size_t)g->place[q] * g->real, (size_t)count * g->real);
}

frg_status frgi_stage_put(const frgi_stage_place *p, const frgi_stage *g, int q, const double *x,
                          int64_t count)
{
    const frgi_buffer to = frgi_stage_vector(g, q, count);
    float *const narrow = p->buffer;
    for (int64_t i = 0; i < count && g->real == sizeof(float); i++) {
        narrow[i] = (float)x[i];
    }
    TRY(frgi_device_put(p->dev, to, g->real == sizeof(float) ? p->buffer : (const void *)x,
                        to.bytes));
    return frgi_device_wait(p->dev);
}

frg_status frgi_stage_get(const frgi_stage_place *p, const frgi_stage *g, int q, double *x,
                          int64_t count)
{
    const frgi_buffer from = frgi_stage_vector(g, q, count);
    TRY(frgi_device_get(p->dev, g->real == sizeof(float) ? p->buffer : (void *)x, from,
                        from.bytes));
    TRY(frgi_device_wait(p->dev));
    const float *const narrow = p->buffer;
    for (int64_t i = 0; i < count && g->real == sizeof(float); i++) {
        x[i] = (double)narrow[i];
    }
    return FRG_OK;
}

double frgi_stage_noise(const frgi_stage *g, int64_t n)
{
    return 0.5 * (g->real == sizeof(float) ? 0x1p-24 : 0x1p-53) * (64 + (double)n / 64);
}

frg_status frgi_stage_set(const frgi_stage_place *p, frgi_stage *g, const frgi_transport *t,
                          const frgi_stage_problem *of)
{
    const frgi_marginals *const how = &t->how;
    const double k = FRGI_LOG2_E / of->epsilon;
    const bool relaxed = isfinite(how->rho_a) || isfinite(how->rho_b);
    const double by_a = 1 / how->rho_a, by_b = 1 / how->rho_b;
    /* relaxed potentials are rounded anew in each pass, those of floats by a share of their size:
     * F, G, and both beside their exponents, each by up to 2^-25 of it */
    const double size = k * fmax(fabs(of->low), fabs(of->low + 65535 * of->step));
    const double rounding = relaxed && g->real == sizeof(float) ? 0x1p-23 * size : 0;
    const double par[SKP_COUNT] = {
        [SKP_K] = k,
        [SKP_TOL] = of->tol,
        [SKP_TOTAL] = t->total,
        [SKP_LOW] = of->low,
        [SKP_STEP] = of->step,
        [SKP_TAU_A] = isinf(how->rho_a) ? 1 : how->rho_a / (how->rho_a + of->epsilon),
        [SKP_TAU_B] = isinf(how->rho_b) ? 1 : how->rho_b / (how->rho_b + of->epsilon),
        [SKP_BY_A] = by_a,
        [SKP_BY_B] = by_b,
        [SKP_RATE_A] = by_a / k,
        [SKP_RATE_B] = by_b / k,
        [SKP_UNIT] = relaxed ? k / (by_a + by_b) : 0,
        [SKP_SUM_A] = frgi_transport_sum(t->s.to.a, t->s.n),
        [SKP_SUM_B] = frgi_transport_sum(t->s.to.b, t->s.m),
        [SKP_DUMMY_A] = t->s.dummy.a,
        [SKP_DUMMY_B] = t->s.dummy.b,
        [SKP_NOISE] = frgi_stage_noise(g, t->s.n) + rounding,
        [SKP_NOISE_OF_REACH] = g->real == sizeof(float) ? 0 : 0.5 * 0x1p-53};
    g->place[SK_ACCELERATE] = t->accelerate;
    g->place[SK_RELAXED] = relaxed;
    g->place[SK_PRODUCT] = how->product;
    TRY(frgi_stage_put(p, g, SK_PARAMETERS, par, SKP_COUNT));
    TRY(frgi_stage_put(p, g, SK_A, t->s.to.a, t->s.n));
    TRY(frgi_stage_put(p, g, SK_LOG_A, t->s.to.log_a, t->s.n));
    TRY(frgi_stage_put(p, g, SK_B, t->s.to.b, t->s.m));
    TRY(frgi_stage_put(p, g, SK_LOG_B, t->s.to.log_b, t->s.m));
    TRY(frgi_device_put(p->dev, g->at, g->place, sizeof g->place));
    return frgi_device_wait(p->dev);
}

/* ---- passes ---------------------------------------------------------------------------------- */

frg_status frgi_stage_begin(const frgi_stage_place *p, frgi_stage *g, frgi_transport *t)
{
    frgi_sweep *const w = &t->s;
    const bool narrow = g->real == sizeof(float);
    double state[SKS_COUNT] = {[SKS_ERROR] = 1e30, [SKS_LEAST] = 1e30};
    int32_t count[SKC_COUNT] = {0};
    double *const base = w->base.G0, *const rest = t->skip.G; /* free between passes */
    state[SKS_LOG_G] = frgi_log_sum(w->G, w->to.b, w->m);
    state[SKS_DUMMY_G] = w->dummy.g;
    for (int64_t j = 0; j < w->m; j++) {
        base[j] = narrow ? (double)(float)w->G[j] : w->G[j];
        rest[j] = w->to.b[j] > 0 ? w->G[j] - base[j] : -1e30;
    }
    TRY(frgi_stage_put(p, g, SK_G0, base, w->m));
    TRY(frgi_stage_put(p, g, SK_G, rest, w->m));
    TRY(frgi_stage_put(p, g, SK_G_LAST, rest, w->m));
    for (int64_t i = 0; i < w->n; i++) {
        w->base.H0[i] = w->to.a[i] > 0 ? w->F[i] - w->to.log_a[i] : 0;
    }
    TRY(frgi_stage_put(p, g, SK_H0, w->base.H0, w->n));
    TRY(frgi_stage_put(p, g, SK_LP, w->to.log_a, w->n));
    TRY(frgi_stage_put(p, g, SK_ROW_SUM, w->to.a, w->n));
    TRY(frgi_stage_put(p, g, SK_STATES, state, SKS_COUNT));
    g->slot = 0;
    TRY(frgi_device_put(p->dev, g->counts, count, sizeof count));
    return frgi_device_wait(p->dev);
}

frg_status frgi_stage_poll(const frgi_stage_place *p, frgi_stage *g, frgi_stage_state *out)
{
    TRY(LAUNCH(p->dev, g->program, "sinkhorn_poll", 1, 1, p->group, BUFFER(g->v), BUFFER(g->counts),
               BUFFER(g->at), INT32(g->slot)));
    g->slot = 1 - g->slot;
    const size_t slot = (size_t)g->slot, state = SKS_COUNT * g->real, counts = sizeof out->count;
    const frgi_buffer both = frgi_stage_vector(g, SK_STATES, 2 * SKS_COUNT);
    double reals[SKS_COUNT];
    TRY(frgi_device_get(p->dev, reals, frgi_device_slice(both, slot * state, state), state));
    TRY(frgi_device_get(p->dev, out->count, frgi_device_slice(g->counts, slot * counts, counts),
                        counts));
    TRY(frgi_device_wait(p->dev));
    for (int q = 0; q < SKS_COUNT; q++) {
        out->of[q] =
            g->real == sizeof(float) ? (double)((const float *)(void *)reals)[q] : reals[q];
    }
    return FRG_OK;
}

frg_status frgi_stage_submit(const frgi_stage_place *p, frgi_stage *g, int64_t count)
{
    for (int64_t pass = 0; pass < count; pass++) {
        TRY(LAUNCH(p->dev, g->program, g->rows, g->place[SK_CHUNKS], 1, p->group, BUFFER(g->costs),
                   BUFFER(g->v), BUFFER(g->counts), BUFFER(g->at), INT32(g->slot)));
        g->slot = 1 - g->slot;
        TRY(LAUNCH(p->dev, g->program, g->columns, g->place[SK_BLOCKS], 1, p->group,
                   BUFFER(g->costs), BUFFER(g->v), BUFFER(g->counts), BUFFER(g->at),
                   INT32(g->slot)));
    }
    return FRG_OK;
}

frg_status frgi_stage_fold(const frgi_stage_place *p, frgi_stage *g)
{
    const int64_t n = g->place[SK_N], m = g->place[SK_M], most = n > m ? n : m;
    TRY(LAUNCH(p->dev, g->program, "sinkhorn_fold", (most + SK_FOLD - 1) / SK_FOLD, 1, p->group,
               BUFFER(g->v), BUFFER(g->counts), BUFFER(g->at), INT32(g->slot)));
    g->slot = 1 - g->slot;
    return FRG_OK;
}

frg_status frgi_stage_end(const frgi_stage_place *p, frgi_stage *g, frgi_transport *t,
                          const frgi_stage_state *st)
{
    frgi_sweep *const w = &t->s;
    const bool relaxed = g->place[SK_RELAXED] != 0, plain = t->accelerate && st->count[SKC_DONE];
    double *const more = t->skip.G;
    TRY(frgi_stage_get(p, g, SK_G0, w->base.G0, w->m));
    TRY(frgi_stage_get(p, g, plain ? SK_G_LAST : SK_G, more, w->m));
    for (int64_t j = 0; j < w->m; j++) {
        w->G[j] = w->to.b[j] > 0 ? w->base.G0[j] + more[j] + st->of[SKS_SHIFT] : w->G[j];
    }
    TRY(frgi_stage_get(p, g, SK_H0, w->base.H0, w->n));
    TRY(frgi_stage_get(p, g, SK_LP, w->p, w->n));
    for (int64_t i = 0; i < w->n; i++) {
        const double shift = relaxed ? st->of[SKS_SHIFT] : 0;
        w->F[i] = w->to.a[i] > 0 ? w->base.H0[i] + w->p[i] - shift : w->to.log_a[i];
    }
    w->dummy.g = st->of[SKS_DUMMY_G];
    return FRG_OK;
}

frg_status frgi_stage_run(const frgi_stage_place *p, frgi_stage *g, frgi_transport *t,
                          const frgi_stage_run_limits *limits, frgi_stage_state *st)
{
    const int64_t before = t->passes;
    frg_status beat = FRG_OK;
    TRY(frgi_stage_begin(p, g, t));
    for (int64_t batch = 1; t->passes - before < limits->most && beat == FRG_OK;
         batch = 2 * batch < BATCH ? 2 * batch : BATCH) {
        const int64_t left = limits->most - (t->passes - before);
        TRY(frgi_stage_submit(p, g, batch < left ? batch : left));
        TRY(frgi_stage_poll(p, g, st));
        t->passes = before + st->count[SKC_PASSES];
        if (st->count[SKC_DONE] == SKD_NOT_A_NUMBER) {
            FAIL(p->ctx, E_NUMERIC, "pass %lld of Sinkhorn's iteration at epsilon %g gave %g",
                 (long long)t->passes, FRGI_LOG2_E / t->k, st->of[SKS_ERROR]);
        }
        if (st->count[SKC_DONE]) {
            break;
        }
        if (st->count[SKC_FAR] > 0 || st->of[SKS_INCREMENT] > FRGI_STAGE_FAR) {
            TRY(frgi_stage_fold(p, g));
            st->of[SKS_SHIFT] = 0; /* it is inside */
        }
        beat = frgi_heartbeat(p->ctx, &(frg_progress){.solver = "gw",
                                                      .phase = limits->phase,
                                                      .done = t->passes,
                                                      .total = limits->total,
                                                      .residual = st->of[SKS_ERROR],
                                                      .target = limits->target});
    }
    t->bytes += limits->pass_bytes * (double)(t->passes - before);
    TRY(frgi_stage_end(p, g, t, st));
    return beat;
}

/* ---- the plan -------------------------------------------------------------------------------- */

frg_status frgi_stage_sums(void *user, double *row, bool exact_rows)
{
    const frgi_stage_plan *const plan = user;
    const frgi_stage_place *const p = plan->place;
    frgi_stage *const g = plan->stage;
    frgi_sweep *const w = &plan->t->s;
    g->place[SK_EXACT_ROWS] = exact_rows;
    TRY(frgi_device_put(p->dev, g->at, g->place, sizeof g->place));
    TRY(frgi_stage_put(p, g, SK_P, w->p, w->n));
    TRY(frgi_stage_put(p, g, SK_Y, plan->t->rounding.y, w->m));
    TRY(LAUNCH(p->dev, g->program, plan->floats ? "sinkhorn_plan_rows_float" : "sinkhorn_plan_rows",
               g->place[SK_CHUNKS], 1, p->group, BUFFER(g->costs), BUFFER(g->v), BUFFER(g->at)));
    TRY(LAUNCH(p->dev, g->program, "sinkhorn_plan_columns", g->place[SK_BLOCKS], 1, p->group,
               BUFFER(g->v), BUFFER(g->at)));
    TRY(frgi_stage_get(p, g, SK_P, w->p, w->n));
    TRY(frgi_stage_get(p, g, SK_ROW_SUM, row, w->n));
    return frgi_stage_get(p, g, SK_COL, w->col, w->m);
}

frg_status frgi_stage_finish(const frgi_stage_plan *plan, bool round, frgi_marginal_error *before,
                             frgi_marginal_error *after)
{
    const frgi_stage_place *const p = plan->place;
    frgi_stage *const g = plan->stage;
    frgi_transport *const t = plan->t;
    t->s.x.fresh = false;
    TRY(frgi_stage_put(p, g, SK_G0, t->s.base.G0, t->s.m));
    TRY(frgi_stage_put(p, g, SK_H0, t->s.base.H0, t->s.n));
    TRY(frgi_stage_put(p, g, SK_G, t->s.g, t->s.m));
    TRY(frgi_transport_finish_with(t, round, frgi_stage_sums, (void *)(uintptr_t)plan, before,
                                   after));
    TRY(frgi_stage_put(p, g, SK_P, t->s.p, t->s.n));
    TRY(frgi_stage_put(p, g, SK_U, t->rounding.u, t->s.n));
    TRY(frgi_stage_put(p, g, SK_Y, t->rounding.y, t->s.m));
    return frgi_stage_put(p, g, SK_V, t->rounding.v, t->s.m);
}
