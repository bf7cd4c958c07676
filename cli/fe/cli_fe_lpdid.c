/* cli_fe_lpdid.c - local projections of difference in differences: the options, the run, the table
 * and the curve by horizon. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fe/fe_job.h"

/* ---- options --------------------------------------------------------------------------------- */

/** What is of local projections is refused without them. */
static int check_without(cli *c)
{
    const frg_lpdid_opts *const o = &c->set.studies.lpdid;
    frg_lpdid_opts usual;
    frg_lpdid_defaults(&usual, sizeof usual);
    const given_option of_them[] = {
        {"--pre-window", o->pre_window != usual.pre_window},
        {"--post-window", o->post_window != usual.post_window},
        {"--pooled", o->pooled},
        {"--reweight", o->reweight},
        {"--pmd", o->pmd != usual.pmd},
        {"--never-treated",
         o->never_treated < usual.never_treated || o->never_treated > usual.never_treated}};
    return cli_refuse_given(c, of_them, sizeof of_them / sizeof *of_them, "goes with --lpdid",
                            "name the cohorts, as in --lpdid first_treated");
}

/** What local projections have not. */
static int check_beside(cli *c)
{
    const settings *const s = &c->set;
    const fe_settings *const f = &s->fe_job;
    const given_option others[] = {{"--family", s->fe.family != FRG_FAMILY_OLS},
                                   {"--first-stage", s->fe.first_stage != NULL},
                                   {"--split", s->fe.split != NULL},
                                   {"--fsplit", s->fe.fsplit != NULL},
                                   {"--ritest", s->studies.ritest.variable != NULL},
                                   {"--leave-out", f->leave_out != LEAVE_OUT_NO},
                                   {"--save-effects", f->save_effects != NULL},
                                   {"--save-residuals", f->save_residuals != NULL},
                                   {"--save-groups", f->save_groups != NULL},
                                   {"--predict", f->predict != NULL},
                                   {"--keep-effects", f->keep_effects == KEEP_YES},
                                   {"--keep", f->n_keep > 0},
                                   {"--drop", f->n_drop > 0},
                                   {"--order", f->n_order > 0},
                                   {"--label", f->n_label > 0},
                                   {"--digits", f->digits > 0},
                                   {"--stars", f->stars},
                                   {"--statistics", f->statistics != NULL},
                                   {"--plan", s->fe.plan != NULL},
                                   {"--checkpoint", s->checkpoint != NULL},
                                   {"--repeat", s->repeat > 0},
                                   {"--dry-run", s->dry_run}};
    return cli_refuse_given(c, others, sizeof others / sizeof *others,
                            "does not go with --lpdid, which is a regression for each horizon",
                            "leave one of the two out");
}

int fe_lpdid_options(cli *c)
{
    settings *const s = &c->set;
    if (!s->studies.lpdid.cohort) {
        return check_without(c);
    }
    if (!s->fe.panel) {
        return cli_fail(c, "E_OPTION", "--lpdid", "name them, as in --panel unit,year",
                        "--lpdid needs units and periods, which --panel names");
    }
    s->studies.lpdid.panel = s->fe.panel;
    s->studies.lpdid.subset = s->fe.subset;
    return check_beside(c);
}

/* ---- what is shown --------------------------------------------------------------------------- */

static const frg_coefficient *effect_of(const frg_fe_result *f, const char *term)
{
    for (int k = 0; k < f->n_coefficients; k++) {
        if (strcmp(f->coefficients[k].term, term) == 0) {
            return &f->coefficients[k];
        }
    }
    return NULL;
}

/** The horizon of a fit, by its outcome. */
static int horizon_of(const frg_lpdid_design *d, const frg_fe_result *f)
{
    int i = 0;
    while (i < d->n - 1 && strcmp(d->outcomes[i].name, f->depvar) != 0) {
        i++;
    }
    return d->outcomes[i].horizon;
}

/** The fits with an effect, and their horizons: models without one are left out of the call with a
 *  warning, and an effect that was dropped has none. */
static fe_row horizon_row(const void *of, int i)
{
    const fe_job *const job = of;
    const frg_lpdid_design *const d = frg_lpdid_get(job->lpdid);
    for (int64_t m = 0; m < frg_fe_many_count(job->many); m++) {
        const frg_fe_result *const f = frg_fe_get(frg_fe_many_get(job->many, m));
        const frg_coefficient *const k = effect_of(f, d->term);
        if (k && i-- == 0) {
            return (fe_row){.number = horizon_of(d, f), .k = k, .rows = f->n};
        }
    }
    return (fe_row){.k = NULL};
}

static fe_estimates estimates_of(const fe_job *job)
{
    fe_estimates t = {.head = "horizon",
                      .count = "rows",
                      .vcov = &frg_fe_get(frg_fe_many_get(job->many, 0))->vcov[0],
                      .level = job->opts.level,
                      .row = horizon_row,
                      .of = job};
    while (horizon_row(job, t.n).k) {
        t.n++;
    }
    return t;
}

/** What is regressed, where it is not the change from the period before. */
static void outcome_fact(frg_report *r, const frg_lpdid_opts *o, int last)
{
    char later[80] = "changes", before[80] = "the period before";
    if (o->pooled) {
        snprintf(later, sizeof later, "the mean of the periods 0 to %d", last);
    }
    if (o->pmd == 0) {
        snprintf(before, sizeof before, "the mean of all periods before");
    } else if (o->pmd > 1) {
        snprintf(before, sizeof before, "the mean of the %d periods before", o->pmd);
    }
    if (o->pooled || o->pmd != 1) {
        char text[200];
        snprintf(text, sizeof text, "%s%s%s", later, o->pooled ? ", less " : " from ", before);
        frg_report_fact(r, "Outcome", text);
    }
}

static void facts(frg_report *r, const fe_job *job, const fe_estimates *t)
{
    char text[320];
    const frg_lpdid_design *const d = frg_lpdid_get(job->lpdid);
    const cli *const c = job->line;
    frg_report_fact(r, "Formula", job->formula);
    if (strcmp(job->path, "-") != 0) {
        frg_report_fact(r, "Data", job->path);
    }
    frg_report_fact(r, "Panel", job->opts.panel);
    snprintf(text, sizeof text, "%.200s; never treated: %.15g", c->set.studies.lpdid.cohort,
             c->set.studies.lpdid.never_treated);
    frg_report_fact(r, "Cohorts", text);
    outcome_fact(r, &c->set.studies.lpdid, d->last);
    if (d->first_stage) {
        frg_report_fact(r, "Estimates", "the mean over the treated rows (regression adjustment)");
    }
    vcov_words(t->vcov, text, sizeof text);
    frg_report_fact(r, "Std. errors", text);
}

static void lpdid_report(frg_report *r, const cli *c, const void *of)
{
    const fe_job *const job = of;
    const fe_estimates t = estimates_of(job);
    facts(r, job, &t);
    fe_estimates_show(r, &t, c->set.format == FORMAT_CSV);
    if (c->set.format != FORMAT_CSV) {
        fe_models_notes(r, job->many);
        char total[32], read[32], text[160];
        snprintf(text, sizeof text, "%s (read %s), %d threads", seconds_text(job->total, total),
                 seconds_text(job->read, read), frg_threads(c->ctx));
        frg_report_fact(r, "Time", text);
    }
}

static void curve(frg_report *r, const fe_job *job, const fe_estimates *t)
{
    double *const memory = malloc(4 * ((size_t)t->n + 1) * sizeof *memory);
    char caption[80];
    const double reference[] = {-1, 0};
    if (!memory || t->n < 2) {
        free(memory);
        return;
    }
    double *const at[] = {memory, memory + t->n, memory + 2 * t->n, memory + 3 * t->n};
    for (int i = 0; i < t->n; i++) {
        const fe_row row = horizon_row(job, i);
        const int known = isfinite(row.k->std_error);
        at[0][i] = row.number;
        at[1][i] = row.k->estimate;
        at[2][i] = known ? row.k->conf_low : row.k->estimate;
        at[3][i] = known ? row.k->conf_high : row.k->estimate;
    }
    snprintf(caption, sizeof caption, "Estimates by horizon with %.4g%% intervals", 100 * t->level);
    const frg_series series[] = {
        {.name = "estimate",
         .n = t->n,
         .x = at[0],
         .y = at[1],
         .low = at[2],
         .high = at[3],
         .style = FRG_POINTS},
        {.name = "reference", .n = 1, .x = reference, .y = reference + 1, .style = FRG_POINTS}};
    const frg_plot plot = {.caption = caption,
                           .x_label = "horizon",
                           .y_label = "change of the outcome",
                           .reference = 0,
                           .n_series = job->line->set.studies.lpdid.pmd == 1 ? 2 : 1,
                           .series = series};
    frg_report_plot(r, &plot);
    free(memory);
}

static void lpdid_page(frg_report *r, const cli *c, const void *of)
{
    const fe_job *const job = of;
    const fe_estimates t = estimates_of(job);
    facts(r, job, &t);
    fe_estimates_show(r, &t, 0);
    fe_models_notes(r, job->many);
    curve(r, job, &t);
    page_run_facts(r, c, c);
}

static void lpdid_json(frg_json *j, const cli *c, const void *of)
{
    const fe_job *const job = of;
    const fe_estimates t = estimates_of(job);
    json_head(j, "fourge.fe/1");
    frg_json_string(j, "status", frg_status_name(job->status));
    frg_json_string(j, "formula", job->formula);
    frg_json_open_object(j, "lpdid");
    frg_json_string(j, "panel", job->opts.panel);
    frg_json_string(j, "cohort", c->set.studies.lpdid.cohort);
    frg_json_number(j, "never_treated", c->set.studies.lpdid.never_treated);
    frg_json_bool(j, "pooled", c->set.studies.lpdid.pooled);
    frg_json_bool(j, "reweight", c->set.studies.lpdid.reweight);
    frg_json_integer(j, "pmd", c->set.studies.lpdid.pmd);
    frg_json_integer(j, "last", frg_lpdid_get(job->lpdid)->last);
    frg_json_open_array(j, "horizons");
    for (int i = 0; i < t.n; i++) {
        const fe_row row = horizon_row(job, i);
        frg_json_open_object(j, NULL);
        frg_json_integer(j, "horizon", row.number);
        frg_json_integer(j, "n", row.rows);
        frg_json_number(j, "estimate", row.k->estimate);
        frg_json_number(j, "std_error", row.k->std_error);
        frg_json_number(j, "statistic", row.k->statistic);
        frg_json_number(j, "p_value", row.k->p_value);
        frg_json_number(j, "conf_low", row.k->conf_low);
        frg_json_number(j, "conf_high", row.k->conf_high);
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
    frg_json_close_object(j);
    fe_json_models(j, c, job);
}

/* ---- the run --------------------------------------------------------------------------------- */

static int fit(cli *c, fe_job *job)
{
    const double start = now_seconds();
    frg_status status =
        frg_lpdid_create(&job->lpdid, c->ctx, job->formula, job->data, &c->set.studies.lpdid);
    if (status >= 0) {
        const frg_lpdid_design *const d = frg_lpdid_get(job->lpdid);
        if (job->opts.n_vcov == 0) {
            job->opts.vcov[0] = d->vcov;
            job->opts.n_vcov = 1;
        }
        job->opts.first_stage = d->first_stage;
        status = frg_fe_fit_many(&job->many, c->ctx, d->formula, d->table, &job->opts);
    }
    progress_clear(&c->progress);
    job->status = status;
    job->total = now_seconds() - start;
    return job->many ? 0 : cli_fail_library(c, status);
}

int fe_lpdid_run(cli *c, fe_job *job)
{
    static const fe_models_view view = {"fourge: local projections", "Local projections",
                                        lpdid_page, lpdid_json, lpdid_report};
    job->line = c;
    int code = fe_job_read(c, job);
    code = code ? code : fit(c, job);
    return code ? code : fe_models_show(c, job, &view);
}
