/* cli_fe_leave_out.c - leave-out variance components: the options, the run, and what is shown. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fe/fe_job.h"

static const char *const sets[] = {"all", "largest", "match", "observation"};

static frg_leave_out_opts usual_options(void)
{
    frg_leave_out_opts o;
    frg_leave_out_defaults(&o, sizeof o);
    return o;
}

/** What is chosen for components is refused without them. */
static int check_without(cli *c)
{
    const frg_leave_out_opts usual = usual_options();
    const frg_leave_out_opts *const o = &c->set.studies.leave_out;
    const given_option of_them[] = {{"--leave-out-leverage", o->leverage != usual.leverage},
                                    {"--leave-out-draws", o->draws != usual.draws}};
    return cli_refuse_given(c, of_them, sizeof of_them / sizeof *of_them, "goes with --leave-out",
                            "say what is left out, as in --leave-out match");
}

/** What does not go with components. */
static int check_beside(cli *c)
{
    const settings *const s = &c->set;
    if (s->checkpoint || s->fe_job.keep_effects == KEEP_NO) {
        return cli_fail(c, "E_OPTION", "--leave-out", "leave the other one out",
                        "--leave-out needs the fixed effects, which %s does not keep",
                        s->checkpoint ? "--checkpoint" : "--keep-effects no");
    }
    if (s->studies.leave_out.leverage == FRG_LEVERAGE_EXACT &&
        s->studies.leave_out.draws != usual_options().draws) {
        return cli_fail(c, "E_OPTION", "--leave-out-draws", "leave one of the two out",
                        "exact leverages take no draws");
    }
    if (s->format == FORMAT_CSV) {
        return cli_fail(c, "E_OPTION", "--leave-out", "take --format json, or leave it out",
                        "--format csv has the estimates alone, no variance components");
    }
    return 0;
}

int fe_leave_out_options(cli *c)
{
    static const frg_leave_out_unit units[] = {[LEAVE_OUT_MATCH] = FRG_LEAVE_MATCH,
                                               [LEAVE_OUT_OBSERVATION] = FRG_LEAVE_OBSERVATION,
                                               [LEAVE_OUT_NONE] = FRG_LEAVE_NONE};
    static const frg_fe_connected needs[] = {[LEAVE_OUT_MATCH] = FRG_CONNECTED_MATCH,
                                             [LEAVE_OUT_OBSERVATION] = FRG_CONNECTED_OBSERVATION,
                                             [LEAVE_OUT_NONE] = FRG_CONNECTED_LARGEST};
    settings *const s = &c->set;
    const int what = s->fe_job.leave_out;
    if (what == LEAVE_OUT_NO) {
        return check_without(c);
    }
    const int code = check_beside(c);
    if (code) {
        return code;
    }
    const frg_fe_connected have = s->fe.connected, need = needs[what];
    if (have != FRG_CONNECTED_ALL && have < need) {
        return cli_fail(c, "E_OPTION", "--connected", "leave it out",
                        "--leave-out %s needs --connected %s, not %s",
                        what == LEAVE_OUT_MATCH ? "match" : "observation", sets[need], sets[have]);
    }
    if (what == LEAVE_OUT_MATCH && have == FRG_CONNECTED_OBSERVATION) {
        return cli_fail(c, "E_OPTION", "--connected", "leave it out",
                        "--leave-out match needs --connected match, not observation");
    }
    s->studies.leave_out.leave_out = units[what];
    s->fe.connected = have == FRG_CONNECTED_ALL ? need : have;
    return 0;
}

int fe_leave_out_run(cli *c, fe_job *job)
{
    if (c->set.fe_job.leave_out == LEAVE_OUT_NO || job->status != FRG_OK) {
        return 0;
    }
    const frg_status status =
        frg_fe_leave_out(job->fit, &c->set.studies.leave_out, &job->components);
    progress_clear(&c->progress);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    job->status = status;
    return 0;
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void components_json(frg_json *j, const char *key, const frg_variance_components *v,
                            int errors)
{
    frg_json_open_object(j, key);
    frg_json_number(j, "first", v->first);
    frg_json_number(j, "second", v->second);
    frg_json_number(j, "covariance", v->covariance);
    if (!errors) {
        frg_json_number(j, "correlation", v->correlation);
        frg_json_number(j, "explained", v->explained);
    }
    frg_json_close_object(j);
}

void fe_leave_out_json(frg_json *j, const frg_leave_out *l)
{
    if (!l->leave_out) {
        return;
    }
    const int corrected = strcmp(l->leave_out, "none") != 0;
    frg_json_open_object(j, "leave_out");
    frg_json_string(j, "unit", l->leave_out);
    frg_json_string(j, "first", l->first);
    frg_json_string(j, "second", l->second);
    frg_json_integer(j, "n", l->n);
    frg_json_integer(j, "n_first", l->n_first);
    frg_json_integer(j, "n_second", l->n_second);
    frg_json_integer(j, "n_movers", l->n_movers);
    frg_json_integer(j, "n_matches", l->n_matches);
    frg_json_number(j, "outcome_variance", l->outcome_variance);
    frg_json_number(j, "error_variance", l->error_variance);
    components_json(j, "plug_in", &l->plug_in, 0);
    components_json(j, "homoscedastic", &l->homoscedastic, 0);
    components_json(j, "homoscedastic_error", &l->homoscedastic_error, 1);
    if (corrected) {
        components_json(j, "corrected", &l->corrected, 0);
        components_json(j, "corrected_error", &l->corrected_error, 1);
        components_json(j, "sampling_error", &l->sampling_error, 1);
        frg_json_number(j, "leverage_max", l->leverage_max);
    }
    frg_json_string(j, "leverage", l->leverage);
    frg_json_integer(j, "draws", l->draws);
    frg_json_integer(j, "iterations", l->iterations);
    frg_json_number(j, "seconds", l->seconds);
    frg_json_close_object(j);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void number_cell(frg_report *r, double x)
{
    if (isnan(x)) {
        frg_report_cell_text(r, "NA");
    } else {
        frg_report_cell_number(r, x, 5);
    }
}

/** Which of the members of components a row shows. */
static double member(const frg_variance_components *v, int i)
{
    const double of[] = {v->first, v->second, v->covariance, v->correlation, v->explained};
    return of[i];
}

static void table(frg_report *r, const frg_leave_out *l)
{
    const int corrected = strcmp(l->leave_out, "none") != 0, errors = corrected && l->draws > 0;
    char names[5][192];
    snprintf(names[0], sizeof names[0], "Var(%s)", l->first);
    snprintf(names[1], sizeof names[1], "Var(%s)", l->second);
    snprintf(names[2], sizeof names[2], "Cov(%s, %s)", l->first, l->second);
    snprintf(names[3], sizeof names[3], "correlation");
    snprintf(names[4], sizeof names[4], "share of Var(y - xb)");
    frg_report_table_open(r, "Variance components");
    frg_report_table_column(r, "", FRG_LEFT);
    frg_report_table_column(r, "plug-in", FRG_RIGHT);
    frg_report_table_column(r, "homoscedastic", FRG_RIGHT);
    if (corrected) {
        frg_report_table_column(r, "leave-out", FRG_RIGHT);
        frg_report_table_column(r, "std. error", FRG_RIGHT);
    }
    if (errors) {
        frg_report_table_column(r, "of draws", FRG_RIGHT);
    }
    for (int i = 0; i < 5; i++) {
        frg_report_cell_text(r, names[i]);
        number_cell(r, member(&l->plug_in, i));
        number_cell(r, member(&l->homoscedastic, i));
        if (corrected) {
            number_cell(r, member(&l->corrected, i));
            number_cell(r, member(&l->sampling_error, i));
        }
        if (errors) {
            number_cell(r, member(&l->corrected_error, i));
        }
    }
    frg_report_table_close(r);
}

void fe_leave_out_table(frg_report *r, const frg_leave_out *l)
{
    char text[320], a[32], b[32], d[32];
    if (!l->leave_out) {
        return;
    }
    table(r, l);
    snprintf(text, sizeof text, "%s; %s of %s levels of %s in several matches, %s matches",
             strcmp(l->leave_out, "none") == 0 ? "nothing" : l->leave_out, grouped(l->n_movers, a),
             grouped(l->n_first, b), l->first, grouped(l->n_matches, d));
    frg_report_fact(r, "Left out", text);
    if (l->draws > 0) {
        snprintf(text, sizeof text,
                 "from %s random projections; \"of draws\" are the errors they add",
                 grouped(l->draws, a));
    } else {
        snprintf(text, sizeof text, "exact");
    }
    if (isfinite(l->leverage_max)) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "; the largest %.4g", l->leverage_max);
    }
    frg_report_fact(r, "Leverages", text);
    if (isfinite(l->leverage_max)) {
        frg_report_fact(r, "Std. errors", "of sampling, on average an upper bound");
    }
}
