/* cmd_soap.c - fourge soap: bench, train, qr. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "soap/mlp.h"
#include "soap/soap_job.h"

/* ---- options --------------------------------------------------------------------------------- */

void soap_options(cli *c, frg_soap_opts *o)
{
    if (c->set.soap_job.optimizer) {
        soap_adamw(o, 1e-3);
    } else {
        frg_soap_defaults(o, sizeof *o, (frg_soap_profile)c->set.soap.profile);
    }
    take_given(c, offsetof(settings, soap), sizeof c->set.soap, o);
    c->set.soap = *o; /* a page shows those of the profile */
}

/* ---- before the steps ------------------------------------------------------------------------ */

static size_line line_of(const char *key, size_kind kind, double value, const char *label)
{
    return (size_line){.key = key, .kind = kind, .value = value, .label = label};
}

static int show_size(cli *c, const frg_soap_size *s)
{
    char parameters[96], factors[96], a[32], b[32];
    snprintf(parameters, sizeof parameters, "%s of %s numbers", grouped(s->parameters, a),
             grouped(s->numbers, b));
    snprintf(factors, sizeof factors, "%s, the largest of order %s", grouped(s->factors, a),
             grouped(s->largest_factor, b));
    size_line lines[] = {
        line_of("parameters", SIZE_COUNT, (double)s->parameters, "Parameters"),
        line_of("numbers", SIZE_COUNT, (double)s->numbers, NULL),
        line_of("factors", SIZE_COUNT, (double)s->factors, "Factors"),
        line_of("long_axes", SIZE_COUNT, (double)s->long_axes,
                s->long_axes > 0 ? "Axes too long for one" : NULL),
        line_of("largest_factor", SIZE_COUNT, (double)s->largest_factor, NULL),
        line_of("state_bytes", SIZE_BYTES, (double)s->state_bytes, "State"),
        line_of("bytes", SIZE_BYTES, (double)s->bytes, "In all"),
        line_of("step_peak_bytes", SIZE_BYTES, (double)s->peak_bytes, "In the first step"),
        line_of("estimated_seconds", SIZE_SECONDS, s->next_seconds, "First step, about"),
        line_of("estimated_refresh_seconds", SIZE_SECONDS, s->refresh_seconds,
                "Step with new bases, about"),
        line_of("estimated_plain_seconds", SIZE_SECONDS, s->plain_seconds, "Step without, about"),
    };
    lines[0].text = parameters;
    lines[2].text = s->factors > 0 ? factors : "none";
    lines[3].after = " (--max-precond-dim)";
    return show_sizes(c, "fourge.soap.estimate/1", lines, sizeof lines / sizeof *lines);
}

int soap_show_size(cli *c, int n, frg_soap *const soap[])
{
    frg_soap_size sum = {0};
    size_t most = 0; /* that a step gives back */
    for (int i = 0; i < n; i++) {
        frg_soap_size s;
        const frg_status status = frg_soap_estimate(soap[i], &s);
        if (status < 0) {
            return cli_fail_library(c, status);
        }
        const size_t back = s.peak_bytes - s.bytes;
        most = back > most ? back : most;
        sum.parameters += s.parameters;
        sum.numbers += s.numbers;
        sum.factors += s.factors;
        sum.long_axes += s.long_axes;
        if (s.largest_factor > sum.largest_factor) {
            sum.largest_factor = s.largest_factor;
        }
        sum.state_bytes += s.state_bytes;
        sum.bytes += s.bytes;
        sum.next_seconds += s.next_seconds;
        sum.refresh_seconds += s.refresh_seconds;
        sum.plain_seconds += s.plain_seconds;
    }
    sum.peak_bytes = sum.bytes + most;
    return show_size(c, &sum);
}

frg_status soap_prepare(cli *c, frg_soap *soap, int *shown)
{
    const frg_status status = frg_soap_prepare(soap);
    if (status >= 0) {
        cli_show_warnings_from(c, *shown);
        *shown = frg_warning_count(c->ctx);
    }
    return status;
}

/* ---- qr -------------------------------------------------------------------------------------- */

typedef struct {
    frg_npy *file;
    frg_array a;
    int64_t count, m, n;
    frg_dtype dtype;
    void *q, *r;
    frg_qr_item *items;
    frg_qr_report *reports;
    frg_qr *plan;
    double read, plan_seconds, write;
    double *totals; /* of the runs */
    int n_totals;
    frg_status status;
} qr_job;

static int qr_read(cli *c, qr_job *j, const char *path)
{
    const double start = now_seconds();
    const frg_status s = frg_npy_read(&j->file, c->ctx, path);
    if (!j->file) {
        return cli_fail_read(c, s);
    }
    j->a = frg_npy_array(j->file);
    if (j->a.ndim != 2 && j->a.ndim != 3) {
        return cli_fail(c, "E_SHAPE", path, NULL,
                        "'%s' has %d axes, (m, n) or (batch, m, n) is expected", path, j->a.ndim);
    }
    if (j->a.dtype != FRG_F32 && j->a.dtype != FRG_F64) {
        return cli_fail(c, "E_DTYPE", path, NULL, "'%s' holds %s, f32 or f64 is expected", path,
                        frg_dtype_name(j->a.dtype));
    }
    const int first = j->a.ndim - 2;
    j->count = first ? j->a.shape[0] : 1;
    j->m = j->a.shape[first];
    j->n = j->a.shape[first + 1];
    j->dtype = j->a.dtype;
    if (j->m < j->n || j->n < 1) {
        return cli_fail(c, "E_SHAPE", path, "give the transposed matrices",
                        "'%s' holds matrices of %" PRId64 " x %" PRId64
                        "; at least as many rows as columns are expected",
                        path, j->m, j->n);
    }
    j->read = now_seconds() - start;
    return 0;
}

/** Matrix i of a stack in C order. */
static frg_array slice(const void *base, frg_dtype t, int64_t i, int64_t m, int64_t n)
{
    return frg_matrix((const char *)base + (size_t)(i * m * n) * frg_sizeof(t), t, m, n, n);
}

static frg_array member(const frg_array *a, int64_t i)
{
    if (a->ndim == 2) {
        return *a;
    }
    frg_array x = *a;
    x.ndim = 2;
    x.offset += (size_t)(i * a->stride[0]) * frg_sizeof(a->dtype);
    for (int d = 0; d < 2; d++) {
        x.shape[d] = a->shape[d + 1];
        x.stride[d] = a->stride[d + 1];
    }
    return x;
}

static int qr_run(cli *c, qr_job *j)
{
    const size_t size = frg_sizeof(j->dtype), count = (size_t)j->count;
    j->q = malloc((size_t)(j->m * j->n) * count * size + 1);
    j->r = c->set.soap_job.r ? malloc((size_t)(j->n * j->n) * count * size + 1) : NULL;
    j->items = calloc(count + 1, sizeof *j->items);
    j->reports = calloc(count + 1, sizeof *j->reports);
    if (!j->q || !j->items || !j->reports || (c->set.soap_job.r && !j->r)) {
        return cli_fail_memory(c);
    }
    for (int64_t i = 0; i < j->count; i++) {
        j->items[i].a = member(&j->a, i);
        j->items[i].q = slice(j->q, j->dtype, i, j->m, j->n);
        if (j->r) {
            j->items[i].r = slice(j->r, j->dtype, i, j->n, j->n);
        }
    }
    frg_qr_opts o;
    frg_qr_defaults(&o, sizeof o);
    o.method = c->set.soap.qr_method;
    o.verify = FRG_QR_VERIFY_FULL;
    const int repeats = c->set.repeat;
    j->totals = calloc((size_t)repeats + 1, sizeof *j->totals);
    if (!j->totals) {
        return cli_fail_memory(c);
    }
    double start = now_seconds();
    frg_status s = frg_qr_create(&j->plan, c->ctx, j->count, j->items, &o);
    j->plan_seconds = now_seconds() - start;
    const int first = repeats ? -1 : 0; /* -1: the warm-up */
    int done = first;
    frg_status over = cli_over(c);
    for (; done < (repeats ? repeats : 1) && s >= 0 && over == FRG_OK; done++) {
        start = now_seconds();
        s = frg_qr_run(j->plan, j->items, j->reports, NULL);
        j->totals[done < 0 ? 0 : done] = now_seconds() - start;
        over = cli_over(c);
    }
    const int code = cli_check(c, done == first && s >= 0 ? over : s, "the factors were there");
    j->n_totals = done > 0 ? done : 1;
    j->status = s == FRG_OK && done < (repeats ? repeats : 1) ? over : s;
    return code;
}

static frg_array stack(const void *data, frg_dtype t, const frg_array *like, int64_t m, int64_t n)
{
    frg_array a = frg_matrix(data, t, m, n, n);
    if (like->ndim == 3) {
        a.ndim = 3;
        a.shape[0] = like->shape[0];
        a.shape[1] = m;
        a.shape[2] = n;
        a.stride[0] = m * n;
        a.stride[1] = n;
        a.stride[2] = 1;
    }
    return a;
}

static int qr_write(cli *c, qr_job *j)
{
    const double start = now_seconds();
    frg_status s = FRG_OK;
    if (c->set.soap_job.q) {
        s = frg_npy_write(c->ctx, c->set.soap_job.q, stack(j->q, j->dtype, &j->a, j->m, j->n));
    }
    if (s >= 0 && c->set.soap_job.r) {
        s = frg_npy_write(c->ctx, c->set.soap_job.r, stack(j->r, j->dtype, &j->a, j->n, j->n));
    }
    j->write = now_seconds() - start;
    return s < 0 ? cli_fail_library(c, s) : 0;
}

typedef struct {
    int64_t ok, deficient, nonfinite, methods[4];
    double orthogonality, pivot;
} qr_summary;

static qr_summary qr_summarise(const qr_job *j)
{
    qr_summary s = {.pivot = INFINITY};
    for (int64_t i = 0; i < j->count; i++) {
        const frg_qr_report *const r = &j->reports[i];
        if (r->flags & FRG_QR_NONFINITE) {
            s.nonfinite++;
            continue;
        }
        s.deficient += (r->flags & FRG_QR_DEFICIENT) != 0;
        s.ok += !(r->flags & FRG_QR_DEFICIENT);
        s.methods[r->method]++;
        s.orthogonality = fmax(s.orthogonality, r->orthogonality);
        s.pivot = fmin(s.pivot, r->pivot);
    }
    return s;
}

/** norm(A - Q R) / norm(A), the largest of the batch; NaN where R was not asked for. */
static double qr_residual(const qr_job *j)
{
    double worst = j->r ? 0 : (double)NAN;
    const int64_t m = j->m, n = j->n;
    for (int64_t i = 0; i < j->count && j->r; i++) {
        double residual = 0, all = 0;
        if (j->reports[i].flags & FRG_QR_NONFINITE) {
            continue;
        }
        const frg_array a = j->items[i].a, q = j->items[i].q, r = j->items[i].r;
        for (int64_t row = 0; row < m; row++) {
            for (int64_t k = 0; k < n; k++) {
                double sum = soap_element(&a, row, k);
                all += sum * sum;
                for (int64_t p = 0; p <= k; p++) {
                    sum -= soap_element(&q, row, p) * soap_element(&r, p, k);
                }
                residual += sum * sum;
            }
        }
        worst = fmax(worst, all > 0 ? sqrt(residual / all) : sqrt(residual));
    }
    return worst;
}

double soap_element(const frg_array *a, int64_t i, int64_t j)
{
    const char *const at = (const char *)a->data + a->offset +
                           (i * a->stride[0] + j * a->stride[1]) * (int64_t)frg_sizeof(a->dtype);
    if (a->dtype == FRG_F64) {
        double x;
        memcpy(&x, at, sizeof x);
        return x;
    }
    float x;
    memcpy(&x, at, sizeof x);
    return (double)x;
}

static const char *const METHODS[4] = {"auto", "householder", "cholesky", "vendor"};

static void qr_json(frg_json *out, const cli *c, const void *job)
{
    const qr_job *const j = job;
    const qr_summary s = qr_summarise(j);
    json_head(out, "fourge.soap.qr/1");
    frg_json_integer(out, "batch", j->count);
    frg_json_integer(out, "m", j->m);
    frg_json_integer(out, "n", j->n);
    frg_json_string(out, "dtype", frg_dtype_name(j->dtype));
    frg_json_string(out, "status", frg_status_name(j->status));
    frg_json_number(out, "orthogonality", s.orthogonality);
    frg_json_number(out, "residual", qr_residual(j));
    frg_json_number(out, "smallest_pivot", s.pivot);
    frg_json_open_object(out, "methods");
    for (int k = 1; k < 4; k++) {
        frg_json_integer(out, METHODS[k], s.methods[k]);
    }
    frg_json_close_object(out);
    frg_json_open_object(out, "members");
    frg_json_integer(out, "ok", s.ok);
    frg_json_integer(out, "deficient", s.deficient);
    frg_json_integer(out, "nonfinite", s.nonfinite);
    frg_json_close_object(out);
    frg_json_open_object(out, "seconds");
    frg_json_number(out, "read", j->read);
    frg_json_number(out, "plan", j->plan_seconds);
    const double factor = median_of(j->totals, j->n_totals);
    frg_json_number(out, "factor", factor);
    frg_json_number(out, "write", j->write);
    frg_json_number(out, "total", j->plan_seconds + factor);
    frg_json_close_object(out);
    repeats_json(out, c, j->totals, j->n_totals);
    json_foot(out, c);
}

static void qr_text(frg_report *r, const cli *c, const void *job)
{
    const qr_job *const j = job;
    (void)c;
    const qr_summary s = qr_summarise(j);
    char text[96], b[32];
    snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " x %" PRId64 ", %s", j->count, j->m,
             j->n, frg_dtype_name(j->dtype));
    frg_report_fact(r, "Matrices", text);
    frg_report_fact_number(r, "Orthogonality", s.orthogonality, 2);
    if (j->r) {
        frg_report_fact_number(r, "Residual", qr_residual(j), 2);
    }
    snprintf(text, sizeof text,
             "%" PRId64 " full rank, %" PRId64 " deficient, %" PRId64 " not finite", s.ok,
             s.deficient, s.nonfinite);
    frg_report_fact(r, "Members", text);
    frg_report_fact(r, "Time", seconds_text(median_of(j->totals, j->n_totals), b));
}

static int qr_command(cli *c)
{
    if (c->n_arguments != 2) {
        return cli_fail(c, "E_OPTION", "qr", "fourge soap qr A.npy --q Q.npy",
                        "fourge soap qr needs one file of matrices");
    }
    if (!c->set.soap_job.q) {
        return cli_fail(c, "E_OPTION", "--q", "fourge soap qr A.npy --q Q.npy",
                        "fourge soap qr needs --q");
    }
    qr_job j = {0};
    int code = qr_read(c, &j, c->arguments[1]);
    if (!code) {
        code = qr_run(c, &j);
    }
    if (!code) {
        code = qr_write(c, &j);
    }
    if (!code) {
        cli_show_warnings(c);
        code = write_result(c, "QR factorisations", qr_json, qr_text, &j);
    }
    if (!code) {
        code = cli_ended(j.status);
    }
    frg_qr_destroy(j.plan);
    frg_npy_destroy(j.file);
    free(j.q);
    free(j.r);
    free(j.items);
    free(j.reports);
    free(j.totals);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

int command_soap(cli *c)
{
    static int (*const jobs[])(cli *) = {soap_bench, soap_train, qr_command};
    const int code = cli_open(c);
    return code ? code : jobs[c->job](c);
}
