/* reg_family.c - see reg_family.h.  McCullagh and Nelder (1989), chapters 2, 4, 6 and 8.
 *
 *     family      V(mu)       unit deviance d(y, mu)                    link
 *     gaussian    1           (y - mu)^2                                mu
 *     poisson     mu          2 (y log(y / mu) - (y - mu))              log mu
 *     logit       mu (1-mu)   2 (y log(y / mu) + (1-y) log((1-y)/(1-mu)))   log(mu / (1 - mu))
 *     probit      the same                                              the normal's quantile
 *     gamma       mu^2        2 (-log(y / mu) + (y - mu) / mu)          1 / mu, or log mu
 *     negbin      mu + mu^2 / theta   2 (y log(y / mu) - (y + theta)    log mu
 *                                        log((y + theta) / (mu + theta)))
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "linalg/stat.h"
#include "regress/reg_family.h"

static const double LOWEST = FRGI_LOWEST_MEAN, NEAR_ONE = 0x1p-53;
static const double LOG_2PI = 1.83787706640934548356;

/* ---- links ----------------------------------------------------------------------------------- */

static double identity(double x)
{
    return x;
}
static double one(double x)
{
    (void)x;
    return 1;
}
static double exponential(double eta)
{
    return fmax(exp(eta), LOWEST);
}
static double reciprocal(double x)
{
    return 1 / x;
}
static double reciprocal_slope(double eta)
{
    return -1 / (eta * eta);
}
/** Both tails to the last bit; never 0 or 1, whose deviance would be infinite. */
static double logistic(double eta)
{
    const double t = exp(-fabs(eta)), tail = t / (1 + t);
    const double mu = eta < 0 ? tail : 1 - tail;
    return fmin(fmax(mu, LOWEST), 1 - NEAR_ONE);
}
static double logistic_slope(double eta)
{
    const double t = exp(-fabs(eta));
    return fmax(t / ((1 + t) * (1 + t)), LOWEST);
}
static double log_odds(double mu)
{
    return log(mu / (1 - mu));
}
static double normal_below(double eta)
{
    return fmin(fmax(frgi_normal_upper(-eta), LOWEST), 1 - NEAR_ONE);
}
static double normal_density(double eta)
{
    return fmax(exp(-0.5 * (eta * eta + LOG_2PI)), LOWEST);
}

static const frgi_link identity_link = {identity, one, identity, false, "identity"},
                       log_link = {exponential, exponential, log, true, "log"},
                       inverse_link = {reciprocal, reciprocal_slope, reciprocal, false, "inverse"},
                       logit_link = {logistic, logistic_slope, log_odds, false, "logit"},
                       probit_link = {normal_below, normal_density, frgi_normal_quantile, false,
                                      "probit"};

const frgi_link *frgi_link_of(frg_fe_family family, frg_fe_link link)
{
    static const struct {
        frg_fe_family family;
        frg_fe_link link;
        const frgi_link *is;
    } table[] = {
        {FRG_FAMILY_POISSON, FRG_LINK_LOG, &log_link},
        {FRG_FAMILY_LOGIT, FRG_LINK_LOGIT, &logit_link},
        {FRG_FAMILY_PROBIT, FRG_LINK_PROBIT, &probit_link},
        {FRG_FAMILY_GAUSSIAN, FRG_LINK_IDENTITY, &identity_link},
        {FRG_FAMILY_GAMMA, FRG_LINK_INVERSE, &inverse_link},
        {FRG_FAMILY_GAMMA, FRG_LINK_LOG, &log_link},
        {FRG_FAMILY_NEGBIN, FRG_LINK_LOG, &log_link},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].family == family && (link == FRG_LINK_AUTO || link == table[i].link)) {
            return table[i].is;
        }
    }
    return NULL;
}

/* ---- families -------------------------------------------------------------------------------- */

static double mean_variance(double mu, double theta)
{
    (void)theta;
    return mu;
}
static double binary_variance(double mu, double theta)
{
    (void)theta;
    return mu * (1 - mu);
}
static double square(double mu, double theta)
{
    (void)theta;
    return mu * mu;
}

static double count_variance(double mu, double theta)
{
    return mu + mu * (mu / theta);
}
static double one_variance(double mu, double theta)
{
    (void)mu, (void)theta;
    return 1;
}

static double gaussian_deviance(double y, double mu, double theta)
{
    (void)theta;
    return (y - mu) * (y - mu);
}
/** y log(y / mu) - (y - mu) without cancelling where y is near mu, nor losing a mu far below y. */
static double entropy_gap(double y, double mu)
{
    if (y == 0) {
        return mu;
    }
    const double r = (mu - y) / y;
    return fmax(y * (r - (r > -0.5 ? log1p(r) : log(mu / y))), 0);
}
static double poisson_deviance(double y, double mu, double theta)
{
    (void)theta;
    return 2 * entropy_gap(y, mu);
}
static double binary_deviance(double y, double mu, double theta)
{
    (void)theta;
    return y == 1 ? -2 * log(mu) : -2 * log1p(-mu);
}
static double gamma_deviance(double y, double mu, double theta)
{
    (void)theta;
    const double r = (y - mu) / mu;
    return 2 * fmax(r - log1p(r), 0);
}

/** y |log(y (mu + theta) / (mu (y + theta)))| and theta |log((mu + theta) / (y + theta))|, whose
 *  difference it is, do not lose a small theta beside y and mu, nor y beside a near mu. */
static double negbin_deviance(double y, double mu, double theta)
{
    if (isinf(theta)) {
        return poisson_deviance(y, mu, theta);
    }
    const double gap = fabs(y - mu), less = fmin(y, mu), more = fmax(y, mu);
    const double counts = y > 0 ? y * log1p(gap / less * (theta / (more + theta))) : 0;
    const double shape = theta * log1p(gap / (less + theta));
    return 2 * fmax(y > mu ? counts - shape : shape - counts, 0);
}

static double negbin_information(double y, double mu, double theta)
{
    const double more = 1 + mu / theta;
    return mu * (1 + y / theta) / (more * more);
}

static double start_between(double y, double mean)
{
    return 0.5 * (y + mean);
}
static double start_binary(double y, double mean)
{
    (void)mean;
    return 0.5 * (y + 0.5);
}
static double start_there(double y, double mean)
{
    (void)mean;
    return y;
}

static bool is_finite(double y)
{
    return isfinite(y);
}
static bool is_count(double y)
{
    return y >= 0 && isfinite(y);
}
static bool is_binary(double y)
{
    return y == 0 || y == 1;
}
static bool is_positive(double y)
{
    return y > 0 && isfinite(y);
}
static bool is_share(double mu)
{
    return mu > 0 && mu < 1;
}

const frgi_family *frgi_family_of(frg_fe_family family)
{
    static const frgi_family table[] = {
        [FRG_FAMILY_LOGIT] = {"logit", binary_variance, binary_deviance, NULL, start_binary,
                              is_binary, is_share, false, EDGES_BINARY, "0 or 1"},
        [FRG_FAMILY_PROBIT] = {"probit", binary_variance, binary_deviance, NULL, start_binary,
                               is_binary, is_share, false, EDGES_BINARY, "0 or 1"},
        [FRG_FAMILY_POISSON] = {"poisson", mean_variance, poisson_deviance, NULL, start_between,
                                is_count, is_positive, false, EDGES_ZERO, ">= 0"},
        [FRG_FAMILY_GAUSSIAN] = {"gaussian", one_variance, gaussian_deviance, NULL, start_there,
                                 is_finite, is_finite, true, EDGES_NONE, "finite"},
        [FRG_FAMILY_GAMMA] = {"gamma", square, gamma_deviance, NULL, start_there, is_positive,
                              is_positive, true, EDGES_NONE, "> 0"},
        [FRG_FAMILY_NEGBIN] = {"negbin", count_variance, negbin_deviance, negbin_information,
                               start_between, is_count, is_positive, false, EDGES_ZERO, ">= 0"}};
    return &table[family];
}

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(frgi_family_ops, frgi_family_ops);
#pragma GCC visibility pop

frgi_means *frgi_means_of(const frg_context *ctx, const frgi_family *family, const frgi_link *link)
{
    static const frgi_family_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_family_ops);
    const bool poisson = family == frgi_family_of(FRG_FAMILY_POISSON) && link == &log_link;
    return poisson ? table[frgi_context_isa(ctx)]->poisson : NULL;
}

/* ---- likelihoods ----------------------------------------------------------------------------- */

/** log Gamma(x), x > 0: Stirling's series above 12, below by Gamma(x + 1) = x Gamma(x).  The C
 *  library's writes a global variable. */
static double log_gamma(double x)
{
    double factor = 1, shift = 0;
    while (x < 12) {
        factor *= x;
        x += 1;
    }
    shift = log(factor);
    const double r = 1 / x, s = r * r;
    const double series =
        r * (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188)))));
    return (x - 0.5) * log(x) - x + 0.5 * LOG_2PI + series - shift;
}

double frgi_family_log_density(frg_fe_family family, double y, double mu, double phi)
{
    switch (family) {
    case FRG_FAMILY_POISSON:
        return (y > 0 ? y * log(mu) : 0) - mu - log_gamma(y + 1);
    case FRG_FAMILY_LOGIT:
    case FRG_FAMILY_PROBIT:
        return -0.5 * binary_deviance(y, mu, phi);
    case FRG_FAMILY_NEGBIN:
        return isinf(phi) ? frgi_family_log_density(FRG_FAMILY_POISSON, y, mu, phi)
                          : frgi_gamma_ratio(phi, y) - log_gamma(y + 1) +
                                (y > 0 ? y * log(mu) : 0) - (phi + y) * log1p(mu / phi);
    case FRG_FAMILY_GAMMA: /* shape 1 / phi, mean mu */
        return (log(y / (mu * phi)) - y / mu) / phi - log(y) - log_gamma(1 / phi);
    default:
        return -0.5 * ((y - mu) * (y - mu) / phi + log(phi) + LOG_2PI);
    }
}
