/* fe_stray.c - text columns that stand where numbers were meant.
 *
 * One cell that is no number makes a column of a text file text, and text is categories: an indicator for each of a
 * hundred thousand different numbers, or of hundreds of days where a trend was meant, is a silent answer to another
 * question.  So a column most of whose cells are numbers (or dates, which are text always) is refused, and the cell is
 * named; words are categories, as in fixest.
 */
#include "fe/fe_stray.h"

#include <string.h>

#include "io/decimal.h"

typedef enum { WORD, NUMBER, DATE, KINDS } label_kind;

/** "2024-02-29", "2024/02/29", "29.02.2024", with a time behind them or not. */
static bool is_date(const char *s)
{
    static const char *const forms[] = {"0000-00-00", "0000/00/00", "00.00.0000", "00/00/0000",
                                        "00-00-0000"};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        const char *const form = forms[f];
        size_t i = 0;
        while (form[i] && (form[i] == '0' ? s[i] >= '0' && s[i] <= '9' : s[i] == form[i])) {
            i++;
        }
        if (!form[i] && (s[i] == '\0' || s[i] == ' ' || s[i] == 'T')) {
            return true;
        }
    }
    return false;
}

/** As the reader of text files has it: spaces around a number do not count. */
static bool is_number(const frgi_decimal *decimal, const char *s)
{
    double unused;
    s += strspn(s, " \t");
    const char *const end = s + strcspn(s, " \t");
    return end[strspn(end, " \t")] == '\0' && frgi_decimal_parse(decimal, s, end, &unused);
}

typedef struct {
    int64_t cells[KINDS];
    int64_t first[KINDS]; /* row */
} census;

static frg_status count_cells(census *k, frg_context *ctx, const frg_column *c)
{
    frgi_decimal *decimal = NULL;
    unsigned char *kind = NULL;
    frg_status status;
    *k = (census){.first = {-1, -1, -1}};
    TRY_TO(done, frgi_decimal_open(&decimal, ctx));
    TRY_TO(done, NEW(ctx, &kind, c->n_labels, "the labels of a column"));
    for (int64_t i = 0; i < c->n_labels; i++) {
        kind[i] = is_number(decimal, c->labels[i]) ? NUMBER : is_date(c->labels[i]) ? DATE : WORD;
    }
    for (int64_t i = 0; i < c->n; i++) {
        if (c->codes[i] >= 0) {
            const int at = kind[c->codes[i]];
            k->first[at] = k->cells[at] == 0 ? i : k->first[at];
            k->cells[at]++;
        }
    }
done:
    DROP(ctx, &kind);
    frgi_decimal_close(&decimal, ctx);
    return status;
}

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

frg_status frgi_refuse_stray(frg_context *ctx, const frgi_syntax *s, int32_t node,
                             const frg_column *c)
{
    census k;
    if (c->ordered) {
        return FRG_OK;
    }
    TRY(count_cells(&k, ctx, c));
    const int64_t numbers = k.cells[NUMBER], dates = k.cells[DATE], words = k.cells[WORD];
    const bool most_dates = dates > words + numbers, most_numbers = numbers > words + dates;
    if (!most_dates && (!most_numbers || words + dates == 0)) {
        return FRG_OK;
    }
    if (s) {
        frgi_syntax_at(s, ctx, node);
    }
    if (most_dates) {
        FAIL(ctx, E_TYPE,
             "column '%s' holds dates as text (%s): write factor(%s) for an indicator of each, "
             "move it right of the bar for effects, or give the days as numbers for a trend",
             c->name, c->labels[c->codes[k.first[DATE]]], c->name);
    }
    const int64_t row = k.first[words ? WORD : DATE];
    const char *const label = c->labels[c->codes[row]];
    FAIL(ctx, E_TYPE,
         "column '%s' holds numbers, but %lld of its %lld cells make%s it text: row %lld is "
         "'%.*s'; mend it, name it as a word for missing values (--na), or write factor(%s) "
         "where each value is meant as a category",
         c->name, (long long)(words + dates), (long long)(numbers + words + dates),
         words + dates == 1 ? "s" : "", (long long)row + 1, shown(label), label, c->name);
}
