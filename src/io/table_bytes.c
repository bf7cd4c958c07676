/* table_bytes.c - a column as bytes that another process reads, and what comes of such bytes. */
#include <string.h>

#include "io/table_bytes.h"

typedef struct {
    int32_t kind, ordered, labelled, name_bytes;
    int64_t n_labels, label_bytes;
} column_head;

enum { NAME_MOST = 1 << 20 };

static size_t value_bytes(int32_t kind)
{
    return kind == FRG_NUMBER || kind == FRG_INTEGER ? 8 : 4;
}

frg_status frgi_column_put(const frgi_column_sink *to, const frg_column *column)
{
    column_head h = {.kind = (int32_t)column->kind,
                     .ordered = column->ordered,
                     .labelled = column->labelled,
                     .name_bytes = (int32_t)strlen(column->name),
                     .n_labels = column->n_labels};
    for (int64_t i = 0; i < column->n_labels; i++) {
        h.label_bytes += (int64_t)strlen(column->labels[i]) + 1;
    }
    const void *const values = column->numbers    ? (const void *)column->numbers
                               : column->integers ? (const void *)column->integers
                                                  : (const void *)column->codes;
    TRY(to->put(to->user, &h, sizeof h));
    TRY(to->put(to->user, column->name, (size_t)h.name_bytes));
    TRY(to->put(to->user, values, (size_t)column->n * value_bytes(h.kind)));
    for (int64_t i = 0; i < column->n_labels; i++) {
        TRY(to->put(to->user, column->labels[i], strlen(column->labels[i]) + 1));
    }
    return FRG_OK;
}

static frg_status check_head(const frgi_column_source *from, const column_head *h)
{
    const bool category = h->kind == FRG_CATEGORY;
    if (h->kind < FRG_NUMBER || h->kind > FRG_CATEGORY || h->ordered < 0 || h->ordered > 1 ||
        h->labelled < 0 || h->labelled > 1) {
        return from->refuse(from->user, "a column is of no kind");
    }
    if (h->name_bytes < 0 || h->name_bytes > NAME_MOST) {
        return from->refuse(from->user, "a name is too long");
    }
    if (h->n_labels < 0 || h->n_labels > INT32_MAX || h->label_bytes < h->n_labels ||
        (!category && h->label_bytes > 0)) {
        return from->refuse(from->user, "labels are of no length");
    }
    if ((size_t)h->label_bytes > from->most) {
        return from->refuse(from->user, "it tells of more labels than there can be");
    }
    return FRG_OK;
}

static frg_status take_name(const frgi_column_source *from, const column_head *h,
                            frgi_column_memory *m)
{
    TRY(NEW(from->ctx, &m->name, h->name_bytes + 1, "column names"));
    TRY(from->get(from->user, m->name, (size_t)h->name_bytes));
    m->name[h->name_bytes] = '\0';
    return memchr(m->name, '\0', (size_t)h->name_bytes)
               ? from->refuse(from->user, "a name has a NUL")
               : FRG_OK;
}

/** Pointers to labels that end one after another, the last at the end. */
static frg_status take_labels(const frgi_column_source *from, const column_head *h,
                              frgi_column_memory *m)
{
    TRY(NEW(from->ctx, &m->label_text, h->label_bytes, "labels of a column"));
    TRY(NEW(from->ctx, &m->labels, h->n_labels, "labels of a column"));
    TRY(from->get(from->user, m->label_text, (size_t)h->label_bytes));
    const char *next = m->label_text, *const end = next + h->label_bytes;
    for (int64_t i = 0; i < h->n_labels; i++) {
        m->labels[i] = next;
        const char *const nul = next < end ? memchr(next, '\0', (size_t)(end - next)) : NULL;
        if (!nul) {
            return from->refuse(from->user, "labels do not end");
        }
        next = nul + 1;
    }
    return next == end ? FRG_OK : from->refuse(from->user, "labels are too long");
}

/** Missing values of codes, which have to be of labels. */
static frg_status check_codes(const frgi_column_source *from, const int32_t *codes, int64_t n,
                              int64_t labels, int64_t *missing)
{
    for (int64_t i = 0; i < n; i++) {
        if (codes[i] < FRG_MISSING_CODE || codes[i] >= labels) {
            return from->refuse(from->user, "a code has no label");
        }
        *missing += codes[i] == FRG_MISSING_CODE;
    }
    return FRG_OK;
}

static frg_status take_values(const frgi_column_source *from, const column_head *h, int64_t n,
                              frgi_column_memory *m, int64_t *missing)
{
    const size_t bytes = frgi_mul((size_t)n, value_bytes(h->kind));
    if (bytes > from->most) {
        return from->refuse(from->user, "it tells of more rows than there can be");
    }
    TRY(frgi_alloc(from->ctx, &m->values, bytes, "a column"));
    TRY(from->get(from->user, m->values, bytes));
    const double *const numbers = m->values;
    const int64_t *const integers = m->values;
    if (h->kind == FRG_CATEGORY || h->kind == FRG_BOOL) {
        return check_codes(from, m->values, n, h->kind == FRG_BOOL ? 2 : h->n_labels, missing);
    }
    for (int64_t i = 0; i < n; i++) {
        *missing +=
            h->kind == FRG_NUMBER ? numbers[i] != numbers[i] : integers[i] == FRG_MISSING_INTEGER;
    }
    return FRG_OK;
}

frg_status frgi_column_take(const frgi_column_source *from, frg_table *t)
{
    column_head h;
    int64_t missing = 0;
    TRY(from->get(from->user, &h, sizeof h));
    TRY(check_head(from, &h));
    frgi_column_memory m = {.ordered = h.ordered, .labelled = h.labelled};
    frg_status status = take_name(from, &h, &m);
    if (status == FRG_OK) {
        status = take_values(from, &h, t->n, &m, &missing);
    }
    if (status == FRG_OK && h.kind == FRG_CATEGORY) {
        status = take_labels(from, &h, &m);
    }
    if (status == FRG_OK) {
        status = frgi_table_adopt(t, m, (frg_column_kind)h.kind, missing, h.n_labels);
    }
    if (status != FRG_OK) {
        frgi_column_memory_free(from->ctx, &m);
    }
    return status;
}
