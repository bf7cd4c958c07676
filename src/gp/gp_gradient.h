/* gp_gradient.h - steps of the gradient (frgi_gp_gradient in gp_value.c). */
#ifndef FRGI_GP_GRADIENT_H
#define FRGI_GP_GRADIENT_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

/** The kernel's entries of gradient and, where not NULL, dx by inverse and pass, in the arithmetic
 *  that the precision asks for; f64 where mixed is not enough. */
FRG_MUST_USE frg_status frgi_gp_gradient_pass(frg_gp *gp, double *gradient, double *dx);
/** Is the trace residual so large that the inverse in f32 is worth nothing? */
bool frgi_gp_gradient_is_lost(const frg_gp *gp);
/** The noise's entries from (K^-1)_ii in scratch; 0 for the mean's, which are added to. */
void frgi_gp_noise_gradient(const frg_gp *gp, double *gradient);

#pragma GCC visibility pop
#endif
