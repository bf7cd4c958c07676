/* decimal.c - numbers of any spelling; the table of powers of five.
 *
 * Powers q >= 0: the first 128 bits of 5^q.  Powers q < 0: those of floor(2^1151 / 5^-q).  Where
 * 5^-q < 2^64 (q >= -27) the kept value is rounded up, so that exact halves come out as the test
 * for ties expects them. They are written by tools/make_number_tables.py; test_csv computes them
 * again.
 *
 * Reference: Lemire, Software: Practice and Experience 51 (2021) 1700.
 */
#include "io/decimal.h"

#include <locale.h>
#include <stdlib.h>

const frgi_power frgi_powers_of_five[FRGI_POWER_MAX - FRGI_POWER_MIN + 1] = {
#include "io/decimal_pow5.def"
};

frg_status frgi_decimal_open(frgi_decimal **out, frg_context *ctx)
{
    *out = NULL;
    frgi_decimal *d;
    TRY(NEW(ctx, &d, 1, "the reader of numbers"));
    d->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!d->locale) {
        DROP(ctx, &d);
        FAIL(ctx, E_MEMORY, "the C locale could not be had");
    }
    *out = d;
    return FRG_OK;
}

void frgi_decimal_close(frgi_decimal **d, frg_context *ctx)
{
    if (*d) {
        freelocale((locale_t)(*d)->locale);
        DROP(ctx, d);
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/** inf, infinity or nan in any case. */
static bool read_word(const char *s, const char *e, double *out)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {
        {"inf", __builtin_inf()}, {"infinity", __builtin_inf()}, {"nan", __builtin_nan("")}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *word = words[i].text, *p = s;
        while (p < e && *word && (*p | 0x20) == *word) {
            p++;
            word++;
        }
        if (p == e && *word == '\0') {
            *out = words[i].value;
            return true;
        }
    }
    return false;
}

/** The digits of a number: w holds the first 19 significant ones. */
typedef struct {
    uint64_t w;
    int64_t q;      /* the power of ten of w */
    int64_t kept;   /* significant digits in w */
    int64_t digits; /* digits seen */
    bool cut;       /* a digit that is not 0 did not fit */
} mantissa;

/** Adds the digits at p; `fraction` is 1 after the point, where a kept digit lowers q by one and a
 *  dropped one leaves it, while before the point a dropped digit raises it. */
static const char *read_digits(const char *p, const char *e, int fraction, mantissa *m)
{
    for (; p < e && is_digit(*p); p++, m->digits++) {
        if (m->kept < 19) {
            m->w = m->w * 10 + (uint64_t)(*p - '0');
            m->kept += m->w != 0;
            m->q -= fraction;
        } else {
            m->cut |= *p != '0';
            m->q += 1 - fraction;
        }
    }
    return p;
}

/** Adds [+-]digits to *q; NULL if there are none.  Beyond 10^15 the exact value does not matter: as
 *  many digits would have to stand in front. */
static const char *read_exponent(const char *p, const char *e, int64_t *q)
{
    const bool negative = p < e && *p == '-';
    p += p < e && (*p == '-' || *p == '+');
    if (p == e || !is_digit(*p)) {
        return NULL;
    }
    int64_t x = 0;
    for (; p < e && is_digit(*p); p++) {
        x = x < 100000000000000 ? x * 10 + (*p - '0') : x;
    }
    *q += negative ? -x : x;
    return p;
}

bool frgi_decimal_parse(const frgi_decimal *d, const char *s, const char *e, double *out)
{
    const char *p = s;
    const bool negative = p < e && *p == '-';
    p += p < e && (*p == '-' || *p == '+');
    double value;
    if (p < e && !is_digit(*p) && *p != '.') {
        if (!read_word(p, e, &value)) {
            return false;
        }
        *out = negative ? -value : value;
        return true;
    }
    mantissa m = {0};
    p = read_digits(p, e, 0, &m);
    if (p < e && *p == '.') {
        p = read_digits(p + 1, e, 1, &m);
    }
    if (m.digits == 0) {
        return false;
    }
    if (p < e && (*p | 0x20) == 'e') {
        p = read_exponent(p + 1, e, &m.q);
    }
    if (p != e) {
        return false;
    }
    double above;
    bool decided = frgi_decimal_scale(m.w, m.q, &value);
    if (decided && m.cut) { /* the truth lies between w and w + 1 */
        decided = frgi_decimal_scale(m.w + 1, m.q, &above) && value == above;
    }
    if (!decided) {
        *out = strtod_l(s, NULL, (locale_t)d->locale);
        return true;
    }
    *out = negative ? -value : value;
    return true;
}
