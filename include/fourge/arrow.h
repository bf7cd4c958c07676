/* arrow.h - tables from other programs in the same process, by the Arrow C stream interface.
 *
 * The three structs are the binary interface that the Arrow project fixes ("The Arrow C data
 * interface", "The Arrow C stream interface"); a program that has them already keeps its own.
 */
#ifndef FOURGE_ARROW_H
#define FOURGE_ARROW_H

#include "fourge/table.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
/** The type of an array, as the Arrow C data interface fixes it; the producer owns what it points
 *  to until release. */
struct ArrowSchema {
    const char *format, *name, *metadata; /* type code, as "g" of float64; column; key-value pairs
                                             or NULL */
    int64_t flags, n_children;            /* bits ARROW_FLAG_*; length of children */
    struct ArrowSchema **children, *dictionary; /* of nested types; of the words, or NULL */
    void (*release)(struct ArrowSchema *);      /* the producer's; NULL: released */
    void *private_data;                         /* the producer's */
};
/** The data of an array, as the Arrow C data interface fixes them; the producer owns them until
 *  release. */
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children; /* elements; nulls, -1: not counted;
                                                                  elements to pass over; lengths of
                                                                  the lists below */
    const void **buffers;                      /* of elements: validity, values, ... by the type */
    struct ArrowArray **children, *dictionary; /* of nested types; the words, or NULL */
    void (*release)(struct ArrowArray *);      /* the producer's; NULL: released */
    void *private_data;                        /* the producer's */
};
#endif
#ifndef ARROW_FLAG_DICTIONARY_ORDERED
#define ARROW_FLAG_DICTIONARY_ORDERED                                                              \
    1 /* of a schema: the dictionary's words stand in a meaningful order */
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
/** A source of arrays of one type, as the Arrow C stream interface fixes it. */
struct ArrowArrayStream {
    /** The type of all arrays; 0 or an errno. */
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    /** The next array, a released one at the end; 0 or an errno. */
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *); /* what went wrong last, or NULL */
    void (*release)(struct ArrowArrayStream *);               /* the producer's; NULL: released */
    void *private_data;                                       /* the producer's */
};
#endif

/** Reads a stream of record batches to its end; the stream stays the caller's to release.  Of the
 *  options, `columns` alone counts: columns that are not asked for are not looked at.
 *
 *  Floats and decimals of at most 128 bits become NUMBER, integers, dates and times (their count of
 *  days, seconds, ...) INTEGER, booleans BOOL, strings (utf8, large, view) and dictionaries of
 *  strings CATEGORY (an ordered dictionary keeps its order, with the words that no row has); a
 *  column of nulls is NUMBER.  A float64 or int64 column without nulls in a single batch is
 *  borrowed, not copied: the table keeps the batch.  Of a context with a spool
 *  (frg_context_opts.spool) a batch is copied and released before the next one is asked for, so
 *  that the producer holds one at a time; a request to stop then ends the reading between two
 *  (FRG_INTERRUPTED, FRG_TIME_LIMIT, *out NULL).
 *
 *  Errors: E_FORMAT (the producer's message, an unsigned integer beyond int64, text that is not
 *  UTF-8), E_COLUMN, E_FILE_TYPE naming a column of another type (nested, binary, decimals of 256
 *  bits). */
FRG_API FRG_MUST_USE frg_status frg_table_read_arrow(frg_table **out, frg_context *ctx,
                                                     struct ArrowArrayStream *stream,
                                                     const frg_table_opts *o);

#ifdef __cplusplus
}
#endif
#endif
