/* test_soap_fault.c - every allocation and file call of the batched QR and of the optimizer failed
 * in turn. */
#include <unistd.h>

#include "fault.h"
#include "fourge/soap.h"

enum { M = 9, N = 6, TALL = 8200 };

static frg_status qr_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const frg_qr_method *method = user;
    float a[M * N], q[M * N], r[N * N];
    double b[N * N];
    for (int i = 0; i < M * N; i++)
        a[i] = (float)((i * 37 + 11) % 23) - 11;
    for (int i = 0; i < N * N; i++)
        b[i] = (i * 29 + 5) % 17 - 8;
    static float tall[TALL * 2]; /* factored by blocks of rows */
    for (int i = 0; i < TALL * 2; i++)
        tall[i] = (float)((i * 41 + 3) % 31) - 15;
    const frg_array view = frg_matrix(b, FRG_F64, N, N, N);
    const frg_array column = frg_matrix(tall, FRG_F32, TALL, 2, 2);
    const frg_qr_item items[3] = {{.a = frg_matrix(a, FRG_F32, M, N, N),
                                   .q = frg_matrix(q, FRG_F32, M, N, N),
                                   .r = frg_matrix(r, FRG_F32, N, N, N)},
                                  {.a = view, .q = view},
                                  {.a = column, .q = column}};
    frg_qr_opts o;
    frg_qr_defaults(&o, sizeof o);
    o.method = *method;
    frg_qr *qr = (frg_qr *)a;
    frg_status s = frg_qr_create(&qr, ctx, 3, items, &o);
    if (s < 0) {
        CHECK(qr == NULL);
        return s;
    }
    s = frg_qr_run(qr, items, NULL, NULL);
    fault_hash(hash, q, sizeof q);
    fault_hash(hash, b, sizeof b);
    fault_hash(hash, tall, sizeof tall);
    frg_qr_destroy(qr);
    return s;
}

static void qr(void)
{
    frg_qr_method methods[] = {FRG_QR_AUTO, FRG_QR_CHOLESKY, FRG_QR_VENDOR};
    for (int i = 0; i < 3; i++)
        CHECK(fault_sweep("qr", qr_body, &methods[i], test_now.threads) > 1);
}

typedef struct {
    const char *path; /* NULL: no files */
    int frequency, warmup, eigh, async;
} job;

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const job *j = user;
    float w[M * N], v[5], g[M * N], h[5];
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, j->async ? FRG_SOAP_NIKHILVYAS : FRG_SOAP_EMERGING);
    o.refresh_async = j->async;
    o.precondition_frequency = j->frequency;
    o.adam_warmup_steps = j->warmup;
    o.use_eigh = j->eigh;
    for (int i = 0; i < M * N; i++)
        w[i] = (float)(i % 7);
    for (int i = 0; i < 5; i++)
        v[i] = (float)i;
    frg_soap *soap = (frg_soap *)w;
    frg_status s = frg_soap_create(&soap, ctx, &o);
    if (s < 0) {
        CHECK(soap == NULL);
        return s;
    }
    s = frg_soap_add_param(soap, 0, frg_matrix(w, FRG_F32, M, N, N), "w", NULL);
    if (s >= 0)
        s = frg_soap_add_group(soap, &o, NULL);
    if (s >= 0)
        s = frg_soap_add_param(soap, 1, frg_vector(v, FRG_F32, 5), NULL, NULL);
    frg_soap_size size;
    if (s >= 0)
        s = frg_soap_estimate(soap, &size);
    if (s >= 0)
        s = frg_soap_prepare(soap);
    const frg_array grads[2] = {frg_matrix(g, FRG_F32, M, N, N), frg_vector(h, FRG_F32, 5)};
    for (int t = 0; t < 4 && s >= 0; t++) {
        float before[M * N];
        memcpy(before, w, sizeof w);
        for (int i = 0; i < M * N; i++)
            g[i] = (float)((i * 13 + t * 5) % 19) - 9;
        for (int i = 0; i < 5; i++)
            h[i] = (float)((i * 3 + t) % 5) - 2;
        s = frg_soap_step(soap, grads, 2, NULL);
        if (s < 0)
            CHECK_BITS(w, before, sizeof w);
    }
    if (s >= 0 && j->path) {
        s = frg_soap_save(soap, j->path);
        if (s >= 0)
            s = frg_soap_load(soap, j->path);
        if (s >= 0)
            s = frg_soap_export(soap, j->path, FRG_LAYOUT_EMERGING);
        if (s >= 0)
            s = frg_soap_import(soap, j->path, FRG_LAYOUT_EMERGING);
    }
    if (s >= 0) {
        char state[4096];
        int64_t count = 0;
        s = frg_soap_save_param(soap, 0, state, sizeof state, &count);
        if (s >= 0)
            s = frg_soap_load_param(soap, 0, state, count, NULL);
    }
    if (s >= 0) {
        float q[N * N];
        s = frg_soap_state_get(soap, 0, "Q.1", frg_matrix(q, FRG_F32, N, N, N));
        fault_hash(hash, q, sizeof q);
        fault_hash(hash, w, sizeof w);
        fault_hash(hash, v, sizeof v);
    }
    frg_soap_destroy(soap);
    return s;
}

static void soap(void)
{
    job jobs[] = {{NULL, 1, 0, 0, 0}, {NULL, 3, 2, 0, 0}, {NULL, 1, 0, 1, 0}, {NULL, 1, 0, 0, 1}};
    for (int i = 0; i < 4; i++)
        CHECK(fault_sweep("soap", body, &jobs[i], test_now.threads) > 1);
}

static void files(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/fourge_soap_fault_%d", (int)getpid());
    job j = {path, 1, 0, 0, 0};
    fault_sweep_files("soap", body, &j);
    CHECK(fault_sweep("soap state", body, &j, 1) > 1);
    remove(path);
}

static const test_case cases[] = {{"qr", qr}, {"soap", soap}, {"files", files}};
TEST_MAIN(cases)
