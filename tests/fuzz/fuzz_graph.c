/* fuzz_graph.c - any bytes as a Matrix Market file or edge list: no crash, nothing lost, sound
 * graphs alone. */
#include "graph/graph.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frg_context *const ctx = fuzz_context(256 << 20);
    if (!ctx)
        return 0;
    frg_graph *g;
    const frg_status s =
        frgi_graph_parse(&g, ctx, (const char *)data, (int64_t)size, "fuzz.mtx", size & 1);
    insist((s == FRG_OK) == (g != NULL));
    if (g) {
        const int64_t *starts;
        const int32_t *targets;
        const float *lengths;
        frg_graph_arcs(g, &starts, &targets, &lengths);
        const frg_graph_report r = frg_graph_get(g);
        insist(starts[0] == 0 && starts[r.n] == r.arcs);
        for (int64_t v = 0; v < r.n; v++) {
            for (int64_t e = starts[v]; e < starts[v + 1]; e++) {
                insist(targets[e] >= 0 && targets[e] < r.n && targets[e] != v);
                insist(e == starts[v] || targets[e - 1] < targets[e]);
                insist(lengths[e] >= 0 && (double)lengths[e] <= FRGI_LENGTH_MAX);
            }
        }
    }
    frg_graph_destroy(g);
    insist(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
    return 0;
}
