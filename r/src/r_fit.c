/* r_fit.c - frg_fe_fit and frg_fe_fit_many, whose fits become lists. */
#include "fourge_r.h"

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
    const r_number rows[] = {
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
    return r_named(rows, (int)(sizeof rows / sizeof *rows));
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
    r_list l = r_list_new(13);
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
    r_list_add(&l, "null_log_likelihood", Rf_ScalarReal(g->null_log_likelihood));
    r_list_add(&l, "pseudo_r2", Rf_ScalarReal(g->pseudo_r2));
    r_list_add(&l, "aic", Rf_ScalarReal(g->aic));
    r_list_add(&l, "bic", Rf_ScalarReal(g->bic));
    r_list_add(&l, "theta", Rf_ScalarReal(g->theta));
    r_list_add(&l, "theta_std_error", Rf_ScalarReal(g->theta_std_error));
    UNPROTECT(3);
    return l.list;
}

/* The points of an event study: times, and the places of their coefficients, 0 for a reference. */
static SEXP events_of(const frg_fe_result *fit)
{
    SEXP times = PROTECT(Rf_allocVector(REALSXP, fit->n_events));
    SEXP places = PROTECT(Rf_allocVector(INTSXP, fit->n_events));
    for (int i = 0; i < fit->n_events; i++) {
        REAL(times)[i] = fit->events[i].time;
        INTEGER(places)[i] = fit->events[i].coefficient + 1;
    }
    r_list l = r_list_new(2);
    r_list_add(&l, "time", times);
    r_list_add(&l, "coefficient", places);
    UNPROTECT(4);
    return l.list;
}

/* c(column, level) of the sample; without the level of all rows; NULL: not split. */
static SEXP sample_of(const frg_fe_result *fit)
{
    const char *const words[] = {fit->split_name, fit->split_value};
    return fit->split_name ? r_strings(words, fit->split_value ? 2 : 1) : R_NilValue;
}

static SEXP vcovs_of(const frg_fe_result *fit)
{
    SEXP vcovs = PROTECT(Rf_allocVector(VECSXP, fit->n_vcov));
    for (int i = 0; i < fit->n_vcov; i++) {
        SET_VECTOR_ELT(vcovs, i, r_vcov(fit, &fit->vcov[i]));
    }
    UNPROTECT(1);
    return vcovs;
}

static SEXP levels_of(const frg_fe_result *fit)
{
    SEXP levels = PROTECT(Rf_allocVector(REALSXP, fit->n_factors));
    for (int i = 0; i < fit->n_factors; i++) {
        REAL(levels)[i] = (double)fit->factor_levels[i];
    }
    Rf_setAttrib(levels, R_NamesSymbol, r_strings(fit->factor_name, fit->n_factors));
    UNPROTECT(1);
    return levels;
}

static SEXP fit_as_list(SEXP pointer)
{
    const frg_fe_result *fit = frg_fe_get(r_object_of(pointer)->fit);
    r_list l = r_list_new(17);
    r_list_add(&l, "pointer", pointer);
    r_list_add(&l, "text", r_word(fit->formula));
    r_list_add(&l, "depvar", r_word(fit->depvar));
    r_list_add(&l, "sample", sample_of(fit));
    r_list_add(&l, "terms", r_terms(fit->coefficients, fit->n_coefficients));
    r_list_add(&l, "numbers", numbers_of(fit));
    r_list_add(&l, "levels", levels_of(fit));
    r_list_add(&l, "dropped", dropped_terms(fit));
    r_list_add(&l, "vcovs", vcovs_of(fit));
    r_list_add(&l, "converged", Rf_ScalarLogical(fit->converged));
    r_list_add(&l, "method", Rf_mkString(fit->n_factors ? fit->demean.method : "none"));
    r_list_add(&l, "audit", Rf_ScalarReal(largest_audit(fit)));
    r_list_add(&l, "seconds", Rf_ScalarReal(fit->total_seconds));
    r_list_add(&l, "glm", glm_as_list(fit->glm));
    r_list_add(&l, "iv", r_instruments(fit));
    r_list_add(&l, "events", events_of(fit));
    r_list_add(&l, "first_stage", r_word(fit->first_stage));
    UNPROTECT(2);
    return l.list;
}

/* The fits of several models, each in an object beside `first`, which has the first. */
static SEXP take_all(SEXP first)
{
    r_home *home = r_object_of(first)->home;
    const int n = (int)frg_fe_many_count(home->many);
    SEXP pointers = PROTECT(Rf_allocVector(VECSXP, n));
    for (int i = 0; i < n; i++) {
        SET_VECTOR_ELT(pointers, i, i ? r_object_beside(first) : first);
        r_object_of(VECTOR_ELT(pointers, i))->fit = frg_fe_many_take(home->many, i);
    }
    frg_fe_many_destroy(home->many);
    home->many = NULL;
    UNPROTECT(1);
    return pointers;
}

static SEXP fit_all(SEXP pointer, const char *formula, const frg_fe_opts *opts, int several)
{
    r_object *o = r_object_of(pointer);
    SEXP pointers = R_NilValue;
    if (several) {
        r_home *home = o->home;
        r_check(o, frg_fe_fit_many(&home->many, home->ctx, formula, home->table, opts));
        pointers = home->many ? take_all(pointer) : pointers;
    } else {
        r_check(o, frg_fe_fit(&o->fit, o->home->ctx, formula, o->home->table, opts));
        if (o->fit) {
            pointers = Rf_allocVector(VECSXP, 1);
            SET_VECTOR_ELT(pointers, 0, pointer);
        }
    }
    if (pointers == R_NilValue) {
        Rf_error("the fit was stopped before it had estimates");
    }
    return pointers;
}

/* list(fits, warnings): a fit for each model.  The texts point into R's strings and R_alloc's
 * memory: alive until .Call returns, as the call asks. */
SEXP R_fourge_fit(SEXP formula, SEXP columns, SEXP options, SEXP several, SEXP threads,
                  SEXP time_limit)
{
    SEXP pointer = PROTECT(r_object_new(columns, Rf_asInteger(threads), Rf_asReal(time_limit)));
    r_object *o = r_object_of(pointer);
    frg_fe_opts opts;
    r_fit_options(&opts, options);
    r_table(o, columns, &o->home->table);
    const char *text = Rf_translateCharUTF8(STRING_ELT(formula, 0));
    SEXP pointers = PROTECT(fit_all(pointer, text, &opts, Rf_asLogical(several)));
    SEXP fits = PROTECT(Rf_allocVector(VECSXP, Rf_length(pointers)));
    for (int i = 0; i < Rf_length(fits); i++) {
        SET_VECTOR_ELT(fits, i, fit_as_list(VECTOR_ELT(pointers, i)));
    }
    r_list l = r_list_new(2);
    r_list_add(&l, "fits", fits);
    r_list_add(&l, "warnings", r_warnings(o));
    UNPROTECT(5);
    return l.list;
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

/* The formulas of one model each that a formula stands for. */
SEXP R_fourge_models(SEXP formula)
{
    SEXP pointer = PROTECT(r_object_new(R_NilValue, 1, 0));
    const r_object *o = r_object_of(pointer);
    const char *text = Rf_translateCharUTF8(STRING_ELT(formula, 0));
    name_collector c = {R_NilValue, 0};
    r_check(o, frg_fe_expand(o->home->ctx, text, collect, &c));
    c = (name_collector){PROTECT(Rf_allocVector(STRSXP, c.n)), 0};
    r_check(o, frg_fe_expand(o->home->ctx, text, collect, &c));
    UNPROTECT(2);
    return c.names;
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
    r_check(o, frg_fe_columns(o->home->ctx, text, &opts, collect, &c));
    c = (name_collector){PROTECT(Rf_allocVector(STRSXP, c.n)), 0};
    r_check(o, frg_fe_columns(o->home->ctx, text, &opts, collect, &c));
    UNPROTECT(2);
    return c.names;
}
