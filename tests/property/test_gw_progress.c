/* test_gw_progress.c - what a run tells of itself: steps while it goes on, seconds at its end. */
#include "gw_data.h"

enum { N = 60, M = 70, CALLS = 4000, RUNS = 5 };

typedef struct {
    const char *name;
    frg_gw_mode mode;
    frg_gw_multiscale multiscale;
    int64_t n_start, rank;
    int64_t first_factor; /* steps that the starts of plans in factors have each */
} kind;

static const kind kinds[] = {
    {"one start", FRG_GW_SAMPLED, FRG_GW_MULTISCALE_OFF, 1, 0, 0},
    {"three starts", FRG_GW_SAMPLED, FRG_GW_MULTISCALE_OFF, 3, 0, 0},
    {"multiscale", FRG_GW_SAMPLED, FRG_GW_MULTISCALE_ON, 2, 0, 0},
    {"exact", FRG_GW_EXACT, FRG_GW_MULTISCALE_OFF, 1, 0, 0},
    {"landmark", FRG_GW_LANDMARK, FRG_GW_MULTISCALE_OFF, 1, 0, 0},
    {"factors", FRG_GW_SAMPLED, FRG_GW_MULTISCALE_OFF, 2, 8, 10},
};

typedef struct {
    char phase[16];
    int64_t done, total;
} call;

typedef struct {
    call calls[CALLS];
    int count;
} record;

static int remember(const frg_progress *p, void *user)
{
    record *const r = user;
    CHECK_TEXT(p->solver, "gw");
    if (CHECK(r->count < CALLS)) {
        call *const c = &r->calls[r->count++];
        snprintf(c->phase, sizeof c->phase, "%s", p->phase);
        c->done = p->done;
        c->total = p->total;
    }
    return 0;
}

static frg_gw *open_kind(frg_context *ctx, const kind *k)
{
    double x[N * 2], y[M * 2];
    for (int i = 0; i < N * 2; i++)
        x[i] = test_normal() * (1 + i % 2);
    for (int j = 0; j < M * 2; j++)
        y[j] = test_normal() * (1 + j % 2);
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 2);
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o.mode = k->mode;
    o.multiscale = k->multiscale;
    if (k->mode == FRG_GW_SAMPLED) {
        o.n_coarse = 20;
        o.n_start = k->n_start;
    }
    o.rank = k->rank;
    o.max_iter = 60;
    o.polish_passes = 25; /* not a multiple of 10, after which it looks up */
    o.polish_tol = 1e-14;
    frg_gw *s = NULL;
    CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay},
                                NULL, &o));
    return s;
}

/* Whether a call comes behind `done` of the same phase, 0 at its beginning.  A polish looks up
 * every 10 passes, and where passes in double take over. */
static bool comes_behind(const call *c, const kind *k, int64_t done)
{
    if (strcmp(c->phase, "polish") == 0)
        return c->done > done && c->done <= done + 10;
    return c->done ==
           (strcmp(c->phase, "factors") == 0 && done == 0 ? k->first_factor + 1 : done + 1);
}

/** Of every outer iteration there is a row, of the last run alone, and costs are estimated where
 *  pairs tell of them. */
static void check_trace(frg_gw *s, const kind *k)
{
    for (int run = 0; s && run < 2; run++) {
        int64_t count = -1, costs = 0;
        const frg_gw_iteration *const rows = frg_gw_trace(s, &count);
        const frg_gw_report *const r = frg_gw_get(s);
        CHECK_INT(count, r->outer_iterations + r->coarse_iterations);
        for (int64_t t = 0; t < count; t++) {
            const bool estimated = !isnan(rows[t].cost);
            CHECK(rows[t].epsilon > 0 && estimated == !isnan(rows[t].cost_error));
            CHECK(k->rank > 0 && strcmp(rows[t].phase, "coarse") != 0
                      ? isnan(rows[t].marginal_error)
                      : rows[t].marginal_error >= 0 && rows[t].change >= 0);
            CHECK(!estimated || (rows[t].cost >= 0 && rows[t].cost_error >= 0));
            costs += estimated;
        }
        CHECK_SAYS((costs > 0) == (k->mode == FRG_GW_SAMPLED), "%s: %lld costs", k->name,
                   (long long)costs);
        CHECK(run == 1 || frg_gw_run(s, NULL) >= 0);
    }
}

/* Steps are counted one by one up to the total at most; a loop may begin anew for another start.
 * As many are told as the report has. */
static void steps(void)
{
    for (size_t q = 0; q < sizeof kinds / sizeof *kinds; q++) {
        const kind *const k = &kinds[q];
        record told = {.count = 0};
        frg_context_opts c;
        frg_context_defaults(&c, sizeof c);
        c.on_progress = remember;
        c.user = &told;
        c.threads = 2;
        frg_context *ctx = NULL;
        CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
        frg_gw *const s = open_kind(ctx, k);
        const frg_status status = s ? frg_gw_run(s, NULL) : FRG_BAD_ARG;
        CHECK_SAYS(status >= 0, "%s: %s", k->name, frg_message(ctx));
        int64_t outer = 0, done = 0;
        for (int i = 0; i < told.count; i++) {
            const call *const now = &told.calls[i];
            if (strcmp(now->phase, "sinkhorn") == 0) /* of the plan beside the one that is judged */
                continue;
            const bool goes_on = i > 0 && strcmp(now->phase, told.calls[i - 1].phase) == 0;
            const bool follows = goes_on && comes_behind(now, k, done);
            const bool begins =
                comes_behind(now, k, 0) && (!goes_on || strcmp(now->phase, "outer") == 0);
            CHECK_SAYS((follows || begins) && now->done <= now->total, "%s: %s %lld of %lld",
                       k->name, now->phase, (long long)now->done, (long long)now->total);
            done = now->done;
            outer += strcmp(now->phase, "polish") != 0 && strcmp(now->phase, "profiles") != 0 &&
                     strcmp(now->phase, "verdict") != 0;
        }
        const frg_gw_report *const r = s ? frg_gw_get(s) : NULL;
        CHECK(r && outer == r->outer_iterations + r->coarse_iterations);
        check_trace(s, k);
        frg_gw_destroy(s);
        frg_context_destroy(ctx);
    }
}

/* Parts of a run's time do not overlap, and a run has none of the time of those before: of five
 * runs together the parts would be more than the last one's whole. */
static void seconds(void)
{
    frg_context *ctx = test_context();
    for (size_t q = 0; q < sizeof kinds / sizeof *kinds; q++) {
        frg_gw *const s = open_kind(ctx, &kinds[q]);
        for (int run = 0; s && run < RUNS; run++) {
            const frg_status status = frg_gw_run(s, NULL);
            const frg_gw_report *const r = frg_gw_get(s);
            CHECK_SAYS(status >= 0, "%s: %s", kinds[q].name, frg_message(ctx));
            const double parts = r->graph_seconds + r->distances_seconds + r->build_seconds +
                                 r->inner_seconds + r->sample_seconds + r->polish_seconds;
            CHECK_SAYS(r->build_seconds > 0 && r->inner_seconds > 0 && r->sample_seconds > 0 &&
                           r->polish_seconds > 0 && r->graph_seconds >= 0 &&
                           r->distances_seconds >= 0 && parts <= r->total_seconds,
                       "%s, run %d: %g + %g + %g + %g of %g", kinds[q].name, run, r->build_seconds,
                       r->inner_seconds, r->sample_seconds, r->polish_seconds, r->total_seconds);
        }
        frg_gw_destroy(s);
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"steps", steps}, {"seconds", seconds}};
TEST_MAIN(cases)
