/* groups.c - what the control groups of Linux leave to this process: cores and memory.
 *
 * A process is in one group of each hierarchy, and every group up to the root may set a limit; the
 * tightest holds. Version 2 has one hierarchy ("0::/path" in /proc/self/cgroup) with cpu.max and
 * memory.max, version 1 one for each controller or for some ("4:memory:/path",
 * "1:cpu,cpuacct:/path").  In a container the groups above its own are often out of sight, and what
 * it sees as the root has the limits.  These files are the machine's answers, as those of sysconf
 * are, and no input: they are reached by the table that is given, and what cannot be read is no
 * limit.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"

enum { TEXT = 4096, GROUP = 1024 };

/** The first bytes of a small file, "" where there is none. */
static void read_text(const frg_files *files, const char *path, char text[TEXT])
{
    size_t used = 0;
    const int handle = files->open(path, 'r', files->user);
    if (handle >= 0) {
        int64_t got = 1;
        while (used < TEXT - 1 && got > 0) {
            got = files->read(handle, text + used, TEXT - 1 - used, files->user);
            used += got > 0 ? (size_t)got : 0;
        }
        files->close(handle, files->user);
    }
    text[used] = '\0';
}

/** Whether the controller is among the names of a line, "cpu,cpuacct:..."; version 2 has one
 *  without letters. */
static bool is_named(const char *names, const char *controller)
{
    const size_t length = strlen(controller);
    for (;;) {
        const size_t n = strcspn(names, ",:\n");
        if (n == length && memcmp(names, controller, n) == 0) {
            return true;
        }
        if (names[n] != ',') {
            return false;
        }
        names += n + 1;
    }
}

/** This process's group below the root of a controller's hierarchy, "" for the root: of lines
 *  "n:controllers:/path". */
static void find_group(const char *groups, const char *controller, char group[GROUP])
{
    group[0] = '\0';
    for (const char *line = groups; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *const names = strchr(line, ':');
        const char *const path = names ? strchr(names + 1, ':') : NULL;
        if (path && path[1] == '/' && is_named(names + 1, controller)) {
            snprintf(group, GROUP, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
            if (strcmp(group, "/") == 0) {
                group[0] = '\0';
            }
            return;
        }
    }
}

/** The first two numbers of a line; "max", -1 and what is none are 0. */
static void read_numbers(const char *text, double number[2])
{
    for (int i = 0; i < 2; i++) {
        char *end;
        const long long n = strtoll(text, &end, 10);
        number[i] = end > text && n > 0 && n < LLONG_MAX / 2 ? (double)n : 0;
        text = end > text ? end : text + strcspn(text, " \n");
    }
}

typedef struct {
    const char *root, *controller;
    const char *limit;   /* file of the limit */
    const char *divisor; /* file of what divides it, "": the line's second number, NULL: nothing */
} hierarchy;

/** The tightest limit from this process's group up to the root; 0: there is none. */
static double tightest(const frg_files *files, const char *groups, const hierarchy *h)
{
    char group[GROUP], path[2 * GROUP], text[TEXT];
    double least = 0;
    find_group(groups, h->controller, group);
    for (;;) {
        double number[2], period[2];
        snprintf(path, sizeof path, "%s%s/%s", h->root, group, h->limit);
        read_text(files, path, text);
        read_numbers(text, number);
        if (h->divisor && *h->divisor) {
            snprintf(path, sizeof path, "%s%s/%s", h->root, group, h->divisor);
            read_text(files, path, text);
            read_numbers(text, period);
            number[1] = period[0];
        }
        const double limit = !h->divisor ? number[0] : number[1] > 0 ? number[0] / number[1] : 0;
        least = limit > 0 && (least == 0 || limit < least) ? limit : least;
        char *const slash = strrchr(group, '/');
        if (!slash) {
            return least;
        }
        *slash = '\0';
    }
}

static double of_both(const frg_files *files, const hierarchy versions[2])
{
    char groups[TEXT];
    read_text(files, "/proc/self/cgroup", groups);
    const double a = tightest(files, groups, &versions[0]),
                 b = tightest(files, groups, &versions[1]);
    return a == 0 || (b > 0 && b < a) ? b : a;
}

double frgi_group_cores(const frg_files *files)
{
    static const hierarchy versions[2] = {
        {"/sys/fs/cgroup", "", "cpu.max", ""},
        {"/sys/fs/cgroup/cpu", "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us"}};
    return of_both(files, versions);
}

double frgi_group_memory(const frg_files *files)
{
    static const hierarchy versions[2] = {
        {"/sys/fs/cgroup", "", "memory.max", NULL},
        {"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", NULL}};
    return of_both(files, versions);
}

double frg_group_cores(void)
{
    return frgi_group_cores(frg_system_files());
}

int64_t frg_group_memory(void)
{
    const double bytes = frgi_group_memory(frg_system_files());
    return bytes < 0x1p62 ? (int64_t)bytes : 0;
}
