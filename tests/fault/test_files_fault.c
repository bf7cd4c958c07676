/* test_files_fault.c - core's reader and writer while files fail: the old file or the new one,
 * whole, and nothing else in the folder. */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "fault.h"

enum { OLD_BYTES = 1000, NEW_BYTES = 200000 }; /* the new one is several write buffers long */

static char folder[] = "/tmp/fourge_files_XXXXXX";
static char path[sizeof folder + 16];

static void fill(char *bytes, int64_t count, int seed)
{
    for (int64_t i = 0; i < count; i++)
        bytes[i] = (char)(i * 31 + seed);
}

static void write_old(void)
{
    static char old[OLD_BYTES];
    fill(old, OLD_BYTES, 1);
    FILE *f = fopen(path, "wb");
    if (CHECK(f != NULL)) {
        CHECK(fwrite(old, 1, sizeof old, f) == sizeof old);
        fclose(f);
    }
}

/** 1: the old file, 2: the new one, 0: anything else. */
static int what_is_there(void)
{
    static char bytes[NEW_BYTES + 1], want[NEW_BYTES];
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    const size_t got = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    fill(want, OLD_BYTES, 1);
    if (got == OLD_BYTES && memcmp(bytes, want, got) == 0)
        return 1;
    fill(want, NEW_BYTES, 2);
    return got == NEW_BYTES && memcmp(bytes, want, got) == 0 ? 2 : 0;
}

static int count_files(void)
{
    int files = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));)
        files += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return files;
}

static frg_status write_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    static char fresh[NEW_BYTES];
    fill(fresh, NEW_BYTES, 2);
    write_old();
    frgi_writer *w = NULL;
    frg_status s = frgi_writer_open(&w, ctx, path);
    for (int64_t at = 0; at < NEW_BYTES && s >= 0;
         at += 5000) /* in pieces that straddle the buffer */
        s = frgi_writer_put(w, fresh + at, 5000);
    if (s >= 0)
        s = frgi_writer_commit(&w);
    else
        frgi_writer_abandon(&w);
    CHECK(w == NULL);
    const int there = what_is_there();
    CHECK_SAYS(there == 2 || (there == 1 && s < 0), "after %s the file is neither old nor new",
               frg_status_name(s));
    CHECK_SAYS(count_files() == 1, "after %s %d files are in the folder", frg_status_name(s),
               count_files());
    fault_hash(hash, &there, sizeof there);
    return s;
}

static frg_status read_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    char *bytes = NULL;
    size_t count = 0;
    const frg_status s = frgi_read_file(ctx, path, &bytes, &count);
    if (s >= 0)
        fault_hash(hash, bytes, count);
    else
        CHECK(bytes == NULL);
    DROP(ctx, &bytes);
    return s;
}

static bool enter(void)
{
    strcpy(folder, "/tmp/fourge_files_XXXXXX");
    if (!CHECK(mkdtemp(folder) != NULL))
        return false;
    snprintf(path, sizeof path, "%s/table.csv", folder);
    return true;
}

static void leave(void)
{
    remove(path);
    CHECK(rmdir(folder) == 0);
}

static void writing(void)
{
    if (!enter())
        return;
    fault_sweep_files("writer", write_body, NULL);
    fault_sweep("writer", write_body, NULL, 1);
    leave();
}

static void reading(void)
{
    if (!enter())
        return;
    write_old();
    fault_sweep_files("reader", read_body, NULL);
    fault_sweep("reader", read_body, NULL, 1);
    leave();
}

/** A file without a size, as a pipe is: what is read grows with it, also where it ends with the
 *  room there was. */
static void without_size(void)
{
    static const int64_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, NEW_BYTES};
    static char wanted[NEW_BYTES];
    if (!enter())
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill(wanted, sizes[i], 3);
        FILE *const f = fopen(path, "wb");
        CHECK(f && fwrite(wanted, 1, (size_t)sizes[i], f) == (size_t)sizes[i] && fclose(f) == 0);
        for (int64_t at_most = 0; at_most <= 7001; at_most += 7001) {
            fault_disk disk;
            fault_disk_open(&disk);
            disk.no_size = true;
            disk.at_most = at_most;
            frg_context *ctx = test_context_with(1, NULL, &disk.table);
            char *bytes = NULL;
            size_t count = 1;
            if (CHECK_OK(ctx, frgi_read_file(ctx, path, &bytes, &count)) &&
                CHECK_INT(count, sizes[i]))
                CHECK_BITS(bytes, wanted, count);
            DROP(ctx, &bytes);
            frg_context_destroy(ctx);
            CHECK_INT(disk.open_handles, 0);
        }
    }
    leave();
}

/** A folder that is not there, a file that is not there, a folder in place of a file. */
static void missing(void)
{
    frg_context *ctx = test_context();
    frgi_writer *w = NULL;
    CHECK_STATUS(frgi_writer_open(&w, ctx, "/no/such/folder/x.csv"), FRG_CANNOT_CREATE);
    CHECK(w == NULL && strstr(frg_message(ctx), "/no/such/folder/x.csv"));
    char *bytes = NULL;
    size_t count = 1;
    CHECK_STATUS(frgi_read_file(ctx, "/no/such/file.csv", &bytes, &count), FRG_NO_INPUT);
    CHECK_INT(count, 0);
    CHECK(strstr(frg_message(ctx), "/no/such/file.csv"));
    CHECK(frgi_read_file(ctx, "/", &bytes, &count) < 0);
    CHECK(bytes == NULL);
    frg_context_destroy(ctx);
}

static frg_status put_file(frgi_writer *w, int64_t count, int seed)
{
    static char bytes[NEW_BYTES];
    fill(bytes, count, seed);
    return frgi_writer_put(w, bytes, (size_t)count);
}

/** A context whose files have names from the start, as where the system has none without: a table
 *  of its own. */
static int rename_by_name(const char *from, const char *to, void *user)
{
    return frg_system_files()->rename(from, to, user);
}

static frg_context *context_of(bool named)
{
    frg_files files = *frg_system_files();
    files.rename = named ? rename_by_name : files.rename;
    frg_context *ctx = NULL;
    CHECK_STATUS(fault_context(&ctx, 1, NULL, &files), FRG_OK);
    return ctx;
}

/** Does the folder take files without a name, and can they be given one? */
static bool has_unnamed_files(void)
{
    const int fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0 && access("/proc/self/fd/0", F_OK) == 0;
}

/** Two writers of one path, begun and ended crosswise: each publishes its own file, whole. */
static void two_writers_of(bool named)
{
    frg_context *a = context_of(named), *b = context_of(named);
    frgi_writer *one = NULL, *two = NULL;
    if (CHECK_OK(a, frgi_writer_open(&one, a, path)) &&
        CHECK_OK(b, frgi_writer_open(&two, b, path))) {
        CHECK_OK(a, put_file(one, OLD_BYTES, 1));
        CHECK_OK(b, put_file(two, NEW_BYTES, 2));
        CHECK(named ? count_files() == 2 : !has_unnamed_files() || count_files() == 0);
        CHECK_OK(a, frgi_writer_commit(&one));
        CHECK(what_is_there() == 1 && count_files() <= 2);
        CHECK_OK(b, frgi_writer_commit(&two));
        CHECK(what_is_there() == 2 && count_files() == 1);
    }
    frg_context_destroy(a);
    frg_context_destroy(b);
    remove(path);
}

static void two_writers(void)
{
    if (!enter())
        return;
    two_writers_of(false);
    two_writers_of(true);
    leave();
}

static frg_status write_new(frg_context *ctx, const char *name)
{
    frgi_writer *w = NULL;
    frg_status s = frgi_writer_open(&w, ctx, name);
    if (s >= 0)
        s = put_file(w, NEW_BYTES, 2);
    if (s >= 0)
        s = frgi_writer_commit(&w);
    frgi_writer_abandon(&w);
    return s;
}

/** What is replaced keeps its permissions, and a symbolic link goes on pointing to what was
 *  written. */
static void in_its_place(void)
{
    if (!enter())
        return;
    char link[sizeof path + 8];
    snprintf(link, sizeof link, "%s.link", path);
    frg_context *ctx = test_context();
    struct stat s;
    write_old();
    CHECK(chmod(path, 0600) == 0 && symlink("table.csv", link) == 0);
    CHECK_OK(ctx, write_new(ctx, path));
    CHECK(what_is_there() == 2 && stat(path, &s) == 0 && (s.st_mode & 07777) == 0600);
    write_old();
    CHECK_OK(ctx, write_new(ctx, link));
    CHECK(what_is_there() == 2 && lstat(link, &s) == 0 && S_ISLNK(s.st_mode));
    CHECK(stat(path, &s) == 0 && (s.st_mode & 07777) == 0600);
    CHECK(count_files() == 2);
    remove(link);
    frg_context_destroy(ctx);
    leave();
}

/** Writes the file over and over, the old and the new one by turns, until it is killed or has done
 *  it `times`. */
static pid_t start_writer(bool named, int64_t times, int seed)
{
    const pid_t child = fork();
    if (child != 0)
        return child;
    frg_context *const ctx = context_of(named);
    for (int64_t i = 0; times == 0 || i < times; i++) {
        frgi_writer *w = NULL;
        if (frgi_writer_open(&w, ctx, path) < 0 ||
            put_file(w, seed == 1 ? OLD_BYTES : NEW_BYTES, seed) < 0 || frgi_writer_commit(&w) < 0)
            _exit(1);
    }
    _exit(0);
}

/** A writer killed at any instant leaves the old file or the new one, whole; the next removes what
 *  else it left. */
static void killed_writers(void)
{
    if (!enter())
        return;
    const int64_t rounds = test_size(60, 10);
    for (int named = 0; named < 2; named++) {
        frg_context *const ctx = context_of(named);
        int64_t left = 0;
        write_old();
        for (int64_t i = 0; i < rounds; i++) {
            const pid_t child = start_writer(named, 0, 2);
            /* from before its first file to after many: a file takes 0.05 to 5 ms, by the disk */
            const double wait = exp(log(5e-5) + log(400) * test_uniform());
            nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * wait)}, NULL);
            CHECK(child > 0 && kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
            CHECK(what_is_there() != 0 && count_files() <= 2);
            left += count_files() == 2;
            CHECK_OK(ctx, write_new(ctx, path));
            CHECK_SAYS(what_is_there() == 2 && count_files() == 1,
                       "%s, round %" PRId64 ": %d files", named ? "named" : "unnamed", i,
                       count_files());
        }
        frg_context_destroy(ctx);
        printf("# %s: %" PRId64 " of %" PRId64 " left a temporary file\n",
               named ? "named" : "unnamed", left, rounds);
    }
    leave();
}

/** What a killed process left under the first name goes; another's file of that name, in use,
 *  stays. */
static void abandoned(void)
{
    if (!enter())
        return;
    char first[sizeof path + 20], second[sizeof path + 20];
    snprintf(first, sizeof first, "%s.000.fourge.tmp", path);
    snprintf(second, sizeof second, "%s.001.fourge.tmp", path);
    frg_context *const ctx = context_of(true);
    frgi_writer *one = NULL, *two = NULL;
    write_old();
    CHECK(link(path, first) == 0);
    CHECK_OK(ctx, frgi_writer_open(&one, ctx, path)); /* it has no lock: taken over */
    CHECK(count_files() == 2 && access(second, F_OK) != 0);
    CHECK_OK(ctx, frgi_writer_open(&two, ctx, path)); /* locked: the next name */
    CHECK(count_files() == 3 && access(second, F_OK) == 0);
    CHECK_OK(ctx, put_file(two, NEW_BYTES, 2));
    CHECK_OK(ctx, frgi_writer_commit(&two));
    frgi_writer_abandon(&one);
    CHECK(what_is_there() == 2 && count_files() == 1);
    frg_context_destroy(ctx);
    leave();
}

/** Processes that write one file at a time: whoever reads it meanwhile sees one of theirs,
 *  whole. */
static void racing_writers(void)
{
    if (!enter())
        return;
    for (int named = 0; named < 2; named++) {
        write_old();
        const int64_t times = test_size(150, 20);
        const pid_t one = start_writer(named, times, 1), two = start_writer(named, times, 2);
        int running = 2, seen[3] = {0};
        while (running > 0) {
            seen[what_is_there()]++;
            int how = 0;
            const pid_t ended = waitpid(-1, &how, WNOHANG);
            CHECK(ended >= 0 && (ended == 0 || ended == one || ended == two));
            CHECK(ended <= 0 || (WIFEXITED(how) && WEXITSTATUS(how) == 0));
            running -= ended != 0;
        }
        CHECK_SAYS(seen[0] == 0, "%d of %d times the file was neither", seen[0],
                   seen[0] + seen[1] + seen[2]);
        CHECK(count_files() == 1 && what_is_there() != 0);
    }
    leave();
}

/** The folder goes while a file is written: an error that names the file, and nothing left open. */
static void lost_folder(void)
{
    if (!enter())
        return;
    char inside[sizeof folder + 40];
    snprintf(inside, sizeof inside, "%s/sub", folder);
    CHECK(mkdir(inside, 0700) == 0);
    snprintf(inside, sizeof inside, "%s/sub/x.csv", folder);
    frg_context *const ctx = context_of(false);
    frgi_writer *w = NULL;
    CHECK_OK(ctx, frgi_writer_open(&w, ctx, inside));
    CHECK_OK(ctx, put_file(w, NEW_BYTES, 2));
    *strrchr(inside, '/') = '\0';
    if (rmdir(inside) == 0) { /* the file had no name */
        CHECK_STATUS(frgi_writer_commit(&w), FRG_IO);
        CHECK(w == NULL && strstr(frg_message(ctx), "sub/x.csv"));
    } else {
        frgi_writer_abandon(&w);
        CHECK(rmdir(inside) == 0);
    }
    frg_context_destroy(ctx);
    leave();
}

/** A signal interrupts each opening of a file once: it is opened all the same. */
static void interrupted_openings(void)
{
    static const fault_case once = {"EINTR", {.kind = FAULT_OPEN, .error = EINTR}, true};
    static const fault_body bodies[] = {write_body, read_body};
    if (!enter())
        return;
    for (int i = 0; i < 2; i++) {
        frg_context *ctx = test_context();
        const fault_result want = fault_call(ctx, bodies[i], NULL);
        int64_t k = 1;
        while (fault_try_files("openings", bodies[i], NULL, &once, k, want))
            k++;
        CHECK(k > 1);
        frg_context_destroy(ctx);
    }
    leave();
}

static int64_t write_nothing(int handle, const void *from, size_t bytes, void *user)
{
    (void)handle, (void)from, (void)bytes, (void)user;
    return 0;
}

/** Whole files at one call: what it takes, and that no failure leaves a part of one. */
static void at_one_call(void)
{
    static const char bytes[NEW_BYTES];
    static const struct {
        const void *bytes;
        int64_t count;
        frg_status status, full; /* of a sound disk, of one that takes nothing */
    } jobs[] = {{bytes, NEW_BYTES, FRG_OK, FRG_IO},
                {bytes, 3, FRG_OK, FRG_IO},
                {NULL, 0, FRG_OK, FRG_OK},
                {NULL, 1, FRG_BAD_ARG, FRG_BAD_ARG},
                {bytes, -1, FRG_BAD_ARG, FRG_BAD_ARG}};
    if (!enter())
        return;
    frg_files none = *frg_system_files();
    none.write = write_nothing;
    for (int full = 0; full < 2; full++) {
        frg_context *ctx = test_context_with(1, NULL, full ? &none : NULL);
        CHECK_STATUS(frg_write_file(ctx, NULL, bytes, 1), FRG_BAD_ARG);
        for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
            const frg_status want = full ? jobs[i].full : jobs[i].status;
            struct stat s;
            CHECK_STATUS(frg_write_file(ctx, path, jobs[i].bytes, jobs[i].count), want);
            CHECK(want != FRG_IO || strstr(frg_message(ctx), strerror(EIO)));
            CHECK(want < 0 ? count_files() == 0
                           : stat(path, &s) == 0 && (int64_t)s.st_size == jobs[i].count);
            remove(path);
        }
        frg_context_destroy(ctx);
    }
    leave();
}

/** What stands in the way of a new file: a link to nothing gives way, a folder under a temporary
 *  file's name is passed over, and a file that was opened as a new one is none. */
static void in_the_way(void)
{
    if (!enter())
        return;
    char first[sizeof path + 20];
    struct stat s;
    snprintf(first, sizeof first, "%s.000.fourge.tmp", path);
    frg_context *const ctx = context_of(false);
    CHECK(symlink("nothing", path) == 0 && mkdir(first, 0700) == 0);
    CHECK_OK(ctx, write_new(ctx, path));
    CHECK(what_is_there() == 2 && lstat(path, &s) == 0 && S_ISREG(s.st_mode));
    CHECK(count_files() == 2 && rmdir(first) == 0);
    write_old();
    CHECK_INT(frg_system_files()->open(path, 'w', NULL), -EEXIST);
    snprintf(first, sizeof first, "%s/x", folder); /* shorter than how temporary files end */
    CHECK(link(path, first) == 0);
    CHECK_INT(frg_system_files()->open(first, 'w', NULL), -EEXIST);
    CHECK(what_is_there() == 1 && remove(first) == 0);
    frg_context_destroy(ctx);
    leave();
}

/** The device that is empty ends, those that are not do not. */
static void devices(void)
{
    frg_context *const ctx = test_context();
    char *bytes = NULL;
    size_t count = 1;
    CHECK_OK(ctx, frgi_read_file(ctx, "/dev/null", &bytes, &count));
    CHECK_INT(count, 0);
    DROP(ctx, &bytes);
    CHECK_STATUS(frgi_read_file(ctx, "/dev/zero", &bytes, &count), FRG_NO_INPUT);
    CHECK(strstr(frg_message(ctx), "'/dev/zero' is a device"));
    CHECK_OK(ctx, write_new(ctx, "/dev/null"));
    frg_context_destroy(ctx);
}

/** A pipe is written to and stays one; a folder is refused before anything is written. */
static void not_replaced(void)
{
    static char bytes[OLD_BYTES], got[OLD_BYTES + 1];
    if (!enter())
        return;
    frg_context *const ctx = test_context();
    frgi_writer *w = NULL;
    struct stat s;
    CHECK(mkfifo(path, 0600) == 0);
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    fill(bytes, OLD_BYTES, 5);
    CHECK_OK(ctx, frg_write_file(ctx, path, bytes, OLD_BYTES));
    CHECK_INT(read(fd, got, sizeof got), OLD_BYTES);
    CHECK_BITS(got, bytes, OLD_BYTES);
    CHECK(lstat(path, &s) == 0 && S_ISFIFO(s.st_mode) && count_files() == 1);
    close(fd);
    CHECK_STATUS(frgi_writer_open(&w, ctx, folder), FRG_CANNOT_CREATE);
    CHECK(!w && strstr(frg_message(ctx), strerror(EISDIR)) && count_files() == 1);
    frg_context_destroy(ctx);
    leave();
}

static const test_case cases[] = {{"writing", writing},
                                  {"reading", reading},
                                  {"without size", without_size},
                                  {"missing", missing},
                                  {"two writers", two_writers},
                                  {"in its place", in_its_place},
                                  {"killed writers", killed_writers},
                                  {"abandoned", abandoned},
                                  {"racing writers", racing_writers},
                                  {"lost folder", lost_folder},
                                  {"interrupted openings", interrupted_openings},
                                  {"at one call", at_one_call},
                                  {"in the way", in_the_way},
                                  {"devices", devices},
                                  {"not replaced", not_replaced}};
TEST_MAIN(cases)
