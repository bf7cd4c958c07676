/* test_gp_loo.c - leave-one-out against refits and differences.
 *
 * Differences: gp_data_differences, 1e-6 relative.
 */
#include "gp_data.h"

static void leave_one_out_gradient(void)
{
    static const struct {
        const char *mean;
        int64_t q;
        frg_gp_storage storage;
    } models[] = {{"const(0.3)", 1, FRG_GP_FULL},
                  {"linear", 2, FRG_GP_PACKED},
                  {"profiled", 1, FRG_GP_PACKED},
                  {"profiled(linear)", 2, FRG_GP_FULL},
                  {"profiled(linear)", 1, FRG_GP_PACKED}};
    frg_context *ctx = test_context();
    gp_data g;
    int32_t groups[24];
    for (int i = 0; i < 24; i++) {
        groups[i] = i % 2;
    }
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        gp_data_random(&g, 24, 2, models[k].q);
        frg_gp_opts o = gp_data_opts(models[k].mean);
        o.storage = models[k].storage;
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
            gp_data_check(models[k].mean, got, want, p, 1e-6);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** Without point i: the value of all less the value of the others is the density of y_i given them. */
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
        CHECK_SAYS(strstr(frg_message(ctx), "row 18"), "%s", frg_message(ctx));
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"leave-one-out gradient", leave_one_out_gradient},
    {"leave-one-out by refits", leave_one_out_refits},
    {"leave-one-out in low precision", leave_one_out_low},
};
TEST_MAIN(cases)
