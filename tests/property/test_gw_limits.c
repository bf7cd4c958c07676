/* test_gw_limits.c - single points, nothing but zeros, numbers beyond f32, graphs in parts. */
#include <dirent.h>

#include "gw_data.h"

static frg_gw_opts short_options(frg_gw_distance distance)
{
    frg_gw_opts o = options(distance);
    o.k = 3;
    o.max_iter = test_size(200, 60);
    return o;
}

/** Runs; the plan goes to `plan`. */
static frg_status align(frg_context *ctx, frg_gw_side x, frg_gw_side y, const frg_array *linear,
                        const frg_gw_opts *o, double *plan, frg_gw_report *r)
{
    frg_gw *s = NULL;
    frg_warnings_clear(ctx);
    frg_status status = frg_gw_create(&s, ctx, x, y, linear, o);
    if (!CHECK_SAYS(status == FRG_OK, "create: %s", frg_message(ctx)))
        return status;
    status = frg_gw_run(s, NULL);
    if (CHECK_SAYS(status >= 0, "run: %s", frg_message(ctx))) {
        *r = *frg_gw_get(s);
        const frg_plan_report p = frg_plan_get(frg_gw_plan(s));
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, p.n, matrix(plan, p.n, p.m)));
    }
    frg_gw_destroy(s);
    return status;
}

/* Against one point there is one plan, whatever makes distances and whatever the linear cost
 * says. */
static void single_points(void)
{
    enum { N = 6 };
    static const frg_gw_distance distances[] = {
        FRG_GW_DISTANCE_AUTO, FRG_GW_DISTANCE_DIJKSTRA, FRG_GW_DISTANCE_PRECOMPUTED,
        FRG_GW_DISTANCE_LANDMARK, FRG_GW_DISTANCE_EUCLIDEAN};
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double x[N * 2], y[2] = {3, 4}, linear[N], plan[N];
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal();
    for (int i = 0; i < N; i++)
        linear[i] = i;
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, 1, 2);
    for (size_t c = 0; c < sizeof distances / sizeof *distances; c++)
        for (int side = 0; side < 3; side++) { /* one point on the target, the source, on both */
            const frg_array *const px = side ? &ay : &ax, *const py = side == 1 ? &ax : &ay;
            const frg_array al = matrix(linear, px->shape[0], py->shape[0]);
            for (int how = 0; how < 4; how++) {
                frg_gw_report r = {0};
                frg_gw_opts o = short_options(distances[c]);
                o.mode = how == 1 ? FRG_GW_EXACT : FRG_GW_SAMPLED;
                o.linear_weight = how == 2 ? 0.5 : 0;
                o.rank = how == 3 ? 2 : 0;
                align(ctx, (frg_gw_side){.data = px}, (frg_gw_side){.data = py},
                      how == 2 ? &al : NULL, &o, plan, &r);
                CHECK_INT(r.reason, FRG_GW_DEGENERATE);
                const int64_t count = px->shape[0] * py->shape[0];
                for (int64_t i = 0; i < count; i++)
                    CHECK_NEAR(plan[i], 1 / (double)count, 1e-14);
            }
        }
    frg_context_destroy(ctx);
}

/* Marginals that need not hold are part of the answer even against one point: five points close
 * together and one far away, and the far one is left out, or gets less. */
static void part_of_many(void)
{
    enum { N = 6 };
    frg_context *ctx = test_context_with(1, NULL, NULL);
    const double x[N] = {0, 0.1, 0.2, 0.3, 0.4, 10}, y[1] = {0};
    const frg_array ax = matrix(x, N, 1), ay = matrix(y, 1, 1);
    double plan[N];
    for (int side = 0; side < 2; side++)
        for (int how = 0; how < 3; how++) {
            frg_gw_report r = {0};
            frg_gw_opts o = short_options(FRG_GW_DISTANCE_EUCLIDEAN);
            o.mass = how == 0 ? 0.5 : 0;
            o.rho_source = how == 2 || (how == 1 && !side) ? 0.05 : (double)INFINITY;
            o.rho_target = how == 2 || (how == 1 && side) ? 0.05 : (double)INFINITY;
            align(ctx, (frg_gw_side){.data = side ? &ay : &ax},
                  (frg_gw_side){.data = side ? &ax : &ay}, NULL, &o, plan, &r);
            double near = 0;
            for (int i = 0; i < 5; i++)
                near += plan[i] / 5;
            CHECK_SAYS(plan[5] < 0.1 * near, "side %d, case %d: the far point has %g, others %g",
                       side, how, plan[5], near);
            CHECK(r.reason != FRG_GW_STALLED_PRODUCT);
        }
    frg_context_destroy(ctx);
}

/* Equal points: the plan is a b' and nothing stalls; a linear cost decides alone; what is taken of
 * the points of the other side follows their distances. */
static void equal_points(void)
{
    enum { N = 4, M = 6 };
    frg_context *ctx = test_context_with(1, NULL, NULL);
    const double x[N] = {0}, y[M] = {0, 0.1, 0.2, 0.3, 0.4, 10};
    double plan[N * M], linear[N * N];
    const frg_array ax = matrix(x, N, 1), ay = matrix(y, M, 1), al = matrix(linear, N, N);
    const frg_gw_side zeros = {.data = &ax}, others = {.data = &ay};
    frg_gw_report r = {0};
    for (int mode = 0; mode < 2; mode++)
        for (int both = 0; both < 2; both++) {
            frg_gw_opts o = short_options(FRG_GW_DISTANCE_EUCLIDEAN);
            o.mode = mode ? FRG_GW_EXACT : FRG_GW_SAMPLED;
            CHECK_INT(align(ctx, zeros, both ? zeros : others, NULL, &o, plan, &r), FRG_OK);
            CHECK_INT(r.reason, FRG_GW_DEGENERATE);
            for (int i = 0; i < N * (both ? N : M); i++)
                CHECK_NEAR(plan[i], 1.0 / (N * (both ? N : M)), 1e-14);
        }
    for (int i = 0; i < N * N; i++) /* the cheapest way: i to i + 1 */
        linear[i] = (i / N + 1) % N == i % N ? 0 : 1;
    for (int how = 0; how < 2; how++) {
        frg_gw_opts o = short_options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.linear_weight = 0.5;
        o.mode = how == 1 ? FRG_GW_EXACT : FRG_GW_SAMPLED;
        align(ctx, zeros, zeros, &al, &o, plan, &r);
        double right = 0;
        for (int i = 0; i < N * N; i++)
            right += linear[i] > 0 ? 0 : plan[i];
        CHECK_SAYS(right > 0.99, "case %d: %g where it is cheap", how, right);
    }
    for (int side = 0; side < 2; side++) {
        frg_gw_opts o = short_options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.mass = 0.5;
        align(ctx, side ? zeros : others, side ? others : zeros, NULL, &o, plan, &r);
        double far = 0;
        for (int i = 0; i < N; i++)
            far += side ? plan[i * M + 5] : plan[5 * N + i];
        CHECK_SAYS(far < 0.01, "side %d: the far point has %g", side, far);
    }
    frg_context_destroy(ctx);
}

/* Two pairs of nodes, arcs of length 0 inside a pair and none between: a pair goes to a pair. */
static void parts_of_length_zero(void)
{
    static const frg_gw_distance ways[] = {FRG_GW_DISTANCE_GRAPH, FRG_GW_DISTANCE_DIJKSTRA,
                                           FRG_GW_DISTANCE_LANDMARK};
    frg_context *ctx = test_context_with(1, NULL, NULL);
    const int64_t starts[] = {0, 1, 2, 3, 4};
    const int32_t targets[] = {1, 0, 3, 2};
    const double lengths[] = {0, 0, 0, 0};
    const frg_array w = frg_vector(lengths, FRG_F64, 4);
    frg_graph *g = NULL;
    CHECK_OK(ctx, frg_graph_csr(&g, ctx, frg_vector(starts, FRG_I64, 5),
                                frg_vector(targets, FRG_I32, 4), &w, 0));
    for (int way = 0; way < 3; way++) {
        double plan[16], split = 0;
        frg_gw_report r = {0};
        const frg_gw_opts o = short_options(ways[way]);
        align(ctx, (frg_gw_side){.graph = g}, (frg_gw_side){.graph = g}, NULL, &o, plan, &r);
        for (int i = 0; i < 4; i++) /* of each row one pair of columns has all */
            split += fmin(plan[4 * i] + plan[4 * i + 1], plan[4 * i + 2] + plan[4 * i + 3]);
        CHECK_SAYS(split < 1e-6, "way %d: %g is split, %s", way, split,
                   frg_gw_reason_name(r.reason));
    }
    frg_graph_destroy(g);
    frg_context_destroy(ctx);
}

/* What single precision cannot hold is refused where it stands. */
static void beyond_single(void)
{
    enum { N = 4 };
    static const struct {
        double size, diagonal, cost;
        const char *where, *says;
    } each[] = {{1e39, 0, 0, "source, row 1, column 2", "1e+39"},
                {1e-46, 0, 0, "", "too small"},
                {1, (double)NAN, 0, "source, row 2, column 2", "nan"},
                {1, 0, 1e39, "linear, row 1, column 3", "1e+39"},
                {1, 0, -1e39, "linear, row 1, column 3", "-1e+39"},
                {1, 0, (double)NAN, "linear, row 1, column 3", "nan"}};
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double c[N * N], linear[N * N] = {0};
    const frg_array ac = matrix(c, N, N), al = matrix(linear, N, N);
    frg_gw_opts o = short_options(FRG_GW_DISTANCE_MATRIX);
    o.linear_weight = 0.5;
    for (size_t e = 0; e < sizeof each / sizeof *each; e++) {
        frg_gw *s = NULL;
        for (int i = 0; i < N * N; i++)
            c[i] = i / N == i % N ? 0 : each[e].size;
        c[N + 1] = each[e].diagonal;
        linear[2] = each[e].cost;
        CHECK_STATUS(
            frg_gw_create(&s, ctx, (frg_gw_side){.data = &ac}, (frg_gw_side){.data = &ac}, &al, &o),
            FRG_BAD_DATA);
        CHECK_SAYS(s == NULL && strstr(frg_message(ctx), each[e].says), "case %zu: %s", e,
                   frg_message(ctx));
        if (*each[e].where)
            CHECK_TEXT(frg_error_where(ctx), each[e].where);
    }
    frg_context_destroy(ctx);
}

/* One point that has all the weight is the only one: there is one plan, and nobody is told that it
 * says nothing. */
static void all_weight_on_one(void)
{
    enum { N = 5, M = 4 };
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double x[N * 2], y[M * 2], a[N] = {0}, plan[N * M];
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal();
    for (int i = 0; i < M * 2; i++)
        y[i] = test_normal();
    a[2] = 1;
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 2);
    for (int mode = 0; mode < 2; mode++) {
        frg_gw_opts o = short_options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.mode = mode ? FRG_GW_EXACT : FRG_GW_SAMPLED;
        frg_gw_report r = {0};
        align(ctx, (frg_gw_side){.data = &ax, .weights = a}, (frg_gw_side){.data = &ay}, NULL, &o,
              plan, &r);
        CHECK_INT(r.reason, FRG_GW_DEGENERATE);
        CHECK_INT(frg_warning_count(ctx), 0);
        for (int i = 0; i < N * M; i++)
            CHECK_NEAR(plan[i], i / M == 2 ? 1.0 / M : 0, 1e-14);
    }
    frg_context_destroy(ctx);
}

/* Points whose squared distances vanish in f32 are refused, not taken as equal. */
static void too_near(void)
{
    enum { N = 12 };
    static const frg_gw_distance ways[] = {FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_DISTANCE_PRECOMPUTED,
                                           FRG_GW_DISTANCE_LANDMARK, FRG_GW_DISTANCE_DIJKSTRA};
    static const double sizes[] = {1e-20, 1e-40, 1e-300};
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double x[N * 2];
    float narrow[N * 2];
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int k = 0; k < 4; k++) {
            for (int i = 0; i < N * 2; i++) {
                x[i] = test_normal() * (k < 3 ? sizes[k] : 1e-30);
                narrow[i] = (float)x[i];
            }
            const frg_array ax = k < 3 ? matrix(x, N, 2) : frg_matrix(narrow, FRG_F32, N, 2, 2);
            const frg_gw_side side = {.data = &ax};
            const frg_gw_opts o = short_options(ways[w]);
            frg_gw *s = NULL;
            CHECK_STATUS(frg_gw_create(&s, ctx, side, side, NULL, &o), FRG_BAD_DATA);
            CHECK_SAYS(s == NULL && strstr(frg_message(ctx), "too little for f32"), "%s",
                       frg_message(ctx));
        }
    frg_context_destroy(ctx);
}

/* Threads of this process; 0 where nobody tells. */
static int tasks(void)
{
    DIR *const d = opendir("/proc/self/task");
    int count = 0;
    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count;
}

/* The first case, as threads that another one woke would serve this one too: the BLAS had its own
 * for energies. */
static void one_thread_alone(void)
{
    enum { N = 120, M = 130 };
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double x[N * 2], y[M * 2];
    static double plan[N * M], c[N * N], d[M * M];
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal();
    for (int i = 0; i < M * 2; i++)
        y[i] = test_normal();
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 2);
    const frg_gw_side sx = {.data = &ax}, sy = {.data = &ay};
    const int before = tasks();
    for (int kind = 0; kind < 3; kind++) {
        frg_gw_opts o = short_options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.max_iter = 10;
        o.mode = kind == 1 ? FRG_GW_EXACT : FRG_GW_SAMPLED;
        o.rank = kind == 2 ? 30 : 0;
        frg_gw_report r;
        align(ctx, sx, sy, NULL, &o, plan, &r);
    }
    double energy;
    const frg_array ac = matrix(c, N, N), ad = matrix(d, M, M);
    CHECK_OK(ctx, frg_gw_energy(ctx, ac, ad, matrix(plan, N, M), &energy));
    const frg_gw_point at = {.c = ac, .d = ad, .plan = matrix(plan, N, M), .epsilon = 1};
    CHECK_OK(ctx, frg_gw_gradient(ctx, &at, &(frg_gw_gradients){.c = &ac}));
    CHECK_INT(tasks(), before);
    frg_context_destroy(ctx);
}

/* A marginal that costs next to nothing, or all but holds, beside one that holds: rows of any mass
 * are no reason to stop, and the other side holds as it is asked to. */
static void any_penalty(void)
{
    enum { N = 12 };
    static const double rho[] = {1e-8, 1e-5, 1e-4, 1e-2, 1, 1e3, 1e8};
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double x[N * 3], y[N * 3], plan[N * N];
    for (int i = 0; i < N * 3; i++)
        x[i] = test_normal();
    for (int i = 0; i < N * 3; i++) /* points turned by 90 degrees, the last first */
        y[i] = i % 3 == 0 ? -x[(N - 1 - i / 3) * 3 + 1]
                          : x[(N - 1 - i / 3) * 3 + i % 3 - (i % 3 == 1)];
    const frg_array ax = matrix(x, N, 3), ay = matrix(y, N, 3);
    for (size_t k = 0; k < sizeof rho / sizeof *rho; k++)
        for (int way = 0; way < 6; way++) {
            frg_gw_opts o = short_options(FRG_GW_DISTANCE_EUCLIDEAN);
            frg_gw_report r = {0};
            double over = 0;
            o.epsilon = way < 3 ? 0.001 : 1e-5;
            o.rho_source = way % 3 == 1 ? (double)INFINITY : rho[k];
            o.rho_target = way % 3 == 0 ? (double)INFINITY : rho[k];
            if (align(ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay}, NULL, &o, plan,
                      &r) < 0)
                continue;
            for (int i = 0; i < N; i++) {
                double row = 0, column = 0;
                for (int j = 0; j < N; j++) {
                    row += plan[i * N + j];
                    column += plan[j * N + i];
                }
                over += way % 3 == 1   ? fabs(row - 1.0 / N)
                        : way % 3 == 0 ? fabs(column - 1.0 / N)
                                       : 0;
            }
            CHECK_SAYS(isfinite(r.energy) && r.energy >= 0, "%g", r.energy);
            CHECK_SAYS(r.step_gain >= 0 || r.reason == FRG_GW_NOT_CONFIRMED, "rho %g, way %d: %s",
                       rho[k], way, r.verdict);
            CHECK_SAYS(over <= o.polish_tol || r.reason == FRG_GW_NOT_CONFIRMED ||
                           r.reason == FRG_GW_MAX_ITER,
                       "rho %g, way %d: off by %g, %s", rho[k], way, over,
                       frg_gw_reason_name(r.reason));
        }
    frg_context_destroy(ctx);
}

/* All that the smaller side has, of sides of other sums: its marginal holds, the other's points have
 * no more than they may.  Transport is that of a balanced problem with one more point, whose costs
 * are 0. */
static void all_of_the_smaller(void)
{
    enum { FEW = 8, MANY = 12 };
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double x[MANY * 3], few[FEW], many[MANY], cost[MANY * MANY], wide[MANY * (MANY + 1)],
        plan[MANY * MANY], whole[MANY * (MANY + 1)], w[MANY + 1];
    for (int i = 0; i < MANY * 3; i++)
        x[i] = test_normal();
    for (int i = 0; i < MANY; i++)
        many[i] = few[i % FEW] = 1;
    for (int way = 0; way < 2; way++) { /* the source is the smaller, the target */
        const int n = way ? MANY : FEW, m = way ? FEW : MANY, rows = n + !way, columns = m + way;
        const frg_array ax = matrix(x, n, 3), ay = matrix(x, m, 3);
        const double *const a = way ? many : few, *const b = way ? few : many;
        frg_gw_opts o = short_options(FRG_GW_DISTANCE_EUCLIDEAN);
        frg_gw_report r = {0};
        o.mass = FEW;
        align(ctx, (frg_gw_side){.data = &ax, .weights = a},
              (frg_gw_side){.data = &ay, .weights = b}, NULL, &o, plan, &r);
        CHECK_TEXT(r.verdict, "the plan is stationary");
        for (int u = 0; u < MANY; u++) { /* points of the larger side, the smaller one's first */
            double of_few = 0, of_many = 0;
            for (int v = 0; v < MANY; v++) {
                of_few += u < FEW ? plan[way ? v * m + u : u * m + v] : 0;
                of_many += v < FEW ? plan[way ? u * m + v : v * m + u] : 0;
            }
            CHECK_NEAR(of_few, u < FEW, 1e-12);
            CHECK_SAYS(of_many <= 1 + 1e-12, "%g from one of %d", of_many, MANY);
        }
        frg_sinkhorn_opts k;
        frg_sinkhorn *part = NULL, *full = NULL;
        frg_sinkhorn_defaults(&k, sizeof k);
        k.cost_store = FRG_GW_STORE_F64;
        k.tol = 1e-10;
        k.max_iter = 5000;
        k.epsilon = 0.2;
        for (int e = 0; e < rows * columns; e++)
            wide[e] = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++)
                wide[i * columns + j] = cost[i * m + j] = test_uniform();
        for (int u = 0; u <= MANY; u++)
            w[u] = u < FEW ? 1 : u == FEW ? MANY - FEW : 0;
        CHECK_OK(ctx, frg_sinkhorn_create(&full, ctx, matrix(wide, rows, columns), way ? a : w,
                                          way ? w : b, &k));
        k.mass = FEW;
        CHECK_OK(ctx, frg_sinkhorn_create(&part, ctx, matrix(cost, n, m), a, b, &k));
        CHECK_OK(ctx, frg_sinkhorn_run(full, NULL));
        CHECK_OK(ctx, frg_sinkhorn_run(part, NULL));
        CHECK_OK(ctx,
                 frg_plan_rows(frg_sinkhorn_plan(full), 0, rows, matrix(whole, rows, columns)));
        CHECK_OK(ctx, frg_plan_rows(frg_sinkhorn_plan(part), 0, n, matrix(plan, n, m)));
        const double scale = MANY; /* balanced weights are divided by their sum */
        for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++)
                CHECK_NEAR(plan[i * m + j], scale * whole[i * columns + j], 1e-7);
        frg_sinkhorn_destroy(full);
        frg_sinkhorn_destroy(part);
    }
    const frg_array ax = matrix(x, MANY, 3);
    frg_gw_opts o = short_options(FRG_GW_DISTANCE_EUCLIDEAN);
    frg_gw *s = NULL;
    o.mass = 1e-20;
    CHECK_STATUS(
        frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ax}, NULL, &o),
        FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "less than 1e-12") != NULL);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"all of the smaller", all_of_the_smaller},
                                  {"any penalty", any_penalty},
                                  {"one thread alone", one_thread_alone},
                                  {"single points", single_points},
                                  {"part of many", part_of_many},
                                  {"equal points", equal_points},
                                  {"parts of length zero", parts_of_length_zero},
                                  {"all weight on one", all_weight_on_one},
                                  {"too near", too_near},
                                  {"beyond single precision", beyond_single}};
TEST_MAIN(cases)
