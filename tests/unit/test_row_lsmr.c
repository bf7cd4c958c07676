/* test_row_lsmr.c - the row-space path: closed forms of slopes, the dense oracle, ranks, bits, bad
 * input.
 *
 * Tolerances.  One factor is a closed form: rounding alone is left, EXACT times some hundred terms
 * a level. Against the oracle the bound is derived as in test_demean_oracle.c: converged promises
 * ||A' W^(1/2) r|| <= tol sqrt(Q) ||W^(1/2)(b - mean)|| for A with orthonormal columns in each
 * factor, so ||W^(1/2)(r - r*)|| is at most that over sqrt(lambda), lambda the smallest non-zero
 * eigenvalue of A'A.  The oracle's lambda is of unit columns that are not orthonormal within a
 * level; where z is centred and weights are mild the two differ by a factor below 10, which LOOSE
 * allows for.
 */
#include "fault.h"
#include "fe/fe_basis.h"
#include "fe/fe_row_lsmr.h"
#include "oracle/oracle.h"
#include "panel.h"
#include "sparse/ritz.h"

static const double EXACT = 1e-12, LOOSE = 10;

/* ---- a plan over a panel --------------------------------------------------------------------- */

typedef struct {
    fe_rows rows;
    fe_row_lsmr *f;
} plan;

static frg_status plan_open(plan *p, frg_context *ctx, const panel *d, const frg_demean_opts *o)
{
    const frg_array codes = frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q);
    const frg_array weights = frg_vector(d->weights, FRG_F64, d->n);
    *p = (plan){0};
    frg_status s = frgi_fe_rows_create(&p->rows, ctx, &codes, d->weights ? &weights : NULL);
    if (s >= 0)
        s = frgi_fe_row_lsmr_create(&p->f, ctx, &p->rows, d->slopes, d->n_slopes, d->no_intercept,
                                    o);
    if (s < 0)
        frgi_fe_rows_destroy(&p->rows, ctx);
    return s;
}

static void plan_close(plan *p, frg_context *ctx)
{
    frgi_fe_row_lsmr_destroy(p->f, ctx);
    frgi_fe_rows_destroy(&p->rows, ctx);
}

static frg_status plan_run(const plan *p, frg_context *ctx, const panel *d, double *r,
                           frg_demean_column *columns)
{
    return frgi_fe_row_lsmr_run(p->f, ctx, panel_columns(d, d->x), panel_columns(d, r), columns);
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

/* ---- closed forms ---------------------------------------------------------------------------- */

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
    CHECK_INT(frgi_fe_row_lsmr_levels(p.f), intercept ? 2 * LEVELS : LEVELS);
    int64_t rank;
    const char *method;
    CHECK_OK(ctx, frgi_fe_row_lsmr_rank(p.f, ctx, 1e9, &rank, &method));
    CHECK(strcmp(method, "exact") == 0 && rank == (intercept ? 2 * LEVELS : LEVELS));
    for (int c = 0; c < d.p; c++) {
        CHECK(columns[c].converged && columns[c].status == FRG_OK && columns[c].iterations == 0);
        CHECK_OK(ctx, frgi_fe_row_lsmr_effects(p.f, c, alpha));
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

/** z constant in some levels beside the intercept, zero in others: the slope there is 0, the rank
 *  less. */
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
        const char *method;
        CHECK_OK(ctx, frgi_fe_row_lsmr_rank(p.f, ctx, 1e9, &rank, &method));
        CHECK_TEXT(method, "exact");
        CHECK_INT(rank, alone ? 9 : 17);
        CHECK_OK(ctx, frgi_fe_row_lsmr_effects(p.f, 0, alpha));
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

/* ---- parts ----------------------------------------------------------------------------------- */

/** Columns 1, z, z^2 with z near 1000 are orthonormal to rounding all the same: what the second
 *  pass of Gram-Schmidt is for (one pass leaves 1e-16 times the cancellation, some 1e9 here). */
static void orthonormal(void)
{
    frg_context *ctx = test_context();
    panel d = panel_make(400, 1, 1);
    for (int64_t i = 0; i < d.n; i++)
        d.codes[i] = (int32_t)(i / 100);
    panel_random_weights(&d, 0.5, 2);
    add_slopes(&d, 2, (const int[]){0, 0}, 1000);
    for (int64_t i = 0; i < d.n; i++)
        d.slope_values[d.n + i] = d.slope_values[i] * d.slope_values[i];
    const frg_demean_opts o = panel_options();
    plan p;
    fe_basis b;
    CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
    CHECK_OK(ctx, frgi_basis_create(&b, ctx, &p.rows, d.slopes, d.n_slopes, 0, false));
    CHECK(b.elim.rank == 12 && b.elim.width == 3 && b.n_reduced == 0);
    for (int64_t l = 0; l < b.elim.levels; l++) {
        double gram[3][3] = {{0}};
        for (int64_t i = 100 * l; i < 100 * l + 100; i++) {
            const double phi[3] = {b.elim.root[l], b.elim.phi[2 * i], b.elim.phi[2 * i + 1]};
            for (int j = 0; j < 9; j++)
                gram[j / 3][j % 3] += d.weights[i] * phi[j / 3] * phi[j % 3];
        }
        for (int j = 0; j < 9; j++)
            CHECK_NEAR(gram[j / 3][j % 3], j / 3 == j % 3, 1e-13);
    }
    frgi_basis_destroy(&b, ctx);
    plan_close(&p, ctx);
    panel_free(&d);
    frg_context_destroy(ctx);
}

/** T = tridiag(-1, 2, -1) has the eigenvalues 2 - 2 cos(j pi / (n + 1)); one of 0 beside it is
 *  noise. */
static void ritz_values(void)
{
    enum { N = 50 };
    double diagonal[2 * N + 2], below2[2 * N + 2];
    for (int j = 0; j <= N; j++) {
        diagonal[2 * j] = j < N ? 2 : 1e-17;
        below2[2 * j] = j < N ? 1 : 0;
    }
    const double want = 2 - 2 * cos(3.14159265358979323846 / (N + 1));
    CHECK_NEAR(frgi_ritz_smallest(diagonal, below2, 2, N + 1) / want, 1, 1e-3);
    CHECK_NEAR(frgi_ritz_smallest(diagonal, below2, 2, 1), 2, 1e-3);
    CHECK(isnan(frgi_ritz_smallest(diagonal, below2, 2, 0)));
}

/* ---- the oracle ------------------------------------------------------------------------------ */

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
    for (int64_t i = 0; i < d.n && d.n % 4 == 0; i++) /* units together, but in descending order */
        d.codes[i * d.q] = (int32_t)(40 - i / 4);
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
        double *alpha = panel_zeros(frgi_fe_row_lsmr_levels(p.f), sizeof *alpha);
        CHECK_OK(ctx, plan_run(&p, ctx, d, r, columns));
        int64_t rank;
        const char *method;
        CHECK_OK(ctx, frgi_fe_row_lsmr_rank(p.f, ctx, 1e9, &rank, &method));
        CHECK_TEXT(method, "exact");
        CHECK_INT(rank, oracle_rank(want));
        CHECK_INT(frgi_fe_row_lsmr_levels(p.f), oracle_columns(want));
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
            CHECK_OK(ctx, frgi_fe_row_lsmr_effects(p.f, c, alpha));
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

/* ---- bits, types, scales --------------------------------------------------------------------- */

/** Two factors of 60 and 25 levels, slopes on both, enough rows for several chunks. */
static panel sloped_panel(int p)
{
    panel d = panel_make(test_size(40000, 20000), 2, p);
    panel_random_codes(&d, (const int64_t[]){60, 25});
    panel_random_weights(&d, 0.5, 2);
    add_slopes(&d, 2, (const int[]){0, 1}, 1);
    return d;
}

static void same_bits(void)
{
    panel d = sloped_panel(5);
    frg_demean_opts o = panel_options();
    double *want = NULL;
    frg_demean_column first[5] = {0};
    static const struct {
        int threads, block;
    } ways[] = {{1, 8}, {2, 8}, {3, 1}, {4, 2}, {1, 3}, {2, 32}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        frg_context *ctx = test_context_with(ways[w].threads, NULL, NULL);
        double *r = panel_zeros(d.n * d.p, sizeof *r);
        frg_demean_column columns[5];
        plan p;
        o.block = ways[w].block;
        CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
        CHECK(p.rows.n_chunks > 1);
        CHECK_OK(ctx, plan_run(&p, ctx, &d, r, columns));
        plan_close(&p, ctx);
        frg_context_destroy(ctx);
        if (!want) {
            want = r;
            memcpy(first, columns, sizeof first);
            continue;
        }
        CHECK_BITS(r, want, (size_t)(d.n * d.p) * sizeof *r);
        for (int c = 0; c < d.p; c++) {
            CHECK_INT(columns[c].iterations, first[c].iterations);
            CHECK(columns[c].error_bound == first[c].error_bound);
        }
        free(r);
    }
    free(want);
    panel_free(&d);
}

/** A power of two changes no digit; results may overwrite their columns; rows may be far apart. */
static void scales_and_strides(void)
{
    frg_context *ctx = test_context();
    panel d = sloped_panel(2);
    const frg_demean_opts o = panel_options();
    const int64_t n = d.n;
    double *r = panel_zeros(2 * n, sizeof *r), *wide = panel_zeros(4 * n, sizeof *wide);
    frg_demean_column columns[2];
    plan p;
    CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
    CHECK_OK(ctx, plan_run(&p, ctx, &d, r, columns));
    for (int64_t i = 0; i < n; i++) {
        wide[4 * i] = ldexp(d.x[i], -498); /* 1e-150 */
        wide[4 * i + 2] = ldexp(d.x[n + i], 490);
    }
    frg_array in = frg_matrix(wide, FRG_F64, n, 2, 4);
    in.stride[1] = 2;
    CHECK_OK(ctx, frgi_fe_row_lsmr_run(p.f, ctx, in, in, columns));
    for (int c = 0; c < 2; c++)
        CHECK(columns[c].status == FRG_OK && columns[c].converged);
    for (int64_t i = 0; i < n; i++) {
        CHECK(wide[4 * i] == ldexp(r[i], -498) && wide[4 * i + 1] == 0);
        CHECK(wide[4 * i + 2] == ldexp(r[n + i], 490));
    }
    plan_close(&p, ctx);
    double *again = panel_zeros(2 * n, sizeof *again);
    for (int64_t i = 0; i < n; i++) { /* and so for slopes */
        d.slope_values[i] = ldexp(d.slope_values[i], 490);
        d.slope_values[n + i] = ldexp(d.slope_values[n + i], -490);
    }
    CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
    CHECK_OK(ctx, plan_run(&p, ctx, &d, again, columns));
    CHECK_BITS(again, r, (size_t)(2 * n) * sizeof *r);
    plan_close(&p, ctx);
    free(again);
    free(r);
    free(wide);
    panel_free(&d);
    frg_context_destroy(ctx);
}

/** float columns are computed in double: the result is the double one rounded, to an ulp or so. */
static void floats(void)
{
    frg_context *ctx = test_context();
    panel d = sloped_panel(2);
    const frg_demean_opts o = panel_options();
    float *x = panel_zeros(2 * d.n, sizeof *x);
    double *r = panel_zeros(2 * d.n, sizeof *r);
    frg_demean_column columns[2];
    for (int64_t i = 0; i < 2 * d.n; i++)
        d.x[i] = (double)(x[i] = (float)(d.x[i] + 10));
    plan p;
    CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
    CHECK_OK(ctx, plan_run(&p, ctx, &d, r, columns));
    const frg_array a = frg_matrix_columns(x, FRG_F32, d.n, 2, d.n);
    CHECK_OK(ctx, frgi_fe_row_lsmr_run(p.f, ctx, a, a, columns));
    for (int c = 0; c < 2; c++)
        CHECK(columns[c].status == FRG_OK && columns[c].converged);
    for (int64_t i = 0; i < 2 * d.n; i++)
        CHECK_NEAR((double)x[i], r[i], 2 * (double)FLT_EPSILON);
    plan_close(&p, ctx);
    free(x);
    free(r);
    panel_free(&d);
    frg_context_destroy(ctx);
}

/** One factor leaves nothing to solve for: a column of float whose rounding is more than tol
 *  allows is not refined by a solver that has no unknowns.  It is the exact residual rounded, to
 *  the ulp, and is not called converged. */
static void floats_of_one_factor(void)
{
    static const frg_fe_method methods[] = {FRG_FE_LSMR, FRG_FE_MAP};
    enum { N = 60, LEVELS = 6 };
    frg_context *ctx = test_context();
    panel d = panel_make(N, 1, 1);
    float x[N], r[N];
    double mean[LEVELS] = {0};
    for (int i = 0; i < N; i++) {
        d.codes[i] = i % LEVELS;
        x[i] = (float)test_uniform();
        mean[i % LEVELS] += (double)x[i] / (N / LEVELS);
    }
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        frg_demean *one = NULL;
        frg_demean_column column = {.converged = 1};
        frg_demean_opts o = panel_options();
        o.method = methods[m];
        o.tol = 1e-12;
        CHECK_OK(ctx, panel_create(&one, ctx, &d, &o));
        CHECK_STATUS(frg_demean_run(one, frg_matrix(x, FRG_F32, N, 1, 1),
                                    frg_matrix(r, FRG_F32, N, 1, 1), &column, NULL),
                     FRG_STALLED);
        CHECK(!column.converged && column.status == FRG_STALLED);
        for (int i = 0; i < N; i++)
            CHECK_NEAR((double)r[i], (double)x[i] - mean[i % LEVELS], 2 * (double)FLT_EPSILON);
        frg_demean_destroy(one);
    }
    panel_free(&d);
    frg_context_destroy(ctx);
}

/* ---- stops ----------------------------------------------------------------------------------- */

static void marked(frg_status want, int64_t steps, frg_context *ctx, const frg_demean_opts *o)
{
    panel d = panel_cycle(10000);
    double *r = panel_zeros(d.n, sizeof *r);
    frg_demean_column column;
    plan p;
    CHECK_OK(ctx, plan_open(&p, ctx, &d, o));
    CHECK_OK(ctx, plan_run(&p, ctx, &d, r, &column));
    CHECK_INT(column.status, want);
    CHECK(!column.converged && column.gradient > o->tol);
    CHECK_INT(column.iterations, steps);
    const panel_audit mine =
        panel_check(&d, d.x, r); /* the best iterate was written, and audited */
    CHECK_NEAR(mine.audit / column.audit, 1, 1e-9);
    CHECK_NEAR(mine.gradient / column.gradient, 1, 1e-9);
    CHECK(panel_norm(&d, r, NULL) < panel_norm(&d, d.x, NULL));
    double sum = 0, rows = 0;
    for (int64_t i = 0; i < d.n; i++) {
        const bool in = d.codes[2 * i + column.worst_factor] == column.worst_level;
        sum += in ? r[i] : 0;
        rows += in;
    }
    CHECK_NEAR(fabs(sum / rows) / mine.mean, 1, 1e-9);
    plan_close(&p, ctx);
    free(r);
    panel_free(&d);
}

static void stops(void)
{
    frg_context *ctx = test_context();
    frg_demean_opts o = panel_options();
    o.max_iter = 3;
    marked(FRG_MAX_ITER, 3, ctx, &o);
    o.max_iter = 1000;
    frg_interrupt(ctx);
    marked(FRG_INTERRUPTED, 0, ctx, &o);
    frg_context_destroy(ctx);
}

/** P = (1 + place / R) I is no use but allowed: the same answer. */
static void plain_precond(const void *data, int64_t k, const double *p, double *v)
{
    const int64_t n = *(const int64_t *)data;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t c = 0; c < k; c++)
            v[j * k + c] = p[j * k + c] / (1 + (double)j / (double)n);
    }
}

static void preconditioned(void)
{
    frg_context *ctx = test_context();
    panel d = panel_usual();
    const frg_demean_opts o = panel_options();
    double *want = panel_zeros(d.n * d.p, sizeof *want), *r = panel_zeros(d.n * d.p, sizeof *r);
    frg_demean_column columns[3], plain[3];
    plan p;
    CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
    CHECK_OK(ctx, plan_run(&p, ctx, &d, want, plain));
    frgi_fe_row_lsmr_precondition(p.f, plain_precond, &p.rows.n_reduced);
    CHECK_OK(ctx, plan_run(&p, ctx, &d, r, columns));
    for (int c = 0; c < d.p; c++) {
        CHECK(columns[c].status == FRG_OK && columns[c].iterations > 0);
        CHECK(panel_norm(&d, r + c * d.n, want + c * d.n) <= 1e-9 * panel_norm(&d, d.x, NULL));
        /* eta and the bound differ by 1 / sqrt(lambda): the same lambda, whatever P */
        CHECK_NEAR(log(columns[c].error_bound / columns[c].gradient),
                   log(plain[c].error_bound / plain[c].gradient), 1);
    }
    plan_close(&p, ctx);
    free(want);
    free(r);
    panel_free(&d);
    frg_context_destroy(ctx);
}

/* ---- ranks too large for elimination --------------------------------------------------------- */

/** Connected factors with their intercepts and the same slope: one redundancy for each column
 *  kind. */
static void rank_bound(void)
{
    frg_context *ctx = test_context();
    panel d = panel_make(40000, 2, 1);
    panel_random_codes(&d, (const int64_t[]){1700, 1650});
    add_slopes(&d, 2, (const int[]){0, 1}, 0);
    const frg_demean_opts o = panel_options();
    int64_t rank;
    const char *method;
    plan p;
    for (int same = 0; same < 2; same++) {
        if (same)
            d.slopes[1].z = d.slopes[0].z;
        CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
        CHECK_INT(frgi_fe_row_lsmr_levels(p.f), 2 * (1700 + 1650));
        CHECK_OK(ctx, frgi_fe_row_lsmr_rank(p.f, ctx, 1e6, &rank, &method));
        CHECK_TEXT(method, "bound");
        CHECK_INT(rank, 2 * (1700 + 1650) - 1 - same);
        plan_close(&p, ctx);
    }
    panel_free(&d);
    frg_context_destroy(ctx);
}

/* ---- bad input, memory ----------------------------------------------------------------------- */

static void bad_input(void)
{
    frg_context *ctx = test_context();
    panel d = sloped_panel(2);
    const frg_demean_opts o = panel_options();
    plan p;
    d.slopes[1].factor = 2;
    CHECK_STATUS(plan_open(&p, ctx, &d, &o), FRG_BAD_ARG);
    d.slopes[1].factor = 0;
    d.no_intercept = 2; /* the second factor has no slope now */
    CHECK_STATUS(plan_open(&p, ctx, &d, &o), FRG_BAD_ARG);
    d.no_intercept = 4;
    CHECK_STATUS(plan_open(&p, ctx, &d, &o), FRG_BAD_ARG);
    d.no_intercept = 0;
    d.slope_values[d.n + 7] = (double)INFINITY;
    CHECK_STATUS(plan_open(&p, ctx, &d, &o), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "slope 2, row 8"));
    d.slope_values[d.n + 7] = 0;
    CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
    double *r = panel_zeros(2 * d.n, sizeof *r), *zeros = panel_zeros(2 * d.n, sizeof *zeros);
    frg_demean_column columns[2];
    static const double bad[] = {(double)NAN, -(double)INFINITY, 1e151};
    for (int k = 0; k < 3; k++) {
        d.x[d.n + 4] = bad[k];
        CHECK_STATUS(plan_run(&p, ctx, &d, r, columns), FRG_BAD_DATA);
        CHECK(strstr(frg_message(ctx), "column 2, row 5"));
        CHECK_BITS(r, zeros, (size_t)(2 * d.n) * sizeof *r);
    }
    CHECK_STATUS(frgi_fe_row_lsmr_effects(p.f, 2, r), FRG_BAD_ARG);
    plan_close(&p, ctx);
    free(r);
    free(zeros);
    panel_free(&d);
    frg_context_destroy(ctx);
}

static frg_status fault_run(frg_context *ctx, void *user, uint64_t *hash)
{
    const panel *d = user;
    const frg_demean_opts o = panel_options();
    double *r = panel_zeros(d->n * d->p, sizeof *r);
    frg_demean_column columns[2];
    plan p;
    frg_status s = plan_open(&p, ctx, d, &o);
    if (s >= 0) {
        int64_t rank;
        const char *method;
        s = plan_run(&p, ctx, d, r, columns);
        if (s >= 0)
            s = frgi_fe_row_lsmr_rank(p.f, ctx, 1e9, &rank, &method);
        if (s >= 0)
            fault_hash(hash, r, (size_t)(d->n * d->p) * sizeof *r);
        plan_close(&p, ctx);
    }
    free(r);
    return s;
}

static void failing_memory(void)
{
    panel d = panel_make(300, 2, 2);
    panel_random_codes(&d, (const int64_t[]){20, 7});
    add_slopes(&d, 2, (const int[]){0, 1}, 1);
    CHECK(fault_sweep("sloped", fault_run, &d, 1) > 8);
    panel_free(&d);
}

/** The second run of a shape takes no memory. */
static void second_run(void)
{
    fault_memory m;
    fault_memory_open(&m);
    frg_context *ctx = test_context_with(2, &m.table, NULL);
    panel d = sloped_panel(3);
    const frg_demean_opts o = panel_options();
    double *r = panel_zeros(d.n * d.p, sizeof *r);
    frg_demean_column columns[3];
    plan p;
    CHECK_OK(ctx, plan_open(&p, ctx, &d, &o));
    CHECK_OK(ctx, plan_run(&p, ctx, &d, r, columns));
    m.fail_at = m.calls + 1;
    m.fail_from = true;
    CHECK_OK(ctx, plan_run(&p, ctx, &d, r, columns));
    CHECK_INT(m.injected, 0);
    CHECK(frgi_fe_row_lsmr_bytes(p.f) > (size_t)d.n * 2 * sizeof(double));
    CHECK((int64_t)frgi_fe_row_lsmr_bytes(p.f) <= m.live_bytes);
    m.fail_at = 0;
    plan_close(&p, ctx);
    free(r);
    panel_free(&d);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"intercept and slope of each level", intercept_and_slope},
    {"slope of each level", slope_alone},
    {"slopes that are constant or zero", degenerate_slopes},
    {"orthonormal columns", orthonormal},
    {"Ritz values", ritz_values},
    {"random designs against the oracle", random_designs},
    {"the same bits", same_bits},
    {"scales and strides", scales_and_strides},
    {"floats", floats},
    {"floats of one factor", floats_of_one_factor},
    {"stops", stops},
    {"preconditioned", preconditioned},
    {"rank too large to eliminate", rank_bound},
    {"bad input", bad_input},
    {"failing memory", failing_memory},
    {"second run", second_run},
};
TEST_MAIN(cases)
