/* cli_gp_json.c - Gaussian processes as JSON: schemas fourge.gp.value/1, .fit/1, .predict/1,
 * .loo/1, .sample/1. */
#include <math.h>
#include <string.h>

#include "gp/gp_job.h"

static frg_gp_parameter parameter(const gp_job *job, int i)
{
    frg_gp_parameter p = {.name = ""};
    if (frg_gp_get_parameter(job->gp, i, &p) != FRG_OK) {
        p.name = "?";
    }
    return p;
}

/** What stands for each parameter in an object {name: number, name of a vector: [numbers]}. */
typedef enum { VALUES, GRADIENTS, ERRORS } what_of;

static double entry(const gp_job *job, int i, what_of what)
{
    const frg_gp_parameter p = parameter(job, i);
    return what == VALUES   ? p.value
           : p.fixed        ? (double)NAN
           : what == ERRORS ? p.std_error
                            : job->gradient[i];
}

/** The parameters of one name are neighbours: [i, end). */
static int end_of_vector(const gp_job *job, int i, int *is_free)
{
    const frg_gp_parameter first = parameter(job, i);
    const int n = frg_gp_parameter_count(job->gp);
    int end = i + 1;
    *is_free = !first.fixed;
    while (first.entry == 0 && end < n && parameter(job, end).entry > 0) {
        *is_free = *is_free || !parameter(job, end).fixed;
        end++;
    }
    return end;
}

/** Gradients and errors name the free parameters alone. */
static void by_name(frg_json *j, const char *key, const gp_job *job, what_of what)
{
    const int n = frg_gp_parameter_count(job->gp);
    frg_json_open_object(j, key);
    for (int i = 0, end; i < n; i = end) {
        const frg_gp_parameter first = parameter(job, i);
        int is_free;
        end = end_of_vector(job, i, &is_free);
        if (what != VALUES && !is_free) {
            continue;
        }
        if (first.entry < 0) {
            frg_json_number(j, first.name, entry(job, i, what));
            continue;
        }
        frg_json_open_array(j, first.name);
        for (int k = i; k < end; k++) {
            frg_json_number(j, NULL, entry(job, k, what));
        }
        frg_json_close_array(j);
    }
    frg_json_close_object(j);
}

static void head(frg_json *j, const gp_job *job, const frg_gp_report *r)
{
    static const char *const precisions[] = {"f64", "f32", "mixed"};
    frg_json_string(j, "status", frg_status_name(job->status));
    frg_json_string(j, "kernel", r->kernel);
    frg_json_integer(j, "n", r->n);
    frg_json_integer(j, "d", r->d);
    frg_json_integer(j, "outputs", r->q);
    frg_json_integer(j, "n_masked", r->n_masked);
    frg_json_open_array(j, "columns");
    for (int64_t k = 0; k < r->d; k++) {
        frg_json_string(j, NULL, r->column_names[k]);
    }
    frg_json_close_array(j);
    frg_json_string(j, "dtype", precisions[r->precision]);
}

/** {follower: leader}, where there are such. */
static void ties(frg_json *j, const gp_job *job)
{
    int found = 0;
    for (int i = 0; i < frg_gp_parameter_count(job->gp); i++) {
        const frg_gp_parameter p = parameter(job, i);
        if (p.tied >= 0) {
            const frg_gp_parameter leader = parameter(job, p.tied);
            char follower[128], label[128];
            gp_label(&p, follower, sizeof follower);
            gp_label(&leader, label, sizeof label);
            if (!found++) {
                frg_json_open_object(j, "tied");
            }
            frg_json_string(j, follower, label);
        }
    }
    if (found) {
        frg_json_close_object(j);
    }
}

static void likelihood(frg_json *j, const gp_job *job)
{
    static const char *const storages[] = {"auto", "full", "packed"};
    const frg_gp_value *v = &job->value;
    frg_json_number(j, "log_likelihood", v->log_likelihood);
    frg_json_number(j, "log_prior", v->log_prior);
    frg_json_number(j, "per_point", v->per_point);
    if (job->gradient) {
        by_name(j, "gradient", job, GRADIENTS);
    }
    by_name(j, "parameters", job, VALUES);
    ties(j, job);
    if (job->opts.profile_scale) {
        frg_json_number(j, "profiled_scale", v->scale);
    }
    frg_json_open_object(j, "jitter");
    frg_json_number(j, "value", v->jitter);
    frg_json_integer(j, "tries", v->jitter_tries);
    frg_json_close_object(j);
    frg_json_number(j, "trace_residual", v->trace_residual);
    frg_json_number(j, "error_estimate", v->error_estimate);
    frg_json_bool(j, "promoted", v->promoted);
    frg_json_string(j, "storage", storages[v->storage]);
}

static void trace_rows(frg_json *j, const frg_gp_fit_result *f)
{
    frg_json_open_array(j, "trace");
    for (int64_t i = 0; i < f->n_trace; i++) {
        frg_json_open_object(j, NULL);
        frg_json_number(j, "log_likelihood", f->trace[i].log_likelihood);
        frg_json_number(j, "gradient_norm", f->trace[i].gradient_norm);
        frg_json_integer(j, "values", f->trace[i].values);
        frg_json_integer(j, "gradients", f->trace[i].gradients);
        frg_json_number(j, "seconds", f->trace[i].seconds);
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
}

/** What became of each start. */
static void start_rows(frg_json *j, const frg_gp_fit_result *f)
{
    frg_json_open_array(j, "start_results");
    for (int64_t i = 0; i < f->n_starts; i++) {
        const frg_gp_start *const s = &f->starts[i];
        frg_json_open_object(j, NULL);
        frg_json_string(j, "status", frg_status_name(s->status));
        frg_json_number(j, "objective", s->objective);
        frg_json_integer(j, "iterations", s->iterations);
        frg_json_integer(j, "values", s->values);
        frg_json_integer(j, "gradients", s->gradients);
        frg_json_integer(j, "failures", s->failures);
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
}

static void fit(frg_json *j, const gp_job *job)
{
    const frg_gp_fit_result *f = &job->result;
    frg_json_open_object(j, "optimizer");
    frg_json_string(j, "name", f->optimizer);
    frg_json_string(j, "ended", f->ended);
    frg_json_string(j, "status", frg_status_name(f->status));
    frg_json_integer(j, "iterations", f->iterations);
    frg_json_open_object(j, "evaluations");
    frg_json_integer(j, "value", f->values);
    frg_json_integer(j, "gradient", f->gradients);
    frg_json_integer(j, "failed", f->failures);
    frg_json_close_object(j);
    frg_json_number(j, "gradient_norm", f->gradient_norm);
    frg_json_integer(j, "starts", job->fit.starts);
    frg_json_integer(j, "best_start", f->best_start);
    frg_json_integer(j, "starts_reached", f->starts_reached);
    frg_json_number(j, "next_optimum", f->next_optimum);
    frg_json_open_object(j, "start_choice");
    frg_json_integer(j, "values", f->choice_values);
    frg_json_integer(j, "points", f->choice_points);
    frg_json_close_object(j);
    start_rows(j, f);
    trace_rows(j, f);
    frg_json_close_object(j);
    by_name(j, "standard_errors", job, ERRORS);
    frg_json_open_array(j, "active_bounds");
    for (int i = 0; i < frg_gp_parameter_count(job->gp); i++) {
        const frg_gp_parameter p = parameter(job, i);
        if (p.active != 0) {
            char label[128];
            gp_label(&p, label, sizeof label);
            frg_json_open_object(j, NULL);
            frg_json_string(j, "parameter", label);
            frg_json_string(j, "bound", p.active < 0 ? "lower" : "upper");
            frg_json_number(j, "value", p.value);
            frg_json_close_object(j);
        }
    }
    frg_json_close_array(j);
}

static void vector(frg_json *j, const char *key, const double *v, int64_t n, int64_t stride)
{
    frg_json_open_array(j, key);
    for (int64_t i = 0; i < n; i++) {
        frg_json_number(j, NULL, v[i * stride]);
    }
    frg_json_close_array(j);
}

/** One list, or with several outputs a list for each. */
static void outputs(frg_json *j, const char *key, const double *v, int64_t n, int64_t q)
{
    if (q == 1) {
        vector(j, key, v, n, 1);
        return;
    }
    frg_json_open_array(j, key);
    for (int64_t k = 0; k < q; k++) {
        vector(j, NULL, v + k, n, q);
    }
    frg_json_close_array(j);
}

static void predictions(frg_json *j, const cli *c, const gp_job *job, const frg_gp_report *r)
{
    const int64_t m = job->fresh.n;
    frg_json_integer(j, "m", m);
    frg_json_bool(j, "observed", c->set.gp_job.observed);
    if (job->predicted.mean) {
        outputs(j, "mean", job->predicted.mean, m, r->q);
        vector(j, "variance", job->predicted.variance, m, 1);
    }
    if (job->predicted.draws) {
        frg_json_bool(j, "prior", c->set.gp_job.prior_draws || c->n_arguments == 2);
        frg_json_open_array(j, "samples");
        for (int64_t s = 0; s < job->predicted.samples; s++) {
            outputs(j, NULL, job->predicted.draws + s * m * r->q, m, r->q);
        }
        frg_json_close_array(j);
    }
}

static void leave_one_out(frg_json *j, const gp_job *job, const frg_gp_report *r)
{
    frg_json_number(j, "log_density", job->loo.facts.log_density);
    frg_json_number(j, "rmse", job->loo.facts.rmse);
    outputs(j, "mean", job->loo.mean, r->n, r->q);
    vector(j, "variance", job->loo.variance, r->n, 1);
    vector(j, "latent_variance", job->loo.latent, r->n, 1);
}

static void times(frg_json *j, const cli *c, const gp_job *job)
{
    const frg_gp_value *v = &job->value;
    frg_json_open_object(j, "seconds");
    frg_json_number(j, "read", job->times.read);
    frg_json_number(j, "build", v->build_seconds);
    frg_json_number(j, "factor", v->factor_seconds);
    frg_json_number(j, "inverse", v->inverse_seconds);
    frg_json_number(j, "gradient", v->gradient_seconds);
    frg_json_number(j, "total", job->times.total);
    frg_json_close_object(j);
    repeats_json(j, c, job->times.totals, job->times.count);
}

void gp_json_build(frg_json *j, const cli *c, const gp_job *job)
{
    static const char *const schemas[GP_SUBCOMMANDS] = {
        [GP_VALUE] = "fourge.gp.value/1",     [GP_FIT] = "fourge.gp.fit/1",
        [GP_PREDICT] = "fourge.gp.predict/1", [GP_LOO] = "fourge.gp.loo/1",
        [GP_SAMPLE] = "fourge.gp.sample/1",   [GP_BATCH] = "fourge.gp.batch/1"};
    const frg_gp_report r = frg_gp_get(job->gp);
    json_head(j, schemas[job->what]);
    head(j, job, &r);
    if (job->what == GP_PREDICT || job->what == GP_SAMPLE) {
        by_name(j, "parameters", job, VALUES);
        predictions(j, c, job, &r);
    } else {
        likelihood(j, job);
    }
    if (job->what == GP_FIT) {
        fit(j, job);
    }
    if (job->what == GP_LOO) {
        leave_one_out(j, job, &r);
    }
    times(j, c, job);
    json_foot(j, c);
}
