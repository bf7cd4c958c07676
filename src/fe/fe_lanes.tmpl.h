/* fe_lanes.tmpl.h - a vector of LANES doubles: element l of a row-major array of LANES columns.
 *
 * A pass that reads a coefficient and adds to a sum of the same level keeps both side by side in `lines`,
 * R x 2 x LANES: one line of a cache comes and goes for a row's level, not two.
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

INLINE void FN(open_line)(double *lines, int64_t l, vec value, vec sum)
{
    FN(put)(lines, 2 * l, value);
    FN(put)(lines, 2 * l + 1, sum);
}

INLINE vec FN(value)(const double *lines, int64_t l)
{
    return FN(at)(lines, 2 * l);
}

INLINE void FN(add)(double *lines, int64_t l, vec v)
{
    FN(put)(lines, 2 * l + 1, FN(at)(lines, 2 * l + 1) + v);
}

/** to[l] = the sums of level l, chunk after chunk, begin <= l < end */
static void FN(add_lines)(const fe_rows *g, int64_t begin, int64_t end, const double *lines,
                          double *to)
{
    for (int64_t l = begin; l < end; l++) {
        vec sum = FN(at)(lines, 2 * l + 1);
        for (int64_t k = 1; k < g->n_chunks; k++) {
            sum += FN(at)(lines, 2 * (k * g->n_coef + l) + 1);
        }
        FN(put)(to, l, sum);
    }
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

/** Do the lines of all levels outgrow the nearer caches? */
INLINE bool FN(is_far)(const fe_rows *g)
{
    return 2 * g->n_coef * LANES * (int64_t)sizeof(double) > FE_NEAR_BYTES;
}
