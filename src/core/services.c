/* services.c - what programs on top of the library need of the core: memory, whole files, and
 * spelling help. */
#include "core/core.h"

frg_status frg_block_create(void **out, frg_context *ctx, size_t bytes, const char *what)
{
    REQUIRE(ctx, ctx && out && what, "frg_block_create takes a place, a context and a name");
    return frgi_alloc(ctx, out, bytes, what);
}

void frg_block_destroy(void *block, frg_context *ctx)
{
    if (ctx) {
        frgi_free(ctx, &block);
    }
}

frg_status frg_write_file(frg_context *ctx, const char *path, const void *bytes, int64_t count)
{
    REQUIRE(ctx, path && count >= 0 && (bytes || count == 0),
            "frg_write_file takes a path and count >= 0 bytes");
    frgi_writer *w;
    TRY(frgi_writer_open(&w, ctx, path));
    const frg_status status = frgi_writer_put(w, bytes, (size_t)count);
    if (status < 0) {
        frgi_writer_abandon(&w);
        return status;
    }
    return frgi_writer_commit(&w);
}

const char *frg_nearest_name(const char *name, const char *const *names, int64_t count)
{
    return name && names && count > 0 ? frgi_nearest(name, names, count) : NULL;
}
