/* gw_store.c - the form of costs that memory has room for.
 *
 * A form that does not fit is refused before any work, with the bytes that it needs and those of
 * the next smaller form; with auto_store the next smaller form that fits is taken, and W_STORE says
 * so.
 */
#include "gw/gw_store.h"

#include "gw/gw_marginals.h"

static const char *store_name(frg_gw_store store)
{
    static const char *const names[] = {"auto", "f32", "u16", "u16r", "fly", "f64"};
    return names[store];
}

frg_status frgi_fit_store(frg_context *ctx, int64_t n, int64_t m, const frgi_form *forms, int count,
                          bool may_shrink, const frgi_form **chosen)
{
    const size_t allowed = frgi_memory_allowed(ctx), held = frg_bytes_held(ctx);
    const size_t left = allowed > held ? allowed - held : 0;
    const size_t first = frgi_transport_bytes(ctx, n, m, forms[0].storage);
    for (int q = 0; q < count; q++) {
        if (frgi_transport_bytes(ctx, n, m, forms[q].storage) > left || (q > 0 && !may_shrink)) {
            continue;
        }
        *chosen = &forms[q];
        if (q > 0) {
            frgi_warn(ctx, W_STORE, "costs as %s need %zu bytes, %zu are left: they are %s",
                      store_name(forms[0].store), first, left, store_name(forms[q].store));
        }
        return FRG_OK;
    }
    if (count == 1) {
        FAIL(ctx, E_MEMORY, "costs as %s need %zu bytes, %zu are left", store_name(forms[0].store),
             first, left);
    }
    FAIL(ctx, E_MEMORY,
         "costs as %s need %zu bytes, %zu are left; as %s they need %zu (auto_store)",
         store_name(forms[0].store), first, left, store_name(forms[1].store),
         frgi_transport_bytes(ctx, n, m, forms[1].storage));
}
