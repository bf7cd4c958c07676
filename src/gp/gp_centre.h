/* gp_centre.h - where the columns of x lie. */
#ifndef FRGI_GP_CENTRE_H
#define FRGI_GP_CENTRE_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

/** One number a column: d of each. */
typedef struct {
    double *centre;  /* taken out of the points */
    double *largest; /* of |x - centre| */
    double *spread;  /* how far from the centre others are, 0: at it */
} frgi_gp_columns;

/** After x changed: centre, largest and spread. */
void frgi_gp_measure_columns(frg_gp *gp);
/** The first column with values so far from the others that the arithmetic at hand would take
 *  different points for one; -1: none. */
ptrdiff_t frgi_gp_unresolved(const frg_gp *gp);
/** The first column with values so many periods of a leaf from the centre that no phase is left of
 *  them; -1: none. */
ptrdiff_t frgi_gp_lost_phase(const frg_gp *gp);
/** E_PHASE where that is so for one of m new points (m x d row-major). */
FRG_MUST_USE frg_status frgi_gp_check_phases(frg_gp *gp, const char *name, const double *x,
                                             ptrdiff_t m);
/** E_PRECISION_GP where m points more (m x d row-major) would make a column unresolved that is not
 *  so now. */
FRG_MUST_USE frg_status frgi_gp_check_new_points(const frg_gp *gp, const double *x, ptrdiff_t m);

#pragma GCC visibility pop
#endif
