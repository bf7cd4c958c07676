/* test_gp_predict.c - predictions and updates of Gaussian processes against plain dense algebra,
 * differences, refits, moments and themselves.
 *
 * Tolerances: with noise 0.05 of the variance and n <= 150 the condition of K is below 1e5, so that
 * two ways of solving with it differ by at most cond * n * eps = 3e-9 and, errors being
 * independent, by about 1e-11.
 */
#include "gp_data.h"

static const char *const kernels[] = {
    "1.3*rbf(l=[0.3,0.5]) + noise(0.06)",
    "1.1*matern32(l=0.4) + 0.4*linear(v=0.5) + noise(0.05)",
    "0.9*matern52(l=0.5)*periodic(l=1.1, p=0.8) + 0.3*rq(l=0.4, alpha=1.2) + noise(0.05)",
    "0.7*poly(q=2, c=0.5) + 0.6*on(x2; matern52(l=0.3)) + noise(0.07)",
};
enum { KERNELS = sizeof kernels / sizeof *kernels, NEW_MOST = 400 };

typedef struct {
    double mean[NEW_MOST], variance[NEW_MOST], mean_dx[2 * NEW_MOST], variance_dx[2 * NEW_MOST];
    double *covariance;
} answer;

static frg_status ask(frg_gp *gp, const double *x, int64_t m, int observed, int derivatives,
                      answer *a)
{
    frg_array mean = frg_vector(a->mean, FRG_F64, m),
              variance = frg_vector(a->variance, FRG_F64, m);
    frg_array dm = frg_matrix(a->mean_dx, FRG_F64, m, 2, 2);
    frg_array dv = frg_matrix(a->variance_dx, FRG_F64, m, 2, 2);
    frg_array covariance = frg_matrix(a->covariance, FRG_F64, m, m, m);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.observed = observed;
    o.mean = &mean;
    o.variance = &variance;
    o.covariance = a->covariance ? &covariance : NULL;
    o.mean_dx = derivatives ? &dm : NULL;
    o.variance_dx = derivatives ? &dv : NULL;
    return frg_gp_predict(gp, frg_matrix(x, FRG_F64, m, 2, 2), &o);
}

static void random_points(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = 1.4 * test_uniform() - 0.2;
}

/* ---- against a process that knows the new point ---------------------------------------------- */

/** With y* appended, the joint likelihood splits: ell(y, y*) - ell(y) = log N(y*; mean, variance +
 *  noise). */
static void chain_rule(void)
{
    static gp_data g, h;
    frg_context *ctx = test_context();
    for (int k = 0; k < KERNELS; k++) {
        for (int linear = 0; linear < 2; linear++) {
            gp_data_random(&g, 90, 2, 1);
            h = g;
            h.n++;
            random_points(h.x + 2 * g.n, 2);
            h.y[g.n] = test_normal();
            const frg_gp_opts o = gp_data_opts(linear ? "linear" : "const(0.2)");
            frg_gp *a = gp_data_open(ctx, &g, kernels[k], &o),
                   *b = gp_data_open(ctx, &h, kernels[k], &o);
            double theta[GP_DATA_PARAMETERS];
            answer r = {.covariance = NULL};
            if (a && b) {
                gp_data_theta(a, theta);
                CHECK_OK(ctx, frg_gp_update_parameters(b, theta));
                CHECK_OK(ctx, ask(a, h.x + 2 * g.n, 1, 1, 0, &r));
                const double e = h.y[g.n] - r.mean[0], v = r.variance[0];
                const double density = -0.5 * (e * e / v + log(v) + 1.8378770664093454836);
                CHECK_NEAR(gp_data_value(ctx, b) - gp_data_value(ctx, a), density, 1e-9);
            }
            frg_gp_destroy(a);
            frg_gp_destroy(b);
        }
    }
    frg_context_destroy(ctx);
}

/** The same for a profiled mean under REML, whose likelihood is that of the contrasts: the
 *  prediction carries the uncertainty of the mean. */
static void chain_rule_profiled(void)
{
    static gp_data g, h;
    static const char *const means[] = {"profiled", "profiled(linear)"};
    frg_context *ctx = test_context();
    for (int k = 0; k < 2; k++) {
        gp_data_random(&g, 60, 2, 1);
        h = g;
        h.n++;
        random_points(h.x + 2 * g.n, 2);
        h.y[g.n] = test_normal();
        frg_gp_opts o = gp_data_opts(means[k]);
        o.reml = 1;
        frg_gp *a = gp_data_open(ctx, &g, kernels[0], &o),
               *b = gp_data_open(ctx, &h, kernels[0], &o);
        answer r = {.covariance = NULL};
        if (a && b && CHECK_OK(ctx, ask(a, h.x + 2 * g.n, 1, 1, 0, &r))) {
            /* without the term of log |H'H|, which the header leaves out: the contrasts of n and n
             * + 1 points differ by it, as they do by the Jacobian of centring at other means; both
             * are of H alone */
            const double e = h.y[g.n] - r.mean[0], v = r.variance[0];
            const double density = -0.5 * (e * e / v + log(v) + 1.8378770664093454836);
            CHECK_NEAR(gp_data_value(ctx, b) - gp_data_value(ctx, a), density, 1e-8);
        }
        frg_gp_destroy(a);
        frg_gp_destroy(b);
    }
    frg_context_destroy(ctx);
}

/* ---- interpolation, noise, blocks ------------------------------------------------------------ */

/** With the mean given, y ~ N(m, K): what a process without one says of y - m, and m* on it, to
 *  rounding. */
static void given_mean(void)
{
    enum { M = 7 };
    static gp_data g, h;
    frg_context *ctx = test_context();
    gp_data_random(&g, 60, 2, 1);
    h = g;
    double m[60], at[2 * M], there[M];
    answer a = {.covariance = NULL}, b = {.covariance = NULL};
    random_points(at, 2 * M);
    for (int i = 0; i < 60; i++) {
        m[i] = test_normal();
        h.y[i] -= m[i];
    }
    for (int i = 0; i < M; i++)
        there[i] = test_normal();
    frg_gp_opts o = gp_data_opts("values");
    const frg_gp_opts none = gp_data_opts("zero");
    o.mean_values = m;
    frg_gp *gp = gp_data_open(ctx, &g, kernels[0], &o),
           *zero = gp_data_open(ctx, &h, kernels[0], &none);
    if (gp && zero) {
        CHECK(frg_gp_get(gp).given_mean == 1 && frg_gp_get(zero).given_mean == 0);
        CHECK_STATUS(ask(gp, at, M, 0, 0, &a), FRG_BAD_ARG); /* without m* */
        CHECK_OK(ctx, ask(zero, at, M, 0, 0, &b));
        frg_array mean = frg_vector(a.mean, FRG_F64, M);
        frg_gp_predict_opts p;
        frg_gp_predict_defaults(&p, sizeof p);
        p.mean = &mean;
        p.mean_values = there;
        CHECK_OK(ctx, frg_gp_predict(gp, frg_matrix(at, FRG_F64, M, 2, 2), &p));
        for (int i = 0; i < M; i++)
            CHECK_NEAR(a.mean[i], there[i] + b.mean[i],
                       1e-14); /* a sum in another order: a few eps of |mean| < 10 */
        CHECK_STATUS(frg_gp_predict(zero, frg_matrix(at, FRG_F64, M, 2, 2), &p), FRG_BAD_ARG);
        there[2] = (double)NAN;
        CHECK_STATUS(frg_gp_predict(gp, frg_matrix(at, FRG_F64, M, 2, 2), &p), FRG_BAD_DATA);
        CHECK(strstr(frg_message(ctx), "row 2") != NULL);
    }
    frg_gp_destroy(gp);
    frg_gp_destroy(zero);
    frg_context_destroy(ctx);
}

static void interpolates(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 40, 2, 1);
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "1*matern32(l=0.3) + noise(1e-9)", &o);
    answer r = {.covariance = NULL};
    if (gp && CHECK_OK(ctx, ask(gp, g.x, g.n, 0, 0, &r))) {
        for (int i = 0; i < g.n; i++) {
            /* y - noise K^-1 y with |K^-1 y| <= 1e4 here; the variance is noise - noise^2 (K^-1)_ii
             * < noise */
            CHECK_NEAR(r.mean[i], g.y[i], 1e-5);
            CHECK_SAYS(r.variance[i] < 1.1e-9, "variance %g", r.variance[i]);
        }
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** More points than a block, one after another, all at once, with and without noise: the same
 *  numbers. */
static void blocks(void)
{
    static gp_data g;
    static double x[2 * NEW_MOST];
    static answer all, one, noisy;
    frg_context *ctx = test_context();
    gp_data_random(&g, 70, 2, 1);
    random_points(x, 2 * NEW_MOST);
    const frg_gp_opts o = gp_data_opts("const");
    frg_gp *gp = gp_data_open(ctx, &g, kernels[1], &o);
    const int64_t m = 300;
    if (gp && CHECK_OK(ctx, ask(gp, x, m, 0, 0, &all)) &&
        CHECK_OK(ctx, ask(gp, x, m, 1, 0, &noisy))) {
        for (int i = 0; i < m; i += 37) {
            CHECK_OK(ctx, ask(gp, x + 2 * i, 1, 0, 0, &one));
            CHECK_NEAR(one.mean[0], all.mean[i], 1e-12);
            CHECK_NEAR(one.variance[0], all.variance[i], 1e-12);
            CHECK_NEAR(noisy.variance[i] - all.variance[i], 0.05, 1e-13);
        }
        CHECK_OK(ctx, ask(gp, x, 0, 0, 0, &one));
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void covariances(void)
{
    static gp_data g;
    static double x[2 * NEW_MOST];
    static answer r;
    frg_context *ctx = test_context();
    const int64_t m = 130;
    r.covariance = calloc((size_t)(m * m), sizeof *r.covariance);
    gp_data_random(&g, 80, 2, 1);
    random_points(x, 2 * m);
    for (int k = 0; k < KERNELS; k++) {
        const frg_gp_opts o = gp_data_opts(k == 1 ? "profiled(linear)" : "zero");
        frg_gp *gp = gp_data_open(ctx, &g, kernels[k], &o);
        if (gp && CHECK_OK(ctx, ask(gp, x, m, 0, 0, &r))) {
            double worst = 0;
            for (int64_t i = 0; i < m; i++) {
                CHECK_NEAR(r.covariance[i * m + i], r.variance[i], 1e-11);
                for (int64_t j = 0; j < m; j++)
                    worst = fmax(worst, fabs(r.covariance[i * m + j] - r.covariance[j * m + i]));
            }
            CHECK(worst == 0);
            /* off the diagonal: the variance of the difference of two points from the three of
             * them */
            answer *pair = calloc(1, sizeof *pair);
            double four[4], square[4];
            pair->covariance = square;
            memcpy(four, x + 2, 2 * sizeof *four);
            memcpy(four + 2, x + 200, 2 * sizeof *four);
            CHECK_OK(ctx, ask(gp, four, 2, 0, 0, pair));
            CHECK_NEAR(square[1], r.covariance[1 * m + 100], 1e-11);
            free(pair);
        }
        frg_gp_destroy(gp);
    }
    free(r.covariance);
    frg_context_destroy(ctx);
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void gradients(void)
{
    static gp_data g;
    static answer r, up, down;
    frg_context *ctx = test_context();
    gp_data_random(&g, 60, 2, 1);
    static const char *const means[] = {"zero", "linear", "profiled(linear)", "const"};
    for (int k = 0; k < KERNELS; k++) {
        const frg_gp_opts o = gp_data_opts(means[k]);
        frg_gp *gp = gp_data_open(ctx, &g, kernels[k], &o);
        double x[10];
        random_points(x, 10);
        if (!gp || !CHECK_OK(ctx, ask(gp, x, 5, 0, 1, &r))) {
            frg_gp_destroy(gp);
            continue;
        }
        for (int i = 0; i < 10; i++) {
            const double h = 1e-5, kept = x[i];
            x[i] = kept + h;
            CHECK_OK(ctx, ask(gp, x, 5, 0, 0, &up));
            x[i] = kept - h;
            CHECK_OK(ctx, ask(gp, x, 5, 0, 0, &down));
            x[i] = kept;
            /* central differences: h^2/6 f''' <= 1e-10 * 1e3 (third derivatives at lengths of 0.3),
             * rounding 1e-12 / h = 1e-7 */
            CHECK_NEAR(r.mean_dx[i], (up.mean[i / 2] - down.mean[i / 2]) / (2 * h), 1e-6);
            CHECK_NEAR(r.variance_dx[i], (up.variance[i / 2] - down.variance[i / 2]) / (2 * h),
                       1e-6);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/* ---- draws ----------------------------------------------------------------------------------- */

/** Means and covariances of many draws within four standard deviations of what they estimate. */
static void moments_of(frg_gp *gp, frg_context *ctx, const double *x, int64_t m, int prior,
                       const double *mean, const double *covariance)
{
    const int64_t count = test_size(200000, 2000);
    double *f = malloc((size_t)(count * m) * sizeof *f);
    CHECK_OK(ctx, frg_gp_sample(gp, frg_matrix(x, FRG_F64, m, 2, 2), count, prior, 0,
                                frg_matrix(f, FRG_F64, count, m, m)));
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0, product = 0;
            for (int64_t s = 0; s < count; s++) {
                sum += f[s * m + i] - mean[i];
                product += (f[s * m + i] - mean[i]) * (f[s * m + j] - mean[j]);
            }
            const double n = (double)count, vi = covariance[i * m + i], vj = covariance[j * m + j];
            const double c = covariance[i * m + j];
            CHECK_SAYS(fabs(sum / n) <= 4 * sqrt(vi / n), "mean %d: off by %g", (int)i, sum / n);
            CHECK_SAYS(fabs(product / n - c) <= 4 * sqrt((vi * vj + c * c) / n),
                       "covariance %d %d: %g, expected %g", (int)i, (int)j, product / n, c);
        }
    }
    free(f);
}

static void draws(void)
{
    static gp_data g;
    enum { M = 4 };
    frg_context *ctx = test_context();
    gp_data_random(&g, 30, 2, 1);
    const frg_gp_opts o = gp_data_opts("const(0.7)");
    frg_gp *gp = gp_data_open(ctx, &g, kernels[0], &o);
    double x[2 * M], square[M * M], prior[M * M], ones[M] = {0.7, 0.7, 0.7, 0.7};
    answer r = {.covariance = square};
    random_points(x, 2 * M);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++)
            prior[i * M + j] = 1.3 * exp(-0.5 * (pow((x[2 * i] - x[2 * j]) / 0.3, 2) +
                                                 pow((x[2 * i + 1] - x[2 * j + 1]) / 0.5, 2)));
    if (gp && CHECK_OK(ctx, ask(gp, x, M, 0, 0, &r))) {
        moments_of(gp, ctx, x, M, 0, r.mean, square);
        moments_of(gp, ctx, x, M, 1, ones, prior);
    }
    /* a draw does not depend on how many there are, points side by side are no trouble */
    double few[3 * M], more[5 * M], close[2 * M] = {0.5, 0.5, 0.5, 0.5, 0.5 + 1e-9, 0.5, 0.1, 0.1};
    if (gp) {
        const frg_array at = frg_matrix(x, FRG_F64, M, 2, 2),
                        near = frg_matrix(close, FRG_F64, M, 2, 2);
        CHECK_OK(ctx, frg_gp_sample(gp, at, 3, 0, 1, frg_matrix(few, FRG_F64, 3, M, M)));
        CHECK_OK(ctx, frg_gp_sample(gp, at, 5, 0, 1, frg_matrix(more, FRG_F64, 5, M, M)));
        CHECK_BITS(few, more, sizeof few);
        CHECK_OK(ctx, frg_gp_sample(gp, near, 3, 0, 0, frg_matrix(few, FRG_F64, 3, M, M)));
        CHECK_NEAR(few[0], few[1], 1e-3);
        CHECK_STATUS(frg_gp_sample(gp, at, 2, 0, 0, frg_matrix(few, FRG_F64, 3, M, M)),
                     FRG_BAD_ARG);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- memory that is not zero ----------------------------------------------------------------- */

/** Blocks come full of NaN. */
static void *alloc_dirty(size_t bytes, void *user)
{
    void *const p = frg_system_allocator()->alloc(bytes, user);
    if (p) {
        memset(p, 0xff, bytes);
    }
    return p;
}

enum { ASKED = 4, DRAWN = 3 };
typedef struct {
    double draws[DRAWN * ASKED], gradient[8], loo_gradient[8], covariance[ASKED * ASKED];
    answer predicted;
    frg_gp_loo loo;
    double log_likelihood;
} all_numbers;

/** Draws (first, as long as nothing has been in the memory), value, leave-one-out and predictions
 *  of one process; two of the points asked for are equal. */
static void fill_all(const frg_allocator *memory, const gp_data *g, const frg_gp_opts *o,
                     const char *kernel, all_numbers *out)
{
    const double x[2 * ASKED] = {0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.9, 0.2};
    frg_context *ctx = test_context_with(test_now.threads, memory, NULL);
    frg_gp *gp = ctx ? gp_data_open(ctx, g, kernel, o) : NULL;
    frg_gp_value v = {0};
    memset(out, 0, sizeof *out);
    if (gp) {
        CHECK_OK(ctx, frg_gp_sample(gp, frg_matrix(x, FRG_F64, ASKED, 2, 2), DRAWN, 0, 0,
                                    frg_matrix(out->draws, FRG_F64, DRAWN, ASKED, ASKED)));
        CHECK_OK(ctx, frg_gp_eval_gradient(gp, out->gradient, NULL, NULL, &v));
        CHECK_OK(ctx, frg_gp_eval_loo(gp, NULL, NULL, out->loo_gradient, &out->loo));
        out->predicted.covariance = out->covariance;
        CHECK_OK(ctx, ask(gp, x, ASKED, 0, 1, &out->predicted));
        out->predicted.covariance = NULL;
        out->log_likelihood = v.log_likelihood;
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** What was in the memory before does not matter. */
static void dirty_memory(void)
{
    static const char *const expressions[] = {"1.3*rbf(l=[0.3, 0.5]) + noise(0.01)",
                                              "rbf(l=0.4) + matern32(l=0.5)*periodic(l=1, p=0.7) + "
                                              "noise(0.01)"};
    const frg_allocator dirty = {.alloc = alloc_dirty, .free = frg_system_allocator()->free};
    static gp_data g;
    static all_numbers clean, other;
    gp_data_random(&g, 30, 2, 1);
    for (int k = 0; k < 6; k++) {
        frg_gp_opts o = gp_data_opts(k < 2 ? "profiled" : "const");
        o.precision = k < 4 ? FRG_GP_F64 : FRG_GP_F32;
        fill_all(NULL, &g, &o, expressions[k % 2], &clean);
        fill_all(&dirty, &g, &o, expressions[k % 2], &other);
        CHECK_BITS(&clean, &other, sizeof clean);
    }
}

/* ---- updates --------------------------------------------------------------------------------- */

/** Two processes at the same parameters say the same. */
static void compare(frg_context *ctx, frg_gp *a, frg_gp *b)
{
    static answer p, q;
    double x[40], ga[GP_DATA_PARAMETERS], gb[GP_DATA_PARAMETERS];
    random_points(x, 40);
    CHECK_OK(ctx, ask(a, x, 20, 0, 0, &p));
    CHECK_OK(ctx, ask(b, x, 20, 0, 0, &q));
    for (int i = 0; i < 20; i++) {
        CHECK_NEAR(p.mean[i], q.mean[i], 1e-10);
        CHECK_NEAR(p.variance[i], q.variance[i], 1e-10);
    }
    CHECK_NEAR(gp_data_value(ctx, a), gp_data_value(ctx, b), 1e-10);
    CHECK_OK(ctx, frg_gp_eval_gradient(a, ga, NULL, NULL, NULL));
    CHECK_OK(ctx, frg_gp_eval_gradient(b, gb, NULL, NULL, NULL));
    for (int i = 0; i < frg_gp_parameter_count(a); i++)
        CHECK_NEAR(ga[i], gb[i], 1e-9);
}

/** A process of the whole data, at the parameters of another. */
static frg_gp *refit(frg_context *ctx, const gp_data *g, const char *kernel, const frg_gp_opts *o,
                     const frg_gp *like)
{
    double theta[GP_DATA_PARAMETERS];
    frg_gp *gp = gp_data_open(ctx, g, kernel, o);
    gp_data_theta(like, theta);
    if (gp)
        CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
    return gp;
}

static void appends(void)
{
    static gp_data g, h;
    frg_context *ctx = test_context();
    /* sizes on both sides of a tile, one point, several, more than there were */
    static const int64_t sizes[][2] = {{40, 1}, {63, 5}, {150, 20}, {7, 30}, {310, 25}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int factored = 0; factored < 2; factored++) {
            gp_data_random(&h, sizes[s][0] + sizes[s][1], 2, 1);
            g = h;
            g.n = sizes[s][0];
            const char *kernel = kernels[s % KERNELS];
            frg_gp_opts o = gp_data_opts(s == 2 ? "profiled" : "const");
            o.storage = s % 2 ? FRG_GP_PACKED : FRG_GP_FULL;
            frg_gp *gp = gp_data_open(ctx, &g, kernel, &o);
            if (gp && factored)
                gp_data_value(ctx, gp);
            const int64_t m = sizes[s][1];
            if (gp)
                CHECK_OK(ctx, frg_gp_update_append(gp, frg_matrix(h.x + 2 * g.n, FRG_F64, m, 2, 2),
                                                   frg_vector(h.y + g.n, FRG_F64, m), NULL));
            frg_gp *whole = gp ? refit(ctx, &h, kernel, &o, gp) : NULL;
            if (whole) {
                CHECK_INT(frg_gp_get(gp).n, h.n);
                compare(ctx, gp, whole);
            }
            frg_gp_destroy(whole);
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

/** In floats, promoted before points come and before some go: the memory of the two precisions is
 *  laid out anew for the process's own. */
static void appends_promoted(void)
{
    static gp_data g, h;
    frg_context *ctx = test_context();
    gp_data_random(&h, 66, 2, 1);
    for (int packed = 0; packed < 2; packed++) {
        g = h;
        g.n = 64;
        frg_gp_opts o = gp_data_opts("const");
        o.storage = packed ? FRG_GP_PACKED : FRG_GP_FULL;
        o.precision = FRG_GP_F32;
        o.auto_promote = 1;
        o.accuracy = 1e-12; /* no float is that good */
        frg_gp_value value = {0};
        frg_gp *gp = gp_data_open(ctx, &g, kernels[0], &o);
        for (int point = 0; gp && point < 2; point++, g.n++) {
            CHECK_OK(ctx, frg_gp_eval(gp, &value));
            CHECK(value.promoted);
            CHECK_OK(ctx, frg_gp_update_append(gp, frg_matrix(h.x + 2 * g.n, FRG_F64, 1, 2, 2),
                                               frg_vector(h.y + g.n, FRG_F64, 1), NULL));
        }
        frg_gp *whole = gp ? refit(ctx, &h, kernels[0], &o, gp) : NULL;
        if (whole)
            compare(ctx, gp, whole);
        frg_gp_destroy(whole);
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** A new point that becomes one of the process has white, times whatever multiplies it there. */
static void appends_white(void)
{
    static gp_data g, h;
    static const char kernel[] =
        "1.1*matern32(l=0.4) + 0.4*linear(v=0.5)*white(v=0.7) + white(v=0.1) + noise(0.05)";
    frg_context *ctx = test_context();
    for (int packed = 0; packed < 2; packed++) {
        gp_data_random(&h, 65, 2, 1);
        g = h;
        g.n = 60;
        frg_gp_opts o = gp_data_opts("const");
        o.storage = packed ? FRG_GP_PACKED : FRG_GP_FULL;
        frg_gp *gp = gp_data_open(ctx, &g, kernel, &o);
        if (gp) {
            gp_data_value(ctx, gp);
            CHECK_OK(ctx, frg_gp_update_append(gp, frg_matrix(h.x + 2 * g.n, FRG_F64, 5, 2, 2),
                                               frg_vector(h.y + g.n, FRG_F64, 5), NULL));
            frg_gp *whole = refit(ctx, &h, kernel, &o, gp);
            if (whole)
                compare(ctx, gp, whole);
            frg_gp_destroy(whole);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

static void removes(void)
{
    static gp_data g, h;
    frg_context *ctx = test_context();
    static const int64_t sizes[] = {2, 41, 150, 330};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s], gone[] = {0, n / 3, n - 1};
        for (int k = 0; k < 3; k++) {
            gp_data_random(&g, n, 2, 1);
            h = g;
            h.n = 0;
            for (int64_t i = 0; i < n; i++) {
                if (i != gone[k]) {
                    memcpy(h.x + 2 * h.n, g.x + 2 * i, 2 * sizeof *h.x);
                    h.y[h.n++] = g.y[i];
                }
            }
            const frg_gp_opts o = gp_data_opts("const");
            frg_gp *gp = gp_data_open(ctx, &g, kernels[k], &o);
            if (gp) {
                gp_data_value(ctx, gp);
                CHECK_OK(ctx, frg_gp_update_remove(gp, gone[k]));
                frg_gp *whole = refit(ctx, &h, kernels[k], &o, gp);
                if (whole)
                    compare(ctx, gp, whole);
                frg_gp_destroy(whole);
            }
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

/** A hundred points come and go; known noise and several outputs go with them. */
static void comes_and_goes(void)
{
    static gp_data g, h;
    frg_context *ctx = test_context();
    double noise[200];
    for (int i = 0; i < 200; i++)
        noise[i] = 0.01 + 0.1 * test_uniform();
    gp_data_random(&g, 120, 2, 2);
    h = g;
    frg_gp_opts o = gp_data_opts("const");
    o.noise_variances = noise;
    frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.02)", &o);
    if (gp) {
        for (int k = 0; k < 40; k++) { /* the first point goes, and comes back at the end */
            gp_data_value(ctx, gp);
            CHECK_OK(ctx, frg_gp_update_remove(gp, 0));
            double y[2] = {g.y[k], g.y[g.n + k]};
            CHECK_OK(ctx, frg_gp_update_append(gp, frg_matrix(g.x + 2 * k, FRG_F64, 1, 2, 2),
                                               frg_matrix(y, FRG_F64, 1, 2, 2), noise + k));
        }
        double turned[200];
        for (int64_t i = 0; i < g.n; i++) {
            const int64_t from = (i + 40) % g.n;
            memcpy(h.x + 2 * i, g.x + 2 * from, 2 * sizeof *h.x);
            h.y[i] = g.y[from];
            h.y[g.n + i] = g.y[g.n + from];
            turned[i] = noise[from];
        }
        o.noise_variances = turned;
        frg_gp *whole = refit(ctx, &h, "1.2*rbf(l=0.4) + noise(0.02)", &o, gp);
        if (whole)
            CHECK_NEAR(gp_data_value(ctx, gp), gp_data_value(ctx, whole), 1e-10);
        frg_gp_destroy(whole);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void other_y(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 100, 2, 1);
    const frg_gp_opts o = gp_data_opts("linear");
    frg_gp *gp = gp_data_open(ctx, &g, kernels[2], &o);
    if (gp) {
        gp_data_value(ctx, gp);
        for (int64_t i = 0; i < g.n; i++)
            g.y[i] = cos(3 * g.x[2 * i]) + test_normal();
        CHECK_OK(ctx, frg_gp_update_y(gp, gp_data_y(&g)));
        frg_gp *whole = refit(ctx, &g, kernels[2], &o, gp);
        if (whole)
            compare(ctx, gp, whole);
        frg_gp_destroy(whole);
        CHECK_STATUS(frg_gp_update_y(gp, frg_vector(g.y, FRG_F64, g.n - 1)), FRG_BAD_ARG);
        g.y[3] = (double)NAN;
        CHECK_STATUS(frg_gp_update_y(gp, gp_data_y(&g)), FRG_BAD_DATA);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** One of the four updates, on the process and on the data that it should then have. */
static frg_status change(int which, frg_gp *gp, gp_data *g, double *noise)
{
    switch (which) {
    case 0:
        for (int64_t i = 0; i < g->n; i++)
            g->y[i] = 10 * cos(3 * g->x[2 * i]) + 0.3 * test_normal();
        return frg_gp_update_y(gp, gp_data_y(g));
    case 1:
        noise[3] += 0.1;
        return frg_gp_update_noise(gp, 3, noise[3]);
    case 2:
        g->n--;
        return frg_gp_update_remove(gp, g->n);
    default:
        g->n++;
        return frg_gp_update_append(gp, frg_matrix(g->x + 2 * g->n - 2, FRG_F64, 1, 2, 2),
                                    frg_vector(g->y + g->n - 1, FRG_F64, 1), noise + g->n - 1);
    }
}

/** In mixed arithmetic the inverse and a = K^-1 r in f32 follow every update.  Eigenvalues of K are
 *  from 0.1 to 80: an inverse in f32 is off by 800 u = 5e-5 of its size, a gradient of 70 points by
 *  4e-3 at most, and of the new values, whose r'K^-1 r is about 300 and not 70, by 16e-3.  So large
 *  a gradient is not computed in f64: one near 0, of values with more noise than the model has,
 *  rightly is. */
static void mixed_follows(void)
{
    static gp_data g;
    double noise[80], ga[GP_DATA_PARAMETERS], gb[GP_DATA_PARAMETERS];
    frg_context *ctx = test_context();
    for (int which = 0; which < 4; which++) {
        for (int i = 0; i < 80; i++)
            noise[i] = 0.1 + 0.1 * test_uniform();
        gp_data_random(&g, 70, 2, 1);
        g.n = 69;
        frg_gp_opts o = gp_data_opts("zero");
        o.precision = FRG_GP_MIXED;
        o.noise_variances = noise;
        frg_gp *gp = gp_data_open(ctx, &g, "1.1*rbf(l=0.4)", &o);
        if (gp) {
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, ga, NULL, NULL, NULL));
            CHECK_OK(ctx, change(which, gp, &g, noise));
            frg_gp_value v = {0};
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, ga, NULL, NULL, &v));
            CHECK_SAYS(!v.promoted, "update %d: the old inverse was found out", which);
            frg_gp *whole = refit(ctx, &g, "1.1*rbf(l=0.4)", &o, gp);
            if (whole)
                CHECK_OK(ctx, frg_gp_eval_gradient(whole, gb, NULL, NULL, NULL));
            for (int i = 0; whole && i < frg_gp_parameter_count(gp); i++)
                CHECK_SAYS(fabs(ga[i] - gb[i]) <= 16e-3, "update %d: %g, %g", which, ga[i], gb[i]);
            frg_gp_destroy(whole);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** A copy of a point without noise: its Schur complement is zero, and the jitter policy answers. */
static void duplicates(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 30, 2, 1);
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "1*rbf(l=0.3)", &o);
    if (gp) {
        gp_data_value(ctx, gp);
        for (int k = 0; k < 3; k++)
            CHECK_OK(ctx, frg_gp_update_append(gp, frg_matrix(g.x, FRG_F64, 4, 2, 2),
                                               frg_vector(g.y, FRG_F64, 4), NULL));
        frg_gp_value v;
        CHECK_OK(ctx, frg_gp_eval(gp, &v));
        CHECK(isfinite(v.log_likelihood) && frg_gp_get(gp).n == 42);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** Points of a second block, and a mean without slopes: what a point has does not depend on those
 *  before it. */
static void second_block(void)
{
    static gp_data g;
    static double x[2 * NEW_MOST];
    static answer all, few;
    static const char *const means[] = {"profiled(linear)", "profiled", "linear"};
    frg_context *ctx = test_context();
    gp_data_random(&g, 40, 2, 1);
    random_points(x, 2 * NEW_MOST);
    for (size_t i = 0; i < sizeof means / sizeof *means; i++) {
        const frg_gp_opts o = gp_data_opts(means[i]);
        frg_gp *gp = gp_data_open(ctx, &g, kernels[1], &o);
        if (gp && CHECK_OK(ctx, ask(gp, x, 300, 0, 1, &all))) {
            CHECK_OK(ctx, ask(gp, x + 2 * 290, 3, 0, 1, &few));
            for (int c = 0; c < 6; c++) { /* the same sums, in vectors of another place */
                CHECK_NEAR(all.mean[290 + c / 2], few.mean[c / 2], 1e-12);
                CHECK_NEAR(all.variance[290 + c / 2], few.variance[c / 2], 1e-12);
                CHECK_NEAR(all.mean_dx[2 * 290 + c], few.mean_dx[c], 1e-11);
                CHECK_NEAR(all.variance_dx[2 * 290 + c], few.variance_dx[c], 1e-11);
            }
            const double h = 1e-5; /* as in gradients */
            x[2 * 290 + 1] += h;
            CHECK_OK(ctx, ask(gp, x + 2 * 290, 1, 0, 0, &few));
            const double up = few.mean[0];
            x[2 * 290 + 1] -= 2 * h;
            CHECK_OK(ctx, ask(gp, x + 2 * 290, 1, 0, 0, &few));
            x[2 * 290 + 1] += h;
            CHECK_NEAR(all.mean_dx[2 * 290 + 1], (up - few.mean[0]) / (2 * h), 1e-6);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/* ---- threads and bad input ------------------------------------------------------------------- */

static void threads(void)
{
    static gp_data g;
    static double x[2 * NEW_MOST];
    static answer first, other;
    gp_data_random(&g, 200, 2, 1);
    random_points(x, 2 * NEW_MOST);
    double draws_one[3 * 50], draws_more[3 * 50];
    first.covariance = calloc(NEW_MOST * NEW_MOST, sizeof(double));
    other.covariance = calloc(NEW_MOST * NEW_MOST, sizeof(double));
    for (int t = 1; t <= 3; t++) {
        frg_context *ctx = test_context_with(t, NULL, NULL);
        const frg_gp_opts o = gp_data_opts("profiled(linear)");
        frg_gp *gp = gp_data_open(ctx, &g, kernels[0], &o);
        answer *a = t == 1 ? &first : &other;
        if (gp) {
            CHECK_OK(ctx, ask(gp, x, 300, 0, 1, a));
            CHECK_OK(ctx, frg_gp_sample(
                              gp, frg_matrix(x, FRG_F64, 50, 2, 2), 3, 0, 0,
                              frg_matrix(t == 1 ? draws_one : draws_more, FRG_F64, 3, 50, 50)));
        }
        if (t > 1) {
            CHECK_BITS(other.mean, first.mean, 300 * sizeof(double));
            CHECK_BITS(other.variance, first.variance, 300 * sizeof(double));
            CHECK_BITS(other.mean_dx, first.mean_dx, 600 * sizeof(double));
            CHECK_BITS(other.variance_dx, first.variance_dx, 600 * sizeof(double));
            CHECK_BITS(other.covariance, first.covariance, 300 * 300 * sizeof(double));
            CHECK_BITS(draws_more, draws_one, sizeof draws_one);
        }
        frg_gp_destroy(gp);
        frg_context_destroy(ctx);
    }
    free(first.covariance);
    free(other.covariance);
}

static void bad_input(void)
{
    static gp_data g;
    static answer r;
    frg_context *ctx = test_context();
    gp_data_random(&g, 20, 2, 1);
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "1*matern12(l=0.3) + noise(0.1)", &o);
    double x[6] = {0.1, 0.2, 0.3, (double)NAN, 0.5, 0.6}, y = 0;
    r.mean[0] = 77;
    if (gp) {
        CHECK_STATUS(ask(gp, x, 3, 0, 0, &r), FRG_BAD_DATA);
        CHECK_SAYS(strstr(frg_message(ctx), "row 1, column x2"), "%s", frg_message(ctx));
        CHECK(r.mean[0] == 77);
        x[3] = 0.4;
        CHECK_OK(ctx, ask(gp, g.x, 3, 0, 1, &r)); /* at the points themselves it has a cusp */
        for (int i = 0; i < 6; i++)
            CHECK(isfinite(r.mean_dx[i]) && isfinite(r.variance_dx[i]));
        CHECK_STATUS(
            frg_gp_predict(gp, frg_matrix(x, FRG_F64, 2, 3, 3),
                           &(frg_gp_predict_opts){.struct_size = sizeof(frg_gp_predict_opts)}),
            FRG_BAD_ARG);
        CHECK_STATUS(frg_gp_update_remove(gp, 20), FRG_BAD_ARG);
        CHECK_STATUS(frg_gp_update_remove(gp, -1), FRG_BAD_ARG);
        CHECK_STATUS(frg_gp_update_append(gp, frg_matrix(x, FRG_F64, 1, 2, 2),
                                          frg_vector(&y, FRG_F64, 1), &y),
                     FRG_BAD_ARG);
        CHECK_STATUS(frg_gp_update_append(gp, frg_matrix(x, FRG_F64, 2, 2, 2),
                                          frg_vector(&y, FRG_F64, 1), NULL),
                     FRG_BAD_ARG);
        CHECK_INT(frg_gp_get(gp).n, 20);
        CHECK_STATUS(frg_gp_predict(NULL, frg_matrix(x, FRG_F64, 1, 2, 2), NULL), FRG_BAD_ARG);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** No variance is below the floor, those above are untouched; GPyTorch's preset brings
 *  GPyTorch's. */
static void variance_floor(void)
{
    enum { N = 30 };
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, N, 2, 1);
    for (int preset = 0; preset < 2; preset++) {
        frg_gp_opts o = gp_data_opts("zero");
        o.preset = preset ? FRG_GP_PRESET_GPYTORCH : FRG_GP_PRESET_NONE;
        frg_gp *gp = gp_data_open(ctx, &g, "1*rbf(l=0.6) + noise(2e-4!)", &o);
        double plain[N], floored[N];
        for (int observed = 0; observed < 2 && gp; observed++) {
            frg_array to = frg_vector(plain, FRG_F64, N);
            frg_gp_predict_opts p;
            frg_gp_predict_defaults(&p, sizeof p);
            p.observed = observed;
            p.variance = &to;
            frg_warnings_clear(ctx);
            CHECK_OK(ctx, frg_gp_predict(gp, gp_data_x(&g), &p));
            CHECK_INT(frg_warning_count(ctx), 0);
            const double floor = 0.5 * (plain[3] + plain[7]);
            to = frg_vector(floored, FRG_F64, N);
            p.variance_floor = floor;
            CHECK_OK(ctx, frg_gp_predict(gp, gp_data_x(&g), &p));
            CHECK(frg_warning_count(ctx) == 1 && strstr(frg_warning_message(ctx, 0), "became"));
            for (int i = 0; i < N; i++) {
                CHECK(floored[i] == (plain[i] < floor ? floor : plain[i]));
            }
            p.variance_floor = -1;
            CHECK_STATUS(frg_gp_predict(gp, gp_data_x(&g), &p), FRG_BAD_ARG);
        }
        frg_gp_destroy(gp);
        /* a point of the data, without noise: nothing is left but rounding */
        o.precision = preset ? FRG_GP_F32 : FRG_GP_F64;
        gp = gp_data_open(ctx, &g, "1*matern12(l=0.3) + noise(1e-12!)", &o);
        frg_array to = frg_vector(plain, FRG_F64, N);
        frg_gp_predict_opts p;
        frg_gp_predict_defaults(&p, sizeof p);
        p.variance = &to;
        if (gp && CHECK_OK(ctx, frg_gp_predict(gp, gp_data_x(&g), &p))) {
            for (int i = 0; i < N; i++) {
                CHECK(preset ? plain[i] >= 1e-6 && plain[i] < 1e-4
                             : plain[i] >= 0 && plain[i] < 1e-10);
            }
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** What an update leaves is judged as what is factored anew: the bound on the error has the largest
 *  diagonal of K, noise included, as its factor. */
static void judged_after_an_update(void)
{
    static gp_data g;
    gp_data_random(&g, 40, 2, 1);
    frg_context *ctx = test_context();
    const frg_gp_opts o = gp_data_opts("zero");
    static const char kernel[] = "1.3*rbf(l=0.4) + noise(3)";
    frg_gp *gp = gp_data_open(ctx, &g, kernel, &o), *whole = NULL;
    frg_gp_value kept = {0}, anew = {0};
    g.n = 39;
    if (gp && CHECK_OK(ctx, frg_gp_eval(gp, NULL)) && CHECK_OK(ctx, frg_gp_update_remove(gp, 39)) &&
        (whole = refit(ctx, &g, kernel, &o, gp))) {
        CHECK_OK(ctx, frg_gp_eval(gp, &kept));
        CHECK_OK(ctx, frg_gp_eval(whole, &anew));
        /* sums over 39 points of squares that carry a few hundred roundings, at a condition below
         * 20 */
        CHECK_NEAR(kept.error_estimate / anew.error_estimate, 1, 1e-11);
    }
    frg_gp_destroy(whole);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"judged after an update", judged_after_an_update},
    {"variance floor", variance_floor},
    {"chain_rule", chain_rule},
    {"chain_rule_profiled", chain_rule_profiled},
    {"given_mean", given_mean},
    {"interpolates", interpolates},
    {"blocks", blocks},
    {"covariances", covariances},
    {"gradients", gradients},
    {"draws", draws},
    {"dirty_memory", dirty_memory},
    {"appends", appends},
    {"appends_promoted", appends_promoted},
    {"appends_white", appends_white},
    {"mixed_follows", mixed_follows},
    {"removes", removes},
    {"comes_and_goes", comes_and_goes},
    {"other_y", other_y},
    {"duplicates", duplicates},
    {"second_block", second_block},
    {"threads", threads},
    {"bad_input", bad_input},
};
TEST_MAIN(cases)
