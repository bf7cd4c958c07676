/* test_gp_batch.c - a batch of processes gives every member what it has alone, whatever stands
 * beside it. */
#include <float.h>

#include "fourge/gp.h"
#include "test.h"

enum { MOST = 90, DIMS = 3, PARAMETERS = 8, COUNT = 37 };

typedef struct {
    int64_t n;
    double x[MOST * DIMS], y[MOST], gradient[PARAMETERS], fitted[PARAMETERS], theta[PARAMETERS];
    float x32[MOST * DIMS], y32[MOST];
} data;

static void make(data *p, int64_t n)
{
    p->n = n;
    for (int64_t i = 0; i < n; i++) {
        p->y[i] = 0.1 * test_normal();
        for (int k = 0; k < DIMS; k++) {
            p->x[i * DIMS + k] = (double)(float)test_uniform();
            p->y[i] += sin(6 * p->x[i * DIMS + k]);
        }
        p->y[i] = (double)(float)p->y[i];
    }
    for (int64_t i = 0; i < n * DIMS; i++)
        p->x32[i] = (float)p->x[i];
    for (int64_t i = 0; i < n; i++)
        p->y32[i] = (float)p->y[i];
}

static frg_gp_member member(data *p, bool single)
{
    memset(p->gradient, 0x55, sizeof p->gradient);
    return (frg_gp_member){.x = single ? frg_matrix(p->x32, FRG_F32, p->n, DIMS, DIMS)
                                       : frg_matrix(p->x, FRG_F64, p->n, DIMS, DIMS),
                           .y = single ? frg_vector(p->y32, FRG_F32, p->n)
                                       : frg_vector(p->y, FRG_F64, p->n),
                           .gradient = p->gradient,
                           .fitted = p->fitted};
}

/** Value and gradient of one member by the calls for one process. */
static frg_status alone(frg_context *ctx, const frg_gp_member *m, const char *kernel,
                        const frg_gp_opts *o, double *gradient, frg_gp_value *value, int *count)
{
    frg_gp *gp = NULL;
    frg_status s = frg_gp_create(&gp, ctx, m->x, m->y, kernel, o);
    if (s >= 0 && m->theta)
        s = frg_gp_update_parameters(gp, m->theta);
    if (s >= 0)
        s = frg_gp_eval_gradient(gp, gradient, NULL, NULL, value);
    *count = gp ? frg_gp_parameter_count(gp) : 0;
    frg_gp_destroy(gp);
    return s;
}

static const char *const kernels[] = {"rbf + noise",
                                      "scale*rbf(ard) + noise",
                                      "2*matern12(l=0.7) + noise(0.1)",
                                      "scale*matern32(ard) + noise",
                                      "scale*matern52(l=0.5!) + noise(0.2!)",
                                      "scale*rq + noise",
                                      "scale*rbf + linear + noise"};

/** Values and gradients of cond(K) <= n var / noise: two ways of computing them differ by some n u
 *  cond; with noise no less than a tenth of the variance and n <= 90 that is 90 * 900 u, 2e-11
 *  (f64), 1e-2 (f32) of sums of n terms. */
static void against_single(frg_gp_precision precision)
{
    static data all[COUNT];
    static frg_gp_member m[COUNT];
    const bool single = precision == FRG_GP_F32;
    const double tolerance = single ? 1e-2 : 1e-9;
    frg_gp_opts o;
    frg_gp_defaults(&o, sizeof o);
    o.precision = precision;
    frg_context *ctx = test_context();
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        o.mean = k % 2 ? "const" : "linear";
        for (int i = 0; i < COUNT; i++) {
            make(&all[i], i < 4 ? i + 1 : 2 + test_below(MOST - 2));
            m[i] = member(&all[i], single);
        }
        CHECK_OK(ctx, frg_gp_batch_eval(ctx, COUNT, m, kernels[k], &o));
        for (int i = 0; i < COUNT; i++) {
            double gradient[16];
            frg_gp_value value;
            int count;
            CHECK_STATUS(m[i].status, FRG_OK);
            CHECK_OK(ctx, alone(ctx, &m[i], kernels[k], &o, gradient, &value, &count));
            CHECK_NEAR(m[i].value.log_likelihood, value.log_likelihood, tolerance);
            CHECK_NEAR(m[i].value.per_point, value.per_point, tolerance);
            CHECK(m[i].value.trace_residual < tolerance);
            CHECK(m[i].value.pivot == value.pivot && m[i].value.jitter == value.jitter);
            for (int t = 0; t < count; t++)
                CHECK_SAYS(fabs(all[i].gradient[t] - gradient[t]) <=
                               tolerance * ((double)all[i].n + fabs(gradient[t])),
                           "%s, member %d, parameter %d: %.17g, alone %.17g", kernels[k], i, t,
                           all[i].gradient[t], gradient[t]);
        }
    }
    frg_context_destroy(ctx);
}

static void f64(void)
{
    against_single(FRG_GP_F64);
}

static void f32(void)
{
    against_single(FRG_GP_F32);
}

/** Bad members have a status of their own; the others have the bits of a batch without them, at any
 *  thread count. */
static void independence(void)
{
    static data all[COUNT], bad[3];
    static frg_gp_member clean[COUNT], mixed[COUNT + 3];
    double gradients[COUNT][PARAMETERS], values[COUNT];
    for (int i = 0; i < COUNT; i++)
        make(&all[i], 3 + test_below(40));
    for (int i = 0; i < 3; i++)
        make(&bad[i], 20);
    bad[0].y[7] = NAN;
    memcpy(bad[1].x + DIMS, bad[1].x,
           DIMS * sizeof(double)); /* two equal points: no factor without jitter */
    const double negative[] = {1, -1, 1, 0}, noiseless[] = {1, 1, 0};
    for (int threads = 1; threads <= 3; threads++) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        for (int i = 0; i < COUNT; i++)
            clean[i] = member(&all[i], false);
        CHECK_OK(ctx, frg_gp_batch_eval(ctx, COUNT, clean, "scale*rbf + noise", NULL));
        for (int i = 0; i < COUNT; i++) {
            if (threads > 1) {
                CHECK(values[i] == clean[i].value.log_likelihood);
                CHECK_BITS(all[i].gradient, gradients[i], 4 * sizeof(double));
            }
            values[i] = clean[i].value.log_likelihood;
            memcpy(gradients[i], all[i].gradient, sizeof gradients[i]);
        }
        for (int i = 0; i < COUNT + 3; i++)
            mixed[i] = member(i < 3 ? &bad[i] : &all[i - 3], false);
        mixed[2].theta = negative;
        CHECK_STATUS(frg_gp_batch_eval(ctx, COUNT + 3, mixed, "scale*rbf + noise", NULL),
                     FRG_PARTIAL);
        CHECK(strstr(frg_message(ctx), "row 7") && strstr(frg_error_where(ctx), "member 0"));
        CHECK_STATUS(mixed[0].status, FRG_BAD_DATA);
        CHECK_STATUS(mixed[1].status, FRG_OK);
        CHECK_STATUS(mixed[2].status, FRG_BAD_ARG);
        for (int i = 0; i < COUNT; i++) {
            CHECK(mixed[3 + i].value.log_likelihood == values[i]);
            CHECK_BITS(all[i].gradient, gradients[i], 4 * sizeof(double));
        }
        /* noise of nothing at two equal points: the member gets its jitter, its neighbours
         * nothing */
        frg_gp_opts o;
        frg_gp_defaults(&o, sizeof o);
        for (int i = 0; i < 8; i++) {
            mixed[i] = member(i == 3 ? &bad[1] : &all[i], false);
            if (i == 3)
                mixed[i].theta = noiseless;
        }
        CHECK_OK(ctx, frg_gp_batch_eval(ctx, 8, mixed, "scale*rbf", &o));
        CHECK(mixed[3].value.jitter > 0 && mixed[3].value.pivot == 1);
        for (int i = 0; i < 8; i++)
            CHECK_SAYS(mixed[i].status == FRG_OK, "member %d: %s", i,
                       frg_status_name(mixed[i].status));
        frg_context_destroy(ctx);
    }
}

/** Whatever number of others there is, and whichever of them share its vector: the same bits. */
static void company(void)
{
    static data all[COUNT];
    static frg_gp_member m[COUNT];
    double gradients[COUNT][PARAMETERS], values[COUNT];
    frg_gp_opts o;
    frg_gp_defaults(&o, sizeof o);
    frg_context *ctx = test_context();
    for (int way = 0; way < 4; way++) {
        const bool single = way % 2, fit = way / 2;
        frg_gp_fit_opts adam;
        frg_gp_fit_defaults(&adam, sizeof adam);
        adam.optimizer = FRG_GP_ADAM;
        adam.max_iter = 3;
        o.precision = single ? FRG_GP_F32 : FRG_GP_F64;
        for (int i = 0; i < COUNT; i++)
            make(&all[i], 3 + test_below(40));
        for (int count = COUNT; count >= 3; count = count > COUNT - 20 ? count - 1 : count - 5) {
            for (int i = 0; i < count; i++)
                m[i] = member(&all[i], single);
            CHECK_OK(ctx, fit ? frg_gp_batch_fit(ctx, count, m, "scale*rbf + noise", &o, &adam)
                              : frg_gp_batch_eval(ctx, count, m, "scale*rbf + noise", &o));
            for (int i = 0; i < count; i++) {
                if (count < COUNT) {
                    CHECK(values[i] == m[i].value.log_likelihood);
                    CHECK_BITS(all[i].gradient, gradients[i], 4 * sizeof(double));
                }
                values[i] = m[i].value.log_likelihood;
                memcpy(gradients[i], all[i].gradient, sizeof gradients[i]);
            }
        }
    }
    frg_context_destroy(ctx);
}

/** A member takes the place of another on the same thread: of one with a constant column (its
 *  lengthscale is held), of one with masked rows, of one with equal points.  None of that is left:
 *  the bits are those of a batch of its own. */
static void succession(void)
{
    enum { FIRST = 16, ORDINARY = 20, ROWS = 24 };
    static const char *const leaves[] = {"scale*rbf(ard) + noise", "scale*rq(ard) + noise"};
    static data all[FIRST + ORDINARY];
    static frg_gp_member m[FIRST + ORDINARY];
    double values[ORDINARY], gradients[ORDINARY][PARAMETERS];
    frg_gp_opts o;
    frg_gp_defaults(&o, sizeof o);
    o.nan = FRG_GP_NAN_MASK;
    frg_gp_fit_opts adam;
    frg_gp_fit_defaults(&adam, sizeof adam);
    adam.optimizer = FRG_GP_ADAM;
    adam.max_iter = 3;
    frg_context *ctx = test_context_with(1, NULL, NULL);
    for (int way = 0; way < 4; way++) {
        const char *const kernel = leaves[way % 2];
        for (int i = 0; i < FIRST + ORDINARY; i++)
            make(&all[i], ROWS);
        for (int i = 0; i < FIRST; i++) {
            for (int row = 0; row < ROWS && i % 3 == 0; row++)
                all[i].x[row * DIMS + 1] = 0.5;
            if (i % 3 == 1)
                all[i].y[4] = NAN;
            if (i % 3 == 2)
                memcpy(all[i].x + DIMS, all[i].x, DIMS * sizeof(double));
        }
        for (int from = FIRST; from >= 0; from -= FIRST) {
            const int count = FIRST + ORDINARY - from;
            for (int i = 0; i < count; i++)
                m[i] = member(&all[from + i], false);
            const frg_status status = way / 2 ? frg_gp_batch_fit(ctx, count, m, kernel, &o, &adam)
                                              : frg_gp_batch_eval(ctx, count, m, kernel, &o);
            CHECK(status == FRG_OK);
            for (int i = 0; i < ORDINARY; i++) {
                const double *const gradient = all[FIRST + i].gradient;
                if (from == 0) {
                    CHECK(values[i] == m[FIRST + i].value.log_likelihood);
                    CHECK_BITS(gradient, gradients[i], 6 * sizeof *gradient);
                    CHECK(m[FIRST + i].n_warnings == 0);
                }
                values[i] = m[count - ORDINARY + i].value.log_likelihood;
                memcpy(gradients[i], gradient, sizeof gradients[i]);
            }
        }
    }
    frg_context_destroy(ctx);
}

static void refusals(void)
{
    static data one;
    frg_context *ctx = test_context();
    make(&one, 10);
    frg_gp_member m = member(&one, false);
    CHECK_OK(ctx, frg_gp_batch_eval(ctx, 0, NULL, "rbf", NULL));
    CHECK_STATUS(frg_gp_batch_eval(ctx, 1, &m, "rbff", NULL), FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-GP-001");
    CHECK_STATUS(frg_gp_batch_eval(ctx, -1, &m, "rbf", NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_batch_eval(ctx, 1, &m, NULL, NULL), FRG_BAD_ARG);
    frg_interrupt(ctx);
    CHECK_STATUS(frg_gp_batch_eval(ctx, 1, &m, "rbf + noise", NULL), FRG_INTERRUPTED);
    CHECK_STATUS(m.status, FRG_INTERRUPTED);
    CHECK(strstr(m.message, "stopped") != NULL);
    frg_interrupt_clear(ctx);
    CHECK_OK(ctx, frg_gp_batch_eval(ctx, 1, &m, "rbf + noise", NULL));
    CHECK_STATUS(m.status, FRG_OK);
    frg_context_destroy(ctx);
}

/** A fit in a batch is the fit alone. */
static void fits(void)
{
    enum { FITS = 5 };
    static data all[FITS];
    static frg_gp_member m[FITS];
    static const frg_gp_optimizer methods[] = {FRG_GP_ADAM, FRG_GP_OPT_AUTO};
    frg_context *ctx = test_context();
    for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
        frg_gp_fit_opts fit;
        frg_gp_fit_defaults(&fit, sizeof fit);
        fit.optimizer = methods[k];
        fit.max_iter = 20;
        for (int i = 0; i < FITS; i++) {
            make(&all[i], 15 + 6 * i);
            m[i] = member(&all[i], false);
        }
        frg_status s = frg_gp_batch_fit(ctx, FITS, m, "scale*rbf + noise", NULL, &fit);
        CHECK(s == FRG_OK);
        for (int i = 0; i < FITS; i++) {
            frg_gp *gp = NULL;
            frg_gp_fit_result result;
            CHECK_OK(ctx, frg_gp_create(&gp, ctx, m[i].x, m[i].y, "scale*rbf + noise", NULL));
            s = frg_gp_fit(gp, &fit, &result);
            CHECK(s >= 0 && m[i].status >= 0);
            for (int t = 0; t < frg_gp_parameter_count(gp); t++) {
                frg_gp_parameter p;
                CHECK_OK(ctx, frg_gp_get_parameter(gp, t, &p));
                /* twenty steps may part where rounding decides a line search; the value may not */
                if (methods[k] == FRG_GP_ADAM)
                    CHECK_NEAR(all[i].fitted[t], p.value, 1e-6);
            }
            CHECK_NEAR(m[i].value.log_likelihood, result.value.log_likelihood, 1e-6);
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

/** Without options a fit in a batch is the fit without options. */
static void default_fit(void)
{
    static data one;
    make(&one, 25);
    frg_context *ctx = test_context();
    frg_gp_member m = member(&one, false);
    frg_gp *gp = NULL;
    frg_gp_fit_result r = {0};
    CHECK(frg_gp_batch_fit(ctx, 1, &m, "scale*rbf + noise", NULL, NULL) == FRG_OK);
    CHECK_OK(ctx, frg_gp_create(&gp, ctx, m.x, m.y, "scale*rbf + noise", NULL));
    frg_gp_value start = {0};
    CHECK_OK(ctx, frg_gp_eval(gp, &start));
    CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r));
    CHECK_SAYS(r.value.log_likelihood > start.log_likelihood + 0.1, "it is to move: %g from %g",
               r.value.log_likelihood, start.log_likelihood);
    CHECK_NEAR(m.value.log_likelihood, r.value.log_likelihood, 1e-6);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** Whoever has something to say says it on its own member: jitter, a start that was moved, a bound,
 *  an error. */
static void messages(void)
{
    static data all[6];
    static frg_gp_member m[6];
    const double noiseless[] = {1, 1, 0}, flat[] = {1, 2e-5, 0.1, 0};
    frg_context *ctx = test_context();
    frg_gp_fit_opts fit;
    frg_gp_fit_defaults(&fit, sizeof fit);
    fit.optimizer = FRG_GP_ADAM;
    fit.max_iter = 3;
    for (int way = 0; way < 3; way++) { /* values in lanes, fits in lanes, fits alone */
        for (int i = 0; i < 6; i++) {
            make(&all[i], 20 + i);
            m[i] = member(&all[i], false);
            m[i].n_warnings = 77;
        }
        memcpy(all[1].x + DIMS, all[1].x, DIMS * sizeof(double));
        all[4].y[2] = INFINITY;
        for (int i = 0; way > 0 && i < 22; i++) /* two things to say about member 3 */
            all[2].y[i] = 1;
        fit.optimizer = way == 2 ? FRG_GP_LBFGSB : FRG_GP_ADAM;
        m[1].theta = way == 0 ? noiseless : NULL;
        m[2].theta = way == 0 ? NULL : flat;
        CHECK_STATUS(way == 0 ? frg_gp_batch_eval(ctx, 6, m, "scale*rbf", NULL)
                              : frg_gp_batch_fit(ctx, 6, m, "scale*rbf + noise", NULL, &fit),
                     FRG_PARTIAL);
        CHECK(strstr(m[4].message, "row 2") && m[4].status == FRG_BAD_DATA);
        CHECK_SAYS(m[way == 0 ? 1 : 2].n_warnings >= 1, "way %d", way);
        CHECK_SAYS(strstr(m[way == 0 ? 1 : 2].message, way == 0 ? "jitter" : "mean correlation"),
                   "%s", m[way == 0 ? 1 : 2].message);
        CHECK_SAYS(way == 0 || strstr(m[2].message, "is constant"), "%s", m[2].message);
        CHECK(m[0].n_warnings == 0 && m[0].message[0] == '\0');
        CHECK_INT(frg_warning_count(ctx), 0);
    }
    CHECK_STATUS(frg_gp_batch_fit(ctx, 3, m, "scale*rbf(l=in(0.1,0.12)) + noise", NULL, &fit),
                 FRG_PARTIAL); /* the second and the third have parameters out of these bounds */
    fit.optimizer = FRG_GP_ADAM;
    fit.max_iter = 60;
    m[2].theta = NULL;
    CHECK_OK(ctx, frg_gp_batch_fit(ctx, 3, m, "scale*rbf(l=in(0.1,0.12)) + noise", NULL, &fit));
    for (int i = 0; i < 3; i++) /* sines of period one are wider */
        CHECK_SAYS(m[i].n_warnings > 0 && strstr(m[i].message, "rbf.l"), "%s", m[i].message);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"f64", f64},
    {"f32", f32},
    {"independence", independence},
    {"company", company},
    {"succession", succession},
    {"refusals", refusals},
    {"fits", fits},
    {"default_fit", default_fit},
    {"messages", messages},
};
TEST_MAIN(cases)
