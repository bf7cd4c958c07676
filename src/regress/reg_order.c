/* reg_order.c - a stable counting sort of rows that never jumps further than a bucket.
 *
 *     p(i)  new place of row i: those of a level are consecutive, in the order of the codes
 *     b(i)  = p(i) / window, its bucket; a bucket is a 64th of what may lie in memory
 *
 * Forward, a column goes to its buckets in one pass over the old order (each bucket is written from
 * its start to its end), and then within each bucket to its places; back the other way round:
 *
 *     forward  moved[next[b(i)]++] <- x[i];        x[p(k)] <- moved[k],  bucket by bucket
 *     back     moved[k] <- x[p(k)], by buckets;    x[i] <- moved[next[b(i)]++]
 *
 * Two passes a column in place of n jumps.  Cost: 5 bytes a row for p and b, 8 for a column on its
 * way, a count for each level; moves alone, so that no bit changes.
 */
#include "regress/reg_order.h"

#include <string.h>

#include "formula/program.h"

enum { MOST_BUCKETS = 256, WINDOW_BYTES_LEAST = 1 << 16, STRETCH = 1 << 18 };

bool frgi_order_is_grouped(const int32_t *codes, int64_t n, int64_t levels)
{
    int64_t runs = n > 0;
    for (int64_t i = 1; i < n && runs <= levels; i++) {
        runs += codes[i] != codes[i - 1];
    }
    return runs == levels || n == 0;
}

/** Buckets of a 64th of the memory allowed, as many as a byte numbers at most. */
static void choose_buckets(frgi_order *o, const frg_context *ctx)
{
    size_t bytes = frgi_memory_limit(ctx) / 64;
    bytes = bytes < WINDOW_BYTES_LEAST ? WINDOW_BYTES_LEAST : bytes;
    o->window = (int64_t)(bytes / sizeof(double));
    const int64_t least = (o->n + MOST_BUCKETS - 1) / MOST_BUCKETS;
    o->window = o->window < least ? least : o->window;
    o->buckets = (int)((o->n + o->window - 1) / o->window);
}

/** next[c] <- the first place of level c. */
static void count_levels(const int32_t *codes, int64_t n, int64_t levels, uint32_t *next)
{
    memset(next, 0, (size_t)levels * sizeof *next);
    for (int64_t i = 0; i < n; i++) {
        next[codes[i]]++;
    }
    uint32_t before = 0;
    for (int64_t c = 0; c < levels; c++) {
        const uint32_t count = next[c];
        next[c] = before;
        before += count;
    }
}

static void bucket_starts(const frgi_order *o, int64_t next[MOST_BUCKETS])
{
    for (int b = 0; b < o->buckets; b++) {
        next[b] = b * o->window;
    }
}

static int64_t stretch_end(const frgi_order *o, int64_t begin)
{
    return begin + STRETCH < o->n ? begin + STRETCH : o->n;
}

/** b(i), and p by buckets, from the next places of the levels. */
static frg_status place_rows(frgi_order *o, const frg_context *ctx, const int32_t *codes,
                             uint32_t *level_next)
{
    int64_t next[MOST_BUCKETS];
    bucket_starts(o, next);
    for (int64_t begin = 0; begin < o->n; begin += STRETCH) {
        const frg_status stopped = frgi_stopped(ctx);
        if (stopped != FRG_OK) {
            return stopped;
        }
        for (int64_t i = begin; i < stretch_end(o, begin); i++) {
            const uint32_t p = level_next[codes[i]]++;
            const int b = (int)(p / (uint64_t)o->window);
            o->bucket[i] = (uint8_t)b;
            o->place[next[b]++] = p;
        }
    }
    return FRG_OK;
}

frg_status frgi_order_create(frgi_order *o, frg_context *ctx, const int32_t *codes, int64_t n,
                             int64_t levels)
{
    uint32_t *next = NULL;
    *o = (frgi_order){.n = n};
    choose_buckets(o, ctx);
    TRY(NEW(ctx, &o->bucket, n, "the order of the rows"));
    TRY(NEW(ctx, &o->place, n, "the order of the rows"));
    TRY(NEW(ctx, &o->moved, frgi_mul((size_t)n, sizeof(double)), "a column on its way"));
    TRY(NEW(ctx, &next, levels, "starts of the levels"));
    count_levels(codes, n, levels, next);
    const frg_status status = place_rows(o, ctx, codes, next);
    DROP(ctx, &next);
    return status;
}

void frgi_order_destroy(frgi_order *o, frg_context *ctx)
{
    DROP(ctx, &o->bucket);
    DROP(ctx, &o->place);
    DROP(ctx, &o->moved);
}

/* ---- the passes ------------------------------------------------------------------------------ */

/** moved by buckets <- x in the old order, begin .. end-1; or the other way. */
static void pass_rows(const frgi_order *o, int64_t begin, int64_t end, void *x, size_t size,
                      bool back, int64_t next[MOST_BUCKETS])
{
    double *const wide = x, *const wide_moved = o->moved;
    int32_t *const narrow = x, *const narrow_moved = o->moved;
    for (int64_t i = begin; size == 8 && i < end; i++) {
        const int64_t k = next[o->bucket[i]]++;
        if (back) {
            wide[i] = wide_moved[k];
        } else {
            wide_moved[k] = wide[i];
        }
    }
    for (int64_t i = begin; size == 4 && i < end; i++) {
        const int64_t k = next[o->bucket[i]]++;
        if (back) {
            narrow[i] = narrow_moved[k];
        } else {
            narrow_moved[k] = narrow[i];
        }
    }
}

static frg_status pass(const frgi_order *o, const frg_context *ctx, void *x, size_t size, bool back)
{
    int64_t next[MOST_BUCKETS];
    bucket_starts(o, next);
    for (int64_t begin = 0; begin < o->n; begin += STRETCH) {
        const frg_status stopped = frgi_stopped(ctx);
        if (stopped != FRG_OK) {
            return stopped;
        }
        pass_rows(o, begin, stretch_end(o, begin), x, size, back, next);
    }
    return FRG_OK;
}

/** x[p(k)] <- moved[k] for the rows of one bucket; or the other way. */
static void place_bucket(const frgi_order *o, int b, void *x, size_t size, bool back)
{
    const int64_t begin = b * o->window, end = begin + o->window < o->n ? begin + o->window : o->n;
    double *const wide = x, *const wide_moved = o->moved;
    int32_t *const narrow = x, *const narrow_moved = o->moved;
    for (int64_t k = begin; size == 8 && k < end; k++) {
        if (back) {
            wide_moved[k] = wide[o->place[k]];
        } else {
            wide[o->place[k]] = wide_moved[k];
        }
    }
    for (int64_t k = begin; size == 4 && k < end; k++) {
        if (back) {
            narrow_moved[k] = narrow[o->place[k]];
        } else {
            narrow[o->place[k]] = narrow_moved[k];
        }
    }
}

static frg_status place_all(const frgi_order *o, const frg_context *ctx, void *x, size_t size,
                            bool back)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(ctx, o->n))
    for (int b = 0; b < o->buckets; b++) {
        if (frgi_stopped(ctx) == FRG_OK) {
            place_bucket(o, b, x, size, back);
        }
    }
    return frgi_stopped(ctx);
}

frg_status frgi_order_forward(const frgi_order *o, const frg_context *ctx, const void *from,
                              void *to, size_t size)
{
    const frg_status status = pass(o, ctx, (void *)(uintptr_t)from, size, false);
    return status == FRG_OK ? place_all(o, ctx, to, size, false) : status;
}

frg_status frgi_order_back(const frgi_order *o, const frg_context *ctx, const void *from, void *to,
                           size_t size)
{
    const frg_status status = place_all(o, ctx, (void *)(uintptr_t)from, size, true);
    return status == FRG_OK ? pass(o, ctx, to, size, true) : status;
}
