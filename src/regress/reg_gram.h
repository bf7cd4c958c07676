/* reg_gram.h - sums over rows of a matrix stored by columns: Gram matrix, residuals with their
 * gradient, sums by cluster, moments.  All of them have the same bits for any number of threads:
 * runs of rows depend on their number alone and are added by the tree of core/tree_sum.h. */
#ifndef FRGI_REG_GRAM_H
#define FRGI_REG_GRAM_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { FRGI_GRAM_CHUNK = 512 };

/** Lower triangles are packed by rows: (i, j), j <= i, at [i (i + 1) / 2 + j]. */
static inline int64_t frgi_packed(int64_t i, int64_t j)
{
    return i * (i + 1) / 2 + j;
}

/** Weighted count, mean and sum of squares about it; they combine by Chan, Golub and LeVeque
 *  (1979). */
typedef struct {
    double weight, mean, square;
} frgi_moments;

/** The steps for one CPU level, on at most FRGI_GRAM_CHUNK rows from `begin` on. */
typedef struct {
    /** g[(i, j)] += sum_r w_r x_i,r x_j,r for i < k;  w may be NULL; scratch: 2 chunks */
    void (*gram)(int k, const double *const *x, const double *w, int64_t begin, int64_t n,
                 double *scratch, double *g);
    /** e <- y - sum_j b_j x_j, into e[0 .. n-1] */
    void (*errors)(int k, const double *const *x, const double *y, const double *b, int64_t begin,
                   int64_t n, double *e);
    /** The same, and g_j += sum_r w_r e_r x_j,r, g_k += sum_r w_r e_r^2; scratch: a chunk */
    void (*residual)(int k, const double *const *x, const double *y, const double *b,
                     const double *w, int64_t begin, int64_t n, double *e, double *scratch,
                     double *g);
    /** of n <= FRGI_GRAM_CHUNK values; w may be NULL */
    frgi_moments (*moments)(const double *x, const double *w, int64_t n);
    /** sums[4 g + j] += s_r x_j,r over the rows of group g, j = 0 .. 3, row after row */
    void (*by_group)(const double *const x[4], const double *s, const int32_t *groups, int64_t n,
                     double *sums);
} frgi_gram_ops;
const frgi_gram_ops *frgi_gram_ops_of(const frg_context *ctx);

/** Bytes of p columns of n rows, of their Gram matrix and of what a fit makes of it, at its
 *  widest. */
double frgi_gram_bytes(int64_t p, int64_t n);
/** g <- X' W X, packed, of k columns of n rows.  stops: a context whose stop ends it, with FRG_OK
 *  and g spoilt (frgi_stopped says so); NULL: none. */
FRG_MUST_USE frg_status frgi_gram(frg_context *ctx, int k, const double *const *x, const double *w,
                                  int64_t n, double *g, const frg_context *stops);
/** e <- y - X b, unless e is NULL;  gradient[j] <- x_j' W e, gradient[k] <- e' W e. */
FRG_MUST_USE frg_status frgi_gram_residual(frg_context *ctx, int k, const double *const *x,
                                           const double *y, const double *b, const double *w,
                                           int64_t n, double *e, double *gradient);
/** sums[j * n_groups + g] <- sum of s_r x_j,r over the rows of group g. */
FRG_MUST_USE frg_status frgi_gram_by_group(frg_context *ctx, int k, const double *const *x,
                                           const double *s, const int32_t *groups, int64_t n,
                                           int64_t n_groups, double *sums);
/** Residuals y - X b of k columns, which nobody keeps. */
typedef struct {
    int k;
    const double *const *x, *y, *b;
} frgi_errors;
/** As frgi_gram_by_group, with s the residuals. */
FRG_MUST_USE frg_status frgi_gram_errors_by_group(frg_context *ctx, int k, const double *const *x,
                                                  const frgi_errors *s, const int32_t *groups,
                                                  int64_t n, int64_t n_groups, double *sums);

frgi_moments frgi_moments_join(frgi_moments a, frgi_moments b);
/** Of a column of n rows, by the calling thread alone; w may be NULL. */
frgi_moments frgi_moments_of(const frg_context *ctx, const double *x, const double *w, int64_t n);

#pragma GCC visibility pop
#endif
