/* stat.h - distribution functions and quantiles: normal, Student t, F; the incomplete beta
 * function. */
#ifndef FRGI_STAT_H
#define FRGI_STAT_H

#pragma GCC visibility push(hidden)

/** I_x(a, b) for a, b > 0 and y = 1 - x given apart, so that nothing is lost near 1. */
double frgi_beta_cdf(double x, double y, double a, double b);

/** P(Z > z). */
double frgi_normal_upper(double z);
/** The z with P(Z <= z) = p. */
double frgi_normal_quantile(double p);
/** P(|T| > |t|) for df > 0; df infinite is the normal. */
double frgi_t_two_sided(double t, double df);
/** The t with P(T <= t) = p. */
double frgi_t_quantile(double p, double df);
/** P(F > f) with d1 and d2 degrees of freedom; d2 may be infinite. */
double frgi_f_upper(double f, double d1, double d2);

#pragma GCC visibility pop
#endif
