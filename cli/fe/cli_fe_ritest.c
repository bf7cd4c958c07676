/* cli_fe_ritest.c - randomisation inference: the options, the run, and what is shown. */
#include <math.h>

#include "fe/fe_job.h"

/** What is chosen for permutations is refused without them. */
static int check_without(cli *c)
{
    const frg_ritest_opts *const o = &c->set.studies.ritest;
    frg_ritest_opts usual;
    frg_ritest_defaults(&usual, sizeof usual);
    const given_option of_them[] = {{"--ritest-cluster", o->cluster != NULL},
                                    {"--ritest-strata", o->strata != NULL},
                                    {"--ritest-reps", o->reps != usual.reps},
                                    {"--ritest-statistic", o->statistic != usual.statistic}};
    return cli_refuse_given(c, of_them, sizeof of_them / sizeof *of_them, "goes with --ritest",
                            "say what is permuted, as in --ritest treated");
}

int fe_ritest_options(cli *c)
{
    const settings *const s = &c->set;
    if (!s->studies.ritest.variable) {
        return check_without(c);
    }
    if (s->format == FORMAT_CSV) {
        return cli_fail(c, "E_OPTION", "--ritest", "take --format json, or leave it out",
                        "--format csv has the estimates alone, no permutations");
    }
    if (s->checkpoint) {
        return cli_fail(c, "E_OPTION", "--ritest", "leave one of the two out",
                        "--ritest does not go with --checkpoint, which keeps no permutations");
    }
    return 0;
}

int fe_ritest_run(cli *c, fe_job *job)
{
    if (!c->set.studies.ritest.variable || job->status == FRG_INTERRUPTED ||
        job->status == FRG_TIME_LIMIT) {
        return 0;
    }
    const frg_status status =
        frg_fe_ritest(job->fit, &job->opts, &c->set.studies.ritest, NULL, &job->ritest);
    progress_clear(&c->progress);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    job->status = status > 0 ? status : job->status;
    return 0;
}

static int compares_t(const cli *c)
{
    return c->set.studies.ritest.statistic == FRG_RITEST_STATISTIC;
}

void fe_ritest_json(frg_json *j, const cli *c, const frg_ritest *t)
{
    if (!t->term) {
        return;
    }
    frg_json_open_object(j, "ritest");
    frg_json_string(j, "term", t->term);
    frg_json_string(j, "cluster", c->set.studies.ritest.cluster);
    frg_json_string(j, "strata", c->set.studies.ritest.strata);
    frg_json_string(j, "statistic", compares_t(c) ? "t" : "estimate");
    frg_json_number(j, "estimate", t->estimate);
    frg_json_number(j, "observed", t->observed);
    frg_json_number(j, "p_value", t->p_value);
    frg_json_number(j, "std_error", t->std_error);
    frg_json_integer(j, "reps", t->reps);
    frg_json_integer(j, "permuted", t->permuted);
    frg_json_integer(j, "n_strata", t->strata);
    frg_json_bool(j, "converged", t->converged);
    frg_json_close_object(j);
}

static void permuted_fact(frg_report *r, const frg_ritest_opts *o, const frg_ritest *t)
{
    char text[640], count[32];
    int n = snprintf(text, sizeof text, "the values of %s rows", grouped(t->permuted, count));
    if (o->cluster) {
        n = snprintf(text, sizeof text, "the values of the %s groups of %.200s",
                     grouped(t->permuted, count), o->cluster);
    }
    if (o->strata) {
        snprintf(text + n, sizeof text - (size_t)n, " within the %s strata of %.200s",
                 grouped(t->strata, count), o->strata);
    }
    frg_report_fact(r, "Permuted", text);
}

void fe_ritest_table(frg_report *r, const cli *c, const frg_ritest *t)
{
    char text[32];
    if (!t->term) {
        return;
    }
    frg_report_table_open(r, "Randomisation inference");
    frg_report_table_column(r, "", FRG_LEFT);
    frg_report_table_column(r, compares_t(c) ? "t value" : "estimate", FRG_RIGHT);
    frg_report_table_column(r, "p value", FRG_RIGHT);
    frg_report_table_column(r, "std. error of p", FRG_RIGHT);
    frg_report_table_column(r, "draws", FRG_RIGHT);
    frg_report_cell_text(r, t->term);
    frg_report_cell_number(r, t->observed, 5);
    if (t->p_value > 0) {
        frg_report_cell_number(r, t->p_value, 4);
        frg_report_cell_number(r, t->std_error, 2);
    } else { /* none of the draws was so far out: they do not tell how rare it is */
        snprintf(text, sizeof text, "<%.2g", 1 / (double)t->reps);
        frg_report_cell_text(r, text);
        frg_report_cell_text(r, "-");
    }
    frg_report_cell_integer(r, t->reps);
    frg_report_table_close(r);
    permuted_fact(r, &c->set.studies.ritest, t);
    if (!t->converged) {
        frg_report_paragraph(r, "NOT CONVERGED: draws are those of their last iterate.");
    }
}
