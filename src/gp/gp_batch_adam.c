/* gp_batch_adam.c - Adam on the processes of one vector side by side.
 *
 * The steps and coordinates are those of a fit of one process (gp_adam.h, gp_coordinates.h).  A
 * process whose lane has no good value at some point leaves the lanes: it returns to its start and
 * is fitted alone; its lane stands still. */
#include <math.h>
#include <string.h>

#include "gp/gp_adam.h"
#include "gp/gp_batch.h"
#include "gp/gp_coordinates.h"

/** One process's search. */
typedef struct {
    frgi_gp_coordinates to;
    double *u, *g, *m, *v; /* of each coordinate: place, gradient, moments */
    double *start;         /* parameters */
} search;

static void lay_out(frgi_arena *a, const frg_gp *gp, search *s)
{
    const int p = gp->model.params.count;
    frgi_gp_coordinates_take(a, gp, &s->to);
    s->u = TAKE(a, double, p);
    s->g = TAKE(a, double, p);
    s->m = TAKE(a, double, p);
    s->v = TAKE(a, double, p);
    s->start = TAKE(a, double, p);
}

static void start(const frg_gp *gp, bool standardize, search *s)
{
    frgi_gp_coordinates_set(&s->to, true, standardize);
    frgi_gp_coordinates_of(&s->to, gp->model.theta, s->u);
    memset(s->m, 0, (size_t)gp->model.params.count * sizeof *s->m);
    memset(s->v, 0, (size_t)gp->model.params.count * sizeof *s->v);
    memcpy(s->start, gp->model.theta, (size_t)gp->model.params.count * sizeof *s->start);
}

static frg_status move(frg_gp *gp, const frg_gp_fit_opts *o, int64_t t, search *s, double *theta)
{
    const frgi_gp_adam_step now = frgi_gp_adam_at(o->learning_rate, t);
    memcpy(theta, gp->model.theta, (size_t)gp->model.params.count * sizeof *theta);
    frgi_gp_coordinates_gradient(&s->to, gp->vectors.gradient, s->g);
    for (int k = 0; k < s->to.count; k++) {
        const double g = -s->g[k] / (double)gp->data.n;
        s->u[k] -= frgi_gp_adam_move(&now, g, &s->m[k], &s->v[k]);
        s->u[k] = fmin(fmax(s->u[k], s->to.lower[k]), s->to.upper[k]);
    }
    frgi_gp_coordinates_values(&s->to, s->u, theta);
    return frgi_gp_set_theta(gp, theta);
}

static frg_status lose(frg_gp *gp, const search *s, bool *done)
{
    *done = false;
    return frgi_gp_set_theta(gp, s->start);
}

static frg_status steps(frg_context *ctx, frgi_arena *kept, frgi_gp_batch_lanes *r,
                        const frg_gp_fit_opts *o, search s[LANES_MOST], double *theta,
                        bool done[LANES_MOST])
{
    for (int64_t t = 1; t <= o->max_iter + 1; t++) {
        frg_status status = frgi_gp_run_lanes(ctx, kept, r, true);
        for (int l = 0; l < r->ops->width && status == FRG_OK; l++) {
            if (!done[l])
                continue;
            if (!frgi_gp_take_value(r, l)) {
                status = lose(r->gp[l], &s[l], &done[l]);
                continue;
            }
            frgi_gp_take_gradient(r, l);
            if (t <= o->max_iter)
                status = move(r->gp[l], o, t, &s[l], theta);
        }
        if (status == FRG_OK)
            status = frgi_heartbeat(ctx, &(frg_progress){.solver = "gp",
                                                         .phase = "adam",
                                                         .done = t,
                                                         .total = o->max_iter,
                                                         .residual = (double)NAN,
                                                         .target = o->tol});
        if (status != FRG_OK)
            return status;
    }
    return FRG_OK;
}

frg_status frgi_gp_adam_lanes(frg_context *ctx, frgi_arena *kept, frgi_gp_batch_lanes *r,
                              const frg_gp_fit_opts *o, bool done[LANES_MOST])
{
    search s[LANES_MOST];
    frgi_arena a = {0};
    int most = 0;
    for (int l = 0; l < r->ops->width; l++) {
        done[l] = r->gp[l] != NULL;
        if (!done[l])
            continue;
        lay_out(&a, r->gp[l], &s[l]);
        most = r->gp[l]->model.params.count > most ? r->gp[l]->model.params.count : most;
    }
    double *theta = TAKE(&a, double, most);
    TRY(frgi_arena_open(&a, ctx, "searches of fits side by side"));
    for (int l = 0; l < r->ops->width; l++)
        if (done[l]) {
            lay_out(&a, r->gp[l], &s[l]);
            start(r->gp[l], o->standardize, &s[l]);
        }
    theta = TAKE(&a, double, most);
    const frg_status status = steps(ctx, kept, r, o, s, theta, done);
    frgi_arena_close(&a, ctx);
    return status;
}
