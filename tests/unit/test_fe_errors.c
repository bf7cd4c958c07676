/* test_fe_errors.c - bad input to a regression, and what the answer must be: every row of the table
 * of bad input that applies, with its code, the culprit in the message and the place. */
#include "fourge/fe.h"
#include "test.h"

static frg_table *parse(frg_context *ctx, const char *csv)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_parse(&t, ctx, csv, (int64_t)strlen(csv), "memory", NULL));
    return t;
}

static const char panel[] = "y,x,z,f,g,s,w,v,one,same\n"
                            "1,2,1,1,1,a,1,1,1,7\n"
                            "3,1,2,1,2,b,2,0.5,1,7\n"
                            "2,5,1,1,3,a,1,2,1,7\n"
                            "6,4,0,2,1,b,0,1,1,9\n"
                            "5,3,1,2,2,a,3,3,1,9\n"
                            "9,8,4,2,3,b,1,1.5,1,9\n"
                            "4,7,3,3,1,a,2,1,1,4\n"
                            "8,6,9,3,2,b,1,0,1,4\n"
                            "7,9,2,3,3,a,1,2,1,4\n";

typedef struct {
    const char *formula;
    frg_status status;
    const char *code, *where, *says; /* where NULL: not looked at */
    void (*set)(frg_fe_opts *o);
} mistake;

static void check_mistakes(const char *csv, const mistake table[], size_t count)
{
    frg_context *const ctx = test_context();
    frg_table *const data = parse(ctx, csv);
    for (size_t i = 0; i < count; i++) {
        frg_fe_opts o;
        frg_fe_defaults(&o, sizeof o);
        if (table[i].set)
            table[i].set(&o);
        frg_fe *f = (frg_fe *)data;
        frg_status status = frg_fe_fit(&f, ctx, table[i].formula, data, &o);
        if (status >= 0)
            frg_fe_destroy(f);
        frg_warnings_clear(ctx);
        const size_t held = frg_bytes_held(ctx); /* the second time holds no more than the first */
        status = frg_fe_fit(&f, ctx, table[i].formula, data, &o);
        CHECK_SAYS(status == table[i].status, "'%s': %s, expected %s: %s", table[i].formula,
                   frg_status_name(status), frg_status_name(table[i].status), frg_message(ctx));
        if (status >= 0) {
            frg_fe_destroy(f);
            continue;
        }
        CHECK(f == NULL);
        CHECK_SAYS(strcmp(frg_error_code(ctx), table[i].code) == 0 &&
                       strstr(frg_message(ctx), table[i].says),
                   "'%s': %s '%s', expected %s '%s'", table[i].formula, frg_error_code(ctx),
                   frg_message(ctx), table[i].code, table[i].says);
        if (table[i].where)
            CHECK_TEXT(frg_error_where(ctx), table[i].where);
        frg_warnings_clear(ctx);
        CHECK_SAYS(frg_bytes_held(ctx) == held, "'%s' holds memory", table[i].formula);
    }
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/* ---- names and types ------------------------------------------------------------------------- */

static void by_weight_q(frg_fe_opts *o)
{
    o->weights = "q";
}
static void by_weight_s(frg_fe_opts *o)
{
    o->weights = "s";
}
static void with_subset(frg_fe_opts *o)
{
    o->subset = "x > ";
}
static void with_text_subset(frg_fe_opts *o)
{
    o->subset = "s > 1";
}
static void with_text_column(frg_fe_opts *o)
{
    o->subset = "s";
}
static void with_string_subset(frg_fe_opts *o)
{
    o->subset = "'a'";
}

static void names_and_types(void)
{
    static const mistake table[] = {
        {"y ~ xx | f", FRG_BAD_DATA, "FRG-IO-008", "formula:5",
         "column 'xx' is not in the data; did you mean 'x'?", NULL},
        {"yy ~ x", FRG_BAD_DATA, "FRG-IO-008", "formula:1", "'yy'", NULL},
        {"y ~ x | firm", FRG_BAD_DATA, "FRG-IO-008", "formula:9", "'firm'", NULL},
        {"y ~ x | f^q", FRG_BAD_DATA, "FRG-IO-008", "formula:11", "'q'", NULL},
        {"y ~ x | f[q]", FRG_BAD_DATA, "FRG-IO-008", "formula:11", "'q'", NULL},
        {"y ~ i(q)", FRG_BAD_DATA, "FRG-IO-008", "formula:7", "'q'", NULL},
        {"y ~ log(q)", FRG_BAD_DATA, "FRG-IO-008", "formula:9", "'q'", NULL},
        {"y ~ x", FRG_BAD_DATA, "FRG-IO-008", NULL, "weights: column 'q'", by_weight_q},
        {"s ~ x", FRG_BAD_DATA, "FRG-FE-011", "formula:1", "'s' holds text", NULL},
        {"y ~ log(s)", FRG_BAD_DATA, "FRG-FE-011", "formula:5", "numbers are needed", NULL},
        {"y ~ I(s + 1)", FRG_BAD_DATA, "FRG-FE-011", "formula:7", "numbers are needed", NULL},
        {"y ~ I(s == x)", FRG_BAD_DATA, "FRG-FE-011", "formula:7", "compared with a string", NULL},
        {"y ~ I(x %in% c('a'))", FRG_BAD_DATA, "FRG-FE-011", NULL, "numbers with numbers", NULL},
        {"y ~ x | f[s]", FRG_BAD_DATA, "FRG-FE-011", "formula:11", "'s': the column holds text",
         NULL},
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-011", NULL, "weights: column 's' holds text", by_weight_s},
        {"y ~ x", FRG_BAD_ARG, "FRG-FE-001", "subset:5", "subset, column 5", with_subset},
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-011", "subset:1", "numbers are needed", with_text_subset},
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-011", "subset:1", "column 's' holds text",
         with_text_column},
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-011", "subset:1", "a string is no variable",
         with_string_subset},
        {"y ~ i(f, ref = 12)", FRG_BAD_ARG, "FRG-FE-001", "formula:16",
         "12 is no level of 'f'; the first is '1', the last '3'", NULL},
        {"y ~ i(s, ref = 'c')", FRG_BAD_ARG, "FRG-FE-001", "formula:16", "no level of 's'", NULL},
        {"y ~ i(f, x):z", FRG_BAD_ARG, "FRG-FE-001", "formula:5", "no part in interactions", NULL},
        {"y ~ x +", FRG_BAD_ARG, "FRG-FE-001", "formula:8", "the text ends", NULL},
        {"y ~ x | f | z + x2 ~ w", FRG_BAD_DATA, "FRG-IO-008", "formula:17", "column 'x2'", NULL},
        {"y ~ x | f | z ~ 1", FRG_BAD_DATA, "FRG-FE-020", "formula:17", "no instrument", NULL},
    };
    check_mistakes(panel, table, sizeof table / sizeof *table);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void subset_none(frg_fe_opts *o)
{
    o->subset = "x > 100";
}
static void weighted_w(frg_fe_opts *o)
{
    o->weights = "w";
}
static void frequency_v(frg_fe_opts *o)
{
    o->weights = "v";
    o->weights_kind = FRG_WEIGHTS_FREQUENCY;
}
static void keep(frg_fe_opts *o)
{
    o->keep_singletons = 1;
}

static void rows(void)
{
    static const mistake table[] = {
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-002", NULL,
         "none of the 9 rows is left: 0 have missing values, 9 are outside", subset_none},
        {"y ~ x | x", FRG_BAD_DATA, "FRG-FE-002", NULL, "9 were singletons, dropped in 1 round",
         NULL},
        {"y ~ z | x", FRG_BAD_DATA, "FRG-FE-006", NULL, "'z' (absorbed by the fixed effects)",
         keep},
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-003", "v:2", "row 2: 0.5 is no whole number", frequency_v},
    };
    check_mistakes(panel, table, sizeof table / sizeof *table);
    static const mistake negative[] = {
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-003", "w:2", "weights column 'w', row 2: -1 is negative",
         weighted_w},
    };
    check_mistakes("y,x,w\n1,2,1\n2,3,-1\n4,4,1\n5,7,1\n", negative, 1);
    static const mistake infinite[] = {
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-003", "w:3", "row 3: inf is infinite", weighted_w},
    };
    check_mistakes("y,x,w\n1,2,1\n2,3,1\n4,4,inf\n5,7,1\n", infinite, 1);
    static const mistake faint[] = {
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-003", "w:5",
         "weights column 'w', row 5: 1e-300 vanishes beside 1e+300 in row 1", weighted_w},
    };
    check_mistakes("y,x,w\n1,2,1e300\nNA,3,1e308\n2,3,1\n4,4,3\n5,7,1e-300\n", faint, 1);
    static const mistake uncounted[] = {
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-003", "v:2", "row 2: 9.00719925474099e+15 is above 2^53",
         frequency_v},
    };
    check_mistakes("y,x,v\n1,2,1\n2,3,9007199254740994\n4,4,1\n5,7,1\n", uncounted, 1);
    static const mistake rounded[] = {
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-011", "x:3",
         "column 'x', row 3: 9007199254740999 is above 2^53, where doubles round whole numbers, "
         "and the column varies by 7 alone",
         NULL},
        {"y ~ log(x)", FRG_BAD_DATA, "FRG-FE-011", "x:3", "row 3", NULL},
        {"x ~ y", FRG_BAD_DATA, "FRG-FE-011", "x:3", "row 3", NULL},
    };
    check_mistakes("y,x\n1,9007199254740993\n2,9007199254740992\n4,9007199254740999\n"
                   "5,9007199254740994\n",
                   rounded, 3);
    static const mistake missing[] = {
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-002", NULL,
         "none of the 3 rows is left: 3 have missing values", NULL},
    };
    check_mistakes("y,x\n1,NA\nNA,3\n,4\n", missing, 1);
    static const mistake chain[] = {
        /* a path: each round takes the ends off */
        {"y ~ x | f + g", FRG_BAD_DATA, "FRG-FE-002", NULL,
         "5 were singletons, dropped in 3 rounds", NULL},
    };
    check_mistakes("y,x,f,g\n1,1,1,1\n2,5,2,1\n3,2,2,2\n4,4,3,2\n5,9,3,3\n", chain, 1);
}

static void not_finite(void)
{
    static const mistake table[] = {
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-005", "x:3", "'x', row 3: the value is infinite", NULL},
        {"y ~ log(z)", FRG_BAD_DATA, "FRG-FE-005", "log(z):2", "'log(z)', row 2", NULL},
        {"z ~ k", FRG_BAD_DATA, "FRG-FE-005", "k:4", "'k', row 4", NULL},
        {"y ~ z | x", FRG_BAD_DATA, "FRG-FE-005", "x:3", "an infinite value is no key", NULL},
        {"y ~ z | f[x]", FRG_BAD_DATA, "FRG-FE-005", NULL, "slope 'x', row 3", NULL},
        {"big ~ z", FRG_BAD_DATA, "FRG-FE-005", NULL,
         "'big', row 1: 1e+200 is too large to be squared and added; scale", NULL},
        {"small ~ z", FRG_BAD_DATA, "FRG-FE-005", NULL,
         "'small', row 4: -4e-200 is too small to be squared and added; scale", NULL},
        {"y ~ small | f", FRG_BAD_DATA, "FRG-FE-005", NULL, "'small', row 4: -4e-200 is too small",
         NULL},
    };
    check_mistakes("y,x,z,k,f,big,small\n1,2,3,1,1,1e200,1e-200\n2,1,0,1,1,2,2e-200\n"
                   "1,inf,2,3,2,3,0\n3,1,1,-inf,2,4,-4e-200\n2,5,7,1,1,5,1e-200\n",
                   table, sizeof table / sizeof *table);
}

/** Two keys of the file that one double stands for must not become one level. */
static void rounded_keys(void)
{
    static const mistake table[] = {
        {"y ~ x | id", FRG_BAD_DATA, "FRG-FE-011", "id:2", "a key of 2^53 or more as a double",
         NULL},
    };
    check_mistakes("y,x,id\n1,2,1\n2,1,9223372036854775808\n1,3,9223372036854775809\n3,1,1\n",
                   table, 1);
    static const mistake limits[] = {
        {"y ~ x | low", FRG_BAD_DATA, "FRG-FE-011", "low:3", "a key of 2^53 or more", NULL},
        {"y ~ x | high", FRG_BAD_DATA, "FRG-FE-011", "high:4", "a key of 2^53 or more", NULL},
    };
    check_mistakes("y,x,low,high\n1,2,1.0,2.5\n2,1,-9007199254740991.0,9007199254740991.0\n"
                   "1,3,-9007199254740992.0,2.5\n3,1,1.0,9007199254740992.0\n",
                   limits, 2);
}

/** Rows that are left out may hold anything. */
static void unused_rows_are_not_judged(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data =
        parse(ctx, "y,x,w\n1,2,1\n2,inf,0\n3,4,1\n9,inf,1\n4,4,-5\n5,7,1\n,8,1\n7,1,1\n");
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.weights = "w";
    o.subset = "y < 8 & w >= 0";
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x", data, &o))) {
        const frg_fe_result *const r = frg_fe_get(f);
        CHECK_INT(r->n_missing, 1);
        CHECK_INT(r->n_subset, 2);
        CHECK_INT(r->n_zero_weight, 1);
        CHECK_INT(r->n, 4);
        CHECK_INT(r->n_rows, 8);
    }
    frg_fe_destroy(f);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/** Missing cells of any used column, counted once a row; a cluster's are not left out silently. */
static void missing_cells(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data = parse(
        ctx, "y,x,f,c,w,s\n1,2,1,1,1,a\n2,NA,1,1,1,b\n3,4,NA,2,1,a\n4,1,2,,1,a\n5,7,2,2,NA,b\n"
             "1,3,1,2,1,b\n8,8,2,1,1,\n2,1,2,1,1,a\n4,9,1,2,1,a\n6,5,2,2,1,b\n");
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = "cluster=c";
    o.weights = "w";
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x + s | f", data, &o))) {
        CHECK_INT(frg_fe_get(f)->n_missing, 5);
        CHECK_INT(frg_fe_get(f)->n, 5);
        bool warned = false;
        for (int i = 0; i < frg_warning_count(ctx); i++)
            warned |= strcmp(frg_warning_code(ctx, i), "FRG-FE-108") == 0 &&
                      strstr(frg_warning_message(ctx, i), "1 row");
        CHECK(warned);
        double residuals[10];
        CHECK_OK(ctx, frg_fe_residuals(f, residuals, NULL));
        for (int i = 0; i < 10; i++)
            CHECK(isnan(residuals[i]) == (i == 1 || i == 2 || i == 3 || i == 4 || i == 6));
    }
    frg_fe_destroy(f);
    f = NULL;
    o.vcov[0] = "iid";
    o.weights = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x", data, &o))) {
        const frg_fe_vcov *v = NULL;
        CHECK_STATUS(frg_fe_vcov_add(f, "cluster=c", NULL, &v), FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-008");
        CHECK_TEXT(frg_error_where(ctx), "c:4");
        CHECK(v == NULL);
    }
    frg_fe_destroy(f);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/** All weights of a level are zero: the level goes with its rows, nothing is divided by it. */
static void level_without_weight(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data =
        parse(ctx, "y,x,f,w\n1,2,1,1\n2,1,1,1\n3,3,2,0\n4,1,2,0\n5,7,3,2\n1,3,3,1\n2,8,3,1\n");
    frg_table *const without = parse(ctx, "y,x,f,w\n1,2,1,1\n2,1,1,1\n5,7,3,2\n1,3,3,1\n2,8,3,1\n");
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.weights = "w";
    frg_fe *f = NULL, *g = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | f", data, &o)) &&
        CHECK_OK(ctx, frg_fe_fit(&g, ctx, "y ~ x | f", without, &o))) {
        CHECK_INT(frg_fe_get(f)->n_zero_weight, 2);
        CHECK_INT(frg_fe_get(f)->factor_levels[0], 2);
        CHECK_BITS(&frg_fe_get(f)->coefficients[0].estimate,
                   &frg_fe_get(g)->coefficients[0].estimate, 6 * sizeof(double));
    }
    frg_fe_destroy(f);
    frg_fe_destroy(g);
    frg_table_destroy(data);
    frg_table_destroy(without);
    frg_context_destroy(ctx);
}

/* ---- models ---------------------------------------------------------------------------------- */

static void clustered_by_one(frg_fe_opts *o)
{
    o->vcov[0] = "cluster=one";
}
static void without_fixef(frg_fe_opts *o)
{
    o->ssc = "fixef=none";
    o->keep_singletons = 1;
}
static void all_wrong_level(frg_fe_opts *o)
{
    o->level = 1;
}
static void wrong_collinearity(frg_fe_opts *o)
{
    o->collin_tol = -1;
}
static void wrong_count(frg_fe_opts *o)
{
    o->n_vcov = 9;
}
static void wrong_kind(frg_fe_opts *o)
{
    o->weights_kind = (frg_weights_kind)7;
}
static void no_iterations(frg_fe_opts *o)
{
    o->demean.max_iter = 0;
}
static void no_tolerance(frg_fe_opts *o)
{
    o->demean.tol = 1;
}

static void models(void)
{
    static const mistake table[] = {
        {"y ~ same | f", FRG_BAD_DATA, "FRG-FE-006", NULL, "'same' (absorbed by the fixed effects)",
         NULL},
        {"y ~ same + i(f, ref = 1) | f", FRG_BAD_DATA, "FRG-FE-006", NULL, "'f::2' (absorbed",
         NULL},
        {"y ~ 0", FRG_BAD_DATA, "FRG-FE-006", NULL, "neither terms nor effects", NULL},
        {"y ~ i(one) | f", FRG_BAD_DATA, "FRG-FE-006", NULL, "single level", NULL},
        {"y ~ x", FRG_BAD_DATA, "FRG-FE-008", NULL, "'one' has a single cluster in the 9 rows",
         clustered_by_one},
        {"y ~ x + z + w + v + s | f + g", FRG_BAD_DATA, "FRG-FE-007", NULL,
         "(K, fixef=nonnested) for n = 9", NULL},
        {"y ~ x + z + w + v + s | f + g", FRG_OK, NULL, NULL, NULL, without_fixef},
        {"y ~ x", FRG_BAD_ARG, "FRG-CORE-006", NULL, "level", all_wrong_level},
        {"y ~ x", FRG_BAD_ARG, "FRG-CORE-006", NULL, "collin_tol", wrong_collinearity},
        {"y ~ x", FRG_BAD_ARG, "FRG-CORE-006", NULL, "n_vcov", wrong_count},
        {"y ~ x", FRG_BAD_ARG, "FRG-CORE-006", NULL, "weights_kind", wrong_kind},
        {"y ~ x | f", FRG_BAD_ARG, "FRG-CORE-006", NULL, "max_iter", no_iterations},
        {"y ~ x | f", FRG_BAD_ARG, "FRG-CORE-006", NULL, "tol", no_tolerance},
    };
    check_mistakes(panel, table, sizeof table / sizeof *table);
}

static bool warned(const frg_context *ctx, const char *code)
{
    for (int i = 0; i < frg_warning_count(ctx); i++)
        if (strcmp(frg_warning_code(ctx, i), code) == 0)
            return true;
    return false;
}

/** y constant within the effects: R2 is 1, the errors are 0, a warning says that they mean
 *  nothing. */
static void absorbed_depvar(void)
{
    static const char *const formulas[] = {"same ~ x | f", "one ~ x", "same ~ x + z | f + g"};
    frg_context *const ctx = test_context();
    frg_table *const data = parse(ctx, panel);
    for (int i = 0; i < 3; i++) {
        frg_fe *f = NULL;
        frg_warnings_clear(ctx);
        if (!CHECK_OK(ctx, frg_fe_fit(&f, ctx, formulas[i], data, NULL)))
            continue;
        const frg_fe_result *const r = frg_fe_get(f);
        CHECK(warned(ctx, "FRG-FE-102"));
        CHECK(r->r2 == 1 && r->rss == 0);
        const frg_coefficient *const c = &r->coefficients[r->n_coefficients - 1];
        CHECK(c->estimate == 0 && c->std_error == 0 && isnan(c->statistic) && isnan(c->p_value));
        double fitted[9];
        CHECK_OK(ctx, frg_fe_residuals(f, NULL, fitted));
        CHECK_NEAR(fitted[0], i == 1 ? 1 : 7, 1e-14);
        frg_fe_destroy(f);
    }
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/** `y ~ 1 | f` is residuals alone; one level is the intercept, with a note. */
static void bare_models(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data = parse(ctx, panel);
    frg_fe *f = NULL, *g = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ 1 | f", data, NULL))) {
        double residuals[9];
        CHECK_INT(frg_fe_get(f)->n_coefficients, 0);
        CHECK_INT(frg_fe_get(f)->df_residual, 6);
        CHECK_OK(ctx, frg_fe_residuals(f, residuals, NULL));
        CHECK_NEAR(residuals[0], -1, 1e-15); /* 1 - (1 + 3 + 2) / 3 */
        CHECK_NEAR(frg_fe_get(f)->rss, 2 + 26.0 / 3 + 26.0 / 3, 1e-14);
    }
    frg_fe_destroy(f);
    f = NULL;
    frg_warnings_clear(ctx);
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x + z | one", data, NULL)) &&
        CHECK_OK(ctx, frg_fe_fit(&g, ctx, "y ~ x + z", data, NULL))) {
        CHECK(warned(ctx, "FRG-FE-106"));
        for (int i = 0; i < 2; i++) {
            const frg_coefficient *const a = &frg_fe_get(f)->coefficients[i],
                                         *const b = &frg_fe_get(g)->coefficients[i + 1];
            CHECK_TEXT(a->term, b->term);
            CHECK_NEAR(a->estimate, b->estimate, 1e-13);
            CHECK_NEAR(a->std_error, b->std_error, 1e-13);
        }
    }
    frg_fe_destroy(f);
    frg_fe_destroy(g);
    g = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&g, ctx, "y ~ 1", data, NULL))) {
        CHECK_TEXT(frg_fe_get(g)->coefficients[0].term, "(Intercept)");
        CHECK_NEAR(frg_fe_get(g)->coefficients[0].estimate, 5, 1e-15);
        CHECK(isnan(frg_fe_get(g)->vcov[0].wald_f));
    }
    frg_fe_destroy(g);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/** The reasons name the terms. */
static void reasons(void)
{
    static const struct {
        const char *formula, *term, *reason;
    } table[] = {
        {"y ~ x + I(2*x) + z", "I(2 * x)", "collinear with x"},
        {"y ~ x + z + I(x - 3*z)", "I(x - 3 * z)", "collinear with x, z"},
        {"y ~ x + one", "one", "collinear with (Intercept)"},
        {"y ~ x + I(2*x + 5)", "I(2 * x + 5)", "collinear with (Intercept), x"},
        {"y ~ x + I(2*x + 5) - 1 + one", "I(2 * x + 5)", NULL},
        {"y ~ x + I(x*0) - 1", "I(x * 0)", "zero in every row"},
        {"y ~ x + same | f", "same", "absorbed by the fixed effects"},
        {"y ~ x + I(x + same) | f", "I(x + same)", "collinear with x"},
        {"y ~ x + z + i(f, keep = c(1, 2, 3))", "f::3", "collinear with (Intercept), f::1, f::2"},
    };
    frg_context *const ctx = test_context();
    frg_table *const data = parse(ctx, panel);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_fe *f = NULL;
        frg_warnings_clear(ctx);
        if (!CHECK_OK(ctx, frg_fe_fit(&f, ctx, table[i].formula, data, NULL)))
            continue;
        const frg_fe_result *const r = frg_fe_get(f);
        if (table[i].reason &&
            CHECK_SAYS(r->n_dropped == 1, "'%s' drops %d", table[i].formula, r->n_dropped)) {
            CHECK_TEXT(r->dropped[0].term, table[i].term);
            CHECK_TEXT(r->dropped[0].reason, table[i].reason);
            CHECK(warned(ctx, "FRG-FE-104"));
        }
        frg_fe_destroy(f);
    }
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/* ---- stops ----------------------------------------------------------------------------------- */

enum { RING = 1200 };

/** An even cycle of 400 cells with 3 rows each: slow for every Krylov method. */
static frg_table *ring(frg_context *ctx)
{
    int64_t f[RING], g[RING];
    double y[RING], x[RING];
    frg_table *t = NULL;
    for (int i = 0; i < RING; i++) {
        f[i] = i / 3 / 2;
        g[i] = (i / 3 + 1) / 2 % (RING / 6);
        x[i] = test_normal();
        y[i] = x[i] + test_normal();
    }
    CHECK_OK(ctx, frg_table_create(&t, ctx, RING));
    CHECK_OK(ctx, frg_table_add_integers(t, "f", f));
    CHECK_OK(ctx, frg_table_add_integers(t, "g", g));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
    return t;
}

/** Not converged is a status above 0, a marked result and a warning with the figures. */
static void not_converged(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data = ring(ctx);
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.demean.method = FRG_FE_LSMR;
    o.demean.max_iter = 3;
    frg_fe *f = NULL;
    const frg_status status = frg_fe_fit(&f, ctx, "y ~ x | f + g", data, &o);
    CHECK_SAYS(status > 0, "%s: %s", frg_status_name(status), frg_message(ctx));
    if (CHECK(f != NULL)) {
        CHECK(!frg_fe_get(f)->converged);
        CHECK_INT(frg_fe_get(f)->n_demeaned, 2);
        CHECK(frg_fe_get(f)->columns[0].gradient > 1e-10);
        CHECK(warned(ctx, "FRG-FE-101"));
        CHECK(strstr(frg_warning_message(ctx, 0), "'y' after") &&
              strstr(frg_warning_message(ctx, 0), "eta"));
    }
    frg_fe_destroy(f);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

static void interrupted(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data = ring(ctx);
    frg_fe *f = NULL;
    frg_interrupt(ctx);
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ x | f + g", data, NULL), FRG_INTERRUPTED);
    if (CHECK(f != NULL))
        CHECK(!frg_fe_get(f)->converged);
    frg_fe_destroy(f);
    f = NULL;
    frg_interrupt_clear(ctx);
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | f + g", data, NULL));
    frg_fe_destroy(f);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/** A category of as many levels as rows: n^2 numbers are more than the limit, and the message says
 *  what to do. */
static void too_big(void)
{
    enum { N = 3000 };
    frg_context_opts c;
    frg_context *ctx = NULL;
    frg_context_defaults(&c, sizeof c);
    c.memory_limit = 16 << 20;
    int64_t f[N];
    double y[N];
    for (int i = 0; i < N; i++) {
        f[i] = i;
        y[i] = test_normal();
    }
    frg_table *t = NULL;
    frg_fe *fit = NULL;
    if (CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK) &&
        CHECK_OK(ctx, frg_table_create(&t, ctx, N)) &&
        CHECK_OK(ctx, frg_table_add_integers(t, "f", f)) &&
        CHECK_OK(ctx, frg_table_add_numbers(t, "y", y))) {
        CHECK_STATUS(frg_fe_fit(&fit, ctx, "y ~ i(f)", t, NULL), FRG_NO_MEMORY);
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-012");
        CHECK(strstr(frg_message(ctx), "the model has 3000 columns of 3000 rows") &&
              strstr(frg_message(ctx), "right of the bar"));
    }
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void calls(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data = parse(ctx, panel), *const other = parse(ctx, "x,f\nlow,1\nhigh,2\n");
    frg_fe *f = NULL, *g = NULL;
    frg_table *effects = data;
    double out[9] = {1, 2};
    CHECK_STATUS(frg_fe_fit(NULL, ctx, "y ~ x", data, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_fit(&f, ctx, NULL, data, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ x", NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_residuals(NULL, out, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_effects(NULL, &effects), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_predict(NULL, data, out, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_regressors(NULL, data, out, NULL), FRG_BAD_ARG);
    CHECK(frg_fe_get(NULL) == NULL);
    frg_fe_destroy(NULL);
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | f", data, NULL)) &&
        CHECK_OK(ctx, frg_fe_fit(&g, ctx, "y ~ x", data, NULL))) {
        CHECK_STATUS(frg_fe_effects(f, &effects), FRG_BAD_ARG);
        CHECK(effects == NULL);
        CHECK(strstr(frg_message(ctx), "keep_effects") != NULL);
        CHECK_STATUS(frg_fe_predict(f, data, out, NULL), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_effects(g, &effects), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "the model has none") != NULL);
        CHECK_STATUS(frg_fe_predict(g, other, out, NULL), FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-011");
        CHECK_STATUS(frg_fe_regressors(g, other, out, NULL), FRG_BAD_DATA);
        CHECK_STATUS(frg_fe_regressors(g, data, NULL, NULL), FRG_BAD_ARG);
        CHECK(out[0] == 1 && out[1] == 2);
        CHECK_STATUS(frg_fe_vcov_add(g, NULL, NULL, NULL), FRG_BAD_ARG);
    }
    int32_t group[9] = {7};
    CHECK_STATUS(frg_fe_groups(NULL, group, NULL), FRG_BAD_ARG);
    if (f && g) {
        CHECK_STATUS(frg_fe_groups(f, NULL, NULL), FRG_BAD_ARG);
        CHECK_STATUS(frg_fe_groups(f, group, NULL), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "the formula has one") != NULL);
        CHECK_STATUS(frg_fe_groups(g, group, NULL), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "the formula has none") != NULL);
        CHECK_INT(group[0], 7);
    }
    frg_fe_destroy(f);
    frg_fe_destroy(g);
    static const char *const too_few[] = {"y ~ x", "y ~ x | f", "y ~ x | f + f[[x]]"};
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.connected = FRG_CONNECTED_LARGEST;
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(frg_fe_fit(&f, ctx, too_few[i], data, &o), FRG_BAD_ARG);
        CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-006");
    }
    o.connected = (frg_fe_connected)4;
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ x | f", data, &o), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "which stand for all|largest") != NULL);
    frg_table_destroy(data);
    frg_table_destroy(other);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"names_and_types", names_and_types},
    {"rows", rows},
    {"not_finite", not_finite},
    {"rounded_keys", rounded_keys},
    {"unused_rows_are_not_judged", unused_rows_are_not_judged},
    {"missing_cells", missing_cells},
    {"level_without_weight", level_without_weight},
    {"models", models},
    {"absorbed_depvar", absorbed_depvar},
    {"bare_models", bare_models},
    {"reasons", reasons},
    {"not_converged", not_converged},
    {"interrupted", interrupted},
    {"too_big", too_big},
    {"calls", calls},
};
TEST_MAIN(cases)
