/* qr_engine.h - one QR factorisation in the workspace of one thread: what the batch and the
 * optimizer share. */
#ifndef FRGI_QR_ENGINE_H
#define FRGI_QR_ENGINE_H

#include "fourge/qr.h"
#include "linalg/qr_ops.h"
#include "linalg/qr_tall.h"
#include "linalg/qr_wide.h"

#pragma GCC visibility push(hidden)

enum { QR_BLOCK = 64 }; /* columns of a block of the Cholesky path */

/** Memory of one thread, for the largest matrices it will see. */
typedef struct {
    frgi_qr_matrix
        x;   /* x.a: the columns that are factored; what stands there afterwards is not specified */
    void *q; /* the result, ld apart: one of the buffers here */
    void *r; /* n x n by columns, n apart; NULL: R is not wanted */
    void *other;   /* of the size of x.a; NULL without Cholesky */
    void *gram;    /* n x n, n apart; NULL without Cholesky or full verification */
    void *inverse; /* n x QR_BLOCK: inverse diagonal blocks of R */
    void *panel;   /* ld x QR_BLOCK */
    frgi_qr_wide wide;
    frgi_qr_tall tall;
    double
        *norm2; /* n: squared norms after scaling; 1 where an old column stands in for a zero one */
    double *scales; /* n: what the columns were multiplied with; 0 for a zero column */
    bool f64;
} frgi_qr_workspace;

typedef struct {
    frg_qr_method method;
    frg_qr_verify verify;
    double ortho_tol;
    /* where the caller has one, a number h with norm(R^-1)^2 >= 1 / h for the R of A with columns
     * of norm 1: small ones keep FRG_QR_AUTO from trying one Cholesky pass; 0: none */
    double hint;
    const void *old; /* columns, ld apart, that took the place of zero columns; NULL: none */
} frgi_qr_request;

/** The table for a context's CPU level. */
const frgi_qr_ops *frgi_qr_ops_of(const frg_context *ctx, bool f64);
/** What matrices of several shapes need of a workspace. */
typedef struct {
    int64_t m, n;           /* the most rows, the most columns */
    int64_t rows;           /* of panels: a tall matrix has those of its blocks' R alone */
    size_t elements, stack; /* of one of them, of its blocks' R where it is tall */
    int64_t tall;           /* the most columns of a tall one */
} frgi_qr_extent;
void frgi_qr_extend(frgi_qr_extent *e, int64_t m, int64_t n);
/** Takes a workspace for such matrices, factored by a team of so many threads at most; runs twice
 *  over an arena (see core.h). */
void frgi_qr_workspace_take(frgi_arena *arena, frgi_qr_workspace *work, frgi_product_way way,
                            bool f64, const frgi_qr_extent *e, int team, bool cholesky, bool gram,
                            bool r);
/** Sets the shape of the current matrix: its rows, columns, ld follow from (m, n) alone; the team
 *  is one thread. */
void frgi_qr_workspace_shape(const frgi_qr_ops *ops, frgi_qr_workspace *work, int64_t m, int64_t n);
/** Column j of x.a to a largest entry in [1/2, 1); one of zeros becomes that of `old`, unless it is
 *  NULL.  norm2[j] is NaN where an entry is not finite.  Callers do it while they have the column
 *  in their cache. */
void frgi_qr_scale_column(const frgi_qr_ops *ops, frgi_qr_workspace *work, ptrdiff_t j,
                          const void *old);
/** Factors x.a, every column scaled, its padding zero.  flags FRG_QR_NONFINITE: nothing was
 *  computed. */
void frgi_qr_solve(const frgi_qr_ops *ops, frgi_qr_workspace *work, const frgi_qr_request *request,
                   frg_qr_report *report);

#pragma GCC visibility pop
#endif
