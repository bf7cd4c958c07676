/* test_direct.c - the direct factor against dense elimination in long double, and its promises. */
#include "unit/laplacians.h"

#include "sparse/direct.h"

/* ---- matrices -------------------------------------------------------------------------------- */

/** The entries with column >= row. */
static matrix upper_half(matrix a)
{
    matrix r = {a.n, calloc((size_t)a.n + 1, sizeof(int64_t)),
                malloc((size_t)a.starts[a.n] * sizeof(int32_t) + 1),
                malloc((size_t)a.starts[a.n] * sizeof(double) + 1)};
    int64_t used = 0;
    for (int64_t i = 0; i < a.n; i++) {
        for (int64_t e = a.starts[i]; e < a.starts[i + 1]; e++) {
            if (a.columns[e] < i)
                continue;
            r.columns[used] = a.columns[e];
            r.values[used++] = a.values[e];
        }
        r.starts[i + 1] = used;
    }
    return r;
}

static void shuffle(int32_t *p, int64_t n)
{
    for (int32_t i = 0; i < n; i++)
        p[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = test_below(i + 1);
        const int32_t t = p[i];
        p[i] = p[j];
        p[j] = t;
    }
}

/** A ring of half-width w, `border` more vertices joined to all of it at the end, numbered by
 *  chance or not. */
static matrix ring(int32_t n, int32_t w, int32_t border, bool permuted)
{
    edge *const e = malloc((size_t)n * (size_t)(w + border) * sizeof *e);
    int32_t *const p = malloc((size_t)n * sizeof *p);
    shuffle(p, n);
    int64_t m = 0;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t d = 1; d <= w; d++)
            e[m++] = (edge){permuted ? p[i] : i, permuted ? p[(i + d) % n] : (i + d) % n,
                            1 + test_uniform()};
        for (int32_t b = 0; b < border; b++)
            e[m++] = (edge){i, n + b, 0.3 * test_uniform()};
    }
    const matrix a = laplacian(n + border, e, m, NULL);
    free(e);
    free(p);
    return a;
}

static matrix grid(int32_t g)
{
    edge *const e = malloc(2 * (size_t)g * (size_t)g * sizeof *e);
    int64_t m = 0;
    for (int32_t i = 0; i < g; i++) {
        for (int32_t j = 0; j < g; j++) {
            if (i + 1 < g)
                e[m++] = (edge){i * g + j, (i + 1) * g + j, 1 + test_uniform()};
            if (j + 1 < g)
                e[m++] = (edge){i * g + j, i * g + j + 1, 1 + test_uniform()};
        }
    }
    const matrix a = laplacian(g * g, e, m, NULL);
    free(e);
    return a;
}

/* ---- factor and check ------------------------------------------------------------------------ */

enum { ENVELOPE = 1u << FRGI_ORDER_RCM, DEGREE = 1u << FRGI_ORDER_AMD };

static frgi_direct *factored(frg_context *ctx, const frgi_symmetric *s, unsigned orders,
                             const int32_t *last, int64_t n_last)
{
    frgi_direct_opts o;
    frgi_direct_defaults(&o);
    o.orders = orders;
    frgi_direct *f = NULL;
    if (!CHECK_OK(ctx, frgi_direct_analyse(&f, ctx, s, last, n_last, &o)) ||
        !CHECK_OK(ctx, frgi_direct_factor(f, s))) {
        frgi_direct_destroy(f);
        return NULL;
    }
    return f;
}

static void solve(const frgi_direct *f, int64_t k, double *x)
{
    double *const scratch = malloc(frgi_direct_scratch(f, k) * sizeof *scratch);
    frgi_direct_solve(f, k, x, scratch);
    free(scratch);
}

/** Solves for right-hand sides of the range and checks the residual.  Cholesky's backward error is
 *  at most n eps |L||L'| per entry (Higham 2002, theorem 10.4), |L||L'| <= n max a_ii; what is seen
 *  is far below n^2 eps, the bound taken is 100 n eps max|a_ii| max|x|, for the sums have at most a
 *  few hundred terms. */
static void check_residual(const frgi_direct *f, matrix a, int64_t k, const char *name)
{
    double *const truth = numbers(a.n * k), *const b = malloc((size_t)(a.n * k) * sizeof *b + 1);
    double *const x = malloc((size_t)(a.n * k) * sizeof *x + 1), *const r = malloc(
                                                                     (size_t)(a.n * k) * sizeof *r +
                                                                     1);
    multiply(a, k, truth, b);
    memcpy(x, b, (size_t)(a.n * k) * sizeof *x);
    solve(f, k, x);
    multiply(a, k, x, r);
    double worst = 0, largest = 1, diagonal = 0;
    for (int64_t i = 0; i < a.n * k; i++) {
        worst = fmax(worst, fabs(r[i] - b[i]));
        largest = fmax(largest, fabs(x[i]));
    }
    for (int64_t i = 0; i < a.n; i++) {
        for (int64_t e = a.starts[i]; e < a.starts[i + 1]; e++)
            diagonal = fmax(diagonal, a.columns[e] == i ? a.values[e] : 0);
        if (frgi_direct_grounded(f, i))
            CHECK_SAYS(x[i * k] == 0, "%s: grounded variable %" PRId64 " is %g", name, i, x[i * k]);
    }
    const double allowed = 100 * (double)a.n * 0x1p-52 * diagonal * largest;
    CHECK_SAYS(worst <= allowed, "%s: residual %g > %g", name, worst, allowed);
    free(truth);
    free(b);
    free(x);
    free(r);
}

/** x = A^-1 b by Gaussian elimination in long double, A nonsingular. */
static void dense_solve(matrix a, const double *b, double *x)
{
    const size_t n = (size_t)a.n;
    long double *const d = calloc(n * (n + 1), sizeof *d);
    for (size_t i = 0; i < n; i++) {
        for (int64_t e = a.starts[i]; e < a.starts[i + 1]; e++)
            d[i * (n + 1) + (size_t)a.columns[e]] = a.values[e];
        d[i * (n + 1) + n] = b[i];
    }
    for (size_t j = 0; j < n; j++)
        for (size_t i = j + 1; i < n; i++) {
            const long double t = d[i * (n + 1) + j] / d[j * (n + 1) + j];
            for (size_t c = j; t != 0 && c <= n; c++)
                d[i * (n + 1) + c] -= t * d[j * (n + 1) + c];
        }
    for (size_t i = n; i-- > 0;) {
        long double t = d[i * (n + 1) + n];
        for (size_t c = i + 1; c < n; c++)
            t -= d[i * (n + 1) + c] * x[c];
        x[i] = (double)(t / d[i * (n + 1) + i]);
    }
    free(d);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/** Random graphs of `parts` components, some with a surplus: rank n minus the components without
 *  one.
 *
 *  Rounding leaves of a pivot that ought to be 0 about eps times the trace of its component: with v
 *  the null vector that is 1 at the pivot's variable, here all ones, it is at most v' dA v for the
 *  backward error |dA_ij| <= n eps sqrt(a_ii a_jj).  Of the variable's own diagonal that is 120 *
 *  20 * e^2 eps = 4e-12 where weights lie within e^-1 to e, below the line of 1e-11; weights over
 *  e^-6 to e^6 bring it to some 1e-10, so that there the equations alone are checked. */
static void random_laplacians(void)
{
    frg_context *const ctx = test_context();
    for (int trial = 0; trial < 60; trial++) {
        const bool even = trial % 4 < 2; /* weights of one size */
        const int32_t n = (int32_t)(1 + test_below(120)),
                      parts = (int32_t)(1 + test_below(n < 8 ? n : 8));
        edge e[1000];
        double surplus[120] = {0};
        int64_t m = 0;
        int32_t p[120];
        shuffle(p, n);
        for (int32_t i = parts; i < n;
             i++) /* a spanning forest: i joins an earlier one of its part */
            e[m++] = (edge){p[i], p[i % parts + parts * (int32_t)test_below(i / parts)],
                            even ? exp(2 * test_uniform() - 1) : exp(2 * test_normal())};
        for (int64_t extra = test_below(5 * n); extra > 0; extra--) {
            const int32_t i = (int32_t)test_below(n), q = i % parts;
            e[m++] = (edge){p[i], p[q + parts * (int32_t)test_below((n - 1 - q) / parts + 1)],
                            even ? exp(2 * test_uniform() - 1) : exp(2 * test_normal())};
        }
        int64_t null = parts;
        for (int32_t q = 0; q < parts && trial % 2; q += 2) {
            surplus[p[q]] = 0.5;
            null--;
        }
        const matrix a = laplacian(n, e, m, surplus);
        const frgi_symmetric s = view(a);
        const unsigned orders[] = {ENVELOPE, DEGREE, 0};
        for (int o = 0; o < 3; o++) {
            frgi_direct *const f = factored(ctx, &s, orders[o], p, o == 1 ? n / 4 : 0);
            if (f) {
                if (even)
                    CHECK_INT(frgi_direct_rank(f), n - null);
                check_residual(f, a, 3, "random laplacian");
            }
            frgi_direct_destroy(f);
        }
        matrix_free(a);
    }
    frg_context_destroy(ctx);
}

/** Strictly dominant: kappa <= max (2 d_i) / min surplus, and the error of a stable solver is at
 *  most about n eps kappa relative to max|x|. */
static void against_dense(void)
{
    frg_context *const ctx = test_context();
    for (int trial = 0; trial < 30; trial++) {
        const int32_t n = (int32_t)(2 + test_below(100));
        edge e[600];
        double surplus[102], x[102], want[102];
        for (int64_t i = 0; i < 5 * n; i++)
            e[i] = (edge){(int32_t)test_below(n), (int32_t)test_below(n), test_uniform()};
        for (int32_t i = 0; i < n; i++) {
            surplus[i] = 0.1 + test_uniform();
            x[i] = test_normal();
        }
        const matrix a = laplacian(n, e, 5 * n, surplus);
        dense_solve(a, x, want);
        double diagonal = 0, largest = 0;
        for (int64_t t = 0; t < a.starts[n]; t++)
            diagonal = fmax(diagonal, a.values[t]);
        for (int32_t i = 0; i < n; i++)
            largest = fmax(largest, fabs(want[i]));
        const frgi_symmetric s = view(a);
        frgi_direct *const f = factored(ctx, &s, trial % 2 ? ENVELOPE : DEGREE, NULL, 0);
        if (f) {
            solve(f, 1, x);
            CHECK_INT(frgi_direct_rank(f), n);
            for (int32_t i = 0; i < n; i++)
                CHECK_NEAR(x[i] / largest, want[i] / largest, n * 0x1p-52 * 2 * diagonal / 0.1);
        }
        frgi_direct_destroy(f);
        matrix_free(a);
    }
    frg_context_destroy(ctx);
}

static void rings_and_grids(void)
{
    frg_context *const ctx = test_context();
    const struct {
        const char *name;
        matrix a;
    } graphs[] = {
        {"ring", ring(1003, 10, 0, false)},
        {"permuted ring", ring(1500, 20, 0, true)},
        {"ring narrower than a strip", ring(777, 2, 0, true)},
        {"grid", grid(37)},
    };
    for (int g = 0; g < 4; g++) {
        const frgi_symmetric s = view(graphs[g].a);
        for (unsigned orders = 1; orders < 4; orders++) {
            frgi_direct *const f = factored(ctx, &s, orders, NULL, 0);
            if (f) {
                CHECK_INT(frgi_direct_rank(f), s.n - 1);
                check_residual(f, graphs[g].a, 4, graphs[g].name);
            }
            frgi_direct_destroy(f);
        }
        matrix_free(graphs[g].a);
    }
    frg_context_destroy(ctx);
}

/** The border of a ring costs flops in proportion to n: 2 n takes less than 2.2 times as many as
 *  n. */
static void border(void)
{
    frg_context *const ctx = test_context();
    double flops[2];
    for (int d = 0; d < 2; d++) {
        const int32_t n = 1500 << d;
        const matrix a = ring(n, 12, 10, true);
        int32_t last[10];
        for (int32_t i = 0; i < 10; i++)
            last[i] = n + i;
        const frgi_symmetric s = view(a);
        frgi_direct *f = factored(ctx, &s, ENVELOPE, last, 10);
        if (f) {
            CHECK_INT(frgi_direct_rank(f), n + 9);
            check_residual(f, a, 4, "border, envelope");
            flops[d] = frgi_direct_costs(f, FRGI_ORDER_RCM).flops;
        }
        frgi_direct_destroy(f);
        f = factored(ctx, &s, DEGREE, last, 10);
        if (f)
            check_residual(f, a, 4, "border, minimum degree");
        frgi_direct_destroy(f);
        matrix_free(a);
    }
    CHECK_SAYS(flops[1] < 2.2 * flops[0], "flops grow from %g to %g", flops[0], flops[1]);
    frg_context_destroy(ctx);
}

/** Every width, 1 to 17 columns: column c has the bits it has alone; any number of threads. */
static void widths(void)
{
    const matrix graphs[] = {ring(403, 7, 0, true), grid(21)};
    for (int g = 0; g < 2; g++) {
        const matrix a = graphs[g];
        const frgi_symmetric s = view(a);
        double *const b = numbers(a.n * 17), *const x = malloc((size_t)(a.n * 17) * sizeof *x);
        double *const alone = malloc((size_t)(a.n * 17) * sizeof *x);
        for (int threads = 1; threads <= 8; threads = threads == 3 ? 8 : threads + 1) {
            frg_context *const ctx = test_context_with(threads, NULL, NULL);
            frgi_direct *const f = factored(ctx, &s, g ? DEGREE : ENVELOPE, NULL, 0);
            for (int64_t c = 0; f && c < 17; c++) {
                for (int64_t i = 0; i < a.n; i++)
                    x[i] = b[i * 17 + c];
                solve(f, 1, x);
                if (threads > 1)
                    CHECK_BITS(x, alone + c * a.n, (size_t)a.n * sizeof *x);
                memcpy(alone + c * a.n, x, (size_t)a.n * sizeof *x);
            }
            for (int64_t k = 1; f && k <= 17; k++) {
                for (int64_t i = 0; i < a.n; i++)
                    memcpy(x + i * k, b + i * 17, (size_t)k * sizeof *x);
                solve(f, k, x);
                int64_t different = 0;
                for (int64_t i = 0; i < a.n; i++)
                    for (int64_t c = 0; c < k; c++)
                        different += x[i * k + c] != alone[c * a.n + i];
                CHECK_SAYS(different == 0, "%" PRId64 " values differ at width %" PRId64, different,
                           k);
            }
            frgi_direct_destroy(f);
            frg_context_destroy(ctx);
        }
        free(b);
        free(x);
        free(alone);
        matrix_free(a);
    }
}

/** An upper triangle is the same matrix. */
static void upper_triangle(void)
{
    frg_context *const ctx = test_context();
    const matrix a = ring(300, 5, 3, true), u = upper_half(a);
    const frgi_symmetric s = {u.n, u.starts, u.columns, u.values, 1};
    for (unsigned orders = 1; orders < 3; orders++) {
        frgi_direct *const f = factored(ctx, &s, orders, NULL, 0);
        if (f) {
            CHECK_INT(frgi_direct_rank(f), a.n - 1);
            check_residual(f, a, 2, "upper triangle");
        }
        frgi_direct_destroy(f);
    }
    matrix_free(a);
    matrix_free(u);
    frg_context_destroy(ctx);
}

/** No rows, one row, a zero matrix, isolated vertices, a star. */
static void small_and_odd(void)
{
    frg_context *const ctx = test_context();
    edge star[200];
    for (int32_t i = 0; i < 200; i++)
        star[i] = (edge){100, i < 100 ? i : i + 1, 1};
    const double one[] = {2};
    const struct {
        matrix a;
        int64_t rank;
    } odd[] = {
        {laplacian(0, NULL, 0, NULL), 0},  {laplacian(1, NULL, 0, NULL), 0},
        {laplacian(1, NULL, 0, one), 1},   {laplacian(11, NULL, 0, NULL), 0},
        {laplacian(20, star, 0, NULL), 0}, {laplacian(203, star, 200, NULL), 200},
    };
    for (int i = 0; i < 6; i++) {
        const frgi_symmetric s = view(odd[i].a);
        for (unsigned orders = 1; orders < 4; orders++) {
            frgi_direct *const f = factored(ctx, &s, orders, NULL, 0);
            if (f) {
                CHECK_INT(frgi_direct_rank(f), odd[i].rank);
                check_residual(f, odd[i].a, 2, "odd");
            }
            frgi_direct_destroy(f);
        }
        matrix_free(odd[i].a);
    }
    frg_context_destroy(ctx);
}

/** Two complete graphs of 20 joined by an edge of weight 1e-8 are one component: rank n - 1. */
static void weak_bridge(void)
{
    frg_context *const ctx = test_context();
    edge e[400];
    int64_t m = 0;
    for (int32_t i = 0; i < 40; i++)
        for (int32_t j = i + 1; j < 20 * (i / 20 + 1); j++)
            e[m++] = (edge){i, j, 1};
    e[m++] = (edge){3, 27, 1e-8};
    const matrix a = laplacian(40, e, m, NULL);
    const frgi_symmetric s = view(a);
    for (unsigned orders = 1; orders < 3; orders++) {
        frgi_direct *const f = factored(ctx, &s, orders, NULL, 0);
        if (f)
            CHECK_INT(frgi_direct_rank(f), 39);
        frgi_direct_destroy(f);
    }
    matrix_free(a);
    frg_context_destroy(ctx);
}

/** What is predicted is what is held, and a cap below it is refused before any number is
 *  touched. */
static void predictions(void)
{
    frg_context *const ctx = test_context();
    const matrix a = grid(60);
    const frgi_symmetric s = view(a);
    frgi_direct *f = factored(ctx, &s, 0, NULL, 0);
    if (f) {
        const frgi_direct_cost cost = frgi_direct_costs(f, frgi_direct_chosen(f));
        CHECK(cost.tried && cost.flops > 0 && cost.seconds > 0);
        CHECK_SAYS(frgi_direct_bytes(f) < cost.bytes + 200 * (size_t)a.n + 10000,
                   "%zu bytes held, %zu predicted", frgi_direct_bytes(f), cost.bytes);
        CHECK(frgi_direct_bytes(f) > cost.bytes / 2);
        frgi_direct_opts o;
        frgi_direct_defaults(&o);
        o.byte_cap = 100000;
        frgi_direct *none = f;
        CHECK_STATUS(frgi_direct_analyse(&none, ctx, &s, NULL, 0, &o), FRG_NO_MEMORY);
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-012");
        CHECK(none == NULL);
    }
    frgi_direct_destroy(f);
    matrix_free(a);
    frg_context_destroy(ctx);
}

static frg_status sweep_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const matrix *const a = user, *const u = a + 1;
    const frgi_symmetric s[] = {view(*a), {u->n, u->starts, u->columns, u->values, 1}};
    for (unsigned orders = 0; orders < 3; orders++) {
        frgi_direct_opts o;
        frgi_direct_defaults(&o);
        o.orders = orders;
        o.cheap_flops = 0;
        frgi_direct *f = NULL;
        double x[200 * 2], scratch[10000];
        const frgi_symmetric *const m = &s[orders % 2];
        frg_status status = frgi_direct_analyse(&f, ctx, m, NULL, 0, &o);
        if (status >= 0)
            status = frgi_direct_factor(f, m);
        if (status >= 0) {
            const size_t held = frg_bytes_held(ctx);
            status = frgi_direct_factor(f, m);
            CHECK(frg_bytes_held(ctx) == held);
        }
        if (status >= 0 && CHECK(frgi_direct_scratch(f, 2) <= 10000)) {
            for (int i = 0; i < 2 * a->n; i++)
                x[i] = i % 7 - 3;
            frgi_direct_solve(f, 2, x, scratch);
            fault_hash(hash, x, (size_t)(2 * a->n) * sizeof *x);
        }
        frgi_direct_destroy(f);
        if (status < 0)
            return status;
    }
    return FRG_OK;
}

static void failing_allocations(void)
{
    const matrix a = ring(190, 3, 5, true);
    matrix both[] = {a, upper_half(a)};
    CHECK(fault_sweep("direct factor", sweep_body, both, 1) > 10);
    matrix_free(both[0]);
    matrix_free(both[1]);
}

/** Keeps who reports, and stops. */
static int stop_at_once(const frg_progress *p, void *user)
{
    *(const char **)user = p->solver;
    return 1;
}

static int stop_within(const frg_progress *p, void *user)
{
    (void)user;
    return p->done < p->total;
}

/** A context of one thread whose progress function is `stop`. */
static frg_context *watched(frg_progress_fn stop, void *user)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.threads = 1;
    o.on_progress = stop;
    o.user = user;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    return ctx;
}

/** Of a full matrix of 800 one supernode is all there is, 1.7e8 multiply-adds: looks come before it
 *  is done. */
static void interruption_within_a_supernode(void)
{
    frg_context *const ctx = watched(stop_within, NULL);
    const matrix a = ring(800, 400, 0, false);
    const frgi_symmetric s = view(a);
    frgi_direct_opts d;
    frgi_direct_defaults(&d);
    d.orders = 2;
    frgi_direct *f = NULL;
    if (CHECK_OK(ctx, frgi_direct_analyse(&f, ctx, &s, NULL, 0, &d)))
        CHECK_STATUS(frgi_direct_factor(f, &s), FRG_INTERRUPTED);
    frgi_direct_destroy(f);
    matrix_free(a);
    frg_context_destroy(ctx);
}

/** A factor of 1e9 multiply-adds polls the heartbeat, in the name of its caller. */
static void interruption(void)
{
    static const char *const names[] = {NULL, "direct", "caller"};
    const char *seen = NULL;
    frg_context *const ctx = watched(stop_at_once, &seen);
    const matrix a = grid(200);
    const frgi_symmetric s = view(a);
    for (unsigned orders = 1; orders < 3; orders++) {
        frgi_direct_opts d;
        frgi_direct_defaults(&d);
        d.orders = orders;
        d.solver = orders == 2 ? "caller" : d.solver;
        frgi_direct *f = NULL;
        if (CHECK_OK(ctx, frgi_direct_analyse(&f, ctx, &s, NULL, 0, &d)))
            CHECK_STATUS(frgi_direct_factor(f, &s), FRG_INTERRUPTED);
        CHECK_TEXT(seen, names[orders]);
        frgi_direct_destroy(f);
    }
    matrix_free(a);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"random laplacians", random_laplacians},
    {"against dense elimination", against_dense},
    {"rings and grids", rings_and_grids},
    {"border", border},
    {"widths and threads", widths},
    {"upper triangle", upper_triangle},
    {"small and odd", small_and_odd},
    {"weak bridge", weak_bridge},
    {"predictions", predictions},
    {"failing allocations", failing_allocations},
    {"interruption", interruption},
    {"interruption within a supernode", interruption_within_a_supernode},
};
TEST_MAIN(cases)
