/* dta.c - Stata's files (formats 104 to 119) through ReadStat, which calls back with each variable,
 * cell and label.
 *
 * The file is in memory: ReadStat goes to and fro in it (the map, the strLs, the rows, the labels).
 * It is never told that a file goes on behind its end, and a file of formats 117 to 119 that does
 * not end as these do is refused before a row is looked at, so that none comes out short.
 */
#include "io/io.h"

#if FOURGE_READSTAT
#include <stdio.h>
#include <string.h>

#include "io/dta.h"

typedef struct {
    frg_context *ctx;
    const char *file;
    const frg_table_opts *opts;
    frgi_readstat lib;

    const char *bytes;
    int64_t count, at;
    bool cut; /* a read ended within what was asked for */

    frg_status status; /* of the call that ended the parsing */
    char **names;      /* of all variables */
    int64_t n_names, n_variables;
    frgi_dta_column *columns; /* those asked for */
    int64_t n_columns;
    int64_t rows, rows_seen;
    int version; /* of the format */
    bool strls_checked;
    const char *now; /* name of the column whose cell came last */
    frgi_dta_labels labels;
} dta;

/* ---- bytes ----------------------------------------------------------------------------------- */

static int open_bytes(const char *path, void *io)
{
    (void)path;
    ((dta *)io)->at = 0;
    return 0;
}

static int close_bytes(void *io)
{
    (void)io;
    return 0;
}

static readstat_off_t seek_bytes(readstat_off_t offset, readstat_io_flags_t whence, void *io)
{
    dta *const d = io;
    const int64_t from = whence == READSTAT_SEEK_SET   ? 0
                         : whence == READSTAT_SEEK_CUR ? d->at
                                                       : d->count;
    if (offset > d->count - from) {
        d->cut = true;
        return -1;
    }
    if (offset < -from) {
        return -1;
    }
    d->at = from + offset;
    return d->at;
}

static ssize_t read_bytes(void *to, size_t bytes, void *io)
{
    dta *const d = io;
    const size_t left = (size_t)(d->count - d->at), n = bytes < left ? bytes : left;
    d->cut |= n > 0 && n < bytes;
    if (n == 0) { /* where it asks for nothing, it may have no place for it */
        return 0;
    }
    memcpy(to, d->bytes + d->at, n);
    d->at += (int64_t)n;
    return (ssize_t)n;
}

/* ---- what is called back --------------------------------------------------------------------- */

/** Goes on, or remembers what ended it. */
static int answer(dta *d, frg_status status)
{
    d->status = status;
    return status == FRG_OK ? READSTAT_HANDLER_OK : READSTAT_HANDLER_ABORT;
}

/** Every row has a byte of each variable at least. */
static frg_status begin_table(dta *d, readstat_metadata_t *metadata)
{
    d->rows = d->lib.get_row_count(metadata);
    d->n_variables = d->lib.get_var_count(metadata);
    d->version = d->lib.get_file_format_version(metadata);
    frgi_at(d->ctx, "%s", d->file);
    if (d->rows < 0 || d->n_variables < 0 ||
        (d->n_variables > 0 && d->rows > d->count / d->n_variables) || d->n_variables > d->count) {
        FAIL(d->ctx, E_TRUNCATED, "'%s' has %lld bytes, and tells of %lld rows of %lld columns",
             d->file, (long long)d->count, (long long)d->rows, (long long)d->n_variables);
    }
    TRY(NEW0(d->ctx, &d->names, d->n_variables, "columns of a table"));
    return NEW0(d->ctx, &d->columns, d->n_variables, "columns of a table");
}

static int on_metadata(readstat_metadata_t *metadata, void *user)
{
    dta *const d = user;
    return answer(d, begin_table(d, metadata));
}

/** ReadStat hands the field of the name of a set of labels on as it stands in the file, without an
 *  end where the name fills it.  NULL is the empty name. */
static void copy_set_name(const dta *d, char to[FRGI_DTA_SET_NAME], const char *field)
{
    const int length = d->version < 110 ? 9 : d->version < 118 ? 33 : 129;
    snprintf(to, FRGI_DTA_SET_NAME, "%.*s", field ? length : 0, field ? field : "");
}

static frg_status add_variable(dta *d, readstat_variable_t *v, const char *label_set, bool *wanted)
{
    const char *const name = d->lib.variable_get_name(v);
    if (d->n_names == d->n_variables) {
        FAIL(d->ctx, E_FORMAT, "'%s' has more columns than it tells of", d->file);
    }
    if (!name) { /* ReadStat's word for an empty one */
        FAIL(d->ctx, E_FORMAT, "'%s': column %lld has no name", d->file, (long long)d->n_names + 1);
    }
    TRY(frgi_strdup(d->ctx, &d->names[d->n_names], name, strlen(name)));
    d->n_names++;
    *wanted = frgi_column_is_wanted(d->opts, name);
    if (!*wanted) {
        return FRG_OK;
    }
    frgi_dta_column *const c = &d->columns[d->n_columns];
    c->type = d->lib.variable_get_type(v);
    const bool text = c->type == READSTAT_TYPE_STRING;
    const bool long_text = text && d->lib.variable_get_storage_width(v) == 0;
    if (long_text && d->version >= 119) { /* it takes all of them for empty */
        FAIL(d->ctx, E_FILE_TYPE,
             "'%s' is of format %d, whose long strings (strL), such as column '%s', ReadStat does "
             "not find; leave such columns out, or save fewer than 32768 variables",
             d->file, d->version, name);
    }
    if (long_text && !d->strls_checked) {
        TRY(frgi_dta_check_strls(d->ctx, d->bytes, d->count, d->version, d->file));
        d->strls_checked = true;
    }
    copy_set_name(d, c->label_set, text ? NULL : label_set);
    c->coded = text || c->label_set[0];
    TRY(frgi_strdup(d->ctx, &c->name, name, strlen(name)));
    d->n_columns++;
    return frgi_dta_column_open(c, d->ctx, d->rows);
}

/** Dates stay the numbers that they are; a message says what they count. */
static void log_date_unit(const dta *d, const char *name, const char *format)
{
    static const struct {
        char letter;
        const char *counts;
    } dates[] = {{'c', "milliseconds since 1960-01-01"},
                 {'C', "milliseconds since 1960-01-01, with leap seconds"},
                 {'d', "days since 1960-01-01"},
                 {'w', "weeks since the first of 1960"},
                 {'m', "months since January 1960"},
                 {'q', "quarters since the first of 1960"},
                 {'h', "half-years since the first of 1960"},
                 {'y', "years"},
                 {'b', "business days of a calendar"}};
    const char *letter = format && *format == '%' ? format + 1 : "";
    letter += *letter == '-';
    letter += *letter == 't';
    for (size_t i = 0; letter[0] && i < sizeof dates / sizeof *dates; i++) {
        if (letter[0] == dates[i].letter && (letter[-1] == 't' || *letter == 'd')) {
            frgi_log(d->ctx, 1, "column '%s' of %s has the format %s: %s", name, d->file, format,
                     dates[i].counts);
        }
    }
}

static int on_variable(int index, readstat_variable_t *v, const char *label_set, void *user)
{
    (void)index;
    dta *const d = user;
    bool wanted = false;
    const int go_on = answer(d, add_variable(d, v, label_set, &wanted));
    if (go_on != READSTAT_HANDLER_OK || !wanted) {
        return go_on != READSTAT_HANDLER_OK ? go_on : READSTAT_HANDLER_SKIP_VARIABLE;
    }
    log_date_unit(d, d->lib.variable_get_name(v), d->lib.variable_get_format(v));
    return READSTAT_HANDLER_OK;
}

enum { ROWS_BETWEEN_STOPS = 1 << 12 };

static int on_value(int row, readstat_variable_t *v, readstat_value_t value, void *user)
{
    dta *const d = user;
    const int k = d->lib.variable_get_index_after_skipping(v);
    if (k < 0 || k >= d->n_columns || row < 0 || row >= d->rows) {
        return answer(d, frgi_fail(d->ctx, E_FORMAT, __FILE__, __LINE__,
                                   "'%s' has more cells than it tells of", d->file));
    }
    if (k == 0 && row % ROWS_BETWEEN_STOPS == 0 && frgi_stopped(d->ctx) != FRG_OK) {
        return answer(d, frgi_stopped(d->ctx));
    }
    d->now = d->columns[k].name;
    d->rows_seen = (int64_t)row + 1;
    return answer(d, frgi_dta_column_put(&d->columns[k], d->ctx, row, &value));
}

/** The first column that names the set of labels, or n_columns. */
static int64_t find_set(const dta *d, const char *set)
{
    int64_t k = 0;
    while (k < d->n_columns && strcmp(d->columns[k].label_set, set) != 0) {
        k++;
    }
    return k;
}

static int on_label(const char *set, readstat_value_t value, const char *label, void *user)
{
    dta *const d = user;
    char name[FRGI_DTA_SET_NAME];
    copy_set_name(d, name, set);
    const int64_t k = find_set(d, name);
    const bool number = value.type == READSTAT_TYPE_INT32 && !value.is_tagged_missing &&
                        !value.is_system_missing; /* .a to .z are missing, whatever they mean */
    if (k == d->n_columns) {
        return READSTAT_HANDLER_OK;
    }
    d->columns[k].labels_seen = true;
    d->columns[k].numbers_named |= number;
    if (!number) {
        return READSTAT_HANDLER_OK;
    }
    return answer(
        d, frgi_dta_labels_put(&d->labels, d->ctx, (frgi_dta_key){value.v.i32_value, k}, label));
}

/* ---- the table ------------------------------------------------------------------------------- */

/** Formats 117 and later are marked up, to their last byte; those before begin with their
 *  number. */
static frg_status check_frame(const dta *d)
{
    static const char begins[] = "<stata_dta>", ends[] = "</stata_dta>";
    const int64_t b = sizeof begins - 1, e = sizeof ends - 1;
    const bool marked = d->count >= b && memcmp(d->bytes, begins, (size_t)b) == 0;
    frgi_at(d->ctx, "%s", d->file);
    if (!marked && (d->count == 0 || d->bytes[0] < 104 || d->bytes[0] > 115)) {
        FAIL(d->ctx, E_FORMAT, "'%s' does not begin as files of Stata's formats 104 to 119 do",
             d->file);
    }
    if (marked && (d->count < b + e || memcmp(d->bytes + d->count - e, ends, (size_t)e) != 0)) {
        FAIL(d->ctx, E_TRUNCATED, "'%s' does not end as files of Stata do", d->file);
    }
    return FRG_OK;
}

/** ReadStat says so too of a length of 0 or beyond 16 MiB, which garbage has: there is memory where
 *  there is room for the file once more. */
static frg_status no_memory(const dta *d, const char *where)
{
    void *probe = NULL;
    TRY(frgi_alloc(d->ctx, &probe, (size_t)d->count, "a part of a file of Stata"));
    DROP(d->ctx, &probe);
    FAIL(d->ctx, E_FORMAT,
         "'%s' does not follow Stata's format%s: a part has a length of 0 or beyond 16 MiB (%lld "
         "bytes is the file), as where other bytes stand behind the last part",
         d->file, where, (long long)d->count);
}

static frg_status parse_failed(const dta *d, readstat_error_t error)
{
    char where[400] = "";
    if (d->now) {
        snprintf(where, sizeof where, ", behind row %lld of column '%s'", (long long)d->rows_seen,
                 d->now);
    }
    frgi_at(d->ctx, "%s", d->file);
    if (error == READSTAT_ERROR_MALLOC) {
        return no_memory(d, where);
    }
    if (d->cut || error == READSTAT_ERROR_READ || error == READSTAT_ERROR_SEEK) {
        FAIL(d->ctx, E_TRUNCATED, "'%s' ends before its contents do%s", d->file, where);
    }
    FAIL(d->ctx, E_FORMAT, "'%s' does not follow Stata's format%s: %s", d->file, where,
         d->lib.error_message(error));
}

static frg_status parse(dta *d)
{
    readstat_parser_t *const parser = d->lib.parser_init();
    if (!parser) {
        FAIL(d->ctx, E_MEMORY, "ReadStat had no memory for '%s'", d->file);
    }
    d->lib.set_io_ctx(parser, d);
    d->lib.set_open_handler(parser, open_bytes);
    d->lib.set_close_handler(parser, close_bytes);
    d->lib.set_seek_handler(parser, seek_bytes);
    d->lib.set_read_handler(parser, read_bytes);
    d->lib.set_metadata_handler(parser, on_metadata);
    d->lib.set_variable_handler(parser, on_variable);
    d->lib.set_value_handler(parser, on_value);
    d->lib.set_value_label_handler(parser, on_label);
    const readstat_error_t error = d->lib.parse_dta(parser, d->file, d);
    d->lib.parser_free(parser);
    if (d->status != FRG_OK) {
        return d->status;
    }
    if (error != READSTAT_OK || d->cut || (d->n_columns > 0 && d->rows_seen < d->rows)) {
        return parse_failed(d, error);
    }
    return FRG_OK;
}

/** Counts of .a to .z by column, as far as there is room. */
static void warn_of_tagged(const dta *d)
{
    char text[400] = "";
    size_t used = 0;
    for (int64_t k = 0; k < d->n_columns; k++) {
        const frgi_dta_column *const c = &d->columns[k];
        const char *between = used ? "), '" : "'";
        for (int t = 0; t < FRGI_DTA_TAGS; t++) {
            if (c->tagged[t] > 0 && used + 100 < sizeof text) {
                used +=
                    (size_t)snprintf(text + used, sizeof text - used, "%s%.40s%s.%c %lld", between,
                                     *between == ',' ? "" : c->name, *between == ',' ? "" : "' (",
                                     'a' + t, (long long)c->tagged[t]);
                between = ", ";
            }
        }
    }
    if (used) {
        frgi_warn(d->ctx, W_EXTENDED, "extended missing values in %s: %s)", d->file, text);
    }
}

static frg_status make_table(dta *d, frg_table **out)
{
    frgi_at(d->ctx, "%s", d->file);
    TRY(frgi_columns_exist(d->ctx, d->opts, d->file, (const char *const *)d->names, d->n_names));
    warn_of_tagged(d);
    frg_table *t;
    TRY(frg_table_create(&t, d->ctx, d->rows));
    frg_status status = FRG_OK;
    for (int64_t k = 0; k < d->n_columns && status == FRG_OK; k++) {
        frgi_dta_column *const c = &d->columns[k];
        if (frg_table_find(t, c->name)) {
            status = frgi_fail(d->ctx, E_FORMAT, __FILE__, __LINE__, "'%s' has two columns '%s'",
                               d->file, c->name);
        } else {
            const int64_t set = find_set(d, c->label_set);
            status = frgi_dta_column_finish(c, d->ctx, &d->labels, &d->columns[set], set, t);
        }
    }
    if (status < 0) {
        frg_table_destroy(t);
        return status;
    }
    *out = t;
    return FRG_OK;
}

static void free_all(dta *d)
{
    for (int64_t k = 0; k < d->n_names; k++) {
        DROP(d->ctx, &d->names[k]);
    }
    for (int64_t k = 0; d->columns && k < d->n_variables; k++) {
        frgi_dta_column_free(&d->columns[k], d->ctx);
    }
    DROP(d->ctx, &d->names);
    DROP(d->ctx, &d->columns);
    frgi_dta_labels_free(&d->labels, d->ctx);
}

frg_status frgi_dta_open_library(frg_context *ctx, const char *name)
{
    frgi_readstat lib;
    return frgi_readstat_open(&lib, ctx, name);
}

frg_status frgi_dta_parse(frg_table **out, frg_context *ctx, const char *bytes, int64_t count,
                          const char *name, const frg_table_opts *o)
{
    dta d = {.ctx = ctx, .file = name, .opts = o, .bytes = bytes, .count = count};
    frg_status status = frgi_readstat_open(&d.lib, ctx, name);
    if (status == FRG_OK) {
        status = check_frame(&d);
    }
    if (status == FRG_OK) {
        status = parse(&d);
    }
    if (status == FRG_OK) {
        status = make_table(&d, out);
    }
    free_all(&d);
    return status;
}

#else

frg_status frgi_dta_open_library(frg_context *ctx, const char *name)
{
    (void)ctx; /* who parses says that there is none */
    (void)name;
    return FRG_OK;
}

frg_status frgi_dta_parse(frg_table **out, frg_context *ctx, const char *bytes, int64_t count,
                          const char *name, const frg_table_opts *o)
{
    (void)out;
    (void)bytes;
    (void)count;
    (void)o;
    frgi_at(ctx, "%s", name);
    FAIL(ctx, E_DECODER,
         "'%s': this build of fourge does not read files of Stata; build it where libreadstat-dev "
         "is installed, or export the data to csv",
         name);
}
#endif
