/* fe_sparse_rank.c - the exact rank of D for factors of any size: union-find first, a sparse factor
 * modulo a prime for what that leaves.
 *
 * Notation: as in fe_modular.c a row of each eliminated level eliminates it, rank D =
 * n_elim + rank Delta, and Delta has the differences of rows of an eliminated level, e(i) - e(j), e
 * the sum of the indicators of the other factors' levels.
 *
 * 1. A difference in one factor alone is e_a - e_b: levels a and b become one class, and the rank
 *    grows by 1.  In the quotient more differences become such pairs, so that the rows are read
 *    again until nothing changes.  Where no difference is left the count is proven, in integers.
 *    (Workers who stay in a firm tie its years together.)
 * 2. The rank of the differences that are left is counted modulo a prime (prime_rank.h).
 *
 * Cost: a few passes over the rows; then that of a sparse factor of the classes that are left, in
 * 64-bit integers.
 */
#include <string.h>

#include "fe/fe_graph.h"
#include "fe/fe_runs.h"
#include "fe/fe_union.h"
#include "sparse/prime.h"

enum { PASSES = 16, ALL_PAIRS = 12, RECENT = 1 << 12 };

typedef struct {
    const fe_rows *g;
    int32_t *class_of; /* R: the root of the class, after merge_levels() */
    int64_t merged;
    int32_t *recent;             /* RECENT x 2 n_remaining: differences that were taken, by hash */
    unsigned char taken[RECENT]; /* how many classes each has of its row; 0: none was taken */
    frg_context *ctx;
} counter;

/* ---- classes --------------------------------------------------------------------------------- */

/** Merges the two classes where rows a and b differ, if they do in one factor alone. */
static int merge_rows(counter *c, const int32_t *a, const int32_t *b)
{
    int32_t from = -1, to = -1;
    for (int q = 0; q < c->g->n_remaining; q++) {
        if (a[q] == b[q]) {
            continue;
        }
        const int32_t x = fe_root_of(c->class_of, a[q]), y = fe_root_of(c->class_of, b[q]);
        if (x != y) {
            if (from >= 0) {
                return 0;
            }
            from = x;
            to = y;
        }
    }
    return from >= 0 && fe_join(c->class_of, from, to);
}

/** All pairs of a short eliminated level; of a long one each row with the one before it and with
 *  the first. */
static int64_t merge_elim(counter *c, const fe_rows *g, int64_t u)
{
    const int32_t *const rows = g->index + g->elim_start[u] * g->n_remaining;
    const int64_t n = g->elim_start[u + 1] - g->elim_start[u];
    int64_t merged = 0;
    for (int64_t i = 1; i < n; i++) {
        for (int64_t j = n <= ALL_PAIRS ? 0 : i - 1; j < i; j++) {
            merged += merge_rows(c, rows + i * g->n_remaining, rows + j * g->n_remaining);
        }
        if (n > ALL_PAIRS && i > 1) {
            merged += merge_rows(c, rows + i * g->n_remaining, rows);
        }
    }
    return merged;
}

static frg_status merge_levels(counter *c)
{
    for (int64_t l = 0; l < c->g->n_reduced; l++) {
        c->class_of[l] = (int32_t)l;
    }
    int64_t merged = 1;
    for (int pass = 0; pass < PASSES && merged > 0; pass++) {
        merged = 0;
        fe_runs runs = frgi_fe_runs(c->g, c->ctx);
        for (const fe_rows *w; (w = frgi_fe_runs_next(&runs));) {
            for (int64_t u = 0; u < w->n_elim; u++) {
                merged += merge_elim(c, w, u);
            }
        }
        const frg_status status = frgi_fe_runs_close(&runs);
        if (status != FRG_OK) {
            return status;
        }
        c->merged += merged;
    }
    for (int64_t l = 0; l < c->g->n_reduced; l++) {
        c->class_of[l] = fe_root_of(c->class_of, (int32_t)l);
    }
    return FRG_OK;
}

/* ---- what is left ---------------------------------------------------------------------------- */

/** The classes of row i that the row before it has not, then those that it has not; returns how
 *  many of each. */
static int difference(const counter *c, const int32_t *row, int32_t *classes)
{
    const int remaining = c->g->n_remaining;
    const int32_t *const before = row - remaining;
    int n = 0;
    for (int q = 0; q < remaining; q++) {
        const int32_t x = c->class_of[row[q]], y = c->class_of[before[q]];
        if (x != y) {
            classes[n] = x;
            classes[remaining + n++] = y;
        }
    }
    memmove(classes + n, classes + remaining, (size_t)n * sizeof *classes);
    return n;
}

/** Is it a difference that was taken not long ago?  Most are, where few classes are left. */
static bool repeats(counter *c, const int32_t *classes, int half)
{
    const size_t bytes = 2 * (size_t)half * sizeof *classes;
    uint32_t hash = 0;
    for (int k = 0; k < 2 * half; k++) {
        hash = (hash ^ (uint32_t)classes[k]) * 0x9e3779b1u;
    }
    const uint32_t at = hash % RECENT;
    int32_t *const other = c->recent + (int64_t)at * 2 * c->g->n_remaining;
    const bool same = c->taken[at] == half && memcmp(classes, other, bytes) == 0;
    memcpy(other, classes, bytes);
    c->taken[at] = (unsigned char)half;
    return same;
}

/** Hands on the differences of a window's rows. */
static void give_differences(counter *c, const fe_rows *w, frgi_prime_take *take, void *to)
{
    const fe_rows *const g = w;
    int32_t classes[2 * FE_MAX_FACTORS];
    uint64_t signs[2 * FE_MAX_FACTORS];
    for (int64_t u = 0; u < g->n_elim; u++) {
        for (int64_t i = g->elim_start[u] + 1; i < g->elim_start[u + 1]; i++) {
            const int half = difference(c, g->index + i * g->n_remaining, classes);
            if (half && !repeats(c, classes, half)) {
                for (int k = 0; k < half; k++) {
                    signs[k] = 1;
                    signs[half + k] = FRGI_PRIME - 1;
                }
                take(to, w->at.row + i, 2 * half, classes, signs);
            }
        }
    }
}

static frg_status each_difference(void *data, frgi_prime_take *take, void *to)
{
    counter *const c = data;
    memset(c->taken, 0, sizeof c->taken);
    fe_runs runs = frgi_fe_runs(c->g, c->ctx);
    for (const fe_rows *w; (w = frgi_fe_runs_next(&runs));) {
        give_differences(c, w, take, to);
    }
    return frgi_fe_runs_close(&runs);
}

/* ---- the count ------------------------------------------------------------------------------- */

frg_status frgi_fe_sparse_rank(const fe_rows *g, frg_context *ctx, const frgi_prime_limits *most,
                               int64_t *rank)
{
    counter c = {.g = g, .ctx = ctx};
    int64_t left = -1;
    frg_status status;
    *rank = -1;
    TRY_TO(done, NEW(ctx, &c.class_of, g->n_reduced, "classes of levels"));
    TRY_TO(done, NEW(ctx, &c.recent, (int64_t)RECENT * 2 * g->n_remaining, "differences of rows"));
    status = merge_levels(&c);
    if (status != FRG_OK) {
        goto done;
    }
    status = frgi_prime_rank(ctx, g->n_reduced, each_difference, &c, most, &left);
    *rank = left < 0 || status != FRG_OK ? -1 : g->n_elim + c.merged + left;
done:
    DROP(ctx, &c.class_of);
    DROP(ctx, &c.recent);
    return status;
}
