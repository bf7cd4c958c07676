/* gp_print.c - what a kernel expression is like, and its text.
 *
 * The printer writes parentheses wherever the tree has a level, so that its text is parsed into the
 * same tree; values in the shortest decimals that read back to the same bits.
 */
#include <math.h>
#include <string.h>

#include "fourge/report.h"
#include "gp/gp_scan.h"

/* ---- looking at the tree --------------------------------------------------------------------- */

int frgi_gp_kernel_scale(const frgi_gp_kernel *k)
{
    const frgi_gp_node *const root = &k->node[k->n_nodes - 1];
    return root->kind == GP_SCALE ? root->group[0].first : -1;
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

/* ---- printing -------------------------------------------------------------------------------- */

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

/** Does parameter i follow one whose name the parser has met when it comes to i? */
static bool follows(const printer *p, int i)
{
    return frgi_gp_params_leader(p->params, i) < i;
}

static frg_status put_value(printer *p, int i)
{
    const frgi_gp_param *const v = &p->params->p[i];
    if (follows(p, i)) {
        const frgi_gp_param *const leader = &p->params->p[frgi_gp_params_leader(p->params, i)];
        TRY(frgi_text_printf(p->ctx, p->out, "@%s", leader->name));
        return leader->entry < 0 ? FRG_OK
                                 : frgi_text_printf(p->ctx, p->out, "[%d]", leader->entry + 1);
    }
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
    return isnan(p->params->p[i].value) && !p->params->p[i].bounded && !follows(p, i);
}

static frg_status put_separator(printer *p, bool *first)
{
    TRY(put(p, *first ? "(" : ", "));
    *first = false;
    return FRG_OK;
}

/** name=values; a group with an open entry is left out, but for the word that makes it a vector. */
static frg_status put_group(printer *p, const frgi_gp_leaf_word *word, const frgi_gp_node *node,
                            int g, bool *first, bool *ard)
{
    const frgi_gp_group *const group = &node->group[g];
    bool open = false;
    for (int i = 0; i < group->count; i++) {
        open = open || is_open(p, group->first + i);
    }
    if (open || group->count == 0) {
        *ard = *ard || (group->vector && word->group[g].spread == GP_PER_COLUMN);
        return FRG_OK;
    }
    TRY(put_separator(p, first));
    TRY(put(p, frgi_gp_group_of(word, node->kind, g)->name));
    TRY(put(p, group->vector ? "=[" : "="));
    for (int i = 0; i < group->count; i++) {
        TRY(put(p, i ? "," : ""));
        TRY(put_value(p, group->first + i));
    }
    return put(p, group->vector ? "]" : "");
}

static frg_status put_leaf(printer *p, const frgi_gp_node *node)
{
    const frgi_gp_leaf_word *const word = frgi_gp_leaf_of(node->kind);
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
    bool plain = frgi_gp_is_letter(*s);
    for (; *s; s++) {
        plain = plain && (frgi_gp_is_letter(*s) || frgi_gp_is_digit(*s) || *s == '.');
    }
    return plain;
}

static frg_status put_columns(printer *p, const frgi_gp_node *node)
{
    TRY(put(p, "on("));
    for (int i = 0; i < node->dims; i++) {
        const int32_t c = p->k->column[node->column + i];
        const char *const name = p->k->names[c];
        ptrdiff_t first;
        TRY(put(p, i ? "," : ""));
        if (is_plain_name(name) && frgi_gp_named(p->k, name, strlen(name), &first) == 1) {
            TRY(put(p, name));
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
        const bool number = !isnan(p->params->p[parameter].value) && !follows(p, parameter);
        const bool open = is_open(p, parameter);
        TRY(put(p, number ? "" : open ? "scale" : "scale("));
        TRY(put_value(p, parameter));
        TRY(put(p, number || open ? "*" : ")*"));
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
