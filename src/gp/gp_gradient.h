/* gp_gradient.h - steps of the gradient (frgi_gp_gradient in gp_value.c). */
#ifndef FRGI_GP_GRADIENT_H
#define FRGI_GP_GRADIENT_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

/** The kernel's entries of gradient and, where not NULL, dx by inverse and pass, in the arithmetic
 *  that the precision asks for; f64 where mixed is not enough. */
FRG_MUST_USE frg_status frgi_gp_gradient_pass(frg_gp *gp, double *gradient, double *dx);
/** Was the inverse in f32 none, by the trace residual? */
bool frgi_gp_gradient_is_lost(const frg_gp *gp);
/** The noise's entries; 0 for all behind the kernel's that are not noise. */
void frgi_gp_noise_gradient(const frg_gp *gp, double *gradient);

#pragma GCC visibility pop
#endif
