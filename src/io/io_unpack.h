/* io_unpack.h - compressed streams as a source reads them: one table a kind. */
#ifndef FRGI_IO_UNPACK_H
#define FRGI_IO_UNPACK_H

#include "io/io.h"

#pragma GCC visibility push(hidden)

/** Packed bytes that wait and space to be filled; a step moves both on. */
typedef struct {
    const char *from;
    int64_t waiting;
    char *to;
    int64_t available;
    bool inside; /* a member or frame has begun: the file must not end here */
} frgi_unpacking;

/** A kind of compressed stream: members or frames, one after another. */
struct frgi_packing {
    const char *name, *extension;
    bool (*begins)(frgi_span head);
    /** `file` stands in messages. */
    frg_status (*open)(void **state, frg_context *ctx, const char *file);
    /** Moves at least one byte unless none waits and nothing is left to be handed on. */
    frg_status (*step)(void *state, frgi_unpacking *u);
    void (*close)(void *state);
};

extern const frgi_packing frgi_gzip, frgi_zstd;

#pragma GCC visibility pop
#endif
