/* bins.c - bin="bin::2", bin=c(1, 2), bin=list(1:3, c(7, 9)).
 *
 * A vector is one bin, a list has one in each element; a:b are the whole numbers from a to b.
 *
 * Source: Berge, Butts and McDermott (2026), fixest (what the argument means).
 */
#include "formula/bins.h"

#include <math.h>
#include <string.h>

enum { ITEMS = 1024 };
static const char prefix[] = "bin::";

static frg_status refuse(const frgi_syntax *s, frg_context *ctx, int32_t node, const char *message)
{
    return frgi_syntax_refuse(s, ctx, E_FORMULA, node, message);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool take_number(const frgi_syntax *s, int32_t node, double *out)
{
    const bool negative = s->nodes[node].kind == NODE_NEGATIVE;
    const frgi_node *const x = &s->nodes[node - negative];
    *out = negative ? -x->value : x->value;
    return x->kind == NODE_NUMBER;
}

static bool overlap(const frgi_bin_item *a, const frgi_bin_item *b)
{
    const double low = fmax(a->low, b->low), high = fmin(a->high, b->high);
    return low <= high && floor(a->first - b->first) == a->first - b->first;
}

/** A number, or a range of whole steps. */
static frg_status add_item(frgi_bins *b, frg_context *ctx, const frgi_syntax *s, int32_t node)
{
    double first, last;
    const bool range = s->nodes[node].kind == NODE_INTERACT;
    const bool sound = take_number(s, range ? frgi_syntax_child(s, node, 0) : node, &first) &&
                       take_number(s, range ? frgi_syntax_child(s, node, 1) : node, &last);
    if (!sound) {
        return refuse(s, ctx, node,
                      "a bin is a number, a range a:b, or c(...) of them, several are list(...) of "
                      "bins, and \"bin::2\" takes two by two; a bin is named by its first value");
    }
    if (b->n == ITEMS) {
        return refuse(s, ctx, node, "bins hold at most 1024 numbers and ranges");
    }
    const frgi_bin_item item = {.first = first,
                                .low = fmin(first, last),
                                .high = fmax(first, last),
                                .bin = b->n_bins,
                                .node = node};
    for (int32_t i = 0; i < b->n; i++) {
        if (overlap(&b->items[i], &item)) {
            return refuse(s, ctx, node, "a value is here that was in a bin before");
        }
    }
    if (b->n == b->capacity) {
        const int32_t capacity = 2 * b->capacity + 8;
        TRY(GROW(ctx, &b->items, capacity, "bins"));
        b->capacity = capacity;
    }
    b->items[b->n++] = item;
    return FRG_OK;
}

static bool is_call(const frgi_syntax *s, int32_t node, const char *name)
{
    return s->nodes[node].kind == NODE_CALL && frgi_syntax_is(s, node, name);
}

static frg_status add_bin(frgi_bins *b, frg_context *ctx, const frgi_syntax *s, int32_t node)
{
    if (!is_call(s, node, "c")) {
        TRY(add_item(b, ctx, s, node));
    }
    for (int32_t i = 0; is_call(s, node, "c") && i < s->nodes[node].children; i++) {
        TRY(add_item(b, ctx, s, frgi_syntax_child(s, node, i)));
    }
    b->n_bins++;
    return FRG_OK;
}

/** "bin::2" */
static frg_status take_width(frgi_bins *b, frg_context *ctx, const frgi_syntax *s, int32_t node)
{
    enum { DIGITS = 9 };
    const frgi_node *const x = &s->nodes[node];
    const int32_t begin = (int32_t)sizeof prefix - 1;
    bool sound = x->name_length > begin && x->name_length <= begin + DIGITS &&
                 strncmp(s->text + x->name, prefix, sizeof prefix - 1) == 0;
    for (int32_t i = begin; sound && i < x->name_length; i++) {
        const char digit = s->text[x->name + i];
        sound = digit >= '0' && digit <= '9';
        b->width = 10 * b->width + (digit - '0');
    }
    return sound && b->width > 0
               ? FRG_OK
               : refuse(s, ctx, node,
                        "of texts there is \"bin::2\", whole numbers two by two (any width); "
                        "\"!bin::\", \"!!bin::\" and \"@...\" are not built yet: list the values");
}

frg_status frgi_bins_create(frgi_bins *b, frg_context *ctx, const frgi_syntax *s, int32_t root)
{
    *b = (frgi_bins){0};
    if (s->nodes[root].kind == NODE_STRING) {
        return take_width(b, ctx, s, root);
    }
    if (!is_call(s, root, "list")) {
        return add_bin(b, ctx, s, root);
    }
    for (int32_t i = 0; i < s->nodes[root].children; i++) {
        TRY(add_bin(b, ctx, s, frgi_syntax_child(s, root, i)));
    }
    return FRG_OK;
}

void frgi_bins_free(frgi_bins *b, frg_context *ctx)
{
    DROP(ctx, &b->items);
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool holds(const frgi_bin_item *item, double value)
{
    return value >= item->low && value <= item->high &&
           floor(value - item->first) == value - item->first;
}

/** The value of the item that is written first; NaN: none. */
static double nearest(const frgi_bin_item *item, const double *values, int64_t n, double found)
{
    for (int64_t i = 0; i < n; i++) {
        const bool nearer = !(fabs(values[i] - item->first) >= fabs(found - item->first));
        found = holds(item, values[i]) && nearer ? values[i] : found;
    }
    return found;
}

static void rename_values(const frgi_bin_item *items, int32_t n_items, double name, double *values,
                          int64_t n, const double *was)
{
    for (int64_t i = 0; i < n; i++) {
        for (int32_t k = 0; k < n_items; k++) {
            values[i] = holds(&items[k], was[i]) ? name : values[i];
        }
    }
}

/** The items of one bin; was: copies of both, one behind the other. */
static frg_status map_bin(const frgi_bin_item *items, int32_t n_items, frg_context *ctx,
                          const frgi_syntax *s, const double *was, double *values, int64_t n,
                          double *more, int64_t n_more)
{
    double name = (double)NAN;
    for (int32_t k = 0; k < n_items && isnan(name); k++) {
        name = nearest(&items[k], was, n + n_more, name);
    }
    if (isnan(name)) {
        const frgi_node *const x = &s->nodes[items[0].node];
        frgi_syntax_at(s, ctx, items[0].node);
        FAIL(ctx, E_REFERENCE, "%s, column %d: no row has a value of the bin that begins with %.*s",
             s->what, frgi_syntax_column(s, x->at), x->length > 60 ? 60 : x->length,
             s->text + x->at);
    }
    rename_values(items, n_items, name, values, n, was);
    rename_values(items, n_items, name, more, n_more, was + n);
    return FRG_OK;
}

static void map_width(double width, double *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        values[i] = width * floor(values[i] / width);
    }
}

frg_status frgi_bins_map(const frgi_bins *b, frg_context *ctx, const frgi_syntax *s, double *values,
                         int64_t n, double *more, int64_t n_more)
{
    if (b->width > 0) {
        map_width(b->width, values, n);
        map_width(b->width, more, n_more);
        return FRG_OK;
    }
    double *was;
    frg_status status = FRG_OK;
    TRY(NEW(ctx, &was, n + n_more + 1, "bins"));
    memcpy(was, values, sizeof *was * (size_t)n);
    for (int64_t i = 0; i < n_more; i++) {
        was[n + i] = more[i];
    }
    for (int32_t begin = 0, end = 0; begin < b->n && status >= 0; begin = end) {
        while (end < b->n && b->items[end].bin == b->items[begin].bin) {
            end++;
        }
        status = map_bin(b->items + begin, end - begin, ctx, s, was, values, n, more, n_more);
    }
    DROP(ctx, &was);
    return status;
}
