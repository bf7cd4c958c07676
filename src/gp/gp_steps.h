/* gp_steps.h - the steps on the state of a process: the matrix in both arithmetics with what is
 * kept beside it, and the vectors of frgi_gp_vectors and of a profiled mean.
 *
 * Nothing else touches that memory (test_gp_steps keeps it in pages without rights in between); the
 * files above the steps see their numbers.  So do batches of small processes, one a SIMD lane,
 * whose lanes lie in memory of these steps, too.
 */
#ifndef FRGI_GP_STEPS_H
#define FRGI_GP_STEPS_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

typedef struct frgi_gp_predictor frgi_gp_predictor; /* gp_predict.c */
typedef struct frgi_gp_left_out frgi_gp_left_out;   /* gp_loo.c */
typedef struct frgi_gp_folding frgi_gp_folding;     /* gp_folds.c */
typedef struct frgi_gp_informing frgi_gp_informing; /* gp_information.c */

/** From the data to ell and a. */
typedef struct {
    /** H of a profiled mean, after the points changed. */
    void (*basis)(frg_gp *gp);
    /** nu_i: known and learned noise. */
    void (*noise)(frg_gp *gp);
    /** r = y - m(x); of a profiled mean y less its column means. */
    void (*residual)(frg_gp *gp);
    /** K = C + N + jitter I */
    FRG_MUST_USE frg_status (*build)(frg_gp *gp);
    /** K = L L', log |K| = 2 sum_i log L_ii; z = L^-1 r where r goes along; K^-1 and a where
     *  frgi_gp_sweeps.  FRG_NOT_POSDEF where a pivot is no more than its rounding. */
    FRG_MUST_USE frg_status (*factor)(frg_gp *gp);
    /** Build and factor at the jitter that is there. */
    FRG_MUST_USE frg_status (*refactor)(frg_gp *gp);
    /** z = L^-1 r,  Z = L^-1 H */
    FRG_MUST_USE frg_status (*forward)(frg_gp *gp);
    /** b = (Z'Z)^-1 Z'z,  z <- z - Z b,  f = |z|^2 / N,  a = L^-T z; swept: a is there.
     *  FRG_NOT_POSDEF with pivot -1 where H'K^-1 H is singular, FRG_BROKE_DOWN with scale 0 where
     *  nothing is left to scale. */
    FRG_MUST_USE frg_status (*solve)(frg_gp *gp, bool swept);
    /** K_max (|a|^2 + q sum_i 1/L_ii^2), behind a factor and its solve. */
    void (*bound)(frg_gp *gp);
    /** Of f32, by residuals in f64 on a sample of rows (gp_trust.c). */
    FRG_MUST_USE frg_status (*sampled_error)(frg_gp *gp, double *error);
    /** Of K, without jitter. */
    double (*mean_diagonal)(const frg_gp *gp);
    /** Padding, noise and diagonal for columns of a factor that was not made here; then its
     *  determinant and L_ii. */
    void (*adopt)(frg_gp *gp);
    void (*take_over)(frg_gp *gp);
} frgi_gp_value_steps;

/** From the factor to derivatives, and what else takes an inverse. */
typedef struct {
    /** L -> K^-1 in place. */
    FRG_MUST_USE frg_status (*invert)(frg_gp *gp);
    /** mixed: the inverse in f32 from the factor in f64, which stays. */
    FRG_MUST_USE frg_status (*low_inverse)(frg_gp *gp);
    /** 1/2 sum_ij W_ij dK_ij/dlog t,  dx_i = sum_j W_ij dk(x_i, x_j)/dx_i, and the trace residual;
     *  low: by the inverse in f32. */
    FRG_MUST_USE frg_status (*pass)(frg_gp *gp, bool low, double *gradient, double *dx);
    /** The entries of noise and mean, and what the mean adds to dx. */
    void (*of_points)(frg_gp *gp, double *gradient, double *dx);
    /** to (n x q) <- d ell/dy = -a / sqrt(f) */
    void (*of_values)(const frg_gp *gp, const frg_array *to);
    FRG_MUST_USE frg_status (*leave_out)(frg_gp *gp, frgi_gp_left_out *l);
    /** The same of blocks of rows. */
    FRG_MUST_USE frg_status (*leave_blocks_out)(frg_gp *gp, frgi_gp_folding *f);
    FRG_MUST_USE frg_status (*information)(frg_gp *gp, frgi_gp_informing *k, double *out);
} frgi_gp_gradient_steps;

/** New points, and columns of the factor in and out. */
typedef struct {
    /** Mean, variance and derivatives of `rows` new points. */
    FRG_MUST_USE frg_status (*predict)(frgi_gp_predictor *p, ptrdiff_t first, ptrdiff_t rows);
    /** b <- L^-1 b for m columns of n, in f64. */
    FRG_MUST_USE frg_status (*forward)(const frg_gp *gp, ptrdiff_t m, double *b);
    /** v <- rows from .. end-1 of column j, and the other direction. */
    void (*read)(const frg_gp *gp, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end, double *v);
    void (*write)(const frg_gp *gp, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end, const double *v);
} frgi_gp_factor_steps;

/** Processes in the lanes of a vector (gp_batch.h, gp_batch_lanes.c). */
typedef struct frgi_gp_batch_lanes frgi_gp_batch_lanes;
typedef struct {
    /** The processes into their lanes at gp->theta; value, and where asked the gradient's sums, of
     *  every lane. */
    FRG_MUST_USE frg_status (*run)(frgi_gp_batch_lanes *r, bool gradient);
    /** gp->value from a lane; false where the lane's answer is not good enough. */
    bool (*take_value)(const frgi_gp_batch_lanes *r, int lane);
    /** gp->gradient from a lane, after its value, and the trace residual. */
    void (*take_gradient)(const frgi_gp_batch_lanes *r, int lane);
} frgi_gp_lane_steps;

typedef struct {
    /** Memory of a state, a->used bytes, and its end. */
    FRG_MUST_USE frg_status (*open)(frgi_arena *a, frg_context *ctx, const char *what);
    void (*close)(frgi_arena *a, frg_context *ctx);
    frgi_gp_value_steps value;
    frgi_gp_gradient_steps gradient;
    frgi_gp_factor_steps factor;
    frgi_gp_lane_steps lanes;
} frgi_gp_steps;

extern const frgi_gp_steps frgi_gp_host_steps;

/* ---- gp_gradient.c ---- */
FRG_MUST_USE frg_status frgi_gp_pass_over_pairs(frg_gp *gp, bool low, double *gradient, double *dx);
void frgi_gp_gradient_of_points(frg_gp *gp, double *gradient, double *dx);
void frgi_gp_gradient_of_values(const frg_gp *gp, const frg_array *to);
/** The kernel's entries of gradient and, where not NULL, dx by inverse and pass, in the arithmetic
 *  that the precision asks for; f64 where mixed is not enough. */
FRG_MUST_USE frg_status frgi_gp_gradient_pass(frg_gp *gp, double *gradient, double *dx);
/** Was the inverse in f32 none, by the trace residual? */
bool frgi_gp_gradient_is_lost(const frg_gp *gp);

/* ---- gp_loo.c, gp_folds.c, gp_information.c, gp_predict.c ---- */
FRG_MUST_USE frg_status frgi_gp_leave_out(frg_gp *gp, frgi_gp_left_out *l);
FRG_MUST_USE frg_status frgi_gp_leave_blocks_out(frg_gp *gp, frgi_gp_folding *f);
FRG_MUST_USE frg_status frgi_gp_fill_information(frg_gp *gp, frgi_gp_informing *k, double *out);
FRG_MUST_USE frg_status frgi_gp_predict_block(frgi_gp_predictor *p, ptrdiff_t first,
                                              ptrdiff_t rows);

/* ---- gp_batch_lanes.c ---- */
FRG_MUST_USE frg_status frgi_gp_fill_and_run(frgi_gp_batch_lanes *r, bool gradient);
bool frgi_gp_take_value(const frgi_gp_batch_lanes *r, int lane);
void frgi_gp_take_gradient(const frgi_gp_batch_lanes *r, int lane);

#pragma GCC visibility pop
#endif
