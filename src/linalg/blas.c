/* blas.c - the front to BLAS: Fortran symbols, thread guard, and what doctor prints about it. */
#include "linalg/blas.h"

#include <omp.h>
#include <pthread.h>

/* Some builds of OpenBLAS have a prefix before all their names, which their pkg-config names
 * (scipy-openblas32: scipy_). */
#ifdef BLAS_SYMBOL_PREFIX
#define JOINED(prefix, name)     prefix##name
#define PREFIXED(prefix, name)   JOINED(prefix, name)
#define dgemm_                   PREFIXED(BLAS_SYMBOL_PREFIX, dgemm_)
#define dsyrk_                   PREFIXED(BLAS_SYMBOL_PREFIX, dsyrk_)
#define dtrsm_                   PREFIXED(BLAS_SYMBOL_PREFIX, dtrsm_)
#define sgemm_                   PREFIXED(BLAS_SYMBOL_PREFIX, sgemm_)
#define ssyrk_                   PREFIXED(BLAS_SYMBOL_PREFIX, ssyrk_)
#define ssymm_                   PREFIXED(BLAS_SYMBOL_PREFIX, ssymm_)
#define strsv_                   PREFIXED(BLAS_SYMBOL_PREFIX, strsv_)
#define dtrsv_                   PREFIXED(BLAS_SYMBOL_PREFIX, dtrsv_)
#define sgeqrf_                  PREFIXED(BLAS_SYMBOL_PREFIX, sgeqrf_)
#define dgeqrf_                  PREFIXED(BLAS_SYMBOL_PREFIX, dgeqrf_)
#define sorgqr_                  PREFIXED(BLAS_SYMBOL_PREFIX, sorgqr_)
#define dorgqr_                  PREFIXED(BLAS_SYMBOL_PREFIX, dorgqr_)
#define ssyevd_                  PREFIXED(BLAS_SYMBOL_PREFIX, ssyevd_)
#define dsyevd_                  PREFIXED(BLAS_SYMBOL_PREFIX, dsyevd_)
#define openblas_get_parallel    PREFIXED(BLAS_SYMBOL_PREFIX, openblas_get_parallel)
#define openblas_get_num_threads PREFIXED(BLAS_SYMBOL_PREFIX, openblas_get_num_threads)
#define openblas_set_num_threads PREFIXED(BLAS_SYMBOL_PREFIX, openblas_set_num_threads)
#define openblas_get_config      PREFIXED(BLAS_SYMBOL_PREFIX, openblas_get_config)
#endif

/* gfortran (since GCC 8) and LAPACK's callers hand the length of every character behind the other
 * arguments; OpenBLAS does not look at them. */
extern void dgemm_(const char *, const char *, const int *, const int *, const int *,
                   const double *, const double *, const int *, const double *, const int *,
                   const double *, double *, const int *, size_t, size_t);
extern void dsyrk_(const char *, const char *, const int *, const int *, const double *,
                   const double *, const int *, const double *, double *, const int *, size_t,
                   size_t);
extern void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *,
                   const double *, const double *, const int *, double *, const int *, size_t,
                   size_t, size_t, size_t);

extern void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *,
                   const float *, const int *, const float *, const int *, const float *, float *,
                   const int *, size_t, size_t);
extern void ssyrk_(const char *, const char *, const int *, const int *, const float *,
                   const float *, const int *, const float *, float *, const int *, size_t, size_t);
extern void ssymm_(const char *, const char *, const int *, const int *, const float *,
                   const float *, const int *, const float *, const int *, const float *, float *,
                   const int *, size_t, size_t);
extern void strsv_(const char *, const char *, const char *, const int *, const float *,
                   const int *, float *, const int *, size_t, size_t, size_t);
extern void dtrsv_(const char *, const char *, const char *, const int *, const double *,
                   const int *, double *, const int *, size_t, size_t, size_t);
extern void sgeqrf_(const int *, const int *, float *, const int *, float *, float *, const int *,
                    int *);
extern void dgeqrf_(const int *, const int *, double *, const int *, double *, double *,
                    const int *, int *);
extern void sorgqr_(const int *, const int *, const int *, float *, const int *, const float *,
                    float *, const int *, int *);
extern void dorgqr_(const int *, const int *, const int *, double *, const int *, const double *,
                    double *, const int *, int *);
extern void ssyevd_(const char *, const char *, const int *, float *, const int *, float *, float *,
                    const int *, int *, const int *, int *, size_t, size_t);
extern void dsyevd_(const char *, const char *, const int *, double *, const int *, double *,
                    double *, const int *, int *, const int *, int *, size_t, size_t);

/* OpenBLAS answers about itself; another BLAS leaves these unresolved, and weak symbols are then
 * NULL. */
extern int openblas_get_parallel(void) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int) __attribute__((weak));
extern char *openblas_get_config(void) __attribute__((weak));

enum { PARALLEL_PTHREAD = 1, PARALLEL_OPENMP };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int kind_of_threads(void)
{
    return openblas_get_parallel ? openblas_get_parallel() : 0;
}

frgi_blas_guard frgi_blas_begin(void)
{
    frgi_blas_guard g = {0};
    switch (kind_of_threads()) {
    case PARALLEL_PTHREAD:
        pthread_mutex_lock(&lock);
        g.threads = openblas_get_num_threads();
        openblas_set_num_threads(1);
        break;
    case PARALLEL_OPENMP: /* the calling thread's own number; those of a team are in a parallel
                             region */
        g.threads = omp_get_max_threads();
        frgi_blas_single();
        break;
    default:
        break;
    }
    return g;
}

void frgi_blas_end(frgi_blas_guard g)
{
    if (!g.threads) {
        return;
    }
    if (kind_of_threads() == PARALLEL_OPENMP) {
        omp_set_num_threads(g.threads);
        return;
    }
    openblas_set_num_threads(g.threads);
    pthread_mutex_unlock(&lock);
}

void frgi_dgemm(char trans_a, char trans_b, int m, int n, int k, double alpha, const double *a,
                int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    dgemm_(&trans_a, &trans_b, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}

void frgi_dsyrk(char trans, int n, int k, double alpha, const double *a, int lda, double beta,
                double *c, int ldc)
{
    dsyrk_("L", &trans, &n, &k, &alpha, a, &lda, &beta, c, &ldc, 1, 1);
}

void frgi_dtrsm(char side, char trans, int m, int n, double alpha, const double *l, int ldl,
                double *b, int ldb)
{
    dtrsm_(&side, "L", &trans, "N", &m, &n, &alpha, l, &ldl, b, &ldb, 1, 1, 1, 1);
}

void frgi_sgemm(char trans_a, char trans_b, int m, int n, int k, float alpha, const float *a,
                int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    sgemm_(&trans_a, &trans_b, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}

void frgi_ssyrk(char trans, int n, int k, float alpha, const float *a, int lda, float beta,
                float *c, int ldc)
{
    ssyrk_("L", &trans, &n, &k, &alpha, a, &lda, &beta, c, &ldc, 1, 1);
}

void frgi_ssymm(int m, int n, const float *a, int lda, const float *b, int ldb, float *c, int ldc)
{
    const float one = 1, zero = 0;
    ssymm_("L", "L", &m, &n, &one, a, &lda, b, &ldb, &zero, c, &ldc, 1, 1);
}

void frgi_strsv(char trans, int n, const float *u, int ldu, float *x)
{
    strsv_("U", &trans, "N", &n, u, &ldu, x, &(const int){1}, 1, 1, 1);
}

void frgi_dtrsv(char trans, int n, const double *u, int ldu, double *x)
{
    dtrsv_("U", &trans, "N", &n, u, &ldu, x, &(const int){1}, 1, 1, 1);
}

void frgi_blas_single(void)
{
    omp_set_num_threads(1);
}

/* Their `info` reports bad arguments alone, and these are checked. */
void frgi_sgeqrf(int m, int n, float *a, int lda, float *tau, float *work)
{
    sgeqrf_(&m, &n, a, &lda, tau, work, &(const int){64 * n}, &(int){0});
}

void frgi_dgeqrf(int m, int n, double *a, int lda, double *tau, double *work)
{
    dgeqrf_(&m, &n, a, &lda, tau, work, &(const int){64 * n}, &(int){0});
}

void frgi_sorgqr(int m, int n, float *a, int lda, const float *tau, float *work)
{
    sorgqr_(&m, &n, &n, a, &lda, tau, work, &(const int){64 * n}, &(int){0});
}

void frgi_dorgqr(int m, int n, double *a, int lda, const double *tau, double *work)
{
    dorgqr_(&m, &n, &n, a, &lda, tau, work, &(const int){64 * n}, &(int){0});
}

bool frgi_ssyevd(int n, float *a, int lda, float *values, float *work, int n_work, int *integers,
                 int n_integers)
{
    int info = 0;
    ssyevd_("V", "L", &n, a, &lda, values, work, &n_work, integers, &n_integers, &info, 1, 1);
    return info == 0;
}

bool frgi_dsyevd(int n, double *a, int lda, double *values, double *work, int n_work, int *integers,
                 int n_integers)
{
    int info = 0;
    dsyevd_("V", "L", &n, a, &lda, values, work, &n_work, integers, &n_integers, &info, 1, 1);
    return info == 0;
}

const char *frg_blas_name(void)
{
    return openblas_get_config ? openblas_get_config() : "BLAS without self-description";
}
