/* checkpoint.c - named sections of bytes, each with its checksum, in one file.
 *
 *     0   magic            8 bytes
 *     8   version, order   32 bits each; order is 0x01020304 as the writer's machine stores it
 *     16  solver           16 bytes, padded with NUL
 *     32  options, data    64 bits each: hashes of what the state belongs to
 *     48  sections, 0      32 bits each
 *     56  checksum         of the head (with 0 here) and of the table
 *     64  table            for each section its name, bytes, checksum: 16 + 8 + 8 bytes
 *     ..  the sections, one after another, up to the end of the file
 *
 * Saving goes through the writer, which publishes whole files alone; before that the last file is
 * renamed, so that a file that turns out to be damaged later leaves the one before it.  Loading
 * trusts nothing: every length is checked against the bytes that are there before it is used.
 */
#include "core/checkpoint_bytes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"

enum { VERSION = 1, ORDER = 0x01020304, NAME = 16, SECTIONS = 32 };
static const char magic[8] = {'f', 'o', 'u', 'r', 'g', 'e', 'C', 'K'};

typedef struct {
    char magic[8];
    uint32_t version, order;
    char solver[NAME];
    uint64_t options, data;
    uint32_t sections, zero;
    uint64_t checksum;
} head;

typedef struct {
    char name[NAME];
    uint64_t bytes, checksum;
} entry;

_Static_assert(sizeof(head) == 64 && sizeof(entry) == 32, "the layout of the file has no gaps");

struct frg_checkpoint {
    frg_context *ctx;
    head head;
    entry table[SECTIONS];
    const char *section[SECTIONS];
    char *memory, *name; /* of a loaded one */
};

/* ---- hashing --------------------------------------------------------------------------------- */

static uint64_t fold(uint64_t a, uint64_t b)
{
    const unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/** 64 x 64 -> 128 bit products folded, 8 bytes at a time; an odd constant keeps zeros from staying
 *  zero. */
uint64_t frg_hash(uint64_t seed, const void *bytes, int64_t count)
{
    const uint64_t k0 = 0x9e3779b97f4a7c15, k1 = 0xe7037ed1a0b428db;
    const char *s = bytes;
    uint64_t h = seed ^ fold((uint64_t)count ^ k0, k1), x;
    for (; count >= 8; s += 8, count -= 8) {
        memcpy(&x, s, 8);
        h = fold(h ^ x, k0) + k1;
    }
    x = 0;
    if (count > 0) {
        memcpy(&x, s, (size_t)count);
    }
    return fold(h ^ x, k1) ^ k0;
}

static uint64_t head_checksum(const frg_checkpoint *c)
{
    head h = c->head;
    h.checksum = 0;
    return frg_hash(frg_hash(0, &h, sizeof h), c->table,
                    (int64_t)(sizeof(entry) * c->head.sections));
}

/* ---- making ---------------------------------------------------------------------------------- */

frg_status frg_checkpoint_create(frg_checkpoint **out, frg_context *ctx, const char *solver,
                                 uint64_t options, uint64_t data)
{
    REQUIRE(ctx, out && solver && strlen(solver) < NAME,
            "frg_checkpoint_create takes a place and a solver's name of at most %d bytes",
            NAME - 1);
    *out = NULL;
    frg_checkpoint *c;
    TRY(NEW0(ctx, &c, 1, "a checkpoint"));
    c->ctx = ctx;
    c->head = (head){.version = VERSION, .order = ORDER, .options = options, .data = data};
    memcpy(c->head.magic, magic, sizeof magic);
    memcpy(c->head.solver, solver, strlen(solver));
    *out = c;
    return FRG_OK;
}

static int find(const frg_checkpoint *c, const char *name)
{
    int i = 0;
    while (i < (int)c->head.sections && strncmp(c->table[i].name, name, NAME) != 0) {
        i++;
    }
    return i;
}

frg_status frg_checkpoint_put(frg_checkpoint *c, const char *name, const void *bytes, int64_t count)
{
    if (!c) {
        return FRG_BAD_ARG;
    }
    REQUIRE(c->ctx, name && *name && strlen(name) < NAME && count >= 0 && (bytes || count == 0),
            "a section has a name of 1 .. %d bytes and count >= 0 bytes", NAME - 1);
    const int i = find(c, name);
    REQUIRE(c->ctx, i < SECTIONS, "a checkpoint has at most %d sections", SECTIONS);
    if (i == (int)c->head.sections) {
        c->head.sections++;
        c->table[i] = (entry){0};
        memcpy(c->table[i].name, name, strlen(name));
    }
    c->table[i].bytes = (uint64_t)count;
    c->table[i].checksum = frg_hash(0, bytes, count);
    c->section[i] = bytes;
    return FRG_OK;
}

const void *frg_checkpoint_get(const frg_checkpoint *c, const char *name, int64_t *count)
{
    const int i = c && name ? find(c, name) : 0;
    if (!c || !name || i == (int)c->head.sections) {
        return NULL;
    }
    if (count) {
        *count = (int64_t)c->table[i].bytes;
    }
    return c->section[i];
}

frg_status frgi_checkpoint_copy(const frg_checkpoint *c, const char *name, void *to, size_t bytes)
{
    int64_t count = 0;
    const void *const from = frg_checkpoint_get(c, name, &count);
    if (!from || (uint64_t)count != bytes) {
        FAIL(c->ctx, E_CHECKPOINT, "section '%s' has %lld bytes, %zu are needed", name,
             (long long)count, bytes);
    }
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    return FRG_OK;
}

frg_status frgi_checkpoint_put_all(frg_checkpoint *c, const frgi_section *sections, int count)
{
    for (int i = 0; i < count; i++) {
        TRY(frg_checkpoint_put(c, sections[i].name, sections[i].at, (int64_t)sections[i].bytes));
    }
    return FRG_OK;
}

frg_status frgi_checkpoint_copy_all(const frg_checkpoint *c, const frgi_section *sections,
                                    int count)
{
    for (int i = 0; i < count; i++) {
        TRY(frgi_checkpoint_copy(c, sections[i].name, sections[i].at, sections[i].bytes));
    }
    return FRG_OK;
}

frg_status frgi_checkpoint_unsound(const frg_checkpoint *c, const char *name)
{
    FAIL(c->ctx, E_CHECKPOINT, "section '%s' holds numbers that cannot be", name);
}

/** The file in messages. */
typedef struct {
    char text[256];
} file_name;

static file_name quoted(const frg_checkpoint *c)
{
    file_name n = {"the checkpoint"};
    if (c->name) {
        snprintf(n.text, sizeof n.text, "'%.240s'", c->name);
    }
    return n;
}

frg_status frgi_checkpoint_other_options(frg_context *ctx, const frg_checkpoint *c)
{
    FAIL(ctx, E_MISMATCH,
         "%s was written with other options, by another version of fourge or on another kind of "
         "machine",
         quoted(c).text);
}

frg_status frgi_checkpoint_other_data(frg_context *ctx, const frg_checkpoint *c)
{
    FAIL(ctx, E_MISMATCH, "%s was written for other data than these", quoted(c).text);
}

const char *frg_checkpoint_solver(const frg_checkpoint *c)
{
    return c ? c->head.solver : "";
}

frg_status frg_checkpoint_check(const frg_checkpoint *c, const char *solver, uint64_t options,
                                uint64_t data)
{
    if (!c || !solver) {
        return FRG_BAD_ARG;
    }
    if (strcmp(c->head.solver, solver) != 0) {
        FAIL(c->ctx, E_MISMATCH, "%s was written by '%s', not by '%s'", quoted(c).text,
             c->head.solver, solver);
    }
    return c->head.options != options ? frgi_checkpoint_other_options(c->ctx, c)
           : c->head.data != data     ? frgi_checkpoint_other_data(c->ctx, c)
                                      : FRG_OK;
}

void frg_checkpoint_destroy(frg_checkpoint *c)
{
    if (c) {
        frg_context *const ctx = c->ctx;
        DROP(ctx, &c->memory);
        DROP(ctx, &c->name);
        DROP(ctx, &c);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static frg_status older_name(frg_context *ctx, frgi_text *name, const char *path)
{
    return frgi_text_printf(ctx, name, "%s~", path);
}

static frg_status put_all(const frg_checkpoint *c, frgi_writer *w)
{
    head h = c->head;
    h.checksum = head_checksum(c);
    TRY(frgi_writer_put(w, &h, sizeof h));
    TRY(frgi_writer_put(w, c->table, sizeof(entry) * h.sections));
    for (uint32_t i = 0; i < h.sections; i++) {
        if (c->table[i].bytes > 0) {
            TRY(frgi_writer_put(w, c->section[i], (size_t)c->table[i].bytes));
        }
    }
    return FRG_OK;
}

frg_status frg_checkpoint_save(const frg_checkpoint *c, const char *path)
{
    if (!c) {
        return FRG_BAD_ARG;
    }
    REQUIRE(c->ctx, path && strcmp(path, "-") != 0, "a checkpoint is written to a file");
    const frg_files *const files = &c->ctx->files;
    frgi_writer *w = NULL;
    frgi_text older = {0};
    frg_status status;
    TRY_TO(done, older_name(c->ctx, &older, path));
    TRY_TO(done, frgi_writer_open(&w, c->ctx, path));
    TRY_TO(done, put_all(c, w));
    TRY_TO(done, frgi_writer_sync(
                     &w)); /* a full disk has to be known before the last state loses its name */
    /* there may be none yet; then this fails, and nothing is lost */
    const bool renamed = files->rename(path, older.text, files->user) == 0;
    status = frgi_writer_commit(&w);
    if (status < 0 && renamed) {
        (void)files->rename(older.text, path, files->user);
    }
done:
    frgi_writer_abandon(&w);
    frgi_text_free(c->ctx, &older);
    return status;
}

static frg_status damaged(frg_context *ctx, const char *name, const char *how)
{
    frgi_at(ctx, "%s", name);
    FAIL(ctx, E_CHECKPOINT, "'%s' %s", name, how);
}

static frg_status check_head(frg_context *ctx, const head *h, const char *name)
{
    if (memcmp(h->magic, magic, sizeof magic) != 0) {
        return damaged(ctx, name, "is not a checkpoint");
    }
    if (h->order != ORDER) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_MISMATCH, "'%s' was written on a machine of the other byte order", name);
    }
    if (h->version != VERSION) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_MISMATCH, "'%s' has format %u, this fourge reads %d", name, h->version,
             VERSION);
    }
    return h->sections <= SECTIONS && h->zero == 0 && h->solver[NAME - 1] == '\0'
               ? FRG_OK
               : damaged(ctx, name, "has a damaged head");
}

/** Head, table and sections out of c->memory. */
static frg_status parse(frg_checkpoint *c, size_t count, const char *name)
{
    frg_context *const ctx = c->ctx;
    if (count < sizeof c->head) {
        return damaged(ctx, name, "is not a checkpoint, or its head is cut off");
    }
    memcpy(&c->head, c->memory, sizeof c->head);
    TRY(check_head(ctx, &c->head, name));
    const size_t table = sizeof(entry) * c->head.sections;
    size_t at = sizeof c->head + table;
    if (count < at) {
        return damaged(ctx, name, "is cut off");
    }
    memcpy(c->table, c->memory + sizeof c->head, table);
    if (head_checksum(c) != c->head.checksum) {
        return damaged(ctx, name, "has a damaged head");
    }
    for (uint32_t i = 0; i < c->head.sections; i++) {
        const entry *const e = &c->table[i];
        if (e->name[NAME - 1] != '\0' || e->bytes > count - at) {
            return damaged(ctx, name, "is cut off");
        }
        c->section[i] = c->memory + at;
        if (frg_hash(0, c->section[i], (int64_t)e->bytes) != e->checksum) {
            return damaged(ctx, name, "has a damaged section");
        }
        at += (size_t)e->bytes;
    }
    return at == count ? FRG_OK : damaged(ctx, name, "has bytes behind its end");
}

frg_status frgi_checkpoint_parse(frg_checkpoint **out, frg_context *ctx, char **bytes, size_t count,
                                 const char *name)
{
    frg_checkpoint *c;
    *out = NULL;
    frg_status status;
    TRY_TO(failed, NEW0(ctx, &c, 1, "a checkpoint"));
    c->ctx = ctx;
    c->memory = *bytes;
    *bytes = NULL;
    status = frgi_strdup(ctx, &c->name, name, strlen(name));
    status = status < 0 ? status : parse(c, count, name);
    if (status >= 0) {
        *out = c;
    } else {
        frg_checkpoint_destroy(c);
    }
    return status;
failed:
    DROP(ctx, bytes);
    return status;
}

static frg_status load_one(frg_checkpoint **out, frg_context *ctx, const char *path)
{
    char *bytes;
    size_t count;
    const frg_status status = frgi_read_file(ctx, path, &bytes, &count);
    return status == FRG_OK ? frgi_checkpoint_parse(out, ctx, &bytes, count, path) : status;
}

bool frgi_checkpoint_is_there(const frg_context *ctx, const char *path)
{
    const int handle = ctx->files.open(path, 'r', ctx->files.user);
    if (handle >= 0) {
        ctx->files.close(handle, ctx->files.user);
    }
    return handle != -ENOENT && handle != -ENOTDIR;
}

frg_status frgi_checkpoint_load(frg_checkpoint **out, frg_context *ctx, const char *path)
{
    *out = NULL;
    const frg_status status = load_one(out, ctx, path);
    if (status != FRG_NO_INPUT && status != FRG_BAD_DATA) {
        return status;
    }
    frgi_text older = {0};
    frg_status again = older_name(ctx, &older, path);
    again = again < 0 ? again : load_one(out, ctx, older.text);
    if (again == FRG_OK) {
        frgi_warn(ctx, W_GENERATION, "'%s' cannot be used; '%s' is taken", path, older.text);
    }
    frgi_text_free(ctx, &older);
    return again == FRG_NO_INPUT || again == FRG_BAD_DATA ? load_one(out, ctx, path) : again;
}

frg_status frg_checkpoint_load(frg_checkpoint **out, frg_context *ctx, const char *path)
{
    REQUIRE(ctx, out && path, "frg_checkpoint_load takes a place and a path");
    frgi_run_begins(ctx);
    return frgi_checkpoint_load(out, ctx, path);
}
