/* lags.c - l(x, k), f(x, k) and d(x, k), written out one by one.
 *
 * l(x) is l(x, 1), and l(x, 1:3) is (l(x, 1) + l(x, 2) + l(x, 3)): the text is rewritten before it
 * becomes terms, so that each lag is an atom with its own name.  What a lag's values are is the
 * regression's business (reg_panel.c).
 *
 * Source: Berge, Butts and McDermott (2026), fixest (the functions and the names of terms).
 */
#include <string.h>

#include "formula/formula.h"

enum { LAGS_LIMIT = 1000 };

bool frgi_formula_is_lag(const frgi_syntax *s, int32_t node)
{
    return s->nodes[node].kind == NODE_CALL &&
           (frgi_syntax_is(s, node, "l") || frgi_syntax_is(s, node, "f") ||
            frgi_syntax_is(s, node, "d"));
}

/** A whole number, with a sign or not. */
static bool take_number(const frgi_syntax *s, int32_t node, int64_t *out)
{
    const bool negative = s->nodes[node].kind == NODE_NEGATIVE;
    const frgi_node *const x = &s->nodes[node - negative];
    if (x->kind != NODE_NUMBER || x->value != (double)(int32_t)x->value) {
        return false;
    }
    *out = negative ? -(int64_t)x->value : (int64_t)x->value;
    return true;
}

/** The k of a call: first and last; 1 where none is given. */
static bool take_range(const frgi_syntax *s, int32_t node, int64_t *first, int64_t *last)
{
    *first = *last = 1;
    if (s->nodes[node].children == 1) {
        return true;
    }
    const int32_t k = node - 1;
    if (s->nodes[k].kind == NODE_INTERACT) {
        return take_number(s, frgi_syntax_child(s, k, 0), first) &&
               take_number(s, frgi_syntax_child(s, k, 1), last) && *last - *first < LAGS_LIMIT &&
               *first - *last < LAGS_LIMIT;
    }
    return take_number(s, k, first) && take_number(s, k, last);
}

int64_t frgi_formula_lag(const frgi_syntax *s, int32_t node)
{
    int64_t first, last;
    return !take_range(s, node, &first, &last) ? 0 : frgi_syntax_is(s, node, "f") ? -first : first;
}

static frg_status refuse(const frgi_syntax *s, frg_context *ctx, int32_t node, const char *message)
{
    return frgi_syntax_refuse(s, ctx, E_FORMULA, node, message);
}

static frg_status check_lag(const frgi_syntax *s, frg_context *ctx, int32_t node)
{
    int64_t first, last;
    if (s->nodes[node].children < 1 || s->nodes[node].children > 2 ||
        !take_range(s, node, &first, &last)) {
        return refuse(s, ctx, node,
                      "l(), f() and d() take a column or an expression, and a whole number or a "
                      "range of at most 1000, as in l(x, 1:3)");
    }
    for (int32_t i = s->nodes[node].begin; i < node; i++) {
        if (frgi_formula_is_lag(s, i)) {
            return refuse(s, ctx, i, "lags do not stand in each other");
        }
    }
    return first != last && s->left >= node ? refuse(s, ctx, node, "an outcome has one lag")
                                            : FRG_OK;
}

/** The sum of the call's lags. */
static frg_status put_lag(const frgi_syntax *s, frg_context *ctx, int32_t node, frgi_text *out)
{
    const frgi_node *const call = &s->nodes[node], *const x =
                                                       &s->nodes[frgi_syntax_child(s, node, 0)];
    int64_t first, last;
    const bool one = take_range(s, node, &first, &last) && first == last;
    const int64_t step = first <= last ? 1 : -1;
    TRY(frgi_text_append(ctx, out, "(", !one));
    for (int64_t k = first;; k += step) {
        TRY(frgi_text_printf(ctx, out, "%s%.*s(%.*s, %lld)", k == first ? "" : " + ",
                             call->name_length, s->text + call->name, x->length, s->text + x->at,
                             (long long)k));
        if (k == last) {
            return frgi_text_append(ctx, out, ")", !one);
        }
    }
}

static frg_status write_lags(const frgi_syntax *s, frg_context *ctx, frgi_text *out)
{
    int32_t at = 0;
    for (int32_t i = 0; i < s->n_nodes; i++) {
        if (frgi_formula_is_lag(s, i)) {
            const frgi_node *const x = &s->nodes[i];
            TRY(check_lag(s, ctx, i));
            TRY(frgi_text_append(ctx, out, s->text + at, (size_t)(x->at - at)));
            TRY(put_lag(s, ctx, i, out));
            at = x->at + x->length;
        }
    }
    return at == 0 ? FRG_OK : frgi_text_append(ctx, out, s->text + at, (size_t)(s->length - at));
}

frg_status frgi_formula_write_lags(char **out, frg_context *ctx, const char *text, int64_t length)
{
    frgi_syntax s = {0};
    frgi_text written = {0};
    *out = NULL;
    frg_status status = frgi_syntax_formula(&s, ctx, text, length);
    if (status >= 0) {
        status = write_lags(&s, ctx, &written);
    }
    frgi_syntax_free(&s, ctx);
    if (status < 0) {
        frgi_text_free(ctx, &written);
        return status;
    }
    *out = written.text;
    return FRG_OK;
}
