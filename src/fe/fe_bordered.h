/* fe_bordered.h - the product with S where all reduced unknowns but those of one large factor
 * belong to small ones.
 *
 * With F the large factor, T the small ones together (years, say; the border of fe_coupling.h; S is
 * a bordered system):
 *
 *     (S p)_F = S_FF p_F + S_FT p_T          S_FF p_F   through the rows, with F's unknowns alone
 *     (S p)_T = S_FT' p_F + S_TT p_T         S_FT       dense, R_F x T, counted once
 *
 * A step then costs what two effects cost and R_F T more, instead of a gather and a scatter a row
 * and small factor.  It takes 4 bytes a row for F's reduced unknowns by themselves.
 */
#ifndef FRGI_FE_BORDERED_H
#define FRGI_FE_BORDERED_H

#include "fe/fe_cg.h"

#pragma GCC visibility push(hidden)

typedef struct {
    fe_rows lean;     /* the rows with F alone: borrows everything but `index` */
    int64_t first;    /* F's first reduced unknown; it has lean.n_reduced */
    int64_t width;    /* T; 0: the design has no such form, or it does not pay */
    int32_t *level;   /* T: reduced unknown of each small level */
    double *coupling; /* n_reduced x T: S_lT (F's rows are read) */
    double *block22;  /* T x T: S_TT */
    double *sums;     /* pieces x T x FE_HOST_LANES */
} fe_bordered;

/** Leaves width 0 where the form does not apply.  b must be zeroed before. */
FRG_MUST_USE frg_status frgi_fe_bordered_create(fe_bordered *b, frg_context *ctx, const fe_rows *g);
/** y <- S p, low as in frgi_fe_apply; p as the steps `ops` take it, of elements of `size` bytes. */
void frgi_fe_bordered_apply(const fe_bordered *b, const fe_reduced_ops *ops, const fe_row_work *w,
                            int threads, int lanes, bool low, size_t size, const void *p,
                            double *y);
size_t frgi_fe_bordered_bytes(const fe_bordered *b);
void frgi_fe_bordered_destroy(fe_bordered *b, frg_context *ctx);

#pragma GCC visibility pop
#endif
