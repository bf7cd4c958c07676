/* confine.c - a child process with limits, and the pipe it sends its results through. */
#include "core/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "core/context.h"

enum {
    SECONDS = 600, /* of processor time: a gigabyte of any format takes a tenth of it */
    FILES = 64,    /* open at a time */
    LOOK = 50      /* milliseconds between two looks for a stop */
};

/* ---- the child ------------------------------------------------------------------------------- */

#if defined __x86_64__ && defined __linux__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__ && defined __linux__
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef MACHINE
#define WORD(member) ((unsigned)offsetof(struct seccomp_data, member))
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WORD(member))
/* to the statement behind the next where it is equal */
#define PASS_IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), 1, 0)
#define RETURN(what)   BPF_STMT(BPF_RET | BPF_K, (what))
#define REFUSED        (SECCOMP_RET_ERRNO | EPERM)

/** Calls of the system that fail from here on: all but reading, memory, time, the end, opening
 *  files for reading, and writing into the pipe. */
static bool filter(int out)
{
    static const int allowed[] = {
        SYS_read,           SYS_readv,
        SYS_pread64,        SYS_lseek,
        SYS_fstat,          SYS_close,
        SYS_mmap,           SYS_munmap,
        SYS_mremap,         SYS_mprotect,
        SYS_madvise,        SYS_brk,
        SYS_futex,          SYS_exit,
        SYS_exit_group,     SYS_rt_sigreturn,
        SYS_rt_sigprocmask, SYS_clock_gettime,
        SYS_gettimeofday,   SYS_getrandom,
        SYS_sched_yield,    SYS_sched_getaffinity,
        SYS_getpid,         SYS_gettid,
        SYS_ppoll,          SYS_newfstatat,
#ifdef SYS_poll
        SYS_poll,
#endif
    };
    enum { COUNT = sizeof allowed / sizeof *allowed, MOST = 2 * COUNT + 16 };
    const unsigned writing = O_ACCMODE | O_CREAT | O_TRUNC;
    struct sock_filter code[MOST];
    unsigned short n = 0;
#define ADD(...) code[n++] = (struct sock_filter)__VA_ARGS__
    ADD(LOAD(arch));
    ADD(PASS_IF(MACHINE));
    ADD(RETURN(SECCOMP_RET_KILL_PROCESS));
    ADD(LOAD(nr));
    for (int i = 0; i < COUNT; i++) {
        ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1));
        ADD(RETURN(SECCOMP_RET_ALLOW));
    }
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4));
    ADD(LOAD(args[2]));
    ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, writing, 0, 1));
    ADD(RETURN(REFUSED));
    ADD(RETURN(SECCOMP_RET_ALLOW));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3));
    ADD(LOAD(args[0]));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)out, 0, 1));
    ADD(RETURN(SECCOMP_RET_ALLOW));
    ADD(RETURN(REFUSED));
#undef ADD
    const struct sock_fprog program = {.len = n, .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#endif

/** Bytes of address space that the process has now; 0: not known. */
static size_t address_space(frg_context *ctx)
{
    char text[64] = "";
    size_t got = 0, pages = 0;
    frgi_reader r = {0};
    if (frgi_reader_open(&r, ctx, "/proc/self/statm") != FRG_OK) {
        return 0;
    }
    if (frgi_reader_get(&r, ctx, text, sizeof text - 1, &got) != FRG_OK) {
        got = 0;
    }
    frgi_reader_close(&r, ctx);
    for (size_t i = 0; i < got && text[i] >= '0' && text[i] <= '9'; i++) {
        pages = pages * 10 + (size_t)(text[i] - '0');
    }
    return frgi_mul(pages, (size_t)sysconf(_SC_PAGESIZE));
}

/** The limit that is there already, where it is lower, or else `most`. */
static size_t limit_of(int what, size_t most)
{
    struct rlimit r;
    return getrlimit(what, &r) == 0 && r.rlim_cur < most ? r.rlim_cur : most;
}

/** At its limit of time a process gets a signal that says so, a second later it is killed: where
 *  both are one, it is killed. */
static void limit(int what, size_t most)
{
    struct rlimit r;
    if (getrlimit(what, &r) == 0) {
        const rlim_t least = limit_of(what, most), last = what == RLIMIT_CPU ? least + 1 : least;
        r = (struct rlimit){least, r.rlim_max < last ? r.rlim_max : last};
        (void)setrlimit(what, &r);
    }
}

/** A crash ends the child, whatever the program does of one; a broken pipe is a failed write. */
static void let_signals_be(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGTERM};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        (void)signal(crashes[i], SIG_DFL);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN); /* the parent hears it, and ends the child */
}

size_t frgi_confined_memory(const frgi_confined *c)
{
    frg_context *const ctx = c->ctx;
    return ctx->opts.memory_limit > 0 ? (size_t)ctx->opts.memory_limit
                                      : frgi_machine_memory(ctx) / 2;
}

static void lock_down(frgi_confined *c)
{
    frg_context *const ctx = c->ctx;
    const size_t allowed = frgi_confined_memory(c);
    const size_t now = address_space(ctx);
    let_signals_be();
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_NPROC, 0);
    limit(RLIMIT_NOFILE, FILES);
    limit(RLIMIT_CPU, SECONDS);
    if (now > 0) {
        limit(RLIMIT_AS, frgi_add(now, allowed));
    }
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#endif
#ifdef MACHINE
    c->filtered = filter(c->pipe);
#endif
}

void frgi_confined_put(const frgi_confined *c, const void *from, size_t bytes)
{
    const char *next = from;
    while (bytes > 0) {
        const ssize_t n = write(c->pipe, next, bytes);
        if (n < 0 && errno != EINTR) {
            frgi_confined_leave(c);
        }
        next += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
}

void frgi_confined_leave(const frgi_confined *c)
{
    (void)c;
    _exit(0); /* nothing of the program's own end is the child's to do */
}

/* ---- the parent ------------------------------------------------------------------------------ */

frg_status frgi_confined_start(frgi_confined *c, frg_context *ctx, const char *file)
{
    int ends[2];
    *c = (frgi_confined){.ctx = ctx, .file = file};
    frgi_at(ctx, "%s", file);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        FAIL(ctx, E_MEMORY, "there is no pipe to be had for a process that decodes '%s'", file);
    }
    const pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        FAIL(ctx, E_MEMORY, "there is no process to be had that decodes '%s'", file);
    }
    c->child = child;
    c->pipe = ends[child == 0];
    close(ends[child != 0]);
    if (child == 0) {
        lock_down(c);
    }
    frgi_at(ctx, "%s", "");
    return FRG_OK;
}

/** Waits for the child, whose pipe is closed; how it ended, where that is known. */
static int reap(frgi_confined *c)
{
    int how = 0;
    pid_t ended = 0;
    while (c->child > 0 && (ended = waitpid((pid_t)c->child, &how, 0)) < 0 && errno == EINTR) {
    }
    c->child = -1;
    return ended > 0 ? how : 0;
}

/** The child has closed its end too soon. */
static frg_status ended_early(frgi_confined *c)
{
    const int how = reap(c);
    frgi_at(c->ctx, "%s", c->file);
    if (WIFSIGNALED(how) && WTERMSIG(how) == SIGXCPU) {
        FAIL(c->ctx, E_CRASHED,
             "the process that decodes '%s' took %lld seconds of processor time, and was ended",
             c->file, (long long)limit_of(RLIMIT_CPU, SECONDS));
    }
    if (WIFSIGNALED(how)) {
        FAIL(c->ctx, E_CRASHED, "the process that decodes '%s' crashed: it ended by signal %d",
             c->file, WTERMSIG(how));
    }
    FAIL(c->ctx, E_CRASHED, "the process that decodes '%s' ended without a result", c->file);
}

frg_status frgi_confined_get(frgi_confined *c, void *to, size_t bytes)
{
    char *next = to;
    while (bytes > 0) {
        struct pollfd one = {.fd = c->pipe, .events = POLLIN};
        const int ready = poll(&one, 1, LOOK);
        c->stopped = frgi_stopped(c->ctx);
        if (c->stopped != FRG_OK) {
            return FRG_BAD_DATA; /* for now: what was asked for is not there */
        }
        if (ready <= 0) {
            continue;
        }
        const ssize_t n = read(c->pipe, next, bytes);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return ended_early(c);
        }
        next += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return FRG_OK;
}

frg_status frgi_confined_end(frgi_confined *c, frg_status status)
{
    close(c->pipe);
    if (c->child > 0) {
        kill((pid_t)c->child, SIGKILL);
        (void)reap(c);
    }
    return c->stopped != FRG_OK ? c->stopped : status;
}
