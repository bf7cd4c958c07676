/* fuzz_checkpoint.c - any bytes as a saved state: no crash, nothing read beyond them. */
#include <string.h>

#include "core/checkpoint_bytes.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"line", "columns", "reports", "one", ""};
    frg_context *const ctx = fuzz_context(0);
    if (!ctx)
        return 0;
    char *bytes;
    frg_checkpoint *c = NULL;
    if (frgi_alloc(ctx, (void **)&bytes, size, "the input") == FRG_OK) {
        memcpy(bytes, data, size);
        const frg_status s = frgi_checkpoint_parse(&c, ctx, &bytes, size, "fuzz");
        insist((s == FRG_OK) == (c != NULL) && !bytes);
    }
    for (size_t i = 0; c && i < sizeof names / sizeof *names; i++) {
        int64_t count = 0;
        const char *const s = frg_checkpoint_get(c, names[i], &count);
        insist(!s || (count >= 0 && (size_t)count <= size));
        insist(!s || frg_hash(0, s, count) != 1); /* touches every byte */
    }
    frg_checkpoint_destroy(c);
    insist(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
    return 0;
}
