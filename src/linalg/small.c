/* small.c - eigenvalues of a symmetric matrix of a few to a few hundred rows.
 *
 * About 30 k^3.  Cyclic Jacobi (Golub and Van Loan, section 8.5) is chosen for its relative
 * accuracy on graded matrices, which covariances are.
 */
#include "linalg/small.h"

#include <float.h>
#include <math.h>
#include <string.h>

/** Rotates x and y by (c, s), `step` apart. */
static void rotate(int n, size_t step, double *x, double *y, double c, double s)
{
    for (int i = 0; i < n; i++) {
        double *const p = x + (size_t)i * step, *const q = y + (size_t)i * step;
        const double a = *p, b = *q;
        *p = c * a - s * b;
        *q = s * a + c * b;
    }
}

void frgi_eigen(int k, double *a, double *values, double *v)
{
    enum { SWEEPS = 60 };
    const size_t ld = (size_t)k;
    memset(v, 0, sizeof *v * ld * ld);
    for (int i = 0; i < k; i++) {
        v[(size_t)i * ld + (size_t)i] = 1;
    }
    bool rotated = true;
    for (int sweep = 0; sweep < SWEEPS && rotated; sweep++) {
        rotated = false;
        for (int p = 0; p < k; p++) {
            for (int q = p + 1; q < k; q++) {
                const double app = a[(size_t)p * ld + (size_t)p],
                             aqq = a[(size_t)q * ld + (size_t)q];
                const double apq = a[(size_t)p * ld + (size_t)q];
                if (fabs(apq) <= DBL_EPSILON * sqrt(fabs(app)) * sqrt(fabs(aqq)) || apq == 0) {
                    continue;
                }
                rotated = true;
                const double theta = (aqq - app) / (2 * apq);
                const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(1 + theta * theta));
                const double c = 1 / sqrt(1 + t * t), s = t * c;
                rotate(k, ld, a + p, a + q, c, s);
                rotate(k, 1, a + (size_t)p * ld, a + (size_t)q * ld, c, s);
                a[(size_t)p * ld + (size_t)q] = a[(size_t)q * ld + (size_t)p] = 0;
                rotate(k, 1, v + (size_t)p * ld, v + (size_t)q * ld, c, s);
            }
        }
    }
    for (int i = 0; i < k; i++) {
        values[i] = a[(size_t)i * ld + (size_t)i];
    }
}
