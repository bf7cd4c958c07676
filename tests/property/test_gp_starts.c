/* test_gp_starts.c - starts that the data choose: periods that are in the data, lengthscales that
 * go with x, given values that stay, data with next to nothing to choose from, the optimum that one
 * start finds, and what a fit says of its starts. */
#include "gp/gp_fit.h"
#include "gp_data.h"

static const double TURN = 6.283185307179586;

/** n points in ascending order or not, uniform in [0, range], y a wave of `cycles` over the range
 *  with noise. */
static void wave(gp_data *g, int64_t n, double range, double cycles, double noise)
{
    const double phase = TURN * test_uniform();
    *g = (gp_data){.n = n, .d = 1, .q = 1};
    for (int64_t i = 0; i < n; i++) {
        g->x[i] = range * test_uniform();
        g->y[i] = sin(TURN * cycles / range * g->x[i] + phase) + noise * test_normal();
    }
}

/* ---- periods --------------------------------------------------------------------------------- */

/** The highest peak is at the frequency of the wave, within a quarter of the resolution 1 / range:
 *  its standard deviation is sqrt(6) sigma / (pi A sqrt(n)) / range = 0.03 / range at sigma = 0.3,
 *  A = 1, n = 60 (a grid step is 0.2 / range, refined by a parabola), and a peak of noise as high
 *  as n A^2 / 4 = 15, where noise has sigma^2 = 0.09 on average, has the chance e^-166 at each
 *  frequency; what one wave leaks to other frequencies of random points is below its peak. */
static void finds_periods(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    const frg_gp_opts o = gp_data_opts("const");
    for (int k = 0; k < 20; k++) {
        const int64_t n = 60 + (int64_t)(100 * test_uniform());
        const double range = pow(10, 6 * test_uniform() - 3);
        const double cycles = 4 + 16 * test_uniform();
        double periods[FRGI_GP_PERIODS];
        int count = 0;
        wave(&g, n, range, cycles, 0.3);
        frg_gp *gp = gp_data_open(ctx, &g, "rbf + noise", &o);
        if (gp && CHECK_OK(ctx, frgi_gp_periods(gp, 0, periods, &count)) && CHECK(count > 0)) {
            CHECK_SAYS(fabs(range / periods[0] - cycles) < 0.25, "n %d: %g cycles found of %g",
                       (int)n, range / periods[0], cycles);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** Two waves and a trend far above them: both are among the peaks. */
static void finds_two_under_a_trend(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    const frg_gp_opts o = gp_data_opts("const");
    for (int k = 0; k < 10; k++) {
        const double cycles[] = {5 + 3 * test_uniform(), 14 + 10 * test_uniform()};
        double periods[FRGI_GP_PERIODS];
        int count = 0;
        wave(&g, 200, 1, cycles[0], 0.1);
        for (int64_t i = 0; i < g.n; i++) {
            g.x[i] = (double)i / 200 + 0.004 * test_uniform();
            g.y[i] = sin(TURN * cycles[0] * g.x[i]) + 0.9 * cos(TURN * cycles[1] * g.x[i]) +
                     1e3 * (g.x[i] - 0.3) * (g.x[i] - 0.3) + 0.1 * test_normal();
        }
        frg_gp *gp = gp_data_open(ctx, &g, "rbf + noise", &o);
        if (gp && CHECK_OK(ctx, frgi_gp_periods(gp, 0, periods, &count))) {
            for (int w = 0; w < 2; w++) {
                double nearest = HUGE_VAL;
                for (int i = 0; i < count; i++)
                    nearest = fmin(nearest, fabs(1 / periods[i] - cycles[w]));
                CHECK_SAYS(nearest < 0.3, "%g cycles: %g off", cycles[w], nearest);
            }
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/* ---- lengthscales ---------------------------------------------------------------------------- */

/** x times a power of two: every lengthscale and period of the start has it as a factor, everything
 *  else has the same bits. */
static void goes_with_x(void)
{
    static gp_data g, scaled;
    static const char *const kernels[] = {"scale*matern52 + noise", "scale*rbf(ard) + noise",
                                          "scale*rbf*periodic + noise",
                                          "scale*rbf + scale*on(x1; periodic) + noise"};
    frg_context *ctx = test_context();
    for (int k = 0; k < 4; k++) {
        double theta[2][GP_DATA_PARAMETERS];
        const double factor = k % 2 ? 0x1p12 : 0x1p-9;
        gp_data_random(&g, k == 1 ? 300 : 50, k % 2 ? 3 : 1, 1);
        scaled = g;
        for (int64_t i = 0; i < g.n * g.d; i++)
            scaled.x[i] *= factor;
        for (int s = 0; s < 2; s++) {
            frg_gp *gp = gp_data_open(ctx, s ? &scaled : &g, kernels[k], NULL);
            if (!gp || !CHECK_OK(ctx, frgi_gp_choose_start(gp, 1)))
                continue;
            CHECK(gp->result.start_values > 5 &&
                  gp->result.start_points == (k == 1 ? gp->result.start_points : 50));
            memcpy(theta[s], gp->model.theta, (size_t)gp->model.params.count * sizeof **theta);
            for (int i = 0; s && i < gp->model.params.count; i++) {
                const frgi_gp_role role = gp->model.params.p[i].role;
                const double want = role == GP_ROLE_LENGTH || role == GP_ROLE_PERIOD ? factor : 1;
                CHECK_SAYS(theta[1][i] == want * theta[0][i], "%s, %s: %.17g and %.17g", kernels[k],
                           gp->model.params.p[i].name, theta[0][i], theta[1][i]);
            }
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

/** The start is at least as likely as the values of the data's moments, and lies within the
 *  bounds. */
static void is_no_worse(void)
{
    static gp_data g;
    static const char *const kernels[] = {
        "scale*matern32 + noise", "scale*rbf(l=in(0.5,0.6)) + noise(in(0.2,0.3))",
        "2!*rbf + scale*rq(ard) + linear + noise", "scale*rbf*periodic + white + noise"};
    frg_context *ctx = test_context();
    for (int k = 0; k < 4; k++) {
        gp_data_random(&g, 70, 2, 1);
        frg_gp *gp = gp_data_open(ctx, &g, kernels[k], NULL);
        const double before = gp ? gp_data_value(ctx, gp) : 0;
        if (gp && CHECK_OK(ctx, frgi_gp_choose_start(gp, 1))) {
            const double now = gp_data_value(ctx, gp);
            /* the factor of all variances is predicted: both sides have rounding of a likelihood of
             * order n */
            CHECK_SAYS(now >= before - 1e-7 * (fabs(before) + 70), "%s: %g after %g", kernels[k],
                       now, before);
            CHECK_OK(ctx, frgi_gp_params_check(&gp->model.params, gp->model.theta));
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/* ---- what is given --------------------------------------------------------------------------- */

/** Values of the text, of a call, and of an earlier fit are where a fit begins. */
static void given_values_stay(void)
{
    static gp_data g;
    static const char *const kernels[] = {"0.7*rbf(l=0.3) + noise(0.2)",
                                          "scale*rbf(l=0.3) + noise"};
    frg_context *ctx = test_context();
    gp_data_random(&g, 50, 1, 1);
    for (int k = 0; k < 3; k++) {
        frg_gp *gp = gp_data_open(ctx, &g, k < 2 ? kernels[k] : "scale*rbf + noise", NULL);
        frg_gp_fit_result r = {0};
        const frg_gp_change change = {"rbf.l", -1, 0.21, (double)NAN, (double)NAN};
        if (gp && (k < 2 || CHECK_OK(ctx, frg_gp_update_named(gp, &change, 1)))) {
            const double start = gp_data_value(ctx, gp);
            for (int again = 0; again < 2; again++) {
                if (!CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r)))
                    break;
                CHECK_SAYS(r.choice_values == 0 && r.choice_points == 0, "%s", "a choice was made");
                CHECK(again || fabs(r.trace[0].log_likelihood - start) <= 1e-9 * fabs(start));
            }
        }
        frg_gp_destroy(gp);
    }
    frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf + noise", NULL);
    frg_gp_fit_result r = {0};
    if (gp && CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r))) {
        CHECK(r.choice_values > 5 && r.choice_points == 50 && r.values < 50);
        const double first = r.log_likelihood;
        CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r)); /* from there */
        CHECK(r.choice_values == 0 && r.log_likelihood >= first - 1e-9 * fabs(first));
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- little to choose from ------------------------------------------------------------------- */

static void odd_data(void)
{
    static gp_data g;
    static const char *const kernels[] = {"scale*rbf(ard) + noise", "scale*matern12 + noise",
                                          "scale*rbf*periodic + noise",
                                          "scale*on(x1; periodic) + noise"};
    frg_context *ctx = test_context();
    for (int shape = 0; shape < 7; shape++) {
        gp_data_random(&g, shape == 0 ? 2 : shape == 1 ? 3 : 40, 2, 1);
        for (int64_t i = 0; i < g.n; i++) {
            double *const x = g.x + 2 * i;
            x[1] = shape == 2 ? 7 : x[1];                               /* constant */
            x[0] = shape == 3 ? floor(3 * x[0]) : x[0];                 /* duplicates */
            x[0] = shape == 4 ? pow(10, 9 * x[0]) : x[0];               /* irregular */
            x[0] = shape == 5 ? (i % 2 ? 1e6 : 0) + 1e-3 * x[0] : x[0]; /* far apart */
            g.y[i] = shape == 6 ? 3 : g.y[i];                           /* constant y */
        }
        for (int k = 0; k < 4; k++) {
            frg_gp *gp = gp_data_open(ctx, &g, kernels[k], NULL);
            frg_gp_fit_result r = {0};
            if (gp) {
                const frg_status s = frg_gp_fit(gp, NULL, &r);
                CHECK_SAYS(s >= 0 && isfinite(r.log_likelihood), "shape %d, %s: %s", shape,
                           kernels[k], frg_message(ctx));
                CHECK((r.choice_values > 0) == (g.n >= 3));
            }
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

/* ---- the optimum ----------------------------------------------------------------------------- */

static frg_status fit_of(frg_context *ctx, const gp_data *g, const char *kernel, int starts,
                         frg_gp_fit_result *r)
{
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp_fit_opts f;
    frg_gp_fit_defaults(&f, sizeof f);
    f.starts = starts;
    frg_gp *gp = gp_data_open(ctx, g, kernel, &o);
    const frg_status s = gp ? frg_gp_fit(gp, &f, r) : FRG_BAD_ARG;
    frg_gp_destroy(gp);
    return s;
}

/** A wave of so many cycles in [0, 1], on a trend, without random numbers. */
static void fixed_wave(gp_data *g, double cycles, double trend)
{
    *g = (gp_data){.n = 120, .d = 1, .q = 1};
    for (int i = 0; i < 120; i++) {
        const double u = fmod((i + 1.) * (i + 3.) * sqrt(7), 1) - 0.5; /* variance 1/12 */
        g->x[i] = fmod((i + 1) * sqrt(2), 1);
        g->y[i] = sin(TURN * cycles * g->x[i] + 1) + trend * g->x[i] * g->x[i] + 0.5 * u;
    }
}

/** One start ends no lower than one from the values that made the data, by the 0.01 of
 *  bench/gp_starts; from the moments of the data alone it ends 60 and more lower, in a process
 *  whose y is noise or changes slowly. */
static void finds_the_optimum(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    for (int k = 0; k < 6; k++) {
        frg_gp_fit_result one = {0}, from_truth = {0};
        char truth[160];
        const double cycles = 7.3 + 2.1 * (double)(k / 2);
        fixed_wave(&g, cycles, k % 2 ? 6 : 0);
        snprintf(truth, sizeof truth,
                 k % 2 ? "20*rbf(l=1) + 2*periodic(l=2, p=%.17g) + noise(0.02)"
                       : "2*rbf(l=30)*periodic(l=2, p=%.17g) + noise(0.02)",
                 1 / cycles);
        const char *const kernel =
            k % 2 ? "scale*rbf + scale*periodic + noise" : "scale*rbf*periodic + noise";
        CHECK(fit_of(ctx, &g, kernel, 1, &one) >= 0);
        CHECK(fit_of(ctx, &g, truth, 1, &from_truth) >= 0);
        CHECK_SAYS(one.log_likelihood >= from_truth.log_likelihood - 0.01,
                   "%s: %.4f, from the truth %.4f", kernel, one.log_likelihood,
                   from_truth.log_likelihood);
    }
    frg_context_destroy(ctx);
}

/** The start has the period of the wave, or twice it, to 3 % (a third of the resolution at 10
 *  cycles): another one loses the n / 2 log(1 + A^2 / (2 sigma^2)), about 180, that the wave is
 *  worth, or pays for a lengthscale below a tenth of the range. */
static void starts_at_the_period(void)
{
    static gp_data g;
    static const char *const kernels[] = {"scale*rbf*periodic + noise",
                                          "scale*rbf + scale*periodic + noise"};
    frg_context *ctx = test_context();
    for (int k = 0; k < 6; k++) {
        const double cycles = 9 + 3 * test_uniform();
        wave(&g, 120, 1, cycles, 0.15);
        frg_gp *gp = gp_data_open(ctx, &g, kernels[k % 2], NULL);
        if (gp && CHECK_OK(ctx, frgi_gp_choose_start(gp, 1))) {
            const double p = gp->model.theta[gp_data_find(gp, "periodic.p")] * cycles;
            CHECK_SAYS(fabs(p - 1) < 0.03 || fabs(p - 2) < 0.06, "%s: %g of the period",
                       kernels[k % 2], p);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void says_who_reached_it(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    wave(&g, 60, 1, 6, 0.2);
    for (int starts = 1; starts <= 6; starts += 5) {
        const frg_gp_opts o = gp_data_opts("zero");
        frg_gp_fit_opts f;
        frg_gp_fit_defaults(&f, sizeof f);
        f.starts = starts;
        frg_gp_fit_result r = {0};
        frg_gp *gp = gp_data_open(ctx, &g, "1*rbf(l=0.3)*periodic(l=1, p=0.4) + noise(0.1)", &o);
        if (gp && CHECK(frg_gp_fit(gp, &f, &r) >= 0)) {
            const double best = r.starts[r.best_start].objective;
            double next = -HUGE_VAL;
            int64_t reached = 0;
            for (int i = 0; i < starts; i++) {
                const double v = r.starts[i].objective;
                reached += v >= best - FRG_GP_REACHED;
                next = v < best - FRG_GP_REACHED ? fmax(next, v) : next;
            }
            CHECK_INT(r.starts_reached, reached);
            CHECK(reached >= 1);
            CHECK(isfinite(next) ? r.next_optimum == best - next : isnan(r.next_optimum));
            CHECK(starts > 1 || (reached == 1 && isnan(r.next_optimum)));
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** The bits of a fit that chooses, on one, two and three threads. */
static void same_on_threads(void)
{
    static gp_data g;
    double theta[2][GP_DATA_PARAMETERS];
    gp_data_random(&g, 400, 2, 1);
    for (int threads = 1; threads <= 3; threads++) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf + scale*on(x1; periodic) + noise", NULL);
        if (gp && CHECK_OK(ctx, frgi_gp_choose_start(gp, 3))) {
            gp_data_theta(gp, theta[threads > 1]);
            frgi_gp_random_start(gp, 2, gp->model.theta);
            if (threads > 1)
                CHECK_BITS(theta[0], theta[1], 6 * sizeof(double));
        }
        frg_gp_destroy(gp);
        frg_context_destroy(ctx);
    }
}

/** Random lengthscales lie between the nearest distance and the range, periods between the shortest
 *  of the periodogram and it. */
static void random_within_reach(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    wave(&g, 50, 300, 5, 0.1);
    for (int64_t i = 0; i < 50; i++)
        g.x[i] = 6 * (double)i; /* 6 apart, range 294 */
    frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf*periodic + noise", NULL);
    if (gp && CHECK_OK(ctx, frgi_gp_choose_start(gp, 2))) {
        double theta[GP_DATA_PARAMETERS];
        const int l = gp_data_find(gp, "rbf.l"), p = gp_data_find(gp, "periodic.p");
        for (int start = 1; start <= 200; start++) {
            memcpy(theta, gp->model.theta, (size_t)gp->model.params.count * sizeof *theta);
            frgi_gp_random_start(gp, start, theta);
            CHECK_SAYS(theta[l] >= 6 && theta[l] <= 294, "l %g", theta[l]);
            CHECK_SAYS(theta[p] >= 12 && theta[p] <= 294, "p %g", theta[p]);
        }
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"finds periods", finds_periods},
    {"finds two periods under a trend", finds_two_under_a_trend},
    {"goes with x", goes_with_x},
    {"is no worse", is_no_worse},
    {"given values stay", given_values_stay},
    {"odd data", odd_data},
    {"finds the optimum", finds_the_optimum},
    {"starts at the period", starts_at_the_period},
    {"says who reached it", says_who_reached_it},
    {"same on threads", same_on_threads},
    {"random starts within reach", random_within_reach},
};
TEST_MAIN(cases)
