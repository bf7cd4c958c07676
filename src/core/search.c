/* search.c - a place in what is sorted, by halves. */
#include "core/search.h"

int64_t frgi_count_before(const void *first, int64_t n, size_t size, const void *key,
                          frgi_compare compare, const void *user)
{
    const char *const base = first;
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (compare(base + (size_t)middle * size, key, user) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
