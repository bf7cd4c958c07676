/* reg_panel.c - lags, leads and differences by unit and time.
 *
 *     l(x, k)_ut = x_u,t-k      f(x, k) = l(x, -k)      d(x, k) = x - l(x, k)
 *
 * Time is a whole number and a gap is a gap: where the unit has no row at t - k the value is
 * missing.  Rows are put in order by unit (counting) and time; one pass with two places in that
 * order finds all lags of a k.  The columns join a table that borrows the others, under the text of
 * their call, where the compiler of expressions finds them.
 */
#include "regress/reg_panel.h"

#include <math.h>
#include <string.h>

#include "formula/keys.h"
#include "formula/program.h"
#include "io/io.h"

/* ---- the order ------------------------------------------------------------------------------- */

/** A name without the blanks around it and without backticks; ends it in place. */
static char *trim(char *name)
{
    char *end = name + strlen(name);
    name += strspn(name, " \t");
    while (end > name && (end[-1] == ' ' || end[-1] == '\t')) {
        *--end = '\0';
    }
    if (end - name > 2 && *name == '`' && end[-1] == '`') {
        end[-1] = '\0';
        name++;
    }
    return name;
}

frg_status frgi_panel_names(frg_context *ctx, const char *spec, char **memory, const char **unit,
                            const char **time)
{
    TRY(frgi_strdup(ctx, memory, spec, strlen(spec)));
    char *const comma = strchr(*memory, ',');
    if (comma) {
        *comma = '\0';
        *unit = trim(*memory);
        *time = trim(comma + 1);
    }
    if (!comma || !**unit || !**time || strchr(comma + 1, ',')) {
        DROP(ctx, memory);
        FAIL(ctx, E_OPTION, "panel: expected UNIT,TIME, got '%s'", spec);
    }
    return FRG_OK;
}

static frg_status read_time(frgi_panel *p, frg_context *ctx, const frg_column *c)
{
    if (c->kind == FRG_CATEGORY) {
        FAIL(ctx, E_TYPE, "panel: the time '%s' holds text", c->name);
    }
    frgi_column_block(c, NULL, 0, p->n_rows, p->time);
    for (int64_t i = 0; i < p->n_rows; i++) {
        const double t = p->time[i];
        if (!isnan(t) && !(t == rint(t) && fabs(t) < 0x1p52)) {
            frgi_at(ctx, "%s:%lld", c->name, (long long)i + 1);
            FAIL(ctx, E_TYPE, "panel: the time '%s' is %.15g in row %lld, and lags count by ones",
                 c->name, t, (long long)i + 1);
        }
    }
    return FRG_OK;
}

/** Dense codes of the units of the rows in p->order. */
static frg_status read_units(frgi_panel *p, frg_context *ctx, const frg_column *c, int64_t *levels)
{
    int32_t *codes;
    TRY(NEW(ctx, &codes, p->n, "units of a panel"));
    frgi_key_job job = {.column = c, .codes = codes};
    const frg_status status = frgi_keys_encode(ctx, &job, 1, p->order, p->n);
    for (int64_t k = 0; k < p->n && status >= 0; k++) {
        p->unit[p->order[k]] = codes[k];
    }
    *levels = job.n_levels;
    DROP(ctx, &codes);
    return status;
}

static void list_rows(frgi_panel *p, const frg_column *unit)
{
    for (int64_t i = 0; i < p->n_rows; i++) {
        double u;
        frgi_column_block(unit, NULL, i, 1, &u);
        p->unit[i] = -1;
        p->order[p->n] = i;
        p->n += !isnan(u) && !isnan(p->time[i]);
    }
}

static int by_time(const void *a, const void *b, const void *user)
{
    const double *const time = user;
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return time[i] != time[j] ? (time[i] < time[j] ? -1 : 1) : i < j ? -1 : i > j;
}

/** By unit, then by time. */
static frg_status sort_rows(frgi_panel *p, frg_context *ctx, int64_t levels)
{
    int64_t *sorted, *start;
    TRY(NEW0(ctx, &start, levels + 2, "order of a panel"));
    const frg_status status = NEW(ctx, &sorted, p->n_rows, "order of a panel");
    for (int64_t k = 0; k < p->n && status >= 0; k++) {
        start[p->unit[p->order[k]] + 2]++;
    }
    for (int64_t u = 0; u < levels && status >= 0; u++) {
        start[u + 2] += start[u + 1];
    }
    for (int64_t k = 0; k < p->n && status >= 0; k++) {
        sorted[start[p->unit[p->order[k]] + 1]++] = p->order[k];
    }
    for (int64_t u = 0; u < levels && status >= 0; u++) {
        frgi_sort(sorted + start[u], start[u + 1] - start[u], sizeof *sorted, by_time, p->time);
    }
    DROP(ctx, &start);
    if (status >= 0) {
        DROP(ctx, &p->order);
        p->order = sorted;
    }
    return status;
}

static frg_status check_duplicates(const frgi_panel *p, frg_context *ctx, const char *spec)
{
    for (int64_t k = 1; k < p->n; k++) {
        const int64_t i = p->order[k - 1], j = p->order[k];
        if (p->unit[i] == p->unit[j] && p->time[i] == p->time[j]) {
            FAIL(ctx, E_DUPLICATE, "panel '%s': rows %lld and %lld are of one unit at time %.15g",
                 spec, (long long)i + 1, (long long)j + 1, p->time[i]);
        }
    }
    return FRG_OK;
}

static frg_status arrange(frgi_panel *p, frg_context *ctx, const char *spec, const frg_column *unit,
                          const frg_column *time)
{
    int64_t levels = 0;
    TRY(NEW(ctx, &p->order, p->n_rows + 1, "order of a panel"));
    TRY(NEW(ctx, &p->unit, p->n_rows, "units of a panel"));
    TRY(NEW(ctx, &p->time, p->n_rows, "times of a panel"));
    TRY(read_time(p, ctx, time));
    list_rows(p, unit);
    TRY(read_units(p, ctx, unit, &levels));
    TRY(sort_rows(p, ctx, levels));
    return check_duplicates(p, ctx, spec);
}

frg_status frgi_panel_create(frgi_panel *p, frg_context *ctx, const char *spec,
                             const frg_table *table)
{
    char *memory = NULL;
    const char *unit = NULL, *time = NULL;
    const frg_column *u = NULL, *t = NULL;
    *p = (frgi_panel){.n_rows = frg_table_rows(table)};
    TRY(frgi_panel_names(ctx, spec, &memory, &unit, &time));
    frg_status status = frgi_column_named(&u, ctx, unit, "panel", table);
    status = status < 0 ? status : frgi_column_named(&t, ctx, time, "panel", table);
    status = status < 0 ? status : arrange(p, ctx, spec, u, t);
    DROP(ctx, &memory);
    if (status < 0) {
        frgi_panel_destroy(p, ctx);
    }
    return status;
}

void frgi_panel_destroy(frgi_panel *p, frg_context *ctx)
{
    DROP(ctx, &p->order);
    DROP(ctx, &p->unit);
    DROP(ctx, &p->time);
}

/* ---- lags ------------------------------------------------------------------------------------ */

void frgi_panel_lag(const frgi_panel *p, const double *x, int64_t k, bool difference, double *out)
{
    for (int64_t i = 0; i < p->n_rows; i++) {
        out[i] = (double)NAN;
    }
    int64_t from = 0;
    for (int64_t a = 0; a < p->n; a++) {
        const int64_t row = p->order[a];
        const double want = p->time[row] - (double)k;
        while (from < p->n &&
               (p->unit[p->order[from]] < p->unit[row] ||
                (p->unit[p->order[from]] == p->unit[row] && p->time[p->order[from]] < want))) {
            from++;
        }
        const int64_t other = from < p->n ? p->order[from] : row;
        if (from < p->n && p->unit[other] == p->unit[row] && p->time[other] == want) {
            out[row] = difference ? x[row] - x[other] : x[other];
        }
    }
}

/** The values of the call's expression in all rows. */
static frg_status evaluate(frg_context *ctx, const frgi_syntax *s, int32_t node,
                           const frg_table *table, double *out)
{
    frgi_program p;
    double *scratch = NULL;
    const int64_t n = frg_table_rows(table);
    TRY(frgi_program_create(&p, ctx, s, node, table));
    frg_status status = NEW(ctx, &scratch, ((int64_t)p.stack + 1) * FRGI_BLOCK, "an expression");
    if (status >= 0 && p.column && p.column->kind == FRG_CATEGORY) {
        frgi_syntax_at(s, ctx, node);
        status = frgi_fail(ctx, E_TYPE, __FILE__, __LINE__, "lags of '%s': the column holds text",
                           p.column->name);
    }
    for (int64_t i = 0; i < n && status >= 0; i += FRGI_BLOCK) {
        frgi_program_block(&p, NULL, i, n - i < FRGI_BLOCK ? n - i : FRGI_BLOCK, out + i, scratch);
    }
    DROP(ctx, &scratch);
    frgi_program_destroy(&p, ctx);
    return status;
}

static frg_status add_lag(frg_table *t, frg_context *ctx, const frgi_syntax *s, int32_t node,
                          const frgi_panel *p)
{
    frgi_text name = {0};
    double *x = NULL, *lagged = NULL;
    frg_status status;
    TRY_TO(done, frgi_syntax_text(s, ctx, node, &name));
    if (frg_table_find(t, name.text)) {
        goto done;
    }
    TRY_TO(done, NEW(ctx, &x, p->n_rows, "a lag"));
    TRY_TO(done, NEW(ctx, &lagged, p->n_rows, "a lag"));
    TRY_TO(done, evaluate(ctx, s, frgi_syntax_child(s, node, 0), t, x));
    frgi_panel_lag(p, x, frgi_formula_lag(s, node), frgi_syntax_is(s, node, "d"), lagged);
    status = frg_table_add_numbers(t, name.text, lagged);
done:
    frgi_text_free(ctx, &name);
    DROP(ctx, &x);
    DROP(ctx, &lagged);
    return status;
}

static frg_status add_lags(frg_table *t, frg_context *ctx, const frgi_syntax *s, int32_t first,
                           const frgi_panel *p)
{
    for (int32_t i = first; i < s->n_nodes; i++) {
        TRY(frgi_formula_is_lag(s, i) ? add_lag(t, ctx, s, i, p) : FRG_OK);
    }
    return FRG_OK;
}

frg_status frgi_panel_extend(frg_table **out, frg_context *ctx, const frgi_formula *formula,
                             const frg_table *table, const char *spec, bool right,
                             const frgi_panel *panel)
{
    const frgi_syntax *const s = &formula->syntax;
    const int32_t first = right ? s->left + 1 : 0;
    frgi_panel own = {0};
    int32_t i = first;
    *out = NULL;
    while (i < s->n_nodes && !frgi_formula_is_lag(s, i)) {
        i++;
    }
    if (i == s->n_nodes) {
        return FRG_OK;
    }
    if (!spec) {
        frgi_syntax_at(s, ctx, i);
        FAIL(ctx, E_OPTION, "'%.*s' lags by a panel UNIT,TIME, which is not given",
             s->nodes[i].length, s->text + s->nodes[i].at);
    }
    if (!panel) {
        TRY(frgi_panel_create(&own, ctx, spec, table));
        panel = &own;
    }
    frg_status status = frgi_table_borrow(out, ctx, table);
    if (status >= 0) {
        status = add_lags(*out, ctx, s, first, panel);
    }
    if (status < 0) {
        frg_table_destroy(*out);
        *out = NULL;
    }
    frgi_panel_destroy(&own, ctx);
    return status;
}
