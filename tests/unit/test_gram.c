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

static const test_case cases[] = {
    {"sums of products", sums},
    {"threads agree", threads_agree},
};
TEST_MAIN(cases)
