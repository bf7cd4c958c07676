/* cmd_tour.c - `fourge tour`: the main jobs on the data that come with fourge.
 *
 * Each room has a job.  The page begins with a picture of each and what came out of it in words,
 * the terminal with the same in text; then come commands and tables, in the page with
 * certificates and settings.  Data lie in $FOURGE_DATA, beside the build, or where `cmake
 * --install` put them.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tour.h"

/** In the order of the page. */
static const tour_part *const parts[] = {&tour_fe, &tour_gp, &tour_gw, &tour_soap};

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

/* ---- commands -------------------------------------------------------------------------------- */

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

/* ---- what is shown --------------------------------------------------------------------------- */

/** Pictures first, then what they come from. */
static void build(frg_report *r, cli *c, void *const *states, double seconds, int full)
{
    const int threads = frg_threads(c->ctx);
    char text[256], a[32];
    snprintf(text, sizeof text,
             "Four jobs on data that come with fourge, done in %s by %d thread%s: what came out "
             "of each, then the commands and tables behind it.",
             seconds_text(seconds, a), threads, threads == 1 ? "" : "s");
    frg_report_paragraph(r, text);
    for (int i = 0; i < N_PARTS; i++) {
        parts[i]->picture(r, c, states[i], full);
    }
    for (int i = 0; i < N_PARTS; i++) {
        parts[i]->report(r, c, states[i], full);
    }
}

static int show_text(cli *c, void *const *states, double seconds, const char *page)
{
    frg_report *r;
    const frg_status status = frg_report_create(&r, c->ctx, "fourge tour");
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    build(r, c, states, seconds, 0);
    char text[PATH_MAX + 64];
    snprintf(text, sizeof text, "The same with plots and certificates: %s", page);
    frg_report_paragraph(r, text);
    const int code = write_report(c, r);
    frg_report_destroy(r);
    return code;
}

static int show_json(cli *c, void *const *states, const char *page)
{
    frg_json *j;
    const frg_status status = frg_json_create(&j, c->ctx);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    json_head(j, "fourge.tour/1");
    frg_json_string(j, "report", page);
    frg_json_open_array(j, "jobs");
    for (int i = 0; i < N_PARTS; i++) {
        parts[i]->json(j, c, states[i]);
    }
    frg_json_close_array(j);
    json_foot(j, c);
    const int code = write_json(c, j);
    frg_json_destroy(j);
    return code;
}

static int save_tour(cli *c, void *const *states, double seconds, const char *page)
{
    frg_report *r;
    frg_status status = frg_report_create(&r, c->ctx, "fourge tour");
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    build(r, c, states, seconds, 1);
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
    void *states[N_PARTS] = {NULL};
    const double start = now_seconds();
    int worst = 0;
    for (int i = 0; !code && i < N_PARTS; i++) {
        code = parts[i]->run(c, &states[i]);
        const int exit_code = code ? code : parts[i]->exit_code(states[i]);
        worst = exit_code > worst ? exit_code : worst;
    }
    const double seconds = now_seconds() - start;
    if (!code) { /* a page that cannot be written takes nothing else along */
        const int lost = save_tour(c, states, seconds, page);
        cli_show_warnings(c);
        code = c->set.format == FORMAT_JSON ? show_json(c, states, page)
                                            : show_text(c, states, seconds, page);
        code = lost ? lost : code;
    }
    for (int i = 0; i < N_PARTS; i++) {
        parts[i]->release(states[i]);
    }
    return code ? code : worst;
}
