/* test_vcov.c - covariances by their definition, the small-sample rules by their counts, specs by
 * their errors. */
#include "fourge/fe.h"
#include "linalg/small.h"
#include "test.h"

/* ---- help ------------------------------------------------------------------------------------ */

static frg_fe_opts options(const char *vcov)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = vcov;
    return o;
}

static frg_table *integers_and_numbers(frg_context *ctx, int64_t n, int n_int,
                                       const char *const int_names[], const int64_t *const ints[],
                                       int n_num, const char *const num_names[],
                                       const double *const nums[])
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, n));
    for (int i = 0; i < n_int; i++)
        CHECK_OK(ctx, frg_table_add_integers(t, int_names[i], ints[i]));
    for (int i = 0; i < n_num; i++)
        CHECK_OK(ctx, frg_table_add_numbers(t, num_names[i], nums[i]));
    return t;
}

/** fixest's own example: 20 rows, fe1 with 3 levels of 4, 3, 3 rows twice, fe2 with 5 levels of 2
 *  rows twice. */
static frg_table *twenty(frg_context *ctx)
{
    int64_t fe1[20], fe2[20];
    double y[20], x[20];
    for (int i = 0; i < 20; i++) {
        const int h = i % 10;
        fe1[i] = h < 4 ? 1 : h < 7 ? 2 : 3;
        fe2[i] = h / 2;
        x[i] = test_normal();
        y[i] = x[i] + test_normal();
    }
    return integers_and_numbers(ctx, 20, 2, (const char *const[]){"fe1", "fe2"},
                                (const int64_t *const[]){fe1, fe2}, 2,
                                (const char *const[]){"y", "x"}, (const double *const[]){y, x});
}

/* ---- K --------------------------------------------------------------------------------------- */

/** The counts of fixest's test suite: 6 nested, 1 none, 8 full, 7 full with the exact rank; 2 with
 *  both. */
static void counts(void)
{
    static const struct {
        const char *vcov, *ssc;
        frg_fe_dof dof;
        int64_t k;
    } table[] = {
        {"cluster=fe1", NULL, FRG_DOF_NAIVE, 6},
        {"cluster=fe1", "fixef=nested", FRG_DOF_NAIVE, 6},
        {"cluster=fe1", "fixef=none", FRG_DOF_NAIVE, 1},
        {"cluster=fe1", "K.fixef=full", FRG_DOF_NAIVE, 8},
        {"cluster=fe1", "fixef.K=full", FRG_DOF_EXACT, 7},
        {"cluster=fe1", "fixef=full", FRG_DOF_AUTO, 7},
        {"cluster=fe1", NULL, FRG_DOF_EXACT,
         6}, /* fe2 alone has 5 levels: its rank needs no pair */
        {"cluster=fe1+fe2", NULL, FRG_DOF_NAIVE, 2},
        {"cluster=fe1+fe2", NULL, FRG_DOF_EXACT, 2},
        {"iid", NULL, FRG_DOF_NAIVE, 8},
        {"iid", NULL, FRG_DOF_EXACT, 7},
        {"hc1", "fixef=none", FRG_DOF_EXACT, 1},
    };
    frg_context *const ctx = test_context();
    frg_table *const data = twenty(ctx);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_fe_opts o = options(table[i].vcov);
        frg_fe *f;
        o.ssc = table[i].ssc;
        o.demean.dof = table[i].dof;
        if (!CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | fe1 + fe2", data, &o)))
            continue;
        const frg_fe_vcov *const v = &frg_fe_get(f)->vcov[0];
        CHECK_SAYS(v->k == table[i].k, "%s %s dof %d: K = %d, expected %d", table[i].vcov,
                   table[i].ssc ? table[i].ssc : "", (int)table[i].dof, (int)v->k, (int)table[i].k);
        frg_fe_destroy(f);
    }
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/** A joint effect and an effect that is coarser data are nested without being listed; three effects
 *  of which one is nested count the rank of the other two. */
static void nesting(void)
{
    enum { N = 240 };
    int64_t firm[N], region[N], year[N];
    double y[N], x[N], z[N];
    for (int i = 0; i < N; i++) {
        firm[i] = i / 6;
        region[i] = firm[i] / 8;
        year[i] = i % 6;
        x[i] = test_normal();
        z[i] = test_normal();
        y[i] = x[i] + test_normal();
    }
    frg_context *const ctx = test_context();
    frg_table *const data = integers_and_numbers(
        ctx, N, 3, (const char *const[]){"firm", "region", "year"},
        (const int64_t *const[]){firm, region, year}, 3, (const char *const[]){"y", "x", "z"},
        (const double *const[]){y, x, z});
    static const struct {
        const char *formula, *vcov;
        int64_t k;
    } table[] = {
        {"y ~ x | firm + year", "cluster=firm", 1 + 6},
        {"y ~ x | firm + year", "cluster=region", 1 + 6},     /* found by looking */
        {"y ~ x | firm", "cluster=region", 2},                /* all nested: the constant is left */
        {"y ~ x | region + year", "cluster=firm", 1 + 5 + 5}, /* regions are coarser, not nested */
        {"y ~ x | firm^year + region", "cluster=firm", 1 + 5},  /* a^b with a listed */
        {"y ~ x | region^year + firm", "cluster=firm", 1 + 30}, /* region^year is not */
        {"y ~ x | firm + region^year", "cluster=firm+year",
         2}, /* year holds region^year, firm itself */
        {"y ~ x | firm + region + year", "cluster=firm", 1 + 5 + 5},
        {"y ~ x | region + year", "cluster=region^year", 1 + 5 + 5}, /* a is not in a^b */
        {"y ~ x | year[z] + firm", "cluster=firm", 1 + 6 + 6},       /* the years' slopes count */
        {"y ~ x | firm + year", "cluster=region^year", 1 + 45},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_fe_opts o = options(table[i].vcov);
        o.demean.dof = FRG_DOF_EXACT;
        o.keep_singletons = 1;
        o.ssc = "adj=false"; /* firm^year saturates the model: only K is looked at */
        frg_fe *f = NULL;
        const frg_status status = frg_fe_fit(&f, ctx, table[i].formula, data, &o);
        if (strstr(table[i].formula,
                   "firm^year")) { /* every row its own level: nothing is left of x */
            CHECK_INT(status, FRG_BAD_DATA);
            CHECK_TEXT(frg_error_code(ctx), "FRG-FE-006");
            continue;
        }
        if (!CHECK_OK(ctx, status))
            continue;
        CHECK_SAYS(frg_fe_get(f)->vcov[0].k == table[i].k, "%s, %s: K = %d, expected %d",
                   table[i].formula, table[i].vcov, (int)frg_fe_get(f)->vcov[0].k, (int)table[i].k);
        frg_fe_destroy(f);
    }
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/* ---- definitions ----------------------------------------------------------------------------- */

enum { ROWS = 200, K = 3 };

typedef struct {
    double y[ROWS], x[ROWS], z[ROWS], w[ROWS];
    int64_t a[ROWS], b[ROWS], c[ROWS], d[ROWS];
    frg_table *table;
} sample;

static void draw(sample *s, frg_context *ctx)
{
    for (int i = 0; i < ROWS; i++) {
        s->a[i] = test_below(12);
        s->b[i] = test_below(9);
        s->c[i] = test_below(7);
        s->d[i] = test_below(5);
        s->x[i] = test_normal() + (double)s->a[i];
        s->z[i] = test_normal();
        s->w[i] = (double)(1 + test_below(4));
        s->y[i] = s->x[i] - s->z[i] + (1 + (double)s->b[i]) * test_normal();
    }
    s->table = integers_and_numbers(ctx, ROWS, 4, (const char *const[]){"a", "b", "c", "d"},
                                    (const int64_t *const[]){s->a, s->b, s->c, s->d}, 4,
                                    (const char *const[]){"y", "x", "z", "w"},
                                    (const double *const[]){s->y, s->x, s->z, s->w});
}

/** The regression on [1, x, z] in long double: (X'WX)^-1 by Cramer's adjugate, residuals. */
static void dense(const sample *s, const double *w, long double inverse[K][K], long double e[ROWS])
{
    long double g[K][K] = {{0}}, h[K] = {0}, b[K];
    for (int i = 0; i < ROWS; i++) {
        const long double row[K] = {1, s->x[i], s->z[i]};
        for (int p = 0; p < K; p++) {
            h[p] += w[i] * row[p] * s->y[i];
            for (int q = 0; q < K; q++)
                g[p][q] += w[i] * row[p] * row[q];
        }
    }
    const long double det = g[0][0] * (g[1][1] * g[2][2] - g[1][2] * g[2][1]) -
                            g[0][1] * (g[1][0] * g[2][2] - g[1][2] * g[2][0]) +
                            g[0][2] * (g[1][0] * g[2][1] - g[1][1] * g[2][0]);
    for (int p = 0; p < K; p++)
        for (int q = 0; q < K; q++) {
            const int p1 = (p + 1) % K, p2 = (p + 2) % K, q1 = (q + 1) % K, q2 = (q + 2) % K;
            inverse[q][p] = (g[p1][q1] * g[p2][q2] - g[p1][q2] * g[p2][q1]) / det;
        }
    for (int p = 0; p < K; p++) {
        b[p] = 0;
        for (int q = 0; q < K; q++)
            b[p] += inverse[p][q] * h[q];
    }
    for (int i = 0; i < ROWS; i++)
        e[i] = s->y[i] - b[0] - b[1] * s->x[i] - b[2] * s->z[i];
}

/** v += factor * B (sum over groups of score sums squared) B; groups are the rows that agree in
 *  `keys`. */
static void add_clusters(const sample *s, const double *w, int n_keys, const int64_t *const keys[],
                         long double factor, long double v[K][K])
{
    long double bread[K][K], e[ROWS], meat[K][K] = {{0}};
    dense(s, w, bread, e);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++) {
            bool same = true;
            for (int k = 0; k < n_keys; k++)
                same &= keys[k][i] == keys[k][j];
            const long double ri[K] = {1, s->x[i], s->z[i]}, rj[K] = {1, s->x[j], s->z[j]};
            for (int p = 0; p < K && same; p++)
                for (int q = 0; q < K; q++)
                    meat[p][q] += w[i] * e[i] * ri[p] * w[j] * e[j] * rj[q];
        }
    for (int p = 0; p < K; p++)
        for (int q = 0; q < K; q++)
            for (int r = 0; r < K; r++)
                for (int t = 0; t < K; t++)
                    v[p][q] += factor * bread[p][r] * meat[r][t] * bread[t][q];
}

static int64_t count_groups(int n_keys, const int64_t *const keys[])
{
    int64_t count = 0;
    for (int i = 0; i < ROWS; i++) {
        bool first = true;
        for (int j = 0; j < i && first; j++) {
            bool same = true;
            for (int k = 0; k < n_keys; k++)
                same &= keys[k][i] == keys[k][j];
            first = !same;
        }
        count += first;
    }
    return count;
}

/** gross: the sum of the terms' absolute variances, which is what rounding is relative to; `want`
 *  where there is one term. */
static void check_matrix(const frg_fe_vcov *v, long double want[K][K], long double gross[K][K],
                         const char *what)
{
    for (int p = 0; p < K; p++)
        for (int q = 0; q < K; q++) {
            /* condition of X'X below 1e4, so 1e-11 of the scale is generous and still tells every
             * factor */
            const double scale = sqrt(fabs((double)(gross[p][p] * gross[q][q])));
            const double error = fabs(v->matrix[p * K + q] - (double)want[p][q]);
            CHECK_SAYS(error <= 1e-11 * scale, "%s (%d, %d): %.17g, expected %.17Lg", what, p, q,
                       v->matrix[p * K + q], want[p][q]);
        }
}

/** 1 to 4 ways, both counts of the clusters, against the double sum over pairs of rows; of one
 *  sample in four or so a covariance has negative eigenvalues and no negative variance. */
static void multiway_sample(void)
{
    static const char *const specs[] = {"cluster=a", "cluster=a+b", "cluster=a+b+c",
                                        "cluster=a+b+c+d"};
    frg_context *const ctx = test_context();
    sample s;
    draw(&s, ctx);
    double ones[ROWS];
    for (int i = 0; i < ROWS; i++)
        ones[i] = 1;
    const int64_t *const all[] = {s.a, s.b, s.c, s.d};
    for (int ways = 1; ways <= 4; ways++)
        for (int conventional = 0; conventional < 2; conventional++) {
            long double want[K][K] = {{0}}, gross[K][K] = {{0}};
            int64_t least = ROWS;
            for (int k = 0; k < ways; k++) {
                const int64_t g = count_groups(1, &all[k]);
                least = g < least ? g : least;
            }
            for (unsigned subset = 1; subset < 1u << ways; subset++) {
                const int64_t *keys[4];
                int n = 0;
                for (int k = 0; k < ways; k++)
                    if (subset >> k & 1)
                        keys[n++] = all[k];
                const long double g =
                    conventional ? (long double)count_groups(n, keys) : (long double)least;
                const long double factor = g / (g - 1) * (ROWS - 1.0L) / (ROWS - K);
                add_clusters(&s, ones, n, keys, n % 2 ? factor : -factor, want);
                add_clusters(&s, ones, n, keys, factor, gross);
            }
            frg_fe_opts o = options(specs[ways - 1]);
            o.ssc = conventional ? "G.df=conventional, t.df = conventional" : NULL;
            frg_fe *f;
            if (!CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x + z", s.table, &o)))
                continue;
            const frg_fe_vcov *const v = &frg_fe_get(f)->vcov[0];
            bool negative =
                false; /* eigenvalues alone do not count: fixest leaves such a matrix as it is */
            for (int k = 0; k < K; k++)
                negative |= want[k][k] < 0;
            CHECK_INT(v->projected, negative);
            for (int k = 0; k < K;
                 k++) { /* none where the formula has none, and none smaller than its own */
                const double error = v->coefficients[k].std_error;
                CHECK(want[k][k] < 0 ? isnan(error)
                                     : error * error >= (double)want[k][k] * (1 - 1e-9));
            }
            if (!negative)
                check_matrix(v, want, gross, specs[ways - 1]);
            CHECK_INT(v->df_t, conventional ? ROWS - K : least - 1);
            CHECK_INT(v->n_clusters, ways);
            frg_fe_destroy(f);
        }
    frg_table_destroy(s.table);
    frg_context_destroy(ctx);
}

static void multiway(void)
{
    for (int i = 0; i < test_size(8, 1); i++)
        multiway_sample();
}

static void single_rules(void)
{
    frg_context *const ctx = test_context();
    sample s;
    draw(&s, ctx);
    static const struct {
        const char *vcov, *ssc;
        int weighted;
        long double factor;
    } table[] = {
        {"iid", NULL, 0, 1.0L / (ROWS - K)},
        {"iid", "adj=false", 0, 1.0L / (ROWS - 1)},
        {"iid", NULL, 1, 1.0L / (ROWS - K)},
        {"hc1", NULL, 0, (long double)ROWS / (ROWS - K)},
        {"hc1", "K.adj=FALSE", 0, ROWS / (ROWS - 1.0L)}, /* fixest's rule; pyfixest has 1 here */
        {"hc1", "G.adj=FALSE", 0, (ROWS - 1.0L) / (ROWS - K)},
        {"hc1", "adj=false,cluster.adj=false", 1, 1},
        {"hetero", NULL, 1, (long double)ROWS / (ROWS - K)},
        {"cluster=a", "adj=false,cluster.adj=false", 1, 1},
        {"cluster=a", "cluster.adj=false", 0, (ROWS - 1.0L) / (ROWS - K)},
    };
    int64_t row[ROWS];
    double ones[ROWS];
    for (int i = 0; i < ROWS; i++) {
        row[i] = i;
        ones[i] = 1;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const double *const w = table[i].weighted ? s.w : ones;
        long double want[K][K] = {{0}}, bread[K][K], e[ROWS], rss = 0;
        dense(&s, w, bread, e);
        for (int r = 0; r < ROWS; r++)
            rss += w[r] * e[r] * e[r];
        if (table[i].vcov[0] == 'i') {
            for (int p = 0; p < K; p++)
                for (int q = 0; q < K; q++)
                    want[p][q] = table[i].factor * rss * bread[p][q];
        } else {
            const int64_t *const keys[] = {table[i].vcov[0] == 'h' ? row : s.a};
            add_clusters(&s, w, 1, keys, table[i].factor, want);
        }
        frg_fe_opts o = options(table[i].vcov);
        o.ssc = table[i].ssc;
        o.weights = table[i].weighted ? "w" : NULL;
        frg_fe *f;
        if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x + z", s.table, &o)))
            check_matrix(&frg_fe_get(f)->vcov[0], want, want, table[i].vcov);
        frg_fe_destroy(f);
    }
    frg_table_destroy(s.table);
    frg_context_destroy(ctx);
}

/** Sampling weights: the estimates of analytic weights, the errors of hc1, whatever was asked. */
static void probability_weights(void)
{
    frg_context *const ctx = test_context();
    sample s;
    draw(&s, ctx);
    frg_fe_opts o = options("hc1");
    frg_fe *analytic = NULL, *sampling = NULL;
    o.weights = "w";
    CHECK_OK(ctx, frg_fe_fit(&analytic, ctx, "y ~ x + z | a", s.table, &o));
    o.weights_kind = FRG_WEIGHTS_PROBABILITY;
    o.vcov[0] = "iid";
    CHECK_OK(ctx, frg_fe_fit(&sampling, ctx, "y ~ x + z | a", s.table, &o));
    if (CHECK(analytic && sampling)) {
        const frg_fe_vcov *const v = &frg_fe_get(sampling)->vcov[0];
        CHECK_TEXT(v->type, "hc1");
        CHECK_TEXT(v->spec, "iid");
        CHECK_BITS(v->matrix, frg_fe_get(analytic)->vcov[0].matrix, 4 * sizeof(double));
    }
    frg_fe_destroy(analytic);
    frg_fe_destroy(sampling);
    frg_table_destroy(s.table);
    frg_context_destroy(ctx);
}

/** What is asked for later is what would have been asked for at once. */
static void added_later(void)
{
    frg_context *const ctx = test_context();
    sample s;
    draw(&s, ctx);
    static const char *const specs[] = {"hc1", "cluster=a", "cluster=a+b", "cluster=c^d", "iid"};
    frg_fe_opts o = options("iid");
    for (int i = 0; i < 5; i++)
        o.vcov[i] = specs[i];
    o.n_vcov = 5;
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x + z | b", s.table, &o))) {
        const frg_fe_result *const r = frg_fe_get(f);
        CHECK_INT(r->n_vcov, 5);
        CHECK(r->coefficients == r->vcov[0].coefficients);
        bool seen[7 * 5] = {false};
        int cells = 0; /* a draw may leave one of the 35 out; singletons of b there are none */
        for (int i = 0; i < ROWS; i++) {
            bool *const cell = &seen[s.c[i] * 5 + s.d[i]];
            cells += !*cell;
            *cell = true;
        }
        CHECK_INT(r->n, ROWS);
        CHECK_INT(r->vcov[3].cluster_count[0], cells);
        for (int i = 0; i < 5; i++) {
            const frg_fe_vcov *v = NULL;
            if (!CHECK_OK(ctx, frg_fe_vcov_add(f, specs[i], NULL, &v)))
                continue;
            CHECK_BITS(v->matrix, r->vcov[i].matrix, 4 * sizeof(double));
            CHECK_BITS(&v->coefficients[1].std_error, &r->vcov[i].coefficients[1].std_error,
                       5 * sizeof(double));
            CHECK_TEXT(v->ssc, "adj=true,fixef=nonnested,cluster.adj=true,cluster.df=min,t.df=min");
            CHECK_TEXT(v->spec, specs[i]);
        }
        const frg_fe_vcov *v = NULL;
        CHECK_OK(ctx, frg_fe_vcov_add(f, "cluster=a", "fixef=none", &v));
        CHECK_INT(v->k, 2);
        CHECK_TEXT(v->ssc, "adj=true,fixef=none,cluster.adj=true,cluster.df=min,t.df=min");
    }
    frg_fe_destroy(f);
    frg_table_destroy(s.table);
    frg_context_destroy(ctx);
}

/** One restriction is a t test, all slopes are wald_f, and what restrictions are called does not
 *  matter. */
static void joint_tests(void)
{
    frg_context *const ctx = test_context();
    sample s;
    draw(&s, ctx);
    frg_fe_opts o = options("cluster=a");
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x + z | b", s.table, &o))) {
        const frg_fe_vcov *const v = &frg_fe_get(f)->vcov[0];
        const double t = v->coefficients[1].statistic, both[] = {1, 0, 0, 1},
                     mixed[] = {2, 3, -1e6, 5e6}, q[] = {0.25, -1e6},
                     same[] = {v->coefficients[0].estimate};
        frg_fe_test one, all, other, zero;
        CHECK_OK(ctx, frg_fe_wald(f, v, (double[]){0, -7}, NULL, 1, &one));
        CHECK_NEAR(one.f, t * t, 1e-13 * fabs(t * t));
        CHECK_NEAR(one.wald, t * t, 1e-13 * fabs(t * t));
        CHECK_NEAR(one.p_f, v->coefficients[1].p_value, 1e-10 * fabs(v->coefficients[1].p_value));
        CHECK_NEAR(one.p_chi2, erfc(fabs(t) / sqrt(2)), 1e-10 * fabs(erfc(fabs(t) / sqrt(2))));
        CHECK_INT(one.df1, 1);
        CHECK_BITS(&one.df2, &v->df_t, sizeof(double));
        CHECK_OK(ctx, frg_fe_wald(f, v, both, NULL, 2, &all));
        CHECK_NEAR(all.f, v->wald_f, 1e-12 * fabs(v->wald_f));
        CHECK_OK(ctx, frg_fe_wald(f, v, mixed, NULL, 2, &other));
        CHECK_NEAR(other.f, all.f, 1e-10 * fabs(all.f));
        CHECK_OK(ctx, frg_fe_wald(f, v, (double[]){1, 0}, same, 1, &zero));
        CHECK(zero.f <= 1e-28 && zero.p_f >= 1 - 1e-13);

        const double twice[] = {1, 2, 3, 6}, none[] = {0, 0}, bad[] = {(double)NAN, 0};
        const frg_fe_test kept = one;
        CHECK_STATUS(frg_fe_wald(f, v, twice, NULL, 2, &one), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_wald(f, v, none, NULL, 1, &one), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_wald(f, v, bad, NULL, 1, &one), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_wald(f, v, both, bad, 1, &one), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_wald(f, v, both, q, 0, &one), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_wald(f, v, both, q, 3, &one), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_wald(f, NULL, both, q, 1, &one), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_wald(f, v, NULL, q, 1, &one), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_wald(NULL, v, both, q, 1, &one), FRG_BAD_ARG);
        CHECK_BITS(&one, &kept, sizeof kept);
    }
    frg_fe_destroy(f);
    frg_table_destroy(s.table);
    frg_context_destroy(ctx);
}

/* ---- negative eigenvalues -------------------------------------------------------------------- */

/** Two clusters a variable and opposite errors: the joint clusters take more away than the single
 *  ones give. */
static void projection(void)
{
    enum { N = 16 };
    int64_t a[N], b[N];
    double y[N], x[N];
    for (int i = 0; i < N; i++) {
        a[i] = i / 4;
        b[i] = i % 4;
        x[i] = i < 8 ? 1 : -1;
        y[i] = ((i / 4 + i) % 2 ? 1 : -1) * (1 + 0.01 * i);
    }
    frg_context *const ctx = test_context();
    frg_table *const data = integers_and_numbers(
        ctx, N, 2, (const char *const[]){"a", "b"}, (const int64_t *const[]){a, b}, 2,
        (const char *const[]){"y", "x"}, (const double *const[]){y, x});
    frg_fe_opts o = options("cluster=a+b");
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x", data, &o))) {
        const frg_fe_vcov *const v = &frg_fe_get(f)->vcov[0];
        CHECK(v->projected);
        CHECK(v->matrix[0] >= 0 && v->matrix[3] >= 0);
        CHECK(v->matrix[0] * v->matrix[3] - v->matrix[1] * v->matrix[1] >=
              -1e-15 * v->matrix[0] * v->matrix[3]);
        CHECK(isnan(v->coefficients[1].std_error)); /* not 1e-13 with a p-value of 1e-39 */
        CHECK(isnan(v->wald_f));
        CHECK(frg_warning_count(ctx) == 1);
        CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-FE-103");
    }
    frg_fe_destroy(f);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/** A repaired covariance has directions of variance 0, by the repair alone: it has no joint test,
 *  nor one of a coefficient whose variance is positive. */
static void projection_and_tests(void)
{
    enum { N = 18, DRAWS = 40 };
    frg_context *const ctx = test_context();
    const frg_fe_opts o = options("cluster=a+b");
    int projected = 0, sound = 0;
    for (int d = 0; d < DRAWS; d++) {
        int64_t a[N], b[N];
        double y[N], x[N], z[N];
        for (int i = 0; i < N; i++) {
            a[i] = i % 3;
            b[i] = i / 3 % 3;
            y[i] = test_normal();
            x[i] = test_normal();
            z[i] = test_normal();
        }
        frg_table *const data = integers_and_numbers(
            ctx, N, 2, (const char *const[]){"a", "b"}, (const int64_t *const[]){a, b}, 3,
            (const char *const[]){"y", "x", "z"}, (const double *const[]){y, x, z});
        frg_fe *f = NULL;
        if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x + z", data, &o))) {
            const frg_fe_vcov *const v = &frg_fe_get(f)->vcov[0];
            frg_fe_test test;
            const frg_status status = frg_fe_wald(f, v, (double[]){0, 1, 0}, NULL, 1, &test);
            if (v->matrix[4] > 0)
                CHECK_STATUS(status, v->projected ? FRG_BAD_ARG : FRG_OK);
            int unknown = 0;
            for (int j = 0; j < 3; j++) {
                const frg_coefficient *const c = &v->coefficients[j];
                unknown += isnan(c->std_error);
                CHECK((isnan(c->std_error) != 0) == (isnan(c->p_value) != 0) &&
                      (isnan(c->std_error) != 0) == (isnan(c->conf_low) != 0));
            }
            CHECK((unknown > 0) == (v->projected != 0));
            projected += v->projected && v->matrix[4] > 0;
            sound += !v->projected;
        }
        frg_fe_destroy(f);
        frg_table_destroy(data);
    }
    CHECK_SAYS(projected > 0 && sound > 0, "%d projected, %d not", projected, sound);
    frg_context_destroy(ctx);
}

/* ---- eigenvalues ----------------------------------------------------------------------------- */

/** A = V' diag(values) V to rounding, V orthogonal. */
static void eigenvalues(void)
{
    enum { MOST = 12 };
    for (int k = 1; k <= MOST; k++) {
        double x[2 * MOST * MOST], a[MOST * MOST], copy[MOST * MOST], values[MOST], v[MOST * MOST];
        for (int i = 0; i < 2 * k * k; i++)
            x[i] = test_normal();
        for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++) {
                a[i * k + j] = 0;
                for (int r = 0; r < 2 * k; r++)
                    a[i * k + j] += x[r * k + i] * x[r * k + j];
            }
        for (int i = 0; i < k; i++) /* unit diagonal */
            for (int j = 0; j < k; j++)
                copy[i * k + j] = a[i * k + j] / sqrt(a[i * k + i] * a[j * k + j]);
        memcpy(a, copy, sizeof a);
        frgi_eigen(k, copy, values, v);
        for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++) {
                double back = 0, unit = 0;
                for (int l = 0; l < k; l++) {
                    back += values[l] * v[l * k + i] * v[l * k + j];
                    unit += v[i * k + l] * v[j * k + l];
                }
                CHECK_NEAR(back, a[i * k + j], 1e-13); /* k eps of the norm, which is at most k */
                CHECK_NEAR(unit, i == j, 1e-13);
            }
    }
}

/* ---- specs ----------------------------------------------------------------------------------- */

static void wrong_specs(void)
{
    static const struct {
        const char *vcov, *ssc;
        frg_status status;
        const char *code, *says;
    } table[] = {
        {"hc4", NULL, FRG_BAD_ARG, "FRG-FE-009", "hc4"},
        {"", NULL, FRG_BAD_ARG, "FRG-FE-009", "there are iid, hc1, hc2"},
        {"iid=a", NULL, FRG_BAD_ARG, "FRG-FE-009", "iid takes no variable"},
        {"iid,a", NULL, FRG_BAD_ARG, "FRG-FE-009", "'a' is not known; nothing else belongs to iid"},
        {"nw", NULL, FRG_BAD_ARG, "FRG-FE-009", "nw takes 2 variables"},
        {"nw=a", NULL, FRG_BAD_ARG, "FRG-FE-009", "nw takes 2 variables: nw=unit,time[,lag]"},
        {"nw=a,b", NULL, FRG_BAD_DATA, "FRG-FE-030", "are of the same a and b"},
        {"nw=a,b,x", NULL, FRG_BAD_ARG, "FRG-FE-009", "lag is a whole number from 0"},
        {"nw=a,b,1.5", NULL, FRG_BAD_ARG, "FRG-FE-009", "not '1.5'"},
        {"nw=a,b,-1", NULL, FRG_BAD_ARG, "FRG-FE-009", "not '-1'"},
        {"dk=a,2,lag=3", NULL, FRG_BAD_ARG, "FRG-FE-009", "lag is given twice"},
        {"dk=one", NULL, FRG_BAD_DATA, "FRG-FE-008", "single period"},
        {"dk=a^b", NULL, FRG_BAD_ARG, "FRG-FE-009", "'a^b' is joint"},
        {"dk=", NULL, FRG_BAD_ARG, "FRG-FE-009", "dk takes 1 variable: dk=time[,lag]"},
        {"conley=a,b", NULL, FRG_BAD_ARG, "FRG-FE-009", "the cutoff is missing: conley=lat"},
        {"conley=a,b,0", NULL, FRG_BAD_ARG, "FRG-FE-009", "cutoff is a number from 1e-06"},
        {"conley=far,b,10", NULL, FRG_BAD_DATA, "FRG-FE-032", "the latitude 'far' is 91 in row 1"},
        {"conley=b,far,10,kernel=flat", NULL, FRG_BAD_ARG, "FRG-FE-009",
         "kernel is uniform or bartlett, not 'flat'"},
        {"hc3,draws=100", NULL, FRG_BAD_ARG, "FRG-FE-009", "draws= goes with leverage=approx"},
        {"hc2,leverage=some", NULL, FRG_BAD_ARG, "FRG-FE-009", "leverage is exact or approx"},
        {"jackknife=one", NULL, FRG_BAD_DATA, "FRG-FE-008", "single cluster"},
        {"jackknife=a+b", NULL, FRG_BAD_ARG, "FRG-FE-001", "vcov"},
        {"wild=a,weights=normal", NULL, FRG_BAD_ARG, "FRG-FE-009",
         "rademacher, webb or mammen, not 'normal'"},
        {"wild=a,5", NULL, FRG_BAD_ARG, "FRG-FE-009", "reps is a whole number from 9"},
        {"cluster=", NULL, FRG_BAD_ARG, "FRG-FE-009", "cluster takes 1 variable: cluster=a+b"},
        {"cluster=a+", NULL, FRG_BAD_ARG, "FRG-FE-001", "vcov, column 3"},
        {"cluster=aa", NULL, FRG_BAD_DATA, "FRG-IO-008",
         "'aa' is not in the data; did you mean 'a'?"},
        {"cluster=a+b+c+d+x", NULL, FRG_BAD_ARG, "FRG-FE-009", "at most 4"},
        {"cluster=log(a)", NULL, FRG_BAD_ARG, "FRG-FE-001", "expected a column"},
        {"cluster=one", NULL, FRG_BAD_DATA, "FRG-FE-008", "single cluster"},
        {"iid", "adj=maybe", FRG_BAD_ARG, "FRG-FE-010", "adj is true or false"},
        {"iid", "fixef=all", FRG_BAD_ARG, "FRG-FE-010", "none, nonnested or full"},
        {"iid", "cluster.df=max", FRG_BAD_ARG, "FRG-FE-010", "min or conventional"},
        {"iid", "t.df=true", FRG_BAD_ARG, "FRG-FE-010", "min or conventional"},
        {"iid", "adjust=true", FRG_BAD_ARG, "FRG-FE-010", "the keys are"},
        {"iid", "adj", FRG_BAD_ARG, "FRG-FE-010", "true or false"},
    };
    frg_context *const ctx = test_context();
    sample s;
    draw(&s, ctx);
    int64_t one[ROWS] = {0}, far[ROWS];
    for (int i = 0; i < ROWS; i++)
        far[i] = 91;
    CHECK_OK(ctx, frg_table_add_integers(s.table, "one", one));
    CHECK_OK(ctx, frg_table_add_integers(s.table, "far", far));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_fe_opts o = options(table[i].vcov);
        o.ssc = table[i].ssc;
        frg_fe *f = (frg_fe *)&s;
        CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ x | a", s.table, &o), table[i].status);
        CHECK(f == NULL);
        CHECK_SAYS(strcmp(frg_error_code(ctx), table[i].code) == 0 &&
                       strstr(frg_message(ctx), table[i].says),
                   "'%s' '%s': %s %s", table[i].vcov, table[i].ssc ? table[i].ssc : "",
                   frg_error_code(ctx), frg_message(ctx));
    }
    frg_table_destroy(s.table);
    frg_context_destroy(ctx);
}

/* ---- units ----------------------------------------------------------------------------------- */

/** A standard error is that of the coefficient's unit, and no weight's: powers of two in y, x, z
 *  and w change its exponent and none of its digits, as far as it is a number itself, though the
 *  squares of the scores are none. */
static void units(void)
{
    enum { N = 120 };
    static const int powers[][4] = {/* y, x, z, w */
                                    {-300, -300, 0, 0},    {300, 300, 0, 0},  {-266, 0, 0, 0},
                                    {0, 0, 0, -700},       {0, 0, 0, 700},    {0, -332, 0, -332},
                                    {0, 332, 0, 332},      {465, -465, 0, 0}, {-465, 465, 0, 0},
                                    {-400, 400, 100, 666}, {2, -3, 5, 7},     {0, 460, -460, 0}};
    static const char *const specs[] = {"iid", "hc1", "cluster=f", "cluster=f+g"};
    static const char *const formulas[] = {"y ~ x + z | f + g", "y ~ x + z", "y ~ x + z | f[u]"};
    int64_t f[N], g[N];
    double base[5][N];
    for (int i = 0; i < N; i++) {
        f[i] = test_below(12);
        g[i] = test_below(7);
        for (int c = 0; c < 5; c++)
            base[c][i] = c == 3 ? 0.5 + test_uniform() : test_normal();
        base[0][i] += base[1][i];
    }
    frg_context *const ctx = test_context();
    for (int trial = 0; trial < 2 * 3; trial++) {
        double error[4][3], columns[5][N];
        const char *const formula = formulas[trial / 2];
        const int first = trial / 2 == 1, weighted = trial % 2;
        for (int p = -1; p < (int)(sizeof powers / sizeof *powers); p++) {
            const int none[4] = {0}, *const e = p < 0 ? none : powers[p];
            for (int c = 0; c < 5; c++)
                for (int i = 0; i < N; i++)
                    columns[c][i] = ldexp(base[c][i], c < 4 ? e[c] : 0);
            frg_table *const data = integers_and_numbers(
                ctx, N, 2, (const char *const[]){"f", "g"}, (const int64_t *const[]){f, g}, 5,
                (const char *const[]){"y", "x", "z", "w", "u"},
                (const double *const[]){columns[0], columns[1], columns[2], columns[3],
                                        columns[4]});
            frg_fe_opts o = options(specs[0]);
            frg_fe *fit = NULL;
            for (int s = 0; s < 4; s++)
                o.vcov[s] = specs[s];
            o.n_vcov = 4;
            o.weights = weighted ? "w" : NULL;
            if (CHECK_OK(ctx, frg_fe_fit(&fit, ctx, formula, data, &o))) {
                const frg_fe_result *const r = frg_fe_get(fit);
                CHECK_INT(r->n_coefficients, 2 + first);
                for (int s = 0; s < 4; s++)
                    for (int j = 0; j < 2; j++) { /* the intercept has no unit of its own */
                        const frg_coefficient *const b = &r->vcov[s].coefficients[first + j];
                        const double own = ldexp(b->std_error, e[1 + j] - e[0]);
                        if (p < 0) {
                            error[s][j] = own; /* of two clusters it may be none */
                            CHECK((own > 0 && own < 10) || (s == 3 && isnan(own)));
                        } else if (isnan(error[s][j])) {
                            CHECK(isnan(own));
                        } else {
                            CHECK_SAYS(fabs(own - error[s][j]) <= 1e-12 * error[s][j],
                                       "%s, %s%s, powers %d: %.17g in place of %.17g", formula,
                                       specs[s], weighted ? " weighted" : "", p, own, error[s][j]);
                            CHECK(fabs(b->std_error * b->statistic - b->estimate) <=
                                  1e-14 * fabs(b->estimate));
                        }
                    }
            }
            frg_fe_destroy(fit);
            frg_table_destroy(data);
        }
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"units", units},
    {"counts", counts},
    {"nesting", nesting},
    {"multiway", multiway},
    {"single_rules", single_rules},
    {"probability_weights", probability_weights},
    {"added_later", added_later},
    {"joint_tests", joint_tests},
    {"projection", projection},
    {"projection and tests", projection_and_tests},
    {"eigenvalues", eigenvalues},
    {"wrong_specs", wrong_specs},
};
TEST_MAIN(cases)
