/* fe_cg.h - preconditioned conjugate gradients on the Schur complement S, for a block of columns.
 *
 *     S a = b,   b in the range of S,   preconditioner M^-1: Jacobi (1 / diag) or a callback
 *
 * Columns run side by side and are independent: a column that has stopped is frozen (its step is
 * 0).  Its recurrence residual r divided by the level weights is the level mean of the demeaned
 * column, so the recurrence stops on what the audit will measure.
 */
#ifndef FRGI_FE_CG_H
#define FRGI_FE_CG_H

#include "core/core.h"
#include "fe/fe_rows.h"

#pragma GCC visibility push(hidden)

/** y <- A p for n x lanes vectors; p has the type of the search direction */
typedef frg_status (*fe_product)(const void *data, int lanes, const void *p, double *y);

typedef struct {
    int64_t n;
    const struct fe_steps *steps;
    fe_product times;
    fe_product times_low; /* the same in float32 (low precision); NULL: there is none */
    const void *data;
    const double *inverse_diag; /* n: Jacobi; used where precondition is NULL */
    fe_product precondition;    /* z <- M^-1 r */
    const void *precondition_data;
    const double *level_inverse; /* n: 1 / N_l, for the stopping test */
} fe_system;

/** When a column's residual is small enough, in the units of the column. */
typedef struct {
    double total_weight; /* sum of the weights */
    double within;       /* sum of squares that the remaining energy is taken from */
    double noise;        /* what is left of it below this is rounding */
    double total;        /* sum of squares about the mean */
    double tol;
    double floor;           /* level means below it are rounding */
    double lambda;          /* smallest Ritz value that the column has seen; NaN: none */
    int lane;               /* the column's place in the block that it came with */
    int64_t most;           /* steps that the column may make */
    int64_t forecast_limit; /* the column stops where more steps are forecast; 0: never */
    bool forecast;          /* the column stops where its steps left are far fewer than forecast */
} fe_cg_target;

typedef struct {
    int64_t steps;
    int done;              /* reached the target, or is taken there by a step of known length */
    int unseen;            /* of the steps, those without a product: 0 or 1, the last */
    int given_up;          /* too many steps forecast, or its own are used up */
    double steps_forecast; /* steps beyond those made, where the forecast has given it up; else 0 */
    int escalated;         /* set by the cascade: a solver beyond the rows was used */
    double energy;         /* b'a so far: what the iterate has taken from `within` */
    double rate;           /* mean contraction of the residual a step */
    double lambda;         /* smallest Ritz value of M^-1 S; NaN before the first step */
} fe_cg_column;

/** The passes over the reduced unknowns of one CPU level, width and type of the search direction p,
 *  over reduced unknowns begin .. end-1 (apply: over one chunk of the rows). */
typedef struct {
    /** pairs <- p and D_r' W (I - P_1) D_r p over the chunk */
    void (*apply)(const fe_rows *g, int chunk, const void *p, double *pairs);
    fe_add_pairs *add_pairs;
    /** The same in float32, for one remaining factor without weights: pairs <- p and -D_r' P_1 D_r
     *  p; y <- N p and the sums in the pairs of all chunks. */
    void (*apply_low)(const fe_rows *g, int chunk, const void *p, float *pairs);
    void (*add_low)(const fe_rows *g, int64_t begin, int64_t end, const void *p, const float *pairs,
                    double *y);
    /** Levels begin .. end-1 of the large factor of fe_bordered.h, p_large and y_large their
     *  reduced unknowns: y_large += B_12 p_T,  sum (T x lanes) <- B_12' p_large, B_12 the coupling
     *  block */
    void (*apply_coupling)(int64_t begin, int64_t end, int64_t t, const double *b12,
                           const int32_t *level, const void *p, const void *p_large,
                           double *y_large, double *sum);
    /** y_T <- sum + B_22 p_T */
    void (*apply_block22)(int64_t t, const double *b22, const int32_t *level, const void *p,
                          const double *sum, double *y);
    /** y <- A p over rows begin .. end-1 of a CSR matrix */
    void (*spmv)(int64_t begin, int64_t end, const int64_t *starts, const int32_t *columns,
                 const double *values, const void *p, double *y);
    /** x += alpha p */
    void (*advance)(int64_t begin, int64_t end, const double *alpha, const void *p, double *x);
    /** sum <- p . q */
    void (*dot)(int64_t begin, int64_t end, const void *p, const double *q, double *sum);
    /** x += alpha p, r -= alpha q;  rho <- r . d r,  gradient <- r . r / N,  max_mean <- max |r| /
     *  N */
    void (*update)(int64_t begin, int64_t end, const double *alpha, const void *p, const double *q,
                   const double *d, const double *level_inverse, double *x, double *r,
                   double *sums);
    /** p <- d r + beta p  (d NULL: p <- z + beta p, with z in place of r) */
    void (*direction)(int64_t begin, int64_t end, const double *beta, const double *d,
                      const double *r, void *p);
} fe_reduced_ops;

/** The table for a type of the search direction (0: f64, 1: f32) and 1, 2, 4 or 8 lanes. */
const fe_reduced_ops *frgi_fe_reduced_ops(frgi_isa isa, int f32, int lanes);
/** y <- S p through the rows, over all chunks; low: by apply_low. */
void frgi_fe_apply(const fe_rows *g, const fe_reduced_ops *ops, const fe_row_work *w, int threads,
                   int lanes, bool low, const void *p, double *y);
/** The same window by window (fe_runs.h), then the sums. */
void frgi_fe_apply_window(const fe_rows *window, const fe_reduced_ops *ops, const fe_row_work *w,
                          int threads, int lanes, bool low, const void *p);
void frgi_fe_apply_total(const fe_rows *g, const fe_reduced_ops *ops, const fe_row_work *w,
                         int threads, bool low, const void *p, double *y);
/** *has: is a product in float32 faster and exact enough?  Its sums have few terms, and its pairs
 *  outgrow the caches. */
FRG_MUST_USE frg_status frgi_fe_has_low(const fe_rows *g, frg_context *ctx, bool *has);

/** Sums of one piece as `update` leaves them. */
enum { FE_SUM_RHO, FE_SUM_GRADIENT, FE_SUM_MAX, FE_SUMS };

typedef struct {
    double *x, *r, *q;         /* n x lanes */
    void *p;                   /* n x lanes of the direction's type; large enough for doubles */
    double *z;                 /* n x lanes, where there is a preconditioner callback */
    double *sums;              /* pieces x FE_SUMS x lanes */
    double *diagonal, *below2; /* FE_HISTORY x lanes: the Lanczos matrix, for the Ritz values */
    struct fe_recurrence *state;
} fe_cg_work;
enum { FE_HISTORY = 1024 };

/** One run on a system. */
typedef struct {
    frg_context *ctx;
    const fe_system *s;
    const fe_cg_work *w;
    int lanes, f32; /* f32: is the direction float32? */
} fe_cg_call;

void frgi_fe_cg_layout(frgi_arena *a, int64_t n, int lanes, fe_cg_work *w);
/** Runs on w->r = b, w->x = 0 until every column is done, has given up or has made max_steps steps
 *  or its own most. phase names the operator in the progress reports.  Returns FRG_OK, or the
 *  heartbeat's status. */
FRG_MUST_USE frg_status frgi_fe_cg_run(const fe_cg_call *c, int64_t max_steps, const char *phase,
                                       const fe_cg_target *target, fe_cg_column *column);

enum { FE_PROBE_STEPS = 12 }; /* of a probe, as a rule */
/** Steps that a right-hand side in the range of S will need, from `length` steps on b = S z with z
 *  random; depends on the graph and the seed alone.  w is laid out for one column. */
FRG_MUST_USE frg_status frgi_fe_cg_predict(frg_context *ctx, const fe_system *s,
                                           const fe_cg_work *w, int64_t length, double *steps);

/** Pieces of the reduced unknowns: a function of n alone, so that sums have one order. */
enum { FE_PIECE = 4096 };
static inline int64_t fe_pieces(int64_t n)
{
    return (n + FE_PIECE - 1) / FE_PIECE;
}

#pragma GCC visibility pop
#endif
