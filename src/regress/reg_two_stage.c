/* reg_two_stage.c - difference in differences by imputation, in two stages.
 *
 *     1. in the untreated rows:  y = X1 g + u            X1 = [x D], the first stage's columns
 *     2. in all rows:            y - X1 g = X2 b + e     X2 the formula's
 *
 * Both are moment conditions, sum_i w0_i X1_i u_i = 0 and sum_i w_i X2_i e_i = 0, w0 = w in
 * untreated rows and 0 in the others.  Stacked, b - beta = (X2'W X2)^-1 sum_i s_i with
 *
 *     s_i = w_i X2_i e_i - w0_i z_i u_i,   z = X1 (X1'W0 X1)^-1 X1'W X2
 *
 * so that covariances are those of one stage with other scores.  A column of z is the vector of
 * least norm with X1'W0 z = X1'W x2, which LSMR finds from W0^(1/2) X1 alone, scaled to unit
 * columns: there is no matrix of the dummies' size.  Where no z solves that, the untreated rows do
 * not tell what x2 asks for, and this is the test of it.
 *
 * Source: Gardner (2022), two-stage differences in differences; Newey and McFadden (1994), 6.1.
 */
#include "regress/reg_two_stage.h"

#include <math.h>
#include <string.h>

#include "io/io.h"
#include "regress/reg_vcov.h"
#include "sparse/lsmr.h"

static const double EXACT = 1e-12;       /* of LSMR */
static const double INCONSISTENT = 1e-6; /* of ||X1'W x2||: more than rounding and LSMR leave */
enum { STEPS = 20000 };
static const char untreated_name[] = "(untreated)", adjusted_name[] = "(less its first stage)";

/* ---- what is asked for ----------------------------------------------------------------------- */

/** "treat ~ x | unit + time": the name, and where the tilde stands. */
static frg_status read_text(frg_fe *f, char **treatment, const char **rest)
{
    const char *const text = f->policy.options.first_stage;
    frgi_syntax s = {0};
    frg_status status = frgi_syntax_formula(&s, f->ctx, text, (int64_t)strlen(text));
    if (status >= 0 && s.nodes[s.left].kind != NODE_NAME) {
        status =
            frgi_fail(f->ctx, E_FORMULA, __FILE__, __LINE__,
                      "first_stage '%s': the treatment, a column, stands left of the tilde", text);
    }
    if (status >= 0) {
        const frgi_node *const x = &s.nodes[s.left];
        status = frgi_strdup(f->ctx, treatment, text + x->name, (size_t)x->name_length);
        *rest = strchr(text + x->at + x->length, '~');
    }
    frgi_syntax_free(&s, f->ctx);
    return status;
}

frg_status frgi_two_stage_check(frg_fe *f)
{
    const frg_fe_opts *const o = &f->policy.options;
    const frgi_formula *const formula = &f->data.formula;
    if (!o->first_stage) {
        return FRG_OK;
    }
    if (formula->n_effects > 0) {
        FAIL(f->ctx, E_FORMULA, "with first_stage the formula has no effects: they stand in '%s'",
             o->first_stage);
    }
    const char *const beside = o->family != FRG_FAMILY_OLS ? "a family"
                               : formula->n_endogenous > 0 ? "instruments"
                               : f->data.lagged            ? "lags by a panel"
                               : o->store                  ? "a store of columns"
                                                           : NULL;
    if (beside) {
        FAIL(f->ctx, E_UNSUPPORTED, "first_stage beside %s", beside);
    }
    if (!o->ssc) {
        f->policy.ssc.adj = f->policy.ssc.cluster_adj = false;
    }
    TRY(frgi_strdup(f->ctx, &f->two_stage.text, o->first_stage, strlen(o->first_stage)));
    f->report.result.first_stage = f->two_stage.text;
    return FRG_OK;
}

/* ---- the first stage ------------------------------------------------------------------------- */

/** marks[i] <- 1 in the untreated rows of the frame, 0 in all others; NaN where that is missing. */
static frg_status mark_rows(const frg_fe *f, const frg_column *treatment, double *marks)
{
    const frgi_frame *const frame = &f->data.frame;
    int64_t treated = 0, untreated = 0;
    memset(marks, 0, sizeof *marks * (size_t)frame->n_rows);
    for (int64_t i = 0; i < frame->n; i++) {
        const int64_t row = frame->rows ? frame->rows[i] : i;
        double value;
        frgi_column_block(treatment, NULL, row, 1, &value);
        if (value != 0 && value != 1 && !isnan(value)) {
            frgi_at(f->ctx, "%s:%lld", treatment->name, (long long)row + 1);
            FAIL(f->ctx, E_TREATMENT, "treatment '%s', row %lld: %.15g is neither 0 nor 1",
                 treatment->name, (long long)row + 1, value);
        }
        treated += value == 1;
        untreated += value == 0;
        marks[row] = 1 - value;
    }
    if (untreated == 0) {
        FAIL(f->ctx, E_CONTROLS, "first_stage: every row in use is treated, '%s' is never 0",
             treatment->name);
    }
    if (treated == 0) {
        FAIL(f->ctx, E_TREATMENT, "first_stage: no row in use is treated, '%s' is never 1",
             treatment->name);
    }
    return FRG_OK;
}

static frg_status fit_first(frg_fe *f, const char *rest, frg_status *worst)
{
    frgi_fe_two_stage *const t = &f->two_stage;
    const frgi_syntax *const s = &f->data.formula.syntax;
    const frgi_node *const y = &s->nodes[s->left];
    frg_fe_opts o = f->policy.options;
    o.vcov[0] = "iid";
    o.n_vcov = 1;
    o.ssc = "adj=false";
    o.first_stage = o.split = o.split_value = o.fsplit = NULL;
    o.keep_effects = o.keep_singletons = 1; /* one row tells its level's effect */
    o.connected = FRG_CONNECTED_ALL;
    o.subset = "`(untreated)`";
    frgi_text text = {0};
    frg_status status =
        frgi_text_printf(f->ctx, &text, "%.*s %s", y->length, s->text + y->at, rest);
    if (status >= 0) {
        status = frgi_fe_fit_one(&t->first, f->ctx, text.text, t->table, &o, NULL);
        *worst = status > 0 ? status : *worst;
    }
    frgi_text_free(f->ctx, &text);
    if (status < 0 || !t->first) { /* or stopped */
        return status < 0 ? status : FRG_OK;
    }
    const frgi_formula *const first = &t->first->data.formula;
    if (first->n_slopes > 0 || first->n_endogenous > 0) {
        FAIL(f->ctx, E_UNSUPPORTED, "first_stage '%s': %s", t->text,
             first->n_slopes > 0 ? "varying slopes" : "instruments");
    }
    return status;
}

/** y in all rows of the table. */
static frg_status evaluate(const frg_fe *f, double *y)
{
    const int64_t n = f->data.frame.n_rows;
    double *scratch;
    TRY(NEW(f->ctx, &scratch, ((int64_t)f->data.depvar.stack + 1) * FRGI_BLOCK, "an outcome"));
    for (int64_t begin = 0; begin < n; begin += FRGI_BLOCK) {
        const int64_t m = n - begin < FRGI_BLOCK ? n - begin : FRGI_BLOCK;
        frgi_program_block(&f->data.depvar, NULL, begin, m, y + begin, scratch);
    }
    DROP(f->ctx, &scratch);
    return FRG_OK;
}

/** y <- y - X1 g in the rows of the frame; NaN where there is no prediction. */
static frg_status adjust(frg_fe *f, const double *marks, const double *predicted, double *y,
                         int64_t *uncompared)
{
    const frgi_frame *const frame = &f->data.frame;
    TRY(evaluate(f, y));
    *uncompared = 0;
    for (int64_t i = 0; i < frame->n; i++) {
        const int64_t row = frame->rows ? frame->rows[i] : i;
        *uncompared += isnan(predicted[row]) && !isnan(marks[row]);
        y[row] = isnan(marks[row]) ? (double)NAN : y[row] - predicted[row];
    }
    frgi_program_destroy(&f->data.depvar, f->ctx);
    TRY(frgi_table_borrow(&f->data.lagged, f->ctx, f->data.table));
    TRY(frg_table_add_numbers(f->data.lagged, adjusted_name, y));
    f->data.depvar = (frgi_program){.column = frg_table_find(f->data.lagged, adjusted_name)};
    if (*uncompared > 0) {
        frgi_warn(f->ctx, W_NO_COUNTERFACTUAL,
                  "%lld row%s left out: a level of an effect has no untreated row, or a regressor "
                  "of first_stage is missing",
                  (long long)*uncompared, *uncompared == 1 ? " is" : "s are");
    }
    return FRG_OK;
}

frg_status frgi_two_stage_first(frg_fe *f, int64_t *uncompared, frg_status *worst)
{
    frgi_fe_two_stage *const t = &f->two_stage;
    const int64_t n = f->data.frame.n_rows;
    char *name = NULL;
    const char *rest = NULL;
    double *marks = NULL, *predicted = NULL, *y = NULL;
    frg_status status;
    TRY_TO(done, read_text(f, &name, &rest));
    TRY_TO(done, frgi_column_named(&t->treatment, f->ctx, name, "treatment", f->data.table));
    if (t->treatment->kind == FRG_CATEGORY) {
        status = frgi_fail(f->ctx, E_TREATMENT, __FILE__, __LINE__,
                           "first_stage: the treatment '%s' holds text", name);
        goto done;
    }
    TRY_TO(done, NEW(f->ctx, &marks, n, "untreated rows"));
    TRY_TO(done, NEW(f->ctx, &predicted, n, "predictions of the first stage"));
    TRY_TO(done, NEW(f->ctx, &y, n, "an outcome"));
    TRY_TO(done, mark_rows(f, t->treatment, marks));
    TRY_TO(done, frgi_table_borrow(&t->table, f->ctx, f->data.table));
    TRY_TO(done, frg_table_add_numbers(t->table, untreated_name, marks));
    TRY_TO(done, fit_first(f, rest, worst));
    if (!t->first) {
        goto done;
    }
    f->report.result.n_first_stage = t->first->report.result.n;
    TRY_TO(done, frg_fe_predict(t->first, t->table, predicted, NULL));
    status = adjust(f, marks, predicted, y, uncompared);
done:
    DROP(f->ctx, &name);
    DROP(f->ctx, &marks);
    DROP(f->ctx, &predicted);
    DROP(f->ctx, &y);
    return status;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/** X1 over the rows of the second stage. */
typedef struct {
    frg_fe *f;
    int64_t n, n_zero;               /* rows; of them untreated */
    int64_t *zero;                   /* n_zero: which */
    double *root;                    /* n_zero: square roots of their weights */
    int n_effects, p;                /* effects; regressors of the first stage */
    int32_t *codes;                  /* n x n_effects */
    int64_t first[FRGI_EFFECTS + 1]; /* equations before those of an effect's levels */
    double *x;                       /* n x p */
    int64_t m;                       /* equations: levels and regressors */
    double *scale;                   /* m: 1 / norm of a column of W0^(1/2) X1 */
    frg_csr csr;                     /* S X1'W0^(1/2), m x n_zero */
    int64_t *starts;
    int32_t *columns;
    double *values;
    double *right, *u; /* m x k, n_zero x k */
} influence;

static frg_status find_untreated(influence *w)
{
    const frgi_frame *const frame = &w->f->data.frame;
    w->n = frame->n;
    TRY(NEW(w->f->ctx, &w->zero, w->n, "untreated rows"));
    TRY(NEW(w->f->ctx, &w->root, w->n, "untreated rows"));
    for (int64_t i = 0; i < w->n; i++) {
        double value;
        frgi_column_block(w->f->two_stage.treatment, frame->rows, i, 1, &value);
        if (value == 0) {
            w->root[w->n_zero] = frame->weights ? sqrt(frame->weights[i]) : 1;
            w->zero[w->n_zero++] = i;
        }
    }
    return FRG_OK;
}

/** The regressors of the first stage that it kept. */
static frg_status take_regressors(influence *w)
{
    const frg_fe *const first = w->f->two_stage.first;
    const frgi_frame *const frame = &w->f->data.frame;
    const int64_t n_rows = frame->n_rows;
    frgi_factor_codes *codes = NULL;
    double *scratch = NULL, block[FRGI_BLOCK];
    frg_status status;
    w->p = first->fit.k;
    TRY(NEW(w->f->ctx, &w->x, w->n * w->p, "regressors of the first stage"));
    TRY_TO(done, frgi_design_match(&first->data.design, &codes, w->f->ctx, first->data.variables,
                                   n_rows));
    const int64_t cells = frgi_design_scratch(&first->data.design, first->data.variables);
    TRY_TO(done, NEW(w->f->ctx, &scratch, cells * FRGI_BLOCK, "regressors of the first stage"));
    for (int j = 0; j < w->p; j++) {
        const int32_t c = first->fit.column_of[j] - 1 - first->data.ones;
        int64_t at = 0;
        for (int64_t begin = 0; begin < n_rows; begin += FRGI_BLOCK) {
            const int64_t m = n_rows - begin < FRGI_BLOCK ? n_rows - begin : FRGI_BLOCK;
            if (c >= 0) {
                frgi_design_block(&first->data.design, first->data.variables, codes, c, NULL, begin,
                                  m, block, scratch);
            }
            for (; at < w->n && (frame->rows ? frame->rows[at] : at) < begin + m; at++) {
                const int64_t row = frame->rows ? frame->rows[at] : at;
                w->x[j * w->n + at] = c >= 0 ? block[row - begin] : 1;
            }
        }
    }
done:
    DROP(w->f->ctx, &scratch);
    frgi_factor_codes_free(&codes, w->f->ctx, first->data.design.n_variables);
    return status;
}

static frg_status take_effects(influence *w)
{
    const frgi_frame *const first = &w->f->two_stage.first->data.frame;
    int64_t levels[FRGI_EFFECTS];
    w->n_effects = first->n_effects;
    TRY(NEW(w->f->ctx, &w->codes, w->n * w->n_effects, "codes of the first stage"));
    TRY(frgi_key_codes(w->f->ctx, first->keys, first->n_effects, w->f->data.frame.rows, w->n,
                       w->codes, levels));
    for (int q = 0; q < w->n_effects; q++) {
        w->first[q + 1] = w->first[q] + levels[q];
    }
    w->m = w->first[w->n_effects] + w->p;
    return FRG_OK;
}

/** Equation of row i in effect q. */
static int64_t equation(const influence *w, int q, int64_t i)
{
    return w->first[q] + w->codes[q * w->n + i];
}

/** Lengths of the equations into starts, their norms into scale. */
static void measure_equations(influence *w)
{
    const int64_t levels = w->first[w->n_effects];
    for (int64_t a = 0; a < w->n_zero; a++) {
        const int64_t i = w->zero[a];
        for (int q = 0; q < w->n_effects; q++) {
            w->starts[equation(w, q, i) + 1]++;
            w->scale[equation(w, q, i)] += w->root[a] * w->root[a];
        }
        for (int j = 0; j < w->p; j++) {
            const double x = w->root[a] * w->x[j * w->n + i];
            w->starts[levels + j + 1]++;
            w->scale[levels + j] += x * x;
        }
    }
    for (int64_t l = 0; l < w->m; l++) {
        w->starts[l + 1] += w->starts[l];
        w->scale[l] = w->scale[l] > 0 ? 1 / sqrt(w->scale[l]) : 0;
    }
}

static void put(influence *w, int64_t *at, int64_t l, int64_t a, double x)
{
    w->columns[at[l]] = (int32_t)a;
    w->values[at[l]++] = w->scale[l] * w->root[a] * x;
}

/** S X1'W0^(1/2) by rows. */
static frg_status fill_equations(influence *w)
{
    const int64_t levels = w->first[w->n_effects], entries = w->n_zero * (w->n_effects + w->p);
    int64_t *at;
    TRY(NEW0(w->f->ctx, &w->starts, w->m + 1, "the first stage"));
    TRY(NEW0(w->f->ctx, &w->scale, w->m, "the first stage"));
    TRY(NEW(w->f->ctx, &w->columns, entries, "the first stage"));
    TRY(NEW(w->f->ctx, &w->values, entries, "the first stage"));
    measure_equations(w);
    TRY(NEW(w->f->ctx, &at, w->m + 1, "the first stage"));
    memcpy(at, w->starts, sizeof *at * (size_t)w->m);
    for (int64_t a = 0; a < w->n_zero; a++) {
        for (int q = 0; q < w->n_effects; q++) {
            put(w, at, equation(w, q, w->zero[a]), a, 1);
        }
        for (int j = 0; j < w->p; j++) {
            put(w, at, levels + j, a, w->x[j * w->n + w->zero[a]]);
        }
    }
    DROP(w->f->ctx, &at);
    w->csr = (frg_csr){
        .m = w->m, .n = w->n_zero, .starts = w->starts, .columns = w->columns, .values = w->values};
    return FRG_OK;
}

/** S X1'W x2. */
static frg_status fill_right(influence *w)
{
    const frg_fe *const f = w->f;
    const int64_t levels = w->first[w->n_effects];
    TRY(NEW0(f->ctx, &w->right, w->m * f->fit.k, "the first stage"));
    for (int c = 0; c < f->fit.k; c++) {
        double *const right = w->right + c * w->m;
        for (int64_t i = 0; i < w->n; i++) {
            const double x =
                (f->data.frame.weights ? f->data.frame.weights[i] : 1) * f->fit.x[c][i];
            for (int q = 0; q < w->n_effects; q++) {
                right[equation(w, q, i)] += x;
            }
            for (int j = 0; j < w->p; j++) {
                right[levels + j] += x * w->x[j * w->n + i];
            }
        }
        for (int64_t l = 0; l < w->m; l++) {
            right[l] *= w->scale[l];
        }
    }
    return FRG_OK;
}

/** Does X1'W0 z = X1'W x2 hold? */
static frg_status check_solved(const influence *w, const frg_lsmr_column *columns)
{
    const frg_fe *const f = w->f;
    for (int c = 0; c < f->fit.k; c++) {
        double square = 0;
        for (int64_t l = 0; l < w->m; l++) {
            square += w->right[c * w->m + l] * w->right[c * w->m + l];
        }
        const bool ended =
            columns[c].stop != FRG_LSMR_MAX_ITER && columns[c].stop != FRG_LSMR_RUNNING;
        if (ended && columns[c].norm_r > INCONSISTENT * sqrt(square)) {
            FAIL(f->ctx, E_COUNTERFACTUAL,
                 "first_stage '%s': the effects of its untreated rows leave open what '%s' is "
                 "compared with",
                 f->two_stage.text, frgi_fe_column_name(f, f->fit.column_of[c]));
        }
    }
    return FRG_OK;
}

/** u = W0^(1/2) z, by LSMR. */
static frg_status solve(influence *w, frg_status *worst)
{
    frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    frg_lsmr_opts o;
    frg_lsmr_defaults(&o, sizeof o);
    o.atol = o.btol = EXACT;
    o.max_iter = STEPS;
    frg_lsmr_column *columns;
    TRY(NEW(f->ctx, &w->u, w->n_zero * k, "the first stage"));
    TRY(NEW(f->ctx, &columns, k + 1, "the first stage"));
    const frg_array right = frg_matrix_columns(w->right, FRG_F64, w->m, k, w->m);
    const frg_array u = frg_matrix_columns(w->u, FRG_F64, w->n_zero, k, w->n_zero);
    frg_status status = frgi_lsmr_solve(f->ctx, NULL, &w->csr, right, NULL, u, &o, columns, NULL);
    status = status < 0 ? status : check_solved(w, columns);
    for (int c = 0; c < k && status >= 0; c++) {
        *worst = columns[c].stop == FRG_LSMR_RUNNING    ? frgi_stopped(f->ctx)
                 : columns[c].stop == FRG_LSMR_MAX_ITER ? FRG_MAX_ITER
                                                        : *worst;
    }
    if (status >= 0 && *worst == FRG_MAX_ITER) {
        frgi_warn(f->ctx, W_NOT_CONVERGED, "the first stage's share in the standard errors");
    }
    DROP(f->ctx, &columns);
    return status;
}

/** s_i = w_i x_i e_i - w0_i z_i u_i into columns; u_i is y_i, which the first stage has left. */
static frg_status fill_scores(influence *w)
{
    frg_fe *const f = w->f;
    const double *const weights = f->data.frame.weights, *const y = f->matrix.columns[0];
    TRY(NEW(f->ctx, &f->two_stage.scores, w->n * f->fit.k, "scores"));
    for (int c = 0; c < f->fit.k; c++) {
        double *const s = f->two_stage.scores + c * w->n;
        for (int64_t i = 0; i < w->n; i++) {
            s[i] = (weights ? weights[i] : 1) * f->fit.x[c][i] * f->fit.e[i];
        }
        for (int64_t a = 0; a < w->n_zero; a++) {
            s[w->zero[a]] -= w->root[a] * w->u[c * w->n_zero + a] * y[w->zero[a]];
        }
    }
    return FRG_OK;
}

frg_status frgi_two_stage_scores(frg_fe *f, frg_status *worst)
{
    influence w = {.f = f};
    frg_status status;
    TRY_TO(done, find_untreated(&w));
    TRY_TO(done, take_regressors(&w));
    TRY_TO(done, take_effects(&w));
    TRY_TO(done, fill_equations(&w));
    TRY_TO(done, fill_right(&w));
    TRY_TO(done, solve(&w, worst));
    status = fill_scores(&w);
done:
    DROP(f->ctx, &w.zero);
    DROP(f->ctx, &w.root);
    DROP(f->ctx, &w.codes);
    DROP(f->ctx, &w.x);
    DROP(f->ctx, &w.scale);
    DROP(f->ctx, &w.starts);
    DROP(f->ctx, &w.columns);
    DROP(f->ctx, &w.values);
    DROP(f->ctx, &w.right);
    DROP(f->ctx, &w.u);
    frg_fe_destroy(f->two_stage.first);
    frg_table_destroy(f->two_stage.table);
    f->two_stage.first = NULL;
    f->two_stage.table = NULL;
    return status;
}

void frgi_two_stage_destroy(frg_fe *f)
{
    frg_fe_destroy(f->two_stage.first);
    frg_table_destroy(f->two_stage.table);
    DROP(f->ctx, &f->two_stage.scores);
    DROP(f->ctx, &f->two_stage.text);
}
