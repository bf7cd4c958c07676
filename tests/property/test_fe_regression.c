/* test_fe_regression.c - what must hold of a regression on any data: random designs against the
 * oracle in quadruple precision, and the invariances.
 *
 * Tolerances.  The demeaner promises eta <= 1e-10, a gradient; on the well-connected designs drawn
 * here the error is of that size, so 1e-8 for estimates and 1e-6 for standard errors (the
 * contract's figures) leave room for the condition of the regressors.  Two fits of the same numbers
 * in another order differ by both errors: 1e-9.
 */
#include "fourge/fe.h"
#include "oracle/oracle.h"
#include "test.h"

enum { ROWS_MAX = 400, FACTORS = 4, TERMS = 3 };
static const char *const factor_names[FACTORS] = {"f1", "f2", "f3", "f4"};
static const char *const term_names[TERMS] = {"x1", "x2", "x3"};

typedef struct {
    int64_t n;
    int q, k;
    bool weighted;
    int64_t codes[FACTORS][ROWS_MAX];
    int64_t group[ROWS_MAX];
    double y[ROWS_MAX], x[TERMS][ROWS_MAX], w[ROWS_MAX];
} design;

static void draw(design *d, int64_t n, int q, int k)
{
    *d = (design){.n = n, .q = q, .k = k, .weighted = test_below(2)};
    const int64_t groups = 3 + test_below(8);
    for (int f = 0; f < q; f++) {
        const int64_t levels = 2 + test_below(f == 0 ? n / 5 : 8);
        for (int64_t i = 0; i < n; i++)
            d->codes[f][i] = test_below(levels);
    }
    for (int64_t i = 0; i < n; i++) {
        d->group[i] = test_below(groups);
        d->w[i] = 0.25 + 3 * test_uniform();
        d->y[i] = test_normal();
        for (int j = 0; j < k; j++) {
            d->x[j][i] = test_normal() + 3 * (double)j;
            d->y[i] += d->x[j][i] / (j + 1);
        }
        for (int f = 0; f < q; f++) {
            d->y[i] += 0.3 * (double)d->codes[f][i];
            d->x[0][i] += 0.2 * (double)d->codes[f][i];
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
    for (int f = 0; f < d->q; f++)
        CHECK_OK(ctx, frg_table_add_integers(t, factor_names[f], d->codes[f]));
    for (int j = 0; j < d->k; j++)
        CHECK_OK(ctx, frg_table_add_numbers(t, term_names[j], d->x[j]));
    return t;
}

static void formula_of(const design *d, char *out, size_t room)
{
    size_t at = (size_t)snprintf(out, room, "y ~ 1");
    for (int j = 0; j < d->k; j++)
        at += (size_t)snprintf(out + at, room - at, " + %s", term_names[j]);
    for (int f = 0; f < d->q; f++)
        at += (size_t)snprintf(out + at, room - at, " %s %s", f ? "+" : "|", factor_names[f]);
}

static frg_fe_opts options_of(const design *d)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.weights = d->weighted ? "w" : NULL;
    o.keep_singletons = 1;
    o.keep_effects = 1;
    o.vcov[0] = "iid";
    o.vcov[1] = "hc1";
    o.vcov[2] = "cluster=group";
    o.n_vcov = 3;
    o.ssc = "adj=false,cluster.adj=false";
    o.demean.dof = FRG_DOF_EXACT;
    return o;
}

static frg_fe *fit(frg_context *ctx, const design *d, const frg_table *t, const frg_fe_opts *o)
{
    char formula[200];
    frg_fe *f = NULL;
    formula_of(d, formula, sizeof formula);
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, o));
    return f;
}

static void near(double got, double want, double allowed, const char *what)
{
    CHECK_SAYS(fabs(got - want) <= allowed, "%s is %.17g, expected %.17g: error %.2g > %.2g", what,
               got, want, fabs(got - want), allowed);
}

/* ---- the oracle ------------------------------------------------------------------------------ */

static void compare_with_oracle(frg_context *ctx, const design *d)
{
    int32_t codes[FACTORS * ROWS_MAX], group[ROWS_MAX];
    for (int64_t i = 0; i < d->n; i++) {
        group[i] = (int32_t)d->group[i];
        for (int f = 0; f < d->q; f++)
            codes[i * d->q + f] = (int32_t)d->codes[f][i];
    }
    double x[TERMS * ROWS_MAX], v[TERMS * TERMS];
    for (int j = 0; j < d->k; j++)
        memcpy(x + j * d->n, d->x[j], sizeof(double) * (size_t)d->n);
    oracle *const truth = oracle_create(&(oracle_design){
        .n = d->n, .n_factors = d->q, .codes = codes, .weights = d->weighted ? d->w : NULL});
    frg_table *const t = table_of(ctx, d);
    const frg_fe_opts o = options_of(d);
    frg_fe *const f = fit(ctx, d, t, &o);
    oracle_fit want;
    if (f && CHECK(oracle_regress(truth, d->y, x, d->k, &want))) {
        const frg_fe_result *const r = frg_fe_get(f);
        double residuals[ROWS_MAX];
        CHECK_INT(r->rank, oracle_rank(truth));
        CHECK_INT(r->df_residual, d->n - d->k - oracle_rank(truth));
        near(r->rss, want.rss, 1e-8 * want.rss, "rss");
        CHECK_OK(ctx, frg_fe_residuals(f, residuals, NULL));
        const double sd = sqrt(want.rss / (double)d->n);
        for (int64_t i = 0; i < d->n; i++)
            near(residuals[i], want.residuals[i], 1e-8 * sd, "a residual");
        for (int j = 0; j < d->k; j++) {
            const double se = sqrt(want.bread[j * d->k + j] * want.rss / (double)(d->n - 1));
            near(r->vcov[0].coefficients[j].std_error, se, 1e-6 * se, "iid");
            near(r->coefficients[j].estimate, want.beta[j], 1e-8 * (fabs(want.beta[j]) + se),
                 "an estimate");
        }
        for (int c = 1; c < 3; c++) {
            oracle_sandwich(truth, &want, c == 2 ? group : NULL, v);
            for (int j = 0; j < d->k; j++)
                for (int l = 0; l < d->k; l++) {
                    const double scale = sqrt(v[j * d->k + j] * v[l * d->k + l]);
                    near(r->vcov[c].matrix[j * d->k + l], v[j * d->k + l], 2e-6 * scale,
                         r->vcov[c].spec);
                }
        }
        oracle_fit_free(&want);
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    oracle_destroy(truth);
}

static void oracle_designs(void)
{
    frg_context *const ctx = test_context();
    for (int round = 0; round < 120; round++) {
        design d;
        const int q = 1 + (int)test_below(FACTORS);
        draw(&d, 40 + test_below(80), q, 1 + (int)test_below(TERMS));
        compare_with_oracle(ctx, &d);
    }
    frg_context_destroy(ctx);
}

/* ---- the same numbers otherwise -------------------------------------------------------------- */

static void compare_fits(const frg_fe *f, const frg_fe *g, double scale, double tolerance)
{
    if (!CHECK(f && g))
        return;
    const frg_fe_result *const a = frg_fe_get(f), *const b = frg_fe_get(g);
    CHECK_INT(a->n, b->n);
    CHECK_INT(a->rank, b->rank);
    CHECK_INT(a->n_coefficients, b->n_coefficients);
    for (int c = 0; c < a->n_vcov; c++)
        for (int j = 0; j < a->n_coefficients; j++) {
            const frg_coefficient *const p = &a->vcov[c].coefficients[j], *const q =
                                                                              &b->vcov[c]
                                                                                   .coefficients[j];
            near(p->estimate * scale, q->estimate, tolerance * (fabs(q->estimate) + q->std_error),
                 "an estimate");
            near(p->std_error * scale, q->std_error, tolerance * q->std_error, a->vcov[c].spec);
            CHECK_INT(a->vcov[c].k, b->vcov[c].k);
        }
}

/** Other labels, another order of the rows. */
static void relabelled_and_shuffled(void)
{
    frg_context *const ctx = test_context();
    for (int round = 0; round < 20; round++) {
        design d, e;
        draw(&d, 60 + test_below(300), 1 + (int)test_below(3), TERMS);
        e = d;
        for (int64_t i = d.n - 1; i > 0; i--) {
            const int64_t j = test_below(i + 1);
            const design keep = e;
            e.y[i] = keep.y[j], e.y[j] = keep.y[i];
            e.w[i] = keep.w[j], e.w[j] = keep.w[i];
            e.group[i] = keep.group[j], e.group[j] = keep.group[i];
            for (int f = 0; f < d.q; f++)
                e.codes[f][i] = keep.codes[f][j], e.codes[f][j] = keep.codes[f][i];
            for (int k = 0; k < d.k; k++)
                e.x[k][i] = keep.x[k][j], e.x[k][j] = keep.x[k][i];
        }
        for (int f = 0; f < d.q; f++)
            for (int64_t i = 0; i < d.n; i++)
                e.codes[f][i] = 1000003 * (7 - e.codes[f][i]);
        frg_table *const s = table_of(ctx, &d), *const t = table_of(ctx, &e);
        const frg_fe_opts o = options_of(&d);
        frg_fe *const f = fit(ctx, &d, s, &o), *const g = fit(ctx, &e, t, &o);
        compare_fits(f, g, 1, 1e-9);
        frg_fe_destroy(f);
        frg_fe_destroy(g);
        frg_table_destroy(s);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** A frequency weight of m is m rows. */
static void weights_are_rows(void)
{
    frg_context *const ctx = test_context();
    for (int round = 0; round < 20; round++) {
        design d, e = {0};
        draw(&d, 30 + test_below(60), (int)test_below(3), 2);
        e.q = d.q;
        e.k = d.k;
        for (int64_t i = 0; i < d.n; i++) {
            const int64_t m = 1 + test_below(4);
            d.w[i] = (double)m;
            for (int64_t c = 0; c < m; c++, e.n++) {
                e.y[e.n] = d.y[i];
                e.group[e.n] = d.group[i];
                for (int f = 0; f < d.q; f++)
                    e.codes[f][e.n] = d.codes[f][i];
                for (int k = 0; k < d.k; k++)
                    e.x[k][e.n] = d.x[k][i];
            }
        }
        frg_table *const s = table_of(ctx, &d), *const t = table_of(ctx, &e);
        frg_fe_opts o = options_of(&d);
        o.ssc = NULL;
        o.keep_singletons =
            round % 2; /* a weight of 2 is no singleton, as two equal rows are none */
        o.weights = "w";
        o.weights_kind = FRG_WEIGHTS_FREQUENCY;
        frg_fe *const f = fit(ctx, &d, s, &o);
        o.weights = NULL;
        frg_fe *const g = fit(ctx, &e, t, &o);
        compare_fits(f, g, 1, 1e-9);
        if (f && g)
            near(frg_fe_get(f)->r2_adjusted, frg_fe_get(g)->r2_adjusted, 1e-9, "r2");
        frg_fe_destroy(f);
        frg_fe_destroy(g);
        frg_table_destroy(s);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** Units: y and x in others, up to the ends of the range of doubles. */
static void units(void)
{
    static const double scales[] = {1e-145, 1e-30, 1e8, 1e140};
    frg_context *const ctx = test_context();
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        design d, e;
        draw(&d, 200, (int)s % 3, TERMS);
        e = d;
        for (int64_t i = 0; i < d.n; i++) {
            e.y[i] *= scales[s];
            for (int k = 0; k < d.k; k++)
                e.x[k][i] *= scales[(s + 1) % 4];
        }
        frg_table *const a = table_of(ctx, &d), *const b = table_of(ctx, &e);
        const frg_fe_opts o = options_of(&d);
        frg_fe *const f = fit(ctx, &d, a, &o), *const g = fit(ctx, &e, b, &o);
        if (d.q > 0) /* the intercept has units of its own */
            compare_fits(f, g, scales[s] / scales[(s + 1) % 4], 1e-9);
        else if (CHECK(f && g))
            near(frg_fe_get(g)->r2, frg_fe_get(f)->r2, 1e-12, "r2");
        frg_fe_destroy(f);
        frg_fe_destroy(g);
        frg_table_destroy(a);
        frg_table_destroy(b);
    }
    frg_context_destroy(ctx);
}

/** Far from the origin: 1e8 standard deviations away the estimates keep 8 digits, as centring
 *  promises. */
static void far_from_the_origin(void)
{
    frg_context *const ctx = test_context();
    design d, e;
    draw(&d, 300, 0, 2);
    e = d;
    for (int64_t i = 0; i < d.n; i++) {
        /* a shift that is a power of two loses the last bits of x alone, and both designs lose the
         * same */
        d.x[0][i] = (d.x[0][i] + 0x1p26) - 0x1p26;
        e.x[0][i] = d.x[0][i] + 0x1p26;
    }
    frg_table *const a = table_of(ctx, &d), *const b = table_of(ctx, &e);
    const frg_fe_opts o = options_of(&d);
    frg_fe *const f = fit(ctx, &d, a, &o), *const g = fit(ctx, &e, b, &o);
    if (CHECK(f && g))
        for (int j = 1; j <= 2; j++) {
            const frg_coefficient *const p = &frg_fe_get(f)->coefficients[j],
                                         *const q = &frg_fe_get(g)->coefficients[j];
            near(q->estimate, p->estimate, 1e-8 * fabs(p->estimate), "an estimate");
            near(q->std_error, p->std_error, 1e-8 * p->std_error, "a standard error");
        }
    frg_fe_destroy(f);
    frg_fe_destroy(g);
    frg_table_destroy(a);
    frg_table_destroy(b);
    frg_context_destroy(ctx);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/** The same groups as small integers, sparse integers, fractions, text, booleans in pairs: the same
 *  bits. */
static void keys_of_any_type(void)
{
    enum { N = 300, LEVELS = 12 };
    frg_context *const ctx = test_context();
    int64_t small[N], sparse[N], high[N], low[N];
    int32_t text[N];
    double whole[N], fraction[N], y[N], x[N];
    static const char *const labels[LEVELS] = {"a", "b", "c", "d", "e", "f",
                                               "g", "h", "i", "j", "k", "l"};
    for (int i = 0; i < N; i++) {
        const int64_t l = test_below(LEVELS);
        small[i] = l - 5;
        sparse[i] = (l * 0x1234567890ab) ^ 0x55;
        whole[i] = (double)(l == 0 ? -0.0 : (double)l * 1e14);
        fraction[i] = (double)l / 7 - 0.5;
        text[i] = (int32_t)((l * 5) % LEVELS);
        high[i] = l / 4;
        low[i] = l % 4;
        y[i] = test_normal() + (double)l;
        x[i] = test_normal() + (double)l;
    }
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, N));
    CHECK_OK(ctx, frg_table_add_integers(t, "small", small));
    CHECK_OK(ctx, frg_table_add_integers(t, "sparse", sparse));
    CHECK_OK(ctx, frg_table_add_numbers(t, "whole", whole));
    CHECK_OK(ctx, frg_table_add_numbers(t, "fraction", fraction));
    CHECK_OK(ctx, frg_table_add_codes(t, "text", text, labels, LEVELS));
    CHECK_OK(ctx, frg_table_add_integers(t, "high", high));
    CHECK_OK(ctx, frg_table_add_integers(t, "low", low));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
    static const char *const keys[] = {"small", "sparse",   "whole",     "fraction",
                                       "text",  "high^low", "text^small"};
    double want[6] = {0};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        char formula[64], vcov[64];
        snprintf(formula, sizeof formula, "y ~ x | %s", keys[k]);
        snprintf(vcov, sizeof vcov, "cluster=%s", keys[k]);
        frg_fe_opts o;
        frg_fe_defaults(&o, sizeof o);
        o.vcov[0] = vcov;
        frg_fe *f = NULL;
        if (!CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, &o)))
            continue;
        CHECK_INT(frg_fe_get(f)->factor_levels[0], LEVELS);
        CHECK_INT(frg_fe_get(f)->vcov[0].k, 2);
        CHECK_TEXT(frg_fe_get(f)->factor_name[0], keys[k]);
        if (k == 0)
            memcpy(want, &frg_fe_get(f)->coefficients[0].estimate, sizeof want);
        CHECK_BITS(&frg_fe_get(f)->coefficients[0].estimate, want, sizeof want);
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Rounds of dropping all rows that are alone in a level, one after the other. */
static void singletons(void)
{
    enum { N = 400 };
    frg_context *const ctx = test_context();
    for (int round = 0; round < 30; round++) {
        int64_t f[N], g[N], dropped = 0, rounds = 0;
        double y[N], x[N];
        bool gone[N] = {0};
        const int64_t levels = 100 + test_below(250);
        for (int i = 0; i < N; i++) {
            f[i] = test_below(levels);
            g[i] = test_below(levels);
            y[i] = test_normal();
            x[i] = test_normal();
        }
        for (bool more = true; more;) {
            bool alone[N] = {0};
            more = false;
            for (int i = 0; i < N; i++) {
                int in_f = 0, in_g = 0;
                for (int j = 0; j < N && !gone[i]; j++) {
                    in_f += !gone[j] && f[j] == f[i];
                    in_g += !gone[j] && g[j] == g[i];
                }
                alone[i] = !gone[i] && (in_f == 1 || in_g == 1);
            }
            for (int i = 0; i < N; i++) {
                gone[i] |= alone[i];
                dropped += alone[i];
                more |= alone[i];
            }
            rounds += more;
        }
        frg_table *t = NULL;
        CHECK_OK(ctx, frg_table_create(&t, ctx, N));
        CHECK_OK(ctx, frg_table_add_integers(t, "f", f));
        CHECK_OK(ctx, frg_table_add_integers(t, "g", g));
        CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
        CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
        frg_fe *fit_ = NULL;
        frg_fe_opts o;
        frg_fe_defaults(&o, sizeof o);
        o.ssc = "adj=false";
        const frg_status status = frg_fe_fit(&fit_, ctx, "y ~ 1 | f + g", t, &o);
        if (dropped == N) {
            CHECK_INT(status, FRG_BAD_DATA);
        } else if (CHECK_OK(ctx, status)) {
            double residuals[N];
            CHECK_INT(frg_fe_get(fit_)->n_singleton, dropped);
            CHECK_INT(frg_fe_get(fit_)->singleton_rounds, rounds);
            CHECK_OK(ctx, frg_fe_residuals(fit_, residuals, NULL));
            for (int i = 0; i < N; i++)
                CHECK(isnan(residuals[i]) == gone[i]);
        }
        frg_fe_destroy(fit_);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/* ---- more effects, more terms ---------------------------------------------------------------- */

/** Another effect never raises the rss; an effect as dummies gives the other estimates the same. */
static void nested_models(void)
{
    frg_context *const ctx = test_context();
    for (int round = 0; round < 15; round++) {
        design d;
        draw(&d, 150, 3, 2);
        frg_table *const t = table_of(ctx, &d);
        frg_fe_opts o = options_of(&d);
        o.ssc = NULL;
        double before = INFINITY;
        for (d.q = 0; d.q <= 3; d.q++) {
            frg_fe *const f = fit(ctx, &d, t, &o);
            if (f) {
                CHECK(frg_fe_get(f)->rss <= before * (1 + 1e-12));
                before = frg_fe_get(f)->rss;
            }
            frg_fe_destroy(f);
        }
        frg_fe *absorbed = NULL, *dummies = NULL;
        if (CHECK_OK(ctx, frg_fe_fit(&absorbed, ctx, "y ~ x1 + x2 | f1 + f2", t, &o)) &&
            CHECK_OK(ctx, frg_fe_fit(&dummies, ctx, "y ~ x1 + x2 + i(f2) | f1", t, &o))) {
            const frg_fe_result *const a = frg_fe_get(absorbed), *const b = frg_fe_get(dummies);
            near(a->rss, b->rss, 1e-9 * b->rss, "rss");
            CHECK_INT(a->df_residual, b->df_residual);
            for (int c = 0; c < 2; c++)
                for (int j = 0; j < 2; j++) {
                    const frg_coefficient *const p = &a->vcov[c].coefficients[j],
                                                 *const q = &b->vcov[c].coefficients[j];
                    near(p->estimate, q->estimate, 1e-8 * (fabs(q->estimate) + q->std_error),
                         p->term);
                    near(p->std_error, q->std_error, 1e-8 * q->std_error, a->vcov[c].spec);
                }
        }
        frg_fe_destroy(absorbed);
        frg_fe_destroy(dummies);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** R's rule of contrasts, by names and counts. */
static void factor_columns(void)
{
    static const char csv[] = "y,x,g,h,b,k\n1,2,v,p,TRUE,3\n4,3,u,q,FALSE,4\n2,5,w,p,TRUE,3\n7,1,u,"
                              "p,TRUE,5\n3,4,v,q,FALSE,4\n"
                              "6,9,w,q,TRUE,5\n5,7,u,q,FALSE,3\n8,3,v,p,TRUE,4\n9,9,w,p,FALSE,5\n1,"
                              "6,u,p,TRUE,3\n4,2,v,q,TRUE,4\n"
                              "2,8,w,q,FALSE,5\n3,1,u,q,TRUE,3\n6,6,v,p,FALSE,4\n5,3,w,p,TRUE,5\n";
    static const struct {
        const char *formula, *names;
    } table[] = {
        {"y ~ g", "(Intercept) gv gw"},
        {"y ~ g - 1", "gu gv gw"},
        {"y ~ g + h - 1", "gu gv gw hq"},
        {"y ~ x*g", "(Intercept) x gv gw x:gv x:gw"},
        {"y ~ x:g", "(Intercept) x:gu x:gv x:gw"},
        {"y ~ g:h", "(Intercept) gu:hp gv:hp gw:hp gu:hq gv:hq"},
        {"y ~ g*h", "(Intercept) gv gw hq gv:hq gw:hq"},
        {"y ~ b + x", "(Intercept) bTRUE x"},
        {"y ~ I(x > 4)", "(Intercept) I(x > 4)TRUE"},
        {"y ~ b - 1", "bFALSE bTRUE"},
        {"y ~ 0 + b + h", "bFALSE bTRUE hq"},
        {"y ~ 0 + h + b", "hp hq bTRUE"},
        {"y ~ 0 + I(x > 4)", "I(x > 4)FALSE I(x > 4)TRUE"},
        {"y ~ 0 + b | h", "bFALSE"},
        {"y ~ 0 + b:x | h", "bFALSE:x bTRUE:x"},
        {"y ~ b*x", "(Intercept) bTRUE x bTRUE:x"},
        {"y ~ h:b", "(Intercept) hp:bFALSE hq:bFALSE hp:bTRUE"},
        {"y ~ x | g", "x"},
        {"y ~ h | g", "hq"},
        {"y ~ factor(k)", "(Intercept) factor(k)4 factor(k)5"},
        {"y ~ as.factor(k) - 1", "as.factor(k)3 as.factor(k)4 as.factor(k)5"},
        {"y ~ factor(g)", "(Intercept) factor(g)v factor(g)w"},
        {"y ~ C(k):x | h", "C(k)3:x C(k)4:x C(k)5:x"},
        {"y ~ i(k)", "(Intercept) k::4 k::5"},
        {"y ~ i(k) - 1", "k::3 k::4 k::5"},
        {"y ~ 0 + i(k) + i(g)", "k::3 k::4 k::5 g::v g::w"},
        {"y ~ 0 + i(k, x) + i(g) + i(h)", "k::3:x k::4:x k::5:x g::v g::w h::q"},
        {"y ~ 0 + i(k, ref = 4) + i(g)", "k::3 k::5 g::v g::w"},
        {"y ~ i(k, ref = c(3, 5))", "(Intercept) k::4"},
        {"y ~ i(k, ref = 4) | g", "k::3 k::5"},
        {"y ~ i(g, ref = TRUE)", "(Intercept) g::v g::w"},
        {"y ~ i(g, ref = FALSE) - 1", "g::u g::v g::w"},
        {"y ~ i(g, i.k, ref = FALSE, ref2 = TRUE) | h", "g::u:k::4 g::u:k::5 g::v:k::4 g::w:k::5"},
        {"y ~ 0 + h + i(k) | g", "hq k::4 k::5"},
        {"y ~ 0 + h + i(k, x)", "hp hq k::3:x k::4:x k::5:x"},
        {"y ~ i(k, x)", "(Intercept) k::3:x k::4:x k::5:x"},
        {"y ~ i(g, x, ref = 'u') | h", "g::v:x g::w:x"},
        {"y ~ i(g, keep = c('u', \"w\")) | h", "g::u g::w"},
        {"y ~ i(g, i.k, ref = 'u', ref2 = 3) | h", "g::v:k::4 g::w:k::5"},
        {"y ~ i(b, x) | h", "b::FALSE:x b::TRUE:x"},
        {"y ~ x + log(x) + x^2", "(Intercept) x log(x) I(x^2)"},
        {"y ~ h | g[x]", "hq"},
        {"y ~ h | g[[x]]", "(Intercept) hq"},
        {"y ~ h - 1 | g[[x]]", "hp hq"},
        {"y ~ h | g[[x]] + k", "hq"},
    };
    frg_context *const ctx = test_context();
    frg_table *t = NULL;
    if (CHECK_OK(ctx, frg_table_parse(&t, ctx, csv, sizeof csv - 1, "memory", NULL)))
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            frg_fe *f = NULL;
            frg_fe_opts o;
            frg_fe_defaults(&o, sizeof o);
            o.keep_singletons = 1;
            if (!CHECK_OK(ctx, frg_fe_fit(&f, ctx, table[i].formula, t, &o)))
                continue;
            char names[256] = "";
            for (int j = 0; j < frg_fe_get(f)->n_coefficients; j++) {
                strcat(names, j ? " " : "");
                strcat(names, frg_fe_get(f)->coefficients[j].term);
            }
            CHECK_SAYS(strcmp(names, table[i].names) == 0, "%s: %s, expected %s", table[i].formula,
                       names, table[i].names);
            frg_fe_size size = {0};
            if (CHECK_OK(ctx, frg_fe_estimate(ctx, table[i].formula, t, &o, &size))) {
                CHECK_INT(size.n, frg_fe_get(f)->n);
                CHECK_INT(size.n_factors, frg_fe_get(f)->n_factors);
                CHECK_INT(size.n_columns,
                          1 + frg_fe_get(f)->n_coefficients + frg_fe_get(f)->n_dropped);
            }
            frg_fe_destroy(f);
        }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** y on z, 1e-3 x and x + z: by shares the last one goes whatever its units, by fixest's rule the
 *  pivots are compared with collin_tol as they are, so that a column in small units goes alone. */
static void collinear_units(void)
{
    frg_context *const ctx = test_context();
    enum { N = 60 };
    double y[N], x[N], z[N], small[N], both[N];
    for (int i = 0; i < N; i++) {
        y[i] = test_normal();
        x[i] = test_normal();
        z[i] = test_normal();
        small[i] = 1e-6 * x[i]; /* the pivot is about 6e-11 */
        both[i] = x[i] + z[i];
    }
    frg_table *t = NULL;
    const char *const names[] = {"y", "x", "z", "small", "both"};
    const double *const values[] = {y, x, z, small, both};
    CHECK_OK(ctx, frg_table_create(&t, ctx, N));
    for (int i = 0; i < 5; i++)
        CHECK_OK(ctx, frg_table_add_numbers(t, names[i], values[i]));
    static const struct {
        frg_fe_collin collin;
        const char *term, *reason;
    } table[] = {{FRG_COLLIN_SHARE, "both", "collinear with z, small"},
                 {FRG_COLLIN_FIXEST, "small", "collinear with (Intercept)"}};
    for (int i = 0; i < 2; i++) {
        frg_fe_opts o;
        frg_fe_defaults(&o, sizeof o);
        o.collin = table[i].collin;
        frg_fe *f = NULL;
        if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ z + small + both", t, &o)) &&
            CHECK_INT(frg_fe_get(f)->n_dropped, 1)) {
            CHECK_TEXT(frg_fe_get(f)->dropped[0].term, table[i].term);
            if (i == 0)
                CHECK_TEXT(frg_fe_get(f)->dropped[0].reason, table[i].reason);
        }
        frg_fe_destroy(f);
    }
    frg_fe_opts o; /* in ordinary units both rules see the same, and say so in the same words */
    frg_fe_defaults(&o, sizeof o);
    o.collin = FRG_COLLIN_FIXEST;
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ z + x + both", t, &o)) &&
        CHECK_INT(frg_fe_get(f)->n_dropped, 1))
        CHECK_TEXT(frg_fe_get(f)->dropped[0].reason, "collinear with z, x");
    frg_fe_destroy(f);
    o.collin = (frg_fe_collin)7;
    CHECK_INT(frg_fe_fit(&f, ctx, "y ~ z", t, &o), FRG_BAD_ARG);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- effects and predictions ----------------------------------------------------------------- */

static double effect_of(const frg_table *effects, const char *factor, int64_t level, bool *found)
{
    const frg_column *const f = frg_table_column(effects, 0), *const l =
                                                                  frg_table_column(effects, 1);
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, level);
    for (int64_t i = 0; i < f->n; i++)
        if (strcmp(f->labels[f->codes[i]], factor) == 0 &&
            strcmp(l->labels[l->codes[i]], text) == 0) {
            *found = true;
            return frg_table_column(effects, 2)->numbers[i];
        }
    *found = false;
    return 0;
}

/** Effects and estimates add up to the fitted values, which the predictions of the same rows
 *  are. */
static void effects_add_up(void)
{
    frg_context *const ctx = test_context();
    for (int round = 0; round < 24; round++) {
        design d;
        draw(&d, 80 + test_below(100), round % 4, 2);
        frg_table *const t = table_of(ctx, &d);
        const frg_fe_opts o = options_of(&d);
        frg_fe *const f = fit(ctx, &d, t, &o);
        double fitted[ROWS_MAX], predicted[ROWS_MAX];
        int64_t unseen = -1;
        frg_table *effects = NULL;
        if (f && CHECK_OK(ctx, frg_fe_residuals(f, NULL, fitted)) &&
            CHECK_OK(ctx, frg_fe_predict(f, t, predicted, &unseen)) &&
            (d.q == 0 || CHECK_OK(ctx, frg_fe_effects(f, &effects)))) {
            const frg_fe_result *const r = frg_fe_get(f);
            CHECK_INT(unseen, 0);
            for (int64_t i = 0; i < d.n; i++) {
                double sum = d.q ? 0 : r->coefficients[0].estimate;
                for (int j = 0; j < d.k; j++)
                    sum += d.x[j][i] * r->coefficients[j + (d.q == 0)].estimate;
                for (int q = 0; q < d.q; q++) {
                    bool found;
                    sum += effect_of(effects, factor_names[q], d.codes[q][i], &found);
                    CHECK(found);
                }
                near(sum, fitted[i], 1e-8 * (1 + fabs(fitted[i])), "a sum of effects");
                near(predicted[i], fitted[i], 1e-8 * (1 + fabs(fitted[i])), "a prediction");
            }
            for (int q = 1; q < d.q;
                 q++) { /* connected: one reference, the level of the first row */
                bool found;
                CHECK(effect_of(effects, factor_names[q], d.codes[q][0], &found) == 0);
            }
            if (d.q == 1 || d.q == 2)
                CHECK_INT(frg_table_column(effects, 3)->integers[0], 1);
        }
        frg_table_destroy(effects);
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** The regressors of new data are those of the table, a column a coefficient. */
static void regressors_come_back(void)
{
    frg_context *const ctx = test_context();
    for (int trial = 0; trial < 10; trial++) {
        design d;
        draw(&d, 300, 3, TERMS);
        frg_table *const t = table_of(ctx, &d);
        const frg_fe_opts o = options_of(&d);
        frg_fe *const f = fit(ctx, &d, t, &o);
        const frg_fe_result *const r = f ? frg_fe_get(f) : NULL;
        double *const x = r ? malloc(sizeof *x * (size_t)d.n * (size_t)r->n_coefficients) : NULL;
        int64_t unseen = -1;
        if (x && CHECK_OK(ctx, frg_fe_regressors(f, t, x, &unseen))) {
            CHECK_INT(unseen, 0);
            for (int j = 0; j < r->n_coefficients; j++) {
                const int own = j - (d.q == 0); /* behind an intercept */
                for (int64_t i = 0; i < d.n; i++)
                    CHECK(x[j * d.n + i] == (own < 0 ? 1 : d.x[own][i]));
            }
        }
        free(x);
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** The same with varying slopes, alone and with levels, of a joint key too. */
static void slopes_add_up(void)
{
    static const struct {
        const char *formula, *slope; /* as it stands in the table of effects */
        bool levels;
    } table[] = {
        {"y ~ x1 | f1[x2]", "f1[[x2]]", true},
        {"y ~ x1 | f2[[x2]] + f3", "f2[[x2]]", false},
        {"y ~ x1 | f2[[x2]]", "f2[[x2]]", false}, /* beside an intercept */
        {"y ~ x1 - 1 | f2[[x2]]", "f2[[x2]]", false},
        {"y ~ x1 | f2[x2, x3] + f3", "f2[[x3]]", true},
        {"y ~ x1 | f2^f3[x2] + f1", "f2^f3[[x2]]", true},
    };
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        design d;
        draw(&d, 300, 3, TERMS);
        frg_table *const t = table_of(ctx, &d);
        const frg_fe_opts o = options_of(&d);
        frg_fe *f = NULL;
        double fitted[ROWS_MAX], predicted[ROWS_MAX];
        int64_t unseen = -1;
        frg_table *effects = NULL;
        if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, table[i].formula, t, &o)) &&
            CHECK_OK(ctx, frg_fe_residuals(f, NULL, fitted)) &&
            CHECK_OK(ctx, frg_fe_predict(f, t, predicted, &unseen)) &&
            CHECK_OK(ctx, frg_fe_effects(f, &effects))) {
            CHECK_INT(unseen, 0);
            for (int64_t r = 0; r < d.n; r++)
                near(predicted[r], fitted[r], 1e-8 * (1 + fabs(fitted[r])), table[i].formula);
            const frg_column *const factors = frg_table_column(effects, 0);
            const size_t key = (size_t)(strstr(table[i].slope, "[[") - table[i].slope);
            bool slope = false, levels = false;
            for (int64_t l = 0; l < factors->n_labels; l++) {
                slope |= strcmp(factors->labels[l], table[i].slope) == 0;
                for (int64_t e = 0; e < factors->n; e++)
                    levels |= factors->codes[e] == l && strlen(factors->labels[l]) == key &&
                              memcmp(factors->labels[l], table[i].slope, key) == 0;
            }
            CHECK(slope && levels == table[i].levels);
        }
        frg_table_destroy(effects);
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** Each component of a disconnected table has a reference of its own. */
static void components(void)
{
    static const char csv[] = "y,x,f,g\n1,2,1,1\n2,1,1,2\n4,3,2,1\n3,3,2,2\n7,1,1,1\n9,1,8,8\n8,4,"
                              "8,9\n5,5,9,8\n2,6,9,9\n1,1,9,9\n";
    frg_context *const ctx = test_context();
    frg_table *t = NULL, *effects = NULL;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.keep_effects = 1;
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_table_parse(&t, ctx, csv, sizeof csv - 1, "memory", NULL)) &&
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | f + g", t, &o)) &&
        CHECK_OK(ctx, frg_fe_effects(f, &effects))) {
        bool found;
        CHECK_INT(frg_fe_get(f)->rank, 6);
        CHECK(effect_of(effects, "g", 1, &found) == 0 && found);
        CHECK(effect_of(effects, "g", 8, &found) == 0 && found);
        CHECK(effect_of(effects, "g", 2, &found) != 0 && effect_of(effects, "g", 9, &found) != 0);
        CHECK_INT(frg_table_column(effects, 3)->integers[0], 1);
    }
    frg_table_destroy(effects);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Levels that the fit has not seen, in effects, in joint effects and in factors, are counted and
 *  NaN; a missing cell is NaN and not counted. */
static void predictions_elsewhere(void)
{
    static const char csv[] = "y,x,f,g,s\n1,2,1,1,a\n2,1,1,2,b\n4,3,2,1,a\n3,3,2,2,b\n7,1,1,1,b\n9,"
                              "1,2,1,a\n8,4,1,2,a\n5,5,2,2,b\n";
    static const char news[] =
        "x,s,g,f\n2,a,1,1\n2,a,1,7\n2,c,1,1\n,a,1,1\n2,a,,1\n2,b,3,2\n1,b,2,2\n";
    frg_context *const ctx = test_context();
    frg_table *t = NULL, *u = NULL;
    CHECK_OK(ctx, frg_table_parse(&t, ctx, csv, sizeof csv - 1, "memory", NULL));
    CHECK_OK(ctx, frg_table_parse(&u, ctx, news, sizeof news - 1, "memory", NULL));
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.keep_effects = 1;
    static const char *const formulas[] = {"y ~ x + s | f + g", "y ~ x + i(s, ref = 'a') | f^g"};
    for (int k = 0; k < 2 && t && u; k++) {
        frg_fe *f = NULL;
        double out[7], fitted[8];
        int64_t unseen = -1;
        if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, formulas[k], t, &o)) &&
            CHECK_OK(ctx, frg_fe_predict(f, u, out, &unseen))) {
            CHECK_INT(unseen, 3);
            for (int i = 0; i < 7; i++)
                CHECK(isnan(out[i]) == (i > 0 && i < 6));
            CHECK_OK(ctx, frg_fe_residuals(f, NULL, fitted));
            near(out[0], fitted[0], 1e-12, "the first row again");
            const double step =
                frg_fe_get(f)->coefficients[0].estimate; /* row 7 has x = 1 where row 4 has 3 */
            near(out[6], fitted[3] - 2 * step, 1e-12, "a row with another x");
        }
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);
    frg_table_destroy(u);
    frg_context_destroy(ctx);
}

/** The connected sets of f1 and f2 among the rows in use, by spreading labels until nothing
 *  changes; of[i] is 1 for the set with the most rows, ties going to the earlier one, 0 for rows
 *  that are not in use.  Returns their number. */
static int brute_sets(const design *d, const bool *used, const double *counts, int32_t *of)
{
    int label[ROWS_MAX], sets = 0;
    for (int64_t i = 0; i < d->n; i++)
        label[i] = (int)i;
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t i = 0; i < d->n; i++)
            for (int64_t j = 0; j < d->n; j++)
                if (used[i] && used[j] && label[j] < label[i] &&
                    (d->codes[0][i] == d->codes[0][j] || d->codes[1][i] == d->codes[1][j])) {
                    label[i] = label[j];
                    changed = true;
                }
    }
    double size[ROWS_MAX] = {0};
    for (int64_t i = 0; i < d->n; i++) {
        of[i] = 0;
        size[label[i]] += used[i] ? counts ? counts[i] : 1 : 0;
    }
    for (;;) {
        int64_t top = 0;
        for (int64_t k = 0; k < d->n; k++)
            top = size[k] > size[top] ? k : top;
        if (size[top] == 0)
            return sets;
        sets++;
        for (int64_t i = 0; i < d->n; i++)
            if (used[i] && label[i] == top)
                of[i] = sets;
        size[top] = 0;
    }
}

/** Rows that singletons leave, by looking again and again; returns how many. */
static int64_t brute_singletons(const design *d, bool *used, const double *counts)
{
    int64_t gone = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (int q = 0; q < d->q; q++)
            for (int64_t i = 0; i < d->n; i++) {
                double same = 0;
                for (int64_t j = 0; j < d->n; j++)
                    same +=
                        used[j] && d->codes[q][j] == d->codes[q][i] ? counts ? counts[j] : 1 : 0;
                if (used[i] && same == 1) {
                    used[i] = false;
                    changed = true;
                    gone++;
                }
            }
    }
    return gone;
}

/** --connected largest is the fit of the rows that are left, to the bit; the groups are those found
 *  by hand. */
static void largest_connected_set(void)
{
    frg_context *const ctx = test_context();
    int dropped = 0, again = 0;
    for (int trial = 0; trial < test_size(120, 20); trial++) {
        static design d, small;
        const int q = 2 + (int)test_below(2);
        draw(&d, 60 + test_below(90), q, 1);
        const int64_t parts = 1 + test_below(4);
        const bool frequencies = test_below(3) == 0, keep = test_below(3) == 0;
        for (int64_t i = 0; i < d.n; i++) {
            const int64_t part = test_below(parts);
            d.codes[0][i] = 100 * part + test_below(9);
            d.codes[1][i] = 100 * part + test_below(6);
            d.w[i] = 1 + (double)test_below(3);
            if (q == 3) /* levels of a row or two, in different sets perhaps */
                d.codes[2][i] = test_below(5) ? test_below(4) : 4 + test_below(d.n / 4);
        }
        const double *const counts = frequencies ? d.w : NULL;
        bool used[ROWS_MAX];
        int32_t of[ROWS_MAX], got[ROWS_MAX];
        int64_t left = d.n, singles = 0, apart = 0, before;
        int groups = 0;
        memset(used, 1, sizeof used);
        do {
            before = left;
            const int64_t gone = keep ? 0 : brute_singletons(&d, used, counts);
            again += apart > 0 && gone > 0;
            singles += gone;
            const int sets = brute_sets(&d, used, counts, of);
            groups = groups ? groups : sets;
            left -= gone;
            for (int64_t i = 0; i < d.n; i++)
                if (of[i] > 1) {
                    used[i] = false;
                    apart++;
                    left--;
                }
        } while (left < before);
        dropped += apart > 0;
        if (left < 30) /* fewer may leave nothing of the regressor */
            continue;
        char formula[128];
        formula_of(&d, formula, sizeof formula);
        frg_fe_opts o;
        frg_fe_defaults(&o, sizeof o);
        o.keep_singletons = keep;
        o.weights = frequencies ? "w" : NULL;
        o.weights_kind = frequencies ? FRG_WEIGHTS_FREQUENCY : FRG_WEIGHTS_ANALYTIC;
        small = d;
        small.n = 0;
        for (int64_t i = 0; i < d.n; i++)
            if (used[i]) {
                for (int f = 0; f < q; f++)
                    small.codes[f][small.n] = d.codes[f][i];
                small.y[small.n] = d.y[i];
                small.x[0][small.n] = d.x[0][i];
                small.w[small.n++] = d.w[i];
            }
        frg_table *const t = table_of(ctx, &d), *const u = table_of(ctx, &small);
        frg_fe *a = NULL, *b = NULL;
        CHECK_OK(ctx, frg_fe_fit(&b, ctx, formula, u, &o));
        o.connected = FRG_CONNECTED_LARGEST;
        if (CHECK_OK(ctx, frg_fe_fit(&a, ctx, formula, t, &o)) && b) {
            const frg_fe_result *const r = frg_fe_get(a), *const s = frg_fe_get(b);
            CHECK_INT(r->n, s->n);
            CHECK_INT(r->n_disconnected, apart);
            CHECK_INT(r->n_singleton, singles);
            CHECK_INT(r->n_groups, groups);
            CHECK_INT(r->rank, s->rank);
            CHECK_BITS(&r->coefficients->estimate, &s->coefficients->estimate, 2 * sizeof(double));
            int64_t count = 0;
            CHECK_OK(ctx, frg_fe_groups(a, got, &count));
            CHECK_INT(count, 1);
            for (int64_t i = 0; i < d.n; i++)
                CHECK_INT(got[i], used[i]);
        }
        frg_fe_destroy(a);
        frg_fe_destroy(b);
        a = NULL;
        o.connected = FRG_CONNECTED_ALL;
        o.keep_singletons = 1;
        if (CHECK_OK(ctx, frg_fe_fit(&a, ctx, formula, t, &o))) {
            int64_t count = 0;
            memset(used, 1, sizeof used);
            CHECK_INT(frg_fe_get(a)->n_groups, 0);
            CHECK_OK(ctx, frg_fe_groups(a, got, &count));
            CHECK_INT(count, brute_sets(&d, used, counts, of));
            CHECK_BITS(got, of, (size_t)d.n * sizeof *of);
        }
        frg_fe_destroy(a);
        frg_table_destroy(t);
        frg_table_destroy(u);
    }
    CHECK_SAYS(dropped > test_size(40, 3) && again >= test_size(5, 0), "%d dropped, %d again",
               dropped, again);
    frg_context_destroy(ctx);
}

/* ---- threads --------------------------------------------------------------------------------- */

/** 1, 2, 3 and 8 threads: the same bits of everything. */
static void same_bits(void)
{
    enum { N = 70000 };
    static const int threads[] = {1, 2, 3, 8};
    int64_t *const f = calloc(N, sizeof *f), *const g = calloc(N, sizeof *g),
                   *const c = calloc(N, sizeof *c);
    double *const y = calloc(N, sizeof *y), *const x = calloc(N, sizeof *x),
                  *const z = calloc(N, sizeof *z);
    double *const first = calloc(N, sizeof *first), *const again = calloc(N, sizeof *again);
    double coefficients[24];
    for (int i = 0; i < N; i++) {
        f[i] = test_below(N / 4);
        g[i] = test_below(300);
        c[i] = test_below(50);
        x[i] = test_normal();
        z[i] = test_uniform() < 0.001 ? (double)NAN : exp(test_normal());
        y[i] = x[i] + test_normal() + (double)g[i];
    }
    for (int k = 0; k < 4; k++) {
        frg_context *const ctx = test_context_with(threads[k], NULL, NULL);
        frg_table *t = NULL;
        frg_fe *fit_ = NULL;
        frg_fe_opts o;
        frg_fe_defaults(&o, sizeof o);
        o.vcov[0] = "cluster=c+g";
        o.vcov[1] = "hc1";
        o.n_vcov = 2;
        CHECK_OK(ctx, frg_table_create(&t, ctx, N));
        CHECK_OK(ctx, frg_table_add_integers(t, "f", f));
        CHECK_OK(ctx, frg_table_add_integers(t, "g", g));
        CHECK_OK(ctx, frg_table_add_integers(t, "c", c));
        CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
        CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
        CHECK_OK(ctx, frg_table_add_numbers(t, "z", z));
        if (CHECK_OK(ctx, frg_fe_fit(&fit_, ctx, "y ~ x + log(z) | f + g", t, &o))) {
            const frg_fe_result *const r = frg_fe_get(fit_);
            CHECK_OK(ctx, frg_fe_residuals(fit_, k ? again : first, NULL));
            double now[24];
            for (int v = 0; v < 2; v++)
                for (int j = 0; j < 2; j++)
                    memcpy(&now[6 * (2 * v + j)], &r->vcov[v].coefficients[j].estimate,
                           6 * sizeof(double));
            if (k == 0)
                memcpy(coefficients, now, sizeof now);
            CHECK_BITS(now, coefficients, sizeof now);
            CHECK(r->n_missing > 0 && r->n_singleton > 0);
            if (k)
                CHECK_BITS(again, first, N * sizeof(double));
        }
        frg_fe_destroy(fit_);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
    free(f), free(g), free(c), free(y), free(x), free(z), free(first), free(again);
}

/* ---- columns that are read where they lie ---------------------------------------------------- */

/** Estimate to upper end of all coefficients under the first covariance, then the residuals. */
static void numbers_of(frg_context *ctx, const frg_table *t, const char *formula,
                       const frg_fe_opts *o, double *out)
{
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, o))) {
        const frg_fe_result *const r = frg_fe_get(f);
        for (int j = 0; j < r->n_coefficients; j++, out += 6)
            memcpy(out, &r->coefficients[j].estimate, 6 * sizeof *out);
        CHECK_OK(ctx, frg_fe_residuals(f, out, NULL));
    }
    frg_fe_destroy(f);
}

/** The table's columns give what copies of them give, by all methods and in any order, and stay as
 *  they were; a value that is infinite is named. */
static void columns_of_the_table(void)
{
    static const char *const formulas[][2] = {
        {"y ~ x1 | f1 + f2", "I(y + 0) ~ I(x1 + 0) | f1 + f2"},
        {"x2 ~ y | f1", "I(x2 + 0) ~ I(y + 0) | f1"},
        {"y ~ x1 + x2 + x3 | f1 + f2", "I(y + 0) ~ x1 + x2 + x3 | f1 + f2"},
        {"x1 ~ x2 + x3 | f2 + f1[w]", "I(x1 + 0) ~ x2 + x3 | f2 + f1[w]"}};
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_CG, FRG_FE_LSMR};
    for (int trial = 0; trial < test_size(12, 3); trial++) {
        design d;
        frg_context *const ctx = test_context();
        draw(&d, 100 + test_below(300), 2, TERMS);
        frg_table *const t = table_of(ctx, &d);
        frg_fe_opts o = options_of(&d);
        o.keep_effects = test_below(2) != 0;
        o.demean.method = methods[trial % 3];
        for (size_t k = 0; k < sizeof formulas / sizeof *formulas; k++) {
            double lent[6 * TERMS + ROWS_MAX] = {0}, copied[6 * TERMS + ROWS_MAX] = {0};
            numbers_of(ctx, t, formulas[k][0], &o, lent);
            numbers_of(ctx, t, formulas[k][1], &o, copied);
            CHECK_BITS(lent, copied, sizeof lent);
        }
        CHECK_BITS(frg_table_find(t, "y")->numbers, d.y, (size_t)d.n * sizeof *d.y);
        for (int j = 0; j < d.k; j++)
            CHECK_BITS(frg_table_find(t, term_names[j])->numbers, d.x[j],
                       (size_t)d.n * sizeof *d.y);
        frg_table_destroy(t);
        d.x[0][d.n / 2] = (double)INFINITY;
        frg_table *const bad = table_of(ctx, &d);
        frg_fe *f = NULL;
        CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ x1 | f1", bad, &o), FRG_BAD_DATA);
        char where[32];
        snprintf(where, sizeof where, "x1', row %lld", (long long)d.n / 2 + 1);
        CHECK_SAYS(strstr(frg_message(ctx), where) != NULL, "%s", frg_message(ctx));
        frg_table_destroy(bad);
        frg_context_destroy(ctx);
    }
}

/** With the effects the residuals are kept, without them formed anew where they are wanted: the same
 *  bits of all covariances, and of one that is asked for afterwards. */
static void residuals_formed_anew(void)
{
    static const char *const formulas[] = {
        "y ~ x1 | f1 + f2", "y ~ x1 + x2 + x3 + x1:x2 + x2:x3 | f1 + f2", "y ~ x2 + x3 | f2"};
    static const char *const specs[] = {"iid", "hc1", "hc3", "cluster=group", "cluster=f1+group"};
    for (int trial = 0; trial < test_size(20, 4); trial++) {
        design d;
        frg_context *const ctx = test_context();
        draw(&d, 60 + test_below(ROWS_MAX - 60), 2, TERMS);
        frg_table *const t = table_of(ctx, &d);
        frg_fe_opts o = options_of(&d);
        const char *const formula = formulas[trial % 3];
        o.vcov[0] = specs[test_below(sizeof specs / sizeof *specs)];
        o.n_vcov = 1;
        double found[2][6 * 5 + 2 * ROWS_MAX + 25] = {{0}};
        for (int keep = 0; keep < 2; keep++) {
            frg_fe *f = NULL;
            const frg_fe_vcov *later = NULL;
            double *out = found[keep];
            o.keep_effects = keep;
            if (!CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, &o)))
                continue;
            const frg_fe_result *const r = frg_fe_get(f);
            for (int j = 0; j < r->n_coefficients; j++, out += 6)
                memcpy(out, &r->coefficients[j].estimate, 6 * sizeof *out);
            CHECK_OK(ctx, frg_fe_residuals(f, out, out + d.n));
            if (CHECK_OK(ctx, frg_fe_vcov_add(f, "cluster=group", NULL, &later)))
                memcpy(out + 2 * d.n, later->matrix,
                       (size_t)(r->n_coefficients * r->n_coefficients) * sizeof *out);
            frg_fe_destroy(f);
        }
        CHECK_BITS(found[0], found[1], sizeof found[0]);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
}

static const test_case cases[] = {
    {"oracle_designs", oracle_designs},
    {"relabelled_and_shuffled", relabelled_and_shuffled},
    {"weights_are_rows", weights_are_rows},
    {"units", units},
    {"far_from_the_origin", far_from_the_origin},
    {"keys_of_any_type", keys_of_any_type},
    {"singletons", singletons},
    {"nested_models", nested_models},
    {"factor_columns", factor_columns},
    {"collinear_units", collinear_units},
    {"effects_add_up", effects_add_up},
    {"slopes_add_up", slopes_add_up},
    {"regressors_come_back", regressors_come_back},
    {"components", components},
    {"predictions_elsewhere", predictions_elsewhere},
    {"largest_connected_set", largest_connected_set},
    {"same_bits", same_bits},
    {"columns_of_the_table", columns_of_the_table},
    {"residuals_formed_anew", residuals_formed_anew},
};
TEST_MAIN(cases)
