/* decimal.h - decimal text to double, correctly rounded.
 *
 * A number is w * 10^q with an integer w < 2^64: multiply w by the first 128 bits of 5^q and round
 * the product.  That decides all but a handful of inputs (Lemire, "Number Parsing at a Gigabyte per
 * Second", 2021, sections 5 to 9).  What is left, and numbers of more than 19 digits where w and w
 * + 1 differ, goes to strtod_l in the C locale.
 */
#ifndef FRGI_DECIMAL_H
#define FRGI_DECIMAL_H

#include <string.h>

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { FRGI_POWER_MIN = -342, FRGI_POWER_MAX = 308 };

/** The leading 128 bits of a power of five, the top bit set. */
typedef struct {
    uint64_t high, low;
} frgi_power;

/** Of 5^q at [q - FRGI_POWER_MIN]. */
extern const frgi_power frgi_powers_of_five[FRGI_POWER_MAX - FRGI_POWER_MIN + 1];

typedef struct {
    void *locale; /* the C locale, for strtod_l */
} frgi_decimal;

FRG_MUST_USE frg_status frgi_decimal_open(frgi_decimal **out, frg_context *ctx);
void frgi_decimal_close(frgi_decimal **d, frg_context *ctx);

/** Reads all of [s, e) as [+-]digits[.digits][(e|E)[+-]digits], or inf, infinity, nan in any case.
 *  False, and *out untouched, if it is anything else.  At least one byte that cannot continue a
 *  number must stand at e. */
bool frgi_decimal_parse(const frgi_decimal *d, const char *s, const char *e, double *out);

/** *out = w * 10^q rounded to nearest, ties to even; false where 128 bits do not decide. */
static inline bool frgi_decimal_scale(uint64_t w, int64_t q, double *out)
{
    if (w == 0 || q < FRGI_POWER_MIN) {
        *out = 0;
        return true;
    }
    if (q > FRGI_POWER_MAX) {
        *out = __builtin_inf();
        return true;
    }
    /* w 2^l with the top bit set, times 5^q 2^(its own scale): 192 bits, of which the first 64 hold
     * the mantissa (53 bits), the rounding bit and at least 9 more; the second word of 5^q matters
     * only when those nine are all ones. */
    const frgi_power p = frgi_powers_of_five[q - FRGI_POWER_MIN];
    const int lift = __builtin_clzll(w);
    w <<= lift;
    const unsigned __int128 product = (unsigned __int128)w * p.high;
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if ((high & 0x1ff) == 0x1ff) {
        const uint64_t more = (uint64_t)(((unsigned __int128)w * p.low) >> 64);
        low += more;
        high += low < more;
        if (low == UINT64_MAX && (q < -27 || q > 55)) {
            return false; /* 5^q is not exact in 128 bits, and the rest could carry */
        }
    }
    const int top = (int)(high >> 63), shift = top + 9;
    uint64_t mantissa = high >> shift; /* 54 bits: 53 and the rounding bit */
    /* floor(q log2(10)) by 217706 / 2^16, exact over the range of q; 1023 is the bias */
    int64_t exponent = ((217706 * q) >> 16) + 63 + top - lift + 1023;
    if (exponent <= 0) { /* subnormal, or rounds up to the smallest normal */
        if (exponent < -62) {
            *out = 0;
            return true;
        }
        mantissa >>= 1 - exponent;
        mantissa = (mantissa + (mantissa & 1)) >> 1;
        exponent = (int64_t)(mantissa >> 52); /* 0, or 1 when the rounding made it normal */
    } else {
        /* An exact tie: the product ends in zeros, which needs 5^|q| < 2^64.  Round to even. */
        if (low <= 1 && q >= -4 && q <= 23 && (mantissa & 3) == 1 && mantissa << shift == high) {
            mantissa &= ~(uint64_t)1;
        }
        mantissa = (mantissa + (mantissa & 1)) >> 1;
        if (mantissa >> 53) {
            mantissa >>= 1;
            exponent++;
        }
    }
    if (exponent >= 2047) {
        *out = __builtin_inf();
        return true;
    }
    const uint64_t bits = (mantissa & (((uint64_t)1 << 52) - 1)) | (uint64_t)exponent << 52;
    memcpy(out, &bits, sizeof *out);
    return true;
}

/** The value of 8 digits, '0' already subtracted, the first in the lowest byte: three
 *  multiplications join neighbours to pairs, fours and eight. */
static inline uint64_t frgi_eight_digits(uint64_t x)
{
    x = x * 10 + (x >> 8);
    return (((x & 0x000000ff000000ff) * 0x000f424000000064) +
            (((x >> 16) & 0x000000ff000000ff) * 0x0000271000000001)) >>
           32;
}

/** Reads the k digits in front of `end`, 0 <= k <= 8; the 8 bytes there must be readable.  False if
 *  one is no digit. */
static inline bool frgi_digits(const char *end, int64_t k, uint64_t *value)
{
    static const uint64_t keep[9] = {0,
                                     0xff00000000000000,
                                     0xffff000000000000,
                                     0xffffff0000000000,
                                     0xffffffff00000000,
                                     0xffffffffff000000,
                                     0xffffffffffff0000,
                                     0xffffffffffffff00,
                                     0xffffffffffffffff};
    const uint64_t zeros = 0x3030303030303030, high = 0xf0f0f0f0f0f0f0f0;
    uint64_t x;
    memcpy(&x, end - 8, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    x = (x & keep[k]) | (zeros & ~keep[k]); /* leading zeros up to eight digits */
    *value = frgi_eight_digits(x - zeros);
    return ((x & high) | (((x + 0x0606060606060606) & high) >> 4)) == 0x3333333333333333;
}

#pragma GCC visibility pop
#endif
