/* cli_fe_json.c - a regression as the JSON of schema fourge.fe/1. */
#include <math.h>
#include <string.h>

#include "fe/fe_job.h"

static void dropped_rows(frg_json *j, const frg_fe_result *f)
{
    frg_json_open_object(j, "n_dropped");
    frg_json_integer(j, "missing", f->n_missing);
    frg_json_integer(j, "subset", f->n_subset);
    frg_json_integer(j, "zero_weight", f->n_zero_weight);
    frg_json_integer(j, "uncompared", f->n_uncompared);
    frg_json_integer(j, "singleton", f->n_singleton);
    frg_json_integer(j, "disconnected", f->n_disconnected);
    frg_json_integer(j, "separated", f->glm ? f->glm->n_separated : 0);
    frg_json_close_object(j);
    frg_json_integer(j, "singleton_rounds", f->singleton_rounds);
    if (f->n_groups > 0) {
        frg_json_integer(j, "connected_sets", f->n_groups);
    }
}

void coefficient_json(frg_json *j, const frg_coefficient *k)
{
    frg_json_open_object(j, NULL);
    frg_json_string(j, "term", k->term);
    frg_json_number(j, "estimate", k->estimate);
    frg_json_number(j, "std_error", k->std_error);
    frg_json_number(j, "statistic", k->statistic);
    frg_json_number(j, "p_value", k->p_value);
    frg_json_number(j, "conf_low", k->conf_low);
    frg_json_number(j, "conf_high", k->conf_high);
    frg_json_close_object(j);
}

static void coefficients(frg_json *j, const frg_fe_result *f)
{
    frg_json_open_array(j, "coefficients");
    for (int i = 0; i < f->n_coefficients; i++) {
        coefficient_json(j, &f->coefficients[i]);
    }
    frg_json_close_array(j);
    frg_json_open_array(j, "dropped_terms");
    for (int i = 0; i < f->n_dropped; i++) {
        frg_json_open_object(j, NULL);
        frg_json_string(j, "term", f->dropped[i].term);
        frg_json_string(j, "reason", f->dropped[i].reason);
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
}

/** The points of an event study, and the first stage of two-stage difference in differences. */
static void event_study(frg_json *j, const frg_fe_result *f)
{
    if (f->n_events > 0) {
        frg_json_open_array(j, "events");
        for (int i = 0; i < f->n_events; i++) {
            const int at = f->events[i].coefficient;
            frg_json_open_object(j, NULL);
            frg_json_number(j, "time", f->events[i].time);
            frg_json_string(j, "term", at < 0 ? NULL : f->coefficients[at].term);
            frg_json_close_object(j);
        }
        frg_json_close_array(j);
    }
    if (f->first_stage) {
        frg_json_open_object(j, "two_stage");
        frg_json_string(j, "first_stage", f->first_stage);
        frg_json_integer(j, "n", f->n_first_stage);
        frg_json_close_object(j);
    }
}

/** "adj=true,fixef=nonnested,...": one member for each key. */
static void small_sample(frg_json *j, const char *rules)
{
    frg_json_open_object(j, "ssc");
    for (const char *at = rules; *at;) {
        const size_t length = strcspn(at, ",");
        char key[64], *value;
        snprintf(key, sizeof key, "%.*s", (int)length, at);
        value = strchr(key, '=');
        if (value) {
            *value++ = '\0';
            if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
                frg_json_bool(j, key, value[0] == 't');
            } else {
                frg_json_string(j, key, value);
            }
        }
        at += length + (at[length] == ',');
    }
    frg_json_close_object(j);
}

/** What the kind was given or chose; nothing where it takes nothing. */
static void used_by(frg_json *j, const frg_fe_vcov *v)
{
    if (v->lag >= 0) {
        frg_json_integer(j, "lag", v->lag);
    }
    if (v->kernel) {
        frg_json_string(j, "kernel", v->kernel);
    }
    if (isfinite(v->cutoff)) {
        frg_json_number(j, "cutoff", v->cutoff);
    }
    if (v->leverage) {
        frg_json_string(j, "leverage", v->leverage);
        frg_json_number(j, "leverage_max", v->leverage_max);
        frg_json_number(j, "leverage_error", v->leverage_error);
    }
    if (v->weights) {
        frg_json_string(j, "weights", v->weights);
    }
    if (v->reps > 0) {
        frg_json_integer(j, "reps", v->reps);
    }
}

static void vcov(frg_json *j, const char *key, const frg_fe_vcov *v, int n_coefficients,
                 int with_errors)
{
    frg_json_open_object(j, key);
    frg_json_string(j, "spec", v->spec);
    frg_json_string(j, "type", v->type);
    frg_json_open_object(j, "clusters");
    for (int i = 0; i < v->n_clusters; i++) {
        frg_json_integer(j, v->cluster_name[i], v->cluster_count[i]);
    }
    frg_json_close_object(j);
    frg_json_number(j, "df_t", v->df_t);
    frg_json_integer(j, "k", v->k);
    frg_json_integer(j, "k_naive", v->k_naive);
    small_sample(j, v->ssc);
    frg_json_bool(j, "projected", v->projected);
    used_by(j, v);
    if (with_errors) {
        frg_json_open_array(j, "std_errors");
        for (int i = 0; i < n_coefficients; i++) {
            frg_json_number(j, NULL, v->coefficients[i].std_error);
        }
        frg_json_close_array(j);
        if (v->df) {
            frg_json_open_array(j, "df");
            for (int i = 0; i < n_coefficients; i++) {
                frg_json_number(j, NULL, v->df[i]);
            }
            frg_json_close_array(j);
        }
        frg_json_number(j, "wald_f", v->wald_f);
    }
    frg_json_close_object(j);
}

static void effects(frg_json *j, const frg_fe_result *f)
{
    frg_json_open_array(j, "fixed_effects");
    for (int q = 0; q < f->n_factors; q++) {
        frg_json_open_object(j, NULL);
        frg_json_string(j, "name", f->factor_name[q]);
        frg_json_integer(j, "levels", f->factor_levels[q]);
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
    frg_json_open_object(j, "absorbed");
    frg_json_integer(j, "rank", f->rank);
    frg_json_string(j, "method", f->rank_method);
    frg_json_integer(j, "components", f->n_components);
    frg_json_close_object(j);
}

static void fit(frg_json *j, const frg_fe_result *f)
{
    frg_json_integer(j, "df_residual", f->df_residual);
    frg_json_number(j, "r2", f->r2);
    frg_json_number(j, "r2_adjusted", f->r2_adjusted);
    frg_json_number(j, "r2_within", f->r2_within);
    frg_json_number(j, "rmse", f->rmse);
    frg_json_number(j, "rss", f->rss);
    frg_json_number(j, "tss", f->tss);
    frg_json_number(j, "wald_f", f->vcov[0].wald_f);
}

static void solver(frg_json *j, const frg_fe_result *f)
{
    int unknown_bound = 0;
    frg_json_open_object(j, "solver");
    frg_json_string(j, "method", f->demean.method);
    frg_json_bool(j, "converged", f->converged);
    frg_json_open_array(j, "columns");
    for (int64_t i = 0; i < f->n_demeaned; i++) {
        frg_json_string(j, NULL, f->column_names[i]);
    }
    frg_json_close_array(j);
    frg_json_open_array(j, "iterations");
    for (int64_t i = 0; i < f->n_demeaned; i++) {
        frg_json_integer(j, NULL, f->columns[i].iterations);
    }
    frg_json_close_array(j);
    frg_json_open_array(j, "audit");
    for (int64_t i = 0; i < f->n_demeaned; i++) {
        frg_json_number(j, NULL, f->columns[i].audit);
    }
    frg_json_close_array(j);
    frg_json_open_array(j, "gradient");
    for (int64_t i = 0; i < f->n_demeaned; i++) {
        frg_json_number(j, NULL, f->columns[i].gradient);
    }
    frg_json_close_array(j);
    frg_json_open_array(j, "error_bound");
    for (int64_t i = 0; i < f->n_demeaned; i++) {
        unknown_bound |= !isfinite(f->columns[i].error_bound);
        frg_json_number(j, NULL, f->columns[i].error_bound);
    }
    frg_json_close_array(j);
    if (unknown_bound) {
        frg_json_string(j, "error_bound_note",
                        "null where no Krylov step gave an estimate of the smallest eigenvalue");
    }
    subproblems_json(j, f->parts, f->demean.n_parts);
    frg_json_integer(j, "levels", f->demean.levels);
    frg_json_integer(j, "plan_bytes", (int64_t)f->demean.plan_bytes);
    frg_json_integer(j, "factor_bytes", (int64_t)f->demean.factor_bytes);
    frg_json_string(j, "passes_on", f->demean.passes_on);
    device_work_json(j, device_work_of_demean(&f->demean));
    host_steps_json(j, &f->demean.host_steps);
    frg_json_number(j, "tol", f->demean.tol);
    frg_json_close_object(j);
}

static void times(frg_json *j, const cli *c, const fe_job *job)
{
    frg_json_open_object(j, "seconds");
    frg_json_number(j, "read", job->read);
    frg_json_number(j, "encode", job->encode);
    frg_json_number(j, "solve", job->solve);
    frg_json_number(j, "vcov", job->vcov);
    if (job->components.leave_out) {
        frg_json_number(j, "leave_out", job->components.seconds);
    }
    if (job->ritest.term) {
        frg_json_number(j, "ritest", job->ritest.seconds);
    }
    frg_json_number(j, "total", job->total + job->components.seconds + job->ritest.seconds);
    frg_json_close_object(j);
    repeats_json(j, c, job->totals, job->n_totals);
}

void fe_json_model(frg_json *j, const frg_fe_result *f, frg_status status)
{
    frg_json_string(j, "status", frg_status_name(status));
    frg_json_string(j, "formula", f->formula);
    if (f->split_name) {
        frg_json_open_object(j, "sample");
        frg_json_string(j, "split", f->split_name);
        frg_json_string(j, "value", f->split_value);
        frg_json_close_object(j);
    }
    frg_json_string(j, "depvar", f->depvar);
    frg_json_integer(j, "n", f->n);
    frg_json_integer(j, "n_rows", f->n_rows);
    dropped_rows(j, f);
    coefficients(j, f);
    vcov(j, "vcov", &f->vcov[0], f->n_coefficients, 0);
    frg_json_integer(j, "k", f->vcov[0].k);
    frg_json_open_array(j, "vcovs");
    for (int i = 0; i < f->n_vcov; i++) {
        vcov(j, NULL, &f->vcov[i], f->n_coefficients, 1);
    }
    frg_json_close_array(j);
    effects(j, f);
    fit(j, f);
    event_study(j, f);
    fe_iv_json(j, f);
    fe_glm_json(j, f);
    solver(j, f);
}

void fe_json_build(frg_json *j, const cli *c, const fe_job *job)
{
    json_head(j, "fourge.fe/1");
    fe_json_model(j, frg_fe_get(job->fit), job->status);
    fe_leave_out_json(j, &job->components);
    fe_ritest_json(j, c, &job->ritest);
    plan_json(j, c->set.fe.plan, frg_fe_get(job->fit)->plan_read, job->plan_written);
    times(j, c, job);
    json_foot(j, c);
}
