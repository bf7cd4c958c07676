/* checkpoint_bytes.h - the parser of checkpoints, for its tests, and sections of a known length. */
#ifndef FRGI_CHECKPOINT_H
#define FRGI_CHECKPOINT_H

#include "core/core.h"
#include "fourge/checkpoint.h"

#pragma GCC visibility push(hidden)

/** Takes *bytes over, a block of the context's allocator, also on failure.  name stands in
 *  messages. */
FRG_MUST_USE frg_status frgi_checkpoint_parse(frg_checkpoint **out, frg_context *ctx, char **bytes,
                                              size_t count, const char *name);

/** frg_checkpoint_load as a part of a run that has begun already: the clock of the time limit goes
 *  on. */
FRG_MUST_USE frg_status frgi_checkpoint_load(frg_checkpoint **out, frg_context *ctx,
                                             const char *path);
/** Is there a file of that name, whether it can be read or not? */
bool frgi_checkpoint_is_there(const frg_context *ctx, const char *path);
/** to <- section `name`; E_CHECKPOINT where there is none of `bytes` bytes. */
FRG_MUST_USE frg_status frgi_checkpoint_copy(const frg_checkpoint *c, const char *name, void *to,
                                             size_t bytes);
/** A section whose length is known beforehand, and the memory that it comes from or goes to. */
typedef struct {
    const char *name;
    void *at;
    size_t bytes;
} frgi_section;

/** frg_checkpoint_put and frgi_checkpoint_copy of `count` sections, up to the first failure. */
FRG_MUST_USE frg_status frgi_checkpoint_put_all(frg_checkpoint *c, const frgi_section *sections,
                                                int count);
FRG_MUST_USE frg_status frgi_checkpoint_copy_all(const frg_checkpoint *c,
                                                 const frgi_section *sections, int count);
/** E_MISMATCH of ctx, which need not be the checkpoint's, that names the file: it is of other
 *  options or another machine, or of other data. */
FRG_MUST_USE frg_status frgi_checkpoint_other_options(frg_context *ctx, const frg_checkpoint *c);
FRG_MUST_USE frg_status frgi_checkpoint_other_data(frg_context *ctx, const frg_checkpoint *c);
/** E_CHECKPOINT: section `name` has the right length and holds what cannot be. */
FRG_MUST_USE frg_status frgi_checkpoint_unsound(const frg_checkpoint *c, const char *name);

#pragma GCC visibility pop
#endif
