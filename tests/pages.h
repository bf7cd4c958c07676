/* pages.h - arenas in pages without rights (mprotect) but within steps: whoever reads or writes one
 * outside of a step faults.
 *
 * guard.fail_at: the step, from 1, that fails with FRG_IO before it does anything; 0: none.  Steps of
 * several threads may overlap: there are rights until the last of them ends.
 */
#ifndef FOURGE_TEST_PAGES_H
#define FOURGE_TEST_PAGES_H

#include <sched.h>
#include <stdatomic.h>
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
static atomic_flag guard_lock = ATOMIC_FLAG_INIT;

static void guard_take(void)
{
    while (atomic_flag_test_and_set(&guard_lock))
        sched_yield();
}

static void guard_give(void)
{
    atomic_flag_clear(&guard_lock);
}

static void guard_rights(int rights)
{
    for (int i = 0; i < guard.arenas; i++)
        if (mprotect(guard.base[i], guard.bytes[i], rights) != 0)
            abort();
}

/** A step that cannot fail begins. */
static void guard_begin(void)
{
    guard_take();
    if (guard.depth++ == 0)
        guard_rights(PROT_READ | PROT_WRITE);
    guard_give();
}

/** Whether the next call is not the one that is to fail. */
static bool guard_call(void)
{
    guard_take();
    const bool passes = ++guard.calls != guard.fail_at;
    guard_give();
    return passes;
}

static bool guard_enter(void)
{
    const bool passes = guard_call();
    if (passes)
        guard_begin();
    return passes;
}

static frg_status guard_leave(frg_status status)
{
    guard_take();
    if (--guard.depth == 0)
        guard_rights(PROT_NONE);
    guard_give();
    return status;
}

static frg_status guard_open(frgi_arena *a, frg_context *ctx, const char *what)
{
    const size_t bytes = (a->used / 4096 + 1) * 4096;
    (void)ctx;
    (void)what;
    if (!guard_call())
        return FRG_IO;
    guard_take();
    void *p = mmap(NULL, bytes, guard.depth > 0 ? PROT_READ | PROT_WRITE : PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || guard.arenas == GUARD_ARENAS)
        abort();
    guard.base[guard.arenas] = p;
    guard.bytes[guard.arenas++] = bytes;
    guard.opened++;
    guard_give();
    *a = (frgi_arena){.base = p, .bytes = a->used};
    return FRG_OK;
}

static void guard_close(frgi_arena *a, frg_context *ctx)
{
    (void)ctx;
    guard_take();
    for (int i = 0; i < guard.arenas; i++)
        if (guard.base[i] == a->base) {
            munmap(guard.base[i], guard.bytes[i]);
            guard.base[i] = guard.base[--guard.arenas];
            guard.bytes[i] = guard.bytes[guard.arenas];
            break;
        }
    guard_give();
    *a = (frgi_arena){0};
}

#endif
