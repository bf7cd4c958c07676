/* tour_gp.c - the tour's job on Gaussian processes: carbon dioxide at Mauna Loa, fitted,
 * explained and forecast.
 *
 * The kernel is the classical one of Rasmussen and Williams (2006, 5.4.3): a slow rise, a season
 * that changes its shape slowly, middling irregularities, noise.  The page shows the forecast of
 * the ten years after the data.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp/gp_job.h"
#include "tour.h"

enum { MONTHS = 17 * 12, AHEAD = 10 * 12 };
static const double FIRST = 1995;

static const char kernel[] = "4000*rbf(l=60) + 6*rbf(l=90)*periodic(l=1.3, p=1!) + "
                             "0.4*matern32(l=1) + noise(0.05)";

/** The same fit without the last ten years, beside what came. */
typedef struct {
    int64_t months, inside; /* that came; of them in the 95 % band */
    double from, rmse;
} hindsight;

typedef struct {
    gp_job job;
    char path[PATH_MAX];
    tour_command command;
    hindsight past;
} gp_tour;

static void release(void *state)
{
    gp_tour *p = state;
    if (p) {
        gp_job_release(&p->job);
        tour_command_release(&p->command);
        free(p);
    }
}

static int fit(cli *c, gp_tour *p)
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
                    .kernel = strdup(s->gp_job.kernel)};
    const double start = now_seconds();
    code = job->kernel ? gp_data_read(c, &job->data, p->path, s->gp_job.x, s->gp_job.y)
                       : cli_fail_memory(c);
    job->opts.column_names = (const char *const *)job->data.x_names;
    job->times.read = now_seconds() - start;
    return code ? code : gp_job_run(c, job);
}

/** Counts the months in the band and their errors. */
static void count_months(hindsight *h, const double *y, const double *mean, const double *variance,
                         int64_t n)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(y[i])) {
            const double gap = y[i] - mean[i];
            square += gap * gap;
            h->inside += fabs(gap) <= GP_HALF_WIDTH * sqrt(variance[i]);
            h->months++;
        }
    }
    h->rmse = sqrt(square / (double)h->months);
}

/** The first `n` months fitted as all were; mean and variance of each of the others. */
static frg_status predict_past(cli *c, gp_tour *p, int64_t n, double *mean, double *variance)
{
    const gp_data *const d = &p->job.data;
    const int64_t left = d->n - n;
    frg_gp *gp = NULL;
    frg_gp_fit_result result;
    frg_array m = frg_vector(mean, FRG_F64, left), v = frg_vector(variance, FRG_F64, left);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.mean = &m;
    o.variance = &v;
    o.observed = 1;
    frg_status status = frg_gp_create(&gp, c->ctx, frg_matrix(d->x, FRG_F64, n, 1, 1),
                                      frg_vector(d->y, FRG_F64, n), p->job.kernel, &p->job.opts);
    status = status == FRG_OK ? frg_gp_fit(gp, &p->job.fit, &result) : status;
    status = status == FRG_OK ? frg_gp_predict(gp, frg_matrix(d->x + n, FRG_F64, left, 1, 1), &o)
                              : status;
    if (status == FRG_OK) {
        count_months(&p->past, d->y + n, mean, variance, left);
        p->past.from = d->x[n];
    }
    frg_gp_destroy(gp);
    return status;
}

static int check_forecast(cli *c, gp_tour *p)
{
    enum { LEAST = 240 }; /* twenty years to learn from */
    const int64_t n = p->job.data.n - AHEAD;
    if (p->job.status != FRG_OK || n < LEAST) {
        return 0;
    }
    double *const mean = calloc(2 * AHEAD, sizeof *mean);
    if (!mean) {
        return cli_fail_memory(c);
    }
    const frg_status status = predict_past(c, p, n, mean, mean + AHEAD);
    free(mean);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

static int run(cli *c, void **state)
{
    gp_tour *p = calloc(1, sizeof *p);
    int code = p ? fit(c, p) : cli_fail_memory(c);
    code = code ? code : check_forecast(c, p);
    if (code) {
        release(p);
        p = NULL;
    }
    *state = p;
    return code;
}

/** Every month from FIRST on, seven years within the data and ten beyond them. */
typedef struct {
    gp_band band;
    double data_end;
} months;

static int forecast(const gp_tour *p, months *f)
{
    const gp_data *const d = &p->job.data;
    f->band.n = MONTHS;
    for (int i = 0; i < MONTHS; i++) {
        f->band.x[i] = FIRST + (i + 0.5) / 12;
    }
    f->data_end = d->x[0];
    for (int64_t i = 0; i < d->n; i++) {
        f->data_end = fmax(f->data_end, d->x[i]);
    }
    return gp_band_predict(&p->job, &f->band);
}

static void draw(frg_report *r, const gp_tour *p, const months *f)
{
    const gp_data *const d = &p->job.data;
    int64_t from = 0;
    while (from < d->n && d->x[from] < FIRST) {
        from++;
    }
    char caption[96];
    snprintf(caption, sizeof caption,
             "Monthly means until the end of %d, and the forecast until the end of %d",
             (int)floor(f->data_end), (int)floor(f->band.x[MONTHS - 1]));
    const frg_plot words = {
        .caption = caption, .x_label = "year", .y_label = "CO2, parts per million"};
    gp_band_plot(r, &p->job, &f->band, from, &words, "forecast", "measured");
}

/** The value of a parameter of the process, NaN where it has none of that name. */
static double parameter(const gp_tour *p, const char *name)
{
    for (int i = 0; i < frg_gp_parameter_count(p->job.gp); i++) {
        frg_gp_parameter k;
        char label[128];
        if (frg_gp_get_parameter(p->job.gp, i, &k) == FRG_OK) {
            gp_label(&k, label, sizeof label);
            if (strcmp(label, name) == 0) {
                return k.value;
            }
        }
    }
    return (double)NAN;
}

/** The last month of the forecast in words, and what such a forecast was worth before. */
static void describe_forecast(frg_report *r, const gp_tour *p, const months *f)
{
    char text[640];
    const int last = MONTHS - 1;
    int n = snprintf(text, sizeof text,
                     "Fitted to the months until the end of %d, the process says %.1f parts per "
                     "million for the end of %d, and with 95 %% between %.1f and %.1f.",
                     (int)floor(f->data_end), f->band.mean[last], (int)floor(f->band.x[last]),
                     f->band.low[last], f->band.high[last]);
    if (p->past.months > 0) {
        const double share = 100 * (double)p->past.inside / (double)p->past.months;
        snprintf(text + n, sizeof text - (size_t)n,
                 "  The same fit without the last ten years was off by %.1f parts per million "
                 "from %d on (root of the mean square); its band held %.0f %% of these months%s",
                 p->past.rmse, (int)floor(p->past.from), share,
                 share < 90 ? ": the band takes the fitted kernel for certain, and is too narrow."
                            : ".");
    }
    frg_report_paragraph(r, text);
}

static void picture(frg_report *r, const cli *c, const void *state, int full)
{
    const gp_tour *const p = state;
    months f;
    (void)c;
    (void)full;
    frg_report_heading(r, "Carbon dioxide: what was, and what follows");
    if (forecast(p, &f)) {
        describe_forecast(r, p, &f);
        draw(r, p, &f);
    }
}

static void report(frg_report *r, cli *c, void *state, int full)
{
    gp_tour *p = state;
    char text[400];
    frg_report_heading(r, "Carbon dioxide at Mauna Loa: a Gaussian process with a kernel to read");
    frg_report_paragraph(
        r,
        "How does the carbon dioxide in the air rise, and what follows?  Monthly means from 1958 "
        "to 2001 (Keeling and Whorf 2004), as a sum of four processes: a slow rise (rbf), a "
        "season of a year whose shape may change (rbf times periodic), irregularities of months "
        "to years (matern32), and noise.");
    tour_command_fact(r, &p->command);
    gp_report_build(r, c, &p->job, full);
    snprintf(text, sizeof text,
             "Read it so: the rise bends over some %.0f years (rbf.l), the season keeps its shape "
             "for some %.0f (rbf2.l), an irregularity lasts some %.1f (matern32.l), and the noise "
             "has a standard deviation of %.2f parts per million.",
             parameter(p, "rbf.l"), parameter(p, "rbf2.l"), parameter(p, "matern32.l"),
             sqrt(parameter(p, "noise")));
    frg_report_paragraph(r, text);
}

static void json(frg_json *j, const cli *c, const void *state)
{
    const gp_tour *p = state;
    gp_json_build(j, c, &p->job);
}

static int exit_code(const void *state)
{
    const gp_tour *p = state;
    return frg_status_exit_code(p->job.status);
}

const tour_part tour_gp = {.run = run,
                           .picture = picture,
                           .report = report,
                           .json = json,
                           .exit_code = exit_code,
                           .release = release};
