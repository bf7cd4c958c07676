/* test_gw_state.c - alignments that are stopped, killed or refused anywhere and go on: the same bits, or an error. */
#include <unistd.h>

#include "fourge/gw.h"
#include "test.h"

enum { N = 60, M = 52, CELLS = N * M };

typedef struct {
    const char *name;
    frg_gw_mode mode;
    frg_gw_distance distance;
    frg_gw_multiscale multiscale;
    int64_t rank;
    double mass, linear_weight, damping;
    frg_gw_anneal anneal;
    int store_plan, diag_exact;
} kind;

static const kind kinds[] = {{"averaged costs", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN,
                              FRG_GW_MULTISCALE_OFF, 0, 0, 0, 0.9, FRG_GW_ANNEAL_PROGRESS, 0, 0},
                             {"a cache of rows", FRG_GW_SAMPLED, FRG_GW_DISTANCE_DIJKSTRA,
                              FRG_GW_MULTISCALE_OFF, 0, 0, 0, 0.4, FRG_GW_ANNEAL_ITER, 0, 0},
                             {"a coarse start", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN,
                              FRG_GW_MULTISCALE_ON, 0, 0, 0, 0.9, FRG_GW_ANNEAL_PROGRESS, 0, 0},
                             {"partial mass", FRG_GW_SAMPLED, FRG_GW_DISTANCE_LANDMARK,
                              FRG_GW_MULTISCALE_OFF, 0, 0.7, 0, 0.9, FRG_GW_ANNEAL_NONE, 0, 0},
                             {"a linear cost", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN,
                              FRG_GW_MULTISCALE_OFF, 0, 0, 0.3, 1, FRG_GW_ANNEAL_PROGRESS, 0, 0},
                             {"exact", FRG_GW_EXACT, FRG_GW_DISTANCE_EUCLIDEAN,
                              FRG_GW_MULTISCALE_OFF, 0, 0, 0, 0.9, FRG_GW_ANNEAL_PROGRESS, 0, 0},
                             {"landmark", FRG_GW_LANDMARK, FRG_GW_DISTANCE_LANDMARK,
                              FRG_GW_MULTISCALE_OFF, 0, 0, 0, 0.9, FRG_GW_ANNEAL_PROGRESS, 0, 0},
                             {"factors", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN,
                              FRG_GW_MULTISCALE_OFF, 6, 0, 0, 0.9, FRG_GW_ANNEAL_PROGRESS, 0, 0},
                             {"a plan that is kept", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN,
                              FRG_GW_MULTISCALE_ON, 0, 0, 0, 0.6, FRG_GW_ANNEAL_NONE, 1, 0},
                             {"exact terms", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN,
                              FRG_GW_MULTISCALE_OFF, 0, 0.7, 0, 0.6, FRG_GW_ANNEAL_NONE, 1, 1}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static double points_x[N * 2], points_y[M * 3], linear[CELLS];
static char path[] = "/tmp/fourge_gw_state_XXXXXX";

/* What a run does at its states: counts them, saves one, and ends there in one of three ways. */
typedef enum { RUNS_ON, IS_KILLED, IS_STOPPED } ending;
typedef struct {
    frg_context *ctx;
    int64_t calls, at;
    ending how;
    bool said_stopped;
} keeper;

static frg_status write_state(keeper *k, const frg_gw *s)
{
    frg_checkpoint *c = NULL;
    frg_status status = frg_checkpoint_create(&c, k->ctx, "gw", 1, 2);
    if (status >= 0)
        status = frg_gw_save(s, c);
    if (status >= 0)
        status = frg_checkpoint_save(c, path);
    frg_checkpoint_destroy(c);
    return status;
}

static frg_status keep(void *user, const frg_gw *s, int stopped)
{
    keeper *const k = user;
    if (stopped) {
        k->said_stopped = true;
        return write_state(k, s);
    }
    if (++k->calls != k->at)
        return FRG_OK;
    if (k->how == IS_STOPPED) {
        frg_interrupt(k->ctx);
        return FRG_OK;
    }
    const frg_status status = write_state(k, s);
    return status < 0 ? status : k->how == IS_KILLED ? FRG_IO : FRG_OK;
}

static void make_points(void)
{
    for (int i = 0; i < N * 2; i++)
        points_x[i] = test_normal();
    for (int i = 0; i < M * 3; i++)
        points_y[i] = test_normal();
    for (int i = 0; i < CELLS; i++)
        linear[i] = test_uniform();
}

static frg_gw *open_kind(frg_context *ctx, const kind *k)
{
    const frg_array x = frg_matrix(points_x, FRG_F64, N, 2, 2),
                    y = frg_matrix(points_y, FRG_F64, M, 3, 3),
                    l = frg_matrix(linear, FRG_F64, N, M, M);
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = k->mode;
    o.distance = k->distance;
    o.multiscale = k->multiscale;
    o.rank = k->rank;
    o.mass = k->mass;
    o.linear_weight = k->linear_weight;
    o.damping = k->damping;
    o.anneal = k->anneal;
    o.store_plan = k->store_plan;
    o.diag_exact = k->diag_exact;
    o.epsilon = 0.01;
    o.k = 8;
    o.landmarks = 12;
    o.cache_rows = 20;
    o.max_iter = k->mode == FRG_GW_EXACT ? 12 : 60;
    o.min_iter = 10;
    o.polish_passes = 30;
    frg_gw *s = NULL;
    CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y},
                                k->linear_weight > 0 ? &l : NULL, &o));
    return s;
}

typedef struct {
    double plan[CELLS];
    double energy;
    int64_t counts[4];
    frg_status status;
} result;

static void read_result(frg_context *ctx, frg_gw *s, result *r)
{
    memset(r->plan, 0, sizeof r->plan);
    if (CHECK(s && frg_gw_plan(s)))
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, N, frg_matrix(r->plan, FRG_F64, N, M, M)));
    const frg_gw_report *const report = frg_gw_get(s);
    r->energy = report->energy;
    r->counts[0] = report->outer_iterations;
    r->counts[1] = report->coarse_iterations;
    r->counts[2] = report->inner_iterations;
    r->counts[3] = (int64_t)report->reason;
}

/** Runs kind k to its end or to the state `at`; returns how many states there were. */
static int64_t run_to(const kind *k, int threads, int64_t at, ending how, result *out)
{
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    keeper keeps = {.ctx = ctx, .at = at, .how = how};
    frg_gw *s = open_kind(ctx, k);
    frg_gw_keep(s, keep, &keeps);
    const frg_status status = frg_gw_run(s, NULL);
    if (at == 0) {
        CHECK_SAYS(status >= 0, "%s: %s", k->name, frg_message(ctx));
        out->status = status;
        read_result(ctx, s, out);
    } else if (how == IS_STOPPED) {
        CHECK_STATUS(status, FRG_INTERRUPTED);
        CHECK_SAYS(keeps.said_stopped, "%s, state %" PRId64, k->name, at);
        CHECK_INT(frg_gw_get(s)->reason, FRG_GW_CANCELLED);
        read_result(ctx, s, out); /* the best plan so far */
        double mass = 0;
        for (int i = 0; i < CELLS; i++)
            mass += out->plan[i];
        CHECK_NEAR(mass, k->mass > 0 ? k->mass : 1, 1e-9);
    } else if (how == IS_KILLED) {
        CHECK_STATUS(status, FRG_IO);
    }
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
    return keeps.calls;
}

static frg_status go_on(const kind *k, int threads, result *out)
{
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    frg_checkpoint *c = NULL;
    frg_status status = FRG_IO;
    frg_gw *s = open_kind(ctx, k);
    if (CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path)) && CHECK_OK(ctx, frg_gw_resume(s, c))) {
        status = frg_gw_run(s, NULL);
        CHECK_SAYS(status >= 0, "%s: %s", k->name, frg_message(ctx));
        read_result(ctx, s, out);
        out->status = status;
    }
    frg_checkpoint_destroy(c);
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
    return status;
}

static void same_bits(void)
{
    static result whole, stopped, resumed;
    const int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    make_points();
    for (int i = 0; i < KINDS; i++) {
        const kind *const k = &kinds[i];
        printf("# %s\n", k->name);
        fflush(stdout);
        const int64_t calls = run_to(k, 1, 0, RUNS_ON, &whole);
        CHECK_SAYS(calls > 5, "%s: %" PRId64 " states", k->name, calls);
        const int64_t places[] = {1, calls / 5 + 1, calls / 2, calls * 2 / 3, calls - 1, calls};
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            const ending how = p % 2 ? IS_STOPPED : IS_KILLED;
            run_to(k, 1, places[p], how, &stopped);
            go_on(k, p == 2 ? 3 : 1, &resumed);
            CHECK_SAYS(memcmp(whole.plan, resumed.plan, sizeof whole.plan) == 0 &&
                           memcmp(whole.counts, resumed.counts, sizeof whole.counts) == 0 &&
                           whole.energy == resumed.energy && whole.status == resumed.status,
                       "%s, state %" PRId64 " of %" PRId64 ": energy %.17g and %.17g, %" PRId64
                       " and %" PRId64 " steps, %" PRId64 " and %" PRId64 " coarse, %" PRId64
                       " and %" PRId64 " passes",
                       k->name, places[p], calls, whole.energy, resumed.energy, whole.counts[0],
                       resumed.counts[0], whole.counts[1], resumed.counts[1], whole.counts[2],
                       resumed.counts[2]);
        }
    }
    remove(path);
    char older[sizeof path + 1];
    snprintf(older, sizeof older, "%s~", path);
    remove(older);
    strcpy(path, "/tmp/fourge_gw_state_XXXXXX");
}

static const test_case cases[] = {{"same bits", same_bits}};
TEST_MAIN(cases)
