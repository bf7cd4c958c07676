/* r_results.c - what is asked of a fit: covariances, joint tests, values of rows, effects, variance
 * components. */
#include "fourge_r.h"

#include <string.h>

SEXP r_terms(const frg_coefficient *c, int n)
{
    SEXP out = PROTECT(Rf_allocVector(STRSXP, n));
    for (int j = 0; j < n; j++) {
        SET_STRING_ELT(out, j, Rf_mkCharCE(c[j].term, CE_UTF8));
    }
    UNPROTECT(1);
    return out;
}

SEXP r_coefficients(const frg_coefficient *c, int n)
{
    SEXP out = Rf_allocMatrix(REALSXP, n, 6);
    for (int j = 0; j < n; j++) {
        const double row[6] = {c[j].estimate, c[j].std_error, c[j].statistic,
                               c[j].p_value,  c[j].conf_low,  c[j].conf_high};
        for (int i = 0; i < 6; i++) {
            REAL(out)[j + i * n] = row[i];
        }
    }
    return out;
}

static SEXP square(const double *matrix, int k)
{
    SEXP out = Rf_allocMatrix(REALSXP, k, k);
    if (k) {
        memcpy(REAL(out), matrix, sizeof(double) * (size_t)k * (size_t)k); /* symmetric */
    }
    return out;
}

static SEXP counts_of(const frg_fe_vcov *v)
{
    SEXP out = Rf_allocVector(REALSXP, v->n_clusters);
    for (int i = 0; i < v->n_clusters; i++) {
        REAL(out)[i] = (double)v->cluster_count[i];
    }
    return out;
}

/* Of each coefficient's t; NULL where df_t is that of all. */
static SEXP degrees_of(const frg_fe_vcov *v, int k)
{
    SEXP out = v->df ? Rf_allocVector(REALSXP, k) : R_NilValue;
    for (int i = 0; v->df && i < k; i++) {
        REAL(out)[i] = v->df[i];
    }
    return out;
}

SEXP r_vcov(const frg_fe_result *fit, const frg_fe_vcov *v)
{
    const int k = fit->n_coefficients;
    r_list l = r_list_new(14);
    r_list_add(&l, "spec", Rf_mkString(v->spec));
    r_list_add(&l, "type", Rf_mkString(v->type));
    r_list_add(&l, "clusters", r_strings(v->cluster_name, v->n_clusters));
    r_list_add(&l, "counts", counts_of(v));
    r_list_add(&l, "df_t", Rf_ScalarReal(v->df_t));
    r_list_add(&l, "df", degrees_of(v, k));
    r_list_add(&l, "k", Rf_ScalarReal((double)v->k));
    r_list_add(&l, "k_naive", Rf_ScalarReal((double)v->k_naive));
    r_list_add(&l, "ssc", Rf_mkString(v->ssc));
    r_list_add(&l, "projected", Rf_ScalarLogical(v->projected));
    r_list_add(&l, "reps", Rf_ScalarReal((double)v->reps));
    r_list_add(&l, "matrix", square(v->matrix, k));
    r_list_add(&l, "errors", r_coefficients(v->coefficients, k));
    r_list_add(&l, "wald_f", Rf_ScalarReal(v->wald_f));
    UNPROTECT(2);
    return l.list;
}

/* Another covariance of the same fit; spec NULL: its first. */
static const frg_fe_vcov *covariance(const r_object *o, SEXP spec, SEXP ssc)
{
    const frg_fe_vcov *v = &frg_fe_get(o->fit)->vcov[0];
    if (spec != R_NilValue) {
        const char *rules = ssc == R_NilValue ? NULL : CHAR(STRING_ELT(ssc, 0));
        r_check(o, frg_fe_vcov_add(o->fit, Rf_translateCharUTF8(STRING_ELT(spec, 0)), rules, &v));
    }
    return v;
}

SEXP R_fourge_vcov(SEXP pointer, SEXP spec, SEXP ssc)
{
    const r_object *o = r_object_of(pointer);
    const frg_fe_vcov *v = covariance(o, spec, ssc);
    r_list l = r_list_new(2);
    r_list_add(&l, "vcov", r_vcov(frg_fe_get(o->fit), v));
    r_list_add(&l, "warnings", r_warnings(o));
    UNPROTECT(2);
    return l.list;
}

/* The joint test of r b = q, r with a column for each restriction. */
SEXP R_fourge_wald(SEXP pointer, SEXP spec, SEXP ssc, SEXP r, SEXP q)
{
    const r_object *o = r_object_of(pointer);
    frg_fe_test test;
    r_check(o, frg_fe_wald(o->fit, covariance(o, spec, ssc), REAL(r), REAL(q), Rf_ncols(r), &test));
    const r_number rows[] = {
        {"wald", test.wald}, {"f", test.f},     {"df1", (double)test.df1},
        {"df2", test.df2},   {"p_f", test.p_f}, {"p_chi2", test.p_chi2},
    };
    return r_named(rows, (int)(sizeof rows / sizeof *rows));
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

/* One of "link", "response", "working", "pearson", "deviance", "weight" of each row of the data. */
SEXP R_fourge_glm_values(SEXP pointer, SEXP what)
{
    static const char *const names[] = {"link",    "response", "working",
                                        "pearson", "deviance", "weight"};
    const r_object *o = r_object_of(pointer);
    int place = 0;
    while (place < FRG_GLM_WEIGHT && strcmp(names[place], CHAR(STRING_ELT(what, 0)))) {
        place++;
    }
    SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)frg_fe_get(o->fit)->n_rows));
    r_check(o, frg_fe_glm_values(o->fit, (frg_glm_value)place, REAL(out)));
    UNPROTECT(1);
    return out;
}

/* The columns of new data as a table, which lives as long as the pointer that comes back. */
static SEXP new_data(SEXP columns, frg_table **table)
{
    SEXP holder = PROTECT(r_object_new(columns, 1, 0));
    r_object *data = r_object_of(holder);
    r_table(data, columns, &data->home->table);
    *table = data->home->table;
    UNPROTECT(1);
    return holder;
}

static SEXP values_and_unseen(SEXP values, int64_t unseen)
{
    r_list l = r_list_new(2);
    r_list_add(&l, "values", values);
    r_list_add(&l, "unseen", Rf_ScalarReal((double)unseen));
    UNPROTECT(2);
    return l.list;
}

SEXP R_fourge_predict(SEXP pointer, SEXP columns)
{
    const r_object *o = r_object_of(pointer);
    frg_table *table = NULL;
    PROTECT(new_data(columns, &table));
    SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)frg_table_rows(table)));
    int64_t unseen = 0;
    r_check(o, frg_fe_predict(o->fit, table, REAL(out), &unseen));
    out = values_and_unseen(out, unseen);
    UNPROTECT(2);
    return out;
}

/* The regressors of new data, a column for each coefficient. */
SEXP R_fourge_regressors(SEXP pointer, SEXP columns)
{
    const r_object *o = r_object_of(pointer);
    frg_table *table = NULL;
    PROTECT(new_data(columns, &table));
    const int k = frg_fe_get(o->fit)->n_coefficients;
    SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int)frg_table_rows(table), k));
    int64_t unseen = 0;
    r_check(o, frg_fe_regressors(o->fit, table, REAL(out), &unseen));
    out = values_and_unseen(out, unseen);
    UNPROTECT(2);
    return out;
}

static SEXP words_of(const frg_column *c)
{
    SEXP out = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)c->n));
    for (int64_t i = 0; i < c->n; i++) {
        SET_STRING_ELT(out, (R_xlen_t)i,
                       c->codes[i] < 0 ? NA_STRING : Rf_mkCharCE(c->labels[c->codes[i]], CE_UTF8));
    }
    UNPROTECT(1);
    return out;
}

static SEXP column_as_vector(const frg_column *c)
{
    if (c->kind == FRG_CATEGORY) {
        return words_of(c);
    }
    SEXP out = Rf_allocVector(REALSXP, (R_xlen_t)c->n);
    for (int64_t i = 0; i < c->n; i++) {
        REAL(out)
        [i] = c->kind == FRG_NUMBER    ? c->numbers[i]
              : c->kind == FRG_INTEGER ? (double)c->integers[i]
                                       : (double)c->codes[i];
    }
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

static SEXP components(const frg_variance_components *c)
{
    const r_number rows[] = {
        {"first", c->first},           {"second", c->second},
        {"covariance", c->covariance}, {"correlation", c->correlation},
        {"explained", c->explained},
    };
    return r_named(rows, (int)(sizeof rows / sizeof *rows));
}

static SEXP sizes_of(const frg_leave_out *v)
{
    const r_number rows[] = {
        {"n", (double)v->n},
        {"first", (double)v->n_first},
        {"second", (double)v->n_second},
        {"movers", (double)v->n_movers},
        {"matches", (double)v->n_matches},
        {"outcome_variance", v->outcome_variance},
        {"error_variance", v->error_variance},
        {"leverage_max", v->leverage_max},
        {"draws", (double)v->draws},
    };
    return r_named(rows, (int)(sizeof rows / sizeof *rows));
}

/* Leave-out variance components of two effects. */
SEXP R_fourge_leave_out(SEXP pointer, SEXP options)
{
    const r_object *o = r_object_of(pointer);
    frg_leave_out_opts opts;
    r_leave_out_options(&opts, options);
    frg_leave_out found;
    const frg_status status = frg_fe_leave_out(o->fit, &opts, &found);
    r_check(o, status);
    if (status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT) {
        Rf_error("the variance components were stopped before they were there");
    }
    const char *const names[] = {found.first, found.second};
    r_list l = r_list_new(12);
    r_list_add(&l, "effects", r_strings(names, 2));
    r_list_add(&l, "leave_out", r_word(found.leave_out));
    r_list_add(&l, "leverage", r_word(found.leverage));
    r_list_add(&l, "converged", Rf_ScalarLogical(status == FRG_OK));
    r_list_add(&l, "sizes", sizes_of(&found));
    r_list_add(&l, "plug_in", components(&found.plug_in));
    r_list_add(&l, "homoscedastic", components(&found.homoscedastic));
    r_list_add(&l, "corrected", components(&found.corrected));
    r_list_add(&l, "homoscedastic_error", components(&found.homoscedastic_error));
    r_list_add(&l, "corrected_error", components(&found.corrected_error));
    r_list_add(&l, "sampling_error", components(&found.sampling_error));
    r_list_add(&l, "warnings", r_warnings(o));
    UNPROTECT(2);
    return l.list;
}
