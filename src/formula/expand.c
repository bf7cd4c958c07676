/* expand.c - a formula that stands for several, as the texts of these.
 *
 * Each call of sw() and its like chooses among its arguments, and so does c(y1, y2).  The models
 * are all combinations of choices, those of the last call changing fastest.  A model is written as
 * text: the summands of a part that hold no call as they stand, a call as the sum of the arguments
 * chosen, which with its sign vanishes where none is.  Linear in the text for each model.
 *
 * Source: Berge, Butts and McDermott (2026), fixest (the names and what they choose).
 */
#include "formula/expand.h"

#include <string.h>

enum { CALLS_LIMIT = 16, MULTIVERSE_LIMIT = 12, TEXT_LIMIT = 1 << 26 };

typedef enum { STEP_NONE, STEP_SW, STEP_SW0, STEP_CSW, STEP_CSW0, STEP_MVSW, STEP_SET } step_kind;

/** A call with its choices. */
typedef struct {
    int32_t node;
    step_kind kind;
    int32_t arguments, choices;
    int32_t at; /* the choice of this model */
} call;

typedef struct {
    frg_context *ctx;
    const frgi_syntax *s;
    int n;
    call calls[CALLS_LIMIT];
} expansion;

static frg_status refuse(const expansion *e, int32_t node, const char *message)
{
    return frgi_syntax_refuse(e->s, e->ctx, E_FORMULA, node, message);
}

static step_kind kind_of(const frgi_syntax *s, int32_t node)
{
    static const char *const names[] = {"sw", "sw0", "csw", "csw0", "mvsw"};
    for (int k = 0; s->nodes[node].kind == NODE_CALL && k < STEP_MVSW; k++) {
        if (frgi_syntax_is(s, node, names[k])) {
            return (step_kind)(STEP_SW + k);
        }
    }
    return STEP_NONE;
}

bool frgi_formula_is_stepwise(const frgi_syntax *s, int32_t node)
{
    return kind_of(s, node) != STEP_NONE;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int32_t choices_of(const call *w)
{
    const bool empty_too = w->kind == STEP_SW0 || w->kind == STEP_CSW0;
    return w->kind == STEP_MVSW ? 1 << w->arguments : w->arguments + empty_too;
}

static frg_status add_call(expansion *e, int32_t node, step_kind kind)
{
    const frgi_syntax *const s = e->s;
    call w = {.node = node, .kind = kind, .arguments = s->nodes[node].children};
    if (e->n == CALLS_LIMIT) {
        return refuse(e, node, "at most 16 such calls stand in a formula");
    }
    if (w.arguments == 0) {
        return refuse(e, node, "the choices are missing in the parentheses");
    }
    if (kind == STEP_MVSW && w.arguments > MULTIVERSE_LIMIT) {
        return refuse(e, node, "mvsw() takes at most 12 arguments, 4096 models");
    }
    for (int32_t i = s->nodes[node].begin; i < node; i++) {
        if (kind_of(s, i) != STEP_NONE) {
            return refuse(e, i, "such calls do not stand in each other");
        }
    }
    for (int32_t i = 0; i < w.arguments; i++) {
        const int32_t child = frgi_syntax_child(s, node, i);
        if (s->nodes[child].kind == NODE_NAMED) {
            return refuse(e, child, "no named argument is expected here");
        }
    }
    w.choices = choices_of(&w);
    e->calls[e->n++] = w;
    return FRG_OK;
}

static frg_status add_calls(expansion *e, int32_t root)
{
    for (int32_t i = root < 0 ? 0 : e->s->nodes[root].begin; i <= root; i++) {
        const step_kind kind = kind_of(e->s, i);
        TRY(kind == STEP_NONE ? FRG_OK : add_call(e, i, kind));
    }
    return FRG_OK;
}

/** The slowest first: effects, outcomes, regressors, then endogenous variables and instruments. */
static frg_status find_calls(expansion *e)
{
    const frgi_syntax *const s = e->s;
    const bool effects = s->n_sections > 1 && s->instruments[1] < 0;
    TRY(effects ? add_calls(e, s->section[1]) : FRG_OK);
    if (frgi_syntax_is_set(s, s->left)) {
        TRY(add_call(e, s->left, STEP_SET));
    } else {
        for (int32_t i = s->nodes[s->left].begin; i <= s->left; i++) {
            if (kind_of(s, i) != STEP_NONE) {
                return refuse(e, i, "several outcomes are c(y1, y2)");
            }
        }
    }
    TRY(add_calls(e, s->section[0]));
    for (int i = 1; i < s->n_sections; i++) {
        TRY(i > 1 || !effects ? add_calls(e, s->section[i]) : FRG_OK);
        TRY(add_calls(e, s->instruments[i]));
    }
    int64_t models = 1;
    for (int k = 0; k < e->n; k++) {
        models *= e->calls[k].choices;
        if (models > FRGI_MODELS_LIMIT || models * s->length > TEXT_LIMIT) {
            return refuse(e, e->calls[k].node,
                          "the formula stands for more than 4096 models, or 64 MB of text");
        }
    }
    return FRG_OK;
}

/** The next choice of the last call that has one, the first of those behind it; false: there is no
 *  further model. */
static bool next_model(expansion *e)
{
    for (int k = e->n - 1; k >= 0; k--) {
        if (++e->calls[k].at < e->calls[k].choices) {
            return true;
        }
        e->calls[k].at = 0;
    }
    return false;
}

static int32_t binomial(int32_t n, int32_t k)
{
    int32_t value = 1;
    for (int32_t i = 0; i < k; i++) {
        value = value * (n - i) / (i + 1);
    }
    return value;
}

/** Subset number `at` of n elements as bits, by size and then in lexicographic order. */
static uint32_t subset(int32_t n, int32_t at)
{
    int32_t size = 0;
    uint32_t bits = 0;
    for (; at >= binomial(n, size); size++) {
        at -= binomial(n, size);
    }
    for (int32_t i = 0; i < n && size > 0; i++) {
        const int32_t with = binomial(n - i - 1, size - 1); /* subsets that have element i */
        if (at < with) {
            bits |= 1u << i;
            size--;
        } else {
            at -= with;
        }
    }
    return bits;
}

/** The arguments of this model, as bits: of few arguments, or a range [*first, *end). */
static void chosen(const call *w, int32_t *first, int32_t *end, uint32_t *bits)
{
    const bool empty_too = w->kind == STEP_SW0 || w->kind == STEP_CSW0;
    const bool grows = w->kind == STEP_CSW || w->kind == STEP_CSW0;
    *bits = UINT32_MAX;
    *end = w->at + !empty_too;
    *first = grows || *end == 0 ? 0 : *end - 1;
    if (w->kind == STEP_MVSW) {
        *bits = subset(w->arguments, w->at);
        *first = 0;
        *end = w->arguments;
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

static frg_status put_slice(const expansion *e, frgi_text *out, int32_t at, int32_t end)
{
    return frgi_text_append(e->ctx, out, e->s->text + at, (size_t)(end - at));
}

/** Are they more than one, or one that is an operation itself? */
static bool is_sum(const expansion *e, const call *w, int32_t first, int32_t end, uint32_t bits)
{
    int32_t count = 0;
    bool operation = false;
    for (int32_t i = first; i < end; i++) {
        const int32_t child = frgi_syntax_child(e->s, w->node, i);
        if (bits >> (w->kind == STEP_MVSW ? i : 0) & 1) {
            operation |= e->s->nodes[child].kind >= NODE_NEGATIVE;
            count++;
        }
    }
    return count > 1 || operation;
}

/** The sum of the arguments chosen; *count of them. */
static frg_status put_choice(const expansion *e, frgi_text *out, const call *w, bool wrapped,
                             int32_t *count)
{
    int32_t first, end;
    uint32_t bits;
    *count = 0;
    chosen(w, &first, &end, &bits);
    const bool several = wrapped && is_sum(e, w, first, end, bits);
    TRY(frgi_text_append(e->ctx, out, "(", several));
    for (int32_t i = first; i < end; i++) {
        const frgi_node *const x = &e->s->nodes[frgi_syntax_child(e->s, w->node, i)];
        if (bits >> (w->kind == STEP_MVSW ? i : 0) & 1) {
            TRY(frgi_text_append(e->ctx, out, " + ", *count ? 3 : 0));
            TRY(put_slice(e, out, x->at, x->at + x->length));
            ++*count;
        }
    }
    return frgi_text_append(e->ctx, out, ")", several);
}

static const call *call_of(const expansion *e, int32_t node)
{
    for (int k = 0; k < e->n; k++) {
        if (e->calls[k].node == node) {
            return &e->calls[k];
        }
    }
    return NULL;
}

/** A subtree with the calls inside it replaced. */
static frg_status put_subtree(const expansion *e, frgi_text *out, int32_t root)
{
    const frgi_node *const x = &e->s->nodes[root];
    int32_t at = x->at;
    for (int32_t i = x->begin; i <= root; i++) {
        const call *const w = call_of(e, i);
        if (w) {
            int32_t count;
            TRY(put_slice(e, out, at, e->s->nodes[i].at));
            TRY(put_choice(e, out, w, true, &count));
            if (count == 0) {
                return refuse(e, i, "a call that may choose nothing is a summand by itself");
            }
            at = e->s->nodes[i].at + e->s->nodes[i].length;
        }
    }
    return put_slice(e, out, at, x->at + x->length);
}

/** One summand with its sign; nothing where its call chooses nothing. */
static frg_status put_summand(const expansion *e, frgi_text *out, int32_t node, bool minus,
                              bool *begun)
{
    const call *const w = call_of(e, node);
    const char *const sign = minus ? (*begun ? " - " : "-") : (*begun ? " + " : "");
    const size_t before = out->length;
    TRY(frgi_text_append(e->ctx, out, sign, strlen(sign)));
    if (!w) {
        *begun = true;
        return put_subtree(e, out, node);
    }
    int32_t count;
    const size_t from = out->length;
    TRY(put_choice(e, out, w, minus, &count));
    if (count == 0) {
        out->length = from > before ? before : from;
        if (out->text) {
            out->text[out->length] = '\0';
        }
    }
    *begun |= count > 0;
    return FRG_OK;
}

/** A part of the formula, summand after summand; *begun: there is one. */
static frg_status put_part(const expansion *e, frgi_text *out, int32_t root, bool *begun)
{
    const frgi_syntax *const s = e->s;
    int32_t *sums, n = 0, node = root;
    *begun = false;
    TRY(NEW(e->ctx, &sums, root - s->nodes[root].begin + 1, "summands"));
    while (s->nodes[node].kind == NODE_ADD || s->nodes[node].kind == NODE_SUBTRACT) {
        sums[n++] = node;
        node = frgi_syntax_child(s, node, 0);
    }
    frg_status status = put_summand(e, out, node, false, begun);
    while (n-- > 0 && status >= 0) { /* the innermost sum is the leftmost */
        status = put_summand(e, out, sums[n] - 1, s->nodes[sums[n]].kind == NODE_SUBTRACT, begun);
    }
    DROP(e->ctx, &sums);
    return status;
}

/** The formula of this model. */
static frg_status put_formula(const expansion *e, frgi_text *out)
{
    const frgi_syntax *const s = e->s;
    const call *const outcomes = call_of(e, s->left);
    bool begun;
    int32_t count;
    TRY(outcomes ? put_choice(e, out, outcomes, false, &count) : put_subtree(e, out, s->left));
    TRY(frgi_text_append(e->ctx, out, " ~ ", 3));
    TRY(put_part(e, out, s->section[0], &begun));
    TRY(frgi_text_append(e->ctx, out, "1", !begun));
    for (int i = 1; i < s->n_sections; i++) {
        const size_t before = out->length;
        TRY(frgi_text_append(e->ctx, out, " | ", 3));
        TRY(put_part(e, out, s->section[i], &begun));
        if (!begun) { /* no effects in this one */
            out->length = before;
            out->text[before] = '\0';
        }
        if (s->instruments[i] >= 0) {
            TRY(frgi_text_append(e->ctx, out, " ~ ", 3));
            TRY(put_part(e, out, s->instruments[i], &begun));
        }
    }
    return FRG_OK;
}

static frg_status add_formula(expansion *e, frgi_formulas *out)
{
    frgi_text text = {0};
    const frg_status status = put_formula(e, &text);
    if (status < 0) {
        frgi_text_free(e->ctx, &text);
        return status;
    }
    out->text[out->n++] = text.text; /* a block of the context, as all of them */
    return FRG_OK;
}

static frg_status expand(expansion *e, frgi_formulas *out, const char *text, int64_t length)
{
    TRY(find_calls(e));
    int64_t models = 1;
    for (int k = 0; k < e->n; k++) {
        models *= e->calls[k].choices;
    }
    TRY(NEW0(e->ctx, &out->text, models, "formulas"));
    if (e->n == 0) {
        TRY(frgi_strdup(e->ctx, &out->text[0], text, (size_t)length));
        out->n = 1;
        return FRG_OK;
    }
    do {
        TRY(add_formula(e, out));
    } while (next_model(e));
    return FRG_OK;
}

frg_status frgi_formula_expand(frgi_formulas *out, frg_context *ctx, const char *text,
                               int64_t length)
{
    frgi_syntax s = {0};
    expansion e = {.ctx = ctx, .s = &s};
    *out = (frgi_formulas){0};
    frg_status status = frgi_syntax_formula(&s, ctx, text, length);
    if (status >= 0) {
        status = expand(&e, out, text, length);
    }
    frgi_syntax_free(&s, ctx);
    if (status < 0) {
        frgi_formulas_free(out, ctx);
    }
    return status;
}

void frgi_formulas_free(frgi_formulas *f, frg_context *ctx)
{
    for (int32_t i = 0; i < f->n; i++) {
        DROP(ctx, &f->text[i]);
    }
    DROP(ctx, &f->text);
    *f = (frgi_formulas){0};
}
