/* gp_value.h - value and gradient at one theta. */
#ifndef FRGI_GP_VALUE_H
#define FRGI_GP_VALUE_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

/** Value at gp->theta: build, jitter policy, factor, alpha; leaves MATRIX_FACTOR (MATRIX_INVERSE
 *  after frgi_gp_expect_inverse, where frgi_gp_sweeps).  Nothing is done where it is there
 *  already.  FRG_NOT_POSDEF, and FRG_BROKE_DOWN (f32 that is not good enough), leave MATRIX_NONE
 *  and are steps not to be taken for an optimiser; so do FRG_INTERRUPTED and FRG_TIME_LIMIT. */
FRG_MUST_USE frg_status frgi_gp_value(frg_gp *gp);
/** Gradient at gp->theta (-> MATRIX_INVERSE; MIXED keeps MATRIX_FACTOR); includes the prior, 0 for
 *  fixed parameters.  dx: n x d row-major, or NULL. */
FRG_MUST_USE frg_status frgi_gp_gradient(frg_gp *gp, double *gradient, double *dx);
/** Again in f64 where auto_promote allows it, E_PRECISION_GP where not: the inverse in f32 was no
 *  inverse. */
FRG_MUST_USE frg_status frgi_gp_promote(frg_gp *gp);
/** The value from a factor that was not made here (an update, a file): the matrix holds its n
 *  columns at the jitter of the process.  Padding, noise and diagonal, residual, solves, check of
 *  the accuracy -> MATRIX_FACTOR. */
FRG_MUST_USE frg_status frgi_gp_adopt_factor(frg_gp *gp);
/** The same where padding, noise and diagonal are there. */
FRG_MUST_USE frg_status frgi_gp_take_factor(frg_gp *gp);
/** L^-1 r, a, what is profiled and the likelihood once more from the L that is there and its
 *  logdet. */
FRG_MUST_USE frg_status frgi_gp_solve_anew(frg_gp *gp);
/** Makes sure the factor and alpha of the current theta are there. */
FRG_MUST_USE frg_status frgi_gp_need_factor(frg_gp *gp);
/** Makes sure that `matrix` holds K^-1 in the process's own arithmetic. */
FRG_MUST_USE frg_status frgi_gp_need_inverse(frg_gp *gp);
/** Sets what an earlier evaluation at gp->theta found, without computing it (a resumed fit,
 *  gp_state.c); there is no matrix then, what needs one factors. */
void frgi_gp_recall(frg_gp *gp, frg_status status, const frg_gp_value *value, double jitter,
                    bool swapped);
/** gp->theta <- theta (checked), forgets the matrix where a value differs. */
FRG_MUST_USE frg_status frgi_gp_set_theta(frg_gp *gp, const double *theta);

#pragma GCC visibility pop
#endif
