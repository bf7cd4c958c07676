/* tree_sum.c - subtrees of equal size are added as they become whole, like the digits of a binary
 * counter.
 *
 * Functions and no inline ones: joined with what computes a chunk, an addition could become part of
 * a fused multiply-add at some CPU levels. */
#include "core/tree_sum.h"

void frgi_tree_add(frgi_tree_sum *t, double x)
{
    int level = 0;
    for (uint64_t whole = t->count++; whole & 1; whole >>= 1) {
        x = t->sum[level++] + x;
    }
    t->sum[level] = x;
}

double frgi_tree_total(const frgi_tree_sum *t)
{
    double total = 0;
    int level = 0;
    for (uint64_t whole = t->count; whole > 0; whole >>= 1, level++) {
        if (whole & 1) {
            total = t->sum[level] + total;
        }
    }
    return total;
}
