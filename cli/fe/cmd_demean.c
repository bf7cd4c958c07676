/* cmd_demean.c - `fourge demean`: arrays in, arrays out.
 *
 * seconds.total = setup + solve, from arrays in memory to arrays in memory.  The result takes the
 * place of the input in memory, except under --repeat, which needs the input again.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_checkpoint.h"

typedef struct {
    frg_npy *x_file, *codes_file, *weights_file;
    frg_array x, codes, weights, out;
    int32_t *narrow;  /* codes converted to int32 */
    double *wide;     /* weights converted to f64 */
    void *out_memory; /* under --repeat */
    frg_demean_column *columns;
    frg_demean *plan;
    frg_demean_part *subproblems; /* of the last run, as many as its report says */
    frg_status status;            /* of the last run */
    double read, setup, solve, write;
    double *totals;
    int n_totals;
    char method[64];
    int64_t iterations;
    int plan_read, plan_written; /* the solver came from --plan, or is there now */
    kept_layout layout;
} demean_job;

static void release(const cli *c, demean_job *d)
{
    frg_demean_destroy(d->plan);
    frg_npy_destroy(d->x_file);
    frg_npy_destroy(d->codes_file);
    frg_npy_destroy(d->weights_file);
    frg_block_destroy(d->narrow, c->ctx);
    frg_block_destroy(d->wide, c->ctx);
    frg_block_destroy(d->out_memory, c->ctx);
    kept_layout_close(&d->layout);
    free(d->columns);
    free(d->subproblems);
    free(d->totals);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_matrix(cli *c, const char *option, const char *path, frg_npy **file, frg_array *a)
{
    const frg_status status = frg_npy_read(file, c->ctx, path);
    if (!*file) {
        return cli_fail_read(c, status);
    }
    *a = frg_npy_array(*file);
    if (a->ndim == 1) {
        *a = frg_matrix(a->data, a->dtype, a->shape[0], 1, 1);
    }
    if (a->ndim != 2) {
        return cli_fail(c, "E_SHAPE", option, NULL, "%s: '%s' has %d axes, 1 or 2 are expected",
                        option, path, a->ndim);
    }
    return 0;
}

static int read_all(cli *c, demean_job *d)
{
    const settings *s = &c->set;
    int code = read_matrix(c, "--columns", s->arrays.columns, &d->x_file, &d->x);
    if (!code) {
        code = read_matrix(c, "--codes", s->arrays.codes, &d->codes_file, &d->codes);
    }
    if (!code && s->arrays.weights_file) {
        code = read_matrix(c, "--weights", s->arrays.weights_file, &d->weights_file, &d->weights);
    }
    return code;
}

/** A block of the context, as its limit and its spool count for it; the exit code. */
static int get_block(const cli *c, void **out, size_t bytes, const char *what)
{
    const frg_status status = frg_block_create(out, c->ctx, bytes, what);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

/** Element i of axis 0, j of axis 1, as bytes. */
static const char *element(const frg_array *a, int64_t i, int64_t j)
{
    return (const char *)a->data + a->offset +
           (size_t)(i * a->stride[0] + j * a->stride[1]) * frg_sizeof(a->dtype);
}

static int check_shapes(const cli *c, const demean_job *d)
{
    if (d->x.dtype != FRG_F64 && d->x.dtype != FRG_F32) {
        return cli_fail(c, "E_DTYPE", "--columns", NULL,
                        "--columns holds %s, f64 or f32 is expected", frg_dtype_name(d->x.dtype));
    }
    if (d->codes.dtype != FRG_I32 && d->codes.dtype != FRG_I64) {
        return cli_fail(c, "E_DTYPE", "--codes", NULL, "--codes holds %s, integers are expected",
                        frg_dtype_name(d->codes.dtype));
    }
    if (d->codes.shape[0] != d->x.shape[0]) {
        return cli_fail(c, "E_SHAPE", "--codes", NULL,
                        "--columns has %" PRId64 " rows, --codes has %" PRId64, d->x.shape[0],
                        d->codes.shape[0]);
    }
    if (d->weights_file && (d->weights.shape[0] != d->x.shape[0] || d->weights.shape[1] != 1)) {
        return cli_fail(c, "E_SHAPE", "--weights", NULL,
                        "--columns has %" PRId64 " rows, --weights is %" PRId64 " x %" PRId64,
                        d->x.shape[0], d->weights.shape[0], d->weights.shape[1]);
    }
    return 0;
}

/** Codes of other widths become int32.  What does not fit is refused with its place, never
 *  folded. */
static int narrow_codes(const cli *c, demean_job *d, frg_array *codes)
{
    *codes = d->codes;
    if (codes->dtype == FRG_I32) {
        return 0;
    }
    const int64_t n = codes->shape[0], q = codes->shape[1];
    const size_t bytes = (size_t)(n * q) * sizeof *d->narrow;
    const int bad = d->narrow ? 0 : get_block(c, (void **)&d->narrow, bytes, "codes as int32");
    if (bad) {
        return bad;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < q; j++) {
            int64_t code;
            memcpy(&code, element(codes, i, j), sizeof code);
            if (code < 0 || code > INT32_MAX) {
                return cli_fail(
                    c, "E_CODES", "--codes",
                    code < 0 ? NULL : "number the levels of each factor 0, 1, 2, ... first",
                    "--codes: row %" PRId64 ", factor %" PRId64 " is %" PRId64 ", which is %s",
                    i + 1, j + 1, code, code < 0 ? "negative" : "above 2147483647");
            }
            d->narrow[i * q + j] = (int32_t)code;
        }
    }
    *codes = frg_matrix(d->narrow, FRG_I32, n, q, q);
    return 0;
}

static double real_element(const frg_array *a, int64_t i)
{
    const char *at = element(a, i, 0);
    switch (a->dtype) {
    case FRG_F64:
        return *(const double *)at;
    case FRG_F32:
        return (double)*(const float *)at;
    case FRG_I32:
        return (double)*(const int32_t *)at;
    case FRG_I64:
        return (double)*(const int64_t *)at;
    default:
        return (double)NAN;
    }
}

/** Weights of any numeric type, as doubles. */
static int widen_weights(const cli *c, demean_job *d)
{
    const int64_t n = d->weights.shape[0];
    const int bad = get_block(c, (void **)&d->wide, (size_t)n * sizeof *d->wide, "weights");
    if (bad) {
        return bad;
    }
    for (int64_t i = 0; i < n; i++) {
        d->wide[i] = real_element(&d->weights, i);
    }
    d->weights = frg_vector(d->wide, FRG_F64, n);
    return 0;
}

/** Room for the result, in X's order; X itself when it is not needed again. */
static int place_result(const cli *c, demean_job *d)
{
    d->out = d->x;
    if (c->set.repeat > 0) {
        const int64_t n = d->x.shape[0], p = d->x.shape[1];
        const int by_columns = d->x.stride[0] == 1 && d->x.stride[1] >= n && p > 1;
        const size_t bytes = (size_t)(n * p) * frg_sizeof(d->x.dtype);
        const int bad = get_block(c, &d->out_memory, bytes, "the result");
        if (bad) {
            return bad;
        }
        d->out = by_columns ? frg_matrix_columns(d->out_memory, d->x.dtype, n, p, n)
                            : frg_matrix(d->out_memory, d->x.dtype, n, p, p);
    }
    d->columns = calloc((size_t)d->x.shape[1] + 1, sizeof *d->columns);
    d->totals = calloc((size_t)c->set.repeat + 2, sizeof *d->totals);
    return d->columns && d->totals ? 0 : cli_fail_memory(c);
}

/* ---- running --------------------------------------------------------------------------------- */

/** Copies columns that lie one after another to the place of the result. */
static void copy_columns(const char *from, const frg_array *to)
{
    const size_t item = frg_sizeof(to->dtype);
    for (int64_t j = 0; j < to->shape[1]; j++) {
        for (int64_t i = 0; i < to->shape[0]; i++, from += item) {
            memcpy((char *)(uintptr_t)element(to, i, j), from, item);
        }
    }
}

/** Blocks of columns, kept in a checkpoint between them. */
static frg_status run_blocks(demean_job *d, keeper *k, int64_t block, char *values, int *stopped,
                             frg_info *info)
{
    const int64_t n = d->x.shape[0], p = d->x.shape[1];
    const int64_t item = (int64_t)frg_sizeof(d->x.dtype);
    int64_t done = 0;
    frg_status worst = FRG_OK, status = keeper_load(k, n, p, values, d->columns, &done, &worst);
    while (status >= 0 && done < p) {
        const int64_t m = p - done < block ? p - done : block;
        frg_array in = d->x;
        in.offset += (size_t)(done * in.stride[1] * item);
        in.shape[1] = m;
        status = frg_demean_run(d->plan, in,
                                frg_matrix_columns(values + done * n * item, in.dtype, n, m, n),
                                d->columns + done, info);
        *stopped = status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT;
        if (status < 0) {
            break;
        }
        done += *stopped ? 0 : m;
        const frg_status before = worst;
        worst = status > 0 ? status : worst;
        if (done < p) {
            status =
                keeper_save(k, n, p, values, d->columns, done, *stopped ? before : worst, *stopped);
        }
        if (*stopped) {
            return status < 0 ? status : worst;
        }
    }
    if (status >= 0) {
        copy_columns(values, &d->out);
    }
    return status < 0 ? status : worst;
}

/** The run with --checkpoint; *code is the exit code where it ends here. */
static frg_status run_kept(cli *c, demean_job *d, frg_info *info, int *code)
{
    const size_t bytes = (size_t)(d->x.shape[0] * d->x.shape[1]) * frg_sizeof(d->x.dtype);
    uint64_t data = hash_array(hash_array(0, &d->x), &d->codes);
    if (d->weights_file) {
        data = hash_array(data, &d->weights);
    }
    keeper k;
    void *values = NULL;
    int stopped = 0;
    frg_status status = FRG_OK;
    *code = keeper_open(&k, c, "demean", (int64_t)frg_sizeof(d->x.dtype), data);
    *code = *code ? *code : get_block(c, &values, bytes, "columns of a checkpoint");
    if (!*code) {
        const int block = c->set.fe.demean.block;
        status = run_blocks(d, &k, block > 0 ? block : 8, values, &stopped, info);
        if (stopped && status >= 0) {
            progress_clear(&c->progress);
            *code = keeper_stopped(c, status);
        }
    }
    keeper_close(&k);
    frg_block_destroy(values, c->ctx);
    return status;
}

static int take_subproblems(const cli *c, demean_job *d, int64_t n)
{
    free(d->subproblems);
    d->subproblems = calloc((size_t)n + 1, sizeof *d->subproblems);
    frg_status status = FRG_OK;
    for (int64_t i = 0; d->subproblems && i < n && status >= 0; i++) {
        status = frg_demean_get_part(d->plan, i, &d->subproblems[i]);
    }
    return !d->subproblems ? cli_fail_memory(c) : status < 0 ? cli_fail_library(c, status) : 0;
}

/** Is there a plan to be read? */
static int has_plan(const cli *c)
{
    return c->set.arrays.plan && access(c->set.arrays.plan, F_OK) == 0;
}

/** The plan of the codes, with the solver of --plan where there is one. */
static frg_status make_plan(cli *c, demean_job *d, frg_array codes)
{
    frg_status status =
        frg_demean_create_kept(&d->plan, c->ctx, codes, d->weights_file ? &d->weights : NULL, NULL,
                               0, 0, &c->set.fe.demean, d->layout.files);
    d->plan_read = has_plan(c);
    if (status == FRG_OK && d->plan_read) {
        status = frg_demean_load(d->plan, c->set.arrays.plan);
    }
    return status;
}

/** Keeps the solver of a run that came to its end, behind its results: a plan that cannot be
 *  written loses nothing. */
static int keep_plan(cli *c, demean_job *d)
{
    const int whole = d->status != FRG_INTERRUPTED && d->status != FRG_TIME_LIMIT;
    if (!c->set.arrays.plan || !whole || d->plan_read) {
        return 0;
    }
    const frg_status status = frg_demean_save(d->plan, c->set.arrays.plan);
    d->plan_written = status == FRG_OK;
    return status < 0 ? cli_fail_library(c, status) : 0;
}

/** One plan and one run of it; setup and solve are timed apart. */
static int run_once(cli *c, demean_job *d, double *setup, double *solve)
{
    frg_demean_destroy(d->plan);
    d->plan = NULL;
    const double start = now_seconds();
    frg_array codes;
    const int code = narrow_codes(c, d, &codes);
    if (code) {
        return code;
    }
    frg_status status = make_plan(c, d, codes);
    if (status >= 0 && cli_signalled() &&
        !c->set.checkpoint) { /* a run would still pass over the rows twice */
        status = FRG_INTERRUPTED;
    }
    if (status < 0) {
        return kept_layout_failed(c, &d->layout, status);
    }
    if (status != FRG_OK) {
        return cli_check(c, status, "there was a result");
    }
    const double ready = now_seconds();
    frg_info info = {0};
    int ended = 0;
    status = c->set.checkpoint ? run_kept(c, d, &info, &ended)
                               : frg_demean_run(d->plan, d->x, d->out, d->columns, &info);
    const double done = now_seconds();
    if (ended) {
        return ended;
    }
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    *setup = ready - start;
    *solve = done - ready;
    d->status = status;
    d->iterations = info.iterations;
    const frg_demean_report report = frg_demean_get(d->plan);
    snprintf(d->method, sizeof d->method, "%s", report.method ? report.method : "?");
    return take_subproblems(c, d, report.n_parts);
}

static int run_all(cli *c, demean_job *d)
{
    const int repeats = c->set.repeat;
    double *setups = calloc((size_t)repeats + 2, sizeof *setups),
           *solves = calloc((size_t)repeats + 2, sizeof *solves);
    int code = setups && solves ? 0 : cli_fail_memory(c);
    for (int i = 0; !code && i <= repeats; i++) { /* run 0 is the warm-up of a repeated job */
        double setup = 0, solve = 0;
        if (i > 0) {
            frg_warnings_clear(c->ctx);
        }
        code = run_once(c, d, &setup, &solve);
        const int at = repeats ? i - 1 : 0;
        if (!code && at >= 0) {
            setups[at] = setup;
            solves[at] = solve;
            d->totals[at] = setup + solve;
            d->n_totals = at + 1;
        }
        if (d->status == FRG_INTERRUPTED) {
            break;
        }
    }
    if (!code) {
        d->setup = median_of(setups, d->n_totals);
        d->solve = median_of(solves, d->n_totals);
    }
    free(setups);
    free(solves);
    return code;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void demean_json(frg_json *j, const cli *c, const void *job)
{
    const demean_job *const d = job;
    const int64_t p = d->x.shape[1];
    json_head(j, "fourge.demean/1");
    frg_json_integer(j, "n", d->x.shape[0]);
    frg_json_integer(j, "columns", p);
    frg_json_string(j, "method", d->method);
    frg_json_string(j, "status", frg_status_name(d->status));
    static const struct {
        const char *key;
        int what;
    } arrays[] = {{"iterations", 0}, {"audit", 1},       {"gradient", 2},
                  {"absorbed", 3},   {"error_bound", 4}, {"converged", 5}};
    int unknown_bound = 0;
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) {
        frg_json_open_array(j, arrays[a].key);
        for (int64_t i = 0; i < p; i++) {
            const frg_demean_column *k = &d->columns[i];
            switch (arrays[a].what) {
            case 0:
                frg_json_integer(j, NULL, k->iterations);
                break;
            case 1:
                frg_json_number(j, NULL, k->audit);
                break;
            case 2:
                frg_json_number(j, NULL, k->gradient);
                break;
            case 3:
                frg_json_bool(j, NULL, k->absorbed);
                break;
            case 4:
                unknown_bound |= !isfinite(k->error_bound);
                frg_json_number(j, NULL, k->error_bound);
                break;
            default:
                frg_json_bool(j, NULL, k->converged);
                break;
            }
        }
        frg_json_close_array(j);
    }
    if (unknown_bound) {
        frg_json_string(j, "error_bound_note",
                        "null where no Krylov step gave an estimate of the smallest eigenvalue");
    }
    const frg_demean_report report = frg_demean_get(d->plan);
    subproblems_json(j, d->subproblems, report.n_parts);
    frg_json_integer(j, "levels", report.levels);
    frg_json_integer(j, "plan_bytes", (int64_t)report.plan_bytes);
    frg_json_integer(j, "factor_bytes", (int64_t)report.factor_bytes);
    frg_json_string(j, "passes_on", report.passes_on);
    device_work_json(j, device_work_of_demean(&report));
    host_steps_json(j, &report.host_steps);
    frg_json_number(j, "tol", report.tol);
    plan_json(j, c->set.arrays.plan, d->plan_read, d->plan_written);
    frg_json_open_object(j, "seconds");
    frg_json_number(j, "read", d->read);
    frg_json_number(j, "setup", d->setup);
    frg_json_number(j, "solve", d->solve);
    frg_json_number(j, "write", d->write);
    frg_json_number(j, "total", d->setup + d->solve);
    frg_json_close_object(j);
    repeats_json(j, c, d->totals, d->n_totals);
    json_foot(j, c);
}

static void demean_text(frg_report *r, const cli *c, const void *job)
{
    const demean_job *const d = job;
    char text[160], a[32], b[32];
    snprintf(text, sizeof text, "%s rows, %" PRId64 " columns, %" PRId64 " factors",
             grouped(d->x.shape[0], a), d->x.shape[1], d->codes.shape[1]);
    frg_report_fact(r, "Data", text);
    const frg_demean_report report = frg_demean_get(d->plan);
    frg_report_fact(r, "Levels", grouped(report.levels, a));
    snprintf(text, sizeof text, "%s; %d threads", d->method, frg_threads(c->ctx));
    frg_report_fact(r, "Method", text);
    device_work_fact(r, report.passes_on, device_work_of_demean(&report));
    plan_fact(r, c->set.arrays.plan, d->plan_read, d->plan_written);
    snprintf(text, sizeof text, "setup %s, solve %s", seconds_text(d->setup, a),
             seconds_text(d->solve, b));
    frg_report_fact(r, "Time", text);
    snprintf(text, sizeof text, "%s; tol %.3g", d->status == FRG_OK ? "converged" : "NOT CONVERGED",
             report.tol);
    frg_report_fact(r, "Result", text);
    frg_report_table_open(r, "Certificate of each column");
    frg_report_table_column(r, "column", FRG_RIGHT);
    frg_report_table_column(r, "iterations", FRG_RIGHT);
    frg_report_table_column(r, "audit", FRG_RIGHT);
    frg_report_table_column(r, "gradient", FRG_RIGHT);
    frg_report_table_column(r, "error bound", FRG_RIGHT);
    frg_report_table_column(r, "state", FRG_LEFT);
    for (int64_t i = 0; i < d->x.shape[1]; i++) {
        const frg_demean_column *k = &d->columns[i];
        frg_report_cell_integer(r, i + 1);
        frg_report_cell_integer(r, k->iterations);
        frg_report_cell_number(r, k->audit, 2);
        frg_report_cell_number(r, k->gradient, 2);
        if (isfinite(k->error_bound)) {
            frg_report_cell_number(r, k->error_bound, 2);
        } else {
            frg_report_cell_text(r, "-");
        }
        frg_report_cell_text(r, !k->converged ? "NOT CONVERGED"
                                : k->absorbed ? "absorbed"
                                              : "converged");
    }
    frg_report_table_close(r);
    subproblems_table(r, d->subproblems, report.n_parts);
    host_steps_table(r, &report.host_steps);
}

/* ---- dry run --------------------------------------------------------------------------------- */

/** The levels that occur, or one a row where the codes are too far apart to be counted in little
 *  memory. */
static int count_levels(const cli *c, const frg_array *codes, int64_t *levels)
{
    enum { CODES_A_ROW = 16, CODES = 1 << 16 };
    const int64_t n = codes->shape[0], room = CODES_A_ROW * n + CODES;
    unsigned char *seen = malloc((size_t)room);
    if (!seen) {
        return cli_fail_memory(c);
    }
    for (int64_t q = 0; q < codes->shape[1]; q++) {
        memset(seen, 0, (size_t)room);
        levels[q] = 0;
        for (int64_t i = 0; i < n; i++) {
            int32_t code;
            memcpy(&code, element(codes, i, q), sizeof code);
            if (code >= room) {
                levels[q] = n;
                break;
            }
            levels[q] += code >= 0 && !seen[code];
            seen[code > 0 ? code : 0] = 1;
        }
    }
    free(seen);
    return 0;
}

/** Do the rows of some level of the largest factor stand apart?  They are brought together then. */
static int are_scattered(const frg_array *codes, const int64_t *levels)
{
    int64_t largest = 0, runs = 0;
    int32_t before = -1;
    for (int64_t q = 1; q < codes->shape[1]; q++) {
        largest = levels[q] > levels[largest] ? q : largest;
    }
    for (int64_t i = 0; i < codes->shape[0]; i++) {
        int32_t code;
        memcpy(&code, element(codes, i, largest), sizeof code);
        runs += code != before;
        before = code;
    }
    return runs > levels[largest];
}

static int estimate(cli *c, demean_job *d)
{
    frg_array codes;
    const int bad = narrow_codes(c, d, &codes);
    if (bad) {
        return bad;
    }
    int64_t *levels = malloc((size_t)codes.shape[1] * sizeof *levels + 1);
    if (!levels) {
        return cli_fail_memory(c);
    }
    const int code = count_levels(c, &codes, levels);
    if (code) {
        free(levels);
        return code;
    }
    const frg_demean_shape shape = {.n = codes.shape[0],
                                    .p = d->x.shape[1],
                                    .n_factors = (int)codes.shape[1],
                                    .levels = levels,
                                    .weighted = d->weights_file != NULL};
    frg_fe_size size = {.n = shape.n,
                        .n_factors = shape.n_factors,
                        .n_columns = shape.p,
                        .matrix_bytes = (size_t)shape.n * (size_t)shape.p * frg_sizeof(d->x.dtype)};
    const frg_status status =
        frg_demean_estimate(c->ctx, &shape, &c->set.fe.demean, &size.plan_bytes,
                            &size.with_factor_bytes, &size.seconds);
    if (c->set.context.spool) { /* the columns, codes as int32, the plan;
                                   both files, codes, solve, an order there and back */
        enum { FILES_AND_DEMEANER = 5, ORDERS = 4 };
        size.spool_bytes = frg_bytes_held(c->ctx) + size.plan_bytes;
        size.spool_with_factor_bytes = frg_bytes_held(c->ctx) + size.with_factor_bytes;
        size.passes =
            FILES_AND_DEMEANER + shape.n_factors + (are_scattered(&codes, levels) ? ORDERS : 0);
    }
    const size_t kept = keeps_layout(c) ? frg_demean_layout_bytes(&shape) : 0;
    free(levels);
    return status < 0 ? cli_fail_library(c, status)
                      : show_estimate(c, "fourge.demean.estimate/1", &size, kept);
}

/* ---- the command ----------------------------------------------------------------------------- */

/** Of all files that the run reads. */
static uint64_t hash_sources(const cli *c)
{
    const char *const files[] = {c->set.arrays.columns, c->set.arrays.codes,
                                 c->set.arrays.weights_file};
    uint64_t h = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const uint64_t own = files[i] ? hash_source(files[i]) : 0;
        h = frg_hash(h, &own, sizeof own);
    }
    return h;
}

static int job(cli *c, demean_job *d)
{
    const double start = now_seconds();
    int code = kept_layout_open(&d->layout, c, hash_sources(c));
    code = code ? code : read_all(c, d);
    if (!code) {
        code = check_shapes(c, d);
    }
    if (!code && d->weights_file) {
        code = widen_weights(c, d);
    }
    d->read = now_seconds() - start;
    if (!code && c->set.dry_run) {
        return estimate(c, d);
    }
    if (!code) {
        code = place_result(c, d);
    }
    if (!code) {
        code = run_all(c, d);
    }
    progress_clear(&c->progress);
    if (code) {
        return code;
    }
    const double before = now_seconds();
    const frg_array flat = frg_vector(d->out.data, d->out.dtype, d->out.shape[0]);
    const int was_flat = frg_npy_array(d->x_file).ndim == 1 && d->out.offset == 0;
    const frg_status status = frg_npy_write(c->ctx, c->set.arrays.out, was_flat ? flat : d->out);
    d->write = now_seconds() - before;
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    const int plan_code = keep_plan(c, d);
    cli_show_warnings(c);
    code = write_result(c, "Demeaned columns", demean_json, demean_text, d);
    if (d->status != FRG_INTERRUPTED && d->status != FRG_TIME_LIMIT) {
        kept_rows_remove(c);
    }
    code = code ? code : plan_code;
    return code ? code : cli_ended(d->status);
}

int command_demean(cli *c)
{
    const struct {
        const char *name, *value;
        int needed;
    } files[] = {{"--columns", c->set.arrays.columns, 1},
                 {"--codes", c->set.arrays.codes, 1},
                 {"--out", c->set.arrays.out, !c->set.dry_run}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i].needed && !files[i].value) {
            return cli_fail(c, "E_OPTION", files[i].name,
                            "fourge demean --columns X.npy --codes C.npy --out R.npy",
                            "fourge demean needs %s", files[i].name);
        }
    }
    if (c->set.checkpoint && c->set.repeat > 0) {
        return cli_fail(c, "E_OPTION", "--checkpoint", "",
                        "--checkpoint does not go with --repeat");
    }
    int code = open_with_spool(c, c->set.arrays.columns);
    code = code ? code : kept_rows_check(c);
    code = code ? code : checkpoint_begin(c);
    if (code) {
        return code;
    }
    demean_job d = {0};
    code = job(c, &d);
    release(c, &d);
    return code;
}
