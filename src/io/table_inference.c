/* table_inference.c - what the cells of a text column read as.
 *
 * One cell that is no number makes a column of a text file text.  Who takes text for categories, or
 * leaves it out, would then answer another question in silence; the inferred types tell such
 * columns from those of words.
 */
#include <string.h>

#include "io/decimal.h"
#include "io/io.h"

typedef enum { WORD, NUMBER, DATE, COMMAS, KINDS } label_kind;

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

/** "1,5", "-1.234,5", "1,234.50": a number as some write it, and no reader of ours takes it. */
static bool has_commas(const char *s)
{
    s += strspn(s, " \t");
    s += *s == '-' || *s == '+';
    const size_t n = strspn(s, "0123456789.,");
    return n > 0 && s[n + strspn(s + n, " \t")] == '\0' && memchr(s, ',', n) && s[0] != ',' &&
           s[n - 1] != ',';
}

/** As the reader of text files has it: spaces around a number do not count. */
static bool is_number(const frgi_decimal *decimal, const char *s)
{
    double unused;
    s += strspn(s, " \t");
    const char *const end = s + strcspn(s, " \t");
    return end[strspn(end, " \t")] == '\0' && frgi_decimal_parse(decimal, s, end, &unused);
}

frg_status frg_column_count(frg_column_inference *out, frg_context *ctx, const frg_column *c)
{
    REQUIRE(ctx, out && c, "frg_column_count takes a place for the inferred types and a column");
    *out = (frg_column_inference){.first_date = -1, .mistyped = -1};
    REQUIRE(ctx, c->kind == FRG_CATEGORY, "column '%s' is not of text", c->name);
    int64_t cells[KINDS] = {0}, first[KINDS] = {-1, -1, -1, -1};
    frgi_decimal *decimal = NULL;
    unsigned char *kind = NULL;
    frg_status status;
    TRY_TO(done, frgi_decimal_open(&decimal, ctx));
    TRY_TO(done, NEW(ctx, &kind, c->n_labels, "the labels of a column"));
    for (int64_t i = 0; i < c->n_labels; i++) {
        kind[i] = is_number(decimal, c->labels[i]) ? NUMBER
                  : is_date(c->labels[i])          ? DATE
                  : has_commas(c->labels[i])       ? COMMAS
                                                   : WORD;
    }
    for (int64_t i = 0; i < c->n; i++) {
        if (c->codes[i] != FRG_MISSING_CODE) {
            const int at = kind[c->codes[i]];
            first[at] = cells[at] == 0 ? i : first[at];
            cells[at]++;
        }
    }
    *out = (frg_column_inference){.numbers = cells[NUMBER],
                                  .dates = cells[DATE],
                                  .commas = cells[COMMAS],
                                  .words = cells[WORD],
                                  .first_date = first[DATE],
                                  .mistyped = -1};
    if (cells[NUMBER] + cells[COMMAS] > cells[DATE] + cells[WORD]) {
        out->mistyped = cells[WORD] > 0   ? first[WORD]
                        : cells[DATE] > 0 ? first[DATE]
                                          : first[COMMAS];
    }
done:
    DROP(ctx, &kind);
    frgi_decimal_close(&decimal, ctx);
    return status;
}
