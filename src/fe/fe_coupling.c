/* fe_coupling.c - see fe_coupling.h.
 *
 * Eliminated levels one after the other often show the same small levels (all years, say).  Such a
 * run, a *pattern*, has one t and one N, so that the second sums of the coupling block are -(rows
 * of l) t' / N: a row costs one addition, and the rest is done when the pattern ends.  Where
 * patterns are many, every row subtracts w t' / N_u.
 */
#include "fe/fe_coupling.h"

#include <math.h>
#include <string.h>

enum {
    FREE_CHANGES = 2,
    BORDER_LEVELS = 256,
    MAX_COPIES_BYTES = 64 << 20,
    COUNTS_AHEAD = 96 /* rows whose counts are fetched: one takes no longer than an addition */
};

/* ---- which factors --------------------------------------------------------------------------- */

/** Small factors, as long as a larger one is left to be sparse, and the coupling block takes no
 *  more than the rows. */
static bool in_border(const fe_rows *g, int r)
{
    const int64_t levels = fe_remaining_levels(g, r);
    if (levels > BORDER_LEVELS || 4 * levels > g->n_reduced ||
        levels * g->n_reduced > 2 * g->n + 4096) {
        return false;
    }
    int64_t small = 0;
    for (int q = 0; q < g->n_remaining; q++) {
        small += fe_remaining_levels(g, q) <= levels ? fe_remaining_levels(g, q) : 0;
    }
    return small <= BORDER_LEVELS && 2 * small <= g->n_reduced;
}

fe_split frgi_fe_split_factors(const fe_rows *g)
{
    fe_split s = {.g = g};
    for (int r = 0; r < g->n_remaining; r++) {
        if (in_border(g, r)) {
            s.small_offset[s.n_small] = s.width - fe_remaining_first(g, r);
            s.small[s.n_small++] = r;
            s.width += fe_remaining_levels(g, r);
        } else {
            s.sparse[s.n_sparse++] = r;
        }
    }
    return s;
}

int64_t frgi_fe_border_place(const fe_split *s, int32_t level)
{
    for (int q = 0; q < s->n_small; q++) {
        const int64_t first = fe_remaining_first(s->g, s->small[q]);
        if (level >= first && level < first + fe_remaining_levels(s->g, s->small[q])) {
            return level + s->small_offset[q];
        }
    }
    return -1;
}

/* ---- patterns of small levels ---------------------------------------------------------------- */

/** The pattern of the current eliminated levels: their small levels row by row, and as counts. */
typedef struct {
    double *t;           /* T: counts t_u */
    const int32_t *rows; /* of the eliminated level that set it */
    int64_t n;
    double inverse; /* sum of 1 / N_u over the eliminated levels that shared it */
    double
        *before; /* n_reduced: coupling_rows when the pattern was set; NULL: updated row by row */
} pattern;

/** Do the rows of eliminated level u show the small levels of the pattern?  Weights make every
 *  eliminated level its own. */
static inline bool same_pattern(const fe_split *s, int64_t u, const pattern *p)
{
    const fe_rows *g = s->g;
    const int64_t begin = g->elim_start[u], n = g->elim_start[u + 1] - begin;
    const int32_t *index = g->index + begin * g->n_remaining;
    if (n != p->n || g->weight) {
        return false;
    }
    int32_t differ = 0;
    for (int q = 0; q < s->n_small; q++) {
        for (int64_t i = s->small[q]; i < n * g->n_remaining; i += g->n_remaining) {
            differ |= p->rows[i] ^ index[i];
        }
    }
    return differ == 0;
}

static void set_pattern(const fe_split *s, int64_t u, pattern *p)
{
    const fe_rows *g = s->g;
    p->rows = g->index + g->elim_start[u] * g->n_remaining;
    p->n = g->elim_start[u + 1] - g->elim_start[u];
    p->inverse = 0;
    memset(p->t, 0, (size_t)s->width * sizeof *p->t);
    for (int64_t i = 0; i < p->n; i++) {
        for (int q = 0; q < s->n_small; q++) {
            p->t[fe_small_level(s, p->rows + i * g->n_remaining, q)] +=
                g->weight ? g->weight[g->elim_start[u] + i] : 1;
        }
    }
}

/** Sum of row l of the coupling block over the levels of the first small factor: in the course of a
 *  pattern it grows by the rows of level l. */
static double coupling_rows(const fe_split *s, const fe_coupling *b, int64_t l)
{
    const double *row = b->coupling + l * s->width;
    double sum = 0;
    for (int64_t j = 0; j < fe_remaining_levels(s->g, s->small[0]); j++) {
        sum += row[j];
    }
    return sum;
}

/** Takes - sum_u t_u t_u' / N_u into the (2,2) block and - sum_u c_u t_u' / N_u into the coupling
 *  block.  Eliminated levels of one pattern have equal N_u, so that the latter is - (rows of the
 *  level) t' / N_u. */
static void close_pattern(const fe_split *s, pattern *p, fe_coupling *b)
{
    const int64_t t = s->width;
    for (int64_t i = 0; i < t; i++) {
        for (int64_t j = 0; p->t[i] != 0 && j < t; j++) {
            b->block22[i * t + j] -= p->inverse * p->t[i] * p->t[j];
        }
    }
    for (int64_t l = 0; p->before && p->n > 0 && l < s->g->n_reduced; l++) {
        const double rows = rint(coupling_rows(s, b, l) - p->before[l]);
        if (rows == 0) {
            continue;
        }
        const double c = rows / (double)p->n;
        for (int64_t j = 0; j < t; j++) {
            b->coupling[l * t + j] -= c * p->t[j];
        }
        p->before[l] = coupling_rows(s, b, l);
    }
}

/** May the pattern change once more at eliminated level u, after `changes` of them?  Each takes a
 *  pass over the coupling block, paid for by n_reduced rows. */
static inline bool may_change(const fe_rows *g, int64_t first, int64_t u, int64_t changes)
{
    return changes < FREE_CHANGES + (g->elim_start[u] - g->elim_start[first]) / g->n_reduced;
}

/** One row of eliminated level u: + w where a small level meets another level, - w t_u / N_u in the
 *  coupling block. */
static void add_row(const fe_split *s, const int32_t *index, double w, double share,
                    const pattern *p, fe_coupling *b)
{
    const int64_t t = s->width;
    for (int q = 0; q < s->n_sparse; q++) {
        const int32_t l = index[s->sparse[q]];
        double *restrict row = b->coupling + l * t;
        for (int64_t j = 0; !p->before && j < t; j++) {
            row[j] -= share * p->t[j];
        }
        for (int k = 0; k < s->n_small; k++) {
            row[fe_small_level(s, index, k)] += w;
        }
    }
    for (int q = 0; q < s->n_small; q++) {
        for (int k = 0; k < s->n_small; k++) {
            if (k != q) {
                b->block22[fe_small_level(s, index, q) * t + fe_small_level(s, index, k)] += w;
            }
        }
    }
}

/** The same for all rows of an eliminated level where patterns are few and there is one small
 *  factor. */
static inline void count_rows(const fe_split *s, int64_t u, fe_coupling *b)
{
    const fe_rows *g = s->g;
    double *restrict coupling = b->coupling + s->small_offset[0];
    const int64_t remaining = g->n_remaining, t = s->width;
    for (int q = 0; q < s->n_sparse; q++) {
        const int32_t *index = g->index + g->elim_start[u] * remaining;
        const int sparse = s->sparse[q], small = s->small[0];
        const int64_t end = g->elim_start[u + 1],
                      ahead = end + COUNTS_AHEAD <= g->n ? COUNTS_AHEAD : 0;
        fe_fetch_numbers(g->index, g->elim_start[u], end, g->n_remaining);
        for (int64_t i = g->elim_start[u]; i < end; i++, index += remaining) {
            __builtin_prefetch(coupling + index[ahead * remaining + sparse] * t +
                                   index[ahead * remaining + small],
                               1);
            coupling[index[sparse] * t + index[small]] += 1;
        }
    }
}

/** The share of eliminated levels first .. last-1 in both blocks, which are zeros before.  few: by
 *  patterns, of rows without weights, which are counted; false where these turn out to be many, b
 *  is of no use then. */
static bool gather_chunk(const fe_split *s, int64_t first, int64_t last, bool few, double *t,
                         double *before, fe_coupling *b)
{
    const fe_rows *g = s->g;
    pattern p = {.t = t, .n = -1, .before = few ? before : NULL};
    int64_t changes = 0;
    for (int64_t u = first; u < last; u++) {
        if (!same_pattern(s, u, &p)) {
            if (few && !may_change(g, first, u, changes++)) {
                return false;
            }
            close_pattern(s, &p, b);
            set_pattern(s, u, &p);
        }
        p.inverse += g->elim_inverse[u];
        if (few && s->n_small == 1) {
            count_rows(s, u, b);
            continue;
        }
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            const double w = g->weight ? g->weight[i] : 1;
            add_row(s, g->index + i * g->n_remaining, w, w * g->elim_inverse[u], &p, b);
        }
    }
    close_pattern(s, &p, b);
    return true;
}

/** Both blocks, of all eliminated levels: a copy a chunk where copies are small, added in chunk
 *  order.  only_few: they are NULL where some chunk has many patterns. */
frg_status frgi_fe_coupling_gather(fe_coupling *out, frg_context *ctx, const fe_split *s,
                                   bool only_few)
{
    const fe_rows *g = s->g;
    const int64_t t = s->width, coupling = g->n_reduced * t, size = coupling + t * t;
    const size_t bytes = frgi_mul((size_t)(size * g->n_chunks), sizeof(double));
    const int64_t copies = bytes <= MAX_COPIES_BYTES ? g->n_chunks : 1;
    double *sums = NULL, *pattern_work = NULL;
    bool *few = NULL, all_few = true;
    frg_status status;
    *out = (fe_coupling){0};
    TRY_TO(done, NEW(ctx, &few, copies, "border patterns"));
    TRY_TO(done, NEW0(ctx, &sums, size * copies, "border of the Schur complement"));
    TRY_TO(done, NEW0(ctx, &pattern_work, (t + g->n_reduced) * copies, "border patterns"));
#pragma omp parallel for num_threads(frg_threads(ctx)) schedule(static, 1) if (copies > 1)
    for (int64_t k = 0; k < copies; k++) {
        fe_coupling b = {sums + k * size, sums + k * size + coupling};
        double *work = pattern_work + k * (t + g->n_reduced);
        const int64_t first = copies > 1 ? g->chunk_elim[k] : 0;
        const int64_t last = copies > 1 ? g->chunk_elim[k + 1] : g->n_elim;
        few[k] = !g->weight && gather_chunk(s, first, last, true, work, work + t, &b);
        if (!few[k] && !only_few) {
            memset(b.coupling, 0, (size_t)size * sizeof(double));
            gather_chunk(s, first, last, false, work, work + t, &b);
        }
    }
    for (int64_t k = 0; k < copies; k++) {
        all_few = all_few && few[k];
    }
    if (only_few && !all_few) {
        DROP(ctx, &sums);
        goto done;
    }
    for (int64_t k = 1; k < copies; k++) {
        for (int64_t j = 0; j < size; j++) {
            sums[j] += sums[k * size + j];
        }
    }
    for (int q = 0; q < s->n_small; q++) { /* a small level meets itself on each of its rows */
        for (int64_t l = 0; l < fe_remaining_levels(g, s->small[q]); l++) {
            const int64_t level = fe_remaining_first(g, s->small[q]) + l,
                          place = level + s->small_offset[q];
            sums[coupling + place * t + place] += g->level_weight[level];
        }
    }
    *out = (fe_coupling){sums, sums + coupling};
done:
    if (status < 0) {
        DROP(ctx, &sums);
    }
    DROP(ctx, &pattern_work);
    DROP(ctx, &few);
    return status;
}

frg_status frgi_fe_border_levels(frg_context *ctx, const fe_split *s, int32_t **out)
{
    int32_t *border;
    TRY(NEW(ctx, &border, s->width, "border"));
    for (int q = 0; q < s->n_small; q++) {
        for (int64_t l = 0; l < fe_remaining_levels(s->g, s->small[q]); l++) {
            const int64_t level = fe_remaining_first(s->g, s->small[q]) + l;
            border[level + s->small_offset[q]] = (int32_t)level;
        }
    }
    *out = border;
    return FRG_OK;
}
