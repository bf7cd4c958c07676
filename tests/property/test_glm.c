/* test_glm.c - generalised linear models on random designs.
 *
 * The truth is Newton's method in long double on all dummies at once: a ridge of 1e-13 of the
 * diagonal stands in for the null space of the dummies, which the slopes do not see.  Each family
 * with its link, up to two effects, weights, an offset; iid, HC1 and clustered errors without
 * small-sample factors from X~ of the same system.  theta of the negative binomial is bisected, its
 * gamma functions are sums over the integers below the counts.
 *
 * Tolerances.  What the last step leaves is forecast to be 1e-9 of a standard error, the demeaner
 * leaves 1e-10 of a column: 1e-7 of the error for estimates, 1e-5 for errors.
 */
#include "fault.h"
#include "fourge/fe.h"
#include "test.h"

enum { ROWS = 200, X = 2, COLUMNS = 1 + X + 16 };
typedef long double real;

typedef struct {
    int64_t n;
    int q;
    bool weighted, offset;
    frg_fe_family family;
    frg_fe_link link;
    int64_t codes[2][ROWS], group[ROWS];
    double y[ROWS], x[X][ROWS], w[ROWS], o[ROWS];
} design;

static const struct {
    frg_fe_family family;
    frg_fe_link link;
} models[] = {{FRG_FAMILY_POISSON, FRG_LINK_AUTO},  {FRG_FAMILY_LOGIT, FRG_LINK_AUTO},
              {FRG_FAMILY_PROBIT, FRG_LINK_PROBIT}, {FRG_FAMILY_GAUSSIAN, FRG_LINK_AUTO},
              {FRG_FAMILY_GAMMA, FRG_LINK_LOG},     {FRG_FAMILY_NEGBIN, FRG_LINK_LOG}};
enum { MODELS = sizeof models / sizeof *models };

static double poisson(double mean)
{
    double p = exp(-mean), u = test_uniform(), k = 0;
    for (double sum = p; sum < u && k < 200; sum += p) {
        k += 1;
        p *= mean / k;
    }
    return k;
}

/** A negative binomial count: Poisson about the mean times a gamma variable of mean 1 and shape
 *  1/2, 1 or 2. */
static double negbin(double mean, int64_t shape)
{
    const double z = test_normal(), u = test_uniform() + 1e-9, v = test_uniform() + 1e-9;
    return poisson(mean * (shape == 0 ? z * z : shape == 1 ? -log(u) : -0.5 * log(u * v)));
}

static void draw(design *d, int model)
{
    *d = (design){.n = 120 + test_below(ROWS - 120),
                  .q = (int)test_below(3),
                  .weighted = test_below(2),
                  .offset = test_below(2),
                  .family = models[model].family,
                  .link = models[model].link};
    for (int64_t i = 0; i < d->n; i++) {
        d->codes[0][i] = test_below(4);
        d->codes[1][i] = test_below(5);
        d->group[i] = test_below(12);
        d->w[i] = 0.5 + test_uniform();
        d->o[i] = 0.3 * test_normal();
        double eta = 0.3 * (double)d->codes[0][i] - 0.2 * (double)d->codes[1][i];
        for (int j = 0; j < X; j++) {
            d->x[j][i] = test_normal() + 0.2 * (double)d->codes[j][i];
            eta += (0.4 - 0.7 * j) * d->x[j][i];
        }
        eta += d->offset ? d->o[i] : 0;
        const double u = test_uniform();
        switch (d->family) {
        case FRG_FAMILY_POISSON:
            d->y[i] = poisson(exp(eta));
            break;
        case FRG_FAMILY_NEGBIN:
            d->y[i] = negbin(exp(eta), d->n % 3);
            break;
        case FRG_FAMILY_LOGIT:
        case FRG_FAMILY_PROBIT:
            d->y[i] = u < 1 / (1 + exp(-eta));
            break;
        case FRG_FAMILY_GAMMA:
            d->y[i] = exp(eta) * -log(u + 1e-6) + 1e-3;
            break;
        default:
            d->y[i] = eta + test_normal();
        }
    }
}

static frg_table *table_of(frg_context *ctx, const design *d)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, d->n));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", d->y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "w", d->w));
    CHECK_OK(ctx, frg_table_add_numbers(t, "o", d->o));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x1", d->x[0]));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x2", d->x[1]));
    CHECK_OK(ctx, frg_table_add_integers(t, "group", d->group));
    CHECK_OK(ctx, frg_table_add_integers(t, "f1", d->codes[0]));
    CHECK_OK(ctx, frg_table_add_integers(t, "f2", d->codes[1]));
    return t;
}

static const char *formula_of(const design *d)
{
    static const char *const formulas[] = {"y ~ x1 + x2", "y ~ x1 + x2 | f1",
                                           "y ~ x1 + x2 | f1 + f2"};
    return formulas[d->q];
}

static frg_fe_opts options_of(const design *d)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.family = d->family;
    o.link = d->link;
    o.weights = d->weighted ? "w" : NULL;
    o.offset = d->offset ? "2*o/2" : NULL;
    o.keep_singletons = 1;
    o.separation = FRG_SEPARATION_NONE;
    o.glm_iter = 100;
    o.vcov[0] = "iid";
    o.vcov[1] = "hc1";
    o.vcov[2] = "cluster=group";
    o.n_vcov = 3;
    o.ssc = "adj=false,cluster.adj=false";
    return o;
}

static void near(double got, double want, double allowed, const char *what)
{
    CHECK_SAYS(fabs(got - want) <= allowed, "%s is %.17g, expected %.17g: error %.2g > %.2g", what,
               got, want, fabs(got - want), allowed);
}

/* ---- the truth ------------------------------------------------------------------------------- */

/** mean, its slope and the variance at eta, of the families that are drawn. */
static void family_at(frg_fe_family family, real theta, real eta, real *mu, real *slope,
                      real *variance)
{
    switch (family) {
    case FRG_FAMILY_NEGBIN:
        *mu = *slope = expl(eta);
        *variance = *mu + *mu * *mu / theta;
        break;
    case FRG_FAMILY_POISSON:
        *mu = *slope = *variance = expl(eta);
        break;
    case FRG_FAMILY_LOGIT:
        *mu = 1 / (1 + expl(-eta));
        *slope = *variance = *mu * (1 - *mu);
        break;
    case FRG_FAMILY_PROBIT:
        *mu = 0.5L * erfcl(-eta / sqrtl(2.0L));
        *slope = expl(-eta * eta / 2) / sqrtl(6.28318530717958647692528676655900577L);
        *variance = *mu * (1 - *mu);
        break;
    case FRG_FAMILY_GAMMA:
        *mu = *slope = expl(eta);
        *variance = *mu * *mu;
        break;
    default:
        *mu = eta;
        *slope = *variance = 1;
    }
}

/** Column c of row i: x1, x2, then ones, or the dummies of the effects. */
static real column(const design *d, int c, int64_t i)
{
    if (c < X)
        return d->x[c][i];
    if (d->q == 0)
        return 1;
    return c < X + 4 ? d->codes[0][i] == c - X : d->codes[1][i] == c - X - 4;
}

/** a (k x k) <- its inverse, symmetric and positive definite. */
static void invert(int k, real *a)
{
    for (int c = 0; c < k; c++) {
        const real pivot = a[c * k + c];
        a[c * k + c] = 1;
        for (int j = 0; j < k; j++)
            a[c * k + j] /= pivot;
        for (int i = 0; i < k; i++) {
            const real f = a[i * k + c];
            if (i == c)
                continue;
            a[i * k + c] = 0;
            for (int j = 0; j < k; j++)
                a[i * k + j] -= f * a[c * k + j];
        }
    }
}

typedef struct {
    real b[COLUMNS], inverse[COLUMNS * COLUMNS], deviance;
    real score[ROWS];                  /* w (y - mu) slope / variance */
    real mu[ROWS], theta, information; /* of theta */
    int k;
} truth;

/** The score of theta at the means, and its information. */
static real theta_score(const design *d, truth *t, real theta)
{
    real sum = 0;
    t->information = 0;
    for (int64_t i = 0; i < d->n; i++) {
        const real w = d->weighted ? d->w[i] : 1, mu = t->mu[i], y = d->y[i];
        real first = logl(theta / (theta + mu)) + (mu - y) / (mu + theta);
        real second = 1 / theta - 2 / (theta + mu) + (y + theta) / ((mu + theta) * (mu + theta));
        for (int j = 0; j < (int)y; j++) {
            first += 1 / (theta + j);
            second -= 1 / ((theta + j) * (theta + j));
        }
        sum += w * first;
        t->information -= w * second;
    }
    return sum;
}

/** theta <- the zero of its score at the means. */
static void solve_theta(const design *d, truth *t)
{
    real low = 1e-4L, high = 1e6L;
    for (int step = 0; step < 90; step++) {
        t->theta = sqrtl(low * high);
        if (theta_score(d, t, t->theta) > 0)
            low = t->theta;
        else
            high = t->theta;
    }
}

/** sum w log f */
static real negbin_likelihood(const design *d, const truth *t)
{
    real sum = 0;
    for (int64_t i = 0; i < d->n; i++) {
        const real mu = t->mu[i], y = d->y[i];
        real row = t->theta * logl(t->theta / (t->theta + mu)) + y * logl(mu / (t->theta + mu));
        for (int j = 0; j < (int)y; j++)
            row += logl((t->theta + j) / (j + 1));
        sum += (d->weighted ? d->w[i] : 1) * row;
    }
    return sum;
}

static void gradient(const design *d, truth *t, real *g)
{
    memset(g, 0, sizeof *g * COLUMNS);
    memset(t->inverse, 0, sizeof t->inverse);
    for (int64_t i = 0; i < d->n; i++) {
        real eta = d->offset ? d->o[i] : 0, mu, slope, variance;
        for (int c = 0; c < t->k; c++)
            eta += t->b[c] * column(d, c, i);
        family_at(d->family, t->theta, eta, &mu, &slope, &variance);
        t->mu[i] = mu;
        const real w = d->weighted ? d->w[i] : 1;
        t->score[i] = w * (d->y[i] - mu) * slope / variance;
        for (int c = 0; c < t->k; c++) {
            g[c] += t->score[i] * column(d, c, i);
            for (int s = 0; s < t->k; s++)
                t->inverse[c * t->k + s] +=
                    w * slope * slope / variance * column(d, c, i) * column(d, s, i);
        }
    }
}

static void solve(const design *d, truth *t)
{
    real g[COLUMNS];
    *t = (truth){.k = X + (d->q == 0 ? 1 : d->q == 1 ? 4 : 9), .theta = 1};
    const bool negbin = d->family == FRG_FAMILY_NEGBIN; /* scoring converges slowly there */
    for (int step = 0; step < (negbin ? 150 : 60); step++) {
        gradient(d, t, g);
        for (int c = X; c < t->k; c++)
            t->inverse[c * (t->k + 1)] *= 1 + 1e-13L;
        invert(t->k, t->inverse);
        real largest = 0, move[COLUMNS] = {0};
        for (int c = 0; c < t->k; c++) {
            for (int s = 0; s < t->k; s++)
                move[c] += t->inverse[c * t->k + s] * g[s];
            largest = fmaxl(largest, fabsl(move[c]));
        }
        for (int c = 0; c < t->k; c++)
            t->b[c] += largest > 1 ? move[c] / largest : move[c];
        if (negbin && step % 5 == 4)
            solve_theta(d, t); /* at the means before the step: they are the same in the end */
    }
}

/** Sandwich of the slopes: A (sum s s') A over groups, or rows. */
static void sandwich(const design *d, const truth *t, const int64_t *group, real v[X][X])
{
    static real sums[ROWS][COLUMNS];
    memset(sums, 0, sizeof sums);
    memset(v, 0, sizeof(real) * X * X);
    for (int64_t i = 0; i < d->n; i++)
        for (int c = 0; c < t->k; c++)
            sums[group ? group[i] : i][c] += t->score[i] * column(d, c, i);
    for (int64_t i = 0; i < d->n; i++) {
        real z[X] = {0};
        for (int a = 0; a < X; a++)
            for (int c = 0; c < t->k; c++)
                z[a] += t->inverse[a * t->k + c] * sums[i][c];
        for (int a = 0; a < X; a++)
            for (int b = 0; b < X; b++)
                v[a][b] += z[a] * z[b];
    }
}

/** What a negative binomial model has beside; the likelihood is flat where it is largest. */
static void compare_theta(const frg_fe_glm *g, const design *d, truth *want)
{
    theta_score(d, want, want->theta);
    const double se = 1 / sqrt((double)want->information);
    const double likelihood = (double)negbin_likelihood(d, want);
    const double parameters = (double)(d->q == 2 ? want->k - 1 : want->k) + 1;
    near(g->theta, (double)want->theta, 1e-7 * se, "theta");
    near(g->theta_std_error, se, 1e-5 * se, "its error");
    near(g->log_likelihood, likelihood, 1e-11 * fabs(likelihood), "the log-likelihood");
    near(g->aic, -2 * likelihood + 2 * parameters, 1e-10 * fabs(likelihood), "AIC");
}

static void compare(frg_context *ctx, const design *d)
{
    static truth want;
    frg_table *const t = table_of(ctx, d);
    const frg_fe_opts o = options_of(d);
    frg_fe *f = NULL;
    real v[X][X];
    solve(d, &want);
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula_of(d), t, &o))) {
        const frg_fe_result *const r = frg_fe_get(f);
        const bool dispersed = d->family == FRG_FAMILY_GAUSSIAN || d->family == FRG_FAMILY_GAMMA;
        CHECK(r->converged && r->glm && r->glm->converged);
        CHECK(isinf(r->vcov[0].df_t) == !dispersed);
        if (d->family == FRG_FAMILY_NEGBIN)
            compare_theta(r->glm, d, &want);
        for (int c = 0; c < 3; c++) {
            sandwich(d, &want, c == 2 ? d->group : NULL, v);
            for (int a = 0; a < X; a++) {
                const frg_coefficient *const got =
                    &r->vcov[c].coefficients[a + r->n_coefficients - X];
                real variance = c ? v[a][a] : want.inverse[a * (want.k + 1)];
                if (c == 0 && dispersed) /* sum W e^2 / (n - 1): adj=false */
                    variance *= r->glm->dispersion * (double)r->df_residual / (double)(d->n - 1);
                const double se = (double)sqrtl(variance);
                near(got->std_error, se, 1e-5 * se, r->vcov[c].spec);
                near(got->estimate, (double)want.b[a], 1e-7 * se, "an estimate");
            }
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
        draw(&d, (int)(i % MODELS));
        compare(ctx, &d);
    }
    frg_context_destroy(ctx);
}

/* ---- numbers of others ----------------------------------------------------------------------- */

typedef struct {
    const char *formula, *term;
    frg_fe_family family;
    frg_fe_link link;
    const char *subset, *vcov;
    double estimate, std_error, deviance, log_likelihood;
} golden;

/** pyfixest 0.60.0's fepois(iwls_tol=1e-14, fixef_tol=1e-12) and statsmodels 0.15.0's GLM to rest
 *  with dummies of the year, on data/wage_panel.csv; tools/make_glm_golden.py. */
static void goldens(void)
{
    static const golden table[] = {
        {"hours ~ union + married | year + occupation", "union", FRG_FAMILY_POISSON, FRG_LINK_AUTO,
         NULL, "iid", -0.021458378934170897, 0.00078427516804573604, 593066.07023932133,
         -317221.44546481752},
        {"hours ~ union + married | year + occupation", "married", FRG_FAMILY_POISSON,
         FRG_LINK_AUTO, NULL, "hc1", 0.068331396698460001, 0.0074404014321226434,
         593066.07023932133, -317221.44546481752},
        {"hours ~ union + married | year + occupation", "union", FRG_FAMILY_POISSON, FRG_LINK_AUTO,
         NULL, "cluster=nr", -0.021458378934170897, 0.011618542738818679, 593066.07023932133,
         -317221.44546481752},
        {"hours ~ union + married + expersq | nr", "expersq", FRG_FAMILY_POISSON, FRG_LINK_AUTO,
         NULL, "iid", 0.0013423296571931427, 1.1863084612178503e-05, 358285.49614685355,
         -199831.15841858348},
        {"hours ~ educ + exper + married + factor(year)", "educ", FRG_FAMILY_POISSON, FRG_LINK_AUTO,
         NULL, "iid", 0.0062590784843611219, 0.00022906019114318535, 616406.17689146975,
         -328891.49879089161},
        {"union ~ educ + exper + married + factor(year)", "educ", FRG_FAMILY_LOGIT, FRG_LINK_AUTO,
         NULL, "iid", 0.025506143030013459, 0.025054643878922693, 4823.6038701908928,
         -2411.8019350954464},
        {"union ~ educ + exper + married + factor(year)", "educ", FRG_FAMILY_PROBIT, FRG_LINK_AUTO,
         NULL, "iid", 0.014500326921390277, 0.014708739417062213, 4823.3754925641388,
         -2411.6877462820694},
        {"lwage ~ educ + exper + married + factor(year)", "educ", FRG_FAMILY_GAUSSIAN,
         FRG_LINK_AUTO, NULL, "iid", 0.092409369018655874, 0.0052274934013629478, 1037.566630212764,
         NAN},
    };
    frg_context *const ctx = test_context();
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_read(&t, ctx, FOURGE_SOURCE_DIR "/data/wage_panel.csv", NULL));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const golden *const g = &table[i];
        frg_fe_opts o;
        frg_fe *f = NULL;
        frg_fe_defaults(&o, sizeof o);
        o.family = g->family;
        o.link = g->link;
        o.subset = g->subset;
        o.vcov[0] = g->vcov;
        if (strstr(g->formula, "factor")) /* statsmodels has no small-sample factor but n - K of
                                             a dispersion */
            o.ssc = g->family == FRG_FAMILY_GAUSSIAN || g->family == FRG_FAMILY_GAMMA ? NULL
                                                                                      : "adj=false";
        if (!CHECK_OK(ctx, frg_fe_fit(&f, ctx, g->formula, t, &o)))
            continue;
        const frg_fe_result *const r = frg_fe_get(f);
        for (int j = 0; j < r->n_coefficients; j++) {
            const frg_coefficient *const c = &r->coefficients[j];
            if (strcmp(c->term, g->term) != 0)
                continue;
            near(c->estimate, g->estimate, 1e-8 * fabs(g->estimate), g->term);
            near(c->std_error, g->std_error, 1e-6 * g->std_error, g->vcov);
        }
        near(r->glm->deviance, g->deviance, 1e-9 * g->deviance, "the deviance");
        if (!isnan(g->log_likelihood))
            near(r->glm->log_likelihood, g->log_likelihood, 1e-9 * fabs(g->log_likelihood),
                 "the log-likelihood");
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- separation ------------------------------------------------------------------------------ */

/** Fits and says which rows were left out. */
static int64_t separated(frg_context *ctx, const design *d, const char *formula,
                         frg_fe_separation how, double *first)
{
    frg_table *const t = table_of(ctx, d);
    frg_fe_opts o;
    frg_fe *f = NULL;
    int64_t n = -1;
    frg_fe_defaults(&o, sizeof o);
    o.family = d->family;
    o.separation = how;
    if (frg_fe_fit(&f, ctx, formula, t, &o) >= 0 && f) {
        const frg_fe_result *const r = frg_fe_get(f);
        n = r->glm->n_separated;
        *first = r->coefficients[r->n_coefficients - 1].estimate;
        for (int64_t i = 1; i < n; i++)
            CHECK(r->glm->separated[i - 1] < r->glm->separated[i]);
        CHECK_INT(r->n + n + r->n_singleton, r->n_rows);
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return n;
}

static void separation(void)
{
    frg_context *const ctx = test_context();
    design d;
    double with, without;
    do {
        draw(&d, 0);
    } while (d.q != 2);
    /* a level whose outcomes are all 0, and a regressor that is positive at zeros alone */
    int64_t level = 0, positive = 0;
    for (int64_t i = 0; i < d.n; i++) {
        d.y[i] = d.codes[0][i] == 1 ? 0 : d.y[i] + (i % 3 == 0);
        level += d.codes[0][i] == 1;
    }
    CHECK_INT(separated(ctx, &d, "y ~ x2 | f1 + f2", FRG_SEPARATION_AUTO, &with), level);
    CHECK_INT(separated(ctx, &d, "y ~ x2 | f1 + f2", FRG_SEPARATION_LEVELS, &with), level);
    for (int64_t i = 0; i < d.n; i++) {
        d.y[i] += 1;
        d.x[0][i] = 0;
    }
    for (int64_t i = 5; i < d.n; i += 17) {
        d.y[i] = 0;
        d.x[0][i] = 0.5 + test_uniform();
        positive++;
    }
    CHECK_INT(separated(ctx, &d, "y ~ x1 + x2 | f1 + f2", FRG_SEPARATION_AUTO, &with), positive);
    CHECK_INT(separated(ctx, &d, "y ~ x1 + x2", FRG_SEPARATION_AUTO, &without), positive);
    /* without those rows x1 is 0, and the other estimate is that of a fit that never saw them */
    design rest = {.family = d.family};
    for (int64_t i = 0; i < d.n; i++)
        if (d.x[0][i] == 0) {
            rest.y[rest.n] = d.y[i];
            rest.x[1][rest.n] = d.x[1][i];
            rest.codes[0][rest.n] = d.codes[0][i];
            rest.codes[1][rest.n++] = d.codes[1][i];
        }
    CHECK_INT(separated(ctx, &rest, "y ~ x2 | f1 + f2", FRG_SEPARATION_NONE, &without), 0);
    near(with, without, 1e-9, "the estimate of the rows that are left");
    /* nothing is separated where a zero has company */
    CHECK_INT(separated(ctx, &rest, "y ~ x2 | f1 + f2", FRG_SEPARATION_AUTO, &without), 0);
    frg_context_destroy(ctx);
}

/** Appends a row whose x1 is `x`. */
static void append(design *d, int64_t p, int64_t f, double y, double x)
{
    d->codes[0][d->n] = p;
    d->codes[1][d->n] = f;
    d->y[d->n] = y;
    d->x[0][d->n++] = x;
}

/** Rows of one cell whose outcomes leave no direction to x1. */
static design pinned(frg_fe_family family)
{
    design d = {.family = family};
    for (int i = 0; i < 4; i++)
        append(&d, 0, 0, family == FRG_FAMILY_POISSON ? 1 + i % 2 : i % 2, i / 2);
    return d;
}

static void compare_separated(const design *d, const char *formula, const bool *want, int64_t count)
{
    frg_context *const ctx = test_context();
    frg_table *const t = table_of(ctx, d);
    frg_fe_opts o;
    frg_fe *f = NULL;
    frg_fe_defaults(&o, sizeof o);
    o.family = d->family;
    o.keep_singletons = 1;
    CHECK_SAYS(frg_fe_fit(&f, ctx, formula, t, &o) >= 0, "%s", frg_message(ctx));
    const frg_fe_glm *const g = f ? frg_fe_get(f)->glm : NULL;
    if (g && CHECK_INT(g->n_separated, count))
        for (int64_t k = 0; k < count; k++)
            CHECK(want[g->separated[k]]);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** A row is separated by two effects where its arc u_p >= u_f, or <= of a binary 1, is on no cycle of
 *  arcs, those of other outcomes going both ways: against all paths of a small graph. */
static void pairs(void)
{
    enum { P = 12, F = 9, LEVELS = P + F };
    static const frg_fe_family families[] = {FRG_FAMILY_POISSON, FRG_FAMILY_LOGIT,
                                             FRG_FAMILY_PROBIT};
    int64_t found = 0;
    for (int trial = 0; trial < 60; trial++) {
        design d = pinned(families[trial % 3]);
        const bool binary = d.family != FRG_FAMILY_POISSON;
        bool reach[LEVELS][LEVELS] = {{false}}, want[ROWS] = {false};
        for (int64_t i = 15 + test_below(40); i > 0; i--)
            append(&d, test_below(P), test_below(F), test_uniform() < 0.6 ? 0 : 1, test_normal());
        for (int64_t i = 0; i < d.n; i++) {
            const int64_t p = d.codes[0][i], f = P + d.codes[1][i];
            reach[p][f] |= d.y[i] == 0 || !binary;
            reach[f][p] |= d.y[i] != 0;
        }
        for (int m = 0; m < LEVELS; m++)
            for (int a = 0; a < LEVELS; a++)
                for (int b = 0; b < LEVELS; b++)
                    reach[a][b] |= reach[a][m] && reach[m][b];
        int64_t count = 0;
        for (int64_t i = 0; i < d.n; i++) {
            const int64_t p = d.codes[0][i], f = P + d.codes[1][i];
            want[i] = !(reach[p][f] && reach[f][p]);
            count += want[i];
        }
        compare_separated(&d, "y ~ x1 | f1 + f2", want, count);
        found += count;
    }
    CHECK(found > 100);
}

/** Each level of f1 has a positive outcome in one of f2 and a zero in the next: all zeros are
 *  separated in a chain of any length, none where the last level closes a ring. */
static void chains(void)
{
    for (int64_t length = 2; length <= 52; length += 10)
        for (int ring = 0; ring < 2; ring++) {
            design d = pinned(FRG_FAMILY_POISSON);
            bool want[ROWS] = {false};
            for (int64_t i = 0; i < length; i++) {
                append(&d, i, i, 1 + (double)(i % 3), test_normal());
                want[d.n] = !ring;
                if (ring || i + 1 < length)
                    append(&d, i, (i + 1) % length, 0, test_normal());
            }
            compare_separated(&d, "y ~ x1 | f1 + f2", want, ring ? 0 : length - 1);
        }
}

/** Marks the rows of a level that sign (x1 - c) separates, if it is a direction. */
static void mark_beyond(const design *d, int64_t level, double sign, double c, bool *want)
{
    bool holds = true;
    for (int64_t i = 0; i < d->n; i++) {
        const double z = sign * (d->x[0][i] - c);
        const bool binary = d->family != FRG_FAMILY_POISSON;
        if (d->codes[0][i] == level)
            holds &= d->y[i] == 0 ? z >= 0 : binary ? z <= 0 : z == 0;
    }
    for (int64_t i = 0; i < d->n; i++)
        want[i] |= holds && d->codes[0][i] == level && d->x[0][i] != c;
}

/** Rows that a slope separates within a level, exactly those: against all c between whole values of
 *  x1.  Level 0 has outcomes of both kinds at three points of x1 and x2, which leave x2 no direction. */
static void slopes(void)
{
    enum { LEVELS = 15, FAR = 4 };
    static const frg_fe_family families[] = {FRG_FAMILY_POISSON, FRG_FAMILY_LOGIT,
                                             FRG_FAMILY_PROBIT};
    int64_t found = 0;
    for (int trial = 0; trial < 60; trial++) {
        design d = {.family = families[trial % 3]};
        const bool free_constant = trial % 2;
        bool want[ROWS] = {false};
        for (int i = 0; i < 6; i++) {
            append(&d, 0, 0, d.family == FRG_FAMILY_POISSON ? 1 : i % 2, i / 2 == 1);
            d.x[1][i] = i / 2 == 2;
        }
        for (int64_t i = 40 + test_below(30); i > 0; i--) {
            append(&d, 1 + test_below(LEVELS - 1), 0, test_uniform() < 0.6 ? 0 : 1,
                   (double)test_below(2 * FAR - 1) - FAR + 1);
            d.x[1][d.n - 1] = test_normal();
        }
        for (int64_t level = 1; level < LEVELS; level++)
            for (int c = free_constant ? -2 * FAR : 0; c <= (free_constant ? 2 * FAR : 0); c++)
                for (double sign = -1; sign < 2; sign += 2)
                    mark_beyond(&d, level, sign, 0.5 * c, want);
        int64_t count = 0;
        for (int64_t i = 0; i < d.n; i++)
            count += want[i];
        compare_separated(&d, free_constant ? "y ~ x2 | f1[x1]" : "y ~ x2 | f1[[x1]]", want, count);
        found += count;
    }
    CHECK(found > 100);
}

/** A binary outcome that a regressor decides: all rows are separated, and that is refused. */
static void perfect(void)
{
    frg_context *const ctx = test_context();
    design d;
    draw(&d, 1);
    for (int64_t i = 0; i < d.n; i++)
        d.y[i] = d.x[0][i] > 0.3;
    double none;
    CHECK_INT(separated(ctx, &d, "y ~ x1 + x2", FRG_SEPARATION_AUTO, &none), -1);
    CHECK_TEXT(frg_error_code(ctx), "FRG-FE-022");
    char rows[40]; /* all of them, also where some were found in a search before */
    snprintf(rows, sizeof rows, "all of the %lld rows", (long long)d.n);
    CHECK_SAYS(strstr(frg_message(ctx), rows), "%s", frg_message(ctx));
    frg_context_destroy(ctx);
}

/** Rows with x1 > 0 are all 1.  Others come in the levels of f1, each with a pair of an outcome 0
 *  and 1 at the same x2 twice: a direction is 0 in the pairs, so that of x2 and of each level is 0,
 *  and what is left is x1.  Many ones and few zeros: projections by turns alone take 128 to 149
 *  steps, and then leave up to 7 other rows out. */
static design draw_decided(frg_fe_family family)
{
    enum { LEVELS = 8 };
    design d = {.n = ROWS, .family = family};
    for (int64_t i = 0; i < d.n; i++) {
        const int64_t pair = i / 2;
        const bool paired = pair < 2 * LEVELS;
        d.codes[0][i] = (paired ? pair : i) % LEVELS;
        d.x[0][i] = i % 10 == 9 && !paired ? 0.2 + test_uniform() : 0;
        d.x[1][i] = paired ? (double)pair / LEVELS : 2 * test_uniform();
        d.y[i] = paired ? (double)(i % 2) : d.x[0][i] > 0 || test_uniform() < 0.95;
    }
    return d;
}

/** Separated rows of a binary outcome, all of them and no other, and the rest's estimate. */
static void decided(void)
{
    for (int k = 0; k < 20; k++) {
        frg_context *const ctx = test_context();
        const design d = draw_decided(k % 2 ? FRG_FAMILY_LOGIT : FRG_FAMILY_PROBIT);
        design rest = {.family = d.family};
        int64_t positive = 0;
        double with, without;
        for (int64_t i = 0; i < d.n; i++) {
            positive += d.x[0][i] > 0;
            if (d.x[0][i] == 0) {
                rest.y[rest.n] = d.y[i];
                rest.x[1][rest.n] = d.x[1][i];
                rest.codes[0][rest.n++] = d.codes[0][i];
            }
        }
        CHECK_INT(separated(ctx, &d, "y ~ x1 + x2 | f1", FRG_SEPARATION_AUTO, &with), positive);
        CHECK_INT(frg_warning_count(ctx), 2); /* the rows, and x1, which is 0 in the others */
        CHECK_INT(separated(ctx, &rest, "y ~ x2 | f1", FRG_SEPARATION_AUTO, &without), 0);
        near(with, without, 1e-9, "the estimate of the rows that are left");
        frg_context_destroy(ctx);
    }
}

/** Where nobody looked for such rows, probabilities at the edge are a warning that names x1. */
static void edge(void)
{
    frg_context *const ctx = test_context();
    const design d = draw_decided(FRG_FAMILY_LOGIT);
    double first;
    bool said = false;
    CHECK_INT(separated(ctx, &d, "y ~ x1 + x2 | f1", FRG_SEPARATION_LEVELS, &first), 0);
    for (int i = 0; i < frg_warning_count(ctx); i++)
        said |= strcmp(frg_warning_code(ctx, i), "FRG-FE-159") == 0 &&
                strstr(frg_warning_message(ctx, i), "'x1'");
    CHECK(said);
    frg_context_destroy(ctx);
}

/** The limit of iterations holds, and a fit that reaches it says so. */
static void iteration_limit(void)
{
    frg_context *const ctx = test_context();
    design d;
    do {
        draw(&d, 0);
    } while (d.q != 2);
    for (int limit = 1; limit < 7; limit++) {
        frg_table *const t = table_of(ctx, &d);
        frg_fe_opts o;
        frg_fe *f = NULL;
        frg_fe_defaults(&o, sizeof o);
        o.family = d.family;
        o.glm_iter = limit;
        frg_warnings_clear(ctx);
        const frg_status status = frg_fe_fit(&f, ctx, formula_of(&d), t, &o);
        const frg_fe_result *const r = frg_fe_get(f);
        CHECK(r && r->glm->iterations <= limit);
        CHECK(r && r->glm->converged == (status == FRG_OK));
        CHECK(limit > 3 || status == FRG_MAX_ITER);
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** Of a mean and two levels, weights w that are no frequencies:
 *      -1/2 (n (log(2 pi D / n) + 1) - sum log w),  D = sum w (y - mean)^2
 *  whatever factor the weights have; as frequencies they count rows. */
static void precisions(void)
{
    static const double factor[] = {1, 10};
    frg_context *const ctx = test_context();
    design d;
    draw(&d, 3);
    d.weighted = true;
    for (int k = 0; k < 4; k++) {
        const bool frequency = k > 1;
        double sum = 0, weight = 0, logs = 0, D = 0;
        for (int64_t i = 0; i < d.n; i++) {
            d.w[i] = factor[k % 2] * (double)(1 + i % 3);
            weight += d.w[i];
            sum += d.w[i] * d.y[i];
            logs += log(d.w[i]);
        }
        for (int64_t i = 0; i < d.n; i++)
            D += d.w[i] * (d.y[i] - sum / weight) * (d.y[i] - sum / weight);
        const double n = frequency ? weight : (double)d.n;
        const double want =
            -0.5 * (n * (log(2 * 3.14159265358979323846 * D / n) + 1) - (frequency ? 0 : logs));
        frg_table *const t = table_of(ctx, &d);
        frg_fe_opts o;
        frg_fe *f = NULL;
        frg_fe_defaults(&o, sizeof o);
        o.family = FRG_FAMILY_GAUSSIAN;
        o.weights = "w";
        o.weights_kind = frequency ? FRG_WEIGHTS_FREQUENCY : FRG_WEIGHTS_ANALYTIC;
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ 1", t, &o));
        if (f) {
            const frg_fe_glm *const g = frg_fe_get(f)->glm;
            near(g->log_likelihood, want, 1e-10 * fabs(want), "the likelihood");
            near(g->null_log_likelihood, want, 1e-10 * fabs(want), "that of the mean");
            near(g->bic, -2 * want + log(n), 1e-10 * fabs(want), "BIC");
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/* ---- bad input ------------------------------------------------------------------------------- */

static void refusals(void)
{
    static const struct {
        frg_fe_family family;
        frg_fe_link link;
        double y; /* of row 3; NaN: all are 0 */
        const char *formula, *code;
    } table[] = {{FRG_FAMILY_POISSON, FRG_LINK_AUTO, -1, "y ~ x1 | f1", "FRG-FE-021"},
                 {FRG_FAMILY_LOGIT, FRG_LINK_AUTO, 0.5, "y ~ x1 | f1", "FRG-FE-021"},
                 {FRG_FAMILY_PROBIT, FRG_LINK_AUTO, 2, "y ~ x1 | f1", "FRG-FE-021"},
                 {FRG_FAMILY_GAMMA, FRG_LINK_AUTO, 0, "y ~ x1 | f1", "FRG-FE-021"},
                 {FRG_FAMILY_POISSON, FRG_LINK_AUTO, NAN, "y ~ x1 | f1", "FRG-FE-022"},
                 {FRG_FAMILY_LOGIT, FRG_LINK_AUTO, NAN, "y ~ x1", "FRG-FE-022"},
                 {FRG_FAMILY_POISSON, FRG_LINK_LOGIT, 1, "y ~ x1", "FRG-CORE-006"},
                 {FRG_FAMILY_OLS, FRG_LINK_LOG, 1, "y ~ x1", "FRG-CORE-006"},
                 {FRG_FAMILY_POISSON, FRG_LINK_AUTO, 1, "y ~ 1 | x1 ~ x2", "FRG-CORE-004"}};
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        design d;
        frg_fe_opts o;
        frg_fe *f = NULL;
        draw(&d, table[i].family == FRG_FAMILY_LOGIT || table[i].family == FRG_FAMILY_PROBIT ? 1
                 : table[i].family == FRG_FAMILY_GAMMA                                       ? 4
                                                                                             : 0);
        for (int64_t r = 0; r < d.n && isnan(table[i].y); r++)
            d.y[r] = 0;
        d.y[3] = isnan(table[i].y) ? 0 : table[i].y;
        frg_table *const t = table_of(ctx, &d);
        frg_fe_defaults(&o, sizeof o);
        o.family = table[i].family;
        o.link = table[i].link;
        CHECK(frg_fe_fit(&f, ctx, table[i].formula, t, &o) < 0);
        CHECK_TEXT(frg_error_code(ctx), table[i].code);
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/* ---- after the fit, and faults --------------------------------------------------------------- */

/** Predictions of the rows of the fit are its means; the values fit together. */
static void values(void)
{
    frg_context *const ctx = test_context();
    for (int model = 0; model < MODELS; model++) {
        design d;
        double mu[ROWS], predicted[ROWS], eta[ROWS], deviance[ROWS], residual[ROWS];
        do {
            draw(&d, model);
        } while (d.q != 2);
        frg_table *const t = table_of(ctx, &d);
        frg_fe_opts o = options_of(&d);
        frg_fe *f = NULL;
        int64_t unseen;
        o.keep_effects = 1;
        if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula_of(&d), t, &o))) {
            double sum = 0;
            CHECK_OK(ctx, frg_fe_residuals(f, residual, mu));
            CHECK_OK(ctx, frg_fe_predict(f, t, predicted, &unseen));
            CHECK_OK(ctx, frg_fe_glm_values(f, FRG_GLM_LINK, eta));
            CHECK_OK(ctx, frg_fe_glm_values(f, FRG_GLM_DEVIANCE, deviance));
            for (int64_t i = 0; i < d.n; i++) {
                real mean, slope, variance;
                family_at(d.family, frg_fe_get(f)->glm->theta, eta[i], &mean, &slope, &variance);
                near(mu[i], (double)mean, 1e-12 * (1 + fabs(mu[i])), "a mean");
                near(predicted[i], mu[i], 1e-7 * (1 + fabs(mu[i])), "a prediction");
                near(residual[i], d.y[i] - mu[i], 1e-12 * (1 + fabs(d.y[i])), "a residual");
                sum += deviance[i] * deviance[i];
            }
            near(sum, frg_fe_get(f)->glm->deviance, 1e-10 * sum, "the deviance");
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const design *const d = user;
    frg_table *t = NULL;
    frg_fe *f = NULL;
    frg_fe_opts o = options_of(d);
    o.separation = FRG_SEPARATION_AUTO;
    o.keep_effects = 1;
    frg_status s = frg_table_create(&t, ctx, d->n);
    s = s < 0 ? s : frg_table_add_numbers(t, "y", d->y);
    s = s < 0 ? s : frg_table_add_numbers(t, "w", d->w);
    s = s < 0 ? s : frg_table_add_numbers(t, "o", d->o);
    s = s < 0 ? s : frg_table_add_numbers(t, "x1", d->x[0]);
    s = s < 0 ? s : frg_table_add_numbers(t, "x2", d->x[1]);
    s = s < 0 ? s : frg_table_add_integers(t, "group", d->group);
    s = s < 0 ? s : frg_table_add_integers(t, "f1", d->codes[0]);
    s = s < 0 ? s : frg_table_add_integers(t, "f2", d->codes[1]);
    s = s < 0 ? s : frg_fe_fit(&f, ctx, formula_of(d), t, &o);
    if (s >= 0 && f) {
        const frg_fe_result *const r = frg_fe_get(f);
        for (int a = 0; a < r->n_coefficients; a++)
            fault_hash(hash, &r->coefficients[a].estimate, 2 * sizeof(double));
        fault_hash(hash, &r->glm->deviance, sizeof(double));
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return s;
}

static void faults(void)
{
    design d;
    do {
        draw(&d, 0);
    } while (d.q != 2 || !d.offset || !d.weighted);
    for (int64_t i = 0; i < d.n; i++)
        d.y[i] = d.codes[0][i] == 1 ? 0 : d.y[i];
    fault_sweep("a Poisson model", body, &d, 1);
}

/** The same bits for any number of threads, on rows enough for several. */
static void threads(void)
{
    enum { MANY = 40000 };
    double *const y = malloc(sizeof(double) * MANY), *const x = malloc(sizeof(double) * MANY);
    int64_t *const f1 = malloc(sizeof(int64_t) * MANY), *const f2 = malloc(sizeof(int64_t) * MANY);
    double b[2][3];
    for (int64_t i = 0; i < MANY; i++) {
        f1[i] = test_below(300);
        f2[i] = test_below(200);
        x[i] = test_normal();
        y[i] = poisson(exp(0.3 * x[i] + 0.002 * (double)f1[i]));
    }
    for (int k = 0; k < 2; k++) {
        frg_context_opts c;
        frg_context *ctx = NULL;
        frg_table *t = NULL;
        frg_fe *f = NULL;
        frg_fe_opts o;
        frg_context_defaults(&c, sizeof c);
        c.threads = k ? 3 : 1;
        CHECK(frg_context_create(&ctx, &c) == FRG_OK);
        frg_fe_defaults(&o, sizeof o);
        o.family = FRG_FAMILY_POISSON;
        CHECK_OK(ctx, frg_table_create(&t, ctx, MANY));
        CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
        CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
        CHECK_OK(ctx, frg_table_add_integers(t, "f1", f1));
        CHECK_OK(ctx, frg_table_add_integers(t, "f2", f2));
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | f1 + f2", t, &o));
        b[k][0] = frg_fe_get(f)->coefficients[0].estimate;
        b[k][1] = frg_fe_get(f)->coefficients[0].std_error;
        b[k][2] = frg_fe_get(f)->glm->log_likelihood;
        frg_fe_destroy(f);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
    CHECK_BITS(b[0], b[1], sizeof b[0]);
    free(y);
    free(x);
    free(f1);
    free(f2);
}

/** An offset far beyond the logarithm of an exposure is an error that names the row and it; what
 *  ended an iteration early is said with its own remedy; logit and probit keep their names. */
static void messages(void)
{
    static const struct {
        frg_fe_family family;
        const char *offset, *name, *says;
        int glm_iter, max_iter;
    } table[] = {
        {FRG_FAMILY_POISSON, "1e6*x2", "poisson", "of which offset '1e6*x2' is ", 25, 1000},
        {FRG_FAMILY_LOGIT, NULL, "logit", "raise --glm-iter", 2, 1000},
        {FRG_FAMILY_PROBIT, NULL, "probit", "raise --glm-iter", 2, 1000}};
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        design d;
        frg_fe_opts o;
        frg_fe *f = NULL;
        draw(&d, table[i].family == FRG_FAMILY_POISSON ? 0 : 1);
        frg_table *const t = table_of(ctx, &d);
        frg_fe_defaults(&o, sizeof o);
        o.family = table[i].family;
        o.offset = table[i].offset;
        o.glm_iter = table[i].glm_iter;
        o.demean.max_iter = table[i].max_iter;
        frg_warnings_clear(ctx);
        const frg_status status = frg_fe_fit(&f, ctx, "y ~ x1 | f1 + f2", t, &o);
        if (table[i].offset) {
            CHECK_TEXT(frg_error_code(ctx), "FRG-FE-062");
            CHECK_SAYS(strstr(frg_message(ctx), table[i].says), "%s", frg_message(ctx));
            CHECK(status < 0 && !f);
        } else if (CHECK(f)) {
            bool said = false;
            for (int w = 0; w < frg_warning_count(ctx); w++)
                said |= strstr(frg_warning_message(ctx, w), table[i].says) != NULL;
            CHECK_SAYS(said, "'%s' is not said", table[i].says);
            CHECK_TEXT(frg_fe_get(f)->glm->family, table[i].name);
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** Gamma with the inverse link and two groups: 1 / b are the groups' means m_g, W = m_g^2, so that
 *  the constant's variance is phi / (n_0 m_0^2) and the difference's the sum of both, phi Pearson's
 *  statistic over n - 2; of HC1 without factors sum (y - m_g)^2 / (n_g m_g^2)^2. */
static void inverse_link(void)
{
    frg_context *const ctx = test_context();
    design d;
    frg_fe_opts o;
    frg_fe *f = NULL;
    draw(&d, 4);
    double sum[2] = {0}, count[2] = {0}, square[2] = {0}, phi = 0;
    for (int64_t i = 0; i < d.n; i++) {
        d.x[0][i] = (double)(i % 3 == 0);
        sum[i % 3 == 0] += d.y[i];
        count[i % 3 == 0]++;
    }
    const double mean[2] = {sum[0] / count[0], sum[1] / count[1]};
    for (int64_t i = 0; i < d.n; i++) {
        const double r = d.y[i] - mean[i % 3 == 0];
        square[i % 3 == 0] += r * r;
        phi += r * r / (mean[i % 3 == 0] * mean[i % 3 == 0]) / (double)(d.n - 2);
    }
    frg_table *const t = table_of(ctx, &d);
    frg_fe_defaults(&o, sizeof o);
    o.family = FRG_FAMILY_GAMMA;
    o.link = FRG_LINK_INVERSE;
    o.glm_iter = 100;
    o.vcov[1] = "hc1";
    o.n_vcov = 2;
    o.ssc = "cluster.adj=false";
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x1", t, &o))) {
        const frg_fe_result *const r = frg_fe_get(f);
        double iid = 0, robust = 0;
        for (int g = 0; g < 2; g++) {
            const double information = count[g] * mean[g] * mean[g];
            iid += phi / information;
            robust += square[g] / (information * information);
        }
        robust *= (double)(d.n - 1) / (double)(d.n - 2);
        near(r->vcov[0].coefficients[1].estimate, 1 / mean[1] - 1 / mean[0], 1e-9 * sqrt(iid),
             "the difference");
        /* W = m_g^2 is that before the last step, which is Newton's: where the next one is below
         * 1e-9 standard errors it was below the root of that, and its share of 1 / b the same of
         * sqrt(phi / n_g) */
        const double moved = 2 * sqrt(1e-9) * sqrt(phi / fmin(count[0], count[1]));
        near(r->vcov[0].coefficients[1].std_error, sqrt(iid), moved * sqrt(iid), "its iid error");
        near(r->vcov[1].coefficients[1].std_error, sqrt(robust), 2 * moved * sqrt(robust),
             "its hc1");
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"designs", designs},
                                  {"goldens", goldens},
                                  {"separation", separation},
                                  {"separation by two effects", pairs},
                                  {"separation along chains", chains},
                                  {"separation by slopes", slopes},
                                  {"perfect", perfect},
                                  {"decided", decided},
                                  {"edge", edge},
                                  {"limit", iteration_limit},
                                  {"precisions", precisions},
                                  {"refusals", refusals},
                                  {"values", values},
                                  {"faults", faults},
                                  {"threads", threads},
                                  {"messages", messages},
                                  {"inverse link", inverse_link}};
TEST_MAIN(cases)
