/* search.h - a place in what is sorted. */
#ifndef FRGI_SEARCH_H
#define FRGI_SEARCH_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** How many of n sorted elements stand before `key`: the place of the first that does not; compare
 *  has the element for a and the key for b. */
int64_t frgi_count_before(const void *first, int64_t n, size_t size, const void *key,
                          frgi_compare compare, const void *user);

#pragma GCC visibility pop
#endif
