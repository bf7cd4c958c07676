/* fault.h - what fails on purpose: an allocator, a file table, and the sweeps over both.
 *
 * fault_memory is an frg_allocator that refuses the k-th request (that one alone, or every one from
 * it on), counts live blocks and bytes, surrounds each block with guard bytes, fills new memory
 * with 0xA5 and dead memory with 0xDD, and checks the size that comes back with a block.
 *
 * fault_disk is an frg_files over the system's that fails the k-th call of one kind with a given
 * errno, moves a few bytes at a time, or interrupts every second transfer, and counts open handles.
 *
 * fault_sweep runs a body for k = 1, 2, ... until nothing was refused, in both modes.  Each time:
 *   - the body returns FRG_NO_MEMORY with a message, or copes and gives the fault-free result;
 *   - the same body on the same context, now without faults, gives the fault-free result to the
 *   bit;
 *   - after the context is destroyed no block is alive and no guard byte has changed.
 * fault_sweep_files does the same for every kind of file call.
 *
 *     static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
 *     {
 *         frg_demean *d = NULL;
 *         frg_status s = frg_demean_create(&d, ctx, ...);
 *         if (s >= 0)
 *             s = frg_demean_run(d, ...);
 *         if (s >= 0)
 *             fault_hash(hash, result, bytes);
 *         frg_demean_destroy(d);
 *         return s;
 *     }
 *     fault_sweep("demean", body, &data, 1);
 */
#ifndef FOURGE_FAULT_H
#define FOURGE_FAULT_H

#include <errno.h>
#include <stdatomic.h>

#include "test.h"

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct {
    _Atomic int64_t calls;    /* requests so far */
    int64_t fail_at;          /* the request that is refused, from 1; 0: none */
    bool fail_from;           /* and every one after it */
    _Atomic int64_t injected; /* requests refused */
    _Atomic int64_t live_blocks, live_bytes;
    _Atomic int64_t broken; /* blocks with a changed guard, a wrong size, or freed twice */
    frg_allocator table;
} fault_memory;

enum { FAULT_GUARD = 64, FAULT_FRESH = 0xa5, FAULT_DEAD = 0xdd, FAULT_FENCE = 0x5f };
#define FAULT_MAGIC UINT64_C(0x666f757267652121)

TEST_UNUSED static void *fault_alloc(size_t bytes, void *user)
{
    fault_memory *m = user;
    const int64_t k = ++m->calls;
    if (m->fail_at > 0 && (k == m->fail_at || (m->fail_from && k > m->fail_at))) {
        m->injected++;
        return NULL;
    }
    if (bytes > (size_t)1 << 40)
        return NULL;
    const size_t whole = (bytes + 2 * FAULT_GUARD + 63) / 64 * 64;
    unsigned char *base = aligned_alloc(64, whole);
    if (!base)
        return NULL;
    memset(base, FAULT_FENCE, FAULT_GUARD);
    memcpy(base, &(uint64_t){FAULT_MAGIC}, 8);
    memcpy(base + 8, &bytes, sizeof bytes);
    memset(base + FAULT_GUARD, FAULT_FRESH, bytes);
    memset(base + FAULT_GUARD + bytes, FAULT_FENCE, FAULT_GUARD);
    m->live_blocks++;
    m->live_bytes += (int64_t)bytes;
    return base + FAULT_GUARD;
}

TEST_UNUSED static void fault_free(void *p, size_t bytes, void *user)
{
    fault_memory *m = user;
    if (!p)
        return;
    unsigned char *base = (unsigned char *)p - FAULT_GUARD;
    uint64_t magic;
    size_t taken;
    memcpy(&magic, base, 8);
    memcpy(&taken, base + 8, sizeof taken);
    bool whole = magic == FAULT_MAGIC && taken == bytes;
    for (size_t i = 16; whole && i < FAULT_GUARD; i++)
        whole = base[i] == FAULT_FENCE;
    for (size_t i = 0; whole && i < FAULT_GUARD; i++)
        whole = base[FAULT_GUARD + taken + i] == FAULT_FENCE;
    m->broken += !whole;
    m->live_blocks--;
    m->live_bytes -= (int64_t)taken;
    if (magic != FAULT_MAGIC)
        return; /* not ours, or dead already: leave it alone */
    memset(base, FAULT_DEAD, taken + 2 * FAULT_GUARD);
    free(base);
}

/** Nothing is refused until fail_at is set. */
TEST_UNUSED static void fault_memory_open(fault_memory *m)
{
    memset(m, 0, sizeof *m);
    m->table = (frg_allocator){.alloc = fault_alloc, .free = fault_free, .user = m};
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef enum {
    FAULT_OPEN,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_SYNC,
    FAULT_CLOSE,
    FAULT_RENAME,
    FAULT_REMOVE,
    FAULT_SYNC_FOLDER,
    FAULT_KINDS
} fault_kind;

static const char *const fault_kind_name[FAULT_KINDS] = {
    "open", "read", "write", "sync", "close", "rename", "remove", "sync_folder"};

typedef struct {
    fault_kind kind; /* the kind of call that fails */
    int64_t fail_at; /* the k-th of that kind, from 1; 0: none */
    bool fail_from;  /* and every one after it */
    int error;       /* with this errno */
    int64_t at_most; /* bytes a read or write moves; 0: no limit */
    bool interrupts; /* every second read and write gives EINTR first */
    bool no_size;    /* as of a pipe */
    int64_t calls[FAULT_KINDS], transfers;
    int64_t injected, open_handles;
    const frg_files *system;
    frg_files table;
} fault_disk;

/** The errno to fail with, 0: go on. */
static int fault_strikes(fault_disk *d, fault_kind kind)
{
    const int64_t k = ++d->calls[kind];
    if (kind != d->kind || d->fail_at <= 0 || k < d->fail_at || (k > d->fail_at && !d->fail_from))
        return 0;
    d->injected++;
    return d->error;
}

static int fault_open(const char *path, char mode, void *user)
{
    fault_disk *d = user;
    const int error = fault_strikes(d, FAULT_OPEN);
    if (error)
        return -error;
    const int handle = d->system->open(path, mode, d->system->user);
    d->open_handles += handle >= 0;
    return handle;
}

static int64_t fault_read(int handle, void *to, size_t bytes, void *user)
{
    fault_disk *d = user;
    const int error = fault_strikes(d, FAULT_READ);
    if (error)
        return -error;
    if (d->interrupts && d->transfers++ % 2 == 0)
        return -EINTR;
    const bool cut = d->at_most > 0 && bytes > (size_t)d->at_most;
    return d->system->read(handle, to, cut ? (size_t)d->at_most : bytes, d->system->user);
}

static int64_t fault_write(int handle, const void *from, size_t bytes, void *user)
{
    fault_disk *d = user;
    const int error = fault_strikes(d, FAULT_WRITE);
    if (error)
        return -error;
    if (d->interrupts && d->transfers++ % 2 == 0)
        return -EINTR;
    const bool cut = d->at_most > 0 && bytes > (size_t)d->at_most;
    return d->system->write(handle, from, cut ? (size_t)d->at_most : bytes, d->system->user);
}

static int fault_sync(int handle, void *user)
{
    fault_disk *d = user;
    const int error = fault_strikes(d, FAULT_SYNC);
    return error ? -error : d->system->sync(handle, d->system->user);
}

/** A failing close still closes, as Linux does. */
static int fault_close(int handle, void *user)
{
    fault_disk *d = user;
    const int error = fault_strikes(d, FAULT_CLOSE);
    const int result = d->system->close(handle, d->system->user);
    d->open_handles--;
    return error ? -error : result;
}

static int fault_rename(const char *from, const char *to, void *user)
{
    fault_disk *d = user;
    const int error = fault_strikes(d, FAULT_RENAME);
    return error ? -error : d->system->rename(from, to, d->system->user);
}

static int fault_remove(const char *path, void *user)
{
    fault_disk *d = user;
    const int error = fault_strikes(d, FAULT_REMOVE);
    return error ? -error : d->system->remove(path, d->system->user);
}

static int fault_sync_folder(const char *path, void *user)
{
    fault_disk *d = user;
    const int error = fault_strikes(d, FAULT_SYNC_FOLDER);
    return error ? -error : d->system->sync_folder(path, d->system->user);
}

static int64_t fault_size(int handle, void *user)
{
    const fault_disk *d = user;
    return d->no_size ? -1 : d->system->size(handle, d->system->user);
}

TEST_UNUSED static void fault_disk_open(fault_disk *d)
{
    memset(d, 0, sizeof *d);
    d->system = frg_system_files();
    d->table = (frg_files){.open = fault_open,
                           .read = fault_read,
                           .write = fault_write,
                           .sync = fault_sync,
                           .close = fault_close,
                           .rename = fault_rename,
                           .remove = fault_remove,
                           .sync_folder = fault_sync_folder,
                           .size = fault_size,
                           .user = d};
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

/** Makes and destroys everything itself; adds its results to *hash with fault_hash; returns the
 *  first negative status or the last one. */
typedef frg_status (*fault_body)(frg_context *ctx, void *user, uint64_t *hash);

enum { FAULT_SWEEP_MAX = 20000 }; /* a body that allocates without end is a failure */

/** FNV-1a over the bytes of a result. */
TEST_UNUSED static void fault_hash(uint64_t *hash, const void *bytes, size_t count)
{
    const unsigned char *const b = bytes;
    for (size_t i = 0; i < count; i++)
        *hash = (*hash ^ b[i]) * UINT64_C(0x100000001b3);
}

typedef struct {
    frg_status status;
    uint64_t hash;
} fault_result;

static fault_result fault_call(frg_context *ctx, fault_body body, void *user)
{
    fault_result r = {.hash = UINT64_C(0xcbf29ce484222325)};
    r.status = body(ctx, user, &r.hash);
    return r;
}

static bool fault_same(fault_result a, fault_result b)
{
    return a.status == b.status && a.hash == b.hash;
}

static frg_status fault_context(frg_context **ctx, int threads, const frg_allocator *memory,
                                const frg_files *files)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.threads = threads;
    o.allocator = memory;
    o.files = files;
    return frg_context_create(ctx, &o);
}

/** One k of the sweep; returns whether anything was refused. */
static bool fault_try(const char *name, fault_body body, void *user, int threads, int64_t k,
                      bool from, fault_result want)
{
    fault_memory m;
    fault_memory_open(&m);
    m.fail_at = k;
    m.fail_from = from;
    frg_context *ctx = NULL;
    const char *const mode = from ? "from" : "once";
    const frg_status made = fault_context(&ctx, threads, &m.table, NULL);
    if (made < 0) {
        CHECK_SAYS(made == FRG_NO_MEMORY && !ctx, "%s: %s %" PRId64 ": context gave %s", name, mode,
                   k, frg_status_name(made));
    } else {
        const fault_result got = fault_call(ctx, body, user);
        CHECK_SAYS(got.status == FRG_NO_MEMORY || fault_same(got, want),
                   "%s: %s %" PRId64 ": gave %s instead of %s or FRG_NO_MEMORY, or other bits: %s",
                   name, mode, k, frg_status_name(got.status), frg_status_name(want.status),
                   frg_message(ctx));
        CHECK_SAYS(got.status >= 0 || (*frg_message(ctx) && *frg_error_code(ctx)),
                   "%s: %s %" PRId64 ": failed without a message", name, mode, k);
        m.fail_at = 0;
        const fault_result again = fault_call(ctx, body, user);
        CHECK_SAYS(fault_same(again, want),
                   "%s: %s %" PRId64 ": the next call gave %s or other bits: %s", name, mode, k,
                   frg_status_name(again.status), frg_message(ctx));
        frg_context_destroy(ctx);
    }
    CHECK_SAYS(m.live_blocks == 0 && m.live_bytes == 0 && m.broken == 0,
               "%s: %s %" PRId64 ": %" PRId64 " blocks of %" PRId64 " bytes alive, %" PRId64
               " broken",
               name, mode, k, m.live_blocks, m.live_bytes, m.broken);
    return m.injected > 0;
}

/** modes: 2; 1: each alone, and not every one after it.  Returns the number of allocations. */
TEST_UNUSED static int64_t fault_sweep_modes(const char *name, fault_body body, void *user,
                                             int threads, int modes)
{
    fault_memory m;
    fault_memory_open(&m);
    frg_context *ctx = NULL;
    if (!CHECK_STATUS(fault_context(&ctx, threads, &m.table, NULL), FRG_OK))
        return 0;
    const fault_result want = fault_call(ctx, body, user);
    CHECK_SAYS(want.status >= 0, "%s: without faults: %s: %s", name, frg_status_name(want.status),
               frg_message(ctx));
    frg_context_destroy(ctx);
    CHECK_SAYS(m.live_blocks == 0 && m.broken == 0, "%s: without faults: %" PRId64 " blocks alive",
               name, m.live_blocks);
    int64_t k[2] = {1, 1};
    for (int from = 0; from < modes && want.status >= 0; from++)
        while (k[from] < FAULT_SWEEP_MAX && test_now.failures < TEST_PRINTED_MAX &&
               fault_try(name, body, user, threads, k[from], from == 1, want))
            k[from]++;
    CHECK_SAYS(k[0] < FAULT_SWEEP_MAX && k[1] < FAULT_SWEEP_MAX, "%s: never ends", name);
    return k[0] - 1;
}

/** Returns the number of allocations that were failed in turn. */
TEST_UNUSED static int64_t fault_sweep(const char *name, fault_body body, void *user, int threads)
{
    return fault_sweep_modes(name, body, user, threads, 2);
}

/** Of a body that takes long: each request alone is refused. */
TEST_UNUSED static int64_t fault_sweep_once(const char *name, fault_body body, void *user,
                                            int threads)
{
    return fault_sweep_modes(name, body, user, threads, 1);
}

typedef struct {
    const char *name;
    fault_disk disk;   /* fail_at 0: transfers alone are disturbed */
    bool must_succeed; /* the library has to retry */
} fault_case;

/** One disturbance; returns whether a call failed. */
static bool fault_try_files(const char *name, fault_body body, void *user, const fault_case *c,
                            int64_t k, fault_result want)
{
    fault_memory m;
    fault_memory_open(&m);
    fault_disk d;
    fault_disk_open(&d);
    d.kind = c->disk.kind;
    d.fail_at = c->disk.error ? k : 0;
    d.fail_from = c->disk.fail_from;
    d.error = c->disk.error;
    d.at_most = c->disk.at_most;
    d.interrupts = c->disk.interrupts;
    d.no_size = c->disk.no_size;
    frg_context *ctx = NULL;
    if (!CHECK_STATUS(fault_context(&ctx, 1, &m.table, &d.table), FRG_OK))
        return false;
    const fault_result got = fault_call(ctx, body, user);
    const bool failed = got.status == FRG_IO || got.status == FRG_NO_INPUT ||
                        got.status == FRG_CANNOT_CREATE || got.status == FRG_BAD_DATA;
    CHECK_SAYS(fault_same(got, want) || (failed && !c->must_succeed),
               "%s: %s %s, call %" PRId64 ": gave %s: %s", name, c->name,
               fault_kind_name[c->disk.kind], k, frg_status_name(got.status), frg_message(ctx));
    CHECK_SAYS(got.status >= 0 || (*frg_message(ctx) && *frg_error_code(ctx)),
               "%s: %s %s: failed without a message", name, c->name, fault_kind_name[c->disk.kind]);
    CHECK_SAYS(d.open_handles == 0, "%s: %s %s, call %" PRId64 ": %" PRId64 " handles left open",
               name, c->name, fault_kind_name[c->disk.kind], k, d.open_handles);
    d.fail_at = d.at_most = 0;
    d.interrupts = false;
    const fault_result again = fault_call(ctx, body, user);
    CHECK_SAYS(fault_same(again, want), "%s: after %s %s: the next call gave %s: %s", name, c->name,
               fault_kind_name[c->disk.kind], frg_status_name(again.status), frg_message(ctx));
    frg_context_destroy(ctx);
    CHECK_SAYS(m.live_blocks == 0 && m.broken == 0,
               "%s: %s %s, call %" PRId64 ": %" PRId64 " blocks alive", name, c->name,
               fault_kind_name[c->disk.kind], k, m.live_blocks);
    return d.injected > 0;
}

/** Fails the k-th call of every kind with EIO and ENOSPC, interrupts and shortens transfers.  A
 *  body that writes checks by itself that the old file stands after a failure and that no temporary
 *  file is left. */
TEST_UNUSED static void fault_sweep_files(const char *name, fault_body body, void *user)
{
    static const fault_case transfers[] = {
        {"one byte at a time", {.at_most = 1}, true},
        {"seven bytes at a time", {.at_most = 7}, true},
        {"interrupted", {.interrupts = true}, true},
        {"interrupted and short", {.interrupts = true, .at_most = 3}, true},
        {"without a size", {.no_size = true}, true},
    };
    static const fault_case failures[] = {
        {"EIO once", {.error = EIO}, false},
        {"EIO from", {.error = EIO, .fail_from = true}, false},
        {"ENOSPC from", {.error = ENOSPC, .fail_from = true}, false},
    };
    frg_context *ctx = NULL;
    if (!CHECK_STATUS(fault_context(&ctx, 1, NULL, NULL), FRG_OK))
        return;
    const fault_result want = fault_call(ctx, body, user);
    CHECK_SAYS(want.status >= 0, "%s: without faults: %s: %s", name, frg_status_name(want.status),
               frg_message(ctx));
    frg_context_destroy(ctx);
    if (want.status < 0)
        return;
    for (size_t i = 0; i < sizeof transfers / sizeof *transfers; i++)
        fault_try_files(name, body, user, &transfers[i], 0, want);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        for (int kind = 0; kind < FAULT_KINDS; kind++) {
            fault_case c = failures[i];
            c.disk.kind = (fault_kind)kind;
            int64_t k = 1;
            while (k < FAULT_SWEEP_MAX && test_now.failures < TEST_PRINTED_MAX &&
                   fault_try_files(name, body, user, &c, k, want))
                k++;
        }
    }
    fault_case once = {"EINTR once", {.error = EINTR}, true};
    for (int kind = FAULT_READ; kind <= FAULT_WRITE; kind++) {
        once.disk.kind = (fault_kind)kind;
        for (int64_t k = 1; k < 50 && fault_try_files(name, body, user, &once, k, want); k++)
            ;
    }
}

#endif
