/* gp_room.h - what the files of the room share: the process, its storage, and the states of its matrix.
 *
 *     MATRIX_NONE -> build, jitter, factor -> MATRIX_FACTOR -> inverse -> MATRIX_INVERSE
 *
 * One buffer goes through all three; changing a parameter or the data returns to NONE.  Prediction needs the
 * factor and builds it again where the inverse stands.
 */
#ifndef FRGI_GP_ROOM_H
#define FRGI_GP_ROOM_H

#include "core/core.h"
#include "fourge/gp.h"
#include "gp/gp_kernel.h"
#include "gp/gp_params.h"
#include "gp/gp_spd.h"

#pragma GCC visibility push(hidden)

typedef enum { MATRIX_NONE, MATRIX_FACTOR, MATRIX_INVERSE } frgi_gp_state;
typedef enum { GP_MEAN_ZERO, GP_MEAN_CONST, GP_MEAN_LINEAR, GP_MEAN_PROFILED, GP_MEAN_VALUES } frgi_gp_mean;

struct frg_gp {
    frg_context *ctx;
    frg_gp_opts opts;          /* texts in it point into `texts` */
    frgi_text texts;
    char **column_names;

    ptrdiff_t n, d, q, masked;
    ptrdiff_t capacity;        /* points there is room for (frg_gp_update_append grows it) */
    double *x;                 /* n x d row-major, as given */
    double *y;                 /* n x q column-major */
    double *known_noise;       /* n or NULL */
    int32_t *groups;           /* n or NULL */
    double *given_mean;        /* n or NULL */
    double *centre;            /* d: subtracted from stationary kernels' inputs */

    frgi_gp_kernel *kernel;
    frgi_gp_params params;
    double *theta;             /* params.count current values */
    frgi_gp_mean mean;

    frgi_spd_shape shape;      /* of `matrix` */
    frgi_spd_shape low;        /* f32 twin for mixed */
    frg_gp_storage storage;
    void *matrix;              /* K -> L -> K^-1 */
    void *kept;                /* FULL: h or k */
    void *matrix_low;          /* mixed: f32 inverse */
    void *work;                /* of the dense steps */
    void *points_memory;       /* structure-of-arrays copy of x */
    frgi_gp_points points;
    void *bound_memory;
    frgi_gp_bound *bound;      /* to the current theta; NULL after a change */

    frgi_gp_state state;
    double jitter;             /* sticky within a fit */
    bool sticky;
    double *residual;          /* n x q: r */
    double *alpha;             /* n x q: K^-1 r, valid from MATRIX_FACTOR on */
    double *noise;             /* n: nu */
    double *diagonal;          /* n: of K, to restore after a failed pivot */
    double *profile;           /* profiled mean: H, K^-1 H and the small matrices */
    double quad;               /* sum_c r_c' a_c */
    double logdet;
    frg_gp_value value;        /* of the current theta from MATRIX_FACTOR on */
    frg_gp_trace *trace;       /* of the last fit */
    int64_t n_trace;
};

/** Value at gp->theta: build, jitter policy, factor, alpha.  Leaves MATRIX_FACTOR. */
FRG_MUST_USE frg_status frgi_gp_value(frg_gp *gp);
/** Gradient at gp->theta (MATRIX_FACTOR -> MATRIX_INVERSE); includes the prior.  x, y may be NULL. */
FRG_MUST_USE frg_status frgi_gp_gradient(frg_gp *gp, double *gradient, double *dx, double *dy);
/** Makes sure the factor and alpha of the current theta are there. */
FRG_MUST_USE frg_status frgi_gp_need_factor(frg_gp *gp);
/** Forgets the matrix after theta or the data changed. */
void frgi_gp_forget(frg_gp *gp);
/** Mean function at points x (m x d row-major) under the current parameters, column c of y. */
void frgi_gp_mean_at(const frg_gp *gp, ptrdiff_t m, const double *x, ptrdiff_t c, double *out);

#pragma GCC visibility pop
#endif
