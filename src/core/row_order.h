/* row_order.h - rows brought together by the level of one effect, and back, in passes along the
 * rows: for columns that lie on the disk, where each jump costs a page. */
#ifndef FRGI_ROW_ORDER_H
#define FRGI_ROW_ORDER_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { FRGI_ORDER_COLUMNS = 8 }; /* that go together, at most */

/** A stable order of n rows by their levels. */
typedef struct {
    int64_t n;
    int64_t window; /* places that a bucket has */
    int buckets;
    uint8_t *bucket; /* n, in the old order: where a row goes */
    uint32_t *place; /* n, bucket after bucket in the old order: the row's new place */
    char *moved;     /* rows on their way, by buckets */
    size_t bytes;    /* of moved */
    char *buffer;    /* what goes to a place at once: a chunk a bucket, or a window a thread */
    size_t buffer_bytes;
} frgi_row_order;

/** Some columns of n rows: values of 4 or 8 bytes, strides in values. */
typedef struct {
    void *base;
    ptrdiff_t row, column;
    int count; /* 1 .. FRGI_ORDER_COLUMNS, but of frgi_row_order_bring */
    size_t size;
} frgi_columns;

/** Are the rows of every level consecutive already? */
bool frgi_row_order_is_grouped(const int32_t *levels, int64_t n, int64_t n_levels);
/** o is destroyed by the caller after a failure too. */
FRG_MUST_USE frg_status frgi_row_order_create(frgi_row_order *o, frg_context *ctx,
                                              const int32_t *levels, int64_t n, int64_t n_levels);
/** The same of an order that is read from somewhere: a place for bucket and place, which the caller
 *  fills. */
FRG_MUST_USE frg_status frgi_row_order_open(frgi_row_order *o, frg_context *ctx, int64_t n,
                                            int64_t window, int buckets);
/** Can n rows have these buckets, or none (both 0)? */
bool frgi_row_order_fits(int64_t n, int64_t window, int64_t buckets);
/** Does every row have a place of its own, in its bucket? */
FRG_MUST_USE frg_status frgi_row_order_check(const frgi_row_order *o, frg_context *ctx,
                                             bool *sound);
/** Has `at` each of 0 .. n-1 once? */
FRG_MUST_USE frg_status frgi_row_order_once(frg_context *ctx, const uint32_t *at, int64_t n,
                                            bool *once);
void frgi_row_order_destroy(frgi_row_order *o, frg_context *ctx);
/** Room for rows of `bytes` on their way, of those that go together. */
FRG_MUST_USE frg_status frgi_row_order_room(frgi_row_order *o, frg_context *ctx, size_t bytes);
/** to[new place] <- from[old]; to may be from.  There is room.  stops: FRG_INTERRUPTED and
 *  FRG_TIME_LIMIT end it, with `to` in any state. */
FRG_MUST_USE frg_status frgi_row_order_forward(const frgi_row_order *o, frg_context *ctx,
                                               const frgi_columns *from, const frgi_columns *to,
                                               bool stops);
/** to[old] <- from[new place]; where it was stopped nothing was written to `to`. */
FRG_MUST_USE frg_status frgi_row_order_back(const frgi_row_order *o, frg_context *ctx,
                                            const frgi_columns *from, const frgi_columns *to,
                                            bool stops);
/** frgi_row_order_forward of any number of columns, some at a time, for which it makes room; not
 *  stopped. */
FRG_MUST_USE frg_status frgi_row_order_bring(frgi_row_order *o, frg_context *ctx,
                                             const frgi_columns *from, const frgi_columns *to);

#pragma GCC visibility pop
#endif
