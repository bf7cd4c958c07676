/* gp_batch_adam.c - Adam on the processes of one vector side by side.
 *
 * The steps are those of gp_adam.c on the coordinates of gp_fit.c, u = (raw - shift) / unit with v = T(raw), where only
 * a constant mean has a shift (its start) and a unit (the standard deviation of y).  A process whose lane has no good
 * value at some point is lost to the room: it returns to its start and is fitted alone, and stands still meanwhile. */
#include <math.h>
#include <string.h>

#include "gp/gp_batch.h"
#include "gp/gp_fit.h"

static const double DECAY_1 = 0.9, DECAY_2 = 0.999, EPSILON = 1e-8, INFINITE_RAW = 5;

/** One parameter's search. */
typedef struct {
    double u, m, v, shift, unit, lower, upper, start;
} coordinate;

static double bound(const frgi_gp_param *p, const coordinate *c, double value, double side)
{
    const double raw = isfinite(value) ? frgi_gp_transform_raw(p, value) : (double)NAN;
    return isfinite(raw) ? (raw - c->shift) / c->unit : side * (double)INFINITY;
}

static double deviation_of_y(const frg_gp *gp)
{
    double mean = 0, square = 0;
    for (ptrdiff_t i = 0; i < gp->n; i++) {
        const double change = gp->y[i] - mean;
        mean += change / (double)(i + 1);
        square += change * (gp->y[i] - mean);
    }
    const double sd = sqrt(square / (double)gp->n);
    return sd > 0 && isfinite(sd) ? sd : 1;
}

static void start(const frg_gp *gp, bool standardize, coordinate *c)
{
    for (int i = 0; i < gp->params.count; i++) {
        const frgi_gp_param *const p = &gp->params.p[i];
        const bool mean = standardize && p->role == GP_ROLE_MEAN;
        c[i] = (coordinate){.start = gp->theta[i], .shift = mean ? gp->theta[i] : 0, .unit = 1};
        if (mean)
            c[i].unit = deviation_of_y(gp);
        const double raw = frgi_gp_transform_raw(p, gp->theta[i]);
        c[i].u = ((isfinite(raw) ? raw : copysign(INFINITE_RAW, raw)) - c[i].shift) / c[i].unit;
        c[i].lower = bound(p, &c[i], p->lower, -1);
        c[i].upper = bound(p, &c[i], p->upper, 1);
    }
}

/** theta_i at its coordinate, within bounds that belong to the values. */
static double value_of(const frgi_gp_param *p, const coordinate *c)
{
    const bool open = p->transform == FRG_GP_SOFTPLUS || p->transform == FRG_GP_INTERVAL;
    const double lower = open ? nextafter(p->lower, (double)INFINITY) : p->lower;
    const double upper = open ? nextafter(p->upper, -(double)INFINITY) : p->upper;
    const double v = frgi_gp_transform_value(p, c->shift + c->unit * c->u);
    return v < lower ? lower : v > upper ? upper : v;
}

static frg_status move(frg_gp *gp, const frg_gp_fit_opts *o, int64_t t, coordinate *c,
                       double *theta)
{
    const double correct_1 = 1 - pow(DECAY_1, (double)t),
                 root_2 = sqrt(1 - pow(DECAY_2, (double)t));
    for (int i = 0; i < gp->params.count; i++) {
        const frgi_gp_param *const p = &gp->params.p[i];
        theta[i] = gp->theta[i];
        if (p->fixed)
            continue;
        const double raw = frgi_gp_transform_raw(p, theta[i]);
        const double slope = isfinite(raw) ? frgi_gp_transform_slope(p, raw) : 0;
        const double g = -gp->gradient[i] * (p->per_value ? slope : slope / theta[i]) * c[i].unit /
                         (double)gp->n;
        c[i].m += (1 - DECAY_1) * (g - c[i].m);
        c[i].v = DECAY_2 * c[i].v + (1 - DECAY_2) * g * g;
        c[i].u -= o->learning_rate / correct_1 * c[i].m / (sqrt(c[i].v) / root_2 + EPSILON);
        c[i].u = fmin(fmax(c[i].u, c[i].lower), c[i].upper);
        theta[i] = value_of(p, &c[i]);
    }
    return frgi_gp_set_theta(gp, theta);
}

static frg_status lose(frg_gp *gp, const coordinate *c, double *theta, bool *done)
{
    for (int i = 0; i < gp->params.count; i++)
        theta[i] = c[i].start;
    *done = false;
    return frgi_gp_set_theta(gp, theta);
}

static frg_status steps(frg_context *ctx, frgi_arena *kept, frgi_gp_batch_room *r,
                        const frg_gp_fit_opts *o, coordinate *const c[LANES_MOST], double *theta,
                        bool done[LANES_MOST])
{
    for (int64_t t = 1; t <= o->max_iter + 1; t++) {
        frg_status status = frgi_gp_run_lanes(ctx, kept, r, true);
        for (int l = 0; l < r->ops->width && status == FRG_OK; l++) {
            if (!done[l])
                continue;
            if (!frgi_gp_take_value(r, l)) {
                status = lose(r->gp[l], c[l], theta, &done[l]);
                continue;
            }
            frgi_gp_take_gradient(r, l);
            if (t <= o->max_iter)
                status = move(r->gp[l], o, t, c[l], theta);
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

frg_status frgi_gp_adam_lanes(frg_context *ctx, frgi_arena *kept, frgi_gp_batch_room *r,
                              const frg_gp_fit_opts *o, bool done[LANES_MOST])
{
    coordinate *c[LANES_MOST] = {NULL};
    double *theta = NULL;
    int most = 0;
    frg_status status = FRG_OK;
    for (int l = 0; l < r->ops->width; l++) {
        done[l] = r->gp[l] && (r->gp[l]->mean != GP_MEAN_LINEAR || !o->standardize);
        if (!done[l])
            continue;
        TRY_TO(failed, frgi_gp_check_start(r->gp[l]));
        TRY_TO(failed, NEW(ctx, &c[l], r->gp[l]->params.count, "coordinates of a fit"));
        start(r->gp[l], o->standardize, c[l]);
        most = r->gp[l]->params.count > most ? r->gp[l]->params.count : most;
    }
    TRY_TO(failed, NEW(ctx, &theta, most, "parameters of a fit"));
    status = steps(ctx, kept, r, o, c, theta, done);
failed:
    DROP(ctx, &theta);
    for (int l = 0; l < LANES_MOST; l++)
        DROP(ctx, &c[l]);
    return status;
}
