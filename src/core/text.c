/* text.c - growing strings, and the nearest name by edit distance for "did you mean". */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"

static frg_status reserve(frg_context *ctx, frgi_text *t, size_t more)
{
    const size_t needed = frgi_add(frgi_add(t->length, more), 1);
    if (needed <= t->capacity) {
        return FRG_OK;
    }
    const size_t doubled = frgi_mul(t->capacity, 2);
    const size_t capacity = needed > doubled ? frgi_add(needed, 64) : doubled;
    TRY(GROW(ctx, &t->text, capacity, "text"));
    t->capacity = capacity;
    return FRG_OK;
}

frg_status frgi_text_append(frg_context *ctx, frgi_text *t, const char *s, size_t length)
{
    TRY(reserve(ctx, t, length));
    memcpy(t->text + t->length, s, length);
    t->length += length;
    t->text[t->length] = '\0';
    return FRG_OK;
}

frg_status frgi_text_printf(frg_context *ctx, frgi_text *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    const frg_status status = reserve(ctx, t, length > 0 ? (size_t)length : 0);
    if (status == FRG_OK && length > 0) {
        vsnprintf(t->text + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
    return status;
}

void frgi_text_free(frg_context *ctx, frgi_text *t)
{
    DROP(ctx, &t->text);
    *t = (frgi_text){0};
}

frg_status frgi_strdup(frg_context *ctx, char **out, const char *s, size_t length)
{
    TRY(NEW(ctx, out, frgi_add(length, 1), "text"));
    memcpy(*out, s, length);
    (*out)[length] = '\0';
    return FRG_OK;
}

enum { LONGEST_NAME = 64 };

static unsigned lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned)c | 0x20 : (unsigned char)c;
}

/** Twice the Levenshtein distance of a and b whatever their case, and 1 between names that their
 *  case alone tells apart; transpositions left out; names over LONGEST_NAME bytes, and those that
 *  share no place, are far from all. */
static size_t distance(const char *a, const char *b)
{
    const size_t m = strlen(a), n = strlen(b);
    size_t row[LONGEST_NAME + 1];
    if (m > LONGEST_NAME || n > LONGEST_NAME) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= m; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t above = row[j];
            const size_t change = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            const size_t insert = (above < row[j - 1] ? above : row[j - 1]) + 1;
            row[j] = change < insert ? change : insert;
            diagonal = above;
        }
    }
    if (row[n] == (m > n ? m : n)) {
        return SIZE_MAX;
    }
    return row[n] > 0 ? 2 * row[n] : strcmp(a, b) != 0;
}

const char *frgi_nearest(const char *name, const char *const *names, int64_t count)
{
    const char *best = NULL;
    size_t limit =
        2 * (strlen(name) / 3 + 1); /* further than a third of the letters is no spelling mistake */
    for (int64_t i = 0; i < count; i++) {
        const size_t d = distance(name, names[i]);
        if (d < limit || (d == limit && !best)) {
            best = names[i];
            limit = d;
        }
    }
    return best;
}

const char *frgi_column_advice(char advice[FRGI_ADVICE], const char *near, int64_t n,
                               const char *(*name)(const void *of, int64_t i), const void *of)
{
    enum { MOST = 20, TAIL = 32 }; /* TAIL: room for " and 9223372036854775807 more" */
    advice[0] = '\0';
    if (near) {
        snprintf(advice, FRGI_ADVICE, "; did you mean '%s'?", near);
    } else if (n == 1) {
        snprintf(advice, FRGI_ADVICE,
                 "; the one column is '%s': is it something else that separates the cells?",
                 name(of, 0));
    }
    size_t used = strlen(advice);
    for (int64_t i = 0; !near && n > 1 && i < n; i++) {
        const size_t length = strlen(name(of, i)) + sizeof "; there are ''";
        if (i == MOST || used + length + TAIL > FRGI_ADVICE) {
            snprintf(advice + used, FRGI_ADVICE - used,
                     i ? " and %lld more" : "; there are %lld columns", (long long)(n - i));
            break;
        }
        used += (size_t)snprintf(advice + used, FRGI_ADVICE - used, "%s'%s'",
                                 i ? ", " : "; there are ", name(of, i));
    }
    return advice;
}

void frgi_warn_of_formula(frg_context *ctx, const char *text)
{
    const char first = text[0];
    const bool sign = first == '+' || first == '-';
    /* signs of numbers, and of nothing */
    const bool number =
        sign && (text[1] == '\0' || text[1 + strspn(text + 1, "0123456789.eE+-")] == '\0');
    if ((first == '=' || first == '@' || first == '\t' || first == '\r' || sign) && !number &&
        !frgi_has_warned(ctx, W_SPREADSHEET)) {
        frgi_warn(ctx, W_SPREADSHEET, "the text '%s' begins as a formula of a spreadsheet does",
                  text);
    }
}
