/* test_gp_fit.c - fits of Gaussian processes: evaluations to the optimum, other programs' optima,
 * bounds, starts, limits, failures, units, threads.
 *
 * Numbers of other programs: the optima of tests/golden/gp_fit.txt (scikit-learn's kernels, the
 * likelihood in NumPy, SciPy's L-BFGS-B; data/diabetes.csv, 442 x 10, y standardised by the
 * population deviation), GPyTorch 1.15.2 with torch 2.15 for Adam.
 */
#include "fourge/table.h"
#include "golden_text.h"
#include "gp_data.h"

enum { DIABETES_N = 442, DIABETES_D = 10 };

/** standardised: y by its population deviation, as the reference numbers have it. */
static bool diabetes(gp_data *g, bool standardised)
{
    frg_context *ctx = test_context();
    frg_table *t = NULL;
    frg_status s = frg_table_read(&t, ctx, FOURGE_SOURCE_DIR "/data/diabetes.csv", NULL);
    *g = (gp_data){.n = DIABETES_N, .d = DIABETES_D, .q = 1};
    for (int k = 0; s >= 0 && k <= DIABETES_D; k++) {
        const frg_column *c = frg_table_column(t, k);
        for (int64_t i = 0; i < DIABETES_N; i++) {
            const double v = c->numbers ? c->numbers[i] : (double)c->integers[i];
            *(k < DIABETES_D ? &g->x[i * DIABETES_D + k] : &g->y[i]) =
                k < DIABETES_D || !standardised ? v : (v - 152.13348416289594) / 77.00574586944044;
        }
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
    return CHECK_STATUS(s, FRG_OK);
}

/** The largest likelihood of a case of tools/make_gp_fit_golden.py. */
static double optimum(const char *name)
{
    double best = (double)NAN;
    golden_array(FOURGE_SOURCE_DIR "/tests/golden/gp_fit.txt", name, &best);
    return best;
}

static frg_gp_fit_opts fit_opts(frg_gp_optimizer method)
{
    frg_gp_fit_opts f;
    frg_gp_fit_defaults(&f, sizeof f);
    f.optimizer = method;
    return f;
}

/** Evaluations until the likelihood was within `gap` of `best`. */
static int64_t values_until(const frg_gp_fit_result *r, double best, double gap)
{
    for (int64_t i = 0; i < r->n_trace; i++)
        if (r->trace[i].log_likelihood >= best - gap)
            return r->trace[i].values;
    return INT64_MAX;
}

#define ARD "1*rbf(l=[0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1]) + noise(0.5)"

/* ---- how fast and how far -------------------------------------------------------------------- */

static void few_evaluations(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    frg_gp_opts o = gp_data_opts("zero");
    frg_gp_fit_opts f = fit_opts(FRG_GP_OPT_AUTO);
    frg_gp_fit_result r = {0};
    if (!diabetes(&g, true))
        return;
    frg_gp *gp = gp_data_open(ctx, &g, ARD, &o);
    if (gp && CHECK_OK(ctx, frg_gp_fit(gp, &f, &r))) {
        CHECK_TEXT(r.optimizer, "ai");
        const double best = optimum("rbf_ard");
        CHECK_SAYS(values_until(&r, best, 0.01) <= 20, "%" PRId64 " values to 0.01",
                   values_until(&r, best, 0.01));
        CHECK_NEAR(r.log_likelihood, best, 1e-6);
        CHECK(r.value.log_likelihood == r.log_likelihood && r.failures == 0 && r.n_trace > 3);
        for (int64_t i = 1; i < r.n_trace; i++)
            CHECK(r.trace[i].log_likelihood >= r.trace[i - 1].log_likelihood);
        CHECK_NEAR(gp_data_value(ctx, gp), r.log_likelihood, 0);
    }
    frg_gp_destroy(gp);
    if (!diabetes(&g, false))
        return;
    o.mean = "const";
    gp = gp_data_open(ctx, &g, "scale*rbf(ard) + noise", &o);
    if (gp && CHECK_OK(ctx, frg_gp_fit(gp, &f, &r))) {
        const double best = optimum("rbf_ard_const");
        CHECK_SAYS(values_until(&r, best, 0.01) <= 30, "%" PRId64 " values to 0.01",
                   values_until(&r, best, 0.01));
        CHECK_NEAR(r.log_likelihood, best, 1e-6);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void as_scipy(void)
{
    static gp_data g;
    static const struct {
        const char *name, *kernel;
    } known[] = {
        {"rbf", "1*rbf(l=0.1) + noise(0.5)"},
        {"rq", "1*rq(l=0.2, alpha=1) + noise(0.5)"},
        {"matern52_ard", "1*matern52(l=[0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2]) + noise(0.5)"},
        {"rbf_ard", ARD},
    };
    frg_context *ctx = test_context();
    if (!diabetes(&g, true))
        return;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const double best = optimum(known[k].name);
        const frg_gp_opts o = gp_data_opts("zero");
        for (int method = FRG_GP_AI; method <= FRG_GP_LBFGSB; method++) {
            const frg_gp_fit_opts f = fit_opts((frg_gp_optimizer)method);
            frg_gp_fit_result r = {0};
            frg_gp *gp = gp_data_open(ctx, &g, known[k].kernel, &o);
            if (gp && CHECK_OK(ctx, frg_gp_fit(gp, &f, &r)))
                CHECK_SAYS(fabs(r.log_likelihood - best) <= 1e-6 * fabs(best),
                           "%s: %.9f, SciPy %.9f", known[k].kernel, r.log_likelihood, best);
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

/** A plane has two variances that only count together, and a likelihood that rises as the noise
 *  falls: the information is singular all the way, and a factor of it that fails is no reason to
 *  call the fit done. */
static void planes(void)
{
    static gp_data g = {.n = 60, .d = 2, .q = 1};
    frg_context *ctx = test_context();
    for (int i = 0; i < 60; i++) {
        g.x[2 * i] = 3000 * fmod((i + 1) * sqrt(2), 1);
        g.x[2 * i + 1] = 3000 * fmod((i + 1) * sqrt(3), 1);
        g.y[i] = 2 * g.x[2 * i] + 1;
    }
    frg_gp_opts o = gp_data_opts("profiled");
    o.preset = FRG_GP_PRESET_GPYTORCH;
    for (int method = FRG_GP_AI; method <= FRG_GP_LBFGSB; method++) {
        const frg_gp_fit_opts f = fit_opts((frg_gp_optimizer)method);
        frg_gp_fit_result r = {0};
        frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf(ard)*linear + noise", &o);
        if (gp && CHECK_OK(ctx, frg_gp_fit(gp, &f, &r))) {
            /* both within the rounding of the likelihood, 0.025 */
            CHECK_SAYS(fabs(r.log_likelihood - 191.65) <= 0.05, "%.6f", r.log_likelihood);
            /* or the rounding bound comes first, by the order of the sums of this build: a full
             * step then promises less than 0.025 of 60 points, where the wrong ends were at 0.5 a
             * point */
            CHECK_SAYS(strcmp(r.ended, "gradient") == 0
                           ? r.gradient_norm <= f.tol
                           : strcmp(r.ended, "rounding") == 0 && r.gradient_norm < 0.01,
                       "%g, %s", r.gradient_norm, r.ended);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** A likelihood full of teeth along the period, where steps become small far from any optimum:
 *  wherever the search ends, it does not call a gradient of 0.9 a point an end (9e4 times tol; what
 *  is left is 1 % of that where rounding ends it). */
static void teeth(void)
{
    static gp_data g = {.n = 100, .d = 2, .q = 1};
    frg_context *ctx = test_context();
    for (int i = 0; i < 100; i++) {
        g.x[2 * i] = 100 * fmod((i + 1) * sqrt(38), 1);
        g.x[2 * i + 1] = 100 * fmod((i + 1) * sqrt(39), 1);
        g.y[i] = 100 * sin(0.06 * g.x[2 * i]) + 3 * g.x[2 * i + 1];
    }
    frg_gp_opts o = gp_data_opts("profiled");
    o.preset = FRG_GP_PRESET_GPYTORCH;
    const frg_gp_fit_opts f = fit_opts(FRG_GP_LBFGSB);
    frg_gp_fit_result r = {0};
    frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf*periodic + noise", &o);
    if (gp) {
        const frg_status s = frg_gp_fit(gp, &f, &r);
        CHECK_SAYS(s == FRG_STALLED || (s == FRG_OK && r.gradient_norm < 0.01), "%s at %g: %g, %s",
                   frg_status_name(s), r.log_likelihood, r.gradient_norm, r.ended);
        CHECK((r.ended[0] != '\0') == (s == FRG_OK));
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** ScaleKernel(RBFKernel), ConstantMean, GaussianLikelihood, Adam with lr 0.1, 50 steps. */
static void as_gpytorch(void)
{
    static gp_data g = {.n = 50, .d = 5, .q = 1};
    static const double primes[] = {2, 3, 5, 7, 11};
    static const double want[] = {1.277611485503813, 1.3341128389246837, 0.20171755417644283,
                                  -0.09701691345321044};
    frg_context *ctx = test_context();
    for (int i = 0; i < 50; i++) {
        double sum = 0;
        for (int k = 0; k < 5; k++) {
            g.x[5 * i + k] = fmod((i + 1) * sqrt(primes[k]), 1);
            sum += sin(2 * 3.14159265358979323846 * g.x[5 * i + k]);
        }
        g.y[i] = sum / sqrt(5) + 0.1 * sin(100.0 * i);
    }
    frg_gp_opts o = gp_data_opts("const");
    o.preset = FRG_GP_PRESET_GPYTORCH;
    frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf + noise", &o);
    frg_gp_fit_opts f = fit_opts(FRG_GP_ADAM);
    f.max_iter = 50;
    f.standardize = 0;
    frg_gp_fit_result r = {0};
    double theta[GP_DATA_PARAMETERS];
    if (gp && CHECK_OK(ctx, frg_gp_fit(gp, &f, &r))) {
        CHECK_INT(gp_data_theta(gp, theta), 4);
        for (int i = 0; i < 4; i++)
            CHECK_NEAR(theta[i], want[i],
                       1e-9); /* 50 steps of rounding at a condition of about 100 */
        CHECK_NEAR(-r.value.per_point, 0.8303149577236204, 1e-9);
        CHECK_NEAR(-r.trace[0].log_likelihood / 50, 1.0815108994833278, 1e-12);
        CHECK_INT(r.iterations, 50);
        CHECK_INT(r.n_trace, 50);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- what a user holds or bounds ------------------------------------------------------------- */

static void holds_and_bounds(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 120, 2, 1);
    const frg_gp_opts o = gp_data_opts("const(0.1!)");
    frg_gp *gp = gp_data_open(ctx, &g, "1.5!*rbf(l=[0.2, in(0.01,0.05)]) + noise(0.1)", &o);
    for (int method = FRG_GP_AI; gp && method <= FRG_GP_LBFGSB; method++) {
        const frg_gp_fit_opts f = fit_opts((frg_gp_optimizer)method);
        frg_gp_fit_result r = {0};
        frg_warnings_clear(ctx);
        if (!CHECK_OK(ctx, frg_gp_fit(gp, &f, &r)))
            continue;
        frg_gp_parameter p;
        CHECK_OK(ctx, frg_gp_get_parameter(gp, 0, &p));
        CHECK(p.value == 1.5 && p.fixed && p.active == 0 && isnan(p.std_error));
        CHECK_OK(ctx, frg_gp_get_parameter(gp, 2, &p));
        CHECK_SAYS(p.value == 0.05 && p.active == 1, "%g, active %d", p.value, p.active);
        CHECK_OK(ctx, frg_gp_get_parameter(gp, 1, &p));
        CHECK(p.active == 0 && p.std_error > 0);
        CHECK_INT(frg_warning_count(ctx), 1);
        CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-GP-106");
        CHECK_SAYS(strstr(frg_warning_message(ctx, 0),
                          "1 parameter ended at a bound: rbf.l[1] at its upper one, 0.05"),
                   "%s", frg_warning_message(ctx, 0));
        CHECK_OK(ctx, frg_gp_get_parameter(gp, 4, &p));
        CHECK(p.value == 0.1 && p.fixed);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** A prior that ends somewhere bounds the search, wherever it starts: the others go on where one
 *  parameter has met it. */
static void supports(void)
{
    static gp_data g;
    static const char *const kernels[] = {"1*rbf(l=0.2) + noise(0.1)", "1*rbf(l=7) + noise(0.1)"};
    static const char *const priors[] = {"rbf.l=uniform(0.01,0.05)", "rbf.l=loguniform(0.01,0.05)"};
    frg_context *ctx = test_context();
    gp_data_random(&g, 120, 2, 1);
    for (int k = 0; k < 8; k++) {
        frg_gp_opts o = gp_data_opts("const");
        o.priors = priors[k / 4];
        frg_gp *gp = gp_data_open(ctx, &g, kernels[k / 2 % 2], &o);
        const frg_gp_fit_opts f = fit_opts(k % 2 ? FRG_GP_AI : FRG_GP_LBFGSB);
        frg_gp_fit_result r = {0};
        double gradient[4];
        frg_gp_parameter p;
        frg_warnings_clear(ctx);
        if (gp && CHECK_OK(ctx, frg_gp_fit(gp, &f, &r)) &&
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL)) &&
            CHECK_OK(ctx, frg_gp_get_parameter(gp, 1, &p))) {
            CHECK_SAYS(p.value == 0.05 && p.active == 1, "case %d: %g, active %d", k, p.value,
                       p.active);
            CHECK(r.gradient_norm <= f.tol && r.failures == 0);
            CHECK_SAYS(gradient[1] > 1, "%g", gradient[1]); /* l would go on */
            for (int i = 0; i < 3; i++) /* per log; the mean is searched in units of about 1 */
                CHECK_SAYS(i == 1 || fabs(gradient[i]) <= 120 * f.tol, "case %d: %g", k,
                           gradient[i]);
            CHECK_TEXT(frg_warning_code(ctx, frg_warning_count(ctx) - 1), "FRG-GP-106");
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** A prior without a density where its parameter is held, or anywhere within its bounds, is refused
 *  by name. */
static void outside_supports(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 20, 1, 1);
    static const char *const kernels[] = {"1*rbf + noise(1e-8!)", "1*rbf + noise(in(2,3))"};
    frg_gp_opts o = gp_data_opts("zero");
    o.priors = "noise=loguniform(1e-3,1)";
    frg_gp *gp;
    for (int k = 0; k < 2; k++) {
        CHECK_STATUS(frg_gp_create(&gp, ctx, gp_data_x(&g), gp_data_y(&g), kernels[k], &o),
                     FRG_BAD_ARG);
        CHECK_TEXT(frg_error_code(ctx), "FRG-GP-005");
        CHECK_SAYS(strstr(frg_message(ctx), "noise=loguniform(0.001,1) has no density") != NULL,
                   "%s", frg_message(ctx));
    }
    gp = gp_data_open(ctx, &g, "1*rbf + noise(1e-8)", &o); /* held later, where it is */
    frg_gp_fit_result r = {.best_start = 77};
    if (gp && CHECK_OK(ctx, frg_gp_update_fixed(gp, 2, 1))) {
        CHECK_STATUS(frg_gp_fit(gp, NULL, &r), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "has no density at 1e-08") && r.best_start == 77);
    }
    frg_gp_destroy(gp);
    o.mean = "const(-1!)";
    o.priors = "mean=gamma(2,1)";
    CHECK_STATUS(frg_gp_create(&gp, ctx, gp_data_x(&g), gp_data_y(&g), "rbf + noise", &o),
                 FRG_BAD_ARG);
    CHECK_SAYS(strstr(frg_message(ctx), "mean=gamma(2,1) has no density at -1") != NULL, "%s",
               frg_message(ctx));
    frg_context_destroy(ctx);
}

/** Values that a search's rounding puts at the ends of open intervals, or beyond what numbers are,
 *  are moved inside. */
static void open_ends(void)
{
    static gp_data g = {.n = 2, .d = 1, .q = 1, .x = {0.1, 2.9}, .y = {3e4, -2e4}};
    frg_context *ctx = test_context();
    frg_gp_opts o = gp_data_opts("zero");
    o.preset = FRG_GP_PRESET_GPYTORCH;
    frg_gp_fit_result r = {0};
    for (int method = FRG_GP_AI; method <= FRG_GP_LBFGSB; method++) {
        frg_gp *gp = gp_data_open(ctx, &g, "rbf(l=in(0.1,0.5)) + noise(in(0.01,0.1))", &o);
        const frg_gp_fit_opts f = fit_opts((frg_gp_optimizer)method);
        frg_gp_parameter p;
        if (gp && CHECK_OK(ctx, frg_gp_fit(gp, &f, &r)) &&
            CHECK_OK(ctx, frg_gp_get_parameter(gp, 1, &p)))
            CHECK(p.value < 0.1 && p.value > 0.0999 && p.active == 1);
        frg_gp_destroy(gp);
    }
    /* steps of 2000 in softplus and log coordinates: e^-2000 is 0, e^2000 infinite */
    gp_data_random(&g, 30, 1, 1);
    static const frg_gp_preset presets[] = {FRG_GP_PRESET_GPYTORCH, FRG_GP_PRESET_NONE};
    for (int k = 0; k < 2; k++) {
        o.preset = presets[k];
        frg_gp *gp = gp_data_open(ctx, &g, "rbf + linear + noise", &o);
        frg_gp_fit_opts f = fit_opts(FRG_GP_ADAM);
        f.learning_rate = 2000;
        f.max_iter = 3;
        if (gp) {
            const frg_status s = frg_gp_fit(gp, &f, &r);
            CHECK_SAYS(s >= 0, "preset %d: %s", k, frg_message(ctx));
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** A period too small for a phase is a step that is not taken, in any of the starts. */
static void tiny_periods(void)
{
    static gp_data g = {.n = 3,
                        .d = 2,
                        .q = 1,
                        .x = {1.5354648761, 3, 2.8513911094, 3, 0.4324788397, 3},
                        .y = {-1.3031572316, 0.9053558667, 0.4463745724}};
    frg_context *ctx = test_context();
    frg_gp_opts o = gp_data_opts("const");
    o.preset = FRG_GP_PRESET_GPYTORCH;
    frg_gp *gp = gp_data_open(ctx, &g, "periodic + noise", &o);
    frg_gp_fit_opts f = fit_opts(FRG_GP_LBFGSB);
    frg_gp_fit_result r = {0};
    f.starts = 40;
    if (gp) {
        const frg_status s = frg_gp_fit(gp, &f, &r);
        CHECK_SAYS(s >= 0, "%s", frg_message(ctx));
        CHECK(s < 0 || (r.n_starts == 40 && isfinite(r.log_likelihood)));
    }
    frg_gp_destroy(gp);
    gp = gp_data_open(ctx, &g, "periodic(p=1e-16) + noise", &o);
    if (gp) { /* without a search it is the answer, with what helps */
        frg_gp_value v;
        CHECK_STATUS(frg_gp_eval(gp, &v), FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-GP-012");
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void nothing_free(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 30, 1, 1);
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "1.5!*rbf(l=0.2!) + noise(0.1!)", &o);
    frg_gp_fit_result r = {0};
    if (gp && CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r))) {
        CHECK_NEAR(r.log_likelihood, gp_data_value(ctx, gp), 0);
        CHECK_INT(r.values, 0);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** How many warnings of this code begin so. */
static int warnings_of(const frg_context *ctx, const char *code, const char *begin)
{
    int found = 0;
    for (int i = 0; i < frg_warning_count(ctx); i++) {
        found += strcmp(frg_warning_code(ctx, i), code) == 0 &&
                 strncmp(frg_warning_message(ctx, i), begin, strlen(begin)) == 0;
    }
    return found;
}

/** y that is constant: told, where it is more than one point. */
static void constant_y(void)
{
    static gp_data g;
    for (int k = 0; k < 3; k++) {
        frg_context *ctx = test_context();
        gp_data_random(&g, k == 2 ? 1 : 30, 1, k == 0 ? 2 : 1);
        for (int64_t i = 0; k == 0 && i < g.n; i++) {
            g.y[g.n + i] = 3.5;
        }
        const frg_gp_opts o = gp_data_opts("const");
        frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf + noise", &o);
        frg_gp_fit_result r;
        CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r));
        CHECK_INT(warnings_of(ctx, "FRG-GP-107", "column 1 of y is constant"), k == 0);
        CHECK_INT(warnings_of(ctx, "FRG-GP-107", ""), k == 0);
        frg_gp_destroy(gp);
        frg_context_destroy(ctx);
    }
}

/** y in other units and far from zero: the same fit in those units. */
static void units(void)
{
    static gp_data g, h;
    frg_context *ctx = test_context();
    gp_data_random(&g, 150, 2, 1);
    h = g;
    for (int64_t i = 0; i < g.n; i++)
        h.y[i] = 1e3 * g.y[i] + 1e6;
    static const char *const means[] = {"const", "linear"};
    for (int k = 0; k < 2; k++) {
        const frg_gp_opts o = gp_data_opts(means[k]);
        frg_gp *a = gp_data_open(ctx, &g, "scale*rbf(ard) + noise", &o);
        frg_gp *b = gp_data_open(ctx, &h, "scale*rbf(ard) + noise", &o);
        frg_gp_fit_result r = {0}, s = {0};
        double p[GP_DATA_PARAMETERS], q[GP_DATA_PARAMETERS];
        if (a && b && CHECK_OK(ctx, frg_gp_fit(a, NULL, &r)) &&
            CHECK_OK(ctx, frg_gp_fit(b, NULL, &s))) {
            gp_data_theta(a, p);
            gp_data_theta(b, q);
            /* both end at a relative change of 2.2e-9: the optimum is flat to the root of that */
            CHECK_NEAR(s.log_likelihood, r.log_likelihood - 150 * log(1e3), 1e-6);
            CHECK_NEAR(log(q[0] / p[0]), 2 * log(1e3), 1e-2);
            CHECK_NEAR(log(q[1] / p[1]), 0, 1e-2);
            CHECK_NEAR((q[4] - 1e6) / 1e3, p[4], 1e-2);
        }
        frg_gp_destroy(a);
        frg_gp_destroy(b);
    }
    frg_context_destroy(ctx);
}

/* ---- starts ---------------------------------------------------------------------------------- */

static void hopeless_starts(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 150, 2, 1);
    static const char *const kernels[] = {"1*rbf(l=1e-4) + noise(0.1)",
                                          "1*rbf(l=9e4) + noise(0.1)"};
    const frg_gp_opts o = gp_data_opts("zero");
    double best[2] = {0};
    for (int k = 0; k < 2; k++) {
        frg_gp *gp = gp_data_open(ctx, &g, kernels[k], &o);
        frg_gp_fit_result r = {0};
        frg_warnings_clear(ctx);
        if (gp && CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r))) {
            CHECK(frg_warning_count(ctx) >= 1);
            CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-GP-102");
            best[k] = r.log_likelihood;
        }
        frg_gp_destroy(gp);
    }
    CHECK_NEAR(best[0], best[1], 1e-6);
    CHECK(best[0] > -150);
    frg_context_destroy(ctx);
}

/** More starts never end lower, and the first is the given one. */
static void several_starts(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 60, 1, 1);
    const frg_gp_opts o = gp_data_opts("zero");
    double one = 0;
    for (int starts = 1; starts <= 6; starts += 5) {
        frg_gp *gp = gp_data_open(ctx, &g, "1*periodic(l=3, p=0.03) + noise(0.5)", &o);
        frg_gp_fit_opts f = fit_opts(FRG_GP_OPT_AUTO);
        frg_gp_fit_result r = {0};
        f.starts = starts;
        const frg_status s = gp ? frg_gp_fit(gp, &f, &r) : FRG_OK;
        /* the likelihood of a period has many local optima and saddles side by side: a start may
         * end before it has converged, and say so */
        if (gp && CHECK_SAYS(s == FRG_OK || s == FRG_STALLED || s == FRG_MAX_ITER, "%s",
                             frg_status_name(s))) {
            if (starts == 1) {
                CHECK_TEXT(r.optimizer, "lbfgsb");
                CHECK_INT(r.best_start, 0);
                one = r.log_likelihood;
            } else {
                /* how much is won is chance; nothing is ever lost, and the winner is named */
                CHECK_SAYS(r.log_likelihood >= one &&
                               (r.best_start > 0) == (r.log_likelihood > one),
                           "%.9g after %.9g, start %d", r.log_likelihood, one, r.best_start);
            }
        }
        frg_gp_destroy(gp);
    }
    frg_gp_opts with = o;
    with.priors = "periodic.l=gamma(3,2); periodic.p=lognormal(0,0.3); scale=halfnormal(2); "
                  "noise=gamma(1.5,10)";
    frg_gp *gp = gp_data_open(ctx, &g, "1*periodic(l=3, p=0.03) + noise(0.5)", &with);
    frg_gp_fit_opts f = fit_opts(FRG_GP_OPT_AUTO);
    frg_gp_fit_result r = {0};
    f.starts = 4;
    if (gp && CHECK_OK(ctx, frg_gp_fit(gp, &f, &r)))
        CHECK(r.value.log_prior < 0 || r.value.log_prior > 0);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- failures and limits --------------------------------------------------------------------- */

/** Copies of points and no noise: most evaluations need jitter or fail; the fit ends all the
 *  same. */
static void survives_failures(void)
{
    static gp_data g;
    static const frg_gp_jitter policies[] = {FRG_GP_JITTER_RELATIVE, FRG_GP_JITTER_GPYTORCH,
                                             FRG_GP_JITTER_NONE};
    frg_context *ctx = test_context();
    gp_data_random(&g, 60, 1, 1);
    for (int p = 0; p < 3; p++) {
        frg_gp_opts o = gp_data_opts("zero");
        o.jitter = policies[p];
        /* with a noise that may fall to nothing, smooth kernels lose their positive pivots on the
         * way */
        frg_gp *gp = gp_data_open(ctx, &g, "1*rbf(l=0.3) + noise(in(1e-18,1))", &o);
        for (int method = FRG_GP_AI; gp && method <= FRG_GP_ADAM; method++) {
            const frg_gp_fit_opts f = fit_opts((frg_gp_optimizer)method);
            frg_gp_fit_result r = {0};
            const frg_status s = frg_gp_fit(gp, &f, &r);
            CHECK_SAYS(s >= 0, "policy %d, method %d: %s", p, method, frg_message(ctx));
            CHECK(s < 0 || isfinite(r.log_likelihood));
        }
        frg_gp_destroy(gp);
    }
    /* twice the same points, without any noise: jitter is all there is */
    memcpy(g.x + 30, g.x, 30 * sizeof *g.x);
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "1*rbf(l=0.3)", &o);
    frg_gp_fit_result r = {0};
    frg_warnings_clear(ctx);
    if (gp) {
        const frg_status s = frg_gp_fit(gp, NULL, &r);
        CHECK_SAYS(s >= 0, "%s", frg_message(ctx));
        CHECK(r.value.jitter > 0);
        int jitters = 0;
        for (int i = 0; i < frg_warning_count(ctx); i++)
            jitters += strcmp(frg_warning_code(ctx, i), "FRG-GP-101") == 0;
        CHECK_SAYS(jitters >= 1 && jitters <= 2, "%d warnings of jitter", jitters);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** A trial at a huge variance has a value with jitter alone, 1e17 times what the data are; it is
 *  not taken, and the points after it are evaluated without. */
static void jitter_of_trials(void)
{
    static gp_data g = {.n = 30, .d = 2, .q = 1};
    frg_context *ctx = test_context();
    for (int i = 0; i < 30; i++) {
        g.x[2 * i] = fmod((i + 1) * sqrt(2) + 1.7, 1);
        g.x[2 * i + 1] = fmod((i + 1) * sqrt(3) + 1.7, 1);
        g.y[i] = 100 * (sin(6 * g.x[2 * i]) + 3 * g.x[2 * i + 1]);
    }
    frg_gp_opts o = gp_data_opts("const");
    o.preset = FRG_GP_PRESET_GPYTORCH;
    const frg_gp_fit_opts f = fit_opts(FRG_GP_LBFGSB);
    frg_gp_fit_result r = {0};
    frg_gp *gp = gp_data_open(ctx, &g, "linear + noise", &o);
    if (gp && CHECK_OK(ctx, frg_gp_fit(gp, &f, &r))) {
        CHECK_NEAR(r.log_likelihood, optimum("linear_const"), 1e-5);
        CHECK(r.gradient_norm <= f.tol && r.value.jitter == 0);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static int stop_at_third(const frg_progress *p, void *user)
{
    (void)user;
    return strcmp(p->solver, "gp") == 0 && strcmp(p->phase, "lbfgsb") == 0 && p->done >= 3;
}

static int stop_between_starts(const frg_progress *p, void *user)
{
    (void)user;
    return strcmp(p->phase, "starts") == 0;
}

/** A process whose fits two threads do and `asked` may stop. */
static frg_gp *open_asked(frg_context **ctx, const gp_data *g,
                          int (*asked)(const frg_progress *p, void *user))
{
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.threads = 2;
    c.on_progress = asked;
    CHECK_STATUS(frg_context_create(ctx, &c), FRG_OK);
    const frg_gp_opts o = gp_data_opts("const");
    return gp_data_open(*ctx, g, "scale*rbf(ard) + noise", &o);
}

/** Starts side by side are asked for in between: stopped there, none is begun any more and the fit
 *  says so. */
static void stopped_between_starts(void)
{
    static gp_data g;
    gp_data_random(&g, 30, 2, 1);
    frg_context *ctx = NULL;
    frg_gp *gp = open_asked(&ctx, &g, stop_between_starts);
    frg_gp_fit_opts f = fit_opts(FRG_GP_LBFGSB);
    frg_gp_fit_result r = {0};
    f.starts = 500;
    if (gp) {
        CHECK_STATUS(frg_gp_fit(gp, &f, &r), FRG_INTERRUPTED);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void limits(void)
{
    static gp_data g;
    gp_data_random(&g, 120, 2, 1);
    frg_context *ctx = NULL;
    frg_gp *gp = open_asked(&ctx, &g, stop_at_third);
    frg_gp_fit_opts f = fit_opts(FRG_GP_LBFGSB);
    frg_gp_fit_result r = {0};
    if (gp) {
        CHECK_STATUS(frg_gp_fit(gp, &f, &r), FRG_INTERRUPTED);
        CHECK(r.status == FRG_INTERRUPTED && r.iterations == 3);
        CHECK_NEAR(r.log_likelihood, r.trace[r.n_trace - 1].log_likelihood, 0);
        frg_interrupt_clear(ctx);
        CHECK_NEAR(gp_data_value(ctx, gp), r.log_likelihood, 1e-12);
        f.optimizer = FRG_GP_AI; /* not stopped by the callback */
        f.max_iter = 2;
        CHECK_STATUS(frg_gp_fit(gp, &f, &r), FRG_MAX_ITER);
        CHECK_INT(r.iterations, 2);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static int stop_when_spent(const frg_progress *p, void *left)
{
    (void)p;
    return --*(int *)left < 0;
}

/** Wherever a search is stopped, also before its first value, what it reports is the likelihood of
 *  what it leaves, or NaN with the parameters that it began with. */
static void stopped_anywhere(void)
{
    static gp_data g;
    gp_data_random(&g, 40, 2, 1);
    for (int method = FRG_GP_AI; method <= FRG_GP_ADAM; method++) {
        for (int after = 0; after < 24; after++) {
            int left = 1000000;
            frg_context_opts c;
            frg_context_defaults(&c, sizeof c);
            c.on_progress = stop_when_spent;
            c.user = &left;
            frg_context *ctx = NULL;
            CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
            const frg_gp_opts o = gp_data_opts("const");
            frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf(ard) + noise", &o);
            const frg_gp_fit_opts f = fit_opts((frg_gp_optimizer)method);
            frg_gp_fit_result r = {0};
            if (gp) {
                const double start = gp_data_value(ctx, gp);
                CHECK_OK(ctx, frg_gp_update_y(gp, frg_vector(g.y, FRG_F64, g.n))); /* forgets it */
                left = after;
                const frg_status status = frg_gp_fit(gp, &f, &r);
                left = 1000000;
                CHECK_SAYS(status >= 0 && (after > 20 || status == FRG_INTERRUPTED), "%d, %d: %s",
                           method, after, frg_status_name(status));
                frg_interrupt_clear(ctx);
                const double now = gp_data_value(ctx, gp);
                CHECK_SAYS(isnan(r.log_likelihood)
                               ? now == start
                               : fabs(r.log_likelihood - now) <= 1e-12 * (fabs(now) + 1),
                           "%d, %d: %.15g said, %.15g there", method, after, r.log_likelihood, now);
                CHECK_SAYS(method == FRG_GP_ADAM || now >= start - 1e-12 * fabs(start),
                           "%d, %d: %.15g after %.15g", method, after, now, start);
            }
            frg_gp_destroy(gp);
            frg_context_destroy(ctx);
        }
    }
}

static void bad_options(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 20, 1, 1);
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "1*rbf + noise", &o);
    frg_gp_fit_result r = {.best_start = 77};
    const frg_gp_fit_opts good = fit_opts(FRG_GP_OPT_AUTO);
    frg_gp_fit_opts bad[6] = {good, good, good, good, good, good};
    bad[0].max_iter = 0;
    bad[1].tol = 0;
    bad[2].learning_rate = -1;
    bad[3].starts = 0;
    bad[4].optimizer = (frg_gp_optimizer)9;
    bad[5].tol = (double)NAN;
    for (int i = 0; gp && i < 6; i++) {
        CHECK_STATUS(frg_gp_fit(gp, &bad[i], &r), FRG_BAD_ARG);
        CHECK_INT(r.best_start, 77);
    }
    CHECK_STATUS(frg_gp_fit(NULL, &good, &r), FRG_BAD_ARG);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- errors of estimates, precisions, threads ------------------------------------------------ */

/** A Gauss-Jordan inverse of a small matrix with free rows alone. */
static void invert(int n, double *a, const bool *use)
{
    for (int k = 0; k < n; k++) {
        if (!use[k])
            continue;
        const double pivot = a[k * n + k];
        a[k * n + k] = 1;
        for (int j = 0; j < n; j++)
            a[k * n + j] /= pivot;
        for (int i = 0; i < n; i++) {
            const double factor = a[i * n + k];
            if (i == k || !use[i])
                continue;
            a[i * n + k] = 0;
            for (int j = 0; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
}

static void standard_errors(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 200, 2, 1);
    const frg_gp_opts o = gp_data_opts("const");
    frg_gp *gp = gp_data_open(ctx, &g, "scale*matern52(l=[0.3,0.3]) + noise", &o);
    frg_gp_fit_result r = {0};
    double information[25];
    const bool use[5] = {true, true, true, true, true};
    if (gp && CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r)) &&
        CHECK_OK(ctx, frg_gp_eval_information(gp, information))) {
        invert(5, information, use);
        for (int i = 0; i < 5; i++) {
            frg_gp_parameter p;
            CHECK_OK(ctx, frg_gp_get_parameter(gp, i, &p));
            CHECK_NEAR(p.std_error, sqrt(information[6 * i]), 1e-8);
        }
        frg_gp_fit_opts f = fit_opts(FRG_GP_OPT_AUTO);
        f.standard_errors = 0;
        CHECK_OK(ctx, frg_gp_fit(gp, &f, &r));
        frg_gp_parameter p;
        CHECK_OK(ctx, frg_gp_get_parameter(gp, 0, &p));
        CHECK(isnan(p.std_error));
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void precisions(void)
{
    static gp_data g;
    static const frg_gp_precision precision[] = {FRG_GP_F64, FRG_GP_MIXED, FRG_GP_F32};
    frg_context *ctx = test_context();
    gp_data_random(&g, 250, 2, 1);
    double best = 0;
    for (int k = 0; k < 3; k++) {
        frg_gp_opts o = gp_data_opts("const");
        o.precision = precision[k];
        frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf(ard) + noise", &o);
        frg_gp_fit_result r = {0};
        if (gp) {
            const frg_status s = frg_gp_fit(gp, NULL, &r);
            CHECK_SAYS(s >= 0, "%d: %s", k, frg_message(ctx));
            best = k == 0 ? r.log_likelihood : best;
            CHECK_NEAR(r.log_likelihood, best, k == 2 ? 1e-3 : 1e-6);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

static void threads(void)
{
    static gp_data g;
    gp_data_random(&g, 230, 2, 1);
    static const char *const methods[] = {"", "ai", "lbfgsb", "adam"};
    for (int method = FRG_GP_AI; method <= FRG_GP_ADAM; method++) {
        double first[GP_DATA_PARAMETERS], other[GP_DATA_PARAMETERS];
        for (int t = 1; t <= 3; t++) {
            frg_context *ctx = test_context_with(t, NULL, NULL);
            const frg_gp_opts o = gp_data_opts("const");
            frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf(ard) + noise", &o);
            frg_gp_fit_opts f = fit_opts((frg_gp_optimizer)method);
            f.max_iter = 12;
            f.starts = 2;
            frg_gp_fit_result r = {0};
            if (gp) {
                CHECK_SAYS(frg_gp_fit(gp, &f, &r) >= 0, "%s", frg_message(ctx));
                CHECK_TEXT(r.optimizer, methods[method]);
                const int count = gp_data_theta(gp, t == 1 ? first : other);
                if (t > 1)
                    CHECK_BITS(other, first, (size_t)count * sizeof *first);
            }
            frg_gp_destroy(gp);
            frg_context_destroy(ctx);
        }
    }
}

static int stop_after(const frg_progress *p, void *user)
{
    (void)p;
    return ++*(int *)user > 2;
}

/** Starts on several threads end as one after another: bits, counts, trace, warnings; whatever the
 *  optimiser, and where starts need jitter. */
static void starts_on_threads(void)
{
    static const struct {
        const char *kernel, *mean;
        frg_gp_optimizer method;
        frg_gp_precision precision;
    } models[] = {{"scale*rbf(ard) + noise", "const", FRG_GP_LBFGSB, FRG_GP_F64},
                  {"scale*matern52(ard) + noise", "linear", FRG_GP_AI, FRG_GP_MIXED},
                  {"scale*rbf + noise", "profiled", FRG_GP_ADAM, FRG_GP_F64},
                  {"scale*rbf + noise", "const", FRG_GP_LBFGSB, FRG_GP_F32},
                  {"scale*rbf", "zero", FRG_GP_LBFGSB, FRG_GP_F64}};
    static gp_data g;
    gp_data_random(&g, 45, 2, 1);
    memcpy(g.x + 2, g.x, 2 * sizeof *g.x); /* the last model has no noise: jitter */
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        double theta[GP_DATA_PARAMETERS], want[GP_DATA_PARAMETERS] = {0};
        frg_gp_fit_result first = {0};
        frg_gp_trace last = {0};
        double ends[5] = {0};
        int warnings = 0;
        for (int threads = 1; threads <= 3; threads++) {
            frg_context *ctx = test_context_with(threads, NULL, NULL);
            frg_gp_opts o = gp_data_opts(models[k].mean);
            o.precision = models[k].precision;
            o.accuracy = 1e-2;
            o.auto_promote = 1;
            frg_gp *gp = gp_data_open(ctx, &g, models[k].kernel, &o);
            frg_gp_fit_opts f;
            frg_gp_fit_result r;
            frg_gp_fit_defaults(&f, sizeof f);
            f.optimizer = models[k].method;
            f.starts = 5;
            f.max_iter = 12;
            CHECK(frg_gp_fit(gp, &f, &r) >= 0);
            const int p = gp_data_theta(gp, theta);
            const frg_gp_trace end = r.n_trace > 0 ? r.trace[r.n_trace - 1] : (frg_gp_trace){0};
            if (threads == 1) {
                first = r;
                last = end;
                warnings = frg_warning_count(ctx);
                memcpy(want, theta, sizeof want);
                CHECK(k != 4 || warnings > 0);
            }
            CHECK_BITS(theta, want, (size_t)p * sizeof *theta);
            CHECK_SAYS(r.log_likelihood == first.log_likelihood && r.best_start == first.best_start,
                       "model %d, %d threads", (int)k, threads);
            CHECK(r.status == first.status && r.gradient_norm == first.gradient_norm);
            CHECK(r.values == first.values && r.gradients == first.gradients &&
                  r.iterations == first.iterations && r.failures == first.failures);
            CHECK(r.n_trace == first.n_trace && end.values == last.values &&
                  end.gradients == last.gradients);
            CHECK_INT(frg_warning_count(ctx), warnings);
            CHECK_INT(r.n_starts, 5);
            int64_t values = 0;
            for (int s = 0; s < 5; s++) {
                const frg_gp_start *const start = &r.starts[s];
                if (threads == 1) {
                    ends[s] = start->objective;
                }
                CHECK(start->status >= 0 && start->objective == ends[s]);
                CHECK(start->objective <= r.starts[r.best_start].objective);
                values += start->values;
            }
            CHECK_INT(r.values, values);
            frg_gp_destroy(gp);
            frg_context_destroy(ctx);
        }
    }
    /* stopped from outside: the process keeps the best that it has */
    int calls = 0;
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    c.threads = 2;
    c.on_progress = stop_after;
    c.user = &calls;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    frg_gp *gp =
        gp_data_open(ctx, &g, "1*rbf(l=[0.3,0.3]) + noise(0.1)", NULL); /* nothing to choose */
    frg_gp_fit_opts f;
    frg_gp_fit_result r;
    frg_gp_fit_defaults(&f, sizeof f);
    f.starts = 2000;
    CHECK_STATUS(frg_gp_fit(gp, &f, &r), FRG_INTERRUPTED);
    CHECK(r.status == FRG_INTERRUPTED && r.values > 0);
    CHECK_INT(r.n_starts, 2000);
    CHECK(r.starts[1999].status == FRG_INTERRUPTED && isnan(r.starts[1999].objective));
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** A start asks for so many values and no more, and has the best of them (of Adam: the last);
 *  enough is no limit. */
static void evaluations(void)
{
    enum { LIMIT = 5 };
    static const frg_gp_optimizer methods[] = {FRG_GP_AI, FRG_GP_LBFGSB, FRG_GP_ADAM};
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 60, 2, 1);
    for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
        double start = 0, theta[2][GP_DATA_PARAMETERS];
        for (int64_t limit = 0; limit <= LIMIT; limit += limit == 1 ? LIMIT - 1 : 1) {
            frg_gp *gp = gp_data_open(ctx, &g, "1*rbf(l=[0.1,0.1]) + noise(0.5)", NULL);
            frg_gp_fit_opts o;
            frg_gp_fit_result r;
            frg_gp_fit_defaults(&o, sizeof o);
            o.optimizer = methods[k];
            o.starts = 2;
            o.max_evaluations = limit;
            o.max_iter = limit == 0 ? LIMIT - 1 : 200; /* of Adam the same steps */
            start = gp_data_value(ctx, gp);
            const frg_status status = frg_gp_fit(gp, &o, &r);
            if (limit == 0) {
                CHECK(status >= 0);
            } else {
                CHECK_STATUS(status, FRG_MAX_ITER);
                CHECK_STATUS(r.status, FRG_MAX_ITER);
                for (int s = 0; s < 2; s++) {
                    CHECK_INT(r.starts[s].values, limit);
                    CHECK_STATUS(r.starts[s].status, FRG_MAX_ITER);
                }
            }
            CHECK(r.log_likelihood == gp_data_value(ctx, gp));
            CHECK(limit == 1 || methods[k] == FRG_GP_ADAM || r.log_likelihood >= start);
            if (limit == 1) { /* the given parameters, as they come back from logarithms */
                CHECK_NEAR(r.starts[0].objective, start, 1e-10);
            }
            gp_data_theta(gp, theta[limit > 0]);
            if (methods[k] == FRG_GP_ADAM && limit == LIMIT) {
                CHECK_BITS(theta[0], theta[1], 5 * sizeof(double));
                CHECK_INT(r.starts[0].iterations, LIMIT - 1);
            }
            o.max_evaluations = -1;
            CHECK_STATUS(frg_gp_fit(gp, &o, &r), FRG_BAD_ARG);
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"limit on evaluations", evaluations},
    {"few_evaluations", few_evaluations},
    {"as_scipy", as_scipy},
    {"as_gpytorch", as_gpytorch},
    {"planes", planes},
    {"teeth", teeth},
    {"holds_and_bounds", holds_and_bounds},
    {"supports", supports},
    {"outside supports", outside_supports},
    {"open ends", open_ends},
    {"tiny periods", tiny_periods},
    {"nothing_free", nothing_free},
    {"constant y", constant_y},
    {"units", units},
    {"hopeless_starts", hopeless_starts},
    {"several_starts", several_starts},
    {"survives_failures", survives_failures},
    {"jitter of trials", jitter_of_trials},
    {"limits", limits},
    {"stopped anywhere", stopped_anywhere},
    {"stopped_between_starts", stopped_between_starts},
    {"bad_options", bad_options},
    {"standard_errors", standard_errors},
    {"precisions", precisions},
    {"threads", threads},
    {"starts on threads", starts_on_threads},
};
TEST_MAIN(cases)
