/* test_demean.c - the demeaner: closed forms, and properties that need no reference.
 *
 * Tolerances.  tol = 1e-10 bounds eta, the scaled gradient; on a well-connected random design the
 * smallest eigenvalue of A'A is above 0.01, so residuals are right to 10 tol sqrt(Q) relative: NEAR
 * below.  Where the library solves exactly (one factor, balanced panels, forests) only rounding is
 * left: EXACT allows some hundred units of it, n terms being summed.
 */
#include "panel.h"

static const double NEAR = 1e-8, EXACT = 1e-13;

/* ---- closed forms ---------------------------------------------------------------------------- */

static void group_means(void)
{
    panel d = panel_make(1000, 1, 3);
    panel_random_codes(&d, (const int64_t[]){37});
    panel_random_weights(&d, 0.5, 2);
    double *r = panel_residuals(&d, NULL, test_now.threads);
    for (int c = 0; c < d.p; c++) {
        long double sum[37] = {0}, mass[37] = {0};
        for (int64_t i = 0; i < d.n; i++) {
            sum[d.codes[i]] += (long double)d.weights[i] * (long double)d.x[c * d.n + i];
            mass[d.codes[i]] += (long double)d.weights[i];
        }
        for (int64_t i = 0; i < d.n; i++)
            CHECK_NEAR(r[c * d.n + i],
                       (double)((long double)d.x[c * d.n + i] - sum[d.codes[i]] / mass[d.codes[i]]),
                       EXACT);
    }
    free(r);
    panel_free(&d);
}

/** Balanced factorial of q factors: y minus one-way means, plus (q - 1) grand means. */
static void factorial(int q, const int64_t levels[])
{
    int64_t n = 1;
    for (int f = 0; f < q; f++)
        n *= levels[f];
    panel d = panel_make(n, q, 1);
    double mean[3][64] = {{0}}, grand = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i;
        for (int f = 0; f < q; f++) {
            d.codes[i * q + f] = (int32_t)(rest % levels[f]);
            rest /= levels[f];
            mean[f][d.codes[i * q + f]] += d.x[i] * (double)levels[f] / (double)n;
        }
        grand += d.x[i] / (double)n;
    }
    double *r = panel_residuals(&d, NULL, test_now.threads);
    for (int64_t i = 0; i < n; i++) {
        double want = d.x[i] + (q - 1) * grand;
        for (int f = 0; f < q; f++)
            want -= mean[f][d.codes[i * q + f]];
        CHECK_NEAR(r[i], want, EXACT);
    }
    free(r);
    panel_free(&d);
}

static void balanced(void)
{
    factorial(2, (const int64_t[]){17, 23});
    factorial(3, (const int64_t[]){7, 5, 11});
}

/** Cells that form a forest with single rows leave nothing. */
static void forest(void)
{
    panel d = panel_make(500, 2, 2);
    for (int64_t i = 0; i < d.n;
         i++) { /* row i hangs level i of one side on a random older level */
        const int side = (int)test_below(2);
        d.codes[2 * i + side] = (int32_t)i + 1;
        d.codes[2 * i + 1 - side] = (int32_t)(i ? d.codes[2 * test_below(i) + 1 - side] : 0);
    }
    double *r = panel_zeros(d.n * d.p, sizeof *r);
    frg_demean_column columns[2];
    panel_report report;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, columns, &report));
    for (int64_t i = 0; i < d.n * d.p; i++)
        CHECK_NEAR(r[i], 0, 1e-9);
    for (int c = 0; c < d.p; c++)
        CHECK(columns[c].absorbed && columns[c].converged && columns[c].status == FRG_OK);
    CHECK_INT(report.rank.rank, report.plan.levels - report.rank.components);
    CHECK(report.rank.exact);
    frg_context_destroy(ctx);
    free(r);
    panel_free(&d);
}

static void even_cycles(void)
{
    for (int64_t p = 2; p <= 1024; p *= 2) {
        panel d = panel_cycle(p);
        double mean = 0;
        for (int64_t i = 0; i < d.n; i++)
            mean += (i % 2 ? -1 : 1) * d.x[i] / (double)d.n;
        double *r = panel_residuals(&d, NULL, test_now.threads);
        for (int64_t i = 0; i < d.n; i++)
            CHECK_NEAR(r[i], (i % 2 ? -1 : 1) * mean, 1e-9);
        free(r);
        panel_free(&d);
    }
}

/** A factor that is a function of another adds nothing: the same residuals, the same rank. */
static void nested(void)
{
    panel d = panel_make(800, 2, 1), one = panel_make(800, 1, 1);
    for (int64_t i = 0; i < d.n; i++) {
        one.codes[i] = d.codes[2 * i] = (int32_t)test_below(50);
        d.codes[2 * i + 1] = d.codes[2 * i] % 7;
        one.x[i] = d.x[i];
    }
    double *r = panel_zeros(d.n, sizeof *r), *want = panel_residuals(&one, NULL, 1);
    frg_demean_column column;
    panel_report report;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, &column, &report));
    CHECK(panel_norm(&d, r, want) <= NEAR * panel_norm(&d, d.x, NULL));
    CHECK_INT(report.rank.rank, 50);
    CHECK_INT(report.rank.components, 7);
    frg_context_destroy(ctx);
    free(r);
    free(want);
    panel_free(&d);
    panel_free(&one);
}

/** Blocks that share no level are solved as if alone. */
static void disconnected(void)
{
    panel half[2], both = panel_make(1200, 2, 1);
    for (int b = 0; b < 2; b++) {
        half[b] = panel_make(600, 2, 1);
        panel_random_codes(&half[b], (const int64_t[]){40, 30});
        memcpy(both.x + 600 * b, half[b].x, 600 * sizeof(double));
        for (int64_t i = 0; i < 1200; i++)
            both.codes[1200 * b + i] = half[b].codes[i] + 100 * b;
    }
    double *r = panel_residuals(&both, NULL, test_now.threads);
    for (int b = 0; b < 2; b++) {
        double *want = panel_residuals(&half[b], NULL, test_now.threads);
        CHECK(panel_norm(&half[b], r + 600 * b, want) <=
              NEAR * panel_norm(&half[b], half[b].x, NULL));
        free(want);
        panel_free(&half[b]);
    }
    free(r);
    panel_free(&both);
}

/* ---- properties ------------------------------------------------------------------------------ */

static void orthogonal_and_idempotent(void)
{
    panel d = panel_usual();
    double *r = panel_residuals(&d, NULL, test_now.threads);
    panel again = d;
    again.x = r;
    double *r2 = panel_residuals(&again, NULL, test_now.threads);
    for (int c = 0; c < d.p; c++) {
        const panel_audit a = panel_check(&d, d.x + c * d.n, r + c * d.n);
        CHECK_SAYS(a.audit <= 1.01e-10 && a.gradient <= 1.01e-10, "audit %.3g, eta %.3g", a.audit,
                   a.gradient);
        CHECK(panel_norm(&d, r2 + c * d.n, r + c * d.n) <=
              NEAR * panel_norm(&d, r + c * d.n, NULL));
    }
    free(r);
    free(r2);
    panel_free(&d);
}

/** What the columns report is what the audit of panel.h finds. */
static void reports(void)
{
    panel d = panel_usual();
    double *r = panel_zeros(d.n * d.p, sizeof *r);
    frg_demean_column columns[PANEL_COLUMNS];
    panel_report report;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, columns, &report));
    for (int c = 0; c < d.p; c++) {
        const panel_audit a = panel_check(&d, d.x + c * d.n, r + c * d.n);
        /* sums of n terms near 0: known to n eps of the terms */
        CHECK_NEAR(columns[c].audit / 1e-10, a.audit / 1e-10, 0.05);
        CHECK_NEAR(columns[c].gradient / 1e-10, a.gradient / 1e-10, 0.05);
        CHECK(columns[c].converged && !columns[c].absorbed);
        CHECK(columns[c].worst_factor >= 0 && columns[c].worst_factor < 3);
    }
    CHECK_INT(report.plan.n, d.n);
    CHECK_INT(report.plan.n_factors, 3);
    CHECK_INT(report.rank.components, 1);
    CHECK_INT(report.plan.levels, 300 + 120 + 12);
    CHECK_INT(report.rank.rank, 300 + 120 + 12 - 2);
    CHECK(report.plan.plan_bytes > 0 && *report.plan.method && *report.rank.method);
    frg_context_destroy(ctx);
    free(r);
    panel_free(&d);
}

/** r(a b + D g) = a r(b), for values between 1e-150 and 1e150. */
static void affine(void)
{
    static const double scales[] = {1e-150, 1e-30, -1, 3, 1e12, 1e148};
    panel d = panel_usual();
    double *want = panel_residuals(&d, NULL, test_now.threads);
    double *x = panel_zeros(d.n * d.p, sizeof *x);
    panel moved = d;
    moved.x = x;
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        for (int c = 0; c < d.p; c++)
            for (int64_t i = 0; i < d.n; i++)
                x[c * d.n + i] =
                    scales[s] * (d.x[c * d.n + i] + cos(d.codes[i * 3]) +
                                 2 * sin(d.codes[i * 3 + 1]) + 0.5 * d.codes[i * 3 + 2]);
        double *r = panel_residuals(&moved, NULL, test_now.threads);
        for (int c = 0; c < d.p; c++) {
            for (int64_t i = 0; i < d.n; i++)
                r[c * d.n + i] /= scales[s];
            CHECK_SAYS(panel_norm(&d, r + c * d.n, want + c * d.n) <= 1e-7 * sqrt((double)d.n),
                       "scale %g, column %d: %.3g", scales[s], c,
                       panel_norm(&d, r + c * d.n, want + c * d.n));
        }
        free(r);
    }
    free(x);
    free(want);
    panel_free(&d);
}

/** A large mean costs the digits that the input lacks, not the convergence: eta is below tol, or
 *  the level means are 64 roundings of the largest input plus the largest effect.  At 1e9 standard
 *  deviations the certificate may fail, but only openly. */
static void offsets(void)
{
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_CG, FRG_FE_LSMR};
    static const double mean[] = {1e6, 1, 1e9}, sd[] = {1, 1e-6, 1};
    panel d = panel_workers(4000, 3, 3);
    for (int c = 0; c < d.p; c++)
        for (int64_t i = 0; i < d.n; i++)
            d.x[c * d.n + i] = mean[c] + sd[c] * d.x[c * d.n + i];
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        frg_demean_opts o = panel_options();
        o.method = methods[m];
        double *r = panel_zeros(d.n * d.p, sizeof *r);
        frg_demean_column columns[PANEL_COLUMNS];
        frg_context *ctx = test_context();
        CHECK(panel_demean(ctx, &d, &o, r, columns, NULL) >= 0);
        for (int c = 0; c < d.p; c++) {
            const panel_audit a = panel_check(&d, d.x + c * d.n, r + c * d.n);
            const double at_floor = 64 * DBL_EPSILON * 2 * mean[c] * 1.001;
            const bool right = a.gradient <= 1.01e-10 || a.mean <= at_floor;
            CHECK_SAYS(columns[c].converged ? right : c == 2 && columns[c].status > 0,
                       "method %d, column %d: eta is %.3g, level means to %.3g, %s after %" PRId64
                       " steps",
                       (int)methods[m], c, a.gradient, a.mean, frg_status_name(columns[c].status),
                       columns[c].iterations);
        }
        frg_context_destroy(ctx);
        free(r);
    }
    panel_free(&d);
}

/** A constant has no variance to compare with: it is absorbed, and its certificate is zero. */
static void constants(void)
{
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_LSMR, FRG_FE_DIRECT};
    for (int64_t n = 5; n <= 320; n *= 4) {
        panel d = panel_make(n, 3, 3);
        panel_random_codes(&d, (const int64_t[]){n / 3 + 1, n / 4 + 1, 2});
        for (int64_t i = 0; i < n; i++) {
            d.x[i] = sin(1);
            d.x[n + i] = -1e12 / 3;
            d.x[2 * n + i] = 1e-40;
        }
        for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
            frg_demean_opts o = panel_options();
            o.method = methods[m];
            double *r = panel_zeros(d.n * d.p, sizeof *r);
            frg_demean_column columns[PANEL_COLUMNS];
            frg_context *ctx = test_context();
            CHECK_OK(ctx, panel_demean(ctx, &d, &o, r, columns, NULL));
            for (int c = 0; c < d.p; c++) {
                CHECK(columns[c].absorbed && columns[c].converged);
                CHECK(columns[c].audit == 0 && columns[c].gradient == 0);
                for (int64_t i = 0; i < n; i++) /* the floor of a level mean */
                    CHECK_NEAR(r[c * n + i] / d.x[c * n], 0, 128 * DBL_EPSILON);
            }
            frg_context_destroy(ctx);
            free(r);
        }
        panel_free(&d);
    }
}

/** Rows in another order, codes under other names. */
static void permuted(void)
{
    panel d = panel_usual(), e = panel_make(d.n, d.q, d.p);
    e.weights = panel_zeros(d.n, sizeof *e.weights);
    int64_t *at = panel_zeros(d.n, sizeof *at);
    for (int64_t i = 0; i < d.n; i++) {
        const int64_t j = test_below(i + 1);
        at[i] = at[j];
        at[j] = i;
    }
    for (int64_t i = 0; i < d.n; i++) {
        e.weights[i] = d.weights[at[i]];
        for (int c = 0; c < d.p; c++)
            e.x[c * d.n + i] = d.x[c * d.n + at[i]];
        for (int f = 0; f < d.q; f++) /* 7919 is prime to 10007, so names stay distinct */
            e.codes[i * d.q + f] = (int32_t)(d.codes[at[i] * d.q + f] * INT64_C(7919) % 10007);
    }
    double *want = panel_residuals(&d, NULL, test_now.threads);
    double *r = panel_residuals(&e, NULL, test_now.threads);
    for (int c = 0; c < d.p; c++)
        for (int64_t i = 0; i < d.n; i++)
            CHECK_NEAR(r[c * d.n + i], want[c * d.n + at[i]], NEAR);
    free(at);
    free(want);
    free(r);
    panel_free(&d);
    panel_free(&e);
}

/** A whole weight k is the row k times. */
static void replicated(void)
{
    panel d = panel_make(600, 2, 1);
    panel_random_codes(&d, (const int64_t[]){40, 25});
    d.weights = panel_zeros(d.n, sizeof *d.weights);
    int64_t rows = 0;
    for (int64_t i = 0; i < d.n; i++)
        rows += (int64_t)(d.weights[i] = (double)(1 + test_below(4)));
    panel e = panel_make(rows, 2, 1);
    for (int64_t i = 0, k = 0; i < d.n; i++) {
        for (int64_t copy = 0; copy < (int64_t)d.weights[i]; copy++, k++) {
            e.x[k] = d.x[i];
            memcpy(e.codes + 2 * k, d.codes + 2 * i, 2 * sizeof *e.codes);
        }
    }
    double *r = panel_residuals(&d, NULL, test_now.threads);
    double *many = panel_residuals(&e, NULL, test_now.threads);
    for (int64_t i = 0, k = 0; i < d.n; k += (int64_t)d.weights[i], i++)
        CHECK_NEAR(r[i], many[k], NEAR);
    free(r);
    free(many);
    panel_free(&d);
    panel_free(&e);
}

/** Another factor never raises the sum of squares. */
static void more_factors(void)
{
    panel d = panel_make(1500, 10, 1);
    const int64_t levels[10] = {200, 90, 60, 40, 30, 20, 10, 5, 3, 2};
    panel_random_codes(&d, levels);
    double before = INFINITY;
    for (int q = 1; q <= 10; q++) {
        panel e = panel_make(d.n, q, 1);
        memcpy(e.x, d.x, (size_t)d.n * sizeof *e.x);
        for (int64_t i = 0; i < d.n; i++)
            memcpy(e.codes + i * q, d.codes + i * 10, (size_t)q * sizeof *e.codes);
        double *r = panel_residuals(&e, NULL, test_now.threads);
        const double norm = panel_norm(&e, r, NULL);
        CHECK_SAYS(norm <= before * (1 + 1e-14), "%d factors: %.17g > %.17g", q, norm, before);
        before = norm;
        free(r);
        panel_free(&e);
    }
    panel_free(&d);
}

/** One and two rows. */
static void tiny(void)
{
    for (int64_t n = 1; n <= 2; n++) {
        for (int q = 1; q <= 3; q++) {
            panel d = panel_make(n, q, 1);
            for (int f = 0; f < q && n == 2; f++)
                d.codes[q + f] = f < q - 1;
            double *r = panel_residuals(&d, NULL, 1);
            const bool alone = n == 1 || q > 1;
            CHECK_NEAR(r[0], alone ? 0 : (d.x[0] - d.x[1]) / 2, EXACT);
            free(r);
            panel_free(&d);
        }
    }
}

/** Codes are scanned in pieces of 4096 rows, several factors at once: lengths around a multiple of
 *  it, for each number of factors on both sides of what fits a vector.  The codes' memory ends with
 *  the last row. */
static void piece_edges(void)
{
    for (int q = 1; q <= 5; q++) {
        for (int64_t n = 2 * 4096 - 2; n <= 2 * 4096 + 4; n++) {
            panel d = panel_make(n, q, 1);
            panel_random_codes(&d, (const int64_t[]){400, 60, 12, 9, 7});
            double *r = panel_residuals(&d, NULL, test_now.threads);
            const panel_audit a = panel_check(&d, d.x, r);
            CHECK_SAYS(a.gradient <= 1.01e-10, "%d factors, %" PRId64 " rows: eta %.3g", q, n,
                       a.gradient);
            free(r);
            panel_free(&d);
        }
    }
}

/** Codes that leave gaps are numbered through after the pass that lays the rows out: the same bits
 *  as without gaps, for sorted units (which the scan alone tells) and for shuffled ones. */
static void gaps(void)
{
    enum { N = 20000, Q = 3 };
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        panel d = panel_make(N, Q, 1);
        panel_random_codes(&d, (const int64_t[]){2000, 300, 12});
        for (int64_t i = 0; i < N; i++)
            d.codes[i * Q] = (int32_t)(shuffled ? i * 7919 % 2000 : i / 10);
        double *dense = panel_residuals(&d, NULL, test_now.threads);
        for (int64_t i = 0; i < N * Q; i++)
            d.codes[i] = d.codes[i] * 3 + 2;
        double *sparse = panel_residuals(&d, NULL, test_now.threads);
        CHECK(memcmp(dense, sparse, N * sizeof *dense) == 0);
        free(dense);
        free(sparse);
        panel_free(&d);
    }
}

/** Conjugate gradients that are asked for need half as many steps as a cycle has levels: on a long
 *  one they end early with the warning that says why, and claim nothing; a short one costs little
 *  and gets all its steps. */
static void forecasts(void)
{
    for (int trial = 0; trial < 3; trial++) {
        if (!test_turn(trial, 3))
            continue;
        const int64_t p = trial == 1 ? 5000 : 60000;
        panel d = panel_cycle(p);
        frg_context *ctx = test_context();
        frg_demean_opts o = panel_options();
        o.method = trial == 2 ? FRG_FE_AUTO : FRG_FE_CG;
        o.precond = trial == 2 ? FRG_FE_PRECOND_DIAG : FRG_FE_PRECOND_AUTO;
        frg_demean_column column;
        panel_report report;
        CHECK_STATUS(panel_demean(ctx, &d, &o, d.x, &column, &report), FRG_MAX_ITER);
        CHECK(!column.converged && column.status == FRG_MAX_ITER);
        CHECK_INT(frg_warning_count(ctx), trial != 1);
        if (trial == 1) {
            CHECK_INT(column.iterations, o.max_iter);
        } else {
            CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-FE-109");
            CHECK_SAYS(column.iterations <= o.max_iter / 2, "%" PRId64 " steps", column.iterations);
        }
        frg_context_destroy(ctx);
        panel_free(&d);
    }
}

/** People over ten years, at firms at random or in turn, as bench/peers/fe_peers.py has them
 *  (simple, difficult).  An even number of firms, since graphs of turns differ by their common
 *  divisor with the years. */
static panel people(int64_t n, int q, bool in_turn)
{
    panel d = panel_make(n, q, 1);
    const int64_t firms = 2 * (n / 460);
    for (int64_t i = 0; i < n; i++) {
        d.codes[i * q] = (int32_t)(i / 10);
        d.codes[i * q + 1] = (int32_t)(in_turn ? i % firms : test_below(firms));
        if (q > 2)
            d.codes[i * q + 2] = (int32_t)(i % 10);
    }
    return d;
}

enum { FIRMS = 100, STRETCH_ROWS = 160 * FIRMS };

/** The firms of 2000 workers over 8 years among 100 firms; a move by at most 3 may lead out of
 *  these. */
static void draw_stretch(int *firm)
{
    for (int64_t i = 0; i < STRETCH_ROWS; i++) {
        firm[i] = i % 8 == 0              ? (int)test_below(FIRMS)
                  : test_uniform() < 0.05 ? firm[i - 1] + (int)test_below(7) - 3
                                          : firm[i - 1];
    }
}

/** A stretch `stretches` times around a ring. */
static panel ring_of_workers(const int *firm, int64_t stretches, int q)
{
    panel d = panel_make(stretches * STRETCH_ROWS, q, 1);
    for (int64_t i = 0; i < d.n; i++) {
        const int64_t all = stretches * FIRMS,
                      at = i / STRETCH_ROWS * FIRMS + firm[i % STRETCH_ROWS];
        d.codes[i * q] = (int32_t)(i / 8);
        d.codes[i * q + 1] = (int32_t)((at + all) % all);
        if (q > 2)
            d.codes[i * q + 2] = (int32_t)(i % 8);
    }
    return d;
}

/** On a ring the bytes of a factor are c n - e, e for the two places where the two ways around
 *  meet: what nine times the rows add is nine times what one times adds.  A hundredth is for the
 *  rows that a panel of the factor is filled up to. */
static void growth_of_factors(void)
{
    static int firm[STRETCH_ROWS];
    for (int q = 2; q <= 3; q++) {
        double bytes[3], others[3];
        draw_stretch(firm);
        for (int size = 0; size < 3; size++) {
            static const int64_t stretches[] = {6, 12, 60};
            panel d = ring_of_workers(firm, stretches[size], q);
            frg_demean_column column;
            panel_report report;
            frg_context *ctx = test_context();
            CHECK_OK(ctx, panel_demean(ctx, &d, NULL, d.x, &column, &report));
            bytes[size] = (double)report.plan.factor_bytes;
            others[size] = (double)(report.plan.plan_bytes - report.plan.factor_bytes);
            CHECK_INT(column.iterations, 0); /* the factor solves it */
            frg_context_destroy(ctx);
            panel_free(&d);
        }
        CHECK_SAYS(bytes[2] - bytes[0] <= 9.1 * (bytes[1] - bytes[0]),
                   "%d factors: %g, %g and %g bytes", q, bytes[0], bytes[1], bytes[2]);
        CHECK_SAYS(others[2] <= 10.1 * others[0], "%d factors: plans of %g and %g bytes", q,
                   others[0], others[2]);
    }
}

/** Ten times the rows take ten times of all that is counted: steps over all rows, bytes of the plan
 *  and of a factor. (Of workers among firms: growth of factors.) A step more is for a stop on the
 *  other side of the tolerance, a hundredth for what the rows do not decide. */
static void growth(void)
{
    for (int design = 0; design < 4; design++) {
        const int kind = design / 2, q = 2 + design % 2;
        frg_demean_column column[2];
        panel_report report[2];
        for (int size = 0; size < 2; size++) {
            const int64_t n = size == 0 ? 100000 : 1000000;
            panel d = people(n, q, kind == 1);
            frg_context *ctx = test_context();
            CHECK_OK(ctx, panel_demean(ctx, &d, NULL, d.x, &column[size], &report[size]));
            frg_context_destroy(ctx);
            panel_free(&d);
        }
        const size_t factor[2] = {report[0].plan.factor_bytes, report[1].plan.factor_bytes};
        const double most = 10.1 * (double)(report[0].plan.plan_bytes - factor[0]);
        CHECK_SAYS(column[1].iterations <= column[0].iterations + 1,
                   "design %d: %" PRId64 " and %" PRId64 " steps", design, column[0].iterations,
                   column[1].iterations);
        CHECK_SAYS((double)(report[1].plan.plan_bytes - factor[1]) <= most,
                   "design %d: a plan of %zu bytes", design, report[1].plan.plan_bytes - factor[1]);
        CHECK_SAYS((double)factor[1] <= 10.1 * (double)factor[0],
                   "design %d: factors of %zu and %zu bytes", design, factor[0], factor[1]);
    }
}

static const test_case cases[] = {
    {"group means", group_means},
    {"balanced factorials", balanced},
    {"forests", forest},
    {"even cycles", even_cycles},
    {"nested factors", nested},
    {"disconnected blocks", disconnected},
    {"orthogonal and idempotent", orthogonal_and_idempotent},
    {"reports", reports},
    {"affine, 1e-150 to 1e150", affine},
    {"offsets", offsets},
    {"constants", constants},
    {"permuted and renamed", permuted},
    {"weights and replication", replicated},
    {"more factors, less left", more_factors},
    {"one and two rows", tiny},
    {"edges of pieces", piece_edges},
    {"codes with gaps", gaps},
    {"forecasts", forecasts},
    {"growth of factors", growth_of_factors},
    {"ten times the rows", growth},
};
TEST_MAIN(cases)
