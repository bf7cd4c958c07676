/* panel.h - panels for the tests of the demeaner: rows, codes, weights, columns, and an audit of
 * their own.
 *
 * The audit is computed here from the residual alone, in long double, with the definitions of fe.h:
 *
 *     N_l    = sum of w_i over the rows of level l
 *     mean_l = sum w_i r_i / N_l,    g_l = sum w_i r_i / sqrt(N_l)
 *     audit  = max |mean_l| / sd(r),  eta = ||g|| / (sqrt(Q) ||W^(1/2) (b - mean)||)
 */
#ifndef FOURGE_PANEL_H
#define FOURGE_PANEL_H

#include <float.h>

#include "fourge/fe.h"
#include "test.h"

enum { PANEL_SLOPES = 4, PANEL_COLUMNS = 32 };

typedef struct {
    int64_t n;
    int q, p;
    int32_t *codes;  /* n x q, row-major */
    double *weights; /* n or NULL */
    double *x;       /* n x p, column-major */
    int n_slopes;
    frg_slope slopes[PANEL_SLOPES];
    double *slope_values; /* n x n_slopes, column-major */
    uint64_t no_intercept;
} panel;

TEST_UNUSED static void *panel_zeros(int64_t count, size_t size)
{
    void *p = calloc((size_t)(count > 0 ? count : 1), size);
    if (!p)
        abort();
    return p;
}

/** Codes 0, columns normal, no weights, no slopes. */
TEST_UNUSED static panel panel_make(int64_t n, int q, int p)
{
    panel d = {.n = n, .q = q, .p = p};
    d.codes = panel_zeros(n * q, sizeof *d.codes);
    d.x = panel_zeros(n * p, sizeof *d.x);
    for (int64_t i = 0; i < n * p; i++)
        d.x[i] = test_normal();
    return d;
}

TEST_UNUSED static void panel_free(panel *d)
{
    free(d->codes);
    free(d->weights);
    free(d->x);
    free(d->slope_values);
    *d = (panel){0};
}

/** Uniform codes below levels[f]. */
TEST_UNUSED static void panel_random_codes(panel *d, const int64_t levels[])
{
    for (int64_t i = 0; i < d->n; i++)
        for (int f = 0; f < d->q; f++)
            d->codes[i * d->q + f] = (int32_t)test_below(levels[f]);
}

/** Uniform in [low, high). */
TEST_UNUSED static void panel_random_weights(panel *d, double low, double high)
{
    d->weights = panel_zeros(d->n, sizeof *d->weights);
    for (int64_t i = 0; i < d->n; i++)
        d->weights[i] = low + (high - low) * test_uniform();
}

/** Workers over years among firms that they rarely leave: the design the library is fast on.
 *  Factors worker, firm and, for q = 3, year. */
TEST_UNUSED static panel panel_workers(int64_t n, int q, int p)
{
    panel d = panel_make(n, q, p);
    const int64_t firms = n / 160 + 2;
    int64_t firm = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i % 8 == 0)
            firm = test_below(firms);
        else if (test_uniform() < 0.05)
            firm = (firm + test_below(7) - 3 + firms) % firms;
        d.codes[i * q] = (int32_t)(i / 8);
        d.codes[i * q + 1] = (int32_t)firm;
        if (q > 2)
            d.codes[i * q + 2] = (int32_t)(i % 8);
    }
    return d;
}

/** Three well-connected factors of 300, 120 and 12 levels, each of which occurs, 4000 rows,
 *  weights, three columns. */
TEST_UNUSED static panel panel_usual(void)
{
    static const int64_t levels[] = {300, 120, 12};
    panel d = panel_make(4000, 3, 3);
    panel_random_codes(&d, levels);
    for (int f = 0; f < 3; f++)
        for (int64_t i = 0; i < levels[f]; i++)
            d.codes[3 * i + f] = (int32_t)i;
    panel_random_weights(&d, 0.5, 2);
    return d;
}

/** Row i joins levels floor(i/2) and floor((i+1)/2) mod p. */
TEST_UNUSED static panel panel_cycle(int64_t p)
{
    panel d = panel_make(2 * p, 2, 1);
    for (int64_t i = 0; i < d.n; i++) {
        d.codes[2 * i] = (int32_t)(i / 2);
        d.codes[2 * i + 1] = (int32_t)((i + 1) / 2 % p);
    }
    return d;
}

TEST_UNUSED static frg_demean_opts panel_options(void)
{
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    return o;
}

TEST_UNUSED static frg_status panel_create(frg_demean **out, frg_context *ctx, const panel *d,
                                           const frg_demean_opts *o)
{
    const frg_array weights = frg_vector(d->weights, FRG_F64, d->n);
    return frg_demean_create(out, ctx, frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q),
                             d->weights ? &weights : NULL, d->n_slopes ? d->slopes : NULL,
                             d->n_slopes, d->no_intercept, o);
}

TEST_UNUSED static frg_array panel_columns(const panel *d, const double *values)
{
    return frg_matrix_columns(values, FRG_F64, d->n, d->p, d->n);
}

typedef struct {
    frg_demean_report plan;
    frg_demean_rank rank; /* counted after the run */
} panel_report;

/** create, run, destroy; r is n x p, column-major.  report may be NULL. */
TEST_UNUSED static frg_status panel_demean(frg_context *ctx, const panel *d,
                                           const frg_demean_opts *o, double *r,
                                           frg_demean_column columns[], panel_report *report)
{
    frg_demean *plan = NULL;
    frg_status s = panel_create(&plan, ctx, d, o);
    if (s < 0) {
        CHECK(plan == NULL);
        return s;
    }
    s = frg_demean_run(plan, panel_columns(d, d->x), panel_columns(d, r), columns, NULL);
    if (report) {
        report->plan = frg_demean_get(plan);
        CHECK_OK(ctx, frg_demean_get_rank(plan, &report->rank));
    }
    frg_demean_destroy(plan);
    return s;
}

/** With the given threads, all checked to be FRG_OK; r is allocated. */
TEST_UNUSED static double *panel_residuals(const panel *d, const frg_demean_opts *o, int threads)
{
    double *r = panel_zeros(d->n * d->p, sizeof *r);
    frg_demean_column columns[PANEL_COLUMNS];
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    CHECK_OK(ctx, panel_demean(ctx, d, o, r, columns, NULL));
    frg_context_destroy(ctx);
    return r;
}

TEST_UNUSED static double panel_norm(const panel *d, const double *a, const double *b)
{
    long double s = 0;
    for (int64_t i = 0; i < d->n; i++) {
        const long double e = (long double)a[i] - (b ? (long double)b[i] : 0);
        s += e * e * (d->weights ? (long double)d->weights[i] : 1);
    }
    return (double)sqrtl(s);
}

/** ||W^(1/2) (b - weighted mean)||. */
TEST_UNUSED static double panel_centred_norm(const panel *d, const double *b)
{
    long double sum = 0, weight = 0, s = 0;
    for (int64_t i = 0; i < d->n; i++) {
        const long double w = d->weights ? (long double)d->weights[i] : 1;
        sum += w * (long double)b[i];
        weight += w;
    }
    for (int64_t i = 0; i < d->n; i++) {
        const long double e = (long double)b[i] - sum / weight;
        s += e * e * (d->weights ? (long double)d->weights[i] : 1);
    }
    return (double)sqrtl(s);
}

typedef struct {
    double mean;     /* the largest |level mean| */
    double audit;    /* over sd(r) */
    double gradient; /* eta */
} panel_audit;

/** Of residual r of column b; intercepts alone, slopes are not looked at. */
TEST_UNUSED static panel_audit panel_check(const panel *d, const double *b, const double *r)
{
    panel_audit a = {0};
    long double squares = 0, total = 0, gradient = 0;
    for (int64_t i = 0; i < d->n; i++)
        total += d->weights ? (long double)d->weights[i] : 1;
    for (int64_t i = 0; i < d->n; i++)
        squares +=
            (d->weights ? (long double)d->weights[i] : 1) * (long double)r[i] * (long double)r[i];
    for (int f = 0; f < d->q; f++) {
        if (d->no_intercept >> f & 1)
            continue;
        int32_t top = 0;
        for (int64_t i = 0; i < d->n; i++)
            top = d->codes[i * d->q + f] > top ? d->codes[i * d->q + f] : top;
        long double *sum = panel_zeros((int64_t)top + 1, sizeof *sum);
        long double *mass = panel_zeros((int64_t)top + 1, sizeof *mass);
        for (int64_t i = 0; i < d->n; i++) {
            const long double w = d->weights ? (long double)d->weights[i] : 1;
            sum[d->codes[i * d->q + f]] += w * (long double)r[i];
            mass[d->codes[i * d->q + f]] += w;
        }
        for (int32_t l = 0; l <= top; l++) {
            if (mass[l] > 0) {
                a.mean = fmax(a.mean, (double)fabsl(sum[l] / mass[l]));
                gradient += sum[l] * sum[l] / mass[l];
            }
        }
        free(sum);
        free(mass);
    }
    const double centred = panel_centred_norm(d, b);
    a.audit = a.mean == 0 ? 0 : a.mean / (double)sqrtl(squares / total);
    a.gradient = gradient > 0 ? (double)(sqrtl(gradient) / sqrtl((long double)d->q)) / centred : 0;
    return a;
}

#endif
