/* cli_paths.c - what can be said of a line's files before the work: folders that are not there, and
 * files named twice, two results for one file or for standard output, or a result in the place of
 * what is read.
 *
 * Results appear whole, by a rename, so that the second of two would silently be all that is left,
 * and a table of data would be gone.  An array may take the place of the array that it goes on
 * from.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

typedef struct {
    const char *option; /* "": an argument */
    const char *path;
} named_file;

enum { MAX_FILES = 48, FOLDER_ROOM = 4096 };

/** Where the last name of a path begins. */
static const char *last_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/** The folder that a path names a file of; 0 where it is there, else an errno. */
static int folder_of(const char *path, char folder[FOLDER_ROOM], struct stat *s)
{
    const size_t length = (size_t)(last_name(path) - path);
    if (length >= FOLDER_ROOM) {
        return ENAMETOOLONG;
    }
    snprintf(folder, FOLDER_ROOM, "%.*s", length ? (int)length : 1, length ? path : ".");
    if (stat(folder, s) != 0) {
        return errno;
    }
    return S_ISDIR(s->st_mode) ? 0 : ENOTDIR;
}

/** Files that are there have a number, others a name in a folder that has one: ./r.html is
 *  r.html. */
static int same_file(const char *a, const char *b)
{
    struct stat x, y;
    const int there = stat(a, &x) == 0, other = stat(b, &y) == 0;
    if (there != other ||
        (there && !S_ISREG(x.st_mode))) { /* devices and pipes take any number of results */
        return 0;
    }
    char folder[FOLDER_ROOM];
    if (!there && (strcmp(last_name(a), last_name(b)) != 0 || folder_of(a, folder, &x) != 0 ||
                   folder_of(b, folder, &y) != 0)) {
        return 0;
    }
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/** The values of the options of one kind, behind the n files there are; standard: "-" alone, or all
 *  but that. */
static int gather(const cli *c, option_kind kind, int standard, named_file *files, int n)
{
    for (const option_spec *o = option_table; o->name && n < MAX_FILES; o++) {
        const char *path = o->kind == kind && o->commands & c->command->bit
                               ? *(const char *const *)((const char *)&c->set + o->field)
                               : NULL;
        if (path && (strcmp(path, "-") == 0) == standard) {
            files[n++] = (named_file){o->name, path};
        }
    }
    return n;
}

static const char *const in_place[][2] = {
    {"out", "columns"},
    {"plan", "initial-plan"},
    {"potentials", "initial-potentials"},
};

static int goes_on(const named_file *out, const named_file *in)
{
    for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++) {
        if (strcmp(out->option, in_place[i][0]) == 0 && strcmp(in->option, in_place[i][1]) == 0) {
            return 1;
        }
    }
    return 0;
}

static int shared(const cli *c, const named_file *out, const named_file *other)
{
    char where[80], what[80];
    snprintf(where, sizeof where, "--%s", out->option);
    snprintf(what, sizeof what, "%s%s", *other->option ? "--" : "the data", other->option);
    return cli_fail(c, "E_OPTION", where, "give each result a file of its own",
                    "--%s would replace '%s', the file of %s", out->option, other->path, what);
}

int cli_check_folder(const cli *c, const char *path)
{
    struct stat s;
    char folder[FOLDER_ROOM];
    int reason = *path ? folder_of(path, folder, &s) : ENOENT;
    if (!reason && stat(path, &s) != 0 && access(folder, W_OK) != 0) { /* a new name in it */
        reason = errno;
    }
    return reason ? cli_fail(c, "E_CREATE", path, NULL, "cannot create '%s': %s", path,
                             strerror(reason))
                  : 0;
}

const char *standard_output_taker(const cli *c)
{
    named_file out[MAX_FILES];
    const int n = c->command ? gather(c, KIND_OUTPUT, 1, out, 0) : 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(out[i].option, "output") != 0) {
            return out[i].option;
        }
    }
    return NULL;
}

/** A result for standard output is alone there; the table then is for standard error, see
 *  write_output. */
static int check_standard_output(const cli *c)
{
    named_file out[MAX_FILES];
    const int n = gather(c, KIND_OUTPUT, 1, out, 0);
    const char *const taker = standard_output_taker(c);
    char where[80];
    if (!taker) {
        return 0;
    }
    snprintf(where, sizeof where, "--%s", n > 1 ? out[1].option : taker);
    if (n > 1) {
        return cli_fail(c, "E_OPTION", where, "give each result a file of its own",
                        "--%s and %s both take standard output", out[0].option, where);
    }
    if (!c->set.output && c->set.format != FORMAT_TEXT) {
        return cli_fail(c, "E_OPTION", where, "give --output FILE",
                        "standard output is taken by %s", where);
    }
    return 0;
}

int cli_check_paths(const cli *c)
{
    named_file out[MAX_FILES], in[MAX_FILES];
    const int n_out = gather(c, KIND_OUTPUT, 0, out, 0);
    int n_in = 0, code = check_standard_output(c);
    for (int i = c->command->first_file; i < c->n_arguments; i++) {
        in[n_in++] = (named_file){"", c->arguments[i]};
    }
    n_in = gather(c, KIND_INPUT, 0, in, n_in);
    for (int i = 0; i < n_out && !code; i++) {
        code = cli_check_folder(c, out[i].path);
        for (int k = 0; k < i && !code; k++) {
            code = same_file(out[i].path, out[k].path) ? shared(c, &out[i], &out[k]) : 0;
        }
        for (int k = 0; k < n_in && !code; k++) {
            const int meant = goes_on(&out[i], &in[k]);
            code = !meant && same_file(out[i].path, in[k].path) ? shared(c, &out[i], &in[k]) : 0;
        }
    }
    return code;
}
