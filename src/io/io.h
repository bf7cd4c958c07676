/* io.h - what the files of src/io share: sources of bytes, tables under construction, and the
 * parsers.
 *
 * Every parser takes bytes and their number, never a file: a source feeds it from a file, a pipe, a
 * compressed stream or memory, so that a fuzzer reaches each parser without a file.
 */
#ifndef FRGI_IO_H
#define FRGI_IO_H

#include "core/core.h"
#include "fourge/table.h"

#pragma GCC visibility push(hidden)

/* ---- sources --------------------------------------------------------------------------------- */

/** Bytes in memory. */
typedef struct {
    const char *bytes;
    int64_t count;
} frgi_span;

/** Where bytes come from: a file (path), or spans one after another (path NULL). */
typedef struct {
    const char *path;
    const char *name; /* stands in messages */
    const frgi_span *spans;
    int64_t n_spans;
    /* of a path: a stop ends the bytes early, as of frgi_reader; who reads asks frgi_stopped before
     * they count */
    bool stops;
} frgi_input;

typedef struct frgi_source frgi_source;
typedef struct frgi_packing frgi_packing;
/** Opens an input.  With `unpack`, gzip and zstd are recognised by their first bytes and read as
 *  their contents. */
FRG_MUST_USE frg_status frgi_source_open(frgi_source **out, frg_context *ctx,
                                         const frgi_input *input, bool unpack);
/** Fills up to `bytes`; *got < bytes only at the end. */
FRG_MUST_USE frg_status frgi_source_get(frgi_source *s, void *to, int64_t bytes, int64_t *got);
/** All that is left, in one block. */
FRG_MUST_USE frg_status frgi_source_slurp(frgi_source *s, char **bytes, int64_t *count);
/** All bytes of a plain file as frgi_reader_map has them; NULL: they have to be read. */
FRG_MUST_USE frg_status frgi_source_map(const frgi_source *s, const char **out);
/** The first bytes of the input as stored, up to 64 KB of them; valid before the first get. */
frgi_span frgi_source_head(const frgi_source *s);
/** Bytes of the contents; -1 where they are not known (a pipe, a compressed stream). */
int64_t frgi_source_size(const frgi_source *s);
/** frgi_endless of a source that has not ended and whose contents have no known size. */
FRG_MUST_USE frg_status frgi_source_bounded(const frgi_source *s, size_t more);
/** "gzip", "zstd", or NULL: the contents are what is stored. */
const char *frgi_source_packing(const frgi_source *s);
/** From here on the source reports its bytes as progress of the phase "read": of formats whose
 *  readers do not. */
void frgi_source_tell(frgi_source *s);
/** Bytes of the input consumed so far and in all (-1: not known), for progress. */
int64_t frgi_source_consumed(const frgi_source *s);
int64_t frgi_source_total(const frgi_source *s);
void frgi_source_close(frgi_source **s);

/** zlib's allocator hooks on a context, so that its memory is counted and its failures are
 *  tested. */
void *frgi_zlib_alloc(void *ctx, unsigned items, unsigned size);
void frgi_zlib_free(void *ctx, void *p);

/** Does text of `unpacked` bytes come from `packed` bytes honestly?  1000 times is deflate's
 *  practical limit; the first MiB is free. */
static inline bool frgi_expansion_is_sane(int64_t packed, int64_t unpacked)
{
    return unpacked <= (1 << 20) || unpacked / 1000 <= packed;
}

/** W_EXPANSION, once a run, above 100 times. */
void frgi_warn_of_expansion(frg_context *ctx, const char *name, int64_t packed, int64_t unpacked);

/* ---- tables ---------------------------------------------------------------------------------- */

/** One column and the memory behind its pointers. */
typedef struct {
    char *name;
    void *values;        /* double, int64_t or int32_t by the kind */
    char *label_text;    /* the labels' bytes, each ended by NUL */
    const char **labels; /* pointers into label_text */
    bool lent;           /* values belong to a batch or a file that the table keeps */
    bool ordered;        /* the labels stand in the order of the levels */
    bool labelled;       /* they are value labels of numbers */
} frgi_column_memory;

struct frg_table {
    frg_context *ctx;
    int64_t n, n_columns, capacity;
    frg_column **columns; /* fits point to them: they stay where they are when more are added */
    frgi_column_memory *memory;
    int64_t *
        index; /* 4 capacity places, open addressing by the hash of the name: a column's number + 1,
                  0: free */
    struct ArrowArray *batches; /* kept for the columns they lend */
    int64_t n_batches, batches_capacity;
    const char *file; /* mapped, kept for the columns it lends; NULL: none */
};

/** Appends a column that takes over `memory` (on failure it stays the caller's). */
FRG_MUST_USE frg_status frgi_table_adopt(frg_table *t, frgi_column_memory memory,
                                         frg_column_kind kind, int64_t n_missing, int64_t n_labels);
/** *name <- `wanted`, with underscores behind it until the table has no such column; the caller's
 *  to drop, failed or not. */
FRG_MUST_USE frg_status frgi_table_free_name(const frg_table *t, const char *wanted, char **name);
/** A table of the same columns, whose memory `from` keeps and has to outlive; more can be added. */
FRG_MUST_USE frg_status frgi_table_borrow(frg_table **out, frg_context *ctx, const frg_table *from);
void frgi_column_memory_free(frg_context *ctx, frgi_column_memory *m);
/** Fails with E_COLUMN and the nearest name unless every column asked for is among `names`;
 *  source: the file, NULL for data of no name. */
FRG_MUST_USE frg_status frgi_columns_exist(frg_context *ctx, const frg_table_opts *o,
                                           const char *source, const char *const *names, int64_t n);
/** Drops the columns that are not asked for; fails as frgi_columns_exist. */
FRG_MUST_USE frg_status frgi_table_select(frg_table *t, const frg_table_opts *o,
                                          const char *source);
/** Gives the batches of an Arrow stream back. */
void frgi_batches_release(frg_table *t);
bool frgi_column_is_wanted(const frg_table_opts *o, const char *name);
/** Is it UTF-8 (RFC 3629: no surrogates, no overlong forms) without NUL? */
bool frgi_is_utf8(const char *s, int64_t n);

/* ---- parsers --------------------------------------------------------------------------------- */

/** Sizes of the text reader's steps.  No result depends on the first two; tests make them tiny. */
typedef struct {
    int64_t block;   /* bytes parsed by one thread at a time */
    int64_t segment; /* bytes read at a time */
    int64_t keep;    /* bytes of a pipe that are kept for a second pass at most; 0: as by default */
} frgi_csv_steps;
extern const frgi_csv_steps frgi_csv_default_steps;

/** Text to a table; `source` is the input, opened by the caller, who closes it.  The delimiter 0 is
 *  a tab where the first line has one, else a comma. */
FRG_MUST_USE frg_status frgi_csv_read(frg_table **out, frg_context *ctx, const frgi_input *input,
                                      frgi_source *source, const frg_table_opts *o,
                                      const frgi_csv_steps *steps);

/** An .npy file from a source; `name` stands in messages.  With `maps` the elements may be memory
 *  that is read alone (frgi_source_map). */
FRG_MUST_USE frg_status frgi_npy_parse(frg_npy **out, frg_context *ctx, frgi_source *source,
                                       const char *name, bool maps);
/** The same from bytes. */
FRG_MUST_USE frg_status frgi_npy_parse_bytes(frg_npy **out, frg_context *ctx, const char *bytes,
                                             int64_t count, const char *name);
/** Adds the array as columns: one axis, column `single`; two, STEM1 .. STEMp.  Without a table (*t
 *  NULL) makes one of its rows.  Frees the array. */
FRG_MUST_USE frg_status frgi_npy_to_columns(frg_table **t, frg_context *ctx, frg_npy *a,
                                            const char *single, const char *stem, const char *name);
/** Takes over an array of an archive, named without its ".npy". */
typedef frg_status (*frgi_npz_taker)(void *to, const char *name, frg_npy *array);
/** Every array of an .npz archive in memory, in the order of its directory. */
FRG_MUST_USE frg_status frgi_npz_each(frg_context *ctx, const char *bytes, int64_t count,
                                      const char *name, frgi_npz_taker take, void *to);
/** All of them as columns. */
FRG_MUST_USE frg_status frgi_npz_parse(frg_table **out, frg_context *ctx, const char *bytes,
                                       int64_t count, const char *name);

/** A file of Stata's (formats 104 to 119) in memory; the columns that are asked for alone. */
FRG_MUST_USE frg_status frgi_dta_parse(frg_table **out, frg_context *ctx, const char *bytes,
                                       int64_t count, const char *name, const frg_table_opts *o);

/** Opens ReadStat ahead of a fork, whose child had better not; E_DECODER as of frgi_dta_parse. */
FRG_MUST_USE frg_status frgi_dta_open_library(frg_context *ctx, const char *name);

/** Reads a table, of `job`. */
typedef frg_status (*frgi_table_reader)(frg_table **out, void *job);
/** The same in a child process with limits (core/confine.h), whose table is checked and taken: the
 *  errors and warnings of `read`, and E_CRASHED. */
FRG_MUST_USE frg_status frgi_table_confined(frg_table **out, frg_context *ctx, const char *name,
                                            frgi_table_reader read, void *job);

/* ---- what is written ------------------------------------------------------------------------- */

/** A stop that comes while it writes ends a writing; the result of a run that was stopped before is
 *  written all the same. */
typedef struct {
    const frg_context *ctx;
    bool stopped_before;
} frgi_write_watch;

static inline frgi_write_watch frgi_write_begins(const frg_context *ctx)
{
    return (frgi_write_watch){ctx, frgi_stopped(ctx) == FRG_INTERRUPTED};
}

static inline bool frgi_write_stops(const frgi_write_watch *w)
{
    return !w->stopped_before && frgi_stopped(w->ctx) == FRG_INTERRUPTED;
}

/* ---- an archive that is written -------------------------------------------------------------- */

/** An .npz archive that appears whole or not at all. */
typedef struct frgi_npz_writer frgi_npz_writer;
FRG_MUST_USE frg_status frgi_npz_open(frgi_npz_writer **out, frg_context *ctx, const char *path);
/** Adds NAME.npy, stored.  The array is contiguous, its last index fastest. */
FRG_MUST_USE frg_status frgi_npz_add(frgi_npz_writer *w, const char *name, const frg_array *a);
FRG_MUST_USE frg_status frgi_npz_commit(frgi_npz_writer **w);
/** Leaves nothing behind.  NULL is fine. */
void frgi_npz_abandon(frgi_npz_writer **w);

#pragma GCC visibility pop
#endif
