/* cmd_doctor.c - `fourge doctor`: what on this machine holds fourge back, one line of advice
 * each. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"

enum { MAX_ADVICE = 16 };

typedef struct {
    int n;
    char line[MAX_ADVICE][256];
} advice;

typedef struct {
    machine machine;
    advice advice;
} findings;

static void add(advice *a, const char *format, ...) FRG_PRINTF(2, 3);
static void add(advice *a, const char *format, ...)
{
    if (a->n == MAX_ADVICE) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(a->line[a->n++], sizeof a->line[0], format, args);
    va_end(args);
}

static int number_of(const char *text)
{
    return text && *text ? (int)strtol(text, NULL, 10) : 0;
}

static void check_blas(advice *a, const machine *m)
{
    const char *forced = getenv("OPENBLAS_CORETYPE"), *l2 = getenv("OPENBLAS_L2_SIZE");
    if (forced && *forced) {
        add(a, "OPENBLAS_CORETYPE=%s chooses the BLAS kernels by hand%s: unset it and compare",
            forced, m->avx512 ? ", and this CPU has AVX-512" : "");
    }
    if (l2 && *l2) {
        add(a,
            "OPENBLAS_L2_SIZE=%s overrides the size of the second-level cache that OpenBLAS found: "
            "unset it",
            l2);
    }
    static const char *const old_cores[] = {"Prescott", "Core2", "Nehalem", "generic", "Generic"};
    for (size_t i = 0; m->avx2 && i < sizeof old_cores / sizeof *old_cores; i++) {
        if (strcmp(m->core, old_cores[i]) == 0) {
            add(a, "the BLAS runs its %s kernels although this CPU has AVX2: use a newer OpenBLAS",
                m->core);
        }
    }
}

/** Programs that run or want to, from which on others are at work. */
static const double BUSY = 0.5;

static void check_threads(advice *a, const machine *m, int threads)
{
    const int omp = number_of(getenv("OMP_NUM_THREADS"));
    const char *binding = getenv("OMP_PROC_BIND");
    if (m->quota > 0 && threads > ceil(m->quota)) {
        add(a,
            "%d threads share a control group's %.3g CPUs (cpu.max) and will be stopped in turn: "
            "use --threads %d",
            threads, m->quota, (int)fmax(1, floor(m->quota)));
    }
    if (threads > m->affinity) {
        add(a, "%d threads on the %d cores that this process may use: use --threads %d", threads,
            m->affinity, m->affinity);
    }
    if (omp > 0 && omp < m->affinity) {
        add(a, "OMP_NUM_THREADS=%d leaves %d of %d cores idle: unset it or use --threads", omp,
            m->affinity - omp, m->affinity);
    }
    if (m->affinity < m->online) {
        add(a,
            "the affinity mask of this process has %d of %d cores (taskset, a container or a batch "
            "system)",
            m->affinity, m->online);
    }
    if (binding && *binding && strcmp(binding, "false") != 0) {
        add(a, "OMP_PROC_BIND=%s pins the threads: two runs at once would share the same cores",
            binding);
    }
}

/** What is left of the cores beside so many others' programs: each thread that has a core of its
 *  own. */
static int threads_beside(const machine *m, double others)
{
    return (int)fmax(1, floor(m->affinity - others + 0.5));
}

/** Others at work show in the load average, ours does not: this program has just begun. */
static void check_load(advice *a, const machine *m, int threads)
{
    static const double STOLEN = 0.05;
    const double load = fmin(m->load, m->online);
    if (m->load > BUSY * m->affinity) {
        add(a, "other programs keep %.1f of %d cores busy: times will be longer and vary", m->load,
            m->affinity);
    }
    if (m->load > BUSY && threads > threads_beside(m, load)) {
        add(a,
            "%d threads and a load of %.1f share %d cores: --threads %d leaves each a core, and "
            "waits less where they meet",
            threads, m->load, m->affinity, threads_beside(m, load));
    }
    if (m->steal > STOLEN) {
        add(a,
            "the host of this virtual machine has given %.0f %% of its cores' time to others "
            "(steal in /proc/stat): --threads %d waits less for cores that are away",
            100 * m->steal, threads_beside(m, fmax(1, m->steal * m->affinity)));
    }
}

/** Threads that spin beside others' programs, or beside more threads than there are cores, take the
 *  time of those that they wait for. */
static void check_waiting(advice *a, const machine *m, int threads)
{
    const char *const policy = getenv("OMP_WAIT_POLICY"), *const spins = getenv("GOMP_SPINCOUNT");
    const int active = policy && strcasecmp(policy, "active") == 0, long_spin = 100000;
    if (m->load > BUSY * m->affinity) {
        add(a, "programs of your own that link libfourge have threads that spin while they wait: "
               "start them with GOMP_SPINCOUNT=2000 in the environment, as fourge starts itself");
    }
    if ((active || number_of(spins) >= long_spin) && (m->load > BUSY || threads > m->affinity)) {
        add(a,
            "%s%s lets threads spin while they wait, and others use the cores: unset it, and they "
            "sleep after 0.1 ms",
            active ? "OMP_WAIT_POLICY=" : "GOMP_SPINCOUNT=", active ? policy : spins);
    }
}

static void check_level_and_memory(advice *a, const machine *m, const char *isa)
{
    char text[32];
    const char *level = getenv("FOURGE_ISA");
    if (level && *level) {
        add(a, "FOURGE_ISA=%s holds the kernels to CPU level %s: unset it", level, isa);
    }
    if (!m->avx2) {
        add(a, "this CPU has no AVX2: expect a half to a third of the speed");
    }
    if (m->memory_limit > 0) {
        add(a,
            "a control group limits the memory to %s: give --memory-limit a little less to get an "
            "error "
            "instead of a killed process",
            bytes_text((double)m->memory_limit, text));
    }
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
        char needed[32];
        add(a,
            "the address space is limited to %s (ulimit -v): OpenBLAS maps %s of it when it is "
            "loaded and never returns where it cannot; this program ends with exit code 71 then, "
            "Python and programs of your own hang",
            bytes_text((double)space.rlim_cur, text),
            bytes_text((double)openblas_address_space(environ), needed));
    }
}

static void check_device(advice *a)
{
    const char *const asked = getenv("FOURGE_DEVICE");
    frg_device device;
    frg_device_info info;
    if (!asked || !*asked) {
        return;
    }
    if (frg_device_parse(asked, &device) < 0) {
        add(a,
            "FOURGE_DEVICE=%.40s names no device, and a command without --device ends with that: "
            "set it to cpu, cuda[:i] or opencl[:i], or unset it",
            asked);
    } else if (frg_device_get(device, &info) < 0) {
        add(a,
            "FOURGE_DEVICE=%.20s is no device here (%.110s), and a command without --device ends "
            "with that: name one that is, or unset it",
            asked, info.reason);
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    frg_device_kind kind;
} plugins[] = {{"cuda", FRG_CUDA}, {"opencl", FRG_OPENCL}};
enum { PLUGINS = sizeof plugins / sizeof *plugins };

static void devices_json(frg_json *j)
{
    for (int p = 0; p < PLUGINS; p++) {
        const int count = frg_device_count(plugins[p].kind);
        for (int i = 0; i < count; i++) {
            frg_device_info d;
            char name[32];
            snprintf(name, sizeof name, "%s:%d", plugins[p].name, i);
            if (frg_device_get((frg_device){plugins[p].kind, i}, &d) == FRG_OK) {
                frg_json_open_object(j, NULL);
                frg_json_string(j, "kind", name);
                frg_json_string(j, "name", d.name);
                frg_json_integer(j, "memory", d.memory);
                frg_json_bool(j, "f64", d.f64);
                frg_json_string(j, "driver", d.driver);
                frg_json_close_object(j);
            }
        }
    }
}

static void plugins_json(frg_json *j)
{
    for (int p = 0; p < PLUGINS; p++) {
        frg_device_info d;
        const int there = frg_device_get((frg_device){plugins[p].kind, 0}, &d) == FRG_OK;
        frg_json_open_object(j, NULL);
        frg_json_string(j, "name", plugins[p].name);
        frg_json_bool(j, "usable", there);
        frg_json_string(j, "reason", there ? NULL : d.reason);
        frg_json_close_object(j);
    }
}

/** A line for each device, and for each kind that has none the reason. */
static void devices_text(frg_report *r)
{
    char text[sizeof((frg_device_info *)NULL)->name * 4], words[32], name[32];
    frg_report_fact(r, "Devices", "cpu");
    for (int p = 0; p < PLUGINS; p++) {
        const int count = frg_device_count(plugins[p].kind);
        for (int i = 0; i < count || i == 0; i++) {
            frg_device_info d;
            if (frg_device_get((frg_device){plugins[p].kind, i}, &d) < 0) {
                snprintf(name, sizeof name, "%s", plugins[p].name);
                snprintf(text, sizeof text, "none: %s", d.reason);
            } else {
                snprintf(name, sizeof name, "%s:%d", plugins[p].name, i);
                snprintf(text, sizeof text, "%s, %s, %s, %s", d.name,
                         bytes_text((double)d.memory, words), d.f64 ? "f32 and f64" : "f32 alone",
                         d.driver);
            }
            frg_report_fact(r, name, text);
        }
    }
}

static void doctor_json(frg_json *j, const cli *c, const void *job)
{
    const findings *const f = job;
    const machine *const m = &f->machine;
    const advice *const a = &f->advice;
    json_head(j, "fourge.doctor/1");
    frg_json_string(j, "commit", frg_commit());
    frg_json_open_object(j, "blas");
    frg_json_string(j, "name", m->blas);
    frg_json_string(j, "core", m->core);
    frg_json_close_object(j);
    frg_json_open_object(j, "cpu");
    frg_json_string(j, "name", m->cpu);
    frg_json_string(j, "level", frg_isa(c->ctx));
    frg_json_integer(j, "online", m->online);
    frg_json_integer(j, "affinity", m->affinity);
    if (m->quota > 0) {
        frg_json_number(j, "quota", m->quota);
    } else {
        frg_json_string(j, "quota", NULL);
    }
    frg_json_close_object(j);
    frg_json_open_object(j, "memory");
    frg_json_integer(j, "total", m->memory_total);
    if (m->memory_limit > 0) {
        frg_json_integer(j, "limit", m->memory_limit);
    } else {
        frg_json_string(j, "limit", NULL);
    }
    frg_json_close_object(j);
    frg_json_open_array(j, "devices");
    frg_json_open_object(j, NULL);
    frg_json_string(j, "kind", "cpu");
    frg_json_string(j, "name", m->cpu);
    frg_json_integer(j, "memory", m->memory_limit > 0 ? m->memory_limit : m->memory_total);
    frg_json_close_object(j);
    devices_json(j);
    frg_json_close_array(j);
    frg_json_open_array(j, "plugins");
    plugins_json(j);
    frg_json_close_array(j);
    frg_json_open_array(j, "advice");
    for (int i = 0; i < a->n; i++) {
        frg_json_string(j, NULL, a->line[i]);
    }
    frg_json_close_array(j);
    json_foot(j, c);
}

static void doctor_text(frg_report *r, const cli *c, const void *job)
{
    const findings *const f = job;
    const machine *const m = &f->machine;
    const advice *const a = &f->advice;
    char text[256], words[32];
    snprintf(text, sizeof text, "%s (commit %s)", frg_version(), frg_commit());
    frg_report_fact(r, "fourge", text);
    snprintf(text, sizeof text, "%s, kernels %s", m->blas, *m->core ? m->core : "unknown");
    frg_report_fact(r, "BLAS", text);
    snprintf(text, sizeof text, "%s, level %s", m->cpu, frg_isa(c->ctx));
    frg_report_fact(r, "CPU", text);
    snprintf(text, sizeof text, "%d of %d cores in the affinity mask, control group: ", m->affinity,
             m->online);
    const size_t used = strlen(text);
    if (m->quota > 0) {
        snprintf(text + used, sizeof text - used, "%.3g CPUs", m->quota);
    } else {
        snprintf(text + used, sizeof text - used, "no limit");
    }
    frg_report_fact(r, "Cores", text);
    snprintf(text, sizeof text, "%d", frg_threads(c->ctx));
    frg_report_fact(r, "Threads", text);
    snprintf(text, sizeof text, "%s", bytes_text((double)m->memory_total, words));
    const size_t used_memory = strlen(text);
    if (m->memory_limit > 0) {
        snprintf(text + used_memory, sizeof text - used_memory, ", control group: %s",
                 bytes_text((double)m->memory_limit, words));
    }
    frg_report_fact(r, "Memory", text);
    devices_text(r);
    frg_report_heading(r, "Advice");
    for (int i = 0; i < a->n; i++) {
        frg_report_paragraph(r, a->line[i]);
    }
}

int command_doctor(cli *c)
{
    const int code = cli_open_plain(c);
    if (code) {
        return code;
    }
    findings f = {0};
    machine_read(&f.machine);
    check_blas(&f.advice, &f.machine);
    check_threads(&f.advice, &f.machine, frg_threads(c->ctx));
    check_load(&f.advice, &f.machine, frg_threads(c->ctx));
    check_waiting(&f.advice, &f.machine, frg_threads(c->ctx));
    check_level_and_memory(&f.advice, &f.machine, frg_isa(c->ctx));
    check_device(&f.advice);
    add(&f.advice,
        "gw sinkhorn, gw align, demean and the effects of fe compute on a --device; what "
        "does not is refused by name");
    return write_result(c, "fourge doctor", doctor_json, doctor_text, &f);
}
