/* test_core.c - the core: statuses, contexts, memory, arenas, text, random numbers, views,
 * heartbeats. */
#include <errno.h>

#include <omp.h>

#include "core/context.h"
#include "core/search.h"
#include "fault.h"

static void statuses(void)
{
    static const frg_status every[] = {
#define LISTED(name, number, exit_code, sentence) name,
        FRG_STATUS_LIST(LISTED)
#undef LISTED
    };
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        CHECK(strncmp(frg_status_name(every[i]), "FRG_", 4) == 0);
        CHECK(*frg_status_sentence(every[i]));
    }
    CHECK_TEXT(frg_status_name(FRG_NOT_POSDEF), "FRG_NOT_POSDEF");
    CHECK_INT(frg_status_exit_code(FRG_OK), 0);
    CHECK_INT(frg_status_exit_code(FRG_INTERRUPTED), 130);
    CHECK_INT(frg_status_exit_code(FRG_IO), 74);
    CHECK(*frg_status_name((frg_status)99) && *frg_status_sentence((frg_status)-99));
}

/** Codes are for ever: unique, FRG-ROOM-NNN, warnings from 101 on; every row has a sentence and a
 *  hint. */
static void catalogue(void)
{
    int rows = 0;
    for (const frg_error_entry *e; (e = frg_error_catalogue(rows)); rows++) {
        char room[16];
        int number = 0, length = 0;
        CHECK_SAYS(sscanf(e->code, "FRG-%15[A-Z]-%3d%n", room, &number, &length) == 2 &&
                       length == (int)strlen(e->code),
                   "code %s", e->code);
        CHECK_SAYS((e->name[0] == 'W') == (number > 100) &&
                       (e->name[0] == 'W') == (e->status == FRG_OK),
                   "%s %s: warnings are W_*, FRG_OK, above 100", e->code, e->name);
        CHECK_SAYS(*e->sentence && e->sentence[strlen(e->sentence) - 1] == '.' && *e->hint,
                   "%s: \"%s\" \"%s\"", e->code, e->sentence, e->hint);
        for (int before = 0; before < rows; before++)
            CHECK_SAYS(strcmp(frg_error_catalogue(before)->code, e->code) != 0, "%s twice",
                       e->code);
    }
    CHECK_INT(rows, E_COUNT - 1);
    CHECK(frg_error_catalogue(-1) == NULL);
}

/** The published test vectors of Random123 for philox4x32 with ten rounds. */
static void philox(void)
{
    uint32_t w[4];
    frgi_philox(0, 0, 0, 0, w);
    CHECK_BITS(w, ((const uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}), sizeof w);
    frgi_philox(UINT64_MAX, 0, UINT64_MAX, UINT64_MAX, w);
    CHECK_BITS(w, ((const uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}), sizeof w);
    frgi_philox(UINT64_C(0x299f31d0a4093822), 0, UINT64_C(0x85a308d3243f6a88),
                UINT64_C(0x0370734413198a2e), w);
    CHECK_BITS(w, ((const uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}), sizeof w);

    double u[2];
    frgi_uniforms(0, 0, 0, 0,
                  u); /* the first 52 bits of each pair of words, in the middle of their cell */
    CHECK(u[0] == (0x6627e8d5e169p0 * 16 + 0xc + 0.5) * 0x1p-52);
    CHECK(u[1] == (0xbc57ac4c9b00p0 * 16 + 0xd + 0.5) * 0x1p-52);

    /* moments of 2e5 normals: the mean has deviation 0.0022, the variance 0.0032, skew 0.0055; 5 of
     * each */
    double sum = 0, squares = 0, cubes = 0;
    const int pairs = 100000;
    for (int i = 0; i < pairs; i++) {
        double z[2];
        frgi_normals(7, 3, (uint64_t)i, 0, z);
        for (int k = 0; k < 2; k++) {
            sum += z[k];
            squares += z[k] * z[k];
            cubes += z[k] * z[k] * z[k];
        }
    }
    CHECK_NEAR(sum / (2 * pairs), 0, 0.011);
    CHECK_NEAR(squares / (2 * pairs), 1, 0.016);
    CHECK_NEAR(cubes / (2 * pairs), 0, 0.045);
}

static void contexts(void)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    CHECK(o.struct_size == sizeof o && o.threads == 0 && o.seed == 0 && o.memory_limit == 0);
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, NULL), FRG_OK);
    CHECK(frg_threads(ctx) >= 1);
    CHECK_TEXT(frg_message(ctx), "");
    CHECK_TEXT(frg_error_code(ctx), "");
    frg_context_destroy(ctx);
    frg_context_destroy(NULL);

    o.device.kind = FRG_CUDA;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_NO_DEVICE);
    CHECK(ctx == NULL);
    frg_context_defaults(&o, sizeof o);
    o.device.index = 3; /* there is one cpu */
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_NO_DEVICE);
    frg_context_defaults(&o, sizeof o);
    o.stream = &o; /* reserved */
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_UNSUPPORTED);
    o.stream = NULL;
    o.comm = (const struct frg_comm *)(const void *)&o;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_UNSUPPORTED);
    CHECK(ctx == NULL);
    static const frg_context_opts refused[] = {
        {.threads = -1},     {.threads = 4097},    {.memory_limit = -1},
        {.time_limit = NAN}, {.time_limit = -1},   {.count_from = -1},
        {.count_from = 2},   {.copies_files = -1}, {.copies_files = 2}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        o = refused[i];
        o.struct_size = sizeof o;
        ctx = (frg_context *)(void *)&o; /* what stood there does not stay */
        CHECK_SAYS(frg_context_create(&ctx, &o) == FRG_BAD_ARG && !ctx, "options %zu", i);
    }
    CHECK_STATUS(frg_context_create(NULL, NULL), FRG_BAD_ARG);
    int inside = 0; /* a parallel region: each of its threads has one core */
#pragma omp parallel num_threads(2)
#pragma omp critical
    {
        frg_context *one = NULL;
        if (frg_context_create(&one, NULL) == FRG_OK)
            inside += frg_threads(one) == 1 ? 1 : 100;
        frg_context_destroy(one);
    }
    CHECK(inside >= 1 && inside <= 2);

    /* a caller of an older, shorter struct: what lies behind its end is not read */
    frg_context_defaults(&o, sizeof o);
    o.threads = 3;
    o.seed = 99;
    o.struct_size = offsetof(frg_context_opts, seed);
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    CHECK_INT(frg_threads(ctx), 3);
    CHECK_INT(frg_seed(ctx), 0);
    frg_context_destroy(ctx);
    unsigned char guard[sizeof o + 8];
    memset(guard, 0x77, sizeof guard);
    frg_context_opts *shorter = (frg_context_opts *)(void *)guard;
    frg_context_defaults(shorter, 24);
    CHECK(guard[24] == 0x77);

    frg_device d;
    CHECK_STATUS(frg_device_parse("opencl:2", &d), FRG_OK);
    CHECK(d.kind == FRG_OPENCL && d.index == 2);
    CHECK_STATUS(frg_device_parse("cpu", &d), FRG_OK);
    static const char *const bad[] = {"",        "gpu",   "cuda:", "cuda:-1", "cuda:1x",
                                      "cuda:1/", "cpu:0", "cpu ",  NULL,      "cuda:99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_SAYS(frg_device_parse(bad[i], &d) == FRG_BAD_ARG, "device \"%s\" was taken",
                   bad[i] ? bad[i] : "(NULL)");
}

/* A machine of small files: path, text, path, text, ... NULL; the handle is the place of the
 * text. */
static int tell_open(const char *path, char mode, void *user)
{
    const char *const *const files = user;
    for (int i = 0; files[i]; i += 2) {
        if (mode == 'r' && strcmp(files[i], path) == 0)
            return i + 1;
    }
    return -ENOENT;
}

static int told; /* bytes of the open file */

static int64_t tell_read(int handle, void *to, size_t bytes, void *user)
{
    const char *const text = ((const char *const *)user)[handle] + told;
    const size_t left = strlen(text), now = left < 5 ? left : 5; /* short reads */
    memcpy(to, text, now < bytes ? now : bytes);
    told += (int)(now < bytes ? now : bytes);
    return (int64_t)(now < bytes ? now : bytes);
}

static int tell_close(int handle, void *user)
{
    (void)handle;
    (void)user;
    told = 0;
    return 0;
}

static void groups(void)
{
#define ROOT "/sys/fs/cgroup"
    static const struct {
        const char *files[14];
        double cores, memory;
    } machines[] = {
        {{NULL}, 0, 0},
        {{"/proc/self/cgroup", "0::/\n", ROOT "/cpu.max", "150000 100000\n", ROOT "/memory.max",
          "4294967296\n"},
         1.5,
         4294967296.0},
        {{"/proc/self/cgroup", "0::/\n", ROOT "/cpu.max", "max 100000\n", ROOT "/memory.max",
          "max\n"},
         0,
         0},
        /* the tightest from the group up to the root */
        {{"/proc/self/cgroup", "0::/a/b\n", ROOT "/a/b/cpu.max", "400000 100000", ROOT "/a/cpu.max",
          "200000 100000", ROOT "/cpu.max", "max 100000", ROOT "/a/memory.max", "max",
          ROOT "/memory.max", "1000000"},
         2,
         1000000},
        /* version 1: a hierarchy for each controller, whose groups are not all in sight */
        {{"/proc/self/cgroup", "9:memory:/m\n2:cpuset:/x\n1:cpu:/c/d\n0::/\n",
          ROOT "/cpu/c/cpu.cfs_quota_us", "50000", ROOT "/cpu/c/cpu.cfs_period_us", "100000",
          ROOT "/cpu/cpu.cfs_quota_us", "-1", ROOT "/memory/m/memory.limit_in_bytes", "77777"},
         0.5,
         77777},
        {{"/proc/self/cgroup", "3:cpuset:/x\n2:cpuacct,cpu:/c\n", ROOT "/cpu/c/cpu.cfs_quota_us",
          "30000", ROOT "/cpu/c/cpu.cfs_period_us", "100000"},
         0.3,
         0},
        /* version 1 writes what is no limit as a large number */
        {{ROOT "/memory/memory.limit_in_bytes", "9223372036854771712\n"}, 0, 0},
        /* the inner group is the tighter one; both versions give a limit */
        {{"/proc/self/cgroup", "0::/a\n", ROOT "/a/memory.max", "1000", ROOT "/memory.max", "5000",
          ROOT "/cpu.max", "300000 100000", ROOT "/cpu/cpu.cfs_quota_us", "200000",
          ROOT "/cpu/cpu.cfs_period_us", "100000"},
         2,
         1000},
        {{ROOT "/cpu.max", "100000 100000", ROOT "/cpu/cpu.cfs_quota_us", "200000",
          ROOT "/cpu/cpu.cfs_period_us", "100000"},
         1,
         0},
        /* lines of no group: without a path, with one that is none, of other names alone */
        {{"/proc/self/cgroup", "no line\n0:\n0::a\n3:cpu,io:/c\n", ROOT "/memory.max", "4000",
          ROOT "/c/memory.max", "1", ROOT "/a/memory.max", "2", ROOT "/cpu/c/cpu.cfs_quota_us",
          "50000"}, /* and a quota without its period is none */
         0,
         4000},
    };
#undef ROOT
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const frg_files files = {.open = tell_open,
                                 .read = tell_read,
                                 .close = tell_close,
                                 .user = (void *)(uintptr_t)machines[i].files};
        CHECK_SAYS(frgi_group_cores(&files) == machines[i].cores, "machine %zu: %g cores", i,
                   frgi_group_cores(&files));
        CHECK_SAYS(frgi_group_memory(&files) == machines[i].memory, "machine %zu: %g bytes", i,
                   frgi_group_memory(&files));
    }
    CHECK(frg_group_cores() >= 0 && frg_group_memory() >= 0);
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, NULL), FRG_OK);
    CHECK(frg_group_cores() == 0 || frg_threads(ctx) < frg_group_cores() + 1);
    CHECK(frg_group_memory() == 0 || frgi_memory_allowed(ctx) <= (size_t)frg_group_memory());
    frg_context_destroy(ctx);
}

static void memory(void)
{
    CHECK(frg_bytes_held(NULL) == 0 && frg_peak_bytes(NULL) == 0);
    CHECK(frgi_mul(SIZE_MAX / 2, 3) == SIZE_MAX && frgi_mul(6, 7) == 42);
    CHECK(frgi_add(SIZE_MAX, 1) == SIZE_MAX && frgi_add(1, 2) == 3);
    fault_memory m;
    fault_memory_open(&m);
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.allocator = &m.table;
    o.memory_limit = 100000;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    const size_t before = frg_bytes_held(ctx);
    double *x = NULL;
    CHECK_OK(ctx, NEW(ctx, &x, 1000, "numbers"));
    CHECK(((uintptr_t)x & 63) == 0);
    CHECK(frg_bytes_held(ctx) >= before + 8000 && frg_peak_bytes(ctx) >= before + 8000);
    for (int i = 0; i < 1000; i++)
        x[i] = i;
    CHECK_OK(ctx, GROW(ctx, &x, 2000, "numbers"));
    CHECK(x[999] == 999);
    const double *const kept = x;
    CHECK_STATUS(GROW(ctx, &x, 20000, "numbers"), FRG_NO_MEMORY);
    CHECK(x == kept && x[999] == 999);
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-002");
    CHECK(strstr(frg_message(ctx), "numbers") && strstr(frg_message(ctx), "limit"));
    void *none = &m;
    CHECK_STATUS(frgi_alloc(ctx, &none, SIZE_MAX, "all"), FRG_NO_MEMORY);
    CHECK(none == NULL);
    CHECK_OK(ctx, frgi_alloc(ctx, &none, 0, "nothing"));
    CHECK(none != NULL);
    frgi_free(ctx, &none);
    frgi_free(ctx, &none);
    int32_t *zero = NULL;
    CHECK_OK(ctx, NEW0(ctx, &zero, 100, "zeros"));
    for (int i = 0; i < 100; i++)
        CHECK(zero[i] == 0);
    DROP(ctx, &zero);
    DROP(ctx, &x);
    CHECK_INT(frg_bytes_held(ctx), before);
    frg_peak_reset(ctx);
    CHECK_INT(frg_peak_bytes(ctx), before);
    frg_context_destroy(ctx);
    CHECK_INT(m.live_blocks, 0);
    CHECK_INT(m.broken, 0);
}

/* Large blocks of the system's allocator come back; those of another one, and small ones, need
 * not. */
static void kept_blocks(void)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.memory_limit = 40 << 20;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    const size_t before = frg_bytes_held(ctx);
    char *x = NULL, *y = NULL;
    CHECK_OK(ctx, NEW(ctx, &x, 10 << 20, "bytes"));
    memset(x, 0x5A, 10 << 20);
    char *const first = x;
    DROP(ctx, &x);
    CHECK_INT(frg_bytes_held(ctx), before);
    CHECK_OK(ctx, NEW0(ctx, &x, 9 << 20, "bytes"));
    CHECK(x == first && x[0] == 0 && x[(9 << 20) - 1] == 0);
    CHECK_OK(ctx, NEW(ctx, &y, 10 << 20, "bytes"));
    CHECK(y != first);
    DROP(ctx, &x);
    DROP(ctx, &y);
    /* the limit counts what is kept: it makes room, down to the last block */
    CHECK_OK(ctx, NEW(ctx, &x, 36 << 20, "bytes"));
    memset(x, 1, 36 << 20);
    CHECK_STATUS(NEW(ctx, &y, 36 << 20, "bytes"), FRG_NO_MEMORY);
    DROP(ctx, &x);
    CHECK_INT(frg_bytes_held(ctx), before);
    /* fresh blocks beside a kept one that suits neither: together they stay within it */
    CHECK_OK(ctx, NEW(ctx, &x, 24 << 20, "bytes"));
    DROP(ctx, &x);
    CHECK_OK(ctx, NEW(ctx, &x, 16 << 20, "bytes"));
    CHECK_OK(ctx, NEW(ctx, &y, 8 << 20, "bytes"));
    CHECK(ctx->heap.held + ctx->heap.kept_bytes <= (size_t)o.memory_limit);
    DROP(ctx, &x);
    DROP(ctx, &y);
    frg_context_destroy(ctx);
}

/* Of two kept blocks that suit the smaller is taken, whichever came first. */
static void smallest_kept_block(void)
{
    for (int larger_first = 0; larger_first < 2; larger_first++) {
        frg_context *const ctx = test_context();
        char *large = NULL, *small = NULL, *x = NULL;
        CHECK_OK(ctx, NEW(ctx, &large, 11 << 20, "bytes"));
        CHECK_OK(ctx, NEW(ctx, &small, 10 << 20, "bytes"));
        const char *const wanted = small;
        DROP(ctx, larger_first ? &large : &small);
        DROP(ctx, larger_first ? &small : &large);
        CHECK_INT(ctx->heap.n_kept, 2);
        CHECK_OK(ctx, NEW(ctx, &x, 19 << 19, "bytes"));
        CHECK(x == wanted && ctx->heap.n_kept == 1);
        DROP(ctx, &x);
        frg_context_destroy(ctx);
    }
}

/* So many freed blocks are kept and no more, and blocks of a context with a limit only while
 * they fit under it. */
static void kept_blocks_at_most(void)
{
    enum { EACH = 1 << 18, BLOCKS = KEPT_BLOCKS + 3 };
    frg_context *ctx = test_context();
    char *x[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        CHECK_OK(ctx, NEW(ctx, &x[i], EACH, "bytes"));
    for (int i = 0; i < BLOCKS; i++)
        DROP(ctx, &x[i]);
    CHECK_INT(ctx->heap.n_kept, KEPT_BLOCKS);
    CHECK(ctx->heap.kept_bytes >= (size_t)KEPT_BLOCKS * EACH &&
          ctx->heap.kept_bytes <= 2 * ctx->heap.peak);
    frg_context_destroy(ctx);
}

/* Sizes beyond what there are addresses for: refused, with what was asked for in the message,
 * and nothing of what is held is lost. */
static void too_much(void)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 64, SIZE_MAX - 100};
    frg_context *ctx = test_context();
    char *kept = NULL, *x = NULL;
    CHECK_OK(ctx, NEW(ctx, &kept, 100, "bytes"));
    memcpy(kept, "here", 5);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t held = frg_bytes_held(ctx);
        CHECK_STATUS(NEW(ctx, &x, sizes[i], "too many bytes"), FRG_NO_MEMORY);
        CHECK(!x && frg_bytes_held(ctx) == held && strstr(frg_message(ctx), "too many bytes"));
        CHECK_STATUS(GROW(ctx, &kept, sizes[i], "too many bytes"), FRG_NO_MEMORY);
        CHECK_TEXT(kept, "here");
    }
    DROP(ctx, &kept);
    frg_context_destroy(ctx);
}

static void arena(void)
{
    fault_memory m;
    fault_memory_open(&m);
    frg_context *ctx = test_context_with(1, &m.table, NULL);
    frgi_arena a = {0};
    double *x = NULL;
    char *c = NULL;
    for (int carve = 0; carve < 2; carve++) {
        c = TAKE(&a, char, 3);
        x = TAKE(&a, double, 100);
        if (!carve) {
            CHECK(!c && !x);
            CHECK_OK(ctx, frgi_arena_open(&a, ctx, "both"));
        }
    }
    CHECK(((uintptr_t)x & 63) == 0 && ((uintptr_t)c & 63) == 0);
    memset(c, 1, 3);
    memset(x, 1, 100 * sizeof *x);
    frgi_arena_close(&a, ctx);
    frgi_arena_close(&a, ctx);

    frgi_arena huge = {0}; /* a size that overflows is refused, not wrapped */
    (void)TAKE(&huge, double, INT64_MAX / 4);
    (void)TAKE(&huge, double, INT64_MAX / 4);
    CHECK_STATUS(frgi_arena_open(&huge, ctx, "too much"), FRG_NO_MEMORY);
    frg_context_destroy(ctx);
    CHECK(m.live_blocks == 0 && m.broken == 0);
}

/* A thread's context takes from its share while there is room; where blocks are to be counted there
 * is none. */
/** As many changes as a third of the letters, and one, are a spelling mistake; the first of the
 *  nearest is named. */
static void nearest_names(void)
{
    static const struct {
        const char *name, *names[2], *want;
    } jobs[] = {{"ab", {"ax", "ab"}, "ab"},
                {"ab", {"xy", "ax"}, "ax"},
                {"abc", {"xyc", "xyz"}, "xyc"},
                {"abcde", {"xyzde", "xyzwe"}, NULL},
                {"abcde", {"xyzde", "xycde"}, "xycde"},
                {"abcdef", {"xyzwef", "xyzdef"}, "xyzdef"},
                {"abcdef", {"xyzwef", "xyzwvf"}, NULL},
                {"abc", {"abx", "aby"}, "abx"},
                {"Abc", {"abx", "abc"}, "abc"},
                {"abc", {"xbc", "Abc"}, "Abc"}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        const char *const got = frgi_nearest(jobs[i].name, jobs[i].names, 2);
        CHECK_SAYS(got == jobs[i].want || (got && jobs[i].want && strcmp(got, jobs[i].want) == 0),
                   "%s: %s", jobs[i].name, got ? got : "none");
    }
    /* names of more than 64 letters are not looked at */
    char longest[67];
    memset(longest, 'a', sizeof longest);
    longest[66] = '\0';
    const char *const names[] = {longest + 1, longest + 2};
    CHECK(frgi_nearest(longest + 1, names, 2) == NULL);
    CHECK(frgi_nearest(longest + 2, names, 2) == longest + 2);
}

/** Blocks that are out, of an allocator and of what lies below it. */
typedef struct {
    frg_allocator below;
    int64_t out;
} counted_memory;

static void *count_alloc(size_t bytes, void *user)
{
    counted_memory *const m = user;
    m->out++;
    return m->below.alloc(bytes, m->below.user);
}

static void count_free(void *p, size_t bytes, void *user)
{
    counted_memory *const m = user;
    m->out--;
    m->below.free(p, bytes, m->below.user);
}

static void slabs(void)
{
    frg_context *ctx = test_context(), *one = NULL;
    const size_t before = frg_bytes_held(ctx);
    frgi_slab s[2];
    CHECK_OK(ctx, frgi_slab_open(s, 2, ctx, 100000));
    const bool there = s[0].base != NULL; /* not under a sanitizer */
    const char *const begin = s[0].base, *const end = there ? begin + s[0].bytes : NULL;
    CHECK(!there || (s[0].bytes >= 100000 && s[1].base == end));
    counted_memory beyond = {.below = s[0].below};
    s[0].below = (frg_allocator){count_alloc, count_free, &beyond};
    CHECK_OK(ctx, frgi_context_fork(&one, ctx, 2, &s[0]));
    const int64_t forked = beyond.out;
    char *x = NULL, *y = NULL, *large = NULL;
    CHECK_OK(one, NEW(one, &x, 100, "bytes"));
    CHECK_OK(one, NEW(one, &y, 100, "bytes"));
    CHECK(((uintptr_t)x & 63) == 0 && ((uintptr_t)y & 63) == 0);
    CHECK(!there || (x > begin && y >= x + 100 && y + 100 <= end));
    const char *const last = y;
    DROP(one, &y);
    CHECK_OK(one, NEW(one, &y, 100, "bytes"));
    CHECK(!there || y == last);
    DROP(one, &x); /* not the last taken: its place is not given again */
    CHECK_OK(one, NEW(one, &x, 100, "bytes"));
    CHECK(!there || x >= y + 100);
    CHECK_OK(one, NEW0(one, &large, s[0].bytes + 1, "bytes"));
    CHECK(!there || large + s[0].bytes < begin || large >= end);
    CHECK(!there || beyond.out == forked + 1);
    DROP(one, &large);
    CHECK(!there || beyond.out == forked);
    DROP(one, &x);
    DROP(one, &y);
    frg_context_destroy(one);
    frgi_slab_close(s, ctx);
    CHECK_INT(frg_bytes_held(ctx), before);
    frg_context_destroy(ctx);

    fault_memory m;
    fault_memory_open(&m);
    ctx = test_context_with(1, &m.table, NULL);
    CHECK_OK(ctx, frgi_slab_open(s, 2, ctx, 100000));
    CHECK(s[0].base == NULL && s[0].bytes == 0);
    CHECK_OK(ctx, frgi_context_fork(&one, ctx, 2, &s[0])); /* a share of nothing hands on */
    CHECK_OK(one, NEW(one, &x, 100, "bytes"));
    CHECK(m.live_blocks == 3);
    DROP(one, &x);
    frg_context_destroy(one);
    CHECK(m.live_blocks == 1 && m.broken == 0);
    m.fail_at = m.calls + 1;
    CHECK_STATUS(frgi_context_fork(&one, ctx, 2, NULL), FRG_NO_MEMORY);
    CHECK(one == NULL && strstr(frg_message(ctx), "a thread's context"));
    frgi_slab_close(s, ctx);
    frg_context_destroy(ctx);
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.memory_limit = 40 << 20;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    CHECK_OK(ctx, frgi_slab_open(s, 2, ctx, 100000));
    CHECK(s[0].base == NULL && s[0].bytes == 0);
    /* threads' contexts share what the limit leaves, and get no more than nothing of nothing */
    const int64_t left = o.memory_limit - (int64_t)frg_bytes_held(ctx);
    CHECK_OK(ctx, frgi_context_fork(&one, ctx, 4, NULL));
    CHECK_INT(one->opts.memory_limit, left / 4);
    frg_context_destroy(one);
    CHECK_OK(ctx, NEW(ctx, &x, left - 66, "bytes"));
    CHECK_OK(ctx, frgi_context_fork(&one, ctx, 4, NULL));
    CHECK_INT(one->opts.memory_limit, 1);
    CHECK_STATUS(NEW(one, &y, 1, "bytes"), FRG_NO_MEMORY);
    frg_context_destroy(one);
    DROP(ctx, &x);
    frg_context_destroy(ctx);
}

static const char *name_of(const void *names, int64_t i)
{
    return ((const char *const *)names)[i];
}

/** Of the columns there are the first ones are named, as far as there is room; where not even
 *  one has any, they are counted. */
static void advice(void)
{
    enum { MANY = 30 };
    static char longest[400];
    static const char *many[MANY];
    memset(longest, 'a', sizeof longest - 1);
    for (int i = 0; i < MANY; i++)
        many[i] = "column";
    const char *const few[] = {"x", "y"}, *const far[] = {longest, "y"},
                      *const later[] = {"y", longest};
    char text[FRGI_ADVICE];
    CHECK_TEXT(frgi_column_advice(text, "y", 2, name_of, few), "; did you mean 'y'?");
    CHECK_TEXT(frgi_column_advice(text, NULL, 2, name_of, few), "; there are 'x', 'y'");
    CHECK_TEXT(frgi_column_advice(text, NULL, 0, name_of, few), "");
    CHECK_TEXT(frgi_column_advice(text, NULL, 2, name_of, far), "; there are 2 columns");
    CHECK_TEXT(frgi_column_advice(text, NULL, 2, name_of, later), "; there are 'y' and 1 more");
    CHECK(strstr(frgi_column_advice(text, NULL, 1, name_of, few), "the one column is 'x'"));
    frgi_column_advice(text, NULL, MANY, name_of, many);
    CHECK_TEXT(strrchr(text, '\''), "' and 10 more"); /* 20 are named */
}

/** What a spreadsheet takes for a formula; numbers with a sign are numbers, and a sign alone is
 *  text. */
static void formulas(void)
{
    static const struct {
        const char *text;
        bool warns;
    } jobs[] = {{"=a", true},   {"@a", true},   {"\ta", true}, {"\ra", true},      {"+a", true},
                {"-1+b", true}, {"-", false},   {"+", false},  {"-1.5e-3", false}, {"+2", false},
                {"1+a", false}, {"a=b", false}, {"", false}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        frg_context *ctx = test_context();
        frgi_warn_of_formula(ctx, jobs[i].text);
        CHECK_SAYS(frg_warning_count(ctx) == jobs[i].warns, "'%s'", jobs[i].text);
        frgi_warn(ctx, W_DROPPED, "another");
        frgi_warn_of_formula(ctx, "=again");
        frgi_warn_of_formula(ctx, "=again"); /* once a run */
        CHECK_INT(frg_warning_count(ctx), 2);
        frg_context_destroy(ctx);
    }
}

static void text(void)
{
    frg_context *ctx = test_context();
    frgi_text t = {0};
    char want[6000] = "";
    for (int i = 0; i < 500; i++) {
        CHECK_OK(ctx, frgi_text_printf(ctx, &t, "%d,", i * i));
        snprintf(want + strlen(want), sizeof want - strlen(want), "%d,", i * i);
    }
    CHECK_TEXT(t.text, want);
    CHECK_INT(t.length, strlen(want));
    CHECK_OK(ctx, frgi_text_append(ctx, &t, "a\0b", 3));
    CHECK_BITS(t.text + t.length - 3, "a\0b", 4);
    frgi_text_free(ctx, &t);
    for (int i = 0; i < 9; i++) /* one letter at a time, and none */
        CHECK_OK(ctx, frgi_text_printf(ctx, &t, "%s", i % 3 ? "x" : ""));
    CHECK_TEXT(t.text, "xxxxxx");
    frgi_text_free(ctx, &t);
    char *copy = NULL;
    CHECK_OK(ctx, frgi_strdup(ctx, &copy, "wages", 4));
    CHECK_TEXT(copy, "wage");
    DROP(ctx, &copy);
    static const char *const names[] = {"industry", "firm", "year"};
    CHECK_TEXT(frg_nearest_name("frim", names, 3), "firm");
    CHECK_TEXT(frg_nearest_name("industri", names, 3), "industry");
    CHECK(frg_nearest_name("population", names, 3) == NULL);
    CHECK(frg_nearest_name("x", names, 0) == NULL);
    static const char *const cases[] = {"y", "x", "POPULATION", "Fim"};
    CHECK_TEXT(frg_nearest_name("X", cases, 4), "x"); /* one letter away is y, too */
    CHECK_TEXT(frg_nearest_name("population", cases, 4), "POPULATION");
    CHECK_TEXT(frg_nearest_name("firm", cases, 4), "Fim");
    CHECK_TEXT(frg_nearest_name("x2", cases, 4), "x");
    CHECK(frg_nearest_name("f", cases, 4) == NULL); /* another letter is no spelling of it */
    static const char *const near[] = {"firn", "FIRM"};
    CHECK_TEXT(frg_nearest_name("firm", near, 2), "FIRM"); /* case alone is nearer than a letter */
    frg_context_destroy(ctx);
}

static void views(void)
{
    double x[12];
    const unsigned doubles = 1u << FRG_F64;
    frg_context *ctx = test_context();
    frg_array a = frg_matrix(x, FRG_F64, 3, 4, 4);
    CHECK_OK(ctx, frgi_array_check(ctx, &a, "x", 2, doubles));
    CHECK(a.stride[0] == 4 && a.stride[1] == 1);
    a = frg_matrix_columns(x, FRG_F64, 3, 4, 3);
    CHECK_OK(ctx, frgi_array_check(ctx, &a, "x", 2, doubles));
    CHECK(a.stride[0] == 1 && a.stride[1] == 3);
    CHECK_STATUS(frgi_array_check(ctx, &a, "x", 1, doubles), FRG_BAD_ARG);
    CHECK_STATUS(frgi_array_check(ctx, &a, "x", 2, 1u << FRG_I32), FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-008");
    CHECK(strstr(frg_message(ctx), "x") && strstr(frg_message(ctx), "f64"));
    a.shape[0] = -1;
    CHECK_STATUS(frgi_array_check(ctx, &a, "x", 2, doubles), FRG_BAD_ARG);
    a.shape[0] = INT64_MAX;
    a.stride[0] = 2;
    CHECK_STATUS(frgi_array_check(ctx, &a, "x", 2, doubles), FRG_BAD_ARG);
    /* numbers of elements that fit, whose bytes do not */
    a = frg_matrix(x, FRG_F64, 3, 1, INT64_MAX / 8);
    CHECK_STATUS(frgi_array_check(ctx, &a, "x", 2, doubles), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "axis 0") && strstr(frg_message(ctx), "address space"));
    a = frg_vector(NULL, FRG_F64, 5);
    CHECK_STATUS(frgi_array_check(ctx, &a, "x", 1, doubles), FRG_BAD_ARG);
    a = frg_vector(NULL, FRG_F64, 0); /* no element lies nowhere */
    CHECK_OK(ctx, frgi_array_check(ctx, &a, "x", 1, doubles));
    a = frg_vector(x, (frg_dtype)77, 5);
    CHECK_STATUS(frgi_array_check(ctx, &a, "x", 1, ~0u), FRG_BAD_ARG);
    a = frg_vector(x, FRG_F64, 5);
    a.device.kind = FRG_CUDA;
    CHECK(frgi_array_check(ctx, &a, "x", 1, doubles) < 0);
    CHECK_INT(frg_sizeof(FRG_BF16), 2);
    CHECK_INT(frg_sizeof((frg_dtype)77), 0);
    CHECK_TEXT(frg_dtype_name(FRG_I64), "i64");
    frg_context_destroy(ctx);
}

static int ask(const frg_progress *p, void *user)
{
    CHECK(p->seconds >= 0);
    return --*(int *)user < 0;
}

/** A size that was not set is no silent default; shorter ones keep what they lack; longer ones may
 *  only hold zeros there. */
static void options(void)
{
    typedef struct {
        size_t struct_size;
        int a, b, c;
    } known;
    frg_context *ctx = test_context();
    struct {
        known k;
        int later[2];
    } given = {.k = {.a = 7, .b = 8, .c = 9}};
    const known defaults = {sizeof defaults, 1, 2, 3};
    for (int c = 0; c < 6; c++) {
        static const struct {
            size_t size;
            int later;
            frg_status status;
        } jobs[] = {{0, 0, FRG_BAD_ARG},
                    {sizeof(size_t), 0, FRG_BAD_ARG},
                    {sizeof(size_t) + 2 * sizeof(int), 0, FRG_OK},
                    {sizeof(known), 0, FRG_OK},
                    {sizeof given, 0, FRG_OK},
                    {sizeof given, 5, FRG_UNSUPPORTED}};
        known into = defaults;
        given.k.struct_size = jobs[c].size;
        given.later[1] = jobs[c].later;
        CHECK_STATUS(frgi_take_opts(ctx, &into, sizeof into, &given), jobs[c].status);
        CHECK(into.struct_size == sizeof into && into.a == (jobs[c].status ? 1 : 7) &&
              into.c == (jobs[c].status || c == 2 ? 3 : 9));
    }
    known into = defaults;
    CHECK_OK(ctx, frgi_take_opts(ctx, &into, sizeof into, NULL));
    CHECK(into.b == 2);
    frg_context *other = NULL;
    CHECK_STATUS(frg_context_create(&other, &(frg_context_opts){.threads = 1}), FRG_BAD_ARG);
    CHECK(other == NULL);
    frg_context_destroy(ctx);
}

/** What a pass has reported last, and how often. */
typedef struct {
    frg_progress last;
    int times, asks; /* to stop from the time `asks` on */
} listener;

static int listen(const frg_progress *p, void *user)
{
    listener *const l = user;
    l->last = *p;
    return ++l->times >= l->asks;
}

/** A pass reports its bytes each tenth of a second, by its first thread, up to its end; the callback
 *  may stop the run, and no later one. */
static void passes(void)
{
    listener l = {.asks = 3};
    frg_context_opts o;
    frg_context *ctx = NULL;
    frg_context_defaults(&o, sizeof o);
    o.on_progress = listen;
    o.user = &l;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    frgi_pass_did(NULL, 1);
    frgi_pass_did(ctx, 1); /* of no pass */
    frgi_pass_begins(ctx, "test", "rows", 100);
    frgi_pass_did(ctx, 30);
    CHECK_INT(l.times, 0);
    ctx->pass.reported -= 1;
    int others = 0; /* a limit of threads may leave none */
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) {
        frgi_pass_did(ctx, 1);
        others = 1;
    }
    CHECK_INT(l.times, 0);
    frgi_pass_did(ctx, 10);
    CHECK(l.times == 1 && l.last.total == 100 && l.last.in_bytes == 1 && isnan(l.last.residual));
    CHECK_INT(l.last.done, 40 + others);
    CHECK_TEXT(l.last.phase, "rows");
    frgi_pass_did(ctx, 10); /* too soon */
    ctx->pass.reported -= 1;
    frgi_pass_did(ctx, 100); /* of another pass */
    CHECK_INT(l.times, 1);
    for (int k = 0; k < 2; k++) {
        CHECK_STATUS(frgi_stopped(ctx), FRG_OK);
        frgi_pass_begins(ctx, "test", "rows", 100);
        ctx->pass.reported -= 1;
        frgi_pass_did(ctx, 1);
    }
    CHECK_STATUS(frgi_stopped(ctx), FRG_INTERRUPTED);
    frgi_run_begins(ctx);
    CHECK_STATUS(frgi_stopped(ctx), FRG_OK);
    frg_context_destroy(ctx);
}

static int note_seconds(const frg_progress *p, void *user)
{
    *(double *)user = p->seconds;
    return 0;
}

static void heartbeats(void)
{
    int left = 2;
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.on_progress = ask;
    o.user = &left;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    const frg_progress p = {.solver = "test", .phase = "phase", .residual = NAN, .target = NAN};
    CHECK_STATUS(frgi_heartbeat(ctx, &p), FRG_OK);
    CHECK_STATUS(frgi_heartbeat(ctx, &p), FRG_OK);
    CHECK_STATUS(frgi_heartbeat(ctx, &p), FRG_INTERRUPTED);
    left = 100;
    frg_interrupt(ctx);
    CHECK_STATUS(frgi_heartbeat(ctx, &p), FRG_INTERRUPTED);
    frg_interrupt_clear(ctx);
    CHECK_STATUS(frgi_heartbeat(ctx, &p), FRG_OK);
    frg_context_destroy(ctx);

    frg_context_defaults(&o, sizeof o);
    o.time_limit = 1e-9;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    frgi_run_begins(ctx);
    for (const double began = frgi_seconds(); frgi_seconds() <= began + 1e-8;)
        ;
    CHECK_STATUS(frgi_heartbeat(ctx, &p), FRG_TIME_LIMIT);
    frg_context_destroy(ctx);

    double seconds = -1;
    frg_context_defaults(&o, sizeof o);
    o.time_limit = 1e6;
    o.on_progress = note_seconds;
    o.user = &seconds;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    const double before = frgi_seconds();
    frgi_run_begins(ctx);
    CHECK_STATUS(frgi_heartbeat(ctx, &p), FRG_OK);
    CHECK(seconds >= 0 && seconds <= frgi_seconds() - before); /* of the run */
    frg_context_destroy(ctx);
}

/** A thread's context is as its parent's but for the threads, and stops with it; its clock is
 *  the run's. */
static void forked(void)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.threads = 3;
    o.seed = 12345;
    o.count_from = 1;
    o.time_limit = 1e6;
    frg_context *ctx = NULL, *one = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    ctx->run_began -= 1000;
    CHECK_OK(ctx, frgi_context_fork(&one, ctx, 2, NULL));
    const frg_progress p = {.solver = "test", .phase = "phase", .residual = NAN, .target = NAN};
    CHECK(frg_threads(one) == 1 && frg_seed(one) == 12345 && frgi_nth(one, 4) == 5);
    CHECK(one->machine.isa == ctx->machine.isa && one->machine.tiles == ctx->machine.tiles &&
          one->opts.time_limit >= 1e6);
    CHECK(one->run_began >= ctx->run_began && one->run_began <= ctx->run_began);
    CHECK(one->opts.memory_limit == 0);
    CHECK_STATUS(frgi_heartbeat(one, &p), FRG_OK);
    frg_interrupt(ctx);
    CHECK_STATUS(frgi_heartbeat(one, &p), FRG_INTERRUPTED);
    frg_interrupt_clear(ctx);
    CHECK_STATUS(frgi_heartbeat(one, &p), FRG_OK);
    one->opts.time_limit = 500; /* of the run, which began before it was there */
    CHECK_STATUS(frgi_heartbeat(one, &p), FRG_TIME_LIMIT);
    frg_context_destroy(one);
    frg_context_destroy(ctx);
}

static int logged;

static void log_line(int level, const char *line, void *user)
{
    (void)user;
    logged += level == 0 && strstr(line, "column x") != NULL;
}

static void warnings(void)
{
    fault_memory m;
    fault_memory_open(&m);
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.allocator = &m.table;
    o.on_log = log_line;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    for (int i = 0; i < 100; i++)
        frgi_warn(ctx, W_DROPPED, "column x%d", i);
    CHECK_INT(logged, 100);
    CHECK_INT(frg_warning_count(ctx), 100);
    CHECK_TEXT(frg_warning_message(ctx, 99), "column x99");
    CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-FE-104");
    CHECK_TEXT(frg_warning_message(ctx, 100), "");
    CHECK_TEXT(frg_warning_message(ctx, -1), "");
    CHECK_TEXT(frg_warning_code(ctx, 100), "");
    CHECK_TEXT(frg_warning_code(ctx, -1), "");
    CHECK(frgi_has_warned(ctx, W_DROPPED) && !frgi_has_warned(ctx, W_SPREADSHEET));
    m.fail_at = 1; /* no room: the warning is lost, nothing else */
    m.fail_from = true;
    for (int i = 0; i < 100; i++)
        frgi_warn(ctx, W_DROPPED, "column x%d", i);
    CHECK_INT(frg_warning_count(ctx), 100);
    frg_warnings_clear(ctx);
    CHECK_INT(frg_warning_count(ctx), 0);
    frg_context_destroy(ctx);
    CHECK_INT(m.live_blocks, 0);
}

static int by_key(const void *a, const void *b, const void *user)
{
    const int64_t *const x = a, *const y = b, sign = *(const int64_t *)user;
    return (int)(sign * ((x[0] > y[0]) - (x[0] < y[0])));
}

static void sorting(void)
{
    int64_t pairs[257][2];
    for (int64_t n = 0; n <= 257; n = n < 20 ? n + 1 : 2 * n + 1) {
        for (int64_t sign = -1; sign <= 1; sign += 2) {
            int64_t sum = 0;
            for (int64_t i = 0; i < n; i++) {
                pairs[i][0] = test_below(n / 2 + 1); /* equal keys among them */
                pairs[i][1] = 3 * pairs[i][0];       /* elements stay whole */
                sum += pairs[i][0];
            }
            frgi_sort(pairs, n, sizeof *pairs, by_key, &sign);
            for (int64_t i = 0; i < n; i++) {
                CHECK(i == 0 || sign * (pairs[i][0] - pairs[i - 1][0]) >= 0);
                CHECK_INT(pairs[i][1], 3 * pairs[i][0]);
                sum -= pairs[i][0];
            }
            CHECK_INT(sum, 0);
            for (int64_t x = -1; x <= n / 2 + 1; x++) { /* keys among them, between and beyond */
                const int64_t key[2] = {x, 0};
                int64_t before = 0;
                for (int64_t i = 0; i < n; i++) {
                    before += sign * (pairs[i][0] - x) < 0;
                }
                CHECK_INT(frgi_count_before(pairs, n, sizeof *pairs, key, by_key, &sign), before);
            }
        }
    }
}

static const test_case cases[] = {
    {"sorting", sorting},
    {"statuses", statuses},
    {"catalogue", catalogue},
    {"philox", philox},
    {"contexts", contexts},
    {"groups", groups},
    {"memory", memory},
    {"kept blocks", kept_blocks},
    {"smallest kept block", smallest_kept_block},
    {"kept blocks at most", kept_blocks_at_most},
    {"too much", too_much},
    {"arena", arena},
    {"slabs", slabs},
    {"nearest names", nearest_names},
    {"advice", advice},
    {"formulas", formulas},
    {"text", text},
    {"views", views},
    {"options", options},
    {"heartbeats", heartbeats},
    {"passes", passes},
    {"forked", forked},
    {"warnings", warnings},
};
TEST_MAIN(cases)
