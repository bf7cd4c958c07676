/* test_vcov_dense.c - covariances against dense ones: dummies orthonormalised in quadruple
 * precision (tests/oracle), M = sum_ij K_ij s_i s_j' by the double sum over all pairs of rows, the
 * hat matrix by projecting every unit vector.
 *
 * Tolerance: the designs' X~'WX~ and D'WD have conditions below 1e5, and the demeaner's tol is
 * 1e-13, so that entries are right to 1e-9 of sqrt(V_ii V_jj) of the sum of all terms' sizes; a
 * wrong weight, lag or factor changes 1e-3 of it. */
#include "fourge/fe.h"
#include "linalg/small.h"
#include "oracle/oracle.h"
#include "test.h"

enum { N = 72, K_MAX = 3 };
static const double TOLERANCE = 1e-9;

typedef struct {
    int64_t a[N], b[N], unit[N], time[N];
    double y[N], x[N], z[N], w[N], u[N];
    frg_table *table;
} design;

/** An unbalanced panel of 12 units and 9 periods (no pair twice), effects a (of 5) and b (of 4)
 *  beside them. */
static void draw(design *d, frg_context *ctx)
{
    int64_t cells[108];
    for (int i = 0; i < 108; i++)
        cells[i] = i;
    for (int i = 0; i < N; i++) {
        const int64_t at = i + test_below(108 - i), cell = cells[at];
        cells[at] = cells[i];
        d->unit[i] = cell / 9;
        d->time[i] = (cell % 9) * (cell % 9) + 1960; /* unequal gaps: ranks count */
        d->a[i] = test_below(5);
        d->b[i] = test_below(4);
        d->x[i] = test_normal() + (double)d->a[i];
        d->z[i] = test_normal() + 0.3 * (double)(cell % 9);
        d->w[i] = (double)(1 + test_below(3));
        d->u[i] = test_normal();
        d->y[i] = d->x[i] + (1 + 0.2 * (double)d->b[i]) * test_normal();
    }
    CHECK_OK(ctx, frg_table_create(&d->table, ctx, N));
    CHECK_OK(ctx, frg_table_add_integers(d->table, "a", d->a));
    CHECK_OK(ctx, frg_table_add_integers(d->table, "b", d->b));
    CHECK_OK(ctx, frg_table_add_integers(d->table, "unit", d->unit));
    CHECK_OK(ctx, frg_table_add_integers(d->table, "time", d->time));
    CHECK_OK(ctx, frg_table_add_numbers(d->table, "y", d->y));
    CHECK_OK(ctx, frg_table_add_numbers(d->table, "x", d->x));
    CHECK_OK(ctx, frg_table_add_numbers(d->table, "z", d->z));
    CHECK_OK(ctx, frg_table_add_numbers(d->table, "w", d->w));
    CHECK_OK(ctx, frg_table_add_numbers(d->table, "u", d->u));
}

/** A model by the dense way. effects: 0, | a, | a + b, | a[u]. */
typedef struct {
    int k;
    double ones[N], weights[N];
    double columns[K_MAX * N], tilde[K_MAX * N]; /* X, X~ */
    double scores[N][K_MAX];
    double hat[N * N]; /* W^(1/2) [D X]: its projection */
    oracle *o;
    oracle_fit fit;
} model;

/** The model without the rows of cluster g; cluster NULL: of all rows. */
static bool solve_without(model *m, const design *d, int effects, bool weighted,
                          const int64_t *cluster, int64_t g)
{
    int32_t codes[2 * N];
    double y[N], u[N];
    int n = 0;
    m->k = effects ? 2 : 3;
    const int factors = effects == 3 ? 1 : effects;
    for (int i = 0; i < N; i++) {
        if (cluster && cluster[i] == g)
            continue;
        for (int q = 0; q < factors; q++)
            codes[n * factors + q] = (int32_t)(q ? d->b[i] : d->a[i]);
        y[n] = d->y[i];
        u[n] = d->u[i];
        m->ones[n] = 1;
        m->weights[n++] = weighted ? d->w[i] : 1;
    }
    for (int j = 0; j < m->k; j++) {
        int at = 0;
        for (int i = 0; i < N; i++)
            if (!cluster || cluster[i] != g)
                m->columns[j * n + at++] = m->k == 3 && j == 0 ? 1
                                           : j == m->k - 2     ? d->x[i]
                                                               : d->z[i];
    }
    const int slope_factor = 0;
    const double *const slope = u;
    m->o = oracle_create(&(oracle_design){.n = n,
                                          .n_factors = factors,
                                          .codes = codes,
                                          .weights = m->weights,
                                          .n_slopes = effects == 3,
                                          .slope_factor = &slope_factor,
                                          .slope = &slope});
    for (int j = 0; j < m->k; j++)
        oracle_demean(m->o, m->columns + j * n, m->tilde + j * n);
    return oracle_regress(m->o, y, m->columns, m->k, &m->fit);
}

static bool solve(model *m, const design *d, int effects, bool weighted)
{
    if (!CHECK(solve_without(m, d, effects, weighted, NULL, 0)))
        return false;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < m->k; j++)
            m->scores[i][j] = m->weights[i] * m->fit.residuals[i] * m->tilde[j * N + i];
    return true;
}

static void release(model *m)
{
    oracle_fit_free(&m->fit);
    oracle_destroy(m->o);
}

/** v += factor B (sum_ij K_ij s_i s_j') B, gross += the same of absolute values. */
static void sandwich(const model *m, const double *kernel, double factor, double *v, double *gross)
{
    double meat[9] = {0}, size[9] = {0};
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int p = 0; p < m->k; p++)
                for (int q = 0; q < m->k; q++) {
                    const double term = kernel[i * N + j] * m->scores[i][p] * m->scores[j][q];
                    meat[p * 3 + q] += term;
                    size[p * 3 + q] += fabs(term);
                }
    const double *const B = m->fit.bread;
    for (int p = 0; p < m->k; p++)
        for (int q = 0; q < m->k; q++)
            for (int r = 0; r < m->k; r++)
                for (int s = 0; s < m->k; s++) {
                    const double left = B[p * m->k + r], right = B[s * m->k + q];
                    v[p * 3 + q] += factor * left * meat[r * 3 + s] * right;
                    gross[p * 3 + q] += fabs(factor * left * size[r * 3 + s] * right);
                }
}

static const char *const formulas[] = {"y ~ x + z", "y ~ x + z | a", "y ~ x + z | a + b",
                                       "y ~ x + z | a[u]"};

static const frg_fe_vcov *ask(frg_fe **f, frg_context *ctx, const design *d, int effects,
                              bool weighted, const char *spec, const char *ssc)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = spec;
    o.ssc = ssc;
    o.weights = weighted ? "w" : NULL;
    o.keep_singletons = 1;
    o.demean.tol = 1e-13;
    *f = NULL;
    const bool fitted = CHECK_OK(ctx, frg_fe_fit(f, ctx, formulas[effects], d->table, &o));
    return fitted ? &frg_fe_get(*f)->vcov[0] : NULL;
}

static void compare(const frg_fe_vcov *v, int k, const double *want, const double *gross,
                    const char *what)
{
    for (int p = 0; p < k && !v->projected; p++)
        for (int q = 0; q < k; q++) {
            const double scale = sqrt(gross[p * 3 + p] * gross[q * 3 + q]);
            CHECK_SAYS(fabs(v->matrix[p * k + q] - want[p * 3 + q]) <= TOLERANCE * scale,
                       "%s (%d, %d): %.15g, expected %.15g", what, p, q, v->matrix[p * k + q],
                       want[p * 3 + q]);
        }
    if (v->projected) {
        bool negative = false;
        for (int p = 0; p < k; p++)
            negative |= want[p * 3 + p] <= 1e-9 * gross[p * 3 + p];
        CHECK_SAYS(negative, "%s: projected without a negative variance", what);
    }
}

/* ---- panels ---------------------------------------------------------------------------------- */

static int rank_of(const design *d, int i)
{
    int rank = 0;
    while (1960 + rank * rank != d->time[i])
        rank++;
    return rank;
}

static int periods(const design *d)
{
    bool seen[9] = {false};
    int count = 0;
    for (int i = 0; i < N; i++) {
        count += !seen[rank_of(d, i)];
        seen[rank_of(d, i)] = true;
    }
    return count;
}

/** K_ij of the three kinds by their definition. */
static void panel_kernel(const design *d, char kind, int lag, double *kernel)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            const int apart = abs(rank_of(d, i) - rank_of(d, j));
            const double bartlett = apart <= lag ? 1 - apart / (lag + 1.0) : 0;
            const bool same = d->unit[i] == d->unit[j];
            kernel[i * N + j] = kind == 'n'   ? same * bartlett
                                : kind == 'd' ? bartlett
                                              : same + bartlett - same * bartlett;
        }
}

static void panel_case(const design *d, frg_context *ctx, int effects, bool weighted)
{
    static const struct {
        const char *spec;
        char kind;
        int lag; /* -1: floor(9^(1/4)) = 1 */
    } table[] = {
        {"nw=unit,time", 'n', -1},  {"NW = unit, time, lag=3", 'n', 3},
        {"nw=unit,time,0", 'n', 0}, {"dk=time,2", 'd', 2},
        {"dk=time,40", 'd', 40},    {"hac=unit,time,2", 'h', 2},
    };
    static double kernel[N * N];
    static model m;
    if (!solve(&m, d, effects, weighted))
        return;
    const int T = periods(d);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const int lag = table[i].lag < 0 ? 1 : table[i].lag;
        double want[9] = {0}, gross[9] = {0};
        frg_fe *f;
        const frg_fe_vcov *const v =
            ask(&f, ctx, d, effects, weighted, table[i].spec, i % 2 ? "adj=false" : "G.adj=false");
        if (!v)
            continue;
        const int least =
            table[i].kind == 'h' && v->cluster_count[0] < T ? (int)v->cluster_count[0] : T;
        const double K = (double)m.k + (double)oracle_rank(m.o);
        panel_kernel(d, table[i].kind, lag, kernel);
        sandwich(&m, kernel, i % 2 ? least / (least - 1.0) : (N - 1) / (N - K), want, gross);
        compare(v, m.k, want, gross, table[i].spec);
        CHECK_INT(v->df_t, least - 1);
        CHECK_INT(v->lag, lag);
        CHECK_TEXT(v->kernel, "bartlett");
        frg_fe_destroy(f);
    }
    release(&m);
}

static void panels(void)
{
    for (int s = 0; s < test_size(50, 2); s++) {
        frg_context *const ctx = test_context();
        design d;
        draw(&d, ctx);
        panel_case(&d, ctx, s % 3, s % 2);
        frg_table_destroy(d.table);
        frg_context_destroy(ctx);
    }
}

/* ---- leverages ------------------------------------------------------------------------------- */

/** Every unit vector projected: W^(1/2) D G^+ D' W^(1/2) + W^(1/2) X~ B X~' W^(1/2). */
static void fill_hat(model *m)
{
    for (int i = 0; i < N; i++) {
        double unit[N] = {0}, r[N];
        unit[i] = 1;
        oracle_demean(m->o, unit, r);
        for (int j = 0; j < N; j++) {
            double h = (unit[j] - r[j]) / m->weights[i];
            for (int p = 0; p < m->k; p++)
                for (int q = 0; q < m->k; q++)
                    h += m->tilde[p * N + i] * m->fit.bread[p * m->k + q] * m->tilde[q * N + j];
            m->hat[i * N + j] = h * sqrt(m->weights[i] * m->weights[j]);
        }
    }
}

static void leverage_case(const design *d, frg_context *ctx, int effects, bool weighted)
{
    static double kernel[N * N];
    static model m;
    if (!solve(&m, d, effects, weighted))
        return;
    fill_hat(&m);
    double most = 0;
    for (int power = 1; power <= 2; power++) {
        double want[9] = {0}, gross[9] = {0};
        memset(kernel, 0, sizeof kernel);
        for (int i = 0; i < N; i++) {
            const double left = 1 - m.hat[i * N + i];
            most = fmax(most, m.hat[i * N + i]);
            kernel[i * N + i] = left < 1e-9 ? 0 : power == 1 ? 1 / left : 1 / (left * left);
        }
        sandwich(&m, kernel, 1, want, gross);
        frg_fe *f;
        const frg_fe_vcov *v =
            ask(&f, ctx, d, effects, weighted, power == 1 ? "hc2" : "HC3, leverage=exact", NULL);
        if (v) {
            compare(v, m.k, want, gross, power == 1 ? "hc2" : "hc3");
            CHECK_NEAR(v->leverage_max, most, 1e-9);
            CHECK_TEXT(v->leverage, "exact");
            CHECK_TEXT(v->ssc, "adj=false,fixef=nonnested,cluster.adj=false,cluster.df=min,"
                               "t.df=min");
            CHECK_INT(v->df_t, N - m.k - oracle_rank(m.o));
            if (power == 1 &&
                CHECK_OK(ctx, frg_fe_vcov_add(f, "hc3,leverage=approx,draws=3000", NULL, &v))) {
                /* normal but for terms of 1 / R: 8 standard errors are never met; the largest of
                 * 72 estimates is above the largest leverage by 3 of them at most, or below by 8 */
                CHECK(fabs(v->leverage_max - most) <= 8 * v->leverage_error);
                CHECK_INT(v->reps, 3000);
                CHECK(v->leverage_error > 0 && v->leverage_error < 0.02);
            }
        }
        frg_fe_destroy(f);
    }
    release(&m);
}

static void leverages(void)
{
    for (int s = 0; s < test_size(50, 2); s++) {
        frg_context *const ctx = test_context();
        design d;
        draw(&d, ctx);
        leverage_case(&d, ctx, s % 4, s % 3 == 0);
        frg_table_destroy(d.table);
        frg_context_destroy(ctx);
    }
}

/* ---- clusters left out ----------------------------------------------------------------------- */

/** V = factor sum_g (b_(g) - b)(b_(g) - b)' by as many regressions. */
static void refit(const model *m, const design *d, int effects, bool weighted,
                  const int64_t *cluster, int64_t most, double *v, int *G)
{
    static model part;
    *G = 0;
    for (int64_t g = 0; g <= most; g++) {
        int rows = 0;
        for (int i = 0; i < N; i++)
            rows += cluster[i] == g;
        if (rows == 0)
            continue;
        ++*G;
        if (!CHECK(solve_without(&part, d, effects, weighted, cluster, g)))
            return;
        for (int p = 0; p < m->k; p++)
            for (int q = 0; q < m->k; q++)
                v[p * 3 + q] +=
                    (part.fit.beta[p] - m->fit.beta[p]) * (part.fit.beta[q] - m->fit.beta[q]);
        release(&part);
    }
}

/** p_g = (I - H)_.g A_g W^(1/2) X~_g B c and the adjusted score of cluster g, A_g =
 *  (I - H_gg)^(+1/2) from the eigenvectors of its block. */
static void adjust(const model *m, const int64_t *cluster, int64_t g, double *score,
                   double p[K_MAX][N])
{
    int rows[N], n = 0;
    static double block[N * N], values[N], vectors[N * N], A[N * N];
    for (int i = 0; i < N; i++)
        if (cluster[i] == g)
            rows[n++] = i;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            block[i * n + j] = (i == j) - m->hat[rows[i] * N + rows[j]];
    frgi_eigen(n, block, values, vectors);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            A[i * n + j] = 0;
            for (int l = 0; l < n; l++)
                if (values[l] > 1e-9)
                    A[i * n + j] += vectors[l * n + i] * vectors[l * n + j] / sqrt(values[l]);
        }
    memset(p, 0, sizeof(double) * K_MAX * N);
    for (int c = 0; c < m->k; c++) {
        double bx[N], abx[N];
        score[c] = 0;
        for (int j = 0; j < n; j++) {
            bx[j] = 0;
            for (int q = 0; q < m->k; q++)
                bx[j] += m->tilde[q * N + rows[j]] * m->fit.bread[q * m->k + c] *
                         sqrt(m->weights[rows[j]]);
        }
        for (int i = 0; i < n; i++) {
            double e = 0;
            abx[i] = 0;
            for (int j = 0; j < n; j++) {
                abx[i] += A[i * n + j] * bx[j];
                e += A[i * n + j] * sqrt(m->weights[rows[j]]) * m->fit.residuals[rows[j]];
            }
            score[c] += sqrt(m->weights[rows[i]]) * m->tilde[c * N + rows[i]] * e;
        }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < n; j++)
                p[c][i] += ((i == rows[j]) - m->hat[i * N + rows[j]]) * abx[j];
    }
}

static void check_cr2(model *m, const frg_fe_vcov *v, const int64_t *cluster, int64_t most)
{
    static double p[12][K_MAX][N];
    double want[9] = {0}, score[12][K_MAX];
    int G = 0;
    fill_hat(m);
    for (int64_t g = 0; g <= most; g++) {
        bool there = false;
        for (int i = 0; i < N; i++)
            there |= cluster[i] == g;
        if (there)
            adjust(m, cluster, g, score[G], p[G]), G++;
    }
    const int k = m->k;
    const double *const B = m->fit.bread;
    for (int g = 0; g < G; g++)
        for (int a = 0; a < k; a++)
            for (int b = 0; b < k; b++)
                for (int c = 0; c < k; c++)
                    for (int e = 0; e < k; e++)
                        want[a * 3 + b] += B[a * k + c] * score[g][c] * score[g][e] * B[e * k + b];
    compare(v, k, want, want, "cr2");
    for (int c = 0; c < k && CHECK(v->df); c++) {
        double trace = 0, square = 0;
        for (int g = 0; g < G; g++)
            for (int h = 0; h < G; h++) {
                double dot = 0;
                for (int i = 0; i < N; i++)
                    dot += p[g][c][i] * p[h][c][i];
                trace += g == h ? dot : 0;
                square += dot * dot;
            }
        CHECK_NEAR(v->df[c], trace * trace / square, 1e-7);
    }
}

static void left_out_case(const design *d, frg_context *ctx, int effects, bool weighted,
                          bool nested)
{
    static model m;
    static const struct {
        const char *kind;
        int factor; /* 0: 1; 1: (G - 1) / G; 2: G / (G - 1) (n - 1) / (n - K) */
    } table[] = {{"cr3", 0}, {"jackknife", 1}, {"crv3", 2}, {"cr2", 0}};
    const int64_t *const cluster = nested ? d->a : d->unit;
    if (!solve(&m, d, effects, weighted))
        return;
    for (int i = 0; i < 4; i++) {
        char spec[40];
        frg_fe *f;
        double want[9] = {0};
        int G = 0;
        snprintf(spec, sizeof spec, "%s=%s", table[i].kind, nested ? "a" : "unit");
        const frg_fe_vcov *const v = ask(&f, ctx, d, effects, weighted, spec, "fixef=full");
        if (v && i == 3) {
            check_cr2(&m, v, cluster, 11);
        } else if (v) {
            refit(&m, d, effects, weighted, cluster, 11, want, &G);
            const double K = (double)m.k + (double)oracle_rank(m.o);
            const double factor = table[i].factor == 1   ? (G - 1.0) / G
                                  : table[i].factor == 2 ? G / (G - 1.0) * (N - 1) / (N - K)
                                                         : 1;
            for (int j = 0; j < 9; j++)
                want[j] *= factor;
            compare(v, m.k, want, want, spec);
            CHECK_INT(v->df_t, G - 1);
        }
        frg_fe_destroy(f);
    }
    release(&m);
}

static void left_out(void)
{
    for (int s = 0; s < test_size(50, 2); s++) {
        frg_context *const ctx = test_context();
        design d;
        draw(&d, ctx);
        const bool nested = s % 2; /* slopes go with clusters that nest them */
        left_out_case(&d, ctx, nested ? s % 4 : s % 3, s % 5 == 0, nested);
        frg_table_destroy(d.table);
        frg_context_destroy(ctx);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

/** Haversine in long double, of a sphere of 6371 km. */
static double kilometres(double lat1, double lon1, double lat2, double lon2)
{
    const long double degree = acosl(-1) / 180;
    const long double a = sinl((lat2 - lat1) * degree / 2), b = sinl((lon2 - lon1) * degree / 2);
    const long double h = a * a + cosl(lat1 * degree) * cosl(lat2 * degree) * b * b;
    return (double)(2 * 6371 * asinl(sqrtl(h < 1 ? h : 1)));
}

/** Points around a centre anywhere, poles and the date line included, and cutoffs from a part of
 *  their spread to all of the globe. */
static void place_case(design *d, frg_context *ctx, int effects, bool weighted)
{
    static double kernel[N * N], lat[N], lon[N];
    static model m;
    const double spread = pow(10, 3 * test_uniform() - 1), north = 180 * test_uniform() - 90,
                 east = 540 * test_uniform() - 180;
    for (int i = 0; i < N; i++) {
        lat[i] = fmax(-90, fmin(90, north + spread * (test_uniform() - 0.5)));
        lon[i] = east + 3 * spread * (test_uniform() - 0.5);
        lon[i] -= 360 * floor((lon[i] + 180) / 360);
        if (i % 7 == 6) { /* some stand in one place */
            lat[i] = lat[i - 1];
            lon[i] = lon[i - 1];
        }
        lon[i] += lon[i] < 0 && i % 2 ? 360 : 0; /* 0 .. 360 is as good */
    }
    CHECK_OK(ctx, frg_table_add_numbers(d->table, "lat", lat));
    CHECK_OK(ctx, frg_table_add_numbers(d->table, "lon", lon));
    if (!solve(&m, d, effects, weighted))
        return;
    for (int kind = 0; kind < 4; kind++) {
        /* between 2 % of the spread, 111 km a degree, and 20 times it */
        const double km = fmin(20000, 111 * spread * 0.02 * pow(1000, test_uniform()));
        double want[9] = {0}, gross[9] = {0};
        char spec[100];
        frg_fe *f;
        snprintf(spec, sizeof spec, "conley=lat,lon,%.17g,kernel=%s", km,
                 kind % 2 ? "bartlett" : "uniform");
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                const double apart = kilometres(lat[i], lon[i], lat[j], lon[j]);
                kernel[i * N + j] = apart > km ? 0 : kind % 2 ? 1 - apart / km : 1;
            }
        sandwich(&m, kernel, 1, want, gross);
        const frg_fe_vcov *const v =
            ask(&f, ctx, d, effects, weighted, spec, "adj=false,cluster.adj=false");
        if (v) {
            compare(v, m.k, want, gross, spec);
            CHECK_NEAR(v->cutoff, km, 1e-15);
            CHECK_TEXT(v->kernel, kind % 2 ? "bartlett" : "uniform");
            CHECK_INT(v->df_t, N - m.k - oracle_rank(m.o));
        }
        frg_fe_destroy(f);
    }
    release(&m);
}

static void places(void)
{
    for (int s = 0; s < test_size(50, 2); s++) {
        frg_context *const ctx = test_context();
        design d;
        draw(&d, ctx);
        place_case(&d, ctx, s % 3, s % 2);
        frg_table_destroy(d.table);
        frg_context_destroy(ctx);
    }
}

/* ---- the wild bootstrap ---------------------------------------------------------------------- */

/** What a draw multiplies the residuals of a cluster by. */
typedef double redraw(const frg_context *ctx, int draw, int64_t cluster);

static double sign_of(const frg_context *ctx, int draw, int64_t cluster)
{
    (void)ctx;
    return draw >> cluster & 1 ? -1 : 1;
}

/** Webb (2014): six points of equal probability. */
static double webb_of(const frg_context *ctx, int draw, int64_t cluster)
{
    double u[2];
    frgi_uniforms(frg_seed(ctx), 0x77696c64, (uint64_t)draw, (uint64_t)(cluster / 2), u);
    const int at = (int)(6 * u[cluster % 2]);
    return at < 3 ? -sqrt((3 - at) / 2.0) : sqrt((at - 2) / 2.0);
}

/** Mammen (1993): E v = 0, E v^2 = E v^3 = 1. */
static double mammen_of(const frg_context *ctx, int draw, int64_t cluster)
{
    double u[2];
    frgi_uniforms(frg_seed(ctx), 0x77696c64, (uint64_t)draw, (uint64_t)(cluster / 2), u);
    const double golden = (1 + sqrt(5)) / 2;
    return u[cluster % 2] < golden / sqrt(5) ? 1 - golden : golden;
}

/** p of b_c = b0 by `draws` draws: each a regression of the redrawn residuals by the hat matrix,
 *  and the errors of its own residuals. */
static double drawn_p(const frg_context *ctx, redraw *of, int draws, const model *m,
                      const int64_t *code, int G, int c, double b0)
{
    const int k = m->k;
    const double *const B = m->fit.bread;
    double e[N], x[N], t0 = 0;
    int above = 0;
    for (int i = 0; i < N; i++) {
        x[i] = 0; /* W^(1/2) X~ B c */
        for (int p = 0; p < k; p++)
            x[i] += sqrt(m->weights[i]) * m->tilde[p * N + i] * B[p * k + c];
        e[i] =
            sqrt(m->weights[i]) * m->fit.residuals[i] + x[i] * (m->fit.beta[c] - b0) / B[c * k + c];
    }
    for (int draw = 0; draw <= draws; draw++) { /* the first is the sample itself */
        double redrawn[N], score[12] = {0}, b = 0, v = 0;
        for (int i = 0; i < N; i++) {
            redrawn[i] = draw > 0 ? of(ctx, draw - 1, code[i]) * e[i] : e[i];
            b += x[i] * redrawn[i];
        }
        for (int i = 0; i < N; i++) {
            double r = redrawn[i];
            for (int j = 0; j < N; j++)
                r -= m->hat[i * N + j] * redrawn[j];
            score[code[i]] += x[i] * r;
        }
        for (int g = 0; g < G; g++)
            v += score[g] * score[g];
        if (draw == 0)
            t0 = b * b / v;
        else
            above += b * b / v >= t0 * (1 - 1e-9);
    }
    return above / (double)draws;
}

/** By every vector of signs. */
static double wild_p(const model *m, const int64_t *code, int G, int c, double b0)
{
    return drawn_p(NULL, sign_of, 1 << G, m, code, G, c, b0);
}

static void wild_case(const design *d, frg_context *ctx, int effects, bool weighted, bool nested)
{
    static model m;
    int64_t code[N], seen[12] = {0}, place[12];
    int G = 0;
    /* seven clusters of two units each, or the levels of the effect */
    for (int i = 0; i < N; i++) {
        const int64_t of = nested ? d->a[i] : d->unit[i] / 2;
        if (!seen[of])
            place[of] = G++, seen[of] = 1;
        code[i] = place[of];
    }
    CHECK_OK(ctx, frg_table_add_integers(d->table, "cl", code));
    if (!solve(&m, d, effects, weighted))
        return;
    fill_hat(&m);
    frg_fe *f;
    const frg_fe_vcov *const v = ask(&f, ctx, d, effects, weighted, "wild=cl,999", NULL);
    const frg_fe_vcov *plain = NULL;
    if (v && CHECK_OK(ctx, frg_fe_vcov_add(f, "cluster=cl", NULL, &plain))) {
        CHECK_INT(v->reps, 1 << G);
        CHECK_TEXT(v->weights, "rademacher");
        for (int c = 0; c < m.k; c++) {
            const frg_coefficient *const q = &v->coefficients[c];
            const double wide = 1e-6 * q->std_error, two = 2.5 / (1 << G);
            CHECK_NEAR(q->std_error, plain->coefficients[c].std_error, 1e-14);
            CHECK_SAYS(fabs(q->p_value - wild_p(&m, code, G, c, 0)) < two, "%d: p %g, expected %g",
                       c, q->p_value, wild_p(&m, code, G, c, 0));
            if (isfinite(q->conf_low)) { /* a pair of draws may be on either side */
                CHECK(wild_p(&m, code, G, c, q->conf_low + wide) > 0.05 - two);
                CHECK(wild_p(&m, code, G, c, q->conf_low - wide) <= 0.05 + two);
            }
            if (isfinite(q->conf_high)) {
                CHECK(wild_p(&m, code, G, c, q->conf_high - wide) > 0.05 - two);
                CHECK(wild_p(&m, code, G, c, q->conf_high + wide) <= 0.05 + two);
            }
            CHECK(q->conf_low < q->estimate && q->conf_high > q->estimate);
        }
        /* other weights, by the same random numbers; a draw may be on either side */
        const frg_fe_vcov *other;
        static const char *const specs[] = {"wild=cl,199,weights=webb",
                                            "wild=cl,199,weights=mammen"};
        static redraw *const weights[] = {webb_of, mammen_of};
        for (int i = 0; i < 2; i++)
            if (CHECK_OK(ctx, frg_fe_vcov_add(f, specs[i], NULL, &other)))
                for (int c = 0; c < m.k; c++)
                    CHECK_NEAR(other->coefficients[c].p_value,
                               drawn_p(ctx, weights[i], 199, &m, code, G, c, 0), 1.5 / 199);
    }
    frg_fe_destroy(f);
    release(&m);
}

static void wild(void)
{
    for (int s = 0; s < test_size(12, 2); s++) {
        frg_context *const ctx = test_context();
        design d;
        draw(&d, ctx);
        wild_case(&d, ctx, s % 3, s % 2, s % 4 == 3);
        frg_table_destroy(d.table);
        frg_context_destroy(ctx);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

/** Every kind has the same bits for one and for three threads. */
static void threads(void)
{
    enum { MANY = 40000 };
    static const char *const specs[] = {"nw=unit,time,3",
                                        "dk=time",
                                        "hac=unit,time",
                                        "hc2",
                                        "hc3,leverage=approx,draws=33",
                                        "cr2=firm",
                                        "cr3=firm",
                                        "wild=firm,199",
                                        "conley=lat,lon,300",
                                        "conley=lat,lon,300,kernel=bartlett"};
    enum { SPECS = sizeof specs / sizeof *specs };
    static double lat[MANY], lon[MANY], y[MANY], x[MANY];
    static int64_t unit[MANY], time[MANY], firm[MANY];
    const int n = (int)test_size(MANY, 600);
    for (int i = 0; i < n; i++) {
        unit[i] = i / 8;
        time[i] = i % 8;
        firm[i] = i / 8 % 37;
        lat[i] = 30 + 20 * test_uniform();
        lon[i] = 50 * test_uniform();
        x[i] = test_normal();
        y[i] = x[i] + test_normal();
    }
    double first[SPECS][3];
    for (int many = 1; many <= 3; many += 2) {
        frg_context *const ctx = test_context_with(many, NULL, NULL);
        frg_table *data = NULL;
        CHECK_OK(ctx, frg_table_create(&data, ctx, n));
        CHECK_OK(ctx, frg_table_add_integers(data, "unit", unit));
        CHECK_OK(ctx, frg_table_add_integers(data, "time", time));
        CHECK_OK(ctx, frg_table_add_integers(data, "firm", firm));
        CHECK_OK(ctx, frg_table_add_numbers(data, "lat", lat));
        CHECK_OK(ctx, frg_table_add_numbers(data, "lon", lon));
        CHECK_OK(ctx, frg_table_add_numbers(data, "x", x));
        CHECK_OK(ctx, frg_table_add_numbers(data, "y", y));
        frg_fe *f = NULL;
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | firm + time", data, NULL));
        for (int i = 0; i < SPECS && f; i++) {
            const frg_fe_vcov *v;
            if (!CHECK_OK(ctx, frg_fe_vcov_add(f, specs[i], NULL, &v)))
                continue;
            const double got[3] = {v->matrix[0], v->coefficients[0].p_value,
                                   v->coefficients[0].conf_low};
            if (many == 1)
                memcpy(first[i], got, sizeof got);
            else
                CHECK_SAYS(memcmp(first[i], got, sizeof got) == 0,
                           "%s: %.17g, with one thread %.17g", specs[i], got[0], first[i][0]);
        }
        frg_fe_destroy(f);
        frg_table_destroy(data);
        frg_context_destroy(ctx);
    }
}

static const test_case cases[] = {{"panels", panels},     {"leverages", leverages},
                                  {"left out", left_out}, {"places", places},
                                  {"wild", wild},         {"threads", threads}};
TEST_MAIN(cases)
