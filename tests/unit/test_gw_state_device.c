/* test_gw_state_device.c - alignments on a device that are stopped or killed anywhere and go on
 * there: the same bits, of what the host draws, of pairs, averaged costs, plans and factors that
 * lie there; elsewhere and from damaged states an error.
 */
#include "cuda_driver.h"
#include "devices.h"
#include "fault.h"
#include "gw_states.h"

static const state_kind kinds[] = {
    {.name = "several starts, averaged costs",
     .mode = FRG_GW_SAMPLED,
     .distance = FRG_GW_DISTANCE_EUCLIDEAN,
     .multiscale = FRG_GW_MULTISCALE_OFF,
     .n_start = 2,
     .max_iter = 60},
    {.name = "a coarse start",
     .mode = FRG_GW_SAMPLED,
     .distance = FRG_GW_DISTANCE_EUCLIDEAN,
     .multiscale = FRG_GW_MULTISCALE_ON,
     .n_start = 2,
     .max_iter = 30},
    {.name = "partial mass, a linear cost",
     .mode = FRG_GW_SAMPLED,
     .distance = FRG_GW_DISTANCE_PRECOMPUTED,
     .anneal = FRG_GW_ANNEAL_ITER,
     .max_iter = 38,
     .mass = 0.7,
     .linear_weight = 0.3,
     .damping = 0.4},
    {.name = "relaxed marginals",
     .mode = FRG_GW_SAMPLED,
     .distance = FRG_GW_DISTANCE_EUCLIDEAN,
     .n_start = 1,
     .max_iter = 38,
     .rho_source = 0.3},
    {.name = "a plan that is kept, and its marginals",
     .mode = FRG_GW_SAMPLED,
     .distance = FRG_GW_DISTANCE_EUCLIDEAN,
     .n_start = 2,
     .max_iter = 42,
     .mass = 0.7,
     .damping = 0.6,
     .keeps = true},
    {.name = "a coarse start of a plan that is kept",
     .mode = FRG_GW_SAMPLED,
     .distance = FRG_GW_DISTANCE_EUCLIDEAN,
     .multiscale = FRG_GW_MULTISCALE_ON,
     .n_start = 1,
     .max_iter = 20,
     .keeps = true},
    {.name = "exact", .mode = FRG_GW_EXACT, .distance = FRG_GW_DISTANCE_EUCLIDEAN, .max_iter = 8},
    {.name = "landmark",
     .mode = FRG_GW_LANDMARK,
     .distance = FRG_GW_DISTANCE_LANDMARK,
     .max_iter = 24},
    {.name = "factors",
     .mode = FRG_GW_SAMPLED,
     .distance = FRG_GW_DISTANCE_EUCLIDEAN,
     .rank = 3,
     .n_start = 2,
     .max_iter = 40},
    {.name = "from a vertex",
     .mode = FRG_GW_SAMPLED,
     .distance = FRG_GW_DISTANCE_EUCLIDEAN,
     .start_from = FRG_GW_START_VERTEX,
     .max_iter = 36},
    {.name = "vertex",
     .mode = FRG_GW_VERTEX,
     .distance = FRG_GW_DISTANCE_EUCLIDEAN,
     .max_iter = 2}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static char path[sizeof STATE_PATH];

typedef struct {
    frg_context *ctx;
    frgi_gw_place where;
    const state_points *p;
} place;

static frg_gw *open(const place *at, const state_kind *k)
{
    frg_gw *s = NULL;
    CHECK_SAYS(state_open_some(&s, at->ctx, at->where, at->p, STATE_N, STATE_M, k) >= 0, "%s: %s",
               k->name, frg_message(at->ctx));
    return s;
}

typedef struct {
    double plan[STATE_CELLS];
    double energy;
    int64_t counts[4];
    frg_status status;
} result;

static void read_result(const place *at, frg_gw *s, frg_status status, result *r)
{
    const frg_gw_report *const report = frg_gw_get(s);
    memset(r, 0, sizeof *r);
    if (CHECK(s && frg_gw_plan(s)))
        CHECK_OK(at->ctx,
                 frg_plan_rows(frg_gw_plan(s), 0, STATE_N, matrix(r->plan, STATE_N, STATE_M)));
    r->energy = report->energy;
    r->counts[0] = report->outer_iterations;
    r->counts[1] = report->coarse_iterations;
    r->counts[2] = report->inner_iterations;
    r->counts[3] = (int64_t)report->reason;
    r->status = status;
}

/** Runs kind k to its end or to the state `state`; returns how many states there were. */
static int64_t run_to(const place *at, const state_kind *k, int64_t state, ending how, result *out)
{
    keeper keeps = {
        .ctx = at->ctx, .name = "gw", .put = put_gw_state, .path = path, .at = state, .how = how};
    frg_gw *s = open(at, k);
    frg_gw_keep(s, keep_gw_run, &keeps);
    const frg_status status = frg_gw_run(s, NULL);
    frg_interrupt_clear(at->ctx);
    if (state == 0)
        CHECK_SAYS(status >= 0, "%s: %s", k->name, frg_message(at->ctx));
    else
        CHECK_STATUS(status, how == IS_STOPPED ? FRG_INTERRUPTED : FRG_IO);
    CHECK(keeps.said_stopped == (state > 0 && how == IS_STOPPED));
    if (status >= 0)
        read_result(at, s, status, out);
    frg_gw_destroy(s);
    return keeps.calls;
}

/** s is to go on from the state at `path`, *c, which is destroyed behind its run. */
static frg_status resume(const place *at, frg_gw *s, frg_checkpoint **c)
{
    *c = NULL;
    CHECK_OK(at->ctx, frg_checkpoint_load(c, at->ctx, path));
    return frg_gw_resume(s, *c);
}

static void go_on(const place *at, const state_kind *k, result *out)
{
    frg_checkpoint *c;
    frg_gw *s = open(at, k);
    memset(out, 0, sizeof *out);
    if (CHECK_OK(at->ctx, resume(at, s, &c))) {
        const frg_status status = frg_gw_run(s, NULL);
        CHECK_SAYS(status >= 0, "%s: %s", k->name, frg_message(at->ctx));
        if (status >= 0)
            read_result(at, s, status, out);
    }
    frg_checkpoint_destroy(c);
    frg_gw_destroy(s);
}

/** Kind k ended at `count` of its states and gone on. */
static void same_bits_of(const place *at, const state_kind *k, int64_t count)
{
    static result whole, plain, stopped, resumed;
    const int64_t calls = run_to(at, k, 0, RUNS_ON, &whole);
    frg_gw *s = open(at, k);
    if (!s)
        return;
    read_result(at, s, frg_gw_run(s, NULL), &plain); /* nobody keeps states */
    CHECK_SAYS(memcmp(&whole, &plain, sizeof whole) == 0, "%s: states change the bits", k->name);
    frg_gw_destroy(s);
    const int64_t places[] = {calls, calls / 2 + 1, calls / 5 + 1, 1, calls * 2 / 3 + 1, calls - 1};
    for (int64_t q = 0; q < count; q++) {
        if (places[q] < 1 || places[q] > calls)
            continue;
        run_to(at, k, places[q], q % 2 ? IS_STOPPED : IS_KILLED, &stopped);
        go_on(at, k, &resumed);
        CHECK_SAYS(memcmp(&whole, &resumed, sizeof whole) == 0,
                   "%s, state %" PRId64 " of %" PRId64 ": energy %.17g and %.17g, %" PRId64
                   " and %" PRId64 " steps, %" PRId64 " and %" PRId64 " passes",
                   k->name, places[q], calls, whole.energy, resumed.energy, whole.counts[0],
                   resumed.counts[0], whole.counts[2], resumed.counts[2]);
    }
}

/** Each kind, or in runs by turns one of `turns`, at `count` of its states. */
static void same_bits_at(frg_context *ctx, frgi_gw_place where, int64_t turns, int64_t count)
{
    state_points *const p = state_points_new();
    const place at = {ctx, where, p};
    open_path(path);
    for (int i = 0; i < KINDS; i++) {
        if (test_turn(i, turns))
            same_bits_of(&at, &kinds[i], count);
    }
    close_path(path);
    free(p);
}

static void same_bits_on(frg_context *ctx, frgi_device *dev, int group)
{
    same_bits_at(ctx, (frgi_gw_place){.dev = dev, .group = group}, 3, 6);
}

static void same_bits(void)
{
    on_one_thread(same_bits_on);
}

/** Of one size of group: what a state has does not depend on it. */
static void same_bits_opencl(void)
{
    frg_context *ctx = test_context_with(1, NULL, NULL);
    frgi_device *dev = open_opencl(ctx);
    if (dev)
        same_bits_at(ctx, (frgi_gw_place){.dev = dev}, 1, 2);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
}

/* ---- what comes over ------------------------------------------------------------------------- */

/** How many states a saver saves, and how often it was called. */
typedef struct {
    frg_context *ctx;
    int64_t calls, saves, bytes;
} counter;

/** A frg_gw_saver, user a counter: saves one state in two, at most `saves` of them. */
static frg_status count_state(void *user, const frg_gw *s, int stopped)
{
    counter *const of = user;
    frg_checkpoint *c = NULL;
    frg_status status = FRG_OK;
    (void)stopped;
    if (++of->calls % 2 == 0 && of->calls <= 2 * of->saves) {
        status = state_save(&c, of->ctx, s);
        for (int p = 0; status >= 0 && p < s->state.n_arrays; p++)
            of->bytes += s->state.arrays[p].there[0].handle ? (int64_t)s->state.arrays[p].bytes : 0;
        frg_checkpoint_destroy(c);
    }
    return status;
}

/** Bytes that come over are counted, and come only where a state is saved. */
static void counts_on(frg_context *ctx, frgi_device *dev, int group)
{
    state_points *const p = state_points_new();
    const place at = {ctx, {.dev = dev, .group = group}, p};
    int64_t out[3], in[3];
    counter of[3] = {{.ctx = ctx}, {.ctx = ctx}, {.ctx = ctx, .saves = 2}};
    for (int run = 0; run < 3; run++) {
        frg_gw *const s = open(&at, &kinds[3]);
        if (run > 0)
            frg_gw_keep(s, count_state, &of[run]);
        CHECK(frg_gw_run(s, NULL) >= 0);
        out[run] = frg_gw_get(s)->device_bytes_out;
        in[run] = frg_gw_get(s)->device_bytes_in;
        frg_gw_destroy(s);
    }
    CHECK(of[1].calls > 5 && of[2].bytes > 0);
    CHECK_INT(out[1], out[0]);
    CHECK_INT(out[2], out[0] + of[2].bytes);
    CHECK_INT(in[1], in[0]);
    CHECK_INT(in[2], in[0]);
    free(p);
}

static void counts(void)
{
    on_one_thread(counts_on);
}

/* ---- states of other devices, damaged ones --------------------------------------------------- */

/** What a resume there says of the state at `path`. */
static frg_status resume_at(const place *at, const state_kind *k)
{
    frg_checkpoint *c;
    frg_gw *const s = open(at, k);
    const frg_status status = resume(at, s, &c);
    frg_checkpoint_destroy(c);
    frg_gw_destroy(s);
    return status;
}

/** A state goes on where it began, and the error has both names. */
static void elsewhere_of(const place *one, const place *other, const char *name)
{
    static result unused;
    run_to(one, &kinds[3], 3, IS_KILLED, &unused);
    CHECK_STATUS(resume_at(other, &kinds[3]), FRG_MISMATCH);
    CHECK_SAYS(strstr(frg_message(other->ctx), name) != NULL &&
                   strstr(frg_message(other->ctx), "the cpu") != NULL,
               "%s", frg_message(other->ctx));
    CHECK_OK(one->ctx, resume_at(one, &kinds[3]));
}

static void elsewhere_on(frg_context *ctx, frgi_device *dev, int group)
{
    state_points *const p = state_points_new();
    const place there = {ctx, {.dev = dev, .group = group}, p}, here = {ctx, {.dev = NULL}, p};
    open_path(path);
    elsewhere_of(&there, &here, frgi_device_is(dev)->name);
    elsewhere_of(&here, &there, frgi_device_is(dev)->name);
    close_path(path);
    free(p);
}

static void elsewhere(void)
{
    on_one_thread(elsewhere_on);
}

/** A resume from c with the first number of section `name` replaced. */
static frg_status resume_damaged(const place *at, const frg_checkpoint *c, const char *name,
                                 int32_t value)
{
    state_copy copy;
    bool there = false;
    CHECK_OK(at->ctx, state_copy_of(at->ctx, c, &copy));
    for (int q = 0; q < STATE_SECTIONS; q++) {
        if (copy.bytes[q] && strcmp(state_sections[q], name) == 0) {
            memcpy(copy.bytes[q], &value, sizeof value);
            there = true;
        }
    }
    CHECK(there);
    frg_gw *const s = open(at, &kinds[3]);
    frg_status status = frg_gw_resume(s, copy.c);
    if (status >= 0)
        status = frg_gw_run(s, NULL);
    frg_gw_destroy(s);
    state_copy_close(&copy);
    return status;
}

/** Points that are none and numbers that are none are errors; a state cannot do without one. */
static void damaged_on(frg_context *ctx, frgi_device *dev, int group)
{
    static result unused;
    state_points *const p = state_points_new();
    const place at = {ctx, {.dev = dev, .group = group}, p};
    frg_checkpoint *c = NULL;
    open_path(path);
    const int64_t calls = run_to(&at, &kinds[3], 0, RUNS_ON, &unused);
    run_to(&at, &kinds[3], calls, IS_KILLED, &unused);
    CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path));
    const int32_t no_number = 0x7fc00000; /* NaN as the bits of a float */
    CHECK(resume_damaged(&at, c, "age0", 0) >= 0);
    CHECK_STATUS(resume_damaged(&at, c, "age0", STATE_N), FRG_BAD_DATA);
    CHECK_STATUS(resume_damaged(&at, c, "age0", -1), FRG_BAD_DATA);
    CHECK_STATUS(resume_damaged(&at, c, "rows", no_number), FRG_BAD_DATA);
    CHECK_STATUS(resume_damaged(&at, c, "columns", no_number), FRG_BAD_DATA);
    CHECK_STATUS(resume_damaged(&at, c, "past", no_number), FRG_BAD_DATA);
    frg_checkpoint_destroy(c);
    close_path(path);
    free(p);
}

static void damaged(void)
{
    on_one_thread(damaged_on);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    double g[STATE_FEW];
    TRY(state_body(ctx, (frg_device){FRG_CPU, 0}, user, g));
    fault_hash(hash, g, sizeof g);
    return FRG_OK;
}

static void faults(void)
{
    state_points *const p = state_points_new();
    for (int64_t rank = 0; rank < 3; rank += 2) {
        state_few of = {p, rank};
        fault_sweep("a saved state on a device", body, &of, 1);
    }
    free(p);
}

/** Late, and with groups in random order. */
static void each_call_fails(void)
{
    double want[STATE_FEW], got[STATE_FEW];
    if (!with_driver())
        return;
    state_points *const p = state_points_new();
    const state_few of = {p, 0};
    fail_each_call(state_body, &of, 0, want, got, sizeof want);
    free(p);
}

static const test_case cases[] = {
    {"same bits", same_bits},    {"same bits on OpenCL", same_bits_opencl},
    {"what comes over", counts}, {"elsewhere", elsewhere},
    {"damaged", damaged},        {"each call of CUDA's driver fails", each_call_fails},
    {"faults", faults}};
TEST_MAIN(cases)
