/* gp_lanes_cpu.c - the steps of gp_lanes.h for one CPU level: one text, two types.
 *
 * Everything of order n^3 is one block of 4 x 4 vectors, sums over k of products of lanes:
 *
 *     factor     L_IJ L_JJ' = A_IJ - sum_{k<J} L_Ik L_Jk'    left-looking, by block columns
 *     triangle   X_IJ = -X_II sum_{J<=k<I} L_Ik X_kJ         X = L^-1, in place, by block rows
 *     inverse    K^-1_IJ = sum_{k>=I} X_kI' X_kJ             in place, by block rows
 *
 * n^3 flop a lane in n^2 vectors: the matrix stays in the L2 cache up to n = 128 (f64, 1 MiB).
 * Where there are 16 registers, a block is summed as two halves of 4 x 2. */
#include <math.h>
#include <string.h>

#include "core/registers.h"
#include "gp/gp_lanes.h"
#include "linalg/elementary.h"

#define INLINE      static inline __attribute__((always_inline))
#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define FN(name)    JOIN(name, SUFFIX)
#define EF(name)    JOIN(frgi_##name, SUFFIX)

enum { B = LANES_BLOCK, HALF = VECTOR_BYTES == 64 ? 4 : 2 };

#define SUFFIX f64
#define real   double
#define whole  int64_t
#define ROOT   sqrt
#define FAR    1e290
#include "gp/gp_lanes_cpu.tmpl.h"
#undef SUFFIX
#undef real
#undef whole
#undef ROOT
#undef FAR
#define SUFFIX f32
#define real   float
#define whole  int32_t
#define ROOT   sqrtf
#define FAR    1e30F
#include "gp/gp_lanes_cpu.tmpl.h"

const frgi_gp_lanes_ops JOIN(frgi_gp_lanes_ops, ISA)[2] = {
    {.value = value_f64, .gradient = gradient_f64, .width = VECTOR_BYTES / (int)sizeof(double)},
    {.value = value_f32, .gradient = gradient_f32, .width = VECTOR_BYTES / (int)sizeof(float)},
};
