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
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif
#ifndef ARROW_FLAG_DICTIONARY_ORDERED
#define ARROW_FLAG_DICTIONARY_ORDERED                                                              \
    1 /* of a schema: the dictionary's words stand in a meaningful order */
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

/** Reads a stream of record batches to its end; the stream stays the caller's to release.  Of the
 *  options, `columns` alone counts: columns that are not asked for are not looked at.
 *
 *  Floats and decimals of at most 128 bits become NUMBER, integers, dates and times (their count of
 *  days, seconds, ...) INTEGER, booleans BOOL, strings (utf8, large, view) and dictionaries of
 *  strings CATEGORY (an ordered dictionary keeps its order, with the words that no row has); a
 *  column of nulls is NUMBER.  A float64 or int64 column without nulls in a single batch is
 *  borrowed, not copied: the table keeps the batch.
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
