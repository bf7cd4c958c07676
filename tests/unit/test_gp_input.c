/* test_gp_input.c - what a process refuses, and how it says so; parameters at their ends; the
 * report; memory. */
#include "gp/gp_process.h"
#include "gp_data.h"

/* ---- bad input ------------------------------------------------------------------------------- */

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

/** One value below what is allowed, wherever it stands, among others that are all positive. */
static void bad_value_among_sound_ones(void)
{
    static const double bad[] = {-(double)INFINITY, -(double)NAN, -1e39};
    frg_context *ctx = test_context();
    gp_data g;
    frg_gp_opts o = gp_data_opts("const");
    o.precision = FRG_GP_F32;
    gp_data_random(&g, 7, 3, 1);
    for (int i = 0; i < 7; i++) {
        g.y[i] = fabs(g.y[i]);
    }
    for (int at = 0; at < 28; at++) {
        double *const value = at < 21 ? &g.x[at] : &g.y[at - 21], sound = *value;
        for (int k = 0; k < 3; k++) {
            *value = bad[k];
            expect(ctx, &g, "rbf(l=0.5) + noise(0.1)", &o, k < 2 ? "FRG-GP-003" : "FRG-GP-009",
                   at < 21 ? "x is" : "y is");
        }
        *value = sound;
    }
    frg_gp_destroy(gp_data_open(ctx, &g, "rbf(l=0.5) + noise(0.1)", &o));
    frg_context_destroy(ctx);
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
    expect(ctx, &g, k, NULL, "FRG-GP-003", "x is nan in row 3, column 1");
    g.x[7] = (double)-INFINITY;
    expect(ctx, &g, k, NULL, "FRG-GP-003", "x is -inf in row 3, column 1");
    g.x[7] = 0;
    g.y[2] = (double)NAN;
    expect(ctx, &g, k, NULL, "FRG-GP-003", "y is nan in row 2");
    g.y[2] = (double)INFINITY;
    expect(ctx, &g, k, NULL, "FRG-GP-003", "y is inf in row 2");
    g.y[2] = 2e18;
    frg_gp_opts o = gp_data_opts("const");
    o.precision = FRG_GP_F32;
    expect(ctx, &g, k, &o, "FRG-GP-009", "y is 2e+18 in row 2: float32");
    g.y[2] = -1e160; /* its square is infinite */
    expect(ctx, &g, k, NULL, "FRG-GP-009", "y is -1e+160 in row 2: float64");
    g.y[2] = 0;
    g.x[5] = 1e39;
    expect(ctx, &g, k, &o, "FRG-GP-009", "x is 1e+39 in row 2");
    g.x[5] = 1e200; /* no deviation, so no length where the expression has none */
    expect(ctx, &g, "rbf + noise", NULL, "FRG-GP-006", "rbf.l cannot be set from the data");
    g.x[5] = 0;
    o = gp_data_opts("const");
    o.noise_variances = variances;
    variances[3] = -1e-9;
    expect(ctx, &g, k, &o, "FRG-GP-004", "noise variance 3 is -1e-09");
    variances[3] = (double)NAN;
    expect(ctx, &g, k, &o, "FRG-GP-004", "noise variance 3 is nan");
    o = gp_data_opts("const");
    o.noise_groups = groups;
    groups[1] = -1;
    expect(ctx, &g, k, &o, "FRG-CORE-001", "noise group 1 is -1");
    o = gp_data_opts("values");
    expect(ctx, &g, k, &o, "FRG-CORE-006", "mean_values");
    o = gp_data_opts("const");
    o.mean_values = g.y;
    expect(ctx, &g, k, &o, "FRG-CORE-006", "mean_values are given, and the mean is \"const\"");
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
        CHECK_NEAR(gp_data_value(ctx, gp), -0.5 * (28 - 14.4 + log(0.0625 * 5) + 4 * log(2 * M_PI)),
                   1e-13);
    }
    frg_gp_destroy(gp);
    CHECK_STATUS(frg_gp_create(&gp, ctx, gp_data_x(&g), gp_data_y(&g), "rbf(l=1)", &o),
                 FRG_BAD_ARG);
    frg_context_destroy(ctx);
}

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
        CHECK_INT(frg_gp_get(a).n, 26);
        CHECK_INT(frg_gp_get(a).n_masked, 4);
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

/* ---- parameters ------------------------------------------------------------------------------ */

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

/** Data whose squares underflow set no start, as those whose squares overflow; smaller than all
 *  doubles they are not, and with numbers of one's own they go. */
static void tiny_data(void)
{
    frg_context *ctx = test_context();
    gp_data g, small;
    gp_data_random(&g, 30, 2, 1);
    const frg_gp_opts o = gp_data_opts("const");
    const char *const says = "cannot be set from the data";
    small = g;
    for (int i = 0; i < 30; i++)
        small.y[i] *= 1e-200;
    expect(ctx, &small, "scale*rbf(l=0.5) + noise(0.1)", &o, "FRG-GP-006", says);
    expect(ctx, &small, "1*rbf(l=0.5) + noise", &o, "FRG-GP-006", says);
    frg_gp *gp = gp_data_open(ctx, &small, "1*rbf(l=0.5) + noise(0.1)", &o);
    CHECK(gp && isfinite(gp_data_value(ctx, gp)));
    frg_gp_destroy(gp);
    small = g;
    for (int i = 0; i < 60; i++)
        small.x[i] *= 1e-200;
    expect(ctx, &small, "1*rbf + noise(0.1)", &o, "FRG-GP-006", says);
    expect(ctx, &small, "1*rbf(ard) + noise(0.1)", &o, "FRG-GP-006", says);
    for (int i = 0; i < 60; i++) /* no further down than squares go */
        small.x[i] = g.x[i] * 1e-150;
    for (int i = 0; i < 30; i++)
        small.y[i] = g.y[i] * 1e-150;
    gp = gp_data_open(ctx, &small, "scale*rbf(ard) + noise", &o);
    frg_gp_fit_result r;
    CHECK(gp && frg_gp_fit(gp, NULL, &r) == FRG_OK);
    frg_gp_destroy(gp);
    gp_data_random(&g, 30, 2, 1);
    for (int i = 0; i < 30; i++)
        g.y[i] = 0.1; /* constant is not tiny */
    gp = gp_data_open(ctx, &g, "scale*rbf(ard) + noise", &o);
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
        const frg_gp_report r = frg_gp_get(gp);
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
    for (int k = 0; k < 3; k++) { /* n^2 would overflow, and so would loops over n */
        const int64_t huge[] = {INT64_C(1) << 32, INT64_C(1) << 60, INT64_MAX};
        CHECK_STATUS(frg_gp_estimate(ctx, huge[k], 1, 1, kernel, &o, &large), FRG_NO_MEMORY);
        CHECK_TEXT(frg_error_code(ctx), "FRG-GP-008");
    }
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
    CHECK(frg_gp_get(gp).storage == FRG_GP_PACKED);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
    c.memory_limit = (int64_t)packed / 4;
    ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    expect(ctx, &g, kernel, &o, "FRG-GP-008", "no storage fits");
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"bad data", bad_data},
    {"bad value among sound ones", bad_value_among_sound_ones},
    {"bad arrays", bad_arrays},
    {"any strides", any_strides},
    {"no columns", no_columns},
    {"masked rows", masked_rows},
    {"bad parameters", bad_parameters},
    {"extreme lengthscales", extreme_lengthscales},
    {"tiny data", tiny_data},
    {"report", report},
    {"too big", too_big},
};
TEST_MAIN(cases)
