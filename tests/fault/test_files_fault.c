/* test_files_fault.c - core's reader and writer while files fail: the old file or the new one, whole, and
 * nothing else in the folder. */
#include <dirent.h>
#include <sys/stat.h>
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

/** A folder that is not there, a file that is not there, a folder in place of a file. */
static void missing(void)
{
    frg_context *ctx = test_context();
    frgi_writer *w = NULL;
    CHECK_STATUS(frgi_writer_open(&w, ctx, "/no/such/folder/x.csv"), FRG_CANNOT_CREATE);
    CHECK(w == NULL && strstr(frg_message(ctx), "/no/such/folder/x.csv"));
    char *bytes = NULL;
    size_t count = 0;
    CHECK_STATUS(frgi_read_file(ctx, "/no/such/file.csv", &bytes, &count), FRG_NO_INPUT);
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

/** Two writers of one path, begun and ended crosswise: each publishes its own file, whole. */
static void two_writers(void)
{
    if (!enter())
        return;
    frg_context *a = test_context(), *b = test_context();
    frgi_writer *one = NULL, *two = NULL;
    if (CHECK_OK(a, frgi_writer_open(&one, a, path)) &&
        CHECK_OK(b, frgi_writer_open(&two, b, path))) {
        CHECK_OK(a, put_file(one, OLD_BYTES, 1));
        CHECK_OK(b, put_file(two, NEW_BYTES, 2));
        CHECK(count_files() == 2);
        CHECK_OK(a, frgi_writer_commit(&one));
        CHECK(what_is_there() == 1 && count_files() == 2);
        CHECK_OK(b, frgi_writer_commit(&two));
        CHECK(what_is_there() == 2 && count_files() == 1);
    }
    frg_context_destroy(a);
    frg_context_destroy(b);
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

/** What is replaced keeps its permissions, and a symbolic link goes on pointing to what was written. */
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

static const test_case cases[] = {{"writing", writing},
                                  {"reading", reading},
                                  {"missing", missing},
                                  {"two writers", two_writers},
                                  {"in its place", in_its_place}};
TEST_MAIN(cases)
