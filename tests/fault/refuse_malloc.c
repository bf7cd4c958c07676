/* refuse_malloc.c - preloaded into the program by test_program_memory.sh: one of the program's own requests for memory fails.
 *
 * REFUSE_AT=k refuses the k-th call of malloc, calloc, realloc, strdup, strndup and open_memstream from the executable itself
 * (from 1; 0: none); those of the libraries that it is linked with go through.  The library's blocks come from posix_memalign
 * and are refused by fault_sweep instead.  At the end the number of calls is written to the file REFUSE_COUNT: up to the
 * flush of standard output that ends main; what comes later is of the counters of a coverage build.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

/* glibc's own, under the names that it keeps for those who replace the others */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);

static struct {
    uintptr_t from, to; /* of the executable's code */
    long at;
    _Atomic long calls, flushed; /* calls up to the last flush */
} now;

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
    return 1; /* the first is the executable */
}

__attribute__((constructor)) static void begin(void)
{
    const char *const at = getenv("REFUSE_AT");
    now.at = at ? strtol(at, NULL, 10) : 0;
    dl_iterate_phdr(find_code, NULL);
}

__attribute__((destructor)) static void end(void)
{
    const char *const path = getenv("REFUSE_COUNT");
    const long calls = now.flushed;
    FILE *const f = path ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", calls);
        fclose(f);
    }
}

static bool is_program(const void *caller)
{
    return (uintptr_t)caller >= now.from && (uintptr_t)caller < now.to;
}

static bool refused(const void *caller)
{
    if (!is_program(caller) || ++now.calls != now.at)
        return false;
    errno = ENOMEM;
    return true;
}

#define CALLER __builtin_return_address(0)

PUBLIC void *malloc(size_t bytes)
{
    return refused(CALLER) ? NULL : __libc_malloc(bytes);
}

PUBLIC void *calloc(size_t count, size_t bytes)
{
    return refused(CALLER) ? NULL : __libc_calloc(count, bytes);
}

PUBLIC void *realloc(void *p, size_t bytes)
{
    return refused(CALLER) ? NULL : __libc_realloc(p, bytes);
}

PUBLIC char *strndup(const char *s, size_t most)
{
    const size_t length = strnlen(s, most);
    char *const copy = refused(CALLER) ? NULL : __libc_malloc(length + 1);
    if (copy) {
        memcpy(copy, s, length);
        copy[length] = '\0';
    }
    return copy;
}

PUBLIC char *strdup(const char *s)
{
    const size_t length = strlen(s);
    char *const copy = refused(CALLER) ? NULL : __libc_malloc(length + 1);
    return copy ? memcpy(copy, s, length + 1) : NULL;
}

PUBLIC FILE *open_memstream(char **text, size_t *length)
{
    FILE *(*const next)(char **, size_t *) =
        (FILE * (*)(char **, size_t *)) dlsym(RTLD_NEXT, "open_memstream");
    return refused(CALLER) ? NULL : next(text, length);
}

PUBLIC int fflush(FILE *f)
{
    int (*const next)(FILE *) = (int (*)(FILE *))dlsym(RTLD_NEXT, "fflush");
    if (f == stdout && is_program(CALLER))
        now.flushed = now.calls;
    return next(f);
}
