/* fourge.h - the common core: every other header of fourge builds on these types and nothing else.
 *
 * Life cycle, the same for what is run more than once:
 *
 *     frg_X_defaults(&opts, sizeof opts)     all options at their documented defaults
 *     frg_X_create(&plan, ctx, ..., &opts)   checks the input, plans, owns all memory
 *     frg_X_run(plan, ...)                   the work; the second run of a plan allocates nothing
 *     frg_X_destroy(plan)                    accepts NULL and half-built plans
 *
 * A Gaussian process has eval, fit and predict in the place of run, an optimizer step; a regression
 * is created and run by frg_fe_fit.  Single calls (frg_lsmr_solve, frg_gw_embed, ...) give their
 * memory back when they return.
 *
 * Rules that hold everywhere:
 *  - A call that fails (status < 0) leaves its outputs as they were before the call, *out == NULL
 *    for create, and frg_message(ctx) says what was expected, what was found and where.
 *  - A status > 0 is a usable result that stopped early; it is marked, never hidden.
 *  - The library never prints, exits, changes the locale or the floating-point environment.
 *  - NULL for a handle, a context or the place of a result that is needed is FRG_BAD_ARG; what
 *    returns a value instead of a status answers zeros then (0, NULL, ""), and what returns nothing
 *    does nothing.
 *  - Sizes are int64_t; arrays are borrowed views, the library never keeps the caller's pointer
 *    longer than the object that was given it.
 *  - Two contexts are independent; one context, and the plans made from it, belong to one thread at
 *  a time.
 */
#ifndef FOURGE_H
#define FOURGE_H

#include <stddef.h>
#include <stdint.h>

#define FRG_VERSION_MAJOR 0
#define FRG_VERSION_MINOR 1
#define FRG_VERSION_PATCH 0

#if defined(_WIN32)
#define FRG_API
#elif defined(__GNUC__)
#define FRG_API __attribute__((visibility("default")))
#else
#define FRG_API
#endif

#if defined(__GNUC__)
#define FRG_MUST_USE          __attribute__((warn_unused_result))
#define FRG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define FRG_MUST_USE
#define FRG_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ---------------------------------------------------------------------------------- */

/** Every status with its number, the exit code of the command line, and a sentence. */
#define FRG_STATUS_LIST(X)                                                                         \
    X(FRG_OK, 0, 0, "done")                                                                        \
    X(FRG_MAX_ITER, 1, 1, "stopped at the iteration limit before convergence")                     \
    X(FRG_TIME_LIMIT, 2, 1, "stopped at the time limit")                                           \
    X(FRG_INTERRUPTED, 3, 130, "stopped on request")                                               \
    X(FRG_STALLED, 4, 1, "no further progress is possible at this tolerance")                      \
    X(FRG_PARTIAL, 5, 1, "part of the result is missing")                                          \
    X(FRG_BAD_ARG, -1, 2, "an argument is invalid")                                                \
    X(FRG_NO_MEMORY, -2, 71, "out of memory")                                                      \
    X(FRG_NO_DEVICE, -3, 69, "the device is not available")                                        \
    X(FRG_UNSUPPORTED, -4, 2, "not supported")                                                     \
    X(FRG_NOT_POSDEF, -5, 65, "a matrix is not positive definite")                                 \
    X(FRG_BROKE_DOWN, -6, 65, "the computation broke down")                                        \
    X(FRG_BUG, -7, 70, "an internal error of fourge")                                              \
    X(FRG_BAD_DATA, -8, 65, "the data are invalid")                                                \
    X(FRG_NO_INPUT, -9, 66, "an input cannot be opened")                                           \
    X(FRG_CANNOT_CREATE, -10, 73, "an output cannot be created")                                   \
    X(FRG_IO, -11, 74, "reading or writing failed")                                                \
    X(FRG_MISMATCH, -12, 65, "a saved object does not belong to these data")                       \
    X(FRG_BUSY, -13, 70, "the object is in use by another thread")

/** 0: done.  > 0: stopped early, outputs are the best iterate, marked.  < 0: failed, outputs as
 *  before the call. FRG_BUSY is the Python package's, whose objects have a lock: no call of the
 *  library looks for a second thread. */
typedef enum {
#define FRG_STATUS_ENUM(name, number, exit_code, sentence) name = number,
    FRG_STATUS_LIST(FRG_STATUS_ENUM)
#undef FRG_STATUS_ENUM
} frg_status;

/** "FRG_NOT_POSDEF" and the like; never NULL. */
FRG_API const char *frg_status_name(frg_status s);
/** The sentence of the list above; never NULL. */
FRG_API const char *frg_status_sentence(frg_status s);
/** The exit code of the command line for this status. */
FRG_API int frg_status_exit_code(frg_status s);

/* ---- arrays ---------------------------------------------------------------------------------- */

/** The type of the elements of an array. */
typedef enum {
    FRG_F32,  /* IEEE 754 binary32: float */
    FRG_F64,  /* IEEE 754 binary64: double */
    FRG_F16,  /* IEEE 754 binary16 */
    FRG_BF16, /* bfloat16: the upper half of a binary32 */
    FRG_U8,   /* uint8_t */
    FRG_U16,  /* uint16_t */
    FRG_I32,  /* int32_t */
    FRG_I64   /* int64_t */
} frg_dtype;
/** The kinds of devices that have a name.  All but the cpu are plug-ins, libfourge_cuda.so and
 *  libfourge_opencl.so: they are found in the folders of the environment variable FOURGE_PLUGINS,
 *  "a:b", or beside the library. */
typedef enum {
    FRG_CPU,   /* "cpu" */
    FRG_CUDA,  /* "cuda", "cuda:1" */
    FRG_OPENCL /* "opencl", "opencl:1" */
} frg_device_kind;

/** Where a context computes and where an array lies.  All zeros: the cpu. */
typedef struct {
    frg_device_kind kind; /* default cpu */
    int index;            /* which of the devices of the kind, from 0 on; of the cpu 0 alone */
} frg_device;

/** The most axes that an array has. */
#define FRG_MAX_DIM 4

/** A borrowed strided view, passed by value; it never owns `data`.  Element (i, j) lies
 *  `offset + (i * stride[0] + j * stride[1]) * frg_sizeof(dtype)` bytes after `data`.
 *  `offset` is separate because an OpenCL buffer handle has no pointer arithmetic. */
typedef struct {
    void *data;                  /* the caller's, or of the object that gave the view; on a device
                                    the address (cuda) or the cl_mem (opencl) */
    size_t offset;               /* bytes */
    frg_dtype dtype;             /* of the elements */
    frg_device device;           /* where the elements lie */
    int ndim;                    /* axes, 0 .. FRG_MAX_DIM */
    int64_t shape[FRG_MAX_DIM];  /* length of each axis, the first ndim alone */
    int64_t stride[FRG_MAX_DIM]; /* from one element of an axis to the next: elements, not bytes */
} frg_array;

/** Bytes of one element; 0 for an unknown dtype. */
FRG_API size_t frg_sizeof(frg_dtype t);
/** "f64", "i32" and the like; "?" for an unknown dtype. */
FRG_API const char *frg_dtype_name(frg_dtype t);
/** Host vector of n contiguous elements. */
FRG_API frg_array frg_vector(const void *data, frg_dtype t, int64_t n);
/** Host matrix m x n, row-major, ld >= n elements from row to row. */
FRG_API frg_array frg_matrix(const void *data, frg_dtype t, int64_t m, int64_t n, int64_t ld);
/** Host matrix m x n, column-major, ld >= m elements from column to column. */
FRG_API frg_array frg_matrix_columns(const void *data, frg_dtype t, int64_t m, int64_t n,
                                     int64_t ld);

/* ---- what one solve did ---------------------------------------------------------------------- */

/** What a run tells of itself in the same words for every solver.  Filled on every return, early
 *  stops and failures included. */
typedef struct {
    frg_status status;       /* what the call returned */
    int64_t iterations;      /* of the solver's main loop; of several columns the most */
    double residual;         /* the solver's own measure, see its header */
    double objective;        /* NaN where the solver has none */
    double setup_seconds;    /* of the plan, or of what comes before the first iteration */
    double solve_seconds;    /* of this run */
    size_t peak_bytes;       /* the most this context's allocator held at a time */
    const char *device_name; /* "cpu"; a constant of the library */
} frg_info;

/** A step that a run on a device leaves to the host, and how often it was made. */
typedef struct {
    const char *name; /* "sparse factor"; a constant of the library */
    int64_t calls;
} frg_host_step;
enum { FRG_HOST_STEPS_MOST = 32 };
/** All of them, those that were made; none on the cpu.  What they copy is part of the bytes that
 *  the report counts. */
typedef struct {
    int64_t count;
    frg_host_step steps[FRG_HOST_STEPS_MOST];
} frg_host_steps;

/* ---- context --------------------------------------------------------------------------------- */

/** Where a run stands, for frg_progress_fn; alive during the call alone. */
typedef struct {
    const char *solver;  /* "fe", "gp", "gw", "qr", "table", ... */
    const char *phase;   /* what the solver is at: "factor", "rows", ... */
    int64_t done, total; /* steps of the phase, or bytes; total 0: not known */
    double residual;     /* NaN where there is none */
    double target;       /* the residual that ends the phase, NaN where there is none */
    double seconds;      /* since the run began */
    int in_bytes;        /* 1: done and total are bytes, of a file or of what a pass goes along */
} frg_progress;

/** Called about once an iteration, and each tenth of a second within a pass along rows, on the
 *  thread that called the library; non-zero asks the solver to stop (FRG_INTERRUPTED).  It may call
 *  the library on other contexts, and frg_interrupt on this one. */
typedef int (*frg_progress_fn)(const frg_progress *p, void *user);
/** level 0 warning, 1 information, 2 detail; a line without its end, on the thread that called the
 *  library. */
typedef void (*frg_log_fn)(int level, const char *line, void *user);

/** Where memory comes from.  alloc returns NULL on failure, at least 64-byte aligned memory
 *  otherwise.  Both may be called by several threads at once: members of a batch and starts of a
 *  fit take their own memory.  The table is copied; `user` must live as long as the context. */
typedef struct {
    /** `bytes` of memory, bytes > 0, or NULL. */
    void *(*alloc)(size_t bytes, void *user);
    /** Takes back what alloc gave, p never NULL; bytes: as alloc was asked for them. */
    void (*free)(void *p, size_t bytes, void *user);
    void *user; /* handed to both */
} frg_allocator;

/** How files are reached; every read and write of the library goes through it.  Functions return a
 *  negative errno on failure.  A handle is whatever `open` chose (the default: a file
 *  descriptor). */
typedef struct {
    /** mode: 'r' reads a file that is there, 'w' makes a new one and fails if it is there, 'd'
     *  writes to a device or pipe (else -ENODEV). */
    int (*open)(const char *path, char mode, void *user);
    /** At most `bytes` bytes to `to`; how many came, 0 at the end. */
    int64_t (*read)(int handle, void *to, size_t bytes, void *user);
    /** At most `bytes` bytes from `from`; how many went, which may be fewer. */
    int64_t (*write)(int handle, const void *from, size_t bytes, void *user);
    int (*sync)(int handle, void *user);  /* returns once all writes are on the disk; 0 */
    int (*close)(int handle, void *user); /* the handle is not used again; 0 */
    /** Gives a file another name, in the place of what had it; 0. */
    int (*rename)(const char *from, const char *to, void *user);
    int (*remove)(const char *path, void *user); /* of a file; 0 */
    /** Returns once the names in the file's folder are on the disk, after a rename; 0. */
    int (*sync_folder)(const char *path_of_file, void *user);
    int64_t (*size)(int handle, void *user); /* bytes; -1 where it is not known (a pipe) */
    void *user;                              /* handed to all of them */
} frg_files;

/** The type of the field of an option. */
typedef enum {
    FRG_OPTION_FLAG,   /* int, 0 or 1 */
    FRG_OPTION_INT,    /* int */
    FRG_OPTION_INT64,  /* int64_t */
    FRG_OPTION_SIZE,   /* size_t, bytes */
    FRG_OPTION_REAL,   /* double */
    FRG_OPTION_CHOICE, /* an enum: the place of a word in `choices`, from 0 on */
    FRG_OPTION_TEXT,   /* const char * */
    FRG_OPTION_DATA    /* a pointer, function, array or struct: nothing that one word can say */
} frg_option_type;

/** One field of a struct of options, for programs and languages that offer options by name.
 *  frg_NAME_options() gives those of frg_NAME_opts in the order of the struct (struct_size is not
 *  among them), up to a row whose name is NULL.  Alive as long as the library is loaded. */
typedef struct {
    const char *name;     /* of the field */
    frg_option_type type; /* of the field */
    int decides_bits;     /* 1: results depend on it; 0: time, memory or what is reported alone */
    size_t offset;        /* of the field in the struct, bytes */
    double value;         /* the default of a number, a flag or a choice; else 0 */
    const char *words;    /* the default of a text, which may be NULL */
    double low, high;     /* range of a number; both 0: none */
    int open;             /* 1: low itself is outside, 2: high, 3: both */
    const char *choices;  /* "a|b|c"; NULL of other types */
    const char *text;     /* one line; `name` in it is another option */
} frg_option;

/** Reserved for communication between ranks; NULL is a single process. */
struct frg_comm;

/** Options, here and in every header: begin with the _defaults function of the struct and sizeof of
 *  it, change what shall be different, hand it over; NULL is all defaults.  struct_size tells which
 *  fields the caller was built with, so that a struct may grow at its end; one that was not set is
 *  refused (FRG_BAD_ARG), and so are fields of a later version that are not 0 (FRG_UNSUPPORTED).
 *  Options are copied; what they point to must live as long as is said at each field. */
typedef struct {
    size_t struct_size;   /* set by frg_context_defaults */
    frg_device device;    /* default: that of the environment variable FOURGE_DEVICE, or cpu */
    int threads;          /* 0: the cores this process may use (its affinity, its control groups'
                             cpu.max, OMP_NUM_THREADS); 1 inside an OpenMP region. They are
                             OpenMP's, and those of GCC's runtime spin for milliseconds where they
                             wait, which beside other programs at work makes small problems ten
                             times slower and more.  The environment GOMP_SPINCOUNT=2000 lets them
                             sleep after 0.1 ms; the runtime reads it once, when it is loaded: a
                             program that is linked with it is started so (setenv in main comes too
                             late), one that loads fourge by dlopen sets it before.  The program
                             fourge and the Python package do so themselves. */
    uint64_t seed;        /* of all random numbers; default 0 */
    int64_t memory_limit; /* bytes this context may hold at a time; 0: no limit */
    double time_limit;    /* seconds a run may take, see frg_interrupt for which; 0: no limit */
    frg_progress_fn on_progress;    /* NULL: no call, and no stop by it */
    frg_log_fn on_log;              /* NULL: no lines */
    void *user;                     /* handed to both callbacks */
    const frg_allocator *allocator; /* NULL: the system's; copied */
    const frg_files *files;         /* NULL: the system's; copied */
    const struct frg_comm *comm;    /* reserved: FRG_UNSUPPORTED unless NULL */
    void *stream;                   /* the caller's queue that all work on the device goes through,
                                       see frg_context_set_stream; NULL: one of its own.
                                       FRG_UNSUPPORTED of the cpu */
    int count_from;                 /* 0 or 1: the number of the first row, column, point, member or
                                       entry in messages of gp; 1 for programs whose users see the
                                       rows of a file */
    const char *spool;              /* a folder on a disk: blocks that the memory limit has no room
                                       for lie in unnamed files there, and the process is kept
                                       within memory_limit (0: half of the machine's memory) by
                                       giving their pages back; W_LIMIT with what it held where that
                                       did not do (from 128 MB on it does, on a machine that is not
                                       crowded).  Results have the bits of a run in memory.
                                       W_SPOOL says so, E_SPOOL where the folder is full or in
                                       memory itself, E_CREATE where it cannot be used, which
                                       frg_spool_usable asks beforehand, E_DISK where it lost what
                                       was written; a page that cannot be read back is SIGBUS.
                                       NULL: none, and what is beyond memory_limit is E_MEMORY.
                                       Copied */
    int copies_files;               /* of an .npy file whose columns are used where they lie: 0:
                                       mapped, and SIGBUS ends a process that reads where the file
                                       was cut off meanwhile; 1: copied into the spool first (8
                                       bytes a number), after which the file may change.  Nothing
                                       without a spool */
} frg_context_opts;

/** Options, memory, files, the last failure and the warnings of what is made from it.  Made by
 *  frg_context_create, freed by frg_context_destroy; for one thread at a time, but for
 *  frg_interrupt. */
typedef struct frg_context frg_context;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_context_defaults(frg_context_opts *o, size_t struct_size);
/** opts NULL: all defaults.  FRG_NO_DEVICE where the device is not there (frg_device_get says why;
 *  cpu has the index 0 alone), FRG_UNSUPPORTED for what is reserved, FRG_NO_MEMORY, FRG_BAD_ARG.
 *  The environment variable FOURGE_ISA (plain, v2, v3, v4) forces a lower CPU level: that one, or
 *  the next below that the library was built with (FOURGE_CPU_LEVELS of CMake; plain, v3 and v4 by
 *  default). */
FRG_API FRG_MUST_USE frg_status frg_context_create(frg_context **out, const frg_context_opts *o);
/** The caller's queue that the device's commands go through from now on: a CUstream of cuda
 *  ((void *)1: the default stream), a cl_command_queue of opencl; NULL: one of the context's own.
 *  They run in order behind what the caller has put there before the call, so that an array which
 *  the caller's commands still write can be handed over; what was put into the former queue is
 *  waited for.  The queue has to live until another one is set or the context is destroyed.
 *  OpenCL: it is one of the context's device that keeps the order of its commands.  Arrays on the
 *  device (frg_array) are taken in place where they are of the context's cl_context, which is that
 *  of the queue in its options, or else one of its own, and stays.  Errors: E_UNSUPPORTED on the
 *  cpu, E_DEVICE_HANDLE for what is no such queue; the former one goes on then. */
FRG_API FRG_MUST_USE frg_status frg_context_set_stream(frg_context *ctx, void *stream);
/** to[i] <- element i of a vector of f32 or f64 in host memory, or without gaps on the context's
 *  device, behind what was put into its queue; waits for it.  Errors: E_SHAPE for other axes than
 *  one, E_DTYPE, E_DEVICE_HANDLE, E_MEMORY, those of the device. */
FRG_API FRG_MUST_USE frg_status frg_array_get(frg_context *ctx, frg_array from, double *to);
/** The other way, to the nearest number.  Errors: E_SHAPE and the others of frg_array_get. */
FRG_API FRG_MUST_USE frg_status frg_array_put(frg_context *ctx, frg_array to, const double *from);
/** NULL is fine.  Every object made from the context must have been destroyed before. */
FRG_API void frg_context_destroy(frg_context *ctx);

/** The last failure of a call on ctx: what, where, why.  Never NULL; "" when nothing has failed.  A
 *  call that succeeds does not take it away: whether a call failed is what its status says. */
FRG_API const char *frg_message(const frg_context *ctx);
/** The place of the last failure (file:line, column, argument); "" where there is none. */
FRG_API const char *frg_error_where(const frg_context *ctx);
/** "FRG-FE-012", the row of the catalogue that the last failure belongs to; "" when nothing
 *  failed. */
FRG_API const char *frg_error_code(const frg_context *ctx);
/** What to do about it; "" where there is nothing to say. */
FRG_API const char *frg_error_hint(const frg_context *ctx);

/** One row of the catalogue of errors and warnings. */
typedef struct {
    const char *code;     /* "FRG-FE-012" */
    const char *name;     /* "E_NO_OBS" */
    frg_status status;    /* FRG_OK for warnings */
    const char *sentence; /* what it means */
    const char *hint;     /* what to do */
} frg_error_entry;
/** Row i of the catalogue; NULL past its end. */
FRG_API const frg_error_entry *frg_error_catalogue(int i);

/** Warnings of the calls on ctx since the last frg_warnings_clear: 0 <= i < frg_warning_count. */
FRG_API int frg_warning_count(const frg_context *ctx);
/** "FRG-FE-101", the row of the catalogue that warning i belongs to; "" for an i that is not
 *  there. */
FRG_API const char *frg_warning_code(const frg_context *ctx, int i);
/** The text of warning i, alive until frg_warnings_clear; "" for an i that is not there. */
FRG_API const char *frg_warning_message(const frg_context *ctx, int i);
/** Forgets all warnings and frees their texts. */
FRG_API void frg_warnings_clear(frg_context *ctx);

/** Asks the running solver to stop at its next iteration.  Safe from a signal handler and from any
 *  thread. It and the time limit are looked at by: frg_demean_run, frg_lsmr_solve, frg_fe_fit, the
 *  evaluations, fits and batches of gp, frg_gw_create, _run, sinkhorn, barycenters, embeddings,
 *  shortest paths, frg_qr_run between matrices, and by what reads a pipe or a terminal.  Not by:
 *  frg_soap_step (a step is made whole or not at all), frg_graph_knn, energies and gradients of
 *  plans, and a supernodal factor while it is built. */
FRG_API void frg_interrupt(frg_context *ctx);
/** Withdraws an earlier frg_interrupt. */
FRG_API void frg_interrupt_clear(frg_context *ctx);

/** The number of threads in use: that of the options, or what 0 there became. */
FRG_API int frg_threads(const frg_context *ctx);
/** The seed of the options. */
FRG_API uint64_t frg_seed(const frg_context *ctx);
/** "plain", "v2", "v3", "v4", "v4+amx": the CPU level in use. */
FRG_API const char *frg_isa(const frg_context *ctx);
/** Bytes held now by the objects of the context, in memory and in its spool; what it keeps for
 *  reuse is not among them. */
FRG_API size_t frg_bytes_held(const frg_context *ctx);
/** The most bytes held in memory at a time since the context was made or frg_peak_reset. */
FRG_API size_t frg_peak_bytes(const frg_context *ctx);
/** The most bytes in files of the spool (frg_context_opts.spool) at a time; 0 without one, and for
 *  NULL. */
FRG_API size_t frg_spool_bytes(const frg_context *ctx);
/** Bytes that the spool's folder has room for now; 0 without a spool, and where it cannot be
 *  asked. */
FRG_API size_t frg_spool_room(const frg_context *ctx);
/** Whether blocks could go to the spool's folder, asked before the first has to: FRG_OK where a
 *  file can be made there.  Errors: E_ARG for a context without a spool; E_CREATE for a folder that
 *  is not there, is none or cannot be written to; E_SPOOL for one in memory (tmpfs). */
FRG_API FRG_MUST_USE frg_status frg_spool_usable(frg_context *ctx);
/** frg_peak_bytes counts anew, from frg_bytes_held on. */
FRG_API void frg_peak_reset(frg_context *ctx);

/* ---- for programs on top of the library ------------------------------------------------------ */

/** *out <- `bytes` bytes as the objects of the context have theirs, aligned to 64: of its
 *  allocator, counted, under its memory limit or in its spool; 0 bytes are a block, too.  `what`
 *  names them in messages.  Errors: E_MEMORY, E_SPOOL; *out is NULL then. */
FRG_API FRG_MUST_USE frg_status frg_block_create(void **out, frg_context *ctx, size_t bytes,
                                                 const char *what);
/** Gives a block of frg_block_create back, to the same context; NULL is fine. */
FRG_API void frg_block_destroy(void *block, frg_context *ctx);

/** Writes `count` bytes into a file that appears whole or not at all; "-" is standard output.
 *  Errors: E_CREATE, E_WRITE, E_MEMORY, E_ARG. */
FRG_API FRG_MUST_USE frg_status frg_write_file(frg_context *ctx, const char *path,
                                               const void *bytes, int64_t count);
/** The nearest of `count` names by edit distance, for "did you mean"; NULL when none is near. */
FRG_API const char *frg_nearest_name(const char *name, const char *const *names, int64_t count);

/* ---- the build ------------------------------------------------------------------------------- */

/** The version of the library that is loaded: "0.1.0". */
FRG_API const char *frg_version(void);
/** The commit it was built from, "unknown" outside a checkout. */
FRG_API const char *frg_commit(void);
/** The compiler that built it: "GCC 12.2.0". */
FRG_API const char *frg_compiler(void);
/** The BLAS and the kernels it chose for this machine. */
FRG_API const char *frg_blas_name(void);
/** Parses "cpu", "cuda", "cuda:1", "opencl:0".  FRG_BAD_ARG for anything else. */
FRG_API FRG_MUST_USE frg_status frg_device_parse(const char *text, frg_device *out);

/** What is known of a device. */
typedef struct {
    int there;        /* 1: a context can be made for it */
    char name[128];   /* the maker's */
    char driver[128]; /* its version */
    int64_t memory;   /* bytes; 0: not known */
    int f64;          /* 1: it computes in double precision */
    char reason[256]; /* why it is not there; "" where it is */
} frg_device_info;
/** Looks at a device, with its driver.  FRG_NO_DEVICE, with out->reason, where it is not there;
 *  FRG_BAD_ARG. */
FRG_API FRG_MUST_USE frg_status frg_device_get(frg_device device, frg_device_info *out);
/** How many devices of a kind there are; 0 without plug-in or driver.  The cpu is one. */
FRG_API int frg_device_count(frg_device_kind kind);

/** Cores of time that Linux's control groups (containers) leave to this process, by the tightest
 *  cpu.max (or cpu.cfs_quota_us) from its own group up; 0: no limit. */
FRG_API double frg_group_cores(void);
/** Bytes of memory that they leave to it, by memory.max (or memory.limit_in_bytes); 0: no limit. */
FRG_API int64_t frg_group_memory(void);

/** The default allocator, to wrap and pass on; a constant of the library. */
FRG_API const frg_allocator *frg_system_allocator(void);
/** The default file table, to wrap and pass on; a constant of the library. */
FRG_API const frg_files *frg_system_files(void);

#ifdef __cplusplus
}
#endif
#endif
