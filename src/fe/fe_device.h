/* fe_device.h - the passes over the columns, conjugate gradients through the rows, and LSMR in row
 * space, on a device.
 *
 * On the device lie the rows' indices and weights, the transposed index, and the iteration with its
 * scalars.  A solve by conjugate gradients takes R K numbers there (the residual) and 2 R K back (a
 * and what is left), one by LSMR 2 R K there, with n K more of columns that the host has, and R K
 * back, and nothing else but a state every few steps.
 *
 * Where the device has double precision the passes are its own, in double: n K numbers of the
 * columns go there and n K come back, a right-hand side is R K numbers, a residual 2 R K, and 5 K
 * more each; values of slopes go there once a plan.  Elsewhere they are the host's, in double.  A
 * device without double precision solves in float, and the refinement by audited residuals brings
 * the answer to tol.
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
/** Columns that it takes side by side, at most. */
int frgi_fe_device_lanes(const fe_device *d);
/** The same of a plan that is not made, whose rows have n and n_reduced. */
int frgi_fe_device_lanes_of(const frgi_device *dev, const fe_rows *g, frg_fe_dtype dtype);
/** The device's name. */
const char *frgi_fe_device_place(const fe_device *d);
/** The name of its solver. */
const char *frgi_fe_device_method(const fe_device *d);
/** frgi_fe_cg_run there, without forecasts: from w->r = b to w->x and what is left in w->r. */
FRG_MUST_USE frg_status frgi_fe_device_cg(fe_device *d, const fe_cg_work *w, int lanes,
                                          int64_t max_steps, const char *phase,
                                          const fe_cg_target *target, fe_cg_column *column);

/** A block of a run: `live` columns from `first` on, in `lanes` side by side; `lane` counts those
 *  of the blocks before it. */
typedef struct {
    int64_t first, lane;
    int lanes, live;
} fe_device_block;

/** min || W^(1/2) (b - D_r N^(-1/2) x) || with the eliminated levels projected out of b; with
 *  slopes the orthonormal columns of fe_basis.h are in D_r N^(-1/2)'s place. */
typedef struct {
    int64_t columns; /* 1 .. FE_MAX_LANES */
    const double *b; /* n x columns, in the order of the rows; NULL: what the passes have left */
    fe_device_block block;  /* of these columns, or of its column */
    int k;                  /* where that is not -1 */
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

/* ---- passes over the columns ---- */

/** A run of the demeaner. */
typedef struct {
    int f32;                   /* the type of the columns */
    int64_t lanes;             /* of all blocks, */
    int most;                  /* and the most of one */
    const frg_array *in, *out; /* NULL: blocks do not come from matrices */
} fe_device_run;

/** Are right-hand sides, residuals and audits the device's?  NULL is none. */
bool frgi_fe_device_has_passes(const fe_device *d);
/** Memory for the run.  Arrays of the host may go there as a whole, and `in` is the queue's until a
 *  right-hand side is back; arrays of the device are worked on in place, until
 *  frgi_fe_device_columns_drop, which follows also where this fails.  Errors: E_MEMORY, E_DEVICE,
 *  E_DEVICE_HANDLE. */
FRG_MUST_USE frg_status frgi_fe_device_columns_open(fe_device *d, const fe_device_run *r);
/** Did it, so that `out` is written by frgi_fe_device_columns_close alone? */
bool frgi_fe_device_columns_whole(const fe_device *d);
/** The block's columns <- x; their residuals -> x.  What x points to is not looked into where
 *  matrices go as a whole or lie there. */
FRG_MUST_USE frg_status frgi_fe_device_columns_take(fe_device *d, const fe_device_block *b,
                                                    const fe_block *x);
FRG_MUST_USE frg_status frgi_fe_device_columns_give(fe_device *d, const fe_device_block *b,
                                                    const fe_block *x);
/** `out` <- the residuals, where it goes as a whole; waits until one of the device is written. */
FRG_MUST_USE frg_status frgi_fe_device_columns_close(fe_device *d, const frg_array *out);
void frgi_fe_device_columns_drop(fe_device *d);
/** to (n) <- column k of a block, in the order of the caller's rows. */
FRG_MUST_USE frg_status frgi_fe_device_column(fe_device *d, const fe_device_block *b, int k,
                                              double *to);
/** The block's columns <- themselves times a number each. */
FRG_MUST_USE frg_status frgi_fe_device_columns_scale(fe_device *d, const fe_device_block *b,
                                                     const double *factor);
/** What residuals do: they take the columns' place, and the effects of eliminated levels, which
 *  stay there, are those that are taken out now or have these added; or neither changes. */
typedef enum { FE_RESIDUALS_FIRST, FE_RESIDUALS_ADDED, FE_RESIDUALS_TRIED } fe_device_residuals;
/** rhs and residual of fe_steps.h for the block's columns, or for its column k >= 0 alone.  a NULL:
 *  no effects.  With slopes a row has its values in D_r (fe_basis.h), eliminated levels have their
 *  orthonormal columns in a residual and their means in a right-hand side, and the audit's effect
 *  is that of any factor in a row. */
FRG_MUST_USE frg_status frgi_fe_device_rhs(fe_device *d, const fe_device_block *b, int k,
                                           double *sums, fe_moments *m);
FRG_MUST_USE frg_status frgi_fe_device_residual(fe_device *d, const fe_device_block *b, int k,
                                                fe_device_residuals what, const double *a,
                                                double *sums, fe_elim_audit *audit);
/** to <- what was taken out of column k of a block of the last run along the eliminated levels: the
 *  effects of their dummies (n_elim), or with slopes coefficients of their orthonormal columns. */
FRG_MUST_USE frg_status frgi_fe_device_elim_effects(fe_device *d, const fe_device_block *b, int k,
                                                    double *to);
/** alpha <- the effects times a number, in the order of the factor's levels, as of
 *  frgi_basis_effects. */
FRG_MUST_USE frg_status frgi_fe_device_effects(fe_device *d, const fe_device_block *b, int k,
                                               double factor, double *alpha);

#pragma GCC visibility pop
#endif
