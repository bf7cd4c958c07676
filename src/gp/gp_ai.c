/* gp_ai.c - Levenberg-Marquardt steps on the average information, with a trust region.
 *
 * Near a maximum of the likelihood the average information AI_st = 1/2 (K_s a)' K^-1 (K_t a) stands
 * for the Hessian of -ell: positive semidefinite everywhere, the mean of the observed and the
 * expected information but for second derivatives of K (gp_information.c), and nearly free once the
 * inverse is there.  A step is that of the damped model (below): every component is cut to 2 (a
 * factor of e^2 = 7 in a log parameter), and the point is moved into the box.  A step that lowers f
 * is kept and mu changes with the ratio of actual to predicted reduction; else mu grows five times,
 * to 0.2 at least.  After three rejected steps in a row, a predicted reduction that is rounding, or
 * five steps that gained next to nothing where the model predicts more, the model is wrong here,
 * and L-BFGS-B continues from the point reached.
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
    frgi_gp_found *found;
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

/** p <- the damped step, cut and inside the box; returns -(g'p + p'Hp/2), the predicted
 *  reduction. */
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

/** Gradient and information at the iterate, where the last value was computed. */
static frg_status ask_derivatives(region *r)
{
    frg_status status = frgi_gp_ask_gradient(r->o, r->g, r->found);
    if (status == FRG_OK) {
        status = r->o->information(r->o->user, r->model.h);
    }
    if (status != FRG_OK) {
        return status;
    }
    r->found->f = r->f;
    r->found->norm = frgi_gp_projected_norm(r->o, r->x, r->g);
    return r->o->accepted ? r->o->accepted(r->o->user, r->x, r->f, r->found->norm) : FRG_OK;
}

/** The factor of mu after an accepted step (Nielsen 1999): max(0.2, 1 - (2 ratio - 1)^3) below
 *  ratio = 2, 0.2 from there on; ratio: actual over predicted reduction. */
static double damping_factor(double ratio)
{
    const double t = 2 * ratio - 1;
    return ratio >= 0 && ratio < 2 ? fmax(0.2, 1 - t * t * t) : 0.2;
}

/** Is the reduction that the model predicts for a full step too small to go on? */
static bool is_done(region *r)
{
    const double promise = frgi_gp_promise(r->o, r->x, r->g, &r->model);
    r->found->end = frgi_gp_is_end(r->o, r->s, r->f, promise);
    return r->found->end != GP_ENDED_OTHERWISE;
}

/** FRG_STALLED: the model has failed, and a search without it shall go on. */
static frg_status run(region *r)
{
    for (int i = 0; i < r->n; i++) {
        r->x[i] = frgi_gp_clip(r->o, i, r->x[i]);
    }
    frg_status status = frgi_gp_ask_value(r->o, r->x, &r->f, r->found);
    if (status == FRG_OK) {
        status = ask_derivatives(r);
    }
    int rejected = 0, idle = 0;
    while (status == FRG_OK && r->found->norm > r->s->tol) {
        if (r->found->iterations >= r->s->max_iter) {
            return FRG_MAX_ITER;
        }
        const double predicted = damped_step(r), scale = fmax(fabs(r->f), 1);
        if (fabs(predicted) <= 10 * DBL_EPSILON * scale) { /* f cannot resolve it */
            return is_done(r) ? FRG_OK : FRG_STALLED;
        }
        double f = (double)INFINITY;
        status = frgi_gp_ask_value(r->o, r->trial, &f, r->found);
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
        r->mu = fmax(damping_factor(won / predicted) * r->mu, LEAST_DAMPING);
        r->f = f;
        memcpy(r->x, r->trial, (size_t)r->n * sizeof *r->x);
        r->found->iterations++;
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
    region r = {.o = o, .s = s, .found = out, .n = o->n, .mu = START_DAMPING, .x = x};
    frgi_arena a = {0};
    lay_out(&a, &r);
    TRY(frgi_arena_open(&a, ctx, "work memory of the trust region"));
    lay_out(&a, &r);
    const frg_status status = run(&r);
    frgi_arena_close(&a, ctx);
    return status == FRG_STALLED ? frgi_gp_lbfgsb(ctx, o, s, x, out) : status;
}

/* ---- the damped model ------------------------------------------------------------------------ */

/* Steps of a quadratic model whose curvature is an information matrix: see gp_optimise.h.
 *
 *     (H + F + mu diag(H)) p = -g        over the coordinates that may move,
 *     F_ii = max(0, |g_i| - H_ii, FLAT tr H - H_ii)
 *
 * F is for coordinates t = log l in which the likelihood becomes flat, as lengthscales of columns
 * that do not matter: there ell approaches its limit like e^-2t, so that its curvature is 2 |g|,
 * but the information, quadratic in the derivative, falls like e^-4t, and steps divided by it would
 * be arbitrarily long.  On 442 points with 12 parameters it halves the evaluations.
 *
 * H is scaled to a unit diagonal before it is factored; a direction without information (a zero
 * row) has F alone.  Parameters that only count together (a variance times a variance) make
 * H singular, and rounding may take it further: where there is no factor mu grows until there is
 * one.
 *
 * The promise of a point is the reduction that the model predicts for its step with the least
 * damping, shortened to components of FRGI_GP_LONGEST_STEP: where H is singular the rounding of g
 * alone could make it arbitrarily long.
 *
 * Letters: g the gradient, H the information, p the step, mu the damping.  n^3/3 flop a try. */

enum { MAX_TRIES = 12 };
static const double FLAT = 1e-10, STEEPER = 10, LEAST_MODEL_DAMPING = 1e-10;

/** a (n x n, row-major, lower triangle) <- L with a = L L'; p <- a^-1 p.  False where a pivot is
 *  not positive. */
static bool factor_and_solve(int n, double *a, double *p)
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

void frgi_gp_model_take(frgi_arena *a, int n, frgi_gp_model *m)
{
    m->h = TAKE(a, double, n *n);
    m->system = TAKE(a, double, n *n);
    m->p = TAKE(a, double, n);
    m->scale = TAKE(a, double, n);
}

/** scale_i = (H + F)_ii^-1/2, 0 where coordinate i stays.  (H + F)_ii >= |g_i|, so that no
 *  coordinate alone goes further than 1. */
static void find_scale(const frgi_gp_objective *o, const double *x, const double *g,
                       frgi_gp_model *m)
{
    const int n = o->n;
    double trace = 0;
    for (int i = 0; i < n; i++) {
        trace += m->h[i * n + i];
    }
    for (int i = 0; i < n; i++) {
        const double h = fmax(fmax(m->h[i * n + i], fabs(g[i])), FLAT * trace);
        const bool moves = g[i] > 0 ? x[i] > o->lower[i] : x[i] < o->upper[i];
        m->scale[i] = moves && h > 0 ? 1 / sqrt(h) : 0;
    }
}

/** p <- scale^-1 times the step, by S (H + F + mu diag(H)) S with S = diag(scale), whose diagonal
 *  is 1 + mu H_ii scale_i^2; false where that has no factor. */
static bool try_damping(int n, const double *g, double mu, frgi_gp_model *m)
{
    for (int i = 0; i < n; i++) {
        const double s = m->scale[i];
        for (int j = 0; j < i; j++) {
            m->system[i * n + j] = m->h[i * n + j] * s * m->scale[j];
        }
        m->system[i * n + i] = 1 + mu * m->h[i * n + i] * s * s;
        m->p[i] = -g[i] * s;
    }
    return factor_and_solve(n, m->system, m->p);
}

bool frgi_gp_damped(const frgi_gp_objective *o, const double *x, const double *g, double *mu,
                    frgi_gp_model *m)
{
    find_scale(o, x, g, m);
    int tries = 1;
    while (!try_damping(o->n, g, *mu, m)) {
        if (++tries > MAX_TRIES) {
            return false; /* h or g are not numbers */
        }
        *mu = fmax(STEEPER * *mu, LEAST_MODEL_DAMPING);
    }
    for (int i = 0; i < o->n; i++) {
        m->p[i] *= m->scale[i];
    }
    return true;
}

double frgi_gp_promise(const frgi_gp_objective *o, const double *x, const double *g,
                       frgi_gp_model *m)
{
    double mu = LEAST_MODEL_DAMPING, slope = 0, longest = 0;
    if (!frgi_gp_damped(o, x, g, &mu, m)) {
        return (double)INFINITY;
    }
    for (int i = 0; i < o->n; i++) {
        slope += g[i] * m->p[i];
        longest = fmax(longest, fabs(m->p[i]));
    }
    const double share = longest > FRGI_GP_LONGEST_STEP ? FRGI_GP_LONGEST_STEP / longest : 1;
    return -slope * share * (1 - 0.5 * share); /* p minimises g'p + p'Bp/2: p'Bp = -g'p */
}
