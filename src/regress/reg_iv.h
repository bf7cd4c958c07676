/* reg_iv.h - what the tests of two-stage least squares share: columns, sums, covariances of scores.
 *
 * E exogenous, Z instruments, X endogenous regressors, y, all without effects; Z_p, X_p what their
 * projections on E leave; V, v_y the residuals of X and y on [E Z].  S_ab = a'W b of those.
 */
#ifndef FRGI_REG_IV_H
#define FRGI_REG_IV_H

#include "regress/reg_dense.h"
#include "regress/regress.h"

#pragma GCC visibility push(hidden)

typedef struct {
    frg_fe *f;
    frg_fe *shadow;          /* f with other residuals and columns */
    int e, l, m;             /* exogenous, instruments, endogenous */
    const double **z, **zp;  /* [E Z]: e + l columns;  Z_p: l */
    double *own_zp, *v, *xp; /* n x l, n x m, n x m */
    double *vy, *t;          /* n; t is scratch */
    double *szz, *szx, *szy; /* of Z_p, X_p, y: l x l, l x m, l */
    double *sxx, *svv, *pi;  /* of X_p, V: m x m; l x m */
    double *block;           /* l x l: the covariance of the first first stage's instruments */
    double vyy;              /* v_y'W v_y */
    /* of the covariance at hand: */
    frg_fe_iv_tests *test;
    const char *spec;
    bool iid;
    double factor; /* (n - 1) / (n - K) of the first stages, or 1 */
    double df_t;
} frgi_iv_work;

/** out (k x k) <- M(t) = sum over rows, or clusters, of (w t z)(w t z)' for the columns z, `gram`
 *  their z'Wz and tt = t'Wt.  adjusted: with the small-sample rule of the first stages.  It is the
 *  covariance of a regression with these columns, residuals and a diagonal bread, so that every
 *  covariance based on scores has its tests; tt / n times the Gram matrix where errors are iid. */
FRG_MUST_USE frg_status frgi_iv_meat(const frgi_iv_work *w, int k, const double *const *z,
                                     const double *gram, const double *t, double tt, bool adjusted,
                                     double *out);
/** The Anderson-Rubin test and the set of values that it does not reject. */
FRG_MUST_USE frg_status frgi_iv_anderson_rubin(frgi_iv_work *w);

#pragma GCC visibility pop
#endif
