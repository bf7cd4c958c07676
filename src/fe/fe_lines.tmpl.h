/* fe_lines.tmpl.h - a coefficient's value and its sum side by side in `lines`, R x 2 x LANES: one line of a cache
 * comes and goes for a row's level, not two.
 *
 *     single      per unit:  t = sum w p / N_u;  sum[l] -= w t          one rest factor
 *
 * In double, and in float32 where a step needs no more: half the bytes to gather from.
 *
 * Text parameters: elem, values (LANES of them), LN(name).
 */

INLINE values LN(at)(const elem *a, int64_t l)
{
    values v;
    memcpy(&v, a + l * LANES, sizeof v);
    return v;
}

INLINE void LN(put)(elem *a, int64_t l, values v)
{
    memcpy(a + l * LANES, &v, sizeof v);
}

INLINE void LN(open_line)(elem *lines, int64_t l, values value, values sum)
{
    LN(put)(lines, 2 * l, value);
    LN(put)(lines, 2 * l + 1, sum);
}

INLINE values LN(value)(const elem *lines, int64_t l)
{
    return LN(at)(lines, 2 * l);
}

INLINE void LN(add)(elem *lines, int64_t l, values v)
{
    LN(put)(lines, 2 * l + 1, LN(at)(lines, 2 * l + 1) + v);
}

/** The sums of a unit are taken from while the values of the next one are gathered. */
INLINE void LN(single)(const fe_rows *g, int chunk, elem *lines, const int weighted, bool far)
{
    const double *weight = weighted ? g->weight : NULL;
    const int32_t *const all = g->index;
    const int64_t *const start = g->unit_start;
    const double *const inverse = g->unit_inverse;
    const int64_t first = g->chunk_unit[chunk], last = g->chunk_unit[chunk + 1];
    int64_t at = start[first], before = at; /* rows of the unit before: at .. before-1 */
    values mean = {0};
    for (int64_t u = first; u < last; u++) {
        const int64_t begin = before, end = start[u + 1];
        values s = {0};
        fe_fetch_numbers(all, begin, end, 1);
        for (int64_t i = begin; i < end; i++) {
            if (far) {
                __builtin_prefetch(lines + (int64_t)all[i + FE_ROWS_AHEAD] * 2 * LANES, 1);
            }
            const values v = LN(value)(lines, all[i]);
            s += weight ? (elem)weight[i] * v : v;
            if (at < before) {
                LN(add)(lines, all[at], -(weight ? (elem)weight[at] * mean : mean));
                at++;
            }
        }
        for (; at < before; at++) {
            LN(add)(lines, all[at], -(weight ? (elem)weight[at] * mean : mean));
        }
        mean = s * (elem)inverse[u];
        before = end;
    }
    for (; at < before; at++) {
        LN(add)(lines, all[at], -(weight ? (elem)weight[at] * mean : mean));
    }
}
