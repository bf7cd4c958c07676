/* memory.c - blocks of the context's allocator: aligned, counted, limited; and the arena.
 *
 *     | 64 bytes: struct block | the caller's bytes ... |
 *
 * The header in front keeps the size, so that free and resize need no size and the count cannot drift.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/context.h"

enum { ALIGN = 64, HUGE_PAGE = 2 << 20 };

typedef struct {
    size_t bytes; /* the caller's */
} block;

/** Blocks of a huge page and more are aligned to it and advised: the first touch of a fresh 24 MB buffer
 *  costs 6.6 ms with 4 KB pages and 1.1 ms with huge ones.  A tail of more than half a page is filled up to
 *  one; in small pages it would take hundreds of faults. */
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

frg_status frgi_alloc(frg_context *ctx, void **out, size_t bytes, const char *what)
{
    *out = NULL;
    const size_t total = frgi_add(bytes, ALIGN);
    const bool over =
        ctx->memory_limit > 0 && frgi_add(ctx->held, total) > (size_t)ctx->memory_limit;
    block *b = over || total == SIZE_MAX ? NULL : ctx->allocator.alloc(total, ctx->allocator.user);
    if (!b) {
        FAIL(ctx, E_MEMORY, "%zu bytes for %s could not be had%s; %zu bytes are held", bytes, what,
             over ? " under the memory limit" : "", ctx->held);
    }
    b->bytes = bytes;
    ctx->held += total;
    ctx->peak = ctx->held > ctx->peak ? ctx->held : ctx->peak;
    *out = (char *)b + ALIGN;
    return FRG_OK;
}

frg_status frgi_calloc(frg_context *ctx, void **out, size_t bytes, const char *what)
{
    TRY(frgi_alloc(ctx, out, bytes, what));
    memset(*out, 0, bytes);
    return FRG_OK;
}

static block *block_of(void *p)
{
    return (block *)(void *)((char *)p - ALIGN);
}

frg_status frgi_resize(frg_context *ctx, void **p, size_t bytes, const char *what)
{
    void *fresh;
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
    const size_t total = b->bytes + ALIGN;
    ctx->held -= total;
    ctx->allocator.free(b, total, ctx->allocator.user);
    *p = NULL;
}

size_t frgi_memory_allowed(const frg_context *ctx)
{
    if (ctx->memory_limit > 0) {
        return (size_t)ctx->memory_limit;
    }
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? frgi_mul((size_t)pages, (size_t)page) : SIZE_MAX;
}

void *frgi_take(frgi_arena *a, size_t bytes)
{
    const size_t rounded = frgi_add(bytes, ALIGN - 1) & ~(size_t)(ALIGN - 1);
    void *p = a->base ? a->base + a->used : NULL;
    a->used = bytes > SIZE_MAX - ALIGN ? SIZE_MAX : frgi_add(a->used, rounded);
    assert(!a->base || a->used <= a->bytes);
    return p;
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
