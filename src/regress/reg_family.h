/* reg_family.h - families and links of generalised linear models, row by row. */
#ifndef FRGI_REG_FAMILY_H
#define FRGI_REG_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/core.h"
#include "fourge/fe.h"

#define FRGI_LOWEST_MEAN 0x1p-1000 /* of a positive one: its deviance is finite */

#pragma GCC visibility push(hidden)

/** mu at eta; d mu / d eta; eta at mu. */
typedef struct {
    double (*mean)(double eta);
    double (*slope)(double eta);
    double (*link)(double mu);
    bool slope_is_mean; /* the log link's, whose exp is not taken twice */
    const char *name;
} frgi_link;

/** Towards which outcomes means may go for ever, which are then predicted perfectly. */
typedef enum { EDGES_NONE, EDGES_ZERO, EDGES_BINARY /* 0 and 1 */ } frgi_edges;

/** Of outcomes y with means mu.  theta: of the negative binomial, infinite of a Poisson
 *  distribution; the others do not read it. */
typedef struct {
    const char *name;
    double (*variance)(double mu, double theta);
    /** Twice the log-likelihood that y loses by mu beside its best; >= 0. */
    double (*deviance)(double y, double mu, double theta);
    /** -d^2 log f / d eta^2 > 0 with the family's link, where that is not what is expected and
     *  Newton's steps are better than scoring; NULL: they are the same, or it is not taken. */
    double (*information)(double y, double mu, double theta);
    double (*start)(double y, double mean); /* mu to begin with */
    bool (*has)(double y);                  /* is y an outcome? */
    bool (*allows)(double mu);              /* is mu a mean? */
    bool dispersed;                         /* the variance has a factor that is estimated */
    frgi_edges edges;
    const char *outcomes; /* what `has` says, for messages */
} frgi_family;

const frgi_family *frgi_family_of(frg_fe_family family);
/** NULL where the family has no such link. */
const frgi_link *frgi_link_of(frg_fe_family family, frg_fe_link link);

/** mu_i <- the mean at eta_i; returns sum w_i d(y_i, mu_i), w NULL: all 1, and a NaN where a mean
 *  is infinite. */
typedef double frgi_means(ptrdiff_t n, const double *eta, const double *y, const double *w,
                          double *mu);
/** The families that have rows together, for one CPU level. */
typedef struct {
    frgi_means *poisson;
} frgi_family_ops;
/** NULL: the family and its link go row by row. */
frgi_means *frgi_means_of(const frg_context *ctx, const frgi_family *family, const frgi_link *link);

/** log f(y; mu, phi) of one row; phi of the negative binomial is its theta. */
double frgi_family_log_density(frg_fe_family family, double y, double mu, double phi);

/* ---- theta of the negative binomial (reg_negbin.c) ------------------------------------------- */

/** log Gamma(x + y) - log Gamma(x) - y log x, x > 0, y >= 0: it tends to 0 as x grows, and is
 *  accurate there. */
double frgi_gamma_ratio(double x, double y);

/** Counts and their means. */
typedef struct {
    const frg_context *ctx;
    int64_t n;
    const double *y, *w;  /* n; w NULL: all 1 */
    const double *mu;     /* n; NULL: e^(c + offset) */
    const double *offset; /* n; NULL: 0 */
    double c;
} frgi_counts;

/** The derivatives of sum w log f in theta. */
typedef struct {
    double first, second;
} frgi_theta_slopes;

frgi_theta_slopes frgi_theta_slopes_at(const frgi_counts *r, double theta);
/** The theta that maximises the likelihood at the means, by Newton's steps uphill from `theta`;
 *  infinite where that is Poisson's limit.  Either may be infinite. */
double frgi_theta_best(const frgi_counts *r, double theta);
/** Is the likelihood at its maximum over theta, but for a 1e-7th of theta's standard error, or, at
 *  an infinite theta, does none below raise it? */
bool frgi_theta_stands(const frgi_counts *r, double theta);

#pragma GCC visibility pop
#endif
