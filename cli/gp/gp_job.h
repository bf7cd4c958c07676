/* gp_job.h - one job of `fourge gp`: data, process, result, times; shared by its subcommands and
 * the tour. */
#ifndef FOURGE_CLI_GP_JOB_H
#define FOURGE_CLI_GP_JOB_H

#include "cli.h"
#include "fourge/gp.h"

typedef enum {
    GP_VALUE,
    GP_FIT,
    GP_PREDICT,
    GP_LOO,
    GP_SAMPLE,
    GP_BATCH,
    GP_SUBCOMMANDS
} gp_subcommand;

/** Columns of a table as arrays. */
typedef struct {
    const char *path;
    frg_table *table;
    int64_t n;
    int d, q;
    char **x_names, **y_names; /* d, q */
    double *x, *y;             /* n x d and n x q, row-major */
    double *noise;             /* n, or NULL */
    double *mean;
    int32_t *groups;
} gp_data;

/** Each point predicted from all others. */
typedef struct {
    frg_gp_loo facts;
    double *mean, *variance, *latent; /* n x q, n, n */
} gp_left_out;

/** At the new points. */
typedef struct {
    double *mean, *variance; /* m x q, m */
    double *draws;           /* samples x m x q */
    int64_t samples;
} gp_predicted;

/** Seconds: of reading, of all, of each repeat. */
typedef struct {
    double read, total;
    double *totals;
    int count;
} gp_times;

typedef struct {
    gp_subcommand what;
    int from_model;      /* the process is that of a file */
    const char *path;    /* of the data, the model or the list */
    const char *shown;   /* as the report names it; NULL: path */
    const cli *line;     /* the command that the page shows; NULL: the program's own */
    gp_data data, fresh; /* what the process stands on; new points */
    frg_gp_opts opts;
    frg_gp_fit_opts fit;
    char *kernel; /* the expression, with the noise that a fit adds */
    frg_gp *gp;
    frg_status status;
    frg_gp_value value;
    double *gradient; /* parameter_count, NULL: not asked for */
    frg_gp_fit_result result;
    gp_left_out loo;
    gp_predicted predicted;
    gp_times times;
} gp_job;

/** Reads the columns that --x and --y name (NULL: all others; no y).  0 or the exit code. */
int gp_data_read(cli *c, gp_data *d, const char *path, const char *x, const char *y);
/** The columns `names` of a table for a process that knows them. */
int gp_data_read_columns(cli *c, gp_data *d, const char *path, const char *const *names, int count);
/** The points of a process, with names for them: what the tables and plots of a model stand on. */
int gp_data_of_model(const cli *c, gp_data *d, const frg_gp *gp);
int gp_data_noise(cli *c, gp_data *d, const char *column);
int gp_data_mean(cli *c, gp_data *d, const char *column);
int gp_data_groups(cli *c, gp_data *d, const char *column);
void gp_data_release(gp_data *d);

/** Makes the process of job->data; a fit without noise gets some. */
int gp_job_create(cli *c, gp_job *job);
int gp_job_run(cli *c, gp_job *job);
void gp_job_release(gp_job *job);

#define GP_HALF_WIDTH 1.959963984540054 /* of a 95 % band: 97.5 % of a normal */
enum { MOST_BAND = 961 };
/** An observation at n places of one input: mean and 95 % band. */
typedef struct {
    int n;
    double x[MOST_BAND], mean[MOST_BAND], low[MOST_BAND], high[MOST_BAND];
} gp_band;
/** Fills mean, low and high from n and x; 0 where the process does not tell. */
int gp_band_predict(const gp_job *job, gp_band *b);
/** Draws it with the points of the data from row `from` on. */
void gp_band_plot(frg_report *r, const gp_job *job, const gp_band *b, int64_t from,
                  const frg_plot *words, const char *line, const char *points);
/** "rbf.l" or "rbf.l[2]". */
void gp_label(const frg_gp_parameter *p, char *text, size_t size);
/** The parameters of the process with what is known of them; `full`: plots, options and versions as
 *  well. */
void gp_report_build(frg_report *r, const cli *c, const gp_job *job, int full);
void gp_json_build(frg_json *j, const cli *c, const gp_job *job);

int gp_batch(cli *c, gp_job *job);

#endif
