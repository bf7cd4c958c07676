/* treat_cohorts.h - who is treated when, where treatments begin at different times. */
#ifndef FRGI_TREAT_COHORTS_H
#define FRGI_TREAT_COHORTS_H

#include "core/core.h"
#include "fourge/table.h"

#pragma GCC visibility push(hidden)

/** Rows by cohort; arrays are of the table's n rows, and the caller's. */
typedef struct {
    frg_context *ctx;
    const char *what; /* whose, in messages */
    const frg_table *data;
    int64_t n;
    const char *unit, *cohort, *subset; /* columns; an expression, or NULL: all rows */
    double never;                       /* the cohort that is never treated */
    bool or_less;                       /* and all before it */
    const double *time;                 /* of each row; NaN: missing */
    double *first;   /* out: the first treatment, infinite for the never treated; NaN: left out */
    double *treated; /* out: 1 from it on, 0 before; NaN where one of the two is missing */
    unsigned char *used; /* out: is the row in the subset? */
} frgi_cohorts;

/** Cohorts of the rows in use: what begins after the last of their periods is never treated there,
 *  and a cohort that has none of them before its treatment is left out with W_ALWAYS_TREATED, as
 *  nothing tells what it was before.  Rows outside the subset have the treatment that they had.
 *  E_COLUMN, E_COHORT for text, errors of `subset` as of a fit, E_CONTROLS and E_TREATMENT where
 *  there is nothing to compare. */
FRG_MUST_USE frg_status frgi_cohorts_find(const frgi_cohorts *c);

#pragma GCC visibility pop
#endif
