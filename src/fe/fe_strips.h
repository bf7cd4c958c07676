/* fe_strips.h - the border of the Schur complement: the dense rows of the levels of small factors.
 *
 * The levels of small factors (years, say) meet almost every other level.  With t_u the counts of
 * an eliminated level over the T levels of all small factors, c_u those over the sparse ones
 * (weighted, N_u in all), e and f the sparse and the small coefficients of a row,
 *
 *     strip = sum over rows of w e f'  -  sum_u c_u t_u' / N_u          n_coef x T
 *     block = sum over rows of w f f'  -  sum_u t_u t_u' / N_u          T x T, its diagonal level_weight - t_u^2 / N_u
 *
 * Rows 0 .. n_coef-1 are the sparse levels' strips; the border's own block is kept apart.  It costs a pass over the
 * rows.  Sums are kept a chunk of eliminated levels and added in the order of the chunks, so that
 * threads change no bit.
 */
#ifndef FRGI_FE_STRIPS_H
#define FRGI_FE_STRIPS_H

#include "fe/fe_rows.h"

#pragma GCC visibility push(hidden)

/** Which remaining factors are sparse and which form the border; positions in the row's
 *  coefficients. */
typedef struct {
    const fe_rows *g;
    int n_sparse, n_small;
    int sparse[64], small[64];
    int64_t width; /* T: levels of the border */
    int64_t small_offset
        [64]; /* of a small factor's levels within the strip, less their first coefficient */
} fe_split;

typedef struct {
    double *strip; /* n_coef x T */
    double *block; /* T x T, in the strip's memory */
} fe_strips;

/** Levels and first coefficient of remaining factor r (0 .. n_remaining-1). */
static inline int64_t fe_remaining_levels(const fe_rows *g, int r)
{
    return g->factor[r < g->elim_factor ? r : r + 1].levels;
}

static inline int64_t fe_remaining_first(const fe_rows *g, int r)
{
    return g->factor[r < g->elim_factor ? r : r + 1].first;
}

/** Where the level of small factor q in a row with these coefficients sits in the strip. */
static inline int64_t fe_small_level(const fe_split *s, const int32_t *index, int q)
{
    return index[s->small[q]] + s->small_offset[q];
}

fe_split frgi_fe_split_factors(const fe_rows *g);
/** Where a border coefficient sits in the strip, or -1 for a sparse one. */
int64_t frgi_fe_strip_place(const fe_split *s, int32_t level);
/** *out: the border's coefficients, in the order of the strip. */
FRG_MUST_USE frg_status frgi_fe_strips_levels(frg_context *ctx, const fe_split *s, int32_t **out);
/** Strips and block of all eliminated levels.  only_few: they are NULL where some chunk has many
 *  patterns. */
FRG_MUST_USE frg_status frgi_fe_strips_gather(fe_strips *out, frg_context *ctx, const fe_split *s,
                                              bool only_few);

#pragma GCC visibility pop
#endif
