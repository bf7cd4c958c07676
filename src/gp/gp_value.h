/* gp_value.h - value and gradient at one theta, and the states of the matrix that they go through.
 *
 *     MATRIX_NONE -> build, jitter, factor -> MATRIX_FACTOR -> inverse -> MATRIX_INVERSE
 *
 * One buffer goes through all three; changing a parameter or the data returns to NONE.  Prediction
 * needs the factor and builds it again where the inverse stands. */
#ifndef FRGI_GP_VALUE_H
#define FRGI_GP_VALUE_H

#include "core/core.h"
#include "fourge/gp.h"
#include "gp/gp_kernel.h"
#include "gp/gp_spd.h"

#pragma GCC visibility push(hidden)

typedef enum { MATRIX_NONE, MATRIX_FACTOR, MATRIX_INVERSE } frgi_gp_matrix_state;

/** The matrix, the points and the bound expression in one arithmetic. */
typedef struct {
    frgi_spd matrix;     /* K -> L -> K^-1 */
    void *kept;          /* FULL: h or k, elements of a second matrix; NULL otherwise */
    void *points_memory; /* structure-of-arrays copy of x */
    frgi_gp_points points;
    void *bound_memory;
    frgi_gp_bound *bound; /* to the current theta; NULL after a change */
} frgi_gp_side;

/** How evaluations are made until further notice. */
typedef struct {
    bool monotone;        /* within a fit: jitter (and a promotion) never goes back */
    bool relaxed;         /* in a fit, at its result: the error of f32 is compared with |ell| + n,
                             not |ell| + 1 */
    bool with_inverse;    /* the inverse will be wanted too: one sweep does both */
    bool rounding_warned; /* W_ROUNDING_GP was given for this value */
    bool jitter_warned;   /* W_JITTER was given in this fit; frgi_gp_set_monotone clears it */
} frgi_gp_mode;

/** What the evaluation at the current theta has left beside its vectors. */
typedef struct {
    frgi_gp_matrix_state matrix;
    bool swapped;     /* auto_promote: the other arithmetic has taken the place of f32 */
    bool low_inverse; /* mixed: the other matrix holds the inverse in f32 */
    bool kept_ready;  /* what is kept belongs to the matrix */
    double jitter;    /* added to the diagonal, absolute */
    double scale;     /* f of a profiled scale: matrix is R, residual r / sqrt(f), alpha R^-1 of it;
                         1 */
    double quad;      /* sum_c r_c' a_c */
    double logdet;    /* log |K| */
    double rounding; /* K_max (|a|^2 + q sum 1/L_ii^2): times u, what one rounding of each K_ij does
                         to ell */
    frgi_spd_pivots pivots; /* of the last factor */
} frgi_gp_evaluation;

/** The vectors of an evaluation. */
typedef struct {
    double *residual;   /* n x q: r */
    double *alpha;      /* n x q: K^-1 r, valid from MATRIX_FACTOR on; one column in f64 is L^-T z
                           by L while L is there, by the rows of L^-1 while K^-1 is: the same
                           whatever was asked before */
    double *forward;    /* n: z = L^-1 r of the one column that goes along */
    double *swept;      /* n: L^-T z as a sweep of factor and inverse leaves it */
    double *noise;      /* n: nu */
    double *diagonal;   /* n: of K = C + N, without jitter */
    double *scratch;    /* n */
    double *dx;         /* n x d: gradient with respect to x, before it is handed out */
    double *gradient;   /* params.count: the same */
    float *solved_low;  /* n x (q + m): solutions in f32, where a step is in f32 */
    void *trust_memory; /* f32: of frgi_gp_sampled_error */
} frgi_gp_vectors;

/** Value at gp->theta: build, jitter policy, factor, alpha; leaves MATRIX_FACTOR.  Nothing is done
 *  where it is there already.  FRG_NOT_POSDEF, and FRG_BROKE_DOWN (f32 that is not good enough),
 *  leave MATRIX_NONE and are steps not to be taken for an optimiser; so do FRG_INTERRUPTED and
 *  FRG_TIME_LIMIT. */
FRG_MUST_USE frg_status frgi_gp_value(frg_gp *gp);
/** Gradient at gp->theta (-> MATRIX_INVERSE; MIXED keeps MATRIX_FACTOR); includes the prior, 0 for
 *  fixed parameters.  dx: n x d row-major, dy: n x q column-major, either may be NULL. */
FRG_MUST_USE frg_status frgi_gp_gradient(frg_gp *gp, double *gradient, double *dx, double *dy);
/** K with the current jitter into `matrix`, and what goes with it. */
FRG_MUST_USE frg_status frgi_gp_build_jittered(frg_gp *gp);
/** nu_i: the known variances and the learned ones, of all points. */
void frgi_gp_noise(const frg_gp *gp, double *nu);
void frgi_gp_narrow(ptrdiff_t n, const double *from, float *to);
void frgi_gp_widen(ptrdiff_t n, const float *from, double *to);
/** Again in f64 where auto_promote allows it, E_PRECISION_GP where not: the inverse in f32 was no
 *  inverse. */
FRG_MUST_USE frg_status frgi_gp_promote(frg_gp *gp);
/** The value from a factor that was not made here (an update, a file): matrix holds L at
 *  gp->jitter, noise and diagonal are filled, the expression is bound; residual, solves, check of
 *  the accuracy -> MATRIX_FACTOR. */
FRG_MUST_USE frg_status frgi_gp_take_factor(frg_gp *gp);
/** L^-1 r, a, what is profiled and the likelihood once more from the L that is there and its
 *  logdet. */
FRG_MUST_USE frg_status frgi_gp_solve_anew(frg_gp *gp);
/** Makes sure the factor and alpha of the current theta are there. */
FRG_MUST_USE frg_status frgi_gp_need_factor(frg_gp *gp);
/** Does alpha follow the matrix from L to K^-1: one column in f64? */
bool frgi_gp_carries(const frg_gp *gp);
/** Makes sure that `matrix` holds K^-1 in the process's own arithmetic. */
FRG_MUST_USE frg_status frgi_gp_need_inverse(frg_gp *gp);
/** Forgets the matrix after theta or the data changed. */
void frgi_gp_forget(frg_gp *gp);
/** Starts (jitter 0, kept from then on) or ends a stretch of evaluations with one continuous
 *  objective. */
void frgi_gp_set_monotone(frg_gp *gp, bool monotone);
/** What an evaluation at gp->theta has left, as if it had been made, but for the matrix: another
 *  one factors anew. */
void frgi_gp_recall(frg_gp *gp, frg_status status, const frg_gp_value *value, double jitter,
                    bool swapped);
/** gp->theta <- theta (checked), forgets the matrix where a value differs. */
FRG_MUST_USE frg_status frgi_gp_set_theta(frg_gp *gp, const double *theta);

#pragma GCC visibility pop
#endif
