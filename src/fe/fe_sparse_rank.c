/* fe_sparse_rank.c - the exact rank of D for factors of any size: union-find first, a sparse factor modulo a prime
 * for what that leaves.
 *
 * Letters: as in fe_modular.c the units are eliminated by a row of each, rank D = n_units + rank Delta, and Delta has
 * the differences of rows of a unit, e(i) - e(j), e the sum of the indicators of the other factors' levels.
 *
 * 1. A difference in one factor alone is e_a - e_b: levels a and b become one class, and the rank grows by 1.  In the
 *    quotient more differences become such pairs, so that the rows are read again until nothing changes.  Where no
 *    difference is left the count is proven, in integers.  (Workers who stay in a firm tie its years together.)
 * 2. Of the differences v_i that are left, G = sum omega_i v_i v_i' with omega random modulo p = 2^61 - 1 has the rank
 *    of the v_i modulo p, but with probability below R^2 / p (Cauchy-Binet and Schwartz-Zippel), and L D L' of G
 *    without interchanges has a null pivot for each column that depends on those before it.  No more than the true
 *    rank is ever counted.  Order: minimum degree; the work is known before it is done.
 *
 * Cost: a few passes over the rows; then that of a sparse factor of the classes that are left, in 64-bit integers.
 */
#include <math.h>
#include <string.h>

#include "fe/fe_graph.h"
#include "fe/fe_order.h"
#include "fe/fe_prime.h"
#include "fe/fe_union.h"

enum { PASSES = 16, ALL_PAIRS = 12, POLL = 1 << 22, RECENT = 1 << 12, FACTORS = 64 };

typedef struct {
    const fe_rows *g;
    frg_context *ctx;
    double work_most; /* multiply-adds of the factor */
    size_t byte_cap;
    int32_t *class_of; /* R: a root after flatten() */
    int64_t merged;
    int64_t recent
        [RECENT]; /* rows whose differences were taken, by hash; 0: none (row 0 has no row before it) */
    /* what is left */
    int64_t n;       /* classes that occur in it */
    int32_t *number; /* R: of a class, -1 where it does not occur */
    int64_t *starts; /* n + 1: rows of G, both triangles */
    int32_t *columns;
    uint64_t *values;
    int32_t *order, *place, *parent;
    int64_t *column_start; /* n + 1: of L */
    int64_t *filled;       /* n */
} counter;

/* ---- classes ------------------------------------------------------------------------------------ */

/** Merges the two classes where rows a and b differ, if they do in one factor alone. */
static int merge_rows(counter *c, const int32_t *a, const int32_t *b)
{
    int32_t from = -1, to = -1;
    for (int q = 0; q < c->g->n_rest; q++) {
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

/** All pairs of a short unit; of a long one each row with the one before it and with the first. */
static int64_t merge_unit(counter *c, int64_t u)
{
    const fe_rows *const g = c->g;
    const int32_t *const rows = g->index + g->unit_start[u] * g->n_rest;
    const int64_t n = g->unit_start[u + 1] - g->unit_start[u];
    int64_t merged = 0;
    for (int64_t i = 1; i < n; i++) {
        for (int64_t j = n <= ALL_PAIRS ? 0 : i - 1; j < i; j++) {
            merged += merge_rows(c, rows + i * g->n_rest, rows + j * g->n_rest);
        }
        if (n > ALL_PAIRS && i > 1) {
            merged += merge_rows(c, rows + i * g->n_rest, rows);
        }
    }
    return merged;
}

static void merge_levels(counter *c)
{
    for (int64_t l = 0; l < c->g->n_coef; l++) {
        c->class_of[l] = (int32_t)l;
    }
    int64_t merged = 1;
    for (int pass = 0; pass < PASSES && merged > 0; pass++) {
        merged = 0;
        for (int64_t u = 0; u < c->g->n_units; u++) {
            merged += merge_unit(c, u);
        }
        c->merged += merged;
    }
    for (int64_t l = 0; l < c->g->n_coef; l++) {
        c->class_of[l] = fe_root_of(c->class_of, (int32_t)l);
    }
}

/* ---- what is left ------------------------------------------------------------------------------- */

/** The classes of row i that the row before it has not, then those that it has not; returns how many of each. */
static int difference(const counter *c, const int32_t *row, int32_t *classes)
{
    const int rests = c->g->n_rest;
    const int32_t *const before = row - rests;
    int n = 0;
    for (int q = 0; q < rests; q++) {
        const int32_t x = c->class_of[row[q]], y = c->class_of[before[q]];
        if (x != y) {
            classes[n] = x;
            classes[rests + n++] = y;
        }
    }
    memmove(classes + n, classes + rests, (size_t)n * sizeof *classes);
    return n;
}

/** Is it the difference of a row that was taken not long ago?  Most are, where few classes are left. */
static bool repeats(counter *c, int64_t i, const int32_t *classes, int half)
{
    int32_t other[2 * FACTORS];
    uint32_t hash = 0;
    for (int k = 0; k < 2 * half; k++) {
        hash = (hash ^ (uint32_t)classes[k]) * 0x9e3779b1u;
    }
    int64_t *const at = &c->recent[hash % RECENT];
    const bool same = *at && difference(c, c->g->index + *at * c->g->n_rest, other) == half &&
                      memcmp(classes, other, 2 * (size_t)half * sizeof *other) == 0;
    *at = i;
    return same;
}

typedef void (*visitor)(counter *c, int64_t i, const int32_t *classes, int half);

static void each_difference(counter *c, visitor visit)
{
    int32_t classes[2 * FACTORS];
    const fe_rows *const g = c->g;
    memset(c->recent, 0, sizeof c->recent);
    for (int64_t u = 0; u < g->n_units; u++) {
        for (int64_t i = g->unit_start[u] + 1; i < g->unit_start[u + 1]; i++) {
            const int half = difference(c, g->index + i * g->n_rest, classes);
            if (half && !repeats(c, i, classes, half)) {
                visit(c, i, classes, half);
            }
        }
    }
}

static void count_entries(counter *c, int64_t i, const int32_t *classes, int half)
{
    (void)i;
    for (int k = 0; k < 2 * half; k++) {
        int32_t *const number = &c->number[classes[k]];
        *number = *number < 0 ? (int32_t)c->n++ : *number;
        c->starts[*number + 1] += 2 * half;
    }
}

/** omega_i v_i v_i' into the rows of G. */
static void add_entries(counter *c, int64_t i, const int32_t *classes, int half)
{
    uint32_t word[4];
    frgi_philox(0, 0x72616e6b, (uint64_t)i, 0, word);
    const uint64_t omega = 1 + (((uint64_t)word[0] << 32 | word[1]) % (FE_PRIME - 1));
    for (int a = 0; a < 2 * half; a++) {
        const int32_t row = c->number[classes[a]];
        for (int b = 0; b < 2 * half; b++) {
            const int64_t at = c->starts[row] + c->filled[row]++;
            c->columns[at] = c->number[classes[b]];
            c->values[at] = (a < half) == (b < half) ? omega : fe_prime_minus(omega);
        }
    }
}

/** Entries of one place are added; place[] serves as the marker. */
static void join_entries(counter *c)
{
    int64_t used = 0, from = 0;
    for (int64_t l = 0; l < c->n; l++) {
        c->place[l] = -1;
    }
    for (int64_t r = 0; r < c->n; r++) {
        const int64_t first = used, end = c->starts[r + 1];
        for (; from < end; from++) {
            int32_t *const at = &c->place[c->columns[from]];
            if (*at >= first) {
                c->values[*at] = fe_prime_plus(c->values[*at], c->values[from]);
                continue;
            }
            *at = (int32_t)used;
            c->columns[used] = c->columns[from];
            c->values[used++] = c->values[from];
        }
        c->starts[r] = first;
    }
    c->starts[c->n] = used;
}

/** *fits becomes false where G would take more than the cap. */
static frg_status assemble(counter *c, bool *fits)
{
    frg_context *const ctx = c->ctx;
    const int64_t classes = c->g->n_coef;
    TRY(NEW(ctx, &c->number, classes, "classes of levels"));
    TRY(NEW0(ctx, &c->starts, classes + 1, "classes of levels"));
    memset(c->number, -1, (size_t)classes * sizeof *c->number);
    each_difference(c, count_entries);
    for (int64_t l = 0; l < c->n; l++) {
        c->starts[l + 1] += c->starts[l];
    }
    const int64_t entries = c->starts[c->n];
    *fits = entries <= INT32_MAX && (size_t)entries <= c->byte_cap / 32;
    if (!*fits || c->n == 0) {
        return FRG_OK;
    }
    TRY(NEW(ctx, &c->columns, entries, "the matrix of the exact rank"));
    TRY(NEW(ctx, &c->values, entries, "the matrix of the exact rank"));
    TRY(NEW(ctx, &c->place, c->n, "the matrix of the exact rank"));
    TRY(NEW0(ctx, &c->filled, c->n, "the matrix of the exact rank"));
    each_difference(c, add_entries);
    join_entries(c);
    return FRG_OK;
}

/* ---- the factor --------------------------------------------------------------------------------- */

/** The elimination tree and the lengths of L's columns; returns the multiply-adds of the factor. */
static double analyse(counter *c, int32_t *flag)
{
    double work = 0;
    for (int64_t k = 0; k < c->n; k++) {
        c->place[c->order[k]] = (int32_t)k;
    }
    memset(c->filled, 0, (size_t)c->n * sizeof *c->filled);
    for (int32_t k = 0; k < c->n; k++) {
        c->parent[k] = -1;
        flag[k] = k;
        for (int64_t e = c->starts[c->order[k]]; e < c->starts[c->order[k] + 1]; e++) {
            for (int32_t i = c->place[c->columns[e]]; i < k && flag[i] != k; i = c->parent[i]) {
                c->parent[i] = c->parent[i] < 0 ? k : c->parent[i];
                c->filled[i]++;
                flag[i] = k;
            }
        }
    }
    c->column_start[0] = 0;
    for (int64_t k = 0; k < c->n; k++) {
        const double length = (double)c->filled[k];
        work += length * length;
        c->column_start[k + 1] = c->column_start[k] + c->filled[k];
    }
    return work;
}

typedef struct {
    int32_t *rows;    /* of L's entries */
    uint64_t *values; /* of L's entries */
    uint64_t *y;      /* n: the row in work */
    uint64_t *pivot, *inverse;
    int32_t *flag, *stack;
    int64_t null;
    double work;
} factor;

/** The columns of L in which row k has entries, in the order of elimination: stack[top .. n). */
static int64_t reach(const counter *c, factor *f, int32_t k)
{
    int64_t top = c->n;
    f->flag[k] = k;
    for (int64_t e = c->starts[c->order[k]]; e < c->starts[c->order[k] + 1]; e++) {
        int32_t i = c->place[c->columns[e]];
        if (i > k) {
            continue;
        }
        f->y[i] = c->values[e];
        int64_t length = 0;
        for (; f->flag[i] != k; i = c->parent[i]) {
            f->stack[length++] = i;
            f->flag[i] = k;
        }
        while (length > 0) {
            f->stack[--top] = f->stack[--length];
        }
    }
    return top;
}

/** Row k of L and its pivot; false where a null pivot has an entry below it, which random weights exclude. */
static bool eliminate(counter *c, factor *f, int32_t k)
{
    int64_t top = reach(c, f, k);
    uint64_t pivot = f->y[k];
    f->y[k] = 0;
    for (; top < c->n; top++) {
        const int32_t i = f->stack[top];
        const uint64_t y = f->y[i], minus = fe_prime_minus(y);
        const int64_t first = c->column_start[i], end = first + c->filled[i];
        f->y[i] = 0;
        if (y == 0) {
            continue;
        }
        if (f->pivot[i] == 0) {
            return false;
        }
        for (int64_t e = first; e < end; e++) {
            uint64_t *const to = &f->y[f->rows[e]];
            *to = fe_prime_plus(*to, fe_prime_times(f->values[e], minus));
        }
        const uint64_t l = fe_prime_times(y, f->inverse[i]);
        pivot = fe_prime_plus(pivot, fe_prime_times(l, minus));
        f->rows[end] = k;
        f->values[end] = l;
        c->filled[i]++;
        f->work += (double)(end - first);
    }
    f->pivot[k] = pivot;
    f->inverse[k] = pivot ? fe_prime_inverse(pivot) : 0;
    f->null += pivot == 0;
    return true;
}

/** *rank <- n less the null pivots; stays -1 where the heartbeat ends it. */
static frg_status count_pivots(counter *c, factor *f, int64_t *rank)
{
    const int64_t entries = c->column_start[c->n];
    frg_status status;
    TRY_TO(done, NEW(c->ctx, &f->rows, entries, "the factor of the exact rank"));
    TRY_TO(done, NEW(c->ctx, &f->values, entries, "the factor of the exact rank"));
    TRY_TO(done, NEW0(c->ctx, &f->y, 3 * c->n, "the factor of the exact rank"));
    f->pivot = f->y + c->n;
    f->inverse = f->pivot + c->n;
    memset(c->filled, 0, (size_t)c->n * sizeof *c->filled);
    memset(f->flag, -1, (size_t)c->n * sizeof *f->flag);
    double polled = 0;
    for (int32_t k = 0; k < c->n; k++) {
        if (!eliminate(c, f, k)) {
            goto done;
        }
        if (f->work >= polled + POLL) {
            const frg_progress p = {.solver = "fe",
                                    .phase = "exact rank",
                                    .done = k,
                                    .total = c->n,
                                    .residual = (double)NAN,
                                    .target = (double)NAN};
            polled = f->work;
            if (frgi_heartbeat(c->ctx, &p) != FRG_OK) {
                goto done;
            }
        }
    }
    *rank = c->n - f->null;
done:
    DROP(c->ctx, &f->rows);
    DROP(c->ctx, &f->values);
    DROP(c->ctx, &f->y);
    return status;
}

/** *rank <- that of G, or -1 where the factor costs more than is allowed. */
static frg_status factor_rank(counter *c, int64_t *rank)
{
    frg_context *const ctx = c->ctx;
    const frgi_pattern pattern = {c->n, c->starts, c->columns, NULL};
    uint8_t *late = NULL;
    factor f = {0};
    frg_status status;
    TRY_TO(done, NEW(ctx, &c->order, c->n, "minimum degree ordering"));
    TRY_TO(done, NEW(ctx, &c->parent, c->n, "elimination tree"));
    TRY_TO(done, NEW(ctx, &c->column_start, c->n + 1, "elimination tree"));
    TRY_TO(done, NEW0(ctx, &late, c->n, "minimum degree ordering"));
    TRY_TO(done, NEW(ctx, &f.flag, c->n, "elimination tree"));
    TRY_TO(done, NEW(ctx, &f.stack, c->n, "elimination tree"));
    TRY_TO(done, frgi_order_amd(ctx, &pattern, late, c->order));
    const double work = analyse(c, f.flag);
    if (work <= c->work_most && (size_t)c->column_start[c->n] <= c->byte_cap / 12) {
        status = count_pivots(c, &f, rank);
    }
done:
    DROP(ctx, &late);
    DROP(ctx, &f.flag);
    DROP(ctx, &f.stack);
    return status;
}

/* ---- the count ---------------------------------------------------------------------------------- */

static frg_status count(counter *c, int64_t *rank)
{
    bool fits = true;
    TRY(NEW(c->ctx, &c->class_of, c->g->n_coef, "classes of levels"));
    merge_levels(c);
    TRY(assemble(c, &fits));
    int64_t left = c->n == 0 ? 0 : -1;
    if (c->n > 0 && fits) {
        TRY(factor_rank(c, &left));
    }
    *rank = left < 0 ? -1 : c->g->n_units + c->merged + left;
    return FRG_OK;
}

frg_status frgi_fe_sparse_rank(const fe_rows *g, frg_context *ctx, double work_most,
                               size_t byte_cap, int64_t *rank)
{
    counter c = {.g = g, .ctx = ctx, .work_most = work_most, .byte_cap = byte_cap};
    *rank = -1;
    const frg_status status = count(&c, rank);
    DROP(ctx, &c.class_of);
    DROP(ctx, &c.number);
    DROP(ctx, &c.starts);
    DROP(ctx, &c.columns);
    DROP(ctx, &c.values);
    DROP(ctx, &c.place);
    DROP(ctx, &c.filled);
    DROP(ctx, &c.order);
    DROP(ctx, &c.parent);
    DROP(ctx, &c.column_start);
    return status;
}
