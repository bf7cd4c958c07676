/* csv.c - text to a table: segments of text go through header, index and columns, once or twice.
 *
 * The second pass is for columns that turned out to be categories after numbers had been read: only
 * the text says whether "1" or "1.0" stood there.  It opens the file again; of a pipe, which cannot
 * be opened again, the text is kept.  Memory: the columns (8 bytes a number, 4 a code), two
 * segments and their index; for a pipe the text besides.  Work in parallel regions allocates
 * nothing and touches no context, and only the calling thread calls the file table.
 */
#include <string.h>

#include "io/csv_reader.h"

/* ---- messages -------------------------------------------------------------------------------- */

int64_t frgi_count_newlines(const char *s, const char *e)
{
    int64_t n = 0;
    while ((s = memchr(s, '\n', (size_t)(e - s)))) {
        n++;
        s++;
    }
    return n;
}

int64_t frgi_csv_line_at(const frgi_csv_reader *t, int b, const char *at)
{
    int64_t line = t->lines + 1;
    for (int i = 0; i < b; i++) {
        line += t->segments.blocks[i].lines;
    }
    return line + frgi_count_newlines(t->segments.blocks[b].text, at);
}

void frgi_csv_place(const frgi_csv_reader *t, int64_t line)
{
    frgi_at(t->ctx, "%s:%lld", t->input->name, (long long)line);
}

static frg_status report_index(const frgi_csv_reader *t, int b)
{
    const frgi_csv_index *const x = &t->segments.blocks[b];
    const char *row = x->text + x->used;
    if (x->end == INDEX_GARBAGE) {
        frgi_csv_place(t, frgi_csv_line_at(t, b, x->text + x->at));
        FAIL(t->ctx, E_FORMAT,
             "text follows the closing quote of a cell; quotes in cells are doubled");
    }
    if (x->end == INDEX_RAGGED) {
        frgi_csv_place(t, frgi_csv_line_at(t, b, row));
        const char *const name = t->n_columns == 1 ? t->columns[0].name : "";
        const size_t other = strcspn(name, ";\t|");
        FAIL(t->ctx, E_FORMAT, "the row has %lld cells, the first one has %lld%s",
             (long long)x->found, (long long)t->n_columns,
             name[other] == ';'    ? "; if ';' separates the cells, say so (--delimiter ';')"
             : name[other] == '\t' ? "; if a tab separates the cells, say so (--delimiter tab)"
             : name[other] == '|'  ? "; if '|' separates the cells, say so (--delimiter '|')"
                                   : "");
    }
    frgi_csv_place(t, frgi_csv_line_at(t, b, row));
    FAIL(t->ctx, E_FORMAT, "a quote in this row is not closed before the end of the file");
}

static frg_status check_index(const frgi_csv_reader *t)
{
    const frgi_segments *const w = &t->segments;
    for (int b = 0; b < w->n_blocks; b++) {
        if (w->blocks[b].end != INDEX_DONE) {
            return report_index(t, b);
        }
    }
    return w->now.last && w->used < w->now.length ? report_index(t, w->n_blocks - 1) : FRG_OK;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/** The columns that the segment in hand is converted for. */
static void list_active(frgi_csv_reader *t)
{
    t->n_active = 0;
    for (int64_t i = 0; i < t->n_columns; i++) {
        const frgi_csv_column *const c = &t->columns[i];
        if (t->again ? c->again : c->wanted && !c->again) {
            t->active[t->n_active++] = i;
        }
    }
}

static void drop_text(frgi_csv_reader *t)
{
    for (int64_t i = 0; i < t->pipe.n; i++) {
        void *text = (void *)(uintptr_t)t->pipe.text[i].bytes;
        frgi_free(t->ctx, &text);
    }
    t->pipe.n = 0;
}

/** Copies the text of the segment that the second pass of a pipe would need; of a long pipe nothing
 *  is kept. */
static frg_status keep_text(frgi_csv_reader *t, int64_t from)
{
    if (!t->pipe.keep || t->again || t->pipe.let_go) {
        return FRG_OK;
    }
    t->pipe.bytes += t->segments.used - from;
    if (t->pipe.bytes > (t->steps->keep ? t->steps->keep : frgi_csv_default_steps.keep)) {
        t->pipe.let_go = true;
        drop_text(t);
        return FRG_OK;
    }
    if (t->pipe.n == t->pipe.capacity) {
        const int64_t capacity = t->pipe.capacity ? 2 * t->pipe.capacity : 16;
        TRY(GROW(t->ctx, &t->pipe.text, capacity, "text of a pipe"));
        t->pipe.capacity = capacity;
    }
    const int64_t count = t->segments.used - from;
    char *copy;
    TRY(NEW(t->ctx, &copy, count, "text of a pipe"));
    memcpy(copy, t->segments.now.text + from, (size_t)count);
    t->pipe.text[t->pipe.n++] = (frgi_span){copy, count};
    return FRG_OK;
}

static frg_status report_progress(const frgi_csv_reader *t)
{
    const frg_progress p = {.solver = "table",
                            .phase = "read",
                            .done = frgi_source_consumed(t->segments.source),
                            .total = frgi_source_total(t->segments.source) > 0
                                         ? frgi_source_total(t->segments.source)
                                         : 0,
                            .residual = __builtin_nan(""),
                            .target = __builtin_nan(""),
                            .in_bytes = 1};
    return frgi_heartbeat(t->ctx, &p);
}

/** One reading of the whole text into the active columns; FRG_INTERRUPTED, FRG_TIME_LIMIT pass
 *  through. */
static frg_status read_segments(frgi_csv_reader *t)
{
    TRY(frgi_csv_read_header(t));
    for (int64_t from = 0;; from = 0) {
        const frg_status beat = report_progress(t);
        if (beat != FRG_OK) {
            return beat;
        }
        TRY(frgi_segments_index(&t->segments));
        TRY(check_index(t));
        list_active(t);
        TRY(frgi_segments_prepare(&t->segments));
        TRY(frgi_csv_convert(t));
        TRY(keep_text(t, from));
        t->rows += t->segments.rows;
        for (int b = 0; b < t->segments.n_blocks; b++) {
            t->lines += t->segments.blocks[b].lines;
        }
        if (t->segments.now.last) {
            return FRG_OK;
        }
        frgi_segments_swap(&t->segments);
    }
}

static frg_status read_pass(frgi_csv_reader *t, frgi_source *source)
{
    t->rows = t->lines = 0;
    frg_status status = frgi_segments_open(&t->segments, t->ctx, source, t->steps);
    t->segments.delimiter = t->opts->delimiter;
    if (status == FRG_OK) {
        status = read_segments(t);
    }
    frgi_segments_close(&t->segments);
    return status;
}

/** Reads the columns that became categories too late, from the beginning. */
static frg_status read_again(frgi_csv_reader *t)
{
    bool any = false;
    for (int64_t i = 0; i < t->n_columns; i++) {
        frgi_csv_column *const c = &t->columns[i];
        if (c->again && t->pipe.let_go) {
            frgi_at(t->ctx, "%s:%s", t->input->name, c->name);
            FAIL(t->ctx, E_READ,
                 "column '%s' turns from numbers to text late in a long pipe, whose beginning is "
                 "gone; write the data to a file first, which can be read twice",
                 c->name);
        }
        any |= c->again;
        if (c->again) {
            c->kind = CELL_TEXT;
            c->capacity = c->n_missing = 0;
        }
    }
    if (!any) {
        return FRG_OK;
    }
    t->again = true;
    const frgi_input kept = {.name = t->input->name, .spans = t->pipe.text, .n_spans = t->pipe.n};
    const int64_t rows = t->rows;
    frgi_source *source;
    TRY(frgi_source_open(&source, t->ctx, t->pipe.keep ? &kept : t->input, true));
    const frg_status status = read_pass(t, source);
    frgi_source_close(&source);
    if (status == FRG_OK && t->rows != rows) {
        frgi_at(t->ctx, "%s", t->input->name);
        FAIL(t->ctx, E_READ, "'%s' was changed while it was read", t->input->name);
    }
    return status;
}

/* ---- the table ------------------------------------------------------------------------------- */

/** The dictionary becomes labels: its text goes to *m, the rest is freed. */
static frg_status make_labels(frg_context *ctx, frgi_dictionary *d, frgi_column_memory *m)
{
    if (d->text_capacity > d->used + d->used / 4) {
        TRY(GROW(ctx, &d->text, d->used, "labels of a column"));
        d->text_capacity = d->used;
    }
    DROP(ctx, &d->slots);
    TRY(NEW(ctx, &m->labels, d->count, "labels of a column"));
    for (int64_t i = 0; i < d->count; i++) {
        m->labels[i] = d->text + d->starts[i];
    }
    m->label_text = d->text;
    d->text = NULL;
    return FRG_OK;
}

static frg_status make_column(frgi_csv_reader *t, frgi_csv_column *c, frg_table *table)
{
    static const frg_column_kind kinds[] = {[CELL_MISSING] = FRG_NUMBER,
                                            [CELL_INTEGER] = FRG_INTEGER,
                                            [CELL_NUMBER] = FRG_NUMBER,
                                            [CELL_BOOL] = FRG_BOOL,
                                            [CELL_TEXT] = FRG_CATEGORY};
    const frg_column_kind kind = kinds[c->kind];
    const bool empty = c->kind == CELL_MISSING;
    c->kind = empty ? CELL_NUMBER : c->kind;
    if (!c->values || c->capacity > t->rows + t->rows / 8 + 1024) {
        const size_t bytes = frgi_mul((size_t)t->rows, frgi_csv_value_bytes(c->kind));
        TRY(frgi_resize(t->ctx, &c->values, bytes, c->name));
    }
    if (empty) {
        frgi_csv_fill_missing(c, t->rows);
        c->n_missing = t->rows;
    }
    const int64_t n_labels = c->dictionary.count;
    frgi_column_memory memory = {.name = c->name, .values = c->values};
    c->name = NULL;
    c->values = NULL;
    frg_status status =
        kind == FRG_CATEGORY ? make_labels(t->ctx, &c->dictionary, &memory) : FRG_OK;
    if (status == FRG_OK) {
        status = frgi_table_adopt(table, memory, kind, c->n_missing, n_labels);
    }
    if (status < 0) {
        frgi_column_memory_free(t->ctx, &memory);
    }
    frgi_dictionary_free(&c->dictionary, t->ctx);
    return status;
}

static frg_status make_table(frgi_csv_reader *t, frg_table **out)
{
    frg_table *table;
    TRY(frg_table_create(&table, t->ctx, t->rows));
    for (int64_t i = 0; i < t->n_columns; i++) {
        const frg_status status =
            t->columns[i].wanted ? make_column(t, &t->columns[i], table) : FRG_OK;
        if (status < 0) {
            frg_table_destroy(table);
            return status;
        }
    }
    *out = table;
    return FRG_OK;
}

static void close_reader(frgi_csv_reader *t)
{
    for (int64_t i = 0; i < t->n_columns; i++) {
        DROP(t->ctx, &t->columns[i].name);
        DROP(t->ctx, &t->columns[i].values);
        frgi_dictionary_free(&t->columns[i].dictionary, t->ctx);
    }
    DROP(t->ctx, &t->columns);
    DROP(t->ctx, &t->active);
    DROP(t->ctx, &t->work.converted);
    for (int b = 0; b < FRGI_CSV_BLOCKS; b++) {
        DROP(t->ctx, &t->work.fresh[b]);
    }
    for (int i = 0; t->work.scratch && i < t->work.n_scratch; i++) {
        DROP(t->ctx, &t->work.scratch[i].slots);
        DROP(t->ctx, &t->work.scratch[i].cell);
    }
    DROP(t->ctx, &t->work.scratch);
    drop_text(t);
    DROP(t->ctx, &t->pipe.text);
    frgi_decimal_close(&t->decimal, t->ctx);
}

frg_status frgi_csv_read(frg_table **out, frg_context *ctx, const frgi_input *input,
                         frgi_source *source, const frg_table_opts *o, const frgi_csv_steps *steps)
{
    *out = NULL;
    frgi_csv_reader t = {.ctx = ctx, .input = input, .opts = o, .steps = steps};
    t.pipe.keep = input->path && (frgi_source_total(source) < 0 || strcmp(input->path, "-") == 0);
    t.work.n_scratch = frg_threads(ctx);
    frg_status status;
    TRY_TO(done, NEW0(ctx, &t.work.scratch, t.work.n_scratch, "scratch of the threads"));
    TRY_TO(done, frgi_decimal_open(&t.decimal, ctx));
    frgi_cell_rules_make(&t.rules, t.decimal, o);
    TRY_TO(done, read_pass(&t, source));
    if (status == FRG_OK) {
        TRY_TO(done, read_again(&t));
    }
    if (status == FRG_OK) {
        status = make_table(&t, out);
    }
done:
    close_reader(&t);
    return status;
}
