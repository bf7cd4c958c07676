/* test_gw_fault.c - every allocation of graphs, paths, transport and alignment failed in turn. */
#include <math.h>
#include <unistd.h>

#include "fault.h"
#include "fourge/gw.h"
#include "gw/gw_vertex.h"

typedef struct {
    double x[40 * 2], y[45 * 2];
    int64_t n, m; /* so many of them */
    frg_gw_opts o;
    frg_sinkhorn_opts t;
} job;

static job make(void)
{
    job j = {.n = test_size(40, 20), .m = test_size(45, 22)};
    for (int i = 0; i < 80; i++)
        j.x[i] = test_normal();
    for (int i = 0; i < 90; i++)
        j.y[i] = test_normal();
    frg_gw_defaults(&j.o, sizeof j.o);
    j.o.mode = FRG_GW_SAMPLED;
    j.o.k = 5;
    j.o.max_iter = 6;
    j.o.min_iter = 5;
    j.o.anchors = 9;
    j.o.epsilon = 0.02;
    j.o.polish_passes = 5;
    frg_sinkhorn_defaults(&j.t, sizeof j.t);
    j.t.max_iter = 6;
    j.t.tol = 0;
    return j;
}

static frg_status hash_plan(const frg_plan *p, uint64_t *hash)
{
    int64_t best[64];
    double rows[64 * 64];
    const frg_plan_report r = frg_plan_get(p);
    frg_status s = frg_plan_argmax(p, best);
    if (s >= 0)
        s = frg_plan_rows(p, 0, r.n, frg_matrix(rows, FRG_F64, r.n, r.m, r.m));
    if (s >= 0) {
        fault_hash(hash, best, (size_t)r.n * sizeof *best);
        fault_hash(hash, rows, (size_t)(r.n * r.m) * sizeof *rows);
        s = frg_plan_apply(p, frg_matrix(rows, FRG_F64, r.n, 1, 1), 1,
                           frg_matrix(rows + 100, FRG_F64, r.m, 1, 1));
    }
    return s;
}

static frg_status align(frg_context *ctx, void *user, uint64_t *hash)
{
    job *const j = user;
    const frg_array x = frg_matrix(j->x, FRG_F64, j->n, 2, 2),
                    y = frg_matrix(j->y, FRG_F64, j->m, 2, 2);
    frg_gw *s = (frg_gw *)j; /* must become NULL on failure */
    frg_status status =
        frg_gw_create(&s, ctx, (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y}, NULL, &j->o);
    if (status < 0) {
        CHECK(s == NULL);
        return status;
    }
    status = frg_gw_run(s, NULL);
    if (status >= 0) {
        const frg_status read = hash_plan(frg_gw_plan(s), hash);
        fault_hash(hash, &frg_gw_get(s)->energy, sizeof(double));
        status = read < 0 ? read : status;
    }
    frg_gw_destroy(s);
    return status;
}

/** Vertices of so few points that every start is tried: with weights an uneven transport, without
 *  one an assignment. */
static frg_status vertices(frg_context *ctx, void *user, uint64_t *hash)
{
    enum { N = 9 };
    job *const j = user;
    const double weights[N] = {1, 2, 1, 2, 1, 2, 1, 2, 0};
    const int64_t n = test_size(N, 7); /* the last of them */
    frg_status status = FRG_OK;
    for (int way = 0; way < 2 && status >= 0; way++) {
        const frg_array x = frg_matrix(j->x, FRG_F64, n, 2, 2),
                        y = frg_matrix(j->y, FRG_F64, n, 2, 2);
        frg_gw *s = (frg_gw *)j;
        frg_gw_opts o = j->o;
        o.dtype = way ? FRG_GW_DTYPE_F64 : FRG_GW_DTYPE_AUTO;
        status = frg_gw_create(&s, ctx,
                               (frg_gw_side){.data = &x, .weights = way ? weights + N - n : NULL},
                               (frg_gw_side){.data = &y}, NULL, &o);
        if (status < 0) {
            CHECK(s == NULL);
            return status;
        }
        status = frg_gw_run(s, NULL);
        if (status >= 0) {
            fault_hash(hash, &frg_gw_get(s)->energy, sizeof(double));
            status = hash_plan(frg_gw_plan(s), hash);
        }
        frg_gw_destroy(s);
    }
    return status;
}

/** A plan that is judged by what the best start of a sample leads to: of more points than vertices
 *  have time for, at five places, so that the sample has five.  A large epsilon keeps the plan at
 *  the product, and one step is all it takes. */
static frg_status judged(frg_context *ctx, void *user, uint64_t *hash)
{
    enum { N = 172, M = 171, PLACES = 5 };
    static const double at[PLACES] = {0, 1, 3, 7, 12};
    static float c[N * N], d[M * M];
    const job *const j = user;
    for (int i = 0; i < N * N; i++)
        c[i] = (float)fabs(at[i / N % PLACES] - at[i % N % PLACES]);
    for (int i = 0; i < M * M; i++)
        d[i] = (float)fabs(at[i / M % PLACES] - at[i % M % PLACES]);
    const frg_array x = frg_matrix(c, FRG_F32, N, N, N), y = frg_matrix(d, FRG_F32, M, M, M);
    frg_gw *s = NULL;
    frg_status status =
        frg_gw_create(&s, ctx, (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y}, NULL, &j->o);
    if (status < 0)
        return status;
    status = frg_gw_run(s, NULL);
    if (status >= 0) {
        const frg_gw_report *const r = frg_gw_get(s);
        CHECK_INT(r->verdict_points, PLACES);
        CHECK(isfinite(r->other_energy)); /* it led to another plan */
        fault_hash(hash, &r->other_energy, sizeof r->other_energy);
    }
    frg_gw_destroy(s);
    return status;
}

/** What more than a few points take: floats, distances of low rank, exchanges. */
static frg_status lifted(frg_context *ctx, void *user, uint64_t *hash)
{
    enum { N = 17, LD = 32 };
    static float x[N * LD];
    double weights[N];
    frgi_features f = {0};
    frgi_descent d = {0};
    graph_tasks tasks = {0};
    (void)user;
    for (int i = 0; i < N; i++) {
        weights[i] = 1.0 / N;
        for (int k = 0; k < N; k++)
            x[i * LD + k] = (float)fabs(sin(i) - sin(k));
    }
    frgi_spaces s = {.ctx = ctx, .n = N, .m = N, .single = true, .a = weights, .b = weights};
    s.x = s.y = (frgi_costs){x, N, N, LD, true};
    frgi_spaces_finish(&s);
    frg_status status = frgi_features_open(&f, &s, false);
    if (status >= 0)
        status = frgi_features_lift(&f);
    if (status >= 0)
        status = frgi_descent_open(&d, &s, 2);
    if (status >= 0) {
        d.tasks = &tasks;
        frgi_start_costs(&f, 2, &d);
        frgi_descent_begin(&d);
        frgi_descend(&d, 10);
        frgi_descent_swap(&d);
        fault_hash(hash, &d.energy, sizeof d.energy);
    }
    frgi_descent_close(&d);
    frgi_features_close(&f);
    return status;
}

/** Lists of columns, which assignments of many points have. */
static frg_status assignment(frg_context *ctx, void *user, uint64_t *hash)
{
    frgi_assign a;
    (void)user;
    const frg_status status = frgi_assign_open(&a, ctx, 520, true);
    fault_hash(hash, &a.n, sizeof a.n);
    frgi_assign_close(&a, ctx);
    return status;
}

/** A file of this process's own: the same program may run elsewhere. */
static const char *state_path(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/fourge_gw_fault_%d.state", (int)getpid());
    return path;
}

/** Saves the state before the third step, in a file where there is a name. */
typedef struct {
    frg_checkpoint *state;
    int calls;
} keeper;

static frg_status keep_third(void *user, const frg_gw *s, int stopped)
{
    keeper *const k = user;
    (void)stopped;
    if (++k->calls != 3)
        return FRG_OK;
    frg_status status = frg_gw_save(s, k->state);
    if (status >= 0)
        status = frg_checkpoint_save(k->state, state_path());
    return status;
}

static frg_status stop_and_go_on(frg_context *ctx, void *user, uint64_t *hash)
{
    job *const j = user;
    const frg_array x = frg_matrix(j->x, FRG_F64, j->n, 2, 2),
                    y = frg_matrix(j->y, FRG_F64, j->m, 2, 2);
    const frg_gw_side from = {.data = &x}, to = {.data = &y};
    keeper k = {0};
    frg_gw *s = NULL;
    frg_checkpoint *loaded = NULL;
    frg_status status = frg_checkpoint_create(&k.state, ctx, "gw", 0, 0);
    if (status >= 0)
        status = frg_gw_create(&s, ctx, from, to, NULL, &j->o);
    if (status >= 0) {
        frg_gw_keep(s, keep_third, &k);
        status = frg_gw_run(s, NULL);
    }
    frg_gw_destroy(s);
    s = NULL;
    frg_checkpoint_destroy(k.state);
    if (status >= 0)
        status = frg_checkpoint_load(&loaded, ctx, state_path());
    if (status >= 0)
        status = frg_gw_create(&s, ctx, from, to, NULL, &j->o);
    if (status >= 0)
        status = frg_gw_resume(s, loaded);
    if (status >= 0)
        status = frg_gw_run(s, NULL);
    if (status >= 0) {
        const frg_status read = hash_plan(frg_gw_plan(s), hash);
        status = read < 0 ? read : status;
    }
    frg_gw_destroy(s);
    frg_checkpoint_destroy(loaded);
    return status;
}

static frg_status transport(frg_context *ctx, void *user, uint64_t *hash)
{
    job *const j = user;
    frg_sinkhorn *s = (frg_sinkhorn *)j;
    frg_status status =
        frg_sinkhorn_create(&s, ctx, frg_matrix(j->x, FRG_F64, 8, 9, 9), NULL, NULL, &j->t);
    if (status < 0) {
        CHECK(s == NULL);
        return status;
    }
    status = frg_sinkhorn_run(s, NULL);
    if (status >= 0) {
        const frg_status read = hash_plan(frg_sinkhorn_plan(s), hash);
        status = read < 0 ? read : status;
    }
    frg_sinkhorn_destroy(s);
    return status;
}

static frg_status paths(frg_context *ctx, void *user, uint64_t *hash)
{
    job *const j = user;
    frg_graph *g = (frg_graph *)j;
    frg_graph_opts o;
    frg_graph_defaults(&o, sizeof o);
    o.k = 2;
    frg_status status = frg_graph_knn(&g, ctx, frg_matrix(j->x, FRG_F64, 40, 2, 2), &o);
    if (status < 0) {
        CHECK(g == NULL);
        return status;
    }
    const int64_t sources[] = {3, 1, 4, 15, 9, 2};
    float rows[6 * 40];
    int64_t nodes[4], found;
    double z[40 * 4];
    status = frg_graph_paths(g, sources, 6, frg_matrix(rows, FRG_F32, 6, 40, 40), NULL);
    if (status >= 0)
        status = frg_graph_landmarks(g, 4, nodes, frg_matrix(z, FRG_F64, 40, 4, 4), &found);
    fault_hash(hash, rows, status < 0 ? 0 : sizeof rows);
    frg_graph_destroy(g);
    return status;
}

/** Lengths that fall by halves: searches of 16 sources that give up. */
static frg_status ladder(frg_context *ctx, void *user, uint64_t *hash)
{
    enum { TRIANGLES = 20, N = 2 * TRIANGLES + 1, ARCS = 3 * TRIANGLES };
    int64_t starts[N + 1] = {0}, targets[ARCS], at = 0;
    double lengths[ARCS];
    float rows[N * N];
    for (int64_t v = 0; v < N; v++) {
        const double whole = ldexp(1, (int)(TRIANGLES - v / 2));
        if (v + 1 < N) {
            targets[at] = v + 1;
            lengths[at++] = whole / 4;
        }
        if (v % 2 == 0 && v + 2 < N) {
            targets[at] = v + 2;
            lengths[at++] = whole;
        }
        starts[v + 1] = at;
    }
    frg_graph *g = (frg_graph *)user;
    const frg_array weights = frg_vector(lengths, FRG_F64, ARCS);
    frg_status status = frg_graph_csr(&g, ctx, frg_vector(starts, FRG_I64, N + 1),
                                      frg_vector(targets, FRG_I64, ARCS), &weights, 1);
    frg_paths_report report;
    if (status >= 0)
        status = frg_graph_paths(g, NULL, N, frg_matrix(rows, FRG_F32, N, N, N), &report);
    if (status >= 0)
        CHECK_TEXT(report.method, "label correction, dijkstra");
    fault_hash(hash, rows, status < 0 ? 0 : sizeof rows);
    frg_graph_destroy(g);
    return status;
}

static frg_status read_graph(frg_context *ctx, void *user, uint64_t *hash)
{
    frg_graph *g = (frg_graph *)user;
    const frg_status status =
        frg_graph_read(&g, ctx, FOURGE_SOURCE_DIR "/tests/fuzz/corpus/graph/triangle.mtx", 0);
    if (status < 0) {
        CHECK(g == NULL);
        return status;
    }
    const int64_t arcs = frg_graph_get(g).arcs;
    fault_hash(hash, &arcs, sizeof arcs);
    frg_graph_destroy(g);
    return status;
}

static void memory(void)
{
    static const struct {
        const char *name;
        frg_gw_distance distance;
        frg_gw_mode mode;
        frg_gw_multiscale multiscale;
    } each[] = {{"precomputed", FRG_GW_DISTANCE_PRECOMPUTED, FRG_GW_SAMPLED, FRG_GW_MULTISCALE_OFF},
                {"dijkstra", FRG_GW_DISTANCE_DIJKSTRA, FRG_GW_SAMPLED, FRG_GW_MULTISCALE_OFF},
                {"coarse start", FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_SAMPLED, FRG_GW_MULTISCALE_ON},
                {"exact", FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_EXACT, FRG_GW_MULTISCALE_OFF},
                {"landmark", FRG_GW_DISTANCE_LANDMARK, FRG_GW_LANDMARK, FRG_GW_MULTISCALE_OFF}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        job j = make();
        j.o.distance = each[i].distance;
        j.o.mode = each[i].mode;
        j.o.multiscale = each[i].multiscale;
        if (each[i].mode != FRG_GW_SAMPLED) { /* these draw no pairs */
            frg_gw_opts usual;
            frg_gw_defaults(&usual, sizeof usual);
            j.o.anchors = usual.anchors;
        }
        const int64_t k = fault_sweep(each[i].name, align, &j, 1);
        printf("# %s: %" PRId64 " allocations\n", each[i].name, k);
    }
    job plain = make();
    frg_gw_defaults(&plain.o, sizeof plain.o);
    plain.o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
    plain.o.mode = FRG_GW_VERTEX;
    plain.o.max_iter = 4;
    fault_sweep("vertices", vertices, &plain, 1);
    fault_sweep("lifted", lifted, &plain, 1);
    fault_sweep("an assignment", assignment, &plain, 1);
    for (int mode = 0; mode < 3; mode++) {
        job j = make();
        j.o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
        j.o.multiscale = mode == 1 ? FRG_GW_MULTISCALE_ON : FRG_GW_MULTISCALE_OFF;
        j.o.rank = mode == 2 ? 3 : 0;
        fault_sweep_once("a saved alignment", stop_and_go_on, &j, 1);
    }
    for (int store = 0; store <= FRG_GW_STORE_F64; store++) {
        job j = make();
        j.t.cost_store = (frg_gw_store)store;
        fault_sweep("sinkhorn", transport, &j, 1);
    }
    job j = make();
    fault_sweep("paths", paths, &j, 2);
    fault_sweep("paths by two ways", ladder, &j, 1);
    fault_sweep("a graph file", read_graph, &j, 1);
}

static void verdict(void)
{
    job j = make();
    j.o.distance = FRG_GW_DISTANCE_MATRIX;
    j.o.multiscale = FRG_GW_MULTISCALE_OFF;
    j.o.start_from = FRG_GW_START_PRODUCT;
    j.o.anneal = FRG_GW_ANNEAL_NONE;
    j.o.epsilon = 1;
    j.o.n_start = j.o.max_iter = j.o.min_iter = j.o.polish_passes = 1;
    const int64_t k = fault_sweep_once("a verdict", judged, &j, 1);
    printf("# a verdict: %" PRId64 " allocations\n", k);
    for (int partial = 0; partial < 2; partial++) {
        job of_parts = make();
        of_parts.o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
        of_parts.o.multiscale = FRG_GW_MULTISCALE_OFF;
        of_parts.o.n_start = of_parts.o.max_iter = of_parts.o.min_iter = 1;
        of_parts.o.mass = partial ? 0.5 : 0;
        of_parts.o.rho_source = partial ? (double)INFINITY : 0.5;
        fault_sweep("an audit", align, &of_parts, 1);
    }
}

static void files(void)
{
    job j = make();
    fault_sweep_files("a graph file", read_graph, &j);
    j.o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
    fault_sweep_files("a saved alignment", stop_and_go_on, &j);
    char spare[80];
    snprintf(spare, sizeof spare, "%s~", state_path());
    remove(state_path());
    remove(spare);
}

static const test_case cases[] = {{"memory", memory}, {"verdict", verdict}, {"files", files}};
TEST_MAIN(cases)
