/* test_gw_state.c - alignments that are stopped, killed or refused anywhere and go on: the same
 * bits, or an error. */
#include "fields.h"
#include "fourge/gw.h"
#include "state.h"

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
    frg_gw_start start_from;
} kind;

static const kind kinds[] = {
    {"averaged costs", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_MULTISCALE_OFF, 0, 0, 0,
     0.9, FRG_GW_ANNEAL_PROGRESS, 0, 0, FRG_GW_START_AUTO},
    {"a cache of rows", FRG_GW_SAMPLED, FRG_GW_DISTANCE_DIJKSTRA, FRG_GW_MULTISCALE_OFF, 0, 0, 0,
     0.4, FRG_GW_ANNEAL_ITER, 0, 0, FRG_GW_START_AUTO},
    {"a coarse start", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_MULTISCALE_ON, 0, 0, 0,
     0.9, FRG_GW_ANNEAL_PROGRESS, 0, 0, FRG_GW_START_AUTO},
    {"partial mass", FRG_GW_SAMPLED, FRG_GW_DISTANCE_LANDMARK, FRG_GW_MULTISCALE_OFF, 0, 0.7, 0,
     0.9, FRG_GW_ANNEAL_NONE, 0, 0, FRG_GW_START_AUTO},
    {"a linear cost", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_MULTISCALE_OFF, 0, 0, 0.3,
     1, FRG_GW_ANNEAL_PROGRESS, 0, 0, FRG_GW_START_AUTO},
    {"exact", FRG_GW_EXACT, FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_MULTISCALE_OFF, 0, 0, 0, 0.9,
     FRG_GW_ANNEAL_PROGRESS, 0, 0, FRG_GW_START_AUTO},
    {"landmark", FRG_GW_LANDMARK, FRG_GW_DISTANCE_LANDMARK, FRG_GW_MULTISCALE_OFF, 0, 0, 0, 0.9,
     FRG_GW_ANNEAL_PROGRESS, 0, 0, FRG_GW_START_AUTO},
    {"factors", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_MULTISCALE_OFF, 6, 0, 0, 0.9,
     FRG_GW_ANNEAL_PROGRESS, 0, 0, FRG_GW_START_AUTO},
    {"a plan that is kept", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_MULTISCALE_ON, 0, 0,
     0, 0.6, FRG_GW_ANNEAL_NONE, 1, 0, FRG_GW_START_AUTO},
    {"exact terms", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_MULTISCALE_OFF, 0, 0.7, 0,
     0.6, FRG_GW_ANNEAL_NONE, 1, 1, FRG_GW_START_AUTO},
    {"from a vertex", FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_MULTISCALE_OFF, 0, 0, 0,
     0.9, FRG_GW_ANNEAL_PROGRESS, 0, 0, FRG_GW_START_VERTEX}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static double points_x[N * 2], points_y[M * 3], linear[CELLS];
static char path[sizeof STATE_PATH];

static frg_status put_state(const void *solver, frg_checkpoint *c)
{
    return frg_gw_save(solver, c);
}

/** A frg_gw_saver, user a keeper. */
static frg_status keep_run(void *user, const frg_gw *s, int stopped)
{
    return keep(user, s, stopped);
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
    o.start_from = k->start_from;
    o.k = 8;
    o.landmarks = 12;
    o.cache_rows = 20;
    o.max_iter = k->mode == FRG_GW_EXACT ? 12 : 60;
    if (k->mode != FRG_GW_VERTEX) {
        o.epsilon = 0.01;
        o.min_iter = 10;
        o.polish_passes = 30;
    }
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
    keeper keeps = {.ctx = ctx, .name = "gw", .put = put_state, .path = path, .at = at, .how = how};
    frg_gw *s = open_kind(ctx, k);
    frg_gw_keep(s, keep_run, &keeps);
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
    open_path(path);
    make_points();
    for (int i = 0; i < KINDS; i++) {
        if (!test_turn(i, 4))
            continue;
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
    close_path(path);
}

/** The steps after a coarse start average from the first or, of a broad plan, from the second on:
 *  which, the state says. */
static void last_steps(void)
{
    static result whole, resumed;
    const kind *k = kinds;
    while (strcmp(k->name, "a plan that is kept") != 0)
        k++;
    open_path(path);
    for (int draw = 0; draw < 8; draw++) {
        make_points();
        const int64_t calls = run_to(k, 1, 0, RUNS_ON, &whole);
        for (int64_t at = calls - 2; at <= calls; at++) {
            run_to(k, 1, at, IS_KILLED, &resumed);
            go_on(k, 1, &resumed);
            CHECK_SAYS(memcmp(whole.plan, resumed.plan, sizeof whole.plan) == 0,
                       "draw %d, state %" PRId64 " of %" PRId64, draw, at, calls);
        }
    }
    close_path(path);
}

/* The mode vertex has one state, before its starts, from which a run begins anew. */
static void begins_anew(void)
{
    static const kind vertex = {.name = "vertex",
                                .mode = FRG_GW_VERTEX,
                                .distance = FRG_GW_DISTANCE_EUCLIDEAN,
                                .damping = 0.9};
    static result whole, stopped, resumed;
    open_path(path);
    make_points();
    CHECK_INT(run_to(&vertex, 1, 0, RUNS_ON, &whole), 1);
    for (int how = 0; how < 2; how++) {
        run_to(&vertex, 1, 1, how ? IS_STOPPED : IS_KILLED, &stopped);
        go_on(&vertex, how ? 3 : 1, &resumed);
        CHECK_SAYS(memcmp(whole.plan, resumed.plan, sizeof whole.plan) == 0 &&
                       memcmp(whole.counts, resumed.counts, sizeof whole.counts) == 0 &&
                       whole.energy == resumed.energy && whole.status == resumed.status,
                   "%d: energy %.17g and %.17g, %" PRId64 " and %" PRId64 " steps, status %d, %d",
                   how, whole.energy, resumed.energy, whole.counts[0], resumed.counts[0],
                   (int)whole.status, (int)resumed.status);
    }
    close_path(path);
}

/* ---- states of other options ----------------------------------------------------------------- */

/* An option of every kind at a value that it has not got by default, and the distances with which
 * it matters.  One that decides bits is refused by a run that is resumed; of the others a run may
 * be at one value and go on at another. */
#define GW(name, kind, value, what, distance)                                                      \
    FIELD(frg_gw_opts, name, kind, value, what, FRG_GW_DISTANCE_##distance)
static const field others[] = {
    GW(mode, INT, FRG_GW_EXACT, DECIDES, AUTO),
    GW(distance, INT, FRG_GW_DISTANCE_EUCLIDEAN, DECIDES, PRECOMPUTED),
    GW(k, INT64, 9, DECIDES, PRECOMPUTED),
    GW(k_clamp, INT, 1, LEAVES_BITS, PRECOMPUTED), /* of a k that is none too large */
    GW(stitch, INT, 0, LEAVES_BITS, PRECOMPUTED),  /* of a graph in one piece */
    GW(landmarks, INT64, 13, DECIDES, LANDMARK),
    GW(anchors, INT64, 81, DECIDES, AUTO),
    GW(epsilon, REAL, 0.011, DECIDES, AUTO),
    GW(anneal, INT, FRG_GW_ANNEAL_ITER, DECIDES, AUTO),
    GW(damping, REAL, 0.8, DECIDES, AUTO),
    GW(max_iter, INT64, 61, DECIDES, AUTO),
    GW(min_iter, INT64, 11, DECIDES, AUTO),
    GW(tol, REAL, 2e-5, DECIDES, AUTO),
    GW(max_inner, INT64, 4, DECIDES, AUTO),
    GW(marginal_tol, REAL, 6e-4, DECIDES, AUTO),
    GW(mass, REAL, 0.7, DECIDES, AUTO),
    GW(rho_source, REAL, 1, DECIDES, AUTO),
    GW(rho_target, REAL, 1, DECIDES, AUTO),
    GW(reference, INT, FRG_GW_REFERENCE_PRODUCT, DECIDES, AUTO),
    GW(linear_weight, REAL, 0.4, DECIDES, AUTO),
    GW(lambda_ema_beta, REAL, 0.6, DECIDES, AUTO),
    GW(scale, INT, FRG_GW_SCALE_NONE, DECIDES, AUTO),
    GW(sampling, INT, FRG_GW_MULTINOMIAL, DECIDES, AUTO),
    GW(multiscale, INT, FRG_GW_MULTISCALE_ON, DECIDES, AUTO),
    GW(n_coarse, INT64, 20, DECIDES, AUTO),
    GW(n_start, INT64, 3, DECIDES, AUTO),
    GW(fine_steps, INT64, 4, DECIDES, AUTO),
    GW(polish, INT, 0, DECIDES, AUTO),
    GW(round, INT, 0, DECIDES, AUTO),
    GW(polish_tol, REAL, 1e-6, DECIDES, AUTO),
    GW(polish_passes, INT64, 31, DECIDES, AUTO),
    GW(cost_store, INT, FRG_GW_STORE_FLY, DECIDES, AUTO),
    GW(cache_rows, INT64, 21, LEAVES_BITS, DIJKSTRA),
    GW(preset, INT, FRG_GW_PRESET_TORCHGW, DECIDES, AUTO),
    GW(rank, INT64, 6, DECIDES, AUTO),
    GW(lr_max_iter, INT64, 6, DECIDES, AUTO),
    GW(lr_dykstra_max_iter, INT64, 51, DECIDES, AUTO),
    GW(scale_linear, INT, FRG_GW_LINEAR_MAX, DECIDES, AUTO),
    GW(landmark_metric, INT, FRG_GW_LANDMARK_LOWER, DECIDES, LANDMARK),
    GW(lazy, INT, 1, DECIDES, PRECOMPUTED), /* the scale is that of two sweeps */
    GW(store_plan, INT, 1, DECIDES, AUTO),
    GW(diag_exact, INT, 1, DECIDES, AUTO),
    GW(auto_store, INT, 1, LEAVES_BITS, AUTO),
    GW(start_from, INT, FRG_GW_START_PRODUCT, DECIDES, AUTO),
    GW(given, INT64, 1, LEAVES_BITS, AUTO),               /* of a mode that is asked for */
    GW(dtype, INT, FRG_GW_DTYPE_F32, LEAVES_BITS, AUTO)}; /* of modes that have no other */
enum { OTHERS = sizeof others / sizeof *others };

/** Opens a solver with the option of f at its other value; f NULL: with none. */
static frg_gw *open_other(frg_context *ctx, const field *f, frg_gw_distance distance,
                          bool linear_cost)
{
    const frg_array x = frg_matrix(points_x, FRG_F64, N, 2, 2),
                    y = frg_matrix(points_y, FRG_F64, M, 3, 3),
                    l = frg_matrix(linear, FRG_F64, N, M, M);
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.distance = distance;
    o.epsilon = 0.01;
    o.k = 8;
    o.landmarks = 12;
    o.cache_rows = 20;
    o.max_iter = 60;
    o.min_iter = 10;
    o.polish_passes = 30;
    o.linear_weight = linear_cost ? 0.3 : 0;
    if (f)
        field_set(f, &o);
    frg_gw *s = NULL;
    CHECK_SAYS(frg_gw_create(&s, ctx, (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y},
                             linear_cost ? &l : NULL, &o) >= 0,
               "%s: %s", f ? f->name : "", frg_message(ctx));
    return s;
}

/** What a run without further options leaves at `path` that is killed at its third state. */
static frg_checkpoint *state_of_killed(frg_context *ctx, frg_gw_distance distance, bool linear_cost)
{
    keeper keeps = {
        .ctx = ctx, .name = "gw", .put = put_state, .path = path, .at = 3, .how = IS_KILLED};
    frg_gw *const s = open_other(ctx, NULL, distance, linear_cost);
    frg_gw_keep(s, keep_run, &keeps);
    CHECK_STATUS(frg_gw_run(s, NULL), FRG_IO);
    frg_gw_destroy(s);
    frg_checkpoint *c = NULL;
    CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path));
    return c;
}

/** A run that goes on with another value of an option that leaves bits alone ends with the plan of
 *  the first one. */
static void ends_alike(frg_context *ctx, const field *f, frg_gw_distance distance, frg_gw *resumed)
{
    static result whole, ended;
    frg_gw *s = open_other(ctx, NULL, distance, false);
    CHECK(frg_gw_run(s, NULL) >= 0 && frg_gw_run(resumed, NULL) >= 0);
    read_result(ctx, s, &whole);
    read_result(ctx, resumed, &ended);
    CHECK_SAYS(memcmp(whole.plan, ended.plan, sizeof whole.plan) == 0, "another plan by %s",
               f->name);
    frg_gw_destroy(s);
}

static void other_options(void)
{
    fields_cover(others, OTHERS, sizeof(frg_gw_opts));
    fields_follow(others, OTHERS, frg_gw_options());
    make_points();
    for (int i = 0; i < OTHERS; i++) {
        const field *const f = &others[i];
        const frg_gw_distance distance = f->where == FRG_GW_DISTANCE_AUTO
                                             ? FRG_GW_DISTANCE_EUCLIDEAN
                                             : (frg_gw_distance)f->where;
        const bool linear_cost = strstr(f->name, "linear") != NULL;
        open_path(path);
        frg_context *ctx = test_context_with(1, NULL, NULL);
        frg_checkpoint *const c = state_of_killed(ctx, distance, linear_cost);
        frg_gw *s = open_other(ctx, f, distance, linear_cost);
        const frg_status found = frg_gw_resume(s, c);
        CHECK_SAYS(found == (f->what == DECIDES ? FRG_MISMATCH : FRG_OK), "%s: %s", f->name,
                   frg_status_name(found));
        if (f->what == LEAVES_BITS)
            ends_alike(ctx, f, distance, s);
        frg_gw_destroy(s);
        s = open_other(ctx, NULL, distance, linear_cost);
        CHECK_OK(ctx, frg_gw_resume(s, c));
        frg_gw_destroy(s);
        frg_checkpoint_destroy(c);
        frg_context_destroy(ctx);
        close_path(path);
    }
}

/** A resume from the numbers in `from`, as a state of this format; 0: without the section that says
 *  so. */
static frg_status resume_as(frg_context *ctx, const frg_checkpoint *from, int64_t format)
{
    int64_t bytes = 0;
    const void *const run = frg_checkpoint_get(from, "run", &bytes);
    frg_checkpoint *c = NULL;
    CHECK(run != NULL);
    CHECK_OK(ctx, frg_checkpoint_create(&c, ctx, "gw", 0, 0));
    CHECK_OK(ctx, frg_checkpoint_put(c, "run", run, bytes));
    if (format > 0)
        CHECK_OK(ctx, frg_checkpoint_put(c, "format", &format, sizeof format));
    frg_gw *s = open_other(ctx, NULL, FRG_GW_DISTANCE_EUCLIDEAN, false);
    const frg_status found = frg_gw_resume(s, c);
    frg_gw_destroy(s);
    frg_checkpoint_destroy(c);
    return found;
}

/* Numbers of the size that is expected, but of another format, which may stand in another order, are
 * refused by name before any of them is read. */
static void other_formats(void)
{
    make_points();
    open_path(path);
    frg_context *ctx = test_context_with(1, NULL, NULL);
    frg_checkpoint *const c = state_of_killed(ctx, FRG_GW_DISTANCE_EUCLIDEAN, false);
    CHECK_STATUS(resume_as(ctx, c, 2), FRG_OK);
    CHECK_STATUS(resume_as(ctx, c, 0), FRG_MISMATCH);
    CHECK(strstr(frg_message(ctx), "has format 1, this fourge reads 2") != NULL);
    CHECK_STATUS(resume_as(ctx, c, 3), FRG_MISMATCH);
    CHECK(strstr(frg_message(ctx), "has format 3") != NULL);
    frg_checkpoint_destroy(c);
    frg_context_destroy(ctx);
    close_path(path);
}

static const test_case cases[] = {{"same bits", same_bits},
                                  {"last steps", last_steps},
                                  {"begins anew", begins_anew},
                                  {"other options", other_options},
                                  {"other formats", other_formats}};
TEST_MAIN(cases)
