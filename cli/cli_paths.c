/* cli_paths.c - what can be said of a line's files before the work: folders that are not there, and files named twice,
 * two results for one file, or a result in the place of what is read.
 *
 * Results appear whole, by a rename, so that the second of two would silently be all that is left, and a table of
 * data would be gone.  An array may take the place of the array that it goes on from.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

typedef struct {
    const char *option; /* "": an argument */
    const char *path;
} named_file;

enum { MAX_FILES = 48 };

static int same_file(const char *a, const char *b)
{
    struct stat x, y;
    const int there = stat(a, &x) == 0, other = stat(b, &y) == 0;
    if (there != other ||
        (there && !S_ISREG(x.st_mode))) { /* devices and pipes take any number of results */
        return 0;
    }
    return there ? x.st_dev == y.st_dev && x.st_ino == y.st_ino : strcmp(a, b) == 0;
}

/** The values of the options of one kind, behind the n files there are. */
static int gather(const cli *c, option_kind kind, named_file *files, int n)
{
    for (const option_spec *o = option_table; o->name && n < MAX_FILES; o++) {
        const char *path = o->kind == kind && o->commands & c->command->bit
                               ? *(const char *const *)((const char *)&c->set + o->field)
                               : NULL;
        if (path && strcmp(path, "-") != 0) {
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

static int check_folder(const cli *c, const char *path)
{
    struct stat s;
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path || slash - path >= (ptrdiff_t)sizeof folder) {
        return 0;
    }
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    errno = 0;
    if (stat(folder, &s) == 0 && S_ISDIR(s.st_mode)) {
        return 0;
    }
    return cli_fail(c, "E_CREATE", path, NULL, "cannot create '%s': %s", path,
                    strerror(errno ? errno : ENOTDIR));
}

int cli_check_paths(const cli *c)
{
    named_file out[MAX_FILES], in[MAX_FILES];
    const int n_out = gather(c, KIND_OUTPUT, out, 0);
    int n_in = 0;
    for (int i = 0; i < c->n_arguments; i++) {
        in[n_in++] = (named_file){"", c->arguments[i]};
    }
    n_in = gather(c, KIND_INPUT, in, n_in);
    for (int i = 0; i < n_out; i++) {
        const int code = check_folder(c, out[i].path);
        if (code) {
            return code;
        }
        for (int k = 0; k < i; k++) {
            if (same_file(out[i].path, out[k].path)) {
                return shared(c, &out[i], &out[k]);
            }
        }
        for (int k = 0; k < n_in; k++) {
            if (!goes_on(&out[i], &in[k]) && same_file(out[i].path, in[k].path)) {
                return shared(c, &out[i], &in[k]);
            }
        }
    }
    return 0;
}
