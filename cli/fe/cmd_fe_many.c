/* cmd_fe_many.c - `fourge fe` with a formula or a split that makes several models: fits them, shows
 * them side by side. */
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "fe/fe_job.h"

/* ---- which terms ----------------------------------------------------------------------------- */

/** Terms of all models, each once; a name is the fit's. */
typedef struct {
    const char **name;
    int n;
} term_list;

static int matches(const char *pattern, const char *term)
{
    regex_t r;
    if (regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
        return 0; /* check_patterns has refused it */
    }
    const int found = regexec(&r, term, 0, NULL, 0) == 0;
    regfree(&r);
    return found;
}

static int matches_any(const char *const patterns[], int n, const char *term)
{
    for (int i = 0; i < n; i++) {
        if (matches(patterns[i], term)) {
            return 1;
        }
    }
    return 0;
}

static int check_patterns(cli *c, const char *option, const char *const patterns[], int n)
{
    for (int i = 0; i < n; i++) {
        regex_t r;
        const int status = regcomp(&r, patterns[i], REG_EXTENDED | REG_NOSUB);
        if (status != 0) {
            char why[160];
            regerror(status, &r, why, sizeof why);
            return cli_fail(c, "E_OPTION", option, "", "%s '%s': %s", option, patterns[i], why);
        }
        regfree(&r);
    }
    return 0;
}

static int is_among(const term_list *l, const char *term)
{
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->name[i], term) == 0) {
            return 1;
        }
    }
    return 0;
}

static int count_terms(const frg_fe_many *m)
{
    int n = 0;
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        n += frg_fe_get(frg_fe_many_get(m, i))->n_coefficients;
    }
    return n;
}

/** In order of appearance; 0 where memory is out. */
static int list_terms(term_list *l, const cli *c, const frg_fe_many *m)
{
    const fe_settings *const s = &c->set.fe_job;
    *l = (term_list){.name = malloc(((size_t)count_terms(m) + 1) * sizeof *l->name)};
    for (int64_t i = 0; l->name && i < frg_fe_many_count(m); i++) {
        const frg_fe_result *const f = frg_fe_get(frg_fe_many_get(m, i));
        for (int k = 0; k < f->n_coefficients; k++) {
            const char *const term = f->coefficients[k].term;
            const int kept = (s->n_keep == 0 || matches_any(s->keep, s->n_keep, term)) &&
                             !matches_any(s->drop, s->n_drop, term);
            if (kept && !is_among(l, term)) {
                l->name[l->n++] = term;
            }
        }
    }
    return l->name != NULL;
}

/** Those that --order names first, pattern after pattern; the others as they were. */
static int order_terms(term_list *l, const cli *c)
{
    const fe_settings *const s = &c->set.fe_job;
    const char **const sorted = malloc(((size_t)l->n + 1) * sizeof *sorted);
    int n = 0;
    if (!sorted) {
        return 0;
    }
    for (int p = 0; p <= s->n_order; p++) {
        for (int i = 0; i < l->n; i++) {
            if (l->name[i] && (p == s->n_order || matches(s->order[p], l->name[i]))) {
                sorted[n++] = l->name[i];
                l->name[i] = NULL;
            }
        }
    }
    free(l->name);
    l->name = sorted;
    return 1;
}

/** What --label NAME=TEXT says of a name. */
static const char *label_of(const cli *c, const char *name)
{
    const fe_settings *const s = &c->set.fe_job;
    const size_t length = strlen(name);
    for (int i = 0; i < s->n_label; i++) {
        if (strncmp(s->label[i], name, length) == 0 && s->label[i][length] == '=') {
            return s->label[i] + length + 1;
        }
    }
    return name;
}

static int digits_of(const cli *c)
{
    return c->set.fe_job.digits ? c->set.fe_job.digits : 4;
}

/* ---- statistics of the fit ------------------------------------------------------------------- */

typedef double (*statistic)(const frg_fe_result *);
static double of_n(const frg_fe_result *f)
{
    return (double)f->n;
}
static double of_r2(const frg_fe_result *f)
{
    return f->r2;
}
static double of_r2_adjusted(const frg_fe_result *f)
{
    return f->r2_adjusted;
}
static double of_r2_within(const frg_fe_result *f)
{
    return f->r2_within;
}
static double of_rmse(const frg_fe_result *f)
{
    return f->rmse;
}
static double of_wald_f(const frg_fe_result *f)
{
    return f->vcov[0].wald_f;
}
static double of_df(const frg_fe_result *f)
{
    return (double)f->df_residual;
}
/** The least of the first stages', which says what the weakest endogenous regressor has. */
static double of_first_stage_f(const frg_fe_result *f)
{
    double least = f->iv ? f->iv->tests[0].first_stage_f[0] : (double)NAN;
    for (int m = 1; f->iv && m < f->iv->n_endogenous; m++) {
        least = fmin(least, f->iv->tests[0].first_stage_f[m]);
    }
    return least;
}
static double of_kp_f(const frg_fe_result *f)
{
    return f->iv ? f->iv->tests[0].kp_f : (double)NAN;
}
static double of_pseudo_r2(const frg_fe_result *f)
{
    return f->glm ? f->glm->pseudo_r2 : (double)NAN;
}
static double of_deviance(const frg_fe_result *f)
{
    return f->glm ? f->glm->deviance : (double)NAN;
}
static double of_log_likelihood(const frg_fe_result *f)
{
    return f->glm ? f->glm->log_likelihood : (double)NAN;
}
static double of_aic(const frg_fe_result *f)
{
    return f->glm ? f->glm->aic : (double)NAN;
}
static double of_bic(const frg_fe_result *f)
{
    return f->glm ? f->glm->bic : (double)NAN;
}

static const struct {
    const char *name, *words;
    statistic value;
    int whole;
} statistics[] = {
    {"n", "Observations", of_n, 1},
    {"r2", "R2", of_r2, 0},
    {"r2_adjusted", "Adjusted R2", of_r2_adjusted, 0},
    {"r2_within", "Within R2", of_r2_within, 0},
    {"rmse", "RMSE", of_rmse, 0},
    {"wald_f", "Wald F", of_wald_f, 0},
    {"df_residual", "Residual df", of_df, 1},
    {"first_stage_f", "First-stage F", of_first_stage_f, 0},
    {"kp_f", "Kleibergen-Paap F", of_kp_f, 0},
    {"pseudo_r2", "Pseudo R2", of_pseudo_r2, 0},
    {"deviance", "Deviance", of_deviance, 0},
    {"log_likelihood", "Log-likelihood", of_log_likelihood, 0},
    {"aic", "AIC", of_aic, 0},
    {"bic", "BIC", of_bic, 0},
};
enum {
    R2 = 1, /* to R2_LAST: of least squares */
    R2_LAST = 3,
    STATISTICS_OF_ALL = 9, /* behind them those of a family */
    STATISTICS = sizeof statistics / sizeof *statistics
};

/** The place of the name of `length` letters; -1: it is none. */
static int statistic_named(const char *name, size_t length)
{
    for (int i = 0; i < STATISTICS; i++) {
        if (strlen(statistics[i].name) == length &&
            strncmp(statistics[i].name, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

static int check_statistics(cli *c)
{
    for (const char *at = c->set.fe_job.statistics; at && *at;) {
        const size_t length = strcspn(at, ",");
        const int which = statistic_named(at, length);
        if (which >= STATISTICS_OF_ALL && c->set.fe.family == FRG_FAMILY_OLS) {
            return cli_fail(c, "E_OPTION", "--statistics", "name a family, as in --family poisson",
                            "--statistics: '%s' is of the families beside ols",
                            statistics[which].name);
        }
        if (which >= R2 && which <= R2_LAST && c->set.fe.family != FRG_FAMILY_OLS) {
            return cli_fail(c, "E_OPTION", "--statistics", "take pseudo_r2, deviance, aic or bic",
                            "--statistics: '%s' is of least squares alone", statistics[which].name);
        }
        if (which < 0) {
            return cli_fail(c, "E_OPTION", "--statistics",
                            "n, r2, r2_adjusted, r2_within, rmse, wald_f, df_residual, of "
                            "instruments first_stage_f, kp_f, and of a family: pseudo_r2, "
                            "deviance, log_likelihood, aic, bic",
                            "--statistics: '%.*s' is none of the fit", (int)length, at);
        }
        at += length + (at[length] == ',');
    }
    return 0;
}

static int any_effects(const frg_fe_many *m)
{
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        if (frg_fe_get(frg_fe_many_get(m, i))->n_factors) {
            return 1;
        }
    }
    return 0;
}

static int any_has(const frg_fe_many *m, int which)
{
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        if (!isnan(statistics[which].value(frg_fe_get(frg_fe_many_get(m, i))))) {
            return 1;
        }
    }
    return 0;
}

/** Blank for a model that has it not, NA where none has it. */
static void statistic_row(frg_report *r, const cli *c, const frg_fe_many *m, int which)
{
    const char *const none = any_has(m, which) ? "" : "NA";
    frg_report_cell_text(r, statistics[which].words);
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        const double x = statistics[which].value(frg_fe_get(frg_fe_many_get(m, i)));
        if (isnan(x)) {
            frg_report_cell_text(r, none);
        } else if (statistics[which].whole) {
            frg_report_cell_integer(r, (int64_t)x);
        } else {
            frg_report_cell_number(r, x, digits_of(c));
        }
    }
}

static const char *usual_statistics(const frg_fe_many *m)
{
    const int effects = any_effects(m);
    if (frg_fe_many_count(m) > 0 && frg_fe_get(frg_fe_many_get(m, 0))->glm) {
        return "n,pseudo_r2";
    }
    if (any_has(m, statistic_named("first_stage_f", strlen("first_stage_f")))) {
        return effects ? "n,r2,r2_within,first_stage_f" : "n,r2,first_stage_f";
    }
    return effects ? "n,r2,r2_within" : "n,r2";
}

static void statistic_rows(frg_report *r, const cli *c, const frg_fe_many *m)
{
    const char *const asked = c->set.fe_job.statistics;
    for (const char *at = asked ? asked : usual_statistics(m); *at;) {
        const size_t length = strcspn(at, ",");
        statistic_row(r, c, m, statistic_named(at, length));
        at += length + (at[length] == ',');
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

static const frg_coefficient *coefficient_of(const frg_fe_result *f, const char *term)
{
    for (int k = 0; k < f->n_coefficients; k++) {
        if (strcmp(f->coefficients[k].term, term) == 0) {
            return &f->coefficients[k];
        }
    }
    return NULL;
}

static const char *stars_of(const cli *c, double p)
{
    return !c->set.fe_job.stars ? "" : p < 0.001 ? "***" : p < 0.01 ? "**" : p < 0.05 ? "*" : "";
}

/** An estimate with its stars, or its error in parentheses. */
static void estimate_cell(frg_report *r, const cli *c, const frg_coefficient *k, int error)
{
    char number[32], text[48];
    if (!k || (error && isnan(k->std_error))) {
        frg_report_cell_text(r, k ? "(NA)" : "");
        return;
    }
    frg_format_short(error ? k->std_error : k->estimate, digits_of(c), number);
    snprintf(text, sizeof text, error ? "(%s)" : "%s%s", number,
             error ? "" : stars_of(c, k->p_value));
    frg_report_cell_text(r, text);
}

static void term_rows(frg_report *r, const cli *c, const frg_fe_many *m, const char *term)
{
    for (int error = 0; error < 2; error++) {
        frg_report_cell_text(r, error ? "" : label_of(c, term));
        for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
            estimate_cell(r, c, coefficient_of(frg_fe_get(frg_fe_many_get(m, i)), term), error);
        }
    }
}

static int has_effect(const frg_fe_result *f, const char *name)
{
    for (int q = 0; q < f->n_factors; q++) {
        if (strcmp(f->factor_name[q], name) == 0) {
            return 1;
        }
    }
    return 0;
}

/** A row for each effect, where it appears first. */
static void effect_rows(frg_report *r, const cli *c, const frg_fe_many *m)
{
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        const frg_fe_result *const f = frg_fe_get(frg_fe_many_get(m, i));
        for (int q = 0; q < f->n_factors; q++) {
            int64_t first = 0;
            while (!has_effect(frg_fe_get(frg_fe_many_get(m, first)), f->factor_name[q])) {
                first++;
            }
            if (first < i) {
                continue;
            }
            frg_report_cell_text(r, label_of(c, f->factor_name[q]));
            for (int64_t k = 0; k < frg_fe_many_count(m); k++) {
                const int there = has_effect(frg_fe_get(frg_fe_many_get(m, k)), f->factor_name[q]);
                frg_report_cell_text(r, there ? "x" : "-");
            }
        }
    }
}

static void text_row(frg_report *r, const frg_fe_many *m, const char *name,
                     const char *(*text)(const frg_fe_result *))
{
    frg_report_cell_text(r, name);
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        frg_report_cell_text(r, text(frg_fe_get(frg_fe_many_get(m, i))));
    }
}

static const char *spec_of(const frg_fe_result *f)
{
    return f->vcov[0].spec;
}

static const char *sample_of(const frg_fe_result *f)
{
    return f->split_value ? f->split_value : "all";
}

static const char *split_of(const frg_fe_many *m)
{
    const int64_t n = frg_fe_many_count(m);
    return n ? frg_fe_get(frg_fe_many_get(m, n - 1))->split_name : NULL;
}

static void models_table(frg_report *r, const cli *c, const frg_fe_many *m, const term_list *terms)
{
    frg_report_table_open(r, NULL);
    frg_report_table_column(r, "", FRG_LEFT);
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        char head[256];
        snprintf(head, sizeof head, "(%lld) %s", (long long)i + 1,
                 label_of(c, frg_fe_get(frg_fe_many_get(m, i))->depvar));
        frg_report_table_column(r, head, FRG_RIGHT);
    }
    if (split_of(m)) {
        text_row(r, m, label_of(c, split_of(m)), sample_of);
    }
    for (int i = 0; i < terms->n; i++) {
        term_rows(r, c, m, terms->name[i]);
    }
    effect_rows(r, c, m);
    text_row(r, m, "Std. errors", spec_of);
    statistic_rows(r, c, m);
    frg_report_table_close(r);
}

/** For programs: a line for each coefficient of each model. */
static void long_table(frg_report *r, const frg_fe_many *m, const term_list *terms)
{
    static const char *const names[] = {"model",    "formula",   "sample",    "term",
                                        "estimate", "std_error", "statistic", "p_value",
                                        "conf_low", "conf_high"};
    frg_report_table_open(r, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        frg_report_table_column(r, names[i], i > 0 && i < 4 ? FRG_LEFT : FRG_RIGHT);
    }
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        const frg_fe_result *const f = frg_fe_get(frg_fe_many_get(m, i));
        for (int t = 0; t < terms->n; t++) {
            const frg_coefficient *const k = coefficient_of(f, terms->name[t]);
            if (!k) {
                continue;
            }
            frg_report_cell_integer(r, i + 1);
            frg_report_cell_text(r, f->formula);
            frg_report_cell_text(r, f->split_value ? f->split_value : "");
            frg_report_cell_text(r, k->term);
            const double values[] = {k->estimate, k->std_error, k->statistic,
                                     k->p_value,  k->conf_low,  k->conf_high};
            for (int v = 0; v < 6; v++) {
                frg_report_cell_number(r, values[v], 17);
            }
        }
    }
    frg_report_table_close(r);
}

void fe_models_notes(frg_report *r, const frg_fe_many *m)
{
    for (int64_t i = 0; i < frg_fe_many_count(m); i++) {
        const frg_fe_result *const f = frg_fe_get(frg_fe_many_get(m, i));
        char text[400];
        if (!f->converged) {
            snprintf(text, sizeof text,
                     "(%lld) NOT CONVERGED: the numbers are those of the last "
                     "iterate.",
                     (long long)i + 1);
            frg_report_paragraph(r, text);
        }
        if (f->vcov[0].projected) {
            snprintf(text, sizeof text,
                     "(%lld): a variance was not positive; the negative "
                     "eigenvalues of the matrix are set to 0.",
                     (long long)i + 1);
            frg_report_paragraph(r, text);
        }
    }
}

static void notes(frg_report *r, const cli *c, const frg_fe_many *m)
{
    if (c->set.fe_job.stars) {
        frg_report_paragraph(r, "* p < 0.05, ** p < 0.01, *** p < 0.001");
    }
    fe_models_notes(r, m);
}

static void models_report(frg_report *r, const cli *c, const void *job)
{
    const frg_fe_many *const m = ((const fe_job *)job)->many;
    term_list terms;
    if (!list_terms(&terms, c, m) || !order_terms(&terms, c)) {
        frg_report_paragraph(r, "out of memory");
        free(terms.name);
        return;
    }
    if (c->set.format == FORMAT_CSV) {
        long_table(r, m, &terms);
    } else {
        models_table(r, c, m, &terms);
        notes(r, c, m);
    }
    free(terms.name);
}

static void models_page(frg_report *r, const cli *c, const void *job)
{
    const fe_job *const j = job;
    term_list terms;
    if (list_terms(&terms, c, j->many) && order_terms(&terms, c)) {
        models_table(r, c, j->many, &terms);
        notes(r, c, j->many);
    }
    free(terms.name);
    page_run_facts(r, c, j->line ? j->line : c);
}

void fe_json_models(frg_json *j, const cli *c, const fe_job *k)
{
    frg_json_open_array(j, "models");
    for (int64_t i = 0; i < frg_fe_many_count(k->many); i++) {
        frg_json_open_object(j, NULL);
        fe_json_model(j, frg_fe_get(frg_fe_many_get(k->many, i)), frg_fe_many_status(k->many, i));
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
    frg_json_open_object(j, "seconds");
    frg_json_number(j, "read", k->read);
    frg_json_number(j, "total", k->total);
    frg_json_close_object(j);
    repeats_json(j, c, k->totals, k->n_totals);
    json_foot(j, c);
}

static void models_json(frg_json *j, const cli *c, const void *job)
{
    const fe_job *const k = job;
    json_head(j, "fourge.fe/1");
    frg_json_string(j, "status", frg_status_name(k->status));
    frg_json_string(j, "formula", k->formula);
    fe_json_models(j, c, k);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void count_models(const char *formula, void *user)
{
    (void)formula;
    ++*(int *)user;
}

int fe_makes_many(const cli *c)
{
    int n = 0;
    const fe_settings *const s = &c->set.fe_job;
    const int asked = s->n_keep || s->n_drop || s->n_order || s->n_label || s->stars || s->digits ||
                      s->statistics || (c->set.fe.split && !c->set.fe.split_value) ||
                      c->set.fe.fsplit;
    if (frg_fe_expand(c->ctx, c->arguments[0], count_models, &n) < 0) {
        return asked; /* the fit says what is wrong */
    }
    return asked || n > 1;
}

/** What is of one model. */
static int check_many(cli *c)
{
    const settings *const s = &c->set;
    const given_option single[] = {{"--save-effects", s->fe_job.save_effects != NULL},
                                   {"--save-residuals", s->fe_job.save_residuals != NULL},
                                   {"--save-groups", s->fe_job.save_groups != NULL},
                                   {"--predict", s->fe_job.predict != NULL},
                                   {"--leave-out", s->fe_job.leave_out != LEAVE_OUT_NO},
                                   {"--ritest", s->studies.ritest.variable != NULL},
                                   {"--plan", s->fe.plan != NULL},
                                   {"--checkpoint", s->checkpoint != NULL},
                                   {"--dry-run", s->dry_run}};
    int code = cli_refuse_given(c, single, sizeof single / sizeof *single,
                                "is of one model, and this is a table of several",
                                "give it with each of the models");
    code = code ? code : check_patterns(c, "--keep", s->fe_job.keep, s->fe_job.n_keep);
    code = code ? code : check_patterns(c, "--drop", s->fe_job.drop, s->fe_job.n_drop);
    code = code ? code : check_patterns(c, "--order", s->fe_job.order, s->fe_job.n_order);
    for (int i = 0; i < s->fe_job.n_label && !code; i++) {
        if (!strchr(s->fe_job.label[i], '=')) {
            code = cli_fail(c, "E_OPTION", "--label", "NAME=TEXT", "--label '%s' has no '='",
                            s->fe_job.label[i]);
        }
    }
    return code ? code : check_statistics(c);
}

static int fit_many(cli *c, fe_job *job)
{
    const int repeats = c->set.repeat;
    job->totals = calloc((size_t)repeats + 2, sizeof *job->totals);
    if (!job->totals) {
        return cli_fail_memory(c);
    }
    for (int i = 0; i <= repeats && job->status != FRG_INTERRUPTED; i++) { /* 0 warms up */
        frg_fe_many_destroy(job->many);
        job->many = NULL;
        if (i > 0) {
            frg_warnings_clear(c->ctx);
        }
        const double start = now_seconds();
        job->status = frg_fe_fit_many(&job->many, c->ctx, job->formula, job->data, &job->opts);
        progress_clear(&c->progress);
        if (!job->many) {
            return cli_fail_library(c, job->status);
        }
        job->n_totals = i > 0 ? i : 1;
        job->totals[job->n_totals - 1] = now_seconds() - start;
    }
    double *const sorted = malloc((size_t)job->n_totals * sizeof *sorted);
    if (!sorted) {
        return cli_fail_memory(c);
    }
    memcpy(sorted, job->totals, (size_t)job->n_totals * sizeof *sorted);
    job->total = median_of(sorted, job->n_totals);
    free(sorted);
    return 0;
}

int fe_models_show(cli *c, const fe_job *job, const fe_models_view *v)
{
    const int code = c->set.report ? save_page(c, v->page_title, v->page, job) : 0;
    if (code) {
        return code;
    }
    cli_show_warnings(c);
    const int written = write_result(c, v->title, v->json, v->text, job);
    return written ? written : cli_ended(job->status);
}

int fe_many_run(cli *c, fe_job *job)
{
    static const fe_models_view view = {"fourge: models", "Models", models_page, models_json,
                                        models_report};
    int code = check_many(c);
    code = code ? code : fe_job_read(c, job);
    code = code ? code : fit_many(c, job);
    return code ? code : fe_models_show(c, job, &view);
}
