/* tree_sum.c - subtrees of equal size are added as they become whole, like the digits of a binary
 * counter.
 *
 * Functions and no inline ones: joined with what computes a chunk, an addition could become part of
 * a fused multiply-add at some CPU levels. */
#include "core/tree_sum.h"

#include <string.h>

enum { TREE_BLOCK = 128 };
#define part       double
#define TREE(name) tree_##name
#include "core/tree_rows.tmpl.h"
#undef part
#undef TREE

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

void frgi_tree_rows(const double *x, int64_t count, int64_t stride, int64_t length, double *to)
{
    if (count == 0) {
        memset(to, 0, (size_t)length * sizeof *to);
        return;
    }
    for (int64_t j = 0; j < length; j += TREE_BLOCK) {
        const int64_t left = length - j;
        tree_rows(x + j, count, stride, left < TREE_BLOCK ? left : TREE_BLOCK, to + j);
    }
}

bool frgi_tree_next(frgi_tree_pair *p)
{
    p->to = p->half > 0 ? p->to + 2 * p->half : 0;
    p->half = p->half > 0 ? p->half : 1;
    while (p->half < p->n && p->to + p->half >= p->n) { /* none is left at this size */
        p->half *= 2;
        p->to = 0;
    }
    p->from = p->to + p->half;
    return p->half < p->n;
}
