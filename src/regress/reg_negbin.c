/* reg_negbin.c - theta of negative binomial models (Lawless 1987, Canadian Journal of Statistics
 * 15; Venables and Ripley 2002, 7.4).
 *
 *     log f = log Gamma(y + t) - log Gamma(t) - y log t - log y! + y log mu - (y + t) log(1 + m)
 *     d log f / dt   = A'(t) - l(m) + (y - mu) mu / (t (t + mu))
 *     d^2 log f / dt^2 = A''(t) - mu^2 / (t^2 (t + mu)) - (y - mu) mu (2 t + mu) / (t (t + mu))^2
 *
 *     t = theta,  m = mu / t,  l(m) = log(1 + m) - m,  A(t) = log Gamma(y + t) - log Gamma(t)
 *     - y log t
 *
 * As theta grows these are O(1 / t^2) and O(1 / t^3), what is left of terms of O(1 / t); here no
 * term is larger than what is left, so that a theta far beyond the means is as accurate as another.
 * At alpha = 1 / theta = 0 the slope in alpha is sum w ((y - mu)^2 - y) / 2: where it is not
 * positive, Poisson's likelihood is the maximum.
 */
#include <math.h>

#include "core/tree_sum.h"
#include "formula/program.h"
#include "regress/reg_family.h"

static const double SERIES_FROM = 12;  /* of the argument of Stirling's series */
static const double NEAR = 0.25;       /* log(1 + x) - x below it by a series */
static const double LONGEST = 2;       /* step of log theta */
static const double STILL = 1e-10;     /* the step of log theta whose square is round-off */
static const double FURTHEST = 1e10;   /* theta over the counts' mean: Poisson's limit */
static const double UNCERTAIN = 1e-14; /* of a squared standard error */
enum { PARTS = 64 /* of the rows */, STEPS = 100 };

/* ---- ratios of gamma functions --------------------------------------------------------------- */

/** log(1 + x) - x, x >= 0: with s = x / (2 + x) it is -x s + 2 (s^3 / 3 + s^5 / 5 + ...). */
static double log1p_less(double x)
{
    if (x > NEAR) {
        return log1p(x) - x;
    }
    const double s = x / (2 + x), q = s * s;
    double sum = 0;
    for (int k = 19; k >= 3; k -= 2) {
        sum = sum * q + 1.0 / k;
    }
    return 2 * sum * s * q - x * s;
}

/** log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2 and its first two derivatives, x >= 12. */
static double stirling(double x)
{
    const double r = 1 / x, s = r * r;
    return r * (1.0 / 12 -
                s * (1.0 / 360 -
                     s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * 691.0 / 360360)))));
}
static double stirling_first(double x)
{
    const double s = 1 / (x * x);
    return -s * (1.0 / 12 -
                 s * (1.0 / 120 -
                      s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * 691.0 / 32760)))));
}
static double stirling_second(double x)
{
    const double r = 1 / x, s = r * r;
    return s * r *
           (1.0 / 6 -
            s * (1.0 / 30 - s * (1.0 / 42 - s * (1.0 / 30 - s * (5.0 / 66 - s * 691.0 / 2730)))));
}

double frgi_gamma_ratio(double x, double y)
{
    double above = x, below = 0; /* Gamma(x + 1) = x Gamma(x) */
    while (above < SERIES_FROM) {
        below += log1p(y / above);
        above += 1;
    }
    const double t = y / above, shift = above > x ? y * log(above / x) : 0;
    return y * t - 0.5 * t + (above + y - 0.5) * log1p_less(t) + stirling(above + y) -
           stirling(above) - below + shift;
}

/** Its first two derivatives in x. */
static frgi_theta_slopes ratio_slopes(double x, double y)
{
    double above = x, first = 0, second = 0;
    while (above < SERIES_FROM) {
        const double both = above * (above + y);
        first += y / both;
        second -= y * (2 * above + y) / (both * both);
        above += 1;
    }
    const double steps = above - x, both = above * (above + y), near = x * above;
    first += log1p_less(y / above) + 0.5 * y / both + stirling_first(above + y) -
             stirling_first(above) - y * steps / near;
    second += y * y / (above * both) - 0.5 * y * (2 * above + y) / (both * both) +
              stirling_second(above + y) - stirling_second(above) +
              y * steps * (x + above) / (near * near);
    return (frgi_theta_slopes){first, second};
}

/* ---- sums over the rows ---------------------------------------------------------------------- */

static double mean_of(const frgi_counts *r, int64_t i)
{
    return r->mu ? r->mu[i] : fmax(exp(r->c + (r->offset ? r->offset[i] : 0)), FRGI_LOWEST_MEAN);
}

/** Two terms of a row. */
typedef frgi_theta_slopes row_terms(double y, double mu, double theta);

static frgi_theta_slopes slopes_of_row(double y, double mu, double theta)
{
    const double m = mu / theta, both = theta * (theta + mu);
    frgi_theta_slopes s = ratio_slopes(theta, y);
    s.first += (y - mu) * mu / both - log1p_less(m);
    s.second -= m * mu / both + (y - mu) * mu * (2 * theta + mu) / (both * both);
    return s;
}
/** mu, and what the square of the residual has beyond Poisson's variance. */
static frgi_theta_slopes excess_of_row(double y, double mu, double theta)
{
    (void)theta;
    return (frgi_theta_slopes){mu, (y - mu) * (y - mu) - y};
}
static frgi_theta_slopes squares_of_row(double y, double mu, double theta)
{
    (void)y, (void)theta;
    return (frgi_theta_slopes){mu, mu * mu};
}

static frgi_theta_slopes add_rows(const frgi_counts *r, row_terms *terms, double theta)
{
    double sums[PARTS][2], total[2];
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(r->ctx, r->n))
    for (int p = 0; p < PARTS; p++) {
        sums[p][0] = sums[p][1] = 0;
        for (int64_t i = r->n * p / PARTS; i < r->n * (p + 1) / PARTS; i++) {
            const frgi_theta_slopes row = terms(r->y[i], mean_of(r, i), theta);
            const double w = r->w ? r->w[i] : 1;
            sums[p][0] += w * row.first;
            sums[p][1] += w * row.second;
        }
    }
    frgi_tree_rows(sums[0], PARTS, 2, 2, total);
    return (frgi_theta_slopes){total[0], total[1]};
}

frgi_theta_slopes frgi_theta_slopes_at(const frgi_counts *r, double theta)
{
    return add_rows(r, slopes_of_row, theta);
}

/* ---- the maximum ----------------------------------------------------------------------------- */

/** sum w ((y - mu)^2 - y); 0 where a theta that this suggests would be beyond FURTHEST. */
static double excess(const frgi_counts *r)
{
    const frgi_theta_slopes s = add_rows(r, excess_of_row, 0);
    return s.second > s.first / FURTHEST ? s.second : 0;
}

/** The next log theta less that of now: Newton's step, or uphill by LONGEST. */
static double newton_step(frgi_theta_slopes s, double theta)
{
    const double slope = theta * s.first, bend = theta * theta * s.second + slope;
    return bend < 0 ? fmin(fmax(-slope / bend, -LONGEST), LONGEST) : copysign(LONGEST, slope);
}

double frgi_theta_best(const frgi_counts *r, double theta)
{
    const frgi_theta_slopes squares = add_rows(r, squares_of_row, 0);
    const double furthest = FURTHEST * (squares.second / squares.first);
    double low = 0, high = (double)INFINITY; /* the maximum is between */
    if (isinf(theta)) {
        const double more = excess(r);
        if (!(more > 0)) {
            return theta;
        }
        theta = squares.second / more; /* E more = sum w mu^2 / theta */
    }
    for (int step = 0; step < STEPS && theta < furthest; step++) {
        const frgi_theta_slopes s = frgi_theta_slopes_at(r, theta);
        low = s.first > 0 ? theta : low;
        high = s.first > 0 ? high : theta;
        double next = theta * exp(newton_step(s, theta));
        if (fabs(next - theta) <= STILL * theta) {
            return next;
        }
        if (!(next > low && next < high) && low > 0 && isfinite(high)) {
            next = sqrt(low * high);
        }
        theta = next;
    }
    return theta < furthest ? theta : (double)INFINITY;
}

bool frgi_theta_stands(const frgi_counts *r, double theta)
{
    if (isinf(theta)) {
        return !(excess(r) > 0);
    }
    const frgi_theta_slopes s = frgi_theta_slopes_at(r, theta);
    return s.second < 0 && s.first * s.first <= UNCERTAIN * -s.second;
}
