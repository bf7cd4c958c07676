/* test_gw_audit.c - what is said of plans whose marginals are relaxed or partial: the gain of a
 * step on exact costs against dense oracles, and runs that did not come to a stationary plan. */
#include "gw_data.h"
#include "oracle/gw_oracle.h"

enum { N = 6, M = 7, CELLS = N * M };

/** Distances, weights and a linear cost whose values are floats. */
typedef struct {
    double c[N * N], d[M * M], a[N], b[M], linear[CELLS];
} spaces;

static void draw(spaces *s)
{
    double x[N * 3], y[M * 3], sums[2] = {0};
    for (int i = 0; i < N * 3; i++)
        x[i] = test_normal();
    for (int i = 0; i < M * 3; i++)
        y[i] = test_normal();
    distances_of(x, N, 3, s->c);
    distances_of(y, M, 3, s->d);
    for (int i = 0; i < N * N; i++)
        s->c[i] = (double)(float)s->c[i];
    for (int i = 0; i < M * M; i++)
        s->d[i] = (double)(float)s->d[i];
    for (int i = 0; i < N; i++)
        sums[0] += s->a[i] = 0.2 + test_uniform();
    for (int j = 0; j < M; j++)
        sums[1] += s->b[j] = 0.2 + test_uniform();
    for (int i = 0; i < N; i++)
        s->a[i] /= sums[0];
    for (int j = 0; j < M; j++)
        s->b[j] /= sums[1];
    for (int e = 0; e < CELLS; e++)
        s->linear[e] = (double)(float)test_uniform();
}

static double sum_of(const double *x, int64_t count)
{
    double sum = 0;
    for (int64_t e = 0; e < count; e++)
        sum += x[e];
    return sum;
}

/** rho KL(sums of the plan | w), `rows` of them or of columns; 0 where the marginal holds. */
static double penalty(const gw_oracle *o, const double *plan, bool rows)
{
    const double rho = rows ? o->rho_source : o->rho_target, *const w = rows ? o->a : o->b;
    const int64_t n = rows ? o->n : o->m, k = rows ? o->m : o->n;
    double all = 0;
    for (int64_t i = 0; i < n && isfinite(rho); i++) {
        double sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += plan[rows ? i * o->m + j : j * o->m + i];
        all += rho * ((sum > 0 ? sum * log(sum / w[i]) : 0) - sum + w[i]);
    }
    return all;
}

/** x (log x - 1) of what the plan leaves of rows and columns. */
static double entropy_of_rest(const gw_oracle *o, const double *plan)
{
    double sum = 0;
    for (int64_t u = 0; u < o->n + o->m; u++) {
        const bool row = u < o->n;
        double left = row ? o->a[u] : o->b[u - o->n];
        for (int64_t k = 0; k < (row ? o->m : o->n); k++)
            left -= plan[row ? u * o->m + k : k * o->m + u - o->n];
        sum += left > 0 ? left * (log(left) - 1) : 0;
    }
    return sum;
}

/** sum p (log (p / q) - 1), q 1 or the product a b'; of partial plans that of the rest as well. */
static double entropy(const gw_oracle *o, const double *plan)
{
    double sum = o->mass > 0 ? entropy_of_rest(o, plan) : 0;
    for (int64_t e = 0; e < o->n * o->m; e++)
        sum +=
            plan[e] > 0
                ? plan[e] * (log(plan[e] / (o->product ? o->a[e / o->m] * o->b[e % o->m] : 1)) - 1)
                : 0;
    return sum;
}

static double inner(const double *x, const double *y, int64_t count)
{
    double sum = 0;
    for (int64_t e = 0; e < count; e++)
        sum += x[e] * y[e];
    return sum;
}

static double value(const gw_oracle *o, double epsilon, const double *cost, const double *plan)
{
    return inner(cost, plan, o->n * o->m) + epsilon * entropy(o, plan) + penalty(o, plan, true) +
           penalty(o, plan, false);
}

/** cost <- that of the plan as one of mass 1. */
static void cost_at(const gw_oracle *o, const double *plan, double *cost)
{
    double unit[CELLS];
    const double mass = sum_of(plan, o->n * o->m);
    for (int64_t e = 0; e < o->n * o->m; e++)
        unit[e] = plan[e] / mass;
    gw_oracle_cost(o, unit, cost);
}

static frg_gw_opts options_of(double epsilon)
{
    frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
    o.scale = FRG_GW_SCALE_NONE;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.epsilon = epsilon;
    o.n_start = 1;
    return o;
}

/** Runs of every kind and length: the gain is that of the plan of least G by the oracle, which has
 *  the cost of all pairs by four nested sums and Sinkhorn's iteration to its end; and what is said
 *  is what the numbers say.  Passes end at 1e-9 of potentials over epsilon, and G is flat there:
 *  1e-7 for sums of some numbers of size 10. */
static void gains(void)
{
    static const struct {
        const char *name;
        double rho_source, rho_target, mass, theta;
        bool product;
    } rows[] = {
        {"relaxed", 0.7, 0.3, 0, 0, false},
        {"target relaxed", INFINITY, 0.4, 0, 0, false},
        {"source relaxed", 0.4, INFINITY, 0, 0, false},
        {"relaxed beside the product", 0.5, 0.5, 0, 0, true},
        {"relaxed, linear cost", 0.5, 0.5, 0, 0.3, false},
        {"partial", INFINITY, INFINITY, 0.6, 0, false},
        {"partial, linear cost", INFINITY, INFINITY, 0.8, 0.5, false},
    };
    frg_context *ctx = test_context();
    int said[2] = {0};
    for (size_t k = 0; k < 5 * sizeof rows / sizeof *rows; k++) {
        static const int steps[] = {1, 2, 3, 10, 300};
        spaces s;
        double plan[CELLS], cost[CELLS], best[CELLS];
        const int way = (int)(k / 5);
        draw(&s);
        const gw_oracle g = {.n = N,
                             .m = M,
                             .c = s.c,
                             .d = s.d,
                             .a = s.a,
                             .b = s.b,
                             .linear = rows[way].theta > 0 ? s.linear : NULL,
                             .theta = rows[way].theta,
                             .rho_source = rows[way].rho_source,
                             .rho_target = rows[way].rho_target,
                             .mass = rows[way].mass,
                             .product = rows[way].product};
        frg_gw_opts o = options_of(0.1);
        o.max_iter = steps[k % 5];
        o.min_iter = o.max_iter < 20 ? o.max_iter : 20;
        o.polish_tol = 1e-9;
        o.polish_passes = 2000;
        o.rho_source = g.rho_source;
        o.rho_target = g.rho_target;
        o.mass = g.mass;
        o.linear_weight = g.theta;
        o.reference = g.product ? FRG_GW_REFERENCE_PRODUCT : FRG_GW_REFERENCE_COUNTING;
        const frg_array x = matrix(s.c, N, N), y = matrix(s.d, M, M), z = matrix(s.linear, N, M);
        const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &x, .weights = s.a},
                                            (frg_gw_side){.data = &y, .weights = s.b},
                                            g.linear ? &z : NULL, &o, plan, NULL);
        cost_at(&g, plan, cost);
        gw_oracle_sinkhorn(&g, o.epsilon, cost, best);
        const double gain = value(&g, o.epsilon, cost, plan) - value(&g, o.epsilon, cost, best);
        CHECK_SAYS(fabs(r.step_gain - gain) < 1e-7, "%s, %d steps: %.9g, not %.9g", rows[way].name,
                   (int)o.max_iter, r.step_gain, gain);
        const bool lower = gain > fmax(0.02 * fabs(inner(cost, plan, CELLS)),
                                       0.5 * o.epsilon * sum_of(plan, CELLS));
        said[lower]++;
        CHECK_TEXT(r.verdict, lower ? "a step from the plan is lower" : "the plan is stationary");
    }
    CHECK_SAYS(said[0] > 0 && said[1] > 0, "%d, %d", said[0], said[1]);
    frg_context_destroy(ctx);
}

/** The least <cost, Q> over the plans that send `left` of the points i and those behind it to
 *  points of y that are not used, one each. */
static double least_of(const double *cost, int n, int i, int left, unsigned used)
{
    if (left == 0)
        return 0;
    if (i == n)
        return INFINITY;
    double least = least_of(cost, n, i + 1, left, used);
    for (int j = 0; j < n; j++)
        if (!(used >> j & 1))
            least = fmin(least,
                         cost[i * n + j] / n + least_of(cost, n, i + 1, left - 1, used | 1u << j));
    return least;
}

/** Partial plans of k of n equal points against all ways to match k of them, which are the vertices
 *  of the plans of mass s = k / n: with the gap of Frank and Wolfe without an entropy,
 *
 *      <L, P> - least,   s log(s / n^2) + 2 (1 - s) log((1 - s) / n) - 2 + s
 *                              <= H(Q) <= (2 - s) (log(1 / n) - 1)
 *
 *  for every plan Q that gives a cell and leaves a point 1 / n at most, H with what is left on both
 *  sides, and H of a vertex is the upper end. */
static void against_all_matches(void)
{
    enum { SIDE = 6 };
    frg_context *ctx = test_context();
    int large = 0;
    for (int k = 1; k < SIDE; k++)
        for (int steps = 1; steps <= 40; steps += 13) {
            double c[SIDE * SIDE], d[SIDE * SIDE], w[SIDE], plan[SIDE * SIDE], cost[SIDE * SIDE];
            double x[SIDE * 2], y[SIDE * 2];
            for (int i = 0; i < SIDE * 2; i++) {
                x[i] = test_normal();
                y[i] = test_normal();
            }
            distances_of(x, SIDE, 2, c);
            distances_of(y, SIDE, 2, d);
            for (int i = 0; i < SIDE; i++)
                w[i] = 1.0 / SIDE;
            const gw_oracle g = {
                .n = SIDE, .m = SIDE, .c = c, .d = d, .a = w, .b = w, .mass = (double)k / SIDE};
            frg_gw_opts o = options_of(0.003);
            o.mass = g.mass;
            o.max_iter = o.min_iter = steps;
            const frg_array ac = matrix(c, SIDE, SIDE), ad = matrix(d, SIDE, SIDE);
            frg_plan_report p;
            const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &ac},
                                                (frg_gw_side){.data = &ad}, NULL, &o, plan, &p);
            CHECK_NEAR(p.mass, g.mass, 1e-12);
            cost_at(&g, plan, cost);
            const double gap = inner(cost, plan, SIDE * SIDE) - least_of(cost, SIDE, 0, k, 0);
            const double h = entropy(&g, plan), s = g.mass, e = o.epsilon;
            /* distances are floats: 1e-6 of costs of size 10 */
            const double highest = (2 - s) * (log(1.0 / SIDE) - 1),
                         lowest =
                             s * log(s / (SIDE * SIDE)) + 2 * (1 - s) * log((1 - s) / SIDE) - 2 + s,
                         least = gap + e * (h - highest) - 1e-5,
                         most = gap + e * (h - lowest) + 1e-5;
            CHECK_SAYS(r.step_gain >= least && r.step_gain <= most,
                       "%d of %d, %d steps: %g, not %g to %g", k, SIDE, steps, r.step_gain, least,
                       most);
            large += gap > 3 * (most - least);
        }
    CHECK_SAYS(large > 0, "no gap is larger than the entropy");
    frg_context_destroy(ctx);
}

static bool warned(const frg_context *ctx, const char *code)
{
    bool found = false;
    for (int w = 0; w < frg_warning_count(ctx); w++)
        found = found || strcmp(frg_warning_code(ctx, w), code) == 0;
    return found;
}

/** Two clouds of another shape, marginals relaxed or partial.  At the usual epsilon the plan is
 *  stationary; at one so small that the passes of a step do not come to an end the iteration goes
 *  round, and its energy is a plateau: that is not called converged. */
static void not_stationary(void)
{
    enum { SIDE = 20 };
    double x[SIDE * 3], y[SIDE * 2], c[SIDE * SIDE], d[SIDE * SIDE];
    frg_context *ctx = test_context();
    for (int i = 0; i < SIDE * 3; i++)
        x[i] = test_normal();
    for (int i = 0; i < SIDE * 2; i++)
        y[i] = test_normal();
    distances_of(x, SIDE, 3, c);
    distances_of(y, SIDE, 2, d);
    const frg_array ac = matrix(c, SIDE, SIDE), ad = matrix(d, SIDE, SIDE);
    int ends = 0;
    for (int way = 0; way < 6; way++) {
        const bool sound = way < 3;
        frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
        frg_gw *s = NULL;
        o.epsilon = sound ? 0.005 : 1e-5;
        o.rho_source = way % 3 == 0 ? 10 : (double)INFINITY;
        o.rho_target = way % 3 == 2 ? (double)INFINITY : 10;
        o.mass = way % 3 == 2 ? 0.99 : 0;
        frg_warnings_clear(ctx);
        if (!CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ac},
                                         (frg_gw_side){.data = &ad}, NULL, &o)))
            continue;
        const frg_status status = frg_gw_run(s, NULL);
        const frg_gw_report *const r = frg_gw_get(s);
        const bool ended = r->reason != FRG_GW_MAX_ITER;
        CHECK_TEXT(r->verdict, sound ? "the plan is stationary" : "a step from the plan is lower");
        CHECK(warned(ctx, "FRG-GW-109") != sound);
        CHECK_STATUS(status, !ended ? FRG_MAX_ITER : sound ? FRG_OK : FRG_STALLED);
        CHECK((r->reason == FRG_GW_NOT_CONFIRMED) == (ended && !sound));
        ends += ended && !sound;
        frg_gw_destroy(s);
    }
    CHECK_SAYS(ends > 0, "none of them says that it has converged");
    frg_context_destroy(ctx);
}

/** Marginals that hold and are not rounded: where the passes end before polish_tol, it is told and
 *  "converged" is not. */
static void marginals_missed(void)
{
    enum { SIDE = 12 };
    double x[SIDE * 3], c[SIDE * SIDE];
    frg_context *ctx = test_context();
    for (int i = 0; i < SIDE * 3; i++)
        x[i] = test_normal();
    distances_of(x, SIDE, 3, c);
    const frg_array ac = matrix(c, SIDE, SIDE);
    int ends = 0;
    for (int way = 0; way < 4; way++) {
        frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
        frg_gw *s = NULL;
        o.round = way == 0;
        o.rho_source = way == 2 ? 0.5 : (double)INFINITY;
        o.mass = way == 3 ? 0.9 : 0;
        o.polish_passes = 1;
        o.polish_tol = 1e-12;
        frg_warnings_clear(ctx);
        if (!CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ac},
                                         (frg_gw_side){.data = &ac}, NULL, &o)))
            continue;
        const frg_status status = frg_gw_run(s, NULL);
        const bool ended = frg_gw_get(s)->reason != FRG_GW_MAX_ITER;
        CHECK_STATUS(status, !ended ? FRG_MAX_ITER : way == 0 ? FRG_OK : FRG_STALLED);
        CHECK((frg_gw_get(s)->reason == FRG_GW_NOT_CONFIRMED) == (ended && way > 0));
        ends += ended && way > 0;
        CHECK(warned(ctx, "FRG-GW-101"));
        frg_gw_destroy(s);
    }
    CHECK_SAYS(ends > 0, "none of them has converged");
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"gains", gains},
                                  {"against all matches", against_all_matches},
                                  {"not stationary", not_stationary},
                                  {"marginals missed", marginals_missed}};
TEST_MAIN(cases)
