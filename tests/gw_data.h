/* gw_data.h - small alignments for the tests of src/gw. */
#ifndef FOURGE_TEST_GW_DATA_H
#define FOURGE_TEST_GW_DATA_H

#include "fourge/gw.h"
#include "test.h"

/** c <- the n x n Euclidean distances of n points of d coordinates. */
static inline void distances_of(const double *x, int64_t n, int64_t d, double *c)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++) {
            double s = 0;
            for (int64_t q = 0; q < d; q++)
                s += pow(x[i * d + q] - x[k * d + q], 2);
            c[i * n + k] = sqrt(s);
        }
}

static inline frg_array matrix(const double *x, int64_t n, int64_t d)
{
    return frg_matrix(x, FRG_F64, n, d, d);
}

static inline frg_gw_opts options(frg_gw_distance distance)
{
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.distance = distance;
    o.epsilon = 0.005;
    return o;
}

/** Creates and runs; the plan goes to `plan` (n x m) and its sums to `marginals` where these are
 *  not NULL. */
static inline frg_gw_report align_sides(frg_context *ctx, frg_gw_side x, frg_gw_side y,
                                        const frg_array *linear, const frg_gw_opts *o, double *plan,
                                        frg_plan_report *marginals)
{
    frg_gw *s = NULL;
    frg_gw_report r = {0};
    if (!CHECK_OK(ctx, frg_gw_create(&s, ctx, x, y, linear, o)))
        return r;
    const frg_status status = frg_gw_run(s, NULL);
    if (CHECK_SAYS(status >= 0, "run: %s", frg_message(ctx))) {
        r = *frg_gw_get(s);
        const frg_plan_report p = frg_plan_get(frg_gw_plan(s));
        if (marginals)
            *marginals = p;
        if (plan)
            CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, p.n, matrix(plan, p.n, p.m)));
    }
    frg_gw_destroy(s);
    return r;
}

#endif
