/* reg_matches.h - who meets whom: the pairs of levels of two effects that occur in the rows. */
#ifndef FRGI_REG_MATCHES_H
#define FRGI_REG_MATCHES_H

#include "regress/reg_frame.h"

#pragma GCC visibility push(hidden)

/** The bipartite graph of two effects: a match is a pair of their levels that has rows.  Matches
 *  are numbered by their level of the first effect, and there by their first row. */
typedef struct {
    int64_t n_first, n_second, count; /* levels of both effects, matches */
    int64_t *start;                   /* n_first + 1: matches of a level of the first effect */
    int32_t *first, *second;          /* count: the levels of a match */
    double *rows;                     /* count: the sum of what its rows stand for */
    int64_t *back_start;              /* n_second + 1, into `back`: matches of a level of the second
                                         effect */
    int64_t *back;                    /* count */
    int64_t *of_row;                  /* n: a row's match */
} frgi_matches;

/** a, b: the levels of n rows; counts: what a row stands for, NULL: 1. */
FRG_MUST_USE frg_status frgi_matches_create(frgi_matches *m, frg_context *ctx, int64_t n,
                                            const int32_t *a, int64_t n_first, const int32_t *b,
                                            int64_t n_second, const double *counts);
void frgi_matches_destroy(frgi_matches *m, frg_context *ctx);

/** group[i] <- the set of row i, the largest being 1, among the sets of rows that stay connected
 *  when any one match is left out (any one row: `observations`), 0 in none; *n_groups their number.
 *  A match of two rows and more whose level of the first effect is in no set counts to the set of
 *  its level of the second. */
FRG_MUST_USE frg_status frgi_leave_out_rows(int32_t *group, int32_t *n_groups, frg_context *ctx,
                                            const frgi_frame *f, const frgi_formula *formula,
                                            const double *counts, bool observations);

#pragma GCC visibility pop
#endif
