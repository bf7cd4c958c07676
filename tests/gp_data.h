/* gp_data.h - small Gaussian-process problems for the tests of src/gp. */
#ifndef FOURGE_TEST_GP_DATA_H
#define FOURGE_TEST_GP_DATA_H

#include "fourge/gp.h"
#include "test.h"

enum { GP_DATA_ROOM = 8192, GP_DATA_PARAMETERS = 64 };

typedef struct {
    int64_t n, d, q;
    double x[GP_DATA_ROOM]; /* n x d, row-major */
    double y[GP_DATA_ROOM]; /* n x q, column-major */
} gp_data;

/** x uniform in [0, 1]^d, y a sum of sines with a tenth of noise. */
TEST_UNUSED static void gp_data_random(gp_data *g, int64_t n, int64_t d, int64_t q)
{
    g->n = n;
    g->d = d;
    g->q = q;
    for (int64_t i = 0; i < n * d; i++) {
        g->x[i] = test_uniform();
    }
    for (int64_t c = 0; c < q; c++) {
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t k = 0; k < d; k++) {
                sum += sin(6.2831853 * g->x[i * d + k] + (double)c);
            }
            g->y[c * n + i] = sum / sqrt((double)d) + 0.1 * test_normal();
        }
    }
}

TEST_UNUSED static frg_array gp_data_x(const gp_data *g)
{
    return frg_matrix(g->x, FRG_F64, g->n, g->d, g->d);
}

TEST_UNUSED static frg_array gp_data_y(const gp_data *g)
{
    return g->q == 1 ? frg_vector(g->y, FRG_F64, g->n)
                     : frg_matrix_columns(g->y, FRG_F64, g->n, g->q, g->n);
}

TEST_UNUSED static frg_gp_opts gp_data_opts(const char *mean)
{
    frg_gp_opts o;
    frg_gp_defaults(&o, sizeof o);
    o.mean = mean;
    return o;
}

/** NULL after a failed check. */
TEST_UNUSED static frg_gp *gp_data_open(frg_context *ctx, const gp_data *g, const char *kernel,
                                        const frg_gp_opts *o)
{
    frg_gp *gp = NULL;
    CHECK_OK(ctx, frg_gp_create(&gp, ctx, gp_data_x(g), gp_data_y(g), kernel, o));
    return gp;
}

TEST_UNUSED static double gp_data_value(frg_context *ctx, frg_gp *gp)
{
    frg_gp_value v = {.log_likelihood = (double)NAN};
    CHECK_OK(ctx, frg_gp_eval(gp, &v));
    return v.log_likelihood;
}

/** Values of all parameters; returns how many. */
TEST_UNUSED static int gp_data_theta(const frg_gp *gp, double *theta)
{
    const int count = frg_gp_parameter_count(gp);
    for (int i = 0; i < count; i++) {
        frg_gp_parameter p;
        CHECK_STATUS(frg_gp_get_parameter(gp, i, &p), FRG_OK);
        theta[i] = p.value;
    }
    return count;
}

/** The parameter "rbf.l" or "rbf.l[2]" (from 1), -1: none. */
TEST_UNUSED static int gp_data_find(const frg_gp *gp, const char *name)
{
    for (int i = 0; i < frg_gp_parameter_count(gp); i++) {
        frg_gp_parameter p;
        char label[96];
        CHECK_STATUS(frg_gp_get_parameter(gp, i, &p), FRG_OK);
        if (p.entry < 0) {
            snprintf(label, sizeof label, "%s", p.name);
        } else {
            snprintf(label, sizeof label, "%s[%d]", p.name, p.entry + 1);
        }
        if (strcmp(label, name) == 0) {
            return i;
        }
    }
    return -1;
}

/** Entries agree to `tolerance` of the largest (of 1 where all are smaller). */
TEST_UNUSED static void gp_data_check(const char *what, const double *got, const double *want,
                                      int64_t count, double tolerance)
{
    double scale = 1;
    for (int64_t i = 0; i < count; i++) {
        scale = fmax(scale, fabs(want[i]));
    }
    for (int64_t i = 0; i < count; i++) {
        CHECK_SAYS(fabs(got[i] - want[i]) <= tolerance * scale,
                   "%s: entry %d is %.12g, expected %.12g", what, (int)i, got[i], want[i]);
    }
}

/** ell + log prior at theta; the log density of leave-one-out there. */
TEST_UNUSED static double gp_data_objective(frg_context *ctx, frg_gp *gp, const double *theta)
{
    frg_gp_value v = {.log_likelihood = (double)NAN};
    CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
    CHECK_OK(ctx, frg_gp_eval(gp, &v));
    return v.log_likelihood + v.log_prior;
}

TEST_UNUSED static double gp_data_density(frg_context *ctx, frg_gp *gp, const double *theta)
{
    frg_gp_loo v = {.log_density = (double)NAN};
    CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
    CHECK_OK(ctx, frg_gp_eval_loo(gp, NULL, NULL, NULL, &v));
    return v.log_density;
}

/** The gradient of f per log v, per value for means: central differences with a step of 1e-5, so
 *  that the truncation is 1e-10 of the third derivative and rounding 1e-5 of the value's 1e-13:
 *  good to about 1e-6 relative. */
TEST_UNUSED static void gp_data_differences(frg_context *ctx, frg_gp *gp,
                                            double (*f)(frg_context *, frg_gp *, const double *),
                                            double *gradient)
{
    double theta[GP_DATA_PARAMETERS];
    const int p = gp_data_theta(gp, theta);
    for (int t = 0; t < p; t++) {
        frg_gp_parameter info;
        CHECK_OK(ctx, frg_gp_get_parameter(gp, t, &info));
        const double kept = theta[t], h = 1e-5;
        const bool mean = strcmp(info.name, "mean") == 0;
        theta[t] = mean ? kept + h : kept * exp(h);
        const double up = f(ctx, gp, theta);
        theta[t] = mean ? kept - h : kept * exp(-h);
        const double down = f(ctx, gp, theta);
        theta[t] = kept;
        gradient[t] = (up - down) / (2 * h);
    }
    CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
}

#endif
