/* test_gp_forms.c - one value under every storage, number of threads and precision. */
#include "gp_data.h"

/* ---- storage, threads, precision ------------------------------------------------------------- */

static const char *const usual = "1.2*rbf(l=[0.4,0.5,0.9]) + noise(0.05)";
static const char *const composed =
    "0.8*matern52(l=0.5)*linear + 0.5*rq(l=0.3, alpha=2) + noise(0.1)";

static void storages(void)
{
    frg_context *ctx = test_context();
    static gp_data g;
    static const int64_t sizes[] = {31, 200, 333, 640};
    for (int k = 0; k < 8; k++) {
        gp_data_random(&g, test_size(sizes[k / 2], 30), 3, 1);
        double gradient[2][16];
        frg_gp_value v[2] = {0};
        int p = 0;
        for (int s = 0; s < 2; s++) {
            frg_gp_opts o = gp_data_opts("const");
            o.storage = s ? FRG_GP_PACKED : FRG_GP_FULL;
            frg_gp *gp = gp_data_open(ctx, &g, k % 2 ? composed : usual, &o);
            if (gp) {
                CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient[s], NULL, NULL, &v[s]));
                CHECK(v[s].storage == o.storage);
                p = frg_gp_parameter_count(gp);
            }
            frg_gp_destroy(gp);
        }
        CHECK_NEAR(v[0].log_likelihood, v[1].log_likelihood, 1e-12);
        gp_data_check("FULL and PACKED", gradient[0], gradient[1], p, 1e-12);
    }
    frg_context_destroy(ctx);
}

static void any_threads(void)
{
    static const int threads[] = {1, 2, 3, 8};
    static gp_data g;
    static double dx[4][GP_DATA_ROOM];
    for (int k = 0; k < 6; k++) {
        gp_data_random(&g, test_size(k % 2 ? 700 : 90, 40), 3, 1);
        double gradient[4][16] = {0}, loo[4][16] = {0}, information[4][256] = {0};
        frg_gp_value v[4] = {0};
        for (int t = 0; t < 4; t++) {
            frg_context *ctx = test_context_with(threads[t], NULL, NULL);
            frg_gp_opts o = gp_data_opts("const");
            o.precision = (frg_gp_precision)(k / 2);
            o.accuracy = 1; /* right or not */
            frg_gp *gp = gp_data_open(ctx, &g, k % 2 ? usual : composed, &o);
            const frg_array to = frg_matrix(dx[t], FRG_F64, g.n, 3, 3);
            if (gp) {
                CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient[t], &to, NULL, &v[t]));
                CHECK_OK(ctx, frg_gp_eval_information(gp, information[t]));
                CHECK_OK(ctx, frg_gp_eval_loo(gp, NULL, NULL, loo[t], NULL));
            }
            frg_gp_destroy(gp);
            frg_context_destroy(ctx);
            CHECK_BITS(&v[t].log_likelihood, &v[0].log_likelihood, 8);
            CHECK_BITS(gradient[t], gradient[0], sizeof gradient[0]);
            CHECK_BITS(loo[t], loo[0], sizeof loo[0]);
            CHECK_BITS(information[t], information[0], sizeof information[0]);
            CHECK_BITS(dx[t], dx[0], (size_t)(g.n * 3) * 8);
        }
    }
}

/** A value alone, and a value with its gradient: the same bits; and so again after another
 *  theta. */
static void lazy_gradient(void)
{
    frg_context *ctx = test_context();
    static gp_data g;
    for (int k = 0; k < 3; k++) {
        gp_data_random(&g, 200, 3, 1);
        frg_gp_opts o = gp_data_opts("const");
        o.precision = (frg_gp_precision)k;
        frg_gp *gp = gp_data_open(ctx, &g, usual, &o);
        double theta[16], first[16], again[16];
        frg_gp_value v, w;
        if (gp) {
            gp_data_theta(gp, theta);
            CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
            CHECK_OK(ctx, frg_gp_eval(gp, &v));
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, first, NULL, NULL, &w));
            CHECK_BITS(&v.log_likelihood, &w.log_likelihood, 8);
            const double kept = theta[1];
            theta[1] = 1.5 * kept;
            CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
            CHECK_OK(ctx, frg_gp_eval(gp, NULL));
            theta[1] = kept;
            CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, again, NULL, NULL, &w));
            CHECK_BITS(&w.log_likelihood, &v.log_likelihood, 8);
            CHECK_BITS(again, first, sizeof *first * (size_t)frg_gp_parameter_count(gp));
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** |got - want| <= tolerance max |want| in every component. */
static void within_its_largest(const char *name, const double *got, const double *want, int count,
                               double tolerance)
{
    double largest = 0;
    for (int i = 0; i < count; i++) {
        largest = fmax(largest, fabs(want[i]));
    }
    for (int i = 0; i < count; i++) {
        CHECK_SAYS(fabs(got[i] - want[i]) <= tolerance * largest,
                   "%s: component %d is %.10g, not %.10g (largest %g)", name, i, got[i], want[i],
                   largest);
    }
}

/** On a grid every distance occurs often, and what is rounded, is rounded equally: gradients in
 *  mixed arithmetic are within 1e-5 of their largest component all the same, which is the promise
 *  of the header. */
static void mixed_on_a_grid(void)
{
    enum { SIDE = 24, N = SIDE * SIDE };
    static double x[N * 2], y[N];
    static const char *const kernels[] = {"1.3*rbf(l=[0.3,0.4]) + noise(0.01)",
                                          "1.3*rbf(l=[0.3,0.4]) + noise(0.1)",
                                          "2*matern32(l=0.5)*periodic(l=1,p=0.7) + noise(0.03)"};
    frg_context *ctx = test_context();
    for (int i = 0; i < N; i++) {
        x[2 * i] = i % SIDE / (double)(SIDE - 1);
        x[2 * i + 1] = i / SIDE / (double)(SIDE - 1);
        y[i] = sin(6 * x[2 * i]) * cos(5 * x[2 * i + 1]) + 0.1 * test_normal();
    }
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        double gradient[2][8], dx[2][N * 2];
        int count = 0;
        for (int m = 0; m < 2; m++) {
            frg_gp_opts o = gp_data_opts("const");
            o.precision = m ? FRG_GP_MIXED : FRG_GP_F64;
            const frg_array to = frg_matrix(dx[m], FRG_F64, N, 2, 2);
            frg_gp *gp = NULL;
            if (CHECK_OK(ctx, frg_gp_create(&gp, ctx, frg_matrix(x, FRG_F64, N, 2, 2),
                                            frg_vector(y, FRG_F64, N), kernels[k], &o))) {
                CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient[m], &to, NULL, NULL));
                count = frg_gp_parameter_count(gp);
            }
            frg_gp_destroy(gp);
        }
        within_its_largest(kernels[k], gradient[1], gradient[0], count, 1e-5);
        within_its_largest("dx", dx[1], dx[0], N * 2, 1e-5);
    }
    frg_context_destroy(ctx);
}

static void mixed(void)
{
    static const double noises[] = {1e-1, 1e-3, 1e-5, 1e-6, 1e-9};
    frg_context *ctx = test_context();
    static gp_data g;
    for (int k = 0; k < 5; k++) {
        gp_data_random(&g, test_size(300, 30), 3, 1);
        char kernel[80];
        snprintf(kernel, sizeof kernel, "rbf(l=1) + noise(%g)", noises[k]);
        double gradient[2][4];
        frg_gp_value v[2] = {0};
        for (int m = 0; m < 2; m++) {
            frg_gp_opts o = gp_data_opts("const");
            o.precision = m ? FRG_GP_MIXED : FRG_GP_F64;
            frg_gp *gp = gp_data_open(ctx, &g, kernel, &o);
            if (gp) {
                CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient[m], NULL, NULL, &v[m]));
            }
            frg_gp_destroy(gp);
        }
        CHECK_BITS(&v[1].log_likelihood, &v[0].log_likelihood, 8);
        CHECK_BITS(&v[1].jitter, &v[0].jitter, 8);
        within_its_largest(kernel, gradient[1], gradient[0], 3, v[1].promoted ? 1e-12 : 1e-5);
        /* of few points the gradient may be so small beside its sums that it is computed again in
         * f64 at any noise */
        const int may = k < 4 && (k > 0 || g.n < 300);
        CHECK_SAYS(v[1].promoted == (k >= 4) || may, "%s: promoted %d", kernel, v[1].promoted);
    }
    frg_context_destroy(ctx);
}

/** float32 is right, or says "precision": never silently wrong. */
static void single(void)
{
    static const double noises[] = {1e-1, 1e-2, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6};
    static gp_data g;
    frg_context *ctx = test_context();
    int answered = 0, refused = 0;
    for (int k = 0; k < 7; k++) {
        gp_data_random(&g, test_size(500, 40), 5, 1);
        char kernel[80];
        snprintf(kernel, sizeof kernel, "rbf(l=1) + noise(%g)", noises[k]);
        frg_gp_opts o = gp_data_opts("const");
        frg_gp *gp = gp_data_open(ctx, &g, kernel, &o);
        double want[4], got[4], promoted[4];
        frg_gp_value v = {0}, w = {0};
        if (gp) {
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, want, NULL, NULL, &v));
        }
        frg_gp_destroy(gp);
        o.precision = FRG_GP_F32;
        gp = gp_data_open(ctx, &g, kernel, &o);
        const frg_status status = gp ? frg_gp_eval_gradient(gp, got, NULL, NULL, &w) : FRG_BUG;
        if (status == FRG_OK && w.jitter == 0) {
            answered++;
            const double error = fabs(w.log_likelihood - v.log_likelihood);
            CHECK_SAYS(error <= 1e-3 * (fabs(v.log_likelihood) + 1), "%s: %g instead of %g", kernel,
                       w.log_likelihood, v.log_likelihood);
            CHECK_SAYS(error <= w.error_estimate, "%s: error %g, estimate %g", kernel, error,
                       w.error_estimate);
            gp_data_check(kernel, got, want, 3, 1e-2);
        } else {
            refused++;
            CHECK_SAYS(status == FRG_BROKE_DOWN || (status == FRG_OK && frg_warning_count(ctx) > 0),
                       "%s: %s", kernel, frg_status_name(status));
        }
        frg_gp_destroy(gp);
        o.auto_promote = 1; /* then it is the f64 answer to the bit */
        gp = gp_data_open(ctx, &g, kernel, &o);
        if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, promoted, NULL, NULL, &w))) {
            CHECK_SAYS(w.promoted == (status != FRG_OK), "%s: promoted %d after %s", kernel,
                       w.promoted, frg_status_name(status));
            CHECK(!w.promoted || memcmp(&w.log_likelihood, &v.log_likelihood, 8) == 0);
            gp_data_check(kernel, promoted, w.promoted ? want : got, 3, w.promoted ? 1e-12 : 0);
        }
        frg_gp_destroy(gp);
    }
    CHECK_SAYS(answered >= 2 && (refused >= 2 || g.n < 500), "%d answered, %d refused", answered,
               refused);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"storages", storages},
    {"any threads", any_threads},
    {"lazy gradient", lazy_gradient},
    {"mixed on a grid", mixed_on_a_grid},
    {"mixed", mixed},
    {"single", single},
};
TEST_MAIN(cases)
