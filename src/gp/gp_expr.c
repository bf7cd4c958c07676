/* gp_expr.c - kernel expressions: lexer, recursive-descent parser, printer.
 *
 *     expression := sum                                        top level: one term may be noise[(value)]
 *     sum        := product { "+" product }
 *     product    := [ number marks "*" ] factor { "*" factor }  the number is a variance, as is the word scale
 *     factor     := "(" sum ")" | "on" "(" columns ";" sum ")" | "scale" [ "(" value ")" ] | name [ "(" items ")" ]
 *     items      := item { "," item }        item := "ard" | name "=" values | values | "form" "=" name
 *     values     := value | "[" value { "," value } "]"
 *     value      := number marks | marks     marks := [ "!" ] [ "in" "(" number "," number ")" ]
 *     columns    := column { "," column }    column := name | "name" | number from 1
 *
 * Parameters are appended to the process's list as they are met, so their order is that of the text.  Dangers: the
 * text is anybody's; depth, nodes and parameters are limited, every position is checked, time is linear.  The printer
 * writes parentheses wherever the tree has a level, so that what it writes is parsed into the same tree.
 */
#include <math.h>
#include <string.h>

#include "fourge/report.h"
#include "gp/gp_tree.h"
#include "io/decimal.h"

enum { DEPTH_LIMIT = 64, TOKEN_SHOWN = 20, WORD_LENGTH = 31, LENGTH_LIMIT = 1 << 20 };

/* ---- the words ---------------------------------------------------------------------------------- */

/** How many entries a group has when it is a vector. */
typedef enum { ONE, PER_COLUMN, PER_COMPONENT, PER_BOTH, PER_USER } spread;

typedef struct {
    const char *name;
    frgi_gp_role role;
    spread spread;
} group_word;

typedef struct {
    const char *name;
    frgi_gp_kind kind;
    frgi_gp_kind gpytorch; /* with form=gpytorch, the same where there is none */
    const char *counts;    /* name of an integer argument, NULL: none */
    int n_groups;
    group_word group[GP_GROUPS];
    const char *example;
} leaf_word;

static const leaf_word leaves[] = {
    {"rbf", GP_RBF, GP_RBF, NULL, 1, {{"l", GP_ROLE_LENGTH, PER_COLUMN}}, "rbf(l=0.2)"},
    {"matern12",
     GP_MATERN12,
     GP_MATERN12,
     NULL,
     1,
     {{"l", GP_ROLE_LENGTH, PER_COLUMN}},
     "matern12(l=0.2)"},
    {"matern32",
     GP_MATERN32,
     GP_MATERN32,
     NULL,
     1,
     {{"l", GP_ROLE_LENGTH, PER_COLUMN}},
     "matern32(l=0.2)"},
    {"matern52",
     GP_MATERN52,
     GP_MATERN52,
     NULL,
     1,
     {{"l", GP_ROLE_LENGTH, PER_COLUMN}},
     "matern52(l=0.2)"},
    {"rq",
     GP_RQ,
     GP_RQ,
     NULL,
     2,
     {{"l", GP_ROLE_LENGTH, PER_COLUMN}, {"alpha", GP_ROLE_SHAPE, ONE}},
     "rq(l=0.2, alpha=1)"},
    {"periodic",
     GP_PERIODIC,
     GP_PERIODIC_GPYTORCH,
     NULL,
     2,
     {{"l", GP_ROLE_SHAPE, PER_COLUMN}, {"p", GP_ROLE_PERIOD, PER_COLUMN}},
     "periodic(l=1, p=12)"},
    {"linear", GP_LINEAR, GP_LINEAR, NULL, 1, {{"v", GP_ROLE_SLOPE, PER_COLUMN}}, "linear(v=1)"},
    {"poly", GP_POLY, GP_POLY, "q", 1, {{"c", GP_ROLE_SHAPE, ONE}}, "poly(q=2, c=1)"},
    {"cosine",
     GP_COSINE,
     GP_COSINE_GPYTORCH,
     NULL,
     1,
     {{"p", GP_ROLE_PERIOD, PER_COLUMN}},
     "cosine(p=12)"},
    {"sm",
     GP_SM,
     GP_SM_GPYTORCH,
     "q",
     3,
     {{"w", GP_ROLE_VARIANCE, PER_COMPONENT},
      {"mu", GP_ROLE_FREQUENCY, PER_BOTH},
      {"v", GP_ROLE_FREQUENCY_VARIANCE, PER_BOTH}},
     "sm(q=3)"},
    {"const", GP_CONST, GP_CONST, NULL, 1, {{"v", GP_ROLE_VARIANCE, ONE}}, "const(v=1)"},
    {"white", GP_WHITE, GP_WHITE, NULL, 1, {{"v", GP_ROLE_NOISE, ONE}}, "white(v=0.1)"},
    {"user", GP_USER, GP_USER, NULL, 1, {{"theta", GP_ROLE_USER, PER_USER}}, "user"},
};
enum { LEAVES = sizeof leaves / sizeof *leaves };

/** With form=gpytorch the third group of sm is a width, not a variance. */
static const group_word width_word = {"s", GP_ROLE_FREQUENCY_WIDTH, PER_BOTH};

static const leaf_word *leaf_of(frgi_gp_kind kind)
{
    for (int i = 0; i < LEAVES; i++) {
        if (leaves[i].kind == kind || leaves[i].gpytorch == kind) {
            return &leaves[i];
        }
    }
    return NULL;
}

static const group_word *group_word_of(const leaf_word *leaf, frgi_gp_kind kind, int g)
{
    return kind == GP_SM_GPYTORCH && g == 2 ? &width_word : &leaf->group[g];
}

/* ---- lexer -------------------------------------------------------------------------------------- */

typedef enum {
    TOKEN_END,
    TOKEN_NUMBER,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_SIGN,
    TOKEN_BAD
} token_kind;

typedef struct {
    token_kind kind;
    int at, length;
} token;

typedef struct {
    frg_context *ctx;
    const char *text;
    int length;
    token now;
    int depth;
    frgi_gp_kernel *k;
    frgi_gp_params *params;
    frgi_decimal *decimal; /* opened for the first number that needs it */
    int column, dims;      /* what leaves see here */
    int uses[LEAVES];
    int scales;
} parser;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static char at(const parser *p, int i)
{
    return i < p->length ? p->text[i] : '\0';
}

static int end_of_number(const parser *p, int i)
{
    while (is_digit(at(p, i))) {
        i++;
    }
    if (at(p, i) == '.') {
        i++;
        while (is_digit(at(p, i))) {
            i++;
        }
    }
    const int sign = i + 1 + (at(p, i + 1) == '-' || at(p, i + 1) == '+');
    if ((at(p, i) == 'e' || at(p, i) == 'E') && is_digit(at(p, sign))) {
        i = sign;
        while (is_digit(at(p, i))) {
            i++;
        }
    }
    return i;
}

static token lex(const parser *p, int i)
{
    while (at(p, i) == ' ' || at(p, i) == '\t' || at(p, i) == '\n' || at(p, i) == '\r') {
        i++;
    }
    if (i >= p->length) {
        return (token){.kind = TOKEN_END, .at = p->length};
    }
    const char c = p->text[i];
    int end = i + 1;
    if (is_digit(c) || (c == '.' && is_digit(at(p, i + 1)))) {
        return (token){.kind = TOKEN_NUMBER, .at = i, .length = end_of_number(p, i) - i};
    }
    if (is_letter(c)) {
        while (is_letter(at(p, end)) || is_digit(at(p, end)) || at(p, end) == '.') {
            end++;
        }
        return (token){.kind = TOKEN_NAME, .at = i, .length = end - i};
    }
    if (c == '"' || c == '\'' || c == '`') {
        while (end < p->length && p->text[end] != c) {
            end++;
        }
        const bool closed = end < p->length;
        return (token){
            .kind = closed ? TOKEN_STRING : TOKEN_BAD, .at = i, .length = end + closed - i};
    }
    const bool known = strchr("+*()[],;=!", c) != NULL;
    return (token){.kind = known ? TOKEN_SIGN : TOKEN_BAD, .at = i, .length = 1};
}

static void advance(parser *p)
{
    p->now = lex(p, p->now.at + p->now.length);
}

static bool shows(const parser *p, char sign)
{
    return p->now.kind == TOKEN_SIGN && p->text[p->now.at] == sign;
}

static bool is_word(const parser *p, const token *t, const char *word)
{
    return t->kind == TOKEN_NAME && (size_t)t->length == strlen(word) &&
           memcmp(p->text + t->at, word, (size_t)t->length) == 0;
}

/** Column of a byte, counted in characters from 1; the place is set for the next failure. */
static int place(const parser *p, int byte)
{
    int column = 1;
    for (int i = 0; i < byte; i++) {
        column += ((unsigned char)p->text[i] & 0xc0) != 0x80;
    }
    frgi_at(p->ctx, "kernel:%d", column);
    return column;
}

static frg_status unexpected(const parser *p, const char *expected)
{
    const token *t = &p->now;
    const int column = place(p, t->at);
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

static frg_status take(parser *p, char sign, const char *expected)
{
    if (!shows(p, sign)) {
        return unexpected(p, expected);
    }
    advance(p);
    return FRG_OK;
}

/** The word of a token as a string, cut to WORD_LENGTH. */
static void spell(const parser *p, const token *t, char out[WORD_LENGTH + 1])
{
    const int length = t->length < WORD_LENGTH ? t->length : WORD_LENGTH;
    memcpy(out, p->text + t->at, (size_t)length);
    out[length] = '\0';
}

/* ---- numbers and values ------------------------------------------------------------------------- */

/** Up to 15 digits and a power of ten up to 22 are exact; the rest goes to the table of powers. */
static frg_status read_number(parser *p, const token *t, double *out)
{
    uint64_t digits = 0;
    int count = 0, after = 0;
    bool plain = true;
    for (int i = t->at; i < t->at + t->length; i++) {
        const char c = p->text[i];
        if (is_digit(c)) {
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
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: this is no number", place(p, t->at));
    }
    return FRG_OK;
}

static frg_status parse_number(parser *p, double *out)
{
    const token t = p->now;
    if (t.kind != TOKEN_NUMBER) {
        return unexpected(p, "a number > 0");
    }
    TRY(read_number(p, &t, out));
    if (!(*out > 0) || isinf(*out)) {
        FAIL(p->ctx, E_KERNEL,
             "kernel, column %d: parameters are positive and finite, found '%.*s'", place(p, t.at),
             t.length > TOKEN_SHOWN ? TOKEN_SHOWN : t.length, p->text + t.at);
    }
    advance(p);
    return FRG_OK;
}

typedef struct {
    double value, lower, upper; /* NaN: not given */
    bool fixed;
} value;

static const value open_value = {NAN, NAN, NAN, false};

/** [ "!" ] [ "in(lo,hi)" ] */
static frg_status parse_marks(parser *p, value *v)
{
    const int begin = p->now.at;
    if (shows(p, '!')) {
        if (isnan(v->value)) {
            return unexpected(p, "a number before '!'");
        }
        v->fixed = true;
        advance(p);
    }
    if (!is_word(p, &p->now, "in")) {
        return FRG_OK;
    }
    advance(p);
    TRY(take(p, '(', "'(' and two bounds"));
    TRY(parse_number(p, &v->lower));
    TRY(take(p, ',', "',' and the upper bound"));
    TRY(parse_number(p, &v->upper));
    TRY(take(p, ')', "')'"));
    if (v->lower >= v->upper) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: the lower bound is not below the upper one",
             place(p, begin));
    }
    if (v->value < v->lower || v->value > v->upper) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: the value is outside its bounds",
             place(p, begin));
    }
    return FRG_OK;
}

static bool value_begins(const parser *p)
{
    return p->now.kind == TOKEN_NUMBER || is_word(p, &p->now, "in");
}

static frg_status parse_value(parser *p, value *v)
{
    *v = open_value;
    if (!value_begins(p)) {
        return unexpected(p, "a number or in(lo,hi)");
    }
    if (p->now.kind == TOKEN_NUMBER) {
        TRY(parse_number(p, &v->value));
    }
    return parse_marks(p, v);
}

/* ---- nodes and parameters ----------------------------------------------------------------------- */

static frg_status push(parser *p, frgi_gp_node node)
{
    if (p->k->n_nodes == GP_MAX_NODES) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: the expression has more than %d parts",
             place(p, p->now.at), GP_MAX_NODES);
    }
    node.column = p->column;
    node.dims = p->dims;
    p->k->node[p->k->n_nodes++] = node;
    return FRG_OK;
}

static frg_status push_column(parser *p, int column)
{
    frgi_gp_kernel *const k = p->k;
    if (k->n_column == k->room_column) {
        const int room = k->room_column ? 2 * k->room_column : 64;
        TRY(GROW(p->ctx, &k->column, room, "the kernel's columns"));
        k->room_column = room;
    }
    k->column[k->n_column++] = column;
    return FRG_OK;
}

/** Bit set of the columns seen here; all ones where a column beyond the 64th is among them. */
static uint64_t columns_seen(const parser *p)
{
    uint64_t seen = 0;
    for (int i = 0; i < p->dims; i++) {
        const int32_t c = p->k->column[p->column + i];
        if (c >= 64) {
            return UINT64_MAX;
        }
        seen |= UINT64_C(1) << c;
    }
    return seen;
}

static frg_status add_parameter(parser *p, const char *name, frgi_gp_role role, int entry,
                                int column, value v, double factor)
{
    if (p->params->count >= GP_MAX_PARAMETERS) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: the expression has more than %d parameters",
             place(p, p->now.at), GP_MAX_PARAMETERS);
    }
    return frgi_gp_params_add(p->params, name,
                              (frgi_gp_param){.entry = entry,
                                              .role = role,
                                              .column = column,
                                              .columns = columns_seen(p),
                                              .value = v.value,
                                              .start_factor = factor,
                                              .lower = v.lower,
                                              .upper = v.upper,
                                              .bounded = !isnan(v.lower),
                                              .transform = FRG_GP_LOG,
                                              .fixed = v.fixed,
                                              .std_error = NAN});
}

/** "rbf" the first time, "rbf2" the second. */
static void number_name(char out[WORD_LENGTH + 16], const char *name, int use)
{
    size_t length = strlen(name);
    memcpy(out, name, length + 1);
    if (use > 1) {
        char digits[12];
        int n = 0;
        for (int rest = use; rest > 0; rest /= 10) {
            digits[n++] = (char)('0' + rest % 10);
        }
        while (n > 0) {
            out[length++] = digits[--n];
        }
        out[length] = '\0';
    }
}

static frg_status add_scale(parser *p, value v, int *parameter)
{
    char name[WORD_LENGTH + 16];
    number_name(name, "scale", ++p->scales);
    *parameter = p->params->count;
    return add_parameter(p, name, GP_ROLE_VARIANCE, -1, -1, v, 1);
}

/* ---- a leaf and its arguments ------------------------------------------------------------------- */

/** What was written for one group: the values stand in the parser's list until the leaf is complete. */
typedef struct {
    value *list;
    int count, room;
    bool vector, given;
    int at;
} written;

typedef struct {
    const leaf_word *word;
    int at; /* of the name in the text */
    frgi_gp_node node;
    bool ard;
    written group[GP_GROUPS];
} leaf;

static frg_status push_value(parser *p, written *w, value v)
{
    if (w->count == w->room) {
        const int room = w->room ? 2 * w->room : 8;
        TRY(GROW(p->ctx, &w->list, room, "the kernel's values"));
        w->room = room;
    }
    w->list[w->count++] = v;
    return FRG_OK;
}

static frg_status parse_values(parser *p, written *w)
{
    value v;
    if (w->given) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: this parameter is given twice",
             place(p, p->now.at));
    }
    w->given = true;
    w->at = p->now.at;
    w->vector = shows(p, '[');
    if (!w->vector) {
        TRY(parse_value(p, &v));
        return push_value(p, w, v);
    }
    do {
        advance(p);
        TRY(parse_value(p, &v));
        TRY(push_value(p, w, v));
    } while (shows(p, ',') && w->count <= GP_MAX_PARAMETERS);
    return take(p, ']', "',' or ']'");
}

static frg_status parse_count(parser *p, leaf *l)
{
    const token t = p->now;
    double number = 0;
    if (t.kind != TOKEN_NUMBER) {
        return unexpected(p, "a whole number");
    }
    TRY(read_number(p, &t, &number));
    if (number != floor(number) || number < 1 || number > GP_MAX_DEGREE) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: %s of %s is a whole number from 1 to %d",
             place(p, t.at), l->word->counts, l->word->name, GP_MAX_DEGREE);
    }
    advance(p);
    l->node.degree = (int)number;
    return FRG_OK;
}

static frg_status unknown_argument(const parser *p, const leaf *l, const token *name)
{
    const char *known[GP_GROUPS + 3];
    int n = 0;
    char word[WORD_LENGTH + 1];
    spell(p, name, word);
    for (int g = 0; g < l->word->n_groups; g++) {
        known[n++] = group_word_of(l->word, l->node.kind, g)->name;
    }
    if (l->word->counts) {
        known[n++] = l->word->counts;
    }
    if (l->word->gpytorch != l->word->kind) {
        known[n++] = "form";
    }
    known[n++] = "ard";
    const char *near = frgi_nearest(word, known, n);
    const int column = place(p, name->at);
    if (near) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: %s has no parameter '%s'; did you mean %s?",
             column, l->word->name, word, near);
    }
    FAIL(p->ctx, E_KERNEL, "kernel, column %d: %s has no parameter '%s'; write %s", column,
         l->word->name, word, l->word->example);
}

static frg_status parse_form(parser *p, leaf *l)
{
    if (!is_word(p, &p->now, "gpytorch")) {
        return unexpected(p, "gpytorch");
    }
    if (l->word->gpytorch == l->word->kind) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: %s has one form only", place(p, p->now.at),
             l->word->name);
    }
    l->node.kind = l->word->gpytorch;
    advance(p);
    return FRG_OK;
}

/** name = values */
static frg_status parse_named(parser *p, leaf *l)
{
    const token name = p->now;
    advance(p);
    advance(p);
    if (is_word(p, &name, "form")) {
        return parse_form(p, l);
    }
    if (l->word->counts && is_word(p, &name, l->word->counts)) {
        return parse_count(p, l);
    }
    for (int g = 0; g < l->word->n_groups; g++) {
        const bool width = l->word->kind == GP_SM && g == 2 && is_word(p, &name, width_word.name);
        if (is_word(p, &name, l->word->group[g].name) || width) {
            return parse_values(p, &l->group[g]);
        }
    }
    return unknown_argument(p, l, &name);
}

static frg_status parse_arguments(parser *p, leaf *l)
{
    int next = l->word->counts ? -1 : 0; /* group of the next positional argument, -1: the count */
    if (shows(p, ')')) {
        advance(p);
        return FRG_OK;
    }
    for (;;) {
        const token after = lex(p, p->now.at + p->now.length);
        if (p->now.kind == TOKEN_NAME && after.kind == TOKEN_SIGN && p->text[after.at] == '=') {
            TRY(parse_named(p, l));
        } else if (is_word(p, &p->now, "ard")) {
            l->ard = true;
            advance(p);
        } else if (p->now.kind == TOKEN_NAME && !is_word(p, &p->now, "in")) {
            return unknown_argument(p, l, &p->now);
        } else if (next < 0) {
            TRY(parse_count(p, l));
            next = 0;
        } else if (next < l->word->n_groups) {
            TRY(parse_values(p, &l->group[next++]));
        } else {
            return unexpected(p, "')'");
        }
        if (!shows(p, ',')) {
            return take(p, ')', "',' or ')'");
        }
        advance(p);
    }
}

static int vector_length(const parser *p, const leaf *l, spread s)
{
    switch (s) {
    case PER_COLUMN:
        return p->dims;
    case PER_COMPONENT:
        return l->node.degree;
    case PER_BOTH:
        return l->node.degree * p->dims;
    case PER_USER:
        return p->k->user.n_parameters;
    default:
        return 1;
    }
}

/** Appends the parameters of one group. */
static frg_status add_group(parser *p, leaf *l, int g, const char *prefix)
{
    const group_word *const word = group_word_of(l->word, l->node.kind, g);
    const written *const w = &l->group[g];
    const int full = vector_length(p, l, word->spread);
    const bool always =
        word->spread == PER_COMPONENT || word->spread == PER_BOTH || word->spread == PER_USER;
    const bool vector = always || w->vector || (l->ard && word->spread == PER_COLUMN);
    if (w->vector && w->count != full) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: %s of %s has %d entries here, expected %d",
             place(p, w->at), word->name, l->word->name, w->count, full);
    }
    char name[2 * WORD_LENGTH + 16];
    memcpy(name, prefix, strlen(prefix) + 1);
    strcat(strcat(name, "."), word->name);
    const int count = vector ? full : 1;
    l->node.group[g] = (frgi_gp_group){.first = p->params->count, .count = count, .vector = vector};
    l->node.n_groups = g + 1;
    for (int i = 0; i < count; i++) {
        value v = w->count == 0 ? open_value : w->list[w->vector ? i : 0];
        int column = -1;
        double factor = 1;
        if (word->spread == PER_COLUMN && vector) {
            column = p->k->column[p->column + i];
        } else if (word->spread == PER_BOTH) {
            column = p->k->column[p->column + i % p->dims];
            factor = word->role == GP_ROLE_FREQUENCY ? i / p->dims + 0.5 : 1;
        } else if (word->spread == PER_COMPONENT) {
            factor = 1.0 / full;
        } else if (word->spread == PER_USER && isnan(v.value)) {
            v.value = p->k->user.start[i];
        }
        TRY(add_parameter(p, name, word->role, vector ? i : -1, column, v, factor));
    }
    return FRG_OK;
}

static frg_status check_leaf(const parser *p, const leaf *l)
{
    const frgi_gp_kind kind = l->node.kind;
    if (p->dims == 0 && kind != GP_CONST && kind != GP_WHITE && kind != GP_USER) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: %s needs at least one column of x",
             place(p, l->at), l->word->name);
    }
    if (l->word->counts && l->node.degree == 0) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: %s needs its %s; write %s", place(p, l->at),
             l->word->name, l->word->counts, l->word->example);
    }
    if (kind == GP_COSINE_GPYTORCH && p->dims != 1) {
        FAIL(p->ctx, E_KERNEL,
             "kernel, column %d: the cosine of a distance is no covariance in %d columns; leave "
             "form=gpytorch out, "
             "or pick one column with on(name; cosine(p, form=gpytorch))",
             place(p, l->at), p->dims);
    }
    if (l->ard && l->word->group[0].spread != PER_COLUMN) {
        FAIL(p->ctx, E_KERNEL,
             "kernel, column %d: %s has nothing that could differ between columns; leave ard out",
             place(p, l->at), l->word->name);
    }
    if (kind == GP_USER && !p->k->has_user) {
        FAIL(p->ctx, E_KERNEL,
             "kernel, column %d: user stands for a kernel given by the caller, and none is given",
             place(p, l->at));
    }
    if (kind == GP_USER && p->uses[l->word - leaves] > 0) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: user stands once", place(p, l->at));
    }
    return FRG_OK;
}

static frg_status parse_leaf_into(parser *p, leaf *l)
{
    advance(p);
    if (shows(p, '(')) {
        advance(p);
        TRY(parse_arguments(p, l));
    }
    TRY(check_leaf(p, l));
    char prefix[WORD_LENGTH + 16];
    number_name(prefix, l->word->name, ++p->uses[l->word - leaves]);
    for (int g = 0; g < l->word->n_groups; g++) {
        TRY(add_group(p, l, g, prefix));
    }
    return push(p, l->node);
}

static frg_status parse_leaf(parser *p, const leaf_word *word)
{
    leaf l = {.word = word, .at = p->now.at, .node = {.kind = word->kind, .begin = p->k->n_nodes}};
    const frg_status status = parse_leaf_into(p, &l);
    for (int g = 0; g < GP_GROUPS; g++) {
        DROP(p->ctx, &l.group[g].list);
    }
    return status;
}

/* ---- on(columns; kernel) ------------------------------------------------------------------------ */

static frg_status no_such_column(const parser *p, const char *name, int length)
{
    char word[WORD_LENGTH + 1];
    const int shown = length < WORD_LENGTH ? length : WORD_LENGTH;
    memcpy(word, name, (size_t)shown);
    word[shown] = '\0';
    const char *near = frgi_nearest(word, (const char *const *)p->k->names, p->k->d);
    const int column = place(p, p->now.at);
    if (near) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: there is no column '%s'; did you mean '%s'?",
             column, word, near);
    }
    FAIL(p->ctx, E_KERNEL, "kernel, column %d: there is no column '%s' among the %td of x", column,
         word, p->k->d);
}

static frg_status parse_column(parser *p, int *out)
{
    const token t = p->now;
    if (t.kind == TOKEN_NUMBER) {
        double number;
        TRY(read_number(p, &t, &number));
        if (number != floor(number) || number < 1 || number > (double)p->k->d) {
            return no_such_column(p, p->text + t.at, t.length);
        }
        *out = (int)number - 1;
    } else if (t.kind == TOKEN_NAME || t.kind == TOKEN_STRING) {
        const int quote = t.kind == TOKEN_STRING, length = t.length - 2 * quote;
        const char *const name = p->text + t.at + quote;
        ptrdiff_t c = 0;
        while (c < p->k->d &&
               (strncmp(p->k->names[c], name, (size_t)length) != 0 || p->k->names[c][length])) {
            c++;
        }
        if (c == p->k->d) {
            return no_such_column(p, name, length);
        }
        *out = (int)c;
    } else {
        return unexpected(p, "a column's name or number");
    }
    advance(p);
    return FRG_OK;
}

static frg_status parse_sum(parser *p);

static frg_status parse_select(parser *p)
{
    const int begin = p->k->n_nodes, column = p->column, dims = p->dims;
    advance(p);
    TRY(take(p, '(', "'(' and columns"));
    const int first = p->k->n_column;
    for (;;) {
        int c = 0;
        const int where = p->now.at;
        TRY(parse_column(p, &c));
        for (int i = first; i < p->k->n_column; i++) {
            if (p->k->column[i] == c) {
                FAIL(p->ctx, E_KERNEL, "kernel, column %d: this column of x stands here already",
                     place(p, where));
            }
        }
        TRY(push_column(p, c));
        if (!shows(p, ',')) {
            break;
        }
        advance(p);
    }
    TRY(take(p, ';', "',' or ';' and a kernel"));
    p->column = first;
    p->dims = p->k->n_column - first;
    TRY(parse_sum(p));
    TRY(push(p, (frgi_gp_node){.kind = GP_SELECT, .begin = begin, .children = 1}));
    p->column = column;
    p->dims = dims;
    return take(p, ')', "'+', '*' or ')'");
}

/* ---- sums and products -------------------------------------------------------------------------- */

static frg_status unknown_kernel(const parser *p)
{
    const char *known[LEAVES + 3] = {"on", "noise", "scale"};
    char word[WORD_LENGTH + 1];
    spell(p, &p->now, word);
    for (int i = 0; i < LEAVES; i++) {
        known[i + 3] = leaves[i].name;
    }
    const char *near = frgi_nearest(word, known, LEAVES + 3);
    const int column = place(p, p->now.at);
    if (near) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: there is no kernel '%s'; did you mean %s?",
             column, word, near);
    }
    FAIL(p->ctx, E_KERNEL,
         "kernel, column %d: there is no kernel '%s'; there are rbf, matern12, matern32, matern52, "
         "rq, periodic, "
         "linear, poly, cosine, sm, const, white and user",
         column, word);
}

static frg_status parse_factor(parser *p)
{
    const token t = p->now;
    if (shows(p, '(')) {
        advance(p);
        TRY(parse_sum(p));
        return take(p, ')', "'+', '*' or ')'");
    }
    if (t.kind == TOKEN_NUMBER || is_word(p, &t, "scale")) {
        FAIL(p->ctx, E_KERNEL,
             "kernel, column %d: a variance stands once, in front of its product: 2*rbf*linear",
             place(p, t.at));
    }
    if (t.kind != TOKEN_NAME) {
        return unexpected(p, "a kernel");
    }
    if (is_word(p, &t, "noise")) {
        FAIL(p->ctx, E_KERNEL,
             "kernel, column %d: noise is a term of the outermost sum; inside, write white(v)",
             place(p, t.at));
    }
    if (is_word(p, &t, "on")) {
        return parse_select(p);
    }
    for (int i = 0; i < LEAVES; i++) {
        if (is_word(p, &t, leaves[i].name)) {
            return parse_leaf(p, &leaves[i]);
        }
    }
    return unknown_kernel(p);
}

/** A number or the word scale in front of "*"; false: there is none. */
static frg_status parse_scale(parser *p, bool *found, int *parameter)
{
    value v = open_value;
    *found = p->now.kind == TOKEN_NUMBER || is_word(p, &p->now, "scale");
    if (!*found) {
        return FRG_OK;
    }
    if (p->now.kind == TOKEN_NUMBER) {
        TRY(parse_value(p, &v));
    } else {
        advance(p);
        if (shows(p, '(')) {
            advance(p);
            TRY(parse_value(p, &v));
            TRY(take(p, ')', "')'"));
        }
    }
    TRY(take(p, '*', "'*' and a kernel after the variance (a constant alone is const(v))"));
    return add_scale(p, v, parameter);
}

static frg_status parse_product(parser *p)
{
    const int begin = p->k->n_nodes;
    bool scaled;
    int parameter = -1, factors = 0;
    TRY(parse_scale(p, &scaled, &parameter));
    for (;;) {
        TRY(parse_factor(p));
        factors++;
        if (!shows(p, '*')) {
            break;
        }
        advance(p);
    }
    if (factors > 1) {
        TRY(push(p, (frgi_gp_node){.kind = GP_PRODUCT, .begin = begin, .children = factors}));
    }
    if (!scaled) {
        return FRG_OK;
    }
    return push(p, (frgi_gp_node){.kind = GP_SCALE,
                                  .begin = begin,
                                  .children = 1,
                                  .n_groups = 1,
                                  .group = {{.first = parameter, .count = 1}}});
}

/** noise, noise(0.04), noise(0.04! in(1e-4,1)): kept aside until the kernel's parameters are complete. */
static frg_status parse_noise(parser *p, value *noise, bool *found)
{
    if (*found) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: noise stands here already", place(p, p->now.at));
    }
    *found = true;
    advance(p);
    if (!shows(p, '(')) {
        return FRG_OK;
    }
    advance(p);
    TRY(parse_value(p, noise));
    return take(p, ')', "')'");
}

static frg_status parse_terms(parser *p, bool top, value *noise, bool *has_noise)
{
    const int begin = p->k->n_nodes;
    int terms = 0;
    for (;;) {
        if (top && is_word(p, &p->now, "noise")) {
            TRY(parse_noise(p, noise, has_noise));
        } else {
            TRY(parse_product(p));
            terms++;
        }
        if (!shows(p, '+')) {
            break;
        }
        advance(p);
    }
    if (terms == 0) {
        return unexpected(p, "'+' and a kernel: noise is not one");
    }
    return terms == 1 ? FRG_OK
                      : push(p, (frgi_gp_node){.kind = GP_SUM, .begin = begin, .children = terms});
}

static frg_status parse_sum(parser *p)
{
    if (++p->depth > DEPTH_LIMIT) {
        FAIL(p->ctx, E_KERNEL, "kernel, column %d: more than %d levels of parentheses",
             place(p, p->now.at), DEPTH_LIMIT);
    }
    TRY(parse_terms(p, false, NULL, NULL));
    p->depth--;
    return FRG_OK;
}

static frg_status parse_all(parser *p)
{
    value noise = open_value;
    bool has_noise = false;
    p->now = lex(p, 0);
    for (ptrdiff_t c = 0; c < p->k->d; c++) {
        TRY(push_column(p, (int)c));
    }
    TRY(parse_terms(p, true, &noise, &has_noise));
    if (p->now.kind != TOKEN_END) {
        return unexpected(p, "'+', '*' or the end");
    }
    p->k->n_parameters = p->params->count;
    p->params->kernel_count = p->params->count;
    p->params->noise_first = p->params->count;
    if (has_noise) {
        p->k->noise = p->params->count;
        p->params->noise_count = 1;
        TRY(add_parameter(p, "noise", GP_ROLE_NOISE, -1, -1, noise, 1));
    }
    return FRG_OK;
}

static frg_status copy_names(frgi_gp_kernel *k, frg_context *ctx, const char *const *names)
{
    TRY(NEW0(ctx, &k->names, k->d, "the kernel's columns"));
    for (ptrdiff_t c = 0; c < k->d; c++) {
        char own[24] = "x";
        int digits = 1;
        for (ptrdiff_t rest = c + 1; rest >= 10; rest /= 10) {
            digits++;
        }
        own[digits + 1] = '\0';
        for (ptrdiff_t rest = c + 1, i = digits; i > 0; i--, rest /= 10) {
            own[i] = (char)('0' + rest % 10);
        }
        const char *const name = names ? names[c] : own;
        TRY(frgi_strdup(ctx, &k->names[c], name, strlen(name)));
    }
    return FRG_OK;
}

frg_status frgi_gp_kernel_parse(frgi_gp_kernel **out, frg_context *ctx, const char *text,
                                ptrdiff_t d, const char *const *names,
                                const frg_gp_user_kernel *user, frgi_gp_params *params)
{
    *out = NULL;
    const size_t length = text ? strlen(text) : 0;
    if (length == 0 || length > LENGTH_LIMIT) {
        FAIL(ctx, E_KERNEL, length ? "the kernel has more than %d bytes" : "the kernel is empty",
             LENGTH_LIMIT);
    }
    REQUIRE(ctx, params->count == 0, "the kernel's parameters come first");
    frgi_gp_kernel *k;
    TRY(NEW0(ctx, &k, 1, "the kernel"));
    k->d = d;
    k->noise = -1;
    k->has_user = user != NULL;
    k->user = user ? *user : (frg_gp_user_kernel){0};
    parser p = {
        .ctx = ctx, .text = text, .length = (int)length, .k = k, .params = params, .dims = (int)d};
    frg_status status;
    TRY_TO(done, copy_names(k, ctx, names));
    TRY_TO(done, parse_all(&p));
done:
    frgi_decimal_close(&p.decimal, ctx);
    if (status < 0) {
        frgi_gp_kernel_destroy(&k, ctx);
        return status;
    }
    *out = k;
    return FRG_OK;
}

void frgi_gp_kernel_destroy(frgi_gp_kernel **k, frg_context *ctx)
{
    if (!*k) {
        return;
    }
    for (ptrdiff_t c = 0; (*k)->names && c < (*k)->d; c++) {
        DROP(ctx, &(*k)->names[c]);
    }
    DROP(ctx, &(*k)->names);
    DROP(ctx, &(*k)->column);
    DROP(ctx, k);
}

/* ---- looking at the tree ------------------------------------------------------------------------ */

bool frgi_gp_kernel_has_noise(const frgi_gp_kernel *k)
{
    return k->noise >= 0;
}

int frgi_gp_kernel_scale(const frgi_gp_kernel *k)
{
    const frgi_gp_node *const root = &k->node[k->n_nodes - 1];
    return root->kind == GP_SCALE ? root->group[0].first : -1;
}

bool frgi_gp_kernel_stationary(const frgi_gp_kernel *k)
{
    for (int i = 0; i < k->n_nodes; i++) {
        const frgi_gp_kind kind = k->node[i].kind;
        if (kind == GP_LINEAR || kind == GP_POLY || kind == GP_USER) {
            return false;
        }
    }
    return true;
}

bool frgi_gp_kernel_smooth(const frgi_gp_kernel *k)
{
    for (int i = 0; i < k->n_nodes; i++) {
        if (k->node[i].kind == GP_MATERN12) {
            return false;
        }
    }
    return true;
}

/** k(x, x) from the leaves' values at a point with itself. */
static double at_self(const frgi_gp_kernel *k, const double *theta, double white)
{
    double self[GP_MAX_NODES];
    for (int i = 0; i < k->n_nodes; i++) {
        const frgi_gp_node *const node = &k->node[i];
        const double first = node->n_groups ? theta[node->group[0].first] : 1;
        double sum = 0, product = 1;
        for (int c = 0; c < node->children; c++) {
            sum += self[frgi_gp_child(k, i, c)];
            product *= self[frgi_gp_child(k, i, c)];
        }
        for (int q = 0; q < node->degree && node->kind != GP_POLY; q++) {
            sum += theta[node->group[0].first + q]; /* the weights of a mixture */
        }
        switch (node->kind) {
        case GP_SUM:
        case GP_SM:
            self[i] = sum;
            break;
        case GP_SCALE:
            self[i] = first * product;
            break;
        case GP_SM_GPYTORCH:
            self[i] = pow(sum, node->dims);
            break;
        case GP_CONST:
            self[i] = first;
            break;
        case GP_WHITE:
            self[i] = white * first;
            break;
        default:
            self[i] = product;
            break;
        }
    }
    return self[k->n_nodes - 1];
}

double frgi_gp_kernel_white(const frgi_gp_kernel *k, const double *theta)
{
    return at_self(k, theta, 1) - at_self(k, theta, 0);
}

/* ---- printing ----------------------------------------------------------------------------------- */

typedef struct {
    frg_context *ctx;
    const frgi_gp_kernel *k;
    const frgi_gp_params *params;
    frgi_text *out;
} printer;

static frg_status put(printer *p, const char *s)
{
    return frgi_text_append(p->ctx, p->out, s, strlen(s));
}

static frg_status put_number(printer *p, double x)
{
    char text[32];
    return frgi_text_append(p->ctx, p->out, text, (size_t)frg_format_double(x, text));
}

static frg_status put_value(printer *p, int i)
{
    const frgi_gp_param *const v = &p->params->p[i];
    if (!isnan(v->value)) {
        TRY(put_number(p, v->value));
        TRY(put(p, v->fixed ? "!" : ""));
    }
    if (v->bounded) {
        TRY(put(p, isnan(v->value) ? "in(" : " in("));
        TRY(put_number(p, v->lower));
        TRY(put(p, ","));
        TRY(put_number(p, v->upper));
        TRY(put(p, ")"));
    }
    return FRG_OK;
}

static bool is_open(const printer *p, int i)
{
    return isnan(p->params->p[i].value) && !p->params->p[i].bounded;
}

static frg_status put_separator(printer *p, bool *first)
{
    TRY(put(p, *first ? "(" : ", "));
    *first = false;
    return FRG_OK;
}

/** name=values; a group with an open entry is left out, but for the word that makes it a vector. */
static frg_status put_group(printer *p, const leaf_word *word, const frgi_gp_node *node, int g,
                            bool *first, bool *ard)
{
    const frgi_gp_group *const group = &node->group[g];
    bool open = false;
    for (int i = 0; i < group->count; i++) {
        open = open || is_open(p, group->first + i);
    }
    if (open || group->count == 0) {
        *ard = *ard || (group->vector && word->group[g].spread == PER_COLUMN);
        return FRG_OK;
    }
    TRY(put_separator(p, first));
    TRY(put(p, group_word_of(word, node->kind, g)->name));
    TRY(put(p, group->vector ? "=[" : "="));
    for (int i = 0; i < group->count; i++) {
        TRY(put(p, i ? "," : ""));
        TRY(put_value(p, group->first + i));
    }
    return put(p, group->vector ? "]" : "");
}

static frg_status put_leaf(printer *p, const frgi_gp_node *node)
{
    const leaf_word *const word = leaf_of(node->kind);
    bool first = true, ard = false;
    TRY(put(p, word->name));
    if (word->counts) {
        TRY(put_separator(p, &first));
        TRY(frgi_text_printf(p->ctx, p->out, "%s=%d", word->counts, node->degree));
    }
    for (int g = 0; g < node->n_groups; g++) {
        TRY(put_group(p, word, node, g, &first, &ard));
    }
    if (ard) {
        TRY(put_separator(p, &first));
        TRY(put(p, "ard"));
    }
    if (node->kind != word->kind) {
        TRY(put_separator(p, &first));
        TRY(put(p, "form=gpytorch"));
    }
    return put(p, first ? "" : ")");
}

static bool is_plain_name(const char *s)
{
    bool plain = is_letter(*s);
    for (; *s; s++) {
        plain = plain && (is_letter(*s) || is_digit(*s) || *s == '.');
    }
    return plain;
}

static frg_status put_columns(printer *p, const frgi_gp_node *node)
{
    TRY(put(p, "on("));
    for (int i = 0; i < node->dims; i++) {
        const int32_t c = p->k->column[node->column + i];
        TRY(put(p, i ? "," : ""));
        if (is_plain_name(p->k->names[c])) {
            TRY(put(p, p->k->names[c]));
        } else {
            TRY(frgi_text_printf(p->ctx, p->out, "%d", (int)c + 1));
        }
    }
    return put(p, "; ");
}

static frg_status put_node(printer *p, int i);

/** In parentheses where the child would otherwise join its parent. */
static frg_status put_child(printer *p, int child, bool apart)
{
    TRY(put(p, apart ? "(" : ""));
    TRY(put_node(p, child));
    return put(p, apart ? ")" : "");
}

static frg_status put_node(printer *p, int i)
{
    const frgi_gp_node *const node = &p->k->node[i];
    const frgi_gp_kind kind = node->kind;
    if (node->children == 0) {
        return put_leaf(p, node);
    }
    if (kind == GP_SELECT) {
        TRY(put_columns(p, node));
    } else if (kind == GP_SCALE) {
        const int parameter = node->group[0].first;
        if (isnan(p->params->p[parameter].value)) {
            TRY(put(p, is_open(p, parameter) ? "scale" : "scale("));
        }
        TRY(put_value(p, parameter));
        TRY(put(p, isnan(p->params->p[parameter].value) && !is_open(p, parameter) ? ")*" : "*"));
    }
    for (int c = 0; c < node->children; c++) {
        const int child = frgi_gp_child(p->k, i, c);
        const frgi_gp_kind below = p->k->node[child].kind;
        const bool apart = kind == GP_SUM ? below == GP_SUM
                           : kind == GP_PRODUCT
                               ? below == GP_SUM || below == GP_PRODUCT || below == GP_SCALE
                           : kind == GP_SCALE ? below == GP_SUM || below == GP_SCALE
                                              : false;
        TRY(put(p, c == 0 ? "" : kind == GP_SUM ? " + " : "*"));
        TRY(put_child(p, child, apart));
    }
    return put(p, kind == GP_SELECT ? ")" : "");
}

frg_status frgi_gp_kernel_print(const frgi_gp_kernel *k, frg_context *ctx,
                                const frgi_gp_params *params, frgi_text *out)
{
    printer p = {.ctx = ctx, .k = k, .params = params, .out = out};
    TRY(put_node(&p, k->n_nodes - 1));
    if (k->noise < 0) {
        return FRG_OK;
    }
    TRY(put(&p, " + noise"));
    if (is_open(&p, k->noise)) {
        return FRG_OK;
    }
    TRY(put(&p, "("));
    TRY(put_value(&p, k->noise));
    return put(&p, ")");
}
