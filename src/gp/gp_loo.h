/* gp_loo.h - the gradient of the log density that a process gives to rows left out: of each
 * (gp_loo.c) or of blocks (gp_folds.c).
 *
 * P = K^-1, or K^-1 - E E' where a mean H beta is estimated without the rows, a = P y, u_B =
 * P_BB^-1 a_B and D = blockdiag(P_BB^-1 + u_B u_B'):
 *
 *     z = P u,   V = 1/2 (z a' + a z') - 1/2 P D P
 *     d/dt = sum_ij V_ij dK_ij/dt,   d/db = (dm/db)' z
 *
 * summed over the columns of y.  A profiled scale f depends on theta too: with e = d/dlog f of the
 * log density, z gains -e/N a (twice that for d/db), in the units of gp_mean.c.  The triangle of P
 * D P is a second one: FULL has it in `kept`, PACKED takes it. */
#ifndef FRGI_GP_LOO_H
#define FRGI_GP_LOO_H

#include "gp/gp_process.h"

#pragma GCC visibility push(hidden)

typedef struct {
    double *u, *z;        /* n x q */
    float *z_low, *a_low; /* n x q, f32 */
    frgi_spd second;      /* P D P / (2 q), as the pass weighs it by 2 q; gradient alone */
    double scale_slope;   /* e, read where the scale is profiled */
} frgi_gp_density;

void frgi_gp_density_take(frgi_arena *a, const frg_gp *gp, bool gradient, frgi_gp_density *k);
/** z <- P u; the matrix is K^-1. */
FRG_MUST_USE frg_status frgi_gp_density_apply(frg_gp *gp, const frgi_gp_density *k);
/** gradient <- d/dt and d/db from z and second; 0 for fixed parameters. */
FRG_MUST_USE frg_status frgi_gp_density_pass(frg_gp *gp, const frgi_gp_density *k,
                                             double *gradient);

#pragma GCC visibility pop
#endif
