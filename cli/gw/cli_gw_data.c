/* cli_gw_data.c - inputs and outputs of `fourge gw`. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gw/gw_job.h"

static int ends_with(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);
    return n >= k && strcmp(path + n - k, end) == 0;
}

static int read_table(cli *c, const char *path, gw_input *in)
{
    frg_table *t = NULL;
    int code = cli_read_table(c, path, &t);
    const int64_t n = frg_table_rows(t), d = frg_table_columns(t);
    in->values = malloc((size_t)(n * d) * sizeof *in->values + 1);
    if (!code && !in->values) {
        code = cli_fail_memory(c);
    }
    for (int64_t k = 0; !code && k < d; k++) {
        const frg_column *column = frg_table_column(t, k);
        if (column->kind == FRG_CATEGORY) {
            code = cli_refuse_text(c, path, column,
                                   "mend the cell, or give a file without the column");
            break;
        }
        for (int64_t i = 0; i < n; i++) {
            in->values[i * d + k] = cli_number_at(column, i);
        }
    }
    frg_table_destroy(t);
    in->array = frg_matrix(in->values, FRG_F64, n, d, d);
    return code;
}

static int read_mesh(cli *c, const char *path, gw_input *in)
{
    frg_status status = frg_mesh_read(&in->mesh, c->ctx, path);
    if (status == FRG_OK && c->set.gw.align.distance == FRG_GW_DISTANCE_GRAPH) {
        status = frg_graph_mesh(&in->graph, c->ctx, in->mesh);
    } else if (status == FRG_OK) {
        in->array = frg_mesh_points(in->mesh);
    }
    return status != FRG_OK ? cli_fail_read(c, status) : 0;
}

int gw_read(cli *c, const char *path, gw_input *in)
{
    const int is_graph =
        ends_with(path, ".mtx") || ends_with(path, ".edges") || ends_with(path, ".txt");
    if (c->set.gw.directed && !is_graph) {
        return cli_fail(c, "E_OPTION", "--directed", "leave it out",
                        "--directed: %s is no file of arcs (.mtx, .edges, .txt)", path);
    }
    if (ends_with(path, ".off") || ends_with(path, ".obj") || ends_with(path, ".ply")) {
        return read_mesh(c, path, in);
    }
    if (is_graph) {
        const frg_status status = frg_graph_read(&in->graph, c->ctx, path, c->set.gw.directed);
        return status != FRG_OK ? cli_fail_read(c, status) : 0;
    }
    if (!ends_with(path, ".npy")) {
        return read_table(c, path, in);
    }
    const frg_status status = frg_npy_read(&in->npy, c->ctx, path);
    if (!in->npy) {
        return cli_fail_read(c, status);
    }
    in->array = frg_npy_array(in->npy);
    if (in->array.ndim == 1) {
        in->array = frg_matrix(in->array.data, in->array.dtype, in->array.shape[0], 1, 1);
    }
    return 0;
}

void gw_release(gw_input *in)
{
    frg_npy_destroy(in->npy);
    frg_graph_destroy(in->graph);
    frg_mesh_destroy(in->mesh);
    free(in->values);
    *in = (gw_input){0};
}

int gw_read_vector(cli *c, const char *option, const char *path, int64_t n, double **out)
{
    gw_input in = {0};
    int code = gw_read(c, path, &in);
    const frg_array a = in.array;
    if (!code && (in.graph || a.ndim != 2 || a.shape[0] * a.shape[1] != n ||
                  (a.shape[0] != 1 && a.shape[1] != 1))) {
        code = cli_fail(c, "E_SHAPE", option, NULL, "%s: '%s' does not hold %" PRId64 " values",
                        option, path, n);
    }
    if (!code && !(*out = malloc((size_t)n * sizeof **out + 1))) {
        code = cli_fail_memory(c);
    }
    for (int64_t i = 0; !code && i < n; i++) {
        const int64_t at = a.shape[1] == 1 ? i * a.stride[0] : i * a.stride[1];
        const char *const base = (const char *)a.data + a.offset;
        (*out)[i] = a.dtype == FRG_F64   ? ((const double *)(const void *)base)[at]
                    : a.dtype == FRG_F32 ? (double)((const float *)(const void *)base)[at]
                    : a.dtype == FRG_I64 ? (double)((const int64_t *)(const void *)base)[at]
                                         : (double)((const int32_t *)(const void *)base)[at];
    }
    gw_release(&in);
    return code;
}

static int write_matches(cli *c, const frg_plan *plan)
{
    const frg_plan_report r = frg_plan_get(plan);
    const int64_t k = c->set.gw.top < r.m ? c->set.gw.top : r.m, rows = r.n * k;
    int64_t *index = malloc((size_t)rows * 2 * sizeof *index + 1);
    double *value = malloc((size_t)rows * 2 * sizeof *value + 1),
           *sum = calloc((size_t)r.n + 1, sizeof *sum),
           *ones = malloc((size_t)r.m * sizeof *ones + 1);
    frg_table *t = NULL;
    frg_status status = FRG_OK;
    int code = index && value && sum && ones ? 0 : cli_fail_memory(c);
    if (!code) {
        for (int64_t j = 0; j < r.m; j++) {
            ones[j] = 1;
        }
        status = frg_plan_top(plan, k, index, value);
        if (status >= 0) {
            status = frg_plan_apply(plan, frg_matrix(ones, FRG_F64, r.m, 1, 1), 0,
                                    frg_matrix(sum, FRG_F64, r.n, 1, 1));
        }
        for (int64_t i = 0; status >= 0 && i < rows; i++) {
            index[rows + i] = i / k;
            value[rows + i] = sum[i / k] > 0 ? value[i] / sum[i / k] : 0;
        }
        if (status >= 0) {
            status = frg_table_create(&t, c->ctx, rows);
        }
        if (status >= 0) {
            status = frg_table_add_integers(t, "source", index + rows);
        }
        if (status >= 0) {
            status = frg_table_add_integers(t, "target", index);
        }
        if (status >= 0) {
            status = frg_table_add_numbers(t, "mass", value);
        }
        if (status >= 0) {
            status = frg_table_add_numbers(t, "share", value + rows);
        }
        if (status >= 0) {
            status = frg_table_write(t, c->ctx, c->set.gw.matches);
        }
        code = status < 0 ? cli_fail_library(c, status) : 0;
    }
    frg_table_destroy(t);
    free(index);
    free(value);
    free(sum);
    free(ones);
    return code;
}

static int write_dense(cli *c, const frg_plan *plan)
{
    const frg_plan_report r = frg_plan_get(plan);
    const frg_dtype type = c->set.gw.plan_dtype ? FRG_F32 : FRG_F64;
    void *rows = malloc((size_t)(r.n * r.m) * frg_sizeof(type) + 1);
    if (!rows) {
        return cli_fail_memory(c);
    }
    const frg_array out = frg_matrix(rows, type, r.n, r.m, r.m);
    frg_status status = frg_plan_rows(plan, 0, r.n, out);
    if (status >= 0) {
        status = frg_npy_write(c->ctx, c->set.gw.plan, out);
    }
    free(rows);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

int gw_write_plan(cli *c, const frg_plan *plan, double *write)
{
    const double begin = now_seconds();
    int code = c->set.gw.plan ? write_dense(c, plan) : 0;
    if (!code && c->set.gw.matches) {
        code = write_matches(c, plan);
    }
    *write += now_seconds() - begin;
    return code;
}

int gw_write_potentials(cli *c, const double *f, int64_t n, const double *g, int64_t m)
{
    double *both = malloc((size_t)(n + m) * sizeof *both);
    if (!both) {
        return cli_fail_memory(c);
    }
    memcpy(both, f, (size_t)n * sizeof *both);
    memcpy(both + n, g, (size_t)m * sizeof *both);
    const frg_status status =
        frg_npy_write(c->ctx, c->set.gw.potentials, frg_vector(both, FRG_F64, n + m));
    free(both);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

void gw_plan_json(frg_json *j, const frg_plan_report *p)
{
    frg_json_number(j, "mass", p->mass);
    frg_json_open_object(j, "marginal_error");
    frg_json_number(j, "source", p->source_error);
    frg_json_number(j, "target", p->target_error);
    frg_json_close_object(j);
    frg_json_open_object(j, "marginal_error_before_rounding");
    frg_json_number(j, "source", p->source_before);
    frg_json_number(j, "target", p->target_before);
    frg_json_close_object(j);
}
