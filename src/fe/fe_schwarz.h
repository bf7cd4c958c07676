/* fe_schwarz.h - approximate Cholesky preconditioners of S: block by block, or additive Schwarz
 * over pairs of factors.
 *
 * The normal equations of two factors alone are, with the sign of one of them turned, the Laplacian
 * of their bipartite graph, which approx_chol.h takes. On the reduced unknowns
 *
 *     blocks    M^-1 = sum over factors q of R_q' L_1q^+ R_q
 *     pairs     M^-1 = sum over factors q of R_q' L_1q^+ R_q  +
 *                      sum over pairs q < s of R_qs' L_qs^+ R_qs
 *
 *     L_1q    the pair of the eliminated factor and q with the former taken out: the block S_qq
 *     L_qs    | N_q   C_qs |    counts of the levels and of their cells
 *             | C_qs' N_s  |
 *
 * Each level is in Q - 1 pairs: the weights 1 / (Q - 1) of a partition of unity are one number,
 * which changes no step of conjugate gradients and is left out.
 *
 * Blocks know how levels are joined by eliminated levels; they do not see that two factors are
 * joined badly with each other (doctors who seldom change the hospital, whose patients go
 * anywhere): there pairs need few steps.
 *
 * Every subdomain works on copies of its unknowns, which stand one after another: one factor is of
 * all.
 *
 * Source: Schwarz over pairs of factors as in the crate within (Schroeder and Fischer), which works
 * on the levels of all factors and on LSMR; here it is the Schur complement's.
 */
#ifndef FRGI_FE_SCHWARZ_H
#define FRGI_FE_SCHWARZ_H

#include "fe/fe_steps.h"

#pragma GCC visibility push(hidden)

typedef struct {
    frgi_ac *ac;    /* of all copies; NULL: not built */
    int64_t n;      /* copies */
    int32_t *level; /* n: the unknown of each; NULL: one copy of each unknown, in their order */
    double *sign;   /* n: 1, or -1 for the second factor of a pair; NULL with level */
} fe_schwarz;

/** p must be zeroed before.  FRG_INTERRUPTED and FRG_TIME_LIMIT leave it so. */
FRG_MUST_USE frg_status frgi_fe_schwarz_create(fe_schwarz *p, frg_context *ctx, const fe_rows *g,
                                               const fe_schur *s, bool pairs);
/** Doubles of scratch for `lanes` columns. */
size_t frgi_fe_schwarz_scratch(const fe_schwarz *p, int lanes);
/** z <- M^-1 r, n_reduced x lanes; M^-1 is symmetric and positive on the range of S. */
FRG_MUST_USE frg_status frgi_fe_schwarz_apply(const fe_schwarz *p, const fe_rows *g, int lanes,
                                              const double *r, double *z, double *scratch);
/** One whose factor is in a file (frgi_ac_put): the copies follow from the rows.  E_CHECKPOINT as
 *  frgi_ac_get, and then p is to be destroyed. */
FRG_MUST_USE frg_status frgi_fe_schwarz_get(fe_schwarz *p, frg_context *ctx,
                                            const frg_checkpoint *from, const fe_rows *g,
                                            bool pairs);
size_t frgi_fe_schwarz_bytes(const fe_schwarz *p);
void frgi_fe_schwarz_destroy(fe_schwarz *p, frg_context *ctx);

#pragma GCC visibility pop
#endif
