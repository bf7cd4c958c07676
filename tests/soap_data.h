/* soap_data.h - random weights and gradients for the tests of src/soap. */
#ifndef FOURGE_TEST_SOAP_DATA_H
#define FOURGE_TEST_SOAP_DATA_H

#include "fourge/soap.h"
#include "test.h"

TEST_UNUSED static void gaussian(double scale, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(scale * test_normal());
}

/** m x n numbers, row after row. */
TEST_UNUSED static frg_array matrix(const void *x, int64_t m, int64_t n)
{
    return frg_matrix(x, FRG_F32, m, n, n);
}

/** The last index fastest. */
TEST_UNUSED static frg_array tensor(const void *x, int axes, const int64_t *shape)
{
    frg_array a = {.data = (void *)(uintptr_t)x, .dtype = FRG_F32, .ndim = axes};
    int64_t stride = 1;
    for (int k = axes - 1; k >= 0; k--) {
        a.shape[k] = shape[k];
        a.stride[k] = stride;
        stride *= shape[k];
    }
    return a;
}

/** An optimizer of one parameter. */
TEST_UNUSED static frg_soap *optimizer(frg_context *ctx, const frg_soap_opts *o, frg_array w)
{
    frg_soap *soap = NULL;
    if (CHECK_OK(ctx, frg_soap_create(&soap, ctx, o)))
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, w, "w", NULL));
    return soap;
}

/** Entry (i, j) of Q'KQ, n x n, row after row. */
TEST_UNUSED static double in_basis(int64_t n, const float *q, const float *k, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < n; b++)
            sum += (double)q[a * n + i] * (double)k[a * n + b] * (double)q[b * n + j];
    return sum;
}

#endif
