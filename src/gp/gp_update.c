/* gp_update.c - points added and removed, one noise or y replaced: the factor follows instead of
 * being made again.
 *
 *     append m points    K+ = [K, B; B', S],  V = L^-1 B,  L+ = [L, 0; V', chol(S - V'V)]    n^2 m
 *     remove point i     L_33 L_33' + l l' of the rows below it, l = L(i+1.., i)        2 (n - i)^2
 *     noise of point i   L L' + d e_i e_i', l = sqrt(|d|) e_i                           2 (n - i)^2
 *     replace y          two solves                                                          2 n^2
 *
 * A rank-one change L L' +- l l' goes over the columns k, by rotations (-: hyperbolic ones):
 *
 *     r^2 = L_kk^2 +- l_k^2,   c = r / L_kk,   s = l_k / L_kk
 *     L_jk <- (L_jk +- s l_j) / c,   l_j <- c l_j - s L_jk        j > k
 *
 * An update equals a new factorisation at the same parameters to rounding: it changes nothing but
 * the factor, which the same solves then use.  Where there is no factor to update (the inverse has
 * taken its place, or nothing was computed yet), where more points are added than are there, or in
 * f32, the data change and the next call factors.  Where a Schur complement is not positive
 * definite the call itself factors anew, by the jitter policy.
 *
 * The layout of the tiles depends on n, so that a factor is copied out by columns and back: n^2/2
 * doubles for the time of the call.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_create.h"
#include "gp/gp_predict.h"

static bool can_update(const frg_gp *gp)
{
    return gp->state.matrix == MATRIX_FACTOR && frgi_spd_dtype(&gp->own.matrix) == FRG_F64 &&
           !gp->state.swapped;
}

/** Place of column j in a triangle of n rows stored by columns without gaps. */
static ptrdiff_t packed(ptrdiff_t n, ptrdiff_t j)
{
    return j * n - j * (j - 1) / 2;
}

static void copy_factor(const frg_gp *gp, double *to)
{
    for (ptrdiff_t j = 0; j < gp->data.n; j++) {
        gp->steps->factor.read(gp, j, j, gp->data.n, to + packed(gp->data.n, j));
    }
}

/* ---- new values ------------------------------------------------------------------------------ */

/** y as n rows of q finite values. */
static frg_status check_y(frg_gp *gp, const frg_array *y, int64_t n)
{
    frg_context *ctx = gp->ctx;
    TRY(frgi_array_check(ctx, y, "y", y->ndim == 1 ? 1 : 2, 1u << FRG_F64 | 1u << FRG_F32));
    const int64_t q = y->ndim == 1 ? 1 : y->shape[1];
    if (y->shape[0] != n || q != gp->data.q) {
        FAIL(ctx, E_SHAPE, "y is %lld x %lld, the process needs %lld x %lld",
             (long long)y->shape[0], (long long)q, (long long)n, (long long)gp->data.q);
    }
    const frgi_gp_reader from = frgi_gp_read(y);
    const double most = frgi_gp_largest_y(&gp->opts);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < q; k++) {
            const double v = frgi_gp_element(&from, i, k, 0);
            if (isfinite(v) && fabs(v) > most) {
                return frgi_gp_refuse_size(ctx, "y", i, k, v, most);
            }
            if (!isfinite(v)) {
                FAIL(ctx, E_NOT_FINITE_GP, "y: row %lld, column %lld is %g", frgi_nth(ctx, i),
                     frgi_nth(ctx, k), v);
            }
        }
    }
    return FRG_OK;
}

frg_status frgi_gp_check_new_noise(frg_gp *gp, const double *v, int64_t m)
{
    frg_context *ctx = gp->ctx;
    REQUIRE(ctx, !gp->data.known_noise == !v,
            gp->data.known_noise ? "noise_variances of the new points are needed"
                                 : "noise_variances are given, and the process was made without");
    for (int64_t i = 0; i < m && v; i++) {
        if (!(v[i] >= 0) || isinf(v[i])) {
            FAIL(ctx, E_NOISE, "noise variance %lld is %g", frgi_nth(ctx, i), v[i]);
        }
    }
    if (gp->data.groups || gp->data.given_mean) {
        FAIL(ctx, E_UNSUPPORTED, "points cannot be added to a process with %s: make a new one",
             gp->data.groups ? "noise groups" : "given mean values");
    }
    return FRG_OK;
}

/* ---- append ---------------------------------------------------------------------------------- */

typedef struct {
    ptrdiff_t n, m;
    double *x;      /* m x d */
    double *factor; /* the old one by columns */
    double *v;      /* n x m: L^-1 B */
    double *schur;  /* m x m column-major: S - V'V, then its factor */
    double *cross;  /* m x n */
    void *points_memory, *bound_memory;
} growth;

static void lay_out(frgi_arena *a, const frg_gp *gp, growth *g)
{
    const size_t n = (size_t)g->n, m = (size_t)g->m;
    g->factor = TAKE(a, double, packed(g->n, g->n));
    g->v = TAKE(a, double, n *m);
    g->schur = TAKE(a, double, m *m);
    g->cross = TAKE(a, double, m *n);
    g->points_memory = frgi_take(a, frgi_gp_points_bytes(gp, g->m));
    g->bound_memory =
        frgi_take(a, frgi_gp_bound_bytes(gp->model.kernel, FRG_F64, g->m, frg_threads(gp->ctx)));
}

bool frgi_gp_factor_schur(ptrdiff_t m, double *a)
{
    for (ptrdiff_t j = 0; j < m; j++) {
        for (ptrdiff_t k = 0; k < j; k++) {
            for (ptrdiff_t i = j; i < m; i++) {
                a[i + j * m] -= a[i + k * m] * a[j + k * m];
            }
        }
        const double pivot = a[j + j * m];
        if (!(pivot > 0)) {
            return false;
        }
        for (ptrdiff_t i = j; i < m; i++) {
            a[i + j * m] /= sqrt(pivot);
        }
    }
    return true;
}

/** V and the factored Schur complement; *good is false where that is not positive definite. */
static frg_status prepare(frg_gp *gp, const growth *g, const double *noise, bool *good)
{
    const ptrdiff_t n = g->n, m = g->m;
    const double learned =
        gp->model.params.noise_count > 0 ? gp->model.theta[gp->model.params.noise_first] : 0;
    frgi_gp_points points;
    frgi_gp_set_points(gp, g->x, m, g->points_memory, &points);
    const frgi_gp_bound *const self = frgi_gp_bind(gp->ctx, gp->model.kernel, gp->model.theta,
                                                   &points, g->bound_memory, frg_threads(gp->ctx));
    copy_factor(gp, g->factor);
    TRY(frgi_gp_cross(gp->ctx, gp->own.bound, &points, 0, m, g->cross, m));
    TRY(frgi_gp_cross(gp->ctx, self, &points, 0, m, g->schur, m));
    for (ptrdiff_t i = 0; i < m; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            g->v[j + i * n] = g->cross[i + j * m];
        }
        frgi_gp_self_training(self, &points, i, 1, &g->schur[i + i * m]);
        g->schur[i + i * m] += learned + (noise ? noise[i] : 0) + gp->state.jitter;
    }
    TRY(gp->steps->factor.forward(gp, m, g->v));
    for (ptrdiff_t j = 0; j < m; j++) {
        for (ptrdiff_t i = j; i < m; i++) {
            double sum = 0;
            for (ptrdiff_t k = 0; k < n; k++) {
                sum += g->v[k + i * n] * g->v[k + j * n];
            }
            g->schur[i + j * m] -= sum;
        }
    }
    *good = frgi_gp_factor_schur(m, g->schur);
    return FRG_OK;
}

/** L+ into the matrix. */
static void write_grown(frg_gp *gp, const growth *g)
{
    const ptrdiff_t n = g->n, m = g->m;
    for (ptrdiff_t j = 0; j < n; j++) {
        gp->steps->factor.write(gp, j, j, n, g->factor + packed(n, j));
        for (ptrdiff_t i = 0; i < m; i++) { /* the row V' below */
            gp->steps->factor.write(gp, j, n + i, n + i + 1, &g->v[j + i * n]);
        }
    }
    for (ptrdiff_t j = 0; j < m; j++) {
        gp->steps->factor.write(gp, n + j, n + j, n + m, g->schur + j + j * m);
    }
}

/** Room for m points more, and their data. */
static frg_status add_data(frg_gp *gp, const double *x, const frg_array *y, const double *noise,
                           ptrdiff_t m)
{
    const ptrdiff_t n = gp->data.n, d = gp->data.d;
    const frgi_gp_reader from = frgi_gp_read(y);
    TRY(frgi_gp_resize(gp, n + m));
    memcpy(gp->data.x + n * d, x, (size_t)(m * d) * sizeof *x);
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        for (ptrdiff_t i = 0; i < m; i++) {
            gp->data.y[c * gp->data.n + n + i] = frgi_gp_element(&from, i, c, 0);
        }
    }
    if (gp->data.known_noise) {
        memcpy(gp->data.known_noise + n, noise, (size_t)m * sizeof *noise);
    }
    frgi_gp_params_release(&gp->model.params, gp->data.x, gp->data.n, d);
    frgi_gp_refresh(gp);
    return FRG_OK;
}

static frg_status append(frg_gp *gp, double *x, const frg_array *y, const double *noise,
                         ptrdiff_t m)
{
    if (!can_update(gp) || m > gp->data.n) {
        return add_data(gp, x, y, noise, m);
    }
    growth g = {.n = gp->data.n, .m = m, .x = x};
    frgi_arena a = {0};
    bool good = false;
    const double jitter = gp->state.jitter;
    lay_out(&a, gp, &g);
    TRY(frgi_arena_open(&a, gp->ctx, "work memory of the update"));
    lay_out(&a, gp, &g);
    frg_status status = prepare(gp, &g, noise, &good);
    if (status == FRG_OK) {
        status = add_data(gp, x, y, noise, m);
    }
    if (status == FRG_OK && good) {
        frgi_gp_set_jitter(gp, jitter);
        write_grown(gp, &g);
        status = frgi_gp_adopt_factor(gp);
    } else if (status == FRG_OK) {
        status = frgi_gp_value(gp);
    }
    frgi_arena_close(&a, gp->ctx);
    return status;
}

frg_status frg_gp_update_append(frg_gp *gp, frg_array x, frg_array y, const double *noise_variances)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(gp->ctx);
    double *points;
    TRY(frgi_gp_take_points(gp, &x, "x", &points));
    const ptrdiff_t m = (ptrdiff_t)x.shape[0];
    frg_status status;
    TRY_TO(done, check_y(gp, &y, m));
    TRY_TO(done, frgi_gp_check_new_noise(gp, noise_variances, m));
    TRY_TO(done, frgi_gp_check_new_points(gp, points, m));
    if (m > 0) {
        status = append(gp, points, &y, noise_variances, m);
    }
done:
    DROP(gp->ctx, &points);
    return status;
}

/* ---- remove ---------------------------------------------------------------------------------- */

static void remove_entry(void *values, size_t size, ptrdiff_t n, ptrdiff_t i)
{
    char *const at = (char *)values + (size_t)i * size;
    memmove(at, at + size, (size_t)(n - 1 - i) * size);
}

/** Row i leaves the data; no memory is needed, so that nothing can fail. */
static frg_status remove_data(frg_gp *gp, ptrdiff_t i)
{
    const ptrdiff_t n = gp->data.n;
    remove_entry(gp->data.x, (size_t)gp->data.d * sizeof *gp->data.x, n, i);
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        remove_entry(gp->data.y + c * n, sizeof *gp->data.y, n, i);
    }
    if (gp->data.known_noise) {
        remove_entry(gp->data.known_noise, sizeof *gp->data.known_noise, n, i);
    }
    if (gp->data.groups) {
        remove_entry(gp->data.groups, sizeof *gp->data.groups, n, i);
    }
    if (gp->data.given_mean) {
        remove_entry(gp->data.given_mean, sizeof *gp->data.given_mean, n, i);
    }
    TRY(frgi_gp_resize(gp, n - 1));
    frgi_gp_refresh(gp);
    return FRG_OK;
}

/** Columns first .. n-1 of L become those of the factor of L L' + sign w w'; w is overwritten.
 *  False where less than a millionth of a squared pivot is left, with half of its digits at
 *  best. */
static bool rotate_in(double *l, ptrdiff_t n, ptrdiff_t first, double sign, double *w)
{
    for (ptrdiff_t k = first; k < n; k++) {
        double *const column = l + packed(n, k) - k;
        const double pivot = column[k], square = pivot * pivot + sign * w[k] * w[k];
        if (!(square > 1e-6 * pivot * pivot)) {
            return false;
        }
        const double r = sqrt(square), c = r / pivot, s = w[k] / pivot;
        column[k] = r;
        for (ptrdiff_t j = k + 1; j < n; j++) {
            column[j] = (column[j] + sign * s * w[j]) / c;
            w[j] = c * w[j] - s * column[j];
        }
    }
    return true;
}

/** The factor l of n rows without row and column i into the matrix. */
static void write_without(frg_gp *gp, const double *l, ptrdiff_t n, ptrdiff_t i)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        const double *const column = l + packed(n, j) - j;
        const ptrdiff_t to = j > i ? j - 1 : j;
        if (j < i) {
            gp->steps->factor.write(gp, to, to, i, column + j);
        }
        if (j != i) {
            const ptrdiff_t from = j > i ? j : i + 1; /* rows below the one that has gone */
            gp->steps->factor.write(gp, to, from - 1, n - 1, column + from);
        }
    }
}

frg_status frg_gp_update_remove(frg_gp *gp, int64_t i)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    const ptrdiff_t n = gp->data.n;
    frgi_run_begins(gp->ctx);
    REQUIRE(gp->ctx, i >= 0 && i < n, "point %lld does not exist, there are %lld", (long long)i,
            (long long)n);
    if (n == 1) {
        FAIL(gp->ctx, E_NO_POINTS, "the last point cannot be removed");
    }
    if (!can_update(gp)) {
        return remove_data(gp, (ptrdiff_t)i);
    }
    double *factor;
    const double jitter = gp->state.jitter;
    TRY(NEW(gp->ctx, &factor, packed(n, n), "work memory of the update"));
    copy_factor(gp, factor);
    const bool good = rotate_in(factor, n, (ptrdiff_t)i + 1, 1, factor + packed(n, i) - i);
    frg_status status = remove_data(gp, (ptrdiff_t)i);
    if (status == FRG_OK && good) {
        frgi_gp_set_jitter(gp, jitter);
        write_without(gp, factor, n, (ptrdiff_t)i);
        status = frgi_gp_adopt_factor(gp);
    }
    DROP(gp->ctx, &factor);
    return status;
}

/* ---- noise ----------------------------------------------------------------------------------- */

/** Columns i .. n-1 of the factor after the noise of point i has changed; *good: by rotations. */
static frg_status rotate_noise(frg_gp *gp, ptrdiff_t i, double change, bool *good)
{
    const ptrdiff_t n = gp->data.n, order = n - i;
    double *l; /* the trailing triangle, and w behind it */
    TRY(NEW0(gp->ctx, &l, packed(order, order) + order, "work memory of the update"));
    for (ptrdiff_t j = 0; j < order; j++) {
        gp->steps->factor.read(gp, i + j, i + j, n, l + packed(order, j));
    }
    double *const w = l + packed(order, order);
    w[0] = sqrt(fabs(change));
    *good = rotate_in(l, order, 0, change < 0 ? -1 : 1, w);
    for (ptrdiff_t j = 0; j < order && *good; j++) {
        gp->steps->factor.write(gp, i + j, i + j, n, l + packed(order, j));
    }
    DROP(gp->ctx, &l);
    return FRG_OK;
}

frg_status frg_gp_update_noise(frg_gp *gp, int64_t i, double variance)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(gp->ctx);
    REQUIRE(gp->ctx, gp->data.known_noise, "the process was made without noise_variances");
    REQUIRE(gp->ctx, i >= 0 && i < gp->data.n, "point %lld does not exist, there are %lld",
            (long long)i, (long long)gp->data.n);
    if (!(variance >= 0) || isinf(variance)) {
        FAIL(gp->ctx, E_NOISE, "the noise variance of point %lld is %g", (long long)i, variance);
    }
    bool good = false;
    if (can_update(gp)) {
        TRY(rotate_noise(gp, (ptrdiff_t)i, variance - gp->data.known_noise[i], &good));
    }
    gp->data.known_noise[i] = variance;
    if (good) {
        return frgi_gp_adopt_factor(gp);
    }
    frgi_gp_forget(gp);
    return FRG_OK;
}

/* ---- y --------------------------------------------------------------------------------------- */

frg_status frg_gp_update_y(frg_gp *gp, frg_array y)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(gp->ctx);
    TRY(check_y(gp, &y, gp->data.n));
    const bool keeps = can_update(gp);
    const frgi_gp_reader from = frgi_gp_read(&y);
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        for (ptrdiff_t i = 0; i < gp->data.n; i++) {
            gp->data.y[c * gp->data.n + i] = frgi_gp_element(&from, i, c, 0);
        }
    }
    if (keeps) {
        return frgi_gp_take_factor(gp);
    }
    frgi_gp_forget(gp);
    return FRG_OK;
}
