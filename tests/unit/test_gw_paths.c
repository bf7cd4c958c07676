/* test_graph_paths.c - graphs, nearest neighbours, shortest paths and landmarks against plain
 * references.
 *
 * The reference for lengths of paths is Floyd and Warshall in double.  Besides, the least fixed
 * point of d(t) = min over arcs (d(v) + length) in f32 is unique, as rounding is monotone: every
 * search has to give its bits, whatever its order.
 */
#include "fourge/gw.h"
#include "graph/graph.h"
#include "test.h"

typedef struct {
    int64_t n, count;
    frgi_edge *edges;
} shape;

static shape shape_make(int64_t n, int64_t room)
{
    return (shape){n, 0, calloc((size_t)room + 1, sizeof(frgi_edge))};
}

static void shape_add(shape *s, int64_t from, int64_t to, double length)
{
    s->edges[s->count++] = (frgi_edge){(int32_t)from, (int32_t)to, (float)length};
}

static shape shape_random(int64_t n, int64_t edges, double zero_share)
{
    shape s = shape_make(n, edges);
    for (int64_t e = 0; e < edges; e++)
        shape_add(&s, test_below(n), test_below(n),
                  test_uniform() < zero_share ? 0 : test_uniform());
    return s;
}

static shape shape_star(int64_t n)
{
    shape s = shape_make(n, n);
    for (int64_t v = 1; v < n; v++)
        shape_add(&s, 0, v, test_uniform());
    return s;
}

static shape shape_path(int64_t n)
{
    shape s = shape_make(n, n);
    for (int64_t v = 1; v < n; v++)
        shape_add(&s, v - 1, v, 0.1 + test_uniform());
    return s;
}

static shape shape_grid(int64_t side)
{
    shape s = shape_make(side * side, 2 * side * side);
    for (int64_t i = 0; i < side; i++) {
        for (int64_t j = 0; j < side; j++) {
            if (j + 1 < side)
                shape_add(&s, i * side + j, i * side + j + 1, test_uniform());
            if (i + 1 < side)
                shape_add(&s, i * side + j, (i + 1) * side + j, test_uniform());
        }
    }
    return s;
}

/** Lengths over ten decades: most nodes wait beyond the window of the buckets. */
static shape shape_decades(int64_t n)
{
    shape s = shape_make(n, 3 * n);
    for (int64_t e = 0; e < 3 * n; e++)
        shape_add(&s, test_below(n), test_below(n), pow(10, 10 * test_uniform() - 5));
    return s;
}

/** Sums in float along the path, the least of them: what the bits are to be. */
static void float_sums(const frg_graph *g, int64_t source, float *d)
{
    const int64_t *starts;
    const int32_t *targets;
    const float *lengths;
    frg_graph_arcs(g, &starts, &targets, &lengths);
    const int64_t n = frg_graph_get(g).n;
    for (int64_t v = 0; v < n; v++)
        d[v] = v == source ? 0 : INFINITY;
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t v = 0; v < n; v++) {
            for (int64_t e = starts[v]; e < starts[v + 1]; e++) {
                const float through = d[v] + lengths[e];
                if (through < d[targets[e]]) {
                    d[targets[e]] = through;
                    changed = true;
                }
            }
        }
    }
}

/** All pairs by Floyd and Warshall in double, from the edges as they were added: malloc's, n x
 *  n. */
static double *all_pairs(const shape *s, bool directed)
{
    const int64_t n = s->n;
    double *const d = malloc((size_t)(n * n) * sizeof *d);
    for (int64_t i = 0; i < n * n; i++)
        d[i] = i % (n + 1) == 0 ? 0 : (double)INFINITY;
    for (int64_t e = 0; e < s->count; e++) {
        const int64_t from = s->edges[e].from, to = s->edges[e].to;
        const double length = (double)(float)s->edges[e].length;
        d[from * n + to] = fmin(d[from * n + to], length);
        if (!directed)
            d[to * n + from] = fmin(d[to * n + from], length);
    }
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                d[i * n + j] = fmin(d[i * n + j], d[i * n + k] + d[k * n + j]);
    return d;
}

/** A path of h arcs has h - 1 additions, each off by 2^-24 of its sum, all terms positive, and h <
 *  n; so the least of the rounded sums is within n 2^-24 of the least sum, of itself.  Floyd and
 *  Warshall's tiles add parts of paths in another order, as many of them.  Doubles' own n 2^-53 is
 *  nothing beside it. */
static void check_lengths(const float *got, const double *want, int64_t n)
{
    for (int64_t v = 0; v < n && test_now.failures == 0; v++)
        CHECK_SAYS(isinf(want[v]) ? isinf(got[v])
                                  : fabs((double)got[v] - want[v]) <= (double)n * 0x1p-24 * want[v],
                   "%g is given, %.17g is the path's length", (double)got[v], want[v]);
}

static frg_graph *build(frg_context *ctx, shape *s, bool directed)
{
    frg_graph *g = NULL;
    CHECK_OK(ctx, frgi_graph_build(&g, ctx, s->n, s->edges, s->count, directed));
    free(s->edges);
    return g;
}

/** All pairs, a few scattered sources, and single ones: the lengths of the paths, and all the same
 *  bits, those of sums in float along the path. */
static void compare(frg_context *ctx, shape s, bool directed)
{
    double *const exact = all_pairs(&s, directed);
    frg_graph *g = build(ctx, &s, directed);
    if (!g)
        return;
    const int64_t n = s.n;
    float *all = malloc((size_t)(n * n) * sizeof *all), *row = malloc((size_t)n * sizeof *row),
          *some = malloc((size_t)(7 * n) * sizeof *some);
    frg_paths_report report;
    int64_t *backwards = malloc((size_t)n * sizeof *backwards); /* not "all", which may be dense */
    for (int64_t v = 0; v < n; v++)
        backwards[v] = n - 1 - v;
    frg_array rows = frg_matrix(all + (n - 1) * n, FRG_F32, n, n, n);
    rows.stride[0] = -n;
    CHECK_OK(ctx, frg_graph_paths(g, backwards, n, rows, &report));
    free(backwards);
    CHECK_SAYS(strncmp(report.method, "label correction", 16) == 0, "by %s", report.method);
    /* a batch looks at every arc that it reaches once or more; of a graph in parts it does not
     * reach all */
    CHECK(report.relaxations_per_arc >= (frg_graph_get(g).components == 1 && n > 1 ? 1 : 0));
    int64_t sources[7];
    for (int i = 0; i < 7; i++)
        sources[i] = i == 6 ? sources[0] : test_below(n); /* one of them twice */
    CHECK_OK(ctx, frg_graph_paths(g, sources, 7, frg_matrix(some, FRG_F32, 7, n, n), NULL));
    for (int64_t v = 0; v < n && test_now.failures == 0; v++) {
        float_sums(g, v, row);
        CHECK_BITS(all + v * n, row, (size_t)n * sizeof *row);
        check_lengths(all + v * n, exact + v * n, n);
    }
    for (int i = 0; i < 7; i++)
        CHECK_BITS(some + i * n, all + sources[i] * n, (size_t)n * sizeof *row);
    CHECK_OK(ctx, frg_graph_paths(g, sources, 1, frg_matrix(some, FRG_F32, 1, n, n), NULL));
    CHECK_BITS(some, all + sources[0] * n, (size_t)n * sizeof *row);
    free(all);
    free(row);
    free(some);
    free(exact);
    frg_graph_destroy(g);
}

static void shapes(void)
{
    frg_context *ctx = test_context();
    compare(ctx, shape_random(150, 500, 0), false);
    compare(ctx, shape_random(150, 700, 0.3), false);
    compare(ctx, shape_random(140, 90, 0.1), false); /* many components */
    compare(ctx, shape_random(150, 700, 0.1), true);
    compare(ctx, shape_star(130), false);
    compare(ctx, shape_path(200), false);
    compare(ctx, shape_grid(13), false);
    compare(ctx, shape_decades(120), false);
    shape two = shape_make(70, 2);
    shape_add(&two, 3, 69, 1);
    compare(ctx, two, false);
    frg_context_destroy(ctx);
}

/** Triangles in a row, their two ways of lengths that fall by halves: a search that takes the last
 *  node first relaxes the last triangle once for each way through those before, 2^triangles times.
 *  Visits are bounded: 64 an arc, and what one node more has of arcs.  Dijkstra's are the bits; on
 *  one thread and on three. */
static void ladder(void)
{
    enum { TRIANGLES = 24, N = 2 * TRIANGLES + 1 };
    float *bits = malloc(N * N * sizeof *bits), row[N];
    int given_up = 0;
    for (int way = 0; way < 8; way++) {
        shape s = shape_make(N, 3 * TRIANGLES);
        const bool mirrored = way & 1, directed = way & 2;
        for (int64_t i = 0; i < TRIANGLES; i++) {
            const double whole = ldexp(1, (int)(TRIANGLES - i));
            const int64_t at[] = {2 * i, 2 * i + 1, 2 * i + 2};
            shape_add(&s, mirrored ? N - 1 - at[0] : at[0], mirrored ? N - 1 - at[2] : at[2],
                      whole);
            for (int leg = 0; leg < 2; leg++)
                shape_add(&s, mirrored ? N - 1 - at[leg] : at[leg],
                          mirrored ? N - 1 - at[leg + 1] : at[leg + 1], whole / 4);
        }
        frg_context_opts c;
        frg_context_defaults(&c, sizeof c);
        c.threads = way & 4 ? 3 : 1;
        frg_context *ctx = NULL;
        CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
        frg_graph *g = build(ctx, &s, directed);
        frg_paths_report report;
        CHECK_OK(ctx, frg_graph_paths(g, NULL, N, frg_matrix(bits, FRG_F32, N, N, N), &report));
        CHECK_SAYS(report.relaxations_per_arc <= 64 + 6.0 / (double)frg_graph_get(g).arcs,
                   "%g relaxations an arc", report.relaxations_per_arc);
        given_up += strcmp(report.method, "label correction, dijkstra") == 0;
        for (int64_t v = 0; v < N; v++) {
            float_sums(g, v, row);
            CHECK_BITS(bits + v * N, row, sizeof row);
        }
        frg_graph_destroy(g);
        frg_context_destroy(ctx);
    }
    CHECK_SAYS(given_up >= 2, "%d of 8 searches gave up", given_up);
    free(bits);
}

/** A graph in two parts, node 0 in the narrow one: the distance of parts is 1.5 times the largest
 *  of all, the same however distances are held, so that no other part is nearer than a point of the
 *  same. */
static void parts(void)
{
    enum { NEAR = 9, FAR = 20, N = NEAR + FAR };
    frg_context *ctx = test_context();
    double x[N];
    for (int i = 0; i < N; i++)
        x[i] = i < NEAR ? 0.6 * i : 1000 + 4 * i;
    const frg_array points = frg_matrix(x, FRG_F64, N, 1, 1);
    static const struct {
        frg_gw_distance distance;
        frg_gw_mode mode;
        int lazy;
    } ways[] = {{FRG_GW_DISTANCE_PRECOMPUTED, FRG_GW_SAMPLED, 0},
                {FRG_GW_DISTANCE_PRECOMPUTED, FRG_GW_SAMPLED, 1},
                {FRG_GW_DISTANCE_DIJKSTRA, FRG_GW_SAMPLED, 0},
                {FRG_GW_DISTANCE_DIJKSTRA, FRG_GW_EXACT, 0},
                {FRG_GW_DISTANCE_DIJKSTRA, FRG_GW_VERTEX, 0}};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        frg_gw_opts o;
        frg_gw_defaults(&o, sizeof o);
        o.distance = ways[way].distance;
        o.mode = ways[way].mode;
        o.lazy = ways[way].lazy;
        o.k = 2;
        o.stitch = 0;
        frg_gw *s = NULL;
        const frg_gw_side side = {.data = &points};
        double d[N * N];
        CHECK_OK(ctx, frg_gw_create(&s, ctx, side, side, NULL, &o));
        CHECK_OK(ctx, frg_gw_distances(s, 0, frg_matrix(d, FRG_F64, N, N, N)));
        const double longest = 4 * (FAR - 1);
        CHECK_NEAR(d[NEAR * N + N - 1], longest, 1e-5 * longest);
        for (int i = 0; i < NEAR; i++)
            for (int k = NEAR; k < N; k++)
                CHECK_NEAR(d[i * N + k], 1.5 * longest, 1e-5 * longest);
        frg_gw_destroy(s);
    }
    frg_context_destroy(ctx);
}

/** Distances inside a side are symmetric: a directed graph is refused by the name of its side. */
static void directed_sides(void)
{
    frg_context *ctx = test_context();
    shape s = shape_path(12), again = shape_path(12);
    frg_graph *one_way = build(ctx, &s, true), *both = build(ctx, &again, false);
    for (int which = 0; which < 2; which++) {
        frg_gw *solver = NULL;
        CHECK_STATUS(frg_gw_create(&solver, ctx, (frg_gw_side){.graph = which ? both : one_way},
                                   (frg_gw_side){.graph = which ? one_way : both}, NULL, NULL),
                     FRG_UNSUPPORTED);
        CHECK(!solver && strstr(frg_message(ctx),
                                which ? "target graph is directed" : "source graph is directed"));
    }
    frg_graph_destroy(one_way);
    frg_graph_destroy(both);
    frg_context_destroy(ctx);
}

static void dense(void)
{
    frg_context *ctx = test_context();
    shape s = shape_random(150, 6000, 0.05);
    double *const exact = all_pairs(&s, false);
    frg_graph *g = build(ctx, &s, false);
    float *all = malloc(150 * 150 * sizeof *all);
    frg_paths_report report;
    CHECK_OK(ctx, frg_graph_paths(g, NULL, 150, frg_matrix(all, FRG_F32, 150, 150, 150), &report));
    CHECK_TEXT(report.method, "floyd-warshall");
    for (int64_t v = 0; v < 150; v++)
        check_lengths(all + v * 150, exact + v * 150, 150);
    free(all);
    free(exact);
    frg_graph_destroy(g);
    frg_context_destroy(ctx);
}

typedef struct {
    int calls, most;
} looks;

static int count_looks(const frg_progress *p, void *user)
{
    looks *const l = user;
    CHECK_TEXT(p->solver, "graph");
    l->calls += strcmp(p->phase, "paths") == 0;
    return l->calls == l->most;
}

/** All pairs of a dense graph ask whether to stop after each row of tiles, n 64^2 additions, and
 *  not after n^2 64 of them alone, which takes long where n is large; a stop is heeded at once. */
static void dense_looks(void)
{
    enum { N = 150, TILES = 3 };
    looks l = {0, 0};
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.threads = 1;
    c.on_progress = count_looks;
    c.user = &l;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    shape s = shape_random(N, 6000, 0.05);
    frg_graph *g = build(ctx, &s, false);
    float *all = malloc(N * N * sizeof *all);
    const frg_array to = frg_matrix(all, FRG_F32, N, N, N);
    for (int most = 0; most <= TILES * TILES; most++) { /* 0: to the end */
        frg_paths_report report;
        l = (looks){0, most};
        CHECK_STATUS(frg_graph_paths(g, NULL, N, to, &report), most ? FRG_INTERRUPTED : FRG_OK);
        CHECK_INT(l.calls, most ? most : TILES * TILES);
    }
    free(all);
    frg_graph_destroy(g);
    frg_context_destroy(ctx);
}

static void threads_and_strides(void)
{
    enum { N = 300 };
    float *one = calloc(N * N, sizeof *one), *other = calloc(N * N, sizeof *other);
    double *wide = calloc(N * N, sizeof *wide);
    for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
        test_now.random = 99;
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        shape s = shape_random(N, 900, 0.05);
        frg_graph *g = build(ctx, &s, false);
        float *to = threads == 1 ? one : other;
        CHECK_OK(ctx, frg_graph_paths(g, NULL, N, frg_matrix(to, FRG_F32, N, N, N), NULL));
        CHECK_BITS(to, one, N * N * sizeof *one);
        CHECK_OK(ctx,
                 frg_graph_paths(g, NULL, N, frg_matrix_columns(wide, FRG_F64, N, N, N), NULL));
        for (int64_t i = 0; i < N * N; i++)
            CHECK(wide[i % N * N + i / N] == (double)one[i]);
        frg_graph_destroy(g);
        frg_context_destroy(ctx);
    }
    free(one);
    free(other);
    free(wide);
}

/* ---- nearest neighbours ---------------------------------------------------------------------- */

static double squared(const float *x, int64_t i, int64_t j, int64_t d)
{
    double s = 0;
    for (int64_t c = 0; c < d; c++)
        s += ((double)x[i * d + c] - (double)x[j * d + c]) *
             ((double)x[i * d + c] - (double)x[j * d + c]);
    return s;
}

/** Is j among the k nearest of i by (distance, index)?  Distances that differ by rounding count as
 *  either. */
static void neighbours(void)
{
    static const int64_t shapes_of[][3] = {{97, 1, 1},  {97, 2, 5},   {130, 3, 12}, {64, 5, 63},
                                           {50, 70, 4}, {33, 130, 3}, {2, 1, 1}};
    frg_context *ctx = test_context();
    for (size_t c = 0; c < sizeof shapes_of / sizeof *shapes_of; c++) {
        const int64_t n = shapes_of[c][0], d = shapes_of[c][1], k = shapes_of[c][2];
        float *x = malloc((size_t)(n * d) * sizeof *x);
        for (int64_t i = 0; i < n * d; i++)
            x[i] = (float)test_normal();
        frg_graph_opts o;
        frg_graph_defaults(&o, sizeof o);
        o.k = k;
        o.stitch = 0;
        frg_graph *g = NULL;
        if (!CHECK_OK(ctx, frg_graph_knn(&g, ctx, frg_matrix(x, FRG_F32, n, d, d), &o)))
            break;
        const int64_t *starts;
        const int32_t *targets;
        const float *lengths;
        frg_graph_arcs(g, &starts, &targets, &lengths);
        int64_t wanted = 0;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++) {
                int64_t closer_i = 0, closer_j = 0;
                for (int64_t t = 0; t < n; t++) {
                    closer_i += t != i && squared(x, i, t, d) < squared(x, i, j, d);
                    closer_j += t != j && squared(x, j, t, d) < squared(x, i, j, d);
                }
                const bool want = i != j && (closer_i < k || closer_j < k);
                wanted += want;
                float found = -1;
                for (int64_t e = starts[i]; e < starts[i + 1]; e++)
                    found = targets[e] == j ? lengths[e] : found;
                CHECK_SAYS(want == (found >= 0),
                           "n %" PRId64 " d %" PRId64 ": edge %" PRId64 "-%" PRId64 " %s", n, d, i,
                           j, want ? "is missing" : "is too much");
                if (want) /* d + 3 roundings of the sum, the square and the root halve them */
                    CHECK_NEAR((double)found, sqrt(squared(x, i, j, d)),
                               (double)(fmin((double)d, 64) + 3) * 0x1p-24);
            }
        }
        CHECK_INT(frg_graph_get(g).arcs, wanted);
        frg_graph_destroy(g);
        free(x);
    }
    frg_context_destroy(ctx);
}

/** The edges of the stitched graph are those of the rule "join the component of node 0 by the
 *  shortest edge that leaves it, again and again". */
static void stitching(void)
{
    enum { N = 90, D = 2 };
    frg_context *ctx = test_context();
    float x[N * D];
    for (int64_t i = 0; i < N; i++) { /* nine clusters of ten */
        x[2 * i] = (float)(10 * (double)(i % 3) * 1.3 + test_normal() * 0.1);
        x[2 * i + 1] = (float)(10 * (double)(i / 3 % 3) * 1.7 + test_normal() * 0.1);
    }
    frg_graph_opts o;
    frg_graph_defaults(&o, sizeof o);
    o.k = 3;
    frg_graph *loose = NULL, *joined = NULL;
    o.stitch = 0;
    CHECK_OK(ctx, frg_graph_knn(&loose, ctx, frg_matrix(x, FRG_F32, N, D, D), &o));
    o.stitch = 1;
    CHECK_OK(ctx, frg_graph_knn(&joined, ctx, frg_matrix(x, FRG_F32, N, D, D), &o));
    const frg_graph_report before = frg_graph_get(loose), after = frg_graph_get(joined);
    CHECK(before.components >= 9);
    CHECK_INT(after.components, 1);
    CHECK_INT(after.stitched, before.components - 1);
    CHECK_INT(after.arcs, before.arcs + 2 * after.stitched);
    const int64_t *starts;
    const int32_t *targets;
    const float *lengths;
    frg_graph_arcs(loose, &starts, &targets, &lengths);
    frgi_edge edges[N * 12];
    int64_t count = 0;
    int32_t component[N];
    for (int64_t v = 0; v < N; v++)
        for (int64_t e = starts[v]; e < starts[v + 1]; e++)
            edges[count++] = (frgi_edge){(int32_t)v, targets[e], lengths[e]};
    frg_graph_arcs(joined, &starts, &targets, &lengths);
    while (frgi_components(N, edges, count, component) > 1) {
        int64_t p = -1, q = -1;
        double best = INFINITY;
        for (int64_t i = 0; i < N; i++) {
            for (int64_t j = 0; j < N; j++) {
                if (component[i] == component[0] && component[j] != component[0] &&
                    squared(x, i, j, D) < best) {
                    best = squared(x, i, j, D);
                    p = i;
                    q = j;
                }
            }
        }
        bool found = false;
        for (int64_t e = starts[p]; e < starts[p + 1]; e++)
            found |= targets[e] == q;
        CHECK_SAYS(found, "the edge %" PRId64 "-%" PRId64 " is missing", p, q);
        edges[count++] = (frgi_edge){(int32_t)p, (int32_t)q, 0};
    }
    frg_graph_destroy(loose);
    frg_graph_destroy(joined);
    frg_context_destroy(ctx);
}

/** Points on a grid: many edges of the same length join components, and one fewer than there are
 *  components is taken. */
static void stitching_ties(void)
{
    enum { N = 40 };
    frg_context *ctx = test_context();
    float x[N * 2];
    for (int run = 0; run < 60; run++) {
        for (int i = 0; i < 2 * N; i++)
            x[i] = (float)test_below(9);
        frg_graph_opts o;
        frg_graph_defaults(&o, sizeof o);
        o.k = 2;
        frg_graph_report report[2];
        for (int stitch = 0; stitch < 2; stitch++) {
            frg_graph *g = NULL;
            o.stitch = stitch;
            CHECK_OK(ctx, frg_graph_knn(&g, ctx, frg_matrix(x, FRG_F32, N, 2, 2), &o));
            report[stitch] = frg_graph_get(g);
            frg_graph_destroy(g);
        }
        CHECK_INT(report[1].components, 1);
        CHECK_INT(report[1].stitched, report[0].components - 1);
    }
    frg_context_destroy(ctx);
}

static void duplicates(void)
{
    enum { N = 60 };
    frg_context *ctx = test_context();
    float x[N * 2];
    for (int64_t i = 0; i < N; i++) { /* 40 equal points, 20 others */
        x[2 * i] = i < 40 ? 1 : (float)test_normal();
        x[2 * i + 1] = i < 40 ? 2 : (float)test_normal();
    }
    frg_graph_opts o;
    frg_graph_defaults(&o, sizeof o);
    o.k = 5;
    frg_graph *g = NULL;
    CHECK_OK(ctx, frg_graph_knn(&g, ctx, frg_matrix(x, FRG_F32, N, 2, 2), &o));
    CHECK_INT(frg_graph_get(g).components, 1);
    float d[N * N];
    CHECK_OK(ctx, frg_graph_paths(g, NULL, N, frg_matrix(d, FRG_F32, N, N, N), NULL));
    for (int64_t i = 0; i < N * N; i++)
        CHECK(isfinite(d[i]) && (i / N >= 40 || i % N >= 40 || d[i] == 0));
    frg_graph_destroy(g);
    for (int64_t i = 0; i < 2 * N; i++)
        x[i] = 7;
    o.k = N - 1;
    CHECK_OK(ctx, frg_graph_knn(&g, ctx, frg_matrix(x, FRG_F32, N, 2, 2), &o));
    CHECK_INT(frg_graph_get(g).arcs, N * (N - 1));
    int64_t nodes[N], found = 0;
    CHECK_OK(ctx, frg_graph_landmarks(g, N, nodes, frg_matrix(d, FRG_F32, N, N, N), &found));
    CHECK_INT(found, 1); /* all others are at distance 0 */
    frg_graph_destroy(g);
    frg_context_destroy(ctx);
}

static int stop_at_search(const frg_progress *p, void *user)
{
    int *const searches_left = user;
    if (strcmp(p->phase, "neighbours") == 0 && p->done == p->total)
        --*searches_left;
    return *searches_left == 0;
}

/** A stop in the search of neighbours, and in the one that joins components, leaves no graph, no
 *  memory, and a context that goes on; an alignment ends with it as with one in the paths. */
static void stopped(void)
{
    enum { N = 60 };
    int left;
    float x[2 * N];
    for (int i = 0; i < 2 * N; i++) /* two clouds apart */
        x[i] = (float)(test_normal() + (i < N ? 0 : 1000));
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.threads = 2;
    c.on_progress = stop_at_search;
    c.user = &left;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    const frg_array points = frg_matrix(x, FRG_F32, N, 2, 2);
    frg_graph_opts o;
    frg_graph_defaults(&o, sizeof o);
    o.k = 5;
    for (left = 1; left <= 2; left++) {
        frg_graph *g = NULL;
        const int at = left;
        CHECK_SAYS(frg_graph_knn(&g, ctx, points, &o) == FRG_INTERRUPTED && !g, "search %d", at);
        CHECK_INT(frg_bytes_held(ctx), 0);
        left = at;
    }
    frg_gw_opts a;
    frg_gw_defaults(&a, sizeof a);
    a.mode = FRG_GW_SAMPLED;
    a.k = 5;
    for (int at = 1; at <= 4; at++) { /* two of each side */
        frg_gw *s = NULL;
        left = at;
        CHECK_STATUS(frg_gw_create(&s, ctx, (frg_gw_side){.data = &points},
                                   (frg_gw_side){.data = &points}, NULL, &a),
                     FRG_INTERRUPTED);
        CHECK_STATUS(frg_gw_run(s, NULL), FRG_INTERRUPTED);
        float d[N * N];
        CHECK_STATUS(frg_gw_distances(s, 0, frg_matrix(d, FRG_F32, N, N, N)), FRG_INTERRUPTED);
        CHECK(frg_gw_plan(s) == NULL);
        frg_gw_destroy(s);
        CHECK_INT(frg_bytes_held(ctx), 0);
    }
    frg_graph *g = NULL;
    left = 3;
    CHECK_OK(ctx, frg_graph_knn(&g, ctx, points, &o));
    CHECK(g && frg_graph_get(g).components == 1 && frg_graph_get(g).stitched > 0);
    frg_graph_destroy(g);
    frg_context_destroy(ctx);
}

/* ---- landmarks ------------------------------------------------------------------------------- */

static void landmarks(void)
{
    enum { N = 80, L = 9 };
    frg_context *ctx = test_context();
    shape s = shape_random(N, 200, 0);
    for (int64_t v = 1; v < N; v++)
        s.edges[v] = (frgi_edge){(int32_t)v, (int32_t)(v - 1), 0.5f}; /* connected */
    frg_graph *g = build(ctx, &s, false);
    float all[N * N], z[N * L], every[N * N];
    int64_t nodes[N], found;
    int64_t each[N];
    for (int64_t v = 0; v < N; v++)
        each[v] = v;
    for (int64_t v = 0; v < N; v += 8) /* eight at a time: label correction, whatever the density */
        CHECK_OK(ctx,
                 frg_graph_paths(g, each + v, 8, frg_matrix(all + v * N, FRG_F32, 8, N, N), NULL));
    CHECK_OK(ctx, frg_graph_landmarks(g, L, nodes, frg_matrix(z, FRG_F32, N, L, L), &found));
    CHECK_INT(found, L);
    CHECK_INT(nodes[0], 0);
    for (int64_t l = 0; l < L; l++) {
        int64_t far = 0;
        float distance = -1;
        for (int64_t v = 0; v < N; v++) {
            float nearest = INFINITY;
            CHECK(z[v * L + l] == all[nodes[l] * N + v]);
            for (int64_t b = 0; b < l; b++)
                nearest = fminf(nearest, all[nodes[b] * N + v]);
            if (nearest > distance) {
                distance = nearest;
                far = v;
            }
        }
        if (l > 0)
            CHECK_INT(nodes[l], far);
    }
    /* lower <= d <= upper up to the roundings of paths of at most N arcs */
    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 0; j < N; j++) {
            float low, high;
            frg_landmark_bounds(z + i * L, z + j * L, L, &low, &high);
            const float slack = (N + 2) * 0x1p-23f * (1 + high), d = all[i * N + j];
            CHECK(low <= d + slack && d <= high + slack);
        }
    }
    CHECK_OK(ctx, frg_graph_landmarks(g, N, nodes, frg_matrix(every, FRG_F32, N, N, N), &found));
    for (int64_t i = 0; i < N && found == N; i++) {
        for (int64_t j = 0; j < N;
             j++) { /* every node a landmark: the lower bound is the distance */
            float low, high;
            frg_landmark_bounds(every + i * N, every + j * N, N, &low, &high);
            CHECK_NEAR((double)low, (double)all[i * N + j], (N + 2) * 0x1p-23);
        }
    }
    frg_graph_destroy(g);
    frg_context_destroy(ctx);
}

/* ---- graphs of the caller -------------------------------------------------------------------- */

static void caller(void)
{
    frg_context *ctx = test_context();
    /* 0 -> 1 (3), 0 -> 1 (2), 1 -> 0 (5), 1 -> 2 (0), 2 -> 2 (1) */
    const int64_t starts[] = {0, 2, 4, 5};
    const int32_t targets[] = {1, 1, 0, 2, 2};
    const double weights[] = {3, 2, 5, 0, 1};
    const frg_array w = frg_vector(weights, FRG_F64, 5), t = frg_vector(targets, FRG_I32, 5),
                    s = frg_vector(starts, FRG_I64, 4);
    frg_graph *g = NULL;
    double d[9];
    CHECK_OK(ctx, frg_graph_csr(&g, ctx, s, t, &w, 0));
    CHECK_INT(frg_graph_get(g).arcs, 4);
    CHECK_OK(ctx, frg_graph_paths(g, NULL, 3, frg_matrix(d, FRG_F64, 3, 3, 3), NULL));
    static const double both[] = {0, 2, 2, 2, 0, 0, 2, 0, 0};
    CHECK_BITS(d, both, sizeof d);
    frg_graph_destroy(g);
    CHECK_OK(ctx, frg_graph_csr(&g, ctx, s, t, &w, 1));
    CHECK_OK(ctx, frg_graph_paths(g, NULL, 3, frg_matrix(d, FRG_F64, 3, 3, 3), NULL));
    static const double one_way[] = {0, 2, 2, 5, 0, 0, INFINITY, INFINITY, 0};
    CHECK_BITS(d, one_way, sizeof d);
    frg_graph_destroy(g);

    const double negative[] = {3, 2, 5, -1e-300, 1};
    const frg_array bad = frg_vector(negative, FRG_F64, 5);
    CHECK_STATUS(frg_graph_csr(&g, ctx, s, t, &bad, 0), FRG_BAD_DATA);
    CHECK(g == NULL && strstr(frg_message(ctx), "-1e-300"));
    CHECK_TEXT(frg_error_where(ctx), "weights, entry 4");
    const int32_t outside[] = {1, 1, 0, 3, 2};
    CHECK_STATUS(frg_graph_csr(&g, ctx, s, frg_vector(outside, FRG_I32, 5), &w, 0), FRG_BAD_DATA);
    const int64_t falling[] = {0, 4, 2, 5};
    CHECK_STATUS(frg_graph_csr(&g, ctx, frg_vector(falling, FRG_I64, 4), t, &w, 0), FRG_BAD_DATA);
    frg_context_destroy(ctx);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void files(void)
{
    static const struct {
        const char *text, *where, *why;
        int64_t n, arcs;
    } each[] = {
        {"0 1 2\n1 2 0.5\n", NULL, NULL, 3, 4},
        {"# a comment\n3,1\r\n\n0\t2 1e3\n", NULL, NULL, 4, 4},
        {"0 1 5\n1 0 2\n1 1 1", NULL, NULL, 2, 2},
        {"%%MatrixMarket matrix coordinate pattern symmetric\n% c\n3 3 2\n2 1\n3 2\n", NULL, NULL,
         3, 4},
        {"0 1\n0 x\n", "g:2", "'x'", 0, 0},
        {"0 1\n0 1 -2\n", "g:2", "'-2'", 0, 0},
        {"0 1 nan", "g:1", "'nan'", 0, 0},
        {"0", "g:1", "from to", 0, 0},
        {"# nothing\n", "g:1", "no edges", 0, 0},
        {"0 900000000", "g:1", "1000 times", 0, 0},
        {"%%MatrixMarket matrix array real general\n", "g:1", "coordinate", 0, 0},
        {"%%MatrixMarket matrix coordinate complex general\n", "g:1", "'complex'", 0, 0},
        {"%%MatrixMarket matrix coordinate real general\n3 2 1\n", "g:2", "square", 0, 0},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1\n0 1 1\n", "g:3", "'0'", 0, 0},
        {"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n", "g:3", "1 of 2", 0, 0},
        {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n2 1 1", "g:4", "more", 0, 0},
    };
    frg_context *ctx = test_context();
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        frg_graph *g = NULL;
        const frg_status s =
            frgi_graph_parse(&g, ctx, each[i].text, (int64_t)strlen(each[i].text), "g", 0);
        if (each[i].why) {
            CHECK(s == FRG_BAD_DATA && g == NULL);
            CHECK_TEXT(frg_error_where(ctx), each[i].where);
            CHECK_SAYS(strstr(frg_message(ctx), each[i].why) != NULL, "%s: %s", each[i].text,
                       frg_message(ctx));
        } else if (CHECK_OK(ctx, s)) {
            CHECK_INT(frg_graph_get(g).n, each[i].n);
            CHECK_INT(frg_graph_get(g).arcs, each[i].arcs);
        }
        frg_graph_destroy(g);
    }
    frg_graph *g = NULL;
    CHECK_STATUS(frg_graph_read(&g, ctx, "/no/such/file", 0), FRG_NO_INPUT);
    frg_context_destroy(ctx);
}

static void refusals(void)
{
    frg_context *ctx = test_context();
    float x[] = {0, 1, 2, NAN};
    frg_graph *g = NULL;
    frg_graph_opts o;
    frg_graph_defaults(&o, sizeof o);
    o.k = 2;
    CHECK_STATUS(frg_graph_knn(&g, ctx, frg_matrix(x, FRG_F32, 4, 1, 1), &o), FRG_BAD_DATA);
    CHECK_TEXT(frg_error_where(ctx), "points, row 4, column 1");
    x[3] = 5;
    o.k = 4;
    CHECK_STATUS(frg_graph_knn(&g, ctx, frg_matrix(x, FRG_F32, 4, 1, 1), &o), FRG_BAD_ARG);
    o.k = 0;
    CHECK_STATUS(frg_graph_knn(&g, ctx, frg_matrix(x, FRG_F32, 4, 1, 1), &o), FRG_BAD_ARG);
    o.k = 9;
    o.k_clamp = 1;
    CHECK_OK(ctx, frg_graph_knn(&g, ctx, frg_matrix(x, FRG_F32, 4, 1, 1), &o));
    CHECK_INT(frg_graph_get(g).arcs, 12);
    frg_array many = frg_matrix(x, FRG_F32, 3000000000, 1, 1); /* a view of one number */
    many.stride[0] = many.stride[1] = 0;
    frg_graph *none = NULL;
    CHECK_STATUS(frg_graph_knn(&none, ctx, many, &o), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "2^31 - 2") != NULL);
    frg_gw *s = NULL;
    CHECK_STATUS(frg_gw_create(&s, ctx, (frg_gw_side){.data = &many}, (frg_gw_side){.data = &many},
                               NULL, NULL),
                 FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "2^31 - 2") != NULL);
    many.shape[1] = 3000000000;
    frg_sinkhorn *t = NULL;
    CHECK_STATUS(frg_sinkhorn_create(&t, ctx, many, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "2^31 - 2") != NULL);
    float d[16];
    const int64_t far[] = {4};
    CHECK_STATUS(frg_graph_paths(g, far, 1, frg_matrix(d, FRG_F32, 1, 4, 4), NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_graph_paths(g, NULL, 4, frg_matrix(d, FRG_F32, 3, 4, 4), NULL), FRG_BAD_ARG);
    frg_graph_destroy(g);
    CHECK_OK(ctx, frg_graph_knn(&g, ctx, frg_matrix(x, FRG_F32, 1, 1, 1), &o)); /* a single point */
    CHECK_OK(ctx, frg_graph_paths(g, NULL, 1, frg_matrix(d, FRG_F32, 1, 1, 1), NULL));
    CHECK(d[0] == 0);
    frg_graph_destroy(g);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"shapes", shapes},
                                  {"ladder", ladder},
                                  {"parts", parts},
                                  {"directed sides", directed_sides},
                                  {"dense", dense},
                                  {"dense looks", dense_looks},
                                  {"threads and strides", threads_and_strides},
                                  {"neighbours", neighbours},
                                  {"stitching", stitching},
                                  {"stitching ties", stitching_ties},
                                  {"duplicates", duplicates},
                                  {"stopped", stopped},
                                  {"landmarks", landmarks},
                                  {"caller", caller},
                                  {"files", files},
                                  {"refusals", refusals}};
TEST_MAIN(cases)
