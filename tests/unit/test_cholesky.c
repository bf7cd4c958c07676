/* test_cholesky.c - dense factors by tiles, beside plain loops in long double.
 *
 * Tolerances.  Matrices are A = I + V V' / k with V normal: condition below 10, so that an entry of
 * the factor or the inverse is known to some k eps of 1; 64 k eps is asked for.
 */
#include <float.h>
#include <string.h>

#include "linalg/cholesky.h"
#include "test.h"

enum { SIZES = 9 };
static const int sizes[SIZES] = {1, 2, 63, 64, 65, 128, 129, 200, 331};

static double *zeros(int count)
{
    double *a = calloc((size_t)count, sizeof *a);
    if (!a)
        abort();
    return a;
}

/** I + V V' / k; rows named in `twins` (ending with -1) repeat the row before them. */
static double *spd(int k, const int *twins)
{
    double *v = zeros(k * k), *a = zeros(k * k);
    for (int i = 0; i < k * k; i++)
        v[i] = test_normal();
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++) {
            double s = i == j;
            for (int l = 0; l < k; l++)
                s += v[i * k + l] * v[j * k + l] / k;
            a[i * k + j] = a[j * k + i] = s;
        }
    for (; twins && *twins >= 0; twins++)
        for (int pass = 0; pass < 2; pass++)
            for (int j = 0; j < k; j++)
                if (pass == 0)
                    a[*twins * k + j] = a[(*twins - 1) * k + j];
                else
                    a[j * k + *twins] = a[j * k + *twins - 1];
    free(v);
    return a;
}

/** The definition of frgi_cholesky_keep, entry by entry. */
static void plain_keep(int k, double *a, double tol, unsigned char *kept)
{
    for (int j = 0; j < k; j++) {
        for (int i = 0; i <= j; i++) {
            long double s = a[j * k + i];
            for (int l = 0; l < i; l++)
                s -= (long double)a[j * k + l] * a[i * k + l];
            if (i < j)
                a[j * k + i] = kept[i] ? (double)(s / a[i * k + i]) : 0;
            else
                a[j * k + j] = (kept[j] = s >= tol) ? (double)sqrtl(s) : (double)s;
        }
    }
}

static void drops(void)
{
    static const int twins[] = {1, 63, 64, 70, 128, 200, -1};
    enum { K = 331 };
    double *a = spd(K, twins), *b = zeros(K * K), x[K];
    unsigned char kept[K], wanted[K];
    memcpy(b, a, sizeof *b * K * K);
    plain_keep(K, b, 1e-9, wanted);
    CHECK_INT(frgi_cholesky_keep(K, a, 1e-9, kept, test_now.threads, NULL), K - 6);
    CHECK(memcmp(kept, wanted, K) == 0);
    double worst = 0;
    for (int j = 0; j < K; j++)
        for (int i = 0; i <= j; i++)
            worst = fmax(worst, fabs(a[j * K + i] - b[j * K + i]));
    CHECK_SAYS(worst <= 64 * K * DBL_EPSILON, "%g", worst);
    frgi_cholesky_relation(K, a, kept, 128, x);
    for (int i = 0; i < 128; i++)
        CHECK_NEAR(x[i], i == 127, 64 * K * DBL_EPSILON);
    free(a);
    free(b);
}

/** c = 2 a - b, on the scale as it is. */
static void relation(void)
{
    double a[] = {1, 0, 2, 0, 1, -1, 2, -1, 5}, x[3];
    unsigned char kept[3];
    CHECK_INT(frgi_cholesky_keep(3, a, 1e-9, kept, 1, NULL), 2);
    CHECK(kept[0] && kept[1] && !kept[2]);
    frgi_cholesky_relation(3, a, kept, 2, x);
    CHECK_NEAR(x[0], 2, 1e-15);
    CHECK_NEAR(x[1], -1, 1e-15);
}

static void inverses(void)
{
    for (int s = 0; s < SIZES; s++) {
        const int k = sizes[s];
        double *a = spd(k, NULL), *p = zeros(k * k), worst = 0;
        memcpy(p, a, sizeof *p * (size_t)(k * k));
        CHECK(frgi_inverse(k, p, 0, test_now.threads, NULL));
        for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++) {
                long double sum = -(i == j);
                for (int l = 0; l < k; l++)
                    sum += (long double)a[i * k + l] * p[l * k + j];
                worst = fmax(worst, fabs((double)sum));
                CHECK(p[i * k + j] == p[j * k + i]);
            }
        CHECK_SAYS(worst <= 64 * k * DBL_EPSILON, "%d rows: %g", k, worst);
        free(a);
        free(p);
    }
}

static void singular(void)
{
    for (int s = 1; s < SIZES; s++) {
        const int k = sizes[s], twins[] = {k - 1, -1};
        double *a = spd(k, twins);
        CHECK(!frgi_inverse(k, a, 1e-9, test_now.threads, NULL));
        free(a);
    }
}

static void threads_agree(void)
{
    static const int threads[] = {1, 2, 3, 8};
    enum { K = 331 };
    double *a = spd(K, NULL), *first = zeros(K * K), *p = zeros(K * K);
    for (int t = 0; t < 4; t++) {
        memcpy(p, a, sizeof *p * K * K);
        CHECK(frgi_inverse(K, p, 0, threads[t], NULL));
        if (t == 0)
            memcpy(first, p, sizeof *p * K * K);
        CHECK(memcmp(first, p, sizeof *p * K * K) == 0);
    }
    free(a);
    free(first);
    free(p);
}

/** A stop ends both before their time, with fewer rows kept and no inverse. */
static void stops(void)
{
    enum { K = 331 };
    frg_context *ctx = test_context();
    frg_interrupt(ctx);
    double *a = spd(K, NULL);
    unsigned char kept[K];
    CHECK(frgi_cholesky_keep(K, a, 1e-9, kept, 2, ctx) < K);
    CHECK(!frgi_inverse(K, a, 0, 2, ctx));
    free(a);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"rows that depend on others", drops},
    {"a relation", relation},
    {"inverses", inverses},
    {"singular", singular},
    {"threads agree", threads_agree},
    {"stopped", stops},
};
TEST_MAIN(cases)
