/* report_number.c - doubles as decimal text: the shortest that reads back, and rounded ones for
 * people.
 *
 * Shortest: Schubfach.  Write v = c 2^q.  Every real number between the midpoints to v's two
 * neighbours reads back as v; with 10^k the largest power of ten not above the length of that
 * interval, it holds at most one multiple of 10^(k+1) and at least one of 10^k.  So two candidates
 * of each length are enough:
 *
 *     4 v 10^-k  =  4 c 2^q 10^-k   by one product of c with a 128-bit 10^-k,
 *
 * where bits below the last are folded into it ("round to odd"), so that comparisons with multiples
 * of 4 come out exactly as for the infinite product.  Midpoints themselves count when c is even,
 * since readers round ties to even.  No division, no big integers, no libc, so no locale either.
 *
 * Rounded: printf's %e is exact in glibc and musl; the digits are picked out of its text, whatever
 * sign the locale puts for the decimal point.
 *
 * Time: about 60 ns a number; memory: the table of 617 powers, 10 kB.
 * Reference: R. Giulietti, "The Schubfach way to render doubles", 2020; A. Bolz, Drachennest, 2020.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_parts.h"

typedef struct {
    uint64_t high, low;
} wide;

#define POW10_FIRST (-292)

static const wide pow10_table[617] = {
#include "report/report_pow10.def"
};

/** value = digits * 10^exponent. */
typedef struct {
    uint64_t digits;
    int exponent;
} decimal;

/* floor(q log10 2), floor(q log10 2 + log10(3/4)) and floor(e log2 10), exact for |q| < 1500, |e| <
 * 500. The shifts are of negative numbers too: arithmetic in every compiler that builds this. */
static int floor_log10_pow2(int q)
{
    return (q * 1262611) >> 22;
}

static int floor_log10_three_quarters_pow2(int q)
{
    return (q * 1262611 - 524031) >> 22;
}

static int floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/** The high half of a * b; *low gets the low half. */
static uint64_t product(uint64_t a, uint64_t b, uint64_t *low)
{
    __extension__ typedef unsigned __int128 twice;
    const twice p = (twice)a * b;
    *low = (uint64_t)p;
    return (uint64_t)(p >> 64);
}

/** floor(g c / 2^128), with its last bit set when the part cut off is more than the error of g. */
static uint64_t round_to_odd(wide g, uint64_t c)
{
    uint64_t dropped, middle;
    const uint64_t carry = product(g.low, c, &dropped);
    uint64_t top = product(g.high, c, &middle);
    middle += carry;
    top += middle < carry;
    return top | (middle > 1);
}

/** The shortest decimal within the rounding interval of the positive finite double with these
 *  fields, and among the shortest the nearest. */
static decimal shortest(uint64_t fraction, int biased)
{
    const uint64_t c = biased ? fraction | (UINT64_C(1) << 52) : fraction;
    const int q = (biased ? biased : 1) - 1075;
    if (-52 <= q && q <= 0 && (c & ((UINT64_C(1) << -q) - 1)) == 0)
        return (decimal){c >> -q, 0}; /* a whole number below 2^53 */

    /* below a power of two the neighbour is half as far away */
    const bool narrow_below = fraction == 0 && biased > 1;
    const int k = narrow_below ? floor_log10_three_quarters_pow2(q) : floor_log10_pow2(q);
    const int h = q + floor_log2_pow10(-k) + 1;
    const wide g = pow10_table[-k - POW10_FIRST];
    const uint64_t left = round_to_odd(g, (4 * c - 2 + narrow_below) << h);
    const uint64_t middle = round_to_odd(g, (4 * c) << h);
    const uint64_t right = round_to_odd(g, (4 * c + 2) << h);
    const uint64_t lower = left + (c & 1), upper = right - (c & 1);

    const uint64_t s = middle / 4;
    if (s >= 10) {
        const uint64_t tens = s / 10;
        const bool below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
        if (below != above)
            return (decimal){tens + above, k + 1};
    }
    const bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    if (below != above)
        return (decimal){s + above, k};
    const uint64_t half = 4 * s + 2;
    return (decimal){s + (middle > half || (middle == half && (s & 1))), k};
}

enum { DIGITS = 20 };

/** The digits of a positive number at the end of `out`; returns the index of the first.  Groups of
 *  eight are taken off so that most divisions are of 32 bits. */
static int put_digits(char out[DIGITS], uint64_t number)
{
    int first = DIGITS;
    while (number >= 100000000) {
        uint32_t group = (uint32_t)(number % 100000000);
        number /= 100000000;
        for (int i = 0; i < 8; i++, group /= 10)
            out[--first] = (char)('0' + group % 10);
    }
    for (uint32_t head = (uint32_t)number; head; head /= 10)
        out[--first] = (char)('0' + head % 10);
    return first;
}

/** "e-12"; returns its end. */
static char *put_exponent(char *p, int e)
{
    *p++ = 'e';
    if (e < 0)
        *p++ = '-';
    e = e < 0 ? -e : e;
    if (e >= 100)
        *p++ = (char)('0' + e / 100);
    if (e >= 10)
        *p++ = (char)('0' + e / 10 % 10);
    *p++ = (char)('0' + e % 10);
    *p = '\0';
    return p;
}

/** Plain or scientific notation of 0.DIGITS times 10^point; returns the length. */
static int lay_out(char *out, const char *digits, int count, int point, bool scientific)
{
    char *p = out;
    if (scientific) {
        *p++ = digits[0];
        if (count > 1) {
            *p++ = '.';
            memcpy(p, digits + 1, (size_t)(count - 1));
            p += count - 1;
        }
        p = put_exponent(p, point - 1);
        return (int)(p - out);
    }
    if (point <= 0) {
        memcpy(p, "0.", 2);
        p += 2;
        memset(p, '0', (size_t)-point);
        p += -point;
        point = 0;
    } else {
        const int whole = point < count ? point : count;
        memcpy(p, digits, (size_t)whole);
        memset(p + whole, '0', (size_t)(point - whole));
        p += point;
        digits += whole;
        count -= whole;
        if (count > 0)
            *p++ = '.';
    }
    memcpy(p, digits, (size_t)count);
    p += count;
    *p = '\0';
    return (int)(p - out);
}

/** Zero, NaN and infinities; 0 for all other values. */
static int special(double value, const char *zero, char *out)
{
    const char *const text = isnan(value)   ? "NaN"
                             : value == 0.0 ? zero
                             : isinf(value) ? (value > 0 ? "Inf" : "-Inf")
                                            : "";
    const size_t length = strlen(text);
    memcpy(out, text, length + 1);
    return (int)length;
}

int frg_format_double(double value, char out[32])
{
    if (!out)
        return 0;
    const int named = special(value, signbit(value) ? "-0.0" : "0", out);
    if (named)
        return named;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const decimal d = shortest(bits & ((UINT64_C(1) << 52) - 1), (int)(bits >> 52 & 0x7ff));
    char digits[DIGITS];
    const int first = put_digits(digits, d.digits);
    const int point = DIGITS - first + d.exponent;
    int count = DIGITS - first;
    while (digits[first + count - 1] == '0')
        count--;
    const int sign = value < 0;
    out[0] = '-';
    /* 0.0001 .. 9999999999999998 stay plain, as in Python and JavaScript's middle range */
    return sign + lay_out(out + sign, digits + first, count, point, point < -3 || point > 16);
}

int frg_format_short(double value, int digits, char out[32])
{
    if (!out)
        return 0;
    const int named = special(value, "0", out);
    if (named)
        return named;
    const int wanted = digits < 1 ? 1 : digits > 17 ? 17 : digits;
    char text[48], all[24];
    snprintf(text, sizeof text, "%.*e", wanted - 1, fabs(value));
    int count = 0;
    const char *p = text;
    for (; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            all[count++] = *p;
    const bool negative = p[1] == '-';
    int point = 0;
    for (p += 2; *p; p++)
        point = 10 * point + (*p - '0');
    point = (negative ? -point : point) + 1;

    const int sign = value < 0;
    out[0] = '-';
    if (point > wanted && point <= 9) /* a whole number of up to nine figures is shown whole */
        return sign + snprintf(out + sign, 24, "%.0f", fabs(value));
    const bool scientific = point < -3 || point > (wanted > 9 ? wanted : 9);
    while (scientific && count > 1 && all[count - 1] == '0')
        count--;
    return sign + lay_out(out + sign, all, count, point, scientific);
}
