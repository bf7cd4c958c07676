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

#endif
