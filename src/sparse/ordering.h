/* ordering.h - orderings of a sparse symmetric matrix, some variables held back to the end. */
#ifndef FRGI_ORDERING_H
#define FRGI_ORDERING_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** The full pattern, row by row: entry e of row i is (i, columns[e]) with value number e, or
 *  where[e] when the matrix came as an upper triangle and was expanded. */
typedef struct {
    int64_t n;
    const int64_t *starts;
    const int32_t *columns;
    const int64_t *where; /* NULL: entry e has value e */
} frgi_pattern;

/** Where entry (i, j) of a full pattern goes: to `at` if j <= i, else to `spare`, a place that
 *  nobody reads. Half of the entries lie on each side in no order that a branch predictor could
 *  learn; so no branch. */
static inline int64_t frgi_lower(int64_t i, int64_t j, int64_t at, int64_t spare)
{
    const int64_t above = -(int64_t)(j > i);
    return (at & ~above) | (spare & above);
}

/** place[old] = new, the inverse of order[new] = old. */
static inline void frgi_order_invert(int64_t n, const int32_t *order, int32_t *place)
{
    for (int32_t i = 0; i < n; i++) {
        place[order[i]] = i;
    }
}

/** order[new] = old, natural but for the variables marked in `late`, which come at the end. */
void frgi_order_natural(int64_t n, const uint8_t *late, int32_t *order);
/** Reverse Cuthill-McKee on the variables not marked in `late`, component by component.
 *  level: n int32 of work. */
void frgi_order_rcm(const frgi_pattern *a, const uint8_t *late, int32_t *order, int32_t *level);
/** Approximate minimum degree (SuiteSparse) on the variables not marked. */
FRG_MUST_USE frg_status frgi_order_amd(frg_context *ctx, const frgi_pattern *a, const uint8_t *late,
                                       int32_t *order);

#pragma GCC visibility pop
#endif
