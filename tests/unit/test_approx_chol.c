/* test_approx_chol.c - the approximate Cholesky factor: exact where it must be, symmetric, a
 * preconditioner that conjugate gradients need few steps with. */
#include "unit/laplacians.h"

#include "sparse/approx_chol.h"

/* ---- graphs ---------------------------------------------------------------------------------- */

static double inner(int64_t n, const double *x, const double *y)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += x[i] * y[i];
    return s;
}

static matrix grid(int32_t g, bool rough)
{
    edge *const e = malloc(2 * (size_t)g * (size_t)g * sizeof *e);
    int64_t m = 0;
    for (int32_t i = 0; i < g; i++)
        for (int32_t j = 0; j < g; j++) {
            const double w = rough ? exp(3 * test_normal()) : 1;
            if (i + 1 < g)
                e[m++] = (edge){i * g + j, (i + 1) * g + j, w};
            if (j + 1 < g)
                e[m++] = (edge){i * g + j, i * g + j + 1, w};
        }
    const matrix a = laplacian((int64_t)g * g, e, m, NULL);
    free(e);
    return a;
}

static matrix ring(int32_t n, int32_t w)
{
    edge *const e = malloc((size_t)n * (size_t)w * sizeof *e);
    int64_t m = 0;
    for (int32_t i = 0; i < n; i++)
        for (int32_t d = 1; d <= w; d++)
            e[m++] = (edge){i, (i + d) % n, 0.5 + test_uniform()};
    const matrix a = laplacian(n, e, m, NULL);
    free(e);
    return a;
}

/** Every vertex chooses `degree` others; power 1: uniformly, more: early ones are preferred. */
static matrix expander(int32_t n, int degree, double power)
{
    edge *const e = malloc((size_t)n * (size_t)(degree + 1) * sizeof *e);
    int64_t m = 0;
    for (int32_t i = 0; i < n; i++) {
        e[m++] = (edge){i, (i + 1) % n, 1};
        for (int d = 0; d < degree; d++)
            e[m++] = (edge){i, (int32_t)(n * pow(test_uniform(), power)), 1};
    }
    const matrix a = laplacian(n, e, m, NULL);
    free(e);
    return a;
}

static frgi_ac *made(frg_context *ctx, matrix a, int split, uint64_t seed)
{
    frgi_ac_opts o;
    frgi_ac_defaults(&o);
    o.split = split;
    o.seed = seed;
    const frgi_symmetric s = view(a);
    frgi_ac *f = NULL;
    CHECK_OK(ctx, frgi_ac_create(&f, ctx, &s, &o));
    return f;
}

static void apply(const frgi_ac *f, int64_t k, const double *b, double *x)
{
    double *const scratch = malloc(frgi_ac_scratch(f, k) * sizeof *scratch);
    frgi_ac_apply(f, k, b, x, scratch);
    free(scratch);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/** On a forest no edge is ever sampled: P is A.  Errors: a path of n edges adds up n roundings of
 *  numbers as large as the potential differences. */
static void forests(void)
{
    frg_context *const ctx = test_context();
    for (int trial = 0; trial < 20; trial++) {
        const int32_t n = (int32_t)(1 + test_below(300)),
                      parts = (int32_t)(1 + test_below(n < 4 ? n : 4));
        edge e[300];
        int64_t m = 0;
        for (int32_t i = parts; i < n; i++) { /* paths, stars and random trees */
            const int64_t choices = i / parts;
            const int64_t up = trial % 3 == 0   ? choices - 1
                               : trial % 3 == 1 ? 0
                                                : test_below(choices);
            e[m++] = (edge){i, i % parts + parts * (int32_t)up, exp(test_normal())};
        }
        const matrix a = laplacian(n, e, m, NULL);
        for (int split = 1; split <= 2; split++) {
            frgi_ac *const f = made(ctx, a, split, 5);
            if (!f)
                continue;
            CHECK_INT(frgi_ac_components(f), parts);
            CHECK_INT(frgi_ac_grounded(f), 0);
            double *const truth = numbers(n), *const b = numbers(n), *const x = numbers(n);
            double largest = 1;
            for (int32_t q = 0; q < parts; q++) { /* mean-free by component */
                double sum = 0, count = 0;
                for (int32_t i = q; i < n; i += parts, count++)
                    sum += truth[i];
                for (int32_t i = q; i < n; i += parts)
                    truth[i] -= sum / count;
            }
            multiply(a, 1, truth, b);
            apply(f, 1, b, x);
            for (int32_t i = 0; i < n; i++)
                largest = fmax(largest, fabs(truth[i]));
            for (int32_t i = 0; i < n; i++)
                CHECK_NEAR(x[i] / largest, truth[i] / largest, n * 1e-13);
            free(truth);
            free(b);
            free(x);
            frgi_ac_destroy(f);
        }
        matrix_free(a);
    }
    frg_context_destroy(ctx);
}

/** A tree with surplus is not a tree with the ground any more, but a vertex of its own is: x = b /
 *  surplus; and a path grounded at one end is one: potentials are sums of currents times
 *  resistances. */
static void grounded(void)
{
    frg_context *const ctx = test_context();
    const double surplus[] = {2, 0, 0, 0};
    const edge e[] = {{0, 1, 1}, {1, 2, 0.5}};
    const matrix a = laplacian(4, e, 2, surplus);
    frgi_ac *const f = made(ctx, a, 2, 0);
    if (f) {
        const double b[] = {0, 0, 3, 5};
        double x[4];
        apply(f, 1, b, x);
        CHECK_INT(frgi_ac_components(f), 2);
        CHECK_INT(frgi_ac_grounded(f), 1);
        CHECK_NEAR(x[0], 1.5, 1e-15);
        CHECK_NEAR(x[1], 4.5, 1e-15);
        CHECK_NEAR(x[2], 10.5, 1e-15);
        CHECK(x[3] == 0); /* an isolated vertex: its mean-free part */
    }
    frgi_ac_destroy(f);
    matrix_free(a);
    frg_context_destroy(ctx);
}

/** y'P x = x'P y, x'P x > 0 for mean-free x, and constants go to 0. */
static void symmetric(void)
{
    frg_context *const ctx = test_context();
    const matrix graphs[] = {grid(25, true), expander(500, 3, 1), ring(400, 6),
                             expander(500, 4, 3)};
    for (int g = 0; g < 4; g++) {
        const int64_t n = graphs[g].n;
        frgi_ac *const f = made(ctx, graphs[g], 1 + g % 2, 3);
        double *const x = numbers(n), *const y = numbers(n), *const px = numbers(n),
                      *const py = numbers(n);
        if (f) {
            apply(f, 1, x, px);
            apply(f, 1, y, py);
            const double scale = sqrt(inner(n, x, x) * inner(n, py, py));
            CHECK_NEAR(inner(n, y, px) / scale, inner(n, x, py) / scale, 1e-12);
            CHECK(inner(n, x, px) > 0);
            for (int64_t i = 0; i < n; i++)
                y[i] = 7;
            apply(f, 1, y, py);
            CHECK_SAYS(sqrt(inner(n, py, py)) < 1e-10 * sqrt(inner(n, px, px)), "constants give %g",
                       sqrt(inner(n, py, py)));
        }
        frgi_ac_destroy(f);
        free(x);
        free(y);
        free(px);
        free(py);
        matrix_free(graphs[g]);
    }
    frg_context_destroy(ctx);
}

/** Preconditioned conjugate gradients to a residual of 1e-10 of b; returns the steps, 1000 at
 *  most. */
static int steps_of_cg(matrix a, const frgi_ac *f)
{
    const int64_t n = a.n;
    double *const truth = numbers(n), *const r = numbers(n), *const z = numbers(n),
                  *const p = numbers(n);
    double *const q = numbers(n), *const x = calloc((size_t)n, sizeof *x);
    multiply(a, 1, truth, r);
    const double target = 1e-20 * inner(n, r, r);
    apply(f, 1, r, z);
    memcpy(p, z, (size_t)n * sizeof *p);
    double rz = inner(n, r, z);
    int steps = 0;
    while (inner(n, r, r) > target && steps < 1000) {
        multiply(a, 1, p, q);
        const double alpha = rz / inner(n, p, q);
        for (int64_t i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        apply(f, 1, r, z);
        const double old = rz;
        rz = inner(n, r, z);
        for (int64_t i = 0; i < n; i++)
            p[i] = z[i] + rz / old * p[i];
        steps++;
    }
    free(truth);
    free(r);
    free(z);
    free(p);
    free(q);
    free(x);
    return steps;
}

/** CG takes at most sqrt(kappa) / 2 ln(2 / eps) steps to bring the energy norm of the error down by
 *  eps.  The paper reports relative condition numbers of a few units for AC and less for AC2,
 *  growing with log n: kappa up to 16 (AC) and 9 (AC2), eps = 1e-10 over a factor 100 for the
 *  residual's norm, allow 57 and 43 steps. Diagonal scaling needs hundreds: the ring's kappa is
 *  about (n / w)^2. */
static void conjugate_gradients(void)
{
    frg_context *const ctx = test_context();
    const struct {
        const char *name;
        matrix a;
    } graphs[] = {
        {"grid", grid(60, false)},
        {"rough grid", grid(60, true)},
        {"ring", ring(3000, 10)},
        {"expander", expander(3000, 3, 1)},
        {"power law", expander(3000, 4, 4)},
    };
    for (int g = 0; g < 5; g++) {
        for (int split = 1; split <= 2; split++) {
            frgi_ac *const f = made(ctx, graphs[g].a, split, 11);
            if (f) {
                const int steps = steps_of_cg(graphs[g].a, f);
                CHECK_SAYS(steps <= (split == 1 ? 57 : 43), "%s, AC(%d): %d steps", graphs[g].name,
                           split, steps);
                const int64_t edges = graphs[g].a.starts[graphs[g].a.n] / 2;
                CHECK_SAYS(frgi_ac_entries(f) < 8 * split * edges,
                           "%s, AC(%d): %" PRId64 " entries of %" PRId64, graphs[g].name, split,
                           frgi_ac_entries(f), edges);
            }
            frgi_ac_destroy(f);
        }
        matrix_free(graphs[g].a);
    }
    frg_context_destroy(ctx);
}

/** Surplus everywhere: P is nonsingular and CG as fast. */
static void strictly_dominant(void)
{
    frg_context *const ctx = test_context();
    edge e[4000];
    double surplus[1000];
    for (int32_t i = 0; i < 4000; i++)
        e[i] = (edge){i % 1000, (int32_t)test_below(1000), test_uniform()};
    for (int i = 0; i < 1000; i++)
        surplus[i] = i % 3 ? 0 : 0.01 * test_uniform();
    const matrix a = laplacian(1000, e, 4000, surplus);
    frgi_ac *const f = made(ctx, a, 2, 1);
    if (f) {
        CHECK_INT(frgi_ac_grounded(f), frgi_ac_components(f));
        const int steps = steps_of_cg(a, f);
        CHECK_SAYS(steps <= 43, "%d steps", steps);
    }
    frgi_ac_destroy(f);
    matrix_free(a);
    frg_context_destroy(ctx);
}

/** The factor depends on the seed alone; a column's bits neither on its neighbours nor on the
 *  threads. */
static void same_bits(void)
{
    const matrix a = expander(700, 4, 2);
    enum { K = 17 };
    double *const b = numbers(a.n * K), *const x = numbers(a.n * K),
                  *const alone = numbers(a.n * K);
    double *const column = numbers(a.n);
    const int threads[] = {1, 2, 3, 8};
    for (int t = 0; t < 4; t++) {
        frg_context *const ctx = test_context_with(threads[t], NULL, NULL);
        frgi_ac *const f = made(ctx, a, 2, 42);
        for (int64_t c = 0; f && t == 0 && c < K; c++) {
            for (int64_t i = 0; i < a.n; i++)
                column[i] = b[i * K + c];
            apply(f, 1, column, alone + c * a.n);
        }
        for (int64_t k = 1; f && k <= K; k += t == 0 ? 1 : 8) {
            for (int64_t i = 0; i < a.n; i++)
                memcpy(x + i * k, b + i * K, (size_t)k * sizeof *x);
            apply(f, k, x, x); /* in place */
            int64_t different = 0;
            for (int64_t i = 0; i < a.n; i++)
                for (int64_t c = 0; c < k; c++)
                    different += x[i * k + c] != alone[c * a.n + i];
            CHECK_SAYS(different == 0, "%" PRId64 " values differ at width %" PRId64, different, k);
        }
        frgi_ac_destroy(f);
        frg_context_destroy(ctx);
    }
    frg_context *const ctx = test_context();
    frgi_ac *const other = made(ctx, a, 2, 43);
    if (other) {
        for (int64_t i = 0; i < a.n; i++)
            column[i] = b[i * K];
        apply(other, 1, column, x);
        CHECK_SAYS(memcmp(x, alone, (size_t)a.n * sizeof *x) != 0, "the seed makes no difference");
    }
    frgi_ac_destroy(other);
    frg_context_destroy(ctx);
    matrix_free(a);
    free(b);
    free(x);
    free(alone);
    free(column);
}

enum { SMALL = 7 };

/** inverse <- a^-1 by Gauss and Jordan; positive definite and small. */
static void invert(double a[SMALL][SMALL], double inverse[SMALL][SMALL])
{
    for (int i = 0; i < SMALL; i++)
        for (int j = 0; j < SMALL; j++)
            inverse[i][j] = i == j;
    for (int p = 0; p < SMALL; p++) {
        const double pivot = a[p][p];
        for (int j = 0; j < SMALL; j++) {
            a[p][j] /= pivot;
            inverse[p][j] /= pivot;
        }
        for (int i = 0; i < SMALL; i++) {
            const double t = a[i][p];
            for (int j = 0; i != p && j < SMALL; j++) {
                a[i][j] -= t * a[p][j];
                inverse[i][j] -= t * inverse[p][j];
            }
        }
    }
}

/** Every step replaces a star by a graph whose expectation is the star's Schur complement, so the
 *  expectation of P is A, entry by entry.  P is found by inverting what is applied to the unit
 *  vectors; the mean over 4000 seeds may be off by 5 of its standard errors, taken from the same
 *  sample (56 entries, 2 splits: by chance once in 1e4 seeds of the test), and at least one entry
 *  has to vary at all. */
static void unbiased(void)
{
    frg_context *const ctx = test_context_with(1, NULL, NULL);
    edge e[SMALL * SMALL];
    int64_t m = 0;
    for (int32_t i = 0; i < SMALL; i++)
        for (int32_t j = i + 1; j < SMALL; j++)
            e[m++] = (edge){i, j, 0.2 + test_uniform()};
    const double surplus[SMALL] = {0.5};
    const matrix a = laplacian(SMALL, e, m, surplus);
    enum { SEEDS = 4000 };
    for (int split = 1; split <= 2; split++) {
        double sum[SMALL][SMALL] = {{0}}, squares[SMALL][SMALL] = {{0}}, widest = 0;
        for (int seed = 0; seed < SEEDS; seed++) {
            frgi_ac *const f = made(ctx, a, split, (uint64_t)seed);
            double unit[SMALL][SMALL] = {{0}}, p[SMALL][SMALL];
            for (int i = 0; i < SMALL; i++)
                unit[i][i] = 1;
            if (f)
                apply(f, SMALL, unit[0], unit[0]);
            invert(unit, p);
            for (int i = 0; i < SMALL; i++)
                for (int j = 0; j < SMALL; j++) {
                    const double d = p[i][j] - a.values[SMALL * i + j];
                    sum[i][j] += d;
                    squares[i][j] += d * d;
                }
            frgi_ac_destroy(f);
        }
        for (int i = 0; i < SMALL; i++)
            for (int j = 0; j < SMALL; j++) {
                const double error = sqrt(squares[i][j]) / SEEDS;
                widest = fmax(widest, error);
                CHECK_SAYS(fabs(sum[i][j] / SEEDS) <= 5 * error + 1e-12,
                           "AC(%d): entry %d %d is off by %g on average, standard error %g", split,
                           i, j, sum[i][j] / SEEDS, error);
            }
        CHECK_SAYS(widest > 1e-4, "nothing is sampled: standard errors up to %g", widest);
    }
    matrix_free(a);
    frg_context_destroy(ctx);
}

static frg_status sweep_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const matrix *const a = user;
    const frgi_symmetric s = view(*a);
    frgi_ac *f = NULL;
    frg_status status = frgi_ac_create(&f, ctx, &s, NULL);
    double x[200] = {1, -1}, scratch[8 * 500];
    if (status >= 0 && CHECK(frgi_ac_scratch(f, 1) <= 8 * 500)) {
        frgi_ac_apply(f, 1, x, x, scratch);
        fault_hash(hash, x, sizeof x);
    }
    frgi_ac_destroy(f);
    return status;
}

static void failing_allocations(void)
{
    const matrix a = expander(200, 6, 1);
    CHECK(fault_sweep("approximate factor", sweep_body, (void *)&a, 1) >= 5);
    matrix_free(a);
}

/** Keeps who reports, and stops. */
static int stop_at_once(const frg_progress *p, void *user)
{
    *(const char **)user = p->solver;
    return 1;
}

static void interruption_and_edges(void)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    const char *seen = NULL;
    o.on_progress = stop_at_once;
    o.user = &seen;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    const matrix a = ring(40000, 1), empty = laplacian(0, NULL, 0, NULL),
                 apart = laplacian(3, NULL, 0, NULL);
    frgi_symmetric s = view(a);
    frgi_ac *f = NULL;
    CHECK_STATUS(frgi_ac_create(&f, ctx, &s, NULL), FRG_INTERRUPTED);
    CHECK(f == NULL);
    CHECK_TEXT(seen, "ac");
    frgi_ac_opts bad;
    frgi_ac_defaults(&bad);
    bad.solver = "caller";
    CHECK_STATUS(frgi_ac_create(&f, ctx, &s, &bad), FRG_INTERRUPTED);
    CHECK_TEXT(seen, "caller");
    bad.split = 0;
    CHECK_STATUS(frgi_ac_create(&f, ctx, &s, &bad), FRG_BAD_ARG);
    f = made(ctx, empty, 2, 0);
    if (f)
        CHECK_INT(frgi_ac_components(f), 0);
    frgi_ac_destroy(f);
    f = made(ctx, apart, 2, 0);
    if (f) {
        double x[3] = {1, 2, 3};
        apply(f, 1, x, x);
        CHECK(x[0] == 0 && x[1] == 0 && x[2] == 0);
        CHECK_INT(frgi_ac_components(f), 3);
    }
    frgi_ac_destroy(f);
    matrix_free(a);
    matrix_free(empty);
    matrix_free(apart);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"forests", forests},
    {"grounded", grounded},
    {"symmetric", symmetric},
    {"conjugate gradients", conjugate_gradients},
    {"strictly dominant", strictly_dominant},
    {"same bits", same_bits},
    {"unbiased", unbiased},
    {"failing allocations", failing_allocations},
    {"interruption and edges", interruption_and_edges},
};
TEST_MAIN(cases)
