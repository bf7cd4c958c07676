/* r_demean.c - frg_demean on a matrix of doubles. */
#include "fourge_r.h"

/* list(values, converged, audit, method, warnings): x (n x p) with the effects of codes (n x q,
 * from 0 on) taken out */
SEXP R_fourge_demean(SEXP x, SEXP codes, SEXP weights, SEXP options, SEXP threads)
{
    const int n = Rf_nrows(x), p = Rf_ncols(x);
    SEXP pointer = PROTECT(r_object_new(R_NilValue, Rf_asInteger(threads), 0));
    r_object *o = r_object_of(pointer);
    frg_demean_opts opts;
    r_demean_options(&opts, options);
    const frg_array levels = frg_matrix_columns(INTEGER(codes), FRG_I32, n, Rf_ncols(codes), n);
    const frg_array w =
        weights == R_NilValue ? (frg_array){.data = NULL} : frg_vector(REAL(weights), FRG_F64, n);
    r_check(o, frg_demean_create(&o->plan, o->home->ctx, levels, w.data ? &w : NULL, NULL, 0, 0,
                                 &opts));
    SEXP values = PROTECT(Rf_allocMatrix(REALSXP, n, p));
    frg_demean_column *column = (frg_demean_column *)R_alloc((size_t)p + 1, sizeof *column);
    r_check(o, frg_demean_run(o->plan, frg_matrix_columns(REAL(x), FRG_F64, n, p, n),
                              frg_matrix_columns(REAL(values), FRG_F64, n, p, n), column, NULL));
    SEXP converged = PROTECT(Rf_allocVector(LGLSXP, p));
    SEXP audit = PROTECT(Rf_allocVector(REALSXP, p));
    for (int c = 0; c < p; c++) {
        LOGICAL(converged)[c] = column[c].converged;
        REAL(audit)[c] = column[c].audit;
    }
    r_list l = r_list_new(5);
    r_list_add(&l, "values", values);
    r_list_add(&l, "converged", converged);
    r_list_add(&l, "audit", audit);
    r_list_add(&l, "method", Rf_mkString(frg_demean_get(o->plan).method));
    r_list_add(&l, "warnings", r_warnings(o));
    UNPROTECT(6);
    return l.list;
}
