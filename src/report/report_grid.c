/* report_grid.c - a table as escaped, measured strings: the raw material of text and Markdown
 * tables.
 *
 * Row 0 is the header.  Numbers of right-aligned columns carry blanks behind them that line up
 * their decimal points.  All strings lie in one block; `start` has offsets because the block moves
 * as it grows.
 */
#include <string.h>

#include "report/report_parts.h"

static void put_cell(frgi_sink *k, const frgi_report_table *t, int64_t cell, int64_t column_tail,
                     const frgi_escapes *e)
{
    char buffer[32];
    int64_t tail;
    frgi_put_escaped(k, frgi_cell_words(&t->cells[cell], buffer), e, false);
    if (frgi_cell_tail(t, cell, &tail))
        frgi_put_times(k, " ", column_tail - tail);
}

static bool is_number(const frgi_report_table *t, int64_t cell)
{
    frgi_number_parts p;
    char buffer[32];
    return frgi_number_split(frgi_cell_words(&t->cells[cell], buffer), &p);
}

static void fill(frgi_grid *g, frgi_sink *k, const frgi_report_table *t, const frgi_escapes *e)
{
    for (int64_t j = 0; j < g->columns; j++) {
        const int64_t column_tail = frgi_column_tail(t, j);
        g->natural[j] = 1;
        g->least[j] = 1;
        for (int64_t i = 0; i <= g->rows && k->status >= 0; i++) {
            const size_t start = k->text.length;
            const int64_t at = i * g->columns + j;
            if (i == 0)
                frgi_put_escaped(k, t->columns[j].name, e, false);
            else
                put_cell(k, t, at - g->columns, column_tail, e);
            frgi_put_bytes(k, "", 1); /* its NUL */
            if (k->status < 0)
                return;
            g->start[at] = start;
            g->width[at] = frgi_text_width(k->text.text + start, k->text.length - start);
            if (g->width[at] > g->natural[j])
                g->natural[j] = g->width[at];
            if (i > 0 && g->width[at] > g->least[j] && is_number(t, at - g->columns))
                g->least[j] = g->width[at];
        }
    }
}

frg_status frgi_grid_make(frgi_grid *g, frg_context *ctx, const frgi_report_table *t,
                          const frgi_escapes *e)
{
    *g = (frgi_grid){.rows = t->n_cells / t->n_columns, .columns = t->n_columns};
    const int64_t cells = (g->rows + 1) * g->columns;
    frgi_sink k = {.ctx = ctx};
    frg_status status;
    TRY_TO(failed, NEW(ctx, &g->start, cells, "report"));
    TRY_TO(failed, NEW(ctx, &g->width, cells, "report"));
    TRY_TO(failed, NEW(ctx, &g->natural, g->columns, "report"));
    TRY_TO(failed, NEW(ctx, &g->least, g->columns, "report"));
    fill(g, &k, t, e);
    g->text = k.text.text;
    TRY_TO(failed, k.status);
    return FRG_OK;
failed:
    frgi_grid_free(g, ctx);
    return status;
}

void frgi_grid_free(frgi_grid *g, frg_context *ctx)
{
    DROP(ctx, &g->start);
    DROP(ctx, &g->width);
    DROP(ctx, &g->natural);
    DROP(ctx, &g->least);
    DROP(ctx, &g->text);
}
