/* fe_graph.h - connected components of the levels, and the rank of D where components give it. */
#ifndef FRGI_FE_GRAPH_H
#define FRGI_FE_GRAPH_H

#include "fe/fe_rows.h"
#include "fourge/fe.h"

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

/** The rank of D for three and more factors, exact, where all but two of them are small and the
 *  elimination in integers stays short (fe_modular.c); -1 otherwise. */
FRG_MUST_USE frg_status frgi_fe_modular_rank(const fe_rows *g, frg_context *ctx, int64_t *rank);
/** The same for factors of any size, by classes of levels and a sparse factor in a prime field of
 *  at most work_most multiply-adds and byte_cap bytes (fe_sparse_rank.c); -1 where that does not
 *  do. */
FRG_MUST_USE frg_status frgi_fe_sparse_rank(const fe_rows *g, frg_context *ctx, double work_most,
                                            size_t byte_cap, int64_t *rank);

#pragma GCC visibility pop
#endif
