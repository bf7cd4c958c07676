/* test_fe_many.c - several models in one call: the formulas that a text stands for, and fits that
 * have the bits of single ones.
 *
 * The oracle of a model is frg_fe_fit of its own formula, which shares nothing.
 */
#include "fault.h"
#include "fourge/fe.h"
#include "fourge/table.h"
#include "test.h"

/* ---- formulas -------------------------------------------------------------------------------- */

enum { MOST_TEXTS = 64 };

typedef struct {
    int n;
    char text[MOST_TEXTS][200];
} texts;

static void keep_text(const char *text, void *user)
{
    texts *const t = user;
    if (t->n < MOST_TEXTS) {
        snprintf(t->text[t->n++], sizeof t->text[0], "%s", text);
    }
}

/** Written out by hand from the definitions of fe.h. */
static void formulas(void)
{
    static const struct {
        const char *formula, *models[9];
    } table[] = {
        {"y~x|f", {"y~x|f"}},
        {"c(y1, log(y2)) ~ x", {"y1 ~ x", "log(y2) ~ x"}},
        {"y ~ x + sw(a, b + c)", {"y ~ x + a", "y ~ x + b + c"}},
        {"y ~ sw0(a, b)", {"y ~ 1", "y ~ a", "y ~ b"}},
        {"y ~ csw0(a, b) + x - 1", {"y ~ x - 1", "y ~ a + x - 1", "y ~ a + b + x - 1"}},
        {"y ~ x | csw0(f, g[t])", {"y ~ x", "y ~ x | f", "y ~ x | f + g[t]"}},
        {"y ~ x | f + sw(g, h^k)", {"y ~ x | f + g", "y ~ x | f + h^k"}},
        {"y ~ mvsw(a, b, c)",
         {"y ~ 1", "y ~ a", "y ~ b", "y ~ c", "y ~ a + b", "y ~ a + c", "y ~ b + c",
          "y ~ a + b + c"}},
        {"y ~ x:sw(a, b) - sw(c, d + e)",
         {"y ~ x:a - c", "y ~ x:a - (d + e)", "y ~ x:b - c", "y ~ x:b - (d + e)"}},
        {"c(y, z) ~ csw(a, b) | sw(f, g)",
         {"y ~ a | f", "y ~ a + b | f", "z ~ a | f", "z ~ a + b | f", "y ~ a | g", "y ~ a + b | g",
          "z ~ a | g", "z ~ a + b | g"}},
        {"y ~ x*csw(a, b)", {"y ~ x*a", "y ~ x*(a + b)"}},
        {"y ~ x | sw(f, g) | e ~ csw(z, w)",
         {"y ~ x | f | e ~ z", "y ~ x | f | e ~ z + w", "y ~ x | g | e ~ z",
          "y ~ x | g | e ~ z + w"}},
        {"y ~ x | csw0(f) | e ~ z", {"y ~ x | e ~ z", "y ~ x | f | e ~ z"}},
        {"y ~ i(f, ref = c(1, 2)) + sw(a, `b c`)",
         {"y ~ i(f, ref = c(1, 2)) + a", "y ~ i(f, ref = c(1, 2)) + `b c`"}},
    };
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        texts t = {.n = 0};
        int n = 0;
        CHECK_OK(ctx, frg_fe_expand(ctx, table[i].formula, keep_text, &t));
        for (; n < 9 && table[i].models[n]; n++) {
            CHECK_SAYS(n < t.n && strcmp(t.text[n], table[i].models[n]) == 0,
                       "'%s': model %d is '%s', expected '%s'", table[i].formula, n + 1,
                       n < t.n ? t.text[n] : "", table[i].models[n]);
        }
        CHECK_SAYS(t.n == n, "'%s': %d models, expected %d", table[i].formula, t.n, n);
    }
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

static void refused_formulas(void)
{
    static const struct {
        const char *formula, *where, *says;
    } table[] = {
        {"y ~ sw()", "formula:5", "missing in the parentheses"},
        {"y ~ sw(csw(a, b), c)", "formula:8", "do not stand in each other"},
        {"c(y, sw(a, b)) ~ x", "formula:6", "do not stand in each other"},
        {"sw(y, z) ~ x", "formula:1", "c(y1, y2)"},
        {"y ~ sw(a = b)", "formula:8", "named argument"},
        {"y ~ x:sw0(a, b)", "formula:7", "a summand by itself"},
        {"y ~ mvsw(a,b,c,d,e,f,g,h,i,j,k,l,m)", "formula:5", "at most 12"},
        {"y ~ mvsw(a,b,c,d,e,f,g,h,i,j,k,l) | sw(f, g)", "formula:5", "more than 4096"},
        {"y ~ sw(a", "formula:9", "the text ends"},
    };
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        texts t = {.n = 0};
        CHECK_STATUS(frg_fe_expand(ctx, table[i].formula, keep_text, &t), FRG_BAD_ARG);
        CHECK_TEXT(frg_error_where(ctx), table[i].where);
        CHECK_SAYS(strstr(frg_message(ctx), table[i].says) != NULL, "'%s': '%s' does not say '%s'",
                   table[i].formula, frg_message(ctx), table[i].says);
        CHECK_INT(t.n, 0);
    }
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

/* ---- data ------------------------------------------------------------------------------------ */

enum { ROWS = 700, LEVELS = 5 };

/** y, z; a, b, c (with missing values), log(a) as a column's name; f, g, t; region with missing
 *  values, and one level of a single row; w > 0. */
static frg_table *make_data(frg_context *ctx, int64_t n)
{
    static const char *const numbers[] = {"y", "z", "a", "b", "c", "log(a)", "w"};
    static const char *const integers[] = {"f", "g", "t"};
    static const char *const labels[LEVELS] = {"north", "south", "east", "west", "island"};
    static const int64_t levels[] = {60, 12, 6};
    frg_table *table = NULL;
    double *const x = malloc((size_t)n * sizeof *x);
    int64_t *const k = malloc((size_t)n * sizeof *k);
    int32_t *const r = malloc((size_t)n * sizeof *r);
    CHECK_OK(ctx, frg_table_create(&table, ctx, n));
    for (int c = 0; c < 7; c++) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = c == 2 || c == 6 ? 0.5 + test_uniform() : test_normal();
            x[i] = c == 4 && test_below(20) == 0 ? (double)NAN : x[i];
        }
        CHECK_OK(ctx, frg_table_add_numbers(table, numbers[c], x));
    }
    for (int c = 0; c < 3; c++) {
        for (int64_t i = 0; i < n; i++) {
            k[i] = test_below(levels[c]);
        }
        CHECK_OK(ctx, frg_table_add_integers(table, integers[c], k));
    }
    for (int64_t i = 0; i < n; i++) {
        r[i] = i == n / 2 ? LEVELS - 1 : (int32_t)test_below(LEVELS) - 1;
    }
    CHECK_OK(ctx, frg_table_add_codes(table, "region", r, labels, LEVELS));
    free(x);
    free(k);
    free(r);
    return table;
}

/* ---- against single fits --------------------------------------------------------------------- */

/** Everything that a fit says, but its times, is that of the other. */
static void check_equal(const frg_fe *got, const frg_fe *want, int64_t rows)
{
    const frg_fe_result *const r = frg_fe_get(got), *const s = frg_fe_get(want);
    const int64_t k = s->n_coefficients;
    double *const e = malloc((size_t)(4 * rows) * sizeof *e);
    CHECK_TEXT(r->formula, s->formula);
    CHECK_TEXT(r->depvar, s->depvar);
    const int64_t counts[][2] = {{r->n, s->n},
                                 {r->n_missing, s->n_missing},
                                 {r->n_subset, s->n_subset},
                                 {r->n_zero_weight, s->n_zero_weight},
                                 {r->n_singleton, s->n_singleton},
                                 {r->singleton_rounds, s->singleton_rounds},
                                 {r->n_coefficients, k},
                                 {r->n_dropped, s->n_dropped},
                                 {r->n_vcov, s->n_vcov},
                                 {r->n_factors, s->n_factors},
                                 {r->rank, s->rank},
                                 {r->df_residual, s->df_residual},
                                 {r->n_demeaned, s->n_demeaned},
                                 {r->converged, s->converged},
                                 {r->n_components, s->n_components}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (!CHECK_SAYS(counts[i][0] == counts[i][1], "'%s': count %zu is %lld, expected %lld",
                        s->formula, i, (long long)counts[i][0], (long long)counts[i][1])) {
            free(e);
            return;
        }
    }
    const int before = test_now.failures;
    CHECK_BITS(&r->r2, &s->r2, 6 * sizeof(double));
    for (int v = 0; v < s->n_vcov; v++) {
        CHECK_BITS(r->vcov[v].matrix, s->vcov[v].matrix, (size_t)(k * k) * sizeof(double));
        CHECK_BITS(&r->vcov[v].wald_f, &s->vcov[v].wald_f, sizeof(double));
        for (int64_t i = 0; i < k; i++) {
            const frg_coefficient *const a = &r->vcov[v].coefficients[i], *const b =
                                                                              &s->vcov[v]
                                                                                   .coefficients[i];
            CHECK_TEXT(a->term, b->term);
            CHECK_BITS(&a->estimate, &b->estimate, 6 * sizeof(double));
        }
    }
    for (int i = 0; i < s->n_dropped; i++) {
        CHECK_TEXT(r->dropped[i].term, s->dropped[i].term);
        CHECK_TEXT(r->dropped[i].reason, s->dropped[i].reason);
    }
    for (int64_t i = 0; i < s->n_demeaned && s->n_factors > 0; i++) {
        CHECK_TEXT(r->column_names[i], s->column_names[i]);
        CHECK_BITS(&r->columns[i].audit, &s->columns[i].audit, 2 * sizeof(double));
        CHECK_INT(r->columns[i].iterations, s->columns[i].iterations);
    }
    CHECK_STATUS(frg_fe_residuals(got, e, e + rows), FRG_OK);
    CHECK_STATUS(frg_fe_residuals(want, e + 2 * rows, e + 3 * rows), FRG_OK);
    CHECK_BITS(e, e + 2 * rows, (size_t)(2 * rows) * sizeof *e);
    CHECK_SAYS(test_now.failures == before, "of '%s' at %s", s->formula,
               s->split_value ? s->split_value : "all rows");
    free(e);
}

static frg_fe_opts options_of(const char *vcov)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = vcov;
    return o;
}

/** The models of `formula` against single fits of what it stands for, at each level of a split. */
static void compare(frg_context *ctx, const frg_table *data, const char *formula,
                    const frg_fe_opts *o)
{
    frg_fe_many *m = NULL;
    texts t = {.n = 0};
    if (!CHECK_OK(ctx, frg_fe_fit_many(&m, ctx, formula, data, o)) ||
        !CHECK_OK(ctx, frg_fe_expand(ctx, formula, keep_text, &t))) {
        return;
    }
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        const frg_fe_result *const r = frg_fe_get(frg_fe_many_get(m, i));
        frg_fe_opts single = *o;
        frg_fe *want = NULL;
        single.split = r->split_name;
        single.split_value = r->split_value;
        single.fsplit = NULL;
        CHECK_TEXT(r->formula, t.text[i % t.n]);
        CHECK_STATUS(frg_fe_many_status(m, i), FRG_OK);
        if (CHECK_OK(ctx, frg_fe_fit(&want, ctx, r->formula, data, &single))) {
            check_equal(frg_fe_many_get(m, i), want, frg_table_rows(data));
        }
        frg_fe_destroy(want);
    }
    frg_fe_many_destroy(m);
}

static void single_fits(void)
{
    static const char *const formulas[] = {
        "c(y, z) ~ csw(a, b, c) | f + g",
        "c(y, log(a)) ~ `log(a)` + log(a) + sw0(b, a:b, i(t), i(t, b, ref = 2)) | csw0(f, g^t)",
        "y ~ mvsw(a, z, region) | f[b]",
        "c(y, a) ~ y + sw(a, z, factor(t)) | sw(f, f[[w]], g[w] + t)",
        "y ~ csw(a, b, I(a + b)) - 1",
        "sqrt(a) ~ I(a > 1) + sw(b, a*b)",
        "c(y, 1) ~ sw(a, z)",
    };
    static const char *const vcovs[] = {"iid", "hc1", "cluster=f", "cluster=g+t"};
    frg_context *const ctx = test_context();
    frg_table *const data = make_data(ctx, ROWS);
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        frg_fe_opts o = options_of(vcovs[i % 4]);
        o.weights = test_below(2) ? "w" : NULL;
        o.subset = test_below(2) ? "t > 0" : NULL;
        o.vcov[1] = "hc1";
        o.n_vcov = 2;
        compare(ctx, data, formulas[i], &o);
    }
    frg_table_destroy(data);
    CHECK_INT(frg_bytes_held(ctx) > 0, 0 + (frg_warning_count(ctx) > 0));
    frg_context_destroy(ctx);
}

/** Samples by the levels of a column; one of them has a single row and is left out by name. */
static void samples(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data = make_data(ctx, ROWS);
    frg_fe_opts o = options_of("cluster=g");
    o.split = "region";
    compare(ctx, data, "y ~ csw(a, b) | g", &o);
    bool warned = false;
    for (int i = 0; i < frg_warning_count(ctx); i++) {
        warned |= strcmp(frg_warning_code(ctx, i), "FRG-FE-150") == 0 &&
                  strstr(frg_warning_message(ctx, i), "island") != NULL;
    }
    CHECK(warned);
    o.split = NULL;
    o.fsplit = "t";
    frg_fe_many *m = NULL;
    CHECK_OK(ctx, frg_fe_fit_many(&m, ctx, "c(y, z) ~ a | g", data, &o));
    CHECK_INT(frg_fe_many_count(m), 14);
    CHECK(frg_fe_get(frg_fe_many_get(m, 1))->split_name == NULL);
    CHECK_TEXT(frg_fe_get(frg_fe_many_get(m, 2))->split_value, "0");
    CHECK_TEXT(frg_fe_get(frg_fe_many_get(m, 13))->split_value, "5");
    CHECK_TEXT(frg_fe_get(frg_fe_many_get(m, 13))->depvar, "z");
    int64_t n = 0;
    for (int64_t i = 2; i < 14; i += 2) {
        n += frg_fe_get(frg_fe_many_get(m, i))->n + frg_fe_get(frg_fe_many_get(m, i))->n_singleton;
    }
    CHECK_INT(n, ROWS);
    compare(ctx, data, "c(y, z) ~ a | g", &o);
    frg_fe_many_destroy(m);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/** A fit that was taken lives on without the others; effects are kept as of a single one. */
static void lives(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data = make_data(ctx, 300);
    frg_fe_opts o = options_of("iid");
    frg_fe_many *m = NULL;
    frg_fe *first, *want = NULL;
    CHECK_OK(ctx, frg_fe_fit_many(&m, ctx, "c(y, z) ~ csw(a, b) | f", data, &o));
    CHECK_INT(frg_fe_many_count(m), 4);
    first = frg_fe_many_take(m, 2);
    CHECK(first && !frg_fe_many_take(m, 2) && !frg_fe_many_get(m, 2) && !frg_fe_many_get(m, 4));
    frg_fe_many_destroy(m);
    const frg_fe_vcov *v;
    CHECK_OK(ctx, frg_fe_vcov_add(first, "cluster=g", NULL, &v));
    CHECK_OK(ctx, frg_fe_fit(&want, ctx, "z ~ a | f", data, &o));
    check_equal(first, want, 300);
    frg_fe_destroy(first);
    frg_fe_destroy(want);
    o.keep_effects = 1;
    CHECK_OK(ctx, frg_fe_fit_many(&m, ctx, "c(y, z) ~ a | f", data, &o));
    frg_table *effects = NULL;
    CHECK_OK(ctx, frg_fe_effects(frg_fe_many_get(m, 1), &effects));
    frg_table_destroy(effects);
    frg_fe_many_destroy(m);
    CHECK_INT(frg_fe_many_count(NULL), 0);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

static void refused_calls(void)
{
    frg_context *const ctx = test_context();
    frg_table *const data = make_data(ctx, 100);
    static const struct {
        const char *formula, *split, *fsplit, *value;
        frg_status status;
        const char *says;
    } table[] = {
        {"y ~ sw(a, q)", NULL, NULL, NULL, FRG_BAD_DATA, "'q' is not in the data"},
        {"y ~ a", "regio", NULL, NULL, FRG_BAD_DATA, "did you mean"},
        {"y ~ a", "region", "region", NULL, FRG_BAD_ARG, "split and fsplit"},
        {"y ~ a", NULL, NULL, "north", FRG_BAD_ARG, "which is not given"},
        {"y ~ a", "region", NULL, "moon", FRG_BAD_ARG, "'moon' is no level of 'region'"},
        {"y ~ sw(1, 1) | f", NULL, NULL, NULL, FRG_OK, NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_fe_opts o = options_of("iid");
        frg_fe_many *m = (frg_fe_many *)(uintptr_t)17;
        o.split = table[i].split;
        o.fsplit = table[i].fsplit;
        o.split_value = table[i].value;
        const frg_status status = frg_fe_fit_many(&m, ctx, table[i].formula, data, &o);
        CHECK_SAYS(status == table[i].status, "'%s' gave %s: %s", table[i].formula,
                   frg_status_name(status), frg_message(ctx));
        CHECK_SAYS(!table[i].says || (strstr(frg_message(ctx), table[i].says) && !m), "'%s': '%s'",
                   table[i].formula, frg_message(ctx));
        frg_fe_many_destroy(status < 0 ? NULL : m);
    }
    frg_fe *f;
    frg_fe_opts o = options_of("iid");
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ csw(a, b)", data, &o), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_fit(&f, ctx, "c(y, z) ~ a", data, &o), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ a | csw(f, g)", data, &o), FRG_BAD_ARG);
    o.split = "region";
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ a", data, &o), FRG_BAD_ARG);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static frg_status many_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    test_now.random = 5; /* the same data each time */
    frg_table *data = NULL;
    double x[48];
    int64_t k[48];
    frg_status status = frg_table_create(&data, ctx, 48);
    for (int c = 0; c < 4 && status >= 0; c++) {
        static const char *const names[] = {"y", "z", "a", "b"};
        for (int i = 0; i < 48; i++) {
            x[i] = test_normal();
        }
        status = frg_table_add_numbers(data, names[c], x);
    }
    for (int c = 0; c < 2 && status >= 0; c++) {
        for (int i = 0; i < 48; i++) {
            k[i] = (c ? i / 2 : i) % 4;
        }
        status = frg_table_add_integers(data, c ? "g" : "f", k);
    }
    frg_fe_many *m = NULL;
    frg_fe_opts o = options_of("cluster=f");
    o.fsplit = "g";
    if (status >= 0) {
        status = frg_fe_fit_many(&m, ctx, "c(y, z) ~ csw(a, b) | f", data, &o);
    }
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        const frg_fe_result *const r = frg_fe_get(frg_fe_many_get(m, i));
        fault_hash(hash, &r->coefficients[0].estimate, 6 * sizeof(double));
    }
    frg_fe_many_destroy(m);
    frg_table_destroy(data);
    return status;
}

static void memory(void)
{
    CHECK(fault_sweep("several models", many_body, NULL, 1) > 100);
}

static const test_case cases[] = {
    {"formulas", formulas},
    {"refused formulas", refused_formulas},
    {"single fits", single_fits},
    {"samples", samples},
    {"lives", lives},
    {"refused calls", refused_calls},
    {"memory", memory},
};

TEST_MAIN(cases)
