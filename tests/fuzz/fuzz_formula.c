/* fuzz_formula.c - formulas and expressions from bytes: parsed, interpreted, printed, and where
 * they parse, fitted.
 *
 * A small table stands behind, with columns of every type, so that what parses also meets the
 * evaluator, the model matrix and the covariances.  Long inputs stop at the parser: a fit of a
 * thousand terms on nine rows tests nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "formula/formula.h"
#include "formula/program.h"
#include "fourge/fe.h"

#include "fuzz.h"

static const char csv[] =
    "y,x,z,f,g,s,b\n1,2,1.5,1,1,a,TRUE\n3,1,2,1,2,b,FALSE\n2,5,,1,1,a,TRUE\n6,4,0,2,2,b,TRUE\n"
    "5,3,1,2,1,a,FALSE\n9,8,4,2,2,b,TRUE\n4,7,3,3,1,a,FALSE\n8,6,9,3,2,c,TRUE\n7,9,2,3,1,a,FALSE\n";

enum { FITTED = 200 };

/** The parts of the interpreter that a fit with this formula does not reach. */
static void print_all(frg_context *ctx, const frgi_formula *f)
{
    frgi_text text = {0};
    for (int32_t i = 0; i < f->syntax.n_nodes && i < FITTED; i++) {
        text.length = 0;
        if (frgi_syntax_text(&f->syntax, ctx, i, &text) < 0)
            abort();
    }
    frgi_text_free(ctx, &text);
}

static void evaluate(frg_context *ctx, const frg_table *table, const char *text, size_t size)
{
    frgi_syntax s;
    frgi_program p = {0};
    if (frgi_syntax_expression(&s, ctx, text, (int64_t)size, "fuzz") >= 0 &&
        frgi_formula_check_expression(&s, ctx, s.section[0]) >= 0 &&
        frgi_program_create(&p, ctx, &s, s.section[0], table) >= 0) {
        double out[FRGI_BLOCK];
        double *const scratch = malloc(sizeof *scratch * FRGI_BLOCK * (size_t)(p.stack + 1));
        if (scratch)
            frgi_program_block(&p, NULL, 0, frg_table_rows(table), out, scratch);
        free(scratch);
    }
    frgi_program_destroy(&p, ctx);
    frgi_syntax_free(&s, ctx);
}

static void fit(frg_context *ctx, const frg_table *table, const char *text, size_t size)
{
    char *const formula = malloc(size + 1);
    if (!formula)
        return;
    memcpy(formula, text, size);
    formula[size] = '\0';
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[1] = "cluster=g";
    o.n_vcov = 2;
    o.keep_singletons = 1;
    frg_fe *f = NULL;
    if ((frg_fe_fit(&f, ctx, formula, table, &o) < 0) != (f == NULL))
        abort();
    frg_fe_destroy(f);
    o.vcov[0] = formula; /* the same text as a covariance and as a small-sample rule */
    o.ssc = size % 2 ? formula : NULL;
    f = NULL;
    if (frg_fe_fit(&f, ctx, "y ~ x", table, &o) >= 0)
        frg_fe_destroy(f);
    free(formula);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frg_context *const ctx = fuzz_context(64 << 20);
    frg_table *table = NULL;
    frgi_formula f;
    const char *const text = (const char *)data;
    if (!ctx)
        abort();
    if (frg_table_parse(&table, ctx, csv, sizeof csv - 1, "memory", NULL) < 0)
        abort();
    if (frgi_formula_create(&f, ctx, text, (int64_t)size) >= 0) {
        print_all(ctx, &f);
        frgi_formula_destroy(&f, ctx);
    }
    evaluate(ctx, table, text, size);
    if (size <= FITTED)
        fit(ctx, table, text, size);
    frg_table_destroy(table);
    frg_context_destroy(ctx);
    return 0;
}
