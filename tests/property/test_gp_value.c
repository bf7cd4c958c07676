/* test_gp_value.c - values, gradients and information against the oracle, differences and
 * identities.
 *
 * Differences: central with a step of 1e-5 in log v, so that the truncation is 1e-10 of the third
 * derivative and rounding 1e-5 of the value's 1e-13: 1e-6 relative is asked for.  Against the
 * oracle, which knows the answer to 15 digits, 1e-9 relative to the sum of |terms| is: condition of
 * K below 1e5 times 2^-53 times n.
 */
#include "gp_expressions.h"

/* ---- against the oracle ---------------------------------------------------------------------- */

static frg_gp *open_problem(frg_context *ctx, problem *b, const expression *e, const frg_gp_opts *o)
{
    frg_gp *gp = gp_data_open(ctx, &b->data, e->kernel, o);
    b->p = gp ? gp_data_theta(gp, b->theta) : 0;
    return gp;
}

static void compare(frg_context *ctx, problem *b, const expression *e, const frg_gp_opts *o,
                    bool data)
{
    static double gradient[GP_DATA_PARAMETERS], want[GP_DATA_ROOM], dx[GP_DATA_ROOM],
        dy[GP_DATA_ROOM], want_x[GP_DATA_ROOM];
    const int64_t n = b->data.n, d = b->data.d, q = b->data.q;
    frg_gp *gp = open_problem(ctx, b, e, o);
    const frg_array to_x = frg_matrix(dx, FRG_F64, n, d, d);
    const frg_array to_y = frg_matrix_columns(dy, FRG_F64, n, q, n);
    frg_gp_value v;
    if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, data ? &to_x : NULL, &to_y, &v))) {
        const double ell = gp_oracle_value(&b->oracle, b->theta);
        CHECK_SAYS(fabs(v.log_likelihood - ell) <= 1e-10 * (1 + fabs(ell)),
                   "%s: %.17g, expected %.17g", e->kernel, v.log_likelihood, ell);
        CHECK_SAYS(v.trace_residual <= 1e-10, "%s: trace residual %g", e->kernel, v.trace_residual);
        CHECK_SAYS(v.error_estimate >= fabs(v.log_likelihood - ell), "%s: error %g, estimate %g",
                   e->kernel, fabs(v.log_likelihood - ell), v.error_estimate);
        gp_oracle_gradient(&b->oracle, b->theta, b->p, want);
        gp_data_check(e->kernel, gradient, want, b->p, 1e-9);
        if (data) {
            gp_oracle_data_gradient(&b->oracle, b->theta, want_x, want);
            gp_data_check(e->kernel, dx, want_x, n * d, 1e-9);
            gp_data_check(e->kernel, dy, want, n * q, 1e-9);
        }
    }
    frg_gp_destroy(gp);
}

static void kernels_by_oracle(void)
{
    frg_context *ctx = test_context();
    static problem b;
    const frg_gp_opts o = gp_data_opts("zero");
    for (int k = 0; k < EXPRESSIONS; k++) {
        if (!test_turn(k, 4))
            continue;
        set_oracle(&b, &expressions[k], test_size(14, 8) + test_below(6), 1);
        compare(ctx, &b, &expressions[k], &o, true);
    }
    CHECK_INT(frg_warning_count(ctx), 0);
    frg_context_destroy(ctx);
}

static void sizes_by_oracle(void)
{
    frg_context *ctx = test_context();
    static problem b;
    static const int64_t sizes[] = {1, 2, 7, 8, 9, 15, 17, 33, 48, 64, 97, 160};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (int storage = FRG_GP_FULL; storage <= FRG_GP_PACKED; storage++) {
            frg_gp_opts o = gp_data_opts("zero");
            o.storage = (frg_gp_storage)storage;
            set_oracle(&b, &expressions[sizes[k] < 40 ? 1 : 0], test_size(sizes[k], 9), 1);
            compare(ctx, &b, &expressions[sizes[k] < 40 ? 1 : 0], &o, false);
        }
    }
    frg_context_destroy(ctx);
}

static void models_by_oracle(void)
{
    frg_context *ctx = test_context();
    static problem b;
    for (size_t k = 0; k < GP_MODELS; k++) {
        if (!test_turn((int64_t)k, 4))
            continue;
        frg_gp_opts o;
        const expression *const e = set_model(&b, k, test_size(18, 12), &o);
        compare(ctx, &b, e, &o, true);
    }
    frg_context_destroy(ctx);
}

static void information_by_oracle(void)
{
    frg_context *ctx = test_context();
    static problem b;
    static double got[GP_DATA_PARAMETERS * GP_DATA_PARAMETERS],
        want[GP_DATA_PARAMETERS * GP_DATA_PARAMETERS];
    static const int which[] = {1, 6, 7, 12, 14, 15};
    const frg_gp_opts o = gp_data_opts("zero");
    for (size_t k = 0; k < sizeof which / sizeof *which; k++) {
        if (!test_turn((int64_t)k, 3))
            continue;
        const expression *const e = &expressions[which[k]];
        set_oracle(&b, e, 20, 1 + (int64_t)k % 2);
        frg_gp *gp = open_problem(ctx, &b, e, &o);
        for (int after = 0; gp && after < 2; after++) { /* from the factor, and from the inverse */
            CHECK_OK(ctx, frg_gp_eval_information(gp, got));
            gp_oracle_information(&b.oracle, b.theta, b.p, want);
            gp_data_check(e->kernel, got, want, b.p * b.p, 1e-9);
            double gradient[GP_DATA_PARAMETERS];
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL));
        }
        if (gp) {
            CHECK_OK(ctx, frg_gp_update_fixed(gp, 1, 1));
            CHECK_OK(ctx, frg_gp_eval_information(gp, got));
            CHECK(got[1] == 0 && got[b.p] == 0 && got[b.p + 1] == 0 && got[0] > 0);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/* ---- by differences -------------------------------------------------------------------------- */

static void priors(void)
{
    static const char *const texts[] = {
        "rbf.l=gamma(3,6); noise=lognormal(-4,1)",
        "rbf.l=normal(0.5,0.2); scale=halfnormal(1.5)",
        "rbf.l=invgamma(3,2); noise=halfcauchy(0.3)",
        "rbf.l=lognormal(0.1,0.7); scale=gamma(2,0.15)",
    };
    static const frg_gp_preset presets[] = {FRG_GP_PRESET_NONE, FRG_GP_PRESET_GPYTORCH,
                                            FRG_GP_PRESET_BOTORCH, FRG_GP_PRESET_SKLEARN};
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 20, 2, 1);
    for (int k = 0; k < 32; k++) {
        frg_gp_opts o = gp_data_opts("const");
        o.priors = texts[k % 4];
        o.preset = presets[k / 4 % 4];
        o.prior_jacobian = k / 16;
        const char *const kernel = "1.2*rbf(l=[0.4,0.6]) + noise(0.1)";
        frg_gp *gp = gp_data_open(ctx, &g, kernel, &o);
        double got[8], want[8];
        frg_gp_value v;
        if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, got, NULL, NULL, &v))) {
            CHECK(v.log_prior != 0 &&
                  fabs(v.per_point * 20 - v.log_likelihood - v.log_prior) < 1e-12);
            gp_data_differences(ctx, gp, gp_data_objective, want);
            gp_data_check(texts[k % 4], got, want, frg_gp_parameter_count(gp), 1e-6);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/* ---- identities ------------------------------------------------------------------------------ */

/** Radial kernels depend on x_k / l_k alone: sum_i x_ik d ell/dx_ik + d ell/dlog l_k = 0. */
static void scale_identity(void)
{
    static const char *const words[] = {"rbf", "matern32", "matern52", "rq", "matern12"};
    frg_context *ctx = test_context();
    gp_data g;
    static double dx[GP_DATA_ROOM];
    const frg_gp_opts o = gp_data_opts("const");
    for (int w = 0; w < 5; w++) {
        gp_data_random(&g, test_size(150, 20), 3, 1);
        char kernel[80];
        snprintf(kernel, sizeof kernel, "1.2*%s(l=[0.4,0.3,0.8]) + noise(0.05)", words[w]);
        frg_gp *gp = gp_data_open(ctx, &g, kernel, &o);
        double gradient[8];
        const frg_array to = frg_matrix(dx, FRG_F64, g.n, 3, 3);
        if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, &to, NULL, NULL))) {
            for (int k = 0; k < 3; k++) {
                double sum = gradient[1 + k], size = fabs(sum);
                for (int64_t i = 0; i < g.n; i++) {
                    sum += g.x[3 * i + k] * dx[3 * i + k];
                    size += fabs(g.x[3 * i + k] * dx[3 * i + k]);
                }
                CHECK_SAYS(fabs(sum) <= 1e-11 * size, "%s, column %d: %g of %g", words[w], k, sum,
                           size);
            }
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** d ell/dlog f = 1/2 ((r'a - n) - sum_i nu_i W_ii), with r'a = -r' d ell/dy. */
static void outputscale_identity(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    static double dy[GP_DATA_ROOM];
    gp_data_random(&g, 90, 2, 1);
    frg_gp_opts o = gp_data_opts("zero");
    static const char *const kernels[] = {"1.2*rbf(l=0.4) + noise(0.05)",
                                          "1.2*rbf(l=0.4)*matern32(l=1) + noise(0.05)"};
    for (int k = 0; k < 4; k++) {
        o.storage = k / 2 ? FRG_GP_PACKED : FRG_GP_FULL;
        frg_gp *gp = gp_data_open(ctx, &g, kernels[k % 2], &o);
        double gradient[4], quad = 0;
        const frg_array to = frg_vector(dy, FRG_F64, g.n);
        if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, &to, NULL))) {
            for (int64_t i = 0; i < g.n; i++) {
                quad -= g.y[i] * dy[i];
            }
            CHECK_NEAR(gradient[0], 0.5 * (quad - 90) - gradient[frg_gp_parameter_count(gp) - 1],
                       1e-11);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

static void permuted(void)
{
    frg_context *ctx = test_context();
    gp_data g, p;
    gp_data_random(&g, 120, 2, 1);
    p = g;
    for (int64_t i = g.n - 1; i > 0; i--) {
        const int64_t j = test_below(i + 1);
        for (int k = 0; k < 2; k++) {
            const double kept = p.x[2 * i + k];
            p.x[2 * i + k] = p.x[2 * j + k];
            p.x[2 * j + k] = kept;
        }
        const double kept = p.y[i];
        p.y[i] = p.y[j];
        p.y[j] = kept;
    }
    const frg_gp_opts o = gp_data_opts("const(0)");
    double a[4], b[4];
    frg_gp_value va = {0}, vb = {0};
    frg_gp *first = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.05)", &o);
    frg_gp *second = gp_data_open(ctx, &p, "1.2*rbf(l=0.4) + noise(0.05)", &o);
    if (first && second && CHECK_OK(ctx, frg_gp_eval_gradient(first, a, NULL, NULL, &va)) &&
        CHECK_OK(ctx, frg_gp_eval_gradient(second, b, NULL, NULL, &vb))) {
        CHECK_NEAR(va.log_likelihood, vb.log_likelihood, 1e-11);
        gp_data_check("permuted", a, b, 4, 1e-11);
    }
    frg_gp_destroy(first);
    frg_gp_destroy(second);
    frg_context_destroy(ctx);
}

/** Stationary kernels do not see an offset: what remains is the rounding of x itself, 1e6 times
 *  1e-16. */
static void translated(void)
{
    static const char *const kernels[] = {"1.2*rbf(l=0.4) + noise(0.05)",
                                          "matern32(l=0.4)*periodic(l=1, p=0.7) + noise(0.1)"};
    frg_context *ctx = test_context();
    for (int k = 0; k < 4; k++) {
        gp_data g;
        gp_data_random(&g, 60, 2, 1);
        frg_gp_opts o = gp_data_opts("const");
        o.precision = k / 2 ? FRG_GP_F32 : FRG_GP_F64;
        frg_gp *gp = gp_data_open(ctx, &g, kernels[k % 2], &o);
        const double want = gp ? gp_data_value(ctx, gp) : 0;
        frg_gp_destroy(gp);
        for (int64_t i = 0; i < g.n * g.d; i++) {
            g.x[i] += 1e6;
        }
        gp = gp_data_open(ctx, &g, kernels[k % 2], &o);
        if (gp) {
            CHECK_NEAR(gp_data_value(ctx, gp), want, k / 2 ? 1e-4 : 1e-7);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** k noisy copies of a point are one point of noise s/k and a constant. */
static void merged(void)
{
    frg_context *ctx = test_context();
    gp_data g, m;
    gp_data_random(&m, 25, 2, 1);
    const double s = 0.3;
    double variances[25], constant = 0;
    g = (gp_data){.d = 2, .q = 1};
    for (int64_t i = 0; i < m.n; i++) {
        const int copies = 1 + (int)test_below(4);
        double sum = 0, square = 0;
        for (int c = 0; c < copies; c++) {
            memcpy(g.x + 2 * g.n, m.x + 2 * i, 2 * sizeof *g.x);
            g.y[g.n] = m.y[i] + 0.4 * test_normal();
            sum += g.y[g.n++];
        }
        for (int c = 0; c < copies; c++) {
            const double e = g.y[g.n - 1 - c] - sum / copies;
            square += e * e;
        }
        m.y[i] = sum / copies;
        variances[i] = s / copies;
        constant -=
            0.5 * ((copies - 1) * log(2 * 3.14159265358979323846 * s) + log(copies) + square / s);
    }
    frg_gp_opts o = gp_data_opts("zero");
    frg_gp *all = gp_data_open(ctx, &g, "1.2*matern32(l=0.4) + noise(0.3)", &o);
    o.noise_variances = variances;
    frg_gp *few = gp_data_open(ctx, &m, "1.2*matern32(l=0.4)", &o);
    double a[4], b[4];
    frg_gp_value va = {0}, vb = {0};
    if (all && few && CHECK_OK(ctx, frg_gp_eval_gradient(all, a, NULL, NULL, &va)) &&
        CHECK_OK(ctx, frg_gp_eval_gradient(few, b, NULL, NULL, &vb))) {
        CHECK_NEAR(va.log_likelihood, vb.log_likelihood + constant, 1e-12);
        gp_data_check("merged", a, b, 2, 1e-11);
        CHECK(frg_warning_count(ctx) == 0);
    }
    frg_gp_destroy(all);
    frg_gp_destroy(few);
    frg_context_destroy(ctx);
}

/** One kernel for all columns of y: the sum of the single ones. */
static void several_outputs(void)
{
    frg_context *ctx = test_context();
    gp_data g, one;
    gp_data_random(&g, 70, 2, 4);
    frg_gp_opts o = gp_data_opts("zero");
    for (int low = 0; low < 2; low++) {
        o.precision = low ? FRG_GP_F32 : FRG_GP_F64;
        const double tolerance = low ? 1e-4 : 1e-12;
        double sum[3] = {0}, got[3], value = 0;
        frg_gp_value v = {0};
        one = g;
        one.q = 1;
        for (int c = 0; c < 4; c++) {
            memcpy(one.y, g.y + 70 * c, 70 * sizeof *g.y);
            frg_gp *gp = gp_data_open(ctx, &one, "1.2*rbf(l=0.4) + noise(0.05)", &o);
            if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, got, NULL, NULL, &v))) {
                value += v.log_likelihood;
                for (int i = 0; i < 3; i++) {
                    sum[i] += got[i];
                }
            }
            frg_gp_destroy(gp);
        }
        frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.05)", &o);
        if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, got, NULL, NULL, &v))) {
            CHECK_NEAR(v.log_likelihood, value, tolerance);
            gp_data_check("several outputs", got, sum, 3, tolerance);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

enum { ASKED = 12 };

typedef struct {
    double value, gradient[GP_DATA_PARAMETERS], mean[ASKED], loo;
} answers;

static void predict(frg_context *ctx, frg_gp *gp, const double *x, double *mean)
{
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    frg_array to = frg_vector(mean, FRG_F64, ASKED);
    o.mean = &to;
    CHECK_OK(ctx, frg_gp_predict(gp, frg_matrix(x, FRG_F64, ASKED, 2, 2), &o));
}

/** Asks in the order of the letters: value, gradient, prediction, leave-one-out. */
static void ask(frg_context *ctx, frg_gp *gp, const double *x, const char *order, answers *a)
{
    frg_gp_loo loo;
    for (; *order; order++) {
        if (*order == 'v')
            a->value = gp_data_value(ctx, gp);
        else if (*order == 'g')
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, a->gradient, NULL, NULL, NULL));
        else if (*order == 'p')
            predict(ctx, gp, x, a->mean);
        else if (CHECK_OK(ctx, frg_gp_eval_loo(gp, NULL, NULL, NULL, &loo)))
            a->loo = loo.log_density;
    }
}

/** Factor and inverse come in one sweep or one after the other, as is asked for: no answer knows of
 *  it. */
static void any_order(void)
{
    static gp_data g;
    static const char *const orders[] = {"vpgl", "gvpl", "lpvg", "pgpvl", "glvp"};
    static const int64_t sizes[] = {30, 150, 420};
    for (int k = 0; k < 12; k++) {
        answers first = {0}, now = {0};
        gp_data_random(&g, sizes[k % 3], 2, 1);
        frg_gp_opts o = gp_data_opts(k < 9 ? "const" : "profiled");
        o.precision = k / 3 == 1 ? FRG_GP_F32 : k / 3 == 2 ? FRG_GP_MIXED : FRG_GP_F64;
        o.profile_scale = k == 10;
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
            frg_context *ctx = test_context();
            frg_gp *gp = gp_data_open(ctx, &g, "1.2*matern52(l=0.4) + noise(0.05)", &o);
            if (gp)
                ask(ctx, gp, g.x, orders[i], i == 0 ? &first : &now);
            if (i > 0)
                CHECK_BITS(&now, &first, sizeof now);
            frg_gp_destroy(gp);
            frg_context_destroy(ctx);
        }
    }
}

static const test_case cases[] = {
    {"any order", any_order},
    {"kernels by the oracle", kernels_by_oracle},
    {"sizes by the oracle", sizes_by_oracle},
    {"models by the oracle", models_by_oracle},
    {"information by the oracle", information_by_oracle},
    {"priors", priors},
    {"scale identity", scale_identity},
    {"outputscale identity", outputscale_identity},
    {"permuted", permuted},
    {"translated", translated},
    {"merged", merged},
    {"several outputs", several_outputs},
};
TEST_MAIN(cases)
