/* cli_errors.c - errors and warnings as people and programs read them.
 *
 *     fourge: error FRG-FE-012: what, where, why; hint: what to do
 *
 * and with --format json also {"error":{"code","message","where","hint"}} on standard output.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "cli.h"

const frg_error_entry *find_error(const char *code_or_name)
{
    const frg_error_entry *e;
    for (int i = 0; (e = frg_error_catalogue(i)) != NULL; i++) {
        if (strcmp(e->code, code_or_name) == 0 || strcmp(e->name, code_or_name) == 0) {
            return e;
        }
    }
    return NULL;
}

/** Bytes of the UTF-8 character at `at`; 0: it is none, as in file names of other encodings and in
 *  text that was cut. */
static int character(const unsigned char *at)
{
    const int n = *at < 0x80 ? 1 : *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
    int valid = *at < 0x80 || (*at >= 0xc2 && *at <= 0xf4);
    for (int i = 1; i < n && valid; i++) {
        valid = (at[i] & 0xc0) == 0x80;
    }
    const int overlong = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90),
              surrogate = *at == 0xed && at[1] >= 0xa0, beyond = *at == 0xf4 && at[1] >= 0x90;
    return valid && !overlong && !surrogate && !beyond ? n : 0;
}

/** Whether a character acts instead of being seen: controls, line separators, bidi marks.  `at` is
 *  UTF-8 of n bytes. */
static int acts(const unsigned char *at, int n)
{
    static const unsigned ranges[][2] = {
        {0, 0x1f}, {0x7f, 0x9f}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    unsigned c = n == 1 ? *at : n == 2 ? *at & 0x1fu : n == 3 ? *at & 0xfu : *at & 7u;
    for (int i = 1; i < n; i++) {
        c = c << 6 | (at[i] & 0x3fu);
    }
    int found = 0;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && !found; i++) {
        found = c >= ranges[i][0] && c <= ranges[i][1] ? (int)c + 1 : 0;
    }
    return found;
}

void write_visible(FILE *file, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        const int n = character(at), code = n ? acts(at, n) - 1 : *at;
        if (n == 0 || code >= 0) {
            fprintf(file, code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)code);
        } else {
            fwrite(at, 1, (size_t)n, file);
        }
        at += n > 1 ? n - 1 : 0;
    }
}

void write_json_string(FILE *file, const char *text)
{
    putc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        const int n = character(at);
        const int code = n ? acts(at, n) - 1 : -1;
        if (n == 0) {
            fputs("\\ufffd", file);
        } else if (code >= 0) {
            fprintf(file, "\\u%04x", (unsigned)code);
        } else if (*at == '"' || *at == '\\') {
            fprintf(file, "\\%c", *at);
        } else {
            fwrite(at, 1, (size_t)n, file);
        }
        at += n > 1 ? n - 1 : 0;
    }
    putc('"', file);
}

/** Whether the first `length` characters of word stand in the message by themselves. */
static int has_word(const char *message, const char *word, size_t length)
{
    for (const char *at = message; *at; at++) {
        const int begins = at == message || !isalnum((unsigned char)at[-1]);
        if (begins && strncmp(at, word, length) == 0 && !isalnum((unsigned char)at[length])) {
            return 1;
        }
    }
    return 0;
}

/** Does the message already name the place, its first word and all numbers behind it?  "formula:9"
 *  is named by "formula, column 9: ..."; "source, row 2" is not by a message about the source. */
static int names_place(const char *message, const char *where)
{
    const size_t first = strcspn(where, ":,");
    int named = has_word(message, where, first);
    for (const char *at = where + first; *at && named; at++) {
        const size_t digits = strspn(at, "0123456789");
        if (digits && !isalnum((unsigned char)at[-1])) {
            named = has_word(message, at, digits);
        }
        at += digits ? digits - 1 : 0;
    }
    return named;
}

void error_text(FILE *file, const cli *c, const char *code, const char *message, const char *where,
                const char *hint)
{
    const char *red = c->color_err ? "\033[1;31m" : "", *plain = c->color_err ? "\033[0m" : "";
    const int placed = *where && !names_place(message, where);
    fprintf(file, "fourge: %serror%s %s: ", red, plain, code);
    write_visible(file, message);
    fputs(placed ? " (" : "", file);
    write_visible(file, placed ? where : "");
    fputs(placed ? ")" : "", file);
    fputs(*hint ? "; hint: " : "", file);
    write_visible(file, hint);
    putc('\n', file);
}

void error_json(FILE *file, const char *code, const char *message, const char *where,
                const char *hint)
{
    const char *const keys[] = {"code", "message", "where", "hint"};
    const char *const values[] = {code, message, where, hint};
    fputs("{\"error\":{", file);
    for (int i = 0; i < 4; i++) {
        fprintf(file, "%s\"%s\":", i ? "," : "", keys[i]);
        write_json_string(file, values[i]);
    }
    fputs("}}\n", file);
}

static void show(const cli *c, const char *code, const char *message, const char *where,
                 const char *hint)
{
    error_text(stderr, c, code, message, where, hint);
    if (c->json_errors) {
        error_json(stdout, code, message, where, hint);
    }
}

static int is_stop(frg_status status)
{
    return status == FRG_TIME_LIMIT || status == FRG_INTERRUPTED;
}

static int fail(const cli *c, const char *name, const char *where, const char *hint,
                const char *format, va_list args)
{
    const frg_error_entry *e = find_error(name);
    char message[1024];
    vsnprintf(message, sizeof message, format, args);
    show(c, e ? e->code : "FRG-CORE-005", message, where ? where : "",
         hint ? hint
         : e  ? e->hint
              : "");
    return frg_status_exit_code(e ? e->status : FRG_BUG);
}

int cli_fail(const cli *c, const char *name, const char *where, const char *hint,
             const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int code = fail(c, name, where, hint, format, args);
    va_end(args);
    return code;
}

int cli_fail_stopped(const cli *c, frg_status status, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int code =
        fail(c, status == FRG_TIME_LIMIT ? "E_TIME_LIMIT" : "E_STOPPED", "", hint, format, args);
    va_end(args);
    return cli_signalled() ? cli_signalled() : code;
}

int cli_ended(frg_status status)
{
    return cli_signalled() ? cli_signalled() : frg_status_exit_code(status);
}

int cli_refuse_given(const cli *c, const given_option *options, size_t count, const char *why,
                     const char *hint)
{
    for (size_t i = 0; i < count; i++) {
        if (options[i].given) {
            return cli_fail(c, "E_OPTION", options[i].name, hint, "%s %s", options[i].name, why);
        }
    }
    return 0;
}

int cli_fail_memory(const cli *c)
{
    return cli_fail(c, "E_MEMORY", NULL, NULL, "out of memory");
}

int cli_text_alone(const cli *c, const char *what)
{
    return c->set.format == FORMAT_TEXT
               ? 0
               : cli_fail(c, "E_UNSUPPORTED", "--format", "leave --format out",
                          "%s has no other form than its own", what);
}

int cli_fail_library(const cli *c, frg_status status)
{
    const char *code = frg_error_code(c->ctx);
    const frg_error_entry *const e = find_error(code);
    if (status == FRG_NO_MEMORY && (!e || e->status != status)) {
        return cli_fail_memory(c); /* ours; an error of the context was mended before */
    }
    if (is_stop(status)) {
        return cli_check(c, status, "there was a result");
    }
    if (strcmp(frg_error_where(c->ctx), "standard output") == 0 &&
        strstr(frg_message(c->ctx), strerror(EPIPE))) {
        return 141; /* the reader has enough: what the shell reports for SIGPIPE */
    }
    if (*code) {
        show(c, code, frg_message(c->ctx), frg_error_where(c->ctx), frg_error_hint(c->ctx));
    } else if (status == FRG_MISMATCH) { /* keeper_load's, which the library hands on as it is */
        return cli_fail(c, "E_CHECKPOINT", "", NULL, "the checkpoint holds no columns of this run");
    } else {
        show(c, frg_status_name(status), frg_status_sentence(status), "", "");
    }
    return frg_status_exit_code(status);
}

int cli_check(const cli *c, frg_status status, const char *before)
{
    return status < 0        ? cli_fail_library(c, status)
           : is_stop(status) ? cli_fail_stopped(c, status, NULL, "%s before %s",
                                                frg_status_sentence(status), before)
                             : 0;
}

int cli_fail_read(const cli *c, frg_status status)
{
    const int code = cli_check(c, status, "the data were read");
    return code ? code : frg_status_exit_code(status);
}

void cli_show_warnings(const cli *c)
{
    cli_show_warnings_from(c, 0);
}

void cli_show_warnings_from(const cli *c, int first)
{
    if (c->set.quiet) {
        return;
    }
    const char *yellow = c->color_err ? "\033[1;33m" : "", *plain = c->color_err ? "\033[0m" : "";
    for (int i = first; i < frg_warning_count(c->ctx); i++) {
        const frg_error_entry *e = find_error(frg_warning_code(c->ctx, i));
        fprintf(stderr, "fourge: %swarning%s %s: ", yellow, plain, frg_warning_code(c->ctx, i));
        write_visible(stderr, frg_warning_message(c->ctx, i));
        fprintf(stderr, "%s%s\n", e && *e->hint ? "; hint: " : "", e ? e->hint : "");
    }
}

int explain_code(const cli *c, const char *code)
{
    const frg_error_entry *e = find_error(code);
    if (e) {
        printf("%s (%s)\n%s\n", e->code, e->name, e->sentence);
        if (*e->hint) {
            printf("What to do: %s.\n", e->hint);
        }
        if (e->status == FRG_OK) {
            puts("A warning; the exit code does not change.");
        } else {
            printf("Status %s, exit code %d.\n", frg_status_name(e->status),
                   frg_status_exit_code(e->status));
        }
        return 0;
    }
    const char *codes[256];
    int n = 0;
    while (n < 256 && (e = frg_error_catalogue(n)) != NULL) {
        codes[n++] = e->code;
    }
    const char *near = frg_nearest_name(code, codes, n);
    char hint[80];
    snprintf(hint, sizeof hint, "%s%s", near ? "did you mean " : "codes look like FRG-FE-002",
             near ? near : "");
    return cli_fail(c, "E_OPTION", "--explain", hint, "--explain: there is no code '%s'", code);
}
