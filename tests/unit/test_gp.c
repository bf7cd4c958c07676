/* test_gp.c - values and gradients of Gaussian processes: closed forms, scikit-learn's numbers, bad input.
 *
 * Closed forms are met to 1e-12 relative in f64 (2e-5 in f32): n <= 100, condition below 1e4, so that rounding
 * leaves n u cond = 1e-10 at the very most and, errors being independent, about 1e-13.  scikit-learn's numbers
 * carry its own rounding and its alpha = 0: 1e-10 for values, 1e-8 for gradients, as both sum n^2 terms.
 */
#include "gp/gp_room.h"
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

/* ---- closed forms ------------------------------------------------------------------------------- */

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

/** K = (1 - rho) I + rho 11': const(rho) + noise(1 - rho); Sherman and Morrison, and the determinant lemma. */
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

/** Matern-1/2 on sorted points is Markov: y_i | y_{i-1} is normal with mean e_i y_{i-1}, variance 1 - e_i^2. */
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

/* ---- scikit-learn's numbers --------------------------------------------------------------------- */

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

/* ---- bad input ---------------------------------------------------------------------------------- */

static void expect(frg_context *ctx, const gp_data *g, const char *kernel, const frg_gp_opts *o,
                   const char *code, const char *says)
{
    frg_gp *gp = (frg_gp *)ctx; /* must become NULL */
    const frg_status status = frg_gp_create(&gp, ctx, gp_data_x(g), gp_data_y(g), kernel, o);
    CHECK_SAYS(status < 0 && !gp, "%s: gave %s", says, frg_status_name(status));
    CHECK_TEXT(frg_error_code(ctx), code);
    CHECK_SAYS(strstr(frg_message(ctx), says), "\"%s\" does not say \"%s\"", frg_message(ctx),
               says);
    if (gp && gp != (frg_gp *)ctx) {
        frg_gp_destroy(gp);
    }
}

static void bad_data(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    const char *const k = "rbf(l=0.5) + noise(0.1)";
    double variances[5] = {0, 0.1, 0.2, 0, 0.5};
    int32_t groups[5] = {0, 1, 0, 1, 0};
    gp_data_random(&g, 0, 2, 1);
    expect(ctx, &g, k, NULL, "FRG-GP-002", "no rows");
    gp_data_random(&g, 5, 2, 1);
    g.x[7] = (double)NAN;
    expect(ctx, &g, k, NULL, "FRG-GP-003", "x is nan in row 4, column 2");
    g.x[7] = (double)-INFINITY;
    expect(ctx, &g, k, NULL, "FRG-GP-003", "x is -inf in row 4, column 2");
    g.x[7] = 0;
    g.y[2] = (double)NAN;
    expect(ctx, &g, k, NULL, "FRG-GP-003", "y is nan in row 3");
    g.y[2] = (double)INFINITY;
    expect(ctx, &g, k, NULL, "FRG-GP-003", "y is inf in row 3");
    g.y[2] = 2e18;
    frg_gp_opts o = gp_data_opts("const");
    o.precision = FRG_GP_F32;
    expect(ctx, &g, k, &o, "FRG-GP-009", "y is 2e+18 in row 3");
    g.y[2] = 0;
    o = gp_data_opts("const");
    o.noise_variances = variances;
    variances[3] = -1e-9;
    expect(ctx, &g, k, &o, "FRG-GP-004", "noise variance 4 is -1e-09");
    variances[3] = (double)NAN;
    expect(ctx, &g, k, &o, "FRG-GP-004", "noise variance 4 is nan");
    o = gp_data_opts("const");
    o.noise_groups = groups;
    groups[1] = -1;
    expect(ctx, &g, k, &o, "FRG-CORE-001", "noise group 2 is -1");
    o = gp_data_opts("values");
    expect(ctx, &g, k, &o, "FRG-CORE-006", "mean_values");
    o = gp_data_opts("const");
    o.reml = 1;
    expect(ctx, &g, k, &o, "FRG-CORE-006", "reml needs");
    static const char *const means[] = {"medium", "const(", "const()", "const(1", "const(x)", ""};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++) {
        o = gp_data_opts(means[i]);
        expect(ctx, &g, k, &o, "FRG-CORE-006", "mean");
    }
    o = gp_data_opts("profiled(linear)");
    for (int64_t i = 0; i < 5; i++) {
        g.x[2 * i + 1] = 3 * g.x[2 * i] - 1;
    }
    expect(ctx, &g, k, &o, "FRG-CORE-001", "column x2 is constant or a combination");
    expect(ctx, &g, "rbf(l=0.5) + nois(0.1)", NULL, "FRG-GP-001", "noise");
    expect(ctx, &g, NULL, NULL, "FRG-CORE-001", "kernel is NULL");
    o = gp_data_opts("const");
    o.priors = "rbf.l=gama(1,2)";
    expect(ctx, &g, k, &o, "FRG-GP-005", "");
    frg_context_destroy(ctx);
}

static void bad_arrays(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 6, 2, 1);
    float narrow[6] = {0};
    frg_gp *gp = NULL;
    const frg_array x = gp_data_x(&g), y = gp_data_y(&g);
    frg_array bad = frg_vector(g.y, FRG_F64, 5);
    CHECK_STATUS(frg_gp_create(&gp, ctx, x, bad, "rbf", NULL), FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-007");
    bad = frg_vector(narrow, FRG_F32, 6);
    CHECK_STATUS(frg_gp_create(&gp, ctx, x, bad, "rbf", NULL), FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-008");
    bad = frg_vector(g.y, FRG_I64, 6);
    CHECK_STATUS(frg_gp_create(&gp, ctx, x, bad, "rbf", NULL), FRG_BAD_ARG);
    bad = y;
    bad.device.kind = FRG_CUDA;
    CHECK_STATUS(frg_gp_create(&gp, ctx, x, bad, "rbf", NULL), FRG_NO_DEVICE);
    bad = x;
    bad.shape[0] = (int64_t)1 << 62;
    CHECK_STATUS(frg_gp_create(&gp, ctx, bad, y, "rbf", NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_create(&gp, ctx, y, y, "rbf", NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_create(&gp, NULL, x, y, "rbf", NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_create(NULL, ctx, x, y, "rbf", NULL), FRG_BAD_ARG);
    CHECK(!gp);
    frg_gp_opts o = gp_data_opts("const");
    o.precision = (frg_gp_precision)9;
    CHECK_STATUS(frg_gp_create(&gp, ctx, x, y, "rbf", &o), FRG_BAD_ARG);
    o = gp_data_opts("const");
    o.accuracy = 0;
    CHECK_STATUS(frg_gp_create(&gp, ctx, x, y, "rbf", &o), FRG_BAD_ARG);
    frg_gp_destroy(NULL);
    CHECK_STATUS(frg_gp_eval(NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_eval_gradient(NULL, NULL, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK_INT(frg_gp_parameter_count(NULL), 0);
    frg_context_destroy(ctx);
}

static void any_strides(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 20, 3, 1);
    const frg_gp_opts o = gp_data_opts("const");
    frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.1)", &o);
    const double want = gp ? gp_data_value(ctx, gp) : 0;
    frg_gp_destroy(gp);
    double x[60], y[20];
    char unaligned[20 * 8 + 1];
    for (int i = 0; i < 20; i++) {
        y[19 - i] = g.y[i];
        for (int k = 0; k < 3; k++) {
            x[k * 20 + i] = g.x[i * 3 + k];
        }
    }
    memcpy(unaligned + 1, g.y, 160);
    frg_array backwards = frg_vector(y + 19, FRG_F64, 20);
    backwards.stride[0] = -1;
    const frg_array ys[] = {backwards, frg_vector(unaligned + 1, FRG_F64, 20)};
    for (int i = 0; i < 2; i++) {
        if (CHECK_OK(ctx, frg_gp_create(&gp, ctx, frg_matrix_columns(x, FRG_F64, 20, 3, 20), ys[i],
                                        "1.2*rbf(l=0.4) + noise(0.1)", &o))) {
            const double got = gp_data_value(ctx, gp);
            CHECK_BITS(&got, &want, sizeof got);
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

static void no_columns(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 4, 0, 1);
    for (int i = 0; i < 4; i++) {
        g.y[i] = i;
    }
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "const(0.5) + noise(0.5)", &o);
    if (gp) { /* 14 / 0.5 - 36 * 0.5 / (0.5 * 2.5) and log 0.5^4 5 */
        CHECK_NEAR(gp_data_value(ctx, gp), -0.5 * (28 - 14.4 + log(0.0625 * 5) + 4 * LOG_2PI),
                   1e-13);
    }
    frg_gp_destroy(gp);
    CHECK_STATUS(frg_gp_create(&gp, ctx, gp_data_x(&g), gp_data_y(&g), "rbf(l=1)", &o),
                 FRG_BAD_ARG);
    frg_context_destroy(ctx);
}

/* ---- parameters --------------------------------------------------------------------------------- */

static void bad_parameters(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 12, 2, 1);
    const frg_gp_opts o = gp_data_opts("const");
    frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.1)", &o);
    if (!gp)
        return;
    const double want = gp_data_value(ctx, gp);
    double theta[8];
    const int p = gp_data_theta(gp, theta);
    CHECK_INT(p, 4);
    static const double bad[] = {0, -1, (double)NAN, (double)INFINITY, 1e300, 1e-300};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double changed[8];
        memcpy(changed, theta, sizeof theta);
        changed[1] = bad[i];
        CHECK_STATUS(frg_gp_update_parameters(gp, changed), FRG_BAD_ARG);
        CHECK_TEXT(frg_error_code(ctx), "FRG-GP-006");
        CHECK_SAYS(strstr(frg_message(ctx), "rbf.l"), "%s", frg_message(ctx));
        const double got = gp_data_value(ctx, gp);
        CHECK_BITS(&got, &want, sizeof got);
    }
    theta[3] = -7.5; /* a mean may be negative */
    CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
    CHECK(gp_data_value(ctx, gp) < want);
    frg_gp_parameter out;
    CHECK_STATUS(frg_gp_get_parameter(gp, 4, &out), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_get_parameter(gp, -1, &out), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_update_fixed(gp, 4, 1), FRG_BAD_ARG);
    CHECK_OK(ctx, frg_gp_update_fixed(gp, 1, 1));
    double gradient[8];
    CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL));
    CHECK(gradient[1] == 0 && gradient[0] != 0);
    CHECK_OK(ctx, frg_gp_get_parameter(gp, 1, &out));
    CHECK(out.fixed);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** Lengthscales at the ends of the doubles: a diagonal or a constant kernel, never NaN. */
static void extreme_lengthscales(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 30, 2, 1);
    static const char *const words[] = {"rbf", "matern12", "matern32", "matern52", "rq"};
    static const char *const lengths[] = {"l=1e-300", "l=1e300"};
    const frg_gp_opts o = gp_data_opts("zero");
    for (int w = 0; w < 5; w++) {
        double value[2] = {0};
        for (int k = 0; k < 2; k++) {
            char kernel[80];
            snprintf(kernel, sizeof kernel, "1.5*%s(%s) + noise(0.3)", words[w], lengths[k]);
            frg_gp *gp = gp_data_open(ctx, &g, kernel, &o);
            double gradient[8];
            frg_gp_value v;
            if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, &v))) {
                value[k] = v.log_likelihood;
                for (int i = 0; i < frg_gp_parameter_count(gp); i++) {
                    CHECK_SAYS(isfinite(gradient[i]), "%s: gradient %d is %g", kernel, i,
                               gradient[i]);
                }
            }
            frg_gp_destroy(gp);
        }
        static const char *const limits[] = {"white(1.5) + noise(0.3)", "const(1.5) + noise(0.3)"};
        for (int k = 0; k < 2; k++) {
            frg_gp *gp = gp_data_open(ctx, &g, limits[k], &o);
            const double want = gp ? gp_data_value(ctx, gp) : 0;
            CHECK_SAYS(fabs(value[k] - want) <= 1e-10 * fabs(want), "%s %s: %.17g, limit %.17g",
                       words[w], lengths[k], value[k], want);
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

static void report(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 40, 2, 1);
    frg_gp_opts o = gp_data_opts("const");
    const char *const names[] = {"north", "east"};
    o.column_names = names;
    size_t bytes = 0;
    const size_t before = frg_bytes_held(ctx);
    frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=[0.4,0.2]) + noise(0.1)", &o);
    const size_t held = frg_bytes_held(ctx) - before;
    CHECK_OK(ctx, frg_gp_estimate(ctx, 40, 2, 1, "1.2*rbf(l=[0.4,0.2]) + noise(0.1)", &o, &bytes));
    CHECK_SAYS(held >= bytes && held - bytes <= 128, "estimate %zu, held %zu", bytes, held);
    if (gp) {
        const frg_gp_report r = frg_gp_get_report(gp);
        CHECK(r.n == 40 && r.d == 2 && r.q == 1 && r.n_masked == 0 && r.storage == FRG_GP_FULL);
        CHECK_TEXT(r.column_names[1], "east");
        CHECK_SAYS(strstr(r.kernel, "rbf") && strstr(r.kernel, "0.4"), "%s", r.kernel);
        frg_gp *again = NULL; /* the text is an expression */
        CHECK_OK(ctx, frg_gp_create(&again, ctx, gp_data_x(&g), gp_data_y(&g), r.kernel, &o));
        frg_gp_destroy(again);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void too_big(void)
{
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    gp_data g;
    frg_context *ctx = test_context();
    size_t packed = 0, full = 0;
    gp_data_random(&g, 1500, 1, 1);
    const char *const kernel = "rbf(l=0.1) + noise(0.1)";
    frg_gp_opts o = gp_data_opts("const");
    o.storage = FRG_GP_FULL;
    CHECK_OK(ctx, frg_gp_estimate(ctx, g.n, 1, 1, kernel, &o, &full));
    o.storage = FRG_GP_PACKED;
    CHECK_OK(ctx, frg_gp_estimate(ctx, g.n, 1, 1, kernel, &o, &packed));
    CHECK_SAYS(packed < full && full < 2 * packed, "packed %zu, full %zu", packed, full);
    size_t large;
    CHECK_OK(ctx, frg_gp_estimate(ctx, 10000, 5, 1, kernel, &o, &large));
    CHECK_SAYS((double)large <= 0.55 * 8e8, "packed: %zu bytes", large);
    o.storage = FRG_GP_FULL;
    CHECK_OK(ctx, frg_gp_estimate(ctx, 10000, 5, 1, kernel, &o, &large));
    CHECK_SAYS((double)large <= 1.1 * 8e8, "full: %zu bytes", large);
    CHECK_STATUS(frg_gp_estimate(ctx, 0, 5, 1, kernel, &o, &large), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_estimate(ctx, 10, 5, 1, "rfb", &o, &large), FRG_BAD_ARG);
    frg_context_destroy(ctx);
    c.memory_limit = (int64_t)(packed + full) / 2;
    ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    o.storage = FRG_GP_FULL;
    expect(ctx, &g, kernel, &o, "FRG-GP-008", "packed storage fits");
    CHECK(frg_bytes_held(ctx) == 0);
    o.storage = FRG_GP_STORAGE_AUTO;
    frg_gp *gp = gp_data_open(ctx, &g, kernel, &o);
    CHECK(frg_gp_get_report(gp).storage == FRG_GP_PACKED);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
    c.memory_limit = (int64_t)packed / 4;
    ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    expect(ctx, &g, kernel, &o, "FRG-GP-008", "no storage fits");
    frg_context_destroy(ctx);
}

/* ---- missing values, duplicates, jitter --------------------------------------------------------- */

static void masked_rows(void)
{
    frg_context *ctx = test_context();
    gp_data g, kept = {.d = 2, .q = 1};
    double variances[30], kept_variances[30];
    int32_t groups[30], kept_groups[30];
    gp_data_random(&g, 30, 2, 1);
    for (int64_t i = 0; i < 30; i++) {
        variances[i] = 0.01 * (double)(i % 5);
        groups[i] = (int32_t)(i % 3);
        if (i % 7 == 3) {
            g.y[i] = (double)NAN;
            continue;
        }
        memcpy(kept.x + 2 * kept.n, g.x + 2 * i, 2 * sizeof *g.x);
        kept.y[kept.n] = g.y[i];
        kept_variances[kept.n] = variances[i];
        kept_groups[kept.n++] = groups[i];
    }
    frg_gp_opts o = gp_data_opts("const");
    o.nan = FRG_GP_NAN_MASK;
    o.noise_variances = variances;
    o.noise_groups = groups;
    const char *const kernel = "1.2*rbf(l=0.4) + noise(0.1)";
    frg_gp *a = gp_data_open(ctx, &g, kernel, &o);
    o.nan = FRG_GP_NAN_ERROR;
    o.noise_variances = kept_variances;
    o.noise_groups = kept_groups;
    frg_gp *b = gp_data_open(ctx, &kept, kernel, &o);
    frg_gp_value va = {0}, vb = {0};
    if (a && b && CHECK_OK(ctx, frg_gp_eval(a, &va)) && CHECK_OK(ctx, frg_gp_eval(b, &vb))) {
        CHECK_INT(frg_gp_get_report(a).n, 26);
        CHECK_INT(frg_gp_get_report(a).n_masked, 4);
        CHECK_BITS(&va.log_likelihood, &vb.log_likelihood, 8);
        CHECK_NEAR(va.per_point, va.log_likelihood / 30, 1e-14); /* as GPyTorch counts */
    }
    frg_gp_destroy(a);
    frg_gp_destroy(b);
    o = gp_data_opts("const");
    o.nan = FRG_GP_NAN_MASK;
    for (int i = 0; i < 30; i++) {
        g.y[i] = (double)NAN;
    }
    expect(ctx, &g, kernel, &o, "FRG-GP-002", "NaN in all 30 rows");
    frg_context_destroy(ctx);
}

static void duplicates(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 20, 2, 1);
    memcpy(g.x + 2 * 13, g.x + 2 * 4, 2 * sizeof *g.x);
    frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "1.2*matern12(l=0.4) + noise(0.1)", &o);
    frg_gp_value v;
    if (gp && CHECK_OK(ctx, frg_gp_eval(gp, &v))) {
        CHECK(v.jitter == 0 && frg_warning_count(ctx) == 0);
    }
    frg_gp_destroy(gp);
    gp = gp_data_open(ctx, &g, "1.2*matern12(l=0.4)", &o);
    double gradient[2], first = 0;
    if (gp && CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, &v))) {
        CHECK_NEAR(v.jitter * 1e10, 1.2, 1e-12);
        CHECK_INT(v.jitter_tries, 1);
        CHECK_INT(v.pivot, 13);
        CHECK(v.closest[0] == 4 && v.closest[1] == 13);
        first = v.log_likelihood;
        CHECK_INT(frg_warning_count(ctx), 1);
        CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-GP-101");
        const char *const says = frg_warning_message(ctx, 0);
        CHECK_SAYS(strstr(says, "rows 5 and 14") && strstr(says, "inconsistent duplicates"), "%s",
                   says);
        CHECK(isfinite(gradient[0]) && isfinite(gradient[1]));
    }
    /* the same again: the same answer, from the matrix that is there */
    if (gp && CHECK_OK(ctx, frg_gp_eval(gp, &v))) {
        CHECK_BITS(&v.log_likelihood, &first, sizeof first);
    }
    frg_gp_destroy(gp);
    o.jitter = FRG_GP_JITTER_GPYTORCH;
    gp = gp_data_open(ctx, &g, "1.2*matern12(l=0.4)", &o);
    if (gp && CHECK_OK(ctx, frg_gp_eval(gp, &v))) {
        CHECK_NEAR(v.jitter * 1e8, 1, 1e-12);
    }
    frg_gp_destroy(gp);
    o.jitter = FRG_GP_JITTER_NONE;
    gp = gp_data_open(ctx, &g, "1.2*matern12(l=0.4)", &o);
    v.log_likelihood = 42;
    if (gp) {
        CHECK_STATUS(frg_gp_eval(gp, &v), FRG_NOT_POSDEF);
        CHECK(v.log_likelihood == 42 && strstr(frg_message(ctx), "rows 5 and 14"));
        gradient[0] = 42;
        CHECK_STATUS(frg_gp_eval_gradient(gp, gradient, NULL, NULL, &v), FRG_NOT_POSDEF);
        CHECK(v.log_likelihood == 42 && gradient[0] == 42);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** Within a fit the jitter stays once it was needed: the objective is one function. */
static void sticky_jitter(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 20, 1, 1);
    const frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.1)", &o);
    if (!gp)
        return;
    const double free_of_jitter = gp_data_value(ctx, gp), smooth[2] = {1.2, 5},
                 rough[2] = {1.2, 0.1};
    const double rougher[2] = {1.2, 0.01};
    frg_gp_value v;
    CHECK(gp->value.jitter == 0);
    frgi_gp_set_sticky(gp, true);
    CHECK_OK(ctx, frg_gp_update_parameters(gp, smooth));
    CHECK_OK(ctx, frg_gp_eval(gp, &v));
    CHECK(v.jitter > 0 && frg_warning_count(ctx) == 1);
    const double jitter = v.jitter;
    CHECK_OK(ctx, frg_gp_update_parameters(gp, rough));
    CHECK_OK(ctx, frg_gp_eval(gp, &v));
    CHECK(v.jitter == jitter && v.jitter_tries == 0 && v.log_likelihood != free_of_jitter);
    CHECK_OK(ctx, frg_gp_update_parameters(gp, rougher));
    CHECK_OK(ctx, frg_gp_eval(gp, &v));
    CHECK(v.jitter == jitter && frg_warning_count(ctx) == 1);
    frgi_gp_set_sticky(gp, false);
    CHECK_OK(ctx, frg_gp_update_parameters(gp, rough));
    const double again = gp_data_value(ctx, gp);
    CHECK_BITS(&again, &free_of_jitter, sizeof again);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** x' A x with an indefinite A is no covariance: no jitter of the policy makes it one. */
static void indefinite_fill(const double *theta, int64_t m, const double *rows, int64_t n,
                            const double *cols, int64_t d, double *k, int64_t ld, void *user)
{
    (void)user;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            const double a = rows[i * d], b = cols[j * d];
            k[i + j * ld] = theta[0] * (a * b > 0 ? 1 : -2) * (1 + a * a * b * b);
        }
    }
}

static void indefinite_pull(const double *theta, int64_t m, const double *rows, int64_t n,
                            const double *cols, int64_t d, const double *w, int64_t ld,
                            double *gradient, void *user)
{
    (void)theta, (void)m, (void)rows, (void)n, (void)cols, (void)d, (void)w, (void)ld, (void)user;
    gradient[0] += 0;
}

static void not_a_covariance(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 10, 1, 1);
    for (int64_t i = 0; i < 10; i++) {
        g.x[i] -= 0.5;
    }
    const double start = 1;
    const frg_gp_user_kernel user = {
        .n_parameters = 1, .start = &start, .fill = indefinite_fill, .pull = indefinite_pull};
    frg_gp_opts o = gp_data_opts("zero");
    o.user_kernel = &user;
    frg_gp *gp = gp_data_open(ctx, &g, "user + rbf(l=0.1) + noise(0.01)", &o);
    double theta[8];
    frg_gp_value v;
    if (gp) {
        CHECK_STATUS(frg_gp_eval(gp, &v), FRG_NOT_POSDEF);
        CHECK_TEXT(frg_error_code(ctx), "FRG-GP-007");
        CHECK_SAYS(strstr(frg_message(ctx), "of the mean diagonal"), "%s", frg_message(ctx));
        gp_data_theta(gp, theta);
        theta[0] = 2e-5; /* the next call is unharmed */
        CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
        CHECK_OK(ctx, frg_gp_eval(gp, &v));
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- limits, memory ----------------------------------------------------------------------------- */

static void interrupted(void)
{
    frg_context *ctx = test_context();
    gp_data g;
    gp_data_random(&g, 60, 2, 1);
    const frg_gp_opts o = gp_data_opts("const");
    frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.1)", &o);
    frg_gp *other = gp_data_open(ctx, &g, "1.2*rbf(l=0.4) + noise(0.1)", &o);
    if (gp && other) {
        double gradient[4] = {42}, want[4];
        frg_interrupt(ctx);
        CHECK_STATUS(frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL), FRG_INTERRUPTED);
        CHECK(gradient[0] == 42);
        frg_interrupt_clear(ctx);
        CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL));
        CHECK_OK(ctx, frg_gp_eval_gradient(other, want, NULL, NULL, NULL));
        CHECK_BITS(gradient, want, sizeof want);
    }
    frg_gp_destroy(gp);
    frg_gp_destroy(other);
    frg_context_destroy(ctx);
}

static int64_t requests;

static void *counted_alloc(size_t bytes, void *user)
{
    (void)user;
    requests++;
    return frg_system_allocator()->alloc(bytes, frg_system_allocator()->user);
}

static void counted_free(void *p, size_t bytes, void *user)
{
    (void)user;
    frg_system_allocator()->free(p, bytes, frg_system_allocator()->user);
}

static void no_allocation(void)
{
    const frg_allocator counting = {.alloc = counted_alloc, .free = counted_free};
    frg_context *ctx = test_context_with(2, &counting, NULL);
    gp_data g;
    gp_data_random(&g, 70, 2, 2);
    static const char *const means[] = {"const", "linear", "profiled(linear)"};
    for (int k = 0; k < 9; k++) {
        frg_gp_opts o = gp_data_opts(means[k % 3]);
        o.precision = precisions[k / 3];
        o.reml = k % 3 == 2;
        frg_gp *gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.4)*linear + matern32 + noise(0.1)", &o);
        double theta[16], gradient[16];
        static double loo[140], information[16 * 16];
        const int p = gp ? gp_data_theta(gp, theta) : 0;
        int64_t before = 0;
        for (int round = 0; round < 3 && gp; round++) {
            theta[0] *= 1.1;
            CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
            before = round == 0
                         ? requests
                         : before; /* leave-one-out and information: from their second call */
            CHECK_OK(ctx, frg_gp_eval(gp, NULL));
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL));
            CHECK_INT(requests, before);
            CHECK_OK(ctx, frg_gp_eval_loo(gp, loo, NULL, gradient, NULL));
            CHECK_OK(ctx, frg_gp_eval_information(gp, information));
            before = round == 0 ? requests : before;
            CHECK_INT(requests, before);
        }
        CHECK(p > 0);
        frg_gp_destroy(gp);
    }
    CHECK(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"one point", one_point},
    {"two points", two_points},
    {"diagonal", diagonal},
    {"equicorrelated", equicorrelated},
    {"markov", markov},
    {"linear kernel", linear_kernel},
    {"golden", golden},
    {"bad data", bad_data},
    {"bad arrays", bad_arrays},
    {"any strides", any_strides},
    {"no columns", no_columns},
    {"bad parameters", bad_parameters},
    {"extreme lengthscales", extreme_lengthscales},
    {"report", report},
    {"too big", too_big},
    {"masked rows", masked_rows},
    {"duplicates", duplicates},
    {"sticky jitter", sticky_jitter},
    {"not a covariance", not_a_covariance},
    {"interrupted", interrupted},
    {"no allocation", no_allocation},
};
TEST_MAIN(cases)
