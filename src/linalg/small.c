/* small.c - dense symmetric algebra on a few to a few hundred rows.
 *
 * Cost k^3 / 3 for Cholesky, k^3 for the inverse, about 30 k^3 for the eigenvalues.  Cyclic Jacobi (Golub and
 * Van Loan, section 8.5) is chosen for its relative accuracy on graded matrices, which covariances are.
 */
#include "linalg/small.h"

#include <float.h>
#include <math.h>
#include <string.h>

static double dot(int n, const double *a, const double *b)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        s += a[i] * b[i];
    }
    return s;
}

/** Looked at before the rows that cost more than the look. */
static bool is_stopped(const frg_context *stops, int row)
{
    return stops && row >= 256 && frgi_stopped(stops) != FRG_OK;
}

int frgi_cholesky_keep(int k, double *a, double tol, unsigned char *kept, const frg_context *stops)
{
    int count = 0;
    for (int j = 0; j < k && !is_stopped(stops, j); j++) {
        double *const row = a + (size_t)j * (size_t)k;
        for (int i = 0; i < j; i++) {
            const double *const earlier = a + (size_t)i * (size_t)k;
            row[i] = kept[i] ? (row[i] - dot(i, row, earlier)) / earlier[i] : 0;
        }
        const double left = row[j] - dot(j, row, row);
        kept[j] = left >= tol && left > 0;
        row[j] = kept[j] ? sqrt(left) : left;
        count += kept[j];
    }
    return count;
}

void frgi_cholesky_relation(int k, const double *a, const unsigned char *kept, int j, double *x)
{
    memcpy(x, a + (size_t)j * (size_t)k, sizeof *x * (size_t)j);
    for (int i = j - 1; i >= 0; i--) {
        const double *const row = a + (size_t)i * (size_t)k;
        x[i] = kept[i] ? x[i] / row[i] : 0;
        for (int l = 0; l < i; l++) {
            x[l] -= row[l] * x[i];
        }
    }
}

/** L into the lower triangle, then its inverse R in place, then R' R. */
bool frgi_inverse(int k, double *a, double tol, const frg_context *stops)
{
    const size_t ld = (size_t)k;
    for (int j = 0; j < k; j++) {
        double *const row = a + (size_t)j * ld;
        for (int i = 0; i < j; i++) {
            row[i] = (row[i] - dot(i, row, a + (size_t)i * ld)) / a[(size_t)i * ld + (size_t)i];
        }
        const double left = row[j] - dot(j, row, row);
        if (!(left > tol) || is_stopped(stops, j)) {
            return false;
        }
        row[j] = sqrt(left);
    }
    for (int j = 0; j < k; j++) {
        if (is_stopped(stops, j)) {
            return false;
        }
        double *const row = a + (size_t)j * ld;
        const double scale = 1 / row[j];
        for (int i = 0; i < j;
             i++) { /* R_ji = -(sum_{i <= l < j} L_jl R_li) / L_jj; row[i] is L_ji until then */
            double s = 0;
            for (int l = i; l < j; l++) {
                s += row[l] * a[(size_t)l * ld + (size_t)i];
            }
            row[i] = -s * scale;
        }
        row[j] = scale;
    }
    for (int i = 0; i < k; i++) { /* the upper triangle is free */
        if (is_stopped(stops, k - i)) {
            return false;
        }
        for (int j = i + 1; j < k; j++) {
            double s = 0;
            for (int l = j; l < k; l++) {
                s += a[(size_t)l * ld + (size_t)i] * a[(size_t)l * ld + (size_t)j];
            }
            a[(size_t)i * ld + (size_t)j] = s;
        }
    }
    for (int i = 0; i < k; i++) {
        double s = 0;
        for (int l = i; l < k; l++) {
            s += a[(size_t)l * ld + (size_t)i] * a[(size_t)l * ld + (size_t)i];
        }
        a[(size_t)i * ld + (size_t)i] = s;
        for (int l = i + 1; l < k; l++) {
            a[(size_t)l * ld + (size_t)i] = a[(size_t)i * ld + (size_t)l];
        }
    }
    return true;
}

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
    bool turned = true;
    for (int sweep = 0; sweep < SWEEPS && turned; sweep++) {
        turned = false;
        for (int p = 0; p < k; p++) {
            for (int q = p + 1; q < k; q++) {
                const double app = a[(size_t)p * ld + (size_t)p],
                             aqq = a[(size_t)q * ld + (size_t)q];
                const double apq = a[(size_t)p * ld + (size_t)q];
                if (fabs(apq) <= DBL_EPSILON * sqrt(fabs(app)) * sqrt(fabs(aqq)) || apq == 0) {
                    continue;
                }
                turned = true;
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
