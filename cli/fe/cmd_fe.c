/* cmd_fe.c - `fourge fe`: reads a table, fits the regression, writes what was asked for. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli_checkpoint.h"
#include "fe/fe_job.h"

/* ---- fitting --------------------------------------------------------------------------------- */

enum { MOST_NAMED = 256, OTHERS = 3 };

/** The columns that the fit names, each once. */
typedef struct {
    const char *names[MOST_NAMED];
    int n, lost; /* lost: more than MOST_NAMED, or no memory: then all columns are read */
} named;

static void take_name(const char *name, void *user)
{
    named *k = user;
    for (int i = 0; i < k->n; i++) {
        if (strcmp(k->names[i], name) == 0) {
            return;
        }
    }
    char *copy = k->n < MOST_NAMED ? strdup(name) : NULL;
    if (copy) {
        k->names[k->n++] = copy;
    } else {
        k->lost = 1;
    }
}

/** Reads the columns that the formula and the options name, and three `others` (NULL: none), and
 *  leaves the rest of a wide file alone.  When one is not there all are read, so that the fit can
 *  say where in the formula; of a pipe, which gives its data once, the reader says it.  0 or the
 *  exit code. */
static int read_named(cli *c, const char *formula, const frg_fe_opts *fit,
                      const char *const others[OTHERS], const char *path, frg_table **out)
{
    named k = {.n = 0};
    frg_table_opts opts = c->set.table;
    int code = 0;
    frg_status status = frg_fe_columns(c->ctx, formula, fit, take_name, &k);
    for (int i = 0; i < OTHERS; i++) {
        if (others[i]) {
            take_name(others[i], &k);
        }
    }
    const int pruned = status >= 0 && !k.lost, pipe = strcmp(path, "-") == 0;
    if (pruned) {
        opts.columns = k.names;
        opts.n_columns = k.n;
    }
    if (status >= 0) {
        code = cli_load_table(c, path, &opts, out, &status);
    }
    if (!code && pruned && !pipe && status < 0 &&
        strcmp(frg_error_code(c->ctx), find_error("E_COLUMN")->code) == 0) {
        code = cli_load_table(c, path, &c->set.table, out, &status);
    }
    for (int i = 0; i < k.n; i++) {
        free((char *)(uintptr_t)k.names[i]);
    }
    if (!code && !*out) {
        progress_clear(&c->progress);
        code = cli_fail_read(c, status);
    }
    return code;
}

int fe_job_read(cli *c, fe_job *job)
{
    const double start = now_seconds();
    const char *const others[OTHERS] = {c->set.studies.ritest.cluster, c->set.studies.ritest.strata,
                                        c->set.studies.lpdid.cohort};
    job->source = hash_source(job->path);
    int code = kept_rows_load(c, job->path, &job->data);
    if (!code && !job->data) {
        code = read_named(c, job->formula, &job->opts, others, job->path, &job->data);
        code = code ? code : kept_rows_save(c, job->path, job->source, job->data);
    }
    job->read = now_seconds() - start;
    return code;
}

static void take_times(fe_job *job, double phases[3], double *total)
{
    const frg_fe_result *f = frg_fe_get(job->fit);
    phases[0] = f->encode_seconds;
    phases[1] = f->solve_seconds;
    phases[2] = f->vcov_seconds;
    *total = f->total_seconds;
}

static void medians(fe_job *job, double (*phases)[3])
{
    double *const into[3] = {&job->encode, &job->solve, &job->vcov};
    double *sorted = malloc((size_t)job->n_totals * sizeof *sorted);
    for (int k = 0; sorted && k < 4; k++) {
        for (int i = 0; i < job->n_totals; i++) {
            sorted[i] = k < 3 ? phases[i][k] : job->totals[i];
        }
        *(k < 3 ? into[k] : &job->total) = median_of(sorted, job->n_totals);
    }
    free(sorted);
}

int fe_job_fit(cli *c, fe_job *job)
{
    const int repeats = c->set.repeat;
    double(*phases)[3] = calloc((size_t)repeats + 2, sizeof *phases);
    job->totals = calloc((size_t)repeats + 2, sizeof *job->totals);
    int code = phases && job->totals ? 0 : cli_fail_memory(c);
    for (int i = 0; !code && i <= repeats && job->status != FRG_INTERRUPTED;
         i++) { /* 0 is the warm-up of repeats */
        frg_fe_destroy(job->fit);
        job->fit = NULL;
        if (i > 0) {
            frg_warnings_clear(c->ctx);
            c->progress.keep_trace = 0; /* the first run has drawn the curve */
        }
        job->status = frg_fe_fit(&job->fit, c->ctx, job->formula, job->data, &job->opts);
        progress_clear(&c->progress);
        if (job->status > 0 && !job->fit) { /* stopped, and the state is saved */
            code = keeper_stopped(c, job->status);
            break;
        }
        if (job->status < 0) {
            code = kept_layout_failed(c, &job->layout, job->status);
            break;
        }
        const int at = i > 0 ? i - 1 : 0;
        take_times(job, phases[at], &job->totals[at]);
        job->n_totals = at + 1;
    }
    if (!code) {
        medians(job, phases);
    }
    free(phases);
    return code;
}

void fe_job_release(fe_job *job)
{
    frg_fe_destroy(job->fit);
    frg_fe_many_destroy(job->many);
    frg_lpdid_destroy(job->lpdid);
    kept_layout_close(&job->layout);
    frg_table_destroy(job->data);
    free(job->totals);
    *job = (fe_job){0};
}

/* ---- with a checkpoint ----------------------------------------------------------------------- */

static frg_status load_columns(void *user, int64_t n, int64_t p, double *values,
                               frg_demean_column *columns, int64_t *done, frg_status *worst)
{
    return keeper_load(user, n, p, values, columns, done, worst);
}

static frg_status save_columns(void *user, int64_t n, int64_t p, const double *values,
                               const frg_demean_column *columns, int64_t done, frg_status worst,
                               int stopped)
{
    return keeper_save(user, n, p, values, columns, done, worst, stopped);
}

static int fit_kept(cli *c, fe_job *job)
{
    keeper k;
    int code = kept_layout_open(&job->layout, c, job->source);
    const frg_column_store store = {.block = job->opts.demean.block,
                                    .load = load_columns,
                                    .save = save_columns,
                                    .user = &k,
                                    .layout = job->layout.files};
    if (code) {
        return code;
    }
    code = keeper_open(&k, c, "fe", sizeof(double), hash_table(job->data));
    if (!code) {
        job->opts.store = &store;
        code = fe_job_fit(c, job);
        job->opts.store = NULL;
    }
    keeper_close(&k);
    return code;
}

/* ---- the solver in a file -------------------------------------------------------------------- */

/** Keeps the solver of a run that came to its end, behind its results: a plan that cannot be
 *  written loses nothing. */
static int keep_plan(cli *c, fe_job *job)
{
    const int whole = job->status != FRG_INTERRUPTED && job->status != FRG_TIME_LIMIT;
    if (!c->set.fe.plan || !whole || frg_fe_get(job->fit)->plan_read) {
        return 0;
    }
    const frg_status status = frg_fe_save_plan(job->fit, c->set.fe.plan);
    job->plan_written = status == FRG_OK;
    return status < 0 ? cli_fail_library(c, status) : 0;
}

/* ---- files beside the result ----------------------------------------------------------------- */

static int write_table(cli *c, frg_table *t, frg_status status, const char *path)
{
    if (status >= 0) {
        status = frg_table_write(t, c->ctx, path);
    }
    frg_table_destroy(t);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

/** A csv of one or two columns of numbers. */
static int write_numbers(cli *c, int64_t n, const char *const names[2],
                         const double *const values[2], const char *path)
{
    frg_table *t = NULL;
    frg_status status = frg_table_create(&t, c->ctx, n);
    for (int i = 0; i < 2 && values[i] && status >= 0; i++) {
        status = frg_table_add_numbers(t, names[i], values[i]);
    }
    return write_table(c, t, status, path);
}

static int save_effects(cli *c, const fe_job *job)
{
    frg_table *t = NULL;
    const frg_status status = frg_fe_effects(job->fit, &t);
    return write_table(c, t, status, c->set.fe_job.save_effects);
}

static int save_residuals(cli *c, const fe_job *job)
{
    const int64_t n = frg_table_rows(job->data);
    void *block;
    frg_status status =
        frg_block_create(&block, c->ctx, 2 * (size_t)n * sizeof(double), "residuals");
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    double *const values = block;
    status = frg_fe_residuals(job->fit, values, values + n);
    const char *const names[2] = {"residual", "fitted"};
    const double *const columns[2] = {values, values + n};
    const int code = status < 0 ? cli_fail_library(c, status)
                                : write_numbers(c, n, names, columns, c->set.fe_job.save_residuals);
    frg_block_destroy(block, c->ctx);
    return code;
}

static int save_groups(cli *c, const fe_job *job)
{
    const int64_t n = frg_table_rows(job->data);
    int32_t *groups = malloc((size_t)n * sizeof *groups + 1);
    int64_t *values = malloc((size_t)n * sizeof *values + 1);
    int code = groups && values ? 0 : cli_fail_memory(c);
    frg_table *t = NULL;
    if (!code) {
        frg_status status = frg_fe_groups(job->fit, groups, NULL);
        for (int64_t i = 0; i < n && status >= 0; i++) {
            values[i] = groups[i];
        }
        status = status < 0 ? status : frg_table_create(&t, c->ctx, n);
        status = status < 0 ? status : frg_table_add_integers(t, "group", values);
        code = write_table(c, t, status, c->set.fe_job.save_groups);
    }
    free(groups);
    free(values);
    return code;
}

/** Reads what the right-hand side of the fit's formula, its offset and its panel name: new data
 *  need no outcome. */
static int read_new_data(cli *c, const fe_job *job, frg_table **out)
{
    const char *const right = strchr(job->formula, '~'); /* a formula that was fitted has one */
    const size_t length = strlen(right);
    char *const formula = malloc(length + 2);
    if (!formula) {
        return cli_fail_memory(c);
    }
    formula[0] = '1';
    memcpy(formula + 1, right, length + 1);
    frg_fe_opts opts;
    frg_fe_defaults(&opts, sizeof opts);
    opts.offset = job->opts.offset;
    opts.panel = job->opts.panel;
    static const char *const others[OTHERS] = {NULL};
    const int code = read_named(c, formula, &opts, others, c->set.fe_job.predict, out);
    free(formula);
    return code;
}

static int save_predictions(cli *c, const fe_job *job)
{
    frg_table *data = NULL;
    int code = read_new_data(c, job, &data);
    if (code) {
        return code;
    }
    const int64_t n = frg_table_rows(data);
    void *block;
    int64_t unseen = 0;
    frg_status status = frg_block_create(&block, c->ctx, (size_t)n * sizeof(double), "predictions");
    double *const values = block;
    status = status < 0 ? status : frg_fe_predict(job->fit, data, values, &unseen);
    code = status < 0 ? cli_fail_library(c, status) : 0;
    if (!code && unseen > 0 && !c->set.quiet) {
        fprintf(stderr, "fourge: %" PRId64 " of %" PRId64 " rows of ", unseen, n);
        write_visible(stderr, c->set.fe_job.predict);
        fputs(" have a level that the fit has not seen: no prediction\n", stderr);
    }
    const char *const names[2] = {"prediction", NULL};
    const double *const columns[2] = {values, NULL};
    if (!code) {
        code = write_numbers(c, n, names, columns, c->set.fe_job.predictions);
    }
    frg_block_destroy(block, c->ctx);
    frg_table_destroy(data);
    return code;
}

static void page_of(frg_report *r, const cli *c, const void *job)
{
    fe_report_build(r, c, job, 1);
}

static int save_html(cli *c, const fe_job *job)
{
    char title[512];
    snprintf(title, sizeof title, "fourge: %s", job->formula);
    return save_page(c, title, page_of, job);
}

static int save_files(cli *c, const fe_job *job)
{
    const settings *s = &c->set;
    int code = s->fe_job.save_effects ? save_effects(c, job) : 0;
    if (!code && s->fe_job.save_residuals) {
        code = save_residuals(c, job);
    }
    if (!code && s->fe_job.save_groups) {
        code = save_groups(c, job);
    }
    if (!code && s->fe_job.predict) {
        code = save_predictions(c, job);
    }
    if (!code && s->report) {
        code = save_html(c, job);
    }
    return code;
}

/* ---- the result ------------------------------------------------------------------------------ */

static void json_of(frg_json *j, const cli *c, const void *job)
{
    fe_json_build(j, c, job);
}

static void text_of(frg_report *r, const cli *c, const void *job)
{
    fe_report_build(r, c, job, 0);
}

static int show(cli *c, const fe_job *job)
{
    const frg_fe_result *const f = frg_fe_get(job->fit);
    const char *const title = f->glm           ? "Generalised linear model"
                              : f->iv          ? "Two-stage least squares"
                              : f->first_stage ? "Two-stage difference in differences"
                              : f->n_factors   ? "Regression with fixed effects"
                                               : "Linear regression";
    return write_result(c, title, json_of, text_of, job);
}

/* ---- dry run --------------------------------------------------------------------------------- */

static int estimate(cli *c, const fe_job *job)
{
    frg_fe_size size;
    const frg_status status = frg_fe_estimate(c->ctx, job->formula, job->data, &job->opts, &size);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    const size_t kept = kept_rows_bytes(c, job->path, job->data) + size.layout_bytes;
    return show_estimate(c, "fourge.fe.estimate/1", &size, keeps_layout(c) ? kept : 0);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int model_options(cli *c)
{
    settings *s = &c->set;
    if (s->fe.n_vcov == 0 && !s->studies.lpdid.cohort) {
        s->fe.n_vcov = 1; /* the default stands in the first place */
    }
    if (!s->fe_job.predict != !s->fe_job.predictions) {
        return cli_fail(c, "E_OPTION", "--predict", "",
                        "--predict NEW and --predictions FILE go together");
    }
    int code = fe_leave_out_options(c);
    code = code ? code : fe_ritest_options(c);
    code = code ? code : fe_lpdid_options(c);
    if (code) {
        return code;
    }
    const int needs_effects = s->fe_job.save_effects || s->fe_job.predict;
    if (needs_effects && s->fe_job.keep_effects == KEEP_NO) {
        return cli_fail(c, "E_OPTION", "--keep-effects", "leave it out, or say yes",
                        "--keep-effects no: %s needs the fixed effects",
                        s->fe_job.save_effects ? "--save-effects" : "--predict");
    }
    s->fe.keep_effects =
        needs_effects || s->fe_job.keep_effects == KEEP_YES || s->fe_job.leave_out != LEAVE_OUT_NO;
    if (s->checkpoint && (s->repeat > 0 || s->fe.keep_effects)) {
        return cli_fail(c, "E_OPTION", "--checkpoint", "",
                        "--checkpoint goes neither with --repeat nor with the fixed effects "
                        "(--save-effects, --predict, --keep-effects)");
    }
    if (s->checkpoint && strcmp(c->arguments[1], "-") == 0) {
        return cli_fail(c, "E_OPTION", "--checkpoint", "write the data to a file first",
                        "--checkpoint needs data that can be read again, not a pipe");
    }
    return cli_table_options(c);
}

static int run_job(cli *c, fe_job *job)
{
    int code = fe_job_read(c, job), plan_code = 0;
    if (!code && c->set.dry_run) {
        return estimate(c, job);
    }
    if (!code) {
        code = c->set.checkpoint ? fit_kept(c, job) : fe_job_fit(c, job);
    }
    if (!code) {
        code = fe_leave_out_run(c, job);
    }
    if (!code) {
        code = fe_ritest_run(c, job);
    }
    if (!code) {
        plan_code = keep_plan(c, job);
        code = save_files(c, job);
    }
    if (code) {
        return code;
    }
    cli_show_warnings(c);
    code = show(c, job);
    if (job->status != FRG_INTERRUPTED && job->status != FRG_TIME_LIMIT) {
        kept_rows_remove(c);
    }
    code = code ? code : plan_code;
    return code ? code : cli_ended(job->status);
}

int command_fe(cli *c)
{
    int code = model_options(c);
    code = code ? code : open_with_spool(c, c->arguments[1]);
    code = code ? code : kept_rows_check(c);
    code = code ? code : checkpoint_begin(c);
    if (code) {
        return code;
    }
    fe_job job = {.formula = c->arguments[0], .path = c->arguments[1], .opts = c->set.fe};
    code = c->set.studies.lpdid.cohort ? fe_lpdid_run(c, &job)
           : fe_makes_many(c)          ? fe_many_run(c, &job)
                                       : run_job(c, &job);
    fe_job_release(&job);
    return code;
}
