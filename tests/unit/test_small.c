/* test_small.c - Jacobi's eigenvalues: small rotations keep each where it was, and graded matrices
 * keep their digits. */
#include "linalg/small.h"
#include "test.h"

enum { MOST = 9 };

/** B = I + R, |r_ij| <= 0.1 / k: eigenvalues within 0.1 of 1, as Gershgorin has them. */
static void near_identity(int k, double *b)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++)
            b[i * k + j] = b[j * k + i] = i == j ? 1 : 0.1 / k * (2 * test_uniform() - 1);
}

/** Rotations are by at most an eighth of a turn (the smaller root t of t^2 + 2 theta t - 1), so
 *  that eigenvalues which are far apart do not change places: each is in the disc about its
 *  diagonal entry, and its vector is next to its axis. */
static void in_place(void)
{
    for (int k = 1; k <= MOST; k++) {
        double b[MOST * MOST], a[MOST * MOST], values[MOST], v[MOST * MOST];
        near_identity(k, b);
        for (int i = 0; i < k; i++) /* 10 apart in no order, some below zero; discs of radius 0.1 */
            for (int j = 0; j < k; j++)
                a[i * k + j] = b[i * k + j] + (i == j ? 10 * ((i * 5 + 2) % 9) - 30 : 0);
        double diagonal[MOST];
        for (int i = 0; i < k; i++)
            diagonal[i] = a[i * k + i];
        frgi_eigen(k, a, values, v);
        for (int i = 0; i < k; i++) {
            CHECK_NEAR(values[i], diagonal[i], 0.1 + 1e-12);
            /* sine of the angle: 0.1 over the gap of 10 - 0.2 (Davis and Kahan) */
            CHECK_SAYS(fabs(v[i * k + i]) >= 0.999, "order %d: vector %d has %g on its axis", k, i,
                       v[i * k + i]);
        }
    }
}

/** log of det B and the diagonal of its inverse, by Cholesky in long double. */
static double inverse_diagonal(int k, const double *b, double *inverse)
{
    long double l[MOST * MOST] = {0}, log_det = 0;
    for (int j = 0; j < k; j++)
        for (int i = j; i < k; i++) {
            long double sum = (long double)b[i * k + j];
            for (int p = 0; p < j; p++)
                sum -= l[i * k + p] * l[j * k + p];
            l[i * k + j] = i == j ? sqrtl(sum) : sum / l[j * k + j];
            log_det += i == j ? 2 * logl(l[j * k + j]) : 0;
        }
    for (int c = 0; c < k; c++) { /* norm^2 of the column c of L^-1 */
        long double x[MOST] = {0}, sum = 0;
        for (int i = c; i < k; i++) {
            long double rest = i == c;
            for (int p = c; p < i; p++)
                rest -= l[i * k + p] * x[p];
            x[i] = rest / l[i * k + i];
            sum += x[i] * x[i];
        }
        inverse[c] = (double)sum;
    }
    return (double)log_det;
}

/** A = D B D with d_i = 10^-i in a random order: the eigenvalues have relative errors of a few k
 *  eps, as the condition of B is below 1.3 (Demmel and Veselic 1992), 16 digits apart as they are.
 *  Sum, product and sum of inverses show it at both ends. */
static void graded(void)
{
    for (int k = 2; k <= MOST; k++) {
        double b[MOST * MOST], a[MOST * MOST], values[MOST], v[MOST * MOST], d[MOST], inverse[MOST];
        double trace = 0, log_det, inverses = 0;
        near_identity(k, b);
        for (int i = 0; i < k; i++) {
            const int64_t j = test_below(i + 1);
            d[i] = d[j];
            d[j] = pow(10, -i);
        }
        log_det = inverse_diagonal(k, b, inverse);
        for (int i = 0; i < k; i++) {
            for (int j = 0; j < k; j++)
                a[i * k + j] = d[i] * d[j] * b[i * k + j];
            trace += a[i * k + i];
            inverses += inverse[i] / (d[i] * d[i]);
            log_det += 2 * log(d[i]);
        }
        frgi_eigen(k, a, values, v);
        double sum = 0, logs = 0, parts = 0;
        for (int i = 0; i < k; i++) {
            sum += values[i];
            logs += log(values[i]);
            parts += 1 / values[i];
        }
        CHECK_NEAR(sum / trace, 1, 1e-13);
        CHECK_NEAR(parts / inverses, 1, 1e-13);
        CHECK_NEAR(logs, log_det, 1e-12); /* logs of up to 37 each, in k eps */
    }
}

static const test_case cases[] = {
    {"in place", in_place},
    {"graded", graded},
};
TEST_MAIN(cases)
