/* spool.h - large blocks of a context that lie in unnamed files instead of memory; for the files of
 * src/core alone, but for the two questions at the end of core.h's part on memory. */
#ifndef FRGI_SPOOL_H
#define FRGI_SPOOL_H

#include "core/context.h"

#pragma GCC visibility push(hidden)

enum { FRGI_SPOOL_LEAST = 1 << 18 }; /* bytes: what is smaller stays in memory */

/** Does a block of `total` bytes belong on the disk: is there a spool, and is the block large, or
 *  is half of the memory limit in use? */
bool frgi_spool_takes(const frg_context *ctx, size_t total);
/** total bytes of zeros in a file of their own; E_SPOOL where the folder has no room for them. */
FRG_MUST_USE frg_status frgi_spool_get(frg_context *ctx, size_t total, const char *what,
                                       void **out);
/** The block at *p with another size, and where it lies from then on; as it was after a failure. */
FRG_MUST_USE frg_status frgi_spool_resize(frg_context *ctx, void **p, size_t total,
                                          const char *what);
/** Gives a block back, and its place on the disk. */
void frgi_spool_return(frg_context *ctx, void *p);
/** The regular file `bytes` long that is open as `handle`, as memory that is read alone, until
 *  frgi_unmap; NULL where blocks of that size lie in memory or it cannot be mapped.  With
 *  frg_context_opts.copies_files a copy: E_SPOOL, E_READ, E_CHANGED where it changes meanwhile. */
FRG_MUST_USE frg_status frgi_spool_map(frg_context *ctx, int handle, const char *path, size_t bytes,
                                       const char **out);
/** The block that p lies in, for frgi_spool_put; of the context until the block is returned or
 *  resized. */
typedef struct {
    const char *base; /* NULL: p lies in memory, or in a file of the user's */
    int fd;
} frgi_spool_place;
frgi_spool_place frgi_spool_place_of(const frg_context *ctx, const void *p);
/** memcpy to a place of that block, by a call of the system instead of its pages: nothing of it
 *  becomes the process's.  A write that fails is one of frgi_spool_check's. */
void frgi_spool_put(const frg_context *ctx, frgi_spool_place place, void *to, const void *from,
                    size_t bytes);
/** E_DISK where a call of the system met a page of a block that cannot be read (EFAULT). */
FRG_MUST_USE frg_status frgi_spool_fault(frg_context *ctx, int error);
/** Lets pages go where the process holds more than it is to: where passes look around anyway. */
void frgi_spool_trim(const frg_context *ctx);
/** Ends the spool of a context that has no blocks any more. */
void frgi_spool_close(frg_context *ctx);

#pragma GCC visibility pop
#endif
