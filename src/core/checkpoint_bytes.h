/* checkpoint_bytes.h - the parser of checkpoints, for its tests. */
#ifndef FRGI_CHECKPOINT_H
#define FRGI_CHECKPOINT_H

#include "core/core.h"
#include "fourge/checkpoint.h"

#pragma GCC visibility push(hidden)

/** Takes *bytes over, a block of the context's allocator, also on failure.  name stands in
 *  messages. */
FRG_MUST_USE frg_status frgi_checkpoint_parse(frg_checkpoint **out, frg_context *ctx, char **bytes,
                                              size_t count, const char *name);

#pragma GCC visibility pop
#endif
