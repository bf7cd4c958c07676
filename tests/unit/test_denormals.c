/* test_denormals.c - who computes with denormals as zeros, and that nobody is left with it. */
#include <float.h>
#include <math.h>
#include <omp.h>

#include "core/denormals.h"
#include "fourge/soap.h"
#include "gp_data.h"
#include "test.h"

enum { POINTS = 1200, THREADS = 4 };

/** DBL_MIN / 4 of this thread: 2^-1024, or 0 where denormals are zeros. */
static double quarter(void)
{
    volatile double tiny = DBL_MIN;
    return tiny / 4;
}

static void modes(void)
{
#if defined(__SSE2__)
    const unsigned ieee = frgi_flush_denormals();
    CHECK(quarter() == 0);
    const unsigned flushed = frgi_keep_denormals();
    CHECK(quarter() > 0);
    frgi_restore_denormals(flushed);
    CHECK(quarter() == 0);
    frgi_restore_denormals(ieee);
#endif
    CHECK(quarter() > 0);
}

/** Which threads of the pool have IEEE's numbers: all, or the first of those that do not. */
static void every_thread_is_as_it_was(void)
{
    double seen[THREADS];
#pragma omp parallel num_threads(THREADS)
    seen[omp_get_thread_num()] = quarter();
    for (int i = 0; i < omp_get_max_threads() && i < THREADS; i++) {
        CHECK_SAYS(seen[i] > 0, "thread %d", i);
    }
}

static double largest_seen; /* quarter() within the kernel, over all threads */

static void fill(const double *theta, int64_t m, const double *rows, int64_t n, const double *cols,
                 int64_t d, double *k, int64_t ld, void *user)
{
    (void)user;
    const double seen = quarter();
#pragma omp critical(seen)
    largest_seen = fmax(largest_seen, seen);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            k[i + j * ld] = theta[0] * exp(-40 * fabs(rows[i * d] - cols[j * d]));
        }
    }
}

static void pull(const double *theta, int64_t m, const double *rows, int64_t n, const double *cols,
                 int64_t d, const double *w, int64_t ld, double *gradient, void *user)
{
    (void)theta, (void)m, (void)rows, (void)n, (void)cols, (void)d, (void)w, (void)ld, (void)user;
    gradient[0] += 0;
}

/** A kernel of the caller's is asked from within: on one thread and on several denormals are zeros
 *  there, and the threads have theirs back. */
static void processes(void)
{
#if defined(__SSE2__)
    for (int threads = 1; threads <= THREADS; threads += THREADS - 1) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        gp_data g;
        gp_data_random(&g, test_size(POINTS, 300), 1, 1);
        const double start = 1;
        const frg_gp_user_kernel user = {
            .n_parameters = 1, .start = &start, .fill = fill, .pull = pull};
        frg_gp_opts o = gp_data_opts("zero");
        o.user_kernel = &user;
        frg_gp *gp = gp_data_open(ctx, &g, "user + noise(0.1)", &o);
        frg_gp_value v;
        largest_seen = 0;
        if (gp) {
            CHECK_OK(ctx, frg_gp_eval(gp, &v));
            CHECK(largest_seen == 0);
            every_thread_is_as_it_was();
        }
        frg_gp_destroy(gp);
        frg_context_destroy(ctx);
    }
#endif
}

/** Moments of what has no gradient any more are 0 after as many steps as it takes to get below
 *  FLT_MIN: 0.05 x 1e-12 x 0.95^1100 = 1.6e-38, 40 steps more are 2e-39.  With denormals they would
 *  never be: 0.95 times the least of them is rounded to itself.  At levels without FMA the change
 *  of a step, (1 - beta) m, is flushed before it is added: a moment stays where that is less than
 *  FLT_MIN, which is no denormal either. */
static void moments(void)
{
#if defined(__SSE2__)
    enum { SIZE = 300, LOUD = 1, STEPS = 1160 };
    for (int threads = 1; threads <= THREADS; threads += THREADS - 1) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        float w[SIZE] = {0}, g[SIZE], moment[SIZE];
        for (int i = 0; i < SIZE; i++) {
            g[i] = 1e-6f;
        }
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
        frg_soap *soap = NULL;
        CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, frg_vector(w, FRG_F32, SIZE), "w", NULL));
        const frg_array grad = frg_vector(g, FRG_F32, SIZE);
        for (int t = 0; t < STEPS; t++) {
            if (t == LOUD) {
                memset(g, 0, sizeof g);
            }
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        }
        static const char *const keys[] = {"exp_avg", "exp_avg_sq"};
        const bool fused = frg_isa(ctx)[0] == 'v' && frg_isa(ctx)[1] >= '3';
        for (int k = 0; k < 2; k++) {
            CHECK_OK(ctx, frg_soap_state_get(soap, 0, keys[k], frg_vector(moment, FRG_F32, SIZE)));
            const double beta = k ? o.beta2 : o.beta1;
            for (int i = 0; i < SIZE; i++) {
                const double m = (double)moment[i];
                CHECK_SAYS(m == 0 ||
                               (!fused && m >= (double)FLT_MIN && m * (1 - beta) < (double)FLT_MIN),
                           "%s[%d] = %g", keys[k], i, m);
            }
        }
        every_thread_is_as_it_was();
        frg_soap_destroy(soap);
        frg_context_destroy(ctx);
    }
#endif
}

static const test_case cases[] = {{"modes", modes}, {"processes", processes}, {"moments", moments}};
TEST_MAIN(cases)
