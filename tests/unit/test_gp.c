/* test_gp.c - values and gradients of Gaussian processes: closed forms and scikit-learn's numbers.
 *
 * Closed forms are met to 1e-12 relative in f64 (2e-5 in f32): n <= 100, condition below 1e4, so
 * that rounding leaves n u cond = 1e-10 at the very most and, errors being independent, about
 * 1e-13.  scikit-learn's numbers carry its own rounding and its alpha = 0: 1e-10 for values, 1e-8
 * for gradients, as both sum n^2 terms.
 */
#include "gp/gp_process.h"
#include "gp_data.h"

static const double LOG_2PI = 1.8378770664093454836;

static frg_gp *open_small(frg_context *ctx, const double *x, const double *y, int64_t n,
                          const char *kernel, frg_gp_precision precision)
{
    frg_gp_opts o = gp_data_opts("zero");
    o.precision = precision;
    frg_gp *gp = NULL;
    CHECK_OK(ctx, frg_gp_create(&gp, ctx, frg_matrix(x, FRG_F64, n, 1, 1),
                                frg_vector(y, FRG_F64, n), kernel, &o));
    return gp;
}

/* ---- closed forms ---------------------------------------------------------------------------- */

static const frg_gp_precision precisions[] = {FRG_GP_F64, FRG_GP_F32, FRG_GP_MIXED};

static double tolerance(frg_gp_precision p)
{
    return p == FRG_GP_F32 ? 2e-5 : 1e-12;
}

static void one_point(void)
{
    frg_context *ctx = test_context();
    const double x = 3.7, y = 1.5;
    for (int p = 0; p < 3; p++) {
        frg_gp *gp = open_small(ctx, &x, &y, 1, "2*rbf(l=1) + noise(0.5)", precisions[p]);
        frg_gp_value v;
        double g[3];
        if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, g, NULL, NULL, &v))) {
            const double tol = tolerance(precisions[p]), w = 1.5 * 1.5 / 6.25 - 1 / 2.5;
            CHECK_NEAR(v.log_likelihood, -1.8270838991417502, tol);
            CHECK_NEAR(v.per_point, -1.8270838991417502, tol);
            const double tol_g = tolerance(p == 0 ? FRG_GP_F64 : FRG_GP_F32);
            CHECK_NEAR(g[0], 0.5 * w * 2, tol_g);
            CHECK_NEAR(g[1], 0, tol_g);
            CHECK_NEAR(g[2], 0.5 * w * 0.5, tol_g);
            CHECK(v.jitter == 0 && v.jitter_tries == 0 && v.pivot == -1 && v.closest[0] == -1);
        }
        frg_gp_destroy(gp);
    }
    CHECK_INT(frg_warning_count(ctx), 0);
    frg_context_destroy(ctx);
}

static void two_points(void)
{
    frg_context *ctx = test_context();
    const double x[] = {0, 1}, y[] = {1, -1};
    for (int p = 0; p < 3; p++) {
        frg_gp *gp = open_small(ctx, x, y, 2, "1*rbf(l=1) + noise(0.25)", precisions[p]);
        if (gp) {
            CHECK_NEAR(gp_data_value(ctx, gp), -3.480866970202043, tolerance(precisions[p]));
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** Lengthscales far below the distances: K = c I. */
static void diagonal(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 60, 1, 1);
    for (int64_t i = 0; i < g.n; i++) {
        g.x[i] = (double)i;
    }
    static const char *const kernels[] = {
        "1.5*rbf(l=0.01) + noise(0.3)", "1.5*matern12(l=0.005) + noise(0.3)",
        "white(1.5) + noise(0.3)", "1.5*rbf(l=1e-4) + noise(0.3)"};
    double square = 0;
    for (int64_t i = 0; i < g.n; i++) {
        square += g.y[i] * g.y[i];
    }
    const double want = -square / (2 * 1.8) - 30 * (LOG_2PI + log(1.8));
    const frg_gp_opts o = gp_data_opts("zero");
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        frg_gp *gp = gp_data_open(ctx, &g, kernels[k], &o);
        double gradient[4];
        if (gp && CHECK_NEAR(gp_data_value(ctx, gp), want, 1e-12) &&
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL))) {
            const double w = square / (1.8 * 1.8) - 60 / 1.8;
            CHECK_NEAR(gradient[0], 0.5 * 1.5 * w, 1e-12);
            CHECK_NEAR(gradient[frg_gp_parameter_count(gp) - 1], 0.5 * 0.3 * w, 1e-12);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** K = (1 - rho) I + rho 11': const(rho) + noise(1 - rho); Sherman and Morrison, and the
 *  determinant lemma. */
static void equicorrelated(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 100, 1, 1);
    const double rho = 0.4, s = 1 - rho, n = 100;
    double sum = 0, square = 0;
    for (int64_t i = 0; i < g.n; i++) {
        sum += g.y[i];
        square += g.y[i] * g.y[i];
    }
    const double quad = (square - rho * sum * sum / (s + n * rho)) / s;
    const double logdet = n * log(s) + log1p(n * rho / s);
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "const(0.4) + noise(0.6)", &o);
    if (gp) {
        CHECK_NEAR(gp_data_value(ctx, gp), -0.5 * (quad + logdet + n * LOG_2PI), 1e-12);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** Matern-1/2 on sorted points is Markov: y_i | y_{i-1} is normal with mean e_i y_{i-1}, variance 1
 *  - e_i^2. */
static void markov(void)
{
    frg_context *ctx = test_context();
    static const int64_t sizes[] = {2, 47, 333, 900};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        gp_data g;
        gp_data_random(&g, test_size(sizes[k], 40), 1, 1);
        const double l = 0.7;
        double at = 0, want = 0;
        for (int64_t i = 0; i < g.n; i++) {
            const double gap = 0.1 + test_uniform(), e = i == 0 ? 0 : exp(-gap / l);
            const double v = 1.7 * (1 - e * e), r = g.y[i] - (i == 0 ? 0 : e * g.y[i - 1]);
            at += gap;
            g.x[i] = at;
            want -= 0.5 * (r * r / v + log(v) + LOG_2PI);
        }
        const frg_gp_opts o = gp_data_opts("zero");
        frg_gp *gp = gp_data_open(ctx, &g, "1.7*matern12(l=0.7)", &o);
        if (gp) {
            CHECK_NEAR(gp_data_value(ctx, gp), want, 1e-11); /* 900 terms, condition 100 */
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** v x x' + s I in one dimension: log|K| = n log s + log(1 + v x'x / s). */
static void linear_kernel(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 80, 1, 1);
    const double v = 1.3, s = 0.2;
    double xx = 0, xy = 0, yy = 0;
    for (int64_t i = 0; i < g.n; i++) {
        xx += g.x[i] * g.x[i];
        xy += g.x[i] * g.y[i];
        yy += g.y[i] * g.y[i];
    }
    const double quad = (yy - v * xy * xy / (s + v * xx)) / s;
    const double logdet = 80 * log(s) + log1p(v * xx / s);
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "linear(v=1.3) + noise(0.2)", &o);
    if (gp) {
        CHECK_NEAR(gp_data_value(ctx, gp), -0.5 * (quad + logdet + 80 * LOG_2PI), 1e-12);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- scikit-learn's numbers ------------------------------------------------------------------ */

enum { ID, DATA, KNOWN, KERNEL, QUANTITY, TERM, VALUE, FIELDS, LINE = 1024 };

static bool load_data(const char *name, gp_data *g)
{
    if (strcmp(name, "sine") == 0) {
        static const double x[] = {1, 3, 5, 6, 7, 8};
        g->n = 6;
        g->d = g->q = 1;
        for (int i = 0; i < 6; i++) {
            g->x[i] = x[i];
            g->y[i] = x[i] * sin(x[i]);
        }
        return true;
    }
    FILE *const f = fopen(FOURGE_SOURCE_DIR "/data/diabetes.csv", "r");
    if (!CHECK(f))
        return false;
    char line[LINE];
    CHECK(fgets(line, sizeof line, f));
    int64_t rows = 0;
    double sum = 0, square = 0;
    while (fgets(line, sizeof line, f)) {
        char *at = line;
        for (int k = 0; k < 11; k++) {
            const double v = strtod(at, &at);
            at++;
            if (k < 10) {
                g->x[rows * 10 + k] = v;
            } else {
                g->y[rows] = v;
                sum += v;
            }
        }
        rows++;
    }
    fclose(f);
    for (int64_t i = 0; i < rows; i++) {
        square += (g->y[i] - sum / (double)rows) * (g->y[i] - sum / (double)rows);
    }
    for (int64_t i = 0; i < rows; i++) {
        g->y[i] = (g->y[i] - sum / (double)rows) / sqrt(square / (double)rows);
    }
    const char *const colon = strchr(name, ':');
    g->n = colon ? atoi(colon + 1) : rows;
    g->d = 10;
    g->q = 1;
    return CHECK_INT(rows, 442);
}

static frg_gp *open_case(frg_context *ctx, char **field)
{
    static gp_data g;
    static double known[442];
    if (!load_data(field[DATA], &g))
        return NULL;
    frg_gp_opts o = gp_data_opts("zero");
    for (int64_t i = 0; i < g.n; i++) {
        known[i] = atof(field[KNOWN]);
    }
    o.noise_variances = known[0] > 0 ? known : NULL;
    return gp_data_open(ctx, &g, field[KERNEL], &o);
}

static void golden(void)
{
    frg_context *ctx = test_context();
    FILE *const f = fopen(FOURGE_SOURCE_DIR "/tests/golden/gp.tsv", "r");
    if (!CHECK(f))
        return;
    char line[LINE], id[LINE] = "";
    CHECK(fgets(line, sizeof line, f));
    frg_gp *gp = NULL;
    frg_gp_value v = {0};
    double gradient[GP_DATA_PARAMETERS];
    int cases = 0;
    while (fgets(line, sizeof line, f)) {
        char *field[FIELDS], *at = line;
        for (int k = 0; k < FIELDS; k++) {
            field[k] = at;
            at += strcspn(at, "\t\n");
            *at++ = '\0';
        }
        if (strcmp(field[ID], id) != 0) {
            snprintf(id, sizeof id, "%s", field[ID]);
            frg_gp_destroy(gp);
            gp = open_case(ctx, field);
            cases++;
            if (!gp || !CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, &v)))
                break;
        }
        const double want = atof(field[VALUE]);
        if (strcmp(field[QUANTITY], "value") == 0) {
            CHECK_SAYS(fabs(v.log_likelihood - want) <= 1e-10 * fabs(want),
                       "%s: %.17g, expected %.17g", id, v.log_likelihood, want);
            continue;
        }
        const int i = gp_data_find(gp, field[TERM]);
        CHECK_SAYS(i >= 0 && fabs(gradient[i] - want) <= 1e-8 * (1 + fabs(want)),
                   "%s: %s: %.12g, expected %.12g", id, field[TERM],
                   i < 0 ? (double)NAN : gradient[i], want);
    }
    CHECK_INT(cases, 15);
    fclose(f);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"one point", one_point}, {"two points", two_points},
    {"diagonal", diagonal},   {"equicorrelated", equicorrelated},
    {"markov", markov},       {"linear kernel", linear_kernel},
    {"golden", golden},
};
TEST_MAIN(cases)
