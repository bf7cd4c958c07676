/* test_gw_lowrank_device.c - plans in factors on every machine that is there, against the host's.
 *
 * Bounds.  Host and device compute in double from the same rows of distances: what differs is the
 * order of sums.  A number of logarithms of at most 20 and sums of up to 100 terms is off by
 * 120 2^-53 = 1.4e-14 relative to its size.  A pass of the projection multiplies what the
 * logarithms of its scalings are off by 3 at most: new columns are h / 3 + v / 3 + v' / 3 + s' / 3
 * - 2 s / 3, where sums s fall by as much as columns rise.  A mirror step multiplies it by
 * 1 + 12 gamma |L|, as gradients divided by h are averages of L, which depend on Q, W, h twice and
 * on gamma, and gamma |L| <= 2 / epsilon = 400.  Two passes behind the start, two behind one step:
 * 1.4e-14 4801 3^4 = 5.5e-9.  The projection at the end is onto a convex set: of logarithms that
 * differ by d it differs by 1.4 d in sum at most, by the inequality of Pinsker, and its passes stop
 * at an error of 1e-7, one of both perhaps a pass before the other.  A plan has three factors.
 */
#include "cuda_driver.h"
#include "devices.h"
#include "fault.h"
#include "gw/gw_align.h"
#include "gw_data.h"

enum { N = 70, M = 90, D = 3, RANK = 4, PAIRS = 15 };
#define ALLOWED (3 * (1.4 * 5.5e-9 + 2e-7))

typedef struct {
    double x[N * D], y[M * D], cx[N * N], cy[M * M], a[N], b[M], linear[N * M];
} problem;

static problem *make(void)
{
    problem *const p = malloc(sizeof *p);
    double sum = 0;
    for (int64_t i = 0; i < N * D; i++)
        p->x[i] = test_uniform() * (double)(1 + i % D);
    for (int64_t i = 0; i < M * D; i++)
        p->y[i] =
            i < N * D ? p->x[i] + 0.02 * test_uniform() : test_uniform() * (double)(1 + i % D);
    distances_of(p->x, N, D, p->cx);
    distances_of(p->y, M, D, p->cy);
    for (int64_t i = 0; i < N; i++)
        sum += p->a[i] = 0.5 + test_uniform();
    for (int64_t i = 0; i < N; i++)
        p->a[i] /= sum;
    for (int64_t j = 0; j < M; j++)
        p->b[j] = 1.0 / M;
    for (int64_t e = 0; e < N * M; e++)
        p->linear[e] = test_uniform();
    return p;
}

/** One mirror step behind the start from groups of points. */
static frg_gw_opts one_step(void)
{
    frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
    o.rank = RANK;
    o.epsilon = 0.005;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.anchors = PAIRS;
    o.n_start = 1;
    o.max_iter = o.min_iter = 1;
    o.lr_max_iter = 1;
    o.lr_dykstra_max_iter = 2;
    return o;
}

static frg_gw *open(frg_context *ctx, frgi_gw_place where, const problem *p, const frg_gw_opts *o)
{
    frg_gw *s = NULL;
    const bool points = o->distance != FRG_GW_DISTANCE_MATRIX;
    const frg_array x = points ? matrix(p->x, N, D) : matrix(p->cx, N, N),
                    y = points ? matrix(p->y, M, D) : matrix(p->cy, M, M),
                    linear = matrix(p->linear, N, M);
    CHECK_OK(ctx, frgi_gw_open(&s, ctx, where, (frg_gw_side){.data = &x, .weights = p->a},
                               (frg_gw_side){.data = &y, .weights = p->b},
                               o->linear_weight > 0 ? &linear : NULL, o));
    return s;
}

typedef struct {
    double q[N * RANK], w[M * RANK], h[RANK], plan[N * M];
    frg_gw_report report;
} result;

/** start: a plan, or NULL. */
static result *solve_from(frg_context *ctx, frgi_gw_place where, const problem *p,
                          const frg_gw_opts *o, const double *start)
{
    result *const r = calloc(1, sizeof *r);
    frg_gw *const s = open(ctx, where, p, o);
    if (s) {
        if (start)
            CHECK_OK(ctx, frg_gw_start_plan(s, matrix(start, N, M)));
        const frg_status status = frg_gw_run(s, NULL);
        CHECK_SAYS(status == FRG_OK || status == FRG_MAX_ITER, "%s: %s", frg_status_name(status),
                   frg_message(ctx));
        CHECK_OK(ctx, frg_gw_factors(s, r->q, r->w, r->h));
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, N, matrix(r->plan, N, M)));
        r->report = *frg_gw_get(s);
    }
    frg_gw_destroy(s);
    return r;
}

static result *solve(frg_context *ctx, frgi_gw_place where, const problem *p, const frg_gw_opts *o)
{
    return solve_from(ctx, where, p, o, NULL);
}

/** The rows of a factor have the sums `marginal`, its columns the sums h. */
static void check_factor(const double *factor, int64_t n, const double *marginal, const double *h)
{
    double column[RANK] = {0};
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t c = 0; c < RANK; c++) {
            sum += factor[i * RANK + c];
            column[c] += factor[i * RANK + c];
        }
        CHECK_NEAR(sum, marginal[i], 1e-13);
    }
    for (int64_t c = 0; c < RANK; c++)
        CHECK_NEAR(column[c], h[c], 1e-12);
}

static double gap_of(const double *one, const double *other, int64_t count)
{
    double gap = 0;
    for (int64_t e = 0; e < count; e++)
        gap += fabs(one[e] - other[e]);
    return gap;
}

/** The host's and a device's factors and plan from the same pairs. */
static void compare(frg_context *ctx, frgi_gw_place where, const problem *p, const frg_gw_opts *o,
                    const double *start)
{
    result *const here = solve_from(ctx, (frgi_gw_place){.dev = NULL}, p, o, start);
    result *const there = solve_from(ctx, where, p, o, start);
    double far = 0;
    for (int64_t e = 0; e < N * M; e++)
        far += fabs(here->plan[e] - p->a[e / M] * p->b[e % M]);
    check_factor(there->q, N, p->a, there->h);
    check_factor(there->w, M, p->b, there->h);
    CHECK_SAYS(gap_of(here->q, there->q, N * RANK) <= ALLOWED, "Q differs by %.3g",
               gap_of(here->q, there->q, N * RANK));
    CHECK_SAYS(gap_of(here->w, there->w, M * RANK) <= ALLOWED, "W differs by %.3g",
               gap_of(here->w, there->w, M * RANK));
    CHECK_SAYS(gap_of(here->plan, there->plan, N * M) <= ALLOWED, "plans differ by %.3g",
               gap_of(here->plan, there->plan, N * M));
    CHECK_SAYS(far > 1e4 * ALLOWED, "the plan is %.3g from the product", far);
    const double square = fmax(here->report.energy_product, 1);
    CHECK_NEAR(there->report.energy, here->report.energy, 4 * ALLOWED * square);
    CHECK_TEXT(there->report.verdict, here->report.verdict);
    CHECK_INT(there->report.reason, here->report.reason);
    CHECK_INT(there->report.coarse_iterations, here->report.coarse_iterations);
    CHECK(there->report.device_launches > 0 && here->report.device_launches == 0);
    CHECK_INT(host_calls(&there->report.host_steps, "end of a plan in factors"), 1);
    free(here);
    free(there);
}

static void parity_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    problem *const p = make();
    frg_gw_opts o = one_step();
    compare(ctx, where, p, &o, NULL);
    o.linear_weight = 0.3; /* random starts, the value of each step */
    compare(ctx, where, p, &o, NULL);
    double *const start = malloc(sizeof *start * N * M); /* of points to those that they became */
    for (int64_t e = 0; e < N * M; e++)
        start[e] = p->a[e / M] * p->b[e % M] + (e / M == e % M ? 0.02 : 0);
    o.linear_weight = 0;
    compare(ctx, where, p, &o, start);
    free(start);
    free(p);
}

/** Where there are no steps to take, none of the host's ends the process, and the plan is a b'. */
static void no_steps_on(frg_context *ctx, frgi_device *dev, int group)
{
    problem *const p = make();
    for (int alike = 0; alike < 2; alike++) {
        frg_gw_opts o = one_step();
        o.max_iter = o.min_iter = alike;
        for (int64_t e = 0; e < N * N && alike; e++)
            p->cx[e] = 0;
        frg_gw *const s = open(ctx, (frgi_gw_place){.dev = dev, .group = group}, p, &o);
        double row[M];
        if (s && CHECK(frg_gw_run(s, NULL) >= 0)) {
            CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 3, 4, matrix(row, 1, M)));
            for (int64_t j = 0; j < M; j++)
                CHECK_NEAR(row[j], p->a[3] * p->b[j], 1e-6 * p->a[3] * p->b[j]);
        }
        frg_gw_destroy(s);
    }
    free(p);
}

static void no_steps(void)
{
    on_host(no_steps_on);
}

static void parity(void)
{
    on_host(parity_on);
}

static void parity_opencl(void)
{
    on_opencl(parity_on);
}

/** All that a run of the defaults has: several starts, the best of them kept, annealing, tests for
 *  an end.  Both take the same draws unless one falls to the other side of a rounding. */
static void whole_on(frg_context *ctx, frgi_device *dev, int group)
{
    const frgi_gw_place where = {.dev = dev, .group = group};
    problem *const p = make();
    for (int fused = 0; fused < 2; fused++) {
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.rank = RANK;
        o.n_start = 2;
        o.max_iter = test_size(40, 12);
        o.linear_weight = fused ? 0.3 : 0;
        result *const here = solve(ctx, (frgi_gw_place){.dev = NULL}, p, &o);
        result *const there = solve(ctx, where, p, &o);
        check_factor(there->q, N, p->a, there->h);
        check_factor(there->w, M, p->b, there->h);
        const double product = there->report.energy_product;
        CHECK_SAYS(fused || there->report.energy < 0.9 * product, "energy %g, of the product %g",
                   there->report.energy, product);
        CHECK_SAYS(fabs(there->report.energy - here->report.energy) <
                       0.05 * fabs(here->report.energy),
                   "energy %.12g, of the host %.12g", there->report.energy, here->report.energy);
        free(here);
        free(there);
    }
    free(p);
}

static void whole(void)
{
    on_host(whole_on);
}

static void whole_opencl(void)
{
    on_opencl(whole_on);
}

/** What `calls` of one kind launch, wait for and copy. */
static void check_counts(frgi_device *dev, const char *what, int64_t launches, int64_t waits,
                         int64_t in, int64_t out)
{
    const frgi_device_counts *const now = frgi_device_counted(dev);
    CHECK_SAYS(now->launches == launches, "%s: %lld launches", what, (long long)now->launches);
    CHECK_SAYS(now->waits == waits, "%s: %lld waits", what, (long long)now->waits);
    CHECK_SAYS(now->bytes_in == in, "%s: %lld bytes in", what, (long long)now->bytes_in);
    CHECK_SAYS(now->bytes_out == out, "%s: %lld bytes out", what, (long long)now->bytes_out);
    *frgi_device_counted(dev) = (frgi_device_counts){0};
}

/** Launches, waits and bytes of each step are those of the model. */
static void counts_on(frg_context *ctx, frgi_device *dev, int group)
{
    enum { STATE = 4 * 4 + 3 * 8 }; /* counts and numbers */
    problem *const p = make();
    for (int fused = 0; fused < 2; fused++) {
        frg_gw_opts o = one_step();
        o.linear_weight = fused ? 0.3 : 0;
        o.lr_dykstra_max_iter = 20;
        *frgi_device_counted(dev) = (frgi_device_counts){0};
        frg_gw *const s = open(ctx, (frgi_gw_place){.dev = dev, .group = group}, p, &o);
        if (s) {
            frgi_lowrank_device *const d = s->factors_there;
            double value;
            CHECK_OK(ctx, frg_gw_run(s, NULL));
            const frg_gw_report *const r = frg_gw_get(s);
            const frgi_device_counts *const now = frgi_device_counted(dev);
            CHECK_INT(r->device_launches, now->launches);
            CHECK_INT(r->device_waits, now->waits);
            CHECK_INT(r->device_bytes_in, now->bytes_in);
            CHECK_INT(r->device_bytes_out, now->bytes_out);
            *frgi_device_counted(dev) = (frgi_device_counts){0};
            CHECK_OK(ctx, frgi_lowrank_device_linearise(d)); /* rows, two random numbers each */
            check_counts(dev, "pairs", 2, 1, PAIRS * (4 + 2 * 8), 0);
            CHECK_OK(ctx, frgi_lowrank_device_derive(d, NULL));
            check_counts(dev, "gradients", 5 + 2 * fused, 0, 0, 0);
            CHECK_OK(ctx, frgi_lowrank_device_derive(d, &value));
            check_counts(dev, "gradients and their value", 5 + 2 * fused, 1, 0, STATE);
            CHECK_OK(ctx, frgi_lowrank_device_copy(d, FRGI_KEEP_BEFORE));
            check_counts(dev, "a copy", 0, 0, 0, 0);
            CHECK_OK(ctx, frgi_lowrank_device_mirror(d, 1)); /* two kernels a pass, three polls */
            check_counts(dev, "a mirror step", 1 + 2 * 20 + 1, 3, 0, 3 * STATE);
        }
        frg_gw_destroy(s);
    }
    free(p);
}

static void counts(void)
{
    on_host(counts_on);
}

static void counts_opencl(void)
{
    on_opencl(counts_on);
}

/** Mirror steps of one linearisation, longer and longer, until columns of the kernels leave the range
 *  of doubles and are taken into the logarithms, of o's passes. */
static frg_status lose_columns(frgi_device *dev, const frg_gw *s, bool *lost)
{
    frgi_lowrank_device *const d = s->factors_there;
    *lost = false;
    TRY(frgi_lowrank_device_linearise(d));
    TRY(frgi_lowrank_device_derive(d, NULL));
    TRY(frgi_lowrank_device_copy(d, FRGI_KEEP_BEFORE));
    for (double pace = 8; pace < 1e8 && !*lost; pace *= 1.5) {
        const int64_t before = frgi_device_counted(dev)->launches;
        TRY(frgi_lowrank_device_copy(d, FRGI_RECALL_BEFORE));
        TRY(frgi_lowrank_device_mirror(d, pace));
        *lost = frgi_device_counted(dev)->launches - before > 2 + 2 * s->o.lr_dykstra_max_iter;
    }
    return FRG_OK;
}

/** Behind such a step the factors are numbers, and another projection brings their rows to the
 *  weights. */
static void check_behind(frg_context *ctx, frg_gw *s, const problem *p)
{
    frgi_lowrank_device *const d = s->factors_there;
    double error, off = 0;
    CHECK_OK(ctx, frgi_lowrank_device_again(d, 5000, &error));
    CHECK_OK(ctx, frgi_lowrank_device_fetch(d, &s->factors));
    for (int64_t i = 0; i < N; i++) {
        double sum = 0;
        for (int64_t c = 0; c < RANK; c++)
            sum += s->factors.q[i * RANK + c];
        off += fabs(sum - p->a[i]);
    }
    CHECK_SAYS(off <= 10 * error + 1e-12, "rows are off by %.3g, said to be %.3g", off, error);
    for (int64_t c = 0; c < RANK; c++)
        CHECK(s->factors.h[c] > 0 && s->factors.h[c] < 2);
}

/** One of six problems loses columns, whatever the seed: each does so with about five of six. */
static void lost_columns_on(frg_context *ctx, frgi_device *dev, int group)
{
    frg_gw_opts o = one_step();
    o.lr_dykstra_max_iter = 6;
    bool lost = false;
    for (int draw = 0; draw < 6 && !lost; draw++) {
        problem *const p = make();
        frg_gw *const s = open(ctx, (frgi_gw_place){.dev = dev, .group = group}, p, &o);
        if (s && CHECK_OK(ctx, frg_gw_run(s, NULL)))
            CHECK_OK(ctx, lose_columns(dev, s, &lost));
        if (lost)
            check_behind(ctx, s, p);
        frg_gw_destroy(s);
        free(p);
    }
    CHECK(lost);
}

static void lost_columns(void)
{
    on_host(lost_columns_on);
}

static void lost_columns_opencl(void)
{
    on_opencl(lost_columns_on);
}

/** The same bits from run to run, of one alignment and of two. */
static void bits_on(frg_context *ctx, frgi_device *dev, int group)
{
    problem *const p = make();
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    double q[3][N * RANK], h[3][RANK], energy[3];
    frg_gw *s = NULL;
    o.rank = RANK;
    o.n_start = 2;
    o.max_iter = o.min_iter = test_size(30, 4);
    for (int run = 0; run < 3; run++) {
        if (run < 2) {
            frg_gw_destroy(s);
            s = open(ctx, (frgi_gw_place){.dev = dev, .group = group}, p, &o);
        }
        CHECK_OK(ctx, frg_gw_run(s, NULL));
        CHECK_OK(ctx, frg_gw_factors(s, q[run], NULL, h[run]));
        energy[run] = frg_gw_get(s)->energy;
    }
    for (int run = 1; run < 3; run++) {
        CHECK_BITS(q[0], q[run], sizeof q[0]);
        CHECK_BITS(h[0], h[run], sizeof h[0]);
        CHECK_BITS(&energy[0], &energy[run], sizeof energy[0]);
    }
    frg_gw_destroy(s);
    free(p);
}

static void bits(void)
{
    on_host(bits_on);
}

static void bits_opencl(void)
{
    on_opencl(bits_on);
}

/** Few points, but several groups of every kernel, on a device of its own. */
enum { FEW_X = 18, FEW_Y = 68 };

typedef struct {
    const problem *p;
    bool fused;
    int64_t n, m;
    bool loses; /* columns, at the end */
} few;

static frg_status few_on(frg_context *ctx, frgi_device *dev, int group, const few *of, double *h)
{
    const problem *const p = of->p;
    frg_gw *s = NULL;
    frg_gw_opts o = one_step();
    const frg_array x = matrix(p->x, of->n, D), y = matrix(p->y, of->m, D),
                    linear = frg_matrix(p->linear, FRG_F64, of->n, of->m, M);
    o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
    o.anchors = 5;
    o.rank = 3;
    o.linear_weight = of->fused ? 0.3 : 0;
    frg_status status = frgi_gw_open(&s, ctx, (frgi_gw_place){.dev = dev, .group = group},
                                     (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y},
                                     of->fused ? &linear : NULL, &o);
    if (status >= 0)
        status = frg_gw_run(s, NULL);
    if (status >= 0)
        status = frg_gw_factors(s, NULL, NULL, h);
    bool lost = false;
    if (status >= 0 && of->loses)
        status = lose_columns(dev, s, &lost);
    CHECK(lost || status < 0 || !of->loses);
    frg_gw_destroy(s);
    return status;
}

/** Groups of eight: what tests/build/kernel_races.sh runs under a checker of races. */
static void small_groups(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx), *plain = NULL;
    if (dev) {
        problem *const p = make();
        CHECK_OK(ctx, frgi_device_open(&plain, ctx, (frg_device){FRG_CPU, 0}));
        for (int fused = 0; fused < 2; fused++) {
            const few of = {p, fused, FEW_X, FEW_Y, true};
            double here[3], there[3];
            CHECK_OK(ctx, few_on(ctx, plain, 8, &of, here));
            CHECK_OK(ctx, few_on(ctx, dev, 8, &of, there));
            CHECK_SAYS(gap_of(here, there, 3) <= ALLOWED, "h differs by %.3g",
                       gap_of(here, there, 3));
        }
        free(p);
        frgi_device_close(&plain);
        frgi_device_close(&dev);
    }
    frg_context_destroy(ctx);
}

static frg_status body_on(frg_context *ctx, frg_device which, const void *user, double *out)
{
    frgi_device *dev = NULL;
    frg_status status = frgi_device_open(&dev, ctx, which);
    if (status >= 0)
        status = few_on(ctx, dev, 0, user, out);
    frgi_device_close(&dev);
    return status;
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    double h[3];
    TRY(body_on(ctx, (frg_device){FRG_CPU, 0}, user, h));
    fault_hash(hash, h, sizeof h);
    return FRG_OK;
}

/** Late, and with groups in random order. */
static void each_call_fails(void)
{
    double want[3], got[3];
    if (!with_driver())
        return;
    problem *const p = make();
    const few of = {p, true, 8, 9, false};
    fail_each_call(body_on, &of, 0, want, got, sizeof want);
    free(p);
}

static void faults(void)
{
    problem *const p = make();
    few of = {p, true, 8, 9, false};
    fault_sweep("factors on a device", body, &of, 1);
    free(p);
}

static const test_case cases[] = {{"no steps", no_steps},
                                  {"parity", parity},
                                  {"parity on OpenCL", parity_opencl},
                                  {"whole", whole},
                                  {"whole on OpenCL", whole_opencl},
                                  {"counts", counts},
                                  {"counts on OpenCL", counts_opencl},
                                  {"columns that are lost", lost_columns},
                                  {"columns that are lost, on OpenCL", lost_columns_opencl},
                                  {"bits", bits},
                                  {"bits on OpenCL", bits_opencl},
                                  {"small groups on OpenCL", small_groups},
                                  {"each call of CUDA's driver fails", each_call_fails},
                                  {"faults", faults}};
TEST_MAIN(cases)
