/* report_markdown.c - GitHub's Markdown, with tables whose columns line up in the source too. */
#include <string.h>

#include "report/report_parts.h"

static const frgi_escapes *const MD = &frgi_escapes_markdown;

/** Running text; a first character that would open a block (heading, list, rule) gets a
 *  backslash. */
static void put_running(frgi_sink *k, const char *s)
{
    s += strspn(s, " \t\r\n\v\f");
    const size_t digits = strspn(s, "0123456789");
    if (*s && strchr("#-+=", *s)) {
        frgi_put(k, "\\");
    } else if (digits && (s[digits] == '.' || s[digits] == ')')) {
        frgi_put_bytes(k, s, digits);
        frgi_put(k, "\\");
        s += digits;
    }
    frgi_put_escaped(k, s, MD, true);
}

static void put_padded(frgi_sink *k, const frgi_grid *g, int64_t at, int64_t column,
                       frg_align align)
{
    const int64_t blanks = g->natural[column] - g->width[at];
    frgi_put_times(k, " ", align == FRG_RIGHT ? blanks : 0);
    frgi_put(k, g->text + g->start[at]);
    frgi_put_times(k, " ", align == FRG_RIGHT ? 0 : blanks);
}

static void put_grid(frgi_sink *k, const frgi_grid *g, const frgi_report_table *t)
{
    for (int64_t i = 0; i <= g->rows; i++) {
        for (int64_t j = 0; j < g->columns; j++) {
            frgi_put(k, j ? " | " : "| ");
            put_padded(k, g, i * g->columns + j, j, t->columns[j].align);
        }
        frgi_put(k, " |\n");
        for (int64_t j = 0; i == 0 && j < g->columns; j++) {
            const bool right = t->columns[j].align == FRG_RIGHT;
            frgi_put(k, right ? "| " : "|:");
            frgi_put_times(k, "-", g->natural[j]);
            frgi_put(k, right ? ":" : " ");
        }
        if (i == 0)
            frgi_put(k, "|\n");
    }
}

static void put_table(frgi_sink *k, const frgi_report_table *t)
{
    frgi_grid g;
    const frg_status status = frgi_grid_make(&g, k->ctx, t, MD);
    if (status < 0) {
        k->status = status;
        return;
    }
    put_grid(k, &g, t);
    frgi_grid_free(&g, k->ctx);
}

static void put_caption(frgi_sink *k, const char *s)
{
    if (!s[0])
        return;
    frgi_put(k, "**");
    frgi_put_escaped(k, s, MD, true);
    frgi_put(k, "**\n\n");
}

static void put_element(frgi_sink *k, const frgi_element *e)
{
    char buffer[32];
    switch (e->kind) {
    case ELEMENT_HEADING:
        frgi_put(k, "## ");
        frgi_put_escaped(k, e->text, MD, true);
        break;
    case ELEMENT_PARAGRAPH:
        put_running(k, e->text);
        break;
    case ELEMENT_FACT:
        frgi_put(k, "- ");
        frgi_put_escaped(k, e->text, MD, false);
        frgi_put(k, ": ");
        frgi_put_escaped(k, frgi_cell_words(&e->fact, buffer), MD, false);
        break;
    case ELEMENT_TABLE:
        put_caption(k, e->text);
        put_table(k, &e->table);
        return;
    case ELEMENT_PLOT:
        put_caption(k, e->text);
        frgi_put_sparks(k, &e->plot, MD, 80, "- ");
        return;
    }
    frgi_put(k, "\n");
}

void frgi_write_markdown(frgi_sink *k, const frg_report *r)
{
    if (r->title[0]) {
        frgi_put(k, "# ");
        frgi_put_escaped(k, r->title, MD, true);
        frgi_put(k, "\n");
    }
    for (int64_t i = 0; i < r->n_elements && k->status >= 0; i++) {
        const bool list_goes_on =
            i > 0 && r->elements[i].kind == ELEMENT_FACT && r->elements[i - 1].kind == ELEMENT_FACT;
        if (!frgi_has_text(&r->elements[i]))
            continue;
        if (k->text.length && !list_goes_on)
            frgi_put(k, "\n");
        put_element(k, &r->elements[i]);
    }
}
