/* gp_coordinates.h - the free parameters of a process as the coordinates of a search.
 *
 *     u_c = (raw_c - shift_c) / scale_c,   raw = log v (means: v), for Adam T^-1(v) as torch has it
 *
 * Shift 0 and scale 1 but for means, which are shifted to their start and measured in standard
 * deviations of y (slopes: of y over those of x), so that one step length suits all. */
#ifndef FRGI_GP_COORDINATES_H
#define FRGI_GP_COORDINATES_H

#include "gp/gp_process.h"

#pragma GCC visibility push(hidden)

typedef struct {
    const frg_gp *gp;
    int count;             /* of free parameters */
    bool raw;              /* on T^-1(v), as torch has it; false: on logarithms whatever the
                              transform */
    int *index;            /* the parameter of each coordinate; others may be tied to it */
    int *of;               /* the coordinate of each parameter, -1: fixed */
    double *shift, *scale; /* of each coordinate */
    double *lower, *upper;
    frgi_gp_range *range; /* of the values */
} frgi_gp_coordinates;

/** Memory for the parameters of a process, from a measuring or an open arena. */
void frgi_gp_coordinates_take(frgi_arena *a, const frg_gp *gp, frgi_gp_coordinates *c);
/** At the parameters that the process has; standardize: means have a shift and a scale. */
void frgi_gp_coordinates_set(frgi_gp_coordinates *c, bool raw, bool standardize);
/** u <- the coordinates of theta; a value at the end of its transform, whose raw value is infinite,
 *  is put beside it. */
void frgi_gp_coordinates_of(const frgi_gp_coordinates *c, const double *theta, double *u);
/** The free entries of theta <- the values at u, within their ranges whatever rounding did. */
void frgi_gp_coordinates_values(const frgi_gp_coordinates *c, const double *u, double *theta);
/** g <- the derivative along each coordinate, from that of all parameters: per log v (for means per
 *  v). */
void frgi_gp_coordinates_gradient(const frgi_gp_coordinates *c, const double *gradient, double *g);
/** h <- the second derivatives, count x count, from those of all parameters and `more` on their
 *  diagonal. */
void frgi_gp_coordinates_curvature(const frgi_gp_coordinates *c, const double *all,
                                   const double *more, double *h);

#pragma GCC visibility pop
#endif
