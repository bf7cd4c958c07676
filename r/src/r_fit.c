/* r_fit.c - frg_fe_fit and what is read from a fit. */
#include "fourge_r.h"

#include <string.h>

static SEXP vcov_as_list(const frg_fe_result *fit, const frg_fe_vcov *v)
{
    const int k = fit->n_coefficients;
    r_list l = r_list_new(11);
    SEXP matrix = PROTECT(Rf_allocMatrix(REALSXP, k, k));
    memcpy(REAL(matrix), v->matrix, sizeof(double) * (size_t)k * (size_t)k); /* symmetric */
    SEXP errors = PROTECT(Rf_allocMatrix(REALSXP, k, 6));
    for (int j = 0; j < k; j++) {
        const frg_coefficient *c = &v->coefficients[j];
        const double row[6] = {c->estimate, c->std_error, c->statistic,
                               c->p_value,  c->conf_low,  c->conf_high};
        for (int i = 0; i < 6; i++) {
            REAL(errors)[j + i * k] = row[i];
        }
    }
    SEXP counts = PROTECT(Rf_allocVector(REALSXP, v->n_clusters));
    for (int i = 0; i < v->n_clusters; i++) {
        REAL(counts)[i] = (double)v->cluster_count[i];
    }
    r_list_add(&l, "spec", Rf_mkString(v->spec));
    r_list_add(&l, "type", Rf_mkString(v->type));
    r_list_add(&l, "clusters", r_strings(v->cluster_name, v->n_clusters));
    r_list_add(&l, "counts", counts);
    r_list_add(&l, "df_t", Rf_ScalarReal(v->df_t));
    SEXP df = PROTECT(v->df ? Rf_allocVector(REALSXP, k) : R_NilValue);
    if (v->df) {
        memcpy(REAL(df), v->df, sizeof(double) * (size_t)k);
    }
    r_list_add(&l, "df", df);
    r_list_add(&l, "k", Rf_ScalarReal((double)v->k));
    r_list_add(&l, "ssc", Rf_mkString(v->ssc));
    r_list_add(&l, "matrix", matrix);
    r_list_add(&l, "errors", errors);
    r_list_add(&l, "wald_f", Rf_ScalarReal(v->wald_f));
    UNPROTECT(6);
    return l.list;
}

static SEXP names_of_terms(const frg_fe_result *fit)
{
    SEXP out = PROTECT(Rf_allocVector(STRSXP, fit->n_coefficients));
    for (int j = 0; j < fit->n_coefficients; j++) {
        SET_STRING_ELT(out, j, Rf_mkCharCE(fit->coefficients[j].term, CE_UTF8));
    }
    UNPROTECT(1);
    return out;
}

static SEXP dropped_terms(const frg_fe_result *fit)
{
    SEXP reasons = PROTECT(Rf_allocVector(STRSXP, fit->n_dropped));
    SEXP names = PROTECT(Rf_allocVector(STRSXP, fit->n_dropped));
    for (int j = 0; j < fit->n_dropped; j++) {
        SET_STRING_ELT(reasons, j, Rf_mkCharCE(fit->dropped[j].reason, CE_UTF8));
        SET_STRING_ELT(names, j, Rf_mkCharCE(fit->dropped[j].term, CE_UTF8));
    }
    Rf_setAttrib(reasons, R_NamesSymbol, names);
    UNPROTECT(2);
    return reasons;
}

static SEXP numbers_of(const frg_fe_result *fit)
{
    const struct {
        const char *name;
        double value;
    } rows[] = {
        {"n", (double)fit->n},
        {"n_rows", (double)fit->n_rows},
        {"n_missing", (double)fit->n_missing},
        {"n_subset", (double)fit->n_subset},
        {"n_zero_weight", (double)fit->n_zero_weight},
        {"n_singleton", (double)fit->n_singleton},
        {"rank", (double)fit->rank},
        {"df_residual", (double)fit->df_residual},
        {"r2", fit->r2},
        {"r2_adjusted", fit->r2_adjusted},
        {"r2_within", fit->r2_within},
        {"rmse", fit->rmse},
        {"rss", fit->rss},
        {"tss", fit->tss},
    };
    const int n = (int)(sizeof rows / sizeof *rows);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
    SEXP names = PROTECT(Rf_allocVector(STRSXP, n));
    for (int i = 0; i < n; i++) {
        REAL(out)[i] = rows[i].value;
        SET_STRING_ELT(names, i, Rf_mkChar(rows[i].name));
    }
    Rf_setAttrib(out, R_NamesSymbol, names);
    UNPROTECT(2);
    return out;
}

/* The largest audit of the demeaned columns; 0 without effects. */
static double largest_audit(const frg_fe_result *fit)
{
    double largest = 0;
    for (int64_t c = 0; c < fit->n_demeaned; c++) {
        largest = fit->columns[c].audit > largest ? fit->columns[c].audit : largest;
    }
    return largest;
}

/* What a generalised linear model has beside; NULL for least squares. */
static SEXP glm_as_list(const frg_fe_glm *g)
{
    if (!g) {
        return R_NilValue;
    }
    r_list l = r_list_new(12);
    SEXP separated = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)g->n_separated));
    for (int64_t i = 0; i < g->n_separated; i++) {
        REAL(separated)[i] = (double)g->separated[i] + 1;
    }
    r_list_add(&l, "family", Rf_mkString(g->family));
    r_list_add(&l, "link", Rf_mkString(g->link));
    r_list_add(&l, "separated", separated);
    r_list_add(&l, "iterations", Rf_ScalarInteger(g->iterations));
    r_list_add(&l, "deviance", Rf_ScalarReal(g->deviance));
    r_list_add(&l, "null_deviance", Rf_ScalarReal(g->null_deviance));
    r_list_add(&l, "log_likelihood", Rf_ScalarReal(g->log_likelihood));
    r_list_add(&l, "pseudo_r2", Rf_ScalarReal(g->pseudo_r2));
    r_list_add(&l, "aic", Rf_ScalarReal(g->aic));
    r_list_add(&l, "bic", Rf_ScalarReal(g->bic));
    r_list_add(&l, "theta", Rf_ScalarReal(g->theta));
    r_list_add(&l, "theta_std_error", Rf_ScalarReal(g->theta_std_error));
    UNPROTECT(3);
    return l.list;
}

static SEXP fit_as_list(const r_object *o, SEXP pointer)
{
    const frg_fe_result *fit = frg_fe_get(o->fit);
    r_list l = r_list_new(13);
    SEXP vcovs = PROTECT(Rf_allocVector(VECSXP, fit->n_vcov));
    for (int i = 0; i < fit->n_vcov; i++) {
        SET_VECTOR_ELT(vcovs, i, vcov_as_list(fit, &fit->vcov[i]));
    }
    SEXP levels = PROTECT(Rf_allocVector(REALSXP, fit->n_factors));
    for (int i = 0; i < fit->n_factors; i++) {
        REAL(levels)[i] = (double)fit->factor_levels[i];
    }
    Rf_setAttrib(levels, R_NamesSymbol, r_strings(fit->factor_name, fit->n_factors));
    r_list_add(&l, "pointer", pointer);
    r_list_add(&l, "depvar", Rf_ScalarString(Rf_mkCharCE(fit->depvar, CE_UTF8)));
    r_list_add(&l, "terms", names_of_terms(fit));
    r_list_add(&l, "numbers", numbers_of(fit));
    r_list_add(&l, "levels", levels);
    r_list_add(&l, "dropped", dropped_terms(fit));
    r_list_add(&l, "vcovs", vcovs);
    r_list_add(&l, "converged", Rf_ScalarLogical(fit->converged));
    r_list_add(&l, "method", Rf_mkString(fit->n_factors ? fit->demean.method : "none"));
    r_list_add(&l, "audit", Rf_ScalarReal(largest_audit(fit)));
    r_list_add(&l, "seconds", Rf_ScalarReal(fit->total_seconds));
    r_list_add(&l, "glm", glm_as_list(fit->glm));
    r_list_add(&l, "warnings", r_warnings(o));
    UNPROTECT(4);
    return l.list;
}

/* The texts point into R's strings and R_alloc's memory: alive until .Call returns, as the call asks. */
SEXP R_fourge_fit(SEXP formula, SEXP columns, SEXP options, SEXP threads, SEXP time_limit)
{
    SEXP pointer = PROTECT(r_object_new(columns, Rf_asInteger(threads), Rf_asReal(time_limit)));
    r_object *o = r_object_of(pointer);
    frg_fe_opts opts;
    r_fit_options(&opts, options);
    r_table(o, columns, &o->table);
    const char *text = Rf_translateCharUTF8(STRING_ELT(formula, 0));
    r_check(o, frg_fe_fit(&o->fit, o->ctx, text, o->table, &opts));
    if (!o->fit) {
        Rf_error("the fit was stopped before it had estimates");
    }
    SEXP out = fit_as_list(o, pointer);
    UNPROTECT(1);
    return out;
}

typedef struct {
    SEXP names;
    int n;
} name_collector;

static void collect(const char *name, void *user)
{
    name_collector *c = user;
    if (c->names != R_NilValue) {
        SET_STRING_ELT(c->names, c->n, Rf_mkCharCE(name, CE_UTF8));
    }
    c->n++;
}

/* The names of the columns that a fit reads; one may come twice. */
SEXP R_fourge_columns(SEXP formula, SEXP options)
{
    SEXP pointer = PROTECT(r_object_new(R_NilValue, 1, 0));
    const r_object *o = r_object_of(pointer);
    frg_fe_opts opts;
    r_fit_options(&opts, options);
    const char *text = Rf_translateCharUTF8(STRING_ELT(formula, 0));
    name_collector c = {R_NilValue, 0};
    r_check(o, frg_fe_columns(o->ctx, text, &opts, collect, &c));
    c = (name_collector){PROTECT(Rf_allocVector(STRSXP, c.n)), 0};
    r_check(o, frg_fe_columns(o->ctx, text, &opts, collect, &c));
    UNPROTECT(2);
    return c.names;
}

/* Another covariance of the same fit. */
SEXP R_fourge_vcov(SEXP pointer, SEXP spec, SEXP ssc)
{
    const r_object *o = r_object_of(pointer);
    const frg_fe_vcov *v = NULL;
    const char *rules = ssc == R_NilValue ? NULL : CHAR(STRING_ELT(ssc, 0));
    r_check(o, frg_fe_vcov_add(o->fit, Rf_translateCharUTF8(STRING_ELT(spec, 0)), rules, &v));
    r_list l = r_list_new(2);
    r_list_add(&l, "vcov", vcov_as_list(frg_fe_get(o->fit), v));
    r_list_add(&l, "warnings", r_warnings(o));
    UNPROTECT(2);
    return l.list;
}

/* list(residuals, fitted), one value a row of the data, NaN where a row was dropped */
SEXP R_fourge_residuals(SEXP pointer)
{
    const r_object *o = r_object_of(pointer);
    const R_xlen_t n = (R_xlen_t)frg_fe_get(o->fit)->n_rows;
    r_list l = r_list_new(2);
    SEXP residuals = PROTECT(Rf_allocVector(REALSXP, n));
    SEXP fitted = PROTECT(Rf_allocVector(REALSXP, n));
    r_check(o, frg_fe_residuals(o->fit, REAL(residuals), REAL(fitted)));
    r_list_add(&l, "residuals", residuals);
    r_list_add(&l, "fitted", fitted);
    UNPROTECT(4);
    return l.list;
}

SEXP R_fourge_predict(SEXP pointer, SEXP columns)
{
    const r_object *o = r_object_of(pointer);
    SEXP holder = PROTECT(r_object_new(columns, 1, 0));
    r_object *data = r_object_of(holder);
    r_table(data, columns, &data->table);
    SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)frg_table_rows(data->table)));
    int64_t unseen = 0;
    r_check(o, frg_fe_predict(o->fit, data->table, REAL(out), &unseen));
    r_list l = r_list_new(2);
    r_list_add(&l, "values", out);
    r_list_add(&l, "unseen", Rf_ScalarReal((double)unseen));
    UNPROTECT(4);
    return l.list;
}

static SEXP column_as_vector(const frg_column *c)
{
    SEXP out;
    if (c->kind == FRG_CATEGORY) {
        out = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)c->n));
        for (int64_t i = 0; i < c->n; i++) {
            SET_STRING_ELT(out, (R_xlen_t)i,
                           c->codes[i] < 0 ? NA_STRING
                                           : Rf_mkCharCE(c->labels[c->codes[i]], CE_UTF8));
        }
    } else {
        out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)c->n));
        for (int64_t i = 0; i < c->n; i++) {
            REAL(out)
            [i] = c->kind == FRG_NUMBER    ? c->numbers[i]
                  : c->kind == FRG_INTEGER ? (double)c->integers[i]
                                           : (double)c->codes[i];
        }
    }
    UNPROTECT(1);
    return out;
}

/* The effects as a list of columns: factor, level, effect, identified */
SEXP R_fourge_effects(SEXP pointer)
{
    r_object *o = r_object_of(pointer);
    frg_table *effects = NULL;
    r_check(o, frg_fe_effects(o->fit, &effects));
    frg_table_destroy(o->effects);
    o->effects = effects;
    const int p = (int)frg_table_columns(effects);
    r_list l = r_list_new(p);
    for (int j = 0; j < p; j++) {
        const frg_column *c = frg_table_column(effects, j);
        r_list_add(&l, c->name, column_as_vector(c));
    }
    UNPROTECT(2);
    return l.list;
}
