/* gp_lanes.c - the kernels of gp_lanes.h for the machine at hand. */
#include "gp/gp_lanes.h"

const frgi_gp_lanes_ops *frgi_gp_lanes_of(const frg_context *ctx, frg_dtype dtype)
{
    static const frgi_gp_lanes_ops *const levels[ISA_COUNT] = EACH_LEVEL(frgi_gp_lanes_ops);
    return &levels[frgi_context_isa(ctx)][dtype == FRG_F64 ? 0 : 1];
}
