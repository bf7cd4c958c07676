/* table.c - named columns of equal length, and which of a file's columns are asked for. */
#include <stdio.h>
#include <string.h>

#include "fourge/checkpoint.h" /* frg_hash */
#include "io/io.h"

enum { COLUMNS_LEAST = 8 };

/* ---- life ------------------------------------------------------------------------------------ */

frg_status frg_table_create(frg_table **out, frg_context *ctx, int64_t n)
{
    REQUIRE(ctx, ctx && out, "frg_table_create takes a place and a context");
    *out = NULL;
    REQUIRE(ctx, n >= 0, "a table has n >= 0 rows, got %lld", (long long)n);
    frg_table *t;
    TRY(NEW(ctx, &t, 1, "table"));
    *t = (frg_table){.ctx = ctx, .n = n};
    *out = t;
    return FRG_OK;
}

void frgi_column_memory_free(frg_context *ctx, frgi_column_memory *m)
{
    DROP(ctx, &m->name);
    if (!m->lent) {
        DROP(ctx, &m->values);
    }
    DROP(ctx, &m->label_text);
    DROP(ctx, &m->labels);
}

void frg_table_destroy(frg_table *t)
{
    if (!t) {
        return;
    }
    for (int64_t i = 0; i < t->n_columns; i++) {
        frgi_column_memory_free(t->ctx, &t->memory[i]);
        DROP(t->ctx, &t->columns[i]);
    }
    frgi_batches_release(t);
    frgi_unmap(t->ctx, &t->file);
    DROP(t->ctx, &t->columns);
    DROP(t->ctx, &t->memory);
    DROP(t->ctx, &t->index);
    DROP(t->ctx, &t);
}

/** The place in the index of a column of that name: the first such, or else a free one.  capacity
 *  is a power of two. */
static int64_t place_of(const frg_table *t, const char *name)
{
    const int64_t places = 4 * t->capacity;
    int64_t at = (int64_t)(frg_hash(0, name, (int64_t)strlen(name)) & (uint64_t)(places - 1));
    while (t->index[at] > 0 && strcmp(t->columns[t->index[at] - 1]->name, name) != 0) {
        at = (at + 1) & (places - 1);
    }
    return at;
}

/** Enters column i; a later one of the same name is not found. */
static void enter(frg_table *t, int64_t i)
{
    const int64_t at = place_of(t, t->columns[i]->name);
    t->index[at] = t->index[at] > 0 ? t->index[at] : i + 1;
}

static void enter_all(frg_table *t)
{
    memset(t->index, 0, (size_t)(4 * t->capacity) * sizeof *t->index);
    for (int64_t i = 0; i < t->n_columns; i++) {
        enter(t, i);
    }
}

frg_status frgi_table_adopt(frg_table *t, frgi_column_memory memory, frg_column_kind kind,
                            int64_t n_missing, int64_t n_labels)
{
    frg_column *column;
    if (t->n_columns == t->capacity) {
        const int64_t capacity = t->capacity ? 2 * t->capacity : COLUMNS_LEAST;
        TRY(GROW(t->ctx, &t->columns, capacity, "columns of a table"));
        TRY(GROW(t->ctx, &t->memory, capacity, "columns of a table"));
        TRY(GROW(t->ctx, &t->index, 4 * capacity, "columns of a table"));
        t->capacity = capacity;
        enter_all(t);
    }
    TRY(NEW(t->ctx, &column, 1, "a column of a table"));
    *column = (frg_column){
        .name = memory.name,
        .kind = kind,
        .n = t->n,
        .n_missing = n_missing,
        .numbers = kind == FRG_NUMBER ? memory.values : NULL,
        .integers = kind == FRG_INTEGER ? memory.values : NULL,
        .codes = kind == FRG_BOOL || kind == FRG_CATEGORY ? memory.values : NULL,
        .labels = memory.labels,
        .n_labels = n_labels,
        .ordered = memory.ordered,
        .labelled = memory.labelled,
    };
    t->memory[t->n_columns] = memory;
    t->columns[t->n_columns++] = column;
    enter(t, t->n_columns - 1);
    return FRG_OK;
}

frg_status frgi_table_borrow(frg_table **out, frg_context *ctx, const frg_table *from)
{
    frg_table *t;
    frg_status status = FRG_OK;
    TRY(frg_table_create(&t, ctx, from->n));
    for (int64_t i = 0; i < from->n_columns; i++) {
        const frg_column *const c = from->columns[i];
        frgi_column_memory m = {.values = from->memory[i].values,
                                .lent = true,
                                .ordered = c->ordered,
                                .labelled = c->labelled};
        TRY_TO(failed, frgi_strdup(ctx, &m.name, c->name, strlen(c->name)));
        status = frgi_table_adopt(t, m, c->kind, c->n_missing, c->n_labels);
        if (status < 0) {
            DROP(ctx, &m.name);
            goto failed;
        }
        t->columns[i]->labels = c->labels;
    }
    *out = t;
    return FRG_OK;
failed:
    frg_table_destroy(t);
    return status;
}

/* ---- columns of the caller's arrays ---------------------------------------------------------- */

static frg_status copy_column(frg_table *t, const char *name, const void *values, size_t size,
                              frgi_column_memory *m)
{
    REQUIRE(t->ctx, name && *name, "a column needs a name");
    REQUIRE(t->ctx, values || t->n == 0, "column '%s': values is NULL", name);
    REQUIRE(t->ctx, !frg_table_find(t, name), "the table has a column '%s' already", name);
    TRY(frgi_alloc(t->ctx, &m->values, frgi_mul((size_t)t->n, size), name));
    if (t->n > 0) {
        memcpy(m->values, values, (size_t)t->n * size);
    }
    return frgi_strdup(t->ctx, &m->name, name, strlen(name));
}

static frg_status finish_column(frg_table *t, frgi_column_memory *m, frg_column_kind kind,
                                int64_t n_missing, int64_t n_labels, frg_status status)
{
    if (status == FRG_OK) {
        status = frgi_table_adopt(t, *m, kind, n_missing, n_labels);
    }
    if (status < 0) {
        frgi_column_memory_free(t->ctx, m);
    }
    return status;
}

frg_status frg_table_add_numbers(frg_table *t, const char *name, const double *values)
{
    if (!t) {
        return FRG_BAD_ARG;
    }
    frgi_column_memory m = {0};
    const frg_status status = copy_column(t, name, values, sizeof *values, &m);
    int64_t missing = 0;
    for (int64_t i = 0; status == FRG_OK && i < t->n; i++) {
        missing += values[i] != values[i];
    }
    return finish_column(t, &m, FRG_NUMBER, missing, 0, status);
}

frg_status frg_table_add_integers(frg_table *t, const char *name, const int64_t *values)
{
    if (!t) {
        return FRG_BAD_ARG;
    }
    frgi_column_memory m = {0};
    const frg_status status = copy_column(t, name, values, sizeof *values, &m);
    int64_t missing = 0;
    for (int64_t i = 0; status == FRG_OK && i < t->n; i++) {
        missing += values[i] == FRG_MISSING_INTEGER;
    }
    return finish_column(t, &m, FRG_INTEGER, missing, 0, status);
}

/** The labels one after another in one block, and pointers to them. */
static frg_status copy_labels(frg_context *ctx, const char *name, const char *const *labels,
                              int64_t n_labels, frgi_column_memory *m)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < n_labels; i++) {
        REQUIRE(ctx, labels[i], "column '%s': label %lld is NULL", name, (long long)i);
        bytes = frgi_add(bytes, strlen(labels[i]) + 1);
    }
    TRY(NEW(ctx, &m->labels, n_labels, "labels of a column"));
    TRY(NEW(ctx, &m->label_text, bytes, "labels of a column"));
    char *to = m->label_text;
    for (int64_t i = 0; i < n_labels; i++) {
        const size_t n = strlen(labels[i]) + 1;
        memcpy(to, labels[i], n);
        m->labels[i] = to;
        to += n;
    }
    return FRG_OK;
}

static frg_status check_codes(const frg_table *t, const char *name, const int32_t *codes,
                              int64_t n_labels, int64_t *missing)
{
    *missing = 0;
    for (int64_t i = 0; i < t->n; i++) {
        REQUIRE(t->ctx, codes[i] >= FRG_MISSING_CODE && codes[i] < n_labels,
                "column '%s', row %lld: code %d is not -1 .. %lld", name, (long long)i + 1,
                (int)codes[i], (long long)n_labels - 1);
        *missing += codes[i] == FRG_MISSING_CODE;
    }
    return FRG_OK;
}

frg_status frg_table_add_codes(frg_table *t, const char *name, const int32_t *codes,
                               const char *const *labels, int64_t n_labels)
{
    if (!t) {
        return FRG_BAD_ARG;
    }
    REQUIRE(t->ctx, n_labels >= 0 && (labels || n_labels == 0), "n_labels is %lld and labels is %s",
            (long long)n_labels, labels ? "given" : "NULL");
    frgi_column_memory m = {.ordered = true};
    int64_t missing = 0;
    frg_status status = copy_column(t, name, codes, sizeof *codes, &m);
    if (status == FRG_OK) {
        status = check_codes(t, name, codes, n_labels, &missing);
    }
    if (status == FRG_OK) {
        status = copy_labels(t->ctx, name, labels, n_labels, &m);
    }
    return finish_column(t, &m, FRG_CATEGORY, missing, n_labels, status);
}

frg_status frg_table_add_bools(frg_table *t, const char *name, const int32_t *values)
{
    if (!t) {
        return FRG_BAD_ARG;
    }
    frgi_column_memory m = {0};
    int64_t missing = 0;
    frg_status status = copy_column(t, name, values, sizeof *values, &m);
    if (status == FRG_OK) {
        status = check_codes(t, name, values, 2, &missing);
    }
    return finish_column(t, &m, FRG_BOOL, missing, 0, status);
}

/* ---- looking --------------------------------------------------------------------------------- */

int64_t frg_table_rows(const frg_table *t)
{
    return t ? t->n : 0;
}

int64_t frg_table_columns(const frg_table *t)
{
    return t ? t->n_columns : 0;
}

const frg_column *frg_table_column(const frg_table *t, int64_t i)
{
    if (!t) {
        return NULL;
    }
    return i >= 0 && i < t->n_columns ? t->columns[i] : NULL;
}

const frg_column *frg_table_find(const frg_table *t, const char *name)
{
    if (!t) {
        return NULL;
    }
    const int64_t i = t->n_columns > 0 ? t->index[place_of(t, name)] : 0;
    return i > 0 ? t->columns[i - 1] : NULL;
}

frg_status frgi_table_free_name(const frg_table *t, const char *wanted, char **name)
{
    frgi_text text = {0};
    frg_status status = frgi_text_printf(t->ctx, &text, "%s", wanted);
    while (status >= 0 && frg_table_find(t, text.text)) {
        status = frgi_text_printf(t->ctx, &text, "_");
    }
    *name = text.text;
    return status;
}

const char *frg_table_nearest(const frg_table *t, const char *name)
{
    if (!t) {
        return NULL;
    }
    const char *best = NULL;
    for (int64_t i = 0; i < t->n_columns; i++) { /* against the best so far: nothing is allocated */
        const char *const pair[2] = {best ? best : t->columns[i]->name, t->columns[i]->name};
        const char *const near = frgi_nearest(name, pair, 2);
        best = near ? near : best;
    }
    return best;
}

/* ---- which columns are asked for ------------------------------------------------------------- */

bool frgi_column_is_wanted(const frg_table_opts *o, const char *name)
{
    bool wanted = o->columns == NULL;
    for (int64_t i = 0; !wanted && i < o->n_columns; i++) {
        wanted = strcmp(o->columns[i], name) == 0;
    }
    return wanted;
}

static const char *name_of_list(const void *names, int64_t i)
{
    return ((const char *const *)names)[i];
}

frg_status frgi_columns_exist(frg_context *ctx, const frg_table_opts *o, const char *source,
                              const char *const *names, int64_t n)
{
    for (int64_t i = 0; o->columns && i < o->n_columns; i++) {
        int64_t at = 0;
        while (at < n && strcmp(names[at], o->columns[i]) != 0) {
            at++;
        }
        if (at == n) {
            char advice[FRGI_ADVICE], whose[400] = "the data have";
            if (source) {
                snprintf(whose, sizeof whose, "'%.380s' has", source);
            }
            frgi_at(ctx, "%s", source ? source : "the data");
            FAIL(ctx, E_COLUMN, "%s no column '%s'%s", whose, o->columns[i],
                 frgi_column_advice(advice, frgi_nearest(o->columns[i], names, n), n, name_of_list,
                                    names));
        }
    }
    return FRG_OK;
}

frg_status frgi_table_select(frg_table *t, const frg_table_opts *o, const char *source)
{
    if (!o->columns) {
        return FRG_OK;
    }
    const char **names;
    TRY(NEW(t->ctx, &names, t->n_columns, "column names"));
    for (int64_t i = 0; i < t->n_columns; i++) {
        names[i] = t->columns[i]->name;
    }
    const frg_status status = frgi_columns_exist(t->ctx, o, source, names, t->n_columns);
    DROP(t->ctx, &names);
    TRY(status);
    int64_t kept = 0;
    for (int64_t i = 0; i < t->n_columns; i++) {
        if (frgi_column_is_wanted(o, t->columns[i]->name)) {
            t->columns[kept] = t->columns[i];
            t->memory[kept++] = t->memory[i];
        } else {
            frgi_column_memory_free(t->ctx, &t->memory[i]);
            DROP(t->ctx, &t->columns[i]);
        }
    }
    t->n_columns = kept;
    if (t->index) {
        enter_all(t);
    }
    return FRG_OK;
}
