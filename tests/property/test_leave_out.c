/* test_leave_out.c - leave-out variance components against a dense way that refits without each
 * unit, the sets that stay connected against looking, and both on simulated panels.
 *
 * The dense way inverts S of up to 40 dummies in long double by Gauss and Jordan: conditions of the
 * drawn designs stay below 1e5, so that 1e-9 is four digits more than what double leaves of the
 * library's numbers.  Bounds of 4.5 standard errors are passed by chance once in 150 000 times a
 * comparison, and the seed is fixed.
 *
 * Numbers "of pytwoway" are version 0.3.21's on a panel that is a formula: FEEstimator with exact
 * leverages and traces (Sii_stayers = upper_bound: stayers' rows one by one), whose minres stops at
 * 1e-10; of matches on the means of movers, whose matches have two rows each.  Its exact trace
 * leaves a part of the workers' block out, so that Var(worker) is the one of 20 000 random draws,
 * which repeat to 2e-4, and its Cov is not compared.
 */
#include "fault.h"
#include "fourge/fe.h"
#include "test.h"

enum { ROWS = 240, WORKERS = 24, FIRMS = 8, MOST = WORKERS + FIRMS, UNITS = ROWS * 3 };
static const double DENSE = 1e-9, SIGMAS = 4.5;

typedef struct {
    int n;
    int64_t worker[ROWS], firm[ROWS];
    double x[ROWS], y[ROWS], w[ROWS];
} rows;

static frg_table *table_of(frg_context *ctx, const rows *r)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, r->n));
    CHECK_OK(ctx, frg_table_add_integers(t, "worker", r->worker));
    CHECK_OK(ctx, frg_table_add_integers(t, "firm", r->firm));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", r->x));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", r->y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "w", r->w));
    return t;
}

static frg_fe_opts options(frg_fe_connected connected)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.connected = connected;
    o.keep_effects = 1;
    o.demean.tol = 1e-13;
    return o;
}

static frg_leave_out_opts leaving(frg_leave_out_unit what, frg_leverage leverage)
{
    frg_leave_out_opts o;
    frg_leave_out_defaults(&o, sizeof o);
    o.leave_out = what;
    o.leverage = leverage;
    return o;
}

/** Workers of one to four spells at random firms, a few rows each. */
static rows draw(int workers, int firms)
{
    rows r = {0};
    for (int k = 0; k < workers; k++) {
        const int64_t spells = 1 + test_below(3);
        for (int64_t s = 0; s < spells; s++) {
            const int64_t firm = test_below(firms), count = 1 + test_below(3);
            for (int64_t i = 0; i < count && r.n < ROWS; i++) {
                const int at = r.n++;
                r.worker[at] = 7 * k;
                r.firm[at] = 100 - firm;
                r.x[at] = test_normal();
                r.w[at] = 1 + (double)test_below(3);
                r.y[at] = 9 + 0.5 * r.x[at] + 0.2 * (double)k + 0.4 * (double)firm +
                          (0.3 + 0.2 * (double)firm) * test_normal();
            }
        }
    }
    return r;
}

/* ---- the dense way --------------------------------------------------------------------------- */

typedef long double matrix[MOST + 1][MOST + 1];

/** a <- a^-1 of order n, by Gauss and Jordan with pivots of the largest size. */
static void invert(matrix a, int n)
{
    static long double both[MOST + 1][2 * (MOST + 1)];
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < 2 * n; j++) {
            both[i][j] = j < n ? a[i][j] : j == n + i;
        }
    }
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int i = c; i < n; i++) {
            pivot = fabsl(both[i][c]) > fabsl(both[pivot][c]) ? i : pivot;
        }
        for (int j = 0; j < 2 * n; j++) {
            const long double x = both[pivot][j];
            both[pivot][j] = both[c][j];
            both[c][j] = x;
        }
        for (int i = 0; i < n; i++) {
            const long double by = both[i][c] / both[c][c];
            for (int j = 0; j < 2 * n && i != c; j++) {
                both[i][j] -= by * both[c][j];
            }
        }
        const long double by = both[c][c];
        for (int j = 0; j < 2 * n; j++) {
            both[c][j] /= by;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            a[i][j] = both[i][n + j];
        }
    }
}

/** What is left out, one by one: places of the worker and the firm among the dummies (those of the
 *  last firm are left out), weight, outcome. */
typedef struct {
    int n, workers, firms;
    int worker[UNITS], firm[UNITS];
    double w[UNITS], y[UNITS];
} units;

static int place_of(int64_t *list, int *count, int64_t value)
{
    int at = 0;
    while (at < *count && list[at] != value) {
        at++;
    }
    list[at] = value;
    *count += at == *count;
    return at;
}

/** S^-1 of all units but one (-1: of all) and, where effects is not NULL, the estimates. */
static void estimate(const units *u, int without, matrix inverse, long double *effects)
{
    const int p = u->workers + u->firms - 1;
    long double right[MOST + 1] = {0};
    memset(inverse, 0, sizeof(matrix));
    for (int i = 0; i < u->n; i++) {
        const int a = u->worker[i], b = u->workers + u->firm[i];
        if (i == without) {
            continue;
        }
        inverse[a][a] += u->w[i];
        right[a] += u->w[i] * (long double)u->y[i];
        if (b < p) {
            inverse[b][b] += u->w[i];
            inverse[a][b] += u->w[i];
            inverse[b][a] += u->w[i];
            right[b] += u->w[i] * (long double)u->y[i];
        }
    }
    invert(inverse, p);
    for (int c = 0; effects && c <= p; c++) {
        effects[c] = 0;
        for (int d = 0; d < p && c < p; d++) {
            effects[c] += inverse[c][d] * right[d];
        }
    }
}

/** Var(a), Var(b), Cov(a, b) of effects over the units; z has the last firm's as 0. */
static void moments_of(const units *u, const long double *z, double out[3])
{
    long double W = 0, mean[2] = {0}, sum[3] = {0};
    for (int i = 0; i < u->n; i++) {
        W += u->w[i];
        mean[0] += u->w[i] * z[u->worker[i]];
        mean[1] += u->w[i] * z[u->workers + u->firm[i]];
    }
    for (int i = 0; i < u->n; i++) {
        const long double a = z[u->worker[i]] - mean[0] / W,
                          b = z[u->workers + u->firm[i]] - mean[1] / W;
        sum[0] += u->w[i] * a * a;
        sum[1] += u->w[i] * b * b;
        sum[2] += u->w[i] * a * b;
    }
    for (int c = 0; c < 3; c++) {
        out[c] = (double)(sum[c] / W);
    }
}

/** Plug-in components, sum B_ii, and those corrected, with a refit for each unit. */
static void by_refits(const units *u, double plain[3], double trace[3], double corrected[3])
{
    static matrix all, some;
    long double effects[MOST + 1], z[MOST + 1], W = 0, mean = 0;
    const int p = u->workers + u->firms - 1;
    estimate(u, -1, all, effects);
    moments_of(u, effects, plain);
    for (int i = 0; i < u->n; i++) {
        W += u->w[i];
        mean += u->w[i] * (long double)u->y[i];
    }
    for (int c = 0; c < 3; c++) {
        trace[c] = 0;
        corrected[c] = plain[c];
    }
    for (int i = 0; i < u->n; i++) {
        const int a = u->worker[i], b = u->workers + u->firm[i];
        double B[3];
        for (int c = 0; c <= p; c++) {
            z[c] = c == p ? 0 : all[c][a] + (b < p ? all[c][b] : 0);
        }
        moments_of(u, z, B); /* z'Az, z = S^- d_i */
        estimate(u, i, some, effects);
        const double left = u->y[i] - (double)(effects[a] + effects[b]);
        const double s = u->w[i] * (u->y[i] - (double)(mean / W)) * left;
        for (int c = 0; c < 3; c++) {
            trace[c] += u->w[i] * B[c];
            corrected[c] -= u->w[i] * B[c] * s;
        }
    }
}

/** The sums over units of the squared change of the corrected components when a unit's outcome is
 *  what the others predict. */
static void by_replacing(units *u, const double corrected[3], double out[3])
{
    static matrix some;
    long double effects[MOST + 1];
    for (int c = 0; c < 3; c++) {
        out[c] = 0;
    }
    for (int i = 0; i < u->n; i++) {
        const double y = u->y[i];
        double plain[3], trace[3], changed[3];
        estimate(u, i, some, effects);
        u->y[i] = (double)(effects[u->worker[i]] + effects[u->workers + u->firm[i]]);
        by_refits(u, plain, trace, changed);
        u->y[i] = y;
        for (int c = 0; c < 3; c++) {
            out[c] += (corrected[c] - changed[c]) * (corrected[c] - changed[c]);
        }
    }
}

static bool moves(const rows *r, const int32_t *used, int row)
{
    for (int j = 0; j < r->n; j++) {
        if (used[j] && r->worker[j] == r->worker[row] && r->firm[j] != r->firm[row]) {
            return true;
        }
    }
    return false;
}

/** The unit of the row's match among those there are, or a new one. */
static int unit_of(units *u, int worker, int firm)
{
    for (int i = 0; i < u->n; i++) {
        if (u->worker[i] == worker && u->firm[i] == firm) {
            return i;
        }
    }
    u->worker[u->n] = worker;
    u->firm[u->n] = firm;
    return u->n++;
}

/** Rows in use as units, y less the slope times x; matches are means, but for those of workers who
 *  have one; a frequency weight is as many rows. */
static units units_of(const rows *r, const int32_t *used, const double *weights, bool frequency,
                      double slope, bool matches)
{
    static int64_t workers[WORKERS + 1], firms[FIRMS + 1];
    units u = {0};
    for (int i = 0; i < r->n; i++) {
        if (!used[i]) {
            continue;
        }
        const int a = place_of(workers, &u.workers, r->worker[i]),
                  b = place_of(firms, &u.firms, r->firm[i]);
        const double w = weights ? weights[i] : 1, y = r->y[i] - slope * r->x[i];
        if (matches && moves(r, used, i)) {
            const int at = unit_of(&u, a, b);
            u.y[at] = (u.w[at] * u.y[at] + w * y) / (u.w[at] + w);
            u.w[at] += w;
            continue;
        }
        for (int copy = 0; copy < (frequency ? (int)w : 1); copy++) {
            u.worker[u.n] = a;
            u.firm[u.n] = b;
            u.w[u.n] = frequency ? 1 : w;
            u.y[u.n++] = y;
        }
    }
    return u;
}

static void near(const frg_variance_components *got, const double want[3], double outcome)
{
    CHECK_NEAR(got->first, want[0], DENSE);
    CHECK_NEAR(got->second, want[1], DENSE);
    CHECK_NEAR(got->covariance, want[2], DENSE);
    CHECK_NEAR(got->explained, (want[0] + want[1] + 2 * want[2]) / outcome, DENSE);
    if (want[0] > 0.01 && want[1] > 0.01) {
        CHECK_NEAR(got->correlation, want[2] / sqrt(want[0] * want[1]), 100 * DENSE);
    }
}

/** Whether the design is small: the dense way has n^2 refits. */
static bool compare_errors(units *u, const double corrected[3], const frg_variance_components *got)
{
    double want[3];
    if (u->n > 40) {
        return false;
    }
    by_replacing(u, corrected, want);
    CHECK_NEAR(got->first, sqrt(want[0]), DENSE);
    CHECK_NEAR(got->second, sqrt(want[1]), DENSE);
    CHECK_NEAR(got->covariance, sqrt(want[2]), DENSE);
    CHECK(isnan(got->correlation) && isnan(got->explained));
    return true;
}

/** One drawn design; whether it could be compared. */
static bool compare(frg_context *ctx, frg_leave_out_unit what, const char *formula, int weighted,
                    int *errors)
{
    static const frg_fe_connected sets[] = {FRG_CONNECTED_MATCH, FRG_CONNECTED_OBSERVATION,
                                            FRG_CONNECTED_LARGEST};
    const rows r = draw(6 + (int)test_below(WORKERS - 6), 3 + (int)test_below(FIRMS - 3));
    frg_table *const t = table_of(ctx, &r);
    frg_fe_opts o = options(sets[what]);
    const frg_leave_out_opts l = leaving(what, FRG_LEVERAGE_AUTO);
    frg_fe *f = NULL;
    frg_leave_out got;
    int32_t used[ROWS];
    bool done = false;
    o.weights = weighted ? "w" : NULL;
    o.weights_kind = weighted == 2 ? FRG_WEIGHTS_FREQUENCY : FRG_WEIGHTS_ANALYTIC;
    const frg_status status = frg_fe_fit(&f, ctx, formula, t, &o);
    if (status == FRG_OK && frg_fe_get(f)->factor_levels[1] > 1 && frg_fe_get(f)->df_residual > 4 &&
        CHECK_OK(ctx, frg_fe_leave_out(f, &l, &got)) &&
        CHECK_OK(ctx, frg_fe_groups(f, used, NULL))) {
        const frg_fe_result *const q = frg_fe_get(f);
        const double slope = q->n_coefficients ? q->coefficients[0].estimate : 0;
        units u = units_of(&r, used, weighted ? r.w : NULL, weighted == 2, slope,
                           what == FRG_LEAVE_MATCH);
        const units single = units_of(&r, used, weighted ? r.w : NULL, weighted == 2, slope, false);
        double plain[3], trace[3], corrected[3], homoscedastic[3], unused[3];
        by_refits(&single, plain, trace, what == FRG_LEAVE_OBSERVATION ? corrected : unused);
        const double v = q->rss / (double)q->df_residual;
        for (int c = 0; c < 3; c++) {
            homoscedastic[c] = plain[c] - v * trace[c];
        }
        CHECK_NEAR(got.error_variance, v, DENSE);
        CHECK_INT(got.n_first, u.workers);
        CHECK_INT(got.n_second, u.firms);
        near(&got.plug_in, plain, got.outcome_variance);
        near(&got.homoscedastic, homoscedastic, got.outcome_variance);
        if (what == FRG_LEAVE_MATCH) {
            by_refits(&u, plain, trace, corrected);
        }
        if (what != FRG_LEAVE_NONE) {
            near(&got.corrected, corrected, got.outcome_variance);
            CHECK(got.leverage_max > 0 && got.leverage_max < 1);
            CHECK(got.corrected_error.first == 0);
            *errors += compare_errors(&u, corrected, &got.sampling_error);
        } else {
            CHECK(isnan(got.sampling_error.first) && isnan(got.sampling_error.covariance));
            CHECK(isnan(got.corrected.first) && isnan(got.leverage_max));
        }
        done = true;
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return done;
}

static void by_the_dense_way(void)
{
    static const char *const formulas[] = {"y ~ 1 | worker + firm", "y ~ x | worker + firm"};
    frg_context *const ctx = test_context();
    for (int what = 0; what < 3; what++) {
        int compared = 0, errors = 0;
        /* a fifth of the designs or more are of few units: of a hundred one is at least */
        for (int trial = 0;
             trial < test_size(24, 6) || (what != FRG_LEAVE_NONE && errors == 0 && trial < 100);
             trial++) {
            const int weighted = what == FRG_LEAVE_NONE ? 0 : trial / 2 % 3;
            compared +=
                compare(ctx, (frg_leave_out_unit)what, formulas[trial % 2], weighted, &errors);
        }
        CHECK_SAYS(compared >= test_size(8, 2), "%d designs", compared);
        CHECK_SAYS(errors > 0 || what == FRG_LEAVE_NONE, "no design of few units");
    }
    frg_context_destroy(ctx);
}

/* ---- sets ------------------------------------------------------------------------------------ */

/** Labels of the levels' sets in the rows that `out` leaves: first those of workers. */
static void label(const rows *r, const bool *out, int *of)
{
    for (int i = 0; i < r->n; i++) {
        of[i] = i;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < r->n; i++) {
            for (int j = 0; j < r->n; j++) {
                if (!out[i] && !out[j] && of[j] < of[i] &&
                    (r->worker[i] == r->worker[j] || r->firm[i] == r->firm[j])) {
                    of[i] = of[j];
                    changed = true;
                }
            }
        }
    }
}

static bool same_match(const rows *r, int i, int j)
{
    return r->worker[i] == r->worker[j] && r->firm[i] == r->firm[j];
}

/** Is the row's worker still in one set with its firm when the row, or its match, is left out? */
static bool is_bridge(const rows *r, int row, bool match)
{
    bool out[ROWS] = {false};
    int of[ROWS];
    for (int j = 0; j < r->n; j++) {
        out[j] = match ? same_match(r, row, j) : j == row;
    }
    label(r, out, of);
    for (int i = 0; i < r->n; i++) {
        for (int j = 0; j < r->n; j++) {
            if (!out[i] && !out[j] && r->worker[i] == r->worker[row] &&
                r->firm[j] == r->firm[row] && of[i] == of[j]) {
                return false;
            }
        }
    }
    return true;
}

/** set[i] <- the set of row i when no bridge is left, -1: none; a match of several rows whose
 *  worker has nothing else there is its firm's. */
static void look(const rows *r, bool match, int *set)
{
    bool out[ROWS], bridge[ROWS];
    int of[ROWS];
    for (int i = 0; i < r->n; i++) {
        bridge[i] = out[i] = is_bridge(r, i, match);
    }
    label(r, out, of);
    for (int i = 0; i < r->n; i++) {
        int alike = 0, firm = ROWS + (int)r->firm[i];
        for (int j = 0; j < r->n; j++) {
            alike += same_match(r, i, j);
            firm = !bridge[j] && r->firm[j] == r->firm[i] ? of[j] : firm;
        }
        set[i] = !bridge[i] ? of[i] : match && alike > 1 ? firm : -1;
    }
}

static void sets_by_looking(void)
{
    frg_context *const ctx = test_context();
    int compared = 0, cut = 0;
    for (int trial = 0; trial < test_size(120, 20); trial++) {
        const bool match = trial % 2;
        rows r = draw(4 + (int)test_below(10), 2 + (int)test_below(6));
        frg_fe_opts o = options(match ? FRG_CONNECTED_MATCH : FRG_CONNECTED_OBSERVATION);
        frg_table *const t = table_of(ctx, &r);
        frg_fe *f = NULL;
        int set[ROWS], size[2 * ROWS] = {0}, most = 0, number = 0;
        int32_t used[ROWS] = {0};
        look(&r, match, set);
        for (int i = 0; i < r.n; i++) {
            size[set[i] < 0 ? 2 * ROWS - 1 : set[i]] += set[i] >= 0;
        }
        for (int s = 0; s < 2 * ROWS; s++) {
            most = size[s] > most ? size[s] : most;
            number += size[s] > 0;
        }
        o.keep_singletons = trial % 4 > 1;
        const frg_status status = frg_fe_fit(&f, ctx, "y ~ 1 | worker + firm", t, &o);
        if (most == 0) {
            CHECK_INT(status, FRG_BAD_DATA);
            CHECK(strstr(frg_message(ctx), "is left") != NULL);
        } else if (status == FRG_OK && CHECK_OK(ctx, frg_fe_groups(f, used, NULL))) {
            int of = -1, count = 0;
            for (int i = 0; i < r.n; i++) {
                of = used[i] && of < 0 ? set[i] : of;
                CHECK(!used[i] || set[i] == of);
                count += used[i];
            }
            CHECK_INT(count, most);
            CHECK_INT(frg_fe_get(f)->n_groups, number);
            CHECK_INT(frg_fe_get(f)->n_disconnected + frg_fe_get(f)->n_singleton, r.n - most);
            compared++;
            cut += most < r.n;
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    CHECK_SAYS(compared > test_size(60, 8) && cut > test_size(30, 4), "%d and %d", compared, cut);
    frg_context_destroy(ctx);
}

/* ---- numbers of pytwoway --------------------------------------------------------------------- */

static rows formula_rows(bool movers)
{
    rows r = {0};
    for (int k = 0; k < 60; k++) {
        for (int t = 0; t < 4; t++) {
            const int firm = (k * k + t / 2 * (k % 4)) % 6;
            if (movers && k % 4 == 0) {
                continue;
            }
            r.worker[r.n] = k;
            r.firm[r.n] = firm;
            r.y[r.n++] = 0.3 * (k % 7) + 0.2 * firm +
                         (k * 7919 + t * 104729 + k * t * 31) % 1009 / 1009.0 * (1 + firm % 3);
        }
    }
    return r;
}

static void numbers_of_pytwoway(void)
{
    static const struct {
        frg_fe_connected connected;
        frg_leave_out_unit what;
        double plug_in[3], firm, worker;
    } want[] = {{FRG_CONNECTED_OBSERVATION,
                 FRG_LEAVE_OBSERVATION,
                 {0.41094825950935127, 0.3477094893998959, -0.014507414562938884},
                 0.3368171330457507,
                 0.33784222123947566},
                {FRG_CONNECTED_MATCH,
                 FRG_LEAVE_MATCH,
                 {0.36809450312775854, 0.3100392263255831, 0.00038379317912375267},
                 0.29404183771115544,
                 0.2829611482169047}};
    frg_context *const ctx = test_context();
    for (int i = 0; i < 2; i++) {
        const rows r = formula_rows(want[i].what == FRG_LEAVE_MATCH);
        const frg_fe_opts o = options(want[i].connected);
        const frg_leave_out_opts l = leaving(want[i].what, FRG_LEVERAGE_EXACT);
        frg_table *const t = table_of(ctx, &r);
        frg_fe *f = NULL;
        frg_leave_out got = {0};
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ 1 | worker + firm", t, &o));
        CHECK_OK(ctx, frg_fe_leave_out(f, &l, &got));
        CHECK_INT(got.n, r.n);
        CHECK_INT(got.n_movers, 45);
        CHECK_NEAR(got.plug_in.first, want[i].plug_in[0], 1e-9);
        CHECK_NEAR(got.plug_in.second, want[i].plug_in[1], 1e-9);
        CHECK_NEAR(got.plug_in.covariance, want[i].plug_in[2], 1e-9);
        CHECK_NEAR(got.corrected.second, want[i].firm, 1e-9);
        CHECK_NEAR(got.corrected.first, want[i].worker, 2e-4);
        if (i == 0) {
            CHECK_NEAR(got.homoscedastic.second, 0.33751569086567224, 1e-9);
            CHECK_NEAR(got.homoscedastic.covariance, -0.008868796754636747, 1e-9);
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/* ---- simulated panels ------------------------------------------------------------------------ */

/** A panel of movers and stayers with effects that are known. */
typedef struct {
    int64_t n, workers, firms;
    int64_t *worker, *firm;
    double *a, *b, *x, *y;
} panel;

static panel make_panel(int64_t workers, int64_t firms, int64_t each)
{
    panel p = {.n = workers * each, .workers = workers, .firms = firms};
    p.worker = calloc((size_t)p.n, sizeof *p.worker);
    p.firm = calloc((size_t)p.n, sizeof *p.firm);
    p.a = calloc((size_t)workers, sizeof *p.a);
    p.b = calloc((size_t)firms, sizeof *p.b);
    p.x = calloc((size_t)p.n, sizeof *p.x);
    p.y = calloc((size_t)p.n, sizeof *p.y);
    for (int64_t j = 0; j < firms; j++) {
        p.b[j] = 0.4 * test_normal();
    }
    for (int64_t k = 0; k < workers; k++) {
        int64_t firm = test_below(firms);
        p.a[k] = 0.5 * p.b[firm] + 0.6 * test_normal();
        for (int64_t t = 0; t < each; t++) {
            firm = test_uniform() < 0.5 && t % 2 == 0 ? test_below(firms) : firm;
            p.worker[k * each + t] = k;
            p.firm[k * each + t] = firm;
            p.x[k * each + t] = test_normal();
        }
    }
    return p;
}

static void free_panel(panel *p)
{
    free(p->worker);
    free(p->firm);
    free(p->a);
    free(p->b);
    free(p->x);
    free(p->y);
}

/** Outcomes with errors that are larger for workers who move, and that share a part within a
 *  match. */
static void draw_outcomes(panel *p, double shared)
{
    double common = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const bool again =
            i > 0 && p->worker[i] == p->worker[i - 1] && p->firm[i] == p->firm[i - 1];
        const int64_t each = p->n / p->workers, first = i / each * each;
        const double size = p->firm[first] != p->firm[first + each - 1] ? 1 : 0.3;
        common = again ? common : test_normal();
        p->y[i] = 10 + p->a[p->worker[i]] + p->b[p->firm[i]] + 0.5 * p->x[i] +
                  size * (shared * common + test_normal());
    }
}

static frg_table *panel_table(frg_context *ctx, const panel *p)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, p->n));
    CHECK_OK(ctx, frg_table_add_integers(t, "worker", p->worker));
    CHECK_OK(ctx, frg_table_add_integers(t, "firm", p->firm));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", p->x));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", p->y));
    return t;
}

/** The components of the effects that the outcomes were drawn with, over the rows in use. */
static void truth_of(const panel *p, const int32_t *used, double out[3])
{
    double n = 0, mean[2] = {0};
    for (int64_t i = 0; i < p->n; i++) {
        n += used[i] > 0;
        mean[0] += used[i] ? p->a[p->worker[i]] : 0;
        mean[1] += used[i] ? p->b[p->firm[i]] : 0;
    }
    out[0] = out[1] = out[2] = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double a = p->a[p->worker[i]] - mean[0] / n, b = p->b[p->firm[i]] - mean[1] / n;
        out[0] += used[i] ? a * a / n : 0;
        out[1] += used[i] ? b * b / n : 0;
        out[2] += used[i] ? a * b / n : 0;
    }
}

typedef struct {
    double sum[3], square[3];
    int n;
} sample;

static void add(sample *s, const frg_variance_components *v, const double truth[3])
{
    const double x[3] = {v->first - truth[0], v->second - truth[1], v->covariance - truth[2]};
    for (int c = 0; c < 3; c++) {
        s->sum[c] += x[c];
        s->square[c] += x[c] * x[c];
    }
    s->n++;
}

/** The mean over its standard error. */
static double studentised(const sample *s, int c)
{
    const double mean = s->sum[c] / s->n;
    return mean / sqrt((s->square[c] / s->n - mean * mean) / (s->n - 1));
}

/** Squared standard errors, and how often 1.96 of them cover what was drawn. */
typedef struct {
    double square[3];
    int covers[3];
} intervals;

static void add_interval(intervals *k, const frg_leave_out *got, const double truth[3])
{
    const frg_variance_components *const v = &got->corrected, *const e = &got->sampling_error;
    const double error[3] = {e->first, e->second, e->covariance};
    const double off[3] = {v->first - truth[0], v->second - truth[1], v->covariance - truth[2]};
    for (int c = 0; c < 3; c++) {
        k->square[c] += error[c] * error[c];
        k->covers[c] += fabs(off[c]) < 1.96 * error[c];
    }
}

/** The mean of the squares is no less than the variance over panels, which is known with a relative
 *  error of (2 / n)^(1/2), and the intervals cover no less than a normal variable's: each but for
 *  six deviations. */
static void check_intervals(const intervals *k, const sample *s, int c)
{
    const double n = s->n, mean = s->sum[c] / n, variance = s->square[c] / n - mean * mean;
    CHECK_SAYS(k->square[c] / n > variance * (1 - 6 * sqrt(2 / n)), "component %d: %.3g of %.3g", c,
               k->square[c] / n, variance);
    CHECK_SAYS(k->square[c] / n < 8 * variance, "component %d: %.3g of %.3g", c, k->square[c] / n,
               variance);
    CHECK_SAYS(k->covers[c] / n > 0.95 - 6 * sqrt(0.95 * 0.05 / n), "component %d: %d of %d", c,
               k->covers[c], s->n);
}

/** The means of many panels: corrected are right, the plug-in and, with such errors, the
 *  homoscedastic estimates are not.  Taking the mean of y off makes s_i biased by a share of 1 / n
 *  of the differences between the variances: below a hundredth of a standard error here. */
static void unbiased(frg_leave_out_unit what, double shared)
{
    frg_context *const ctx = test_context();
    panel p = make_panel(150, 12, 4);
    int32_t *const used = calloc((size_t)p.n, sizeof *used);
    const frg_fe_opts o =
        options(what == FRG_LEAVE_MATCH ? FRG_CONNECTED_MATCH : FRG_CONNECTED_OBSERVATION);
    const frg_leave_out_opts l = leaving(what, FRG_LEVERAGE_EXACT);
    const int64_t trials = test_size(400, 100);
    sample corrected = {0}, plain = {0}, equal = {0};
    intervals covered = {0};
    for (int trial = 0; trial < trials; trial++) {
        frg_leave_out got;
        frg_fe *f = NULL;
        double truth[3];
        draw_outcomes(&p, shared);
        frg_table *const t = panel_table(ctx, &p);
        if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | worker + firm", t, &o)) &&
            CHECK_OK(ctx, frg_fe_leave_out(f, &l, &got)) &&
            CHECK_OK(ctx, frg_fe_groups(f, used, NULL))) {
            truth_of(&p, used, truth);
            add(&corrected, &got.corrected, truth);
            add_interval(&covered, &got, truth);
            add(&plain, &got.plug_in, truth);
            add(&equal, &got.homoscedastic, truth);
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    for (int c = 0; c < 3; c++) {
        const bool known = !(what == FRG_LEAVE_MATCH && shared > 0 && c == 0);
        CHECK_SAYS(!known || fabs(studentised(&corrected, c)) < 6, "component %d of %d: %.3g", c,
                   what, studentised(&corrected, c));
        if (known) {
            check_intervals(&covered, &corrected, c);
        }
        CHECK_SAYS(fabs(studentised(&plain, c)) > 5, "component %d: %.3g", c,
                   studentised(&plain, c));
    }
    if (trials >= 400) { /* about 12 then, 4 to 12 of a hundred panels */
        CHECK_SAYS(fabs(studentised(&equal, 1)) > 3, "%.3g", studentised(&equal, 1));
    }
    free(used);
    free_panel(&p);
    frg_context_destroy(ctx);
}

static void unbiased_without_matches(void)
{
    unbiased(FRG_LEAVE_MATCH, 0);
}

/** Stayers' matches are not left out, so that Var(a) is not corrected for what their rows share. */
static void unbiased_with_shared_errors(void)
{
    unbiased(FRG_LEAVE_MATCH, 1);
}

static void unbiased_without_observations(void)
{
    unbiased(FRG_LEAVE_OBSERVATION, 0);
}

/* ---- random projections ---------------------------------------------------------------------- */

static void add_error(double got, double want, double error, double *sum, int *count)
{
    const double z = (got - want) / error;
    CHECK_SAYS(fabs(z) < SIGMAS, "%.6g, exactly %.6g, standard error %.3g", got, want, error);
    *sum += z * z;
    (*count)++;
}

/** A standard error with leverages from 60 projections: 1 / (1 - P) of a unit errs by a share of
 *  (2 / 60)^(1/2) or less, 4.5 of which are 0.82; a root of a sum errs by no more, though it be that
 *  of one unit whose leverage is nearly 1. */
static void check_error(double got, double want)
{
    CHECK_NEAR(log(got / want), 0, log(1.82));
}

/** Within their own standard errors of the exact ones, and these are about right: the mean of 60
 *  squares, of seeds that are independent though the three components are not, lies within 1 / 3
 *  and 3. */
static void projections(frg_leave_out_unit what)
{
    panel p = make_panel(1200, 150, 4);
    frg_context *ctx = test_context();
    draw_outcomes(&p, 0);
    frg_table *t = panel_table(ctx, &p);
    const frg_fe_opts o = options(FRG_CONNECTED_MATCH);
    frg_leave_out exact = {0}, got;
    double sum = 0, trace = 0;
    int count = 0, traces = 0;
    for (uint64_t seed = 0; seed <= 20; seed++) {
        frg_leave_out_opts l = leaving(what, seed ? FRG_LEVERAGE_APPROX : FRG_LEVERAGE_EXACT);
        frg_context_opts c;
        frg_context *own = NULL;
        frg_fe *f = NULL;
        frg_context_defaults(&c, sizeof c);
        c.seed = seed;
        c.threads = test_now.threads;
        l.draws = 60;
        CHECK_OK(NULL, frg_context_create(&own, &c));
        if (CHECK_OK(own, frg_fe_fit(&f, own, "y ~ x | worker + firm", t, &o)) &&
            CHECK_OK(own, frg_fe_leave_out(f, &l, seed ? &got : &exact)) && seed) {
            add_error(got.corrected.first, exact.corrected.first, got.corrected_error.first, &sum,
                      &count);
            add_error(got.corrected.second, exact.corrected.second, got.corrected_error.second,
                      &sum, &count);
            add_error(got.corrected.covariance, exact.corrected.covariance,
                      got.corrected_error.covariance, &sum, &count);
            add_error(got.homoscedastic.second, exact.homoscedastic.second,
                      got.homoscedastic_error.second, &trace, &traces);
            check_error(got.sampling_error.first, exact.sampling_error.first);
            check_error(got.sampling_error.second, exact.sampling_error.second);
            check_error(got.sampling_error.covariance, exact.sampling_error.covariance);
            CHECK_INT(got.draws, 60);
            CHECK(got.iterations > 0 && got.iterations < 200);
            CHECK_NEAR(got.plug_in.second, exact.plug_in.second, 1e-12);
        }
        frg_fe_destroy(f);
        frg_context_destroy(own);
    }
    CHECK_SAYS(sum / count > 1.0 / 3 && sum / count < 3, "mean square %.3g", sum / count);
    CHECK_SAYS(trace / traces > 1.0 / 3 && trace / traces < 3, "mean square %.3g", trace / traces);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
    free_panel(&p);
}

static void projections_of_matches(void)
{
    projections(FRG_LEAVE_MATCH);
}

static void projections_of_observations(void)
{
    projections(FRG_LEAVE_OBSERVATION);
}

/* ---- threads, memory, bad input -------------------------------------------------------------- */

static void same_bits(void)
{
    static const int threads[] = {1, 2, 3, 8};
    panel p = make_panel(700, 90, 4);
    draw_outcomes(&p, 0);
    for (int way = 0; way < 2; way++) {
        frg_leave_out first = {0};
        for (int k = 0; k < 4; k++) {
            frg_context *const ctx = test_context_with(threads[k], NULL, NULL);
            frg_table *const t = panel_table(ctx, &p);
            const frg_fe_opts o = options(FRG_CONNECTED_MATCH);
            const frg_leave_out_opts l =
                leaving(FRG_LEAVE_MATCH, way ? FRG_LEVERAGE_APPROX : FRG_LEVERAGE_EXACT);
            frg_fe *f = NULL;
            frg_leave_out got = {0};
            CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | worker + firm", t, &o));
            CHECK_OK(ctx, frg_fe_leave_out(f, &l, &got));
            first = k ? first : got;
            CHECK_BITS(&got.homoscedastic, &first.homoscedastic, sizeof got.homoscedastic);
            CHECK_BITS(&got.corrected, &first.corrected, sizeof got.corrected);
            CHECK_BITS(&got.sampling_error.first, &first.sampling_error.first, 3 * sizeof(double));
            CHECK_BITS(&got.corrected_error.first, &first.corrected_error.first,
                       3 * sizeof(double));
            frg_fe_destroy(f);
            frg_table_destroy(t);
            frg_context_destroy(ctx);
        }
    }
    free_panel(&p);
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const frg_leverage leverage = *(const frg_leverage *)user;
    test_now.random = 5;
    panel p = make_panel(30, 5, 3);
    draw_outcomes(&p, 0);
    frg_table *t = NULL;
    frg_fe *f = NULL;
    frg_leave_out got = {.n = -1};
    const frg_fe_opts o = options(FRG_CONNECTED_MATCH);
    frg_leave_out_opts l = leaving(FRG_LEAVE_MATCH, leverage);
    l.draws = 10;
    frg_status s = frg_table_create(&t, ctx, p.n);
    s = s < 0 ? s : frg_table_add_integers(t, "worker", p.worker);
    s = s < 0 ? s : frg_table_add_integers(t, "firm", p.firm);
    s = s < 0 ? s : frg_table_add_numbers(t, "x", p.x);
    s = s < 0 ? s : frg_table_add_numbers(t, "y", p.y);
    s = s < 0 ? s : frg_fe_fit(&f, ctx, "y ~ x | worker + firm", t, &o);
    s = s < 0 ? s : frg_fe_leave_out(f, &l, &got);
    CHECK(s >= 0 || got.n == -1);
    if (s >= 0) {
        fault_hash(hash, &got.corrected, sizeof got.corrected);
        fault_hash(hash, &got.sampling_error.first, 3 * sizeof(double));
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    free_panel(&p);
    return s;
}

static void memory(void)
{
    frg_leverage leverage = FRG_LEVERAGE_EXACT;
    CHECK(fault_sweep("exact", body, &leverage, 1) > 50);
    leverage = FRG_LEVERAGE_APPROX;
    CHECK(fault_sweep("approx", body, &leverage, 1) > 50);
}

typedef struct {
    const char *formula;
    frg_fe_connected connected;
    frg_leave_out_unit what;
    frg_fe_family family;
    const char *says;
} refusal;

static void refuse(frg_context *ctx, const frg_table *t, const refusal *r)
{
    frg_fe_opts o = options(r->connected);
    const frg_leave_out_opts l = leaving(r->what, FRG_LEVERAGE_AUTO);
    frg_leave_out got = {.n = -1};
    frg_fe *f = NULL;
    o.family = r->family;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, r->formula, t, &o))) {
        CHECK_STATUS(frg_fe_leave_out(f, &l, &got), FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-074");
        CHECK_SAYS(strstr(frg_message(ctx), r->says) != NULL, "%s", frg_message(ctx));
        CHECK_INT(got.n, -1);
    }
    frg_fe_destroy(f);
}

static void refused(void)
{
    static const refusal cases[] = {
        {"y ~ x | worker", FRG_CONNECTED_ALL, FRG_LEAVE_MATCH, FRG_FAMILY_OLS, "has 1"},
        {"y ~ x | worker + firm + z", FRG_CONNECTED_MATCH, FRG_LEAVE_MATCH, FRG_FAMILY_OLS,
         "has 3"},
        {"y ~ 1 | worker + firm[x]", FRG_CONNECTED_MATCH, FRG_LEAVE_MATCH, FRG_FAMILY_OLS,
         "slopes"},
        {"y ~ x | worker + firm", FRG_CONNECTED_MATCH, FRG_LEAVE_MATCH, FRG_FAMILY_POISSON,
         "generalised linear model"},
        {"y ~ 1 | worker + firm | x ~ v", FRG_CONNECTED_MATCH, FRG_LEAVE_MATCH, FRG_FAMILY_OLS,
         "instruments"},
        {"y ~ x | worker + firm", FRG_CONNECTED_LARGEST, FRG_LEAVE_MATCH, FRG_FAMILY_OLS,
         "needs a fit with connected = match, this one has connected = largest"},
        {"y ~ x | worker + firm", FRG_CONNECTED_ALL, FRG_LEAVE_OBSERVATION, FRG_FAMILY_OLS,
         "needs a fit with connected = observation"},
        {"y ~ x | worker + firm", FRG_CONNECTED_OBSERVATION, FRG_LEAVE_MATCH, FRG_FAMILY_OLS,
         "connected = match, this one has connected = observation"},
        {"y ~ x | worker + home", FRG_CONNECTED_ALL, FRG_LEAVE_NONE, FRG_FAMILY_OLS,
         "connected sets, whose effects cannot be compared"},
        {"y ~ x | worker + home", FRG_CONNECTED_MATCH, FRG_LEAVE_MATCH, FRG_FAMILY_OLS,
         "nobody moves"}};
    frg_context *const ctx = test_context();
    panel p = make_panel(40, 5, 4);
    draw_outcomes(&p, 0);
    frg_table *const t = panel_table(ctx, &p);
    int64_t *const home = calloc((size_t)p.n, sizeof *home), *const z =
                                                                 calloc((size_t)p.n, sizeof *z);
    double *const v = calloc((size_t)p.n, sizeof *v);
    for (int64_t i = 0; i < p.n; i++) {
        home[i] = p.worker[i] % 3;
        z[i] = i % 4;
        v[i] = p.x[i] + test_normal();
    }
    CHECK_OK(ctx, frg_table_add_integers(t, "home", home));
    CHECK_OK(ctx, frg_table_add_integers(t, "z", z));
    CHECK_OK(ctx, frg_table_add_numbers(t, "v", v));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refuse(ctx, t, &cases[i]);
    }
    free(home);
    free(z);
    free(v);
    frg_table_destroy(t);
    free_panel(&p);
    frg_context_destroy(ctx);
}

/** Warnings of exchanged effects that name both and the remedy, after the components of a formula;
 *  found: those. */
static int exchanged(const frg_table *t, frg_context *ctx, const char *formula, const char *remedy,
                     frg_leave_out *found)
{
    const frg_fe_opts o = options(FRG_CONNECTED_LARGEST);
    const frg_leave_out_opts l = leaving(FRG_LEAVE_NONE, FRG_LEVERAGE_AUTO);
    frg_fe *f = NULL;
    int count = 0;
    frg_warnings_clear(ctx);
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, &o)) &&
        CHECK_OK(ctx, frg_fe_leave_out(f, &l, found))) {
        for (int i = 0; i < frg_warning_count(ctx); i++)
            count += strcmp(frg_warning_code(ctx, i), "FRG-FE-162") == 0 &&
                     strstr(frg_warning_message(ctx, i), remedy) != NULL;
    }
    frg_fe_destroy(f);
    return count;
}

/** More firms than workers are warned of; the plug-in is that of the other order. */
static void workers_second(void)
{
    frg_context *const ctx = test_context();
    panel p = make_panel(40, 5, 4);
    draw_outcomes(&p, 0);
    frg_table *const t = panel_table(ctx, &p);
    frg_leave_out right, wrong;
    CHECK_INT(exchanged(t, ctx, "y ~ x | worker + firm", "", &right), 0);
    CHECK_INT(exchanged(t, ctx, "y ~ x | firm + worker", "write | worker + firm", &wrong), 1);
    CHECK_INT(right.n_first, wrong.n_second);
    CHECK_NEAR(wrong.plug_in.first, right.plug_in.second, DENSE * right.outcome_variance);
    CHECK_NEAR(wrong.plug_in.second, right.plug_in.first, DENSE * right.outcome_variance);
    frg_table_destroy(t);
    free_panel(&p);
    frg_context_destroy(ctx);
}

/** Effects that were not kept, options that are none, and panels without a set. */
static void without_what_it_needs(void)
{
    frg_context *const ctx = test_context();
    rows r = {.n = 6};
    for (int i = 0; i < r.n; i++) { /* a path: every row is a bridge */
        r.worker[i] = i / 2;
        r.firm[i] = (i + 1) / 2;
        r.y[i] = i * i;
    }
    panel p = make_panel(40, 5, 4);
    draw_outcomes(&p, 0);
    frg_table *const path = table_of(ctx, &r), *const t = panel_table(ctx, &p);
    frg_fe_opts o = options(FRG_CONNECTED_OBSERVATION);
    frg_leave_out_opts l = leaving(FRG_LEAVE_MATCH, FRG_LEVERAGE_AUTO);
    frg_leave_out got = {.n = -1};
    frg_fe *f = NULL;
    o.keep_singletons = 1;
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ 1 | worker + firm", path, &o), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "connected without any one row") != NULL);
    o.connected = FRG_CONNECTED_MATCH;
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ 1 | worker + firm", path, &o), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "connected without any one match") != NULL);
    o.keep_effects = 0;
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | worker + firm", t, &o));
    CHECK_STATUS(frg_fe_leave_out(f, &l, &got), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "keep_effects") != NULL);
    l.draws = 1;
    CHECK_STATUS(frg_fe_leave_out(f, &l, &got), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "draws") != NULL);
    CHECK_STATUS(frg_fe_leave_out(f, &l, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_leave_out(NULL, &l, &got), FRG_BAD_ARG);
    CHECK_INT(got.n, -1);
    frg_fe_destroy(f);
    frg_table_destroy(path);
    frg_table_destroy(t);
    free_panel(&p);
    frg_context_destroy(ctx);
}

/** A stop ends it, by either way to the leverages, and an empty result is given back. */
static void stopped(void)
{
    panel p = make_panel(40, 5, 4);
    frg_context *ctx = test_context();
    draw_outcomes(&p, 0);
    frg_table *t = panel_table(ctx, &p);
    frg_fe *f = NULL;
    const frg_fe_opts o = options(FRG_CONNECTED_MATCH);
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | worker + firm", t, &o))) {
        for (int k = 0; k < 2; k++) {
            const frg_leave_out_opts l =
                leaving(FRG_LEAVE_MATCH, k ? FRG_LEVERAGE_APPROX : FRG_LEVERAGE_EXACT);
            frg_leave_out got = {.n = -1};
            frg_interrupt(ctx);
            CHECK_STATUS(frg_fe_leave_out(f, &l, &got), FRG_INTERRUPTED);
            CHECK(got.n == 0 && !got.leave_out);
            frg_interrupt_clear(ctx);
            CHECK_OK(ctx, frg_fe_leave_out(f, &l, &got));
        }
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    free_panel(&p);
    frg_context_destroy(ctx);
}

/** Three firms of one size with all their workers in common: where a draw's signs are alike, which
 *  is a fourth of all, y - F sum y / W is a rounding or 0, and its system has a solution, too. */
static void signs_alike(void)
{
    frg_context *const ctx = test_context();
    const frg_leave_out_opts l = leaving(FRG_LEAVE_MATCH, FRG_LEVERAGE_APPROX);
    const frg_fe_opts o = options(FRG_CONNECTED_MATCH);
    frg_leave_out got = {.n = -1};
    frg_fe *f = NULL;
    rows r = {.n = 39};
    for (int i = 0; i < r.n; i++) {
        r.worker[i] = i / 3;
        r.firm[i] = i % 3;
        r.y[i] = test_normal();
    }
    frg_table *const t = table_of(ctx, &r);
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ 1 | worker + firm", t, &o)))
        CHECK_OK(ctx, frg_fe_leave_out(f, &l, &got));
    CHECK_INT(frg_warning_count(ctx), 0);
    CHECK_INT(got.n, r.n);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"by the dense way", by_the_dense_way},
    {"sets by looking", sets_by_looking},
    {"numbers of pytwoway", numbers_of_pytwoway},
    {"unbiased without matches", unbiased_without_matches},
    {"unbiased with shared errors", unbiased_with_shared_errors},
    {"unbiased without observations", unbiased_without_observations},
    {"projections of matches", projections_of_matches},
    {"projections of observations", projections_of_observations},
    {"same bits", same_bits},
    {"memory", memory},
    {"signs alike", signs_alike},
    {"stopped", stopped},
    {"refused", refused},
    {"workers second", workers_second},
    {"without what it needs", without_what_it_needs},
};

TEST_MAIN(cases)
