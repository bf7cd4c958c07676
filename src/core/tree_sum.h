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
 * Three forms of the same tree: numbers that come one after another (memory: a number a level),
 * rows of numbers that lie in memory, and whatever is joined by other operations, place by place.
 * Where a step of a CPU level adds rows itself it includes core/tree_rows.tmpl.h. */
#ifndef FRGI_TREE_SUM_H
#define FRGI_TREE_SUM_H

#include <stdbool.h>
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

/** to[j] <- the sum over k < count of x[k * stride + j], for each j < length; 0 of no rows.  `to`
 *  may be x itself, and is no other part of it. */
void frgi_tree_rows(const double *x, int64_t count, int64_t stride, int64_t length, double *to);

/** Which of n results in an array are joined next: the one at `from` to the one at `to`.
 *
 *     for (frgi_tree_pair p = {.n = n}; frgi_tree_next(&p);) {
 *         result[p.to] <- result[p.to] joined with result[p.from]
 *     }
 *
 * leaves all of them in result[0]; begins as {.n = n}. */
typedef struct {
    int64_t n, half; /* results, and how many of them a side of a pair is made of */
    int64_t to, from;
} frgi_tree_pair;

/** The next pair; false when all are joined. */
bool frgi_tree_next(frgi_tree_pair *p);

#pragma GCC visibility pop
#endif
