/* gp_damped.c - steps of a quadratic model whose curvature is an information matrix: see
 * gp_optimise.h.
 *
 *     (H + F + mu diag(H)) p = -g        over the coordinates that may move,
 *     F_ii = max(0, |g_i| - H_ii)
 *
 * The floor F is for coordinates in which the likelihood runs out flat, as lengthscales that the
 * data do not ask for: there ell falls like e^-2t and its curvature is 2 |g|, but the information,
 * of second order in the derivative, falls like e^-4t and would send the step anywhere.  On 442
 * points with 12 parameters it halves the evaluations.
 *
 * H is scaled to a unit diagonal before it is factored; a direction without information (a zero
 * row) has its floor alone.  Parameters that only count together (a variance times a variance) make
 * H singular, and rounding may take it further: where there is no factor mu grows until there is
 * one.
 *
 * The promise of a point is what the model wins by its step with the least damping, shortened where
 * a component is longer than the longest that a search takes: where H is singular the rounding of g
 * would send it anywhere.
 *
 * Letters: g the gradient, H the information, p the step, mu the damping.  n^3/3 flop a try.
 */
#include <math.h>

#include "gp/gp_optimise.h"

enum { MAX_TRIES = 12 };
static const double FLAT = 1e-10, STEEPER = 10, LEAST_DAMPING = 1e-10;

/** a (n x n, row-major, lower triangle) <- L with a = L L'; p <- a^-1 p.  False where a pivot is
 *  not positive. */
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

void frgi_gp_model_take(frgi_arena *a, int n, frgi_gp_model *m)
{
    m->h = TAKE(a, double, n *n);
    m->system = TAKE(a, double, n *n);
    m->p = TAKE(a, double, n);
    m->scale = TAKE(a, double, n);
}

/** scale_i = (H + F)_ii^-1/2, 0 where coordinate i stays; H_ii at least |g_i|, so that no
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
    return solve(n, m->system, m->p);
}

bool frgi_gp_damped(const frgi_gp_objective *o, const double *x, const double *g, double *mu,
                    frgi_gp_model *m)
{
    find_scale(o, x, g, m);
    int tries = 1;
    while (!try_damping(o->n, g, *mu, m)) {
        if (++tries > MAX_TRIES) {
            return false; /* it is not a number */
        }
        *mu = fmax(STEEPER * *mu, LEAST_DAMPING);
    }
    for (int i = 0; i < o->n; i++) {
        m->p[i] *= m->scale[i];
    }
    return true;
}

double frgi_gp_promise(const frgi_gp_objective *o, const double *x, const double *g,
                       frgi_gp_model *m)
{
    double mu = LEAST_DAMPING, slope = 0, longest = 0;
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
