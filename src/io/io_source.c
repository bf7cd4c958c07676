/* io_source.c - bytes in order from a file, a pipe, memory, or a gzip stream in any of them.
 *
 * The first 64 KB are read when the source is opened, so that its kind can be seen before it is
 * consumed. Plain files are then read straight into the caller's memory.  A gzip stream (RFC 1952)
 * is a sequence of members, each with its CRC, which zlib checks; zeros after the last one
 * (padding) are passed over.
 */
#include <string.h>
#include <zlib.h>

#include "io/io.h"

enum {
    HEAD = 1 << 16,
    PIECE = 8 << 20,      /* read between two questions whether to stop */
    GZIP_WINDOW = 15 + 16 /* the largest window, with gzip's frame */
};

struct frgi_source {
    frg_context *ctx;
    const frgi_input *input;
    frgi_reader reader; /* path NULL: memory */
    int64_t span;       /* the next of input->spans */
    int64_t total;      /* bytes stored, -1: not known */
    int64_t taken;      /* of these, handed on or inflated */
    int64_t made;       /* bytes inflated */
    int64_t asked;      /* `taken` when it was last asked whether to stop */

    char *buffer;     /* HEAD bytes, for a file */
    const char *next; /* stored bytes that wait: in buffer or in a span */
    int64_t waiting;
    bool dry; /* nothing is left behind `waiting` */

    bool gzip, in_member;
    z_stream z;
    bool z_open;
};

void *frgi_zlib_alloc(void *ctx, unsigned items, unsigned size)
{
    void *p;
    return frgi_alloc(ctx, &p, frgi_mul(items, size), "the decompressor") < 0 ? NULL : p;
}

void frgi_zlib_free(void *ctx, void *p)
{
    frgi_free(ctx, &p);
}

void frgi_warn_of_expansion(frg_context *ctx, const char *name, int64_t packed, int64_t unpacked)
{
    if (unpacked > 1 << 20 && packed > 0 && unpacked / 100 > packed &&
        !frgi_has_warned(ctx, W_EXPANSION)) {
        frgi_warn(ctx, W_EXPANSION, "'%s' expanded from %lld to %lld bytes, %lld times", name,
                  (long long)packed, (long long)unpacked, (long long)(unpacked / packed));
    }
}

/** Lets more stored bytes wait once all have been taken. */
static frg_status refill(frgi_source *s)
{
    if (s->waiting > 0 || s->dry) {
        return FRG_OK;
    }
    if (s->reader.path) {
        size_t got;
        TRY(frgi_reader_get(&s->reader, s->ctx, s->buffer, HEAD, &got));
        s->next = s->buffer;
        s->waiting = (int64_t)got;
        s->dry = got < HEAD;
        return FRG_OK;
    }
    while (s->waiting == 0 && s->span < s->input->n_spans) {
        s->next = s->input->spans[s->span].bytes;
        s->waiting = s->input->spans[s->span].count;
        s->span++;
    }
    s->dry = s->span == s->input->n_spans;
    return FRG_OK;
}

static void take(frgi_source *s, int64_t count)
{
    s->next += count;
    s->waiting -= count;
    s->taken += count;
}

static frg_status open_stream(frgi_source *s)
{
    s->z = (z_stream){.zalloc = frgi_zlib_alloc, .zfree = frgi_zlib_free, .opaque = s->ctx};
    const int code = inflateInit2(&s->z, GZIP_WINDOW);
    if (code == Z_MEM_ERROR) {
        return FRG_NO_MEMORY; /* the allocator has said so */
    }
    if (code != Z_OK) {
        FAIL(s->ctx, E_BUG, "zlib cannot start: code %d", code);
    }
    s->z_open = true;
    s->in_member = true;
    return FRG_OK;
}

static frg_status open_stored(frgi_source *s)
{
    if (s->input->path) {
        frgi_reader reader;
        TRY(frgi_reader_open(&reader, s->ctx, s->input->path));
        s->reader = reader; /* only an open one may be closed */
        const int64_t size = frgi_reader_size(&s->reader, s->ctx);
        s->total = size > 0 ? size : -1; /* some kernels' files have size 0 and contents */
        s->reader.stops = s->input->stops && s->total < 0; /* who has a size does not wait */
        return NEW(s->ctx, &s->buffer, HEAD, "read buffer");
    }
    for (int64_t i = 0; i < s->input->n_spans; i++) {
        s->total += s->input->spans[i].count;
    }
    return FRG_OK;
}

frg_status frgi_source_open(frgi_source **out, frg_context *ctx, const frgi_input *input,
                            bool unpack)
{
    *out = NULL;
    frgi_source *s;
    TRY(NEW0(ctx, &s, 1, "source"));
    s->ctx = ctx;
    s->input = input;
    frg_status status;
    TRY_TO(failed, open_stored(s));
    TRY_TO(failed, refill(s));
    s->gzip = unpack && s->waiting >= 2 && memcmp(s->next, "\x1f\x8b", 2) == 0;
    if (s->gzip) {
        TRY_TO(failed, open_stream(s));
    }
    *out = s;
    return FRG_OK;
failed:
    frgi_source_close(&s);
    return status;
}

void frgi_source_close(frgi_source **source)
{
    frgi_source *s = *source;
    if (!s) {
        return;
    }
    if (s->z_open) {
        inflateEnd(&s->z);
    }
    frgi_reader_close(&s->reader, s->ctx);
    DROP(s->ctx, &s->buffer);
    DROP(s->ctx, source);
}

frgi_span frgi_source_head(const frgi_source *s)
{
    return (frgi_span){s->next, s->waiting < HEAD ? s->waiting : HEAD};
}

int64_t frgi_source_size(const frgi_source *s)
{
    return s->gzip ? -1 : s->total;
}

bool frgi_source_is_gzip(const frgi_source *s)
{
    return s->gzip;
}

frg_status frgi_source_bounded(const frgi_source *s, size_t more)
{
    const bool ended = s->dry && s->waiting == 0;
    return frgi_source_size(s) >= 0 || ended ? FRG_OK
                                             : frgi_endless(s->ctx, s->input->name, s->taken, more);
}

int64_t frgi_source_consumed(const frgi_source *s)
{
    return s->taken;
}

int64_t frgi_source_total(const frgi_source *s)
{
    return s->total;
}

/** Asked once in PIECE stored bytes. */
static bool is_stopped(frgi_source *s)
{
    if (!s->input->stops || s->taken - s->asked < PIECE) {
        return false;
    }
    s->asked = s->taken;
    return frgi_stopped(s->ctx) != FRG_OK;
}

static frg_status get_stored(frgi_source *s, char *to, int64_t bytes, int64_t *got)
{
    while (*got < bytes) {
        if (s->waiting == 0 && s->reader.path && !s->dry) { /* large reads need no buffer */
            const int64_t left = bytes - *got, piece = left < PIECE ? left : PIECE;
            size_t n;
            TRY(frgi_reader_get(&s->reader, s->ctx, to + *got, (size_t)piece, &n));
            s->dry = n < (size_t)piece;
            s->taken += (int64_t)n;
            *got += (int64_t)n;
            if (s->dry || is_stopped(s)) {
                return FRG_OK;
            }
            continue;
        }
        TRY(refill(s));
        if (s->waiting == 0) {
            return FRG_OK;
        }
        const int64_t n = s->waiting < bytes - *got ? s->waiting : bytes - *got;
        memcpy(to + *got, s->next, (size_t)n);
        take(s, n);
        *got += n;
    }
    return FRG_OK;
}

/** Between members: zeros to the end, or another member. */
static frg_status next_member(frgi_source *s, bool *over)
{
    for (*over = false;;) {
        TRY(refill(s));
        if (s->waiting == 0) {
            *over = true;
            return FRG_OK;
        }
        if (*s->next == '\x1f') {
            s->in_member = true;
            inflateReset(&s->z);
            return FRG_OK;
        }
        if (*s->next != '\0') {
            frgi_at(s->ctx, "%s", s->input->name);
            FAIL(s->ctx, E_FORMAT, "'%s' has bytes after its gzip stream that are no gzip member",
                 s->input->name);
        }
        take(s, 1);
    }
}

static frg_status stream_failed(frgi_source *s, int code)
{
    if (code == Z_MEM_ERROR) {
        return FRG_NO_MEMORY; /* the allocator has said so */
    }
    frgi_at(s->ctx, "%s", s->input->name);
    FAIL(s->ctx, E_FORMAT, "'%s' is no sound gzip stream: %s after %lld bytes", s->input->name,
         s->z.msg ? s->z.msg : "damaged", (long long)s->taken);
}

enum { ZLIB_MOST = 1 << 30 }; /* zlib counts in unsigned int */

static frg_status get_inflated(frgi_source *s, char *to, int64_t bytes, int64_t *got)
{
    while (*got < bytes) {
        if (!s->in_member) {
            bool over;
            TRY(next_member(s, &over));
            if (over) {
                frgi_warn_of_expansion(s->ctx, s->input->name, s->taken, s->made);
                return FRG_OK;
            }
        }
        TRY(refill(s));
        if (s->waiting == 0) {
            frgi_at(s->ctx, "%s", s->input->name);
            FAIL(s->ctx, E_TRUNCATED, "'%s' ends in the middle of its gzip stream", s->input->name);
        }
        const int64_t in = s->waiting < ZLIB_MOST ? s->waiting : ZLIB_MOST;
        const int64_t space = bytes - *got < ZLIB_MOST ? bytes - *got : ZLIB_MOST;
        s->z.next_in = (z_const Bytef *)s->next;
        s->z.avail_in = (uInt)in;
        s->z.next_out = (Bytef *)to + *got;
        s->z.avail_out = (uInt)space;
        const int code = inflate(&s->z, Z_NO_FLUSH);
        take(s, in - s->z.avail_in);
        *got += space - s->z.avail_out;
        s->made += space - s->z.avail_out;
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
            return stream_failed(s, code);
        }
        s->in_member = code != Z_STREAM_END;
        if (!frgi_expansion_is_sane(s->taken, s->made)) {
            frgi_at(s->ctx, "%s", s->input->name);
            FAIL(s->ctx, E_EXPANSION, "'%s' expands from %lld bytes to more than %lld",
                 s->input->name, (long long)s->taken, (long long)s->made);
        }
    }
    return FRG_OK;
}

frg_status frgi_source_get(frgi_source *s, void *to, int64_t bytes, int64_t *got)
{
    *got = 0;
    if (is_stopped(s)) {
        return FRG_OK;
    }
    return s->gzip ? get_inflated(s, to, bytes, got) : get_stored(s, to, bytes, got);
}

frg_status frgi_source_slurp(frgi_source *s, char **bytes, int64_t *count)
{
    const int64_t size = frgi_source_size(s);
    int64_t capacity = size >= 0 ? size - s->taken + 1 : HEAD;
    char *text;
    TRY(NEW(s->ctx, &text, capacity, "file contents"));
    for (*count = 0;;) {
        int64_t got;
        frg_status status = frgi_source_get(s, text + *count, capacity - *count, &got);
        *count += got;
        if (status == FRG_OK && *count < capacity) {
            *bytes = text;
            return FRG_OK;
        }
        if (status == FRG_OK) {
            capacity = capacity < INT64_MAX / 2 ? 2 * capacity : INT64_MAX;
            status = size >= 0 ? FRG_OK
                               : frgi_endless(s->ctx, s->input->name, s->taken, (size_t)capacity);
        }
        if (status == FRG_OK) {
            status = GROW(s->ctx, &text, capacity, "file contents");
        }
        if (status < 0) {
            DROP(s->ctx, &text);
            return status;
        }
    }
}
