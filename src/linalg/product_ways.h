/* product_ways.h - the description of a product that product.c hands to its kernels: C and the
 * operands' layout. */
#ifndef FRGI_PRODUCT_WAYS_H
#define FRGI_PRODUCT_WAYS_H

#include "linalg/product.h"

#pragma GCC visibility push(hidden)

/** C <- past C + weight op(A) op(B), the whole or its lower triangle. */
typedef struct {
    ptrdiff_t m, n, k;
    float past, weight;
    bool lower;
    float *c;
    ptrdiff_t ldc;
    ptrdiff_t count, step; /* so many A and C, each so far from the last */
} frgi_product_target;

/** An operand: element (i, k), i a row of op(A) or a column of op(B). */
typedef struct {
    const float *x;
    ptrdiff_t ld, count, k;
    bool lines_of_k; /* neighbours in memory differ in i, else in k */
    bool symmetric;  /* the lower triangle alone is read */
} frgi_product_operand;

static inline ptrdiff_t frgi_smaller(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

/** Bytes of packed operands, and the product itself, on AVX2, or AVX-512 where the
 *  workspace says so: product_avx2.c. */
size_t frgi_product_avx2_columns(void);
size_t frgi_product_avx2_rows(void);
void frgi_product_avx2(const frgi_product_workspace *work, const frgi_product_target *t,
                       const frgi_product_operand *rows, const frgi_product_operand *columns);

#pragma GCC visibility pop
#endif
