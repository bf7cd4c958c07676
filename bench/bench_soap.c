/* bench_soap.c - times the batched QR beside a loop of LAPACK: bench_soap --job qr [--threads N]
 * [--repeat N] and a step over one parameter, which all threads share: bench_soap --job one [--rows
 * N] [--columns N] and what share of sgemm's speed one core has in the QR and in a step: bench_soap
 * --job share [--order N]
 *
 * Batches of the optimizer's sizes (64 of order 256, 96 of 512, 60 of 1024, f32), by default;
 * --count and --order name one.  Three kinds of inputs:
 *
 *     cold      Gaussian entries
 *     flat      K Q after ten steps of the optimizer's own iteration, K the average of N N', N
 *               Gaussian
 *     power     the same with N -> diag(1/i) N
 *
 * and two tall matrices, cold: --job tall.
 *
 * The peer is OpenBLAS' sgeqrf and sorgqr, matrix after matrix, given all threads.  Both sides
 * start from the same columns and leave Q; orthogonality of every Q of both sides is computed in
 * the timed repetitions' results before a time is printed.  One JSON line a case; a line's seconds
 * are medians of interleaved runs.  The whole step is timed by `fourge soap bench`. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fourge/soap.h"

#include "bench.h"

extern void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *,
                   const float *, const int *, const float *, const int *, const float *, float *,
                   const int *);
extern void sgeqrf_(const int *, const int *, float *, const int *, float *, float *, const int *,
                    int *);
extern void sorgqr_(const int *, const int *, const int *, float *, const int *, const float *,
                    float *, const int *, int *);

enum { REPEATS_MOST = 100, DISTINCT = 3, STEPS = 10 };

static uint64_t random_state = 1;

static double uniform(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static float normal(void)
{
    return (float)(sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()));
}

static float *array(size_t n)
{
    float *const x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
    if (!x) {
        fprintf(stderr, "bench_soap: out of memory\n");
        exit(1);
    }
    return x;
}

static void gemm(char ta, char tb, int n, float alpha, const float *a, const float *b, float beta,
                 float *c)
{
    sgemm_(&ta, &tb, &n, &n, &n, &alpha, a, &n, b, &n, &beta, c, &n);
}

static void fail(frg_context *ctx, const char *what)
{
    fprintf(stderr, "bench_soap: %s: %s\n", what, frg_message(ctx));
    exit(1);
}

static void factor_one(frg_context *ctx, int n, float *a)
{
    frg_qr *qr;
    const frg_array view = frg_matrix_columns(a, FRG_F32, n, n, n);
    const frg_qr_item item = {.a = view, .q = view};
    if (frg_qr_create(&qr, ctx, 1, &item, NULL) < 0 || frg_qr_run(qr, &item, NULL, NULL) < 0) {
        fail(ctx, "qr");
    }
    frg_qr_destroy(qr);
}

/** a <- what the refresh of step STEPS factors. */
static void warm_input(frg_context *ctx, int n, int power, float *a)
{
    const size_t square = (size_t)n * (size_t)n;
    float *const g = array(square), *const k = array(square), *const q = array(square);
    memset(k, 0, square * sizeof *k);
    for (int t = 1; t <= STEPS; t++) {
        for (size_t i = 0; i < square; i++) {
            g[i] = normal() / (power ? (float)(i % (size_t)n + 1) : 1);
        }
        const double beta = 1 - 0.05 / (1 - pow(0.95, t));
        gemm('N', 'T', n, (float)(1 - beta), g, g, (float)beta, k);
        if (t == 1) {
            memcpy(q, k, square * sizeof *q);
        } else {
            gemm('N', 'N', n, 1, k, q, 0, a);
            memcpy(q, a, square * sizeof *q);
        }
        if (t < STEPS) {
            factor_one(ctx, n, q);
        }
    }
    free(g);
    free(k);
    free(q);
}

static double worst_orthogonality(int m, int n, const float *q, float *gram)
{
    const float one = 1, none = 0;
    double worst = 0;
    sgemm_("T", "N", &n, &n, &m, &one, q, &m, q, &m, &none, gram, &n);
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < n; i++) {
            const double e = fabs((double)gram[(size_t)j * (size_t)n + (size_t)i] - (i == j));
            worst = e <= worst ? worst : e;
        }
    }
    return worst;
}

/** m > n with cold inputs alone. */
static void bench(frg_context *ctx, int count, int m, int n, const char *kind, int repeats)
{
    const size_t square = (size_t)m * (size_t)n;
    float *const in = array(square * DISTINCT), *const a = array(square * (size_t)count);
    float *const q = array(square * (size_t)count), *const tau = array((size_t)n);
    float *const work = array((size_t)n * 256);
    frg_qr_item *const items = calloc((size_t)count, sizeof *items);
    double ours[REPEATS_MOST], theirs[REPEATS_MOST], errors[2] = {0};
    frg_qr *qr;
    for (int i = 0; i < DISTINCT; i++) {
        if (strcmp(kind, "cold") == 0) {
            for (size_t k = 0; k < square; k++) {
                in[(size_t)i * square + k] = normal();
            }
        } else {
            warm_input(ctx, n, strcmp(kind, "power") == 0, in + (size_t)i * square);
        }
    }
    for (int i = 0; i < count; i++) {
        memcpy(a + (size_t)i * square, in + (size_t)(i % DISTINCT) * square, square * sizeof *a);
        items[i].a = frg_matrix_columns(a + (size_t)i * square, FRG_F32, m, n, m);
        items[i].q = frg_matrix_columns(q + (size_t)i * square, FRG_F32, m, n, m);
    }
    if (frg_qr_create(&qr, ctx, count, items, NULL) < 0) {
        fail(ctx, "plan");
    }
    for (int r = -1; r < repeats; r++) { /* -1 warms up */
        double start = bench_now();
        if (frg_qr_run(qr, items, NULL, NULL) < 0) {
            fail(ctx, "run");
        }
        const double mine = bench_now() - start;
        for (int i = 0; i < count; i++) {
            errors[0] = fmax(errors[0], worst_orthogonality(m, n, q + (size_t)i * square, in));
        }
        memcpy(q, a, square * (size_t)count * sizeof *q);
        start = bench_now();
        for (int i = 0; i < count; i++) {
            const int lwork = n * 256;
            int info;
            sgeqrf_(&m, &n, q + (size_t)i * square, &m, tau, work, &lwork, &info);
            sorgqr_(&m, &n, &n, q + (size_t)i * square, &m, tau, work, &lwork, &info);
        }
        const double other = bench_now() - start;
        for (int i = 0; i < count; i++) {
            errors[1] = fmax(errors[1], worst_orthogonality(m, n, q + (size_t)i * square, in));
        }
        if (r >= 0) {
            ours[r] = mine;
            theirs[r] = other;
        }
    }
    bench_sort(ours, repeats);
    bench_sort(theirs, repeats);
    printf(
        "{\"bench\":\"qr\",\"count\":%d,\"rows\":%d,\"order\":%d,\"inputs\":\"%s\",\"threads\":%d,"
        "\"seconds\":%.5f,\"openblas_seconds\":%.5f,\"ratio\":%.2f,\"orthogonality\":%.1e,"
        "\"openblas_orthogonality\":%.1e,\"repeats\":%d}\n",
        count, m, n, kind, frg_threads(ctx), ours[repeats / 2], theirs[repeats / 2],
        theirs[repeats / 2] / ours[repeats / 2], errors[0], errors[1], repeats);
    fflush(stdout);
    frg_qr_destroy(qr);
    free(in);
    free(a);
    free(q);
    free(tau);
    free(work);
    free(items);
}

/** A step over one rows x columns parameter with Gaussian gradients, after two to warm up. */
static void bench_one(frg_context *ctx, int64_t rows, int64_t columns, int repeats)
{
    const size_t count = (size_t)(rows * columns);
    float *const w = array(count), *const g = array(count);
    double seconds[REPEATS_MOST], error = 0;
    frg_soap *soap;
    memset(w, 0, count * sizeof *w);
    if (frg_soap_create(&soap, ctx, NULL) < 0 ||
        frg_soap_add_param(soap, 0, frg_matrix(w, FRG_F32, rows, columns, columns), NULL, NULL) <
            0) {
        fail(ctx, "optimizer");
    }
    for (int r = -2; r < repeats; r++) {
        for (size_t i = 0; i < count; i++) {
            g[i] = 1e-3f * normal();
        }
        const frg_array gradient = frg_matrix(g, FRG_F32, rows, columns, columns);
        frg_soap_report report;
        if (frg_soap_step(soap, &gradient, 1, &report) < 0) {
            fail(ctx, "step");
        }
        error = fmax(error, report.orthogonality);
        seconds[r < 0 ? 0 : r] = report.seconds;
    }
    bench_sort(seconds, repeats);
    printf("{\"bench\":\"soap_one\",\"rows\":%d,\"columns\":%d,\"threads\":%d,\"seconds\":%.4f,"
           "\"largest_probe_error\":%.1e,\"repeats\":%d}\n",
           (int)rows, (int)columns, frg_threads(ctx), seconds[repeats / 2], error, repeats);
    frg_soap_destroy(soap);
    free(w);
    free(g);
}

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Speeds of one core by CPU time, which neighbours disturb least, in turns, best of the
 *  repetitions: sgemm of order n, the QR with its Q (8/3 n^3), a step with a refresh over an n x n
 *  parameter (7 n^3 2 + 14/3 n^3 2).  OMP_NUM_THREADS=1 holds sgemm to one core. */
static void bench_share(frg_context *ctx, int n, int repeats)
{
    const size_t square = (size_t)n * (size_t)n;
    float *const a = array(square), *const b = array(square), *const c = array(square);
    float *const gram = array(square);
    const double cube = (double)n * (double)n * (double)n;
    const double flops[3] = {2 * cube, 8 * cube / 3, 70 * cube / 3};
    double best[3] = {INFINITY, INFINITY, INFINITY}, error = 0;
    frg_soap *soap;
    frg_qr *qr;
    const frg_array w = frg_matrix(c, FRG_F32, n, n, n);
    const frg_qr_item item = {.a = frg_matrix_columns(a, FRG_F32, n, n, n),
                              .q = frg_matrix_columns(b, FRG_F32, n, n, n)};
    memset(c, 0, square * sizeof *c);
    if (frg_qr_create(&qr, ctx, 1, &item, NULL) < 0 || frg_soap_create(&soap, ctx, NULL) < 0 ||
        frg_soap_add_param(soap, 0, w, NULL, NULL) < 0) {
        fail(ctx, "share");
    }
    for (int r = -2; r < repeats; r++) { /* below 0 it warms up and makes the first bases */
        double seconds[3];
        frg_soap_report report;
        const frg_array gradient = frg_matrix(a, FRG_F32, n, n, n);
        for (size_t i = 0; i < square; i++) {
            a[i] = 1e-3f * normal();
        }
        double start = cpu_now();
        if (frg_soap_step(soap, &gradient, 1, &report) < 0) {
            fail(ctx, "step");
        }
        seconds[2] = cpu_now() - start;
        start = cpu_now();
        if (frg_qr_run(qr, &item, NULL, NULL) < 0) {
            fail(ctx, "run");
        }
        seconds[1] = cpu_now() - start;
        error = fmax(error, fmax(worst_orthogonality(n, n, b, gram), report.orthogonality));
        start = cpu_now();
        gemm('N', 'N', n, 1, a, b, 0, gram);
        seconds[0] = cpu_now() - start;
        for (int k = 0; k < 3 && r >= 0; k++) {
            best[k] = fmin(best[k], seconds[k]);
        }
    }
    const char *const core = getenv("OPENBLAS_CORETYPE");
    printf("{\"bench\":\"soap_share\",\"order\":%d,\"isa\":\"%s\",\"openblas_coretype\":\"%s\","
           "\"sgemm_gflops\":%.1f,\"qr_gflops\":%.1f,\"step_gflops\":%.1f,\"qr_share\":%.2f,"
           "\"step_share\":%.2f,\"largest_error\":%.1e,\"clock\":\"cpu\",\"repeats\":%d}\n",
           n, frg_isa(ctx), core ? core : "", 1e-9 * flops[0] / best[0], 1e-9 * flops[1] / best[1],
           1e-9 * flops[2] / best[2], flops[1] / best[1] / (flops[0] / best[0]),
           flops[2] / best[2] / (flops[0] / best[0]), error, repeats);
    fflush(stdout);
    frg_qr_destroy(qr);
    frg_soap_destroy(soap);
    free(a);
    free(b);
    free(c);
    free(gram);
}

int main(int argc, char **argv)
{
    static const struct {
        int count, order;
    } batches[] = {{64, 256}, {96, 512}, {60, 1024}};
    static const char *const kinds[] = {"cold", "flat", "power"};
    static const int tall[][2] = {{100000, 64}, {20000, 256}};
    int repeats = 3, count = 0, order = 0, rows = 2048, columns = 512;
    const char *kind = NULL, *job = "qr";
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    for (int i = 1; i + 1 < argc; i += 2) {
        const int value = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--threads") == 0) {
            o.threads = value;
        } else if (strcmp(argv[i], "--repeat") == 0) {
            repeats = value < 1 ? 1 : value > REPEATS_MOST ? REPEATS_MOST : value;
        } else if (strcmp(argv[i], "--count") == 0) {
            count = value;
        } else if (strcmp(argv[i], "--order") == 0) {
            order = value;
        } else if (strcmp(argv[i], "--rows") == 0) {
            rows = value;
        } else if (strcmp(argv[i], "--columns") == 0) {
            columns = value;
        } else if (strcmp(argv[i], "--inputs") == 0) {
            kind = argv[i + 1];
        } else if (strcmp(argv[i], "--job") == 0) {
            job = argv[i + 1];
        }
    }
    const bool one = strcmp(job, "one") == 0, high = strcmp(job, "tall") == 0;
    const bool share = strcmp(job, "share") == 0;
    if (!one && !high && !share && strcmp(job, "qr") != 0) {
        fprintf(stderr, "bench_soap: --job %s: the jobs are qr, tall, one and share\n", job);
        return 2;
    }
    o.threads = share ? 1 : o.threads; /* by that thread's clock */
    frg_context *ctx;
    if (frg_context_create(&ctx, &o) < 0) {
        return 1;
    }
    if (one) {
        bench_one(ctx, rows, columns, repeats);
    }
    for (size_t b = 0; high && b < sizeof tall / sizeof *tall; b++) {
        bench(ctx, 1, tall[b][0], tall[b][1], kinds[0], repeats);
    }
    for (size_t b = 0; share && b < sizeof batches / sizeof *batches; b++) {
        if (!order || order == batches[b].order) {
            bench_share(ctx, batches[b].order, repeats);
        }
    }
    for (size_t b = one || high || share ? 3 : 0; b < sizeof batches / sizeof *batches; b++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if ((!order || order == batches[b].order) && (!kind || strcmp(kind, kinds[k]) == 0)) {
                bench(ctx, count ? count : batches[b].count, batches[b].order, batches[b].order,
                      kinds[k], repeats);
            }
        }
    }
    frg_context_destroy(ctx);
    return 0;
}
