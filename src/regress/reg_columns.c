/* reg_columns.c - which columns of a table a fit will read: the names in the formula, the subset,
 * the cluster specifications, and the weights.  A reader that knows them leaves the rest of a wide
 * file alone. One pass over the syntax nodes, O(length of the texts).
 */
#include <string.h>

#include "formula/syntax.h"
#include "fourge/fe.h"
#include "regress/regress.h"

typedef struct {
    frg_context *ctx;
    frg_column_visitor each;
    void *user;
} visit;

static frg_status visit_names(const visit *v, const frgi_syntax *s)
{
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const frgi_node *const x = &s->nodes[i];
        if (x->kind != NODE_NAME || frgi_syntax_is(s, i, "TRUE") || frgi_syntax_is(s, i, "FALSE") ||
            frgi_syntax_is(s, i, ".F") || frgi_syntax_is(s, i, ".L")) {
            continue;
        }
        char *name;
        TRY(frgi_strdup(v->ctx, &name, s->text + x->name, (size_t)x->name_length));
        v->each(name, v->user);
        DROP(v->ctx, &name);
    }
    return FRG_OK;
}

static frg_status visit_expression(const visit *v, const char *text, size_t length,
                                   const char *what)
{
    frgi_syntax s = {0};
    frg_status status = frgi_syntax_expression(&s, v->ctx, text, (int64_t)length, what);
    if (status >= 0) {
        status = visit_names(v, &s);
    }
    frgi_syntax_free(&s, v->ctx);
    return status;
}

static frg_status visit_vcov(const visit *v, const char *spec)
{
    const char *text;
    size_t length;
    for (int i = 0; frgi_vcov_variable(spec, i, &text, &length); i++) {
        TRY(visit_expression(v, text, length, "vcov"));
    }
    return FRG_OK;
}

static frg_status visit_formula(const visit *v, const char *formula)
{
    frgi_syntax s = {0};
    frg_status status = frgi_syntax_formula(&s, v->ctx, formula, (int64_t)strlen(formula));
    if (status >= 0) {
        status = visit_names(v, &s);
    }
    frgi_syntax_free(&s, v->ctx);
    return status;
}

frg_status frg_fe_columns(frg_context *ctx, const char *formula, const frg_fe_opts *o,
                          frg_column_visitor each, void *user)
{
    REQUIRE(ctx, formula && each, "frg_fe_columns takes a formula and a visitor");
    frg_fe_opts opts;
    frg_fe_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(ctx, &opts, sizeof opts, o));
    TRY(frgi_fe_check_vcovs(ctx, &opts));
    const visit v = {ctx, each, user};
    TRY(visit_formula(&v, formula));
    TRY(opts.first_stage ? visit_formula(&v, opts.first_stage) : FRG_OK);
    if (opts.subset) {
        TRY(visit_expression(&v, opts.subset, strlen(opts.subset), "subset"));
    }
    if (opts.offset) {
        TRY(visit_expression(&v, opts.offset, strlen(opts.offset), "offset"));
    }
    const char *const named[] = {opts.weights, opts.split, opts.fsplit};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        if (named[i]) {
            each(named[i], user);
        }
    }
    if (opts.panel) {
        char *memory;
        const char *unit, *time;
        TRY(frgi_panel_names(ctx, opts.panel, &memory, &unit, &time));
        each(unit, user);
        each(time, user);
        DROP(ctx, &memory);
    }
    for (int i = 0; i < opts.n_vcov; i++) {
        TRY(opts.vcov[i] ? visit_vcov(&v, opts.vcov[i]) : FRG_OK);
    }
    return FRG_OK;
}
