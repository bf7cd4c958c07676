/* dta_columns.c - cells of Stata's columns: integers, numbers, texts, and numbers with labels.
 *
 *     byte int long      INTEGER         . and .a to .z are missing
 *     float double       NUMBER
 *     str1 .. strL       CATEGORY        in order of first appearance; "" is missing
 *     with value labels  CATEGORY        in the order of the values; a level is the label's text
 *
 * Labels of some of the values that occur alone mark ends of a scale (99: "99 or more"), as Stata,
 * for which labels change no number, has them: such a column stays numbers, with a warning.  Two
 * values with one text are two levels: from the second on the value stands behind it: "yes
 * (2)".
 */
#include "io/io.h"

#if FOURGE_READSTAT
#include <string.h>

#include "fourge/report.h" /* frg_format_double */
#include "io/dta.h"

static bool is_text(const frgi_dta_column *c)
{
    return c->type == READSTAT_TYPE_STRING;
}

static bool is_integer(const frgi_dta_column *c)
{
    return c->type == READSTAT_TYPE_INT8 || c->type == READSTAT_TYPE_INT16 ||
           c->type == READSTAT_TYPE_INT32;
}

frg_status frgi_dta_column_open(frgi_dta_column *c, frg_context *ctx, int64_t rows)
{
    const size_t bytes = c->coded ? sizeof(int32_t) : sizeof(int64_t);
    return frgi_alloc(ctx, &c->values, frgi_mul((size_t)rows, bytes), c->name);
}

void frgi_dta_column_free(frgi_dta_column *c, frg_context *ctx)
{
    DROP(ctx, &c->name);
    DROP(ctx, &c->values);
    frgi_dictionary_free(&c->dictionary, ctx);
}

/* ---- cells ----------------------------------------------------------------------------------- */

/** *code <- the number of the bytes, which are put in where they are new. */
static frg_status learn(frgi_dictionary *d, frg_context *ctx, const void *bytes, int64_t n,
                        int32_t *code)
{
    const uint64_t hash = frgi_hash(bytes, n);
    *code = frgi_dictionary_find(d, bytes, n, hash);
    if (*code < 0) {
        TRY(frgi_dictionary_reserve(d, ctx, 1, n));
        *code = frgi_dictionary_put(d, bytes, n, hash);
    }
    return FRG_OK;
}

static double number_of(const readstat_value_t *value)
{
    switch (value->type) {
    case READSTAT_TYPE_INT8:
        return value->v.i8_value;
    case READSTAT_TYPE_INT16:
        return value->v.i16_value;
    case READSTAT_TYPE_INT32:
        return value->v.i32_value;
    case READSTAT_TYPE_FLOAT:
        return (double)value->v.float_value;
    default:
        return value->v.double_value;
    }
}

static void put_missing(frgi_dta_column *c, int64_t row, const readstat_value_t *value)
{
    const int tag = value->is_tagged_missing ? value->tag - 'a' : -1;
    c->missing++;
    if (tag >= 0 && tag < FRGI_DTA_TAGS) {
        c->tagged[tag]++;
    }
    if (c->coded) {
        ((int32_t *)c->values)[row] = FRG_MISSING_CODE;
    } else if (is_integer(c)) {
        ((int64_t *)c->values)[row] = FRG_MISSING_INTEGER;
    } else {
        ((double *)c->values)[row] = __builtin_nan("");
    }
}

static frg_status put_text(frgi_dta_column *c, frg_context *ctx, int64_t row, const char *text)
{
    const int64_t n = (int64_t)strlen(text);
    if (!frgi_is_utf8(text, n)) {
        FAIL(ctx, E_FORMAT, "row %lld of column '%s': the text is not UTF-8", (long long)row + 1,
             c->name);
    }
    return learn(&c->dictionary, ctx, text, n, &((int32_t *)c->values)[row]);
}

frg_status frgi_dta_column_put(frgi_dta_column *c, frg_context *ctx, int64_t row,
                               const readstat_value_t *value)
{
    const bool text = value->type == READSTAT_TYPE_STRING;
    const char *const s = text ? value->v.string_value : "";
    if (text != is_text(c)) {
        FAIL(ctx, E_FORMAT, "row %lld of column '%s' is of another type than the column",
             (long long)row + 1, c->name);
    }
    if (value->is_system_missing || value->is_tagged_missing || (text && (!s || !*s))) {
        put_missing(c, row, value);
        return FRG_OK;
    }
    if (text) {
        return put_text(c, ctx, row, s);
    }
    const double number = number_of(value) + 0.0; /* one zero */
    if (number != number) { /* none of Stata's own, whose missing are finite */
        put_missing(c, row, value);
        return FRG_OK;
    }
    if (c->label_set[0]) {
        return learn(&c->dictionary, ctx, &number, sizeof number, &((int32_t *)c->values)[row]);
    }
    if (is_integer(c)) {
        ((int64_t *)c->values)[row] = (int64_t)number;
    } else {
        ((double *)c->values)[row] = number;
        c->missing += number != number;
    }
    return FRG_OK;
}

/* ---- labels ---------------------------------------------------------------------------------- */

frg_status frgi_dta_labels_put(frgi_dta_labels *l, frg_context *ctx, frgi_dta_key key,
                               const char *text)
{
    const int64_t n = (int64_t)strlen(text), before = l->keys.count;
    if (!frgi_is_utf8(text, n)) {
        FAIL(ctx, E_FORMAT, "the label of %g is not UTF-8", key.value);
    }
    int32_t code;
    key.value += 0.0;
    TRY(learn(&l->keys, ctx, &key, sizeof key, &code));
    if (code < before) {
        return FRG_OK; /* the first one counts */
    }
    if (l->keys.count > l->capacity) {
        const int64_t capacity = l->capacity > 0 ? 2 * l->capacity : 16;
        TRY(GROW(ctx, &l->starts, capacity, "value labels"));
        l->capacity = capacity;
    }
    l->starts[code] = (int64_t)l->texts.length;
    return frgi_text_append(ctx, &l->texts, text, (size_t)n + 1);
}

void frgi_dta_labels_free(frgi_dta_labels *l, frg_context *ctx)
{
    frgi_dictionary_free(&l->keys, ctx);
    DROP(ctx, &l->starts);
    frgi_text_free(ctx, &l->texts);
}

/** NULL: the value has none. */
static const char *label_of(const frgi_dta_labels *l, frgi_dta_key key)
{
    const uint64_t hash = frgi_hash((const char *)&key, sizeof key);
    const int32_t code = frgi_dictionary_find(&l->keys, (const char *)&key, sizeof key, hash);
    return code < 0 ? NULL : l->texts.text + l->starts[code];
}

/* ---- levels ---------------------------------------------------------------------------------- */

typedef struct {
    double value;
    int32_t code; /* in order of first appearance */
} level;

static int by_value(const void *a, const void *b, const void *user)
{
    (void)user;
    const double x = ((const level *)a)->value, y = ((const level *)b)->value;
    return (x > y) - (x < y);
}

static double value_of(const frgi_dta_column *c, int64_t code)
{
    double value;
    memcpy(&value, c->dictionary.text + c->dictionary.starts[code], sizeof value);
    return value;
}

/** Adds the level's text as the next of `texts`, told apart from those before it. */
static frg_status name_level(frg_context *ctx, const frgi_dta_labels *l, frgi_dta_key key,
                             frgi_dictionary *texts)
{
    const int64_t before = texts->count;
    char number[32];
    number[frg_format_double(key.value, number)] = '\0';
    frgi_text text = {0};
    int32_t code;
    frg_status status = frgi_text_printf(ctx, &text, "%s", label_of(l, key));
    while (status == FRG_OK) {
        status = learn(texts, ctx, text.text, (int64_t)text.length, &code);
        if (status < 0 || code == before) {
            break;
        }
        status = frgi_text_printf(ctx, &text, " (%s)", number);
    }
    frgi_text_free(ctx, &text);
    return status;
}

static void renumber(frgi_dta_column *c, int64_t rows, const level *levels, int32_t *place)
{
    int32_t *const codes = c->values;
    for (int32_t k = 0; k < c->dictionary.count; k++) {
        place[levels[k].code] = k;
    }
    for (int64_t i = 0; i < rows; i++) {
        codes[i] = codes[i] < 0 ? FRG_MISSING_CODE : place[codes[i]];
    }
}

/** Codes in the order of the values, and the levels' texts in the place of the numbers. */
static frg_status name_levels(frgi_dta_column *c, frg_context *ctx, const frgi_dta_labels *l,
                              int64_t set, int64_t rows)
{
    const int64_t n = c->dictionary.count;
    frgi_dictionary texts = {0};
    level *levels = NULL;
    int32_t *place = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &levels, n, "levels of a column"));
    TRY_TO(done, NEW(ctx, &place, n, "levels of a column"));
    for (int32_t k = 0; k < n; k++) {
        levels[k] = (level){value_of(c, k), k};
    }
    frgi_sort(levels, n, sizeof *levels, by_value, NULL);
    for (int64_t k = 0; k < n; k++) {
        TRY_TO(done, name_level(ctx, l, (frgi_dta_key){levels[k].value, set}, &texts));
    }
    renumber(c, rows, levels, place);
    frgi_dictionary_free(&c->dictionary, ctx);
    c->dictionary = texts;
    texts = (frgi_dictionary){0};
done:
    frgi_dictionary_free(&texts, ctx);
    DROP(ctx, &levels);
    DROP(ctx, &place);
    return status;
}

/** Codes of numbers become the numbers. */
static frg_status take_numbers_back(frgi_dta_column *c, frg_context *ctx, int64_t rows)
{
    int32_t *codes = c->values;
    c->values = NULL;
    c->coded = false;
    const frg_status status = frgi_dta_column_open(c, ctx, rows);
    for (int64_t i = 0; i < rows && status == FRG_OK; i++) {
        const double value = codes[i] < 0 ? (double)__builtin_nan("") : value_of(c, codes[i]);
        if (is_integer(c)) {
            ((int64_t *)c->values)[i] = codes[i] < 0 ? FRG_MISSING_INTEGER : (int64_t)value;
        } else {
            ((double *)c->values)[i] = value;
        }
    }
    DROP(ctx, &codes);
    return status;
}

/** Values that occur and have no label. */
static int64_t count_unlabelled(const frgi_dta_column *c, const frgi_dta_labels *l, int64_t set)
{
    int64_t n = 0;
    for (int64_t k = 0; k < c->dictionary.count; k++) {
        n += label_of(l, (frgi_dta_key){value_of(c, k), set}) == NULL;
    }
    return n;
}

/** Levels of what has labels; the numbers again where a value has none. */
static frg_status apply_labels(frgi_dta_column *c, frg_context *ctx, const frgi_dta_labels *labels,
                               const frgi_dta_column *first, int64_t set, int64_t rows)
{
    if (!c->label_set[0]) {
        return FRG_OK;
    }
    const int64_t bare = count_unlabelled(c, labels, set);
    if (first->numbers_named && bare == 0) {
        return name_levels(c, ctx, labels, set, rows);
    }
    if (first->numbers_named) {
        frgi_warn(ctx, W_HALF_LABELLED,
                  "column '%s': %lld of its %lld values have no label in '%s'; it is read as "
                  "numbers, not as a category",
                  c->name, (long long)bare, (long long)c->dictionary.count, c->label_set);
    } else if (!first->labels_seen) {
        frgi_warn(ctx, W_UNLABELLED,
                  "column '%s' names the value labels '%s', which the file has not", c->name,
                  c->label_set);
    }
    return take_numbers_back(c, ctx, rows);
}

/** The dictionary's text becomes the column's; the labels point into it. */
static frg_status take_labels(frgi_dta_column *c, frg_context *ctx, frgi_column_memory *m)
{
    frgi_dictionary *const d = &c->dictionary;
    TRY(NEW(ctx, &m->labels, d->count, "labels of a column"));
    for (int64_t k = 0; k < d->count; k++) {
        m->labels[k] = d->text + d->starts[k];
    }
    m->label_text = d->text;
    m->ordered = m->labelled = !is_text(c);
    d->text = NULL;
    return FRG_OK;
}

frg_status frgi_dta_column_finish(frgi_dta_column *c, frg_context *ctx,
                                  const frgi_dta_labels *labels, const frgi_dta_column *first,
                                  int64_t set, frg_table *t)
{
    TRY(apply_labels(c, ctx, labels, first, set, frg_table_rows(t)));
    const bool coded = c->coded;
    frgi_column_memory m = {.name = c->name, .values = c->values};
    const int64_t n_labels = coded ? c->dictionary.count : 0;
    frg_status status = coded ? take_labels(c, ctx, &m) : FRG_OK;
    if (status == FRG_OK) {
        status = frgi_table_adopt(t, m,
                                  coded           ? FRG_CATEGORY
                                  : is_integer(c) ? FRG_INTEGER
                                                  : FRG_NUMBER,
                                  c->missing, n_labels);
    }
    if (status < 0) {
        DROP(ctx, &m.labels);
        DROP(ctx, &m.label_text);
        return status;
    }
    c->name = NULL;
    c->values = NULL;
    return FRG_OK;
}
#endif
