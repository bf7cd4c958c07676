/* test_reference.c - the row-space path: closed forms of slopes, the dense oracle, ranks, bits, bad input.
 *
 * Tolerances.  One factor is a closed form: rounding alone is left, EXACT times some hundred terms a level.
 * Against the oracle the bound is derived as in test_demean_oracle.c: converged promises
 * ||A' W^(1/2) r|| <= tol sqrt(Q) ||W^(1/2)(b - mean)|| for A with orthonormal columns in each factor, so
 * ||W^(1/2)(r - r*)|| is at most that over sqrt(lambda), lambda the smallest non-zero eigenvalue of A'A.  The
 * oracle's lambda is of unit columns that are not orthonormal within a level; where z is centred and weights
 * are mild the two differ by a factor below 10, which LOOSE allows for.
 */
#include "fault.h"
#include "fe/fe_reference.h"
#include "oracle/oracle.h"
#include "panel.h"

static const double EXACT = 1e-12, LOOSE = 10;

/* ---- a plan over a panel ------------------------------------------------------------------------ */

typedef struct {
    fe_rows rows;
    fe_reference *f;
} plan;

static frg_status plan_open(plan *p, frg_context *ctx, const panel *d, const frg_demean_opts *o)
{
    const frg_array codes = frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q);
    const frg_array weights = frg_vector(d->weights, FRG_F64, d->n);
    *p = (plan){0};
    frg_status s = frgi_fe_rows_create(&p->rows, ctx, &codes, d->weights ? &weights : NULL);
    if (s >= 0)
        s = frgi_fe_reference_create(&p->f, ctx, &p->rows, d->slopes, d->n_slopes, d->no_intercept,
                                     o);
    if (s < 0)
        frgi_fe_rows_destroy(&p->rows, ctx);
    return s;
}

static void plan_close(plan *p, frg_context *ctx)
{
    frgi_fe_reference_destroy(p->f, ctx);
    frgi_fe_rows_destroy(&p->rows, ctx);
}

static frg_status plan_run(const plan *p, frg_context *ctx, const panel *d, double *r,
                           frg_demean_column *columns)
{
    return frgi_fe_reference_run(p->f, ctx, panel_columns(d, d->x), panel_columns(d, r), columns);
}

/** Slopes of normal values around `offset`, of the factors given. */
static void add_slopes(panel *d, int count, const int factor[], double offset)
{
    d->n_slopes = count;
    d->slope_values = panel_zeros(d->n * count, sizeof *d->slope_values);
    for (int s = 0; s < count; s++) {
        for (int64_t i = 0; i < d->n; i++)
            d->slope_values[s * d->n + i] = offset + test_normal();
        d->slopes[s] = (frg_slope){.factor = factor[s], .z = d->slope_values + s * d->n};
    }
}

/* ---- closed forms ------------------------------------------------------------------------------- */

/** f[z]: a weighted straight line for each level; f[[z]]: a line through the origin. */
static void lines(bool intercept, double offset)
{
    enum { LEVELS = 30 };
    frg_context *ctx = test_context();
    panel d = panel_make(900, 1, 3);
    for (int64_t i = 0; i < d.n; i++)
        d.codes[i] = 3 * (int32_t)test_below(LEVELS) + 1;
    panel_random_weights(&d, 0.5, 2);
    add_slopes(&d, 1, (const int[]){0}, offset);
    d.no_intercept = !intercept;
    const frg_demean_opts o = panel_options();
    plan p;
    double *r = panel_zeros(d.n * d.p, sizeof *r), alpha[2 * LEVELS];
    frg_demean_column columns[3];
    CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
    CHECK_OK(ctx, plan_run(&p, ctx, &d, r, columns));
    CHECK_INT(frgi_fe_reference_levels(p.f), intercept ? 2 * LEVELS : LEVELS);
    int64_t rank;
    int exact;
    CHECK_OK(ctx, frgi_fe_reference_rank(p.f, ctx, &rank, &exact));
    CHECK(exact && rank == (intercept ? 2 * LEVELS : LEVELS));
    for (int c = 0; c < d.p; c++) {
        CHECK(columns[c].converged && columns[c].status == FRG_OK && columns[c].iterations == 0);
        CHECK_OK(ctx, frgi_fe_reference_effects(p.f, c, alpha));
        for (int l = 0; l < LEVELS; l++) {
            long double w1 = 0, wz = 0, wx = 0, zz = 0, zx = 0;
            for (int64_t i = 0; i < d.n; i++) {
                if (d.codes[i] == 3 * l + 1) {
                    const long double w = (long double)d.weights[i];
                    w1 += w;
                    wz += w * (long double)d.slope_values[i];
                    wx += w * (long double)d.x[c * d.n + i];
                }
            }
            const long double mz = intercept ? wz / w1 : 0, mx = intercept ? wx / w1 : 0;
            for (int64_t i = 0; i < d.n; i++) {
                if (d.codes[i] == 3 * l + 1) {
                    const long double z = (long double)d.slope_values[i] - mz;
                    zz += (long double)d.weights[i] * z * z;
                    zx += (long double)d.weights[i] * z * (long double)d.x[c * d.n + i];
                }
            }
            const long double slope = zx / zz, constant = mx - slope * mz;
            const double grow = 1 + fabs(offset);
            CHECK_NEAR(alpha[intercept ? LEVELS + l : l], (double)slope, EXACT * grow);
            if (intercept)
                CHECK_NEAR(alpha[l], (double)constant, EXACT * grow * grow);
            for (int64_t i = 0; i < d.n; i++) {
                if (d.codes[i] == 3 * l + 1)
                    CHECK_NEAR(r[c * d.n + i],
                               (double)((long double)d.x[c * d.n + i] - constant -
                                        slope * (long double)d.slope_values[i]),
                               EXACT * grow);
            }
        }
    }
    plan_close(&p, ctx);
    free(r);
    panel_free(&d);
    frg_context_destroy(ctx);
}

static void intercept_and_slope(void)
{
    lines(true, 0);
    lines(true, 2000);
}

static void slope_alone(void)
{
    lines(false, 1);
}

/** z constant in some levels beside the intercept, zero in others: the slope there is 0, the rank less. */
static void degenerate_slopes(void)
{
    frg_context *ctx = test_context();
    panel d = panel_make(120, 1, 1);
    add_slopes(&d, 1, (const int[]){0}, 0);
    for (int64_t i = 0; i < d.n; i++) {
        d.codes[i] = (int32_t)(i / 12);
        d.x[i] += 5;
        if (d.codes[i] < 3)
            d.slope_values[i] = 1.1e3 * d.codes[i]; /* 0, 1100, 2200 */
    }
    for (uint64_t alone = 0; alone < 2; alone++) {
        d.no_intercept = alone;
        const frg_demean_opts o = panel_options();
        plan p;
        double *r = panel_zeros(d.n, sizeof *r), alpha[20];
        frg_demean_column column;
        CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
        CHECK_OK(ctx, plan_run(&p, ctx, &d, r, &column));
        CHECK(column.converged);
        int64_t rank;
        int exact;
        CHECK_OK(ctx, frgi_fe_reference_rank(p.f, ctx, &rank, &exact));
        CHECK_INT(rank, alone ? 9 : 17);
        CHECK_OK(ctx, frgi_fe_reference_effects(p.f, 0, alpha));
        for (int l = 0; l < (alone ? 1 : 3); l++)
            CHECK(alpha[(alone ? 0 : 10) + l] == 0);
        for (int64_t i = 0; i < d.n; i++) {
            const int32_t l = d.codes[i];
            const double fit =
                alone ? alpha[l] * d.slope_values[i] : alpha[l] + alpha[10 + l] * d.slope_values[i];
            CHECK_NEAR(r[i], d.x[i] - fit, EXACT);
        }
        free(r);
        plan_close(&p, ctx);
    }
    panel_free(&d);
    frg_context_destroy(ctx);
}

/* ---- the oracle --------------------------------------------------------------------------------- */

static oracle *oracle_of(const panel *d)
{
    int factor[PANEL_SLOPES];
    const double *z[PANEL_SLOPES];
    for (int s = 0; s < d->n_slopes; s++) {
        factor[s] = d->slopes[s].factor;
        z[s] = d->slopes[s].z;
    }
    return oracle_create(&(oracle_design){.n = d->n,
                                          .n_factors = d->q,
                                          .codes = d->codes,
                                          .weights = d->weights,
                                          .n_slopes = d->n_slopes,
                                          .slope_factor = factor,
                                          .slope = z,
                                          .no_intercept = d->no_intercept});
}

/** Up to three factors and four slopes; repeated slopes, slopes alone, weights, unsorted rows. */
static panel draw(void)
{
    panel d = panel_make(40 + test_below(80), 1 + (int)test_below(3), 2);
    panel_random_codes(&d,
                       (const int64_t[]){1 + test_below(9), 1 + test_below(7), 1 + test_below(4)});
    if (test_below(2))
        panel_random_weights(&d, 0.5, 2);
    const int q = d.q;
    const int factor[PANEL_SLOPES] = {(int)test_below(q), (int)test_below(q), (int)test_below(q),
                                      (int)test_below(q)};
    add_slopes(&d, (int)test_below(PANEL_SLOPES + 1), factor, test_below(2) ? 0 : 0.5);
    for (int s = 1; s < d.n_slopes; s++) {
        if (test_below(4) == 0) /* the same values as another slope, perhaps of the same factor */
            memcpy(d.slope_values + s * d.n, d.slope_values, (size_t)d.n * sizeof(double));
    }
    for (int s = 0; s < d.n_slopes; s++) {
        if (test_below(4) == 0)
            d.no_intercept |= UINT64_C(1) << d.slopes[s].factor;
    }
    for (int64_t i = 0; i < d.n; i++)
        d.x[i] = 3 + 2 * d.x[i];
    return d;
}

/** x - D alpha, from the effects and the caller's data. */
static void subtract_effects(const panel *d, const double *alpha, const double *x, double *r)
{
    memcpy(r, x, (size_t)d->n * sizeof *r);
    for (int f = 0; f < d->q; f++) {
        int32_t level[64], levels = 0;
        for (int32_t code = 0; code < 64; code++) {
            level[code] = -1;
            for (int64_t i = 0; i < d->n && level[code] < 0; i++)
                level[code] = d->codes[i * d->q + f] == code ? levels++ : -1;
        }
        for (int s = -1; s < d->n_slopes; s++) {
            if (s < 0 ? d->no_intercept >> f & 1 : d->slopes[s].factor != f)
                continue;
            for (int64_t i = 0; i < d->n; i++)
                r[i] -= alpha[level[d->codes[i * d->q + f]]] * (s < 0 ? 1 : d->slopes[s].z[i]);
            alpha += levels;
        }
    }
}

static void check_against_oracle(frg_context *ctx, const panel *d, const frg_demean_opts *o)
{
    oracle *want = oracle_of(d);
    const double lambda = oracle_smallest_eigenvalue(want);
    double *r = panel_zeros(d->n * d->p, sizeof *r), *e = panel_zeros(d->n, sizeof *e);
    frg_demean_column columns[2];
    plan p;
    if (CHECK_OK(ctx, plan_open(&p, ctx, d, o))) {
        double *alpha = panel_zeros(frgi_fe_reference_levels(p.f), sizeof *alpha);
        CHECK_OK(ctx, plan_run(&p, ctx, d, r, columns));
        int64_t rank;
        int exact;
        CHECK_OK(ctx, frgi_fe_reference_rank(p.f, ctx, &rank, &exact));
        CHECK(exact);
        CHECK_INT(rank, oracle_rank(want));
        CHECK_INT(frgi_fe_reference_levels(p.f), oracle_columns(want));
        for (int c = 0; c < d->p; c++) {
            const double *x = d->x + c * d->n;
            const double norm = panel_norm(d, x, NULL), rounding = 1e3 * DBL_EPSILON * norm;
            const double allowed = (LOOSE * o->tol * sqrt(d->q) * norm + rounding) / sqrt(lambda);
            oracle_demean(want, x, e);
            const double error = panel_norm(d, e, r + c * d->n);
            CHECK_SAYS(columns[c].status == FRG_OK && columns[c].converged,
                       "%s, eta %.3g, audit %.3g, bound %.3g, %lld",
                       frg_status_name(columns[c].status), columns[c].gradient, columns[c].audit,
                       columns[c].error_bound, (long long)columns[c].iterations);
            CHECK_SAYS(error <= allowed, "error %.3g > %.3g, lambda %.3g", error, allowed, lambda);
            const double centred = panel_centred_norm(d, x);
            if (!isnan(columns[c].error_bound) && d->no_intercept == 0)
                CHECK_SAYS(error <= 2 * columns[c].error_bound * centred + rounding / sqrt(lambda),
                           "error %.3g > bound %.3g", error, columns[c].error_bound * centred);
            CHECK_OK(ctx, frgi_fe_reference_effects(p.f, c, alpha));
            subtract_effects(d, alpha, x, e);
            CHECK_SAYS(panel_norm(d, e, r + c * d->n) <= rounding / sqrt(lambda) * 10,
                       "x - D alpha differs from r by %.3g", panel_norm(d, e, r + c * d->n));
        }
        free(alpha);
        plan_close(&p, ctx);
    }
    free(r);
    free(e);
    oracle_destroy(want);
}

static void random_designs(void)
{
    frg_context *ctx = test_context();
    frg_demean_opts o = panel_options();
    for (int t = 0; t < test_size(120, 20) && test_now.failures < TEST_PRINTED_MAX; t++) {
        panel d = draw();
        o.block = 1 + (int)test_below(3);
        check_against_oracle(ctx, &d, &o);
        panel_free(&d);
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"intercept and slope of each level", intercept_and_slope},
    {"slope of each level", slope_alone},
    {"slopes that are constant or zero", degenerate_slopes},
    {"random designs against the oracle", random_designs},
};
TEST_MAIN(cases)
