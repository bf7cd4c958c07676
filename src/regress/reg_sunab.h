/* reg_sunab.h - cohorts and relative periods of sunab(): which rows and cells it compares, and the
 * means of their coefficients. */
#ifndef FRGI_REG_SUNAB_H
#define FRGI_REG_SUNAB_H

#include "regress/reg_design.h"

#pragma GCC visibility push(hidden)

struct frg_fe;

/** A treated cohort in a period, by the codes of both; of what bins put together, the first of
 *  each. */
typedef struct {
    double time, cohort_value; /* the period less the cohort; the cohort */
    int32_t period, cohort;
    bool reference; /* it has no column */
    double weight;  /* sum of the weights of its rows */
} frgi_cohort_cell;

/** Is att= or no_agg= TRUE? */
bool frgi_sunab_is(const frgi_syntax *s, int32_t node, const char *name);
/** Does the call group values, by bin=, bin.c=, bin.p= or bin.rel=? */
bool frgi_sunab_bins(const frgi_syntax *s, int32_t node);
/** The cells of treated cohorts that rows have, by relative period, then cohort.  levels, codes: of
 *  the period and the cohort, of n rows with weights (NULL: 1).  *cell_of: the number of the cell
 *  at codes cohort * periods + period, -1 for none.  E_REFERENCE. */
FRG_MUST_USE frg_status frgi_cohort_cells(frgi_cohort_cell **out, int32_t *n_cells,
                                          int32_t **cell_of, frg_context *ctx, const frgi_syntax *s,
                                          int32_t node, const frgi_levels levels[2],
                                          int32_t *const codes[2], const double *weights,
                                          int64_t n);
/** mask[i] <- `why` for the rows of cohorts that are treated all along, and, where no cohort is
 *  never treated, for the periods from the last cohort's treatment on; of the rows with mask 0.
 *  quiet: it was said before.  E_CONTROLS where nothing is left to compare with. */
FRG_MUST_USE frg_status frgi_cohorts_exclude(frg_context *ctx, const frgi_syntax *s,
                                             const frgi_variable *v, unsigned char *mask,
                                             int64_t n_rows, unsigned char why, bool quiet);

#pragma GCC visibility pop
#endif
