/* test_report.c - what each format looks like, that hostile text stays text, and that plots bear
 * any data. */
#include <unistd.h>

#include "hostile.h"
#include "report/report_parts.h"

static const double NONE = (double)NAN;

static frg_report *fresh(frg_context *ctx, const char *title)
{
    frg_report *r = NULL;
    CHECK_OK(ctx, frg_report_create(&r, ctx, title));
    return r;
}

/* not inlined: gcc 12 would take the text for a pointer into the frame */
__attribute__((noinline)) static const char *rendered(frg_context *ctx, frg_report *r,
                                                      frg_report_format f, int width)
{
    const char *text = "";
    int64_t length = 0;
    CHECK_OK(ctx, frg_report_render(r, f, width, &text, &length));
    CHECK_INT(length, strlen(text));
    return text;
}

static void add_table(frg_report *r)
{
    frg_report_table_open(r, "Estimates");
    frg_report_table_column(r, "Term", FRG_LEFT);
    frg_report_table_column(r, "Estimate", FRG_RIGHT);
    frg_report_table_column(r, "n", FRG_RIGHT);
    frg_report_cell_text(r, "log_wage & co");
    frg_report_cell_number(r, -0.12345678, 4);
    frg_report_cell_integer(r, 1234567);
    frg_report_cell_text(r, "x");
    frg_report_cell_text(r, "(10.5)*");
    frg_report_cell_integer(r, 7);
    frg_report_cell_text(r, "tiny");
    frg_report_cell_number(r, 2.5e-13, 2);
    frg_report_cell_text(r, "");
    frg_report_table_close(r);
}

/* ---- the formats ----------------------------------------------------------------------------- */

static void text_format(void)
{
    frg_context *ctx = test_context();
    frg_report *r = fresh(ctx, "A title");
    frg_report_fact(r, "Observations", "4360");
    frg_report_fact_number(r, "R2", 0.62061, 4);
    frg_report_heading(r, "Part");
    frg_report_paragraph(r, "One two\nthree four five six seven.");
    add_table(r);
    const double y[] = {1, 1e-2, 1e-4, 1e-6};
    const frg_series s = {.name = "y", .n = 4, .y = y};
    frg_report_plot(
        r, &(frg_plot){
               .caption = "Curve", .log_y = 1, .reference = NONE, .n_series = 1, .series = &s});
    CHECK_TEXT(rendered(ctx, r, FRG_TEXT, 36), "A title\n"
                                               "═══════\n"
                                               "\n"
                                               "Observations  4360\n"
                                               "R2            0.6206\n"
                                               "\n"
                                               "Part\n"
                                               "────\n"
                                               "\n"
                                               "One two three four five six seven.\n"
                                               "\n"
                                               "Estimates\n"
                                               "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                                               "Term           Estimate        n\n"
                                               "────────────────────────────────\n"
                                               "log_wage & co   -0.1235  1234567\n"
                                               "x              (10.5)*         7\n"
                                               "tiny            2.5e-13\n"
                                               "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                                               "\n"
                                               "Curve\n"
                                               "  y  █▆▃▁  1.00 → 1e-6\n");
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

static void markdown_format(void)
{
    frg_context *ctx = test_context();
    frg_report *r = fresh(ctx, "A *title*");
    frg_report_paragraph(r, "# no heading");
    frg_report_paragraph(r, "1. no list");
    frg_report_fact(r, "a|b", "<i>");
    frg_report_fact(r, "c", "d");
    add_table(r);
    CHECK_TEXT(rendered(ctx, r, FRG_MARKDOWN, 0), "# A \\*title\\*\n"
                                                  "\n"
                                                  "\\# no heading\n"
                                                  "\n"
                                                  "1\\. no list\n"
                                                  "\n"
                                                  "- a\\|b: &lt;i&gt;\n"
                                                  "- c: d\n"
                                                  "\n"
                                                  "**Estimates**\n"
                                                  "\n"
                                                  "| Term              |  Estimate |       n |\n"
                                                  "|:----------------- | ---------:| -------:|\n"
                                                  "| log_wage &amp; co |   -0.1235 | 1234567 |\n"
                                                  "| x                 | (10.5)\\*  |       7 |\n"
                                                  "| tiny              |   2.5e-13 |         |\n");
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

static void latex_format(void)
{
    frg_context *ctx = test_context();
    frg_report *r = fresh(ctx, "50% of $");
    add_table(r);
    CHECK_TEXT(
        rendered(ctx, r, FRG_LATEX, 0),
        "% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}, or XeLaTeX or LuaLaTeX.\n"
        "\\section*{50\\% of \\$}\n"
        "\n"
        "\\begin{table}[htbp]\n"
        "\\centering\n"
        "\\caption{Estimates}\n"
        "\\begin{tabular}{@{}lrr@{}}\n"
        "\\toprule\n"
        "  Term & Estimate & n \\\\\n"
        "\\midrule\n"
        "  log\\_wage \\& co & $-0.1235$ & 1234567 \\\\\n"
        "  x & (10.5){*}\\phantom{0} & 7 \\\\\n"
        "  tiny & $2.5\\times 10^{-13}$ &  \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
        "\\end{table}\n");
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

static void csv_format(void)
{
    frg_context *ctx = test_context();
    frg_report *r = fresh(ctx, "not in the csv");
    frg_report_paragraph(r, "nor this");
    add_table(r);
    frg_report_table_open(r, "second");
    frg_report_table_column(r, "a,b", FRG_LEFT);
    frg_report_cell_text(r, "say \"x\"\n");
    frg_report_cell_number(r, NONE, 4);
    frg_report_table_close(r);
    CHECK_TEXT(rendered(ctx, r, FRG_CSV, 0), "Term,Estimate,n\n"
                                             "log_wage & co,-0.12345678,1234567\n"
                                             "x,(10.5)*,7\n"
                                             "tiny,2.5e-13,\n"
                                             "\n"
                                             "\"a,b\"\n"
                                             "\"say \"\"x\"\"\n\"\n"
                                             "NaN\n");
    frg_report *none = fresh(ctx, "no table");
    CHECK_TEXT(rendered(ctx, none, FRG_CSV, 0), "");
    frg_report_destroy(none);
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

/** Cells of words that are numbers line up too, and a table may do without a caption. */
static void html_words(void)
{
    frg_context *ctx = test_context();
    frg_report *r = fresh(ctx, "");
    frg_report_table_open(r, NULL);
    frg_report_table_column(r, "p", FRG_RIGHT);
    frg_report_cell_text(r, "<0.0001");
    frg_report_cell_text(r, "0.04");
    frg_report_cell_text(r, "(-5.1e-20)");
    frg_report_cell_text(r, "1e-09");
    frg_report_cell_text(r, "2e+00");
    frg_report_table_close(r);
    CHECK(strstr(rendered(ctx, r, FRG_LATEX, 0), "$1\\times 10^{-9}$") != NULL);
    const char *const html = rendered(ctx, r, FRG_HTML, 0);
    CHECK(strstr(html, " class=\"r\">1×10<sup>−9</sup></th>") != NULL);
    CHECK(strstr(html, " class=\"r\">2×10<sup>0</sup></th>") != NULL);
    CHECK(strstr(html, "<b>Table 1</b></figcaption>") != NULL);
    CHECK(strstr(html, " class=\"r\">&lt;0.0001</th>") != NULL);
    CHECK(strstr(html, " class=\"r\" data-p=\"00\">0.04</th>") != NULL);
    CHECK(strstr(html, " class=\"r\">(−5.1×10<sup>−20</sup>)</th>") != NULL);
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

static void html_format(void)
{
    frg_context *ctx = test_context();
    frg_report *r = fresh(ctx, "A <title>");
    add_table(r);
    frg_report_fact(r, "a", "b");
    const char *const html = rendered(ctx, r, FRG_HTML, 0);
    static const char *const wanted[] = {
        "<!DOCTYPE html>\n<html lang=\"en\">",
        "<title>A &lt;title&gt;</title>",
        "<h1>A &lt;title&gt;</h1>",
        "<b>Table 1.</b> Estimates</figcaption>",
        "<th scope=\"row\">log_wage &amp; co</th><td class=\"r\">−0.1235</td>",
        "<td class=\"r\"><span class=\"k\">1</span><span class=\"k\">234</span>567</td>",
        "<td class=\"r\" data-p=\"0\">(10.5)*</td>",
        "<td class=\"r\">2.5×10<sup>−13</sup></td>",
        "<div><dt>a</dt><dd>b</dd></div>",
        "prefers-color-scheme:dark",
        "@media print",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        CHECK_SAYS(strstr(html, wanted[i]) != NULL, "the page lacks %s", wanted[i]);
    static const char *const unwanted[] = {"<script", "http://", "https://",
                                           "url(",    "@import", "src="};
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
        CHECK_SAYS(strstr(html, unwanted[i]) == NULL, "the page holds %s", unwanted[i]);
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

/* ---- width ----------------------------------------------------------------------------------- */

static int64_t widest_line(const char *text)
{
    int64_t widest = 0;
    while (*text) {
        const size_t length = strcspn(text, "\n");
        const int64_t w = frgi_text_width(text, length);
        widest = w > widest ? w : widest;
        text += length + (text[length] == '\n');
    }
    return widest;
}

static void display_width(void)
{
    static const struct {
        const char *text;
        int width;
    } cases[] = {{"abc", 3},
                 {"", 0},
                 {"é", 1},
                 {"e\xcc\x81", 1},
                 {"日本", 4},
                 {"ｱ", 1},
                 {"Ａ", 2},
                 {"ש", 1},
                 {"한", 2},
                 {"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", 2},
                 {"\xf0\x9f\x98\x80", 2},
                 {"\xff\xfe", 2},
                 {"\xe2\x80\x8d", 0},
                 {"−", 1},
                 {"…", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_SAYS(frgi_text_width(cases[i].text, strlen(cases[i].text)) == cases[i].width,
                   "width of %s", cases[i].text);
}

/** 14 columns do not fit 80 cells: panels repeat the first column, and every number is there
 *  whole. */
static void wide_tables(void)
{
    frg_context *ctx = test_context();
    frg_report *r = fresh(ctx, "");
    frg_report_table_open(r, "");
    for (int j = 0; j < 14; j++) {
        char name[24];
        snprintf(name, sizeof name, "column %d", j);
        frg_report_table_column(r, name, j ? FRG_RIGHT : FRG_LEFT);
    }
    for (int i = 0; i < 3; i++) {
        frg_report_cell_text(r, "a label of several words that may be wrapped");
        for (int j = 1; j < 14; j++)
            frg_report_cell_integer(r, 1000000 + 100 * i + j);
    }
    frg_report_table_close(r);
    for (int width = 30; width < 200; width += 7) {
        const char *const text = rendered(ctx, r, FRG_TEXT, width);
        CHECK_SAYS(widest_line(text) <= width, "%d cells for %d", (int)widest_line(text), width);
        for (int i = 0; i < 3; i++)
            for (int j = 1; j < 14; j++) {
                char number[16];
                snprintf(number, sizeof number, "%d", 1000000 + 100 * i + j);
                CHECK_SAYS(strstr(text, number) != NULL, "%s is missing at width %d", number,
                           width);
            }
    }
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static void cell_without_table(frg_report *r)
{
    frg_report_cell_integer(r, 1);
}

static void cell_without_column(frg_report *r)
{
    frg_report_table_open(r, "");
    frg_report_cell_integer(r, 1);
}

static void late_column(frg_report *r)
{
    frg_report_table_open(r, "");
    frg_report_table_column(r, "a", FRG_LEFT);
    frg_report_cell_integer(r, 1);
    frg_report_table_column(r, "b", FRG_LEFT);
}

static void half_a_row(frg_report *r)
{
    frg_report_table_open(r, "");
    frg_report_table_column(r, "a", FRG_LEFT);
    frg_report_table_column(r, "b", FRG_LEFT);
    frg_report_cell_integer(r, 1);
    frg_report_table_close(r);
}

static void open_table(frg_report *r)
{
    frg_report_table_open(r, "");
    frg_report_table_column(r, "a", FRG_LEFT);
}

static void heading_in_table(frg_report *r)
{
    open_table(r);
    frg_report_heading(r, "x");
    frg_report_table_close(r);
}

static void half_an_interval(frg_report *r)
{
    const double y[] = {1};
    const frg_series s = {.n = 1, .y = y, .low = y};
    frg_report_plot(r, &(frg_plot){.n_series = 1, .series = &s});
}

static void no_values(frg_report *r)
{
    const frg_series s = {.n = 1};
    frg_report_plot(r, &(frg_plot){.n_series = 1, .series = &s});
}

static void misuse(void)
{
    static void (*const ways[])(frg_report *) = {
        cell_without_table, cell_without_column, late_column,      half_a_row,
        open_table,         heading_in_table,    half_an_interval, no_values};
    frg_context *ctx = test_context();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        frg_report *r = fresh(ctx, "x");
        ways[i](r);
        const char *text = "untouched";
        CHECK_STATUS(frg_report_render(r, FRG_TEXT, 0, &text, NULL), FRG_BAD_ARG);
        CHECK_TEXT(text, "untouched");
        CHECK(*frg_message(ctx));
        frg_report_destroy(r);
    }
    frg_report *r = fresh(ctx, "x");
    const char *text;
    CHECK_STATUS(frg_report_render(r, (frg_report_format)9, 0, &text, NULL), FRG_BAD_ARG);
    frg_report_destroy(r);
    frg_report_destroy(NULL);
    frg_context_destroy(ctx);
}

/* ---- hostile text ---------------------------------------------------------------------------- */

static frg_report *hostile_report(frg_context *ctx, const char *name)
{
    frg_report *r = fresh(ctx, name);
    frg_report_heading(r, name);
    frg_report_paragraph(r, name);
    frg_report_fact(r, name, name);
    frg_report_table_open(r, name);
    frg_report_table_column(r, name, FRG_LEFT);
    frg_report_table_column(r, name, FRG_RIGHT);
    for (int i = 0; i < 4; i++)
        frg_report_cell_text(r, name);
    frg_report_table_close(r);
    const double y[] = {1, 2};
    const frg_series s[] = {{.name = name, .n = 2, .y = y},
                            {.name = name, .n = 2, .y = y, .style = FRG_POINTS}};
    const char *const names[] = {name, name};
    frg_plot p = {.caption = name,
                  .x_label = name,
                  .y_label = name,
                  .reference = NONE,
                  .n_series = 2,
                  .series = s};
    frg_report_plot(r, &p);
    p.categories = names;
    p.n_categories = 2;
    p.horizontal = 1;
    frg_report_plot(r, &p);
    return r;
}

/** Tags nest, attributes are quoted, '&' begins one of our entities, and no tag is one we do not
 *  write. */
static bool well_formed(const char *html)
{
    static const char *const known[] = {
        "html",  "head",  "body",  "main", "title", "style",  "h1",         "h2",
        "p",     "dl",    "div",   "dt",   "dd",    "figure", "figcaption", "b",
        "table", "thead", "tbody", "tr",   "th",    "td",     "span",       "sup",
        "svg",   "desc",  "path",  "text", "tspan", "footer", "meta",       "!DOCTYPE"};
    const char *open[64];
    int depth = 0;
    for (const char *p = html; *p; p++) {
        if (*p == '&') {
            static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
            bool ours = false;
            for (int e = 0; e < 5; e++)
                ours |= strncmp(p, entities[e], strlen(entities[e])) == 0;
            if (!ours)
                return false;
        }
        if (*p == '>')
            return false; /* only ever passed at the end of a tag below */
        if (*p != '<')
            continue;
        const bool closing = p[1] == '/';
        const char *const name = p + 1 + closing;
        const size_t length = strcspn(name, " >/\n");
        bool ours = false;
        for (size_t t = 0; t < sizeof known / sizeof *known; t++)
            ours |= strlen(known[t]) == length && strncmp(known[t], name, length) == 0;
        if (!ours)
            return false;
        for (p = name + length; *p && *p != '>'; p++)
            if (*p == '"' && !(p = strchr(p + 1, '"')))
                return false;
        if (!*p)
            return false;
        const bool empty = p[-1] == '/' || *name == '!' || strncmp(name, "meta", 4) == 0;
        if (closing && (depth == 0 || strncmp(open[--depth], name, length) != 0))
            return false;
        if (!closing && !empty) {
            if (depth == 64)
                return false;
            open[depth++] = name;
            if (strncmp(name, "style", 5) == 0) /* its text is ours and has '>' in selectors */
                p = strstr(p, "</style>") - 1;
        }
    }
    return depth == 0;
}

/** Braces balance, and in the table every row has one '&' and ends in \\; no special character is
 *  bare. */
static bool tame_latex(const char *tex)
{
    static const char *const commands[] = {"section",
                                           "subsection",
                                           "begin",
                                           "end",
                                           "centering",
                                           "caption",
                                           "toprule",
                                           "midrule",
                                           "bottomrule",
                                           "phantom",
                                           "textbackslash",
                                           "textasciicircum",
                                           "textasciitilde",
                                           "textless",
                                           "textgreater",
                                           "textbar",
                                           "textasciigrave",
                                           "textquotedbl",
                                           "times",
                                           "\\",
                                           "{",
                                           "}",
                                           "$",
                                           "&",
                                           "#",
                                           "%",
                                           "_"};
    int depth = 0, ampersands = 0;
    bool in_table = false;
    const char *p = strchr(tex, '\n'); /* after the comment of the first line */
    for (; *p; p++) {
        if (strncmp(p, "\\begin{tabular}{@{}", 19) == 0) {
            in_table = true;
            p = strchr(p, '\n');
        }
        in_table &= strncmp(p, "\\end{tabular}", 13) != 0;
        if (*p == '\\') {
            bool ours = false;
            size_t length = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz");
            length = length ? length : 1;
            for (size_t c = 0; c < sizeof commands / sizeof *commands; c++)
                ours |= strlen(commands[c]) == length && strncmp(commands[c], p + 1, length) == 0;
            if (!ours)
                return false;
            if (p[1] == '\\' && (!in_table || ampersands != 1 || p[2] != '\n'))
                return false;
            if (p[1] == '\\')
                ampersands = 0;
            p += length;
            continue;
        }
        depth += (*p == '{') - (*p == '}');
        ampersands += *p == '&';
        if (depth < 0 || strchr("#%^_~", *p) || (*p == '&' && !in_table))
            return false;
    }
    return depth == 0;
}

/** Reads one CSV field; returns its end (a comma, a line feed or the end), NULL when it is none. */
static const char *read_field(const char *p, char *out)
{
    if (*p != '"') {
        const size_t length = strcspn(p, ",\n");
        memcpy(out, p, length);
        out[length] = '\0';
        return strcspn(p, "\"\r") < length ? NULL : p + length;
    }
    for (p++; *p != '"' || p[1] == '"'; p++) {
        if (!*p)
            return NULL;
        p += *p == '"';
        *out++ = *p;
    }
    *out = '\0';
    return p + 1;
}

static bool csv_holds(const char *csv, const char *name, char *field)
{
    for (int i = 0; i < 6; i++) {
        csv = read_field(csv, field);
        if (!csv || !same_but_broken(field, name) || *csv++ != (i % 2 ? '\n' : ','))
            return false;
    }
    return *csv == '\0';
}

/** Lines of the table have three bars that are not escaped; no '<' or bare '&' anywhere. */
static bool tame_markdown(const char *md)
{
    int rows = 0;
    while (*md) {
        const size_t length = strcspn(md, "\n");
        int bars = 0;
        for (size_t i = 0; i < length; i++) {
            if (md[i] == '\\')
                i++;
            else
                bars += md[i] == '|';
            if (md[i] == '<')
                return false;
        }
        if (md[0] == '|' && bars != 3)
            return false;
        if (md[0] != '|' && bars != 0)
            return false;
        rows += md[0] == '|';
        md += length + (md[length] == '\n');
    }
    return rows == 4;
}

static void hostile(void)
{
    frg_context *ctx = test_context();
    char *const name = malloc(HOSTILE_ROOM), *const field = malloc(HOSTILE_ROOM);
    for (int i = 0; i < HOSTILE_NAMES; i++) {
        hostile_name(i, name);
        frg_report *r = hostile_report(ctx, name);
        const char *text = rendered(ctx, r, FRG_TEXT, 80);
        CHECK_SAYS(harmless(text), "text: name %d acts", i);
        CHECK_SAYS(widest_line(text) <= 80, "text: name %d makes a line of %d cells", i,
                   (int)widest_line(text));
        text = rendered(ctx, r, FRG_MARKDOWN, 0);
        CHECK_SAYS(harmless(text) && tame_markdown(text), "Markdown: name %d", i);
        text = rendered(ctx, r, FRG_LATEX, 0);
        CHECK_SAYS(harmless(text) && tame_latex(text), "LaTeX: name %d", i);
        text = rendered(ctx, r, FRG_HTML, 0);
        CHECK_SAYS(harmless(text) && well_formed(text), "HTML: name %d", i);
        CHECK_SAYS(csv_holds(rendered(ctx, r, FRG_CSV, 0), name, field),
                   "CSV: name %d does not read back", i);
        frg_report_destroy(r);
    }
    free(name);
    free(field);
    frg_context_destroy(ctx);
}

/* ---- plots ----------------------------------------------------------------------------------- */

/** All numbers in path data are finite and near the drawing. */
static bool drawable(const char *html)
{
    for (const char *d = strstr(html, " d=\""); d; d = strstr(d, " d=\"")) {
        for (d += 4; *d != '"';) {
            if (strchr("MLaz ZAv", *d)) {
                d++;
                continue;
            }
            char *end;
            const double v = strtod(d, &end);
            if (end == d || !(fabs(v) < 2000))
                return false;
            d = end;
        }
    }
    return true;
}

static void plots_of_any_data(void)
{
    enum { N = 6 };
    static const double inf = (double)INFINITY, nan_ = (double)NAN;
    const double data[][N] = {
        {1, 2, 3, 4, 5, 6},
        {0, 0, 0, 0, 0, 0},
        {nan_, nan_, nan_, nan_, nan_, nan_},
        {1, nan_, inf, -inf, 2, 3},
        {1.7e308, -1.7e308, 0, 1, 2, 3},
        {5e-324, 1e-323, 0, 5e-324, 0, 0},
        {1e300, 1e300, 1e300, 1e300, 1e300, 1e300},
        {1, 1 + 2e-16, 1, 1, 1, 1},
        {-1e-12, 1e-12, 3e-12, 2e-12, 0, -3e-12},
        {123456789, 123456790, 123456791, 123456792, 123456793, 123456794},
        {1e-300, 1e300, 1, 1e-5, 1e5, 1e-200},
        {-1, -2, -3, -4, -5, -6},
    };
    frg_context *ctx = test_context();
    const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        for (size_t j = 0; j < sizeof data / sizeof *data; j++) {
            frg_report *r = fresh(ctx, "x");
            frg_series s[4];
            for (int style = 0; style < 4; style++)
                s[style] = (frg_series){.name = "s",
                                        .n = N,
                                        .x = data[j],
                                        .y = data[i],
                                        .low = data[i],
                                        .high = data[j]};
            s[1].style = FRG_POINTS;
            s[2].style = FRG_BAND;
            s[3].style = FRG_LINKS;
            for (int kind = 0; kind < 9; kind++) {
                const bool named = kind & 4;
                const frg_plot p = {.caption = "p",
                                    .log_y = kind & 1,
                                    .horizontal = kind & 2,
                                    .reference = data[i][0],
                                    .n_series = 4,
                                    .series = s,
                                    .map = kind == 8,
                                    .categories = named ? names : NULL,
                                    .n_categories = named ? 3 : 0};
                frg_report_plot(r, &p);
            }
            const char *const html = rendered(ctx, r, FRG_HTML, 0);
            CHECK_SAYS(well_formed(html), "values %zu, positions %zu: not well formed", i, j);
            CHECK_SAYS(drawable(html), "values %zu, positions %zu: coordinates", i, j);
            CHECK(harmless(rendered(ctx, r, FRG_TEXT, 0)));
            frg_report_destroy(r);
        }
    }
    frg_context_destroy(ctx);
}

static void empty_plots(void)
{
    frg_context *ctx = test_context();
    frg_report *r = fresh(ctx, "x");
    frg_report_plot(r, &(frg_plot){.caption = "nothing", .reference = NONE});
    const frg_series s = {.name = "s", .n = 0, .y = (const double[]){0}};
    frg_report_plot(
        r, &(frg_plot){.caption = "no points", .reference = 0, .n_series = 1, .series = &s});
    const char *const html = rendered(ctx, r, FRG_HTML, 0);
    CHECK(well_formed(html));
    CHECK(strstr(html, "no finite values") != NULL);
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

/** The two numbers behind the n-th occurrence of `before` in a page. */
static void numbers_at(const char *html, const char *before, int n, double *a, double *b)
{
    const char *at = html;
    *a = *b = (double)NAN;
    for (; at && n >= 0; n--) {
        at = strstr(at, before);
        at = at ? at + strlen(before) : NULL;
    }
    if (CHECK(at != NULL)) {
        char *end;
        *a = strtod(at, &end);
        *b = strtod(end, NULL);
    }
}

/** A unit to the right is as long as a unit up, whatever the cloud's shape; links have both ends;
 *  what is not a number has none.  Coordinates are written to 0.1 px, so that lengths are off by
 *  0.1 at most. */
static void maps(void)
{
    static const double tall[] = {0, 1, 1, 1, (double)NAN, 0, 0, 0},
                        ups[] = {0, 0, 0, 9, 3, 3, 0, 9}, flat[] = {0, 9, 9, 9, 1, 1, 1, 1};
    frg_context *ctx = test_context();
    for (int wide = 0; wide < 2; wide++) {
        frg_report *r = fresh(ctx, "x");
        const frg_series s = {.name = "l",
                              .n = 8,
                              .x = wide ? flat : tall,
                              .y = wide ? tall : ups,
                              .style = FRG_LINKS};
        frg_report_plot(
            r,
            &(frg_plot){.caption = "m", .map = 1, .reference = NONE, .n_series = 1, .series = &s});
        const char *const html = rendered(ctx, r, FRG_HTML, 0);
        const char *const links = strstr(html, "class=\"link s1\" d=\"M0 0");
        double x[4], y[4];
        if (CHECK(links != NULL)) {
            for (int q = 0; q < 2; q++) { /* behind "M0 0": the links (0, 1) and (2, 3) */
                numbers_at(links, "M", q + 1, &x[2 * q], &y[2 * q]);
                numbers_at(links, "L", q, &x[2 * q + 1], &y[2 * q + 1]);
            }
            /* tall: the first link is one unit across, the second nine up; wide: the first is nine
             * across and one up */
            const double across = (x[1] - x[0]) / (wide ? 9 : 1),
                         up = wide ? y[0] - y[1] : (y[2] - y[3]) / 9;
            CHECK_NEAR(across, up, 0.2);
        }
        CHECK(strstr(html, "l (links, 4)") != NULL);
        CHECK(strstr(html, "class=\"axis\"") == NULL);
        frg_report_destroy(r);
    }
    frg_context_destroy(ctx);
}

static void plots_that_are_refused(void)
{
    static const char *const names[] = {"a"};
    static const double y[] = {1, 2, 3};
    const frg_series odd = {.name = "s", .n = 3, .y = y, .style = FRG_LINKS},
                     even = {.name = "s", .n = 2, .y = y, .style = FRG_LINKS};
    const frg_plot bad[] = {
        {.reference = NONE, .n_series = 1, .series = &odd},
        {.reference = NONE, .n_series = 1, .series = &even, .map = 1, .log_y = 1},
        {.reference = NONE, .n_series = 1, .series = &even, .map = 1, .horizontal = 1},
        {.reference = NONE,
         .n_series = 1,
         .series = &even,
         .map = 1,
         .categories = names,
         .n_categories = 1}};
    frg_context *ctx = test_context();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        frg_report *r = fresh(ctx, "x");
        const char *text;
        frg_report_plot(r, &bad[i]);
        CHECK_STATUS(frg_report_render(r, FRG_HTML, 0, &text, NULL), FRG_BAD_ARG);
        frg_report_destroy(r);
    }
    frg_context_destroy(ctx);
}

/** A thinned curve keeps its extremes: one spike among a hundred thousand points is still drawn. */
static void long_curves(void)
{
    enum { N = 100000 };
    frg_context *ctx = test_context();
    double *const y = malloc(N * sizeof *y);
    for (int i = 0; i < N; i++)
        y[i] = i == 61803 ? 100 : sin(i * 1e-3);
    frg_report *r = fresh(ctx, "x");
    const frg_series s = {.name = "y", .n = N, .y = y};
    frg_report_plot(r,
                    &(frg_plot){.caption = "long", .reference = NONE, .n_series = 1, .series = &s});
    const char *const html = rendered(ctx, r, FRG_HTML, 0);
    CHECK(drawable(html));
    CHECK_SAYS(strlen(html) < 100000, "%zu bytes", strlen(html));
    /* the axis is padded by 0.04 of the range, so the spike stands at 0.04 / 1.08 of the area's
     * height */
    const char *p = strstr(html, "class=\"line");
    double top = INFINITY;
    while (p && (p = strpbrk(p, " \"LM")) && strncmp(p, "\"/>", 3) != 0) {
        double px, py;
        if (sscanf(p, "%*[LM]%lf %lf", &px, &py) == 2)
            top = fmin(top, py);
        p++;
    }
    CHECK_NEAR(top, 8 + 260 * 0.04 / 1.08, 0.01);
    free(y);
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

static void ticks(void)
{
    for (int i = 0; i < 20000; i++) {
        const double scale = pow(10, (double)(test_below(600) - 300)), a = test_normal() * scale;
        const double b = a + fabs(test_normal()) * scale;
        const int wanted = 3 + (int)test_below(8);
        const frgi_axis x = frgi_axis_make(a, b, false, wanted);
        /* steps are at most 2.5 times finer than asked for, so that n <= wanted + 1 and n >= wanted
         * / 2.5 - 1 */
        CHECK_SAYS(x.n >= 1 && x.n <= wanted + 1 && 2.5 * (x.n + 1) >= wanted,
                   "[%g, %g]: %d ticks for %d", a, b, x.n, wanted);
        const double unit = x.step / pow(10, floor(log10(x.step) + 1e-9));
        CHECK_SAYS(fabs(unit - 1) < 1e-9 || fabs(unit - 2) < 1e-9 || fabs(unit - 5) < 1e-9,
                   "step %g", x.step);
        for (int t = 0; t < x.n; t++)
            CHECK(x.at[t] >= x.low - 1e-6 * x.step && x.at[t] <= x.high + 1e-6 * x.step &&
                  (t == 0 || x.at[t] > x.at[t - 1]));
    }
    const frgi_axis log = frgi_axis_make(3e-11, 0.5, true, 8);
    CHECK_NEAR(log.high, 0, 0);
    CHECK(log.low <= -11 && log.n >= 4 && log.n <= 9);
    CHECK_NEAR(frgi_axis_place(&log, 1), 1, 0);
    CHECK(isnan(frgi_axis_place(&log, -1)));
}

/* ---- files ----------------------------------------------------------------------------------- */

static void saving(void)
{
    frg_context *ctx = test_context();
    frg_report *r = fresh(ctx, "x");
    add_table(r);
    char path[] = "/tmp/fourge_report_XXXXXX";
    const int handle = mkstemp(path);
    CHECK(handle >= 0);
    close(handle);
    CHECK_OK(ctx, frg_report_save(r, FRG_MARKDOWN, path));
    char *bytes;
    size_t count;
    CHECK_OK(ctx, frgi_read_file(ctx, path, &bytes, &count));
    const char *const want = rendered(ctx, r, FRG_MARKDOWN, 0);
    if (CHECK_INT(count, strlen(want)))
        CHECK_BITS(bytes, want, count);
    DROP(ctx, &bytes);
    remove(path);
    CHECK_STATUS(frg_report_save(r, FRG_HTML, "/nonexistent/report.html"), FRG_CANNOT_CREATE);
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"text", text_format},
    {"Markdown", markdown_format},
    {"LaTeX", latex_format},
    {"CSV", csv_format},
    {"HTML", html_format},
    {"HTML: words that are numbers", html_words},
    {"display width", display_width},
    {"wide tables", wide_tables},
    {"misuse", misuse},
    {"hostile names", hostile},
    {"plots: any data", plots_of_any_data},
    {"plots: empty", empty_plots},
    {"maps", maps},
    {"plots that are refused", plots_that_are_refused},
    {"plots: long curves", long_curves},
    {"ticks", ticks},
    {"saving", saving},
};
TEST_MAIN(cases)
