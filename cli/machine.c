/* machine.c - what this process may use: cores, control groups, memory, CPU, BLAS.  Linux;
 * elsewhere the fields stay 0, which means "not known". */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

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

/** Of the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. */
static double stolen_share(void)
{
    enum { STEAL = 7, FIELDS };
    unsigned long long field[FIELDS] = {0}, all = 0;
    FILE *const f = fopen("/proc/stat", "r");
    const int got =
        f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &field[0], &field[1],
                   &field[2], &field[3], &field[4], &field[5], &field[6], &field[STEAL])
          : 0;
    for (int i = 0; i < FIELDS; i++) {
        all += field[i];
    }
    if (f) {
        fclose(f);
    }
    return got == FIELDS && all > 0 ? (double)field[STEAL] / (double)all : 0;
}

/* ---- all together ---------------------------------------------------------------------------- */

static void read_cpu(machine *m)
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

/** "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH SkylakeX MAX_THREADS=64": the first two words name the
 *  library, the first later one with a small letter in it the core whose kernels run. */
static void read_blas(machine *m)
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

void machine_read(machine *m)
{
    memset(m, 0, sizeof *m);
    read_cpu(m);
    read_blas(m);
    m->online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    m->affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : m->online;
    m->quota = frg_group_cores();
    m->load = getloadavg(&m->load, 1) == 1 ? m->load : 0;
    m->steal = stolen_share();
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    m->memory_total = pages > 0 && page > 0 ? (int64_t)pages * page : 0;
    const int64_t limit = frg_group_memory();
    m->memory_limit = m->memory_total == 0 || limit < m->memory_total ? limit : 0;
}
