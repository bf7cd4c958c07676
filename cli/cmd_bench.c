/* cmd_bench.c - `fourge bench`: verifies, then times; a JSON line for each case.  Here are the
 * lines and fe.
 *
 * Verified is the result that is timed: the audit is computed again from the result by the plainest
 * text there is, level sums in long double, and compared with the tolerance, before any time is
 * believed.  Times run from int32 codes and columns in memory to the result in memory, plan
 * included.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_lines.h"
#include "simulate/simulate.h"

typedef struct {
    const char *design;
    int effects;
} bench_case;

static const bench_case fe_cases[] = {
    {"simple", 2},      {"simple", 3},
    {"difficult", 2},   {"difficult", 3},
    {"worker_firm", 2}, {"worker_firm", 3},
    {"akm", 2},         {"akm", 3},
    {"small_world", 2}, {"hard", 2},
    {"powerlaw", 2},    {"clustered", 2},
    {"grid", 2},        {"fixest_difficult", 3},
    {"barbell", 2},
};

typedef struct {
    design_data data;
    int32_t *codes;
    int n_factors;
    double *result;
    frg_demean_column *columns;
    frg_demean *plan;
    double *totals;
    double setup, solve, median, spread, audit;
    frg_status status;
    frg_demean_report report;
} bench_run;

static void release(bench_run *b)
{
    frg_demean_destroy(b->plan);
    design_free(&b->data);
    free(b->codes);
    free(b->result);
    free(b->columns);
    free(b->totals);
}

/* ---- verifying ------------------------------------------------------------------------------- */

/** max |level mean| of column c over its standard deviation; over the input's where nothing is
 *  left. */
static double audit_column(const bench_run *b, int c, long double *sums, long double *sizes,
                           int64_t room)
{
    const design_data *d = &b->data;
    long double square = 0, mean = 0, input = 0, input_mean = 0, total = 0;
    for (int64_t i = 0; i < d->n; i++) {
        const long double w = d->weights ? d->weights[i] : 1, r = b->result[i * d->p + c],
                          x = d->columns[i * d->p + c];
        total += w;
        mean += w * r;
        square += w * r * r;
        input_mean += w * x;
        input += w * x * x;
    }
    const double left = (double)sqrtl(fmaxl(square / total - mean / total * (mean / total), 0));
    const double before =
        (double)sqrtl(fmaxl(input / total - input_mean / total * (input_mean / total), 0));
    const double scale = left > 1e-9 * before ? left : before;
    double worst = 0;
    for (int q = 0; q < b->n_factors; q++) {
        memset(sums, 0, (size_t)room * sizeof *sums);
        memset(sizes, 0, (size_t)room * sizeof *sizes);
        for (int64_t i = 0; i < d->n; i++) {
            const int32_t level = b->codes[i * b->n_factors + q];
            const long double w = d->weights ? d->weights[i] : 1;
            sums[level] += w * b->result[i * d->p + c];
            sizes[level] += w;
        }
        for (int64_t l = 0; l < room; l++) {
            worst = sizes[l] > 0 ? fmax(worst, fabs((double)(sums[l] / sizes[l]))) : worst;
        }
    }
    return scale > 0 ? worst / scale : worst;
}

static int verify(const cli *c, bench_run *b, const char *name)
{
    int64_t room = 1;
    for (int64_t i = 0; i < b->data.n * b->n_factors; i++) {
        room = b->codes[i] >= room ? b->codes[i] + 1 : room;
    }
    long double *sums = malloc((size_t)room * sizeof *sums),
                *sizes = malloc((size_t)room * sizeof *sizes);
    b->audit = 0;
    for (int k = 0; k < b->data.p && sums && sizes; k++) {
        b->audit = fmax(b->audit, audit_column(b, k, sums, sizes, room));
    }
    const int had_memory = sums && sizes;
    free(sums);
    free(sizes);
    if (!had_memory) {
        return cli_fail_memory(c);
    }
    /* the two audits differ by the rounding of their sums alone; 10 leaves room for that at the
     * tolerance, which f32 columns have no lower than this */
    const double least = c->set.fe.demean.dtype == FRG_FE_F32 ? 3.6e-7 : 0;
    if (b->status == FRG_OK && !(b->audit <= 10 * fmax(c->set.fe.demean.tol, least))) {
        return cli_fail(c, "E_BUG", name, NULL,
                        "%s with %d effects was called converged, but a level mean of %.2e of "
                        "the standard deviation is left",
                        name, b->n_factors, b->audit);
    }
    return 0;
}

/* ---- timing ---------------------------------------------------------------------------------- */

int bench_check(const cli *c, frg_status status)
{
    return cli_check(c, cli_signalled() ? FRG_INTERRUPTED : status, "the case was timed");
}

static frg_status run_once(cli *c, bench_run *b, double *setup, double *solve)
{
    const design_data *d = &b->data;
    const frg_array codes = frg_matrix(b->codes, FRG_I32, d->n, b->n_factors, b->n_factors);
    const frg_array weights = frg_vector(d->weights, FRG_F64, d->n);
    frg_demean_destroy(b->plan);
    b->plan = NULL;
    const double start = now_seconds();
    frg_status status = frg_demean_create(&b->plan, c->ctx, codes, d->weights ? &weights : NULL,
                                          NULL, 0, 0, &c->set.fe.demean);
    const double ready = now_seconds();
    if (status >= 0) {
        frg_info info = {0};
        status =
            frg_demean_run(b->plan, frg_matrix(d->columns, FRG_F64, d->n, d->p, d->p),
                           frg_matrix(b->result, FRG_F64, d->n, d->p, d->p), b->columns, &info);
    }
    *setup = ready - start;
    *solve = now_seconds() - ready;
    return status;
}

static int time_runs(cli *c, bench_run *b, int repeats)
{
    double *setups = calloc((size_t)repeats, sizeof *setups);
    b->totals = calloc((size_t)repeats, sizeof *b->totals);
    int code = setups && b->totals ? 0 : cli_fail_memory(c);
    for (int i = 0; !code && i < repeats; i++) {
        double solve;
        const frg_status status = run_once(c, b, &setups[i], &solve);
        code = bench_check(c, status);
        b->totals[i] = setups[i] + solve;
    }
    if (!code) {
        b->setup = median_of(setups, repeats);
        b->median = median_of(b->totals, repeats); /* sorted now */
        b->solve = b->median - b->setup;
        b->spread = (b->totals[repeats - 1] - b->totals[0]) / b->median;
    }
    free(setups);
    return code;
}

/* ---- JSON lines ----------------------------------------------------------------------------- */

int bench_repeats(const cli *c)
{
    return c->set.repeat > 0 ? c->set.repeat : c->set.design.quick ? 3 : 5;
}

int bench_case_begins(cli *c, int slow)
{
    frg_peak_reset(c->ctx);
    frg_warnings_clear(c->ctx);
    return !(c->set.design.quick && slow);
}

int bench_line_begin(cli *c, const char *bench, int repeats, frg_json **j)
{
    const frg_status status = frg_json_create(j, c->ctx);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    machine m;
    machine_read(&m);
    frg_json_compact(*j, 1);
    json_head(*j, "fourge.bench/1");
    frg_json_string(*j, "bench", bench);
    frg_json_string(*j, "machine", m.cpu);
    frg_json_string(*j, "level", frg_isa(c->ctx));
    frg_json_string(*j, "compiler", __VERSION__);
    frg_json_string(*j, "commit", frg_commit());
    frg_json_integer(*j, "repetitions", repeats);
    return 0;
}

int bench_line_end(cli *c, frg_json *j, FILE *to)
{
    const char *text;
    int64_t length;
    json_foot(j, c);
    const frg_status finished = frg_json_finish(j, &text, &length);
    if (finished >= 0) {
        fwrite(text, 1, (size_t)length, to);
        fflush(to);
    }
    frg_json_destroy(j);
    return finished < 0 ? cli_fail_library(c, finished) : 0;
}

int bench_time(cli *c, frg_status (*once)(cli *, void *job, double *seconds),
               int (*check)(cli *, void *job), void *job, int repeats, double *seconds)
{
    int code = 0;
    for (int i = -1; i < repeats && !code; i++) { /* the warm-up is the run that is verified */
        double took;
        const frg_status status = once(c, job, &took);
        progress_clear(&c->progress);
        code = bench_check(c, status);
        if (!code && i < 0) {
            code = check(c, job);
        } else if (!code) {
            seconds[i] = took;
        }
    }
    return code;
}

void bench_line_seconds(frg_json *j, double *seconds, int repeats)
{
    const double median = median_of(seconds, repeats); /* sorted now */
    frg_json_open_object(j, "seconds");
    frg_json_number(j, "total", median);
    frg_json_number(j, "least", seconds[0]);
    frg_json_close_object(j);
}

/* ---- one design ------------------------------------------------------------------------------ */

static int show(cli *c, const bench_run *b, const char *name, int repeats, FILE *to)
{
    frg_json *j;
    const int code = bench_line_begin(c, "fe", repeats, &j);
    if (code) {
        return code;
    }
    int64_t steps = 0;
    double reported = 0;
    for (int k = 0; k < b->data.p; k++) {
        steps = b->columns[k].iterations > steps ? b->columns[k].iterations : steps;
        reported = fmax(reported, b->columns[k].audit);
    }
    frg_json_string(j, "design", name);
    frg_json_integer(j, "effects", b->n_factors);
    frg_json_integer(j, "n", b->data.n);
    frg_json_integer(j, "columns", b->data.p);
    frg_json_open_object(j, "seconds");
    frg_json_number(j, "setup", b->setup);
    frg_json_number(j, "solve", b->solve);
    frg_json_number(j, "total", b->median);
    frg_json_number(j, "spread", b->spread);
    frg_json_close_object(j);
    frg_json_string(j, "method", b->report.method);
    frg_json_integer(j, "iterations", steps);
    frg_json_bool(j, "converged", b->status == FRG_OK);
    frg_json_number(j, "audit", reported);
    frg_json_number(j, "audit_again", b->audit);
    frg_json_integer(j, "plan_bytes", (int64_t)b->report.plan_bytes);
    frg_json_integer(j, "factor_bytes", (int64_t)b->report.factor_bytes);
    return bench_line_end(c, j, to);
}

static int bench_memory(const cli *c, bench_run *b)
{
    b->result = malloc((size_t)b->data.n * (size_t)b->data.p * sizeof *b->result);
    b->columns = calloc((size_t)b->data.p, sizeof *b->columns);
    return b->result && b->columns && design_codes(&b->data, &b->codes, &b->n_factors) == 0
               ? 0
               : cli_fail_memory(c);
}

static int bench_one(cli *c, const bench_case *k, int64_t rows, int repeats, FILE *to)
{
    double parameter[MAX_PARAMETERS];
    const design *made = find_design(k->design);
    for (int i = 0; i < MAX_PARAMETERS; i++) {
        const char *name = made->parameters[i].name;
        parameter[i] =
            name && strcmp(name, "effects") == 0 ? k->effects : made->parameters[i].value;
    }
    bench_run b = {0};
    int code = made->make(&b.data, rows, parameter, c->set.context.seed) < 0 ? cli_fail_memory(c)
                                                                             : bench_memory(c, &b);
    if (!code) {
        double setup, solve;
        b.status = run_once(c, &b, &setup, &solve); /* the warm-up is the run that is verified */
        progress_clear(&c->progress);
        code = bench_check(c, b.status);
    }
    if (!code) {
        b.report = frg_demean_get(b.plan);
        code = verify(c, &b, k->design);
    }
    if (!code) {
        code = time_runs(c, &b, repeats);
    }
    progress_clear(&c->progress);
    if (!code) {
        code = show(c, &b, k->design, repeats, to);
    }
    if (!code && b.status != FRG_OK) {
        code = frg_status_exit_code(b.status);
    }
    release(&b);
    return code;
}

static int bench_fe(cli *c, FILE *to)
{
    const int64_t rows =
        (int64_t)(c->set.design.quick ? fmin(c->set.design.rows, 1e5) : c->set.design.rows);
    const int repeats = bench_repeats(c);
    int worst = 0;
    for (size_t i = 0; i < sizeof fe_cases / sizeof *fe_cases && worst <= 1; i++) {
        bench_case_begins(c, 0);
        const int code = bench_one(c, &fe_cases[i], rows, repeats, to);
        worst = code > worst ? code : worst;
    }
    return worst;
}

int command_bench(cli *c)
{
    static int (*const solvers[])(cli *, FILE *) = {bench_fe, bench_gp, bench_gw, bench_soap};
    int (*const run)(cli *, FILE *) = solvers[c->job];
    int code = c->set.format == FORMAT_JSON
                   ? 0
                   : cli_text_alone(c, "what fourge bench writes, a line of JSON a case,");
    code = code ? code : cli_open(c);
    if (code || !c->set.output) { /* lines come as they are ready */
        return code ? code : run(c, stdout);
    }
    char *text = NULL;
    size_t length = 0;
    FILE *lines = open_memstream(&text, &length);
    if (!lines) {
        return cli_fail_memory(c);
    }
    code = run(c, lines);
    fclose(lines);
    const int written = code <= 1 ? write_output(c, text, (int64_t)length) : 0;
    free(text);
    return written ? written : code;
}
