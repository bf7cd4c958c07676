/* fuzz_npy.c - any bytes as an .npy file: no crash, nothing lost, memory by what is there alone. */
#include "fourge/table.h"
#include "io/io.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frg_context *const ctx = fuzz_context(0);
    if (!ctx)
        return 0;
    frg_npy *a;
    const frg_status s =
        frgi_npy_parse_bytes(&a, ctx, (const char *)data, (int64_t)size, "fuzz.npy");
    insist((s == FRG_OK) == (a != NULL));
    /* a byte becomes an int64 at most; the header, a read buffer and zlib's state come on top */
    insist(frg_peak_bytes(ctx) <= 9 * size + (1 << 18));
    if (a) {
        const frg_array v = frg_npy_array(a);
        int64_t count = 1, last = 0;
        for (int d = 0; d < v.ndim; d++) {
            count *= v.shape[d];
            last += (v.shape[d] - 1) * v.stride[d];
        }
        if (count > 0) {
            const volatile char *const first = (const char *)v.data + v.offset;
            (void)first[0];
            (void)first[(size_t)last * frg_sizeof(v.dtype) + frg_sizeof(v.dtype) - 1];
        }
        insist(count == 0 || last == count - 1);
    }
    frg_npy_destroy(a);
    frg_table *t;
    const frg_status r =
        frg_table_parse(&t, ctx, (const char *)data, (int64_t)size, "fuzz.npy", NULL);
    insist((r == FRG_OK) == (t != NULL));
    insist(s == FRG_OK || r != FRG_OK);
    frg_table_destroy(t);
    insist(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
    return 0;
}
