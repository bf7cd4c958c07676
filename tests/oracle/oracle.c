#include "oracle/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wdouble-promotion" /* to quadruple precision, on purpose */

#ifdef __SIZEOF_FLOAT128__
typedef __float128 quad;
#else
typedef long double quad; /* 113 bits on the other 64-bit machines */
#endif

struct oracle {
    int64_t n, columns, rank;
    quad *root;    /* n: sqrt(w) */
    double *basis; /* n x columns, column-major: unit columns of A, for the eigenvalue alone */
    quad *q;       /* n x rank, column-major: orthonormal basis of the range of W^(1/2) D */
};

static void *zeros(int64_t count, size_t size)
{
    void *p = calloc((size_t)(count > 0 ? count : 1), size);
    if (!p)
        abort();
    return p;
}

/** Newton's iteration from the double root: 53 bits, 106, more than 113. */
static quad root_of(quad x)
{
    if (!(x > 0))
        return 0;
    quad scale = 1;
    for (; x > 0x1p600; x *= 0x1p-600)
        scale *= 0x1p300;
    for (; x < 0x1p-600; x *= 0x1p600)
        scale *= 0x1p-300;
    quad s = sqrt((double)x);
    for (int i = 0; i < 3; i++)
        s = (s + x / s) / 2;
    return s * scale;
}

static quad dot(int64_t n, const quad *a, const quad *b)
{
    quad s = 0;
    for (int64_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

/** v <- (I - Q Q') v, twice: the second pass removes what rounding left in the first. */
static void project_out(int64_t n, int64_t rank, const quad *q, quad *v)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t j = 0; j < rank; j++) {
            const quad c = dot(n, q + j * n, v);
            for (int64_t i = 0; i < n; i++)
                v[i] -= c * q[j * n + i];
        }
    }
}

/** Adds column v of W^(1/2) D: scaled to unit norm to the dense copy, orthonormalised to the
 *  basis. */
static void add_column(oracle *o, quad *v)
{
    const int64_t n = o->n;
    const quad norm = root_of(dot(n, v, v));
    double *unit = o->basis + o->columns++ * n;
    for (int64_t i = 0; i < n && norm > 0; i++) {
        v[i] /= norm;
        unit[i] = (double)v[i];
    }
    project_out(n, o->rank, o->q, v);
    const quad left = root_of(dot(n, v, v));
    if (!(left > 1e-20))
        return;
    for (int64_t i = 0; i < n; i++)
        o->q[o->rank * n + i] = v[i] / left;
    o->rank++;
}

/** The columns of one factor, level by level: dummies (z NULL) or the slope z. */
static void add_factor(oracle *o, const oracle_design *d, int factor, const double *z, quad *v)
{
    const int64_t n = o->n;
    int32_t top = -1;
    for (int64_t i = 0; i < n; i++) {
        const int32_t code = d->codes[i * d->n_factors + factor];
        top = code > top ? code : top;
    }
    for (int32_t level = 0; level <= top; level++) {
        bool any = false;
        for (int64_t i = 0; i < n; i++) {
            const bool in = d->codes[i * d->n_factors + factor] == level;
            v[i] = in ? o->root[i] * (z ? (quad)z[i] : 1) : 0;
            any = any || in;
        }
        if (any)
            add_column(o, v);
    }
}

oracle *oracle_create(const oracle_design *d)
{
    oracle *o = zeros(1, sizeof *o);
    const int64_t n = o->n = d->n;
    const int64_t most = n * (d->n_factors + d->n_slopes);
    o->root = zeros(n, sizeof *o->root);
    o->basis = zeros(n * most, sizeof *o->basis);
    o->q = zeros(n * n, sizeof *o->q);
    for (int64_t i = 0; i < n; i++)
        o->root[i] = d->weights ? root_of(d->weights[i]) : 1;
    quad *v = zeros(n, sizeof *v);
    for (int f = 0; f < d->n_factors; f++) {
        if (!(d->no_intercept >> f & 1))
            add_factor(o, d, f, NULL, v);
        for (int s = 0; s < d->n_slopes; s++)
            if (d->slope_factor[s] == f)
                add_factor(o, d, f, d->slope[s], v);
    }
    free(v);
    return o;
}

void oracle_destroy(oracle *o)
{
    if (!o)
        return;
    free(o->root);
    free(o->basis);
    free(o->q);
    free(o);
}

int64_t oracle_rank(const oracle *o)
{
    return o->rank;
}

int64_t oracle_columns(const oracle *o)
{
    return o->columns;
}

/** W^(1/2) r for W^(1/2) b. */
static quad *residual_of(const oracle *o, const double *b)
{
    quad *v = zeros(o->n, sizeof *v);
    for (int64_t i = 0; i < o->n; i++)
        v[i] = o->root[i] * b[i];
    project_out(o->n, o->rank, o->q, v);
    return v;
}

void oracle_demean(const oracle *o, const double *b, double *r)
{
    quad *v = residual_of(o, b);
    for (int64_t i = 0; i < o->n; i++)
        r[i] = (double)(v[i] / o->root[i]);
    free(v);
}

/** Eigenvalues of the symmetric m x m matrix g, which is destroyed, by cyclic Jacobi rotations. */
static void eigenvalues(int64_t m, double *g, double *value)
{
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0;
        for (int64_t p = 0; p < m; p++) {
            for (int64_t q = p + 1; q < m; q++) {
                const double gpq = g[p * m + q];
                off += gpq * gpq;
                if (fabs(gpq) < 1e-300)
                    continue;
                const double theta = (g[q * m + q] - g[p * m + p]) / (2 * gpq);
                const double t = copysign(1, theta) / (fabs(theta) + hypot(theta, 1));
                const double c = 1 / hypot(t, 1), s = t * c;
                for (int64_t i = 0; i < m; i++) {
                    const double a = g[i * m + p], b = g[i * m + q];
                    g[i * m + p] = c * a - s * b;
                    g[i * m + q] = s * a + c * b;
                }
                for (int64_t i = 0; i < m; i++) {
                    const double a = g[p * m + i], b = g[q * m + i];
                    g[p * m + i] = c * a - s * b;
                    g[q * m + i] = s * a + c * b;
                }
            }
        }
        if (off < 1e-28)
            break;
    }
    for (int64_t i = 0; i < m; i++)
        value[i] = g[i * m + i];
}

double oracle_smallest_eigenvalue(const oracle *o)
{
    const int64_t m = o->columns, n = o->n;
    double *g = zeros(m * m, sizeof *g), *value = zeros(m, sizeof *value);
    for (int64_t a = 0; a < m; a++)
        for (int64_t b = 0; b < m; b++)
            for (int64_t i = 0; i < n; i++)
                g[a * m + b] += o->basis[a * n + i] * o->basis[b * n + i];
    eigenvalues(m, g, value);
    /* The rank largest are not zero: the (m - rank) smallest are dropped. */
    double smallest = 0;
    for (int64_t skip = 0; skip <= m - o->rank && skip < m; skip++) {
        int64_t at = 0;
        for (int64_t i = 1; i < m; i++)
            if (value[i] < value[at])
                at = i;
        smallest = value[at];
        value[at] = INFINITY;
    }
    free(g);
    free(value);
    return smallest;
}

/** X~ = Q R by the same Gram-Schmidt; R is k x k, upper.  False where a column is dependent. */
static bool factor_columns(int64_t n, int k, const quad *x, quad *q, quad *r)
{
    for (int j = 0; j < k; j++) {
        quad *v = q + j * n;
        memcpy(v, x + j * n, (size_t)n * sizeof *v);
        const quad whole = root_of(dot(n, v, v));
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < j; i++) {
                const quad c = dot(n, q + i * n, v);
                r[i * k + j] += c;
                for (int64_t l = 0; l < n; l++)
                    v[l] -= c * q[i * n + l];
            }
        }
        r[j * k + j] = root_of(dot(n, v, v));
        if (!(r[j * k + j] > 1e-16 * whole))
            return false;
        for (int64_t l = 0; l < n; l++)
            v[l] /= r[j * k + j];
    }
    return true;
}

bool oracle_regress(const oracle *o, const double *y, const double *x, int k, oracle_fit *out)
{
    const int64_t n = o->n;
    quad *ry = residual_of(o, y);
    quad *rx = zeros(n * k, sizeof *rx), *q = zeros(n * k, sizeof *q);
    quad *r = zeros((int64_t)k * k, sizeof *r), *inverse = zeros((int64_t)k * k, sizeof *r);
    bool full = true;
    for (int j = 0; j < k; j++) {
        quad *column = residual_of(o, x + j * n);
        quad before = 0;
        for (int64_t i = 0; i < n; i++)
            before += (o->root[i] * x[j * n + i]) * (o->root[i] * x[j * n + i]);
        full = full && dot(n, column, column) > 1e-32 * before;
        memcpy(rx + j * n, column, (size_t)n * sizeof *column);
        free(column);
    }
    full = full && factor_columns(n, k, rx, q, r);
    if (full) {
        *out = (oracle_fit){.k = k,
                            .beta = zeros(k, sizeof(double)),
                            .residuals = zeros(n, sizeof(double)),
                            .bread = zeros((int64_t)k * k, sizeof(double)),
                            .scores = zeros(n * k, sizeof(quad))};
        quad *beta = zeros(k, sizeof *beta);
        for (int j = k - 1; j >= 0; j--) { /* R beta = Q'y, and R^-1 column by column */
            quad s = dot(n, q + j * n, ry);
            for (int i = j + 1; i < k; i++)
                s -= r[j * k + i] * beta[i];
            beta[j] = s / r[j * k + j];
            out->beta[j] = (double)beta[j];
            for (int c = 0; c < k; c++) {
                quad e = c == j;
                for (int i = j + 1; i < k; i++)
                    e -= r[j * k + i] * inverse[i * k + c];
                inverse[j * k + c] = e / r[j * k + j];
            }
        }
        for (int a = 0; a < k; a++)
            for (int b = 0; b < k; b++)
                out->bread[a * k + b] = (double)dot(k, inverse + a * k, inverse + b * k);
        for (int j = 0; j < k; j++)
            for (int64_t i = 0; i < n; i++)
                ry[i] -= beta[j] * rx[j * n + i];
        out->rss = (double)dot(n, ry, ry);
        quad *scores = out->scores;
        for (int64_t i = 0; i < n; i++) {
            out->residuals[i] = (double)(ry[i] / o->root[i]);
            for (int j = 0; j < k; j++)
                scores[i * k + j] = ry[i] * rx[j * n + i];
        }
        free(beta);
    }
    free(ry);
    free(rx);
    free(q);
    free(r);
    free(inverse);
    return full;
}

void oracle_sandwich(const oracle *o, const oracle_fit *f, const int32_t *groups, double *vcov)
{
    const int64_t n = o->n;
    const int k = f->k;
    const quad *scores = f->scores;
    quad *meat = zeros((int64_t)k * k, sizeof *meat), *sum = zeros(k, sizeof *sum);
    for (int64_t first = 0; first < n; first++) {
        bool leads = true; /* the first row of its group sums the group */
        for (int64_t i = 0; groups && leads && i < first; i++)
            leads = groups[i] != groups[first];
        if (!leads)
            continue;
        memset(sum, 0, (size_t)k * sizeof *sum);
        for (int64_t i = first; i < n; i++)
            if (i == first || (groups && groups[i] == groups[first]))
                for (int j = 0; j < k; j++)
                    sum[j] += scores[i * k + j];
        for (int a = 0; a < k; a++)
            for (int b = 0; b < k; b++)
                meat[a * k + b] += sum[a] * sum[b];
    }
    for (int a = 0; a < k; a++) {
        for (int b = 0; b < k; b++) {
            quad s = 0;
            for (int i = 0; i < k; i++)
                for (int j = 0; j < k; j++)
                    s += (quad)f->bread[a * k + i] * meat[i * k + j] * (quad)f->bread[j * k + b];
            vcov[a * k + b] = (double)s;
        }
    }
    free(meat);
    free(sum);
}

void oracle_fit_free(oracle_fit *f)
{
    free(f->beta);
    free(f->residuals);
    free(f->bread);
    free(f->scores);
    *f = (oracle_fit){0};
}
