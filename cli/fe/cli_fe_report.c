/* cli_fe_report.c - a regression as people read it: facts, table, fit, certificate; in the page
 * also plots, every column's certificate, the options and the versions.  One text for all formats
 * of frg_report. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "fe/fe_job.h"

/** A line that is written piece by piece. */
typedef struct {
    char text[512];
    size_t used;
} line;

static void put(line *l, const char *format, ...) FRG_PRINTF(2, 3);
static void put(line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int more = vsnprintf(l->text + l->used, sizeof l->text - l->used, format, args);
    va_end(args);
    l->used += more > 0 ? (size_t)more : 0;
    if (l->used >= sizeof l->text) {
        l->used = sizeof l->text - 1;
    }
}

/** What is said of each type, in front of its variables. */
static const char *words_of(const char *type)
{
    static const struct {
        const char *type, *words;
    } known[] = {{"iid", "iid"},
                 {"hc1", "heteroskedasticity-robust, hc1"},
                 {"cluster", "clustered by "},
                 {"nw", "Newey-West by "},
                 {"dk", "Driscoll-Kraay by "},
                 {"hac", "two-way HAC by "},
                 {"hc2", "heteroskedasticity-robust, hc2"},
                 {"hc3", "heteroskedasticity-robust, hc3"},
                 {"cr2", "CR2, clustered by "},
                 {"cr3", "CR3, clustered by "},
                 {"crv3", "CRV3, clustered by "},
                 {"jackknife", "jackknife of the clusters by "},
                 {"wild", "wild bootstrap, clustered by "},
                 {"conley", "spatial, Conley"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].type, type) == 0) {
            return known[i].words;
        }
    }
    return type;
}

void vcov_words(const frg_fe_vcov *v, char *text, size_t room)
{
    line l = {{0}, 0};
    char count[32];
    put(&l, "%s", words_of(v->type));
    for (int i = 0; i < v->n_clusters; i++) {
        put(&l, "%s%s (%s)", i ? " and " : "", v->cluster_name[i],
            grouped(v->cluster_count[i], count));
    }
    if (v->lag >= 0) {
        put(&l, ", %s lag%s", grouped(v->lag, count), v->lag == 1 ? "" : "s");
    }
    if (isfinite(v->cutoff)) {
        put(&l, ", %s within %.6g km", v->kernel, v->cutoff);
    }
    if (v->leverage && strcmp(v->leverage, "approx") == 0) {
        put(&l, ", leverages from %s draws, off by %.2g at most (std. error)",
            grouped(v->reps, count), v->leverage_error);
    }
    if (v->weights) {
        put(&l, ", %s %s draws", grouped(v->reps, count), v->weights);
    }
    snprintf(text, room, "%s", l.text);
}

/* ---- head ------------------------------------------------------------------------------------ */

static void rows_fact(frg_report *r, const frg_fe_result *f)
{
    line l = {{0}, 0};
    char a[32];
    put(&l, "%s", grouped(f->n, a));
    const struct {
        int64_t n;
        const char *why;
    } dropped[] = {{f->n_missing, "missing values"},
                   {f->n_subset, "outside the subset"},
                   {f->n_zero_weight, "weight 0"},
                   {f->glm ? f->glm->n_separated : 0, "predicted perfectly"},
                   {f->n_uncompared, "compared with no untreated ones"},
                   {f->n_singleton, "singletons"},
                   {f->n_disconnected, "outside the largest connected set"}};
    int first = 1;
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        if (dropped[i].n > 0) {
            put(&l, "%s%s %s", first ? "; dropped: " : ", ", grouped(dropped[i].n, a),
                dropped[i].why);
            first = 0;
        }
    }
    if (f->n_singleton > 0 && f->singleton_rounds > 1) {
        put(&l, " (in %" PRId64 " rounds)", f->singleton_rounds);
    }
    if (!first) {
        put(&l, " of %s rows", grouped(f->n_rows, a));
    }
    frg_report_fact(r, "Observations", l.text);
}

static void effects_fact(frg_report *r, const frg_fe_result *f)
{
    line l = {{0}, 0};
    char count[32];
    for (int q = 0; q < f->n_factors; q++) {
        put(&l, "%s%s (%s)", q ? ", " : "", f->factor_name[q], grouped(f->factor_levels[q], count));
    }
    if (f->n_factors) {
        frg_report_fact(r, "Fixed effects", l.text);
    }
    if (f->n_groups > 0) {
        l = (line){{0}, 0};
        put(&l, "the largest of %s", grouped(f->n_groups, count));
        frg_report_fact(r, "Connected set", l.text);
    }
}

static void head(frg_report *r, const fe_job *job, const frg_fe_result *f)
{
    static const char *const kinds[] = {"analytic", "frequency", "probability"};
    if (!f->converged) {
        frg_report_paragraph(
            r, "NOT CONVERGED: the fixed effects are not swept out to the tolerance.  The numbers "
               "below are those of the last iterate.");
    }
    frg_report_fact(r, "Formula", f->formula);
    if (job->path && strcmp(job->path, "-") != 0) {
        frg_report_fact(r, "Data", job->shown ? job->shown : job->path);
    }
    fe_two_stage_fact(r, f);
    rows_fact(r, f);
    if (job->opts.subset) {
        frg_report_fact(r, "Subset", job->opts.subset);
    }
    if (job->opts.weights) {
        char text[160];
        snprintf(text, sizeof text, "%s (%s)", job->opts.weights, kinds[job->opts.weights_kind]);
        frg_report_fact(r, "Weights", text);
    }
    effects_fact(r, f);
    char text[256];
    vcov_words(&f->vcov[0], text, sizeof text);
    frg_report_fact(r, "Std. errors", text);
}

/* ---- the table ------------------------------------------------------------------------------- */

/** The rows of the coefficients of a fit. */
static fe_row row_of_fit(const void *of, int i)
{
    const frg_coefficient *const k = &((const frg_fe_result *)of)->coefficients[i];
    return (fe_row){.label = k->term, .k = k};
}

/** Decimals of the estimates, their errors and intervals, the same for the whole table, so that its
 *  points stand in line: four digits of the smallest standard error, three where that is below
 *  1e-4.  -1: magnitudes differ too much for that. */
static int common_decimals(const fe_estimates *t)
{
    double smallest = (double)INFINITY, largest = 0;
    for (int i = 0; i < t->n; i++) {
        const frg_coefficient *k = t->row(t->of, i).k;
        const double error = fabs(k->std_error);
        smallest = error > 0 ? fmin(smallest, error) : smallest;
        largest = fmax(largest, fmax(fabs(k->estimate), error));
    }
    if (!isfinite(smallest)) {
        return -1;
    }
    const int decimals = 3 - (int)floor(log10(smallest));
    const int most = decimals < 2 ? 2 : decimals > 7 ? decimals - 1 : decimals;
    return most <= 9 && (largest <= 0 || log10(largest) + most < 12) ? most : -1;
}

/** A number for programs, or text with fixed decimals for people; what is not known is not
 *  available. */
static void cell(frg_report *r, double x, int decimals, int digits)
{
    char text[40];
    if (isnan(x)) {
        frg_report_cell_text(r, "NA");
        return;
    }
    if (decimals < 0 || !isfinite(x)) {
        frg_report_cell_number(r, x, digits);
        return;
    }
    snprintf(text, sizeof text, "%.*f", decimals, x);
    frg_report_cell_text(r, text);
}

/** The mark of errors that hang on a matrix that was repaired; repair_note says what it means. */
#define REPAIRED " \u2020"

/** Of a bootstrap of `draws` none of which was so far out, it is below 1 / draws. */
static void p_cell(frg_report *r, double p, int64_t draws, int csv)
{
    const double least = draws > 0 ? fmax(1 / (double)draws, 5e-5) : 5e-5;
    char text[40];
    if (!csv && p < least) {
        snprintf(text, sizeof text, "<%.4f", fmax(least, 1e-4));
        frg_report_cell_text(r, text);
    } else {
        cell(r, p, csv ? -1 : 4, 3);
    }
}

/** The names of the columns of a table of estimates. */
static void estimate_columns(frg_report *r, const fe_estimates *t, int csv)
{
    char low[24], high[24];
    snprintf(low, sizeof low, "%.4g%%", 50 * (1 - t->level));
    snprintf(high, sizeof high, "%.4g%%", 100 - 50 * (1 - t->level));
    const int repaired = t->vcov->projected;
    const char *const people[] = {t->head,
                                  "estimate",
                                  repaired ? "std. error" REPAIRED : "std. error",
                                  isinf(t->vcov->df_t) ? "z value" : "t value",
                                  "p value",
                                  low,
                                  high};
    const char *const programs[] = {t->count ? t->head : "term",
                                    "estimate",
                                    "std_error",
                                    "statistic",
                                    "p_value",
                                    "conf_low",
                                    "conf_high"};
    for (int i = 0; i < 7; i++) {
        frg_report_table_column(r, csv ? programs[i] : people[i],
                                i || t->count ? FRG_RIGHT : FRG_LEFT);
    }
    if (t->count) {
        frg_report_table_column(r, csv ? "n" : t->count, FRG_RIGHT);
    }
    if (csv && repaired) { /* a column more where there is something to mark */
        frg_report_table_column(r, "projected", FRG_RIGHT);
    }
}

void fe_estimates_show(frg_report *r, const fe_estimates *t, int csv)
{
    const int decimals = csv ? -1 : common_decimals(t);
    const int64_t draws = strcmp(t->vcov->type, "wild") == 0 ? t->vcov->reps : 0;
    frg_report_table_open(r, NULL);
    estimate_columns(r, t, csv);
    for (int i = 0; i < t->n; i++) {
        const fe_row row = t->row(t->of, i);
        const frg_coefficient *const k = row.k;
        const int plain_t = !csv && fabs(k->statistic) < 1e6;
        if (row.label) {
            frg_report_cell_text(r, row.label);
        } else {
            frg_report_cell_integer(r, row.number);
        }
        cell(r, k->estimate, decimals, 6);
        cell(r, k->std_error, decimals, 4);
        cell(r, k->statistic, plain_t ? 3 : -1, 4);
        p_cell(r, k->p_value, draws, csv);
        cell(r, k->conf_low, decimals, 4);
        cell(r, k->conf_high, decimals, 4);
        if (t->count) {
            frg_report_cell_integer(r, row.rows);
        }
        if (csv && t->vcov->projected) {
            frg_report_cell_integer(r, 1);
        }
    }
    frg_report_table_close(r);
}

/** The estimates of a fit. */
static fe_estimates estimates_of(const fe_job *job, const frg_fe_result *f)
{
    return (fe_estimates){.head = f->depvar,
                          .vcov = &f->vcov[0],
                          .level = job->opts.level,
                          .n = f->n_coefficients,
                          .row = row_of_fit,
                          .of = f};
}

/** Standard errors of every covariance beside each other. */
static void other_errors(frg_report *r, const fe_job *job, const frg_fe_result *f)
{
    if (f->n_vcov < 2) {
        return;
    }
    const fe_estimates estimates = estimates_of(job, f);
    const int decimals = common_decimals(&estimates);
    frg_report_table_open(r, "Standard errors under each covariance");
    frg_report_table_column(r, "term", FRG_LEFT);
    for (int v = 0; v < f->n_vcov; v++) {
        line name = {{0}, 0};
        put(&name, "%s%s", f->vcov[v].spec, f->vcov[v].projected ? REPAIRED : "");
        frg_report_table_column(r, name.text, FRG_RIGHT);
    }
    for (int i = 0; i < f->n_coefficients; i++) {
        frg_report_cell_text(r, f->coefficients[i].term);
        for (int v = 0; v < f->n_vcov; v++) {
            cell(r, f->vcov[v].coefficients[i].std_error, decimals, 4);
        }
    }
    frg_report_table_close(r);
}

/** Under the tables: what the mark means, if it is there. */
static void repair_note(frg_report *r, const frg_fe_result *f)
{
    int repaired = 0;
    for (int v = 0; v < f->n_vcov; v++) {
        repaired |= f->vcov[v].projected;
    }
    if (repaired) {
        frg_report_paragraph(r, "\u2020 A variance was not positive, which the clustered formula "
                                "allows: that coefficient has no "
                                "standard error (NA).  The others come from the matrix with its "
                                "negative eigenvalues set "
                                "to 0 and are not those of the formula; they tell little.");
    }
}

static void dropped_terms(frg_report *r, const frg_fe_result *f)
{
    for (int i = 0; i < f->n_dropped; i++) {
        line l = {{0}, 0};
        put(&l, "%s: %s", f->dropped[i].term, f->dropped[i].reason);
        frg_report_fact(r, i ? "" : "Dropped terms", l.text);
    }
}

/* ---- foot ------------------------------------------------------------------------------------ */

/** Where others count K naively and get another number: what it does to their errors, and how to
 *  have it. */
static void naive_fact(frg_report *r, const frg_fe_result *f, const frg_fe_vcov *v)
{
    if (v->k_naive == 0 || v->k_naive == v->k) {
        return;
    }
    line l = {{0}, 0};
    char a[32], b[32];
    put(&l, "K counts %s independent parameters; fixest and pyfixest count %s", grouped(v->k, a),
        grouped(v->k_naive, b));
    const double mine = (double)(f->n - v->k), theirs = (double)(f->n - v->k_naive);
    if (strncmp(v->ssc, "adj=true", 8) == 0 && mine > 0 && theirs > 0) {
        put(&l, ", with %.6g times these errors", sqrt(mine / theirs));
    }
    put(&l, " (--dof naive)");
    frg_report_fact(r, "Beside fixest", l.text);
}

static void fit_facts(frg_report *r, const frg_fe_result *f)
{
    line l = {{0}, 0};
    char a[32];
    if (f->glm) {
        fe_glm_facts(r, f);
    }
    put(&l, "%.6g", f->r2);
    if (isfinite(f->r2_adjusted)) {
        put(&l, "; adjusted %.6g", f->r2_adjusted);
    }
    if (f->n_factors) {
        put(&l, "; within %.6g", f->r2_within);
    }
    if (!f->glm) {
        frg_report_fact(r, "R2", l.text);
    }
    frg_report_fact_number(r, "RMSE", f->rmse, 6);
    const frg_fe_vcov *v = &f->vcov[0];
    line w = {{0}, 0};
    if (isfinite(v->wald_f)) {
        put(&w, "F = %.5g, ", v->wald_f);
    }
    put(&w, "%s residual degrees of freedom", grouped(f->df_residual, a));
    if (isinf(v->df_t)) {
        put(&w, "; normal distribution");
    } else if (v->df_t != (double)f->df_residual) {
        put(&w, "; t distribution with %.6g", v->df_t);
    }
    frg_report_fact(r, "Wald", w.text);
    line s = {{0}, 0};
    put(&s, "K = %s", grouped(v->k, a));
    for (const char *at = v->ssc; *at;) { /* a blank after each comma, for the line ends */
        const int length = (int)strcspn(at, ",");
        put(&s, ", %.*s", length, at);
        at += length + (at[length] == ',');
    }
    frg_report_fact(r, "Small sample", s.text);
    naive_fact(r, f, v);
    if (f->n_factors) {
        line k = {{0}, 0};
        put(&k, "rank %s of %s levels (counted %s)", grouped(f->rank, a),
            grouped(f->demean.levels, (char[32]){0}), f->rank_method);
        frg_report_fact(r, "Absorbed", k.text);
    }
}

/** The worst of all columns: what a reader has to trust. */
static void certificate_fact(frg_report *r, const frg_fe_result *f)
{
    if (f->n_demeaned == 0 || f->n_factors == 0) {
        return;
    }
    int64_t worst = 0, failed = 0, steps = 0;
    double bound = 0;
    for (int64_t i = 0; i < f->n_demeaned; i++) {
        const frg_demean_column *k = &f->columns[i];
        worst = k->audit > f->columns[worst].audit ? i : worst;
        failed += !k->converged;
        steps = k->iterations > steps ? k->iterations : steps;
        bound = !(k->error_bound <= bound) ? k->error_bound : bound; /* NaN once there is one */
    }
    line l = {{0}, 0};
    put(&l, f->converged ? "converged" : "NOT CONVERGED (%" PRId64 " of %" PRId64 " columns)",
        failed, f->n_demeaned);
    char a[32], b[32];
    put(&l, "; largest level mean left in any column: %s of its sd (%s), tol %s",
        short_text(f->columns[worst].audit, 2, a), f->column_names[worst],
        short_text(f->demean.tol, 3, b));
    if (isfinite(bound)) {
        put(&l, "; error at most %s", short_text(bound, 2, a));
    }
    frg_report_fact(r, "Audit", l.text);
    line m = {{0}, 0};
    put(&m, "%s, %" PRId64 " step%s", f->demean.method ? f->demean.method : "?", steps,
        steps == 1 ? "" : "s");
    if (f->demean.n_parts > 0) {
        put(&m, "; %" PRId64 " parts of %" PRId64 " components", f->demean.n_parts,
            f->n_components);
    }
    frg_report_fact(r, "Method", m.text);
    device_work_fact(r, f->demean.passes_on, device_work_of_demean(&f->demean));
}

static void time_fact(frg_report *r, const cli *c, const fe_job *job)
{
    char a[32], b[32];
    line l = {{0}, 0};
    put(&l, "%s (read %s), ",
        seconds_text(job->total + job->components.seconds + job->ritest.seconds, a),
        seconds_text(job->read, b));
    if (job->components.leave_out) {
        put(&l, "of these leave-out components %s, ", seconds_text(job->components.seconds, a));
    }
    if (job->ritest.term) {
        put(&l, "of these permutations %s, ", seconds_text(job->ritest.seconds, a));
    }
    put(&l, "%d threads, at most %s", frg_threads(c->ctx),
        bytes_text((double)frg_peak_bytes(c->ctx), a));
    frg_report_fact(r, "Time", l.text);
}

/* ---- the page -------------------------------------------------------------------------------- */

void fe_intervals_add(fe_intervals *p, const frg_coefficient *k, double (*scale)(double))
{
    if (p->n < MOST_INTERVALS && isfinite(k->estimate) && isfinite(k->std_error)) {
        p->estimate[p->n] = scale ? scale(k->estimate) : k->estimate;
        p->low[p->n] = scale ? scale(k->conf_low) : k->conf_low;
        p->high[p->n] = scale ? scale(k->conf_high) : k->conf_high;
        p->term[p->n++] = k->term;
    }
}

void fe_intervals_plot(frg_report *r, const fe_intervals *p, const char *caption,
                       const char *y_label)
{
    const frg_series series = {.name = "estimate",
                               .n = p->n,
                               .y = p->estimate,
                               .low = p->low,
                               .high = p->high,
                               .style = FRG_POINTS};
    const frg_plot plot = {.caption = caption,
                           .x_label = "",
                           .y_label = y_label,
                           .horizontal = 1,
                           .categories = p->term,
                           .n_categories = p->n,
                           .reference = 0,
                           .n_series = 1,
                           .series = &series};
    if (p->n > 0) {
        frg_report_plot(r, &plot);
    }
}

static void coefficient_plot(frg_report *r, const fe_job *job, const frg_fe_result *f)
{
    fe_intervals shown = {0};
    char caption[96];
    for (int i = 0; i < f->n_coefficients; i++) {
        if (strcmp(f->coefficients[i].term, "(Intercept)") != 0) {
            fe_intervals_add(&shown, &f->coefficients[i], NULL);
        }
    }
    snprintf(caption, sizeof caption, "Estimates and %.4g%% intervals", 100 * job->opts.level);
    fe_intervals_plot(r, &shown, caption, f->depvar);
}

static void convergence_plot(frg_report *r, const cli *c, const fe_job *job, const frg_fe_result *f)
{
    const trace *t = &c->progress.trace;
    if (f->n_factors == 0) {
        return;
    }
    frg_report_heading(r, "Convergence");
    if (t->n < 2) {
        line l = {{0}, 0};
        put(&l, "Solved by \"%s\" without a sequence of iterations to show.",
            f->demean.method ? f->demean.method : "?");
        frg_report_paragraph(r, l.text);
        return;
    }
    const frg_series series = {
        .name = "residual", .n = t->n, .x = t->iteration, .y = t->residual, .style = FRG_LINE};
    const frg_plot plot = {.caption = "Residual by iteration; the line is the tolerance",
                           .x_label = "iteration",
                           .y_label = "largest residual",
                           .log_y = 1,
                           .reference = job->opts.demean.tol,
                           .n_series = 1,
                           .series = &series};
    frg_report_plot(r, &plot);
}

static void certificate_table(frg_report *r, const frg_fe_result *f)
{
    if (f->n_factors == 0) {
        return;
    }
    frg_report_heading(r, "Certificate");
    frg_report_paragraph(
        r, "Audit: the largest weighted level mean left in the column over the column's standard "
           "deviation, "
           "computed in double precision from the result itself.  Gradient: the norm of the normal "
           "equations' residual.  Both must be below the tolerance.");
    frg_report_table_open(r, NULL);
    const char *const names[] = {"column",   "iterations",  "audit",
                                 "gradient", "error bound", "state"};
    for (int i = 0; i < 6; i++) {
        frg_report_table_column(r, names[i], i > 0 && i < 5 ? FRG_RIGHT : FRG_LEFT);
    }
    for (int64_t i = 0; i < f->n_demeaned; i++) {
        const frg_demean_column *k = &f->columns[i];
        frg_report_cell_text(r, f->column_names[i]);
        frg_report_cell_integer(r, k->iterations);
        frg_report_cell_number(r, k->audit, 2);
        frg_report_cell_number(r, k->gradient, 2);
        if (isfinite(k->error_bound)) {
            frg_report_cell_number(r, k->error_bound, 2);
        } else {
            frg_report_cell_text(r, "not known");
        }
        frg_report_cell_text(r, !k->converged ? "NOT CONVERGED"
                                : k->absorbed ? "absorbed"
                                              : "converged");
    }
    frg_report_table_close(r);
    subproblems_table(r, f->parts, f->demean.n_parts);
    host_steps_table(r, &f->demean.host_steps);
}

void fe_report_build(frg_report *r, const cli *c, const fe_job *job, int full)
{
    const frg_fe_result *f = frg_fe_get(job->fit);
    head(r, job, f);
    const fe_estimates estimates = estimates_of(job, f);
    fe_estimates_show(r, &estimates, c->set.format == FORMAT_CSV);
    if (c->set.format == FORMAT_CSV && !full) {
        return;
    }
    other_errors(r, job, f);
    repair_note(r, f);
    dropped_terms(r, f);
    fit_facts(r, f);
    fe_iv_facts(r, f, job->opts.level);
    fe_leave_out_table(r, &job->components);
    fe_ritest_table(r, c, &job->ritest);
    certificate_fact(r, f);
    plan_fact(r, c->set.fe.plan, f->plan_read, job->plan_written);
    time_fact(r, c, job);
    if (full) {
        frg_report_heading(r, "Coefficients");
        fe_event_plot(r, f, job->opts.level);
        coefficient_plot(r, job, f);
        convergence_plot(r, c, job, f);
        certificate_table(r, f);
        page_run_facts(r, c, job->line ? job->line : c);
    }
}
