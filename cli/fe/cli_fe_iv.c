/* cli_fe_iv.c - first stages and tests of two-stage least squares, for programs and for people. */
#include <math.h>
#include <string.h>

#include "fe/fe_job.h"

static const char *const sets[] = {"unknown", "interval", "rays", "line", "empty"};

/* ---- JSON ------------------------------------------------------------------------------------ */

static void stage_json(frg_json *j, const frg_fe_first_stage *s)
{
    frg_json_open_object(j, NULL);
    frg_json_string(j, "endogenous", s->endogenous);
    frg_json_number(j, "partial_r2", s->partial_r2);
    frg_json_number(j, "rss", s->rss);
    frg_json_open_array(j, "coefficients");
    for (int i = 0; i < s->n_coefficients; i++) {
        coefficient_json(j, &s->coefficients[i]);
    }
    frg_json_close_array(j);
    frg_json_close_object(j);
}

static void tests_json(frg_json *j, const frg_fe_iv_tests *t, int m)
{
    frg_json_open_object(j, NULL);
    frg_json_string(j, "vcov", t->vcov);
    frg_json_open_array(j, "f");
    for (int i = 0; i < m; i++) {
        frg_json_number(j, NULL, t->first_stage_f[i]);
    }
    frg_json_close_array(j);
    frg_json_open_array(j, "p_value");
    for (int i = 0; i < m; i++) {
        frg_json_number(j, NULL, t->first_stage_p[i]);
    }
    frg_json_close_array(j);
    frg_json_number(j, "kleibergen_paap_f", t->kp_f);
    frg_json_number(j, "kleibergen_paap_lm", t->kp_lm);
    frg_json_number(j, "kleibergen_paap_p", t->kp_p);
    frg_json_integer(j, "kleibergen_paap_df", t->kp_df);
    frg_json_number(j, "effective_f", t->effective_f);
    frg_json_number(j, "overidentification", t->overid);
    frg_json_number(j, "overidentification_p", t->overid_p);
    frg_json_integer(j, "overidentification_df", t->overid_df);
    frg_json_number(j, "anderson_rubin_f", t->ar_f);
    frg_json_number(j, "anderson_rubin_p", t->ar_p);
    frg_json_number(j, "anderson_rubin_df", t->ar_df);
    frg_json_string(j, "anderson_rubin_set", sets[t->ar_set]);
    frg_json_number(j, "anderson_rubin_low", t->ar_low);
    frg_json_number(j, "anderson_rubin_high", t->ar_high);
    frg_json_close_object(j);
}

void fe_iv_json(frg_json *j, const frg_fe_result *f)
{
    const frg_fe_iv *const iv = f->iv;
    if (!iv) {
        return;
    }
    frg_json_open_object(j, "first_stage");
    frg_json_open_array(j, "instruments");
    for (int i = 0; i < iv->n_instruments; i++) {
        frg_json_string(j, NULL, iv->instruments[i]);
    }
    frg_json_close_array(j);
    frg_json_open_array(j, "stages");
    for (int i = 0; i < iv->n_endogenous; i++) {
        stage_json(j, &iv->first_stages[i]);
    }
    frg_json_close_array(j);
    frg_json_open_array(j, "tests");
    for (int i = 0; i < f->n_vcov; i++) {
        tests_json(j, &iv->tests[i], iv->n_endogenous);
    }
    frg_json_close_array(j);
    frg_json_number(j, "cragg_donald_f", iv->cragg_donald_f);
    frg_json_number(j, "wu_hausman_f", iv->wu_hausman_f);
    frg_json_number(j, "wu_hausman_p", iv->wu_hausman_p);
    frg_json_integer(j, "wu_hausman_df", iv->wu_hausman_df);
    frg_json_close_object(j);
}

/* ---- for people ------------------------------------------------------------------------------ */

/** "F = 12.3, p = 0.0004" */
static void statistic(char *text, size_t room, const char *name, double value, double p)
{
    if (!isfinite(value)) {
        snprintf(text, room, "%s not available", name);
    } else if (p < 5e-5) {
        snprintf(text, room, "%s = %.5g, p < 0.0001", name, value);
    } else {
        snprintf(text, room, "%s = %.5g, p = %.4f", name, value, p);
    }
}

static void stages_facts(frg_report *r, const frg_fe_iv *iv, const frg_fe_iv_tests *t)
{
    for (int i = 0; i < iv->n_endogenous; i++) {
        char text[200], of[60];
        statistic(of, sizeof of, "F", t->first_stage_f[i], t->first_stage_p[i]);
        snprintf(text, sizeof text, "%.60s on %d instrument%s: %s, partial R2 %.4g",
                 iv->first_stages[i].endogenous, iv->n_instruments,
                 iv->n_instruments == 1 ? "" : "s", of, iv->first_stages[i].partial_r2);
        frg_report_fact(r, i ? "" : "First stage", text);
    }
}

static void set_fact(frg_report *r, const frg_fe_iv_tests *t, double level)
{
    char text[160], of[60];
    statistic(of, sizeof of, "F", t->ar_f, t->ar_p);
    switch (t->ar_set) {
    case FRG_AR_INTERVAL:
        snprintf(text, sizeof text, "%s; %.4g%% interval %.6g to %.6g", of, 100 * level, t->ar_low,
                 t->ar_high);
        break;
    case FRG_AR_RAYS:
        snprintf(text, sizeof text, "%s; %.4g%% set: below %.6g and above %.6g", of, 100 * level,
                 t->ar_low, t->ar_high);
        break;
    case FRG_AR_LINE:
        snprintf(text, sizeof text, "%s; %.4g%% set: every value", of, 100 * level);
        break;
    case FRG_AR_EMPTY:
        snprintf(text, sizeof text, "%s; %.4g%% set: no value", of, 100 * level);
        break;
    default:
        snprintf(text, sizeof text, "%s", of);
    }
    frg_report_fact(r, "Anderson-Rubin", text);
}

void fe_iv_facts(frg_report *r, const frg_fe_result *f, double level)
{
    const frg_fe_iv *const iv = f->iv;
    if (!iv) {
        return;
    }
    const frg_fe_iv_tests *const t = &iv->tests[0];
    char text[200], of[60];
    stages_facts(r, iv, t);
    statistic(of, sizeof of, "rk LM", t->kp_lm, t->kp_p);
    if (isfinite(t->effective_f)) {
        snprintf(text, sizeof text, "rk F = %.5g; %s; effective F = %.5g; Cragg-Donald F = %.5g",
                 t->kp_f, of, t->effective_f, iv->cragg_donald_f);
    } else {
        snprintf(text, sizeof text, "rk F = %.5g; %s; Cragg-Donald F = %.5g", t->kp_f, of,
                 iv->cragg_donald_f);
    }
    frg_report_fact(r, "Kleibergen-Paap", text);
    set_fact(r, t, level);
    if (t->overid_df > 0) {
        statistic(text, sizeof text, "chi2", t->overid, t->overid_p);
        frg_report_fact(r, strcmp(f->vcov[0].type, "iid") == 0 ? "Sargan" : "Hansen J", text);
    }
    statistic(text, sizeof text, "F", iv->wu_hausman_f, iv->wu_hausman_p);
    frg_report_fact(r, "Wu-Hausman", text);
}
