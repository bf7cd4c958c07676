/* test_table.c - tables made of arrays, and CSV written and read back. */
#include <time.h>
#include <unistd.h>

#include "unit/io_help.h"

/* A column is where it was when a table has got a hundred more: fits point to the columns of
 * their formula. */
static void columns_stay(void)
{
    frg_context *ctx = test_context();
    frg_table *t;
    const double x[2] = {1, 2};
    CHECK_OK(ctx, frg_table_create(&t, ctx, 2));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
    const frg_column *const first = frg_table_find(t, "x");
    for (int i = 0; i < 100; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        CHECK_OK(ctx, frg_table_add_numbers(t, name, x));
    }
    CHECK(frg_table_find(t, "x") == first && frg_table_column(t, 0) == first);
    CHECK_TEXT(first->name, "x");
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static void made_of_arrays(void)
{
    frg_context *ctx = test_context();
    frg_table *t;
    const double x[3] = {1.5, NAN, -0.0};
    const int64_t k[3] = {FRG_MISSING_INTEGER, 2, -3};
    const int32_t c[3] = {1, -1, 0};
    char got[300];
    CHECK_OK(ctx, frg_table_create(&t, ctx, 3));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
    CHECK_OK(ctx, frg_table_add_integers(t, "k", k));
    CHECK_OK(ctx, frg_table_add_codes(t, "c", c, (const char *const[]){"lo", "hi"}, 2));
    CHECK_OK(ctx, frg_table_add_bools(t, "b", c));
    CHECK_TEXT(table_text(t, got, sizeof got), "x:n 1.5 ? -0|k:i ? 2 -3|c:c 1=hi ? 0=lo|b:b 1 ? 0");
    CHECK(frg_table_find(t, "c")->ordered && !frg_table_find(t, "b")->ordered);
    CHECK_INT(frg_table_rows(t), 3);
    CHECK_INT(frg_table_columns(t), 4);
    for (int i = 0; i < 4; i++)
        CHECK_INT(frg_table_column(t, i)->n_missing, 1);
    CHECK(frg_table_column(t, -1) == NULL && frg_table_column(t, 4) == NULL);
    CHECK(frg_table_find(t, "k") == frg_table_column(t, 1));
    CHECK(frg_table_find(t, "K") == NULL);
    CHECK(frg_table_column(t, 0)->numbers != x); /* copied */

    CHECK_STATUS(frg_table_add_numbers(t, "x", x), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_add_numbers(t, "", x), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_add_numbers(t, NULL, x), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_add_numbers(t, "y", NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_add_codes(t, "d", c, NULL, 2), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_add_codes(t, "d", c, (const char *const[]){"lo", NULL}, 2), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_add_codes(t, "d", c, (const char *const[]){"lo"}, 1), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "row 1"));
    CHECK_STATUS(
        frg_table_add_codes(t, "d", (const int32_t[]){0, -2, 0}, (const char *const[]){"a"}, 1),
        FRG_BAD_ARG);
    CHECK_STATUS(frg_table_add_bools(t, "d", (const int32_t[]){0, 2, 0}), FRG_BAD_ARG);
    CHECK_INT(frg_table_columns(t), 4);
    frg_table_destroy(t);
    frg_table_destroy(NULL);
    CHECK_STATUS(frg_table_create(&t, ctx, -1), FRG_BAD_ARG);
    CHECK(t == NULL);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

static void many_columns(void)
{
    frg_context *ctx = test_context();
    frg_table *t;
    CHECK_OK(ctx, frg_table_create(&t, ctx, 1));
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "column%d", i);
        CHECK_OK(ctx, frg_table_add_integers(t, name, &(int64_t){i}));
    }
    CHECK_INT(frg_table_find(t, "column999")->integers[0], 999);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** CPU seconds of making `tables` tables of `columns` columns each and asking for each column. */
static double seconds_of_columns(frg_context *ctx, int tables, int columns)
{
    const clock_t began = clock();
    for (int k = 0; k < tables; k++) {
        frg_table *t;
        CHECK_OK(ctx, frg_table_create(&t, ctx, 1));
        char name[48];
        for (int i = 0; i < columns && test_now.failures == 0; i++) {
            snprintf(name, sizeof name, "a_column_with_a_number_%d", i);
            CHECK_OK(ctx, frg_table_add_integers(t, name, &(int64_t){i}));
        }
        for (int i = 0; i < columns && test_now.failures == 0; i++) {
            snprintf(name, sizeof name, "a_column_with_a_number_%d", i);
            const frg_column *const c = frg_table_find(t, name);
            CHECK(c && c->integers[0] == i);
        }
        CHECK(!frg_table_find(t, "a_column_with_a_number_") && !frg_table_find(t, ""));
        frg_table_destroy(t);
    }
    return (double)(clock() - began) / CLOCKS_PER_SEC;
}

/** A name is found by its hash: columns cost the same in one table as in many.  Where names are
 *  compared one by one it takes 30000 / 1000 times as long; caches account for a factor below 4. */
static void names_by_hash(void)
{
    frg_context *ctx = test_context();
    const int columns = (int)test_size(30000, 3000);
    const double few = seconds_of_columns(ctx, columns / 1000, 1000);
    const double many = seconds_of_columns(ctx, 1, columns);
    CHECK_SAYS(many < 10 * few + 0.02, "%d columns: %.3f s, %d at a time: %.3f s", columns, many,
               1000, few);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

/** Text that a spreadsheet would compute with is written as it is, reads back, and is warned of
 *  once. */
static void formulas(void)
{
    static const struct {
        const char *text;
        int warnings;
    } cases_of[] = {{"=cmd()", 1}, {"@SUM(a)", 1}, {"+a", 1}, {"-2+cmd|x", 1},
                    {"\ta", 1},    {"a=b", 0},     {"-", 0},  {"-1.5e-3", 0}};
    char path[] = "/tmp/fourge_formulas_XXXXXX";
    const int file = mkstemp(path);
    if (!CHECK(file >= 0))
        return;
    close(file);
    for (size_t i = 0; i < 2 * sizeof cases_of / sizeof *cases_of; i++) {
        frg_context *ctx = test_context();
        frg_table *t = NULL, *back = NULL;
        const char *const text = cases_of[i / 2].text, *const name = i % 2 ? text : "c";
        const char *const labels[2] = {i % 2 ? "a" : text, "b"};
        CHECK_OK(ctx, frg_table_create(&t, ctx, 2));
        CHECK_OK(ctx, frg_table_add_codes(t, name, (const int32_t[]){0, 1}, labels, 2));
        CHECK_OK(ctx, frg_table_write(t, ctx, path));
        CHECK_INT(frg_warning_count(ctx), cases_of[i / 2].warnings);
        CHECK(frg_warning_count(ctx) == 0 || strcmp(frg_warning_code(ctx, 0), "FRG-IO-103") == 0);
        frg_table_opts o;
        frg_table_defaults(&o, sizeof o);
        o.format = "csv";
        if (CHECK_OK(ctx, frg_table_read(&back, ctx, path, &o))) {
            const frg_column *const c = frg_table_find(back, name);
            const bool number = strcmp(text, "-1.5e-3") == 0 && i % 2 == 0;
            CHECK_SAYS(c && (number || strcmp(c->labels[c->codes[0]], labels[0]) == 0), "'%s', %s",
                       text, i % 2 ? "name" : "label");
        }
        frg_table_destroy(back);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
    remove(path);
}

static void nearest_name(void)
{
    frg_context *ctx = test_context();
    frg_table *t;
    CHECK_OK(ctx, frg_table_create(&t, ctx, 0));
    CHECK(frg_table_nearest(t, "wage") == NULL);
    CHECK_OK(ctx, frg_table_add_numbers(t, "year", NULL));
    CHECK_OK(ctx, frg_table_add_numbers(t, "wages", NULL));
    CHECK_OK(ctx, frg_table_add_numbers(t, "lwage", NULL));
    CHECK_TEXT(frg_table_nearest(t, "yaer"), "year");
    CHECK_TEXT(frg_table_nearest(t, "wagess"), "wages");
    CHECK(frg_table_nearest(t, "something else") == NULL);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static char *slurp_file(const char *path, size_t *count)
{
    FILE *const f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    *count = f && text ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (f)
        fclose(f);
    return text;
}

static void written(void)
{
    frg_context *ctx = test_context();
    char path[] = "/tmp/fourge_table_XXXXXX.csv";
    const int fd = mkstemps(path, 4);
    frg_table *t;
    if (!CHECK(fd >= 0))
        return;
    const double x[5] = {0.1, NAN, INFINITY, -INFINITY, 1e22};
    const int64_t k[5] = {0, INT64_MAX, -INT64_MAX, FRG_MISSING_INTEGER, -1};
    const int32_t c[5] = {0, 1, 2, 3, -1};
    CHECK_OK(ctx, frg_table_create(&t, ctx, 5));
    CHECK_OK(ctx, frg_table_add_numbers(t, "a,\"b\"", x));
    CHECK_OK(ctx, frg_table_add_integers(t, "k", k));
    CHECK_OK(ctx, frg_table_add_codes(
                      t, "c", c, (const char *const[]){"plain", "q\"q", "two\nlines", " pad "}, 4));
    CHECK_OK(ctx, frg_table_write(t, ctx, path));
    size_t count;
    char *text = slurp_file(path, &count);
    CHECK_TEXT(text, "\"a,\"\"b\"\"\",k,c\n"
                     "0.1,0,plain\n"
                     ",9223372036854775807,\"q\"\"q\"\n"
                     "inf,-9223372036854775807,\"two\nlines\"\n"
                     "-inf,,\" pad \"\n"
                     "1e22,-1,\n");
    free(text);
    frg_table_destroy(t);
    CHECK_OK(ctx, frg_table_create(&t, ctx, 1));
    CHECK_STATUS(frg_table_write(t, ctx, path), FRG_BAD_ARG);
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", &(double){NAN}));
    CHECK_OK(ctx, frg_table_write(t, ctx, path));
    text = slurp_file(path, &count);
    CHECK_TEXT(text, "x\nNA\n");
    free(text);
    CHECK_STATUS(frg_table_write(t, ctx, "/nonexistent/x.csv"), FRG_CANNOT_CREATE);
    CHECK_STATUS(frg_table_write(t, ctx, "x.csv.gz"), FRG_UNSUPPORTED);
    CHECK_STATUS(frg_table_write(t, ctx, "x.npy"), FRG_UNSUPPORTED);
    frg_table_destroy(t);
    remove(path);
    frg_context_destroy(ctx);
}

/** Labels that text files dislike; none is a missing value or a number. */
static const char *const hostile[] = {"a",        "b,c",  "d\"e",     "\"",    "\"\"",       "f\ng",
                                      "h\r\ni",   "\r",   "\n",       " lead", "trail\t",    "'",
                                      "<script>", "=1+1", "\xc3\xa4", ",",     "\"x\",\n\"", "-"};
enum { N_HOSTILE = sizeof hostile / sizeof *hostile };

/** Random tables come back equal to the bit, for csv and tsv. */
static void round_trip(void)
{
    frg_context *ctx = test_context();
    for (int repeat = 0; repeat < 150; repeat++) {
        char path[] = "/tmp/fourge_table_XXXXXX.csv";
        if (repeat % 2)
            memcpy(path + sizeof path - 5, ".tsv", 4);
        const int fd = mkstemps(path, 4);
        enum { MOST = 50 };
        const int64_t n = 1 + test_below(MOST);
        double x[MOST];
        int64_t k[MOST];
        int32_t c[MOST];
        const char *labels[N_HOSTILE];
        int n_labels = 0;
        int32_t code_of[N_HOSTILE];
        for (int i = 0; i < N_HOSTILE; i++)
            code_of[i] = -1;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t bits = test_random();
            memcpy(&x[i], &bits, 8);
            if (isnan(x[i]) || i == 0)
                x[i] = test_normal();
            k[i] = test_below(10) ? (int64_t)test_random() >> test_below(64) : FRG_MISSING_INTEGER;
            k[i] = i == 0 ? 1 : k[i];
            const int h =
                i == 0 ? 0 : (int)test_below(N_HOSTILE); /* codes in order of appearance */
            if (code_of[h] < 0) {
                code_of[h] = n_labels;
                labels[n_labels++] = hostile[h];
            }
            c[i] = i > 0 && test_below(8) == 0 && code_of[h] != n_labels - 1 ? -1 : code_of[h];
        }
        frg_table *t, *back = NULL;
        CHECK_OK(ctx, frg_table_create(&t, ctx, n));
        CHECK_OK(ctx, frg_table_add_numbers(t, "x", x));
        CHECK_OK(ctx, frg_table_add_codes(t, hostile[1 + test_below(N_HOSTILE - 1)], c, labels,
                                          n_labels));
        CHECK_OK(ctx, frg_table_add_integers(t, "k\"\n", k));
        CHECK_OK(ctx, frg_table_write(t, ctx, path));
        CHECK_OK(ctx, frg_table_read(&back, ctx, path, NULL));
        if (back)
            CHECK_SAYS(table_hash(t) == table_hash(back), "table %d comes back as another", repeat);
        frg_table_destroy(back);
        frg_table_destroy(t);
        if (fd >= 0)
            remove(path);
    }
    frg_context_destroy(ctx);
}

/** Text columns by what most of their cells read as: numbers as the reader has them, so that 0x10
 *  is none. */
static void inference(void)
{
    static const struct {
        const char *cells; /* a line each, "-" is missing */
        frg_column_inference is;
    } table[] = {
        {"1\n 2.5\nx\n-\n1e3 \n", {.numbers = 3, .words = 1, .first_date = -1, .mistyped = 2}},
        {"1\n2024-02-29\n2\nx\n3\n", {3, 1, 0, 1, 1, 3}},
        {"1\n2\n29.02.2024 10:00\n", {2, 1, 0, 0, 2, 2}},
        {"1\n2\nx\ny\n", {2, 0, 0, 2, -1, -1}}, /* no more numbers than others */
        {"0x10\n0x11\n1\n", {1, 0, 0, 2, -1, -1}},
        {"2024/02/29\n29/02/2024\n02-29-2024T1\n2024-02-2\n", {0, 3, 0, 1, 0, -1}},
        {"a\nb\n1\n", {1, 0, 0, 2, -1, -1}},
        {"1 2\n3\n4\n", {2, 0, 0, 1, -1, 0}},
        {"-\nx\n", {0, 0, 0, 1, -1, -1}},
        {"1\n2,5\n3\n", {2, 0, 1, 0, -1, 1}},
        {"-1.234,5\n+2,5\n\"1,234.50\"\n", {0, 0, 3, 0, -1, 0}},
        {",5\n5,\n1,a\n,\n", {0, 0, 0, 4, -1, -1}},
    };
    frg_context *const ctx = test_context();
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.na = (const char *const[]){"-"};
    o.n_na = 1;
    o.header = 0;
    o.delimiter = ';';
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const frg_column_inference *const is = &table[i].is;
        frg_table *t = NULL;
        frg_column_inference got;
        CHECK_OK(ctx, frg_table_parse(&t, ctx, table[i].cells, (int64_t)strlen(table[i].cells),
                                      "cells", &o));
        CHECK_OK(ctx, frg_column_count(&got, ctx, frg_table_column(t, 0)));
        CHECK_SAYS(got.numbers == is->numbers && got.dates == is->dates &&
                       got.commas == is->commas && got.words == is->words &&
                       got.first_date == is->first_date && got.mistyped == is->mistyped,
                   "column %zu: %" PRId64 " numbers, %" PRId64 " dates, %" PRId64
                   " words, date %" PRId64 ", mistyped %" PRId64,
                   i, got.numbers, got.dates, got.words, got.first_date, got.mistyped);
        frg_table_destroy(t);
    }
    frg_column_inference got;
    const frg_column numbers = {.name = "x", .kind = FRG_NUMBER};
    CHECK_STATUS(frg_column_count(&got, ctx, &numbers), FRG_BAD_ARG);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"columns stay", columns_stay}, {"made of arrays", made_of_arrays},
    {"many columns", many_columns}, {"names by hash", names_by_hash},
    {"formulas", formulas},         {"nearest name", nearest_name},
    {"written", written},           {"round trip", round_trip},
    {"inference", inference},
};
TEST_MAIN(cases)
