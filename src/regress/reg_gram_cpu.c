/* reg_gram_cpu.c - the dot products of reg_gram.c, compiled once per CPU level.
 *
 * A chunk of rows of all columns stays in the nearest caches; a tile of 2 x 4 columns shares its
 * loads, eight sums are in flight.  The order of the additions inside a chunk is the compiler's and
 * the same every time.
 */
#include <string.h>

#include "regress/reg_gram.h"

#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)

static double dot(ptrdiff_t n, const double *restrict a, const double *restrict b)
{
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (ptrdiff_t r = 0; r < n; r++) {
        s += a[r] * b[r];
    }
    return s;
}

/** out[0..3] += a . x[0..3],  out[4..7] += b . x[0..3] */
static void tile(ptrdiff_t n, const double *restrict a, const double *restrict b,
                 const double *restrict x0, const double *restrict x1, const double *restrict x2,
                 const double *restrict x3, double *out)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, t0, t1, t2, t3)
    for (ptrdiff_t r = 0; r < n; r++) {
        s0 += a[r] * x0[r];
        s1 += a[r] * x1[r];
        s2 += a[r] * x2[r];
        s3 += a[r] * x3[r];
        t0 += b[r] * x0[r];
        t1 += b[r] * x1[r];
        t2 += b[r] * x2[r];
        t3 += b[r] * x3[r];
    }
    out[0] += s0;
    out[1] += s1;
    out[2] += s2;
    out[3] += s3;
    out[4] += t0;
    out[5] += t1;
    out[6] += t2;
    out[7] += t3;
}

static const double *weighted(ptrdiff_t n, const double *x, const double *w, double *restrict out)
{
    if (!w) {
        return x;
    }
    for (ptrdiff_t r = 0; r < n; r++) {
        out[r] = w[r] * x[r];
    }
    return out;
}

static void gram(int k, const double *const *x, const double *w, int64_t begin, int64_t n,
                 double *scratch, double *g)
{
    const double *const weights = w ? w + begin : NULL;
    for (int i = 0; i < k; i += 2) {
        const int pair = i + 1 < k ? 2 : 1;
        const double *const a = weighted(n, x[i] + begin, weights, scratch);
        const double *const b =
            pair == 2 ? weighted(n, x[i + 1] + begin, weights, scratch + FRGI_GRAM_CHUNK) : a;
        double *const row = g + frgi_packed(i, 0), *const next = g + frgi_packed(i + 1, 0);
        int j = 0;
        for (; j + 3 <= i && pair == 2; j += 4) {
            double out[8] = {0};
            tile(n, a, b, x[j] + begin, x[j + 1] + begin, x[j + 2] + begin, x[j + 3] + begin, out);
            for (int c = 0; c < 4; c++) {
                row[j + c] += out[c];
                next[j + c] += out[4 + c];
            }
        }
        for (; j <= i + 1 && j < k; j++) {
            if (j <= i) {
                row[j] += dot(n, a, x[j] + begin);
            }
            if (pair == 2) {
                next[j] += dot(n, b, x[j] + begin);
            }
        }
    }
}

static double total(ptrdiff_t n, const double *restrict x)
{
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (ptrdiff_t r = 0; r < n; r++) {
        s += x[r];
    }
    return s;
}

static frgi_moments moments(const double *x, const double *w, int64_t n)
{
    double shifted[FRGI_GRAM_CHUNK], scratch[FRGI_GRAM_CHUNK];
    const double weight = w ? total(n, w) : (double)n;
    const double mean = (w ? dot(n, w, x) : total(n, x)) / weight;
    for (ptrdiff_t r = 0; r < n; r++) {
        shifted[r] = x[r] - mean;
    }
    const double *const wd = weighted(n, shifted, w, scratch);
    const double error = total(n, wd); /* the corrected two-pass form */
    return (frgi_moments){.weight = weight,
                          .mean = mean + error / weight,
                          .square = dot(n, wd, shifted) - error * error / weight};
}

static void errors(int k, const double *const *x, const double *y, const double *b, int64_t begin,
                   int64_t n, double *e)
{
    double *restrict const out = e;
    for (ptrdiff_t r = 0; r < n; r++) {
        out[r] = y[begin + r];
    }
    for (int j = 0; j < k; j++) {
        const double *restrict const xj = x[j] + begin;
        const double bj = b[j];
        for (ptrdiff_t r = 0; r < n; r++) {
            out[r] -= bj * xj[r];
        }
    }
}

static void residual(int k, const double *const *x, const double *y, const double *b,
                     const double *w, int64_t begin, int64_t n, double *e, double *scratch,
                     double *g)
{
    errors(k, x, y, b, begin, n, e);
    const double *const we = weighted(n, e, w ? w + begin : NULL, scratch);
    for (int j = 0; j < k; j++) {
        g[j] += dot(n, we, x[j] + begin);
    }
    g[k] += dot(n, we, e);
}

/** sums[g] += s x, row by row; those of rows of one group that follow each other stay in registers,
 *  as every row would wait for what the row before has stored. */
static void by_group(const double *const x[4], const double *s, const int32_t *groups, int64_t n,
                     double *restrict sums)
{
    const double *restrict const x0 = x[0], *restrict const x1 = x[1], *restrict const x2 = x[2],
                                 *restrict const x3 = x[3];
    for (ptrdiff_t r = 0; r < n;) {
        const int32_t group = groups[r];
        double *const to = sums + 4 * (ptrdiff_t)group;
        double sum[4] = {to[0], to[1], to[2], to[3]};
        for (; r < n && groups[r] == group; r++) {
            sum[0] += s[r] * x0[r];
            sum[1] += s[r] * x1[r];
            sum[2] += s[r] * x2[r];
            sum[3] += s[r] * x3[r];
        }
        memcpy(to, sum, sizeof sum);
    }
}

#pragma GCC visibility push(hidden)
extern const frgi_gram_ops CAT(frgi_gram_ops, ISA);
#pragma GCC visibility pop
const frgi_gram_ops CAT(frgi_gram_ops, ISA) = {
    .gram = gram, .errors = errors, .residual = residual, .moments = moments, .by_group = by_group};
