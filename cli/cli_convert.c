/* cli_convert.c - Parquet and Arrow files through the command duckdb, where it is installed: it
 * writes the columns that are asked for as csv into a pipe, which is read as any other.
 *
 * Types are those of csv: texts of digits are read as numbers, dates as texts.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

/** How duckdb is made to read a kind of file. */
typedef struct {
    const char *extension, *name, *before, *function;
} foreign_kind;

static const foreign_kind kinds[] = {
    {".parquet", "Parquet", "", "read_parquet"},
    {".arrow", "Arrow", "LOAD nanoarrow; ", "read_arrow"},
    {".feather", "Arrow", "LOAD nanoarrow; ", "read_arrow"},
};

static const foreign_kind *kind_of(const char *path)
{
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t m = strlen(kinds[i].extension);
        if (n > m && strcasecmp(path + n - m, kinds[i].extension) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

/** Between quotes, those in it twice. */
static void put_quoted(FILE *to, const char *text, char quote)
{
    putc(quote, to);
    for (; *text; text++) {
        putc(*text, to);
        if (*text == quote) {
            putc(quote, to);
        }
    }
    putc(quote, to);
}

/** What duckdb is to do, for free; NULL: no memory. */
static char *make_command(const foreign_kind *kind, const char *path, const frg_table_opts *o)
{
    char *text = NULL;
    size_t length;
    FILE *const to = open_memstream(&text, &length);
    if (!to) {
        return NULL;
    }
    fprintf(to, "%sCOPY (SELECT %s", kind->before, o->n_columns ? "" : "*");
    for (int64_t i = 0; i < o->n_columns; i++) {
        fputs(i ? ", " : "", to);
        put_quoted(to, o->columns[i], '"');
    }
    fprintf(to, " FROM %s(", kind->function);
    put_quoted(to, path, '\'');
    fputs(")) TO '/dev/stdout' (FORMAT csv, HEADER)", to);
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/** The limit becomes `most`, or stays where it is lower; 0, or -1 with errno. */
static int lower_limit(int what, rlim_t most)
{
    struct rlimit r;
    if (getrlimit(what, &r) != 0) {
        return -1;
    }
    r.rlim_max = r.rlim_max < most ? r.rlim_max : most;
    r.rlim_cur = r.rlim_cur < r.rlim_max ? r.rlim_cur : r.rlim_max;
    return setrlimit(what, &r);
}

/** Starts duckdb as start does, with no right to more than it has, no files, cores of its crash or
 *  further processor time than a gigabyte takes; an errno, or 0. */
static int start_confined(const char *command, const int ends[2], pid_t *child)
{
    char *const arguments[] = {"duckdb", "-c", (char *)(uintptr_t)command, NULL};
    int failure[2]; /* the errno of a failed start */
    if (pipe2(failure, O_CLOEXEC) != 0) {
        return errno;
    }
    *child = fork();
    if (*child == 0) {
        const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        const int ready = nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
                          dup2(ends[1], STDOUT_FILENO) >= 0 && lower_limit(RLIMIT_CORE, 0) == 0 &&
                          lower_limit(RLIMIT_FSIZE, 0) == 0 && lower_limit(RLIMIT_CPU, 600) == 0 &&
                          prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
        if (ready) {
            execvp(arguments[0], arguments);
        }
        const int error = errno;
        _exit(write(failure[1], &error, sizeof error) == sizeof error ? 126 : 127);
    }
    int error = *child < 0 ? errno : 0;
    close(failure[1]);
    if (*child > 0 && read(failure[0], &error, sizeof error) == sizeof error) {
        while (waitpid(*child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    close(failure[0]);
    return error;
}

/** Starts duckdb with its output in the pipe, and with the signals that fourge ignores as at first;
 *  an errno, or 0. */
static int start(const char *command, const int ends[2], pid_t *child)
{
    char *const arguments[] = {"duckdb", "-c", (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        error = error ? error
                      : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                                         O_RDONLY, 0);
        error = error ? error
                      : posix_spawnp(child, "duckdb", &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/** Reads the csv to its end and waits for duckdb; its exit status. */
static int read_from(const cli *c, int end, pid_t child, const frg_table_opts *o, frg_table **out,
                     frg_status *status)
{
    frg_table_opts csv = *o;
    csv.format = "csv";
    csv.delimiter = ',';
    csv.header = 1;
    char pipe_path[32];
    snprintf(pipe_path, sizeof pipe_path, "/dev/fd/%d", end);
    *status = frg_table_read(out, c->ctx, pipe_path, &csv);
    close(end); /* where not all was read duckdb ends by it */
    if (*status == FRG_INTERRUPTED || *status == FRG_TIME_LIMIT) {
        kill(child, SIGTERM);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    return how;
}

static int convert(const cli *c, const foreign_kind *kind, const char *path,
                   const frg_table_opts *o, frg_table **out, frg_status *status)
{
    int ends[2];
    pid_t child;
    char *const command = make_command(kind, path, o);
    if (!command || pipe2(ends, O_CLOEXEC) != 0) {
        free(command);
        return cli_fail_memory(c);
    }
    const int error =
        o->untrusted ? start_confined(command, ends, &child) : start(command, ends, &child);
    free(command);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return cli_fail(c, "E_DECODER", path,
                        "put duckdb on the path, or convert the file to csv; in Python frames of "
                        "pyarrow and polars are taken as they are",
                        "%s files are read through the command duckdb, which cannot be started: %s",
                        kind->name, strerror(error));
    }
    const int how = read_from(c, ends[0], child, o, out, status);
    const int stopped = *status == FRG_INTERRUPTED || *status == FRG_TIME_LIMIT;
    const int cut_by_us = *status < 0 && WIFSIGNALED(how) && WTERMSIG(how) == SIGPIPE;
    if (how == 0 || stopped || cut_by_us) {
        return 0;
    }
    frg_table_destroy(*out); /* it may lack rows */
    *out = NULL;
    return cli_fail(c, "E_DECODING", path, NULL, "duckdb did not read '%s': it ended with %s %d",
                    path, WIFSIGNALED(how) ? "signal" : "status",
                    WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
}

int cli_load_table(const cli *c, const char *path, const frg_table_opts *o, frg_table **out,
                   frg_status *status)
{
    const foreign_kind *const kind = o->format ? NULL : kind_of(path);
    *out = NULL;
    if (kind) {
        return access(path, R_OK) == 0 ? convert(c, kind, path, o, out, status)
                                       : cli_fail(c, "E_NO_INPUT", path, NULL,
                                                  "cannot open '%s': %s", path, strerror(errno));
    }
    *status = frg_table_read(out, c->ctx, path, o);
    return 0;
}
