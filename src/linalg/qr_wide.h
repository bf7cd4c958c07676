/* qr_wide.h - Householder QR whose updates are products on tiles: blocks of columns wider than
 * panels. */
#ifndef FRGI_QR_WIDE_H
#define FRGI_QR_WIDE_H

#include "linalg/product.h"
#include "linalg/qr_ops.h"

#pragma GCC visibility push(hidden)

/** What wide blocks need beside the matrix; v is NULL where the machine has no tiles. */
typedef struct {
    float *v;                         /* ld x 128: V of the current block, explicit */
    float *t;                         /* columns x 128: T of every block */
    float *gram, *product;            /* 128 x 128: V'V, and what T is made by */
    float *w, *x;                     /* columns x 128: V'C and T'V'C */
    frgi_product_workspace *products; /* one a thread of the team */
} frgi_qr_wide;

/** For matrices of so many rows and columns, by `team` threads; runs twice over an arena (see
 *  core.h). */
void frgi_qr_wide_take(frgi_arena *arena, frgi_qr_wide *wide, frgi_product_way way, size_t ld,
                       size_t columns, int team);
/** Is the matrix large enough to gain? */
bool frgi_qr_is_wide(const frgi_qr_wide *wide, const frgi_qr_matrix *x);
/** As ops->factor and ops->form. */
void frgi_qr_wide_factor(const frgi_qr_ops *ops, const frgi_qr_wide *wide, const frgi_qr_matrix *x);
void frgi_qr_wide_form(const frgi_qr_ops *ops, const frgi_qr_wide *wide, const frgi_qr_matrix *x);

#pragma GCC visibility pop
#endif
