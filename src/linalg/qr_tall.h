/* qr_tall.h - QR of matrices with many more rows than columns, by blocks of rows. */
#ifndef FRGI_QR_TALL_H
#define FRGI_QR_TALL_H

#include "linalg/product.h"
#include "linalg/qr_ops.h"

#pragma GCC visibility push(hidden)

/** What a thread needs for a block of rows. */
typedef struct {
    frgi_qr_matrix x; /* its workspace alone: v_leaf, v_tiles, v_rows, t, small, diagonal */
    void *buffer;     /* some rows of Q */
    frgi_product_workspace product;
} frgi_qr_block_workspace;

/** blocks is NULL where no matrix is tall. */
typedef struct {
    frgi_qr_block_workspace *blocks; /* one a thread of the team */
    void *stack; /* the blocks' R on top of each other: the matrix of the second level */
} frgi_qr_tall;

/** Is a matrix of so many rows and columns factored by blocks of rows?  Depends on the shape
 *  alone. */
bool frgi_qr_is_tall(int64_t m, int64_t n);
/** Elements of the blocks' R of an m x n matrix, as they are stacked; 0 where it is not tall. */
size_t frgi_qr_stack_elements(int64_t m, int64_t n);
/** For matrices of at most n columns, and `stack` elements of their blocks' R, 0: none is tall;
 *  runs twice over an arena (see core.h). */
void frgi_qr_tall_take(frgi_arena *arena, frgi_qr_tall *tall, frgi_product_way way, bool f64,
                       int64_t n, size_t stack, int team);
/** R, in `stacked`'s upper triangle and diagonal, of x.a. */
void frgi_qr_tall_factor(const frgi_qr_ops *ops, const frgi_qr_tall *tall, const frgi_qr_matrix *x,
                         bool f64, frgi_qr_matrix *stacked);
/** x.a <- Q. */
void frgi_qr_tall_form(const frgi_qr_ops *ops, const frgi_qr_tall *tall, const frgi_qr_matrix *x,
                       bool f64, const frgi_qr_matrix *stacked);

#pragma GCC visibility pop
#endif
