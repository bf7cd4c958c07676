/* kept_file.c - files that a run keeps for a later one; see kept_file.h.
 *
 * Nothing of a file is believed before it was looked at: the head against what the run is, lengths
 * against that of the file (by who reads the pieces), and each piece against its checksum.
 */
#include "core/kept_file.h"

#include <string.h>

#include "core/checkpoint_bytes.h"

enum { FORMAT = 1, ORDER = 0x01020304 };

/** As it stands in the file. */
typedef struct {
    char magic[8];
    uint32_t format, order;
    uint64_t options, source;
    int64_t sizes[2];
} head;

_Static_assert(sizeof(head) == 48, "the layout of the file has no gaps");

static void add(frgi_running_sum *s, const char *bytes, size_t count)
{
    while (count > 0) {
        const size_t space = sizeof s->block - s->held, take = count < space ? count : space;
        memcpy(s->block + s->held, bytes, take);
        s->held += take;
        bytes += take;
        count -= take;
        if (s->held == sizeof s->block) {
            s->sum = frg_hash(s->sum, s->block, (int64_t)s->held);
            s->held = 0;
        }
    }
}

static uint64_t sum_of(const frgi_running_sum *s)
{
    return frg_hash(s->sum, s->block, (int64_t)s->held);
}

/* ---- out ------------------------------------------------------------------------------------- */

size_t frgi_keep_bytes(int checksums)
{
    return sizeof(head) + (size_t)(1 + checksums) * sizeof(uint64_t);
}

frg_status frgi_keep_room(frg_context *ctx, const char *path, size_t bytes)
{
    size_t available;
    if (!frgi_free_space_beside(path, &available)) {
        return FRG_OK; /* who writes will see */
    }
    frgi_log(ctx, 1, "'%s' takes %zu bytes, its folder has room for %zu", path, bytes, available);
    if (bytes > available) {
        frgi_at(ctx, "%s", path);
        FAIL(ctx, E_ROOM, "'%s' would take %zu bytes, and its folder has room for %zu", path, bytes,
             available);
    }
    return FRG_OK;
}

frg_status frgi_keep_put(void *file, const void *bytes, size_t count)
{
    frgi_keep_out *const f = file;
    add(&f->sum, bytes, count);
    return frgi_writer_put(f->w, bytes, count);
}

frg_status frgi_keep_put_sum(frgi_keep_out *f)
{
    const uint64_t sum = sum_of(&f->sum);
    return frgi_writer_put(f->w, &sum, sizeof sum);
}

frg_status frgi_keep_create(frgi_keep_out *f, frg_context *ctx, const char *path,
                            const frgi_keep_kind *kind, const frgi_keep_head *h)
{
    head first = {.format = FORMAT,
                  .order = ORDER,
                  .options = h->options,
                  .source = h->source,
                  .sizes = {h->sizes[0], h->sizes[1]}};
    memcpy(first.magic, kind->magic, sizeof first.magic);
    *f = (frgi_keep_out){.ctx = ctx};
    TRY(frgi_writer_open(&f->w, ctx, path));
    frg_status status = frgi_keep_put(f, &first, sizeof first);
    status = status < 0 ? status : frgi_keep_put_sum(f);
    return status < 0 ? frgi_keep_end(f, status) : FRG_OK;
}

frg_status frgi_keep_end(frgi_keep_out *f, frg_status status)
{
    if (status != FRG_OK) {
        frgi_writer_abandon(&f->w);
        return status;
    }
    return frgi_writer_commit(&f->w);
}

/* ---- in -------------------------------------------------------------------------------------- */

frg_status frgi_keep_refuse(void *file, const char *what)
{
    const frgi_keep_in *const f = file;
    frgi_at(f->ctx, "%s", f->reader.path);
    FAIL(f->ctx, E_CHECKPOINT, "the %s in '%s' is damaged: %s", f->kind->what, f->reader.path,
         what);
}

frg_status frgi_keep_get(void *file, void *to, size_t count)
{
    frgi_keep_in *const f = file;
    size_t got;
    TRY(frgi_reader_get(&f->reader, f->ctx, to, count, &got));
    add(&f->sum, to, got);
    return got == count ? FRG_OK : frgi_keep_refuse(f, "it is cut off");
}

frg_status frgi_keep_check_sum(frgi_keep_in *f)
{
    const uint64_t own = sum_of(&f->sum);
    uint64_t saved = 0;
    size_t got;
    TRY(frgi_reader_get(&f->reader, f->ctx, &saved, sizeof saved, &got));
    return got == sizeof saved && saved == own ? FRG_OK : frgi_keep_refuse(f, "a checksum differs");
}

frg_status frgi_keep_check_end(frgi_keep_in *f)
{
    char more;
    size_t got;
    TRY(frgi_reader_get(&f->reader, f->ctx, &more, 1, &got));
    return got == 0 ? FRG_OK : frgi_keep_refuse(f, "it has bytes behind its end");
}

size_t frgi_keep_most(const frgi_keep_in *f)
{
    const int64_t size = frgi_reader_size(&f->reader, f->ctx);
    return size >= 0 ? (size_t)size : frgi_data_allowed(f->ctx);
}

static frg_status check_head(frgi_keep_in *f, frgi_keep_head *h)
{
    const char *const path = f->reader.path, *const what = f->kind->what;
    head first;
    TRY(frgi_keep_get(f, &first, sizeof first));
    if (memcmp(first.magic, f->kind->magic, sizeof first.magic) != 0) {
        return frgi_keep_refuse(f, "it is none");
    }
    if (first.order != ORDER || first.format != FORMAT) {
        frgi_at(f->ctx, "%s", path);
        FAIL(f->ctx, E_MISMATCH, "the %s in '%s' was written in another format or byte order", what,
             path);
    }
    TRY(frgi_keep_check_sum(f));
    if (first.sizes[0] < 0 || first.sizes[1] < 0) {
        return frgi_keep_refuse(f, "it has no size");
    }
    if (first.options != h->options) {
        frgi_at(f->ctx, "%s", path);
        FAIL(f->ctx, E_MISMATCH,
             "the %s in '%s' is of other options or of another version of fourge", what, path);
    }
    if (first.source != h->source) {
        frgi_at(f->ctx, "%s", path);
        FAIL(f->ctx, E_CHANGED, "the %s in '%s' is of a file that has changed since", what, path);
    }
    memcpy(h->sizes, first.sizes, sizeof h->sizes);
    return FRG_OK;
}

frg_status frgi_keep_open(frgi_keep_in *f, frg_context *ctx, const char *path,
                          const frgi_keep_kind *kind, frgi_keep_head *h)
{
    *f = (frgi_keep_in){.ctx = ctx, .kind = kind};
    TRY(frgi_reader_open(&f->reader, ctx, path));
    const frg_status status = check_head(f, h);
    if (status < 0) {
        frgi_keep_close(f);
    }
    return status;
}

void frgi_keep_close(frgi_keep_in *f)
{
    frgi_reader_close(&f->reader, f->ctx);
}

frg_status frgi_keep_or_anew(frg_context *ctx, frg_status status)
{
    if (status != FRG_BAD_DATA && status != FRG_MISMATCH) {
        return status;
    }
    frgi_warn(ctx, W_KEPT, "%s: it was made anew", frg_message(ctx));
    return FRG_OK;
}
