/* io_source.c - bytes in order from a file, a pipe, memory, or a compressed stream in any of them.
 *
 * The first 64 KB are read when the source is opened, so that its kind can be seen before it is
 * consumed. Plain files are then read straight into the caller's memory.
 */
#include "io/io_unpack.h"

#include <string.h>

enum {
    HEAD = 1 << 16,
    PIECE = 8 << 20 /* read between two questions whether to stop */
};

struct frgi_source {
    frg_context *ctx;
    const frgi_input *input;
    frgi_reader reader; /* path NULL: memory */
    int64_t span;       /* the next of input->spans */
    int64_t total;      /* bytes stored, -1: not known */
    int64_t taken;      /* of these, handed on or unpacked */
    int64_t made;       /* bytes unpacked */
    int64_t asked;      /* `taken` when it was last asked whether to stop */

    char *buffer;     /* HEAD bytes, for a file */
    const char *next; /* stored bytes that wait: in buffer or in a span */
    int64_t waiting;
    bool dry; /* nothing is left behind `waiting` */

    const frgi_packing *packing; /* NULL: the contents are what is stored */
    void *unpacker;
    bool inside; /* a member or frame of a compressed stream */
    bool tells;
};

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

static const frgi_packing *find_packing(frgi_span head)
{
    static const frgi_packing *const packings[] = {&frgi_gzip, &frgi_zstd};
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++) {
        if (packings[i]->begins(head)) {
            return packings[i];
        }
    }
    return NULL;
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
    const frgi_packing *const packing = unpack ? find_packing(frgi_source_head(s)) : NULL;
    if (packing) {
        TRY_TO(failed, packing->open(&s->unpacker, ctx, input->name));
        s->packing = packing; /* only an open one may be closed */
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
    if (s->packing) {
        s->packing->close(s->unpacker);
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
    return s->packing ? -1 : s->total;
}

const char *frgi_source_packing(const frgi_source *s)
{
    return s->packing ? s->packing->name : NULL;
}

frg_status frgi_source_bounded(const frgi_source *s, size_t more)
{
    const bool ended = s->dry && s->waiting == 0;
    return frgi_source_size(s) >= 0 || ended ? FRG_OK
                                             : frgi_endless(s->ctx, s->input->name, s->taken, more);
}

frg_status frgi_source_map(const frgi_source *s, const char **out)
{
    *out = NULL;
    const bool file = s->reader.path && !s->packing && s->total > 0;
    return file ? frgi_reader_map(&s->reader, s->ctx, (size_t)s->total, out) : FRG_OK;
}

int64_t frgi_source_consumed(const frgi_source *s)
{
    return s->taken;
}

int64_t frgi_source_total(const frgi_source *s)
{
    return s->total;
}

void frgi_source_tell(frgi_source *s)
{
    s->tells = true;
}

/** What the callback answers counts at the next step of who reads: half a file is none. */
static void tell(const frgi_source *s)
{
    const frg_progress p = {.solver = "table",
                            .phase = "read",
                            .done = s->taken,
                            .total = s->total > 0 ? s->total : 0,
                            .residual = __builtin_nan(""),
                            .target = __builtin_nan(""),
                            .in_bytes = 1};
    (void)frgi_heartbeat(s->ctx, &p);
}

/** Asked once in PIECE stored bytes. */
static bool is_stopped(frgi_source *s)
{
    if (!s->input->stops || s->taken - s->asked < PIECE) {
        return false;
    }
    s->asked = s->taken;
    if (s->tells) {
        tell(s);
    }
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

static frg_status check_expansion(const frgi_source *s)
{
    if (!frgi_expansion_is_sane(s->taken, s->made)) {
        frgi_at(s->ctx, "%s", s->input->name);
        FAIL(s->ctx, E_EXPANSION, "'%s' expands from %lld bytes to more than %lld", s->input->name,
             (long long)s->taken, (long long)s->made);
    }
    return FRG_OK;
}

static frg_status get_unpacked(frgi_source *s, char *to, int64_t bytes, int64_t *got)
{
    while (*got < bytes) {
        TRY(refill(s));
        if (s->waiting == 0 && !s->inside) {
            frgi_warn_of_expansion(s->ctx, s->input->name, s->taken, s->made);
            return FRG_OK;
        }
        const bool ended = s->waiting == 0; /* what is unpacked already may still be handed on */
        frgi_unpacking u = {s->next, s->waiting, to + *got, bytes - *got, s->inside};
        const frg_status status = s->packing->step(s->unpacker, &u);
        const int64_t made = bytes - *got - u.available;
        take(s, s->waiting - u.waiting);
        s->made += made;
        *got += made;
        s->inside = u.inside;
        TRY(status);
        if (ended && made == 0 && s->inside) {
            frgi_at(s->ctx, "%s", s->input->name);
            FAIL(s->ctx, E_TRUNCATED, "'%s' ends in the middle of its %s stream", s->input->name,
                 s->packing->name);
        }
        TRY(check_expansion(s));
    }
    return FRG_OK;
}

frg_status frgi_source_get(frgi_source *s, void *to, int64_t bytes, int64_t *got)
{
    *got = 0;
    if (is_stopped(s)) {
        return FRG_OK;
    }
    return s->packing ? get_unpacked(s, to, bytes, got) : get_stored(s, to, bytes, got);
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
