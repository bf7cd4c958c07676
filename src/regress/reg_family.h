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

/** Of outcomes y with means mu. */
typedef struct {
    const char *name;
    double (*variance)(double mu);
    /** Twice the log-likelihood that y loses by mu beside its best; >= 0. */
    double (*deviance)(double y, double mu);
    double (*start)(double y, double mean); /* mu to begin with */
    bool (*has)(double y);                  /* is y an outcome? */
    bool (*allows)(double mu);              /* is mu a mean? */
    bool dispersed;                         /* the variance has a factor that is estimated */
    const char *outcomes;                   /* what `has` says, for messages */
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

/** log f(y; mu, phi) of one row. */
double frgi_family_log_density(frg_fe_family family, double y, double mu, double phi);

#pragma GCC visibility pop
#endif
