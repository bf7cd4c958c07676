/* gp_expr.c - kernel expressions: recursive-descent parser of sums, products and selections of
 * columns.
 *
 *     expression := sum                      one of its terms may be "noise" [ "(" value ")" ]
 *     sum        := product { "+" product }
 *     product    := [ variance "*" ] factor { "*" factor }
 *     variance   := number suffix | "scale" [ "(" value ")" ]
 *     factor     := "(" sum ")" | "on" "(" columns ";" sum ")" | leaf
 *     columns    := column { "," column }
 *     column     := name | "name" | number from 1
 *     leaf, value, suffix                    see gp_expr_leaf.c, gp_scan.c
 *
 * Dangers: the text is anybody's; depth, nodes and parameters are limited, every position is
 * checked, time is linear.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_parser.h"

enum { DEPTH_LIMIT = 64, LENGTH_LIMIT = 1 << 20 };

/* ---- on(columns; kernel) --------------------------------------------------------------------- */

static frg_status push_column(frgi_gp_parser *p, int column)
{
    frgi_gp_kernel *const k = p->k;
    if (k->n_column == k->column_capacity) {
        const int capacity = k->column_capacity ? 2 * k->column_capacity : 64;
        TRY(GROW(p->scan.ctx, &k->column, capacity, "the kernel's columns"));
        k->column_capacity = capacity;
    }
    k->column[k->n_column++] = column;
    return FRG_OK;
}

int frgi_gp_named(const frgi_gp_kernel *k, const char *name, size_t length, ptrdiff_t *first)
{
    int found = 0;
    for (ptrdiff_t c = k->d - 1; c >= 0; c--) {
        if (strncmp(k->names[c], name, length) == 0 && !k->names[c][length]) {
            *first = c;
            found++;
        }
    }
    return found;
}

static frg_status no_such_column(const frgi_gp_parser *p, const char *name, int length)
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

static frg_status parse_column(frgi_gp_parser *p, int *out)
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
        ptrdiff_t c;
        const int found = frgi_gp_named(p->k, name, (size_t)length, &c);
        if (found == 0) {
            return no_such_column(p, name, length);
        }
        if (found > 1) {
            FAIL(p->scan.ctx, E_KERNEL,
                 "kernel, column %d: %d columns of x have the name '%s': give the number of one",
                 frgi_gp_locate(&p->scan, t.at), found, p->k->names[c]);
        }
        *out = (int)c;
    } else {
        return frgi_gp_unexpected(&p->scan, "a column's name or number");
    }
    frgi_gp_advance(&p->scan);
    return FRG_OK;
}

static frg_status parse_sum(frgi_gp_parser *p);

static frg_status parse_select(frgi_gp_parser *p)
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
    TRY(frgi_gp_push_node(p, (frgi_gp_node){.kind = GP_SELECT, .begin = begin, .children = 1}));
    p->column = column;
    p->dims = dims;
    return frgi_gp_expect(&p->scan, ')', "'+', '*' or ')'");
}

/* ---- sums and products ----------------------------------------------------------------------- */

static frg_status unknown_kernel(const frgi_gp_parser *p)
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

static frg_status parse_factor(frgi_gp_parser *p)
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
            return frgi_gp_parse_leaf(p, &frgi_gp_leaves[i]);
        }
    }
    return unknown_kernel(p);
}

/** A number or the word scale in front of "*"; false: there is none. */
static frg_status parse_scale(frgi_gp_parser *p, bool *found, int *parameter)
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
    return frgi_gp_add_scale(p, v, parameter);
}

static frg_status parse_product(frgi_gp_parser *p)
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
        TRY(frgi_gp_push_node(
            p, (frgi_gp_node){.kind = GP_PRODUCT, .begin = begin, .children = factors}));
    }
    if (!scaled) {
        return FRG_OK;
    }
    return frgi_gp_push_node(p, (frgi_gp_node){.kind = GP_SCALE,
                                               .begin = begin,
                                               .children = 1,
                                               .n_groups = 1,
                                               .group = {{.first = parameter, .count = 1}}});
}

/** noise, noise(0.04), noise(0.04! in(1e-4,1)): kept aside until the kernel's parameters are
 *  complete. */
static frg_status parse_noise(frgi_gp_parser *p, frgi_gp_written *noise, bool *found)
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

static frg_status parse_terms(frgi_gp_parser *p, bool top, frgi_gp_written *noise, bool *has_noise)
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
                      : frgi_gp_push_node(
                            p, (frgi_gp_node){.kind = GP_SUM, .begin = begin, .children = terms});
}

static frg_status parse_sum(frgi_gp_parser *p)
{
    if (++p->depth > DEPTH_LIMIT) {
        FAIL(p->scan.ctx, E_KERNEL, "kernel, column %d: more than %d levels of parentheses",
             frgi_gp_locate(&p->scan, p->scan.now.at), DEPTH_LIMIT);
    }
    TRY(parse_terms(p, false, NULL, NULL));
    p->depth--;
    return FRG_OK;
}

static frg_status parse_all(frgi_gp_parser *p)
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
        TRY(frgi_gp_add_parameter(p, "noise", GP_ROLE_NOISE, -1, -1, noise, 1));
    }
    return FRG_OK;
}

static frg_status copy_names(frgi_gp_kernel *k, frg_context *ctx, const char *const *names)
{
    TRY(NEW0(ctx, &k->names, k->d, "the kernel's columns"));
    for (ptrdiff_t c = 0; c < k->d; c++) {
        char own[24] = "x";
        int digits = 1;
        for (ptrdiff_t number = c + 1; number >= 10; number /= 10) {
            digits++;
        }
        own[digits + 1] = '\0';
        for (ptrdiff_t number = c + 1, i = digits; i > 0; i--, number /= 10) {
            own[i] = (char)('0' + number % 10);
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
    frgi_gp_parser p = {.scan = {.ctx = ctx, .text = text, .length = (int)length},
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
