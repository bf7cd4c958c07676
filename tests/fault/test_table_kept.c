/* test_table_kept.c - tables in files as they lie in memory: round trips, every truncation, every
 * flipped bit, other options and sources, failing memory and files. */
#include <math.h>
#include <unistd.h>

#include "fault.h"
#include "fourge/table.h"

enum { ROWS = 40000 }; /* larger than a write buffer */

static char folder[] = "/tmp/fourge_table_XXXXXX";
static char path[sizeof folder + 16];

static void enter(void)
{
    strcpy(folder, "/tmp/fourge_table_XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/run.rows", folder);
}

static void leave(void)
{
    remove(path);
    CHECK(rmdir(folder) == 0);
}

/** n rows of every kind, each with missing values, and one more column. */
static frg_status make(frg_table **t, frg_context *ctx, int64_t n)
{
    static double numbers[ROWS];
    static int64_t integers[ROWS];
    static int32_t codes[ROWS], bools[ROWS];
    static const char *const labels[] = {"", "b", "a longer one, with a comma", "\xc3\xa9"};
    for (int64_t i = 0; i < n; i++) {
        numbers[i] = i % 7 == 3 ? (double)NAN : i % 5 ? 1 / (double)(i + 1) : -0.0;
        integers[i] = i % 11 == 2 ? FRG_MISSING_INTEGER : i * 1000003;
        codes[i] = (int32_t)(i % 5) - 1;
        bools[i] = (int32_t)(i % 3) - 1;
    }
    frg_status s = frg_table_create(t, ctx, n);
    s = s < 0 ? s : frg_table_add_numbers(*t, "x", numbers);
    s = s < 0 ? s : frg_table_add_integers(*t, "a longer name", integers);
    s = s < 0 ? s : frg_table_add_codes(*t, "c", codes, labels, 4);
    s = s < 0 ? s : frg_table_add_bools(*t, "d", bools);
    return s;
}

static size_t bytes_of(const frg_column *c)
{
    return (size_t)c->n * (c->numbers || c->integers ? 8 : 4);
}

static const void *values_of(const frg_column *c)
{
    return c->numbers    ? (const void *)c->numbers
           : c->integers ? (const void *)c->integers
                         : (const void *)c->codes;
}

static void compare(const frg_table *got, const frg_table *want)
{
    CHECK_INT(frg_table_rows(got), frg_table_rows(want));
    CHECK_INT(frg_table_columns(got), frg_table_columns(want));
    for (int64_t k = 0; k < frg_table_columns(want); k++) {
        const frg_column *const g = frg_table_column(got, k), *const w = frg_table_column(want, k);
        if (!CHECK(g && g->kind == w->kind && g->n == w->n && g->n_labels == w->n_labels))
            return;
        CHECK_TEXT(g->name, w->name);
        CHECK(g->n_missing == w->n_missing && g->ordered == w->ordered &&
              g->labelled == w->labelled);
        CHECK_BITS(values_of(g), values_of(w), bytes_of(w));
        for (int64_t l = 0; l < w->n_labels; l++)
            CHECK_TEXT(g->labels[l], w->labels[l]);
        CHECK(frg_table_find(got, w->name) == g);
    }
}

static void round_trip(void)
{
    enter();
    frg_context *const ctx = test_context();
    const int64_t sizes[] = {0, 1, 7, ROWS};
    for (int i = 0; i < 4; i++) {
        frg_table *t = NULL, *u = NULL;
        CHECK_OK(ctx, make(&t, ctx, sizes[i]));
        CHECK_OK(ctx, frg_table_save(t, ctx, path, 1, 2));
        if (CHECK_OK(ctx, frg_table_load(&u, ctx, path, 1, 2)))
            compare(u, t);
        frg_table_destroy(t);
        frg_table_destroy(u);
    }
    frg_table *none = NULL, *u = NULL; /* a table without columns has rows all the same */
    CHECK_OK(ctx, frg_table_create(&none, ctx, 12));
    CHECK_OK(ctx, frg_table_save(none, ctx, path, 1, 2));
    if (CHECK_OK(ctx, frg_table_load(&u, ctx, path, 1, 2)))
        compare(u, none);
    frg_table_destroy(none);
    frg_table_destroy(u);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
    leave();
}

static frg_status load(frg_context *ctx, uint64_t options, uint64_t source)
{
    frg_table *t = NULL;
    const frg_status s = frg_table_load(&t, ctx, path, options, source);
    CHECK((s == FRG_OK) == (t != NULL));
    frg_table_destroy(t);
    return s;
}

static void refusals(void)
{
    enter();
    frg_context *const ctx = test_context();
    frg_table *t = NULL;
    CHECK_OK(ctx, make(&t, ctx, 3));
    CHECK_STATUS(load(ctx, 1, 2), FRG_NO_INPUT);
    CHECK_STATUS(frg_table_save(t, ctx, "-", 1, 2), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_save(NULL, ctx, path, 1, 2), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_save(t, NULL, path, 1, 2), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_load(&t, NULL, path, 1, 2), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_load(NULL, ctx, path, 1, 2), FRG_BAD_ARG);
    CHECK_OK(ctx, frg_table_save(t, ctx, path, 1, 2));
    CHECK_STATUS(load(ctx, 3, 2), FRG_MISMATCH);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-011");
    CHECK(strstr(frg_message(ctx), "other options"));
    CHECK_STATUS(load(ctx, 1, 3), FRG_IO);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-016");
    CHECK_TEXT(frg_error_where(ctx), path);
    frg_interrupt(ctx);
    CHECK_STATUS(frg_table_save(t, ctx, path, 5, 6), FRG_INTERRUPTED);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
    frg_context *const next = test_context();
    CHECK_OK(next, load(next, 1, 2)); /* the one before is still there */
    frg_context_destroy(next);
    leave();
}

static void write_bytes(const char *bytes, size_t count)
{
    FILE *const f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, count, f) == count && fclose(f) == 0);
}

/** Of a small file every length and every bit; none is taken. */
static void damage(void)
{
    enter();
    frg_context *const ctx = test_context();
    frg_table *t = NULL;
    char bytes[2000];
    CHECK_OK(ctx, make(&t, ctx, 2));
    CHECK_OK(ctx, frg_table_save(t, ctx, path, 1, 2));
    FILE *const f = fopen(path, "rb");
    const size_t count = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    CHECK(f && fclose(f) == 0 && count > 300 && count < sizeof bytes);
    for (size_t n = 0; n < count; n++) {
        write_bytes(bytes, n);
        CHECK_STATUS(load(ctx, 1, 2), FRG_BAD_DATA);
    }
    for (size_t bit = 0; bit < 8 * count; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        write_bytes(bytes, count);
        const frg_status s = load(ctx, 1, 2);
        const bool format = bit >= 64 && bit < 128; /* format and byte order */
        CHECK_SAYS(s == (format ? FRG_MISMATCH : FRG_BAD_DATA), "bit %zu: %s", bit,
                   frg_status_name(s));
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    bytes[count] = 'x';
    write_bytes(bytes, count + 1);
    CHECK_STATUS(load(ctx, 1, 2), FRG_BAD_DATA);
    write_bytes(bytes, count);
    CHECK_OK(ctx, load(ctx, 1, 2));
    CHECK_INT(frg_bytes_held(ctx) > 0, 1);
    frg_table_destroy(t);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
    leave();
}

static frg_status save_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    frg_table *t = NULL;
    frg_status s = make(&t, ctx, ROWS / 4);
    remove(path);
    s = s < 0 ? s : frg_table_save(t, ctx, path, 1, 2);
    const int there = access(path, F_OK) == 0;
    CHECK(there == (s == FRG_OK));
    fault_hash(hash, &there, sizeof there);
    frg_table_destroy(t);
    return s;
}

static frg_status load_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    frg_table *t = NULL;
    const frg_status s = frg_table_load(&t, ctx, path, 1, 2);
    for (int64_t k = 0; k < frg_table_columns(t); k++) {
        const frg_column *const c = frg_table_column(t, k);
        fault_hash(hash, values_of(c), bytes_of(c));
    }
    frg_table_destroy(t);
    return s;
}

static void faults(void)
{
    enter();
    fault_sweep_files("save", save_body, NULL);
    fault_sweep("save", save_body, NULL, 1);
    frg_context *const ctx = test_context();
    frg_table *t = NULL;
    CHECK_OK(ctx, make(&t, ctx, ROWS / 4));
    CHECK_OK(ctx, frg_table_save(t, ctx, path, 1, 2));
    frg_table_destroy(t);
    frg_context_destroy(ctx);
    fault_sweep_files("load", load_body, NULL);
    CHECK(fault_sweep("load", load_body, NULL, 1) > 10);
    leave();
}

static const test_case cases[] = {
    {"round trip", round_trip}, {"refusals", refusals}, {"damage", damage}, {"faults", faults}};
TEST_MAIN(cases)
