/* gp_matrix.h - the matrix of a process and its states.
 *
 *     MATRIX_NONE -> build, jitter, factor -> MATRIX_FACTOR -> inverse -> MATRIX_INVERSE
 *
 * One buffer goes through all three; changing a parameter or the data returns to NONE.  Prediction
 * needs the factor and builds it again where the inverse stands. */
#ifndef FRGI_GP_MATRIX_H
#define FRGI_GP_MATRIX_H

#include "core/core.h"
#include "fourge/gp.h"
#include "gp/gp_kernel.h"
#include "linalg/spd.h"

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
    bool monotone;      /* within a fit: the jitter never decreases, f64 never gives way to f32 */
    bool relaxed;       /* in a fit, at its result: the error of f32 is compared with |ell| + n,
                             not |ell| + 1 */
    bool with_inverse;  /* a gradient is to follow: one sweep makes factor and inverse */
    bool jitter_warned; /* W_JITTER was given in this fit; frgi_gp_set_monotone clears it */
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

/** The vectors of an evaluation, which the steps alone touch (gp_steps.h). */
typedef struct {
    double *residual;   /* n x q: r */
    double *alpha;      /* n x q: K^-1 r, valid from MATRIX_FACTOR on.  Of one column in f64 its
                           last bits belong to the state: L^-T z solved with L in MATRIX_FACTOR,
                           summed over the rows of L^-1 in MATRIX_INVERSE, whatever came before */
    double *forward;    /* n: z = L^-1 r of the one column (frgi_gp_carries) */
    double *swept;      /* n: L^-T z by the rows of L^-1, from frgi_spd_sweep */
    double *noise;      /* n: nu */
    double *diagonal;   /* n: of K = C + N, without jitter */
    double *scratch;    /* n: the L_ii after a factorisation, (K^-1)_ii in a gradient pass; free
                           between calls */
    float *solved_low;  /* n x (q + m): solutions in f32, where a step is in f32 */
    void *trust_memory; /* f32: of frgi_gp_sampled_error */
} frgi_gp_vectors;

/** A new process, or a copy, begins: its own arithmetic, no jitter, outside of a fit. */
void frgi_gp_open_state(frg_gp *gp);
/** Forgets the matrix after theta or the data changed. */
void frgi_gp_forget(frg_gp *gp);
/** The same after the data changed: a fit is over. */
void frgi_gp_data_changed(frg_gp *gp);
/** Other parameters than those that a fit has found. */
void frgi_gp_parameters_changed(frg_gp *gp);
/** Nothing is left of a fit: its tolerance, its jitter and its warning. */
void frgi_gp_forget_fit(frg_gp *gp);
/** Begins (with jitter 0) or ends a series of evaluations of one continuous objective, in which the
 *  jitter never decreases. */
void frgi_gp_set_monotone(frg_gp *gp, bool monotone);
/** The jitter of a factor from elsewhere, or of the evaluation to come. */
void frgi_gp_set_jitter(frg_gp *gp, double jitter);
/** mute: W_JITTER is not given (again) within this fit.  Returns what held before. */
bool frgi_gp_mute_jitter(frg_gp *gp, bool mute);
/** expected: each value is followed by a gradient, so that one sweep may make L and K^-1. */
void frgi_gp_expect_inverse(frg_gp *gp, bool expected);
void frgi_gp_set_matrix(frg_gp *gp, frgi_gp_matrix_state state);
/** `a` is about to be written to: where it lies in the memory of `kept`, the gradient pass has to
 *  compute its values again. */
void frgi_gp_overwrite(frg_gp *gp, const frgi_spd *a);
/** The process's own arithmetic and the other change places. */
void frgi_gp_swap_sides(frg_gp *gp);

/** nu_i of point i: its known variance and the learned one. */
double frgi_gp_noise_at(const frg_gp *gp, ptrdiff_t i);
/** That of all points. */
void frgi_gp_noise(frg_gp *gp);
/** K = L L' with as little jitter as it takes, the L_ii in scratch; z = L^-1 r too where
 *  frgi_gp_goes_along, K^-1 and a where frgi_gp_sweeps.  Records no failure. */
FRG_MUST_USE frg_status frgi_gp_factor(frg_gp *gp, bool may_raise);
/** Is there one right-hand side alone, which is solved for while the factor is made? */
bool frgi_gp_goes_along(const frg_gp *gp);
/** Is alpha made anew when L becomes K^-1 (see frgi_gp_vectors): one column in f64? */
bool frgi_gp_carries(const frg_gp *gp);
/** Will frgi_gp_factor make K^-1 as well, in one sweep? */
bool frgi_gp_sweeps(const frg_gp *gp);
enum { GP_PAIR_BYTES = 160 };
/** "; the closest points are rows 3 and 7, at the distance 0", or "" */
const char *frgi_gp_describe_closest(const frg_gp *gp, char text[GP_PAIR_BYTES]);
/** W_JITTER, in a fit once. */
void frgi_gp_warn_jitter(frg_gp *gp);

void frgi_gp_narrow(ptrdiff_t n, const double *from, float *to);
void frgi_gp_widen(ptrdiff_t n, const float *from, double *to);

#pragma GCC visibility pop
#endif
