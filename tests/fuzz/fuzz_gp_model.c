/* fuzz_gp_model.c - any bytes as a model of a Gaussian process: no crash, memory by what is there,
 * and a model that is taken predicts.  The checksum is made to hold, or nothing behind it would
 * ever be reached. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "gp/gp_create.h"

#include "fuzz.h"

static void little(uint8_t *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

static void ask(frg_gp *gp)
{
    const frg_gp_report r = frg_gp_get(gp);
    double *x = calloc((size_t)r.d + 1, sizeof *x), *mean = calloc((size_t)r.q, sizeof *mean);
    if (!x || !mean)
        abort();
    frg_array out = frg_matrix(mean, FRG_F64, 1, r.q, r.q);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.mean = &out;
    const frg_status s = frg_gp_predict(gp, frg_matrix(x, FRG_F64, 1, r.d, r.d), &o);
    (void)s; /* a matrix that has no factor is an answer too */
    free(x);
    free(mean);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 14)
        return 0;
    frg_context *const ctx = fuzz_context(64 << 20);
    if (!ctx)
        return 0;
    uint8_t *const bytes = malloc(size + 1);
    if (!bytes)
        abort();
    if (size > 0)
        memcpy(bytes, data, size);
    for (int mended = 0; mended < 2; mended++) {
        if (mended && size >= 24) {
            little(bytes + 12, size, 8);
            little(bytes + size - 4, crc32(crc32(0, NULL, 0), bytes, (uInt)size - 4), 4);
        }
        frg_gp *gp;
        const frg_status s = frgi_gp_parse_model(&gp, ctx, (const char *)bytes, size, "fuzz");
        insist((s == FRG_OK) == (gp != NULL) || s > 0);
        if (gp)
            ask(gp);
        frg_gp_destroy(gp);
        frg_warnings_clear(ctx); /* a start value the data do not bear out is warned of */
        insist(frg_bytes_held(ctx) == 0);
    }
    free(bytes);
    frg_context_destroy(ctx);
    return 0;
}
