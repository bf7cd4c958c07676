/* fe_cg.tmpl.h - the steps of conjugate gradients on S; included for each type of the search
 * direction.
 *
 *     apply       each u:  t = sum w (D_r p) / N_u;  several other factors: sum[l] += w (D_r p - t)
 *                 one remaining factor:  sum[l] -= w t,  and N p once, with the first chunk
 *     apply_low the latter in float32 but for N p, which add_low adds with the sums of the chunks
 *     apply_coupling  B_12 p_T and B_12' p_F where all factors but one are small
 *     apply_block22   B_22 p_T
 *     spmv        q = S p with the assembled S
 *     advance     x += alpha p
 *     dot         p'q
 *     update      x += alpha p,  r -= alpha q,  and the sums of the stopping test
 *     direction   p = M^-1 r + beta p
 *
 * apply copies p into each chunk's pairs (fe_lanes.tmpl.h), where it is gathered at random beside
 * the sums.  In float32 (dtype mixed), whatever p is rounded to is the direction that x, q and
 * alpha are computed with, in double: the recurrence residual stays the true one, and only
 * conjugacy is lost to 1e-7, which costs a few steps and no accuracy.
 *
 * Template parameters: preal (type of p), LANES, vec, FN(name) for the lanes, CN(name) for the type
 * as well.
 */

INLINE vec CN(take)(const void *p, int64_t l)
{
    const preal *from = (const preal *)p + l * LANES;
    vec v = FN(zero)();
    for (int k = 0; k < LANES; k++) {
        v[k] = (double)from[k];
    }
    return v;
}

INLINE void CN(give)(void *p, int64_t l, vec v)
{
    preal *to = (preal *)p + l * LANES;
    for (int k = 0; k < LANES; k++) {
        to[k] = (preal)v[k];
    }
}

/** Fetches the pairs of the row FE_ROWS_AHEAD further. */
INLINE void CN(fetch_ahead)(const int32_t *index, int remaining, const double *pairs)
{
    for (int q = 0; q < remaining; q++) {
        __builtin_prefetch(pairs + (int64_t)index[FE_ROWS_AHEAD * remaining + q] * 2 * LANES, 1);
    }
}

INLINE void CN(apply_body)(const fe_rows *g, int chunk, double *pairs, const int weighted,
                           const int known_remaining)
{
    const int remaining = known_remaining ? known_remaining : g->n_remaining;
    const double *weight = weighted ? g->weight : NULL;
    const int32_t *const all = g->index;
    const int64_t *const start = g->elim_start;
    const double *const inverse = g->elim_inverse;
    const int64_t last = g->chunk_elim[chunk + 1];
    const bool prefetch = FN(exceeds_cache)(g);
    for (int64_t u = g->chunk_elim[chunk]; u < last; u++) {
        const int64_t begin = start[u], end = start[u + 1];
        vec s = FN(zero)();
        fe_fetch_numbers(all, begin, end, remaining);
        for (int64_t i = begin; i < end; i++) {
            if (prefetch) {
                CN(fetch_ahead)(all + i * remaining, remaining, pairs);
            }
            for (int q = 0; q < remaining; q++) {
                const vec v = FN(value)(pairs, all[i * remaining + q]);
                s += weight ? weight[i] * v : v;
            }
        }
        const vec mean = s * inverse[u];
        for (int64_t i = begin; i < end; i++) {
            const int32_t *index = all + i * remaining;
            vec v = FN(zero)() - mean;
            for (int q = 0; q < remaining; q++) {
                v += FN(value)(pairs, index[q]);
            }
            v = weight ? weight[i] * v : v;
            for (int q = 0; q < remaining; q++) {
                FN(add)(pairs, index[q], v);
            }
        }
    }
}

static void CN(apply)(const fe_rows *g, int chunk, const void *p, double *pairs)
{
    const bool diagonal = g->n_remaining == 1 && g->at.chunk + chunk == 0;
    const int64_t open = chunk == 0 && g->at.continues ? 0 : g->n_reduced;
    for (int64_t l = 0; l < open; l++) {
        const vec v = CN(take)(p, l);
        FN(open_pair)(pairs, l, v, diagonal ? v * g->level_weight[l] : FN(zero)());
    }
    if (g->n_remaining == 1) {
        if (g->weight) {
            FN(single)(g, chunk, pairs, 1, FN(exceeds_cache)(g));
        } else {
            FN(single)(g, chunk, pairs, 0, FN(exceeds_cache)(g));
        }
    } else if (g->weight && g->n_remaining == 2) {
        CN(apply_body)(g, chunk, pairs, 1, 2);
    } else if (g->weight) {
        CN(apply_body)(g, chunk, pairs, 1, 0);
    } else if (g->n_remaining == 2) {
        CN(apply_body)(g, chunk, pairs, 0, 2);
    } else {
        CN(apply_body)(g, chunk, pairs, 0, 0);
    }
}

static void CN(apply_low)(const fe_rows *g, int chunk, const void *p, float *pairs)
{
    const int64_t open = chunk == 0 && g->at.continues ? 0 : g->n_reduced;
    for (int64_t l = 0; l < open; l++) {
        FN(low_open_pair)(pairs, l, __builtin_convertvector(CN(take)(p, l), svec), (svec){0});
    }
    FN(low_single)(g, chunk, pairs, 0, true);
}

static void CN(add_low)(const fe_rows *g, int64_t begin, int64_t end, const void *p,
                        const float *pairs, double *y)
{
    for (int64_t l = begin; l < end; l++) {
        FN(put)(y, l, CN(take)(p, l) * g->level_weight[l] + FN(low_total)(g, pairs, l));
    }
}

/* ---- conjugate gradients, one pass each over reduced unknowns begin .. end-1 ---- */

static void CN(dot)(int64_t begin, int64_t end, const void *p, const double *q, double *sum)
{
    vec s = FN(zero)();
    for (int64_t l = begin; l < end; l++) {
        s += CN(take)(p, l) * FN(at)(q, l);
    }
    FN(spill)(sum, s);
}

static void CN(update)(int64_t begin, int64_t end, const double *alpha, const void *p,
                       const double *q, const double *d, const double *level_inverse, double *x,
                       double *r, double *sums)
{
    const vec step = FN(at)(alpha, 0);
    vec rho = FN(zero)(), gradient = FN(zero)(), max_mean = FN(zero)();
    for (int64_t l = begin; l < end; l++) {
        FN(put)(x, l, FN(at)(x, l) + step * CN(take)(p, l));
        const vec left = FN(at)(r, l) - step * FN(at)(q, l);
        FN(put)(r, l, left);
        const vec mean = left * level_inverse[l];
        rho += left * (left * d[l]);
        gradient += left * mean;
        max_mean = FN(larger)(max_mean, FN(absolute)(mean));
    }
    FN(spill)(sums + FE_SUM_RHO * LANES, rho);
    FN(spill)(sums + FE_SUM_GRADIENT * LANES, gradient);
    FN(spill)(sums + FE_SUM_MAX * LANES, max_mean);
}

static void CN(advance)(int64_t begin, int64_t end, const double *alpha, const void *p, double *x)
{
    const vec step = FN(at)(alpha, 0);
    for (int64_t l = begin; l < end; l++) {
        FN(put)(x, l, FN(at)(x, l) + step * CN(take)(p, l));
    }
}

static void CN(direction)(int64_t begin, int64_t end, const double *beta, const double *d,
                          const double *r, void *p)
{
    const vec keep = FN(at)(beta, 0);
    for (int64_t l = begin; l < end; l++) {
        const vec z = d ? FN(at)(r, l) * d[l] : FN(at)(r, l);
        CN(give)(p, l, z + keep * CN(take)(p, l));
    }
}

static void CN(apply_coupling)(int64_t begin, int64_t end, int64_t t, const double *b12,
                               const int32_t *level, const void *p, const void *p_large,
                               double *y_large, double *sum)
{
    for (int64_t j = 0; j < t; j++) {
        FN(put)(sum, j, FN(zero)());
    }
    for (int64_t l = begin; l < end; l++) {
        const double *row = b12 + l * t;
        const vec mine = CN(take)(p_large, l);
        vec y = FN(at)(y_large, l);
        for (int64_t j = 0; j < t; j++) {
            y += row[j] * CN(take)(p, level[j]);
            FN(put)(sum, j, FN(at)(sum, j) + row[j] * mine);
        }
        FN(put)(y_large, l, y);
    }
}

static void CN(apply_block22)(int64_t t, const double *b22, const int32_t *level, const void *p,
                              const double *sum, double *y)
{
    for (int64_t i = 0; i < t; i++) {
        vec v = FN(at)(sum, i);
        for (int64_t j = 0; j < t; j++) {
            v += b22[i * t + j] * CN(take)(p, level[j]);
        }
        FN(put)(y, level[i], v);
    }
}

static void CN(spmv)(int64_t begin, int64_t end, const int64_t *starts, const int32_t *columns,
                     const double *values, const void *p, double *y)
{
    for (int64_t i = begin; i < end; i++) {
        vec s = FN(zero)();
        for (int64_t j = starts[i]; j < starts[i + 1]; j++) {
            s += values[j] * CN(take)(p, columns[j]);
        }
        FN(put)(y, i, s);
    }
}
