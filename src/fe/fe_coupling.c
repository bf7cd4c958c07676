/* fe_coupling.c - see fe_coupling.h.
 *
 * Eliminated levels one after the other often show the same small levels (all years, say).  Such a
 * run, a *pattern*, has one t and one N, so that the second sums of the coupling block are -(rows
 * of l) t' / N: a row costs one addition, and the rest is done when the pattern ends.  Where
 * patterns are many, every row subtracts w t' / N_u.
 */
#include "fe/fe_coupling.h"

#include "core/tree_sum.h"
#include "fe/fe_runs.h"

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
    const int64_t levels = fe_remaining(g, r)->levels;
    if (levels > BORDER_LEVELS || 4 * levels > g->n_reduced ||
        levels * g->n_reduced > 2 * g->n + 4096) {
        return false;
    }
    int64_t small = 0;
    for (int q = 0; q < g->n_remaining; q++) {
        small += fe_remaining(g, q)->levels <= levels ? fe_remaining(g, q)->levels : 0;
    }
    return small <= BORDER_LEVELS && 2 * small <= g->n_reduced;
}

fe_split frgi_fe_split_factors(const fe_rows *g)
{
    fe_split s = {.g = g};
    for (int r = 0; r < g->n_remaining; r++) {
        if (in_border(g, r)) {
            s.small_offset[s.n_small] = s.width - fe_remaining(g, r)->first;
            s.small[s.n_small++] = r;
            s.width += fe_remaining(g, r)->levels;
        } else {
            s.sparse[s.n_sparse++] = r;
        }
    }
    return s;
}

int64_t frgi_fe_border_place(const fe_split *s, int32_t level)
{
    for (int q = 0; q < s->n_small; q++) {
        const int64_t first = fe_remaining(s->g, s->small[q])->first;
        if (level >= first && level < first + fe_remaining(s->g, s->small[q])->levels) {
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
        *before;   /* n_reduced: coupling_rows when the pattern was set; NULL: updated row by row */
    int32_t *kept; /* rows, where they lay in a window that is gone; else NULL */
} pattern;

/** The sums of a run of eliminated levels, as far as it has been read. */
typedef struct {
    fe_coupling sums;
    pattern pattern;
    bool few; /* by patterns, of rows without weights, which are counted; false once they turned
                 out to be many: the sums are of no use then */
    int64_t changes; /* of the pattern */
    int64_t rows;    /* in front of the window */
} gathering;

/** Do the rows of eliminated level u show the small levels of the pattern?  Weights make every
 *  eliminated level its own. */
static inline bool same_pattern(const fe_split *s, const fe_rows *g, int64_t u, const pattern *p)
{
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

static void set_pattern(const fe_split *s, const fe_rows *g, int64_t u, pattern *p)
{
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
    for (int64_t j = 0; j < fe_remaining(s->g, s->small[0])->levels; j++) {
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

/** May the pattern change once more, after `changes` of them and `rows` rows?  Each takes a pass
 *  over the coupling block, paid for by n_reduced rows. */
static inline bool may_change(const fe_rows *g, int64_t rows, int64_t changes)
{
    return changes < FREE_CHANGES + rows / g->n_reduced;
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
static inline void count_rows(const fe_split *s, const fe_rows *g, int64_t u, fe_coupling *b)
{
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

/** Adds the eliminated levels first .. last-1 of a window to both blocks. */
static void gather_levels(const fe_split *s, const fe_rows *g, int64_t first, int64_t last,
                          gathering *a)
{
    pattern p = a->pattern;
    fe_coupling b = a->sums;
    for (int64_t u = first; u < last; u++) {
        if (!same_pattern(s, g, u, &p)) {
            const int64_t rows = a->rows + g->elim_start[u] - g->elim_start[first];
            if (a->few && !may_change(g, rows, a->changes++)) {
                a->few = false;
                return;
            }
            close_pattern(s, &p, &b);
            set_pattern(s, g, u, &p);
        }
        p.inverse += g->elim_inverse[u];
        if (a->few && s->n_small == 1) {
            count_rows(s, g, u, &b);
            continue;
        }
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            const double w = g->weight ? g->weight[i] : 1;
            add_row(s, g->index + i * g->n_remaining, w, w * g->elim_inverse[u], &p, &b);
        }
    }
    a->rows += g->elim_start[last] - g->elim_start[first];
    a->pattern = p;
}

/** Copies the pattern's rows, whose window is about to go. */
static frg_status keep_pattern(frg_context *ctx, const fe_rows *g, pattern *p)
{
    const int64_t count = p->n * g->n_remaining;
    if (p->n < 0 || p->rows == p->kept) {
        return FRG_OK;
    }
    TRY(GROW(ctx, &p->kept, count, "border pattern"));
    memcpy(p->kept, p->rows, (size_t)count * sizeof *p->kept);
    p->rows = p->kept;
    return FRG_OK;
}

/** What both blocks are gathered into: a copy a chunk, or one. */
typedef struct {
    const fe_split *s;
    int64_t n, size; /* copies, and doubles of each */
    gathering *of;   /* n */
    double *work;    /* n x (T + n_reduced) */
} copies;

/** Empties the copies that have no patterns (few: all copies, for patterns). */
static void begin_copies(const copies *c, double *sums, bool few)
{
    const int64_t t = c->s->width, reduced = c->s->g->n_reduced;
    for (int64_t k = 0; k < c->n; k++) {
        gathering *const a = &c->of[k];
        double *const mine = sums + k * c->size, *const work = c->work + k * (t + reduced);
        if (!few && a->few) {
            continue;
        }
        memset(mine, 0, (size_t)c->size * sizeof(double));
        *a = (gathering){.sums = {mine, mine + reduced * t},
                         .pattern = {.t = work,
                                     .n = -1,
                                     .before = few ? work + t : NULL,
                                     .kept = a->pattern.kept},
                         .few = few};
    }
}

/** Gathers all rows into the copies that are `few`, a chunk into its own. */
static frg_status gather_pass(const copies *c, frg_context *ctx, bool few)
{
    const fe_rows *const g = c->s->g;
    frg_status status = FRG_OK;
    fe_runs runs = frgi_fe_runs(g, ctx);
    for (const fe_rows *w; status == FRG_OK && (w = frgi_fe_runs_next(&runs));) {
        const int64_t here = c->n > 1 ? w->n_chunks : 1;
        gathering *const of = c->of + (c->n > 1 ? w->at.chunk : 0);
#pragma omp parallel for num_threads(frg_threads(ctx)) schedule(static, 1) if (here > 1)
        for (int64_t k = 0; k < here; k++) {
            const int64_t first = c->n > 1 ? w->chunk_elim[k] : 0;
            const int64_t last = c->n > 1 ? w->chunk_elim[k + 1] : w->n_elim;
            if (of[k].few == few) {
                gather_levels(c->s, w, first, last, &of[k]);
            }
        }
        if (g->source) {
            status = keep_pattern(ctx, g, &of[here - 1].pattern);
        }
    }
    const frg_status read = frgi_fe_runs_close(&runs);
    status = status == FRG_OK ? read : status;
#pragma omp parallel for num_threads(frg_threads(ctx)) schedule(static, 1) if (c->n > 1)
    for (int64_t k = 0; k < c->n; k++) {
        if (c->of[k].few == few) {
            close_pattern(c->s, &c->of[k].pattern, &c->of[k].sums);
        }
    }
    return status;
}

/** By patterns, then row by row where some have many; *all_few: none has. */
static frg_status gather_copies(const copies *c, frg_context *ctx, double *sums, bool only_few,
                                bool *all_few)
{
    *all_few = !c->s->g->weighted;
    begin_copies(c, sums, *all_few);
    frg_status status = *all_few ? gather_pass(c, ctx, true) : FRG_OK;
    for (int64_t k = 0; k < c->n; k++) {
        *all_few = *all_few && c->of[k].few;
    }
    if (status == FRG_OK && !*all_few && !only_few) {
        begin_copies(c, sums, false);
        status = gather_pass(c, ctx, false);
    }
    return status;
}

/* A copy a chunk where copies are small, added by the tree. */
frg_status frgi_fe_coupling_gather(fe_coupling *out, frg_context *ctx, const fe_split *s,
                                   bool only_few)
{
    const fe_rows *g = s->g;
    const int64_t t = s->width, coupling = g->n_reduced * t, size = coupling + t * t;
    const size_t bytes = frgi_mul((size_t)(size * g->n_chunks), sizeof(double));
    copies c = {.s = s, .n = bytes <= MAX_COPIES_BYTES ? g->n_chunks : 1, .size = size};
    double *sums = NULL;
    bool all_few;
    frg_status status;
    *out = (fe_coupling){0};
    TRY_TO(done, NEW0(ctx, &c.of, c.n, "border patterns"));
    TRY_TO(done, NEW(ctx, &sums, size * c.n, "border of the Schur complement"));
    TRY_TO(done, NEW0(ctx, &c.work, (t + g->n_reduced) * c.n, "border patterns"));
    status = gather_copies(&c, ctx, sums, only_few, &all_few);
    if (status != FRG_OK || (only_few && !all_few)) {
        DROP(ctx, &sums);
        goto done;
    }
    frgi_tree_rows(sums, c.n, size, size, sums);
    for (int q = 0; q < s->n_small; q++) { /* a small level meets itself on each of its rows */
        for (int64_t l = 0; l < fe_remaining(g, s->small[q])->levels; l++) {
            const int64_t level = fe_remaining(g, s->small[q])->first + l,
                          place = level + s->small_offset[q];
            sums[coupling + place * t + place] += g->level_weight[level];
        }
    }
    *out = (fe_coupling){sums, sums + coupling};
done:
    for (int64_t k = 0; c.of && k < c.n; k++) {
        DROP(ctx, &c.of[k].pattern.kept);
    }
    if (status < 0) {
        DROP(ctx, &sums);
    }
    DROP(ctx, &c.work);
    DROP(ctx, &c.of);
    return status;
}

frg_status frgi_fe_border_levels(frg_context *ctx, const fe_split *s, int32_t **out)
{
    int32_t *border;
    TRY(NEW(ctx, &border, s->width, "border"));
    for (int q = 0; q < s->n_small; q++) {
        for (int64_t l = 0; l < fe_remaining(s->g, s->small[q])->levels; l++) {
            const int64_t level = fe_remaining(s->g, s->small[q])->first + l;
            border[level + s->small_offset[q]] = (int32_t)level;
        }
    }
    *out = border;
    return FRG_OK;
}
