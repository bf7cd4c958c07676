/* key_levels.c - the levels of a category: their order, their texts, and finding them in other
 * data. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formula/key_levels.h"
#include "formula/keys.h"
#include "formula/program.h"

/** 15 significant digits, as R prints levels; the point whatever the locale. */
frg_status frgi_level_text(frg_context *ctx, const frg_column *c, int64_t row, const char *before,
                           frgi_text *out)
{
    if (c->kind == FRG_CATEGORY) {
        return frgi_text_printf(ctx, out, "%s%s", before, c->labels[c->codes[row]]);
    }
    if (c->kind == FRG_BOOL) {
        return frgi_text_printf(ctx, out, "%s%s", before, c->codes[row] ? "TRUE" : "FALSE");
    }
    if (c->kind == FRG_INTEGER) {
        return frgi_text_printf(ctx, out, "%s%lld", before, (long long)c->integers[row]);
    }
    char text[40];
    snprintf(text, sizeof text, "%.15g", c->numbers[row] + 0.0);
    char *const comma = strchr(text, ',');
    if (comma) {
        *comma = '.';
    }
    return frgi_text_printf(ctx, out, "%s%s", before, text);
}

/** What a level is looked for by: `whole` among integers, else `value`. */
typedef struct {
    double value;
    int64_t whole;
} number;

static bool is_below(const frgi_levels *l, int32_t code, number x)
{
    return l->whole ? l->whole[code] < x.whole : l->values[code] < x.value;
}

static bool goes_before(const frgi_levels *l, int32_t a, int32_t b)
{
    if (l->by_text) {
        return strcmp(frgi_names_text(&l->text, a), frgi_names_text(&l->text, b)) < 0;
    }
    return is_below(l, a, (number){l->values[b], l->whole ? l->whole[b] : 0});
}

/** Merge sort, bottom up. */
static frg_status sort_levels(frg_context *ctx, frgi_levels *l)
{
    int32_t *spare;
    TRY(NEW(ctx, &spare, l->n, "levels"));
    for (int64_t width = 1; width < l->n; width *= 2) {
        for (int64_t begin = 0; begin < l->n; begin += 2 * width) {
            const int64_t middle = begin + width < l->n ? begin + width : l->n;
            const int64_t end = begin + 2 * width < l->n ? begin + 2 * width : l->n;
            int64_t i = begin, j = middle;
            for (int64_t k = begin; k < end; k++) {
                const bool right =
                    i >= middle || (j < end && goes_before(l, l->sorted[j], l->sorted[i]));
                spare[k] = l->sorted[right ? j++ : i++];
            }
        }
        int32_t *const swap = l->sorted;
        l->sorted = spare;
        spare = swap;
    }
    DROP(ctx, &spare);
    return FRG_OK;
}

static frg_status fill(frgi_levels *l, frg_context *ctx, const frg_column *c, const int64_t *rows,
                       int64_t n, const int32_t *codes)
{
    int64_t *first = NULL;
    frgi_text text = {0};
    frg_status status;
    TRY(NEW(ctx, &l->sorted, l->n, "levels"));
    TRY(NEW(ctx, &l->values, l->n, "levels"));
    if (c->kind == FRG_INTEGER) {
        TRY(NEW(ctx, &l->whole, l->n, "levels"));
    }
    TRY(NEW(ctx, &first, l->n, "levels"));
    frgi_keys_first(n, codes, l->n, first);
    for (int32_t code = 0; code < l->n; code++) {
        const int64_t row = rows ? rows[first[code]] : first[code];
        int32_t id;
        text.length = 0;
        TRY_TO(done, frgi_level_text(ctx, c, row, "", &text));
        TRY_TO(done, frgi_names_intern(&l->text, ctx, text.text, text.length, &id));
        if (id != code) { /* two labels that are equal, or numbers that differ in the 16th digit */
            TRY_TO(done, frgi_text_printf(ctx, &text, "#%d", code + 1));
            TRY_TO(done, frgi_names_intern(&l->text, ctx, text.text, text.length, &id));
        }
        l->sorted[code] = code;
        frgi_column_block(c, NULL, row, 1, &l->values[code]);
        if (l->whole) {
            l->whole[code] = c->integers[row];
        }
    }
    status = sort_levels(ctx, l);
done:
    frgi_text_free(ctx, &text);
    DROP(ctx, &first);
    return status;
}

frg_status frgi_levels_create(frgi_levels *l, frg_context *ctx, const frg_column *c,
                              const int64_t *rows, int64_t n, const int32_t *codes,
                              int64_t n_levels)
{
    *l = (frgi_levels){
        .kind = c->kind, .by_text = c->kind == FRG_CATEGORY && !c->ordered, .n = (int32_t)n_levels};
    const frg_status status = fill(l, ctx, c, rows, n, codes);
    if (status < 0) {
        frgi_levels_destroy(l, ctx);
    }
    return status;
}

void frgi_levels_destroy(frgi_levels *l, frg_context *ctx)
{
    DROP(ctx, &l->sorted);
    DROP(ctx, &l->values);
    DROP(ctx, &l->whole);
    frgi_names_free(&l->text, ctx);
}

static bool is_equal(const frgi_levels *l, int32_t code, number x)
{
    return l->whole ? l->whole[code] == x.whole : l->values[code] == x.value;
}

/** The code of a number, -1 where there is none. */
static int32_t find(const frgi_levels *l, number x)
{
    int32_t low = 0, high = l->n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (is_below(l, l->sorted[middle], x)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < l->n && is_equal(l, l->sorted[low], x) ? l->sorted[low] : -1;
}

int32_t frgi_levels_find(const frgi_levels *l, double value)
{
    /* a double beyond 2^53 may stand for several */
    const bool whole = fabs(value) <= 0x1p53 && trunc(value) == value;
    return l->whole && !whole ? -1 : find(l, (number){value, whole ? (int64_t)value : 0});
}

static frg_status match_labels(const frgi_levels *l, frg_context *ctx, const frg_column *c,
                               int32_t *out)
{
    int32_t *codes;
    TRY(NEW(ctx, &codes, c->n_labels, "levels"));
    for (int64_t i = 0; i < c->n_labels; i++) {
        codes[i] = frgi_names_find(&l->text, c->labels[i], strlen(c->labels[i]));
    }
    for (int64_t i = 0; i < c->n; i++) {
        out[i] = c->codes[i] < 0 ? FRGI_LEVEL_MISSING : codes[c->codes[i]];
    }
    DROP(ctx, &codes);
    return FRG_OK;
}

bool frgi_column_has_values(const frg_column *c)
{
    double value = NAN;
    for (int64_t i = 0; i < c->n && isnan(value); i++) {
        frgi_column_block(c, NULL, i, 1, &value);
    }
    return !isnan(value);
}

frg_status frgi_levels_match(const frgi_levels *l, frg_context *ctx, const frg_column *c,
                             int32_t *out)
{
    const bool matches = (l->kind == FRG_CATEGORY) == (c->kind == FRG_CATEGORY);
    if (!matches && frgi_column_has_values(c)) {
        FAIL(ctx, E_TYPE, "column '%s' holds %s here and held %s in the estimation", c->name,
             c->kind == FRG_CATEGORY ? "text" : "numbers",
             l->kind == FRG_CATEGORY ? "text" : "numbers");
    }
    if (matches && c->kind == FRG_CATEGORY) {
        return match_labels(l, ctx, c, out);
    }
    for (int64_t i = 0; i < c->n; i++) {
        double value;
        frgi_column_block(c, NULL, i, 1, &value);
        out[i] = isnan(value)             ? FRGI_LEVEL_MISSING
                 : c->kind == FRG_INTEGER ? find(l, (number){value, c->integers[i]})
                                          : frgi_levels_find(l, value);
    }
    return FRG_OK;
}
