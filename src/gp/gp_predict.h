/* gp_predict.h - the predictive distribution at new points, for frg_gp_predict and
 * frg_gp_sample. */
#ifndef FRGI_GP_PREDICT_H
#define FRGI_GP_PREDICT_H

#include "gp/gp_process.h"

#pragma GCC visibility push(hidden)

/** What is wanted at m points, each NULL or the caller's memory. */
typedef struct {
    double *mean;        /* m x q, column-major */
    const double *given; /* m: added to it, or NULL */
    double *variance;    /* m */
    double *covariance;  /* m x m, column-major, both triangles */
    double *mean_dx;     /* m x d, row-major, of the first column of y */
    double *variance_dx; /* m x d, row-major */
    double *forward;     /* n x m: L^-1 k_t */
    double *basis;       /* profile.count x m: L_A^-1 (h_t - H'K^-1 k_t) of a profiled mean */
    bool prior;          /* without the data: neither derivatives nor forward */
    bool observed;       /* noise of a new observation on the diagonal */
    double floor;        /* least variance, noise included */
} frgi_gp_wanted;

/** x: m x d row-major.  The factor is made where it is needed. */
FRG_MUST_USE frg_status frgi_gp_posterior(frg_gp *gp, const double *x, ptrdiff_t m,
                                          const frgi_gp_wanted *w);
/** *out <- a copy of x (m x d, f64 or f32, any strides) row-major; E_SHAPE, E_NOT_FINITE_GP. */
FRG_MUST_USE frg_status frgi_gp_take_points(frg_gp *gp, const frg_array *x, const char *name,
                                            double **out);
/** Have new points the noise that they need, and can this process take them?  noise: of m points,
 *  or NULL. */
FRG_MUST_USE frg_status frgi_gp_check_new_noise(frg_gp *gp, const double *noise, int64_t m);
/** a (m x m, column-major, lower) <- its Cholesky factor, column by column; false where a pivot is
 *  not positive. */
bool frgi_gp_factor_schur(ptrdiff_t m, double *a);
/** The noise of a new observation: learned, and of known or grouped noise the mean over the
 *  data. */
double frgi_gp_new_noise(const frg_gp *gp);

#pragma GCC visibility pop
#endif
