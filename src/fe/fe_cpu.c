/* fe_cpu.c - the steps of fixed effects for one CPU level: one template, two types, four
 * widths (three where registers hold fewer than eight doubles).
 *
 * Compiled once per level with -DISA=plain, v3, v4; each compilation exports its two tables.
 */
#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "core/registers.h"
#include "fe/fe_cg.h"
#include "fe/fe_rows.h"
#include "fe/fe_stream.h"

#define INLINE         static inline __attribute__((always_inline))
#define CAT3_(a, b, c) a##_##b##_##c
#define CAT3(a, b, c)  CAT3_(a, b, c)
#define CAT2_(a, b)    a##_##b
#define CAT2(a, b)     CAT2_(a, b)
#define FN(name)       CAT2(name, LANES)
#define RN(name)       CAT3(name, SUF, LANES)
#define CN(name)       CAT3(name, SUF, LANES)

/* One column takes half of a vec2: GCC keeps vectors of 8 bytes in general registers and passes
 * them to each addition through memory, four times as slow. */
typedef double vec2 __attribute__((vector_size(16)));
typedef float svec2 __attribute__((vector_size(8)));
typedef int64_t mask2 __attribute__((vector_size(16)));
typedef double vec4 __attribute__((vector_size(32)));
typedef float svec4 __attribute__((vector_size(16)));
typedef int64_t mask4 __attribute__((vector_size(32)));
typedef double vec8 __attribute__((vector_size(64)));
typedef float svec8 __attribute__((vector_size(32)));
typedef int64_t mask8 __attribute__((vector_size(64)));

#define LANES 1
#define vec   vec2
#define svec  svec2
#define mask  mask2
#include "fe/fe_lanes.tmpl.h"
#undef LANES
#undef vec
#undef svec
#undef mask
#define LANES 2
#define vec   vec2
#define svec  svec2
#define mask  mask2
#include "fe/fe_lanes.tmpl.h"
#undef LANES
#undef vec
#undef svec
#undef mask
#define LANES 4
#define vec   vec4
#define svec  svec4
#define mask  mask4
#include "fe/fe_lanes.tmpl.h"
#undef LANES
#undef vec
#undef svec
#undef mask
#if VECTOR_BYTES == 64 /* two registers for eight columns are slower than two blocks of four */
#define LANES 8
#define vec   vec8
#define svec  svec8
#define mask  mask8
#include "fe/fe_lanes.tmpl.h"
#define WIDEST(ops, suf) ops(suf, 8)
#else
#define WIDEST(ops, suf)                                                                           \
    {                                                                                              \
        0                                                                                          \
    }
#endif

#define ROW_OPS(suf, lanes)                                                                        \
    {                                                                                              \
        .rhs = rhs_##suf##_##lanes, .residual = residual_##suf##_##lanes,                          \
        .add_pairs = add_pairs_##lanes                                                             \
    }
#define REDUCED_OPS(suf, lanes)                                                                    \
    {                                                                                              \
        .apply = apply_##suf##_##lanes, .add_pairs = add_pairs_##lanes,                            \
        .apply_low = apply_low_##suf##_##lanes, .add_low = add_low_##suf##_##lanes,                \
        .apply_coupling = apply_coupling_##suf##_##lanes,                                          \
        .apply_block22 = apply_block22_##suf##_##lanes, .spmv = spmv_##suf##_##lanes,              \
        .advance = advance_##suf##_##lanes, .dot = dot_##suf##_##lanes,                            \
        .update = update_##suf##_##lanes, .direction = direction_##suf##_##lanes                   \
    }
#define WIDTHS(ops, suf)                                                                           \
    {                                                                                              \
        ops(suf, 1), ops(suf, 2), ops(suf, 4), WIDEST(ops, suf)                                    \
    }

#pragma GCC visibility push(hidden)
extern const fe_row_ops CAT2(frgi_fe_row_table, ISA)[2][FE_LANE_KINDS];
extern const fe_reduced_ops CAT2(frgi_fe_reduced_table, ISA)[2][FE_LANE_KINDS];
#pragma GCC visibility pop
const fe_row_ops CAT2(frgi_fe_row_table, ISA)[2][FE_LANE_KINDS] = {WIDTHS(ROW_OPS, f64),
                                                                   WIDTHS(ROW_OPS, f32)};
const fe_reduced_ops CAT2(frgi_fe_reduced_table, ISA)[2][FE_LANE_KINDS] = {
    WIDTHS(REDUCED_OPS, f64), WIDTHS(REDUCED_OPS, f32)};
