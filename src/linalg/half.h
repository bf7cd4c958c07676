/* half.h - 16-bit floating-point numbers: bf16 (8 bits of exponent, 7 of fraction) and f16 (5 and
 * 10), and elements of any floating type. */
#ifndef FRGI_HALF_H
#define FRGI_HALF_H

#include <stdint.h>
#include <string.h>

#include "fourge/fourge.h"

static inline float frgi_from_bf16(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** To the nearest, ties to even; NaN stays NaN. */
static inline uint16_t frgi_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float frgi_from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31,
                   fraction = h & 1023;
    if (exponent == 0) { /* zero and denormals: fraction 2^-24, exact */
        const float x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    const uint32_t bits =
        sign | (exponent == 31 ? 255u << 23 : (exponent + 112) << 23) | fraction << 13;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** To the nearest, ties to even; beyond 65504 infinity; NaN stays NaN. */
static inline uint16_t frgi_to_f16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 255u << 23) {
        return (uint16_t)(sign | 0x7e00);
    }
    if (bits >= 143u << 23) { /* 65536 and above */
        return (uint16_t)(sign | 0x7c00);
    }
    if (bits < 113u << 23) { /* denormal: adding 1/2 leaves multiples of 2^-24 in the fraction */
        float y;
        memcpy(&y, &bits, sizeof y);
        y += 0.5f;
        memcpy(&bits, &y, sizeof bits);
        return (uint16_t)(sign | (bits - (126u << 23)));
    }
    bits += 0xfff + (bits >> 13 & 1) - (112u << 23);
    return (uint16_t)(sign | bits >> 13);
}

/** One element of type f64, f32, bf16 or f16, from and to any address. */
static inline double frgi_element_get(const char *at, frg_dtype t)
{
    uint16_t h;
    float s;
    double d;
    switch (t) {
    case FRG_F64:
        memcpy(&d, at, sizeof d);
        return d;
    case FRG_F32:
        memcpy(&s, at, sizeof s);
        return (double)s;
    case FRG_BF16:
        memcpy(&h, at, sizeof h);
        return (double)frgi_from_bf16(h);
    default:
        memcpy(&h, at, sizeof h);
        return (double)frgi_from_f16(h);
    }
}

static inline void frgi_element_put(char *at, frg_dtype t, double d)
{
    const float s = (float)d;
    const uint16_t h = t == FRG_BF16 ? frgi_to_bf16(s) : frgi_to_f16(s);
    switch (t) {
    case FRG_F64:
        memcpy(at, &d, sizeof d);
        return;
    case FRG_F32:
        memcpy(at, &s, sizeof s);
        return;
    default:
        memcpy(at, &h, sizeof h);
    }
}

/** x to one of the two numbers of a 16-bit type around it, the farther from zero with the
 *  probability that makes x the mean; `random` has 32 even bits.  Exact in the type, but for f16
 *  beyond its range. */
static inline float frgi_round_randomly(float x, frg_dtype t, uint32_t random)
{
    if (t == FRG_F16 && x > -0x1p-14f && x < 0x1p-14f) { /* multiples of 2^-24 */
        const double units = (double)x * 0x1p24, up = (double)random * 0x1p-32;
        return (float)(units < 0 ? -(int)(-units + up) : (int)(units + up)) * 0x1p-24f;
    }
    const uint32_t rest = t == FRG_BF16 ? 0xffff : 0x1fff;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000) == 0x7f800000) {
        return x;
    }
    bits = (bits + (random & rest)) & ~rest;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
