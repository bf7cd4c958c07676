/* test_formula.c - formulas: what they mean, and where what is wrong with them. */
#include "formula/formula.h"
#include "formula/program.h"
#include "test.h"

/* ---- meanings -------------------------------------------------------------------------------- */

/** "y ~ [1 +] a + b:c | f^g{x} + h{only z}" of a parsed formula. */
static void describe(const frgi_formula *f, char *out, size_t room)
{
    size_t at = (size_t)snprintf(out, room, "%s ~%s", frgi_names_text(&f->names, f->depvar),
                                 f->intercept ? " 1" : "");
    for (int32_t t = 0; t < f->n_terms; t++) {
        const char *const before = t < f->n_exogenous || t > f->n_exogenous + f->n_endogenous
                                       ? " + "
                                   : t == f->n_exogenous + f->n_endogenous ? " instruments "
                                   : t == f->n_exogenous                   ? " endogenous "
                                                                           : " + ";
        at += (size_t)snprintf(out + at, room - at, "%s", before);
        for (int32_t k = 0; k < f->terms[t].n; k++)
            at += (size_t)snprintf(out + at, room - at, "%s%s", k ? ":" : "",
                                   frgi_names_text(&f->names, f->terms[t].atom[k]));
    }
    for (int q = 0; q < f->n_effects; q++) {
        at += (size_t)snprintf(out + at, room - at, " | %s",
                               frgi_names_text(&f->names, f->effects[q].key.name));
        for (int s = 0; s < f->n_slopes; s++)
            if (f->slopes[s].effect == q)
                at += (size_t)snprintf(out + at, room - at, "{%s}",
                                       frgi_names_text(&f->names, f->slopes[s].name));
        if (!f->effects[q].intercept)
            at += (size_t)snprintf(out + at, room - at, " alone");
    }
}

static void meanings(void)
{
    static const struct {
        const char *formula, *meaning;
    } table[] = {
        {"y ~ x", "y ~ 1 + x"},
        {"y~x1+x2|f1+f2", "y ~ 1 + x1 + x2 | f1 | f2"},
        {"y ~ 1 | f", "y ~ 1 | f"},
        {"y ~ 0 + x", "y ~ + x"},
        {"y ~ x - 1", "y ~ + x"},
        {"y ~ -1 + x", "y ~ + x"},
        {"y ~ x + 1", "y ~ 1 + x"},
        {"y ~ a*b", "y ~ 1 + a + b + a:b"},
        {"y ~ a*b*c", "y ~ 1 + a + b + c + a:b + a:c + b:c + a:b:c"},
        {"y ~ a:b + a", "y ~ 1 + a + a:b"},
        {"y ~ (a + b):c", "y ~ 1 + a:c + b:c"},
        {"y ~ (a + b)*c - a", "y ~ 1 + b + c + a:c + b:c"},
        {"y ~ a + b + a + b:a + a:b", "y ~ 1 + a + b + b:a"},
        {"y ~ a:a", "y ~ 1 + a"},
        {"log(y) ~ log( x )+I( x ^2/3 )", "log(y) ~ 1 + log(x) + I(x^2/3)"},
        {"y ~ x^2", "y ~ 1 + I(x^2)"},
        {"y ~ I(a+b*-c)", "y ~ 1 + I(a + b * -c)"},
        {"y ~ I(a**2)", "y ~ 1 + I(a^2)"},
        {"y/100 ~ x", "y/100 ~ 1 + x"},
        {"y ~ `a b` + .x.1", "y ~ 1 + a b + .x.1"},
        {"y ~ i(year,ref=1980) | f", "y ~ 1 + i(year, ref = 1980) | f"},
        {"y ~ i(f, x) + i(f, i.g, ref2 = c(1, -2))",
         "y ~ 1 + i(f, x) + i(f, i.g, ref2 = c(1, -2))"},
        {"y ~ x | f1^f2 + g", "y ~ 1 + x | f1^f2 | g"},
        {"y ~ x | f1 ^ (f2^f3)", "y ~ 1 + x | f1^f2^f3"},
        {"y ~ x | f[z]", "y ~ 1 + x | f{z}"},
        {"y ~ x | f[[z]]", "y ~ 1 + x | f{z} alone"},
        {"y ~ x | f[z1, log(z2)] + g", "y ~ 1 + x | f{z1}{log(z2)} | g"},
        {"y ~ x | f + f[[z]]", "y ~ 1 + x | f{z}"},
        {"y ~ x | f[[z]] + g + f[[w]]", "y ~ 1 + x | f{z}{w} alone | g"},
        {"y ~ x | f^g[z]", "y ~ 1 + x | f^g{z}"},
        {"y ~ x | f + f", "y ~ 1 + x | f"},
        {"y ~ x | 0", "y ~ 1 + x"},
        {"\ty\n~\r\nx ", "y ~ 1 + x"},
        {"y ~ \xc3\xa9t\xc3\xa9 | f", "y ~ 1 + \xc3\xa9t\xc3\xa9 | f"},
        {"y ~ I(a > 1 & b != 2 | !c)", "y ~ 1 + I(a > 1 & b != 2 | !c)"},
        {"y ~ I(s %in% c('a', \"b\"))", "y ~ 1 + I(s %in% c('a', \"b\"))"},
        {"y ~ x + I(1e-3 * z)", "y ~ 1 + x + I(1e-3 * z)"},
        {"y ~ x | a ~ z", "y ~ 1 + x endogenous a instruments z"},
        {"y ~ x + w | f | a + b ~ z1 + z1*z2 - 1",
         "y ~ 1 + x + w endogenous a + b instruments z1 + z2 + z1:z2 | f"},
    };
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frgi_formula f;
        char got[1024];
        if (!CHECK_OK(ctx, frgi_formula_create(&f, ctx, table[i].formula,
                                               (int64_t)strlen(table[i].formula))))
            continue;
        describe(&f, got, sizeof got);
        CHECK_TEXT(got, table[i].meaning);
        frgi_formula_destroy(&f, ctx);
    }
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

/* ---- what is wrong --------------------------------------------------------------------------- */

static void mistakes(void)
{
    static const struct {
        const char *formula, *where, *says;
    } table[] = {
        {"", "formula:1", "the text ends"},
        {"y", "formula:2", "expected '~'"},
        {"~ x", "formula:1", "the dependent variable"},
        {"y ~", "formula:4", "a column, a number or '('"},
        {"y ~ x +", "formula:8", "the text ends"},
        {"y ~ x + * z", "formula:9", "found '*'"},
        {"y ~ x z", "formula:7", "found 'z'"},
        {"y ~ (x + z", "formula:11", "')'"},
        {"y ~ x)", "formula:6", "found ')'"},
        {"y ~ x | f | g", "formula:13", "endogenous ~ instruments"},
        {"y ~ x | f | a ~ b | c", "formula:19", "three parts"},
        {"y ~ x |", "formula:8", "the text ends"},
        {"y ~ | f", "formula:5", "found '|'"},
        {"y ~ x ~ z", "formula:9", "right of a bar"},
        {"y ~ foo(x)", "formula:5", "this function is not known"},
        {"y ~ factor(x, z)", "formula:5", "takes one column"},
        {"y ~ C(log(x))", "formula:5", "takes one column"},
        {"y ~ x + log(factor(z))", "formula:13", "this function is not known"},
        {"y ~ log(x, 2)", "formula:5", "takes one argument"},
        {"y ~ log()", "formula:5", "takes one argument"},
        {"y ~ x/z", "formula:5", "write I(...)"},
        {"y ~ x > 1", "formula:5", "write I(...)"},
        {"y ~ 2", "formula:5", "0 or 1, the intercept"},
        {"y ~ 'x'", "formula:5", "this is no term"},
        {"y ~ 'x", "formula:5", "not closed"},
        {"y ~ `x", "formula:5", "not closed"},
        {"y ~ x # z", "formula:7", "found '#'"},
        {"y ~ f[x]", "formula:5", "right of the bar"},
        {"y ~ x | f:g", "formula:9", "f1^f2"},
        {"y ~ x | log(f)", "formula:9", "expected a column"},
        {"y ~ x | f[]", "formula:9", "missing in the brackets"},
        {"y ~ x | f[[x]", "formula:14", "']]'"},
        {"y ~ x | 2", "formula:9", "expected a column"},
        {"y ~ i()", "formula:5", "i() wants a column"},
        {"y ~ i(f, bins=3)", "formula:10", "i() knows ref="},
        {"y ~ i(f, g, h)", "formula:13", "one or two columns"},
        {"y ~ i(log(f))", "formula:7", "one or two columns"},
        {"y ~ i(f, ref=x)", "formula:14", "a level is"},
        {"y ~ (a + b)^2", "formula:5", "write I(...) for a power"},
        {"y ~ I(x = 2)", "formula:7", "compare with =="},
        {"y ~ I(a < b < c)", "formula:13", "parentheses around a comparison"},
        {"y ~ I(c(1, 2))", "formula:7", "right of %in%"},
        {"y ~ I(a %in% b)", "formula:7", "wants c(...)"},
        {"y ~ I(a %in% c(b))", "formula:16", "numbers or strings alone"},
        {"y ~ I(f[x])", "formula:7", "stand right of the bar"},
        {"y ~ x | a^b^c^d^e^f^g^h^k", "formula:25", "at most 8 columns"},
        {"y ~ I(a:b)", "formula:7", "makes no number"},
        {"\xc3\xa9 ~ \xc3\xa9 + ?", "formula:9",
         "found '?'"}, /* columns count letters, not bytes */
        {"y ~ a:b:c:d:e:f:g:h:k", "formula:5", "at most 8"},
        {"c(y1, y2) ~ x", "formula:1", "several models"},
        {"y ~ sw(x1, x2)", "formula:5", "several models"},
        {"y ~ x:csw0(x1, x2) | f", "formula:7", "several models"},
        {"y ~ log(mvsw(x1, x2))", "formula:9", "several models"},
        {"y ~ x | csw(f1, f2)", "formula:9", "several models"},
    };
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frgi_formula f;
        CHECK_STATUS(
            frgi_formula_create(&f, ctx, table[i].formula, (int64_t)strlen(table[i].formula)),
            FRG_BAD_ARG);
        CHECK_TEXT(frg_error_code(ctx), "FRG-FE-001");
        CHECK_SAYS(strcmp(frg_error_where(ctx), table[i].where) == 0,
                   "'%s': at %s, expected %s (%s)", table[i].formula, frg_error_where(ctx),
                   table[i].where, frg_message(ctx));
        CHECK_SAYS(strstr(frg_message(ctx), table[i].says) != NULL, "'%s': '%s' does not say '%s'",
                   table[i].formula, frg_message(ctx), table[i].says);
    }
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

static void later_parts(void)
{
    static const struct {
        const char *formula, *says;
    } table[] = {
        {"y ~ i(f, bin = c(1, 2))", "bin"},
        {"y ~ .", "'.'"},
    };
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frgi_formula f;
        CHECK_STATUS(
            frgi_formula_create(&f, ctx, table[i].formula, (int64_t)strlen(table[i].formula)),
            FRG_UNSUPPORTED);
        CHECK_SAYS(strstr(frg_message(ctx), table[i].says) != NULL, "'%s': '%s' does not say '%s'",
                   table[i].formula, frg_message(ctx), table[i].says);
    }
    frg_context_destroy(ctx);
}

/** Nesting ends at 64 with an error; chains of any length are no nesting. */
static void depth_and_length(void)
{
    frg_context *const ctx = test_context();
    static const char *const openings[] = {"(", "-", "log(", "!"};
    frgi_formula f;
    for (size_t k = 0; k < sizeof openings / sizeof *openings; k++) {
        char text[1024] = "y ~ ";
        for (int i = 0; i < 200; i++)
            strcat(text, openings[k]);
        strcat(text, "x");
        CHECK_STATUS(frgi_formula_create(&f, ctx, text, (int64_t)strlen(text)), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "nested more than 64 deep") != NULL);
    }
    char many[1024] = "y ~ x | f0";
    for (int i = 1; i < 65; i++)
        sprintf(many + strlen(many), " + f%d", i);
    CHECK_STATUS(frgi_formula_create(&f, ctx, many, (int64_t)strlen(many)), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "'f64': at most 64 effects") != NULL);
    many[strlen(many) - strlen(" + f64")] = '\0';
    if (CHECK_OK(ctx, frgi_formula_create(&f, ctx, many, (int64_t)strlen(many)))) {
        CHECK_INT(f.n_effects, 64);
        frgi_formula_destroy(&f, ctx);
    }
    enum { TERMS = 20000 };
    char *const text = calloc(TERMS + 1, 16);
    strcpy(text, "y ~ x");
    size_t at = strlen(text);
    for (int i = 0; i < TERMS; i++)
        at += (size_t)sprintf(text + at, " + x%d", i % (TERMS / 2));
    if (CHECK_OK(ctx, frgi_formula_create(&f, ctx, text, (int64_t)at))) {
        CHECK_INT(f.n_terms, TERMS / 2 + 1);
        frgi_formula_destroy(&f, ctx);
    }
    at = (size_t)sprintf(text, "y ~ I(x");
    for (int i = 0; i < TERMS; i++)
        at += (size_t)sprintf(text + at, " + %d", i % 10);
    at += (size_t)sprintf(text + at, ")");
    if (CHECK_OK(ctx, frgi_formula_create(&f, ctx, text, (int64_t)at)))
        frgi_formula_destroy(&f, ctx);
    at = (size_t)sprintf(text, "y ~ (a+b+c+d+e+f+g)");
    for (int i = 0; i < 9; i++)
        at += (size_t)sprintf(text + at, "*(a%d+b%d+c%d+d%d+e%d+f%d+g%d)", i, i, i, i, i, i, i);
    CHECK_STATUS(frgi_formula_create(&f, ctx, text, (int64_t)at), FRG_BAD_ARG);
    CHECK_STATUS(frgi_formula_create(&f, ctx, "y ~ x\0z", 7), FRG_BAD_ARG);
    free(text);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

/* ---- values ---------------------------------------------------------------------------------- */

static double expression(frg_context *ctx, const frg_table *table, const char *text, int64_t row)
{
    frgi_syntax s;
    frgi_program p = {0};
    double value[FRGI_BLOCK] = {0}, scratch[16 * FRGI_BLOCK];
    CHECK_OK(ctx, frgi_syntax_expression(&s, ctx, text, (int64_t)strlen(text), "expression"));
    CHECK_OK(ctx, frgi_formula_check_expression(&s, ctx, s.section[0]));
    if (CHECK_OK(ctx, frgi_program_create(&p, ctx, &s, s.section[0], table)) &&
        CHECK(p.stack <= 16))
        frgi_program_block(&p, NULL, row, 1, value, scratch);
    frgi_program_destroy(&p, ctx);
    frgi_syntax_free(&s, ctx);
    return value[0];
}

static void values(void)
{
    static const struct {
        const char *text;
        double want; /* NaN: missing */
    } table[] = {
        {"x", 3},
        {"-x^2", -9},
        {"(-x)^2", 9},
        {"2^3^2", 512},
        {"2^-1", 0.5},
        {"1 - 2 - 3", -4},
        {"8/4/2", 1},
        {"2 + 3*4", 14},
        {"1e3 + .5 + 2.", 1002.5},
        {"1.5e-2", 0.015},
        {"7L", 7},
        {"log(exp(x))", 3},
        {"sqrt(abs(-16))", 4},
        {"I(x)*n", 12},
        {"x > 2 & n < 2", 0},
        {"x > 2 | n < 2", 1},
        {"!x == 3", 0}, /* not (x == 3) */
        {"x >= 3 & x <= 3 & x != 4", 1},
        {"s == 'b'", 1},
        {"'a' != s", 1},
        {"s == 'nowhere'", 0},
        {"s %in% c('c', 'b')", 1},
        {"x %in% c(1, -3)", 0},
        {"n %in% c(-4, 4)", 1},
        {"t + TRUE", 2},
        {"m", NAN},
        {"m > 1", NAN},
        {"FALSE & m > 1", 0},
        {"TRUE & m > 1", NAN},
        {"TRUE | m > 1", 1},
        {"FALSE | m > 1", NAN},
        {"!(m > 1)", NAN},
        {"log(-x)", NAN},
        {"1/0", INFINITY},
    };
    frg_context *const ctx = test_context();
    frg_table *data;
    static const char csv[] = "x,n,s,t,m\n1,2,a,FALSE,0\n3,4,b,TRUE,\n5,6,c,FALSE,9.5\n";
    if (CHECK_OK(ctx, frg_table_parse(&data, ctx, csv, sizeof csv - 1, "memory", NULL))) {
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            const double got = expression(ctx, data, table[i].text, 1);
            CHECK_SAYS(isnan(table[i].want)
                           ? isnan(got)
                           : got == table[i].want || fabs(got - table[i].want) < 1e-15 * fabs(got),
                       "%s is %.17g, expected %.17g", table[i].text, got, table[i].want);
        }
        frg_table_destroy(data);
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"meanings", meanings},       {"mistakes", mistakes},
    {"later_parts", later_parts}, {"depth_and_length", depth_and_length},
    {"values", values},
};
TEST_MAIN(cases)
