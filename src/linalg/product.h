/* product.h - products of matrices in single precision for one thread: on the CPU's tiles where it
 * has them, by kernels of our own on AVX2 and AVX-512; and in double precision for all threads.
 *
 * Matrices in single precision lie by columns.  The `way` of a workspace says how; for matrices too
 * small to gain BLAS computes.  All are as exact as single precision: see product.c.
 */
#ifndef FRGI_PRODUCT_H
#define FRGI_PRODUCT_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

typedef enum {
    PRODUCT_BLAS,
    PRODUCT_AVX2,
    PRODUCT_AVX512, /* the bits of PRODUCT_AVX2 */
    PRODUCT_TILES
} frgi_product_way;

/** Packed operands of one thread. */
typedef struct {
    frgi_product_way way;
    unsigned char *columns, *rows;
} frgi_product_workspace;

/** The fastest way of a context's CPU level. */
frgi_product_way frgi_product_way_of(const frg_context *ctx);
/** Runs twice over an arena (see core.h); takes nothing for BLAS. */
void frgi_product_workspace_take(frgi_arena *arena, frgi_product_workspace *work,
                                 frgi_product_way way);

/** Are products none of whose sizes is below `least` computed here, not by BLAS?  Then columns of C
 *  may be computed by several calls, and have the same bits. */
bool frgi_product_is_own(const frgi_product_workspace *work, ptrdiff_t least);
/** C (m x n) <- op(A) op(B); trans 'N' or 'T'. */
void frgi_product(const frgi_product_workspace *work, char trans_a, char trans_b, ptrdiff_t m,
                  ptrdiff_t n, ptrdiff_t k, const float *a, ptrdiff_t lda, const float *b,
                  ptrdiff_t ldb, float *c, ptrdiff_t ldc);
/** C <- past C + weight op(A) op(B); what C holds is not read where past is 0. */
void frgi_product_blend(const frgi_product_workspace *work, char trans_a, char trans_b, ptrdiff_t m,
                        ptrdiff_t n, ptrdiff_t k, float weight, const float *a, ptrdiff_t lda,
                        const float *b, ptrdiff_t ldb, float past, float *c, ptrdiff_t ldc);
/** C_i (m x n) <- A_i op(B), i < count; A_i and C_i are `step` apart.  B is packed once. */
void frgi_product_each(const frgi_product_workspace *work, char trans_b, ptrdiff_t count,
                       ptrdiff_t step, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const float *a,
                       ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc);
/** C (m x n) <- A B, A symmetric by its lower triangle. */
void frgi_product_symmetric(const frgi_product_workspace *work, ptrdiff_t m, ptrdiff_t n,
                            const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c,
                            ptrdiff_t ldc);
/** Lower triangle of C (n x n) <- past C + weight A A' ('N', A n x k) or A' A ('T', A k x n). */
void frgi_product_square(const frgi_product_workspace *work, char trans, ptrdiff_t n, ptrdiff_t k,
                         float weight, const float *a, ptrdiff_t lda, float past, float *c,
                         ptrdiff_t ldc);

/** In double precision, on the threads of the context (product_dense.c): row-major out (n x m) <-
 *  alpha op(A) op(B) + beta out, k between; trans 'N' or 'T'. */
void frgi_product_dense(const frg_context *ctx, char trans_a, char trans_b, int64_t n, int64_t m,
                        int64_t k, double alpha, const double *a, const double *b, double beta,
                        double *out);

#pragma GCC visibility pop
#endif
