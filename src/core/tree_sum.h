/* tree_sum.h - sums over chunks by one binary tree, whose shape their number alone decides.
 *
 *     s(n) = s(first p) + s(the others),   p the largest power of two below n
 *
 *     6 chunks:  ((x0 + x1) + (x2 + x3)) + (x4 + x5)
 *
 * Any number of threads, devices or processes that hold runs of 2^k chunks, from a multiple of 2^k
 * on, add theirs to the same subtrees, so that the bits do not depend on who holds what.  Each
 * chunk goes through ceil(log2 n) additions instead of n - 1:
 *
 *     |sum - exact| <= ceil(log2 n) u sum |x_i| + O(u^2),   u = 2^-53 (Higham 2002, section 4.2)
 *
 * Chunks are given in order; memory: a number a level. */
#ifndef FRGI_TREE_SUM_H
#define FRGI_TREE_SUM_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/** A sum so far; begins as {0}. */
typedef struct {
    uint64_t count; /* of chunks: bit k says whether there is a whole subtree of 2^k */
    double sum[64]; /* of it */
} frgi_tree_sum;

/** The next chunk. */
void frgi_tree_add(frgi_tree_sum *t, double x);
/** The sum of all chunks; 0 of none. */
double frgi_tree_total(const frgi_tree_sum *t);

#pragma GCC visibility pop
#endif
