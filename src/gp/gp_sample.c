/* gp_sample.c - joint draws of the function or of observations, from the posterior or the prior.
 *
 *     f = m + L z,   L L' = covariance at the m points,   z independent normals
 *
 * z_i of draw s is a function of (seed of the context, output, s, i) alone (Philox, Box and
 * Muller), so that a draw is the same for any count and any number of threads.  A covariance of
 * close points is singular to rounding: its diagonal gets 0, then 1e-10, 1e-9, ... (f32: 1e-7, ...)
 * of the mean prior variance until it can be factored; a standard deviation is moved by at most the
 * root of that.  m^2 n + m^3/3 flop, then m^2/2 a draw; memory 2 m^2.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_predict.h"

#define SAMPLE_STREAM UINT64_C(0x6770206472617773)

typedef struct {
    double *mean, *covariance, *self; /* m x q, m x m, m */
    frgi_spd matrix;
    double *z, *f; /* threads x m */
} sampler;

static void lay_out(frgi_arena *a, sampler *q, const frg_gp *gp, ptrdiff_t m)
{
    const int threads = frg_threads(gp->ctx);
    q->mean = TAKE(a, double, m * gp->data.q);
    q->covariance = TAKE(a, double, frgi_mul((size_t)m, (size_t)m));
    q->self = TAKE(a, double, m);
    void *const elements = frgi_take(a, frgi_spd_bytes(m, FRG_F64));
    void *const work = frgi_take(a, frgi_spd_work_bytes(m, FRG_F64, threads));
    q->matrix = frgi_spd_place(m, FRG_F64, elements, work, "gp");
    q->z = TAKE(a, double, (size_t)m *(size_t)threads);
    q->f = TAKE(a, double, (size_t)m *(size_t)threads);
}

/** The lower triangle of covariance <- L. */
static frg_status factor(frg_gp *gp, sampler *q, ptrdiff_t m)
{
    const bool single = gp->opts.precision == FRG_GP_F32;
    double unit = 0, jitter = 0, logdet;
    frgi_spd_pivots pivots;
    for (ptrdiff_t i = 0; i < m; i++) {
        unit += q->self[i] / (double)m;
    }
    for (int attempt = 0; attempt <= 6; attempt++) {
        jitter = attempt == 0 ? 0 : unit * (single ? 1e-7 : 1e-10) * pow(10, attempt - 1);
        for (ptrdiff_t j = 0; j < m; j++) {
            const double kept = q->covariance[j + j * m];
            q->covariance[j + j * m] = kept + jitter;
            frgi_spd_write_column(&q->matrix, j, j, m, q->covariance + j + j * m);
            q->covariance[j + j * m] = kept;
        }
        const frg_status status = frgi_spd_factor(gp->ctx, &q->matrix, &logdet, &pivots);
        if (status == FRG_OK) {
            for (ptrdiff_t j = 0; j < m; j++) {
                frgi_spd_read_column(&q->matrix, j, j, m, q->covariance + j + j * m);
            }
            if (jitter > 0) {
                frgi_log(gp->ctx, 1, "draws: %.2g was added to the variances", jitter);
            }
            return FRG_OK;
        }
        if (status != FRG_NOT_POSDEF) {
            return status;
        }
    }
    FAIL(gp->ctx, E_NOT_POSDEF,
         "the covariance of the %lld points has the pivot %.3g at point %lld", (long long)m,
         pivots.value, frgi_nth(gp->ctx, pivots.pivot));
}

/** Draw `number` of output c, with normals of its own. */
static void draw(const frg_gp *gp, const sampler *q, ptrdiff_t m, int64_t number, ptrdiff_t c,
                 double *z, double *f)
{
    for (ptrdiff_t i = 0; i < m; i += 2) {
        double pair[2];
        frgi_normals(frg_seed(gp->ctx), SAMPLE_STREAM + (uint64_t)c, (uint64_t)number,
                     (uint64_t)i / 2, pair);
        z[i] = pair[0];
        if (i + 1 < m) {
            z[i + 1] = pair[1];
        }
    }
    memcpy(f, q->mean + c * m, (size_t)m * sizeof *f);
    for (ptrdiff_t k = 0; k < m; k++) {
        const double *const column = q->covariance + k * m;
        for (ptrdiff_t i = k; i < m; i++) {
            f[i] += column[i] * z[k];
        }
    }
}

static void draw_all(const frg_gp *gp, const sampler *q, ptrdiff_t m, int64_t count,
                     const frg_array *out)
{
    const int threads = frg_threads(gp->ctx);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) { /* a thread takes a stretch of the draws */
        double *const z = q->z + t * m, *const f = q->f + t * m;
        for (int64_t s = count * t / threads; s < count * (t + 1) / threads; s++) {
            for (ptrdiff_t c = 0; c < gp->data.q; c++) {
                draw(gp, q, m, s, c, z, f);
                double *const to = (double *)(void *)frgi_array_base(out) + s * out->stride[0] +
                                   (gp->data.q > 1 ? c * out->stride[2] : 0);
                for (ptrdiff_t i = 0; i < m; i++) {
                    to[i * out->stride[1]] = f[i];
                }
            }
        }
    }
}

static frg_status sample(frg_gp *gp, const double *x, ptrdiff_t m, int64_t count, bool prior,
                         bool observed, const frg_array *out)
{
    sampler q;
    frgi_arena a = {0};
    lay_out(&a, &q, gp, m);
    TRY(frgi_arena_open(&a, gp->ctx, "draws"));
    lay_out(&a, &q, gp, m);
    const frgi_gp_wanted both = {
        .mean = q.mean, .covariance = q.covariance, .prior = prior, .observed = observed};
    const frgi_gp_wanted size = {.variance = q.self, .prior = true};
    frg_status status = frgi_gp_posterior(gp, x, m, &both);
    if (status == FRG_OK) {
        status = frgi_gp_posterior(gp, x, m, &size);
    }
    if (status == FRG_OK) {
        status = factor(gp, &q, m);
    }
    if (status == FRG_OK) {
        draw_all(gp, &q, m, count, out);
    }
    frgi_arena_close(&a, gp->ctx);
    return status;
}

frg_status frg_gp_sample(frg_gp *gp, frg_array x, int64_t count, int prior, int observed,
                         frg_array out)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    frg_context *ctx = gp->ctx;
    frgi_run_begins(ctx);
    REQUIRE(ctx, count >= 0, "count must be >= 0, got %lld", (long long)count);
    if (gp->data.q > 1 && out.ndim != 3) {
        FAIL(ctx, E_SHAPE, "out must be count x m x %lld: the process has that many outputs",
             (long long)gp->data.q);
    }
    TRY(frgi_array_check(ctx, &out, "out", gp->data.q > 1 ? 3 : 2, 1u << FRG_F64));
    double *points;
    TRY(frgi_gp_take_points(gp, &x, "x", &points));
    frg_status status = FRG_OK;
    if (out.shape[0] != count || out.shape[1] != x.shape[0] ||
        (gp->data.q > 1 && out.shape[2] != gp->data.q)) {
        DROP(ctx, &points);
        FAIL(ctx, E_SHAPE, "out must be %lld x %lld%s, got %lld x %lld", (long long)count,
             (long long)x.shape[0], gp->data.q > 1 ? " x the outputs" : "", (long long)out.shape[0],
             (long long)out.shape[1]);
    }
    if (count > 0 && x.shape[0] > 0) {
        status = sample(gp, points, (ptrdiff_t)x.shape[0], count, prior != 0, observed != 0, &out);
    }
    DROP(ctx, &points);
    return status;
}
