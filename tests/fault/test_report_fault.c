/* test_report_fault.c - every allocation and every file call of reports and JSON fails in turn. */
#include <unistd.h>

#include "fault.h"
#include "fourge/report.h"

static void build(frg_report *r)
{
    frg_report_heading(r, "Part");
    frg_report_paragraph(r, "Text of a paragraph");
    frg_report_fact(r, "name", "value");
    frg_report_fact_number(r, "number", 0.5, 3);
    frg_report_table_open(r, "Table");
    for (int j = 0; j < 10; j++)
        frg_report_table_column(r, "column", j % 2 ? FRG_RIGHT : FRG_LEFT);
    for (int i = 0; i < 20; i++) {
        frg_report_cell_text(r, "some words in a cell");
        frg_report_cell_number(r, 0.1 * i, 3);
    }
    frg_report_table_close(r);
    const double x[] = {1, 2, 3}, y[] = {0.5, 0.25, 0.1}, low[] = {0.4, 0.2, 0.05},
                 high[] = {0.6, 0.3, 0.2};
    const frg_series s[] = {
        {.name = "line", .n = 3, .x = x, .y = y},
        {.name = "points", .n = 3, .y = y, .low = low, .high = high, .style = FRG_POINTS},
        {.name = "band", .n = 3, .y = y, .low = low, .high = high, .style = FRG_BAND}};
    const char *const names[] = {"a", "b", "c"};
    const frg_plot p = {.caption = "Plot",
                        .x_label = "x",
                        .y_label = "y",
                        .horizontal = 1,
                        .reference = 0,
                        .n_series = 3,
                        .series = s,
                        .categories = names,
                        .n_categories = 3};
    frg_report_plot(r, &p);
}

static frg_status render_all(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    frg_report *r = NULL;
    frg_status status = frg_report_create(&r, ctx, "Title");
    CHECK((status < 0) == (r == NULL));
    if (status < 0)
        return status;
    build(r);
    for (int f = FRG_TEXT; f <= FRG_HTML && status >= 0; f++) {
        const char *text;
        int64_t length;
        status = frg_report_render(r, (frg_report_format)f, 50, &text, &length);
        if (status >= 0)
            fault_hash(hash, text, (size_t)length);
    }
    frg_report_destroy(r);
    return status;
}

/** user: not NULL where it is written as csv. */
static frg_status write_json(frg_context *ctx, void *user, uint64_t *hash)
{
    frg_json *j = NULL;
    frg_status status = frg_json_create(&j, ctx);
    CHECK((status < 0) == (j == NULL));
    if (status < 0)
        return status;
    frg_json_flat(j, user != NULL);
    frg_json_open_object(j, NULL);
    for (int i = 0; i < 40; i++) {
        frg_json_open_array(j, "a key that makes the text grow");
        frg_json_number(j, NULL, 1.0 / (i + 1));
        frg_json_close_array(j);
        frg_json_number(j, "not finite", (double)NAN);
        frg_json_string(j, "name", "\x1b value \xff");
    }
    frg_json_close_object(j);
    const char *text;
    int64_t length;
    status = frg_json_finish(j, &text, &length);
    if (status >= 0)
        fault_hash(hash, text, (size_t)length);
    frg_json_destroy(j);
    return status;
}

/** Writes a report over an old file: after a failure the old file stands, after success the new
 *  one. */
static frg_status save(frg_context *ctx, void *user, uint64_t *hash)
{
    const char *const path = user;
    char found[1 << 16] = "";
    FILE *f = fopen(path, "w");
    if (CHECK(f != NULL)) {
        fputs("old", f);
        fclose(f);
    }
    frg_report *r = NULL;
    frg_status status = frg_report_create(&r, ctx, "Title");
    if (status >= 0) {
        build(r);
        status = frg_report_save(r, FRG_HTML, path);
    }
    frg_report_destroy(r);
    f = fopen(path, "r");
    if (CHECK(f != NULL)) {
        found[fread(found, 1, sizeof found - 1, f)] = '\0';
        fclose(f);
    }
    CHECK_SAYS(status >= 0 ? strstr(found, "</html>") != NULL : strcmp(found, "old") == 0,
               "the file is half written");
    if (status >= 0)
        fault_hash(hash, found, strlen(found));
    remove(path);
    return status;
}

static void memory(void)
{
    CHECK(fault_sweep("render", render_all, NULL, 1) > 50);
    int flat = 1;
    CHECK(fault_sweep("json", write_json, NULL, 1) > 3);
    CHECK(fault_sweep("json as csv", write_json, &flat, 1) > 4);
}

static void files(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/fourge_report_fault_%d.html", (int)getpid());
    fault_sweep_files("save", save, path);
    CHECK(fault_sweep("save", save, path, 1) > 50);
}

static const test_case cases[] = {{"memory", memory}, {"files", files}};
TEST_MAIN(cases)
