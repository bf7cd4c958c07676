/* fe_lanes.tmpl.h - all templates at one width, for both types of columns and search directions, on
 * a vector of LANES doubles: element l of a row-major array of LANES columns.  Of a vector of two
 * the second lane is not used where LANES is 1 (fe_cpu.c).
 *
 * Template parameters: LANES, vec (LANES doubles), svec (LANES floats), mask (LANES int64),
 * FN(name).
 */

INLINE vec FN(zero)(void)
{
    return (vec){0};
}

#define elem     double
#define values   vec
#define LN(name) FN(name)
#include "fe/fe_pairs.tmpl.h"
#undef elem
#undef values
#undef LN
#define elem     float
#define values   svec
#define LN(name) FN(low_##name)
#include "fe/fe_pairs.tmpl.h"
#undef elem
#undef values
#undef LN

/** to[l] = the sums of level l over all chunks, begin <= l < end */
static void FN(add_pairs)(const fe_rows *g, int64_t begin, int64_t end, const double *pairs,
                          double *to)
{
    for (int64_t l = begin; l < end; l++) {
        FN(put)(to, l, FN(total)(g, pairs, l));
    }
}

INLINE void FN(spill)(double *to, vec v)
{
    FN(put)(to, 0, v);
}

/* By bit masks: a comparison of vectors is all ones or all zeros in each lane. */
INLINE vec FN(larger)(vec a, vec b)
{
    const mask above = a > b;
    return (vec)(((mask)a & above) | ((mask)b & ~above));
}

INLINE vec FN(absolute)(vec a)
{
    return (vec)((mask)a & INT64_MAX);
}

INLINE bool FN(any_larger)(vec a, vec b)
{
    const mask above = a > b;
    int64_t any = 0;
    for (int k = 0; k < LANES; k++) {
        any |= above[k];
    }
    return any != 0;
}

/** Do the pairs of all levels outgrow the nearer caches? */
INLINE bool FN(exceeds_cache)(const fe_rows *g)
{
    return 2 * g->n_reduced * LANES * (int64_t)sizeof(double) > FE_NEAR_BYTES;
}

#define real  double
#define preal double
#define SUF   f64
#include "fe/fe_cg.tmpl.h"
#include "fe/fe_rows.tmpl.h"
#undef real
#undef preal
#undef SUF
#define real  float
#define preal float
#define SUF   f32
#include "fe/fe_cg.tmpl.h"
#include "fe/fe_rows.tmpl.h"
#undef real
#undef preal
#undef SUF
