/* gp_mean.h - the mean function: its kind, its parameters, and a mean that is profiled. */
#ifndef FRGI_GP_MEAN_H
#define FRGI_GP_MEAN_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

typedef enum {
    GP_MEAN_ZERO,
    GP_MEAN_CONST,
    GP_MEAN_LINEAR,
    GP_MEAN_PROFILED,
    GP_MEAN_VALUES
} frgi_gp_mean_kind;

typedef struct {
    frgi_gp_mean_kind kind;
    double start; /* "const(v)": v, NaN: mean(y) */
    bool fixed;   /* "const(v!)" */
} frgi_gp_mean;

/** Profiled mean H beta: beta = (H' K^-1 H)^-1 H' K^-1 y, valid from MATRIX_FACTOR on. */
typedef struct {
    ptrdiff_t count;    /* m columns of H: 1, and the centred inputs; 0 where the mean is not
                           profiled */
    double *basis;      /* H, n x m column-major, as everything of n here */
    double *solved;     /* n x m, the columns behind alpha: Z = L^-1 H, then K^-1 H */
    double *correction; /* E = K^-1 H L_A^-T, n x m: E E' is what K^-1 loses when beta is
                           estimated */
    double *extra;      /* sqrt(q) E */
    double *root;       /* L_A, m x m row-major, lower: L_A L_A' = A = H' K^-1 H */
    double *beta;       /* m x q */
    double logdet;      /* log |A| */
} frgi_gp_profile;

/** Reads "zero", "const", "const(v)", "const(v!)", "linear", "profiled", "profiled(linear)" or
 *  "values"; sets gp->mean and profile.count. */
FRG_MUST_USE frg_status frgi_gp_mean_parse(frg_gp *gp, const char *text);
/** Appends the mean's parameters. */
FRG_MUST_USE frg_status frgi_gp_mean_add(frg_gp *gp);
/** Sets from y the values that the text left out: the mean of each column, 0 under a preset. */
void frgi_gp_mean_start(frg_gp *gp);
/** E_ARG where the columns of a profiled mean are collinear in the data. */
FRG_MUST_USE frg_status frgi_gp_mean_check(frg_gp *gp);
/** H of a profiled mean from the points. */
void frgi_gp_mean_basis(frg_gp *gp);
/** residual <- y - m, for profiled means y minus its column means. */
void frgi_gp_mean_residual(frg_gp *gp);
/** Profiled means, between the two triangular solves: beta from Z = L^-1 H and z = L^-1 y (columns
 *  of alpha), z <- z - Z beta, the residual loses H beta.  False where A = H'K^-1 H is singular in
 *  this arithmetic. */
bool frgi_gp_mean_profile(frg_gp *gp);
/** After the second solve: E from K^-1 H. */
void frgi_gp_mean_correction(frg_gp *gp);
/** Adds (dm/db)' a to the means' entries of gradient, and dm/dx a to dx (NULL: not wanted). */
void frgi_gp_mean_gradient(const frg_gp *gp, const double *a, double *gradient, double *dx);
/** Mean function at points x (m x d row-major) under the current parameters, column c of y.
 *  Profiled means need the factor; given values are unknown elsewhere: 0. */
void frgi_gp_mean_at(const frg_gp *gp, ptrdiff_t m, const double *x, ptrdiff_t c, double *out);

/** With a profiled scale: where every term of R, and the noise, has a free variance, f and these
 *  are not determined together, so that the first of them is fixed. */
void frgi_gp_scale_hold(frg_gp *gp);
/** Observations that f is the mean square of: n q, (n - m) q under REML. */
double frgi_gp_scale_count(const frg_gp *gp);
/** Between the two triangular solves: quad, f, and residual and alpha divided by its root.  False
 *  where the residual is rounding. */
bool frgi_gp_scale_profile(frg_gp *gp);

#pragma GCC visibility pop
#endif
