/* table_confined.c - a table that a child process with limits has read, and sends.
 *
 * Records of a kind, a number and a length, each with that many bytes behind it:
 *
 *     WARNING, LOG   a row of the catalogue, a level; the text
 *     FAILURE        a row of the catalogue; the place, NUL, the message
 *     TABLE          rows; the number of columns, and each as table_bytes.c has it
 *
 * A TABLE or a FAILURE is the last.
 */
#include <stdio.h>
#include <string.h>

#include "io/table_bytes.h"
#include "io/table_confined.h"

typedef enum { RECORD_WARNING = 1, RECORD_LOG, RECORD_FAILURE, RECORD_TABLE } record_kind;

typedef struct {
    int32_t kind, number;
    int64_t bytes; /* rows, of a TABLE */
} record;

enum { TEXT_MOST = 4096, COLUMNS_MOST = 1 << 20 };

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

static frg_status put_bytes(void *user, const void *bytes, size_t count)
{
    frgi_confined_put(user, bytes, count);
    return FRG_OK;
}

static void put_table(frgi_confined *c, const frg_table *t)
{
    const frgi_column_sink to = {put_bytes, c};
    frg_status status = FRG_OK; /* of a pipe that nobody reads: the child ends */
    const record r = {.kind = RECORD_TABLE, .number = (int32_t)t->n_columns, .bytes = t->n};
    frgi_confined_put(c, &r, sizeof r);
    for (int64_t i = 0; i < t->n_columns && status == FRG_OK; i++) {
        status = frgi_column_put(&to, t->columns[i]);
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

static frg_status get_bytes(void *user, void *to, size_t count)
{
    return frgi_confined_get(user, to, count);
}

static frg_status refuse_bytes(void *user, const char *what)
{
    return refuse(user, what);
}

static frg_status take_table(frgi_confined *c, const record *r, frg_table **out)
{
    if (r->bytes < 0 || r->number < 0 || r->number > COLUMNS_MOST) {
        return refuse(c, "it has no size");
    }
    frg_table *t;
    TRY(frg_table_create(&t, c->ctx, r->bytes));
    const frgi_column_source from = {c->ctx, get_bytes, refuse_bytes, c, frgi_confined_memory(c)};
    frg_status status = FRG_OK;
    for (int32_t i = 0; i < r->number && status == FRG_OK; i++) {
        status = frgi_column_take(&from, t);
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
