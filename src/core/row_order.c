/* row_order.c - a stable counting sort of rows that never jumps further than a bucket.
 *
 *     p(i)  new place of row i: those of a level are consecutive, in the order of the levels
 *     b(i)  = p(i) / window, its bucket
 *
 * Forward, rows go to their buckets in one pass over the old order (each bucket is written from its
 * start to its end), and then within each bucket to their places; back the other way round:
 *
 *     forward  moved[next[b(i)]++] <- x[i];        x[p(k)] <- moved[k],  bucket by bucket
 *     back     moved[k] <- x[p(k)], by buckets;    x[i] <- moved[next[b(i)]++]
 *
 * Two passes in place of n jumps, for as many columns as go together.  Cost: 5 bytes a row for p
 * and b, the columns on their way, a count for each level; moves alone, so that no bit changes.
 *
 * A bucket of rows of 64 bytes is a 32nd of what may lie in memory, or what a core's cache holds
 * where that is less; a byte numbers the buckets, so that of many rows they are larger, and fewer
 * threads have one each.
 */
#include "core/row_order.h"

#include <string.h>

#include "core/spool.h"

enum {
    MOST_BUCKETS = 256,
    LONGEST_ROW = 8 * FRGI_ORDER_COLUMNS,
    WINDOW_BYTES_LEAST = 1 << 16,
    WINDOW_BYTES_MOST = 1 << 23,
    STRETCH = 1 << 18
};

bool frgi_row_order_is_grouped(const int32_t *levels, int64_t n, int64_t n_levels)
{
    int64_t runs = n > 0;
    for (int64_t i = 1; i < n && runs <= n_levels; i++) {
        runs += levels[i] != levels[i - 1];
    }
    return runs == n_levels || n == 0;
}

static void choose_buckets(frgi_row_order *o, const frg_context *ctx)
{
    size_t bytes = frgi_memory_limit(ctx) / 32;
    bytes = bytes < WINDOW_BYTES_LEAST  ? WINDOW_BYTES_LEAST
            : bytes > WINDOW_BYTES_MOST ? WINDOW_BYTES_MOST
                                        : bytes;
    o->window = (int64_t)(bytes / LONGEST_ROW);
    const int64_t least = (o->n + MOST_BUCKETS - 1) / MOST_BUCKETS;
    o->window = o->window < least ? least : o->window;
    o->buckets = (int)((o->n + o->window - 1) / o->window);
}

/** next[l] <- the first place of level l. */
static void count_levels(const int32_t *levels, int64_t n, int64_t n_levels, uint32_t *next)
{
    memset(next, 0, (size_t)n_levels * sizeof *next);
    for (int64_t i = 0; i < n; i++) {
        next[levels[i]]++;
    }
    uint32_t before = 0;
    for (int64_t l = 0; l < n_levels; l++) {
        const uint32_t count = next[l];
        next[l] = before;
        before += count;
    }
}

static void bucket_starts(const frgi_row_order *o, int64_t next[MOST_BUCKETS])
{
    for (int b = 0; b < o->buckets; b++) {
        next[b] = b * o->window;
    }
}

static int64_t stretch_end(const frgi_row_order *o, int64_t begin)
{
    return begin + STRETCH < o->n ? begin + STRETCH : o->n;
}

/** Between stretches pages go, and where `stops` the run may have been stopped. */
static frg_status look(const frg_context *ctx, bool stops)
{
    frgi_spool_look(ctx);
    return stops ? frgi_stopped(ctx) : FRG_OK;
}

/** b(i), and p by buckets, from the next places of the levels. */
static void place_rows(frgi_row_order *o, const frg_context *ctx, const int32_t *levels,
                       uint32_t *level_next)
{
    int64_t next[MOST_BUCKETS];
    bucket_starts(o, next);
    for (int64_t begin = 0; begin < o->n; begin += STRETCH) {
        frgi_spool_look(ctx);
        for (int64_t i = begin; i < stretch_end(o, begin); i++) {
            const uint32_t p = level_next[levels[i]]++;
            const int b = (int)(p / (uint64_t)o->window);
            o->bucket[i] = (uint8_t)b;
            o->place[next[b]++] = p;
        }
    }
}

frg_status frgi_row_order_create(frgi_row_order *o, frg_context *ctx, const int32_t *levels,
                                 int64_t n, int64_t n_levels)
{
    uint32_t *next = NULL;
    *o = (frgi_row_order){.n = n};
    choose_buckets(o, ctx);
    TRY(NEW(ctx, &o->bucket, n, "the order of the rows"));
    TRY(NEW(ctx, &o->place, n, "the order of the rows"));
    TRY(NEW(ctx, &next, n_levels, "starts of the levels"));
    count_levels(levels, n, n_levels, next);
    place_rows(o, ctx, levels, next);
    DROP(ctx, &next);
    return FRG_OK;
}

void frgi_row_order_destroy(frgi_row_order *o, frg_context *ctx)
{
    DROP(ctx, &o->bucket);
    DROP(ctx, &o->place);
    DROP(ctx, &o->moved);
    o->bytes = 0;
}

frg_status frgi_row_order_room(frgi_row_order *o, frg_context *ctx, size_t bytes)
{
    const size_t all = frgi_mul((size_t)o->n, bytes);
    if (all <= o->bytes) {
        return FRG_OK;
    }
    DROP(ctx, &o->moved);
    o->bytes = 0;
    TRY(frgi_alloc(ctx, (void **)&o->moved, all, "columns on their way"));
    o->bytes = all;
    return FRG_OK;
}

/* ---- the passes ------------------------------------------------------------------------------ */

/** A row on its way <- row i of x, or the other way round; size: constant where it is inlined. */
static inline void move_row(const frgi_columns *x, int64_t i, char *moved, bool back,
                            const size_t size)
{
    char *at = (char *)x->base + i * x->row * (ptrdiff_t)size;
    const ptrdiff_t step = x->column * (ptrdiff_t)size;
    for (int c = 0; c < x->count; c++, at += step, moved += size) {
        memcpy(back ? at : moved, back ? moved : at, size);
    }
}

/** moved by buckets <- x in the old order, begin .. end-1; or the other way round. */
static void pass_rows(const frgi_row_order *o, int64_t begin, int64_t end, const frgi_columns *x,
                      bool back, int64_t next[MOST_BUCKETS])
{
    const size_t bytes = x->size * (size_t)x->count;
    for (int64_t i = begin; i < end; i++) {
        char *const k = o->moved + (size_t)next[o->bucket[i]]++ * bytes;
        if (x->size == 8) {
            move_row(x, i, k, back, 8);
        } else {
            move_row(x, i, k, back, 4);
        }
    }
}

static frg_status pass(const frgi_row_order *o, const frg_context *ctx, const frgi_columns *x,
                       bool back, bool stops)
{
    int64_t next[MOST_BUCKETS];
    bucket_starts(o, next);
    for (int64_t begin = 0; begin < o->n; begin += STRETCH) {
        const frg_status stopped = look(ctx, stops);
        if (stopped != FRG_OK) {
            return stopped;
        }
        pass_rows(o, begin, stretch_end(o, begin), x, back, next);
    }
    return FRG_OK;
}

/** x[p(k)] <- moved[k] for the rows of one bucket; or the other way round. */
static void place_bucket(const frgi_row_order *o, int b, const frgi_columns *x, bool back)
{
    const int64_t begin = b * o->window, end = begin + o->window < o->n ? begin + o->window : o->n;
    const size_t bytes = x->size * (size_t)x->count;
    char *moved = o->moved + (size_t)begin * bytes;
    for (int64_t k = begin; k < end; k++, moved += bytes) {
        if (x->size == 8) {
            move_row(x, o->place[k], moved, !back, 8);
        } else {
            move_row(x, o->place[k], moved, !back, 4);
        }
    }
}

/** Buckets that may lie in memory together have a thread each. */
static int place_threads(const frgi_row_order *o, const frg_context *ctx, const frgi_columns *x)
{
    const size_t bucket = (size_t)o->window * x->size * (size_t)x->count;
    const size_t most = frgi_memory_limit(ctx) / 4 / bucket;
    const int threads = frgi_pass_threads(ctx, o->n);
    return (size_t)threads < most ? threads : most > 1 ? (int)most : 1;
}

static frg_status place_all(const frgi_row_order *o, const frg_context *ctx, const frgi_columns *x,
                            bool back, bool stops)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(place_threads(o, ctx, x))
    for (int b = 0; b < o->buckets; b++) {
        if (look(ctx, stops) == FRG_OK) {
            place_bucket(o, b, x, back);
        }
    }
    return look(ctx, stops);
}

frg_status frgi_row_order_forward(const frgi_row_order *o, const frg_context *ctx,
                                  const frgi_columns *from, const frgi_columns *to, bool stops)
{
    const frg_status status = pass(o, ctx, from, false, stops);
    return status == FRG_OK ? place_all(o, ctx, to, false, stops) : status;
}

frg_status frgi_row_order_back(const frgi_row_order *o, const frg_context *ctx,
                               const frgi_columns *from, const frgi_columns *to, bool stops)
{
    const frg_status status = place_all(o, ctx, from, true, stops);
    return status == FRG_OK ? pass(o, ctx, to, true, false) : status;
}

frg_status frgi_row_order_bring(frgi_row_order *o, frg_context *ctx, const frgi_columns *from,
                                const frgi_columns *to)
{
    const int most = from->count < FRGI_ORDER_COLUMNS ? from->count : FRGI_ORDER_COLUMNS;
    const ptrdiff_t size = (ptrdiff_t)from->size;
    TRY(frgi_row_order_room(o, ctx, (size_t)most * from->size));
    for (int c = 0; c < from->count; c += most) {
        frgi_columns x = *from, y = *to;
        x.base = (char *)from->base + c * from->column * size;
        y.base = (char *)to->base + c * to->column * size;
        x.count = y.count = from->count - c < most ? from->count - c : most;
        TRY(frgi_row_order_forward(o, ctx, &x, &y, false));
    }
    return FRG_OK;
}
