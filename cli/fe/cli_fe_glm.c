/* cli_fe_glm.c - what a generalised linear model has beside, for programs and for people. */
#include <inttypes.h>
#include <math.h>

#include "fe/fe_job.h"

void fe_glm_json(frg_json *j, const frg_fe_result *f)
{
    const frg_fe_glm *const g = f->glm;
    if (!g) {
        return;
    }
    frg_json_string(j, "family", g->family);
    frg_json_string(j, "link", g->link);
    frg_json_number(j, "deviance", g->deviance);
    frg_json_number(j, "null_deviance", g->null_deviance);
    frg_json_number(j, "log_likelihood", g->log_likelihood);
    frg_json_number(j, "null_log_likelihood", g->null_log_likelihood);
    frg_json_number(j, "pseudo_r2", g->pseudo_r2);
    frg_json_number(j, "aic", g->aic);
    frg_json_number(j, "bic", g->bic);
    frg_json_number(j, "dispersion", g->dispersion);
    if (!isnan(g->theta)) {
        frg_json_number(j, "theta", g->theta);
        frg_json_number(j, "theta_std_error", g->theta_std_error);
        frg_json_number(j, "twice_log_likelihood", 2 * g->log_likelihood);
    }
    frg_json_integer(j, "glm_iterations", g->iterations);
    frg_json_bool(j, "glm_converged", g->converged);
    frg_json_open_array(j, "separated_rows"); /* as in the file, from 1 */
    for (int64_t i = 0; i < g->n_separated; i++) {
        frg_json_integer(j, NULL, g->separated[i] + 1);
    }
    frg_json_close_array(j);
}

/** theta of a negative binomial model, its error, and twice the log-likelihood, as R's glm.nb. */
static void theta_fact(frg_report *r, const frg_fe_glm *g)
{
    char text[160], error[64] = "given";
    if (!isnan(g->theta_std_error)) {
        snprintf(error, sizeof error, "standard error %.6g", g->theta_std_error);
    }
    if (isinf(g->theta)) {
        snprintf(text, sizeof text, "infinite, the limit of poisson");
    } else {
        snprintf(text, sizeof text, "%.8g (%s); 2 x log-likelihood %.8g", g->theta, error,
                 2 * g->log_likelihood);
    }
    frg_report_fact(r, "Theta", text);
}

void fe_glm_facts(frg_report *r, const frg_fe_result *f)
{
    const frg_fe_glm *const g = f->glm;
    char text[160];
    snprintf(text, sizeof text, "%s, link %s", g->family, g->link);
    frg_report_fact(r, "Family", text);
    if (!isnan(g->theta)) {
        theta_fact(r, g);
    }
    snprintf(text, sizeof text, "%.8g of %.8g; %d iterations%s", g->deviance, g->null_deviance,
             g->iterations, g->converged ? "" : ", NOT CONVERGED");
    frg_report_fact(r, "Deviance", text);
    snprintf(text, sizeof text, "%.8g; pseudo R2 %.6g", g->log_likelihood, g->pseudo_r2);
    frg_report_fact(r, "Log-likelihood", text);
    snprintf(text, sizeof text, "AIC %.8g; BIC %.8g", g->aic, g->bic);
    frg_report_fact(r, "Criteria", text);
}
