/* test_gp_terrain.c - 5589 heights of real ground against the exact answer that a grid has.
 *
 * On a grid of m by l cells an rbf with a lengthscale each way is a product, and with A = U diag(a)
 * U', B = V diag(b) V'
 *
 *     K = f A (x) B + s I,   Z = U' Y V, ell = -1/2 sum_ij [ Z_ij^2 / t_ij + log t_ij + log 2 pi ],
 *                            t_ij = f a_i b_j + s
 *     d ell/dlog s = s/2 sum_ij (Z_ij^2 / t_ij^2 - 1 / t_ij),   d ell/dlog f: the same with f a_i
 *                                                               b_j in the place of s
 *
 * m^3 + l^3 flop (cyclic Jacobi), which knows nothing of the library.  cond(K) is below f m l / s =
 * 1e5 and n u of it 6e-8; errors being independent 1e-9 of the terms' sum holds in f64.  In f32 the
 * library says itself what it is worth.
 */
#include "fourge/table.h"
#include "gp_data.h"

enum { ROWS = 69, COLUMNS = 81, N = ROWS * COLUMNS, SWEEPS = 30 };

static const double F = 1.5, S = 0.08, SOUTH = 0.02, EAST = 0.03;

typedef struct {
    int64_t rows, columns, n; /* what is kept of the grid: all, or a corner for slow builds */
    double x[2 * N], y[N];    /* south, east; standardised heights */
} terrain;

static bool load(terrain *t)
{
    static const char *const names[] = {"south", "east", "height"};
    frg_context *ctx = test_context();
    frg_table *table = NULL;
    t->rows = test_size(ROWS, 7);
    t->columns = test_size(COLUMNS, 9);
    t->n = 0;
    if (!CHECK_OK(ctx, frg_table_read(&table, ctx, FOURGE_SOURCE_DIR "/data/terrain.csv", NULL)) ||
        !CHECK_INT(frg_table_rows(table), N)) {
        frg_context_destroy(ctx);
        return false;
    }
    double sum = 0, square = 0;
    for (int64_t i = 0; i < N; i++) {
        double v[3];
        for (int k = 0; k < 3; k++) {
            const frg_column *const c = frg_table_find(table, names[k]);
            v[k] = c->numbers ? c->numbers[i] : (double)c->integers[i];
        }
        if (i / COLUMNS < t->rows && i % COLUMNS < t->columns) {
            memcpy(t->x + 2 * t->n, v, 2 * sizeof *v);
            t->y[t->n++] = v[2];
            sum += v[2];
        }
    }
    for (int64_t i = 0; i < t->n; i++) {
        t->y[i] -= sum / (double)t->n;
        square += t->y[i] * t->y[i];
    }
    for (int64_t i = 0; i < t->n; i++) {
        t->y[i] /= sqrt(square / (double)t->n);
    }
    frg_table_destroy(table);
    frg_context_destroy(ctx);
    return true;
}

/* ---- the answer of the grid ------------------------------------------------------------------ */

/** Turns rows and columns p, q of a (n x n) so that a_pq = 0; v collects the turns. */
static void turn(int64_t n, double *a, double *v, int64_t p, int64_t q)
{
    if (fabs(a[p * n + q]) < 1e-300) {
        return;
    }
    const double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
    const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1), s = t * c;
    for (int64_t k = 0; k < n; k++) {
        const double x = a[k * n + p], y = a[k * n + q];
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for (int64_t k = 0; k < n; k++) {
        const double x = a[p * n + k], y = a[q * n + k], e = v[k * n + p], f = v[k * n + q];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
        v[k * n + p] = c * e - s * f;
        v[k * n + q] = s * e + c * f;
    }
}

/** The eigenvectors (columns of v) and eigenvalues of exp(-(x_i - x_j)^2 / 2 l^2). */
static void decompose(int64_t n, const double *x, int64_t step, double l, double *v, double *value)
{
    static double a[COLUMNS * COLUMNS];
    for (int64_t i = 0; i < n * n; i++) {
        const double gap = (x[i / n * step] - x[i % n * step]) / l;
        a[i] = exp(-0.5 * gap * gap);
        v[i] = i / n == i % n;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (int64_t p = 0; p < n; p++) {
            for (int64_t q = p + 1; q < n; q++) {
                turn(n, a, v, p, q);
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        value[i] = a[i * n + i];
    }
}

typedef struct {
    double value, by_scale, by_noise, terms; /* terms: sum of what is added for value */
} answer;

static answer of_grid(const terrain *t)
{
    static double u[COLUMNS * COLUMNS], v[COLUMNS * COLUMNS], a[COLUMNS], b[COLUMNS], half[N];
    const int64_t m = t->rows, l = t->columns;
    answer r = {.value = 0};
    decompose(m, t->x, 2 * l, SOUTH, u, a);
    decompose(l, t->x + 1, 2, EAST, v, b);
    for (int64_t i = 0; i < m; i++) { /* half = U'Y */
        for (int64_t j = 0; j < l; j++) {
            half[i * l + j] = 0;
            for (int64_t k = 0; k < m; k++) {
                half[i * l + j] += u[k * m + i] * t->y[k * l + j];
            }
        }
    }
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < l; j++) {
            double z = 0;
            for (int64_t k = 0; k < l; k++) {
                z += half[i * l + k] * v[k * l + j];
            }
            const double c = F * a[i] * b[j], total = c + S;
            const double slope = 0.5 * (z * z / (total * total) - 1 / total);
            r.value -= 0.5 * (z * z / total + log(total) + 1.8378770664093454836);
            r.terms += 0.5 * (z * z / total + fabs(log(total)) + 1.8378770664093454836);
            r.by_scale += slope * c;
            r.by_noise += slope * S;
        }
    }
    return r;
}

/* ---- the library ----------------------------------------------------------------------------- */

static void against_the_grid(frg_gp_precision precision, bool slopes)
{
    static terrain t;
    frg_context *ctx = test_context();
    frg_gp_opts o = gp_data_opts("zero");
    frg_gp *gp = NULL;
    frg_gp_value v;
    double gradient[4];
    char kernel[80];
    o.precision = precision;
    snprintf(kernel, sizeof kernel, "%g*rbf(l=[%g,%g]) + noise(%g)", F, SOUTH, EAST, S);
    if (load(&t) &&
        CHECK_OK(ctx, frg_gp_create(&gp, ctx, frg_matrix(t.x, FRG_F64, t.n, 2, 2),
                                    frg_vector(t.y, FRG_F64, t.n), kernel, &o)) &&
        CHECK_OK(ctx, slopes ? frg_gp_eval_gradient(gp, gradient, NULL, NULL, &v)
                             : frg_gp_eval(gp, &v))) {
        const answer want = of_grid(&t);
        const double error = fabs(v.log_likelihood - want.value);
        CHECK_SAYS(error <= (precision == FRG_GP_F32 ? v.error_estimate : 1e-9 * want.terms),
                   "ell %.12g, expected %.12g", v.log_likelihood, want.value);
        CHECK_SAYS(error <= v.error_estimate, "error %g, estimate %g", error, v.error_estimate);
        const double got[] = {gradient[0], gradient[3]}, slope[] = {want.by_scale, want.by_noise};
        for (int k = 0; slopes && k < 2; k++) { /* in f32 the accuracy that is asked of ell */
            CHECK_SAYS(fabs(got[k] - slope[k]) <= 1e-3 * want.terms,
                       "%d: slope %.9g, expected %.9g", k, got[k], slope[k]);
        }
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void mixed(void)
{
    against_the_grid(FRG_GP_MIXED, true);
}

static void single(void)
{
    against_the_grid(FRG_GP_F32, false);
}

static const test_case cases[] = {
    {"the value in f64, the gradient in f32", mixed},
    {"the value in f32", single},
};
TEST_MAIN(cases)
