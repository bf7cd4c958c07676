/* fe_envelope.h - the factor of a matrix ordered for a small envelope. */
#ifndef FRGI_FE_ENVELOPE_H
#define FRGI_FE_ENVELOPE_H

#include "fe/fe_direct_ops.h"
#include "fe/fe_order.h"

#pragma GCC visibility push(hidden)

/** Strip i of the factor (8 rows) holds its columns from block start[i] to the diagonal block i. */
typedef struct {
    int64_t blocks;  /* strips */
    int32_t *start;  /* blocks */
    int64_t *offset; /* blocks + 1, in doubles */
    double flops;    /* multiply-adds of the factor, a bound from above */
} frgi_envelope;

void frgi_envelope_layout(frgi_arena *a, frgi_envelope *e, int64_t n);
/** Measures the envelope of the pattern in that order; place is order's inverse. */
void frgi_envelope_profile(frgi_envelope *e, const frgi_pattern *a, const int32_t *order,
                           const int32_t *place);
/** Lays the numbers of the matrix into the strips, which are cleared first, and its diagonal by new number
 *  into `diagonal`.  strips has room for one double behind offset[blocks]. */
void frgi_envelope_fill(const frgi_envelope *e, double *strips, double *diagonal,
                        const frgi_pattern *a, const double *values, const int32_t *order,
                        const int32_t *place);
/** Factors in place; *nulls counts null pivots, those of the padding included. */
FRG_MUST_USE frg_status frgi_envelope_factor(const frgi_strips *s, const frgi_envelope *e,
                                             frg_context *ctx, const frgi_direct_ops *ops,
                                             int64_t *nulls);
void frgi_envelope_solve(const frgi_strips *s, const frgi_direct_ops *ops, int width, double *x);

#pragma GCC visibility pop
#endif
