/* cli_kept_rows.c - the rows of a long run beside its state: FILE.rows, FILE.codes and FILE.order
 * of --checkpoint FILE.
 *
 * Under a memory limit (--spool, --memory-limit) the table is kept as soon as it is read: a text
 * is parsed, and its words numbered, once.  So are the levels of the effects once they are
 * numbered, and the order of the rows once they are sorted.  `fourge resume FILE` copies them from
 * there, whether or not there is a state of the columns yet, where the data are the file that they
 * were: of the same length, last written to at the same time.  An .npy file is used where it lies
 * and not kept.  The files go when the run has a result, or failed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_checkpoint.h"

/** The files beside FILE, and their first bytes. */
static const struct {
    const char *end, *magic;
} kept[] = {{".rows", "fourgeTB"}, {".codes", "fourgeCO"}, {".order", "fourgeOR"}};
enum { ROWS, CODES, ORDER, KEPT, MAGIC = 8 };

/** FILE with the end of such a file; free it.  NULL: no memory. */
static char *name_beside(const char *file, int which)
{
    const size_t length = strlen(file), more = strlen(kept[which].end) + 1;
    char *const name = malloc(length + more);
    if (name) {
        memcpy(name, file, length);
        memcpy(name + length, kept[which].end, more);
    }
    return name;
}

int kept_rows_there(const char *file)
{
    int there = 0;
    for (int i = 0; i < KEPT; i++) {
        char *const name = name_beside(file, i);
        there = there || (name && access(name, F_OK) == 0);
        free(name);
    }
    return there;
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
    char *const rows = name_beside(c->set.checkpoint, ROWS);
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
static int is_foreign(const char *name, int which)
{
    char head[MAGIC] = "";
    FILE *const f = fopen(name, "rb");
    const size_t got = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) {
        fclose(f);
    }
    return got > 0 && (got < sizeof head || memcmp(head, kept[which].magic, sizeof head) != 0);
}

int keeps_layout(const cli *c)
{
    return c->set.checkpoint && c->set.context.spool;
}

/** Whether it keeps the rows of `path`. */
static int keeps_rows(const cli *c, const char *path)
{
    return keeps_layout(c) && !is_npy(path);
}

size_t kept_rows_bytes(const cli *c, const char *path, const frg_table *t)
{
    return keeps_rows(c, path) ? frg_table_save_bytes(t) : 0;
}

int kept_rows_check(cli *c)
{
    int code = 0;
    for (int i = 0; keeps_layout(c) && !c->set.dry_run && i < KEPT && !code; i++) {
        char *const name = name_beside(c->set.checkpoint, i);
        code = !name ? cli_fail_memory(c)
               : is_foreign(name, i)
                   ? cli_fail(c, "E_CREATE", name, "name another file, or remove this one first",
                              "--checkpoint would replace '%s', which holds no rows of a run", name)
                   : 0;
        free(name);
    }
    return code;
}

int kept_rows_save(cli *c, const char *path, uint64_t source, const frg_table *t)
{
    if (!keeps_rows(c, path) || c->set.dry_run) {
        return 0;
    }
    char *const rows = name_beside(c->set.checkpoint, ROWS);
    if (!rows) {
        return cli_fail_memory(c);
    }
    const frg_status status = frg_table_save(t, c->ctx, rows, hash_reading(c), source);
    free(rows);
    return cli_check(c, status, "the rows were kept");
}

int kept_layout_open(kept_layout *k, cli *c, uint64_t source)
{
    *k = (kept_layout){.files = NULL};
    if (!keeps_layout(c) || c->set.dry_run) {
        return 0;
    }
    k->codes = name_beside(c->set.checkpoint, CODES);
    k->order = name_beside(c->set.checkpoint, ORDER);
    k->own = (frg_layout_files){k->codes, k->order, hash_reading(c), source};
    k->files = &k->own;
    return k->codes && k->order ? 0 : cli_fail_memory(c);
}

void kept_layout_close(kept_layout *k)
{
    free(k->codes);
    free(k->order);
}

int kept_layout_failed(cli *c, const kept_layout *k, frg_status status)
{
    const char *const where = frg_error_where(c->ctx);
    const int own = k->files && (strcmp(where, k->codes) == 0 || strcmp(where, k->order) == 0);
    char hint[512];
    if (!own || strcmp(frg_error_code(c->ctx), find_error("E_CHANGED")->code) != 0) {
        return cli_fail_library(c, status);
    }
    snprintf(hint, sizeof hint,
             "give the data back that they were, or remove %s and %s and start the run anew",
             c->set.checkpoint, where);
    return cli_fail(c, "E_CHANGED", where, hint, "%s", frg_message(c->ctx));
}

void kept_rows_remove(const cli *c)
{
    for (int i = 0; c->set.checkpoint && i < KEPT; i++) {
        char *const name = name_beside(c->set.checkpoint, i);
        if (name && !is_foreign(name, i)) {
            remove(name);
        }
        free(name);
    }
}
