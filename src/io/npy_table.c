/* npy_table.c - arrays as columns of a table: one axis is a column, two are rows and columns. */
#include <string.h>

#include "io/npy.h"

/** Copies n elements, `step` apart from `first` on, as int64 or double. */
static void gather_integers(const frg_array *v, int64_t first, int64_t step, int64_t n,
                            int64_t *out)
{
    const char *const base = frgi_array_base(v);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = first + i * step;
        out[i] = v->dtype == FRG_I32 ? ((const int32_t *)(const void *)base)[at]
                                     : ((const int64_t *)(const void *)base)[at];
    }
}

static void gather_numbers(const frg_array *v, int64_t first, int64_t step, int64_t n, double *out)
{
    const char *const base = frgi_array_base(v);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = first + i * step;
        out[i] = v->dtype == FRG_F32 ? (double)((const float *)(const void *)base)[at]
                                     : ((const double *)(const void *)base)[at];
    }
}

/** Missing values among rows begin .. end-1. */
static int64_t missing_within(const frgi_column_memory *m, frg_column_kind kind, int64_t begin,
                              int64_t end)
{
    int64_t missing = 0;
    for (int64_t i = begin; kind == FRG_NUMBER && i < end; i++) {
        missing += ((const double *)m->values)[i] != ((const double *)m->values)[i];
    }
    for (int64_t i = begin; kind == FRG_INTEGER && i < end; i++) {
        missing += ((const int64_t *)m->values)[i] == FRG_MISSING_INTEGER;
    }
    return missing;
}

/** Ends early where the run was stopped: who reads asks for that at the end. */
static int64_t count_missing(frg_context *ctx, const frgi_column_memory *m, frg_column_kind kind,
                             int64_t n)
{
    enum { PARTS = 64, STRETCH = 1 << 18 };
    int64_t missing[PARTS] = {0}, total = 0;
    frgi_pass_begins(ctx, "table", "missing values", n * (int64_t)sizeof(double));
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(ctx, n))
    for (int64_t q = 0; q < PARTS; q++) {
        const int64_t last = (q + 1) * n / PARTS;
        for (int64_t begin = q * n / PARTS; begin < last && frgi_stopped(ctx) == FRG_OK;
             begin += STRETCH) {
            const int64_t end = last - begin < STRETCH ? last : begin + STRETCH;
            missing[q] += missing_within(m, kind, begin, end);
            frgi_pass_did(ctx, (end - begin) * (int64_t)sizeof(double));
        }
    }
    for (int q = 0; q < PARTS; q++) {
        total += missing[q];
    }
    return total;
}

/** The values of one column; an array that is one column of float64 or int64 hands over its
 *  memory, and a mapped file lends what lies in it as a column does. */
static frg_status take_values(frg_context *ctx, frg_npy *a, int64_t column, frg_column_kind kind,
                              int64_t n, frgi_column_memory *m)
{
    const frg_array *const v = &a->view;
    const int64_t first = v->ndim == 2 ? column * v->stride[1] : 0;
    const bool as_it_is = !a->is_bool && (v->dtype == FRG_F64 || v->dtype == FRG_I64);
    if (a->file && as_it_is && v->stride[0] == 1) {
        m->values = (double *)a->data + first; /* of 8 bytes, as int64 */
        m->lent = true;
        return FRG_OK;
    }
    if (v->ndim == 1 && as_it_is) {
        m->values = a->data;
        a->data = NULL;
        return FRG_OK;
    }
    const size_t bytes = kind == FRG_BOOL ? sizeof(int32_t) : sizeof(double);
    TRY(frgi_alloc(ctx, &m->values, frgi_mul((size_t)n, bytes), "column"));
    if (kind == FRG_BOOL) {
        const int64_t *const from = (const int64_t *)(const void *)frgi_array_base(v);
        for (int64_t i = 0; i < n; i++) {
            ((int32_t *)m->values)[i] = (int32_t)from[first + i * v->stride[0]];
        }
    } else if (kind == FRG_INTEGER) {
        gather_integers(v, first, v->stride[0], n, m->values);
    } else {
        gather_numbers(v, first, v->stride[0], n, m->values);
    }
    return FRG_OK;
}

static frg_status add_column(frg_table *t, frg_npy *a, int64_t column, const char *single,
                             const char *stem, const char *name)
{
    const frg_dtype d = a->view.dtype;
    const frg_column_kind kind = a->is_bool                     ? FRG_BOOL
                                 : d == FRG_F64 || d == FRG_F32 ? FRG_NUMBER
                                                                : FRG_INTEGER;
    frgi_text text = {0};
    frgi_column_memory m = {0};
    frg_status status =
        a->view.ndim == 1 ? frgi_text_append(t->ctx, &text, single, strlen(single))
                          : frgi_text_printf(t->ctx, &text, "%s%lld", stem, (long long)column + 1);
    m.name = text.text;
    if (status == FRG_OK && frg_table_find(t, m.name)) {
        frgi_at(t->ctx, "%s", name);
        status = frgi_fail(t->ctx, E_FORMAT, __FILE__, __LINE__, "'%s' gives two columns '%s'",
                           name, m.name);
    }
    if (status == FRG_OK) {
        status = take_values(t->ctx, a, column, kind, t->n, &m);
    }
    if (status == FRG_OK) {
        status = frgi_table_adopt(t, m, kind, count_missing(t->ctx, &m, kind, t->n), 0);
    }
    if (status < 0) {
        frgi_column_memory_free(t->ctx, &m);
    }
    return status;
}

static frg_status add_columns(frg_table **t, frg_context *ctx, frg_npy *a, const char *single,
                              const char *stem, const char *name)
{
    const frg_array *const v = &a->view;
    if (v->ndim < 1 || v->ndim > 2) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_FORMAT, "'%s' has %d axes; a table takes arrays of one or two", name, v->ndim);
    }
    if (*t && (*t)->n != v->shape[0]) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_FORMAT, "'%s': the array '%s' has %lld rows, those before it have %lld", name,
             single, (long long)v->shape[0], (long long)(*t)->n);
    }
    if (!*t) {
        TRY(frg_table_create(t, ctx, v->shape[0]));
    }
    const int64_t columns = v->ndim == 1 ? 1 : v->shape[1];
    for (int64_t c = 0; c < columns; c++) {
        TRY(add_column(*t, a, c, single, stem, name));
    }
    if (a->file && columns > 0 && (*t)->memory[(*t)->n_columns - 1].lent) {
        (*t)->file = a->file; /* which it has no other of: archives are not mapped */
        a->file = NULL;
        a->data = NULL;
    }
    return FRG_OK;
}

frg_status frgi_npy_to_columns(frg_table **t, frg_context *ctx, frg_npy *a, const char *single,
                               const char *stem, const char *name)
{
    const frg_status status = add_columns(t, ctx, a, single, stem, name);
    frg_npy_destroy(a);
    return status;
}
