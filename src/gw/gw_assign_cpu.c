/* gw_assign_cpu.c - assignments in floats and in doubles, at one CPU level. */
#include "gw/gw_assign.h"
#include "gw/gw_lanes.h"

#define real     float
#define vec      lanes
#define mask     lane_mask
#define whole    int32_t
#define LANES    FLOATS
#define AN(name) single_##name
#define VN(name) lanes_##name
#include "gw/gw_assign.tmpl.h"
#undef real
#undef vec
#undef mask
#undef whole
#undef LANES
#undef AN
#undef VN
#define real     double
#define vec      reals
#define mask     real_mask
#define whole    int64_t
#define LANES    REALS
#define AN(name) double_##name
#define VN(name) reals_##name
#include "gw/gw_assign.tmpl.h"

#pragma GCC visibility push(hidden)
extern const frgi_assign_ops CAT(frgi_assign_ops, ISA)[2];
#pragma GCC visibility pop
#define OPS(type)                                                                                  \
    {                                                                                              \
        .two = type##_two, .begin = type##_begin, .finish = type##_finish,                         \
        .coarsen = type##_coarsen, .extend = type##_extend                                         \
    }
const frgi_assign_ops CAT(frgi_assign_ops, ISA)[2] = {OPS(double), OPS(single)};
