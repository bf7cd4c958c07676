/* kept_file.h - a file that a run keeps for one that goes on where it was cut off: a head that says
 * of what it is, pieces as they lie in memory, and checksums.
 *
 *     head      magic, format, byte order, hashes of options and source, two sizes; a checksum
 *     pieces    as their owner has them; a checksum of the file up to there where that says so
 *
 * Files are written whole or not at all, for a machine of the same kind.
 */
#ifndef FRGI_KEPT_FILE_H
#define FRGI_KEPT_FILE_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** What a file is: its first 8 bytes, and what messages call it. */
typedef struct {
    const char *magic, *what;
} frgi_keep_kind;

/** What a file is of: hashes (frg_hash) of what decides its contents and of the data. */
typedef struct {
    uint64_t options, source;
    int64_t sizes[2];
} frgi_keep_head;

/** A checksum of bytes in order, whatever the pieces that they come in. */
typedef struct {
    uint64_t sum;
    size_t held;
    char block[1 << 12];
} frgi_running_sum;

typedef struct {
    frg_context *ctx;
    frgi_writer *w;
    frgi_running_sum sum;
} frgi_keep_out;

typedef struct {
    frg_context *ctx;
    const frgi_keep_kind *kind;
    frgi_reader reader;
    frgi_running_sum sum;
} frgi_keep_in;

/** Bytes of the file besides its pieces, which have `checksums`. */
size_t frgi_keep_bytes(int checksums);
/** E_ROOM where the folder of `path` has no room for `bytes`; says how many they are. */
FRG_MUST_USE frg_status frgi_keep_room(frg_context *ctx, const char *path, size_t bytes);

/** Writes the head.  After a failure of this and the next three calls nothing is left. */
FRG_MUST_USE frg_status frgi_keep_create(frgi_keep_out *f, frg_context *ctx, const char *path,
                                         const frgi_keep_kind *kind, const frgi_keep_head *h);
/** f: a frgi_keep_out. */
FRG_MUST_USE frg_status frgi_keep_put(void *f, const void *bytes, size_t count);
FRG_MUST_USE frg_status frgi_keep_put_sum(frgi_keep_out *f);
/** Publishes the file where status is FRG_OK, else gives it up; returns the worse of both. */
FRG_MUST_USE frg_status frgi_keep_end(frgi_keep_out *f, frg_status status);

/** Opens a file of that kind, options and source, and reads its head: *h has both, and gets the
 *  sizes.  Errors: E_NO_INPUT, E_READ, E_CHECKPOINT, E_MISMATCH, E_CHANGED; it is closed then. */
FRG_MUST_USE frg_status frgi_keep_open(frgi_keep_in *f, frg_context *ctx, const char *path,
                                       const frgi_keep_kind *kind, frgi_keep_head *h);
/** f: a frgi_keep_in.  Exactly `count` bytes, or E_CHECKPOINT. */
FRG_MUST_USE frg_status frgi_keep_get(void *f, void *to, size_t count);
FRG_MUST_USE frg_status frgi_keep_check_sum(frgi_keep_in *f);
FRG_MUST_USE frg_status frgi_keep_check_end(frgi_keep_in *f);
/** f: a frgi_keep_in.  E_CHECKPOINT; what: a part of a sentence. */
FRG_MUST_USE frg_status frgi_keep_refuse(void *f, const char *what);
/** Bytes that an array in the file may have at most. */
size_t frgi_keep_most(const frgi_keep_in *f);
void frgi_keep_close(frgi_keep_in *f);
/** After a load: FRG_OK for what can be made anew, as the file is damaged or of other options,
 *  which W_KEPT says; else `status`. */
FRG_MUST_USE frg_status frgi_keep_or_anew(frg_context *ctx, frg_status status);

#pragma GCC visibility pop
#endif
