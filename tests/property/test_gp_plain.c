/* test_gp_plain.c - whole fits of every kernel and expression, then values, gradients, predictions
 * and leave-one-out at the optimum, against the plain dense algebra in quadruple precision of
 * tests/oracle/gp_oracle.c.
 *
 * Bound, u = 2^-53, kappa = |K|_F |K^-1|_F as the oracle has it: a backward stable factor and its
 * solves change a solution by c n u kappa of itself (Higham 2002, theorem 10.3), c = 8, and K itself
 * is off by u of the phase of a kernel that turns; a quantity is a sum of such terms, relative to
 * the largest of them.  A gradient has tr(K^-1 dK), whose terms are kappa times their sum at worst
 * (|dK|_F <= |K|_F).  The oracle itself has 15 digits.
 */
#include "gp_expressions.h"

enum { NEW = 5 };

typedef struct {
    double gradient[GP_DATA_PARAMETERS];
    double mean[NEW * 4], variance[NEW], observed[NEW], mean_dx[NEW * 4], variance_dx[NEW * 4];
    double loo_mean[GP_DATA_ROOM], loo_variance[GP_DATA_ROOM], loo_latent[GP_DATA_ROOM];
    double loo_gradient[GP_DATA_PARAMETERS];
    frg_gp_value value;
    frg_gp_loo loo;
} answers;

/** What the library says at the parameters that it has. */
static bool ask(frg_context *ctx, frg_gp *gp, const gp_data *g, const double *x, answers *a)
{
    const frg_array points = frg_matrix(x, FRG_F64, NEW, g->d, g->d);
    frg_array mean = frg_matrix(a->mean, FRG_F64, NEW, g->q, g->q),
              variance = frg_vector(a->variance, FRG_F64, NEW),
              observed = frg_vector(a->observed, FRG_F64, NEW),
              mean_dx = frg_matrix(a->mean_dx, FRG_F64, NEW, g->d, g->d),
              variance_dx = frg_matrix(a->variance_dx, FRG_F64, NEW, g->d, g->d);
    frg_gp_predict_opts o, also;
    frg_gp_predict_defaults(&o, sizeof o);
    o.mean = &mean;
    o.variance = &variance;
    o.mean_dx = g->q == 1 ? &mean_dx : NULL;
    o.variance_dx = &variance_dx;
    frg_gp_predict_defaults(&also, sizeof also);
    also.observed = 1;
    also.variance = &observed;
    if (g->q == 1)
        mean = frg_vector(a->mean, FRG_F64, NEW);
    return CHECK_OK(ctx, frg_gp_eval_gradient(gp, a->gradient, NULL, NULL, &a->value)) &&
           CHECK_OK(ctx, frg_gp_predict(gp, points, &o)) &&
           CHECK_OK(ctx, frg_gp_predict(gp, points, &also)) &&
           CHECK_OK(ctx,
                    frg_gp_eval_loo(gp, a->loo_mean, a->loo_variance, a->loo_gradient, &a->loo)) &&
           CHECK_OK(ctx, frg_gp_eval_loo_latent(gp, a->loo_latent));
}

/** got is within `allowed`, relative to `scale`, of want. */
static void near(const char *what, const char *kernel, double got, double want, double scale,
                 double allowed)
{
    CHECK_SAYS(fabs(got - want) <= allowed * scale, "%s, %s: %.12g, expected %.12g, %.2g allowed",
               kernel, what, got, want, allowed * scale);
}

static double largest(const double *x, int64_t n)
{
    double most = 1;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

static void compare_new_points(const problem *b, const char *kernel, const double *x,
                               const answers *a, double allowed)
{
    const int64_t d = b->data.d, q = b->data.q;
    const double y = largest(b->data.y, b->data.n * q);
    for (int64_t i = 0; i < NEW; i++) {
        const gp_oracle_point p = gp_oracle_predict(&b->oracle, b->theta, x + i * d);
        const double prior = fmax(1, p.variance);
        for (int64_t k = 0; k < q; k++)
            near("mean", kernel, a->mean[i * q + k], p.mean[k], y, allowed);
        near("variance", kernel, a->variance[i], fmax(p.latent, 0), prior, allowed);
        near("variance of an observation", kernel, a->observed[i], p.variance, prior, allowed);
    }
}

/** d mean / dx and d variance / dx against the oracle's central differences, whose step is 1e-5 of
 *  the phase: off by the square of that of the slope (at lengths of 0.01 by 1e-6 of it) and by two
 *  roundings over 2 h. */
static void compare_slopes(const problem *b, const char *kernel, const double *x, const answers *a,
                           double allowed, double phase)
{
    const int64_t d = b->data.d;
    const double h = 1e-5 / phase;
    for (int64_t i = 0; i < NEW * d; i++) {
        double at[4];
        memcpy(at, x + i / d * d, (size_t)d * sizeof *at);
        at[i % d] += h;
        const gp_oracle_point up = gp_oracle_predict(&b->oracle, b->theta, at);
        at[i % d] -= 2 * h;
        const gp_oracle_point down = gp_oracle_predict(&b->oracle, b->theta, at);
        const double slope = (up.latent - down.latent) / (2 * h);
        near("slope of the variance", kernel, a->variance_dx[i], slope, 1 + fabs(slope),
             1e-4 + allowed);
        const double rise = (up.mean[0] - down.mean[0]) / (2 * h);
        if (b->data.q == 1)
            near("slope of the mean", kernel, a->mean_dx[i], rise, 1 + fabs(rise), 1e-4 + allowed);
    }
}

static void compare_left_out(const problem *b, const char *kernel, const answers *a, double allowed,
                             double of_gradients)
{
    static double want[GP_DATA_PARAMETERS];
    const int64_t n = b->data.n, q = b->data.q;
    const double y = largest(b->data.y, n * q);
    for (int64_t i = 0; i < n; i++) {
        const gp_oracle_point p = gp_oracle_left_out(&b->oracle, b->theta, i);
        for (int64_t k = 0; k < q; k++)
            near("mean without the row", kernel, a->loo_mean[i * q + k], p.mean[k], y, allowed);
        near("variance without the row", kernel, a->loo_variance[i], p.variance,
             fmax(1, p.variance), allowed);
        near("that of the function", kernel, a->loo_latent[i], fmax(p.latent, 0),
             fmax(1, p.variance), allowed);
    }
    const double sum = gp_oracle_loo(&b->oracle, b->theta, b->p, want);
    near("density without the rows", kernel, a->loo.log_density, sum, 1 + fabs(sum), allowed);
    gp_data_check(kernel, a->loo_gradient, want, b->p, of_gradients);
}

/** The largest phase of a kernel that turns, between points that are about 1 apart: its sine is off
 *  by u of it, so that K is off by u of it, too. */
static double phase_of(const frg_gp *gp)
{
    double most = 1;
    for (int i = 0; i < frg_gp_parameter_count(gp); i++) {
        frg_gp_parameter p;
        CHECK_STATUS(frg_gp_get_parameter(gp, i, &p), FRG_OK);
        const char *const dot = strrchr(p.name, '.'), *const name = dot ? dot + 1 : p.name;
        const double turns = strcmp(name, "mu") == 0  ? p.value
                             : strcmp(name, "p") == 0 ? 1 / p.value
                                                      : 0;
        most = fmax(most, 6.283 * turns);
    }
    return most;
}

/** Fits, and compares all there is. */
static void whole_fit(frg_context *ctx, problem *b, const char *kernel, const frg_gp_opts *o)
{
    static answers a;
    static double want[GP_DATA_PARAMETERS];
    double x[NEW * 4];
    frg_gp *gp = gp_data_open(ctx, &b->data, kernel, o);
    frg_gp_fit_result r = {.status = FRG_OK};
    if (!gp)
        return;
    const frg_status s = frg_gp_fit(gp, NULL, &r);
    CHECK_SAYS(s == FRG_OK || s == FRG_STALLED || s == FRG_MAX_ITER, "%s: %s", kernel,
               frg_message(ctx));
    for (int64_t i = 0; i < NEW * b->data.d; i++)
        x[i] = 1.2 * test_uniform() - 0.1;
    b->p = gp_data_theta(gp, b->theta);
    const double kappa = gp_oracle_condition(&b->oracle, b->theta);
    const double phase = phase_of(gp),
                 allowed = 1e-12 + 8 * (double)b->data.n * 0x1p-53 * kappa * phase;
    if (ask(ctx, gp, &b->data, x, &a)) {
        const double ell = gp_oracle_value(&b->oracle, b->theta);
        near("value", kernel, a.value.log_likelihood, ell, 1 + fabs(ell), allowed);
        near("value of the fit", kernel, r.log_likelihood, ell, 1 + fabs(ell), allowed);
        gp_oracle_gradient(&b->oracle, b->theta, b->p, want);
        gp_data_check(kernel, a.gradient, want, b->p, allowed * fmax(1, kappa));
        compare_new_points(b, kernel, x, &a, allowed);
        compare_slopes(b, kernel, x, &a, allowed, phase);
        compare_left_out(b, kernel, &a, allowed, allowed * fmax(1, kappa));
    }
    frg_gp_destroy(gp);
}

static void every_expression(void)
{
    frg_context *ctx = test_context();
    static problem b;
    const frg_gp_opts o = gp_data_opts("zero");
    for (int k = 0; k < EXPRESSIONS; k++) {
        if (!test_turn(k, 4))
            continue;
        set_oracle(&b, &expressions[k], 10, 1);
        whole_fit(ctx, &b, expressions[k].kernel, &o);
    }
    frg_context_destroy(ctx);
}

static void every_model(void)
{
    frg_context *ctx = test_context();
    static problem b;
    for (size_t k = 0; k < GP_MODELS; k++) {
        if (!test_turn((int64_t)k, 4))
            continue;
        frg_gp_opts o;
        const expression *const e = set_model(&b, k, 11, &o);
        whole_fit(ctx, &b, e->kernel, &o);
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"whole fits of every expression", every_expression},
                                  {"whole fits of every model", every_model}};
TEST_MAIN(cases)
