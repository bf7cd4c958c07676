/* fuzz_soap.c - any bytes as a saved state of the optimizer, or as an archive in the layouts of
 * others: no crash; a load that fails changes nothing, one that succeeds leaves a handle that
 * steps. */
#include <string.h>

#include "fourge/soap.h"

#include "fuzz.h"

enum { M = 4, N = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frg_context *const ctx = fuzz_context(0);
    if (!ctx)
        return 0;
    float w[M * N] = {0}, g[M * N], before[M * N], after[M * N];
    for (int i = 0; i < M * N; i++)
        g[i] = (float)(i % 5) - 2;
    frg_soap *soap = NULL;
    const frg_array grad = frg_matrix(g, FRG_F32, M, N, N);
    insist(frg_soap_create(&soap, ctx, NULL) >= 0);
    insist(frg_soap_add_param(soap, 0, frg_matrix(w, FRG_F32, M, N, N), "w", NULL) >= 0);
    insist(frg_soap_step(soap, &grad, 1, NULL) >= 0);
    const int layouts = size >= 2 && memcmp(data, "PK", 2) == 0 ? 4 : 0;
    for (int l = 0; l == 0 || l < layouts; l++) {
        const int64_t count = (int64_t)size;
        insist(frg_soap_state_get(soap, 0, "exp_avg", frg_matrix(before, FRG_F32, M, N, N)) >= 0);
        const frg_status s =
            layouts ? frg_soap_import_bytes(soap, data, count, "fuzz", (frg_soap_layout)l)
                    : frg_soap_load_bytes(soap, data, count, "fuzz");
        insist(frg_soap_state_get(soap, 0, "exp_avg", frg_matrix(after, FRG_F32, M, N, N)) >= 0);
        insist(s >= 0 || (memcmp(before, after, sizeof before) == 0 && *frg_message(ctx)));
    }
    (void)!frg_soap_step(soap, &grad, 1, NULL);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
    return 0;
}
