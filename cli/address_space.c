/* address_space.c - ends a program whose address space is limited to less than OpenBLAS takes
 * before main.
 *
 * OpenBLAS maps a buffer for each of its threads when it is loaded, and tries for ever where it
 * does not get them, so that main is never reached.  What stands in .preinit_array runs before
 * that.  The C library alone is ready then, and of it nothing is used but system calls.
 */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"

enum { OPENBLAS_BUFFER = 128 << 20, OPENBLAS_THREADS = 64, EXIT_NO_MEMORY = 71 };

/** The number that a variable gives; 0: there is none. */
static size_t number_in(char *const *environment, const char *name)
{
    const size_t length = strlen(name);
    size_t number = 0;
    for (; *environment; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
            const char *at = *environment + length + 1;
            for (number = 0; *at >= '0' && *at <= '9' && number < 1000000; at++) {
                number = 10 * number + (size_t)(*at - '0');
            }
        }
    }
    return number;
}

/** The threads that OpenBLAS starts with: the cores of this process, or fewer as its variables
 *  say. */
static size_t openblas_threads(char *const *environment)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",
                                        "OMP_NUM_THREADS"};
    cpu_set_t cores;
    size_t threads =
        sched_getaffinity(0, sizeof cores, &cores) == 0 ? (size_t)CPU_COUNT(&cores) : 1;
    threads = threads < OPENBLAS_THREADS ? threads : OPENBLAS_THREADS;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t number = number_in(environment, names[i]);
        if (number > 0) {
            return number < threads ? number : threads;
        }
    }
    return threads;
}

int64_t openblas_address_space(char *const *environment)
{
    return (int64_t)openblas_threads(environment) * OPENBLAS_BUFFER;
}

#if !defined(FOURGE_SANITIZED)
static void check_address_space(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv;
    static const char message[] =
        "fourge: error FRG-CORE-002: the address space is limited (ulimit -v) to less than "
        "OpenBLAS "
        "maps when it is loaded, 128 MiB for each of its threads; hint: raise the limit, or set "
        "OMP_NUM_THREADS to fewer\n";
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return;
    }
    const size_t bytes = (size_t)openblas_address_space(environment);
    void *const room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        const ssize_t written = write(2, message, sizeof message - 1);
        (void)written;
        _exit(EXIT_NO_MEMORY);
    }
    munmap(room, bytes);
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(int, char **,
                                                            char **) = check_address_space;
#endif
