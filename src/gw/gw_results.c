/* gw_results.c - what is read of an alignment, and its states between two steps: saved and taken up
 * again. */
#include <math.h>
#include <string.h>

#include "core/opts.h"
#include "gw/gw_align.h"

/* ---- saved states ---------------------------------------------------------------------------- */

/** Of everything that decides the bits of a run but the data: the options as they were resolved. */
static uint64_t hash_options(const frg_gw *s)
{
    frg_gw_opts o = s->o;
    o.multiscale = frgi_gw_is_multiscale(s) ? FRG_GW_MULTISCALE_ON : FRG_GW_MULTISCALE_OFF;
    o.cost_store = s->report.cost_store;
    /* the graph and the landmarks that these made are in the hash of the data, and what a preset
     * set stands in the options that it set */
    o.k_clamp = o.stitch = 0;
    o.k = o.landmarks = 0;
    o.landmark_metric = FRG_GW_LANDMARK_L2;
    o.preset = FRG_GW_PRESET_NONE;
    o.dtype = o.mode == FRG_GW_VERTEX ? o.dtype : FRG_GW_DTYPE_AUTO;
    const uint64_t of_context[] = {s->level.seed, s->level.average.on};
    uint64_t h = frgi_options_hash(frg_gw_options(), &o, 0);
    h = frg_hash(h, of_context, sizeof of_context);
    h = frg_hash(h, frg_version(), (int64_t)strlen(frg_version()));
    return frg_hash(h, frg_isa(s->ctx), (int64_t)strlen(frg_isa(s->ctx)));
}

static uint64_t hash_data(const frg_gw *s)
{
    const int64_t n = s->x.n, m = s->y.n;
    uint64_t h = frgi_distances_hash(&s->y, frgi_distances_hash(&s->x, 0));
    h = frg_hash(h, s->a, n * (int64_t)sizeof *s->a);
    h = frg_hash(h, s->b, m * (int64_t)sizeof *s->b);
    if (s->linear) {
        h = frg_hash(h, s->linear, n * s->level.t.s.ld * (int64_t)sizeof *s->linear);
    }
    if (s->potentials) {
        h = frg_hash(h, s->potentials, (n + m) * (int64_t)sizeof *s->potentials);
    }
    return s->start ? frg_hash(h, s->start, n * m * (int64_t)sizeof *s->start) : h;
}

static void hash_all(frg_gw *s)
{
    s->state.options = hash_options(s);
    s->state.data = hash_data(s);
}

void frg_gw_keep(frg_gw *s, frg_gw_saver save, void *user)
{
    if (!s) {
        return;
    }
    if (s->stopped) {
        return;
    }
    s->state.save = save;
    s->state.user = user;
    hash_all(s);
}

frg_status frg_gw_save(const frg_gw *s, frg_checkpoint *c)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    const struct frgi_state *const state = &s->state;
    REQUIRE(s->ctx, c, "c is NULL");
    REQUIRE(s->ctx, state->filled, "there is no state: call frg_gw_keep, and this from its call");
    TRY(frgi_state_fetch(state));
    TRY(frg_checkpoint_put(c, "format", &frgi_state_format, sizeof frgi_state_format));
    if (state->device[0]) {
        TRY(frg_checkpoint_put(c, "device", state->device, (int64_t)strlen(state->device) + 1));
    }
    TRY(frg_checkpoint_put(c, "run", &state->numbers, sizeof state->numbers));
    for (int p = 0; p < state->n_arrays; p++) {
        TRY(frg_checkpoint_put(c, state->arrays[p].name, state->arrays[p].live,
                               (int64_t)state->arrays[p].bytes));
    }
    return FRG_OK;
}

frg_status frg_gw_resume(frg_gw *s, const frg_checkpoint *c)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    REQUIRE(s->ctx, c, "c is NULL");
    if (s->stopped) {
        return s->stopped;
    }
    hash_all(s);
    return frgi_state_open(&s->state, c, s->o.n_start);
}

/* ---- results --------------------------------------------------------------------------------- */

const frg_gw_report *frg_gw_get(const frg_gw *s)
{
    return s ? &s->report : NULL;
}

const frg_plan *frg_gw_plan(const frg_gw *s)
{
    if (!s) {
        return NULL;
    }
    return s->plan.t ? &s->plan : NULL;
}

frg_status frgi_gw_eccentricities(frgi_distances *d, const double *w, double *out)
{
    const double unit = d->scale > 0 ? 1 / (double)d->scale : 1;
    TRY(frgi_distances_squares(d, w, out));
    for (int64_t i = 0; i < d->n; i++) {
        out[i] *= unit * unit;
    }
    return FRG_OK;
}

bool frgi_gw_leaves_out(const frg_gw *s)
{
    return frgi_is_balanced(&s->o) && s->o.max_iter > 0 && !s->degenerate;
}

frg_status frgi_gw_terms(const frg_gw *s, int side, double *out)
{
    frgi_distances *const d = side ? s->level.y : s->level.x;
    TRY(frgi_distances_squares(d, side ? s->b : s->a, out));
    for (int64_t i = 0; i < d->n; i++) {
        out[i] *= 1 - s->o.linear_weight;
    }
    return FRG_OK;
}

/** The row (side 0) or column terms of the last linearisation, which balanced problems leave out of
 *  their exponents: the mean over the pairs of squared distances to them; in the modes without
 *  sampling sum_k C_ik^2 a_k. */
static frg_status left_out_terms(const frg_gw *s, int side, double *out)
{
    const frgi_level *const l = &s->level;
    if (s->o.mode == FRG_GW_EXACT || s->o.mode == FRG_GW_LANDMARK || s->o.diag_exact) {
        return frgi_gw_terms(s, side, out);
    }
    const int64_t n = side ? l->y->n : l->x->n;
    l->t.steps->pairs->mean_squares(l, side != 0, out);
    for (int64_t i = 0; i < n; i++) {
        out[i] *= 1 - s->o.linear_weight;
    }
    return FRG_OK;
}

frg_status frg_gw_potentials(const frg_gw *s, double *f, double *g)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    const frgi_sweep *const w = &s->level.t.s;
    REQUIRE(s->ctx, s->plan.t, "the alignment has not run");
    REQUIRE(s->ctx, s->o.rank == 0, "a plan of low rank has factors and no potentials");
    if (s->level.t.list) {
        FAIL(s->ctx, E_UNSUPPORTED,
             "potentials of a plan without entropy: give an epsilon and the mode exact or sampled");
    }
    const bool left_out = frgi_gw_leaves_out(s);
    const struct {
        double *to;
        const double *from;
        int64_t count;
    } sides[] = {{f, w->F, w->n}, {g, w->G, w->m}};
    double *const now = s->level.product.row;
    for (int side = 0; side < 2; side++) {
        double *const to = sides[side].to;
        if (to && left_out) {
            TRY(left_out_terms(s, side, to));
        }
        frgi_transport_copy(&s->level.t, now, sides[side].from,
                            (size_t)sides[side].count * sizeof *now);
        for (int64_t i = 0; to && i < sides[side].count; i++) {
            to[i] = (left_out ? to[i] : 0) + now[i] / s->level.t.k;
        }
    }
    return FRG_OK;
}

int64_t frg_gw_rank(const frg_gw *s)
{
    if (!s) {
        return 0;
    }
    return s->factors.q ? s->factors.rank : 0;
}

frg_status frg_gw_factors(const frg_gw *s, double *q, double *w, double *h)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    const frgi_factored *const f = &s->factors;
    REQUIRE(s->ctx, s->plan.t && f->q, "the alignment has no plan of low rank");
    const struct {
        double *to;
        const double *from;
        int64_t count;
    } parts[] = {{q, f->q, f->n * f->rank}, {w, f->w, f->m * f->rank}, {h, f->h, f->rank}};
    for (int p = 0; p < 3; p++) {
        if (parts[p].to) {
            frgi_transport_copy(s->plan.t, parts[p].to, parts[p].from,
                                (size_t)parts[p].count * sizeof(double));
        }
    }
    return FRG_OK;
}

frg_status frg_gw_distances(frg_gw *s, int side, frg_array out)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    frg_context *const ctx = s->ctx;
    frgi_distances *const d = side ? &s->y : &s->x;
    if (s->stopped) {
        return s->stopped;
    }
    TRY(frgi_array_check(ctx, &out, "out", 2, 1u << FRG_F32 | 1u << FRG_F64));
    if (out.shape[0] != d->n || out.shape[1] != d->n) {
        FAIL(ctx, E_SHAPE, "out is %lld x %lld, %lld x %lld is needed", (long long)out.shape[0],
             (long long)out.shape[1], (long long)d->n, (long long)d->n);
    }
    float *row;
    TRY(NEW(ctx, &row, d->n, "distances"));
    frg_status status = FRG_OK;
    for (int32_t i = 0; i < d->n && status >= 0; i++) {
        status = frgi_distances_rows(d, &i, 1, row, d->n);
        for (int64_t j = 0; j < d->n && status >= 0; j++) {
            char *const to = frgi_array_base(&out) + (i * out.stride[0] + j * out.stride[1]) *
                                                         (int64_t)frg_sizeof(out.dtype);
            const double x = (double)row[j] / (double)d->scale;
            if (out.dtype == FRG_F64) {
                *(double *)(void *)to = x;
            } else {
                *(float *)(void *)to = (float)x;
            }
        }
    }
    DROP(ctx, &row);
    return status;
}
