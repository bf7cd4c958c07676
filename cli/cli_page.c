/* cli_page.c - --report: a result as one page of HTML, with the run that gave it: command,
 * versions, options. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/** A word as a shell takes it; `plain` words are left as they are.  Returns its length, which may
 *  be beyond `room`. */
static size_t shell_word(const char *word, int plain, char *text, size_t room)
{
    size_t used = 0;
    const char *const quote = plain ? "" : "'";
    used += (size_t)snprintf(text, room, "%s", quote);
    for (const char *at = word; *at; at++) {
        char *const to = used < room ? text + used : NULL;
        const size_t left = to ? room - used : 0;
        used += (size_t)(*at == '\'' ? snprintf(to, left, "'\\''") : snprintf(to, left, "%c", *at));
    }
    return used + (size_t)snprintf(used < room ? text + used : NULL, used < room ? room - used : 0,
                                   "%s", quote);
}

static int is_plain(const char *word)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,^@%";
    return *word && word[strspn(word, safe)] == '\0';
}

char *command_text(const cli *line)
{
    size_t room = sizeof "fourge";
    for (int i = 1; i < line->argc; i++) {
        room += 1 + shell_word(line->argv[i], is_plain(line->argv[i]), NULL, 0);
    }
    char *const text = malloc(room);
    size_t used = text ? (size_t)snprintf(text, room, "fourge") : 0;
    for (int i = 1; text && i < line->argc; i++) {
        text[used++] = ' ';
        used += shell_word(line->argv[i], is_plain(line->argv[i]), text + used, room - used);
    }
    return text;
}

/** Options that the numbers can hang on: those that only some commands have, and of the others a
 *  limit that was given. */
static int is_of_the_run(const option_spec *k, const cli *line)
{
    return k->state == OPTION_READY && k->kind != KIND_OUTPUT && k->commands & line->command->bit &&
           (k->jobs == 0 || k->jobs & 1u << line->job) &&
           (!(k->commands & CMD_RESUME || k->field == offsetof(settings, context.seed)) ||
            (line->given[k - option_table] &&
             (k->field == offsetof(settings, context.time_limit) ||
              k->field == offsetof(settings, context.memory_limit))));
}

/** Whether another option on the line has set the value that this one shows. */
static int is_taken(const option_spec *k, const cli *line)
{
    for (const option_spec *o = option_table; o->name; o++) {
        if (o != k && o->field == k->field && line->given[o - option_table]) {
            return 1;
        }
    }
    return 0;
}

/** A row for each value.  Texts that begin like a number stand in quotes: pages typeset numbers. */
static void setting_fact(frg_report *r, const option_spec *k, const settings *s, int given)
{
    const char *words[MAX_SET];
    char name[64], number[64], text[1024];
    const int n = option_words(k, s, words, MAX_SET, number), is_text = n > 0 && words[0] != number;
    snprintf(name, sizeof name, "--%s", k->name);
    if (!given && k->fallback && (n == 0 || strcmp(words[0], "0") == 0)) {
        frg_report_fact(r, name, k->fallback);
        return;
    }
    for (int i = 0; i < n; i++) {
        const int letter = (words[i][0] | 32) >= 'a' && (words[i][0] | 32) <= 'z';
        const int plain = !is_text || (letter && is_plain(words[i]));
        char *const longer = shell_word(words[i], plain, text, sizeof text) < sizeof text
                                 ? NULL
                                 : malloc(4 * strlen(words[i]) + 3);
        if (longer) {
            (void)shell_word(words[i], plain, longer, 4 * strlen(words[i]) + 3);
        }
        frg_report_fact(r, name, longer ? longer : text);
        free(longer);
    }
}

/** The rows under a heading (NULL: none), which is left out where there are no rows. */
static void setting_facts(frg_report *r, const cli *line, int given, const char *heading)
{
    for (const option_spec *k = option_table; k->name; k++) {
        const int is_given = line->given[k - option_table];
        if (is_of_the_run(k, line) && is_given == given && (given || !is_taken(k, line))) {
            if (heading) {
                frg_report_heading(r, heading);
                heading = NULL;
            }
            setting_fact(r, k, &line->set, given);
        }
    }
}

void page_run_facts(frg_report *r, const cli *c, const cli *line)
{
    char text[1024];
    char *const command = command_text(line);
    machine m;
    machine_read(&m);
    frg_report_heading(r, "Run");
    frg_report_fact(r, "Command", command ? command : "");
    free(command);
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
    setting_facts(r, line, 1, NULL);
    setting_facts(r, line, 0, "Settings not given");
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
    page_run_facts(r, c, c);
}

int save_plain_page(cli *c, const char *title, report_writer write, const void *job)
{
    char name[160];
    const shown s = {write, job};
    const int format = c->set.format;
    const int has_name = strncmp(title, "fourge ", 7) == 0;
    snprintf(name, sizeof name, "%s%s", has_name ? "" : "fourge: ", title);
    c->set.format = FORMAT_TEXT;
    const int code = save_page(c, name, shown_page, &s);
    c->set.format = format;
    return code;
}
