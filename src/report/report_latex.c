/* report_latex.c - a fragment for \input: sections, running text, and booktabs tables.
 *
 * Decimal points are lined up by \phantom figures, so that no package but booktabs is needed.
 * Plots are left to the HTML report.
 */
#include <string.h>

#include "report/report_parts.h"

static const frgi_escapes *const TEX = &frgi_escapes_latex;

/** A number as mathematics: minus signs, and powers of ten for exponents.  Anything else is
 *  text. */
static void put_words(frgi_sink *k, const char *s)
{
    frgi_number_parts p;
    if (!frgi_number_split(s, &p) || (p.sign < 0 && p.exponent < 0)) {
        frgi_put_escaped(k, s, TEX, false);
        return;
    }
    const int from = p.sign >= 0 ? p.sign : p.whole;
    char lead[4] = {0}; /* a bracket, a '<', a plus */
    memcpy(lead, s, (size_t)from);
    frgi_put_escaped(k, lead, TEX, false);
    frgi_put(k, "$");
    frgi_put_bytes(k, s + from, (size_t)(p.mantissa - from));
    if (p.exponent >= 0) {
        frgi_put(k, p.negative ? "\\times 10^{-" : "\\times 10^{");
        frgi_put_bytes(k, s + p.exponent, (size_t)(p.end - p.exponent));
        frgi_put(k, "}");
    }
    frgi_put(k, "$");
    frgi_put_escaped(k, s + p.end, TEX, false);
}

/** Invisible characters as wide as what the longest tail of the column has more. */
static void put_phantom(frgi_sink *k, const frgi_report_table *t, int64_t cell, int64_t column_tail)
{
    int64_t tail;
    if (!frgi_cell_tail(t, cell, &tail) || tail == column_tail)
        return;
    frgi_put(k, "\\phantom{");
    if (tail == 0) {
        frgi_put(k, ".");
        tail++;
    }
    frgi_put_times(k, "0", column_tail - tail);
    frgi_put(k, "}");
}

static frg_status column_tails(frgi_sink *k, const frgi_report_table *t, int64_t **tails)
{
    TRY(NEW(k->ctx, tails, t->n_columns, "report"));
    for (int64_t j = 0; j < t->n_columns; j++)
        (*tails)[j] = frgi_column_tail(t, j);
    return FRG_OK;
}

static void put_rows(frgi_sink *k, const frgi_report_table *t, const int64_t *tails)
{
    for (int64_t i = 0; i < t->n_cells; i++) {
        const int64_t j = i % t->n_columns;
        char buffer[32];
        frgi_put(k, j ? " & " : "  ");
        put_words(k, frgi_cell_words(&t->cells[i], buffer));
        put_phantom(k, t, i, tails[j]);
        frgi_put(k, j + 1 == t->n_columns ? " \\\\\n" : "");
    }
}

static void put_table(frgi_sink *k, const frgi_element *e)
{
    const frgi_report_table *const t = &e->table;
    int64_t *tails;
    const frg_status status = column_tails(k, t, &tails);
    if (status < 0) {
        k->status = status;
        return;
    }
    frgi_put(k, "\\begin{table}[htbp]\n\\centering\n");
    if (e->text[0]) {
        frgi_put(k, "\\caption{");
        frgi_put_escaped(k, e->text, TEX, true);
        frgi_put(k, "}\n");
    }
    frgi_put(k, "\\begin{tabular}{@{}");
    for (int64_t j = 0; j < t->n_columns; j++)
        frgi_put(k, t->columns[j].align == FRG_RIGHT ? "r" : "l");
    frgi_put(k, "@{}}\n\\toprule\n");
    for (int64_t j = 0; j < t->n_columns; j++) {
        frgi_put(k, j ? " & " : "  ");
        frgi_put_escaped(k, t->columns[j].name, TEX, false);
    }
    frgi_put(k, " \\\\\n\\midrule\n");
    put_rows(k, t, tails);
    frgi_put(k, "\\bottomrule\n\\end{tabular}\n\\end{table}\n");
    DROP(k->ctx, &tails);
}

static void put_fact(frgi_sink *k, const frgi_element *e, bool first, bool last)
{
    char buffer[32];
    frgi_put(k, first ? "\\begin{tabular}{@{}ll@{}}\n  " : "  ");
    frgi_put_escaped(k, e->text, TEX, false);
    frgi_put(k, " & ");
    put_words(k, frgi_cell_words(&e->fact, buffer));
    frgi_put(k, " \\\\\n");
    if (last)
        frgi_put(k, "\\end{tabular}\n");
}

static void put_in(frgi_sink *k, const char *before, const char *s, const char *after)
{
    frgi_put(k, before);
    frgi_put_escaped(k, s, TEX, true);
    frgi_put(k, after);
}

void frgi_write_latex(frgi_sink *k, const frg_report *r)
{
    frgi_put(
        k,
        "% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}, or XeLaTeX or LuaLaTeX.\n");
    if (r->title[0])
        put_in(k, "\\section*{", r->title, "}\n");
    const frgi_element *const end = r->elements + r->n_elements;
    for (const frgi_element *e = r->elements; e < end && k->status >= 0; e++) {
        const bool follows =
            e > r->elements && e->kind == ELEMENT_FACT && e[-1].kind == ELEMENT_FACT;
        if (e->kind != ELEMENT_PLOT && !follows)
            frgi_put(k, "\n");
        if (e->kind == ELEMENT_HEADING)
            put_in(k, "\\subsection*{", e->text, "}\n");
        else if (e->kind == ELEMENT_PARAGRAPH)
            put_in(k, "", e->text, "\n");
        else if (e->kind == ELEMENT_FACT)
            put_fact(k, e, !follows, e + 1 == end || e[1].kind != ELEMENT_FACT);
        else if (e->kind == ELEMENT_TABLE)
            put_table(k, e);
    }
}
