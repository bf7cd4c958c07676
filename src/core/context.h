/* context.h - the inside of frg_context, for the files of src/core alone. */
#ifndef FRGI_CONTEXT_H
#define FRGI_CONTEXT_H

#include <stdatomic.h>

#include "core/core.h"

enum { MESSAGE_BYTES = 1024, WHERE_BYTES = 256, KEPT_BLOCKS = 64 };

typedef struct {
    frgi_error id;
    char *message;
} frgi_warning;

/** What the creator asked for, checked. */
typedef struct {
    frg_device device;
    void *stream; /* of the device, the caller's */
    int threads;
    uint64_t seed;
    int count_from, copies_files;
    int64_t memory_limit;
    double time_limit;
    frg_progress_fn on_progress;
    frg_log_fn on_log;
    void *user;
} frgi_context_opts;

/** What the machine is. */
typedef struct {
    frgi_isa isa;
    bool tiles;
    atomic_size_t memory; /* that this process may use; SIZE_MAX: not known, 0: not looked at */
} frgi_processor;

/** Blocks beyond the memory limit, of spool.c alone. */
typedef struct frgi_spool frgi_spool;

/** A pass along rows, whose progress is reported while it goes. */
typedef struct {
    const char *solver, *phase;
    int64_t total;
    _Atomic(int64_t) done;
    double reported;  /* when, last */
    atomic_int asked; /* the callback has asked the run to stop */
} frgi_pass;

/** Blocks of memory, of memory.c alone. */
typedef struct {
    size_t held, peak;       /* bytes in use, the blocks' headers included */
    void *kept[KEPT_BLOCKS]; /* freed blocks that wait to be used again, see memory.c */
    int n_kept;
    size_t kept_bytes;
} frgi_heap;

/** The last error. */
typedef struct {
    frgi_error error;
    char message[MESSAGE_BYTES];
    char where[WHERE_BYTES];
    char next_where[WHERE_BYTES]; /* set by frgi_at for the next failure */
} frgi_failure;

typedef struct {
    frgi_warning *list;
    int count, capacity;
} frgi_warnings;

struct frg_context {
    frgi_context_opts opts;
    struct frgi_host_steps *host_steps; /* of the run under way (host_step.h); NULL: none */
    struct frgi_device *device;         /* of src/device, which closes it; NULL: the cpu */
    frg_allocator allocator;
    frg_files files;
    frgi_processor machine;
    frgi_heap heap;
    frgi_spool *spool; /* NULL: the memory limit is the end */
    double run_began;
    atomic_int interrupted;
    frgi_pass pass;
    frgi_failure failure;
    frgi_warnings warned;
    const char *subject; /* of the warnings from now on; NULL: none is named */
};

#pragma GCC visibility push(hidden)
/** What control groups leave to this process, read by `files`: cores, bytes; 0: all there are. */
double frgi_group_cores(const frg_files *files);
double frgi_group_memory(const frg_files *files);
/** What this process may use of the machine's memory; a look at the files of the control groups
 *  takes 20 to 30 us. */
size_t frgi_machine_memory(const frg_context *ctx);
/** Lets large blocks lie in files in the folder; E_MEMORY. */
FRG_MUST_USE frg_status frgi_spool_open(frg_context *ctx, const char *folder);
/** Blocks from this size on do: a small one for tests. */
void frgi_spool_from(frg_context *ctx, size_t bytes);
/** Drops the warnings behind the first `count`. */
void frgi_warnings_forget(frg_context *ctx, int count);
/** Gives the kept blocks back. */
void frgi_drop_kept(frg_context *ctx);
/** Folders of plug-ins, "a:b", as the environment has them; NULL: none. */
const char *frgi_plugin_folders(void);
/** Has the environment hidden the double precision of OpenCL's devices? */
bool frgi_hides_f64(void);
/** Of src/device, above this room: opens and closes the device of the context's options. */
FRG_MUST_USE frg_status frgi_context_open_device(frg_context *ctx);
void frgi_context_close_device(frg_context *ctx);
#pragma GCC visibility pop

#endif
