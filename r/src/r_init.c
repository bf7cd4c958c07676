/* r_init.c - the routines that R may call. */
#include "fourge_r.h"

#include <R_ext/Rdynload.h>

SEXP R_fourge_fit(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP R_fourge_models(SEXP);
SEXP R_fourge_columns(SEXP, SEXP);
SEXP R_fourge_vcov(SEXP, SEXP, SEXP);
SEXP R_fourge_wald(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP R_fourge_residuals(SEXP);
SEXP R_fourge_glm_values(SEXP, SEXP);
SEXP R_fourge_predict(SEXP, SEXP);
SEXP R_fourge_regressors(SEXP, SEXP);
SEXP R_fourge_effects(SEXP);
SEXP R_fourge_leave_out(SEXP, SEXP);
SEXP R_fourge_ritest(SEXP, SEXP, SEXP);
SEXP R_fourge_lpdid(SEXP, SEXP, SEXP, SEXP);
SEXP R_fourge_demean(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP R_fourge_kept(SEXP);

static SEXP R_fourge_version(void)
{
    return Rf_mkString(frg_version());
}

static const R_CallMethodDef routines[] = {
    {"R_fourge_fit", (DL_FUNC)&R_fourge_fit, 6},
    {"R_fourge_models", (DL_FUNC)&R_fourge_models, 1},
    {"R_fourge_columns", (DL_FUNC)&R_fourge_columns, 2},
    {"R_fourge_vcov", (DL_FUNC)&R_fourge_vcov, 3},
    {"R_fourge_wald", (DL_FUNC)&R_fourge_wald, 5},
    {"R_fourge_residuals", (DL_FUNC)&R_fourge_residuals, 1},
    {"R_fourge_glm_values", (DL_FUNC)&R_fourge_glm_values, 2},
    {"R_fourge_predict", (DL_FUNC)&R_fourge_predict, 2},
    {"R_fourge_regressors", (DL_FUNC)&R_fourge_regressors, 2},
    {"R_fourge_effects", (DL_FUNC)&R_fourge_effects, 1},
    {"R_fourge_leave_out", (DL_FUNC)&R_fourge_leave_out, 2},
    {"R_fourge_ritest", (DL_FUNC)&R_fourge_ritest, 3},
    {"R_fourge_lpdid", (DL_FUNC)&R_fourge_lpdid, 4},
    {"R_fourge_demean", (DL_FUNC)&R_fourge_demean, 5},
    {"R_fourge_kept", (DL_FUNC)&R_fourge_kept, 1},
    {"R_fourge_version", (DL_FUNC)&R_fourge_version, 0},
    {NULL, NULL, 0},
};

void R_init_fourge(DllInfo *info)
{
    R_registerRoutines(info, NULL, routines, NULL, NULL);
    R_useDynamicSymbols(info, FALSE);
    R_forceSymbols(info, TRUE);
}
