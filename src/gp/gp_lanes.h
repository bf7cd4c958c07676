/* gp_lanes.h - many small Gaussian processes at a time, each in one lane of a vector.
 *
 * The kernel is variance * radial(l), the same for all lanes; inputs, lengthscales, variances,
 * noise and residuals are each lane's own.  Every array element is a *vector*: one number a lane,
 * frgi_gp_lanes_width of them.  All lanes have n rows, a multiple of 4; a member with fewer has
 * rows that are not live, where K is a unit matrix and nothing adds to anything.
 *
 *     s_ij = sum_k (x_ik - x_jk)^2 / l_k^2,   C = variance k(s)
 *     K = C + diag(noise),   W = a a' - K^-1
 *
 * Nothing a lane holds changes another lane's bits: a pivot that is not positive counts as 1 from
 * there on. */
#ifndef FRGI_GP_LANES_H
#define FRGI_GP_LANES_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { LANES_BLOCK = 4, LANES_MOST = 16, LANES_MOST_DIMS = 32 };
typedef enum {
    LANES_RBF,
    LANES_MATERN12,
    LANES_MATERN32,
    LANES_MATERN52,
    LANES_KINDS
} frgi_gp_lanes_kind;

typedef struct {
    frgi_gp_lanes_kind kind;
    bool one_length;    /* all columns have the same l: length[0] is the sum over them */
    ptrdiff_t n, d, ld; /* ld: vectors from row to row of the matrix, at least n */
    /* in, vectors */
    const void *x;          /* n x d */
    const void *reciprocal; /* d: 1 / l_k */
    const void *variance;   /* 1 */
    const void *live;       /* n: 1 or 0 */
    const void *diagonal;   /* n: variance + noise; 1 where not live */
    const void *residual;   /* n: 0 where not live */
    /* scratch and out, vectors */
    void *u;      /* n x d */
    void *matrix; /* n x ld: below the diagonal K, L, K^-1; above it C */
    void *root;   /* n: L_ii */
    void *alpha;  /* n */
    /* out, one number a lane */
    int32_t pivot[LANES_MOST]; /* first row whose pivot was not positive, -1 */
    double bad[LANES_MOST];    /* that pivot */
    double quad[LANES_MOST], logdet[LANES_MOST];
    double length[LANES_MOST_DIMS][LANES_MOST]; /* sum_{i>j} W_ij dC_ij/dlog l_k */
    double scale[LANES_MOST];                   /* sum_{i>j} W_ij C_ij */
} frgi_gp_lanes;

/** Value: build, factor, quad, logdet, alpha.  Gradient, after it: the inverse, length and
 *  scale. */
typedef struct {
    void (*value)(frgi_gp_lanes *g);
    void (*gradient)(frgi_gp_lanes *g);
    int width;
} frgi_gp_lanes_ops;

/** Of f64 and of f32, for the context's CPU level. */
const frgi_gp_lanes_ops *frgi_gp_lanes_of(const frg_context *ctx, frg_dtype dtype);
/** Vectors from row to row: odd, so that columns do not fall on few cache sets. */
static inline ptrdiff_t frgi_gp_lanes_ld(ptrdiff_t n)
{
    return n + 1;
}

DECLARE_LEVELS(frgi_gp_lanes_ops[2], frgi_gp_lanes_ops);

#pragma GCC visibility pop
#endif
