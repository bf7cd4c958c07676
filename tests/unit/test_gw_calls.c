/* test_gw_calls.c - what the calls on an alignment and its plan refuse, with which status and word;
 * types of what they fill. */
#include "gw_data.h"

enum { N = 6, M = 5 };

static double x[N * 2], y[M * 3];

static frg_gw *aligned(frg_context *ctx, const frg_gw_opts *o, bool run)
{
    for (int i = 0; i < N * 2; i++)
        x[i] = (i * 7) % 11;
    for (int i = 0; i < M * 3; i++)
        y[i] = (i * 5) % 13;
    const frg_array a = matrix(x, N, 2), b = matrix(y, M, 3);
    frg_gw *s = NULL;
    CHECK_OK(ctx,
             frg_gw_create(&s, ctx, (frg_gw_side){.data = &a}, (frg_gw_side){.data = &b}, NULL, o));
    if (run)
        CHECK(s && frg_gw_run(s, NULL) >= 0);
    return s;
}

/** The call fails with the status, and its message has the word. */
#define REFUSES(ctx, call, status, word)                                                           \
    do {                                                                                           \
        CHECK_STATUS((call), (status));                                                            \
        CHECK_SAYS(strstr(frg_message(ctx), (word)) != NULL, "%s: '%s' lacks '%s'", #call,         \
                   frg_message(ctx), (word));                                                      \
    } while (0)

/** Options that exclude each other: the alignment is not made, and the message names both. */
static void options_apart(void)
{
    static const double relaxed = 1;
    frg_gw_opts o[9];
    static const char *const words[9] = {
        "mass together with relaxed", "modes exact and landmark",      "modes exact and landmark",
        "plans of low rank",          "start_from profiles",           "cost_store",
        "store_plan and diag_exact",  "landmark_metric other than l2", "lambda_ema_beta"};
    for (int k = 0; k < 9; k++)
        o[k] = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o[0].mass = 0.5, o[0].rho_source = relaxed;
    o[1].mode = FRG_GW_EXACT, o[1].mass = 0.5;
    o[2].mode = FRG_GW_EXACT, o[2].rho_target = relaxed;
    o[3].mode = FRG_GW_EXACT, o[3].rank = 2;
    o[4].start_from = FRG_GW_START_PROFILES, o[4].rho_source = relaxed;
    o[5].cost_store = FRG_GW_STORE_F64;
    o[6].mode = FRG_GW_EXACT, o[6].store_plan = 1;
    o[7].mode = FRG_GW_LANDMARK, o[7].distance = FRG_GW_DISTANCE_LANDMARK;
    o[7].landmark_metric = FRG_GW_LANDMARK_UPPER, o[7].landmarks = 3, o[7].k = 3;
    o[8].lambda_ema_beta = 2;
    frg_context *ctx = test_context();
    const frg_array a = matrix(x, N, 2), b = matrix(y, M, 3);
    for (int k = 0; k < 9; k++) {
        frg_gw *s = (frg_gw *)(void *)o; /* what stood there does not stay */
        const frg_status status = frg_gw_create(&s, ctx, (frg_gw_side){.data = &a},
                                                (frg_gw_side){.data = &b}, NULL, &o[k]);
        CHECK_SAYS(status == (k < 8 ? FRG_UNSUPPORTED : FRG_BAD_ARG), "%s: %s", words[k],
                   frg_status_name(status));
        CHECK_SAYS(strstr(frg_message(ctx), words[k]) != NULL, "'%s' lacks '%s'", frg_message(ctx),
                   words[k]);
        CHECK(s == NULL);
    }
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

/** Shapes, bounds and NULL of every call on a plan. */
static void plans(void)
{
    frg_context *ctx = test_context();
    const frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    frg_gw *s = aligned(ctx, &o, true);
    const frg_plan *const p = frg_gw_plan(s);
    double out[N * M], v[N * 2];
    float narrow[N * M];
    int64_t index[N * M], starts[N + 1];
    int32_t columns[N * M], labels[M] = {0, 1, 2, 3, 0}, brought[N];
    REFUSES(ctx, frg_plan_rows(p, -1, 2, matrix(out, 3, M)), FRG_BAD_ARG, "rows -1 to 2");
    REFUSES(ctx, frg_plan_rows(p, 3, 2, matrix(out, 1, M)), FRG_BAD_ARG, "rows 3 to 2");
    REFUSES(ctx, frg_plan_rows(p, 0, N + 1, matrix(out, N, M)), FRG_BAD_ARG, "with 6 rows");
    REFUSES(ctx, frg_plan_rows(p, 0, 2, matrix(out, 3, M)), FRG_BAD_ARG, "2 x 5 is needed");
    REFUSES(ctx, frg_plan_rows(p, 0, 2, matrix(out, 2, M - 1)), FRG_BAD_ARG, "2 x 5 is needed");
    CHECK_OK(ctx, frg_plan_rows(p, 0, N, matrix(out, N, M)));
    CHECK_OK(ctx, frg_plan_rows(p, 0, N, frg_matrix(narrow, FRG_F32, N, M, M)));
    for (int i = 0; i < N * M; i++)
        CHECK((double)narrow[i] == (double)(float)out[i]);
    REFUSES(ctx, frg_plan_top(p, 2, NULL, out), FRG_BAD_ARG, "index and value");
    REFUSES(ctx, frg_plan_top(p, 2, index, NULL), FRG_BAD_ARG, "index and value");
    REFUSES(ctx, frg_plan_argmax(p, NULL), FRG_BAD_ARG, "index");
    REFUSES(ctx, frg_plan_sparse(p, 0, NULL, NULL, NULL), FRG_BAD_ARG, "starts");
    REFUSES(ctx, frg_plan_sparse(p, 0, starts, columns, NULL), FRG_BAD_ARG, "columns");
    REFUSES(ctx, frg_plan_apply(p, matrix(y, M, 2), 0, matrix(v, N - 1, 2)), FRG_BAD_ARG,
            "rows are needed");
    REFUSES(ctx, frg_plan_apply(p, matrix(x, M - 1, 2), 0, matrix(v, N, 2)), FRG_BAD_ARG,
            "rows are needed");
    REFUSES(ctx, frg_plan_apply(p, matrix(y, M, 2), 0, matrix(v, N, 1)), FRG_BAD_ARG,
            "rows are needed");
    REFUSES(ctx, frg_plan_labels(p, labels, 3, brought, NULL), FRG_BAD_ARG,
            "labels[3] is 3, labels are below 3");
    REFUSES(ctx,
            frg_plan_vjp(p, matrix(out, N, M), (frg_gw_grad_mode)9, matrix(out, N, M), NULL, NULL),
            FRG_BAD_ARG, "mode is 9");
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
}

/** Distances come in both types and in the caller's units; before a run there is no plan to ask. */
static void solvers(void)
{
    frg_context *ctx = test_context();
    const frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    frg_gw *s = aligned(ctx, &o, false);
    double f[N], wide[N * N];
    float narrow[N * N];
    CHECK(frg_gw_plan(s) == NULL);
    REFUSES(ctx, frg_gw_potentials(s, f, NULL), FRG_BAD_ARG, "has not run");
    REFUSES(ctx, frg_gw_factors(s, f, f, f), FRG_BAD_ARG, "no plan of low rank");
    REFUSES(ctx, frg_gw_distances(s, 0, matrix(wide, N, N - 1)), FRG_BAD_ARG, "6 x 6 is needed");
    REFUSES(ctx, frg_gw_distances(s, 1, matrix(wide, N, N)), FRG_BAD_ARG, "5 x 5 is needed");
    CHECK_OK(ctx, frg_gw_distances(s, 0, matrix(wide, N, N)));
    CHECK_OK(ctx, frg_gw_distances(s, 0, frg_matrix(narrow, FRG_F32, N, N, N)));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            /* coordinates are whole numbers: each distance is a root rounded to f32, scaled and
             * back: two roundings more */
            CHECK_NEAR(wide[i * N + j], hypot(x[2 * i] - x[2 * j], x[2 * i + 1] - x[2 * j + 1]),
                       4 * 0x1p-24);
            CHECK((double)narrow[i * N + j] == (double)(float)wide[i * N + j]);
        }
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
}

/** Options of Sinkhorn's iteration, one at a time outside what it takes, and starts that are
 *  none. */
static void sinkhorn_options(void)
{
    enum { CASES = 15 };
    frg_sinkhorn_opts o[CASES];
    static const char *const words[CASES] = {
        "epsilon",   "epsilon",      "tol is",        "max_iter is", "rho_",
        "rho_",      "mass is",      "cost_store is", "domain",      "accel is",
        "reference", "kernel_store", "relaxed",       "mass in the", "cost_store fly"};
    for (int k = 0; k < CASES; k++)
        frg_sinkhorn_defaults(&o[k], sizeof o[k]);
    o[0].epsilon = 0;
    o[1].epsilon = (double)INFINITY;
    o[2].tol = (double)NAN;
    o[3].max_iter = 0;
    o[4].rho_source = 0;
    o[5].rho_target = -1;
    o[6].mass = -1;
    o[7].cost_store = (frg_gw_store)9;
    o[8].domain = (frg_gw_domain)9;
    o[9].accel = (frg_gw_accel)9;
    o[10].reference = (frg_gw_reference)9;
    o[11].kernel_store = (frg_gw_kernel_store)9;
    o[12].mass = 0.5, o[12].rho_target = 1;
    o[13].mass = 0.5, o[13].domain = FRG_GW_DOMAIN_KERNEL;
    o[14].domain = FRG_GW_DOMAIN_KERNEL, o[14].cost_store = FRG_GW_STORE_FLY;
    frg_context *ctx = test_context();
    double cost[N * M], f[N] = {0}, g[M] = {0};
    for (int i = 0; i < N * M; i++)
        cost[i] = (i * 7) % 11;
    for (int k = 0; k < CASES; k++) {
        frg_sinkhorn *s = NULL;
        REFUSES(ctx, frg_sinkhorn_create(&s, ctx, matrix(cost, N, M), NULL, NULL, &o[k]),
                k < 12 ? FRG_BAD_ARG : FRG_UNSUPPORTED, words[k]);
        CHECK(s == NULL);
    }
    frg_sinkhorn *s = NULL;
    CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, matrix(cost, N, M), NULL, NULL, NULL));
    CHECK(frg_sinkhorn_plan(s) == NULL);
    REFUSES(ctx, frg_sinkhorn_potentials(s, f, g), FRG_BAD_ARG, "has not run");
    f[2] = (double)NAN;
    REFUSES(ctx, frg_sinkhorn_start(s, f, g), FRG_BAD_ARG, "f is nan at 3");
    f[2] = 0;
    g[4] = (double)INFINITY;
    REFUSES(ctx, frg_sinkhorn_start(s, f, g), FRG_BAD_ARG, "g is inf at 5");
    g[4] = 0;
    CHECK_OK(ctx, frg_sinkhorn_start(s, f, g));
    frg_info info = {.status = FRG_BUG};
    const frg_status status = frg_sinkhorn_run(s, &info);
    CHECK(status >= 0 && info.status == status && info.peak_bytes > 0);
    CHECK(info.objective == frg_sinkhorn_get(s).cost);
    frg_sinkhorn_destroy(s);
    frg_context_destroy(ctx);
}

/** What stands in the way of transport without entropy, energies, barycenters and an alignment's
 *  run, in words of the arrays. */
static void arrays(void)
{
    frg_context *ctx = test_context();
    double c[N * N], d[M * M], plan[N * M], e = -1, uneven[N] = {1, 1, 1, 1, 1, 1};
    const double none[N] = {0};
    for (int i = 0; i < N * N; i++)
        c[i] = i % N == i / N ? 0 : 1;
    for (int i = 0; i < M * M; i++)
        d[i] = i % M == i / M ? 0 : 1;
    for (int i = 0; i < N * M; i++)
        plan[i] = 1.0 / (N * M);
    const frg_array cc = matrix(c, N, N), dd = matrix(d, M, M), pp = matrix(plan, N, M);
    REFUSES(ctx, frg_emd(ctx, pp, NULL, NULL, matrix(plan, M, N), NULL, NULL, NULL), FRG_BAD_ARG,
            "plan is 5 x 6, cost 6 x 5");
    REFUSES(ctx, frg_emd(ctx, pp, uneven, NULL, pp, NULL, NULL, NULL), FRG_BAD_DATA,
            "the source weights sum to 6, the target weights to 1");
    REFUSES(ctx, frg_emd(ctx, pp, none, NULL, pp, NULL, NULL, NULL), FRG_BAD_DATA,
            "source weights sums to 0");
    uneven[3] = -1;
    REFUSES(ctx, frg_emd(ctx, pp, uneven, NULL, pp, NULL, NULL, NULL), FRG_BAD_DATA,
            "a weight is -1");
    CHECK_TEXT(frg_error_where(ctx), "source weights, value 4");
    plan[7] = (double)NAN;
    REFUSES(ctx, frg_emd(ctx, pp, NULL, NULL, pp, NULL, NULL, NULL), FRG_BAD_DATA, "is nan");
    CHECK_TEXT(frg_error_where(ctx), "cost, row 2, column 3");
    REFUSES(ctx, frg_gw_energy(ctx, cc, dd, pp, &e), FRG_BAD_DATA, "is nan");
    plan[7] = plan[6];
    REFUSES(ctx, frg_gw_energy(ctx, cc, dd, pp, NULL), FRG_BAD_ARG, "energy is NULL");
    REFUSES(ctx, frg_gw_energy(ctx, pp, dd, pp, &e), FRG_BAD_ARG, "c is 6 x 5");
    REFUSES(ctx, frg_gw_energy(ctx, cc, pp, pp, &e), FRG_BAD_ARG, "d is 6 x 5");
    REFUSES(ctx, frg_gw_energy(ctx, dd, cc, pp, &e), FRG_BAD_ARG, "need 5 x 6");
    CHECK(e == -1);
    /* distances 0 or 1: 1 where one pair of points is the same and the other is not, 1/6 (1 -
     * 1/5) + 1/5 (1 - 1/6) of all */
    CHECK_OK(ctx, frg_gw_energy(ctx, cc, dd, pp, &e));
    CHECK_NEAR(e, 9.0 / 30, 1e-15);
    frg_barycenter_opts o;
    frg_barycenter_defaults(&o, sizeof o);
    REFUSES(ctx, frg_gw_barycenter(ctx, &cc, NULL, NULL, 1, NULL, NULL, &o, pp, NULL), FRG_BAD_ARG,
            "out is 6 x 5");
    REFUSES(ctx, frg_gw_barycenter(ctx, NULL, NULL, NULL, 1, NULL, NULL, &o, cc, NULL), FRG_BAD_ARG,
            "needs spaces");
    o.epsilon = 0;
    REFUSES(ctx, frg_gw_barycenter(ctx, &cc, NULL, NULL, 1, NULL, NULL, &o, dd, NULL), FRG_BAD_ARG,
            "epsilon is 0");
    frg_context_destroy(ctx);
}

/** Plans of low rank have no derivatives and no start without steps; the mode landmark takes
 *  distances of vectors alone; a mass of all there is is none; names of what is none. */
static void out_of_place(void)
{
    frg_context *ctx = test_context();
    double plan[N * M], out[N * M], f[N] = {0}, g[M] = {0};
    for (int i = 0; i < N * M; i++)
        plan[i] = 1;
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o.rank = 2;
    frg_gw *s = aligned(ctx, &o, true);
    REFUSES(ctx,
            frg_plan_vjp(frg_gw_plan(s), matrix(plan, N, M), FRG_GW_GRAD_FROZEN, matrix(out, N, M),
                         NULL, NULL),
            FRG_UNSUPPORTED, "low rank");
    REFUSES(ctx, frg_gw_start_potentials(s, f, g), FRG_UNSUPPORTED, "rank");
    frg_gw_destroy(s);
    o.max_iter = 0;
    s = aligned(ctx, &o, false);
    REFUSES(ctx, frg_gw_start_plan(s, matrix(plan, N, M)), FRG_UNSUPPORTED, "low rank");
    frg_gw_destroy(s);
    o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    s = aligned(ctx, &o, false);
    REFUSES(ctx, frg_gw_start_plan(s, matrix(plan, N, M - 1)), FRG_BAD_ARG, "6 x 5 is needed");
    REFUSES(ctx, frg_gw_start_plan(s, matrix(plan, N - 1, M)), FRG_BAD_ARG, "6 x 5 is needed");
    g[1] = (double)NAN;
    REFUSES(ctx, frg_gw_start_potentials(s, f, g), FRG_BAD_ARG, "g is nan at 2");
    frg_info info = {.status = FRG_BUG};
    const frg_status status = frg_gw_run(s, &info);
    CHECK(status >= 0 && info.status == status && info.objective == frg_gw_get(s)->energy);
    CHECK(info.iterations == frg_gw_get(s)->outer_iterations && info.peak_bytes > 0);
    frg_gw_destroy(s);
    o.mass = 1; /* weights sum to 1 */
    s = aligned(ctx, &o, true);
    CHECK_NEAR(frg_plan_get(frg_gw_plan(s)).mass, 1, 1e-12);
    CHECK(strstr(frg_gw_get(s)->verdict, "start is lower") !=
          NULL); /* compared, as a balanced one */
    frg_gw_destroy(s);
    o = options(FRG_GW_DISTANCE_MATRIX);
    o.mode = FRG_GW_LANDMARK;
    const frg_array square = matrix(out, M, M);
    for (int i = 0; i < M * M; i++)
        out[i] = i % M != i / M;
    REFUSES(ctx,
            frg_gw_create(&s, ctx, (frg_gw_side){.data = &square}, (frg_gw_side){.data = &square},
                          NULL, &o),
            FRG_UNSUPPORTED, "landmark and euclidean");
    CHECK_TEXT(frg_gw_reason_name((frg_gw_reason)99), "?");
    CHECK_TEXT(frg_gw_start_name((frg_gw_start)99), "?");
    CHECK_TEXT(frg_gw_mode_name((frg_gw_mode)99), "?");
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"options apart", options_apart},       {"plans", plans},   {"solvers", solvers},
    {"sinkhorn options", sinkhorn_options}, {"arrays", arrays}, {"out of place", out_of_place}};
TEST_MAIN(cases)
