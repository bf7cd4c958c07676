/* fuzz_dta.c - any bytes as a file of Stata: no crash of ours, nothing lost, little memory.
 *
 * What ReadStat takes of malloc is its own; it may refuse anything.
 */
#include "fourge/table.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frg_context *const ctx = fuzz_context(1 << 28);
    if (!ctx)
        return 0;
    frg_table *t = NULL;
    const frg_status s =
        frg_table_parse(&t, ctx, (const char *)data, (int64_t)size, "fuzz.dta", NULL);
    insist((s == FRG_OK) == (t != NULL));
    for (int64_t i = 0; i < frg_table_columns(t); i++) {
        const frg_column *const c = frg_table_column(t, i);
        insist(frg_table_find(t, c->name) == c);
        int64_t missing = 0;
        for (int64_t r = 0; r < c->n; r++) {
            if (c->codes)
                insist(c->codes[r] >= -1 && c->codes[r] < c->n_labels);
            missing += c->codes      ? c->codes[r] < 0
                       : c->integers ? c->integers[r] == FRG_MISSING_INTEGER
                                     : c->numbers[r] != c->numbers[r];
        }
        insist(missing == c->n_missing);
    }
    frg_table_destroy(t);
    frg_warnings_clear(ctx);
    insist(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
    return 0;
}
