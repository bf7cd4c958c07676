/* gp_information.c - the average information and the standard errors that follow from it.
 *
 *     AI_st = 1/2 sum_c (K_s a_c)' P (K_t a_c),   K_t = dK/dlog theta_t          (kernel and noise)
 *     AI_bb = M' K^-1 M,   M = dm/db (mean, one block a column of y)
 *
 * the mean of the observed and the expected information without the term in second derivatives of
 * K, whose expectation is 0 (Gilmour, Thompson and Cullis 1995, where K is linear in theta):
 * positive semidefinite, and O(p n^2) with a factor or an inverse at hand.  P = K^-1, or K^-1 - E
 * E' where the mean is profiled.  The two blocks do not meet.  A profiled scale f of N observations
 * is taken out of it: with b_s = sum_c a_c'K_s a_c
 *
 *     AI_st - b_s b_t / (2 N)          AI_ff = N/2, AI_sf = b_s/2 per log f
 *
 * Standard errors are the square roots of the diagonal of (AI + prior curvature)^-1 over the free
 * parameters.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_information.h"
#include "gp/gp_process.h"
#include "linalg/cholesky.h"

static const double FLAT = 1e-14; /* a pivot of the scaled information that counts as none */

struct frgi_gp_informing {
    ptrdiff_t n;
    int columns;   /* of v: kernel and noise parameters, or a mean's */
    double *v;     /* n x columns: K_t a, or M */
    double *s;     /* n x columns: L^-1 v, or K^-1 v */
    float *low[2]; /* the same in f32 */
    double *small; /* p x p */
    double *slope; /* columns: b_s = sum_c a_c'K_s a_c */
    bool inverse;  /* s is K^-1 v */
};
typedef frgi_gp_informing work;

static void lay_out(frgi_arena *a, const frg_gp *gp, work *k)
{
    const frgi_gp_params *const ps = &gp->model.params;
    const int covariance = ps->kernel_count + ps->noise_count;
    const int mean = ps->mean_count / (int)gp->data.q;
    const int columns = covariance > mean ? covariance : mean;
    const bool single = gp->opts.precision == FRG_GP_F32;
    k->n = gp->data.n;
    k->v = TAKE(a, double, k->n *columns);
    k->s = TAKE(a, double, k->n *columns);
    k->low[0] = single ? TAKE(a, float, k->n *columns) : NULL;
    k->low[1] = single ? TAKE(a, float, k->n *columns) : NULL;
    k->small = TAKE(a, double, ps->count * ps->count);
    k->slope = TAKE(a, double, covariance);
}

static frg_status open_work(frg_gp *gp, work *k)
{
    frgi_arena measure = {0};
    lay_out(&measure, gp, k);
    TRY(frgi_gp_need_memory(gp, &gp->memory.information, measure, "the information"));
    lay_out(&gp->memory.information, gp, k);
    return FRG_OK;
}

/** s from v: L^-1 v where the factor is there, K^-1 v where the inverse is. */
static frg_status solve(frg_gp *gp, work *k)
{
    const ptrdiff_t n = k->n, size = n * k->columns;
    const bool single = frgi_spd_is_single(&gp->own.matrix);
    k->inverse = gp->state.matrix == MATRIX_INVERSE;
    memcpy(k->s, k->v, (size_t)size * sizeof *k->s);
    if (single) {
        frgi_gp_narrow(size, k->v, k->low[0]);
        frgi_gp_narrow(size, k->v, k->low[1]);
    }
    const void *const from = single ? (const void *)k->low[0] : k->v;
    void *const to = single ? (void *)k->low[1] : k->s;
    const frg_status status =
        k->inverse ? frgi_spd_times(gp->ctx, &gp->own.matrix, k->columns, from, n, to, n)
                   : frgi_spd_forward(gp->ctx, &gp->own.matrix, k->columns, to, n);
    if (single) {
        frgi_gp_widen(size, k->low[1], k->s);
    }
    return status;
}

/** Adds factor v_s' P v_t to the block that begins at parameter `first`. */
static void add_block(const frg_gp *gp, const work *k, int first, double factor, double *out)
{
    const ptrdiff_t n = k->n, p = gp->model.params.count;
    for (int s = 0; s < k->columns; s++) {
        for (int t = 0; t <= s; t++) {
            double sum = frgi_gp_dot(n, k->inverse ? k->v + s * n : k->s + s * n, k->s + t * n);
            for (ptrdiff_t m = 0; m < gp->profile.count; m++) {
                const double *const e = gp->profile.correction + m * n;
                sum -= frgi_gp_dot(n, e, k->v + s * n) * frgi_gp_dot(n, e, k->v + t * n);
            }
            out[(first + s) * p + first + t] += factor * sum;
            if (s != t) {
                out[(first + t) * p + first + s] += factor * sum;
            }
        }
    }
}

/** K_t a of the noises: s_g a_i for the points i of group g, 0 for others. */
static void noise_products(const frg_gp *gp, const double *a, double *v)
{
    const frgi_gp_params *const ps = &gp->model.params;
    memset(v, 0, (size_t)(gp->data.n * ps->noise_count) * sizeof *v);
    for (ptrdiff_t i = 0; ps->noise_count > 0 && i < gp->data.n; i++) {
        const int g = gp->data.groups ? gp->data.groups[i] : 0;
        v[g * gp->data.n + i] = gp->model.theta[ps->noise_first + g] * a[i];
    }
}

/** M = dm/db of one column of y: a column of ones, then the inputs of a linear mean. */
static void mean_columns(const frg_gp *gp, double *v)
{
    const ptrdiff_t n = gp->data.n, width = gp->model.params.mean_count / gp->data.q;
    for (ptrdiff_t k = 0; k < width; k++) {
        for (ptrdiff_t i = 0; i < n; i++) {
            v[k * n + i] = k == 0 ? 1 : gp->data.x[i * gp->data.d + k - 1];
        }
    }
}

/** AI_st -= b_s b_t / (2 N) for a profiled scale. */
static void remove_scale(const frg_gp *gp, const work *k, double *out)
{
    const ptrdiff_t p = gp->model.params.count;
    const double share = 0.5 / frgi_gp_scale_count(gp);
    for (int s = 0; s < k->columns; s++) {
        for (int t = 0; t < k->columns; t++) {
            out[s * p + t] -= share * k->slope[s] * k->slope[t];
        }
    }
}

frg_status frgi_gp_fill_information(frg_gp *gp, work *k, double *out)
{
    const frgi_gp_params *const ps = &gp->model.params;
    const ptrdiff_t n = gp->data.n;
    frg_status status = FRG_OK;
    k->columns = ps->kernel_count + ps->noise_count;
    memset(k->slope, 0, (size_t)k->columns * sizeof *k->slope);
    for (ptrdiff_t c = 0; k->columns > 0 && c < gp->data.q && status == FRG_OK; c++) {
        const double *const a = gp->vectors.alpha + c * n;
        status = frgi_gp_derivative_products(gp->ctx, gp->own.bound, &gp->own.matrix, a, k->v);
        noise_products(gp, a, k->v + ps->kernel_count * n);
        for (int t = 0; t < k->columns && status == FRG_OK; t++) {
            k->slope[t] += frgi_gp_dot(n, a, k->v + t * n);
        }
        status = status == FRG_OK ? solve(gp, k) : status;
        if (status == FRG_OK) {
            add_block(gp, k, 0, 0.5, out);
        }
    }
    if (gp->opts.profile_scale && status == FRG_OK) {
        remove_scale(gp, k, out);
    }
    k->columns = ps->mean_count / (int)gp->data.q;
    if (k->columns > 0 && status == FRG_OK) {
        mean_columns(gp, k->v);
        status = solve(gp, k);
    }
    for (int c = 0; k->columns > 0 && c < gp->data.q && status == FRG_OK; c++) {
        add_block(gp, k, ps->mean_first + c * k->columns, 1 / gp->state.scale, out);
    }
    return status;
}

/** The information of all parameters, 0 in the rows and columns of fixed ones. */
static frg_status find(frg_gp *gp, work *k, double *information)
{
    const int p = gp->model.params.count;
    memset(information, 0, (size_t)p * (size_t)p * sizeof *information);
    const frg_status status = gp->steps->gradient.information(gp, k, information);
    for (int s = 0; s < p; s++) {
        for (int t = 0; t < p; t++) {
            if (gp->model.params.p[s].fixed || gp->model.params.p[t].fixed) {
                information[s * p + t] = 0;
            }
        }
    }
    return status;
}

frg_status frgi_gp_information(frg_gp *gp, double *information)
{
    work k;
    const frg_status status = frgi_gp_value(gp);
    if (status != FRG_OK) {
        return status;
    }
    TRY(open_work(gp, &k));
    return find(gp, &k, information);
}

frg_status frg_gp_eval_information(frg_gp *gp, double *information)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    REQUIRE(gp->ctx, information, "information is NULL");
    frgi_run_begins(gp->ctx);
    work k;
    frg_status status = frgi_gp_value(gp);
    if (status != FRG_OK) {
        return status;
    }
    TRY(open_work(gp, &k));
    status = find(gp, &k, k.small);
    if (status == FRG_OK) {
        const size_t p = (size_t)gp->model.params.count;
        memcpy(information, k.small, p * p * sizeof *information);
    }
    return status;
}

/** Rows and columns of tied parameters are added to those of their leaders and become zero. */
static void join_tied(const frgi_gp_params *ps, double *a, double *curvature)
{
    const int p = ps->count;
    for (int i = 0; i < p; i++) {
        const int leader = frgi_gp_params_leader(ps, i);
        for (int k = 0; k < p && leader != i; k++) {
            a[leader * p + k] += a[i * p + k];
            a[i * p + k] = 0;
        }
        for (int k = 0; k < p && leader != i; k++) {
            a[k * p + leader] += a[k * p + i];
            a[k * p + i] = 0;
        }
        if (leader != i) {
            curvature[leader] += curvature[i];
            curvature[i] = 0;
        }
    }
}

/** Rows and columns of the free parameters alone, scaled to a unit diagonal; scale[] takes the
 *  roots. */
static int free_block(const frg_gp *gp, double *a, const double *curvature, double *scale)
{
    const int p = gp->model.params.count;
    int count = 0;
    for (int s = 0; s < p; s++) {
        scale[s] = sqrt(a[s * p + s] + curvature[s]);
        count += scale[s] > 0;
    }
    int row = 0;
    for (int s = 0; s < p; s++) {
        int column = 0;
        for (int t = 0; t < p && scale[s] > 0; t++) {
            if (scale[t] > 0) { /* what is written lies before what is still read */
                a[row * count + column++] = s == t ? 1 : a[s * p + t] / (scale[s] * scale[t]);
            }
        }
        row += scale[s] > 0;
    }
    return count;
}

frg_status frgi_gp_standard_errors(frg_gp *gp)
{
    work k;
    const int p = gp->model.params.count;
    frg_status status = frgi_gp_value(gp);
    if (status != FRG_OK) {
        return status;
    }
    TRY(open_work(gp, &k));
    status = find(gp, &k, k.small);
    if (status != FRG_OK) {
        return status;
    }
    double *gradient, *scale, *curvature;
    TRY(NEW0(gp->ctx, &gradient, 3 * p + 1, "standard errors"));
    scale = gradient + p;
    curvature = scale + p;
    frgi_gp_params_prior(&gp->model.params, gp->model.theta, gradient, curvature);
    for (int i = 0; i < p; i++) {
        curvature[i] = gp->model.params.p[i].fixed ? 0 : curvature[i];
    }
    join_tied(&gp->model.params, k.small, curvature);
    const int count = free_block(gp, k.small, curvature, scale);
    const bool found = count > 0 && frgi_inverse(count, k.small, FLAT, 1, NULL);
    int row = 0;
    for (int i = 0; i < p; i++) {
        const bool known = found && scale[i] > 0;
        gp->model.params.p[i].std_error =
            known ? sqrt(k.small[row * count + row]) / scale[i] : (double)NAN;
        row += scale[i] > 0;
    }
    for (int i = 0; i < p; i++) {
        gp->model.params.p[i].std_error =
            gp->model.params.p[frgi_gp_params_leader(&gp->model.params, i)].std_error;
    }
    DROP(gp->ctx, &gradient);
    return FRG_OK;
}
