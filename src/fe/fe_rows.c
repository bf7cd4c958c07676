/* fe_rows.c - reads codes and weights into the layout of fe_rows.h.
 *
 * Cost: two passes over the codes, one that scans and one that lays out; data that are sorted by
 * their largest factor, as panels are, keep their order and nothing but compact reduced indices is
 * stored (4 bytes a row and factor). Others are counted and sorted once (4 more bytes a row).
 */
#include "fe/fe_rows.h"

#include "fe/fe_codes.h"

#include <limits.h>
#include <math.h>
#include <omp.h>
#include <string.h>

enum {
    ROWS_PER_COPIED_LEVEL =
        32 /* a chunk's copy of the reduced unknowns pays from this many rows a level */
};

/* ---- the factors ----------------------------------------------------------------------------- */

int frgi_fe_largest_factor(const fe_factor *f, int n)
{
    int best = 0;
    for (int q = 1; q < n; q++) {
        best = f[q].levels > f[best].levels ? q : best;
    }
    return best;
}

/** Does the scan alone determine the eliminated factor?  Ascending codes have as many levels as
 *  they change, others at most as many as the largest code allows or as they change.  Returns the
 *  factor, or -1. */
static int factor_by_scan(const fe_codes *c, const fe_factor_codes *f)
{
    int64_t most = -1;
    int best = 0;
    for (int q = 0; q < c->q; q++) {
        const int64_t changes = f[q].scan.changes + 1;
        const int64_t bound = f[q].codes < changes ? f[q].codes : changes;
        best = bound > most ? q : best;
        most = bound > most ? bound : most;
    }
    return f[best].scan.descents == 0 ? best : -1;
}

/** Levels of all factors and which of these are the eliminated levels.  Where the scan determines
 *  the eliminated factor, the others are taken to have every code up to their largest, and are
 *  counted while the rows are laid out. */
static frg_status study_factors(fe_rows *g, frg_context *ctx, const fe_codes *c, fe_factor_codes *f)
{
    const int by_scan = factor_by_scan(c, f), threads = g->n < FE_SMALL_ROWS ? 1 : frg_threads(ctx);
    for (int q = 0; q < c->q; q++) {
        g->factor[q].levels = f[q].scan.changes + 1;
        if (q == by_scan || (by_scan < 0 && f[q].scan.descents == 0)) {
            continue;
        }
        if (by_scan >= 0 && !frgi_fe_codes_are_wide(c, &f[q]) && threads * f[q].codes <= c->n) {
            g->factor[q].levels = f[q].codes;
            TRY(frgi_fe_codes_open_tables(ctx, &f[q], threads));
        } else {
            TRY(frgi_fe_codes_count(ctx, c, q, &f[q], &g->factor[q]));
        }
    }
    g->elim_factor = by_scan >= 0 ? by_scan : frgi_fe_largest_factor(g->factor, g->n_factors);
    for (int q = 0; by_scan < 0 && q < c->q; q++) {
        if (q != g->elim_factor && f[q].scan.descents == 0) {
            TRY(frgi_fe_codes_count(ctx, c, q, &f[q], &g->factor[q]));
        }
    }
    return FRG_OK;
}

/* ---- the layout ------------------------------------------------------------------------------ */

static frg_status check_weights(frg_context *ctx, const frg_array *weights,
                                frgi_weight_range *range)
{
    const double *w = (const double *)(const void *)frgi_array_base(weights);
    for (int64_t i = 0; i < weights->shape[0]; i++) {
        const double v = w[i * weights->stride[0]];
        if (!(v >= 0 && isfinite(v))) {
            frgi_at(ctx, "weights, row %lld", (long long)i + 1);
            FAIL(ctx, E_WEIGHT, "row %lld has the weight %g", (long long)i + 1, v);
        }
    }
    *range = frgi_weights_study(w, weights->stride[0], weights->shape[0]);
    if (frgi_weights_apart(range)) {
        frgi_at(ctx, "weights, row %lld", (long long)range->least_at + 1);
        FAIL(ctx, E_WEIGHT,
             "row %lld has the weight %g, which vanishes beside %g, the weight of row %lld",
             (long long)range->least_at + 1, range->least, range->largest,
             (long long)range->largest_at + 1);
    }
    return FRG_OK;
}

/** What one pass over the codes fills. */
typedef struct {
    fe_rows *g;
    const fe_codes *c;
    fe_factor_codes *f;
    const fe_scan *scans; /* pieces x q */
    int64_t *
        first_elim; /* of each piece, where these levels are runs of the caller's rows; else NULL */
} layout;

/** Rows stay where they are: the runs of equal codes are the eliminated levels.  A piece's first
 *  eliminated level is known from the changes counted in the pieces before. */
static frg_status prepare_runs(const layout *b, frg_context *ctx, int64_t **first_elim)
{
    fe_rows *g = b->g;
    const int q = g->elim_factor;
    const int64_t pieces = fe_code_pieces(g->n);
    TRY(NEW(ctx, &g->elim_start, g->n_elim + 1, "starts of the eliminated levels"));
    g->elim_start[g->n_elim] = g->n;
    if (b->f[q].scan.descents > 0) {
        TRY(NEW(ctx, &g->elim_level, g->n_elim, "numbers of the eliminated levels"));
    } else if (g->n_elim < b->f[q].codes && g->n > 0) {
        TRY(NEW(ctx, &g->factor[q].label, g->n_elim, "level labels"));
    }
    TRY(NEW(ctx, first_elim, pieces, "first eliminated levels"));
    for (int64_t p = 0, u = 0; p < pieces; p++) {
        (*first_elim)[p] = u;
        u += b->scans[p * b->c->q + q].changes + (p == 0);
    }
    return FRG_OK;
}

/** ends[k]: as fe_codes.h says of its kernel */
static int64_t find_runs(const fe_codes *c, int q, int64_t begin, int64_t end, int32_t *ends)
{
    if (c->single) {
        return c->single->runs[0](fe_code_column(c, q), begin, end, 0, ends);
    }
    if (c->ops) {
        return c->ops->runs[c->q - 1]((const int32_t *)(const void *)c->base, begin, end, q, ends);
    }
    int32_t before = begin > 0 ? fe_code_at(c, begin - 1, q) : -1;
    int64_t k = 0;
    ends[0] = 0;
    for (int64_t i = begin; i < end; i++) {
        const int32_t code = fe_code_at(c, i, q);
        k += code != before;
        before = code;
        ends[k] = (int32_t)(i - begin) + 1;
    }
    return k;
}

static void take_runs(const layout *b, int64_t piece)
{
    fe_rows *g = b->g;
    const int q = g->elim_factor;
    const fe_factor_codes *f = &b->f[q];
    const int64_t begin = piece * FE_PIECE_ROWS, first = b->first_elim[piece];
    int32_t ends[FE_PIECE_ROWS + 1];
    const int64_t runs = find_runs(b->c, q, begin, fe_code_piece_end(g->n, piece), ends);
    for (int64_t k = 0; k < runs; k++) {
        g->elim_start[first + k] = begin + ends[k];
    }
    for (int64_t k = 0; g->elim_level && k < runs; k++) {
        g->elim_level[first + k] = fe_level_at(b->c, f, begin + ends[k], q);
    }
    for (int64_t k = 0; !g->elim_level && g->factor[q].label && k < runs; k++) {
        g->factor[q].label[first + k] = fe_code_at(b->c, begin + ends[k], q);
    }
}

frg_status frgi_fe_rows_open_order(fe_rows *g, frg_context *ctx)
{
    TRY(NEW(ctx, &g->order, g->n + FE_ROWS_AHEAD, "row order"));
    memset(g->order + g->n, 0, FE_ROWS_AHEAD * sizeof *g->order);
    return FRG_OK;
}

frg_status frgi_fe_rows_open_index(fe_rows *g, frg_context *ctx)
{
    TRY(NEW(ctx, &g->index, (g->n + FE_ROWS_AHEAD) * g->n_remaining, "reduced indices"));
    memset(g->index + g->n * g->n_remaining, 0,
           (size_t)(FE_ROWS_AHEAD * g->n_remaining) * sizeof *g->index);
    return FRG_OK;
}

/** A stable counting sort of the rows by eliminated level. */
static frg_status sort_rows(fe_rows *g, frg_context *ctx, const fe_codes *c,
                            const fe_factor_codes *f)
{
    const int q = g->elim_factor;
    TRY(NEW0(ctx, &g->elim_start, g->n_elim + 1, "starts of the eliminated levels"));
    TRY(frgi_fe_rows_open_order(g, ctx));
    int64_t *next = g->elim_start;
    for (int64_t i = 0; i < g->n; i++) {
        next[fe_level_at(c, f, i, q) + 1]++;
    }
    for (int64_t u = 0; u < g->n_elim; u++) {
        next[u + 1] += next[u];
    }
    for (int64_t i = 0; i < g->n; i++) {
        g->order[next[fe_level_at(c, f, i, q)]++] = (uint32_t)i;
    }
    /* next[u] has moved to the start of eliminated level u + 1 */
    memmove(g->elim_start + 1, g->elim_start, (size_t)g->n_elim * sizeof *g->elim_start);
    g->elim_start[0] = 0;
    return FRG_OK;
}

/** Reduced indices of one factor for rows begin .. end-1. */
static void fill_factor(const fe_rows *g, const fe_codes *c, const fe_factor_codes *f, int q,
                        int position, int64_t begin, int64_t end)
{
    const int32_t first = (int32_t)g->factor[q].first;
    int32_t *index = g->index + position;
    const bool as_given = !g->order && !f->narrow && !f->level;
    for (int64_t i = begin; as_given && i < end; i++) {
        index[i * g->n_remaining] = first + fe_code_at(c, i, q);
    }
    for (int64_t i = begin; !as_given && i < end; i++) {
        index[i * g->n_remaining] = first + fe_level_at(c, f, g->order ? g->order[i] : i, q);
    }
}

/** Reduced indices of all factors for rows begin .. end-1. */
static void fill_piece(const layout *b, int64_t begin, int64_t end)
{
    const fe_rows *g = b->g;
    int32_t first[FE_CODES_Q];
    bool as_given = b->c->ops && !g->order;
    for (int q = 0, position = 0; q < g->n_factors; q++) {
        as_given = as_given && (q == g->elim_factor || (!b->f[q].narrow && !b->f[q].level));
        if (as_given && q != g->elim_factor) {
            first[position++] = (int32_t)g->factor[q].first;
        }
    }
    if (as_given) {
        b->c->ops->fill[b->c->q - 1]((const int32_t *)(const void *)b->c->base, begin, end,
                                     g->elim_factor, first, g->index);
        return;
    }
    for (int q = 0, position = 0; q < g->n_factors; q++) {
        if (q != g->elim_factor) {
            fill_factor(g, b->c, &b->f[q], q, position++, begin, end);
        }
    }
}

/** The remaining factor's codes where they are its reduced indices, and the caller keeps them; NULL
 *  where these are to be filled in. */
static int32_t *lent_index(const layout *b)
{
    const fe_rows *const g = b->g;
    const int q = g->elim_factor == 0 ? 1 : 0;
    const bool lent = g->index_lent && g->n > 0 && g->n_remaining == 1 && !g->order &&
                      b->c->row == 1 && !b->f[q].narrow && !b->f[q].level;
    return lent ? (int32_t *)(uintptr_t)b->c->base + q * b->c->column : NULL;
}

static frg_status open_index(const layout *b, frg_context *ctx)
{
    fe_rows *const g = b->g;
    g->index = lent_index(b);
    g->index_lent = g->index != NULL;
    if (g->index_lent) {
        return FRG_OK;
    }
    return frgi_fe_rows_open_index(g, ctx);
}

void frgi_fe_rows_lend(fe_rows *g, frg_context *ctx, const frg_array *codes)
{
    const ptrdiff_t column = (g->elim_factor == 0 ? 1 : 0) * codes->stride[1];
    int32_t *const lent = (int32_t *)(void *)frgi_array_base(codes) + column;
    if (g->n_remaining == 1 && !g->order && codes->stride[0] == 1 &&
        memcmp(lent, g->index, (size_t)g->n * sizeof *lent) == 0) {
        DROP(ctx, &g->index);
        g->index = lent;
        g->index_lent = true;
    }
}

/** One pass over the codes, piece by piece: the eliminated levels' runs, the reduced indices,
 *  the counts that are missing. */
static void lay_rows(const layout *b, frg_context *ctx)
{
    const fe_rows *g = b->g;
    const int threads = frg_threads(ctx);
    const int64_t pieces = fe_code_pieces(g->n), bytes = g->n_factors * (int64_t)sizeof(int32_t);
    frgi_pass_begins(ctx, "fe", "rows by level", g->n * bytes);
#pragma omp parallel for num_threads(threads) schedule(static) if (g->n >= FE_SMALL_ROWS)
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t begin = p * FE_PIECE_ROWS, end = fe_code_piece_end(g->n, p);
        if (b->first_elim) {
            take_runs(b, p);
        }
        if (!g->index_lent) {
            fill_piece(b, begin, end);
        }
        for (int q = 0; q < g->n_factors; q++) {
            if (b->f[q].tables > 0) {
                uint32_t *count = b->f[q].count + omp_get_thread_num() * b->f[q].apart;
                for (int64_t i = begin; i < end; i++) {
                    count[fe_code_at(b->c, i, q)]++;
                }
            }
        }
        frgi_pass_did(ctx, (end - begin) * bytes);
    }
}

frg_status frgi_fe_rows_place_factors(fe_rows *g, frg_context *ctx)
{
    g->n_reduced = 0;
    for (int q = 0; q < g->n_factors; q++) {
        g->factor[q].first = q == g->elim_factor ? -1 : g->n_reduced;
        g->n_reduced += q == g->elim_factor ? 0 : g->factor[q].levels;
    }
    if (g->n_reduced > INT32_MAX) {
        FAIL(ctx, E_TOO_BIG, "%lld levels beside the largest factor are more than 2^31",
             (long long)g->n_reduced);
    }
    return FRG_OK;
}

/** The counts of the pass are complete: codes that do not occur are no levels, and the numbers
 *  shift. */
static frg_status close_gaps(layout *b, frg_context *ctx)
{
    bool gaps = false;
    for (int q = 0; q < b->g->n_factors; q++) {
        if (b->f[q].tables > 0) {
            frgi_fe_codes_add_tables(&b->f[q]);
            TRY(frgi_fe_codes_number(ctx, &b->f[q], &b->g->factor[q]));
            gaps = gaps || b->f[q].level;
        }
    }
    if (!gaps) {
        return FRG_OK;
    }
    TRY(frgi_fe_rows_place_factors(b->g, ctx));
    DROP(ctx, &b->first_elim);
    TRY(b->g->index_lent ? open_index(b, ctx) : FRG_OK);
    lay_rows(b, ctx);
    return FRG_OK;
}

/** 1 / N_u: weights are added row by row, rows are counted. */
static void sum_elim_weights(fe_rows *g, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static) if (g->n >= FE_SMALL_ROWS)
    for (int64_t u = 0; u < g->n_elim; u++) {
        double total_weight = (double)(g->elim_start[u + 1] - g->elim_start[u]);
        if (g->weight) {
            total_weight = 0;
            for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
                total_weight += g->weight[i];
            }
        }
        g->elim_inverse[u] = total_weight > 0 ? 1 / total_weight : 0;
    }
}

static void invert_level_weights(fe_rows *g)
{
    for (int64_t l = 0; l < g->n_reduced; l++) {
        g->level_inverse[l] = g->level_weight[l] > 0 ? 1 / g->level_weight[l] : 0;
    }
}

void frgi_fe_rows_take_weights(fe_rows *g, const double *w, ptrdiff_t stride,
                               const frgi_weight_range *range, int threads)
{
    const double scale = ldexp(1, -frgi_weights_exponent(range));
    g->weight_root = frgi_weights_root(range);
    for (int64_t i = 0; i < g->n; i++) {
        g->weight[i] = w[(g->order ? g->order[i] : i) * stride] * scale;
    }
    sum_elim_weights(g, threads);
    memset(g->level_weight, 0, (size_t)g->n_reduced * sizeof *g->level_weight);
    for (int64_t i = 0; i < g->n; i++) {
        for (int r = 0; r < g->n_remaining; r++) {
            g->level_weight[g->index[i * g->n_remaining + r]] += g->weight[i];
        }
    }
    invert_level_weights(g);
}

/** N_u and N_l without weights, from the counts of the codes where these are there; exact in any
 *  order. */
static void count_rows(fe_rows *g, const fe_factor_codes *f, int threads)
{
    sum_elim_weights(g, threads);
    memset(g->level_weight, 0, (size_t)g->n_reduced * sizeof *g->level_weight);
    for (int q = 0; q < g->n_factors; q++) {
        const int r = fe_remaining_place(g, q);
        if (r >= 0 && f[q].narrow) {
            for (int64_t i = 0; i < g->n; i++) {
                g->level_weight[g->index[i * g->n_remaining + r]] += 1;
            }
        } else if (r >= 0) {
            for (int64_t l = 0, next = g->factor[q].first; l < f[q].codes; l++) {
                if (f[q].count[l] > 0) {
                    g->level_weight[next++] = f[q].count[l];
                }
            }
        }
    }
    invert_level_weights(g);
}

/** A power of two of chunks: as many as the rows pay for, since each costs a copy of the reduced
 *  unknowns. */
static int choose_chunks(int64_t n, int64_t n_reduced)
{
    if (n < FE_SMALL_ROWS) {
        return 1;
    }
    int chunks = 2;
    while (chunks < FE_MAX_CHUNKS && n / (2 * chunks) >= ROWS_PER_COPIED_LEVEL * (n_reduced + 64)) {
        chunks *= 2;
    }
    return chunks;
}

static void cut_chunks(fe_rows *g)
{
    for (int k = 0; k <= g->n_chunks; k++) {
        const int64_t row = g->n * k / g->n_chunks;
        int64_t low = 0, high = g->n_elim;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (g->elim_start[middle] < row) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        g->chunk_elim[k] = low;
    }
}

frg_status frgi_fe_rows_cut(fe_rows *g, frg_context *ctx)
{
    g->n_chunks = choose_chunks(g->n, g->n_reduced);
    TRY(NEW(ctx, &g->chunk_elim, g->n_chunks + 1, "chunks"));
    cut_chunks(g);
    return FRG_OK;
}

static frg_status open_weights(fe_rows *g, frg_context *ctx)
{
    if (g->weighted) {
        TRY(NEW(ctx, &g->weight, g->n, "weights"));
    }
    TRY(NEW(ctx, &g->elim_inverse, g->n_elim, "weights of the eliminated levels"));
    TRY(NEW(ctx, &g->level_weight, g->n_reduced, "level weights"));
    return NEW(ctx, &g->level_inverse, g->n_reduced, "level weights");
}

frg_status frgi_fe_rows_weigh(fe_rows *g, frg_context *ctx, const frg_array *weights)
{
    frgi_weight_range range;
    g->weighted = weights != NULL;
    g->weight_root = 1;
    TRY(weights ? check_weights(ctx, weights, &range) : FRG_OK);
    TRY(open_weights(g, ctx));
    if (weights) {
        frgi_fe_rows_take_weights(g, (const double *)(const void *)frgi_array_base(weights),
                                  weights->stride[0], &range, frg_threads(ctx));
    } else {
        sum_elim_weights(g, frg_threads(ctx));
        memset(g->level_weight, 0, (size_t)g->n_reduced * sizeof *g->level_weight);
        for (int64_t i = 0; i < g->n * g->n_remaining; i++) {
            g->level_weight[g->index[i]] += 1;
        }
        invert_level_weights(g);
    }
    return frgi_fe_rows_cut(g, ctx);
}

static frg_status lay_out(layout *b, frg_context *ctx, const frg_array *weights,
                          const frgi_weight_range *range)
{
    fe_rows *g = b->g;
    g->n_elim = g->factor[g->elim_factor].levels;
    TRY(frgi_fe_rows_place_factors(g, ctx));
    const fe_factor_codes *elim = &b->f[g->elim_factor];
    const bool grouped = g->n == 0 || elim->scan.changes + 1 == g->n_elim;
    TRY(grouped ? prepare_runs(b, ctx, &b->first_elim) : sort_rows(g, ctx, b->c, elim));
    TRY(open_index(b, ctx));
    lay_rows(b, ctx);
    TRY(close_gaps(b, ctx));
    TRY(open_weights(g, ctx));
    if (weights) {
        frgi_fe_rows_take_weights(g, (const double *)(const void *)frgi_array_base(weights),
                                  weights->stride[0], range, frg_threads(ctx));
    } else {
        count_rows(g, b->f, frg_threads(ctx));
    }
    return frgi_fe_rows_cut(g, ctx);
}

frg_status frgi_fe_rows_fit(frg_context *ctx, int64_t n)
{
    if (n >= UINT32_MAX) {
        FAIL(ctx, E_TOO_BIG, "%lld rows are more than one plan holds (2^32 - 2)", (long long)n);
    }
    return FRG_OK;
}

/** Scans codes and weights and finds the eliminated factor: g->factor, f and scans, for the caller
 *  to drop. */
static frg_status study_rows(layout *b, frg_context *ctx, const frg_array *weights,
                             frgi_weight_range *range, fe_scan **scans)
{
    fe_rows *const g = b->g;
    const fe_codes *const c = b->c;
    g->n = c->n;
    g->n_factors = c->q;
    g->n_remaining = c->q - 1;
    TRY(frgi_fe_rows_fit(ctx, g->n));
    g->weight_root = 1;
    g->weighted = weights != NULL;
    TRY(NEW0(ctx, &b->f, c->q, "factors"));
    TRY(NEW0(ctx, &g->factor, c->q, "factors"));
    TRY(weights ? check_weights(ctx, weights, range) : FRG_OK);
    if (g->n > 0) {
        TRY(frgi_fe_codes_scan(ctx, c, scans, b->f));
        TRY(study_factors(g, ctx, c, b->f));
    }
    b->scans = *scans;
    return FRG_OK;
}

static void drop_study(layout *b, frg_context *ctx, fe_scan **scans)
{
    for (int q = 0; b->f && q < b->c->q; q++) {
        frgi_fe_codes_drop(ctx, &b->f[q]);
    }
    DROP(ctx, &b->first_elim);
    DROP(ctx, &b->f);
    DROP(ctx, scans);
}

frg_status frgi_fe_rows_create(fe_rows *g, frg_context *ctx, const frg_array *codes,
                               const frg_array *weights)
{
    const fe_codes c = frgi_fe_codes_of(ctx, codes);
    layout b = {.g = g, .c = &c};
    fe_scan *scans = NULL;
    frgi_weight_range range = {0};
    frg_status status = study_rows(&b, ctx, weights, &range, &scans);
    status = status < 0 ? status : lay_out(&b, ctx, weights, &range);
    drop_study(&b, ctx, &scans);
    return status;
}

frg_status frgi_fe_rows_scattered(frg_context *ctx, const frg_array *codes,
                                  const frg_array *weights, int32_t **level, int64_t *levels)
{
    const fe_codes c = frgi_fe_codes_of(ctx, codes);
    fe_rows g = {0};
    layout b = {.g = &g, .c = &c};
    fe_scan *scans = NULL;
    frgi_weight_range range = {0};
    frg_status status;
    *level = NULL;
    TRY_TO(done, study_rows(&b, ctx, weights, &range, &scans));
    *levels = g.factor[g.elim_factor].levels;
    const fe_factor_codes *const f = &b.f[g.elim_factor];
    if (g.n == 0 || f->scan.changes + 1 == *levels) {
        goto done;
    }
    TRY_TO(done, NEW(ctx, level, g.n, "eliminated levels of the rows"));
    int32_t *const to = *level;
#pragma omp parallel for num_threads(frgi_pass_threads(ctx, g.n)) schedule(static)
    for (int64_t i = 0; i < g.n; i++) {
        to[i] = fe_level_at(&c, f, i, g.elim_factor);
    }
done:
    drop_study(&b, ctx, &scans);
    frgi_fe_rows_destroy(&g, ctx);
    return status;
}

void frgi_fe_rows_shape(fe_rows *g, int elim_factor, bool weighted)
{
    static uint32_t order;
    static int32_t level;
    static double weight;
    g->order = &order;
    g->elim_level = &level;
    g->weighted = weighted;
    g->weight = weighted ? &weight : NULL;
    g->elim_factor = elim_factor;
    g->n_remaining = g->n_factors - 1;
    g->n_elim = g->factor[elim_factor].levels;
    g->n_reduced = -g->n_elim;
    for (int q = 0; q < g->n_factors; q++) {
        g->n_reduced += g->factor[q].levels;
    }
    g->n_chunks = choose_chunks(g->n, g->n_reduced);
}

size_t frgi_fe_rows_bytes(const fe_rows *g)
{
    const int64_t numbers = (g->index_lent ? 0 : g->n_remaining) + (g->order ? 1 : 0);
    const int64_t per_row = numbers * 4 + (g->weight ? 8 : 0);
    return (size_t)(g->n * per_row + g->n_elim * (g->elim_level ? 20 : 16) + g->n_reduced * 16);
}

void frgi_fe_rows_destroy(fe_rows *g, frg_context *ctx)
{
    for (int q = 0; g->factor && q < g->n_factors; q++) {
        DROP(ctx, &g->factor[q].label);
    }
    DROP(ctx, &g->factor);
    DROP(ctx, &g->elim_start);
    DROP(ctx, &g->elim_level);
    DROP(ctx, &g->elim_inverse);
    if (!g->index_lent) {
        DROP(ctx, &g->index);
    }
    DROP(ctx, &g->order);
    DROP(ctx, &g->weight);
    DROP(ctx, &g->level_weight);
    DROP(ctx, &g->level_inverse);
    DROP(ctx, &g->chunk_elim);
}
