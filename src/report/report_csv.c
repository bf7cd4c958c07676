/* report_csv.c - the tables of a report by RFC 4180 (lines end in LF), numbers in full precision.
 *
 * Text stays as it is, also where a spreadsheet would take it for a formula (a warning says so),
 * control characters included, because another program reads it; a field with a comma, a quote, a
 * line break or a blank at its ends is quoted.  Broken UTF-8 becomes U+FFFD.
 */
#include <stdio.h>
#include <string.h>

#include "report/report_parts.h"

static bool needs_quotes(const char *s)
{
    const size_t n = strlen(s);
    return strpbrk(s, ",\"\r\n") || (n > 0 && (s[0] == ' ' || s[n - 1] == ' '));
}

void frgi_put_csv(frgi_sink *k, const char *s, bool quoted)
{
    const char *const quote = quoted || needs_quotes(s) ? "\"" : "";
    frgi_put(k, quote);
    while (*s && k->status >= 0) {
        const char *const at = s;
        const int32_t c = frgi_utf8_next(&s);
        if (c == 0xfffd)
            frgi_put(k, "\xef\xbf\xbd");
        else
            frgi_put_bytes(k, c == '"' ? "\"\"" : at, c == '"' ? 2 : (size_t)(s - at));
    }
    frgi_put(k, quote);
}

static void put_table(frgi_sink *k, const frgi_report_table *t)
{
    for (int64_t j = 0; j < t->n_columns; j++) {
        frgi_put(k, j ? "," : "");
        frgi_warn_of_formula(k->ctx, t->columns[j].name);
        frgi_put_csv(k, t->columns[j].name, false);
    }
    frgi_put(k, "\n");
    for (int64_t i = 0; i < t->n_cells; i++) {
        const frgi_cell *const c = &t->cells[i];
        char buffer[32];
        if (c->kind == CELL_NUMBER)
            frg_format_double(c->number, buffer);
        else
            frgi_warn_of_formula(k->ctx, frgi_cell_words(c, buffer));
        frgi_put_csv(k, c->kind == CELL_NUMBER ? buffer : frgi_cell_words(c, buffer), false);
        frgi_put(k, (i + 1) % t->n_columns ? "," : "\n");
    }
}

void frgi_write_csv(frgi_sink *k, const frg_report *r)
{
    for (int64_t i = 0; i < r->n_elements && k->status >= 0; i++) {
        if (r->elements[i].kind != ELEMENT_TABLE)
            continue;
        if (k->text.length)
            frgi_put(k, "\n");
        put_table(k, &r->elements[i].table);
    }
}
