/* reg_predict.c - predictions of a fitted regression for other data.
 *
 * A row's levels are found again by value or label.  A level that the fit has not seen has no
 * effect to add: the prediction is NaN and the row is counted.  For a joint key the fit's rows and
 * the new ones are coded together, the fit's first, so that its codes come out as they were and
 * everything beyond them is unseen.
 */
#include <math.h>
#include <string.h>

#include "formula/keys.h"
#include "regress/reg_effects.h"

/** Why a row has no prediction: bits of predictor.why. */
enum { UNSEEN = 1, MISSING = 2 };

typedef struct {
    const frg_fe *f;
    const frg_table *table;
    int64_t n;
    double *out;
    double *matrix;     /* n a regressor: its values are wanted, and no predictions; or NULL */
    unsigned char *why; /* each row */
} predictor;

/** codes[i] <- level of the key's column c in row i of the new table. */
static frg_status match_column(const predictor *p, const frgi_key *key, int c, int32_t *codes)
{
    const frgi_frame *const frame = &p->f->data.frame;
    frg_context *const ctx = p->f->ctx;
    const frg_column *const fitted = key->columns[c], *column;
    frgi_levels levels = {0};
    frg_status status;
    TRY(frgi_column_named(&column, ctx, fitted->name, "prediction", p->table));
    int32_t *own;
    TRY(NEW(ctx, &own, frame->n, "codes"));
    frgi_key_job job = {.column = fitted, .codes = own};
    TRY_TO(done, frgi_keys_encode(ctx, &job, 1, frame->rows, frame->n));
    TRY_TO(done,
           frgi_levels_create(&levels, ctx, fitted, frame->rows, frame->n, own, job.n_levels));
    status = frgi_levels_match(&levels, ctx, column, codes);
done:
    frgi_levels_destroy(&levels, ctx);
    DROP(ctx, &own);
    return status;
}

/** Joins column c > 0 of a key to the codes so far; they and `other` hold the fit's rows, then the
 *  new ones. */
static frg_status join_column(const predictor *p, const frgi_key *key, int c, int32_t *codes,
                              int64_t *levels, int32_t *other)
{
    const frgi_frame *const frame = &p->f->data.frame;
    frgi_key_job job = {.column = key->columns[c], .codes = other};
    TRY(frgi_keys_encode(p->f->ctx, &job, 1, frame->rows, frame->n));
    TRY(match_column(p, key, c, other + frame->n));
    for (int64_t i = frame->n; i < frame->n + p->n; i++) {
        const bool missing = codes[i] == FRGI_LEVEL_MISSING || other[i] == FRGI_LEVEL_MISSING;
        const bool unseen = codes[i] < 0 || codes[i] >= *levels || other[i] < 0;
        p->why[i - frame->n] |= missing ? MISSING : unseen ? UNSEEN : 0;
        codes[i] = missing || unseen ? 0 : codes[i];
        other[i] = missing || unseen ? 0 : other[i];
    }
    int64_t together = *levels;
    TRY(frgi_keys_join(p->f->ctx, frame->n + p->n, codes, &together, other, job.n_levels));
    *levels = 0;
    for (int64_t i = 0; i < frame->n; i++) {
        *levels = codes[i] >= *levels ? codes[i] + 1 : *levels;
    }
    return FRG_OK;
}

/** out += the effect of every row's level, constants and slopes. */
static void add_values(const predictor *p, const frgi_effects *a, int q, const int32_t *codes,
                       int64_t levels, const double *slopes)
{
    const frgi_formula *const formula = &p->f->data.formula;
    for (int64_t i = 0; i < p->n; i++) {
        if (codes[i] < 0 || codes[i] >= levels) {
            p->why[i] |= codes[i] == FRGI_LEVEL_MISSING ? MISSING : UNSEEN;
        }
        if (p->why[i]) { /* here, or in a column of the joint key */
            continue;
        }
        p->out[i] += a->constant[q] < 0 ? 0 : a->value[a->constant[q] + codes[i]];
        for (int s = 0; s < formula->n_slopes; s++) {
            if (formula->slopes[s].effect == q) {
                p->out[i] += a->value[a->slope[s] + codes[i]] * slopes[s * p->n + i];
            }
        }
    }
}

static frg_status add_effect(const predictor *p, const frgi_effects *a, int q, const double *slopes)
{
    const frg_fe *const f = p->f;
    const frgi_key *const key = &f->data.frame.keys[q];
    const int64_t fitted = f->data.frame.n;
    int32_t *codes = NULL, *other = NULL;
    int64_t levels;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &codes, fitted + p->n, "codes"));
    TRY_TO(done, NEW(f->ctx, &other, key->n > 1 ? fitted + p->n : 0, "codes"));
    frgi_key_job job = {.column = key->columns[0], .codes = codes};
    TRY_TO(done, frgi_keys_encode(f->ctx, &job, 1, f->data.frame.rows, fitted));
    TRY_TO(done, match_column(p, key, 0, codes + fitted));
    levels = job.n_levels;
    for (int c = 1; c < key->n; c++) {
        TRY_TO(done, join_column(p, key, c, codes, &levels, other));
    }
    add_values(p, a, q, codes + fitted, levels, slopes);
done:
    DROP(f->ctx, &codes);
    DROP(f->ctx, &other);
    return status;
}

static frg_status evaluate_slopes(const predictor *p, double **out)
{
    const frg_fe *const f = p->f;
    TRY(NEW(f->ctx, out, f->data.formula.n_slopes * p->n, "slopes"));
    for (int s = 0; s < f->data.formula.n_slopes; s++) {
        frgi_program z;
        double *scratch = NULL;
        TRY(frgi_program_create(&z, f->ctx, &f->data.formula.syntax, f->data.formula.slopes[s].node,
                                p->table));
        const frg_status status =
            NEW(f->ctx, &scratch, ((int64_t)z.stack + 1) * FRGI_BLOCK, "slopes");
        for (int64_t i = 0; i < p->n && status >= 0; i += FRGI_BLOCK) {
            const int64_t n = p->n - i < FRGI_BLOCK ? p->n - i : FRGI_BLOCK;
            frgi_program_block(&z, NULL, i, n, *out + s * p->n + i, scratch);
        }
        DROP(f->ctx, &scratch);
        frgi_program_destroy(&z, f->ctx);
        TRY(status);
    }
    return FRG_OK;
}

static frg_status add_effects(const predictor *p)
{
    const frg_fe *const f = p->f;
    frgi_effects a;
    double *slopes = NULL;
    if (f->data.frame.n_effects == 0) {
        return FRG_OK;
    }
    TRY(frgi_effects_create(&a, f));
    frg_status status = evaluate_slopes(p, &slopes);
    for (int q = 0; q < f->data.frame.n_effects && status >= 0; q++) {
        status = add_effect(p, &a, q, slopes);
    }
    DROP(f->ctx, &slopes);
    frgi_effects_destroy(&a, f->ctx);
    return status;
}

/* ---- the terms ------------------------------------------------------------------------------- */

/** The fit's formula without the instruments, which new data need not have. */
static frgi_formula structural(const frg_fe *f)
{
    frgi_formula formula = f->data.formula;
    formula.n_terms = formula.n_exogenous + formula.n_endogenous;
    return formula;
}

/** A factor must stay a factor and a number a number; *none: a column of another kind has no value,
 *  and no row a prediction. */
static frg_status check_kinds(const predictor *p, const frgi_variable *variables, bool *none)
{
    const frg_fe *const f = p->f;
    *none = p->n == 0;
    for (int32_t id = 0; id < f->data.formula.names.count; id++) {
        if (variables[id].kind == VARIABLE_NONE) {
            continue;
        }
        if (variables[id].kind != f->data.variables[id].kind ||
            variables[id].n_factors != f->data.variables[id].n_factors) {
            const frg_column *const c =
                variables[id].n_factors ? variables[id].factor[0] : variables[id].number.column;
            if (c && !frgi_column_has_values(c)) {
                *none = true;
                continue;
            }
            FAIL(f->ctx, E_TYPE,
                 "prediction: '%s' was %s when the model was fitted and is %s in these data",
                 frgi_names_text(&f->data.formula.names, id),
                 f->data.variables[id].kind == VARIABLE_NUMBER ? "a number" : "a category",
                 variables[id].kind == VARIABLE_NUMBER ? "a number" : "a category");
        }
    }
    return FRG_OK;
}

static void flag_unseen(const predictor *p, const frgi_variable *variables,
                        const frgi_factor_codes *codes)
{
    for (int32_t id = 0; id < p->f->data.formula.names.count; id++) {
        for (int k = 0; k < variables[id].n_factors; k++) {
            for (int64_t i = 0; i < p->n; i++) {
                p->why[i] |= codes[id].codes[k][i] == FRGI_LEVEL_UNSEEN ? UNSEEN : 0;
            }
        }
    }
}

/** Adds rows of regressor j, times its coefficient, or puts them into the matrix. */
static void take_block(const predictor *p, int j, int64_t begin, int64_t n, const double *x)
{
    if (p->matrix) {
        memcpy(p->matrix + j * p->n + begin, x, sizeof *x * (size_t)n);
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        p->out[begin + i] += p->f->fit.b[j] * x[i];
    }
}

static frg_status add_terms(const predictor *p)
{
    const frg_fe *const f = p->f;
    const frgi_formula formula = structural(f);
    frgi_variable *variables = NULL;
    frgi_factor_codes *codes = NULL;
    double *scratch = NULL, x[FRGI_BLOCK];
    bool none;
    frg_status status;
    TRY_TO(done, frgi_variables_create(&variables, f->ctx, &formula, p->table));
    TRY_TO(done, check_kinds(p, variables, &none));
    for (int64_t i = 0; i < p->n && none; i++) {
        p->why[i] = MISSING;
    }
    if (none) {
        goto done;
    }
    TRY_TO(done, frgi_design_match(&f->data.design, &codes, f->ctx, variables, p->n));
    flag_unseen(p, variables, codes);
    const int64_t cells = frgi_design_scratch(&f->data.design, variables);
    TRY_TO(done, NEW(f->ctx, &scratch, cells * FRGI_BLOCK, "predictions"));
    for (int j = 0; j < f->fit.k; j++) {
        const int32_t c = f->fit.column_of[j] - 1 - f->data.ones;
        for (int i = 0; i < FRGI_BLOCK && c < 0; i++) {
            x[i] = 1;
        }
        for (int64_t begin = 0; begin < p->n; begin += FRGI_BLOCK) {
            const int64_t n = p->n - begin < FRGI_BLOCK ? p->n - begin : FRGI_BLOCK;
            if (c >= 0) {
                frgi_design_block(&f->data.design, variables, codes, c, NULL, begin, n, x, scratch);
            }
            take_block(p, j, begin, n, x);
        }
    }
done:
    DROP(f->ctx, &scratch);
    frgi_factor_codes_free(&codes, f->ctx, f->data.design.n_variables);
    frgi_variables_destroy(&variables, f->ctx, &f->data.formula);
    return status;
}

/** out <- mean(out + offset), of a generalised linear model. */
static frg_status to_response(const predictor *p)
{
    const frg_fe *const f = p->f;
    frgi_program offset = {0};
    double *scratch = NULL, o[FRGI_BLOCK] = {0};
    const frgi_syntax *const s = &f->data.offset_text;
    frg_status status = FRG_OK;
    if (!f->glm.family) {
        return FRG_OK;
    }
    if (f->data.has_offset) {
        TRY_TO(done, frgi_program_create(&offset, f->ctx, s, s->section[0], p->table));
        TRY_TO(done, NEW(f->ctx, &scratch, ((int64_t)offset.stack + 1) * FRGI_BLOCK, "the offset"));
    }
    for (int64_t begin = 0; begin < p->n; begin += FRGI_BLOCK) {
        const int64_t n = p->n - begin < FRGI_BLOCK ? p->n - begin : FRGI_BLOCK;
        if (f->data.has_offset) {
            frgi_program_block(&offset, NULL, begin, n, o, scratch);
        }
        for (int64_t i = 0; i < n; i++) {
            p->out[begin + i] = f->glm.link->mean(p->out[begin + i] + o[i]);
        }
    }
done:
    DROP(f->ctx, &scratch);
    frgi_program_destroy(&offset, f->ctx);
    return status;
}

/** out <- the predictions, NaN in rows that have none. */
static void finish_rows(const predictor *p, double *out)
{
    for (int64_t i = 0; i < p->n; i++) {
        out[i] = p->why[i] ? (double)NAN : p->out[i];
    }
}

/** out <- the matrix, NaN in rows that have none. */
static void finish_matrix(const predictor *p, double *out)
{
    for (int j = 0; j < p->f->fit.k; j++) {
        for (int64_t i = 0; i < p->n; i++) {
            out[j * p->n + i] = p->why[i] ? (double)NAN : p->matrix[j * p->n + i];
        }
    }
}

/** Values beside the caller's array, so that a failure leaves that as it was. */
static frg_status predict(predictor *p, bool matrix, double *out, int64_t *n_unseen)
{
    frg_context *const ctx = p->f->ctx;
    TRY(NEW0(ctx, &p->why, p->n, "predictions"));
    if (matrix) {
        TRY(NEW(ctx, &p->matrix, p->n * p->f->fit.k, "regressors of new data"));
        TRY(add_terms(p));
        finish_matrix(p, out);
    } else {
        TRY(NEW0(ctx, &p->out, p->n, "predictions"));
        TRY(add_terms(p));
        TRY(add_effects(p));
        TRY(to_response(p));
        finish_rows(p, out);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < p->n; i++) {
        count += p->why[i] & UNSEEN ? 1 : 0;
    }
    if (n_unseen) {
        *n_unseen = count;
    }
    return FRG_OK;
}

static frg_status of_new_data(const frg_fe *f, bool matrix, const frg_table *data, double *out,
                              int64_t *n_unseen)
{
    frg_table *lagged;
    TRY(frgi_panel_extend(&lagged, f->ctx, &f->data.formula, data, f->data.panel, true, NULL));
    predictor p = {.f = f, .table = lagged ? lagged : data, .n = frg_table_rows(data)};
    const frg_status status = predict(&p, matrix, out, n_unseen);
    frg_table_destroy(lagged);
    DROP(f->ctx, &p.out);
    DROP(f->ctx, &p.matrix);
    DROP(f->ctx, &p.why);
    return status;
}

frg_status frg_fe_predict(const frg_fe *f, const frg_table *data, double *out, int64_t *n_unseen)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    REQUIRE(f->ctx, data && out, "frg_fe_predict takes a table and a place for its predictions");
    return of_new_data(f, false, data, out, n_unseen);
}

frg_status frg_fe_regressors(const frg_fe *f, const frg_table *data, double *out, int64_t *n_unseen)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    REQUIRE(f->ctx, data && out, "frg_fe_regressors takes a table and a place for the matrix");
    if (f->means.n) {
        FAIL(f->ctx, E_OPTION,
             "the coefficients of sunab() are means over cohorts, which have no columns: write "
             "sunab(cohort, period, no_agg=TRUE)");
    }
    return of_new_data(f, true, data, out, n_unseen);
}
