/* fe_coupling.h - the coupling block and the (2,2) block of the bordered Schur complement; the
 * border has the levels of small factors.
 *
 * The levels of small factors (years, say) meet almost every other level.  With t_u the counts of
 * an eliminated level over the T levels of all small factors, c_u those over the sparse ones
 * (weighted, N_u in all), e and f the sparse and the small unknowns of a row,
 *
 *     B_12 = sum over rows of w e f' - sum_u c_u t_u' / N_u      n_reduced x T
 *     B_22 = sum over rows of w f f' - sum_u t_u t_u' / N_u      T x T
 *
 * Rows 0 .. n_reduced-1 of the coupling block belong to the sparse levels; the (2,2) block is the
 * border's own.  It costs a pass over the rows.  Sums are kept a chunk of eliminated levels and
 * added by the tree of the chunks, so that threads change no bit.
 */
#ifndef FRGI_FE_COUPLING_H
#define FRGI_FE_COUPLING_H

#include "fe/fe_rows.h"

#pragma GCC visibility push(hidden)

/** Which remaining factors are sparse and which form the border; positions in the row's
 *  reduced unknowns. */
typedef struct {
    const fe_rows *g;
    int n_sparse, n_small;
    int sparse[FE_MAX_FACTORS], small[FE_MAX_FACTORS];
    int64_t width; /* T: levels of the border */
    /** Of a small factor: its first level's place in the border less its first reduced unknown. */
    int64_t small_offset[FE_MAX_FACTORS];
} fe_split;

typedef struct {
    double *coupling; /* n_reduced x T */
    double *block22;  /* T x T, in the same memory */
} fe_coupling;

/** The position in the border of the level of small factor q, in a row with these unknowns. */
static inline int64_t fe_small_level(const fe_split *s, const int32_t *index, int q)
{
    return index[s->small[q]] + s->small_offset[q];
}

fe_split frgi_fe_split_factors(const fe_rows *g);
/** The position of a reduced unknown in the border, or -1 for a sparse one. */
int64_t frgi_fe_border_place(const fe_split *s, int32_t level);
/** *out: the border's reduced unknowns, in the order of the columns of the coupling block. */
FRG_MUST_USE frg_status frgi_fe_border_levels(frg_context *ctx, const fe_split *s, int32_t **out);
/** Both blocks, of all eliminated levels.  only_few: they are NULL where some chunk has many
 *  patterns. */
FRG_MUST_USE frg_status frgi_fe_coupling_gather(fe_coupling *out, frg_context *ctx,
                                                const fe_split *s, bool only_few);

#pragma GCC visibility pop
#endif
