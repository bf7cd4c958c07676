/* test_confined.c - tables decoded by a child process: the same ones, and what becomes of children
 * that crash, do what they may not, or send what is no table. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/dta_help.h"

#include "io/table_confined.h"

/* ---- readers that mean harm ------------------------------------------------------------------ */

static frg_status crash(frg_table **out, void *job)
{
    (void)out;
    (void)job;
    raise(SIGKILL); /* as the kernel does where memory is out; a filter lets it fail */
    __builtin_trap();
}

static char forbidden[64]; /* a file of this process's own: the same program may run elsewhere */

/** What a child asks of the system in vain; the number of what it got. */
static frg_status try_everything(frg_table **out, void *job)
{
    frg_context *const ctx = job;
    double got[5] = {0};
    const int made = open(forbidden, O_WRONLY | O_CREAT, 0600);
    const int made_open = open("/dev/null", O_WRONLY);
    const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
    got[0] = made >= 0;
    got[1] = made_open >= 0;
    got[2] = socket_ >= 0;
    got[3] = fork() >= 0;
    got[4] = write(STDERR_FILENO, "", 0) >= 0;
    frg_table *t;
    TRY(frg_table_create(&t, ctx, 5));
    TRY(frg_table_add_numbers(t, "got", got));
    *out = t;
    return FRG_OK;
}

/** More memory than the limit has. */
static frg_status take_memory(frg_table **out, void *job)
{
    frg_context *const ctx = job;
    double got = 0;
    frg_table *t;
    for (int i = 0; i < 64; i++) { /* 64 GB */
        void *const p = mmap(NULL, 1 << 30, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        got += p != MAP_FAILED;
    }
    TRY(frg_table_create(&t, ctx, 1));
    TRY(frg_table_add_numbers(t, "gigabytes", &got));
    *out = t;
    return FRG_OK;
}

static frg_status run(frg_context *ctx, frgi_table_reader read, void *job, frg_table **t)
{
    *t = NULL;
    return frgi_table_confined(t, ctx, "bad.dta", read, job);
}

static void no_child_is_left(void)
{
    CHECK(waitpid(-1, NULL, WNOHANG) < 0);
}

static void crashes(void)
{
    frg_context *const ctx = test_context();
    frg_table *t;
    for (int trial = 0; trial < 100; trial++) {
        CHECK_STATUS(run(ctx, crash, NULL, &t), FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-IO-018");
        CHECK(strstr(frg_message(ctx), "'bad.dta' crashed: it ended by signal") && !t);
    }
    CHECK_TEXT(frg_error_where(ctx), "bad.dta");
    CHECK_INT(frg_bytes_held(ctx), 0);
    no_child_is_left();
    frg_context_destroy(ctx);
}

static void what_a_child_may_do(void)
{
    frg_context *const ctx = test_context();
    frg_table *t;
    snprintf(forbidden, sizeof forbidden, "/tmp/fourge_confined_%d", (int)getpid());
    CHECK_OK(ctx, run(ctx, try_everything, ctx, &t));
    const bool filtered = frg_warning_count(ctx) == 0;
    for (int i = 0; t && filtered && i < 5; i++)
        CHECK(frg_table_column(t, 0)->numbers[i] == 0);
    CHECK(remove(forbidden) != 0 || !filtered);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static void memory_has_a_limit(void)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.memory_limit = (int64_t)3 << 30;
    frg_context *ctx;
    frg_table *t;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    CHECK_OK(ctx, run(ctx, take_memory, ctx, &t));
    CHECK(t && frg_table_column(t, 0)->numbers[0] <= 3);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static frg_status spin(frg_table **out, void *job)
{
    (void)out;
    for (volatile int *const for_ever = job; *for_ever;) {
    }
    return FRG_OK;
}

/* A limit of the caller that is lower than the child's own holds, and the message tells it.  In a
 * process of its own, as the limit stays; its hard limit, which the machine may have set, is left
 * as it is. */
static void time_has_a_limit(void)
{
    enum { HOLDS, NO_LIMIT, NO_CONTEXT, OTHER_STATUS, OTHER_MESSAGE };
    int how = 0;
    const pid_t child = fork();
    if (child == 0) {
        frg_context *ctx;
        frg_table *t;
        int for_ever = 1;
        struct rlimit r;
        if (getrlimit(RLIMIT_CPU, &r) != 0 ||
            setrlimit(RLIMIT_CPU, &(struct rlimit){1, r.rlim_max}) != 0)
            _exit(NO_LIMIT);
        if (frg_context_create(&ctx, NULL) != FRG_OK)
            _exit(NO_CONTEXT);
        if (run(ctx, spin, &for_ever, &t) != FRG_BAD_DATA)
            _exit(OTHER_STATUS);
        const bool told = strstr(frg_message(ctx), "took 1 seconds of processor time") != NULL;
        fprintf(stderr, "%s", told ? "" : frg_message(ctx));
        _exit(told ? HOLDS : OTHER_MESSAGE);
    }
    CHECK(waitpid(child, &how, 0) == child && WIFEXITED(how));
    CHECK_INT(WEXITSTATUS(how), HOLDS);
}

/* ---- children that lie ----------------------------------------------------------------------- */

typedef struct {
    const void *bytes;
    size_t count;
} lie;

/** What the parent makes of a child that sends these bytes. */
static frg_status parse_lie(const lie *l, frg_context *ctx, frg_table **out)
{
    frgi_confined c;
    *out = NULL;
    if (frgi_confined_start(&c, ctx, "bad.dta") != FRG_OK)
        return FRG_NO_MEMORY;
    if (c.child == 0) {
        frgi_confined_put(&c, l->bytes, l->count);
        frgi_confined_leave(&c);
    }
    return frgi_confined_end(&c, frgi_table_take(&c, out));
}

/** A table of two rows with a column of each kind, as it goes through the pipe, byte by byte
 *  changed: each is a table, or an error of the kinds that a hostile child may cause; and cut
 *  anywhere it is an error. */
static void lies(void)
{
    frg_context *const ctx = test_context();
    static const struct {
        int32_t kind, number;
        int64_t rows;
        int32_t column, ordered, labelled, name_bytes;
        int64_t n_labels, label_bytes;
        char name[8];
        int32_t codes[2];
        char labels[8];
    } honest = {4, 1, 2, FRG_CATEGORY, 1, 0, 8, 2, 8, "category", {0, 1}, "abc\0def"};
    frg_table *t;
    lie l = {&honest, sizeof honest};
    CHECK_OK(ctx, parse_lie(&l, ctx, &t));
    CHECK(t && frg_table_rows(t) == 2 && strcmp(frg_table_column(t, 0)->labels[1], "def") == 0);
    frg_table_destroy(t);
    unsigned char bytes[sizeof honest];
    int refused = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        for (int bit = 0; bit < 8; bit += 7) {
            memcpy(bytes, &honest, sizeof bytes);
            bytes[i] ^= (unsigned char)(1 << bit);
            l = (lie){bytes, sizeof bytes};
            const frg_status status = parse_lie(&l, ctx, &t);
            CHECK((status == FRG_OK) == (t != NULL));
            CHECK(status == FRG_OK || status == FRG_BAD_DATA || status == FRG_NO_MEMORY);
            refused += status != FRG_OK;
            frg_table_destroy(t);
            CHECK_INT(frg_bytes_held(ctx), 0);
        }
    }
    CHECK(refused > (int)sizeof bytes / 2);
    for (size_t n = 0; n < sizeof bytes; n++) {
        l = (lie){&honest, n};
        CHECK_STATUS(parse_lie(&l, ctx, &t), FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-IO-018");
    }
    no_child_is_left();
    frg_context_destroy(ctx);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void same_tables(void)
{
    static const char *const names[] = {"stata_118.dta", "stata_114.dta"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsigned char bytes[1 << 14];
        char text[2][2000];
        const size_t count = read_golden(names[i], bytes, sizeof bytes);
        int warnings[2] = {0};
        for (int untrusted = 0; untrusted < 2; untrusted++) {
            frg_context *const ctx = test_context();
            frg_table_opts o;
            frg_table *t = NULL;
            frg_table_defaults(&o, sizeof o);
            o.untrusted = untrusted;
            CHECK_OK(ctx, frg_table_parse(&t, ctx, (char *)bytes, (int64_t)count, names[i], &o));
            table_text(t, text[untrusted], sizeof text[untrusted]);
            warnings[untrusted] = frg_warning_count(ctx);
            frg_table_destroy(t);
            t = NULL;
            CHECK(frg_table_parse(&t, ctx, (char *)bytes, (int64_t)count / 2, names[i], &o) < 0);
            CHECK(!t && strncmp(frg_error_code(ctx), "FRG-IO-0", 8) == 0);
            CHECK(strcmp(frg_error_code(ctx), "FRG-IO-018") != 0);
            frg_context_destroy(ctx);
        }
        CHECK_TEXT(text[1], text[0]);
        CHECK(warnings[1] >= warnings[0]);
    }
    no_child_is_left();
}

/** The seeds of the fuzz target: what this process makes of them, the child does. */
static void seeds_of_the_fuzzer(void)
{
    static const char *const names[] = {"cut_118", "format_114", "format_117", "without_a_name"};
    frg_context *const ctx = test_context();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[300], code[2][32];
        int64_t rows[2];
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/dta/%s", FOURGE_SOURCE_DIR, names[i]);
        for (int untrusted = 0; untrusted < 2; untrusted++) {
            frg_table_opts o;
            frg_table *t = NULL;
            frg_table_defaults(&o, sizeof o);
            o.untrusted = untrusted;
            o.format = "dta";
            const frg_status status = frg_table_read(&t, ctx, path, &o);
            snprintf(code[untrusted], 32, "%s", status < 0 ? frg_error_code(ctx) : "");
            rows[untrusted] = t ? frg_table_rows(t) : -1;
            frg_table_destroy(t);
        }
        CHECK_TEXT(code[1], code[0]);
        CHECK_INT(rows[1], rows[0]);
    }
    frg_context_destroy(ctx);
}

static void options_are_checked(void)
{
    frg_context *const ctx = test_context();
    frg_table_opts o;
    frg_table *t;
    frg_table_defaults(&o, sizeof o);
    o.untrusted = 2;
    CHECK_STATUS(frg_table_parse(&t, ctx, "a\n1\n", 4, "t.csv", &o), FRG_BAD_ARG);
    frg_context_destroy(ctx);
}

static void a_stop_ends_it(void)
{
    frg_context *const ctx = test_context();
    frg_table *t;
    frg_interrupt(ctx);
    const lie none = {"", 0};
    CHECK_STATUS(parse_lie(&none, ctx, &t), FRG_INTERRUPTED);
    no_child_is_left();
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"crashes", crashes},
                                  {"time has a limit", time_has_a_limit},
                                  {"what a child may do", what_a_child_may_do},
                                  {"memory has a limit", memory_has_a_limit},
                                  {"lies", lies},
                                  {"same tables", same_tables},
                                  {"seeds of the fuzzer", seeds_of_the_fuzzer},
                                  {"options are checked", options_are_checked},
                                  {"a stop ends it", a_stop_ends_it}};
TEST_MAIN(cases)
