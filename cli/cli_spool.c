/* cli_spool.c - where arrays beyond the memory limit go, and what is said when the disk fails under
 * one.
 *
 * A page of such an array, or of an input that is mapped, that the disk does not give back is a
 * fault of the thread that touches it, SIGBUS.  There is no way back from it into the library, so
 * the handler says what happened, on standard error and as JSON where that was asked for, and ends
 * the program: the files have no names, and an output is published whole or not at all, so that
 * nothing is left behind.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

enum { EXIT_IO = 74 };

/** What the handler writes, made beforehand: it may call almost nothing. */
static struct {
    char *text, *json;
    size_t n_text, n_json;
} last_words;

static void put(int descriptor, const char *text, size_t n)
{
    const ssize_t written = write(descriptor, text, n);
    (void)written;
}

/** A page that a file has lost; other faults of this kind are the program's own. */
static void on_bad_page(int number, siginfo_t *why, void *registers)
{
    (void)registers;
    if (why->si_code != BUS_ADRERR) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    put(STDERR_FILENO, last_words.text, last_words.n_text);
    put(STDOUT_FILENO, last_words.json, last_words.n_json);
    _exit(EXIT_IO);
}

static int make_last_words(const cli *c, const char *folder)
{
    const frg_error_entry *const e = find_error("E_DISK");
    char message[512];
    snprintf(message, sizeof message,
             "a page could not be read: the disk under '%.300s' failed, or the input was cut short",
             folder);
    FILE *const text = open_memstream(&last_words.text, &last_words.n_text);
    if (text) {
        error_text(text, c, e->code, message, "", e->hint);
        fclose(text);
    }
    FILE *const json = open_memstream(&last_words.json, &last_words.n_json);
    if (json) {
        if (c->json_errors) {
            error_json(json, e->code, message, folder, e->hint);
        }
        fclose(json);
    }
    return last_words.text && last_words.json;
}

static void catch_bad_pages(const cli *c, const char *folder)
{
    struct sigaction act = {.sa_sigaction = on_bad_page, .sa_flags = SA_SIGINFO};
    sigfillset(&act.sa_mask);
    if (make_last_words(c, folder)) {
        sigaction(SIGBUS, &act, NULL);
    }
}

/** Each array has a file of its own, which stays open. */
static void allow_many_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int is_file(const char *path)
{
    struct stat s;
    return path && stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

int open_with_spool(cli *c, const char *path)
{
    frg_context_opts *const o = &c->set.context;
    const int given = o->spool != NULL;
    if (o->memory_limit > 0 && !o->spool && is_file(path)) {
        const char *const folder = getenv("TMPDIR");
        o->spool = folder && *folder ? folder : "/var/tmp";
    }
    if (o->spool) {
        allow_many_files();
        catch_bad_pages(c, o->spool);
    }
    const int code = cli_open(c);
    const frg_status status = code || !given ? FRG_OK : frg_spool_usable(c->ctx);
    return code ? code : status < 0 ? cli_fail_library(c, status) : 0;
}
