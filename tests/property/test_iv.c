/* test_iv.c - two-stage least squares on random designs.
 *
 * Estimates and covariances against the definition: columns demeaned in quadruple precision
 * (oracle.h), then b = (X'P X)^-1 X'P y with P = Z (Z'Z)^-1 Z' by elimination in long double.  The
 * tests against what they are by definition in other regressions: the first stage, the reduced form
 * of y - b0 x (Anderson and Rubin), the equation with the first stages' residuals added (Wu), which
 * frg_fe_fit and frg_fe_wald compute; the rank statistic by Kleibergen and Paap's own formulas, from singular vectors.
 *
 * Tolerances.  The demeaner leaves 1e-10 of a column; first stages are drawn with a partial R2 of
 * a quarter and more, so that 1e-8 of the standard error holds for estimates, 1e-6 for errors and
 * 1e-5 for statistics that are quadratic in both.
 */
#include "fault.h"
#include "fourge/fe.h"
#include "oracle/oracle.h"
#include "test.h"

enum { ROWS = 240, MOST = 8 };

typedef struct {
    int64_t n;
    int q, e, m, l; /* effects, exogenous, endogenous, instruments */
    bool weighted;
    int64_t codes[3][ROWS], group[ROWS];
    double y[ROWS], x[MOST][ROWS], w[ROWS]; /* exogenous, endogenous, instruments */
} design;

static const char *const names[MOST] = {"x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8"};
static const char *const effects[3] = {"f1", "f2", "f3"};

static void draw(design *d)
{
    *d = (design){.n = 120 + test_below(ROWS - 120),
                  .q = (int)test_below(3),
                  .e = (int)test_below(3),
                  .m = 1 + (int)test_below(2),
                  .weighted = test_below(2)};
    d->l = d->m + (int)test_below(3);
    for (int64_t i = 0; i < d->n; i++) {
        for (int q = 0; q < 3; q++) {
            d->codes[q][i] = test_below(4 + 3 * q);
        }
        d->group[i] = test_below(15);
        d->w[i] = 0.25 + 3 * test_uniform();
        const double common = test_normal();
        d->y[i] = common + 0.7 * test_normal() + 0.2 * (double)d->codes[0][i];
        for (int j = 0; j < d->e + d->m + d->l; j++) {
            d->x[j][i] = test_normal() + 0.1 * (double)d->codes[1][i];
        }
        for (int j = d->e; j < d->e + d->m; j++) {
            d->x[j][i] += 0.5 * common + (1.2 + 0.1 * j) * d->x[j + d->m][i];
            d->y[i] += (0.5 - 0.3 * j) * d->x[j][i];
        }
        for (int j = 0; j < d->e; j++) {
            d->x[d->e][i] += 0.3 * d->x[j][i];
            d->y[i] += d->x[j][i];
        }
    }
}

static frg_table *table_of(frg_context *ctx, const design *d)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, d->n));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", d->y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "w", d->w));
    CHECK_OK(ctx, frg_table_add_integers(t, "group", d->group));
    for (int q = 0; q < 3; q++)
        CHECK_OK(ctx, frg_table_add_integers(t, effects[q], d->codes[q]));
    for (int j = 0; j < d->e + d->m + d->l; j++)
        CHECK_OK(ctx, frg_table_add_numbers(t, names[j], d->x[j]));
    return t;
}

static size_t list(char *out, size_t room, size_t at, int first, int count, bool ones)
{
    at += (size_t)snprintf(out + at, room - at, "%s", ones ? "1" : "");
    for (int j = first; j < first + count; j++)
        at +=
            (size_t)snprintf(out + at, room - at, "%s%s", ones || j > first ? " + " : "", names[j]);
    return at;
}

static size_t list_effects(const design *d, char *out, size_t room, size_t at)
{
    for (int q = 0; q < d->q; q++)
        at += (size_t)snprintf(out + at, room - at, " %s %s", q ? "+" : "|", effects[q]);
    return at;
}

/** y ~ 1 + exogenous | effects | endogenous ~ instruments */
static void formula_of(const design *d, char *out, size_t room)
{
    size_t at = (size_t)snprintf(out, room, "y ~ ");
    at = list(out, room, at, 0, d->e, true);
    at = list_effects(d, out, room, at);
    at += (size_t)snprintf(out + at, room - at, " | ");
    at = list(out, room, at, d->e, d->m, false);
    at += (size_t)snprintf(out + at, room - at, " ~ ");
    list(out, room, at, d->e + d->m, d->l, false);
}

static frg_fe_opts options_of(const design *d)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.weights = d->weighted ? "w" : NULL;
    o.keep_singletons = 1;
    o.vcov[0] = "iid";
    o.vcov[1] = "hc1";
    o.vcov[2] = "cluster=group";
    o.n_vcov = 3;
    o.demean.dof = FRG_DOF_EXACT;
    return o;
}

static void near(double got, double want, double allowed, const char *what)
{
    CHECK_SAYS(fabs(got - want) <= allowed, "%s is %.17g, expected %.17g: error %.2g > %.2g", what,
               got, want, fabs(got - want), allowed);
}

/* ---- the definition -------------------------------------------------------------------------- */

typedef long double real;

/** a (k x k) <- its inverse by elimination with pivots. */
static void invert(int k, real *a)
{
    real b[2 * MOST * MOST * 2];
    for (int i = 0; i < k; i++)
        for (int j = 0; j < 2 * k; j++)
            b[i * 2 * k + j] = j < k ? a[i * k + j] : j - k == i;
    for (int c = 0; c < k; c++) {
        int p = c;
        for (int i = c; i < k; i++)
            p = fabsl(b[i * 2 * k + c]) > fabsl(b[p * 2 * k + c]) ? i : p;
        for (int j = 0; j < 2 * k; j++) {
            const real swap = b[c * 2 * k + j];
            b[c * 2 * k + j] = b[p * 2 * k + j];
            b[p * 2 * k + j] = swap;
        }
        for (int i = 0; i < k; i++) {
            const real f = i == c ? 0 : b[i * 2 * k + c] / b[c * 2 * k + c];
            for (int j = 0; j < 2 * k && i != c; j++)
                b[i * 2 * k + j] -= f * b[c * 2 * k + j];
        }
        const real pivot = b[c * 2 * k + c];
        for (int j = 0; j < 2 * k; j++)
            b[c * 2 * k + j] /= pivot;
    }
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++)
            a[i * k + j] = b[i * 2 * k + k + j];
}

/** Columns without effects, or the mean where there are none: y, [1], exogenous, endogenous,
 *  instruments. */
typedef struct {
    double y[ROWS], x[MOST + 1][ROWS];
    double w[ROWS];
    int e, m, l; /* e with the ones */
} plain;

static void demean(const design *d, plain *p)
{
    int32_t codes[3 * ROWS];
    *p = (plain){.e = d->e + (d->q == 0), .m = d->m, .l = d->l};
    for (int64_t i = 0; i < d->n; i++) {
        p->w[i] = d->weighted ? d->w[i] : 1;
        for (int q = 0; q < d->q; q++)
            codes[i * d->q + q] = (int32_t)d->codes[q][i];
        p->x[0][i] = 1;
    }
    oracle *const o = oracle_create(&(oracle_design){
        .n = d->n, .n_factors = d->q, .codes = codes, .weights = d->weighted ? d->w : NULL});
    const int first = d->q == 0;
    for (int j = 0; j < d->e + d->m + d->l; j++)
        if (d->q)
            oracle_demean(o, d->x[j], p->x[first + j]);
        else
            memcpy(p->x[first + j], d->x[j], sizeof d->x[j]);
    if (d->q)
        oracle_demean(o, d->y, p->y);
    else
        memcpy(p->y, d->y, sizeof d->y);
    oracle_destroy(o);
}

/** b, its bread and the rows of X^; k = e + m. */
static void two_stages(const design *d, const plain *p, real *b, real *bread, real *fitted)
{
    const int k = p->e + p->m, q = p->e + p->l;
    real zz[MOST * MOST] = {0}, zx[MOST * MOST] = {0}, pi[MOST * MOST] = {0}, xy[MOST] = {0};
    const double *z[MOST + 1], *x[MOST + 1];
    for (int j = 0; j < q; j++)
        z[j] = p->x[j < p->e ? j : j + p->m];
    for (int j = 0; j < k; j++)
        x[j] = p->x[j];
    for (int64_t i = 0; i < d->n; i++)
        for (int a = 0; a < q; a++) {
            for (int c = 0; c < q; c++)
                zz[a * q + c] += (real)p->w[i] * z[a][i] * z[c][i];
            for (int c = 0; c < k; c++)
                zx[a * k + c] += (real)p->w[i] * z[a][i] * x[c][i];
        }
    invert(q, zz);
    for (int a = 0; a < q; a++)
        for (int c = 0; c < k; c++)
            for (int s = 0; s < q; s++)
                pi[a * k + c] += zz[a * q + s] * zx[s * k + c];
    memset(bread, 0, sizeof *bread * MOST * MOST);
    for (int64_t i = 0; i < d->n; i++)
        for (int c = 0; c < k; c++) {
            fitted[i * k + c] = 0;
            for (int a = 0; a < q; a++)
                fitted[i * k + c] += z[a][i] * pi[a * k + c];
        }
    for (int64_t i = 0; i < d->n; i++)
        for (int a = 0; a < k; a++) {
            for (int c = 0; c < k; c++)
                bread[a * k + c] += p->w[i] * fitted[i * k + a] * fitted[i * k + c];
            xy[a] += p->w[i] * fitted[i * k + a] * p->y[i];
        }
    invert(k, bread);
    for (int a = 0; a < k; a++) {
        b[a] = 0;
        for (int c = 0; c < k; c++)
            b[a] += bread[a * k + c] * xy[c];
    }
}

/** v (k x k) <- bread (sum of the scores' squares by group) bread, all rows alone where NULL. */
static void sandwich(const design *d, const plain *p, const real *b, const real *bread,
                     const real *fitted, const int64_t *group, real *v)
{
    const int k = p->e + p->m;
    real sums[ROWS * MOST] = {0}, meat[MOST * MOST] = {0}, half[MOST * MOST] = {0};
    for (int64_t i = 0; i < d->n; i++) {
        real e = p->y[i];
        for (int a = 0; a < k; a++)
            e -= b[a] * p->x[a][i];
        for (int a = 0; a < k; a++)
            sums[(group ? group[i] : i) * k + a] += p->w[i] * e * fitted[i * k + a];
    }
    for (int64_t i = 0; i < d->n; i++)
        for (int a = 0; a < k; a++)
            for (int c = 0; c < k; c++)
                meat[a * k + c] += sums[i * k + a] * sums[i * k + c];
    memset(v, 0, sizeof *v * MOST * MOST);
    for (int a = 0; a < k; a++)
        for (int c = 0; c < k; c++)
            for (int s = 0; s < k; s++)
                half[a * k + c] += bread[a * k + s] * meat[s * k + c];
    for (int a = 0; a < k; a++)
        for (int c = 0; c < k; c++)
            for (int s = 0; s < k; s++)
                v[a * k + c] += half[a * k + s] * bread[s * k + c];
}

static void compare(frg_context *ctx, const design *d)
{
    char formula[300];
    plain p;
    static real fitted[ROWS * MOST];
    real b[MOST], bread[MOST * MOST], v[MOST * MOST];
    frg_fe *f = NULL;
    frg_table *const t = table_of(ctx, d);
    frg_fe_opts o = options_of(d);
    o.ssc = "adj=false,cluster.adj=false";
    formula_of(d, formula, sizeof formula);
    demean(d, &p);
    two_stages(d, &p, b, bread, fitted);
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, &o))) {
        const frg_fe_result *const r = frg_fe_get(f);
        const int k = p.e + p.m;
        CHECK_INT(r->n_coefficients, k);
        for (int c = 1; c < 3; c++) {
            sandwich(d, &p, b, bread, fitted, c == 2 ? d->group : NULL, v);
            for (int a = 0; a < k; a++)
                for (int s = 0; s < k; s++) {
                    const double scale = (double)sqrtl(v[a * k + a] * v[s * k + s]);
                    near(r->vcov[c].matrix[a * k + s], (double)v[a * k + s], 2e-6 * scale,
                         r->vcov[c].spec);
                }
        }
        real rss = 0;
        for (int64_t i = 0; i < d->n; i++) {
            real e = p.y[i];
            for (int a = 0; a < k; a++)
                e -= b[a] * p.x[a][i];
            rss += p.w[i] * e * e;
        }
        near(r->rss, (double)rss, 1e-7 * (double)rss, "rss");
        for (int a = 0; a < k; a++) {
            const double se = (double)sqrtl(bread[a * k + a] * rss / (real)(d->n - 1));
            near(r->vcov[0].coefficients[a].std_error, se, 1e-6 * se, "iid");
            near(r->coefficients[a].estimate, (double)b[a], 1e-8 * ((double)fabsl(b[a]) + se),
                 "an estimate");
        }
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
}

static void designs(void)
{
    frg_context *const ctx = test_context();
    const int64_t count = test_size(200, 5);
    for (int64_t i = 0; i < count; i++) {
        design d;
        draw(&d);
        compare(ctx, &d);
    }
    frg_context_destroy(ctx);
}

/* ---- the tests by other regressions ---------------------------------------------------------- */

static frg_fe *fit(frg_context *ctx, const char *formula, const frg_table *t, const frg_fe_opts *o)
{
    frg_fe *f = NULL;
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, o));
    return f;
}

/** "left ~ 1 + exogenous + first .. first+count-1 | effects" */
static frg_fe *fit_on(frg_context *ctx, const design *d, const char *left, int first, int count,
                      const char *more, const frg_table *t, const frg_fe_opts *o)
{
    char formula[300];
    size_t at = (size_t)snprintf(formula, sizeof formula, "%s ~ ", left);
    at = list(formula, sizeof formula, at, 0, d->e, true);
    for (int j = first; j < first + count; j++)
        at += (size_t)snprintf(formula + at, sizeof formula - at, " + %s", names[j]);
    at += (size_t)snprintf(formula + at, sizeof formula - at, "%s", more);
    list_effects(d, formula, sizeof formula, at);
    return fit(ctx, formula, t, o);
}

/** The Wald test that the last `count` coefficients are 0, under covariance c. */
static frg_fe_test last_are_zero(frg_context *ctx, const frg_fe *f, int c, int count)
{
    const frg_fe_result *const r = frg_fe_get(f);
    double rows[MOST * 2 * MOST] = {0};
    frg_fe_test test = {0};
    for (int i = 0; i < count; i++)
        rows[i * r->n_coefficients + r->n_coefficients - count + i] = 1;
    CHECK_OK(ctx, frg_fe_wald(f, &r->vcov[c], rows, NULL, count, &test));
    return test;
}

static void check_first_stages(frg_context *ctx, const design *d, const frg_table *t,
                               const frg_fe_opts *o, const frg_fe_iv *iv)
{
    CHECK_INT(iv->n_endogenous, d->m);
    CHECK_INT(iv->n_instruments, d->l);
    for (int j = 0; j < d->m; j++) {
        frg_fe *const f = fit_on(ctx, d, names[d->e + j], d->e + d->m, d->l, "", t, o);
        const frg_fe_result *const r = frg_fe_get(f);
        const frg_fe_first_stage *const s = &iv->first_stages[j];
        CHECK_TEXT(s->endogenous, names[d->e + j]);
        near(s->rss, r->rss, 1e-7 * r->rss, "rss of a first stage");
        for (int i = 0; i < s->n_coefficients && CHECK_INT(s->n_coefficients, r->n_coefficients);
             i++) {
            const frg_coefficient *const want = &r->coefficients[i];
            CHECK_TEXT(s->coefficients[i].term, want->term);
            near(s->coefficients[i].estimate, want->estimate, 1e-7 * want->std_error, "pi");
            near(s->coefficients[i].std_error, want->std_error, 1e-6 * want->std_error, "se");
        }
        for (int c = 0; c < 3; c++) {
            const frg_fe_test want = last_are_zero(ctx, f, c, d->l);
            near(iv->tests[c].first_stage_f[j], want.f, 1e-5 * want.f, "F of a first stage");
            near(iv->tests[c].first_stage_p[j], want.p_f, 1e-4 * want.p_f + 1e-12, "its p");
            if (d->m == 1) {
                near(iv->tests[c].kp_f, want.f, 1e-5 * want.f, "Kleibergen and Paap's F");
            }
        }
        if (d->m == 1) {
            const double f_iid = last_are_zero(ctx, f, 0, d->l).f;
            near(iv->cragg_donald_f, f_iid, 1e-5 * f_iid, "Cragg and Donald's F");
            near(iv->tests[0].effective_f, f_iid, 1e-5 * f_iid, "effective F of iid errors");
        }
        frg_fe_destroy(f);
    }
}

/* ---- Kleibergen and Paap (2006) of two endogenous regressors ---- */

/** Instruments Z and endogenous X less the exogenous columns, Pi = (Z'WZ)^-1 Z'WX. */
typedef struct {
    const design *d;
    int l;
    real z[MOST][ROWS], x[2][ROWS], v[2][ROWS];
    real szz[MOST * MOST], inverse[MOST * MOST], pi[MOST * 2];
} first_stage;

static real product(const plain *p, int64_t n, const real *a, const real *b)
{
    real sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += p->w[i] * a[i] * b[i];
    return sum;
}

static first_stage stage_of(const design *d, const plain *p)
{
    first_stage s = {.d = d, .l = d->l};
    static real exogenous[MOST][ROWS];
    for (int j = 0; j < p->e + p->m + p->l; j++) {
        real *const to = j < p->e          ? exogenous[j]
                         : j < p->e + p->m ? s.x[j - p->e]
                                           : s.z[j - p->e - p->m];
        for (int64_t i = 0; i < d->n; i++)
            to[i] = p->x[j][i];
        for (int k = 0; k < j && k < p->e; k++) { /* modified Gram-Schmidt */
            const real f =
                product(p, d->n, exogenous[k], to) / product(p, d->n, exogenous[k], exogenous[k]);
            for (int64_t i = 0; i < d->n; i++)
                to[i] -= f * exogenous[k][i];
        }
    }
    for (int a = 0; a < s.l; a++)
        for (int b = 0; b < s.l; b++)
            s.inverse[a * s.l + b] = s.szz[a * s.l + b] = product(p, d->n, s.z[a], s.z[b]);
    invert(s.l, s.inverse);
    for (int j = 0; j < 2; j++)
        for (int a = 0; a < s.l; a++)
            for (int b = 0; b < s.l; b++)
                s.pi[a * 2 + j] += s.inverse[a * s.l + b] * product(p, d->n, s.z[b], s.x[j]);
    for (int j = 0; j < 2; j++)
        for (int64_t i = 0; i < d->n; i++) {
            s.v[j][i] = s.x[j][i];
            for (int a = 0; a < s.l; a++)
                s.v[j][i] -= s.pi[a * 2 + j] * s.z[a][i];
        }
    return s;
}

/** q'O^-1 q of q = A'Pi b (A is l x r) and O = A'S^-1 M S^-1 A, S = Z'WZ; M the sum over rows
 *  (c = 1) or groups (c = 2) of the squares of w u z, u = U b; S u'Wu without errors' n (c = 0). */
static real wald(const first_stage *s, const plain *p, const real (*u)[ROWS], const real *a, int r,
                 const real *b, int c)
{
    const int l = s->l;
    static real sums[ROWS][MOST];
    real m[MOST * MOST] = {0}, half[MOST * MOST] = {0}, o[MOST * MOST] = {0}, q[MOST] = {0}, t = 0;
    memset(sums, 0, sizeof sums);
    for (int64_t i = 0; i < s->d->n; i++) {
        const real e = b[0] * u[0][i] + b[1] * u[1][i];
        t += p->w[i] * e * e;
        for (int k = 0; k < l; k++)
            sums[c == 2 ? s->d->group[i] : i][k] += p->w[i] * e * s->z[k][i];
    }
    for (int64_t i = 0; i < s->d->n; i++)
        for (int k = 0; k < l * l; k++)
            m[k] += sums[i][k / l] * sums[i][k % l];
    for (int k = 0; k < l * l; k++)
        m[k] = c == 0 ? t * s->szz[k] : m[k];
    for (int k = 0; k < l; k++) /* half = S^-1 A */
        for (int j = 0; j < r; j++)
            for (int h = 0; h < l; h++) {
                half[k * r + j] += s->inverse[k * l + h] * a[h * r + j];
                q[j] += h ? 0 : a[k * r + j] * (s->pi[k * 2] * b[0] + s->pi[k * 2 + 1] * b[1]);
            }
    for (int j = 0; j < r * r; j++)
        for (int k = 0; k < l * l; k++)
            o[j] += half[k / l * r + j / r] * m[k] * half[k % l * r + j % r];
    invert(r, o);
    t = 0;
    for (int j = 0; j < r * r; j++)
        t += q[j / r] * o[j] * q[j % r];
    return t;
}

/** Lower triangle of a Cholesky factor. */
static void cholesky(int k, const real *a, real *g)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            real s = a[i * k + j];
            for (int h = 0; h < j && j <= i; h++)
                s -= g[i * k + h] * g[j * k + h];
            g[i * k + j] = j > i ? 0 : j == i ? sqrtl(s) : s / g[j * k + j];
        }
}

/** rk: Theta = R Pi F' with R'R = Z'WZ and F'F = (U'WU)^-1, its singular vectors v of the least
 *  singular value and U_2 orthogonal to the other's; Lambda = U_2'Theta v = A'Pi b with A = R'U_2
 *  and b = F'v. */
static real rank_statistic(const first_stage *s, const plain *p, const real (*u)[ROWS], int c)
{
    const int l = s->l;
    real g[MOST * MOST], f[4], uu[4], theta[MOST * 2] = {0}, gram[4] = {0}, left[MOST][MOST];
    real a[MOST * MOST] = {0};
    cholesky(l, s->szz, g); /* R = g' */
    for (int k = 0; k < 4; k++)
        uu[k] = product(p, s->d->n, u[k / 2], u[k % 2]);
    cholesky(2, uu, f);
    invert(2, f);
    for (int k = 0; k < l * 2; k++)
        for (int h = 0; h < l * 2; h++)
            theta[k] += g[h / 2 * l + k / 2] * s->pi[h] * f[k % 2 * 2 + h % 2];
    for (int k = 0; k < 4; k++)
        for (int h = 0; h < l; h++)
            gram[k] += theta[h * 2 + k / 2] * theta[h * 2 + k % 2];
    const real angle = 0.5L * atan2l(2 * gram[1], gram[0] - gram[3]); /* of the largest */
    const real most[2] = {cosl(angle), sinl(angle)}, least[2] = {-most[1], most[0]};
    const real b[2] = {f[0] * least[0] + f[2] * least[1], f[1] * least[0] + f[3] * least[1]};
    for (int k = 0; k < l; k++)
        left[0][k] = theta[k * 2] * most[0] + theta[k * 2 + 1] * most[1];
    for (int j = 0, at = 0; j < l; j++) { /* Gram-Schmidt: unit vectors after U_1 but the last */
        real square = 0;
        for (int k = 0; k < l && j; k++)
            left[j][k] = k == at;
        at += j > 0;
        for (int h = 0; h < j; h++) {
            real dot = 0;
            for (int k = 0; k < l; k++)
                dot += left[h][k] * left[j][k];
            for (int k = 0; k < l; k++)
                left[j][k] -= dot * left[h][k];
        }
        for (int k = 0; k < l; k++)
            square += left[j][k] * left[j][k];
        for (int k = 0; k < l; k++)
            left[j][k] /= sqrtl(square);
    }
    for (int k = 0; k < l; k++)
        for (int j = 1; j < l; j++)
            for (int h = 0; h < l; h++)
                a[k * (l - 1) + j - 1] += g[k * l + h] * left[j][h];
    return wald(s, p, u, a, l - 1, b, c);
}

/** F, by the first stages' small-sample rule, which the F of one of them shows; LM without any. */
static void check_kleibergen_paap(const design *d, const frg_fe_iv *iv)
{
    plain p;
    demean(d, &p);
    const first_stage s = stage_of(d, &p);
    real one[MOST * MOST] = {0};
    for (int k = 0; k < d->l; k++)
        one[k * d->l + k] = 1;
    for (int c = 0; c < 3; c++) {
        const frg_fe_iv_tests *const t = &iv->tests[c];
        const real w = wald(&s, &p, s.v, one, d->l, (const real[]){1, 0}, c);
        const double want = (double)(rank_statistic(&s, &p, s.v, c) * t->first_stage_f[0] / w);
        const double lm = (double)(rank_statistic(&s, &p, s.x, c) * (c == 0 ? (real)d->n : 1));
        near(t->kp_f, want, 1e-5 * want, "Kleibergen and Paap's F of two");
        near(t->kp_lm, lm, 1e-5 * lm, "Kleibergen and Paap's LM of two");
        CHECK_INT(t->kp_df, d->l - 1);
    }
}

/** y - b0 x on the instruments: their F. */
static frg_fe_test reduced_form(frg_context *ctx, const design *d, const frg_fe_opts *o, int c,
                                double b0)
{
    design moved = *d;
    for (int64_t i = 0; i < d->n; i++)
        moved.y[i] -= b0 * d->x[d->e][i];
    frg_table *const t = table_of(ctx, &moved);
    frg_fe *const f = fit_on(ctx, d, "y", d->e + d->m, d->l, "", t, o);
    const frg_fe_test test = last_are_zero(ctx, f, c, d->l);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return test;
}

static void check_anderson_rubin(frg_context *ctx, const design *d, const frg_fe_opts *o,
                                 const frg_fe_iv *iv)
{
    for (int c = 0; c < 3; c++) {
        const frg_fe_iv_tests *const t = &iv->tests[c];
        const frg_fe_test zero = reduced_form(ctx, d, o, c, 0);
        near(t->ar_f, zero.f, 1e-5 * zero.f, "Anderson and Rubin's F");
        near(t->ar_p, zero.p_f, 1e-4 * zero.p_f + 1e-12, "its p");
        if (t->ar_set != FRG_AR_INTERVAL && t->ar_set != FRG_AR_RAYS) {
            continue;
        }
        near(reduced_form(ctx, d, o, c, t->ar_low).p_f, 1 - o->level, 1e-5, "p at the lower end");
        near(reduced_form(ctx, d, o, c, t->ar_high).p_f, 1 - o->level, 1e-5, "p at the upper end");
        const double inside = reduced_form(ctx, d, o, c, 0.5 * (t->ar_low + t->ar_high)).p_f;
        CHECK((inside > 1 - o->level) == (t->ar_set == FRG_AR_INTERVAL));
    }
}

/** The structural equation with the first stages' residuals added: their joint F, iid errors. */
static void check_wu_hausman(frg_context *ctx, const design *d, const frg_table *t,
                             const frg_fe_opts *o, const frg_fe_iv *iv)
{
    static const char *const added[2] = {"v1", "v2"};
    frg_table *const with = table_of(ctx, d);
    for (int j = 0; j < d->m; j++) {
        double v[ROWS];
        frg_fe *const f = fit_on(ctx, d, names[d->e + j], d->e + d->m, d->l, "", t, o);
        CHECK_OK(ctx, frg_fe_residuals(f, v, NULL));
        CHECK_OK(ctx, frg_table_add_numbers(with, added[j], v));
        frg_fe_destroy(f);
    }
    frg_fe *const f = fit_on(ctx, d, "y", d->e, d->m, d->m == 1 ? " + v1" : " + v1 + v2", with, o);
    const frg_fe_test want = last_are_zero(ctx, f, 0, d->m);
    near(iv->wu_hausman_f, want.f, 1e-5 * (want.f + 1e-3), "Wu and Hausman's F");
    near(iv->wu_hausman_p, want.p_f, 1e-5, "its p");
    near((double)iv->wu_hausman_df, want.df2, 0, "its degrees of freedom");
    frg_fe_destroy(f);
    frg_table_destroy(with);
}

/** Sargan: n R2 of the residuals on [E Z]. */
static void check_sargan(frg_context *ctx, const design *d, const frg_fe *f, const frg_fe_opts *o,
                         const frg_fe_iv *iv)
{
    CHECK_INT(iv->tests[0].overid_df, d->l - d->m);
    if (d->l == d->m) {
        CHECK(isnan(iv->tests[0].overid) && isnan(iv->tests[1].overid));
        return;
    }
    design residuals = *d;
    CHECK_OK(ctx, frg_fe_residuals(f, residuals.y, NULL));
    frg_table *const t = table_of(ctx, &residuals);
    frg_fe *const g = fit_on(ctx, d, "y", d->e + d->m, d->l, "", t, o);
    const double rss = frg_fe_get(f)->rss, explained = rss - frg_fe_get(g)->rss;
    near(iv->tests[0].overid, (double)d->n * explained / rss, 1e-6 * (double)d->n, "Sargan");
    frg_fe_destroy(g);
    frg_table_destroy(t);
}

static void tests(void)
{
    frg_context *const ctx = test_context();
    const int64_t count = test_size(40, 3);
    for (int64_t i = 0; i < count; i++) {
        char formula[300];
        design d;
        draw(&d);
        frg_table *const t = table_of(ctx, &d);
        const frg_fe_opts o = options_of(&d);
        formula_of(&d, formula, sizeof formula);
        frg_fe *const f = fit(ctx, formula, t, &o);
        const frg_fe_iv *const iv = f ? frg_fe_get(f)->iv : NULL;
        if (CHECK(iv)) {
            check_first_stages(ctx, &d, t, &o, iv);
            if (d.m == 2)
                check_kleibergen_paap(&d, iv);
            check_wu_hausman(ctx, &d, t, &o, iv);
            check_sargan(ctx, &d, f, &o, iv);
            if (d.m == 1)
                check_anderson_rubin(ctx, &d, &o, iv);
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/* ---- published and computed elsewhere -------------------------------------------------------- */

/** FixedEffectModels.jl's own tests; its F has n in the place of n - K. */
static void cigar(void)
{
    frg_context *const ctx = test_context();
    frg_table *t = NULL;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    CHECK_OK(ctx, frg_table_read(&t, ctx, FOURGE_SOURCE_DIR "/data/cigar.csv", NULL));
    frg_fe *f = fit(ctx, "sales ~ ndi | state | price ~ pimin", t, &o);
    const frg_fe_result *r = frg_fe_get(f);
    CHECK_NEAR(r->coefficients[0].estimate / 0.0011021722526916768, 1, 1e-10);
    CHECK_NEAR(r->coefficients[1].estimate / -0.3216374943695231, 1, 1e-10);
    CHECK_NEAR(r->coefficients[1].std_error / 0.04192574175417297, 1, 1e-9); /* pyfixest 0.60.0 */
    CHECK_NEAR(r->iv->tests[0].first_stage_f[0] / 5499.7494593504898, 1, 1e-9);
    frg_fe_destroy(f);
    o.vcov[0] = "cluster=state";
    f = fit(ctx, "sales ~ ndi | state | price ~ pimin", t, &o);
    r = frg_fe_get(f);
    CHECK_NEAR(r->coefficients[1].std_error / 0.1893395917577243, 1, 1e-9);
    CHECK_NEAR(r->iv->tests[0].first_stage_f[0] / 683.75620535922508, 1, 1e-9);
    frg_fe_destroy(f);
    o.vcov[0] = "iid";
    o.vcov[1] = "hc1";
    o.n_vcov = 2;
    f = fit(ctx, "sales ~ ndi | state | price ~ pimin + cpi", t, &o);
    r = frg_fe_get(f);
    CHECK_NEAR(r->iv->tests[0].overid / 299.2670761372184, 1, 1e-9); /* linearmodels 7.1 */
    CHECK_NEAR(r->iv->tests[1].overid / 147.8784355252748, 1, 1e-9);
    frg_fe_destroy(f);
    o.n_vcov = 1;
    f = fit(ctx, "sales ~ 1 | price ~ pimin", t, &o);
    CHECK_NEAR(frg_fe_get(f)->iv->tests[0].kp_f * 1380 / 1378 / 52248.79247, 1, 1e-9);
    frg_fe_destroy(f);
    f = fit(ctx, "sales ~ 1 | state | price ~ pimin", t, &o);
    CHECK_NEAR(frg_fe_get(f)->iv->tests[0].kp_f * 1380 / 1333 / 100927.75710, 1, 1e-9);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Predictions of the rows of the fit are its fitted values, and need no instruments. */
static void predictions(void)
{
    frg_context *const ctx = test_context();
    design d;
    do {
        draw(&d);
    } while (d.q != 1 || d.m != 1);
    frg_table *const t = table_of(ctx, &d);
    frg_fe_opts o = options_of(&d);
    char formula[300];
    double fitted[ROWS], predicted[ROWS];
    int64_t unseen = 1;
    o.keep_effects = 1;
    formula_of(&d, formula, sizeof formula);
    frg_fe *const f = fit(ctx, formula, t, &o);
    d.l = 0;
    frg_table *const without = table_of(ctx, &d);
    CHECK_OK(ctx, frg_fe_residuals(f, NULL, fitted));
    CHECK_OK(ctx, frg_fe_predict(f, without, predicted, &unseen));
    CHECK_INT(unseen, 0);
    for (int64_t i = 0; i < d.n; i++)
        near(predicted[i], fitted[i], 1e-8 * (1 + fabs(fitted[i])), "a prediction");
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_table_destroy(without);
    frg_context_destroy(ctx);
}

/* ---- refusals and faults --------------------------------------------------------------------- */

static void refusals(void)
{
    static const struct {
        const char *formula, *code;
    } table[] = {{"y ~ 1 | f1 | x1 ~ 1", "FRG-FE-020"},
                 {"y ~ 1 | f1 | x1 + x2 ~ x3", "FRG-FE-020"},
                 {"y ~ x3 | f1 | x1 ~ x3", "FRG-FE-020"},
                 {"y ~ 1 | f1 | x1 ~ f1", "FRG-FE-020"},
                 {"y ~ x1 | f1 | x1 ~ x3", "FRG-FE-020"},
                 {"y ~ 1 | f1 | x1 + x2 ~ x4 + I(2*x4)", "FRG-FE-020"},
                 {"y ~ 1 | x1 ~ x2 | f1", "FRG-FE-001"},
                 {"y ~ x1 ~ x2", "FRG-FE-001"},
                 {"y ~ 1 | f1 | x1 ~", "FRG-FE-001"},
                 {"y ~ 1 | f1 | x1", "FRG-FE-001"}};
    frg_context *const ctx = test_context();
    design d;
    draw(&d);
    d.e = 2;
    d.m = 1;
    d.l = 2;
    frg_table *const t = table_of(ctx, &d);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_fe *f = NULL;
        CHECK(frg_fe_fit(&f, ctx, table[i].formula, t, NULL) < 0);
        CHECK_TEXT(frg_error_code(ctx), table[i].code);
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const design *const d = user;
    frg_table *t = NULL;
    frg_fe *f = NULL;
    frg_fe_opts o = options_of(d);
    char formula[300];
    formula_of(d, formula, sizeof formula);
    frg_status s = frg_table_create(&t, ctx, d->n);
    s = s < 0 ? s : frg_table_add_numbers(t, "y", d->y);
    s = s < 0 ? s : frg_table_add_numbers(t, "w", d->w);
    s = s < 0 ? s : frg_table_add_integers(t, "group", d->group);
    for (int q = 0; q < d->q && s >= 0; q++)
        s = frg_table_add_integers(t, effects[q], d->codes[q]);
    for (int j = 0; j < d->e + d->m + d->l && s >= 0; j++)
        s = frg_table_add_numbers(t, names[j], d->x[j]);
    s = s < 0 ? s : frg_fe_fit(&f, ctx, formula, t, &o);
    if (s >= 0) {
        const frg_fe_result *const r = frg_fe_get(f);
        for (int a = 0; a < r->n_coefficients; a++)
            fault_hash(hash, &r->coefficients[a].estimate, 2 * sizeof(double));
        fault_hash(hash, &r->iv->tests[2].kp_f, 2 * sizeof(double));
        fault_hash(hash, &r->iv->tests[2].overid, sizeof(double));
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return s;
}

static void faults(void)
{
    design d;
    do {
        draw(&d);
    } while (d.m != 2 || d.l != 3 || d.e != 1);
    d.n = 60;
    d.q = 1;
    fault_sweep("two-stage least squares", body, &d, 1);
}

static const test_case cases[] = {{"designs", designs},   {"tests", tests},
                                  {"cigar", cigar},       {"predictions", predictions},
                                  {"refusals", refusals}, {"faults", faults}};
TEST_MAIN(cases)
