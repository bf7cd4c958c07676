/* dialect.h - what a kernel text is written in: OpenCL C 1.2, CUDA and plain C from the same lines.
 *
 *     KERNEL void axpy(ITEM GLOBAL real *y, GLOBAL const real *x, real a, i64 n)
 *     {
 *         for (i64 i = GID0 * CHUNK + LID0; i < least(n, (GID0 + 1) * CHUNK); i += LSIZE0)
 *             y[i] += a * x[i];
 *     }
 *
 * A grid of groups GID0 (and GID1), each of LSIZE0 work-items LID0; LSIZE0 is a power of two up to
 * GROUP_MOST, and 1 in plain C.  What a group computes depends on GID0, GID1 and the arguments
 * alone; its work-items share it by strides of LSIZE0.  Groups run in any order and never wait for
 * each other.  BARRIER and the group reductions are reached by all work-items of a group.
 *
 * A kernel's arguments are ITEM, then GLOBAL pointers and values of i32, u32, i64, real and wide,
 * each with its one name; a kernel returns void and begins a line with KERNEL.  `real` is the type
 * of elements, `wide` that of sums; R(0.5) and W(0.5) are their numbers, as a plain 0.5 is a double.
 * There are no atomics, no recursion, no arrays in arguments, no #include.
 */
#if defined(__OPENCL_VERSION__)

#define KERNEL   __kernel
#define FUNCTION static
#define INLINED  __attribute__((always_inline))
#define GLOBAL   __global
#define LOCAL    __local
#define RESTRICT restrict
#define ITEM
#define LOCAL_MEM(type, name, count) __local type name[count]
#define GID0                         ((long)get_group_id(0))
#define GID1                         ((long)get_group_id(1))
#define LID0                         ((int)get_local_id(0))
#define LSIZE0                       ((int)get_local_size(0))
#define BARRIER                      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef ushort u16;

#elif defined(__CUDACC__) || defined(__CUDACC_RTC__)

#define KERNEL   extern "C" __global__
#define FUNCTION static __device__ inline
#define INLINED
#define GLOBAL
#define LOCAL
#define RESTRICT __restrict__
#define ITEM
#define LOCAL_MEM(type, name, count) __shared__ type name[count]
#define GID0                         ((i64)blockIdx.x)
#define GID1                         ((i64)blockIdx.y)
#define LID0                         ((int)threadIdx.x)
#define LSIZE0                       ((int)blockDim.x)
#define BARRIER                      __syncthreads()
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned short u16;

#else

#include <math.h>
#include <stdint.h>
#define FOURGE_PLAIN_C 1
#define KERNEL         static
#define FUNCTION       static inline
#define INLINED
#define GLOBAL
#define LOCAL
#define RESTRICT                     restrict
#define ITEM                         const frgi_item *item_,
#define LOCAL_MEM(type, name, count) type name[count]
#define GID0                         (item_->group[0])
#define GID1                         (item_->group[1])
#define LID0                         0
#define LSIZE0                       1
#define BARRIER                      ((void)0)
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
typedef uint16_t u16;

#endif

/* ---- numbers: the prelude of a program's type defines one of FOURGE_F32, _F64, _MIXED ---- */

#if defined(__OPENCL_VERSION__) && !defined(FOURGE_F32)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#if defined(FOURGE_F64)
typedef double real;
typedef double wide;
#elif defined(FOURGE_MIXED)
typedef float real;
typedef double wide;
#else
typedef float real;
typedef float wide;
#endif
#define R(x) ((real)(x))
#define W(x) ((wide)(x))

/* Functions of either type.  Plain C chooses by the argument, as the other two do by themselves. */
#if defined(FOURGE_PLAIN_C)
#define EITHER(name, x) _Generic((x), float : name##f, default : name)
#define EXP(x)          EITHER(exp, x)(x)
#define LOG(x)          EITHER(log, x)(x)
#define SQRT(x)         EITHER(sqrt, x)(x)
#define FABS(x)         EITHER(fabs, x)(x)
#define FMAX(x, y)      EITHER(fmax, x)(x, y)
#define FMIN(x, y)      EITHER(fmin, x)(x, y)
#define FMA(x, y, z)    EITHER(fma, x)(x, y, z)
#define FLOOR(x)        EITHER(floor, x)(x)
#else
#define EXP(x)       exp(x)
#define LOG(x)       log(x)
#define SQRT(x)      sqrt(x)
#define FABS(x)      fabs(x)
#define FMAX(x, y)   fmax(x, y)
#define FMIN(x, y)   fmin(x, y)
#define FMA(x, y, z) fma(x, y, z)
#define FLOOR(x)     floor(x)
#endif

FUNCTION i64 least(i64 a, i64 b)
{
    return a < b ? a : b;
}

/* ---- reductions of a group, in a fixed order ----
 *
 *     LOCAL_MEM(wide, scratch, GROUP_MOST);
 *     const wide sum = group_sum_wide(x, scratch);
 *
 * All work-items are given the result; `scratch` may be used again afterwards.  The sum is a binary
 * tree over the work-items, so its bits depend on LSIZE0 and on nothing else.  group_scan gives each
 * the sum of those up to itself.  Suffixes: _real, _wide, _i64.
 *
 * They are inlined: of a function that is called three times or more with the same LOCAL_MEM, PoCL
 * 3.1 makes one with that memory as a constant, and all groups share it. */
#define GROUP_MOST 256

#if defined(FOURGE_PLAIN_C)
#define GROUP_REDUCTION(name, type, combine)                                                       \
    FUNCTION type name(type x, LOCAL type *scratch)                                                \
    {                                                                                              \
        (void)scratch;                                                                             \
        return x;                                                                                  \
    }
#define GROUP_SCAN(name, type) GROUP_REDUCTION(name, type, 0)
#else
#define GROUP_REDUCTION(name, type, combine)                                                       \
    INLINED FUNCTION type name(type x, LOCAL type *scratch)                                        \
    {                                                                                              \
        scratch[LID0] = x;                                                                         \
        BARRIER;                                                                                   \
        for (int half_ = LSIZE0 / 2; half_ > 0; half_ /= 2) {                                      \
            if (LID0 < half_) {                                                                    \
                const type a = scratch[LID0], b = scratch[LID0 + half_];                           \
                scratch[LID0] = combine;                                                           \
            }                                                                                      \
            BARRIER;                                                                               \
        }                                                                                          \
        const type all = scratch[0];                                                               \
        BARRIER;                                                                                   \
        return all;                                                                                \
    }
#define GROUP_SCAN(name, type)                                                                     \
    INLINED FUNCTION type name(type x, LOCAL type *scratch)                                        \
    {                                                                                              \
        scratch[LID0] = x;                                                                         \
        BARRIER;                                                                                   \
        for (int step = 1; step < LSIZE0; step *= 2) {                                             \
            const type before = LID0 >= step ? scratch[LID0 - step] : (type)0;                     \
            BARRIER;                                                                               \
            scratch[LID0] += before;                                                               \
            BARRIER;                                                                               \
        }                                                                                          \
        const type sum = scratch[LID0];                                                            \
        BARRIER;                                                                                   \
        return sum;                                                                                \
    }
#endif

GROUP_REDUCTION(group_sum_real, real, a + b)
GROUP_REDUCTION(group_sum_wide, wide, a + b)
GROUP_REDUCTION(group_sum_i64, i64, a + b)
GROUP_REDUCTION(group_max_real, real, a > b ? a : b)
GROUP_REDUCTION(group_max_wide, wide, a > b ? a : b)
GROUP_REDUCTION(group_max_i64, i64, a > b ? a : b)
GROUP_REDUCTION(group_min_real, real, a < b ? a : b)
GROUP_REDUCTION(group_min_wide, wide, a < b ? a : b)
GROUP_REDUCTION(group_min_i64, i64, a < b ? a : b)
GROUP_SCAN(group_scan_real, real)
GROUP_SCAN(group_scan_wide, wide)
GROUP_SCAN(group_scan_i64, i64)
