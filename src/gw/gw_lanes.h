/* gw_lanes.h - sixteen floats as one vector, for the *_cpu.c files of this room.  GCC splits it where the
 * registers are narrower. */
#ifndef FRGI_GW_LANES_H
#define FRGI_GW_LANES_H

#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define INLINE     static inline __attribute__((always_inline))
#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)

typedef float lanes __attribute__((vector_size(64), may_alias));
typedef int32_t lane_mask __attribute__((vector_size(64), may_alias));

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

/** a where the mask is set, else b. */
INLINE lanes lanes_choose(lane_mask m, lanes a, lanes b)
{
    return (lanes)((m & (lane_mask)a) | (~m & (lane_mask)b));
}

/** a where a < b, else b. */
INLINE lanes lanes_smaller(lanes a, lanes b)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_min_ps((__m512)a, (__m512)b);
#else
    return lanes_choose(a < b, a, b);
#endif
}

INLINE lanes lanes_larger(lanes a, lanes b)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_max_ps((__m512)a, (__m512)b);
#else
    return lanes_choose(a > b, a, b);
#endif
}

/** Bit l: a[l] < b[l]. */
INLINE unsigned lanes_less(lanes a, lanes b)
{
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
#else
    const lane_mask m = a < b;
    unsigned bits = 0;
    for (int l = 0; l < 16; l++) {
        bits |= (unsigned)(m[l] & 1) << l;
    }
    return bits;
#endif
}

/** Is a[l] < b[l] anywhere? */
INLINE int lanes_any_less(lanes a, lanes b)
{
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ) != 0;
#else
    const lane_mask m = a < b;
    int64_t half[8], any = 0;
    memcpy(half, &m, sizeof half);
    for (int i = 0; i < 8; i++) {
        any |= half[i];
    }
    return any != 0;
#endif
}

#endif
