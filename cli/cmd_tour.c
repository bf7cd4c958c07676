/* cmd_tour.c - `fourge tour`: the main jobs on the data that come with fourge.
 *
 * A job is a row of a table.  The terminal gets what it is about, the command and its table, the page the same
 * with plots and certificates.  Data lie in $FOURGE_DATA, beside the build, or where `cmake --install` put them.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fe_job.h"
#include "tour.h"

typedef struct {
    const char *title, *about;
    const char *formula, *file, *vcov;
    const char *reading; /* what the table says */
} tour_job;

static const tour_job jobs[] = {
    {
        .title = "Panel regression with two fixed effects and clustered errors",
        .about = "Do unions and marriage raise wages?  545 young men, 1980 to 1987 (Vella and "
                 "Verbeek 1998).  The effect of each man takes out all that is constant about him, "
                 "the effect of each occupation in each year the state of its market; the errors "
                 "of one man are related, so the standard errors are clustered by man.",
        .formula = "lwage ~ expersq + union + married | nr + occupation^year",
        .file = "wage_panel.csv",
        .vcov = "cluster=nr",
        .reading = "Read it so: in the same occupation and year, a man is paid about 8 % more when "
                   "he is in a union than when he is not, and about 4 % more when he is married.",
    },
};

enum { N_JOBS = sizeof jobs / sizeof *jobs };

/** The jobs of the other rooms, in the order of the page. */
static const tour_part *const parts[] = {&tour_gp, &tour_gw, &tour_soap};

enum { N_PARTS = sizeof parts / sizeof *parts };

static int is_found(const char *file, char *path, size_t room)
{
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash) {
        *slash = '\0';
    }
    const char *given = getenv("FOURGE_DATA");
    const struct {
        const char *from, *below;
    } places[] = {
        {given, ""}, {program, "/../data"}, {program, "/../share/fourge/data"}, {".", "/data"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i].from && *places[i].from) {
            const int n = snprintf(path, room, "%s%s/%s", places[i].from, places[i].below, file);
            if (n > 0 && (size_t)n < room && access(path, R_OK) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

int tour_find_data(const cli *c, const char *file, char *path, size_t room)
{
    if (is_found(file, path, room)) {
        return 0;
    }
    return cli_fail(c, "E_NO_INPUT", file, "set FOURGE_DATA to the folder data of the source",
                    "the data of the tour, %s, are not found beside the program", file);
}

/* ---- commands ------------------------------------------------------------------------------------- */

static int add_word(tour_command *k, const char *start, const char *text)
{
    const size_t room = strlen(start) + strlen(text) + 1;
    char *const word = k->n < MAX_TOUR_WORDS ? malloc(room) : NULL;
    if (word) {
        snprintf(word, room, "%s%s", start, text);
        k->words[k->n++] = word;
    }
    return word != NULL;
}

/** Options of the tour that the command knows too: the solver's, and those of the run. */
static int add_given(const cli *c, unsigned bit, tour_command *k)
{
    int added = 1;
    for (const option_spec *o = option_table; o->name && added; o++) {
        const char *words[MAX_SET];
        char number[64];
        if (!c->given[o - option_table] || !(o->commands & bit) ||
            (strcmp(o->group, "Solver") != 0 && strcmp(o->group, "Running") != 0)) {
            continue;
        }
        const int n = option_words(o, &c->set, words, MAX_SET, number);
        for (int i = 0; i < n && added; i++) {
            added = add_word(k, "--", o->name) && add_word(k, "", words[i]);
        }
    }
    return added;
}

int tour_command_read(cli *c, const char *const *words, int n, tour_command *out)
{
    int added = add_word(out, "", c->program);
    for (int i = 0; i < n && added; i++) {
        added = add_word(out, "", words[i]);
    }
    out->line = added && add_given(c, find_command(words[0])->bit, out)
                    ? calloc(1, sizeof *out->line)
                    : NULL;
    return out->line ? cli_read(out->line, out->n, out->words) : cli_fail_memory(c);
}

void tour_command_release(tour_command *k)
{
    for (int i = 0; i < k->n; i++) {
        free(k->words[i]);
    }
    free(k->line);
    *k = (tour_command){.n = 0};
}

void tour_command_fact(frg_report *r, const tour_command *k)
{
    char *const text = command_text(k->line);
    frg_report_fact(r, "Command", text ? text : "");
    free(text);
}

/* ---- regressions ---------------------------------------------------------------------------------- */

typedef struct {
    fe_job fe;
    char path[PATH_MAX], shown[64];
    tour_command command;
    trace trace;
} tour_run;

static int run_job(cli *c, const tour_job *k, tour_run *t)
{
    snprintf(t->shown, sizeof t->shown, "data/%s", k->file);
    const char *const words[] = {"fe", k->formula, t->shown, "--vcov", k->vcov};
    int code = tour_find_data(c, k->file, t->path, sizeof t->path);
    code = code ? code : tour_command_read(c, words, sizeof words / sizeof *words, &t->command);
    if (code) {
        return code;
    }
    t->fe = (fe_job){.formula = k->formula,
                     .path = t->path,
                     .shown = t->shown,
                     .line = t->command.line,
                     .opts = t->command.line->set.fe};
    c->progress.trace = (trace){.stride = 1};
    c->progress.steps = 0;
    c->progress.keep_trace = 1;
    code = fe_job_read(c, &t->fe);
    if (!code) {
        code = fe_job_fit(c, &t->fe);
    }
    t->trace = c->progress.trace;
    return code;
}

static void add_job(frg_report *r, cli *c, const tour_job *k, const tour_run *t, int full)
{
    frg_report_heading(r, k->title);
    frg_report_paragraph(r, k->about);
    tour_command_fact(r, &t->command);
    c->progress.trace = t->trace;
    fe_report_build(r, c, &t->fe, full);
    frg_report_paragraph(r, k->reading);
}

static int show_text(cli *c, const tour_run *runs, void *const *states, const char *page)
{
    frg_report *r;
    const frg_status status = frg_report_create(&r, c->ctx, "fourge tour");
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    for (int i = 0; i < N_JOBS; i++) {
        add_job(r, c, &jobs[i], &runs[i], 0);
    }
    for (int i = 0; i < N_PARTS; i++) {
        parts[i]->report(r, c, states[i], 0);
    }
    char text[PATH_MAX + 64];
    snprintf(text, sizeof text, "The same with plots and certificates: %s", page);
    frg_report_paragraph(r, text);
    const int code = write_report(c, r);
    frg_report_destroy(r);
    return code;
}

static int show_json(cli *c, const tour_run *runs, void *const *states, const char *page)
{
    frg_json *j;
    const frg_status status = frg_json_create(&j, c->ctx);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    json_head(j, "fourge.tour/1");
    frg_json_string(j, "report", page);
    frg_json_open_array(j, "jobs");
    for (int i = 0; i < N_JOBS; i++) {
        fe_json_build(j, c, &runs[i].fe);
    }
    for (int i = 0; i < N_PARTS; i++) {
        parts[i]->json(j, c, states[i]);
    }
    frg_json_close_array(j);
    json_foot(j, c);
    const int code = write_json(c, j);
    frg_json_destroy(j);
    return code;
}

static int save_tour(cli *c, const tour_run *runs, void *const *states, const char *page)
{
    frg_report *r;
    frg_status status = frg_report_create(&r, c->ctx, "fourge tour");
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    for (int i = 0; i < N_JOBS; i++) {
        add_job(r, c, &jobs[i], &runs[i], 1);
    }
    for (int i = 0; i < N_PARTS; i++) {
        parts[i]->report(r, c, states[i], 1);
    }
    status = frg_report_save(r, FRG_HTML, page);
    frg_report_destroy(r);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

int command_tour(cli *c)
{
    const char *page = c->set.report ? c->set.report : "fourge-tour.html";
    int code = cli_check_folder(c, page);
    code = code ? code : cli_open(c);
    if (code) {
        return code;
    }
    tour_run *runs = calloc(N_JOBS, sizeof *runs);
    void *states[N_PARTS] = {NULL};
    code = runs ? 0 : cli_fail_memory(c);
    int worst = 0;
    for (int i = 0; !code && i < N_JOBS; i++) {
        code = run_job(c, &jobs[i], &runs[i]);
        const int exit_code = frg_status_exit_code(runs[i].fe.status);
        worst = exit_code > worst ? exit_code : worst;
    }
    for (int i = 0; !code && i < N_PARTS; i++) {
        code = parts[i]->run(c, &states[i]);
        const int exit_code = code ? code : parts[i]->exit_code(states[i]);
        worst = exit_code > worst ? exit_code : worst;
    }
    if (!code) { /* a page that cannot be written takes nothing else along */
        const int lost = save_tour(c, runs, states, page);
        cli_show_warnings(c);
        code = c->set.format == FORMAT_JSON ? show_json(c, runs, states, page)
                                            : show_text(c, runs, states, page);
        code = lost ? lost : code;
    }
    for (int i = 0; i < N_PARTS; i++) {
        parts[i]->release(states[i]);
    }
    for (int i = 0; runs && i < N_JOBS; i++) {
        fe_job_release(&runs[i].fe);
        tour_command_release(&runs[i].command);
    }
    free(runs);
    return code ? code : worst;
}
