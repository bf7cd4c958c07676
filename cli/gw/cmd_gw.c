/* cmd_gw.c - `fourge gw`: align, sinkhorn, paths, energy; barycenters are in cmd_gw_shapes.c. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli_checkpoint.h"
#include "gw/gw_job.h"

static void seconds_open(frg_json *j)
{
    frg_json_open_object(j, "seconds");
}

static int needs(cli *c, int count, const char *usage)
{
    return c->n_arguments == count + 1 ? 0
                                       : cli_fail(c, "E_OPTION", c->arguments[0], usage,
                                                  "fourge gw %s needs %d files, got %d",
                                                  c->arguments[0], count, c->n_arguments - 1);
}

static device_work work_of_alignment(const frg_gw_report *r)
{
    return (device_work){r->device_launches, r->device_waits, r->device_bytes_in,
                         r->device_bytes_out};
}

static device_work work_of_sinkhorn(const frg_sinkhorn_report *r)
{
    return (device_work){r->device_launches, r->device_waits, r->device_bytes_in,
                         r->device_bytes_out};
}

static const char *store_name(frg_gw_store store)
{
    static const char *const names[] = {"auto", "f32", "u16", "u16r", "fly", "f64"};
    return names[store];
}

/* ---- align ----------------------------------------------------------------------------------- */

typedef struct {
    gw_input x, y, linear, start;
    double *a, *b, *potentials;
    frg_gw *solver;
    gw_alignment shown;
    frg_status status;
    double read, write;
    double *totals;
    int n_totals;
} align_job;

static int64_t points_of(const gw_input *in)
{
    return in->graph ? frg_graph_get(in->graph).n : in->array.shape[0];
}

static int align_read(cli *c, align_job *job)
{
    const double begin = now_seconds();
    const gw_settings *const g = &c->set.gw;
    int code = gw_read(c, c->arguments[1], &job->x);
    if (!code) {
        code = gw_read(c, c->arguments[2], &job->y);
    }
    if (!code && g->linear_cost) {
        code = gw_read(c, g->linear_cost, &job->linear);
    }
    if (!code && g->initial_plan) {
        code = gw_read(c, g->initial_plan, &job->start);
    }
    if (!code && g->source) {
        code = gw_read_vector(c, "--source", g->source, points_of(&job->x), &job->a);
    }
    if (!code && g->target) {
        code = gw_read_vector(c, "--target", g->target, points_of(&job->y), &job->b);
    }
    if (!code && g->initial_potentials) {
        code = gw_read_vector(c, "--initial-potentials", g->initial_potentials,
                              points_of(&job->x) + points_of(&job->y), &job->potentials);
    }
    job->read = now_seconds() - begin;
    return code;
}

static frg_gw_side side_of(const gw_input *in, const double *weights)
{
    return (frg_gw_side){
        .data = in->graph ? NULL : &in->array, .graph = in->graph, .weights = weights};
}

static frg_status put_state(const void *solver, frg_checkpoint *state)
{
    return frg_gw_save(solver, state);
}

/** A frg_gw_saver, user a keeper. */
static frg_status save_state(void *user, const frg_gw *s, int stopped)
{
    return keeper_save_solver(user, s, put_state, stopped);
}

/** The run with --checkpoint; *code: where it ends here. */
static frg_status run_kept(cli *c, frg_gw *solver, int *code)
{
    keeper k;
    frg_status status = FRG_OK;
    *code = keeper_open(&k, c, "gw", 1, 0);
    if (!*code) {
        frg_gw_keep(solver, save_state, &k);
        if (c->resumed) {
            status = frg_gw_resume(solver, c->resumed);
        }
        if (status >= 0) {
            status = frg_gw_run(solver, NULL);
        }
        if ((status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT) && k.saved > 0) {
            progress_clear(&c->progress);
            *code = keeper_stopped(c, status);
        }
    }
    keeper_close(&k);
    return status;
}

/** Tells which options of an alignment stand on the line: those of the entropic modes are given at
 *  whatever value. */
static void name_given(const cli *c, frg_gw_opts *o)
{
    const size_t first = offsetof(settings, gw.align), end = first + sizeof *o;
    for (const option_spec *at = option_table; at->name; at++) {
        char name[64];
        size_t k = 0;
        for (; at->name[k] && k + 1 < sizeof name; k++) {
            name[k] = at->name[k];
            name[k] = name[k] == '-' ? '_' : name[k];
        }
        name[k] = 0;
        if (c->given[at - option_table] && at->field >= first && at->field < end) {
            frg_gw_give(o, name);
        }
    }
    if (c->set.gw.potentials) {
        frg_gw_give(o, "potentials");
    }
}

/** The options of the line, which go above a preset.  c->set shows them all from here on. */
static frg_gw_opts align_options(cli *c)
{
    const frg_gw_preset preset = c->set.gw.align.preset;
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    frg_gw_apply_preset(&o, preset);
    take_given(c, offsetof(settings, gw.align), sizeof o, &o);
    name_given(c, &o);
    c->set.gw.align = o;
    c->set.gw.align.preset = preset;
    o.preset = FRG_GW_PRESET_NONE;
    return o;
}

static int align_once(cli *c, align_job *job, double *total)
{
    frg_gw_opts o = align_options(c);
    if ((job->x.graph || job->y.graph) && o.distance == FRG_GW_DISTANCE_AUTO) {
        o.distance = FRG_GW_DISTANCE_GRAPH;
    }
    frg_gw_destroy(job->solver);
    job->solver = NULL;
    const double begin = now_seconds();
    frg_status status =
        frg_gw_create(&job->solver, c->ctx, side_of(&job->x, job->a), side_of(&job->y, job->b),
                      job->linear.array.data ? &job->linear.array : NULL, &o);
    if (status >= 0 && job->start.array.data) {
        status = frg_gw_start_plan(job->solver, job->start.array);
    }
    if (status >= 0 && job->potentials) {
        status = frg_gw_start_potentials(job->solver, job->potentials,
                                         job->potentials + points_of(&job->x));
    }
    int code = 0;
    if (status >= 0) {
        status =
            c->set.checkpoint ? run_kept(c, job->solver, &code) : frg_gw_run(job->solver, NULL);
    }
    *total = now_seconds() - begin;
    job->status = status;
    return code ? code : status < 0 ? cli_fail_library(c, status) : 0;
}

static void align_json(frg_json *j, const cli *c, const void *state)
{
    const align_job *const job = state;
    const frg_gw_report *const r = frg_gw_get(job->solver);
    const frg_plan_report p = frg_plan_get(frg_gw_plan(job->solver));
    json_head(j, "fourge.gw.align/1");
    frg_json_integer(j, "n", r->n);
    frg_json_integer(j, "m", r->m);
    frg_json_string(j, "status", frg_status_name(job->status));
    frg_json_string(j, "mode", frg_gw_mode_name(r->mode));
    frg_json_string(j, "mode_reason", r->mode_reason);
    frg_json_string(j, "dtype", r->dtype == FRG_GW_DTYPE_F64 ? "f64" : "f32");
    frg_json_number(j, "energy", r->energy);
    frg_json_number(j, "gw_distance", sqrt(fmax(r->energy, 0)));
    frg_json_number(j, "objective", r->objective);
    frg_json_number(j, "energy_standard_error", r->energy_standard_error);
    frg_json_number(j, "lower_bound", r->lower_bound);
    gw_plan_json(j, &p);
    frg_json_integer(j, "outer_iterations", r->outer_iterations);
    frg_json_integer(j, "coarse_iterations", r->coarse_iterations);
    frg_json_integer(j, "anchors", r->anchors);
    frg_json_integer(j, "inner_iterations", r->inner_iterations);
    frg_json_number(j, "epsilon_end", r->epsilon_end);
    frg_json_string(j, "reason", frg_gw_reason_name(r->reason));
    frg_json_number(j, "rounding_floor", r->rounding_floor);
    frg_json_bool(j, "multiscale", r->multiscale);
    frg_json_integer(j, "starts", r->starts);
    frg_json_string(j, "started_from", frg_gw_start_name(r->started_from));
    frg_json_number(j, "energy_product", r->energy_product);
    frg_json_number(j, "vertex_energy", r->vertex_energy);
    frg_json_number(j, "sharpened_energy", r->sharpened_energy);
    frg_json_number(j, "blur", r->blur);
    frg_json_number(j, "other_energy", r->other_energy);
    frg_json_string(j, "verdict", r->verdict);
    frg_json_integer(j, "verdict_points", r->verdict_points);
    frg_json_number(j, "step_gain", r->step_gain);
    if (r->starts_agree > 0) { /* the mode vertex */
        frg_json_integer(j, "starts_agree", r->starts_agree);
        frg_json_number(j, "next_energy", r->next_energy);
        frg_json_bool(j, "vertex", r->vertex);
        frg_json_bool(j, "symmetric", r->symmetric);
    }
    frg_json_string(j, "cost_store", store_name(r->cost_store));
    frg_json_integer(j, "rank", frg_gw_rank(job->solver));
    frg_json_integer(j, "components_source", r->components_source);
    frg_json_integer(j, "components_target", r->components_target);
    frg_json_integer(j, "truncated_ages", r->truncated_ages);
    device_work_json(j, work_of_alignment(r));
    host_steps_json(j, &r->host_steps);
    seconds_open(j);
    frg_json_number(j, "read", job->read);
    frg_json_number(j, "graph", r->graph_seconds);
    frg_json_number(j, "distances", r->distances_seconds);
    frg_json_number(j, "build", r->build_seconds);
    frg_json_number(j, "inner", r->inner_seconds);
    frg_json_number(j, "sample", r->sample_seconds);
    frg_json_number(j, "polish", r->polish_seconds);
    frg_json_number(j, "write", job->write);
    frg_json_number(j, "total", median_of(job->totals, job->n_totals));
    frg_json_close_object(j);
    repeats_json(j, c, job->totals, job->n_totals);
    json_foot(j, c);
}

/** The same of a plan that entropy blurs. */
static void blur_text(frg_report *report, const frg_gw_report *r)
{
    frg_report_fact(report, "Started from", frg_gw_start_name(r->started_from));
    if (isfinite(r->sharpened_energy)) {
        frg_report_fact_number(report, "Energy without the blur", r->sharpened_energy, 5);
        frg_report_fact_number(report, "Energy from another start", r->other_energy, 5);
    }
    if (isfinite(r->step_gain)) {
        frg_report_fact_number(report, "Gain of a step on exact costs", r->step_gain, 2);
    }
    frg_report_fact(report, "Verdict", r->verdict);
}

/** What is known of a plan of the mode vertex. */
static void verdict_text(frg_report *report, const frg_gw_report *r)
{
    char text[200];
    snprintf(text, sizeof text, "%" PRId64 ", the lowest from %s; %" PRId64 " on all points as low",
             r->starts, frg_gw_start_name(r->started_from), r->starts_agree);
    frg_report_fact(report, "Starts", text);
    if (isfinite(r->next_energy)) {
        frg_report_fact_number(report, "Next energy above it", r->next_energy, 5);
    }
    snprintf(text, sizeof text, "%s%s",
             r->vertex ? "a vertex, not blurred by an entropy" : "between vertices",
             r->symmetric ? "; another plan that moves most points is as low" : "");
    frg_report_fact(report, "Plan", text);
}

static void align_text(frg_report *report, const cli *c, const void *state)
{
    const align_job *const job = state;
    (void)c;
    const frg_gw_report *const r = frg_gw_get(job->solver);
    const frg_plan_report p = frg_plan_get(frg_gw_plan(job->solver));
    char text[200], a[32], b[32], d[32], e[32];
    snprintf(text, sizeof text, "%s points and %s points", grouped(r->n, a), grouped(r->m, b));
    frg_report_fact(report, "Data", text);
    snprintf(text, sizeof text, "%s (%s)", frg_gw_mode_name(r->mode), r->mode_reason);
    frg_report_fact(report, "Mode", text);
    frg_report_fact_number(report, "Energy", r->energy, 5);
    if (r->energy_standard_error > 0) {
        frg_report_fact_number(report, "Standard error of the energy", r->energy_standard_error, 2);
    }
    if (isfinite(r->lower_bound)) {
        frg_report_fact_number(report, "Lower bound", r->lower_bound, 4);
    }
    if (isfinite(r->energy_product)) {
        frg_report_fact_number(report, "Energy of the product plan", r->energy_product, 5);
    }
    if (isfinite(r->vertex_energy)) {
        frg_report_fact_number(report, "Energy of the vertex it began at", r->vertex_energy, 5);
    }
    if (r->starts_agree > 0) {
        verdict_text(report, r);
    } else {
        blur_text(report, r);
    }
    frg_report_fact_number(report, "Mass", p.mass, 6);
    snprintf(text, sizeof text, "%s and %s (%s and %s before rounding)",
             short_text(p.source_error, 2, a), short_text(p.target_error, 2, b),
             short_text(p.source_before, 2, d), short_text(p.target_before, 2, e));
    frg_report_fact(report, "Errors of the marginals", text);
    snprintf(text, sizeof text,
             "%" PRId64 " outer, %" PRId64 " coarse, %" PRId64 " inner; epsilon %.2g at the end",
             r->outer_iterations, r->coarse_iterations, r->inner_iterations, r->epsilon_end);
    frg_report_fact(report, "Iterations", text);
    frg_report_fact(report, "Ended", frg_gw_reason_name(r->reason));
    device_work_fact(report, NULL, work_of_alignment(r));
    snprintf(text, sizeof text, "%s; distances %s, polish %s",
             seconds_text(median_of(job->totals, job->n_totals), a),
             seconds_text(r->graph_seconds + r->distances_seconds, b), "included");
    frg_report_fact(report, "Time", text);
    host_steps_table(report, &r->host_steps);
}

static void align_page(frg_report *report, const cli *c, const void *state)
{
    const align_job *const job = state;
    align_text(report, c, state);
    gw_page_pictures(report, c, &job->shown);
}

static int potentials_of(cli *c, const align_job *job)
{
    const frg_gw_report *const r = frg_gw_get(job->solver);
    double *f = malloc((size_t)(r->n + r->m) * sizeof *f);
    if (!f) {
        return cli_fail_memory(c);
    }
    const frg_status status = frg_gw_potentials(job->solver, f, f + r->n);
    const int code =
        status < 0 ? cli_fail_library(c, status) : gw_write_potentials(c, f, r->n, f + r->n, r->m);
    free(f);
    return code;
}

static int align_all(cli *c, align_job *job)
{
    int code = align_read(c, job);
    job->totals = calloc((size_t)c->set.repeat + 2, sizeof *job->totals);
    if (!code && !job->totals) {
        code = cli_fail_memory(c);
    }
    for (int i = 0; !code && i <= c->set.repeat; i++) { /* run 0 is the warm-up of a repeated job */
        const int at = c->set.repeat ? i - 1 : 0;
        double total;
        frg_warnings_clear(c->ctx);
        code = align_once(c, job, &total);
        if (!code && at >= 0) {
            job->totals[at] = total;
            job->n_totals = at + 1;
        }
        if (job->status == FRG_INTERRUPTED) {
            break;
        }
    }
    progress_clear(&c->progress);
    if (!code && !frg_gw_plan(job->solver)) {
        code = cli_check(c, job->status, "there was a plan");
        return code ? code : frg_status_exit_code(job->status);
    }
    if (!code) {
        code = gw_write_plan(c, frg_gw_plan(job->solver), &job->write);
    }
    if (!code && c->set.gw.potentials) {
        code = potentials_of(c, job);
    }
    job->shown.solver = job->solver;
    job->shown.x = &job->x;
    job->shown.y = &job->y;
    if (!code && c->set.gw.embedding) {
        code = gw_write_embedding(c, &job->shown);
    }
    if (!code && c->set.report) {
        code = save_page(c, "fourge: Alignment", align_page, job);
    }
    if (!code) {
        cli_show_warnings(c);
        code = write_result(c, "Alignment", align_json, align_text, job);
    }
    return code ? code : cli_ended(job->status);
}

int gw_align(cli *c)
{
    int code = needs(c, 2, "fourge gw align X Y");
    if (!code && c->set.checkpoint && c->set.repeat > 0) {
        code =
            cli_fail(c, "E_OPTION", "--checkpoint", "", "--checkpoint does not go with --repeat");
    }
    code = code ? code : checkpoint_begin(c);
    if (code) {
        return code;
    }
    align_job job = {0};
    code = align_all(c, &job);
    frg_gw_destroy(job.solver);
    gw_release(&job.x);
    gw_release(&job.y);
    gw_release(&job.linear);
    gw_release(&job.start);
    free(job.a);
    free(job.b);
    free(job.potentials);
    free(job.totals);
    free(job.shown.embedding);
    return code;
}

/* ---- sinkhorn -------------------------------------------------------------------------------- */

typedef struct {
    gw_input cost;
    double *a, *b, *potentials;
    frg_sinkhorn *solver;
    frg_status status;
    double read, write, *totals, *inner;
    int n_totals;
} sinkhorn_job;

static frg_sinkhorn_opts sinkhorn_options(const cli *c)
{
    const gw_settings *const g = &c->set.gw;
    frg_sinkhorn_opts o = g->sinkhorn;
    o.epsilon = g->align.epsilon;
    o.cost_store = g->align.cost_store;
    o.auto_store = g->align.auto_store;
    o.rho_source = g->align.rho_source;
    o.rho_target = g->align.rho_target;
    o.reference = g->align.reference;
    o.mass = g->align.mass;
    o.round = g->align.round;
    o.tol = was_given(c, "tol") ? g->align.tol : o.tol;
    o.max_iter = was_given(c, "max-iter") ? g->align.max_iter : o.max_iter;
    if (g->iterations > 0) {
        o.tol = 0;
        o.max_iter = g->iterations;
    }
    return o;
}

static int sinkhorn_runs(cli *c, sinkhorn_job *job)
{
    const frg_sinkhorn_opts o = sinkhorn_options(c);
    const int64_t n = job->cost.array.shape[0];
    frg_status status =
        frg_sinkhorn_create(&job->solver, c->ctx, job->cost.array, job->a, job->b, &o);
    for (int i = 0; status >= 0 && i <= c->set.repeat; i++) {
        const int at = c->set.repeat ? i - 1 : 0;
        if (i > 0 && !job->potentials) { /* the same start again */
            const frg_array cost = job->cost.array;
            double *zero = calloc((size_t)(cost.shape[0] + cost.shape[1]), sizeof *zero);
            status = zero ? frg_sinkhorn_start(job->solver, zero, zero + n) : FRG_NO_MEMORY;
            free(zero);
        } else if (job->potentials) {
            status = frg_sinkhorn_start(job->solver, job->potentials, job->potentials + n);
        }
        if (status >= 0) {
            status = frg_sinkhorn_run(job->solver, NULL);
        }
        if (status >= 0 && at >= 0) {
            job->totals[at] = frg_sinkhorn_get(job->solver).total_seconds;
            job->inner[at] = frg_sinkhorn_get(job->solver).inner_seconds;
            job->n_totals = at + 1;
        }
    }
    job->status = status;
    return status < 0 ? cli_fail_library(c, status) : 0;
}

static void sinkhorn_text(frg_report *t, const cli *c, const void *state)
{
    const sinkhorn_job *const job = state;
    const frg_sinkhorn_report r = frg_sinkhorn_get(job->solver);
    const frg_plan_report p = frg_plan_get(frg_sinkhorn_plan(job->solver));
    const int forced = c->set.gw.iterations > 0;
    char text[160], a[32], b[32];
    frg_report_fact_number(t, "Epsilon", c->set.gw.align.epsilon, 4);
    frg_report_fact_number(t, "Cost", r.cost, 8);
    frg_report_fact_number(t, "Mass", p.mass, 6);
    snprintf(text, sizeof text, "%" PRId64 ", column error %s", r.iterations,
             short_text(r.marginal_error, 2, a));
    frg_report_fact(t, "Iterations", text);
    snprintf(text, sizeof text, "%s and %s", short_text(p.source_error, 2, a),
             short_text(p.target_error, 2, b));
    frg_report_fact(t, "Errors of the marginals", text);
    device_work_fact(t, NULL, work_of_sinkhorn(&r));
    frg_report_fact(t, "Time", seconds_text(median_of(job->totals, job->n_totals), a));
    frg_report_fact(t, "Result",
                    forced        ? "as many passes as asked for"
                    : r.converged ? "converged"
                    : r.rounding_floor >= 0
                        ? "NOT CONVERGED: rounding keeps the error from the tolerance"
                        : "NOT CONVERGED");
    host_steps_table(t, &r.host_steps);
}

static void sinkhorn_json(frg_json *j, const cli *c, const void *state)
{
    const sinkhorn_job *const job = state;
    const frg_sinkhorn_report r = frg_sinkhorn_get(job->solver);
    const frg_plan_report p = frg_plan_get(frg_sinkhorn_plan(job->solver));
    json_head(j, "fourge.gw.sinkhorn/1");
    frg_json_integer(j, "n", p.n);
    frg_json_integer(j, "m", p.m);
    frg_json_string(j, "status", frg_status_name(job->status));
    frg_json_number(j, "epsilon", c->set.gw.align.epsilon);
    frg_json_integer(j, "iterations", r.iterations);
    frg_json_bool(j, "converged", r.converged);
    frg_json_number(j, "column_error", r.marginal_error);
    frg_json_number(j, "rounding_floor", r.rounding_floor);
    gw_plan_json(j, &p);
    frg_json_number(j, "cost", r.cost);
    frg_json_number(j, "objective", r.objective);
    host_steps_json(j, &r.host_steps);
    seconds_open(j);
    frg_json_number(j, "read", job->read);
    frg_json_number(j, "build", r.build_seconds);
    frg_json_number(j, "inner", median_of(job->inner, job->n_totals));
    frg_json_number(j, "polish", r.polish_seconds);
    frg_json_number(j, "write", job->write);
    frg_json_number(j, "total", median_of(job->totals, job->n_totals));
    frg_json_close_object(j);
    frg_json_string(j, "cost_store", store_name(r.cost_store));
    frg_json_number(j, "bytes_read", r.bytes_read);
    device_work_json(j, work_of_sinkhorn(&r));
    repeats_json(j, c, job->totals, job->n_totals);
    json_foot(j, c);
}

static int sinkhorn_outputs(cli *c, sinkhorn_job *job)
{
    int code = gw_write_plan(c, frg_sinkhorn_plan(job->solver), &job->write);
    const int64_t n = job->cost.array.shape[0], m = job->cost.array.shape[1];
    if (!code && c->set.gw.potentials) {
        double *f = malloc((size_t)(n + m) * sizeof *f);
        if (!f) {
            return cli_fail_memory(c);
        }
        const frg_status status = frg_sinkhorn_potentials(job->solver, f, f + n);
        code = status < 0 ? cli_fail_library(c, status) : gw_write_potentials(c, f, n, f + n, m);
        free(f);
    }
    return code;
}

static int sinkhorn_all(cli *c, sinkhorn_job *job)
{
    const gw_settings *const g = &c->set.gw;
    const double begin = now_seconds();
    int code = gw_read(c, c->arguments[1], &job->cost);
    if (!code && job->cost.graph) {
        code = cli_fail(c, "E_FILE_TYPE", c->arguments[1], "give an npy or csv file",
                        "'%s' is a graph", c->arguments[1]);
    }
    const int64_t n = code ? 0 : job->cost.array.shape[0], m = code ? 0 : job->cost.array.shape[1];
    if (!code && g->source) {
        code = gw_read_vector(c, "--source", g->source, n, &job->a);
    }
    if (!code && g->target) {
        code = gw_read_vector(c, "--target", g->target, m, &job->b);
    }
    if (!code && g->initial_potentials) {
        code = gw_read_vector(c, "--initial-potentials", g->initial_potentials, n + m,
                              &job->potentials);
    }
    job->read = now_seconds() - begin;
    job->totals = calloc((size_t)c->set.repeat + 2, sizeof *job->totals);
    job->inner = calloc((size_t)c->set.repeat + 2, sizeof *job->inner);
    if (!code && (!job->totals || !job->inner)) {
        code = cli_fail_memory(c);
    }
    if (!code) {
        code = sinkhorn_runs(c, job);
    }
    progress_clear(&c->progress);
    if (!code) {
        code = sinkhorn_outputs(c, job);
    }
    if (!code) {
        cli_show_warnings(c);
        code = write_result(c, "Entropic transport", sinkhorn_json, sinkhorn_text, job);
    }
    const int forced = g->iterations > 0 && job->status == FRG_MAX_ITER;
    return code              ? code
           : cli_signalled() ? cli_signalled()
           : forced          ? 0
                             : frg_status_exit_code(job->status);
}

int gw_sinkhorn(cli *c)
{
    const char *const usage = "fourge gw sinkhorn COST.npy --epsilon E";
    int code = needs(c, 1, usage);
    if (!code &&
        !was_given(c, "epsilon")) { /* in the units of the costs, which nobody else knows */
        code = cli_fail(c, "E_OPTION", "--epsilon", usage, "fourge gw sinkhorn needs --epsilon");
    }
    if (code) {
        return code;
    }
    sinkhorn_job job = {0};
    code = sinkhorn_all(c, &job);
    frg_sinkhorn_destroy(job.solver);
    gw_release(&job.cost);
    free(job.a);
    free(job.b);
    free(job.potentials);
    free(job.totals);
    free(job.inner);
    return code;
}

/* ---- paths ----------------------------------------------------------------------------------- */

typedef struct {
    gw_input in;
    double *sources;
    int64_t *nodes;
    float *rows;
    double read, graph, write, total;
    frg_paths_report report;
    frg_graph_report shape;
} paths_job;

static int paths_sources(cli *c, paths_job *job, int64_t *count)
{
    gw_input list = {0};
    int code = gw_read(c, c->set.gw.sources, &list);
    if (!code) {
        *count = list.graph ? 0 : list.array.shape[0] * list.array.shape[1];
        gw_release(&list);
        code = gw_read_vector(c, "--sources", c->set.gw.sources, *count, &job->sources);
    }
    gw_release(&list);
    job->nodes = malloc((size_t)*count * sizeof *job->nodes + 1);
    if (!code && !job->nodes) {
        code = cli_fail_memory(c);
    }
    for (int64_t i = 0; !code && i < *count; i++) {
        job->nodes[i] = (int64_t)job->sources[i];
        if ((double)job->nodes[i] != job->sources[i]) {
            code = cli_fail(c, "E_FORMAT", "--sources", "nodes are whole numbers from 0 on",
                            "--sources: value %" PRId64 " is %g", i + 1, job->sources[i]);
        }
    }
    return code;
}

static int paths_run(cli *c, paths_job *job)
{
    const double begin = now_seconds();
    if (!job->in.graph) {
        frg_graph_opts o;
        frg_graph_defaults(&o, sizeof o);
        o.k = c->set.gw.align.k;
        o.k_clamp = c->set.gw.align.k_clamp;
        o.stitch = c->set.gw.align.stitch;
        const frg_status status = frg_graph_knn(&job->in.graph, c->ctx, job->in.array, &o);
        const int code = cli_check(c, status, "the graph was there");
        if (code) {
            return code;
        }
    }
    job->graph = now_seconds() - begin;
    job->shape = frg_graph_get(job->in.graph);
    int64_t count = job->shape.n;
    int code = c->set.gw.sources ? paths_sources(c, job, &count) : 0;
    if (!code && !(job->rows = malloc((size_t)(count * job->shape.n) * sizeof *job->rows + 1))) {
        code = cli_fail_memory(c);
    }
    if (code) {
        return code;
    }
    const frg_array out = frg_matrix(job->rows, FRG_F32, count, job->shape.n, job->shape.n);
    frg_status status = frg_graph_paths(job->in.graph, job->nodes, count, out, &job->report);
    job->total = now_seconds() - begin;
    if (status == FRG_OK && c->set.gw.out) {
        const double before = now_seconds();
        status = frg_npy_write(c->ctx, c->set.gw.out, out);
        job->write = now_seconds() - before;
    }
    return cli_check(c, status, "the paths were there");
}

static void paths_text(frg_report *t, const cli *c, const void *state)
{
    const paths_job *const job = state;
    (void)c;
    char text[160], a[32], b[32];
    snprintf(text, sizeof text, "%s nodes, %s arcs, %" PRId64 " components",
             grouped(job->shape.n, a), grouped(job->shape.arcs, b), job->shape.components);
    frg_report_fact(t, "Graph", text);
    snprintf(text, sizeof text, "%s, %.2f relaxations an arc", job->report.method,
             job->report.relaxations_per_arc);
    frg_report_fact(t, "Method", text);
    frg_report_fact(t, "Time", seconds_text(job->total, a));
}

static void paths_json(frg_json *j, const cli *c, const void *state)
{
    const paths_job *const job = state;
    json_head(j, "fourge.gw.paths/1");
    frg_json_integer(j, "n", job->shape.n);
    frg_json_integer(j, "sources", job->report.sources);
    frg_json_integer(j, "arcs", job->shape.arcs);
    frg_json_number(j, "relaxations_per_arc", job->report.relaxations_per_arc);
    frg_json_integer(j, "components", job->shape.components);
    frg_json_integer(j, "stitched", job->shape.stitched);
    frg_json_string(j, "method", job->report.method);
    seconds_open(j);
    frg_json_number(j, "read", job->read);
    frg_json_number(j, "graph", job->graph);
    frg_json_number(j, "paths", job->report.seconds);
    frg_json_number(j, "write", job->write);
    frg_json_number(j, "total", job->total);
    frg_json_close_object(j);
    json_foot(j, c);
}

int gw_paths(cli *c)
{
    int code = needs(c, 1, "fourge gw paths X_OR_GRAPH --out D.npy");
    if (code) {
        return code;
    }
    paths_job job = {0};
    const double begin = now_seconds();
    code = gw_read(c, c->arguments[1], &job.in);
    job.read = now_seconds() - begin;
    const int distance = c->set.gw.align.distance;
    if (!code && distance != FRG_GW_DISTANCE_AUTO &&
        !(distance == FRG_GW_DISTANCE_GRAPH && job.in.graph)) {
        code = cli_fail(c, "E_OPTION", "--distance", "graph is for the edges of a mesh",
                        "fourge gw paths gives the lengths of shortest paths alone");
    }
    if (!code) {
        code = paths_run(c, &job);
    }
    progress_clear(&c->progress);
    if (!code) {
        code = write_result(c, "Shortest paths", paths_json, paths_text, &job);
    }
    gw_release(&job.in);
    free(job.sources);
    free(job.nodes);
    free(job.rows);
    return code;
}

/* ---- energy ---------------------------------------------------------------------------------- */

int gw_dense_side(cli *c, const char *path, gw_input *in, double **out, int64_t *n, double *read)
{
    const double begin = now_seconds();
    int code = gw_read(c, path, in);
    *read += now_seconds() - begin;
    if (code) {
        return code;
    }
    frg_gw_opts o = c->set.gw.align;
    if (in->graph && o.distance == FRG_GW_DISTANCE_AUTO) {
        o.distance = FRG_GW_DISTANCE_GRAPH;
    }
    o.max_iter = 0;
    frg_gw *solver = NULL;
    const frg_gw_side side = side_of(in, NULL);
    frg_status status = frg_gw_create(&solver, c->ctx, side, side, NULL, &o);
    if (status >= 0) {
        *n = frg_gw_get(solver)->n;
        *out = malloc((size_t)(*n * *n) * sizeof **out + 1);
        status = *out ? frg_gw_distances(solver, 0, frg_matrix(*out, FRG_F64, *n, *n, *n))
                      : FRG_NO_MEMORY;
    }
    frg_gw_destroy(solver);
    return cli_check(c, status, "the distances were there");
}

typedef struct {
    gw_input x, y, plan;
    double *cx, *cy;
    int64_t n, m;
    double energy, bound, read, total;
} energy_job;

static int energy_run(cli *c, energy_job *job)
{
    const double begin = now_seconds();
    int code = gw_dense_side(c, c->arguments[1], &job->x, &job->cx, &job->n, &job->read);
    if (!code) {
        code = gw_dense_side(c, c->arguments[2], &job->y, &job->cy, &job->m, &job->read);
    }
    const double before = now_seconds();
    if (!code) {
        code = gw_read(c, c->arguments[3], &job->plan);
    }
    job->read += now_seconds() - before;
    if (code) {
        return code;
    }
    const frg_array a = frg_matrix(job->cx, FRG_F64, job->n, job->n, job->n),
                    b = frg_matrix(job->cy, FRG_F64, job->m, job->m, job->m);
    frg_status status = frg_gw_energy(c->ctx, a, b, job->plan.array, &job->energy);
    if (status == FRG_OK) {
        status = frg_gw_lower_bound(c->ctx, a, NULL, b, NULL, &job->bound);
    }
    job->total = now_seconds() - begin - job->read;
    return cli_check(c, status, "the energy was there");
}

static double gw_distance(const energy_job *job)
{
    return sqrt(fmax(job->energy, 0));
}

static void energy_json(frg_json *j, const cli *c, const void *state)
{
    const energy_job *const job = state;
    json_head(j, "fourge.gw.energy/1");
    frg_json_integer(j, "n", job->n);
    frg_json_integer(j, "m", job->m);
    frg_json_number(j, "energy", job->energy);
    frg_json_number(j, "gw_distance", gw_distance(job));
    frg_json_number(j, "lower_bound", job->bound);
    seconds_open(j);
    frg_json_number(j, "read", job->read);
    frg_json_number(j, "total", job->total);
    frg_json_close_object(j);
    json_foot(j, c);
}

static void energy_text(frg_report *t, const cli *c, const void *state)
{
    const energy_job *const job = state;
    (void)c;
    char text[160], a[32], b[32];
    snprintf(text, sizeof text, "%s points and %s points", grouped(job->n, a), grouped(job->m, b));
    frg_report_fact(t, "Data", text);
    frg_report_fact_number(t, "Energy", job->energy, 8);
    frg_report_fact_number(t, "GW distance", gw_distance(job), 8);
    frg_report_fact_number(t, "Lower bound", job->bound, 8);
    frg_report_fact(t, "Time", seconds_text(job->total, a));
}

int gw_energy(cli *c)
{
    int code = needs(c, 3, "fourge gw energy X Y PLAN.npy");
    if (code) {
        return code;
    }
    energy_job job = {0};
    code = energy_run(c, &job);
    progress_clear(&c->progress);
    if (!code) {
        cli_show_warnings(c);
        code = write_result(c, "Energy of a plan", energy_json, energy_text, &job);
    }
    gw_release(&job.x);
    gw_release(&job.y);
    gw_release(&job.plan);
    free(job.cx);
    free(job.cy);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

int command_gw(cli *c)
{
    static int (*const jobs[])(cli *) = {gw_align, gw_sinkhorn, gw_paths, gw_energy, gw_barycenter};
    int code = cli_table_options(c);
    code = code ? code : cli_open(c);
    return code ? code : jobs[c->job](c);
}
