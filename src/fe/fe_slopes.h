/* fe_slopes.h - the Schur complement of a design with varying slopes, and its factor as LSMR's
 * preconditioner.
 *
 * In the orthonormal columns of fe_basis.h, with U the eliminated levels' block and A_r the
 * others':
 *
 *     S = A_r' (I - U U') A_r,      P^-1 = S^+ by a sparse Cholesky factor
 *
 * LSMR with that P needs a few steps whatever the graph: its normal matrix is P itself.  The choice
 * to build it depends on the design alone: S has to be sparse enough, and the factor cheaper than
 * the steps that a probe on S predicts without it.
 */
#ifndef FRGI_FE_SLOPES_H
#define FRGI_FE_SLOPES_H

#include "fe/fe_basis.h"

#pragma GCC visibility push(hidden)

typedef struct fe_slopes fe_slopes;

/** *out is NULL, with FRG_OK, where the factor would not pay or takes more than byte_cap.  forced:
 *  it is built whatever it costs, E_TOO_BIG above byte_cap. */
FRG_MUST_USE frg_status frgi_fe_slopes_create(fe_slopes **out, frg_context *ctx, const fe_basis *b,
                                              size_t byte_cap, bool forced);
/** v <- S^+ p, R x k row-major: a fe_row_lsmr_precond.  data is a fe_slopes. */
void frgi_fe_slopes_solve(const void *data, int64_t k, const double *p, double *v);
/** rank S: the factor's pivots. */
int64_t frgi_fe_slopes_rank(const fe_slopes *s);
size_t frgi_fe_slopes_bytes(const fe_slopes *s);
void frgi_fe_slopes_destroy(fe_slopes *s, frg_context *ctx);

#pragma GCC visibility pop
#endif
