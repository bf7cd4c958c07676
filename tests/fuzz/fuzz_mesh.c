/* fuzz_mesh.c - any bytes as an OFF, OBJ or PLY file: no crash, nothing lost, edges between points
 * alone. */
#include <math.h>

#include "io/mesh_bytes.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frg_context *const ctx = fuzz_context(256 << 20);
    if (!ctx)
        return 0;
    frg_mesh *m;
    const frg_status s = frgi_mesh_parse(&m, ctx, (const char *)data, (int64_t)size, "fuzz");
    insist((s == FRG_OK) == (m != NULL));
    if (m) {
        const frg_array points = frg_mesh_points(m);
        const double *const x = points.data;
        const int32_t *ends;
        const int64_t count = frg_mesh_edges(m, &ends);
        insist(points.shape[0] > 0 && (size_t)points.shape[0] <= size);
        for (int64_t i = 0; i < 3 * points.shape[0]; i++)
            insist(isfinite(x[i]));
        for (int64_t e = 0; e < 2 * count; e++)
            insist(ends[e] >= 0 && ends[e] < points.shape[0]);
    }
    frg_mesh_destroy(m);
    insist(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
    return 0;
}
