/* r_treatment.c - randomisation inference on a fit, and the columns of local projections. */
#include "fourge_r.h"

#include <string.h>

static SEXP ritest_as_list(const frg_ritest *t, SEXP statistics, SEXP warnings)
{
    r_list l = r_list_new(11);
    r_list_add(&l, "term", r_word(t->term));
    r_list_add(&l, "estimate", Rf_ScalarReal(t->estimate));
    r_list_add(&l, "observed", Rf_ScalarReal(t->observed));
    r_list_add(&l, "p_value", Rf_ScalarReal(t->p_value));
    r_list_add(&l, "std_error", Rf_ScalarReal(t->std_error));
    r_list_add(&l, "reps", Rf_ScalarReal((double)t->reps));
    r_list_add(&l, "permuted", Rf_ScalarReal((double)t->permuted));
    r_list_add(&l, "n_strata", Rf_ScalarReal((double)t->strata));
    r_list_add(&l, "converged", Rf_ScalarLogical(t->converged));
    r_list_add(&l, "statistics", statistics);
    r_list_add(&l, "warnings", warnings);
    UNPROTECT(2);
    return l.list;
}

/* Randomisation inference: `options` are those that the fit was made with, `asked` its own. */
SEXP R_fourge_ritest(SEXP pointer, SEXP options, SEXP asked)
{
    const r_object *o = r_object_of(pointer);
    frg_fe_opts fit;
    frg_ritest_opts own;
    r_fit_options(&fit, options);
    r_ritest_options(&own, asked);
    frg_ritest found = {.reps = 0};
    SEXP statistics = PROTECT(Rf_allocVector(REALSXP, own.reps > 0 ? own.reps : 0));
    r_check(o, frg_fe_ritest(o->fit, &fit, &own, REAL(statistics), &found));
    if (!found.term) {
        Rf_error("the permutations were stopped before there was a p value");
    }
    SEXP warnings = PROTECT(r_warnings(o));
    SEXP out = ritest_as_list(&found, statistics, warnings);
    UNPROTECT(2);
    return out;
}

static SEXP horizons_of(const frg_lpdid_design *d)
{
    SEXP out = PROTECT(Rf_allocVector(INTSXP, d->n));
    SEXP names = PROTECT(Rf_allocVector(STRSXP, d->n));
    for (int i = 0; i < d->n; i++) {
        INTEGER(out)[i] = d->outcomes[i].horizon;
        SET_STRING_ELT(names, i, Rf_mkCharCE(d->outcomes[i].name, CE_UTF8));
    }
    Rf_setAttrib(out, R_NamesSymbol, names);
    UNPROTECT(2);
    return out;
}

/* The columns of numbers that stand in `made` and not in `data`. */
static SEXP new_columns(const frg_table *made, const frg_table *data)
{
    const int first = (int)frg_table_columns(data), p = (int)frg_table_columns(made) - first;
    r_list l = r_list_new(p);
    for (int j = 0; j < p; j++) {
        const frg_column *c = frg_table_column(made, first + j);
        SEXP values = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)c->n));
        memcpy(REAL(values), c->numbers, (size_t)c->n * sizeof(double));
        r_list_add(&l, c->name, values);
        UNPROTECT(1);
    }
    UNPROTECT(2);
    return l.list;
}

/* list(formula, first_stage, term, vcov, last, horizons, columns, warnings): what makes local projections of
 * fits of the columns beside those that were made of them. */
SEXP R_fourge_lpdid(SEXP formula, SEXP columns, SEXP options, SEXP threads)
{
    SEXP pointer = PROTECT(r_object_new(columns, Rf_asInteger(threads), 0));
    r_object *o = r_object_of(pointer);
    frg_lpdid_opts opts;
    r_lpdid_options(&opts, options);
    r_table(o, columns, &o->home->table);
    r_check(o,
            frg_lpdid_create(&o->projections, o->home->ctx,
                             Rf_translateCharUTF8(STRING_ELT(formula, 0)), o->home->table, &opts));
    const frg_lpdid_design *d = frg_lpdid_get(o->projections);
    r_list l = r_list_new(8);
    r_list_add(&l, "formula", r_word(d->formula));
    r_list_add(&l, "first_stage", r_word(d->first_stage));
    r_list_add(&l, "term", r_word(d->term));
    r_list_add(&l, "vcov", r_word(d->vcov));
    r_list_add(&l, "last", Rf_ScalarInteger(d->last));
    r_list_add(&l, "horizons", horizons_of(d));
    r_list_add(&l, "columns", new_columns(d->table, o->home->table));
    r_list_add(&l, "warnings", r_warnings(o));
    UNPROTECT(3);
    return l.list;
}
