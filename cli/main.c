/* main.c - the program fourge: reads the command line, sets up signals and the context, runs one
 * command.
 *
 * Exit codes: those of frg_status_exit_code, and 130, 143 or 141 where SIGINT, SIGTERM or a closed
 * pipe ended the run.  The first signal asks the solver to stop at its next iteration, the second
 * ends at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* ---- signals --------------------------------------------------------------------------------- */

/* a handler can reach nothing but statics */
static _Atomic(frg_context *) running;
static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
    if (signalled) {
        _exit(128 + number);
    }
    signalled = number;
    frg_context *ctx = atomic_load(&running);
    if (ctx) {
        frg_interrupt(ctx);
    }
}

/** What the parent ignores (a shell's background jobs, nohup) stays ignored. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action = {.sa_handler = on_signal}, before;
        sigemptyset(&action.sa_mask);
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            sigaction(numbers[i], &action, NULL);
        }
    }
    signal(SIGPIPE, SIG_IGN); /* write_output sees EPIPE and ends quietly */
    signal(SIGXFSZ, SIG_IGN); /* a file beyond ulimit -f is an error that names it, EFBIG */
}

int cli_signalled(void)
{
    return signalled ? 128 + signalled : 0;
}

frg_status cli_over(const cli *c)
{
    const double limit = c->set.context.time_limit;
    return signalled                                       ? FRG_INTERRUPTED
           : limit > 0 && now_seconds() - c->began > limit ? FRG_TIME_LIMIT
                                                           : FRG_OK;
}

/* ---- the context ----------------------------------------------------------------------------- */

/** Says why the device is not there, which may be that of FOURGE_DEVICE. */
static int fail_device(cli *c)
{
    const frg_device asked = c->set.context.device;
    frg_device_info info;
    if (asked.kind == FRG_CPU) {
        return cli_fail(c, "E_DEVICE", "FOURGE_DEVICE", NULL,
                        "FOURGE_DEVICE names no device: cpu, cuda[:i] or opencl[:i]");
    }
    const int there = frg_device_get(asked, &info) == FRG_OK;
    const char *const by = was_given(c, "device") ? "--device" : "FOURGE_DEVICE";
    return cli_fail(c, "E_DEVICE", by, NULL, "%s: there is no such device here: %s", by,
                    there ? "it cannot be opened" : info.reason);
}

int cli_open(cli *c)
{
    c->set.context.on_progress = progress_report;
    c->set.context.on_log = progress_log;
    c->set.context.user = c;
    progress_start(&c->progress, c);
    const frg_status status = frg_context_create(&c->ctx, &c->set.context);
    if (status == FRG_NO_DEVICE) {
        return fail_device(c);
    }
    if (status < 0) {
        return status == FRG_NO_MEMORY ? cli_fail_memory(c)
                                       : cli_fail(c, "E_ARG", "", NULL, "the run's options: %s",
                                                  frg_status_sentence(status));
    }
    if (c->set.verbose) {
        fprintf(stderr, "fourge: %s, CPU level %s, %s, %d threads\n", frg_version(),
                frg_isa(c->ctx), frg_blas_name(), frg_threads(c->ctx));
    }
    c->began = now_seconds();
    atomic_store(&running, c->ctx);
    if (signalled) {
        frg_interrupt(c->ctx);
    }
    return 0;
}

int cli_open_plain(cli *c)
{
    if (!was_given(c, "device")) {
        c->set.context.device = (frg_device){FRG_CPU, 0};
    }
    return cli_open(c);
}

void cli_close(cli *c)
{
    atomic_store(&running, NULL);
    frg_context_destroy(c->ctx);
    c->ctx = NULL;
}

/* ---- the command line ------------------------------------------------------------------------ */

/** How fourge fe asks for what other programs call so; NULL: it is no word of theirs. */
static const char *word_of_others(const char *name, size_t length)
{
    static const struct {
        const char *name, *hint;
    } words[] = {{"cluster", "write --vcov cluster=COLUMN"},
                 {"robust", "write --vcov hc1"},
                 {"vce", "write --vcov hc1 or --vcov cluster=COLUMN"},
                 {"se", "write --vcov iid, hc1 or cluster=COLUMN"},
                 {"absorb", "write the effects behind a bar: 'y ~ x | f1 + f2'"},
                 {"fe", "write the effects behind a bar: 'y ~ x | f1 + f2'"},
                 {"data", "the file stands behind the formula"},
                 {"sep", "write --delimiter CHAR"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].name) == length && strncmp(words[i].name, name, length) == 0) {
            return words[i].hint;
        }
    }
    return NULL;
}

static int unknown_option(const cli *c, const char *name, size_t length, unsigned mask)
{
    char where[80], hint[160];
    const int shown = (int)(length < 60 ? length : 60);
    snprintf(where, sizeof where, "--%.*s", shown, name);
    const option_spec *elsewhere = find_option(name, length, CMD_ALL); /* no spelling mistake */
    const char *near = elsewhere ? NULL : nearest_option(name, length, mask);
    const char *meant = mask == CMD_FE ? word_of_others(name, length) : NULL;
    if (meant) {
        snprintf(hint, sizeof hint, "%s", meant);
    } else if (near) {
        snprintf(hint, sizeof hint, "did you mean --%s", near);
    } else {
        snprintf(hint, sizeof hint, "fourge %s%s--help lists the options",
                 c->command ? c->command->name : "", c->command ? " " : "");
    }
    if (elsewhere && c->command) {
        return cli_fail(c, "E_OPTION", where, hint, "%s is an option of another command, not of %s",
                        where, c->command->name);
    }
    return cli_fail(c, "E_OPTION", where, hint, "unknown option %s", where);
}

static int store(cli *c, const option_spec *o, const char *value)
{
    char expected[256], where[80];
    if (!option_store(o, &c->set, value, expected)) {
        c->given[o - option_table] = 1;
        return 0;
    }
    char room[256], hint[300] = "";
    const char *near = nearest_of(o->choices, value, room);
    if (near) {
        snprintf(hint, sizeof hint, "did you mean %s", near);
    }
    snprintf(where, sizeof where, "--%s", o->name);
    return cli_fail(c, "E_OPTION", where, hint, "--%s takes %s, got '%s'", o->name, expected,
                    value);
}

int was_given(const cli *c, const char *name)
{
    const unsigned of = c->command ? c->command->bit : CMD_ALL; /* none: fourge --version */
    const option_spec *const o = find_option(name, strlen(name), of);
    return o && c->given[o - option_table];
}

void take_given(const cli *c, size_t from, size_t bytes, void *to)
{
    for (const option_spec *o = option_table; o->name; o++) {
        if (c->given[o - option_table] && o->field >= from && o->field < from + bytes) {
            memcpy((char *)to + (o->field - from), (const char *)&c->set + o->field,
                   option_bytes(o));
        }
    }
}

/** The value after an option; text that looks like another option is taken for a forgotten
 *  value. */
static int needs_value(const cli *c, const option_spec *o)
{
    char where[80];
    snprintf(where, sizeof where, "--%s", o->name);
    return cli_fail(c, "E_OPTION", where, "", "--%s needs a value: --%s %s", o->name, o->name,
                    o->value);
}

static int long_option(cli *c, unsigned mask, char **argv, int argc, int *at)
{
    const char *name = argv[*at] + 2;
    const char *equals = strchr(name, '=');
    const size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const option_spec *o = find_option(name, length, mask);
    if (!o) {
        return unknown_option(c, name, length, mask);
    }
    if (!option_takes_value(o)) {
        char where[80];
        snprintf(where, sizeof where, "--%s", o->name);
        return equals ? cli_fail(c, "E_OPTION", where, "", "%s takes no value, got '%s'", where,
                                 equals + 1)
                      : store(c, o, "");
    }
    if (equals) {
        return store(c, o, equals + 1);
    }
    if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0) {
        return needs_value(c, o);
    }
    return store(c, o, argv[++*at]);
}

static const option_spec *letter_option(char letter, unsigned mask)
{
    for (const option_spec *o = option_table; o->name; o++) {
        if (o->letter == letter && o->commands & mask) {
            return o;
        }
    }
    return NULL;
}

/** -threads is no -t: a word behind one dash that nearly is a long option is reported as that. */
static int unknown_letter(const cli *c, char letter, const char *word, unsigned mask)
{
    char where[8], hint[80] = "--help lists the options";
    const size_t length = strcspn(word + 1, "=");
    const char *near = length > 2 ? nearest_option(word + 1, length, mask) : NULL;
    if (near) {
        snprintf(hint, sizeof hint, "did you mean --%s", near);
    }
    snprintf(where, sizeof where, "-%c", letter);
    return cli_fail(c, "E_OPTION", where, hint, "unknown option %s", where);
}

/** -q, -vv, -o FILE, -oFILE. */
static int short_options(cli *c, unsigned mask, char **argv, int argc, int *at)
{
    for (const char *letter = argv[*at] + 1; *letter; letter++) {
        const option_spec *o = letter_option(*letter, mask);
        if (!o) {
            return unknown_letter(c, *letter, argv[*at], mask);
        }
        if (!option_takes_value(o)) {
            (void)store(c, o, "");
            continue;
        }
        if (letter[1]) {
            return store(c, o, letter + 1);
        }
        return *at + 1 < argc ? store(c, o, argv[++*at]) : needs_value(c, o);
    }
    return 0;
}

static int unknown_command(const cli *c, const char *name)
{
    char hint[160];
    const char *near = nearest_command(name);
    snprintf(hint, sizeof hint, "%s%s",
             near ? "did you mean fourge " : "fourge help lists the commands", near ? near : "");
    return cli_fail(c, "E_OPTION", name, hint, "there is no command '%s'", name);
}

static int argument(cli *c, const char *text)
{
    if (!c->command) {
        return unknown_command(c, text);
    }
    if (c->n_arguments >= c->command->max_arguments) {
        return cli_fail(c, "E_OPTION", text,
                        c->command->bit == CMD_FE
                            ? "quote a formula, so that the shell hands it on in one piece"
                            : "fourge help shows how a command is used",
                        "fourge %s takes %s%s, and '%s' is one too many", c->command->name,
                        *c->command->arguments ? c->command->arguments : "no arguments",
                        *c->command->arguments ? "" : " beside options", text);
    }
    c->arguments[c->n_arguments++] = text;
    return 0;
}

/** Where the command stands: behind the options before it, whose names say alone whether a value
 *  follows; 0: nowhere. */
static int command_place(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (text[0] != '-' || text[1] == '\0') {
            return i;
        }
        const int is_long = text[1] == '-',
                  has_value = strchr(text, '=') != NULL || (!is_long && text[2]);
        const option_spec *o = is_long ? find_option(text + 2, strcspn(text + 2, "="), CMD_ALL)
                                       : letter_option(text[1], CMD_ALL);
        i += o && option_takes_value(o) && !has_value;
    }
    return 0;
}

static int read_line(cli *c, int argc, char **argv)
{
    int options_end = 0;
    const int place = command_place(argc, argv);
    c->command = place ? find_command(argv[place]) : NULL;
    for (int i = 1; i < argc; i++) {
        if (i == place && c->command) {
            continue;
        }
        const unsigned mask = c->command ? c->command->bit : CMD_ALL;
        const char *text = argv[i];
        const int handed_on = c->command && c->command->bit == CMD_RESUME && c->n_arguments > 0;
        int code;
        if (options_end || handed_on || text[0] != '-' || text[1] == '\0') {
            code = argument(c, text);
        } else if (strcmp(text, "--") == 0) {
            options_end = 1;
            code = 0;
        } else {
            code = text[1] == '-' ? long_option(c, mask, argv, argc, &i)
                                  : short_options(c, mask, argv, argc, &i);
        }
        if (code) {
            return code;
        }
    }
    return 0;
}

/** Errors of the line itself are JSON too where --format json stands on it, before or after
 *  them. */
static int asks_json(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--format=json") == 0 ||
            (strcmp(argv[i], "--format") == 0 && i + 1 < argc &&
             strcmp(argv[i + 1], "json") == 0)) {
            return 1;
        }
    }
    return 0;
}

static int wants_color(int mode, int descriptor)
{
    if (mode != COLOR_AUTO) {
        return mode == COLOR_ALWAYS;
    }
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(descriptor) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

/** Options that are recognised and not built yet. */
static int refuse_later(const cli *c)
{
    for (const option_spec *o = option_table; o->name; o++) {
        const char *const *value = (const char *const *)((const char *)&c->set + o->field);
        if (o->state != OPTION_LATER || !*value || !(o->commands & c->command->bit)) {
            continue;
        }
        char where[80];
        snprintf(where, sizeof where, "--%s", o->name);
        return cli_fail(c, "E_UNSUPPORTED", where, NULL, "--%s %s is not built yet", o->name,
                        *value);
    }
    return 0;
}

static void version_json(frg_json *j, const cli *c, const void *job)
{
    (void)job;
    json_head(j, "fourge.version/1");
    frg_json_string(j, "commit", frg_commit());
    frg_json_string(j, "compiler", frg_compiler());
    frg_json_string(j, "blas", frg_blas_name());
    frg_json_string(j, "cpu_level", frg_isa(c->ctx));
    frg_json_string(j, "licence", "Apache-2.0");
    json_foot(j, c);
}

static void version_text(frg_report *r, const cli *c, const void *job)
{
    (void)job;
    frg_report_fact(r, "Commit", frg_commit());
    frg_report_fact(r, "Compiler", frg_compiler());
    frg_report_fact(r, "BLAS", frg_blas_name());
    frg_report_fact(r, "CPU level", frg_isa(c->ctx));
    frg_report_fact(r, "Devices", "cpu");
    frg_report_fact(r, "Licence", "Apache-2.0");
}

static int print_version(cli *c)
{
    int code = cli_open_plain(c);
    if (!code && c->set.format == FORMAT_TEXT) { /* a line each, as scripts look for them */
        printf("fourge %s (commit %s)\ncompiler: %s\nBLAS: %s\nCPU level: %s\ndevices: cpu\n"
               "licence: Apache-2.0\n",
               frg_version(), frg_commit(), frg_compiler(), frg_blas_name(), frg_isa(c->ctx));
    } else if (!code) {
        code = write_result(c, "fourge", version_json, version_text, NULL);
    }
    cli_close(c);
    return code;
}

static int check_arguments(const cli *c)
{
    if (c->n_arguments >= c->command->min_arguments) {
        return 0;
    }
    char hint[160];
    snprintf(hint, sizeof hint, "fourge %s --help", c->command->name);
    return cli_fail(c, "E_OPTION", c->command->name, hint,
                    "fourge %s needs %s, got %d of %d arguments", c->command->name,
                    c->command->arguments, c->n_arguments, c->command->min_arguments);
}

/** "align, sinkhorn": those of the words "align|sinkhorn|paths" whose bits are set. */
static void list_jobs(const char *jobs, unsigned bits, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (const char *at = jobs; at && used < room; bits >>= 1) {
        const size_t length = strcspn(at, "|");
        if (bits & 1) {
            used += (size_t)snprintf(text + used, room - used, "%s%.*s", used ? ", " : "",
                                     (int)length, at);
        }
        at = at[length] ? at + length + 1 : NULL;
    }
}

/** The subcommand, and the options that others of the command alone know: a word in vain is an
 *  error, not a surprise. */
static int check_job(cli *c)
{
    const command_spec *const k = c->command;
    char room[256], listed[128], hint[160], where[40];
    if (!k->jobs) {
        return 0;
    }
    c->job = place_of(k->jobs, c->arguments[0]);
    if (c->job < 0) {
        const char *const near = nearest_of(k->jobs, c->arguments[0], room);
        list_jobs(k->jobs, ~0u, listed, sizeof listed);
        if (near) {
            snprintf(hint, sizeof hint, "did you mean fourge %s %s", k->name, near);
        } else {
            snprintf(hint, sizeof hint, "there are %s", listed);
        }
        return cli_fail(c, "E_OPTION", c->arguments[0], hint, "fourge %s has no subcommand '%s'",
                        k->name, c->arguments[0]);
    }
    for (const option_spec *o = option_table; o->name; o++) {
        if (o->commands & k->bit && o->jobs && !(o->jobs & 1u << c->job) &&
            c->given[o - option_table]) {
            list_jobs(k->jobs, o->jobs, listed, sizeof listed);
            snprintf(where, sizeof where, "--%s", o->name);
            snprintf(hint, sizeof hint, "it is an option of fourge %s %s", k->name, listed);
            return cli_fail(c, "E_OPTION", where, hint, "%s means nothing to fourge %s %s", where,
                            k->name, c->arguments[0]);
        }
    }
    return 0;
}

/** What printf could not write is an error too; a reader that has enough is reported as by
 *  SIGPIPE. */
static int flushed(int code)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || code > 1) {
        return code;
    }
    if (errno == EPIPE) {
        return 141;
    }
    fprintf(stderr, "fourge: error FRG-IO-004: writing standard output failed: %s\n",
            strerror(errno));
    return 74;
}

void cli_end(cli *c, int code)
{
    checkpoint_end(c, code);
    _exit(flushed(code));
}

/** The words of a line, without the checks that asking for help does not need. */
static int start_line(cli *c, int argc, char **argv)
{
    c->argc = argc;
    c->argv = argv;
    c->program = argc > 0 ? argv[0] : "fourge";
    c->json_errors = asks_json(argc, argv);
    options_open();
    settings_defaults(&c->set);
    c->color_err = wants_color(COLOR_AUTO, STDERR_FILENO);
    const int code = read_line(c, argc, argv);
    if (!code) {
        c->color_err = wants_color(c->set.color, STDERR_FILENO);
        c->color_out = wants_color(c->set.color, STDOUT_FILENO) && !c->set.output;
    }
    return code;
}

static int check_line(cli *c)
{
    int code = refuse_later(c);
    code = code ? code : check_arguments(c);
    return code ? code : check_job(c);
}

int cli_read(cli *c, int argc, char **argv)
{
    const int code = start_line(c, argc, argv);
    return code ? code : check_line(c);
}

int cli_run(cli *c, int argc, char **argv)
{
    int code = start_line(c, argc, argv);
    if (code) {
        return code;
    }
    if (c->set.pages.version) {
        return print_version(c);
    }
    if (c->set.pages.explain) {
        return explain_code(c, c->set.pages.explain);
    }
    if (!c->command || c->set.pages.help || c->set.pages.options_json) {
        return command_help(c);
    }
    code = check_line(c);
    if (!code) {
        code = cli_check_paths(c);
    }
    if (!code) {
        code = c->command->run(c);
        checkpoint_end(c, code);
        cli_close(c);
    }
    return code;
}

int main(int argc, char **argv)
{
    static cli c; /* too large for the stack of a small thread; zeroed */
    catch_signals();
    return flushed(cli_run(&c, argc, argv));
}
