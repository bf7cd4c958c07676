/* cli_kept_rows.c - the rows of a long run beside its state, FILE.rows of --checkpoint FILE.
 *
 * Under a memory limit (--spool, --memory-limit) the table is kept as soon as it is read: a text
 * is parsed, and its words numbered, once.  `fourge resume FILE` copies it from there, whether or
 * not there is a state of the columns yet, where the data are the file that they were: of the same
 * length, last written to at the same time.  An .npy file is used where it lies and not kept.  The
 * file goes when the run has a result, or failed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_checkpoint.h"

/** FILE.rows; free it.  NULL: no memory. */
static char *name_rows(const cli *c)
{
    const size_t length = strlen(c->set.checkpoint);
    char *const name = malloc(length + sizeof ".rows");
    if (name) {
        memcpy(name, c->set.checkpoint, length);
        memcpy(name + length, ".rows", sizeof ".rows");
    }
    return name;
}

uint64_t hash_source(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0) {
        return 0;
    }
    const int64_t facts[] = {s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
    return frg_hash(1, facts, sizeof facts);
}

/** Of the line, whose options say what is read and how, and the version. */
static uint64_t hash_reading(const cli *c)
{
    int64_t bytes = 0;
    char *const typed = c->origin ? NULL : join_words(c->argv, c->argc, &bytes);
    const char *const line = c->origin ? frg_checkpoint_get(c->origin, "line", &bytes) : typed;
    const uint64_t h = frg_hash(0, line, line ? bytes : 0);
    free(typed);
    return frg_hash(h, frg_version(), (int64_t)strlen(frg_version()));
}

static int is_npy(const char *path)
{
    const size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".npy") == 0;
}

/** Rows that another run's data have given are no use, and of a damaged file neither: the data are
 *  read anew, which is said; of data that have changed no run can go on. */
static int rows_failed(cli *c, frg_status status, const char *path, const char *rows)
{
    char hint[512];
    if (status == FRG_IO && strcmp(frg_error_code(c->ctx), find_error("E_CHANGED")->code) == 0) {
        snprintf(hint, sizeof hint,
                 "give the file back that it was, or remove %s and %s and start the run anew",
                 c->set.checkpoint, rows);
        return cli_fail(c, "E_CHANGED", path, hint,
                        "'%s' was written to since the run began, and '%s' has its rows", path,
                        rows);
    }
    if (status != FRG_BAD_DATA && status != FRG_MISMATCH) {
        return cli_fail_read(c, status);
    }
    if (!c->set.quiet) {
        fprintf(stderr, "fourge: %s: the data are read anew\n", frg_message(c->ctx));
    }
    return 0;
}

int kept_rows_load(cli *c, const char *path, frg_table **out)
{
    if (!c->origin || !c->set.checkpoint) {
        return 0;
    }
    char *const rows = name_rows(c);
    if (!rows) {
        return cli_fail_memory(c);
    }
    int code = 0;
    if (access(rows, F_OK) == 0) {
        const frg_status status =
            frg_table_load(out, c->ctx, rows, hash_reading(c), hash_source(path));
        code = status == FRG_OK ? 0 : rows_failed(c, status, path, rows);
    }
    free(rows);
    return code;
}

/** Is there a file at that name which is not empty and none of ours? */
static int is_foreign(const char *rows)
{
    char head[8] = "";
    FILE *const f = fopen(rows, "rb");
    const size_t got = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) {
        fclose(f);
    }
    return got > 0 && (got < sizeof head || memcmp(head, "fourgeTB", sizeof head) != 0);
}

/** Whether this run keeps the rows of `path`. */
static int keeps_rows(const cli *c, const char *path)
{
    return c->set.checkpoint && c->set.context.spool && !c->set.dry_run && !is_npy(path);
}

int kept_rows_check(cli *c, const char *path)
{
    if (!keeps_rows(c, path)) {
        return 0;
    }
    char *const rows = name_rows(c);
    const int code =
        !rows ? cli_fail_memory(c)
        : is_foreign(rows)
            ? cli_fail(c, "E_CREATE", rows, "name another file, or remove this one first",
                       "--checkpoint would replace '%s', which holds no rows of a run", rows)
            : 0;
    free(rows);
    return code;
}

int kept_rows_save(cli *c, const char *path, uint64_t source, const frg_table *t)
{
    if (!keeps_rows(c, path)) {
        return 0;
    }
    char *const rows = name_rows(c);
    if (!rows) {
        return cli_fail_memory(c);
    }
    const frg_status status = frg_table_save(t, c->ctx, rows, hash_reading(c), source);
    free(rows);
    return cli_check(c, status, "the rows were kept");
}

void kept_rows_remove(const cli *c)
{
    char *const rows = c->set.checkpoint ? name_rows(c) : NULL;
    if (rows && !is_foreign(rows)) {
        remove(rows);
    }
    free(rows);
}
