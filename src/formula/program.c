/* program.c - expressions of columns: compiled to steps, evaluated in blocks of rows.
 *
 * The nodes are in postfix order already, so compiling is one walk that checks types and evaluating
 * is a stack machine whose cells are blocks of FRGI_BLOCK doubles (they stay in the first-level
 * cache). Missing is NaN and goes through arithmetic; the logical operators follow R: FALSE & NA is
 * FALSE. A text column is its code; a string compared with it becomes the code of the equal label,
 * or -2, which no row has.
 */
#include "formula/program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formula/formula.h"
#include "formula/mistyped.h"

static const double missing = (double)NAN;

/* ---- columns --------------------------------------------------------------------------------- */

static const char *name_of_column(const void *table, int64_t i)
{
    return frg_table_column(table, i)->name;
}

frg_status frgi_column_named(const frg_column **out, frg_context *ctx, const char *name,
                             const char *role, const frg_table *table)
{
    *out = frg_table_find(table, name);
    if (*out) {
        return FRG_OK;
    }
    char advice[FRGI_ADVICE];
    FAIL(ctx, E_COLUMN, "%s: column '%s' is not in the data%s", role, name,
         frgi_column_advice(advice, frg_table_nearest(table, name), frg_table_columns(table),
                            name_of_column, table));
}

frg_status frgi_column_find(const frg_column **out, frg_context *ctx, const frgi_syntax *s,
                            int32_t node, int32_t skip, const frg_table *table)
{
    const frgi_node *const x = &s->nodes[node];
    frgi_text name = {0}, role = {0};
    frg_status status;
    *out = NULL;
    TRY_TO(done,
           frgi_text_append(ctx, &name, s->text + x->name + skip, (size_t)(x->name_length - skip)));
    *out = frg_table_find(table, name.text);
    if (!*out) {
        TRY_TO(done, frgi_text_printf(ctx, &role, "%s, column %d", s->what,
                                      frgi_syntax_column(s, x->at)));
        frgi_syntax_at(s, ctx, node);
        status = frgi_column_named(out, ctx, name.text, role.text, table);
    }
done:
    frgi_text_free(ctx, &name);
    frgi_text_free(ctx, &role);
    return status;
}

void frgi_column_block(const frg_column *c, const int64_t *rows, int64_t begin, int64_t n,
                       double *out)
{
    const int64_t *const at = rows ? rows + begin : NULL;
    if (c->kind == FRG_NUMBER) {
        for (ptrdiff_t i = 0; i < n; i++) {
            out[i] = c->numbers[at ? at[i] : begin + i];
        }
    } else if (c->kind == FRG_INTEGER) {
        for (ptrdiff_t i = 0; i < n; i++) {
            const int64_t v = c->integers[at ? at[i] : begin + i];
            out[i] = v == FRG_MISSING_INTEGER ? missing : (double)v;
        }
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            const int32_t v = c->codes[at ? at[i] : begin + i];
            out[i] = v < 0 ? missing : (double)v;
        }
    }
}

/* ---- compiling ------------------------------------------------------------------------------- */

typedef enum { TYPE_NUMBER, TYPE_TEXT, TYPE_STRING, TYPE_SET } value_type;

typedef struct {
    value_type type;
    int32_t step; /* the last step of the value */
    int32_t node; /* where a string or a set stands */
} typed;

typedef struct {
    frg_context *ctx;
    const frgi_syntax *s;
    const frg_table *table;
    frgi_program *p;
    typed *stack;
    int32_t depth;
} compiler;

static const struct {
    const char *name;
    double (*function)(double); /* NULL: nothing to do */
    bool makes_missing;
} functions[] = {
    {"log", log, true},   {"exp", exp, false}, {"sqrt", sqrt, true},
    {"abs", fabs, false}, {"I", NULL, false},
};

bool frgi_program_has_function(const frgi_syntax *s, int32_t node)
{
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        if (frgi_syntax_is(s, node, functions[k].name)) {
            return true;
        }
    }
    return false;
}

static bool is_logical(frgi_node_kind kind)
{
    return kind == NODE_NOT || kind == NODE_IN || (kind >= NODE_OR && kind <= NODE_UNEQUAL);
}

/** The code of a label; -2 where there is none, which no row has. */
static double code_of(const frg_column *c, const char *label, int32_t length)
{
    for (int64_t i = 0; i < c->n_labels; i++) {
        if (strlen(c->labels[i]) == (size_t)length &&
            memcmp(c->labels[i], label, (size_t)length) == 0) {
            return (double)i;
        }
    }
    return -2;
}

static frg_status wrong_type(const compiler *c, int32_t node, const char *message)
{
    return frgi_syntax_refuse(c->s, c->ctx, E_TYPE, node, message);
}

/** The same of an operand that is a text column, or should be one: what value labels made text is
 *  numbers to who knows the file. */
static frg_status wrong_text(const compiler *c, int32_t node, const typed *operand,
                             const char *message)
{
    const frg_column *const column =
        operand->type == TYPE_TEXT ? c->p->steps[operand->step].column : NULL;
    char text[600];
    if (!column || !column->labelled || column->n_labels == 0) {
        return wrong_type(c, node, message);
    }
    snprintf(text, sizeof text,
             "the value labels of the Stata file make '%.100s' a category, of levels such as "
             "'%.100s': compare it with such a label; to have its numbers, take the labels off in "
             "Stata (label values %.100s)",
             column->name, column->labels[0], column->name);
    return wrong_type(c, node, text);
}

static void add_step(compiler *c, frgi_step step, value_type type, int32_t node)
{
    frgi_program *const p = c->p;
    p->steps[p->n_steps] = step;
    c->stack[c->depth++] = (typed){.type = type, .step = p->n_steps++, .node = node};
    p->stack = p->stack > c->depth ? p->stack : c->depth;
}

static frg_status compile_name(compiler *c, int32_t node)
{
    const frgi_syntax *const s = c->s;
    const bool is_true = frgi_syntax_is(s, node, "TRUE");
    if (is_true || frgi_syntax_is(s, node, "FALSE")) {
        add_step(c, (frgi_step){.kind = NODE_NUMBER, .value = is_true}, TYPE_NUMBER, node);
        return FRG_OK;
    }
    const frg_column *column;
    TRY(frgi_column_find(&column, c->ctx, s, node, 0, c->table));
    add_step(c, (frgi_step){.kind = NODE_NAME, .column = column},
             column->kind == FRG_CATEGORY ? TYPE_TEXT : TYPE_NUMBER, node);
    return FRG_OK;
}

/** text == "string" either way round: the string's step gets the label's code. */
static frg_status compile_equality(compiler *c, int32_t node)
{
    typed *const left = &c->stack[c->depth - 2], *const right = &c->stack[c->depth - 1];
    if (left->type == TYPE_NUMBER && right->type == TYPE_NUMBER) {
        return FRG_OK;
    }
    const bool text_left = left->type == TYPE_TEXT;
    const typed *const text = text_left ? left : right, *const string = text_left ? right : left;
    if (text->type != TYPE_TEXT || string->type != TYPE_STRING) {
        return wrong_text(c, node, text, "a text column is compared with a string");
    }
    const frgi_node *const x = &c->s->nodes[string->node];
    c->p->steps[string->step].value =
        code_of(c->p->steps[text->step].column, c->s->text + x->name, x->name_length);
    left->type = right->type = TYPE_NUMBER;
    return FRG_OK;
}

/** Collects c(1, -2, 3) or c("a", "b") into the pool. */
static frg_status compile_in(compiler *c, int32_t node)
{
    frgi_program *const p = c->p;
    const typed *const left = &c->stack[c->depth - 2], *const set = &c->stack[c->depth - 1];
    if (set->type != TYPE_SET || (left->type != TYPE_NUMBER && left->type != TYPE_TEXT)) {
        return wrong_type(c, node, "%in% wants a column on its left and c(...) on its right");
    }
    frgi_step step = {.kind = NODE_IN, .pool = p->n_pool};
    for (int32_t i = c->s->nodes[set->node].begin; i < set->node; i++) {
        const frgi_node *const x = &c->s->nodes[i];
        if (x->kind == NODE_NEGATIVE) {
            continue;
        }
        if ((x->kind == NODE_STRING) != (left->type == TYPE_TEXT)) {
            return wrong_text(c, node, left, "text is compared with strings, numbers with numbers");
        }
        const bool negative = c->s->nodes[i + 1].kind == NODE_NEGATIVE;
        p->pool[p->n_pool++] =
            x->kind == NODE_NUMBER
                ? (negative ? -x->value : x->value)
                : code_of(p->steps[left->step].column, c->s->text + x->name, x->name_length);
    }
    step.n_pool = p->n_pool - step.pool;
    c->depth -= 2;
    add_step(c, step, TYPE_NUMBER, node);
    return FRG_OK;
}

static frg_status compile_call(compiler *c, int32_t node)
{
    const frgi_syntax *const s = c->s;
    if (frgi_syntax_is(s, node, "c")) {
        const int32_t n =
            s->nodes[node].children; /* their steps are undone: the set lives in the pool */
        c->depth -= n;
        for (int32_t i = s->nodes[node].begin; i < node; i++) {
            c->p->n_steps -= s->nodes[i].kind != NODE_POSITIVE;
        }
        c->stack[c->depth++] = (typed){.type = TYPE_SET, .node = node, .step = c->p->n_steps - 1};
        return FRG_OK;
    }
    size_t k = 0;
    while (!frgi_syntax_is(s, node, functions[k].name)) {
        k++;
    }
    c->p->makes_missing |= functions[k].makes_missing;
    if (functions[k].function) {
        c->depth--;
        add_step(c, (frgi_step){.kind = NODE_CALL, .function = functions[k].function}, TYPE_NUMBER,
                 node);
    }
    return FRG_OK;
}

/** l(x, k) and its kin are columns that the table has under their text (reg_panel.c). */
static frg_status compile_lag(compiler *c, int32_t node)
{
    frgi_text text = {0};
    frg_status status = frgi_syntax_text(c->s, c->ctx, node, &text);
    const frg_column *const column = status < 0 ? NULL : frg_table_find(c->table, text.text);
    if (column) {
        add_step(c, (frgi_step){.kind = NODE_NAME, .column = column}, TYPE_NUMBER, node);
    } else if (status >= 0) {
        frgi_syntax_at(c->s, c->ctx, node);
        status = frgi_fail(c->ctx, E_FORMULA, __FILE__, __LINE__,
                           "%s, column %d: '%s': lags, leads and differences stand in formulas, "
                           "and go by the panel UNIT,TIME that is named beside them",
                           c->s->what, frgi_syntax_column(c->s, c->s->nodes[node].at), text.text);
    }
    frgi_text_free(c->ctx, &text);
    return status;
}

static bool has_lags(const frgi_syntax *s, int32_t first, int32_t last)
{
    for (int32_t i = first; i <= last; i++) {
        if (frgi_formula_is_lag(s, i)) {
            return true;
        }
    }
    return false;
}

/** The lag that node i is within or is, up to `last`; -1: none. */
static int32_t lag_around(const frgi_syntax *s, int32_t i, int32_t last)
{
    for (int32_t k = i; k <= last; k++) {
        if (frgi_formula_is_lag(s, k) && s->nodes[k].begin <= i) {
            return k;
        }
    }
    return -1;
}

static frg_status compile_node(compiler *c, int32_t node)
{
    const frgi_node *const x = &c->s->nodes[node];
    const int32_t n = x->children;
    switch (x->kind) {
    case NODE_NUMBER:
    case NODE_STRING:
        add_step(c, (frgi_step){.kind = NODE_NUMBER, .value = x->value},
                 x->kind == NODE_STRING ? TYPE_STRING : TYPE_NUMBER, node);
        return FRG_OK;
    case NODE_NAME:
        return compile_name(c, node);
    case NODE_PAREN:
    case NODE_POSITIVE:
        return FRG_OK;
    case NODE_IN:
        return compile_in(c, node);
    case NODE_EQUAL:
    case NODE_UNEQUAL:
        TRY(compile_equality(c, node));
        break;
    default:
        break;
    }
    const bool wraps = x->kind == NODE_CALL &&
                       (frgi_syntax_is(c->s, node, "I") || frgi_syntax_is(c->s, node, "c"));
    for (int32_t i = 0; i < n && !wraps; i++) {
        const typed *const operand = &c->stack[c->depth - 1 - i];
        if (operand->type == TYPE_TEXT) {
            TRY(frgi_refuse_mistyped(c->ctx, c->s, operand->node,
                                     c->p->steps[operand->step].column));
        }
        if (operand->type != TYPE_NUMBER) {
            return wrong_text(c, node, operand, "numbers are needed here, this is text");
        }
    }
    if (x->kind == NODE_CALL) {
        return compile_call(c, node);
    }
    c->p->makes_missing |= x->kind == NODE_DIVIDE || x->kind == NODE_POWER;
    c->depth -= n;
    add_step(c, (frgi_step){.kind = x->kind}, TYPE_NUMBER, node);
    return FRG_OK;
}

frg_status frgi_program_create(frgi_program *p, frg_context *ctx, const frgi_syntax *s,
                               int32_t node, const frg_table *table)
{
    const int32_t begin = s->nodes[node].begin;
    const int64_t n = (int64_t)node - begin + 1;
    *p = (frgi_program){0};
    compiler c = {.ctx = ctx, .s = s, .table = table, .p = p};
    frg_status status;
    if (n == 1 && s->nodes[node].kind == NODE_NAME && !frgi_syntax_is(s, node, "TRUE") &&
        !frgi_syntax_is(s, node, "FALSE")) {
        return frgi_column_find(&p->column, ctx, s, node, 0, table);
    }
    TRY_TO(failed, NEW(ctx, &p->steps, n, "an expression"));
    TRY_TO(failed, NEW(ctx, &p->pool, n, "an expression"));
    TRY_TO(failed, NEW(ctx, &c.stack, n, "an expression"));
    int32_t root = node;
    const bool lags = has_lags(s, begin, node);
    for (int32_t i = begin; i <= node; i++) {
        const int32_t lag = lags ? lag_around(s, i, node) : -1;
        TRY_TO(failed, lag >= 0 ? compile_lag(&c, lag) : compile_node(&c, i));
        i = lag >= 0 ? lag : i;
    }
    while (s->nodes[root].kind == NODE_PAREN ||
           (s->nodes[root].kind == NODE_CALL && frgi_syntax_is(s, root, "I"))) {
        root--;
    }
    p->logical = is_logical(s->nodes[root].kind);
    if (c.stack[0].type == TYPE_STRING || c.stack[0].type == TYPE_SET) {
        status = wrong_type(&c, node, "a string is no variable");
        goto failed;
    }
    p->column = p->n_steps == 1 && p->steps[0].kind == NODE_NAME ? p->steps[0].column : NULL;
    DROP(ctx, &c.stack);
    return FRG_OK;
failed:
    DROP(ctx, &c.stack);
    frgi_program_destroy(p, ctx);
    return status;
}

void frgi_program_destroy(frgi_program *p, frg_context *ctx)
{
    DROP(ctx, &p->steps);
    DROP(ctx, &p->pool);
    *p = (frgi_program){0};
}

bool frgi_program_may_miss(const frgi_program *p)
{
    if (p->column) {
        return p->column->n_missing > 0;
    }
    bool may = p->makes_missing;
    for (int32_t i = 0; i < p->n_steps; i++) {
        may |= p->steps[i].kind == NODE_NAME && p->steps[i].column->n_missing > 0;
    }
    return may;
}

/* ---- evaluating ------------------------------------------------------------------------------ */

static double both(double a, double b)
{
    return a == 0 || b == 0 ? 0 : isnan(a) || isnan(b) ? missing : 1;
}

static double either(double a, double b)
{
    return (a != 0 && !isnan(a)) || (b != 0 && !isnan(b)) ? 1 : isnan(a) || isnan(b) ? missing : 0;
}

#define COMPARE(operator) (isnan(a[i]) || isnan(b[i]) ? missing : (double)(a[i] operator b[i]))
#define EACH(expression)                                                                           \
    for (ptrdiff_t i = 0; i < n; i++) {                                                            \
        a[i] = (expression);                                                                       \
    }

/** a <- a op b */
static void combine(frgi_node_kind kind, ptrdiff_t n, double *restrict a, const double *restrict b)
{
    switch (kind) {
    case NODE_ADD:
        EACH(a[i] + b[i])
        break;
    case NODE_SUBTRACT:
        EACH(a[i] - b[i])
        break;
    case NODE_MULTIPLY:
        EACH(a[i] * b[i])
        break;
    case NODE_DIVIDE:
        EACH(a[i] / b[i])
        break;
    case NODE_POWER:
        EACH(b[i] == 2 ? a[i] * a[i] : pow(a[i], b[i]))
        break;
    case NODE_LESS:
        EACH(COMPARE(<))
        break;
    case NODE_LESS_EQUAL:
        EACH(COMPARE(<=))
        break;
    case NODE_GREATER:
        EACH(COMPARE(>))
        break;
    case NODE_GREATER_EQUAL:
        EACH(COMPARE(>=))
        break;
    case NODE_EQUAL:
        EACH(COMPARE(==))
        break;
    case NODE_UNEQUAL:
        EACH(COMPARE(!=))
        break;
    case NODE_AND:
        EACH(both(a[i], b[i]))
        break;
    default: /* NODE_OR */
        EACH(either(a[i], b[i]))
        break;
    }
}

static double in_set(double v, const double *pool, int32_t n)
{
    if (isnan(v)) {
        return missing;
    }
    for (int32_t k = 0; k < n; k++) {
        if (v == pool[k]) {
            return 1;
        }
    }
    return 0;
}

void frgi_program_block(const frgi_program *p, const int64_t *rows, int64_t begin, int64_t n,
                        double *out, double *scratch)
{
    if (p->column) {
        frgi_column_block(p->column, rows, begin, n, out);
        return;
    }
    double *top = scratch - FRGI_BLOCK;
    for (int32_t k = 0; k < p->n_steps; k++) {
        const frgi_step *const step = &p->steps[k];
        double *const a = top;
        switch (step->kind) {
        case NODE_NAME:
            top += FRGI_BLOCK;
            frgi_column_block(step->column, rows, begin, n, top);
            break;
        case NODE_NUMBER:
            top += FRGI_BLOCK;
            for (ptrdiff_t i = 0; i < n; i++) {
                top[i] = step->value;
            }
            break;
        case NODE_CALL:
            EACH(step->function(a[i]))
            break;
        case NODE_NEGATIVE:
            EACH(-a[i])
            break;
        case NODE_NOT:
            EACH(isnan(a[i]) ? missing : (double)(a[i] == 0))
            break;
        case NODE_IN:
            EACH(in_set(a[i], p->pool + step->pool, step->n_pool))
            break;
        default:
            top -= FRGI_BLOCK;
            combine(step->kind, n, top, top + FRGI_BLOCK);
            break;
        }
    }
    memcpy(out, scratch, sizeof *out * (size_t)n);
}
