/* test_event_study.c - Sun and Abraham's means of cohorts, and two-stage difference in differences.
 *
 * The panel is a formula: 30 units in 11 states, ten years, cohorts 2003, 2005, 2007 and never (0),
 * some rows missing.  Numbers "of pyfixest" are version 0.60.0's on it (event_study with estimator
 * "saturated" and its aggregate(), did2s), whose demeaner stops at 1e-6: that is the tolerance.
 *
 * The dense way stacks the moment conditions of all coefficients, dummies among them, and solves by
 * Gaussian elimination: b and G^-1 M G^-T have no step in common with the library.  The systems
 * have conditions below 1e5, so that 1e-9 is five digits more than their rounding.
 */
#include "fault.h"
#include "fourge/fe.h"
#include "test.h"

enum { UNITS = 30, YEARS = 10, ROWS = UNITS * YEARS, MOST = 80 };
static const double DENSE = 1e-9, PYFIXEST = 1e-6;

typedef struct {
    int n;
    int64_t unit[ROWS], year[ROWS], g[ROWS], state[ROWS], treat[ROWS], rel[ROWS];
    double x[ROWS], y[ROWS], w[ROWS];
} rows;

/** Without the cohort `without`, its units left out. */
static rows make_rows(int64_t without)
{
    static const int64_t cohorts[] = {0, 2003, 2005, 2007};
    rows r = {0};
    for (int i = 0; i < UNITS; i++) {
        for (int t = 2000; t < 2000 + YEARS; t++) {
            const int64_t g = cohorts[i % 4];
            if ((i * 5 + t * 3) % 23 == 0 || g == without) {
                continue;
            }
            const int k = r.n++;
            r.unit[k] = i;
            r.year[k] = t;
            r.g[k] = g;
            r.state[k] = i % 11;
            r.x[k] = (double)((i * 613 + t * 977 + i * t * 17) % 503) / 503;
            r.treat[k] = g > 0 && t >= g;
            r.rel[k] = g > 0 ? t - g : -1;
            r.w[k] = 1 + (i * 3 + t) % 4;
            r.y[k] = 0.3 * (i % 7) + 0.1 * (t - 2000) + 0.5 * r.x[k] +
                     (double)r.treat[k] * (1 + 0.25 * (double)(t - g) + 0.1 * (i % 3)) +
                     (double)((i * 7919 + t * 104729 + i * t * 31) % 1009) / 1009 - 0.5;
        }
    }
    return r;
}

static frg_table *table_of(frg_context *ctx, const rows *r)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, r->n));
    const struct {
        const char *name;
        const int64_t *values;
    } whole[] = {{"unit", r->unit},   {"year", r->year},   {"g", r->g},
                 {"state", r->state}, {"treat", r->treat}, {"rel", r->rel}};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        CHECK_OK(ctx, frg_table_add_integers(t, whole[i].name, whole[i].values));
    }
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", r->x));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", r->y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "w", r->w));
    return t;
}

static frg_fe_opts options(const char *vcov)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = vcov;
    o.demean.tol = 1e-13;
    return o;
}

static frg_fe *fit(frg_context *ctx, const char *formula, const frg_table *t, const frg_fe_opts *o)
{
    frg_fe *f = NULL;
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, o));
    return f;
}

static const frg_coefficient *find(const frg_fe *f, const char *term)
{
    const frg_fe_result *const r = frg_fe_get(f);
    for (int i = 0; r && i < r->n_coefficients; i++) {
        if (strcmp(r->coefficients[i].term, term) == 0) {
            return &r->coefficients[i];
        }
    }
    CHECK_SAYS(false, "there is no term %s", term);
    static const frg_coefficient none = {"", NAN, NAN, NAN, NAN, NAN, NAN};
    return &none;
}

/* ---- numbers of pyfixest --------------------------------------------------------------------- */

typedef struct {
    const char *term;
    double estimate, std_error;
} golden;

static void compare(const frg_fe *f, const golden *want, int n, double tolerance)
{
    CHECK_INT(frg_fe_get(f)->n_coefficients, n);
    for (int i = 0; i < n; i++) {
        const frg_coefficient *const c = find(f, want[i].term);
        CHECK_NEAR(c->estimate, want[i].estimate, tolerance);
        CHECK_NEAR(c->std_error, want[i].std_error, tolerance);
    }
}

static void means_of_pyfixest(void)
{
    static const golden want[] = {{"year::-7", -0.204564339957656, 0.198477645983297},
                                  {"year::-6", -0.079671555175275, 0.197691061411645},
                                  {"year::-5", -0.215111556834037, 0.139357246437862},
                                  {"year::-4", 0.042633957981788, 0.168552535380734},
                                  {"year::-3", -0.0831993842945561, 0.0911800520240024},
                                  {"year::-2", 0.0363972697822116, 0.131462967628471},
                                  {"year::0", 1.13472801660806, 0.125655172538982},
                                  {"year::1", 1.29857252195247, 0.113204685528141},
                                  {"year::2", 1.6227803800856, 0.115663819579402},
                                  {"year::3", 1.9827270989407, 0.195947456902125},
                                  {"year::4", 2.279069956294, 0.151033286806474},
                                  {"year::5", 2.5002335703212, 0.293043628262213},
                                  {"year::6", 2.54008111761384, 0.19253648188597}};
    frg_context *ctx = test_context();
    const rows r = make_rows(-1);
    frg_table *t = table_of(ctx, &r);
    const frg_fe_opts o = options("cluster=unit");
    frg_fe *f = fit(ctx, "y ~ sunab(g, year) | unit + year", t, &o);
    compare(f, want, 13, PYFIXEST);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static void two_stages_of_pyfixest(void)
{
    static const golden one[] = {{"treat::1", 1.70495987839919, 0.0690694474483463}};
    static const golden many[] = {{"rel::-7", 0.0430683455996303, 0.0952421481193475},
                                  {"rel::-6", -0.0290920639604872, 0.0880805259277049},
                                  {"rel::-5", -0.101251989714995, 0.0522250640095784},
                                  {"rel::-4", 0.0361831345135838, 0.0670735881508046},
                                  {"rel::-3", -0.00482106091897679, 0.0476043037293821},
                                  {"rel::-2", 0.0198162552625847, 0.0420181298282919},
                                  {"rel::0", 1.17770347380319, 0.108802160228761},
                                  {"rel::1", 1.2941299263201, 0.0905399020299761},
                                  {"rel::2", 1.60329316861472, 0.076885983238029},
                                  {"rel::3", 1.94300370806227, 0.0983306278676852},
                                  {"rel::4", 2.23769390195526, 0.118739211973586},
                                  {"rel::5", 2.35943006269366, 0.139615672715147},
                                  {"rel::6", 2.47921149261095, 0.157513715915093}};
    static const golden weighted[] = {{"rel::-7", 0.0680949855888803, 0.0980261521029121},
                                      {"rel::-6", -0.032325034178726, 0.0889147885865162},
                                      {"rel::-5", -0.0763551582438638, 0.0439051308650406},
                                      {"rel::-4", 0.0357221276873993, 0.065047944575506},
                                      {"rel::-3", -0.00635183483298154, 0.0398587661338504},
                                      {"rel::-2", 0.0145013903706226, 0.0464013041021887},
                                      {"rel::0", 1.10737292241749, 0.128390544808558},
                                      {"rel::1", 1.33621833184873, 0.123132849374681},
                                      {"rel::2", 1.56019392788559, 0.0725497822544653},
                                      {"rel::3", 1.91841640611963, 0.0953422254512749},
                                      {"rel::4", 2.19706976496242, 0.113685311637208},
                                      {"rel::5", 2.33153756308029, 0.1452175280236},
                                      {"rel::6", 2.44959902061556, 0.146560039496622}};
    frg_context *ctx = test_context();
    const rows r = make_rows(-1);
    frg_table *t = table_of(ctx, &r);
    frg_fe_opts o = options("cluster=state");
    o.first_stage = "treat ~ 0 | unit + year";
    frg_fe *f = fit(ctx, "y ~ i(treat)", t, &o);
    compare(f, one, 1, PYFIXEST);
    int64_t untreated = 0;
    for (int i = 0; i < r.n; i++) {
        untreated += r.treat[i] == 0;
    }
    CHECK_INT(frg_fe_get(f)->n_first_stage, untreated);
    frg_fe_destroy(f);
    o.first_stage = "treat ~ x | unit + year";
    f = fit(ctx, "y ~ i(rel, ref=-1)", t, &o);
    compare(f, many, 13, PYFIXEST);
    frg_fe_destroy(f);
    o.weights = "w";
    f = fit(ctx, "y ~ i(rel, ref=-1)", t, &o);
    compare(f, weighted, 13, PYFIXEST);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- the dense way --------------------------------------------------------------------------- */

/** theta = (g, b) of the conditions sum w0 x1 (y - x1'g) = 0 and sum w x2 (y - x1'g - x2'b) = 0;
 *  m1 = 0: one stage. */
typedef struct {
    int m1, m2;
    double x1[ROWS][MOST], x2[ROWS][MOST], w0[ROWS], w[ROWS];
    double theta[MOST], v[MOST][MOST];
} dense;

/** Gauss and Jordan with the largest pivot, the inverse in the right half; false: it is singular. */
static bool invert(int m, double a[MOST][2 * MOST])
{
    for (int c = 0; c < m; c++) {
        int p = c;
        for (int i = c; i < m; i++) {
            p = fabs(a[i][c]) > fabs(a[p][c]) ? i : p;
        }
        const double pivot = a[p][c];
        if (fabs(pivot) < 1e-10) {
            return false;
        }
        for (int j = 0; j < 2 * m; j++) {
            const double v = a[p][j];
            a[p][j] = a[c][j];
            a[c][j] = v / pivot;
        }
        for (int i = 0; i < m; i++) {
            const double factor = a[i][c];
            for (int j = 0; j < 2 * m && i != c; j++) {
                a[i][j] -= factor * a[c][j];
            }
        }
    }
    return true;
}

/** The derivative of condition a of row i by theta_b, less its sign. */
static double slope(const dense *d, int i, int a, int b)
{
    const double z = a < d->m1 ? d->w0[i] * d->x1[i][a] : d->w[i] * d->x2[i][a - d->m1];
    return b < d->m1 ? z * d->x1[i][b] : a < d->m1 ? 0 : z * d->x2[i][b - d->m1];
}

static void condition(const dense *d, int i, double y, double *s)
{
    double u = y;
    for (int j = 0; j < d->m1; j++) {
        u -= d->x1[i][j] * d->theta[j];
    }
    double e = u;
    for (int j = 0; j < d->m2; j++) {
        e -= d->x2[i][j] * d->theta[d->m1 + j];
    }
    for (int a = 0; a < d->m1; a++) {
        s[a] += d->w0[i] * d->x1[i][a] * u;
    }
    for (int a = 0; a < d->m2; a++) {
        s[d->m1 + a] += d->w[i] * d->x2[i][a] * e;
    }
}

/** theta and V = G^-1 (sum_c s_c s_c') G^-T, c the clusters 0 .. UNITS-1. */
static bool solve(dense *d, const rows *r, const int64_t *cluster)
{
    static double g[MOST][2 * MOST], s[UNITS][MOST], h[UNITS][MOST];
    const int m = d->m1 + d->m2;
    memset(g, 0, sizeof g);
    memset(s, 0, sizeof s);
    double right[MOST] = {0};
    memset(d->theta, 0, sizeof d->theta);
    for (int i = 0; i < r->n; i++) {
        condition(d, i, r->y[i], right);
        for (int a = 0; a < m; a++) {
            g[a][m + a] = 1;
            for (int b = 0; b < m; b++) {
                g[a][b] += slope(d, i, a, b);
            }
        }
    }
    if (!CHECK(invert(m, g))) {
        return false;
    }
    for (int a = 0; a < m; a++) {
        for (int b = 0; b < m; b++) {
            d->theta[a] += g[a][m + b] * right[b];
        }
    }
    for (int i = 0; i < r->n; i++) {
        condition(d, i, r->y[i], s[cluster[i]]);
    }
    memset(d->v, 0, sizeof d->v);
    for (int c = 0; c < UNITS; c++) {
        for (int a = 0; a < m; a++) {
            h[c][a] = 0;
            for (int b = 0; b < m; b++) {
                h[c][a] += g[a][m + b] * s[c][b];
            }
        }
        for (int a = 0; a < m; a++) {
            for (int b = 0; b < m; b++) {
                d->v[a][b] += h[c][a] * h[c][b];
            }
        }
    }
    return true;
}

/** Dummies of units, and of years but one, behind the `m` columns of x; returns how many then. */
static int add_dummies(const rows *r, double (*x)[MOST], int m)
{
    for (int i = 0; i < r->n; i++) {
        memset(x[i] + m, 0, sizeof(double) * (UNITS + YEARS - 1));
        x[i][m + r->unit[i]] = 1;
        if (r->year[i] > 2000) {
            x[i][m + UNITS + r->year[i] - 2001] = 1;
        }
    }
    return m + UNITS + YEARS - 1;
}

/** Outcomes and weights at random. */
static rows draw(bool weighted)
{
    rows r = make_rows(-1);
    for (int i = 0; i < r.n; i++) {
        r.y[i] += test_normal();
        r.x[i] = test_normal();
        r.w[i] = weighted ? 0.5 + test_uniform() : 1;
    }
    return r;
}

/** The cohorts' columns by year and relative period; cell: theirs, or -1. */
static int add_cells(const rows *r, dense *d, int cell[3][YEARS])
{
    int m = 0;
    for (int c = 0; c < 3; c++) {
        for (int t = 0; t < YEARS; t++) {
            cell[c][t] = t - 3 - 2 * c == -1 ? -1 : m++;
        }
    }
    for (int i = 0; i < r->n; i++) {
        memset(d->x2[i], 0, sizeof d->x2[i]);
        const int at = r->g[i] > 0 ? cell[(r->g[i] - 2003) / 2][r->year[i] - 2000] : -1;
        if (at >= 0) {
            d->x2[i][at] = 1;
        }
        d->w[i] = r->w[i];
    }
    return m;
}

/** The shares of cells in the mean of relative periods low .. high. */
static void fill_shares(const rows *r, int cell[3][YEARS], int low, int high, double *share)
{
    double sum = 0;
    memset(share, 0, sizeof *share * MOST);
    for (int i = 0; i < r->n; i++) {
        const int at = r->g[i] > 0 ? cell[(r->g[i] - 2003) / 2][r->year[i] - 2000] : -1;
        if (at >= 0 && r->year[i] - r->g[i] >= low && r->year[i] - r->g[i] <= high) {
            share[at] += r->w[i];
            sum += r->w[i];
        }
    }
    for (int a = 0; a < MOST; a++) {
        share[a] /= sum;
    }
}

static void compare_mean(const dense *d, const double *share, const frg_coefficient *c)
{
    double mean = 0, variance = 0;
    for (int a = 0; a < d->m2; a++) {
        mean += share[a] * d->theta[a];
        for (int b = 0; b < d->m2; b++) {
            variance += share[a] * d->v[a][b] * share[b];
        }
    }
    CHECK_NEAR(c->estimate, mean, DENSE);
    CHECK_NEAR(c->std_error, sqrt(variance), DENSE);
}

static void means_by_the_dense_way(void)
{
    static dense d;
    for (int trial = 0; trial < 6; trial++) {
        const bool weighted = trial % 2;
        const rows r = draw(weighted);
        int cell[3][YEARS];
        double share[MOST];
        d.m1 = 0;
        d.m2 = add_dummies(&r, d.x2, add_cells(&r, &d, cell));
        if (!solve(&d, &r, r.unit)) {
            return;
        }
        frg_context *ctx = test_context();
        frg_table *t = table_of(ctx, &r);
        frg_fe_opts o = options("cluster=unit");
        o.ssc = "adj=false,cluster.adj=false";
        o.weights = weighted ? "w" : NULL;
        frg_fe *f = fit(ctx, "y ~ sunab(g, year) | unit + year", t, &o);
        for (int e = -7; e <= 6; e++) {
            char term[32];
            snprintf(term, sizeof term, "year::%d", e);
            if (e != -1) {
                fill_shares(&r, cell, e, e, share);
                compare_mean(&d, share, find(f, term));
            }
        }
        frg_fe_destroy(f);
        f = fit(ctx, "y ~ sunab_att(g, year) | unit + year", t, &o);
        fill_shares(&r, cell, 0, 6, share);
        compare_mean(&d, share, find(f, "ATT"));
        frg_fe_destroy(f);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
}

static void two_stages_by_the_dense_way(void)
{
    static dense d;
    for (int trial = 0; trial < 6; trial++) {
        const bool weighted = trial % 2, by_row = trial >= 4;
        const rows r = draw(weighted);
        d.m1 = add_dummies(&r, d.x1, 1);
        d.m2 = 2;
        int64_t cluster[ROWS];
        for (int i = 0; i < r.n; i++) {
            d.x1[i][0] = r.x[i];
            d.x2[i][0] = (double)r.treat[i];
            d.x2[i][1] = (double)r.treat[i] * r.x[i];
            d.w[i] = r.w[i];
            d.w0[i] = r.treat[i] ? 0 : r.w[i];
            cluster[i] = r.state[i];
        }
        if (!solve(&d, &r, cluster)) {
            return;
        }
        frg_context *ctx = test_context();
        frg_table *t = table_of(ctx, &r);
        frg_fe_opts o = options(by_row ? "cluster=unit^year" : "cluster=state");
        o.first_stage = "treat ~ x | unit + year";
        o.weights = weighted ? "w" : NULL;
        frg_fe *f = fit(ctx, "y ~ 0 + treat + treat:x", t, &o);
        const char *const terms[] = {"treat", "treat:x"};
        for (int j = 0; j < 2 && !by_row; j++) {
            const int a = d.m1 + j;
            CHECK_NEAR(find(f, terms[j])->estimate, d.theta[a], DENSE);
            CHECK_NEAR(find(f, terms[j])->std_error, sqrt(d.v[a][a]), DENSE);
        }
        const frg_fe_vcov *rows_alone = NULL; /* hc1: every row a cluster */
        CHECK_OK(ctx, frg_fe_vcov_add(f, "hc1", NULL, &rows_alone));
        for (int j = 0; j < 2 && by_row; j++) {
            CHECK_NEAR(rows_alone->coefficients[j].std_error, find(f, terms[j])->std_error, 1e-12);
        }
        frg_fe_destroy(f);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
}

/* ---- which rows and terms -------------------------------------------------------------------- */

static bool has_warned(const frg_context *ctx, const char *code)
{
    for (int i = 0; i < frg_warning_count(ctx); i++) {
        if (strcmp(frg_warning_code(ctx, i), code) == 0) {
            return true;
        }
    }
    return false;
}

/** Two fits with the same estimates and errors, to the bit. */
static void check_same(const frg_fe *f, const frg_fe *g)
{
    const frg_fe_result *const a = frg_fe_get(f), *const b = frg_fe_get(g);
    if (CHECK(a && b && a->n_coefficients == b->n_coefficients)) {
        CHECK_INT(a->n, b->n);
        for (int i = 0; i < a->n_coefficients; i++) {
            CHECK_TEXT(a->coefficients[i].term, b->coefficients[i].term);
            CHECK_BITS(&a->coefficients[i].estimate, &b->coefficients[i].estimate,
                       6 * sizeof(double));
        }
    }
}

/** Without a never treated cohort the last one is the reference, until it is treated; cohorts that
 *  are treated from their first row on are left out. */
static void rows_compared(void)
{
    frg_context *ctx = test_context();
    const rows r = make_rows(0);
    frg_table *t = table_of(ctx, &r);
    frg_fe_opts o = options("cluster=unit");
    frg_fe *f = fit(ctx, "y ~ sunab(g, year) | unit + year", t, &o);
    CHECK(has_warned(ctx, "FRG-FE-156") && !has_warned(ctx, "FRG-FE-155"));
    o.subset = "year < 2007";
    frg_fe *same = fit(ctx, "y ~ sunab(g, year) | unit + year", t, &o);
    check_same(f, same);
    CHECK_INT(frg_fe_get(f)->n_uncompared, frg_fe_get(f)->n_rows - frg_fe_get(f)->n);
    frg_fe_destroy(f);
    frg_fe_destroy(same);
    frg_table_destroy(t);

    const rows all = make_rows(-1);
    t = table_of(ctx, &all);
    frg_warnings_clear(ctx);
    o.subset = "year >= 2003";
    f = fit(ctx, "y ~ sunab(g, year, ref.p=c(.F, -1)) | unit + year", t, &o);
    CHECK(has_warned(ctx, "FRG-FE-155") && !has_warned(ctx, "FRG-FE-156"));
    o.subset = "year >= 2003 & g != 2003";
    same = fit(ctx, "y ~ sunab(g, year, ref.p=c(-4, -1)) | unit + year", t, &o);
    check_same(f, same);
    frg_fe_destroy(f);
    frg_fe_destroy(same);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Cohorts apart have the fit of i() of pairs; points of time are said, references among them; a
 *  joint test of one mean is the square of its t; means predict what their cohorts do. */
static void terms_shown(void)
{
    frg_context *ctx = test_context();
    const rows r = make_rows(-1);
    frg_table *t = table_of(ctx, &r);
    frg_fe_opts o = options("cr2=unit");
    o.keep_effects = 1;
    frg_fe *apart = fit(ctx, "y ~ sunab(g, year, ref.c=2005, no_agg=TRUE) | unit + year", t, &o);
    CHECK_INT(frg_fe_get(apart)->n_coefficients, 18);
    CHECK(find(apart, "year::-6:cohort::2007")->std_error > 0);
    CHECK_INT(frg_fe_get(apart)->n_events, 0);
    o.vcov[0] = "cluster=unit";
    frg_fe *f = fit(ctx, "y ~ x + sunab(g, year, ref.c=2005) | unit + year", t, &o);
    const frg_fe_result *const q = frg_fe_get(f);
    CHECK_INT(q->n_coefficients, 14);
    CHECK_TEXT(q->coefficients[0].term, "x");
    CHECK_INT(q->n_events, 14);
    for (int i = 0; i < q->n_events; i++) {
        char term[32];
        snprintf(term, sizeof term, "year::%.0f", q->events[i].time);
        CHECK_INT(q->events[i].time == -1, q->events[i].coefficient < 0);
        if (q->events[i].coefficient >= 0) {
            CHECK_TEXT(q->coefficients[q->events[i].coefficient].term, term);
        }
    }
    double restriction[14] = {[3] = 1};
    frg_fe_test test;
    CHECK_OK(ctx, frg_fe_wald(f, &q->vcov[0], restriction, NULL, 1, &test));
    CHECK_NEAR(test.wald, q->coefficients[3].statistic * q->coefficients[3].statistic, 1e-12);
    double fitted[ROWS], predicted[ROWS];
    CHECK_OK(ctx, frg_fe_residuals(f, NULL, fitted));
    CHECK_OK(ctx, frg_fe_predict(f, t, predicted, NULL));
    for (int i = 0; i < r.n; i++) {
        CHECK_NEAR(predicted[i], fitted[i], 1e-10);
    }
    frg_fe_destroy(f);
    frg_fe_destroy(apart);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- bins ------------------------------------------------------------------------------------ */

/** What bins do to a period and to a cohort. */
typedef struct {
    const char *arguments, *same; /* of sunab() with bins, and without over what they make */
    int64_t (*period)(int64_t), (*cohort)(int64_t);
} binning;

static int64_t as_it_is(int64_t v)
{
    return v;
}

static int64_t even(int64_t v)
{
    return v / 2 * 2;
}

static int64_t three_and_five(int64_t v)
{
    return v == 2003 ? 2005 : v;
}

static int64_t pairs(int64_t v)
{
    return v == 2004 ? 2003 : v == 2006 ? 2005 : v;
}

static int64_t early(int64_t v)
{
    return v < 2003 ? 2002 : v;
}

/** Bins of periods and cohorts are the fit of columns that hold what they make. */
static void bins_of_the_calendar(void)
{
    static const binning jobs[] = {
        {"bin=\"bin::2\", ref.p=-2", "ref.p=-2", even, even},
        {"bin.c=c(2005, 2003)", "ref.p=-1", as_it_is, three_and_five},
        {"bin=list(c(2003, 2004), 2005:2006)", "ref.p=c(-1, -2)", pairs, pairs},
        {"bin.p=2002:1990, ref.p=c(-1, -3)", "ref.p=c(-1, -3)", early, as_it_is}};
    frg_context *ctx = test_context();
    const rows r = make_rows(-1);
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        int64_t period[ROWS], cohort[ROWS];
        char formula[160];
        frg_table *t = table_of(ctx, &r);
        for (int i = 0; i < r.n; i++) {
            period[i] = jobs[j].period(r.year[i]);
            cohort[i] = jobs[j].cohort(r.g[i]);
        }
        CHECK_OK(ctx, frg_table_add_integers(t, "period", period));
        CHECK_OK(ctx, frg_table_add_integers(t, "cohort", cohort));
        const frg_fe_opts o = options("cluster=unit");
        snprintf(formula, sizeof formula, "y ~ x + sunab(g, year, %s%s) | unit + year",
                 jobs[j].arguments, j == 2 ? ", ref.p=c(-1, -2)" : "");
        frg_fe *binned = fit(ctx, formula, t, &o);
        snprintf(formula, sizeof formula, "y ~ x + sunab(cohort, period, %s) | unit + year",
                 jobs[j].same);
        frg_fe *made = fit(ctx, formula, t, &o);
        const frg_fe_result *const a = frg_fe_get(binned), *const b = frg_fe_get(made);
        if (CHECK(a && b) && CHECK_INT(a->n_coefficients, b->n_coefficients)) {
            CHECK_INT(a->n, b->n);
            for (int i = 0; i < a->n_coefficients; i++) {
                CHECK_NEAR(a->coefficients[i].estimate, b->coefficients[i].estimate, 1e-12);
                CHECK_NEAR(a->coefficients[i].std_error, b->coefficients[i].std_error, 1e-12);
            }
        }
        frg_fe_destroy(binned);
        frg_fe_destroy(made);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** -7:-4 and 3:6 are one relative period each, which the first of their values that rows have
 *  names. */
static int64_t relative_bin(int64_t e)
{
    return e <= -4 ? -7 : e >= 3 ? 3 : e;
}

/** Adds a column for each cohort and bin but -1, whose names are appended to the formula; returns
 *  how many.  cells: their relative periods and rows. */
static int add_bins(const rows *r, frg_context *ctx, frg_table *t, char *formula, double cells[][2])
{
    int n = 0;
    for (int64_t e = -7; e <= 6; e++) {
        for (int64_t g = 2003; g <= 2007 && e != -1; g += 2) {
            double column[ROWS], rows_in = 0;
            for (int i = 0; i < r->n; i++) {
                column[i] = r->g[i] == g && relative_bin(r->year[i] - g) == e;
                rows_in += column[i];
            }
            if (rows_in > 0) {
                char name[16];
                snprintf(name, sizeof name, "d%d", n);
                CHECK_OK(ctx, frg_table_add_numbers(t, name, column));
                strcat(strcat(formula, n ? " + " : ""), name);
                cells[n][0] = (double)e;
                cells[n++][1] = rows_in;
            }
        }
    }
    return n;
}

/** Bins of relative periods are the fit of indicators written out, cohort by cohort; their means
 *  are by rows, and predict what was fitted. */
static void bins_of_relative_periods(void)
{
    frg_context *ctx = test_context();
    const rows r = make_rows(-1);
    frg_table *t = table_of(ctx, &r);
    frg_fe_opts o = options("cluster=unit");
    o.keep_effects = 1;
    char formula[512] = "y ~ ";
    double cells[MOST][2], fitted[ROWS], predicted[ROWS];
    const int n = add_bins(&r, ctx, t, formula, cells);
    frg_fe *plain = fit(ctx, strcat(formula, " | unit + year"), t, &o);
    frg_fe *apart =
        fit(ctx, "y ~ sunab(g, year, bin.rel=list(-7:-4, 3:6), no_agg=TRUE) | unit + year", t, &o);
    frg_fe *means = fit(ctx, "y ~ sunab(g, year, bin.rel=list(-9:-4, 3:6)) | unit + year", t, &o);
    const frg_fe_result *const a = frg_fe_get(plain), *const b = frg_fe_get(apart);
    if (CHECK(a && b) && CHECK_INT(b->n_coefficients, n)) {
        for (int i = 0; i < n; i++) {
            CHECK_NEAR(b->coefficients[i].estimate, a->coefficients[i].estimate, 1e-10);
            CHECK_NEAR(b->coefficients[i].std_error, a->coefficients[i].std_error, 1e-10);
        }
        for (int e = -7; e <= 3; e++) {
            double sum = 0, weight = 0;
            char term[32];
            for (int i = 0; i < n; i++) {
                const double share = cells[i][0] == e ? cells[i][1] : 0;
                sum += share * a->coefficients[i].estimate;
                weight += share;
            }
            snprintf(term, sizeof term, "year::%d", e);
            if (weight > 0) {
                CHECK_NEAR(find(means, term)->estimate, sum / weight, 1e-10);
            }
        }
        CHECK_OK(ctx, frg_fe_residuals(means, NULL, fitted));
        CHECK_OK(ctx, frg_fe_predict(means, t, predicted, NULL));
        for (int i = 0; i < r.n; i++) {
            CHECK_NEAR(predicted[i], fitted[i], 1e-10);
        }
    }
    CHECK(find(apart, "year::-7:cohort::2007")->std_error > 0);
    frg_fe_destroy(plain);
    frg_fe_destroy(apart);
    frg_fe_destroy(means);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void refuse(frg_context *ctx, const frg_table *t, const char *formula, const char *vcov,
                   const char *first_stage, const char *subset, const char *code)
{
    frg_fe *f = NULL;
    frg_fe_opts o = options(vcov);
    o.first_stage = first_stage;
    o.subset = subset;
    CHECK_SAYS(frg_fe_fit(&f, ctx, formula, t, &o) < 0, "%s is taken", formula);
    CHECK_TEXT(frg_error_code(ctx), code);
    CHECK(f == NULL);
}

static void refused(void)
{
    static const struct {
        const char *formula, *vcov, *first_stage, *subset, *code;
    } table[] = {
        {"y ~ sunab(word, year) | unit", "iid", NULL, NULL, "FRG-FE-065"},
        {"y ~ sunab(g, word) | unit", "iid", NULL, NULL, "FRG-FE-065"},
        {"y ~ sunab(unit, year) | unit", "iid", NULL, NULL, "FRG-FE-066"},
        {"y ~ sunab(g, year) | unit", "iid", NULL, "g == 2003", "FRG-FE-066"},
        {"y ~ sunab(g, year) | unit", "iid", NULL, "year >= 2007", "FRG-FE-066"},
        {"y ~ sunab(g, year, ref.p=-9) | unit", "iid", NULL, NULL, "FRG-FE-067"},
        {"y ~ sunab(g, year, ref.c=0) | unit", "iid", NULL, NULL, "FRG-FE-067"},
        {"y ~ sunab(g) | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year, bin=3) | unit", "iid", NULL, NULL, "FRG-FE-067"},
        {"y ~ sunab(g, year, bin.rel=list(2:3, 90)) | unit", "iid", NULL, NULL, "FRG-FE-067"},
        {"y ~ sunab(g, year, bin.rel=list(2:3, 3:4)) | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year, bin.rel=list(a=2:3)) | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year, bin.rel=x) | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year, bin.rel=list(list(1))) | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year, bin=\"bin::0\") | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year, bin=\"!bin::2\") | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year, bin.rel=0:-1) | unit", "iid", NULL, NULL, "FRG-FE-067"},
        {"y ~ sunab(g, year, bins=2) | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year, att=1) | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year):x | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year) + sunab(g, year, ref.p=-2) | unit", "iid", NULL, NULL, "FRG-FE-001"},
        {"y ~ sunab(g, year) | unit", "cr2=unit", NULL, NULL, "FRG-CORE-004"},
        {"y ~ sunab(g, year) | unit", "wild=unit,99", NULL, NULL, "FRG-CORE-004"},
        {"y ~ treat", "cluster=unit", "treat ~ 0 | unit", "g == 0", "FRG-FE-068"},
        {"y ~ treat", "cluster=unit", "year ~ 0 | unit", NULL, "FRG-FE-068"},
        {"y ~ treat", "cluster=unit", "word ~ 0 | unit", NULL, "FRG-FE-068"},
        {"y ~ treat", "cluster=unit", "treat ~ 0 | unit", "treat == 1", "FRG-FE-066"},
        {"y ~ treat", "cluster=unit", "none ~ 0 | unit", NULL, "FRG-IO-008"},
        {"y ~ treat", "cluster=unit", "treat + x ~ 0 | unit", NULL, "FRG-FE-001"},
        {"y ~ treat", "cluster=unit", "unit + year", NULL, "FRG-FE-001"},
        {"y ~ treat | unit", "cluster=unit", "treat ~ 0 | unit", NULL, "FRG-FE-001"},
        {"y ~ treat", "cluster=unit", "treat ~ 0 | unit[x]", NULL, "FRG-CORE-004"},
        {"y ~ treat", "cluster=unit", "treat ~ 0 | unit | x ~ w", NULL, "FRG-CORE-004"},
        {"y ~ treat | x ~ w", "cluster=unit", "treat ~ 0 | unit", NULL, "FRG-CORE-004"},
        {"y ~ treat", "iid", "treat ~ 0 | unit", NULL, "FRG-CORE-004"},
        {"y ~ treat", "hc3", "treat ~ 0 | unit", NULL, "FRG-CORE-004"},
        {"y ~ treat", "cluster=unit", "apart ~ 0 | unit + year", "year <= 2001", "FRG-FE-069"},
    };
    frg_context *ctx = test_context();
    const rows r = make_rows(-1);
    frg_table *t = table_of(ctx, &r);
    static const char *const words[] = {"a", "b"};
    int32_t word[ROWS];
    int64_t apart[ROWS]; /* even units are untreated in 2000 alone, odd ones in 2001 */
    for (int i = 0; i < r.n; i++) {
        word[i] = i % 2;
        apart[i] = (r.unit[i] + r.year[i]) % 2;
    }
    CHECK_OK(ctx, frg_table_add_codes(t, "word", word, words, 2));
    CHECK_OK(ctx, frg_table_add_integers(t, "apart", apart));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *const formula =
            strcmp(table[i].code, "FRG-FE-069") ? table[i].formula : "y ~ apart";
        refuse(ctx, t, formula, table[i].vcov, table[i].first_stage, table[i].subset,
               table[i].code);
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Rows without a counterfactual are left out and told of. */
static void without_counterfactual(void)
{
    frg_context *ctx = test_context();
    rows r = make_rows(-1);
    for (int i = 0; i < r.n; i++) {
        r.treat[i] |= r.unit[i] == 5; /* treated all along */
    }
    frg_table *t = table_of(ctx, &r);
    frg_fe_opts o = options("cluster=unit");
    o.first_stage = "treat ~ 0 | unit + year";
    frg_fe *f = fit(ctx, "y ~ treat", t, &o);
    CHECK(has_warned(ctx, "FRG-FE-157"));
    o.subset = "unit != 5";
    frg_fe *same = fit(ctx, "y ~ treat", t, &o);
    check_same(f, same);
    CHECK_INT(frg_fe_get(f)->n_uncompared, frg_fe_get(same)->n_subset);
    frg_fe_destroy(f);
    frg_fe_destroy(same);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** An intercept in the first stage is an effect with one level. */
static void first_stage_without_effects(void)
{
    frg_context *ctx = test_context();
    const rows r = make_rows(-1);
    frg_table *t = table_of(ctx, &r);
    const int64_t one[ROWS] = {0};
    CHECK_OK(ctx, frg_table_add_integers(t, "one", one));
    frg_fe_opts o = options("cluster=unit");
    o.first_stage = "treat ~ x + i(state)";
    frg_fe *f = fit(ctx, "y ~ treat + treat:x", t, &o);
    o.first_stage = "treat ~ x + i(state) | one";
    frg_fe *same = fit(ctx, "y ~ treat + treat:x", t, &o);
    for (int i = 0; i < 2; i++) {
        const frg_coefficient *const c = &frg_fe_get(f)->coefficients[i];
        CHECK_NEAR(c->estimate, find(same, c->term)->estimate, DENSE);
        CHECK_NEAR(c->std_error, find(same, c->term)->std_error, DENSE);
    }
    frg_fe_destroy(f);
    frg_fe_destroy(same);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static frg_status study_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const bool two = user != NULL;
    const rows r = make_rows(-1);
    frg_table *t = NULL;
    frg_fe *f = NULL;
    frg_fe_opts o = options("cluster=unit");
    o.first_stage = two ? "treat ~ x | unit + year" : NULL;
    frg_status status = frg_table_create(&t, ctx, r.n);
    status = status < 0 ? status : frg_table_add_numbers(t, "y", r.y);
    status = status < 0 ? status : frg_table_add_numbers(t, "x", r.x);
    status = status < 0 ? status : frg_table_add_integers(t, "unit", r.unit);
    status = status < 0 ? status : frg_table_add_integers(t, "year", r.year);
    status = status < 0 ? status : frg_table_add_integers(t, "treat", r.treat);
    status = status < 0 ? status : frg_table_add_integers(t, "g", r.g);
    if (status >= 0) {
        status = frg_fe_fit(&f, ctx,
                            two ? "y ~ treat"
                                : "y ~ sunab(g, year, bin.rel=list(2:6, -7:-4)) | unit + year",
                            t, &o);
    }
    if (status >= 0) {
        fault_hash(hash, &frg_fe_get(f)->coefficients[0].estimate, 6 * sizeof(double));
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return status;
}

/** What of the run's warnings has the code and the text. */
static bool warned(const frg_context *ctx, const char *code, const char *text)
{
    bool said = false;
    for (int i = 0; i < frg_warning_count(ctx); i++) {
        said |= strcmp(frg_warning_code(ctx, i), code) == 0 &&
                strstr(frg_warning_message(ctx, i), text) != NULL;
    }
    return said;
}

/** A cohort without a row at the reference is named; one that has the reference is not. */
static void cohort_without_reference(void)
{
    static const struct {
        const char *formula;
        bool says;
    } table[] = {{"y ~ sunab(g, year) | unit + year", true},
                 {"y ~ sunab(g, year, ref.p=-2) | unit + year", false},
                 {"y ~ sunab(g, year, ref.c=2005) | unit + year", false}};
    frg_context *const ctx = test_context();
    rows r = make_rows(-1);
    int n = 0;
    for (int i = 0; i < r.n; i++) { /* the cohort 2005 without 2004 */
        if (r.g[i] != 2005 || r.year[i] != 2004) {
            r.unit[n] = r.unit[i];
            r.year[n] = r.year[i];
            r.g[n] = r.g[i];
            r.y[n++] = r.y[i];
        }
    }
    r.n = n;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        frg_table *const t = table_of(ctx, &r);
        const frg_fe_opts o = options("iid");
        frg_fe *f = NULL;
        frg_warnings_clear(ctx);
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, table[k].formula, t, &o));
        CHECK(warned(ctx, "FRG-FE-160", "cohort 2005 ") == table[k].says);
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** Dummies of the years make the scores of each year add up to 0: there is no variance between
 *  years, and what rounding leaves of it is no error. */
static void scores_that_vanish(void)
{
    static const char *const vcovs[] = {"cluster=year", "dk=year", "dk=year,2"};
    frg_context *const ctx = test_context();
    const rows r = make_rows(-1);
    frg_table *const t = table_of(ctx, &r);
    for (size_t k = 0; k < sizeof vcovs / sizeof *vcovs; k++) {
        const frg_fe_opts o = options(vcovs[k]);
        frg_fe *f = NULL;
        frg_warnings_clear(ctx);
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ i(year)", t, &o));
        for (int j = 0; f && j < frg_fe_get(f)->n_coefficients; j++) {
            CHECK(isnan(frg_fe_get(f)->coefficients[j].std_error));
            CHECK(isnan(frg_fe_get(f)->coefficients[j].p_value));
        }
        CHECK(warned(ctx, "FRG-FE-103", vcovs[k]));
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static void memory(void)
{
    int two = 1;
    CHECK(fault_sweep("means", study_body, NULL, 1) > 50);
    CHECK(fault_sweep("two stages", study_body, &two, 1) > 50);
}

static const test_case cases[] = {
    {"means of pyfixest", means_of_pyfixest},
    {"two stages of pyfixest", two_stages_of_pyfixest},
    {"means by the dense way", means_by_the_dense_way},
    {"two stages by the dense way", two_stages_by_the_dense_way},
    {"rows compared", rows_compared},
    {"terms shown", terms_shown},
    {"bins of the calendar", bins_of_the_calendar},
    {"bins of relative periods", bins_of_relative_periods},
    {"without counterfactual", without_counterfactual},
    {"first stage without effects", first_stage_without_effects},
    {"refused", refused},
    {"cohort without reference", cohort_without_reference},
    {"scores that vanish", scores_that_vanish},
    {"memory", memory},
};

TEST_MAIN(cases)
