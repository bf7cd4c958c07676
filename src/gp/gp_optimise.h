/* gp_optimise.h - minimisation in a box of a function that is expensive to evaluate and not defined
 * everywhere.
 *
 * One interface for the three optimisers, so that they can be tried on plain functions.  f is
 * minimised over lower <= x <= upper (either may be infinite).  A value costs a third of a value
 * with its gradient, so that a trial asks for the value first and for the gradient only where the
 * trial is kept.  A trial that has no value (FRG_NOT_POSDEF: the covariance could not be factored)
 * counts as +infinity: it is never taken and never has a gradient.
 *
 * A search has converged (FRG_OK) where the projected gradient is at most tol, and where little is
 * left to be gained: after a step that gained next to nothing, or where no step down was found, the
 * curvature there is computed, and the reduction that this model (below) predicts for a full step,
 * the promise, must be no more than `relative` of f, or than the rounding of f.  A small step alone
 * shows nothing: a wrong model takes small steps anywhere.
 */
#ifndef FRGI_GP_OPTIMISE_H
#define FRGI_GP_OPTIMISE_H

#include <math.h>
#include <stdint.h>

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** Callbacks return FRG_OK, FRG_NOT_POSDEF (no value here: another step), another error (the search
 *  ends with it), or a positive status (a limit was met: the search ends with the best point so
 *  far). */
typedef struct {
    int n;
    const double *lower, *upper;
    frg_status (*value)(void *user, const double *x, double *f);
    frg_status (*gradient)(void *user, double *g);    /* at the x of the last value */
    frg_status (*information)(void *user, double *h); /* there too: n x n, positive semidefinite;
                                                         may be NULL */
    /* an iterate; may be NULL */
    frg_status (*accepted)(void *user, const double *x, double f, double norm);
    double (*rounding)(void *user); /* bound on the rounding error of f at the last iterate; may be
                                       NULL */
    void *user;
} frgi_gp_objective;

typedef struct {
    int64_t max_iter;
    double tol;      /* largest component of the projected gradient */
    double relative; /* the promise at which a search ends, over max(|f|, 1) */
    double rate;     /* of adam */
} frgi_gp_search;

/** Why a search has converged without its gradient being small enough. */
typedef enum { GP_ENDED_OTHERWISE, GP_ENDED_BY_GAIN, GP_ENDED_BY_ROUNDING } frgi_gp_end;

typedef struct {
    double f, norm; /* at the point returned */
    frgi_gp_end end;
    int64_t iterations, values, gradients, failures;
} frgi_gp_found;

/** From x to the best point found, x in the box.  Returns FRG_OK, FRG_MAX_ITER, FRG_STALLED, a
 *  callback's positive status, or an error (FRG_NOT_POSDEF where the start itself has no value).
 *  The counts of `out` are added to. */
FRG_MUST_USE frg_status frgi_gp_lbfgsb(frg_context *ctx, const frgi_gp_objective *o,
                                       const frgi_gp_search *s, double *x, frgi_gp_found *out);
/** Needs `information`; continues as L-BFGS-B where its model fails (gp_ai.c). */
FRG_MUST_USE frg_status frgi_gp_ai(frg_context *ctx, const frgi_gp_objective *o,
                                   const frgi_gp_search *s, double *x, frgi_gp_found *out);
/** max_iter steps, the last point whatever its value. */
FRG_MUST_USE frg_status frgi_gp_adam(frg_context *ctx, const frgi_gp_objective *o,
                                     const frgi_gp_search *s, double *x, frgi_gp_found *out);

/** Counted calls of the objective; a value that is not finite is FRG_NOT_POSDEF too. */
FRG_MUST_USE frg_status frgi_gp_ask_value(const frgi_gp_objective *o, const double *x, double *f,
                                          frgi_gp_found *found);
FRG_MUST_USE frg_status frgi_gp_ask_gradient(const frgi_gp_objective *o, double *g,
                                             frgi_gp_found *found);
#define FRGI_GP_LONGEST_STEP 2. /* a factor of e^2 = 7 in a log parameter */
/** The quadratic model at a point (below): h is filled by its user. */
typedef struct {
    double *h;              /* n x n */
    double *system, *scale; /* work */
    double *p;              /* the last step */
} frgi_gp_model;
void frgi_gp_model_take(frgi_arena *a, int n, frgi_gp_model *m);
/** m->p <- the damped step at x, with no regard to how far bounds are; mu grows where there is
 *  none.  False, without a step, where h or g are not numbers. */
bool frgi_gp_damped(const frgi_gp_objective *o, const double *x, const double *g, double *mu,
                    frgi_gp_model *m);
/** The reduction that the model predicts for a full step from x, of components up to
 *  FRGI_GP_LONGEST_STEP. */
double frgi_gp_promise(const frgi_gp_objective *o, const double *x, const double *g,
                       frgi_gp_model *m);
/** Whether a promise is small enough beside f to end a search, and by which test;
 *  GP_ENDED_OTHERWISE: it is not. */
frgi_gp_end frgi_gp_is_end(const frgi_gp_objective *o, const frgi_gp_search *s, double f,
                           double promise);
/** Largest |g_i| over the coordinates that may move downhill. */
double frgi_gp_projected_norm(const frgi_gp_objective *o, const double *x, const double *g);
static inline double frgi_gp_clip(const frgi_gp_objective *o, int i, double x)
{
    return x < o->lower[i] ? o->lower[i] : x > o->upper[i] ? o->upper[i] : x;
}

/* One step of Adam on one coordinate, the arithmetic of torch.optim.Adam (Kingma and Ba
 * 2015):
 *
 *     m <- m + (1 - b1)(g - m)        v <- b2 v + (1 - b2) g g
 *     x <- x - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps),   b1 = 0.9, b2 = 0.999, eps =
 *                                                                      1e-8
 */

/** What step t = 1, 2, ... has in common for all coordinates. */
typedef struct {
    double rate; /* lr / (1 - b1^t) */
    double root; /* sqrt(1 - b2^t) */
} frgi_gp_adam_step;

static inline frgi_gp_adam_step frgi_gp_adam_at(double rate, int64_t t)
{
    return (frgi_gp_adam_step){.rate = rate / (1 - pow(0.9, (double)t)),
                               .root = sqrt(1 - pow(0.999, (double)t))};
}

/** What is taken from the coordinate whose gradient is g; moments m and v follow. */
static inline double frgi_gp_adam_move(const frgi_gp_adam_step *s, double g, double *m, double *v)
{
    *m += (1 - 0.9) * (g - *m);
    *v = 0.999 * *v + (1 - 0.999) * g * g;
    return s->rate * *m / (sqrt(*v) / s->root + 1e-8);
}

#pragma GCC visibility pop
#endif
