/* test_fe_schwarz.c - additive Schwarz over pairs of factors: equal to the sum of dense
 * pseudo-inverses where the graphs are forests, symmetric and positive on any, few steps where two
 * factors are joined badly with each other alone. */
#include "panel.h"

#include "fe/fe_schwarz.h"

enum { MOST = 64 };

typedef struct {
    frg_context *ctx;
    fe_rows g;
    fe_schur s;
    fe_schwarz p;
    double *scratch;
} made;

static made make(const panel *d)
{
    made m = {.ctx = test_context()};
    const frg_array codes = frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q),
                    weights = frg_vector(d->weights, FRG_F64, d->n);
    CHECK_OK(m.ctx, frgi_fe_rows_create(&m.g, m.ctx, &codes, d->weights ? &weights : NULL));
    m.g.steps = &frgi_fe_host_steps;
    CHECK_OK(m.ctx, frgi_fe_schur_create(&m.s, m.ctx, &m.g, (size_t)1 << 28));
    CHECK_OK(m.ctx, frgi_fe_schwarz_create(&m.p, m.ctx, &m.g, &m.s, true));
    m.scratch =
        panel_zeros((int64_t)frgi_fe_schwarz_scratch(&m.p, FE_MAX_LANES), sizeof *m.scratch);
    return m;
}

static void drop(made *m)
{
    frgi_fe_schwarz_destroy(&m->p, m->ctx);
    frgi_fe_schur_destroy(&m->s, m->ctx);
    frgi_fe_rows_destroy(&m->g, m->ctx);
    CHECK_INT((int64_t)frg_bytes_held(m->ctx), 0);
    frg_context_destroy(m->ctx);
    free(m->scratch);
}

/* ---- dense ----------------------------------------------------------------------------------- */

typedef struct {
    int n;
    double a[MOST][MOST];
} dense;

/** x <- A^-1 x by elimination with pivots of rows. */
static void solve(dense m, double *x)
{
    for (int j = 0; j < m.n; j++) {
        int top = j;
        for (int i = j; i < m.n; i++)
            top = fabs(m.a[i][j]) > fabs(m.a[top][j]) ? i : top;
        for (int k = 0; k < m.n; k++) {
            const double t = m.a[j][k];
            m.a[j][k] = m.a[top][k];
            m.a[top][k] = t;
        }
        const double t = x[j];
        x[j] = x[top];
        x[top] = t;
        for (int i = 0; i < m.n; i++) {
            const double f = i == j ? 0 : m.a[i][j] / m.a[j][j];
            for (int k = j; k < m.n; k++)
                m.a[i][k] -= f * m.a[j][k];
            x[i] -= f * x[j];
        }
    }
    for (int i = 0; i < m.n; i++)
        x[i] /= m.a[i][i];
}

/** x <- L^+ x of a Laplacian: with J the projection on the indicators of its components,
 *  L^+ = (L + J)^-1 (I - J). */
static void solve_laplacian(const dense *l, double *x)
{
    int component[MOST], size[MOST] = {0};
    double mean[MOST] = {0};
    dense m = *l;
    for (int i = 0; i < l->n; i++)
        component[i] = i;
    for (int round = 0; round < l->n; round++)
        for (int i = 0; i < l->n; i++)
            for (int j = 0; j < l->n; j++)
                if (fabs(l->a[i][j]) > 1e-12 && component[j] < component[i])
                    component[i] = component[j];
    for (int i = 0; i < l->n; i++) {
        size[component[i]]++;
        mean[component[i]] += x[i];
    }
    for (int i = 0; i < l->n; i++) {
        x[i] -= mean[component[i]] / size[component[i]];
        for (int j = 0; j < l->n; j++)
            m.a[i][j] += component[i] == component[j] ? 1.0 / size[component[i]] : 0;
    }
    solve(m, x);
}

/** The signed normal equations of factors a and b (b after a). */
static dense pair_of(const panel *d, int a, int levels_a, int b, int levels_b)
{
    dense m = {.n = levels_a + levels_b};
    for (int64_t i = 0; i < d->n; i++) {
        const int u = d->codes[i * d->q + a], v = levels_a + d->codes[i * d->q + b];
        const double w = d->weights ? d->weights[i] : 1;
        m.a[u][u] += w;
        m.a[v][v] += w;
        m.a[u][v] -= w;
        m.a[v][u] -= w;
    }
    return m;
}

/** The first `out` unknowns eliminated. */
static dense complement(const dense *m, int out)
{
    dense c = {.n = m->n - out}, full = *m;
    for (int u = 0; u < out; u++)
        for (int i = u + 1; i < m->n; i++)
            for (int j = u + 1; j < m->n; j++)
                full.a[i][j] -= full.a[i][u] * full.a[u][j] / full.a[u][u];
    for (int i = 0; i < c.n; i++)
        for (int j = 0; j < c.n; j++)
            c.a[i][j] = full.a[out + i][out + j];
    return c;
}

/** Unit u has rows t = u and u + 1; the other factors are t / 2 and t / 6.  The graphs: a path, a
 *  path, and stars, of which approximate Cholesky factors are exact. */
static void forests(void)
{
    enum { UNITS = 36, A = UNITS / 2 + 1, B = UNITS / 6 + 1 };
    for (int weighted = 0; weighted < 2; weighted++) {
        panel d = panel_make(2 * UNITS, 3, 1);
        for (int64_t i = 0; i < d.n; i++) {
            const int32_t t = (int32_t)(i / 2 + i % 2);
            d.codes[3 * i] = (int32_t)(i / 2);
            d.codes[3 * i + 1] = t / 2;
            d.codes[3 * i + 2] = t / 6;
        }
        if (weighted)
            panel_random_weights(&d, 0.5, 2);
        made m = make(&d);
        double r[A + B], z[A + B], a[A + B], b[A + B], both[A + B];
        for (int i = 0; i < A + B; i++)
            both[i] = a[i] = b[i] = r[i] = test_normal();
        CHECK_INT(m.p.n, 2 * (A + B));
        CHECK_OK(m.ctx, frgi_fe_schwarz_apply(&m.p, &m.g, 1, r, z, m.scratch));
        /* weights are brought near 1 by a common factor: S_11 / N_11 shows it */
        const dense full = pair_of(&d, 1, A, 2, B), ua = pair_of(&d, 0, UNITS, 1, A),
                    ub = pair_of(&d, 0, UNITS, 2, B);
        const double unit = m.g.level_weight[0] / full.a[0][0];
        const dense sa = complement(&ua, UNITS), sb = complement(&ub, UNITS);
        solve_laplacian(&sa, a);
        solve_laplacian(&sb, b + A);
        for (int i = A; i < A + B; i++)
            both[i] = -both[i];
        solve_laplacian(&full, both);
        for (int i = 0; i < A + B; i++) {
            const double want = (i < A ? a[i] + both[i] : b[i] - both[i]) / unit;
            CHECK_NEAR(z[i], want, 1e-10 * (1 + fabs(want)));
        }
        drop(&m);
        panel_free(&d);
    }
}

/* ---- any graph ------------------------------------------------------------------------------- */

static double inner(int64_t n, const double *x, const double *y)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += x[i] * y[i];
    return s;
}

/** x'M^-1 y = y'M^-1 x, r'M^-1 r > 0 for r = S x, and a column beside seven others has the bits
 *  that it has alone. */
static void symmetric(void)
{
    for (int trial = 0; trial < 8; trial++) {
        panel d = panel_make(600, 3 + trial % 2, 1);
        panel_random_codes(&d, (const int64_t[]){200, 90, 60, 5});
        if (trial / 2 % 2)
            panel_random_weights(&d, 0.1, 10);
        made m = make(&d);
        const int64_t n = m.g.n_reduced;
        double *const v = panel_zeros(32 * n, sizeof *v);
        double *const x = v, *const y = x + n, *const mx = y + n, *const my = mx + n,
                      *const wide = my + n, *const out = wide + 8 * n;
        for (int64_t i = 0; i < 2 * n; i++)
            v[i] = test_normal();
        CHECK_OK(m.ctx, frgi_fe_schwarz_apply(&m.p, &m.g, 1, x, mx, m.scratch));
        CHECK_OK(m.ctx, frgi_fe_schwarz_apply(&m.p, &m.g, 1, y, my, m.scratch));
        const double size = sqrt(inner(n, x, x) * inner(n, my, my));
        CHECK_NEAR(inner(n, x, my), inner(n, y, mx), 1e-12 * size);
        for (int64_t i = 0; i < 8 * n; i++)
            wide[i] = i % 8 == 5 ? x[i / 8] : test_normal();
        CHECK_OK(m.ctx, frgi_fe_schwarz_apply(&m.p, &m.g, 8, wide, out, m.scratch));
        for (int64_t i = 0; i < n; i++)
            CHECK(out[8 * i + 5] == mx[i]);
        CHECK_OK(m.ctx, m.g.steps->reduced.multiply(&m.s, m.ctx, 0, 1, x, y));
        CHECK_OK(m.ctx, frgi_fe_schwarz_apply(&m.p, &m.g, 1, y, my, m.scratch));
        CHECK(inner(n, y, my) > 0);
        free(v);
        drop(&m);
        panel_free(&d);
    }
}

/* ---- solves ---------------------------------------------------------------------------------- */

/** Two factors of n / 6 levels that are a long path of each other, six rows a level, and units of
 *  three rows at random: any two of them but these are joined well. */
static panel path_and_random(int64_t n, int p)
{
    panel d = panel_make(n, 3, p);
    for (int64_t i = 0; i < n; i++) {
        d.codes[3 * i] = (int32_t)test_below(n / 3);
        d.codes[3 * i + 1] = (int32_t)(i / 6);
        d.codes[3 * i + 2] = (int32_t)((i + 3) / 6);
    }
    return d;
}

/** What the factor gives, in fewer steps than half those that blocks take. */
static void few_steps(void)
{
    panel d = path_and_random(2400, 2);
    frg_demean_opts o = panel_options();
    double *const want = panel_zeros(d.n * d.p, sizeof *want);
    double *const r = panel_zeros(d.n * d.p, sizeof *r);
    frg_demean_column columns[PANEL_COLUMNS];
    frg_context *const ctx = test_context();
    panel_report report;
    o.method = FRG_FE_DIRECT;
    CHECK_OK(ctx, panel_demean(ctx, &d, &o, want, columns, NULL));
    o.method = FRG_FE_AUTO;
    o.max_iter = 20000;
    int64_t steps[2];
    for (int k = 0; k < 2; k++) {
        o.precond = k ? FRG_FE_PRECOND_SCHWARZ : FRG_FE_PRECOND_AC;
        CHECK_OK(ctx, panel_demean(ctx, &d, &o, r, columns, &report));
        CHECK_TEXT(report.plan.method, k ? "cg schwarz" : "cg approximate cholesky");
        steps[k] = columns[0].iterations;
        for (int c = 0; c < d.p; c++) {
            const double size = panel_centred_norm(&d, d.x + c * d.n);
            CHECK(columns[c].converged);
            CHECK(panel_norm(&d, r + c * d.n, want + c * d.n) <=
                  10 * columns[c].error_bound * size + 1e-12 * size);
        }
    }
    CHECK_SAYS(2 * steps[1] < steps[0], "blocks take %lld steps, pairs %lld", (long long)steps[0],
               (long long)steps[1]);
    frg_context_destroy(ctx);
    free(want);
    free(r);
    panel_free(&d);
}

static const test_case cases[] = {
    {"forests", forests},
    {"symmetric", symmetric},
    {"few steps", few_steps},
};
TEST_MAIN(cases)
