/* fe_device.h - conjugate gradients through the rows, and LSMR in row space, on a device.
 *
 * On the device lie the rows' indices and weights, the transposed index, and the iteration with its
 * scalars.  A solve by conjugate gradients takes 2 R K numbers there (a and the residual) and as
 * many back, one by LSMR (n + 2 R) K there and R K back, and nothing else but a state every few
 * steps.  The passes over
 * the columns (right-hand side, residual with its audit) are the host's, in double.  A device
 * without double precision solves in float, and the refinement by audited residuals brings the
 * answer to tol.
 */
#ifndef FRGI_FE_DEVICE_H
#define FRGI_FE_DEVICE_H

#include "core/core.h"
#include "fe/fe_basis.h"
#include "fe/fe_cg.h"
#include "fourge/fe.h"
#include "sparse/lsmr.h"

#pragma GCC visibility push(hidden)

typedef struct fe_device fe_device;
typedef struct frgi_device frgi_device; /* device/device.h */

/** Where it computes. */
typedef struct {
    frgi_device *dev; /* NULL: the host */
    int group;        /* work-items of a group, 0: 128; the bits of a device depend on it */
    const struct fe_steps *steps; /* the host's half; NULL: frgi_fe_host_steps */
} fe_device_place;

/** E_DEVICE_STEP, by name, for options that do not run on a device. */
FRG_MUST_USE frg_status frgi_fe_device_check(frg_context *ctx, const frgi_device *dev,
                                             const frg_demean_opts *o, bool slopes);
/** The rows of g to the device; slopes: their orthonormal columns, by method lsmr, or NULL.
 *  Errors: E_MEMORY, E_TOO_BIG, E_DEVICE. */
FRG_MUST_USE frg_status frgi_fe_device_create(fe_device **out, frg_context *ctx,
                                              fe_device_place where, const fe_rows *g,
                                              const fe_basis *slopes, const frg_demean_opts *o);
/** The weights of its rows, of a plan by conjugate gradients, are others. */
FRG_MUST_USE frg_status frgi_fe_device_reweight(fe_device *d);
void frgi_fe_device_destroy(fe_device *d);
/** Does it solve in float alone? */
bool frgi_fe_device_in_float(const fe_device *d);
/** The device's name. */
const char *frgi_fe_device_place(const fe_device *d);
/** The name of its solver. */
const char *frgi_fe_device_method(const fe_device *d);
/** frgi_fe_cg_run there, without forecasts: from w->r = b to w->x and what is left in w->r. */
FRG_MUST_USE frg_status frgi_fe_device_cg(fe_device *d, const fe_cg_work *w, int lanes,
                                          int64_t max_steps, const char *phase,
                                          const fe_cg_target *target, fe_cg_column *column);

/** min || W^(1/2) (b - D_r N^(-1/2) x) || with the eliminated levels projected out of b; with
 *  slopes the orthonormal columns of fe_basis.h are in D_r N^(-1/2)'s place. */
typedef struct {
    int64_t columns;        /* 1 .. FE_MAX_LANES */
    const double *b;        /* n x columns, in the order of the rows */
    const double *gradient; /* R x columns: N^(-1/2) D_r' W b */
    double square[FE_MAX_LANES],
        gradient_square[FE_MAX_LANES]; /* ||W^(1/2) b||^2, ||gradient||^2 */
} fe_device_system;

/** How a column ended. */
typedef struct {
    frg_lsmr_stop stop;
    int64_t steps;
    double norm_a; /* ||A||_F so far */
    double lambda; /* smallest Ritz value of A'A; NaN: none */
} fe_device_column;

/** LSMR there, of a plan with method lsmr: x (R x columns) <- the answers. */
FRG_MUST_USE frg_status frgi_fe_device_lsmr(fe_device *d, const fe_device_system *b,
                                            const frgi_lsmr_rule *rule, double *x,
                                            fe_device_column columns[]);

#pragma GCC visibility pop
#endif
