/* qr_cpu.c - blocked Householder QR for one CPU level: one text, f32 and f64.
 *
 * Compiled once per level with -DISA=plain, v3, v4; each compilation exports one table.  Vectors
 * are GCC's vector extension, as long as the level's registers, so that no vector is split behind
 * our back.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/registers.h"
#include "linalg/qr_ops.h"
#include "linalg/shuffle.h"

#define INLINE     static inline __attribute__((always_inline))
#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)
#define FN(name)   CAT(name, SUF)
#define UNROLL(n)  UNROLL_(GCC unroll n)
#define UNROLL_(x) _Pragma(#x)

/* TOGETHER: columns that a tile keeps in registers; WIDEST: of inner products, whose tile has two
 * vectors a column where updates have three; BAND: columns updated at a time, which stay in L2. */
#if VECTOR_BYTES == 64
#define TOGETHER 8
#define WIDEST   8
#define BAND     32
#elif VECTOR_BYTES == 32
#define TOGETHER 4
#define WIDEST   6
#define BAND     48
#else
#define TOGETHER 4
#define WIDEST   4
#define BAND     32
#endif

typedef float vec_f32 __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef int32_t mask_f32 __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef double vec_f64 __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef int64_t mask_f64 __attribute__((vector_size(VECTOR_BYTES), may_alias));

#define SUF     f32
#define real    float
#define integer int32_t
#define UNIT    0x1p-24f
#define ROOT    sqrtf
#include "linalg/qr_cpu.tmpl.h"
#undef SUF
#undef real
#undef integer
#undef UNIT
#undef ROOT
#define SUF     f64
#define real    double
#define integer int64_t
#define UNIT    0x1p-53
#define ROOT    sqrt
#include "linalg/qr_cpu.tmpl.h"

/* Columns of a narrow panel.  us of one core, factor and form, panels of 16 and 32 (Zen 5 held to
 * AVX2): 64 and 72 at order 128, 407 and 430 at 256, 2940 and 3010 at 512, equal from 640 on.  A
 * chunk of V by rows has to fit. */
#define NARROW(suf) (int)CHUNK_##suf < (int)QR_PANEL ? 16 : QR_PANEL

#define OPS(suf)                                                                                   \
    {                                                                                              \
        .narrow = NARROW(suf), .factor = factor_##suf, .form = form_##suf,                         \
        .largest = largest_##suf, .scale = scale_##suf, .probe = probe_##suf                       \
    }

const frgi_qr_ops CAT(frgi_qr_table, ISA)[2] = {OPS(f32), OPS(f64)};
