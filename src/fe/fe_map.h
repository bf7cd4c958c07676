/* fe_map.h - alternating projections with Irons and Tuck's acceleration, for comparison.
 *
 * A sweep takes the factors out one after another, each exactly.  In the notation of fe_basis.h,
 * with phi_q the orthonormal columns of factor q, the eliminated factor first and the others by
 * falling numbers of levels:
 *
 *     z <- (I - P_1) z;      each q:  m_q = sum w phi_q z,   z <- z - phi_q m_q,   c_q <- c_q + m_q
 *
 * P_1 as in fe_row_lsmr.c, so that c <- G(c).  The coefficients are extrapolated after two sweeps
 * (Irons and Tuck 1969):
 *
 *     D1 = G(G(c)) - G(c),   D2 = D1 - (G(c) - c),   c <- G(G(c)) - (D1'D2 / D2'D2) D1
 *
 * with the schedule of Berge (2018): 40 extrapolations after two sweeps each, then after three;
 * every fourth iterate feeds an extrapolation of extrapolations; of three and more factors 15
 * sweeps of all, then the first two by themselves, then all.
 *
 * || m || is the gradient, which costs nothing here: the stop is on it, not on the length of a
 * step. For two factors 1 / (1 - D1'D2 / D2'D2) is a Rayleigh quotient of I - G, at least the
 * smallest eigenvalue of A'A; for more it is an estimate.
 *
 * Cost of a sweep: a pass over the rows for each factor.  A lane's bits do not depend on the
 * others. */
#ifndef FRGI_FE_MAP_H
#define FRGI_FE_MAP_H

#include "fe/fe_basis.h"

#pragma GCC visibility push(hidden)

/** The state of one column. */
typedef struct {
    frg_lsmr_stop stop;    /* FRG_LSMR_RUNNING while it goes on */
    int64_t sweeps;        /* so far, */
    int64_t accelerations; /* and extrapolations */
    int place;             /* sweeps of its round; 2: one without extrapolation follows */
    int kept;              /* iterates kept for the extrapolation of extrapolations */
    enum { FE_MAP_WARM_UP, FE_MAP_FIRST_TWO, FE_MAP_ALL } phase;
    double gradient2;      /* ||m||^2 of the last sweep */
    double square, before; /* sum of w z^2 in the last sweep and in the first */
    double lambda;         /* the smallest estimate; NaN: none */
} fe_map_lane;

/** Work memory: vectors of R x lanes coefficients. */
typedef struct {
    int64_t k;                     /* lanes in use */
    double *c;                     /* the iterate */
    double *one;                   /* G of the last start */
    double *start;                 /* the last start */
    double *kept[2];               /* iterates for the extrapolation of extrapolations */
    double *step;                  /* m */
    double *pending;               /* what z does not know of yet */
    const fe_basis_factor **order; /* the remaining factors, those of most levels first */
    fe_map_lane lane[BASIS_MAX_LANES];
} fe_map;

/** When a column ends. */
typedef struct {
    double atol;        /* ||m|| <= atol ||W^(1/2) z||, or ||W^(1/2) z|| <= atol of what it was */
    int64_t max_sweeps; /* at most */
} fe_map_rule;

void frgi_fe_map_layout(frgi_arena *a, const fe_basis *b, int64_t lanes, fe_map *m);
/** c and the lanes' states as before the first sweep, of k columns. */
void frgi_fe_map_start(fe_map *m, const fe_basis *b, int64_t k);
/** One sweep of the lanes that go on, without acceleration; elim (n_elim_columns x k) is changed
 *  along with z.  Returns FRG_OK, or why the context was stopped: c is that of the sweep before
 *  then, or has the factors of this one that were done. */
FRG_MUST_USE frg_status frgi_fe_map_sweep(fe_map *m, frg_context *ctx, const fe_basis_work *w,
                                          double *z, double *elim);
/** Sweeps with acceleration until every lane has stopped; m->c and m->lane have the answer, z and
 *  elim hold no result.  Returns FRG_OK or the heartbeat's status. */
FRG_MUST_USE frg_status frgi_fe_map_solve(fe_map *m, frg_context *ctx, const fe_basis_work *w,
                                          const fe_map_rule *rule, double *z, double *elim);

#pragma GCC visibility pop
#endif
