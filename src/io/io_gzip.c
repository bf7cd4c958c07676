/* io_gzip.c - gzip streams (RFC 1952): members, each with its CRC, which zlib checks; zeros after
 * the last one (padding) are passed over.
 */
#include <zlib.h>

#include "io/io_unpack.h"

enum {
    GZIP_WINDOW = 15 + 16, /* the largest window, with gzip's frame */
    ZLIB_MOST = 1 << 30    /* zlib counts in unsigned int */
};

typedef struct {
    frg_context *ctx;
    const char *file;
    z_stream z;
    int64_t taken;
} gzip;

void *frgi_zlib_alloc(void *ctx, unsigned items, unsigned size)
{
    void *p;
    return frgi_alloc(ctx, &p, frgi_mul(items, size), "the decompressor") < 0 ? NULL : p;
}

void frgi_zlib_free(void *ctx, void *p)
{
    frgi_free(ctx, &p);
}

static bool begins(frgi_span head)
{
    return head.count >= 2 && head.bytes[0] == '\x1f' && head.bytes[1] == '\x8b';
}

static frg_status open_stream(void **state, frg_context *ctx, const char *file)
{
    gzip *g;
    TRY(NEW(ctx, &g, 1, "the decompressor"));
    *g = (gzip){.ctx = ctx,
                .file = file,
                .z = {.zalloc = frgi_zlib_alloc, .zfree = frgi_zlib_free, .opaque = ctx}};
    const int code = inflateInit2(&g->z, GZIP_WINDOW);
    if (code != Z_OK) {
        DROP(ctx, &g);
        if (code == Z_MEM_ERROR) {
            return FRG_NO_MEMORY; /* the allocator has said so */
        }
        FAIL(ctx, E_BUG, "zlib cannot start: code %d", code);
    }
    *state = g;
    return FRG_OK;
}

static void close_stream(void *state)
{
    gzip *g = state;
    inflateEnd(&g->z);
    DROP(g->ctx, &g);
}

static frg_status stream_failed(const gzip *g, int code)
{
    if (code == Z_MEM_ERROR) {
        return FRG_NO_MEMORY; /* the allocator has said so */
    }
    frgi_at(g->ctx, "%s", g->file);
    FAIL(g->ctx, E_FORMAT, "'%s' is no sound gzip stream: %s after %lld bytes", g->file,
         g->z.msg ? g->z.msg : "damaged", (long long)g->taken);
}

/** Between members: a zero, or the beginning of another member. */
static frg_status between_members(gzip *g, frgi_unpacking *u)
{
    if (*u->from == '\x1f') {
        u->inside = true;
        inflateReset(&g->z);
    } else if (*u->from == '\0') {
        u->from++;
        u->waiting--;
        g->taken++;
    } else {
        frgi_at(g->ctx, "%s", g->file);
        FAIL(g->ctx, E_FORMAT, "'%s' has bytes after its gzip stream that are no gzip member",
             g->file);
    }
    return FRG_OK;
}

static frg_status step(void *state, frgi_unpacking *u)
{
    gzip *const g = state;
    if (!u->inside) {
        TRY(between_members(g, u));
    }
    if (!u->inside) {
        return FRG_OK;
    }
    const int64_t in = u->waiting < ZLIB_MOST ? u->waiting : ZLIB_MOST;
    const int64_t space = u->available < ZLIB_MOST ? u->available : ZLIB_MOST;
    g->z.next_in = (z_const Bytef *)u->from;
    g->z.avail_in = (uInt)in;
    g->z.next_out = (Bytef *)u->to;
    g->z.avail_out = (uInt)space;
    const int code = inflate(&g->z, Z_NO_FLUSH);
    u->from += in - g->z.avail_in;
    u->waiting -= in - g->z.avail_in;
    u->to += space - g->z.avail_out;
    u->available -= space - g->z.avail_out;
    g->taken += in - g->z.avail_in;
    u->inside = code != Z_STREAM_END;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? FRG_OK
                                                                       : stream_failed(g, code);
}

const frgi_packing frgi_gzip = {"gzip", ".gz", begins, open_stream, step, close_stream};
