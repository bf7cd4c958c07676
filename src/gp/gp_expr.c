/* gp_expr.c - kernel expressions: recursive-descent parser.
 *
 *     expression := sum                                        top level: one term may be noise[(value)]
 *     sum        := product { "+" product }
 *     product    := [ number marks "*" ] factor { "*" factor }  the number is a variance, as is the word scale
 *     factor     := "(" sum ")" | "on" "(" columns ";" sum ")" | "scale" [ "(" value ")" ] | name [ "(" items ")" ]
 *     items      := item { "," item }        item := "ard" | name "=" values | values | "form" "=" name
 *     values     := value | "[" value { "," value } "]"
 *     value                                  see gp_scan.h; "@" name follows a parameter that stands before it
 *     columns    := column { "," column }    column := name | "name" | number from 1
 *
 * Parameters are appended to the process's list as they are met, so their order is that of the text.  Dangers: the
 * text is anybody's; depth, nodes and parameters are limited, every position is checked, time is linear.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gp/gp_scan.h"
#include "gp/gp_words.h"

enum { DEPTH_LIMIT = 64, LENGTH_LIMIT = 1 << 20 };

typedef struct {
    frgi_gp_scan scan;
    int depth;
    frgi_gp_kernel *k;
    frgi_gp_params *params;
    int column, dims; /* what leaves see here */
    int uses[GP_LEAVES];
    int scales;
} parser;

/* ---- nodes and parameters ----------------------------------------------------------------------- */

static frg_status push(parser *p, frgi_gp_node node)
{
    if (p->k->n_nodes == GP_MAX_NODES) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: the expression has more than %d parts",
             frgi_gp_locate(&p->scan, p->scan.now.at), GP_MAX_NODES);
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
        TRY(GROW(p->scan.ctx, &k->column, room, "the kernel's columns"));
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

/** The parameter that `v` follows, and how many entries its name has; *first -1: it follows none. */
static frg_status find_tied(const parser *p, const frgi_gp_written *v, int *first, int *count)
{
    const frgi_gp_token *const t = &v->tie;
    *first = -1;
    *count = 0;
    for (int i = 0; i < p->params->count && t->length > 0; i++) {
        const frgi_gp_param *const q = &p->params->p[i];
        if (frgi_gp_is_word(&p->scan, t, q->name) && (v->entry < 0 || v->entry == q->entry)) {
            *first = *count == 0 ? i : *first;
            ++*count;
        }
    }
    if (t->length > 0 && *count == 0) {
        FAIL(p->scan.ctx, E_KERNEL,
             "kernel, column %d: there is no parameter '%.*s%s' before this one that could be "
             "followed",
             frgi_gp_locate(&p->scan, t->at),
             t->length > GP_WORD_LENGTH ? GP_WORD_LENGTH : t->length, p->scan.text + t->at,
             v->entry < 0 ? "" : "[..]");
    }
    return FRG_OK;
}

static frg_status add_parameter(parser *p, const char *name, frgi_gp_role role, int entry,
                                int column, frgi_gp_written v, double factor)
{
    if (p->params->count >= GP_MAX_PARAMETERS) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: the expression has more than %d parameters",
             frgi_gp_locate(&p->scan, p->scan.now.at), GP_MAX_PARAMETERS);
    }
    int leader, entries;
    TRY(find_tied(p, &v, &leader, &entries));
    if (entries > 1) {
        FAIL(p->scan.ctx, E_KERNEL,
             "kernel, column %d: '%.*s' has %d entries, one is to be followed here: write @%s[1]",
             frgi_gp_locate(&p->scan, v.tie.at), v.tie.length, p->scan.text + v.tie.at, entries,
             p->params->p[leader].name);
    }
    return frgi_gp_params_add(
        p->params, name,
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
                        .std_error = NAN,
                        .tie = leader < 0 ? 0 : frgi_gp_params_leader(p->params, leader) + 1});
}

/** "rbf" the first time, "rbf2" the second. */
static void number_name(char out[GP_WORD_LENGTH + 16], const char *name, int use)
{
    size_t length = strlen(name);
    memcpy(out, name, length);
    out[length] = '\0';
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

static frg_status add_scale(parser *p, frgi_gp_written v, int *parameter)
{
    char name[GP_WORD_LENGTH + 16];
    number_name(name, "scale", ++p->scales);
    *parameter = p->params->count;
    return add_parameter(p, name, GP_ROLE_VARIANCE, -1, -1, v, 1);
}

/* ---- a leaf and its arguments ------------------------------------------------------------------- */

/** What was written for one group: the values stand in the parser's list until the leaf is complete. */
typedef struct {
    frgi_gp_written *list;
    int count, room;
    bool vector, given;
    int at;
} written;

typedef struct {
    const frgi_gp_leaf_word *word;
    int at; /* of the name in the text */
    frgi_gp_node node;
    bool ard;
    written group[GP_GROUPS];
} leaf;

static frg_status push_value(parser *p, written *w, frgi_gp_written v)
{
    if (w->count == w->room) {
        const int room = w->room ? 2 * w->room : 8;
        TRY(GROW(p->scan.ctx, &w->list, room, "the kernel's values"));
        w->room = room;
    }
    w->list[w->count++] = v;
    return FRG_OK;
}

static frg_status parse_values(parser *p, written *w)
{
    frgi_gp_written v;
    if (w->given) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: this parameter is given twice",
             frgi_gp_locate(&p->scan, p->scan.now.at));
    }
    w->given = true;
    w->at = p->scan.now.at;
    w->vector = frgi_gp_shows(&p->scan, '[');
    if (!w->vector) {
        TRY(frgi_gp_parse_value(&p->scan, &v));
        return push_value(p, w, v);
    }
    do {
        frgi_gp_advance(&p->scan);
        TRY(frgi_gp_parse_value(&p->scan, &v));
        TRY(push_value(p, w, v));
    } while (frgi_gp_shows(&p->scan, ',') && w->count <= GP_MAX_PARAMETERS);
    return frgi_gp_expect(&p->scan, ']', "',' or ']'");
}

static frg_status parse_count(parser *p, leaf *l)
{
    const frgi_gp_token t = p->scan.now;
    double number = 0;
    if (t.kind != TOKEN_NUMBER) {
        return frgi_gp_unexpected(&p->scan, "a whole number");
    }
    TRY(frgi_gp_read_number(&p->scan, &t, &number));
    if (number != floor(number) || number < 1 || number > GP_MAX_DEGREE) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: %s of %s is a whole number from 1 to %d",
             frgi_gp_locate(&p->scan, t.at), l->word->counts, l->word->name, GP_MAX_DEGREE);
    }
    frgi_gp_advance(&p->scan);
    l->node.degree = (int)number;
    return FRG_OK;
}

static frg_status unknown_argument(const parser *p, const leaf *l, const frgi_gp_token *name)
{
    const char *known[GP_GROUPS + 3];
    int n = 0;
    char word[GP_WORD_LENGTH + 1];
    frgi_gp_spell(&p->scan, name, word);
    for (int g = 0; g < l->word->n_groups; g++) {
        known[n++] = frgi_gp_group_of(l->word, l->node.kind, g)->name;
    }
    if (l->word->counts) {
        known[n++] = l->word->counts;
    }
    if (l->word->gpytorch != l->word->kind) {
        known[n++] = "form";
    }
    known[n++] = "ard";
    const char *near = frgi_nearest(word, known, n);
    const int column = frgi_gp_locate(&p->scan, name->at);
    if (near) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: %s has no parameter '%s'; did you mean %s?",
             column, l->word->name, word, near);
    }
    FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: %s has no parameter '%s'; write %s", column,
         l->word->name, word, l->word->example);
}

static frg_status parse_form(parser *p, leaf *l)
{
    if (!frgi_gp_is_word(&p->scan, &p->scan.now, "gpytorch")) {
        return frgi_gp_unexpected(&p->scan, "gpytorch");
    }
    if (l->word->gpytorch == l->word->kind) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: %s has one form only",
             frgi_gp_locate(&p->scan, p->scan.now.at), l->word->name);
    }
    l->node.kind = l->word->gpytorch;
    frgi_gp_advance(&p->scan);
    return FRG_OK;
}

/** name = values */
static frg_status parse_named(parser *p, leaf *l)
{
    const frgi_gp_token name = p->scan.now;
    frgi_gp_advance(&p->scan);
    frgi_gp_advance(&p->scan);
    if (frgi_gp_is_word(&p->scan, &name, "form")) {
        return parse_form(p, l);
    }
    if (l->word->counts && frgi_gp_is_word(&p->scan, &name, l->word->counts)) {
        return parse_count(p, l);
    }
    for (int g = 0; g < l->word->n_groups; g++) {
        const bool width = l->word->kind == GP_SM && g == 2 &&
                           frgi_gp_is_word(&p->scan, &name, frgi_gp_width_word.name);
        if (frgi_gp_is_word(&p->scan, &name, l->word->group[g].name) || width) {
            return parse_values(p, &l->group[g]);
        }
    }
    return unknown_argument(p, l, &name);
}

static frg_status parse_arguments(parser *p, leaf *l)
{
    int next = l->word->counts ? -1 : 0; /* group of the next positional argument, -1: the count */
    if (frgi_gp_shows(&p->scan, ')')) {
        frgi_gp_advance(&p->scan);
        return FRG_OK;
    }
    for (;;) {
        const frgi_gp_token after = frgi_gp_lex(&p->scan, p->scan.now.at + p->scan.now.length);
        if (p->scan.now.kind == TOKEN_NAME && after.kind == TOKEN_SIGN &&
            p->scan.text[after.at] == '=') {
            TRY(parse_named(p, l));
        } else if (frgi_gp_is_word(&p->scan, &p->scan.now, "ard")) {
            l->ard = true;
            frgi_gp_advance(&p->scan);
        } else if (p->scan.now.kind == TOKEN_NAME &&
                   !frgi_gp_is_word(&p->scan, &p->scan.now, "in")) {
            return unknown_argument(p, l, &p->scan.now);
        } else if (next < 0) {
            TRY(parse_count(p, l));
            next = 0;
        } else if (next < l->word->n_groups) {
            TRY(parse_values(p, &l->group[next++]));
        } else {
            return frgi_gp_unexpected(&p->scan, "')'");
        }
        if (!frgi_gp_shows(&p->scan, ',')) {
            return frgi_gp_expect(&p->scan, ')', "',' or ')'");
        }
        frgi_gp_advance(&p->scan);
    }
}

static int vector_length(const parser *p, const leaf *l, frgi_gp_spread s)
{
    switch (s) {
    case GP_PER_COLUMN:
        return p->dims;
    case GP_PER_COMPONENT:
        return l->node.degree;
    case GP_PER_BOTH:
        return l->node.degree * p->dims;
    case GP_PER_USER:
        return p->k->user.n_parameters;
    default:
        return 1;
    }
}

/** Appends the parameters of one group. */
static frg_status add_group(parser *p, leaf *l, int g, const char *prefix)
{
    const frgi_gp_group_word *const word = frgi_gp_group_of(l->word, l->node.kind, g);
    const written *const w = &l->group[g];
    const int full = vector_length(p, l, word->spread);
    const bool always = word->spread == GP_PER_COMPONENT || word->spread == GP_PER_BOTH ||
                        word->spread == GP_PER_USER;
    int leader = -1, entries = 0; /* a vector followed as a whole */
    if (w->count == 1 && !w->vector && w->list[0].entry < 0) {
        TRY(find_tied(p, &w->list[0], &leader, &entries));
    }
    const bool whole = entries > 0 && p->params->p[leader].entry >= 0;
    const bool vector = always || w->vector || whole || (l->ard && word->spread == GP_PER_COLUMN);
    if ((w->vector && w->count != full) || (whole && entries != full)) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: %s of %s has %d entries here, expected %d",
             frgi_gp_locate(&p->scan, w->at), word->name, l->word->name, whole ? entries : w->count,
             full);
    }
    char name[2 * GP_WORD_LENGTH + 16];
    snprintf(name, sizeof name, "%s.%s", prefix, word->name);
    const int count = vector ? full : 1;
    l->node.group[g] = (frgi_gp_group){.first = p->params->count, .count = count, .vector = vector};
    l->node.n_groups = g + 1;
    for (int i = 0; i < count; i++) {
        frgi_gp_written v = w->count == 0 ? frgi_gp_not_written : w->list[w->vector ? i : 0];
        v.entry = whole ? i : v.entry;
        int column = -1;
        double factor = 1;
        if (word->spread == GP_PER_COLUMN && vector) {
            column = p->k->column[p->column + i];
        } else if (word->spread == GP_PER_BOTH) {
            column = p->k->column[p->column + i % p->dims];
            factor = word->role == GP_ROLE_FREQUENCY ? i / p->dims + 0.5 : 1;
        } else if (word->spread == GP_PER_COMPONENT) {
            factor = 1.0 / full;
        } else if (word->spread == GP_PER_USER && isnan(v.value) && v.tie.length == 0) {
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
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: %s needs at least one column of x",
             frgi_gp_locate(&p->scan, l->at), l->word->name);
    }
    if (l->word->counts && l->node.degree == 0) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: %s needs its %s; write %s",
             frgi_gp_locate(&p->scan, l->at), l->word->name, l->word->counts, l->word->example);
    }
    if (kind == GP_COSINE_GPYTORCH && p->dims != 1) {
        FAIL(p->scan.ctx, E_KERNEL,
             "kernel, column %d: the cosine of a distance is no covariance in %d columns; leave "
             "form=gpytorch out, "
             "or pick one column with on(name; cosine(p, form=gpytorch))",
             frgi_gp_locate(&p->scan, l->at), p->dims);
    }
    if (l->ard && l->word->group[0].spread != GP_PER_COLUMN) {
        FAIL(p->scan.ctx, E_KERNEL,
             "kernel, column %d: %s has nothing that could differ between columns; leave ard out",
             frgi_gp_locate(&p->scan, l->at), l->word->name);
    }
    if (kind == GP_USER && !p->k->has_user) {
        FAIL(p->scan.ctx, E_KERNEL,
             "kernel, column %d: user stands for a kernel given by the caller, and none is given",
             frgi_gp_locate(&p->scan, l->at));
    }
    if (kind == GP_USER && p->uses[l->word - frgi_gp_leaves] > 0) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: user stands once",
             frgi_gp_locate(&p->scan, l->at));
    }
    return FRG_OK;
}

static frg_status parse_leaf_into(parser *p, leaf *l)
{
    frgi_gp_advance(&p->scan);
    if (frgi_gp_shows(&p->scan, '(')) {
        frgi_gp_advance(&p->scan);
        TRY(parse_arguments(p, l));
    }
    TRY(check_leaf(p, l));
    char prefix[GP_WORD_LENGTH + 16];
    number_name(prefix, l->word->name, ++p->uses[l->word - frgi_gp_leaves]);
    for (int g = 0; g < l->word->n_groups; g++) {
        TRY(add_group(p, l, g, prefix));
    }
    return push(p, l->node);
}

static frg_status parse_leaf(parser *p, const frgi_gp_leaf_word *word)
{
    leaf l = {
        .word = word, .at = p->scan.now.at, .node = {.kind = word->kind, .begin = p->k->n_nodes}};
    const frg_status status = parse_leaf_into(p, &l);
    for (int g = 0; g < GP_GROUPS; g++) {
        DROP(p->scan.ctx, &l.group[g].list);
    }
    return status;
}

/* ---- on(columns; kernel) ------------------------------------------------------------------------ */

static frg_status no_such_column(const parser *p, const char *name, int length)
{
    char word[GP_WORD_LENGTH + 1];
    const int shown = length < GP_WORD_LENGTH ? length : GP_WORD_LENGTH;
    memcpy(word, name, (size_t)shown);
    word[shown] = '\0';
    const char *near = frgi_nearest(word, (const char *const *)p->k->names, p->k->d);
    const int column = frgi_gp_locate(&p->scan, p->scan.now.at);
    if (near) {
        FAIL(p->scan.ctx, E_KERNEL,
             "kernel, column %d: there is no column '%s'; did you mean '%s'?", column, word, near);
    }
    FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: there is no column '%s' among the %td of x",
         column, word, p->k->d);
}

static frg_status parse_column(parser *p, int *out)
{
    const frgi_gp_token t = p->scan.now;
    if (t.kind == TOKEN_NUMBER) {
        double number;
        TRY(frgi_gp_read_number(&p->scan, &t, &number));
        if (number != floor(number) || number < 1 || number > (double)p->k->d) {
            return no_such_column(p, p->scan.text + t.at, t.length);
        }
        *out = (int)number - 1;
    } else if (t.kind == TOKEN_NAME || t.kind == TOKEN_STRING) {
        const int quote = t.kind == TOKEN_STRING, length = t.length - 2 * quote;
        const char *const name = p->scan.text + t.at + quote;
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
        return frgi_gp_unexpected(&p->scan, "a column's name or number");
    }
    frgi_gp_advance(&p->scan);
    return FRG_OK;
}

static frg_status parse_sum(parser *p);

static frg_status parse_select(parser *p)
{
    const int begin = p->k->n_nodes, column = p->column, dims = p->dims;
    frgi_gp_advance(&p->scan);
    TRY(frgi_gp_expect(&p->scan, '(', "'(' and columns"));
    const int first = p->k->n_column;
    for (;;) {
        int c = 0;
        const int where = p->scan.now.at;
        TRY(parse_column(p, &c));
        for (int i = first; i < p->k->n_column; i++) {
            if (p->k->column[i] == c) {
                FAIL(p->scan.ctx, E_KERNEL,
                     "kernel, column %d: this column of x stands here already",
                     frgi_gp_locate(&p->scan, where));
            }
        }
        TRY(push_column(p, c));
        if (!frgi_gp_shows(&p->scan, ',')) {
            break;
        }
        frgi_gp_advance(&p->scan);
    }
    TRY(frgi_gp_expect(&p->scan, ';', "',' or ';' and a kernel"));
    p->column = first;
    p->dims = p->k->n_column - first;
    TRY(parse_sum(p));
    TRY(push(p, (frgi_gp_node){.kind = GP_SELECT, .begin = begin, .children = 1}));
    p->column = column;
    p->dims = dims;
    return frgi_gp_expect(&p->scan, ')', "'+', '*' or ')'");
}

/* ---- sums and products -------------------------------------------------------------------------- */

static frg_status unknown_kernel(const parser *p)
{
    const char *known[GP_LEAVES + 3] = {"on", "noise", "scale"};
    char word[GP_WORD_LENGTH + 1];
    frgi_gp_spell(&p->scan, &p->scan.now, word);
    for (int i = 0; i < GP_LEAVES; i++) {
        known[i + 3] = frgi_gp_leaves[i].name;
    }
    const char *near = frgi_nearest(word, known, GP_LEAVES + 3);
    const int column = frgi_gp_locate(&p->scan, p->scan.now.at);
    if (near) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: there is no kernel '%s'; did you mean %s?",
             column, word, near);
    }
    FAIL(p->scan.ctx, E_KERNEL,
         "kernel, column %d: there is no kernel '%s'; there are rbf, matern12, matern32, matern52, "
         "rq, periodic, "
         "linear, poly, cosine, sm, const, white and user",
         column, word);
}

static frg_status parse_factor(parser *p)
{
    const frgi_gp_token t = p->scan.now;
    if (frgi_gp_shows(&p->scan, '(')) {
        frgi_gp_advance(&p->scan);
        TRY(parse_sum(p));
        return frgi_gp_expect(&p->scan, ')', "'+', '*' or ')'");
    }
    if (t.kind == TOKEN_NUMBER || frgi_gp_is_word(&p->scan, &t, "scale")) {
        FAIL(p->scan.ctx, E_KERNEL,
             "kernel, column %d: a variance stands once, in front of its product: 2*rbf*linear",
             frgi_gp_locate(&p->scan, t.at));
    }
    if (t.kind != TOKEN_NAME) {
        return frgi_gp_unexpected(&p->scan, "a kernel");
    }
    if (frgi_gp_is_word(&p->scan, &t, "noise")) {
        FAIL(p->scan.ctx, E_KERNEL,
             "kernel, column %d: noise is a term of the outermost sum; inside, write white(v)",
             frgi_gp_locate(&p->scan, t.at));
    }
    if (frgi_gp_is_word(&p->scan, &t, "on")) {
        return parse_select(p);
    }
    for (int i = 0; i < GP_LEAVES; i++) {
        if (frgi_gp_is_word(&p->scan, &t, frgi_gp_leaves[i].name)) {
            return parse_leaf(p, &frgi_gp_leaves[i]);
        }
    }
    return unknown_kernel(p);
}

/** A number or the word scale in front of "*"; false: there is none. */
static frg_status parse_scale(parser *p, bool *found, int *parameter)
{
    frgi_gp_written v = frgi_gp_not_written;
    *found = p->scan.now.kind == TOKEN_NUMBER || frgi_gp_is_word(&p->scan, &p->scan.now, "scale");
    if (!*found) {
        return FRG_OK;
    }
    if (p->scan.now.kind == TOKEN_NUMBER) {
        TRY(frgi_gp_parse_value(&p->scan, &v));
    } else {
        frgi_gp_advance(&p->scan);
        if (frgi_gp_shows(&p->scan, '(')) {
            frgi_gp_advance(&p->scan);
            TRY(frgi_gp_parse_value(&p->scan, &v));
            TRY(frgi_gp_expect(&p->scan, ')', "')'"));
        }
    }
    TRY(frgi_gp_expect(&p->scan, '*',
                       "'*' and a kernel after the variance (a constant alone is const(v))"));
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
        if (!frgi_gp_shows(&p->scan, '*')) {
            break;
        }
        frgi_gp_advance(&p->scan);
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
static frg_status parse_noise(parser *p, frgi_gp_written *noise, bool *found)
{
    if (*found) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: noise stands here already",
             frgi_gp_locate(&p->scan, p->scan.now.at));
    }
    *found = true;
    frgi_gp_advance(&p->scan);
    if (!frgi_gp_shows(&p->scan, '(')) {
        return FRG_OK;
    }
    frgi_gp_advance(&p->scan);
    TRY(frgi_gp_parse_value(&p->scan, noise));
    return frgi_gp_expect(&p->scan, ')', "')'");
}

static frg_status parse_terms(parser *p, bool top, frgi_gp_written *noise, bool *has_noise)
{
    const int begin = p->k->n_nodes;
    int terms = 0;
    for (;;) {
        if (top && frgi_gp_is_word(&p->scan, &p->scan.now, "noise")) {
            TRY(parse_noise(p, noise, has_noise));
        } else {
            TRY(parse_product(p));
            terms++;
        }
        if (!frgi_gp_shows(&p->scan, '+')) {
            break;
        }
        frgi_gp_advance(&p->scan);
    }
    if (terms == 0) {
        return frgi_gp_unexpected(&p->scan, "'+' and a kernel: noise is not one");
    }
    return terms == 1 ? FRG_OK
                      : push(p, (frgi_gp_node){.kind = GP_SUM, .begin = begin, .children = terms});
}

static frg_status parse_sum(parser *p)
{
    if (++p->depth > DEPTH_LIMIT) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: more than %d levels of parentheses",
             frgi_gp_locate(&p->scan, p->scan.now.at), DEPTH_LIMIT);
    }
    TRY(parse_terms(p, false, NULL, NULL));
    p->depth--;
    return FRG_OK;
}

static frg_status parse_all(parser *p)
{
    frgi_gp_written noise = frgi_gp_not_written;
    bool has_noise = false;
    p->scan.now = frgi_gp_lex(&p->scan, 0);
    for (ptrdiff_t c = 0; c < p->k->d; c++) {
        TRY(push_column(p, (int)c));
    }
    TRY(parse_terms(p, true, &noise, &has_noise));
    if (p->scan.now.kind != TOKEN_END) {
        return frgi_gp_unexpected(&p->scan, "'+', '*' or the end");
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
    parser p = {.scan = {.ctx = ctx, .text = text, .length = (int)length},
                .k = k,
                .params = params,
                .dims = (int)d};
    frg_status status;
    TRY_TO(done, copy_names(k, ctx, names));
    TRY_TO(done, parse_all(&p));
done:
    frgi_decimal_close(&p.scan.decimal, ctx);
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
