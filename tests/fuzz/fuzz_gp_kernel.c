/* fuzz_gp_kernel.c - kernel expressions and priors from bytes: parsed, printed, parsed again, and
 * run over a few points.
 *
 * The first line is the expression, the rest (if any) the priors.  What is printed must be read
 * back and printed the same; a covariance over five points must be computed without a trap,
 * whatever the numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp/gp_kernel.h"

#include "fuzz.h"

enum { N = 5, D = 3, RUN_PARAMETERS = 200 };

static const char *const names[D] = {"time", "b.2", "x y"};

static void fill(const double *theta, int64_t m, const double *rows, int64_t n, const double *cols,
                 int64_t d, double *k, int64_t ld, void *user)
{
    (void)user;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            k[i + j * ld] = theta[0] + (d > 0 ? rows[i * d] * cols[j * d] : 0);
}

static void pull(const double *theta, int64_t m, const double *rows, int64_t n, const double *cols,
                 int64_t d, const double *w, int64_t ld, double *gradient, void *user)
{
    (void)rows;
    (void)cols;
    (void)d;
    (void)user;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            gradient[0] += w[i + j * ld] * theta[0];
}

static const double user_start[] = {1};
static const frg_gp_user_kernel user_kernel = {1, user_start, fill, pull, NULL};

static void *block(size_t bytes)
{
    void *const p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!p)
        abort();
    memset(p, 0, (bytes + 127) / 64 * 64);
    return p;
}

/** Covariance, gradient and input gradient over N points. */
static void run(frg_context *ctx, const frgi_gp_kernel *k, frgi_gp_params *ps, const double *x,
                frg_dtype dtype)
{
    double theta[RUN_PARAMETERS], gradient[RUN_PARAMETERS], dx[N * D], trace;
    for (int i = 0; i < ps->count; i++)
        theta[i] = ps->p[i].value;
    double columns[N * D];
    for (int i = 0; i < N * D; i++) {
        if (dtype == FRG_F64)
            columns[i % D * N + i / D] = x[i];
        else
            ((float *)(void *)columns)[i % D * N + i / D] = (float)x[i];
    }
    const frgi_gp_points points = {.dtype = dtype, .n = N, .d = D, .ld = N, .x = columns, .raw = x};
    void *const memory = block(frgi_gp_bound_bytes(k, dtype, N, 1));
    void *const a = block(frgi_spd_bytes(N, dtype));
    const frgi_spd matrix = frgi_spd_place(N, dtype, a, NULL, "gp");
    const frgi_gp_bound *const b = frgi_gp_bind(ctx, k, theta, &points, memory, 1);
    const frgi_gp_pass pass = {.inverse = &matrix, .gradient = gradient, .dx = dx, .trace = &trace};
    if (frgi_gp_build(ctx, b, &matrix, NULL) < 0)
        abort();
    if (frgi_gp_run_pass(ctx, b, &pass) < 0 && strcmp(frg_error_code(ctx), "FRG-CORE-004") != 0)
        abort();
    free(a);
    free(memory);
}

static void print_again(frg_context *ctx, const frgi_gp_kernel *k, const frgi_gp_params *ps)
{
    frgi_text first = {0}, second = {0};
    frgi_gp_params twin;
    frgi_gp_kernel *again;
    frgi_gp_params_open(&twin, ctx);
    if (frgi_gp_kernel_print(k, ctx, ps, &first) < 0 ||
        frgi_gp_kernel_parse(&again, ctx, first.text, D, names, &user_kernel, &twin) < 0 ||
        frgi_gp_kernel_print(again, ctx, &twin, &second) < 0 ||
        strcmp(first.text, second.text) != 0)
        abort();
    frgi_gp_kernel_destroy(&again, ctx);
    frgi_gp_params_close(&twin);
    frgi_text_free(ctx, &first);
    frgi_text_free(ctx, &second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const double x[N * D] = {0, 1, 5, 1, 1, -3, 0, 1, 5, 2.5, 1, 0, 1e6, 1, 7},
                              y[N] = {1, 2, 0, 4, 3};
    frg_context *const ctx = fuzz_context(64 << 20);
    frgi_gp_params ps;
    frgi_gp_kernel *k;
    char *const text = malloc(size + 1);
    if (!text || !ctx)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    char *const line = strchr(text, '\n');
    if (line)
        *line = '\0';
    frgi_gp_params_open(&ps, ctx);
    if (frgi_gp_kernel_parse(&k, ctx, text, D, names, &user_kernel, &ps) >= 0) {
        print_again(ctx, k, &ps);
        if (frgi_gp_params_start(&ps, x, y, N, D, 1, (frg_gp_preset)(size % 4), FRG_F64) < 0)
            abort();
        print_again(ctx, k, &ps);
        double theta[RUN_PARAMETERS];
        for (int i = 0; i < ps.count && i < RUN_PARAMETERS; i++)
            theta[i] = ps.p[i].value;
        if (line && ps.count <= RUN_PARAMETERS && frgi_gp_params_priors(&ps, line + 1) >= 0)
            (void)frgi_gp_params_prior(&ps, theta, NULL, NULL);
        if (ps.count <= RUN_PARAMETERS)
            run(ctx, k, &ps, x, size % 8 < 4 ? FRG_F64 : FRG_F32);
        frgi_gp_kernel_destroy(&k, ctx);
    }
    frgi_gp_params_close(&ps);
    frg_context_destroy(ctx);
    free(text);
    return 0;
}
