/* core.h - what every folder of src may use: errors, memory, threads, random numbers, time.
 *
 * The four macros of the error discipline, and no others:
 *
 *     FAIL(ctx, E_SHAPE, "codes has %lld rows, columns has %lld", a, b);   records and returns
 *     REQUIRE(ctx, n >= 0, "n must be >= 0, got %lld", n);                 FAIL(ctx, E_ARG, ...)
 *                                                                          unless
 *     TRY(call(...));                                                      returns a negative
 *                                                                          status
 *     TRY_TO(failed, call(...));                                           jumps with `status` set
 *
 * `assert` is for our bugs, REQUIRE for the caller's mistakes, statuses for the world's failures.
 * E_* and W_* are rows of catalogue.def: code, status, sentence, hint.
 */
#ifndef FRGI_CORE_H
#define FRGI_CORE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fourge/fourge.h"

#pragma GCC visibility push(hidden)

/* ---- errors ---------------------------------------------------------------------------------- */

typedef enum {
    E_NONE,
#define ERROR_ROW(name, code, status, sentence, hint) name,
#include "catalogue.def"
#undef ERROR_ROW
    E_COUNT
} frgi_error;

#define FAIL(ctx, id, ...) return frgi_fail((ctx), (id), __FILE__, __LINE__, __VA_ARGS__)
#define REQUIRE(ctx, cond, ...)                                                                    \
    do {                                                                                           \
        if (!(cond))                                                                               \
            FAIL((ctx), E_ARG, __VA_ARGS__);                                                       \
    } while (0)
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        frg_status try_ = (expr);                                                                  \
        if (try_ < 0)                                                                              \
            return try_;                                                                           \
    } while (0)
#define TRY_TO(label, expr)                                                                        \
    do {                                                                                           \
        status = (expr);                                                                           \
        if (status < 0)                                                                            \
            goto label;                                                                            \
    } while (0)

/** Records the failure in ctx (which may be NULL) and returns the status of the catalogue's row. */
FRG_MUST_USE frg_status frgi_fail(frg_context *ctx, frgi_error id, const char *file, int line,
                                  const char *format, ...) FRG_PRINTF(5, 6);
/** Sets the place ("data.csv:17", "column 3", "--vcov") that the next frgi_fail on ctx reports. */
void frgi_at(frg_context *ctx, const char *format, ...) FRG_PRINTF(2, 3);
/** The number that messages give row (column, point, member) i, i from 0: see
 *  frg_context_opts.count_from. */
long long frgi_nth(const frg_context *ctx, int64_t i);
/** Adds a warning (a W_* row); the list grows with the context's allocator and drops what does not
 *  fit. */
void frgi_warn(frg_context *ctx, frgi_error id, const char *format, ...) FRG_PRINTF(3, 4);
/** Begins the messages of all further warnings with "subject: "; NULL: no longer.  The text stays
 *  the caller's. */
void frgi_warn_of(frg_context *ctx, const char *subject);
/** The last failure's message <- "subject: " and itself. */
void frgi_fail_of(frg_context *ctx, const char *subject);
/** Whether the run has a warning of that row already. */
bool frgi_has_warned(const frg_context *ctx, frgi_error id);
/** Whether it has one of that text, of the same subject. */
bool frgi_has_said(const frg_context *ctx, const char *text);
/** W_SPREADSHEET, once a run, where a spreadsheet that opens a csv may take `text` for a
 *  formula. */
void frgi_warn_of_formula(frg_context *ctx, const char *text);
void frgi_log(frg_context *ctx, int level, const char *format, ...) FRG_PRINTF(3, 4);

/* ---- memory ---------------------------------------------------------------------------------- */

/** a * b, a + b for sizes in bytes; SIZE_MAX on overflow, which every allocation refuses. */
size_t frgi_mul(size_t a, size_t b);
size_t frgi_add(size_t a, size_t b);

/** One block of the context's allocator: 64-byte aligned, counted, under the memory limit. `what`
 *  names it in the message.  *out is NULL on failure.  bytes 0 gives a valid, empty block. */
FRG_MUST_USE frg_status frgi_alloc(frg_context *ctx, void **out, size_t bytes, const char *what);
FRG_MUST_USE frg_status frgi_calloc(frg_context *ctx, void **out, size_t bytes, const char *what);
/** Grows or shrinks *p (NULL is an empty block) and keeps its contents; *p is untouched on
 *  failure. */
FRG_MUST_USE frg_status frgi_resize(frg_context *ctx, void **p, size_t bytes, const char *what);
/** NULL is fine; *p becomes NULL. */
void frgi_free(frg_context *ctx, void **p);
/** The same for typed pointers:  double *x;  TRY(NEW(ctx, &x, n, "residuals"));  DROP(ctx, &x); */
#define NEW(ctx, p, count, what)                                                                   \
    frgi_alloc((ctx), (void **)(p), frgi_mul((size_t)(count), sizeof **(p)), (what))
#define NEW0(ctx, p, count, what)                                                                  \
    frgi_calloc((ctx), (void **)(p), frgi_mul((size_t)(count), sizeof **(p)), (what))
#define GROW(ctx, p, count, what)                                                                  \
    frgi_resize((ctx), (void **)(p), frgi_mul((size_t)(count), sizeof **(p)), (what))
#define DROP(ctx, p) frgi_free((ctx), (void **)(p))

/** Bytes the context may hold in all: its limit, or what the machine and its control groups give
 *  where it has none, or a spool for what is beyond the limit. */
size_t frgi_memory_allowed(const frg_context *ctx);
/** Bytes that arrays of rows may take in all: the same, and what the spool's folder has room
 *  for. */
size_t frgi_data_allowed(const frg_context *ctx);
/** The memory limit, or what the machine gives where there is none: what large passes are cut by;
 *  no result may depend on it. */
size_t frgi_memory_limit(const frg_context *ctx);
/** Does the context put large blocks on the disk? */
bool frgi_spools(const frg_context *ctx);
/** Bytes that lie there. */
size_t frgi_spool_held(const frg_context *ctx);
/** E_SPOOL where `bytes` of `what`, less what memory holds, are more than the spool's folder has
 *  room for; without a spool FRG_OK. */
FRG_MUST_USE frg_status frgi_spool_expect(frg_context *ctx, size_t bytes, const char *what);
/** Before a result is handed out: E_DISK where a block's page is lost, E_CHANGED where a mapped
 *  file was written to.  W_LIMIT, once a run, where the process held more than its limit. */
FRG_MUST_USE frg_status frgi_spool_check(frg_context *ctx);

/** An arena: one block, carved.  Layout code runs twice over one text, first with a NULL base to
 *  measure, then to carve:
 *
 *      static void layout(frgi_arena *a, plan *p) { p->u = TAKE(a, double, n); ... }
 *
 *      frgi_arena a = {0};  layout(&a, p);  TRY(frgi_arena_open(&a, ctx, "plan"));  layout(&a, p);
 */
typedef struct {
    char *base;   /* NULL while measuring */
    size_t used;  /* bytes so far */
    size_t bytes; /* of the block, 0 while measuring */
} frgi_arena;
void *frgi_take(frgi_arena *a, size_t bytes);
#define TAKE(a, type, count) ((type *)frgi_take((a), frgi_mul((size_t)(count), sizeof(type))))
FRG_MUST_USE frg_status frgi_arena_open(frgi_arena *a, frg_context *ctx, const char *what);
void frgi_arena_close(frgi_arena *a, frg_context *ctx);

/* ---- strings --------------------------------------------------------------------------------- */

/** A growing byte string, always NUL-terminated once something was appended. */
typedef struct {
    char *text;
    size_t length, capacity;
} frgi_text;
FRG_MUST_USE frg_status frgi_text_append(frg_context *ctx, frgi_text *t, const char *s,
                                         size_t length);
FRG_MUST_USE frg_status frgi_text_printf(frg_context *ctx, frgi_text *t, const char *format, ...)
    FRG_PRINTF(3, 4);
void frgi_text_free(frg_context *ctx, frgi_text *t);
/** Copies a string with the context's allocator (free with frgi_free). */
FRG_MUST_USE frg_status frgi_strdup(frg_context *ctx, char **out, const char *s, size_t length);
/** The nearest of `count` names to `name` by edit distance, or NULL when none is near. */
const char *frgi_nearest(const char *name, const char *const *names, int64_t count);
enum { FRGI_ADVICE = 320 };
/** What to say behind the name of a column that is none of n: the nearest name, or those there are,
 *  as far as there is room for them.  name(of, i) is that of the i-th. */
const char *frgi_column_advice(char advice[FRGI_ADVICE], const char *near, int64_t n,
                               const char *(*name)(const void *of, int64_t i), const void *of);

/* ---- sorting --------------------------------------------------------------------------------- */

/** < 0, 0, > 0 as a stands before, beside, behind b. */
typedef int (*frgi_compare)(const void *a, const void *b, const void *user);
/** Sorts n elements of at most 64 bytes in place, without memory; not stable. */
void frgi_sort(void *first, int64_t n, size_t size, frgi_compare compare, const void *user);

/* ---- files ----------------------------------------------------------------------------------- */

/** A writer that appears under its name complete or not at all: temporary file beside it, sync,
 *  rename, sync of the folder.  path "-" is standard output. */
typedef struct frgi_writer frgi_writer;
FRG_MUST_USE frg_status frgi_writer_open(frgi_writer **out, frg_context *ctx, const char *path);
FRG_MUST_USE frg_status frgi_writer_put(frgi_writer *w, const void *bytes, size_t count);
/** Writes and closes all that the next call publishes: what can fail of a full disk has failed
 *  then.  On failure the writer is given up. */
FRG_MUST_USE frg_status frgi_writer_sync(frgi_writer **w);
/** Publishes the file and closes; on failure nothing is left behind and the old file stands. */
FRG_MUST_USE frg_status frgi_writer_commit(frgi_writer **w);
/** Gives up: closes and removes the temporary file.  NULL is fine. */
void frgi_writer_abandon(frgi_writer **w);

/** Bytes that the folder of a file's path has room for; false where the system does not say. */
bool frgi_free_space_beside(const char *path, size_t *bytes);

/** FRG_INTERRUPTED where it has, FRG_TIME_LIMIT where the run's time is over, else FRG_OK. */
frg_status frgi_stopped(const frg_context *ctx);

/** Reading with retries of EINTR.  path "-" is standard input. */
typedef struct {
    int handle;
    const char *path; /* borrowed */
    bool pipe;        /* opened without waiting for a writer */
    bool stops;       /* frgi_stopped ends the wait for bytes, as the end of the file does */
} frgi_reader;
FRG_MUST_USE frg_status frgi_reader_open(frgi_reader *r, frg_context *ctx, const char *path);
/** Fills up to `bytes`; *got < bytes only at the end of the file, or where it stopped. */
FRG_MUST_USE frg_status frgi_reader_get(frgi_reader *r, frg_context *ctx, void *to, size_t bytes,
                                        size_t *got);
int64_t frgi_reader_size(const frgi_reader *r, const frg_context *ctx); /* -1: not known */
void frgi_reader_close(frgi_reader *r, frg_context *ctx);
/** The file of `bytes` as memory that is read alone, where it is one and a context with a spool
 *  would put that much on the disk; *out NULL where it has to be read.  The reader may be closed,
 *  the memory is given back by frgi_unmap (NULL is fine).  frgi_spool_check fails where the file
 *  was written to meanwhile. */
FRG_MUST_USE frg_status frgi_reader_map(const frgi_reader *r, frg_context *ctx, size_t bytes,
                                        const char **out);
void frgi_unmap(frg_context *ctx, const char **p);
/** The whole file in one block of the context's allocator.  FRG_INTERRUPTED, FRG_TIME_LIMIT:
 *  stopped while it waited for a pipe or a terminal; *bytes is NULL, as after every failure. */
/** Of an input without a size that has not ended after `bytes`: E_MEMORY where what is held and
 *  `more` on top of it are more than three quarters of the memory there is, so that a stream
 *  without end never takes all of it. */
FRG_MUST_USE frg_status frgi_endless(frg_context *ctx, const char *name, int64_t bytes,
                                     size_t more);
FRG_MUST_USE frg_status frgi_read_file(frg_context *ctx, const char *path, char **bytes,
                                       size_t *count);

/* ---- running --------------------------------------------------------------------------------- */

/** CPU level of the kernels: index into every table of kernels.  PLAIN is C without level flags. */
typedef enum { ISA_PLAIN, ISA_V2, ISA_V3, ISA_V4, ISA_COUNT } frgi_isa;
frgi_isa frgi_context_isa(const frg_context *ctx);
/** Does the CPU multiply tiles of bfloat16 (AMX), and may we?  Never where FOURGE_ISA names a
 *  level. */
bool frgi_context_tiles(const frg_context *ctx);
/** What stands in an initialiser for a level that the build has: FOURGE_LEVELS is a sum of 1
 *  (plain), 2, 4 and 8 (v4). */
#if FOURGE_LEVELS & 2
#define WITH_V2(item) item,
#else
#define WITH_V2(item)
#endif
#if FOURGE_LEVELS & 4
#define WITH_V3(item) item,
#else
#define WITH_V3(item)
#endif
#if FOURGE_LEVELS & 8
#define WITH_V4(item) item,
#else
#define WITH_V4(item)
#endif
/** Declares what a *_cpu.c exports once per level: DECLARE_LEVELS(frgi_x_ops, frgi_x_ops) for
 *  objects, DECLARE_LEVELS(frgi_x_ops[2], frgi_x_table) for arrays. */
#define DECLARE_LEVELS(type, name)                                                                 \
    extern const __typeof__(type) name##_plain, name##_v2, name##_v3, name##_v4
/** Initialises an array of ISA_COUNT from what a *_cpu.c exports once per level:
 *  EACH_LEVEL(&frgi_x_ops) for objects, EACH_LEVEL(frgi_x_table) for arrays.  Levels that the build
 *  has not are NULL, and no context takes them. */
#define EACH_LEVEL(name)                                                                           \
    {                                                                                              \
        [ISA_PLAIN] = name##_plain,                                                                \
        WITH_V2([ISA_V2] = name##_v2) WITH_V3([ISA_V3] = name##_v3) WITH_V4([ISA_V4] = name##_v4)  \
    }

double frgi_seconds(void); /* monotonic */
/** The heartbeat of a solver: reports progress, polls the interrupt flag and the time limit.
 *  Returns FRG_OK, FRG_INTERRUPTED or FRG_TIME_LIMIT. */
frg_status frgi_heartbeat(frg_context *ctx, const frg_progress *p);
/** A pass along `bytes` of rows begins; its progress is reported as `phase` of `solver`, each
 *  tenth of a second.  A callback that asks to stop is heard by frgi_stopped. */
void frgi_pass_begins(frg_context *ctx, const char *solver, const char *phase, int64_t bytes);
/** So many bytes more are done, by any thread of the pass; ctx NULL: nothing is reported.  What
 *  is beyond its bytes is of another pass, which is not reported. */
void frgi_pass_did(frg_context *ctx, int64_t bytes);
/** Threads for a pass over n rows: one where waking the others costs more than the pass. */
static inline int frgi_pass_threads(const frg_context *ctx, int64_t n)
{
    return n < 1 << 15 ? 1 : frg_threads(ctx);
}
/** Starts the clock of the time limit; called by every public run. */
void frgi_run_begins(frg_context *ctx);
/** A share of one block for one thread's context, which has to be destroyed before it (slab.c). */
typedef struct {
    frg_allocator below;
    char *base;
    size_t bytes, used;
} frgi_slab;
/** `count` shares of at least `each` bytes, or of none, from ctx. */
FRG_MUST_USE frg_status frgi_slab_open(frgi_slab *slabs, int count, frg_context *ctx, size_t each);
void frgi_slab_close(frgi_slab *slabs, frg_context *ctx);
frg_allocator frgi_slab_allocator(frgi_slab *s);

/** A context for one of `parts` threads that work side by side: one thread, the slab's allocator or
 *  the parent's, files, seed, CPU level and clock, its share of the memory left; it stops when the
 *  parent is interrupted.  No callbacks. */
FRG_MUST_USE frg_status frgi_context_fork(frg_context **out, frg_context *parent, int parts,
                                          frgi_slab *slab);

/** Philox4x32-10 (Salmon et al. 2011): key = (seed, stream), counter = (index, step); four
 *  words. */
void frgi_philox(uint64_t seed, uint64_t stream, uint64_t index, uint64_t step, uint32_t out[4]);
/** The same as two uniforms in the open interval (0, 1), and as two independent normals
 *  (Box-Muller). */
void frgi_uniforms(uint64_t seed, uint64_t stream, uint64_t index, uint64_t step, double out[2]);
void frgi_normals(uint64_t seed, uint64_t stream, uint64_t index, uint64_t step, double out[2]);

/* ---- arrays ---------------------------------------------------------------------------------- */

/** Is it a usable host view of `ndim` axes and dtype among `allowed` (a bit mask 1 << dtype)?
 *  `name` stands in the message.  Checks shape, strides, NULL data and overflow. */
FRG_MUST_USE frg_status frgi_array_check(frg_context *ctx, const frg_array *a, const char *name,
                                         int ndim, unsigned allowed);
static inline char *frgi_array_base(const frg_array *a)
{
    return (char *)a->data + a->offset;
}

/** x_ij of f64 or f32, with any strides. */
static inline double frgi_array_get(const frg_array *a, int64_t i, int64_t j)
{
    const int64_t at = i * a->stride[0] + j * a->stride[1];
    const char *const base = frgi_array_base(a);
    return a->dtype == FRG_F64 ? ((const double *)(const void *)base)[at]
                               : (double)((const float *)(const void *)base)[at];
}

/** x_ij <- value */
static inline void frgi_array_put(const frg_array *a, int64_t i, int64_t j, double value)
{
    const int64_t at = i * a->stride[0] + j * a->stride[1];
    char *const base = frgi_array_base(a);
    if (a->dtype == FRG_F64) {
        ((double *)(void *)base)[at] = value;
    } else {
        ((float *)(void *)base)[at] = (float)value;
    }
}

/** Copies a caller's options (NULL: none) over defaults, min(struct_size, known) bytes, so that old
 *  callers work.  E_OPTION for a struct_size that was not set, E_UNSUPPORTED for fields of a later
 *  version that are not 0. */
FRG_MUST_USE frg_status frgi_take_opts(frg_context *ctx, void *into, size_t known,
                                       const void *from);

#pragma GCC visibility pop
#endif
