/* test.h - the harness of all C tests: checks, a table of cases, TAP on standard output.
 *
 *     static void means(void)
 *     {
 *         frg_context *ctx = test_context();
 *         CHECK_OK(ctx, frg_demean_create(...));
 *         CHECK_NEAR(r[0], 0.25, 1e-14);
 *         frg_context_destroy(ctx);
 *     }
 *     static const test_case cases[] = {{"means", means}};
 *     TEST_MAIN(cases)
 *
 * A check that fails prints where and why and the case goes on; every check is an expression that
 * says whether it held, so that `if (!CHECK(p)) return;` is possible.  Checks belong to the main
 * thread. Options: --only NAME (part of a name; may be given several times), --seed N, --threads N,
 * --isa plain|v2|v3|v4, --list. "# random" before the line of a case says that it has drawn random
 * numbers. Random numbers depend on the seed and the name of the case alone: --only repeats what a
 * full run did.
 */
#ifndef FOURGE_TEST_H
#define FOURGE_TEST_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fourge/fourge.h"

typedef struct {
    const char *name;
    void (*run)(void);
} test_case;

static struct {
    uint64_t seed, random;
    int threads; /* of test_context */
    int failures, printed;
    const char *skipped; /* the reason, NULL: not skipped */
} test_now = {.seed = 1, .threads = 2};

enum { TEST_PRINTED_MAX = 20 }; /* messages a case may print */

#define CHECK(condition) test_check((condition), __FILE__, __LINE__, "%s", #condition)
/** Like CHECK with a message of your own. */
#define CHECK_SAYS(condition, ...) test_check((condition), __FILE__, __LINE__, __VA_ARGS__)
/** |got - want| <= tolerance * max(1, |want|); NaN never passes. */
#define CHECK_NEAR(got, want, tolerance)                                                           \
    test_near((got), (want), (tolerance), __FILE__, __LINE__, #got)
#define CHECK_INT(got, want)  test_integer((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, #got)
#define CHECK_TEXT(got, want) test_text((got), (want), __FILE__, __LINE__, #got)
/** The same `bytes` bytes. */
#define CHECK_BITS(got, want, bytes) test_bits((got), (want), (bytes), __FILE__, __LINE__, #got)
#define CHECK_STATUS(call, want)     test_status(NULL, (call), (want), __FILE__, __LINE__, #call)
/** The call returns FRG_OK; otherwise the context's message is printed. */
#define CHECK_OK(ctx, call) test_status((ctx), (call), FRG_OK, __FILE__, __LINE__, #call)
#define TEST_MAIN(cases)                                                                           \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return test_main(argc, argv, (cases), (int)(sizeof(cases) / sizeof(cases)[0]));            \
    }

#define TEST_UNUSED __attribute__((unused))

int setenv(const char *name, const char *value, int overwrite); /* POSIX; hidden by -std=c11 */

TEST_UNUSED FRG_PRINTF(4, 5) static bool test_check(bool held, const char *file, int line,
                                                    const char *format, ...)
{
    if (held)
        return true;
    test_now.failures++;
    if (test_now.printed++ >= TEST_PRINTED_MAX)
        return false;
    printf("# %s:%d: ", file, line);
    __builtin_va_list args;
    __builtin_va_start(args, format);
    vprintf(format, args);
    __builtin_va_end(args);
    printf("\n");
    return false;
}

TEST_UNUSED static bool test_near(double got, double want, double tolerance, const char *file,
                                  int line, const char *what)
{
    const double error = fabs(got - want), allowed = tolerance * fmax(1.0, fabs(want));
    return test_check(got == want || error <= allowed, file, line,
                      "%s is %.17g, expected %.17g: error %.3g > %.3g", what, got, want, error,
                      allowed);
}

TEST_UNUSED static bool test_integer(int64_t got, int64_t want, const char *file, int line,
                                     const char *what)
{
    return test_check(got == want, file, line, "%s is %" PRId64 ", expected %" PRId64, what, got,
                      want);
}

TEST_UNUSED static bool test_text(const char *got, const char *want, const char *file, int line,
                                  const char *what)
{
    return test_check(got && want && strcmp(got, want) == 0, file, line,
                      "%s is \"%s\", expected \"%s\"", what, got ? got : "(NULL)",
                      want ? want : "(NULL)");
}

TEST_UNUSED static bool test_bits(const void *got, const void *want, size_t bytes, const char *file,
                                  int line, const char *what)
{
    const unsigned char *const a = got, *const b = want;
    size_t at = 0;
    while (at < bytes && a[at] == b[at])
        at++;
    return test_check(at == bytes, file, line, "%s differs in byte %zu of %zu (double %zu)", what,
                      at, bytes, at / sizeof(double));
}

TEST_UNUSED static bool test_status(const frg_context *ctx, frg_status got, frg_status want,
                                    const char *file, int line, const char *what)
{
    return test_check(got == want, file, line, "%s gave %s, expected %s%s%s", what,
                      frg_status_name(got), frg_status_name(want), ctx ? ": " : "",
                      ctx ? frg_message(ctx) : "");
}

/** The case ends as skipped, whatever it checked before stays checked. */
TEST_UNUSED static void test_skip(const char *reason)
{
    test_now.skipped = reason;
}

/** splitmix64 (Steele, Lea, Flood 2014). */
TEST_UNUSED static uint64_t test_random(void)
{
    uint64_t z = (test_now.random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** 0 <= result < n. */
TEST_UNUSED static int64_t test_below(int64_t n)
{
    return (int64_t)(test_random() % (uint64_t)n);
}

/** Uniform in [0, 1). */
TEST_UNUSED static double test_uniform(void)
{
    return (double)(test_random() >> 11) * 0x1p-53;
}

TEST_UNUSED static double test_normal(void)
{
    const double radius = sqrt(-2 * log(1 - test_uniform()));
    return radius * cos(2 * 3.14159265358979323846 * test_uniform());
}

/** A context with `threads` threads and the given tables (NULL: the system's); NULL after a failed
 *  check. */
TEST_UNUSED static frg_context *test_context_with(int threads, const frg_allocator *allocator,
                                                  const frg_files *files)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.threads = threads;
    o.allocator = allocator;
    o.files = files;
    frg_context *ctx = NULL;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    return ctx;
}

TEST_UNUSED static frg_context *test_context(void)
{
    return test_context_with(test_now.threads, NULL, NULL);
}

/** FOURGE_TEST_SIZE=tiny: under a sanitizer that slows everything down, problems are made small. */
TEST_UNUSED static int64_t test_size(int64_t usual, int64_t tiny)
{
    const char *size = getenv("FOURGE_TEST_SIZE");
    return size && strcmp(size, "tiny") == 0 ? tiny : usual;
}

/** Is part k of a case run?  FOURGE_TEST_TURNS=1, in sweeps over seeds: one of `parts`, another with
 *  each seed; else all are. */
TEST_UNUSED static bool test_turn(int64_t k, int64_t parts)
{
    const char *turns = getenv("FOURGE_TEST_TURNS");
    return !turns || strcmp(turns, "1") != 0 ||
           (k + (int64_t)(test_now.seed % (uint64_t)parts)) % parts == 0;
}

enum { TEST_ONLY_MAX = 64 };

static bool test_asked(const char *name, const char *const only[], int n_only)
{
    for (int i = 0; i < n_only; i++)
        if (strstr(name, only[i]))
            return true;
    return n_only == 0;
}

static bool test_option(int argc, char **argv, int i, const char *name)
{
    return strcmp(argv[i], name) == 0 && i + 1 < argc;
}

TEST_UNUSED static int test_main(int argc, char **argv, const test_case cases[], int n_cases)
{
    const char *only[TEST_ONLY_MAX];
    int n_only = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            for (int c = 0; c < n_cases; c++)
                printf("%s\n", cases[c].name);
            return 0;
        }
        if (test_option(argc, argv, i, "--only") && n_only < TEST_ONLY_MAX) {
            only[n_only++] = argv[++i];
        } else if (test_option(argc, argv, i, "--seed")) {
            test_now.seed = strtoull(argv[++i], NULL, 0);
        } else if (test_option(argc, argv, i, "--threads")) {
            test_now.threads = atoi(argv[++i]);
        } else if (test_option(argc, argv, i, "--isa")) {
            setenv("FOURGE_ISA", argv[++i], 1);
        } else {
            fprintf(stderr,
                    "usage: %s [--only NAME] [--seed N] [--threads N] [--isa LEVEL] [--list]\n",
                    argv[0]);
            return 2;
        }
    }
    const char *isa = getenv("FOURGE_ISA");
    printf("1..%d\n# seed %" PRIu64 ", threads %d, isa %s\n", n_cases, test_now.seed,
           test_now.threads, isa ? isa : "native");
    int passed = 0, failed = 0, skipped = 0;
    for (int c = 0; c < n_cases; c++) {
        test_now.failures = test_now.printed = 0;
        test_now.skipped = test_asked(cases[c].name, only, n_only) ? NULL : "not asked for";
        test_now.random = test_now.seed * 0x2545f4914f6cdd1du;
        for (const char *s = cases[c].name; *s; s++)
            test_now.random = (test_now.random ^ (unsigned char)*s) * 0x100000001b3u;
        const uint64_t undrawn = test_now.random;
        if (!test_now.skipped)
            cases[c].run();
        if (test_now.random != undrawn)
            printf("# random\n");
        if (test_now.printed > TEST_PRINTED_MAX)
            printf("# and %d more\n", test_now.printed - TEST_PRINTED_MAX);
        printf("%s %d - %s%s%s\n", test_now.failures ? "not ok" : "ok", c + 1, cases[c].name,
               test_now.skipped ? " # SKIP " : "", test_now.skipped ? test_now.skipped : "");
        fflush(stdout);
        failed += test_now.failures > 0;
        skipped += test_now.failures == 0 && test_now.skipped;
        passed += test_now.failures == 0 && !test_now.skipped;
    }
    if (skipped)
        printf("# %d skipped\n", skipped);
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}

#endif
