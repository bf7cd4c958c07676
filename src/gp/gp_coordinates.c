/* gp_coordinates.c - free parameters as coordinates of a search: see gp_coordinates.h.
 *
 * On logarithms standardising y is a shift and changes nothing; so the likelihood stays that of y
 * as given, and nothing has to be turned back.  Bounds go through the same map; one that has no raw
 * value is no bound. */
#include <math.h>

#include "gp/gp_coordinates.h"

static const double INFINITE_RAW = 5; /* where a search starts whose raw value is infinite */

void frgi_gp_coordinates_take(frgi_arena *a, const frg_gp *gp, frgi_gp_coordinates *c)
{
    const size_t p = (size_t)gp->model.params.count;
    c->gp = gp;
    c->index = TAKE(a, int, p);
    c->of = TAKE(a, int, p);
    c->shift = TAKE(a, double, p);
    c->scale = TAKE(a, double, p);
    c->lower = TAKE(a, double, p);
    c->upper = TAKE(a, double, p);
    c->range = TAKE(a, frgi_gp_range, p);
}

static double deviation(const double *v, ptrdiff_t n, ptrdiff_t stride)
{
    double mean = 0, square = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double change = v[i * stride] - mean;
        mean += change / (double)(i + 1);
        square += change * (v[i * stride] - mean);
    }
    const double sd = sqrt(square / (double)n);
    return sd > 0 && isfinite(sd) ? sd : 1;
}

/** The natural scale of parameter i: 1, or for means that of y over that of their input. */
static double natural_scale(const frg_gp *gp, int i)
{
    const frgi_gp_params *const ps = &gp->model.params;
    if (ps->p[i].role != GP_ROLE_MEAN) {
        return 1;
    }
    const int width = ps->mean_count / (int)gp->data.q, k = i - ps->mean_first;
    const double sd = deviation(gp->data.y + k / width * gp->data.n, gp->data.n, 1);
    const int input = k % width - 1;
    return input < 0 ? sd : sd / deviation(gp->data.x + input, gp->data.n, gp->data.d);
}

static const frgi_gp_param *parameter(const frgi_gp_coordinates *c, int k)
{
    return &c->gp->model.params.p[c->index[k]];
}

static double raw_of(const frgi_gp_coordinates *c, int k, double value)
{
    const frgi_gp_param *const p = parameter(c, k);
    return c->raw ? frgi_gp_transform_raw(p, value) : p->per_value ? value : log(value);
}

static double value_of(const frgi_gp_coordinates *c, int k, double raw)
{
    const frgi_gp_param *const p = parameter(c, k);
    return c->raw ? frgi_gp_transform_value(p, raw) : p->per_value ? raw : exp(raw);
}

static double bound_of(const frgi_gp_coordinates *c, int k, double value, double side)
{
    const double raw = isfinite(value) ? raw_of(c, k, value) : (double)NAN;
    return isfinite(raw) ? (raw - c->shift[k]) / c->scale[k] : side * (double)INFINITY;
}

void frgi_gp_coordinates_set(frgi_gp_coordinates *c, bool raw, bool standardize)
{
    const frg_gp *const gp = c->gp;
    c->raw = raw;
    c->count = 0;
    for (int i = 0; i < gp->model.params.count; i++) {
        const frgi_gp_param *const p = &gp->model.params.p[i];
        if (!frgi_gp_params_moves(&gp->model.params, i)) {
            continue;
        }
        const int k = c->count++;
        c->index[k] = i;
        c->range[k] = frgi_gp_params_range(&gp->model.params, i);
        c->of[i] = k;
        c->scale[k] = standardize ? natural_scale(gp, i) : 1;
        c->shift[k] = standardize && p->role == GP_ROLE_MEAN ? gp->model.theta[i] : 0;
        c->lower[k] = bound_of(c, k, c->range[k].lower, -1);
        c->upper[k] = bound_of(c, k, c->range[k].upper, 1);
    }
    for (int i = 0; i < gp->model.params.count; i++) {
        const int leader = frgi_gp_params_leader(&gp->model.params, i);
        c->of[i] = gp->model.params.p[leader].fixed ? -1 : c->of[leader];
    }
}

void frgi_gp_coordinates_of(const frgi_gp_coordinates *c, const double *theta, double *u)
{
    for (int k = 0; k < c->count; k++) {
        const double raw = raw_of(c, k, theta[c->index[k]]);
        const double inside = isfinite(raw) ? raw : raw > 0 ? INFINITE_RAW : -INFINITE_RAW;
        u[k] = (inside - c->shift[k]) / c->scale[k];
    }
}

void frgi_gp_coordinates_values(const frgi_gp_coordinates *c, const double *u, double *theta)
{
    for (int k = 0; k < c->count; k++) {
        const double v = value_of(c, k, c->shift[k] + c->scale[k] * u[k]);
        theta[c->index[k]] = frgi_gp_within(c->range[k], v);
    }
    frgi_gp_params_follow(&c->gp->model.params, theta);
}

/** d log v / d u_k (for means dv / d u_k) at the parameters of the process. */
static double scale(const frgi_gp_coordinates *c, int k)
{
    if (!c->raw) {
        return c->scale[k];
    }
    const frgi_gp_param *const p = parameter(c, k);
    const double v = c->gp->model.theta[c->index[k]], raw = frgi_gp_transform_raw(p, v);
    const double slope = isfinite(raw) ? frgi_gp_transform_slope(p, raw) : 0;
    return (p->per_value ? slope : slope / v) * c->scale[k];
}

void frgi_gp_coordinates_gradient(const frgi_gp_coordinates *c, const double *gradient, double *g)
{
    for (int k = 0; k < c->count; k++) {
        g[k] = 0;
    }
    for (int i = 0; i < c->gp->model.params.count; i++) {
        if (c->of[i] >= 0) {
            g[c->of[i]] += gradient[i];
        }
    }
    for (int k = 0; k < c->count; k++) {
        g[k] *= scale(c, k);
    }
}

void frgi_gp_coordinates_curvature(const frgi_gp_coordinates *c, const double *all,
                                   const double *more, double *h)
{
    const int p = c->gp->model.params.count, n = c->count;
    for (int k = 0; k < n * n; k++) {
        h[k] = 0;
    }
    for (int i = 0; i < p; i++) {
        for (int j = 0; j < p && c->of[i] >= 0; j++) {
            if (c->of[j] >= 0) {
                h[c->of[i] * n + c->of[j]] += all[i * p + j] + (i == j ? more[i] : 0);
            }
        }
    }
    for (int a = 0; a < n; a++) {
        for (int b = 0; b < n; b++) {
            h[a * n + b] *= scale(c, a) * scale(c, b);
        }
    }
}
