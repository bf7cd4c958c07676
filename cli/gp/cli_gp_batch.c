/* cli_gp_batch.c - `fourge gp batch LIST`: one small process for each table that LIST names, all in
 * one call.
 *
 * LIST is a text file with the name of a table in each line; what follows a # and blank lines are
 * passed over. Sizes may differ; the expression, --y and --x are the same for all.  A member that
 * fails, or whose table cannot be used, is marked, the others do not notice, and the exit code is
 * 1.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp/gp_job.h"

typedef struct {
    int64_t n;
    char *text; /* of LIST */
    char **paths;
    gp_data *data;
    frg_gp_member *members;
    double *gradients, *fitted; /* n x parameters */
    frg_gp_parameter *names;
    int parameters;
    const gp_data *first; /* of the tables that could be read */
} batch;

static void release(batch *b)
{
    for (int64_t i = 0; b->data && i < b->n; i++) {
        gp_data_release(&b->data[i]);
    }
    free(b->text);
    free(b->paths);
    free(b->data);
    free(b->members);
    free(b->gradients);
    free(b->fitted);
    free(b->names);
}

/** The lines of LIST that name something. */
static int read_list(const cli *c, batch *b, const char *path)
{
    size_t length;
    int code;
    b->text = cli_read_text(c, path, &length, &code);
    if (!b->text) {
        return code;
    }
    b->paths = calloc(length + 2, sizeof *b->paths);
    if (!b->paths) {
        return cli_fail_memory(c);
    }
    for (char *line = strtok(b->text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        line[strcspn(line, "#")] = '\0';
        line += strspn(line, " \t");
        for (size_t k = strlen(line); k > 0 && (line[k - 1] == ' ' || line[k - 1] == '\t'); k--) {
            line[k - 1] = '\0';
        }
        if (*line) {
            b->paths[b->n++] = line;
        }
    }
    return b->n > 0 ? 0
                    : cli_fail(c, "E_NO_POINTS", path, "write the name of a table in each line",
                               "'%s' names no tables", path);
}

/** The table of member i, whose error has been said where it cannot be used: what else there is
 *  goes on. */
static int read_member(cli *c, batch *b, int64_t i)
{
    gp_data *d = &b->data[i];
    const int json = c->json_errors;
    c->json_errors = 0; /* the result says it of the member */
    int code = gp_data_read(c, d, b->paths[i], c->set.gp_job.x, c->set.gp_job.y);
    b->first = b->first || code ? b->first : d;
    if (!code && (d->q != 1 || d->d != b->first->d)) {
        code = cli_fail(c, "E_SHAPE", b->paths[i], "give one --y and the same inputs to all",
                        "'%s' has %d inputs and %d outputs, '%s' has %d and 1", b->paths[i], d->d,
                        d->q, b->first->path, b->first->d);
    }
    c->json_errors = json;
    if (code == frg_status_exit_code(FRG_BAD_DATA) || code == frg_status_exit_code(FRG_NO_INPUT)) {
        gp_data_release(d);
        code = 0;
    }
    return code;
}

static int read_members(cli *c, batch *b)
{
    const size_t count = b->n > 0 ? (size_t)b->n : 1;
    b->data = calloc(count, sizeof *b->data);
    b->members = calloc(count, sizeof *b->members);
    int code = b->data && b->members ? 0 : cli_fail_memory(c);
    for (int64_t i = 0; i < b->n && !code; i++) {
        code = read_member(c, b, i);
    }
    if (!code && !b->first) {
        code = cli_fail(c, "E_NO_POINTS", NULL, "see what is said of each",
                        "none of the %" PRId64 " tables can be used", b->n);
    }
    for (int64_t i = 0; i < b->n && !code; i++) {
        const gp_data *d = &b->data[i];
        b->members[i].x = frg_matrix(d->x, FRG_F64, d->n, b->first->d, b->first->d);
        b->members[i].y = frg_vector(d->y, FRG_F64, d->n);
    }
    return code;
}

/** Names of the parameters, from a process on the first member that there is. */
static int name_parameters(cli *c, batch *b, gp_job *job)
{
    job->data = *b->first; /* borrowed */
    job->opts.column_names = (const char *const *)b->first->x_names;
    job->what = c->set.gp_job.batch_fit ? GP_FIT : GP_VALUE;
    int code = gp_job_create(c, job);
    job->what = GP_BATCH;
    job->data = (gp_data){0};
    if (code) {
        return code;
    }
    b->parameters = frg_gp_parameter_count(job->gp);
    const size_t p = (size_t)b->parameters + 1;
    b->names = calloc(p, sizeof *b->names);
    b->gradients = calloc((size_t)b->n * p, sizeof *b->gradients);
    b->fitted = calloc((size_t)b->n * p, sizeof *b->fitted);
    if (!b->names || !b->gradients || !b->fitted) {
        return cli_fail_memory(c);
    }
    for (int k = 0; k < b->parameters; k++) {
        if (frg_gp_get_parameter(job->gp, k, &b->names[k]) != FRG_OK) {
            return cli_fail(c, "E_BUG", NULL, NULL, "parameter %d has no name", k);
        }
    }
    for (int64_t i = 0; i < b->n; i++) {
        b->members[i].gradient = c->set.gp_job.no_gradient ? NULL : b->gradients + i * (int64_t)p;
        b->members[i].fitted = b->fitted + i * (int64_t)p;
    }
    return 0;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void numbers(frg_json *j, const char *key, const batch *b, const double *values)
{
    frg_json_open_object(j, key);
    for (int k = 0, end; k < b->parameters; k = end) {
        for (end = k + 1; b->names[k].entry == 0 && end < b->parameters && b->names[end].entry > 0;
             end++) {
        }
        if (b->names[k].entry < 0) {
            frg_json_number(j, b->names[k].name, values[k]);
            continue;
        }
        frg_json_open_array(j, b->names[k].name);
        for (int i = k; i < end; i++) {
            frg_json_number(j, NULL, values[i]);
        }
        frg_json_close_array(j);
    }
    frg_json_close_object(j);
}

/** What was computed, and of whom. */
typedef struct {
    const gp_job *job;
    const batch *members;
    int64_t failed;
} batch_result;

static void batch_json(frg_json *j, const cli *c, const void *of)
{
    const batch_result *const result = of;
    const gp_job *const job = result->job;
    const batch *const b = result->members;
    json_head(j, "fourge.gp.batch/1");
    frg_json_string(j, "status", frg_status_name(job->status));
    frg_json_integer(j, "count", b->n);
    frg_json_integer(j, "failed", result->failed);
    frg_json_bool(j, "fit", c->set.gp_job.batch_fit);
    frg_json_open_array(j, "members");
    for (int64_t i = 0; i < b->n; i++) {
        const frg_gp_member *m = &b->members[i];
        frg_json_open_object(j, NULL);
        frg_json_string(j, "data", b->paths[i]);
        frg_json_integer(j, "n", b->data[i].n);
        frg_json_string(j, "status", frg_status_name(m->status));
        if (m->status >= 0) {
            frg_json_number(j, "log_likelihood", m->value.log_likelihood);
            frg_json_number(j, "per_point", m->value.per_point);
            frg_json_number(j, "jitter", m->value.jitter);
        }
        if (m->message[0]) {
            frg_json_string(j, m->status < 0 ? "error" : "warning", m->message);
        }
        if (m->status >= 0 && c->set.gp_job.batch_fit) {
            numbers(j, "parameters", b, m->fitted);
        } else if (m->status >= 0 && m->gradient) {
            numbers(j, "gradient", b, m->gradient);
        }
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
    frg_json_open_object(j, "seconds");
    frg_json_number(j, "read", job->times.read);
    frg_json_number(j, "total", job->times.total);
    frg_json_close_object(j);
    json_foot(j, c);
}

/** Columns of csv, which has no title, are called as the keys of the JSON are: "gradient.rbf.l",
 *  "parameters.rbf.l". */
static void batch_table(frg_report *r, const cli *c, const batch *b)
{
    const char *const of = c->set.format != FORMAT_CSV ? ""
                           : c->set.gp_job.batch_fit   ? "parameters."
                                                       : "gradient.";
    frg_report_table_open(r, c->set.gp_job.batch_fit ? "Fitted parameters" : "Gradients");
    frg_report_table_column(r, "data", FRG_LEFT);
    frg_report_table_column(r, "n", FRG_RIGHT);
    frg_report_table_column(r, "log_likelihood", FRG_RIGHT);
    for (int k = 0; k < b->parameters; k++) {
        char label[128], column[160];
        gp_label(&b->names[k], label, sizeof label);
        snprintf(column, sizeof column, "%s%s", of, label);
        frg_report_table_column(r, column, FRG_RIGHT);
    }
    frg_report_table_column(r, "status", FRG_LEFT);
    for (int64_t i = 0; i < b->n; i++) {
        const frg_gp_member *m = &b->members[i];
        const double *values = c->set.gp_job.batch_fit ? m->fitted : m->gradient;
        frg_report_cell_text(r, b->paths[i]);
        frg_report_cell_integer(r, b->data[i].n);
        if (m->status >= 0) {
            frg_report_cell_number(r, m->value.log_likelihood, 9);
        } else {
            frg_report_cell_text(r, "");
        }
        for (int k = 0; k < b->parameters; k++) {
            if (m->status >= 0 && values) {
                frg_report_cell_number(r, values[k], 5);
            } else {
                frg_report_cell_text(r, "");
            }
        }
        frg_report_cell_text(r, m->status == FRG_OK ? "done" : frg_status_name(m->status));
    }
    frg_report_table_close(r);
}

static void batch_text(frg_report *r, const cli *c, const void *of)
{
    const batch_result *const result = of;
    char text[96], words[32];
    if (c->set.format != FORMAT_CSV) {
        snprintf(text, sizeof text, "%" PRId64 ", %" PRId64 " failed", result->members->n,
                 result->failed);
        frg_report_fact(r, "Members", text);
        frg_report_fact(r, "Time", seconds_text(result->job->times.total, words));
    }
    batch_table(r, c, result->members);
}

static int show(cli *c, const gp_job *job, const batch *b)
{
    batch_result result = {job, b, 0};
    for (int64_t i = 0; i < b->n; i++) {
        result.failed += b->members[i].status < 0;
    }
    cli_show_warnings(c);
    return write_result(c, "Many Gaussian processes", batch_json, batch_text, &result);
}

/** Members without a table, whose error read_member has shown. */
static void fail_unread(batch *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        frg_gp_member *m = &b->members[i];
        if (!b->data[i].table) {
            m->status = FRG_BAD_DATA;
            snprintf(m->message, sizeof m->message, "its table cannot be used, see standard error");
        }
    }
}

int gp_batch(cli *c, gp_job *job)
{
    batch b = {0};
    const double start = now_seconds();
    int code = read_list(c, &b, job->path);
    code = code ? code : read_members(c, &b);
    code = code ? code : name_parameters(c, &b, job);
    job->times.read = now_seconds() - start;
    if (!code) {
        const double begin = now_seconds();
        job->status =
            c->set.gp_job.batch_fit
                ? frg_gp_batch_fit(c->ctx, b.n, b.members, job->kernel, &job->opts, &job->fit)
                : frg_gp_batch_eval(c->ctx, b.n, b.members, job->kernel, &job->opts);
        job->times.total = now_seconds() - begin;
        fail_unread(&b);
        code = job->status < 0 ? cli_fail_library(c, job->status) : show(c, job, &b);
    }
    release(&b);
    return code ? code : frg_status_exit_code(job->status);
}
