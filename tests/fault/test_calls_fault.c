/* test_calls_fault.c - failing memory in the public calls that no other sweep makes: what is read
 * of plans, energies, ways to distances, graphs from rows, measures and estimates, groups,
 * predictions and tests of regressions, parameters and folds of processes, groups and states of the
 * optimizer. */
#include "fault.h"
#include "fourge/fe.h"
#include "fourge/gp.h"
#include "fourge/gw.h"
#include "fourge/soap.h"

enum { N = 30, M = 26 };
static double X[N * 3], Y[M * 3], C[N * N], D[M * M];
static void dist(const double *x, int n, double *c)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = 0;
            for (int k = 0; k < 3; k++)
                s += (x[3 * i + k] - x[3 * j + k]) * (x[3 * i + k] - x[3 * j + k]);
            c[i * n + j] = sqrt(s);
        }
}

/** The points are those of the case, whatever ran before it. */
static void fill(void)
{
    for (int i = 0; i < N * 3; i++)
        X[i] = test_normal();
    for (int i = 0; i < M * 3; i++)
        Y[i] = test_normal();
    dist(X, N, C);
    dist(Y, M, D);
}

static frg_status plans(frg_context *ctx, void *u, uint64_t *h)
{
    (void)u;
    static double cost[N * M];
    for (int i = 0; i < N * M; i++)
        cost[i] = fabs(C[i % (N * N)]);
    frg_sinkhorn *s = NULL;
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.max_iter = 20;
    o.tol = 0;
    frg_status st =
        frg_sinkhorn_create(&s, ctx, frg_matrix(cost, FRG_F64, N, M, M), NULL, NULL, &o);
    double f[N] = {0}, g[M] = {0};
    int64_t idx[N * 3], starts[N + 1];
    double val[N * 3];
    int32_t lab[M], out[N], cols[N * M];
    double share[N], vals[N * M];
    for (int i = 0; i < M; i++)
        lab[i] = i % 3;
    if (st >= 0)
        st = frg_sinkhorn_start(s, f, g);
    if (st >= 0)
        st = frg_sinkhorn_run(s, NULL);
    const frg_plan *p = st >= 0 ? frg_sinkhorn_plan(s) : NULL;
    frg_status q = st;
    if (st >= 0)
        q = frg_plan_top(p, 3, idx, val);
    if (q >= 0)
        fault_hash(h, idx, sizeof idx), fault_hash(h, val, sizeof val);
    if (q >= 0)
        q = frg_plan_labels(p, lab, 3, out, share);
    if (q >= 0)
        fault_hash(h, out, sizeof out), fault_hash(h, share, sizeof share);
    if (q >= 0)
        q = frg_plan_sparse(p, 1e-4, starts, NULL, NULL);
    if (q >= 0)
        q = frg_plan_sparse(p, 1e-4, starts, cols, vals);
    if (q >= 0)
        fault_hash(h, starts, sizeof starts), fault_hash(h, vals, (size_t)starts[N] * 8);
    if (q >= 0)
        q = frg_sinkhorn_potentials(s, f, g);
    if (q >= 0)
        fault_hash(h, f, sizeof f);
    frg_sinkhorn_destroy(s);
    return q < 0 ? q : st;
}

static frg_status energies(frg_context *ctx, void *u, uint64_t *h)
{
    (void)u;
    static double P[N * M];
    double e[3];
    for (int i = 0; i < N * M; i++)
        P[i] = 1.0 / (N * M);
    frg_array c = frg_matrix(C, FRG_F64, N, N, N), d = frg_matrix(D, FRG_F64, M, M, M),
              p = frg_matrix(P, FRG_F64, N, M, M);
    frg_array ct = frg_matrix_columns(C, FRG_F64, N, N, N);
    frg_status s = frg_gw_energy(ctx, c, d, p, &e[0]);
    if (s >= 0)
        s = frg_gw_energy(ctx, ct, d, p, &e[1]);
    double a[N], b[M];
    for (int i = 0; i < N; i++)
        a[i] = 1.0 / N;
    for (int i = 0; i < M; i++)
        b[i] = 1.0 / M;
    if (s >= 0)
        s = frg_gw_lower_bound(ctx, c, a, d, b, &e[2]);
    if (s >= 0)
        fault_hash(h, e, sizeof e);
    static double Q[N * N], f[N], g[N];
    if (s >= 0)
        s = frg_emd(ctx, frg_matrix(C, FRG_F64, N, M, N), a, b, p, f, g, NULL); /* a transport */
    if (s >= 0)
        /* an assignment */
        s = frg_emd(ctx, c, NULL, NULL, frg_matrix(Q, FRG_F64, N, N, N), f, g, NULL);
    if (s >= 0) {
        fault_hash(h, P, sizeof P);
        fault_hash(h, Q, sizeof Q);
    }
    return s;
}

static frg_status alignment(frg_context *ctx, void *u, uint64_t *h)
{
    const int mode = *(int *)u;
    frg_gw *g = NULL;
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.k = 5;
    o.max_iter = 4;
    o.min_iter = 2;
    o.anchors = mode == 1 ? o.anchors : 9; /* refused where none are drawn */
    o.epsilon = .02;
    o.polish_passes = 5;
    if (mode == 1)
        o.mode = FRG_GW_LANDMARK, o.landmarks = 6, o.distance = FRG_GW_DISTANCE_LANDMARK;
    if (mode == 2)
        o.distance = FRG_GW_DISTANCE_DIJKSTRA, o.cache_rows = 7;
    if (mode == 3)
        o.distance = FRG_GW_DISTANCE_EUCLIDEAN, o.lazy = 0, o.store_plan = 1, o.diag_exact = 1;
    if (mode == 4)
        o.distance = FRG_GW_DISTANCE_PRECOMPUTED, o.lazy = 1;
    if (mode == 5)
        o.multiscale = FRG_GW_MULTISCALE_ON, o.n_coarse = 10;
    frg_array x = frg_matrix(X, FRG_F64, N, 3, 3), y = frg_matrix(Y, FRG_F64, M, 3, 3);
    frg_status s =
        frg_gw_create(&g, ctx, (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y}, NULL, &o);
    static double P[N * M], out[N * N], f[N], gg[M];
    for (int i = 0; i < N * M; i++)
        P[i] = 1.0 / (N * M);
    if (s >= 0)
        s = frg_gw_start_plan(g, frg_matrix(P, FRG_F64, N, M, M));
    if (s >= 0)
        s = frg_gw_run(g, NULL);
    frg_status q = s;
    if (q >= 0)
        q = frg_gw_distances(g, 0, frg_matrix(out, FRG_F64, N, N, N));
    if (q >= 0)
        fault_hash(h, out, sizeof out);
    if (q >= 0)
        q = frg_gw_potentials(g, f, gg);
    if (q >= 0)
        fault_hash(h, f, sizeof f), fault_hash(h, gg, sizeof gg);
    frg_gw_destroy(g);
    return q < 0 ? q : s;
}

static frg_status graphs(frg_context *ctx, void *u, uint64_t *h)
{
    (void)u;
    int32_t st[5] = {0, 2, 3, 4, 4};
    int64_t tg[4] = {1, 2, 2, 3};
    float w[4] = {1, 2, 3, 1};
    frg_graph *g = NULL;
    frg_array wa = frg_vector(w, FRG_F32, 4);
    frg_status s =
        frg_graph_csr(&g, ctx, frg_vector(st, FRG_I32, 5), frg_vector(tg, FRG_I64, 4), &wa, 0);
    if (s >= 0) {
        frg_graph_report r = frg_graph_get(g);
        fault_hash(h, &r.arcs, 8);
        int64_t nodes[3];
        double o[12];
        int64_t found;
        s = frg_graph_landmarks(g, 3, nodes, frg_matrix(o, FRG_F64, 4, 3, 3), &found);
        if (s >= 0)
            fault_hash(h, o, sizeof o);
    }
    frg_graph_destroy(g);
    return s;
}

static frg_status regression(frg_context *ctx, void *u, uint64_t *h)
{
    (void)u;
    enum { n = 60 };
    static double y[n], x[n];
    static int32_t c1[n], c2[n];
    static const char *l1[] = {"a", "b", "c", "d", "e"}, *l2[] = {"p", "q", "r"};
    for (int i = 0; i < n; i++) {
        y[i] = sin(i * 1.7);
        x[i] = cos(i * .9);
        c1[i] = i % 5;
        c2[i] = (i * 7 / 3) % 3;
    }
    frg_table *t = NULL;
    frg_status s = frg_table_create(&t, ctx, n);
    if (s >= 0)
        s = frg_table_add_numbers(t, "y", y);
    if (s >= 0)
        s = frg_table_add_numbers(t, "x", x);
    if (s >= 0)
        s = frg_table_add_codes(t, "f", c1, l1, 5);
    if (s >= 0)
        s = frg_table_add_codes(t, "g", c2, l2, 3);
    frg_fe_size z;
    memset(&z, 0, sizeof z);
    if (s >= 0)
        s = frg_fe_estimate(ctx, "y ~ x + i(g) + x:g | f + g[x]", t, NULL, &z);
    if (s >= 0)
        fault_hash(h, &z.n, 8), fault_hash(h, &z.n_columns, 8), fault_hash(h, &z.plan_bytes, 8);
    frg_fe *f = NULL;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.connected = FRG_CONNECTED_LARGEST;
    o.keep_effects = 1;
    o.subset = "x > -0.9";
    o.vcov[0] = "hc1";
    o.vcov[1] = "cluster=f+g";
    o.n_vcov = 2;
    if (s >= 0)
        s = frg_fe_fit(&f, ctx, "y ~ x + i(g) | f + g", t, &o);
    static int32_t grp[n];
    int64_t ng = 0, unseen = 0;
    static double pr[n], rs[n], ft[n];
    frg_status q = s;
    if (q >= 0)
        q = frg_fe_groups(f, grp, &ng);
    if (q >= 0)
        fault_hash(h, grp, sizeof grp);
    if (q >= 0)
        q = frg_fe_predict(f, t, pr, &unseen);
    if (q >= 0)
        fault_hash(h, pr, sizeof pr);
    if (q >= 0)
        q = frg_fe_residuals(f, rs, ft);
    if (q >= 0)
        fault_hash(h, rs, sizeof rs);
    const frg_fe_vcov *v = NULL;
    if (q >= 0)
        q = frg_fe_vcov_add(f, "cluster=g", "adj=false", &v);
    if (q >= 0)
        fault_hash(h, v->matrix, 8);
    if (q >= 0) {
        double R[8] = {1};
        frg_fe_test w;
        q = frg_fe_wald(f, &frg_fe_get(f)->vcov[0], R, NULL, 1, &w);
        if (q >= 0)
            fault_hash(h, &w.wald, 8);
    }
    frg_table *e = NULL;
    if (q >= 0)
        q = frg_fe_effects(f, &e);
    if (q >= 0)
        fault_hash(h, frg_table_column(e, 2)->numbers, 8);
    frg_table_destroy(e);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return q < 0 ? q : s;
}

static frg_status estimates(frg_context *ctx, void *u, uint64_t *h)
{
    (void)u;
    size_t a = 0, b = 0;
    double sec = 0;
    int64_t lev[2] = {5, 7};
    frg_demean_shape sh = {.n = 1000, .p = 3, .n_factors = 2, .levels = lev};
    frg_status s = frg_demean_estimate(ctx, &sh, NULL, &a, &b, &sec);
    if (s >= 0)
        fault_hash(h, &a, 8);
    if (s >= 0)
        s = frg_gp_estimate(ctx, 100, 3, 1, "scale*rbf(ard)+noise", NULL, &a);
    if (s >= 0)
        fault_hash(h, &a, 8);
    return s;
}

static frg_status process(frg_context *ctx, void *u, uint64_t *h)
{
    (void)u;
    frg_gp *gp = NULL;
    double y[N];
    for (int i = 0; i < N; i++)
        y[i] = sin(X[3 * i]) + .1 * X[3 * i + 1];
    frg_gp_opts o;
    frg_gp_defaults(&o, sizeof o);
    o.priors = "rbf.l=gamma(3,6)";
    frg_status s =
        frg_gp_create(&gp, ctx, frg_matrix(X, FRG_F64, N, 3, 3), frg_vector(y, FRG_F64, N),
                      "scale*rbf(ard) + 2*matern32(l=0.9) + noise", &o);
    if (s >= 0)
        s = frg_gp_update_tied(gp, 2, 1);
    if (s >= 0)
        s = frg_gp_update_fixed(gp, 0, 1);
    const frg_gp_change change = {"rbf.l", -1, 0.5, 0.1, 5};
    if (s >= 0)
        s = frg_gp_update_named(gp, &change, 1);
    double th[16];
    int k = s >= 0 ? frg_gp_parameter_count(gp) : 0;
    for (int i = 0; i < k && s >= 0; i++) {
        frg_gp_parameter p;
        s = frg_gp_get_parameter(gp, i, &p);
        th[i] = p.value;
    }
    if (s >= 0)
        s = frg_gp_update_parameters(gp, th);
    double m[N], va[N];
    frg_gp_loo loo;
    int32_t fold[N];
    for (int i = 0; i < N; i++)
        fold[i] = i % 4;
    double gr[16];
    if (s >= 0)
        s = frg_gp_eval_loo_latent(gp, va);
    if (s >= 0)
        fault_hash(h, va, sizeof va);
    if (s >= 0)
        s = frg_gp_eval_folds(gp, fold, m, va, gr, &loo);
    if (s >= 0)
        fault_hash(h, gr, (size_t)k * 8);
    double inf[256];
    if (s >= 0)
        s = frg_gp_eval_information(gp, inf);
    if (s >= 0)
        fault_hash(h, inf, (size_t)(k * k) * 8);
    if (s >= 0)
        s = frg_gp_update_remove(gp, 3);
    if (s >= 0)
        s = frg_gp_update_append(gp, frg_matrix(Y, FRG_F64, 2, 3, 3), frg_vector(y, FRG_F64, 2),
                                 NULL);
    frg_gp_value v;
    if (s >= 0)
        s = frg_gp_eval(gp, &v);
    if (s >= 0)
        fault_hash(h, &v.log_likelihood, 8);
    frg_gp_destroy(gp);
    return s;
}

static frg_status optimizer(frg_context *ctx, void *u, uint64_t *h)
{
    (void)u;
    static float w[12 * 8], g[12 * 8];
    for (int i = 0; i < 96; i++)
        w[i] = (float)sin(i), g[i] = (float)cos(i * i);
    frg_soap *so = NULL;
    frg_status s = frg_soap_create(&so, ctx, NULL);
    frg_soap_opts o;
    if (s >= 0)
        s = frg_soap_get_group(so, 0, &o, sizeof o);
    o.block_dim = 5;
    int grp;
    if (s >= 0)
        s = frg_soap_add_group(so, &o, &grp);
    int64_t id;
    if (s >= 0)
        s = frg_soap_add_param(so, grp, frg_matrix(w, FRG_F32, 12, 8, 8), NULL, &id);
    if (s >= 0) {
        o.lr = .1;
        s = frg_soap_set_group(so, grp, &o);
    }
    frg_array ga = frg_matrix(g, FRG_F32, 12, 8, 8);
    for (int k = 0; k < 2 && s >= 0; k++)
        s = frg_soap_step(so, &ga, 1, NULL);
    int64_t count = 0;
    if (s >= 0)
        s = frg_soap_save_bytes(so, NULL, 0, &count);
    char *buf = malloc((size_t)count + 1);
    if (s >= 0)
        s = frg_soap_save_bytes(so, buf, count, &count);
    if (s >= 0)
        s = frg_soap_load_bytes(so, buf, count, "x");
    frg_array shp;
    if (s >= 0)
        s = frg_soap_state_shape(so, id, "exp_avg", &shp);
    float ea[96];
    if (s >= 0)
        s = frg_soap_state_get(so, id, "exp_avg", frg_matrix(ea, FRG_F32, 12, 8, 8));
    if (s >= 0)
        s = frg_soap_state_set(so, id, "exp_avg", frg_matrix(ea, FRG_F32, 12, 8, 8));
    frg_soap_view vw;
    if (s >= 0)
        s = frg_soap_state_view(so, id, "Q.0.0", &vw);
    if (s >= 0)
        s = frg_soap_step(so, &ga, 1, NULL);
    if (s >= 0)
        s = frg_soap_save_param(so, id, NULL, 0, &count);
    if (s >= 0)
        s = frg_soap_reset(so, id);
    if (s >= 0)
        fault_hash(h, w, sizeof w);
    free(buf);
    frg_soap_destroy(so);
    return s;
}

static void sweep(const char *name, fault_body body, void *user, int threads)
{
    fill();
    CHECK(fault_sweep(name, body, user, threads) > 0);
}

static void sweep_plans(void)
{
    sweep("plans", plans, NULL, 1);
}

static void sweep_energies(void)
{
    sweep("energies", energies, NULL, 2);
}

static void sweep_alignments(void)
{
    for (int mode = 0; mode < 6; mode++)
        sweep("alignment", alignment, &mode, 1);
}

static void sweep_graphs(void)
{
    sweep("graphs", graphs, NULL, 1);
}

static void sweep_regression(void)
{
    sweep("regression", regression, NULL, 1);
}

static void sweep_estimates(void)
{
    sweep("estimates", estimates, NULL, 1);
}

static void sweep_process(void)
{
    sweep("process", process, NULL, 2);
}

static void sweep_optimizer(void)
{
    sweep("optimizer", optimizer, NULL, 1);
}

static const test_case cases[] = {{"plans", sweep_plans},           {"energies", sweep_energies},
                                  {"alignments", sweep_alignments}, {"graphs", sweep_graphs},
                                  {"regression", sweep_regression}, {"estimates", sweep_estimates},
                                  {"process", sweep_process},       {"optimizer", sweep_optimizer}};
TEST_MAIN(cases)
