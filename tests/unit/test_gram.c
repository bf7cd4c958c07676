/* test_gram.c - Gram matrices on both sides of the width from which they are made tile by tile.
 *
 * Tolerance: a sum of n products of normal numbers, added by chunks of 512, is known to (512 + n /
 * 512) eps of the sum of their absolute values, which is about n; 1024 n eps is asked for.
 */
#include <float.h>
#include <string.h>

#include "regress/reg_gram.h"
#include "test.h"

enum { ROWS = 1300, COLUMNS = 600 };

typedef struct {
    double *x, *w;
    const double *columns[COLUMNS];
} sample;

static sample make(void)
{
    sample s = {.x = malloc(sizeof *s.x * ROWS * COLUMNS), .w = malloc(sizeof *s.w * ROWS)};
    if (!s.x || !s.w)
        abort();
    for (int i = 0; i < ROWS * COLUMNS; i++)
        s.x[i] = test_normal();
    for (int i = 0; i < ROWS; i++)
        s.w[i] = 0.5 + test_uniform();
    for (int j = 0; j < COLUMNS; j++) /* in no order of memory */
        s.columns[j] = s.x + (ptrdiff_t)(j * 7 % COLUMNS) * ROWS;
    return s;
}

static double *gram(const sample *s, int k, const double *w, int threads)
{
    double *g = malloc(sizeof *g * (size_t)frgi_packed(k, 0));
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    CHECK_OK(ctx, frgi_gram(ctx, k, s->columns, w, ROWS, g, NULL));
    frg_context_destroy(ctx);
    return g;
}

static void sums(void)
{
    static const int widths[] = {1, 5, 255, 256, 257, 512, 600};
    sample s = make();
    for (int t = 0; t < 14; t++) {
        if (!test_turn(t / 2, 7))
            continue;
        const int k = widths[t / 2];
        const double *w = t % 2 ? s.w : NULL;
        double *g = gram(&s, k, w, test_now.threads), worst = 0;
        for (int i = 0; i < k; i++)
            for (int j = 0; j <= i; j++) {
                long double sum = 0;
                for (int r = 0; r < ROWS; r++)
                    sum += (long double)s.columns[i][r] * s.columns[j][r] * (w ? w[r] : 1);
                worst = fmax(worst, fabs((double)(g[frgi_packed(i, j)] - sum)));
            }
        CHECK_SAYS(worst <= 1024 * ROWS * DBL_EPSILON, "%d columns: %g", k, worst);
        free(g);
    }
    free(s.x);
    free(s.w);
}

static void threads_agree(void)
{
    static const int threads[] = {2, 3, 8};
    sample s = make();
    double *first = gram(&s, COLUMNS, s.w, 1);
    for (int t = 0; t < 3; t++) {
        double *g = gram(&s, COLUMNS, s.w, threads[t]);
        CHECK(memcmp(first, g, sizeof *g * (size_t)frgi_packed(COLUMNS, 0)) == 0);
        free(g);
    }
    free(first);
    free(s.x);
    free(s.w);
}

/** Six runs of 8 chunks are added by the tree of core/tree_sum.h, in tiles or not: the same bits as
 *  the sums of the runs' rows alone, each of which is one run. */
static void runs_by_the_tree(void)
{
    enum { RUN = 8 * FRGI_GRAM_CHUNK, RUNS = 6, WIDEST = 258 };
    static const int widths[] = {3, WIDEST};
    const int64_t n = RUN * RUNS, length = frgi_packed(WIDEST, 0);
    double *x = malloc(sizeof *x * (size_t)(n + WIDEST)), *g = malloc(sizeof *g * (size_t)length);
    double *run = malloc(sizeof *run * (size_t)(RUNS * length));
    const double *columns[WIDEST];
    frg_context *ctx = test_context();
    for (int64_t i = 0; i < n + WIDEST; i++)
        x[i] = test_normal();
    for (int t = 0; t < 2; t++) {
        const int64_t k = widths[t], count = frgi_packed(k, 0);
        int64_t others = 0;
        for (int r = 0; r < RUNS; r++) {
            for (int64_t j = 0; j < k; j++)
                columns[j] = x + j + r * RUN;
            CHECK_OK(ctx, frgi_gram(ctx, (int)k, columns, NULL, RUN, run + r * count, NULL));
        }
        for (int64_t j = 0; j < k; j++)
            columns[j] = x + j;
        CHECK_OK(ctx, frgi_gram(ctx, (int)k, columns, NULL, n, g, NULL));
        for (int64_t e = 0; e < count; e++) {
            const double *const of = run + e;
            const double four = (of[0] + of[count]) + (of[2 * count] + of[3 * count]);
            others += g[e] != four + (of[4 * count] + of[5 * count]);
        }
        CHECK_INT(others, 0);
    }
    frg_context_destroy(ctx);
    free(x);
    free(g);
    free(run);
}

static const test_case cases[] = {
    {"sums of products", sums},
    {"threads agree", threads_agree},
    {"runs by the tree", runs_by_the_tree},
};
TEST_MAIN(cases)
