/* lsmr_cpu.c - the kernels of lsmr_ops.h; compiled once per CPU level. */
#include "sparse/lsmr_ops.h"

#include <math.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)

enum { MAX_WIDTH = 32 };

/** a b + c, rounded once where the level has it in hardware, twice where it has not. */
static inline double muladd(double a, double b, double c)
{
#ifdef __FMA__
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

/** Adds the SPAN partial sums of each column, pairwise. */
static void fold(ptrdiff_t k, double *restrict partial, double *restrict sums)
{
    for (ptrdiff_t half = SPAN / 2; half >= 1; half /= 2)
        for (ptrdiff_t t = 0; t < half * k; t++)
            partial[t] += partial[t + half * k];
    for (ptrdiff_t c = 0; c < k; c++)
        sums[c] = partial[c];
}

static void clear(ptrdiff_t k, double *restrict partial)
{
    for (ptrdiff_t t = 0; t < SPAN * k; t++)
        partial[t] = 0;
}

static inline void dot_span(ptrdiff_t count, const double *x, const double *y,
                            double *restrict partial)
{
    for (ptrdiff_t t = 0; t < count; t++)
        partial[t] = muladd(x[t], y[t], partial[t]);
}

static void dot(ptrdiff_t rows, ptrdiff_t k, const double *x, const double *y, double *sums)
{
    _Alignas(64) double partial[SPAN * MAX_WIDTH];
    const ptrdiff_t span = SPAN * k, whole = rows / SPAN * span, all = rows * k;
    clear(k, partial);
    for (ptrdiff_t t = 0; t < whole; t += span)
        dot_span(span, x + t, y + t, partial);
    dot_span(all - whole, x + whole, y + whole, partial);
    fold(k, partial, sums);
}

static inline void step_span(ptrdiff_t count, const double *restrict a, const double *restrict t,
                             double *restrict y, double *restrict partial)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const double z = muladd(-a[i], y[i], t[i]);
        y[i] = z;
        partial[i] = muladd(z, z, partial[i]);
    }
}

static void step(ptrdiff_t rows, ptrdiff_t k, const double *a, const double *t, double *y,
                 double *sums)
{
    _Alignas(64) double partial[SPAN * MAX_WIDTH];
    const ptrdiff_t span = SPAN * k, whole = rows / SPAN * span, all = rows * k;
    clear(k, partial);
    for (ptrdiff_t i = 0; i < whole; i += span)
        step_span(span, a, t + i, y + i, partial);
    step_span(all - whole, a, t + whole, y + whole, partial);
    fold(k, partial, sums);
}

static void scale(ptrdiff_t rows, ptrdiff_t k, const double *a, const double *x, double *y)
{
    const ptrdiff_t span = SPAN * k, all = rows * k;
    for (ptrdiff_t i = 0; i < all; i += span) {
        const ptrdiff_t count = all - i < span ? all - i : span;
        for (ptrdiff_t t = 0; t < count; t++)
            y[i + t] = a[t] * x[i + t];
    }
}

static inline void update_span(ptrdiff_t count, const double *restrict a, const double *restrict b,
                               const double *restrict c, const double *restrict v,
                               double *restrict h, double *restrict hb, double *restrict x,
                               double *restrict partial)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const double g = muladd(-a[i], hb[i], h[i]);
        const double z = muladd(b[i], g, x[i]);
        hb[i] = g;
        x[i] = z;
        h[i] = muladd(-c[i], h[i], v[i]);
        partial[i] = muladd(z, z, partial[i]);
    }
}

static void update(ptrdiff_t rows, ptrdiff_t k, const double *a, const double *b, const double *c,
                   const double *v, double *h, double *hb, double *x, double *sums)
{
    _Alignas(64) double partial[SPAN * MAX_WIDTH];
    const ptrdiff_t span = SPAN * k, whole = rows / SPAN * span, all = rows * k;
    clear(k, partial);
    for (ptrdiff_t i = 0; i < whole; i += span)
        update_span(span, a, b, c, v + i, h + i, hb + i, x + i, partial);
    update_span(all - whole, a, b, c, v + whole, h + whole, hb + whole, x + whole, partial);
    fold(k, partial, sums);
}

static inline void sparse_rows(ptrdiff_t first, ptrdiff_t end, ptrdiff_t k,
                               const int64_t *restrict starts, const int32_t *restrict columns,
                               const double *restrict values, const double *restrict x,
                               double *restrict y)
{
    for (ptrdiff_t i = first; i < end; i++) {
        double sum[MAX_WIDTH];
        for (ptrdiff_t c = 0; c < k; c++)
            sum[c] = 0;
        for (int64_t e = starts[i]; e < starts[i + 1]; e++) {
            const double *const row = x + columns[e] * k;
            for (ptrdiff_t c = 0; c < k; c++)
                sum[c] = muladd(values[e], row[c], sum[c]);
        }
        for (ptrdiff_t c = 0; c < k; c++)
            y[i * k + c] = sum[c];
    }
}

static void sparse(ptrdiff_t first, ptrdiff_t end, ptrdiff_t k, const int64_t *starts,
                   const int32_t *columns, const double *values, const double *x, double *y)
{
    switch (k) { /* constants, so that the sums live in registers */
    case 1:
        sparse_rows(first, end, 1, starts, columns, values, x, y);
        break;
    case 2:
        sparse_rows(first, end, 2, starts, columns, values, x, y);
        break;
    case 4:
        sparse_rows(first, end, 4, starts, columns, values, x, y);
        break;
    case 8:
        sparse_rows(first, end, 8, starts, columns, values, x, y);
        break;
    case 16:
        sparse_rows(first, end, 16, starts, columns, values, x, y);
        break;
    default:
        sparse_rows(first, end, k, starts, columns, values, x, y);
    }
}

const frgi_lsmr_ops JOIN(frgi_lsmr_ops, ISA) = {
    .dot = dot,
    .step = step,
    .scale = scale,
    .update = update,
    .sparse = sparse,
};
