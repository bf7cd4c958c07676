/* cli_checkpoint.c - --checkpoint FILE, and `fourge resume FILE`.
 *
 * A state is the command line, the folder it was given in, and what the solver needs: the columns
 * that are demeaned so far with their certificates (the columns that are left are the work that is
 * left), the state of an alignment, the answers of a Gaussian process to its search, or an
 * optimizer with its network.  The options' hash covers the line, the version and the CPU level,
 * because these decide the bits, and not the number of threads, which does not.
 *
 * Before it reads its data a run writes a file with the line alone, so that one that is killed
 * before its first state can be started anew by `fourge resume` too.
 *
 *     resume FILE WORDS...     the line of FILE but its time limit, then WORDS, as if they had been
 *                              typed, with the state in hand
 *
 * States are written between blocks of columns, so seldom that they take a twentieth of the time at
 * most, and when the run is stopped.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_checkpoint.h"

enum { SHARE = 20 };
static const char BEGUN[] = "begun"; /* the solver of a file that holds the line alone */

/* ---- the line -------------------------------------------------------------------------------- */

char *join_words(char **words, int count, int64_t *length)
{
    *length = 0;
    for (int i = 0; i < count; i++) {
        *length += (int64_t)strlen(words[i]) + 1;
    }
    char *line = malloc((size_t)*length + 1), *to = line;
    for (int i = 0; line && i < count; i++) {
        to = stpcpy(to, words[i]) + 1;
    }
    return line;
}

static uint64_t hash_options(const cli *c, const char *line, int64_t length)
{
    uint64_t h = frg_hash(0, line, length);
    h = frg_hash(h, frg_version(), (int64_t)strlen(frg_version()));
    return frg_hash(h, frg_isa(c->ctx), (int64_t)strlen(frg_isa(c->ctx)));
}

uint64_t hash_array(uint64_t seed, const frg_array *a)
{
    int64_t count = (int64_t)frg_sizeof(a->dtype);
    for (int i = 0; i < a->ndim; i++) {
        count *= a->shape[i];
        seed = frg_hash(seed, &a->shape[i], sizeof a->shape[i]);
        seed = frg_hash(seed, &a->stride[i], sizeof a->stride[i]);
    }
    return frg_hash(seed, (const char *)a->data + a->offset, count);
}

uint64_t hash_table(const frg_table *t)
{
    uint64_t h = 0;
    for (int64_t k = 0; k < frg_table_columns(t); k++) {
        const frg_column *const column = frg_table_column(t, k);
        const void *const values = column->numbers    ? (const void *)column->numbers
                                   : column->integers ? (const void *)column->integers
                                                      : (const void *)column->codes;
        const size_t each = column->numbers || column->integers ? 8 : 4;
        h = frg_hash(h, column->name, (int64_t)strlen(column->name));
        h = frg_hash(h + (uint64_t)column->kind, values, column->n * (int64_t)each);
        for (int64_t l = 0; l < column->n_labels; l++) {
            h = frg_hash(h, column->labels[l], (int64_t)strlen(column->labels[l]));
        }
    }
    return h;
}

/* ---- saving states --------------------------------------------------------------------------- */

int keeper_open(keeper *k, cli *c, const char *solver, int64_t item, uint64_t data)
{
    *k = (keeper){.c = c, .solver = solver, .item = item, .data = data};
    char folder[4096] = "";
    int64_t count = 0;
    if (c->resumed) {
        const char *const line = frg_checkpoint_get(c->resumed, "line", &count);
        k->line = malloc((size_t)count + 1);
        if (k->line) {
            memcpy(k->line, line, (size_t)count);
        }
        k->line_bytes = count;
    } else {
        k->line = join_words(c->argv, c->argc, &k->line_bytes);
    }
    k->folder = getcwd(folder, sizeof folder) ? strdup(folder) : NULL;
    if (!k->line || !k->folder) {
        return cli_fail_memory(c);
    }
    k->options = hash_options(c, k->line, k->line_bytes);
    const frg_status status =
        c->resumed ? frg_checkpoint_check(c->resumed, solver, k->options, data) : FRG_OK;
    return status < 0 ? cli_fail_library(c->resumed_by, status) : 0;
}

void keeper_close(keeper *k)
{
    free(k->line);
    free(k->folder);
}

frg_status keeper_load(void *user, int64_t n, int64_t p, void *values, frg_demean_column *columns,
                       int64_t *done, frg_status *worst)
{
    const keeper *const k = user;
    const frg_checkpoint *const saved = k->c->resumed;
    int64_t bytes = 0, reports = 0, state = 0;
    *done = 0;
    if (!saved) {
        return FRG_OK;
    }
    const void *const from = frg_checkpoint_get(saved, "columns", &bytes),
                      *const certificates = frg_checkpoint_get(saved, "reports", &reports),
                      *const run = frg_checkpoint_get(saved, "run", &state);
    int64_t figures[2] = {0};
    if (!from || !certificates || !run || state != sizeof figures) {
        return FRG_MISMATCH;
    }
    memcpy(figures, run, sizeof figures);
    if (figures[0] < 0 || figures[0] >= p || bytes != figures[0] * n * k->item ||
        reports != figures[0] * (int64_t)sizeof *columns) {
        return FRG_MISMATCH;
    }
    memcpy(values, from, (size_t)bytes);
    memcpy(columns, certificates, (size_t)reports);
    *done = figures[0];
    *worst = (frg_status)figures[1];
    return FRG_OK;
}

/** Whether two lines have the same words behind the program's own name. */
static int same_line(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    const int64_t from_a = a ? (int64_t)strnlen(a, (size_t)a_bytes) : 0,
                  from_b = b ? (int64_t)strnlen(b, (size_t)b_bytes) : 0;
    return a && b && a_bytes - from_a == b_bytes - from_b &&
           memcmp(a + from_a, b + from_b, (size_t)(a_bytes - from_a)) == 0;
}

/** Whether a state has the line and the folder of this run, of one that is resumed those of the
 *  state it came from. */
static int is_of_run(const frg_checkpoint *state, const cli *c)
{
    char here[4096] = "";
    int64_t line_bytes = 0, folder_bytes = 0, own_bytes = 0;
    const char *const line = frg_checkpoint_get(state, "line", &line_bytes);
    const char *const folder = frg_checkpoint_get(state, "folder", &folder_bytes);
    char *const typed = c->origin ? NULL : join_words(c->argv, c->argc, &own_bytes);
    const char *const own = c->origin ? frg_checkpoint_get(c->origin, "line", &own_bytes) : typed;
    const int same = same_line(line, line_bytes, own, own_bytes) && getcwd(here, sizeof here) &&
                     folder && folder_bytes == (int64_t)strlen(here) + 1 &&
                     memcmp(folder, here, (size_t)folder_bytes) == 0;
    free(typed);
    return same;
}

/** What stands at FILE before the run: nothing, nothing in it, or a state of this line in this
 *  folder.  Of another run it is the work of hours, and what is no checkpoint is nobody's to
 *  replace. */
static int check_replaced(cli *c)
{
    const char *const path = c->set.checkpoint;
    struct stat file;
    frg_checkpoint *state = NULL;
    char hint[256];
    if (stat(path, &file) == 0 && (!S_ISREG(file.st_mode) || file.st_size == 0)) {
        return 0;
    }
    const frg_status status = frg_checkpoint_load(&state, c->ctx, path);
    int code = 0;
    if (status == FRG_BAD_DATA || status == FRG_MISMATCH) {
        code = cli_fail(c, "E_CREATE", path, "name another file, or remove this one first",
                        "--checkpoint would replace '%s': %s", path, frg_message(c->ctx));
    } else if (status != FRG_OK && status != FRG_NO_INPUT) {
        code = cli_fail_read(c, status);
    } else if (state && !is_of_run(state, c)) {
        snprintf(hint, sizeof hint,
                 "fourge resume %s goes on with that one; name another file, or remove this one",
                 path);
        code = cli_fail(c, "E_CREATE", path, hint,
                        "--checkpoint would replace '%s', the state of another run", path);
    }
    frg_checkpoint_destroy(state);
    return code;
}

int checkpoint_begin(cli *c)
{
    keeper k;
    frg_checkpoint *state;
    if (!c->set.checkpoint || c->set.dry_run) {
        return 0;
    }
    int code = check_replaced(c);
    if (code || c->resumed) {
        return code;
    }
    code = keeper_open(&k, c, BEGUN, 1, 0);
    if (!code) {
        frg_status status = keeper_begin(&k, &state);
        status = keeper_write(&k, state, status);
        code = status < 0 ? cli_fail_library(c, status) : 0;
        c->begun = !code;
    }
    keeper_close(&k);
    return code;
}

void checkpoint_end(cli *c, int code)
{
    if (c->begun && !c->origin && code > 1 && !cli_signalled()) { /* a resumed one stays */
        remove(c->set.checkpoint);
        kept_rows_remove(c);
    }
}

int keeper_is_due(const keeper *k, int stopped)
{
    return stopped || !(k->saved > 0) || now_seconds() - k->saved >= SHARE * k->cost;
}

frg_status keeper_begin(keeper *k, frg_checkpoint **state)
{
    k->began = now_seconds();
    frg_status status = frg_checkpoint_create(state, k->c->ctx, k->solver, k->options, k->data);
    if (status >= 0) {
        status = frg_checkpoint_put(*state, "line", k->line, k->line_bytes);
    }
    if (status >= 0) {
        status = frg_checkpoint_put(*state, "folder", k->folder, (int64_t)strlen(k->folder) + 1);
    }
    return status;
}

frg_status keeper_write(keeper *k, frg_checkpoint *state, frg_status status)
{
    if (status >= 0) {
        status = frg_checkpoint_save(state, k->c->set.checkpoint);
    }
    frg_checkpoint_destroy(state);
    k->saved = now_seconds();
    k->cost = k->saved - k->began;
    k->c->begun = k->c->begun && status < 0;
    return status;
}

frg_status keeper_save_solver(keeper *k, const void *solver, keeper_put put, int stopped)
{
    if (!keeper_is_due(k, stopped)) {
        return FRG_OK;
    }
    frg_checkpoint *state;
    frg_status status = keeper_begin(k, &state);
    if (status >= 0) {
        status = put(solver, state);
    }
    return keeper_write(k, state, status);
}

frg_status keeper_save(void *user, int64_t n, int64_t p, const void *values,
                       const frg_demean_column *columns, int64_t done, frg_status worst,
                       int stopped)
{
    (void)p;
    keeper *const k = user;
    if (!keeper_is_due(k, stopped)) {
        return FRG_OK;
    }
    const int64_t figures[2] = {done, worst};
    const struct {
        const char *name;
        const void *bytes;
        int64_t count;
    } sections[] = {{"run", figures, sizeof figures},
                    {"columns", values, done * n * k->item},
                    {"reports", columns, done * (int64_t)sizeof *columns}};
    frg_checkpoint *state;
    frg_status status = keeper_begin(k, &state);
    for (size_t i = 0; i < sizeof sections / sizeof *sections && status >= 0; i++) {
        status = frg_checkpoint_put(state, sections[i].name, sections[i].bytes, sections[i].count);
    }
    return keeper_write(k, state, status);
}

int keeper_stopped(const cli *c, frg_status status)
{
    char hint[256];
    if (!c->set.checkpoint || c->begun || access(c->set.checkpoint, F_OK) != 0) {
        return cli_check(c, status, "there was a result");
    }
    snprintf(hint, sizeof hint, "fourge resume %s goes on", c->set.checkpoint);
    return cli_fail_stopped(c, status, hint, "%s; the state is in %s", frg_status_sentence(status),
                            c->set.checkpoint);
}

/* ---- going on -------------------------------------------------------------------------------- */

/** How many words from this one on are the limit that stopped the run: it was that run's, not the
 *  next one's. */
static int is_time_limit(const char *word)
{
    static const char name[] = "--time-limit";
    const size_t length = sizeof name - 1;
    return strcmp(word, name) == 0 ? 2 : strncmp(word, name, length) == 0 && word[length] == '=';
}

/** An option behind FILE that could change numbers: what is finished was computed with the run's
 *  own. */
static const option_spec *changes_numbers(const char *word)
{
    static const char *const harmless[] = {"report", "checkpoint"};
    const int is_long = strncmp(word, "--", 2) == 0;
    const option_spec *o = is_long ? find_option(word + 2, strcspn(word + 2, "="), CMD_ALL) : NULL;
    if (!o || o->commands & CMD_RESUME) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        if (strcmp(o->name, harmless[i]) == 0) {
            return NULL;
        }
    }
    return o;
}

static int check_words(const cli *c)
{
    for (int i = 1; i < c->n_arguments; i++) {
        const option_spec *const o = changes_numbers(c->arguments[i]);
        if (o) {
            return cli_fail(c, "E_MISMATCH", c->arguments[0], "leave it out, or start the run anew",
                            "--%s is an option of the run, and '%s' goes on with those it had",
                            o->name, c->arguments[0]);
        }
    }
    return 0;
}

/** The words of the saved line but its time limit, then those behind FILE; NULL where memory is
 *  out.  Free it alone. */
static char **make_words(const cli *c, char *line, int64_t length, int *count)
{
    *count = 0;
    for (int64_t i = 0; i < length; i++) {
        *count += line[i] == '\0';
    }
    char **words = calloc((size_t)(*count + c->n_arguments) + 1, sizeof *words);
    const int saved = *count;
    *count = 0;
    for (int i = 0, skip = 0; words && i < saved; i++, line += strlen(line) + 1) {
        skip = skip > 0 ? skip : is_time_limit(line);
        if (skip == 0) {
            words[(*count)++] = line;
        }
        skip -= skip > 0;
    }
    for (int i = 1; words && i < c->n_arguments; i++) {
        words[(*count)++] = (char *)(uintptr_t)c->arguments[i];
    }
    return words;
}

static int go_on(cli *c, frg_checkpoint *state)
{
    int64_t length = 0, folder_length = 0;
    const char *const saved = frg_checkpoint_get(state, "line", &length);
    const char *const folder = frg_checkpoint_get(state, "folder", &folder_length);
    if (!saved || length < 1 || saved[length - 1] != '\0' || !folder || folder_length < 1 ||
        folder[folder_length - 1] != '\0') {
        return cli_fail(c, "E_CHECKPOINT", c->arguments[0], NULL,
                        "'%s' holds no command of this program", c->arguments[0]);
    }
    const int rows = kept_rows_there(c->arguments[0]);
    if (chdir(folder) != 0) {
        return cli_fail(c, "E_NO_INPUT", folder, NULL, "the folder of the run, '%s', is gone",
                        folder);
    }
    int count = 0;
    char *line = malloc((size_t)length);
    cli *next = calloc(1, sizeof *next);
    char **words = NULL;
    if (line) {
        memcpy(line, saved, (size_t)length);
        words = make_words(c, line, length, &count);
    }
    int code;
    if (words && next) {
        const int begun = strcmp(frg_checkpoint_solver(state), BEGUN) == 0;
        if (begun && !c->set.quiet) {
            fprintf(stderr, "fourge: there is no state in '%s' yet: the run %s\n", c->arguments[0],
                    rows ? "goes on from its rows" : "is started anew");
        }
        next->origin = state;
        next->resumed = begun ? NULL : state;
        next->resumed_by = c;
        code = cli_run(next, count, words);
    } else {
        code = cli_fail_memory(c);
    }
    free(words);
    free(next);
    free(line);
    return code;
}

/** Options in front of FILE would be those of reading it. */
static int check_places(const cli *c)
{
    char where[80], hint[160];
    for (const option_spec *o = option_table; o->name; o++) {
        if (c->given[o - option_table]) {
            snprintf(where, sizeof where, "--%s", o->name);
            snprintf(hint, sizeof hint, "fourge resume %s %s%s%s", c->arguments[0], where,
                     option_takes_value(o) ? " " : "", option_takes_value(o) ? o->value : "");
            return cli_fail(c, "E_OPTION", where, hint,
                            "%s stands in front of FILE, options of the run belong behind it",
                            where);
        }
    }
    return 0;
}

int command_resume(cli *c)
{
    frg_checkpoint *state = NULL;
    int code = check_places(c);
    code = code ? code : cli_open(c);
    code = code ? code : check_words(c);
    if (!code) {
        const frg_status status = frg_checkpoint_load(&state, c->ctx, c->arguments[0]);
        code = status == FRG_NO_INPUT && access(c->arguments[0], F_OK) != 0
                   ? cli_fail(c, "E_NO_INPUT", c->arguments[0],
                              "check the name; a run that was killed before it wrote the file is "
                              "started anew by its own command",
                              "%s", frg_message(c->ctx))
               : status != FRG_OK ? cli_fail_read(c, status)
                                  : 0;
    }
    if (!code) {
        cli_show_warnings(c);
        code = go_on(c, state);
    }
    frg_checkpoint_destroy(state);
    return code;
}
