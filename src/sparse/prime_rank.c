/* prime_rank.c - see prime_rank.h.
 *
 * Of vectors v_i, G = sum omega_i v_i v_i' with omega random modulo p = 2^61 - 1 has the rank of
 * the v_i modulo p, but with probability below R^2 / p, R the indices that occur (Cauchy-Binet and
 * Schwartz-Zippel), and L D L' of G without interchanges has a null pivot for each column that
 * depends on those before it. No more than the rank is ever counted.  Order: minimum degree; the
 * work is known before it is done.
 *
 * Cost: two visits of the vectors; then that of a sparse factor of the indices that occur, in
 * 64-bit integers.
 */
#include "sparse/prime_rank.h"

#include <math.h>
#include <string.h>

#include "sparse/ordering.h"
#include "sparse/prime.h"

enum { POLL = 1 << 22, REPEATED = 8 }; /* entries of one place, before they are added */

typedef struct {
    frg_context *ctx;
    frgi_prime_limits most;
    int64_t n;       /* indices that occur */
    int32_t *number; /* of an index, -1 where it does not occur */
    int64_t *starts; /* n + 1: rows of G, both triangles */
    int32_t *columns;
    uint64_t *values;
    int32_t *order, *place, *parent;
    int64_t *column_start; /* n + 1: of L */
    int64_t *filled;       /* n */
} counter;

/* ---- G --------------------------------------------------------------------------------------- */

static void count_entries(void *to, int64_t id, int count, const int32_t *at, const uint64_t *value)
{
    (void)id;
    (void)value;
    counter *const c = to;
    for (int k = 0; k < count; k++) {
        int32_t *const number = &c->number[at[k]];
        *number = *number < 0 ? (int32_t)c->n++ : *number;
        c->starts[*number + 1] += count;
    }
}

/** omega_i v_i v_i' into the rows of G. */
static void add_entries(void *to, int64_t id, int count, const int32_t *at, const uint64_t *value)
{
    counter *const c = to;
    uint32_t word[4];
    frgi_philox(0, 0x72616e6b, (uint64_t)id, 0, word);
    const uint64_t omega = 1 + (((uint64_t)word[0] << 32 | word[1]) % (FRGI_PRIME - 1));
    for (int a = 0; a < count; a++) {
        const int32_t row = c->number[at[a]];
        const uint64_t weighted = frgi_prime_times(omega, value[a]);
        for (int b = 0; b < count; b++) {
            const int64_t entry = c->starts[row] + c->filled[row]++;
            c->columns[entry] = c->number[at[b]];
            c->values[entry] = frgi_prime_times(weighted, value[b]);
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
                c->values[*at] = frgi_prime_plus(c->values[*at], c->values[from]);
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
static frg_status assemble(counter *c, int64_t indices, frgi_prime_vectors *each, void *data,
                           bool *fits)
{
    frg_context *const ctx = c->ctx;
    TRY(NEW(ctx, &c->number, indices, "the matrix of the exact rank"));
    TRY(NEW0(ctx, &c->starts, indices + 1, "the matrix of the exact rank"));
    memset(c->number, -1, (size_t)indices * sizeof *c->number);
    frg_status status = each(data, count_entries, c);
    for (int64_t l = 0; l < c->n; l++) {
        c->starts[l + 1] += c->starts[l];
    }
    const int64_t entries = c->starts[c->n];
    *fits = entries <= INT32_MAX && (size_t)entries <= c->most.bytes / 32 &&
            (double)entries <= REPEATED * c->most.entries;
    if (status != FRG_OK || !*fits || c->n == 0) {
        return status;
    }
    TRY(NEW(ctx, &c->columns, entries, "the matrix of the exact rank"));
    TRY(NEW(ctx, &c->values, entries, "the matrix of the exact rank"));
    TRY(NEW(ctx, &c->place, c->n, "the matrix of the exact rank"));
    TRY(NEW0(ctx, &c->filled, c->n, "the matrix of the exact rank"));
    status = each(data, add_entries, c);
    if (status == FRG_OK) {
        join_entries(c);
        *fits = (double)c->starts[c->n] <= c->most.entries;
    }
    return status;
}

/* ---- the factor ------------------------------------------------------------------------------ */

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

/** Row k of L and its pivot; false where a null pivot has an entry below it, which random weights
 *  exclude. */
static bool eliminate(counter *c, factor *f, int32_t k)
{
    int64_t top = reach(c, f, k);
    uint64_t pivot = f->y[k];
    f->y[k] = 0;
    for (; top < c->n; top++) {
        const int32_t i = f->stack[top];
        const uint64_t y = f->y[i], minus = frgi_prime_minus(y);
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
            *to = frgi_prime_plus(*to, frgi_prime_times(f->values[e], minus));
        }
        const uint64_t l = frgi_prime_times(y, f->inverse[i]);
        pivot = frgi_prime_plus(pivot, frgi_prime_times(l, minus));
        f->rows[end] = k;
        f->values[end] = l;
        c->filled[i]++;
        f->work += (double)(end - first);
    }
    f->pivot[k] = pivot;
    f->inverse[k] = pivot ? frgi_prime_inverse(pivot) : 0;
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
            const frg_progress p = {.solver = c->most.solver ? c->most.solver : "rank",
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
    if (work <= c->most.work && (size_t)c->column_start[c->n] <= c->most.bytes / 12) {
        status = count_pivots(c, &f, rank);
    }
done:
    DROP(ctx, &late);
    DROP(ctx, &f.flag);
    DROP(ctx, &f.stack);
    return status;
}

/* ---- the rank -------------------------------------------------------------------------------- */

static frg_status count(counter *c, int64_t indices, frgi_prime_vectors *each, void *data,
                        int64_t *rank)
{
    bool fits = true;
    const frg_status status = assemble(c, indices, each, data, &fits);
    if (status != FRG_OK) {
        return status;
    }
    *rank = c->n == 0 ? 0 : -1;
    return c->n > 0 && fits ? factor_rank(c, rank) : FRG_OK;
}

frg_status frgi_prime_rank(frg_context *ctx, int64_t indices, frgi_prime_vectors *each, void *data,
                           const frgi_prime_limits *most, int64_t *rank)
{
    counter c = {.ctx = ctx, .most = *most};
    *rank = -1;
    const frg_status status = count(&c, indices, each, data, rank);
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
