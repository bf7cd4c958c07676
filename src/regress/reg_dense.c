/* reg_dense.c - see reg_dense.h.  Plain loops: k is the number of instruments or regressors. */
#include "regress/reg_dense.h"

#include <math.h>
#include <string.h>

#include "linalg/cholesky.h"
#include "linalg/small.h"

static const double SINGULAR = 1e-13; /* a pivot of correlations: rounding */

frg_status frgi_dense_inverse(frg_context *ctx, int k, double *a, double tol, bool *sound)
{
    double *scale;
    TRY(NEW(ctx, &scale, k, "a matrix"));
    *sound = true;
    for (int i = 0; i < k; i++) {
        *sound &= a[i * (ptrdiff_t)k + i] > 0 && isfinite(a[i * (ptrdiff_t)k + i]);
        scale[i] = sqrt(a[i * (ptrdiff_t)k + i]);
    }
    for (ptrdiff_t i = 0; i < (ptrdiff_t)k * k && *sound; i++) {
        a[i] = i / k == i % k ? 1 : a[i] / scale[i / k] / scale[i % k];
    }
    *sound = *sound && frgi_inverse(k, a, tol, 1, NULL);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)k * k && *sound; i++) {
        a[i] = a[i] / scale[i / k] / scale[i % k];
    }
    DROP(ctx, &scale);
    return FRG_OK;
}

frg_status frgi_dense_form(frg_context *ctx, int k, double *a, const double *x, double *out)
{
    bool sound;
    TRY(frgi_dense_inverse(ctx, k, a, SINGULAR, &sound));
    *out = sound ? 0 : (double)NAN;
    for (int i = 0; i < k && sound; i++) {
        for (int j = 0; j < k; j++) {
            *out += x[i] * a[i * (ptrdiff_t)k + j] * x[j];
        }
    }
    return FRG_OK;
}

void frgi_dense_cross(int n, int r, int c, const double *a, const double *b, double *out)
{
    memset(out, 0, sizeof *out * (size_t)r * (size_t)c);
    for (ptrdiff_t l = 0; l < n; l++) {
        for (ptrdiff_t i = 0; i < r; i++) {
            for (ptrdiff_t j = 0; j < c; j++) {
                out[i * c + j] += a[l * r + i] * b[l * c + j];
            }
        }
    }
}

void frgi_dense_product(int r, int n, int c, const double *a, const double *b, double *out)
{
    memset(out, 0, sizeof *out * (size_t)r * (size_t)c);
    for (ptrdiff_t i = 0; i < r; i++) {
        for (ptrdiff_t l = 0; l < n; l++) {
            for (ptrdiff_t j = 0; j < c; j++) {
                out[i * c + j] += a[i * n + l] * b[l * c + j];
            }
        }
    }
}

/** b <- the lower triangle of its Cholesky factor; false where it has none. */
static bool factor(ptrdiff_t k, double *b)
{
    for (ptrdiff_t i = 0; i < k; i++) {
        for (ptrdiff_t j = 0; j <= i; j++) {
            double s = b[i * k + j];
            for (ptrdiff_t l = 0; l < j; l++) {
                s -= b[i * k + l] * b[j * k + l];
            }
            if (i == j && !(s > 0)) {
                return false;
            }
            b[i * k + j] = i == j ? sqrt(s) : s / b[j * k + j];
        }
    }
    return true;
}

/** x <- L^-1 x for a column x of stride `step`. */
static void forward(ptrdiff_t k, const double *l, double *x, ptrdiff_t step)
{
    for (ptrdiff_t i = 0; i < k; i++) {
        for (ptrdiff_t j = 0; j < i; j++) {
            x[i * step] -= l[i * k + j] * x[j * step];
        }
        x[i * step] /= l[i * k + i];
    }
}

/** x <- L^-T x */
static void backward(ptrdiff_t k, const double *l, double *x)
{
    for (ptrdiff_t i = k - 1; i >= 0; i--) {
        for (ptrdiff_t j = i + 1; j < k; j++) {
            x[i] -= l[j * k + i] * x[j];
        }
        x[i] /= l[i * k + i];
    }
}

/** The largest first. */
static void order(ptrdiff_t k, double *values, double *c)
{
    for (ptrdiff_t i = 0; i < k; i++) {
        ptrdiff_t best = i;
        for (ptrdiff_t j = i + 1; j < k; j++) {
            best = values[j] > values[best] ? j : best;
        }
        for (ptrdiff_t j = -1; j < k && best != i; j++) {
            double *const p = j < 0 ? &values[i] : &c[i * k + j];
            double *const q = j < 0 ? &values[best] : &c[best * k + j];
            const double swap = *p;
            *p = *q;
            *q = swap;
        }
    }
}

/** L^-1 A L^-T with B = L L', both brought to a unit diagonal of B before. */
frg_status frgi_dense_pencil(frg_context *ctx, int k, double *a, double *b, double *values,
                             double *c, bool *sound)
{
    double *scale;
    TRY(NEW(ctx, &scale, k, "a matrix"));
    *sound = true;
    for (ptrdiff_t i = 0; i < k; i++) {
        *sound &= b[i * k + i] > 0;
        scale[i] = sqrt(b[i * k + i]);
    }
    for (ptrdiff_t i = 0; i < (ptrdiff_t)k * k && *sound; i++) {
        a[i] = a[i] / scale[i / k] / scale[i % k];
        b[i] = b[i] / scale[i / k] / scale[i % k];
    }
    *sound = *sound && factor(k, b);
    for (ptrdiff_t j = 0; j < k && *sound; j++) {
        forward(k, b, a + j, k);
    }
    for (ptrdiff_t i = 0; i < k && *sound; i++) {
        forward(k, b, a + i * k, 1);
    }
    if (*sound) {
        frgi_eigen(k, a, values, c);
        order(k, values, c);
    }
    for (ptrdiff_t i = 0; i < k && *sound; i++) {
        backward(k, b, c + i * k);
        for (ptrdiff_t j = 0; j < k; j++) {
            c[i * k + j] /= scale[j];
        }
    }
    DROP(ctx, &scale);
    return FRG_OK;
}
