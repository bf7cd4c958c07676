/* test_gp_params.c - transforms, starts, presets, checks, priors. */
#include <math.h>

#include "gp/gp_fit.h"
#include "gp/gp_kernel.h"
#include "test.h"

enum { N = 40, D = 3 };

typedef struct {
    frg_context *ctx;
    frgi_gp_kernel *k;
    frgi_gp_params ps;
    double x[N * D], y[N];
} setting;

static bool open_setting(setting *s, const char *text, frg_gp_preset preset, frg_dtype dtype)
{
    *s = (setting){.ctx = test_context()};
    frgi_gp_params_open(&s->ps, s->ctx);
    for (int i = 0; i < N;
         i++) { /* column 0 in 0 .. 39, column 1 alternates, column 2 is constant */
        s->x[i * D] = i;
        s->x[i * D + 1] = i % 2 ? 3 : -1;
        s->x[i * D + 2] = 1e9;
        s->y[i] = i % 2 ? 1e6 + 2 : 1e6 - 2; /* variance 4 */
    }
    return CHECK_OK(s->ctx, frgi_gp_kernel_parse(&s->k, s->ctx, text, D, NULL, NULL, &s->ps)) &&
           CHECK_OK(s->ctx, frgi_gp_params_start(&s->ps, s->x, s->y, N, D, 1, preset, dtype));
}

static void close_setting(setting *s)
{
    frgi_gp_kernel_destroy(&s->k, s->ctx);
    frgi_gp_params_close(&s->ps);
    frg_context_destroy(s->ctx);
}

/* ---- transforms ------------------------------------------------------------------------------ */

static void transforms(void)
{
    static const frgi_gp_param all[] = {
        {.transform = FRG_GP_LOG},
        {.transform = FRG_GP_SOFTPLUS, .lower = 0},
        {.transform = FRG_GP_SOFTPLUS, .lower = 1e-4},
        {.transform = FRG_GP_INTERVAL, .lower = 0.5, .upper = 3},
        {.transform = FRG_GP_IDENTITY},
    };
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        const frgi_gp_param *const p = &all[c];
        for (double raw = -20; raw <= 20; raw += 0.37) {
            const double v = frgi_gp_transform_value(p, raw), h = 1e-5;
            const double slope =
                (frgi_gp_transform_value(p, raw + h) - frgi_gp_transform_value(p, raw - h)) /
                (2 * h);
            /* the inverse cannot know more of raw than v tells: an error of u in v - lower is u |v|
             * / slope */
            const double blur = 1e-15 * (fabs(v) + 1) / frgi_gp_transform_slope(p, raw);
            CHECK_SAYS(fabs(frgi_gp_transform_raw(p, v) - raw) <=
                           1e-13 * (1 + fabs(raw)) + 4 * blur,
                       "case %zu: raw %g came back as %.17g", c, raw, frgi_gp_transform_raw(p, v));
            /* h^2/6 of the third derivative, at most the slope itself, and u v / h */
            CHECK_SAYS(fabs(frgi_gp_transform_slope(p, raw) - slope) <=
                           1e-9 * frgi_gp_transform_slope(p, raw) + 1e-10 * (1 + fabs(v)),
                       "case %zu: slope at %g is %.12g, expected %.12g", c, raw,
                       frgi_gp_transform_slope(p, raw), slope);
        }
    }
    const frgi_gp_param softplus = {.transform = FRG_GP_SOFTPLUS};
    CHECK_NEAR(frgi_gp_transform_raw(&softplus, 700), 700,
               1e-15); /* log(e^700 - 1) overflows if done plainly */
    CHECK_NEAR(frgi_gp_transform_raw(&softplus, 1e-300), log(1e-300), 1e-15);
    CHECK_NEAR(frgi_gp_transform_value(&softplus, 1000), 1000, 0);
    CHECK_NEAR(frgi_gp_transform_value(&softplus, 0), log(2), 1e-15);
}

/* ---- starts ---------------------------------------------------------------------------------- */

static void natural(void)
{
    setting s;
    if (!open_setting(
            &s, "scale*rbf(ard) + rq + periodic + on(1;linear) + on(1;sm(2)) + poly(2) + noise",
            FRG_GP_PRESET_NONE, FRG_F64))
        return;
    const frgi_gp_param *const p = s.ps.p;
    const double sd[2] = {sqrt((1600 - 1) / 12.0), 2}; /* of 0 .. 39, and of -1, 3 */
    CHECK_NEAR(p[0].value, 4, 1e-12);
    CHECK_NEAR(p[0].lower, 4e-6, 1e-15);
    CHECK_NEAR(p[0].upper, 4e6, 1e-5);
    CHECK_NEAR(p[1].value, 0.5 * sqrt(3) * sd[0], 1e-12);
    CHECK_NEAR(p[1].lower, 39e-5, 1e-15);
    CHECK_NEAR(p[1].upper, 39e5, 1e-5);
    CHECK_NEAR(p[2].value, 0.5 * sqrt(3) * sd[1], 1e-12);
    CHECK(p[3].fixed && p[3].value == 1 && !p[1].fixed); /* the constant column */
    CHECK_INT(frg_warning_count(s.ctx), 1);
    CHECK(strstr(frg_warning_message(s.ctx, 0), "column 2") &&
          strstr(frg_warning_message(s.ctx, 0), "rbf.l[2]"));
    CHECK_NEAR(p[4].value, 0.5 * sqrt(3) * sqrt((sd[0] * sd[0] + sd[1] * sd[1]) / 3),
               1e-12);                                                /* rq.l */
    CHECK_NEAR(p[5].value, 1, 0);                                     /* rq.alpha */
    CHECK_NEAR(p[6].value, 1, 0);                                     /* periodic.l */
    CHECK_NEAR(p[7].value, 19.5, 1e-12);                              /* periodic.p */
    CHECK_NEAR(p[8].value, 4 / (sd[0] * sd[0] + 19.5 * 19.5), 1e-12); /* linear.v */
    CHECK_NEAR(p[9].value, 2, 1e-12);                                 /* sm.w */
    CHECK_NEAR(p[11].value, 0.5 / 39, 1e-12);                         /* sm.mu */
    CHECK_NEAR(p[12].value, 1.5 / 39, 1e-12);
    CHECK_NEAR(p[13].value, pow(2 * M_PI * 0.5 * sd[0], -2), 1e-12); /* sm.v */
    CHECK_NEAR(p[16].value, 0.4, 1e-12);                             /* noise */
    CHECK_NEAR(p[16].lower, 4e-8, 1e-15);
    CHECK_NEAR(p[16].upper, 40, 1e-12);
    for (int i = 0; i < s.ps.count; i++)
        CHECK(p[i].lower < p[i].value && p[i].value < p[i].upper && p[i].transform == FRG_GP_LOG);
    close_setting(&s);
    if (open_setting(&s, "rbf(l=1e-9) + noise(1e-30) + const(in(7,8))", FRG_GP_PRESET_NONE,
                     FRG_F32)) {
        CHECK(s.ps.p[0].value == 1e-9 && s.ps.p[0].lower == 1e-9); /* what was chosen is inside */
        CHECK(s.ps.p[2].lower == 1e-30 && s.ps.p[2].value == 1e-30);
        CHECK_NEAR(s.ps.p[1].value, sqrt(56), 1e-12); /* 4 is not in (7, 8) */
        CHECK(s.ps.p[1].lower == 7 && s.ps.p[1].upper == 8);
    }
    close_setting(&s);
}

/** A length is held where all columns that it, and those tied to it, divide are constant: not for
 *  one of several. */
static void held(void)
{
    static const struct {
        const char *text;
        int held; /* parameters, as bits */
        int warnings;
    } all[] = {{"on(3; rbf) + noise", 1, 1},
               {"rbf + noise", 0, 0},
               {"on(2,3; matern32) + noise", 0, 0},
               {"on(3; periodic) + noise", 2, 1},               /* its l is a pure number */
               {"on(3; rq) + rbf(ard) + noise", 1 | 1 << 4, 2}, /* not rq.alpha */
               {"on(3; rbf) + on(3; matern52(l=@rbf.l)) + noise", 3, 1},
               {"on(3; rbf) + on(1; matern52(l=@rbf.l)) + noise", 0, 0},
               {"on(3; rbf(l=2!)) + noise", 1, 0}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        for (int preset = 0; preset <= FRG_GP_PRESET_SKLEARN; preset++) {
            setting s;
            if (open_setting(&s, all[k].text, (frg_gp_preset)preset, FRG_F64)) {
                for (int i = 0; i < s.ps.count; i++)
                    CHECK_SAYS(s.ps.p[i].fixed == (all[k].held >> i & 1), "%s: parameter %d",
                               all[k].text, i);
                CHECK_INT(frg_warning_count(s.ctx), all[k].warnings > 0);
                char count[24];
                snprintf(count, sizeof count, "%d parameter", all[k].warnings);
                CHECK(all[k].warnings == 0 || strstr(frg_warning_message(s.ctx, 0), count));
                s.x[3 * D + 2] = 1e9 + 1;
                frgi_gp_params_release(&s.ps, s.x, N, D);
                for (int i = 0; i < s.ps.count; i++)
                    CHECK(s.ps.p[i].fixed == (all[k].warnings == 0 && (all[k].held >> i & 1)));
            }
            close_setting(&s);
        }
    }
}

static void presets(void)
{
    setting s;
    if (open_setting(&s, "scale*rbf(ard) + const(in(2,4)) + noise", FRG_GP_PRESET_GPYTORCH,
                     FRG_F64)) {
        const frgi_gp_param *const p = s.ps.p;
        CHECK_NEAR(p[0].value, log(2), 1e-15);
        CHECK_NEAR(p[1].value, log(2), 1e-15);
        CHECK(p[0].transform == FRG_GP_SOFTPLUS && p[0].lower == 0 && isinf(p[0].upper));
        CHECK(p[4].transform == FRG_GP_INTERVAL && p[4].value == 3);
        CHECK_NEAR(p[5].value, 1e-4 + log(2), 1e-15);
        CHECK(p[5].lower == 1e-4);
    }
    close_setting(&s);
    if (open_setting(&s, "on(1,2; rbf(ard)) + noise", FRG_GP_PRESET_BOTORCH, FRG_F64)) {
        const frgi_gp_param *const p = s.ps.p;
        const double mu = sqrt(2) + log(2) / 2;
        CHECK(p[0].prior.kind == GP_PRIOR_LOGNORMAL && p[0].transform == FRG_GP_IDENTITY &&
              p[0].lower == 0.025);
        CHECK_NEAR(p[0].prior.a, mu, 1e-15);
        CHECK_NEAR(p[0].value, exp(mu - 3), 1e-15);
        CHECK_NEAR(p[2].value, exp(-5), 1e-15);
        CHECK(p[2].lower == 1e-4 && p[2].prior.a == -4 && p[2].prior.b == 1);
    }
    close_setting(&s);
    if (open_setting(&s, "scale*rbf + noise(3)", FRG_GP_PRESET_SKLEARN, FRG_F64)) {
        const frgi_gp_param *const p = s.ps.p;
        CHECK(p[0].value == 1 && p[1].value == 1 && p[2].value == 3);
        CHECK(p[0].lower == 1e-5 && p[0].upper == 1e5 && p[0].transform == FRG_GP_LOG);
    }
    close_setting(&s);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void checks(void)
{
    setting s;
    if (!open_setting(&s, "2*rbf(l=[1,2! in(1,3),1]) + noise(0.1 in(0.01,1))", FRG_GP_PRESET_NONE,
                      FRG_F64))
        return;
    CHECK_OK(s.ctx, frgi_gp_params_noise_groups(&s.ps, 2));
    CHECK_OK(s.ctx, frgi_gp_params_add(&s.ps, "mean",
                                       (frgi_gp_param){.entry = -1,
                                                       .role = GP_ROLE_MEAN,
                                                       .value = -5,
                                                       .lower = -HUGE_VAL,
                                                       .upper = HUGE_VAL,
                                                       .per_value = true,
                                                       .transform = FRG_GP_IDENTITY}));
    CHECK_INT(s.ps.count, 7);
    CHECK_INT(s.ps.noise_count, 2);
    const double good[] = {2, 1, 2, 1, 0.1, 1, -5};
    CHECK_OK(s.ctx, frgi_gp_params_check(&s.ps, good));
    static const struct {
        int i;
        double value;
        const char *says;
    } bad[] = {{0, 0, "scale must be positive, got 0"},
               {0, -1, "scale must be positive"},
               {1, HUGE_VAL, "rbf.l[0] is not finite"},
               {3, (double)NAN, "rbf.l[2] is not finite"},
               {4, 1.5, "noise[0] is 1.5, outside its bounds [0.01, 1]"},
               {5, 0.001, "noise[1] is 0.001, outside"},
               {6, (double)NAN, "mean is not finite"}};
    for (size_t c = 0; c < sizeof bad / sizeof *bad; c++) {
        double theta[7];
        memcpy(theta, good, sizeof good);
        theta[bad[c].i] = bad[c].value;
        CHECK_STATUS(frgi_gp_params_check(&s.ps, theta), FRG_BAD_ARG);
        CHECK_SAYS(strstr(frg_message(s.ctx), bad[c].says) != NULL, "\"%s\" lacks \"%s\"",
                   frg_message(s.ctx), bad[c].says);
        CHECK_TEXT(frg_error_code(s.ctx), "FRG-GP-006");
    }
    double fixed_outside[7];
    memcpy(fixed_outside, good, sizeof good);
    fixed_outside[2] = 17; /* fixed: its bounds bind the optimiser alone */
    CHECK_OK(s.ctx, frgi_gp_params_check(&s.ps, fixed_outside));
    close_setting(&s);
}

/* ---- priors ---------------------------------------------------------------------------------- */

typedef struct {
    const char *text;
    double low, high; /* support, or what matters of it */
    double total;     /* the integral */
    double at[3];     /* where derivatives are looked at */
} density;

/* The horseshoe is the mean of a lower and an upper bound, and of both signs: half of 0.963 (by the
 * integral of log(1 + c/x^2), 2 pi sqrt c), less what lies beyond 1e6. */
static const density densities[] = {
    {"gamma(3,6)", 0, 20, 1, {0.1, 0.5, 2}},
    {"gamma(0.5,2)", 0, 40, 1, {0.1, 0.5, 2}},
    {"lognormal(-1,0.7)", 0, 100, 1, {0.1, 0.37, 2}},
    {"normal(2,0.5)", -3, 7, 1, {0.1, 2, 3}},
    {"halfnormal(0.8)", 0, 10, 1, {0.1, 0.8, 2}},
    {"halfcauchy(0.3)", 0, 1e6, 1, {0.1, 0.3, 2}},
    {"invgamma(3,1)", 0, 1e4, 1, {0.1, 0.25, 2}},
    {"uniform(0.05,2.5)", 0.05, 2.5, 1, {0.1, 0.5, 2}},
    {"loguniform(0.01,10)", 0.01, 10, 1, {0.1, 0.5, 2}},
    {"smoothbox(0.5,1.5,0.3)", -3, 5, 1, {0.2, 0.9, 1.9}},
    {"horseshoe(1)", 0, 1e6, 0.4815, {0.1, 0.5, 2}},
};

static double log_density(const frgi_gp_params *ps, double v)
{
    return frgi_gp_params_prior(ps, &v, NULL, NULL);
}

/** Simpson in t with v = low + e^t: resolves both ends of a half line. */
static double integral(const frgi_gp_params *ps, double low, double high)
{
    enum { STEPS = 200000 };
    const double begin = log(1e-14), h = (log(high - low) - begin) / STEPS;
    double sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        const double e = exp(begin + i * h), p = log_density(ps, low + e);
        sum += (i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2) * exp(p) * e;
    }
    return sum * h / 3;
}

static void check_density(const density *c, frg_gp_transform transform, bool jacobian)
{
    char text[100];
    frg_context *const ctx = test_context();
    frgi_gp_params ps;
    frgi_gp_params_open(&ps, ctx);
    ps.jacobian = jacobian;
    CHECK_OK(ctx, frgi_gp_params_add(&ps, "a",
                                     (frgi_gp_param){.entry = -1,
                                                     .transform = transform,
                                                     .lower = transform == FRG_GP_LOG ? 1e-9 : 0.01,
                                                     .upper = 50,
                                                     .per_value = transform == FRG_GP_IDENTITY}));
    snprintf(text, sizeof text, " a = %s ", c->text);
    if (CHECK_OK(ctx, frgi_gp_params_priors(&ps, text))) {
        for (int i = 0; i < 3; i++) {
            /* differences in log v or v: h^2/12 of the fourth derivative, below 1e4, and 4 u |log
             * p| / h^2 */
            const double v = c->at[i], h = 1e-4, up = ps.p[0].per_value ? v + h : v * exp(h);
            const double down = ps.p[0].per_value ? v - h : v * exp(-h),
                         middle = log_density(&ps, v);
            const double first = (log_density(&ps, up) - log_density(&ps, down)) / (2 * h);
            const double second =
                (log_density(&ps, up) - 2 * middle + log_density(&ps, down)) / (h * h);
            double gradient = 1, curvature = 10;
            CHECK_NEAR(frgi_gp_params_prior(&ps, &v, &gradient, &curvature), middle, 0);
            CHECK_SAYS(fabs(gradient - 1 - first) <= 1e-5 * (1 + fabs(first)),
                       "%s, transform %d at %g: %.9g, %.9g", c->text, (int)transform, v,
                       gradient - 1, first);
            CHECK_SAYS(fabs(curvature - 10 - fmax(0, -second)) <= 1e-4 * (1 + fabs(second)),
                       "%s, transform %d at %g: curvature %.9g, %.9g", c->text, (int)transform, v,
                       curvature - 10, -second);
        }
    }
    if (!jacobian)
        CHECK_NEAR(integral(&ps, c->low, c->high), c->total, 1e-4);
    frgi_gp_params_close(&ps);
    frg_context_destroy(ctx);
}

static void priors(void)
{
    for (size_t c = 0; c < sizeof densities / sizeof *densities; c++) {
        check_density(&densities[c], FRG_GP_LOG, false);
        check_density(&densities[c], FRG_GP_LOG, true);
        check_density(&densities[c], FRG_GP_SOFTPLUS, true);
        check_density(&densities[c], FRG_GP_INTERVAL, true);
        check_density(&densities[c], FRG_GP_IDENTITY, true);
    }
}

/** The change of variables keeps the mass: with the jacobian, exp(log p) integrates to 1 over
 *  raw. */
static void jacobians(void)
{
    static const frg_gp_transform all[] = {FRG_GP_LOG, FRG_GP_SOFTPLUS};
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        frg_context *const ctx = test_context();
        frgi_gp_params ps;
        frgi_gp_params_open(&ps, ctx);
        ps.jacobian = true;
        CHECK_OK(ctx, frgi_gp_params_add(
                          &ps, "a",
                          (frgi_gp_param){.entry = -1, .transform = all[c], .upper = HUGE_VAL}));
        CHECK_OK(ctx, frgi_gp_params_priors(&ps, "a=gamma(3,2)"));
        double sum = 0;
        for (double raw = -40; raw < 40; raw += 1e-3) {
            const double v = frgi_gp_transform_value(&ps.p[0], raw);
            sum += v < 300 && v > 1e-15 ? 1e-3 * exp(log_density(&ps, v)) : 0;
        }
        CHECK_NEAR(sum, 1,
                   1e-9); /* the trapezoidal rule on a smooth function that dies at both ends */
        frgi_gp_params_close(&ps);
        frg_context_destroy(ctx);
    }
}

static void prior_texts(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"rbf.l=gamma(1,2); rbf.l=gamma(2,2)", "column 19: 'rbf.l' has a prior already"},
               {"rbf.k=gamma(1,2)", "column 1: there is no parameter 'rbf.k'; did you mean rbf.l?"},
               {"rbf.l", "column 6: expected '='"},
               {"rbf.l=", "column 7: expected a name"},
               {"rbf.l=gama(1,2)", "column 7: there is no density 'gama'; did you mean gamma?"},
               {"rbf.l=zzzzzzzz(1,2)", "there are gamma, lognormal"},
               {"rbf.l=gamma", "expected '('"},
               {"rbf.l=gamma(1)", "column 14: expected ','"},
               {"rbf.l=gamma(1,2,3)", "column 16: expected ')'"},
               {"rbf.l=gamma(1,-2)", "column 7: these numbers make no density; write gamma(3,6)"},
               {"rbf.l=uniform(2,1)", "make no density"},
               {"rbf.l=smoothbox(1,2,0)", "make no density"},
               {"rbf.l=normal(0,0)", "make no density"},
               {"rbf.l=gamma(a,2)", "expected a finite number"},
               {"rbf.l=gamma(inf,2)", "expected a finite number"},
               {"rbf.l=gamma(1,2) noise=gamma(1,2)", "column 18: expected ';'"},
               {"; rbf.l=gamma(1,2)", "expected a name"}};
    setting s;
    if (!open_setting(&s, "rbf(ard) + noise", FRG_GP_PRESET_NONE, FRG_F64))
        return;
    for (size_t c = 0; c < sizeof bad / sizeof *bad; c++) {
        CHECK_STATUS(frgi_gp_params_priors(&s.ps, bad[c].text), FRG_BAD_ARG);
        CHECK_SAYS(strstr(frg_message(s.ctx), bad[c].says) != NULL, "%s: \"%s\" lacks \"%s\"",
                   bad[c].text, frg_message(s.ctx), bad[c].says);
        CHECK_TEXT(frg_error_code(s.ctx), "FRG-GP-005");
    }
    CHECK_OK(s.ctx,
             frgi_gp_params_priors(&s.ps, " rbf.l = lognormal( -1e0 , 2 ) ;noise=gamma(1,2); "));
    CHECK(s.ps.p[0].prior.kind == GP_PRIOR_LOGNORMAL && s.ps.p[2].prior.kind == GP_PRIOR_LOGNORMAL);
    CHECK(s.ps.p[0].prior.a == -1 && s.ps.p[0].prior.b == 2 &&
          s.ps.p[3].prior.kind == GP_PRIOR_GAMMA);
    CHECK_OK(s.ctx, frgi_gp_params_priors(&s.ps, ""));
    /* a vector's prior is the sum over its entries */
    const double theta[] = {0.5, 1, 2, 0.3};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        const double z = (log(theta[i]) + 1) / 2;
        sum += -log(theta[i]) - log(2 * sqrt(2 * M_PI)) - 0.5 * z * z;
    }
    CHECK_NEAR(frgi_gp_params_prior(&s.ps, theta, NULL, NULL), sum + log(2) - 2 * 0.3, 1e-14);
    close_setting(&s);
}

/** Starts drawn from gamma(a, b) have the mean a/b and the variance a/b^2, also with a below 1,
 *  where another formula is used. COUNT draws of a fixed seed: the mean is within 5 a^0.5/b
 *  COUNT^-0.5; the variance within 5 times its own deviation, of (fourth moment - variance^2)/COUNT
 *  with the fourth moment (3 a^2 + 6 a)/b^4. */
static void starts_from_gamma(void)
{
    enum { COUNT = 20000 };
    static const double shapes[][2] = {{3, 6}, {0.5, 2}, {1, 1}, {20, 4}};
    const double x[] = {0, 0.4, 1}, y[] = {1, -1, 0.5};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        const double a = shapes[k][0], b = shapes[k][1];
        frg_context *ctx = test_context();
        frg_gp_opts o;
        frg_gp_defaults(&o, sizeof o);
        char priors[64];
        snprintf(priors, sizeof priors, "rbf.l=gamma(%g,%g)", a, b);
        o.priors = priors;
        frg_gp *gp = NULL;
        if (CHECK_OK(ctx,
                     frg_gp_create(&gp, ctx, frg_matrix((void *)(uintptr_t)x, FRG_F64, 3, 1, 1),
                                   frg_vector((void *)(uintptr_t)y, FRG_F64, 3),
                                   "1!*rbf(l=in(1e-12,1e12)) + noise(0.1!)", &o))) {
            double mean = 0, square = 0, theta[8];
            int length = 0;
            frg_gp_parameter p;
            while (frg_gp_get_parameter(gp, length, &p) == FRG_OK && strcmp(p.name, "rbf.l") != 0)
                length++;
            for (int i = 1; i <= COUNT; i++) {
                frgi_gp_random_start(gp, i, theta);
                const double d = theta[length] - a / b;
                mean += d / COUNT;
                square += d * d / COUNT;
            }
            const double variance = a / (b * b), fourth = (3 * a * a + 6 * a) / (b * b * b * b);
            CHECK_SAYS(fabs(mean) <= 5 * sqrt(variance / COUNT), "%s: mean off by %g", priors,
                       mean);
            CHECK_SAYS(fabs(square - variance) <= 5 * sqrt((fourth - variance * variance) / COUNT),
                       "%s: variance %g", priors, square);
        }
        frg_gp_destroy(gp);
        frg_context_destroy(ctx);
    }
}

static const test_case cases[] = {
    {"starts from gamma", starts_from_gamma},
    {"transforms", transforms},
    {"natural", natural},
    {"held", held},
    {"presets", presets},
    {"checks", checks},
    {"priors", priors},
    {"jacobians", jacobians},
    {"prior_texts", prior_texts},
};
TEST_MAIN(cases)
