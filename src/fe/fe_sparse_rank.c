/* fe_sparse_rank.c - the exact rank of D for factors of any size: union-find first, a sparse factor
 * modulo a prime for what that leaves.
 *
 * Letters: as in fe_modular.c a row of each eliminated level eliminates it, rank D =
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
#include "fe/fe_union.h"
#include "sparse/prime.h"
#include "sparse/prime_rank.h"

enum { PASSES = 16, ALL_PAIRS = 12, RECENT = 1 << 12, FACTORS = 64 };

typedef struct {
    const fe_rows *g;
    int32_t *class_of; /* R: a root after flatten() */
    int64_t merged;
    int64_t recent
        [RECENT]; /* rows whose differences were taken, by hash; 0: none (row 0 has no row before
                     it) */
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
static int64_t merge_elim(counter *c, int64_t u)
{
    const fe_rows *const g = c->g;
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

static void merge_levels(counter *c)
{
    for (int64_t l = 0; l < c->g->n_reduced; l++) {
        c->class_of[l] = (int32_t)l;
    }
    int64_t merged = 1;
    for (int pass = 0; pass < PASSES && merged > 0; pass++) {
        merged = 0;
        for (int64_t u = 0; u < c->g->n_elim; u++) {
            merged += merge_elim(c, u);
        }
        c->merged += merged;
    }
    for (int64_t l = 0; l < c->g->n_reduced; l++) {
        c->class_of[l] = fe_root_of(c->class_of, (int32_t)l);
    }
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

/** Is it the difference of a row that was taken not long ago?  Most are, where few classes are
 *  left. */
static bool repeats(counter *c, int64_t i, const int32_t *classes, int half)
{
    int32_t other[2 * FACTORS];
    uint32_t hash = 0;
    for (int k = 0; k < 2 * half; k++) {
        hash = (hash ^ (uint32_t)classes[k]) * 0x9e3779b1u;
    }
    int64_t *const at = &c->recent[hash % RECENT];
    const bool same = *at && difference(c, c->g->index + *at * c->g->n_remaining, other) == half &&
                      memcmp(classes, other, 2 * (size_t)half * sizeof *other) == 0;
    *at = i;
    return same;
}

static void each_difference(void *data, frgi_prime_take *take, void *to)
{
    counter *const c = data;
    const fe_rows *const g = c->g;
    int32_t classes[2 * FACTORS];
    uint64_t signs[2 * FACTORS];
    memset(c->recent, 0, sizeof c->recent);
    for (int64_t u = 0; u < g->n_elim; u++) {
        for (int64_t i = g->elim_start[u] + 1; i < g->elim_start[u + 1]; i++) {
            const int half = difference(c, g->index + i * g->n_remaining, classes);
            if (half && !repeats(c, i, classes, half)) {
                for (int k = 0; k < half; k++) {
                    signs[k] = 1;
                    signs[half + k] = FRGI_PRIME - 1;
                }
                take(to, i, 2 * half, classes, signs);
            }
        }
    }
}

/* ---- the count ------------------------------------------------------------------------------- */

frg_status frgi_fe_sparse_rank(const fe_rows *g, frg_context *ctx, double work_most,
                               size_t byte_cap, int64_t *rank)
{
    counter c = {.g = g};
    int64_t left = -1;
    *rank = -1;
    TRY(NEW(ctx, &c.class_of, g->n_reduced, "classes of levels"));
    merge_levels(&c);
    const frg_status status =
        frgi_prime_rank(ctx, g->n_reduced, each_difference, &c, work_most, byte_cap, &left);
    *rank = left < 0 ? -1 : g->n_elim + c.merged + left;
    DROP(ctx, &c.class_of);
    return status;
}
