/* report_html.c - one self-contained page, set like a page of a working paper.
 *
 * No scripts and nothing fetched (a content policy in the page says so to the browser as well);
 * light and dark by the reader's preference; prints in black on white.  Tables and figures are
 * numbered.
 *
 * Figures in tables: decimal points are lined up by invisible digits that CSS generates from
 * data-p, so that neither a copy of the table nor a screen reader meets them; thousands are parted
 * by a margin, not by a character; a minus is U+2212, an exponent is a power of ten.
 */
#include <string.h>

#include "report/report_parts.h"

static const frgi_escapes *const HTML = &frgi_escapes_html;

static const char style[] =
    ":root{color-scheme:light "
    "dark;--paper:#fdfcf9;--ink:#1f1d1a;--soft:#66615a;--rule:#2b2925;--hair:#dcd7cc;"
    "--s1:#1f4e79;--s2:#b4532a;--s3:#55742f;--s4:#7b4b86;--s5:#8c6d1f;--s6:#3c7a80}\n"
    "@media screen and "
    "(prefers-color-scheme:dark){:root{--paper:#17181b;--ink:#e6e1d7;--soft:#a19b90;"
    "--rule:#b9b3a7;--hair:#37383c;--s1:#86b4e0;--s2:#e79a74;--s3:#a9c47f;--s4:#c9a0d6;--s5:#"
    "d8ba6a;--s6:#86c3c8}}\n"
    "html{-webkit-text-size-adjust:100%}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:1.0625rem/1.55 \"Iowan Old "
    "Style\","
    "\"Palatino Linotype\",Palatino,\"Book Antiqua\",\"URW Palladio L\",P052,\"TeX Gyre "
    "Pagella\",Georgia,"
    "\"Noto Serif\",\"Liberation Serif\",\"DejaVu "
    "Serif\",serif;text-rendering:optimizeLegibility}\n"
    "main{max-width:42rem;margin:0 auto;padding:clamp(1.5rem,6vw,4.5rem) clamp(1rem,4vw,2rem) "
    "3rem}\n"
    "h1{font-size:1.9rem;font-weight:400;line-height:1.22;letter-spacing:-.005em;margin:0 0 1.6rem;"
    "padding:0 0 .9rem;border-bottom:1px solid "
    "var(--rule);text-wrap:balance;overflow-wrap:anywhere}\n"
    "h2{font-size:1.16rem;font-weight:600;line-height:1.3;margin:2.6rem 0 .7rem;text-wrap:balance;"
    "overflow-wrap:anywhere;break-after:avoid}\n"
    "p{margin:.7rem 0;text-wrap:pretty;overflow-wrap:break-word;hyphens:auto}\n"
    "dl{margin:1.1rem 0 1.4rem;font-size:.94rem;line-height:1.45;columns:2;column-gap:2.6rem;"
    "font-variant-numeric:lining-nums tabular-nums}\n"
    "dl.long{columns:1}\n"
    "dl div{display:flex;gap:1rem;justify-content:space-between;padding:.2rem 0 .16rem;"
    "border-bottom:1px solid var(--hair);break-inside:avoid}\n"
    "dl.long div{justify-content:flex-start}\n"
    "dl.long dt{flex:0 0 11rem}\n"
    "dt{color:var(--soft)}\n"
    "dd{margin:0;text-align:right;overflow-wrap:anywhere}\n"
    "dl.long dd{text-align:left}\n"
    "figure{margin:2rem 0 2.2rem}\n"
    "figcaption{font-size:.94rem;line-height:1.4;margin:0 0 "
    ".6rem;text-wrap:pretty;overflow-wrap:anywhere;"
    "break-after:avoid}\n"
    "figcaption b{font-weight:600;margin-right:.35em}\n"
    ".scroll{overflow-x:auto;background:"
    "linear-gradient(90deg,var(--paper) 30%,transparent) 0 0/2.5rem 100% no-repeat local,"
    "linear-gradient(270deg,var(--paper) 30%,transparent) 100% 0/2.5rem 100% no-repeat local,"
    "linear-gradient(90deg,var(--hair),transparent) 0 0/.7rem 100% no-repeat scroll,"
    "linear-gradient(270deg,var(--hair),transparent) 100% 0/.7rem 100% no-repeat scroll}\n"
    "table{border-collapse:collapse;min-width:62%;font-size:.94rem;line-height:1.35;"
    "font-variant-numeric:lining-nums tabular-nums;border-top:2px solid var(--rule);"
    "border-bottom:2px solid var(--rule)}\n"
    "table.full{width:100%}\n"
    "table.dense{width:100%;font-size:.86rem}\n"
    "table.dense :is(th,td):not(:first-child){padding-left:1rem}\n"
    "th,td{padding:.24rem 0 .22rem 1.5rem;text-align:left;vertical-align:baseline}\n"
    "th:first-child,td:first-child{padding-left:.15rem}\n"
    "th:last-child,td:last-child{padding-right:.15rem}\n"
    "thead th{font-weight:400;font-style:italic;color:var(--soft);border-bottom:1px solid "
    "var(--rule);"
    "padding-top:.38rem;padding-bottom:.34rem;vertical-align:bottom}\n"
    "tbody tr:first-child>*{padding-top:.42rem}\n"
    "tbody tr:last-child>*{padding-bottom:.46rem}\n"
    "tbody th{font-weight:400}\n"
    "th,td{overflow-wrap:break-word}\n"
    ".r{text-align:right;white-space:nowrap}\n"
    "thead .r{white-space:normal}\n"
    ".r+:not(.r){padding-left:2.4rem}\n"
    "[data-p]::after{content:attr(data-p);visibility:hidden}\n"
    ".k{margin-right:.17em}\n"
    "sup{font-size:.72em;line-height:0}\n"
    "footer{margin-top:3.4rem;padding-top:.7rem;border-top:1px solid var(--hair);color:var(--soft);"
    "font-size:.82rem}\n"
    "@media (max-width:34rem){dl{columns:1}dl.long div{display:block}dl.long "
    "dd{padding-left:1rem}table{font-size:.86rem}th,td{padding-left:.9rem}}\n"
    "@media print{@page{margin:22mm "
    "20mm}:root{--paper:#fff;--ink:#000;--soft:#444;--rule:#000;--hair:#ccc}"
    "body{font-size:10.5pt;line-height:1.4}main{max-width:none;padding:0}figure,tr,dl "
    "div{break-inside:avoid}"
    "thead{display:table-header-group}.scroll{overflow:visible}}\n";

static void put_in(frgi_sink *k, const char *before, const char *s, bool fold, const char *after)
{
    frgi_put(k, before);
    frgi_put_escaped(k, s, HTML, fold);
    frgi_put(k, after);
}

static void put_caption(frgi_sink *k, const char *what, int number, const char *text)
{
    frgi_putf(k, "<b>%s %d%s</b>", what, number, text[0] ? "." : "");
    put_in(k, text[0] ? " " : "", text, true, "</figcaption>\n");
}

/* ---- numbers --------------------------------------------------------------------------------- */

/** Figures with a gap in front of every third one, from five figures on (years stay whole). */
static void put_figures(frgi_sink *k, const char *s, int count)
{
    const int head = count < 5 ? count : (count - 1) % 3 + 1;
    for (int i = 0, width = head; i < count; i += width, width = 3) {
        const bool last = i + width == count;
        frgi_put(k, last ? "" : "<span class=\"k\">");
        frgi_put_bytes(k, s + i, (size_t)width);
        frgi_put(k, last ? "" : "</span>");
    }
}

/** Words, or a number with its minus sign, gaps and power of ten typeset. */
static void put_words(frgi_sink *k, const frgi_cell *c)
{
    char buffer[32];
    const char *const s = frgi_cell_words(c, buffer);
    frgi_number_parts p;
    if (!frgi_number_split(s, &p)) {
        frgi_put_escaped(k, s, HTML, false);
        return;
    }
    char lead[4] = {0}; /* a bracket, a '<', a plus */
    memcpy(lead, s, (size_t)(p.sign >= 0 ? p.sign : p.whole));
    frgi_put_escaped(k, lead, HTML, false);
    if (p.sign >= 0)
        frgi_put(k, "−");
    put_figures(k, s + p.whole, c->kind == CELL_TEXT ? 0 : p.point - p.whole);
    const int from = c->kind == CELL_TEXT ? p.whole : p.point;
    frgi_put_bytes(k, s + from, (size_t)(p.mantissa - from));
    if (p.exponent >= 0) {
        frgi_put(k, p.negative ? "×10<sup>−" : "×10<sup>");
        frgi_put_bytes(k, s + p.exponent, (size_t)(p.end - p.exponent));
        frgi_put(k, "</sup>");
    }
    frgi_put(k, s + p.end);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/** data-p: the characters by which this cell's tail is shorter than its column's longest. */
static void put_padding(frgi_sink *k, const frgi_report_table *t, int64_t cell, int64_t column_tail)
{
    int64_t tail;
    if (!frgi_cell_tail(t, cell, &tail) || tail == column_tail)
        return;
    frgi_put(k, " data-p=\"");
    if (tail == 0) {
        frgi_put(k, ".");
        tail++;
    }
    frgi_put_times(k, "0", column_tail - tail);
    frgi_put(k, "\"");
}

static void put_cells(frgi_sink *k, const frgi_report_table *t, const int64_t *tails)
{
    for (int64_t i = 0; i < t->n_cells; i++) {
        const int64_t j = i % t->n_columns;
        const char *const tag = j == 0 ? "th" : "td";
        frgi_putf(k, "%s<%s%s%s", j == 0 ? "<tr>" : "", tag, j == 0 ? " scope=\"row\"" : "",
                  t->columns[j].align == FRG_RIGHT ? " class=\"r\"" : "");
        put_padding(k, t, i, tails[j]);
        frgi_put(k, ">");
        put_words(k, &t->cells[i]);
        frgi_putf(k, "</%s>%s", tag, j + 1 == t->n_columns ? "</tr>\n" : "");
    }
}

static void put_table(frgi_sink *k, const frgi_element *e, int number)
{
    const frgi_report_table *const t = &e->table;
    int64_t *tails;
    const frg_status status = NEW(k->ctx, &tails, t->n_columns, "report");
    if (status < 0) {
        k->status = status;
        return;
    }
    frgi_putf(k, "<figure>\n<figcaption id=\"t%d\">", number);
    put_caption(k, "Table", number, e->text);
    frgi_putf(k, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"t%d\">\n",
              number);
    const char *const class = t->n_columns > 6   ? " class=\"dense\""
                              : t->n_columns > 3 ? " class=\"full\""
                                                 : "";
    frgi_putf(k, "<table%s aria-labelledby=\"t%d\">\n<thead><tr>", class, number);
    for (int64_t j = 0; j < t->n_columns; j++) {
        tails[j] = frgi_column_tail(t, j);
        put_in(k,
               t->columns[j].align == FRG_RIGHT ? "<th scope=\"col\" class=\"r\">"
                                                : "<th scope=\"col\">",
               t->columns[j].name, false, "</th>");
    }
    frgi_put(k, "</tr></thead>\n<tbody>\n");
    put_cells(k, t, tails);
    frgi_put(k, "</tbody>\n</table>\n</div>\n</figure>\n");
    DROP(k->ctx, &tails);
}

/* ---- the page -------------------------------------------------------------------------------- */

/** A block of facts; long values get lines of their own instead of half a column. */
static void put_facts(frgi_sink *k, const frgi_element *facts, int64_t n)
{
    enum { HALF_A_COLUMN = 36 };
    char buffer[32];
    bool is_long = n < 4;
    for (int64_t i = 0; i < n; i++) {
        const char *const words = frgi_cell_words(&facts[i].fact, buffer);
        is_long |= frgi_text_width(words, strlen(words)) +
                       frgi_text_width(facts[i].text, strlen(facts[i].text)) >
                   HALF_A_COLUMN;
    }
    frgi_put(k, is_long ? "<dl class=\"long\">\n" : "<dl>\n");
    for (int64_t i = 0; i < n; i++) {
        put_in(k, "<div><dt>", facts[i].text, false, "</dt><dd>");
        put_words(k, &facts[i].fact);
        frgi_put(k, "</dd></div>\n");
    }
    frgi_put(k, "</dl>\n");
}

static void put_figure(frgi_sink *k, const frgi_element *e, int number)
{
    frgi_put(k, "<figure>\n<figcaption>");
    put_caption(k, "Figure", number, e->text);
    frgi_put_svg(k, &e->plot, e->text, number);
    frgi_put(k, "</figure>\n");
}

static void put_body(frgi_sink *k, const frg_report *r)
{
    int tables = 0, figures = 0;
    for (int64_t i = 0; i < r->n_elements && k->status >= 0; i++) {
        const frgi_element *const e = &r->elements[i];
        int64_t facts = 0;
        while (i + facts < r->n_elements && e[facts].kind == ELEMENT_FACT)
            facts++;
        if (facts) {
            put_facts(k, e, facts);
            i += facts - 1;
        } else if (e->kind == ELEMENT_HEADING) {
            put_in(k, "<h2>", e->text, true, "</h2>\n");
        } else if (e->kind == ELEMENT_PARAGRAPH) {
            put_in(k, "<p>", e->text, true, "</p>\n");
        } else if (e->kind == ELEMENT_TABLE) {
            put_table(k, e, ++tables);
        } else {
            put_figure(k, e, ++figures);
        }
    }
}

void frgi_write_html(frgi_sink *k, const frg_report *r)
{
    frgi_put(k, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put_in(k, "<title>", r->title[0] ? r->title : "Report", true, "</title>\n");
    frgi_put(k, "<style>\n");
    frgi_put(k, style);
    frgi_put(k, frgi_svg_style);
    frgi_put(k, "</style>\n</head>\n<body>\n<main>\n");
    if (r->title[0])
        put_in(k, "<h1>", r->title, true, "</h1>\n");
    put_body(k, r);
    frgi_putf(k, "<footer>fourge %s</footer>\n</main>\n</body>\n</html>\n", frg_version());
}
