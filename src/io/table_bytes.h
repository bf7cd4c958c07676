/* table_bytes.h - a column as bytes that another process reads: a head, the name, values, labels.
 *
 * Nothing that comes is believed: kinds, lengths, codes and the ends of texts are looked at, and
 * missing values counted anew.
 */
#ifndef FRGI_TABLE_BYTES_H
#define FRGI_TABLE_BYTES_H

#include "io/io.h"

#pragma GCC visibility push(hidden)

/** Where a column goes: the bytes in order, up to the first failure. */
typedef struct {
    frg_status (*put)(void *user, const void *bytes, size_t count);
    void *user;
} frgi_column_sink;
FRG_MUST_USE frg_status frgi_column_put(const frgi_column_sink *to, const frg_column *column);

/** Where a column comes from. */
typedef struct {
    frg_context *ctx;
    /** Exactly `count` bytes, or a failure. */
    frg_status (*get)(void *user, void *to, size_t count);
    /** The failure of a source that is no table; what: a part of a sentence. */
    frg_status (*refuse)(void *user, const char *what);
    void *user;
    size_t most; /* bytes that the values of a column, and its labels, may have */
} frgi_column_source;
/** Appends the next column to t, which has its rows. */
FRG_MUST_USE frg_status frgi_column_take(const frgi_column_source *from, frg_table *t);

#pragma GCC visibility pop

#endif
