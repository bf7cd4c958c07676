/* qr_ops.h - the Householder kernels of the batched QR, one table per CPU level and element type.
 *
 *     A = Q R,  Q = H_1 H_2 ... H_k,   H = I - V T V',   T^-1 + T^-T = V' V      (compact WY)
 *
 * The matrix lies column after column, `rows` apart from `ld`: rows is m rounded up to whole
 * vectors, columns are rounded up to whole leaves of 8, and what was added is zero.  V takes the
 * place of A below the diagonal, then Q takes the place of V, so that one matrix is all that a
 * factorisation touches beside a panel of V.
 */
#ifndef FRGI_QR_OPS_H
#define FRGI_QR_OPS_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum {
    QR_LEAF = 8,      /* columns factored at a time */
    QR_BAND = 48,     /* columns updated at a time, at most */
    QR_PANEL = 32,    /* columns of a panel, at most */
    QR_ROW_STEP = 16, /* rows are rounded up to it: the longest vector */
};

/** One matrix and the workspace to factor it.  All pointers are 64-byte aligned arrays of the
 *  element type. */
typedef struct {
    ptrdiff_t m, n;    /* m >= n */
    ptrdiff_t rows;    /* m rounded up to QR_ROW_STEP */
    ptrdiff_t columns; /* n rounded up to QR_LEAF */
    ptrdiff_t ld;      /* >= rows, no multiple of 256: columns must not share their cache sets */
    ptrdiff_t panel;   /* columns of a panel */
    int team;          /* threads that update the columns right of a panel */
    void *a;           /* ld x columns */
    void *diagonal;    /* columns: of R, signs as they come */
    void *v_leaf;      /* rows x 8: the current leaf of V, explicit, by columns */
    void *v_tiles; /* rows x panel: V of the current panel, by columns in tiles of three vectors */
    void *v_rows;  /* rows x panel: the same by rows, in chunks of two vectors */
    void *t;       /* columns x panel: T' of every panel, by chunks of rows */
    void *small;   /* panel x panel + 2 panel x QR_BAND for each of the team */
} frgi_qr_matrix;

typedef struct {
    ptrdiff_t narrow; /* columns of a panel of a matrix that has few (frgi_qr_workspace_shape) */
    /** a <- V below the diagonal and R on and above it; fills diagonal and t.  Columns are expected
     *  to be scaled to norms near 1: what is left of one is taken for zero below u^2. */
    void (*factor)(const frgi_qr_matrix *x);
    /** a <- the first `columns` columns of Q from what factor left. */
    void (*form)(const frgi_qr_matrix *x);
    /** Largest |entry| of a column; NaN where one is NaN or infinite. */
    double (*largest)(ptrdiff_t rows, const void *column);
    /** column <- factor column; returns its sum of squares. */
    double (*scale)(ptrdiff_t rows, double factor, void *column);
    /** max |Q'(Q x) - x| for x = +-1, alternating with periods 1, 2, 4, ...; y: `rows` elements of
     *  workspace. */
    double (*probe)(ptrdiff_t rows, ptrdiff_t n, const void *q, ptrdiff_t ld, void *y);
} frgi_qr_ops;

/** n up to a whole number of steps. */
static inline ptrdiff_t frgi_qr_rounded(int64_t n, ptrdiff_t step)
{
    return ((ptrdiff_t)n + step - 1) / step * step;
}

/** [0] f32, [1] f64 */
DECLARE_LEVELS(frgi_qr_ops[2], frgi_qr_table);

#pragma GCC visibility pop
#endif
