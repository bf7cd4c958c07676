/* gw_states.h - an alignment on a device that is ended at one of its states and goes on, for tests
 * on machines and on stand-ins for drivers. */
#ifndef FOURGE_TESTS_GW_STATES_H
#define FOURGE_TESTS_GW_STATES_H

#include "gw/gw_align.h"
#include "gw_data.h"
#include "state.h"

enum { STATE_N = 26, STATE_M = 31, STATE_CELLS = STATE_N * STATE_M };

typedef struct {
    const char *name;
    frg_gw_mode mode;
    frg_gw_distance distance;
    frg_gw_multiscale multiscale;
    frg_gw_anneal anneal;
    frg_gw_start start_from;
    int64_t rank, n_start, max_iter;
    double mass, rho_source, linear_weight, damping;
    bool keeps; /* the plan, its marginals; distances are divided by the largest */
    bool few;   /* pairs and passes */
} state_kind;

typedef struct {
    double x[STATE_N * 2], y[STATE_M * 3], linear[STATE_CELLS];
} state_points;

static inline state_points *state_points_new(void)
{
    state_points *const p = malloc(sizeof *p);
    for (int i = 0; i < STATE_N * 2; i++)
        p->x[i] = test_normal();
    for (int i = 0; i < STATE_M * 3; i++)
        p->y[i] = test_normal();
    for (int i = 0; i < STATE_CELLS; i++)
        p->linear[i] = test_uniform();
    return p;
}

/** n x m points of them. */
static inline frg_status state_open_some(frg_gw **out, frg_context *ctx, frgi_gw_place where,
                                         const state_points *p, int64_t n, int64_t m,
                                         const state_kind *k)
{
    const frg_array x = matrix(p->x, n, 2), y = matrix(p->y, m, 3), l = matrix(p->linear, n, m);
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = k->mode;
    o.distance = k->distance;
    o.multiscale = k->multiscale;
    o.anneal = k->anneal;
    o.start_from = k->start_from;
    o.rank = k->rank;
    o.n_start = k->n_start > 0 ? k->n_start : o.n_start;
    o.max_iter = k->max_iter;
    o.mass = k->mass;
    o.rho_source = k->rho_source > 0 ? k->rho_source : o.rho_source;
    o.linear_weight = k->linear_weight;
    o.damping = k->damping > 0 ? k->damping : o.damping;
    o.store_plan = o.diag_exact = k->keeps;
    o.scale = k->keeps ? FRG_GW_SCALE_BATCH_MAX : o.scale;
    o.k = 6;
    o.landmarks = 5;
    o.anchors = k->few ? 5 : o.anchors;
    o.lr_max_iter = k->few ? 1 : o.lr_max_iter;
    o.lr_dykstra_max_iter = k->few ? 2 : o.lr_dykstra_max_iter;
    o.max_inner = k->few ? 1 : o.max_inner;
    if (k->mode != FRG_GW_VERTEX) {
        o.epsilon = 0.02;
        o.min_iter = o.min_iter < o.max_iter ? o.min_iter : o.max_iter;
        o.polish_passes = k->few ? 2 : 20;
    }
    return frgi_gw_open(out, ctx, where, (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y},
                        k->linear_weight > 0 ? &l : NULL, &o);
}

static inline frg_status put_gw_state(const void *solver, frg_checkpoint *c)
{
    return frg_gw_save(solver, c);
}

/** A frg_gw_saver, user a keeper. */
static inline frg_status keep_gw_run(void *user, const frg_gw *s, int stopped)
{
    return keep(user, s, stopped);
}

/* ---- copies of states ------------------------------------------------------------------------ */

static const char *const state_sections[] = {
    "format", "device",  "run",  "F",    "G",       "age0",  "age1", "age2",
    "age3",   "age4",    "age5", "rows", "columns", "past",  "plan", "sums",
    "core",   "numbers", "q",    "w",    "h",       "lowest"};
enum { STATE_SECTIONS = sizeof state_sections / sizeof *state_sections };

/** A state in memory, of one start. */
typedef struct {
    frg_checkpoint *c;
    char *bytes[STATE_SECTIONS];
} state_copy;

static inline frg_status state_copy_of(frg_context *ctx, const frg_checkpoint *from,
                                       state_copy *out)
{
    *out = (state_copy){.c = NULL};
    frg_status status = frg_checkpoint_create(&out->c, ctx, "gw", 0, 0);
    for (int q = 0; q < STATE_SECTIONS && status >= 0; q++) {
        int64_t bytes = 0;
        const void *const section = frg_checkpoint_get(from, state_sections[q], &bytes);
        if (section) {
            out->bytes[q] = malloc((size_t)bytes);
            memcpy(out->bytes[q], section, (size_t)bytes);
            status = frg_checkpoint_put(out->c, state_sections[q], out->bytes[q], bytes);
        }
    }
    return status;
}

static inline void state_copy_close(state_copy *c)
{
    frg_checkpoint_destroy(c->c);
    for (int q = 0; q < STATE_SECTIONS; q++)
        free(c->bytes[q]);
    *c = (state_copy){.c = NULL};
}

/* ---- few points ------------------------------------------------------------------------------ */

enum { STATE_FEW = 9 };
typedef struct {
    const state_points *p;
    int64_t rank; /* 0: none */
} state_few;

/** *out <- the state of s; to be destroyed, failed or not. */
static inline frg_status state_save(frg_checkpoint **out, frg_context *ctx, const frg_gw *s)
{
    *out = NULL;
    const frg_status status = frg_checkpoint_create(out, ctx, "gw", 0, 0);
    return status < 0 ? status : frg_gw_save(s, *out);
}

/** The second state, where the run is killed. */
typedef struct {
    frg_context *ctx;
    int calls;
    state_copy copy;
} state_second;

/** A frg_gw_saver, user a state_second: ends the run with FRG_IO there. */
static inline frg_status keep_second(void *user, const frg_gw *s, int stopped)
{
    state_second *const k = user;
    frg_checkpoint *c = NULL;
    (void)stopped;
    if (++k->calls < 2)
        return FRG_OK;
    frg_status status = state_save(&c, k->ctx, s);
    if (status >= 0)
        status = state_copy_of(k->ctx, c, &k->copy);
    frg_checkpoint_destroy(c);
    return status < 0 ? status : FRG_IO;
}

/** Runs a few steps of a few points: to the second state, or from there (from) to the end. */
static inline frg_status state_few_run(frg_context *ctx, frgi_device *dev, const state_few *of,
                                       state_second *to, const frg_checkpoint *from, double *out)
{
    enum { N = 8, M = STATE_FEW };
    const state_kind k = {.mode = FRG_GW_SAMPLED,
                          .distance = FRG_GW_DISTANCE_EUCLIDEAN,
                          .multiscale = FRG_GW_MULTISCALE_OFF,
                          .start_from = FRG_GW_START_PRODUCT,
                          .n_start = 1,
                          .max_iter = 2,
                          .rank = of->rank,
                          .linear_weight = 0.3,
                          .mass = of->rank > 0 ? 0 : 0.6,
                          .keeps = of->rank == 0,
                          .few = true};
    frg_gw *s = NULL;
    frg_status status = state_open_some(&s, ctx, (frgi_gw_place){.dev = dev}, of->p, N, M, &k);
    if (status >= 0 && from)
        status = frg_gw_resume(s, from);
    if (status >= 0) {
        frg_gw_keep(s, from ? NULL : keep_second, to);
        status = frg_gw_run(s, NULL);
    }
    if (status >= 0 && of->rank > 0)
        status = frg_gw_factors(s, NULL, NULL, out);
    else if (status >= 0)
        status = frg_gw_potentials(s, NULL, out);
    frg_gw_destroy(s);
    return status;
}

/** A driver_body, user a state_few: killed, and gone on; out has STATE_FEW numbers. */
static inline frg_status state_body(frg_context *ctx, frg_device which, const void *user,
                                    double *out)
{
    state_second second = {.ctx = ctx};
    frgi_device *dev = NULL;
    memset(out, 0, STATE_FEW * sizeof *out);
    frg_status status = frgi_device_open(&dev, ctx, which);
    if (status >= 0)
        status = state_few_run(ctx, dev, user, &second, NULL, out);
    if (status == FRG_IO) /* killed */
        status = state_few_run(ctx, dev, user, NULL, second.copy.c, out);
    state_copy_close(&second.copy);
    frgi_device_close(&dev);
    return status;
}

#endif
