/* cmd_soap_train.c - fourge soap train: a classifier of digits, of the next character of a text, or
 * of a table's rows, trained by SOAP or AdamW. */
#include <math.h>
#include <string.h>

#include "cli_checkpoint.h"
#include "cli_worker.h"
#include "soap/mlp.h"
#include "soap/soap_job.h"
#include "tour.h"

typedef struct {
    worker worker;
    keeper keeper;
    training_set set;
    frg_soap_opts opts;
    training_run run;
    const char *optimizer, *data;
    double target, lr;
    int64_t rows, classes;
} train_job;

void soap_adamw(frg_soap_opts *o, double lr)
{
    frg_soap_defaults(o, sizeof *o, FRG_SOAP_EMERGING);
    o->max_precond_dim = 0;
    o->beta2 = 0.999;
    o->lr = lr;
}

static void train_json(frg_json *out, const cli *c, const void *job)
{
    const train_job *j = job;
    json_head(out, "fourge.soap.train/1");
    frg_json_string(out, "data", j->data);
    frg_json_string(out, "optimizer", j->optimizer);
    frg_json_number(out, "lr", j->lr);
    frg_json_integer(out, "rows", j->rows);
    frg_json_integer(out, "classes", j->classes);
    frg_json_integer(out, "steps", j->run.steps);
    frg_json_string(out, "status", frg_status_name(j->run.status));
    frg_json_integer(out, "long_axes", j->run.long_axes);
    frg_json_number(out, "loss", j->run.smoothed);
    frg_json_bool(out, "reached", j->target > 0 && j->run.smoothed <= j->target);
    frg_json_open_object(out, "seconds");
    frg_json_number(out, "total", j->run.seconds);
    frg_json_close_object(out);
    frg_json_open_array(out, "loss_trace");
    for (int t = 0; t < j->run.steps; t++) {
        frg_json_number(out, NULL, j->run.trace[t]);
    }
    frg_json_close_array(out);
    json_foot(out, c);
}

static void train_text(frg_report *r, const cli *c, const void *job)
{
    (void)c;
    const train_job *j = job;
    char a[32];
    frg_report_fact(r, "Data", j->data);
    frg_report_fact(r, "Optimizer", j->optimizer);
    frg_report_fact(r, "Steps", grouped(j->run.steps, a));
    if (j->run.status != FRG_OK) {
        frg_report_fact(r, "Result", frg_status_sentence(j->run.status));
    }
    frg_report_fact(r, "Time", seconds_text(j->run.seconds, a));
    frg_report_fact_number(r, "Loss (mean of the last steps)", j->run.smoothed, 3);
    const frg_series series = {.name = j->optimizer, .n = j->run.steps, .y = j->run.trace};
    const frg_plot plot = {.caption = "Loss",
                           .x_label = "step",
                           .y_label = "cross-entropy",
                           .log_y = 1,
                           .reference = (double)NAN,
                           .n_series = 1,
                           .series = &series};
    frg_report_plot(r, &plot);
}

static uint64_t hash_set(const training_set *set)
{
    const uint64_t h = frg_hash(0, set->x, set->rows * set->inputs * (int64_t)sizeof *set->x);
    return frg_hash(h, set->label, set->rows * (int64_t)sizeof *set->label);
}

/** Steps are long where the data have many columns: a stop leaves the one in hand, and the file has
 *  the state before it. */
static int work(void *job)
{
    train_job *const j = job;
    cli *const c = j->worker.c;
    const int steps = c->set.soap_job.steps;
    if (!c->set.checkpoint) {
        return training_run_make(&j->run, c, &j->set, &j->opts, steps, j->target, NULL, &j->worker);
    }
    int code = keeper_open(&j->keeper, c, "soap train", 1, hash_set(&j->set));
    if (!code) {
        code = training_run_make(&j->run, c, &j->set, &j->opts, steps, j->target, &j->keeper,
                                 &j->worker);
    }
    if (!code && (j->run.status == FRG_INTERRUPTED || j->run.status == FRG_TIME_LIMIT)) {
        code = keeper_stopped(c, j->run.status);
    }
    return code;
}

static int may_abandon(void *job)
{
    const train_job *const j = job;
    return !j->worker.c->set.checkpoint || training_may_stop(&j->run);
}

/** What the steps that are done have come to; the exit code. */
static int show(train_job *j, int code)
{
    cli *const c = j->worker.c;
    if (!code && j->run.steps == 0) {
        code = cli_check(c, j->run.status, "a step was done");
    }
    if (!code) {
        cli_show_warnings_from(c, j->run.shown);
        code = write_result(c, "Training", train_json, train_text, j);
    }
    if (!code && j->run.status == FRG_OK && j->target > 0 && j->run.smoothed > j->target) {
        code = 1; /* the steps ran out before the loss was there */
    }
    return code ? code : cli_ended(j->run.status);
}

static int abandon(void *job, frg_status why)
{
    train_job *const j = job;
    cli *const c = j->worker.c;
    j->run.status = why;
    j->run.seconds = j->run.began > 0 ? now_seconds() - j->run.began : 0;
    if (!c->set.checkpoint) {
        return show(j, 0);
    }
    const frg_status kept = training_keep(&j->run, &j->keeper);
    return show(j, kept < 0 ? cli_fail_library(c, kept) : keeper_stopped(c, why));
}

/** AdamW has neither factors nor a profile, and a text no columns: options that could do nothing
 *  are refused. */
static int check_train(const cli *c, int text)
{
    static const char *const of_adam[] = {"lr",
                                          "beta1",
                                          "beta2",
                                          "eps",
                                          "weight-decay",
                                          "weight-decay-method",
                                          "nesterov",
                                          "maximize",
                                          "correct-bias",
                                          "denom-floor",
                                          "nonfinite",
                                          "max-update-rms",
                                          "normalize-update"};
    if (text && c->set.soap_job.label) {
        return cli_fail(c, "E_OPTION", "--label", "leave it out",
                        "--label means nothing to a text, whose classes are its characters");
    }
    for (const option_spec *o = option_table; c->set.soap_job.optimizer && o->name; o++) {
        const size_t from = offsetof(settings, soap), to = from + sizeof c->set.soap;
        int known = o->field < from || o->field >= to || !c->given[o - option_table];
        for (size_t i = 0; i < sizeof of_adam / sizeof *of_adam && !known; i++) {
            known = strcmp(o->name, of_adam[i]) == 0;
        }
        if (!known) {
            char where[64];
            snprintf(where, sizeof where, "--%s", o->name);
            return cli_fail(c, "E_OPTION", where, "leave it out, or take --optimizer soap",
                            "%s means nothing to --optimizer adamw", where);
        }
    }
    return 0;
}

int soap_train(cli *c)
{
    const char *data = c->n_arguments > 1 ? c->arguments[1] : NULL;
    const char *label = c->set.soap_job.label;
    char path[4096];
    if (!data) {
        return cli_fail(c, "E_OPTION", "train", "fourge soap train digits",
                        "fourge soap train needs digits, text or a table with --label");
    }
    const int text = strcmp(data, "text") == 0, refused = check_train(c, text);
    if (refused) {
        return refused;
    }
    if (text || strcmp(data, "digits") == 0) {
        const int missing =
            tour_find_data(c, text ? "shakespeare.txt" : "digits.csv", path, sizeof path);
        if (missing) {
            return missing;
        }
        data = path;
        label = label ? label : "digit";
    }
    if (!label) {
        return cli_fail(c, "E_OPTION", "--label", NULL, "--label names the column to learn");
    }
    train_job j = {.worker = {.c = c, .work = work, .abandon = abandon, .may_abandon = may_abandon},
                   .data = c->arguments[1],
                   .target = c->set.soap_job.target};
    soap_options(c, &j.opts);
    j.worker.job = &j;
    j.optimizer = c->set.soap_job.optimizer ? "adamw" : "soap";
    j.lr = j.opts.lr;
    int code = checkpoint_begin(c);
    if (code) {
        return code;
    }
    code = text ? training_set_text(&j.set, c, data) : training_set_read(&j.set, c, data, label);
    j.rows = j.set.rows;
    j.classes = j.set.classes;
    if (!code && c->set.dry_run) {
        code = training_estimate(c, &j.set, &j.opts);
    } else {
        code = show(&j, code ? code : worker_run(&j.worker));
    }
    keeper_close(&j.keeper);
    training_run_destroy(&j.run);
    training_set_destroy(&j.set);
    return code;
}
