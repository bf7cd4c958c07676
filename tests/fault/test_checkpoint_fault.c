/* test_checkpoint_fault.c - saved states: round trip, every truncation, every flipped bit, other
 * versions and runs; failing memory and files; the process killed at every file call of a save. */
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/checkpoint_bytes.h"
#include "fault.h"

enum { SMALL = 37, LARGE = 150000 }; /* the large section is several write buffers long */

static char folder[] = "/tmp/fourge_state_XXXXXX";
static char path[sizeof folder + 16], older[sizeof path + 1];
static char small[SMALL], large[LARGE];

static void fill(int generation)
{
    for (int i = 0; i < SMALL; i++)
        small[i] = (char)(i * 7 + generation);
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)(i * 31 + generation);
}

static void enter(void)
{
    strcpy(folder, "/tmp/fourge_state_XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/run.state", folder);
    snprintf(older, sizeof older, "%s~", path);
}

static void leave(void)
{
    remove(path);
    remove(older);
    CHECK(rmdir(folder) == 0);
}

static frg_status save(frg_context *ctx, int generation)
{
    fill(generation);
    frg_checkpoint *c = NULL;
    frg_status s = frg_checkpoint_create(&c, ctx, "test", 11, 22);
    if (s >= 0)
        s = frg_checkpoint_put(c, "small", small, SMALL);
    if (s >= 0)
        s = frg_checkpoint_put(c, "large", large, LARGE);
    if (s >= 0)
        s = frg_checkpoint_put(c, "empty", NULL, 0);
    if (s >= 0)
        s = frg_checkpoint_save(c, path);
    frg_checkpoint_destroy(c);
    return s;
}

/** The generation of a loaded state, -1 if it is none that was saved. */
static int generation_of(const frg_checkpoint *c)
{
    int64_t n = 0, m = 0, none = -1;
    const char *const s = frg_checkpoint_get(c, "small", &n), *const l = frg_checkpoint_get(
                                                                  c, "large", &m);
    if (!s || !l || n != SMALL || m != LARGE || !frg_checkpoint_get(c, "empty", &none) || none != 0)
        return -1;
    const int generation = (unsigned char)s[0];
    fill(generation);
    return memcmp(s, small, SMALL) == 0 && memcmp(l, large, LARGE) == 0 ? generation : -1;
}

static void round_trip(void)
{
    enter();
    frg_context *const ctx = test_context();
    frg_checkpoint *c = NULL;
    CHECK_STATUS(frg_checkpoint_load(&c, ctx, path), FRG_NO_INPUT);
    CHECK(c == NULL);
    for (int generation = 1; generation <= 3; generation++) {
        CHECK_OK(ctx, save(ctx, generation));
        if (CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path))) {
            CHECK_INT(generation_of(c), generation);
            CHECK_TEXT(frg_checkpoint_solver(c), "test");
            CHECK(frg_checkpoint_get(c, "nothing", NULL) == NULL);
            CHECK_STATUS(frg_checkpoint_check(c, "test", 11, 22), FRG_OK);
            CHECK_STATUS(frg_checkpoint_check(c, "other", 11, 22), FRG_MISMATCH);
            CHECK_STATUS(frg_checkpoint_check(c, "test", 12, 22), FRG_MISMATCH);
            CHECK(strstr(frg_message(ctx), "options") != NULL);
            CHECK_STATUS(frg_checkpoint_check(c, "test", 11, 23), FRG_MISMATCH);
            CHECK(strstr(frg_message(ctx), "data") != NULL);
            /* a loaded one may be changed and saved again */
            CHECK_OK(ctx, frg_checkpoint_put(c, "small", "x", 1));
            int64_t n = 0;
            CHECK(*(const char *)frg_checkpoint_get(c, "small", &n) == 'x' && n == 1);
        }
        frg_checkpoint_destroy(c);
    }
    /* the generation before, where the last one is gone or damaged */
    for (int how = 0; how < 2; how++) {
        CHECK(how ? truncate(path, 100) == 0 : remove(path) == 0);
        if (CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path)))
            CHECK_INT(generation_of(c), 2);
        CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-IO-101");
        frg_warnings_clear(ctx);
        frg_checkpoint_destroy(c);
        CHECK_OK(ctx, save(ctx, 2));
        CHECK_OK(ctx, save(ctx, 3));
    }
    CHECK(truncate(path, 10) == 0 && truncate(older, 100) == 0);
    CHECK_STATUS(frg_checkpoint_load(&c, ctx, path), FRG_BAD_DATA);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-010");
    CHECK(strstr(frg_message(ctx), "run.state' ") != NULL); /* the last one, not the one before */
    frg_context_destroy(ctx);
    leave();
}

static void limits(void)
{
    frg_context *const ctx = test_context();
    frg_checkpoint *c = NULL;
    CHECK_STATUS(frg_checkpoint_create(&c, ctx, "a name that is too long", 0, 0), FRG_BAD_ARG);
    CHECK_OK(ctx, frg_checkpoint_create(&c, ctx, "test", 0, 0));
    CHECK_STATUS(frg_checkpoint_put(c, "", "x", 1), FRG_BAD_ARG);
    CHECK_STATUS(frg_checkpoint_put(c, "a name that is too long", "x", 1), FRG_BAD_ARG);
    CHECK_STATUS(frg_checkpoint_put(c, "x", NULL, 1), FRG_BAD_ARG);
    CHECK_STATUS(frg_checkpoint_put(c, NULL, "x", 1), FRG_BAD_ARG);
    CHECK_STATUS(frg_checkpoint_put(c, "x", "x", -1), FRG_BAD_ARG);
    CHECK(frg_checkpoint_get(c, "x", NULL) == NULL); /* none of these is there */
    for (int i = 0; i < 33; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%d", i);
        CHECK_STATUS(frg_checkpoint_put(c, name, "x", 1), i < 32 ? FRG_OK : FRG_BAD_ARG);
    }
    CHECK_TEXT(frg_checkpoint_get(c, "s31", NULL), "x");
    CHECK_STATUS(frg_checkpoint_save(c, "-"), FRG_BAD_ARG);
    CHECK_STATUS(frg_checkpoint_save(c, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_checkpoint_save(c, "/no/such/folder/x"), FRG_CANNOT_CREATE);
    frg_checkpoint_destroy(c);
    frg_checkpoint_destroy(NULL);
    CHECK_STATUS(frg_checkpoint_save(NULL, "x"), FRG_BAD_ARG);
    frg_context_destroy(ctx);
    CHECK(frg_hash(0, "", 0) != frg_hash(1, "", 0));
    CHECK(frg_hash(0, "\0", 1) != frg_hash(0, "\0\0", 2)); /* zeros count */
    const char zeros[64] = {0};
    CHECK(frg_hash(0, zeros, 64) != frg_hash(0, zeros, 56));
}

static frg_status parse(frg_context *ctx, const char *bytes, size_t count)
{
    char *copy;
    frg_checkpoint *c = NULL;
    CHECK_OK(ctx, frgi_alloc(ctx, (void **)&copy, count, "a copy"));
    memcpy(copy, bytes, count);
    const frg_status s = frgi_checkpoint_parse(&c, ctx, &copy, count, "state");
    CHECK((s == FRG_OK) == (c != NULL) && !copy);
    frg_checkpoint_destroy(c);
    return s;
}

/** The layout of the file: a state that an earlier build of this version wrote is read.  The
 *  checksums are of a program of its own in Python, from the description in checkpoint.h and the
 *  formula at frg_hash. */
static void layout(void)
{
    static const struct {
        char magic[8];
        uint32_t version, order;
        char solver[16];
        uint64_t options, data;
        uint32_t sections, zero;
        uint64_t checksum;
        struct {
            char name[16];
            uint64_t bytes, checksum;
        } table[2];
        char bytes[16];
    } want = {
        .magic = {'f', 'o', 'u', 'r', 'g', 'e', 'C', 'K'},
        .version = 1,
        .order = 0x01020304,
        .solver = "test",
        .options = 11,
        .data = 22,
        .sections = 2,
        .checksum = 0x13feb5bf7f94b6b2,
        .table = {{"one", 10, 0x0009c245313581c7}, {"two", 6, 0x17406b6e319fcdfd}},
        .bytes = {'s', 'o', 'm', 'e', ' ', 'b', 'y', 't', 'e', 's', 'o', 't', 'h', 'e', 'r', 's'}};
    enter();
    frg_context *const ctx = test_context();
    frg_checkpoint *c = NULL;
    CHECK_OK(ctx, frg_checkpoint_create(&c, ctx, "test", 11, 22));
    CHECK_OK(ctx, frg_checkpoint_put(c, "one", "some bytes", 10));
    CHECK_OK(ctx, frg_checkpoint_put(c, "two", "others", 6));
    CHECK_OK(ctx, frg_checkpoint_save(c, path));
    frg_checkpoint_destroy(c);
    char *bytes = NULL;
    size_t count = 0;
    CHECK_OK(ctx, frgi_read_file(ctx, path, &bytes, &count));
    if (CHECK_INT(count, sizeof want))
        CHECK_BITS(bytes, &want, sizeof want);
    CHECK_OK(ctx, parse(ctx, (const char *)&want, sizeof want));
    DROP(ctx, &bytes);
    /* tables that their writer got wrong, under checksums that hold */
    for (int fault = 0; fault < 3; fault++) {
        char wrong[sizeof want];
        uint64_t longer = 11, sum = 0;
        memcpy(wrong, &want, sizeof want);
        if (fault == 1)
            wrong[64 + 15] = 'x'; /* a name without an end */
        else if (fault == 2)
            memcpy(wrong + 64 + 32 + 16, &longer, 8); /* a section beyond the file's */
        memcpy(wrong + 56, &sum, 8);
        sum = frg_hash(frg_hash(0, wrong, 64), wrong + 64, 64);
        memcpy(wrong + 56, &sum, 8);
        CHECK_STATUS(parse(ctx, wrong, sizeof wrong), fault ? FRG_BAD_DATA : FRG_OK);
        CHECK(!fault || strstr(frg_message(ctx), "is cut off"));
    }
    frg_context_destroy(ctx);
    leave();
}

/** Of a small file every length and every bit; a flipped one is never taken, a version says so. */
static void damage(void)
{
    enter();
    frg_context *const ctx = test_context();
    frg_checkpoint *c = NULL;
    CHECK_OK(ctx, frg_checkpoint_create(&c, ctx, "test", 11, 22));
    CHECK_OK(ctx, frg_checkpoint_put(c, "one", "some bytes", 10));
    CHECK_OK(ctx, frg_checkpoint_put(c, "two", "others", 6));
    CHECK_OK(ctx, frg_checkpoint_save(c, path));
    frg_checkpoint_destroy(c);
    char *bytes = NULL;
    size_t count = 0;
    CHECK_OK(ctx, frgi_read_file(ctx, path, &bytes, &count));
    CHECK_OK(ctx, parse(ctx, bytes, count));
    for (size_t n = 0; n < count; n++)
        CHECK_INT(parse(ctx, bytes, n), FRG_BAD_DATA);
    for (size_t bit = 0; bit < 8 * count; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        const frg_status s = parse(ctx, bytes, count);
        const bool version =
            bit >= 64 && bit < 128; /* version and byte order have words of their own */
        CHECK_SAYS(s == (version ? FRG_MISMATCH : FRG_BAD_DATA), "bit %zu: %s", bit,
                   frg_status_name(s));
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    char longer[400];
    memcpy(longer, bytes, count);
    longer[count] = 'x';
    CHECK_INT(parse(ctx, longer, count + 1), FRG_BAD_DATA);
    DROP(ctx, &bytes);
    frg_context_destroy(ctx);
    leave();
}

static frg_status save_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    frg_context *const sound = test_context();
    remove(older);
    CHECK_OK(sound, save(sound, 1));
    const frg_status s = save(ctx, 2);
    frg_checkpoint *c = NULL;
    if (CHECK_OK(sound, frg_checkpoint_load(&c, sound, path))) {
        const int generation = generation_of(c);
        CHECK_SAYS(generation == 2 || (generation == 1 && s < 0), "after %s generation %d is there",
                   frg_status_name(s), generation);
        fault_hash(hash, &generation, sizeof generation);
    }
    frg_checkpoint_destroy(c);
    frg_context_destroy(sound);
    return s;
}

static frg_status load_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    frg_checkpoint *c = NULL;
    const frg_status s = frg_checkpoint_load(&c, ctx, path);
    if (s >= 0) {
        const int generation = generation_of(c);
        CHECK(generation > 0);
        fault_hash(hash, large, LARGE);
    }
    CHECK((s >= 0) == (c != NULL));
    frg_checkpoint_destroy(c);
    return s;
}

static void faults(void)
{
    enter();
    fault_sweep_files("save", save_body, NULL);
    fault_sweep("save", save_body, NULL, 1);
    fault_sweep("load", load_body, NULL, 1);
    frg_context *const ctx = test_context();
    CHECK_OK(ctx, save(ctx, 3)); /* the one before is the whole one: it is looked for as well */
    frg_context_destroy(ctx);
    CHECK(truncate(path, 10) == 0);
    fault_sweep("load of the one before", load_body, NULL, 1);
    leave();
}

/** A state that cannot be written leaves the last one under its name, and before it the one that
 *  was there.  Not among these: close, which has nothing to tell that the sync before it has not
 *  (and comes after the rename, up to which the file stays locked). */
static void full_disk(void)
{
    static const fault_kind kinds[] = {FAULT_OPEN, FAULT_WRITE, FAULT_SYNC, FAULT_RENAME};
    enter();
    frg_context *const sound = test_context();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        CHECK_OK(sound, save(sound, 1));
        CHECK_OK(sound, save(sound, 2));
        fault_disk d;
        fault_disk_open(&d);
        d.kind = kinds[i];
        d.error = ENOSPC;
        d.fail_at = kinds[i] == FAULT_RENAME || kinds[i] == FAULT_OPEN ? 2 : 1;
        frg_context *ctx = NULL;
        CHECK_STATUS(fault_context(&ctx, 1, NULL, &d.table), FRG_OK);
        CHECK(save(ctx, 3) < 0 && d.injected == 1);
        frg_context_destroy(ctx);
        char *bytes = NULL;
        size_t count = 0;
        for (int last = 1; last >= 0; last--) {
            frg_checkpoint *c = NULL;
            const char *const name = last ? path : older;
            if (last == 0 && kinds[i] == FAULT_RENAME) {
                break; /* the one before gave its name to the last, which has its own again */
            }
            if (CHECK_OK(sound, frgi_read_file(sound, name, &bytes, &count)) &&
                CHECK_OK(sound, frgi_checkpoint_parse(&c, sound, &bytes, count, name))) {
                CHECK_INT(generation_of(c), 1 + last);
            }
            frg_checkpoint_destroy(c);
        }
    }
    frg_context_destroy(sound);
    leave();
}

/* ---- killed ---------------------------------------------------------------------------------- */

typedef struct {
    const frg_files *system;
    int64_t calls, last; /* the process ends in call `last`, a write after half of its bytes */
} killer;

static void strike(killer *k)
{
    if (++k->calls == k->last)
        _exit(9);
}

static int kill_open(const char *p, char mode, void *user)
{
    strike(user);
    return ((killer *)user)->system->open(p, mode, NULL);
}

static int64_t kill_write(int handle, const void *from, size_t bytes, void *user)
{
    killer *const k = user;
    if (++k->calls == k->last) {
        k->system->write(handle, from, bytes / 2, NULL);
        _exit(9);
    }
    return k->system->write(handle, from, bytes, NULL);
}

static int kill_sync(int handle, void *user)
{
    strike(user);
    return ((killer *)user)->system->sync(handle, NULL);
}

static int kill_close(int handle, void *user)
{
    strike(user);
    return ((killer *)user)->system->close(handle, NULL);
}

static int kill_rename(const char *from, const char *to, void *user)
{
    strike(user);
    return ((killer *)user)->system->rename(from, to, NULL);
}

static int kill_sync_folder(const char *p, void *user)
{
    strike(user);
    return ((killer *)user)->system->sync_folder(p, NULL);
}

static int save_and_die(int64_t last)
{
    killer k = {.system = frg_system_files(), .last = last};
    frg_files files = *k.system;
    files.open = kill_open;
    files.write = kill_write;
    files.sync = kill_sync;
    files.close = kill_close;
    files.rename = kill_rename;
    files.sync_folder = kill_sync_folder;
    files.user = &k;
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.threads = 1;
    o.files = &files;
    frg_context *ctx;
    const bool fine = frg_context_create(&ctx, &o) == FRG_OK && save(ctx, 2) == FRG_OK;
    return fine ? 0 : 1;
}

/** Whatever call the process dies in, the next one finds the old state or the new one, and can save
 *  again. */
static void killed(void)
{
    enter();
    frg_context *const ctx = test_context();
    bool dies = true;
    int64_t calls = 0, old = 0, fresh = 0;
    for (int64_t last = 1; dies && last < 100; last++) {
        remove(older);
        remove(path);
        CHECK_OK(ctx, save(ctx, 1));
        const pid_t child = fork();
        if (child == 0)
            _exit(save_and_die(last));
        int how = 0;
        CHECK(child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how));
        dies = WEXITSTATUS(how) == 9;
        CHECK(dies || WEXITSTATUS(how) == 0);
        calls += dies;
        frg_checkpoint *c = NULL;
        if (CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path))) {
            const int generation = generation_of(c);
            CHECK_SAYS(generation == 2 || (generation == 1 && dies), "call %" PRId64 ": %d", last,
                       generation);
            old += generation == 1;
            fresh += generation == 2;
        }
        frg_checkpoint_destroy(c);
        CHECK_OK(ctx, save(ctx, 3));
        DIR *const d = opendir(folder); /* what the killed one left the next has removed */
        for (const struct dirent *e; d && (e = readdir(d));)
            CHECK_SAYS(!strstr(e->d_name, ".tmp"), "call %" PRId64 ": %s stays", last, e->d_name);
        if (d)
            closedir(d);
    }
    CHECK(!dies && calls > 5 && old > 0 && fresh > 0);
    frg_context_destroy(ctx);
    leave();
}

static const test_case cases[] = {
    {"round trip", round_trip}, {"limits", limits},       {"damage", damage}, {"layout", layout},
    {"faults", faults},         {"full disk", full_disk}, {"killed", killed}};
TEST_MAIN(cases)
