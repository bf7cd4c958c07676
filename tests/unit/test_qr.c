/* test_qr.c - the batched QR: bounds on torture matrices, independence of the members, what is
 * reported.
 *
 * Bounds.  u = 2^-24 or 2^-53.  Every Q: |Q'Q - I| <= 1e-5 (f32) and 1e-13 (f64), the contract of
 * qr.h; residual norm(A - QR) <= 8 u sqrt(n) norm(A), besides one unit for the scaling where a
 * column is denormal. Checks are computed here in double (long double for f64) from what was
 * returned. */
#include "fault.h"
#include "fourge/qr.h"
#include "linalg/half.h"
#include "test.h"

typedef struct {
    int64_t m, n;
    double *a; /* by columns */
} matrix;

static matrix matrix_of(int64_t m, int64_t n)
{
    matrix x = {m, n, calloc((size_t)(m * n) + 1, sizeof(double))};
    if (!x.a)
        abort();
    return x;
}

static void gaussian(matrix *x)
{
    for (int64_t i = 0; i < x->m * x->n; i++)
        x->a[i] = test_normal();
}

static unsigned run_one(frg_context *ctx, frg_qr_item item, frg_qr_opts o, frg_qr_report *report)
{
    frg_qr *qr = NULL;
    o.struct_size = sizeof o;
    unsigned flags = 0;
    if (CHECK_OK(ctx, frg_qr_create(&qr, ctx, 1, &item, &o))) {
        const frg_status s = frg_qr_run(qr, &item, report, NULL);
        const bool bad = report->flags & FRG_QR_NONFINITE;
        CHECK_SAYS(s == (bad ? FRG_PARTIAL : FRG_OK), "run gave %s: %s", frg_status_name(s),
                   frg_message(ctx));
        flags = report->flags;
    }
    frg_qr_destroy(qr);
    return flags;
}

/** Largest entry of |Q'Q - I| and norm(A - QR) / norm(A), of f32 (by columns) or f64 results. */
static void measure(const matrix *x, const void *q, const void *r, bool f64, double *orthogonality,
                    double *residual)
{
    const int64_t m = x->m, n = x->n;
    long double rest = 0, all = 0;
    double worst = 0;
    double *w = malloc((size_t)(m * n) * sizeof *w), *u = calloc((size_t)(n * n), sizeof *u);
    for (int64_t i = 0; i < m * n; i++)
        w[i] = f64 ? ((const double *)q)[i] : (double)((const float *)q)[i];
    for (int64_t i = 0; i < n * n && r; i++)
        u[i] = f64 ? ((const double *)r)[i] : (double)((const float *)r)[i];
    for (int64_t j = 0; j < n; j++) {
        for (int64_t k = 0; k <= j; k++) {
            double sum = 0;
            for (int64_t i = 0; i < m; i++)
                sum += w[j * m + i] * w[k * m + i];
            const double error = fabs(sum - (j == k));
            worst = error <= worst ? worst : error;
        }
        double *const column = malloc((size_t)m * sizeof *column);
        double scale = 0; /* entries of 1e300 must not overflow here */
        for (int64_t i = 0; i < m; i++)
            scale = fmax(scale, fabs(x->a[j * m + i]));
        for (int64_t i = 0; i < m; i++)
            column[i] = x->a[j * m + i];
        for (int64_t k = 0; k <= j && r; k++)
            for (int64_t i = 0; i < m; i++)
                column[i] -= w[k * m + i] * u[j * n + k];
        for (int64_t i = 0; i < m; i++) {
            rest += (long double)column[i] * (long double)column[i];
            all += (long double)x->a[j * m + i] * (long double)x->a[j * m + i];
        }
        free(column);
        for (int64_t k = 0; k < n && r; k++)
            CHECK_SAYS(k > j ? u[j * n + k] == 0 : k < j || u[j * n + k] >= 0, "R(%lld,%lld) is %g",
                       (long long)k, (long long)j, u[j * n + k]);
    }
    *orthogonality = worst;
    *residual = all > 0 ? (double)sqrtl(rest / all) : (double)sqrtl(rest);
    free(w);
    free(u);
}

enum { TALL = 4 * 2048 }; /* rows from which blocks of rows are factored by themselves */

/** What sums over m rows add to a residual, in units of u: m / lanes squares are added one after
 *  the other, a random walk of sqrt(m / lanes) / 3 roundings in their sum, half as many in a norm,
 *  and a column meets two (its block's and its scale's).  Builds of the address sanitizer have no
 *  vectors; those of the others are a register of the level wide. */
static double of_long_sums(const frg_context *ctx, int64_t m, size_t size)
{
#if defined(__SANITIZE_ADDRESS__)
    const double lanes = 1;
    (void)size;
    (void)ctx;
#else
    const char *const level = frg_isa(ctx);
    const double bytes = strncmp(level, "v4", 2) == 0 ? 64 : strcmp(level, "v3") == 0 ? 32 : 16;
    const double lanes = bytes / (double)size;
#endif
    return m >= TALL ? 0.5 * sqrt((double)m / lanes) : 0;
}

static void check_matrix(frg_context *ctx, const char *name, const matrix *x, bool f64,
                         frg_qr_opts o, frg_qr_report *report)
{
    const int64_t m = x->m, n = x->n;
    const frg_dtype t = f64 ? FRG_F64 : FRG_F32;
    const size_t size = f64 ? 8 : 4;
    char *const a = calloc((size_t)(m * n + 2 * m * n + n * n), size),
                *const q = a + (size_t)(m * n) * size, *const r = q + (size_t)(m * n) * size;
    matrix exact = matrix_of(m, n);
    for (int64_t i = 0; i < m * n; i++) {
        if (f64)
            ((double *)a)[i] = x->a[i];
        else
            ((float *)a)[i] = (float)x->a[i];
        exact.a[i] = f64 ? x->a[i] : (double)((float *)a)[i];
    }
    const frg_qr_item item = {.a = frg_matrix_columns(a, t, m, n, m),
                              .q = frg_matrix_columns(q, t, m, n, m),
                              .r = frg_matrix_columns(r, t, n, n, n)};
    run_one(ctx, item, o, report);
    double orthogonality, residual;
    measure(&exact, q, r, f64, &orthogonality, &residual);
    const double u = f64 ? 0x1p-53 : 0x1p-24;
    CHECK_SAYS(orthogonality <= (f64 ? 1e-13 : 1e-5), "%s %lld x %lld %s: orthogonality %.2g", name,
               (long long)m, (long long)n, frg_dtype_name(t), orthogonality);
    /* a second pass ends at rounding, not at what the cascade has to reach: sums of n in the Gram
     * matrix and as long ones in the solve, each a random walk of sqrt(n) roundings of up to 4 u,
     * whose deviation is 2.3 u: five of these hold for a million entries */
    if (!f64 && report->method == FRG_QR_CHOLESKY && report->passes > 1)
        CHECK_SAYS(orthogonality <= 12 * u * sqrt((double)n) + 2e-7,
                   "%s %lld x %lld by %d passes: orthogonality %.2g", name, (long long)m,
                   (long long)n, report->passes, orthogonality);
    CHECK_SAYS(residual <= u * (8 * fmax(2, sqrt((double)n)) + of_long_sums(ctx, m, size)),
               "%s %lld x %lld %s: residual %.2g", name, (long long)m, (long long)n,
               frg_dtype_name(t), residual);
    CHECK_SAYS(!(o.verify == FRG_QR_VERIFY_FULL) ||
                   fabs(report->orthogonality - orthogonality) <= 8 * u * fmax(4, (double)n),
               "%s: reported %g, found %g", name, report->orthogonality, orthogonality);
    free(exact.a);
    free(a);
}

static const int64_t sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 200};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void random_sizes(void)
{
    frg_context *ctx = test_context();
    const int64_t limit = test_size(200, 33);
    for (int f64 = 0; f64 < 2; f64++) {
        for (int i = 0; i < N_SIZES && sizes[i] <= limit; i++) {
            static const int64_t taller[] = {0, 1, 5, 130};
            for (int k = 0; k < 4; k++) {
                matrix x = matrix_of(sizes[i] + taller[k], sizes[i]);
                frg_qr_report report;
                gaussian(&x);
                check_matrix(ctx, "gaussian", &x, f64, (frg_qr_opts){.verify = FRG_QR_VERIFY_FULL},
                             &report);
                CHECK_INT(report.rank, x.n);
                CHECK_INT(report.flags, 0);
                free(x.a);
            }
        }
    }
    frg_context_destroy(ctx);
}

static void wide_panels(void)
{
    frg_context *ctx = test_context();
    for (int64_t n = 1000; n <= 1024; n += 24) {
        const int64_t k = test_size(n, n / 10);
        float *const a = malloc((size_t)(k * k) * sizeof *a);
        for (int64_t i = 0; i < k * k; i++)
            a[i] = (float)test_normal();
        frg_qr_report report;
        const frg_array view = frg_matrix(a, FRG_F32, k, k, k);
        run_one(ctx, (frg_qr_item){.a = view, .q = view},
                (frg_qr_opts){.verify = FRG_QR_VERIFY_FULL}, &report);
        CHECK_SAYS(report.orthogonality <= 1e-5, "orthogonality %g", report.orthogonality);
        free(a);
    }
    frg_context_destroy(ctx);
}

/** By wide blocks, too: no column of a triangle has anything to reflect; Q = I and R = A to the
 *  bit. */
static void triangle(void)
{
    enum { N = 520 };
    frg_context *ctx = test_context();
    float *const a = calloc((size_t)N * N, sizeof *a), *const q = malloc((size_t)N * N * sizeof *q);
    float *const r = malloc((size_t)N * N * sizeof *r);
    for (int j = 0; j < N; j++) {
        for (int i = 0; i < j; i++)
            a[j * N + i] = (float)test_normal();
        a[j * N + j] = (float)(1 + test_uniform());
    }
    frg_qr_report report;
    run_one(ctx,
            (frg_qr_item){.a = frg_matrix_columns(a, FRG_F32, N, N, N),
                          .q = frg_matrix_columns(q, FRG_F32, N, N, N),
                          .r = frg_matrix_columns(r, FRG_F32, N, N, N)},
            (frg_qr_opts){.verify = FRG_QR_VERIFY_PROBE}, &report);
    for (int k = 0; k < N * N; k++)
        CHECK_SAYS(q[k] == (k % N == k / N), "q[%d, %d] is %g", k % N, k / N, (double)q[k]);
    CHECK_BITS(r, a, (size_t)N * N * sizeof *a);
    free(a);
    free(q);
    free(r);
    frg_context_destroy(ctx);
}

/* ---- torture --------------------------------------------------------------------------------- */

static void graded(matrix *x, double condition)
{
    gaussian(x);
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++)
            x->a[j * x->m + i] *= pow(condition, -(double)j / (double)x->n);
}

static void graded_rows(matrix *x, double condition)
{
    gaussian(x);
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++)
            x->a[j * x->m + i] *= pow(condition, -(double)i / (double)x->m);
}

static void hilbert(matrix *x, double unused)
{
    (void)unused;
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++)
            x->a[j * x->m + i] = 1 / (double)(i + j + 1);
}

/** Singular values from 1 to 1 / condition between two reflections I - 2 u u' / u'u. */
static void reflected(matrix *x, double condition)
{
    const int64_t n = x->n;
    double *const u = malloc((size_t)(2 * n) * sizeof *u), *const v = u + n, uu = 0, vv = 0;
    for (int64_t i = 0; i < n; i++) {
        u[i] = test_normal();
        v[i] = test_normal();
        uu += u[i] * u[i];
        vv += v[i] * v[i];
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += ((i == k) - 2 * u[i] * u[k] / uu) * ((j == k) - 2 * v[j] * v[k] / vv) *
                       pow(condition, -(double)k / (double)(n - 1));
            x->a[j * x->m + i] = sum;
        }
    free(u);
}

static void of_rank(matrix *x, double rank)
{
    for (int64_t k = 0; k < (int64_t)rank; k++) {
        double *const left = malloc((size_t)x->m * sizeof *left);
        for (int64_t i = 0; i < x->m; i++)
            left[i] = test_normal();
        for (int64_t j = 0; j < x->n; j++) {
            const double right = test_normal();
            for (int64_t i = 0; i < x->m; i++)
                x->a[j * x->m + i] += left[i] * right;
        }
        free(left);
    }
}

static void repeated(matrix *x, double unused)
{
    (void)unused;
    gaussian(x);
    for (int64_t j = 1; j < x->n; j += 2)
        memcpy(x->a + j * x->m, x->a + (j - 1) * x->m, (size_t)x->m * sizeof(double));
}

static void one_huge(matrix *x, double size)
{
    gaussian(x);
    for (int64_t i = 0; i < x->m; i++)
        x->a[x->n / 2 * x->m + i] *= size;
}

static void scaled(matrix *x, double size)
{
    gaussian(x);
    for (int64_t i = 0; i < x->m * x->n; i++)
        x->a[i] *= size;
}

static void permutation(matrix *x, double unused)
{
    (void)unused;
    for (int64_t j = 0; j < x->n; j++)
        x->a[j * x->m + (j * 7 + 3) % x->n] = 1;
}

static void zero_columns(matrix *x, double unused)
{
    (void)unused;
    gaussian(x);
    for (int64_t j = 0; j < x->n; j += 3)
        memset(x->a + j * x->m, 0, (size_t)x->m * sizeof(double));
}

static void identity_minus(matrix *x, double sign)
{
    for (int64_t j = 0; j < x->n; j++)
        x->a[j * x->m + j] = sign;
}

static const struct {
    const char *name;
    void (*make)(matrix *x, double parameter);
    double parameter;
} tortures[] = {
    {"graded 1e3", graded, 1e3},
    {"graded 1e12", graded, 1e12},
    {"rows 1e6", graded_rows, 1e6},
    {"rows 1e30", graded_rows, 1e30},
    {"hilbert", hilbert, 0},
    {"zero", of_rank, 0},
    {"rank 1", of_rank, 1},
    {"rank 3", of_rank, 3},
    {"repeated columns", repeated, 0},
    {"one huge column", one_huge, 1e15},
    {"1e30", scaled, 1e30},
    {"1e-30", scaled, 1e-30},
    {"1e37", scaled, 1e37},
    {"denormal", scaled, 1e-38},
    {"permutation", permutation, 0},
    {"zero columns", zero_columns, 0},
    {"identity", identity_minus, 1},
    {"minus identity", identity_minus, -1},
};
enum { N_TORTURES = sizeof tortures / sizeof *tortures };

static void torture_by(frg_qr_method method)
{
    frg_context *ctx = test_context();
    for (int k = 0; k < N_TORTURES; k++) {
        for (int i = 0; i < N_SIZES; i += 3) {
            for (int f64 = 0; f64 < 2; f64++) {
                if (sizes[i] > test_size(200, 40))
                    continue;
                matrix x = matrix_of(sizes[i] + (i % 2) * 7, sizes[i]);
                frg_qr_report report;
                tortures[k].make(&x, tortures[k].parameter);
                check_matrix(ctx, tortures[k].name, &x, f64, (frg_qr_opts){.method = method},
                             &report);
                free(x.a);
            }
        }
    }
    frg_context_destroy(ctx);
}

static void torture_householder(void)
{
    torture_by(FRG_QR_AUTO);
}

static void torture_cholesky(void)
{
    torture_by(FRG_QR_CHOLESKY);
}

/** LAPACK's own results pass the same checks, so the checks do not favour us. */
static void torture_vendor(void)
{
    torture_by(FRG_QR_VENDOR);
}

static void ranks(void)
{
    frg_context *ctx = test_context();
    for (int64_t n = 4; n <= 64; n *= 2) {
        for (int64_t rank = 0; rank <= n; rank += n / 4) {
            matrix x = matrix_of(4 * n, n); /* tall, so that the columns it is made of are apart */
            frg_qr_report report;
            gaussian(&x);
            for (int64_t j = rank; j < n; j++) {
                memset(x.a + j * x.m, 0, (size_t)x.m * sizeof(double));
                for (int64_t k = 0; k < rank; k++) {
                    const double weight = test_normal();
                    for (int64_t i = 0; i < x.m; i++)
                        x.a[j * x.m + i] += weight * x.a[k * x.m + i];
                }
            }
            check_matrix(ctx, "rank", &x, true, (frg_qr_opts){0}, &report);
            CHECK_INT(report.rank, rank);
            CHECK_INT(report.flags, rank < n ? FRG_QR_DEFICIENT : 0);
            free(x.a);
        }
    }
    /* a zero matrix: Q is the identity */
    float a[9] = {0}, q[9];
    frg_qr_report report;
    run_one(
        ctx,
        (frg_qr_item){.a = frg_matrix(a, FRG_F32, 3, 3, 3), .q = frg_matrix(q, FRG_F32, 3, 3, 3)},
        (frg_qr_opts){0}, &report);
    for (int i = 0; i < 9; i++)
        CHECK(q[i] == (i % 4 == 0));
    CHECK_INT(report.rank, 0);
    frg_context_destroy(ctx);
}

/** Columns without a direction of their own: the largest entry of Q's is positive. */
static void signs_of_completions(void)
{
    enum { N = 17 };
    frg_context *ctx = test_context();
    for (int zero = 0; zero < 2; zero++) {
        float a[N * N], q[N * N];
        for (int i = 0; i < N * N; i++)
            a[i] = (float)test_normal();
        for (int j = 0; j < N; j += 3) /* zero, or the column before it again */
            for (int i = 0; i < N; i++)
                a[j * N + i] = zero || j == 0 ? 0 : a[(j - 1) * N + i];
        frg_qr_report report;
        run_one(ctx,
                (frg_qr_item){.a = frg_matrix_columns(a, FRG_F32, N, N, N),
                              .q = frg_matrix_columns(q, FRG_F32, N, N, N)},
                (frg_qr_opts){0}, &report);
        CHECK_INT(report.rank, N - (N + 2) / 3);
        for (int j = 0; j < N; j += zero ? 3 : N) {
            int top = 0;
            for (int i = 1; i < N; i++)
                top = fabsf(q[j * N + i]) > fabsf(q[j * N + top]) ? i : top;
            CHECK(q[j * N + top] > 0);
        }
    }
    frg_context_destroy(ctx);
}

/* ---- the cascade ----------------------------------------------------------------------------- */

/** R bidiagonal with r_jj^2 = 0.21, r_j,j+1 = -sqrt(0.79): every pivot is 0.21, yet one pass leaves
 *  0.3: norm(R^-1)^2 is 1e7 at order 12 already. */
static void bidiagonal(void)
{
    frg_context *ctx = test_context();
    for (int64_t n = 12; n <= 40; n += 28) {
        matrix x = matrix_of(n, n);
        x.a[0] = 1;
        for (int64_t j = 1; j < n; j++) {
            x.a[j * n + j] = sqrt(0.21);
            x.a[j * n + j - 1] = -sqrt(0.79);
        }
        frg_qr_report report;
        check_matrix(ctx, "bidiagonal", &x, false, (frg_qr_opts){.method = FRG_QR_CHOLESKY},
                     &report);
        CHECK_NEAR(report.pivot, 0.21, 1e-4);
        CHECK(report.passes > 1);
        free(x.a);
    }
    frg_context_destroy(ctx);
}

static void cascade(void)
{
    frg_context *ctx = test_context();
    frg_qr_report report;
    const frg_qr_opts forced = {.method = FRG_QR_CHOLESKY};
    matrix x = matrix_of(200, 40); /* tall: nearly orthogonal columns */
    gaussian(&x);
    check_matrix(ctx, "tall", &x, false, forced, &report);
    CHECK_INT(report.method, FRG_QR_CHOLESKY);
    CHECK_INT(report.passes, 1);
    CHECK(report.pivot > 0.2);
    free(x.a);
    x = matrix_of(60, 60);
    gaussian(&x);
    check_matrix(ctx, "square", &x, false, forced, &report);
    CHECK(report.passes > 1);
    hilbert(&x, 0);
    check_matrix(ctx, "hilbert", &x, false, forced, &report);
    CHECK(report.flags & FRG_QR_SHIFTED);
    reflected(&x, 1e5); /* the Gram's condition is 1e10: without the shift a pivot is below 0 */
    check_matrix(ctx, "reflected", &x, false, forced, &report);
    CHECK(report.flags & FRG_QR_SHIFTED);
    CHECK_INT(report.method, FRG_QR_CHOLESKY);
    CHECK(report.passes > 1);
    memset(x.a, 0, (size_t)x.m * sizeof(double));
    check_matrix(ctx, "zero column", &x, false, forced, &report);
    CHECK_INT(report.method, FRG_QR_HOUSEHOLDER);
    CHECK(report.flags & FRG_QR_FELL_BACK);
    free(x.a);
    frg_context_destroy(ctx);
}

/* ---- members do not know each other ---------------------------------------------------------- */

enum { MEMBERS = 13 };

static void run_batch(int threads, const int64_t first, const int64_t count, frg_qr_item items[],
                      frg_qr_report reports[])
{
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    frg_qr *qr = NULL;
    if (CHECK_OK(ctx, frg_qr_create(&qr, ctx, count, items + first, NULL)))
        CHECK(frg_qr_run(qr, items + first, reports + first, NULL) >= 0);
    frg_qr_destroy(qr);
    frg_context_destroy(ctx);
}

static void independence(void)
{
    static const int64_t rows[MEMBERS] = {40, 3, 64, 40, 1, 130, 33, 64, 9, 40, 70, 31, 64};
    float *a[MEMBERS], *q[2][MEMBERS];
    frg_qr_item items[MEMBERS];
    frg_qr_report reports[MEMBERS], again[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        const size_t count = (size_t)(rows[i] * rows[i]);
        a[i] = malloc(count * sizeof(float));
        q[0][i] = malloc(count * sizeof(float));
        q[1][i] = malloc(count * sizeof(float));
        for (size_t k = 0; k < count; k++)
            a[i][k] = (float)test_normal();
    }
    a[6][100] = NAN;
    a[9][7] = INFINITY;
    for (int trial = 0; trial < 5; trial++) {
        static const int threads[] = {1, 1, 2, 3, 8};
        for (int i = 0; i < MEMBERS; i++)
            items[i] =
                (frg_qr_item){.a = frg_matrix(a[i], FRG_F32, rows[i], rows[i], rows[i]),
                              .q = frg_matrix(q[trial > 0][i], FRG_F32, rows[i], rows[i], rows[i])};
        frg_qr_report *const to = trial ? again : reports;
        const int64_t step = trial == 1 ? 1 : trial == 2 ? 4 : MEMBERS;
        for (int64_t first = 0; first < MEMBERS; first += step)
            run_batch(threads[trial], first, first + step < MEMBERS ? step : MEMBERS - first, items,
                      to);
        for (int i = 0; i < MEMBERS && trial; i++) {
            const size_t bytes = (size_t)(rows[i] * rows[i]) * sizeof(float);
            CHECK_BITS(q[1][i], q[0][i], bytes);
            CHECK_INT(again[i].flags, reports[i].flags);
        }
    }
    for (int i = 0; i < MEMBERS; i++) {
        const bool bad = i == 6 || i == 9;
        CHECK_INT(reports[i].flags, bad ? FRG_QR_NONFINITE : 0);
        for (int64_t k = 0; k < rows[i] * rows[i]; k++)
            CHECK(bad == (bool)isnan(q[0][i][k]));
        free(a[i]);
        free(q[0][i]);
        free(q[1][i]);
    }
}

/** Matrices that a team factors (those left over when they are dealt to the threads) have the bits
 *  of one thread. */
static void teams(void)
{
    enum { COUNT = 4 }; /* the last by blocks of 128 columns where the machine has tiles */
    static const int64_t rows[COUNT] = {300, 520, 257, 566}, columns[COUNT] = {300, 260, 256, 548};
    static const int threads[] = {1, 2, 3, 4, 5, 8};
    float *a[COUNT], *q[2][COUNT];
    frg_qr_report reports[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const size_t count = (size_t)(rows[i] * columns[i]);
        a[i] = malloc(count * sizeof(float));
        q[0][i] = malloc(count * sizeof(float));
        q[1][i] = malloc(count * sizeof(float));
        for (size_t k = 0; k < count; k++)
            a[i][k] = (float)test_normal();
    }
    for (size_t trial = 0; trial < sizeof threads / sizeof *threads; trial++) {
        frg_qr_item items[COUNT];
        for (int i = 0; i < COUNT; i++) {
            float *const to = q[trial > 0][i];
            items[i] = (frg_qr_item){
                .a = frg_matrix(a[i], FRG_F32, rows[i], columns[i], columns[i]),
                .q = frg_matrix(to, FRG_F32, rows[i], columns[i], columns[i]),
            };
            memset(to, 0, (size_t)(rows[i] * columns[i]) * sizeof *to);
        }
        run_batch(threads[trial], 0, COUNT, items, reports);
        for (int i = 0; i < COUNT; i++)
            CHECK(reports[i].orthogonality <= 1e-4); /* of sums of up to 548 columns */
        for (int i = 0; i < COUNT && trial; i++)
            CHECK_BITS(q[1][i], q[0][i], (size_t)(rows[i] * columns[i]) * sizeof(float));
    }
    for (int i = 0; i < COUNT; i++) {
        free(a[i]);
        free(q[0][i]);
        free(q[1][i]);
    }
}

/* ---- tall matrices: blocks of rows, of at least 2048 and at least four ----------------------- */

/** Nothing in the first blocks, and little in the last. */
static void empty_rows(matrix *x, double unused)
{
    (void)unused;
    gaussian(x);
    for (int64_t j = 0; j < x->n; j++) {
        memset(x->a + j * x->m, 0, (size_t)(x->m * 5 / 8) * sizeof(double));
        for (int64_t i = x->m * 7 / 8; i < x->m; i++)
            x->a[j * x->m + i] *= 1e-20;
    }
}

static void tall_torture(void)
{
    static const int64_t rows[] = {TALL, TALL + 2047, TALL + 2049}, columns[] = {1, 9, 17};
    frg_context *ctx = test_context();
    for (int k = 0; k <= N_TORTURES; k++) {
        for (int f64 = 0; f64 < 2; f64++) {
            const int i = (k + f64) % 3;
            if (k < N_TORTURES && tortures[k].make == scaled && tortures[k].parameter > 1e36)
                continue; /* R of so many rows is beyond the type */
            matrix x = matrix_of(rows[i], columns[(k + i) % 3]);
            frg_qr_report report;
            if (k == N_TORTURES)
                empty_rows(&x, 0);
            else
                tortures[k].make(&x, tortures[k].parameter);
            check_matrix(ctx, k < N_TORTURES ? tortures[k].name : "empty rows", &x, f64,
                         (frg_qr_opts){0}, &report);
            free(x.a);
        }
    }
    matrix x = matrix_of(test_size(4 * 2080 + 5, TALL), test_size(260, 3)); /* 2080 rows a block */
    frg_qr_report report;
    gaussian(&x);
    check_matrix(ctx, "gaussian", &x, false, (frg_qr_opts){0}, &report);
    CHECK_INT(report.rank, x.n);
    CHECK_INT(report.flags, 0);
    free(x.a);
    frg_context_destroy(ctx);
}

/** R is one of a kind: LAPACK's, but for the rounding of both, n^(1/2) u norm(A) each and a few
 *  times that. */
static void tall_like_lapack(void)
{
    enum { M = TALL + 100, N = 20 };
    frg_context *ctx = test_context();
    double *const a = malloc(M * N * sizeof *a), *const q = malloc(M * N * sizeof *q);
    double r[2][N * N];
    for (int i = 0; i < M * N; i++)
        a[i] = test_normal();
    for (int k = 0; k < 2; k++) {
        frg_qr_report report;
        const frg_qr_item item = {.a = frg_matrix(a, FRG_F64, M, N, N),
                                  .q = frg_matrix(q, FRG_F64, M, N, N),
                                  .r = frg_matrix(r[k], FRG_F64, N, N, N)};
        run_one(ctx, item, (frg_qr_opts){.method = k ? FRG_QR_VENDOR : FRG_QR_AUTO}, &report);
        CHECK_INT(report.method, k ? FRG_QR_VENDOR : FRG_QR_HOUSEHOLDER);
    }
    for (int i = 0; i < N * N; i++)
        CHECK_NEAR(r[0][i], r[1][i], 32 * sqrt(N) * 0x1p-53 * sqrt((double)M * N));
    free(a);
    free(q);
    frg_context_destroy(ctx);
}

/** One matrix by teams, by one thread, and by one thread beside others: to the bit. */
static void tall_in_teams(void)
{
    enum { M = TALL + 1000, N = 40, COUNT = 2 };
    static const int threads[] = {1, 2, 3, 8};
    const size_t count = (size_t)M * N;
    float *const a = malloc(count * sizeof *a), *const q = malloc(3 * count * sizeof *q);
    for (size_t i = 0; i < count; i++)
        a[i] = (float)test_normal();
    for (int trial = 0; trial < 8; trial++) {
        frg_qr_item items[COUNT];
        frg_qr_report reports[COUNT];
        float *const to = q + (trial > 0 ? count : 0);
        memset(to, 0, count * sizeof *q);
        for (int i = 0; i < COUNT; i++)
            items[i] = (frg_qr_item){.a = frg_matrix(a, FRG_F32, M, N, N),
                                     .q = frg_matrix(i ? q + 2 * count : to, FRG_F32, M, N, N)};
        run_batch(threads[trial % 4], 0, trial < 4 ? 1 : COUNT, items, reports);
        if (trial > 0)
            CHECK_BITS(q + count, q, count * sizeof *q);
    }
    free(a);
    free(q);
}

static size_t bytes_of(int threads, int64_t n, const int64_t shapes[][2])
{
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    static float at[1];
    frg_qr_item items[2];
    frg_qr *qr = NULL;
    for (int64_t i = 0; i < n; i++) {
        const frg_array a = frg_matrix(at, FRG_F32, shapes[i][0], shapes[i][1], shapes[i][1]);
        items[i] = (frg_qr_item){.a = a, .q = a};
    }
    CHECK_OK(ctx, frg_qr_create(&qr, ctx, n, items, NULL));
    const size_t bytes = frg_qr_bytes(qr);
    frg_qr_destroy(qr);
    frg_context_destroy(ctx);
    return bytes;
}

/** A room is as large as one matrix after the other needs, not as the longest column times the most
 *  columns; threads have none for a matrix that all factor together. */
static void rooms_by_need(void)
{
    static const int64_t shapes[][2] = {{40000, 8}, {600, 560}};
    const size_t both = bytes_of(1, 2, shapes), high = bytes_of(1, 1, shapes),
                 square = bytes_of(1, 1, shapes + 1);
    CHECK_SAYS(both <= high + square, "%zu and %zu bytes, together %zu", high, square, both);
    for (int i = 0; i < 2; i++) {
        const size_t one = bytes_of(1, 1, shapes + i), four = bytes_of(4, 1, shapes + i);
        const size_t tall_blocks =
            4 << 20; /* what a thread needs for its blocks or products, less than this */
        CHECK_SAYS(four < one + 3 * tall_blocks, "by one thread %zu bytes, by four %zu", one, four);
    }
}

/** A number that is none in the last block; a matrix of zeros with an old basis. */
static void tall_bad(void)
{
    enum { M = TALL + 3, N = 2 };
    frg_context *ctx = test_context();
    static float a[M * N], q[M * N], old[M * N];
    for (int i = 0; i < M * N; i++)
        a[i] = (float)test_normal();
    frg_qr_report report;
    frg_qr_item item = {.a = frg_matrix(a, FRG_F32, M, N, N),
                        .q = frg_matrix(old, FRG_F32, M, N, N)};
    run_one(ctx, item, (frg_qr_opts){0}, &report);
    a[M * N - 1] = NAN;
    item.q = frg_matrix(q, FRG_F32, M, N, N);
    CHECK_INT(run_one(ctx, item, (frg_qr_opts){0}, &report), FRG_QR_NONFINITE);
    CHECK(isnan(q[0]) && isnan(q[M * N - 1]));
    memset(a, 0, sizeof a);
    item.old = frg_matrix(old, FRG_F32, M, N, N);
    CHECK_INT(run_one(ctx, item, (frg_qr_opts){0}, &report), FRG_QR_DEFICIENT);
    CHECK_BITS(q, old, sizeof q);
    frg_context_destroy(ctx);
}

/* ---- layouts and types ----------------------------------------------------------------------- */

static uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void layouts(void)
{
    enum { M = 37, N = 21, LD = 40 };
    frg_context *ctx = test_context();
    float a[M * N], columns[LD * N], rows[M * LD], q[M * N], r[N * N];
    uint16_t half[M * N], half_q[M * N];
    for (int i = 0; i < M * N; i++) { /* multiples of 1/16 below 8 are exact in bf16 */
        a[i] = (float)(test_below(255) - 127) / 16;
        half[i] = bf16_of(a[i]);
    }
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++)
            columns[j * LD + i] = rows[i * LD + j] = a[j * M + i];
    frg_qr_report report;
    run_one(ctx,
            (frg_qr_item){.a = frg_matrix_columns(a, FRG_F32, M, N, M),
                          .q = frg_matrix_columns(q, FRG_F32, M, N, M),
                          .r = frg_matrix(r, FRG_F32, N, N, N)},
            (frg_qr_opts){0}, &report);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++)
            CHECK(r[i * N + j] == 0);
    /* in place, by columns and by rows */
    const frg_array c = frg_matrix_columns(columns, FRG_F32, M, N, LD),
                    w = frg_matrix(rows, FRG_F32, M, N, LD);
    run_one(ctx, (frg_qr_item){.a = c, .q = c}, (frg_qr_opts){0}, &report);
    run_one(ctx, (frg_qr_item){.a = w, .q = w}, (frg_qr_opts){0}, &report);
    /* bf16 in and out: the f32 result rounded; and bf16 in, f32 out: the same bits */
    float wide[M * N];
    run_one(ctx,
            (frg_qr_item){.a = frg_matrix_columns(half, FRG_BF16, M, N, M),
                          .q = frg_matrix_columns(wide, FRG_F32, M, N, M)},
            (frg_qr_opts){0}, &report);
    run_one(ctx,
            (frg_qr_item){.a = frg_matrix_columns(half, FRG_BF16, M, N, M),
                          .q = frg_matrix_columns(half_q, FRG_BF16, M, N, M)},
            (frg_qr_opts){0}, &report);
    CHECK_BITS(wide, q, sizeof q);
    for (int j = 0; j < N; j++) {
        CHECK_BITS(columns + j * LD, q + j * M, M * sizeof *q);
        for (int i = 0; i < M; i++) {
            CHECK_BITS(&rows[i * LD + j], &q[j * M + i], sizeof *q);
            const uint32_t bits = (uint32_t)half_q[j * M + i] << 16;
            float back;
            memcpy(&back, &bits, sizeof back);
            CHECK_NEAR((double)back, (double)q[j * M + i], 0x1p-8);
        }
    }
    frg_context_destroy(ctx);
}

static void old_basis(void)
{
    enum { N = 24 };
    frg_context *ctx = test_context();
    float a[N * N], old[N * N], q[N * N];
    for (int i = 0; i < N * N; i++)
        a[i] = (float)test_normal();
    const frg_array view = frg_matrix_columns(a, FRG_F32, N, N, N);
    frg_qr_report report;
    run_one(ctx, (frg_qr_item){.a = view, .q = frg_matrix_columns(old, FRG_F32, N, N, N)},
            (frg_qr_opts){0}, &report);
    const frg_qr_item item = {.a = view,
                              .q = frg_matrix_columns(q, FRG_F32, N, N, N),
                              .old = frg_matrix_columns(old, FRG_F32, N, N, N)};
    memset(a, 0, sizeof a); /* a zero matrix leaves the old basis to the bit */
    run_one(ctx, item, (frg_qr_opts){0}, &report);
    CHECK_BITS(q, old, sizeof q);
    CHECK_INT(report.rank, 0);
    float r[N * N];
    frg_qr_item with_r = item;
    with_r.r = frg_matrix_columns(r, FRG_F32, N, N, N);
    memset(r, 1, sizeof r);
    run_one(ctx, with_r, (frg_qr_opts){0}, &report);
    CHECK_BITS(q, old, sizeof q);
    CHECK_BITS(r, a, sizeof r); /* 0 = Q 0 */
    for (int j = 0; j < N;
         j++) /* K Q with one direction missing: that column keeps its old vector */
        for (int i = 0; i < N; i++)
            a[j * N + i] = j == 5 ? 0 : old[j * N + i] * (float)(j + 1);
    run_one(ctx, item, (frg_qr_opts){0}, &report);
    for (int i = 0; i < N * N; i++)
        CHECK_NEAR((double)q[i], (double)old[i], 1e-5);
    CHECK(report.flags & FRG_QR_DEFICIENT);
    frg_context_destroy(ctx);
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum { SIDE = 20, THREE = 3 };

/** Does every entry of a SIDE x SIDE matrix hold NaN? */
static bool all_nan(const void *x, frg_dtype t)
{
    bool all = true;
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
        all = all && isnan(frgi_element_get((const char *)x + i * frg_sizeof(t), t));
    return all;
}

/** Three matrices that all types have (1 on the diagonal, denormals of f16 beside it); then the
 *  second one holds `bad`: its Q and R are NaN, its neighbours keep their bits. */
static void spoil(frg_dtype type, double bad)
{
    static double a[THREE][SIDE * SIDE], q[2][THREE][SIDE * SIDE], r[2][THREE][SIDE * SIDE];
    const frg_dtype type_r = type == FRG_F64 ? FRG_F64 : FRG_F32;
    const size_t size = frg_sizeof(type);
    frg_context *ctx = test_context();
    frg_qr *qr = NULL;
    for (int k = 0; k < THREE; k++)
        for (int i = 0; i < SIDE * SIDE; i++) {
            const double x = i % (SIDE + 1) == 0 ? 1 : (i * 7 + k) % 8 * 0x1p-24;
            frgi_element_put((char *)a[k] + (size_t)i * size, type, x);
        }
    for (int run = 0; run < 2; run++) {
        frg_qr_item items[THREE];
        frg_qr_report reports[THREE];
        frg_info info;
        for (int k = 0; k < THREE; k++)
            items[k] = (frg_qr_item){.a = frg_matrix(a[k], type, SIDE, SIDE, SIDE),
                                     .q = frg_matrix(q[run][k], type, SIDE, SIDE, SIDE),
                                     .r = frg_matrix(r[run][k], type_r, SIDE, SIDE, SIDE)};
        if (run == 0)
            CHECK_OK(ctx, frg_qr_create(&qr, ctx, THREE, items, NULL));
        else
            frgi_element_put((char *)a[1] + 65 * size, type, bad);
        CHECK_INT(frg_qr_run(qr, items, reports, &info), run ? FRG_PARTIAL : FRG_OK);
        CHECK_INT(info.status, run ? FRG_PARTIAL : FRG_OK);
        CHECK_INT(reports[1].flags, run ? FRG_QR_NONFINITE : 0);
    }
    for (int k = 0; k < THREE; k += 2) {
        CHECK_BITS(q[1][k], q[0][k], sizeof q[0][k]);
        CHECK_BITS(r[1][k], r[0][k], sizeof r[0][k]);
    }
    CHECK(all_nan(q[1][1], type) && all_nan(r[1][1], type_r));
    frg_qr_destroy(qr);
    frg_context_destroy(ctx);
}

static void not_finite(void)
{
    static const frg_dtype types[] = {FRG_F32, FRG_F64, FRG_BF16, FRG_F16};
    for (int t = 0; t < 4; t++) {
        spoil(types[t], (double)NAN);
        spoil(types[t], -(double)INFINITY);
    }
}

static void bad_calls(void)
{
    frg_context *ctx = test_context();
    float a[12] = {0}, q[12];
    const frg_qr_item good = {.a = frg_matrix(a, FRG_F32, 4, 3, 3),
                              .q = frg_matrix(q, FRG_F32, 4, 3, 3)};
    frg_qr *qr = (frg_qr *)a;
    CHECK_STATUS(frg_qr_create(NULL, ctx, 1, &good, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_qr_create(&qr, NULL, 1, &good, NULL), FRG_BAD_ARG);
    CHECK(!qr);
    frg_qr_item item = good;
    item.a = frg_matrix(a, FRG_F32, 3, 4, 4);
    CHECK_STATUS(frg_qr_create(&qr, ctx, 1, &item, NULL), FRG_BAD_ARG);
    item = good;
    item.q.shape[1] = 2;
    CHECK_STATUS(frg_qr_create(&qr, ctx, 1, &item, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "q of item 1"));
    item = good;
    item.a.dtype = FRG_I32;
    CHECK_STATUS(frg_qr_create(&qr, ctx, 1, &item, NULL), FRG_BAD_ARG);
    frg_qr_opts o;
    frg_qr_defaults(&o, sizeof o);
    o.ortho_tol = -1;
    CHECK_STATUS(frg_qr_create(&qr, ctx, 1, &good, &o), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "ortho_tol"));
    o.ortho_tol = 1;
    CHECK_STATUS(frg_qr_create(&qr, ctx, 1, &good, &o), FRG_BAD_ARG);
    frg_qr_defaults(&o, sizeof o);
    o.method = (frg_qr_method)99;
    CHECK_STATUS(frg_qr_create(&qr, ctx, 1, &good, &o), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "method is 99"));
    frg_qr_defaults(&o, sizeof o);
    o.verify = (frg_qr_verify)(-1);
    CHECK_STATUS(frg_qr_create(&qr, ctx, 1, &good, &o), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "verify is -1"));
    CHECK_STATUS(frg_qr_create(&qr, ctx, -1, &good, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_qr_create(&qr, ctx, 1, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "items is NULL"));
    CHECK_OK(ctx, frg_qr_create(&qr, ctx, 1, &good, NULL));
    CHECK(frg_qr_bytes(qr) > 0 && frg_qr_bytes(NULL) == 0);
    CHECK_STATUS(frg_qr_run(qr, NULL, NULL, NULL), FRG_BAD_ARG);
    item = good;
    item.r = frg_matrix(a, FRG_F32, 3, 3, 3); /* the plan has no room for R */
    CHECK_STATUS(frg_qr_run(qr, &item, NULL, NULL), FRG_BAD_ARG);
    item = good;
    item.a = item.q = frg_matrix(q, FRG_F32, 3, 3, 3);
    CHECK_STATUS(frg_qr_run(qr, &item, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "item 1"));
    item = good;
    item.a.dtype = item.q.dtype = FRG_BF16;
    CHECK_STATUS(frg_qr_run(qr, &item, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_qr_run(NULL, &item, NULL, NULL), FRG_BAD_ARG);
    CHECK_OK(ctx, frg_qr_run(qr, &good, NULL, NULL));
    frg_qr_destroy(qr);
    frg_qr_destroy(NULL);
    CHECK_OK(ctx, frg_qr_create(&qr, ctx, 0, NULL, NULL)); /* an empty batch is one */
    CHECK_OK(ctx, frg_qr_run(qr, NULL, NULL, NULL));
    frg_qr_destroy(qr);
    frg_context_destroy(ctx);
}

static int stop_after(const frg_progress *p, void *user)
{
    return p->done >= *(const int64_t *)user;
}

/** A run that is stopped has whole matrices and untouched ones, and says which. */
static void stopped(void)
{
    enum { COUNT = 9, N = 12 };
    static double a[COUNT][N * N], q[COUNT][N * N];
    static const double untouched = 7;
    for (int how = 0; how < 3;
         how++) { /* interrupted before, by the callback after four, out of time */
        const int64_t after = 4;
        frg_context_opts c;
        frg_context_defaults(&c, sizeof c);
        c.threads = how == 1 ? 1 : 2;
        c.on_progress = how == 1 ? stop_after : NULL;
        c.user = (void *)(uintptr_t)&after;
        c.time_limit = how == 2 ? 1e-9 : 0;
        frg_context *ctx = NULL;
        CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
        frg_qr_item items[COUNT];
        frg_qr_report reports[COUNT];
        for (int i = 0; i < COUNT; i++) {
            for (int e = 0; e < N * N; e++) {
                a[i][e] = test_normal();
                q[i][e] = untouched;
            }
            items[i] = (frg_qr_item){.a = frg_matrix(a[i], FRG_F64, N, N, N),
                                     .q = frg_matrix(q[i], FRG_F64, N, N, N)};
        }
        frg_qr *qr = NULL;
        frg_info info;
        CHECK_OK(ctx, frg_qr_create(&qr, ctx, COUNT, items, NULL));
        if (how == 0)
            frg_interrupt(ctx);
        const frg_status want = how == 2 ? FRG_TIME_LIMIT : FRG_INTERRUPTED;
        CHECK_STATUS(frg_qr_run(qr, items, reports, &info), want);
        CHECK_INT(info.status, want);
        int64_t done = 0;
        for (int i = 0; i < COUNT; i++) {
            const bool left = reports[i].flags & FRG_QR_NOT_DONE;
            for (int e = 0; left && e < N * N; e++)
                CHECK(q[i][e] == untouched);
            CHECK(left || reports[i].orthogonality <= 1e-13);
            done += !left;
        }
        CHECK_INT(done, how == 1 ? after : 0);
        frg_qr_destroy(qr);
        frg_context_destroy(ctx);
    }
}

static void allocates_nothing(void)
{
    fault_memory memory;
    fault_memory_open(&memory);
    frg_context *ctx = test_context_with(2, &memory.table, NULL);
    double a[400];
    for (int i = 0; i < 400; i++)
        a[i] = test_normal();
    const frg_array view = frg_matrix(a, FRG_F64, 20, 20, 20);
    const frg_qr_item item = {.a = view, .q = view};
    frg_qr *qr = NULL;
    CHECK_OK(ctx, frg_qr_create(&qr, ctx, 1, &item, NULL));
    const int64_t before = memory.calls;
    CHECK_OK(ctx, frg_qr_run(qr, &item, NULL, NULL));
    CHECK_INT(memory.calls, before);
    frg_qr_destroy(qr);
    frg_context_destroy(ctx);
    CHECK_INT(memory.live_blocks, 0);
}

static const test_case cases[] = {
    {"random sizes", random_sizes},
    {"wide panels", wide_panels},
    {"triangle", triangle},
    {"torture by Householder", torture_householder},
    {"torture by Cholesky", torture_cholesky},
    {"torture by LAPACK", torture_vendor},
    {"ranks", ranks},
    {"signs of completions", signs_of_completions},
    {"bidiagonal", bidiagonal},
    {"cascade", cascade},
    {"independence", independence},
    {"teams", teams},
    {"tall torture", tall_torture},
    {"tall like LAPACK", tall_like_lapack},
    {"tall in teams", tall_in_teams},
    {"rooms by need", rooms_by_need},
    {"tall and bad", tall_bad},
    {"layouts and types", layouts},
    {"old basis", old_basis},
    {"not finite", not_finite},
    {"bad calls", bad_calls},
    {"stopped", stopped},
    {"allocates nothing", allocates_nothing},
};
TEST_MAIN(cases)
