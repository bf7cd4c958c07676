/* test_gp_trouble.c - equal points, jitter, kernels that are no covariance, interruption; nothing allocated twice. */
#include "gp/gp_room.h"
#include "gp_data.h"

/* ---- duplicates, jitter --------------------------------------------------------- */

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
        o.precision = (frg_gp_precision)(k / 3);
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

/** matern12 at two equal points: no NaN, and the mean of both sides, which central differences of the value give: their
 *  truncation is about 100 h (h |h| is odd) and their rounding 1e-13 / h, 1e-5 together for h = 1e-7. */
static void cusp(void)
{
    static gp_data g;
    double dx[40];
    const double h = 1e-7;
    frg_context *ctx = test_context();
    gp_data_random(&g, 20, 2, 1);
    memcpy(g.x + 2, g.x, 2 * sizeof *g.x);
    const frg_array to = frg_matrix(dx, FRG_F64, 20, 2, 2);
    const char *const kernel = "1.2*matern12(l=[0.5,0.8]) + noise(0.2)";
    frg_gp *gp = gp_data_open(ctx, &g, kernel, NULL);
    frg_gp_value v;
    CHECK_OK(ctx, frg_gp_eval_gradient(gp, NULL, NULL, NULL, &v));
    CHECK_INT(v.cusps, 0);
    CHECK_OK(ctx, frg_gp_eval_gradient(gp, NULL, &to, NULL, &v));
    CHECK_INT(v.cusps, 1);
    frg_gp_destroy(gp);
    for (int k = 0; k < 6; k++) {
        const double kept = g.x[k];
        double side[2];
        for (int s = 0; s < 2; s++) {
            g.x[k] = kept + (s ? h : -h);
            gp = gp_data_open(ctx, &g, kernel, NULL);
            side[s] = gp_data_value(ctx, gp);
            frg_gp_destroy(gp);
        }
        g.x[k] = kept;
        CHECK_SAYS(fabs(dx[k] - (side[1] - side[0]) / (2 * h)) <= 1e-5 * (1 + fabs(dx[k])),
                   "entry %d: %.10g, differences %.10g", k, dx[k], (side[1] - side[0]) / (2 * h));
    }
    gp = gp_data_open(ctx, &g, "1.2*rbf(l=0.5) + noise(0.2)", NULL);
    CHECK_OK(ctx, frg_gp_eval_gradient(gp, NULL, &to, NULL, &v));
    CHECK_INT(v.cusps, 0);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/* ---- rows far from all others ------------------------------------------------------------------- */

enum { BULK = 24, FAR_MOST = 6 };

/** `far` rows at about `size`, each as many rows after the last as fit; their k with any other row is 0. */
static void with_outliers(const gp_data *bulk, int far, double size, gp_data *to)
{
    const int64_t step = far > 0 ? (BULK + far) / far : BULK + 1;
    to->n = BULK + far;
    to->d = to->q = 1;
    for (int64_t i = 0, from = 0, out = 0; i < to->n; i++) {
        const bool is_far = i % step == step - 1 && out < far;
        to->x[i] = is_far ? size * (double)(1 + out++) : bulk->x[from];
        to->y[i] = is_far ? 0.5 : bulk->y[from++];
    }
}

/** Each row far away adds log N(0.5; 0, 1.1), and the others are as they are without it: a centre at the mean would put
 *  them all at one point. */
static void outliers(void)
{
    static const double sizes[] = {1e3, 1e7, 1e10, 9.96921e36, 1e100};
    static const int counts[] = {1, 2, FAR_MOST};
    const char *const kernel = "1*rbf(l=0.4) + noise(0.1)";
    const double own = -0.5 * (0.25 / 1.1 + log(1.1) + 1.8378770664093454836);
    frg_context *ctx = test_context();
    static gp_data bulk, g;
    gp_data_random(&bulk, BULK, 1, 1);
    for (int i = 0; i < BULK; i++) {
        bulk.x[i] *= 8;
    }
    frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = gp_data_open(ctx, &bulk, kernel, &o);
    const double alone = gp_data_value(ctx, gp);
    frg_gp_destroy(gp);
    for (int k = 0; k < 15; k++) {
        const int far = counts[k % 3];
        const double size = sizes[k / 3], want = alone + far * own;
        double gradient[3];
        with_outliers(&bulk, far, size, &g);
        for (int precision = FRG_GP_F64; precision <= FRG_GP_MIXED; precision++) {
            if (precision == FRG_GP_F32 && size > 1e38) {
                continue; /* refused with its row: test_gp_input */
            }
            o.precision = (frg_gp_precision)precision;
            o.auto_promote = size > 1e11;
            gp = gp_data_open(ctx, &g, kernel, &o);
            frg_gp_value v;
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, &v));
            const double tolerance = precision == FRG_GP_F32 && !v.promoted ? 1e-5 : 1e-12;
            CHECK_NEAR(v.log_likelihood, want, tolerance);
            CHECK(isfinite(gradient[1]));
            frg_gp_destroy(gp);
        }
        frg_gp_member members[4];
        o.precision = FRG_GP_F64;
        for (int i = 0; i < 4; i++) {
            members[i] = (frg_gp_member){.x = gp_data_x(&g), .y = gp_data_y(&g)};
        }
        CHECK_OK(ctx, frg_gp_batch_eval(ctx, 4, members, kernel, &o));
        CHECK_NEAR(members[1].value.log_likelihood, want, 1e-12);
        o.precision = FRG_GP_F32; /* right, or it says that it cannot be */
        o.auto_promote = 0;
        const frg_status status = frg_gp_batch_eval(ctx, 4, members, kernel, &o);
        CHECK_STATUS(status, size > 1e11 ? FRG_PARTIAL : FRG_OK);
        if (size > 1e38) {
            CHECK_STATUS(members[3].status, FRG_BAD_DATA);
        } else if (size > 1e11) {
            CHECK_STATUS(members[3].status, FRG_BROKE_DOWN);
            CHECK_SAYS(strstr(members[3].message, "column x1"), "%s", members[3].message);
        } else {
            CHECK_NEAR(members[1].value.log_likelihood, want, 1e-5);
        }
    }
    with_outliers(&bulk, 1, 1e200, &g); /* too far for f64 */
    o.precision = FRG_GP_F64;
    gp = gp_data_open(ctx, &g, kernel, &o);
    CHECK_STATUS(frg_gp_eval(gp, NULL), FRG_BROKE_DOWN);
    CHECK_SAYS(strstr(frg_message(ctx), "f64"), "%s", frg_message(ctx));
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"outliers", outliers},
    {"duplicates", duplicates},
    {"sticky jitter", sticky_jitter},
    {"cusp", cusp},
    {"not a covariance", not_a_covariance},
    {"interrupted", interrupted},
    {"no allocation", no_allocation},
};
TEST_MAIN(cases)
