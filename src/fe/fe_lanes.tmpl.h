/* fe_lanes.tmpl.h - a vector of LANES doubles: element l of a row-major array of LANES columns.
 *
 * Text parameters: LANES, vec (LANES doubles), mask (LANES int64), FN(name).
 */

INLINE vec FN(zero)(void)
{
    return (vec){0};
}

INLINE vec FN(at)(const double *a, int64_t l)
{
    vec v;
    memcpy(&v, a + l * LANES, sizeof v);
    return v;
}

INLINE void FN(put)(double *a, int64_t l, vec v)
{
    memcpy(a + l * LANES, &v, sizeof v);
}

INLINE void FN(spill)(double *to, vec v)
{
    memcpy(to, &v, sizeof v);
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

/** Does a vector of coefficients outgrow the nearer caches? */
INLINE bool FN(is_far)(const fe_rows *g)
{
    return g->n_coef * LANES * (int64_t)sizeof(double) > FE_NEAR_BYTES;
}
