/* csv_header.c - the first row: what kind of text it is, how many columns, their names, which are
 * wanted. */
#include <string.h>

#include "io/csv_reader.h"

enum { BOM_BYTES = 4 }; /* of the longest mark that a file begins with */

static frg_status check_beginning(frgi_csv_reader *t)
{
    while (!t->segments.now.last && t->segments.now.length < BOM_BYTES) {
        TRY(frgi_segments_enlarge(&t->segments));
    }
    const frgi_segment *const segment = &t->segments.now;
    const char *const s = segment->text;
    if (segment->length == 0) {
        frgi_csv_place(t, 1);
        FAIL(t->ctx, E_FORMAT, "'%s' is empty", t->input->name);
    }
    if (segment->length >= 2 && (memcmp(s, "\xff\xfe", 2) == 0 || memcmp(s, "\xfe\xff", 2) == 0)) {
        frgi_csv_place(t, 1);
        FAIL(t->ctx, E_FORMAT, "'%s' is UTF-16; convert it: iconv -f UTF-16 -t UTF-8",
             t->input->name);
    }
    return FRG_OK;
}

/** Passes over the byte-order mark and blank lines, and reads on until the first row is whole.  Its
 *  cells are then counted. */
static frg_status find_first_row(frgi_csv_reader *t, int64_t *begin, int64_t *cells)
{
    frgi_segments *const w = &t->segments;
    for (;;) {
        const char *s = w->now.text, *const e = s + w->now.length;
        s += e - s >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        while (s < e && (*s == '\n' || *s == '\r')) {
            s++;
        }
        *begin = s - w->now.text;
        const char *end = s;
        frgi_cell_end how = CELL_UNFINISHED;
        for (*cells = 1; s < e; s = end + 1, ++*cells) {
            how = frgi_cell_find_end(s, e, w->delimiter, &end);
            if (how != CELL_WHOLE || *end == '\n') {
                break;
            }
            how = CELL_UNFINISHED;
        }
        if (how == CELL_WHOLE) {
            w->start = end + 1 - w->now.text;
            return FRG_OK;
        }
        if (how == CELL_GARBAGE || w->now.last) {
            frgi_csv_place(t, 1 + frgi_count_newlines(w->now.text, w->now.text + *begin));
            FAIL(t->ctx, E_FORMAT, "%s",
                 how == CELL_GARBAGE ? "text follows the closing quote of a cell"
                 : how == CELL_OPEN  ? "a quote is not closed before the end"
                                     : "the file has no rows");
        }
        TRY(frgi_segments_enlarge(w));
    }
}

/** A .txt file is separated by tabs if its first line that is not blank has one, else by commas. */
static frg_status guess_delimiter(frgi_segments *w)
{
    for (;;) {
        const char *s = w->now.text, *const e = s + w->now.length;
        while (s < e && (*s == '\n' || *s == '\r')) {
            s++;
        }
        const char *const newline = memchr(s, '\n', (size_t)(e - s));
        if (newline || w->now.last) {
            w->delimiter = memchr(s, '\t', (size_t)((newline ? newline : e) - s)) ? '\t' : ',';
            return FRG_OK;
        }
        TRY(frgi_segments_enlarge(w));
    }
}

/** A name that stands twice is an error where the column is asked for: nobody knows which of the
 *  two is meant. */
static frg_status refuse_second(frgi_csv_reader *t, int64_t column, int64_t line)
{
    const char *const name = t->columns[column].name;
    if (!frgi_column_is_wanted(t->opts, name)) {
        return FRG_OK;
    }
    int64_t first = 0;
    while (strcmp(t->columns[first].name, name) != 0) {
        first++;
    }
    frgi_csv_place(t, line);
    FAIL(t->ctx, E_FORMAT, "columns %lld and %lld are both named '%s'", (long long)first + 1,
         (long long)column + 1, name);
}

/** Names column `column` by the cell [s, e) on the given line. */
static frg_status add_name(frgi_csv_reader *t, int64_t column, int64_t line, const char *s,
                           const char *e, frgi_dictionary *seen)
{
    frgi_cell_text cell = frgi_cell_unquote(s, e);
    while (cell.s == s && cell.n > 0 && (cell.s[cell.n - 1] == ' ' || cell.s[cell.n - 1] == '\t')) {
        cell.n--;
    }
    while (cell.n > 0 && *s != '"' && (*cell.s == ' ' || *cell.s == '\t')) {
        cell.s++;
        cell.n--;
    }
    char *name;
    TRY(frgi_strdup(t->ctx, &name, cell.s, (size_t)cell.n));
    t->columns[column].name = name;
    const int64_t n = frgi_cell_copy(&cell, name);
    name[n] = '\0';
    if (n == 0) {
        frgi_csv_place(t, line);
        FAIL(t->ctx, E_FORMAT,
             "column %lld has no name in the first line (row numbers of R or "
             "pandas? write the file without them)",
             (long long)column + 1);
    }
    if (!frgi_is_utf8(name, n)) {
        frgi_csv_place(t, line);
        FAIL(t->ctx, E_FORMAT,
             memchr(name, '\0', (size_t)n)
                 ? "the name of column %lld holds a NUL byte; is this a text file?"
                 : "the name of column %lld is not UTF-8; convert the file: "
                   "iconv -f LATIN1 -t UTF-8",
             (long long)column + 1);
    }
    if (*s != '"' && memchr(name, '\r', (size_t)n)) {
        frgi_csv_place(t, line);
        FAIL(
            t->ctx, E_FORMAT,
            "the name of column %lld holds a carriage return; if lines end in these alone, convert "
            "the file: tr '\\r' '\\n'",
            (long long)column + 1);
    }
    TRY(frgi_dictionary_reserve(seen, t->ctx, 1, n));
    const int64_t names = seen->count;
    (void)frgi_dictionary_put(seen, name, n, frgi_hash(name, n));
    return seen->count == names ? refuse_second(t, column, line) : FRG_OK;
}

static frg_status name_columns(frgi_csv_reader *t, int64_t begin, frgi_dictionary *seen)
{
    const frgi_segments *const w = &t->segments;
    const char *s = w->now.text + begin, *const e = w->now.text + w->start;
    const int64_t line = 1 + frgi_count_newlines(w->now.text, s);
    for (int64_t i = 0; i < t->n_columns; i++) {
        if (!t->opts->header) {
            frgi_text name = {0};
            TRY(frgi_text_printf(t->ctx, &name, "c%lld", (long long)i + 1));
            t->columns[i].name = name.text;
            continue;
        }
        const char *end;
        (void)frgi_cell_find_end(s, e, w->delimiter, &end); /* found before */
        TRY(add_name(t, i, line, s, end - (*end == '\n' && end > s && end[-1] == '\r'), seen));
        s = end + 1;
    }
    return FRG_OK;
}

static frg_status choose_columns(frgi_csv_reader *t)
{
    const char **names;
    TRY(NEW(t->ctx, &names, t->n_columns, "column names"));
    for (int64_t i = 0; i < t->n_columns; i++) {
        names[i] = t->columns[i].name;
        t->columns[i].wanted = frgi_column_is_wanted(t->opts, names[i]);
    }
    const frg_status status =
        frgi_columns_exist(t->ctx, t->opts, t->input->name, names, t->n_columns);
    DROP(t->ctx, &names);
    return status;
}

frg_status frgi_csv_read_header(frgi_csv_reader *t)
{
    TRY(check_beginning(t));
    if (!t->segments.delimiter) {
        TRY(guess_delimiter(&t->segments));
    }
    int64_t begin, cells;
    TRY(find_first_row(t, &begin, &cells));
    t->segments.n_columns = cells;
    if (!t->columns) {
        TRY(NEW0(t->ctx, &t->columns, cells, "columns"));
        t->n_columns = cells;
        TRY(NEW(t->ctx, &t->active, cells, "columns"));
        frgi_dictionary seen = {0};
        const frg_status status = name_columns(t, begin, &seen);
        frgi_dictionary_free(&seen, t->ctx);
        TRY(status);
        TRY(choose_columns(t));
    }
    if (cells != t->n_columns) {
        FAIL(t->ctx, E_READ, "'%s' was changed while it was read", t->input->name);
    }
    if (!t->opts->header) {
        t->segments.start = begin;
    }
    t->lines = frgi_count_newlines(t->segments.now.text, t->segments.now.text + t->segments.start);
    return FRG_OK;
}
