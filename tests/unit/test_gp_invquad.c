/* test_gp_invquad.c - inv_quad and logdet of dense matrices: closed forms, differences, batches,
 * views, faults. */
#include <float.h>
#include <time.h>

#include "fourge/gp.h"
#include "test.h"

/** K = (1 - c) I + c 1 1': |K| = (1 - c)^(n-1) (1 + (n-1) c), K^-1 = (I - c/(1 + (n-1) c) 1 1') /
 *  (1 - c). */
static void equicorrelated(void)
{
    static const int64_t sizes[] = {1, 2, 7, 16, 33, 100, 210, 450};
    const double c = 0.3;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s];
        frg_context *ctx = test_context();
        double *const k = malloc((size_t)(n * n) * sizeof *k), *const kept = malloc(
                                                                   (size_t)(n * n) * sizeof *k);
        double *const r = malloc((size_t)n * sizeof *r), *const a = malloc((size_t)n * sizeof *a);
        double *const x = malloc((size_t)(n * n) * sizeof *x);
        double sum = 0, square = 0;
        for (int64_t i = 0; i < n; i++) {
            r[i] = test_normal();
            sum += r[i];
            square += r[i] * r[i];
            for (int64_t j = 0; j < n; j++) /* the upper triangle is never read */
                k[i * n + j] = j > i ? (double)NAN : i == j ? 1 : c;
        }
        memcpy(kept, k, (size_t)(n * n) * sizeof *k);
        const frg_array av = frg_vector(a, FRG_F64, n), xv = frg_matrix(x, FRG_F64, n, n, n);
        double iq, ld;
        CHECK_OK(ctx, frg_gp_invquad_logdet(ctx, frg_matrix(k, FRG_F64, n, n, n),
                                            frg_vector(r, FRG_F64, n), &iq, &ld, &av, &xv));
        const double m = (double)n, f = c / (1 + (m - 1) * c);
        /* condition number (1 + (n-1) c) / (1 - c) = 194 at n = 450; errors below (n + 20) u of
         * it */
        const double tolerance = (m + 20) * DBL_EPSILON * (1 + (m - 1) * c) / (1 - c);
        CHECK_NEAR(ld, (m - 1) * log(1 - c) + log(1 + (m - 1) * c), tolerance);
        CHECK_NEAR(iq, (square - f * sum * sum) / (1 - c), tolerance);
        for (int64_t i = 0; i < n; i++) {
            CHECK_NEAR(a[i], (r[i] - f * sum) / (1 - c), tolerance);
            for (int64_t j = 0; j < n; j++) {
                CHECK_NEAR(x[i * n + j], ((i == j) - f) / (1 - c), tolerance);
                CHECK(x[i * n + j] == x[j * n + i]);
            }
        }
        CHECK_BITS(k, kept, (size_t)(n * n) * sizeof *k);
        free(k);
        free(kept);
        free(r);
        free(a);
        free(x);
        frg_context_destroy(ctx);
    }
}

/** A random posdef matrix, row-major, B B'/n + I. */
static void posdef(double *k, int64_t n)
{
    double *const b = malloc((size_t)(n * n) * sizeof *b);
    for (int64_t i = 0; i < n * n; i++)
        b[i] = test_normal() / sqrt((double)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double v = i == j;
            for (int64_t l = 0; l < n; l++)
                v += b[i * n + l] * b[j * n + l];
            k[i * n + j] = v;
        }
    free(b);
}

/** f(K, r) = g_iq inv_quad + g_ld logdet by central differences in each entry; K moved
 *  symmetrically. */
static void differences(void)
{
    enum { N = 6 };
    frg_context *ctx = test_context();
    double k[N * N], r[N], a[N], x[N * N], dk[N * N], dr[N];
    posdef(k, N);
    for (int i = 0; i < N; i++)
        r[i] = test_normal();
    const frg_array kv = frg_matrix(k, FRG_F64, N, N, N), rv = frg_vector(r, FRG_F64, N);
    const frg_array av = frg_vector(a, FRG_F64, N), xv = frg_matrix(x, FRG_F64, N, N, N);
    const frg_array dkv = frg_matrix(dk, FRG_F64, N, N, N), drv = frg_vector(dr, FRG_F64, N);
    static const struct {
        double iq, ld;
    } weights[] = {{1, 0}, {0, 1}, {-0.5, -0.5}, {0.7, 2}};
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++) {
        const double *const g_iq = weights[w].iq != 0 ? &weights[w].iq : NULL;
        const double *const g_ld = weights[w].ld != 0 ? &weights[w].ld : NULL;
        CHECK_OK(ctx, frg_gp_invquad_logdet(ctx, kv, rv, NULL, NULL, &av, &xv));
        CHECK_OK(ctx, frg_gp_invquad_logdet_backward(ctx, g_ld ? &xv : NULL, av, g_iq, g_ld, &dkv,
                                                     &drv));
        for (int i = 0; i < N; i++) {
            for (int j = 0; j <= i + 1; j++) { /* j = i + 1: the derivative by r_i */
                double *const one = j > i ? &r[i] : &k[i * N + j], *const two =
                                                                       j > i ? one : &k[j * N + i];
                const double old = *one, h = 1e-5;
                double f[2];
                for (int side = 0; side < 2; side++) {
                    *one = *two = old + (side ? h : -h);
                    double iq, ld;
                    CHECK_OK(ctx, frg_gp_invquad_logdet(ctx, kv, rv, &iq, &ld, NULL, NULL));
                    f[side] = weights[w].iq * iq + weights[w].ld * ld;
                }
                *one = *two = old;
                /* an entry off the diagonal stands twice; error h^2 f''' / 6 + 2 u f / h, both
                 * below 1e-9 here */
                const double want = j > i    ? dr[i]
                                    : i == j ? dk[i * N + i]
                                             : dk[i * N + j] + dk[j * N + i];
                CHECK_NEAR((f[1] - f[0]) / (2 * h), want, 1e-7);
            }
        }
        for (int i = 0; i < N * N; i++)
            CHECK(dk[i] == dk[i % N * N + i / N]);
        /* in place, and without dk or dr */
        double again[N];
        const frg_array again_v = frg_vector(again, FRG_F64, N);
        CHECK_OK(ctx, frg_gp_invquad_logdet_backward(ctx, NULL, av, g_iq, g_ld, NULL, &again_v));
        CHECK_BITS(again, dr, sizeof dr);
        CHECK_OK(ctx, frg_gp_invquad_logdet_backward(ctx, &xv, av, g_iq, g_ld, &xv, NULL));
        CHECK_BITS(x, dk, sizeof dk);
    }
    frg_context_destroy(ctx);
}

static frg_array view(void *data, frg_dtype t, int ndim, const int64_t *shape,
                      const int64_t *stride)
{
    frg_array v = {.data = data, .dtype = t, .ndim = ndim};
    for (int d = 0; d < ndim; d++) {
        v.shape[d] = shape[d];
        v.stride[d] = stride[d];
    }
    return v;
}

/** A batch gives every member the bits of its own call, whatever the strides and the threads. */
static void batches(frg_dtype t, int64_t n, int threads)
{
    enum { P = 2, Q = 3 };
    const size_t size = frg_sizeof(t);
    const int64_t nn = n * n;
    frg_context *ctx = test_context_with(threads, NULL, NULL),
                *one = test_context_with(1, NULL, NULL);
    double *const full = malloc((size_t)nn * sizeof *full);
    char *const k = calloc((size_t)(P * Q * nn), size), *const r =
                                                            calloc((size_t)(P * Q * n * 2), size);
    char *const a = calloc((size_t)(P * Q * n), size), *const x =
                                                           calloc((size_t)(P * Q * nn), size);
    char *const a1 = calloc((size_t)n, size), *const x1 = calloc((size_t)nn, size);
    for (int64_t m = 0; m < P * Q; m++) {
        posdef(full, n);
        for (int64_t i = 0; i < nn;
             i++) { /* stored column by column, members last: element (i, j) of m */
            if (t == FRG_F64)
                ((double *)(void *)k)[i * P * Q + m] = full[i];
            else
                ((float *)(void *)k)[i * P * Q + m] = (float)full[i];
        }
    }
    for (int64_t i = 0; i < P * Q * n * 2; i++) {
        if (t == FRG_F64)
            ((double *)(void *)r)[i] = test_normal();
        else
            ((float *)(void *)r)[i] = (float)test_normal();
    }
    for (int kind = 0; kind < 3;
         kind++) { /* all different; one matrix for each row of members; one for all */
        const int64_t of_p = kind == 2 ? 0 : Q, of_q = kind == 0 ? 1 : 0;
        const frg_array kv =
            view(k, t, 4, (int64_t[]){P, Q, n, n}, (int64_t[]){of_p, of_q, P * Q, n * P * Q});
        /* r backwards, every second element */
        frg_array rv = view(r, t, 3, (int64_t[]){P, Q, n}, (int64_t[]){2 * Q * n, 2 * n, -2});
        rv.offset = (size_t)(2 * n - 2) * size;
        const frg_array av = view(a, t, 3, (int64_t[]){P, Q, n}, (int64_t[]){Q * n, n, 1});
        const frg_array xv = view(x, t, 4, (int64_t[]){P, Q, n, n}, (int64_t[]){Q * nn, nn, n, 1});
        double iq[P * Q], ld[P * Q], iq1, ld1;
        CHECK_OK(ctx, frg_gp_invquad_logdet(ctx, kv, rv, iq, ld, &av, kind == 1 ? NULL : &xv));
        for (int64_t p = 0; p < P; p++) {
            for (int64_t q = 0; q < Q; q++) {
                const int64_t m = p * Q + q;
                frg_array k1 = view(k, t, 2, (int64_t[]){n, n}, (int64_t[]){P * Q, n * P * Q});
                frg_array r1 = view(r, t, 1, (int64_t[]){n}, (int64_t[]){-2});
                k1.offset = (size_t)(p * of_p + q * of_q) * size;
                r1.offset = (size_t)(2 * n - 2 + m * 2 * n) * size;
                const frg_array a1v = frg_vector(a1, t, n), x1v = frg_matrix(x1, t, n, n, n);
                CHECK_OK(one, frg_gp_invquad_logdet(one, k1, r1, &iq1, &ld1, &a1v, &x1v));
                if (kind == 0) {
                    CHECK(iq[m] == iq1);
                    CHECK_BITS(a + (size_t)(m * n) * size, a1, (size_t)n * size);
                } else { /* several columns are solved together: the same up to rounding, cond(K) <
                            6 */
                    const double u = t == FRG_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
                    CHECK_NEAR(iq[m], iq1, 48 * ((double)n + 20) * u);
                }
                CHECK(ld[m] == ld1);
                if (kind != 1)
                    CHECK_BITS(x + (size_t)(m * nn) * size, x1, (size_t)nn * size);
            }
        }
    }
    free(full);
    free(k);
    free(r);
    free(a);
    free(x);
    free(a1);
    free(x1);
    frg_context_destroy(ctx);
    frg_context_destroy(one);
}

static void views(void)
{
    static const int64_t n[] = {1, 5, 16, 40, 61};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        for (int threads = 1; threads <= 3; threads++) {
            batches(FRG_F64, n[i], threads);
            batches(FRG_F32, n[i], threads);
        }
    }
}

static void empty(void)
{
    frg_context *ctx = test_context();
    double k[4] = {0}, iq[3] = {7, 7, 7}, ld[3] = {7, 7, 7};
    CHECK_OK(ctx,
             frg_gp_invquad_logdet(
                 ctx, view(k, FRG_F64, 3, (int64_t[]){3, 0, 0}, (int64_t[]){0, 0, 1}),
                 view(k, FRG_F64, 2, (int64_t[]){3, 0}, (int64_t[]){0, 1}), iq, ld, NULL, NULL));
    for (int i = 0; i < 3; i++)
        CHECK(iq[i] == 0 && ld[i] == 0);
    CHECK_OK(ctx, frg_gp_invquad_logdet(
                      ctx, view(NULL, FRG_F64, 3, (int64_t[]){0, 5, 5}, (int64_t[]){25, 5, 1}),
                      view(NULL, FRG_F64, 2, (int64_t[]){0, 5}, (int64_t[]){5, 1}), NULL, NULL,
                      NULL, NULL));
    const frg_array none = view(NULL, FRG_F64, 2, (int64_t[]){0, 5}, (int64_t[]){5, 1});
    CHECK_OK(ctx, frg_gp_invquad_logdet_backward(ctx, NULL, none, iq, NULL, NULL, &none));
    frg_context_destroy(ctx);
}

/** A member that is not posdef: named, and nothing is written. */
static void failures(void)
{
    enum { COUNT = 5, N = 9 };
    for (int threads = 1; threads <= 2; threads++) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        double k[COUNT * N * N], r[COUNT * N], a[COUNT * N], x[COUNT * N * N], iq[COUNT], ld[COUNT];
        for (int m = 0; m < COUNT; m++)
            posdef(k + m * N * N, N);
        for (int i = 0; i < COUNT * N; i++)
            r[i] = 1;
        memset(a, 0x55, sizeof a);
        memset(x, 0x55, sizeof x);
        memset(iq, 0x55, sizeof iq);
        memset(ld, 0x55, sizeof ld);
        double untouched;
        memset(&untouched, 0x55, sizeof untouched);
        for (int i = 0; i < N; i++)
            k[3 * N * N + i * N + 4] = k[3 * N * N + 4 * N + i] = i == 4 ? -2 : 0;
        const frg_array kv =
            view(k, FRG_F64, 3, (int64_t[]){COUNT, N, N}, (int64_t[]){N * N, N, 1});
        const frg_array rv = view(r, FRG_F64, 2, (int64_t[]){COUNT, N}, (int64_t[]){N, 1});
        const frg_array av = view(a, FRG_F64, 2, (int64_t[]){COUNT, N}, (int64_t[]){N, 1});
        const frg_array xv =
            view(x, FRG_F64, 3, (int64_t[]){COUNT, N, N}, (int64_t[]){N * N, N, 1});
        CHECK_STATUS(frg_gp_invquad_logdet(ctx, kv, rv, iq, ld, &av, &xv), FRG_NOT_POSDEF);
        CHECK_TEXT(frg_error_code(ctx), "FRG-GP-007");
        CHECK(strstr(frg_message(ctx), "member 3") && strstr(frg_message(ctx), "row 4 of 9"));
        for (int i = 0; i < COUNT * N * N; i++)
            CHECK_BITS(&x[i], &untouched, sizeof untouched);
        CHECK_BITS(&iq[0], &untouched, sizeof untouched);
        CHECK_BITS(&ld[4], &untouched, sizeof untouched);
        CHECK_BITS(&a[7], &untouched, sizeof untouched);
        frg_context_destroy(ctx);
    }
}

static void refusals(void)
{
    frg_context *ctx = test_context();
    double k[64] = {0}, r[64] = {0}, out[64];
    const frg_array k3 = frg_matrix(k, FRG_F64, 3, 3, 3), r3 = frg_vector(r, FRG_F64, 3);
    const frg_array wide = frg_matrix(k, FRG_F64, 3, 4, 4), r4 = frg_vector(r, FRG_F64, 4);
    const frg_array narrow = frg_vector(r, FRG_F32, 3), whole = frg_matrix(k, FRG_I64, 3, 3, 3);
    const frg_array gaps = view(out, FRG_F64, 1, (int64_t[]){3}, (int64_t[]){2});
    const frg_array flat = view(out, FRG_F64, 2, (int64_t[]){3, 3}, (int64_t[]){0, 1});
    CHECK_STATUS(frg_gp_invquad_logdet(ctx, wide, r3, NULL, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "square"));
    CHECK_STATUS(frg_gp_invquad_logdet(ctx, k3, r4, NULL, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_invquad_logdet(ctx, k3, narrow, NULL, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "f32"));
    CHECK_STATUS(frg_gp_invquad_logdet(ctx, whole, r3, NULL, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_invquad_logdet(ctx, r3, r3, NULL, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_invquad_logdet(ctx, k3, k3, NULL, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_invquad_logdet(ctx, k3, r3, NULL, NULL, &gaps, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "contiguous"));
    const double g = 1;
    CHECK_STATUS(frg_gp_invquad_logdet_backward(ctx, NULL, r3, NULL, &g, &k3, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_invquad_logdet_backward(ctx, NULL, r3, &g, NULL, &flat, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_invquad_logdet_backward(ctx, NULL, r3, &g, NULL, &wide, NULL), FRG_BAD_ARG);
    frg_context_destroy(ctx);
}

/** ell of one matrix; the f32 of the two calls has the same numbers as the f64. */
static frg_status likelihood(frg_context *ctx, frg_dtype t, int64_t n, const float *k,
                             const float *r, double *ell)
{
    double *const wide = malloc((size_t)(n * n + n) * sizeof *wide), iq, ld;
    for (int64_t i = 0; i < n * n; i++)
        wide[i] = (double)k[i];
    for (int64_t i = 0; i < n; i++)
        wide[n * n + i] = (double)r[i];
    float *const kept = malloc((size_t)(n * n + n) * sizeof *kept);
    memcpy(kept, k, (size_t)(n * n) * sizeof *k);
    memcpy(kept + n * n, r, (size_t)n * sizeof *r);
    void *const a = t == FRG_F64 ? (void *)wide : kept;
    const size_t size = frg_sizeof(t);
    const frg_status status = frg_gp_invquad_logdet(
        ctx, frg_matrix(a, t, n, n, n), frg_vector((char *)a + (size_t)(n * n) * size, t, n), &iq,
        &ld, NULL, NULL);
    *ell = -0.5 * (iq + ld + (double)n * log(6.283185307179586));
    free(wide);
    free(kept);
    return status;
}

static float hilbert(int64_t i, int64_t j)
{
    return 1 / (float)(i + j + 1);
}

/** Hilbert's matrix of order 8, rounded to f32, has a smallest eigenvalue of 2 roundings of its
 *  largest. */
static void hilbert_in_single(void)
{
    enum { N = 8 };
    frg_context *ctx = test_context();
    float k[N * N], r[N];
    for (int i = 0; i < N; i++) {
        r[i] = 1;
        for (int j = 0; j < N; j++)
            k[i * N + j] = hilbert(i, j);
    }
    double ell;
    CHECK_STATUS(likelihood(ctx, FRG_F32, N, k, r, &ell), FRG_BROKE_DOWN);
    CHECK_TEXT(frg_error_code(ctx), "FRG-GP-010");
    CHECK(strstr(frg_message(ctx), "give k and r in f64"));
    CHECK_OK(ctx, likelihood(ctx, FRG_F64, N, k, r, &ell));
    /* a batch: its third member is the one named, from 0 */
    float batch[4 * N * N] = {0}, ones[4 * N];
    double iq[4], ld[4];
    for (int m = 0; m < 4; m++)
        for (int i = 0; i < N; i++) {
            ones[m * N + i] = 1;
            batch[(m * N + i) * N + i] = 2;
        }
    memcpy(batch + 2 * N * N, k, sizeof k);
    CHECK_STATUS(frg_gp_invquad_logdet(
                     ctx, view(batch, FRG_F32, 3, (int64_t[]){4, N, N}, (int64_t[]){N * N, N, 1}),
                     view(ones, FRG_F32, 2, (int64_t[]){4, N}, (int64_t[]){N, 1}), iq, ld, NULL,
                     NULL),
                 FRG_BROKE_DOWN);
    CHECK(strstr(frg_message(ctx), "member 2 of the batch"));
    frg_context_destroy(ctx);
}

/** f32 keeps what it promises, to within a thousandth of |ell| + 1 of what f64 says (2^29 times as
 *  accurate), on kernels from well to badly conditioned, and is taken where K is at most 260 / 0.05
 *  times as large as its smallest eigenvalue: an error of n u cond / 4 at the very most, 0.02 |z|^2
 *  here, and of the order of u cond sqrt(n) = 5e-3 for the estimate. */
static void single_is_judged(void)
{
    frg_context *ctx = test_context();
    for (int trial = 0; trial < 60; trial++) {
        const int64_t n = 2 + (int64_t)(test_random() % (unsigned)(trial % 10 == 0 ? 260 : 60));
        float *const k = malloc((size_t)(n * n) * sizeof *k), *const r =
                                                                  malloc((size_t)n * sizeof *r);
        const double noise = pow(10, -1 - 5 * test_uniform()), length = 0.1 + test_uniform();
        for (int64_t i = 0; i < n; i++) {
            r[i] = (float)test_normal();
            for (int64_t j = 0; j < n; j++) {
                const double s = (double)(i - j) / ((double)n * length);
                k[i * n + j] = (float)(exp(-0.5 * s * s) + (i == j ? noise : 0));
            }
        }
        double single, exact;
        const frg_status status = likelihood(ctx, FRG_F32, n, k, r, &single);
        if (likelihood(ctx, FRG_F64, n, k, r, &exact) == FRG_OK) {
            const double error = fabs(single - exact), allowed = 1e-3 * (fabs(single) + 1);
            CHECK_SAYS(status != FRG_OK || error <= allowed, "n %lld: %g, allowed %g", (long long)n,
                       error, allowed);
            CHECK_SAYS(status == FRG_OK || noise < 0.05, "n %lld, noise %g: %s", (long long)n,
                       noise, frg_message(ctx));
        }
        free(k);
        free(r);
    }
    frg_context_destroy(ctx);
}

/** A value that is rounding alone is a warning, with its member; cond of Hilbert's matrix is 5e5 at
 *  order 5, 2e16 at 12. */
static void double_is_judged(void)
{
    for (int64_t n = 5; n <= 12; n += 7) {
        frg_context *ctx = test_context();
        double k[2 * 144] = {0}, r[12], iq[2], ld[2];
        for (int64_t i = 0; i < n; i++) {
            r[i] = 1;
            k[i * n + i] = 1;
            for (int64_t j = 0; j < n; j++)
                k[n * n + i * n + j] = 1 / (double)(i + j + 1);
        }
        CHECK_OK(ctx, frg_gp_invquad_logdet(
                          ctx, view(k, FRG_F64, 3, (int64_t[]){2, n, n}, (int64_t[]){n * n, n, 1}),
                          view(r, FRG_F64, 2, (int64_t[]){2, n}, (int64_t[]){0, 1}), iq, ld, NULL,
                          NULL));
        CHECK_INT(frg_warning_count(ctx), n == 12);
        if (n == 12) {
            CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-GP-108");
            CHECK(strstr(frg_warning_message(ctx, 0), "member 1 of the batch"));
        }
        frg_context_destroy(ctx);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int not_older_than_the_call(const frg_progress *p, void *called)
{
    CHECK_SAYS(p->seconds <= now() - *(const double *)called, "%g s", p->seconds);
    *(double *)called = HUGE_VAL; /* reported */
    return 0;
}

/** A call's time begins with the call: what passed since the last one is not in its progress or
 *  limit. */
static void own_time(void)
{
    double k[9], r[3] = {1, 2, 3}, x[9], iq, ld, called;
    posdef(k, 3);
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.on_progress = not_older_than_the_call;
    o.user = &called;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    const struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
    called = now();
    const frg_array xv = frg_matrix(x, FRG_F64, 3, 3, 3);
    CHECK_OK(ctx, frg_gp_invquad_logdet(ctx, frg_matrix(k, FRG_F64, 3, 3, 3),
                                        frg_vector(r, FRG_F64, 3), &iq, &ld, NULL, &xv));
    CHECK(called == HUGE_VAL);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"equicorrelated", equicorrelated},
    {"differences", differences},
    {"views", views},
    {"empty", empty},
    {"failures", failures},
    {"refusals", refusals},
    {"own time", own_time},
    {"hilbert in single", hilbert_in_single},
    {"single is judged", single_is_judged},
    {"double is judged", double_is_judged},
};
TEST_MAIN(cases)
