/* reg_order.h - rows brought together by the level of one effect, and back, in passes along the
 * rows: for columns that lie on the disk, where each jump costs a page. */
#ifndef FRGI_REG_ORDER_H
#define FRGI_REG_ORDER_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** A stable order of n rows by their codes. */
typedef struct {
    int64_t n;
    int64_t window; /* places that a bucket has */
    int buckets;
    uint8_t *bucket; /* n, in the old order: where a row goes */
    uint32_t *place; /* n, bucket after bucket in the old order: the row's new place */
    void *moved;     /* n numbers of 8 bytes, by buckets */
} frgi_order;

/** Are the rows of every level consecutive already? */
bool frgi_order_is_grouped(const int32_t *codes, int64_t n, int64_t levels);
/** o is destroyed by the caller after a failure too.  FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped. */
FRG_MUST_USE frg_status frgi_order_create(frgi_order *o, frg_context *ctx, const int32_t *codes,
                                          int64_t n, int64_t levels);
void frgi_order_destroy(frgi_order *o, frg_context *ctx);
/** to[new place] <- from[old], n values of `size` bytes, 4 or 8; to may be from.  Stopped as
 *  above. */
FRG_MUST_USE frg_status frgi_order_forward(const frgi_order *o, const frg_context *ctx,
                                           const void *from, void *to, size_t size);
/** to[old] <- from[new place]. */
FRG_MUST_USE frg_status frgi_order_back(const frgi_order *o, const frg_context *ctx,
                                        const void *from, void *to, size_t size);

#pragma GCC visibility pop
#endif
