/* soap_cpu.c - the steps of soap_ops.h; this text is compiled once per CPU level.
 *
 * Plain loops that the compiler makes vectors of.  Sums run in lanes of double inside a block;
 * blocks have a fixed length and are added by one tree, so that a level gives one result. */
#include <math.h>
#include <string.h>

#include "core/tree_sum.h"
#include "soap/soap_ops.h"

#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)

enum { BLOCK = 4096 };

static double largest(ptrdiff_t n, const float *x)
{
    uint32_t top =
        0; /* without their sign, bits are ordered as the numbers, infinity and NaN last */
#pragma omp simd reduction(max : top)
    for (ptrdiff_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0x7fffffff;
        top = bits > top ? bits : top;
    }
    float y;
    memcpy(&y, &top, sizeof y);
    return isfinite(y) ? (double)y : (double)NAN;
}

static double sum_squares(ptrdiff_t n, const float *x)
{
    frgi_tree_sum all = {0};
    for (ptrdiff_t from = 0; from < n; from += BLOCK) {
        const ptrdiff_t to = n - from < BLOCK ? n : from + BLOCK;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t i = from; i < to; i++) {
            sum += (double)x[i] * (double)x[i];
        }
        frgi_tree_add(&all, sum);
    }
    return frgi_tree_total(&all);
}

static void inner(ptrdiff_t n, const float *q, const float *w, double *qw, double *ww)
{
    double s = 0, t = 0;
#pragma omp simd reduction(+ : s, t)
    for (ptrdiff_t i = 0; i < n; i++) {
        s += (double)q[i] * (double)w[i];
        t += (double)w[i] * (double)w[i];
    }
    *qw = s;
    *ww = t;
}

static void ridge(ptrdiff_t n, float c, const float *restrict q, const float *restrict w,
                  float *restrict a)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        a[i] = w[i] + c * q[i];
    }
}

static void blend(ptrdiff_t n, float rate, const float *restrict x, float *restrict m)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        m[i] += rate * (x[i] - m[i]);
    }
}

static void adam(ptrdiff_t n, const soap_adam *a, float *restrict g, float *restrict m,
                 const float *restrict m_in_bases, float *restrict v)
{
    const float rate1 = a->rate1, rate2 = a->rate2, from_m = a->from_m, from_g = a->from_g;
    const float scale = a->scale_v, eps = a->eps;
    if (m) {
        blend(n, rate1, g, m);
    }
    const float *const restrict moment = m ? m : m_in_bases;
    for (ptrdiff_t i = 0; i < n; i++) {
        const float x = g[i], y = v[i] + rate2 * (x * x - v[i]);
        const float denominator = sqrtf(y * scale) + eps;
        const float numerator = from_m * moment[i] + from_g * x;
        v[i] = y;
        g[i] = numerator / (denominator > 0 ? denominator : INFINITY);
    }
}

static void write(ptrdiff_t n, float keep, bool after, float lr, const float *restrict d,
                  float *restrict w)
{
    if (after) {
        for (ptrdiff_t i = 0; i < n; i++) {
            w[i] = (w[i] - lr * d[i]) * keep;
        }
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            w[i] = w[i] * keep - lr * d[i];
        }
    }
}

const soap_ops CAT(frgi_soap_ops, ISA) = {
    .largest = largest,
    .sum_squares = sum_squares,
    .inner = inner,
    .ridge = ridge,
    .blend = blend,
    .adam = adam,
    .write = write,
};
