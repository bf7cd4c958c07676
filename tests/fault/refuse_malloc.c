/* refuse_malloc.c - preloaded into the program by test_program_memory.sh: each of its requests for
 * memory fails once.
 *
 * What is counted are the calls of malloc, calloc, realloc, strdup, strndup and open_memstream from
 * the executable, and those of posix_memalign, by which the library in it makes its blocks; those
 * of the libraries below go through.
 *
 * Before main this process forks and waits.  The first child runs the command in the folder
 * REFUSE_IN/whole and counts its requests, up to the flush of standard output that ends main; what
 * comes later is of the counters of a coverage build.  Each further child runs it in REFUSE_IN/work
 * with one request refused: every one of the program's own, REFUSE_MOST of the library's from the
 * first to the last.  Either it ends as the first one did, or with 71, names the error of memory,
 * and leaves no file but those that the first left, to the byte.  The exit status is 1 after the
 * first child that ends otherwise, and standard output tells of it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
enum { OUT_OF_MEMORY = 71 };

/* glibc's own, under the names that it keeps for those who replace the others */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

/* whose request it is */
typedef enum { PROGRAM, LIBRARY, OWNERS } owner;
static const char *const owner_names[OWNERS] = {"program", "library"};

typedef int main_function(int argc, char **argv, char **environment);
int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

static struct {
    uintptr_t from, to; /* of the executable's code */
    owner whose;        /* request that is refused */
    long at;            /* from 1; 0: none */
    _Atomic long calls[OWNERS];
    long *flushed; /* OWNERS calls of the first child up to its last flush, its parent sees them */
    main_function *program;
} now;

/* ---- requests ------------------------------------------------------------------------------ */

static int find_code(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
            now.from = info->dlpi_addr + p->p_vaddr;
            now.to = now.from + p->p_memsz;
        }
    }
    return 1; /* the first is the executable, which the library is linked into */
}

static bool is_program(const void *caller)
{
    return (uintptr_t)caller >= now.from && (uintptr_t)caller < now.to;
}

static bool refused(owner whose, const void *caller)
{
    if (!is_program(caller) || ++now.calls[whose] != now.at || whose != now.whose)
        return false;
    errno = ENOMEM;
    return true;
}

#define CALLER __builtin_return_address(0)

PUBLIC void *malloc(size_t bytes)
{
    return refused(PROGRAM, CALLER) ? NULL : __libc_malloc(bytes);
}

PUBLIC void *calloc(size_t count, size_t bytes)
{
    return refused(PROGRAM, CALLER) ? NULL : __libc_calloc(count, bytes);
}

PUBLIC void *realloc(void *p, size_t bytes)
{
    return refused(PROGRAM, CALLER) ? NULL : __libc_realloc(p, bytes);
}

PUBLIC int posix_memalign(void **p, size_t align, size_t bytes)
{
    if (refused(LIBRARY, CALLER))
        return ENOMEM;
    *p = __libc_memalign(align, bytes);
    return *p ? 0 : ENOMEM;
}

PUBLIC char *strndup(const char *s, size_t most)
{
    const size_t length = strnlen(s, most);
    char *const copy = refused(PROGRAM, CALLER) ? NULL : __libc_malloc(length + 1);
    if (copy) {
        memcpy(copy, s, length);
        copy[length] = '\0';
    }
    return copy;
}

PUBLIC char *strdup(const char *s)
{
    const size_t length = strlen(s);
    char *const copy = refused(PROGRAM, CALLER) ? NULL : __libc_malloc(length + 1);
    return copy ? memcpy(copy, s, length + 1) : NULL;
}

PUBLIC FILE *open_memstream(char **text, size_t *length)
{
    FILE *(*const next)(char **, size_t *) =
        (FILE * (*)(char **, size_t *)) dlsym(RTLD_NEXT, "open_memstream");
    return refused(PROGRAM, CALLER) ? NULL : next(text, length);
}

PUBLIC int fflush(FILE *f)
{
    int (*const next)(FILE *) = (int (*)(FILE *))dlsym(RTLD_NEXT, "fflush");
    for (owner i = 0; f == stdout && is_program(CALLER) && now.at == 0 && i < OWNERS; i++)
        now.flushed[i] = now.calls[i];
    return next(f);
}

/* ---- files --------------------------------------------------------------------------------- */

enum { HANDLES = 16 };

static int remove_one(const char *path, const struct stat *s, int what, struct FTW *place)
{
    (void)s, (void)what, (void)place;
    return remove(path);
}

static bool has_text(const char *path, const char *text)
{
    static char bytes[1 << 16];
    FILE *const f = fopen(path, "rb");
    const size_t got = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
    bytes[got] = '\0';
    if (f)
        fclose(f);
    return strstr(bytes, text) != NULL;
}

/** Are the files the same from `from` on, in bytes from the end where that is negative? */
static bool is_same(FILE *a, FILE *b, long from)
{
    int one = 0, two = 0;
    if (!a || !b || fseek(a, from, from < 0 ? SEEK_END : SEEK_SET) != 0 ||
        fseek(b, from, from < 0 ? SEEK_END : SEEK_SET) != 0)
        return false;
    while (one == two && one != EOF) {
        one = getc(a);
        two = getc(b);
    }
    return one == two;
}

/** A saved state: which of a run's is the last one depends on when it ended, and whether it is
 *  whole is seen elsewhere (test_checkpoint_fault.c). */
static bool is_state(FILE *f)
{
    static const char magic[8] = {'f', 'o', 'u', 'r', 'g', 'e', 'C', 'K'};
    char bytes[sizeof magic] = {0};
    return f && fread(bytes, 1, sizeof bytes, f) == sizeof bytes &&
           memcmp(bytes, magic, sizeof magic) == 0;
}

/** Is the file of work/ another one than that of whole/ ?  Pages tell of times and are whole where
 *  they have their end. */
static int differs(const char *path, const struct stat *s, int what, struct FTW *place)
{
    static const char page[] = "</html>\n";
    (void)s, (void)place;
    if (what != FTW_F)
        return 0;
    char other[PATH_MAX];
    snprintf(other, sizeof other, "whole/%s", path + strlen("work/"));
    FILE *const a = fopen(path, "rb"), *const b = fopen(other, "rb");
    const bool same =
        is_state(a) || is_same(a, b, strstr(path, ".html") ? 1 - (long)sizeof page : 0);
    if (a)
        fclose(a);
    if (b)
        fclose(b);
    if (!same)
        printf("%s is left, and is not that of an undisturbed run\n", path);
    return !same;
}

/* ---- runs ---------------------------------------------------------------------------------- */

static void redirect(int to, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(fd, to);
    close(fd);
}

/** 0 in the child; 1 in the parent, with the child's exit status, -1 where a signal ended it. */
static int fork_into(const char *folder, owner whose, long at, int *code)
{
    nftw(folder, remove_one, HANDLES, FTW_DEPTH | FTW_PHYS);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        redirect(STDOUT_FILENO, "out");
        redirect(STDERR_FILENO, "err");
        if (mkdir(folder, 0777) != 0 || chdir(folder) != 0)
            _exit(99);
        now.whose = whose;
        now.at = at;
        return 0;
    }
    int how = 0;
    waitpid(child, &how, 0);
    *code = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    return 1;
}

/** Main of the children, and what the parent does instead. */
static int sweep(int argc, char **argv, char **environment)
{
    const long most = strtol(getenv("REFUSE_MOST"), NULL, 10);
    int usual = 0;
    if (chdir(getenv("REFUSE_IN")) != 0)
        return 99;
    if (!fork_into("whole", PROGRAM, 0, &usual))
        return now.program(argc, argv, environment);
    printf("%ld requests, %ld of the library\n", now.flushed[PROGRAM], now.flushed[LIBRARY]);
    if (usual > 1 || usual < 0 || now.flushed[PROGRAM] == 0 || now.flushed[LIBRARY] == 0) {
        printf("undisturbed it ends with %d\n", usual);
        return 1;
    }
    for (owner whose = 0; whose < OWNERS; whose++) {
        const long step = whose == LIBRARY ? 1 + now.flushed[LIBRARY] / most : 1;
        for (long at = 1; at <= now.flushed[whose]; at += step) {
            int code = 0;
            if (!fork_into("work", whose, at, &code))
                return now.program(argc, argv, environment);
            const bool named = code == OUT_OF_MEMORY && has_text("err", "FRG-CORE-002");
            if (code != usual && (!named || nftw("work", differs, HANDLES, FTW_PHYS) != 0)) {
                printf("request %ld of the %s: it ends with %d\n", at, owner_names[whose], code);
                return 1;
            }
        }
    }
    return 0;
}

PUBLIC int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void),
                             void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    int (*const next)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void),
                      void *) =
        (int (*)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void),
                 void *))dlsym(RTLD_NEXT, "__libc_start_main");
    const bool sweeps = getenv("REFUSE_IN") && getenv("REFUSE_MOST");
    now.program = program;
    now.flushed = mmap(NULL, OWNERS * sizeof *now.flushed, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    dl_iterate_phdr(find_code, NULL);
    return next(sweeps ? sweep : program, argc, argv, init, fini, rtld_fini, stack_end);
}
