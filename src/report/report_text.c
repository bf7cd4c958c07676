/* report_text.c - a report for the terminal: rules like a printed table's, never wider than asked.
 *
 *     Table caption
 *     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
 *     term        estimate  std. error
 *     ────────────────────────────────
 *     education     0.0987      0.0123
 *     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
 *
 * A table too wide for the terminal first wraps the words of its widest columns at blanks, down to
 * NARROWEST cells each; if that does not do, the columns are dealt out to several panels, each of
 * which repeats the first column.  Numbers are never wrapped or cut.
 */
#include <string.h>

#include "report/report_parts.h"

enum { GAP = 2, NARROWEST = 12 };

/** The longest prefix of s that fits into `width` cells and ends at a blank where it can; at least
 *  one character.  Returns its bytes and the bytes to go on after (the blank is swallowed). */
static size_t line_of(const char *s, int64_t width, size_t *next)
{
    int64_t used = 0;
    size_t at_blank = 0;
    const char *p = s;
    while (*p) {
        const char *before = p;
        const int32_t c = frgi_utf8_next(&p);
        used += frgi_utf8_width(c);
        if (c == ' ' && before > s)
            at_blank = (size_t)(before - s);
        if (used > width && before > s) {
            const size_t cut = at_blank ? at_blank : (size_t)(before - s);
            *next = cut;
            while (s[*next] == ' ')
                (*next)++;
            return cut;
        }
    }
    *next = (size_t)(p - s);
    return (size_t)(p - s);
}

/** Running text in lines of at most `width` cells; all lines but the first start with `indent`
 *  blanks. */
static void put_wrapped(frgi_sink *k, const char *s, int64_t width, int64_t indent)
{
    bool first = true;
    do {
        size_t next;
        const size_t length = line_of(s, width, &next);
        if (!first)
            frgi_put_times(k, " ", indent);
        frgi_put_bytes(k, s, length);
        frgi_put(k, "\n");
        s += next;
        first = false;
    } while (*s);
}

/** Escapes into a scratch text and wraps that, so that the escapes count for the width. */
static void put_paragraph(frgi_sink *k, const char *s, bool fold, int64_t width, int64_t indent)
{
    frgi_sink scratch = {.ctx = k->ctx, .status = k->status};
    frgi_put_escaped(&scratch, s, &frgi_escapes_text, fold);
    frgi_put(&scratch, "");
    if (scratch.status >= 0)
        put_wrapped(k, scratch.text.text, width, indent);
    else
        k->status = scratch.status;
    frgi_text_free(k->ctx, &scratch.text);
}

/** A heading with a line of `mark` under it. */
static void put_heading(frgi_sink *k, const char *s, const char *mark, int width)
{
    const int64_t length = frgi_escaped_width(k, s, &frgi_escapes_text);
    put_paragraph(k, s, true, width, 0);
    frgi_put_times(k, mark, length < width ? length : width);
    frgi_put(k, "\n");
}

/* ---- facts ----------------------------------------------------------------------------------- */

static int64_t fact_count(const frgi_element *e, const frgi_element *end)
{
    int64_t n = 0;
    while (e + n < end && e[n].kind == ELEMENT_FACT)
        n++;
    return n;
}

/** Names of more than half the width get lines of their own. */
static void put_facts(frgi_sink *k, const frgi_element *facts, int64_t n, int width)
{
    int64_t names = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t w = frgi_escaped_width(k, facts[i].text, &frgi_escapes_text);
        names = w > names && w <= width / 2 ? w : names;
    }
    const int64_t available = width - names - GAP > 8 ? width - names - GAP : 8;
    for (int64_t i = 0; i < n; i++) {
        char buffer[32];
        const int64_t w = frgi_escaped_width(k, facts[i].text, &frgi_escapes_text);
        if (w <= names)
            frgi_put_escaped(k, facts[i].text, &frgi_escapes_text, false);
        else
            put_paragraph(k, facts[i].text, false, width, 0);
        frgi_put_times(k, " ", names + GAP - (w <= names ? w : 0));
        put_paragraph(k, frgi_cell_words(&facts[i].fact, buffer), false, available, names + GAP);
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

/** Narrows the widest columns of words until the table fits or none can give more. */
static void narrow(const frgi_grid *g, int64_t *widths, int64_t total)
{
    int64_t sum = GAP * (g->columns - 1);
    for (int64_t j = 0; j < g->columns; j++)
        sum += widths[j];
    while (sum > total) {
        int64_t widest = -1;
        for (int64_t j = 0; j < g->columns; j++)
            if (widths[j] > NARROWEST && widths[j] > g->least[j] &&
                (widest < 0 || widths[j] > widths[widest]))
                widest = j;
        if (widest < 0)
            return;
        widths[widest]--;
        sum--;
    }
}

/** Columns first .. result-1 (with column 0 repeated in front) fit into the width; at least one
 *  does. */
static int64_t panel_end(const int64_t *widths, int64_t columns, int64_t first, int64_t total,
                         int64_t *used)
{
    int64_t j = first;
    *used = first > 0 ? widths[0] : -GAP;
    while (j < columns && (j == first || *used + GAP + widths[j] <= total))
        *used += GAP + widths[j++];
    return j;
}

/** One line of a row: the part of each cell from done[j] on that fits; true while any cell has
 *  more. */
static bool put_row_line(frgi_sink *k, const frgi_grid *g, const frgi_report_table *t, int64_t row,
                         const int64_t *widths, size_t *done, int64_t first, int64_t end)
{
    bool more = false;
    int64_t blanks = 0; /* held back: no line ends in blanks */
    for (int64_t j = first > 0 ? 0 : first; j < end; j = j == 0 && first > 0 ? first : j + 1) {
        const char *const s = g->text + g->start[row * g->columns + j] + done[j];
        size_t next;
        const size_t length = line_of(s, widths[j], &next);
        const int64_t free_cells = widths[j] - frgi_text_width(s, length);
        const bool right = t->columns[j].align == FRG_RIGHT;
        if (length > 0) {
            frgi_put_times(k, " ", blanks + (right ? free_cells : 0));
            frgi_put_bytes(k, s, length);
            blanks = right ? 0 : free_cells;
        } else {
            blanks += free_cells;
        }
        blanks += GAP;
        done[j] += next;
        more |= s[next] != '\0';
    }
    while (k->status >= 0 && k->text.length && k->text.text[k->text.length - 1] == ' ')
        k->text.length--; /* blanks that line up decimal points */
    frgi_put(k, "\n");
    return more;
}

static void put_row(frgi_sink *k, const frgi_grid *g, const frgi_report_table *t, int64_t row,
                    const int64_t *widths, size_t *done, int64_t first, int64_t end)
{
    memset(done, 0, (size_t)g->columns * sizeof *done);
    while (put_row_line(k, g, t, row, widths, done, first, end) && k->status >= 0) {
    }
}

static void put_rule(frgi_sink *k, const char *mark, int64_t length)
{
    frgi_put_times(k, mark, length);
    frgi_put(k, "\n");
}

static void put_panels(frgi_sink *k, const frgi_grid *g, const frgi_report_table *t,
                       const int64_t *widths, size_t *done, int width)
{
    for (int64_t first = 0, end; first < g->columns && k->status >= 0; first = end) {
        int64_t used;
        end = panel_end(widths, g->columns, first, width, &used);
        if (first > 0)
            frgi_put(k, "\n");
        put_rule(k, "━", used);
        put_row(k, g, t, 0, widths, done, first, end);
        put_rule(k, "─", used);
        for (int64_t i = 1; i <= g->rows; i++)
            put_row(k, g, t, i, widths, done, first, end);
        put_rule(k, "━", used);
    }
}

static frg_status put_table(frgi_sink *k, const frgi_report_table *t, int width)
{
    frgi_grid g;
    size_t *done = NULL;
    TRY(frgi_grid_make(&g, k->ctx, t, &frgi_escapes_text));
    const frg_status status = NEW(k->ctx, &done, g.columns, "report");
    if (status >= 0) {
        narrow(&g, g.natural, width);
        put_panels(k, &g, t, g.natural, done, width);
    }
    DROP(k->ctx, &done);
    frgi_grid_free(&g, k->ctx);
    return status;
}

/* ---- the report ------------------------------------------------------------------------------ */

static void put_captioned(frgi_sink *k, const frgi_element *e, int width)
{
    if (e->text[0])
        put_paragraph(k, e->text, true, width, 0);
    if (e->kind == ELEMENT_PLOT) {
        frgi_put_sparks(k, &e->plot, &frgi_escapes_text, width, "  ");
    } else if (k->status >= 0) {
        const frg_status status = put_table(k, &e->table, width);
        if (status < 0)
            k->status = status;
    }
}

void frgi_write_text(frgi_sink *k, const frg_report *r, int width)
{
    if (r->title[0])
        put_heading(k, r->title, "═", width);
    const frgi_element *const end = r->elements + r->n_elements;
    for (const frgi_element *e = r->elements; e < end && k->status >= 0; e++) {
        if (!frgi_has_text(e))
            continue;
        if (k->text.length)
            frgi_put(k, "\n");
        const int64_t facts = fact_count(e, end);
        if (facts) {
            put_facts(k, e, facts, width);
            e += facts - 1;
        } else if (e->kind == ELEMENT_HEADING) {
            put_heading(k, e->text, "─", width);
        } else if (e->kind == ELEMENT_PARAGRAPH) {
            put_paragraph(k, e->text, true, width, 0);
        } else {
            put_captioned(k, e, width);
        }
    }
}
