/* cli_page.c - --report: a result as one page of HTML, with the run that gave it: command, versions, options. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli.h"

/** The command line with quotes where a shell needs them. */
static void command_line(const cli *c, char *text, size_t room)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,^@%";
    size_t used = (size_t)snprintf(text, room, "fourge");
    for (int i = 1; i < c->argc && used < room; i++) {
        const char *const word = c->argv[i];
        const int plain = *word && word[strspn(word, safe)] == '\0';
        used += (size_t)snprintf(text + used, room - used, plain ? " %s" : " '%s'", word);
    }
}

/** Options that only some commands have, and no names of results: what the numbers can hang on. */
static int is_of_the_run(const option_spec *k, command_bit command, int job)
{
    return k->state == OPTION_READY && k->kind != KIND_OUTPUT && k->commands != CMD_ALL &&
           k->commands & command && (k->jobs == 0 || k->jobs & 1u << job);
}

void page_run_facts(frg_report *r, const cli *c, const char *command, command_bit of, int job)
{
    char text[1024];
    machine m;
    machine_look(&m);
    frg_report_heading(r, "Run");
    command_line(c, text, sizeof text);
    frg_report_fact(r, "Command", command ? command : text);
    snprintf(text, sizeof text, "fourge %s, commit %s", frg_version(), frg_commit());
    frg_report_fact(r, "Version", text);
    snprintf(text, sizeof text, "%s, kernels %s", m.blas, *m.core ? m.core : "unknown");
    frg_report_fact(r, "BLAS", text);
    snprintf(text, sizeof text, "%s, level %s", m.cpu, frg_isa(c->ctx));
    frg_report_fact(r, "CPU", text);
    snprintf(text, sizeof text, "%d", frg_threads(c->ctx));
    frg_report_fact(r, "Threads", text);
    snprintf(text, sizeof text, "%" PRIu64, frg_seed(c->ctx));
    frg_report_fact(r, "Seed", text);
    for (const option_spec *k = option_table; k->name; k++) {
        char name[64];
        option_value_text(k, &c->set, text, sizeof text);
        if (k->fallback && (*text == '\0' || strcmp(text, "0") == 0)) {
            snprintf(text, sizeof text, "%s", k->fallback);
        }
        if (*text && is_of_the_run(k, of, job)) {
            snprintf(name, sizeof name, "--%s", k->name);
            frg_report_fact(r, name, text);
        }
    }
}

static void convergence_plot(frg_report *r, const trace *t)
{
    const frg_series series = {
        .name = "residual", .n = t->n, .x = t->iteration, .y = t->residual, .style = FRG_LINE};
    const frg_plot plot = {.caption = "Residual by iteration",
                           .x_label = "iteration",
                           .y_label = "residual",
                           .log_y = 1,
                           .reference = (double)NAN,
                           .n_series = 1,
                           .series = &series};
    frg_report_heading(r, "Convergence");
    frg_report_plot(r, &plot);
}

int save_page(cli *c, const char *title, report_writer write, const void *job)
{
    frg_report *r;
    frg_status status = frg_report_create(&r, c->ctx, title);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    write(r, c, job);
    status = frg_report_save(r, FRG_HTML, c->set.report);
    frg_report_destroy(r);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

/** What write_result shows in a page, as people read it whatever --format says. */
typedef struct {
    report_writer write;
    const void *job;
} shown;

static void shown_page(frg_report *r, const cli *c, const void *of)
{
    const shown *const s = of;
    s->write(r, c, s->job);
    if (c->progress.trace.n > 1 && c->set.repeat == 0) { /* else it has all runs in it */
        convergence_plot(r, &c->progress.trace);
    }
    page_run_facts(r, c, NULL, c->command->bit, c->job);
}

int save_plain_page(cli *c, const char *title, report_writer write, const void *job)
{
    char name[160];
    const shown s = {write, job};
    const int format = c->set.format;
    snprintf(name, sizeof name, "fourge: %s", title);
    c->set.format = FORMAT_TEXT;
    const int code = save_page(c, name, shown_page, &s);
    c->set.format = format;
    return code;
}
