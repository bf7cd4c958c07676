/* laplacians.h - symmetric matrices built edge by edge, for the tests of the factors. */
#ifndef TEST_LAPLACIANS_H
#define TEST_LAPLACIANS_H

#include "fault.h"

#include "sparse/symmetric.h"

/** A symmetric matrix, full pattern, built entry by entry. */
typedef struct {
    int64_t n;
    int64_t *starts;
    int32_t *columns;
    double *values;
} matrix;

typedef struct {
    int32_t a, b;
    double w;
} edge;

static int compare_edges(const void *x, const void *y)
{
    const edge *const p = x, *const q = y;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

/** The Laplacian of the edges plus diag(surplus); surplus NULL: zeros.  Parallel edges add up. */
TEST_UNUSED static matrix laplacian(int64_t n, const edge *edges, int64_t m, const double *surplus)
{
    edge *const all = malloc((size_t)(4 * m + n + 1) * sizeof *all);
    int64_t k = 0;
    for (int64_t i = 0; i < m; i++) {
        const edge e = edges[i];
        if (e.a == e.b)
            continue;
        all[k++] = (edge){e.a, e.b, -e.w};
        all[k++] = (edge){e.b, e.a, -e.w};
        all[k++] = (edge){e.a, e.a, e.w};
        all[k++] = (edge){e.b, e.b, e.w};
    }
    for (int32_t i = 0; i < n; i++)
        all[k++] = (edge){i, i, surplus ? surplus[i] : 0};
    qsort(all, (size_t)k, sizeof *all, compare_edges);
    int64_t used = 0;
    for (int64_t i = 0; i < k; i++) {
        if (used && all[used - 1].a == all[i].a && all[used - 1].b == all[i].b)
            all[used - 1].w += all[i].w;
        else
            all[used++] = all[i];
    }
    matrix r = {n, calloc((size_t)n + 1, sizeof(int64_t)),
                malloc((size_t)used * sizeof(int32_t) + 1),
                malloc((size_t)used * sizeof(double) + 1)};
    for (int64_t i = 0; i < used; i++) {
        r.starts[all[i].a + 1]++;
        r.columns[i] = all[i].b;
        r.values[i] = all[i].w;
    }
    for (int64_t i = 0; i < n; i++)
        r.starts[i + 1] += r.starts[i];
    free(all);
    return r;
}

TEST_UNUSED static void matrix_free(matrix a)
{
    free(a.starts);
    free(a.columns);
    free(a.values);
}

TEST_UNUSED static frgi_symmetric view(matrix a)
{
    return (frgi_symmetric){a.n, a.starts, a.columns, a.values, 0};
}

/** y = A x for k columns, row-major. */
TEST_UNUSED static void multiply(matrix a, int64_t k, const double *x, double *y)
{
    memset(y, 0, (size_t)(a.n * k) * sizeof *y);
    for (int64_t i = 0; i < a.n; i++)
        for (int64_t e = a.starts[i]; e < a.starts[i + 1]; e++)
            for (int64_t c = 0; c < k; c++)
                y[i * k + c] += a.values[e] * x[a.columns[e] * k + c];
}

TEST_UNUSED static double *numbers(int64_t n)
{
    double *const x = calloc((size_t)n + 1, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = test_normal();
    return x;
}

#endif
