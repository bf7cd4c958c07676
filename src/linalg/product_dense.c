/* product_dense.c - products of dense matrices on the threads of the context.
 *
 * The rows are cut into parts that depend on their number alone, each one call of the BLAS on one
 * thread: bits do not depend on the threads, and a context of one thread wakes no other.
 */
#include "linalg/blas.h"
#include "linalg/product.h"

void frgi_product_dense(const frg_context *ctx, char ta, char tb, int64_t n, int64_t m, int64_t k,
                        double alpha, const double *a, const double *b, double beta, double *out)
{
    enum { PART = 64, TEAM = 8 }; /* rows of a part at most; parts in eights share out evenly */
    const frgi_blas_guard guard = frgi_blas_begin();
    const int64_t parts = (n + TEAM * PART - 1) / (TEAM * PART) * TEAM;
    const int64_t step = ta == 'N' ? k : 1; /* between rows of op(A) */
#pragma omp parallel for schedule(dynamic, 1) num_threads(frg_threads(ctx))
    for (int64_t p = 0; p < parts; p++) {
        const int64_t first = p * n / parts, rows = (p + 1) * n / parts - first;
        frgi_blas_single(); /* where the team is one thread the BLAS would make its own */
        if (rows > 0) {     /* row-major C = A B is column-major C' = B' A' */
            frgi_dgemm(tb, ta, (int)m, (int)rows, (int)k, alpha, b, (int)(tb == 'N' ? m : k),
                       a + first * step, (int)(ta == 'N' ? k : n), beta, out + first * m, (int)m);
        }
    }
    frgi_blas_end(guard);
}
