/* files.c - the system's file table, readers that retry, and writers that publish whole files or
 * none.
 *
 * A writer's order (power may fail between any two steps): temporary file in the same folder,
 * write, sync the file, rename over the old one, sync the folder.  Devices and pipes are written to
 * as they are.
 *
 * The temporary file has no name (O_TMPFILE) where the system has such files: a killed process
 * leaves nothing.  It gets one by linkat, which does not replace: NAME where nothing is there, else
 * NAME.I.fourge.tmp, renamed at once. Where files need names from the start they have that one.
 * Whoever writes a temporary file holds its lock (flock) until it is renamed; one without a lock is
 * a killed process's, and goes to the next that wants its name.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/spool.h"

/* ---- the system's table ---------------------------------------------------------------------- */

static const char TEMPORARY[] = ".fourge.tmp"; /* how names of temporary files end */

static bool is_temporary(const char *path)
{
    const size_t length = strlen(path), end = sizeof TEMPORARY - 1;
    return length > end && strcmp(path + length - end, TEMPORARY) == 0;
}

/** Whether `path` is the file that is open as `fd`. */
static bool is_same_file(int fd, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

/** Removes a temporary file that nobody has locked.  Its name cannot pass to another file in
 *  between: who made that one would have had to remove this one first, for which the lock is
 *  needed. */
static void remove_abandoned(const char *path)
{
    struct stat s;
    if (!is_temporary(path) || lstat(path, &s) != 0 || !S_ISREG(s.st_mode)) {
        return;
    }
    const int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(fd, path)) {
        (void)unlink(path);
    }
    close(fd);
}

/** The folder of a file's path. */
static const char *folder_of(const char *path, char folder[PATH_MAX])
{
    const char *const slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) : 0;
    if (!slash || length >= PATH_MAX) {
        return ".";
    }
    memcpy(folder, path, length ? length : 1);
    folder[length ? length : 1] = '\0';
    return folder;
}

bool frgi_free_space_beside(const char *path, size_t *bytes)
{
    char folder[PATH_MAX];
    struct statvfs v;
    const bool known = statvfs(folder_of(path, folder), &v) == 0 && v.f_blocks > 0;
    *bytes = known ? frgi_mul((size_t)v.f_bavail, (size_t)v.f_frsize) : 0;
    return known;
}

/** A new temporary file under its name and locked; -EEXIST where another process has that name. */
static int open_named(const char *path)
{
    remove_abandoned(path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        return -errno;
    }
    /* somebody may have found it before it was locked; file systems without locks leave it at
     * that */
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && is_same_file(fd, path)) {
        return fd;
    }
    close(fd);
    return -EEXIST;
}

static void name_of_handle(int handle, char name[32])
{
    snprintf(name, 32, "/proc/self/fd/%d", handle);
}

/** A file without a name in the folder of `path`, locked; negative where there are none or they
 *  could not be named. */
static int open_unnamed(const char *path)
{
    char folder[PATH_MAX], name[32];
    const int fd = open(folder_of(path, folder), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd < 0) {
        return -errno;
    }
    name_of_handle(fd, name);
    if (access(name, F_OK) != 0) {
        close(fd);
        return -EOPNOTSUPP;
    }
    (void)flock(fd, LOCK_EX | LOCK_NB);
    return fd;
}

/** Names a file that has no name; -EEXIST where that name is there. */
static int name_file(int handle, const char *to)
{
    char name[32];
    name_of_handle(handle, name);
    return linkat(AT_FDCWD, name, AT_FDCWD, to, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int system_open(const char *path, char mode, void *user)
{
    (void)user;
    struct stat s;
    const bool there = stat(path, &s) == 0;
    if (there && S_ISDIR(s.st_mode)) {
        return -EISDIR;
    }
    if (mode == 'd' && (!there || S_ISREG(s.st_mode))) {
        return -ENODEV;
    }
    if (mode == 'w') {
        return open_named(path);
    }
    const int fd = open(path, (mode == 'd' ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int64_t system_read(int handle, void *to, size_t bytes, void *user)
{
    (void)user;
    const ssize_t got = read(handle, to, bytes);
    return got < 0 ? -errno : got;
}

static int64_t system_write(int handle, const void *from, size_t bytes, void *user)
{
    (void)user;
    const ssize_t put = write(handle, from, bytes);
    return put < 0 ? -errno : put;
}

static int system_sync(int handle, void *user)
{
    (void)user;
    return fsync(handle) < 0 ? -errno : 0;
}

static int system_close(int handle, void *user)
{
    (void)user;
    return close(handle) < 0 ? -errno : 0;
}

static int system_rename(const char *from, const char *to, void *user)
{
    (void)user;
    return rename(from, to) < 0 ? -errno : 0;
}

static int system_remove(const char *path, void *user)
{
    (void)user;
    return unlink(path) < 0 ? -errno : 0;
}

static int system_sync_folder(const char *path_of_file, void *user)
{
    (void)user;
    char folder[PATH_MAX];
    const int fd = open(folder_of(path_of_file, folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    const int result = fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return result;
}

static int64_t system_size(int handle, void *user)
{
    (void)user;
    struct stat s;
    return fstat(handle, &s) == 0 && S_ISREG(s.st_mode) ? (int64_t)s.st_size : -1;
}

const frg_files *frg_system_files(void)
{
    static const frg_files table = {
        .open = system_open,
        .read = system_read,
        .write = system_write,
        .sync = system_sync,
        .close = system_close,
        .rename = system_rename,
        .remove = system_remove,
        .sync_folder = system_sync_folder,
        .size = system_size,
    };
    return &table;
}

enum { READ_AGAIN = 100 /* ms until a wait looks whether the run is to stop */ };

/** Whether handles are descriptors and paths the system's: other tables have neither pipes to wait
 *  for nor files without names. */
static bool has_system_files(const frg_context *ctx)
{
    return ctx->files.open == system_open && ctx->files.rename == system_rename;
}

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

/** A handle, or the error's negative number; a signal does not end it. */
static int open_file(const frg_context *ctx, const char *path, char mode)
{
    int handle;
    do {
        handle = ctx->files.open(path, mode, ctx->files.user);
    } while (handle == -EINTR);
    return handle;
}

static bool is_pipe(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISFIFO(s.st_mode);
}

/** Devices have no end, but for terminals and /dev/null. */
static bool is_endless(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0 || !(S_ISCHR(s.st_mode) || S_ISBLK(s.st_mode))) {
        return false;
    }
    struct stat null;
    const bool is_null = stat("/dev/null", &null) == 0 && null.st_rdev == s.st_rdev;
    const int fd = is_null ? -1 : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const bool terminal = fd >= 0 && isatty(fd);
    if (fd >= 0) {
        close(fd);
    }
    return !is_null && !terminal;
}

/** Without waiting for somebody who writes: wait_for_bytes does that. */
static int open_pipe(const char *path)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* ---- readers --------------------------------------------------------------------------------- */

frg_status frgi_reader_open(frgi_reader *r, frg_context *ctx, const char *path)
{
    *r = (frgi_reader){.handle = 0, .path = path};
    if (is_standard(path)) {
        return FRG_OK;
    }
    if (ctx->files.open == system_open && is_endless(path)) {
        r->path = NULL; /* nothing to close */
        frgi_at(ctx, "%s", path);
        FAIL(ctx, E_NO_INPUT, "'%s' is a device, and no file that ends", path);
    }
    r->pipe = ctx->files.open == system_open && is_pipe(path);
    const int handle = r->pipe ? open_pipe(path) : open_file(ctx, path, 'r');
    if (handle < 0) {
        r->path = NULL; /* nothing to close */
        frgi_at(ctx, "%s", path);
        FAIL(ctx, E_NO_INPUT, "cannot open '%s': %s", path, strerror(-handle));
    }
    r->handle = handle;
    return FRG_OK;
}

/** Waits until a read will not; false where the run was stopped before.  Other tables than the
 *  system's have no descriptors to ask. */
static bool wait_for_bytes(const frgi_reader *r, const frg_context *ctx)
{
    struct pollfd one = {.fd = r->handle, .events = POLLIN};
    const bool asks = ctx->files.read == system_read && (r->stops || r->pipe);
    int ready = asks ? 0 : 1;
    while (ready == 0) {
        if (r->stops && frgi_stopped(ctx) != FRG_OK) {
            return false;
        }
        ready = poll(&one, 1, READ_AGAIN);
        ready = ready < 0 && errno == EINTR ? 0 : ready;
    }
    return true; /* what is wrong with it the read will tell */
}

frg_status frgi_reader_get(frgi_reader *r, frg_context *ctx, void *to, size_t bytes, size_t *got)
{
    *got = 0;
    while (*got < bytes) {
        if (!wait_for_bytes(r, ctx)) {
            break;
        }
        const int64_t n =
            ctx->files.read(r->handle, (char *)to + *got, bytes - *got, ctx->files.user);
        if (n == -EINTR || (n == -EAGAIN && r->pipe)) {
            continue;
        }
        if (n < 0) {
            TRY(frgi_spool_fault(ctx, (int)-n));
            frgi_at(ctx, "%s", r->path);
            FAIL(ctx, E_READ, "reading '%s' failed: %s", r->path, strerror((int)-n));
        }
        if (n == 0) {
            break;
        }
        *got += (size_t)n;
    }
    return FRG_OK;
}

int64_t frgi_reader_size(const frgi_reader *r, const frg_context *ctx)
{
    return ctx->files.size(r->handle, ctx->files.user);
}

void frgi_reader_close(frgi_reader *r, frg_context *ctx)
{
    if (r->path && !is_standard(r->path)) {
        ctx->files.close(r->handle, ctx->files.user);
    }
    r->path = NULL;
}

frg_status frgi_reader_map(const frgi_reader *r, frg_context *ctx, size_t bytes, const char **out)
{
    *out = NULL;
    const bool file = has_system_files(ctx) && !r->pipe && !is_standard(r->path);
    return file ? frgi_spool_map(ctx, r->handle, r->path, bytes, out) : FRG_OK;
}

frg_status frgi_endless(frg_context *ctx, const char *name, int64_t bytes, size_t more)
{
    const size_t allowed = frgi_memory_allowed(ctx);
    if (frgi_add(ctx->heap.held, more) / 3 > allowed / 4) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_MEMORY,
             "'%s' has not ended after %lld bytes, and needs more than three quarters of the %zu "
             "bytes of memory there are",
             name, (long long)bytes, allowed);
    }
    return FRG_OK;
}

frg_status frgi_read_file(frg_context *ctx, const char *path, char **bytes, size_t *count)
{
    *bytes = NULL;
    *count = 0;
    frgi_reader r;
    TRY(frgi_reader_open(&r, ctx, path));
    const int64_t size = frgi_reader_size(&r, ctx);
    r.stops = size < 0; /* who has a size does not wait */
    size_t capacity = size >= 0 ? (size_t)size + 1 : (size_t)1 << 16, used = 0;
    char *text;
    frg_status status;
    TRY_TO(done, NEW(ctx, &text, capacity, "file contents"));
    for (;;) {
        size_t got;
        TRY_TO(failed, frgi_reader_get(&r, ctx, text + used, capacity - used, &got));
        used += got;
        if (used < capacity) {
            break;
        }
        capacity = frgi_mul(capacity, 2);
        TRY_TO(failed, frgi_endless(ctx, path, (int64_t)used, capacity));
        TRY_TO(failed, GROW(ctx, &text, capacity, "file contents"));
    }
    status = r.stops ? frgi_stopped(ctx) : FRG_OK;
    if (status != FRG_OK) { /* what was read may not be all there is */
        goto failed;
    }
    *bytes = text;
    *count = used;
    goto done;
failed:
    DROP(ctx, &text);
done:
    frgi_reader_close(&r, ctx);
    return status;
}

/* ---- writers --------------------------------------------------------------------------------- */

enum { WRITE_BYTES = 1 << 16, STANDARD_OUTPUT = 1 };

struct frgi_writer {
    frg_context *ctx;
    int handle;
    bool standard; /* standard output */
    bool direct;   /* that, a device, a pipe: nothing to publish */
    bool unnamed;  /* the file has no name yet */
    char *path, *temporary;
    size_t used;
    char buffer[WRITE_BYTES];
};

/** The file that will be replaced: what a symbolic link in its place points to, if that is
 *  there. */
static frg_status name_target(frgi_writer *w, const char *path)
{
    struct stat s;
    const bool link =
        w->ctx->files.open == system_open && lstat(path, &s) == 0 && S_ISLNK(s.st_mode);
    char real[PATH_MAX];
    const char *const target = link && realpath(path, real) ? real : path;
    return frgi_strdup(w->ctx, &w->path, target, strlen(target));
}

/* more names than there are writers of one file at a time */
enum { NAMES = 1000, NAME_BYTES = sizeof ".999.fourge.tmp" };

/** The i-th name of a temporary file of w, i < NAMES, into w->temporary. */
static void name_temporary(frgi_writer *w, int i)
{
    snprintf(w->temporary, strlen(w->path) + NAME_BYTES, "%s.%03d%s", w->path, i, TEMPORARY);
}

/** A new file beside the target: without a name where the system has such, else under one that no
 *  other writer has. */
static int open_temporary(frgi_writer *w)
{
    const bool system = has_system_files(w->ctx);
    name_temporary(w, 0);
    if (system) {
        remove_abandoned(w->temporary);
    }
    int handle = system ? open_unnamed(w->path) : -EOPNOTSUPP;
    w->unnamed = handle >= 0;
    for (int i = 0; i < NAMES && !w->unnamed && (i == 0 || handle == -EEXIST); i++) {
        name_temporary(w, i);
        handle = open_file(w->ctx, w->temporary, 'w');
    }
    struct stat s;
    if (handle >= 0 && w->ctx->files.open == system_open && stat(w->path, &s) == 0) {
        (void)fchmod(handle, s.st_mode & 07777); /* a file that is replaced keeps its permissions */
    }
    return handle;
}

/** Gives the finished file its name; 0 or the error's negative number.  Nothing is allocated here:
 *  of several files that are published together none is left out for want of memory. */
static int publish(frgi_writer *w)
{
    const frg_files *const files = &w->ctx->files;
    if (w->unnamed) {
        int error = name_file(w->handle, w->path);
        if (error != -EEXIST) {
            return error;
        }
        for (int i = 0; i < NAMES && error == -EEXIST; i++) {
            name_temporary(w, i);
            remove_abandoned(w->temporary);
            error = name_file(w->handle, w->temporary);
        }
        if (error) {
            return error;
        }
        w->unnamed = false;
    }
    return files->rename(w->temporary, w->path, files->user);
}

frg_status frgi_writer_open(frgi_writer **out, frg_context *ctx, const char *path)
{
    *out = NULL;
    frgi_writer *w;
    TRY(NEW(ctx, &w, 1, "write buffer"));
    *w = (frgi_writer){.ctx = ctx};
    frg_status status;
    TRY_TO(failed, name_target(w, path));
    w->standard = is_standard(path) || strcmp(path, "/dev/stdout") == 0;
    /* a device or a pipe is written to, not replaced by a file of its name */
    int handle = w->standard ? STANDARD_OUTPUT : open_file(ctx, path, 'd');
    w->direct = handle >= 0;
    if (handle == -ENODEV || handle == -ENOENT) {
        TRY_TO(failed, NEW(ctx, &w->temporary, strlen(w->path) + NAME_BYTES, "a file's name"));
        handle = open_temporary(w);
    }
    if (handle < 0) {
        frgi_at(ctx, "%s", path);
        status = frgi_fail(ctx, E_CREATE, __FILE__, __LINE__, "cannot create '%s': %s", path,
                           strerror(-handle));
        goto failed;
    }
    w->handle = handle;
    *out = w;
    return FRG_OK;
failed:
    DROP(ctx, &w->path);
    DROP(ctx, &w->temporary);
    DROP(ctx, &w);
    return status;
}

static frg_status write_failed(frgi_writer *w, int error)
{
    const char *name = w->standard ? "standard output" : w->path;
    TRY(frgi_spool_fault(w->ctx, error));
    frgi_at(w->ctx, "%s", name);
    FAIL(w->ctx, E_WRITE, "writing '%s' failed: %s", name, strerror(error));
}

static frg_status flush(frgi_writer *w, const char *bytes, size_t count)
{
    const frg_files *files = &w->ctx->files;
    while (count > 0) {
        const int64_t put = files->write(w->handle, bytes, count, files->user);
        if (put == -EINTR) {
            continue;
        }
        if (put <= 0) {
            return write_failed(w, put < 0 ? (int)-put : EIO);
        }
        bytes += put;
        count -= (size_t)put;
    }
    return FRG_OK;
}

frg_status frgi_writer_put(frgi_writer *w, const void *bytes, size_t count)
{
    if (count > WRITE_BYTES - w->used) {
        TRY(flush(w, w->buffer, w->used));
        w->used = 0;
    }
    if (count > WRITE_BYTES) {
        return flush(w, bytes, count);
    }
    if (count > 0) { /* bytes may be NULL else */
        memcpy(w->buffer + w->used, bytes, count);
        w->used += count;
    }
    return FRG_OK;
}

static void release(frgi_writer **w)
{
    frg_context *ctx = (*w)->ctx;
    DROP(ctx, &(*w)->path);
    DROP(ctx, &(*w)->temporary);
    DROP(ctx, w);
}

static void close_handle(const frgi_writer *w)
{
    if (!w->standard) {
        w->ctx->files.close(w->handle, w->ctx->files.user);
    }
}

/** Everything is on the disk.  The file stays open: closing it would give its lock away before it
 *  has its name, and what a close could say the sync has said. */
static frg_status finish_temporary(frgi_writer *w)
{
    const frg_files *files = &w->ctx->files;
    TRY(flush(w, w->buffer, w->used));
    w->used = 0;
    TRY(frgi_spool_check(w->ctx)); /* what was written is what was computed */
    const int error = w->direct ? 0 : files->sync(w->handle, files->user);
    return error ? write_failed(w, -error) : FRG_OK;
}

frg_status frgi_writer_sync(frgi_writer **writer)
{
    const frg_status status = finish_temporary(*writer);
    if (status < 0) {
        frgi_writer_abandon(writer);
    }
    return status;
}

frg_status frgi_writer_commit(frgi_writer **writer)
{
    TRY(frgi_writer_sync(writer));
    frgi_writer *w = *writer;
    const frg_files *files = &w->ctx->files;
    if (!w->direct) {
        const int error = publish(w);
        if (error) {
            const frg_status status = write_failed(w, -error);
            frgi_writer_abandon(writer);
            return status;
        }
        /* the new file is in place; whether its name survives a power failure is all that can go
         * wrong */
        files->sync_folder(w->path, files->user);
    }
    close_handle(w);
    release(writer);
    return FRG_OK;
}

void frgi_writer_abandon(frgi_writer **writer)
{
    if (!*writer) {
        return;
    }
    frgi_writer *w = *writer;
    const frg_files *files = &w->ctx->files;
    if (!w->direct && !w->unnamed) {
        files->remove(w->temporary, files->user);
    }
    close_handle(w);
    release(writer);
}
