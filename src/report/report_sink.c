/* report_sink.c - the writers' output: growing text that keeps its first error, and escaping into
 * it.
 *
 * One loop escapes for every format; what differs is a table by ASCII character.  Characters that
 * act instead of being seen (controls, bidi marks, line separators) are spelled out in all formats,
 * so that a column name can neither drive a terminal nor reorder a line; broken UTF-8 becomes
 * U+FFFD.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/report_parts.h"

void frgi_put_bytes(frgi_sink *k, const char *s, size_t length)
{
    if (k->status >= 0)
        k->status = frgi_text_append(k->ctx, &k->text, s, length);
}

void frgi_put(frgi_sink *k, const char *s)
{
    frgi_put_bytes(k, s, strlen(s));
}

void frgi_putf(frgi_sink *k, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length >= 0 && length < (int)sizeof line) {
        frgi_put_bytes(k, line, (size_t)length);
    } else if (k->status >= 0) {
        k->status = frgi_fail(k->ctx, E_BUG, __FILE__, __LINE__, "a line of a report is too long");
    }
}

void frgi_put_times(frgi_sink *k, const char *s, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        frgi_put(k, s);
}

void frgi_put_fixed(frgi_sink *k, double value, int decimals, bool trim)
{
    double scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    const long long units = llround(fabs(value) * scale);
    const long long unit = (long long)scale;
    char text[48];
    int length = snprintf(text, sizeof text, "%s%lld", value < 0 && units ? "-" : "", units / unit);
    if (decimals > 0)
        length += snprintf(text + length, 24, ".%0*lld", decimals, units % unit);
    while (trim && decimals > 0 && (text[length - 1] == '0' || text[length - 1] == '.'))
        if (text[--length] == '.')
            break;
    frgi_put_bytes(k, text, (size_t)length);
}

/* ---- escaping -------------------------------------------------------------------------------- */

const frgi_escapes frgi_escapes_text = {.only_doubled = "", .not_in_words = ""};

const frgi_escapes frgi_escapes_html = {
    .replace =
        {['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"},
    .only_doubled = "",
    .not_in_words = "",
};

/* Blocks cannot start inside a line, so that '#', '-', '+' and digits need care only where a
 * paragraph begins; report_markdown.c does that. */
const frgi_escapes frgi_escapes_markdown = {
    .replace = {['\\'] = "\\\\",
                ['`'] = "\\`",
                ['*'] = "\\*",
                ['_'] = "\\_",
                ['['] = "\\[",
                [']'] = "\\]",
                ['<'] = "&lt;",
                ['>'] = "&gt;",
                ['|'] = "\\|",
                ['~'] = "\\~",
                ['&'] = "&amp;",
                ['$'] = "\\$",
                ['!'] = "\\!"},
    .only_doubled = "",
    .not_in_words = "_",
};

/* '[' and '*' would be read as arguments of the \\ of the row before. */
const frgi_escapes frgi_escapes_latex = {
    .replace = {['\\'] = "\\textbackslash{}",
                ['{'] = "\\{",
                ['}'] = "\\}",
                ['$'] = "\\$",
                ['&'] = "\\&",
                ['#'] = "\\#",
                ['%'] = "\\%",
                ['_'] = "\\_",
                ['^'] = "\\textasciicircum{}",
                ['~'] = "\\textasciitilde{}",
                ['<'] = "\\textless{}",
                ['>'] = "\\textgreater{}",
                ['|'] = "\\textbar{}",
                ['['] = "{[}",
                [']'] = "{]}",
                ['*'] = "{*}",
                ['`'] = "\\textasciigrave{}",
                ['"'] = "\\textquotedbl{}",
                ['-'] = "-{}",
                ['\''] = "'{}"},
    .only_doubled = "-'",
    .not_in_words = "",
};

static void put_hidden(frgi_sink *k, int32_t c, const frgi_escapes *e)
{
    static const char *const named[32] = {['\t'] = "t", ['\n'] = "n", ['\r'] = "r"};
    const char *const backslash = e->replace['\\'] ? e->replace['\\'] : "\\";
    frgi_put(k, backslash);
    if (c < 32 && named[c])
        frgi_put(k, named[c]);
    else
        frgi_putf(k, c < 0x100 ? "x%02x" : c < 0x10000 ? "u%04x" : "U%08x", (unsigned)c);
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
}

/** The replacement of the ASCII character at *p, NULL when it may stand as it is. */
static const char *replacement(const frgi_escapes *e, const char *p, const char *start)
{
    const char *const text = e->replace[(unsigned char)*p];
    if (!text)
        return NULL;
    if (strchr(e->only_doubled, *p) && p[1] != *p)
        return NULL;
    if (strchr(e->not_in_words, *p) && p > start && is_word(p[-1]) && is_word(p[1]))
        return NULL;
    return text;
}

void frgi_put_escaped(frgi_sink *k, const char *s, const frgi_escapes *e, bool fold)
{
    const char *const start = s;
    while (*s && k->status >= 0) {
        const char *const at = s;
        const int32_t c = frgi_utf8_next(&s);
        const char *const instead = c < 128 ? replacement(e, at, start) : NULL;
        if (fold && ((c >= '\t' && c <= '\r') || c == 0x2028 || c == 0x2029))
            frgi_put(k, " ");
        else if (frgi_utf8_hidden(c))
            put_hidden(k, c, e);
        else if (instead)
            frgi_put(k, instead);
        else if (c == 0xfffd)
            frgi_put(k, "\xef\xbf\xbd");
        else
            frgi_put_bytes(k, at, (size_t)(s - at));
    }
}

int64_t frgi_escaped_width(frgi_sink *k, const char *s, const frgi_escapes *e)
{
    frgi_sink scratch = {.ctx = k->ctx, .status = k->status};
    frgi_put_escaped(&scratch, s, e, false);
    if (scratch.status < 0)
        k->status = scratch.status;
    const int64_t width =
        scratch.text.text ? frgi_text_width(scratch.text.text, scratch.text.length) : 0;
    frgi_text_free(k->ctx, &scratch.text);
    return width;
}

/** Bytes of the longest run of whole characters of s that is shown in `cells` cells. */
static size_t fitting(frgi_sink *k, const char *s, int64_t cells)
{
    const char *p = s;
    while (*p && k->status >= 0) {
        const char *next = p;
        frgi_utf8_next(&next);
        char one[8] = {0};
        memcpy(one, p, (size_t)(next - p));
        cells -= frgi_escaped_width(k, one, &frgi_escapes_text);
        if (cells < 0)
            break;
        p = next;
    }
    return (size_t)(p - s);
}

void frgi_put_elided(frgi_sink *k, const frgi_escapes *e, const char *s, int64_t cells)
{
    size_t length = fitting(k, s, cells);
    if (!s[length]) {
        frgi_put_escaped(k, s, e, false);
        return;
    }
    length = fitting(k, s, cells - 1);
    frgi_sink head = {.ctx = k->ctx, .status = k->status};
    frgi_put_bytes(&head, s, length);
    if (head.status >= 0)
        frgi_put_escaped(k, head.text.text, e, false);
    else
        k->status = head.status;
    frgi_put(k, "…");
    frgi_text_free(k->ctx, &head.text);
}
