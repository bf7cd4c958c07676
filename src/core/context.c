/* context.c - the context: options, errors, warnings, threads, CPU level, heartbeat. */
#include "core/confine.h"
#include "core/cpu_level.h"
#include "core/host_alone.h"
#include "core/spool.h"
#include "core/version.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

const char *frgi_plugin_folders(void)
{
    return getenv("FOURGE_PLUGINS");
}

bool frgi_hides_f64(void)
{
    const char *const f64 = getenv("FOURGE_OPENCL_F64");
    return f64 && strcmp(f64, "0") == 0;
}

/** FOURGE_DEVICE, or the cpu; a text that names no device becomes one that is refused. */
static frg_device default_device(void)
{
    const char *const asked = getenv("FOURGE_DEVICE");
    frg_device d = {FRG_CPU, 0};
    if (asked && *asked && frg_device_parse(asked, &d) < 0) {
        d = (frg_device){FRG_CPU, -1};
    }
    return d;
}

void frg_context_defaults(frg_context_opts *o, size_t struct_size)
{
    const frg_context_opts defaults = {.struct_size = struct_size, .device = default_device()};
    memcpy(o, &defaults, struct_size < sizeof defaults ? struct_size : sizeof defaults);
}

/** Cores in this process's affinity mask, not more than its control groups give it time on, nor
 *  than OMP_NUM_THREADS; 1 inside a parallel region. */
static int default_threads(void)
{
    if (omp_in_parallel()) {
        return 1;
    }
    int cores = omp_get_num_procs();
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        cores = CPU_COUNT(&set);
    }
#endif
    const double given = ceil(frg_group_cores());
    cores = given > 0 && given < cores ? (int)given : cores;
    const int asked = omp_get_max_threads();
    return asked < cores ? asked : cores;
}

/** The levels that this library has, lowest first. */
static const frgi_isa built_isas[] = {ISA_PLAIN, WITH_V2(ISA_V2) WITH_V3(ISA_V3) WITH_V4(ISA_V4)};

/** The highest level of the library that the machine has and that is none above `most`. */
static frgi_isa highest_isa(frgi_isa most)
{
    const frgi_isa machine = (frgi_isa)frgi_cpu_level();
    frgi_isa found = ISA_PLAIN;
    for (size_t i = 0; i < sizeof built_isas / sizeof *built_isas; i++) {
        if (built_isas[i] <= machine && built_isas[i] <= most) {
            found = built_isas[i];
        }
    }
    return found;
}

static const char *const isa_names[ISA_COUNT] = {"plain", "v2", "v3", "v4"};

/** The CPU has tiles of bfloat16, and the kernel lets this process use them: their 8 KB of
 *  registers have to be asked for, once a process; asking again changes nothing. */
static bool has_tiles(void)
{
#if defined(__x86_64__) && defined(__linux__)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    static const unsigned bfloat16 = 1u << 22, tiles = 1u << 24;
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & bfloat16) && (d & tiles) &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}

/** The machine's level, or the lower one that FOURGE_ISA asks for, or the next below that the
 *  library has; "v4" is v4 without tiles. */
static void choose_isa(frg_context *ctx)
{
    const char *const asked = getenv("FOURGE_ISA");
    ctx->machine.isa = highest_isa(ISA_V4);
    for (int i = 0; asked && i <= (int)ctx->machine.isa; i++) {
        if (strcmp(asked, isa_names[i]) == 0) {
            ctx->machine.isa = highest_isa((frgi_isa)i);
            return;
        }
    }
    ctx->machine.tiles = ctx->machine.isa == ISA_V4 && has_tiles();
}

/** The machine's memory, or what control groups leave of it. */
static size_t read_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const size_t all = pages > 0 && page > 0 ? frgi_mul((size_t)pages, (size_t)page) : SIZE_MAX;
    const size_t given = (size_t)frg_group_memory();
    return given > 0 && given < all ? given : all;
}

/** Looked at once, and by the contexts alone that ask: plans of small problems are made by the
 *  thousand, and each asks what it may take; contexts for one short call are made by the thousand
 *  too.  Two threads that look see the same. */
size_t frgi_machine_memory(const frg_context *ctx)
{
    atomic_size_t *const known = &((frg_context *)(uintptr_t)ctx)->machine.memory;
    size_t bytes = atomic_load_explicit(known, memory_order_relaxed);
    if (bytes == 0) {
        bytes = read_memory();
        atomic_store_explicit(known, bytes, memory_order_relaxed);
    }
    return bytes;
}

/** A spool without a limit takes over where half of the machine's memory is in use. */
static frg_status open_spool(frg_context *ctx, const char *folder)
{
    if (ctx->opts.memory_limit == 0) {
        ctx->opts.memory_limit = (int64_t)(frgi_machine_memory(ctx) / 2);
    }
    return frgi_spool_open(ctx, folder);
}

/** A context; parent: of whose machine it is, NULL to look. */
static frg_status create(frg_context **out, const frg_context_opts *o, const frg_context *parent)
{
    if (!out) {
        return FRG_BAD_ARG;
    }
    *out = NULL;
    frg_context_opts opts;
    frg_context_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(NULL, &opts, sizeof opts, o));
    if (opts.threads < 0 || opts.threads > 4096 || opts.memory_limit < 0 ||
        !(opts.time_limit >= 0) || opts.count_from < 0 || opts.count_from > 1 ||
        opts.copies_files < 0 || opts.copies_files > 1) {
        return FRG_BAD_ARG;
    }
    if (opts.device.kind == FRG_CPU && opts.device.index != 0) {
        return FRG_NO_DEVICE;
    }
    /* who gives what is reserved or has no use here must not think that it is used */
    if (opts.comm || (opts.stream && opts.device.kind == FRG_CPU)) {
        return FRG_UNSUPPORTED;
    }
    const frg_allocator *allocator = opts.allocator ? opts.allocator : frg_system_allocator();
    frg_context *ctx = allocator->alloc(sizeof *ctx, allocator->user);
    if (!ctx) {
        return FRG_NO_MEMORY;
    }
    memset(ctx, 0, sizeof *ctx);
    ctx->opts.device = opts.device;
    ctx->opts.stream = opts.stream;
    ctx->opts.threads = opts.threads ? opts.threads : default_threads();
    ctx->opts.seed = opts.seed;
    ctx->opts.count_from = opts.count_from;
    ctx->opts.copies_files = opts.copies_files;
    ctx->opts.memory_limit = opts.memory_limit;
    atomic_init(&ctx->machine.memory, parent ? frgi_machine_memory(parent) : 0);
    ctx->opts.time_limit = opts.time_limit;
    ctx->opts.on_progress = opts.on_progress;
    ctx->opts.on_log = opts.on_log;
    ctx->opts.user = opts.user;
    ctx->allocator = *allocator;
    ctx->files = opts.files ? *opts.files : *frg_system_files();
    choose_isa(ctx);
    frgi_run_begins(ctx);
    frg_status status = opts.spool ? open_spool(ctx, opts.spool) : FRG_OK;
    if (status == FRG_OK && opts.device.kind != FRG_CPU) {
        status = frgi_context_open_device(ctx);
    }
    if (status < 0) {
        frg_context_destroy(ctx);
        return status;
    }
    *out = ctx;
    return FRG_OK;
}

frg_status frg_context_create(frg_context **out, const frg_context_opts *o)
{
    return create(out, o, NULL);
}

void frg_context_destroy(frg_context *ctx)
{
    if (!ctx) {
        return;
    }
    frgi_context_close_device(ctx);
    frg_warnings_clear(ctx);
    frgi_spool_close(ctx);
    frgi_drop_kept(ctx);
    const frg_allocator allocator = ctx->allocator;
    allocator.free(ctx, sizeof *ctx, allocator.user);
}

/* ---- errors and warnings --------------------------------------------------------------------- */

long long frgi_nth(const frg_context *ctx, int64_t i)
{
    return (long long)i + ctx->opts.count_from;
}

void frgi_at(frg_context *ctx, const char *format, ...)
{
    if (!ctx) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(ctx->failure.next_where, sizeof ctx->failure.next_where, format, args);
    va_end(args);
}

frg_status frgi_fail(frg_context *ctx, frgi_error id, const char *file, int line,
                     const char *format, ...)
{
    const frg_error_entry *entry = frg_error_catalogue((int)id - 1);
    if (!ctx) {
        return entry->status;
    }
    ctx->failure.error = id;
    memcpy(ctx->failure.where, ctx->failure.next_where, sizeof ctx->failure.where);
    ctx->failure.next_where[0] = '\0';
    va_list args;
    va_start(args, format);
    vsnprintf(ctx->failure.message, sizeof ctx->failure.message, format, args);
    va_end(args);
    frgi_log(ctx, 2, "%s at %s:%d: %s", entry->code, file, line, ctx->failure.message);
    return entry->status;
}

void frgi_fail_of(frg_context *ctx, const char *subject)
{
    char message[MESSAGE_BYTES];
    memcpy(message, ctx->failure.message, sizeof message);
    snprintf(ctx->failure.message, sizeof ctx->failure.message, "%.300s: %.700s", subject, message);
}

void frgi_warn_of(frg_context *ctx, const char *subject)
{
    ctx->subject = subject;
}

void frgi_warn(frg_context *ctx, frgi_error id, const char *format, ...)
{
    char message[MESSAGE_BYTES] = "";
    if (ctx->subject) {
        snprintf(message, sizeof message, "%.300s: ", ctx->subject);
    }
    const size_t begun = strlen(message);
    va_list args;
    va_start(args, format);
    vsnprintf(message + begun, sizeof message - begun, format, args);
    va_end(args);
    frgi_log(ctx, 0, "%s", message);
    /* a warning that memory has no room for is dropped: it must not turn a result into a failure */
    if (ctx->warned.count == ctx->warned.capacity) {
        const int capacity = 2 * ctx->warned.capacity + 8;
        if (GROW(ctx, &ctx->warned.list, capacity, "warnings") < 0) {
            return;
        }
        ctx->warned.capacity = capacity;
    }
    frgi_warning *w = &ctx->warned.list[ctx->warned.count];
    if (frgi_strdup(ctx, &w->message, message, strlen(message)) < 0) {
        return;
    }
    w->id = id;
    ctx->warned.count++;
}

bool frgi_has_said(const frg_context *ctx, const char *text)
{
    const char *const subject = ctx->subject ? ctx->subject : "";
    const size_t length = strlen(subject), skip = length ? length + 2 : 0;
    for (int i = 0; i < ctx->warned.count; i++) {
        const char *const message = ctx->warned.list[i].message;
        if (strncmp(message, subject, length) == 0 && strlen(message) >= skip &&
            strcmp(message + skip, text) == 0) {
            return true;
        }
    }
    return false;
}

bool frgi_has_warned(const frg_context *ctx, frgi_error id)
{
    bool found = false;
    for (int i = 0; i < ctx->warned.count && !found; i++) {
        found = ctx->warned.list[i].id == id;
    }
    return found;
}

void frgi_log(frg_context *ctx, int level, const char *format, ...)
{
    if (!ctx->opts.on_log) {
        return;
    }
    char line[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    ctx->opts.on_log(level, line, ctx->opts.user);
}

frg_status frgi_host_alone(frg_context *ctx, const char *what)
{
    if (ctx && ctx->opts.device.kind != FRG_CPU) {
        FAIL(ctx, E_DEVICE_STEP, "%s does not run on %s:%d", what,
             ctx->opts.device.kind == FRG_CUDA ? "cuda" : "opencl", ctx->opts.device.index);
    }
    return FRG_OK;
}

const char *frg_message(const frg_context *ctx)
{
    return ctx && ctx->failure.error ? ctx->failure.message : "";
}

const char *frg_error_where(const frg_context *ctx)
{
    return ctx && ctx->failure.error ? ctx->failure.where : "";
}

const char *frg_error_code(const frg_context *ctx)
{
    return ctx && ctx->failure.error ? frg_error_catalogue((int)ctx->failure.error - 1)->code : "";
}

const char *frg_error_hint(const frg_context *ctx)
{
    return ctx && ctx->failure.error ? frg_error_catalogue((int)ctx->failure.error - 1)->hint : "";
}

int frg_warning_count(const frg_context *ctx)
{
    return ctx ? ctx->warned.count : 0;
}

const char *frg_warning_code(const frg_context *ctx, int i)
{
    if (!ctx) {
        return "";
    }
    return i >= 0 && i < ctx->warned.count
               ? frg_error_catalogue((int)ctx->warned.list[i].id - 1)->code
               : "";
}

const char *frg_warning_message(const frg_context *ctx, int i)
{
    if (!ctx) {
        return "";
    }
    return i >= 0 && i < ctx->warned.count ? ctx->warned.list[i].message : "";
}

void frgi_warnings_forget(frg_context *ctx, int count)
{
    while (ctx->warned.count > count) {
        DROP(ctx, &ctx->warned.list[--ctx->warned.count].message);
    }
}

void frg_warnings_clear(frg_context *ctx)
{
    if (!ctx) {
        return;
    }
    for (int i = 0; i < ctx->warned.count; i++) {
        DROP(ctx, &ctx->warned.list[i].message);
    }
    DROP(ctx, &ctx->warned.list);
    ctx->warned.count = ctx->warned.capacity = 0;
}

/* ---- running --------------------------------------------------------------------------------- */

double frgi_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void frgi_run_begins(frg_context *ctx)
{
    ctx->run_began = frgi_seconds();
    atomic_store_explicit(&ctx->pass.asked, 0, memory_order_relaxed);
}

static bool is_interrupted(const frg_context *ctx)
{
    return atomic_load_explicit(&ctx->interrupted, memory_order_relaxed) ||
           atomic_load_explicit(&ctx->pass.asked, memory_order_relaxed);
}

frg_status frgi_stopped(const frg_context *ctx)
{
    frgi_spool_trim(ctx);
    const bool over =
        ctx->opts.time_limit > 0 && frgi_seconds() - ctx->run_began > ctx->opts.time_limit;
    return is_interrupted(ctx) ? FRG_INTERRUPTED : over ? FRG_TIME_LIMIT : FRG_OK;
}

frg_status frgi_heartbeat(frg_context *ctx, const frg_progress *p)
{
    if (ctx->opts.on_progress) {
        frg_progress report = *p;
        report.seconds = frgi_seconds() - ctx->run_began;
        if (ctx->opts.on_progress(&report, ctx->opts.user)) {
            return FRG_INTERRUPTED;
        }
    }
    return frgi_stopped(ctx);
}

void frgi_pass_begins(frg_context *ctx, const char *solver, const char *phase, int64_t bytes)
{
    frgi_pass *const p = &ctx->pass;
    p->solver = solver;
    p->phase = phase;
    p->total = bytes;
    p->reported = frgi_seconds();
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
}

void frgi_pass_did(frg_context *ctx, int64_t bytes)
{
    static const double interval = 0.1;
    if (!ctx || !ctx->opts.on_progress) {
        return;
    }
    frgi_pass *const p = &ctx->pass;
    const int64_t done = atomic_fetch_add_explicit(&p->done, bytes, memory_order_relaxed) + bytes;
    if (omp_get_thread_num() != 0 || done > p->total || frgi_seconds() - p->reported < interval) {
        return;
    }
    p->reported = frgi_seconds();
    const frg_progress now = {.solver = p->solver,
                              .phase = p->phase,
                              .done = done,
                              .total = p->total,
                              .residual = (double)NAN,
                              .target = (double)NAN,
                              .in_bytes = 1};
    if (frgi_heartbeat(ctx, &now) == FRG_INTERRUPTED) {
        atomic_store_explicit(&p->asked, 1, memory_order_relaxed);
    }
}

static int stop_with_parent(const frg_progress *p, void *parent)
{
    (void)p;
    return is_interrupted(parent);
}

frg_status frgi_context_fork(frg_context **out, frg_context *parent, int parts, frgi_slab *slab)
{
    const frg_allocator allocator = slab ? frgi_slab_allocator(slab) : parent->allocator;
    const int64_t left = parent->opts.memory_limit - (int64_t)parent->heap.held;
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.device = (frg_device){FRG_CPU, 0}; /* a thread of the host */
    o.threads = 1;
    o.seed = parent->opts.seed;
    o.count_from = parent->opts.count_from;
    o.memory_limit = parent->opts.memory_limit == 0 ? 0 : left > parts ? left / parts : 1;
    o.time_limit = parent->opts.time_limit;
    o.on_progress = stop_with_parent;
    o.user = parent;
    o.allocator = &allocator;
    o.files = &parent->files;
    const frg_status status = create(out, &o, parent);
    if (status < 0) {
        FAIL(parent, E_MEMORY, "no memory for a thread's context");
    }
    (*out)->machine.isa = parent->machine.isa;
    (*out)->machine.tiles = parent->machine.tiles;
    (*out)->run_began = parent->run_began;
    (*out)->host_steps = parent->host_steps;
    return FRG_OK;
}

void frgi_context_alone(frg_context *ctx, frg_log_fn on_log, void *user)
{
    ctx->opts.threads = 1;
    ctx->opts.on_progress = NULL;
    ctx->opts.on_log = on_log;
    ctx->opts.user = user;
    ctx->opts.memory_limit = ctx->spool ? 0 : ctx->opts.memory_limit;
    ctx->spool = NULL; /* its files and thread are the parent's */
}

void frg_interrupt(frg_context *ctx)
{
    if (!ctx) {
        return;
    }
    atomic_store_explicit(&ctx->interrupted, 1, memory_order_relaxed);
}

void frg_interrupt_clear(frg_context *ctx)
{
    if (!ctx) {
        return;
    }
    atomic_store_explicit(&ctx->interrupted, 0, memory_order_relaxed);
    atomic_store_explicit(&ctx->pass.asked, 0, memory_order_relaxed);
}

int frg_threads(const frg_context *ctx)
{
    return ctx ? ctx->opts.threads : 0;
}

uint64_t frg_seed(const frg_context *ctx)
{
    return ctx ? ctx->opts.seed : 0;
}

const char *frg_isa(const frg_context *ctx)
{
    if (!ctx) {
        return "";
    }
    return ctx->machine.tiles ? "v4+amx" : isa_names[ctx->machine.isa];
}

frgi_isa frgi_context_isa(const frg_context *ctx)
{
    return ctx->machine.isa;
}

bool frgi_context_tiles(const frg_context *ctx)
{
    return ctx->machine.tiles;
}

size_t frg_bytes_held(const frg_context *ctx)
{
    return ctx ? ctx->heap.held + frgi_spool_held(ctx) : 0;
}

size_t frg_peak_bytes(const frg_context *ctx)
{
    return ctx ? ctx->heap.peak : 0;
}

void frg_peak_reset(frg_context *ctx)
{
    if (!ctx) {
        return;
    }
    ctx->heap.peak = ctx->heap.held;
}

/* ---- the build ------------------------------------------------------------------------------- */

const char *frg_version(void)
{
    return FRGI_VERSION;
}

const char *frg_commit(void)
{
    return FOURGE_COMMIT;
}

const char *frg_compiler(void)
{
#if defined(__clang__)
    return __VERSION__; /* its own name is in it */
#else
    return "GCC " __VERSION__;
#endif
}
