/* gp_predict.c - the predictive distribution at new points t (Rasmussen and Williams' stars).
 *
 *     mean = m_t + k_t'a,   variance = k_tt - |L^-1 k_t|^2
 *     covariance = K_tt - V'V,   V = L^-1 K_t
 *     d mean / dx = dm_t/dx + sum_j a_j dk_tj/dx,
 *     d variance / dx = dk_tt/dx - 2 sum_j (K^-1 k_t)_j dk_tj/dx
 *
 * A profiled mean H beta is estimated, which adds to the variance |L_A^-1 u|^2 with u = h_t -
 * H'K^-1 k_t and L_A L_A' = A = H'K^-1 H (Rasmussen and Williams 2006, 2.42).  A profiled scale
 * multiplies at the end.
 *
 * New points come in blocks of 256: n for a mean, n^2 for a variance, 2 n^2 for its gradient;
 * memory 2 x 256 n, and n m + m^2 for a covariance.  A variance that rounding has made negative
 * becomes 0 and is counted.  Blocks depend on the data alone and every sum has one order: the bits
 * do not depend on the number of threads.
 */
#include <math.h>
#include <string.h>

#include "core/opts.h"
#include "gp/gp_create.h"
#include "gp/gp_predict.h"
#include "linalg/blas.h"

enum { BLOCK = 256, CHUNK = 32, TILE = 64 };

/** One call's memory. */
struct frgi_gp_predictor {
    frg_gp *gp;
    const frgi_gp_wanted *want;
    const double *x; /* m x d */
    ptrdiff_t m;
    frgi_gp_points points;
    void *points_memory;
    void *cross;        /* block x n, column-major, as the kernel gives it */
    void *solved;       /* n x block: L^-1 k_t, then K^-1 k_t */
    double *weights;    /* block x n, of the derivatives */
    double *self;       /* m: k_tt */
    double *forward;    /* n x m: V, of a covariance or for the caller */
    double *basis;      /* count x m: L_A^-1 u of a profiled mean */
    double *slope;      /* count: A^-1 u of one point */
    void *bound_memory; /* of the new points among themselves */
};
typedef frgi_gp_predictor predictor;

static bool solves(const frgi_gp_wanted *w)
{
    return !w->prior && (w->variance || w->covariance || w->variance_dx || w->forward);
}

static void lay_out(frgi_arena *a, predictor *p)
{
    const frg_gp *gp = p->gp;
    const frgi_gp_wanted *w = p->want;
    const size_t size = frg_sizeof(frgi_spd_dtype(&gp->own.matrix)), n = (size_t)gp->data.n,
                 m = (size_t)p->m;
    const size_t block = m < BLOCK ? m : BLOCK;
    p->points_memory = frgi_take(a, frgi_gp_points_bytes(gp, p->m));
    p->cross = frgi_take(a, frgi_mul(frgi_mul(block, n > m ? n : m), size));
    p->solved = solves(w) ? frgi_take(a, frgi_mul(frgi_mul(block, n), size)) : NULL;
    p->weights = w->mean_dx || w->variance_dx ? TAKE(a, double, frgi_mul(block, n)) : NULL;
    p->self = TAKE(a, double, m);
    p->forward = w->forward                   ? w->forward
                 : w->covariance && !w->prior ? TAKE(a, double, frgi_mul(n, m))
                                              : NULL;
    p->basis = w->basis ? w->basis : TAKE(a, double, m *(size_t)gp->profile.count);
    p->slope = TAKE(a, double, gp->profile.count);
    p->bound_memory = NULL;
    if (w->covariance) {
        p->bound_memory =
            frgi_take(a, frgi_gp_bound_bytes(gp->model.kernel, frgi_spd_dtype(&gp->own.matrix),
                                             p->m, frg_threads(gp->ctx)));
    }
}

static double entry(frg_dtype t, const void *v, ptrdiff_t i)
{
    return t == FRG_F64 ? ((const double *)v)[i] : (double)((const float *)v)[i];
}

/* ---- means ----------------------------------------------------------------------------------- */

/** out[i] += sum_j k_ij a_j in the units of y, chunks of new points in parallel, j in order. */
static void add_products(const predictor *p, ptrdiff_t rows, const double *a, double *out)
{
    const ptrdiff_t n = p->gp->data.n;
    const double unit = sqrt(p->gp->state.scale);
    const double *const wide = p->cross;
    const float *const narrow = p->cross;
    const bool single = frgi_spd_is_single(&p->gp->own.matrix);
#pragma omp parallel for schedule(static) num_threads(frg_threads(p->gp->ctx))
    for (ptrdiff_t from = 0; from < rows; from += CHUNK) {
        const ptrdiff_t to = from + CHUNK < rows ? from + CHUNK : rows;
        double sum[CHUNK] = {0};
        for (ptrdiff_t j = 0; j < n; j++) {
            for (ptrdiff_t i = from; i < to; i++) {
                sum[i - from] +=
                    a[j] * (single ? (double)narrow[i + j * rows] : wide[i + j * rows]);
            }
        }
        for (ptrdiff_t i = from; i < to; i++) {
            out[i] += unit * sum[i - from];
        }
    }
}

/** weights (rows x n) <- a_j in every row, in the units of y. */
static void fill_weights(const predictor *p, ptrdiff_t rows, const double *a)
{
    const double unit = sqrt(p->gp->state.scale);
    for (ptrdiff_t j = 0; j < p->gp->data.n; j++) {
        for (ptrdiff_t i = 0; i < rows; i++) {
            p->weights[i + j * rows] = unit * a[j];
        }
    }
}

/** Slope k of the mean function. */
static double mean_slope(const frg_gp *gp, ptrdiff_t k)
{
    if (gp->mean.kind == GP_MEAN_LINEAR) {
        return gp->model.theta[gp->model.params.mean_first + 1 + k];
    }
    return gp->profile.count > 1 ? gp->profile.beta[1 + k] : 0;
}

static frg_status block_mean_dx(const predictor *p, ptrdiff_t first, ptrdiff_t rows)
{
    const frg_gp *gp = p->gp;
    double *const out = p->want->mean_dx + first * gp->data.d;
    fill_weights(p, rows, gp->vectors.alpha);
    TRY(frgi_gp_cross_dx(gp->ctx, gp->own.bound, &p->points, first, rows, p->weights, rows, out));
    for (ptrdiff_t i = 0; i < rows; i++) {
        for (ptrdiff_t k = 0; k < gp->data.d; k++) {
            out[i * gp->data.d + k] += mean_slope(gp, k);
        }
    }
    return FRG_OK;
}

/* ---- variances ------------------------------------------------------------------------------- */

/** solved (n x rows) <- the transpose of cross (rows x n). */
static void transpose_cross(const predictor *p, ptrdiff_t rows)
{
    const ptrdiff_t n = p->gp->data.n;
    const bool single = frgi_spd_is_single(&p->gp->own.matrix);
#pragma omp parallel for schedule(static) num_threads(frg_threads(p->gp->ctx))
    for (ptrdiff_t i = 0; i < rows; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            if (single) {
                ((float *)p->solved)[j + i * n] = ((const float *)p->cross)[i + j * rows];
            } else {
                ((double *)p->solved)[j + i * n] = ((const double *)p->cross)[i + j * rows];
            }
        }
    }
}

/** Sums in eight lanes, lane by lane: vectors for the compiler, one order for the bits. */
static double square_sum(frg_dtype t, const void *v, ptrdiff_t from, ptrdiff_t n)
{
    double lane[8] = {0}, sum = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        const double e = entry(t, v, from + j);
        lane[j % 8] += e * e;
    }
    for (int k = 0; k < 8; k++) {
        sum += lane[k];
    }
    return sum;
}

/** L_A^-1 (h_t - H'K^-1 k_t) of the block's points, a column of `basis` each. */
static void block_basis(const predictor *p, ptrdiff_t first, ptrdiff_t rows)
{
    const frg_gp *gp = p->gp;
    const ptrdiff_t n = gp->data.n, d = gp->data.d, count = gp->profile.count;
    const double *const root = gp->profile.root;
    for (ptrdiff_t i = 0; i < rows; i++) {
        double *const u = p->basis + (first + i) * count;
        for (ptrdiff_t a = 0; a < count; a++) {
            u[a] = a == 0 ? 1 : p->x[(first + i) * d + a - 1] - gp->columns.centre[a - 1];
            const double *const z = gp->profile.solved + a * n;
            for (ptrdiff_t j = 0; j < n; j++) {
                u[a] -= z[j] * entry(frgi_spd_dtype(&gp->own.matrix), p->cross, i + j * rows);
            }
            for (ptrdiff_t k = 0; k < a; k++) {
                u[a] -= root[a * count + k] * u[k];
            }
            u[a] /= root[a * count + a];
        }
    }
}

static void block_variance(const predictor *p, ptrdiff_t first, ptrdiff_t rows)
{
    const frg_gp *gp = p->gp;
    const ptrdiff_t n = gp->data.n, count = gp->profile.count;
#pragma omp parallel for schedule(static) num_threads(frg_threads(gp->ctx))
    for (ptrdiff_t i = 0; i < rows; i++) {
        double v =
            p->self[first + i] - square_sum(frgi_spd_dtype(&gp->own.matrix), p->solved, i * n, n);
        v += square_sum(FRG_F64, p->basis, (first + i) * count, count);
        p->want->variance[first + i] = v;
    }
}

/** The block's columns of V, in double, for the covariance or the caller. */
static void block_forward(const predictor *p, ptrdiff_t first, ptrdiff_t rows)
{
    const ptrdiff_t n = p->gp->data.n;
    double *const to = p->forward + first * n;
    for (ptrdiff_t k = 0; k < rows * n; k++) {
        to[k] = entry(frgi_spd_dtype(&p->gp->own.matrix), p->solved, k);
    }
}

/** d variance/dx of the block: dk_tt/dx - 2 sum_j (K^-1 k_t + K^-1 H A^-1 u)_j dk_tj/dx, and
 *  2 (A^-1 u)_k of input k in h_t. */
static frg_status block_variance_dx(const predictor *p, ptrdiff_t first, ptrdiff_t rows)
{
    const frg_gp *gp = p->gp;
    const ptrdiff_t n = gp->data.n, d = gp->data.d, count = gp->profile.count;
    double *const out = p->want->variance_dx + first * d;
    TRY(frgi_spd_backward(gp->ctx, &gp->own.matrix, rows, p->solved, n));
    frgi_gp_self_dx(gp->own.bound, &p->points, first, rows, out);
    for (ptrdiff_t i = 0; i < rows; i++) {
        const double *const u = p->basis + (first + i) * count, *const root = gp->profile.root;
        for (ptrdiff_t a = count - 1; a >= 0; a--) { /* A^-1 u = L_A^-T (L_A^-1 u) */
            p->slope[a] = u[a];
            for (ptrdiff_t k = a + 1; k < count; k++) {
                p->slope[a] -= root[k * count + a] * p->slope[k];
            }
            p->slope[a] /= root[a * count + a];
            if (a > 0) {
                out[i * d + a - 1] += 2 * p->slope[a];
            }
        }
        for (ptrdiff_t j = 0; j < n; j++) {
            double w = entry(frgi_spd_dtype(&gp->own.matrix), p->solved, j + i * n);
            for (ptrdiff_t a = 0; a < count; a++) {
                w += gp->profile.solved[a * n + j] * p->slope[a];
            }
            p->weights[i + j * rows] = -2 * w;
        }
    }
    double *term; /* frgi_gp_cross_dx overwrites */
    TRY(NEW(gp->ctx, &term, rows * d, "gradients of the variance"));
    const frg_status status =
        frgi_gp_cross_dx(gp->ctx, gp->own.bound, &p->points, first, rows, p->weights, rows, term);
    for (ptrdiff_t k = 0; k < rows * d && status >= 0; k++) {
        out[k] += term[k];
    }
    DROP(gp->ctx, &term);
    return status;
}

/* ---- covariances ----------------------------------------------------------------------------- */

/** covariance <- K_tt in its lower triangle. */
static frg_status prior_covariance(predictor *p)
{
    const frg_gp *gp = p->gp;
    const ptrdiff_t m = p->m;
    double *const c = p->want->covariance;
    const frgi_gp_bound *b = frgi_gp_bind(gp->ctx, gp->model.kernel, gp->model.theta, &p->points,
                                          p->bound_memory, frg_threads(gp->ctx));
    for (ptrdiff_t first = 0; first < m; first += BLOCK) {
        const ptrdiff_t rows = m - first < BLOCK ? m - first : BLOCK;
        TRY(frgi_gp_cross(gp->ctx, b, &p->points, first, rows, p->cross, rows));
        for (ptrdiff_t j = 0; j < m; j++) {
            for (ptrdiff_t i = 0; i < rows; i++) {
                c[first + i + j * m] =
                    entry(frgi_spd_dtype(&gp->own.matrix), p->cross, i + j * rows);
            }
        }
    }
    for (ptrdiff_t i = 0; i < m; i++) {
        c[i + i * m] = p->self[i];
    }
    return FRG_OK;
}

/** c <- c + sign A'A on the lower triangle, A n x m; tiles in parallel. */
static void add_gram(frg_context *ctx, ptrdiff_t m, ptrdiff_t n, double sign, const double *a,
                     double *c)
{
    const ptrdiff_t tiles = (m + TILE - 1) / TILE;
    const frgi_blas_guard guard = frgi_blas_begin();
#pragma omp parallel num_threads(frg_threads(ctx))
    {
        frgi_blas_single();
#pragma omp for schedule(static, 1)
        for (ptrdiff_t t = 0; t < tiles * tiles; t++) {
            const ptrdiff_t i = t / tiles * TILE, j = t % tiles * TILE;
            const int rows = (int)(m - i < TILE ? m - i : TILE);
            const int columns = (int)(m - j < TILE ? m - j : TILE);
            if (i >= j) {
                frgi_dgemm('T', 'N', rows, columns, (int)n, sign, a + i * n, (int)n, a + j * n,
                           (int)n, 1, c + i + j * m, (int)m);
            }
        }
    }
    frgi_blas_end(guard);
}

static frg_status covariance(predictor *p)
{
    const frg_gp *gp = p->gp;
    const ptrdiff_t m = p->m;
    double *const c = p->want->covariance;
    TRY(prior_covariance(p));
    if (!p->want->prior) {
        add_gram(gp->ctx, m, gp->data.n, -1, p->forward, c);
        if (gp->profile.count > 0) {
            add_gram(gp->ctx, m, gp->profile.count, 1, p->basis, c);
        }
    }
    for (ptrdiff_t j = 0; j < m; j++) {
        for (ptrdiff_t i = 0; i < j; i++) {
            c[i + j * m] = c[j + i * m];
        }
    }
    return FRG_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

double frgi_gp_new_noise(const frg_gp *gp)
{
    double sum = 0;
    if (!gp->data.known_noise && !gp->data.groups) {
        sum = gp->model.params.noise_count > 0 ? gp->model.theta[gp->model.params.noise_first] : 0;
    } else {
        for (ptrdiff_t i = 0; i < gp->data.n; i++) {
            sum += frgi_gp_noise_at(gp, i);
        }
        sum /= (double)gp->data.n;
    }
    return gp->state.scale * sum;
}

frg_status frgi_gp_predict_block(predictor *p, ptrdiff_t first, ptrdiff_t rows)
{
    const frg_gp *gp = p->gp;
    const frgi_gp_wanted *w = p->want;
    TRY(frgi_gp_cross(gp->ctx, gp->own.bound, &p->points, first, rows, p->cross, rows));
    for (ptrdiff_t c = 0; c < gp->data.q && w->mean; c++) {
        add_products(p, rows, gp->vectors.alpha + c * gp->data.n, w->mean + first + c * p->m);
    }
    if (w->mean_dx) {
        TRY(block_mean_dx(p, first, rows));
    }
    if (!solves(w)) {
        return FRG_OK;
    }
    block_basis(p, first, rows);
    transpose_cross(p, rows);
    TRY(frgi_spd_forward(gp->ctx, &gp->own.matrix, rows, p->solved, gp->data.n));
    if (w->variance) {
        block_variance(p, first, rows);
    }
    if (w->covariance || w->forward) {
        block_forward(p, first, rows);
    }
    return w->variance_dx ? block_variance_dx(p, first, rows) : FRG_OK;
}

static frg_status block(predictor *p, ptrdiff_t first, ptrdiff_t rows)
{
    const frg_status status = frgi_heartbeat(p->gp->ctx, &(frg_progress){.solver = "gp",
                                                                         .phase = "predict",
                                                                         .done = first,
                                                                         .total = p->m,
                                                                         .residual = (double)NAN,
                                                                         .target = (double)NAN});
    return status == FRG_OK ? p->gp->steps->factor.predict(p, first, rows) : status;
}

static void multiply(double factor, double *v, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; v && i < count; i++) {
        v[i] *= factor;
    }
}

/** A profiled scale into what has been computed with R. */
static void scale_results(const predictor *p)
{
    const frg_gp *const gp = p->gp;
    const frgi_gp_wanted *const w = p->want;
    const ptrdiff_t m = p->m;
    const double unit = sqrt(gp->state.scale);
    if (gp->opts.profile_scale) {
        multiply(gp->state.scale, w->variance, m);
        multiply(gp->state.scale, w->covariance, m * m);
        multiply(gp->state.scale, w->variance_dx, m * gp->data.d);
        multiply(unit, w->forward, gp->data.n * m);
        multiply(unit, w->basis, gp->profile.count * m);
    }
}

/** own[i] <- the variance of an observation at point i beyond the function's: noise and white(...);
 *  0 where functions are asked for. */
static void own_variances(const predictor *p, double *own)
{
    const frg_gp *const gp = p->gp;
    const double noise = p->want->observed ? frgi_gp_new_noise(gp) : 0;
    if (p->want->observed) {
        frgi_gp_white(gp->own.bound, &p->points, 0, p->m, own);
    }
    for (ptrdiff_t i = 0; i < p->m; i++) {
        own[i] = p->want->observed ? gp->state.scale * own[i] + noise : 0;
    }
}

/** Negative variances become 0; then the noise of observations, and the least variance. */
static void finish_variance(predictor *p)
{
    const frgi_gp_wanted *w = p->want;
    double *const own = p->self; /* it has been used */
    own_variances(p, own);
    int64_t negative = 0, raised = 0;
    double worst = 0;
    for (ptrdiff_t i = 0; i < p->m && w->variance; i++) {
        double *const v = &w->variance[i];
        negative += *v < 0;
        worst = *v < worst ? *v : worst;
        *v = (*v < 0 ? 0 : *v) + own[i];
        raised += *v < w->floor;
        *v = *v < w->floor ? w->floor : *v;
    }
    for (ptrdiff_t i = 0; i < p->m && w->covariance; i++) {
        double *const v = &w->covariance[i + i * p->m];
        *v = (*v < 0 ? 0 : *v) + own[i];
    }
    if (raised > 0) {
        frgi_warn(p->gp->ctx, W_VARIANCE, "%lld of %lld variances were below %.2g and became that",
                  (long long)raised, (long long)p->m, w->floor);
    } else if (negative > 0) {
        frgi_warn(p->gp->ctx, W_VARIANCE, "%lld of %lld variances were negative, the lowest %.2g",
                  (long long)negative, (long long)p->m, worst);
    }
}

static frg_status run(predictor *p)
{
    frg_gp *gp = p->gp;
    const frgi_gp_wanted *w = p->want;
    frgi_gp_set_points(gp, p->x, p->m, p->points_memory, &p->points);
    frgi_gp_need_bound(gp); /* the prior alone asks for no factor */
    frgi_gp_self(gp->own.bound, &p->points, 0, p->m, p->self);
    for (ptrdiff_t c = 0; c < gp->data.q && w->mean; c++) {
        frgi_gp_mean_at(gp, p->m, p->x, c, w->mean + c * p->m);
        for (ptrdiff_t i = 0; w->given && i < p->m; i++) {
            w->mean[i + c * p->m] += w->given[i];
        }
    }
    if (w->prior && w->variance) {
        memcpy(w->variance, p->self, (size_t)p->m * sizeof *p->self);
    }
    for (ptrdiff_t first = 0; first < p->m && !w->prior; first += BLOCK) {
        const frg_status status = block(p, first, p->m - first < BLOCK ? p->m - first : BLOCK);
        if (status != FRG_OK) {
            return status;
        }
    }
    if (w->covariance) {
        TRY(covariance(p));
    }
    scale_results(p);
    finish_variance(p);
    return FRG_OK;
}

frg_status frgi_gp_posterior(frg_gp *gp, const double *x, ptrdiff_t m, const frgi_gp_wanted *w)
{
    const bool profiled = gp->profile.count > 0 || gp->opts.profile_scale;
    if (!w->prior || profiled) { /* a profiled mean or scale comes from the data */
        const frg_status status = frgi_gp_need_factor(gp);
        if (status != FRG_OK) {
            return status;
        }
    }
    predictor p = {.gp = gp, .want = w, .x = x, .m = m};
    frgi_arena a = {0};
    lay_out(&a, &p);
    TRY(frgi_arena_open(&a, gp->ctx, "work memory of the prediction"));
    lay_out(&a, &p);
    const frg_status status = run(&p);
    frgi_arena_close(&a, gp->ctx);
    return status;
}

/* ---- the public call ------------------------------------------------------------------------- */

frg_status frgi_gp_take_points(frg_gp *gp, const frg_array *x, const char *name, double **out)
{
    frg_context *ctx = gp->ctx;
    *out = NULL;
    TRY(frgi_array_check(ctx, x, name, 2, 1u << FRG_F64 | 1u << FRG_F32));
    if (x->shape[1] != gp->data.d) {
        FAIL(ctx, E_SHAPE, "%s has %lld columns, the process has %lld", name,
             (long long)x->shape[1], (long long)gp->data.d);
    }
    double *copy;
    const frgi_gp_reader from = frgi_gp_read(x);
    const double most = frgi_gp_largest_x(&gp->opts);
    TRY(NEW(ctx, &copy, frgi_mul((size_t)x->shape[0], (size_t)gp->data.d), "new points"));
    for (int64_t i = 0; i < x->shape[0]; i++) {
        for (int64_t k = 0; k < gp->data.d; k++) {
            const double v = frgi_gp_element(&from, i, k, 0);
            copy[i * gp->data.d + k] = v;
            if (fabs(v) <= most) {
                continue;
            }
            DROP(ctx, &copy);
            if (isfinite(v)) {
                return frgi_gp_refuse_size(ctx, name, i, k, v, most);
            }
            FAIL(ctx, E_NOT_FINITE_GP, "%s: row %lld, column %s is %g", name, frgi_nth(ctx, i),
                 gp->data.column_names[k], v);
        }
    }
    const frg_status status = frgi_gp_check_phases(gp, name, copy, (ptrdiff_t)x->shape[0]);
    if (status != FRG_OK) {
        DROP(ctx, &copy);
    }
    *out = copy;
    return status;
}

/** The least variance: variance_floor, else GPyTorch's under its preset. */
static double least_variance(const frg_gp *gp, double asked)
{
    const bool single = gp->opts.precision == FRG_GP_F32;
    return asked > 0                                   ? asked
           : gp->opts.preset == FRG_GP_PRESET_GPYTORCH ? (single ? 1e-6 : 1e-10)
                                                       : 0;
}

#define OPTIONS_OF frg_gp_predict_opts
static const frg_option options[] = {
#include "gp/gp_predict_opts.def"
    {.name = NULL}};

const frg_option *frg_gp_predict_options(void)
{
    return options;
}

void frg_gp_predict_defaults(frg_gp_predict_opts *o, size_t struct_size)
{
    frg_gp_predict_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

/** Is `a` NULL, or an f64 array of m x columns (a vector where columns is 1)? */
static frg_status check_output(const frg_gp *gp, const frg_array *a, const char *name, int64_t m,
                               int64_t columns)
{
    if (!a) {
        return FRG_OK;
    }
    const int ndim = a->ndim == 1 && columns == 1 ? 1 : 2;
    TRY(frgi_array_check(gp->ctx, a, name, ndim, 1u << FRG_F64));
    if (a->shape[0] != m || (ndim == 2 && a->shape[1] != columns)) {
        FAIL(gp->ctx, E_SHAPE, "%s must be %lld x %lld, got %lld x %lld", name, (long long)m,
             (long long)columns, (long long)a->shape[0], ndim == 2 ? (long long)a->shape[1] : 1LL);
    }
    return FRG_OK;
}

/** Copies m x columns values, given with the strides (row, column), into the caller's array. */
static void deliver(const frg_array *a, int64_t m, int64_t columns, const double *from, int64_t row,
                    int64_t column)
{
    for (int64_t i = 0; a && i < m; i++) {
        for (int64_t k = 0; k < columns; k++) {
            const int64_t step = i * a->stride[0] + (a->ndim == 2 ? k * a->stride[1] : 0);
            ((double *)(void *)frgi_array_base(a))[step] = from[i * row + k * column];
        }
    }
}

static frg_status check_outputs(const frg_gp *gp, const frg_gp_predict_opts *o, int64_t m)
{
    TRY(check_output(gp, o->mean, "mean", m, gp->data.q));
    TRY(check_output(gp, o->variance, "variance", m, 1));
    TRY(check_output(gp, o->covariance, "covariance", m, m));
    TRY(check_output(gp, o->mean_dx, "mean_dx", m, gp->data.d));
    TRY(check_output(gp, o->variance_dx, "variance_dx", m, gp->data.d));
    REQUIRE(gp->ctx, !o->mean_dx || gp->data.q == 1,
            "mean_dx needs a process with one output, this one has %lld", (long long)gp->data.q);
    if ((o->mean_dx || o->variance_dx) && !frgi_gp_kernel_smooth(gp->model.kernel)) {
        frgi_log(gp->ctx, 1, "the kernel has a cusp at each point: there its gradient counts as 0");
    }
    return FRG_OK;
}

/** Has a process whose mean was given that of the new points? */
static frg_status check_mean(const frg_gp *gp, const frg_gp_predict_opts *o, int64_t m)
{
    const bool given = gp->mean.kind == GP_MEAN_VALUES;
    REQUIRE(gp->ctx, given || !o->mean_values,
            "mean_values are for a process whose mean is \"values\", this one has another");
    REQUIRE(
        gp->ctx, !given || !o->mean || o->mean_values,
        "the mean of the data was given by values, and mean_values has none for the new points");
    for (int64_t i = 0; o->mean_values && i < m; i++) {
        if (!isfinite(o->mean_values[i])) {
            FAIL(gp->ctx, E_NOT_FINITE_GP, "mean_values: row %lld is %g", frgi_nth(gp->ctx, i),
                 o->mean_values[i]);
        }
    }
    return FRG_OK;
}

static void lay_out_results(frgi_arena *a, frgi_gp_wanted *w, const frg_gp *gp,
                            const frg_gp_predict_opts *o, ptrdiff_t m)
{
    const size_t rows = (size_t)m, d = (size_t)gp->data.d;
    w->mean = o->mean ? TAKE(a, double, rows *(size_t)gp->data.q) : NULL;
    w->variance = o->variance ? TAKE(a, double, rows) : NULL;
    w->covariance = o->covariance ? TAKE(a, double, frgi_mul(rows, rows)) : NULL;
    w->mean_dx = o->mean_dx ? TAKE(a, double, rows *d) : NULL;
    w->variance_dx = o->variance_dx ? TAKE(a, double, rows *d) : NULL;
}

frg_status frg_gp_predict(frg_gp *gp, frg_array x, const frg_gp_predict_opts *given)
{
    if (!gp || !given) {
        return FRG_BAD_ARG;
    }
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    TRY(frgi_take_opts(gp->ctx, &o, sizeof o, given));
    frgi_run_begins(gp->ctx);
    TRY(frgi_options_check(gp->ctx, options, &o));
    double *points;
    TRY(frgi_gp_take_points(gp, &x, "x", &points));
    const ptrdiff_t m = (ptrdiff_t)x.shape[0], d = gp->data.d;
    frgi_gp_wanted w = {.observed = o.observed != 0,
                        .floor = least_variance(gp, o.variance_floor),
                        .given = o.mean_values};
    frgi_arena a = {0};
    frg_status status;
    TRY_TO(done, check_outputs(gp, &o, m));
    TRY_TO(done, check_mean(gp, &o, m));
    lay_out_results(&a, &w, gp, &o, m);
    TRY_TO(done, frgi_arena_open(&a, gp->ctx, "predictions"));
    lay_out_results(&a, &w, gp, &o, m);
    status = frgi_gp_posterior(gp, points, m, &w);
    if (status == FRG_OK) {
        deliver(o.mean, m, gp->data.q, w.mean, 1, m);
        deliver(o.variance, m, 1, w.variance, 1, 0);
        deliver(o.covariance, m, m, w.covariance, 1, m);
        deliver(o.mean_dx, m, d, w.mean_dx, d, 1);
        deliver(o.variance_dx, m, d, w.variance_dx, d, 1);
    }
done:
    frgi_arena_close(&a, gp->ctx);
    DROP(gp->ctx, &points);
    return status;
}
