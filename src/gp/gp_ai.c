/* gp_ai.c - a trust region of Levenberg and Marquardt's kind on the average information.
 *
 * Near a maximum of the likelihood the average information AI_st = 1/2 (K_s a)' K^-1 (K_t a) stands for the
 * Hessian of -ell: positive semidefinite everywhere, exact in the mean of observed and expected information, and
 * nearly free once the inverse is there.  A step solves
 *
 *     (H + F + mu diag(H)) p = -g        over the coordinates that may move,
 *     F_ii = max(0, |g_i| - H_ii)
 *
 * The floor F is for coordinates in which the likelihood runs out flat, as lengthscales that the data do not ask
 * for: there ell falls like e^-2t and its curvature is 2 |g|, but the information, of second order in the
 * derivative, falls like e^-4t and would send the step anywhere.  On 442 points with 12 parameters it halves the
 * evaluations.  Every component is cut to 2 (a factor of e^2 = 7 in a log parameter), and the point is moved into
 * the box.  A step that lowers f is kept and mu follows the gain over what the model promised; else mu grows
 * five times, to 0.2 at least.  After three failures in a row the model is wrong here, and L-BFGS-B goes on from the point reached.
 *
 * Letters: f the objective, g its gradient, H the information in the optimiser's coordinates, mu the damping.
 * Cost beside the objective: n^3/3 a step.  H is scaled to a unit diagonal before it is factored; a direction
 * without information (a zero row) has its floor alone.
 *
 * Gilmour, Thompson and Cullis (1995), Biometrics 51, 1440-1450; More (1978), LNM 630, 105-116; Nielsen (1999),
 * IMM-REP-1999-05.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gp/gp_optimise.h"

enum { MAX_REJECTED = 3 };
static const double START_DAMPING = 1e-2, LEAST_DAMPING = 1e-8, RAISED_DAMPING = 0.2,
                    LONGEST_STEP = 2, FLAT = 1e-10;

typedef struct {
    const frgi_gp_objective *o;
    const frgi_gp_search *s;
    frgi_gp_found *count;
    int n;
    double f, mu;
    double *x, *g, *h, *system, *trial, *p, *scale;
} region;

static void lay_out(frgi_arena *a, region *r)
{
    const size_t n = (size_t)r->n;
    r->h = TAKE(a, double, n *n);
    r->system = TAKE(a, double, n *n);
    r->g = TAKE(a, double, n);
    r->trial = TAKE(a, double, n);
    r->p = TAKE(a, double, n);
    r->scale = TAKE(a, double, n);
}

/** a (n x n, row-major, lower triangle) <- L with a = L L'; p <- a^-1 p.  False where a pivot is not positive. */
static bool solve(int n, double *a, double *p)
{
    for (int j = 0; j < n; j++) {
        double *aj = a + (size_t)j * (size_t)n;
        for (int i = 0; i <= j; i++) {
            const double *ai = a + (size_t)i * (size_t)n;
            double sum = aj[i];
            for (int k = 0; k < i; k++) {
                sum -= aj[k] * ai[k];
            }
            if (i < j) {
                aj[i] = sum / ai[i];
            } else if (!(sum > 0)) {
                return false;
            } else {
                aj[i] = sqrt(sum);
            }
        }
        for (int k = 0; k < j; k++) {
            p[j] -= aj[k] * p[k];
        }
        p[j] /= aj[j];
    }
    for (int j = n - 1; j >= 0; j--) {
        const double *aj = a + (size_t)j * (size_t)n;
        p[j] /= aj[j];
        for (int k = 0; k < j; k++) {
            p[k] -= aj[k] * p[j];
        }
    }
    return true;
}

/** H_ii where it says something; at least |g_i|, so that no coordinate alone goes further than 1. */
static double floored(const region *r, int i, double least)
{
    const double h = r->h[(size_t)i * (size_t)r->n + (size_t)i];
    return fmax(fmax(h, fabs(r->g[i])), least);
}

/** p <- the damped step, cut and inside the box; returns -(g'p + p'Hp/2), what the model expects to win. */
static double damped_step(region *r)
{
    const int n = r->n;
    const size_t ld = (size_t)n;
    double trace = 0;
    for (int i = 0; i < n; i++) {
        trace += r->h[(size_t)i * ld + (size_t)i];
    }
    for (int i = 0; i < n; i++) {
        const double h = floored(r, i, FLAT * trace);
        const bool moves = r->g[i] > 0 ? r->x[i] > r->o->lower[i] : r->x[i] < r->o->upper[i];
        r->scale[i] = moves && h > 0 ? 1 / sqrt(h) : 0;
        r->p[i] = -r->g[i] * r->scale[i];
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            const size_t at = (size_t)i * ld + (size_t)j;
            r->system[at] = r->h[at] * r->scale[i] * r->scale[j];
        }
        const double own = r->h[(size_t)i * ld + (size_t)i] * r->scale[i] * r->scale[i];
        r->system[(size_t)i * ld + (size_t)i] = 1 + r->mu * own;
    }
    if (!solve(n, r->system, r->p)) {
        return 0;
    }
    double expected = 0;
    for (int i = 0; i < n; i++) {
        const double p = r->p[i] * r->scale[i];
        const double cut = p > LONGEST_STEP ? LONGEST_STEP : p < -LONGEST_STEP ? -LONGEST_STEP : p;
        r->trial[i] = frgi_gp_clip(r->o, i, r->x[i] + cut);
        r->p[i] = r->trial[i] - r->x[i];
        expected -= r->g[i] * r->p[i];
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            expected -= 0.5 * r->p[i] * r->h[(size_t)i * ld + (size_t)j] * r->p[j];
        }
    }
    return expected;
}

/** Gradient and information where the last value was asked; the iterate is there. */
static frg_status look_closely(region *r)
{
    frg_status status = frgi_gp_ask_gradient(r->o, r->g, r->count);
    if (status == FRG_OK) {
        status = r->o->information(r->o->user, r->h);
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

/** FRG_STALLED: the model has failed, and a search without it shall go on. */
static frg_status run(region *r)
{
    for (int i = 0; i < r->n; i++) {
        r->x[i] = frgi_gp_clip(r->o, i, r->x[i]);
    }
    frg_status status = frgi_gp_ask_value(r->o, r->x, &r->f, r->count);
    if (status == FRG_OK) {
        status = look_closely(r);
    }
    int rejected = 0;
    while (status == FRG_OK && r->count->norm > r->s->tol) {
        if (r->count->iterations >= r->s->max_iter) {
            return FRG_MAX_ITER;
        }
        const double expected = damped_step(r), scale = fmax(fabs(r->f), 1);
        if (fabs(expected) <= 10 * DBL_EPSILON * scale) {
            return r->mu > 1 ? FRG_STALLED : FRG_OK;
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
        status = look_closely(r);
        if (status == FRG_OK && won <= r->s->relative * fmax(scale, fabs(f)) && r->mu < 1) {
            break;
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
