/* machine.c - what this process may use: cores, control groups, memory, CPU, BLAS.  Linux; elsewhere the
 * fields stay 0, which means "not known". */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/** First line of a small file, without its end; 0 where there is none. */
static int first_line(const char *path, char *line, size_t room)
{
    FILE *f = fopen(path, "r");
    if (!f) {
        return 0;
    }
    const int found = fgets(line, (int)room, f) != NULL;
    fclose(f);
    if (found) {
        line[strcspn(line, "\n")] = '\0';
    }
    return found;
}

/** The value of "key : value" in /proc/cpuinfo or /proc/meminfo. */
static int proc_value(const char *path, const char *key, char *value, size_t room)
{
    FILE *f = fopen(path, "r");
    char line[4096];
    int found = 0;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (colon && strncmp(line, key, strlen(key)) == 0) {
            colon += 1 + strspn(colon + 1, " \t");
            snprintf(value, room, "%.*s", (int)strcspn(colon, "\n"), colon);
            found = 1;
        }
    }
    if (f) {
        fclose(f);
    }
    return found;
}

/* ---- control groups ----------------------------------------------------------------------------- */

enum { PATH_ROOM = 1024 };

/** This process's folder below /sys/fs/cgroup: v2's line is "0::/path", v1's "n:controller:/path". */
static void group_path(const char *controller, char path[PATH_ROOM])
{
    FILE *f = fopen("/proc/self/cgroup", "r");
    char line[PATH_ROOM];
    path[0] = '\0';
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
        if (!second) {
            continue;
        }
        *second = '\0';
        if (strcmp(first + 1, controller) == 0) {
            snprintf(path, PATH_ROOM, "%s", strcmp(second + 1, "/") == 0 ? "" : second + 1);
        }
    }
    if (f) {
        fclose(f);
    }
}

/** The tightest value of `file` from this group up to the root; `read` gives a limit or INFINITY. */
static double tightest(const char *root, const char *controller, const char *file,
                       double (*read)(const char *text))
{
    char group[PATH_ROOM], path[2 * PATH_ROOM + 64], line[128];
    double limit = (double)INFINITY;
    group_path(controller, group);
    for (;;) {
        snprintf(path, sizeof path, "%s%s/%s", root, group, file);
        if (first_line(path, line, sizeof line)) {
            limit = fmin(limit, read(line));
        }
        char *slash = strrchr(group, '/');
        if (!slash) {
            return limit;
        }
        *slash = '\0';
    }
}

static double read_cpu_max(const char *text)
{
    double quota, period;
    return sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period
                                                                       : (double)INFINITY;
}

static double read_limit(const char *text)
{
    double bytes;
    return sscanf(text, "%lf", &bytes) == 1 && bytes > 0 && bytes < 9e18 ? bytes : (double)INFINITY;
}

static double cpu_quota(void)
{
    const double v2 = tightest("/sys/fs/cgroup", "", "cpu.max", read_cpu_max);
    if (isfinite(v2)) {
        return v2;
    }
    const double quota = tightest("/sys/fs/cgroup/cpu", "cpu", "cpu.cfs_quota_us", read_limit);
    const double period = tightest("/sys/fs/cgroup/cpu", "cpu", "cpu.cfs_period_us", read_limit);
    return isfinite(quota) && isfinite(period) ? quota / period : 0;
}

static int64_t memory_limit(int64_t total)
{
    double limit =
        fmin(tightest("/sys/fs/cgroup", "", "memory.max", read_limit),
             tightest("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", read_limit));
    return isfinite(limit) && (total == 0 || limit < (double)total) ? (int64_t)limit : 0;
}

/* ---- all together ------------------------------------------------------------------------------- */

static void look_at_cpu(machine *m)
{
    char flags[4096];
    if (!proc_value("/proc/cpuinfo", "model name", m->cpu, sizeof m->cpu)) {
        snprintf(m->cpu, sizeof m->cpu, "unknown CPU");
    }
    if (proc_value("/proc/cpuinfo", "flags", flags, sizeof flags)) {
        m->avx2 = strstr(flags, " avx2 ") != NULL;
        m->avx512 = strstr(flags, " avx512f ") != NULL;
    }
}

/** "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH SkylakeX MAX_THREADS=64": the first two words name the library, the
 *  first later one with a small letter in it the core whose kernels run. */
static void look_at_blas(machine *m)
{
    char text[256];
    snprintf(text, sizeof text, "%s", frg_blas_name());
    int word = 0;
    char *rest = NULL;
    for (char *at = strtok_r(text, " ", &rest); at; at = strtok_r(NULL, " ", &rest), word++) {
        const size_t used = strlen(m->blas);
        if (word < 2) {
            snprintf(m->blas + used, sizeof m->blas - used, "%s%s", word ? " " : "", at);
        } else if (!*m->core && strpbrk(at, "abcdefghijklmnopqrstuvwxyz")) {
            snprintf(m->core, sizeof m->core, "%s", at);
        }
    }
}

void machine_look(machine *m)
{
    memset(m, 0, sizeof *m);
    look_at_cpu(m);
    look_at_blas(m);
    m->online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    m->affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : m->online;
    m->quota = cpu_quota();
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    m->memory_total = pages > 0 && page > 0 ? (int64_t)pages * page : 0;
    m->memory_limit = memory_limit(m->memory_total);
}
