/* lanes.h - vectors of floats and of doubles as wide as the registers, for *_cpu.c files: a
 * text that needs 16 lanes takes 16 / FLOATS vectors.
 */
#ifndef FRGI_LANES_H
#define FRGI_LANES_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/registers.h"

#define INLINE     static inline __attribute__((always_inline))
#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)

#if VECTOR_BYTES == 64
#define OF_FLOATS(name, a, b) ((lanes)_mm512_##name##_ps((__m512)(a), (__m512)(b)))
#define OF_REALS(name, a, b)  ((reals)_mm512_##name##_pd((__m512d)(a), (__m512d)(b)))
#elif VECTOR_BYTES == 32
#define OF_FLOATS(name, a, b) ((lanes)_mm256_##name##_ps((__m256)(a), (__m256)(b)))
#define OF_REALS(name, a, b)  ((reals)_mm256_##name##_pd((__m256d)(a), (__m256d)(b)))
#elif defined(__SSE2__)
#define OF_FLOATS(name, a, b) ((lanes)_mm_##name##_ps((__m128)(a), (__m128)(b)))
#define OF_REALS(name, a, b)  ((reals)_mm_##name##_pd((__m128d)(a), (__m128d)(b)))
#endif

enum { FLOATS = VECTOR_BYTES / 4, REALS = VECTOR_BYTES / 8 };

typedef float lanes __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef int32_t lane_mask __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef double reals __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef int64_t real_mask __attribute__((vector_size(VECTOR_BYTES), may_alias));

INLINE lanes lanes_at(const float *p)
{
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void lanes_put(float *p, lanes v)
{
    memcpy(p, &v, sizeof v);
}

INLINE lanes lanes_all(float x)
{
    return (lanes){} + x;
}

INLINE reals reals_at(const double *p)
{
    reals v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void reals_put(double *p, reals v)
{
    memcpy(p, &v, sizeof v);
}

/** The upper half on the lower until one is left. */
INLINE double reals_sum(reals v)
{
#if VECTOR_BYTES == 64
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
#elif VECTOR_BYTES == 32
    return (v[0] + v[2]) + (v[1] + v[3]);
#else
    return v[0] + v[1];
#endif
}

INLINE void lanes_widen(lanes v, reals *low, reals *high)
{
    typedef float half __attribute__((vector_size(VECTOR_BYTES / 2)));
    half part[2];
    memcpy(part, &v, sizeof part);
    *low = __builtin_convertvector(part[0], reals);
    *high = __builtin_convertvector(part[1], reals);
}

INLINE reals reals_of_floats(const float *p)
{
    float half __attribute__((vector_size(VECTOR_BYTES / 2)));
    memcpy(&half, p, sizeof half);
    return __builtin_convertvector(half, reals);
}

INLINE double lanes_sum(lanes v)
{
    reals low, high;
    lanes_widen(v, &low, &high);
    return reals_sum(low + high);
}

/** a where a < b, else b. */
INLINE lanes lanes_smaller(lanes a, lanes b)
{
#if defined(OF_FLOATS)
    return OF_FLOATS(min, a, b);
#else
    const lane_mask m = a < b;
    return (lanes)((m & (lane_mask)a) | (~m & (lane_mask)b));
#endif
}

/** a where a > b, else b. */
INLINE lanes lanes_larger(lanes a, lanes b)
{
#if defined(OF_FLOATS)
    return OF_FLOATS(max, a, b);
#else
    const lane_mask m = a > b;
    return (lanes)((m & (lane_mask)a) | (~m & (lane_mask)b));
#endif
}

INLINE reals reals_smaller(reals a, reals b)
{
#if defined(OF_REALS)
    return OF_REALS(min, a, b);
#else
    const real_mask m = a < b;
    return (reals)((m & (real_mask)a) | (~m & (real_mask)b));
#endif
}

INLINE reals reals_larger(reals a, reals b)
{
#if defined(OF_REALS)
    return OF_REALS(max, a, b);
#else
    const real_mask m = a > b;
    return (reals)((m & (real_mask)a) | (~m & (real_mask)b));
#endif
}

/** Lane l: a b of the low halves and of the high ones, added; halves are 16-bit integers. */
INLINE lane_mask lanes_pairs(lane_mask a, lane_mask b)
{
#if VECTOR_BYTES == 64
    return (lane_mask)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif VECTOR_BYTES == 32
    return (lane_mask)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (lane_mask)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

/** Bit l: a[l] < b[l]. */
INLINE unsigned lanes_less(lanes a, lanes b)
{
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
#elif defined(__AVX2__)
    return (unsigned)_mm256_movemask_ps((__m256)(a < b));
#elif defined(__SSE2__)
    return (unsigned)_mm_movemask_ps((__m128)(a < b));
#else
    const lane_mask m = a < b;
    unsigned bits = 0;
    for (int l = 0; l < FLOATS; l++) {
        bits |= (unsigned)(m[l] & 1) << l;
    }
    return bits;
#endif
}

/** The same of doubles. */
INLINE unsigned reals_less(reals a, reals b)
{
#if defined(__AVX512F__)
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ);
#elif defined(__AVX2__)
    return (unsigned)_mm256_movemask_pd((__m256d)(a < b));
#elif defined(__SSE2__)
    return (unsigned)_mm_movemask_pd((__m128d)(a < b));
#else
    const real_mask m = a < b;
    unsigned bits = 0;
    for (int l = 0; l < REALS; l++) {
        bits |= (unsigned)(m[l] & 1) << l;
    }
    return bits;
#endif
}

/** 2^z = 2^n 2^r: r = z - n in [0, 1) by a minimax polynomial of degree 5 (relative error 7.5e-8,
 *  1.5e-7 with roundings), n into the exponent.  As z is in units of log 2 there is no reduction by
 *  a constant, and r is exact.  With AVX-512 r and 2^n are an instruction each, and what is below
 *  the range becomes 0; elsewhere n is found by adding 1.5 2^23 and z is kept in -126 .. 127. */
INLINE lanes lanes_power(lanes z)
{
#if defined(__AVX512F__)
    const lanes r = (lanes)_mm512_reduce_ps((__m512)z, 0x09);
    lanes q = lanes_all(0x1.ec320ap-10f);
    q = q * r + 0x1.26900cp-7f;
    q = q * r + 0x1.c95446p-5f;
    q = q * r + 0x1.ebd5a8p-3f;
    q = q * r + 0x1.62e4f6p-1f;
    q = q * r + 0x1.fffffep-1f;
    return (lanes)_mm512_scalef_ps((__m512)q, (__m512)z);
#else
    const lanes magic = lanes_all(0x1.8p23f);
    z = lanes_smaller(lanes_larger(z, lanes_all(-126)), lanes_all(127));
    const lanes t = z + magic, n = t - magic, r = z - n;
    lanes q = lanes_all(0x1.5c08e6p-10f);
    q = q * r + 0x1.3d0c52p-7f;
    q = q * r + 0x1.c6b6e4p-5f;
    q = q * r + 0x1.ebf918p-3f;
    q = q * r + 0x1.62e428p-1f;
    q = q * r + 0x1.000002p+0f;
    return (lanes)((lane_mask)q + ((lane_mask)t << 23));
#endif
}

#endif
