/* blas.h - the BLAS and LAPACK routines in use, always called single-threaded on tiles we schedule.
 *
 * fourge owns the threads: an OpenMP build of OpenBLAS runs single-threaded inside our parallel regions; a
 * pthread build is set to one thread while we call it (see frgi_blas_begin).
 */
#ifndef FRGI_BLAS_H
#define FRGI_BLAS_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** Brackets a stretch of BLAS calls: one BLAS thread, the caller's setting restored at the end. */
typedef struct {
    int threads; /* to restore; 0: nothing to do */
} frgi_blas_guard;
frgi_blas_guard frgi_blas_begin(void);
void frgi_blas_end(frgi_blas_guard g);

/** C <- alpha op(A) op(B) + beta C, column-major; trans 'N' or 'T'. */
void frgi_dgemm(char trans_a, char trans_b, int m, int n, int k, double alpha, const double *a,
                int lda, const double *b, int ldb, double beta, double *c, int ldc);
/** Lower triangle of C <- alpha A A' + beta C ('N') or alpha A' A + beta C ('T'). */
void frgi_dsyrk(char trans, int n, int k, double alpha, const double *a, int lda, double beta,
                double *c, int ldc);
/** B <- alpha op(L)^-1 B (side 'L') or alpha B op(L)^-1 (side 'R'), L lower triangular. */
void frgi_dtrsm(char side, char trans, int m, int n, double alpha, const double *l, int ldl,
                double *b, int ldb);

#pragma GCC visibility pop
#endif
