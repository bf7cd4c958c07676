/* reg_glm_result.c - which model a generalised linear model is, and what is said of its fit.
 *
 *     deviance    sum w d(y, mu);  null: mu = mean(c + o) with the c that maximises the likelihood
 *     likelihood  sum w log f(y; mu, phi), phi = deviance / sum w where the family has one; weights
 *                 that are no frequencies are precisions there: sum log f(y; mu, phi / w), phi =
 *                 deviance / n
 *     pseudo R2   1 - log L / log L_0 (McFadden 1974)
 *     AIC, BIC    -2 log L + 2 K,  -2 log L + K log n,  K = coefficients + rank of the effects,
 *                 and 1 for a theta that is estimated
 *     dispersion  sum W e^2 / (n - K) where the family has one, else 1
 */
#include <math.h>
#include <string.h>

#include "core/tree_sum.h"
#include "regress/regress.h"

enum { NULL_STEPS = 100, PARTS = 64 /* of the rows */ };

/* ---- the model ------------------------------------------------------------------------------- */

/** Options of the families beside ols are refused of ols. */
static frg_status check_least_squares(frg_context *ctx, const frg_fe_opts *o)
{
    frg_fe_opts plain;
    frg_fe_defaults(&plain, sizeof plain);
    const struct {
        bool set;
        const char *name;
    } table[] = {{o->link != FRG_LINK_AUTO, "link"},
                 {o->offset != NULL, "offset"},
                 {o->glm_tol < plain.glm_tol || o->glm_tol > plain.glm_tol, "glm_tol"},
                 {o->glm_iter != plain.glm_iter, "glm_iter"},
                 {o->separation != plain.separation, "separation"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].set) {
            frgi_at(ctx, "%s", table[i].name);
            FAIL(ctx, E_OPTION, "%s is of the families beside ols: poisson, logit, probit, ...",
                 table[i].name);
        }
    }
    return FRG_OK;
}

static frg_status compile_offset(frg_fe *f)
{
    const char *const text = f->policy.options.offset;
    frgi_syntax *const s = &f->data.offset_text;
    if (!text) {
        return FRG_OK;
    }
    TRY(frgi_syntax_expression(s, f->ctx, text, (int64_t)strlen(text), "offset"));
    TRY(frgi_formula_check_expression(s, f->ctx, s->section[0]));
    TRY(frgi_program_create(&f->data.offset, f->ctx, s, s->section[0], f->data.table));
    if (f->data.offset.column && f->data.offset.column->kind == FRG_CATEGORY) {
        FAIL(f->ctx, E_TYPE, "offset: column '%s' holds text", f->data.offset.column->name);
    }
    f->data.has_offset = true;
    return FRG_OK;
}

static frg_status check_theta(frg_context *ctx, const frg_fe_opts *o)
{
    if (o->theta > 0 && o->family != FRG_FAMILY_NEGBIN) {
        frgi_at(ctx, "theta");
        FAIL(ctx, E_OPTION, "theta is of family negbin alone: leave it out, or take that");
    }
    return FRG_OK;
}

frg_status frgi_glm_choose(frg_fe *f)
{
    const frg_fe_opts *const o = &f->policy.options;
    TRY(check_theta(f->ctx, o));
    if (o->family == FRG_FAMILY_OLS) {
        return check_least_squares(f->ctx, o);
    }
    f->glm.family = frgi_family_of(o->family);
    f->glm.link = frgi_link_of(o->family, o->link);
    if (!f->glm.link) {
        frgi_at(f->ctx, "link");
        FAIL(f->ctx, E_OPTION, "family %s has not this link: leave it at auto",
             f->glm.family->name);
    }
    if (f->data.formula.n_endogenous > 0) {
        FAIL(f->ctx, E_UNSUPPORTED, "instruments in a model of family %s", f->glm.family->name);
    }
    if (o->store) {
        FAIL(f->ctx, E_UNSUPPORTED, "a model of family %s whose columns are kept in a store",
             f->glm.family->name);
    }
    return compile_offset(f);
}

/* ---- likelihoods ----------------------------------------------------------------------------- */

static double weight_of(const frgi_fe_glm *g, int64_t i)
{
    return g->prior ? g->prior[i] : 1;
}

/** c by Fisher's scoring: the mean where there is no offset. */
static double null_predictor(const frg_fe *f, double theta)
{
    const frgi_fe_glm *const g = &f->glm;
    const int64_t n = f->data.frame.n;
    double sum = 0, weight = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += weight_of(g, i) * g->y[i];
        weight += weight_of(g, i);
    }
    double c = g->link->link(sum / weight);
    for (int step = 0; step < NULL_STEPS && g->offset; step++) {
        double score = 0, information = 0;
        for (int64_t i = 0; i < n; i++) {
            const double eta = c + g->offset[i], mu = g->link->mean(eta);
            const double slope = g->link->slope(eta);
            const double w = weight_of(g, i) / g->family->variance(mu, theta);
            score += w * slope * (g->y[i] - mu);
            information += w * slope * slope;
        }
        const double move = score / information;
        c += fmin(fmax(move, -2), 2);
        if (!(fabs(move) > 1e-13 * (1 + fabs(c)))) {
            break;
        }
    }
    return c;
}

/** The theta of a constant (and the offset) alone, whose predictor goes to *c; where the model's
 *  own is given it is that. */
static double null_theta(const frg_fe *f, double *c)
{
    const frgi_fe_glm *const g = &f->glm;
    const bool given = f->policy.options.theta > 0 || f->policy.options.family != FRG_FAMILY_NEGBIN;
    double theta = given ? g->theta : (double)INFINITY;
    *c = null_predictor(f, theta);
    for (int step = 0; step < NULL_STEPS && !given; step++) {
        const frgi_counts counts = {.ctx = f->ctx,
                                    .n = f->data.frame.n,
                                    .y = g->y,
                                    .w = g->prior,
                                    .offset = g->offset,
                                    .c = *c};
        const double before = *c;
        theta = frgi_theta_best(&counts, theta);
        *c = null_predictor(f, theta);
        if (!(fabs(*c - before) > 1e-13 * (1 + fabs(*c)))) {
            break;
        }
    }
    return theta;
}

/** Where the rows' terms are taken: at the means, or at c + offset where null; phi of densities. */
typedef struct {
    const frg_fe *f;
    bool null, precise; /* precise: weights divide phi and do not count rows */
    double c, phi;
} place;

/** A term of row i, whose mean is mu. */
typedef double row_term(const place *at, int64_t i, double mu);

static double one_term(const place *at, int64_t i, double mu)
{
    (void)at, (void)i, (void)mu;
    return 1;
}
static double deviance_term(const place *at, int64_t i, double mu)
{
    return at->f->glm.family->deviance(at->f->glm.y[i], mu, at->f->glm.theta);
}
static double density_term(const place *at, int64_t i, double mu)
{
    const frgi_fe_glm *const g = &at->f->glm;
    const double w = at->precise ? weight_of(g, i) : 1;
    return frgi_family_log_density(at->f->policy.options.family, g->y[i], mu, at->phi / w) / w;
}
static double square_term(const place *at, int64_t i, double mu)
{
    const double r = at->f->glm.y[i] - mu;
    return r * r;
}
static double pearson_term(const place *at, int64_t i, double mu)
{
    return square_term(at, i, mu) / at->f->glm.family->variance(mu, at->f->glm.theta);
}

/** The sum of a term over the rows, weighted. */
static double add_rows(const place *at, row_term *term)
{
    const frgi_fe_glm *const g = &at->f->glm;
    const int64_t n = at->f->data.frame.n;
    double sums[PARTS], total;
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(at->f->ctx, n))
    for (int p = 0; p < PARTS; p++) {
        double sum = 0;
        for (int64_t i = n * p / PARTS; i < n * (p + 1) / PARTS; i++) {
            const double mu =
                at->null ? g->link->mean(at->c + (g->offset ? g->offset[i] : 0)) : g->mu[i];
            sum += weight_of(g, i) * term(at, i, mu);
        }
        sums[p] = sum;
    }
    frgi_tree_rows(sums, PARTS, 1, 1, &total);
    return total;
}

frg_status frgi_glm_describe(frg_fe *f)
{
    frgi_fe_glm *const g = &f->glm;
    frg_fe_glm *const q = &g->result;
    frg_fe_result *const r = &f->report.result;
    const frgi_frame *const frame = &f->data.frame;
    const bool negbin = f->policy.options.family == FRG_FAMILY_NEGBIN;
    const bool theta_counts = negbin && !(f->policy.options.theta > 0);
    const double n = frame->count, coefficients = f->fit.k + f->absorbed.rank;
    const double K = coefficients + theta_counts;
    const bool precise =
        g->family->dispersed && f->policy.options.weights_kind != FRG_WEIGHTS_FREQUENCY;
    place here = {.f = f, .precise = precise};
    place null = {.f = f, .precise = precise, .null = true, .c = null_predictor(f, g->theta)};
    const double weight = precise ? n : add_rows(&here, one_term),
                 rss = add_rows(&here, square_term);
    const double pearson = add_rows(&here, pearson_term);
    q->family = g->family->name;
    q->link = g->link->name;
    q->n_separated = frame->n_separated;
    q->separated = frame->separated;
    q->deviance = add_rows(&here, deviance_term);
    q->null_deviance = add_rows(&null, deviance_term);
    here.phi = negbin ? g->theta : q->deviance / weight;
    null.phi = negbin ? null_theta(f, &null.c) : q->null_deviance / weight;
    q->log_likelihood = add_rows(&here, density_term);
    q->null_log_likelihood = add_rows(&null, density_term);
    q->pseudo_r2 = 1 - q->log_likelihood / q->null_log_likelihood;
    q->aic = -2 * q->log_likelihood + 2 * K;
    q->bic = -2 * q->log_likelihood + K * log(n);
    q->dispersion = !g->family->dispersed ? 1
                    : n > coefficients    ? pearson / (n - coefficients)
                                          : (double)NAN;
    r->rss = rss;
    r->rmse = sqrt(rss / n);
    r->r2 = r->r2_adjusted = r->r2_within = (double)NAN;
    f->fit.rss = g->family->dispersed ? pearson : n - 1; /* (X'WX)^-1 times rss / (n - 1) */
    r->glm = q;
    return FRG_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static double value_of(const frg_fe *f, frg_glm_value what, int64_t i)
{
    const frgi_fe_glm *const g = &f->glm;
    const double r = g->y[i] - g->mu[i], w = weight_of(g, i);
    switch (what) {
    case FRG_GLM_LINK:
        return g->eta[i];
    case FRG_GLM_RESPONSE:
        return g->mu[i];
    case FRG_GLM_WORKING:
        return r / g->link->slope(g->eta[i]);
    case FRG_GLM_PEARSON:
        return r * sqrt(w / g->family->variance(g->mu[i], g->theta));
    case FRG_GLM_DEVIANCE:
        return copysign(sqrt(w * g->family->deviance(g->y[i], g->mu[i], g->theta)), r);
    default:
        return f->data.frame.weights[i];
    }
}

frg_status frg_fe_glm_values(const frg_fe *f, frg_glm_value what, double *out)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    REQUIRE(f->ctx, out && what >= FRG_GLM_LINK && what <= FRG_GLM_WEIGHT,
            "frg_fe_glm_values takes a value of frg_glm_value and a place for it");
    if (!f->glm.family) {
        FAIL(f->ctx, E_OPTION, "a fit by least squares has residuals and fitted values alone");
    }
    const frgi_frame *const frame = &f->data.frame;
    for (int64_t i = 0; i < frame->n_rows; i++) {
        out[i] = (double)NAN;
    }
    for (int64_t i = 0; i < frame->n; i++) {
        out[frame->rows ? frame->rows[i] : i] = value_of(f, what, i);
    }
    return FRG_OK;
}

void frgi_glm_destroy(frg_fe *f)
{
    DROP(f->ctx, &f->glm.y);
    DROP(f->ctx, &f->glm.offset);
    DROP(f->ctx, &f->glm.prior);
    DROP(f->ctx, &f->glm.eta);
    DROP(f->ctx, &f->glm.mu);
    DROP(f->ctx, &f->glm.raw);
}
