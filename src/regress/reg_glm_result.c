/* reg_glm_result.c - which model a generalised linear model is, and what is said of its fit.
 *
 *     deviance    sum w d(y, mu);  null: mu = mean(c + o) with the c that maximises the likelihood
 *     likelihood  sum w log f(y; mu, phi), phi = deviance / n where the family has one
 *     pseudo R2   1 - log L / log L_0 (McFadden 1974)
 *     AIC, BIC    -2 log L + 2 K,  -2 log L + K log n,  K = coefficients + rank of the effects
 *     dispersion  sum W e^2 / (n - K) where the family has one, else 1
 */
#include <math.h>
#include <string.h>

#include "regress/regress.h"

enum { NULL_STEPS = 100 };

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

frg_status frgi_glm_choose(frg_fe *f)
{
    const frg_fe_opts *const o = &f->policy.options;
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
static double null_predictor(const frg_fe *f)
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
            const double w = weight_of(g, i) / g->family->variance(mu);
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

/** Deviance at the means, or at c + offset where null. */
static double deviance_of(const frg_fe *f, bool null, double c)
{
    const frgi_fe_glm *const g = &f->glm;
    double sum = 0;
    for (int64_t i = 0; i < f->data.frame.n; i++) {
        const double mu = null ? g->link->mean(c + (g->offset ? g->offset[i] : 0)) : g->mu[i];
        sum += weight_of(g, i) * g->family->deviance(g->y[i], mu);
    }
    return sum;
}

static double likelihood_of(const frg_fe *f, bool null, double c, double deviance)
{
    const frgi_fe_glm *const g = &f->glm;
    double sum = 0, weight = 0;
    for (int64_t i = 0; i < f->data.frame.n; i++) {
        weight += weight_of(g, i);
    }
    const double phi = deviance / weight;
    for (int64_t i = 0; i < f->data.frame.n; i++) {
        const double mu = null ? g->link->mean(c + (g->offset ? g->offset[i] : 0)) : g->mu[i];
        sum +=
            weight_of(g, i) * frgi_family_log_density(f->policy.options.family, g->y[i], mu, phi);
    }
    return sum;
}

/** sum w (y - mu)^2, and of the weights W e^2. */
static void squares(const frg_fe *f, double *rss, double *pearson)
{
    const frgi_fe_glm *const g = &f->glm;
    *rss = *pearson = 0;
    for (int64_t i = 0; i < f->data.frame.n; i++) {
        const double r = g->y[i] - g->mu[i];
        *rss += weight_of(g, i) * r * r;
        *pearson += weight_of(g, i) * r * r / g->family->variance(g->mu[i]);
    }
}

frg_status frgi_glm_describe(frg_fe *f)
{
    frgi_fe_glm *const g = &f->glm;
    frg_fe_glm *const q = &g->result;
    frg_fe_result *const r = &f->report.result;
    const frgi_frame *const frame = &f->data.frame;
    const double n = frame->count, K = f->fit.k + f->absorbed.rank, c = null_predictor(f);
    double rss, pearson;
    squares(f, &rss, &pearson);
    q->family = g->family->name;
    q->link = g->link->name;
    q->n_separated = frame->n_separated;
    q->separated = frame->separated;
    q->deviance = deviance_of(f, false, 0);
    q->null_deviance = deviance_of(f, true, c);
    q->log_likelihood = likelihood_of(f, false, 0, q->deviance);
    q->null_log_likelihood = likelihood_of(f, true, c, q->null_deviance);
    q->pseudo_r2 = 1 - q->log_likelihood / q->null_log_likelihood;
    q->aic = -2 * q->log_likelihood + 2 * K;
    q->bic = -2 * q->log_likelihood + K * log(n);
    q->dispersion = !g->family->dispersed ? 1 : n > K ? pearson / (n - K) : (double)NAN;
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
        return r * sqrt(w / g->family->variance(g->mu[i]));
    case FRG_GLM_DEVIANCE:
        return copysign(sqrt(w * g->family->deviance(g->y[i], g->mu[i])), r);
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
