/* reg_leave_out.h - leave-out variance components: what their corrections are computed from.
 *
 * With effects b and their design rows d_i, a component is b'A b, and its plug-in estimate has the
 * bias sum_i B_ii var(e_i) (Kline, Saggio and Soelvsten 2020):
 *
 *     S = sum_i w_i d_i d_i',      B_ii = w_i^2 d_i'S^- A S^- d_i,      P_i = w_i d_i'S^- d_i
 *     estimate = b'A b - sum_i B_ii s_i / (1 - P_i),                    s_i = y_i e_i
 *
 * s_i / (1 - P_i) is y_i times the error of its prediction from the others: its mean is var(e_i).
 * Below B stands without w_i^2.
 *
 * Notation.  A match m of worker k(m) and firm j(m) has weight T_m; W_k and F_j are the sums of a
 * worker's and a firm's matches, W that of all.  With the workers eliminated
 *
 *     u_m = e_j(m) - sum_{l of k(m)} T_l e_j(l) / W_k,     L = sum_m T_m u_m u_m',
 *
 * L the Laplacian of the firms' graph, and p = L^+ u_m shifted to sum_j F_j p_j = 0, three numbers
 * of a match say all:
 *
 *     g = 1 / W_k + u_m'p,  P = w g        leverage of a unit of weight w in the match
 *     q = sum_j F_j p_j^2                  B of the firms' variance        q / W
 *     h = p_j(m)                           B of the covariance             (h - q) / W
 *                                          B of both together              g / W - 1 / W^2
 *
 * as the workers' part of S^- d_m is (e_k - sum_l T_l p_j(l)) / W_k.  A unit is what is left out:
 * a row or a match. */
#ifndef FRGI_REG_LEAVE_OUT_H
#define FRGI_REG_LEAVE_OUT_H

#include "regress/reg_matches.h"
#include "sparse/symmetric.h"

#pragma GCC visibility push(hidden)

/** Matches, their weights and their units. */
typedef struct {
    frg_context *ctx;
    frgi_matches matches;
    double *weight;                 /* count: T */
    double *worker, *firm;          /* W_k, F_j */
    double total;                   /* W */
    int64_t *start;                 /* count + 1: units of a match; all 0 where none is left out */
    double *unit, *outcome, *error; /* of a unit: its weight, y - mean y, e */
    double *copies;                 /* units that it stands for */
    double *effect[2];              /* of a worker and a firm, less their means over rows */
    double *inverse, *q, *h; /* 1 / (1 - P) of a unit, q and h of a match, when they are known */
    int64_t draws;
} frgi_leave_panel;

/** Sums over units, by which the bias of the components is estimated, and what they take from
 *  random projections: variances of their means. */
typedef struct {
    double first, second, covariance; /* sum B_ii s_i / (1 - P_i) */
    double trace;                     /* sum_m T_m q_m */
    double leverage_max;
    double first_variance, second_variance, covariance_variance, trace_variance;
    double sampling[3];         /* variances over samples: of first, second, covariance */
    int64_t iterations, failed; /* of linear systems */
} frgi_leave_sums;

/** What one match adds: sums over its units, s as above. */
typedef struct {
    double kept; /* sum w^2 s / (1 - P) */
    double rest; /* sum w s P / (1 - P), P = w g */
} frgi_leave_match;

/** From sums over all matches: of kept, rest, kept q, kept h. */
void frgi_leave_combine(const frgi_leave_panel *p, double kept, double rest, double kept_q,
                        double kept_h, frgi_leave_sums *out);
/** The Laplacian of the firms, without its last row and column where `grounded`; to be dropped.
 *  E_TOO_BIG where workers have so many matches that it takes too long. */
typedef struct {
    int64_t *starts;
    int32_t *columns;
    double *values;
    frgi_symmetric view;
} frgi_firm_graph;
FRG_MUST_USE frg_status frgi_firm_graph_create(frgi_firm_graph *g, const frgi_leave_panel *p,
                                               bool grounded);
void frgi_firm_graph_destroy(frgi_firm_graph *g, frg_context *ctx);

/** s = (y - mean y) e of unit i, as often as it stands for one. */
static inline double frgi_leave_score(const frgi_leave_panel *p, int64_t i)
{
    return p->copies[i] * p->outcome[i] * p->error[i];
}
/** x <- L^+ x up to a constant a column, n_second x columns row-major, whose columns sum to 0; what
 *  it took is added to *out. */
typedef frg_status (*frgi_leave_solve)(void *of, int64_t columns, double *x, frgi_leave_sums *out);
/** out->sampling, from inverse, q and h (reg_leave_error.c). */
FRG_MUST_USE frg_status frgi_leave_errors(const frgi_leave_panel *p, frgi_leave_solve solve,
                                          void *of, frgi_leave_sums *out);

/** By a direct factor; E_LEAVE_OUT where a unit has leverage 1. */
FRG_MUST_USE frg_status frgi_leave_exact(const frgi_leave_panel *p, frgi_leave_sums *out);
/** By random projections. */
FRG_MUST_USE frg_status frgi_leave_draws(const frgi_leave_panel *p, frgi_leave_sums *out);

#pragma GCC visibility pop
#endif
