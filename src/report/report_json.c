/* report_json.c - a JSON writer that cannot write bad JSON.
 *
 * Objects put a member on each line; arrays keep numbers and words on one line and give nested
 * arrays and objects lines of their own.  `compact` writes everything on one line (JSON lines),
 * `flat` a line for each scalar, named by the keys and places that lead to it. The first error is
 * kept and comes out of frg_json_finish: no memory, a key where none belongs or none where one must
 * be, closing what is not open, or a second value after the first.
 */
#include <math.h>
#include <string.h>

#include "report/report_parts.h"

enum { DEEPEST = 64 };

struct frg_json {
    frgi_sink sink;
    bool compact, flat;
    frgi_text path; /* flat: of the value at hand, "seconds.total" */
    bool started;   /* the outermost value has been opened */
    bool ended;     /* the newline at the end has been put */
    int depth;
    struct {
        char kind;     /* '{' or '[' */
        bool any;      /* it has a member */
        bool tall;     /* an array with a nested value on a line of its own */
        size_t path;   /* flat: how much of it leads here */
        int64_t place; /* of the next element of an array */
    } level[DEEPEST + 1];
};

frg_status frg_json_create(frg_json **out, frg_context *ctx)
{
    REQUIRE(ctx, ctx && out, "frg_json_create takes a place and a context");
    *out = NULL;
    frg_json *j;
    TRY(NEW0(ctx, &j, 1, "JSON text"));
    j->sink.ctx = ctx;
    *out = j;
    return FRG_OK;
}

void frg_json_compact(frg_json *j, int on)
{
    if (!j)
        return;
    j->compact = on != 0;
}

void frg_json_flat(frg_json *j, int on)
{
    if (!j)
        return;
    j->flat = on != 0;
}

void frg_json_destroy(frg_json *j)
{
    if (!j)
        return;
    frg_context *ctx = j->sink.ctx;
    frgi_text_free(ctx, &j->path);
    frgi_text_free(ctx, &j->sink.text);
    DROP(ctx, &j);
}

static frg_status misuse(frg_json *j, const char *what)
{
    FAIL(j->sink.ctx, E_ARG, "JSON: %s at depth %d", what, j->depth);
}

static bool fails(frg_json *j, const char *what)
{
    if (j->sink.status >= 0)
        j->sink.status = misuse(j, what);
    return true;
}

static void put_string(frgi_sink *k, const char *s)
{
    static const char *const short_forms[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t"};
    frgi_put(k, "\"");
    while (*s && k->status >= 0) {
        const char *const at = s;
        const int32_t c = frgi_utf8_next(&s);
        if (c < 128 && short_forms[c])
            frgi_put(k, short_forms[c]);
        else if (frgi_utf8_hidden(c) && c > 0xffff)
            frgi_putf(k, "\\u%04x\\u%04x", 0xd7c0u + (unsigned)(c >> 10),
                      0xdc00u + (unsigned)(c & 0x3ff));
        else if (frgi_utf8_hidden(c))
            frgi_putf(k, "\\u%04x", (unsigned)c);
        else if (c == 0xfffd)
            frgi_put(k, "\xef\xbf\xbd");
        else
            frgi_put_bytes(k, at, (size_t)(s - at));
    }
    frgi_put(k, "\"");
}

static void new_line(frg_json *j)
{
    if (j->compact)
        return;
    frgi_put(&j->sink, "\n");
    frgi_put_times(&j->sink, "  ", j->depth);
}

/** The path of a value: of the level, and its key or place. */
static void extend_path(frg_json *j, const char *key)
{
    frgi_sink *const k = &j->sink;
    if (j->depth == 0)
        return;
    j->path.length = j->level[j->depth].path;
    const char *const dot = j->path.length ? "." : "";
    if (key)
        k->status = frgi_text_printf(k->ctx, &j->path, "%s%s", dot, key);
    else
        k->status = frgi_text_printf(k->ctx, &j->path, "%s%lld", dot,
                                     (long long)j->level[j->depth].place++);
}

/** The line of a scalar up to its value. */
static void begin_line(frg_json *j)
{
    const char *const path = j->path.length ? j->path.text : "";
    if (!j->sink.text.length)
        frgi_put(&j->sink, "name,value\n");
    frgi_put_csv(&j->sink, path, false);
    frgi_put(&j->sink, ",");
}

/** Comma, line break and key in front of a value; false when nothing may be written. */
static bool begins(frg_json *j, const char *key, bool nested)
{
    if (!j || j->sink.status < 0)
        return false;
    const bool in_object = j->depth > 0 && j->level[j->depth].kind == '{';
    if (j->depth == 0 && j->started)
        return !fails(j, "a value after the end");
    if (in_object && !key)
        return !fails(j, "a member without a key");
    if (!in_object && key)
        return !fails(j, "a key outside an object");
    j->started = true;
    if (j->flat) {
        extend_path(j, key);
        if (!nested)
            begin_line(j);
        return j->sink.status >= 0;
    }
    if (j->depth > 0) {
        if (j->level[j->depth].any)
            frgi_put(&j->sink, in_object || nested || j->compact ? "," : ", ");
        if (in_object || nested)
            new_line(j);
        j->level[j->depth].any = true;
        j->level[j->depth].tall |= in_object || nested;
    }
    if (key) {
        put_string(&j->sink, key);
        frgi_put(&j->sink, j->compact ? ":" : ": ");
    }
    return true;
}

static void open_level(frg_json *j, const char *key, char kind)
{
    if (!begins(j, key, true))
        return;
    if (j->depth == DEEPEST) {
        fails(j, "nested too deep");
        return;
    }
    if (!j->flat)
        frgi_put_bytes(&j->sink, &kind, 1);
    j->depth++;
    j->level[j->depth].path = j->path.length;
    j->level[j->depth].place = 0;
    j->level[j->depth].kind = kind;
    j->level[j->depth].any = false;
    j->level[j->depth].tall = false;
}

static void close_level(frg_json *j, char kind, const char *bracket)
{
    if (!j || j->sink.status < 0)
        return;
    if (j->depth == 0 || j->level[j->depth].kind != kind) {
        fails(j, "closing what is not open");
        return;
    }
    const bool tall = j->level[j->depth].tall;
    j->depth--;
    if (j->flat)
        return;
    if (tall)
        new_line(j);
    frgi_put(&j->sink, bracket);
}

void frg_json_open_object(frg_json *j, const char *key)
{
    open_level(j, key, '{');
}

void frg_json_close_object(frg_json *j)
{
    close_level(j, '{', "}");
}

void frg_json_open_array(frg_json *j, const char *key)
{
    open_level(j, key, '[');
}

void frg_json_close_array(frg_json *j)
{
    close_level(j, '[', "]");
}

static void put_null(frg_json *j)
{
    frgi_put(&j->sink, j->flat ? "" : "null");
}

/** Behind a scalar. */
static void ends(frg_json *j)
{
    frgi_put(&j->sink, j->flat ? "\n" : "");
}

void frg_json_string(frg_json *j, const char *key, const char *value)
{
    if (!begins(j, key, false))
        return;
    if (value && j->flat) {
        frgi_warn_of_formula(j->sink.ctx, value);
        frgi_put_csv(&j->sink, value, true);
    } else if (value)
        put_string(&j->sink, value);
    else
        put_null(j);
    ends(j);
}

/** NaN and infinities have no JSON: null, and in objects a KEY_note beside it that says which it
 *  was. */
static void put_not_finite(frg_json *j, const char *key, double value)
{
    put_null(j);
    ends(j);
    if (!key || j->sink.status < 0)
        return;
    frgi_text note = {0};
    j->sink.status = frgi_text_printf(j->sink.ctx, &note, "%s_note", key);
    if (j->sink.status >= 0)
        frg_json_string(j, note.text,
                        isnan(value) ? "not a number"
                        : value > 0  ? "infinite"
                                     : "minus infinite");
    frgi_text_free(j->sink.ctx, &note);
}

void frg_json_number(frg_json *j, const char *key, double value)
{
    if (!begins(j, key, false))
        return;
    char text[32];
    if (!isfinite(value)) {
        put_not_finite(j, key, value);
        return;
    }
    frgi_put_bytes(&j->sink, text, (size_t)frg_format_double(value, text));
    ends(j);
}

void frg_json_integer(frg_json *j, const char *key, int64_t value)
{
    if (!begins(j, key, false))
        return;
    frgi_putf(&j->sink, "%lld", (long long)value);
    ends(j);
}

void frg_json_bool(frg_json *j, const char *key, int value)
{
    if (!begins(j, key, false))
        return;
    frgi_put(&j->sink, value ? "true" : "false");
    ends(j);
}

frg_status frg_json_finish(frg_json *j, const char **text, int64_t *length)
{
    if (!j)
        return FRG_BAD_ARG;
    if (j->depth > 0)
        fails(j, "finished with something open");
    if (!j->started)
        fails(j, "finished without a value");
    if (!j->ended && !j->flat)
        frgi_put(&j->sink, "\n");
    TRY(j->sink.status);
    j->ended = true;
    *text = j->sink.text.text;
    if (length)
        *length = (int64_t)j->sink.text.length;
    return FRG_OK;
}
