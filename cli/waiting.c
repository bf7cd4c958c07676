/* waiting.c - how long the program's threads spin at the end of a loop before they sleep.
 *
 * GCC's OpenMP runtime lets them spin 300000 turns, some 3 to 15 ms: beside other programs at work
 * that makes small problems ten to a hundred times slower, as threads spin through the time of
 * those that they wait for.  SPINS turns, about 0.1 ms, bridge the gaps between loops, and are as
 * fast as spinning for ever where nobody else works (bench/busy.sh). The runtime reads its variable
 * when it is loaded, so the program begins once more with the variable set, before any library has
 * begun to work; it does so where the user has set neither that nor the policy.
 */
#include <string.h>
#include <unistd.h>

#include "cli.h"

#if defined(__linux__) && !defined(FOURGE_SANITIZED)
enum { MOST_VARIABLES = 4096, PATH_ROOM = 4096 };
static const char variable[] = "GOMP_SPINCOUNT=2000";

static int is_of(const char *text, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == '=';
}

static void wait_shortly(int argc, char **argv, char **environment)
{
    char *with[MOST_VARIABLES + 2], path[PATH_ROOM];
    size_t n = 0;
    (void)argc;
    for (; environment[n]; n++) {
        if (n == MOST_VARIABLES || is_of(environment[n], "GOMP_SPINCOUNT") ||
            is_of(environment[n], "OMP_WAIT_POLICY")) {
            return;
        }
        with[n] = environment[n];
    }
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) {
        return;
    }
    path[length] = '\0';
    with[n] = (char *)(uintptr_t)variable;
    with[n + 1] = NULL;
    execve(path, argv, with); /* where that fails this program goes on as it is */
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(int, char **, char **) = wait_shortly;
#endif
