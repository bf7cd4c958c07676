/* gw_oracle.h - alignments the slow and literal way: dense arrays, nested loops, double precision.
 *
 * The linearised cost is four nested sums as they stand, Sinkhorn's iteration runs in the log
 * domain until nothing moves, the plan is stored, partial transport is a balanced problem with a
 * dummy point, rounding is algorithm 2 of Altschuler, Weed and Rigollet (2017).  Shares no code
 * with the library.  Meant for some ten points a side. */
#ifndef FOURGE_GW_ORACLE_H
#define FOURGE_GW_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

/** Matrices by rows.  C and D in the units of the costs. */
typedef struct {
    int64_t n, m;
    const double *c, *d, *a, *b;
    const double *linear;          /* n x m, or NULL */
    double theta;                  /* its weight */
    double rho_source, rho_target; /* infinite: the marginal holds */
    double mass;                   /* 0: all */
    bool product;                  /* entropy relative to a b' */
} gw_oracle;

/** A pair of points. */
typedef struct {
    int64_t i, j;
} gw_oracle_pair;

/** epsilon log sum_j exp((g_j - c_j) / epsilon), j < n, c_j at c + j * stride. */
double gw_oracle_log_sum_exp(const double *g, const double *c, int64_t n, int64_t stride,
                             double epsilon);
/** (1 - theta) L(P) + theta linear with L(P)_ij = sum_kl (C_ik - D_jl)^2 P_kl. */
void gw_oracle_cost(const gw_oracle *o, const double *plan, double *cost);
/** The same with 1 / R at each of R pairs in place of P. */
void gw_oracle_cost_of_pairs(const gw_oracle *o, const gw_oracle_pair *pair, int64_t R,
                             double *cost);
/** The same where marginals hold and products are centred by the mean distances u = C a, v = D b:
 *  -2 / R sum_r (C_ir,i - u_i)(D_jr,j - v_j) - 2 u_i v_j in place of L, whose other terms no
 *  balanced plan feels. */
void gw_oracle_cost_of_centred_pairs(const gw_oracle *o, const gw_oracle_pair *pair, int64_t R,
                                     double *cost);
/** The plan of a cost at epsilon; the number of iterations. */
int64_t gw_oracle_sinkhorn(const gw_oracle *o, double epsilon, const double *cost, double *plan);
/** P <- P + damping (S(L(P), epsilon_t) - P) from a b', `steps` times; plan <- the last S.  Costs
 *  are moved by noise times a number in -1 .. 1 of `state`, where noise is not 0. */
void gw_oracle_exact(const gw_oracle *o, const double *epsilon, int64_t steps, double damping,
                     double noise, uint64_t state, double *plan);
/** The plan with marginals a and b that is near. */
void gw_oracle_round(const gw_oracle *o, double *plan);
/** sum_ijkl (C_ik - D_jl)^2 P_ij P_kl. */
double gw_oracle_energy(const gw_oracle *o, const double *plan);
/** sum_ij |P_ij - Q_ij| / 2. */
double gw_oracle_apart(const gw_oracle *o, const double *p, const double *q);
/** The least energy, or <cost, P> where cost is not NULL, of all vertices of the plans with
 *  marginals a and b, which are trees of n + m - 1 cells; for up to 16 cells. */
double gw_oracle_lowest_vertex(const gw_oracle *o, const double *cost);

#endif
