/* table_write.c - a table as CSV that reads back to the same values.
 *
 * Doubles are written as the shortest text of the same double.  A missing value is an empty cell;
 * in a table of one column, where an empty line would be passed over, it is NA.  A label is quoted
 * where it holds the delimiter, a quote, a line end or spaces at an end, and where it is empty.
 */
#include <string.h>
#include <strings.h>

#include "fourge/report.h"
#include "io/io.h"

enum { NUMBER_BYTES = 32, ROWS_A_POLL = 1024 };

static frg_status put(frgi_writer *w, const char *s)
{
    return frgi_writer_put(w, s, strlen(s));
}

/* A text that begins with '=' or the like is written as it is too: a mark in front of it, against
 * spreadsheets that compute with it, would be read back as a part of it. */
static frg_status put_text(frgi_writer *w, const char *s, char delimiter)
{
    const size_t n = strlen(s);
    const char special[] = {'"', '\n', '\r', delimiter, '\0'};
    const bool padded = n == 0 || strchr(" \t", s[0]) || strchr(" \t", s[n - 1]);
    if (!padded && s[strcspn(s, special)] == '\0') {
        return frgi_writer_put(w, s, n);
    }
    TRY(put(w, "\""));
    while (*s) {
        const size_t plain = strcspn(s, "\"");
        TRY(frgi_writer_put(w, s, plain));
        s += plain;
        if (*s) {
            TRY(put(w, "\"\""));
            s++;
        }
    }
    return put(w, "\"");
}

static frg_status put_integer(frgi_writer *w, int64_t value)
{
    char text[NUMBER_BYTES], *p = text + NUMBER_BYTES;
    uint64_t x = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--p = (char)('0' + x % 10);
        x /= 10;
    } while (x);
    if (value < 0) {
        *--p = '-';
    }
    return frgi_writer_put(w, p, (size_t)(text + NUMBER_BYTES - p));
}

static frg_status put_number(frgi_writer *w, double value)
{
    if (value - value != 0) { /* infinite */
        return put(w, value < 0 ? "-inf" : "inf");
    }
    char text[NUMBER_BYTES];
    return frgi_writer_put(w, text, (size_t)frg_format_double(value, text));
}

static bool is_missing(const frg_column *c, int64_t row)
{
    return c->numbers    ? c->numbers[row] != c->numbers[row]
           : c->integers ? c->integers[row] == FRG_MISSING_INTEGER
                         : c->codes[row] < 0;
}

static frg_status put_cell(frgi_writer *w, const frg_column *c, int64_t row, char delimiter,
                           const char *missing)
{
    if (is_missing(c, row)) {
        return put(w, missing);
    }
    switch (c->kind) {
    case FRG_NUMBER:
        return put_number(w, c->numbers[row]);
    case FRG_INTEGER:
        return put_integer(w, c->integers[row]);
    case FRG_BOOL:
        return put(w, c->codes[row] ? "TRUE" : "FALSE");
    case FRG_CATEGORY:
        break;
    }
    return put_text(w, c->labels[c->codes[row]], delimiter);
}

static void warn_of_formulas(frg_context *ctx, const frg_column *c)
{
    frgi_warn_of_formula(ctx, c->name);
    for (int64_t i = 0; c->kind == FRG_CATEGORY && i < c->n_labels; i++) {
        frgi_warn_of_formula(ctx, c->labels[i]);
    }
}

static frg_status put_table(frgi_writer *w, frg_context *ctx, const frg_table *t, char delimiter)
{
    const frgi_write_watch watch = frgi_write_begins(ctx);
    const char separator[2] = {delimiter, '\0'};
    const char *const missing = t->n_columns == 1 ? "NA" : "";
    for (int64_t c = 0; c < t->n_columns; c++) {
        TRY(put(w, c ? separator : ""));
        TRY(put_text(w, t->columns[c]->name, delimiter));
        warn_of_formulas(ctx, t->columns[c]);
    }
    TRY(put(w, "\n"));
    for (int64_t row = 0; row < t->n; row++) {
        if (row % ROWS_A_POLL == 0 && frgi_write_stops(&watch)) {
            return FRG_INTERRUPTED;
        }
        for (int64_t c = 0; c < t->n_columns; c++) {
            TRY(put(w, c ? separator : ""));
            TRY(put_cell(w, t->columns[c], row, delimiter, missing));
        }
        TRY(put(w, "\n"));
    }
    return FRG_OK;
}

static bool ends_in(const char *path, const char *extension)
{
    const size_t n = strlen(path), m = strlen(extension);
    return n >= m && strcasecmp(path + n - m, extension) == 0;
}

frg_status frg_table_write(const frg_table *t, frg_context *ctx, const char *path)
{
    static const char *const refused[] = {".gz",  ".zst",     ".npy", ".npz",
                                          ".dta", ".parquet", ".xlsx"};
    REQUIRE(ctx, path && *path, "frg_table_write needs a path");
    REQUIRE(ctx, t->n_columns > 0, "a table without columns cannot be written");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (ends_in(path, refused[i])) {
            frgi_at(ctx, "%s", path);
            FAIL(ctx, E_FILE_TYPE, "tables are written as .csv or .tsv, not as '%s'", path);
        }
    }
    frgi_writer *w;
    TRY(frgi_writer_open(&w, ctx, path));
    const frg_status status = put_table(w, ctx, t, ends_in(path, ".tsv") ? '\t' : ',');
    if (status != FRG_OK) {
        frgi_writer_abandon(&w);
        return status;
    }
    return frgi_writer_commit(&w);
}
