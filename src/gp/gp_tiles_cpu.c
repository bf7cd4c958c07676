/* gp_tiles_cpu.c - covariance functions over patches of pairs for one CPU level: one text, two
 * types.
 *
 * Compiled once per level with -DISA=plain, v3, v4; each compilation exports one table.
 */
#include <string.h>

#include "core/registers.h"
#include "gp/gp_tiles_ops.h"
#include "linalg/elementary.h"

#define CAT2_(a, b) a##_##b
#define CAT2(a, b)  CAT2_(a, b)
#define FN(name)    CAT2(name, SUF)
#define EF(name)    CAT2(frgi_##name, SUF)

/* Rows in chunks of constant length: whole vectors at every level, and no remainders. */
#define EACH_ROW(i)                                                                                \
    for (int base_##i = 0; base_##i < m; base_##i += GP_CHUNK)                                     \
        for (int i = base_##i; i < base_##i + GP_CHUNK; i++)

#define EACH_LINE(i, begin)                                                                        \
    for (int base_##i = (begin); base_##i < m; base_##i += LINE)                                   \
        for (int i = base_##i; i < base_##i + LINE; i++)
#define ALWAYS static inline __attribute__((always_inline))

/* Columns of x: for which the compiler knows the number; of a block that stays in the L1 cache;
 * from which on squares are kept instead of exponentials. */
enum { MOST_AT_ONCE = 8, BLOCK_DIMS = 32, WIDE_FROM = 25 };
enum { PIECES = 64 / VECTOR_BYTES, COLUMNS_AT_ONCE = 8 / PIECES }; /* 8 vectors of sums */

static const double TWO_PI = 6.283185307179586476925;

#define real float
#define SUF  f32
#define SQRT __builtin_sqrtf
#define LINE 16
#define FAR                                                                                        \
    1e30F /* arguments of logarithms stop here, coordinates at FARTHEST: k is 0 long before, */
#define FARTHEST 1e15 /* and nothing overflows */
#include "gp/gp_patch_cpu.tmpl.h"

#include "gp/gp_leaves_cpu.tmpl.h"

#include "gp/gp_periodic_cpu.tmpl.h"

#include "gp/gp_tiles_cpu.tmpl.h"

#include "gp/gp_radial_cpu.tmpl.h"
#undef real
#undef SUF
#undef SQRT
#undef LINE
#undef FAR
#undef FARTHEST
#define real     double
#define SUF      f64
#define SQRT     __builtin_sqrt
#define LINE     8
#define FAR      1e290
#define FARTHEST 1e145
#include "gp/gp_patch_cpu.tmpl.h"

#include "gp/gp_leaves_cpu.tmpl.h"

#include "gp/gp_periodic_cpu.tmpl.h"

#include "gp/gp_tiles_cpu.tmpl.h"

#include "gp/gp_radial_cpu.tmpl.h"

#define TABLE(suf)                                                                                 \
    {                                                                                              \
        .forward = forward_##suf, .backward = backward_##suf, .parameters = parameters_##suf,      \
        .inputs = inputs_##suf, .seed_weights = seed_weights_##suf, .trace = trace_##suf,          \
        .store = store_##suf, .seed_columns = seed_columns_##suf,                                  \
        .copy_weights = copy_weights_##suf, .seed_diagonal = seed_diagonal_##suf,                  \
        .read_diagonal = read_diagonal_##suf, .load_rows = load_rows_##suf,                        \
                                                                                                   \
        .fill_slot = fill_slot_##suf, .radial_build = radial_build_##suf,                          \
        .radial_pass = radial_pass_##suf                                                           \
    }

#pragma GCC visibility push(hidden)
extern const frgi_gp_tiles_ops CAT2(frgi_gp_tiles_table, ISA)[2];
#pragma GCC visibility pop
const frgi_gp_tiles_ops CAT2(frgi_gp_tiles_table, ISA)[2] = {TABLE(f64), TABLE(f32)};
