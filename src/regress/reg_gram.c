/* reg_gram.c - ordered sums over rows.
 *
 * Rows come in blocks of FRGI_GRAM_CHUNK; blocks come in at most GROUPS runs of consecutive ones,
 * each run summed by one thread, block after block, and the runs are added by the tree of
 * core/tree_sum.h.  With many columns a thread takes a tile of G through all rows, by BLAS: the
 * same runs, and the same tree.
 */
#include "regress/reg_gram.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/tree_sum.h"
#include "formula/program.h"
#include "linalg/blas.h"

enum {
    GROUPS = 64,
    LEVELS = 7, /* of the tree of so many */
    WIDE = 256  /* columns of a tile of G; up to so many, every run of rows has a G of its own */
};

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(frgi_gram_ops, frgi_gram_ops);
#pragma GCC visibility pop

const frgi_gram_ops *frgi_gram_ops_of(const frg_context *ctx)
{
    static const frgi_gram_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_gram_ops);
    return table[frgi_context_isa(ctx)];
}

typedef struct {
    int64_t n, chunks, groups;
} plan;

static plan plan_of(int64_t n)
{
    const int64_t chunks = (n + FRGI_GRAM_CHUNK - 1) / FRGI_GRAM_CHUNK;
    /* short runs are not worth a partial sum each */
    const int64_t runs = (chunks + 7) / 8;
    return (plan){.n = n, .chunks = chunks, .groups = runs < GROUPS ? runs : GROUPS};
}

static int64_t chunk_rows(const plan *p, int64_t chunk)
{
    const int64_t left = p->n - chunk * FRGI_GRAM_CHUNK;
    return left < FRGI_GRAM_CHUNK ? left : FRGI_GRAM_CHUNK;
}

/** A pass along so many columns begins; run r of it is done. */
static void pass_begins(frg_context *ctx, const plan *p, const char *phase, int64_t columns)
{
    frgi_pass_begins(ctx, "fe", phase, p->n * columns * (int64_t)sizeof(double));
}

static void did_run(frg_context *ctx, const plan *p, int64_t r, int64_t columns)
{
    const int64_t chunks = (r + 1) * p->chunks / p->groups - r * p->chunks / p->groups;
    frgi_pass_did(ctx, chunks * FRGI_GRAM_CHUNK * columns * (int64_t)sizeof(double));
}

double frgi_gram_bytes(int64_t p, int64_t n)
{
    const double k = (double)(p < n ? p : n), square = (double)p * (double)p;
    const double copies = p > WIDE ? 0 : (double)plan_of(n).groups;
    const double estimate = (copies + 1) * square / 2 + square, covariance = 5 * k * k;
    return sizeof(double) * ((double)p * (double)n + fmax(estimate, covariance));
}

static bool is_stopped(const frg_context *stops)
{
    return stops && frgi_stopped(stops) != FRG_OK;
}

static void gram_of_run(const frg_context *stops, const frgi_gram_ops *ops, const plan *p,
                        int64_t r, int k, const double *const *x, const double *w, double *g)
{
    double scratch[2 * FRGI_GRAM_CHUNK];
    memset(g, 0, sizeof *g * (size_t)frgi_packed(k, 0));
    for (int64_t c = r * p->chunks / p->groups; c < (r + 1) * p->chunks / p->groups; c++) {
        if (is_stopped(stops)) {
            return;
        }
        ops->gram(k, x, w, c * FRGI_GRAM_CHUNK, chunk_rows(p, c), scratch, g);
    }
}

/** Few columns: runs of rows side by side, each with a G of its own. */
static frg_status gram_by_runs(frg_context *ctx, const plan *p, int k, const double *const *x,
                               const double *w, double *g, const frg_context *stops)
{
    const frgi_gram_ops *const ops = frgi_gram_ops_of(ctx);
    const int64_t length = frgi_packed(k, 0);
    double *partial;
    TRY(NEW(ctx, &partial, p->groups * length, "a Gram matrix"));
    pass_begins(ctx, p, "products", k);
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(ctx, p->n))
    for (int64_t r = 0; r < p->groups; r++) {
        gram_of_run(stops, ops, p, r, k, x, w, partial + r * length);
        did_run(ctx, p, r, k);
    }
    if (!is_stopped(stops)) {
        frgi_tree_rows(partial, p->groups, length, length, g);
    }
    DROP(ctx, &partial);
    return FRG_OK;
}

/* ---- many columns: tiles of G, each summed over all rows by one thread ---- */

/** What a thread works with: a block of WIDE columns, weighted, of WIDE others, and the tile of
 *  each subtree of 1, 2, 4, ... runs that waits for as many others. */
typedef struct {
    double left[WIDE * FRGI_GRAM_CHUNK], right[WIDE * FRGI_GRAM_CHUNK], tile[LEVELS][WIDE * WIDE];
} tile_work;

static int tile_end(int k, int first)
{
    return first + WIDE < k ? first + WIDE : k;
}

/** to <- rows begin .. begin+n-1 of columns first .. end-1, times w */
static void pack(const double *const *x, const double *w, int first, int end, int64_t begin,
                 int64_t n, double *to)
{
    for (int j = first; j < end; j++, to += FRGI_GRAM_CHUNK) {
        memcpy(to, x[j] + begin, sizeof *to * (size_t)n);
        for (int64_t r = 0; w && r < n; r++) {
            to[r] *= w[begin + r];
        }
    }
}

/** Which tile of G, and of what. */
typedef struct {
    const plan *p;
    const double *const *x, *w;
    int i, i_end, j, j_end; /* its rows and columns, j <= i */
} tile_sum;

/** to <- the tile of run r. */
static void tile_of_run(const frg_context *stops, const tile_sum *s, int64_t r, tile_work *t,
                        double *to)
{
    const plan *const p = s->p;
    memset(to, 0, sizeof t->tile[0]);
    for (int64_t c = r * p->chunks / p->groups; c < (r + 1) * p->chunks / p->groups; c++) {
        const int64_t begin = c * FRGI_GRAM_CHUNK, n = chunk_rows(p, c);
        if (is_stopped(stops)) {
            return;
        }
        pack(s->x, s->w, s->i, s->i_end, begin, n, t->left);
        pack(s->x, NULL, s->j, s->j_end, begin, n, t->right);
        frgi_dgemm('T', 'N', s->j_end - s->j, s->i_end - s->i, (int)n, 1, t->right, FRGI_GRAM_CHUNK,
                   t->left, FRGI_GRAM_CHUNK, 1, to, WIDE);
    }
}

static void add_tile(const double *restrict from, double *restrict to)
{
    for (int64_t e = 0; e < WIDE * WIDE; e++) {
        to[e] += from[e];
    }
}

/** The tile of all runs into g: a run completes a subtree of 2^level runs, and `level` of them wait
 *  for it; those that wait behind the last run are added from the smallest on. */
static void gram_tile(const frg_context *stops, const tile_sum *s, tile_work *t, double *g)
{
    const int64_t runs = s->p->groups;
    int level = 0;
    for (int64_t r = 0; r < runs; r++) {
        level = 0;
        while (r >> level & 1) {
            level++;
        }
        tile_of_run(stops, s, r, t, t->tile[level]);
        for (int k = 0; k < level; k++) {
            add_tile(t->tile[k], t->tile[level]);
        }
    }
    for (int k = level + 1; k < LEVELS; k++) {
        if (runs >> k & 1) {
            add_tile(t->tile[level], t->tile[k]);
            level = k;
        }
    }
    for (int row = s->i; row < s->i_end; row++) {
        const int last = s->j_end - 1 < row ? s->j_end - 1 : row;
        memcpy(g + frgi_packed(row, s->j), t->tile[level] + (ptrdiff_t)(row - s->i) * WIDE,
               sizeof *g * (size_t)(last - s->j + 1));
    }
}

static frg_status gram_by_tiles(frg_context *ctx, const plan *p, int k, const double *const *x,
                                const double *w, double *g, const frg_context *stops)
{
    const int64_t side = (k + WIDE - 1) / WIDE, tiles = frgi_packed(side, 0);
    const int threads = frgi_pass_threads(ctx, p->n);
    tile_work *work;
    TRY(NEW(ctx, &work, threads, "tiles of a Gram matrix"));
    const frgi_blas_guard guard = frgi_blas_begin();
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t t = 0; t < tiles; t++) {
        int row = 0;
        while (frgi_packed(row + 1, 0) <= t) {
            row++;
        }
        const int i = row * WIDE, j = (int)(t - frgi_packed(row, 0)) * WIDE;
        const tile_sum s = {p, x, w, i, tile_end(k, i), j, tile_end(k, j)};
        frgi_blas_single();
        gram_tile(stops, &s, work + omp_get_thread_num(), g);
    }
    frgi_blas_end(guard);
    DROP(ctx, &work);
    return FRG_OK;
}

frg_status frgi_gram(frg_context *ctx, int k, const double *const *x, const double *w, int64_t n,
                     double *g, const frg_context *stops)
{
    const plan p = plan_of(n);
    return k > WIDE ? gram_by_tiles(ctx, &p, k, x, w, g, stops)
                    : gram_by_runs(ctx, &p, k, x, w, g, stops);
}

frg_status frgi_gram_residual(frg_context *ctx, int k, const double *const *x, const double *y,
                              const double *b, const double *w, int64_t n, double *e,
                              double *gradient)
{
    const frgi_gram_ops *const ops = frgi_gram_ops_of(ctx);
    const plan p = plan_of(n);
    const int64_t length = k + 1;
    double *partial;
    TRY(NEW0(ctx, &partial, p.groups * length, "a gradient"));
    pass_begins(ctx, &p, "errors", length);
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(ctx, n))
    for (int64_t r = 0; r < p.groups; r++) {
        double scratch[FRGI_GRAM_CHUNK], unkept[FRGI_GRAM_CHUNK];
        for (int64_t c = r * p.chunks / p.groups; c < (r + 1) * p.chunks / p.groups; c++) {
            const int64_t begin = c * FRGI_GRAM_CHUNK;
            ops->residual(k, x, y, b, w, begin, chunk_rows(&p, c), e ? e + begin : unkept, scratch,
                          partial + r * length);
        }
        did_run(ctx, &p, r, length);
    }
    frgi_tree_rows(partial, p.groups, length, length, gradient);
    DROP(ctx, &partial);
    return FRG_OK;
}

/** Four columns times s or, where that is NULL, the residuals, chunk by chunk. */
static void sum_groups(const frgi_gram_ops *ops, const double *const x[4], const double *s,
                       const frgi_errors *errors, const int32_t *groups, int64_t begin, int64_t end,
                       double *sums)
{
    for (; begin < end; begin += FRGI_GRAM_CHUNK) {
        const int64_t m = end - begin < FRGI_GRAM_CHUNK ? end - begin : FRGI_GRAM_CHUNK;
        const double *const there[4] = {x[0] + begin, x[1] + begin, x[2] + begin, x[3] + begin};
        double e[FRGI_GRAM_CHUNK];
        if (!s) {
            ops->errors(errors->k, errors->x, errors->y, errors->b, begin, m, e);
        }
        ops->by_group(there, s ? s + begin : e, groups + begin, m, sums);
    }
}

/** Every column is summed by one thread in the order of the rows; four of them share the loads of
 *  the groups and a line of memory.  What a last bunch of fewer lacks is its last column again. */
static frg_status sum_by_group(frg_context *ctx, int k, const double *const *x, const double *s,
                               const frgi_errors *errors, const int32_t *groups, int64_t n,
                               int64_t n_groups, double *sums)
{
    const frgi_gram_ops *const ops = frgi_gram_ops_of(ctx);
    const plan p = plan_of(n);
    const int bunches = (k + 3) / 4;
    double *four;
    TRY(NEW0(ctx, &four, 4 * bunches * n_groups, "sums by group"));
    pass_begins(ctx, &p, "sums by cluster", 4 * bunches);
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(ctx, n))
    for (int b = 0; b < bunches; b++) {
        const double *columns[4];
        double *const mine = four + 4 * b * n_groups;
        for (int j = 0; j < 4; j++) {
            columns[j] = x[4 * b + j < k ? 4 * b + j : k - 1];
        }
        for (int64_t r = 0; r < p.groups; r++) {
            const int64_t end = (r + 1) * p.chunks / p.groups * FRGI_GRAM_CHUNK;
            sum_groups(ops, columns, s, errors, groups, r * p.chunks / p.groups * FRGI_GRAM_CHUNK,
                       end < n ? end : n, mine);
            did_run(ctx, &p, r, 4);
        }
        for (int j = 4 * b; j < k && j < 4 * b + 4; j++) {
            for (ptrdiff_t g = 0; g < n_groups; g++) {
                sums[j * n_groups + g] = mine[4 * g + j % 4];
            }
        }
    }
    DROP(ctx, &four);
    return FRG_OK;
}

frg_status frgi_gram_by_group(frg_context *ctx, int k, const double *const *x, const double *s,
                              const int32_t *groups, int64_t n, int64_t n_groups, double *sums)
{
    return sum_by_group(ctx, k, x, s, NULL, groups, n, n_groups, sums);
}

frg_status frgi_gram_errors_by_group(frg_context *ctx, int k, const double *const *x,
                                     const frgi_errors *s, const int32_t *groups, int64_t n,
                                     int64_t n_groups, double *sums)
{
    return sum_by_group(ctx, k, x, NULL, s, groups, n, n_groups, sums);
}

frgi_moments frgi_moments_join(frgi_moments a, frgi_moments b)
{
    const double weight = a.weight + b.weight, shift = b.mean - a.mean;
    if (!(weight > 0)) {
        return a;
    }
    return (frgi_moments){.weight = weight,
                          .mean = a.mean + shift * (b.weight / weight),
                          .square =
                              a.square + b.square + shift * shift * (a.weight * b.weight / weight)};
}

frgi_moments frgi_moments_of(const frg_context *ctx, const double *x, const double *w, int64_t n)
{
    const frgi_gram_ops *const ops = frgi_gram_ops_of(ctx);
    const plan p = plan_of(n);
    frgi_moments run[GROUPS] = {{0}};
    for (int64_t r = 0; r < p.groups; r++) {
        for (int64_t c = r * p.chunks / p.groups; c < (r + 1) * p.chunks / p.groups; c++) {
            const int64_t begin = c * FRGI_GRAM_CHUNK;
            run[r] = frgi_moments_join(
                run[r], ops->moments(x + begin, w ? w + begin : NULL, chunk_rows(&p, c)));
        }
    }
    for (frgi_tree_pair t = {.n = p.groups}; frgi_tree_next(&t);) {
        run[t.to] = frgi_moments_join(run[t.to], run[t.from]);
    }
    return run[0];
}
