/* fuzz.h - what every fuzz target opens with. */
#ifndef FOURGE_FUZZ_H
#define FOURGE_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "fourge/fourge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void insist(bool held)
{
    if (!held)
        abort();
}

/** A context of one thread with at most `memory` bytes (0: no limit); NULL: there is none to be
 *  had. */
static inline frg_context *fuzz_context(int64_t memory)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.threads = 1;
    o.memory_limit = memory;
    frg_context *ctx = NULL;
    return frg_context_create(&ctx, &o) < 0 ? NULL : ctx;
}

#endif
