/* fe_passes.c - the passes of fe_rows.h over all chunks, or over those of a window.
 *
 * Chunks run side by side, each into its own copy of the vector of reduced unknowns; the copies are
 * added by one tree.
 */
#include "fe/fe_rows.h"

#include <string.h>

#include "core/tree_sum.h"

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(fe_row_ops[2][FE_LANE_KINDS], frgi_fe_row_table);
#pragma GCC visibility pop

const fe_row_ops *frgi_fe_row_ops(frgi_isa isa, int f32, int lanes)
{
    static const fe_row_ops(*const tables[ISA_COUNT])[FE_LANE_KINDS] =
        EACH_LEVEL(frgi_fe_row_table);
    return &tables[isa][f32][__builtin_ctz((unsigned)lanes)];
}

int frgi_fe_host_lanes(frgi_isa isa, int columns)
{
    int lanes = 1;
    while (lanes < columns && lanes < FE_HOST_LANES && frgi_fe_row_ops(isa, 0, 2 * lanes)->rhs) {
        lanes *= 2;
    }
    return lanes;
}

void frgi_fe_row_work_layout(frgi_arena *a, const fe_rows *g, int lanes, fe_row_work *w)
{
    w->partial =
        TAKE(a, double, frgi_mul((size_t)g->n_chunks * (size_t)g->n_reduced, (size_t)lanes * 2));
    w->moments = TAKE(a, fe_moments, g->n_chunks);
    w->audit = TAKE(a, fe_elim_audit, g->n_chunks);
    w->progress = NULL;
}

/** A chunk goes by stretches of some 4 million rows, whose sums go on from each other; after each
 *  progress is reported. */
static int64_t count_stretches(const fe_rows *g, int chunk)
{
    const int64_t *const elim = g->chunk_elim + chunk;
    return 1 + (g->elim_start[elim[1]] - g->elim_start[elim[0]]) / (1 << 22);
}

/** The p-th of `count` stretches. */
static fe_elim_range stretch_of(const fe_rows *g, int chunk, int64_t p, int64_t count)
{
    const int64_t first = g->chunk_elim[chunk], levels = g->chunk_elim[chunk + 1] - first;
    return (fe_elim_range){first + levels * p / count, first + levels * (p + 1) / count};
}

static void did_stretch(const fe_rows *g, fe_elim_range of, const fe_row_work *w, int lanes)
{
    const int64_t rows = g->elim_start[of.end] - g->elim_start[of.first];
    frgi_pass_did(w->progress, rows * lanes * (int64_t)sizeof(double));
}

void frgi_fe_add_pairs(const fe_rows *g, fe_add_pairs *add, const double *pairs, int threads,
                       double *to)
{
    enum { PIECE = 512 };
    const int64_t pieces = (g->n_reduced + PIECE - 1) / PIECE;
#pragma omp parallel for num_threads(threads) schedule(static) if (g->n_chunks > 1 && pieces > 16)
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t end = (p + 1) * PIECE;
        add(g, p * PIECE, end < g->n_reduced ? end : g->n_reduced, pairs, to);
    }
}

void frgi_fe_add_chunks(const fe_rows *g, const double *partial, int threads, int64_t length,
                        double *to)
{
    enum { PIECE = 2048 };
    const int64_t pieces = (length + PIECE - 1) / PIECE;
#pragma omp parallel for num_threads(threads) schedule(static) if (g->n_chunks > 1 && pieces > 16)
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t begin = p * PIECE, end = begin + PIECE < length ? begin + PIECE : length;
        frgi_tree_rows(partial + begin, g->n_chunks, length, end - begin, to + begin);
    }
}

/** Moments of two sets of rows from the moments of each (Chan, Golub, LeVeque 1983), lane by
 *  lane. */
static void merge_moments(fe_moments *t, const fe_moments *m, int lanes)
{
    for (int k = 0; k < lanes; k++) {
        const double gap = m->shift[k] - t->shift[k];
        t->square[k] += m->square[k] + 2 * gap * m->sum[k] + gap * gap * m->weight[k];
        t->sum[k] += m->sum[k] + gap * m->weight[k];
        t->weight[k] += m->weight[k];
        t->within[k] += m->within[k];
        t->max_abs[k] = m->max_abs[k] > t->max_abs[k] ? m->max_abs[k] : t->max_abs[k];
    }
}

void frgi_fe_rhs_window(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w, int threads,
                        int lanes, const fe_block *x)
{
    const int64_t length = g->n_reduced * lanes;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (g->n_chunks > 1)
    for (int k = 0; k < g->n_chunks; k++) {
        double *const partial = w->partial + (g->at.chunk + k) * length;
        fe_moments *const m = &w->moments[g->at.chunk + k];
        if (k > 0 || !g->at.continues) {
            memset(partial, 0, (size_t)length * sizeof(double));
            memset(m, 0, sizeof *m);
        }
        const int64_t count = count_stretches(g, k);
        for (int64_t p = 0; p < count; p++) {
            const fe_elim_range of = stretch_of(g, k, p, count);
            if (of.first < of.end) {
                ops->rhs(g, of, x, partial, m);
                did_stretch(g, of, w, lanes);
            }
        }
    }
}

void frgi_fe_rhs_total(const fe_rows *g, const fe_row_work *w, int threads, int lanes, double *b,
                       fe_moments *total)
{
    frgi_fe_add_chunks(g, w->partial, threads, g->n_reduced * lanes, b);
    for (frgi_tree_pair p = {.n = g->n_chunks}; frgi_tree_next(&p);) {
        merge_moments(&w->moments[p.to], &w->moments[p.from], lanes);
    }
    *total = w->moments[0];
}

void frgi_fe_rhs(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w, int threads,
                 int lanes, const fe_block *x, double *b, fe_moments *total)
{
    frgi_fe_rhs_window(g, ops, w, threads, lanes, x);
    frgi_fe_rhs_total(g, w, threads, lanes, b, total);
}

static void merge_audits(fe_elim_audit *t, const fe_elim_audit *m, int lanes)
{
    for (int k = 0; k < lanes; k++) {
        t->square[k] += m->square[k];
        t->gradient[k] += m->gradient[k];
        t->worst[k] = m->mean[k] > t->mean[k] ? m->worst[k] : t->worst[k];
        t->mean[k] = m->mean[k] > t->mean[k] ? m->mean[k] : t->mean[k];
        t->effect[k] = m->effect[k] > t->effect[k] ? m->effect[k] : t->effect[k];
    }
}

void frgi_fe_residual_window(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w,
                             int threads, int lanes, const fe_block *x, const fe_block *out,
                             const double *a, double *elim_effect)
{
    const int64_t length = 2 * g->n_reduced * lanes;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (g->n_chunks > 1)
    for (int k = 0; k < g->n_chunks; k++) {
        fe_elim_audit *const audit = &w->audit[g->at.chunk + k];
        if (k > 0 || !g->at.continues) {
            memset(audit, 0, sizeof *audit);
        }
        const int64_t count = count_stretches(g, k);
        for (int64_t p = 0; p < count; p++) { /* one without rows opens the chunk's pairs */
            const fe_elim_range of = stretch_of(g, k, p, count);
            ops->residual(g, of, x, out, a, w->partial + (g->at.chunk + k) * length, elim_effect,
                          audit);
            did_stretch(g, of, w, lanes);
        }
    }
}

void frgi_fe_residual_total(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w,
                            int threads, int lanes, double *s, fe_elim_audit *total)
{
    frgi_fe_add_pairs(g, ops->add_pairs, w->partial, threads, s);
    for (frgi_tree_pair p = {.n = g->n_chunks}; frgi_tree_next(&p);) {
        merge_audits(&w->audit[p.to], &w->audit[p.from], lanes);
    }
    *total = w->audit[0];
}

void frgi_fe_residual(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w, int threads,
                      int lanes, const fe_block *x, const fe_block *out, const double *a, double *s,
                      double *elim_effect, fe_elim_audit *total)
{
    frgi_fe_residual_window(g, ops, w, threads, lanes, x, out, a, elim_effect);
    frgi_fe_residual_total(g, ops, w, threads, lanes, s, total);
}
