/* gp_trust.h - how far a likelihood in f32 is off, by residuals in f64 (gp_trust.c). */
#ifndef FRGI_GP_TRUST_H
#define FRGI_GP_TRUST_H

#include "fourge/gp.h"
#include "linalg/spd.h"

#pragma GCC visibility push(hidden)

enum { TRUST_BLOCK = 16 };

/** A factor in f32 with its solutions, and the matrix that they should belong to. */
typedef struct {
    frg_context *ctx;
    const frgi_spd *factor; /* L */
    void *memory;           /* frgi_gp_trust_bytes(n), 64-byte aligned */
    ptrdiff_t q;
    const double *r, *a; /* n x q: right sides, solutions */
    /** to[b + j * TRUST_BLOCK] <- K_{first + b, j} for b < count <= TRUST_BLOCK and all j, in
     *  f64 */
    frg_status (*rows)(void *user, ptrdiff_t first, ptrdiff_t count, double *to);
    void *user;
} frgi_gp_trust;

size_t frgi_gp_trust_bytes(ptrdiff_t n);
/** Bounds, as good as estimates are, of |sum_c r_c'a_c - r_c'K^-1 r_c| and, where `trace` is not
 *  NULL, of |log |L L'| - log |K||. */
FRG_MUST_USE frg_status frgi_gp_trust_errors(const frgi_gp_trust *t, double *quad, double *trace);
/** A bound on the error of ell = -1/2 (q log |K| + sum_c r_c'a_c): rounding is K_max (|a|^2 + q
 *  sum_i 1/L_ii^2), see gp_value.c. */
double frgi_gp_rounding_bound(frg_dtype t, ptrdiff_t n, double rounding);
/** Is an error of ell in f64 worth a warning: larger than ell itself, and than a thousandth, which
 *  changes no conclusion? */
bool frgi_gp_is_rounding(double ell, double error);

/** An estimate of how far ell in f32 is off, from residuals in f64 on a sample of rows; alpha must
 *  be there. */
FRG_MUST_USE frg_status frgi_gp_sampled_error(frg_gp *gp, double *error);

#pragma GCC visibility pop
#endif
