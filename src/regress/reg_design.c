/* reg_design.c - the columns of the model matrix.
 *
 * Numbers stay single columns.  A text column, and any column as factor(x), as.factor(x) or C(x),
 * expands into indicators of its levels, in sorted order or that of the labels where they have one,
 * by R's rule: in a term, a factor loses its first level (contrasts) when the term without it is in
 * the model too.  A logical column or expression is a factor with the levels FALSE and TRUE.  The
 * empty term is the intercept that the formula has or switches off, and as in fixest the fixed
 * effects stand in for it only beside an i(): `0 + f | firm` begins with all levels of f, and the
 * last is the one that turns out collinear; `0 + f + i(g) | firm` begins without the first.  i(f)
 * and i(f, g), one column for each observed pair, lose their first where there is an intercept, are
 * fixed effects or stands any i() before them, unless ref= says which: of `0 + i(f) + i(g)` g's
 * first is the reference, as in fixest that of `0 + i(f, x) + i(g)` too, whose columns add up to no
 * constant; i(f, x) keeps all.
 *
 * Names follow fixest: "x", "log(x)", "stateCA", "factor(year)1981", "unionTRUE", "year::1981",
 * "year::1981:x", "a::1:b::2", "x1:x2".
 */
#include "regress/reg_design.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formula/keys.h"
#include "formula/mistyped.h"
#include "regress/reg_gram.h"
#include "regress/reg_sunab.h"

/* ---- variables ------------------------------------------------------------------------------- */

/** i(f), i(f, x), i(f, g), i(f, i.g): the prefix makes g a category whatever its type. */
static frg_status make_categories(frgi_variable *v, frg_context *ctx, const frgi_syntax *s,
                                  const frg_table *table)
{
    v->kind = VARIABLE_CATEGORIES;
    for (int32_t i = 0; i < s->nodes[v->node].children; i++) {
        const int32_t child = frgi_syntax_child(s, v->node, i);
        const frgi_node *const x = &s->nodes[child];
        if (x->kind == NODE_NAMED) {
            continue;
        }
        const bool first = v->n_factors == 0;
        const bool marked = !first && x->name_length > 2 && memcmp(s->text + x->name, "i.", 2) == 0;
        const frg_column *c;
        TRY(frgi_column_find(&c, ctx, s, child, marked ? 2 : 0, table));
        if (!first && !marked && c->kind == FRG_CATEGORY) {
            TRY(frgi_refuse_mistyped(ctx, s, child, c));
        }
        if (first || marked || c->kind == FRG_CATEGORY) {
            v->factor[v->n_factors++] = c;
        } else {
            v->has_number = true;
            v->number = (frgi_program){.column = c};
        }
    }
    return FRG_OK;
}

/** sunab(cohort, period): both are numbers. */
static frg_status make_cohorts(frgi_variable *v, frg_context *ctx, const frgi_syntax *s,
                               const frg_table *table)
{
    v->kind = VARIABLE_COHORTS;
    v->n_factors = 2;
    for (int which = 0; which < 2; which++) {
        const int32_t child = frgi_syntax_child(s, v->node, 1 - which);
        TRY(frgi_column_find(&v->factor[which], ctx, s, child, 0, table));
        const frg_column_kind kind = v->factor[which]->kind;
        if (kind != FRG_NUMBER && kind != FRG_INTEGER) {
            frgi_syntax_at(s, ctx, child);
            FAIL(ctx, E_COHORT, "sunab(): the %s '%s' holds %s", which ? "cohort" : "period",
                 v->factor[which]->name, kind == FRG_BOOL ? "TRUE and FALSE" : "text");
        }
    }
    return FRG_OK;
}

static frg_status make_variable(frgi_variable *v, frg_context *ctx, const frgi_syntax *s,
                                const frg_table *table)
{
    const frgi_node *const x = &s->nodes[v->node];
    if (x->kind == NODE_CALL && frgi_syntax_is(s, v->node, "i")) {
        return make_categories(v, ctx, s, table);
    }
    if (frgi_formula_is_sunab(s, v->node)) {
        return make_cohorts(v, ctx, s, table);
    }
    if (frgi_formula_is_factor(s, v->node)) {
        v->kind = VARIABLE_FACTOR;
        v->n_factors = 1;
        return frgi_column_find(&v->factor[0], ctx, s, frgi_syntax_child(s, v->node, 0), 0, table);
    }
    TRY(frgi_program_create(&v->number, ctx, s, v->node, table));
    const bool text = v->number.column && v->number.column->kind == FRG_CATEGORY;
    if (text) {
        TRY(frgi_refuse_mistyped(ctx, s, v->node, v->number.column));
    }
    v->kind = text ? VARIABLE_FACTOR : VARIABLE_NUMBER;
    v->has_number = !text;
    v->n_factors = text;
    v->factor[0] = text ? v->number.column : NULL;
    return FRG_OK;
}

frg_status frgi_variables_create(frgi_variable **out, frg_context *ctx, const frgi_formula *f,
                                 const frg_table *table)
{
    frgi_variable *v;
    TRY(NEW0(ctx, &v, f->names.count, "variables"));
    frg_status status = FRG_OK;
    for (int32_t t = 0; t < f->n_terms && status >= 0; t++) {
        for (int32_t k = 0; k < f->terms[t].n && status >= 0; k++) {
            const int32_t id = f->terms[t].atom[k];
            if (v[id].kind == VARIABLE_NONE) {
                v[id].node = f->nodes[id];
                status = make_variable(&v[id], ctx, &f->syntax, table);
            }
        }
    }
    if (status < 0) {
        frgi_variables_destroy(&v, ctx, f);
        return status;
    }
    *out = v;
    return FRG_OK;
}

void frgi_variables_destroy(frgi_variable **v, frg_context *ctx, const frgi_formula *f)
{
    for (int32_t id = 0; *v && id < f->names.count; id++) {
        frgi_program_destroy(&(*v)[id].number, ctx);
    }
    DROP(ctx, v);
}

/* ---- growing the design ---------------------------------------------------------------------- */

typedef struct {
    frg_context *ctx;
    const frgi_formula *f;
    const frgi_variable *variables;
    frgi_design *d;
    frgi_factor_codes *codes;
    bool constant; /* there is an intercept, or there are fixed effects */
    bool after_i;  /* an i() stands before */
    const int64_t *rows;
    const double *weights;
    int64_t n;
    const frgi_key_list *numbered;
} designer;

/** `more` columns, of which `of` is an atom: refused before they are named, and before the machine
 *  starts to swap. */
static frg_status expect(const designer *b, double more, int32_t of)
{
    const double p = b->d->n + more + 2, memory = (double)frgi_memory_limit(b->ctx);
    const int64_t columns = p < INT32_MAX ? (int64_t)p : INT32_MAX;
    const double squares =
        frgi_gram_bytes(columns, 0); /* X'X and the like are no rows of the disk */
    const bool fits = squares <= memory;
    const double bytes = fits ? frgi_gram_bytes(columns, b->n) : squares;
    const double allowed = fits ? (double)frgi_data_allowed(b->ctx) : memory;
    if (bytes > allowed || p >= INT32_MAX) {
        frgi_syntax_at(&b->f->syntax, b->ctx, b->variables[of].node);
        FAIL(b->ctx, E_TOO_BIG,
             "with '%s' the model has %.0f columns of %lld rows, and its fit takes %.3g bytes of "
             "%.3g; categories with many levels go right of the bar",
             frgi_names_text(&b->f->names, of), b->d->n + more, (long long)b->n, bytes, allowed);
    }
    return FRG_OK;
}

static frg_status add_multiplicand(designer *b, frgi_multiplicand multiplicand)
{
    frgi_design *const d = b->d;
    if (d->n_multiplicands == d->multiplicand_capacity) {
        const int32_t capacity = d->multiplicand_capacity ? 2 * d->multiplicand_capacity : 16;
        TRY(GROW(b->ctx, &d->multiplicands, capacity, "the model matrix"));
        d->multiplicand_capacity = capacity;
    }
    d->multiplicands[d->n_multiplicands++] = multiplicand;
    return FRG_OK;
}

/** Closes a column made of the multiplicands from `first` on. */
static frg_status add_column(designer *b, int32_t first, const frgi_text *name)
{
    frgi_design *const d = b->d;
    if (d->n == d->capacity) {
        const int32_t capacity = d->capacity ? 2 * d->capacity : 16;
        TRY(GROW(b->ctx, &d->columns, capacity, "the model matrix"));
        d->capacity = capacity;
    }
    frgi_design_column c = {.first_multiplicand = first,
                            .n_multiplicands = d->n_multiplicands - first,
                            .mean = FRGI_NO_MEAN};
    TRY(frgi_names_intern(&d->names, b->ctx, name->text, name->length, &c.name));
    d->columns[d->n++] = c;
    return FRG_OK;
}

static frg_status make_levels(designer *b, int32_t id, int which)
{
    int32_t **const codes = &b->codes[id].codes[which];
    const frgi_key key = frgi_variable_key(&b->variables[id], which);
    int64_t n_levels;
    TRY(NEW(b->ctx, codes, b->n, "codes of a category"));
    TRY(frgi_key_list_codes(b->numbered, b->ctx, &key, b->rows, b->n, *codes, &n_levels));
    if (b->variables[id].kind == VARIABLE_FACTOR) { /* keep= may leave few of i()'s */
        TRY(expect(b, (double)n_levels - 1, id));
    }
    return frgi_levels_create(&b->d->levels[id][which], b->ctx, key.columns[0], b->rows, b->n,
                              *codes, n_levels);
}

/* ---- i() ------------------------------------------------------------------------------------- */

static frg_status no_level(const designer *b, const frgi_levels *l, const frg_column *c,
                           int32_t node)
{
    const frgi_syntax *const s = &b->f->syntax;
    const frgi_node *const x = &s->nodes[node];
    frgi_syntax_at(s, b->ctx, node);
    FAIL(b->ctx, E_FORMULA,
         "formula, column %d: %.*s is no level of '%s'; the first is '%s', the last '%s'",
         frgi_syntax_column(s, x->at), x->length, s->text + x->at, c->name,
         frgi_names_text(&l->text, l->sorted[0]), frgi_names_text(&l->text, l->sorted[l->n - 1]));
}

/** The code of a constant: that of its digits, which may be more than a double has, else that of
 *  its value. */
static int32_t find_number(const frgi_levels *l, const frgi_syntax *s, const frgi_node *x,
                           bool negative)
{
    char digits[24]; /* of an int64 with its sign */
    const int length =
        snprintf(digits, sizeof digits, "%s%.*s", negative ? "-" : "", x->length, s->text + x->at);
    const int32_t code =
        length < (int)sizeof digits ? frgi_names_find(&l->text, digits, (size_t)length) : -1;
    return code >= 0 ? code : frgi_levels_find(l, negative ? -x->value : x->value);
}

/** Sets mask[code] for the levels that a constant or c(...) names; TRUE is the first level. */
static frg_status flag_levels(const designer *b, const frgi_levels *l, const frg_column *c,
                              int32_t value, unsigned char *mask)
{
    const frgi_syntax *const s = &b->f->syntax;
    for (int32_t i = s->nodes[value].begin; i <= value; i++) {
        const frgi_node *const x = &s->nodes[i];
        int32_t code = -1;
        if (x->kind == NODE_CALL || x->kind == NODE_NEGATIVE) {
            continue;
        }
        if (x->kind == NODE_NAME && c->kind != FRG_BOOL) {
            if (frgi_syntax_is(s, i, "FALSE")) {
                continue;
            }
            code = l->sorted[0];
        } else if (x->kind != NODE_NUMBER || c->kind == FRG_CATEGORY) {
            code = frgi_names_find(&l->text, s->text + x->name, (size_t)x->name_length);
            if (x->kind == NODE_NUMBER) {
                code = frgi_names_find(&l->text, s->text + x->at, (size_t)x->length);
            }
        } else {
            const bool negative = i < value && s->nodes[i + 1].kind == NODE_NEGATIVE;
            code = find_number(l, s, x, negative);
        }
        if (code < 0) {
            return no_level(b, l, c, i);
        }
        mask[code] = 1;
    }
    return FRG_OK;
}

/** Which levels of one factor of i() get columns: keep= chooses, ref= takes out. */
static frg_status choose_levels(const designer *b, int32_t id, int which, unsigned char *chosen,
                                bool *named)
{
    static const char *const keep[] = {"keep", "keep2"}, *const ref[] = {"ref", "ref2"};
    const frgi_syntax *const s = &b->f->syntax;
    const frgi_variable *const v = &b->variables[id];
    const frgi_levels *const l = &b->d->levels[id][which];
    unsigned char *mask;
    TRY(NEW(b->ctx, &mask, l->n, "levels"));
    memset(chosen, 1, (size_t)l->n);
    frg_status status = FRG_OK;
    for (int32_t k = 0; k < s->nodes[v->node].children && status >= 0; k++) {
        const int32_t child = frgi_syntax_child(s, v->node, k);
        const bool keeps = frgi_syntax_is(s, child, keep[which]),
                   refs = frgi_syntax_is(s, child, ref[which]);
        if (s->nodes[child].kind != NODE_NAMED || !(keeps || refs)) {
            continue;
        }
        *named = true;
        memset(mask, 0, (size_t)l->n);
        status = flag_levels(b, l, v->factor[which], child - 1, mask);
        for (int32_t code = 0; code < l->n; code++) {
            chosen[code] &= keeps ? mask[code] : !mask[code];
        }
    }
    DROP(b->ctx, &mask);
    return status;
}

static frg_status append_level(const designer *b, frgi_text *name, int32_t id, int which,
                               int32_t code)
{
    return frgi_text_printf(b->ctx, name, "%s%s::%s", which ? ":" : "",
                            b->variables[id].factor[which]->name,
                            frgi_names_text(&b->d->levels[id][which].text, code));
}

/** One column of i(f), i(f, x). */
static frg_status add_level(designer *b, int32_t id, int32_t code, frgi_text *name)
{
    const frgi_variable *const v = &b->variables[id];
    const int32_t first = b->d->n_multiplicands;
    name->length = 0;
    TRY(append_level(b, name, id, 0, code));
    TRY(add_multiplicand(b, (frgi_multiplicand){.variable = id, .level = code}));
    if (v->has_number) {
        TRY(frgi_text_printf(b->ctx, name, ":%s", v->number.column->name));
        TRY(add_multiplicand(
            b, (frgi_multiplicand){.variable = id, .level = FRGI_MULTIPLICAND_NUMBER}));
    }
    return add_column(b, first, name);
}

/** Whether the table of seen pairs of i(f, g) can be had. */
static frg_status expect_pairs(const designer *b, int32_t id)
{
    const frgi_levels *const l = b->d->levels[id];
    const double bytes = (double)l[0].n * (double)l[1].n;
    if (bytes > (double)frgi_memory_limit(b->ctx)) {
        frgi_syntax_at(&b->f->syntax, b->ctx, b->variables[id].node);
        FAIL(b->ctx, E_TOO_BIG,
             "'%s' has %.3g pairs of levels, a table of which takes as many bytes",
             frgi_names_text(&b->f->names, id), bytes);
    }
    return FRG_OK;
}

/** Columns of i(f, g): the observed pairs of chosen levels, g inside f. */
static frg_status add_pairs(designer *b, int32_t id, unsigned char *const chosen[2],
                            bool skip_first, frgi_text *name)
{
    const frgi_levels *const l = b->d->levels[id];
    const int32_t *const f = b->codes[id].codes[0], *const g = b->codes[id].codes[1];
    unsigned char *seen;
    TRY(expect_pairs(b, id));
    TRY(NEW0(b->ctx, &seen, (int64_t)l[0].n * l[1].n, "pairs of levels"));
    for (int64_t i = 0; i < b->n; i++) {
        seen[(int64_t)f[i] * l[1].n + g[i]] = chosen[0][f[i]] & chosen[1][g[i]];
    }
    int64_t count = 0;
    frg_status status;
    for (int64_t k = 0; k < (int64_t)l[0].n * l[1].n; k++) {
        count += seen[k];
    }
    TRY_TO(done, expect(b, (double)count, id));
    for (int64_t k = 0; k < (int64_t)l[0].n * l[1].n && status >= 0; k++) {
        const int32_t a = l[0].sorted[k / l[1].n], c = l[1].sorted[k % l[1].n];
        if (!seen[(int64_t)a * l[1].n + c]) {
            continue;
        }
        if (skip_first) {
            skip_first = false;
            continue;
        }
        const int32_t first = b->d->n_multiplicands;
        name->length = 0;
        TRY_TO(done, append_level(b, name, id, 0, a));
        TRY_TO(done, append_level(b, name, id, 1, c));
        TRY_TO(done,
               add_multiplicand(b, (frgi_multiplicand){.variable = id, .which = 0, .level = a}));
        TRY_TO(done,
               add_multiplicand(b, (frgi_multiplicand){.variable = id, .which = 1, .level = c}));
        status = add_column(b, first, name);
    }
done:
    DROP(b->ctx, &seen);
    return status;
}

static frg_status add_categories(designer *b, int32_t id, frgi_text *name)
{
    const frgi_variable *const v = &b->variables[id];
    const frgi_levels *const l = b->d->levels[id];
    unsigned char *chosen[2] = {NULL, NULL};
    bool named = false;
    frg_status status;
    for (int k = 0; k < v->n_factors; k++) {
        TRY_TO(done, NEW(b->ctx, &chosen[k], l[k].n, "levels"));
        TRY_TO(done, choose_levels(b, id, k, chosen[k], &named));
    }
    const bool skip_first = (b->constant || b->after_i) && !named && !v->has_number;
    b->after_i = true;
    if (v->n_factors == 2) {
        status = add_pairs(b, id, chosen, skip_first, name);
        goto done;
    }
    double count = 0;
    for (int32_t k = 0; k < l[0].n; k++) {
        count += chosen[0][k];
    }
    TRY_TO(done, expect(b, count, id));
    for (int32_t k = skip_first; k < l[0].n; k++) {
        if (chosen[0][l[0].sorted[k]]) {
            TRY_TO(done, add_level(b, id, l[0].sorted[k], name));
        }
    }
done:
    DROP(b->ctx, &chosen[0]);
    DROP(b->ctx, &chosen[1]);
    return status;
}

/* ---- sunab() --------------------------------------------------------------------------------- */

/** The mean of a relative period, which is `made` where it is new; att: one of those from 0 on. */
static frg_status find_mean(designer *b, int32_t id, double time, bool att, frgi_text *name,
                            int32_t *mean)
{
    frgi_design *const d = b->d;
    const int32_t before = d->means.count;
    *mean = FRGI_HIDDEN;
    if (att && time < 0) {
        return FRG_OK;
    }
    name->length = 0;
    TRY(att ? frgi_text_printf(b->ctx, name, "ATT")
            : frgi_text_printf(b->ctx, name, "%s::%.15g", b->variables[id].factor[0]->name, time));
    TRY(frgi_names_intern(&d->means, b->ctx, name->text, name->length, mean));
    if (*mean == before) {
        TRY(GROW(b->ctx, &d->mean_time, before + 1, "relative periods"));
        d->mean_time[*mean] = att ? (double)NAN : time;
    }
    return FRG_OK;
}

/** The column of a cohort in a period, or, by its number among the cells, in several. */
static frg_status add_cell(designer *b, int32_t id, const frgi_cohort_cell *cell, int32_t number,
                           frgi_text *name)
{
    const frgi_variable *const v = &b->variables[id];
    const frgi_levels *const l = b->d->levels[id];
    const int32_t first = b->d->n_multiplicands;
    name->length = 0;
    if (b->d->cell_of) {
        TRY(frgi_text_printf(b->ctx, name, "%s::%.15g:cohort::%.15g", v->factor[0]->name,
                             cell->time, cell->cohort_value));
        TRY(add_multiplicand(
            b, (frgi_multiplicand){.variable = id, .which = FRGI_WHICH_CELL, .level = number}));
        return add_column(b, first, name);
    }
    TRY(frgi_text_printf(b->ctx, name, "%s::%.15g:cohort::%s", v->factor[0]->name, cell->time,
                         frgi_names_text(&l[1].text, cell->cohort)));
    TRY(add_multiplicand(b,
                         (frgi_multiplicand){.variable = id, .which = 0, .level = cell->period}));
    TRY(add_multiplicand(b,
                         (frgi_multiplicand){.variable = id, .which = 1, .level = cell->cohort}));
    return add_column(b, first, name);
}

/** Columns of sunab(), by relative period, then cohort. */
static frg_status add_cohorts(designer *b, int32_t id, frgi_text *name)
{
    const frgi_syntax *const s = &b->f->syntax;
    const int32_t node = b->variables[id].node;
    frgi_cohort_cell *cells = NULL;
    int32_t n = 0, *cell_of = NULL;
    frg_status status;
    if (b->d->mean_time || b->d->cell_of) {
        frgi_syntax_at(s, b->ctx, node);
        FAIL(b->ctx, E_FORMULA, "formula, column %d: a formula has one %s",
             frgi_syntax_column(s, s->nodes[node].at), "sunab()");
    }
    const bool att = frgi_sunab_is(s, node, "att") || frgi_syntax_is(s, node, "sunab_att");
    const bool apart = frgi_sunab_is(s, node, "no_agg");
    TRY(expect_pairs(b, id));
    TRY_TO(done, frgi_cohort_cells(&cells, &n, &cell_of, b->ctx, s, node, b->d->levels[id],
                                   b->codes[id].codes, b->weights, b->n));
    TRY_TO(done, expect(b, n, id));
    if (frgi_sunab_bins(s, node)) {
        b->d->cell_of = cell_of;
        cell_of = NULL;
    }
    for (int32_t i = 0; i < n && status >= 0; i++) {
        int32_t mean = FRGI_NO_MEAN;
        if (!apart) {
            TRY_TO(done, find_mean(b, id, cells[i].time, att, name, &mean));
        }
        if (!cells[i].reference) {
            TRY_TO(done, add_cell(b, id, &cells[i], i, name));
            b->d->columns[b->d->n - 1].mean = mean;
            b->d->columns[b->d->n - 1].weight = cells[i].weight;
        }
    }
done:
    DROP(b->ctx, &cells);
    DROP(b->ctx, &cell_of);
    return status;
}

/* ---- products of numbers and factors --------------------------------------------------------- */

/** How many levels the variable has in products: 0 for a number. */
static int32_t levels_of(const designer *b, int32_t id)
{
    const frgi_variable *const v = &b->variables[id];
    const bool logical =
        v->number.logical || (v->number.column && v->number.column->kind == FRG_BOOL);
    return v->kind == VARIABLE_FACTOR ? b->d->levels[id][0].n : logical ? 2 : 0;
}

/** Is the empty term in the model, or did a factor before `term` keep all its levels? */
static bool constant_is_there(const designer *b, int32_t term)
{
    bool spanned = b->f->intercept;
    for (int32_t s = 0; s < b->f->n_terms; s++) {
        const int32_t id = b->f->terms[s].atom[0];
        if (b->variables[id].kind == VARIABLE_CATEGORIES) {
            spanned |= b->constant;
        } else {
            spanned |= s < term && b->f->terms[s].n == 1 && levels_of(b, id) > 0;
        }
    }
    return spanned;
}

/** Is `term` without its atom k in the model? */
static bool margin_is_there(const designer *b, int32_t term, int32_t k)
{
    const frgi_term *const t = &b->f->terms[term];
    if (t->n == 1) {
        return constant_is_there(b, term);
    }
    for (int32_t s = 0; s < b->f->n_terms; s++) {
        const frgi_term *const u = &b->f->terms[s];
        int32_t shared = 0;
        for (int32_t i = 0; i < t->n; i++) {
            for (int32_t j = 0; j < u->n && i != k; j++) {
                shared += t->atom[i] == u->atom[j];
            }
        }
        if (u->n == t->n - 1 && shared == u->n) {
            return true;
        }
    }
    return false;
}

/** One column of a product: factor k of the term at the index[k]-th of its levels. */
static frg_status add_product(designer *b, const frgi_term *t, const int32_t *index,
                              frgi_text *name)
{
    const int32_t first = b->d->n_multiplicands;
    name->length = 0;
    for (int32_t k = 0; k < t->n; k++) {
        const int32_t id = t->atom[k];
        const frgi_variable *const v = &b->variables[id];
        const char *const text = frgi_names_text(&b->f->names, id), *const join = k ? ":" : "";
        frgi_multiplicand multiplicand = {.variable = id};
        if (v->kind == VARIABLE_FACTOR) {
            const frgi_levels *const l = &b->d->levels[id][0];
            multiplicand.level = l->sorted[index[k]];
            TRY(frgi_text_printf(b->ctx, name, "%s%s%s", join, text,
                                 frgi_names_text(&l->text, multiplicand.level)));
        } else {
            static const char *const logical[] = {"FALSE", "TRUE"};
            const bool number = levels_of(b, id) == 0;
            multiplicand.level =
                number || index[k] == 1 ? FRGI_MULTIPLICAND_NUMBER : FRGI_MULTIPLICAND_FALSE;
            TRY(frgi_text_printf(b->ctx, name, "%s%s%s", join, text,
                                 number ? "" : logical[index[k]]));
        }
        TRY(add_multiplicand(b, multiplicand));
    }
    return add_column(b, first, name);
}

/** All columns of a term, the first factor's level running fastest. */
static frg_status add_term(designer *b, int32_t term, frgi_text *name)
{
    const frgi_term *const t = &b->f->terms[term];
    int32_t from[FRGI_TERM_ATOMS] = {0}, to[FRGI_TERM_ATOMS], index[FRGI_TERM_ATOMS], largest = 0;
    double count = 1;
    for (int32_t k = 0; k < t->n; k++) {
        const frgi_variable *const v = &b->variables[t->atom[k]];
        const bool cohorts = v->kind == VARIABLE_COHORTS;
        if (v->kind == VARIABLE_CATEGORIES || cohorts) {
            if (t->n == 1) {
                return cohorts ? add_cohorts(b, t->atom[0], name)
                               : add_categories(b, t->atom[0], name);
            }
            frgi_syntax_at(&b->f->syntax, b->ctx, v->node);
            if (cohorts) {
                FAIL(b->ctx, E_FORMULA, "%s takes no part in interactions", "sunab()");
            }
            FAIL(b->ctx, E_FORMULA, "i() takes no part in interactions; write i(f, x) for %s",
                 "the interaction of a category with a number");
        }
        const int32_t levels = levels_of(b, t->atom[k]);
        from[k] = levels > 0 && margin_is_there(b, term, k);
        to[k] = levels > 0 ? levels : 1;
        index[k] = from[k];
        if (from[k] == to[k]) {
            return FRG_OK;
        }
        count *= to[k] - from[k];
        largest = to[k] > to[largest] ? k : largest;
    }
    TRY(expect(b, count, t->atom[largest]));
    for (int32_t k = 0; k < t->n;) {
        TRY(add_product(b, t, index, name));
        for (k = 0; k < t->n && ++index[k] == to[k]; k++) {
            index[k] = from[k];
        }
    }
    return FRG_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static frg_status build(designer *b)
{
    frgi_text name = {0};
    frg_status status = FRG_OK;
    for (int32_t id = 0; id < b->d->n_variables; id++) {
        for (int k = 0; k < b->variables[id].n_factors; k++) {
            TRY(make_levels(b, id, k));
        }
    }
    const int32_t n_exogenous = b->f->n_exogenous, n_kept = n_exogenous + b->f->n_endogenous;
    for (int32_t t = 0; t < b->f->n_terms && status >= 0; t++) {
        status = add_term(b, t, &name);
        b->d->n_exogenous = t < n_exogenous ? b->d->n : b->d->n_exogenous;
        b->d->n_endogenous = t < n_kept ? b->d->n - b->d->n_exogenous : b->d->n_endogenous;
    }
    frgi_text_free(b->ctx, &name);
    return status;
}

static frg_status new_codes(frgi_factor_codes **codes, frg_context *ctx, int32_t n_variables)
{
    return NEW0(ctx, codes, n_variables, "codes of the categories");
}

frg_status frgi_design_create(frgi_design *d, frgi_factor_codes **codes, frg_context *ctx,
                              const frgi_formula *f, const frgi_variable *variables, bool constant,
                              const int64_t *rows, const double *weights, int64_t n,
                              const frgi_key_list *numbered)
{
    *d = (frgi_design){.n_variables = f->names.count};
    *codes = NULL;
    frg_status status;
    TRY_TO(failed, NEW0(ctx, &d->levels, d->n_variables, "levels"));
    TRY_TO(failed, new_codes(codes, ctx, d->n_variables));
    designer b = {.ctx = ctx,
                  .f = f,
                  .variables = variables,
                  .d = d,
                  .codes = *codes,
                  .constant = constant,
                  .rows = rows,
                  .weights = weights,
                  .n = n,
                  .numbered = numbered};
    TRY_TO(failed, build(&b));
    return FRG_OK;
failed:
    frgi_factor_codes_free(codes, ctx, d->n_variables);
    frgi_design_destroy(d, ctx);
    return status;
}

void frgi_design_destroy(frgi_design *d, frg_context *ctx)
{
    for (int32_t id = 0; d->levels && id < d->n_variables; id++) {
        frgi_levels_destroy(&d->levels[id][0], ctx);
        frgi_levels_destroy(&d->levels[id][1], ctx);
    }
    DROP(ctx, &d->levels);
    DROP(ctx, &d->columns);
    DROP(ctx, &d->multiplicands);
    DROP(ctx, &d->cell_of);
    DROP(ctx, &d->mean_time);
    frgi_names_free(&d->names, ctx);
    frgi_names_free(&d->means, ctx);
}

void frgi_factor_codes_free(frgi_factor_codes **codes, frg_context *ctx, int32_t n_variables)
{
    for (int32_t id = 0; *codes && id < n_variables; id++) {
        DROP(ctx, &(*codes)[id].codes[0]);
        DROP(ctx, &(*codes)[id].codes[1]);
    }
    DROP(ctx, codes);
}

frg_status frgi_design_match(const frgi_design *d, frgi_factor_codes **codes, frg_context *ctx,
                             const frgi_variable *variables, int64_t n)
{
    frg_status status;
    TRY(new_codes(codes, ctx, d->n_variables));
    for (int32_t id = 0; id < d->n_variables; id++) {
        for (int k = 0; k < variables[id].n_factors; k++) {
            int32_t **const to = &(*codes)[id].codes[k];
            TRY_TO(failed, NEW(ctx, to, n, "codes of a category"));
            TRY_TO(failed, frgi_levels_match(&d->levels[id][k], ctx, variables[id].factor[k], *to));
        }
    }
    return FRG_OK;
failed:
    frgi_factor_codes_free(codes, ctx, d->n_variables);
    return status;
}

int32_t frgi_design_scratch(const frgi_design *d, const frgi_variable *variables)
{
    int32_t most = 0;
    for (int32_t id = 0; id < d->n_variables; id++) {
        most = variables[id].number.stack > most ? variables[id].number.stack : most;
    }
    return most + 1;
}

/** [the row's period and cohort are in the cell] */
static void cell_block(const frgi_design *d, const frgi_factor_codes *codes,
                       frgi_multiplicand multiplicand, int64_t begin, int64_t n, double *out)
{
    const int32_t *const period = codes[multiplicand.variable].codes[0] + begin,
                         *const cohort = codes[multiplicand.variable].codes[1] + begin;
    const int64_t n_periods = d->levels[multiplicand.variable][0].n;
    for (ptrdiff_t i = 0; i < n; i++) {
        const bool seen = period[i] >= 0 && cohort[i] >= 0;
        const int32_t cell = seen ? d->cell_of[cohort[i] * n_periods + period[i]] : -1;
        out[i] = seen ? (double)(cell == multiplicand.level) : (double)NAN;
    }
}

void frgi_design_block(const frgi_design *d, const frgi_variable *variables,
                       const frgi_factor_codes *codes, int32_t k, const int64_t *rows,
                       int64_t begin, int64_t n, double *out, double *scratch)
{
    const double missing = (double)NAN;
    const frgi_design_column *const c = &d->columns[k];
    for (int32_t j = 0; j < c->n_multiplicands; j++) {
        const frgi_multiplicand multiplicand = d->multiplicands[c->first_multiplicand + j];
        double *const to = j == 0 ? out : scratch;
        if (multiplicand.level < 0) {
            frgi_program_block(&variables[multiplicand.variable].number, rows, begin, n, to,
                               scratch + FRGI_BLOCK);
            for (ptrdiff_t i = 0; i < n && multiplicand.level == FRGI_MULTIPLICAND_FALSE; i++) {
                to[i] = 1 - to[i];
            }
        } else if (multiplicand.which == FRGI_WHICH_CELL) {
            cell_block(d, codes, multiplicand, begin, n, to);
        } else {
            const int32_t *const code =
                codes[multiplicand.variable].codes[multiplicand.which] + begin;
            for (ptrdiff_t i = 0; i < n; i++) {
                to[i] = code[i] < 0 ? missing : (double)(code[i] == multiplicand.level);
            }
        }
        for (ptrdiff_t i = 0; i < n && j > 0; i++) {
            out[i] *= scratch[i];
        }
    }
}
