/* test_qr_large.c - the bounds of qr.h at the order where they end, 4096, in single precision, and
 * at orders whose last block of 128 columns has every kind of rest.
 *
 * All of Q'Q would take as long as the factorisation in plain loops of double precision: some
 * columns j are taken, their products with every column, and the residual A e_j - Q R e_j.  The
 * bounds are the contract's: 1e-5 for an entry, 8 u sqrt(n) in the norm, here of a column's
 * residual over norm(A), u = 2^-24. */
#include "fourge/qr.h"
#include "test.h"

/** 1: Gaussian entries and 2 sqrt(n) on the diagonal, which keep the least singular value near
 *  sqrt(n); 2: columns that shrink by 1e12 from the first to the last; 3: every column twice; 4:
 *  every fifth column zero. */
static float entry(int kind, int64_t i, int64_t j, int64_t n)
{
    const double x = kind == 4 && j % 5 == 3 ? 0 : test_normal();
    if (kind == 1 && i == j)
        return (float)(x + 2 * sqrt((double)n));
    return (float)(kind == 2 ? x * pow(1e-12, (double)j / (double)n) : x);
}

static void order_of(int64_t n, int kind)
{
    enum { COLUMNS = 12 };
    const size_t square = (size_t)(n * n);
    float *const a = malloc(square * sizeof *a), *const q = malloc(square * sizeof *q);
    float *const r = malloc(square * sizeof *r);
    double *const left = malloc((size_t)n * sizeof *left);
    double all = 0, worst = 0, rest = 0;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++)
            a[j * n + i] = kind == 3 && j % 2 ? a[(j - 1) * n + i] : entry(kind, i, j, n);
        for (int64_t i = 0; i < n; i++)
            all += (double)a[j * n + i] * (double)a[j * n + i];
    }
    frg_context *ctx = test_context();
    frg_qr_report report;
    frg_qr *qr = NULL;
    const frg_qr_item item = {.a = frg_matrix_columns(a, FRG_F32, n, n, n),
                              .q = frg_matrix_columns(q, FRG_F32, n, n, n),
                              .r = frg_matrix_columns(r, FRG_F32, n, n, n)};
    CHECK_OK(ctx, frg_qr_create(&qr, ctx, 1, &item, NULL));
    CHECK_OK(ctx, frg_qr_run(qr, &item, &report, NULL));
    CHECK_INT(report.flags & FRG_QR_DEFICIENT, kind >= 3 ? FRG_QR_DEFICIENT : 0);
    for (int64_t c = 0; c < COLUMNS; c++) {
        const int64_t j = c * (n - 1) / (COLUMNS - 1);
        for (int64_t i = 0; i < n; i++)
            left[i] = (double)a[j * n + i];
        for (int64_t k = 0; k < n; k++) {
            const float *const x = q + j * n, *const y = q + k * n;
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += (double)x[i] * (double)y[i];
            worst = fmax(worst, fabs(sum - (j == k)));
            for (int64_t i = 0; i < n && k <= j; i++)
                left[i] -= (double)y[i] * (double)r[j * n + k];
        }
        for (int64_t i = 0; i < n; i++)
            rest += left[i] * left[i];
        CHECK(r[j * n + j] >= 0);
    }
    CHECK_SAYS(worst <= 1e-5, "kind %d: orthogonality %g", kind, worst);
    CHECK_SAYS(report.orthogonality <= 1e-5 * (double)n, "kind %d: probe %g", kind,
               report.orthogonality);
    CHECK_SAYS(sqrt(rest / all) <= 8 * 0x1p-24 * sqrt((double)n), "kind %d: residual %g", kind,
               sqrt(rest / all));
    frg_qr_destroy(qr);
    frg_context_destroy(ctx);
    free(a);
    free(q);
    free(r);
    free(left);
}

static void order_4096(void)
{
    order_of(test_size(4096, 300), 1);
}

static void graded(void)
{
    order_of(test_size(1024, 260), 2);
}

static void repeated_columns(void)
{
    order_of(test_size(500, 130), 3);
}

static void rests_of_blocks(void)
{
    static const int64_t orders[] = {512, 536, 1056};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        for (int kind = 1; kind <= 4; kind += 3)
            order_of(test_size(orders[i], 130), kind);
}

static const test_case cases[] = {
    {"order 4096", order_4096},
    {"graded", graded},
    {"repeated columns", repeated_columns},
    {"rests of blocks", rests_of_blocks},
};
TEST_MAIN(cases)
