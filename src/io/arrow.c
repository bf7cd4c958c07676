/* arrow.c - tables from the Arrow C stream interface.
 *
 * A stream is a schema and record batches (structs with one child a column).  In memory all batches
 * are taken first, so that the number of rows is known; then each wanted column is written into one
 * array, batch after batch.  Under a memory limit with a spool each batch is written behind the
 * rows that are there, in arrays that grow, and given back before the next one is asked for:
 *
 *     batch -> columns[rows ..] -> released -> batch -> ...
 *
 *     format      c C s S i I l L   e f g d:   b      tdD tdm tt* ts* tD*   u U vu   n
 *     column      INTEGER NUMBER BOOL INTEGER CATEGORY NUMBER, all missing
 *
 * Element i of an array lies at `offset + i` of its buffers; buffer 0 is the validity bitmap (NULL:
 * all valid). Strings are numbered in order of first appearance; a dictionary array maps its own
 * numbers through a table made once a batch.  The words of an ordered dictionary are numbered
 * before any row is looked at.  Buffers are the producer's word: their lengths cannot be checked.
 *
 * Columns that need no conversion are lent by a batch that is the only one, which the table then
 * keeps until it is destroyed; never under a spool.
 */
#include <math.h>
#include <string.h>

#include "fourge/arrow.h"
#include "io/csv.h"

/** How the elements of a format are read. */
typedef enum {
    AS_NULL,
    AS_BOOL,
    AS_I8,
    AS_U8,
    AS_I16,
    AS_U16,
    AS_I32,
    AS_U32,
    AS_I64,
    AS_U64,
    AS_F16,
    AS_F32,
    AS_F64,
    AS_DECIMAL,
    AS_UTF8,
    AS_LARGE_UTF8,
    AS_UTF8_VIEW,
    AS_NONE
} element;

typedef struct {
    const char *format;
    bool prefix; /* the format begins so */
    element read;
    frg_column_kind kind;
} format_row;

static const format_row formats[] = {
    {"n", false, AS_NULL, FRG_NUMBER},         {"b", false, AS_BOOL, FRG_BOOL},
    {"c", false, AS_I8, FRG_INTEGER},          {"C", false, AS_U8, FRG_INTEGER},
    {"s", false, AS_I16, FRG_INTEGER},         {"S", false, AS_U16, FRG_INTEGER},
    {"i", false, AS_I32, FRG_INTEGER},         {"I", false, AS_U32, FRG_INTEGER},
    {"l", false, AS_I64, FRG_INTEGER},         {"L", false, AS_U64, FRG_INTEGER},
    {"e", false, AS_F16, FRG_NUMBER},          {"f", false, AS_F32, FRG_NUMBER},
    {"g", false, AS_F64, FRG_NUMBER},          {"u", false, AS_UTF8, FRG_CATEGORY},
    {"U", false, AS_LARGE_UTF8, FRG_CATEGORY}, {"vu", false, AS_UTF8_VIEW, FRG_CATEGORY},
    {"tdD", false, AS_I32, FRG_INTEGER},       {"tdm", false, AS_I64, FRG_INTEGER},
    {"tts", false, AS_I32, FRG_INTEGER},       {"ttm", false, AS_I32, FRG_INTEGER},
    {"ttu", false, AS_I64, FRG_INTEGER},       {"ttn", false, AS_I64, FRG_INTEGER},
    {"ts", true, AS_I64, FRG_INTEGER},         {"tD", true, AS_I64, FRG_INTEGER},
    {"d:", true, AS_DECIMAL, FRG_NUMBER},
};

/** One column under construction. */
typedef struct {
    int64_t child;
    const char *name;
    format_row row; /* of the values, a dictionary's looked through */
    element index;  /* of a dictionary's numbers, AS_NONE without one */
    int bits;       /* of a decimal: 32, 64 or 128 */
    double unit;    /* 10^scale of a decimal */
    frgi_column_memory memory;
    frgi_dictionary labels;
    int64_t missing;
} column;

/** What is being read. */
typedef struct {
    frg_context *ctx;
    const struct ArrowSchema *schema;
    column *columns; /* those that are wanted */
    int64_t n_columns;
    int64_t rows, capacity; /* written, and what the columns' memory is for */
} arrow_read;

/** The child with its own offset and the batch's (a struct's children are not sliced with it). */
typedef struct {
    const struct ArrowArray *array;
    int64_t first, n;
} slice;

static slice child_of(const struct ArrowArray *batch, int64_t child)
{
    const struct ArrowArray *const a = batch->children[child];
    return (slice){.array = a, .first = a->offset + batch->offset, .n = batch->length};
}

static bool is_valid(const slice *s, int64_t i)
{
    const unsigned char *const bits = s->array->buffers[0];
    const int64_t at = s->first + i;
    return !bits || (bits[at >> 3] >> (at & 7) & 1);
}

static bool may_have_nulls(const slice *s)
{
    return s->array->null_count != 0 && s->array->n_buffers > 0 && s->array->buffers[0];
}

/* ---- elements -------------------------------------------------------------------------------- */

/** IEEE 754 binary16. */
static double half(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const uint64_t sign = (uint64_t)(h >> 15) << 63;
    uint64_t bits;
    if (exponent == 0) {
        const double value = (double)fraction * 0x1p-24;
        return sign ? -value : value;
    }
    if (exponent == 31) {
        bits = sign | UINT64_C(0x7ff) << 52 | (uint64_t)fraction << 42;
    } else {
        bits = sign | (uint64_t)(exponent - 15 + 1023) << 52 | (uint64_t)fraction << 42;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double number_at(const void *values, element e, int64_t at)
{
    switch (e) {
    case AS_F16:
        return half(((const uint16_t *)values)[at]);
    case AS_F32:
        return (double)((const float *)values)[at];
    default:
        return ((const double *)values)[at];
    }
}

/** A decimal is a whole number over 10^scale: right to an ulp, and exact in both where they fit 53
 *  bits. */
static double decimal_at(const void *values, const column *c, int64_t at)
{
    __extension__ typedef __int128 wide;
    if (c->bits == 32) {
        return (double)((const int32_t *)values)[at] / c->unit;
    }
    if (c->bits == 64) {
        return (double)((const int64_t *)values)[at] / c->unit;
    }
    wide v;
    memcpy(&v, (const char *)values + 16 * at, sizeof v); /* 8-byte aligned at least */
    return (double)v / c->unit;
}

/** Unsigned 64-bit values come as they are; the caller has checked them. */
static int64_t integer_at(const void *values, element e, int64_t at)
{
    switch (e) {
    case AS_I8:
        return ((const int8_t *)values)[at];
    case AS_U8:
        return ((const uint8_t *)values)[at];
    case AS_I16:
        return ((const int16_t *)values)[at];
    case AS_U16:
        return ((const uint16_t *)values)[at];
    case AS_I32:
        return ((const int32_t *)values)[at];
    case AS_U32:
        return ((const uint32_t *)values)[at];
    default:
        return ((const int64_t *)values)[at];
    }
}

/** A string view is 16 bytes: its length, and the bytes themselves (up to 12) or a prefix, a
 *  buffer, an offset. */
static frgi_span view_at(const struct ArrowArray *a, int64_t at)
{
    const char *const view = (const char *)a->buffers[1] + 16 * at;
    int32_t n, where[2];
    memcpy(&n, view, sizeof n);
    memcpy(where, view + 8, sizeof where);
    return (frgi_span){n <= 12 ? view + 4 : (const char *)a->buffers[2 + where[0]] + where[1], n};
}

static frgi_span string_at(const struct ArrowArray *a, element e, int64_t at)
{
    if (e == AS_UTF8_VIEW) {
        return view_at(a, at);
    }
    const char *const text = a->buffers[2];
    if (e == AS_UTF8) {
        const int32_t *const ends = a->buffers[1];
        return (frgi_span){text + ends[at], ends[at + 1] - ends[at]};
    }
    const int64_t *const ends = a->buffers[1];
    return (frgi_span){text + ends[at], ends[at + 1] - ends[at]};
}

/* ---- columns --------------------------------------------------------------------------------- */

static frg_status fill_numbers(const arrow_read *r, column *c, const slice *s, int64_t row)
{
    (void)r;
    double *const out = (double *)c->memory.values + row;
    if (c->row.read == AS_NULL) {
        for (int64_t i = 0; i < s->n; i++) {
            out[i] = __builtin_nan("");
        }
        c->missing += s->n;
        return FRG_OK;
    }
    const bool nulls = may_have_nulls(s);
    for (int64_t i = 0; i < s->n; i++) {
        out[i] = nulls && !is_valid(s, i) ? __builtin_nan("")
                 : c->row.read == AS_DECIMAL
                     ? decimal_at(s->array->buffers[1], c, s->first + i)
                     : number_at(s->array->buffers[1], c->row.read, s->first + i);
        c->missing += out[i] != out[i];
    }
    return FRG_OK;
}

/** A whole number, whose least value is one; of dates and times it is NumPy's NaT, none. */
static bool is_whole(const column *c)
{
    return c->row.kind == FRG_INTEGER && c->row.format[0] != 't';
}

static frg_status fill_integers(const arrow_read *r, column *c, const slice *s, int64_t row)
{
    int64_t *const out = (int64_t *)c->memory.values + row;
    const bool nulls = may_have_nulls(s);
    for (int64_t i = 0; i < s->n; i++) {
        const bool valid = !nulls || is_valid(s, i);
        out[i] = valid ? integer_at(s->array->buffers[1], c->row.read, s->first + i)
                       : FRG_MISSING_INTEGER;
        c->missing += out[i] == FRG_MISSING_INTEGER;
        if (valid && out[i] < 0 && c->row.read == AS_U64) {
            frgi_at(r->ctx, "column '%s'", c->name);
            FAIL(r->ctx, E_FORMAT, "column '%s', row %lld: %llu is larger than an int64 holds",
                 c->name, (long long)(row + i) + 1, (unsigned long long)out[i]);
        }
        if (valid && out[i] == FRG_MISSING_INTEGER && is_whole(c)) {
            frgi_at(r->ctx, "column '%s'", c->name);
            FAIL(r->ctx, E_FORMAT,
                 "column '%s', row %lld: %lld stands for a missing value here; make it null, or "
                 "the column one of float64",
                 c->name, (long long)(row + i) + 1, (long long)out[i]);
        }
    }
    return FRG_OK;
}

static frg_status fill_bools(const arrow_read *r, column *c, const slice *s, int64_t row)
{
    (void)r;
    int32_t *const out = (int32_t *)c->memory.values + row;
    const unsigned char *const bits = s->array->buffers[1];
    const bool nulls = may_have_nulls(s);
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t at = s->first + i;
        out[i] = nulls && !is_valid(s, i) ? FRG_MISSING_CODE : bits[at >> 3] >> (at & 7) & 1;
        c->missing += out[i] < 0;
    }
    return FRG_OK;
}

static frg_status put_label(const arrow_read *r, column *c, frgi_span s, int64_t row, int32_t *code)
{
    const uint64_t hash = frgi_hash(s.bytes, s.count);
    *code = frgi_dictionary_find(&c->labels, s.bytes, s.count, hash);
    if (*code >= 0) {
        return FRG_OK;
    }
    if (!frgi_is_utf8(s.bytes, s.count)) {
        frgi_at(r->ctx, "column '%s'", c->name);
        FAIL(r->ctx, E_FORMAT, "column '%s', row %lld: the text is not UTF-8", c->name,
             (long long)row + 1);
    }
    TRY(frgi_dictionary_reserve(&c->labels, r->ctx, 1, s.count));
    *code = frgi_dictionary_put(&c->labels, s.bytes, s.count, hash);
    return FRG_OK;
}

static frg_status fill_strings(const arrow_read *r, column *c, const slice *s, int64_t row)
{
    int32_t *const out = (int32_t *)c->memory.values + row;
    const bool nulls = may_have_nulls(s);
    for (int64_t i = 0; i < s->n; i++) {
        if (nulls && !is_valid(s, i)) {
            out[i] = FRG_MISSING_CODE;
            c->missing++;
        } else {
            TRY(put_label(r, c, string_at(s->array, c->row.read, s->first + i), row + i, &out[i]));
        }
    }
    return FRG_OK;
}

/** *code <- the number of word k of a batch's dictionary, first met in this row. */
static frg_status learn_word(const arrow_read *r, column *c, const struct ArrowArray *words,
                             int64_t k, int64_t row, int32_t *code)
{
    const slice meanings = {.array = words, .first = words->offset, .n = words->length};
    *code = FRG_MISSING_CODE;
    if (may_have_nulls(&meanings) && !is_valid(&meanings, k)) {
        return FRG_OK;
    }
    return put_label(r, c, string_at(words, c->row.read, meanings.first + k), row, code);
}

/** Codes of one batch through `map`, which starts at FRG_MISSING_CODE - 1: not met yet. */
static frg_status map_numbers(const arrow_read *r, column *c, const slice *s, int64_t row,
                              int32_t *map)
{
    const struct ArrowArray *const words = s->array->dictionary;
    const bool nulls = may_have_nulls(s);
    int32_t *const out = (int32_t *)c->memory.values + row;
    for (int64_t i = 0; i < s->n; i++) {
        out[i] = FRG_MISSING_CODE;
        if (!nulls || is_valid(s, i)) {
            const int64_t k = integer_at(s->array->buffers[1], c->index, s->first + i);
            if (k < 0 || k >= words->length) {
                frgi_at(r->ctx, "column '%s'", c->name);
                FAIL(r->ctx, E_FORMAT,
                     "column '%s', row %lld: number %lld of a dictionary of %lld words", c->name,
                     (long long)(row + i) + 1, (long long)k, (long long)words->length);
            }
            if (map[k] < FRG_MISSING_CODE) {
                TRY(learn_word(r, c, words, k, row + i, &map[k]));
            }
            out[i] = map[k];
        }
        c->missing += out[i] < 0;
    }
    return FRG_OK;
}

static frg_status fill_codes(const arrow_read *r, column *c, const slice *s, int64_t row)
{
    if (!s->array->dictionary) {
        FAIL(r->ctx, E_FORMAT, "column '%s': a batch lacks its dictionary", c->name);
    }
    const struct ArrowArray *const words = s->array->dictionary;
    int32_t *map;
    TRY(NEW(r->ctx, &map, words->length, "dictionary of a column"));
    frg_status status = FRG_OK;
    for (int64_t k = 0; k < words->length && status == FRG_OK; k++) {
        map[k] = FRG_MISSING_CODE - 1;
        status = c->memory.ordered ? learn_word(r, c, words, k, row, &map[k]) : FRG_OK;
    }
    if (status == FRG_OK) {
        status = map_numbers(r, c, s, row, map);
    }
    DROP(r->ctx, &map);
    return status;
}

typedef frg_status (*fill_function)(const arrow_read *, column *, const slice *, int64_t row);

static fill_function fill_for(const column *c)
{
    static const fill_function by_kind[] = {[FRG_NUMBER] = fill_numbers,
                                            [FRG_INTEGER] = fill_integers,
                                            [FRG_BOOL] = fill_bools,
                                            [FRG_CATEGORY] = fill_strings};
    return c->index == AS_NONE ? by_kind[c->row.kind] : fill_codes;
}

/** The dictionary's text becomes the column's; the labels point into it. */
static frg_status take_labels(const arrow_read *r, column *c)
{
    TRY(NEW(r->ctx, &c->memory.labels, c->labels.count, "labels of a column"));
    for (int64_t k = 0; k < c->labels.count; k++) {
        c->memory.labels[k] = c->labels.text + c->labels.starts[k];
    }
    c->memory.label_text = c->labels.text;
    c->labels.text = NULL;
    return FRG_OK;
}

/** How many of n values of a column of numbers or integers mean that there is none. */
static int64_t count_missing(frg_column_kind kind, const void *values, int64_t n)
{
    const double *const x = values;
    const int64_t *const k = values;
    int64_t missing = 0;
    for (int64_t i = 0; i < n; i++) {
        missing += kind == FRG_NUMBER ? x[i] != x[i] : k[i] == FRG_MISSING_INTEGER;
    }
    return missing;
}

/** A column that is one batch's float64 or int64 without nulls (NaN is a value) needs no copy; an
 *  integer that would mean a missing value is left to who refuses it. */
static bool lend(column *c, const struct ArrowArray *batch)
{
    if (c->index != AS_NONE || (c->row.read != AS_F64 && c->row.read != AS_I64)) {
        return false;
    }
    const slice s = child_of(batch, c->child);
    if (may_have_nulls(&s) || ((uintptr_t)s.array->buffers[1] & 7) != 0) {
        return false;
    }
    char *const values = (char *)(uintptr_t)s.array->buffers[1] + 8 * s.first;
    const int64_t missing = count_missing(c->row.kind, values, s.n);
    if (missing > 0 && is_whole(c)) {
        return false;
    }
    c->memory.values = values;
    c->memory.lent = true;
    c->missing = missing;
    return true;
}

/** Memory of all columns for `rows` rows; what is lent needs none. */
static frg_status reserve(arrow_read *r, int64_t rows)
{
    for (int64_t k = 0; k < r->n_columns; k++) {
        column *const c = &r->columns[k];
        const size_t bytes = c->row.kind == FRG_NUMBER || c->row.kind == FRG_INTEGER ? 8 : 4;
        if (!c->memory.lent) {
            TRY(frgi_resize(r->ctx, &c->memory.values, frgi_mul((size_t)rows, bytes), c->name));
        }
    }
    r->capacity = rows;
    return FRG_OK;
}

/** Writes a batch behind the rows that are there. */
static frg_status append(arrow_read *r, const struct ArrowArray *batch)
{
    if (batch->length > r->capacity - r->rows) {
        const int64_t least = r->rows + batch->length;
        TRY(reserve(r, least > INT64_MAX / 2 ? least : least + least / 2));
    }
    for (int64_t k = 0; k < r->n_columns; k++) {
        column *const c = &r->columns[k];
        const slice s = child_of(batch, c->child);
        if (!c->memory.lent) {
            TRY(fill_for(c)(r, c, &s, r->rows));
        }
    }
    r->rows += batch->length;
    return FRG_OK;
}

/* ---- the schema ------------------------------------------------------------------------------ */

static bool find_format(const char *format, format_row *out)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const char *const known = formats[i].format;
        if (formats[i].prefix ? strncmp(format, known, strlen(known)) == 0
                              : strcmp(format, known) == 0) {
            *out = formats[i];
            return true;
        }
    }
    return false;
}

/** Reads [-]digits from *s on, below 1e6 in size, and what follows it up to `end`, which is passed
 *  over. */
static bool take_number(const char **s, char end, int *out)
{
    const bool negative = **s == '-';
    const char *const first = *s += negative;
    int value = 0;
    while (**s >= '0' && **s <= '9' && *s < first + 6) {
        value = 10 * value + (*(*s)++ - '0');
    }
    *out = negative ? -value : value;
    const bool whole = *s > first && (**s == end || **s == 0);
    *s += **s != 0;
    return whole;
}

/** d:PRECISION,SCALE or d:PRECISION,SCALE,BITS; false for widths that are not read. */
static bool decide_decimal(column *c, const char *format)
{
    int precision, scale, bits = 128;
    const char *s = format + 2; /* after "d:" */
    if (!take_number(&s, ',', &precision) || !take_number(&s, ',', &scale) ||
        (*s && !take_number(&s, 0, &bits)) || scale < -300 || scale > 300) {
        return false;
    }
    c->bits = bits;
    c->unit = pow(10, scale);
    return bits == 32 || bits == 64 || bits == 128;
}

static frg_status decide_format(const arrow_read *r, column *c)
{
    const struct ArrowSchema *const s = r->schema->children[c->child];
    const char *const values = s->dictionary ? s->dictionary->format : s->format;
    format_row index = {.read = AS_NONE};
    const bool known = find_format(values, &c->row) &&
                       (!s->dictionary || find_format(s->format, &index)) &&
                       (c->row.read != AS_DECIMAL || decide_decimal(c, values));
    if (!known || (s->dictionary && (c->row.kind != FRG_CATEGORY || index.kind != FRG_INTEGER))) {
        frgi_at(r->ctx, "column '%s'", c->name);
        FAIL(r->ctx, E_FILE_TYPE,
             "column '%s' has the Arrow type '%s'%s; numbers, booleans, dates and strings can be "
             "read",
             c->name, values, s->dictionary ? " in a dictionary" : "");
    }
    c->index = index.read;
    c->memory.ordered = s->dictionary && s->flags & ARROW_FLAG_DICTIONARY_ORDERED;
    return FRG_OK;
}

static bool is_named(const arrow_read *r, const char *name)
{
    bool found = false;
    for (int64_t k = 0; k < r->n_columns && !found; k++) {
        found = strcmp(r->columns[k].name, name) == 0;
    }
    return found;
}

/** The columns that are wanted, without rows. */
static frg_status choose_columns(arrow_read *r, const frg_table_opts *o)
{
    TRY(NEW0(r->ctx, &r->columns, r->schema->n_children, "columns of a table"));
    for (int64_t k = 0; k < r->schema->n_children; k++) {
        const char *const given = r->schema->children[k]->name, *const name = given ? given : "";
        if (!frgi_column_is_wanted(o, name)) {
            continue;
        }
        if (!*name || is_named(r, name)) {
            FAIL(r->ctx, E_FORMAT, "column %lld %s", (long long)k + 1,
                 *name ? "has the name of another" : "has no name");
        }
        column *const c = &r->columns[r->n_columns++];
        *c = (column){.child = k, .name = name};
        TRY(frgi_strdup(r->ctx, &c->memory.name, name, strlen(name)));
        TRY(decide_format(r, c));
    }
    return FRG_OK;
}

/** The columns become the table's. */
static frg_status add_columns(arrow_read *r, frg_table *t)
{
    for (int64_t k = 0; k < r->n_columns; k++) {
        column *const c = &r->columns[k];
        TRY(c->row.kind == FRG_CATEGORY ? take_labels(r, c) : FRG_OK);
        TRY(frgi_table_adopt(t, c->memory, c->row.kind, c->missing, c->labels.count));
        c->memory = (frgi_column_memory){0};
    }
    return FRG_OK;
}

static void close_columns(arrow_read *r)
{
    for (int64_t k = 0; k < r->n_columns; k++) {
        frgi_dictionary_free(&r->columns[k].labels, r->ctx);
        frgi_column_memory_free(r->ctx, &r->columns[k].memory);
    }
    DROP(r->ctx, &r->columns);
}

static frg_status check_names(const arrow_read *r, const frg_table_opts *o)
{
    const int64_t n = r->schema->n_children;
    const char **names;
    TRY(NEW(r->ctx, &names, n, "names of columns"));
    for (int64_t k = 0; k < n; k++) {
        names[k] = r->schema->children[k]->name ? r->schema->children[k]->name : "";
    }
    const frg_status status = frgi_columns_exist(r->ctx, o, NULL, names, n);
    DROP(r->ctx, &names);
    return status;
}

/* ---- the stream ------------------------------------------------------------------------------ */

static frg_status producer_failed(frg_context *ctx, struct ArrowArrayStream *stream, int code)
{
    const char *const why = stream->get_last_error ? stream->get_last_error(stream) : NULL;
    FAIL(ctx, E_FORMAT, "the producer of the Arrow stream failed with %d: %s", code,
         why ? why : "no message");
}

/** The next batch, a released one at the end; one that is not is the caller's after an error,
 *  too. */
static frg_status take_batch(frg_table *t, struct ArrowArrayStream *stream, int64_t n_columns,
                             struct ArrowArray *next)
{
    *next = (struct ArrowArray){.release = NULL};
    const int code = stream->get_next(stream, next);
    if (code) {
        next->release = NULL;
        return producer_failed(t->ctx, stream, code);
    }
    if (!next->release) {
        return FRG_OK;
    }
    if (next->n_children != n_columns || next->length < 0 || t->n > INT64_MAX - next->length) {
        FAIL(t->ctx, E_FORMAT,
             "behind %lld rows a batch has %lld columns and %lld rows; the schema has %lld columns",
             (long long)t->n, (long long)next->n_children, (long long)next->length,
             (long long)n_columns);
    }
    t->n += next->length;
    return FRG_OK;
}

/** Takes all batches; they belong to the table from the moment they are here. */
static frg_status take_batches(frg_table *t, struct ArrowArrayStream *stream, int64_t n_columns)
{
    for (;;) {
        if (t->n_batches == t->batches_capacity) {
            TRY(GROW(t->ctx, &t->batches, 2 * t->batches_capacity + 4, "batches of a table"));
            t->batches_capacity = 2 * t->batches_capacity + 4;
        }
        struct ArrowArray *const next = &t->batches[t->n_batches];
        const frg_status status = take_batch(t, stream, n_columns, next);
        t->n_batches += next->release != NULL;
        TRY(status);
        if (!next->release) {
            return FRG_OK;
        }
    }
}

/** All batches, then the columns. */
static frg_status read_whole(arrow_read *r, frg_table *t, struct ArrowArrayStream *stream)
{
    bool lent = false;
    TRY(take_batches(t, stream, r->schema->n_children));
    for (int64_t k = 0; k < r->n_columns && t->n_batches == 1 && t->n > 0; k++) {
        lent |= lend(&r->columns[k], &t->batches[0]);
    }
    TRY(reserve(r, t->n));
    for (int64_t b = 0; b < t->n_batches; b++) {
        TRY(append(r, &t->batches[b]));
    }
    if (!lent) {
        frgi_batches_release(t);
    }
    return FRG_OK;
}

/** Batch by batch, none held while the next one is made; FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped
 *  between two. */
static frg_status read_by_batches(arrow_read *r, frg_table *t, struct ArrowArrayStream *stream)
{
    for (;;) {
        struct ArrowArray batch;
        const frg_progress p = {.solver = "table",
                                .phase = "rows",
                                .done = r->rows,
                                .residual = (double)NAN,
                                .target = (double)NAN};
        frg_status status = frgi_heartbeat(r->ctx, &p);
        if (status != FRG_OK) {
            return status;
        }
        status = take_batch(t, stream, r->schema->n_children, &batch);
        const bool more = batch.release != NULL;
        status = more && status == FRG_OK ? append(r, &batch) : status;
        if (more) {
            batch.release(&batch);
        }
        TRY(status);
        if (!more) {
            return reserve(r, r->rows);
        }
    }
}

void frgi_batches_release(frg_table *t)
{
    for (int64_t b = 0; b < t->n_batches; b++) {
        t->batches[b].release(&t->batches[b]);
    }
    t->n_batches = t->batches_capacity = 0;
    DROP(t->ctx, &t->batches);
}

static frg_status read_stream(frg_table *t, struct ArrowArrayStream *stream,
                              const struct ArrowSchema *schema, const frg_table_opts *o)
{
    if (strcmp(schema->format, "+s") != 0) {
        FAIL(t->ctx, E_FORMAT, "the Arrow stream has the type '%s'; a table is a struct ('+s')",
             schema->format);
    }
    arrow_read r = {.ctx = t->ctx, .schema = schema};
    frg_status status;
    TRY(check_names(&r, o));
    TRY_TO(done, choose_columns(&r, o));
    status = (frgi_spools(r.ctx) ? read_by_batches : read_whole)(&r, t, stream);
    if (status == FRG_OK) {
        status = add_columns(&r, t);
    }
done:
    close_columns(&r);
    return status;
}

frg_status frg_table_read_arrow(frg_table **out, frg_context *ctx, struct ArrowArrayStream *stream,
                                const frg_table_opts *o)
{
    REQUIRE(ctx, ctx && out, "frg_table_read_arrow takes a place and a context");
    *out = NULL;
    REQUIRE(ctx, stream && stream->release, "the Arrow stream is %s",
            stream ? "released already" : "NULL");
    frg_table_opts opts;
    frg_table_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(ctx, &opts, sizeof opts, o));
    frgi_run_begins(ctx);
    struct ArrowSchema schema = {.release = NULL};
    const int code = stream->get_schema(stream, &schema);
    if (code || !schema.release) {
        return producer_failed(ctx, stream, code);
    }
    frg_table *t;
    frg_status status = frg_table_create(&t, ctx, 0);
    if (status == FRG_OK) {
        status = read_stream(t, stream, &schema, &opts);
    }
    schema.release(&schema);
    if (status != FRG_OK) {
        frg_table_destroy(t);
        return status;
    }
    *out = t;
    return FRG_OK;
}
