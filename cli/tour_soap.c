/* tour_soap.c - the tour's job: a digit classifier trained twice, by AdamW and by SOAP. */
#include <math.h>
#include <stdlib.h>

#include "mlp.h"
#include "soap_job.h"
#include "tour.h"

enum { TOUR_STEPS = 100 };

typedef struct {
    training_run run[2]; /* AdamW, SOAP */
    int reached;         /* SOAP's step at AdamW's last loss */
} soap_tour;

static const char *const NAMES[2] = {"AdamW", "SOAP"};

/** The first step at which the running mean of the loss is at most `level`; steps + 1 where it never is. */
static int first_below(const training_run *run, double level)
{
    double mean = 0;
    for (int t = 0; t < run->steps; t++) {
        mean = t == 0 ? run->trace[0] : 0.9 * mean + 0.1 * run->trace[t];
        if (mean <= level) {
            return t + 1;
        }
    }
    return run->steps + 1;
}

static int run(cli *c, void **state)
{
    char path[4096];
    training_set set;
    frg_soap_opts o[2];
    soap_tour *const t = calloc(1, sizeof *t);
    *state = t;
    if (!t) {
        return cli_fail_memory(c);
    }
    soap_adamw(&o[0], 1e-2);
    frg_soap_defaults(&o[1], sizeof o[1], FRG_SOAP_EMERGING);
    o[1].lr = 1e-2;
    o[1].precondition_frequency = 5;
    int code = tour_find_data(c, "digits.csv", path, sizeof path);
    if (code) {
        return code;
    }
    code = training_set_read(&set, c, path, "digit");
    for (int k = 0; k < 2 && !code; k++) {
        code = training_run_make(&t->run[k], c, &set, &o[k], TOUR_STEPS, 0, NULL, NULL);
    }
    training_set_destroy(&set);
    t->reached = first_below(&t->run[1], t->run[0].smoothed);
    return code;
}

static void report(frg_report *r, cli *c, void *state, int full)
{
    const soap_tour *const t = state;
    char a[32];
    (void)c;
    frg_report_heading(r, "A digit classifier trained twice");
    frg_report_paragraph(
        r, "1797 handwritten digits of 8 x 8 pixels, a network 64-256-256-10, batches of 512: the "
           "same "
           "weights at the start and the same batches, steps by AdamW and by SOAP, which works in "
           "the eigenbases of its factors and refreshes them every 5 steps.");
    frg_report_table_open(r, "Cross-entropy is the running mean of the last steps");
    frg_report_table_column(r, "optimizer", FRG_LEFT);
    frg_report_table_column(r, "steps", FRG_RIGHT);
    frg_report_table_column(r, "cross-entropy", FRG_RIGHT);
    frg_report_table_column(r, "time", FRG_RIGHT);
    frg_report_table_column(r, "steps to AdamW's", FRG_RIGHT);
    for (int k = 0; k < 2; k++) {
        frg_report_cell_text(r, NAMES[k]);
        frg_report_cell_integer(r, t->run[k].steps);
        frg_report_cell_number(r, t->run[k].smoothed, 3);
        frg_report_cell_text(r, seconds_text(t->run[k].seconds, a));
        frg_report_cell_integer(r, k ? t->reached : t->run[0].steps);
    }
    frg_report_table_close(r);
    const frg_series series[2] = {{.name = NAMES[0], .n = t->run[0].steps, .y = t->run[0].trace},
                                  {.name = NAMES[1], .n = t->run[1].steps, .y = t->run[1].trace}};
    const frg_plot plot = {.caption = "Loss by step",
                           .x_label = "step",
                           .y_label = "cross-entropy",
                           .log_y = 1,
                           .reference = (double)NAN,
                           .n_series = 2,
                           .series = series};
    if (full) {
        frg_report_plot(r, &plot);
    }
}

static void json(frg_json *j, const cli *c, const void *state)
{
    const soap_tour *const t = state;
    (void)c;
    frg_json_open_object(j, NULL);
    frg_json_string(j, "job", "digits trained twice");
    frg_json_integer(j, "steps", t->run[0].steps);
    frg_json_number(j, "adamw_loss", t->run[0].smoothed);
    frg_json_number(j, "soap_loss", t->run[1].smoothed);
    frg_json_integer(j, "soap_steps_to_adamw_loss", t->reached);
    frg_json_number(j, "adamw_seconds", t->run[0].seconds);
    frg_json_number(j, "soap_seconds", t->run[1].seconds);
    frg_json_close_object(j);
}

static int exit_code(const void *state)
{
    (void)state;
    return 0;
}

static void release(void *state)
{
    soap_tour *const t = state;
    if (t) {
        training_run_destroy(&t->run[0]);
        training_run_destroy(&t->run[1]);
        free(t);
    }
}

const tour_part tour_soap = {run, report, json, exit_code, release};
