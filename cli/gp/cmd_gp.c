/* cmd_gp.c - `fourge gp value|fit|predict|loo|sample|batch`: reads, computes, writes what was asked
 * for.
 *
 * seconds.total runs from arrays in memory to the result in memory: making the process and the
 * computation, without reading and writing.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli_checkpoint.h"
#include "gp/gp_job.h"

/** A subcommand and its arguments. */
typedef struct {
    const char *name, *arguments;
    int least, most; /* arguments behind the name */
    int stands_on_data;
    int model_arguments; /* behind the command where the first of them is a MODEL; 0: none is
                            taken */
} subcommand;

static const subcommand subcommands[GP_SUBCOMMANDS] = {
    [GP_VALUE] = {"value", "DATA", 1, 1, 1, 0},
    [GP_FIT] = {"fit", "DATA", 1, 1, 1, 0},
    [GP_PREDICT] = {"predict", "MODEL|DATA NEW", 2, 2, 0, 3},
    [GP_LOO] = {"loo", "MODEL|DATA", 1, 1, 0, 2},
    [GP_SAMPLE] = {"sample", "[MODEL|DATA] NEW", 1, 2, 0, 3},
    [GP_BATCH] = {"batch", "LIST", 1, 1, 1, 0},
};

/** Is the first file a MODEL, or DATA?  Nothing but a process made of DATA needs the name of y. */
static int is_model(const cli *c, gp_subcommand what)
{
    return c->n_arguments == subcommands[what].model_arguments && !c->set.gp_job.y;
}

/* ---- options --------------------------------------------------------------------------------- */

static int check_arguments(const cli *c, gp_subcommand what)
{
    const subcommand *s = &subcommands[what];
    const int given = c->n_arguments - 1;
    if (given >= s->least && given <= s->most) {
        return 0;
    }
    return cli_fail(c, "E_OPTION", s->name, "fourge gp --help",
                    "fourge gp %s takes %s, got %d argument%s", s->name, s->arguments, given,
                    given == 1 ? "" : "s");
}

/** Numbers of a fit mean nothing without one, and those of a process nothing beside a model that
 *  has its own. */
static int check_given(const cli *c, gp_subcommand what)
{
    const settings *s = &c->set;
    const int fits = what == GP_FIT || s->gp_job.batch_fit;
    const int model = is_model(c, what);
    const int new_mean = what == GP_PREDICT || what == GP_SAMPLE; /* --mean column:M is of NEW */
    if (model && s->dry_run) {
        return cli_fail(c, "E_OPTION", "--dry-run", "DATA with --y and --kernel makes a process",
                        "--dry-run means nothing to a MODEL, which is there");
    }
    for (const option_spec *o = option_table; o->name; o++) {
        const int of_fit = strcmp(o->group, "Fit") == 0,
                  of_process = strcmp(o->group, "Process") == 0;
        char where[40];
        if (!(o->commands & CMD_GP) || !c->given[o - option_table] ||
            strcmp(o->name, "save") == 0) {
            continue;
        }
        snprintf(where, sizeof where, "--%s", o->name);
        if (of_fit && !fits) {
            return cli_fail(c, "E_OPTION", where, "add --fit, or leave it out",
                            "%s means nothing where nothing is fitted", where);
        }
        if (of_process && model && !(new_mean && o->field == offsetof(settings, gp.mean))) {
            return cli_fail(c, "E_OPTION", where, "DATA with --y and --kernel makes a process",
                            "%s means nothing to a MODEL, which has its own", where);
        }
    }
    return 0;
}

static int check_needed(const cli *c, gp_subcommand what)
{
    const settings *s = &c->set;
    const int either = c->n_arguments == subcommands[what].model_arguments; /* MODEL|DATA */
    const int from_data = either && (s->gp_job.y || s->gp_job.kernel || s->gp_job.batch_fit);
    const int data = subcommands[what].stands_on_data || from_data;
    const struct {
        const char *name, *how;
        int missing;
    } needed[] = {
        {"--y", "--y COLUMN", data && !s->gp_job.y},
        {"--kernel", "--kernel EXPR, as in \"1.7*rbf(l=0.2) + noise(0.04)\"",
         data && !s->gp_job.kernel},
        {"--kernel", "a MODEL before NEW, DATA with --y, or --kernel EXPR",
         what == GP_SAMPLE && c->n_arguments == 2 && !s->gp_job.kernel},
        {"--samples", "--samples N", what == GP_SAMPLE && s->gp_job.samples == 0},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (needed[i].missing) {
            return cli_fail(c, "E_OPTION", needed[i].name, "fourge gp --help",
                            "fourge gp %s needs %s", subcommands[what].name, needed[i].how);
        }
    }
    return 0;
}

static int check_kept(const cli *c)
{
    if (c->set.checkpoint && c->set.repeat > 0) {
        return cli_fail(c, "E_OPTION", "--checkpoint", "",
                        "--checkpoint does not go with --repeat");
    }
    if (c->set.checkpoint && strcmp(c->arguments[1], "-") == 0) {
        return cli_fail(c, "E_OPTION", "--checkpoint", "write the data to a file first",
                        "--checkpoint needs data that can be read again, not a pipe");
    }
    return 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

static int has_parameter(const frg_gp *gp, const char *start)
{
    frg_gp_parameter p;
    for (int i = 0; i < frg_gp_parameter_count(gp); i++) {
        if (frg_gp_get_parameter(gp, i, &p) == FRG_OK &&
            strncmp(p.name, start, strlen(start)) == 0) {
            return 1;
        }
    }
    return 0;
}

static frg_status make(cli *c, gp_job *job)
{
    const gp_data *d = &job->data;
    return frg_gp_create(&job->gp, c->ctx, frg_matrix(d->x, FRG_F64, d->n, d->d, d->d),
                         frg_matrix(d->y, FRG_F64, d->n, d->q, d->q), job->kernel, &job->opts);
}

static int add_noise(const cli *c, gp_job *job)
{
    const size_t length = strlen(job->kernel) + sizeof " + noise";
    char *with = malloc(length);
    if (!with) {
        return cli_fail_memory(c);
    }
    snprintf(with, length, "%s + noise", job->kernel);
    free(job->kernel);
    job->kernel = with;
    return 0;
}

/** An expression without the words has no noise; one with them may have them as the name of a
 *  column. */
int gp_job_create(cli *c, gp_job *job)
{
    const int fits = job->what == GP_FIT || c->set.gp_job.batch_fit;
    const int learns = fits && !job->data.noise;
    const int words = strstr(job->kernel, "noise") || strstr(job->kernel, "white");
    int code = learns && !words ? add_noise(c, job) : 0;
    if (code) {
        return code;
    }
    frg_gp_destroy(job->gp);
    job->gp = NULL;
    frg_status status = make(c, job);
    if (status >= 0 && learns && !has_parameter(job->gp, "noise") &&
        !has_parameter(job->gp, "white")) {
        code = add_noise(c, job);
        if (code) {
            return code;
        }
        frg_gp_destroy(job->gp);
        job->gp = NULL;
        frg_warnings_clear(c->ctx);
        status = make(c, job);
    }
    return status < 0 ? cli_fail_library(c, status) : 0;
}

/** M of --mean column:M, or NULL. */
static const char *mean_column(const cli *c)
{
    const char *const mean = c->set.gp.mean;
    return mean && strncmp(mean, "column:", 7) == 0 ? mean + 7 : NULL;
}

static int read_data(cli *c, gp_job *job)
{
    const settings *s = &c->set;
    const double start = now_seconds();
    int code = gp_data_read(c, &job->data, job->path, s->gp_job.x, s->gp_job.y);
    if (!code && s->gp_job.noise_column) {
        code = gp_data_noise(c, &job->data, s->gp_job.noise_column);
    }
    if (!code && s->gp_job.noise_groups) {
        code = gp_data_groups(c, &job->data, s->gp_job.noise_groups);
    }
    if (!code && mean_column(c)) {
        code = gp_data_mean(c, &job->data, mean_column(c));
        job->opts.mean = "values";
        job->opts.mean_values = job->data.mean;
    }
    job->opts.column_names = (const char *const *)job->data.x_names;
    job->opts.noise_variances = job->data.noise;
    job->opts.noise_groups = job->data.groups;
    job->times.read = now_seconds() - start;
    return code;
}

static int load_model(cli *c, gp_job *job)
{
    const double start = now_seconds();
    frg_gp_destroy(job->gp);
    job->gp = NULL;
    const frg_status status = frg_gp_load(&job->gp, c->ctx, job->path);
    job->times.read = now_seconds() - start;
    return status != FRG_OK ? cli_fail_read(c, status) : 0;
}

/* ---- computing ------------------------------------------------------------------------------- */

/** Vectors of the job, sized once the process is there. */
static int need(const cli *c, double **p, int64_t rows, int64_t columns)
{
    free(*p);
    *p = malloc((size_t)rows * (size_t)columns * sizeof **p + 1);
    return *p ? 0 : cli_fail_memory(c);
}

static frg_status value_of(gp_job *job)
{
    return job->gradient ? frg_gp_eval_gradient(job->gp, job->gradient, NULL, NULL, &job->value)
                         : frg_gp_eval(job->gp, &job->value);
}

static frg_status put_state(const void *solver, frg_checkpoint *state)
{
    return frg_gp_fit_save(solver, state);
}

/** A frg_gp_saver, user a keeper. */
static frg_status save_state(void *user, const frg_gp *gp, int stopped)
{
    return keeper_save_solver(user, gp, put_state, stopped);
}

static frg_status fit_of(gp_job *job)
{
    const frg_status status = frg_gp_fit(job->gp, &job->fit, &job->result);
    job->value = job->result.value;
    return status;
}

static int was_stopped(frg_status status)
{
    return status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT;
}

/** The gradient where the fit ended as well; NaN of one that was stopped. */
static frg_status fit_with_gradient(gp_job *job)
{
    const frg_status status = fit_of(job);
    for (int i = 0; i < frg_gp_parameter_count(job->gp); i++) {
        job->gradient[i] = (double)NAN;
    }
    if (status < 0 || was_stopped(status)) {
        return status;
    }
    const frg_status after = value_of(job);
    return after != FRG_OK ? after : status;
}

/** The fit with --checkpoint; *code: where it ends here. */
static frg_status fit_kept(cli *c, gp_job *job, int *code)
{
    keeper k;
    frg_status status = FRG_OK;
    *code = keeper_open(&k, c, "gp", 1, 0);
    if (!*code) {
        frg_gp_fit_keep(job->gp, save_state, &k);
        if (c->resumed) {
            status = frg_gp_fit_resume(job->gp, c->resumed);
        }
        status = status < 0 ? status : fit_with_gradient(job);
        if (was_stopped(status) && k.saved > 0) {
            progress_clear(&c->progress);
            *code = keeper_stopped(c, status);
        }
        frg_gp_fit_keep(job->gp, NULL, NULL);
    }
    keeper_close(&k);
    return status;
}

static frg_status loo_of(gp_job *job)
{
    frg_status status = frg_gp_eval(job->gp, &job->value);
    if (status == FRG_OK) {
        status = frg_gp_eval_loo(job->gp, job->loo.mean, job->loo.variance, job->gradient,
                                 &job->loo.facts);
    }
    if (status == FRG_OK) {
        status = frg_gp_eval_loo_latent(job->gp, job->loo.latent);
    }
    return status;
}

static int take_memory(const cli *c, gp_job *job)
{
    const frg_gp_report r = frg_gp_get(job->gp);
    int code = 0;
    if (!c->set.gp_job.no_gradient) {
        code = need(c, &job->gradient, frg_gp_parameter_count(job->gp), 1);
    }
    if (!code && job->what == GP_LOO) {
        code = need(c, &job->loo.mean, r.n, r.q);
        code = code ? code : need(c, &job->loo.variance, r.n, 1);
        code = code ? code : need(c, &job->loo.latent, r.n, 1);
    }
    return code;
}

int gp_job_run(cli *c, gp_job *job)
{
    const int repeats = c->set.repeat;
    job->times.totals = calloc((size_t)repeats + 2, sizeof *job->times.totals);
    int code = job->times.totals ? 0 : cli_fail_memory(c);
    for (int i = 0; !code && i <= repeats && job->status == FRG_OK;
         i++) { /* 0: warm-up of repeats */
        if (i > 0) {
            frg_warnings_clear(c->ctx);
            c->progress.keep_trace = 0;
        }
        const double start = now_seconds();
        code = job->from_model ? load_model(c, job) : gp_job_create(c, job);
        code = code ? code : take_memory(c, job);
        if (code) {
            break;
        }
        job->status = c->set.checkpoint     ? fit_kept(c, job, &code)
                      : job->what == GP_FIT ? fit_with_gradient(job)
                      : job->what == GP_LOO ? loo_of(job)
                                            : value_of(job);
        progress_clear(&c->progress);
        if (code) {
            break;
        }
        if (job->status < 0 || (job->status > 0 && job->what != GP_FIT)) {
            return cli_fail_library(c, job->status);
        }
        job->times.count = repeats && i > 0 ? i : 1;
        job->times.totals[repeats && i > 0 ? i - 1 : 0] = now_seconds() - start;
    }
    double *sorted = malloc(((size_t)job->times.count + 1) * sizeof *sorted);
    if (sorted && job->times.count > 0) {
        memcpy(sorted, job->times.totals, (size_t)job->times.count * sizeof *sorted);
        job->times.total = median_of(sorted, job->times.count);
    }
    free(sorted);
    return code;
}

/* ---- predictions and draws ------------------------------------------------------------------- */

static int read_new(cli *c, gp_job *job, const char *path)
{
    const frg_gp_report r = frg_gp_get(job->gp);
    if (r.given_mean && !mean_column(c)) {
        return cli_fail(c, "E_OPTION", "--mean",
                        "name its column in the new points: --mean column:M",
                        "the model has a mean that a column gave, and %s needs it too", path);
    }
    const int code = gp_data_read_columns(c, &job->fresh, path, r.column_names, (int)r.d);
    return code || !r.given_mean ? code : gp_data_mean(c, &job->fresh, mean_column(c));
}

static frg_array new_points(const gp_job *job)
{
    const gp_data *d = &job->fresh;
    return frg_matrix(d->x, FRG_F64, d->n, d->d, d->d);
}

static int draw(cli *c, gp_job *job, int prior)
{
    const int64_t m = job->fresh.n, q = frg_gp_get(job->gp).q;
    int code = need(c, &job->predicted.draws, job->predicted.samples, m * q);
    if (code) {
        return code;
    }
    frg_array out = frg_matrix(job->predicted.draws, FRG_F64, job->predicted.samples, m, m * q);
    out.stride[1] = q;
    if (q > 1) {
        out.ndim = 3;
        out.shape[2] = q;
        out.stride[2] = 1;
    }
    const frg_status status = frg_gp_sample(job->gp, new_points(job), job->predicted.samples, prior,
                                            c->set.gp_job.observed, out);
    for (int64_t i = 0; job->fresh.mean && i < job->predicted.samples * m * q; i++) {
        job->predicted.draws[i] += job->fresh.mean[i / q % m];
    }
    return status != FRG_OK ? cli_fail_library(c, status) : 0;
}

static int predict(cli *c, gp_job *job)
{
    const int64_t m = job->fresh.n, q = frg_gp_get(job->gp).q;
    double *square = NULL;
    int code = need(c, &job->predicted.mean, m, q);
    code = code ? code : need(c, &job->predicted.variance, m, 1);
    if (!code && c->set.gp_job.covariance) {
        code = need(c, &square, m, m);
    }
    if (code) {
        return code;
    }
    frg_array mean = frg_matrix(job->predicted.mean, FRG_F64, m, q, q);
    frg_array variance = frg_vector(job->predicted.variance, FRG_F64, m);
    frg_array covariance = frg_matrix(square, FRG_F64, m, m, m);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.observed = c->set.gp_job.observed;
    o.variance_floor = c->set.gp_job.variance_floor;
    o.mean_values = job->fresh.mean;
    o.mean = &mean;
    o.variance = &variance;
    o.covariance = square ? &covariance : NULL;
    frg_status status = frg_gp_predict(job->gp, new_points(job), &o);
    progress_clear(&c->progress);
    if (status == FRG_OK && square) {
        status = frg_npy_write(c->ctx, c->set.gp_job.covariance, covariance);
    }
    free(square);
    code = status != FRG_OK ? cli_fail_library(c, status) : 0;
    return !code && job->predicted.samples > 0 ? draw(c, job, 0) : code;
}

/** The model of a file, or one made of DATA at the numbers of the expression, or fitted to it. */
static int find_model(cli *c, gp_job *job)
{
    if (!c->set.gp_job.y) {
        return load_model(c, job);
    }
    int code = read_data(c, job);
    code = code ? code : gp_job_create(c, job);
    if (!code && c->set.gp_job.batch_fit) {
        job->status = fit_of(job);
        progress_clear(&c->progress);
        code = job->status < 0 ? cli_fail_library(c, job->status) : 0;
    }
    return code;
}

static int run_predict(cli *c, gp_job *job)
{
    int code = find_model(c, job);
    code = code ? code : read_new(c, job, c->arguments[2]);
    const double start = now_seconds();
    code = code ? code : predict(c, job);
    job->times.total = now_seconds() - start;
    return code;
}

/** A process on the new points themselves, for its prior alone: y does not matter. */
static int create_prior(cli *c, gp_job *job, const char *path)
{
    int code = gp_data_read(c, &job->fresh, path, c->set.gp_job.x, NULL);
    if (code) {
        return code;
    }
    gp_data *f = &job->fresh;
    double *zeros = calloc((size_t)f->n + 1, sizeof *zeros);
    if (!zeros) {
        return cli_fail_memory(c);
    }
    job->opts.column_names = (const char *const *)f->x_names;
    const frg_status status =
        frg_gp_create(&job->gp, c->ctx, new_points(job), frg_vector(zeros, FRG_F64, f->n),
                      job->kernel, &job->opts);
    free(zeros);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

static int run_sample(cli *c, gp_job *job)
{
    const int prior = c->n_arguments == 2;
    int code = prior ? create_prior(c, job, c->arguments[1]) : find_model(c, job);
    if (!code && !prior) {
        code = read_new(c, job, c->arguments[2]);
    }
    const double start = now_seconds();
    code = code ? code : draw(c, job, prior || c->set.gp_job.prior_draws);
    job->times.total = now_seconds() - start;
    return code;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void result_json(frg_json *j, const cli *c, const void *job)
{
    gp_json_build(j, c, job);
}

static void result_report(frg_report *r, const cli *c, const void *job)
{
    gp_report_build(r, c, job, 0);
}

static int show(cli *c, const gp_job *job)
{
    static const char *const titles[GP_SUBCOMMANDS] = {
        [GP_VALUE] = "Likelihood of a Gaussian process",
        [GP_FIT] = "Fit of a Gaussian process",
        [GP_PREDICT] = "Predictions",
        [GP_LOO] = "Leave-one-out predictions",
        [GP_SAMPLE] = "Draws",
        [GP_BATCH] = "Many Gaussian processes",
    };
    return write_result(c, titles[job->what], result_json, result_report, job);
}

static void page_of(frg_report *r, const cli *c, const void *job)
{
    gp_report_build(r, c, job, 1);
}

static int save_model(cli *c, const gp_job *job)
{
    const frg_status status = frg_gp_save(job->gp, c->set.gp_job.save_model);
    return status != FRG_OK ? cli_fail_library(c, status) : 0;
}

/** --dry-run: the memory, and the time of one value and gradient at 50 GFLOP/s. */
static int show_size(cli *c, const gp_data *d, size_t bytes)
{
    char data[64], points[32];
    snprintf(data, sizeof data, "%s points, %d inputs", grouped(d->n, points), d->d);
    const size_line lines[] = {
        {.key = "n", .value = (double)d->n, .label = "Data", .text = data},
        {.key = "d", .value = d->d},
        {.key = "plan_bytes", .kind = SIZE_BYTES, .value = (double)bytes, .label = "Memory"},
        {.key = "estimated_seconds",
         .kind = SIZE_SECONDS,
         .value = pow((double)d->n, 3) / 5e10,
         .label = "One gradient, about"},
    };
    return show_sizes(c, "fourge.gp.estimate/1", lines, sizeof lines / sizeof *lines);
}

/** Of the process that a job would make: on its data or, for draws of a prior, on the new
 *  points. */
static int estimate(cli *c, gp_job *job)
{
    const int prior = job->what == GP_SAMPLE && c->n_arguments == 2;
    const gp_data *const d = prior ? &job->fresh : &job->data;
    const int code = prior ? gp_data_read(c, &job->fresh, c->arguments[1], c->set.gp_job.x, NULL)
                           : read_data(c, job);
    if (code) {
        return code;
    }
    size_t bytes;
    const frg_status status =
        frg_gp_estimate(c->ctx, d->n, d->d, prior ? 1 : d->q, job->kernel, &job->opts, &bytes);
    return status < 0 ? cli_fail_library(c, status) : show_size(c, d, bytes);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int compute(cli *c, gp_job *job)
{
    if (c->set.dry_run) {
        return estimate(c, job);
    }
    switch (job->what) {
    case GP_PREDICT:
        return run_predict(c, job);
    case GP_SAMPLE:
        return run_sample(c, job);
    case GP_BATCH:
        return gp_batch(c, job);
    default:
        break;
    }
    int code = job->from_model ? 0 : read_data(c, job);
    code = code ? code : gp_job_run(c, job);
    return !code && job->from_model ? gp_data_of_model(c, &job->data, job->gp) : code;
}

static int run(cli *c, gp_job *job)
{
    int code = compute(c, job);
    if (code || c->set.dry_run || job->what == GP_BATCH) {
        return code;
    }
    if (c->set.gp_job.save_model) {
        code = save_model(c, job);
    }
    if (!code && c->set.report) {
        code = save_page(c, "fourge: Gaussian process", page_of, job);
    }
    if (code) {
        return code;
    }
    cli_show_warnings(c);
    code = show(c, job);
    return code ? code : cli_ended(job->status);
}

void gp_job_release(gp_job *job)
{
    frg_gp_destroy(job->gp);
    gp_data_release(&job->data);
    gp_data_release(&job->fresh);
    double *const vectors[] = {job->gradient,        job->loo.mean,       job->loo.variance,
                               job->loo.latent,      job->predicted.mean, job->predicted.variance,
                               job->predicted.draws, job->times.totals};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        free(vectors[i]);
    }
    free(job->kernel);
    *job = (gp_job){0};
}

int command_gp(cli *c)
{
    const gp_subcommand what = (gp_subcommand)c->job;
    int code = check_arguments(c, what);
    code = code ? code : check_needed(c, what);
    code = code ? code : check_given(c, what);
    code = code ? code : cli_table_options(c);
    code = code ? code : check_kept(c);
    code = code ? code : cli_open(c);
    code = code ? code : checkpoint_begin(c);
    if (code) {
        return code;
    }
    gp_job job = {.what = what,
                  .from_model = is_model(c, what),
                  .path = c->arguments[1],
                  .opts = c->set.gp,
                  .fit = c->set.gp_fit,
                  .predicted.samples = c->set.gp_job.samples,
                  .kernel = strdup(c->set.gp_job.kernel ? c->set.gp_job.kernel : "")};
    code = job.kernel ? run(c, &job) : cli_fail_memory(c);
    gp_job_release(&job);
    return code;
}
