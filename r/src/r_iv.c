/* r_iv.c - first stages and tests of two-stage least squares. */
#include "fourge_r.h"

static SEXP stage_as_list(const frg_fe_first_stage *s)
{
    r_list l = r_list_new(4);
    r_list_add(&l, "rss", Rf_ScalarReal(s->rss));
    r_list_add(&l, "partial_r2", Rf_ScalarReal(s->partial_r2));
    r_list_add(&l, "terms", r_terms(s->coefficients, s->n_coefficients));
    r_list_add(&l, "errors", r_coefficients(s->coefficients, s->n_coefficients));
    UNPROTECT(2);
    return l.list;
}

static SEXP numbers_of(const frg_fe_iv_tests *t)
{
    const r_number rows[] = {
        {"kp_f", t->kp_f},
        {"kp_lm", t->kp_lm},
        {"kp_p", t->kp_p},
        {"kp_df", (double)t->kp_df},
        {"effective_f", t->effective_f},
        {"overid", t->overid},
        {"overid_p", t->overid_p},
        {"overid_df", (double)t->overid_df},
        {"ar_f", t->ar_f},
        {"ar_p", t->ar_p},
        {"ar_df", t->ar_df},
        {"ar_low", t->ar_low},
        {"ar_high", t->ar_high},
    };
    return r_named(rows, (int)(sizeof rows / sizeof *rows));
}

static SEXP vector_of(const double *values, int n)
{
    SEXP out = Rf_allocVector(REALSXP, n);
    for (int i = 0; i < n; i++) {
        REAL(out)[i] = values[i];
    }
    return out;
}

/* What one covariance says of the instruments. */
static SEXP tests_as_list(const frg_fe_iv *iv, const frg_fe_iv_tests *t)
{
    static const char *const sets[] = {"unknown", "interval", "rays", "line", "empty"};
    r_list l = r_list_new(5);
    r_list_add(&l, "spec", r_word(t->vcov));
    r_list_add(&l, "f", vector_of(t->first_stage_f, iv->n_endogenous));
    r_list_add(&l, "p", vector_of(t->first_stage_p, iv->n_endogenous));
    r_list_add(&l, "numbers", numbers_of(t));
    r_list_add(&l, "ar_set", r_word(sets[t->ar_set]));
    UNPROTECT(2);
    return l.list;
}

static SEXP stages_of(const frg_fe_iv *iv)
{
    r_list l = r_list_new(iv->n_endogenous);
    for (int i = 0; i < iv->n_endogenous; i++) {
        r_list_add(&l, iv->first_stages[i].endogenous, stage_as_list(&iv->first_stages[i]));
    }
    UNPROTECT(2);
    return l.list;
}

static SEXP tests_of(const frg_fe_iv *iv, int n)
{
    SEXP out = PROTECT(Rf_allocVector(VECSXP, n));
    for (int i = 0; i < n; i++) {
        SET_VECTOR_ELT(out, i, tests_as_list(iv, &iv->tests[i]));
    }
    UNPROTECT(1);
    return out;
}

SEXP r_instruments(const frg_fe_result *fit)
{
    const frg_fe_iv *iv = fit->iv;
    if (!iv) {
        return R_NilValue;
    }
    const r_number rows[] = {
        {"cragg_donald_f", iv->cragg_donald_f},
        {"wu_hausman_f", iv->wu_hausman_f},
        {"wu_hausman_p", iv->wu_hausman_p},
        {"wu_hausman_df", (double)iv->wu_hausman_df},
    };
    r_list l = r_list_new(4);
    r_list_add(&l, "instruments", r_strings(iv->instruments, iv->n_instruments));
    r_list_add(&l, "stages", stages_of(iv));
    r_list_add(&l, "tests", tests_of(iv, fit->n_vcov));
    r_list_add(&l, "numbers", r_named(rows, (int)(sizeof rows / sizeof *rows)));
    UNPROTECT(2);
    return l.list;
}
