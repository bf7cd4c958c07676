/* fe_rows.tmpl.h - the passes over the rows; included once for each column type and number of
 * lanes.
 *
 *     rhs        each u:  m = sum w x / N_u;              partial[l] += w (x - m)
 *     residual   each u:  z = x - sum_l a[l],  m = sum w z / N_u,  r = z - m, sum[l] += w r
 *
 * x is taken as the difference to the eliminated level's first row: values of 1e9 that differ by 1
 * then lose nothing, and where the first row is far from the others, so is the eliminated level's
 * mean.
 *
 * One row is one vector of LANES doubles: sums are double whatever `real` is.  The second loop over
 * its rows reads what the first has left in the L1 cache, so x comes from memory once; z of the
 * first FE_KEPT_ROWS rows of an eliminated level is kept there.
 *
 * Columns come from memory as long streams, and the reduced unknowns of a row as lines that are
 * anywhere: both are asked for some rows ahead, the latter where a vector of reduced unknowns is
 * larger than FE_NEAR_BYTES.  Columns that no cache holds are written past the caches
 * (fe_stream.h).
 *
 * Template parameters: real, LANES, vec (LANES doubles), FN(name) for the lanes, RN(name) for the
 * column type as well.  The bodies are inlined with constant arguments: plain (no weights, caller's
 * order), known_remaining (1, or 0 for n_remaining as stored), live (columns in use, 0 for
 * x->live), adjacent (columns side by side in memory).
 */

INLINE vec RN(load)(const fe_block *x, int64_t row, const int live, const int adjacent)
{
    const real *p = (const real *)(const void *)x->base + row * x->row;
#if LANES == 4 && VECTOR_BYTES >= 32
    if (adjacent && live == 3 && sizeof(real) == sizeof(double)) {
        return (vec)_mm256_maskload_pd((const double *)(const void *)p,
                                       (__m256i)(mask){-1, -1, -1, 0});
    }
#endif
    vec v = FN(zero)();
    for (int k = 0; k < (live ? live : x->live); k++) {
        v[k] = (double)p[adjacent ? k : k * x->column];
    }
    return v;
}

INLINE void RN(store)(const fe_block *out, int64_t row, vec v, const int live, const int adjacent)
{
    real *p = (real *)(void *)out->base + row * out->row;
    for (int k = 0; k < (live ? live : out->live); k++) {
        p[adjacent ? k : k * out->column] = (real)v[k];
    }
}

/** The next row of a stream. */
INLINE void RN(push)(fe_stream *s, vec v, const int live)
{
    real *p = (real *)(void *)(s->bytes + s->held);
    for (int k = 0; k < live; k++) {
        p[k] = (real)v[k];
    }
    s->held += live * (int64_t)sizeof(real);
    if (s->held >= FE_STREAM_LINES * FE_LINE) {
        stream_lines(s);
    }
}

/** Are the rows of out written past the caches?  Only where they lie one behind the other, and x
 *  elsewhere. */
INLINE bool RN(streams)(const fe_rows *g, const fe_block *x, const fe_block *out, const int live,
                        const int adjacent)
{
    return live && adjacent && out->row == live && out->base != x->base &&
           g->n * live * (int64_t)sizeof(real) > FE_STREAM_BYTES;
}

/** The address of a row's first column; no pointer, since a row ahead may lie behind the array. */
INLINE const void *RN(address)(const fe_block *x, int64_t row)
{
    return (const void *)((uintptr_t)x->base + (uintptr_t)(row * x->row) * sizeof(real));
}

/** Fetches a row ahead of x, which will be read, and of out, which will be written. */
INLINE void RN(fetch_row)(const fe_block *x, const fe_block *out, const uint32_t *order, int64_t i)
{
    const int64_t row = order ? order[i + FE_ROWS_AHEAD] : i + FE_STREAM_AHEAD / LANES;
    __builtin_prefetch(RN(address)(x, row), 0);
    if (out) {
        __builtin_prefetch(RN(address)(out, row), 1);
    }
}

/** Fetches the reduced unknowns of row i + FE_ROWS_AHEAD. */
INLINE void RN(fetch_levels)(const int32_t *index, int remaining, const double *pairs,
                             const int paired)
{
    for (int q = 0; q < remaining; q++) {
        const int64_t l = index[FE_ROWS_AHEAD * remaining + q];
        __builtin_prefetch(pairs + l * (paired ? 2 : 1) * LANES, 1);
    }
}

/** sum over the row's reduced unknowns of their values */
INLINE vec RN(gather)(const double *pairs, const int32_t *index, int remaining)
{
    vec v = FN(value)(pairs, index[0]);
    for (int q = 1; q < remaining; q++) {
        v += FN(value)(pairs, index[q]);
    }
    return v;
}

INLINE void RN(scatter)(double *partial, const int32_t *index, int remaining, vec v)
{
    for (int q = 0; q < remaining; q++) {
        FN(put)(partial, index[q], FN(at)(partial, index[q]) + v);
    }
}

INLINE void RN(rhs_body)(const fe_rows *g, fe_elim_range of, const fe_block *x, double *partial,
                         fe_moments *m, const int plain, const int known_remaining, const int live,
                         const int adjacent)
{
    const int remaining = known_remaining ? known_remaining : g->n_remaining;
    const uint32_t *order = plain ? NULL : g->order;
    const double *weight = plain ? NULL : g->weight;
    const int64_t first = of.first, last = of.end;
    const int64_t first_row = g->elim_start[first];
    const vec shift = m->rows > 0
                          ? FN(at)(m->shift, 0)
                          : RN(load)(x, order ? order[first_row] : first_row, live, adjacent);
    vec sum = FN(at)(m->sum, 0), square = FN(at)(m->square, 0), within = FN(at)(m->within, 0),
        max_abs = FN(at)(m->max_abs, 0);
    double total_weight = m->weight[0];
    const int32_t *const all = g->index;
    const int64_t *const start = g->elim_start;
    const double *const inverses = g->elim_inverse;
    const bool prefetch = FN(exceeds_cache)(g);

    for (int64_t u = first; u < last; u++) {
        const int64_t begin = start[u], end = start[u + 1];
        const vec base = RN(load)(x, order ? order[begin] : begin, live, adjacent);
        vec s = FN(zero)();
        fe_fetch_numbers(all, begin, end, remaining);
        for (int64_t i = begin; i < end; i++) {
            const vec v = RN(load)(x, order ? order[i] : i, live, adjacent), d = v - base;
            RN(fetch_row)(x, NULL, order, i);
            if (prefetch) {
                RN(fetch_levels)(all + i * remaining, remaining, partial, 0);
            }
            s += weight ? weight[i] * d : d;
            max_abs = FN(larger)(max_abs, FN(absolute)(v));
        }
        const double inverse = inverses[u];
        const vec mean = s * inverse;
        vec deviation = FN(zero)();
        for (int64_t i = begin; i < end; i++) {
            const vec d = RN(load)(x, order ? order[i] : i, live, adjacent) - base - mean;
            const vec wd = weight ? weight[i] * d : d;
            deviation += wd * d;
            RN(scatter)(partial, all + i * remaining, remaining, wd);
        }
        const double n_u = inverse > 0 ? 1 / inverse : 0;
        const vec c = base - shift + mean;
        total_weight += n_u;
        sum += n_u * c;
        within += deviation;
        square += deviation + n_u * c * c;
    }
    m->rows += start[last] - first_row;
    FN(spill)(m->shift, shift);
    FN(spill)(m->sum, sum);
    FN(spill)(m->square, square);
    FN(spill)(m->within, within);
    FN(spill)(m->max_abs, max_abs);
    for (int k = 0; k < LANES; k++) {
        m->weight[k] = total_weight;
    }
}

/** x - D_r a of one row, less the eliminated level's first row of x. */
INLINE vec RN(less_effects)(const fe_block *x, const uint32_t *order, int64_t i, vec base,
                            const double *pairs, const int32_t *all, int remaining, const int live,
                            const int adjacent)
{
    const vec z = RN(load)(x, order ? order[i] : i, live, adjacent) - base;
    return remaining ? z - RN(gather)(pairs, all + i * remaining, remaining) : z;
}

INLINE void RN(residual_body)(const fe_rows *g, fe_elim_range of, const fe_block *in,
                              const fe_block *to, double *pairs, double *elim_effect,
                              fe_elim_audit *audit, const int plain, const int known_remaining,
                              const int live, const int adjacent)
{
    const int remaining = known_remaining ? known_remaining : g->n_remaining;
    const uint32_t *order = plain ? NULL : g->order;
    const double *weight = plain ? NULL : g->weight;
    const fe_block block_in = *in, block_out = *to, *const x = &block_in, *const out = &block_out;
    vec square = FN(at)(audit->square, 0), gradient = FN(at)(audit->gradient, 0),
        worst = FN(at)(audit->mean, 0), effect = FN(at)(audit->effect, 0);
    const int32_t *const all = g->index;
    const int64_t *const start = g->elim_start;
    const double *const inverses = g->elim_inverse;
    const bool prefetch = FN(exceeds_cache)(g);
    const int64_t first = of.first, last = of.end;
    vec kept[FE_KEPT_ROWS];
    fe_stream stream;
    const bool streams = RN(streams)(g, x, out, live, adjacent);
    if (streams) {
        stream_open(&stream, out->base + start[first] * out->row * (int64_t)sizeof(real));
    }
    for (int k = 0; k < LANES && audit->rows == 0; k++) {
        audit->worst[k] = first + g->at.elim;
    }
    audit->rows += start[last] - start[first];

    for (int64_t u = first; u < last; u++) {
        const int64_t begin = start[u], end = start[u + 1];
        const int64_t keep = end - begin < FE_KEPT_ROWS ? end : begin + FE_KEPT_ROWS;
        const vec base = RN(load)(x, order ? order[begin] : begin, live, adjacent);
        vec s = FN(zero)();
        fe_fetch_numbers(all, begin, end, remaining);
        for (int64_t i = begin; i < end; i++) {
            RN(fetch_row)(x, streams ? NULL : out, order, i);
            if (prefetch) {
                RN(fetch_levels)(all + i * remaining, remaining, pairs, 1);
            }
            const vec z =
                RN(less_effects)(x, order, i, base, pairs, all, remaining, live, adjacent);
            if (i < keep) {
                kept[i - begin] = z;
            }
            s += weight ? weight[i] * z : z;
        }
        const double inverse = inverses[u];
        const vec mean = s * inverse;
        vec left = FN(zero)();
        for (int64_t i = begin; i < end; i++) {
            const vec z = i < keep ? kept[i - begin]
                                   : RN(less_effects)(x, order, i, base, pairs, all, remaining,
                                                      live, adjacent);
            const vec r = z - mean;
            if (streams) {
                RN(push)(&stream, r, live);
            } else {
                RN(store)(out, order ? order[i] : i, r, live, adjacent);
            }
            const vec wr = weight ? weight[i] * r : r;
            left += wr;
            square += wr * r;
            for (int q = 0; q < remaining; q++) {
                FN(add)(pairs, all[i * remaining + q], wr);
            }
        }
        FN(put)(elim_effect, u, base + mean);
        effect = FN(larger)(effect, FN(absolute)(base + mean));
        const vec level_mean = FN(absolute)(left * inverse);
        gradient += left * left * inverse;
        if (FN(any_larger)(level_mean, worst)) {
            for (int k = 0; k < LANES; k++) {
                audit->worst[k] = level_mean[k] > worst[k] ? u + g->at.elim : audit->worst[k];
            }
            worst = FN(larger)(worst, level_mean);
        }
    }
    if (streams) {
        stream_close(&stream);
    }
    FN(spill)(audit->square, square);
    FN(spill)(audit->gradient, gradient);
    FN(spill)(audit->mean, worst);
    FN(spill)(audit->effect, effect);
}

/* ---- dispatch: the common layouts get constants, everything else the general text ---- */

/** Rows side by side in memory (C order) with all lanes in use or all but one; whole blocks of
 *  columns (Fortran order); whole blocks of weighted rows, or of rows in another order; the
 *  rest. */
typedef enum { RN(WHOLE), RN(ONE_IDLE), RN(COLUMNS), RN(WEIGHTED), RN(GENERAL) } RN(layout);

static RN(layout) RN(layout_of)(const fe_rows *g, const fe_block *x)
{
    if (g->order || g->weight) {
        return x->live == LANES ? RN(WEIGHTED) : RN(GENERAL);
    }
    if (x->live < LANES - 1 || x->live == 0) {
        return RN(GENERAL);
    }
    if (x->live == LANES) {
        return x->column == 1 || LANES == 1 ? RN(WHOLE) : RN(COLUMNS);
    }
    return x->column == 1 && LANES > 2 ? RN(ONE_IDLE) : RN(GENERAL);
}

/** Calls body with the number of remaining factors as a constant where it is 1 or 2. */
#define BY_REMAINING(body, ...)                                                                    \
    if (g->n_remaining == 1) {                                                                     \
        RN(body)(__VA_ARGS__, 1, 1, LIVE, 1);                                                      \
    } else if (g->n_remaining == 2) {                                                              \
        RN(body)(__VA_ARGS__, 1, 2, LIVE, 1);                                                      \
    } else {                                                                                       \
        RN(body)(__VA_ARGS__, 1, 0, LIVE, 1);                                                      \
    }

static void RN(rhs)(const fe_rows *g, fe_elim_range of, const fe_block *x, double *partial,
                    fe_moments *m)
{
    switch (RN(layout_of)(g, x)) {
    case RN(WHOLE):
#define LIVE LANES
        BY_REMAINING(rhs_body, g, of, x, partial, m)
        return;
#undef LIVE
#if LANES > 2
    case RN(ONE_IDLE):
#define LIVE (LANES - 1)
        BY_REMAINING(rhs_body, g, of, x, partial, m)
        return;
#undef LIVE
#endif
#if LANES > 1
    case RN(COLUMNS):
        RN(rhs_body)(g, of, x, partial, m, 1, 0, LANES, 0);
        return;
#endif
    case RN(WEIGHTED):
        if (g->n_remaining == 2) {
            RN(rhs_body)(g, of, x, partial, m, 0, 2, LANES, 0);
        } else {
            RN(rhs_body)(g, of, x, partial, m, 0, 0, LANES, 0);
        }
        return;
    default:
        RN(rhs_body)(g, of, x, partial, m, 0, 0, 0, 0);
    }
}

static void RN(residual)(const fe_rows *g, fe_elim_range of, const fe_block *x, const fe_block *out,
                         const double *a, double *pairs, double *elim_effect, fe_elim_audit *audit)
{
    const RN(layout) in = RN(layout_of)(g, x);
    for (int64_t l = 0; l < g->n_reduced && audit->rows == 0; l++) {
        FN(open_pair)(pairs, l, FN(at)(a, l), FN(zero)());
    }
    switch (in == RN(layout_of)(g, out) ? in : RN(GENERAL)) {
    case RN(WHOLE):
#define LIVE LANES
        BY_REMAINING(residual_body, g, of, x, out, pairs, elim_effect, audit)
        return;
#undef LIVE
#if LANES > 2
    case RN(ONE_IDLE):
#define LIVE (LANES - 1)
        BY_REMAINING(residual_body, g, of, x, out, pairs, elim_effect, audit)
        return;
#undef LIVE
#endif
#if LANES > 1
    case RN(COLUMNS):
        RN(residual_body)(g, of, x, out, pairs, elim_effect, audit, 1, 0, LANES, 0);
        return;
#endif
    case RN(WEIGHTED):
        if (g->n_remaining == 2) {
            RN(residual_body)(g, of, x, out, pairs, elim_effect, audit, 0, 2, LANES, 0);
        } else {
            RN(residual_body)(g, of, x, out, pairs, elim_effect, audit, 0, 0, LANES, 0);
        }
        return;
    default:
        RN(residual_body)(g, of, x, out, pairs, elim_effect, audit, 0, 0, 0, 0);
    }
}
#undef BY_REMAINING
