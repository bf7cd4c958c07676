/* test_half.c - 16-bit numbers: all 65536 of each type there and back, ties, and the two neighbours
 * of random rounding. */
#include "linalg/half.h"

#include <math.h>

#include "test.h"

/** The number with these fields: sign, `exponent` bits of exponent, `fraction` bits of fraction
 *  (IEEE 754, 3.4). */
static double by_fields(unsigned h, int exponent, int fraction)
{
    const int e = (int)(h >> fraction) & ((1 << exponent) - 1), bias = (1 << (exponent - 1)) - 1;
    const double f = ldexp((double)(h & ((1u << fraction) - 1)), -fraction);
    const double size = e == 2 * bias + 1 ? (f != 0 ? (double)NAN : (double)INFINITY)
                        : e == 0          ? ldexp(f, 1 - bias)
                                          : ldexp(1 + f, e - bias);
    return h >> 15 ? -size : size;
}

/** Every number is what its fields say and comes back to its bits; a NaN stays one. */
static void all_of_them(void)
{
    int wrong = 0;
    for (unsigned h = 0; h < 65536; h++) {
        const double f16 = by_fields(h, 5, 10), bf16 = by_fields(h, 8, 7);
        const float x = frgi_from_f16((uint16_t)h), y = frgi_from_bf16((uint16_t)h);
        if (isnan(f16)) {
            wrong += !isnan(x) || !isnan(frgi_from_f16(frgi_to_f16(x)));
        } else {
            wrong += (double)x != f16 || !!signbit(x) != (int)(h >> 15) || frgi_to_f16(x) != h;
        }
        if (isnan(bf16)) {
            wrong += !isnan(y) || !isnan(frgi_from_bf16(frgi_to_bf16(y)));
        } else {
            wrong += (double)y != bf16 || frgi_to_bf16(y) != h;
        }
    }
    CHECK_INT(wrong, 0);
}

/** Between two neighbours: the midpoint to the even one, a little beside it to the nearer, of both
 *  signs.  Above the largest number the neighbour is 65536, which is infinity. */
static void ties(void)
{
    int wrong = 0;
    for (unsigned h = 0; h < 0x7c00; h++) {
        const double low = by_fields(h, 5, 10);
        const double high = h == 0x7bff ? 65536 : by_fields(h + 1, 5, 10);
        const float middle = (float)((low + high) / 2);
        const unsigned even = h + (h & 1);
        wrong += frgi_to_f16(middle) != even || frgi_to_f16(-middle) != (even | 0x8000);
        wrong += frgi_to_f16(nextafterf(middle, 0)) != h;
        wrong += frgi_to_f16(nextafterf(middle, INFINITY)) != h + 1;
    }
    for (unsigned h = 0; h < 0x7f80; h++) {
        const uint32_t bits = (uint32_t)h << 16 | 0x8000;
        float middle;
        memcpy(&middle, &bits, sizeof middle);
        wrong += frgi_to_bf16(middle) != h + (h & 1) || frgi_to_bf16(nextafterf(middle, 0)) != h;
    }
    CHECK_INT(wrong, 0);
}

/** The ten top bits of the random numbers that count are tried: of 32 for denormals of f16, of
 *  those below the fraction else (13 of f16, 16 of bf16), so many bits up. x lies a share of `part`
 *  above `low` on the way to `high`: with random numbers in equal steps it goes to `high` that
 *  share of the times, up to one step. */
static void check_share(frg_dtype t, int shift, double low, double high, double part)
{
    enum { STEPS = 1 << 10 };
    const float x = (float)(low + part * (high - low));
    int up = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        const double y = (double)frgi_round_randomly(x, t, i << shift);
        if (!CHECK_SAYS(y == low || y == high, "%g became %g, between %g and %g", (double)x, y, low,
                        high))
            return;
        up += y == high;
    }
    CHECK_NEAR((double)up / STEPS, part, 1.5 / STEPS);
}

static void by_chance(void)
{
    static const double parts[] = {0, 0.25, 0.5, 0.75};
    for (int i = 0; i < 4; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            check_share(FRG_F16, 3, sign * 1.0, sign * (1 + 0x1p-10), parts[i]);
            check_share(FRG_F16, 22, sign * 5 * 0x1p-24, sign * 6 * 0x1p-24, parts[i]);
            check_share(FRG_F16, 22, 0, sign * 0x1p-24, parts[i]);
            check_share(FRG_BF16, 6, sign * 3.0, sign * (3 + 0x1p-6), parts[i]);
        }
    CHECK(isnan(frgi_round_randomly(NAN, FRG_F16, 77)));
    CHECK(isinf(frgi_round_randomly(-INFINITY, FRG_BF16, UINT32_MAX)));
}

static const test_case cases[] = {
    {"all of them", all_of_them},
    {"ties", ties},
    {"by chance", by_chance},
};
TEST_MAIN(cases)
