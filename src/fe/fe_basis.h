/* fe_basis.h - the columns of D with varying slopes, made orthonormal level by level, and products
 * with them.
 *
 * Notation.  Factor q has in each of its levels l the columns 1 (its intercept, unless it has
 * slopes alone) and z_1, z_2, ... on the rows of l.  With respect to the weights they become
 * orthonormal functions of the row:
 *
 *     [1 z_1 z_2 ..] = [phi_0 phi_1 ..] T_l,   sum over the rows of l of w phi_j phi_k = (j = k),
 *                                              T_l upper
 *
 * so that A = W^(1/2) [phi of all factors] has orthonormal columns within a factor and ||A||^2 <=
 * Q.  A column whose component orthogonal to those before it is below DEPENDENT of its own norm is
 * dropped there: phi = 0, and the rank loses one.  U is the block of the eliminated levels
 * (fe_rows.h), A_r the blocks of the R other coefficients:
 *
 *     coefficient of level l, column j:  first + l width + j,   numbered through the other factors
 *
 * Memory: 8 n bytes a slope, as much for the values of each that an exact rank is asked for, 8 n
 * for weights, and (width^2 + slopes + 1) 8 bytes a level.  Cost of a product: n (columns of a row)
 * multiply-adds a lane.  Chunks are those of fe_rows.h: any number of threads and any number of
 * lanes give the same bits.
 */
#ifndef FRGI_FE_BASIS_H
#define FRGI_FE_BASIS_H

#include "fe/fe_rows.h"
#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

enum { BASIS_MAX_LANES = 32 };

/** One factor's block. */
typedef struct {
    int factor;    /* the caller's number */
    int position;  /* its place in a row of g->index; -1: the eliminated levels */
    int width;     /* columns of a level */
    int intercept; /* 1: the first of them is the intercept */
    int slopes;    /* width - intercept */
    int64_t levels;
    int64_t first;      /* of its coefficients, within the eliminated or the remaining factors' */
    int64_t index_base; /* g->index - index_base is the level */
    int64_t rank;       /* columns kept, all levels together */
    double *root;       /* levels: 1 / sqrt(N_l), the intercept's phi; 0 where N_l = 0 */
    double *phi;        /* n x slopes, in the rows' order */
    double *triangle;   /* levels x width x width: T_l of the scaled z; NULL without slopes */
    double *scale;      /* levels x slopes: z was multiplied by this power of two */
    int *slope_id;      /* slopes: from 1 on, the same for slopes of the same values */
    int *z_place;       /* slopes: number of their values in z of the basis */
} fe_basis_factor;

typedef struct {
    const fe_rows *g;
    fe_basis_factor elim;
    fe_basis_factor *remaining; /* g->n_remaining, as in a row of g->index */
    int64_t n_reduced;          /* R: columns of A_r */
    int64_t n_elim_columns;     /* columns of U */
    bool centred;               /* some factor has an intercept: constants are in the range of D */
    double total_weight;        /* sum of the weights */
    double *root_weight;        /* n: sqrt(w); NULL: all 1 */
    int n_z;                    /* slopes of different values, */
    double *z; /* n each, in the rows' order; NULL where nobody asks for an exact rank */
    frgi_arena arena;
} fe_basis;

FRG_MUST_USE frg_status frgi_basis_create(fe_basis *b, frg_context *ctx, const fe_rows *g,
                                          const frg_slope *slopes, int n_slopes,
                                          uint64_t no_intercept, bool keep_values);
/** The sizes alone, of rows that are not laid out; returns the bytes that the basis would hold. */
size_t frgi_basis_shape(fe_basis *b, const fe_rows *g, const frg_slope *slopes, int n_slopes,
                        uint64_t no_intercept, bool keep_values);
void frgi_basis_destroy(fe_basis *b, frg_context *ctx);
/** phi_j of a row of level `level`. */
static inline __attribute__((always_inline)) double
fe_basis_value(const fe_basis_factor *f, int64_t level, int64_t row, int j)
{
    return j < f->intercept ? f->root[level] : f->phi[row * f->slopes + j - f->intercept];
}
/** The block of the caller's factor q. */
const fe_basis_factor *frgi_basis_factor(const fe_basis *b, int q);
/** The columns of A_r in which the row is not 0, and its values without W^(1/2); returns how
 *  many. */
int frgi_basis_row(const fe_basis *b, int64_t row, int32_t *place, double *value);
/** The columns of A_r in which a row may not be 0. */
int frgi_basis_row_width(const fe_basis *b);
/** alpha (levels x width values: intercepts, then slope after slope) from the orthonormal
 *  coefficients. */
void frgi_basis_effects(const fe_basis *b, const fe_basis_factor *f, const double *coef,
                        double *alpha);

/** The eliminated levels' share of the audit of z and its size, one value a lane; g_uj = sum over u
 *  of w phi_j z. */
typedef struct {
    double square[BASIS_MAX_LANES];   /* sum of w z^2 */
    double gradient[BASIS_MAX_LANES]; /* sum of g^2 */
    double mean[BASIS_MAX_LANES];     /* largest |g| / sqrt(N_u) */
    int64_t worst[BASIS_MAX_LANES];   /* the eliminated level where it was found */
} fe_basis_audit;

/** Work memory of the products for up to `lanes` columns; `threads` and `stops` are set before each
 *  use. */
typedef struct {
    const fe_basis *b;
    int threads;
    const frg_context *stops; /* once it is stopped the operator's products are left unfinished;
                                 NULL: never */
    double *partial;          /* n_chunks x R x lanes */
    double *along;            /* n_chunks x width of the eliminated levels x lanes */
    double *sums;             /* n_chunks x BASIS_MAX_LANES */
    fe_basis_audit *audit;    /* n_chunks */
} fe_basis_work;
void frgi_basis_work_layout(frgi_arena *a, const fe_basis *b, int64_t lanes, fe_basis_work *w);

/* Vectors of rows and coefficients are row-major, k wide; rows stand in the order of g. */

/** y <- (I - U U') A_r c and x <- A_r' (I - U U') y; data is a fe_basis_work: LSMR's operator. */
void frgi_basis_times(const void *data, int64_t k, const double *c, double *y);
void frgi_basis_transposed(const void *data, int64_t k, const double *y, double *x);
/** z <- z - [phi of the remaining factors] c (c may be NULL), then its projection on the eliminated
 *  levels is taken out and added to `elim` (n_elim_columns x k).  effect[k], where not NULL: the
 *  largest |effect of one factor in one row|.  Here z carries no factor W^(1/2), so rows of weight
 *  0 have their residuals too. */
void frgi_basis_residual(const fe_basis_work *w, int64_t k, const double *c, double *z,
                         double *elim, double *effect);
/** s (R x k) <- sum w phi z of the remaining factors, and the eliminated levels' share. */
void frgi_basis_scatter(const fe_basis_work *w, int64_t k, const double *z, double *s,
                        fe_basis_audit *total);
/** z <- z - phi c of the remaining factor `from` (NULL: z stays), then sum w phi z of `to` into
 *  its own coefficients of s (R x k) and sum of w z^2 into square[k].  Once w->stops is stopped
 *  rows are skipped. */
void frgi_basis_shift(const fe_basis_work *w, int64_t k, const fe_basis_factor *from,
                      const double *c, const fe_basis_factor *to, double *z, double *s,
                      double *square);
/** norm2 <- sum of w z^2 and square <- sum of w (z - mean)^2, the mean being 0 where no factor has
 *  an intercept. */
void frgi_basis_moments(const fe_basis_work *w, int64_t k, const double *z, double *norm2,
                        double *square);

#pragma GCC visibility pop
#endif
