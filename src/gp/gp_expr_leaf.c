/* gp_expr_leaf.c - kernel expressions: leaves, their arguments, and the parameters that these are.
 *
 *     leaf       := name [ "(" items ")" ]                     rbf(ard, l=[0.3, 0.5])
 *     items      := item { "," item }
 *     item       := "ard" | name "=" values | values | "form" "=" name
 *     values     := value | "[" value { "," value } "]"
 *     value                                  see gp_scan.c
 *
 * Parameters are appended to the process's list as they are met, so their order is that of the
 * text.  A leaf's values wait until it is complete: whether one length serves every column is known
 * at its end.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gp/gp_parser.h"

/* ---- nodes and parameters -------------------------------------------------------------------- */

frg_status frgi_gp_push_node(frgi_gp_parser *p, frgi_gp_node node)
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

/** Bit set of the columns seen here; all ones where a column beyond the 64th is among them. */
static uint64_t columns_seen(const frgi_gp_parser *p)
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

/** The parameter that `v` follows, and how many entries its name has; *first -1: it follows
 *  none. */
static frg_status find_tied(const frgi_gp_parser *p, const frgi_gp_written *v, int *first,
                            int *count)
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

frg_status frgi_gp_add_parameter(frgi_gp_parser *p, const char *name, frgi_gp_role role, int entry,
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
        for (int number = use; number > 0; number /= 10) {
            digits[n++] = (char)('0' + number % 10);
        }
        while (n > 0) {
            out[length++] = digits[--n];
        }
        out[length] = '\0';
    }
}

frg_status frgi_gp_add_scale(frgi_gp_parser *p, frgi_gp_written v, int *parameter)
{
    char name[GP_WORD_LENGTH + 16];
    number_name(name, "scale", ++p->scales);
    *parameter = p->params->count;
    return frgi_gp_add_parameter(p, name, GP_ROLE_VARIANCE, -1, -1, v, 1);
}

/* ---- a leaf and its arguments ---------------------------------------------------------------- */

/** What was written for one group: the values stand in the parser's list until the leaf is
 *  complete. */
typedef struct {
    frgi_gp_written *list;
    int count, capacity;
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

static frg_status push_value(frgi_gp_parser *p, written *w, frgi_gp_written v)
{
    if (w->count == w->capacity) {
        const int capacity = w->capacity ? 2 * w->capacity : 8;
        TRY(GROW(p->scan.ctx, &w->list, capacity, "the kernel's values"));
        w->capacity = capacity;
    }
    w->list[w->count++] = v;
    return FRG_OK;
}

static frg_status parse_values(frgi_gp_parser *p, written *w)
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

static frg_status parse_count(frgi_gp_parser *p, leaf *l)
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

static frg_status unknown_argument(const frgi_gp_parser *p, const leaf *l,
                                   const frgi_gp_token *name)
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

static frg_status parse_form(frgi_gp_parser *p, leaf *l)
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
static frg_status parse_named(frgi_gp_parser *p, leaf *l)
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

static frg_status parse_arguments(frgi_gp_parser *p, leaf *l)
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

static int vector_length(const frgi_gp_parser *p, const leaf *l, frgi_gp_spread s)
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
static frg_status add_group(frgi_gp_parser *p, leaf *l, int g, const char *prefix)
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
        TRY(frgi_gp_add_parameter(p, name, word->role, vector ? i : -1, column, v, factor));
    }
    return FRG_OK;
}

static frg_status check_leaf(const frgi_gp_parser *p, const leaf *l)
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

static frg_status parse_leaf_into(frgi_gp_parser *p, leaf *l)
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
    return frgi_gp_push_node(p, l->node);
}

frg_status frgi_gp_parse_leaf(frgi_gp_parser *p, const frgi_gp_leaf_word *word)
{
    leaf l = {
        .word = word, .at = p->scan.now.at, .node = {.kind = word->kind, .begin = p->k->n_nodes}};
    const frg_status status = parse_leaf_into(p, &l);
    for (int g = 0; g < GP_GROUPS; g++) {
        DROP(p->scan.ctx, &l.group[g].list);
    }
    return status;
}
