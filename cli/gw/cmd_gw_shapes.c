/* cmd_gw_shapes.c - what `fourge gw` makes of several spaces: barycenters, and the joint embedding
 * of an alignment. */
#include <inttypes.h>
#include <stdlib.h>

#include "gw/gw_job.h"

/* ---- embedding ------------------------------------------------------------------------------- */

/** The graph of one side: as given, or of the nearest neighbours of its points. */
static int side_graph(cli *c, const gw_input *in, frg_graph **own, const frg_graph **graph)
{
    const frg_gw_opts *const o = &c->set.gw.align;
    if (in->graph) {
        *graph = in->graph;
        return 0;
    }
    if (o->distance == FRG_GW_DISTANCE_MATRIX) {
        return cli_fail(c, "E_UNSUPPORTED", "--embedding", "give points or graphs",
                        "an embedding needs graphs, distance matrices have none");
    }
    frg_graph_opts g;
    frg_graph_defaults(&g, sizeof g);
    g.k = o->k;
    g.k_clamp = o->k_clamp;
    g.stitch = o->stitch;
    const frg_status status = frg_graph_knn(own, c->ctx, in->array, &g);
    *graph = *own;
    return cli_check(c, status, "the graph was there");
}

int gw_write_embedding(cli *c, gw_alignment *a)
{
    const frg_plan *const plan = frg_gw_plan(a->solver);
    const frg_plan_report p = frg_plan_get(plan);
    const int64_t d = c->set.gw.dimensions;
    frg_graph *own[2] = {NULL, NULL};
    const frg_graph *graph[2];
    double *both = calloc((size_t)((p.n + p.m) * d) + 1, sizeof *both);
    int code = both ? side_graph(c, a->x, &own[0], &graph[0]) : cli_fail_memory(c);
    if (!code) {
        code = side_graph(c, a->y, &own[1], &graph[1]);
    }
    if (!code) {
        frg_embed_opts o;
        frg_embed_defaults(&o, sizeof o);
        o.dimensions = d;
        int64_t found = 0;
        const frg_embed_query query = {
            .graph = graph[0], .plan = plan, .out = frg_matrix(both, FRG_F64, p.n, d, d)};
        frg_status status =
            frg_gw_embed(c->ctx, graph[1], frg_matrix(both + p.n * d, FRG_F64, p.m, d, d), &query,
                         1, &o, &found);
        if (status >= 0) {
            status = frg_npy_write(c->ctx, c->set.gw.embedding,
                                   frg_matrix(both, FRG_F64, p.n + p.m, found, d));
        }
        code = status < 0 ? cli_fail_library(c, status) : 0;
        a->dimensions = found;
        a->stride = d;
    }
    frg_graph_destroy(own[0]);
    frg_graph_destroy(own[1]);
    a->embedding = both;
    return code;
}

/* ---- barycenter ------------------------------------------------------------------------------ */

typedef struct {
    int count;
    gw_input inputs[MAX_ARGUMENTS];
    double *distances[MAX_ARGUMENTS];
    frg_array spaces[MAX_ARGUMENTS];
    double *out;
    frg_barycenter_report report;
    frg_status status;
    double read, write, total;
} barycenter_job;

static int barycenter_run(cli *c, barycenter_job *job)
{
    const gw_settings *const g = &c->set.gw;
    const double begin = now_seconds();
    for (int s = 0; s < job->count; s++) {
        int64_t n;
        const int code = gw_dense_side(c, c->arguments[s + 1], &job->inputs[s], &job->distances[s],
                                       &n, &job->read);
        if (code) {
            return code;
        }
        job->spaces[s] = frg_matrix(job->distances[s], FRG_F64, n, n, n);
    }
    const int64_t points = g->points > 0 ? g->points : job->spaces[0].shape[0];
    job->out = calloc((size_t)(points * points) + 1, sizeof *job->out);
    if (!job->out) {
        return cli_fail_memory(c);
    }
    frg_barycenter_opts o;
    frg_barycenter_defaults(&o, sizeof o);
    o.epsilon = was_given(c, "epsilon") ? g->align.epsilon : o.epsilon;
    o.max_iter = was_given(c, "max-iter") ? g->align.max_iter : o.max_iter;
    o.tol = was_given(c, "tol") ? g->align.tol : o.tol;
    const frg_array out = frg_matrix(job->out, FRG_F64, points, points, points);
    frg_status status = frg_gw_barycenter(c->ctx, job->spaces, NULL, NULL, job->count, NULL, NULL,
                                          &o, out, &job->report);
    job->total = now_seconds() - begin - job->read;
    job->status = status;
    if (status >= 0 && g->out) {
        const double before = now_seconds();
        const frg_status written = frg_npy_write(c->ctx, g->out, out);
        status = written < 0 ? written : status;
        job->write = now_seconds() - before;
    }
    return status < 0 ? cli_fail_library(c, status) : 0;
}

static void barycenter_text(frg_report *t, const cli *c, const void *state)
{
    const barycenter_job *const job = state;
    (void)c;
    char text[120], a[32];
    snprintf(text, sizeof text, "%d", job->count);
    frg_report_fact(t, "Spaces", text);
    frg_report_fact_number(t, "Energy", job->report.energy, 5);
    snprintf(text, sizeof text, "%" PRId64 ", change %s", job->report.iterations,
             short_text(job->report.change, 2, a));
    frg_report_fact(t, "Rounds", text);
    frg_report_fact(t, "Result",
                    job->report.converged ? "converged"
                    : job->report.rounding_floor >= 0
                        ? "NOT CONVERGED: rounding keeps the change from the tolerance"
                        : "NOT CONVERGED");
    frg_report_fact(t, "Time", seconds_text(job->total, a));
}

static void barycenter_json(frg_json *j, const cli *c, const void *state)
{
    const barycenter_job *const job = state;
    json_head(j, "fourge.gw.barycenter/1");
    frg_json_integer(j, "spaces", job->count);
    frg_json_string(j, "status", frg_status_name(job->status));
    frg_json_integer(j, "iterations", job->report.iterations);
    frg_json_bool(j, "converged", job->report.converged);
    frg_json_number(j, "change", job->report.change);
    frg_json_integer(j, "inner_iterations", job->report.inner_iterations);
    frg_json_number(j, "rounding_floor", job->report.rounding_floor);
    frg_json_number(j, "energy", job->report.energy);
    frg_json_open_object(j, "seconds");
    frg_json_number(j, "read", job->read);
    frg_json_number(j, "write", job->write);
    frg_json_number(j, "total", job->total);
    frg_json_close_object(j);
    json_foot(j, c);
}

int gw_barycenter(cli *c)
{
    barycenter_job *const job = calloc(1, sizeof *job);
    if (!job) {
        return cli_fail_memory(c);
    }
    job->count = c->n_arguments - 1;
    int code = job->count >= 1 ? barycenter_run(c, job)
                               : cli_fail(c, "E_OPTION", "barycenter",
                                          "fourge gw barycenter X Y ... --out C.npy",
                                          "fourge gw barycenter needs at least one file");
    progress_clear(&c->progress);
    if (!code) {
        cli_show_warnings(c);
        code = write_result(c, "Barycenter", barycenter_json, barycenter_text, job);
    }
    code = code ? code : cli_ended(job->status);
    for (int s = 0; s < job->count; s++) {
        gw_release(&job->inputs[s]);
        free(job->distances[s]);
    }
    free(job->out);
    free(job);
    return code;
}
