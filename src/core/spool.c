/* spool.c - blocks beyond memory: unnamed files, mapped, and a thread that keeps them small.
 *
 *     block -> a file without a name in the spool's folder -> its pages, shared with the file
 *
 * What a solver reads and writes are pages of files.  The kernel brings them in ahead of a pass and
 * writes them back behind it; a page may leave the process at any time and comes back as it was.
 * So a thread looks at what the process holds each millisecond or few, and where that nears the
 * memory limit it lets the blocks' pages go.  No result depends on it: memory beyond the limit is
 * a matter of where a block lies, never of what is computed, and the bits are those of a run in
 * memory.
 *
 * Costs: a pass over a block reads the file once, or nothing where the page cache has it; a pass
 * that writes dirties it once more.  Passes have to go along the rows: who jumps pays a page (4
 * KB) for a number (core/row_order.c is what avoids that).
 *
 * Each block reserves its place on the disk before it is there (fallocate): a full disk is an
 * error with the sizes, and never a fault in a pass.  The files have no names, so that nothing of
 * them outlives the process.  They stay open, as they are asked whether the kernel could write
 * their pages: a page that it could not is gone from memory as well, and a run that used it has no
 * result (frgi_spool_check).  A page that cannot be read is a fault (SIGBUS), whose handlers are
 * the program's and not a library's.
 *
 * Arrays that a file of the user's holds as they are wanted are not copied: the file is mapped, its
 * pages go as the blocks' do, and a run during which it was written to has no result.  A program
 * that a fault must not end asks for a copy (frg_context_opts.copies_files).
 */
#include "core/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { BETWEEN_LOOKS = 64 << 20 };        /* bytes that passes bring in meanwhile */
static const double LEAST_BETWEEN = 2e-4; /* seconds; a look takes some 2e-6 */
enum { IDLE_MILLISECONDS = 2, BUSY_MILLISECONDS = 1, IN_MEMORY = 0x01021994 /* TMPFS_MAGIC */ };

/** A file of the user's, as it was when it was mapped. */
typedef struct {
    char *path;
    struct timespec written;
} source_file;

typedef struct mapping {
    struct mapping *next;
    char *base;
    size_t bytes;
    int fd;
    source_file *source; /* NULL: a block */
} mapping;

struct frgi_spool {
    char *folder;
    size_t limit; /* bytes that the process is to hold */
    size_t least; /* of a block on the disk; */
    size_t large; /* blocks from this size on always are there */
    size_t held, peak;
    int error;   /* of a page that was not written; 0: none */
    size_t most; /* bytes that the process was seen to hold */
    double trimmed;
    mapping *blocks;
    pthread_mutex_t lock; /* of `blocks`, `closing`, `most` and `trimmed` */
    pthread_cond_t wake;
    pthread_t keeper;
    bool kept, closing;
    int statm; /* /proc/self/statm */
};

/* ---- pages that go --------------------------------------------------------------------------- */

/** Bytes that the process holds, and of these the pages of files; false where the kernel does not
 *  say. */
static bool resident(int statm, size_t *all, size_t *files)
{
    char text[128], *next = text;
    const ssize_t got = pread(statm, text, sizeof text - 1, 0);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    text[got > 0 ? got : 0] = '\0';
    (void)strtoull(next, &next, 10); /* of the address space */
    *all = strtoull(next, &next, 10) * page;
    *files = strtoull(next, &next, 10) * page;
    return *all > *files;
}

/** What the blocks' pages may take: what the rest of the process leaves of the limit, and a
 *  sixteenth of it in any case, or passes would crawl. */
static size_t pages_allowed(const frgi_spool *s, size_t all, size_t files)
{
    const size_t margin = s->limit / 4 + BETWEEN_LOOKS, largest = s->limit / 4 * 3;
    const size_t rest = all - files, least = s->limit / 16;
    const size_t most = s->limit - (margin < largest ? margin : largest);
    return rest + least < most ? most - rest : least;
}

/** Lets pages go, from the oldest block on, until a half of what is allowed is left: the newest
 *  are what the step at hand works with.  True: it is soon to be called again. */
static bool keep_below(frgi_spool *s)
{
    size_t all, files;
    if (!s->blocks || !resident(s->statm, &all, &files)) {
        return false;
    }
    s->most = all > s->most ? all : s->most;
    const size_t allowed = pages_allowed(s, all, files);
    for (mapping *m = s->blocks; m && files > allowed; m = m->next) {
        madvise(m->base, m->bytes, MADV_DONTNEED);
        if (!resident(s->statm, &all, &files) || files <= allowed / 2) {
            break;
        }
    }
    return files > allowed / 4;
}

void frgi_spool_trim(const frg_context *ctx)
{
    frgi_spool *const s = ctx->spool;
    if (s && s->kept && pthread_mutex_trylock(&s->lock) == 0) {
        const double now = frgi_seconds();
        if (now - s->trimmed > LEAST_BETWEEN) {
            s->trimmed = now;
            keep_below(s);
        }
        pthread_mutex_unlock(&s->lock);
    }
}

static void *keeper(void *user)
{
    frgi_spool *const s = user;
    bool busy = false;
    pthread_mutex_lock(&s->lock);
    while (!s->closing) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (busy ? BUSY_MILLISECONDS : IDLE_MILLISECONDS) * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&s->wake, &s->lock, &until);
        busy = keep_below(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/** Signals are for the threads that the program knows. */
static bool start_keeper(frgi_spool *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->kept = pthread_create(&s->keeper, NULL, keeper, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->kept;
}

/* ---- the folder ------------------------------------------------------------------------------ */

/** Bytes that the folder has room for; 0: it cannot be asked. */
static size_t free_space_in(const char *folder)
{
    struct statvfs v;
    return statvfs(folder, &v) == 0 ? frgi_mul((size_t)v.f_bavail, (size_t)v.f_frsize) : 0;
}

static frg_status refuse_folder(frg_context *ctx, const char *folder, int error)
{
    frgi_at(ctx, "%s", folder);
    FAIL(ctx, E_CREATE, "the spool folder '%s' cannot be used: %s", folder, strerror(error));
}

static frg_status refuse_bytes(frg_context *ctx, const char *folder, size_t bytes, const char *what)
{
    frgi_at(ctx, "%s", folder);
    FAIL(ctx, E_SPOOL, "%s beyond the memory limit: %zu bytes on disk, '%s' has room for %zu", what,
         bytes, folder, free_space_in(folder));
}

/** A file system in memory would take what is to be spared. */
static frg_status check_folder(frg_context *ctx, const char *folder)
{
    struct statfs f;
    struct stat s;
    if (stat(folder, &s) != 0 || statfs(folder, &f) != 0) {
        return refuse_folder(ctx, folder, errno);
    }
    if (!S_ISDIR(s.st_mode)) {
        return refuse_folder(ctx, folder, ENOTDIR);
    }
    if ((unsigned long)f.f_type == IN_MEMORY) {
        frgi_at(ctx, "%s", folder);
        FAIL(ctx, E_SPOOL, "the spool folder '%s' lies in memory (tmpfs)", folder);
    }
    return FRG_OK;
}

/** A file without a name, or one that has lost it at once; -1 with errno. */
static int open_unnamed(const char *folder)
{
    char name[4096];
    int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) {
        return fd;
    }
    if (snprintf(name, sizeof name, "%s/fourge.XXXXXX", folder) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0) {
        unlink(name);
    }
    return fd;
}

/** Maps m->bytes of a new file; 0 or the error's number. */
static int map_file(mapping *m, const char *folder)
{
    m->fd = open_unnamed(folder);
    if (m->fd < 0) {
        return errno;
    }
    int error = posix_fallocate(m->fd, 0, (off_t)m->bytes);
    if (error == 0) {
        void *const p = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
        error = p == MAP_FAILED ? errno : 0;
        m->base = p;
    }
    if (error) {
        close(m->fd);
    }
    return error;
}

/** Another size, with the pages that both have; m is as it was after an error. */
static int resize_file(mapping *m, size_t bytes)
{
    const size_t before = m->bytes;
    int error = bytes > before ? posix_fallocate(m->fd, (off_t)before, (off_t)(bytes - before)) : 0;
    if (error == 0) {
        void *const p = mremap(m->base, before, bytes, MREMAP_MAYMOVE);
        error = p == MAP_FAILED ? errno : 0;
        m->base = error ? m->base : p;
        m->bytes = error ? before : bytes;
    }
    const int cut = ftruncate(m->fd, (off_t)m->bytes); /* what is left over goes with the file */
    (void)cut;
    return error;
}

/** The error of a page that the kernel could not write, which it says once; 0: there was none, or
 *  it cannot be asked. */
static int write_error(const mapping *m)
{
    const bool failed = sync_file_range(m->fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) != 0;
    return failed && errno != ENOSYS && errno != EPERM ? errno : 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

frg_status frgi_spool_open(frg_context *ctx, const char *folder)
{
    frgi_spool *s;
    TRY(NEW0(ctx, &s, 1, "a spool"));
    const frg_status status = frgi_strdup(ctx, &s->folder, folder, strlen(folder));
    if (status < 0) {
        DROP(ctx, &s);
        return status;
    }
    s->limit = (size_t)ctx->opts.memory_limit;
    s->least = FRGI_SPOOL_LEAST;
    s->large = s->limit / 16;
    s->statm = -1;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, &clock);
    pthread_condattr_destroy(&clock);
    ctx->spool = s;
    return FRG_OK;
}

void frgi_spool_close(frg_context *ctx)
{
    frgi_spool *s = ctx->spool;
    if (!s) {
        return;
    }
    if (s->kept) {
        pthread_mutex_lock(&s->lock);
        s->closing = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->keeper, NULL);
    }
    if (s->statm >= 0) {
        close(s->statm);
    }
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    ctx->spool = NULL;
    DROP(ctx, &s->folder);
    DROP(ctx, &s);
}

/** Half of the limit is for what passes jump about in (tables of keys, the reduced system), as far
 *  as it goes; the other for pages of what they go along. */
bool frgi_spool_takes(const frg_context *ctx, size_t total)
{
    const frgi_spool *const s = ctx->spool;
    return s && total >= s->least &&
           (total >= s->large || frgi_add(ctx->heap.held, total) > s->limit / 2);
}

/** The first block: the folder, the thread, and what is said to the user. */
static frg_status begin(frg_context *ctx)
{
    frgi_spool *const s = ctx->spool;
    TRY(check_folder(ctx, s->folder));
    s->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (s->statm < 0) {
        return refuse_folder(ctx, "/proc/self", errno);
    }
    if (!start_keeper(s)) {
        close(s->statm);
        s->statm = -1;
        FAIL(ctx, E_MEMORY, "a thread could not be had");
    }
    frgi_warn(ctx, W_SPOOL, "under a memory limit of %zu bytes large arrays lie in files in '%s'",
              s->limit, s->folder);
    return FRG_OK;
}

/** No place for `more` bytes on the disk, or more than a file, or the user's files, may have. */
static frg_status no_place(frg_context *ctx, int error, size_t more, const char *what)
{
    const char *const folder = ctx->spool->folder;
    if (error == EFBIG || error == EDQUOT) {
        frgi_at(ctx, "%s", folder);
        FAIL(ctx, E_SPOOL, "%s beyond the memory limit: %zu bytes on disk, in a file in '%s': %s",
             what, more, folder,
             error == EFBIG ? "its size is limited (ulimit -f)" : strerror(error));
    }
    return error == ENOSPC ? refuse_bytes(ctx, folder, more, what)
                           : refuse_folder(ctx, folder, error);
}

static void count(frgi_spool *s, size_t more, size_t less)
{
    s->held += more;
    s->held -= less;
    s->peak = s->held > s->peak ? s->held : s->peak;
}

static void append(frgi_spool *s, mapping *m)
{
    pthread_mutex_lock(&s->lock);
    mapping **end = &s->blocks;
    while (*end) {
        end = &(*end)->next;
    }
    *end = m;
    pthread_mutex_unlock(&s->lock);
}

frg_status frgi_spool_get(frg_context *ctx, size_t total, const char *what, void **out)
{
    frgi_spool *const s = ctx->spool;
    mapping *m;
    TRY(s->kept ? FRG_OK : begin(ctx));
    TRY(NEW0(ctx, &m, 1, what));
    m->bytes = total;
    const int error = map_file(m, s->folder);
    if (error) {
        DROP(ctx, &m);
        return no_place(ctx, error, total, what);
    }
    madvise(m->base, total, MADV_DONTFORK);
    append(s, m);
    count(s, total, 0);
    *out = m->base;
    return FRG_OK;
}

/** Where the record of the block at p hangs. */
static mapping **place_of(frgi_spool *s, const void *p)
{
    mapping **at = &s->blocks;
    while ((*at)->base != p) {
        at = &(*at)->next;
    }
    return at;
}

frg_status frgi_spool_resize(frg_context *ctx, void **p, size_t total, const char *what)
{
    frgi_spool *const s = ctx->spool;
    pthread_mutex_lock(&s->lock);
    mapping *const m = *place_of(s, *p);
    const size_t before = m->bytes;
    const int error = resize_file(m, total);
    *p = m->base;
    pthread_mutex_unlock(&s->lock);
    if (error) {
        return no_place(ctx, error, total - before, what);
    }
    count(s, total, before);
    return FRG_OK;
}

/** The record of the block at p, which the keeper does not see from then on. */
static mapping *take_off(frgi_spool *s, const void *p)
{
    pthread_mutex_lock(&s->lock);
    mapping **const at = place_of(s, p);
    mapping *const m = *at;
    *at = m->next;
    pthread_mutex_unlock(&s->lock);
    return m;
}

static void drop_block(frg_context *ctx, mapping *m)
{
    frgi_spool *const s = ctx->spool;
    s->error = s->error ? s->error : write_error(m);
    munmap(m->base, m->bytes);
    close(m->fd);
    count(s, 0, m->bytes);
    DROP(ctx, &m);
}

void frgi_spool_return(frg_context *ctx, void *p)
{
    drop_block(ctx, take_off(ctx->spool, p));
}

frgi_spool_place frgi_spool_place_of(const frg_context *ctx, const void *p)
{
    frgi_spool *const s = ctx->spool;
    frgi_spool_place place = {NULL, -1};
    if (!s) {
        return place;
    }
    const uintptr_t at = (uintptr_t)p;
    pthread_mutex_lock(&s->lock);
    for (const mapping *m = s->blocks; m; m = m->next) {
        if (!m->source && at - (uintptr_t)m->base < m->bytes) {
            place = (frgi_spool_place){m->base, m->fd};
        }
    }
    pthread_mutex_unlock(&s->lock);
    return place;
}

void frgi_spool_put(const frg_context *ctx, frgi_spool_place place, void *to, const void *from,
                    size_t bytes)
{
    const char *next = from;
    off_t at = (char *)to - place.base;
    if (!place.base) {
        memcpy(to, from, bytes);
        return;
    }
    while (bytes > 0) {
        const ssize_t put = pwrite(place.fd, next, bytes, at);
        if (put <= 0 && errno != EINTR) {
            pthread_mutex_lock(&ctx->spool->lock);
            ctx->spool->error = put < 0 ? errno : EIO;
            pthread_mutex_unlock(&ctx->spool->lock);
            return;
        }
        const size_t done = put > 0 ? (size_t)put : 0;
        next += done;
        at += (off_t)done;
        bytes -= done;
    }
}

/* ---- files of the user's --------------------------------------------------------------------- */

static void drop_source(frg_context *ctx, mapping *m)
{
    if (m->base) {
        munmap(m->base, m->bytes);
        close(m->fd);
    }
    if (m->source) {
        DROP(ctx, &m->source->path);
    }
    DROP(ctx, &m->source);
    DROP(ctx, &m);
}

/** m->base: NULL where the file cannot be mapped. */
static frg_status map_source(frg_context *ctx, mapping *m, int handle, const char *path)
{
    struct stat now;
    TRY(NEW0(ctx, &m->source, 1, "a mapped file"));
    TRY(frgi_strdup(ctx, &m->source->path, path, strlen(path)));
    if (fstat(handle, &now) != 0 || !S_ISREG(now.st_mode) || (size_t)now.st_size != m->bytes) {
        return FRG_OK;
    }
    m->source->written = now.st_mtim;
    m->fd = fcntl(handle, F_DUPFD_CLOEXEC, 0);
    void *const p = m->fd < 0 ? MAP_FAILED : mmap(NULL, m->bytes, PROT_READ, MAP_SHARED, m->fd, 0);
    if (p != MAP_FAILED) {
        m->base = p;
    } else if (m->fd >= 0) {
        close(m->fd);
    }
    return FRG_OK;
}

static bool is_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static frg_status written_to(frg_context *ctx, const char *path)
{
    frgi_at(ctx, "%s", path);
    FAIL(ctx, E_CHANGED, "'%s' was written to while its numbers were in use", path);
}

/** The block at `to` <- the file, within the kernel: where the file system shares extents nothing
 *  is written.  FRG_INTERRUPTED, FRG_TIME_LIMIT: the block is incomplete. */
static frg_status copy_file(frg_context *ctx, frgi_spool_place to, int handle, const char *path,
                            size_t bytes)
{
    enum { PIECE = 1 << 26 };
    off_t at = 0;
    frg_status stopped = frgi_stopped(ctx);
    while ((size_t)at < bytes && stopped == FRG_OK) {
        const size_t left = bytes - (size_t)at, piece = left < PIECE ? left : PIECE;
        ssize_t done = copy_file_range(handle, &at, to.fd, NULL, piece, 0);
        done = done < 0 ? sendfile(to.fd, handle, &at, piece) : done; /* of other file systems */
        if (done < 0 && errno != EINTR) {
            if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
                return no_place(ctx, errno, bytes, path);
            }
            frgi_at(ctx, "%s", path);
            FAIL(ctx, E_READ, "copying '%s' into the spool failed: %s", path, strerror(errno));
        }
        if (done == 0) {
            return written_to(ctx, path);
        }
        stopped = frgi_stopped(ctx);
    }
    return stopped;
}

/** A block with what the file holds, that no later change of it reaches.  Stopped meanwhile: *out
 *  is NULL, and reading, which is the caller's other way, stops as it does. */
static frg_status take_copy(frg_context *ctx, int handle, const char *path, size_t bytes,
                            const char **out)
{
    struct stat before, after;
    void *copy;
    if (fstat(handle, &before) != 0 || !S_ISREG(before.st_mode) ||
        (size_t)before.st_size != bytes) {
        return FRG_OK;
    }
    TRY(frgi_spool_get(ctx, bytes, path, &copy));
    frg_status status = copy_file(ctx, frgi_spool_place_of(ctx, copy), handle, path, bytes);
    if (status == FRG_OK && (fstat(handle, &after) != 0 || after.st_size != before.st_size ||
                             !is_time(after.st_mtim, before.st_mtim))) {
        status = written_to(ctx, path);
    }
    if (status != FRG_OK) {
        frgi_spool_return(ctx, copy);
        return status < 0 ? status : FRG_OK;
    }
    *out = copy;
    return FRG_OK;
}

frg_status frgi_spool_map(frg_context *ctx, int handle, const char *path, size_t bytes,
                          const char **out)
{
    frgi_spool *const s = ctx->spool;
    mapping *m;
    *out = NULL;
    if (!frgi_spool_takes(ctx, bytes)) {
        return FRG_OK;
    }
    if (ctx->opts.copies_files) {
        return take_copy(ctx, handle, path, bytes, out);
    }
    TRY(s->kept ? FRG_OK : begin(ctx));
    TRY(NEW0(ctx, &m, 1, "a mapped file"));
    m->bytes = bytes;
    const frg_status status = map_source(ctx, m, handle, path);
    if (status < 0 || !m->base) {
        drop_source(ctx, m);
        return status;
    }
    append(s, m);
    *out = m->base;
    return FRG_OK;
}

void frgi_unmap(frg_context *ctx, const char **p)
{
    mapping *const m = *p ? take_off(ctx->spool, *p) : NULL;
    if (m && m->source) {
        drop_source(ctx, m);
    } else if (m) {
        drop_block(ctx, m);
    }
    *p = NULL;
}

static frg_status check_source(frg_context *ctx, const mapping *m)
{
    struct stat now;
    const bool same = fstat(m->fd, &now) == 0 && (size_t)now.st_size == m->bytes &&
                      is_time(now.st_mtim, m->source->written);
    return same ? FRG_OK : written_to(ctx, m->source->path);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/** Says once a run that the process held more than it was to. */
static void warn_of_limit(frg_context *ctx)
{
    frgi_spool *const s = ctx->spool;
    pthread_mutex_lock(&s->lock);
    const size_t most = s->most;
    pthread_mutex_unlock(&s->lock);
    if (most > s->limit && !frgi_has_warned(ctx, W_LIMIT)) {
        frgi_warn(ctx, W_LIMIT, "the process held %zu bytes under a memory limit of %zu", most,
                  s->limit);
    }
}

static frg_status disk_failed(frg_context *ctx, const char *why)
{
    const char *const folder = ctx->spool->folder;
    frgi_at(ctx, "%s", folder);
    FAIL(ctx, E_DISK, "the disk under '%s' failed, and arrays in files there are lost: %s", folder,
         why);
}

frg_status frgi_spool_fault(frg_context *ctx, int error)
{
    return error == EFAULT && ctx->spool ? disk_failed(ctx, "a page could not be read") : FRG_OK;
}

frg_status frgi_spool_check(frg_context *ctx)
{
    frgi_spool *const s = ctx->spool;
    if (!s) {
        return FRG_OK;
    }
    for (const mapping *m = s->blocks; m && !s->error; m = m->next) {
        TRY(m->source ? check_source(ctx, m) : FRG_OK);
        s->error = m->source ? 0 : write_error(m);
    }
    if (s->error) {
        return disk_failed(ctx, strerror(s->error));
    }
    warn_of_limit(ctx);
    return FRG_OK;
}

frg_status frg_spool_usable(frg_context *ctx)
{
    if (!ctx) {
        return FRG_BAD_ARG;
    }
    REQUIRE(ctx, ctx->spool, "the context has no spool");
    const char *const folder = ctx->spool->folder;
    TRY(check_folder(ctx, folder));
    const int fd = open_unnamed(folder);
    if (fd < 0) {
        return refuse_folder(ctx, folder, errno);
    }
    close(fd);
    return FRG_OK;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool frgi_spools(const frg_context *ctx)
{
    return ctx->spool != NULL;
}

size_t frgi_spool_held(const frg_context *ctx)
{
    return ctx->spool ? ctx->spool->held : 0;
}

size_t frg_spool_bytes(const frg_context *ctx)
{
    return ctx && ctx->spool ? ctx->spool->peak : 0;
}

size_t frg_spool_room(const frg_context *ctx)
{
    return ctx && ctx->spool ? free_space_in(ctx->spool->folder) : 0;
}

size_t frgi_data_allowed(const frg_context *ctx)
{
    const size_t memory = frgi_memory_allowed(ctx);
    return ctx->spool ? frgi_add(memory, free_space_in(ctx->spool->folder)) : memory;
}

frg_status frgi_spool_expect(frg_context *ctx, size_t bytes, const char *what)
{
    const frgi_spool *const s = ctx->spool;
    const size_t in_memory = s ? s->limit / 2 : 0;
    if (!s || bytes <= in_memory) {
        return FRG_OK;
    }
    TRY(check_folder(ctx, s->folder));
    return bytes - in_memory > free_space_in(s->folder)
               ? refuse_bytes(ctx, s->folder, bytes - in_memory, what)
               : FRG_OK;
}

void frgi_spool_from(frg_context *ctx, size_t bytes)
{
    ctx->spool->least = ctx->spool->large = bytes;
}
