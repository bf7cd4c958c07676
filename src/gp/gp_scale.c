/* gp_scale.c - the scale that the likelihood is maximal at.
 *
 *     K = f R,   f = r'R^-1 r / N,   N = n q, or (n - m) q under REML
 *
 * The code computes with R and the residual r / sqrt(f): with a = R^-1 r / sqrt(f) everything that
 * is of W = a a' - q R^-1 is what it would be of K, for f is where ell has no slope.  What is in
 * units of y is multiplied where it leaves: means by sqrt(f), variances by f.  Jones, Schonlau and
 * Welch (1998).
 */
#include <float.h>
#include <math.h>

#include "gp/gp_process.h"
#include "gp/gp_tree.h"

static const double ROUNDING = 8 * DBL_EPSILON; /* a residual of so much of y is none */

/* ---- the parameter that is one too many ------------------------------------------------------ */

static bool is_free(const frgi_gp_params *ps, int i)
{
    return !ps->p[i].fixed && ps->p[i].tie == 0;
}

/** The first free parameter that multiplies the node's value by itself, alone or with others of its
 *  group; -1: none. */
static int variance_of(const frgi_gp_kernel *k, const frgi_gp_params *ps, int at)
{
    const frgi_gp_node *const node = &k->node[at];
    const bool own = node->kind == GP_SCALE || node->kind == GP_LINEAR || node->kind == GP_SM ||
                     node->kind == GP_CONST || node->kind == GP_WHITE;
    for (int e = 0; own && e < node->group[0].count; e++) {
        const int i = node->group[0].first + e;
        if (is_free(ps, i)) {
            return i;
        }
    }
    int first = -1;
    for (int c = 0; c < node->children; c++) {
        const int i = variance_of(k, ps, frgi_gp_child(k, at, c));
        if (node->kind == GP_SUM && i < 0) {
            return -1;
        }
        first = first < 0 ? i : first;
    }
    return first;
}

void frgi_gp_scale_hold(frg_gp *gp)
{
    gp->state.scale = 1;
    frgi_gp_params *const ps = &gp->model.params;
    const int at = gp->opts.profile_scale
                       ? variance_of(gp->model.kernel, ps, gp->model.kernel->n_nodes - 1)
                       : -1;
    bool moves = at >= 0;
    for (int i = ps->noise_first; i < ps->noise_first + ps->noise_count; i++) {
        moves = moves && is_free(ps, i);
    }
    if (moves) {
        frgi_gp_param *const p = &ps->p[at];
        p->value = isnan(p->value) ? 1 : p->value;
        p->fixed = true;
    }
}

/* ---- the scale ------------------------------------------------------------------------------- */

double frgi_gp_scale_count(const frg_gp *gp)
{
    return (double)(gp->data.q * (gp->data.n - (gp->opts.reml ? gp->profile.count : 0)));
}

static double largest_of(const double *v, ptrdiff_t n)
{
    double largest = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        largest = fabs(v[i]) > largest ? fabs(v[i]) : largest;
    }
    return largest;
}

bool frgi_gp_scale_profile(frg_gp *gp)
{
    const ptrdiff_t all = gp->data.n * gp->data.q;
    gp->state.quad = 0;
    for (ptrdiff_t i = 0; i < all; i++) {
        gp->state.quad += gp->vectors.alpha[i] * gp->vectors.alpha[i];
    }
    if (!gp->opts.profile_scale) {
        return true;
    }
    const double count = frgi_gp_scale_count(gp);
    gp->state.scale = 0;
    if (!(count > 0 &&
          largest_of(gp->vectors.residual, all) > ROUNDING * largest_of(gp->data.y, all))) {
        return false;
    }
    gp->state.scale = gp->state.quad / count;
    const double divide = 1 / sqrt(gp->state.scale);
    for (ptrdiff_t i = 0; i < all; i++) {
        gp->vectors.alpha[i] *= divide;
        gp->vectors.residual[i] *= divide;
    }
    gp->state.quad = count;
    return gp->state.scale > 0;
}
