/* test_cg.c - conjugate gradients on operators whose spectrum is known: products are counted, and
 * the residual that a column ends with is computed. */
#include "test.h"

#include "fe/fe_steps.h"

enum { N = 3000 };

/** A diagonal operator: what conjugate gradients do is a matter of its eigenvalues alone. */
typedef struct {
    double eigenvalue[N];
    int64_t products;
} diagonal;

static frg_status times(const void *data, int lanes, const void *p, double *y)
{
    diagonal *a = (diagonal *)(uintptr_t)data;
    a->products++;
    for (int64_t i = 0; i < N; i++)
        for (int k = 0; k < lanes; k++)
            y[i * lanes + k] = a->eigenvalue[i] * ((const double *)p)[i * lanes + k];
    return FRG_OK;
}

/** The eigenvalues that a graph has where everything meets everything: 1 + 0.04 cos t, t from 0 to
 *  pi; and `others` at `at`, apart from these. */
static void fill(diagonal *a, int64_t others, double at)
{
    for (int64_t i = 0; i < N; i++)
        a->eigenvalue[i] = i < others ? at : 1 + 0.04 * cos(3.14159265358979 * (double)i / N);
    a->products = 0;
}

/** Solves for `lanes` right-hand sides, to entries of at most 1e-10; x is N x lanes. */
static void solve_within(frg_context *ctx, diagonal *a, int lanes, const double *b, double *x,
                         int64_t most, bool forecast, fe_cg_column *column)
{
    static double ones[N];
    fe_cg_target target[FE_MAX_LANES];
    fe_cg_work w;
    frgi_arena arena = {0};
    for (int64_t i = 0; i < N; i++)
        ones[i] = 1;
    for (int k = 0; k < lanes; k++)
        target[k] = (fe_cg_target){.total_weight = N,
                                   .within = 1e12 * N,
                                   .total = 1e12 * N,
                                   .tol = 1e-16,
                                   .lane = k,
                                   .most = most,
                                   .forecast = forecast};
    frgi_fe_cg_layout(&arena, N, lanes, &w);
    CHECK_OK(ctx, frgi_arena_open(&arena, ctx, "work"));
    frgi_fe_cg_layout(&arena, N, lanes, &w);
    memcpy(w.r, b, (size_t)(N * lanes) * sizeof *b);
    const fe_system s = {.n = N,
                         .steps = &frgi_fe_host_steps,
                         .times = times,
                         .data = a,
                         .inverse_diag = ones,
                         .level_inverse = ones};
    const fe_cg_call call = {ctx, &s, &w, lanes, 0};
    CHECK_OK(ctx, frgi_fe_cg_run(&call, most, "test", target, column));
    memcpy(x, w.x, (size_t)(N * lanes) * sizeof *x);
    frgi_arena_close(&arena, ctx);
}

static void solve(frg_context *ctx, diagonal *a, int lanes, const double *b, double *x,
                  fe_cg_column *column)
{
    solve_within(ctx, a, lanes, b, x, 100, false, column);
}

/** The largest entry of b - A x of one column. */
static double largest_left(const diagonal *a, const double *b, const double *x)
{
    double most = 0;
    for (int64_t i = 0; i < N; i++)
        most = fmax(most, fabs(b[i] - a->eigenvalue[i] * x[i]));
    return most;
}

static void last_step_without_product(void)
{
    static double b[N], x[N];
    static diagonal a;
    frg_context *ctx = test_context();
    fe_cg_column column;
    fill(&a, 0, 0);
    for (int64_t i = 0; i < N; i++)
        b[i] = test_normal();
    solve(ctx, &a, 1, b, x, &column);
    CHECK(column.done);
    CHECK_INT(column.unseen, 1);
    CHECK_INT(a.products, column.steps - 1);
    CHECK(largest_left(&a, b, x) <= 1e-10);
    frg_context_destroy(ctx);
}

/** Eigenvalues apart from the others make steps of different lengths: whatever is taken to be done
 *  has to be. */
static void what_is_done_is_done(void)
{
    static double b[N], x[N];
    static diagonal a;
    frg_context *ctx = test_context();
    for (int i = 0; i < 200; i++) {
        fe_cg_column column;
        fill(&a, 1 + test_below(30), 0.5 + test_uniform());
        const double size = pow(10, -4 * test_uniform());
        for (int64_t j = 0; j < N; j++)
            b[j] = size * test_normal();
        solve(ctx, &a, 1, b, x, &column);
        CHECK(column.done);
        CHECK_INT(a.products, column.steps - column.unseen);
        CHECK(largest_left(&a, b, x) <= 1e-10);
    }
    frg_context_destroy(ctx);
}

/** The second column is smaller and ends first, on a step with or without a product. */
static void columns_apart(void)
{
    static double b[N * 2], one[N], both[N * 2], alone[N];
    static diagonal a;
    frg_context *ctx = test_context();
    int unseen = 0;
    fill(&a, 0, 0);
    for (int size = 2; size < 8; size++) {
        fe_cg_column column[2], single;
        for (int64_t i = 0; i < N; i++) {
            b[2 * i] = test_normal();
            b[2 * i + 1] = pow(10, -size) * test_normal();
        }
        solve(ctx, &a, 2, b, both, column);
        CHECK(column[0].steps > column[1].steps);
        unseen += column[1].unseen;
        for (int k = 0; k < 2; k++) {
            for (int64_t i = 0; i < N; i++)
                one[i] = b[2 * i + k];
            solve(ctx, &a, 1, one, alone, &single);
            CHECK_INT(single.steps, column[k].steps);
            CHECK_INT(single.unseen, column[k].unseen);
            for (int64_t i = 0; i < N; i++)
                one[i] = both[2 * i + k];
            CHECK_BITS(one, alone, sizeof one);
        }
    }
    CHECK(unseen > 0);
    frg_context_destroy(ctx);
}

/** The eigenvalues of a long path, 2 - 2 cos(pi i / N), need about N steps, as no Ritz value gets
 *  near the smallest before: with 1000 to make, a column is given up before half of them, and a
 *  column beside it that has little to do is not. */
static void forecast_gives_up(void)
{
    static double b[N * 2], x[N * 2];
    static diagonal a;
    frg_context *ctx = test_context();
    fe_cg_column column[2];
    for (int64_t i = 0; i < N; i++) {
        a.eigenvalue[i] = 2 - 2 * cos(3.14159265358979 * (double)(i + 1) / N);
        b[2 * i] = test_normal();
        b[2 * i + 1] = i == N / 2; /* an eigenvector */
    }
    solve_within(ctx, &a, 2, b, x, 1000, true, column);
    CHECK(!column[0].done && column[0].given_up);
    CHECK_SAYS(column[0].steps >= 125 && column[0].steps <= 500, "given up after %" PRId64,
               column[0].steps);
    CHECK(column[0].steps_forecast > 4 * (double)(1000 - column[0].steps));
    CHECK(column[1].done && column[1].steps_forecast == 0);
    for (int most = 1000; most <= 1010; most += 10) { /* not asked to, or with the steps it needs */
        solve_within(ctx, &a, 2, b, x, most == 1000 ? 1000 : 10 * N, most > 1000, column);
        CHECK_INT(column[0].done, most > 1000);
        CHECK(column[0].steps_forecast == 0 &&
              (column[0].steps == 1000 || column[0].steps > N / 2));
    }
    frg_context_destroy(ctx);
}

/** Eigenvalues spread evenly over [1 / condition, 1]: the contraction is the same in every step, (c
 *  - 1) / (c + 1) with c = sqrt(condition) <= 30, and both forecasts are right within a factor of 2
 *  (N eigenvalues lie too close for CG to take single ones out).  A column that has just the steps
 *  that it needs is never given up, and is the same as without a forecast. */
static void forecast_lets_finish(void)
{
    static double b[N], x[N], same[N];
    static diagonal a;
    frg_context *ctx = test_context();
    for (int trial = 0; trial < 20; trial++) {
        const double least = pow(10, -1 - 2 * test_uniform());
        fe_cg_column free, held;
        for (int64_t i = 0; i < N; i++) {
            a.eigenvalue[i] = least + (1 - least) * (double)i / (N - 1);
            b[i] = test_normal();
        }
        solve_within(ctx, &a, 1, b, x, 10 * N, false, &free);
        CHECK(free.done);
        solve_within(ctx, &a, 1, b, same, free.steps, true, &held);
        CHECK_SAYS(held.done, "condition %g: given up after %" PRId64 " of %" PRId64, 1 / least,
                   held.steps, free.steps);
        CHECK_INT(held.steps, free.steps);
        CHECK_BITS(same, x, sizeof x);
    }
    frg_context_destroy(ctx);
}

/** The prediction is the number of steps to 1e-11 at the mean contraction of the first 12, of which
 *  it makes no more. */
static void prediction(void)
{
    static diagonal a;
    static double ones[N];
    frg_context *ctx = test_context();
    for (int64_t i = 0; i < N; i++)
        ones[i] = 1;
    for (int trial = 0; trial < 2; trial++) {
        /* one eigenvalue, and an interval with c = 3 */
        const double c = 3, low = 1 / (c * c);
        for (int64_t i = 0; i < N; i++)
            a.eigenvalue[i] = trial == 0 ? 2 : low + (1 - low) * (double)i / (N - 1);
        a.products = 0;
        fe_cg_work w;
        frgi_arena arena = {0};
        frgi_fe_cg_layout(&arena, N, 1, &w);
        CHECK_OK(ctx, frgi_arena_open(&arena, ctx, "work"));
        frgi_fe_cg_layout(&arena, N, 1, &w);
        const fe_system s = {.n = N,
                             .steps = &frgi_fe_host_steps,
                             .times = times,
                             .data = &a,
                             .inverse_diag = ones,
                             .level_inverse = ones};
        double steps;
        CHECK_OK(ctx, frgi_fe_cg_predict(ctx, &s, &w, FE_PROBE_STEPS, &steps));
        /* c = 3: the residual falls by (c - 1) / (c + 1) = 1/2 a step, 36.5 steps to 1e-11; a mean
         * over 12 of them has the constant 2 of Chebyshev's bound, 2^(1/12) in the rate, and at
         * most c from energy to residual norms */
        const double low_bound[] = {1, 25}, high_bound[] = {1, 45};
        CHECK_SAYS(steps >= low_bound[trial] && steps <= high_bound[trial], "case %d: %g steps",
                   trial, steps);
        CHECK_INT(a.products <= 13, 1);
        frgi_arena_close(&arena, ctx);
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"forecast gives up", forecast_gives_up},
    {"forecast lets finish", forecast_lets_finish},
    {"prediction", prediction},
    {"last step without product", last_step_without_product},
    {"what is done is done", what_is_done_is_done},
    {"columns apart", columns_apart},
};
TEST_MAIN(cases)
