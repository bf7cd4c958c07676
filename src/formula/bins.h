/* bins.h - values of a column that are grouped, as the arguments bin= of a formula say. */
#ifndef FRGI_BINS_H
#define FRGI_BINS_H

#include "formula/formula.h"

#pragma GCC visibility push(hidden)

/** Values from `low` to `high`, of which `first` is written first; all at whole numbers from it. */
typedef struct {
    double first, low, high;
    int32_t bin, node; /* its bin, from 0; its place in the formula */
} frgi_bin_item;

/** What one argument says: "bin::width", or a list of bins.  Zeros: nothing. */
typedef struct {
    double width; /* 0: the list */
    int32_t n, capacity, n_bins;
    frgi_bin_item *items;
} frgi_bins;

/** The bins of the argument with this root; free with frgi_bins_free in any case.  E_FORMULA for
 *  what is none, and for a value in two bins. */
FRG_MUST_USE frg_status frgi_bins_create(frgi_bins *b, frg_context *ctx, const frgi_syntax *s,
                                         int32_t root);
void frgi_bins_free(frgi_bins *b, frg_context *ctx);
/** Values that are in a bin become its first value that is among them, in the order in which it is
 *  written; with a width w, the multiple of w below.  values, more: of lengths n and n_more, taken
 *  together; more may be NULL.  E_REFERENCE where a bin has none of them. */
FRG_MUST_USE frg_status frgi_bins_map(const frgi_bins *b, frg_context *ctx, const frgi_syntax *s,
                                      double *values, int64_t n, double *more, int64_t n_more);

#pragma GCC visibility pop
#endif
