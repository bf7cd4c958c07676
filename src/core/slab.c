/* slab.c - one block that the contexts of threads take their memory from.
 *
 * A call that makes and frees a few small blocks a thread pays more for them than for what it does
 * in them: what is freed at the top of the heap goes back to the system, and the next call's first
 * touch of each page is a fault.  A block of the parent's is kept by the parent (memory.c).
 *
 * A share is handed out from its front; what does not fit comes from the parent's allocator.  What
 * is freed comes back where it was the last taken.  Where every block is to be seen - a caller's
 * allocator, a memory limit, a sanitizer - there is no slab.
 */
#include "core/context.h"

enum { LEAST = 2 << 20, LINE = 64 }; /* a huge page: the least that is kept for the next call */

#if defined(__SANITIZE_ADDRESS__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

static size_t rounded(size_t bytes)
{
    return frgi_add(bytes, LINE - 1) & ~(size_t)(LINE - 1);
}

static void *take(size_t bytes, void *user)
{
    frgi_slab *const s = user;
    const size_t capacity = rounded(bytes);
    if (!s->base || capacity > s->bytes - s->used) {
        return s->below.alloc(bytes, s->below.user);
    }
    void *const p = s->base + s->used;
    s->used += capacity;
    return p;
}

static void give_back(void *p, size_t bytes, void *user)
{
    frgi_slab *const s = user;
    char *const at = p;
    if (!s->base || at < s->base || at >= s->base + s->bytes) {
        s->below.free(p, bytes, s->below.user);
    } else if (at + rounded(bytes) == s->base + s->used) {
        s->used -= rounded(bytes);
    }
}

frg_status frgi_slab_open(frgi_slab *slabs, int count, frg_context *ctx, size_t each)
{
    char *base = NULL;
    size_t all = frgi_mul(rounded(each), (size_t)count);
    if (sanitized || ctx->opts.memory_limit > 0 ||
        ctx->allocator.alloc != frg_system_allocator()->alloc) {
        all = 0;
    } else {
        all = all < LEAST ? LEAST : all;
        TRY(NEW(ctx, &base, all, "memory of threads"));
    }
    for (int i = 0; i < count; i++) {
        const size_t share = all / (size_t)count / LINE * LINE;
        slabs[i] = (frgi_slab){.below = ctx->allocator,
                               .base = base ? base + (size_t)i * share : NULL,
                               .bytes = share};
    }
    return FRG_OK;
}

void frgi_slab_close(frgi_slab *slabs, frg_context *ctx)
{
    void *base = slabs[0].base;
    frgi_free(ctx, &base);
}

frg_allocator frgi_slab_allocator(frgi_slab *s)
{
    return (frg_allocator){.alloc = take, .free = give_back, .user = s};
}
