/* test_fe_corners.c - where two rules of a regression meet: what of a row, a column, a level or a
 * count only shows in data made for it. */
#include <float.h>

#include "fe/fe_verify.h"
#include "fourge/fe.h"
#include "test.h"

/* ---- help ------------------------------------------------------------------------------------ */

static frg_table *parse(frg_context *ctx, const char *csv)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_parse(&t, ctx, csv, (int64_t)strlen(csv), "memory", NULL));
    return t;
}

static frg_table *numbers(frg_context *ctx, int64_t n, int count, const char *const names[],
                          const double *const values[])
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, n));
    for (int i = 0; i < count; i++)
        CHECK_OK(ctx, frg_table_add_numbers(t, names[i], values[i]));
    return t;
}

static bool warned(const frg_context *ctx, const char *code)
{
    for (int i = 0; i < frg_warning_count(ctx); i++)
        if (strcmp(frg_warning_code(ctx, i), code) == 0)
            return true;
    return false;
}

static frg_fe_opts defaults(void)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    return o;
}

/** The fit, or NULL with a failed check. */
static frg_fe *fit(frg_context *ctx, const char *formula, const frg_table *t, const frg_fe_opts *o)
{
    frg_fe *f = NULL;
    frg_warnings_clear(ctx);
    return CHECK_OK(ctx, frg_fe_fit(&f, ctx, formula, t, o)) ? f : NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/** Slopes alone span nothing where their value is 0, so that a level of one row is no singleton,
 *  and their effect is none of the two whose connected sets are asked for. */
static void slopes_alone(void)
{
    frg_context *const ctx = test_context();
    frg_table *t =
        parse(ctx, "y,x,z,f,g,h\n1,2,1,1,1,1\n2,1,2,1,1,1\n4,3,1,2,1,2\n3,3,NA,3,1,2\n7,1,2,3,1,1\n"
                   "9,2,3,3,2,3\n8,4,1,3,2,3\n5,5,2,3,2,4\n2,6,2,3,2,4\n");
    frg_fe_opts o = defaults();
    frg_fe *f = fit(ctx, "y ~ x | f[[z]]", t, &o);
    if (f) {
        CHECK_INT(frg_fe_get(f)->n_missing, 1); /* the slope's value */
        CHECK_INT(frg_fe_get(f)->n_singleton, 0);
        CHECK_INT(frg_fe_get(f)->n, 8);
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    enum { N = 60, FIRST = 36 }; /* two sets of g and h, over which f runs */
    double v[6][N];
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 3; k++)
            v[k][i] = test_normal();
        v[3][i] = i % 5;
        v[4][i] = i < FIRST ? i % 2 : 2 + i % 2;
        v[5][i] = i < FIRST ? i % 3 : 3 + i % 3;
    }
    t = numbers(ctx, N, 6, (const char *const[]){"y", "x", "z", "f", "g", "h"},
                (const double *const[]){v[0], v[1], v[2], v[3], v[4], v[5]});
    o.connected = FRG_CONNECTED_LARGEST;
    f = fit(ctx, "y ~ x | f[[z]] + g + h", t, &o);
    if (f) {
        CHECK_INT(frg_fe_get(f)->n_groups, 2);
        CHECK_INT(frg_fe_get(f)->n_disconnected, N - FIRST);
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** A row of frequency 2 is two rows: nothing is dropped, and no round is counted. */
static void rounds_of_frequencies(void)
{
    frg_context *const ctx = test_context();
    frg_table *const t = parse(ctx, "y,x,f,w\n1,2,1,2\n2,1,2,1\n4,3,2,1\n3,3,3,1\n7,1,3,1\n");
    frg_fe_opts o = defaults();
    o.weights = "w";
    o.weights_kind = FRG_WEIGHTS_FREQUENCY;
    frg_fe *const f = fit(ctx, "y ~ x | f", t, &o);
    if (f) {
        CHECK_INT(frg_fe_get(f)->n_singleton, 0);
        CHECK_INT(frg_fe_get(f)->singleton_rounds, 0);
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- columns --------------------------------------------------------------------------------- */

/** Centring a constant leaves rounding, whose share of itself is 1: it is judged beside the mean.
 *  No constant of these is a sum of few powers of two, so that means are rounded. */
static void constants(void)
{
    enum { N = 1000 };
    static const double value[] = {0.1, 1.0 / 3, 1e8 / 7, -1e-7 / 3, 1e100 / 7};
    frg_context *const ctx = test_context();
    double y[N], x[N], k[N];
    for (size_t c = 0; c < sizeof value / sizeof *value; c++) {
        for (int i = 0; i < N; i++) {
            x[i] = test_normal();
            y[i] = x[i] + test_normal();
            k[i] = value[c];
        }
        frg_table *const t = numbers(ctx, N, 3, (const char *const[]){"y", "x", "k"},
                                     (const double *const[]){y, x, k});
        const frg_fe_opts o = defaults();
        frg_fe *const f = fit(ctx, "y ~ x + k", t, &o);
        if (f && CHECK_INT(frg_fe_get(f)->n_dropped, 1))
            CHECK_TEXT(frg_fe_get(f)->dropped[0].reason, "collinear with (Intercept)");
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** A regressor of which 1e-7 is left is absorbed (1e-6 is the limit), a dependent variable of which
 *  1e-7 is left is estimated (1e-9 is). */
static void shares_left(void)
{
    enum { N = 400 };
    frg_context *const ctx = test_context();
    double y[N], x[N], f[N];
    for (int i = 0; i < N; i++) {
        f[i] = i / 8;
        x[i] = test_normal();
        y[i] = 1e7 * f[i] / 15 + 2 * x[i]; /* levels' sd 14.4 */
    }
    frg_table *const t =
        numbers(ctx, N, 3, (const char *const[]){"y", "x", "f"}, (const double *const[]){y, x, f});
    const frg_fe_opts o = defaults();
    frg_fe *fe = fit(ctx, "y ~ x | f", t, &o);
    if (fe) /* y is rounded to 4e-9 */
        CHECK_NEAR(frg_fe_get(fe)->coefficients[0].estimate, 2, 1e-7);
    frg_fe_destroy(fe);
    fe = NULL;
    CHECK_STATUS(frg_fe_fit(&fe, ctx, "x ~ y | f", t, &o), FRG_BAD_DATA);
    CHECK_TEXT(frg_error_code(ctx), "FRG-FE-006");
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** x and x + 1e-4 e: the normal equations have a condition of 1e8 or more and lose as much, 2e-8;
 *  the refined estimates are as good as y, which is rounded: eps * 1e4 / sqrt(N), with a factor of
 *  100 to spare. */
static void refined(void)
{
    enum { N = 500 };
    frg_context *const ctx = test_context();
    double y[N], x[N], z[N];
    for (int i = 0; i < N; i++) {
        x[i] = test_normal();
        z[i] = x[i] + 1e-4 * test_normal();
        y[i] = x[i] + z[i];
    }
    frg_table *const t =
        numbers(ctx, N, 3, (const char *const[]){"y", "x", "z"}, (const double *const[]){y, x, z});
    const frg_fe_opts o = defaults();
    frg_fe *const f = fit(ctx, "y ~ x + z", t, &o);
    for (int j = 1; f && j < 3; j++)
        CHECK_NEAR(frg_fe_get(f)->coefficients[j].estimate, 1, 1e-11);
    CHECK(warned(ctx, "FRG-FE-102")); /* there is no error left */
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Ten dropped terms are named, the others counted. */
static void many_dropped(void)
{
    frg_context *const ctx = test_context();
    frg_table *const t = parse(ctx, "y,x\n1,2\n2,1\n4,3\n3,5\n7,1\n");
    const frg_fe_opts o = defaults();
    frg_fe *const f = fit(ctx,
                          "y ~ x + I(x*2) + I(x*3) + I(x*4) + I(x*5) + I(x*6) + I(x*7) + I(x*8) + "
                          "I(x*9) + I(x*10) + I(x*11) + I(x*12) + I(x*13)",
                          t, &o);
    if (f && CHECK_INT(frg_fe_get(f)->n_dropped, 12) && CHECK_INT(frg_warning_count(ctx), 1)) {
        const char *const text = frg_warning_message(ctx, 0);
        CHECK_SAYS(strstr(text, "'I(x * 11)'") && !strstr(text, "'I(x * 12)'") &&
                       strstr(text, " and 2 more"),
                   "%s", text);
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- levels ---------------------------------------------------------------------------------- */

/** -0 is the level 0; two levels of one text are told apart by a number. */
static void names_of_levels(void)
{
    enum { N = 12 };
    frg_context *const ctx = test_context();
    double y[N], k[N];
    for (int i = 0; i < N; i++) {
        y[i] = test_normal();
        k[i] = i % 4 == 0 ? -0.0 : i % 4 == 1 ? 0.0 : i % 4 == 2 ? 0.1 : nextafter(0.1, 1);
    }
    frg_table *const t =
        numbers(ctx, N, 2, (const char *const[]){"y", "k"}, (const double *const[]){y, k});
    const frg_fe_opts o = defaults();
    frg_fe *const f = fit(ctx, "y ~ i(k) - 1", t, &o);
    if (f && CHECK_INT(frg_fe_get(f)->n_coefficients, 3)) {
        CHECK_TEXT(frg_fe_get(f)->coefficients[0].term, "k::0");
        CHECK_TEXT(frg_fe_get(f)->coefficients[1].term, "k::0.1");
        CHECK_TEXT(frg_fe_get(f)->coefficients[2].term, "k::0.1#3");
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Labels that come in an order keep it: "low" is what the others are compared with, though "high"
 *  is the first in the alphabet and in the rows; "none", which no row has, is no level.  Booleans
 *  are named by their truth. */
static void order_of_levels(void)
{
    enum { N = 12 };
    frg_context *const ctx = test_context();
    static const char *const labels[] = {"none", "low", "middle", "high"};
    double y[N];
    int32_t k[N], h[N];
    for (int i = 0; i < N; i++) {
        y[i] = test_normal();
        k[i] = 3 - i % 3;
        h[i] = i % 5 == 0;
    }
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, N));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
    CHECK_OK(ctx, frg_table_add_codes(t, "k", k, labels, 4));
    CHECK_OK(ctx, frg_table_add_bools(t, "h", h));
    const frg_fe_opts o = defaults();
    frg_fe *f = fit(ctx, "y ~ i(k) + h", t, &o);
    static const char *const want[] = {"(Intercept)", "k::middle", "k::high", "hTRUE"};
    for (int i = 0; f && CHECK_INT(frg_fe_get(f)->n_coefficients, 4) && i < 4; i++)
        CHECK_TEXT(frg_fe_get(f)->coefficients[i].term, want[i]);
    frg_fe_destroy(f);
    f = fit(ctx, "y ~ k + i(h)", t, &o);
    static const char *const other[] = {"(Intercept)", "kmiddle", "khigh", "h::TRUE"};
    for (int i = 0; f && CHECK_INT(frg_fe_get(f)->n_coefficients, 4) && i < 4; i++)
        CHECK_TEXT(frg_fe_get(f)->coefficients[i].term, other[i]);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Levels by table and by hash, of whole numbers and others: 0 and -0 are one, integers beyond 2^53
 *  are as many as there are, and doubles go up to it. */
static void keys(void)
{
    enum { N = 6 };
    static const struct {
        int levels;
        double values[N];
    } doubles[] = {
        {2, {0.0, -0.0, 0.5, -0.0, 0.5, 0.0}},
        {3, {0.0, -0.0, 1, -1, 1, -0.0}},
        {3, {0.0, -0.0, 0x1p53 - 1, 1 - 0x1p53, 1 - 0x1p53, -0.0}},
        {4, {0.0, -0.0, 0x1p53 - 1, 1 - 0x1p53, 0.5, -0.0}},
    };
    static const struct {
        int levels;
        int64_t values[N];
    } integers[] = {
        {3, {0, -1, 1, 0, -1, 1}},
        {3, {0, INT64_MIN + 1, INT64_MAX, 0, INT64_MIN + 1, INT64_MAX}},
        {4,
         {(INT64_C(1) << 53) + 1, INT64_C(1) << 53, -(INT64_C(1) << 53), -(INT64_C(1) << 53) - 1,
          (INT64_C(1) << 53) + 1, -(INT64_C(1) << 53)}},
    };
    enum {
        DOUBLES = sizeof doubles / sizeof *doubles,
        INTEGERS = sizeof integers / sizeof *integers
    };
    frg_context *const ctx = test_context();
    frg_fe_opts o = defaults();
    o.keep_singletons = 1;
    for (int i = 0; i < DOUBLES + INTEGERS; i++) {
        const double y[N] = {1, 4, 2, 3, 7, 5};
        frg_table *t = NULL;
        CHECK_OK(ctx, frg_table_create(&t, ctx, N));
        CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
        CHECK_OK(ctx, i < DOUBLES ? frg_table_add_numbers(t, "k", doubles[i].values)
                                  : frg_table_add_integers(t, "k", integers[i - DOUBLES].values));
        frg_fe *const f = fit(ctx, "y ~ 1 | k", t, &o);
        if (f)
            CHECK_INT(frg_fe_get(f)->factor_levels[0],
                      i < DOUBLES ? doubles[i].levels : integers[i - DOUBLES].levels);
        frg_fe_destroy(f);
        frg_table_destroy(t);
    }
    frg_context_destroy(ctx);
}

/** Joint levels are written with '_'.  A rank that was not counted exactly is warned of; that the
 *  effects are unique is seen without it. */
static void effects(void)
{
    frg_context *const ctx = test_context();
    frg_table *const t =
        parse(ctx, "y,x,f,g,h\n1,2,1,1,1\n2,1,1,2,2\n4,3,2,1,2\n3,3,2,2,1\n7,1,1,1,2\n"
                   "9,2,1,2,1\n8,4,2,1,1\n5,5,2,2,2\n2,6,1,1,1\n3,8,2,2,2\n");
    frg_fe_opts o = defaults();
    o.keep_effects = 1;
    frg_table *table = NULL;
    frg_fe *f = fit(ctx, "y ~ x | f^g", t, &o);
    if (f && CHECK_OK(ctx, frg_fe_effects(f, &table))) {
        const frg_column *const level = frg_table_column(table, 1);
        CHECK_TEXT(level->labels[level->codes[0]], "1_1");
    }
    frg_table_destroy(table);
    frg_fe_destroy(f);
    for (int exact = 0; exact < 2; exact++) {
        o.demean.dof = exact ? FRG_DOF_EXACT : FRG_DOF_NAIVE;
        table = NULL;
        f = fit(ctx, "y ~ x | f + g + h", t, &o);
        CHECK(warned(ctx, "FRG-FE-107") == !exact);
        if (f && CHECK_OK(ctx, frg_fe_effects(f, &table)))
            CHECK_INT(frg_table_column(table, 3)->integers[0], 1);
        frg_table_destroy(table);
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Two blocks of f and g that a third factor joins, and slopes in two factors.  Planted effects
 *  whose first levels are 0, those of g in both blocks and of h's slope too, are the only ones
 *  under the normalisation: found by every method, to what a tolerance of 1e-10 leaves on graphs of
 *  a few levels. */
static void further_references(void)
{
    enum { N = 240, LEVELS = 12 };
    static const frg_fe_method methods[] = {FRG_FE_AUTO, FRG_FE_CG, FRG_FE_DIRECT, FRG_FE_LSMR};
    static const char *const formulas[] = {"y ~ x | f + g + h", "s ~ x | f[z] + h[z]"};
    frg_context *const ctx = test_context();
    int64_t codes[3][N];
    double want[4][LEVELS], x[N], y[N], z[N], s[N]; /* f, g, h, and h's slope */
    for (int k = 0; k < 4 * LEVELS; k++)
        want[k / LEVELS][k % LEVELS] = test_normal();
    want[1][0] = want[1][6] = want[2][0] = want[3][0] = 0;
    for (int i = 0; i < N; i++) { /* the first rows of each block have the first levels */
        const int block = i % 2;
        codes[0][i] = i < 2 ? 6 * block : 6 * block + test_below(6);
        codes[1][i] = i < 2 ? 6 * block : 6 * block + test_below(6);
        codes[2][i] = i < 2 ? 0 : test_below(4);
        x[i] = test_normal();
        z[i] = test_normal();
        const double *const f = want[0] + codes[0][i], *const h = want[2] + codes[2][i];
        y[i] = x[i] + *f + want[1][codes[1][i]] + *h;
        s[i] = x[i] + *f + *h + z[i] * (2 + 3 * *f + want[3][codes[2][i]]);
    }
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, N));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "s", s));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
    CHECK_OK(ctx, frg_table_add_numbers(t, "z", z));
    for (int q = 0; q < 3; q++)
        CHECK_OK(ctx, frg_table_add_integers(t, (const char *const[]){"f", "g", "h"}[q], codes[q]));
    for (int k = 0; k < 8; k++) {
        static const char *const names[] = {"f", "g", "h", "h[[z]]", "f[[z]]"};
        frg_fe_opts o = defaults();
        o.keep_effects = 1;
        o.demean.method = methods[k / 2];
        frg_table *table = NULL;
        frg_fe *const f = fit(ctx, formulas[k % 2], t, &o);
        if (f && CHECK_OK(ctx, frg_fe_effects(f, &table))) {
            const frg_column *const factor = frg_table_column(table, 0);
            const frg_column *const level = frg_table_column(table, 1);
            for (int64_t i = 0; i < factor->n; i++) {
                const char *const name = factor->labels[factor->codes[i]];
                const int l = atoi(level->labels[level->codes[i]]);
                int q = 0;
                while (q < 4 && strcmp(name, names[q]) != 0)
                    q++;
                const double truth = q < 4 ? want[q][l] : 2 + 3 * want[0][l];
                const double found = frg_table_column(table, 2)->numbers[i];
                CHECK_SAYS(fabs(found - truth) <= 1e-7, "%s, %s of %s %d: %.12g, not %.12g",
                           formulas[k % 2], frg_fe_get(f)->demean.method, name, l, found, truth);
                CHECK_INT(frg_table_column(table, 3)->integers[i], 1);
            }
        }
        frg_table_destroy(table);
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Columns that changed their kind since the fit. */
static void changed_kinds(void)
{
    static const struct {
        const char *csv, *says;
    } table[] = {
        {"x,f\nlow,1\nhigh,2\n", "'x' was a number when the model was fitted and is a category"},
        {"x,f\n1,one\n2,two\n", "column 'f' holds text here and held numbers in the estimation"},
    };
    frg_context *const ctx = test_context();
    frg_table *const t = parse(ctx, "y,x,f\n1,2,1\n2,1,1\n4,3,2\n3,5,2\n7,1,2\n");
    frg_fe_opts o = defaults();
    o.keep_effects = 1;
    frg_fe *const f = fit(ctx, "y ~ x | f", t, &o);
    for (size_t i = 0; f && i < sizeof table / sizeof *table; i++) {
        frg_table *const fresh = parse(ctx, table[i].csv);
        double out[2] = {5, 5};
        CHECK_STATUS(frg_fe_predict(f, fresh, out, NULL), FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-011");
        CHECK_SAYS(strstr(frg_message(ctx), table[i].says), "%s", frg_message(ctx));
        CHECK(out[0] == 5 && out[1] == 5);
        frg_table_destroy(fresh);
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/** As many coefficients as rows: without adj= there is an answer, with one degree of freedom for t,
 *  as fixest has it, and no adjusted R2. */
static void no_freedom(void)
{
    frg_context *const ctx = test_context();
    frg_table *const t = parse(ctx, "y,a,b\n1,2,1\n2,1,5\n4,3,2\n");
    frg_fe_opts o = defaults();
    o.ssc = "adj=false";
    frg_fe *const f = fit(ctx, "y ~ a + b", t, &o);
    if (f) {
        CHECK_INT(frg_fe_get(f)->df_residual, 0);
        CHECK(frg_fe_get(f)->vcov[0].df_t == 1);
        CHECK(isnan(frg_fe_get(f)->r2_adjusted));
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- what is said of a column ---------------------------------------------------------------- */

/** The gradient counts to tol, or to four roundings of the column's type where these are more;
 *  level means to tol, or to the rounding floor, 64 roundings of the largest numbers, of effects in
 *  double: large ones excuse nothing in a column of float; the bound on the error to 1000 tol. */
static void judged(void)
{
    const double tiny = FLT_EPSILON, none = (double)NAN;
    const struct {
        double tol, epsilon, gradient, mean, bound; /* the latter two over the column's size */
        bool converged, accepted;
    } table[] = {
        {1e-10, DBL_EPSILON, 0.9e-10, 0.9e-10, none, true, true},
        {1e-10, DBL_EPSILON, 1.1e-10, 0.9e-10, none, false, false},
        {1e-10, DBL_EPSILON, 0.9e-10, 1.1e-10, none, false, false},
        {1e-15, DBL_EPSILON, 0.8e-15, 5e-14, none, true,
         true}, /* the floor is 64 (3 + 1) eps: 5.7e-14 */
        {1e-15, DBL_EPSILON, 0.8e-15, 6e-14, none, false, false},
        {1e-16, DBL_EPSILON, 8e-16, 5e-14, none, true, true}, /* 4 eps: 8.9e-16 */
        {1e-16, DBL_EPSILON, 1e-15, 5e-14, none, false, false},
        {1e-10, tiny, 4.5e-7, 2.2e-5, none, true, true}, /* 4.8e-7, and 64 * 3 eps: 2.29e-5 */
        {1e-10, tiny, 5e-7, 2.2e-5, none, false, false},
        {1e-10, tiny, 4.5e-7, 2.4e-5, none, false, false},
        {1e-3, tiny, 0.9e-3, 0.9e-3, none, true, true},
        {1e-10, DBL_EPSILON, 1e-11, 1e-11, 0.9e-7, true, true},
        {1e-10, DBL_EPSILON, 1e-11, 1e-11, 1.1e-7, true, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const double mass = 50, size = 1, total = mass * size * size;
        const fe_column_size c = {.total_weight = mass,
                                  .total = total,
                                  .max_abs = 3,
                                  .effect = 1,
                                  .epsilon = table[i].epsilon};
        const fe_column_audit a = {.square = total,
                                   .gradient = table[i].gradient * table[i].gradient * 2 * total,
                                   .mean = table[i].mean * size};
        frg_demean_column column = {0};
        frgi_fe_verify(table[i].tol, 2, &c, &a, table[i].bound * table[i].bound * total, &column);
        CHECK_SAYS((column.converged != 0) == table[i].converged, "case %zu", i);
        CHECK_SAYS(frgi_fe_accepted(table[i].tol, &column) == table[i].accepted, "case %zu", i);
        CHECK(!column.absorbed);
        CHECK_NEAR(column.gradient, table[i].gradient, 1e-14 * table[i].gradient);
    }
    const fe_column_size far = {
        .total_weight = 50, .total = 50, .max_abs = 3, .effect = 1e6, .epsilon = tiny};
    const fe_column_audit off = {.square = 200, .gradient = 1e-16, .mean = 1e-3};
    frg_demean_column column = {0};
    frgi_fe_verify(1e-10, 2, &far, &off, (double)NAN, &column);
    CHECK(!column.converged && !column.absorbed && column.audit > 4e-4);
}

/* ---- numbers that few cells make text -------------------------------------------------------- */

/** A column most of whose cells are numbers is refused wherever a number was meant; words, and what
 *  factor(), i() or an effect asks for, are categories. */
static void strays(void)
{
    static const char csv[] = "y,x,h,w,f,o\n"
                              "1,10,1,a,1,1\n2, 2.5 ,1,b,1,2\n4,-1e3,x,a,1,4\n3,12.x,2,b,2,n/a?\n"
                              "7,5,y,a,2,5\n6,,z,b,2,6\n5,7,2,a,1,7\n";
    static const char x_says[] =
        "column 'x' holds numbers, but 1 of its 6 cells makes it text: row "
        "4 is '12.x'; mend it, name it as a word for missing values "
        "(--na), or write factor(x)";
    static const char o_says[] =
        "column 'o' holds numbers, but 1 of its 7 cells makes it text: row "
        "4 is 'n/a?'";
    static const struct {
        const char *formula, *weights, *subset, *says, *where; /* says NULL: it is fitted */
    } table[] = {
        {"y ~ x", NULL, NULL, x_says, "formula:5"},
        {"y ~ w + x | f", NULL, NULL, x_says, "formula:9"},
        {"y ~ w:x", NULL, NULL, x_says, "formula:7"},
        {"y ~ log(x)", NULL, NULL, x_says, "formula:9"},
        {"y ~ i(w, x)", NULL, NULL, x_says, "formula:10"},
        {"y ~ w | f[x]", NULL, NULL, x_says, "formula:11"},
        {"o ~ w", NULL, NULL, o_says, "formula:1"},
        {"y ~ w", "x", NULL, x_says, ""},
        {"y ~ w", NULL, "x > 0", x_says, "subset:1"},
        {"y ~ w", NULL, "x", x_says, "subset:1"},
        {"y ~ factor(x)", NULL, NULL, NULL, NULL},
        {"y ~ i(x)", NULL, NULL, NULL, NULL},
        {"y ~ i(w, i.x)", NULL, NULL, NULL, NULL},
        {"y ~ f | x", NULL, NULL, NULL, NULL},
        {"y ~ w", NULL, "x == \"12.x\" | y < 4", NULL, NULL},
        {"y ~ w", NULL, NULL, NULL, NULL},
        {"y ~ h", NULL, NULL, "'h' holds numbers, but 3 of its 7 cells make it text: row 3 is 'x'",
         "formula:5"},
    };
    frg_context *const ctx = test_context();
    frg_table *const t = parse(ctx, csv);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_fe_opts o = defaults();
        frg_fe *f = NULL;
        o.weights = table[i].weights;
        o.subset = table[i].subset;
        const frg_status status = frg_fe_fit(&f, ctx, table[i].formula, t, &o);
        const bool typed = status == FRG_BAD_DATA && strcmp(frg_error_code(ctx), "FRG-FE-011") == 0;
        if (table[i].says) {
            CHECK_SAYS(typed && strstr(frg_message(ctx), table[i].says), "'%s': %s",
                       table[i].formula, frg_message(ctx));
            CHECK_TEXT(frg_error_where(ctx), table[i].where);
        } else {
            CHECK_SAYS(!typed, "'%s': %s", table[i].formula, frg_message(ctx));
        }
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);

    /* labels that somebody put in order are categories whatever they look like; so are numbers that
     * were given as text */
    static const char *const labels[] = {"1", "2", "3", "more"};
    static const int32_t codes[] = {0, 1, 2, 0, 1, 2, 3, 0};
    static const double y[] = {1, 2, 4, 3, 7, 6, 5, 9};
    frg_table *given = NULL;
    CHECK_OK(ctx, frg_table_create(&given, ctx, 8));
    CHECK_OK(ctx, frg_table_add_numbers(given, "y", y));
    CHECK_OK(ctx, frg_table_add_codes(given, "grade", codes, labels, 4));
    const frg_fe_opts o = defaults();
    frg_fe *f = NULL;
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ grade", given, &o));
    CHECK_INT(f ? frg_fe_get(f)->n_coefficients : 0, 4);
    frg_fe_destroy(f);
    frg_table_destroy(given);

    /* a long cell is shown by whole characters: 39 letters and the first byte of an o with dots do
     * not fit into 40 */
    static const char before[] = "y,x\n1,1\n2,2\n4,3\n5,",
                      long_cell[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklm\xc3\xb6zz\n";
    char text[120];
    snprintf(text, sizeof text, "%s%s", before, long_cell);
    frg_table *const cut = parse(ctx, text);
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ x", cut, &o), FRG_BAD_DATA);
    CHECK_SAYS(strstr(frg_message(ctx), "'abcdefghijklmnopqrstuvwxyzabcdefghijklm';"), "%s",
               frg_message(ctx));
    frg_table_destroy(cut);
    frg_context_destroy(ctx);
}

/* ---- thousands of columns -------------------------------------------------------------------- */

typedef struct {
    frg_context *ctx;
    const char *phase; /* where the run is stopped */
} stopper;

static int stop_there(const frg_progress *p, void *user)
{
    const stopper *const s = user;
    if (strcmp(p->solver, "fe") == 0 && strcmp(p->phase, s->phase) == 0)
        frg_interrupt(s->ctx);
    return 0;
}

/** Text of 2100 levels is 2099 indicators, as in fixest: their size is refused under a limit before
 *  they are made, and a stop ends the fit, which takes many seconds, without a result. */
static void thousands(void)
{
    enum { LEVELS = 2100, ROWS = 2 * LEVELS };
    enum { STOPS = 3 };
    static const struct {
        const char *phase, *formula;
    } runs[STOPS + 1] = {
        {"rows", "y ~ w"}, {"columns", "y ~ w"}, {"columns", "y ~ w | f"}, {"", "y ~ w"}};
    static char names[LEVELS][8];
    static const char *labels[LEVELS];
    static int32_t codes[ROWS];
    static int64_t f_values[ROWS];
    static double y[ROWS];
    for (int i = 0; i < LEVELS; i++) {
        snprintf(names[i], sizeof names[i], "w%d", i);
        labels[i] = names[i];
    }
    for (int i = 0; i < ROWS; i++) {
        codes[i] = i % LEVELS;
        f_values[i] = i % 13;
        y[i] = i * 7 % 11;
    }
    for (int k = 0; k <= STOPS; k++) {
        stopper s = {.phase = runs[k].phase};
        frg_context_opts c;
        frg_context_defaults(&c, sizeof c);
        c.on_progress = stop_there;
        c.user = &s;
        c.memory_limit = k < STOPS ? 0 : 64 << 20;
        frg_context *ctx = NULL;
        CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
        s.ctx = ctx;
        frg_table *t = NULL;
        CHECK_OK(ctx, frg_table_create(&t, ctx, ROWS));
        CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
        CHECK_OK(ctx, frg_table_add_integers(t, "f", f_values));
        CHECK_OK(ctx, frg_table_add_codes(t, "w", codes, labels, LEVELS));
        const size_t held = frg_bytes_held(ctx);
        const frg_fe_opts o = defaults();
        frg_fe *f = (frg_fe *)t;
        const frg_status status = frg_fe_fit(&f, ctx, runs[k].formula, t, &o);
        CHECK(f == NULL);
        CHECK_STATUS(status, k < STOPS ? FRG_INTERRUPTED : FRG_NO_MEMORY);
        if (k == STOPS) {
            CHECK_TEXT(frg_error_code(ctx), "FRG-FE-012");
            CHECK_SAYS(strstr(frg_message(ctx), "with 'w' the model has 2099 columns of 4200 rows"),
                       "%s", frg_message(ctx));
            CHECK(frg_peak_bytes(ctx) < held + ((size_t)4 << 20));
        }
        frg_warnings_clear(ctx);
        CHECK_INT((int64_t)frg_bytes_held(ctx), (int64_t)held);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
}

/* ---- dates ----------------------------------------------------------------------------------- */

/** Dates in text are keys; as a regressor they are no number, and hundreds of indicators only where
 *  factor() or i() asks for them. */
static void dates(void)
{
    static const char csv[] =
        "y,x,d,f,s\n1,2,2024-02-28,1,2024-02-28\n2,1,2024-02-29,1,soon\n"
        "4,3,2024-02-28,2,2024-02-28\n3,5,2024-02-29,2,soon\n7,1,2024-03-01,2,soon\n"
        "6,2,2024-03-01,1,soon\n5,8,2024-02-28,1,soon\n";
    static const struct {
        const char *formula;
        frg_status status;
        int coefficients;
    } table[] = {
        {"y ~ x | d", FRG_OK, 1},       {"y ~ x | d + f", FRG_OK, 1},
        {"y ~ x + i(d)", FRG_OK, 4},    {"y ~ x + factor(d)", FRG_OK, 4},
        {"y ~ x + s", FRG_OK, 3}, /* text that is no date: indicators, as in fixest */
        {"y ~ x + d", FRG_BAD_DATA, 0}, {"y ~ x:d", FRG_BAD_DATA, 0},
        {"y ~ d | f", FRG_BAD_DATA, 0},
    };
    frg_context *const ctx = test_context();
    frg_table *const t = parse(ctx, csv);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const frg_fe_opts o = defaults();
        frg_fe *f = NULL;
        CHECK_STATUS(frg_fe_fit(&f, ctx, table[i].formula, t, &o), table[i].status);
        if (f) {
            CHECK_INT(frg_fe_get(f)->n_coefficients, table[i].coefficients);
        } else {
            CHECK_TEXT(frg_error_code(ctx), "FRG-FE-011");
            CHECK_SAYS(strstr(frg_message(ctx), "'d' holds dates as text (2024-02-28): write "
                                                "factor(d)"),
                       "%s", frg_message(ctx));
        }
        frg_fe_destroy(f);
    }
    static const char *const forms[] = {"2024/02/28", "28.02.2024",       "02/28/2024",
                                        "28-02-2024", "2024-02-28T10:00", "2024-02-28 10:00"};
    static const char *const others[] = {"2024-02-281", "2024-02", "2024-0a-28", "28.02.24", "x"};
    for (int good = 0; good < 2; good++)
        for (size_t i = 0; i < (good ? 6 : 5); i++) {
            char text[200];
            snprintf(text, sizeof text, "y,d\n1,%s\n2,\n4,%s\n3,%s\n", good ? forms[i] : others[i],
                     good ? forms[i] : others[i], good ? forms[i] : others[i]);
            frg_table *const one = parse(ctx, text);
            const frg_fe_opts o = defaults();
            frg_fe *f = NULL;
            const frg_status status = frg_fe_fit(&f, ctx, "y ~ d", one, &o);
            CHECK_SAYS(good == (status == FRG_BAD_DATA && strstr(frg_message(ctx), "dates")), "%s",
                       text);
            frg_fe_destroy(f);
            frg_table_destroy(one);
        }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"slopes alone", slopes_alone},
    {"rounds of frequencies", rounds_of_frequencies},
    {"constants", constants},
    {"shares left", shares_left},
    {"refined", refined},
    {"many dropped", many_dropped},
    {"names of levels", names_of_levels},
    {"order of levels", order_of_levels},
    {"keys", keys},
    {"effects", effects},
    {"further references", further_references},
    {"changed kinds", changed_kinds},
    {"no freedom", no_freedom},
    {"judged", judged},
    {"strays", strays},
    {"thousands", thousands},
    {"dates", dates},
};
TEST_MAIN(cases)
