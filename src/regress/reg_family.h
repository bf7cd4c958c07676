/* reg_family.h - families and links of generalised linear models, row by row. */
#ifndef FRGI_REG_FAMILY_H
#define FRGI_REG_FAMILY_H

#include <stdbool.h>

#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

/** mu at eta; d mu / d eta; eta at mu. */
typedef struct {
    double (*mean)(double eta);
    double (*slope)(double eta);
    double (*link)(double mu);
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
/** log f(y; mu, phi) of one row. */
double frgi_family_log_density(frg_fe_family family, double y, double mu, double phi);

#pragma GCC visibility pop
#endif
