/* gp_ai.c - a trust region of Levenberg and Marquardt's kind on the average information.
 *
 * Near a maximum of the likelihood the average information AI_st = 1/2 (K_s a)' K^-1 (K_t a) stands
 * for the Hessian of -ell: positive semidefinite everywhere, exact in the mean of observed and
 * expected information, and nearly free once the inverse is there.  A step is that of the damped
 * model (gp_damped.c): every component is cut to 2 (a factor of e^2 = 7 in a log parameter), and
 * the point is moved into the box.  A step that lowers f is kept and mu follows the gain over what
 * the model promised; else mu grows five times, to 0.2 at least.  After three failures in a row, or
 * five steps that won next to nothing where the model promises more, it is wrong here, and L-BFGS-B
 * goes on from the point reached.
 *
 * Letters: f the objective, g its gradient, H the information in the optimiser's coordinates, mu
 * the damping. Cost beside the objective: n^3/3 a step.
 *
 * Gilmour, Thompson and Cullis (1995), Biometrics 51, 1440-1450; More (1978), LNM 630, 105-116;
 * Nielsen (1999), IMM-REP-1999-05.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gp/gp_optimise.h"

enum { MAX_REJECTED = 3, MAX_IDLE = 5 };
static const double START_DAMPING = 1e-2, LEAST_DAMPING = 1e-8, RAISED_DAMPING = 0.2;

typedef struct {
    const frgi_gp_objective *o;
    const frgi_gp_search *s;
    frgi_gp_found *count;
    int n;
    double f, mu;
    double *x, *g, *trial, *p;
    frgi_gp_model model;
} region;

static void lay_out(frgi_arena *a, region *r)
{
    const size_t n = (size_t)r->n;
    frgi_gp_model_take(a, r->n, &r->model);
    r->g = TAKE(a, double, n);
    r->trial = TAKE(a, double, n);
    r->p = TAKE(a, double, n);
}

/** p <- the damped step, cut and inside the box; returns -(g'p + p'Hp/2), what the model expects to
 *  win. */
static double damped_step(region *r)
{
    const int n = r->n;
    const double *const h = r->model.h;
    if (!frgi_gp_damped(r->o, r->x, r->g, &r->mu, &r->model)) {
        return 0;
    }
    double expected = 0;
    for (int i = 0; i < n; i++) {
        const double p = r->model.p[i];
        const double cut = fmin(fmax(p, -FRGI_GP_LONGEST_STEP), FRGI_GP_LONGEST_STEP);
        r->trial[i] = frgi_gp_clip(r->o, i, r->x[i] + cut);
        r->p[i] = r->trial[i] - r->x[i];
        expected -= r->g[i] * r->p[i];
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            expected -= 0.5 * r->p[i] * h[(size_t)i * (size_t)n + (size_t)j] * r->p[j];
        }
    }
    return expected;
}

/** Gradient and information where the last value was asked; the iterate is there. */
static frg_status ask_derivatives(region *r)
{
    frg_status status = frgi_gp_ask_gradient(r->o, r->g, r->count);
    if (status == FRG_OK) {
        status = r->o->information(r->o->user, r->model.h);
    }
    if (status != FRG_OK) {
        return status;
    }
    r->count->f = r->f;
    r->count->norm = frgi_gp_projected_norm(r->o, r->x, r->g);
    return r->o->accepted ? r->o->accepted(r->o->user, r->x, r->f, r->count->norm) : FRG_OK;
}

/** The damping's factor after a step that won `gain` times what was expected (Nielsen 1999). */
static double calmed(double gain)
{
    const double t = 2 * gain - 1;
    return gain >= 0 && gain < 2 ? fmax(0.2, 1 - t * t * t) : 0.2;
}

/** Is what a full step promises too little to go on? */
static bool is_done(region *r)
{
    const double promise = frgi_gp_promise(r->o, r->x, r->g, &r->model);
    r->count->end = frgi_gp_is_end(r->o, r->s, r->f, promise);
    return r->count->end != GP_ENDED_OTHERWISE;
}

/** FRG_STALLED: the model has failed, and a search without it shall go on. */
static frg_status run(region *r)
{
    for (int i = 0; i < r->n; i++) {
        r->x[i] = frgi_gp_clip(r->o, i, r->x[i]);
    }
    frg_status status = frgi_gp_ask_value(r->o, r->x, &r->f, r->count);
    if (status == FRG_OK) {
        status = ask_derivatives(r);
    }
    int rejected = 0, idle = 0;
    while (status == FRG_OK && r->count->norm > r->s->tol) {
        if (r->count->iterations >= r->s->max_iter) {
            return FRG_MAX_ITER;
        }
        const double expected = damped_step(r), scale = fmax(fabs(r->f), 1);
        if (fabs(expected) <= 10 * DBL_EPSILON * scale) { /* nothing that f could show */
            return is_done(r) ? FRG_OK : FRG_STALLED;
        }
        double f = (double)INFINITY;
        status = frgi_gp_ask_value(r->o, r->trial, &f, r->count);
        if (status != FRG_OK && status != FRG_NOT_POSDEF) {
            return status;
        }
        if (!(f < r->f)) {
            status = FRG_OK;
            r->mu = fmax(5 * r->mu, RAISED_DAMPING);
            if (++rejected == MAX_REJECTED) {
                return FRG_STALLED;
            }
            continue;
        }
        const double won = r->f - f;
        rejected = 0;
        r->mu = fmax(calmed(won / expected) * r->mu, LEAST_DAMPING);
        r->f = f;
        memcpy(r->x, r->trial, (size_t)r->n * sizeof *r->x);
        r->count->iterations++;
        status = ask_derivatives(r);
        if (status == FRG_OK && won <= r->s->relative * fmax(scale, fabs(f))) {
            if (is_done(r)) {
                break;
            }
            if (++idle == MAX_IDLE) {
                return FRG_STALLED;
            }
        } else {
            idle = 0;
        }
    }
    return status == FRG_NOT_POSDEF ? FRG_STALLED : status;
}

frg_status frgi_gp_ai(frg_context *ctx, const frgi_gp_objective *o, const frgi_gp_search *s,
                      double *x, frgi_gp_found *out)
{
    region r = {.o = o, .s = s, .count = out, .n = o->n, .mu = START_DAMPING, .x = x};
    frgi_arena a = {0};
    lay_out(&a, &r);
    TRY(frgi_arena_open(&a, ctx, "work memory of the trust region"));
    lay_out(&a, &r);
    const frg_status status = run(&r);
    frgi_arena_close(&a, ctx);
    return status == FRG_STALLED ? frgi_gp_lbfgsb(ctx, o, s, x, out) : status;
}
