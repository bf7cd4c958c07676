/* sort.c - heapsort (Williams 1964, Floyd's sift): n log n comparisons in place.
 *
 * The C library's qsort takes memory behind our allocator's back, and sorts otherwise when it
 * cannot have any; this one takes none and always sorts the same way.  It is not stable: where
 * order among equals matters the comparison must decide it.
 */
#include <string.h>

#include "core/core.h"

enum { LARGEST_ELEMENT = 64 };

/** Lets `element` sink from place `at` of a heap of n, whose place `at` is free. */
static void sift(char *base, int64_t n, size_t size, frgi_compare compare, const void *user,
                 int64_t at, const char *element)
{
    for (int64_t child = 2 * at + 1; child < n; at = child, child = 2 * at + 1) {
        const char *larger = base + (size_t)child * size;
        if (child + 1 < n && compare(larger, larger + size, user) < 0) {
            child++;
            larger += size;
        }
        if (compare(element, larger, user) >= 0) {
            break;
        }
        memcpy(base + (size_t)at * size, larger, size);
    }
    memcpy(base + (size_t)at * size, element, size);
}

void frgi_sort(void *first, int64_t n, size_t size, frgi_compare compare, const void *user)
{
    char *const base = first, element[LARGEST_ELEMENT];
    assert(size <= LARGEST_ELEMENT);
    for (int64_t at = n / 2; at-- > 0;) {
        memcpy(element, base + (size_t)at * size, size);
        sift(base, n, size, compare, user, at, element);
    }
    for (int64_t last = n - 1; last > 0; last--) {
        memcpy(element, base + (size_t)last * size, size);
        memcpy(base + (size_t)last * size, base, size);
        sift(base, last, size, compare, user, 0, element);
    }
}
