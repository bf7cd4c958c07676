/* tour_gp.c - the tour's job on Gaussian processes: carbon dioxide at Mauna Loa, fitted, explained and forecast.
 *
 * The kernel is the classical one of Rasmussen and Williams (2006, 5.4.3): a slow rise, a season that changes its
 * shape slowly, middling irregularities, noise.  The page shows the forecast of the ten years after the data.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp_job.h"
#include "tour.h"

enum { MONTHS = 17 * 12 };
static const double FIRST = 1995, HALF_WIDTH = 1.959963984540054;

static const char kernel[] = "4000*rbf(l=60) + 6*rbf(l=90)*periodic(l=1.3, p=1!) + "
                             "0.4*matern32(l=1) + noise(0.05)";

typedef struct {
    gp_job job;
    char path[PATH_MAX];
    tour_command command;
} part;

static void release(void *state)
{
    part *p = state;
    if (p) {
        gp_job_release(&p->job);
        tour_command_release(&p->command);
        free(p);
    }
}

static int fit(cli *c, part *p)
{
    int code = tour_find_data(c, "co2.csv", p->path, sizeof p->path);
    if (code) {
        return code;
    }
    static const char *const words[] = {"gp",   "fit",   "data/co2.csv", "--y",      "co2", "--x",
                                        "time", "--nan", "mask",         "--kernel", kernel};
    code = tour_command_read(c, words, sizeof words / sizeof *words, &p->command);
    if (code) {
        return code;
    }
    const settings *const s = &p->command.line->set;
    gp_job *job = &p->job;
    *job = (gp_job){.what = GP_FIT,
                    .path = p->path,
                    .shown = p->command.line->arguments[1],
                    .line = p->command.line,
                    .opts = s->gp,
                    .fit = s->gp_fit,
                    .kernel = strdup(s->kernel)};
    const double start = now_seconds();
    code = job->kernel ? gp_data_read(c, &job->data, p->path, s->x, s->y) : cli_fail_memory(c);
    job->opts.column_names = (const char *const *)job->data.x_names;
    job->read = now_seconds() - start;
    return code ? code : gp_job_run(c, job);
}

static int run(cli *c, void **state)
{
    part *p = calloc(1, sizeof *p);
    const int code = p ? fit(c, p) : cli_fail_memory(c);
    if (code) {
        release(p);
        p = NULL;
    }
    *state = p;
    return code;
}

/** Every month from FIRST on, seven years within the data and ten beyond them. */
static void forecast(frg_report *r, const part *p)
{
    const gp_data *d = &p->job.data;
    double time[MONTHS], mean[MONTHS] = {0}, variance[MONTHS] = {0}, low[MONTHS], high[MONTHS];
    frg_array m = frg_vector(mean, FRG_F64, MONTHS), v = frg_vector(variance, FRG_F64, MONTHS);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.mean = &m;
    o.variance = &v;
    o.observed = 1;
    for (int i = 0; i < MONTHS; i++) {
        time[i] = FIRST + (i + 0.5) / 12;
    }
    if (frg_gp_predict(p->job.gp, frg_matrix(time, FRG_F64, MONTHS, 1, 1), &o) != FRG_OK) {
        return;
    }
    for (int i = 0; i < MONTHS; i++) {
        low[i] = mean[i] - HALF_WIDTH * sqrt(variance[i]);
        high[i] = mean[i] + HALF_WIDTH * sqrt(variance[i]);
    }
    int64_t from = 0;
    while (from < d->n && d->x[from] < FIRST) {
        from++;
    }
    const frg_series series[] = {
        {.name = "95% band", .n = MONTHS, .x = time, .low = low, .high = high, .style = FRG_BAND},
        {.name = "forecast", .n = MONTHS, .x = time, .y = mean, .style = FRG_LINE},
        {.name = "measured",
         .n = d->n - from,
         .x = d->x + from,
         .y = d->y + from,
         .style = FRG_POINTS},
    };
    const frg_plot plot = {.caption = "Monthly means, and the forecast of ten years after the last",
                           .x_label = "year",
                           .y_label = "CO2, parts per million",
                           .reference = (double)NAN,
                           .n_series = 3,
                           .series = series};
    frg_report_plot(r, &plot);
}

static void report(frg_report *r, cli *c, void *state, int full)
{
    part *p = state;
    frg_report_heading(r, "Carbon dioxide at Mauna Loa: a Gaussian process with a kernel to read");
    frg_report_paragraph(
        r,
        "How does the carbon dioxide in the air rise, and what follows?  Monthly means from 1958 "
        "to 2001 (Keeling and Whorf 2004), as a sum of four processes: a slow rise (rbf), a season "
        "of a year whose shape may change (rbf times periodic), irregularities of months to years "
        "(matern32), and noise.");
    tour_command_fact(r, &p->command);
    gp_report_build(r, c, &p->job, full);
    if (full) {
        frg_report_heading(r, "Forecast");
        forecast(r, p);
    }
    frg_report_paragraph(
        r,
        "Read it so: scale and rbf.l are the variance and the years over which the rise bends, "
        "rbf2.l the years over which the season keeps its shape, matern32.l the years that an "
        "irregularity lasts; the noise has a standard deviation of about 0.2 parts per million.");
}

static void json(frg_json *j, const cli *c, const void *state)
{
    const part *p = state;
    gp_json_build(j, c, &p->job);
}

static int exit_code(const void *state)
{
    const part *p = state;
    return frg_status_exit_code(p->job.status);
}

const tour_part tour_gp = {
    .run = run, .report = report, .json = json, .exit_code = exit_code, .release = release};
