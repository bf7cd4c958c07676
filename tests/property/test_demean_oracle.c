/* test_demean_oracle.c - 300 random designs against the dense oracle in quadruple precision.
 *
 * One to four factors, up to 150 rows, 600 of few levels; gaps in codes, disconnected blocks,
 * nested and equal factors, paths, factors of one level, rows that are their own level; weights
 * from none to six decades; varying slopes.
 *
 * How near r has to be to the oracle's r*.  e = r - r* lies in the range of D, so with A = W^(1/2)
 * D S of unit columns and lambda the smallest non-zero eigenvalue of A'A,
 *
 *     ||W^(1/2) e|| <= ||A' W^(1/2) r|| / sqrt(lambda) = eta sqrt(Q) ||W^(1/2)(b - mean)|| /
 *     sqrt(lambda),
 *
 * and converged promises eta <= tol.  On top comes rounding: n terms a sum, amplified by 1 /
 * sqrt(lambda). lambda is computed by the oracle, so the bound is neither tuned nor the library's
 * own.
 */
#include "oracle/oracle.h"
#include "panel.h"

enum { DESIGNS = 300 };
static const double tol = 1e-10;

typedef enum {
    RANDOM,
    GAPS,
    BLOCKS,
    NESTED,
    PATH,
    EQUAL,
    ONE_LEVEL,
    OWN_LEVELS,
    SPARSE,
    FEW_LEVELS,
    KINDS
} design_kind;

static const char *const kind_name[KINDS] = {"random", "gaps",      "blocks",    "nested",
                                             "path",   "equal",     "one level", "own levels",
                                             "sparse", "few levels"};

static int32_t code_of(design_kind kind, int64_t i, int f, int64_t levels, const int32_t before[])
{
    const int64_t any = test_below(levels);
    switch (kind) {
    case GAPS:
        return (int32_t)(7 * any + 3);
    case BLOCKS: /* two halves that share no level of any factor */
        return (int32_t)(any + (i % 2) * levels);
    case NESTED:
        return f == 0 ? (int32_t)any : before[0] / (2 * f);
    case PATH: /* rows walk along a path of levels of the first two factors */
        return (int32_t)(f == 0 ? i / 2 : f == 1 ? (i + 1) / 2 : any);
    case EQUAL: /* the second factor is the first with other codes */
        return f == 1 ? 1000 - before[0] : (int32_t)any;
    case ONE_LEVEL:
        return f == 1 ? 5 : (int32_t)any;
    case OWN_LEVELS:
        return f == 0 ? (int32_t)i : (int32_t)any;
    default:
        return (int32_t)any;
    }
}

static panel draw(design_kind kind)
{
    const bool few = kind == FEW_LEVELS; /* many rows of every level */
    const int64_t n = few ? 100 + test_below(500) : 1 + test_below(test_below(10) ? 60 : 150);
    panel d = panel_make(n, 1 + (int)test_below(4), 1 + (int)test_below(3));
    for (int f = 0; f < d.q; f++) {
        const int64_t most = kind == SPARSE ? n : few ? 12 : n / 4 + 1;
        const int64_t levels = 1 + test_below(most > 40 ? 40 : most);
        for (int64_t i = 0; i < n; i++)
            d.codes[i * d.q + f] = code_of(kind, i, f, levels, d.codes + i * d.q);
    }
    const int64_t weighting = test_below(4);
    if (weighting == 1)
        panel_random_weights(&d, 0.1, 3);
    if (weighting >= 2) {
        panel_random_weights(&d, 0, 1);
        for (int64_t i = 0; i < n; i++) /* whole numbers, or 1e-3 .. 1e3 */
            d.weights[i] =
                weighting == 2 ? 1 + floor(5 * d.weights[i]) : pow(10, 6 * d.weights[i] - 3);
    }
    for (int64_t i = 0; i < n;
         i++) /* a column with an offset, and one that the first factor absorbs */
        d.x[i] = 100 + 3 * d.x[i];
    for (int64_t i = 0; i < n && d.p > 2; i++)
        d.x[2 * n + i] = sin(1.0 + d.codes[i * d.q]);
    return d;
}

/** One slope, on a factor at random, now and then without that factor's intercept. */
static void draw_slope(panel *d)
{
    d->n_slopes = 1;
    d->slope_values = panel_zeros(d->n, sizeof(double));
    for (int64_t i = 0; i < d->n; i++)
        d->slope_values[i] = test_normal();
    const int factor = (int)test_below(d->q);
    d->slopes[0] = (frg_slope){.factor = factor, .z = d->slope_values};
    d->no_intercept = test_below(3) ? 0 : UINT64_C(1) << factor;
}

static oracle *oracle_of(const panel *d)
{
    const int factor[1] = {d->n_slopes ? d->slopes[0].factor : 0};
    const double *const z[1] = {d->n_slopes ? d->slopes[0].z : NULL};
    const oracle_design design = {.n = d->n,
                                  .n_factors = d->q,
                                  .codes = d->codes,
                                  .weights = d->weights,
                                  .n_slopes = d->n_slopes,
                                  .slope_factor = factor,
                                  .slope = z,
                                  .no_intercept = d->no_intercept};
    return oracle_create(&design);
}

/** Levels of all factors that occur. */
static int64_t count_levels(const panel *d)
{
    int64_t levels = 0;
    for (int f = 0; f < d->q; f++) {
        for (int64_t i = 0; i < d->n; i++) {
            bool first = true;
            for (int64_t j = 0; j < i && first; j++)
                first = d->codes[j * d->q + f] != d->codes[i * d->q + f];
            levels += first;
        }
    }
    return levels;
}

/** Components of the graph whose vertices are the levels of all factors and whose edges are the
 *  rows. */
static int64_t count_components(const panel *d)
{
    int64_t *label =
        panel_zeros(d->n, sizeof *label); /* of rows; rows that share a level share it */
    for (int64_t i = 0; i < d->n; i++)
        label[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t i = 0; i < d->n; i++) {
            for (int64_t j = 0; j < d->n; j++) {
                bool shares = false;
                for (int f = 0; f < d->q; f++)
                    shares = shares || d->codes[i * d->q + f] == d->codes[j * d->q + f];
                if (shares && label[j] < label[i]) {
                    label[i] = label[j];
                    changed = true;
                }
            }
        }
    }
    int64_t components = 0;
    for (int64_t i = 0; i < d->n; i++)
        components += label[i] == i;
    free(label);
    return components;
}

static void check_column(const panel *d, const oracle *o, double lambda, int c, const double *r,
                         const frg_demean_column *column, const char *name)
{
    const double *const b = d->x + c * d->n;
    double *want = panel_zeros(d->n, sizeof *want);
    oracle_demean(o, b, want);
    const double centred = panel_centred_norm(d, b), norm = panel_norm(d, b, NULL);
    const double rounding = 8 * (double)d->n * DBL_EPSILON * norm;
    const double allowed = (2 * tol * sqrt(d->q + d->n_slopes) * centred + rounding) / sqrt(lambda);
    const double error = panel_norm(d, r, want);
    CHECK_SAYS(error <= allowed, "%s, column %d: error %.3g > %.3g of norm %.3g, lambda %.3g", name,
               c, error, allowed, norm, lambda);
    CHECK_SAYS(column->status == FRG_OK && column->converged, "%s, column %d: %s, eta %.3g", name,
               c, frg_status_name(column->status), column->gradient);
    /* Between the two thresholds rounding decides. */
    const double left = panel_norm(d, want, NULL);
    if (left <= 1e-13 * centred)
        CHECK_SAYS(column->absorbed, "%s, column %d is absorbed: %.3g of %.3g", name, c, left,
                   centred);
    if (left >= 1e-7 * centred && centred > 0)
        CHECK_SAYS(!column->absorbed, "%s, column %d is not absorbed: %.3g of %.3g", name, c, left,
                   centred);
    if (d->n_slopes == 0 && !column->absorbed) {
        const panel_audit mine = panel_check(d, b, r);
        CHECK_SAYS(mine.gradient <= 1.01 * tol + rounding / centred,
                   "%s, column %d: eta is %.3g, reported %.3g", name, c, mine.gradient,
                   column->gradient);
    }
    free(want);
}

/** Do the weights span more than three decades? */
static bool wide_weights(const panel *d)
{
    double least = (double)INFINITY, most = 0;
    for (int64_t i = 0; d->weights && i < d->n; i++) {
        least = d->weights[i] > 0 ? fmin(least, d->weights[i]) : least;
        most = fmax(most, d->weights[i]);
    }
    return most > 1e3 * least;
}

/** Sweeps times lambda after which alternating projections are there: with A = L + I + L' of
 *  columns of norm 1, a sweep takes the energy e'Ae to at most 1 - lambda / ||I + L||^2 of it, with
 *  ||I + L|| <= Q, and the gradient, at most sqrt(Q e'Ae), is to fall by tol = 1e-10:
 *  (2 log 1e10 + log Q) Q^2 < 50 Q^2 (of the identity of Xu and Zikatanov, 2002). */
static double sweeps_needed(const panel *d)
{
    return 50.0 * d->q * d->q;
}

static void check_design(frg_context *ctx, const panel *d, const frg_demean_opts *opts,
                         const oracle *o, double lambda, const char *name)
{
    double *r = panel_zeros(d->n * d->p, sizeof *r);
    frg_demean_column columns[PANEL_COLUMNS] = {0};
    panel_report report = {0};
    const frg_status s = panel_demean(ctx, d, opts, r, columns, &report);
    if (s == FRG_UNSUPPORTED && (opts->method != FRG_FE_AUTO || d->n_slopes))
        test_skip("a method or slopes are not supported");
    else if (s == FRG_STALLED && opts->method == FRG_FE_DIRECT && wide_weights(d))
        /* a pivot below 1e-9 of its diagonal counts as null, which a true one may be there: the
         * factor alone, which auto would leave, says that it is not enough */
        printf("# %s: stalled at an audit of %g\n", name, columns[0].audit);
    else if (s == FRG_MAX_ITER && opts->method == FRG_FE_MAP &&
             lambda < sweeps_needed(d) / (double)opts->max_sweeps)
        printf("# %s: not there in %" PRId64 " sweeps, lambda %.3g\n", name, opts->max_sweeps,
               lambda);
    else if (CHECK_SAYS(s == FRG_OK, "%s: %s: %s", name, frg_status_name(s), frg_message(ctx))) {
        for (int c = 0; c < d->p; c++)
            check_column(d, o, lambda, c, r + c * d->n, &columns[c], name);
        /* slopes are no small integers, and a pivot is at least lambda of its diagonal: the factor
         * takes one below 1e-9 for null */
        if (d->n_slopes && lambda < 1e-9)
            printf("# %s: lambda %.3g, rank %" PRId64 ", oracle %" PRId64 "\n", name, lambda,
                   report.rank.rank, oracle_rank(o));
        else if (report.rank.exact)
            CHECK_SAYS(report.rank.rank == oracle_rank(o), "%s: rank %" PRId64 ", oracle %" PRId64,
                       name, report.rank.rank, oracle_rank(o));
        else
            CHECK_SAYS(report.rank.rank >= oracle_rank(o) && opts->dof != FRG_DOF_EXACT,
                       "%s: rank %" PRId64 " (%s) is no bound of %" PRId64, name, report.rank.rank,
                       report.rank.method, oracle_rank(o));
        CHECK_SAYS(d->n_slopes || report.plan.levels == count_levels(d),
                   "%s: %" PRId64 " levels, counted %" PRId64, name, report.plan.levels,
                   count_levels(d));
        if (d->q > 1 && d->n_slopes == 0)
            CHECK_SAYS(report.rank.components == count_components(d),
                       "%s: %" PRId64 " components, counted %" PRId64, name, report.rank.components,
                       count_components(d));
    }
    free(r);
}

static void check_drawn(frg_context *ctx, const frg_demean_opts *opts, const panel *d,
                        const char *name)
{
    oracle *o = oracle_of(d);
    check_design(ctx, d, opts, o, oracle_smallest_eigenvalue(o), name);
    oracle_destroy(o);
}

static frg_demean_opts options_of(frg_fe_method method, frg_fe_dof dof)
{
    frg_demean_opts opts = panel_options();
    opts.method = method;
    opts.dof = dof;
    opts.tol = tol;
    if (method == FRG_FE_MAP)
        opts.max_sweeps = 100000;
    else
        opts.max_iter = 10000;
    return opts;
}

static void run_designs(frg_fe_method method, frg_fe_dof dof, int designs, bool slopes)
{
    frg_context *ctx = test_context();
    const frg_demean_opts opts = options_of(method, dof);
    for (int t = 0; t < designs && test_now.printed < TEST_PRINTED_MAX; t++) {
        if (!test_turn(t, 4))
            continue;
        const design_kind kind = (design_kind)(t % KINDS);
        panel d = draw(kind);
        if (slopes)
            draw_slope(&d);
        char name[128];
        snprintf(name, sizeof name, "design %d (%s, n %" PRId64 ", Q %d%s%s)", t, kind_name[kind],
                 d.n, d.q, d.weights ? ", weights" : "", slopes ? ", slope" : "");
        check_drawn(ctx, &opts, &d, name);
        panel_free(&d);
    }
    frg_context_destroy(ctx);
}

/** Weights over six decades: rounding of heavy levels may not end in the mean of a light one. */
static void light_levels(void)
{
    frg_context *ctx = test_context();
    const frg_demean_opts opts = options_of(FRG_FE_AUTO, FRG_DOF_EXACT);
    for (int t = 0; t < 400 && test_now.printed < TEST_PRINTED_MAX; t++) {
        if (!test_turn(t, 4))
            continue;
        panel d = draw(GAPS);
        if (!d.weights)
            d.weights = panel_zeros(d.n, sizeof *d.weights);
        for (int64_t i = 0; i < d.n; i++)
            d.weights[i] = pow(10, 6 * test_uniform() - 3);
        char name[128];
        snprintf(name, sizeof name, "design %d (n %" PRId64 ", Q %d)", t, d.n, d.q);
        check_drawn(ctx, &opts, &d, name);
        panel_free(&d);
    }
    frg_context_destroy(ctx);
}

static void designs_auto(void)
{
    run_designs(FRG_FE_AUTO, FRG_DOF_EXACT, DESIGNS, false);
}

static void designs_pairwise(void)
{
    run_designs(FRG_FE_AUTO, FRG_DOF_PAIRWISE, 45, false);
}

static void designs_cg(void)
{
    run_designs(FRG_FE_CG, FRG_DOF_AUTO, 45, false);
}

static void designs_lsmr(void)
{
    run_designs(FRG_FE_LSMR, FRG_DOF_AUTO, 45, false);
}

static void designs_mlsmr(void)
{
    run_designs(FRG_FE_MLSMR, FRG_DOF_AUTO, 45, false);
}

/** Alternating projections with and without slopes. */
static void designs_map(void)
{
    run_designs(FRG_FE_MAP, FRG_DOF_AUTO, 45, false);
    run_designs(FRG_FE_MAP, FRG_DOF_AUTO, 20, true);
}

static void designs_direct(void)
{
    run_designs(FRG_FE_DIRECT, FRG_DOF_AUTO, 45, false);
}

static void designs_slopes(void)
{
    run_designs(FRG_FE_AUTO, FRG_DOF_AUTO, 60, true);
}

/** The oracle itself, on a design solved by hand: two means, and y on x within them. */
static void oracle_by_hand(void)
{
    static const int32_t codes[4] = {0, 0, 3, 3};
    static const double y[4] = {1, 2, 3, 4}, x[4] = {5, 7, 11, 13};
    const oracle_design design = {.n = 4, .n_factors = 1, .codes = codes};
    oracle *o = oracle_create(&design);
    CHECK_INT(oracle_rank(o), 2);
    double r[4];
    oracle_demean(o, y, r);
    CHECK_NEAR(r[0], -0.5, 1e-16);
    CHECK_NEAR(r[3], 0.5, 1e-16);
    oracle_fit f;
    if (CHECK(oracle_regress(o, y, x, 1, &f))) {
        CHECK_NEAR(f.beta[0], 0.5, 1e-16); /* spec: a ~ b | c */
        CHECK_NEAR(f.bread[0], 0.25, 1e-16);
        CHECK_NEAR(f.rss, 0, 1e-30);
        oracle_fit_free(&f);
    }
    CHECK(!oracle_regress(o, y, (const double[]){1, 1, 2, 2}, 1, &f));
    CHECK_NEAR(oracle_smallest_eigenvalue(o), 1, 1e-12);
    oracle_destroy(o);
}

static const test_case cases[] = {
    {"oracle by hand", oracle_by_hand},
    {"300 designs, auto", designs_auto},
    {"light levels", light_levels},
    {"pairwise rank", designs_pairwise},
    {"cg", designs_cg},
    {"lsmr", designs_lsmr},
    {"mlsmr", designs_mlsmr},
    {"alternating projections", designs_map},
    {"direct", designs_direct},
    {"slopes", designs_slopes},
};
TEST_MAIN(cases)
