/* test_gp_fantasy.c - what would be: fantasies against points that are appended, one noise against
 * a process that was made with it, draws of several outputs against their moments.
 *
 * Tolerances: noise 0.05 of the variance and n <= 120, so that cond(K) n eps = 3e-9 bounds what two
 * ways of solving differ by; errors being independent it is about 1e-11, and 1e-9 is asked for.
 */
#include "gp/gp_process.h"
#include "gp_data.h"

enum { N = 70, SETS = 3, M = 4, S = 2, T = 70 };

static const char kernel[] =
    "1.1*matern52(l=[0.4,0.6]) + 0.3*linear(v=0.5) + 0.1*const(1) + noise(0.06)";

typedef struct {
    double x[SETS * M * 2], y[SETS * M * S], at[T * 2], noise[SETS * M];
    double mean[SETS * T * S], variance[SETS * T];
} fantasies;

static frg_array cube(double *data, int64_t a, int64_t b, int64_t c)
{
    frg_array v = frg_matrix(data, FRG_F64, a, b, b * c);
    v.ndim = 3;
    v.stride[1] = c;
    v.shape[2] = c;
    v.stride[2] = 1;
    return v;
}

static void random_fantasies(fantasies *f)
{
    for (int i = 0; i < SETS * M * 2; i++) {
        f->x[i] = test_uniform();
    }
    for (int i = 0; i < SETS * M * S; i++) {
        f->y[i] = test_normal();
    }
    for (int i = 0; i < T * 2; i++) {
        f->at[i] = 1.2 * test_uniform() - 0.1;
    }
    for (int i = 0; i < SETS * M; i++) {
        f->noise[i] = 0.2 * test_uniform();
    }
}

static frg_status ask(frg_gp *gp, fantasies *f, const double *noise)
{
    frg_array mean = cube(f->mean, SETS, T, S),
              variance = frg_matrix(f->variance, FRG_F64, SETS, T, T);
    frg_gp_fantasy_opts o;
    frg_gp_fantasy_defaults(&o, sizeof o);
    o.observed = 1;
    o.noise_variances = noise;
    o.mean = &mean;
    o.variance = &variance;
    return frg_gp_predict_fantasies(gp, cube(f->x, SETS, M, 2), cube(f->y, SETS, M, S),
                                    frg_matrix(f->at, FRG_F64, T, 2, 2), &o);
}

/** Every set and outcome against a process of its own with the candidates appended. */
static void against_appended(frg_context *ctx, const gp_data *g, const char *text,
                             const frg_gp_opts *o, fantasies *f, double tolerance)
{
    double mean[T * S], variance[T], y[M * S];
    const int64_t q = g->q;
    for (int k = 0; k < SETS * S; k++) {
        const int set = k / S, outcome = k % S;
        frg_gp *gp = gp_data_open(ctx, g, text, o);
        if (!gp) {
            return;
        }
        gp_data_value(ctx, gp);
        for (int i = 0; i < M * q; i++) {
            y[i] = f->y[(set * M + i / q) * S + outcome / q * q + i % q];
        }
        frg_array to_mean = frg_matrix(mean, FRG_F64, T, q, q),
                  to_variance = frg_vector(variance, FRG_F64, T);
        frg_gp_predict_opts p;
        frg_gp_predict_defaults(&p, sizeof p);
        p.observed = 1;
        p.mean = &to_mean;
        p.variance = &to_variance;
        CHECK_OK(ctx, frg_gp_update_append(gp, frg_matrix(f->x + set * M * 2, FRG_F64, M, 2, 2),
                                           frg_matrix(y, FRG_F64, M, q, q),
                                           o->noise_variances ? f->noise + set * M : NULL));
        CHECK_OK(ctx, frg_gp_predict(gp, frg_matrix(f->at, FRG_F64, T, 2, 2), &p));
        for (int i = 0; i < T; i++) {
            CHECK_NEAR(f->mean[(set * T + i) * S + outcome], mean[i * q + outcome % q], tolerance);
            if (!o->noise_variances) { /* known noise of a candidate is in the mean of all */
                CHECK_NEAR(f->variance[set * T + i], variance[i], tolerance);
            }
        }
        frg_gp_destroy(gp);
    }
}

static void fantasies_are_appended_points(void)
{
    static gp_data g;
    static fantasies f;
    static const struct {
        const char *mean;
        bool known;
        frg_gp_precision precision;
        double tolerance;
        int64_t q;
        const char *kernel;
    } models[] = {
        {"const(0.3)", false, FRG_GP_F64, 1e-9, 1, kernel},
        {"const(0.3)", true, FRG_GP_F64, 1e-9, 1, kernel},
        {"linear", false, FRG_GP_F64, 1e-9, 2, kernel},
        {"profiled(linear)", false, FRG_GP_F64, 1e-9, 2, kernel},
        {"profiled", false, FRG_GP_F64, 1e-9, 1, kernel},
        {"zero", false, FRG_GP_MIXED, 1e-9, 1, kernel},
        {"zero", false, FRG_GP_F32, 1e-3, 1, kernel},
        {"const(0.3)", false, FRG_GP_F64, 1e-9, 1,
         "rbf(l=0.5) + 0.4*linear(v=0.5)*white(v=0.7) + white(v=0.1) + noise(0.06)"},
    };
    frg_context *ctx = test_context();
    double noise[N];
    for (int i = 0; i < N; i++) {
        noise[i] = 0.1 * test_uniform();
    }
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        frg_gp_opts o = gp_data_opts(models[k].mean);
        o.precision = models[k].precision;
        o.noise_variances = models[k].known ? noise : NULL;
        gp_data_random(&g, N, 2, models[k].q);
        frg_gp *gp = gp_data_open(ctx, &g, models[k].kernel, &o);
        random_fantasies(&f);
        if (gp) {
            const double before = gp_data_value(ctx, gp);
            const void *const factor = gp->own.matrix.elements;
            CHECK_OK(ctx, ask(gp, &f, models[k].known ? f.noise : NULL));
            CHECK(gp->state.matrix == MATRIX_FACTOR && gp->own.matrix.elements == factor &&
                  gp->data.n == N);
            CHECK(gp_data_value(ctx, gp) == before);
            against_appended(ctx, &g, models[k].kernel, &o, &f, models[k].tolerance);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

static void fantasies_any_threads(void)
{
    static gp_data g;
    static fantasies f;
    static double mean[SETS * T * S], variance[SETS * T];
    gp_data_random(&g, N, 2, 1);
    random_fantasies(&f);
    for (int threads = 1; threads <= 3; threads++) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        frg_gp *gp = gp_data_open(ctx, &g, kernel, NULL);
        CHECK_OK(ctx, ask(gp, &f, NULL));
        if (threads > 1) {
            CHECK_BITS(f.mean, mean, sizeof mean);
            CHECK_BITS(f.variance, variance, sizeof variance);
        }
        memcpy(mean, f.mean, sizeof mean);
        memcpy(variance, f.variance, sizeof variance);
        frg_gp_destroy(gp);
        frg_context_destroy(ctx);
    }
}

static void refused_fantasies(void)
{
    static gp_data g;
    static fantasies f;
    frg_context *ctx = test_context();
    gp_data_random(&g, N, 2, 1);
    random_fantasies(&f);
    frg_gp *gp = gp_data_open(ctx, &g, kernel, NULL);
    CHECK_STATUS(ask(gp, &f, f.noise), FRG_BAD_ARG);
    f.y[(M + 2) * S] = (double)INFINITY;
    CHECK_STATUS(ask(gp, &f, NULL), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "y: set 1, point 2"));
    f.y[(M + 2) * S] = 0;
    f.x[1] = (double)NAN;
    CHECK_STATUS(ask(gp, &f, NULL), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "x: set 0, point 0"));
    frg_gp_fantasy_opts o;
    frg_gp_fantasy_defaults(&o, sizeof o);
    CHECK_STATUS(frg_gp_predict_fantasies(gp, cube(f.x, SETS, M, 2), cube(f.y, SETS, M - 1, S),
                                          frg_matrix(f.at, FRG_F64, T, 2, 2), &o),
                 FRG_BAD_ARG);
    frg_gp_destroy(gp);
    gp_data_random(&g, N, 2, 3);
    gp = gp_data_open(ctx, &g, kernel, NULL);
    f.x[1] = 0;
    CHECK_STATUS(ask(gp, &f, NULL), FRG_BAD_ARG);
    CHECK_SAYS(strstr(frg_message(ctx), "3 outputs"), "%s", frg_message(ctx));
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- one noise ------------------------------------------------------------------------------- */

/** The process after its noises changed one by one is the one made with them; the first row, the
 *  last one, up and down.  From 1e9 down to 0.1 a pivot would keep 1e-10 of itself: there the
 *  factor is made anew. */
static void one_noise(void)
{
    static gp_data g;
    static const struct {
        int64_t row;
        double variance;
        bool keeps;
    } changes[] = {{0, 0.5, true},  {N - 1, 0.3, true}, {35, 0, true},   {0, 0.01, true},
                   {64, 1e9, true}, {64, 0.1, false},   {17, 0.07, true}};
    frg_context *ctx = test_context();
    double noise[N], gradient[GP_DATA_PARAMETERS], want[GP_DATA_PARAMETERS];
    gp_data_random(&g, N, 2, 1);
    for (int i = 0; i < N; i++) {
        noise[i] = 0.05 + 0.1 * test_uniform();
    }
    frg_gp_opts o = gp_data_opts("linear");
    o.noise_variances = noise;
    frg_gp *gp = gp_data_open(ctx, &g, kernel, &o);
    for (size_t k = 0; gp && k < sizeof changes / sizeof *changes; k++) {
        gp_data_value(ctx, gp);
        noise[changes[k].row] = changes[k].variance;
        CHECK_OK(ctx, frg_gp_update_noise(gp, changes[k].row, changes[k].variance));
        CHECK_SAYS((gp->state.matrix == MATRIX_FACTOR) == changes[k].keeps, "change %d", (int)k);
        frg_gp *made = gp_data_open(ctx, &g, kernel, &o);
        CHECK_NEAR(gp_data_value(ctx, gp), gp_data_value(ctx, made), 1e-10);
        if (k == 6 && made && CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL)) &&
            CHECK_OK(ctx, frg_gp_eval_gradient(made, want, NULL, NULL, NULL))) {
            gp_data_check("gradient", gradient, want, frg_gp_parameter_count(gp), 1e-9);
        }
        frg_gp_destroy(made);
    }
    CHECK_STATUS(frg_gp_update_noise(gp, N, 1), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_update_noise(gp, 3, -1), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "point 3 is -1"));
    frg_gp_destroy(gp);
    gp = gp_data_open(ctx, &g, kernel, NULL);
    CHECK_STATUS(frg_gp_update_noise(gp, 3, 1), FRG_BAD_ARG);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- draws of several outputs ---------------------------------------------------------------- */

/** The outputs have their own means, one covariance, and nothing in common: 4 sigma of 40 000
 *  draws. */
static void draws_of_outputs(void)
{
    enum { POINTS = 2, Q = 2, DRAWS = 40000 };
    static gp_data g;
    static double f[DRAWS * POINTS * Q];
    frg_context *ctx = test_context();
    gp_data_random(&g, 20, 2, Q);
    frg_gp *gp = gp_data_open(ctx, &g, "1.1*rbf(l=0.3) + noise(0.1)", NULL);
    const double x[] = {0.2, 1.3, 0.4, 1.4};
    double mean[POINTS * Q], covariance[POINTS * POINTS];
    frg_array to_mean = frg_matrix(mean, FRG_F64, POINTS, Q, Q),
              to_covariance = frg_matrix(covariance, FRG_F64, POINTS, POINTS, POINTS);
    frg_gp_predict_opts p;
    frg_gp_predict_defaults(&p, sizeof p);
    p.mean = &to_mean;
    p.covariance = &to_covariance;
    const frg_array at = frg_matrix(x, FRG_F64, POINTS, 2, 2);
    if (gp && CHECK_OK(ctx, frg_gp_predict(gp, at, &p)) &&
        CHECK_OK(ctx, frg_gp_sample(gp, at, DRAWS, 0, 0, cube(f, DRAWS, POINTS, Q)))) {
        for (int a = 0; a < POINTS * Q; a++) {
            double sum = 0;
            for (int s = 0; s < DRAWS; s++) {
                sum += f[s * POINTS * Q + a];
            }
            const double v = covariance[a / Q * (POINTS + 1)];
            CHECK_SAYS(fabs(sum / DRAWS - mean[a]) < 4 * sqrt(v / DRAWS), "mean %d", a);
            for (int b = 0; b <= a; b++) {
                double product = 0;
                for (int s = 0; s < DRAWS; s++) {
                    product +=
                        (f[s * POINTS * Q + a] - mean[a]) * (f[s * POINTS * Q + b] - mean[b]);
                }
                const double want = a % Q == b % Q ? covariance[a / Q * POINTS + b / Q] : 0;
                CHECK_SAYS(fabs(product / DRAWS - want) <
                               4 * sqrt(2 * v * covariance[b / Q * (POINTS + 1)] / DRAWS),
                           "covariance %d, %d: %g, expected %g", a, b, product / DRAWS, want);
            }
        }
        CHECK_STATUS(frg_gp_sample(gp, at, DRAWS, 0, 0, cube(f, DRAWS, POINTS, 1)), FRG_BAD_ARG);
        CHECK_STATUS(
            frg_gp_sample(gp, at, DRAWS, 0, 0, frg_matrix(f, FRG_F64, DRAWS, POINTS, POINTS)),
            FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "count x m x 2"));
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"fantasies are appended points", fantasies_are_appended_points},
    {"fantasies at any threads", fantasies_any_threads},
    {"refused fantasies", refused_fantasies},
    {"one noise", one_noise},
    {"draws of several outputs", draws_of_outputs},
};
TEST_MAIN(cases)
