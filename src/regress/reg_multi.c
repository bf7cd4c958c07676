/* reg_multi.c - several models in one call.
 *
 *     for each sample (all rows, levels of `split`), for each formula that the text stands for:
 *         b, e, V of the model, with what the pool has of its rows, plan and columns (reg_pool.c)
 *
 * The longest formulas of a sample are fitted first, so that the columns of nested models go
 * through the demeaner together; the order of the results is that of the models.
 */
#include <stdio.h>
#include <string.h>

#include "formula/expand.h"
#include "regress/regress.h"

enum { SUBJECT = 256 }; /* bytes of a model's name in messages */

struct frg_fe_many {
    frg_context *ctx;
    int64_t n;
    frg_fe **fits; /* NULL: taken */
    frg_status *statuses;
};

/** One model of the call. */
typedef struct {
    const char *formula;
    const char *value; /* of the split; NULL: all rows */
    int64_t place;     /* among the models */
    size_t length;
} model;

typedef struct {
    frg_context *ctx;
    const frg_table *data;
    frg_fe_opts opts;
    frgi_formulas formulas;
    frgi_split split;
    frgi_panel panel;
    frgi_pool pool;
    bool shares;
    int64_t n;
    model *models;
    frg_fe **fits;
    frg_status *statuses;
    char **reasons; /* why a model is left out, or NULL */
} call;

/* ---- the models ------------------------------------------------------------------------------ */

static frg_status find_split(call *c)
{
    const char *const name = c->opts.split ? c->opts.split : c->opts.fsplit;
    if (c->opts.split && c->opts.fsplit) {
        FAIL(c->ctx, E_OPTION, "split and fsplit are given, of which one is meant");
    }
    if (c->opts.split_value && !c->opts.split) {
        FAIL(c->ctx, E_OPTION, "split_value is a level of split, which is not given");
    }
    if (!name) {
        return FRG_OK;
    }
    TRY(frgi_split_create(&c->split, c->ctx, name, c->data));
    c->pool.split = &c->split;
    if (c->split.levels.n == 0) {
        FAIL(c->ctx, E_NO_OBS, "split: the column '%s' has no values", name);
    }
    return FRG_OK;
}

static void add_model(call *c, const char *formula, const char *value)
{
    c->models[c->n] =
        (model){.formula = formula, .value = value, .place = c->n, .length = strlen(formula)};
    c->n++;
}

/** All of them, samples outermost. */
static frg_status list_models(call *c)
{
    const bool one = c->opts.split_value != NULL;
    const bool whole = !c->split.column || c->opts.fsplit;
    const int32_t levels = !c->split.column || one ? 0 : c->split.levels.n;
    const int64_t most = ((int64_t)levels + 1) * c->formulas.n;
    if (most > (1 << 20)) {
        FAIL(c->ctx, E_OPTION, "split: %d levels make more than a million models", (int)levels);
    }
    TRY(NEW(c->ctx, &c->models, most, "models"));
    for (int32_t l = -1; l < levels; l++) {
        const bool used = l >= 0 || whole || one;
        const char *const value =
            l >= 0 ? frgi_names_text(&c->split.levels.text, c->split.levels.sorted[l])
            : one  ? c->opts.split_value
                   : NULL;
        for (int32_t k = 0; k < c->formulas.n && used; k++) {
            add_model(c, c->formulas.text[k], value);
        }
    }
    return FRG_OK;
}

/** Sample after sample, in each the longest formula first. */
static int compare(const void *a, const void *b, const void *user)
{
    const model *const x = a, *const y = b;
    const int64_t formulas = *(const int32_t *)user;
    const int64_t of_x = x->place / formulas, of_y = y->place / formulas;
    if (of_x != of_y) {
        return of_x < of_y ? -1 : 1;
    }
    if (x->length != y->length) {
        return x->length > y->length ? -1 : 1;
    }
    return x->place < y->place ? -1 : x->place > y->place;
}

/* ---- fitting --------------------------------------------------------------------------------- */

/** Is it of this model alone that it failed? */
static bool is_of_model(const frg_context *ctx)
{
    static const char *const codes[] = {"FRG-FE-002", "FRG-FE-006", "FRG-FE-007", "FRG-FE-008",
                                        "FRG-FE-020", "FRG-FE-022", "FRG-FE-031"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(frg_error_code(ctx), codes[i]) == 0) {
            return true;
        }
    }
    return false;
}

/** "model 2, 'y ~ x' at 1980" */
static void name_model(const model *m, char *text, size_t room)
{
    snprintf(text, room, "model %lld, '%.100s'%s%.80s", (long long)m->place + 1, m->formula,
             m->value ? " at " : "", m->value ? m->value : "");
}

static frg_status keep_reason(call *c, const model *m)
{
    char name[SUBJECT];
    frgi_text text = {0};
    name_model(m, name, sizeof name);
    const frg_status status =
        frgi_text_printf(c->ctx, &text, "%s, is left out: %s", name, frg_message(c->ctx));
    c->reasons[m->place] = text.text;
    return status;
}

/** Has the formula instruments, a second tilde outside of names in backticks? */
static bool has_instruments(const char *formula)
{
    int tildes = 0;
    bool name = false;
    for (const char *at = formula; *at; at++) {
        name ^= *at == '`';
        tildes += !name && *at == '~';
    }
    return tildes > 1;
}

/** One model, whose warnings and errors name it where it is one of several; one that cannot be
 *  estimated has no fit. */
static frg_status fit_model(call *c, const model *m)
{
    char name[SUBJECT];
    frg_fe_opts o = c->opts;
    name_model(m, name, sizeof name);
    o.split = m->value ? c->split.column->name : NULL;
    o.split_value = m->value;
    o.fsplit = NULL;
    frgi_warn_of(c->ctx, c->n > 1 ? name : NULL);
    const frg_status status =
        frgi_fe_fit_one(&c->fits[m->place], c->ctx, m->formula, c->data, &o,
                        c->shares && !has_instruments(m->formula) ? &c->pool : NULL);
    frgi_warn_of(c->ctx, NULL);
    c->statuses[m->place] = status;
    if (status < 0 && is_of_model(c->ctx)) {
        return FRG_OK;
    }
    if (status == FRG_BAD_DATA && c->n > 1) {
        frgi_fail_of(c->ctx, name);
    }
    return status;
}

static frg_status fit_all(call *c, frg_status *worst, int64_t *fitted)
{
    TRY(NEW0(c->ctx, &c->fits, c->n, "fits"));
    TRY(NEW0(c->ctx, &c->statuses, c->n, "fits"));
    TRY(NEW0(c->ctx, &c->reasons, c->n, "fits"));
    frgi_sort(c->models, c->n, sizeof *c->models, compare, &c->formulas.n);
    for (int64_t i = 0; i < c->n; i++) {
        const model *const m = &c->models[i];
        const frg_status status = fit_model(c, m);
        TRY(status);
        *fitted += c->fits[m->place] != NULL;
        *worst = status > *worst ? status : *worst;
        if (status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT) {
            *worst = status;
            return FRG_OK;
        }
        if (c->statuses[m->place] < 0 && (*fitted > 0 || i + 1 < c->n)) {
            TRY(keep_reason(c, m));
        }
    }
    return FRG_OK;
}

/** Those that there are, close together. */
static frg_status collect(call *c, frg_fe_many **out)
{
    frg_fe_many *m;
    TRY(NEW(c->ctx, &m, 1, "fits"));
    int64_t n = 0;
    for (int64_t i = 0; i < c->n; i++) {
        if (c->reasons[i]) {
            frgi_warn(c->ctx, W_MODEL, "%s", c->reasons[i]);
        }
        c->fits[n] = c->fits[i];
        c->statuses[n] = c->statuses[i];
        n += c->fits[i] != NULL;
    }
    *m = (frg_fe_many){.ctx = c->ctx, .n = n, .fits = c->fits, .statuses = c->statuses};
    c->fits = NULL;
    c->statuses = NULL;
    *out = m;
    return FRG_OK;
}

/** The failure of the last of the models, of which none has a fit. */
static frg_status fail_all(const call *c)
{
    const model *const last = &c->models[c->n - 1];
    char name[SUBJECT], text[SUBJECT + 64];
    name_model(last, name, sizeof name);
    snprintf(text, sizeof text, "none of %lld models can be estimated; %s", (long long)c->n, name);
    if (c->n > 1) {
        frgi_fail_of(c->ctx, text);
    }
    return c->statuses[last->place];
}

static frg_status run(call *c, const char *formula, frg_fe_many **out, frg_status *worst)
{
    int64_t fitted = 0;
    TRY(frgi_formula_expand(&c->formulas, c->ctx, formula, (int64_t)strlen(formula)));
    TRY(find_split(c));
    if (c->opts.panel) {
        TRY(frgi_panel_create(&c->panel, c->ctx, c->opts.panel, c->data));
        c->pool.panel = &c->panel;
    }
    TRY(list_models(c));
    if (c->opts.plan && c->n > 1) {
        FAIL(c->ctx, E_OPTION, "plan: a file holds the solver of one model, and these are %lld",
             (long long)c->n);
    }
    TRY(fit_all(c, worst, &fitted));
    if (*worst == FRG_INTERRUPTED || *worst == FRG_TIME_LIMIT) {
        return FRG_OK;
    }
    return fitted > 0 ? collect(c, out) : fail_all(c);
}

static void close_call(call *c)
{
    for (int64_t i = 0; c->fits && i < c->n; i++) {
        frg_fe_destroy(c->fits[i]);
    }
    for (int64_t i = 0; c->reasons && i < c->n; i++) {
        DROP(c->ctx, &c->reasons[i]);
    }
    DROP(c->ctx, &c->reasons);
    frgi_pool_close(&c->pool);
    frgi_split_destroy(&c->split, c->ctx);
    frgi_panel_destroy(&c->panel, c->ctx);
    frgi_formulas_free(&c->formulas, c->ctx);
    DROP(c->ctx, &c->models);
    DROP(c->ctx, &c->fits);
    DROP(c->ctx, &c->statuses);
}

frg_status frgi_fe_fit_many(frg_fe_many **out, frg_context *ctx, const char *formula,
                            const frg_table *data, const frg_fe_opts *o)
{
    *out = NULL;
    call c = {.ctx = ctx, .data = data};
    frg_fe_defaults(&c.opts, sizeof c.opts);
    TRY(frgi_take_opts(ctx, &c.opts, sizeof c.opts, o));
    c.shares = !c.opts.keep_effects && !c.opts.store && !c.opts.plan &&
               c.opts.family == FRG_FAMILY_OLS && !c.opts.first_stage;
    frg_status worst = FRG_OK;
    const frg_status status = run(&c, formula, out, &worst);
    close_call(&c);
    return status < 0 ? status : worst;
}

frg_status frg_fe_fit_many(frg_fe_many **out, frg_context *ctx, const char *formula,
                           const frg_table *data, const frg_fe_opts *o)
{
    REQUIRE(ctx, out && ctx && formula && data,
            "frg_fe_fit_many takes a place, a context, a formula and a table");
    frgi_run_begins(ctx);
    return frgi_fe_fit_many(out, ctx, formula, data, o);
}

/* ---- the result ------------------------------------------------------------------------------ */

int64_t frg_fe_many_count(const frg_fe_many *m)
{
    return m ? m->n : 0;
}

static bool has(const frg_fe_many *m, int64_t i)
{
    return m && i >= 0 && i < m->n;
}

frg_fe *frg_fe_many_get(const frg_fe_many *m, int64_t i)
{
    return has(m, i) ? m->fits[i] : NULL;
}

frg_status frg_fe_many_status(const frg_fe_many *m, int64_t i)
{
    return has(m, i) ? m->statuses[i] : FRG_BAD_ARG;
}

frg_fe *frg_fe_many_take(frg_fe_many *m, int64_t i)
{
    frg_fe *const f = frg_fe_many_get(m, i);
    if (f) {
        m->fits[i] = NULL;
    }
    return f;
}

void frg_fe_many_destroy(frg_fe_many *m)
{
    if (!m) {
        return;
    }
    frg_context *ctx = m->ctx;
    for (int64_t i = 0; i < m->n; i++) {
        frg_fe_destroy(m->fits[i]);
    }
    DROP(ctx, &m->fits);
    DROP(ctx, &m->statuses);
    DROP(ctx, &m);
}

frg_status frg_fe_expand(frg_context *ctx, const char *formula, frg_column_visitor each, void *user)
{
    REQUIRE(ctx, ctx && formula && each, "frg_fe_expand takes a context, a formula and a visitor");
    frgi_formulas f;
    TRY(frgi_formula_expand(&f, ctx, formula, (int64_t)strlen(formula)));
    for (int32_t i = 0; i < f.n; i++) {
        each(f.text[i], user);
    }
    frgi_formulas_free(&f, ctx);
    return FRG_OK;
}
