/* fuzz_table.c - any bytes as the kept rows of a run, and as columns behind a sound head, which a
 * checksum keeps from an honest run: an error, or a table that holds what it says.
 *
 * The first byte says whether the others are a whole file or columns; of columns the second is how
 * many rows the table has. */
#include <errno.h>
#include <string.h>

#include "io/table_bytes.h"

#include "fuzz.h"

typedef struct {
    frg_context *ctx;
    const uint8_t *bytes;
    size_t left;
} source;

static frg_status get(void *user, void *to, size_t count)
{
    source *const s = user;
    if (count > s->left) {
        FAIL(s->ctx, E_CHECKPOINT, "it is cut off");
    }
    memcpy(to, s->bytes, count);
    s->bytes += count;
    s->left -= count;
    return FRG_OK;
}

static frg_status refuse(void *user, const char *what)
{
    const source *const s = user;
    FAIL(s->ctx, E_CHECKPOINT, "%s", what);
}

/** Touches every value and label, and finds each column by its name. */
static void check_table(const frg_table *t)
{
    for (int64_t k = 0; k < frg_table_columns(t); k++) {
        const frg_column *const c = frg_table_column(t, k);
        int64_t missing = 0;
        insist(c && c->n == frg_table_rows(t) && frg_table_find(t, c->name) != NULL);
        for (int64_t i = 0; i < c->n; i++) {
            const bool text = c->kind == FRG_CATEGORY;
            if (c->codes) {
                insist(c->codes[i] >= -1 && (!text || c->codes[i] < c->n_labels));
                insist(!text || c->codes[i] < 0 || strlen(c->labels[c->codes[i]]) < SIZE_MAX);
            }
            missing += c->numbers    ? c->numbers[i] != c->numbers[i]
                       : c->integers ? c->integers[i] == FRG_MISSING_INTEGER
                                     : c->codes[i] < 0;
        }
        insist(missing == c->n_missing);
    }
}

static void as_columns(frg_context *ctx, const uint8_t *data, size_t size)
{
    source s = {ctx, data + 1, size - 1};
    const frgi_column_source from = {ctx, get, refuse, &s, size};
    frg_table *t = NULL;
    if (frg_table_create(&t, ctx, data[0]) == FRG_OK) {
        while (s.left > 0 && frgi_column_take(&from, t) == FRG_OK) {
        }
        check_table(t);
    }
    frg_table_destroy(t);
}

/* ---- as a file ------------------------------------------------------------------------------- */

static int open_bytes(const char *path, char mode, void *user)
{
    (void)path, (void)user;
    return mode == 'r' ? 7 : -EACCES;
}

static int64_t read_bytes(int handle, void *to, size_t bytes, void *user)
{
    source *const s = user;
    const size_t count = bytes < s->left ? bytes : s->left;
    (void)handle;
    memcpy(to, s->bytes, count);
    s->bytes += count;
    s->left -= count;
    return (int64_t)count;
}

static int close_bytes(int handle, void *user)
{
    (void)handle, (void)user;
    return 0;
}

static int64_t size_bytes(int handle, void *user)
{
    const source *const s = user;
    (void)handle;
    return (int64_t)s->left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    source s = {.bytes = data + (size > 0), .left = size > 0 ? size - 1 : 0};
    const frg_files files = {.open = open_bytes,
                             .read = read_bytes,
                             .close = close_bytes,
                             .size = size_bytes,
                             .user = &s};
    frg_context_opts o;
    frg_context *ctx = NULL;
    frg_table *t = NULL;
    frg_context_defaults(&o, sizeof o);
    o.threads = 1;
    o.memory_limit = 1 << 26;
    o.files = &files;
    if (frg_context_create(&ctx, &o) < 0) {
        return 0;
    }
    if (size > 1 && data[0] % 2 == 0) {
        as_columns(ctx, data + 1, size - 1);
    } else {
        const frg_status status = frg_table_load(&t, ctx, "fuzz", 1, 2);
        insist((status == FRG_OK) == (t != NULL));
        check_table(t);
        frg_table_destroy(t);
    }
    insist(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
    return 0;
}
