/* memory.c - blocks of the context's allocator: aligned, counted, limited; and the arena.
 *
 *     | 64 bytes: struct block | the caller's bytes ... |
 *
 * The header in front keeps the size, so that free and resize need no size and the count stays
 * right.
 *
 * Large blocks of the system's allocator are not given back at once: fresh pages cost as much as a
 * pass or two over them (the kernel clears them), and a plan that is made anew needs the same sizes
 * again.  A context keeps what it has freed, at most twice what it had in use at one time (one
 * step's blocks are not the next one's) and never beyond its memory limit, and marks large ones so
 * that the kernel may take the pages whenever it is short of some.  Marking interrupts the other
 * cores (their address translations end), which takes some 40 us.  A context with a spool keeps
 * nothing: what memory it has is for pages of its files.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/spool.h"

enum {
    ALIGN = 64,
    HUGE_PAGE = 2 << 20,
    LEAST_KEPT = 1 << 17, /* smaller ones the system's allocator keeps, larger ones it gives back */
    LEAST_MARKED = 32 << 20
};

typedef struct {
    size_t bytes;    /* the caller's */
    size_t capacity; /* of the block, this header included */
    bool spooled;    /* it lies in a file (spool.c) */
} block;

/** Blocks of a huge page and more are aligned to it and advised: the first touch of a fresh 24 MB
 *  buffer costs 6.6 ms with 4 KB pages and 1.1 ms with huge ones.  A tail of more than half a page
 *  is filled up to one; in small pages it would take hundreds of faults. */
static void *system_alloc(size_t bytes, void *user)
{
    (void)user;
    const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : ALIGN;
    if (bytes > SIZE_MAX - 2 * align) {
        return NULL;
    }
    const size_t tail = bytes % HUGE_PAGE;
    if (align == HUGE_PAGE && tail > HUGE_PAGE / 2) {
        bytes += HUGE_PAGE - tail;
    }
    void *p = NULL;
    if (posix_memalign(&p, align, bytes)) {
        return NULL;
    }
    if (align == HUGE_PAGE) {
        madvise(p, bytes, MADV_HUGEPAGE);
    }
    return p;
}

static void system_free(void *p, size_t bytes, void *user)
{
    (void)bytes;
    (void)user;
    free(p);
}

const frg_allocator *frg_system_allocator(void)
{
    static const frg_allocator table = {.alloc = system_alloc, .free = system_free};
    return &table;
}

size_t frgi_mul(size_t a, size_t b)
{
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

size_t frgi_add(size_t a, size_t b)
{
    size_t sum;
    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

/* ---- kept blocks ----------------------------------------------------------------------------- */

static void drop_kept(frg_context *ctx, int i)
{
    block *b = ctx->heap.kept[i];
    ctx->heap.kept_bytes -= b->capacity;
    ctx->heap.kept[i] = ctx->heap.kept[--ctx->heap.n_kept];
    ctx->allocator.free(b, b->capacity, ctx->allocator.user);
}

void frgi_drop_kept(frg_context *ctx)
{
    while (ctx->heap.n_kept > 0) {
        drop_kept(ctx, ctx->heap.n_kept - 1);
    }
}

/** The smallest kept block that fits without wasting more than a quarter, or NULL. */
static block *take_kept(frg_context *ctx, size_t total)
{
    int best = -1;
    for (int i = 0; i < ctx->heap.n_kept; i++) {
        const size_t capacity = ((const block *)ctx->heap.kept[i])->capacity;
        if (capacity >= total && capacity - total <= total / 4 &&
            (best < 0 || capacity < ((const block *)ctx->heap.kept[best])->capacity)) {
            best = i;
        }
    }
    if (best < 0) {
        return NULL;
    }
    block *b = ctx->heap.kept[best];
    ctx->heap.kept_bytes -= b->capacity;
    ctx->heap.kept[best] = ctx->heap.kept[--ctx->heap.n_kept];
    return b;
}

/** Are `more` bytes besides the kept ones and the ones in use beyond the memory limit? */
static bool over_limit(const frg_context *ctx, size_t more)
{
    return ctx->opts.memory_limit > 0 && frgi_add(frgi_add(ctx->heap.held, ctx->heap.kept_bytes),
                                                  more) > (size_t)ctx->opts.memory_limit;
}

/** Keeps a block that the caller has freed; false where it has to go. */
static bool keep(frg_context *ctx, block *b)
{
    if (ctx->allocator.alloc != system_alloc || ctx->spool || b->capacity < LEAST_KEPT ||
        ctx->heap.n_kept == KEPT_BLOCKS ||
        ctx->heap.kept_bytes + b->capacity > 2 * ctx->heap.peak || over_limit(ctx, b->capacity)) {
        return false;
    }
    /* whole huge pages, less the one with the header: what lies behind the block is not ours */
    if (b->capacity >= LEAST_MARKED) {
        madvise((char *)b + HUGE_PAGE, (b->capacity / HUGE_PAGE - 1) * HUGE_PAGE, MADV_FREE);
    }
    ctx->heap.kept[ctx->heap.n_kept++] = b;
    ctx->heap.kept_bytes += b->capacity;
    return true;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/** A block of `total` bytes, kept or fresh.  Where memory is short, kept ones make room for a fresh
 *  one. */
static block *get_block(frg_context *ctx, size_t total)
{
    block *b = total >= LEAST_KEPT ? take_kept(ctx, total) : NULL;
    if (b) {
        return b;
    }
    while (ctx->heap.n_kept > 0 &&
           (frgi_add(frgi_add(ctx->heap.held, total), ctx->heap.kept_bytes) > 2 * ctx->heap.peak ||
            over_limit(ctx, total))) {
        drop_kept(ctx, 0);
    }
    b = ctx->allocator.alloc(total, ctx->allocator.user);
    if (!b && ctx->heap.n_kept > 0) {
        frgi_drop_kept(ctx);
        b = ctx->allocator.alloc(total, ctx->allocator.user);
    }
    if (b) {
        b->capacity = total;
    }
    return b;
}

static block *block_of(void *p)
{
    return (block *)(void *)((char *)p - ALIGN);
}

/** A block on the disk, of zeros. */
static frg_status alloc_spooled(frg_context *ctx, void **out, size_t bytes, const char *what)
{
    void *p;
    TRY(frgi_spool_get(ctx, bytes + ALIGN, what, &p));
    *(block *)p = (block){.bytes = bytes, .capacity = bytes + ALIGN, .spooled = true};
    *out = (char *)p + ALIGN;
    return FRG_OK;
}

frg_status frgi_alloc(frg_context *ctx, void **out, size_t bytes, const char *what)
{
    *out = NULL;
    const size_t total = frgi_add(bytes, ALIGN);
    if (frgi_spool_takes(ctx, total) && total != SIZE_MAX) {
        return alloc_spooled(ctx, out, bytes, what);
    }
    const bool over = ctx->opts.memory_limit > 0 &&
                      frgi_add(ctx->heap.held, total) > (size_t)ctx->opts.memory_limit;
    block *b = over || total == SIZE_MAX ? NULL : get_block(ctx, total);
    if (!b) {
        FAIL(ctx, E_MEMORY, "%zu bytes for %s could not be had%s; %zu bytes are held", bytes, what,
             over ? " under the memory limit" : "", ctx->heap.held);
    }
    b->bytes = bytes;
    b->spooled = false;
    ctx->heap.held += total;
    ctx->heap.peak = ctx->heap.held > ctx->heap.peak ? ctx->heap.held : ctx->heap.peak;
    *out = (char *)b + ALIGN;
    return FRG_OK;
}

frg_status frgi_calloc(frg_context *ctx, void **out, size_t bytes, const char *what)
{
    TRY(frgi_alloc(ctx, out, bytes, what));
    if (!block_of(*out)->spooled) {
        memset(*out, 0, bytes);
    }
    return FRG_OK;
}

/** A block on the disk stays there, and is not copied. */
static frg_status resize_spooled(frg_context *ctx, void **p, size_t bytes, const char *what)
{
    void *b = block_of(*p);
    const size_t total = frgi_add(bytes, ALIGN);
    if (total > INT64_MAX) {
        FAIL(ctx, E_MEMORY, "%zu bytes for %s could not be had", bytes, what);
    }
    TRY(frgi_spool_resize(ctx, &b, total, what));
    *(block *)b = (block){.bytes = bytes, .capacity = total, .spooled = true};
    *p = (char *)b + ALIGN;
    return FRG_OK;
}

frg_status frgi_resize(frg_context *ctx, void **p, size_t bytes, const char *what)
{
    void *fresh;
    if (*p && block_of(*p)->spooled) {
        return resize_spooled(ctx, p, bytes, what);
    }
    TRY(frgi_alloc(ctx, &fresh, bytes, what));
    if (*p) {
        const size_t old = block_of(*p)->bytes;
        memcpy(fresh, *p, old < bytes ? old : bytes);
        frgi_free(ctx, p);
    }
    *p = fresh;
    return FRG_OK;
}

void frgi_free(frg_context *ctx, void **p)
{
    if (!*p) {
        return;
    }
    block *b = block_of(*p);
    if (b->spooled) {
        frgi_spool_return(ctx, b);
        *p = NULL;
        return;
    }
    ctx->heap.held -= b->bytes + ALIGN;
    if (!keep(ctx, b)) {
        ctx->allocator.free(b, b->capacity, ctx->allocator.user);
    }
    *p = NULL;
}

size_t frgi_memory_limit(const frg_context *ctx)
{
    return ctx->opts.memory_limit > 0 ? (size_t)ctx->opts.memory_limit : frgi_machine_memory(ctx);
}

size_t frgi_memory_allowed(const frg_context *ctx)
{
    return ctx->spool ? frgi_machine_memory(ctx) : frgi_memory_limit(ctx);
}

void *frgi_take(frgi_arena *a, size_t bytes)
{
    const size_t rounded = frgi_add(bytes, ALIGN - 1) & ~(size_t)(ALIGN - 1);
    void *p = a->base ? a->base + a->used : NULL;
    a->used = bytes > SIZE_MAX - ALIGN ? SIZE_MAX : frgi_add(a->used, rounded);
    assert(!a->base || a->used <= a->bytes);
    return a->base && a->used > a->bytes ? NULL : p; /* never what lies behind the block */
}

frg_status frgi_arena_open(frgi_arena *a, frg_context *ctx, const char *what)
{
    void *base;
    TRY(frgi_alloc(ctx, &base, a->used, what));
    *a = (frgi_arena){.base = base, .bytes = a->used};
    return FRG_OK;
}

void frgi_arena_close(frgi_arena *a, frg_context *ctx)
{
    void *base = a->base;
    frgi_free(ctx, &base);
    *a = (frgi_arena){0};
}
