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

/* ---- few points ------------------------------------------------------------------------------ */

enum { STATE_FEW = 9 };
typedef struct {
    const state_points *p;
    int64_t rank; /* 0: none */
} state_few;

/** Runs a few steps of a few points to their end, or to their second state, where it is killed. */
static inline frg_status state_few_run(frg_context *ctx, frgi_device *dev, const state_few *of,
                                       const char *path, const frg_checkpoint *from, double *out)
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
                          .few = true};
    keeper keeps = {.ctx = ctx,
                    .name = "gw",
                    .put = put_gw_state,
                    .path = path,
                    .at = 2,
                    .how = IS_KILLED};
    frg_gw *s = NULL;
    frg_status status = state_open_some(&s, ctx, (frgi_gw_place){.dev = dev}, of->p, N, M, &k);
    if (status >= 0 && from)
        status = frg_gw_resume(s, from);
    if (status >= 0) {
        frg_gw_keep(s, from ? NULL : keep_gw_run, &keeps);
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
    char path[sizeof STATE_PATH];
    frgi_device *dev = NULL;
    frg_checkpoint *c = NULL;
    memset(out, 0, STATE_FEW * sizeof *out);
    open_path(path);
    frg_status status = frgi_device_open(&dev, ctx, which);
    if (status >= 0)
        status = state_few_run(ctx, dev, user, path, NULL, out);
    if (status == FRG_IO) /* killed */
        status = frg_checkpoint_load(&c, ctx, path);
    if (status >= 0)
        status = state_few_run(ctx, dev, user, path, c, out);
    frg_checkpoint_destroy(c);
    frgi_device_close(&dev);
    close_path(path);
    return status;
}

#endif
