/* table_kept.c - a table in a file as it lies in memory, for a run that goes on where it was cut
 * off.
 *
 *     head      magic, format, byte order, hashes of options and source, rows, columns; a checksum
 *     columns   each as table_bytes.c has it, and a checksum of the file up to there
 *
 * Texts are parsed, and their words numbered, once: reading this back is a copy.  Nothing is
 * believed before it was looked at, and lengths are held against that of the file.
 */
#include <string.h>

#include "fourge/checkpoint.h" /* frg_hash */
#include "io/table_bytes.h"

enum { FORMAT = 1, ORDER = 0x01020304, BLOCK = 1 << 12 };
static const char magic[8] = {'f', 'o', 'u', 'r', 'g', 'e', 'T', 'B'};

typedef struct {
    char magic[8];
    uint32_t format, order;
    uint64_t options, source;
    int64_t rows, columns;
} head;

_Static_assert(sizeof(head) == 48, "the layout of the file has no gaps");

/** A checksum of bytes in order, whatever the pieces that they come in. */
typedef struct {
    uint64_t sum;
    size_t held;
    char block[BLOCK];
} running_sum;

static void add(running_sum *s, const char *bytes, size_t count)
{
    while (count > 0) {
        const size_t room = BLOCK - s->held, take = count < room ? count : room;
        memcpy(s->block + s->held, bytes, take);
        s->held += take;
        bytes += take;
        count -= take;
        if (s->held == BLOCK) {
            s->sum = frg_hash(s->sum, s->block, BLOCK);
            s->held = 0;
        }
    }
}

static uint64_t sum_of(const running_sum *s)
{
    return frg_hash(s->sum, s->block, (int64_t)s->held);
}

/* ---- out ------------------------------------------------------------------------------------- */

typedef struct {
    frgi_writer *w;
    running_sum sum;
} out_file;

static frg_status put(void *user, const void *bytes, size_t count)
{
    out_file *const f = user;
    add(&f->sum, bytes, count);
    return frgi_writer_put(f->w, bytes, count);
}

static frg_status put_sum(out_file *f)
{
    const uint64_t sum = sum_of(&f->sum);
    return frgi_writer_put(f->w, &sum, sizeof sum);
}

/** A positive status: stopped. */
static frg_status put_all(out_file *f, const frg_table *t, frg_context *ctx, const head *h)
{
    const frgi_column_sink to = {put, f};
    TRY(put(f, h, sizeof *h));
    TRY(put_sum(f));
    frg_status stopped = FRG_OK;
    for (int64_t i = 0; i < t->n_columns && stopped == FRG_OK; i++) {
        TRY(frgi_column_put(&to, t->columns[i]));
        TRY(put_sum(f));
        stopped = frgi_stopped(ctx);
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
    out_file f = {0};
    head h = {.format = FORMAT,
              .order = ORDER,
              .options = options,
              .source = source,
              .rows = t->n,
              .columns = t->n_columns};
    memcpy(h.magic, magic, sizeof magic);
    TRY(frgi_writer_open(&f.w, ctx, path));
    const frg_status status = put_all(&f, t, ctx, &h);
    if (status != FRG_OK) {
        frgi_writer_abandon(&f.w);
        return status;
    }
    return frgi_writer_commit(&f.w);
}

/* ---- in -------------------------------------------------------------------------------------- */

typedef struct {
    frg_context *ctx;
    frgi_reader reader;
    running_sum sum;
} in_file;

static frg_status refuse(void *user, const char *what)
{
    const in_file *const f = user;
    frgi_at(f->ctx, "%s", f->reader.path);
    FAIL(f->ctx, E_CHECKPOINT, "the table in '%s' is damaged: %s", f->reader.path, what);
}

static frg_status get(void *user, void *to, size_t count)
{
    in_file *const f = user;
    size_t got;
    TRY(frgi_reader_get(&f->reader, f->ctx, to, count, &got));
    add(&f->sum, to, got);
    return got == count ? FRG_OK : refuse(f, "it is cut off");
}

static frg_status check_sum(in_file *f)
{
    const uint64_t own = sum_of(&f->sum);
    uint64_t saved = 0;
    size_t got;
    TRY(frgi_reader_get(&f->reader, f->ctx, &saved, sizeof saved, &got));
    return got == sizeof saved && saved == own ? FRG_OK : refuse(f, "a checksum differs");
}

static frg_status check_head(in_file *f, const head *h, uint64_t options, uint64_t source)
{
    frg_context *const ctx = f->ctx;
    const char *const path = f->reader.path;
    if (memcmp(h->magic, magic, sizeof magic) != 0) {
        return refuse(f, "it is none");
    }
    if (h->order != ORDER || h->format != FORMAT) {
        frgi_at(ctx, "%s", path);
        FAIL(ctx, E_MISMATCH, "the table in '%s' was written in another format or byte order",
             path);
    }
    TRY(check_sum(f));
    if (h->rows < 0 || h->columns < 0) {
        return refuse(f, "it has no size");
    }
    if (h->options != options) {
        frgi_at(ctx, "%s", path);
        FAIL(ctx, E_MISMATCH,
             "the table in '%s' was read with other options or by another version of fourge", path);
    }
    if (h->source != source) {
        frgi_at(ctx, "%s", path);
        FAIL(ctx, E_CHANGED, "the table in '%s' is of a file that has changed since", path);
    }
    return FRG_OK;
}

static frg_status check_end(in_file *f)
{
    char more;
    size_t got;
    TRY(frgi_reader_get(&f->reader, f->ctx, &more, 1, &got));
    return got == 0 ? FRG_OK : refuse(f, "it has bytes behind its end");
}

/** A positive status: stopped. */
static frg_status take_columns(in_file *f, frg_table *t, int64_t columns)
{
    const int64_t size = frgi_reader_size(&f->reader, f->ctx);
    const size_t most = size >= 0 ? (size_t)size : frgi_data_allowed(f->ctx);
    const frgi_column_source from = {f->ctx, get, refuse, f, most};
    frg_status stopped = FRG_OK;
    for (int64_t i = 0; i < columns && stopped == FRG_OK; i++) {
        TRY(frgi_column_take(&from, t));
        TRY(check_sum(f));
        stopped = frgi_stopped(f->ctx);
    }
    return stopped == FRG_OK ? check_end(f) : stopped;
}

static frg_status take_table(in_file *f, uint64_t options, uint64_t source, frg_table **out)
{
    head h;
    frg_table *t;
    TRY(get(f, &h, sizeof h));
    TRY(check_head(f, &h, options, source));
    TRY(frg_table_create(&t, f->ctx, h.rows));
    const frg_status status = take_columns(f, t, h.columns);
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
    in_file f = {.ctx = ctx};
    TRY(frgi_reader_open(&f.reader, ctx, path));
    const frg_status status = take_table(&f, options, source, out);
    frgi_reader_close(&f.reader, ctx);
    return status;
}
