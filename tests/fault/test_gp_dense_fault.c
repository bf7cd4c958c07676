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
    frg_status s = frg_gp_invquad_logdet(ctx, batch_view(k, j->count, j->n, 2), batch_view(r, j->count, j->n, 1), iq,
                                         ld, &av, j->inverse ? &xv : NULL);
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

static const test_case cases[] = {{"dense", dense}};
TEST_MAIN(cases)
