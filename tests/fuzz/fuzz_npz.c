/* fuzz_npz.c - any bytes as an .npz archive: no crash, nothing lost, bounded memory. */
#include <stdlib.h>

#include "fourge/table.h"
#include "io/io.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frg_context *const ctx = fuzz_context(1 << 29);
    if (!ctx)
        return 0;
    frg_table *t;
    const frg_status s = frgi_npz_parse(&t, ctx, (const char *)data, (int64_t)size, "fuzz.npz");
    if ((s == FRG_OK) != (t != NULL))
        abort();
    for (int64_t i = 0; t && i < frg_table_columns(t); i++) {
        const frg_column *const c = frg_table_column(t, i);
        if (!c->name || frg_table_find(t, c->name) != c || c->n != frg_table_rows(t))
            abort();
    }
    frg_table_destroy(t);
    frg_warnings_clear(ctx); /* of an archive that expanded much: they are the context's until
                                then */
    if (frg_bytes_held(ctx) != 0)
        abort();
    frg_context_destroy(ctx);
    return 0;
}
