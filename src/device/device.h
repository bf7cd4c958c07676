/* device.h - a machine that computes beside the host: memory, copies, events, launches of kernels.
 *
 * A room puts its step on a device by these calls alone; it never asks which machine that is.
 *
 *     const frgi_program *p;
 *     TRY(frgi_device_load(dev, &frgi_kernels_basic, FRGI_F64, &p));
 *     TRY(frgi_device_alloc(dev, n * sizeof(double), "x", &x));
 *     TRY(frgi_device_put(dev, x, host_x, n * sizeof(double)));
 *     TRY(LAUNCH(dev, p, "axpy", groups, 1, 128, BUFFER(y), BUFFER(x), REAL(a), INT64(n)));
 *     TRY(frgi_device_get(dev, host_y, y, n * sizeof(double)));
 *     TRY(frgi_device_wait(dev));
 *
 * All commands of a device go through one queue, in the order of the calls; none of them waits but
 * frgi_device_wait and frgi_event_wait.  Host memory given to put and get belongs to the queue
 * until one of these returns.  A device's failure is in the context's message.
 *
 * The machines: `host` runs the plain C life of the kernels here; `opencl` and `cuda` are plug-ins,
 * each a library of its own that exports one table, frgi_device_ops.
 */
#ifndef FRGI_DEVICE_H
#define FRGI_DEVICE_H

#include "core/core.h"
#include "core/host_alone.h"
#include "core/host_step.h"

/* ---- kernels --------------------------------------------------------------------------------- */

/** What `real` (the elements) and `wide` (the sums) of a kernel text are. */
typedef enum {
    FRGI_F32,   /* float, float: no double anywhere in the program */
    FRGI_F64,   /* double, double */
    FRGI_MIXED, /* float, double */
    FRGI_TYPES
} frgi_kernel_type;

/** The work-item of the plain C life, where a group has one. */
typedef struct {
    int64_t group[2];
} frgi_item;

/** A kernel of a text, found in it by CMake. */
typedef struct {
    const char *name;
    const char *args; /* a letter each: p pointer, i i32, u u32, l i64, r real, w wide */
    /** The plain C life by type; args[i] points to the value of the i-th. */
    void (*host[FRGI_TYPES])(const frgi_item *item, void *const *args);
} frgi_kernel;

/** The texts of a folder of kernels/ as one. A program is `prelude` of its type, `dialect`,
 *  `names` of its type and `text`; a kernel `axpy` of the folder basic is basic_axpy_f64 there. */
typedef struct {
    const char *room;
    const char *hash; /* of dialect and text */
    const char *prelude[FRGI_TYPES], *dialect, *names[FRGI_TYPES], *text;
    const frgi_kernel *kernels;
    int count;
} frgi_kernels;

extern const frgi_kernels frgi_kernels_basic;
/** Of every folder, up to a NULL. */
extern const frgi_kernels *const frgi_kernels_all[];

/* ---- what a machine is ----------------------------------------------------------------------- */

enum { FRGI_NAME_BYTES = 128, FRGI_GROUP_MOST = 256, FRGI_ARGS_MOST = 32 };

typedef struct {
    char name[FRGI_NAME_BYTES], driver[FRGI_NAME_BYTES];
    size_t memory;       /* bytes of the device */
    size_t largest;      /* of one block */
    size_t local_memory; /* of a group */
    size_t align;        /* of a part of a block, a power of two */
    int group_most;      /* work-items of a group */
    int f64;             /* 1: double */
} frgi_device_properties;

/** A block of device memory or a part of one; by value, without ownership. */
typedef struct {
    void *handle;
    size_t offset, bytes;
} frgi_buffer;

/** The argument of a launch; `kind` says which member holds it: p, i, u, l, f, d. */
typedef struct {
    char kind;
    union {
        frgi_buffer buffer;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        float f32;
        double f64;
    } as;
} frgi_arg;

/** Where a plug-in writes what went wrong. */
typedef struct {
    char text[512];
} frgi_device_error;

/** What a plug-in is handed: the environment is read by the context alone, memory is its
 *  allocator's. */
typedef struct {
    frg_allocator memory;
    int threads;  /* of the host */
    int hide_f64; /* FOURGE_OPENCL_F64=0 */
} frgi_device_setup;

typedef struct frgi_machine frgi_machine;

enum { FRGI_DEVICE_ABI = 3 };
/** The name under which a plug-in exports its table. */
#define FRGI_DEVICE_SYMBOL "frg_device_table"

/** The calls of a machine, by what they are about.  Functions return FRG_OK or, with a text in e,
 *  FRG_NO_MEMORY, FRG_NO_DEVICE (it is not there), FRG_UNSUPPORTED (it cannot), FRG_BAD_ARG (a
 *  handle of the caller's is none of its own), FRG_BROKE_DOWN (it failed, and will go on failing).
 *  Outputs are set on success alone.  Those that return nothing take NULL. */
typedef struct {
    frg_status (*count)(const frgi_device_setup *s, int *out, frgi_device_error *e);
    frg_status (*properties)(const frgi_device_setup *s, int index, frgi_device_properties *out,
                             frgi_device_error *e);
    /** stream: the caller's queue, NULL: one of its own. */
    frg_status (*open)(const frgi_device_setup *s, int index, void *stream, frgi_machine **out,
                       frgi_device_error *e);
    /** The queue from now on, once what is in the former one is done; NULL: one of its own. */
    frg_status (*follow)(frgi_machine *m, void *stream, frgi_device_error *e);
    void (*close)(frgi_machine *m);
} frgi_machine_ops;

typedef struct {
    frg_status (*allocate)(frgi_machine *m, size_t bytes, void **out, frgi_device_error *e);
    void (*release)(frgi_machine *m, void *handle);
    /** *out <- where `asked` lies: the caller's own handle, a place in it, a length; elements of
     *  `unit` bytes. */
    frg_status (*adopt)(frgi_machine *m, frgi_buffer asked, size_t unit, frgi_buffer *out,
                        frgi_device_error *e);
    /** Gives back what adopting took, and leaves the caller's memory alone. */
    void (*disown)(frgi_machine *m, void *handle);
    /** Host memory that a copy to it need not wait for. */
    frg_status (*pin)(frgi_machine *m, size_t bytes, void **out, frgi_device_error *e);
    void (*unpin)(frgi_machine *m, void *p);
} frgi_memory_ops;

typedef struct {
    frg_status (*put)(frgi_machine *m, frgi_buffer to, const void *from, size_t bytes,
                      frgi_device_error *e);
    frg_status (*get)(frgi_machine *m, void *to, frgi_buffer from, size_t bytes,
                      frgi_device_error *e);
    frg_status (*copy)(frgi_machine *m, frgi_buffer to, frgi_buffer from, size_t bytes,
                       frgi_device_error *e);
    frg_status (*fill)(frgi_machine *m, frgi_buffer to, int byte, size_t bytes,
                       frgi_device_error *e);
} frgi_transfer_ops;

typedef struct {
    frg_status (*load)(frgi_machine *m, const frgi_kernels *k, frgi_kernel_type type, void **out,
                       frgi_device_error *e);
    void (*unload)(frgi_machine *m, void *program);
    /** The kernel of that index of frgi_kernels; owned by the program. */
    frg_status (*find)(frgi_machine *m, void *program, int index, void **out, frgi_device_error *e);
    frg_status (*launch)(frgi_machine *m, void *kernel, const int64_t groups[2], int size,
                         const frgi_arg *args, int count, frgi_device_error *e);
} frgi_program_ops;

typedef struct {
    /** A mark behind all commands so far, which start to run at the latest now. */
    frg_status (*record)(frgi_machine *m, void **out, frgi_device_error *e);
    frg_status (*reached)(frgi_machine *m, void *event, int *out, frgi_device_error *e);
    /** event NULL: all commands. */
    frg_status (*wait)(frgi_machine *m, void *event, frgi_device_error *e);
    void (*forget)(frgi_machine *m, void *event);
} frgi_event_ops;

/** The table that a plug-in exports. */
typedef struct {
    uint32_t abi, bytes; /* FRGI_DEVICE_ABI, sizeof(frgi_device_ops) */
    const char *name;    /* "cuda" */
    const char *library; /* frg_version() of what it was built with */
    frgi_machine_ops machine;
    frgi_memory_ops memory;
    frgi_transfer_ops transfer;
    frgi_program_ops program;
    frgi_event_ops event;
} frgi_device_ops;

#pragma GCC visibility push(hidden)

extern const frgi_device_ops frgi_host_device;

/* ---- what rooms call ------------------------------------------------------------------------- */

typedef struct frgi_device frgi_device;
/** A loaded program; the device's, until it is closed. */
typedef struct frgi_program frgi_program;
typedef struct {
    void *handle;
} frgi_event;

/** What went over since the device was opened or the counts were reset. */
typedef struct {
    int64_t launches, waits, copies;
    int64_t bytes_in, bytes_out; /* host to device, device to host */
} frgi_device_counts;

/** frgi_array_check of an array that may lie on a device, where dev is not NULL: which one that is,
 *  frgi_device_adopt checks. */
FRG_MUST_USE frg_status frgi_device_array_check(const frgi_device *dev, frg_context *ctx,
                                                const frg_array *a, const char *what, int ndim,
                                                unsigned types);
/** The device that the context was made for; NULL: the cpu. */
frgi_device *frgi_device_of(const frg_context *ctx);
/** One more of any kind, beside the context's; FRG_CPU is the machine `host`. */
FRG_MUST_USE frg_status frgi_device_open(frgi_device **out, frg_context *ctx, frg_device which);
void frgi_device_close(frgi_device **dev);
const frgi_device_properties *frgi_device_is(const frgi_device *dev);
/** What host_step.h has to know of a plan there, or of one on the host (NULL). */
frgi_beside frgi_device_beside(const frgi_device *dev);
/** "opencl:0" */
const char *frgi_device_name(const frgi_device *dev);
frgi_device_counts *frgi_device_counted(frgi_device *dev);
/** What it has counted so far; zeros where dev is NULL. */
frgi_device_counts frgi_device_counts_now(const frgi_device *dev);
/** Adds to *total what it has counted since `before`. */
void frgi_device_counts_since(const frgi_device *dev, frgi_device_counts before,
                              frgi_device_counts *total);

/** E_PRECISION where the type needs double and the device has none.  The second load of the same
 *  texts gives the first's program. */
FRG_MUST_USE frg_status frgi_device_load(frgi_device *dev, const frgi_kernels *k,
                                         frgi_kernel_type type, const frgi_program **out);

/** E_MEMORY where the device or the memory limit has not so much. bytes 0 is a block of none. */
FRG_MUST_USE frg_status frgi_device_alloc(frgi_device *dev, size_t bytes, const char *what,
                                          frgi_buffer *out);
/** Of a whole block; an empty one is fine; *b becomes empty. */
void frgi_device_free(frgi_device *dev, frgi_buffer *b);
/** *out <- the memory of `dev` that an array of the caller's lies in, from its first element to its
 *  last, without ownership and without a copy; strides stay with the caller.  Empty for an array
 *  without elements.  `what` stands in the message.  E_DEVICE_HANDLE: it lies on another device, is
 *  longer than the block behind it, begins where the device cannot begin (OpenCL: a multiple of
 *  CL_DEVICE_MEM_BASE_ADDR_ALIGN), or has an axis that runs backwards. */
FRG_MUST_USE frg_status frgi_device_adopt(frgi_device *dev, const frg_array *view, const char *what,
                                          frgi_buffer *out);
/** Of an adopted buffer, before the array's owner frees it; an empty one is fine; *b becomes
 *  empty. */
void frgi_device_disown(frgi_device *dev, frgi_buffer *b);
/** to (n) <- a vector of the caller's, of f32 or f64, in host memory or on the context's device,
 *  which is waited for; `what` stands in the message.  Errors: E_SHAPE, E_DTYPE; E_DEVICE_HANDLE,
 *  also for one there whose elements do not follow each other. */
FRG_MUST_USE frg_status frgi_vector_get(frg_context *ctx, const frg_array *from, const char *what,
                                        int64_t n, double *to);
/** The other way, to the nearest number. */
FRG_MUST_USE frg_status frgi_vector_put(frg_context *ctx, const frg_array *to, const char *what,
                                        int64_t n, const double *from);
/** `bytes` of b from `offset` on, for copies; as an argument of a kernel where `offset` is a
 *  multiple of frgi_device_is(dev)->align. */
frgi_buffer frgi_device_slice(frgi_buffer b, size_t offset, size_t bytes);

/** Host memory for frgi_device_get: with other memory a copy of CUDA waits until it is done. */
FRG_MUST_USE frg_status frgi_device_pin(frgi_device *dev, size_t bytes, void **out);
/** NULL is fine; *p becomes NULL. */
void frgi_device_unpin(frgi_device *dev, void **p);

/** An arena on the device, laid out twice as frgi_arena is: measured with block.handle NULL,
 *  opened, carved. */
typedef struct {
    frgi_buffer block;
    size_t used, align;
} frgi_device_arena;
frgi_buffer frgi_device_take(frgi_device_arena *a, size_t bytes);
FRG_MUST_USE frg_status frgi_device_arena_open(frgi_device_arena *a, frgi_device *dev,
                                               const char *what);
void frgi_device_arena_close(frgi_device_arena *a, frgi_device *dev);

FRG_MUST_USE frg_status frgi_device_put(frgi_device *dev, frgi_buffer to, const void *from,
                                        size_t bytes);
FRG_MUST_USE frg_status frgi_device_get(frgi_device *dev, void *to, frgi_buffer from, size_t bytes);
FRG_MUST_USE frg_status frgi_device_copy(frgi_device *dev, frgi_buffer to, frgi_buffer from,
                                         size_t bytes);
FRG_MUST_USE frg_status frgi_device_fill(frgi_device *dev, frgi_buffer to, int byte, size_t bytes);

/** Until all commands so far are done. */
FRG_MUST_USE frg_status frgi_device_wait(frgi_device *dev);
/** An event behind all commands so far; to be forgotten. */
FRG_MUST_USE frg_status frgi_event_record(frgi_device *dev, frgi_event *out);
FRG_MUST_USE frg_status frgi_event_reached(frgi_device *dev, frgi_event event, bool *out);
FRG_MUST_USE frg_status frgi_event_wait(frgi_device *dev, frgi_event event);
void frgi_event_forget(frgi_device *dev, frgi_event *event);

/** groups[0] x groups[1] groups of `size` work-items, a power of two up to FRGI_GROUP_MOST; what a
 *  group does depends on its number alone, never on `size` (the host has one work-item).  Count and
 *  kinds of the arguments are held against the kernel's. */
FRG_MUST_USE frg_status frgi_device_launch(frgi_device *dev, const frgi_program *p,
                                           const char *kernel, const int64_t groups[2], int size,
                                           const frgi_arg *args, int count);
#define BUFFER(b) ((frgi_arg){.kind = 'p', .as.buffer = (b)})
#define INT32(x)  ((frgi_arg){.kind = 'i', .as.i32 = (x)})
#define UINT32(x) ((frgi_arg){.kind = 'u', .as.u32 = (x)})
#define INT64(x)  ((frgi_arg){.kind = 'l', .as.i64 = (x)})
/** Of the kernel's type. */
#define REAL(x) ((frgi_arg){.kind = 'r', .as.f64 = (x)})
#define WIDE(x) ((frgi_arg){.kind = 'w', .as.f64 = (x)})
#define LAUNCH(dev, p, kernel, groups0, groups1, size, ...)                                        \
    frgi_device_launch((dev), (p), (kernel), (const int64_t[2]){(groups0), (groups1)}, (size),     \
                       (const frgi_arg[]){__VA_ARGS__},                                            \
                       (int)(sizeof((const frgi_arg[]){__VA_ARGS__}) / sizeof(frgi_arg)))

#pragma GCC visibility pop
#endif
