/* io_zstd.c - zstd streams (RFC 8878): frames one after another, of which skippable ones hold
 * nothing of the contents; checksums are checked where a frame has one.
 */
#include <string.h>

#include "io/io_unpack.h"

/** The four bytes that a frame begins with; of a skippable one the first has any lower half. */
static bool begins(frgi_span head)
{
    return head.count >= 4 &&
           (memcmp(head.bytes, "\x28\xb5\x2f\xfd", 4) == 0 ||
            ((head.bytes[0] & 0xf0) == 0x50 && memcmp(head.bytes + 1, "\x2a\x4d\x18", 3) == 0));
}

#if FOURGE_ZSTD
#define ZSTD_STATIC_LINKING_ONLY /* the allocator's hooks */
#include <zstd.h>
#include <zstd_errors.h>

typedef struct {
    frg_context *ctx;
    const char *file;
    ZSTD_DStream *stream;
    int64_t taken;
} zstd;

static void *zstd_alloc(void *ctx, size_t bytes)
{
    void *p;
    return frgi_alloc(ctx, &p, bytes, "the decompressor") < 0 ? NULL : p;
}

static void zstd_free(void *ctx, void *p)
{
    frgi_free(ctx, &p);
}

static frg_status open_stream(void **state, frg_context *ctx, const char *file)
{
    zstd *z;
    TRY(NEW(ctx, &z, 1, "the decompressor"));
    *z = (zstd){.ctx = ctx, .file = file};
    z->stream = ZSTD_createDStream_advanced((ZSTD_customMem){zstd_alloc, zstd_free, ctx});
    if (!z->stream) {
        DROP(ctx, &z);
        return FRG_NO_MEMORY; /* the allocator has said so */
    }
    *state = z;
    return FRG_OK;
}

static void close_stream(void *state)
{
    zstd *z = state;
    ZSTD_freeDStream(z->stream);
    DROP(z->ctx, &z);
}

static frg_status stream_failed(const zstd *z, size_t code)
{
    const ZSTD_ErrorCode error = ZSTD_getErrorCode(code);
    if (error == ZSTD_error_memory_allocation) {
        return FRG_NO_MEMORY; /* the allocator has said so */
    }
    frgi_at(z->ctx, "%s", z->file);
    if (error == ZSTD_error_frameParameter_windowTooLarge) {
        FAIL(z->ctx, E_FILE_TYPE,
             "'%s' was packed by zstd --long with a window above 128 MiB; decompress it first",
             z->file);
    }
    FAIL(z->ctx, E_FORMAT, "'%s' is no sound zstd stream: %s after %lld bytes", z->file,
         ZSTD_getErrorString(error), (long long)z->taken);
}

static frg_status step(void *state, frgi_unpacking *u)
{
    zstd *const z = state;
    ZSTD_inBuffer in = {u->from, (size_t)u->waiting, 0};
    ZSTD_outBuffer out = {u->to, (size_t)u->available, 0};
    const size_t code = ZSTD_decompressStream(z->stream, &out, &in);
    u->from += in.pos;
    u->waiting -= (int64_t)in.pos;
    u->to += out.pos;
    u->available -= (int64_t)out.pos;
    z->taken += (int64_t)in.pos;
    u->inside = code != 0; /* 0: a frame has ended, and all of it is handed on */
    return ZSTD_isError(code) ? stream_failed(z, code) : FRG_OK;
}

#else

static frg_status open_stream(void **state, frg_context *ctx, const char *file)
{
    (void)state;
    frgi_at(ctx, "%s", file);
    FAIL(ctx, E_DECODER,
         "'%s' is compressed by zstd, which this build of fourge does without; decompress it by "
         "zstd -d, or build fourge where libzstd-dev is installed",
         file);
}

static void close_stream(void *state)
{
    (void)state;
}

static frg_status step(void *state, frgi_unpacking *u)
{
    (void)state;
    (void)u;
    return FRG_UNSUPPORTED; /* none was opened */
}
#endif

const frgi_packing frgi_zstd = {"zstd", ".zst", begins, open_stream, step, close_stream};
