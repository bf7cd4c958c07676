/* test_gp_dense_fault.c - every allocation of the dense core's public calls failed in turn. */
#include "fault.h"
#include "fourge/gp.h"

typedef struct {
    int64_t count, n;
    bool inverse;
} job;

static frg_array batch_view(double *data, int64_t count, int64_t n, int axes)
{
    frg_array v = {.data = data, .dtype = FRG_F64, .ndim = 1 + axes, .shape = {count, n, n}};
    v.stride[0] = axes == 2 ? n * n : n;
    v.stride[1] = axes == 2 ? n : 1;
    v.stride[2] = 1;
    return v;
}

static frg_status invquad(frg_context *ctx, void *user, uint64_t *hash)
{
    const job *j = user;
    const size_t count = (size_t)j->count, n = (size_t)j->n;
    double *const k = calloc(count * n * n, sizeof *k), *const r = calloc(count * n, sizeof *r);
    double *const a = calloc(count * n, sizeof *a), *const x = calloc(count * n * n, sizeof *x);
    double *const iq = calloc(count, sizeof *iq), *const ld = calloc(count, sizeof *ld);
    for (size_t m = 0; m < count; m++) {
        for (size_t i = 0; i < n; i++) {
            r[m * n + i] = (double)(i + m);
            for (size_t l = 0; l < n; l++)
                k[(m * n + i) * n + l] = i == l ? 2 : 1 / (double)(n + m);
        }
    }
    const frg_array av = batch_view(a, j->count, j->n, 1), xv = batch_view(x, j->count, j->n, 2);
    frg_status s = frg_gp_invquad_logdet(ctx, batch_view(k, j->count, j->n, 2),
                                         batch_view(r, j->count, j->n, 1), iq, ld, &av,
                                         j->inverse ? &xv : NULL);
    for (size_t i = 0; i < count * n && s < 0; i++)
        CHECK(a[i] == 0 && x[i] == 0);
    if (s >= 0) {
        fault_hash(hash, a, count * n * sizeof *a);
        fault_hash(hash, iq, count * sizeof *iq);
        s = frg_gp_invquad_logdet_backward(ctx, &xv, av, iq, j->inverse ? ld : NULL, &xv, NULL);
        fault_hash(hash, x, count * n * n * sizeof *x);
    }
    free(k);
    free(r);
    free(a);
    free(x);
    free(iq);
    free(ld);
    return s;
}

static void dense(void)
{
    job jobs[] = {{1, 30, true}, {1, 230, true}, {7, 12, true}, {7, 12, false}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        const int64_t k = fault_sweep("invquad", invquad, &jobs[i], test_now.threads);
        CHECK_SAYS(k > 1, "only %" PRId64 " allocations were seen", k);
    }
}

/** A batch: a refused allocation fails the call or its member, never a neighbour. */
static frg_status batch(frg_context *ctx, void *user, uint64_t *hash)
{
    enum { COUNT = 6, N = 9, DIMS = 2, PARAMETERS = 4 };
    double x[COUNT][N * DIMS], y[COUNT][N], gradient[COUNT][PARAMETERS] = {{0}},
                                            fitted[COUNT][PARAMETERS] = {{0}};
    frg_gp_member m[COUNT];
    for (int k = 0; k < COUNT; k++) {
        for (int i = 0; i < N; i++) {
            y[k][i] = sin(i + 0.3 * k);
            x[k][DIMS * i] = 0.1 * i;
            x[k][DIMS * i + 1] = cos(i * (k + 1.0));
        }
        m[k] = (frg_gp_member){.x = frg_matrix(x[k], FRG_F64, N, DIMS, DIMS),
                               .y = frg_vector(y[k], FRG_F64, N),
                               .gradient = gradient[k],
                               .fitted = fitted[k]};
    }
    frg_gp_fit_opts fit;
    frg_gp_fit_defaults(&fit, sizeof fit);
    fit.optimizer = FRG_GP_ADAM;
    fit.max_iter = 3;
    frg_status s = *(const bool *)user
                       ? frg_gp_batch_fit(ctx, COUNT, m, "scale*rbf + noise", NULL, &fit)
                       : frg_gp_batch_eval(ctx, COUNT, m, "scale*rbf + noise", NULL);
    for (int k = 0; k < COUNT && s >= 0; k++) {
        if (m[k].status < 0)
            s = m[k].status;
    }
    if (s >= 0) {
        fault_hash(hash, gradient, sizeof gradient);
        fault_hash(hash, fitted, sizeof fitted);
    }
    return s < 0 ? s : FRG_OK;
}

static void batches(void)
{
    bool fit[] = {false, true};
    for (int i = 0; i < 2; i++) {
        const int64_t k =
            fault_sweep(i ? "batch_fit" : "batch_eval", batch, &fit[i], test_now.threads);
        CHECK_SAYS(k > 1, "only %" PRId64 " allocations were seen", k);
    }
}

static const test_case cases[] = {{"dense", dense}, {"batches", batches}};
TEST_MAIN(cases)
