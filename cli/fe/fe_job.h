/* fe_job.h - one regression of the program: data, fit, times; shared by `fe` and `tour`. */
#ifndef FOURGE_CLI_FE_JOB_H
#define FOURGE_CLI_FE_JOB_H

#include "cli_checkpoint.h"

typedef struct {
    const char *formula, *path;
    const char *shown; /* the path as the report names it; NULL: path */
    const cli *line;   /* the command that the page shows; NULL: the program's own */
    frg_fe_opts opts;
    frg_table *data;
    frg_fe *fit;
    frg_fe_many *many; /* several models in place of one */
    frg_status status;
    frg_leave_out components; /* leave_out NULL: not asked for */
    frg_ritest ritest;        /* term NULL: not asked for */
    frg_lpdid *lpdid;         /* local projections, whose fits are `many`; NULL: not asked for */
    int plan_written;         /* the solver is in the file of --plan now */
    uint64_t source;          /* of the data (hash_source), before they were read */
    kept_layout layout;       /* of a run with a checkpoint */
    double read;
    double encode, solve, vcov, total; /* medians under --repeat */
    double *totals;
    int n_totals;
} fe_job;

int fe_job_read(cli *c, fe_job *job);
/** Fits once, or 1 + --repeat times. */
int fe_job_fit(cli *c, fe_job *job);
void fe_job_release(fe_job *job);
/** Do the formula and the options make several models, or their table? */
int fe_makes_many(const cli *c);
/** Reads, fits and shows them. */
int fe_many_run(cli *c, fe_job *job);
/** A model as members of an open object. */
void fe_json_model(frg_json *j, const frg_fe_result *f, frg_status status);

/** The table and its facts; `full`: every column's certificate, plots, options and versions as
 *  well. */
void fe_report_build(frg_report *r, const cli *c, const fe_job *job, int full);
void fe_json_build(frg_json *j, const cli *c, const fe_job *job);
/** A row of a table of estimates; label NULL: the number. */
typedef struct {
    const char *label;
    int number;
    const frg_coefficient *k;
    int64_t rows; /* observations, where the table shows them */
} fe_row;
typedef struct {
    const char *head;        /* of the labels */
    const char *count;       /* of the observations; NULL: they are not shown */
    const frg_fe_vcov *vcov; /* of the first */
    double level;
    int n;
    fe_row (*row)(const void *of, int i);
    const void *of;
} fe_estimates;
void fe_estimates_show(frg_report *r, const fe_estimates *t, int csv);
/** A row of the coefficients' table. */
void coefficient_json(frg_json *j, const frg_coefficient *k);
/** First stages and tests; nothing without instruments. */
void fe_iv_json(frg_json *j, const frg_fe_result *f);
void fe_iv_facts(frg_report *r, const frg_fe_result *f, double level);
/** The same of a generalised linear model; facts of one alone. */
void fe_glm_json(frg_json *j, const frg_fe_result *f);
void fe_glm_facts(frg_report *r, const frg_fe_result *f);
/** Leave-out variance components: what they ask of the fit, 0 or the exit code; the run behind a
 *  fit that has converged; what is shown, nothing where there are none. */
int fe_leave_out_options(cli *c);
int fe_leave_out_run(cli *c, fe_job *job);
void fe_leave_out_json(frg_json *j, const frg_leave_out *l);
void fe_leave_out_table(frg_report *r, const frg_leave_out *l);
/** Randomisation inference: what it asks of the fit, 0 or the exit code; the run behind a fit that
 *  came to its end; what is shown, nothing where there is none. */
int fe_ritest_options(cli *c);
int fe_ritest_run(cli *c, fe_job *job);
void fe_ritest_json(frg_json *j, const cli *c, const frg_ritest *t);
void fe_ritest_table(frg_report *r, const cli *c, const frg_ritest *t);
/** Local projections: what is refused without them, 0 or the exit code; reads, fits and shows
 *  them. */
int fe_lpdid_options(cli *c);
int fe_lpdid_run(cli *c, fe_job *job);
/** The members of a call of several models that are behind its formula. */
void fe_json_models(frg_json *j, const cli *c, const fe_job *job);
/** What shows a call of several models: as a page, JSON and text. */
typedef struct {
    const char *page_title, *title;
    report_writer page;
    json_writer json;
    report_writer text;
} fe_models_view;
/** The page, the warnings and the result; the exit code of the run. */
int fe_models_show(cli *c, const fe_job *job, const fe_models_view *v);
/** Beside a table: what a reader of it has to be told of single models. */
void fe_models_notes(frg_report *r, const frg_fe_many *m);
/** A plot of the points of an event study, references at 0; nothing where there are few. */
void fe_event_plot(frg_report *r, const frg_fe_result *f, double level);
/** The first stage of difference in differences; nothing in one stage. */
void fe_two_stage_fact(frg_report *r, const frg_fe_result *f);
enum { MOST_INTERVALS = 40 };
/** Estimates with intervals, to be drawn one below the other. */
typedef struct {
    int n;
    const char *term[MOST_INTERVALS];
    double estimate[MOST_INTERVALS], low[MOST_INTERVALS], high[MOST_INTERVALS];
} fe_intervals;
/** Adds a coefficient, times a scale that NULL leaves at the estimate's own; one without an error,
 *  or beyond the most, is left out. */
void fe_intervals_add(fe_intervals *p, const frg_coefficient *k, double (*scale)(double));
/** A plot of them against 0, or nothing where there are none. */
void fe_intervals_plot(frg_report *r, const fe_intervals *p, const char *caption,
                       const char *y_label);
/** "clustered by firm (545)", "heteroskedasticity-robust (hc1)": for people. */
void vcov_words(const frg_fe_vcov *v, char *text, size_t room);

#endif
