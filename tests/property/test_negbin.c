/* test_negbin.c - theta of negative binomial models: its likelihood by differences, Poisson's
 * limit, numbers of others.  Coefficients and errors of random designs are test_glm.c's.
 *
 * Tolerances.  A fit leaves 1e-7 of a standard error of theta and of coefficients (test_glm.c).
 */
#include "fault.h"
#include "fourge/fe.h"
#include "test.h"

enum { ROWS = 240 };

typedef struct {
    int64_t n;
    int64_t f[ROWS], g[ROWS];
    double y[ROWS], x[ROWS], w[ROWS], o[ROWS];
} design;

static double poisson(double mean)
{
    double p = exp(-mean), u = test_uniform(), k = 0;
    for (double sum = p; sum < u && k < 400; sum += p) {
        k += 1;
        p *= mean / k;
    }
    return k;
}

/** Counts about exponential variables, theta = 1; `even`: three tosses of a coin, whose variance is
 *  below their mean. */
static void draw(design *d, bool even)
{
    *d = (design){.n = ROWS};
    for (int64_t i = 0; i < d->n; i++) {
        d->f[i] = test_below(6);
        d->g[i] = test_below(5);
        d->x[i] = test_normal();
        d->w[i] = (double)(1 + test_below(3));
        d->o[i] = 0.4 * test_normal();
        const double mean = exp(0.5 + 0.3 * d->x[i] + 0.2 * (double)d->f[i] + d->o[i]);
        for (int k = 0; k < 3 && even; k++)
            d->y[i] += (double)test_below(2);
        if (!even)
            d->y[i] = poisson(mean * -log(test_uniform() + 1e-9));
    }
}

static frg_status table_of(frg_table **t, frg_context *ctx, const design *d)
{
    frg_status s = frg_table_create(t, ctx, d->n);
    s = s < 0 ? s : frg_table_add_numbers(*t, "y", d->y);
    s = s < 0 ? s : frg_table_add_numbers(*t, "x", d->x);
    s = s < 0 ? s : frg_table_add_numbers(*t, "w", d->w);
    s = s < 0 ? s : frg_table_add_numbers(*t, "o", d->o);
    s = s < 0 ? s : frg_table_add_integers(*t, "f", d->f);
    return s < 0 ? s : frg_table_add_integers(*t, "g", d->g);
}

static frg_fe_opts options(frg_fe_family family)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.family = family;
    o.keep_singletons = 1;
    o.glm_iter = 100;
    o.ssc = "adj=false,cluster.adj=false";
    return o;
}

/** A fit, or NULL where it is refused. */
static frg_fe *fit(frg_context *ctx, const design *d, const char *formula, const frg_fe_opts *o,
                   frg_table **t)
{
    frg_fe *f = NULL;
    CHECK_OK(ctx, table_of(t, ctx, d));
    frg_warnings_clear(ctx);
    (void)!frg_fe_fit(&f, ctx, formula, *t, o);
    return f;
}

static frg_fe_glm glm_of(frg_context *ctx, const design *d, const char *formula,
                         const frg_fe_opts *o)
{
    frg_table *t = NULL;
    frg_fe *const f = fit(ctx, d, formula, o, &t);
    frg_fe_glm g = {.theta = NAN};
    if (CHECK_SAYS(f, "%s", frg_message(ctx))) {
        g = *frg_fe_get(f)->glm;
        g.separated = NULL;
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return g;
}

static bool warned(const frg_context *ctx, const char *code)
{
    bool said = false;
    for (int i = 0; i < frg_warning_count(ctx); i++)
        said |= strcmp(frg_warning_code(ctx, i), code) == 0;
    return said;
}

static void near(double got, double want, double allowed, const char *what)
{
    CHECK_SAYS(fabs(got - want) <= allowed, "%s is %.17g, expected %.17g: error %.2g > %.2g", what,
               got, want, fabs(got - want), allowed);
}

/* ---- the likelihood in theta ----------------------------------------------------------------- */

/** sum w d log f / d theta at the means, gamma functions by sums over integers. */
static double score(const design *d, const double *mu, double theta)
{
    double sum = 0;
    for (int64_t i = 0; i < d->n; i++) {
        double row = log(theta / (theta + mu[i])) + (mu[i] - d->y[i]) / (mu[i] + theta);
        for (int j = 0; j < (int)d->y[i]; j++)
            row += 1 / (theta + j);
        sum += d->w[i] * row;
    }
    return sum;
}

/** Central differences of the likelihood's maximum over coefficients and effects at given thetas:
 *  by the envelope theorem they are the score at the means there.  With h = 1e-4 theta they err by
 *  h^2 / 6 of a third derivative, which is of the order of sum w / theta^3, so by 1e-8 sum w /
 *  theta, and by rounding, 1e-15 of the likelihood / h.  theta estimated is where they vanish, and
 *  its likelihood is above those at both sides. */
static void profile(void)
{
    frg_context *const ctx = test_context();
    for (int k = 0; k < 6; k++) {
        design d;
        double mu[ROWS], L[2], weight = 0;
        draw(&d, false);
        for (int64_t i = 0; i < d.n; i++)
            weight += d.w[i];
        frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
        o.weights = "w";
        o.offset = "o";
        const frg_fe_glm best = glm_of(ctx, &d, "y ~ x | f + g", &o);
        CHECK(best.converged && best.theta > 0 && best.theta_std_error > 0);
        const double at[] = {0.3, best.theta, 4};
        for (int j = 0; j < 3; j++) {
            frg_table *t = NULL;
            const double h = 1e-4 * at[j];
            o.theta = at[j];
            frg_fe *const f = fit(ctx, &d, "y ~ x | f + g", &o, &t);
            if (CHECK(f)) {
                CHECK_OK(ctx, frg_fe_residuals(f, NULL, mu));
                CHECK_BITS(&frg_fe_get(f)->glm->theta, &at[j], sizeof at[j]);
                CHECK(isnan(frg_fe_get(f)->glm->theta_std_error));
            }
            frg_fe_destroy(f);
            frg_table_destroy(t);
            for (int side = 0; side < 2; side++) {
                o.theta = at[j] + (side ? h : -h);
                L[side] = glm_of(ctx, &d, "y ~ x | f + g", &o).log_likelihood;
                CHECK(L[side] <= best.log_likelihood);
            }
            const double want = score(&d, mu, at[j]);
            near((L[1] - L[0]) / (2 * h), want, 1e-7 * weight / at[j] + 1e-14 * fabs(L[0]) / h,
                 "a score");
            if (j == 1)
                near(want, 0, 2e-7 / best.theta_std_error, "the score at the estimate");
        }
    }
    frg_context_destroy(ctx);
}

/** A theta that is given counts in no criterion; one that is estimated counts once. */
static void criteria(void)
{
    frg_context *const ctx = test_context();
    design d;
    draw(&d, false);
    frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
    const frg_fe_glm free = glm_of(ctx, &d, "y ~ x | f", &o);
    o.theta = free.theta;
    const frg_fe_glm given = glm_of(ctx, &d, "y ~ x | f", &o);
    near(given.log_likelihood, free.log_likelihood, 1e-10 * fabs(free.log_likelihood), "at theta");
    near(free.aic - given.aic, 2, 1e-7, "AIC");
    near(free.bic - given.bic, log((double)d.n), 1e-7, "BIC");
    near(free.deviance, given.deviance, 1e-6 * free.deviance, "the deviance");
    frg_context_destroy(ctx);
}

/** What is said of a constant alone is what a fit of it says, with and without an offset. */
static void nulls(void)
{
    frg_context *const ctx = test_context();
    for (int k = 0; k < 4; k++) {
        design d;
        draw(&d, false);
        frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
        o.offset = k % 2 ? "o" : NULL;
        o.weights = k / 2 ? "w" : NULL;
        const frg_fe_glm model = glm_of(ctx, &d, "y ~ x | f", &o);
        const frg_fe_glm constant = glm_of(ctx, &d, "y ~ 1", &o);
        o.theta = model.theta;
        const frg_fe_glm same = glm_of(ctx, &d, "y ~ 1", &o);
        const double scale = 1e-9 * fabs(model.log_likelihood);
        near(model.null_log_likelihood, constant.log_likelihood, scale,
             "the constant's likelihood");
        near(constant.pseudo_r2, 0, 1e-9, "its pseudo R2");
        near(model.null_deviance, same.deviance, 1e-8 * same.deviance, "its deviance");
    }
    frg_context_destroy(ctx);
}

/** Weights that count rows are those rows, and the errors of the estimates. */
static void repeated(void)
{
    frg_context *const ctx = test_context();
    design d, twice;
    draw(&d, false);
    d.n = ROWS / 2;
    twice = d;
    for (int64_t i = 0; i < d.n; i++) {
        const bool two = d.w[i] > 1;
        d.w[i] = two ? 2 : 1;
        if (two) {
            twice.y[twice.n] = d.y[i];
            twice.x[twice.n] = d.x[i];
            twice.f[twice.n++] = d.f[i];
        }
    }
    frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
    const frg_fe_glm rows = glm_of(ctx, &twice, "y ~ x | f", &o);
    o.weights = "w";
    o.weights_kind = FRG_WEIGHTS_FREQUENCY;
    const frg_fe_glm counted = glm_of(ctx, &d, "y ~ x | f", &o);
    near(counted.theta, rows.theta, 2e-7 * rows.theta_std_error, "theta");
    near(counted.theta_std_error, rows.theta_std_error, 1e-5 * rows.theta_std_error, "its error");
    near(counted.bic, rows.bic, 1e-9 * fabs(rows.bic), "BIC");
    frg_context_destroy(ctx);
}

/* ---- Poisson's limit ------------------------------------------------------------------------- */

/** Outcomes less dispersed than Poisson's: theta is infinite, which is warned of, and all else is
 *  Poisson's; a fit that ends before it knows does not say so. */
static void limit(void)
{
    frg_context *const ctx = test_context();
    for (int k = 0; k < 4; k++) {
        design d;
        double b[2], se[2];
        frg_fe_glm g[2];
        draw(&d, true);
        frg_fe_opts o = options(FRG_FAMILY_POISSON);
        for (int i = 0; i < 2; i++) {
            frg_table *t = NULL;
            o.family = i ? FRG_FAMILY_NEGBIN : FRG_FAMILY_POISSON;
            frg_fe *const f = fit(ctx, &d, k % 2 ? "y ~ x" : "y ~ x | f + g", &o, &t);
            CHECK(warned(ctx, "FRG-FE-166") == (i == 1));
            if (CHECK(f)) {
                const frg_fe_result *const r = frg_fe_get(f);
                b[i] = r->coefficients[r->n_coefficients - 1].estimate;
                se[i] = r->coefficients[r->n_coefficients - 1].std_error;
                g[i] = *r->glm;
            }
            frg_fe_destroy(f);
            frg_table_destroy(t);
        }
        CHECK(isinf(g[1].theta) && isnan(g[1].theta_std_error) && g[1].converged);
        CHECK(isnan(g[0].theta) && isnan(g[0].theta_std_error));
        near(b[1], b[0], 1e-7 * se[0], "an estimate");
        near(se[1], se[0], 1e-6 * se[0], "its error");
        near(g[1].log_likelihood, g[0].log_likelihood, 1e-10 * fabs(g[0].log_likelihood), "log L");
        near(g[1].null_log_likelihood, g[0].null_log_likelihood, 1e-10 * fabs(g[0].log_likelihood),
             "log L of a constant");
        near(g[1].deviance, g[0].deviance, 1e-10 * g[0].deviance, "the deviance");
        o.glm_iter = 2;
        const frg_fe_glm early = glm_of(ctx, &d, "y ~ x | f + g", &o);
        CHECK(!early.converged && !warned(ctx, "FRG-FE-166") && warned(ctx, "FRG-FE-124"));
    }
    frg_context_destroy(ctx);
}

/** Half of the outcomes m - s and half m + s with s^2 = m + a m^2: the score of alpha = 1 / theta
 *  at the mean m is, by the series of log(1 + x) in both its places,
 *
 *      a m^2 / 2 - alpha (m^2 / 2 - m / 3) + (alpha^2 - a alpha) m^3 + ...
 *
 *  so that alpha = a / (1 - 2 / (3 m)), and a share of the order of a and (a m)^2.  The fit leaves
 *  1e-9 of alpha's error, (2 / n)^(1/2) / m.  theta from 1e3 to 1e8 times the mean. */
static void nearly_poisson(void)
{
    frg_context *const ctx = test_context();
    for (int k = 0; k < 6; k++) {
        const double a = pow(10, -5 - k), m = 100, s = sqrt(m + m * m * a);
        const double alpha = a / (1 - 2 / (3 * m)), left = 1e-9 * sqrt(2.0 / ROWS) / m;
        design d = {.n = ROWS};
        for (int64_t i = 0; i < d.n; i++) {
            d.y[i] = i % 2 ? m - s : m + s;
            d.x[i] = (double)(i / 2 % 2);
        }
        const frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
        const frg_fe_glm g = glm_of(ctx, &d, "y ~ x", &o);
        CHECK(g.converged && isfinite(g.theta) && g.theta_std_error > 0);
        near(1 / g.theta, alpha, 10 * alpha * (a + a * a * m * m) + left, "alpha");
    }
    frg_context_destroy(ctx);
}

/* ---- numbers of others ----------------------------------------------------------------------- */

/** MASS 7.3-58.2 with dummies (tools/make_negbin_golden.R); the first model's theta, likelihood and
 *  null likelihood are statsmodels 0.15.0's, too. */
static void goldens(void)
{
    static const struct {
        const char *formula, *offset, *weights, *term;
        double theta, theta_error, log_likelihood, deviance, null_deviance, estimate, std_error;
        double null_log_likelihood;
    } table[] = {
        {"hours ~ union + married | year + occupation", NULL, NULL, "union", 14.099021400928402,
         0.30111528356829992, -33852.705190424611, 4420.1350638292206, 4886.4575129903114,
         -0.019408040333189575, 0.0097078218957095883, -34074.435579562589},
        {"hours ~ educ + exper | year", "log(exper + 1)", NULL, "educ", 12.984891339633057,
         0.27682878447209575, -34034.839636279183, 4423.5129560073392, 11717.999547433954,
         0.003545599789116078, 0.0029631842040128112, NAN},
        {"hours ~ union + exper + factor(year)", NULL, "educ", "union", 13.31637839967288,
         0.082804885542317352, -399840.95945667708, 52037.52916066326, 54875.27142261494,
         -0.029727962295072817, 0.0028369590230515615, NAN},
    };
    frg_context *const ctx = test_context();
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_read(&t, ctx, FOURGE_SOURCE_DIR "/data/wage_panel.csv", NULL));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
        frg_fe *f = NULL;
        o.glm_iter = 25;
        o.offset = table[i].offset;
        o.weights = table[i].weights;
        if (!CHECK_OK(ctx, frg_fe_fit(&f, ctx, table[i].formula, t, &o)))
            continue;
        const frg_fe_result *const r = frg_fe_get(f);
        for (int j = 0; j < r->n_coefficients; j++) {
            const frg_coefficient *const c = &r->coefficients[j];
            if (strcmp(c->term, table[i].term) != 0)
                continue;
            near(c->estimate, table[i].estimate, 1e-7 * table[i].std_error, c->term);
            near(c->std_error, table[i].std_error, 1e-6 * table[i].std_error, "its error");
        }
        /* theta.ml() ends its steps at 1e-12 of theta, glm() at 1e-14 of the deviance, of which the
         * root is the share of an error that is left */
        near(r->glm->theta, table[i].theta, 1e-6 * table[i].theta_error, "theta");
        near(r->glm->theta_std_error, table[i].theta_error, 1e-6 * table[i].theta_error, "its se");
        near(r->glm->log_likelihood, table[i].log_likelihood, 1e-11 * -table[i].log_likelihood,
             "the log-likelihood");
        near(r->glm->deviance, table[i].deviance, 1e-8 * table[i].deviance, "the deviance");
        near(r->glm->null_deviance, table[i].null_deviance, 1e-8 * table[i].null_deviance, "null");
        if (!isnan(table[i].null_log_likelihood))
            near(r->glm->null_log_likelihood, table[i].null_log_likelihood, 1e-6,
                 "the constant's log-likelihood");
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- rows that are left out, bad input ------------------------------------------------------- */

/** The rows that Poisson's model leaves out are those of this one: a level of zeros, and a
 *  regressor that is positive at zeros alone. */
static void separation(void)
{
    frg_context *const ctx = test_context();
    design d;
    draw(&d, false);
    int64_t gone = 0;
    for (int64_t i = 0; i < d.n; i++) {
        d.x[i] = i % 9 == 4;
        d.y[i] = d.f[i] == 2 || d.x[i] > 0 ? 0 : d.y[i];
        gone += d.f[i] == 2 || d.x[i] > 0;
    }
    frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
    CHECK_INT(glm_of(ctx, &d, "y ~ x + o | f", &o).n_separated, gone);
    CHECK(warned(ctx, "FRG-FE-123"));
    o.family = FRG_FAMILY_POISSON;
    CHECK_INT(glm_of(ctx, &d, "y ~ x + o | f", &o).n_separated, gone);
    frg_context_destroy(ctx);
}

static void refusals(void)
{
    static const struct {
        frg_fe_family family;
        frg_fe_link link;
        double theta, y; /* of row 3; NaN: all are 0 */
        const char *formula, *vcov, *code;
    } table[] = {{FRG_FAMILY_NEGBIN, FRG_LINK_AUTO, 0, -1, "y ~ x | f", "iid", "FRG-FE-021"},
                 {FRG_FAMILY_NEGBIN, FRG_LINK_AUTO, 0, INFINITY, "y ~ x | f", "iid", "FRG-FE-021"},
                 {FRG_FAMILY_NEGBIN, FRG_LINK_AUTO, 0, NAN, "y ~ x | f", "iid", "FRG-FE-022"},
                 {FRG_FAMILY_NEGBIN, FRG_LINK_IDENTITY, 0, 1, "y ~ x", "iid", "FRG-CORE-006"},
                 {FRG_FAMILY_NEGBIN, FRG_LINK_AUTO, -1, 1, "y ~ x", "iid", "FRG-CORE-006"},
                 {FRG_FAMILY_NEGBIN, FRG_LINK_AUTO, INFINITY, 1, "y ~ x", "iid", "FRG-CORE-006"},
                 {FRG_FAMILY_NEGBIN, FRG_LINK_AUTO, NAN, 1, "y ~ x", "iid", "FRG-CORE-006"},
                 {FRG_FAMILY_POISSON, FRG_LINK_AUTO, 2, 1, "y ~ x", "iid", "FRG-CORE-006"},
                 {FRG_FAMILY_OLS, FRG_LINK_AUTO, 2, 1, "y ~ x", "iid", "FRG-CORE-006"},
                 {FRG_FAMILY_NEGBIN, FRG_LINK_AUTO, 0, 1, "y ~ 1 | x ~ o", "iid", "FRG-CORE-004"},
                 {FRG_FAMILY_NEGBIN, FRG_LINK_AUTO, 0, 1, "y ~ x | f", "hc3", "FRG-CORE-004"}};
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        design d;
        frg_table *t = NULL;
        draw(&d, false);
        for (int64_t r = 0; r < d.n && isnan(table[i].y); r++)
            d.y[r] = 0;
        d.y[3] = isnan(table[i].y) ? 0 : table[i].y;
        frg_fe_opts o = options(table[i].family);
        o.link = table[i].link;
        o.theta = table[i].theta;
        o.vcov[0] = table[i].vcov;
        frg_fe *const f = fit(ctx, &d, table[i].formula, &o, &t);
        CHECK_SAYS(!f, "row %d is not refused", (int)i);
        CHECK_TEXT(frg_error_code(ctx), table[i].code);
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/* ---- covariances, threads, faults ------------------------------------------------------------ */

/** Every covariance that Poisson's models have; those by unit and period take the panel's. */
static void covariances(void)
{
    static const char *const specs[] = {"hc1",
                                        "cluster=f",
                                        "cluster=f+g",
                                        "nw=id,t,2",
                                        "dk=t,2",
                                        "hac=id,t,2",
                                        "conley=x,o,50,kernel=bartlett"};
    enum { SPECS = sizeof specs / sizeof *specs };
    frg_context *const ctx = test_context();
    design d;
    int64_t id[ROWS], time[ROWS];
    frg_table *t = NULL;
    draw(&d, false);
    for (int64_t i = 0; i < d.n; i++) {
        id[i] = i / 12;
        time[i] = i % 12;
    }
    frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
    CHECK_OK(ctx, table_of(&t, ctx, &d));
    CHECK_OK(ctx, frg_table_add_integers(t, "id", id));
    CHECK_OK(ctx, frg_table_add_integers(t, "t", time));
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | f", t, &o))) {
        for (int i = 0; i < SPECS; i++) {
            const frg_fe_vcov *v = NULL;
            CHECK_OK(ctx, frg_fe_vcov_add(f, specs[i], NULL, &v));
            /* a sum and difference of matrices (cluster=f+g, hac) need not be positive, and says so */
            CHECK_SAYS(v && (v->projected || v->coefficients[0].std_error > 0) && isinf(v->df_t),
                       "%s", specs[i]);
            CHECK(v && (!v->projected || i == 2 || i == 5));
        }
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const design *const d = user;
    frg_table *t = NULL;
    frg_fe *f = NULL;
    frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
    o.weights = "w";
    o.offset = "o";
    frg_status s = table_of(&t, ctx, d);
    s = s < 0 ? s : frg_fe_fit(&f, ctx, "y ~ x | f + g", t, &o);
    if (s >= 0 && f) {
        const frg_fe_result *const r = frg_fe_get(f);
        fault_hash(hash, &r->coefficients[0].estimate, 2 * sizeof(double));
        fault_hash(hash, &r->glm->theta, 2 * sizeof(double));
        fault_hash(hash, &r->glm->null_log_likelihood, sizeof(double));
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return s;
}

static void faults(void)
{
    design d;
    draw(&d, false);
    fault_sweep("a negative binomial model", body, &d, 1);
}

/** The same bits for any number of threads, on rows enough for several. */
static void threads(void)
{
    enum { MANY = 30000, NUMBERS = 6 };
    double *const y = malloc(sizeof(double) * MANY), *const x = malloc(sizeof(double) * MANY);
    int64_t *const f1 = malloc(sizeof(int64_t) * MANY);
    double b[2][NUMBERS] = {{0}};
    for (int64_t i = 0; i < MANY; i++) {
        f1[i] = test_below(300);
        x[i] = test_normal();
        y[i] = poisson(exp(0.3 * x[i] + 0.002 * (double)f1[i]) * -log(test_uniform() + 1e-9));
    }
    for (int k = 0; k < 2; k++) {
        frg_context_opts c;
        frg_context *ctx = NULL;
        frg_table *t = NULL;
        frg_fe *f = NULL;
        frg_fe_opts o = options(FRG_FAMILY_NEGBIN);
        frg_context_defaults(&c, sizeof c);
        c.threads = k ? 3 : 1;
        CHECK(frg_context_create(&ctx, &c) == FRG_OK);
        CHECK_OK(ctx, frg_table_create(&t, ctx, MANY));
        CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
        CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
        CHECK_OK(ctx, frg_table_add_integers(t, "f1", f1));
        if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | f1", t, &o))) {
            const frg_fe_result *const r = frg_fe_get(f);
            const double numbers[NUMBERS] = {r->coefficients[0].estimate,
                                             r->coefficients[0].std_error,
                                             r->glm->theta,
                                             r->glm->theta_std_error,
                                             r->glm->log_likelihood,
                                             r->glm->null_log_likelihood};
            memcpy(b[k], numbers, sizeof numbers);
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
    CHECK_BITS(b[0], b[1], sizeof b[0]);
    free(y);
    free(x);
    free(f1);
}

static const test_case cases[] = {
    {"profile", profile},         {"criteria", criteria},     {"nulls", nulls},
    {"repeated", repeated},       {"limit", limit},           {"nearly Poisson", nearly_poisson},
    {"goldens", goldens},         {"separation", separation}, {"refusals", refusals},
    {"covariances", covariances}, {"faults", faults},         {"threads", threads}};
TEST_MAIN(cases)
