/* test_soap_eigh.c - bases by eigendecomposition that fail: float32, then double, then the basis
 * stays, then again.
 *
 * LAPACK's routines fail on no matrix that can be had on purpose, so that this program has them
 * under their own names and hands calls on to LAPACK unless they are to fail. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include "fault.h"
#include "soap_data.h"

enum { N = 8, STEPS = 9, MOST_CALLS = 64 };

/* ---- LAPACK that fails ----------------------------------------------------------------------- */

typedef enum { WORKS, FAILS, GIVES_NAN } outcome;

/** What the next calls of a routine do, and how many there were.  One thread calls them here. */
static struct {
    outcome f32[MOST_CALLS], f64[MOST_CALLS];
    int n32, n64;
} lapack;

/** Every call of `calls`, from the first on. */
static void lapack_will(outcome f32, int calls32, outcome f64, int calls64)
{
    memset(&lapack, 0, sizeof lapack);
    for (int i = 0; i < calls32; i++)
        lapack.f32[i] = f32;
    for (int i = 0; i < calls64; i++)
        lapack.f64[i] = f64;
}

void ssyevd_(const char *job, const char *part, const int *n, float *a, const int *lda,
             float *values, float *work, const int *n_work, int *integers, const int *n_integers,
             int *info);
void dsyevd_(const char *job, const char *part, const int *n, double *a, const int *lda,
             double *values, double *work, const int *n_work, int *integers, const int *n_integers,
             int *info);

/** Eigenvectors, half written or not numbers, as a failure leaves them. */
#define SYEVD(name, real, what, count)                                                             \
    void name(const char *job, const char *part, const int *n, real *a, const int *lda,            \
              real *values, real *work, const int *n_work, int *integers, const int *n_integers,   \
              int *info)                                                                           \
    {                                                                                              \
        static void (*real_one)(const char *, const char *, const int *, real *, const int *,      \
                                real *, real *, const int *, int *, const int *, int *);           \
        const outcome now = lapack.count < MOST_CALLS ? lapack.what[lapack.count] : WORKS;         \
        lapack.count++;                                                                            \
        if (now == WORKS) {                                                                        \
            if (!real_one)                                                                         \
                *(void **)(void *)&real_one = dlsym(RTLD_NEXT, #name);                             \
            real_one(job, part, n, a, lda, values, work, n_work, integers, n_integers, info);      \
            return;                                                                                \
        }                                                                                          \
        for (int i = 0; i < *n * *n / 2; i++)                                                      \
            a[i] = now == FAILS ? (real)7 : (real)NAN;                                             \
        *info = now == FAILS ? 3 : 0;                                                              \
    }
SYEVD(ssyevd_, float, f32, n32)
SYEVD(dsyevd_, double, f64, n64)

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct {
    frg_context *ctx;
    frg_soap *soap;
    float w[N * N], g[N * N];
    frg_soap_report report;
} run;

static void open_run(run *r, frg_context *ctx, const frg_soap_opts *o)
{
    *r = (run){.ctx = ctx};
    if (CHECK_OK(ctx, frg_soap_create(&r->soap, ctx, o)))
        CHECK_OK(ctx,
                 frg_soap_add_param(r->soap, 0, frg_matrix(r->w, FRG_F32, N, N, N), "w", NULL));
}

static void step(run *r, const float *g)
{
    memcpy(r->g, g, sizeof r->g);
    const frg_array grad = frg_matrix(r->g, FRG_F32, N, N, N);
    frg_warnings_clear(r->ctx);
    CHECK_OK(r->ctx, frg_soap_step(r->soap, &grad, 1, &r->report));
}

static void gradients(float g[STEPS][N * N])
{
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < N * N; i++)
            g[t][i] = (float)test_normal();
}

static frg_soap_opts options(void)
{
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
    o.lr = 0.1;
    o.eps = 0.05;
    o.moment1_basis = FRG_BASIS_EIGEN; /* the moment has to leave and enter every basis */
    return o;
}

static void get(run *r, const char *key, int64_t n, float *to)
{
    const frg_array view = n == 1 ? frg_vector(to, FRG_F32, N) : frg_matrix(to, FRG_F32, N, N, N);
    CHECK_OK(r->ctx, frg_soap_state_get(r->soap, 0, key, view));
}

/** Both bases are eigenvectors of their factors with their values, descending: Q'KQ = diag(lambda)
 *  to N u norm(K). */
static void check_bases(run *r)
{
    static const char *const keys[2][3] = {{"GG.0", "Q.0", "eig.0"}, {"GG.1", "Q.1", "eig.1"}};
    for (int axis = 0; axis < 2; axis++) {
        float k[N * N], q[N * N], lambda[N];
        double norm = 0;
        get(r, keys[axis][0], N, k);
        get(r, keys[axis][1], N, q);
        get(r, keys[axis][2], 1, lambda);
        for (int i = 0; i < N * N; i++)
            norm += (double)k[i] * (double)k[i];
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                CHECK_NEAR(in_basis(N, q, k, i, j), i == j ? (double)lambda[i] : 0,
                           8 * N * 0x1p-24 * sqrt(norm));
            }
        for (int i = 1; i < N; i++)
            CHECK(lambda[i] <= lambda[i - 1]);
    }
}

static void check_identity(run *r)
{
    float left[N * N], right[N * N];
    get(r, "Q.0", N, left);
    get(r, "Q.1", N, right);
    for (int i = 0; i < N * N; i++)
        CHECK(left[i] == (i % (N + 1) == 0) && right[i] == left[i]);
}

/** The first link: float32 fails, or gives NaN and says that it did not; double precision makes the
 *  basis. */
static void double_precision_steps_in(void)
{
    static const outcome kinds[] = {FAILS, GIVES_NAN};
    for (int kind = 0; kind < 2; kind++) {
        frg_context *ctx = test_context_with(1, NULL, NULL);
        const frg_soap_opts o = options();
        float g[STEPS][N * N];
        run r, plain;
        gradients(g);
        open_run(&r, ctx, &o);
        open_run(&plain, ctx, &o);
        for (int t = 0; t < STEPS; t++) {
            lapack_will(WORKS, 0, WORKS, 0);
            step(&plain, g[t]);
            CHECK_INT(lapack.n64, 0);
            CHECK_INT(lapack.n32, t == 0 ? 1 : 0); /* the second basis follows the first */
            lapack_will(kinds[kind], 2, WORKS, 0);
            step(&r, g[t]);
            CHECK_INT(lapack.n32, t == 0 ? 1 : 0); /* afterwards bases are refreshed by QR */
            CHECK_INT(lapack.n64, t == 0 ? 2 : 0);
            CHECK_INT(r.report.eigh, t == 0 ? 2 : 0);
            CHECK_INT(r.report.eigh_failures, 0);
            CHECK_INT(frg_warning_count(ctx), 0);
            if (t == 0) {
                check_bases(&plain);
                check_bases(&r);
            }
            for (int i = 0; i < N * N; i++) /* two sets of eigenvectors: see test_soap.c */
                CHECK_NEAR((double)r.w[i], (double)plain.w[i], 3e-3 * o.lr * (t + 1));
        }
        frg_soap_destroy(r.soap);
        frg_soap_destroy(plain.soap);
        frg_context_destroy(ctx);
    }
}

/** Second moments of a warm-up turn into bases that double precision made as into those of f32. */
static void moments_turn_with_the_rescue(void)
{
    frg_context *ctx = test_context_with(1, NULL, NULL);
    frg_soap_opts o = options();
    o.adam_warmup_steps = 2;
    o.warmup_v = FRG_WARMUP_V_ROTATE;
    float g[STEPS][N * N], v[2][N * N];
    run r[2];
    gradients(g);
    for (int k = 0; k < 2; k++) {
        open_run(&r[k], ctx, &o);
        for (int t = 0; t < 3; t++) {
            lapack_will(k ? FAILS : WORKS, 2, WORKS, 0);
            step(&r[k], g[t]);
        }
        CHECK_INT(lapack.n64, k ? 2 : 0);
        get(&r[k], "exp_avg_sq", N, v[k]);
        frg_soap_destroy(r[k].soap);
    }
    double largest = 0;
    for (int i = 0; i < N * N; i++)
        largest = fmax(largest, (double)v[0][i]);
    for (int i = 0; i < N * N;
         i++) /* squares of eigenvectors that differ by u over relative gaps */
        CHECK_NEAR((double)v[1][i], (double)v[0][i], 1e-3 * largest);
    frg_context_destroy(ctx);
}

/** The second and third: double precision fails as well, the basis stays the identity with a
 *  warning, and is tried again whenever it is due.  That is a warm-up by Adam of as many steps, to
 *  the bit. */
static void the_basis_waits(void)
{
    static const struct {
        int frequency, failing; /* attempts that fail */
        int warmup;             /* the step of the first that does not */
        outcome f64;
    } rows[] = {{1, 1, 1, FAILS}, {1, 3, 3, GIVES_NAN}, {3, 1, 3, FAILS}, {3, 2, 6, FAILS}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        frg_context *ctx = test_context_with(1, NULL, NULL);
        frg_soap_opts o = options();
        o.precondition_frequency = rows[k].frequency;
        float g[STEPS][N * N];
        run r, warm;
        gradients(g);
        open_run(&r, ctx, &o);
        o.adam_warmup_steps = rows[k].warmup;
        open_run(&warm, ctx, &o);
        for (int t = 0; t < STEPS; t++) {
            const bool fails = t < rows[k].warmup, due = t % rows[k].frequency == 0;
            lapack_will(WORKS, 0, WORKS, 0);
            step(&warm, g[t]);
            lapack_will(FAILS, fails ? 2 : 0, rows[k].f64, fails ? 2 : 0);
            step(&r, g[t]);
            CHECK_INT(lapack.n64, fails && due ? 2 : 0);
            CHECK_INT(r.report.eigh_failures, fails && due ? 2 : 0);
            CHECK_INT(r.report.eigh, t == rows[k].warmup ? 2 : 0);
            CHECK_INT(frg_warning_count(ctx), fails && due ? 2 : 0);
            if (fails && due) {
                CHECK_TEXT(frg_warning_code(ctx, 1), "FRG-SOAP-102");
                CHECK(strstr(frg_warning_message(ctx, 1), "factor 1 of 'w'"));
            }
            if (fails)
                check_identity(&r);
            CHECK_BITS(r.w, warm.w, sizeof r.w);
        }
        frg_soap_destroy(r.soap);
        frg_soap_destroy(warm.soap);
        frg_context_destroy(ctx);
    }
}

/** One factor of two fails; what waits is saved with the state, and the adaptive test does not hide
 *  it: the same bits from a state taken in between. */
static void one_factor_waits(void)
{
    frg_context *ctx = test_context_with(1, NULL, NULL);
    frg_soap_opts o = options();
    o.use_adaptive_criteria = 1;
    o.adaptive_scope = FRG_SCOPE_FACTOR;
    o.adaptive_tolerance = 1.9; /* everything passes */
    float g[STEPS][N * N];
    char state[8192];
    int64_t bytes = 0;
    run r, other;
    gradients(g);
    open_run(&r, ctx, &o);
    open_run(&other, ctx, &o);
    lapack_will(FAILS, 1, FAILS, 1);
    step(&r, g[0]);
    CHECK_INT(r.report.eigh, 1);
    CHECK_INT(r.report.eigh_failures, 1);
    CHECK_OK(ctx, frg_soap_save_bytes(r.soap, state, sizeof state, &bytes));
    CHECK_OK(ctx, frg_soap_load_bytes(other.soap, state, bytes, "state"));
    memcpy(other.w, r.w, sizeof r.w);
    for (int t = 1; t < STEPS; t++) {
        run *const both[2] = {&r, &other};
        for (int k = 0; k < 2; k++) {
            lapack_will(WORKS, 0, WORKS, 0);
            step(both[k], g[t]);
            CHECK_INT(both[k]->report.eigh, t == 1 ? 1 : 0);
            CHECK_INT(both[k]->report.skipped, t == 1 ? 1 : 2);
            CHECK_INT(lapack.n32, t == 1 ? 1 : 0);
        }
        CHECK_BITS(other.w, r.w, sizeof r.w);
    }
    frg_soap_destroy(r.soap);
    frg_soap_destroy(other.soap);
    frg_context_destroy(ctx);
}

/** With use_eigh a later one that fails leaves the basis of the step before, and the run goes on as
 *  if it had not been due; the memory for the second attempt may be missing as well. */
static void a_later_basis_stays(void)
{
    for (int missing = 0; missing < 2; missing++) {
        fault_memory memory;
        fault_memory_open(&memory);
        frg_context *ctx = test_context_with(1, &memory.table, NULL);
        frg_soap_opts o = options();
        o.use_eigh = 1;
        float g[STEPS][N * N], q[2][N * N];
        run r, plain;
        gradients(g);
        open_run(&r, ctx, &o);
        o.precondition_frequency = 4; /* due at 0, 4 and 8 */
        open_run(&plain, ctx, &o);
        for (int t = 0; t < STEPS; t++) {
            const bool fails = t % 4 != 0;
            get(&r, "Q.0", N, q[0]);
            lapack_will(FAILS, fails ? 2 : 0, FAILS, fails ? 2 : 0);
            memory.fail_at = fails && missing ? memory.calls + 1 : 0;
            memory.fail_from = true;
            step(&r, g[t]);
            CHECK_INT(lapack.n64, fails && !missing ? 2 : 0);
            memory.fail_at = 0;
            CHECK_INT(r.report.eigh_failures, fails ? 2 : 0);
            get(&r, "Q.0", N, q[1]);
            CHECK((memcmp(q[0], q[1], sizeof q[0]) == 0) == fails);
            lapack_will(WORKS, 0, WORKS, 0);
            step(&plain, g[t]);
            for (int i = 0; i < N * N; i++) /* the moment left its basis and came back: rounding */
                CHECK_NEAR((double)r.w[i], (double)plain.w[i], 3e-3 * o.lr * (t + 1));
        }
        frg_soap_destroy(r.soap);
        frg_soap_destroy(plain.soap);
        frg_context_destroy(ctx);
        CHECK_INT(memory.live_blocks, 0);
    }
}

/** Policy propagate: NaN go into K as they do in other packages; bases stay orthogonal, nothing
 *  aborts. */
static void not_a_number(void)
{
    frg_context *ctx = test_context_with(1, NULL, NULL);
    frg_soap_opts o = options();
    o.nonfinite = FRG_NONFINITE_PROPAGATE;
    for (int first = 0; first < 2; first++) {
        float g[STEPS][N * N];
        run r;
        gradients(g);
        g[first][5] = NAN;
        open_run(&r, ctx, &o);
        lapack_will(WORKS, 0, WORKS, 0);
        for (int t = 0; t < 4; t++)
            step(&r, g[t]);
        CHECK_INT(r.report.eigh_failures, 2);
        CHECK(isnan(r.w[0]));
        float q[N * N];
        get(&r, "Q.1", N, q);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int k = 0; k < N; k++)
                    sum += (double)q[k * N + i] * (double)q[k * N + j];
                CHECK_NEAR(sum, i == j, 1e-5);
            }
        frg_soap_destroy(r.soap);
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"moments turn with the rescue", moments_turn_with_the_rescue},
    {"double precision steps in", double_precision_steps_in},
    {"the basis waits", the_basis_waits},
    {"one factor waits", one_factor_waits},
    {"a later basis stays", a_later_basis_stays},
    {"not a number", not_a_number},
};
TEST_MAIN(cases)
