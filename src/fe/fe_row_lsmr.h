/* fe_row_lsmr.h - the demeaner in row space: LSMR on the rows, and the path of varying slopes.
 *
 * Every factor's columns are made orthonormal level by level with respect to the weights
 * (fe_basis.h), the eliminated factor's block U is projected out exactly and LSMR solves what is
 * left:
 *
 *     min || (I - U U') (W^(1/2) b - A_r c) ||,      A_r = W^(1/2) [phi of the other factors]
 *
 * Nothing but rows and orthonormal columns enters, so the path checks all others and serves designs
 * that have no Schur complement in integers.  With one factor it is a closed form: 0 iterations.
 *
 * Effects: factor after factor in the caller's order; of one factor first the intercepts of all
 * levels (none where no_intercept has its bit), then the first of its slopes for all levels, the
 * second, ..., slopes of a factor in the order in which the caller gave them.  A dropped column has
 * the coefficient 0.
 */
#ifndef FRGI_FE_ROW_LSMR_H
#define FRGI_FE_ROW_LSMR_H

#include "fe/fe_device.h"
#include "fe/fe_rows.h"
#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

typedef struct fe_row_lsmr fe_row_lsmr;

/** Plans; g must outlive the plan, the slopes' values are copied.  o->method map: alternating
 *  projections (fe_map.h); every other: lsmr.
 *  Errors: E_ARG for a bad factor, E_NOT_FINITE, E_MEMORY. */
FRG_MUST_USE frg_status frgi_fe_row_lsmr_create(fe_row_lsmr **out, frg_context *ctx,
                                                const fe_rows *g, const frg_slope *slopes,
                                                int n_slopes, uint64_t no_intercept,
                                                const frg_demean_opts *o);

/** v <- P^-1 p (R x k, row-major), P symmetric, positive (semi)definite and the same in every call,
 *  close to N^(-1/2) S N^(-1/2) with S of fe_rows.h: a solver for S itself is wrapped as v =
 *  N^(1/2) S^+ N^(1/2) p. For designs without slopes; R = g->n_reduced, in g's numbering.  1 <= k
 *  <= 32. */
typedef void fe_row_lsmr_precond(const void *data, int64_t k, const double *p, double *v);
void frgi_fe_row_lsmr_precondition(fe_row_lsmr *f, fe_row_lsmr_precond *apply, const void *data);

/** Preconditions with the factor of the Schur complement (fe_slopes.h) where that pays; forced:
 *  whatever it costs, E_TOO_BIG where byte_cap forbids it. */
FRG_MUST_USE frg_status frgi_fe_row_lsmr_factor(fe_row_lsmr *f, frg_context *ctx, size_t byte_cap,
                                                bool forced);
/** The orthonormal columns of the plan, which a device may point to. */
const fe_basis *frgi_fe_row_lsmr_basis(const fe_row_lsmr *f);
/** LSMR runs on the device, which the plan owns from now on: without preconditioner. */
void frgi_fe_row_lsmr_take_device(fe_row_lsmr *f, fe_device *device);
/** Are right-hand sides, residuals and audits the device's?  NULL has none. */
bool frgi_fe_row_lsmr_passes(const fe_row_lsmr *f);
/** Where LSMR runs: "cpu" or the device's name. */
const char *frgi_fe_row_lsmr_place(const fe_row_lsmr *f);
/** "lsmr", or with what it is preconditioned, or where it runs. */
const char *frgi_fe_row_lsmr_method(const fe_row_lsmr *f);

/** in, out: n x p in the caller's row order, f64 or f32, out may be in; on the device where the
 *  passes are that's; columns: p reports.  FRG_OK, or a failure, before anything was written but
 *  for one of a device; what became of a column is in its status. */
FRG_MUST_USE frg_status frgi_fe_row_lsmr_run(fe_row_lsmr *f, frg_context *ctx, frg_array in,
                                             frg_array out, frg_demean_column columns[]);
/** The effects of a column of the last run, frgi_fe_row_lsmr_levels values. */
FRG_MUST_USE frg_status frgi_fe_row_lsmr_effects(const fe_row_lsmr *f, int64_t column,
                                                 double *alpha);
int64_t frgi_fe_row_lsmr_levels(const fe_row_lsmr *f);
/** The rank of D; *method: "exact", counted over the rationals by at most work_most multiply-adds;
 *  "pivots", of a dense or sparse factor in double precision; or "bound", above it. */
FRG_MUST_USE frg_status frgi_fe_row_lsmr_rank(const fe_row_lsmr *f, frg_context *ctx,
                                              double work_most, int64_t *rank, const char **method);
/** Bytes after a run of p columns, but for a factor, of rows that are not laid out
 *  (frgi_fe_rows_shape). */
size_t frgi_fe_row_lsmr_shape(const fe_rows *g, const frg_slope *slopes, int n_slopes,
                              uint64_t no_intercept, const frg_demean_opts *o, int64_t p);
size_t frgi_fe_row_lsmr_bytes(const fe_row_lsmr *f);
size_t frgi_fe_row_lsmr_factor_bytes(const fe_row_lsmr *f);
void frgi_fe_row_lsmr_destroy(fe_row_lsmr *f, frg_context *ctx);

#pragma GCC visibility pop
#endif
