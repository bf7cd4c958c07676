/* gp_scan.c - tokens, numbers and values of kernel expressions.
 *
 *     value := number suffix | suffix | "@" name [ "[" number "]" ]
 *     suffix := [ "!" ] [ "in" "(" number "," number ")" ]
 *
 * Numbers carry no sign: parameters are positive.  The text is anybody's; nothing beyond its length
 * is read.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_scan.h"

enum { TOKEN_SHOWN = 20, ENTRY_LIMIT = 1 << 20 };

bool frgi_gp_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool frgi_gp_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static char at(const frgi_gp_scan *p, int i)
{
    return i < p->length ? p->text[i] : '\0';
}

static int end_of_number(const frgi_gp_scan *p, int i)
{
    while (frgi_gp_is_digit(at(p, i))) {
        i++;
    }
    if (at(p, i) == '.') {
        i++;
        while (frgi_gp_is_digit(at(p, i))) {
            i++;
        }
    }
    const int sign = i + 1 + (at(p, i + 1) == '-' || at(p, i + 1) == '+');
    if ((at(p, i) == 'e' || at(p, i) == 'E') && frgi_gp_is_digit(at(p, sign))) {
        i = sign;
        while (frgi_gp_is_digit(at(p, i))) {
            i++;
        }
    }
    return i;
}

frgi_gp_token frgi_gp_lex(const frgi_gp_scan *p, int i)
{
    while (at(p, i) == ' ' || at(p, i) == '\t' || at(p, i) == '\n' || at(p, i) == '\r') {
        i++;
    }
    if (i >= p->length) {
        return (frgi_gp_token){.kind = TOKEN_END, .at = p->length};
    }
    const char c = p->text[i];
    int end = i + 1;
    if (frgi_gp_is_digit(c) || (c == '.' && frgi_gp_is_digit(at(p, i + 1)))) {
        return (frgi_gp_token){.kind = TOKEN_NUMBER, .at = i, .length = end_of_number(p, i) - i};
    }
    if (frgi_gp_is_letter(c)) {
        while (frgi_gp_is_letter(at(p, end)) || frgi_gp_is_digit(at(p, end)) || at(p, end) == '.') {
            end++;
        }
        return (frgi_gp_token){.kind = TOKEN_NAME, .at = i, .length = end - i};
    }
    if (c == '"' || c == '\'' || c == '`') {
        while (end < p->length && p->text[end] != c) {
            end++;
        }
        const bool closed = end < p->length;
        return (frgi_gp_token){
            .kind = closed ? TOKEN_STRING : TOKEN_BAD, .at = i, .length = end + closed - i};
    }
    const bool known = strchr("+*()[],;=!@", c) != NULL;
    return (frgi_gp_token){.kind = known ? TOKEN_SIGN : TOKEN_BAD, .at = i, .length = 1};
}

void frgi_gp_advance(frgi_gp_scan *p)
{
    p->now = frgi_gp_lex(p, p->now.at + p->now.length);
}

bool frgi_gp_shows(const frgi_gp_scan *p, char sign)
{
    return p->now.kind == TOKEN_SIGN && p->text[p->now.at] == sign;
}

bool frgi_gp_is_word(const frgi_gp_scan *p, const frgi_gp_token *t, const char *word)
{
    return t->kind == TOKEN_NAME && (size_t)t->length == strlen(word) &&
           memcmp(p->text + t->at, word, (size_t)t->length) == 0;
}

/** Column of a byte, counted in characters from 1; the place is set for the next failure. */
int frgi_gp_locate(const frgi_gp_scan *p, int byte)
{
    int column = 1;
    for (int i = 0; i < byte; i++) {
        column += ((unsigned char)p->text[i] & 0xc0) != 0x80;
    }
    frgi_at(p->ctx, "kernel:%d", column);
    return column;
}

frg_status frgi_gp_unexpected(const frgi_gp_scan *p, const char *expected)
{
    const frgi_gp_token *t = &p->now;
    const int column = frgi_gp_locate(p, t->at);
    if (t->kind == TOKEN_END) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: expected %s, but the text ends", column,
             expected);
    }
    const unsigned char first = (unsigned char)p->text[t->at];
    if (t->kind == TOKEN_BAD && strchr("\"'`", first)) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: the quote %c is not closed", column, first);
    }
    if (first < 0x20) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: expected %s, found the byte 0x%02x", column,
             expected, first);
    }
    const int shown = t->length > TOKEN_SHOWN ? TOKEN_SHOWN : t->length;
    FAIL(p->ctx, E_KERNEL, "kernel, column %d: expected %s, found '%.*s'", column, expected, shown,
         p->text + t->at);
}

frg_status frgi_gp_expect(frgi_gp_scan *p, char sign, const char *expected)
{
    if (!frgi_gp_shows(p, sign)) {
        return frgi_gp_unexpected(p, expected);
    }
    frgi_gp_advance(p);
    return FRG_OK;
}

/** The word of a token as a string, cut to GP_WORD_LENGTH. */
void frgi_gp_spell(const frgi_gp_scan *p, const frgi_gp_token *t, char out[GP_WORD_LENGTH + 1])
{
    const int length = t->length < GP_WORD_LENGTH ? t->length : GP_WORD_LENGTH;
    memcpy(out, p->text + t->at, (size_t)length);
    out[length] = '\0';
}

/* ---- numbers and values ---------------------------------------------------------------------- */

/** Up to 15 digits and a power of ten up to 22 are exact; the rest goes to the table of powers. */
frg_status frgi_gp_read_number(frgi_gp_scan *p, const frgi_gp_token *t, double *out)
{
    uint64_t digits = 0;
    int count = 0, after = 0;
    bool plain = true;
    for (int i = t->at; i < t->at + t->length; i++) {
        const char c = p->text[i];
        if (frgi_gp_is_digit(c)) {
            digits = digits * 10 + (uint64_t)(c - '0');
            after += after > 0;
            plain = plain && ++count <= 15;
        } else {
            plain = plain && c == '.';
            after = 1;
        }
    }
    if (plain) {
        double power = 1;
        for (int i = 1; i < after; i++) {
            power *= 10;
        }
        *out = (double)digits / power;
        return FRG_OK;
    }
    if (!p->decimal) {
        TRY(frgi_decimal_open(&p->decimal, p->ctx));
    }
    /* A byte that cannot continue the number stands at its end: the lexer stopped there. */
    if (!frgi_decimal_parse(p->decimal, p->text + t->at, p->text + t->at + t->length, out)) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: this is no number", frgi_gp_locate(p, t->at));
    }
    return FRG_OK;
}

static frg_status parse_number(frgi_gp_scan *p, double *out)
{
    const frgi_gp_token t = p->now;
    if (t.kind != TOKEN_NUMBER) {
        return frgi_gp_unexpected(p, "a number > 0");
    }
    TRY(frgi_gp_read_number(p, &t, out));
    if (!(*out > 0) || isinf(*out)) {
        FAIL(p->ctx, E_KERNEL,
             "kernel, column %d: parameters are positive and finite, found '%.*s'",
             frgi_gp_locate(p, t.at), t.length > TOKEN_SHOWN ? TOKEN_SHOWN : t.length,
             p->text + t.at);
    }
    frgi_gp_advance(p);
    return FRG_OK;
}

/** [ "!" ] [ "in(lo,hi)" ] */
static frg_status parse_suffix(frgi_gp_scan *p, frgi_gp_written *v)
{
    const int begin = p->now.at;
    if (frgi_gp_shows(p, '!')) {
        if (isnan(v->value)) {
            return frgi_gp_unexpected(p, "a number before '!'");
        }
        v->fixed = true;
        frgi_gp_advance(p);
    }
    if (!frgi_gp_is_word(p, &p->now, "in")) {
        return FRG_OK;
    }
    frgi_gp_advance(p);
    TRY(frgi_gp_expect(p, '(', "'(' and two bounds"));
    TRY(parse_number(p, &v->lower));
    TRY(frgi_gp_expect(p, ',', "',' and the upper bound"));
    TRY(parse_number(p, &v->upper));
    TRY(frgi_gp_expect(p, ')', "')'"));
    if (v->lower >= v->upper) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: the lower bound is not below the upper one",
             frgi_gp_locate(p, begin));
    }
    if (v->value < v->lower || v->value > v->upper) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: the value is outside its bounds",
             frgi_gp_locate(p, begin));
    }
    return FRG_OK;
}

/** "@" name [ "[" number "]" ] */
static frg_status parse_tie(frgi_gp_scan *p, frgi_gp_written *v)
{
    frgi_gp_advance(p);
    if (p->now.kind != TOKEN_NAME) {
        return frgi_gp_unexpected(p, "the name of a parameter, as in @rbf.l");
    }
    v->tie = p->now;
    frgi_gp_advance(p);
    if (!frgi_gp_shows(p, '[')) {
        return FRG_OK;
    }
    frgi_gp_advance(p);
    const frgi_gp_token t = p->now;
    double entry;
    TRY(parse_number(p, &entry));
    if (entry != floor(entry) || entry > ENTRY_LIMIT) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: entries are whole numbers from 1",
             frgi_gp_locate(p, t.at));
    }
    v->entry = (int)entry - 1;
    return frgi_gp_expect(p, ']', "']'");
}

static bool value_begins(const frgi_gp_scan *p)
{
    return p->now.kind == TOKEN_NUMBER || frgi_gp_is_word(p, &p->now, "in") ||
           frgi_gp_shows(p, '@');
}

frg_status frgi_gp_parse_value(frgi_gp_scan *p, frgi_gp_written *v)
{
    *v = frgi_gp_not_written;
    if (!value_begins(p)) {
        return frgi_gp_unexpected(p, "a number or in(lo,hi)");
    }
    if (frgi_gp_shows(p, '@')) {
        return parse_tie(p, v);
    }
    if (p->now.kind == TOKEN_NUMBER) {
        TRY(parse_number(p, &v->value));
    }
    return parse_suffix(p, v);
}

/* ---- the vocabulary -------------------------------------------------------------------------- */

/* The table of leaves: a kernel is added here, in frgi_gp_kind, in
 * gp_leaves_cpu.tmpl.h or gp_periodic_cpu.tmpl.h, and in the table of gp_tiles_cpu.tmpl.h. */

const frgi_gp_leaf_word frgi_gp_leaves[GP_LEAVES] = {
    {"rbf", GP_RBF, GP_RBF, NULL, 1, {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}}, "rbf(l=0.2)"},
    {"matern12",
     GP_MATERN12,
     GP_MATERN12,
     NULL,
     1,
     {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}},
     "matern12(l=0.2)"},
    {"matern32",
     GP_MATERN32,
     GP_MATERN32,
     NULL,
     1,
     {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}},
     "matern32(l=0.2)"},
    {"matern52",
     GP_MATERN52,
     GP_MATERN52,
     NULL,
     1,
     {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}},
     "matern52(l=0.2)"},
    {"rq",
     GP_RQ,
     GP_RQ,
     NULL,
     2,
     {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}, {"alpha", GP_ROLE_SHAPE, GP_ONE}},
     "rq(l=0.2, alpha=1)"},
    {"periodic",
     GP_PERIODIC,
     GP_PERIODIC_GPYTORCH,
     NULL,
     2,
     {{"l", GP_ROLE_SHAPE, GP_PER_COLUMN}, {"p", GP_ROLE_PERIOD, GP_PER_COLUMN}},
     "periodic(l=1, p=12)"},
    {"linear", GP_LINEAR, GP_LINEAR, NULL, 1, {{"v", GP_ROLE_SLOPE, GP_PER_COLUMN}}, "linear(v=1)"},
    {"poly", GP_POLY, GP_POLY, "q", 1, {{"c", GP_ROLE_SHAPE, GP_ONE}}, "poly(q=2, c=1)"},
    {"cosine",
     GP_COSINE,
     GP_COSINE_GPYTORCH,
     NULL,
     1,
     {{"p", GP_ROLE_PERIOD, GP_PER_COLUMN}},
     "cosine(p=12)"},
    {"sm",
     GP_SM,
     GP_SM_GPYTORCH,
     "q",
     3,
     {{"w", GP_ROLE_VARIANCE, GP_PER_COMPONENT},
      {"mu", GP_ROLE_FREQUENCY, GP_PER_BOTH},
      {"v", GP_ROLE_FREQUENCY_VARIANCE, GP_PER_BOTH}},
     "sm(q=3)"},
    {"const", GP_CONST, GP_CONST, NULL, 1, {{"v", GP_ROLE_VARIANCE, GP_ONE}}, "const(v=1)"},
    {"white", GP_WHITE, GP_WHITE, NULL, 1, {{"v", GP_ROLE_NOISE, GP_ONE}}, "white(v=0.1)"},
    {"user", GP_USER, GP_USER, NULL, 1, {{"theta", GP_ROLE_USER, GP_PER_USER}}, "user"},
};
const frgi_gp_group_word frgi_gp_width_word = {"s", GP_ROLE_FREQUENCY_WIDTH, GP_PER_BOTH};

const frgi_gp_leaf_word *frgi_gp_leaf_of(frgi_gp_kind kind)
{
    for (int i = 0; i < GP_LEAVES; i++) {
        if (frgi_gp_leaves[i].kind == kind || frgi_gp_leaves[i].gpytorch == kind) {
            return &frgi_gp_leaves[i];
        }
    }
    return NULL;
}

const frgi_gp_group_word *frgi_gp_group_of(const frgi_gp_leaf_word *leaf, frgi_gp_kind kind, int g)
{
    return kind == GP_SM_GPYTORCH && g == 2 ? &frgi_gp_width_word : &leaf->group[g];
}
