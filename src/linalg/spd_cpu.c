/* spd_cpu.c - the kernels of spd_ops.h for one CPU level: one text, two types.
 *
 * All arithmetic of order n^3 is one shape held in registers, three vectors of rows by 8 columns
 * (24 accumulators of the 32 registers of AVX-512) or by 4 (12 of 16 with AVX2; two by 4 without
 * FMA):
 *
 *     c[r][j] = sum_kk a[r][kk] b[j][kk]          a: vectors, b: broadcasts
 *
 * Sums run over kk in order for each entry, whatever the tiling and the thread. */
#include "linalg/spd_ops.h"

#include <math.h>
#include <string.h>

#include "core/registers.h"
#include "linalg/shuffle.h"

#define INLINE      static inline __attribute__((always_inline))
#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define FN(name)    JOIN(name, SUFFIX)

#if VECTOR_BYTES == 64
enum { VECTOR_ROWS = 3, TILE_COLUMNS = 8 };
#define INDICES_f64 0, 1, 2, 3, 4, 5, 6, 7
#define INDICES_f32 INDICES_f64, 8, 9, 10, 11, 12, 13, 14, 15
#elif VECTOR_BYTES == 32
enum { VECTOR_ROWS = 3, TILE_COLUMNS = 4 };
#define INDICES_f64 0, 1, 2, 3
#define INDICES_f32 INDICES_f64, 4, 5, 6, 7
#else
enum { VECTOR_ROWS = 2, TILE_COLUMNS = 4 };
#define INDICES_f64 0, 1
#define INDICES_f32 INDICES_f64, 2, 3
#endif
#define INDICES FN(INDICES)
enum { PIECES = SPD_LINE / VECTOR_BYTES }; /* vectors a group */
/* Groups of rows at a time of a triangle: fewer leave less of what lies beside its slope, if they
 * fill the registers. */
enum { SLOPE_GROUPS = VECTOR_BYTES == 64 ? 2 : 3 };
enum { SPLIT_FROM = 32 }; /* terms of a sum that are worth cutting into stretches */

/** What a tile does with what it has summed. */
typedef enum { STORE_SET, STORE_NEGATIVE, STORE_MINUS, STORE_PLUS } store;

#define SUFFIX f64
#define real   double
#define whole  int64_t
#define ROOT   sqrt
#include "linalg/spd_cpu.tmpl.h"
#undef SUFFIX
#undef real
#undef whole
#undef ROOT
#define SUFFIX f32
#define real   float
#define whole  int32_t
#define ROOT   sqrtf
#include "linalg/spd_cpu.tmpl.h"

#define OPS(t)                                                                                     \
    {                                                                                              \
        .cholesky = cholesky_##t, .invert = invert_##t, .transpose = transpose_##t,                \
        .trsm = trsm_##t, .update_panel = update_panel_##t,                                        \
        .transpose_panel = transpose_panel_##t, .square = square_##t, .pack = pack_##t,            \
        .pack_transposed = pack_transposed_##t, .pack_symmetric = pack_symmetric_##t,              \
        .update = {[SPD_MINUS] = update_minus_##t, [SPD_PLUS] = update_plus_##t},                  \
        .forward = forward_##t, .backward = backward_##t,                                          \
        .times = {[SPD_MINUS] = times_minus_##t, [SPD_PLUS] = times_plus_##t},                     \
        .times_transposed =                                                                        \
            {[SPD_MINUS] = transposed_minus_##t, [SPD_PLUS] = transposed_plus_##t},                \
        .times_symmetric = times_symmetric_##t                                                     \
    }
const frgi_spd_ops JOIN(frgi_spd_ops,
                        ISA)[SPD_TYPES] = {[SPD_F64] = OPS(f64), [SPD_F32] = OPS(f32)};
