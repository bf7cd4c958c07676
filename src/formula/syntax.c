/* syntax.c - lexer and recursive-descent parser of formulas and expressions.
 *
 * Grammar, loosest first (R's precedences; the bar and the second tilde only between the sections):
 *
 *     formula  := expr "~" section { "|" section }          section := expr [ "~" expr ]
 *     expr     := unary { binary expr }               by precedence climbing
 *     binary   := | || & && == != < <= > >= + - * / %in% : ^ **
 *     unary    := { "-" | "+" | "!" } postfix
 *     postfix  := primary { "[" arguments "]" | "[[" arguments "]]" }
 *     primary  := number | "string" | 'string' | name | `name` | name "(" arguments ")"
 *                 | "(" expr ")"
 *     argument := [ name "=" ] expr
 *
 * Dangers: input is hostile (pointer and length, no terminator assumed), so depth is limited, all
 * positions are checked and long chains (a + b + ...) loop instead of recursing.  Linear time and
 * memory.
 */
#include "formula/syntax.h"

#include <math.h>
#include <string.h>

enum { DEPTH_LIMIT = 64, LENGTH_LIMIT = 1 << 20, TOKEN_SHOWN = 20 };

typedef enum {
    TOKEN_END,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_NAME,
    TOKEN_OPERATOR,
    TOKEN_BAD
} token_kind;

typedef struct {
    token_kind kind;
    int32_t at, length;
    int32_t name, name_length; /* without quotes or backticks */
    double value;
} token;

typedef struct {
    frg_context *ctx;
    frgi_syntax *s;
    token now;
    int depth;
    int32_t end; /* of the last token taken */
} parser;

/* ---- lexer ----------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static char at(const frgi_syntax *s, int32_t i)
{
    return i < s->length ? s->text[i] : '\0';
}

/** Digits, point, exponent.  Up to 19 digits are exact in the integer and 10^0 .. 10^22 are exact
 *  doubles, so a literal with at most 15 digits and such an exponent is correctly rounded; others
 *  to 1 ulp or so. */
static int32_t lex_number(const frgi_syntax *s, int32_t i, double *value)
{
    uint64_t digits = 0;
    int scale = 0;
    bool point = false;
    for (;; i++) {
        const char c = at(s, i);
        if (c == '.' && !point) {
            point = true;
        } else if (is_digit(c)) {
            const bool fits = digits < UINT64_MAX / 10 - 1;
            digits = fits ? digits * 10 + (uint64_t)(c - '0') : digits;
            scale += (fits ? 0 : 1) - (point ? 1 : 0);
        } else {
            break;
        }
    }
    int32_t e = i + 1;
    const bool negative = at(s, e) == '-';
    e += at(s, e) == '-' || at(s, e) == '+';
    if ((at(s, i) == 'e' || at(s, i) == 'E') && is_digit(at(s, e))) {
        int exponent = 0;
        for (; is_digit(at(s, e)); e++) {
            exponent = exponent < 10000 ? exponent * 10 + (at(s, e) - '0') : exponent;
        }
        scale += negative ? -exponent : exponent;
        i = e;
    }
    double power = 1;
    for (int k = scale < 0 ? -scale : scale; k > 0; k--) {
        power *= 10;
        if (isinf(power)) {
            break;
        }
    }
    *value = digits == 0 ? 0 : scale < 0 ? (double)digits / power : (double)digits * power;
    return i + (at(s, i) == 'L'); /* R's integer suffix */
}

static token lex_quoted(const frgi_syntax *s, int32_t i, token_kind kind)
{
    int32_t end = i + 1;
    while (end < s->length && s->text[end] != s->text[i]) {
        end++;
    }
    if (end >= s->length) {
        return (token){.kind = TOKEN_BAD, .at = i, .length = s->length - i};
    }
    return (token){
        .kind = kind, .at = i, .length = end + 1 - i, .name = i + 1, .name_length = end - i - 1};
}

/** Longest match first. */
static int32_t operator_length(const frgi_syntax *s, int32_t i)
{
    static const char *const two[] = {"**", "||", "&&", "!=", "<=", ">=", "=="};
    if (s->length - i >= 4 && memcmp(s->text + i, "%in%", 4) == 0) {
        return 4;
    }
    for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
        if (at(s, i) == two[k][0] && at(s, i + 1) == two[k][1]) {
            return 2;
        }
    }
    return strchr("+-*/^:()[],~|&!<>=", s->text[i]) && s->text[i] ? 1 : 0;
}

static token lex(const frgi_syntax *s, int32_t i)
{
    while (i < s->length && is_space(s->text[i])) {
        i++;
    }
    if (i >= s->length) {
        return (token){.kind = TOKEN_END, .at = s->length};
    }
    const char c = s->text[i];
    if (is_digit(c) || (c == '.' && is_digit(at(s, i + 1)))) {
        token t = {.kind = TOKEN_NUMBER, .at = i};
        t.length = lex_number(s, i, &t.value) - i;
        return t;
    }
    if (is_letter(c) || c == '.') {
        int32_t end = i + 1;
        while (is_letter(at(s, end)) || is_digit(at(s, end)) || at(s, end) == '.') {
            end++;
        }
        return (token){
            .kind = TOKEN_NAME, .at = i, .length = end - i, .name = i, .name_length = end - i};
    }
    if (c == '`' || c == '"' || c == '\'') {
        return lex_quoted(s, i, c == '`' ? TOKEN_NAME : TOKEN_STRING);
    }
    const int32_t length = operator_length(s, i);
    return (token){
        .kind = length ? TOKEN_OPERATOR : TOKEN_BAD, .at = i, .length = length ? length : 1};
}

/* ---- parser ---------------------------------------------------------------------------------- */

static bool shows(const parser *p, const char *operator)
{
    return p->now.kind == TOKEN_OPERATOR && (size_t)p->now.length == strlen(operator) &&
           memcmp(p->s->text + p->now.at, operator,(size_t) p->now.length) == 0;
}

static void advance(parser *p)
{
    p->end = p->now.at + p->now.length;
    p->now = lex(p->s, p->end);
}

/** The error "expected ..., found ..." at the current token. */
static frg_status unexpected(const parser *p, const char *expected)
{
    const token *t = &p->now;
    const int column = frgi_syntax_column(p->s, t->at);
    frgi_at(p->ctx, "%s:%d", p->s->what, column);
    if (t->kind == TOKEN_END) {
        FAIL(p->ctx, E_FORMULA, "%s, column %d: expected %s, but the text ends", p->s->what, column,
             expected);
    }
    const int shown = t->length > TOKEN_SHOWN ? TOKEN_SHOWN : t->length;
    const char first = p->s->text[t->at];
    if (t->kind == TOKEN_BAD && (first == '"' || first == '\'' || first == '`')) {
        FAIL(p->ctx, E_FORMULA, "%s, column %d: the quote %c is not closed", p->s->what, column,
             first);
    }
    if ((unsigned char)first < 0x20 || first == 0x7f) {
        FAIL(p->ctx, E_FORMULA, "%s, column %d: expected %s, found the byte 0x%02x", p->s->what,
             column, expected, (unsigned)(unsigned char)first);
    }
    const bool spaced = t->kind == TOKEN_NAME && first != '`' && t->at > p->end && p->end > 0;
    FAIL(p->ctx, E_FORMULA, "%s, column %d: expected %s, found '%.*s'%s", p->s->what, column,
         expected, shown, p->s->text + t->at,
         spaced ? " (names with spaces stand in backticks)" : "");
}

static frg_status take(parser *p, const char *operator, const char * expected)
{
    if (!shows(p, operator)) {
        return unexpected(p, expected);
    }
    advance(p);
    return FRG_OK;
}

static frg_status push(parser *p, frgi_node node)
{
    frgi_syntax *const s = p->s;
    if (s->n_nodes == s->capacity) {
        const int32_t capacity = s->capacity ? 2 * s->capacity : 64;
        TRY(GROW(p->ctx, &s->nodes, capacity, "the formula"));
        s->capacity = capacity;
    }
    node.length = p->end - node.at;
    s->nodes[s->n_nodes++] = node;
    return FRG_OK;
}

static frg_status parse(parser *p, int loosest);

/** Arguments up to the closing bracket, which stays; their number goes to *count. */
static frg_status parse_arguments(parser *p, const char *close, int32_t *count)
{
    *count = 0;
    if (shows(p, close)) {
        return FRG_OK;
    }
    for (;;) {
        const token first = p->now;
        const int32_t begin = p->s->n_nodes;
        bool named = false;
        if (first.kind == TOKEN_NAME) {
            const token next = lex(p->s, first.at + first.length);
            named = next.kind == TOKEN_OPERATOR && next.length == 1 && p->s->text[next.at] == '=';
        }
        if (named) {
            advance(p);
            advance(p);
        }
        TRY(parse(p, 0));
        if (named) {
            TRY(push(p, (frgi_node){.kind = NODE_NAMED,
                                    .children = 1,
                                    .begin = begin,
                                    .at = first.at,
                                    .name = first.name,
                                    .name_length = first.name_length}));
        }
        ++*count;
        if (!shows(p, ",")) {
            return FRG_OK;
        }
        advance(p);
    }
}

static frg_status parse_primary(parser *p)
{
    const token t = p->now;
    const int32_t begin = p->s->n_nodes;
    frgi_node node = {
        .begin = begin, .at = t.at, .name = t.name, .name_length = t.name_length, .value = t.value};
    if (shows(p, "(")) {
        advance(p);
        TRY(parse(p, 0));
        TRY(take(p, ")", "')'"));
        node.kind = NODE_PAREN;
        node.children = 1;
        return push(p, node);
    }
    if (t.kind != TOKEN_NUMBER && t.kind != TOKEN_STRING && t.kind != TOKEN_NAME) {
        return unexpected(p, "a column, a number or '('");
    }
    advance(p);
    if (t.kind == TOKEN_NAME && shows(p, "(")) {
        advance(p);
        TRY(parse_arguments(p, ")", &node.children));
        TRY(take(p, ")", "',' or ')'"));
        node.kind = NODE_CALL;
        return push(p, node);
    }
    node.kind = t.kind == TOKEN_NUMBER   ? NODE_NUMBER
                : t.kind == TOKEN_STRING ? NODE_STRING
                                         : NODE_NAME;
    return push(p, node);
}

static frg_status parse_postfix(parser *p)
{
    const int32_t begin = p->s->n_nodes, start = p->now.at;
    TRY(parse_primary(p));
    while (shows(p, "[")) {
        advance(p);
        const bool alone = shows(p, "[") && p->now.at == p->end; /* the brackets touch */
        if (alone) {
            advance(p);
        }
        int32_t count;
        TRY(parse_arguments(p, "]", &count));
        TRY(take(p, "]", "',' or ']'"));
        if (alone) {
            TRY(take(p, "]", "']]'"));
        }
        TRY(push(p, (frgi_node){.kind = alone ? NODE_ALONE : NODE_SLOPES,
                                .children = count + 1,
                                .begin = begin,
                                .at = start}));
    }
    return FRG_OK;
}

enum { UNARY_NOT = 2, COMPARE = 3, UNARY_SIGN = 8, POWER = 9 };

typedef struct {
    const char *text;
    frgi_node_kind kind;
    int precedence;
} binary_operator;

static const binary_operator *binary_here(const parser *p)
{
    static const binary_operator table[] = {
        {"|", NODE_OR, 0},
        {"||", NODE_OR, 0},
        {"&", NODE_AND, 1},
        {"&&", NODE_AND, 1},
        {"<", NODE_LESS, COMPARE},
        {"<=", NODE_LESS_EQUAL, COMPARE},
        {">", NODE_GREATER, COMPARE},
        {">=", NODE_GREATER_EQUAL, COMPARE},
        {"==", NODE_EQUAL, COMPARE},
        {"!=", NODE_UNEQUAL, COMPARE},
        {"+", NODE_ADD, 4},
        {"-", NODE_SUBTRACT, 4},
        {"*", NODE_MULTIPLY, 5},
        {"/", NODE_DIVIDE, 5},
        {"%in%", NODE_IN, 6},
        {":", NODE_INTERACT, 7},
        {"^", NODE_POWER, POWER},
        {"**", NODE_POWER, POWER},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (shows(p, table[i].text)) {
            return &table[i];
        }
    }
    return NULL;
}

/** -x^2 is -(x^2), and ! reaches over comparisons. */
static frg_status parse_unary(parser *p)
{
    static const struct {
        const char *text;
        frgi_node_kind kind;
        int precedence;
    } table[] = {{"-", NODE_NEGATIVE, UNARY_SIGN},
                 {"+", NODE_POSITIVE, UNARY_SIGN},
                 {"!", NODE_NOT, UNARY_NOT}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (shows(p, table[i].text)) {
            const int32_t begin = p->s->n_nodes, start = p->now.at;
            advance(p);
            TRY(parse(p, table[i].precedence));
            return push(
                p, (frgi_node){.kind = table[i].kind, .children = 1, .begin = begin, .at = start});
        }
    }
    return parse_postfix(p);
}

/** Operators of at least this precedence; ^ and ** group to the right, comparisons not at all. */
static frg_status parse(parser *p, int loosest)
{
    if (++p->depth > DEPTH_LIMIT) {
        const int column = frgi_syntax_column(p->s, p->now.at);
        frgi_at(p->ctx, "%s:%d", p->s->what, column);
        FAIL(p->ctx, E_FORMULA, "%s, column %d: nested more than %d deep", p->s->what, column,
             (int)DEPTH_LIMIT);
    }
    const int32_t begin = p->s->n_nodes, start = p->now.at;
    TRY(parse_unary(p));
    bool compared = false;
    for (const binary_operator *o = binary_here(p); o && o->precedence >= loosest;
         o = binary_here(p)) {
        if (o->precedence == COMPARE && compared) {
            return unexpected(p, "parentheses around a comparison");
        }
        compared |= o->precedence == COMPARE;
        advance(p);
        TRY(parse(p, o->precedence == POWER ? UNARY_SIGN : o->precedence + 1));
        TRY(push(p, (frgi_node){.kind = o->kind, .children = 2, .begin = begin, .at = start}));
    }
    p->depth--;
    return FRG_OK;
}

/** A section of a formula: the bar is no operator there. */
static frg_status parse_section(parser *p, int32_t *root)
{
    TRY(parse(p, 1));
    *root = p->s->n_nodes - 1;
    return FRG_OK;
}

static frg_status begin(parser *p, frgi_syntax *s, frg_context *ctx, const char *text,
                        int64_t length, const char *what)
{
    *s = (frgi_syntax){.text = text, .what = what, .left = -1};
    if (length > LENGTH_LIMIT) {
        FAIL(ctx, E_FORMULA, "%s: %lld bytes long, at most %d are read", what, (long long)length,
             (int)LENGTH_LIMIT);
    }
    if (length > 0 && memchr(text, 0, (size_t)length)) {
        FAIL(ctx, E_FORMULA, "%s: holds a byte 0", what);
    }
    s->length = (int32_t)length;
    *p = (parser){.ctx = ctx, .s = s};
    p->now = lex(s, 0);
    return FRG_OK;
}

frg_status frgi_syntax_formula(frgi_syntax *s, frg_context *ctx, const char *text, int64_t length)
{
    parser p;
    TRY(begin(&p, s, ctx, text, length, "formula"));
    if (shows(&p, "~")) {
        return unexpected(&p, "the dependent variable");
    }
    TRY(parse_section(&p, &s->left));
    TRY(take(&p, "~", "'~'"));
    for (;;) {
        const int section = s->n_sections++;
        s->instruments[section] = -1;
        TRY(parse_section(&p, &s->section[section]));
        if (shows(&p, "~")) {
            advance(&p);
            TRY(parse_section(&p, &s->instruments[section]));
        }
        if (p.now.kind == TOKEN_END) {
            return FRG_OK;
        }
        if (!shows(&p, "|") || s->n_sections == FRGI_FORMULA_SECTIONS) {
            return unexpected(&p, s->n_sections == FRGI_FORMULA_SECTIONS
                                      ? "the end of the formula after three parts"
                                      : "an operator, '|' or the end");
        }
        advance(&p);
    }
}

frg_status frgi_syntax_expression(frgi_syntax *s, frg_context *ctx, const char *text,
                                  int64_t length, const char *what)
{
    parser p;
    TRY(begin(&p, s, ctx, text, length, what));
    TRY(parse(&p, 0));
    s->section[0] = s->n_nodes - 1;
    s->n_sections = 1;
    return p.now.kind == TOKEN_END ? FRG_OK : unexpected(&p, "an operator or the end");
}

void frgi_syntax_free(frgi_syntax *s, frg_context *ctx)
{
    DROP(ctx, &s->nodes);
    *s = (frgi_syntax){0};
}

/* ---- looking at nodes ------------------------------------------------------------------------ */

int32_t frgi_syntax_child(const frgi_syntax *s, int32_t node, int32_t i)
{
    int32_t child = node - 1;
    for (int32_t k = s->nodes[node].children - 1; k > i; k--) {
        child = s->nodes[child].begin - 1;
    }
    return child;
}

bool frgi_syntax_is(const frgi_syntax *s, int32_t node, const char *name)
{
    const frgi_node *const x = &s->nodes[node];
    return (size_t)x->name_length == strlen(name) &&
           memcmp(s->text + x->name, name, (size_t)x->name_length) == 0;
}

bool frgi_syntax_names(const frgi_syntax *s, int32_t node, const char *name)
{
    return s->nodes[node].kind == NODE_NAME && frgi_syntax_is(s, node, name);
}

int32_t frgi_syntax_count(const frgi_syntax *s, const char *name)
{
    int32_t count = 0;
    for (int32_t i = 0; i < s->n_nodes; i++) {
        count += frgi_syntax_names(s, i, name);
    }
    return count;
}

bool frgi_syntax_is_set(const frgi_syntax *s, int32_t node)
{
    return s->nodes[node].kind == NODE_CALL && frgi_syntax_is(s, node, "c");
}

frg_status frgi_syntax_refuse(const frgi_syntax *s, frg_context *ctx, frgi_error id, int32_t node,
                              const char *message)
{
    enum { SHOWN = 60 };
    const frgi_node *const x = &s->nodes[node];
    frgi_syntax_at(s, ctx, node);
    FAIL(ctx, id, "%s, column %d: '%.*s': %s", s->what, frgi_syntax_column(s, x->at),
         x->length > SHOWN ? SHOWN : x->length, s->text + x->at, message);
}

int frgi_syntax_column(const frgi_syntax *s, int32_t position)
{
    int column = 1;
    for (int32_t i = 0; i < position; i++) {
        column += ((unsigned char)s->text[i] & 0xc0) != 0x80;
    }
    return column;
}

void frgi_syntax_at(const frgi_syntax *s, frg_context *ctx, int32_t node)
{
    frgi_at(ctx, "%s:%d", s->what, frgi_syntax_column(s, s->nodes[node].at));
}

/** Does R's deparse put spaces around this operator? */
static bool is_spaced(const frgi_syntax *s, const token *t)
{
    const char c = s->text[t->at];
    return t->length > 1 ? !(c == '*' && t->length == 2) : strchr("+-*<>&|=", c) != NULL;
}

frg_status frgi_syntax_text(const frgi_syntax *s, frg_context *ctx, int32_t node, frgi_text *out)
{
    const frgi_node *const x = &s->nodes[node];
    if (x->kind == NODE_NAME) {
        return frgi_text_append(ctx, out, s->text + x->name, (size_t)x->name_length);
    }
    const frgi_syntax slice = {.text = s->text, .length = x->at + x->length};
    bool operand = false; /* the last token ends an operand: a sign after it is binary */
    for (token t = lex(&slice, x->at); t.kind != TOKEN_END; t = lex(&slice, t.at + t.length)) {
        const char c = s->text[t.at];
        const bool is_operator = t.kind == TOKEN_OPERATOR;
        if (is_operator && c == ',') {
            TRY(frgi_text_append(ctx, out, ", ", 2));
        } else if (is_operator && operand && is_spaced(s, &t)) {
            TRY(frgi_text_printf(ctx, out, " %.*s ", t.length, s->text + t.at));
        } else if (is_operator && t.length == 2 && c == '*') {
            TRY(frgi_text_append(ctx, out, "^", 1));
        } else {
            TRY(frgi_text_append(ctx, out, s->text + t.at, (size_t)t.length));
        }
        operand = !is_operator || c == ')' || c == ']';
    }
    return FRG_OK;
}
