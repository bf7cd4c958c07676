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

#endif
