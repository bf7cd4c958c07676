/* fe_pairs.tmpl.h - a reduced unknown's value and its sum side by side in `pairs`, R x 2 x LANES:
 * one line of a cache comes and goes for a row's level, not two.
 *
 *     single      each u:  t = sum w p / N_u;  sum[l] -= w t          one remaining factor
 *     total       the sums of a level, over all chunks
 *
 * In double, and in float32 where a step needs no more: half the bytes to gather from.
 *
 * Template parameters: elem, values (LANES of them), LN(name).
 */

INLINE values LN(at)(const elem *a, int64_t l)
{
#if LANES == 1
    return (values){a[l]};
#else
    values v;
    memcpy(&v, a + l * LANES, sizeof v);
    return v;
#endif
}

INLINE void LN(put)(elem *a, int64_t l, values v)
{
#if LANES == 1
    a[l] = v[0];
#else
    memcpy(a + l * LANES, &v, sizeof v);
#endif
}

INLINE void LN(open_pair)(elem *pairs, int64_t l, values value, values sum)
{
    LN(put)(pairs, 2 * l, value);
    LN(put)(pairs, 2 * l + 1, sum);
}

INLINE values LN(value)(const elem *pairs, int64_t l)
{
    return LN(at)(pairs, 2 * l);
}

INLINE void LN(add)(elem *pairs, int64_t l, values v)
{
    LN(put)(pairs, 2 * l + 1, LN(at)(pairs, 2 * l + 1) + v);
}

/** w times the value of row i's level, whose pair FE_ROWS_AHEAD rows on is prefetched where
 *  `prefetch`. */
INLINE values LN(gather)(const elem *pairs, const int32_t *index, const double *weight, int64_t i,
                         bool prefetch)
{
    if (prefetch) {
        __builtin_prefetch(pairs + (int64_t)index[i + FE_ROWS_AHEAD] * 2 * LANES, 1);
    }
    const values v = LN(value)(pairs, index[i]);
    return weight ? (elem)weight[i] * v : v;
}

/** The sum of row i's level -= w t */
INLINE void LN(take_off)(elem *pairs, const int32_t *index, const double *weight, int64_t i,
                         values t)
{
    LN(add)(pairs, index[i], -(weight ? (elem)weight[i] * t : t));
}

/** The sums of an eliminated level are taken from while the values of the next one are gathered. */
INLINE void LN(single)(const fe_rows *g, int chunk, elem *pairs, const int weighted, bool prefetch)
{
    const double *weight = weighted ? g->weight : NULL;
    const int32_t *const all = g->index;
    const int64_t *const start = g->elim_start;
    const double *const inverse = g->elim_inverse;
    const int64_t first = g->chunk_elim[chunk], last = g->chunk_elim[chunk + 1];
    int64_t at = start[first], begin = at; /* rows of the eliminated level before: at .. begin-1 */
    values mean = {0};
    for (int64_t u = first; u < last; u++) {
        const int64_t end = start[u + 1];
        const int64_t both = end - begin < begin - at ? end - begin : begin - at;
        values s = {0};
        fe_fetch_numbers(all, begin, end, 1);
#pragma GCC unroll 2
        for (int64_t i = 0; i < both; i++) {
            s += LN(gather)(pairs, all, weight, begin + i, prefetch);
            LN(take_off)(pairs, all, weight, at + i, mean);
        }
        for (int64_t i = begin + both; i < end; i++) {
            s += LN(gather)(pairs, all, weight, i, prefetch);
        }
        for (at += both; at < begin; at++) {
            LN(take_off)(pairs, all, weight, at, mean);
        }
        mean = s * (elem)inverse[u];
        begin = end;
    }
    for (; at < begin; at++) {
        LN(take_off)(pairs, all, weight, at, mean);
    }
}

/** The sums of level l over all chunks, by the tree of core/tree_sum.h; as the number of chunks is
 *  a power of two, the last one completes it. */
INLINE vec LN(total)(const fe_rows *g, const elem *pairs, int64_t l)
{
    vec whole[FE_TREE_LEVELS]; /* subtrees of 1, 2, 4, ... chunks that wait for as many others */
    vec sum = FN(zero)();
    for (int64_t k = 0; k < g->n_chunks; k++) {
        int level = 0;
        sum = __builtin_convertvector(LN(at)(pairs, 2 * (k * g->n_reduced + l) + 1), vec);
        for (; k >> level & 1; level++) {
            sum = whole[level] + sum;
        }
        whole[level] = sum;
    }
    return sum;
}
