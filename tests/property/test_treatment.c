/* test_treatment.c - randomisation inference, local projections and event studies.
 *
 * Draws of a permutation are not known from outside.  A regressor that is 1 in one row (or group)
 * and 0 elsewhere has as many orders as there are rows, so that each statistic must be one of that
 * many regressions, which are made here one by one, and each of them must come up as often as the
 * others: counts of n fair draws among m stay within 6 standard deviations, which chance passes
 * once in 5e8 times.  Of eight rows with four ones all 70 orders are listed,
 * of eight values in two strata with one and two ones all 24.
 *
 * The columns of local projections are those of plain loops over all pairs of rows, to the bit of
 * one subtraction (of a mean: to rounding).
 */
#include "fault.h"
#include "fourge/fe.h"
#include "test.h"

enum { MOST = 160 };
static const double DENSE = 1e-9;

/* ---- randomisation inference ----------------------------------------------------------------- */

typedef struct {
    int n, groups;
    double y[MOST], x[MOST], d[MOST], w[MOST];
    int64_t group[MOST], level[MOST], half[MOST]; /* half: the even groups and the others */
} lot;

/** Rows of groups of a few, the ones in a row of the first, or in all of its rows. */
static lot make_lot(int n, int groups, bool whole_group)
{
    lot l = {.n = n, .groups = groups};
    for (int i = 0; i < n; i++) {
        l.group[i] = 3 * (i % groups);
        l.level[i] = test_below(4);
        l.half[i] = i % groups % 2;
        l.x[i] = test_normal();
        l.w[i] = 1 + test_uniform();
        l.d[i] = whole_group ? i % groups == 0 : i == 0;
        l.y[i] = test_normal() + 0.5 * l.x[i] + (double)l.level[i] + 2 * l.d[i];
    }
    return l;
}

static frg_table *lot_table(frg_context *ctx, const lot *l, const double *d)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, l->n));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", l->y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", l->x));
    CHECK_OK(ctx, frg_table_add_numbers(t, "d", d));
    CHECK_OK(ctx, frg_table_add_numbers(t, "w", l->w));
    CHECK_OK(ctx, frg_table_add_integers(t, "group", l->group));
    CHECK_OK(ctx, frg_table_add_integers(t, "level", l->level));
    CHECK_OK(ctx, frg_table_add_integers(t, "half", l->half));
    return t;
}

static frg_ritest_opts permuting(const char *variable, int reps)
{
    frg_ritest_opts o;
    frg_ritest_defaults(&o, sizeof o);
    o.variable = variable;
    o.reps = reps;
    return o;
}

static frg_fe_opts weighted(const char *vcov)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = vcov;
    o.weights = "w";
    o.demean.tol = 1e-13;
    return o;
}

static const char *const formula = "y ~ x + d | level";

/** The statistic of d. */
static double statistic_of(frg_context *ctx, const lot *l, const double *d, const frg_fe_opts *o,
                           bool t_value)
{
    frg_table *const t = lot_table(ctx, l, d);
    frg_fe *f = NULL;
    double s = NAN;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, o))) {
        const frg_coefficient *const c = &frg_fe_get(f)->coefficients[1];
        CHECK_TEXT(c->term, "d");
        s = t_value ? c->statistic : c->estimate;
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return s;
}

/** Each draw is one of the m regressions, which come up alike; the share is that of the draws. */
static void check_orders(const frg_ritest *r, const double *s, const double *want, int m)
{
    int count[MOST] = {0}, as_large = 0;
    for (int64_t k = 0; k < r->reps; k++) {
        int at = 0;
        for (int i = 1; i < m; i++) {
            at = fabs(s[k] - want[i]) < fabs(s[k] - want[at]) ? i : at;
        }
        CHECK_NEAR(s[k], want[at], DENSE);
        count[at]++;
        as_large += fabs(s[k]) >= fabs(r->observed) * (1 - 1e-12);
    }
    const double fair = (double)r->reps / m, deviation = sqrt(fair * (1 - 1.0 / m));
    for (int i = 0; i < m; i++) {
        CHECK_NEAR(count[i], fair, 6 * deviation);
    }
    const double p = (double)as_large / (double)r->reps;
    CHECK_NEAR(r->p_value, p, 0);
    CHECK_NEAR(r->std_error, sqrt(p * (1 - p) / (double)r->reps), 1e-15);
    CHECK(r->converged);
}

static void draws_are_regressions(void)
{
    enum { REPS = 1500 };
    static double s[REPS];
    for (int way = 0; way < 4; way++) {
        const bool by_group = way % 2, t_value = way > 1;
        const int n = 30, m = by_group ? 10 : n;
        frg_context *const ctx = test_context();
        const lot l = make_lot(n, 10, by_group);
        const frg_fe_opts o = weighted(by_group ? "cluster=group" : "hc1");
        frg_ritest_opts p = permuting("d", REPS);
        p.cluster = by_group ? "group" : NULL;
        p.statistic = t_value ? FRG_RITEST_STATISTIC : FRG_RITEST_ESTIMATE;
        double want[MOST];
        for (int k = 0; k < m; k++) {
            double d[MOST];
            for (int i = 0; i < n; i++) {
                d[i] = by_group ? i % 10 == k : i == k;
            }
            want[k] = statistic_of(ctx, &l, d, &o, t_value);
        }
        frg_table *const t = lot_table(ctx, &l, l.d);
        frg_fe *f = NULL;
        frg_ritest r = {0};
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, &o));
        if (CHECK_OK(ctx, frg_fe_ritest(f, &o, &p, s, &r))) {
            CHECK_NEAR(r.observed, want[0], DENSE);
            CHECK_TEXT(r.term, "d");
            CHECK_INT(r.permuted, m);
            CHECK_INT(r.strata, 1);
            check_orders(&r, s, want, m);
        }
        CHECK_INT(frg_warning_count(ctx), 0);
        frg_fe_destroy(f);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
}

/** Of eight rows with four ones: the share of all 70 orders, within four of its standard errors. */
static void all_orders(void)
{
    enum { REPS = 1280 };
    static const double y[8] = {0.3, 1.9, 2.5, 2.6, 0.1, 0.2, 1.2, 0.4},
                        d[8] = {0, 1, 1, 1, 0, 1, 0, 0};
    double observed = 0;
    int as_large = 0;
    for (int i = 0; i < 8; i++) {
        observed += d[i] > 0 ? y[i] / 4 : -y[i] / 4;
    }
    for (int set = 0; set < 256; set++) {
        double mean = 0;
        int ones = 0;
        for (int i = 0; i < 8; i++) {
            ones += set >> i & 1;
            mean += set >> i & 1 ? y[i] / 4 : -y[i] / 4;
        }
        as_large += ones == 4 && fabs(mean) >= fabs(observed) - 1e-12;
    }
    frg_context *const ctx = test_context();
    frg_table *t = NULL;
    frg_fe *f = NULL;
    frg_ritest r = {0};
    const frg_ritest_opts o = permuting("d", REPS);
    CHECK_OK(ctx, frg_table_create(&t, ctx, 8));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "d", d));
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ d", t, NULL));
    CHECK_OK(ctx, frg_fe_ritest(f, NULL, &o, NULL, &r));
    const double exact = as_large / 70.0;
    CHECK_NEAR(r.estimate, observed, 1e-12);
    CHECK_NEAR(r.p_value, exact, 4 * sqrt(exact * (1 - exact) / REPS));
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Eight values, of rows or of groups of three, in strata of the even and the odd ones, which have
 *  one and two ones: the orders that strata allow, each as often as the others, and their share. */
static void orders_within_strata(void)
{
    enum { VALUES = 8, ORDERS = 24, REPS = 2400 };
    static double s[REPS];
    for (int each = 1; each <= 3; each += 2) {
        frg_context *const ctx = test_context();
        lot l = make_lot(VALUES * each, VALUES, false);
        frg_fe_opts o = weighted("iid");
        frg_ritest_opts p = permuting("d", REPS);
        frg_fe *f = NULL;
        frg_ritest r = {0};
        double want[ORDERS], exact = 0;
        int n = 0;
        for (int set = 0; set < 1 << VALUES; set++) {
            if (__builtin_popcount(set & 0x55) == 1 && __builtin_popcount(set & 0xaa) == 2) {
                for (int i = 0; i < l.n; i++) {
                    l.d[i] = set >> i % VALUES & 1;
                    l.level[i] = i % 2;
                }
                want[n++] = statistic_of(ctx, &l, l.d, &o, false);
            }
        }
        CHECK_INT(n, ORDERS);
        for (int k = 0; k < ORDERS; k++) { /* the last order is the observed one */
            exact += fabs(want[k]) >= fabs(want[ORDERS - 1]) * (1 - DENSE) ? 1.0 / ORDERS : 0;
        }
        p.strata = "half";
        p.cluster = each > 1 ? "group" : NULL;
        frg_table *const t = lot_table(ctx, &l, l.d);
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, &o));
        if (CHECK_OK(ctx, frg_fe_ritest(f, &o, &p, s, &r))) {
            CHECK_INT(r.permuted, VALUES);
            CHECK_INT(r.strata, 2);
            check_orders(&r, s, want, ORDERS);
            CHECK_NEAR(r.p_value, exact, 5 * sqrt(exact * (1 - exact) / REPS));
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
}

/** The draws of so many threads, of a seed. */
static void draw_with(int threads, int64_t seed, int reps, const char *strata, double *s)
{
    frg_context *const ctx = test_context_with(threads, NULL, NULL);
    test_now.random = 7;
    const lot l = make_lot(MOST, 20, true);
    frg_fe_opts o = weighted("cluster=group");
    o.subset = "x > -2";
    frg_ritest_opts p = permuting("d", reps);
    p.seed = seed;
    p.strata = strata;
    p.statistic = FRG_RITEST_STATISTIC;
    frg_table *const t = lot_table(ctx, &l, l.d);
    const double same[MOST] = {0};
    frg_fe *f = NULL;
    frg_ritest r;
    CHECK_OK(ctx, frg_table_add_numbers(t, "all", same));
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, &o));
    CHECK_OK(ctx, frg_fe_ritest(f, &o, &p, s, &r));
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** The same bits by any number of threads, with strata too; more draws begin with the same, those
 *  of one stratum are those of none; other seeds and strata have others. */
static void same_draws(void)
{
    double one[100], two[100], few[70], other[100], strata[2][100];
    draw_with(1, -1, 100, NULL, one);
    draw_with(2, 0, 100, "all", two); /* of the context, whose seed is 0 */
    draw_with(2, -1, 70, NULL, few);
    draw_with(1, 5, 100, NULL, other);
    draw_with(1, -1, 100, "half", strata[0]);
    draw_with(2, -1, 100, "half", strata[1]);
    CHECK_BITS(two, one, sizeof one);
    CHECK_BITS(few, one, sizeof few);
    CHECK_BITS(strata[1], strata[0], sizeof one);
    CHECK(memcmp(other, one, sizeof one) != 0);
    CHECK(memcmp(strata[0], one, sizeof one) != 0);
}

static void refuse(frg_context *ctx, const frg_fe *f, const frg_fe_opts *fit, frg_ritest_opts o,
                   frg_status status, const char *says)
{
    double s[9] = {0};
    frg_ritest r;
    const double zeros[9] = {0};
    o.reps = 9;
    CHECK_STATUS(frg_fe_ritest(f, fit, &o, s, &r), status);
    CHECK_SAYS(strstr(frg_message(ctx), says) != NULL, "%s", frg_message(ctx));
    CHECK_BITS(s, zeros, sizeof s);
}

static void refused_permutations(void)
{
    frg_context *const ctx = test_context();
    const lot l = make_lot(40, 8, true);
    frg_table *const t = lot_table(ctx, &l, l.d);
    int64_t holes[40];
    static const char *const words[] = {"a", "b"};
    int32_t codes[40];
    for (int i = 0; i < 40; i++) {
        holes[i] = i == 9 ? FRG_MISSING_INTEGER : l.group[i];
        codes[i] = i % 2;
    }
    CHECK_OK(ctx, frg_table_add_integers(t, "holes", holes));
    CHECK_OK(ctx, frg_table_add_codes(t, "word", codes, words, 2));
    CHECK_OK(ctx, frg_table_add_numbers(t, "copy", l.x));
    frg_fe *f = NULL;
    frg_fe_opts fit;
    frg_fe_defaults(&fit, sizeof fit);
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x + d + log(w) + word + copy | level", t, &fit));
    frg_warnings_clear(ctx);
    refuse(ctx, f, &fit, permuting(NULL, 9), FRG_BAD_ARG, "no variable");
    refuse(ctx, f, &fit, permuting("nothing", 9), FRG_BAD_DATA, "nothing");
    refuse(ctx, f, &fit, permuting("level", 9), FRG_BAD_ARG, "not one regressor");
    refuse(ctx, f, &fit, permuting("w", 9), FRG_BAD_ARG, "not one regressor");
    refuse(ctx, f, &fit, permuting("word", 9), FRG_BAD_DATA, "'word' holds text");
    refuse(ctx, f, &fit, permuting("copy", 9), FRG_BAD_ARG, "'copy' was dropped");
    frg_ritest_opts o = permuting("x", 9);
    o.cluster = "group";
    refuse(ctx, f, &fit, o, FRG_BAD_DATA, "not the same in all rows");
    o.variable = "d";
    o.cluster = "holes";
    refuse(ctx, f, &fit, o, FRG_BAD_DATA, "the group 'holes' is missing in row");
    o.cluster = NULL;
    o.strata = "holes";
    refuse(ctx, f, &fit, o, FRG_BAD_DATA, "the stratum 'holes' is missing in row");
    o.strata = "nothing";
    refuse(ctx, f, &fit, o, FRG_BAD_DATA, "nothing");
    o.strata = "group";
    refuse(ctx, f, &fit, o, FRG_BAD_DATA, "'d' has one value within each stratum of 'group'");
    o.cluster = "group";
    o.strata = "level";
    refuse(ctx, f, &fit, o, FRG_BAD_DATA, "a value of 'group' lies in several strata of 'level'");
    fit.weights = "w";
    refuse(ctx, f, &fit, permuting("d", 9), FRG_BAD_ARG, "not those of the fit");
    frg_fe_destroy(f);
    CHECK_STATUS(frg_fe_ritest(NULL, NULL, &o, NULL, &(frg_ritest){0}), FRG_BAD_ARG);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Stops once a number of draws is done. */
static int stop_draws(const frg_progress *p, void *user)
{
    return strcmp(p->phase, "permutations") == 0 && p->done >= *(int64_t *)user;
}

/** A stop leaves nothing but a warning that counts the draws that were made. */
static void stopped_permutations(void)
{
    int64_t after = 60;
    double s[200] = {0};
    const double zeros[200] = {0};
    frg_context_opts c;
    frg_context *ctx = NULL;
    frg_context_defaults(&c, sizeof c);
    c.threads = test_now.threads;
    c.on_progress = stop_draws;
    c.user = &after;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    const lot l = make_lot(60, 10, true);
    const frg_fe_opts fit = weighted("iid");
    const frg_ritest_opts o = permuting("d", 200);
    frg_table *const t = lot_table(ctx, &l, l.d);
    frg_fe *f = NULL;
    frg_ritest r = {.reps = 7};
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, &fit));
    CHECK_STATUS(frg_fe_ritest(f, &fit, &o, s, &r), FRG_INTERRUPTED);
    CHECK(r.term == NULL && r.reps == 0);
    CHECK_BITS(s, zeros, sizeof s);
    CHECK_INT(frg_warning_count(ctx), 1);
    CHECK_SAYS(strstr(frg_warning_message(ctx, 0), "after 63 of 200 draws") != NULL, "%s",
               frg_warning_message(ctx, 0));
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static frg_status permute_once(frg_context *ctx, void *user, uint64_t *hash)
{
    const lot *const l = user;
    frg_table *t = NULL;
    frg_fe *f = NULL;
    frg_fe_opts o;
    frg_ritest_opts p = permuting("d", 3);
    frg_ritest r;
    double s[3] = {0};
    p.cluster = "group";
    p.strata = "half";
    frg_fe_defaults(&o, sizeof o);
    frg_status status = frg_table_create(&t, ctx, l->n);
    status = status < 0 ? status : frg_table_add_numbers(t, "y", l->y);
    status = status < 0 ? status : frg_table_add_numbers(t, "d", l->d);
    status = status < 0 ? status : frg_table_add_integers(t, "group", l->group);
    status = status < 0 ? status : frg_table_add_integers(t, "level", l->level);
    status = status < 0 ? status : frg_table_add_integers(t, "half", l->half);
    status = status < 0 ? status : frg_fe_fit(&f, ctx, "y ~ d | level", t, &o);
    status = status < 0 ? status : frg_fe_ritest(f, &o, &p, s, &r);
    if (status >= 0) {
        fault_hash(hash, s, sizeof s);
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return status;
}

static void faults_of_permutations(void)
{
    lot l = make_lot(40, 8, true);
    CHECK(fault_sweep_once("ritest", permute_once, &l, test_now.threads) > 10);
}

/* ---- local projections ----------------------------------------------------------------------- */

typedef struct {
    int n;
    int64_t unit[MOST], year[MOST], g[MOST];
    double y[MOST], x[MOST], w[MOST];
} rows;

/** Units with cohorts 4, 6 and never, rows in any order, some missing. */
static rows draw_rows(void)
{
    rows r = {0};
    for (int u = 0; u < 12; u++) {
        for (int t = 1; t <= 9; t++) {
            if (test_below(12) > 0 && r.n < MOST) {
                const int at = r.n++, k = (int)test_below(r.n);
                r.unit[at] = r.unit[k];
                r.year[at] = r.year[k];
                r.g[at] = r.g[k];
                r.y[at] = r.y[k];
                r.x[at] = r.x[k];
                r.w[at] = r.w[k];
                r.unit[k] = 40 - u;
                r.year[k] = 2000 + t;
                r.g[k] = u % 3 == 0 ? 0 : u % 3 == 1 ? 2004 : 2006;
                r.x[k] = test_normal();
                r.w[k] = 1 + test_uniform();
                r.y[k] = test_below(20) > 0 ? test_normal() + r.x[k] : (double)NAN;
            }
        }
    }
    return r;
}

static frg_table *rows_table(frg_context *ctx, const rows *r)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, r->n));
    CHECK_OK(ctx, frg_table_add_integers(t, "a unit", r->unit));
    CHECK_OK(ctx, frg_table_add_integers(t, "year", r->year));
    CHECK_OK(ctx, frg_table_add_integers(t, "g", r->g));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", r->y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", r->x));
    CHECK_OK(ctx, frg_table_add_numbers(t, "w", r->w));
    return t;
}

static frg_lpdid_opts projecting(void)
{
    frg_lpdid_opts o;
    frg_lpdid_defaults(&o, sizeof o);
    o.panel = "a unit,year";
    o.cohort = "g";
    return o;
}

/** The row of the same unit h years later; -1: none. */
static int later(const rows *r, int i, int h)
{
    for (int k = 0; k < r->n; k++) {
        if (r->unit[k] == r->unit[i] && r->year[k] == r->year[i] + h) {
            return k;
        }
    }
    return -1;
}

static double outcome(const rows *r, int i, int h)
{
    const int k = later(r, i, h);
    return k < 0 ? (double)NAN : r->y[k];
}

static double treated(const rows *r, int i, int h)
{
    const int k = later(r, i, h);
    return k < 0 ? (double)NAN : r->g[k] > 0 && r->year[k] >= r->g[k];
}

/** The mean of y in the pmd periods before row i, or of all that there are (0). */
static double mean_before(const rows *r, int i, int pmd)
{
    double sum = 0;
    int count = 0;
    for (int k = 1; k <= (pmd > 0 ? pmd : 9); k++) {
        const double y = outcome(r, i, -k);
        sum += pmd > 0 || !isnan(y) ? y : 0;
        count += pmd > 0 || !isnan(y);
    }
    return count > 0 ? sum / count : (double)NAN;
}

/** y_t+h of row i less its mean before, where it is compared; pooled: of the mean up to h. */
static double change(const rows *r, int i, int h, const frg_lpdid_opts *o)
{
    const bool begins = treated(r, i, 0) == 1 && treated(r, i, -1) == 0;
    double value = 0;
    for (int k = 0; k <= h && o->pooled; k++) {
        value += outcome(r, i, k);
    }
    value = o->pooled ? value / (h + 1) : outcome(r, i, h);
    const bool compared = begins || treated(r, i, h > 0 ? h : 0) == 0;
    return compared ? value - mean_before(r, i, o->pmd) : (double)NAN;
}

/** A mean has up to nine roundings of sums below 40. */
static void check_column(const frg_table *t, const char *name, const rows *r, int h,
                         const frg_lpdid_opts *o)
{
    const frg_column *const c = frg_table_find(t, name);
    const double rounding = o->pooled || o->pmd != 1 ? 5e-14 : 0;
    int there = 0;
    for (int i = 0; CHECK(c != NULL) && i < r->n; i++) {
        const double want = change(r, i, h, o);
        CHECK(isnan(want) == isnan(c->numbers[i]));
        CHECK(isnan(want) || fabs(c->numbers[i] - want) <= rounding);
        there += !isnan(want);
    }
    CHECK(there > 0);
}

static void columns_by_looking(void)
{
    for (int trial = 0; trial < test_size(60, 6); trial++) {
        const bool pooled = trial % 3 == 0;
        frg_context *const ctx = test_context();
        const rows r = draw_rows();
        frg_table *const t = rows_table(ctx, &r);
        frg_lpdid *l = NULL;
        frg_lpdid_opts o = projecting();
        o.pooled = pooled;
        o.pmd = trial % 4; /* 0: of all */
        o.pre_window = -3;
        o.post_window = 2;
        if (CHECK_OK(ctx, frg_lpdid_create(&l, ctx, "y ~ 1", t, &o))) {
            const frg_lpdid_design *const d = frg_lpdid_get(l);
            const frg_column *const begins = frg_table_find(d->table, d->term);
            const bool gap = o.pmd == 1; /* the reference is left out */
            CHECK_INT(d->n, pooled ? 1 : gap ? 5 : 6);
            CHECK_INT(d->last, 2);
            CHECK(d->first_stage == NULL);
            CHECK_TEXT(d->vcov, "cluster=`a unit`");
            for (int k = 0; k < d->n; k++) {
                const int h = pooled ? 2 : d->outcomes[k].horizon;
                CHECK_INT(d->outcomes[k].horizon, pooled ? 0 : k - 3 + (gap && k >= 2));
                check_column(d->table, d->outcomes[k].name, &r, h, &o);
            }
            for (int i = 0; i < r.n; i++) {
                const double step = treated(&r, i, 0) - treated(&r, i, -1);
                CHECK(isnan(step) ? isnan(begins->numbers[i]) : begins->numbers[i] == step);
            }
        }
        frg_lpdid_destroy(l);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
}

/** The estimate without covariates is the mean over the treated rows of a horizon of their change
 *  less that of the untreated of the year, weighted as least squares with effects of years has it:
 *  by n1 n0 / (n1 + n0). */
static void estimates_by_year(void)
{
    frg_context *const ctx = test_context();
    const rows r = draw_rows();
    frg_table *const t = rows_table(ctx, &r);
    frg_lpdid *l = NULL;
    frg_fe_many *fits = NULL;
    frg_lpdid_opts o = projecting();
    frg_fe_opts fit;
    frg_fe_defaults(&fit, sizeof fit);
    o.pre_window = -2;
    o.post_window = 2;
    CHECK_OK(ctx, frg_lpdid_create(&l, ctx, "y ~ 1", t, &o));
    const frg_lpdid_design *const d = frg_lpdid_get(l);
    fit.vcov[0] = d->vcov;
    CHECK_OK(ctx, frg_fe_fit_many(&fits, ctx, d->formula, d->table, &fit));
    CHECK_INT(frg_fe_many_count(fits), d->n);
    for (int k = 0; k < d->n; k++) {
        const frg_fe_result *const f = frg_fe_get(frg_fe_many_get(fits, k));
        double up = 0, down = 0;
        CHECK_TEXT(f->depvar, d->outcomes[k].name);
        CHECK_TEXT(f->coefficients[0].term, d->term);
        for (int64_t year = 2001; year <= 2009; year++) {
            double n[2] = {0}, sum[2] = {0};
            for (int i = 0; i < r.n; i++) {
                const double c = change(&r, i, d->outcomes[k].horizon, &o);
                const double step = treated(&r, i, 0) - treated(&r, i, -1);
                if (r.year[i] == year && !isnan(c) && !isnan(step)) {
                    n[step > 0]++;
                    sum[step > 0] += c;
                }
            }
            if (n[0] > 0 && n[1] > 0) {
                const double weight = n[0] * n[1] / (n[0] + n[1]);
                up += weight * (sum[1] / n[1] - sum[0] / n[0]);
                down += weight;
            }
        }
        CHECK_NEAR(f->coefficients[0].estimate, up / down, DENSE);
    }
    frg_fe_many_destroy(fits);
    frg_lpdid_destroy(l);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Rows of a horizon by year, of the untreated (0) and the treated (1): sums with weights. */
typedef struct {
    double w[2][10], y[2][10], x[2][10];
    double sxx, sxy; /* of the untreated within years */
} cells;

/** The step of row i where the horizon compares it, and has untreated rows in its year; else -1. */
static int side(const rows *r, int i, double c)
{
    const double step = treated(r, i, 0) - treated(r, i, -1);
    return isnan(c) || isnan(step) ? -1 : step > 0;
}

static cells add_cells(const rows *r, const double *c)
{
    cells k = {.sxx = 0};
    for (int i = 0; i < r->n; i++) {
        const int d = side(r, i, c[i]), t = (int)(r->year[i] - 2000);
        if (d >= 0) {
            k.w[d][t] += r->w[i];
            k.y[d][t] += r->w[i] * c[i];
            k.x[d][t] += r->w[i] * r->x[i];
        }
    }
    for (int i = 0; i < r->n; i++) {
        const int t = (int)(r->year[i] - 2000);
        if (side(r, i, c[i]) == 0) {
            const double dx = r->x[i] - k.x[0][t] / k.w[0][t];
            k.sxx += r->w[i] * dx * dx;
            k.sxy += r->w[i] * dx * (c[i] - k.y[0][t] / k.w[0][t]);
        }
    }
    return k;
}

/** The mean over the treated rows, w for w, of the change less what the untreated of the year tell,
 *  slope times the covariate among it. */
static double mean_effect(const cells *k, double slope)
{
    double up = 0, down = 0;
    for (int t = 1; t <= 9; t++) {
        if (k->w[0][t] > 0 && k->w[1][t] > 0) {
            const double w = k->w[1][t];
            const double x = k->x[1][t] / w - k->x[0][t] / k->w[0][t];
            up += w * (k->y[1][t] / w - k->y[0][t] / k->w[0][t] - slope * x);
            down += w;
        }
    }
    return up / down;
}

/** Its standard error without a covariate: clusters' sums of w (c - untreated mean - b) of treated
 *  rows and of -w (W1 / W0) (c - untreated mean) of the others, over the treated weight. */
static double mean_error(const rows *r, const double *c, const cells *k, double b)
{
    double sum[64] = {0}, total = 0, squares = 0;
    for (int i = 0; i < r->n; i++) {
        const int d = side(r, i, c[i]), t = (int)(r->year[i] - 2000);
        if (d < 0 || k->w[0][t] <= 0) {
            continue;
        }
        const double e = c[i] - k->y[0][t] / k->w[0][t];
        sum[r->unit[i]] += d > 0 ? r->w[i] * (e - b) : -r->w[i] * k->w[1][t] / k->w[0][t] * e;
        total += d > 0 ? r->w[i] : 0;
    }
    for (int u = 0; u < 64; u++) {
        squares += sum[u] * sum[u];
    }
    return sqrt(squares) / total;
}

/** Can the horizon be estimated well: treated rows in years with untreated ones, whose covariate
 *  varies? */
static bool estimable(const cells *k, bool covariate)
{
    return isfinite(mean_effect(k, 0)) && (!covariate || k->sxx > 0.1);
}

static void check_mean(const frg_fe_result *f, const rows *r, const double *c, bool covariate)
{
    const cells in = add_cells(r, c);
    const double b = mean_effect(&in, covariate ? in.sxy / in.sxx : 0);
    CHECK_INT(f->n_coefficients, 1);
    CHECK_TEXT(f->coefficients[0].term, "treat_diff");
    CHECK_NEAR(f->coefficients[0].estimate, b, DENSE);
    if (!covariate) {
        CHECK_NEAR(f->coefficients[0].std_error, mean_error(r, c, &in, b), DENSE);
    }
}

/** Whether the rows tell all horizons. */
static bool check_reweighted(const rows *r, const frg_lpdid_opts *o, bool covariate)
{
    frg_context *const ctx = test_context();
    frg_table *const t = rows_table(ctx, r);
    frg_lpdid *l = NULL;
    frg_fe_many *fits = NULL;
    frg_fe_opts fit = weighted(NULL);
    CHECK_OK(ctx, frg_lpdid_create(&l, ctx, covariate ? "y ~ x" : "y ~ 1", t, o));
    const frg_lpdid_design *const d = frg_lpdid_get(l);
    static double c[8][MOST];
    bool all = true;
    for (int k = 0; k < d->n; k++) {
        for (int i = 0; i < r->n; i++) {
            c[k][i] = change(r, i, o->pooled ? d->last : d->outcomes[k].horizon, o);
        }
        const cells in = add_cells(r, c[k]);
        all = all && estimable(&in, covariate);
    }
    fit.vcov[0] = d->vcov;
    fit.first_stage = d->first_stage;
    if (all && CHECK_OK(ctx, frg_fe_fit_many(&fits, ctx, d->formula, d->table, &fit)) &&
        CHECK_INT(frg_fe_many_count(fits), d->n)) {
        for (int k = 0; k < d->n; k++) {
            const frg_fe_result *const f = frg_fe_get(frg_fe_many_get(fits, k));
            CHECK_TEXT(f->depvar, d->outcomes[k].name);
            check_mean(f, r, c[k], covariate);
        }
    }
    frg_fe_many_destroy(fits);
    frg_lpdid_destroy(l);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
    return all;
}

/** Reweighted, the estimate is the plain mean of the treated rows' changes less those of the
 *  untreated rows of their year (Dube and others 2023, equation of the equally weighted effect),
 *  with a covariate less its part as the untreated rows have it. */
static void reweighted_estimates(void)
{
    int done = 0;
    for (int trial = 0; trial < test_size(24, 6); trial++) {
        const rows r = draw_rows();
        frg_lpdid_opts o = projecting();
        o.reweight = 1;
        o.pooled = trial % 5 == 0;
        o.pmd = trial % 3;
        o.pre_window = -2;
        o.post_window = 2;
        done += check_reweighted(&r, &o, trial % 2);
    }
    CHECK(done > 2);
}

/** Refused with this status and text; the rows are changed back. */
static void refuse_study(rows *r, frg_lpdid_opts o, const char *text, frg_status status,
                         const char *code, const char *says)
{
    frg_context *const ctx = test_context();
    frg_table *const t = rows_table(ctx, r);
    frg_lpdid *l = NULL;
    CHECK_STATUS(frg_lpdid_create(&l, ctx, text, t, &o), status);
    CHECK_TEXT(frg_error_code(ctx), code);
    CHECK_SAYS(strstr(frg_message(ctx), says) != NULL, "%s", frg_message(ctx));
    CHECK(l == NULL);
    CHECK(frg_lpdid_get(NULL) == NULL);
    frg_table_destroy(t);
    CHECK_INT((int64_t)frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

static void refused_studies(void)
{
    const rows usual = draw_rows();
    rows r = usual;
    frg_lpdid_opts o = projecting();
    o.post_window = 9;
    refuse_study(&r, o, "y ~ 1", FRG_BAD_ARG, "FRG-CORE-006", "post_window=9: ");
    o = projecting();
    o.pre_window = o.post_window = -1;
    refuse_study(&r, o, "y ~ 1", FRG_BAD_ARG, "FRG-CORE-006", "no horizon but the reference");
    o.pooled = 1;
    refuse_study(&r, o, "y ~ 1", FRG_BAD_ARG, "FRG-CORE-006", "pooled");
    o = projecting();
    o = projecting();
    o.pmd = 9;
    refuse_study(&r, o, "y ~ 1", FRG_BAD_ARG, "FRG-CORE-006", "pmd=9: no unit has outcomes");
    o.pmd = -1;
    refuse_study(&r, o, "y ~ 1", FRG_BAD_ARG, "FRG-CORE-006", "pmd");
    o = projecting();
    o.panel = NULL;
    refuse_study(&r, o, "y ~ 1", FRG_BAD_ARG, "FRG-CORE-006", "a panel UNIT,TIME");
    o = projecting();
    o.cohort = "cohort";
    refuse_study(&r, o, "y ~ 1", FRG_BAD_DATA, "FRG-IO-008", "cohort");
    o = projecting();
    refuse_study(&r, o, "y ~ 1 | year", FRG_BAD_ARG, "FRG-CORE-006", "those of the periods");
    refuse_study(&r, o, "y ~ treat_diff", FRG_BAD_ARG, "FRG-CORE-006", "another name");
    for (int i = 0; i < r.n; i++) {
        r.g[i] = 0;
    }
    refuse_study(&r, o, "y ~ 1", FRG_BAD_DATA, "FRG-FE-068", "no row is treated");
    for (int i = 0; i < r.n; i++) {
        r.g[i] = 1999;
    }
    refuse_study(&r, o, "y ~ 1", FRG_BAD_DATA, "FRG-FE-066", "untreated");
    r = usual;
    for (int i = 0; i < r.n; i++) {
        r.year[i] = 2 * r.year[i] - 2000;
        r.g[i] = r.g[i] > 0 ? 2 * r.g[i] - 2000 : 0;
    }
    refuse_study(&r, o, "y ~ 1", FRG_BAD_DATA, "FRG-FE-079", "the least distance is 2");
    r = usual;
    r.unit[1] = r.unit[0];
    r.year[1] = r.year[0];
    refuse_study(&r, o, "y ~ 1", FRG_BAD_DATA, "FRG-FE-030", "of one unit");
}

/** Cohorts that are treated all along are left out with a warning, and change nothing else. */
static void always_treated(void)
{
    frg_context *const ctx = test_context();
    rows r = draw_rows();
    frg_table *const before = rows_table(ctx, &r);
    int gone = 0;
    for (int i = 0; i < r.n; i++) { /* a never treated unit becomes one of them */
        const bool one = r.unit[i] == 40;
        r.g[i] = one ? 1990 : r.g[i];
        r.y[i] = one ? (double)NAN : r.y[i];
        gone += one;
    }
    frg_table *const after = rows_table(ctx, &r);
    frg_lpdid *l = NULL;
    frg_lpdid_opts o = projecting();
    o.post_window = 1;
    o.pre_window = -2;
    CHECK_OK(ctx, frg_lpdid_create(&l, ctx, "y ~ 1", before, &o));
    CHECK_INT(frg_warning_count(ctx), 0);
    frg_lpdid_destroy(l);
    CHECK_OK(ctx, frg_lpdid_create(&l, ctx, "y ~ 1", after, &o));
    CHECK_INT(frg_warning_count(ctx), 1);
    char says[64];
    snprintf(says, sizeof says, "%d rows of 1 units", gone);
    CHECK_SAYS(strstr(frg_warning_message(ctx, 0), says) != NULL, "%s",
               frg_warning_message(ctx, 0));
    const frg_lpdid_design *const d = frg_lpdid_get(l);
    for (int i = 0; i < r.n; i++) {
        r.g[i] = r.g[i] == 1990 ? 0 : r.g[i]; /* without outcomes they compare nothing */
    }
    for (int k = 0; k < d->n; k++) {
        check_column(d->table, d->outcomes[k].name, &r, d->outcomes[k].horizon, &o);
    }
    frg_lpdid_destroy(l);
    frg_table_destroy(before);
    frg_table_destroy(after);
    frg_context_destroy(ctx);
}

static frg_status project_once(frg_context *ctx, void *user, uint64_t *hash)
{
    const rows *const r = user;
    frg_table *t = NULL;
    frg_lpdid *l = NULL;
    frg_lpdid_opts o = projecting();
    o.post_window = 1;
    o.reweight = 1;
    frg_status status = frg_table_create(&t, ctx, r->n);
    status = status < 0 ? status : frg_table_add_integers(t, "a unit", r->unit);
    status = status < 0 ? status : frg_table_add_integers(t, "year", r->year);
    status = status < 0 ? status : frg_table_add_integers(t, "g", r->g);
    status = status < 0 ? status : frg_table_add_numbers(t, "y", r->y);
    status = status < 0 ? status : frg_lpdid_create(&l, ctx, "exp(y) ~ 1", t, &o);
    if (status >= 0) {
        const frg_lpdid_design *const d = frg_lpdid_get(l);
        for (int k = 0; k < d->n; k++) {
            fault_hash(hash, frg_table_find(d->table, d->outcomes[k].name)->numbers,
                       (size_t)r->n * sizeof(double));
        }
    }
    frg_lpdid_destroy(l);
    frg_table_destroy(t);
    return status;
}

static void faults_of_studies(void)
{
    rows r = draw_rows();
    CHECK(fault_sweep("lpdid", project_once, &r, test_now.threads) > 10);
}

/** Rows in a subset decide alone: of whole units the columns are those of a table without the
 *  others. */
static void subset_of_units(void)
{
    frg_context *const ctx = test_context();
    rows all = draw_rows(), some = {0};
    for (int i = 0; i < all.n; i++) { /* outside: a cohort that is treated all along */
        all.g[i] = all.unit[i] == 40 ? 1990 : all.g[i];
        if (all.unit[i] < 38) {
            some.unit[some.n] = all.unit[i];
            some.year[some.n] = all.year[i];
            some.g[some.n] = all.g[i];
            some.y[some.n++] = all.y[i];
        }
    }
    frg_table *const whole = rows_table(ctx, &all), *const part = rows_table(ctx, &some);
    frg_lpdid *l = NULL, *m = NULL;
    frg_lpdid_opts o = projecting();
    CHECK_OK(ctx, frg_lpdid_create(&m, ctx, "y ~ 1", part, &o));
    o.subset = "`a unit` < 38";
    CHECK_OK(ctx, frg_lpdid_create(&l, ctx, "y ~ 1", whole, &o));
    CHECK_INT(frg_warning_count(ctx), 0);
    const frg_lpdid_design *const d = frg_lpdid_get(l), *const e = frg_lpdid_get(m);
    if (CHECK_INT(d->n, e->n)) {
        for (int k = 0; k < d->n; k++) {
            const frg_column *const a = frg_table_find(d->table, d->outcomes[k].name);
            const frg_column *const b = frg_table_find(e->table, e->outcomes[k].name);
            for (int i = 0, j = 0; i < all.n; i++) {
                if (all.unit[i] < 38) {
                    CHECK_BITS(&a->numbers[i], &b->numbers[j], sizeof *a->numbers);
                    j++;
                }
            }
        }
    }
    frg_lpdid_destroy(l);
    frg_lpdid_destroy(m);
    frg_table_destroy(whole);
    frg_table_destroy(part);
    frg_context_destroy(ctx);
}

/** Who is treated at t + h is looked up outside the subset, too: of the years up to 2004 the cohort
 *  2006 is a clean control for h < 2 alone. */
static void subset_of_years(void)
{
    frg_context *const ctx = test_context();
    const rows r = draw_rows();
    frg_table *const t = rows_table(ctx, &r);
    frg_lpdid *l = NULL;
    frg_lpdid_opts o = projecting();
    o.subset = "year < 2005";
    o.pre_window = -2;
    CHECK_OK(ctx, frg_lpdid_create(&l, ctx, "y ~ 1", t, &o));
    const frg_lpdid_design *const d = frg_lpdid_get(l);
    CHECK_INT(d->last, 0); /* 2004 is the only cohort that begins there */
    for (int k = 0; k < d->n; k++) {
        check_column(d->table, d->outcomes[k].name, &r, d->outcomes[k].horizon, &o);
    }
    frg_lpdid_destroy(l);
    o.subset = "year < 2007";
    o.post_window = 2;
    CHECK_OK(ctx, frg_lpdid_create(&l, ctx, "y ~ 1", t, &o));
    check_column(frg_lpdid_get(l)->table, "change::2", &r, 2, &o);
    frg_lpdid_destroy(l);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- event studies --------------------------------------------------------------------------- */

static frg_event_study_opts studying(const char *subset)
{
    frg_event_study_opts o;
    frg_event_study_defaults(&o, sizeof o);
    o.unit = "a unit";
    o.time = "year";
    o.cohort = "g";
    o.subset = subset;
    return o;
}

/** g of row i, infinite where it is never treated in the years up to `last`, NaN where no row from
 *  `from` to then is before it. */
static double cohort_of(const rows *r, int i, int64_t from, int64_t last)
{
    const int64_t g = r->g[i];
    bool before = false;
    for (int j = 0; j < r->n; j++) {
        const bool used = r->year[j] >= from && r->year[j] <= last;
        before |= used && r->g[j] == g && r->year[j] < g;
    }
    return g == FRG_MISSING_INTEGER || g <= 0 || g > last ? (double)INFINITY
           : before                                       ? (double)g
                                                          : (double)NAN;
}

/** The columns by looking, of all rows and of those of some years. */
static void columns_of_events(void)
{
    static const struct {
        const char *subset;
        int64_t from, last;
    } ways[] = {
        {NULL, 2001, 2009}, {"year > 2002", 2003, 2009}, {"year > 2001 & year < 2006", 2002, 2005}};
    for (int trial = 0; trial < test_size(30, 6); trial++) {
        frg_context *const ctx = test_context();
        const int64_t from = ways[trial % 3].from, last = ways[trial % 3].last;
        rows r = draw_rows();
        double treated[MOST], since[MOST], first[MOST], reference, want = -INFINITY;
        int always = 0;
        for (int i = 0; i < r.n; i++) { /* of the never treated some are missing, or -1 */
            r.g[i] = r.unit[i] == 40 ? FRG_MISSING_INTEGER : r.unit[i] == 37 ? -1 : r.g[i];
            r.g[i] = r.unit[i] == 34 ? 1990 + trial % 2 * 100 : r.g[i]; /* always, or afterwards */
        }
        frg_table *const t = rows_table(ctx, &r);
        const frg_event_study_opts o = studying(ways[trial % 3].subset);
        CHECK_OK(ctx, frg_event_study(ctx, t, &o, treated, since, first, &reference));
        for (int i = 0; i < r.n; i++) {
            const double g = cohort_of(&r, i, from, last), s = (double)r.year[i] - g;
            const bool used = r.year[i] >= from && r.year[i] <= last;
            want = used && isfinite(s) && s < 0 ? fmax(want, s) : want;
            always += used && isnan(g);
        }
        CHECK_NEAR(reference, want, 0);
        for (int i = 0; i < r.n; i++) {
            const double g = cohort_of(&r, i, from, last), year = (double)r.year[i];
            if (year < (double)from || year > (double)last) {
                continue;
            }
            CHECK(isnan(treated[i]) == isnan(g) && isnan(first[i]) == isnan(g));
            CHECK(isnan(g) || treated[i] == (year >= g));
            CHECK(isnan(g) || since[i] == (isinf(g) ? want : year - g));
            CHECK(isnan(g) || first[i] == (isinf(g) ? (double)last + 1 : g));
        }
        CHECK_INT(frg_warning_count(ctx), always > 0);
        if (always > 0) {
            char says[32];
            snprintf(says, sizeof says, "%d rows of ", always);
            CHECK_SAYS(strstr(frg_warning_message(ctx, 0), says) != NULL, "%s",
                       frg_warning_message(ctx, 0));
        }
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
}

/** Refused with this text, and the arrays are as they were. */
static void refuse_events(const rows *r, frg_event_study_opts o, const char *code, const char *says)
{
    frg_context *const ctx = test_context();
    frg_table *const t = rows_table(ctx, r);
    static const char *const words[] = {"a"};
    const int32_t codes[MOST] = {0};
    double first[MOST] = {0}, reference = 7;
    const double zeros[MOST] = {0};
    CHECK_OK(ctx, frg_table_add_codes(t, "word", codes, words, 1));
    CHECK(frg_event_study(ctx, t, &o, NULL, NULL, first, &reference) < 0);
    CHECK_TEXT(frg_error_code(ctx), code);
    CHECK_SAYS(strstr(frg_message(ctx), says) != NULL, "%s", frg_message(ctx));
    CHECK_BITS(first, zeros, sizeof first);
    CHECK(reference == 7);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static void refused_events(void)
{
    rows r = draw_rows();
    frg_event_study_opts o = studying(NULL);
    o.unit = NULL;
    refuse_events(&r, o, "FRG-CORE-006", "the column 'unit' is not named");
    o = studying(NULL);
    o.cohort = "word";
    refuse_events(&r, o, "FRG-FE-065", "the cohort 'word' holds text");
    o = studying(NULL);
    o.time = "word";
    refuse_events(&r, o, "FRG-FE-065", "the period 'word' holds text");
    o = studying("word");
    refuse_events(&r, o, "FRG-FE-011", "subset: column 'word' holds text");
    o = studying("year <");
    refuse_events(&r, o, "FRG-FE-001", "subset");
    refuse_events(&r, studying("year < 2004"), "FRG-FE-068", "no row is treated");
    refuse_events(&r, studying("year > 2003 & g == 2004"), "FRG-FE-066", "untreated");
    o = studying("year != 2004");
    o.calendar = 1;
    refuse_events(&r, o, "FRG-FE-067", "of the period 2004 in which a cohort's");
    refuse_events(&r, o, "FRG-FE-067", "write 2005");
    o.subset = "year != 2003 | g != 2004";
    refuse_events(&r, o, "FRG-FE-067", "the cohort 2004 has no row at 2003");
}

static frg_status study_once(frg_context *ctx, void *user, uint64_t *hash)
{
    const rows *const r = user;
    frg_table *t = NULL;
    double first[MOST] = {0};
    frg_event_study_opts o = studying("year > 2001");
    o.calendar = 1;
    frg_status status = frg_table_create(&t, ctx, r->n);
    status = status < 0 ? status : frg_table_add_integers(t, "a unit", r->unit);
    status = status < 0 ? status : frg_table_add_integers(t, "year", r->year);
    status = status < 0 ? status : frg_table_add_integers(t, "g", r->g);
    status = status < 0 ? status : frg_event_study(ctx, t, &o, NULL, NULL, first, NULL);
    if (status >= 0) {
        fault_hash(hash, first, sizeof first);
    }
    frg_table_destroy(t);
    return status;
}

static void faults_of_events(void)
{
    rows r = draw_rows();
    for (int i = 0; i < r.n; i++) {
        r.g[i] = r.unit[i] == 40 ? 1990 : r.g[i];
    }
    CHECK(fault_sweep("event_study", study_once, &r, test_now.threads) > 5);
}

static const test_case cases[] = {{"draws are regressions", draws_are_regressions},
                                  {"all orders", all_orders},
                                  {"orders within strata", orders_within_strata},
                                  {"same draws", same_draws},
                                  {"refused permutations", refused_permutations},
                                  {"stopped permutations", stopped_permutations},
                                  {"faults of permutations", faults_of_permutations},
                                  {"columns by looking", columns_by_looking},
                                  {"estimates by year", estimates_by_year},
                                  {"reweighted estimates", reweighted_estimates},
                                  {"refused studies", refused_studies},
                                  {"always treated", always_treated},
                                  {"faults of studies", faults_of_studies},
                                  {"subset of units", subset_of_units},
                                  {"subset of years", subset_of_years},
                                  {"columns of events", columns_of_events},
                                  {"refused events", refused_events},
                                  {"faults of events", faults_of_events}};
TEST_MAIN(cases)
