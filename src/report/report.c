/* report.c - a report is a list of elements, built once and rendered to any format.
 *
 *     title, then headings, paragraphs, facts, tables (columns, cells row by row) and plots
 *
 * The building calls copy what they are given and keep the first error; a call after an error does
 * nothing.  The writers (report_text.c and its siblings) read the finished list and know no errors
 * but those of their sink.
 */
#include <math.h>
#include <string.h>

#include "report/report_parts.h"

static frg_status copy_text(frg_context *ctx, char **out, const char *s)
{
    return frgi_strdup(ctx, out, s ? s : "", s ? strlen(s) : 0);
}

frg_status frg_report_create(frg_report **out, frg_context *ctx, const char *title)
{
    REQUIRE(ctx, ctx && out, "frg_report_create takes a place and a context");
    *out = NULL;
    frg_report *r;
    TRY(NEW0(ctx, &r, 1, "report"));
    r->ctx = ctx;
    const frg_status status = copy_text(ctx, &r->title, title);
    if (status < 0)
        frg_report_destroy(r);
    else
        *out = r;
    return status;
}

/* ---- letting go ------------------------------------------------------------------------------ */

static void drop_table(frg_context *ctx, frgi_report_table *t)
{
    for (int64_t j = 0; j < t->n_columns; j++)
        DROP(ctx, &t->columns[j].name);
    for (int64_t i = 0; i < t->n_cells; i++)
        DROP(ctx, &t->cells[i].text);
    DROP(ctx, &t->columns);
    DROP(ctx, &t->cells);
}

static void drop_plot(frg_context *ctx, frgi_plot *p)
{
    for (int s = 0; s < p->n_series && p->series; s++) {
        DROP(ctx, &p->series[s].name);
        DROP(ctx, &p->series[s].x);
        DROP(ctx, &p->series[s].y);
        DROP(ctx, &p->series[s].low);
        DROP(ctx, &p->series[s].high);
    }
    for (int c = 0; c < p->n_categories && p->categories; c++)
        DROP(ctx, &p->categories[c]);
    DROP(ctx, &p->series);
    DROP(ctx, &p->categories);
    DROP(ctx, &p->x_label);
    DROP(ctx, &p->y_label);
}

void frg_report_destroy(frg_report *r)
{
    if (!r)
        return;
    frg_context *ctx = r->ctx;
    for (int64_t i = 0; i < r->n_elements; i++) {
        frgi_element *const e = &r->elements[i];
        DROP(ctx, &e->text);
        if (e->kind == ELEMENT_FACT)
            DROP(ctx, &e->fact.text);
        else if (e->kind == ELEMENT_TABLE)
            drop_table(ctx, &e->table);
        else if (e->kind == ELEMENT_PLOT)
            drop_plot(ctx, &e->plot);
    }
    DROP(ctx, &r->elements);
    DROP(ctx, &r->title);
    frgi_text_free(ctx, &r->rendered);
    DROP(ctx, &r);
}

/* ---- building -------------------------------------------------------------------------------- */

/** Room for one more item in a growing array of `size` bytes each. */
static frg_status reserve(frg_context *ctx, void **items, int64_t count, int64_t *capacity,
                          size_t size)
{
    if (count < *capacity)
        return FRG_OK;
    const int64_t more = *capacity ? 2 * *capacity : 8;
    TRY(frgi_resize(ctx, items, frgi_mul((size_t)more, size), "report"));
    *capacity = more;
    return FRG_OK;
}
#define RESERVE(r, items, count, capacity)                                                         \
    reserve((r)->ctx, (void **)&(items), (count), &(capacity), sizeof *(items))

static frg_status no_table_open(frg_report *r)
{
    if (!r)
        return FRG_BAD_ARG;
    TRY(r->status);
    REQUIRE(r->ctx, !r->table_open, "report: the table before is not closed");
    return FRG_OK;
}

/** Appends an empty element of this kind; it is freed with the report whatever happens next. */
static frg_status append(frg_report *r, frgi_element_kind kind, const char *text,
                         frgi_element **out)
{
    TRY(no_table_open(r));
    TRY(RESERVE(r, r->elements, r->n_elements, r->capacity));
    frgi_element *const e = &r->elements[r->n_elements];
    *e = (frgi_element){.kind = kind};
    TRY(copy_text(r->ctx, &e->text, text));
    r->n_elements++;
    *out = e;
    return FRG_OK;
}

static void keep(frg_report *r, frg_status status)
{
    if (r && r->status >= 0 && status < 0)
        r->status = status;
}

void frg_report_heading(frg_report *r, const char *text)
{
    frgi_element *e;
    keep(r, append(r, ELEMENT_HEADING, text, &e));
}

void frg_report_paragraph(frg_report *r, const char *text)
{
    frgi_element *e;
    keep(r, append(r, ELEMENT_PARAGRAPH, text, &e));
}

static frg_status add_fact(frg_report *r, const char *name, const char *text, double number,
                           int digits)
{
    frgi_element *e;
    TRY(append(r, ELEMENT_FACT, name, &e));
    e->fact =
        (frgi_cell){.kind = text ? CELL_TEXT : CELL_NUMBER, .number = number, .digits = digits};
    return text ? copy_text(r->ctx, &e->fact.text, text) : FRG_OK;
}

void frg_report_fact(frg_report *r, const char *name, const char *value)
{
    keep(r, add_fact(r, name, value ? value : "", 0, 0));
}

void frg_report_fact_number(frg_report *r, const char *name, double value, int digits)
{
    keep(r, add_fact(r, name, NULL, value, digits));
}

void frg_report_table_open(frg_report *r, const char *caption)
{
    frgi_element *e;
    const frg_status status = append(r, ELEMENT_TABLE, caption, &e);
    keep(r, status);
    if (r)
        r->table_open = status >= 0;
}

/** The table that takes columns and cells. */
static frg_status open_table(frg_report *r, frgi_report_table **out)
{
    *out = NULL;
    if (!r)
        return FRG_BAD_ARG;
    TRY(r->status);
    REQUIRE(r->ctx, r->table_open, "report: no table is open");
    *out = &r->elements[r->n_elements - 1].table;
    return FRG_OK;
}

static frg_status add_column(frg_report *r, const char *name, frg_align align)
{
    frgi_report_table *t;
    TRY(open_table(r, &t));
    REQUIRE(r->ctx, t->n_cells == 0, "report: a column after the cells");
    TRY(RESERVE(r, t->columns, t->n_columns, t->columns_capacity));
    t->columns[t->n_columns] = (frgi_report_column){.align = align};
    TRY(copy_text(r->ctx, &t->columns[t->n_columns].name, name));
    t->n_columns++;
    return FRG_OK;
}

void frg_report_table_column(frg_report *r, const char *name, frg_align align)
{
    keep(r, add_column(r, name, align));
}

static frg_status add_cell(frg_report *r, frgi_cell cell, const char *text)
{
    frgi_report_table *t;
    TRY(open_table(r, &t));
    REQUIRE(r->ctx, t->n_columns > 0, "report: a cell before the columns");
    TRY(RESERVE(r, t->cells, t->n_cells, t->cells_capacity));
    if (cell.kind == CELL_TEXT)
        TRY(copy_text(r->ctx, &cell.text, text));
    t->cells[t->n_cells++] = cell;
    return FRG_OK;
}

void frg_report_cell_text(frg_report *r, const char *text)
{
    keep(r, add_cell(r, (frgi_cell){.kind = CELL_TEXT}, text));
}

void frg_report_cell_number(frg_report *r, double value, int digits)
{
    keep(r, add_cell(r, (frgi_cell){.kind = CELL_NUMBER, .number = value, .digits = digits}, NULL));
}

void frg_report_cell_integer(frg_report *r, int64_t value)
{
    keep(r, add_cell(r, (frgi_cell){.kind = CELL_INTEGER, .integer = value}, NULL));
}

static frg_status close_table(frg_report *r)
{
    frgi_report_table *t;
    TRY(open_table(r, &t));
    REQUIRE(r->ctx, t->n_columns > 0 && t->n_cells % t->n_columns == 0,
            "report: %lld cells do not fill rows of %lld columns", (long long)t->n_cells,
            (long long)t->n_columns);
    r->table_open = false;
    return FRG_OK;
}

void frg_report_table_close(frg_report *r)
{
    keep(r, close_table(r));
}

/* ---- plots ----------------------------------------------------------------------------------- */

static frg_status copy_doubles(frg_context *ctx, double **out, const double *from, int64_t n)
{
    if (!from)
        return FRG_OK;
    TRY(NEW(ctx, out, n, "plot"));
    memcpy(*out, from, (size_t)n * sizeof *from);
    return FRG_OK;
}

static frg_status copy_series(frg_report *r, frgi_series *to, const frg_series *from)
{
    frg_context *ctx = r->ctx;
    REQUIRE(ctx, from->n >= 0, "plot: a series of %lld points", (long long)from->n);
    REQUIRE(ctx, !from->low == !from->high, "plot: low and high belong together");
    REQUIRE(ctx, from->y || (from->low && (int)from->style == (int)FRG_BAND),
            "plot: a series without y");
    REQUIRE(ctx, (int)from->style >= FRG_LINE && (int)from->style <= FRG_LINKS,
            "plot: unknown style %d", (int)from->style);
    REQUIRE(ctx, (int)from->style != FRG_LINKS || from->n % 2 == 0, "plot: links of %lld points",
            (long long)from->n);
    to->n = from->n;
    to->style = (int)from->style;
    TRY(copy_text(ctx, &to->name, from->name));
    TRY(copy_doubles(ctx, &to->x, from->x, from->n));
    TRY(copy_doubles(ctx, &to->y, from->y, from->n));
    TRY(copy_doubles(ctx, &to->low, from->low, from->n));
    return copy_doubles(ctx, &to->high, from->high, from->n);
}

static frg_status copy_plot(frg_report *r, const frg_plot *p)
{
    if (!r)
        return FRG_BAD_ARG;
    frg_context *const ctx = r->ctx;
    REQUIRE(ctx, p, "plot: NULL");
    frgi_element *e;
    TRY(append(r, ELEMENT_PLOT, p->caption, &e));
    frgi_plot *const to = &e->plot;
    REQUIRE(ctx, p->n_series >= 0 && (p->n_series == 0 || p->series), "plot: no series");
    REQUIRE(ctx, p->n_categories >= 0, "plot: %d categories", p->n_categories);
    REQUIRE(ctx, !p->map || (!p->log_y && !p->horizontal && !p->categories),
            "plot: a map has two plain axes");
    to->map = p->map != 0;
    to->log_y = p->log_y != 0;
    to->horizontal = p->horizontal != 0;
    to->reference = p->reference;
    if (p->x_label)
        TRY(copy_text(ctx, &to->x_label, p->x_label));
    if (p->y_label)
        TRY(copy_text(ctx, &to->y_label, p->y_label));
    if (p->categories && p->n_categories > 0) {
        to->n_categories = p->n_categories;
        TRY(NEW0(ctx, &to->categories, p->n_categories, "plot"));
        for (int c = 0; c < p->n_categories; c++)
            TRY(copy_text(ctx, &to->categories[c], p->categories[c]));
    }
    to->n_series = p->n_series;
    TRY(NEW0(ctx, &to->series, p->n_series, "plot"));
    for (int s = 0; s < p->n_series; s++)
        TRY(copy_series(r, &to->series[s], &p->series[s]));
    return FRG_OK;
}

void frg_report_plot(frg_report *r, const frg_plot *p)
{
    keep(r, copy_plot(r, p));
}

/* ---- rendering ------------------------------------------------------------------------------- */

frg_status frg_report_render(frg_report *r, frg_report_format format, int width, const char **text,
                             int64_t *length)
{
    if (!r)
        return FRG_BAD_ARG;
    static void (*const writers[])(frgi_sink *, const frg_report *) = {
        [FRG_MARKDOWN] = frgi_write_markdown,
        [FRG_LATEX] = frgi_write_latex,
        [FRG_CSV] = frgi_write_csv,
        [FRG_HTML] = frgi_write_html,
    };
    TRY(no_table_open(r));
    REQUIRE(r->ctx, (int)format >= FRG_TEXT && (int)format <= FRG_HTML, "report: unknown format %d",
            (int)format);
    frgi_sink k = {.ctx = r->ctx};
    if (format == FRG_TEXT)
        frgi_write_text(&k, r, width > 0 ? width : 80);
    else
        writers[format](&k, r);
    frgi_put(&k, ""); /* a report without tables is an empty CSV text, not a NULL one */
    if (k.status < 0) {
        frgi_text_free(r->ctx, &k.text);
        return k.status;
    }
    frgi_text_free(r->ctx, &r->rendered);
    r->rendered = k.text;
    *text = r->rendered.text;
    if (length)
        *length = (int64_t)r->rendered.length;
    return FRG_OK;
}

frg_status frg_report_save(frg_report *r, frg_report_format format, const char *path)
{
    const char *text = NULL;
    int64_t length = 0;
    TRY(frg_report_render(r, format, 0, &text, &length));
    frgi_writer *w;
    TRY(frgi_writer_open(&w, r->ctx, path));
    const frg_status status = frgi_writer_put(w, text, (size_t)length);
    if (status < 0) {
        frgi_writer_abandon(&w);
        return status;
    }
    return frgi_writer_commit(&w);
}
