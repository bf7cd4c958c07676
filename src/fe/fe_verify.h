/* fe_verify.h - what is said of a demeaned column, from the sums that its own last pass left. */
#ifndef FRGI_FE_VERIFY_H
#define FRGI_FE_VERIFY_H

#include "core/core.h"
#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

/** The column that came in. */
typedef struct {
    double total_weight; /* sum of w */
    double total;        /* sum of w (x - mean)^2 */
    double max_abs;      /* largest |x| */
    double effect;       /* largest |effect| taken out */
    double epsilon;      /* of the column's type */
} fe_column_size;

/** The audit of the column that went out; g_l = sum_i w_i r_i / sqrt(N_l). */
typedef struct {
    double square;   /* sum of w r^2 */
    double gradient; /* ||g||^2 over the levels of all factors */
    double mean;     /* largest |level mean| of r */
} fe_column_audit;

/** Values above it are refused: their squares times the rows would not be finite. */
#define FE_LARGEST 1e150
/** Columns with a largest value below it, times the root of the least weight, are refused: their
 *  squares underflow, so that no sum of squares could be told from zero. */
#define FE_SMALLEST 1e-150

/** error_bound over tol, at most, of a column that is accepted. */
#define FE_BOUND_MOST 1e3

/** Is the column itself lost in the rounding of the effects taken out?  Effects so far beyond it
 *  come from a direction that D does not have and a factor took for one; what is left then is no
 *  residual of the column, however small its level means are. */
bool frgi_fe_is_lost(const fe_column_size *c);
/** tol, or what a column of this rounding can reach, where that is more: r in its type has a
 *  gradient of 4 epsilon at most. */
double frgi_fe_reachable(double tol, double epsilon);
/** Fills audit, gradient, error_bound, absorbed and converged; a lost column is neither of the two.
 *  error: an estimate of ||W^(1/2)(r - r*)||^2, NaN where there is none. */
void frgi_fe_verify(double tol, int n_factors, const fe_column_size *c, const fe_column_audit *a,
                    double error, frg_demean_column *out);
/** Is nothing left to be done for the column?  A small gradient on a nearly disconnected graph is
 *  no small error, so the bound counts as well. */
bool frgi_fe_accepted(double tol, const frg_demean_column *c);
/** E_NOT_FINITE for a value that is not finite, above FE_LARGEST, or the largest of its column and
 *  below FE_SMALLEST; row and column from 0. */
FRG_MUST_USE frg_status frgi_fe_refuse_value(frg_context *ctx, int64_t row, int64_t column,
                                             double v);

#pragma GCC visibility pop
#endif
