/* test_gw_embed.c - joint embeddings: identical sets, signs, sizes, refusals. */
#include "fault.h"
#include "fourge/gw.h"

enum { N = 24 };

static frg_array matrix(double *x, int64_t n, int64_t d)
{
    return frg_matrix(x, FRG_F64, n, d, d);
}

typedef struct {
    double x[N * 2], cost[N * N];
    int64_t dimensions;
} problem;

/* A cloud, and a cost that leaves nothing but the identity: other entries are exp(-1 / 0.01) of the
 * diagonal. */
static problem make(void)
{
    problem p = {.dimensions = 3};
    for (int i = 0; i < 2 * N; i++)
        p.x[i] = test_uniform();
    for (int i = 0; i < N * N; i++)
        p.cost[i] = i / N != i % N;
    return p;
}

static frg_status open_both(frg_context *ctx, problem *p, frg_graph **g, frg_sinkhorn **s)
{
    frg_graph_opts o;
    frg_sinkhorn_opts t;
    frg_graph_defaults(&o, sizeof o);
    frg_sinkhorn_defaults(&t, sizeof t);
    o.k = 4;
    t.epsilon = 0.01;
    *s = NULL;
    frg_status status = frg_graph_knn(g, ctx, matrix(p->x, N, 2), &o);
    if (status >= 0)
        status = frg_sinkhorn_create(s, ctx, matrix(p->cost, N, N), NULL, NULL, &t);
    if (status >= 0)
        status = frg_sinkhorn_run(*s, NULL);
    return status;
}

/* T20: two identical sets and the plan that says so: H is symmetric, so both have the same
 * coordinates. */
static void identical_sets_of(double scale)
{
    frg_context *ctx = test_context();
    problem p = make();
    for (int i = 0; i < 2 * N; i++)
        p.x[i] *= scale;
    frg_graph *g = NULL;
    frg_sinkhorn *s = NULL;
    double query[N * 3] = {0}, anchor[N * 3] = {0};
    int64_t found = 0;
    if (!CHECK(open_both(ctx, &p, &g, &s) >= 0))
        return;
    const frg_embed_query q = {
        .graph = g, .plan = frg_sinkhorn_plan(s), .out = matrix(query, N, 3)};
    frg_embed_opts o;
    frg_embed_defaults(&o, sizeof o);
    o.dimensions = 3;
    CHECK_OK(ctx, frg_gw_embed(ctx, g, matrix(anchor, N, 3), &q, 1, &o, &found));
    CHECK_INT(found, 3);
    for (int i = 0; i < N * 3; i++)
        CHECK_NEAR(query[i], anchor[i], 1e-3);
    for (int c = 0; c < 3; c++) {
        double most = 0;
        for (int d = 0; d <= c; d++) {
            double sum = 0;
            for (int j = 0; j < N; j++)
                sum += anchor[j * 3 + c] * anchor[j * 3 + d];
            CHECK_NEAR(sum, c == d, 1e-8);
        }
        for (int j = 0; j < N; j++)
            most = fabs(anchor[j * 3 + c]) > fabs(most) ? anchor[j * 3 + c] : most;
        CHECK(most > 0);
    }
    /* S 1 = lambda / N 1 here, so that the leading vector is the constant one */
    for (int j = 0; j < N; j++)
        CHECK_NEAR(anchor[j * 3], 1 / sqrt(N), 1e-6);
    /* H is S^-2 / N: its vectors are those of S, whose residuals the squared solves leave at about
     * 1e-5 */
    const int64_t *starts;
    const int32_t *targets;
    const float *lengths;
    frg_graph_arcs(g, &starts, &targets, &lengths);
    for (int c = 0; c < 3; c++) {
        double image[N], value = 0, size = 0;
        for (int j = 0; j < N; j++) {
            image[j] = anchor[j * 3 + c] / N;
            for (int64_t a = starts[j]; a < starts[j + 1]; a++)
                image[j] += (anchor[j * 3 + c] - anchor[targets[a] * 3 + c]) / (double)lengths[a];
            value += image[j] * anchor[j * 3 + c];
            size = fmax(size, fabs(image[j]));
        }
        for (int j = 0; j < N; j++)
            CHECK_SAYS(fabs(image[j] - value * anchor[j * 3 + c]) <= 1e-3 * size, "column %d", c);
    }
    frg_sinkhorn_destroy(s);
    frg_graph_destroy(g);
    frg_context_destroy(ctx);
}

static void identical_sets(void)
{
    identical_sets_of(1);
}

/* Lengths of 1/5: Laplacians are five times as large beside lambda, and the first singular value of
 * H, that of the constant, is 25 times as far above the others, 1e5 of them and more: it may not
 * hide that these have not settled. */
static void short_lengths(void)
{
    identical_sets_of(0.2);
}

/* More dimensions than there are: N - 1; the same bits for any number of threads; two queries share
 * a space. */
static void sizes_and_threads(void)
{
    problem p = make();
    double first[2 * N * 30], other[2 * N * 30];
    for (int threads = 1; threads <= 3; threads += 2) {
        double *const to = threads == 1 ? first : other, anchor[N * 30];
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        frg_graph *g = NULL;
        frg_sinkhorn *s = NULL;
        int64_t found = 0;
        memset(to, 0, sizeof first);
        memset(anchor, 0, sizeof anchor);
        CHECK(open_both(ctx, &p, &g, &s) >= 0);
        const frg_embed_query q[2] = {
            {.graph = g, .plan = frg_sinkhorn_plan(s), .out = matrix(to, N, 30)},
            {.graph = g, .plan = frg_sinkhorn_plan(s), .out = matrix(to + N * 30, N, 30)}};
        frg_embed_opts o;
        frg_embed_defaults(&o, sizeof o);
        o.dimensions = 30;
        CHECK(frg_gw_embed(ctx, g, matrix(anchor, N, 30), q, 2, &o, &found) >= 0);
        CHECK_INT(found, N - 1);
        for (int i = 0; i < N * 30; i++)
            CHECK_NEAR(to[i], to[N * 30 + i], 1e-6);
        frg_sinkhorn_destroy(s);
        frg_graph_destroy(g);
        frg_context_destroy(ctx);
    }
    CHECK_BITS(other, first, sizeof first);
}

static void refusals(void)
{
    frg_context *ctx = test_context();
    problem p = make();
    frg_graph *g = NULL, *small = NULL;
    frg_sinkhorn *s = NULL;
    frg_graph_opts go;
    double out[N * 2] = {0};
    int64_t found = -1;
    CHECK(open_both(ctx, &p, &g, &s) >= 0);
    frg_graph_defaults(&go, sizeof go);
    go.k = 3;
    CHECK_OK(ctx, frg_graph_knn(&small, ctx, matrix(p.x, 10, 2), &go));
    frg_embed_query q = {.graph = g, .plan = NULL, .out = matrix(out, N, 2)};
    CHECK_STATUS(frg_gw_embed(ctx, g, matrix(out, N, 2), &q, 1, NULL, &found), FRG_BAD_ARG);
    q.plan = frg_sinkhorn_plan(s);
    q.graph = small;
    CHECK_STATUS(frg_gw_embed(ctx, g, matrix(out, N, 2), &q, 1, NULL, &found), FRG_BAD_ARG);
    q.graph = g;
    CHECK_STATUS(frg_gw_embed(ctx, g, matrix(out, 10, 2), &q, 1, NULL, &found), FRG_BAD_ARG);
    frg_embed_opts o;
    frg_embed_defaults(&o, sizeof o);
    o.lambda = 0;
    CHECK_STATUS(frg_gw_embed(ctx, g, matrix(out, N, 2), &q, 1, &o, &found), FRG_BAD_ARG);
    CHECK_INT(found, -1);
    frg_graph_destroy(small);
    frg_sinkhorn_destroy(s);
    frg_graph_destroy(g);
    frg_context_destroy(ctx);
}

static frg_status embed_once(frg_context *ctx, void *user, uint64_t *hash)
{
    frg_graph *g = NULL;
    frg_sinkhorn *s = NULL;
    double query[N * 2] = {0}, anchor[N * 2] = {0};
    int64_t found;
    frg_status status = open_both(ctx, user, &g, &s);
    if (status >= 0) {
        const frg_embed_query q = {
            .graph = g, .plan = frg_sinkhorn_plan(s), .out = matrix(query, N, 2)};
        status = frg_gw_embed(ctx, g, matrix(anchor, N, 2), &q, 1, NULL, &found);
    }
    if (status >= 0)
        fault_hash(hash, query, sizeof query);
    frg_sinkhorn_destroy(s);
    frg_graph_destroy(g);
    return status;
}

static void memory(void)
{
    problem p = make();
    fault_sweep("an embedding", embed_once, &p, 1);
}

static const test_case cases[] = {{"identical sets", identical_sets},
                                  {"short lengths", short_lengths},
                                  {"sizes and threads", sizes_and_threads},
                                  {"refusals", refusals},
                                  {"memory", memory}};
TEST_MAIN(cases)
