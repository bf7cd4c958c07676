/* cli_gp_report.c - Gaussian processes as people read them: facts, parameters, predictions; in the
 * page also the posterior band, leave-one-out residuals, the trace of the fit, options and
 * versions. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp/gp_job.h"

void gp_label(const frg_gp_parameter *p, char *text, size_t size)
{
    if (p->entry < 0) {
        snprintf(text, size, "%s", p->name);
    } else {
        snprintf(text, size, "%s[%d]", p->name, p->entry + 1);
    }
}

/* ---- head ------------------------------------------------------------------------------------ */

static void data_fact(frg_report *r, const gp_job *job, const frg_gp_report *g)
{
    char text[256], n[32], masked[64] = "";
    if (g->n_masked > 0) {
        snprintf(masked, sizeof masked, " (%" PRId64 " left out: y is missing)", g->n_masked);
    }
    snprintf(text, sizeof text, "%s points%s, %" PRId64 " input%s, %" PRId64 " output%s",
             grouped(g->n, n), masked, g->d, g->d == 1 ? "" : "s", g->q, g->q == 1 ? "" : "s");
    frg_report_fact(r, "Data", job->shown ? job->shown : job->path);
    frg_report_fact(r, "Size", text);
    const int as_given = *job->kernel && job->what != GP_PREDICT && job->what != GP_SAMPLE;
    frg_report_fact(r, "Kernel", as_given ? job->kernel : g->kernel);
}

static void likelihood_facts(frg_report *r, const gp_job *job)
{
    const frg_gp_value *v = &job->value;
    char text[160];
    frg_report_fact_number(r, "Log-likelihood", v->log_likelihood, 9);
    if (v->log_prior < 0 || v->log_prior > 0) {
        frg_report_fact_number(r, "Log prior", v->log_prior, 6);
    }
    if (job->opts.profile_scale) {
        frg_report_fact_number(r, "Profiled scale", v->scale, 6);
    }
    if (v->jitter > 0) {
        snprintf(text, sizeof text, "%.3g, found in %d tries", v->jitter, v->jitter_tries);
        frg_report_fact(r, "Jitter", text);
    }
    if (isfinite(v->trace_residual)) {
        char a[32], b[32];
        snprintf(text, sizeof text, "%s; rounding of the likelihood below %s",
                 short_text(v->trace_residual, 2, a), short_text(v->error_estimate, 2, b));
        frg_report_fact(r, "Trace residual", text);
    }
}

static void fit_facts(frg_report *r, const gp_job *job)
{
    const frg_gp_fit_result *f = &job->result;
    char text[200], a[32];
    snprintf(text, sizeof text,
             "%s: %" PRId64 " iterations, %" PRId64 " values, %" PRId64
             " gradients; gradient left %s a point",
             f->optimizer, f->iterations, f->values, f->gradients,
             short_text(f->gradient_norm, 2, a));
    frg_report_fact(r, "Optimizer", text);
    if (f->choice_values > 0) {
        snprintf(text, sizeof text, "chosen by %" PRId64 " values on %" PRId64 " points",
                 f->choice_values, f->choice_points);
        frg_report_fact(r, "First start", text);
    }
    if (job->fit.starts > 1) {
        char next[64] = "";
        if (isfinite(f->next_optimum)) {
            snprintf(next, sizeof next, ", the next one lies %s lower",
                     short_text(f->next_optimum, 3, a));
        }
        snprintf(text, sizeof text,
                 "%d, %" PRId64 " reached the optimum (the best was number %d)%s", job->fit.starts,
                 f->starts_reached, f->best_start + 1, next);
        frg_report_fact(r, "Starts", text);
    }
}

static void time_fact(frg_report *r, const cli *c, const gp_job *job)
{
    char text[200], a[32], b[32], m[32];
    snprintf(text, sizeof text, "%s (read %s), %d threads, at most %s",
             seconds_text(job->times.total, a), seconds_text(job->times.read, b),
             frg_threads(c->ctx), bytes_text((double)frg_peak_bytes(c->ctx), m));
    frg_report_fact(r, "Time", text);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void columns(frg_report *r, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        frg_report_table_column(r, names[i], i ? FRG_RIGHT : FRG_LEFT);
    }
}

/** A number, or nothing where there is none. */
static void cell(frg_report *r, double v, int digits)
{
    if (isnan(v)) {
        frg_report_cell_text(r, "");
    } else {
        frg_report_cell_number(r, v, digits);
    }
}

static void parameter_table(frg_report *r, const gp_job *job)
{
    static const char *const fitted[] = {"parameter", "value", "std_error",
                                         "lower",     "upper", "state"};
    static const char *const valued[] = {"parameter", "value", "gradient",
                                         "lower",     "upper", "state"};
    const int is_fit = job->what == GP_FIT;
    const int with_gradient = !is_fit && job->gradient;
    frg_report_table_open(r, is_fit ? "Standard errors are those of the logarithm (of means: of "
                                      "the value)"
                                    : "Gradients are per logarithm (of means: per value)");
    columns(r, is_fit ? fitted : valued, 6);
    for (int i = 0; i < frg_gp_parameter_count(job->gp); i++) {
        frg_gp_parameter p;
        if (frg_gp_get_parameter(job->gp, i, &p) != FRG_OK) {
            continue;
        }
        char label[128];
        gp_label(&p, label, sizeof label);
        frg_report_cell_text(r, label);
        frg_report_cell_number(r, p.value, 6);
        cell(r,
             is_fit                      ? p.std_error
             : with_gradient && !p.fixed ? job->gradient[i]
                                         : (double)NAN,
             6);
        cell(r, isfinite(p.lower) ? p.lower : (double)NAN, 3);
        cell(r, isfinite(p.upper) ? p.upper : (double)NAN, 3);
        frg_gp_parameter leader;
        char state[144] = "as ";
        const int follows = p.tied >= 0 && frg_gp_get_parameter(job->gp, p.tied, &leader) == FRG_OK;
        if (follows) {
            gp_label(&leader, state + 3, sizeof state - 3);
        }
        frg_report_cell_text(r, follows        ? state
                                : p.fixed      ? "fixed"
                                : p.active < 0 ? "at lower bound"
                                : p.active > 0 ? "at upper bound"
                                               : "free");
    }
    frg_report_table_close(r);
}

static void prediction_table(frg_report *r, const gp_job *job, int64_t q)
{
    const gp_data *f = &job->fresh;
    frg_report_table_open(r, NULL);
    for (int k = 0; k < f->d; k++) {
        frg_report_table_column(r, f->x_names[k], FRG_RIGHT);
    }
    for (int64_t k = 0; k < q && job->predicted.mean; k++) {
        char name[32];
        snprintf(name, sizeof name, "mean%" PRId64, k + 1);
        frg_report_table_column(r, q > 1 ? name : "mean", FRG_RIGHT);
    }
    if (job->predicted.mean) {
        frg_report_table_column(r, "std_dev", FRG_RIGHT);
    }
    for (int64_t s = 0; s < job->predicted.samples * q; s++) {
        char name[48];
        snprintf(name, sizeof name, q > 1 ? "sample%" PRId64 "_%" PRId64 : "sample%" PRId64,
                 s / q + 1, s % q + 1);
        frg_report_table_column(r, name, FRG_RIGHT);
    }
    for (int64_t i = 0; i < f->n; i++) {
        for (int k = 0; k < f->d; k++) {
            frg_report_cell_number(r, f->x[i * f->d + k], 6);
        }
        for (int64_t k = 0; k < q && job->predicted.mean; k++) {
            frg_report_cell_number(r, job->predicted.mean[i * q + k], 6);
        }
        if (job->predicted.mean) {
            frg_report_cell_number(r, sqrt(job->predicted.variance[i]), 4);
        }
        for (int64_t s = 0; s < job->predicted.samples * q; s++) {
            frg_report_cell_number(r, job->predicted.draws[(s / q * f->n + i) * q + s % q], 6);
        }
    }
    frg_report_table_close(r);
}

/** Rows of the data, kept as row i of the process; of several outputs a line each. */
static void loo_row(frg_report *r, const gp_job *job, int64_t row, int64_t i)
{
    const gp_data *d = &job->data;
    const double sd = sqrt(job->loo.variance[i]);
    for (int k = 0; k < d->q; k++) {
        const double y = d->y[row * d->q + k], mean = job->loo.mean[i * d->q + k], e = y - mean;
        frg_report_cell_integer(r, row + 1);
        if (d->q > 1) {
            frg_report_cell_text(r, d->y_names[k]);
        }
        frg_report_cell_number(r, y, 6);
        frg_report_cell_number(r, mean, 6);
        frg_report_cell_number(r, sd, 4);
        frg_report_cell_number(r, e, 4);
        frg_report_cell_number(r, e / sd, 3);
    }
}

static void loo_table(frg_report *r, const gp_job *job)
{
    static const char *const names[] = {"y", "mean", "std_dev", "residual", "z"};
    const gp_data *d = &job->data;
    const int64_t n = frg_gp_get(job->gp).n;
    frg_report_table_open(r, NULL);
    frg_report_table_column(r, "row", FRG_RIGHT);
    if (d->q > 1) {
        frg_report_table_column(r, "output", FRG_LEFT);
    }
    columns(r, names, 5);
    for (int64_t i = 0, row = 0; i < n && row < d->n; row++) {
        int missing = 0;
        for (int k = 0; k < d->q; k++) {
            missing = missing || isnan(d->y[row * d->q + k]);
        }
        if (missing) {
            continue;
        }
        loo_row(r, job, row, i++);
    }
    frg_report_table_close(r);
}

/* ---- plots ----------------------------------------------------------------------------------- */

int gp_band_predict(const gp_job *job, gp_band *b)
{
    double variance[MOST_BAND] = {0};
    frg_array m = frg_vector(b->mean, FRG_F64, b->n), v = frg_vector(variance, FRG_F64, b->n);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.mean = &m;
    o.variance = &v;
    o.observed = 1;
    if (frg_gp_predict(job->gp, frg_matrix(b->x, FRG_F64, b->n, 1, 1), &o) != FRG_OK) {
        return 0;
    }
    for (int i = 0; i < b->n; i++) {
        b->low[i] = b->mean[i] - GP_HALF_WIDTH * sqrt(variance[i]);
        b->high[i] = b->mean[i] + GP_HALF_WIDTH * sqrt(variance[i]);
    }
    return 1;
}

void gp_band_plot(frg_report *r, const gp_job *job, const gp_band *b, int64_t from,
                  const frg_plot *words, const char *line, const char *points)
{
    const gp_data *d = &job->data;
    const frg_series series[] = {
        {.name = "95% band",
         .n = b->n,
         .x = b->x,
         .low = b->low,
         .high = b->high,
         .style = FRG_BAND},
        {.name = line, .n = b->n, .x = b->x, .y = b->mean, .style = FRG_LINE},
        {.name = points, .n = d->n - from, .x = d->x + from, .y = d->y + from, .style = FRG_POINTS},
    };
    frg_plot plot = *words;
    plot.reference = (double)NAN;
    plot.n_series = 3;
    plot.series = series;
    frg_report_plot(r, &plot);
}

/** One input: the posterior over its range and a fifth beyond, with the data. */
static void band_plot(frg_report *r, const gp_job *job)
{
    const gp_data *d = &job->data;
    gp_band band = {.n = MOST_BAND};
    double first = d->x[0], last = d->x[0];
    for (int64_t i = 0; i < d->n; i++) {
        first = fmin(first, d->x[i]);
        last = fmax(last, d->x[i]);
    }
    for (int i = 0; i < band.n; i++) {
        band.x[i] = first + (last - first) * 1.2 * i / (band.n - 1);
    }
    const frg_plot words = {.caption = "Posterior of an observation, a fifth beyond the data",
                            .x_label = d->x_names[0],
                            .y_label = d->y_names[0]};
    if (gp_band_predict(job, &band)) {
        gp_band_plot(r, job, &band, 0, &words, "mean", "data");
    }
}

/** Standardised leave-one-out residuals against what they were predicted to be. */
static void loo_plot(frg_report *r, const gp_job *job)
{
    const frg_gp_report g = frg_gp_get(job->gp);
    double *mean = calloc((size_t)(g.n * g.q + 3 * g.n) + 1, sizeof *mean);
    double *variance = mean ? mean + g.n * g.q : NULL, *z = mean ? variance + g.n : NULL;
    double *sorted = mean ? z + g.n : NULL;
    frg_gp_loo loo;
    if (mean && frg_gp_eval_loo(job->gp, mean, variance, NULL, &loo) == FRG_OK) {
        int64_t used = 0;
        for (int64_t row = 0; row < job->data.n && used < g.n; row++) {
            const double y = job->data.y[row * g.q];
            if (isfinite(y)) {
                z[used] = (y - mean[used * g.q]) / sqrt(variance[used]);
                mean[used] = mean[used * g.q];
                used++;
            }
        }
        memcpy(sorted, z, (size_t)used * sizeof *z);
        sort_numbers(sorted, used);
        const frg_series series = {
            .name = "residual", .n = used, .x = mean, .y = z, .style = FRG_POINTS};
        char text[160];
        snprintf(text, sizeof text,
                 "Leave-one-out residuals in standard deviations; half of them between %.2f and "
                 "%.2f (normal: -0.67 and 0.67)",
                 sorted[used / 4], sorted[3 * used / 4]);
        const frg_plot plot = {.caption = text,
                               .x_label = "predicted without the point",
                               .y_label = "residual / sd",
                               .reference = 0,
                               .n_series = 1,
                               .series = &series};
        frg_report_plot(r, &plot);
        frg_report_fact_number(r, "Leave-one-out log density", loo.log_density, 7);
        frg_report_fact_number(r, "Leave-one-out RMSE", loo.rmse, 5);
    }
    free(mean);
}

/** How far each iterate was from the best likelihood. */
static void trace_plot(frg_report *r, const gp_job *job)
{
    const frg_gp_fit_result *f = &job->result;
    double *x = f->n_trace > 1 ? calloc(2 * (size_t)f->n_trace, sizeof *x) : NULL;
    if (!x) {
        return;
    }
    double *y = x + f->n_trace, best = f->trace[0].log_likelihood;
    for (int64_t i = 0; i < f->n_trace; i++) {
        best = fmax(best, f->trace[i].log_likelihood);
    }
    for (int64_t i = 0; i < f->n_trace; i++) {
        const double gap = best - f->trace[i].log_likelihood;
        x[i] = (double)f->trace[i].values;
        y[i] = gap > 0 ? gap : (double)NAN;
    }
    const frg_series series = {
        .name = "gap", .n = f->n_trace - 1, .x = x, .y = y, .style = FRG_LINE};
    const frg_plot plot = {.caption = "Log-likelihood below the best, by evaluation",
                           .x_label = "evaluations",
                           .y_label = "below the best",
                           .log_y = 1,
                           .reference = (double)NAN,
                           .n_series = 1,
                           .series = &series};
    frg_report_plot(r, &plot);
    free(x);
}

static void pictures(frg_report *r, const cli *c, const gp_job *job)
{
    const int has_data = job->data.x && job->gp;
    if (has_data && job->data.d == 1 && job->data.q == 1) {
        frg_report_heading(r, "Posterior");
        band_plot(r, job);
    }
    if (has_data) {
        frg_report_heading(r, "Leave one out");
        loo_plot(r, job);
    }
    if (job->what == GP_FIT) {
        frg_report_heading(r, "Convergence");
        trace_plot(r, job);
    }
    page_run_facts(r, c, job->line ? job->line : c);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void gp_report_build(frg_report *r, const cli *c, const gp_job *job, int full)
{
    const frg_gp_report g = frg_gp_get(job->gp);
    const int tables_alone = c->set.format == FORMAT_CSV && !full;
    const int predicts = job->what == GP_PREDICT || job->what == GP_SAMPLE;
    if (job->status > 0) {
        frg_report_paragraph(r, "NOT CONVERGED: the parameters are those of the best iterate.");
    }
    if (!tables_alone) {
        data_fact(r, job, &g);
    }
    if (!tables_alone && !predicts) {
        likelihood_facts(r, job);
    }
    if (!tables_alone && job->what == GP_FIT) {
        fit_facts(r, job);
    }
    if (!tables_alone && job->what == GP_LOO) {
        frg_report_fact_number(r, "Log density", job->loo.facts.log_density, 9);
        frg_report_fact_number(r, "RMSE", job->loo.facts.rmse, 6);
    }
    if (!tables_alone) {
        time_fact(r, c, job);
    }
    if (predicts) {
        prediction_table(r, job, g.q);
    } else if (job->what == GP_LOO) {
        loo_table(r, job);
    } else {
        parameter_table(r, job);
    }
    if (full) {
        pictures(r, c, job);
    }
}
