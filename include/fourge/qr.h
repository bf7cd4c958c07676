/* qr.h - the QR factorisations of many matrices at once.
 *
 *     A = Q R,   A (m x n, m >= n),   Q' Q = I,   R upper triangular with a diagonal >= 0
 *
 * A plan is made from the shapes; a run factors one matrix of each shape.  The result of a matrix
 * does not depend on the others, on their order or on the number of threads, to the bit; a bad one
 * disturbs none.
 *
 *     frg_qr_item items[2] = {{.a = frg_matrix(a, FRG_F32, m, n, n),
 *                              .q = frg_matrix(q, FRG_F32, m, n, n)}, ...};
 *     frg_qr_create(&qr, ctx, 2, items, NULL);
 *     frg_qr_run(qr, items, reports, NULL);
 *     frg_qr_destroy(qr);
 *
 * Accuracy (f32, n <= 4096): |Q'Q - I| <= 1e-5 in every entry, norm(A - QR) <= 8 u sqrt(n) norm(A);
 * f64 1e-13.
 */
#ifndef FOURGE_QR_H
#define FOURGE_QR_H

#include "fourge/fourge.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a matrix is factored. */
typedef enum {
    FRG_QR_AUTO,        /* Householder on CPUs */
    FRG_QR_HOUSEHOLDER, /* blocked, compact WY */
    FRG_QR_CHOLESKY,    /* guarded cascade: one pass, second pass, shifted, at last Householder */
    FRG_QR_VENDOR       /* LAPACK's geqrf and orgqr */
} frg_qr_method;

/** How frg_qr_report.orthogonality is had. */
typedef enum {
    FRG_QR_VERIFY_NONE,  /* orthogonality is NaN */
    FRG_QR_VERIFY_PROBE, /* max |Q'(Qx) - x| for a vector x of +-1: costs O(mn) */
    FRG_QR_VERIFY_FULL   /* max |Q'Q - I| over all entries: costs m n^2 */
} frg_qr_verify;

/** Options of a plan, which copies them. */
typedef struct {
    size_t struct_size;   /* set by frg_qr_defaults */
    frg_qr_method method; /* default FRG_QR_AUTO */
    frg_qr_verify verify; /* default FRG_QR_VERIFY_PROBE */
    /** What the Cholesky passes must reach, max |Q'Q - I|, 0 <= ortho_tol < 1; 0 (default): 1e-5 in
     *  f32, 1e-13 in f64. */
    double ortho_tol;
} frg_qr_opts;

/** One matrix, of at most 33 554 431 rows.  q may be a itself.  Any strides; a and q in f32, f64,
 *  bf16 or f16 (16-bit numbers are computed in f32), r and old in the type that is computed in. */
typedef struct {
    frg_array a; /* m x n */
    frg_array q; /* m x n */
    frg_array r; /* n x n; data NULL: not wanted */
    /** m x n, orthonormal columns that take the place of zero columns; data NULL: none. */
    frg_array old;
} frg_qr_item;

/** Bits of frg_qr_report.flags. */
enum {
    FRG_QR_NONFINITE = 1, /* NaN or infinity in A: Q and R are NaN */
    /** Columns depend on others: their columns of Q are an orthonormal completion. */
    FRG_QR_DEFICIENT = 2,
    FRG_QR_FELL_BACK = 4, /* the cascade ended at Householder */
    FRG_QR_SHIFTED = 8,   /* the Cholesky passes needed a shift */
    FRG_QR_NOT_DONE = 16  /* the run was stopped before it: Q and R are as they were */
};

/** How one matrix was factored. */
typedef struct {
    frg_qr_method method; /* used in the end */
    int passes;           /* Cholesky factorisations; 1 for the other methods */
    double pivot;         /* smallest (R_jj / norm of column j)^2; 0 where a column is zero */
    double orthogonality; /* by opts.verify */
    int64_t rank;   /* columns that do not depend on those before them, as far as rounding tells */
    unsigned flags; /* FRG_QR_NONFINITE and the other bits; 0: nothing of the kind */
} frg_qr_report;

/** A plan: shapes, and the workspaces of the threads.  Made by frg_qr_create, freed by
 *  frg_qr_destroy. */
typedef struct frg_qr frg_qr;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_qr_defaults(frg_qr_opts *o, size_t struct_size);
/** The fields of frg_qr_opts (frg_option). */
FRG_API const frg_option *frg_qr_options(void);
/** Plans for matrices of the shapes and types of `items`, whose data are not read; owns all
 *  memory.  Errors: E_SHAPE and E_DTYPE with the item, E_OPTION, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_qr_create(frg_qr **out, frg_context *ctx, int64_t n_items,
                                              const frg_qr_item items[], const frg_qr_opts *o);
/** Factors the items, of the shapes and types of the plan; allocates nothing.  reports may be NULL.
 *  FRG_PARTIAL where a matrix has a NaN or an infinity: its Q and R are NaN, the others are done.
 *  FRG_INTERRUPTED and FRG_TIME_LIMIT, looked at before each matrix: those with FRG_QR_NOT_DONE are
 *  as they were, the others are done. */
FRG_API FRG_MUST_USE frg_status frg_qr_run(frg_qr *qr, const frg_qr_item items[],
                                           frg_qr_report reports[], frg_info *info);
/** Frees the plan; NULL is fine.  The matrices are the caller's. */
FRG_API void frg_qr_destroy(frg_qr *qr);
/** Bytes that the plan holds. */
FRG_API size_t frg_qr_bytes(const frg_qr *qr);

#ifdef __cplusplus
}
#endif
#endif
