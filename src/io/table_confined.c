/* table_confined.c - a table that a child process with limits has read, and sends.
 *
 * Records of a kind, a number and a length, each with that many bytes behind it:
 *
 *     WARNING, LOG   a row of the catalogue, a level; the text
 *     FAILURE        a row of the catalogue; the place, NUL, the message
 *     TABLE          rows; the number of columns, and for each a head, its name, values, labels
 *
 * A TABLE or a FAILURE is the last.  Nothing that comes is believed: kinds, lengths, codes and the
 * ends of texts are looked at, and missing values counted anew.
 */
#include <stdio.h>
#include <string.h>

#include "io/table_confined.h"

typedef enum { RECORD_WARNING = 1, RECORD_LOG, RECORD_FAILURE, RECORD_TABLE } record_kind;

typedef struct {
    int32_t kind, number;
    int64_t bytes; /* rows, of a TABLE */
} record;

typedef struct {
    int32_t kind, ordered, labelled, name_bytes;
    int64_t n_labels, label_bytes;
} column_head;

enum { TEXT_MOST = 4096, NAME_MOST = 1 << 20, COLUMNS_MOST = 1 << 20 };

static size_t value_bytes(int32_t kind)
{
    return kind == FRG_NUMBER || kind == FRG_INTEGER ? 8 : 4;
}

/* ---- the child sends ------------------------------------------------------------------------- */

static void put_text(const frgi_confined *c, record_kind kind, int32_t number, const char *text,
                     size_t bytes)
{
    const record r = {.kind = kind, .number = number, .bytes = (int64_t)bytes};
    frgi_confined_put(c, &r, sizeof r);
    frgi_confined_put(c, text, bytes);
}

/** Lines of the log but those that tell of warnings and failures, which go as what they are. */
static void put_line(int level, const char *line, void *user)
{
    if (level == 1) {
        put_text(user, RECORD_LOG, level, line, strlen(line));
    }
}

/** The row of the catalogue of that code; 0: none. */
static int32_t row_of(const char *code)
{
    int32_t i = 0;
    const frg_error_entry *e;
    while ((e = frg_error_catalogue(i)) && strcmp(e->code, code) != 0) {
        i++;
    }
    return e ? i + 1 : 0;
}

static void put_warnings(const frgi_confined *c, int from)
{
    for (int i = from; i < frg_warning_count(c->ctx); i++) {
        const char *const text = frg_warning_message(c->ctx, i);
        put_text(c, RECORD_WARNING, row_of(frg_warning_code(c->ctx, i)), text, strlen(text));
    }
}

static void put_failure(const frgi_confined *c)
{
    char text[TEXT_MOST];
    const int n =
        snprintf(text, sizeof text, "%s%c%s", frg_error_where(c->ctx), 0, frg_message(c->ctx));
    put_text(c, RECORD_FAILURE, row_of(frg_error_code(c->ctx)), text,
             n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

static void put_column(const frgi_confined *c, const frg_column *column)
{
    column_head h = {.kind = (int32_t)column->kind,
                     .ordered = column->ordered,
                     .labelled = column->labelled,
                     .name_bytes = (int32_t)strlen(column->name),
                     .n_labels = column->n_labels};
    for (int64_t i = 0; i < column->n_labels; i++) {
        h.label_bytes += (int64_t)strlen(column->labels[i]) + 1;
    }
    const void *const values = column->numbers    ? (const void *)column->numbers
                               : column->integers ? (const void *)column->integers
                                                  : (const void *)column->codes;
    frgi_confined_put(c, &h, sizeof h);
    frgi_confined_put(c, column->name, (size_t)h.name_bytes);
    frgi_confined_put(c, values, (size_t)column->n * value_bytes(h.kind));
    for (int64_t i = 0; i < column->n_labels; i++) {
        frgi_confined_put(c, column->labels[i], strlen(column->labels[i]) + 1);
    }
}

static void put_table(const frgi_confined *c, const frg_table *t)
{
    const record r = {.kind = RECORD_TABLE, .number = (int32_t)t->n_columns, .bytes = t->n};
    frgi_confined_put(c, &r, sizeof r);
    for (int64_t i = 0; i < t->n_columns; i++) {
        put_column(c, t->columns[i]);
    }
}

_Noreturn static void send(frgi_confined *c, frgi_table_reader read, void *job)
{
    frg_table *t = NULL;
    const int warned = frg_warning_count(c->ctx);
    frgi_context_alone(c->ctx, put_line, c);
    if (!c->filtered) {
        frgi_warn(c->ctx, W_UNFILTERED, "'%s' is decoded by a process that limits alone hold",
                  c->file);
    }
    const frg_status status = read(&t, job);
    put_warnings(c, warned);
    if (status == FRG_OK && t) {
        put_table(c, t);
    } else {
        put_failure(c);
    }
    frgi_confined_leave(c);
}

/* ---- the parent takes ------------------------------------------------------------------------ */

static frg_status refuse(const frgi_confined *c, const char *what)
{
    frgi_at(c->ctx, "%s", c->file);
    FAIL(c->ctx, E_CRASHED, "the process that decodes '%s' sends no table: %s", c->file, what);
}

/** `count` bytes of text, ended by NUL. */
static frg_status take_text(frgi_confined *c, const record *r, char text[TEXT_MOST])
{
    if (r->bytes < 0 || r->bytes >= TEXT_MOST) {
        return refuse(c, "a text is too long");
    }
    TRY(frgi_confined_get(c, text, (size_t)r->bytes));
    text[r->bytes] = '\0';
    return FRG_OK;
}

/** A warning or an error of the catalogue?  `warning` says which it has to be. */
static bool is_row(int32_t number, bool warning)
{
    const frg_error_entry *const e = frg_error_catalogue(number - 1);
    return e && (e->status == FRG_OK) == warning;
}

static frg_status take_failure(frgi_confined *c, const record *r)
{
    char text[TEXT_MOST];
    TRY(take_text(c, r, text));
    const size_t where = strlen(text);
    if (!is_row(r->number, false) || (int64_t)where >= r->bytes) {
        return refuse(c, "a failure is none of the catalogue");
    }
    frgi_at(c->ctx, "%s", text);
    FAIL(c->ctx, (frgi_error)r->number, "%s", text + where + 1);
}

static frg_status take_note(frgi_confined *c, const record *r)
{
    char text[TEXT_MOST];
    TRY(take_text(c, r, text));
    if (r->kind == RECORD_LOG) {
        frgi_log(c->ctx, 1, "%s", text);
    } else if (is_row(r->number, true)) {
        frgi_warn(c->ctx, (frgi_error)r->number, "%s", text);
    } else {
        return refuse(c, "a warning is none of the catalogue");
    }
    return FRG_OK;
}

static frg_status check_head(const frgi_confined *c, const column_head *h)
{
    const bool category = h->kind == FRG_CATEGORY;
    if (h->kind < FRG_NUMBER || h->kind > FRG_CATEGORY || h->ordered < 0 || h->ordered > 1 ||
        h->labelled < 0 || h->labelled > 1) {
        return refuse(c, "a column is of no kind");
    }
    if (h->name_bytes < 0 || h->name_bytes > NAME_MOST) {
        return refuse(c, "a name is too long");
    }
    if (h->n_labels < 0 || h->n_labels > INT32_MAX || h->label_bytes < h->n_labels ||
        (!category && h->label_bytes > 0)) {
        return refuse(c, "labels are of no length");
    }
    if ((size_t)h->label_bytes > frgi_confined_memory(c)) {
        return refuse(c, "it tells of more labels than it has memory for");
    }
    return FRG_OK;
}

static frg_status take_name(frgi_confined *c, const column_head *h, frgi_column_memory *m)
{
    TRY(NEW(c->ctx, &m->name, h->name_bytes + 1, "column names"));
    TRY(frgi_confined_get(c, m->name, (size_t)h->name_bytes));
    m->name[h->name_bytes] = '\0';
    return memchr(m->name, '\0', (size_t)h->name_bytes) ? refuse(c, "a name has a NUL") : FRG_OK;
}

/** Pointers to labels that end one after another, the last at the end. */
static frg_status take_labels(frgi_confined *c, const column_head *h, frgi_column_memory *m)
{
    TRY(NEW(c->ctx, &m->label_text, h->label_bytes, "labels of a column"));
    TRY(NEW(c->ctx, &m->labels, h->n_labels, "labels of a column"));
    TRY(frgi_confined_get(c, m->label_text, (size_t)h->label_bytes));
    const char *next = m->label_text, *const end = next + h->label_bytes;
    for (int64_t i = 0; i < h->n_labels; i++) {
        m->labels[i] = next;
        const char *const nul = next < end ? memchr(next, '\0', (size_t)(end - next)) : NULL;
        if (!nul) {
            return refuse(c, "labels do not end");
        }
        next = nul + 1;
    }
    return next == end ? FRG_OK : refuse(c, "labels are too long");
}

/** Missing values of codes, which have to be of labels. */
static frg_status check_codes(const frgi_confined *c, const int32_t *codes, int64_t n,
                              int64_t labels, int64_t *missing)
{
    for (int64_t i = 0; i < n; i++) {
        if (codes[i] < FRG_MISSING_CODE || codes[i] >= labels) {
            return refuse(c, "a code has no label");
        }
        *missing += codes[i] == FRG_MISSING_CODE;
    }
    return FRG_OK;
}

static frg_status take_values(frgi_confined *c, const column_head *h, int64_t n,
                              frgi_column_memory *m, int64_t *missing)
{
    const size_t bytes = frgi_mul((size_t)n, value_bytes(h->kind));
    if (bytes > frgi_confined_memory(c)) {
        return refuse(c, "it tells of more rows than it has memory for");
    }
    TRY(frgi_alloc(c->ctx, &m->values, bytes, "a column"));
    TRY(frgi_confined_get(c, m->values, bytes));
    const double *const numbers = m->values;
    const int64_t *const integers = m->values;
    if (h->kind == FRG_CATEGORY || h->kind == FRG_BOOL) {
        return check_codes(c, m->values, n, h->kind == FRG_BOOL ? 2 : h->n_labels, missing);
    }
    for (int64_t i = 0; i < n; i++) {
        *missing +=
            h->kind == FRG_NUMBER ? numbers[i] != numbers[i] : integers[i] == FRG_MISSING_INTEGER;
    }
    return FRG_OK;
}

static frg_status take_column(frgi_confined *c, frg_table *t)
{
    column_head h;
    int64_t missing = 0;
    TRY(frgi_confined_get(c, &h, sizeof h));
    TRY(check_head(c, &h));
    frgi_column_memory m = {.ordered = h.ordered, .labelled = h.labelled};
    frg_status status = take_name(c, &h, &m);
    if (status == FRG_OK) {
        status = take_values(c, &h, t->n, &m, &missing);
    }
    if (status == FRG_OK && h.kind == FRG_CATEGORY) {
        status = take_labels(c, &h, &m);
    }
    if (status == FRG_OK) {
        status = frgi_table_adopt(t, m, (frg_column_kind)h.kind, missing, h.n_labels);
    }
    if (status != FRG_OK) {
        frgi_column_memory_free(c->ctx, &m);
    }
    return status;
}

static frg_status take_table(frgi_confined *c, const record *r, frg_table **out)
{
    if (r->bytes < 0 || r->number < 0 || r->number > COLUMNS_MOST) {
        return refuse(c, "it has no size");
    }
    frg_table *t;
    TRY(frg_table_create(&t, c->ctx, r->bytes));
    frg_status status = FRG_OK;
    for (int32_t i = 0; i < r->number && status == FRG_OK; i++) {
        status = take_column(c, t);
    }
    if (status != FRG_OK) {
        frg_table_destroy(t);
        return status;
    }
    *out = t;
    return FRG_OK;
}

frg_status frgi_table_take(frgi_confined *c, frg_table **out)
{
    record r;
    for (;;) {
        TRY(frgi_confined_get(c, &r, sizeof r));
        switch (r.kind) {
        case RECORD_WARNING:
        case RECORD_LOG:
            TRY(take_note(c, &r));
            break;
        case RECORD_FAILURE:
            return take_failure(c, &r);
        case RECORD_TABLE:
            return take_table(c, &r, out);
        default:
            return refuse(c, "a record is of no kind");
        }
    }
}

frg_status frgi_table_confined(frg_table **out, frg_context *ctx, const char *name,
                               frgi_table_reader read, void *job)
{
    frgi_confined c;
    frgi_log(ctx, 1, "'%s' is decoded by a process of its own, with limits", name);
    TRY(frgi_confined_start(&c, ctx, name));
    if (c.child == 0) {
        send(&c, read, job);
    }
    return frgi_confined_end(&c, frgi_table_take(&c, out));
}
