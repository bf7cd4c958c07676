/* table_kept.c - a table in a file as it lies in memory, for a run that goes on where it was cut
 * off.
 *
 *     head      core/kept_file.h; the sizes are rows and columns
 *     columns   each as table_bytes.c has it, and a checksum of the file up to there
 *
 * Texts are parsed, and their words numbered, once: reading this back is a copy.
 */
#include <string.h>

#include "core/kept_file.h"
#include "io/table_bytes.h"

static const frgi_keep_kind kind = {"fourgeTB", "table"};

/* ---- out ------------------------------------------------------------------------------------- */

static frg_status count(void *user, const void *bytes, size_t more)
{
    (void)bytes;
    size_t *const total = user;
    *total = frgi_add(*total, more);
    return FRG_OK;
}

size_t frg_table_save_bytes(const frg_table *t)
{
    size_t total = frgi_keep_bytes(t ? (int)t->n_columns : 0);
    const frgi_column_sink to = {count, &total};
    for (int64_t i = 0; t && i < t->n_columns; i++) {
        const frg_status counted = frgi_column_put(&to, t->columns[i]);
        (void)counted; /* a count does not fail */
    }
    return total;
}

/** A positive status: stopped. */
static frg_status put_columns(frgi_keep_out *f, const frg_table *t)
{
    const frgi_column_sink to = {frgi_keep_put, f};
    frg_status stopped = FRG_OK;
    for (int64_t i = 0; i < t->n_columns && stopped == FRG_OK; i++) {
        TRY(frgi_column_put(&to, t->columns[i]));
        TRY(frgi_keep_put_sum(f));
        stopped = frgi_stopped(f->ctx);
    }
    return stopped;
}

frg_status frg_table_save(const frg_table *t, frg_context *ctx, const char *path, uint64_t options,
                          uint64_t source)
{
    if (!ctx) {
        return FRG_BAD_ARG;
    }
    REQUIRE(ctx, t && path && strcmp(path, "-") != 0,
            "frg_table_save takes a table and the path of a file");
    frgi_keep_out f;
    const frgi_keep_head h = {options, source, {t->n, t->n_columns}};
    TRY(frgi_keep_room(ctx, path, frg_table_save_bytes(t)));
    TRY(frgi_keep_create(&f, ctx, path, &kind, &h));
    return frgi_keep_end(&f, put_columns(&f, t));
}

/* ---- in -------------------------------------------------------------------------------------- */

/** A positive status: stopped. */
static frg_status take_columns(frgi_keep_in *f, frg_table *t, int64_t columns)
{
    const frgi_column_source from = {f->ctx, frgi_keep_get, frgi_keep_refuse, f, frgi_keep_most(f)};
    frg_status stopped = FRG_OK;
    for (int64_t i = 0; i < columns && stopped == FRG_OK; i++) {
        TRY(frgi_column_take(&from, t));
        TRY(frgi_keep_check_sum(f));
        stopped = frgi_stopped(f->ctx);
    }
    return stopped == FRG_OK ? frgi_keep_check_end(f) : stopped;
}

static frg_status take_table(frgi_keep_in *f, const frgi_keep_head *h, frg_table **out)
{
    frg_table *t;
    TRY(frg_table_create(&t, f->ctx, h->sizes[0]));
    const frg_status status = take_columns(f, t, h->sizes[1]);
    if (status != FRG_OK) {
        frg_table_destroy(t);
        return status;
    }
    *out = t;
    return FRG_OK;
}

frg_status frg_table_load(frg_table **out, frg_context *ctx, const char *path, uint64_t options,
                          uint64_t source)
{
    if (!ctx) {
        return FRG_BAD_ARG;
    }
    REQUIRE(ctx, out && path, "frg_table_load takes a place and a path");
    *out = NULL;
    frgi_run_begins(ctx);
    frgi_keep_in f;
    frgi_keep_head h = {.options = options, .source = source};
    TRY(frgi_keep_open(&f, ctx, path, &kind, &h));
    const frg_status status = take_table(&f, &h, out);
    frgi_keep_close(&f);
    return status;
}
