/* fe_graph.h - connected components of the levels, and the rank of D where components give it. */
#ifndef FRGI_FE_GRAPH_H
#define FRGI_FE_GRAPH_H

#include "fe/fe_rows.h"
#include "fourge/fe.h"
#include "sparse/prime_rank.h"

#pragma GCC visibility push(hidden)

/** Components of the graph whose vertices are the levels of factors p and q (the caller's numbers)
 *  and whose edges are the rows; q < 0: the levels of all factors, a row joining all of its own. */
FRG_MUST_USE frg_status frgi_fe_components(const fe_rows *g, frg_context *ctx, int p, int q,
                                           int64_t *out);

/** *label <- the component of each reduced unknown in the graph of all factors, numbered by their
 *  smallest reduced unknowns; NULL, and nothing allocated, where there is one component: a graph of
 *  few levels and many rows shows that within its first rows. */
FRG_MUST_USE frg_status frgi_fe_label_components(const fe_rows *g, frg_context *ctx,
                                                 int32_t **label, int64_t *count);

/** Rank of D, or the bound that `how` stands for, for the methods that need no factor:
 *    naive      sum of the levels less Q - 1 (fixest)
 *    firstpair  the first two factors exactly, one redundant level for every other
 *    pairwise   for each later factor the most components it has with an earlier one (reghdfe)
 *  Exact for up to two factors, except naive. */
FRG_MUST_USE frg_status frgi_fe_count_rank(const fe_rows *g, frg_context *ctx, frg_fe_dof how,
                                           int64_t *rank);

/** label (the levels of remaining factor r) <- the component of each in the graph of r and
 *  remaining factor s (s < 0: the eliminated factor), 0 .. *count - 1. */
FRG_MUST_USE frg_status frgi_fe_label_pair(const fe_rows *g, frg_context *ctx, int r, int s,
                                           int32_t *label, int64_t *count);

/** The rank of D, exact, where a bound from below, by substitution, and one from above, by the
 *  components of pairs of factors, meet (fe_bounded_rank.c); -1 where they do not, and of rows that
 *  are not in memory or would take more than byte_cap bytes. */
FRG_MUST_USE frg_status frgi_fe_bounded_rank(const fe_rows *g, frg_context *ctx, size_t byte_cap,
                                             int64_t *rank);
/** The same for three and more factors of which all but two are small, where the elimination in
 *  integers takes at most work_most multiply-adds (fe_modular.c). */
FRG_MUST_USE frg_status frgi_fe_modular_rank(const fe_rows *g, frg_context *ctx, double work_most,
                                             int64_t *rank);
/** The same for factors of any size, by classes of levels and a sparse factor in a prime field of
 *  at most the size `most` (fe_sparse_rank.c); -1 where that does not do. */
FRG_MUST_USE frg_status frgi_fe_sparse_rank(const fe_rows *g, frg_context *ctx,
                                            const frgi_prime_limits *most, int64_t *rank);

#pragma GCC visibility pop
#endif
