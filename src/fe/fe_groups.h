/* fe_groups.h - eliminated levels with equal rows, merged into groups, and which levels the
 * groups have.
 *
 *     c(l)  weighted count of level l of a sparse factor in the rows of one eliminated level of c
 *     N_c   sum of the weights of those rows
 *     t_c   eliminated levels of the group
 *
 * Eliminated levels with the same rows contribute the same to the Schur complement, so that t_c of
 * them are one product t_c c c' / N_c.  Eliminated levels all of whose rows share the one sparse
 * reduced unknown contribute nothing and are in no group.  The lists go both ways: a group's levels
 * with their counts, and a level's groups.
 */
#ifndef FRGI_FE_GROUPS_H
#define FRGI_FE_GROUPS_H

#include "fe/fe_coupling.h"

#pragma GCC visibility push(hidden)

enum { FE_ELIM_AHEAD = 16 }; /* slots and groups are prefetched this far ahead of their use */

typedef struct {
    int32_t level;
    double count; /* c(level) */
} fe_member;

typedef struct {
    int64_t start, end;  /* its members */
    double factor;       /* t_c / N_c */
    double total_weight; /* N_c */
} fe_group_sums;

typedef struct {
    int64_t n;
    int64_t *elim;     /* n: the first of each group, ascending */
    double *times;     /* n: t_c */
    uint32_t *rows;    /* n: rows of an eliminated level of the group */
    fe_group_sums *of; /* n */
    fe_member *members;
    int64_t levels;       /* n_reduced */
    int64_t *level_start; /* levels + 1 */
    int32_t *level_group; /* groups of each level, ascending */
    /* rows of each group's first eliminated level where several factors are sparse and the rows are
     * not in memory; else NULL: they are the plan's */
    int64_t *kept_start; /* n */
    int32_t *kept_index; /* x n_remaining */
    double *kept_weight; /* NULL: all 1 */
} fe_groups;

/** m must be zeroed before; what was built is the caller's to destroy after a failure too. */
FRG_MUST_USE frg_status frgi_fe_groups_create(fe_groups *m, frg_context *ctx, const fe_split *s,
                                              int threads);
void frgi_fe_groups_destroy(fe_groups *m, frg_context *ctx);
/** *products <- products c c' that remain after merging, estimated from a sample of eliminated
 *  levels: what S would cost. */
FRG_MUST_USE frg_status frgi_fe_groups_estimate(const fe_rows *g, frg_context *ctx,
                                                double *products);

#pragma GCC visibility pop
#endif
