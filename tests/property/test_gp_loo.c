/* test_gp_loo.c - leave-one-out and blocks of rows against refits and differences.
 *
 * Differences: gp_data_differences, 1e-6 relative.
 */
#include "gp_data.h"

static const struct {
    const char *mean;
    int64_t q;
    frg_gp_storage storage;
} gradient_models[] = {{"const(0.3)", 1, FRG_GP_FULL},
                       {"linear", 2, FRG_GP_PACKED},
                       {"profiled", 1, FRG_GP_PACKED},
                       {"profiled(linear)", 2, FRG_GP_FULL},
                       {"profiled(linear)", 1, FRG_GP_PACKED}};

static void leave_one_out_gradient(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    int32_t groups[24];
    for (int i = 0; i < 24; i++) {
        groups[i] = i % 2;
    }
    for (size_t k = 0; k < sizeof gradient_models / sizeof *gradient_models; k++) {
        gp_data_random(&g, 24, 2, gradient_models[k].q);
        frg_gp_opts o = gp_data_opts(gradient_models[k].mean);
        o.storage = gradient_models[k].storage;
        o.noise_groups = groups;
        frg_gp *gp = gp_data_open(
            ctx, &g, "0.9*rbf(l=[0.3,0.5])*rq(l=0.8, alpha=1) + 0.2*linear + noise(0.1)", &o);
        double got[16], want[16], value[16], again[16];
        if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, value, NULL, NULL, NULL)) &&
            CHECK_OK(ctx, frg_gp_eval_loo(gp, NULL, NULL, got, NULL))) {
            const int p = frg_gp_parameter_count(gp);
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, again, NULL, NULL,
                                               NULL)); /* unharmed by what it did */
            gp_data_check("the gradient after leave-one-out", again, value, p, 1e-12);
            gp_data_differences(ctx, gp, gp_data_density, want);
            gp_data_check(gradient_models[k].mean, got, want, p, 1e-6);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** Without point i: the value of all less the value of the others is the density of y_i given
 *  them. */
static void leave_one_out_refits(void)
{
    static const struct {
        const char *mean;
        int64_t q;
        bool reml;
    } models[] = {{"zero", 1, false},
                  {"const(0.2)", 3, false},
                  {"linear", 1, false},
                  {"profiled", 1, true},
                  {"profiled(linear)", 2, true}};
    frg_context *ctx = test_context();
    gp_data g, less;
    const char *const kernel = "1.2*rbf(l=[0.4,0.6]) + noise(0.1)";
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        gp_data_random(&g, 22, 2, models[k].q);
        frg_gp_opts o = gp_data_opts(models[k].mean);
        o.reml = models[k].reml;
        frg_gp *all = gp_data_open(ctx, &g, kernel, &o);
        double mean[66], variance[22], sum = 0, square = 0, theta[16];
        frg_gp_loo out = {0};
        if (!all || !CHECK_OK(ctx, frg_gp_eval_loo(all, mean, variance, NULL, &out)))
            return;
        const double whole = gp_data_value(ctx, all);
        gp_data_theta(all, theta);
        for (int64_t i = 0; i < g.n; i++) {
            less = g;
            less.n = g.n - 1;
            memmove(less.x + 2 * i, less.x + 2 * i + 2, (size_t)(2 * (less.n - i)) * 8);
            for (int64_t c = 0; c < g.q; c++) {
                memcpy(less.y + c * less.n, g.y + c * g.n, (size_t)i * 8);
                memcpy(less.y + c * less.n + i, g.y + c * g.n + i + 1, (size_t)(less.n - i) * 8);
            }
            frg_gp *gp = gp_data_open(ctx, &less, kernel, &o);
            if (gp && CHECK_OK(ctx, frg_gp_update_parameters(gp, theta))) {
                const double given = whole - gp_data_value(ctx, gp);
                double want = 0;
                for (int64_t c = 0; c < g.q; c++) {
                    const double e = g.y[c * g.n + i] - mean[i * g.q + c];
                    want -= 0.5 * (e * e / variance[i] + log(variance[i]) + 1.8378770664093454836);
                    square += e * e;
                }
                CHECK_NEAR(want, given, 1e-10);
                sum += want;
            }
            frg_gp_destroy(gp);
        }
        CHECK_NEAR(out.log_density, sum, 1e-12);
        CHECK_NEAR(out.rmse, sqrt(square / (double)(g.n * g.q)), 1e-12);
        frg_gp_destroy(all);
    }
    frg_context_destroy(ctx);
}

static void leave_one_out_low(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 80, 2, 1);
    double gradient[3][4], mean[3][80];
    for (int k = 0; k < 3; k++) {
        frg_gp_opts o = gp_data_opts("const");
        o.precision = (frg_gp_precision)k;
        frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.1)", &o);
        if (gp) {
            CHECK_OK(ctx, frg_gp_eval_loo(gp, mean[k], NULL, gradient[k], NULL));
        }
        frg_gp_destroy(gp);
        gp_data_check("leave-one-out", gradient[k], gradient[0], 4, k == 1 ? 1e-3 : 0);
        gp_data_check("leave-one-out", mean[k], mean[0], 80, k == 1 ? 1e-3 : 0);
    }
    /* one point decides the slope: leaving it out leaves nothing */
    for (int64_t i = 0; i < g.n; i++) {
        g.x[2 * i] = i == 17;
    }
    const frg_gp_opts o = gp_data_opts("profiled(linear)");
    frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.1)", &o);
    if (gp) {
        CHECK_STATUS(frg_gp_eval_loo(gp, NULL, NULL, NULL, NULL), FRG_BAD_ARG);
        CHECK_SAYS(strstr(frg_message(ctx), "row 17"), "%s", frg_message(ctx));
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- blocks of rows -------------------------------------------------------------------------- */

/** The rows outside (inside = 0) or inside one fold. */
static void select_fold(const gp_data *g, const int32_t *folds, int32_t fold, int inside,
                        gp_data *out)
{
    out->n = 0;
    out->d = g->d;
    out->q = 1;
    for (int64_t i = 0; i < g->n; i++) {
        if ((folds[i] == fold) == (inside != 0)) {
            memcpy(out->x + out->n * g->d, g->x + i * g->d, (size_t)g->d * sizeof *g->x);
            out->y[out->n++] = g->y[i];
        }
    }
}

/** Each fold against a process without its rows: means and variances by its prediction, the log
 *  density as what the rows add to the likelihood, ell(all) - ell(others).  A profiled mean's
 *  ell(all) belongs to another mean: there the means and variances alone are compared.  cond(K) =
 *  60 / 0.08, so that 1e-9 leaves four digits of room. */
static void folds_by_refits(void)
{
    static const char *const means[] = {"const(0.2)", "profiled", "profiled(linear)"};
    enum { N = 41, FOLDS = 5 };
    static gp_data g, rest, out;
    const char *const kernel = "1.1*rbf(l=[0.3,0.5]) + 0.3*matern12(l=0.4) + noise(0.08)";
    int32_t folds[N];
    double mean[N], variance[N], got_mean[N], got_variance[N], theta[GP_DATA_PARAMETERS];
    frg_context *ctx = test_context();
    gp_data_random(&g, N, 2, 1);
    for (int i = 0; i < N; i++) { /* one fold of one row, one code without rows */
        folds[i] = i == 7 ? 5 : (int32_t)test_below(FOLDS - 1);
    }
    for (size_t k = 0; k < sizeof means / sizeof *means; k++) {
        const frg_gp_opts o = gp_data_opts(means[k]);
        frg_gp *all = gp_data_open(ctx, &g, kernel, &o);
        frg_gp_loo got;
        double density = 0, square = 0;
        if (!all || !CHECK_OK(ctx, frg_gp_eval_folds(all, folds, mean, variance, NULL, &got))) {
            continue;
        }
        gp_data_theta(all, theta);
        const double whole = gp_data_value(ctx, all);
        for (int32_t f = 0; f <= FOLDS; f++) {
            select_fold(&g, folds, f, 0, &rest);
            select_fold(&g, folds, f, 1, &out);
            frg_gp *gp = out.n > 0 ? gp_data_open(ctx, &rest, kernel, &o) : NULL;
            if (!gp) {
                continue;
            }
            frg_array to_mean = frg_vector(got_mean, FRG_F64, out.n),
                      to_variance = frg_vector(got_variance, FRG_F64, out.n);
            frg_gp_predict_opts po;
            frg_gp_predict_defaults(&po, sizeof po);
            po.observed = 1;
            po.mean = &to_mean;
            po.variance = &to_variance;
            CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
            density += whole - gp_data_value(ctx, gp);
            CHECK_OK(ctx, frg_gp_predict(gp, gp_data_x(&out), &po));
            for (int64_t i = 0, at = 0; i < N; i++) {
                if (folds[i] == f) {
                    CHECK_NEAR(mean[i], got_mean[at], 1e-9);
                    CHECK_NEAR(variance[i], got_variance[at], 1e-9);
                    square += (g.y[i] - got_mean[at]) * (g.y[i] - got_mean[at]);
                    at++;
                }
            }
            frg_gp_destroy(gp);
        }
        if (k == 0) {
            CHECK_NEAR(got.log_density, density, 1e-9);
        }
        CHECK_NEAR(got.rmse, sqrt(square / N), 1e-9);
        frg_gp_destroy(all);
    }
    frg_context_destroy(ctx);
}

/** Folds of one row are leave-one-out, in every type and for several outputs; one fold of all rows
 *  is the prior, and with a mean to estimate it is none. */
static void folds_at_the_ends(void)
{
    enum { N = 60 };
    static gp_data g;
    int32_t each[N], all[N] = {0}, bad[N] = {0};
    double mean[2 * N], variance[N], want_mean[2 * N], want_variance[N];
    frg_context *ctx = test_context();
    gp_data_random(&g, N, 2, 2);
    for (int32_t i = 0; i < N; i++) {
        each[i] = N - 1 - i;
    }
    for (int k = 0; k < 3; k++) {
        frg_gp_opts o = gp_data_opts(k == 0 ? "profiled(linear)" : "const(0.1)");
        o.precision = (frg_gp_precision)k;
        /* the same inverse divided in two ways: rounding of the type it is in */
        const double tolerance = o.precision == FRG_GP_F32 ? 1e-5 : 1e-11;
        frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.2)", &o);
        frg_gp_loo got, want;
        if (gp && CHECK_OK(ctx, frg_gp_eval_loo(gp, want_mean, want_variance, NULL, &want)) &&
            CHECK_OK(ctx, frg_gp_eval_folds(gp, each, mean, variance, NULL, &got))) {
            gp_data_check("means of folds of one", mean, want_mean, 2 * N, tolerance);
            gp_data_check("variances of folds of one", variance, want_variance, N, tolerance);
            CHECK_NEAR(got.log_density, want.log_density, 10 * tolerance);
            CHECK_NEAR(got.rmse, want.rmse, tolerance);
        }
        if (k == 0) {
            CHECK_STATUS(frg_gp_eval_folds(gp, all, mean, variance, NULL, NULL), FRG_BAD_ARG);
            CHECK(strstr(frg_message(ctx), "the mean alone"));
        } else if (k == 2 &&
                   CHECK_OK(ctx, frg_gp_eval_folds(gp, all, mean, variance, NULL, &got))) {
            CHECK_NEAR(got.log_density, gp_data_value(ctx, gp), 1e-9);
            for (int i = 0; i < N; i++) {
                CHECK_NEAR(mean[2 * i], 0.1, 1e-9);
                CHECK_NEAR(variance[i], 1.4, 1e-9);
            }
        }
        bad[4] = k == 1 ? -1 : N;
        CHECK_STATUS(frg_gp_eval_folds(gp, bad, mean, variance, NULL, NULL), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "row 4"));
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** Three folds of different sizes, each scattered over the rows. */
static void three_folds(int64_t n, int32_t *folds)
{
    for (int64_t i = 0; i < n; i++) {
        folds[i] = (int32_t)(i * i % 7 % 3);
    }
}

static double density_of_folds(frg_context *ctx, frg_gp *gp, const double *theta)
{
    int32_t folds[24];
    frg_gp_loo v = {.log_density = (double)NAN};
    three_folds(24, folds);
    CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
    CHECK_OK(ctx, frg_gp_eval_folds(gp, folds, NULL, NULL, NULL, &v));
    return v.log_density;
}

static void folds_gradient(void)
{
    enum { N = 24 };
    frg_context *ctx = test_context();
    static gp_data g;
    int32_t groups[N], folds[N];
    three_folds(N, folds);
    for (int i = 0; i < N; i++) {
        groups[i] = i % 2;
    }
    for (size_t k = 0; k < sizeof gradient_models / sizeof *gradient_models; k++) {
        gp_data_random(&g, N, 2, gradient_models[k].q);
        frg_gp_opts o = gp_data_opts(gradient_models[k].mean);
        o.storage = gradient_models[k].storage;
        o.noise_groups = groups;
        frg_gp *gp = gp_data_open(
            ctx, &g, "0.9*rbf(l=[0.3,0.5])*rq(l=0.8, alpha=1!) + 0.2*linear + noise(0.1)", &o);
        double got[16], want[16], value[16], again[16];
        if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, value, NULL, NULL, NULL)) &&
            CHECK_OK(ctx, frg_gp_eval_folds(gp, folds, NULL, NULL, got, NULL))) {
            const int p = frg_gp_parameter_count(gp);
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, again, NULL, NULL, NULL));
            gp_data_check("the gradient after folds", again, value, p, 1e-12);
            gp_data_differences(ctx, gp, density_of_folds, want);
            want[gp_data_find(gp, "rq.alpha")] = 0; /* fixed */
            gp_data_check(gradient_models[k].mean, got, want, p, 1e-6);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** Folds of one have the gradient of leave-one-out, in every type, over several storage tiles and
 *  for any number of threads to the bit.  cond(K) = 600 / 0.2: 1e-10 and, in f32, where two
 *  triangles of n roundings meet, 1e-3. */
static void folds_of_one_gradient(void)
{
    static gp_data g;
    const int n = (int)test_size(600, 80);
    int32_t *const each = malloc((size_t)n * sizeof *each);
    double got[3][GP_DATA_PARAMETERS], want[GP_DATA_PARAMETERS];
    gp_data_random(&g, n, 2, 2);
    for (int32_t i = 0; i < n; i++) {
        each[i] = n - 1 - i;
    }
    for (int k = 0; k < 3; k++) {
        frg_gp_opts o = gp_data_opts("const(0.1)");
        o.precision = (frg_gp_precision)k;
        for (int threads = 1; threads <= 3; threads++) {
            frg_context *ctx = test_context_with(threads, NULL, NULL);
            frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=[0.4,0.6]) + noise(0.2)", &o);
            const int p = frg_gp_parameter_count(gp);
            if (gp &&
                CHECK_OK(ctx, frg_gp_eval_folds(gp, each, NULL, NULL, got[threads - 1], NULL)) &&
                CHECK_OK(ctx, frg_gp_eval_loo(gp, NULL, NULL, want, NULL))) {
                gp_data_check("gradient of folds of one", got[threads - 1], want, p,
                              o.precision == FRG_GP_F32 ? 1e-3 : 1e-10);
                CHECK_BITS(got[threads - 1], got[0], (size_t)p * sizeof **got);
            }
            frg_gp_destroy(gp);
            frg_context_destroy(ctx);
        }
    }
    free(each);
}

/** The function's variance without point i: what a process without it predicts there, white noise
 *  and all. */
static void latent_by_refits(void)
{
    enum { N = 20 };
    static gp_data g, less;
    const char *const kernel = "1.2*rbf(l=[0.4,0.6]) + 0.3*white(0.2) + noise(0.1)";
    double latent[N], known[N], rest[N];
    frg_context *ctx = test_context();
    gp_data_random(&g, N, 2, 1);
    for (int i = 0; i < N; i++) {
        known[i] = 0.1 * test_uniform();
    }
    frg_gp_opts o = gp_data_opts("profiled(linear)");
    o.noise_variances = known;
    frg_gp *all = gp_data_open(ctx, &g, kernel, &o);
    if (all && CHECK_OK(ctx, frg_gp_eval_loo_latent(all, latent))) {
        for (int i = 0; i < N; i++) {
            int at = 0;
            less = g;
            less.n = N - 1;
            for (int k = 0; k < N; k++) {
                if (k != i) {
                    memcpy(less.x + 2 * at, g.x + 2 * k, 2 * sizeof *g.x);
                    less.y[at] = g.y[k];
                    rest[at++] = known[k];
                }
            }
            double want = NAN;
            frg_array to = frg_vector(&want, FRG_F64, 1);
            frg_gp_predict_opts po;
            frg_gp_predict_defaults(&po, sizeof po);
            po.variance = &to;
            o.noise_variances = rest;
            frg_gp *gp = gp_data_open(ctx, &less, kernel, &o);
            if (gp) {
                CHECK_OK(ctx, frg_gp_predict(gp, frg_matrix(g.x + 2 * i, FRG_F64, 1, 2, 2), &po));
                CHECK_NEAR(latent[i], want, 1e-10);
            }
            frg_gp_destroy(gp);
        }
        CHECK_STATUS(frg_gp_eval_loo_latent(all, NULL), FRG_BAD_ARG);
    }
    frg_gp_destroy(all);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"leave-one-out gradient", leave_one_out_gradient},
    {"leave-one-out by refits", leave_one_out_refits},
    {"leave-one-out in low precision", leave_one_out_low},
    {"folds by refits", folds_by_refits},
    {"folds at the ends", folds_at_the_ends},
    {"gradient of folds", folds_gradient},
    {"gradient of folds of one", folds_of_one_gradient},
    {"latent variances by refits", latent_by_refits},
};
TEST_MAIN(cases)
