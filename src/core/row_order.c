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
 * What is written goes there in chunks by a call of the system: pages of a mapped file that are
 * written to cost a fault each (4 KB), and the thread that keeps them few takes them away again.
 *
 * A bucket of rows of 64 bytes is a 32nd of what may lie in memory, or what a core's cache holds
 * where that is less; a byte numbers the buckets, so that of many rows they are larger, and fewer
 * threads have one each.
 */
#include "core/row_order.h"

#include <omp.h>
#include <string.h>

#include "core/spool.h"

enum {
    MOST_BUCKETS = 256,
    LONGEST_ROW = 8 * FRGI_ORDER_COLUMNS,
    WINDOW_BYTES_LEAST = 1 << 16,
    WINDOW_BYTES_MOST = 1 << 23,
    CHUNK = (1 << 16) + 64, /* bytes; fronts of chunks lie in different sets of the caches */
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
    o->buckets = (int)(1 + (o->n - 1) / o->window);
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

/** Between stretches pages go, `bytes` are reported, and where `stops` the run may have been
 *  stopped. */
static frg_status between_stretches(frg_context *ctx, int64_t bytes, bool stops)
{
    frgi_spool_trim(ctx);
    frgi_pass_did(ctx, bytes);
    return stops ? frgi_stopped(ctx) : FRG_OK;
}

/** b(i), and p by buckets, from the next places of the levels. */
static void place_rows(frgi_row_order *o, const frg_context *ctx, const int32_t *levels,
                       uint32_t *level_next)
{
    int64_t next[MOST_BUCKETS];
    bucket_starts(o, next);
    for (int64_t begin = 0; begin < o->n; begin += STRETCH) {
        frgi_spool_trim(ctx);
        for (int64_t i = begin; i < stretch_end(o, begin); i++) {
            const uint32_t p = level_next[levels[i]]++;
            const int b = (int)(p / (uint64_t)o->window);
            o->bucket[i] = (uint8_t)b;
            o->place[next[b]++] = p;
        }
    }
}

frg_status frgi_row_order_open(frgi_row_order *o, frg_context *ctx, int64_t n, int64_t window,
                               int buckets)
{
    *o = (frgi_row_order){.n = n, .window = window, .buckets = buckets};
    TRY(NEW(ctx, &o->bucket, n, "the order of the rows"));
    return NEW(ctx, &o->place, n, "the order of the rows");
}

frg_status frgi_row_order_create(frgi_row_order *o, frg_context *ctx, const int32_t *levels,
                                 int64_t n, int64_t n_levels)
{
    uint32_t *next = NULL;
    *o = (frgi_row_order){.n = n};
    choose_buckets(o, ctx);
    TRY(frgi_row_order_open(o, ctx, n, o->window, o->buckets));
    TRY(NEW(ctx, &next, n_levels, "starts of the levels"));
    count_levels(levels, n, n_levels, next);
    place_rows(o, ctx, levels, next);
    DROP(ctx, &next);
    return FRG_OK;
}

/* ---- an order that was read ------------------------------------------------------------------ */

bool frgi_row_order_fits(int64_t n, int64_t window, int64_t buckets)
{
    const int64_t usual = WINDOW_BYTES_MOST / LONGEST_ROW, most = n > usual ? n : usual;
    return window == 0 ? buckets == 0
                       : window > 0 && window <= most && buckets <= MOST_BUCKETS &&
                             buckets == 1 + (n - 1) / window;
}

/** Is each of `count` places from `first` on there once?  seen: a bit for each place. */
static bool is_once(const uint32_t *at, int64_t first, int64_t count, unsigned char *seen)
{
    bool once = true;
    for (int64_t i = 0; i < count && once; i++) {
        const int64_t p = at[i];
        once = p >= first && p < first + count && !(seen[p / 8] >> p % 8 & 1);
        seen[once ? p / 8 : 0] |= (unsigned char)(1u << p % 8);
    }
    return once;
}

frg_status frgi_row_order_once(frg_context *ctx, const uint32_t *at, int64_t n, bool *once)
{
    unsigned char *seen;
    TRY(NEW0(ctx, &seen, n / 8 + 1, "places of the rows"));
    *once = is_once(at, 0, n, seen);
    DROP(ctx, &seen);
    return FRG_OK;
}

static int64_t rows_of(const frgi_row_order *o, int b)
{
    return b < o->buckets - 1 ? o->window : o->n - b * o->window;
}

frg_status frgi_row_order_check(const frgi_row_order *o, frg_context *ctx, bool *sound)
{
    int64_t rows[MOST_BUCKETS] = {0};
    unsigned char *seen;
    *sound = true;
    for (int64_t i = 0; i < o->n && *sound; i++) {
        *sound = o->bucket[i] < o->buckets;
        rows[*sound ? o->bucket[i] : 0]++;
    }
    TRY(NEW0(ctx, &seen, o->n / 8 + 1, "places of the rows"));
    for (int b = 0; b < o->buckets && *sound; b++) {
        const int64_t first = b * o->window;
        *sound = rows[b] == rows_of(o, b) && is_once(o->place + first, first, rows[b], seen);
    }
    DROP(ctx, &seen);
    return FRG_OK;
}

void frgi_row_order_destroy(frgi_row_order *o, frg_context *ctx)
{
    DROP(ctx, &o->bucket);
    DROP(ctx, &o->place);
    DROP(ctx, &o->moved);
    DROP(ctx, &o->buffer);
    o->bytes = o->buffer_bytes = 0;
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** A window for each thread and CHUNK bytes for each bucket, as far as both stay below what goes to
 *  the disk; a window and a row for each bucket in any case. */
static size_t buffer_for(const frgi_row_order *o, const frg_context *ctx, size_t bytes)
{
    const size_t buckets = (size_t)o->buckets, window = (size_t)o->window * bytes;
    const size_t most = frgi_memory_limit(ctx) / 17, fit = most / window;
    const size_t threads = least_of((size_t)frgi_pass_threads(ctx, o->n), buckets);
    const size_t windows = window * (fit > 1 ? least_of(threads, fit) : 1);
    const size_t chunks = least_of(buckets * CHUNK, (size_t)o->n * bytes);
    const size_t some = least_of(chunks, most),
                 all = some > buckets * bytes ? some : buckets * bytes;
    return windows > all ? windows : all;
}

frg_status frgi_row_order_room(frgi_row_order *o, frg_context *ctx, size_t bytes)
{
    const size_t all = frgi_mul((size_t)o->n, bytes), buffer = buffer_for(o, ctx, bytes);
    if (all <= o->bytes) {
        return FRG_OK;
    }
    DROP(ctx, &o->moved);
    DROP(ctx, &o->buffer);
    o->bytes = o->buffer_bytes = 0;
    TRY(frgi_alloc(ctx, (void **)&o->moved, all, "columns on their way"));
    TRY(frgi_alloc(ctx, (void **)&o->buffer, buffer, "columns on their way"));
    o->bytes = all;
    o->buffer_bytes = buffer;
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

static inline void move(const frgi_columns *x, int64_t i, char *moved, bool back)
{
    if (x->size == 8) {
        move_row(x, i, moved, back, 8);
    } else {
        move_row(x, i, moved, back, 4);
    }
}

static size_t row_bytes(const frgi_columns *x)
{
    return x->size * (size_t)x->count;
}

/** `rows` rows of x from `first` on, its row 0: as they lie there, in `buffer`, or where they are
 *  not side by side the rows themselves. */
static frgi_columns buffered(const frgi_columns *x, int64_t first, int64_t rows, char *buffer)
{
    frgi_columns y = *x;
    if (x->row == 1 || (x->row == x->count && x->column == 1)) {
        y.column = x->row == 1 ? rows : 1;
        y.base = buffer;
    } else {
        y.base = (char *)x->base + first * x->row * (ptrdiff_t)x->size;
    }
    return y;
}

/** x <- what `buffered` gave. */
static void put_rows(const frg_context *ctx, frgi_spool_place place, const frgi_columns *x,
                     int64_t first, int64_t rows, const char *buffer)
{
    const ptrdiff_t size = (ptrdiff_t)x->size;
    const size_t bytes = (size_t)rows * x->size;
    char *to = (char *)x->base + first * x->row * size;
    if (x->row == 1) {
        for (int c = 0; c < x->count; c++, to += x->column * size, buffer += bytes) {
            frgi_spool_put(ctx, place, to, buffer, bytes);
        }
    } else if (x->row == x->count && x->column == 1) {
        frgi_spool_put(ctx, place, to, buffer, bytes * (size_t)x->count);
    }
}

/** Rows on their way to a bucket wait in its chunk until that is full. */
typedef struct {
    int64_t next[MOST_BUCKETS]; /* place of the chunk's first row */
    int64_t held[MOST_BUCKETS]; /* rows in it */
    int64_t most;
    frgi_spool_place place; /* of moved */
} chunks;

static char *chunk_of(const frgi_row_order *o, const chunks *c, int b, size_t bytes)
{
    return o->buffer + (size_t)(b * c->most) * bytes;
}

static void empty_chunk(const frgi_row_order *o, const frg_context *ctx, chunks *c, int b,
                        size_t bytes)
{
    frgi_spool_put(ctx, c->place, o->moved + (size_t)c->next[b] * bytes, chunk_of(o, c, b, bytes),
                   (size_t)c->held[b] * bytes);
    c->next[b] += c->held[b];
    c->held[b] = 0;
}

/** moved by buckets <- x in the old order. */
static frg_status to_buckets(const frgi_row_order *o, frg_context *ctx, const frgi_columns *x,
                             bool stops)
{
    const size_t bytes = row_bytes(x);
    chunks c = {.most = (int64_t)(o->buffer_bytes / bytes / (size_t)o->buckets),
                .place = frgi_spool_place_of(ctx, o->moved)};
    bucket_starts(o, c.next);
    for (int64_t begin = 0; begin < o->n; begin += STRETCH) {
        const frg_status stopped =
            between_stretches(ctx, begin > 0 ? STRETCH * (int64_t)bytes : 0, stops);
        if (stopped != FRG_OK) {
            return stopped;
        }
        for (int64_t i = begin; i < stretch_end(o, begin); i++) {
            const int b = o->bucket[i];
            move(x, i, chunk_of(o, &c, b, bytes) + (size_t)c.held[b] * bytes, false);
            if (++c.held[b] == c.most) {
                empty_chunk(o, ctx, &c, b, bytes);
            }
        }
    }
    for (int b = 0; b < o->buckets; b++) {
        empty_chunk(o, ctx, &c, b, bytes);
    }
    return FRG_OK;
}

/** x in the old order <- moved by buckets. */
static void from_buckets(const frgi_row_order *o, frg_context *ctx, const frgi_columns *x)
{
    int64_t next[MOST_BUCKETS];
    const size_t bytes = row_bytes(x), most = o->buffer_bytes / bytes;
    const int64_t step = most < STRETCH ? (int64_t)most : STRETCH;
    const frgi_spool_place place = frgi_spool_place_of(ctx, x->base);
    bucket_starts(o, next);
    for (int64_t begin = 0; begin < o->n; begin += step) {
        const int64_t end = begin + step < o->n ? begin + step : o->n;
        const frgi_columns y = buffered(x, begin, end - begin, o->buffer);
        (void)between_stretches(ctx, begin > 0 ? step * (int64_t)bytes : 0, false);
        for (int64_t i = begin; i < end; i++) {
            move(&y, i - begin, o->moved + (size_t)next[o->bucket[i]]++ * bytes, true);
        }
        put_rows(ctx, place, x, begin, end - begin, o->buffer);
    }
}

/** The passes over x and the rows on their way, and where these lie. */
typedef struct {
    const frgi_columns *x;
    bool back;
    frgi_spool_place of_x, of_moved;
} placing;

/** x[p(k)] <- moved[k] for the rows of one bucket; or the other way round. */
static void place_bucket(const frgi_row_order *o, const frg_context *ctx, int b, const placing *p,
                         char *buffer)
{
    const int64_t begin = b * o->window, end = begin + o->window < o->n ? begin + o->window : o->n;
    const size_t bytes = row_bytes(p->x);
    char *const moved = o->moved + (size_t)begin * bytes;
    if (p->back) {
        for (int64_t k = begin; k < end; k++) {
            move(p->x, o->place[k], buffer + (size_t)(k - begin) * bytes, false);
        }
        frgi_spool_put(ctx, p->of_moved, moved, buffer, (size_t)(end - begin) * bytes);
    } else {
        const frgi_columns y = buffered(p->x, begin, end - begin, buffer);
        for (int64_t k = begin; k < end; k++) {
            move(&y, o->place[k] - begin, moved + (size_t)(k - begin) * bytes, true);
        }
        put_rows(ctx, p->of_x, p->x, begin, end - begin, buffer);
    }
}

/** Buckets that have a window of the buffer each have a thread each. */
static int place_threads(const frgi_row_order *o, const frg_context *ctx, size_t window)
{
    const size_t most = o->buffer_bytes / window;
    const int threads = frgi_pass_threads(ctx, o->n);
    return (size_t)threads < most ? threads : (int)most;
}

static frg_status place_all(const frgi_row_order *o, frg_context *ctx, const frgi_columns *x,
                            bool back, bool stops)
{
    const size_t window = (size_t)o->window * row_bytes(x);
    const placing p = {x, back, frgi_spool_place_of(ctx, x->base),
                       frgi_spool_place_of(ctx, o->moved)};
#pragma omp parallel for schedule(dynamic, 1) num_threads(place_threads(o, ctx, window))
    for (int b = 0; b < o->buckets; b++) {
        if (between_stretches(ctx, (int64_t)window, stops) == FRG_OK) {
            place_bucket(o, ctx, b, &p, o->buffer + (size_t)omp_get_thread_num() * window);
        }
    }
    return between_stretches(ctx, 0, stops);
}

frg_status frgi_row_order_forward(const frgi_row_order *o, frg_context *ctx,
                                  const frgi_columns *from, const frgi_columns *to, bool stops)
{
    const frg_status status = to_buckets(o, ctx, from, stops);
    return status == FRG_OK ? place_all(o, ctx, to, false, stops) : status;
}

frg_status frgi_row_order_back(const frgi_row_order *o, frg_context *ctx, const frgi_columns *from,
                               const frgi_columns *to, bool stops)
{
    const frg_status status = place_all(o, ctx, from, true, stops);
    if (status == FRG_OK) {
        from_buckets(o, ctx, to);
    }
    return status;
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
