/* test_format.c - doubles as text: shortest, nearest, read back; and rounded for people. */
#include <locale.h>

#include "fourge/report.h"
#include "test.h"

static double from_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint64_t to_bits(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/** The significant digits of a number's text, without leading and trailing zeros. */
static void digits_of(const char *s, char out[32])
{
    int n = 0;
    for (; *s && *s != 'e'; s++)
        if (*s >= '0' && *s <= '9' && (n > 0 || *s != '0'))
            out[n++] = *s;
    while (n > 0 && out[n - 1] == '0')
        n--;
    out[n] = '\0';
}

/** %.17g loops are the definition: the first precision that reads back is the shortest. */
static void check_shortest(double v)
{
    char text[32], digits[32], tried[64], wanted[32];
    const int length = frg_format_double(v, text);
    CHECK_SAYS((size_t)length == strlen(text) && length < 32, "%.17g: length %d", v, length);
    CHECK_SAYS(to_bits(strtod(text, NULL)) == to_bits(v), "%.17g reads back from %s", v, text);
    for (int p = 1; p <= 17; p++) {
        snprintf(tried, sizeof tried, "%.*e", p - 1, v);
        if (to_bits(strtod(tried, NULL)) == to_bits(v))
            break;
    }
    digits_of(text, digits);
    digits_of(tried, wanted);
    CHECK_SAYS(strlen(digits) <= strlen(wanted), "%.17g: %s, %s is shorter", v, text, tried);
    if (strlen(digits) == strlen(wanted))
        CHECK_SAYS(strcmp(digits, wanted) == 0, "%.17g: %s, %s is nearer", v, text, tried);
}

static void shortest_random(void)
{
    for (int64_t i = 0; i < test_size(100000, 20000); i++) {
        const uint64_t bits = test_random();
        const double v = from_bits(bits);
        if (isfinite(v) && v != 0)
            check_shortest(v);
    }
}

static void shortest_subnormal(void)
{
    for (int i = 0; i < 10000; i++)
        check_shortest(from_bits(1 + (test_random() >> (12 + test_below(51)))));
    check_shortest(5e-324);
    check_shortest(from_bits((UINT64_C(1) << 52) - 1));
}

/** The gap below a power of two is half the gap above: the one place where intervals are
 *  lopsided. */
static void shortest_edges(void)
{
    for (uint64_t biased = 1; biased < 2047; biased++)
        for (int64_t d = -1; d <= 1; d++)
            check_shortest(from_bits((biased << 52) + (uint64_t)d));
    for (int e = -323; e <= 308; e++) {
        char text[32];
        snprintf(text, sizeof text, "1e%d", e);
        check_shortest(strtod(text, NULL));
    }
    for (int i = 0; i < 10000; i++) /* what people write: few digits */
        check_shortest((double)(1 + test_below(1000000)) / pow(10, (double)test_below(12)));
}

static void layout(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0.0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {100, "100"},
        {1234567.25, "1234567.25"},
        {0.0001, "0.0001"},
        {0.00001, "1e-5"},
        {1.5e-7, "1.5e-7"},
        {9007199254740992.0, "9007199254740992"},
        {1e16, "1e16"},
        {-1.25e22, "-1.25e22"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
        {5e-324, "5e-324"},
        {INFINITY, "Inf"},
        {-INFINITY, "-Inf"},
        {NAN, "NaN"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        CHECK_INT(frg_format_double(cases[i].value, text), strlen(cases[i].text));
        CHECK_TEXT(text, cases[i].text);
    }
}

static void rounded(void)
{
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {
        {0, 4, "0"},
        {-0.0, 4, "0"},
        {1, 4, "1.000"},
        {0.01234567, 4, "0.01235"},
        {0.0123, 4, "0.01230"},
        {-0.5, 3, "-0.500"},
        {99.999, 4, "100.0"},
        {9.9996, 4, "10.00"},
        {12345.678, 4, "12346"},
        {1234567, 3, "1234567"},
        {999400000.4, 3, "999400000"},
        {999999999.6, 3, "1e9"},
        {1234567890.0, 4, "1.235e9"},
        {0.0001234, 3, "0.000123"},
        {0.00001234, 3, "1.23e-5"},
        {2.1e-16, 2, "2.1e-16"},
        {1e-10, 3, "1e-10"},
        {1e300, 17, "1.0000000000000001e300"},
        {3.0, 1, "3"},
        {3.0, -5, "3"},
        {0.1, 99, "0.10000000000000001"},
        {NAN, 3, "NaN"},
        {-INFINITY, 3, "-Inf"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        CHECK_INT(frg_format_short(cases[i].value, cases[i].digits, text), strlen(cases[i].text));
        CHECK_TEXT(text, cases[i].text);
    }
}

/** The error is at most half a unit of the last digit, plus the double rounding of reading it
 *  back. */
static void rounded_random(void)
{
    for (int i = 0; i < 20000; i++) {
        const int digits = 1 + (int)test_below(15);
        const double v = test_normal() * pow(10, (double)(test_below(40) - 20));
        char text[32];
        CHECK(frg_format_short(v, digits, text) < 32);
        const double unit = pow(10, floor(log10(fabs(v)) + 1e-12) - digits + 1);
        const double error = fabs(strtod(text, NULL) - v);
        CHECK_SAYS(error <= 0.5 * unit * (1 + 1e-9) + fabs(v) * 3e-16, "%.17g to %d digits: %s", v,
                   digits, text);
    }
}

static void locale(void)
{
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "nl_NL.UTF-8",
                                         "pt_BR.UTF-8"};
    const char *set = NULL;
    for (size_t i = 0; i < sizeof commas / sizeof *commas && !set; i++)
        set = setlocale(LC_ALL, commas[i]);
    if (!set) {
        test_skip("no locale with a decimal comma is installed");
        return;
    }
    char text[32];
    frg_format_double(0.5, text);
    CHECK_TEXT(text, "0.5");
    frg_format_short(1.25, 3, text);
    CHECK_TEXT(text, "1.25");
    setlocale(LC_ALL, "C");
}

static const test_case cases[] = {
    {"shortest: random bits", shortest_random},
    {"shortest: subnormal", shortest_subnormal},
    {"shortest: powers of two and ten", shortest_edges},
    {"shortest: notation", layout},
    {"rounded: notation", rounded},
    {"rounded: half a unit", rounded_random},
    {"locale", locale},
};
TEST_MAIN(cases)
