/* fe_bordered.c - see fe_bordered.h.
 *
 * The dense part runs over pieces of F's levels: each adds its share of S_FT p_T to y_F and keeps
 * its own share of (S p)_T, and the shares are added by the tree of the pieces.
 */
#include "fe/fe_bordered.h"

#include <string.h>

#include "core/tree_sum.h"
#include "fe/fe_coupling.h"
#include "fe/fe_runs.h"

enum { PIECE = 1024 };

static int64_t count_pieces(const fe_bordered *b)
{
    return (b->lean.n_reduced + PIECE - 1) / PIECE;
}

static frg_status take_large(fe_bordered *b, frg_context *ctx, const fe_rows *whole, int large)
{
    const int32_t first = (int32_t)b->first;
    fe_runs runs = frgi_fe_runs(whole, ctx);
    for (const fe_rows *w; (w = frgi_fe_runs_next(&runs));) {
        const fe_rows *const g = w;
        int32_t *const index = b->lean.index + w->at.row;
#pragma omp parallel for num_threads(frg_threads(ctx)) schedule(static) if (whole->n_chunks > 1)
        for (int64_t i = 0; i < g->n; i++) {
            index[i] = g->index[i * g->n_remaining + large] - first;
        }
    }
    memset(b->lean.index + whole->n, 0, FE_ROWS_AHEAD * sizeof *b->lean.index);
    return frgi_fe_runs_close(&runs);
}

frg_status frgi_fe_bordered_create(fe_bordered *b, frg_context *ctx, const fe_rows *g)
{
    const fe_split s = frgi_fe_split_factors(g);
    if (s.n_sparse != 1 || s.n_small == 0 || g->weighted) {
        return FRG_OK;
    }
    fe_coupling sums;
    frg_status status;
    status = frgi_fe_coupling_gather(&sums, ctx, &s, true);
    if (status != FRG_OK || !sums.coupling) {
        return status;
    }
    const int large = s.sparse[0];
    b->width = s.width;
    b->coupling = sums.coupling;
    b->block22 = sums.block22;
    TRY_TO(failed, frgi_fe_border_levels(ctx, &s, &b->level));
    const fe_factor *f = fe_remaining(g, large);
    b->lean = *g;
    b->lean.n_remaining = 1;
    b->lean.n_reduced = f->levels;
    b->lean.level_weight = g->level_weight + f->first;
    b->lean.level_inverse = g->level_inverse + f->first;
    b->lean.index = NULL;
    b->first = f->first;
    TRY_TO(failed, NEW(ctx, &b->lean.index, g->n + FE_ROWS_AHEAD, "reduced indices"));
    TRY_TO(failed, NEW(ctx, &b->sums, count_pieces(b) * b->width * FE_HOST_LANES, "border"));
    status = take_large(b, ctx, g, large);
    if (status == FRG_OK) {
        return FRG_OK;
    }
failed:
    frgi_fe_bordered_destroy(b, ctx);
    return status;
}

void frgi_fe_bordered_apply(const fe_bordered *b, const fe_reduced_ops *ops, const fe_row_work *w,
                            int threads, int lanes, bool low, size_t size, const void *p, double *y)
{
    const int64_t t = b->width, pieces = count_pieces(b), n = b->lean.n_reduced;
    const void *p_large = (const char *)p + (size_t)(b->first * lanes) * size;
    double *y_large = y + b->first * lanes;
    frgi_fe_apply(&b->lean, ops, w, threads, lanes, low, p_large, y_large);
#pragma omp parallel for num_threads(threads) schedule(static) if (n * t > 1 << 16)
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t begin = i * PIECE, end = begin + PIECE < n ? begin + PIECE : n;
        ops->apply_coupling(begin, end, t, b->coupling + b->first * t, b->level, p, p_large,
                            y_large, b->sums + i * t * lanes);
    }
    frgi_tree_rows(b->sums, pieces, t * lanes, t * lanes, b->sums);
    ops->apply_block22(t, b->block22, b->level, p, b->sums, y);
}

size_t frgi_fe_bordered_bytes(const fe_bordered *b)
{
    return b->width == 0 ? 0
                         : (size_t)(b->lean.n * 4 + (b->first + b->lean.n_reduced) * b->width * 8);
}

void frgi_fe_bordered_destroy(fe_bordered *b, frg_context *ctx)
{
    DROP(ctx, &b->level);
    DROP(ctx, &b->coupling);
    DROP(ctx, &b->sums);
    if (b->width > 0) {
        DROP(ctx, &b->lean.index);
    }
    *b = (fe_bordered){0};
}
