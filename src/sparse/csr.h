/* csr.h - products with a sparse matrix and with its transpose, K columns wide, on all
 * threads. */
#ifndef FRGI_CSR_H
#define FRGI_CSR_H

#include "core/core.h"
#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

struct frgi_lsmr_ops;

/** A sparse matrix with its transpose, values multiplied by row and column factors.  Rows are
 *  independent of one another in both products, so any number of threads gives the same bits. */
typedef struct {
    int64_t m, n, nnz;
    const int64_t *starts; /* of A, borrowed from the caller */
    const int32_t *columns;
    double *values;    /* row_scale * a * column_scale */
    int64_t *starts_t; /* of A', n + 2 while it is filled */
    int32_t *columns_t;
    double *values_t;
    int threads;
    const struct frgi_lsmr_ops *ops;
} frgi_csr_pair;

/** Refuses what is no matrix: starts that fall, columns out of range, values that are not
 *  finite. */
FRG_MUST_USE frg_status frgi_csr_check(frg_context *ctx, const frg_csr *a);
/** m, n and nnz must be set. */
void frgi_csr_pair_layout(frgi_arena *arena, frgi_csr_pair *p);
/** row_scale (m) and column_scale (n) may be NULL for ones. */
void frgi_csr_pair_fill(frgi_csr_pair *p, const frg_context *ctx, const frg_csr *a,
                        const double *row_scale, const double *column_scale);
/** The callbacks of frgi_lsmr_operator; data is a const frgi_csr_pair *. */
void frgi_csr_pair_times(const void *data, int64_t k, const double *x, double *y);
void frgi_csr_pair_transposed(const void *data, int64_t k, const double *y, double *x);

#pragma GCC visibility pop
#endif
