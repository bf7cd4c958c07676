/* mistyped.c - text columns that stand where numbers were meant.
 *
 * One cell that is no number makes a column of a text file text, and text is categories: an
 * indicator for each of a hundred thousand different numbers, or of hundreds of days where a trend
 * was meant, is a silent answer to another question.  So a column most of whose cells are numbers
 * (or dates, which are text always) is refused, and the cell is named; words are categories, as in
 * fixest.
 */
#include "formula/mistyped.h"

#include <string.h>

/** How much of a label a message shows: whole characters of at most 40 bytes. */
static int shown(const char *label)
{
    enum { MOST = 40 };
    int n = (int)strnlen(label, MOST);
    while (((unsigned char)label[n] & 0xc0) == 0x80) { /* the middle of a character */
        n--;
    }
    return n;
}

frg_status frgi_refuse_mistyped(frg_context *ctx, const frgi_syntax *s, int32_t node,
                                const frg_column *c)
{
    frg_column_inference k;
    if (c->ordered) {
        return FRG_OK;
    }
    TRY(frg_column_count(&k, ctx, c));
    const bool most_dates = k.dates > k.words + k.numbers + k.commas;
    if (!most_dates && k.mistyped < 0) {
        return FRG_OK;
    }
    if (s) {
        frgi_syntax_at(s, ctx, node);
    }
    if (most_dates) {
        FAIL(ctx, E_TYPE,
             "column '%s' holds dates as text (%s): write factor(%s) for an indicator of each, "
             "move it right of the bar for effects, or give the days as numbers for a trend",
             c->name, c->labels[c->codes[k.first_date]], c->name);
    }
    const char *const label = c->labels[c->codes[k.mistyped]];
    if (k.words + k.dates == 0) {
        FAIL(ctx, E_TYPE,
             "column '%s' holds numbers with commas: row %lld is '%.*s'; write decimals behind a "
             "point and thousands without a separator, or factor(%s) where each value is meant as "
             "a category",
             c->name, (long long)k.mistyped + 1, shown(label), label, c->name);
    }
    const int64_t others = k.words + k.dates + k.commas;
    FAIL(ctx, E_TYPE,
         "column '%s' holds numbers, but %lld of its %lld cells make%s it text: row %lld is "
         "'%.*s'; mend it, name it as a word for missing values (--na), or write factor(%s) "
         "where each value is meant as a category",
         c->name, (long long)others, (long long)(k.numbers + others), others == 1 ? "s" : "",
         (long long)k.mistyped + 1, shown(label), label, c->name);
}
