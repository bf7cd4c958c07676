/* approx_chol.h - approximate Cholesky factor of a graph Laplacian, a preconditioner. */
#ifndef FRGI_APPROX_CHOL_H
#define FRGI_APPROX_CHOL_H

#include "core/core.h"
#include "fourge/checkpoint.h"
#include "sparse/symmetric.h"

#pragma GCC visibility push(hidden)

typedef struct {
    int split;          /* every edge becomes this many copies: 1 or 2; default 2 */
    uint64_t seed;      /* of the samples */
    const char *solver; /* of the progress reports: who factors; default "ac" */
} frgi_ac_opts;

typedef struct frgi_ac frgi_ac;

void frgi_ac_defaults(frgi_ac_opts *o);
/** s: off-diagonal entries <= 0 are edges of weight -s_ij; positive ones are left out of the graph.
 *  A row whose diagonal exceeds its edges' sum by more than 1e-12 of it is joined to a ground
 *  vertex with the surplus (Gremban).  FRG_INTERRUPTED and FRG_TIME_LIMIT come back with *out
 *  NULL. */
FRG_MUST_USE frg_status frgi_ac_create(frgi_ac **out, frg_context *ctx, const frgi_symmetric *s,
                                       const frgi_ac_opts *o);
size_t frgi_ac_bytes(const frgi_ac *f);
/** Entries of the factor below the diagonal. */
int64_t frgi_ac_entries(const frgi_ac *f);
/** Connected components of the graph, the ground vertex not counted, and how many of them hang on
 *  the ground (those are nonsingular; the others' solutions are mean-free). */
int64_t frgi_ac_components(const frgi_ac *f);
int64_t frgi_ac_grounded(const frgi_ac *f);
/** Doubles of scratch for k columns. */
size_t frgi_ac_scratch(const frgi_ac *f, int64_t k);
/** x <- P^-1 b, n x k row-major, x may be b.  Symmetric and positive semidefinite; component by
 *  component mean-free where the component is not grounded (b's mean is taken off as well, so that
 *  the map is symmetric).  A column's bits depend neither on its neighbours nor on k. */
void frgi_ac_apply(const frgi_ac *f, int64_t k, const double *b, double *x, double *scratch);
void frgi_ac_destroy(frgi_ac *f);

/** The numbers of a factor beside its arrays, as they stand in a file. */
typedef struct {
    int64_t n, components, grounded;
} frgi_ac_facts;
/** Puts the factor into c, whose sections point to it and to *facts until c is saved. */
FRG_MUST_USE frg_status frgi_ac_put(const frgi_ac *f, frgi_ac_facts *facts, frg_checkpoint *c);
/** The factor of n unknowns in c.  E_CHECKPOINT where the sections are none: every index is looked
 *  at, and no number. */
FRG_MUST_USE frg_status frgi_ac_get(frgi_ac **out, frg_context *ctx, const frg_checkpoint *c,
                                    int64_t n);

#pragma GCC visibility pop
#endif
