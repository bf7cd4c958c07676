/* blas.h - the BLAS and LAPACK routines in use, always called single-threaded on tiles we schedule.
 *
 * fourge owns the threads: an OpenMP build of OpenBLAS runs single-threaded inside parallel
 * regions, but a region of one thread is none, so that the caller's number of threads is set to one
 * while we call it; of a pthread build BLAS's own is (see frgi_blas_begin).
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

/** The same in single precision. */
void frgi_sgemm(char trans_a, char trans_b, int m, int n, int k, float alpha, const float *a,
                int lda, const float *b, int ldb, float beta, float *c, int ldc);
/** Lower triangle of C <- alpha A A' + beta C ('N') or alpha A' A + beta C ('T'). */
void frgi_ssyrk(char trans, int n, int k, float alpha, const float *a, int lda, float beta,
                float *c, int ldc);
/** C <- A B, A (m x m) symmetric by its lower triangle. */
void frgi_ssymm(int m, int n, const float *a, int lda, const float *b, int ldb, float *c, int ldc);
/** x <- op(U)^-1 x, U upper triangular. */
void frgi_strsv(char trans, int n, const float *u, int ldu, float *x);
void frgi_dtrsv(char trans, int n, const double *u, int ldu, double *x);
/** Called first in a parallel region: BLAS then runs on the calling thread alone even where the
 *  region has one thread, which OpenBLAS does not take for a region. */
void frgi_blas_single(void);
/** a (m x n) <- its reflectors and R; then a <- Q.  work: 64 n elements. */
void frgi_sgeqrf(int m, int n, float *a, int lda, float *tau, float *work);
void frgi_dgeqrf(int m, int n, double *a, int lda, double *tau, double *work);
void frgi_sorgqr(int m, int n, float *a, int lda, const float *tau, float *work);
void frgi_dorgqr(int m, int n, double *a, int lda, const double *tau, double *work);
/** a (n x n, symmetric, both triangles) <- its eigenvectors by columns, values ascending, by divide
 *  and conquer.  n_work >= 1 + 6n + 2n^2, n_integers >= 3 + 5n.  false: no convergence. */
bool frgi_ssyevd(int n, float *a, int lda, float *values, float *work, int n_work, int *integers,
                 int n_integers);
bool frgi_dsyevd(int n, double *a, int lda, double *values, double *work, int n_work, int *integers,
                 int n_integers);

#pragma GCC visibility pop
#endif
