/* blas.c - the front to BLAS: Fortran symbols, thread guard, and what doctor prints about it. */
#include "linalg/blas.h"

#include <pthread.h>

extern void dgemm_(const char *, const char *, const int *, const int *, const int *,
                   const double *, const double *, const int *, const double *, const int *,
                   const double *, double *, const int *);
extern void dsyrk_(const char *, const char *, const int *, const int *, const double *,
                   const double *, const int *, const double *, double *, const int *);
extern void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *,
                   const double *, const double *, const int *, double *, const int *);

/* OpenBLAS answers about itself; another BLAS leaves these unresolved, and weak symbols are then NULL. */
extern int openblas_get_parallel(void) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int) __attribute__((weak));
extern char *openblas_get_config(void) __attribute__((weak));

enum { PARALLEL_PTHREAD = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

frgi_blas_guard frgi_blas_begin(void)
{
    if (!openblas_get_parallel || openblas_get_parallel() != PARALLEL_PTHREAD) {
        return (frgi_blas_guard){0};
    }
    pthread_mutex_lock(&lock);
    const frgi_blas_guard g = {openblas_get_num_threads()};
    openblas_set_num_threads(1);
    return g;
}

void frgi_blas_end(frgi_blas_guard g)
{
    if (g.threads) {
        openblas_set_num_threads(g.threads);
        pthread_mutex_unlock(&lock);
    }
}

void frgi_dgemm(char trans_a, char trans_b, int m, int n, int k, double alpha, const double *a,
                int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    dgemm_(&trans_a, &trans_b, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

void frgi_dsyrk(char trans, int n, int k, double alpha, const double *a, int lda, double beta,
                double *c, int ldc)
{
    dsyrk_("L", &trans, &n, &k, &alpha, a, &lda, &beta, c, &ldc);
}

void frgi_dtrsm(char side, char trans, int m, int n, double alpha, const double *l, int ldl,
                double *b, int ldb)
{
    dtrsm_(&side, "L", &trans, "N", &m, &n, &alpha, l, &ldl, b, &ldb);
}

const char *frg_blas_name(void)
{
    return openblas_get_config ? openblas_get_config() : "BLAS without self-description";
}
