/* test_gw_verdict.c - what is said of plans of the modes with entropy: energies without the blur
 * and from other starts.
 *
 * All energies are recomputed in double from distances in double; floats of a run are off by 2^-24
 * of the constant in E for each of a few sums, 1e-6 of the product's energy at the most.
 */
#include "gw_data.h"

#define ROUNDING 1e-6

/** Points on a line in steps that grow: turned round they are nearly the same, so that the mirror
 *  image is a minimum. */
static void on_a_line(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)i + 0.004 * (double)(i * i);
}

/** E of the plan in double. */
static double energy_of(const double *c, int64_t n, const double *d, int64_t m, const double *p)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            for (int64_t k = 0; p[i * m + j] > 0 && k < n; k++)
                for (int64_t l = 0; l < m; l++)
                    sum += pow(c[i * n + k] - d[j * m + l], 2) * p[i * m + j] * p[k * m + l];
    return sum;
}

/** The run of a solver of two sets of distances; a plan to start from, or NULL. */
static frg_gw_report run_from(frg_context *ctx, const frg_gw_opts *o, frg_gw_side x, frg_gw_side y,
                              const frg_array *linear, double *start, double *plan,
                              frg_status *status)
{
    frg_gw *s = NULL;
    frg_gw_report r = {0};
    frg_warnings_clear(ctx);
    if (!CHECK_OK(ctx, frg_gw_create(&s, ctx, x, y, linear, o)))
        return r;
    const int64_t n = frg_gw_get(s)->n, m = frg_gw_get(s)->m;
    if (start)
        CHECK_OK(ctx, frg_gw_start_plan(s, matrix(start, n, m)));
    *status = frg_gw_run(s, NULL);
    r = *frg_gw_get(s);
    if (*status >= 0 && plan)
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, n, matrix(plan, n, m)));
    frg_gw_destroy(s);
    return r;
}

/** From the mirror image the exact mode stays there: it is said that the answer is another, with a
 *  warning that names what to do; from the answer nothing is.  Of both the blur is what E has above
 *  that of the permutation. */
static void beaten(void)
{
    enum { N = 30 };
    double x[N], c[N * N], start[N * N] = {0}, plan[N * N], at[N * N] = {0};
    on_a_line(x, N);
    distances_of(x, N, 1, c);
    const frg_array ac = matrix(c, N, N);
    const frg_gw_side side = {.data = &ac};
    frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
    o.mode = FRG_GW_EXACT;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.epsilon = 1e-4;
    frg_context *ctx = test_context();
    for (int mirrored = 0; mirrored < 2; mirrored++) {
        for (int i = 0; i < N * N; i++)
            start[i] = at[i] = 0;
        for (int i = 0; i < N; i++)
            start[i * N + (mirrored ? N - 1 - i : i)] = 1.0 / N;
        frg_status status = FRG_OK;
        const frg_gw_report r = run_from(ctx, &o, side, side, NULL, start, plan, &status);
        const double e = energy_of(c, N, c, N, plan), of_start = energy_of(c, N, c, N, start);
        const double near = ROUNDING * r.energy_product;
        CHECK_NEAR(r.energy, e, near);
        CHECK_NEAR(r.sharpened_energy, of_start, near);
        CHECK_NEAR(r.blur, e - of_start, 2 * near);
        CHECK_NEAR(r.other_energy, 0, near);
        CHECK_STATUS(status, mirrored ? FRG_STALLED : FRG_OK);
        CHECK_TEXT(frg_gw_reason_name(r.reason), mirrored ? "beaten" : "converged_change");
        CHECK_TEXT(r.verdict, mirrored ? "another start is lower" : "no other start is lower");
        CHECK_INT(frg_warning_count(ctx), mirrored);
        if (mirrored)
            CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-GW-108");
        CHECK(!mirrored || of_start > 1e-3 * r.energy_product);
    }
    frg_context_destroy(ctx);
}

/** Where epsilon is so large that the plan is all blur, the mirror image is no worse:
 *  "converged" is about the entropy too.  At 0.1 the plan has forgotten where it began; from
 *  0.083 to 0.091 its sharpened form has not, and the answer, blurred as it is, is no lower. */
static void broad(void)
{
    enum { N = 30 };
    static const struct {
        double epsilon;
        const char *verdict;
    } each[] = {{0.1, "no other start is lower"},
                {0.087, "another start is lower, but not with the entropy of epsilon"}};
    double x[N], c[N * N], start[N * N] = {0}, plan[N * N];
    on_a_line(x, N);
    distances_of(x, N, 1, c);
    for (int i = 0; i < N; i++)
        start[i * N + N - 1 - i] = 1.0 / N;
    const frg_array ac = matrix(c, N, N);
    frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
    o.mode = FRG_GW_EXACT;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.max_iter = 3000;
    frg_context *ctx = test_context();
    for (int q = 0; q < 2; q++) {
        frg_status status = FRG_OK;
        const frg_gw_side side = {.data = &ac};
        o.epsilon = each[q].epsilon;
        const frg_gw_report r = run_from(ctx, &o, side, side, NULL, start, plan, &status);
        CHECK(r.blur > 0.02 * r.energy_product && r.blur <= r.energy + ROUNDING * r.energy_product);
        CHECK_TEXT(r.verdict, each[q].verdict);
        CHECK(r.reason != FRG_GW_BEATEN);
        CHECK_INT(frg_warning_count(ctx), 0);
    }
    frg_context_destroy(ctx);
}

/** With a linear cost energies are J without entropy, scaled; points without weight count
 *  nothing. */
static void fused(void)
{
    enum { N = 24, M = 21 };
    double x[N * 2], y[M * 2], c[N * N], d[M * M], linear[N * M], a[N], b[M], plan[N * M];
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal();
    for (int j = 0; j < M * 2; j++)
        y[j] = test_normal();
    for (int i = 0; i < N * M; i++)
        linear[i] = fabs(test_normal());
    for (int i = 0; i < N; i++)
        a[i] = i % 5 == 3 ? 0 : 1.0 / (N - 5);
    for (int j = 0; j < M; j++)
        b[j] = 1.0 / M;
    distances_of(x, N, 2, c);
    distances_of(y, M, 2, d);
    const frg_array ac = matrix(c, N, N), ad = matrix(d, M, M), al = matrix(linear, N, M);
    frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
    frg_context *ctx = test_context();
    for (int mode = 0; mode < 2; mode++) {
        o.mode = mode ? FRG_GW_EXACT : FRG_GW_SAMPLED;
        o.scale = FRG_GW_SCALE_NONE;
        o.linear_weight = 0.3;
        o.epsilon = 0.05;
        frg_status status = FRG_OK;
        const frg_gw_report r =
            run_from(ctx, &o, (frg_gw_side){.data = &ac, .weights = a},
                     (frg_gw_side){.data = &ad, .weights = b}, &al, NULL, plan, &status);
        double cost = 0, product = 0, product_cost = 0, even[N * M];
        for (int i = 0; i < N * M; i++) {
            even[i] = a[i / M] * b[i % M];
            cost += linear[i] * plan[i];
            product_cost += linear[i] * even[i];
        }
        product = 0.7 * energy_of(c, N, d, M, even) + 2 * 0.3 * product_cost;
        const double j = 0.7 * energy_of(c, N, d, M, plan) + 2 * 0.3 * cost;
        CHECK_NEAR(r.energy_product, product, ROUNDING * product);
        CHECK_NEAR(r.sharpened_energy + r.blur, j, 3 * ROUNDING * product);
        CHECK(r.sharpened_energy <= j && r.other_energy > 0 && strstr(r.verdict, "start"));
    }
    frg_context_destroy(ctx);
}

/** What is not compared says why, and the run is what it was. */
static void left_out(void)
{
    enum { N = 40, MANY = 700 };
    static const struct {
        const char *why;
        int64_t n, more;
        frg_gw_opts o;
    } each[] = {{"not compared: marginals are relaxed or partial", N, 0, {.rho_target = 0.1}},
                {"not compared: marginals are relaxed or partial", N, 0, {.mass = 0.5}},
                {"not compared: the rank is bounded", N, 0, {.rank = 3}},
                {"not compared: no steps were done", N, 0, {.max_iter = -1}},
                {"not compared: too many points", MANY, 0, {.max_iter = 2}},
                {"not compared: too many points", MANY / 4, 5, {.max_iter = 2}},
                {"no other start is lower", N, 0, {.mode = FRG_GW_VERTEX}}};
    double *const x = malloc(sizeof *x * (MANY + 8) * 2);
    for (int i = 0; i < (MANY + 8) * 2; i++)
        x[i] = test_normal();
    frg_context *ctx = test_context();
    for (size_t q = 0; q < sizeof each / sizeof *each; q++) {
        const frg_gw_opts *const e = &each[q].o;
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        if (e->mode == FRG_GW_VERTEX)
            frg_gw_defaults(&o, sizeof o);
        o.mode = e->mode ? e->mode : FRG_GW_SAMPLED;
        o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
        o.rank = e->rank;
        o.mass = e->mass;
        o.rho_target = e->rho_target > 0 ? e->rho_target : o.rho_target;
        o.max_iter = e->max_iter < 0 ? 0 : e->max_iter > 0 ? e->max_iter : o.max_iter;
        const frg_array ax = matrix(x, each[q].n, 2), ay = matrix(x, each[q].n + each[q].more, 2);
        frg_status status = FRG_OK;
        const frg_gw_report r = run_from(ctx, &o, (frg_gw_side){.data = &ax},
                                         (frg_gw_side){.data = &ay}, NULL, NULL, NULL, &status);
        CHECK_TEXT(r.verdict, each[q].why);
        if (o.mode == FRG_GW_VERTEX) {
            CHECK(r.blur <= 0 && r.blur >= 0 && r.sharpened_energy >= r.energy);
        } else {
            CHECK(isnan(r.sharpened_energy) && isnan(r.blur) && isnan(r.other_energy));
        }
    }
    free(x);
    frg_context_destroy(ctx);
}

/** A frg_progress callback that stops in the verdict, user: how often it was called there. */
static int stop_there(const frg_progress *p, void *user)
{
    int *const calls = user;
    *calls += strcmp(p->phase, "verdict") == 0;
    return *calls == 2;
}

/** A stop there: the plan is the run's, and nothing is said of it. */
static void stopped(void)
{
    enum { N = 40 };
    double x[N * 2], plan[N * N];
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal();
    int calls = 0;
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.on_progress = stop_there;
    c.user = &calls;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o.mode = FRG_GW_SAMPLED;
    const frg_array ax = matrix(x, N, 2);
    frg_status status = FRG_OK;
    const frg_gw_report r = run_from(ctx, &o, (frg_gw_side){.data = &ax},
                                     (frg_gw_side){.data = &ax}, NULL, NULL, plan, &status);
    CHECK_STATUS(status, FRG_INTERRUPTED);
    CHECK_INT(calls, 2);
    CHECK_TEXT(r.verdict, "not compared: stopped");
    CHECK(isnan(r.sharpened_energy) && isnan(r.other_energy) && r.reason == FRG_GW_CANCELLED);
    double mass = 0;
    for (int i = 0; i < N * N; i++)
        mass += plan[i];
    CHECK_NEAR(mass, 1, 1e-12);
    frg_context_destroy(ctx);
}

/** The same bits from any number of threads. */
static void bits(void)
{
    enum { N = 160 };
    double x[N * 2];
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal();
    const frg_array ax = matrix(x, N, 2);
    double first[3] = {0};
    for (int threads = 1; threads < 4; threads++) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.mode = FRG_GW_EXACT;
        o.max_iter = 30;
        frg_status status = FRG_OK;
        const frg_gw_report r = run_from(ctx, &o, (frg_gw_side){.data = &ax},
                                         (frg_gw_side){.data = &ax}, NULL, NULL, NULL, &status);
        const double now[3] = {r.sharpened_energy, r.blur, r.other_energy};
        if (threads == 1)
            memcpy(first, now, sizeof first);
        CHECK_BITS(now, first, sizeof first);
        CHECK(!isnan(now[0]) && !isnan(now[2]));
        frg_context_destroy(ctx);
    }
}

static const test_case cases[] = {{"beaten", beaten},     {"broad", broad},     {"fused", fused},
                                  {"left out", left_out}, {"stopped", stopped}, {"bits", bits}};
TEST_MAIN(cases)
