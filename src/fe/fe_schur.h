/* fe_schur.h - the Schur complement of the eliminated levels as an explicit sparse matrix.
 *
 * An eliminated level u with counts c_u over the reduced unknowns (weighted, N_u in all)
 * contributes
 *
 *     S_u = sum over its rows of w e e'  -  c_u c_u' / N_u,      e: the row's reduced unknowns
 *
 * Eliminated levels with the same rows contribute the same: they are merged into groups first
 * (fe_groups.h; the difficult benchmark has 1e5 eliminated levels and 2174 groups).  Eliminated
 * levels all of whose rows share one reduced unknown contribute nothing.
 *
 * The levels of small factors (years, say) meet almost every other level, so that their rows of S
 * are dense: they form the *border*, accumulated in a dense coupling block, T wide, and a (2,2)
 * block (fe_coupling.h).
 */
#ifndef FRGI_FE_SCHUR_H
#define FRGI_FE_SCHUR_H

#include "fe/fe_rows.h"
#include "fourge/checkpoint.h"
#include "sparse/symmetric.h"

#pragma GCC visibility push(hidden)

typedef struct {
    int64_t n;        /* R */
    int64_t *starts;  /* n + 1 */
    int32_t *columns; /* both triangles, ascending in a row, the diagonal included */
    double *values;
    double *inverse_diag; /* n: 1 / S_ll, 0 where S_ll = 0 */
    int64_t n_border;
    int32_t *border; /* the border's reduced unknowns, to be eliminated last */
    int64_t groups;  /* of eliminated levels that contribute */
} fe_schur;

/** Assembles S; E_TOO_BIG when it would take more than byte_cap.  s must be zeroed before.
 *  Polls the heartbeat: may return FRG_INTERRUPTED or FRG_TIME_LIMIT, and then s is empty. */
FRG_MUST_USE frg_status frgi_fe_schur_create(fe_schur *s, frg_context *ctx, const fe_rows *g,
                                             size_t byte_cap);
void frgi_fe_schur_destroy(fe_schur *s, frg_context *ctx);
size_t frgi_fe_schur_bytes(const fe_schur *s);
static inline frgi_symmetric frgi_fe_schur_view(const fe_schur *s)
{
    return (frgi_symmetric){s->n, s->starts, s->columns, s->values, 0};
}

/** Puts the matrix into `to`, whose sections point to it until that is saved. */
FRG_MUST_USE frg_status frgi_fe_schur_put(const fe_schur *s, frg_checkpoint *to);
/** The matrix of n unknowns in `from`, for s with n_border and groups set.  E_CHECKPOINT where the
 *  sections are none: every index is looked at, and no number; s is to be destroyed then. */
FRG_MUST_USE frg_status frgi_fe_schur_get(fe_schur *s, frg_context *ctx, const frg_checkpoint *from,
                                          int64_t n);

#pragma GCC visibility pop
#endif
