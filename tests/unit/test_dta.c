/* test_dta.c - files of Stata: every type, labels, missing values, dates, and files that are cut. */
#include <inttypes.h>

#include "unit/dta_help.h"

static char told[400];

static void remember(int level, const char *line, void *user)
{
    (void)user;
    if (level == 1)
        snprintf(told, sizeof told, "%s", line);
}

static frg_status parse_dta(frg_table **t, frg_context *ctx, const byte_string *b,
                            const char *columns)
{
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.columns = columns ? &columns : NULL;
    o.n_columns = columns != NULL;
    return frg_table_parse(t, ctx, (char *)b->data, (int64_t)b->count, "t.dta", &o);
}

static void check_table(frg_context *ctx, const byte_string *b, const char *columns,
                        const char *expected)
{
    frg_table *t = NULL;
    char got[1000];
    CHECK_OK(ctx, parse_dta(&t, ctx, b, columns));
    CHECK_TEXT(table_text(t, got, sizeof got), expected);
    frg_table_destroy(t);
    CHECK(frg_warning_count(ctx) > 0 || frg_bytes_held(ctx) == 0);
}

static void check_refused(frg_context *ctx, const byte_string *b, const char *code)
{
    frg_table *t = NULL;
    CHECK(parse_dta(&t, ctx, b, NULL) < 0 && !t);
    CHECK_TEXT(frg_error_code(ctx), code);
    CHECK_TEXT(frg_error_where(ctx), "t.dta");
    CHECK_INT(frg_bytes_held(ctx), 0);
}

/* ---- a file of every type -------------------------------------------------------------------- */

static const char *const sexes[] = {"man", "woman", "refused"};
static const int32_t sex_values[] = {0, 1, 2147483622}; /* the last is .a */
static const char *const answers[] = {"yes", "no", "yes"};
static const int32_t answer_values[] = {2, -5, 1};
static const dta_labels label_tables[] = {{"sexlab", 3, sex_values, sexes},
                                          {"answers", 3, answer_values, answers}};
static const dta_variable variables[] = {{"id", DTA_LONG, "%12.0g", ""},
                                         {"m", DTA_INT, "%8.0g", ""},
                                         {"n", DTA_BYTE, "%8.0g", ""},
                                         {"x", DTA_DOUBLE, "%10.0g", ""},
                                         {"f", DTA_FLOAT, "%9.0g", ""},
                                         {"s", 5, "%5s", ""},
                                         {"long", DTA_STRL, "%9s", ""},
                                         {"sex", DTA_BYTE, "%8.0g", "sexlab"},
                                         {"answer", DTA_INT, "%8.0g", "answers"},
                                         {"again", DTA_DOUBLE, "%8.0g", "answers"}};
enum { N_VARIABLES = sizeof variables / sizeof *variables };

/** Missing values are the largest of a type: . and then .a to .z; of floating point, powers of two
 *  with the letter in the next bits. */
static void add_rows(byte_string *b, byte_string *strls)
{
    static const int64_t id[] = {7, -2147483647, 2147483621, 2147483624}; /* . .c */
    static const int m[] = {32740, -32767, 32741, 32767};                 /* . .z */
    static const int n[] = {1, -127, 102, 100};                           /* .a */
    static const uint64_t x[] = {0x3ff8000000000000, 0x7fe0000000000000, 0x7fe0020000000000,
                                 0x7e37e43c8800759c}; /* 1.5 . .b 1e300 */
    static const uint32_t f[] = {0x3f000000, 0x40400000, 0x7f000000, 0x7f000800};
    static const char *const s[] = {"abcde", "", "\xc3\xa9", "abcde"};
    static const char *const l[] = {"a long text", "", "NA", "a long text"};
    static const int sex[] = {1, 0, 5, 102};
    static const int answer[] = {2, 1, -5, 1};
    static const double again[] = {-5, 0.5, -0.0, 0};
    for (unsigned r = 0; r < 4; r++) {
        add_number(b, (uint64_t)id[r], 4);
        add_number(b, (uint64_t)m[r], 2);
        add_number(b, (uint64_t)n[r], 1);
        add_number(b, x[r], 8);
        add_number(b, f[r], 4);
        add_field(b, s[r], 5);
        add_number(b, *l[r] ? 7 : 0, 2);
        add_number(b, *l[r] ? r + 1 : 0, 6);
        add_number(b, (uint64_t)sex[r], 1);
        add_number(b, (uint64_t)answer[r], 2);
        add_bytes(b, &again[r], 8);
        if (*l[r])
            add_strl(strls, 7, r + 1, l[r]);
    }
}

static void make_file(byte_string *b)
{
    dta_file f = {.variables = variables,
                  .n_variables = N_VARIABLES,
                  .rows = 4,
                  .labels = label_tables,
                  .n_labels = 2};
    add_rows(&f.data, &f.strls);
    add_dta(b, &f);
    drop_bytes(&f.data);
    drop_bytes(&f.strls);
}

static void every_type(void)
{
    frg_context *ctx = test_context();
    byte_string b = {0};
    make_file(&b);
    check_table(ctx, &b, NULL,
                "id:i 7 -2147483647 ? ?|m:i 32740 -32767 ? ?|n:i 1 -127 ? 100"
                "|x:n 1.5 ? ? 1.0000000000000001e+300|f:n 0.5 3 ? ?"
                "|s:c 0=abcde ? 1=\xc3\xa9 0=abcde|long:c 0=a long text ? 1=NA 0=a long text"
                "|sex:i 1 0 5 ?|answer:c 2=yes (2) 1=yes 0=no 1=yes"
                "|again:n -5 0.5 0 0");
    CHECK_INT(frg_warning_count(ctx), 3);
    CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-IO-104");
    CHECK(strstr(frg_warning_message(ctx, 0),
                 "in t.dta: 'id' (.c 1), 'm' (.z 1), 'n' (.a 1), 'x' (.b 1), 'f' (.a 1), "
                 "'sex' (.a 1)"));
    CHECK_TEXT(frg_warning_code(ctx, 1), "FRG-IO-106");
    CHECK(strstr(frg_warning_message(ctx, 1), "column 'sex': 1 of its 3 values"));
    CHECK_TEXT(frg_warning_code(ctx, 2), "FRG-IO-106");
    CHECK(strstr(frg_warning_message(ctx, 2), "column 'again': 2 of its 3 values"));
    frg_warnings_clear(ctx);
    check_table(ctx, &b, "answer", "answer:c 2=yes (2) 1=yes 0=no 1=yes");
    check_table(ctx, &b, "long", "long:c 0=a long text ? 1=NA 0=a long text");
    frg_table *t;
    CHECK_STATUS(parse_dta(&t, ctx, &b, "answers"), FRG_BAD_DATA);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-008");
    CHECK(strstr(frg_message(ctx), "answer"));
    CHECK_OK(ctx, frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "-", NULL));
    CHECK_INT(frg_table_columns(t), N_VARIABLES); /* known by its first bytes */
    CHECK_INT(frg_table_find(t, "answer")->ordered, 1);
    CHECK_INT(frg_table_find(t, "answer")->labelled, 1);
    CHECK_INT(frg_table_find(t, "s")->labelled, 0);
    CHECK_INT(frg_table_find(t, "s")->ordered, 0);
    frg_table_destroy(t);
    frg_warnings_clear(ctx);
    CHECK_INT(frg_bytes_held(ctx), 0);
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/** Whatever is missing at its end, a file is refused; and so is one with bytes behind it. */
static void cut(void)
{
    frg_context *ctx = test_context();
    byte_string b = {0};
    make_file(&b);
    for (size_t n = 11; n < b.count; n++)
        check_refused(ctx, &(byte_string){.data = b.data, .count = n}, "FRG-IO-007");
    add_text(&b, "more");
    check_refused(ctx, &b, "FRG-IO-007");
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/* ---- what files say of themselves ------------------------------------------------------------ */

static void make_small(byte_string *b, dta_variable v, uint64_t rows, const char *data, size_t n)
{
    dta_file f = {.variables = &v, .n_variables = 1, .rows = rows};
    add_bytes(&f.data, data, n);
    add_dta(b, &f);
    drop_bytes(&f.data);
}

static void labels_that_are_not_there(void)
{
    frg_context *ctx = test_context();
    byte_string b = {0};
    make_small(&b, (dta_variable){"n", DTA_BYTE, "%8.0g", "ghost"}, 3, "\1\x65\3", 3);
    check_table(ctx, &b, NULL, "n:i 1 ? 3");
    CHECK_INT(frg_warning_count(ctx), 1);
    CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-IO-105");
    CHECK(strstr(frg_warning_message(ctx, 0), "'ghost'"));
    frg_warnings_clear(ctx);
    CHECK_INT(frg_bytes_held(ctx), 0);
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

static void dates(void)
{
    static const struct {
        const char *format, *says;
    } of[] = {{"%td", "days since 1960"},
              {"%tdDD/NN/CCYY", "days since 1960"},
              {"%-tc", "milliseconds since"},
              {"%d", "days since 1960"},
              {"%tq", "quarters since"},
              {"%8.0g", NULL},
              {"%9s", NULL},
              {"%tx", NULL}};
    frg_context_opts with_log;
    frg_context_defaults(&with_log, sizeof with_log);
    with_log.on_log = remember;
    frg_context *ctx;
    if (!CHECK(frg_context_create(&ctx, &with_log) == FRG_OK))
        return;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        byte_string b = {0};
        make_small(&b, (dta_variable){"day", DTA_BYTE, of[i].format, ""}, 2, "\1\2", 2);
        told[0] = '\0';
        check_table(ctx, &b, NULL, "day:i 1 2");
        if (of[i].says)
            CHECK(strstr(told, "'day'") && strstr(told, of[i].format) && strstr(told, of[i].says));
        else
            CHECK_TEXT(told, "");
        drop_bytes(&b);
    }
    frg_context_destroy(ctx);
}

static void errors(void)
{
    frg_context *ctx = test_context();
    byte_string b = {0};
    make_small(&b, (dta_variable){"s", 3, "%3s", ""}, 2, "abcx\xffy", 6);
    check_refused(ctx, &b, "FRG-IO-005");
    CHECK(strstr(frg_message(ctx), "row 2 of column 's'") && strstr(frg_message(ctx), "UTF-8"));
    drop_bytes(&b);
    make_small(&b, (dta_variable){"n", DTA_BYTE, "%8.0g", ""}, 1000000, "\1", 1);
    check_refused(ctx, &b, "FRG-IO-007"); /* rows that cannot be there */
    drop_bytes(&b);
    make_small(&b, (dta_variable){"n", DTA_BYTE, "%8.0g", ""}, 0, "", 0);
    check_table(ctx, &b, NULL, "n:i");
    b.data[30] = '9'; /* release 998 or another that there is not */
    check_refused(ctx, &b, "FRG-IO-005");
    drop_bytes(&b);
    add_text(&b, "a,b\n1,2\n");
    check_refused(ctx, &b, "FRG-IO-005");
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/** Labels of a scale's ends change no number, labels of all that occurs make levels: of 30, 40 and
 *  59 one has a label, and rows of that one alone have. */
static void labels_of_some_values(void)
{
    frg_context *ctx = test_context();
    static const dta_variable age = {"age", DTA_BYTE, "%8.0g", "ends"};
    const dta_labels ends = {"ends", 2, (const int32_t[]){59, 2147483621},
                             (const char *const[]){"59 or more", "unknown"}};
    static const struct {
        const char *bytes, *expected;
    } of[] = {{"\x1e\x3b\x28\x65", "age:i 30 59 40 ?"},
              {"\x3b\x65\x3b\x3b", "age:c 0=59 or more ? 0=59 or more 0=59 or more"}};
    for (int k = 0; k < 2; k++) {
        dta_file f = {
            .variables = &age, .n_variables = 1, .rows = 4, .labels = &ends, .n_labels = 1};
        byte_string b = {0};
        add_bytes(&f.data, of[k].bytes, 4);
        add_dta(&b, &f);
        check_table(ctx, &b, NULL, of[k].expected);
        CHECK_INT(frg_warning_count(ctx), k == 0);
        if (k == 0) {
            CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-IO-106");
            CHECK(strstr(frg_warning_message(ctx, 0), "'age': 2 of its 3 values have no label"));
        }
        frg_warnings_clear(ctx);
        drop_bytes(&f.data);
        drop_bytes(&b);
    }
    frg_context_destroy(ctx);
}

/** Labels of missing values alone name no number, and the columns stay what they are. */
static void labels_of_missing_values(void)
{
    frg_context *ctx = test_context();
    static const dta_variable two[] = {{"n", DTA_BYTE, "%8.0g", "why"},
                                       {"m", DTA_BYTE, "%8.0g", "why"}};
    const dta_labels why = {"why", 1, (const int32_t[]){2147483622},
                            (const char *const[]){"refused"}};
    dta_file f = {.variables = two, .n_variables = 2, .rows = 2, .labels = &why, .n_labels = 1};
    byte_string b = {0};
    add_bytes(&f.data, "\1\x66\3\2", 4); /* 1 .a, 3 2 */
    add_dta(&b, &f);
    check_table(ctx, &b, NULL, "n:i 1 3|m:i ? 2");
    CHECK_INT(frg_warning_count(ctx), 1);
    CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-IO-104");
    drop_bytes(&f.data);
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/** Columns of duplicated names, which Stata never writes. */
static void two_columns_of_a_name(void)
{
    frg_context *ctx = test_context();
    static const dta_variable two[] = {{"n", DTA_BYTE, "%8.0g", ""}, {"n", DTA_BYTE, "%8.0g", ""}};
    dta_file f = {.variables = two, .n_variables = 2, .rows = 1};
    byte_string b = {0};
    add_bytes(&f.data, "\1\2", 2);
    add_dta(&b, &f);
    check_refused(ctx, &b, "FRG-IO-005");
    drop_bytes(&f.data);
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/** A long string without its NUL, as binary ones are, would be read beyond its end. */
static void binary_long_strings(void)
{
    frg_context *ctx = test_context();
    static const dta_variable two[] = {{"l", DTA_STRL, "%9s", ""}, {"n", DTA_BYTE, "%8.0g", ""}};
    dta_file f = {.variables = two, .n_variables = 2, .rows = 1};
    byte_string b = {0};
    add_strl(&f.strls, 1, 1, "raw");
    f.strls.data[f.strls.count - 1] = 'x';
    add_number(&f.data, 1, 2);
    add_number(&f.data, 1, 6);
    add_number(&f.data, 5, 1);
    add_dta(&b, &f);
    check_refused(ctx, &b, "FRG-IO-006");
    CHECK(strstr(frg_message(ctx), "row 1 of column 1"));
    check_table(ctx, &b, "n", "n:i 5");
    drop_bytes(&f.data);
    drop_bytes(&f.strls);
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/* ---- files of pandas ------------------------------------------------------------------------- */

enum { GOLDEN_ROWS = 5 };
/** A cell as tests/golden/stata.tsv has it. */
static const char *cell_text(const frg_column *c, int64_t r, char to[64])
{
    snprintf(to, 64, "?");
    if (c->integers && c->integers[r] != FRG_MISSING_INTEGER)
        snprintf(to, 64, "%" PRId64, c->integers[r]);
    else if (c->numbers && c->numbers[r] == c->numbers[r])
        snprintf(to, 64, "%.17g", c->numbers[r]);
    else if (c->codes && c->codes[r] >= 0)
        snprintf(to, 64, "%.16s", c->labels[c->codes[r]]);
    return to;
}

/** Every column that pandas found in a file of its own, in formats 114 to 119 and both orders of
 *  bytes. */
static void pandas_reads_the_same(void)
{
    frg_context *ctx = test_context();
    char path[300], line[400], cell[64];
    snprintf(path, sizeof path, "%sstata.tsv", golden_folder);
    FILE *const f = fopen(path, "r");
    if (!CHECK(f != NULL))
        return;
    int lines = 0;
    while (fgets(line, sizeof line, f)) {
        char *rest = NULL;
        const char *const file = strtok_r(line, "\t\n", &rest), *name, *kind;
        if (!file || file[0] == '#')
            continue;
        name = strtok_r(NULL, "\t\n", &rest);
        kind = strtok_r(NULL, "\t\n", &rest);
        snprintf(path, sizeof path, "%s%s", golden_folder, file);
        frg_table *t = NULL;
        frg_table_opts o;
        frg_table_defaults(&o, sizeof o);
        o.columns = &name;
        o.n_columns = name != NULL;
        CHECK_OK(ctx, frg_table_read(&t, ctx, path, &o));
        const frg_column *const c = frg_table_find(t, name ? name : "");
        if (CHECK_SAYS(c != NULL, "%s has no column %s", file, name)) {
            CHECK_INT("nibc"[c->kind], kind ? kind[0] : 0);
            CHECK_INT(c->n, GOLDEN_ROWS);
            for (int64_t r = 0; r < c->n; r++)
                CHECK_TEXT(cell_text(c, r, cell), strtok_r(NULL, "\t\n", &rest));
        }
        frg_table_destroy(t);
        lines++;
    }
    fclose(f);
    CHECK_INT(lines, 8 + 2 * 9 + 8);
    frg_table *t;
    snprintf(path, sizeof path, "%sstata_119.dta", golden_folder);
    CHECK_STATUS(frg_table_read(&t, ctx, path, NULL), FRG_UNSUPPORTED);
    CHECK(strstr(frg_message(ctx), "'note'"));
    CHECK_INT(frg_warning_count(ctx), 0);
    frg_context_destroy(ctx);
}

/** Formats before 117 do not say where they end: a file without its labels is one whose columns
 *  name labels that are not there, which is told; rows are never fewer. */
static void cut_before_117(void)
{
    frg_context *ctx = test_context();
    unsigned char bytes[1 << 13];
    const size_t count = read_golden("stata_114.dta", bytes, sizeof bytes);
    int whole = 0;
    for (size_t n = 1; n < count; n++) {
        frg_table *t = NULL;
        const frg_status s = parse_dta(&t, ctx, &(byte_string){.data = bytes, .count = n}, NULL);
        if (s == FRG_OK) {
            CHECK_INT(frg_table_rows(t), GOLDEN_ROWS);
            CHECK_INT(frg_table_find(t, "sector")->kind, FRG_INTEGER);
            CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-IO-105");
            whole++;
        } else {
            CHECK_TEXT(frg_error_code(ctx), "FRG-IO-007");
        }
        frg_table_destroy(t);
        frg_warnings_clear(ctx);
    }
    CHECK_INT(whole, 3); /* behind the rows, and within the table of labels where ReadStat stops */
    frg_context_destroy(ctx);
}

/** Bytes behind the last table of a file before 117 are taken for another one, with a length that
 *  nobody could read: the file is at fault, not the memory. */
static void bytes_behind_114(void)
{
    frg_context *ctx = test_context();
    unsigned char bytes[1 << 13];
    const size_t count = read_golden("stata_114.dta", bytes, sizeof bytes / 2);
    memset(bytes + count, 'g', 150);
    check_refused(ctx, &(byte_string){.data = bytes, .count = count + 150}, "FRG-IO-005");
    CHECK(strstr(frg_message(ctx), "stand behind the last part"));
    memset(bytes + count, 0, 150);
    check_refused(ctx, &(byte_string){.data = bytes, .count = count + 150}, "FRG-IO-005");
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"every type", every_type},
                                  {"cut", cut},
                                  {"labels that are not there", labels_that_are_not_there},
                                  {"labels of some values", labels_of_some_values},
                                  {"labels of missing values", labels_of_missing_values},
                                  {"dates", dates},
                                  {"errors", errors},
                                  {"two columns of a name", two_columns_of_a_name},
                                  {"binary long strings", binary_long_strings},
                                  {"pandas reads the same", pandas_reads_the_same},
                                  {"cut before 117", cut_before_117},
                                  {"bytes behind 114", bytes_behind_114}};
TEST_MAIN(cases)
