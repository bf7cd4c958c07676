/* fe_lanes.tmpl.h - a vector of LANES doubles, and the coefficient passes that do not touch columns.
 *
 *     apply   per unit:  t = sum w (D_r a) / N_u;   one rest factor:   partial[l] -= w t   (N a is added later)
 *                                                   several:           partial[l] += w (D_r a - t)
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

INLINE void FN(apply_body)(const fe_rows *g, int chunk, const double *a, double *partial,
                           const int weighted, const int rests_known)
{
    const int rests = rests_known ? rests_known : g->n_rest;
    const double *weight = weighted ? g->weight : NULL;
    for (int64_t u = g->chunk_unit[chunk]; u < g->chunk_unit[chunk + 1]; u++) {
        const int64_t begin = g->unit_start[u], end = g->unit_start[u + 1];
        vec s = FN(zero)();
        for (int64_t i = begin; i < end; i++) {
            for (int q = 0; q < rests; q++) {
                const vec v = FN(at)(a, g->index[i * rests + q]);
                s += weight ? weight[i] * v : v;
            }
        }
        const vec mean = s * g->unit_inverse[u];
        for (int64_t i = begin; i < end; i++) {
            const int32_t *index = g->index + i * rests;
            if (rests_known == 1) {
                FN(put)
                (partial, index[0], FN(at)(partial, index[0]) - (weight ? weight[i] * mean : mean));
                continue;
            }
            vec v = FN(zero)() - mean;
            for (int q = 0; q < rests; q++) {
                v += FN(at)(a, index[q]);
            }
            v = weight ? weight[i] * v : v;
            for (int q = 0; q < rests; q++) {
                FN(put)(partial, index[q], FN(at)(partial, index[q]) + v);
            }
        }
    }
}

static void FN(apply)(const fe_rows *g, int chunk, const double *a, double *partial)
{
    if (g->n_rest == 1) {
        if (g->weight) {
            FN(apply_body)(g, chunk, a, partial, 1, 1);
        } else {
            FN(apply_body)(g, chunk, a, partial, 0, 1);
        }
    } else if (g->weight) {
        FN(apply_body)(g, chunk, a, partial, 1, 0);
    } else if (g->n_rest == 2) {
        FN(apply_body)(g, chunk, a, partial, 0, 2);
    } else {
        FN(apply_body)(g, chunk, a, partial, 0, 0);
    }
}

/* ---- conjugate gradients, one pass each over coefficients begin .. end-1 ---- */

static void FN(dot)(int64_t begin, int64_t end, const double *p, const double *q, double *sum)
{
    vec s = FN(zero)();
    for (int64_t l = begin; l < end; l++) {
        s += FN(at)(p, l) * FN(at)(q, l);
    }
    FN(spill)(sum, s);
}

static void FN(update)(int64_t begin, int64_t end, const double *alpha, const double *p,
                       const double *q, const double *d, const double *level_inverse, double *x,
                       double *r, double *sums)
{
    const vec step = FN(at)(alpha, 0);
    vec rho = FN(zero)(), gradient = FN(zero)(), top = FN(zero)();
    for (int64_t l = begin; l < end; l++) {
        FN(put)(x, l, FN(at)(x, l) + step * FN(at)(p, l));
        const vec left = FN(at)(r, l) - step * FN(at)(q, l);
        FN(put)(r, l, left);
        const vec mean = left * level_inverse[l];
        rho += left * (left * d[l]);
        gradient += left * mean;
        top = FN(larger)(top, FN(absolute)(mean));
    }
    FN(spill)(sums + FE_SUM_RHO * LANES, rho);
    FN(spill)(sums + FE_SUM_GRADIENT * LANES, gradient);
    FN(spill)(sums + FE_SUM_TOP * LANES, top);
}

static void FN(direction)(int64_t begin, int64_t end, const double *beta, const double *d,
                          const double *r, double *p)
{
    const vec keep = FN(at)(beta, 0);
    for (int64_t l = begin; l < end; l++) {
        const vec z = d ? FN(at)(r, l) * d[l] : FN(at)(r, l);
        FN(put)(p, l, z + keep * FN(at)(p, l));
    }
}

static void FN(spmv)(int64_t begin, int64_t end, const int64_t *starts, const int32_t *columns,
                     const double *values, const double *a, double *y)
{
    for (int64_t i = begin; i < end; i++) {
        vec s = FN(zero)();
        for (int64_t j = starts[i]; j < starts[i + 1]; j++) {
            s += values[j] * FN(at)(a, columns[j]);
        }
        FN(put)(y, i, s);
    }
}
