/* test_map.c - alternating projections: the rate of a cycle, the answers of the factor, what is
 * said where sweeps do not do.
 *
 * On a cycle of p levels a side the Schur complement has the eigenvalues sin^2(pi j / p), so that a
 * sweep contracts by cos^2(pi / p).  The next rate of those that the start has is cos^2(2 pi / p):
 * after s sweeps the quotient of two steps is off by (cos(2 pi / p) / cos(pi / p))^(2 s) at most
 * times the quotient of the two parts, which SLACK allows for.
 */
#include "fe/fe_map.h"
#include "oracle/oracle.h"
#include "panel.h"

static const double SLACK = 1e4;

typedef struct {
    fe_rows rows;
    fe_basis basis;
    frgi_arena arena;
    fe_basis_work work;
    fe_map map;
    double *z, *elim;
} sweeper;

static void lay_out(frgi_arena *a, sweeper *s)
{
    frgi_basis_work_layout(a, &s->basis, 1, &s->work);
    frgi_fe_map_layout(a, &s->basis, 1, &s->map);
    s->z = TAKE(a, double, s->rows.n);
    s->elim = TAKE(a, double, s->basis.n_elim_columns);
}

static void sweeper_open(sweeper *s, frg_context *ctx, const panel *d)
{
    const frg_array codes = frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q);
    *s = (sweeper){0};
    CHECK_OK(ctx, frgi_fe_rows_create(&s->rows, ctx, &codes, NULL));
    CHECK_OK(ctx, frgi_basis_create(&s->basis, ctx, &s->rows, NULL, 0, 0, false));
    lay_out(&s->arena, s);
    CHECK_OK(ctx, frgi_arena_open(&s->arena, ctx, "sweeps"));
    lay_out(&s->arena, s);
    s->work.threads = 1;
    frgi_fe_map_start(&s->map, &s->basis, 1);
    for (int64_t i = 0; i < d->n; i++)
        s->z[i] = d->x[s->rows.order ? s->rows.order[i] : i];
}

static void sweeper_close(sweeper *s, frg_context *ctx)
{
    frgi_arena_close(&s->arena, ctx);
    frgi_basis_destroy(&s->basis, ctx);
    frgi_fe_rows_destroy(&s->rows, ctx);
}

/** || m || of the next sweep. */
static double sweep(sweeper *s, frg_context *ctx)
{
    CHECK_OK(ctx, frgi_fe_map_sweep(&s->map, ctx, &s->work, s->z, s->elim));
    return sqrt(s->map.lane[0].gradient2);
}

static void rate_of_a_cycle(void)
{
    static const int levels[] = {5, 8, 12, 20, 31};
    frg_context *ctx = test_context();
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const int p = levels[i], sweeps = 3 * p * p / 4;
        panel d = panel_cycle(p);
        sweeper s;
        sweeper_open(&s, ctx, &d);
        double before = 0, now = 0;
        for (int k = 0; k < sweeps; k++) {
            before = now;
            now = sweep(&s, ctx);
        }
        const double angle = acos(-1.0) / p, rate = cos(angle) * cos(angle);
        const double next = pow(cos(2 * angle) / cos(angle), 2.0 * (sweeps - 2));
        CHECK_NEAR(now / before, rate, SLACK * next + 1e-9);
        sweeper_close(&s, ctx);
        panel_free(&d);
    }
    frg_context_destroy(ctx);
}

static frg_demean_opts by_sweeps(int64_t most)
{
    frg_demean_opts o = panel_options();
    o.method = FRG_FE_MAP;
    o.max_sweeps = most;
    return o;
}

/** The closed form of a cycle, and fewer sweeps than without acceleration: for a gradient of tol
 *  these are ln(tol) / ln(cos^2(pi / p)). */
static void accelerated_cycle(void)
{
    for (int64_t p = 16; p <= 256; p *= 4) {
        frg_context *ctx = test_context();
        panel d = panel_cycle(p);
        double mean = 0, *r = panel_zeros(d.n, sizeof *r);
        for (int64_t i = 0; i < d.n; i++)
            mean += (i % 2 ? -1 : 1) * d.x[i] / (double)d.n;
        const frg_demean_opts o = by_sweeps(1000000);
        frg_demean_column c;
        panel_report report;
        CHECK_OK(ctx, panel_demean(ctx, &d, &o, r, &c, &report));
        CHECK_TEXT(report.plan.method, "map");
        for (int64_t i = 0; i < d.n; i++)
            CHECK_NEAR(r[i], (i % 2 ? -1 : 1) * mean, 1e3 * o.tol / sin(acos(-1.0) / (double)p));
        const double plain = log(o.tol) / (2 * log(cos(acos(-1.0) / (double)p)));
        CHECK_SAYS((double)c.iterations < plain, "p %d: %d sweeps, plain %g", (int)p,
                   (int)c.iterations, plain);
        frg_context_destroy(ctx);
        free(r);
        panel_free(&d);
    }
}

/** Random designs of two to four factors by both: each column is within the bound that its own
 *  certificate names, so that two differ by the sum of two bounds at most; the bound of map is the
 *  oracle's lambda. */
static void as_the_factor(void)
{
    frg_context *ctx = test_context();
    for (int t = 0; t < 60; t++) {
        panel d = panel_make(60 + test_below(140), 2 + (int)test_below(3), 3);
        const int64_t levels[] = {2 + test_below(12), 2 + test_below(9), 2 + test_below(6), 3};
        panel_random_codes(&d, levels);
        if (t % 2)
            panel_random_weights(&d, 0.2, 4);
        frg_demean_opts direct = panel_options(), map = by_sweeps(100000);
        direct.method = FRG_FE_DIRECT;
        map.block = 1 + (int)test_below(3);
        double *want = panel_residuals(&d, &direct, 1), *r = panel_residuals(&d, &map, 2);
        const oracle_design design = {
            .n = d.n, .n_factors = d.q, .codes = d.codes, .weights = d.weights};
        oracle *const o = oracle_create(&design);
        const double lambda = oracle_smallest_eigenvalue(o);
        for (int c = 0; c < d.p; c++) {
            const double *const b = d.x + c * d.n;
            const double allowed = 2 * map.tol * sqrt(d.q) * panel_centred_norm(&d, b);
            CHECK(panel_norm(&d, r + c * d.n, want + c * d.n) <=
                  (allowed + 16 * (double)d.n * DBL_EPSILON * panel_norm(&d, b, NULL)) /
                      sqrt(lambda));
        }
        oracle_destroy(o);
        free(want);
        free(r);
        panel_free(&d);
    }
    frg_context_destroy(ctx);
}

/** A column's bits depend neither on the columns beside it nor on the threads. */
static void same_bits(void)
{
    for (int q = 2; q <= 3; q++) {
        panel d = panel_workers(1200, q, 5);
        panel_random_weights(&d, 0.5, 2);
        frg_demean_opts o = by_sweeps(200000);
        double *first = panel_residuals(&d, &o, 1);
        static const int blocks[] = {1, 2, 5, 32};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            o.block = blocks[i];
            double *r = panel_residuals(&d, &o, 1 + (int)i % 2);
            CHECK_BITS(r, first, (size_t)(d.n * d.p) * sizeof *r);
            free(r);
        }
        free(first);
        panel_free(&d);
    }
}

/** Sweeps that do not do are said to be too few, a tolerance that rounding does not let through is
 *  said to stall, and what is said agrees with an audit of its own. */
static void not_converged(void)
{
    frg_context *ctx = test_context();
    panel d = panel_cycle(100);
    double *r = panel_zeros(d.n, sizeof *r);
    frg_demean_column c;
    frg_demean_opts o = by_sweeps(100);
    CHECK_STATUS(panel_demean(ctx, &d, &o, r, &c, NULL), FRG_MAX_ITER);
    CHECK(c.status == FRG_MAX_ITER && !c.converged && c.iterations == 100);
    panel_audit a = panel_check(&d, d.x, r);
    CHECK(a.gradient > o.tol || a.audit > o.tol);
    CHECK_NEAR(c.gradient, a.gradient, 1e-6 * a.gradient);
    o = by_sweeps(10000);
    CHECK_STATUS(panel_demean(ctx, &d, &o, r, &c, NULL), FRG_OK);
    CHECK(c.converged && c.iterations > 100);
    panel_free(&d);
    free(r);

    /* the bound of the error is the rounding of r over sqrt(lambda), more than 1e3 tol */
    d = panel_workers(4000, 2, 8);
    panel_random_weights(&d, 0.1, 3);
    r = panel_zeros(d.n * d.p, sizeof *r);
    o = by_sweeps(1000000);
    o.tol = 1e-18;
    frg_demean_column columns[PANEL_COLUMNS];
    CHECK_STATUS(panel_demean(ctx, &d, &o, r, columns, NULL), FRG_STALLED);
    for (int k = 0; k < d.p; k++) {
        CHECK(columns[k].iterations < 1000000);
        CHECK((columns[k].status == FRG_STALLED) ==
              (!columns[k].converged || columns[k].error_bound > 1e3 * o.tol));
    }
    frg_context_destroy(ctx);
    free(r);
    panel_free(&d);
}

static const test_case cases[] = {{"rate of a cycle", rate_of_a_cycle},
                                  {"accelerated cycle", accelerated_cycle},
                                  {"as the factor", as_the_factor},
                                  {"same bits", same_bits},
                                  {"not converged", not_converged}};
TEST_MAIN(cases)
