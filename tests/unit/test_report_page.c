/* test_report_page.c - whole pages to the byte: every element, kind of series, axis and legend of a
 * report, in every format.
 *
 * tests/golden/report.html, report.txt, report.md and report.tex were read and looked at when they
 * were written; a change of the looks changes them too: `FOURGE_TEST_WRITE=FOLDER test_report_page`
 * writes them anew into a folder, for the eye.  All coordinates are sums and products of a few
 * halves and tenths, which compilers round alike.
 */
#include "fourge/report.h"
#include "test.h"

static const double NONE = (double)NAN;

static void add_facts(frg_report *r)
{
    frg_report_heading(r, "Facts & figures");
    frg_report_fact(r, "Observations", "4360");
    frg_report_fact_number(r, "R2", 0.62061, 4);
    frg_report_fact_number(r, "Distance", -123456.75, 8);
    frg_report_fact(r, "Empty", "");
    frg_report_paragraph(
        r, "A paragraph of <words> between two blocks of facts, long enough to be broken "
           "into lines where lines have an end.");
    frg_report_fact(r, "Formula", "lwage ~ expersq + union + married | nr + occupation^year");
    frg_report_fact(r, "Few", "three or fewer have lines of their own");
}

static void add_table(frg_report *r, int columns)
{
    char name[16];
    frg_report_table_open(r, columns == 2 ? NULL : "Numbers of many lengths");
    frg_report_table_column(r, "term", FRG_LEFT);
    for (int j = 1; j < columns; j++) {
        snprintf(name, sizeof name, "x%d", j);
        frg_report_table_column(r, name, FRG_RIGHT);
    }
    static const char *const rows[] = {"first", "second_row", "3 & more"};
    static const double values[] = {1234.5, -0.000012345, 7, 1e-12, 0.25, 123456789};
    for (int i = 0; i < 3; i++) {
        frg_report_cell_text(r, rows[i]);
        for (int j = 1; j < columns; j++)
            frg_report_cell_number(r, values[(i + 2 * j) % 6], 1 + (i + j) % 5);
    }
    frg_report_table_close(r);
}

/** Lines and bands over numbers: dashes of all looks, a legend of two rows, a gap, a reference,
 *  ticks with a power. */
static void add_lines(frg_report *r)
{
    enum { N = 9, SERIES = 7 };
    static double x[N], y[SERIES][N], low[N], high[N];
    static const char *const names[SERIES] = {"one",
                                              "two",
                                              "three",
                                              "a name of some length",
                                              "the fifth of the series",
                                              "six",
                                              "the seventh, which looks as the first does"};
    frg_series s[SERIES + 1] = {0};
    for (int i = 0; i < N; i++) {
        x[i] = 1000.0 * i;
        low[i] = -1 - 0.25 * i;
        high[i] = i == 4 ? NONE : 1 + 0.5 * i;
        for (int k = 0; k < SERIES; k++)
            y[k][i] = k == 2 && i == 5 ? NONE : 0.5 * k + ((i + k) % 3) * 0.25;
    }
    for (int k = 0; k < SERIES; k++)
        s[k] = (frg_series){.name = names[k], .n = N, .x = x, .y = y[k]};
    s[1].style = FRG_BAND;
    s[1].low = low;
    s[1].high = high;
    s[SERIES] = (frg_series){
        .name = "band alone", .n = N, .x = x, .low = low, .high = high, .style = FRG_BAND};
    frg_report_plot(r, &(frg_plot){.caption = "Lines <and> bands",
                                   .x_label = "position",
                                   .y_label = "value",
                                   .reference = 0.5,
                                   .n_series = SERIES + 1,
                                   .series = s});
    for (int i = 0; i < N; i++)
        x[i] = 1e7 * i;
    frg_report_plot(
        r, &(frg_plot){.caption = "One line, powers", .reference = 99, .n_series = 1, .series = s});
}

/** Points with intervals beside names, upright or lying: six looks of markers side by side. */
static void add_coefficients(frg_report *r, int horizontal, int series)
{
    enum { N = 3, SERIES = 6 };
    static double at[SERIES][N], low[SERIES][N], high[SERIES][N];
    static const char *const terms[N] = {
        "union", "married, with a name that takes more than the room there is for it", "x"};
    static const char *const names[SERIES] = {"iid", "hetero", "nr", "year", "both", "none"};
    frg_series s[SERIES];
    for (int k = 0; k < SERIES; k++) {
        for (int i = 0; i < N; i++) {
            at[k][i] = 0.5 * i - 0.5;
            low[k][i] = at[k][i] - 0.125 * (k + 1);
            high[k][i] = k == 1 && i == 1 ? NONE : at[k][i] + 0.125 * (k + 1);
        }
        s[k] = (frg_series){.name = names[k],
                            .n = N,
                            .y = at[k],
                            .low = k == 5 ? NULL : low[k],
                            .high = k == 5 ? NULL : high[k],
                            .style = FRG_POINTS};
    }
    frg_report_plot(r, &(frg_plot){.caption = horizontal ? "Coefficients" : "Coefficients upright",
                                   .x_label = horizontal ? "estimate" : NULL,
                                   .horizontal = horizontal,
                                   .categories = terms,
                                   .n_categories = N,
                                   .reference = 0,
                                   .n_series = series,
                                   .series = s});
}

/** Decades with ticks between; a line too long for marks, lying; many names, of which each third or
 *  so has room. */
static void add_scales(frg_report *r)
{
    enum { DECADES = 5, LONG = 41, NAMES = 40 };
    static double decades[DECADES], line[LONG], bars[NAMES];
    static char words[NAMES][8];
    static const char *names[NAMES];
    for (int i = 0; i < DECADES; i++)
        decades[i] = i == 3 ? -1 : i * 100 + 1;
    for (int i = 0; i < LONG; i++)
        line[i] = -4 + (i % 8);
    for (int i = 0; i < NAMES; i++) {
        bars[i] = i % 5;
        snprintf(words[i], sizeof words[i], "level%d", i);
        names[i] = words[i];
    }
    const frg_series a = {.name = "decades", .n = DECADES, .y = decades},
                     b = {.name = "lying", .n = LONG, .y = line},
                     c = {.name = "names", .n = NAMES, .y = bars, .style = FRG_POINTS};
    frg_report_plot(r, &(frg_plot){.caption = "",
                                   .y_label = "loss",
                                   .log_y = 1,
                                   .reference = NONE,
                                   .n_series = 1,
                                   .series = &a});
    frg_report_plot(r, &(frg_plot){.caption = "Lying",
                                   .x_label = "down",
                                   .y_label = "right",
                                   .horizontal = 1,
                                   .reference = 1,
                                   .n_series = 1,
                                   .series = &b});
    frg_report_plot(r, &(frg_plot){.caption = "Names",
                                   .categories = names,
                                   .n_categories = NAMES,
                                   .reference = NONE,
                                   .n_series = 1,
                                   .series = &c});
}

/** More points than two a pixel: the curve keeps the first, lowest, highest and last of a column; a
 *  cloud has small marks. */
static void add_many(frg_report *r)
{
    enum { CURVE = 3000, CLOUD = 401 };
    static double x[CURVE], curve[CURVE], cloud[CLOUD];
    for (int i = 0; i < CURVE; i++) {
        x[i] = i / 100; /* a hundred points at each of thirty places */
        curve[i] = (i * 7) % 16 - (i > 1500 ? 8 : 0);
    }
    for (int i = 0; i < CLOUD; i++)
        cloud[i] = i % 100 == 0 ? i : NONE;
    const frg_series a = {.name = "curve", .n = CURVE, .x = x, .y = curve},
                     b = {.name = "cloud", .n = CLOUD, .y = cloud, .style = FRG_POINTS};
    for (int horizontal = 0; horizontal < 2; horizontal++)
        frg_report_plot(r, &(frg_plot){.caption = "Thinned",
                                       .horizontal = horizontal,
                                       .reference = NONE,
                                       .n_series = 1,
                                       .series = &a});
    frg_report_plot(
        r, &(frg_plot){.caption = "Cloud", .reference = NONE, .n_series = 1, .series = &b});
}

/** The bytes of a file, with a NUL; NULL after a failed check.  For free(). */
static char *file_text(const char *path)
{
    FILE *const f = fopen(path, "rb");
    char *text = NULL;
    if (CHECK_SAYS(f != NULL, "%s is not there", path) && fseek(f, 0, SEEK_END) == 0) {
        const long length = ftell(f);
        rewind(f);
        text = calloc((size_t)length + 1, 1);
        if (text && fread(text, 1, (size_t)length, f) != (size_t)length) {
            free(text);
            text = NULL;
        }
    }
    if (f)
        fclose(f);
    return text;
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const f = fopen(path, "wb");
    if (CHECK(f != NULL)) {
        fputs(text, f);
        fclose(f);
    }
}

/** The first line in which two texts differ, with the line that was wanted; what stands behind
 *  "<footer>fourge " is the version. */
static void compare(const char *name, const char *got, const char *want)
{
    for (int line = 1; *got || *want; line++) {
        const size_t a = strcspn(got, "\n"), b = strcspn(want, "\n");
        const size_t part = strncmp(want, "<footer>fourge ", 15) == 0 ? 15 : b;
        if (!CHECK_SAYS((a == b || part < b) && strncmp(got, want, part) == 0,
                        "%s:%d is\n#   %.*s\n#   expected\n#   %.*s", name, line, (int)a, got,
                        (int)b, want))
            return;
        got += a + (got[a] == '\n');
        want += b + (want[b] == '\n');
    }
}

static void matches(frg_report *r, frg_report_format format, int width, const char *name)
{
    const char *const folder = getenv("FOURGE_TEST_WRITE");
    const char *text = "";
    int64_t length = 0;
    CHECK_STATUS(frg_report_render(r, format, width, &text, &length), FRG_OK);
    if (folder)
        write_text(folder, name, text);
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/%s", FOURGE_SOURCE_DIR, name);
    char *const want = file_text(path);
    if (want)
        compare(name, text, want);
    free(want);
}

static void whole_pages(void)
{
    frg_context *ctx = test_context();
    frg_report *r = NULL;
    CHECK_OK(ctx, frg_report_create(&r, ctx, "Every element"));
    add_facts(r);
    frg_report_heading(r, "Tables");
    add_table(r, 2);
    add_table(r, 4);
    add_table(r, 9);
    frg_report_heading(r, "Plots");
    add_lines(r);
    add_coefficients(r, 1, 6);
    add_coefficients(r, 0, 1);
    add_scales(r);
    add_many(r);
    matches(r, FRG_HTML, 0, "report.html");
    matches(r, FRG_TEXT, 72, "report.txt");
    matches(r, FRG_MARKDOWN, 0, "report.md");
    matches(r, FRG_LATEX, 0, "report.tex");
    frg_report_destroy(r);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"whole pages", whole_pages}};
TEST_MAIN(cases)
