/* test_lsmr.c - LSMR against its definition, dense solutions and SciPy, and the promises of
 * fe.h. */
#include "fault.h"

#include "sparse/csr.h"
#include "sparse/lsmr.h"

/* ---- problems -------------------------------------------------------------------------------- */

typedef struct {
    frg_csr csr;
    int64_t *starts;
    int32_t *columns;
    double *values;
} sparse;

static sparse sparse_new(int64_t m, int64_t n, int64_t nnz)
{
    sparse a = {.starts = calloc((size_t)m + 1, sizeof(int64_t)),
                .columns = calloc((size_t)nnz + 1, sizeof(int32_t)),
                .values = calloc((size_t)nnz + 1, sizeof(double))};
    a.csr = (frg_csr){m, n, a.starts, a.columns, a.values};
    return a;
}

static void sparse_free(sparse a)
{
    free(a.starts);
    free(a.columns);
    free(a.values);
}

/** `each` entries a row in different columns, values normal times 10^(-spread j / n) for column
 *  j. */
static sparse random_sparse(int64_t m, int64_t n, int64_t each, double spread)
{
    sparse a = sparse_new(m, n, m * each);
    for (int64_t i = 0; i < m; i++) {
        a.starts[i + 1] = (i + 1) * each;
        const int64_t first = test_below(n);
        for (int64_t e = 0; e < each; e++) {
            const int64_t j = (first + e * (1 + n / (each + 1))) % n;
            a.columns[i * each + e] = (int32_t)j;
            a.values[i * each + e] = test_normal() * pow(10, -spread * (double)j / (double)n);
        }
    }
    return a;
}

/** Makes the first n rows 24 I + E in the scale of the columns.  E has at most each - 1 entries in
 *  a row and in a column: for |normal| <= 5 and each <= 3 its norm is at most 10, and no singular
 *  value of A is below 14. */
static void lead_with_diagonal(const sparse *a, int64_t each, double spread)
{
    const int64_t n = a->csr.n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = a->columns[i * each];
        for (int64_t e = i * each; e < (i + 1) * each; e++) {
            const int64_t j = (a->columns[e] - first + i + n) % n;
            a->columns[e] = (int32_t)j;
            a->values[e] =
                (e > i * each ? test_normal() : 24) * pow(10, -spread * (double)j / (double)n);
        }
    }
}

static double *numbers(int64_t n)
{
    double *const x = calloc((size_t)n + 1, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = test_normal();
    return x;
}

static double entry(const frg_csr *a, int64_t e)
{
    return a->values ? a->values[e] : 1;
}

/** Solves the dense system d (n x n+1, last column the right-hand side) in place, with pivoting. */
static void eliminate(int64_t n, long double *d, double *x)
{
    for (int64_t j = 0; j < n; j++) {
        int64_t p = j;
        for (int64_t i = j; i < n; i++)
            p = fabsl(d[i * (n + 1) + j]) > fabsl(d[p * (n + 1) + j]) ? i : p;
        for (int64_t c = 0; c <= n; c++) {
            const long double t = d[j * (n + 1) + c];
            d[j * (n + 1) + c] = d[p * (n + 1) + c];
            d[p * (n + 1) + c] = t;
        }
        for (int64_t i = j + 1; i < n; i++) {
            const long double t = d[i * (n + 1) + j] / d[j * (n + 1) + j];
            for (int64_t c = j; c <= n; c++)
                d[i * (n + 1) + c] -= t * d[j * (n + 1) + c];
        }
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        long double t = d[i * (n + 1) + n];
        for (int64_t c = i + 1; c < n; c++)
            t -= d[i * (n + 1) + c] * x[c];
        x[i] = (double)(t / d[i * (n + 1) + i]);
    }
}

/** x of (A'WA + d^2 I) x = A'W b in long double; weights NULL: ones. */
static void dense_least_squares(const frg_csr *a, const double *w, double damp, const double *b,
                                double *x)
{
    const int64_t n = a->n;
    long double *const d = calloc((size_t)(n * (n + 1)), sizeof *d);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t e = a->starts[i]; e < a->starts[i + 1]; e++) {
            const long double v = (long double)entry(a, e) * (w ? w[i] : 1);
            long double *const row = d + a->columns[e] * (n + 1);
            for (int64_t f = a->starts[i]; f < a->starts[i + 1]; f++)
                row[a->columns[f]] += v * entry(a, f);
            row[n] += v * b[i];
        }
    for (int64_t j = 0; j < n; j++)
        d[j * (n + 1) + j] += (long double)damp * damp;
    eliminate(n, d, x);
    free(d);
}

/** ||W^(1/2) (A x - b)||^2 + d^2 ||x||^2 */
static double sum_of_squares(const frg_csr *a, const double *w, double damp, const double *b,
                             const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < a->m; i++) {
        double r = -b[i];
        for (int64_t e = a->starts[i]; e < a->starts[i + 1]; e++)
            r += entry(a, e) * x[a->columns[e]];
        sum += (w ? w[i] : 1) * r * r;
    }
    for (int64_t j = 0; j < a->n; j++)
        sum += damp * damp * x[j] * x[j];
    return sum;
}

static frg_lsmr_opts defaults(void)
{
    frg_lsmr_opts o;
    frg_lsmr_defaults(&o, sizeof o);
    return o;
}

/** One right-hand side of a CSR matrix. */
static frg_status solve_one(frg_context *ctx, const frg_csr *a, const double *b, double *x,
                            const frg_lsmr_opts *o, frg_lsmr_column *column)
{
    return frg_lsmr_solve(ctx, NULL, a, frg_vector(b, FRG_F64, a->m), NULL,
                          frg_vector(x, FRG_F64, a->n), o, column, NULL);
}

static double largest(const double *x, int64_t n)
{
    double out = 0;
    for (int64_t i = 0; i < n; i++)
        out = fmax(out, fabs(x[i]));
    return out;
}

static void check_close(const double *x, const double *want, int64_t n, double tolerance,
                        const char *name)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, isnan(x[i] - want[i]) ? HUGE_VAL : fabs(x[i] - want[i]));
    CHECK_SAYS(worst <= tolerance * largest(want, n), "%s: off by %g of %g", name, worst,
               largest(want, n));
}

/* ---- SciPy ----------------------------------------------------------------------------------- */

static double *read_doubles(FILE *f, int64_t n)
{
    double *const x = calloc((size_t)n + 1, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        if (fscanf(f, "%lf", &x[i]) != 1)
            x[i] = NAN;
    return x;
}

/** One problem of tests/golden/lsmr.txt.  The same iterate of the same recurrence: it differs by
 *  rounding, amplified by the loss of orthogonality of the Golub-Kahan vectors, which over some 15
 *  steps with condition numbers of a few tens stays below 1e-8.  ||r|| and ||A'r|| may be all
 *  rounding at the end: compared on the scale of ||b|| and ||A|| ||b||. */
static bool golden_problem(FILE *f, frg_context *ctx)
{
    char name[64];
    long m, n, nnz, max_iter;
    frg_lsmr_opts o = defaults();
    if (fscanf(f, " problem %63s %ld %ld %ld %lf %lf %lf %lf %ld", name, &m, &n, &nnz, &o.damp,
               &o.atol, &o.btol, &o.cond_limit, &max_iter) != 9)
        return false;
    o.max_iter = max_iter;
    sparse a = sparse_new(m, n, nnz);
    double *const starts = read_doubles(f, m + 1), *const columns = read_doubles(f, nnz);
    double *const values = read_doubles(f, nnz), *const b = read_doubles(f, m);
    for (int64_t i = 0; i <= m; i++)
        a.starts[i] = (int64_t)starts[i];
    for (int64_t e = 0; e < nnz; e++) {
        a.columns[e] = (int32_t)columns[e];
        a.values[e] = values[e];
    }
    int stop, iterations;
    double r, ar, norm_a, cond, norm_x;
    CHECK_INT(fscanf(f, " result %d %d %lf %lf %lf %lf %lf", &stop, &iterations, &r, &ar, &norm_a,
                     &cond, &norm_x),
              7);
    double *const want = read_doubles(f, n), *const x = calloc((size_t)n, sizeof *x);
    frg_lsmr_column got;
    const frg_status status = solve_one(ctx, &a.csr, b, x, &o, &got);
    CHECK_SAYS(status == (stop == 3 || stop == 7 ? FRG_MAX_ITER : FRG_OK), "%s: %s %s", name,
               frg_status_name(status), frg_message(ctx));
    CHECK_SAYS((int)got.stop == stop, "%s: stop %d, SciPy's %d", name, (int)got.stop, stop);
    CHECK_SAYS(got.iterations == iterations, "%s: %" PRId64 " iterations, SciPy's %d", name,
               got.iterations, iterations);
    double norm_b = 0;
    for (int64_t i = 0; i < m; i++)
        norm_b = hypot(norm_b, b[i]);
    CHECK_NEAR(got.norm_r / norm_b, r / norm_b, 1e-8);
    CHECK_NEAR(got.norm_ar / (norm_a * norm_b), ar / (norm_a * norm_b), 1e-8);
    CHECK_NEAR(got.norm_a / norm_a, 1, 1e-8);
    CHECK_NEAR(got.cond_a / cond, 1, 1e-8);
    CHECK_NEAR(got.norm_x / norm_x, 1, 1e-8);
    check_close(x, want, n, 1e-8, name);
    free(starts);
    free(columns);
    free(values);
    free(b);
    free(want);
    free(x);
    sparse_free(a);
    return true;
}

static void scipy_golden(void)
{
    FILE *const f = fopen(FOURGE_SOURCE_DIR "/tests/golden/lsmr.txt", "r");
    if (!CHECK(f != NULL))
        return;
    char line[256];
    for (int i = 0; i < 2; i++)
        CHECK(fgets(line, sizeof line, f) && *line == '#');
    frg_context *const ctx = test_context();
    int problems = 0;
    while (golden_problem(f, ctx))
        problems++;
    CHECK_INT(problems, 7);
    frg_context_destroy(ctx);
    fclose(f);
}

/* ---- the definition -------------------------------------------------------------------------- */

enum { DM = 30, DN = 12 };

/** y <- M'(M x) and, before it, t <- M x in long double. */
static void gram(const long double *a, const long double *x, long double *y)
{
    long double t[DM];
    for (int i = 0; i < DM; i++) {
        t[i] = 0;
        for (int j = 0; j < DN; j++)
            t[i] += a[i * DN + j] * x[j];
    }
    for (int j = 0; j < DN; j++) {
        y[j] = 0;
        for (int i = 0; i < DM; i++)
            y[j] += a[i * DN + j] * t[i];
    }
}

/** Removes from v its parts along the first k vectors of q, twice, and normalises. */
static void orthonormalise(long double q[DN][DN], int k, long double *v)
{
    for (int pass = 0; pass < 2; pass++)
        for (int l = 0; l < k; l++) {
            long double s = 0;
            for (int j = 0; j < DN; j++)
                s += q[l][j] * v[j];
            for (int j = 0; j < DN; j++)
                v[j] -= s * q[l][j];
        }
    long double s = 0;
    for (int j = 0; j < DN; j++)
        s += v[j] * v[j];
    for (int j = 0; j < DN; j++)
        v[j] /= sqrtl(s);
}

/** Iterate k is the x of the Krylov space span{g, Gg, ..., G^(k-1) g}, g = A'b, G = A'A, that makes
 *  ||A'(b - A x)|| = ||g - G x|| smallest: found here from an orthonormal basis and its normal
 *  equations in long double, whose conditioning is cond(G)^2 <= (50^2)^2 = 6e6. */
static void definition(void)
{
    frg_context *const ctx = test_context();
    sparse a = random_sparse(DM, DN, 5, 0.5);
    double *const b = numbers(DM);
    long double dense[DM * DN] = {0}, g[DN] = {0}, q[DN][DN] = {{0}}, gq[DN][DN];
    for (int i = 0; i < DM; i++)
        for (int64_t e = a.starts[i]; e < a.starts[i + 1]; e++) {
            dense[i * DN + a.columns[e]] += a.values[e];
            g[a.columns[e]] += (long double)a.values[e] * b[i];
        }
    for (int k = 1; k <= 8; k++) {
        memcpy(q[k - 1], k == 1 ? g : gq[k - 2], sizeof g);
        orthonormalise(q, k - 1, q[k - 1]);
        gram(dense, q[k - 1], gq[k - 1]);
        long double normal[DN * (DN + 1)] = {0};
        double y[DN], want[DN] = {0}, x[DN];
        for (int i = 0; i < k; i++) {
            for (int l = 0; l < k; l++)
                for (int j = 0; j < DN; j++)
                    normal[i * (k + 1) + l] += gq[i][j] * gq[l][j];
            for (int j = 0; j < DN; j++)
                normal[i * (k + 1) + k] += gq[i][j] * g[j];
        }
        eliminate(k, normal, y);
        for (int i = 0; i < k; i++)
            for (int j = 0; j < DN; j++)
                want[j] += y[i] * (double)q[i][j];
        frg_lsmr_opts o = defaults();
        o.atol = o.btol = 0;
        o.max_iter = k;
        frg_lsmr_column column;
        CHECK_STATUS(solve_one(ctx, &a.csr, b, x, &o, &column), FRG_MAX_ITER);
        CHECK_INT(column.stop, FRG_LSMR_MAX_ITER);
        check_close(x, want, DN, 1e-9, "definition");
    }
    free(b);
    sparse_free(a);
    frg_context_destroy(ctx);
}

/* ---- dense solutions ------------------------------------------------------------------------- */

/** Weights, damping and column scaling against the dense solution.  ||A'r|| <= atol ||A|| ||r||
 *  gives an error of at most atol cond^2 ||r|| / ||A||: with atol 1e-13 and cond below 1e3, 1e-6 at
 *  worst.  (cond: singular values of the unscaled A are 14 to 64, weights 0.1 to 10, columns apart
 *  by 100 where they are not scaled and then damped.) */
static void against_dense(void)
{
    frg_context *const ctx = test_context();
    for (int trial = 0; trial < 24; trial++) {
        const int64_t n = 2 + test_below(30), m = 3 * n + test_below(50);
        const int64_t each = n < 4 ? 1 : 3;
        sparse a = random_sparse(m, n, each, trial % 3);
        lead_with_diagonal(&a, each, trial % 3);
        if (trial % 4 == 2)
            a.csr.values = NULL; /* ones; damping keeps it regular */
        double *const b = numbers(m), *const w = numbers(m);
        double x[40], want[40];
        for (int64_t i = 0; i < m; i++)
            w[i] = i < n || i % 17 ? w[i] * w[i] + 0.1 : 0;
        frg_lsmr_opts o = defaults();
        o.atol = o.btol = 1e-13;
        o.damp = trial % 2 ? 0 : 0.3;
        /* damping with and without it, which is the same problem */
        o.precond = trial % 2 || trial / 4 % 2 ? FRG_PRECOND_DIAGONAL : FRG_PRECOND_NONE;
        const bool weighted = trial % 3 == 1;
        const frg_array weights = frg_vector(w, FRG_F64, m);
        dense_least_squares(&a.csr, weighted ? w : NULL, o.damp, b, want);
        frg_lsmr_column column;
        CHECK_OK(ctx, frg_lsmr_solve(ctx, NULL, &a.csr, frg_vector(b, FRG_F64, m),
                                     weighted ? &weights : NULL, frg_vector(x, FRG_F64, n), &o,
                                     &column, NULL));
        check_close(x, want, n, 1e-6, "dense");
        /* ||r|| is within 1e-12 of its minimum, by the same bound; the sums below are exact to
         * 1e-14 */
        const double sum = sum_of_squares(&a.csr, weighted ? w : NULL, o.damp, b, want);
        CHECK_SAYS(fabs(column.norm_r - sqrt(sum)) <= 1e-9 * sqrt(sum), "norm_r %g for %g",
                   column.norm_r, sqrt(sum));
        free(b);
        free(w);
        sparse_free(a);
    }
    frg_context_destroy(ctx);
}

/** A diagonal matrix with three different values ends after three steps; a tall unit vector after
 *  one. */
static void closed_forms(void)
{
    frg_context *const ctx = test_context();
    sparse a = sparse_new(30, 30, 30);
    double b[30], x[30], want[30];
    for (int i = 0; i < 30; i++) {
        a.starts[i + 1] = i + 1;
        a.columns[i] = i;
        a.values[i] = 1 + i % 3;
        b[i] = i - 7.5;
        want[i] = b[i] / a.values[i];
    }
    frg_lsmr_column column;
    const frg_lsmr_opts o = defaults();
    CHECK_OK(ctx, solve_one(ctx, &a.csr, b, x, &o, &column));
    CHECK_INT(column.iterations, 3);
    CHECK_INT(column.stop, FRG_LSMR_CONSISTENT);
    check_close(x, want, 30, 1e-13, "diagonal");
    a.csr.n = 1; /* group mean: every row in one column of ones */
    a.csr.values = NULL;
    memset(a.columns, 0, 30 * sizeof *a.columns);
    CHECK_OK(ctx, solve_one(ctx, &a.csr, b, x, &o, &column));
    CHECK_INT(column.iterations, 1);
    CHECK_NEAR(x[0], 7, 1e-15);
    sparse_free(a);
    frg_context_destroy(ctx);
}

/** Nothing to do is success: b = 0, and b orthogonal to the columns. */
static void zero_and_orthogonal(void)
{
    frg_context *const ctx = test_context();
    sparse a = sparse_new(4, 2, 2); /* columns e1 and e2 */
    const int64_t starts[] = {0, 1, 2, 2, 2};
    memcpy(a.starts, starts, sizeof starts);
    a.columns[1] = 1;
    a.values[0] = a.values[1] = 1;
    const double b[4 * 3] = {0, 0, 1, 0, 0, 2, 0, 5, 3, 0, -1, 4};
    double x[2 * 3];
    memset(x, 1, sizeof x);
    frg_lsmr_column columns[3];
    frg_info info;
    CHECK_OK(ctx, frg_lsmr_solve(ctx, NULL, &a.csr, frg_matrix(b, FRG_F64, 4, 3, 3), NULL,
                                 frg_matrix(x, FRG_F64, 2, 3, 3), NULL, columns, &info));
    for (int c = 0; c < 2; c++) {
        CHECK_INT(columns[c].stop, FRG_LSMR_ZERO);
        CHECK_INT(columns[c].iterations, 0);
        CHECK(x[c] == 0 && x[3 + c] == 0);
    }
    CHECK_NEAR(x[2], 1, 1e-15);
    CHECK_NEAR(x[5], 2, 1e-15);
    CHECK_NEAR(columns[2].norm_r, 5, 1e-14);
    CHECK_NEAR(columns[1].norm_r, sqrt(26), 1e-14);
    CHECK_INT(info.iterations, columns[2].iterations);
    sparse_free(a);
    frg_context_destroy(ctx);
}

/** Columns scaled apart by 1e6 need many steps, scaled to norm 1 few. */
static void diagonal_preconditioner(void)
{
    frg_context *const ctx = test_context();
    sparse a = random_sparse(400, 40, 4, 6);
    double *const b = numbers(400), plain[40], scaled[40];
    frg_lsmr_opts o = defaults();
    o.atol = o.btol = 1e-12;
    frg_lsmr_column slow, fast;
    o.max_iter = 100000;
    o.precond = FRG_PRECOND_DIAGONAL;
    CHECK_OK(ctx, solve_one(ctx, &a.csr, b, scaled, &o, &fast));
    o.precond = FRG_PRECOND_NONE;
    CHECK(solve_one(ctx, &a.csr, b, plain, &o, &slow) >= 0);
    CHECK_SAYS(fast.iterations * 3 < slow.iterations, "%" PRId64 " steps scaled, %" PRId64 " not",
               fast.iterations, slow.iterations);
    double want[40];
    dense_least_squares(&a.csr, NULL, 0, b, want);
    check_close(scaled, want, 40, 1e-8, "scaled columns");
    free(b);
    sparse_free(a);
    frg_context_destroy(ctx);
}

/* ---- operators, layouts, bits ---------------------------------------------------------------- */

static void operator_times(const void *data, int64_t k, const double *x, double *y)
{
    const frg_csr *const a = data;
    memset(y, 0, (size_t)(a->m * k) * sizeof *y);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t e = a->starts[i]; e < a->starts[i + 1]; e++)
            for (int64_t c = 0; c < k; c++)
                y[i * k + c] += entry(a, e) * x[a->columns[e] * k + c];
}

static void operator_transposed(const void *data, int64_t k, const double *y, double *x)
{
    const frg_csr *const a = data;
    memset(x, 0, (size_t)(a->n * k) * sizeof *x);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t e = a->starts[i]; e < a->starts[i + 1]; e++)
            for (int64_t c = 0; c < k; c++)
                x[a->columns[e] * k + c] += entry(a, e) * y[i * k + c];
}

/** The same problem by products and by entries, in rows and in columns of memory. */
static void operators_and_layouts(void)
{
    frg_context *const ctx = test_context();
    enum { M = 120, N = 25, P = 3 };
    sparse a = random_sparse(M, N, 4, 0);
    double *const b = numbers(M * P), *const w = numbers(M);
    double by_rows[N * P], by_columns[N * P], transposed[M * P], x[N * P];
    for (int i = 0; i < M; i++) {
        w[i] = 0.5 + fabs(w[i]);
        for (int c = 0; c < P; c++)
            transposed[c * M + i] = b[i * P + c];
    }
    const frg_array weights = frg_vector(w, FRG_F64, M);
    frg_lsmr_column columns[P];
    /* the operator's sums are rounded otherwise and may end a step apart: at 1e-13 that is kappa^2
     * 1e-13 of x, kappa below 100 */
    frg_lsmr_opts o = defaults();
    o.atol = o.btol = 1e-13;
    CHECK_OK(ctx, frg_lsmr_solve(ctx, NULL, &a.csr, frg_matrix(b, FRG_F64, M, P, P), &weights,
                                 frg_matrix(by_rows, FRG_F64, N, P, P), &o, columns, NULL));
    CHECK_OK(ctx, frg_lsmr_solve(
                      ctx, NULL, &a.csr, frg_matrix_columns(transposed, FRG_F64, M, P, M), &weights,
                      frg_matrix_columns(by_columns, FRG_F64, N, P, N), &o, columns, NULL));
    for (int j = 0; j < N; j++)
        for (int c = 0; c < P; c++)
            CHECK(by_rows[j * P + c] == by_columns[c * N + j]);
    const frg_operator op = {M, N, operator_times, operator_transposed, &a.csr};
    CHECK_OK(ctx, frg_lsmr_solve(ctx, &op, NULL, frg_matrix(b, FRG_F64, M, P, P), &weights,
                                 frg_matrix(x, FRG_F64, N, P, P), &o, columns, NULL));
    check_close(x, by_rows, N * P, 1e-9, "operator");
    free(b);
    free(w);
    sparse_free(a);
    frg_context_destroy(ctx);
}

/** 33 columns that stop at different times, one of them zero: the same bits for every width of the
 *  block and every number of threads.  5000 rows are three chunks. */
static void check_same_bits(double damp)
{
    enum { M = 5000, N = 300, P = 33 };
    sparse a = random_sparse(M, N, 3, 0.3);
    double *const b = numbers((int64_t)M * P), *const first = calloc((size_t)N * P, sizeof(double));
    double *const x = calloc((size_t)N * P, sizeof(double));
    for (int i = 0; i < M; i++) {
        b[i * P + 4] = 0;
        for (int e = 0; e < 3; e++) /* consistent columns stop early */
            b[i * P + 7] = e ? b[i * P + 7] + a.values[3 * i + e] : a.values[3 * i];
    }
    frg_lsmr_column reference[P], columns[P];
    const int widths[] = {1, 2, 3, 5, 8, 16, 32};
    const int threads[] = {1, 2, 3, 8};
    for (int t = 0; t < 4; t++) {
        frg_context *const ctx = test_context_with(threads[t], NULL, NULL);
        for (int w = t ? 3 : 0; w < (t ? 5 : 7); w++) {
            frg_lsmr_opts o = defaults();
            o.block = widths[w];
            o.precond = FRG_PRECOND_DIAGONAL;
            o.damp = damp;
            const bool is_first = t == 0 && w == 0;
            memset(columns, 0, sizeof columns);
            CHECK_OK(ctx, frg_lsmr_solve(ctx, NULL, &a.csr, frg_matrix(b, FRG_F64, M, P, P), NULL,
                                         frg_matrix(is_first ? first : x, FRG_F64, N, P, P), &o,
                                         is_first ? reference : columns, NULL));
            if (is_first)
                continue;
            CHECK_BITS(x, first, (size_t)N * P * sizeof(double));
            for (int c = 0; c < P; c++) {
                CHECK(columns[c].stop == reference[c].stop);
                CHECK_INT(columns[c].iterations, reference[c].iterations);
                CHECK_BITS(&columns[c].norm_ar, &reference[c].norm_ar, sizeof(double));
            }
        }
        frg_context_destroy(ctx);
    }
    int64_t fewest = 1000, most = 0;
    for (int c = 0; c < P; c++) {
        fewest = reference[c].iterations < fewest ? reference[c].iterations : fewest;
        most = reference[c].iterations > most ? reference[c].iterations : most;
    }
    CHECK_SAYS(fewest == 0 && most > 5, "columns stop after %" PRId64 " to %" PRId64, fewest, most);
    free(b);
    free(first);
    free(x);
    sparse_free(a);
}

static void same_bits(void)
{
    check_same_bits(0);
    check_same_bits(0.3);
}

/** b times 2^e gives x times 2^e to the bit, as far as the exponents go. */
static void scales(void)
{
    frg_context *const ctx = test_context();
    enum { M = 90, N = 20 };
    sparse a = random_sparse(M, N, 3, 1);
    double *const b = numbers(M), x[N], scaled[N];
    frg_lsmr_column one, two;
    const frg_lsmr_opts o = defaults();
    CHECK_OK(ctx, solve_one(ctx, &a.csr, b, x, &o, &one));
    const int exponents[] = {-500, -1, 3, 500, 900};
    for (int s = 0; s < 5; s++) {
        double c[M];
        for (int i = 0; i < M; i++)
            c[i] = ldexp(b[i], exponents[s]);
        CHECK_OK(ctx, solve_one(ctx, &a.csr, c, scaled, &o, &two));
        CHECK_INT(two.iterations, one.iterations);
        for (int j = 0; j < N; j++)
            CHECK(scaled[j] == ldexp(x[j], exponents[s]));
        CHECK(two.norm_r == ldexp(one.norm_r, exponents[s]));
    }
    free(b);
    sparse_free(a);
    frg_context_destroy(ctx);
}

/* ---- the preconditioned form ----------------------------------------------------------------- */

typedef struct {
    const double *diagonal; /* of P^-1 */
    int64_t n;
    long double *gram; /* or A'A, n x n + 1 columns of work */
    const frg_csr *a;
} preconditioner;

static void divide(const void *data, int64_t k, const double *p, double *v)
{
    const preconditioner *const d = data;
    for (int64_t i = 0; i < d->n; i++)
        for (int64_t c = 0; c < k; c++)
            v[i * k + c] = d->diagonal[i] * p[i * k + c];
}

static void exact(const void *data, int64_t k, const double *p, double *v)
{
    const preconditioner *const d = data;
    const int64_t n = d->n;
    for (int64_t c = 0; c < k; c++) {
        memset(d->gram, 0, (size_t)(n * (n + 1)) * sizeof *d->gram);
        for (int64_t i = 0; i < d->a->m; i++)
            for (int64_t e = d->a->starts[i]; e < d->a->starts[i + 1]; e++)
                for (int64_t f = d->a->starts[i]; f < d->a->starts[i + 1]; f++)
                    d->gram[d->a->columns[e] * (n + 1) + d->a->columns[f]] +=
                        (long double)entry(d->a, e) * entry(d->a, f);
        double x[40];
        for (int64_t i = 0; i < n; i++)
            d->gram[i * (n + 1) + n] = p[i * k + c];
        eliminate(n, d->gram, x);
        for (int64_t i = 0; i < n; i++)
            v[i * k + c] = x[i];
    }
}

/** Runs the engine itself on k right-hand sides. */
static void run_engine(frg_context *ctx, const frg_csr *a, int64_t k, const double *b, double *x,
                       void (*precond)(const void *, int64_t, const double *, double *),
                       const preconditioner *data, frg_lsmr_column *columns)
{
    frgi_lsmr s = {.m = a->m, .n = a->n, .k = k};
    frgi_csr_pair pair = {.m = a->m, .n = a->n, .nnz = a->starts[a->m]};
    frgi_arena memory = {0};
    frgi_lsmr_layout(&memory, &s);
    frgi_csr_pair_layout(&memory, &pair);
    if (!CHECK_OK(ctx, frgi_arena_open(&memory, ctx, "test")))
        return;
    frgi_lsmr_layout(&memory, &s);
    frgi_csr_pair_layout(&memory, &pair);
    frgi_csr_pair_fill(&pair, ctx, a, NULL, NULL);
    const frgi_lsmr_operator op = {frgi_csr_pair_times, frgi_csr_pair_transposed, &pair, precond,
                                   data};
    const frgi_lsmr_rule rule = {.atol = 1e-12, .btol = 1e-12, .max_iter = 500};
    const size_t held = frg_bytes_held(ctx);
    frgi_lsmr_start(&s, ctx, &op, &rule, b, columns);
    while (!frgi_lsmr_done(&s))
        CHECK_OK(ctx, frgi_lsmr_step(&s));
    frgi_lsmr_finish(&s, x);
    CHECK(frg_bytes_held(ctx) == held);
    frgi_arena_close(&memory, ctx);
}

/** P = A'A ends after one step; P = diag(A'A) takes the steps of scaled columns and gives their
 *  answer. */
static void preconditioned(void)
{
    frg_context *const ctx = test_context();
    enum { M = 150, N = 20, K = 3 };
    sparse a = random_sparse(M, N, 3, 2);
    double *const b = numbers(M * K), x[N * K], want[N], one[N], squares[N] = {0};
    long double work[N * (N + 1)];
    const preconditioner p = {squares, N, work, &a.csr};
    for (int64_t e = 0; e < a.starts[M]; e++)
        squares[a.columns[e]] += a.values[e] * a.values[e];
    for (int j = 0; j < N; j++)
        squares[j] = 1 / squares[j];
    frg_lsmr_column columns[K];
    run_engine(ctx, &a.csr, K, b, x, exact, &p, columns);
    for (int c = 0; c < K; c++) {
        double rhs[M];
        for (int i = 0; i < M; i++)
            rhs[i] = b[i * K + c];
        dense_least_squares(&a.csr, NULL, 0, rhs, want);
        for (int j = 0; j < N; j++)
            one[j] = x[j * K + c];
        check_close(one, want, N, 1e-9, "exact preconditioner");
        CHECK_INT(columns[c].iterations, 1);
        CHECK_INT(columns[c].stop, FRG_LSMR_LEAST_SQUARES);
    }
    run_engine(ctx, &a.csr, 1, b, x, divide, &p, columns);
    frg_lsmr_opts o = defaults();
    o.atol = o.btol = 1e-12;
    o.precond = FRG_PRECOND_DIAGONAL;
    frg_lsmr_column scaled;
    CHECK_OK(ctx, solve_one(ctx, &a.csr, b, one, &o, &scaled));
    CHECK(llabs(scaled.iterations - columns[0].iterations) <= 1);
    check_close(x, one, N, 1e-9, "diagonal preconditioner");
    free(b);
    sparse_free(a);
    frg_context_destroy(ctx);
}

/* ---- refusals, interruptions, faults --------------------------------------------------------- */

static void bad_input(void)
{
    frg_context *const ctx = test_context();
    enum { M = 6, N = 3 };
    sparse a = random_sparse(M, N, 2, 0);
    double b[M] = {1, 2, 3, 4, 5, 6}, x[N] = {7, 7, 7}, w[M] = {1, 1, 1, 1, 1, 1};
    const frg_operator op = {M, N, operator_times, operator_transposed, &a.csr};
    frg_array bv = frg_vector(b, FRG_F64, M), xv = frg_vector(x, FRG_F64, N);
    const frg_array wv = frg_vector(w, FRG_F64, M), short_x = frg_vector(x, FRG_F64, N - 1);
    frg_lsmr_opts o = defaults();
    CHECK_STATUS(frg_lsmr_solve(ctx, &op, &a.csr, bv, NULL, xv, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_lsmr_solve(ctx, NULL, NULL, bv, NULL, xv, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_lsmr_solve(ctx, NULL, &a.csr, bv, NULL, short_x, NULL, NULL, NULL),
                 FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-007");
    CHECK_STATUS(
        frg_lsmr_solve(ctx, NULL, &a.csr, frg_vector(b, FRG_F32, M), NULL, xv, NULL, NULL, NULL),
        FRG_BAD_ARG);
    o.block = 33;
    CHECK_STATUS(frg_lsmr_solve(ctx, NULL, &a.csr, bv, NULL, xv, &o, NULL, NULL), FRG_BAD_ARG);
    o = defaults();
    o.damp = NAN;
    CHECK_STATUS(frg_lsmr_solve(ctx, NULL, &a.csr, bv, NULL, xv, &o, NULL, NULL), FRG_BAD_ARG);
    o.damp = 1;
    o.precond = FRG_PRECOND_DIAGONAL;
    CHECK_STATUS(frg_lsmr_solve(ctx, &op, NULL, bv, NULL, xv, &o, NULL, NULL), FRG_UNSUPPORTED);
    CHECK(strstr(frg_message(ctx), "csr") != NULL);
    w[3] = -1;
    CHECK_STATUS(frg_lsmr_solve(ctx, NULL, &a.csr, bv, &wv, xv, NULL, NULL, NULL), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "row 4") != NULL);
    b[1] = INFINITY;
    CHECK_STATUS(frg_lsmr_solve(ctx, NULL, &a.csr, bv, NULL, xv, NULL, NULL, NULL), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "row 2") != NULL);
    b[1] = 2;
    a.columns[5] = N;
    CHECK_STATUS(frg_lsmr_solve(ctx, NULL, &a.csr, bv, NULL, xv, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "row 3") != NULL);
    CHECK(x[0] == 7 && x[1] == 7 && x[2] == 7);
    a.columns[5] = 0;
    const frg_array none = frg_matrix(b, FRG_F64, M, 0, 0),
                    nothing = frg_matrix(x, FRG_F64, N, 0, 0);
    CHECK_OK(ctx, frg_lsmr_solve(ctx, NULL, &a.csr, none, NULL, nothing, NULL, NULL, NULL));
    sparse_free(a);
    frg_context_destroy(ctx);
}

typedef struct {
    int64_t calls, stop_at;
} counter;

static int count_calls(const frg_progress *p, void *user)
{
    counter *const c = user;
    CHECK(p->total == 1000 && p->done >= 1);
    return ++c->calls == c->stop_at;
}

/** Stopped in the second block: the first is done, the second has its iterate, the third is
 *  zero. */
static void interruption(void)
{
    enum { M = 200, N = 40, P = 3 };
    sparse a = random_sparse(M, N, 4, 0);
    double *const b = numbers(M * P), x[N * P];
    memset(x, 1, sizeof x);
    frg_lsmr_column columns[P], alone;
    frg_context *const plain = test_context();
    double first[N], b0[M];
    for (int i = 0; i < M; i++)
        b0[i] = b[i * P];
    CHECK_OK(plain, solve_one(plain, &a.csr, b0, first, NULL, &alone));
    frg_context_destroy(plain);
    counter c = {.stop_at = alone.iterations + 2};
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.on_progress = count_calls;
    o.user = &c;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    frg_lsmr_opts l = defaults();
    l.block = 1;
    CHECK_STATUS(frg_lsmr_solve(ctx, NULL, &a.csr, frg_matrix(b, FRG_F64, M, P, P), NULL,
                                frg_matrix(x, FRG_F64, N, P, P), &l, columns, NULL),
                 FRG_INTERRUPTED);
    CHECK_INT(columns[0].stop, FRG_LSMR_LEAST_SQUARES);
    CHECK_INT(columns[1].stop, FRG_LSMR_RUNNING);
    CHECK_INT(columns[1].iterations, 2);
    CHECK_INT(columns[2].iterations, 0);
    for (int j = 0; j < N; j++)
        CHECK(x[j * P] == first[j] && isfinite(x[j * P + 1]) && x[j * P + 2] == 0);
    free(b);
    sparse_free(a);
    frg_context_destroy(ctx);
}

typedef struct {
    const frg_csr *a;
    frg_context *ctx;
    int64_t *calls;
    int64_t stop_at; /* the call of either product in which the run is stopped */
} stopping;

static bool stops_now(const stopping *s)
{
    if (++*s->calls == s->stop_at)
        frg_interrupt(s->ctx);
    return *s->calls == s->stop_at;
}

/** The product in which the run is stopped is left unfinished, as products over the rows are. */
static void stopping_times(const void *data, int64_t k, const double *x, double *y)
{
    const stopping *const s = data;
    operator_times(s->a, k, x, y);
    if (stops_now(s))
        memset(y, 0, (size_t)(s->a->m * k) * sizeof *y);
}

static void stopping_transposed(const void *data, int64_t k, const double *y, double *x)
{
    const stopping *const s = data;
    operator_transposed(s->a, k, y, x);
    if (stops_now(s))
        memset(x, 0, (size_t)(s->a->n * k) * sizeof *x);
}

/** Stopped in the first product of a step or in its second: the step is given up, and the answer is
 *  that of the steps before to the last bit.  Products: A'u of the start, then A v and A'u of each
 *  step. */
static void stopped_within_a_step(void)
{
    enum { M = 200, N = 40, STEPS = 5, PLACES = 3 };
    static const int64_t stop_at[PLACES] = {0 /* never */, 1 + 2 * STEPS + 1, 1 + 2 * STEPS + 2};
    sparse a = random_sparse(M, N, 4, 0);
    double *const b = numbers(M), x[PLACES][N];
    for (int i = 0; i < PLACES; i++) {
        int64_t calls = 0;
        frg_context *ctx = test_context();
        const stopping s = {&a.csr, ctx, &calls, stop_at[i]};
        const frg_operator op = {
            .m = M, .n = N, .times = stopping_times, .transposed = stopping_transposed, .data = &s};
        frg_lsmr_opts l = defaults();
        frg_lsmr_column column;
        l.max_iter = stop_at[i] ? l.max_iter : STEPS;
        CHECK_STATUS(frg_lsmr_solve(ctx, &op, NULL, frg_vector(b, FRG_F64, M), NULL,
                                    frg_vector(x[i], FRG_F64, N), &l, &column, NULL),
                     stop_at[i] ? FRG_INTERRUPTED : FRG_MAX_ITER);
        CHECK_INT(column.iterations, STEPS);
        CHECK_INT(column.stop, stop_at[i] ? FRG_LSMR_RUNNING : FRG_LSMR_MAX_ITER);
        CHECK(memcmp(x[i], x[0], sizeof x[i]) == 0);
        frg_context_destroy(ctx);
    }
    free(b);
    sparse_free(a);
}

typedef struct {
    const frg_csr *a;
    int *calls;
} drifting;

/** An operator that is another one, 1e-5 away, at every call: the recurrence comes to believe in a
 *  gradient of 1e-10, the products of the answer say 1e-5. */
static void drifting_times(const void *data, int64_t k, const double *x, double *y)
{
    const drifting *const d = data;
    operator_times(d->a, k, x, y);
    const int call = ++*d->calls;
    for (int64_t i = 0; i < d->a->m; i++)
        for (int64_t c = 0; c < k; c++)
            y[i * k + c] *= 1 + 1e-5 * sin((double)(i * call));
}

static void drifting_transposed(const void *data, int64_t k, const double *y, double *x)
{
    operator_transposed(((const drifting *)data)->a, k, y, x);
}

static void audit_refuses(void)
{
    frg_context *const ctx = test_context();
    enum { M = 80, N = 10 };
    sparse a = random_sparse(M, N, 3, 0);
    double *const b = numbers(M), x[N];
    int calls = 0;
    const drifting d = {&a.csr, &calls};
    const frg_operator op = {M, N, drifting_times, drifting_transposed, &d};
    const frg_lsmr_opts o = defaults();
    frg_lsmr_column column;
    CHECK_STATUS(frg_lsmr_solve(ctx, &op, NULL, frg_vector(b, FRG_F64, M), NULL,
                                frg_vector(x, FRG_F64, N), &o, &column, NULL),
                 FRG_MAX_ITER);
    CHECK_INT(column.stop, FRG_LSMR_REFUSED);
    free(b);
    sparse_free(a);
    frg_context_destroy(ctx);
}

static frg_status sweep_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const frg_csr *const a = user;
    const frg_operator op = {a->m, a->n, operator_times, operator_transposed, a};
    double b[60 * 2], x[10 * 2];
    for (int i = 0; i < 120; i++)
        b[i] = i % 11 - 4;
    for (int kind = 0; kind < 2; kind++) {
        const frg_status status = frg_lsmr_solve(
            ctx, kind ? &op : NULL, kind ? NULL : a, frg_matrix(b, FRG_F64, 60, 2, 2), NULL,
            frg_matrix(x, FRG_F64, 10, 2, 2), NULL, NULL, NULL);
        if (status < 0)
            return status;
        fault_hash(hash, x, sizeof x);
    }
    return FRG_OK;
}

static void failing_allocations(void)
{
    sparse a = random_sparse(60, 10, 3, 0);
    CHECK(fault_sweep("lsmr", sweep_body, (void *)&a.csr, 1) >= 2);
    sparse_free(a);
}

static const test_case cases[] = {
    {"closed forms", closed_forms},
    {"zero and orthogonal", zero_and_orthogonal},
    {"definition", definition},
    {"scipy", scipy_golden},
    {"against dense", against_dense},
    {"diagonal preconditioner", diagonal_preconditioner},
    {"operators and layouts", operators_and_layouts},
    {"same bits", same_bits},
    {"scales", scales},
    {"preconditioned form", preconditioned},
    {"bad input", bad_input},
    {"interruption", interruption},
    {"stopped within a step", stopped_within_a_step},
    {"audit refuses", audit_refuses},
    {"failing allocations", failing_allocations},
};
TEST_MAIN(cases)
