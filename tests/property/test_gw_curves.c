/* test_gw_curves.c - a spiral in the plane against a roll in space, by all three ways to distances.
 *
 * Radius 0.3 .. 1 and angle 0 .. 9 rise with the index, both coordinates of the plane get noise of
 * 0.05 on the radius, the roll a uniform third coordinate.  Points come in order of their angle:
 * Spearman's correlation of an alignment is that of indices, its absolute value counts, as a
 * mirrored curve is as good.
 */
#include "fourge/gw.h"
#include "test.h"

enum { PAIRS = 10, STREAMS = 3, WAYS = 3 };

static double *curve(int64_t n, int64_t d, double noise)
{
    double *x = malloc((size_t)(n * d) * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        const double t = (double)i / (double)(n - 1), radius = 0.3 + 0.7 * t, angle = 9 * t;
        x[i * d] = (radius + noise * test_normal()) * cos(angle);
        x[i * d + 1] = (radius + noise * test_normal()) * sin(angle);
        if (d > 2)
            x[i * d + 2] = test_uniform();
    }
    return x;
}

/** Ranks of values 0 .. most-1, ties averaged. */
static void ranks(const int64_t *x, int64_t n, int64_t most, double *rank)
{
    int64_t *below = calloc((size_t)most + 1, sizeof *below);
    for (int64_t i = 0; i < n; i++)
        below[x[i] + 1]++;
    for (int64_t v = 0; v < most; v++)
        below[v + 1] += below[v];
    for (int64_t i = 0; i < n; i++)
        rank[i] = 0.5 * (double)(below[x[i]] + below[x[i] + 1] - 1);
    free(below);
}

/** |Spearman| of i and match[i]; NaN where all matches are the same, which no bound accepts. */
static double spearman(const int64_t *match, int64_t n, int64_t m)
{
    double *rank = malloc((size_t)n * sizeof *rank), xy = 0, xx = 0, yy = 0;
    ranks(match, n, m, rank);
    for (int64_t i = 0; i < n; i++) {
        const double p = (double)i - 0.5 * (double)(n - 1), q = rank[i] - 0.5 * (double)(n - 1);
        xy += p * q;
        xx += p * p;
        yy += q * q;
    }
    free(rank);
    return fabs(xy) / sqrt(xx * yy);
}

static double align(uint64_t seed, const double *x, int64_t n, const double *y, int64_t m, int way)
{
    static const frg_gw_distance ways[WAYS] = {
        FRG_GW_DISTANCE_DIJKSTRA, FRG_GW_DISTANCE_PRECOMPUTED, FRG_GW_DISTANCE_LANDMARK};
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.seed = seed;
    c.threads = 1; /* runs are short: two threads would wait for each other */
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.distance = ways[way];
    o.k = 5;
    o.landmarks = 20;
    o.epsilon = 0.005;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.max_iter = 200;
    const frg_array ax = frg_matrix(x, FRG_F64, n, 2, 2), ay = frg_matrix(y, FRG_F64, m, 3, 3);
    frg_gw *s = NULL;
    double rho = NAN;
    int64_t *match = malloc((size_t)n * sizeof *match);
    CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay},
                                NULL, &o));
    if (s && frg_gw_run(s, NULL) >= 0 && frg_plan_argmax(frg_gw_plan(s), match) == FRG_OK)
        rho = spearman(match, n, m);
    free(match);
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
    return rho;
}

/* T23.  Nine of ten pairs, each with every stream of random numbers: a graph may have a short
 * circuit, and no alignment of its distances is then the one of the angles. */
static void spirals(int way)
{
    const int64_t n = test_size(400, 200), m = test_size(500, 250), pairs = test_size(PAIRS, 2);
    const double noise = n == 400 ? 0.05 : 0.02; /* fewer points need clearer curves */
    int64_t good = 0;
    for (int64_t p = 0; p < pairs; p++) {
        test_now.random = (uint64_t)(2 * p); /* the same ten pairs in every run */
        double *const x = curve(n, 2, noise);
        test_now.random = (uint64_t)(2 * p + 1);
        double *const y = curve(m, 3, noise);
        bool all = true;
        for (uint64_t stream = 0; stream < STREAMS; stream++)
            all = align(stream, x, n, y, m, way) >= 0.998 && all;
        good += all;
        free(x);
        free(y);
    }
    CHECK_SAYS(good >= pairs - 1, "%lld of %lld pairs", (long long)good, (long long)pairs);
}

/* T23 at 4000 x 5000, as the benchmark has it: the coarse start, three steps, the polish. */
static void large(void)
{
    const int64_t n = test_size(4000, 400), m = test_size(5000, 500);
    for (uint64_t pair = 0; pair < 2; pair++) {
        test_now.random = 2 * pair;
        double *const x = curve(n, 2, 0.05);
        test_now.random = 2 * pair + 1;
        double *const y = curve(m, 3, 0.05);
        const double rho = align(pair, x, n, y, m, 2), least = n == 4000 ? 0.999 : 0.99;
        CHECK_SAYS(rho >= least, "pair %d: %.5f", (int)pair, rho);
        free(x);
        free(y);
    }
}

static void dijkstra(void)
{
    spirals(0);
}

static void precomputed(void)
{
    spirals(1);
}

static void landmark(void)
{
    spirals(2);
}

static const test_case cases[] = {
    {"dijkstra", dijkstra}, {"precomputed", precomputed}, {"landmark", landmark}, {"large", large}};
TEST_MAIN(cases)
