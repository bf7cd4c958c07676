/* test_gw_plain.c - whole exact and vertex runs, and sampled steps with the pairs that were drawn,
 * beside the dense loops of tests/oracle/gw_oracle.c.
 *
 * Bound.  Exponents are float sums of n terms whose costs are 2 at most, so that costs are moved by
 * 2^-24 times 2 or some more, and Sinkhorn's iteration ends at an error of 1e-7 where the oracle's
 * goes on.  What that makes of a run depends on how far its steps contract, so the oracle's run is
 * done again three times with costs that are moved by up to 8 x 2^-24 by chance; the library's
 * plan may be as far from the oracle's as the farthest of these, and 30 times the error that the
 * iteration ends at, of which a pass leaves less than 0.97.
 */
#include "gw/gw_align.h"
#include "gw_data.h"
#include "oracle/gw_oracle.h"

enum { N = 9, M = 7, CELLS = N * M, STEPS = 24 };
static const double ENDS_AT = 1e-7;

typedef struct {
    double c[N * N], d[M * M], a[N], b[M], linear[CELLS];
} spaces;

/** Distances with a largest of 1, weights of sum 1, those of a point 0 where wanted. */
static void draw(spaces *s, bool weights)
{
    double x[N * 2], y[M * 3], most[2] = {0}, sums[2] = {0};
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal();
    for (int i = 0; i < M * 3; i++)
        y[i] = test_normal();
    distances_of(x, N, 2, s->c);
    distances_of(y, M, 3, s->d);
    for (int i = 0; i < N * N; i++)
        most[0] = fmax(most[0], s->c[i]);
    for (int j = 0; j < M * M; j++)
        most[1] = fmax(most[1], s->d[j]);
    for (int i = 0; i < N * N; i++)
        s->c[i] = (double)(float)(s->c[i] / most[0]);
    for (int j = 0; j < M * M; j++)
        s->d[j] = (double)(float)(s->d[j] / most[1]);
    for (int i = 0; i < N; i++)
        sums[0] += s->a[i] = weights ? 0.2 + test_uniform() : 1;
    for (int j = 0; j < M; j++)
        sums[1] += s->b[j] = weights ? 0.2 + test_uniform() : 1;
    for (int i = 0; i < N; i++)
        s->a[i] /= sums[0];
    for (int j = 0; j < M; j++)
        s->b[j] /= sums[1];
    for (int e = 0; e < CELLS; e++)
        s->linear[e] = (double)(float)test_uniform();
}

static gw_oracle oracle_of(const spaces *s, const frg_gw_opts *o)
{
    return (gw_oracle){.n = N,
                       .m = M,
                       .c = s->c,
                       .d = s->d,
                       .a = s->a,
                       .b = s->b,
                       .linear = o->linear_weight > 0 ? s->linear : NULL,
                       .theta = o->linear_weight,
                       .rho_source = o->rho_source,
                       .rho_target = o->rho_target,
                       .mass = o->mass,
                       .product = o->reference == FRG_GW_REFERENCE_PRODUCT};
}

static frg_gw_opts options_of(frg_gw_mode mode, double epsilon)
{
    frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
    o.mode = mode;
    o.epsilon = epsilon;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.tol = 0;
    o.max_inner = 5000;
    o.marginal_tol = ENDS_AT;
    o.polish_tol = ENDS_AT;
    o.polish_passes = 5000;
    return o;
}

/* ---- exact ----------------------------------------------------------------------------------- */

/** The plan of the run, not rounded or rounded, against the oracle's. */
static void compare_exact(frg_context *ctx, const spaces *s, frg_gw_opts *o, const char *name)
{
    const gw_oracle g = oracle_of(s, o);
    double epsilon[STEPS], want[CELLS], moved[CELLS], plan[CELLS], allowed = 30 * ENDS_AT;
    const double last = fmax(o->epsilon / 10, fmin(5e-4, o->epsilon));
    for (int t = 0; t < o->max_iter; t++)
        epsilon[t] = o->anneal == FRG_GW_ANNEAL_ITER
                         ? o->epsilon * pow(last / o->epsilon, (double)t / (double)o->max_iter)
                         : o->epsilon;
    gw_oracle_exact(&g, epsilon, o->max_iter, o->damping, 0, 0, want);
    for (uint64_t k = 1; k <= 3; k++) {
        gw_oracle_exact(&g, epsilon, o->max_iter, o->damping, 8 * 0x1p-24, k, moved);
        allowed = fmax(allowed, 30 * ENDS_AT + gw_oracle_apart(&g, want, moved));
    }
    for (int rounds = 0; rounds < 2; rounds++) {
        o->round = rounds;
        if (rounds)
            gw_oracle_round(&g, want);
        const frg_array x = matrix(s->c, N, N), y = matrix(s->d, M, M), z = matrix(s->linear, N, M);
        const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &x, .weights = s->a},
                                            (frg_gw_side){.data = &y, .weights = s->b},
                                            g.linear ? &z : NULL, o, plan, NULL);
        const double apart = gw_oracle_apart(&g, plan, want);
        CHECK_SAYS(apart <= allowed, "%s, %lld steps, rounded %d: %.2g apart, %.2g allowed", name,
                   (long long)o->max_iter, rounds, apart, allowed);
        CHECK_INT(r.outer_iterations, o->max_iter);
        /* sums in double of a plan that is given */
        CHECK_NEAR(r.energy, gw_oracle_energy(&g, plan), 1e-6);
    }
}

static void exact_runs(void)
{
    static const struct {
        const char *name;
        double epsilon, damping, theta;
        bool weights, falls, product;
    } rows[] = {
        {"equal weights", 0.1, 0.9, 0, false, false, false},
        {"weights", 0.1, 0.9, 0, true, false, false},
        {"small epsilon", 0.02, 0.9, 0, true, false, false},
        {"damped", 0.05, 0.3, 0, true, false, false},
        {"not damped", 0.05, 1, 0, true, false, false},
        {"linear cost", 0.05, 0.9, 0.4, true, false, false},
        {"linear cost alone", 0.05, 0.9, 1, true, false, false},
        {"falling epsilon", 0.3, 0.9, 0, true, true, false},
        {"entropy beside the product", 0.1, 0.9, 0, true, false, true},
    };
    frg_context *ctx = test_context();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        static const int steps[] = {1, 2, 5, STEPS};
        spaces s;
        draw(&s, rows[k].weights);
        for (int t = 0; t < 4; t++) {
            frg_gw_opts o = options_of(FRG_GW_EXACT, rows[k].epsilon);
            o.damping = rows[k].damping;
            o.linear_weight = rows[k].theta;
            o.anneal = rows[k].falls ? FRG_GW_ANNEAL_ITER : FRG_GW_ANNEAL_NONE;
            o.reference = rows[k].product ? FRG_GW_REFERENCE_PRODUCT : FRG_GW_REFERENCE_COUNTING;
            o.max_iter = o.min_iter = steps[t];
            compare_exact(ctx, &s, &o, rows[k].name);
        }
    }
    frg_context_destroy(ctx);
}

/* ---- sampled --------------------------------------------------------------------------------- */

typedef struct {
    frg_array data[2];
    frgi_distances x, y;
    frgi_level level;
    float linear[(N + FRGI_GROUP) * FRGI_PAD]; /* rows padded as the level has them */
} bed;

static bool open_bed(frg_context *ctx, bed *t, const spaces *s, const frg_gw_opts *o)
{
    t->data[0] = matrix(s->c, N, N);
    t->data[1] = matrix(s->d, M, M);
    const frg_gw_side sides[2] = {{.data = &t->data[0]}, {.data = &t->data[1]}};
    const frgi_cost_storage storage = frgi_level_storage(o, true);
    for (int e = 0; e < CELLS; e++)
        t->linear[e / M * FRGI_PAD + e % M] = (float)s->linear[e];
    return CHECK_OK(ctx, frgi_distances_open(&t->x, ctx, &sides[0], o, "source")) &&
           CHECK_OK(ctx, frgi_distances_open(&t->y, ctx, &sides[1], o, "target")) &&
           CHECK_OK(ctx,
                    frgi_level_open(&t->level, ctx, o, &t->x, &t->y, s->a, s->b,
                                    o->linear_weight > 0 ? t->linear : NULL, storage, false)) &&
           CHECK_OK(ctx, frgi_level_reset(&t->level, 0));
}

static void close_bed(bed *t)
{
    frgi_level_close(&t->level);
    frgi_distances_close(&t->x);
    frgi_distances_close(&t->y);
}

static void read_plan(frg_context *ctx, bed *t, double *plan)
{
    const struct frg_plan view = {
        .ctx = ctx, .t = &t->level.t, .report = (frg_plan_report){.n = N, .m = M}};
    CHECK_OK(ctx, frg_plan_rows(&view, 0, N, matrix(plan, N, M)));
}

/** Steps from the pairs that the library drew: each plan is Sinkhorn's of their cost.  Of 16 pairs
 *  or more distances may be taken to the nearest of 11585, which moves costs by 2 / sqrt(R) of
 *  sqrt(1/6) / 11585, root mean square (gw_level.c): four times that. */
static void compare_sampled(frg_context *ctx, const spaces *s, const frg_gw_opts *o,
                            const char *name)
{
    const gw_oracle g = oracle_of(s, o);
    const double noise =
        o->anchors < 16 ? 8 * 0x1p-24 : 8 / sqrt((double)o->anchors) * sqrt(1.0 / 6) / 11585;
    double cost[CELLS], plan[CELLS], want[CELLS], moved[CELLS];
    static bed t;
    t = (bed){.x = {0}};
    if (!open_bed(ctx, &t, s, o))
        return;
    for (int step = 0; step < 6; step++) {
        gw_oracle_pair pairs[64];
        double allowed = 30 * ENDS_AT;
        CHECK_OK(ctx, frgi_level_step(&t.level, o->max_inner, ENDS_AT));
        for (int64_t r = 0; r < o->anchors; r++)
            pairs[r] = (gw_oracle_pair){t.level.sampled.now[r].i, t.level.sampled.now[r].j};
        if (frgi_is_balanced(o))
            gw_oracle_cost_of_centred_pairs(&g, pairs, o->anchors, cost);
        else
            gw_oracle_cost_of_pairs(&g, pairs, o->anchors, cost);
        gw_oracle_sinkhorn(&g, o->epsilon, cost, want);
        for (int k = 0; k < 3; k++) {
            double other[CELLS];
            for (int e = 0; e < CELLS; e++)
                other[e] = cost[e] + noise * (2 * test_uniform() - 1);
            gw_oracle_sinkhorn(&g, o->epsilon, other, moved);
            allowed = fmax(allowed, 30 * ENDS_AT + gw_oracle_apart(&g, want, moved));
        }
        read_plan(ctx, &t, plan);
        const double apart = gw_oracle_apart(&g, plan, want);
        CHECK_SAYS(apart <= allowed, "%s, step %d: %.2g apart, %.2g allowed", name, step + 1, apart,
                   allowed);
    }
    close_bed(&t);
}

static void sampled_steps(void)
{
    static const struct {
        const char *name;
        double epsilon, rho_source, rho_target, mass, theta;
        int64_t anchors;
        bool product;
    } rows[] = {
        {"balanced", 0.1, INFINITY, INFINITY, 0, 0, 12, false},
        {"many pairs", 0.1, INFINITY, INFINITY, 0, 0, 40, false},
        {"linear cost", 0.1, INFINITY, INFINITY, 0, 0.4, 12, false},
        {"relaxed", 0.1, 0.7, 0.3, 0, 0, 12, false},
        {"one side relaxed", 0.1, INFINITY, 0.4, 0, 0, 12, false},
        {"relaxed beside the product", 0.1, 0.5, 0.5, 0, 0, 12, true},
        {"relaxed, linear cost", 0.1, 0.5, 0.5, 0, 0.3, 12, false},
        {"partial", 0.1, INFINITY, INFINITY, 0.6, 0, 12, false},
        {"partial, linear cost", 0.1, INFINITY, INFINITY, 0.8, 0.5, 12, false},
    };
    frg_context *ctx = test_context();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        spaces s;
        draw(&s, true);
        frg_gw_opts o = options_of(FRG_GW_SAMPLED, rows[k].epsilon);
        o.rho_source = rows[k].rho_source;
        o.rho_target = rows[k].rho_target;
        o.mass = rows[k].mass;
        o.linear_weight = rows[k].theta;
        o.anchors = rows[k].anchors;
        o.lambda_ema_beta = 0;
        o.reference = rows[k].product ? FRG_GW_REFERENCE_PRODUCT : FRG_GW_REFERENCE_COUNTING;
        compare_sampled(ctx, &s, &o, rows[k].name);
    }
    frg_context_destroy(ctx);
}

/* ---- vertices -------------------------------------------------------------------------------- */

enum { SIDE = 4, DRAWS = 12 };

/** The first n and m points of the spaces, weights of sum 1. */
static void shrink(spaces *s, int n, int m)
{
    double sums[2] = {0};
    for (int i = 0; i < n * n; i++)
        s->c[i] = s->c[i / n * N + i % n];
    for (int j = 0; j < m * m; j++)
        s->d[j] = s->d[j / m * M + j % m];
    for (int i = 0; i < n; i++)
        sums[0] += s->a[i];
    for (int j = 0; j < m; j++)
        sums[1] += s->b[j];
    for (int i = 0; i < n; i++)
        s->a[i] /= sums[0];
    for (int j = 0; j < m; j++)
        s->b[j] /= sums[1];
}

/** Of Euclidean distances E is concave where marginals hold, so that a vertex has the least of it.
 *  No plan is below the run's to first order, which is what it claims, and mostly no vertex at
 *  all.  Distances are floats: 1e-6. */
static void vertex_runs(void)
{
    frg_context *ctx = test_context();
    int lowest = 0;
    for (int k = 0; k < DRAWS; k++) {
        const int n = k % 2 ? SIDE : SIDE - 1, m = SIDE;
        double plan[SIDE * SIDE], cost[SIDE * SIDE], at_plan = 0;
        spaces s;
        draw(&s, true);
        shrink(&s, n, m);
        const gw_oracle g = {.n = n, .m = m, .c = s.c, .d = s.d, .a = s.a, .b = s.b};
        frg_gw_opts o;
        frg_gw_defaults(&o, sizeof o);
        o.mode = FRG_GW_VERTEX;
        o.distance = FRG_GW_DISTANCE_MATRIX;
        const frg_array x = matrix(s.c, n, n), y = matrix(s.d, m, m);
        const frg_gw_report r =
            align_sides(ctx, (frg_gw_side){.data = &x, .weights = s.a},
                        (frg_gw_side){.data = &y, .weights = s.b}, NULL, &o, plan, NULL);
        gw_oracle_cost(&g, plan, cost);
        for (int e = 0; e < n * m; e++)
            at_plan += cost[e] * plan[e];
        const double to_first_order = gw_oracle_lowest_vertex(&g, cost),
                     of_all = gw_oracle_lowest_vertex(&g, NULL);
        CHECK_NEAR(r.energy, gw_oracle_energy(&g, plan), 1e-6);
        CHECK_SAYS(to_first_order >= at_plan - 1e-6, "draw %d: %.9g to first order, the plan %.9g",
                   k, to_first_order, at_plan);
        CHECK_SAYS(r.energy >= of_all - 1e-6, "draw %d: %.9g, the lowest vertex has %.9g", k,
                   r.energy, of_all);
        lowest += r.energy <= of_all + 1e-6;
    }
    CHECK_SAYS(lowest * 4 >= DRAWS * 3, "%d of %d runs end at the lowest vertex", lowest, DRAWS);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"whole vertex runs", vertex_runs},
                                  {"whole exact runs", exact_runs},
                                  {"sampled steps", sampled_steps}};
TEST_MAIN(cases)
