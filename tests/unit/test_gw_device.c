#include "fourge/gw.h"
#include "test.h"
#include "gw/gw_sinkhorn.h"
static void quick(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev; CHECK_OK(ctx, frgi_device_open(&dev, ctx, (frg_device){FRG_CPU,0}));
    for (int how = 0; how < 9; how++) {
    int64_t n = 170, m = 301;
    double *c = malloc(n*m*8), *a = malloc(n*8), *b = malloc(m*8), *P = malloc(n*m*8), *Q = malloc(n*m*8); float *cf = malloc(n*m*4);
    for (int64_t i = 0; i < n*m; i++) { cf[i] = (float)test_uniform(); c[i] = how == 1 ? test_uniform() : (double)cf[i]; }
    double sa = 0, sb = 0;
    for (int64_t i = 0; i < n; i++) sa += a[i] = 0.2 + test_uniform();
    for (int64_t i = 0; i < m; i++) sb += b[i] = 0.2 + test_uniform();
    for (int64_t i = 0; i < n; i++) a[i] /= sa;
    for (int64_t i = 0; i < m; i++) b[i] /= sb;
    frg_sinkhorn_opts o; frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = how == 4 ? 0.001 : 0.05; o.tol = how == 4 ? 1e-5 : 1e-9; o.max_iter = 3000;
    if (how == 5) o.rho_source = 0.3;
    if (how == 6) { o.rho_source = 0.3; o.rho_target = 0.1; }
    if (how == 7) o.mass = 0.6;
    if (how == 8) { o.rho_target = 0.2; o.reference = FRG_GW_REFERENCE_PRODUCT; }
    frg_array cost = how == 1 ? frg_matrix(c, FRG_F64, n, m, m) : frg_matrix(cf, FRG_F32, n, m, m);
    frg_sinkhorn *s, *h;
    o.cost_store = FRG_GW_STORE_F64;
    CHECK_OK(ctx, frgi_sinkhorn_open(&h, ctx, (frgi_sinkhorn_place){NULL,0}, cost, a, b, &o));
    frg_status sh = frg_sinkhorn_run(h, NULL);
    o.cost_store = how == 2 ? FRG_GW_STORE_U16 : how == 3 ? FRG_GW_STORE_F64 : FRG_GW_STORE_AUTO;
    CHECK_OK(ctx, frgi_sinkhorn_open(&s, ctx, (frgi_sinkhorn_place){dev,0}, cost, a, b, &o));
    frg_status sd = frg_sinkhorn_run(s, NULL);
    if (sd < 0) printf("# %s\n", frg_message(ctx));
    frg_sinkhorn_report rh = frg_sinkhorn_get(h), rs = frg_sinkhorn_get(s);
    CHECK_OK(ctx, frg_plan_rows(frg_sinkhorn_plan(h), 0, n, frg_matrix(P, FRG_F64, n, m, m)));
    CHECK_OK(ctx, frg_plan_rows(frg_sinkhorn_plan(s), 0, n, frg_matrix(Q, FRG_F64, n, m, m)));
    double tv = 0; for (int64_t i = 0; i < n*m; i++) tv += fabs(P[i]-Q[i])/2;
    frg_plan_report ph = frg_plan_get(frg_sinkhorn_plan(h)), pd = frg_plan_get(frg_sinkhorn_plan(s));
    printf("# how %d host %d %lld %g %.12g | dev %d %lld %g %.12g  tv %g marg %g %g before %g %g mass %g %g\n", how, sh, (long long)rh.iterations, rh.marginal_error, rh.cost, sd, (long long)rs.iterations, rs.marginal_error, rs.cost, tv, pd.source_error, pd.target_error, ph.target_before, pd.target_before, ph.mass, pd.mass);
    frg_sinkhorn_destroy(s); frg_sinkhorn_destroy(h);
    free(c);free(a);free(b);free(P);free(Q);free(cf);
    }
    frgi_device_close(&dev); frg_context_destroy(ctx);
}
static const test_case cases[] = {{"quick", quick}};
TEST_MAIN(cases)
