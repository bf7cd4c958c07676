/* test_fe_plain.c - the demeaner's solver on the plain steps of plain_steps.h, beside the same
 * solver on the host's and the dense oracle.
 *
 * r and r' of two runs and the oracle's r* differ by vectors in the range of D.  With A = W^(1/2) D
 * of unit columns, lambda the smallest non-zero eigenvalue of A'A and eta as in fourge/fe.h,
 *
 *     ||W^(1/2) (r - r*)||  <=  eta sqrt(Q) ||W^(1/2)(b - mean)|| / sqrt(lambda)
 *
 * so that r and r' are within the sum of their bounds of each other; eta is what a run reports, tol
 * at most of a column that has converged.  On top comes rounding: n terms a sum, amplified by 1 / sqrt(lambda).  Designs that
 * are too large for the oracle are held against what both runs claim, their error_bound, which is
 * this bound with a Ritz value in lambda's place, and the roundings of r = x - D alpha.
 */
#include "fe/fe_demean_plan.h"
#include "oracle/oracle.h"
#include "panel.h"
#include "plain_steps.h"

static const double tol = 1e-10;

enum { DESIGNS = 7, METHODS = 8, MAP = 7 };

/** A cycle, workers and firms with weights, random factors with and without, small ones beside a
 *  large one, two components, and two halves that a row of weight 1e-8 holds together. */
static panel design_of(int which)
{
    const int64_t n = 240;
    if (which == 0)
        return panel_cycle(40);
    panel d = which == 1 ? panel_workers(n, 3, 3) : panel_make(n, 3, 3);
    if (which == 2 || which == 3)
        panel_random_codes(&d, (const int64_t[]){40, 25, which == 2 ? 20 : 4});
    for (int64_t i = 0; i < n && which == 4; i++) { /* groups of many rows, small factors */
        d.codes[3 * i] = (int32_t)(i / 4);
        d.codes[3 * i + 1] = (int32_t)(i * i % 17);
        d.codes[3 * i + 2] = (int32_t)(i % 3);
    }
    for (int64_t i = 0; i < n && which == 5; i++) { /* two chains apart */
        const int32_t part = (int32_t)(2 * i / n), at = (int32_t)(i % (n / 2));
        d.codes[3 * i] = 100 * part + at / 3;
        d.codes[3 * i + 1] = 70 * part + (at + 1) / 4;
        d.codes[3 * i + 2] = part;
    }
    for (int64_t i = 0; i < n && which == 6; i++) /* two halves that hang together by a row */
        for (int q = 0; q < 3; q++)
            d.codes[3 * i + q] = (int32_t)(i == n - 1 && q == 0 ? 0
                                           : q == 2             ? 0
                                                                : 20 * (i / 120) + test_below(20));
    if (which == 1 || which == 3 || which == 6)
        panel_random_weights(&d, 0.5, 2);
    for (int64_t i = 0; i < d.n; i++)
        d.x[i] = 100 + 3 * d.x[i];
    if (which == 6) {
        d.weights[n - 1] = 1e-8;
        d.x[n - 1] = 1e6;
    }
    return d;
}

static frg_demean_opts options_of(int method)
{
    static const frg_fe_method methods[METHODS] = {FRG_FE_AUTO, FRG_FE_DIRECT, FRG_FE_CG,
                                                   FRG_FE_CG,   FRG_FE_CG,     FRG_FE_CG,
                                                   FRG_FE_LSMR, FRG_FE_MAP};
    frg_demean_opts o = panel_options();
    o.method = methods[method];
    o.precond = method == 3 ? FRG_FE_PRECOND_AC : FRG_FE_PRECOND_AUTO;
    o.dtype = method == 4 ? FRG_FE_MIXED : FRG_FE_F64;
    o.block = method == 5 ? 1 : o.block;
    o.tol = tol;
    o.max_iter = method == MAP ? o.max_iter : 2000;
    o.max_sweeps = method == MAP ? 100000 : o.max_sweeps;
    return o;
}

/** Residuals with these steps; the columns' reports. */
static frg_status solve(frg_context *ctx, const panel *d, int method, const fe_steps *steps,
                        double *r, frg_demean_column columns[])
{
    const frg_array codes = frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q);
    const frg_array weights = frg_vector(d->weights, FRG_F64, d->n);
    const frg_demean_opts o = options_of(method);
    frg_demean *plan = NULL;
    frg_status s = frgi_fe_demean_create(&plan, ctx, codes, d->weights ? &weights : NULL, NULL, 0,
                                         0, &o, steps);
    if (CHECK_OK(ctx, s))
        s = frg_demean_run(plan, panel_columns(d, d->x), panel_columns(d, r), columns, NULL);
    frg_demean_destroy(plan);
    return s;
}

static void compare(frg_context *ctx, const panel *d, const oracle *o, int which, int method)
{
    const double lambda = oracle_smallest_eigenvalue(o);
    double *const fast = panel_zeros(d->n * d->p, sizeof *fast);
    double *const slow = panel_zeros(d->n * d->p, sizeof *slow);
    double *const want = panel_zeros(d->n, sizeof *want);
    frg_demean_column of_fast[PANEL_COLUMNS] = {0}, of_slow[PANEL_COLUMNS] = {0};
    const frg_status s = solve(ctx, d, method, &frgi_fe_host_steps, fast, of_fast);
    CHECK_STATUS(solve(ctx, d, method, &plain_steps, slow, of_slow), s);
    CHECK_SAYS(s == FRG_OK || (s == FRG_STALLED && which == DESIGNS - 1),
               "design %d, method %d: %s", which, method, frg_status_name(s));
    for (int c = 0; c < d->p; c++) {
        const double *const b = d->x + c * d->n;
        const double norm = panel_norm(d, b, NULL), gap = sqrt(d->q) * panel_centred_norm(d, b);
        const double rounding = 8 * (double)d->n * DBL_EPSILON * norm;
        const double of_each[2] = {(of_fast[c].gradient * gap + rounding) / sqrt(lambda),
                                   (of_slow[c].gradient * gap + rounding) / sqrt(lambda)};
        oracle_demean(o, b, want);
        CHECK_INT(of_fast[c].converged, of_slow[c].converged);
        CHECK_SAYS(!of_slow[c].converged || of_slow[c].gradient <= tol,
                   "design %d, method %d, column %d: eta %.3g", which, method, c,
                   of_slow[c].gradient);
        const double apart = panel_norm(d, fast + c * d->n, slow + c * d->n);
        CHECK_SAYS(apart <= of_each[0] + of_each[1],
                   "design %d, method %d, column %d: %.3g apart, %.3g allowed", which, method, c,
                   apart, of_each[0] + of_each[1]);
        const double error = panel_norm(d, slow + c * d->n, want);
        CHECK_SAYS(error <= of_each[1],
                   "design %d, method %d, column %d: off by %.3g, %.3g allowed", which, method, c,
                   error, of_each[1]);
        CHECK_INT(of_fast[c].absorbed, of_slow[c].absorbed);
    }
    free(fast);
    free(slow);
    free(want);
}

static void whole_solves(void)
{
    frg_context *ctx = test_context();
    for (int which = 0; which < DESIGNS; which++) {
        if (!test_turn(which, 4))
            continue;
        panel d = design_of(which);
        const oracle_design design = {
            .n = d.n, .n_factors = d.q, .codes = d.codes, .weights = d.weights};
        oracle *o = oracle_create(&design);
        for (int method = 0; method < METHODS - (which == 6);
             method++) /* projections would not end */
            compare(ctx, &d, o, which, method);
        oracle_destroy(o);
        panel_free(&d);
    }
    frg_context_destroy(ctx);
}

/** A cycle beside units of 60 firms each, which are solved apart; or so many levels that the host's
 *  products go over to float32. */
static panel large_design(int which)
{
    const int64_t ring = 300, units = 300, levels = 9000;
    panel d = panel_make(which == 0 ? 2 * ring + 60 * units : 37000, 2, 1);
    for (int64_t i = 0; i < d.n; i++) {
        const int64_t j = i - 2 * ring;
        int32_t *const code = d.codes + 2 * i;
        if (which == 1) {
            code[0] = (int32_t)(i / 4);
            code[1] = (int32_t)(i < levels ? i : test_below(levels));
        } else if (j < 0) {
            code[0] = (int32_t)(i / 2);
            code[1] = (int32_t)((i + 1) / 2 % ring);
        } else {
            code[0] = (int32_t)(ring + j / 60);
            code[1] = (int32_t)(ring + (j < units ? j : test_below(units)));
        }
    }
    return d;
}

static void large_solves(void)
{
    frg_context *ctx = test_context();
    for (int which = 0; which < 2; which++) {
        panel d = large_design(which);
        const int method = which == 0 ? 0 : 2;
        double *const fast = panel_zeros(d.n, sizeof *fast), *const slow = panel_zeros(d.n, 8);
        frg_demean_column of[2] = {0};
        CHECK_OK(ctx, solve(ctx, &d, method, &frgi_fe_host_steps, fast, &of[0]));
        CHECK_OK(ctx, solve(ctx, &d, method, &plain_steps, slow, &of[1]));
        const double claimed =
            (of[0].error_bound + of[1].error_bound) * panel_centred_norm(&d, d.x);
        double largest = 0; /* of x - r, which is two effects at most */
        for (int64_t i = 0; i < d.n; i++)
            largest = fmax(largest, fabs(d.x[i] - slow[i]));
        const double rounding =
            2 * 2 * 0x1p-53 * (panel_norm(&d, d.x, NULL) + 2 * largest * sqrt((double)d.n));
        const double apart = panel_norm(&d, fast, slow);
        CHECK_SAYS(of[0].converged && of[1].converged && claimed < 1e-6, "design %d: %g and %g",
                   which, of[0].error_bound, of[1].error_bound);
        CHECK_SAYS(apart <= claimed + rounding, "design %d: %.3g apart, %.3g claimed", which, apart,
                   claimed + rounding);
        free(fast);
        free(slow);
        panel_free(&d);
    }
    frg_context_destroy(ctx);
}

/** Every step that has a way of its own was asked for. */
static void all_were_asked(void)
{
    for (int s = 0; s < PLAIN_STEPS; s++)
        CHECK_SAYS(plain.calls[s] > 0, "step %d was never asked for", s);
    CHECK(plain_row_calls > 5);
}

static const test_case cases[] = {{"whole solves on plain steps", whole_solves},
                                  {"larger ones", large_solves},
                                  {"all steps were asked for", all_were_asked}};
TEST_MAIN(cases)
