/* test_csv.c - text to tables: decimals bit for bit, kinds, quotes, errors, and the same table for
 * any number of threads, any steps and any CPU level. */
#include "unit/hard_decimals.h"
#include "unit/io_help.h"

#include "core/context.h"
#include "io/csv.h"

static const char *const levels[] = {"plain", "v3", "v4"};

/** A context held to a CPU level; NULL where the machine lacks it. */
static frg_context *level_context(const char *level)
{
    setenv("FOURGE_ISA", level, 1);
    frg_context *ctx = test_context();
    setenv("FOURGE_ISA", "", 1);
    if (ctx && strcmp(frg_isa(ctx), level) != 0) {
        frg_context_destroy(ctx);
        ctx = NULL;
    }
    return ctx;
}

/* ---- decimals -------------------------------------------------------------------------------- */

enum { N_HARD = sizeof hard_decimals / sizeof *hard_decimals };

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void hard_numbers(void)
{
    frg_context *ctx = test_context();
    frgi_decimal *d;
    CHECK_OK(ctx, frgi_decimal_open(&d, ctx));
    for (int i = 0; i < N_HARD; i++) {
        const char *const s = hard_decimals[i].text;
        double x = 77;
        CHECK(frgi_decimal_parse(d, s, s + strlen(s), &x));
        CHECK_SAYS(bits_of(x) == hard_decimals[i].bits, "%s is %a", s, x);
    }
    frgi_decimal_close(&d, ctx);
    frg_context_destroy(ctx);
}

enum { WORDS = 18 };

/** The 128 bits from the highest set bit on; big[WORDS - 1] is the most significant word. */
static frgi_power leading_bits(const uint64_t big[WORDS])
{
    int w = WORDS - 1;
    while (big[w] == 0)
        w--;
    const uint64_t a = big[w], b = w > 0 ? big[w - 1] : 0, c = w > 1 ? big[w - 2] : 0;
    const int lift = __builtin_clzll(a);
    return lift == 0 ? (frgi_power){a, b}
                     : (frgi_power){a << lift | b >> (64 - lift), b << lift | c >> (64 - lift)};
}

static void check_power(int q, frgi_power want)
{
    const frgi_power have = frgi_powers_of_five[q - FRGI_POWER_MIN];
    CHECK_SAYS(have.high == want.high && have.low == want.low, "5^%d", q);
}

/** The powers of five, by multiplying and dividing a big integer by five, a word at a time:
 *  floor(floor(x / a) / b) = floor(x / (a b)), so that 2^1151 is divided exactly again and
 *  again. */
static void powers_of_five(void)
{
    uint64_t big[WORDS] = {1};
    for (int q = 0; q <= FRGI_POWER_MAX; q++) {
        check_power(q, leading_bits(big));
        unsigned __int128 carry = 0;
        for (int w = 0; w < WORDS; w++) {
            carry += (unsigned __int128)big[w] * 5;
            big[w] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    memset(big, 0, sizeof big);
    big[WORDS - 1] = (uint64_t)1 << 63;
    for (int q = -1; q >= FRGI_POWER_MIN; q--) {
        unsigned __int128 rest = 0;
        for (int w = WORDS - 1; w >= 0; w--) {
            rest = rest << 64 | big[w];
            big[w] = (uint64_t)(rest / 5);
            rest %= 5;
        }
        frgi_power want = leading_bits(big);
        if (q >= -27) {
            want.low++;
            want.high += want.low == 0;
        }
        check_power(q, want);
    }
    check_power(-28, (frgi_power){UINT64_C(0xfd87b5f28300ca0d), UINT64_C(0x8bca9d6e188853fc)});
}

/** The hard list and random doubles as a column, through the kernels of every level. */
static void numbers_in_columns(void)
{
    enum { RANDOM = 20000, N = N_HARD + RANDOM };
    byte_string text = {0};
    double *want = malloc(N * sizeof *want);
    add_bytes(&text, "x\n", 2);
    for (int i = 0; want && i < N; i++) {
        char cell[64];
        const char *s = cell;
        if (i < N_HARD) {
            s = hard_decimals[i].text;
            memcpy(&want[i], &hard_decimals[i].bits, 8);
        } else { /* bits of every exponent, values near 1 with 1 to 20 digits, zeros in front of
                    digits */
            const uint64_t bits = test_random();
            memcpy(&want[i], &bits, 8);
            if (i % 2 && want[i] - want[i] == 0)
                snprintf(cell, sizeof cell, "%.17g", want[i]);
            else if (i % 4)
                snprintf(cell, sizeof cell, "%.*f", (int)test_below(36), 1e-9 * test_normal());
            else
                snprintf(cell, sizeof cell, "%.*f", (int)test_below(20), test_normal());
            want[i] = strtod(cell, NULL); /* the C locale is never left */
        }
        add_bytes(&text, s, strlen(s));
        add_bytes(&text, "\n", 1);
    }
    for (size_t l = 0; want && l < sizeof levels / sizeof *levels; l++) {
        frg_context *ctx = level_context(levels[l]);
        if (!ctx)
            continue;
        frg_table *t;
        if (CHECK_OK(ctx, frg_table_parse(&t, ctx, (char *)text.data, (int64_t)text.count, "x.csv",
                                          NULL))) {
            const frg_column *const c = frg_table_column(t, 0);
            CHECK_INT(c->kind, FRG_NUMBER);
            CHECK_INT(c->n, N);
            CHECK_INT(c->n_missing, 0);
            CHECK_BITS(c->numbers, want, N * sizeof *want);
        }
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
    free(want);
    drop_bytes(&text);
}

/* ---- what text means ------------------------------------------------------------------------- */

static const struct {
    const char *text, *table;
} meanings[] = {
    /* kinds */
    {"a,b,c,d\n1,1.5,TRUE,x\n-2,3,FALSE,y\n", "a:i 1 -2|b:n 1.5 3|c:b 1 0|d:c 0=x 1=y"},
    {"a\n1\n2.5\n", "a:n 1 2.5"},
    {"a\n1\nx\n2\n1\n", "a:c 0=1 1=x 2=2 0=1"},
    {"a\n007\n+1\n1e1\nx\n", "a:c 0=007 1=+1 2=1e1 3=x"},
    {"a\ntrue\nFalse\nTRUE\n", "a:b 1 0 1"},
    {"a\nTRUE\n1\n", "a:c 0=TRUE 1=1"},
    {"a\nT\nF\n", "a:c 0=T 1=F"},
    {"a,b\nNA,1\n,2\n", "a:n ? ?|b:i 1 2"},
    {"a\n9223372036854775807\n-9223372036854775807\n",
     "a:i 9223372036854775807 -9223372036854775807"},
    {"a\n9223372036854775808\n", "a:n 9.2233720368547758e+18"},
    {"a\n-9223372036854775808\n", "a:n -9.2233720368547758e+18"},
    {"a\n-0\n", "a:n -0"},
    {"a\n9007199254740993\n0.5\n", "a:n 9007199254740992 0.5"},
    {"a\ninf\n-Infinity\n+INF\n", "a:n inf -inf inf"},
    {"a\n0x10\n1_0\n1e\n--1\n1.2.3\n.\n+\n", "a:c 0=0x10 1=1_0 2=1e 3=--1 4=1.2.3 ? 5=+"},
    {"a\n1 2\n", "a:c 0=1 2"},
    {"a\n 12\t\n3 \n", "a:i 12 3"},
    {"a\n5.\n.5\n", "a:n 5 0.5"},
    {"a\n1.5\n-.\n1..2\n.1.\n1.2-\n", "a:c 0=1.5 1=-. 2=1..2 3=.1. 4=1.2-"},
    {"a,b\n1.25,0000000000000000000000000000.5\n-2.5,00000000000000000000000000000.5\n",
     "a:n 1.25 -2.5|b:n 0.5 0.5"},
    /* missing values */
    {"a\n1\nNA\nNaN\nnan\nN/A\nnull\nNULL\n.\n NA \n\"NA\"\n\"\"\n2\n",
     "a:i 1 ? ? ? ? ? ? ? ? ? ? 2"},
    {"a\n1\nNAN\n", "a:n 1 ?"},
    {"a\nx\nNA\n\" \"\nx\n", "a:c 0=x ? ? 0=x"},
    {"a\nNAN\nNA\nx\n", "a:c 0=NAN ? 1=x"},
    /* quotes */
    {"a,b\n\"1\",\"x,y\"\n\"2\",\"say \"\"hi\"\"\"\n", "a:i 1 2|b:c 0=x,y 1=say \"hi\""},
    {"a,b\n1,\"two\nlines\"\n2,\"\r\n\"\n", "a:i 1 2|b:c 0=two\nlines 1=\r\n"},
    {"a,b\n1,x\"y\n2,z\n", "a:i 1 2|b:c 0=x\"y 1=z"},
    {"a,b\n1,5\" disk\n2,\"a,b\"\n", "a:i 1 2|b:c 0=5\" disk 1=a,b"},
    {"a,b\n1, \"x\"\n", "a:i 1|b:c 0= \"x\""},
    {"a\nx\n\"x\"\n", "a:c 0=x 0=x"},
    {"a,b\nx,\"\"\"\"\n", "a:c 0=x|b:c 0=\""},
    {"a,b\n1,1.5\n\"2\"\"3\",\"\"\"\"\n", "a:c 0=1 1=2\"3|b:c 0=1.5 1=\""},
    {"\"a,\"\"1\"\"\",\"b\nc\"\n1,2\n", "a,\"1\":i 1|b\nc:i 2"},
    /* lines */
    {"a,b\r\n1,2\r\n3,x\r\n", "a:i 1 3|b:c 0=2 1=x"},
    {"\xef\xbb\xbf\"a\",b\n1,2", "a:i 1|b:i 2"},
    {"\n\r\na,b\n\n1,2\n\r\n\n3,4\n\n", "a:i 1 3|b:i 2 4"},
    {"a\n1\n\n2\n", "a:i 1 2"},
    {"a,b\n", "a:n|b:n"},
    {"a,b", "a:n|b:n"},
    {" a , b\n1,2\n", "a:i 1|b:i 2"},
    {"a,b\n,\n", "a:n ?|b:n ?"},
    {"a,b\n1,\"x\"\r\n2,\"y\"\r\n", "a:i 1 2|b:c 0=x 1=y"},
    {"\xc3\xa4\n\xe2\x82\xac\n", "\xc3\xa4:c 0=\xe2\x82\xac"},
    /* the least and the greatest character of each length, and those beside the surrogates */
    {"a\n\xc2\x80\n\xe0\xa0\x80\n\xf0\x90\x80\x80\n",
     "a:c 0=\xc2\x80 1=\xe0\xa0\x80 2=\xf0\x90\x80\x80"},
    {"a\n\xdf\xbf\n\xed\x9f\xbf\n\xee\x80\x80\n\xf4\x8f\xbf\xbf\n",
     "a:c 0=\xdf\xbf 1=\xed\x9f\xbf 2=\xee\x80\x80 3=\xf4\x8f\xbf\xbf"},
};

static void meaning(void)
{
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        frg_context *ctx = level_context(levels[l]);
        for (size_t i = 0; ctx && i < sizeof meanings / sizeof *meanings; i++) {
            frg_table *t = NULL;
            char got[1024];
            CHECK_OK(ctx, parse_text(&t, ctx, meanings[i].text, NULL));
            CHECK_TEXT(table_text(t, got, sizeof got), meanings[i].table);
            frg_table_destroy(t);
        }
        frg_context_destroy(ctx);
    }
}

static void options(void)
{
    frg_context *ctx = test_context();
    frg_table_opts o;
    char got[512];
    frg_table *t;
    frg_table_defaults(&o, sizeof o);
    o.header = 0;
    CHECK_OK(ctx, parse_text(&t, ctx, "1,x\n2,y\n", &o));
    CHECK_TEXT(table_text(t, got, sizeof got), "c1:i 1 2|c2:c 0=x 1=y");
    frg_table_destroy(t);

    frg_table_defaults(&o, sizeof o);
    o.delimiter = ';';
    CHECK_OK(ctx, parse_text(&t, ctx, "a;b\n1;2,5\n", &o));
    CHECK_TEXT(table_text(t, got, sizeof got), "a:i 1|b:c 0=2,5");
    frg_table_destroy(t);

    frg_table_defaults(&o, sizeof o);
    o.format = "tsv";
    CHECK_OK(ctx, parse_text(&t, ctx, "a\tb\n1\tx,y\n", &o));
    CHECK_TEXT(table_text(t, got, sizeof got), "a:i 1|b:c 0=x,y");
    frg_table_destroy(t);

    const char tabs[] = "a\tb\n1\t2\n", commas[] = "a,b\n1,2\n";
    CHECK_OK(ctx, frg_table_parse(&t, ctx, tabs, sizeof tabs - 1, "d.TXT", NULL));
    CHECK_INT(frg_table_columns(t), 2);
    frg_table_destroy(t);
    CHECK_OK(ctx, frg_table_parse(&t, ctx, commas, sizeof commas - 1, "d.txt", NULL));
    CHECK_INT(frg_table_columns(t), 2);
    frg_table_destroy(t);

    frg_table_defaults(&o, sizeof o);
    o.na = (const char *const[]){"-999", "none"};
    o.n_na = 2;
    CHECK_OK(ctx, parse_text(&t, ctx, "a,b,c\n-999,1.5,x\n1,-999,none\n-999.0,2,\n", &o));
    CHECK_TEXT(table_text(t, got, sizeof got), "a:n ? 1 -999|b:n 1.5 ? 2|c:c 0=x ? 1=");
    frg_table_destroy(t);

    frg_table_defaults(&o,
                       sizeof o); /* how a cell with quotes in it is written is not what it says */
    o.na = (const char *const[]){"1\"\"2"};
    o.n_na = 1;
    CHECK_OK(ctx, parse_text(&t, ctx, "a\n7\n\"1\"\"2\"\n", &o));
    CHECK_TEXT(table_text(t, got, sizeof got), "a:c 0=7 1=1\"2");
    frg_table_destroy(t);

    frg_table_defaults(&o, sizeof o);
    o.columns = (const char *const[]){"c", "a", "c"};
    o.n_columns = 3;
    CHECK_OK(ctx, parse_text(&t, ctx, "a,b,c\n1,x,2\n", &o));
    CHECK_TEXT(table_text(t, got, sizeof got), "a:i 1|c:i 2");
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/* ---- steps and threads ----------------------------------------------------------------------- */

/** A table with everything: kinds that change late, quotes with newlines, blank lines, stray
 *  quotes. */
static void make_text(byte_string *b, int64_t rows, bool stray)
{
    static const char *const odd[] = {"\"a\nb\"", "\"x\"\"y\"", "", "NA", "plain", "\"q,r\""};
    const bool crlf = test_below(2);
    const char *const eol = crlf ? "\r\n" : "\n";
    add_bytes(b, "i,f,late,s,odd,flag,none\n", 25);
    for (int64_t r = 0; r < rows; r++) {
        char line[400];
        const bool last = r == rows - 1;
        const int n =
            snprintf(line, sizeof line, "%" PRId64 ",%.*f,%s%d,k%d,%s,%s,%s%s",
                     (int64_t)test_random() >> test_below(63), (int)test_below(20), test_normal(),
                     last ? "x" : "", (int)test_below(50), (int)test_below(r < 20 ? 10 : 300),
                     stray && r > rows / 2 ? "in\"side" : odd[test_below(6)],
                     test_below(9) ? "TRUE" : "NA", "", eol);
        add_bytes(b, line, (size_t)n);
        if (test_below(40) == 0)
            add_bytes(b, eol, strlen(eol));
    }
}

static frg_status parse_in_steps(frg_table **t, frg_context *ctx, const byte_string *b,
                                 frgi_csv_steps steps)
{
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.delimiter = ',';
    const frgi_span span = {(const char *)b->data, (int64_t)b->count};
    const frgi_input input = {.name = "t.csv", .spans = &span, .n_spans = 1};
    frgi_source *source;
    *t = NULL;
    frg_status status = frgi_source_open(&source, ctx, &input, true);
    if (status == FRG_OK)
        status = frgi_csv_read(t, ctx, &input, source, &o, &steps);
    frgi_source_close(&source);
    return status;
}

static void any_steps(void)
{
    static const frgi_csv_steps steps[] = {{1 << 20, 1 << 20, 0}, {1, 1, 0},   {3, 40, 0},
                                           {17, 200, 0},          {64, 64, 0}, {100, 5000, 0},
                                           {1000, 1 << 16, 0}};
    static const int threads[] = {1, 2, 3, 8};
    for (int repeat = 0; repeat < 6; repeat++) {
        if (!test_turn(repeat, 3))
            continue;
        byte_string b = {0};
        make_text(&b, repeat == 0 ? 3 : 400, repeat % 2 == 1);
        uint64_t want = 0;
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            for (size_t k = 0; k < 4; k++) {
                frg_context *ctx = test_context_with(threads[k], NULL, NULL);
                frg_table *t;
                if (CHECK_OK(ctx, parse_in_steps(&t, ctx, &b, steps[s]))) {
                    const uint64_t got = table_hash(t);
                    want = s == 0 && k == 0 ? got : want;
                    CHECK_SAYS(got == want, "block %d, segment %d, %d threads: another table",
                               (int)steps[s].block, (int)steps[s].segment, threads[k]);
                    CHECK_INT(frg_table_find(t, "i")->kind, FRG_INTEGER);
                    CHECK_INT(frg_table_find(t, "late")->kind, FRG_CATEGORY);
                    CHECK_INT(frg_table_find(t, "flag")->kind, FRG_BOOL);
                    CHECK_INT(frg_table_find(t, "none")->kind, FRG_NUMBER);
                }
                frg_table_destroy(t);
                CHECK_INT(frg_bytes_held(ctx), 0);
                frg_context_destroy(ctx);
            }
        }
        drop_bytes(&b);
    }
}

/** What a kind that changes after segments and blocks makes of the cells before it. */
static void kinds_that_change(void)
{
    static const struct {
        const char *text, *table;
    } columns[] = {
        {"a\n1\nNA\n3\n2.5\nNA\n", "a:n 1 ? 3 2.5 ?"},
        {"a\nNA\n1\nNA\n", "a:i ? 1 ?"},
        {"a\nTRUE\nNA\nFALSE\nTRUE\n", "a:b 1 ? 0 1"},
        {"a\nNA\nNA\nFALSE\n", "a:b ? ? 0"},
        {"a\nTRUE\nNA\n1\n", "a:c 0=TRUE ? 1=1"},
        {"a\n1\n2\nTRUE\n", "a:c 0=1 1=2 2=TRUE"},
        {"a\n2.5\nNA\nfalse\n", "a:c 0=2.5 ? 1=false"},
        /* no string of the NA list: a missing number, and a label where it turns out that labels
         * are read */
        {"a\nNAN\nNAN\nx\n", "a:c 0=NAN 0=NAN 1=x"},
        {"a\nNAN\nNA\n1\n", "a:n ? ? 1"},
    };
    static const frgi_csv_steps steps[] = {{1 << 20, 1 << 20, 0}, {1, 1, 0}, {2, 6, 0}, {4, 4, 0}};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        byte_string b = {0};
        add_bytes(&b, columns[i].text, strlen(columns[i].text));
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            frg_context *ctx = test_context_with(2, NULL, NULL);
            frg_table *t;
            char got[512];
            if (CHECK_OK(ctx, parse_in_steps(&t, ctx, &b, steps[s])))
                CHECK_TEXT(table_text(t, got, sizeof got), columns[i].table);
            frg_table_destroy(t);
            frg_context_destroy(ctx);
        }
        drop_bytes(&b);
    }
}

/** Blocks of the default size: several of them, with more strings than one block has. */
static void many_blocks(void)
{
    byte_string b = {0};
    enum { ROWS = 60000 };
    add_bytes(&b, "id,s,x\n", 7);
    for (int r = 0; r < ROWS; r++) {
        char line[100];
        const int n = snprintf(line, sizeof line, "%d,name-of-%d,%d.25\n", r, r * 7919 % ROWS, r);
        add_bytes(&b, line, (size_t)n);
    }
    for (int threads = 1; threads <= 3; threads++) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        frg_table *t;
        CHECK_OK(ctx, frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "b.csv", NULL));
        const frg_column *const s = frg_table_find(t, "s");
        CHECK_INT(s->n, ROWS);
        CHECK_INT(s->n_labels, ROWS);
        int wrong = 0;
        for (int r = 0; r < ROWS; r++) {
            char label[32];
            snprintf(label, sizeof label, "name-of-%d", r * 7919 % ROWS);
            wrong += s->codes[r] != r || strcmp(s->labels[r], label) != 0;
            wrong += frg_table_find(t, "id")->integers[r] != r;
            wrong += frg_table_find(t, "x")->numbers[r] != r + 0.25;
        }
        CHECK_INT(wrong, 0);
        frg_table_destroy(t);
        frg_context_destroy(ctx);
    }
    drop_bytes(&b);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    size_t count; /* 0: up to the NUL */
    const char *code, *where, *says;
} mistakes[] = {
    {"", 0, "FRG-IO-005", "t.csv:1", "empty"},
    {"\n\n", 0, "FRG-IO-005", "t.csv:3", "no rows"},
    {"a,a\n1,2\n", 0, "FRG-IO-005", "t.csv:1", "columns 1 and 2 are both named 'a'"},
    {"\na,,b\n1,2,3\n", 0, "FRG-IO-005", "t.csv:2", "column 2 has no name"},
    {"a,b\n1,2\n3\n", 0, "FRG-IO-005", "t.csv:3", "the row has 1 cells, the first one has 2"},
    {"a,b\n\n1,2\n\n1,2,3\n", 0, "FRG-IO-005", "t.csv:5", "the row has 3 cells"},
    {"a;b\n1,5;2\n", 0, "FRG-IO-005", "t.csv:2", "say so (--delimiter ';')"},
    {"a\tb\n1,5\t2\n", 0, "FRG-IO-005", "t.csv:2", "say so (--delimiter tab)"},
    {"a|b\n1,5|2\n", 0, "FRG-IO-005", "t.csv:2", "say so (--delimiter '|')"},
    {"a,b\n1,\"x\ny\"\n1,2,3\n", 0, "FRG-IO-005", "t.csv:4", "3 cells"},
    {"a,b\n1,q\"q\n1,2,3\n", 0, "FRG-IO-005", "t.csv:3", "3 cells"},
    {"a,b\n1,2\n3,\"x\n5,6\n", 0, "FRG-IO-005", "t.csv:3", "not closed"},
    {"a,b\n1,2\n3,\"x\"y\n5,6\n", 0, "FRG-IO-005", "t.csv:3", "text follows the closing quote"},
    {"a,b\n1,2\n3,\"x\"\ry\n5,6\n", 0, "FRG-IO-005", "t.csv:3", "text follows the closing quote"},
    {"a,b\r1,2\r3,4\r", 0, "FRG-IO-005", "t.csv:1", "column 2 holds a carriage return"},
    {"\"a\"x,b\n", 0, "FRG-IO-005", "t.csv:1", "text follows the closing quote"},
    {"\"a", 0, "FRG-IO-005", "t.csv:1", "not closed"},
    {"a\nx\nb\0c\n", 8, "FRG-IO-005", "t.csv:3", "NUL"},
    {"a,b\n1,caf\xe9\n", 0, "FRG-IO-005", "t.csv:2", "column 'b' is not UTF-8"},
    {"a\n\xed\xa0\x80\n", 0, "FRG-IO-005", "t.csv:2", "not UTF-8"},
    {"a\n\xc0\xaf\n", 0, "FRG-IO-005", "t.csv:2", "not UTF-8"},
    {"a\n\xc1\xbf\n", 0, "FRG-IO-005", "t.csv:2", "not UTF-8"},
    {"a\n\xe0\x9f\xbf\n", 0, "FRG-IO-005", "t.csv:2", "not UTF-8"},
    {"a\n\xf0\x8f\xbf\xbf\n", 0, "FRG-IO-005", "t.csv:2", "not UTF-8"},
    {"a\n\xf5\x80\x80\x80\n", 0, "FRG-IO-005", "t.csv:2", "not UTF-8"},
    {"a\n\xf4\x90\x80\x80\n", 0, "FRG-IO-005", "t.csv:2", "not UTF-8"},
    {"a\nx\xe2\x82\n", 0, "FRG-IO-005", "t.csv:2", "not UTF-8"},
    {"\xff\xfe"
     "a\0\n\0",
     6, "FRG-IO-005", "t.csv:1", "UTF-16"},
    {"\x28\xb5\x2f\xfd"
     "abc",
     0, "FRG-IO-007", "t.csv", "zstd"},
};

static void errors(void)
{
    frg_context *ctx = test_context();
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        frg_table *t = (frg_table *)&t;
        const size_t count = mistakes[i].count ? mistakes[i].count : strlen(mistakes[i].text);
        const frg_status s =
            frg_table_parse(&t, ctx, mistakes[i].text, (int64_t)count, "t.csv", NULL);
        CHECK_SAYS(s < 0 && !t, "mistake %zu was accepted", i);
        CHECK_TEXT(frg_error_code(ctx), mistakes[i].code);
        CHECK_TEXT(frg_error_where(ctx), mistakes[i].where);
        CHECK_SAYS(strstr(frg_message(ctx), mistakes[i].says) != NULL, "mistake %zu says: %s", i,
                   frg_message(ctx));
        CHECK_INT(frg_bytes_held(ctx), 0);
    }
    frg_context_destroy(ctx);
}

/** The line is counted over blocks and segments. */
static void line_of_a_late_error(void)
{
    frg_context *ctx = test_context();
    byte_string b = {0};
    add_bytes(&b, "a,b\n", 4);
    for (int i = 0; i < 500; i++)
        add_bytes(&b, i % 3 ? "1,2\n" : "\"x\ny\",2\n", i % 3 ? 4 : 8);
    add_bytes(&b, "1,2,3\n", 6); /* 1 + 500 rows + 167 second lines + 1 */
    frg_table *t;
    for (int64_t segment = 1; segment < 100000; segment *= 7) {
        CHECK_STATUS(parse_in_steps(&t, ctx, &b, (frgi_csv_steps){segment / 5 + 1, segment, 0}),
                     FRG_BAD_DATA);
        CHECK_TEXT(frg_error_where(ctx), "t.csv:669");
    }
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

static void wrong_calls(void)
{
    frg_context *ctx = test_context();
    frg_table *t;
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.columns = (const char *const[]){"wage", "frim"};
    o.n_columns = 2;
    CHECK_STATUS(parse_text(&t, ctx, "wage,firm\n1,2\n", &o), FRG_BAD_DATA);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-008");
    CHECK(strstr(frg_message(ctx), "'frim'") && strstr(frg_message(ctx), "did you mean 'firm'"));

    /* a name that stands twice: only where it is asked for */
    static const char twice[] = "wage,x,x,firm\n1,2,3,4\n";
    o.columns = (const char *const[]){"firm", "wage"};
    if (CHECK_OK(ctx, parse_text(&t, ctx, twice, &o))) {
        CHECK_INT(frg_table_columns(t), 2);
        CHECK_INT(frg_table_find(t, "firm")->integers[0], 4);
        CHECK_INT(frg_table_find(t, "wage")->integers[0], 1);
        frg_table_destroy(t);
    }
    o.columns = (const char *const[]){"firm", "x"};
    CHECK_STATUS(parse_text(&t, ctx, twice, &o), FRG_BAD_DATA);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-005");
    CHECK(strstr(frg_message(ctx), "columns 2 and 3 are both named 'x'") != NULL);

    static const char bad_delimiters[] = "\"\n\r1aZ.-+\x80";
    for (size_t i = 0; i < sizeof bad_delimiters - 1; i++) {
        frg_table_defaults(&o, sizeof o);
        o.delimiter = bad_delimiters[i];
        CHECK_STATUS(parse_text(&t, ctx, "a\n1\n", &o), FRG_BAD_ARG);
    }
    frg_table_defaults(&o, sizeof o);
    o.format = "parquet";
    CHECK_STATUS(parse_text(&t, ctx, "a\n1\n", &o), FRG_UNSUPPORTED);
    static const char *const others[] = {"d.parquet", "d.xlsx", "d.xlsx.zst", "d.c"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_STATUS(frg_table_parse(&t, ctx, "a\n1\n", 4, others[i], NULL), FRG_UNSUPPORTED);
        CHECK_TEXT(frg_error_code(ctx), "FRG-IO-006");
        CHECK(strstr(frg_message(ctx), "csv, tsv"));
    }
    CHECK_STATUS(frg_table_parse(&t, ctx, NULL, 3, "d.csv", NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_parse(&t, ctx, "a", -1, "d.csv", NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_read(&t, ctx, "", NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_table_read(&t, ctx, "/nonexistent/x.csv", NULL), FRG_NO_INPUT);
    CHECK_TEXT(frg_error_where(ctx), "/nonexistent/x.csv");
    frg_context_destroy(ctx);
}

/* ---- compressed streams ---------------------------------------------------------------------- */

static void check_packed(frg_context *ctx, const byte_string *b, const char *name, const char *code)
{
    frg_table *t = NULL;
    const frg_status s = frg_table_parse(&t, ctx, (char *)b->data, (int64_t)b->count, name, NULL);
    if (!code) {
        char got[200];
        CHECK_OK(ctx, s);
        CHECK_TEXT(table_text(t, got, sizeof got), "a:i 1 3|b:c 0=x 1=y");
    } else {
        CHECK(s < 0 && !t);
        CHECK_TEXT(frg_error_code(ctx), code);
    }
    frg_table_destroy(t);
    CHECK_INT(frg_bytes_held(ctx), 0);
}

static void check_gzip(frg_context *ctx, const byte_string *b, const char *code)
{
    check_packed(ctx, b, "z.csv.gz", code);
}

static void gzip(void)
{
    frg_context *ctx = test_context();
    byte_string b = {0};
    add_gzip(&b, "a,b\n1,x\n3,y\n");
    check_gzip(ctx, &b, NULL);
    for (size_t cut = 2; cut < b.count; cut++)
        check_gzip(ctx, &(byte_string){.data = b.data, .count = cut}, "FRG-IO-007");
    b.data[b.count - 6] ^= 1; /* of the CRC */
    check_gzip(ctx, &b, "FRG-IO-005");
    drop_bytes(&b);

    add_gzip(&b, "a,b\n1,");
    add_gzip(&b, "");
    add_gzip(&b, "x\n3,y\n");
    check_gzip(ctx, &b, NULL);
    add_bytes(&b, "\0\0\0", 3);
    check_gzip(ctx, &b, NULL);
    add_bytes(&b, "x", 1);
    check_gzip(ctx, &b, "FRG-IO-005");
    drop_bytes(&b);

    add_bytes(&b, "a,b\n1,x\n", 8);
    check_gzip(ctx, &b, "FRG-IO-005"); /* named .gz and is none */
    drop_bytes(&b);

    /* 3 MiB of one cell and row: more than 1000 times */
    char *zeros = malloc(3 << 20);
    if (CHECK(zeros != NULL)) {
        for (size_t i = 0; i < 3 << 20; i++)
            zeros[i] = i % 2 ? '\n' : '0';
        add_deflated(&b, zeros, 3 << 20, 31);
        check_gzip(ctx, &b, "FRG-IO-009");
    }
    free(zeros);
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/** A block of type 1 repeats one byte: 3 + 1 bytes for up to 128 KiB. */
static void add_zstd_zeros(byte_string *b, int blocks)
{
    add_number(b, 0xfd2fb528, 4);
    add_number(b, 0, 1);    /* no size is told, so that a window is: */
    add_number(b, 0x70, 1); /* 2^(10 + 14), 16 MiB */
    for (int i = 0; i < blocks; i++) {
        add_number(b, (uint64_t)(i == blocks - 1) | 1 << 1 | 1 << 20, 3);
        add_bytes(b, "0", 1);
    }
}

static void add_skippable(byte_string *b)
{
    add_number(b, 0x184d2a53, 4);
    add_number(b, 5, 4);
    add_bytes(b, "1,2\n3", 5);
}

static void zstd(void)
{
    frg_context *ctx = test_context();
    const char name[] = "z.csv.zst";
    byte_string b = {0};
    add_zstd(&b, "a,b\n1,x\n3,y\n", 5);
    check_packed(ctx, &b, name, NULL);
    check_packed(ctx, &b, "z.csv", NULL); /* known by its first bytes */
    check_packed(ctx, &b, "z.csv.gz", "FRG-IO-005");
    for (size_t cut = 4; cut < b.count; cut++)
        check_packed(ctx, &(byte_string){.data = b.data, .count = cut}, name, "FRG-IO-007");
    b.data[9] ^= 3 << 1; /* the first block has a type that there is not */
    check_packed(ctx, &b, name, "FRG-IO-005");
    drop_bytes(&b);

    add_skippable(&b);
    add_zstd(&b, "a,b\n1,", 100);
    add_zstd(&b, "", 100);
    add_skippable(&b);
    add_zstd(&b, "x\n3,y\n", 2);
    check_packed(ctx, &b, name, NULL);
    const size_t whole = b.count;
    add_skippable(&b);
    check_packed(ctx, &b, name, NULL);
    for (size_t cut = whole + 1; cut < b.count; cut++)
        check_packed(ctx, &(byte_string){.data = b.data, .count = cut}, name, "FRG-IO-007");
    add_bytes(&b, "none", 4);
    check_packed(ctx, &b, name, "FRG-IO-005");
    drop_bytes(&b);

    add_bytes(&b, "a,b\n1,x\n", 8);
    check_packed(ctx, &b, name, "FRG-IO-005"); /* named .zst and is none */
    drop_bytes(&b);

    add_zstd_zeros(&b, 9); /* 42 bytes of more than a MiB */
    check_packed(ctx, &b, name, "FRG-IO-009");
    drop_bytes(&b);

    add_number(&b, 0xfd2fb528, 4);
    add_number(&b, 0, 1);
    add_number(&b, 18 << 3, 1); /* a window of 256 MiB */
    add_number(&b, 1, 3);
    check_packed(ctx, &b, name, "FRG-IO-006");
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/* ---- files ----------------------------------------------------------------------------------- */

/** From a file, from a pipe (no size), and with the second pass over either: the same table. */
static void files_and_pipes(void)
{
    char path[] = "/tmp/fourge_csv_XXXXXX";
    const int fd = mkstemp(path);
    if (!CHECK(fd >= 0))
        return;
    byte_string b = {0};
    make_text(&b, 3000, false);
    CHECK(write_file(path, b.data, b.count));
    frg_context *memory = test_context();
    frg_table *t;
    CHECK_OK(memory, frg_table_parse(&t, memory, (char *)b.data, (int64_t)b.count, "t.csv", NULL));
    const uint64_t want = table_hash(t);
    frg_table_destroy(t);
    frg_context_destroy(memory);
    for (int pipe = 0; pipe < 2; pipe++) {
        fault_disk d;
        fault_disk_open(&d);
        d.no_size = pipe;
        frg_context *ctx = test_context_with(2, NULL, &d.table);
        int64_t reads = 0;
        for (int64_t segment = 100; segment < 1 << 24; segment *= 30, reads++) {
            frg_table_opts o;
            frg_table_defaults(&o, sizeof o);
            o.delimiter = ',';
            const frgi_input input = {.path = path, .name = path};
            const frgi_csv_steps steps = {segment / 3, segment, 0};
            frgi_source *source;
            CHECK_OK(ctx, frgi_source_open(&source, ctx, &input, true));
            CHECK_OK(ctx, frgi_csv_read(&t, ctx, &input, source, &o, &steps));
            frgi_source_close(&source);
            CHECK(t && table_hash(t) == want);
            frg_table_destroy(t);
        }
        if (pipe)
            CHECK_INT(d.calls[FAULT_OPEN], reads); /* never again */
        CHECK_INT(d.open_handles, 0);
        CHECK_INT(frg_bytes_held(ctx), 0);
        frg_context_destroy(ctx);
    }
    remove(path);
    drop_bytes(&b);
}

/** A pipe longer than what is kept of it is streamed: its kinds are right, memory is that of the
 *  columns, and a column that turns to text too late is an error with its name. */
static void long_pipes(void)
{
    char path[] = "/tmp/fourge_csv_XXXXXX";
    const int fd = mkstemp(path);
    if (!CHECK(fd >= 0))
        return;
    for (int late = 0; late < 2; late++) {
        enum { N = 20000, KEEP = 1 << 16 };
        byte_string b = {0};
        add_bytes(&b, "wide_label,x,id\n", 16);
        for (int i = 0; i < N; i++) {
            char line[64];
            const int length = snprintf(line, sizeof line, "%s,%d.5,%s%d\n",
                                        i % 2 ? "an_even_longer_label" : "label", i,
                                        late && i == N - 1 ? "A" : "", i / 7);
            add_bytes(&b, line, (size_t)length);
        }
        CHECK(write_file(path, b.data, b.count));
        fault_disk d;
        fault_disk_open(&d);
        d.no_size = true;
        frg_context *ctx = test_context_with(2, NULL, &d.table);
        frg_table_opts o;
        frg_table_defaults(&o, sizeof o);
        const frgi_input input = {.path = path, .name = path};
        size_t streamed = 0;
        for (int kept = 0; kept < 2; kept++) {
            const frgi_csv_steps steps = {1 << 14, 1 << 16, kept ? (int64_t)(2 * b.count) : KEEP};
            frgi_source *source;
            frg_table *t = NULL;
            CHECK_OK(ctx, frgi_source_open(&source, ctx, &input, true));
            const frg_status s = frgi_csv_read(&t, ctx, &input, source, &o, &steps);
            frgi_source_close(&source);
            if (late && !kept) {
                CHECK_STATUS(s, FRG_IO);
                CHECK_TEXT(frg_error_code(ctx), "FRG-IO-002");
                CHECK(strstr(frg_message(ctx), "'id'") &&
                      strstr(frg_message(ctx), "to a file first"));
            } else if (CHECK_OK(ctx, s)) {
                CHECK_INT(frg_table_rows(t), N);
                CHECK(frg_table_find(t, "x")->numbers[N - 1] == N - 0.5);
                CHECK_INT(frg_table_find(t, "id")->kind, late ? FRG_CATEGORY : FRG_INTEGER);
            }
            /* columns that double as they grow are largest when half of the text is there, at the
             * earliest */
            const size_t peak = frg_peak_bytes(ctx);
            if (kept)
                CHECK_SAYS(peak >= streamed + b.count / 2 - KEEP,
                           "%zu bytes with the text, %zu streamed", peak, streamed);
            streamed = peak;
            frg_table_destroy(t);
        }
        CHECK_INT(d.open_handles, 0);
        frg_context_destroy(ctx);
        drop_bytes(&b);
    }
    remove(path);
}

/* ---- without end ----------------------------------------------------------------------------- */

/** A stream of `kind` that goes on until `most` bytes were read of it. */
typedef struct {
    enum { NUMBERS, LABELS, ONE_ROW, N_STREAMS } kind;
    int64_t line, used, most;
    char text[32];
} stream;

static int open_stream(const char *path, char mode, void *user)
{
    (void)path, (void)user;
    return mode == 'r' ? 7 : -EACCES;
}

static int close_stream(int handle, void *user)
{
    (void)handle, (void)user;
    return 0;
}

static int64_t size_of_stream(int handle, void *user)
{
    (void)handle, (void)user;
    return -1;
}

static int64_t read_stream(int handle, void *to, size_t bytes, void *user)
{
    static const char *const form[N_STREAMS] = {"%d.5,1\n", "w%d,1\n", "%d,"};
    stream *const s = user;
    (void)handle;
    int64_t got = 0;
    while (got < (int64_t)bytes && s->used < s->most) {
        if (s->text[0] == '\0')
            snprintf(s->text, sizeof s->text, form[s->kind], (int)s->line++);
        const int64_t length = (int64_t)strlen(s->text), left = (int64_t)bytes - got;
        const int64_t n = length < left ? length : left;
        memcpy((char *)to + got, s->text, (size_t)n);
        memmove(s->text, s->text + n, (size_t)(length - n) + 1);
        got += n;
        s->used += n;
    }
    return got;
}

enum { MACHINE = 4 << 20 }; /* bytes of memory of the machine that is pretended */

static frg_context *small_machine(const frg_files *files)
{
    frg_context *ctx = test_context_with(2, NULL, files);
    atomic_store(&ctx->machine.memory, MACHINE);
    return ctx;
}

/** The table, the bytes by frgi_source_slurp or by frgi_read_file, of a stream: as `how` says. */
static frg_status read_whole(frg_context *ctx, const frgi_input *input, int how)
{
    static const frgi_csv_steps steps = {1 << 14, 1 << 16, 1 << 16};
    char *bytes = NULL;
    size_t count;
    int64_t length;
    if (how == 2) {
        const frg_status s = frgi_read_file(ctx, input->path, &bytes, &count);
        DROP(ctx, &bytes);
        return s;
    }
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    frg_table *t = NULL;
    frgi_source *source;
    TRY(frgi_source_open(&source, ctx, input, true));
    const frg_status s = how == 0 ? frgi_csv_read(&t, ctx, input, source, &o, &steps)
                                  : frgi_source_slurp(source, &bytes, &length);
    frgi_source_close(&source);
    frg_table_destroy(t);
    DROP(ctx, &bytes);
    return s;
}

/** A stream without end is refused before it takes the memory that the machine has, and told by its
 *  name; one that ends is not. */
static void streams_without_end(void)
{
    const frgi_input input = {.path = "endless.csv", .name = "endless.csv"};
    for (int how = 0; how < 3; how++) {
        for (int kind = 0; kind < N_STREAMS; kind++) {
            for (int endless = 0; endless < 2; endless++) {
                stream from = {.kind = kind, .most = endless ? INT64_MAX : MACHINE / 16};
                const frg_files files = {.open = open_stream,
                                         .read = read_stream,
                                         .close = close_stream,
                                         .size = size_of_stream,
                                         .user = &from};
                frg_context *ctx = small_machine(&files);
                const frg_status s = read_whole(ctx, &input, how);
                if (endless) {
                    CHECK_STATUS(s, FRG_NO_MEMORY);
                    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-002");
                    CHECK_SAYS(strstr(frg_message(ctx), "'endless.csv' has not ended after"), "%s",
                               frg_message(ctx));
                    CHECK(frg_peak_bytes(ctx) <= MACHINE && from.used > MACHINE / 16);
                } else { /* a row alone is no table */
                    CHECK_STATUS(s, how == 0 && kind == ONE_ROW ? FRG_BAD_DATA : FRG_OK);
                }
                CHECK_INT(frg_bytes_held(ctx), 0);
                frg_context_destroy(ctx);
            }
        }
    }
}

/** What is packed has no size before its end, so its table is bounded as that of a stream; plain
 *  text in memory has one. */
static void packed_beyond_memory(void)
{
    byte_string b = {0};
    add_bytes(&b, "x,y\n", 4);
    for (int i = 0; i < MACHINE / 12; i++) {
        char line[32];
        add_bytes(&b, line, (size_t)snprintf(line, sizeof line, "%d.5,%d\n", i, i % 7));
    }
    for (int packed = 0; packed < 2; packed++) {
        for (int large = 0; large < 2; large++) {
            byte_string z = {0};
            size_t count = large ? b.count : 1 << 16;
            while (b.data[count - 1] != '\n')
                count--;
            packed ? add_deflated(&z, b.data, count, 31) : add_bytes(&z, b.data, count);
            const frgi_span span = {(char *)z.data, (int64_t)z.count};
            const frgi_input input = {.name = "t.csv", .spans = &span, .n_spans = 1};
            frg_context *ctx = small_machine(NULL);
            CHECK_STATUS(read_whole(ctx, &input, 0), packed && large ? FRG_NO_MEMORY : FRG_OK);
            if (packed && large)
                CHECK(strstr(frg_message(ctx), "'t.csv' has not ended after"));
            frg_context_destroy(ctx);
            drop_bytes(&z);
        }
    }
    drop_bytes(&b);
}

/** A row goes to the file as soon as it is opened again. */
typedef struct {
    fault_disk disk;
    const char *path;
    int opened;
} growing_disk;

static int open_and_grow(const char *path, char mode, void *user)
{
    growing_disk *g = user;
    if (g->opened++ > 0) {
        FILE *f = fopen(g->path, "ab");
        CHECK(f && fputs("z\n", f) >= 0 && fclose(f) == 0);
    }
    return g->disk.system->open(path, mode, g->disk.system->user);
}

/** A column that is text after all is read again, and then the file has another row. */
static void changed_between_passes(void)
{
    char path[] = "/tmp/fourge_csv_XXXXXX";
    const int fd = mkstemp(path);
    if (!CHECK(fd >= 0) || !CHECK(write_file(path, "a\n1\n2\nx\n", 8)))
        return;
    growing_disk g = {.path = path};
    fault_disk_open(&g.disk);
    g.disk.table.open = open_and_grow;
    g.disk.table.user = &g;
    frg_context *ctx = test_context_with(1, NULL, &g.disk.table);
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.delimiter = ',';
    const frgi_input input = {.path = path, .name = path};
    const frgi_csv_steps steps = {1, 2, 0};
    frgi_source *source;
    frg_table *t;
    CHECK_OK(ctx, frgi_source_open(&source, ctx, &input, true));
    CHECK_STATUS(frgi_csv_read(&t, ctx, &input, source, &o, &steps), FRG_IO);
    frgi_source_close(&source);
    CHECK(!t && g.opened == 2);
    CHECK_SAYS(strstr(frg_message(ctx), "was changed while it was read"), "%s", frg_message(ctx));
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
    remove(path);
}

static int stop_at_once(const frg_progress *p, void *user)
{
    *(int *)user += p->done >= 0;
    return 1;
}

static void interrupted(void)
{
    int calls = 0;
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.on_progress = stop_at_once;
    o.user = &calls;
    frg_context *ctx;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    frg_table *t = (frg_table *)&t;
    CHECK_STATUS(parse_text(&t, ctx, "a\n1\n", NULL), FRG_INTERRUPTED);
    CHECK(t == NULL && calls == 1);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

/** A number takes 8 bytes, 2 % more rows are reserved, and two segments and an index of 8 MiB each
 *  are there besides, with some kilobytes around. */
static void memory_of_a_large_text(void)
{
    enum { ROWS = 60000, COLUMNS = 20 };
    byte_string b = {0};
    for (int c = 0; c < COLUMNS; c++)
        add_bytes(&b, c ? ",x" : "x", c ? 2 : 1), add_number(&b, (uint64_t)('a' + c), 1);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            char cell[40];
            const int n = snprintf(cell, sizeof cell, "%s%.17f", c ? "," : "\n", test_uniform());
            add_bytes(&b, cell, (size_t)n);
        }
    }
    frg_context *ctx = test_context();
    frg_table *t;
    CHECK_OK(ctx, frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "m.csv", NULL));
    CHECK_INT(frg_table_rows(t), ROWS);
    const double most = 1.02 * 8 * ROWS * COLUMNS + 3 * (8 << 20) + 400e3;
    CHECK_SAYS((double)frg_peak_bytes(ctx) < most, "%zu bytes were held, at most %.0f expected",
               frg_peak_bytes(ctx), most);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
    drop_bytes(&b);
}

static const test_case cases[] = {
    {"hard decimals", hard_numbers},
    {"powers of five", powers_of_five},
    {"numbers in columns", numbers_in_columns},
    {"meaning of text", meaning},
    {"options", options},
    {"any steps, any threads", any_steps},
    {"kinds that change", kinds_that_change},
    {"many blocks", many_blocks},
    {"errors", errors},
    {"line of a late error", line_of_a_late_error},
    {"wrong calls", wrong_calls},
    {"gzip", gzip},
    {"zstd", zstd},
    {"files and pipes", files_and_pipes},
    {"long pipes", long_pipes},
    {"streams without end", streams_without_end},
    {"packed beyond memory", packed_beyond_memory},
    {"changed between passes", changed_between_passes},
    {"interrupted", interrupted},
    {"memory of a large text", memory_of_a_large_text},
};
TEST_MAIN(cases)
