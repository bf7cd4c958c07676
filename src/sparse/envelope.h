/* envelope.h - the factor of a matrix ordered for a small envelope. */
#ifndef FRGI_ENVELOPE_H
#define FRGI_ENVELOPE_H

#include "sparse/direct_ops.h"
#include "sparse/ordering.h"

#pragma GCC visibility push(hidden)

/** Row panel i of the factor (8 rows) holds its columns from block start[i] to the diagonal block
 *  i. */
typedef struct {
    int64_t blocks;  /* panels */
    int32_t *start;  /* blocks */
    int64_t *offset; /* blocks + 1, in doubles */
    double flops;    /* multiply-adds of the factor, a bound from above */
} frgi_envelope;

void frgi_envelope_layout(frgi_arena *a, frgi_envelope *e, int64_t n);
/** Measures the envelope of the pattern in that order; place is order's inverse. */
void frgi_envelope_profile(frgi_envelope *e, const frgi_pattern *a, const int32_t *order,
                           const int32_t *place);
/** What the factor is computed with. */
typedef struct {
    const frgi_pattern *pattern;
    const double *matrix; /* values of the pattern */
    const int32_t *order, *place;
    const frgi_direct_ops *ops;
    double null_pivot;  /* pivots up to this fraction of the matrix's diagonal are null */
    const char *solver; /* of the progress reports */
    double *panels;     /* offset[blocks] + 1: the result, and a place that nobody reads */
    double *inverse;    /* 8 blocks: of the diagonal of L */
    double *lowest;     /* 8 blocks: the pivots' floors */
} frgi_envelope_work;

frgi_panels frgi_envelope_panels(const frgi_envelope *e, double *panels, double *inverse,
                                 const double *lowest);
/** *nulls counts null pivots, those of the padding included. */
FRG_MUST_USE frg_status frgi_envelope_factor(const frgi_envelope *e, const frgi_envelope_work *w,
                                             frg_context *ctx, int64_t *nulls);
void frgi_envelope_solve(const frgi_panels *s, const frgi_direct_ops *ops, int width, double *x);

#pragma GCC visibility pop
#endif
