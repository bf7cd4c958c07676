/* test_tree_sum.c - core's sums over chunks: the tree's shape, and exact sums beside it. */
#include <math.h>

#include "core/tree_sum.h"
#include "test.h"

enum { MOST = 5000 };

static double tree(const double *x, int64_t n)
{
    frgi_tree_sum t = {0};
    for (int64_t i = 0; i < n; i++) {
        frgi_tree_add(&t, x[i]);
    }
    return frgi_tree_total(&t);
}

/** The definition: s(n) = s(first p) + s(the others), p the largest power of two below n. */
static double by_definition(const double *x, int64_t n)
{
    if (n <= 1) {
        return n == 1 ? x[0] : 0;
    }
    int64_t p = 1;
    while (2 * p < n) {
        p *= 2;
    }
    return by_definition(x, p) + by_definition(x + p, n - p);
}

/** Numbers of very different sizes, whose sums depend on their order. */
static void shape(void)
{
    static double x[MOST];
    for (int64_t i = 0; i < MOST; i++) {
        x[i] = ldexp(test_normal(), (int)test_below(40));
    }
    int64_t differs = 0;
    for (int64_t n = 0; n < MOST; n = n < 300 ? n + 1 : 2 * n - 77) {
        double one_by_one = 0;
        for (int64_t i = 0; i < n; i++) {
            one_by_one += x[i];
        }
        const double sum = tree(x, n);
        CHECK(sum == by_definition(x, n));
        differs += sum != one_by_one;
    }
    CHECK(differs > 100); /* the comparison above can fail */
}

/** A run of 2^k chunks from a multiple of 2^k on is one subtree, whoever adds it up. */
static void runs(void)
{
    static double x[MOST], of_run[MOST];
    for (int64_t i = 0; i < MOST; i++) {
        x[i] = test_normal();
    }
    for (int64_t run = 1; run <= 512; run *= 2) {
        int64_t n_runs = 0;
        for (int64_t from = 0; from < MOST; from += run) {
            of_run[n_runs++] = tree(x + from, MOST - from < run ? MOST - from : run);
        }
        CHECK(tree(of_run, n_runs) == tree(x, MOST));
    }
}

static void exact(void)
{
    __extension__ typedef __int128 wide;
    static double x[MOST];
    /* x_i = m_i 2^-40, |m_i| < 2^52: sums of the m_i are exact in 128 bits */
    for (int trial = 0; trial < 20; trial++) {
        const int64_t n = 1 + test_below(MOST);
        wide sum = 0;
        double size = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t m = test_below(INT64_C(1) << 53) - (INT64_C(1) << 52);
            x[i] = ldexp((double)m, -40);
            sum += m;
            size += fabs((double)m);
        }
        /* units of 2^-40; the bound of tree_sum.h, with 1 % for its second order and for `size`,
         * which has rounding errors of n u */
        const double bound = 1.01 * ceil(log2((double)n)) * 0x1p-53 * size;
        const wide found = (wide)ldexp(tree(x, n), 40); /* a whole number */
        const double error = fabs((double)(found - sum));
        CHECK(error <= bound);
    }
    /* equal chunks, 2^k of them: each addition doubles, which is exact */
    for (int64_t i = 0; i < MOST; i++) {
        x[i] = 0.1;
    }
    CHECK(tree(x, 4096) == 4096 * 0.1);
    frgi_tree_sum none = {0};
    CHECK(frgi_tree_total(&none) == 0);
}

/** Rows of numbers, apart by more than their length, and their sum in the place of the first; the
 *  places joined pair by pair: all by the same tree. */
static void rows(void)
{
    enum { LENGTH = 300, STRIDE = 307, ROWS = 70 };
    static double x[ROWS * STRIDE], column[ROWS], to[LENGTH];
    for (int64_t n = 0; n <= ROWS; n++) {
        for (int64_t i = 0; i < ROWS * STRIDE; i++) {
            x[i] = ldexp(test_normal(), (int)test_below(40));
        }
        const double behind = x[LENGTH];
        frgi_tree_rows(x, n, STRIDE, LENGTH, to);
        int64_t others = 0, joined = 0;
        for (int64_t j = 0; j < LENGTH; j++) {
            for (int64_t i = 0; i < n; i++) {
                column[i] = x[i * STRIDE + j];
            }
            others += to[j] != by_definition(column, n);
        }
        CHECK_INT(others, 0);
        for (frgi_tree_pair p = {.n = n}; frgi_tree_next(&p); joined++) {
            column[p.to] += column[p.from];
        }
        CHECK_INT(joined, n > 0 ? n - 1 : 0);
        CHECK(n == 0 || column[0] == to[LENGTH - 1]);
        frgi_tree_rows(x, n, STRIDE, LENGTH, x);
        CHECK_BITS(x, to, sizeof to);
        CHECK(x[LENGTH] == behind);
    }
}

static const test_case cases[] = {
    {"the shape is a function of the count", shape},
    {"runs are subtrees", runs},
    {"exact sums", exact},
    {"rows, and places", rows},
};

TEST_MAIN(cases)
