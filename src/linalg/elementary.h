/* elementary.h - exp, log, log(1 + x), sine and cosine of turns, for loops that the compiler turns
 * into vectors.
 *
 * Every function is branch-free straight-line code on one number: selects, adds, shifts and logical
 * operations that SSE2, AVX2 and AVX-512 all have, so that a loop over an array becomes vector code
 * at every CPU level. libm's functions do not (a call each, 10-40 times slower).  Argument
 * reduction by adding 1.5 * 2^52 (2^23 in float), which rounds to an integer and leaves it in the
 * low bits; polynomials are minimax (Remez, relative error below 1/20 of a unit in the last place).
 *
 *                 error       range and special values
 *     exp         < 1.5 ulp 0 below -708 (-86.9 in float): no subnormal results; inf above 709.78
 *                 (88.72)
 *     log         < 1 ulp     0 -> -inf, < 0 -> NaN, subnormals are right, inf -> inf
 *     log1p       < 1.5 ulp   x > -1 only
 *     sin, cos    < 2 ulp of 2 pi x; relative, also near the zeros: the reduction is exact; |x| >
 *                 2^51 (2^22)
 *                             are taken as whole numbers
 *
 * NaN goes through all of them.  The bounds are measured by tests/unit/test_elementary.c at every
 * CPU level. Muller (2016), Elementary Functions, chapters 3 and 11; Tang (1990) for the split of
 * log.
 */
#ifndef FRGI_ELEMENTARY_H
#define FRGI_ELEMENTARY_H

#include <stdint.h>

#define FRGI_ELEMENTARY static inline __attribute__((always_inline, unused))

FRGI_ELEMENTARY uint64_t frgi_bits_f64(double x)
{
    uint64_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
FRGI_ELEMENTARY double frgi_of_bits_f64(uint64_t u)
{
    double x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}
FRGI_ELEMENTARY uint32_t frgi_bits_f32(float x)
{
    uint32_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
FRGI_ELEMENTARY float frgi_of_bits_f32(uint32_t u)
{
    float x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}

/* ---- exp: x = k log 2 + r, |r| <= log(2)/2, e^x = 2^k (1 + r + r^2 q(r)) --------------------- */

/** 1 + r + r^2 q(r), and t = 1.5 2^52 + k, whose low bits are k. */
FRGI_ELEMENTARY double frgi_exp_reduced_f64(double x, double *t)
{
    const double shift = 0x1.8p52, sum = x * 0x1.71547652b82fep+0 + shift, k = sum - shift;
    const double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    double q = 0x1.ad7f6719f56e7p-26;
    q = q * r + 0x1.28ad7299fddcap-22;
    q = q * r + 0x1.71df255693629p-19;
    q = q * r + 0x1.a0199a0ca20e7p-16;
    q = q * r + 0x1.a01a012a5627ap-13;
    q = q * r + 0x1.6c16c18429fa7p-10;
    q = q * r + 0x1.1111111127be8p-7;
    q = q * r + 0x1.555555555087dp-5;
    q = q * r + 0x1.55555555554fap-3;
    q = q * r + 0x1.000000000000ap-1;
    *t = sum;
    return 1 + (r + r * r * q);
}

FRGI_ELEMENTARY float frgi_exp_reduced_f32(float x, float *t)
{
    const float shift = 0x1.8p23f, sum = x * 0x1.715476p+0f + shift, k = sum - shift;
    const float r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    float q = 0x1.6a247ep-10f;
    q = q * r + 0x1.1239e2p-7f;
    q = q * r + 0x1.5558f2p-5f;
    q = q * r + 0x1.555492p-3f;
    q = q * r + 0x1.fffffcp-2f;
    *t = sum;
    return 1 + (r + r * r * q);
}

/** 2^(k-1) and not 2^k: k = 1024 is reached below the overflow.  What is computed outside the range
 *  is replaced. */
FRGI_ELEMENTARY double frgi_exp_f64(double x)
{
    double t;
    const double e = 2 * frgi_exp_reduced_f64(x, &t);
    const double value = e * frgi_of_bits_f64((frgi_bits_f64(t) + 1022) << 52);
    const double low = x < -708.0 ? 0.0 : value;
    return x > 709.9 ? __builtin_inf() : low;
}

FRGI_ELEMENTARY float frgi_exp_f32(float x)
{
    float t;
    const float e = 2 * frgi_exp_reduced_f32(x, &t);
    const float value = e * frgi_of_bits_f32((frgi_bits_f32(t) + 126) << 23);
    const float low = x < -86.9f ? 0.0f : value;
    return x > 88.8f ? __builtin_inff() : low;
}

/** The same for x <= 700 (80 in float): a quarter faster, for kernels, weights and
 *  probabilities. */
FRGI_ELEMENTARY double frgi_exp_low_f64(double x)
{
    double t;
    const double e = frgi_exp_reduced_f64(x, &t);
    return x < -708.0 ? 0.0 : e * frgi_of_bits_f64((frgi_bits_f64(t) + 1023) << 52);
}

FRGI_ELEMENTARY float frgi_exp_low_f32(float x)
{
    float t;
    const float e = frgi_exp_reduced_f32(x, &t);
    return x < -86.9f ? 0.0f : e * frgi_of_bits_f32((frgi_bits_f32(t) + 127) << 23);
}

/* ---- log: x = 2^k m, sqrt(1/2) <= m < sqrt(2), f = m - 1, s = f / (2 + f), log m = 2 atanh s - */

/** k log 2 + low + log(1 + f); `low` is a small correction. */
FRGI_ELEMENTARY double frgi_log_sum_f64(double k, double f, double low)
{
    const double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double p = 0x1.2f07049fbfbe3p-3;
    p = p * z + 0x1.39a1935140022p-3;
    p = p * z + 0x1.7466405abd067p-3;
    p = p * z + 0x1.c71c5202b91e8p-3;
    p = p * z + 0x1.24924941f8c7ep-2;
    p = p * z + 0x1.999999997fd38p-2;
    p = p * z + 0x1.5555555555592p-1;
    return k * 0x1.62e42feep-1 -
           ((half - (s * (half + z * p) + (k * 0x1.a39ef35793c76p-33 + low))) - f);
}

FRGI_ELEMENTARY float frgi_log_sum_f32(float k, float f, float low)
{
    const float s = f / (2 + f), z = s * s, half = 0.5f * f * f;
    float p = 0x1.e2f7d6p-3f;
    p = p * z + 0x1.2438cep-2f;
    p = p * z + 0x1.999a7ap-2f;
    p = p * z + 0x1.555554p-1f;
    return k * 0x1.62e4p-1f - ((half - (s * (half + z * p) + (k * 0x1.7f7d1cp-20f + low))) - f);
}

/** Exponent as a number and mantissa, from the bits of a positive normal x counted from
 *  sqrt(1/2). */
FRGI_ELEMENTARY double frgi_log_exponent_f64(uint64_t u)
{
    return frgi_of_bits_f64((u >> 52) | 0x4330000000000000u) - (0x1p52 + 1023);
}
FRGI_ELEMENTARY double frgi_log_mantissa_f64(uint64_t u)
{
    return frgi_of_bits_f64((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
}
FRGI_ELEMENTARY float frgi_log_exponent_f32(uint32_t u)
{
    return (float)((int32_t)(u >> 23) - 127);
}
FRGI_ELEMENTARY float frgi_log_mantissa_f32(uint32_t u)
{
    return frgi_of_bits_f32((u & 0x007fffffu) + 0x3f3504f3u);
}

FRGI_ELEMENTARY double frgi_log_f64(double x)
{
    const double y = x < 0x1p-1022 ? x * 0x1p54 : x;
    const uint64_t u = frgi_bits_f64(y) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    const double k = frgi_log_exponent_f64(u) - (x < 0x1p-1022 ? 54.0 : 0.0);
    const double value = frgi_log_sum_f64(k, frgi_log_mantissa_f64(u) - 1, 0);
    const double at_zero = x == 0 ? -__builtin_inf() : __builtin_nan("");
    const double proper = x > 0 ? value : at_zero;
    return x < __builtin_inf() ? proper : x; /* inf, NaN */
}

FRGI_ELEMENTARY float frgi_log_f32(float x)
{
    const float y = x < 0x1p-126f ? x * 0x1p25f : x;
    const uint32_t u = frgi_bits_f32(y) + (0x3f800000u - 0x3f3504f3u);
    const float k = frgi_log_exponent_f32(u) - (x < 0x1p-126f ? 25.0f : 0.0f);
    const float value = frgi_log_sum_f32(k, frgi_log_mantissa_f32(u) - 1, 0);
    const float at_zero = x == 0 ? -__builtin_inff() : __builtin_nanf("");
    const float proper = x > 0 ? value : at_zero;
    return x < __builtin_inff() ? proper : x;
}

/** log(1 + x), x > -1: where 1 + x stays in the first octave f is x itself, elsewhere what the sum
 *  lost, c = 1 + x - w, comes back as c / w. */
FRGI_ELEMENTARY double frgi_log1p_f64(double x)
{
    const double w = 1 + x, lost = x < 1 ? x - (w - 1) : 1 - (w - x);
    const uint64_t u = frgi_bits_f64(w) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    const double k = frgi_log_exponent_f64(u), m = frgi_log_mantissa_f64(u);
    const double value = frgi_log_sum_f64(k, k != 0 ? m - 1 : x, k != 0 ? lost / w : 0.0);
    return x < __builtin_inf() ? value : x;
}

FRGI_ELEMENTARY float frgi_log1p_f32(float x)
{
    const float w = 1 + x, lost = x < 1 ? x - (w - 1) : 1 - (w - x);
    const uint32_t u = frgi_bits_f32(w) + (0x3f800000u - 0x3f3504f3u);
    const float k = frgi_log_exponent_f32(u), m = frgi_log_mantissa_f32(u);
    const float value = frgi_log_sum_f32(k, k != 0 ? m - 1 : x, k != 0 ? lost / w : 0.0f);
    return x < __builtin_inff() ? value : x;
}

/* ---- sine and cosine of 2 pi x: x = q/4 + r, |r| <= 1/8, exactly ----------------------------- */

/** *sine = sin 2 pi x, *cosine = cos 2 pi x.  An odd q swaps them, bit 1 of q and of q + 1 gives
 *  the signs. */
FRGI_ELEMENTARY void frgi_turns_f64(double x, double *sine, double *cosine)
{
    const double size = x < 0 ? -x : x, in = size < 0x1p51 ? x : x - x;
    const double shift = 0x1.8p52, t = 4 * (in - ((in + shift) - shift)) + shift;
    const double r = (in - ((in + shift) - shift)) - 0.25 * (t - shift), z = r * r;
    const uint64_t q = frgi_bits_f64(t);
    double s = 0x1.e403b0d6501abp+1;
    s = s * z - 0x1.e300a604dfea8p+3;
    s = s * z + 0x1.5078301b0dc11p+5;
    s = s * z - 0x1.32d2cce332e2cp+6;
    s = s * z + 0x1.466bc67758d81p+6;
    s = s * z - 0x1.4abbce625be47p+5;
    s = r * 0x1.921fb54442d18p+2 + r * (0x1.1a62633145c07p-52 + z * s);
    double c = -0x1.b26fcbad60e7ep+0;
    c = c * z + 0x1.f9cc6a7428886p+2;
    c = c * z - 0x1.a6d1ecb6ce8a8p+4;
    c = c * z + 0x1.e1f50683b3a38p+5;
    c = c * z - 0x1.55d3c7e3c95b7p+6;
    c = c * z + 0x1.03c1f081b5ab0p+6;
    c = 1 + z * (c * z - 0x1.3bd3cc9be45dep+4);
    const uint64_t odd = 0 - (q & 1), a = frgi_bits_f64(s), b = frgi_bits_f64(c);
    *sine = frgi_of_bits_f64(((a & ~odd) | (b & odd)) ^ ((q & 2) << 62));
    *cosine = frgi_of_bits_f64(((b & ~odd) | (a & odd)) ^ (((q + 1) & 2) << 62));
}

FRGI_ELEMENTARY void frgi_turns_f32(float x, float *sine, float *cosine)
{
    const float size = x < 0 ? -x : x, in = size < 0x1p22f ? x : x - x;
    const float shift = 0x1.8p23f, t = 4 * (in - ((in + shift) - shift)) + shift;
    const float r = (in - ((in + shift) - shift)) - 0.25f * (t - shift), z = r * r;
    const uint32_t q = frgi_bits_f32(t);
    float s = -0x1.2dd026p+6f;
    s = s * z + 0x1.466030p+6f;
    s = s * z - 0x1.4abbc0p+5f;
    s = r * 0x1.921fb6p+2f + r * (-0x1.777a5cp-23f + z * s);
    float c = 0x1.d9f788p+5f;
    c = c * z - 0x1.55c664p+6f;
    c = c * z + 0x1.03c1dep+6f;
    c = 1 + z * (c * z - 0x1.3bd3ccp+4f);
    const uint32_t odd = 0 - (q & 1), a = frgi_bits_f32(s), b = frgi_bits_f32(c);
    *sine = frgi_of_bits_f32(((a & ~odd) | (b & odd)) ^ ((q & 2) << 30));
    *cosine = frgi_of_bits_f32(((b & ~odd) | (a & odd)) ^ (((q + 1) & 2) << 30));
}

#endif
