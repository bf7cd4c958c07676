/* csv_cells.c - the meaning of one cell, slowly and completely; the kernels take the plain cases.
 *
 * A cell is what stands between its quotes.  In this order it is missing (a string of the NA list,
 * spaces around it aside), a whole number that fits int64_t, a number, TRUE or FALSE, or text.
 * Quoted numbers are numbers.  Hexadecimal is text; inf is a number; NaN is a missing number.
 */
#include <string.h>

#include "io/csv.h"

static const char *const default_na[] = {"", "NA", "NaN", "nan", "N/A", "null", "NULL", "."};

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

void frgi_cell_rules_make(frgi_cell_rules *r, const frgi_decimal *decimal, const frg_table_opts *o)
{
    *r = (frgi_cell_rules){.na = o->na ? o->na : default_na,
                           .n_na =
                               o->na ? o->n_na : (int64_t)(sizeof default_na / sizeof *default_na),
                           .decimal = decimal};
    for (int64_t i = 0; i < r->n_na; i++) {
        const char *const s = r->na[i];
        const size_t n = strlen(s);
        double value;
        r->na_begins[(unsigned char)*s] = true;
        r->na_empty |= n == 0;
        r->na_numeric |= frgi_decimal_parse(decimal, s, s + n, &value) && value == value;
    }
    r->na_begins[' '] = r->na_begins['\t'] = true; /* spaces around them do not count */
}

frgi_cell_kind frgi_cell_join(frgi_cell_kind a, frgi_cell_kind b)
{
    if (a == b || b == CELL_MISSING) {
        return a;
    }
    if (a == CELL_MISSING) {
        return b;
    }
    return a <= CELL_NUMBER && b <= CELL_NUMBER ? CELL_NUMBER : CELL_TEXT;
}

frgi_cell_text frgi_cell_unquote(const char *s, const char *e)
{
    if (s == e || *s != '"') {
        return (frgi_cell_text){.s = s, .n = e - s};
    }
    if (e - s < 2 || e[-1] != '"') {
        return (frgi_cell_text){.s = s, .n = e - s, .broken = true};
    }
    frgi_cell_text t = {.s = s + 1, .n = e - s - 2};
    t.doubled = t.n > 0 && memchr(t.s, '"', (size_t)t.n);
    return t;
}

int64_t frgi_cell_copy(const frgi_cell_text *t, char *to)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        to[n++] = t->s[i];
        i += t->doubled && t->s[i] == '"';
    }
    return n;
}

/** Cuts spaces off both ends. */
static void trim(const char **s, int64_t *n)
{
    while (*n > 0 && is_space(**s)) {
        ++*s;
        --*n;
    }
    while (*n > 0 && is_space((*s)[*n - 1])) {
        --*n;
    }
}

bool frgi_cell_is_missing(const frgi_cell_rules *r, const char *s, int64_t n)
{
    if (n > 0 && !r->na_begins[(unsigned char)*s]) {
        return false;
    }
    trim(&s, &n);
    if (n == 0) {
        return r->na_empty;
    }
    for (int64_t i = 0; i < r->n_na; i++) {
        if (strlen(r->na[i]) == (size_t)n && memcmp(r->na[i], s, (size_t)n) == 0) {
            return true;
        }
    }
    return false;
}

/** [+-]digits within int64_t, the smallest of them (a missing value in tables) and -0 (a number)
 *  left out. */
static bool read_integer(const char *s, int64_t n, int64_t *out)
{
    const bool negative = n > 0 && *s == '-';
    int64_t i = n > 0 && (*s == '-' || *s == '+'), x = 0;
    if (i == n) {
        return false;
    }
    for (; i < n; i++) {
        const int digit = s[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(x, 10, &x) ||
            __builtin_add_overflow(x, digit, &x)) {
            return false;
        }
    }
    if (negative && x == 0) {
        return false;
    }
    *out = negative ? -x : x;
    return true;
}

static bool read_bool(const char *s, int64_t n, int64_t *out)
{
    static const char *const words[] = {"FALSE", "TRUE", "False", "True", "false", "true"};
    for (int i = 0; i < 6; i++) {
        if (n == 5 - i % 2 && memcmp(words[i], s, (size_t)n) == 0) {
            *out = i % 2;
            return true;
        }
    }
    return false;
}

frgi_cell_kind frgi_cell_read(const frgi_cell_rules *r, const char *s, const char *e,
                              int64_t *integer, double *number)
{
    const frgi_cell_text t = frgi_cell_unquote(s, e);
    if (t.broken || t.doubled) {
        return CELL_TEXT;
    }
    if (frgi_cell_is_missing(r, t.s, t.n)) {
        return CELL_MISSING;
    }
    const char *p = t.s;
    int64_t n = t.n;
    trim(&p, &n);
    if (n == 0) {
        return CELL_TEXT;
    }
    if (read_integer(p, n, integer)) {
        *number = (double)*integer;
        return CELL_INTEGER;
    }
    if (frgi_decimal_parse(r->decimal, p, p + n, number)) {
        return CELL_NUMBER;
    }
    return read_bool(p, n, integer) ? CELL_BOOL : CELL_TEXT;
}

frgi_cell_kind frgi_cells_bools(const frgi_cells *c, int32_t *out, int64_t *n_missing)
{
    int64_t missing = 0;
    for (ptrdiff_t r = 0; r < c->index->rows; r++) {
        const char *s, *e;
        frgi_cell_at(c, r, &s, &e);
        int64_t value = FRG_MISSING_CODE;
        double unused;
        const frgi_cell_kind kind = frgi_cell_read(c->rules, s, e, &value, &unused);
        if (kind != CELL_BOOL && kind != CELL_MISSING) {
            return frgi_cell_join(CELL_BOOL, kind);
        }
        missing += kind == CELL_MISSING;
        out[r] = (int32_t)value;
    }
    *n_missing = missing;
    return CELL_BOOL;
}

frgi_cell_kind frgi_cells_missing(const frgi_cells *c, int64_t *n_missing)
{
    for (ptrdiff_t r = 0; r < c->index->rows; r++) {
        const char *s, *e;
        frgi_cell_at(c, r, &s, &e);
        int64_t integer;
        double number;
        const frgi_cell_kind kind = frgi_cell_read(c->rules, s, e, &integer, &number);
        if (kind != CELL_MISSING) {
            return kind;
        }
    }
    *n_missing = c->index->rows;
    return CELL_MISSING;
}

bool frgi_is_utf8(const char *s, int64_t n)
{
    const unsigned char *p = (const unsigned char *)s, *const end = p + n;
    while (p < end) {
        if (*p < 0x80) {
            if (*p++ == 0) {
                return false;
            }
            continue;
        }
        const int more = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : 1;
        if (*p < 0xc2 || *p > 0xf4 || end - p <= more) {
            return false;
        }
        for (int i = 1; i <= more; i++) {
            if ((p[i] & 0xc0) != 0x80) {
                return false;
            }
        }
        const bool overlong = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xf0 && p[1] < 0x90);
        const bool surrogate = *p == 0xed && p[1] >= 0xa0, beyond = *p == 0xf4 && p[1] >= 0x90;
        if (overlong || surrogate || beyond) {
            return false;
        }
        p += more + 1;
    }
    return true;
}
