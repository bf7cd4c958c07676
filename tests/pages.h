/* pages.h - arenas in pages without rights (mprotect) but within steps: whoever reads or writes one
 * outside of a step faults.
 *
 * guard.fail_at: the step, from 1, that fails with FRG_IO before it does anything; 0: none.
 */
#ifndef FOURGE_TEST_PAGES_H
#define FOURGE_TEST_PAGES_H

#include <sys/mman.h>

#include "core/core.h"
#include "test.h"

enum { GUARD_ARENAS = 256 };

static struct {
    int64_t calls, fail_at; /* steps */
    int depth;              /* of steps in steps */
    int arenas;
    char *base[GUARD_ARENAS];
    size_t bytes[GUARD_ARENAS];
    int64_t opened; /* arenas, in all */
} guard;

static void guard_rights(int rights)
{
    for (int i = 0; i < guard.arenas; i++)
        if (mprotect(guard.base[i], guard.bytes[i], rights) != 0)
            abort();
}

/** A step that cannot fail begins. */
static void guard_begin(void)
{
    if (guard.depth++ == 0)
        guard_rights(PROT_READ | PROT_WRITE);
}

static bool guard_enter(void)
{
    if (++guard.calls == guard.fail_at)
        return false;
    guard_begin();
    return true;
}

static frg_status guard_leave(frg_status status)
{
    if (--guard.depth == 0)
        guard_rights(PROT_NONE);
    return status;
}

static frg_status guard_open(frgi_arena *a, frg_context *ctx, const char *what)
{
    const size_t bytes = (a->used / 4096 + 1) * 4096;
    (void)ctx;
    (void)what;
    if (++guard.calls == guard.fail_at)
        return FRG_IO;
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || guard.arenas == GUARD_ARENAS)
        abort();
    guard.base[guard.arenas] = p;
    guard.bytes[guard.arenas++] = bytes;
    guard.opened++;
    *a = (frgi_arena){.base = p, .bytes = a->used};
    return FRG_OK;
}

static void guard_close(frgi_arena *a, frg_context *ctx)
{
    (void)ctx;
    for (int i = 0; i < guard.arenas; i++)
        if (guard.base[i] == a->base) {
            munmap(guard.base[i], guard.bytes[i]);
            guard.base[i] = guard.base[--guard.arenas];
            guard.bytes[i] = guard.bytes[guard.arenas];
            break;
        }
    *a = (frgi_arena){0};
}

#endif
