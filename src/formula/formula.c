/* formula.c - from nodes to terms and effects.
 *
 * Left of the bar stands R's term algebra: a + b joins, a:b multiplies, a*b = a + b + a:b, -t
 * removes, -1 and 0 switch the intercept off.  A set of terms is a range of one growing array, and
 * the operators work on the last two ranges like a stack machine, so that a chain of any length
 * costs no recursion:
 *
 *     ... | left terms | right terms |        +: the ranges are neighbours already, they become one
 *
 * Right of the bar stands a sum of effects f, f1^f2, f[x], f[[x]]; effects with the same key are
 * merged.
 */
#include "formula/formula.h"

#include "formula/bins.h"
#include "formula/expand.h"
#include "formula/program.h"

#include <stdlib.h>
#include <string.h>

enum { TERMS_LIMIT = 1 << 16 };

typedef struct {
    frg_context *ctx;
    frgi_formula *f;
} builder;

/* ---- errors that name the place -------------------------------------------------------------- */

static frg_status refuse(const frgi_syntax *s, frg_context *ctx, int32_t node, const char *message)
{
    return frgi_syntax_refuse(s, ctx, E_FORMULA, node, message);
}

static frg_status unsupported(const frgi_syntax *s, frg_context *ctx, int32_t node,
                              const char *what)
{
    frgi_syntax_at(s, ctx, node);
    FAIL(ctx, E_UNSUPPORTED, "%s, column %d: %s", s->what, frgi_syntax_column(s, s->nodes[node].at),
         what);
}

/** Calls that fixest knows and this version does not. */
static const char *later(const frgi_syntax *s, int32_t node)
{
    static const struct {
        const char *name, *what;
    } table[] = {
        {"offset", "offset() among the terms is not built yet: give the option offset"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (s->nodes[node].kind == NODE_CALL && frgi_syntax_is(s, node, table[i].name)) {
            return table[i].what;
        }
    }
    return NULL;
}

static const char several[] = "this makes several models of the formula; here it has to be one";

/* ---- expressions ----------------------------------------------------------------------------- */

static frg_status check_set(const frgi_syntax *s, frg_context *ctx, int32_t node)
{
    for (int32_t i = s->nodes[node].begin; i < node; i++) {
        const frgi_node_kind kind = s->nodes[i].kind;
        if (kind != NODE_NUMBER && kind != NODE_STRING && kind != NODE_NEGATIVE) {
            return refuse(s, ctx, i, "c() holds numbers or strings alone");
        }
    }
    return FRG_OK;
}

frg_status frgi_formula_check_expression(const frgi_syntax *s, frg_context *ctx, int32_t node)
{
    for (int32_t i = s->nodes[node].begin; i <= node; i++) {
        const frgi_node *const x = &s->nodes[i];
        const char *const name = later(s, i);
        if (name) {
            return unsupported(s, ctx, i, name);
        }
        if (frgi_formula_is_stepwise(s, i)) {
            return refuse(s, ctx, i, several);
        }
        if (frgi_syntax_is_set(s, i)) {
            TRY(check_set(s, ctx, i));
            const int32_t parent =
                i + 1; /* a set is the right operand of %in%, so its parent is next */
            if (parent > node || s->nodes[parent].kind != NODE_IN) {
                return refuse(s, ctx, i, "c() stands right of %in% alone");
            }
        } else if (frgi_formula_is_lag(s, i)) {
            continue; /* written one by one, its k is a number */
        } else if (x->kind == NODE_CALL && !frgi_program_has_function(s, i)) {
            return refuse(s, ctx, i,
                          "this function is not known; there are log, exp, sqrt, abs, I, and "
                          "factor and i for terms alone");
        } else if (x->kind == NODE_CALL && x->children != 1) {
            return refuse(s, ctx, i, "this function takes one argument");
        } else if (x->kind == NODE_IN && !frgi_syntax_is_set(s, i - 1)) {
            return refuse(s, ctx, i, "%in% wants c(...) on its right");
        } else if (x->kind == NODE_NAMED) {
            return refuse(s, ctx, i, "no named argument is expected here (compare with ==)");
        } else if (x->kind == NODE_SLOPES || x->kind == NODE_ALONE) {
            return refuse(s, ctx, i, "varying slopes stand right of the bar");
        } else if (x->kind == NODE_INTERACT) {
            return refuse(s, ctx, i, "':' makes no number; write '*'");
        }
    }
    return FRG_OK;
}

/* ---- names and terms ------------------------------------------------------------------------- */

/** The id of a subtree's text; its node is kept where it stood first. */
static frg_status intern(builder *b, int32_t node, const char *format, int32_t *id)
{
    frgi_formula *const f = b->f;
    frgi_text text = {0};
    frg_status status = FRG_OK;
    TRY_TO(done, frgi_syntax_text(&f->syntax, b->ctx, node, &text));
    if (format) {
        frgi_text wrapped = {0};
        status = frgi_text_printf(b->ctx, &wrapped, format, text.text);
        frgi_text_free(b->ctx, &text);
        text = wrapped;
        TRY_TO(done, status);
    }
    TRY_TO(done, frgi_names_intern(&f->names, b->ctx, text.text ? text.text : "", text.length, id));
    if (*id >= f->capacity) {
        const int32_t capacity = f->capacity ? 2 * f->capacity : 32;
        TRY_TO(done, GROW(b->ctx, &f->nodes, capacity, "atoms"));
        memset(f->nodes + f->capacity, 0xff, sizeof *f->nodes * (size_t)(capacity - f->capacity));
        f->capacity = capacity;
    }
    if (f->nodes[*id] < 0) {
        f->nodes[*id] = node;
    }
done:
    frgi_text_free(b->ctx, &text);
    return status;
}

static frg_status push_term(builder *b, const frgi_term *t, int32_t node)
{
    frgi_formula *const f = b->f;
    if (f->n_terms == TERMS_LIMIT) {
        return refuse(&f->syntax, b->ctx, node, "too many terms");
    }
    if (f->n_terms == f->terms_capacity) {
        const int32_t capacity = f->terms_capacity ? 2 * f->terms_capacity : 16;
        TRY(GROW(b->ctx, &f->terms, capacity, "terms"));
        f->terms_capacity = capacity;
    }
    f->terms[f->n_terms++] = *t;
    return FRG_OK;
}

static bool contains(const frgi_term *t, int32_t atom)
{
    for (int32_t i = 0; i < t->n; i++) {
        if (t->atom[i] == atom) {
            return true;
        }
    }
    return false;
}

static bool same(const frgi_term *s, const frgi_term *t)
{
    if (s->n != t->n) {
        return false;
    }
    for (int32_t i = 0; i < s->n; i++) {
        if (!contains(t, s->atom[i])) {
            return false;
        }
    }
    return true;
}

/** Drops the terms from `begin` on that stand earlier in [first, ...). */
static void drop_repeats(frgi_formula *f, int32_t first, int32_t begin)
{
    int32_t kept = begin;
    for (int32_t i = begin; i < f->n_terms; i++) {
        int32_t j = first;
        while (j < kept && !same(&f->terms[j], &f->terms[i])) {
            j++;
        }
        if (j == kept) {
            f->terms[kept++] = f->terms[i];
        }
    }
    f->n_terms = kept;
}

/** a:b of the ranges [left, right) and [right, end); they stay in front for a*b. */
static frg_status multiply(builder *b, int32_t node, int32_t left, int32_t right)
{
    frgi_formula *const f = b->f;
    const bool keep = f->syntax.nodes[node].kind == NODE_MULTIPLY;
    const int32_t end = f->n_terms;
    for (int32_t i = left; i < right; i++) {
        for (int32_t j = right; j < end; j++) {
            frgi_term t = f->terms[i];
            for (int32_t a = 0; a < f->terms[j].n; a++) {
                const int32_t atom = f->terms[j].atom[a];
                if (!contains(&t, atom)) {
                    if (t.n == FRGI_TERM_ATOMS) {
                        return refuse(&f->syntax, b->ctx, node,
                                      "at most 8 variables interact in a term");
                    }
                    t.atom[t.n++] = atom;
                }
            }
            TRY(push_term(b, &t, node));
        }
    }
    if (!keep) {
        memmove(f->terms + left, f->terms + end, sizeof *f->terms * (size_t)(f->n_terms - end));
        f->n_terms -= end - left;
    }
    drop_repeats(f, left, left);
    return FRG_OK;
}

/** Removes from [left, right) what stands in [right, end).  Degree 0 is the intercept. */
static void subtract(frgi_formula *f, int32_t left, int32_t right)
{
    int32_t kept = left;
    for (int32_t j = right; j < f->n_terms; j++) {
        f->intercept &= f->terms[j].n > 0;
    }
    for (int32_t i = left; i < right; i++) {
        int32_t j = right;
        while (j < f->n_terms && !same(&f->terms[i], &f->terms[j])) {
            j++;
        }
        if (j == f->n_terms) {
            f->terms[kept++] = f->terms[i];
        }
    }
    f->n_terms = kept;
}

/** Operators of the term algebra; everything else is an atom. */
static bool is_algebra(frgi_node_kind kind)
{
    return kind == NODE_ADD || kind == NODE_SUBTRACT || kind == NODE_MULTIPLY ||
           kind == NODE_INTERACT || kind == NODE_PAREN || kind == NODE_NEGATIVE ||
           kind == NODE_POSITIVE;
}

/** i(f), i(f, x), i(f, g) with ref, ref2, keep, keep2. */
static frg_status check_categories(const frgi_syntax *s, frg_context *ctx, int32_t node)
{
    const int32_t n = s->nodes[node].children;
    int32_t plain = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t child = frgi_syntax_child(s, node, i);
        const frgi_node *const x = &s->nodes[child];
        if (x->kind != NODE_NAMED) {
            plain++;
            if (plain > 2 || x->kind != NODE_NAME) {
                return refuse(s, ctx, child,
                              "i() takes one or two columns and ref=, ref2=, keep=, keep2=");
            }
            continue;
        }
        if (frgi_syntax_is(s, child, "bin") || frgi_syntax_is(s, child, "bin2")) {
            return unsupported(s, ctx, child, "i() with bin is not built yet");
        }
        if (!frgi_syntax_is(s, child, "ref") && !frgi_syntax_is(s, child, "ref2") &&
            !frgi_syntax_is(s, child, "keep") && !frgi_syntax_is(s, child, "keep2")) {
            return refuse(s, ctx, child, "i() knows ref=, ref2=, keep=, keep2=");
        }
        const int32_t value = child - 1;
        if (frgi_syntax_is_set(s, value)) {
            TRY(check_set(s, ctx, value));
            continue;
        }
        const bool negative = s->nodes[value].kind == NODE_NEGATIVE;
        const frgi_node_kind kind = s->nodes[value - negative].kind;
        const bool flag = frgi_syntax_is(s, value, "TRUE") || frgi_syntax_is(s, value, "FALSE");
        if (kind != NODE_NUMBER &&
            (negative || (kind != NODE_STRING && !(kind == NODE_NAME && flag)))) {
            return refuse(s, ctx, value,
                          "a level is a number, a string, TRUE, FALSE or c(...) of them");
        }
    }
    return plain > 0 ? FRG_OK : refuse(s, ctx, node, "i() wants a column");
}

bool frgi_formula_is_sunab(const frgi_syntax *s, int32_t node)
{
    return s->nodes[node].kind == NODE_CALL &&
           (frgi_syntax_is(s, node, "sunab") || frgi_syntax_is(s, node, "sunab_att"));
}

int32_t frgi_formula_given(const frgi_syntax *s, int32_t node, const char *name)
{
    for (int32_t i = 0; i < s->nodes[node].children; i++) {
        const int32_t child = frgi_syntax_child(s, node, i);
        if (s->nodes[child].kind == NODE_NAMED && frgi_syntax_is(s, child, name)) {
            return child - 1;
        }
    }
    return -1;
}

/** The value of an argument of sunab(): numbers, .F and .L for references, else TRUE or FALSE. */
static frg_status check_cohort_value(const frgi_syntax *s, frg_context *ctx, int32_t named)
{
    const bool period = frgi_syntax_is(s, named, "ref.p");
    const bool reference = period || frgi_syntax_is(s, named, "ref.c");
    const int32_t value = named - 1;
    for (int32_t i = s->nodes[value].begin; i <= value; i++) {
        const frgi_node_kind kind = s->nodes[i].kind;
        const bool end = frgi_syntax_is(s, i, ".F") || frgi_syntax_is(s, i, ".L");
        const bool flag = frgi_syntax_is(s, i, "TRUE") || frgi_syntax_is(s, i, "FALSE");
        const bool sound = !reference          ? kind == NODE_NAME && flag
                           : kind == NODE_NAME ? period && end
                           : i == value && frgi_syntax_is_set(s, value)
                               ? true
                               : kind == NODE_NUMBER || kind == NODE_NEGATIVE;
        if (!sound) {
            return refuse(s, ctx, i,
                          reference ? "a reference is a number or c(...) of numbers, none a range "
                                      "a:b; of ref.p= .F and .L are the first and the last period"
                                    : "this is TRUE or FALSE, in full");
        }
    }
    return FRG_OK;
}

static frg_status check_bins(const frgi_syntax *s, frg_context *ctx, int32_t named)
{
    frgi_bins bins;
    const frg_status status = frgi_bins_create(&bins, ctx, s, named - 1);
    frgi_bins_free(&bins, ctx);
    return status;
}

/** sunab(cohort, period) with references, bins, att, no_agg. */
static frg_status check_cohorts(const frgi_syntax *s, frg_context *ctx, int32_t node)
{
    static const char *const known[] = {"bin",   "bin.c", "bin.p", "bin.rel",
                                        "ref.c", "ref.p", "att",   "no_agg"};
    enum { BINS = 4, KNOWN = sizeof known / sizeof *known };
    const int32_t n = s->nodes[node].children;
    for (int32_t i = 0; i < n; i++) {
        const int32_t child = frgi_syntax_child(s, node, i);
        const frgi_node_kind kind = s->nodes[child].kind;
        size_t k = 0;
        if (i < 2) {
            if (kind != NODE_NAME) {
                return refuse(s, ctx, child,
                              "sunab() begins with the columns of the cohort and the period");
            }
            continue;
        }
        while (kind == NODE_NAMED && k < KNOWN && !frgi_syntax_is(s, child, known[k])) {
            k++;
        }
        if (kind != NODE_NAMED || k == KNOWN) {
            return refuse(s, ctx, child,
                          "sunab() knows ref.c=, ref.p=, bin=, bin.c=, bin.p=, bin.rel=, att= and "
                          "no_agg= after its columns");
        }
        TRY(k < BINS ? check_bins(s, ctx, child) : check_cohort_value(s, ctx, child));
    }
    return n >= 2 ? FRG_OK : refuse(s, ctx, node, "sunab() wants a cohort and a period");
}

bool frgi_formula_is_factor(const frgi_syntax *s, int32_t node)
{
    return s->nodes[node].kind == NODE_CALL &&
           (frgi_syntax_is(s, node, "factor") || frgi_syntax_is(s, node, "as.factor") ||
            frgi_syntax_is(s, node, "C"));
}

static frg_status check_factor(const frgi_syntax *s, frg_context *ctx, int32_t node)
{
    const bool column =
        s->nodes[node].children == 1 && s->nodes[frgi_syntax_child(s, node, 0)].kind == NODE_NAME;
    return column ? FRG_OK : refuse(s, ctx, node, "factor() takes one column");
}

/** An atom or a number as a range of its own. */
static frg_status push_atom(builder *b, int32_t node)
{
    frgi_formula *const f = b->f;
    const frgi_syntax *const s = &f->syntax;
    const frgi_node *const x = &s->nodes[node];
    frgi_term t = {0};
    if (x->kind == NODE_NUMBER) {
        if (x->value != 0 && x->value != 1) {
            return refuse(s, b->ctx, node, "a number among the terms is 0 or 1, the intercept");
        }
        f->intercept = x->value != 0;
        return x->value != 0 ? push_term(b, &t, node) : FRG_OK;
    }
    const char *const name = later(s, node);
    if (name) {
        return unsupported(s, b->ctx, node, name);
    }
    if (x->kind == NODE_NAME && x->name_length == 1 && s->text[x->name] == '.') {
        return unsupported(s, b->ctx, node, "'.' for all other columns is not built yet");
    }
    if (x->kind == NODE_CALL && frgi_syntax_is(s, node, "i")) {
        TRY(check_categories(s, b->ctx, node));
    } else if (frgi_formula_is_sunab(s, node)) {
        TRY(check_cohorts(s, b->ctx, node));
    } else if (frgi_formula_is_factor(s, node)) {
        TRY(check_factor(s, b->ctx, node));
    } else if (x->kind == NODE_POWER) {
        if (s->nodes[frgi_syntax_child(s, node, 0)].kind == NODE_PAREN) {
            return refuse(s, b->ctx, node,
                          "write I(...) for a power, or a*b for terms that interact");
        }
        TRY(frgi_formula_check_expression(s, b->ctx, node));
    } else if (x->kind == NODE_NAME || x->kind == NODE_CALL) {
        TRY(frgi_formula_check_expression(s, b->ctx, node));
    } else if (x->kind == NODE_SLOPES || x->kind == NODE_ALONE) {
        return refuse(s, b->ctx, node, "varying slopes stand right of the bar");
    } else {
        return refuse(s, b->ctx, node, "this is no term; write I(...) for arithmetic");
    }
    t.n = 1;
    TRY(intern(b, node, x->kind == NODE_POWER ? "I(%s)" : NULL, &t.atom[0]));
    return push_term(b, &t, node);
}

static frg_status apply(builder *b, int32_t node, int32_t *starts, int32_t *n_starts)
{
    frgi_formula *const f = b->f;
    const frgi_node *const x = &f->syntax.nodes[node];
    if (!is_algebra(x->kind)) {
        starts[(*n_starts)++] = f->n_terms;
        return push_atom(b, node);
    }
    const int32_t right = starts[*n_starts - 1];
    if (x->kind == NODE_PAREN || x->kind == NODE_POSITIVE) {
        return FRG_OK;
    }
    if (x->kind == NODE_NEGATIVE) { /* a leading -1 */
        subtract(f, right, right);
        return FRG_OK;
    }
    const int32_t left = starts[*n_starts - 2];
    --*n_starts;
    if (x->kind == NODE_SUBTRACT) {
        subtract(f, left, right);
        return FRG_OK;
    }
    return x->kind == NODE_ADD ? FRG_OK : multiply(b, node, left, right);
}

/** Stable by degree (R's order), the intercept's term removed. */
static frg_status order_by_degree(builder *b)
{
    frgi_formula *const f = b->f;
    if (f->n_terms == 0) {
        return FRG_OK;
    }
    frgi_term *sorted;
    TRY(NEW(b->ctx, &sorted, f->n_terms, "terms"));
    int32_t n = 0;
    for (int32_t degree = 1; degree <= FRGI_TERM_ATOMS; degree++) {
        for (int32_t i = 0; i < f->n_terms; i++) {
            if (f->terms[i].n == degree) {
                sorted[n++] = f->terms[i];
            }
        }
    }
    DROP(b->ctx, &f->terms);
    f->terms = sorted;
    f->n_terms = n;
    f->terms_capacity = n;
    return FRG_OK;
}

/** Single atoms, by far the most, are recognised by a mark; products are compared pairwise. */
static frg_status drop_duplicates(builder *b)
{
    frgi_formula *const f = b->f;
    char *seen;
    TRY(NEW0(b->ctx, &seen, f->names.count, "terms"));
    int32_t kept = 0;
    for (int32_t i = 0; i < f->n_terms && f->terms[i].n == 1; i++) {
        if (!seen[f->terms[i].atom[0]]) {
            seen[f->terms[i].atom[0]] = 1;
            f->terms[kept++] = f->terms[i];
        }
    }
    const int32_t products = kept;
    for (int32_t i = 0; i < f->n_terms; i++) {
        if (f->terms[i].n > 1) {
            f->terms[kept++] = f->terms[i];
        }
    }
    f->n_terms = kept;
    drop_repeats(f, products, products);
    DROP(b->ctx, &seen);
    return FRG_OK;
}

static frg_status build_terms(builder *b, int32_t root)
{
    const frgi_syntax *const s = &b->f->syntax;
    const int32_t begin = s->nodes[root].begin;
    int32_t *order, n = 0;
    TRY(NEW(b->ctx, &order, 2 * ((int64_t)root - begin + 1), "terms"));
    for (int32_t i = root; i >= begin; n++) { /* what lies inside an atom is skipped */
        order[n] = i;
        i = is_algebra(s->nodes[i].kind) ? i - 1 : s->nodes[i].begin - 1;
    }
    int32_t *const starts = order + n, n_terms = 0;
    frg_status status = FRG_OK;
    for (int32_t i = n - 1; i >= 0 && status >= 0; i--) {
        status = apply(b, order[i], starts, &n_terms);
    }
    DROP(b->ctx, &order);
    TRY(status);
    TRY(order_by_degree(b));
    return drop_duplicates(b);
}

/** The terms of another section behind those that are there; an intercept is the first section's
 *  alone. */
static frg_status append_terms(builder *b, int32_t root)
{
    frgi_formula *const f = b->f;
    frgi_term *before = f->terms;
    const int32_t n = f->n_terms;
    const bool intercept = f->intercept;
    f->terms = NULL;
    f->n_terms = f->terms_capacity = 0;
    frg_status status = build_terms(b, root);
    f->intercept = intercept;
    if (status >= 0 && f->n_terms > 0) {
        status = GROW(b->ctx, &before, n + f->n_terms, "terms");
    }
    if (status >= 0 && f->n_terms > 0) {
        memcpy(before + n, f->terms, sizeof *f->terms * (size_t)f->n_terms);
    }
    DROP(b->ctx, &f->terms);
    f->terms = before;
    f->n_terms = status >= 0 ? f->n_terms + n : n;
    f->terms_capacity = f->n_terms;
    return status;
}

/** endogenous ~ instruments, the last section. */
static frg_status build_instruments(builder *b, int section)
{
    frgi_formula *const f = b->f;
    const frgi_syntax *const s = &f->syntax;
    if (section != s->n_sections - 1) {
        return refuse(s, b->ctx, s->section[section],
                      "endogenous ~ instruments is the last part of a formula");
    }
    TRY(append_terms(b, s->section[section]));
    f->n_endogenous = f->n_terms - f->n_exogenous;
    if (f->n_endogenous == 0) {
        return refuse(s, b->ctx, s->section[section], "there is no endogenous variable");
    }
    TRY(append_terms(b, s->instruments[section]));
    if (f->n_terms == f->n_exogenous + f->n_endogenous) {
        frgi_syntax_at(s, b->ctx, s->instruments[section]);
        FAIL(b->ctx, E_IDENT, "%d endogenous variable%s and no instrument", f->n_endogenous,
             f->n_endogenous == 1 ? "" : "s");
    }
    return FRG_OK;
}

/* ---- effects --------------------------------------------------------------------------------- */

frg_status frgi_formula_key(const frgi_syntax *s, frg_context *ctx, int32_t first, int32_t last,
                            frgi_key_spec *key)
{
    key->n = 0;
    for (int32_t i = first; i <= last; i++) {
        const frgi_node_kind kind = s->nodes[i].kind;
        if (kind == NODE_POWER || kind == NODE_PAREN) {
            continue;
        }
        if (kind == NODE_INTERACT) {
            return refuse(s, ctx, i, "write f1^f2 for a joint effect");
        }
        if (kind != NODE_NAME) {
            const char *const name = later(s, i);
            return name ? unsupported(s, ctx, i, name)
                        : refuse(s, ctx, i,
                                 frgi_formula_is_stepwise(s, i)
                                     ? several
                                     : "expected a column, f1^f2, f[x] or f[[x]]");
        }
        if (key->n == FRGI_KEY_COLUMNS) {
            return refuse(s, ctx, i, "at most 8 columns make a joint effect");
        }
        key->node[key->n++] = i;
    }
    return FRG_OK;
}

frg_status frgi_formula_key_text(const frgi_syntax *s, frg_context *ctx, const frgi_key_spec *key,
                                 frgi_text *out)
{
    for (int32_t i = 0; i < key->n; i++) {
        const frgi_node *const x = &s->nodes[key->node[i]];
        TRY(frgi_text_printf(ctx, out, "%s%.*s", i ? "^" : "", x->name_length, s->text + x->name));
    }
    return FRG_OK;
}

static frg_status intern_key(builder *b, frgi_key_spec *key)
{
    frgi_text text = {0};
    frg_status status;
    TRY_TO(done, frgi_formula_key_text(&b->f->syntax, b->ctx, key, &text));
    status = frgi_names_intern(&b->f->names, b->ctx, text.text, text.length, &key->name);
done:
    frgi_text_free(b->ctx, &text);
    return status;
}

static frg_status add_slope(builder *b, int effect, int32_t node)
{
    frgi_formula *const f = b->f;
    TRY(frgi_formula_check_expression(&f->syntax, b->ctx, node));
    if (f->n_slopes == f->slopes_capacity) {
        const int capacity = f->slopes_capacity ? 2 * f->slopes_capacity : 8;
        TRY(GROW(b->ctx, &f->slopes, capacity, "slopes"));
        f->slopes_capacity = capacity;
    }
    frgi_slope_spec slope = {.effect = effect, .node = node};
    TRY(intern(b, node, NULL, &slope.name));
    int at = f->n_slopes;
    for (int i = 0; i < f->n_slopes; i++) {
        if (f->slopes[i].effect == effect && f->slopes[i].name == slope.name) {
            return FRG_OK;
        }
    }
    for (; at > 0 && f->slopes[at - 1].effect > effect; at--) {
        f->slopes[at] = f->slopes[at - 1];
    }
    f->slopes[at] = slope;
    f->n_slopes++;
    return FRG_OK;
}

/** f, f1^f2, f[x], f[[x]] and f1^f2[x], where the brackets belong to the whole key although they
 *  bind to f2. */
static frg_status add_effect(builder *b, int32_t node)
{
    frgi_formula *const f = b->f;
    const frgi_syntax *const s = &f->syntax;
    int32_t last = node;
    while (s->nodes[last].kind == NODE_POWER) {
        last--;
    }
    const frgi_node *const x = &s->nodes[last];
    if (x->kind == NODE_NUMBER && (x->value == 0 || x->value == 1)) {
        return FRG_OK; /* "| 0": no effects */
    }
    const bool sloped = x->kind == NODE_SLOPES || x->kind == NODE_ALONE;
    const int32_t end = sloped ? frgi_syntax_child(s, last, 0) : node;
    frgi_effect effect = {.intercept = x->kind != NODE_ALONE};
    TRY(frgi_formula_key(s, b->ctx, s->nodes[node].begin, end, &effect.key));
    if (sloped && x->children == 1) {
        return refuse(s, b->ctx, last, "a column with slopes is missing in the brackets");
    }
    TRY(intern_key(b, &effect.key));
    int q = 0;
    while (q < f->n_effects && f->effects[q].key.name != effect.key.name) {
        q++;
    }
    if (q == FRGI_EFFECTS) {
        return refuse(s, b->ctx, node, "at most 64 effects are absorbed");
    }
    if (q == f->n_effects) {
        f->effects[f->n_effects++] = effect;
    }
    f->effects[q].intercept |= effect.intercept;
    for (int32_t i = 1; i < x->children && sloped; i++) {
        TRY(add_slope(b, q, frgi_syntax_child(s, last, i)));
    }
    return FRG_OK;
}

static frg_status build_effects(builder *b, int32_t root)
{
    const frgi_syntax *const s = &b->f->syntax;
    const int32_t begin = s->nodes[root].begin;
    int32_t *order, n = 0;
    TRY(NEW(b->ctx, &order, (int64_t)root - begin + 1, "effects"));
    for (int32_t i = root; i >= begin;) {
        const frgi_node_kind kind = s->nodes[i].kind;
        const bool joins = kind == NODE_ADD || kind == NODE_PAREN;
        if (!joins) {
            order[n++] = i;
        }
        i = joins ? i - 1 : s->nodes[i].begin - 1;
    }
    frg_status status = FRG_OK;
    for (int32_t i = n - 1; i >= 0 && status >= 0; i--) {
        status = add_effect(b, order[i]);
    }
    DROP(b->ctx, &order);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static frg_status build_depvar(builder *b)
{
    const frgi_syntax *const s = &b->f->syntax;
    const int32_t left = s->left;
    if (frgi_syntax_is_set(s, left)) {
        return refuse(s, b->ctx, left, several);
    }
    TRY(frgi_formula_check_expression(s, b->ctx, left));
    return intern(b, left, NULL, &b->f->depvar);
}

static frg_status build(builder *b)
{
    frgi_formula *const f = b->f;
    const frgi_syntax *const s = &f->syntax;
    TRY(build_depvar(b));
    TRY(build_terms(b, s->section[0]));
    if (s->instruments[0] >= 0) {
        return refuse(s, b->ctx, s->instruments[0],
                      "endogenous ~ instruments stands right of a bar");
    }
    f->n_exogenous = f->n_terms;
    for (int section = 1; section < s->n_sections; section++) {
        if (s->instruments[section] >= 0) {
            TRY(build_instruments(b, section));
        } else if (section == 1) {
            TRY(build_effects(b, s->section[1]));
        } else {
            return refuse(s, b->ctx, s->section[section],
                          "the third part is endogenous ~ instruments");
        }
    }
    return FRG_OK;
}

frg_status frgi_formula_create(frgi_formula *f, frg_context *ctx, const char *text, int64_t length)
{
    *f = (frgi_formula){.intercept = true};
    builder b = {.ctx = ctx, .f = f};
    frg_status status;
    TRY_TO(failed, frgi_strdup(ctx, &f->text, text, (size_t)length));
    TRY_TO(failed, frgi_formula_write_lags(&f->written, ctx, f->text, length));
    const char *const written = f->written ? f->written : f->text;
    TRY_TO(failed, frgi_syntax_formula(&f->syntax, ctx, written, (int64_t)strlen(written)));
    TRY_TO(failed, build(&b));
    return FRG_OK;
failed:
    frgi_formula_destroy(f, ctx);
    return status;
}

void frgi_formula_destroy(frgi_formula *f, frg_context *ctx)
{
    frgi_syntax_free(&f->syntax, ctx);
    frgi_names_free(&f->names, ctx);
    DROP(ctx, &f->nodes);
    DROP(ctx, &f->terms);
    DROP(ctx, &f->slopes);
    DROP(ctx, &f->text);
    DROP(ctx, &f->written);
}
