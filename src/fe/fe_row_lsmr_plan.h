/* fe_row_lsmr_plan.h - the inside of the row-space path, shared by its run, its steps and its
 * rank. */
#ifndef FRGI_FE_ROW_LSMR_PLAN_H
#define FRGI_FE_ROW_LSMR_PLAN_H

#include "fe/fe_basis.h"
#include "fe/fe_map.h"
#include "fe/fe_row_lsmr.h"
#include "fe/fe_slopes.h"
#include "fe/fe_steps.h"
#include "sparse/lsmr.h"

#pragma GCC visibility push(hidden)

/** What is known of one column in the course of its run; sizes are of the scaled column. */
typedef struct {
    double scale, unscale; /* powers of two: max_abs is near 1 */
    double max_abs;        /* largest |x| */
    double total;          /* sum of w (x - mean)^2 */
    double effect;         /* largest |effect of one factor in one row| */
    double epsilon;        /* of the caller's type */
    double lambda;         /* smallest Ritz value of A'A seen; NaN: none */
    double reduced, size;  /* ||g|| over the reduced unknowns and ||W^(1/2) r|| at the last audit */
    double norm_a;         /* LSMR's estimate of ||A||_F in the last round */
    frg_lsmr_stop stop;    /* of the last round */
    bool plain;            /* without the preconditioner, which did not converge */
} fe_row_column;

/** The audit of one column. */
typedef struct {
    double square;                 /* sum of w r^2 */
    double eliminated, reduced;    /* sums of g^2 */
    double mean;                   /* largest level mean, */
    const fe_basis_factor *factor; /* and where it is */
    int64_t level;
} fe_row_audit;

/** What take_out makes of z. */
typedef enum {
    FE_PROJECTED,  /* (I - P_1) z */
    FE_SUBTRACTED, /* (I - P_1)(z - phi_r c) */
    FE_TRIED       /* the same; a device has it in z from `store` on */
} fe_taken_out;

/** Steps on k columns side by side; they alone touch the vectors of a run, but for what brings
 *  these to a device and back.  As those of fe_steps.h they return FRG_OK, a failure or why the
 *  context was stopped. */
struct fe_row_lsmr_steps {
    /** z <- the columns first .. of `a` times their scales: of a block that begins, or again, where
     *  a device has kept what is left of them */
    frg_status (*load)(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k);
    frg_status (*again)(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k);
    /** the columns <- z over their scales, which a device does where the block ends */
    frg_status (*store)(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k);
    frg_status (*end)(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k);
    /** the moments of z, as frgi_basis_moments */
    frg_status (*moments)(fe_row_lsmr *f, int64_t k, double *norm2, double *square);
    /** what `how` says, P_1 taken out twice by the host, because the mean of a column may be many
     *  times what is left of it.  The eliminated levels' coefficients into elim; effect, where not
     *  NULL: as of frgi_basis_residual */
    frg_status (*take_out)(fe_row_lsmr *f, int64_t k, fe_taken_out how, double *effect);
    /** s <- sum w phi z of the remaining factors, and the audit of each column */
    frg_status (*audit)(fe_row_lsmr *f, int64_t k, fe_row_audit out[]);
    /** *out <- s'P^-1 s of column c of k; spoils c */
    frg_status (*energy)(fe_row_lsmr *f, int64_t k, int64_t c, double *out);
    /** z <- 0 in these columns */
    frg_status (*zero)(fe_row_lsmr *f, int64_t k, const bool columns[]);
    /** c <- 0;  effects of the columns first .. <- 0, += those of c and elim */
    frg_status (*no_answer)(fe_row_lsmr *f, int64_t k);
    frg_status (*no_effects)(fe_row_lsmr *f, int64_t first, int64_t k);
    frg_status (*add_effects)(fe_row_lsmr *f, int64_t first, int64_t k);
    /** LSMR for the right-hand side W^(1/2) z, which z becomes: its start, one step, c <- its
     *  answer */
    frg_status (*start)(fe_row_lsmr *f, frg_context *ctx, int64_t k, bool preconditioned,
                        const frgi_lsmr_rule *rule, frg_lsmr_column reports[]);
    frg_status (*step)(fe_row_lsmr *f);
    frg_status (*finish)(fe_row_lsmr *f);
    /** c <- the answer of alternating projections; z is spoilt */
    frg_status (*project)(fe_row_lsmr *f, frg_context *ctx, int64_t k, const fe_map_rule *rule);
    /** alpha <- the effects of a column, as frgi_fe_row_lsmr_effects */
    frg_status (*effects)(const fe_row_lsmr *f, int64_t column, double *alpha);
};
extern const struct fe_row_lsmr_steps frgi_fe_row_lsmr_host_steps;
/** z lies on a device, whose passes make it (fe_row_lsmr_device.c). */
extern const struct fe_row_lsmr_steps frgi_fe_row_lsmr_device_steps;
/** most[c] <- the largest |value| of columns first .. of `a`, NaN where one is no number; by the
 *  device. */
FRG_MUST_USE frg_status frgi_fe_row_lsmr_largest(fe_row_lsmr *f, const frg_array *a, int64_t first,
                                                 int64_t k, double *most);
/** Steps of both, on numbers that lie on this machine also where z does not. */
FRG_MUST_USE frg_status frgi_fe_row_lsmr_no_answer(fe_row_lsmr *f, int64_t k);
FRG_MUST_USE frg_status frgi_fe_row_lsmr_no_effects(fe_row_lsmr *f, int64_t first, int64_t k);
FRG_MUST_USE frg_status frgi_fe_row_lsmr_add_effects(fe_row_lsmr *f, int64_t first, int64_t k);
/** Effects of a column that lie here: all, or without the eliminated levels', which the passes of a
 *  device keep there. */
int64_t frgi_fe_row_lsmr_kept(const fe_row_lsmr *f);
/** The audit of column k of `lanes` from the eliminated levels' and the other factors' sums s. */
fe_row_audit frgi_fe_row_lsmr_audit(const fe_basis *b, const fe_basis_audit *u, const double *s,
                                    int64_t lanes, int64_t k);

/** Columns whose z lies on a device. */
typedef struct {
    bool passes;   /* they do */
    int64_t width; /* columns of a block, but for the last */
    fe_device_block block;
    int k;             /* the column of the block that is worked on; -1: all of it */
    bool first, tried; /* nothing was taken out of the block yet; what was, is not in z yet */
    double *a;         /* R x lanes: effects, c with the scale of the dummies */
    fe_basis_audit audit;
    double norm2[FE_MAX_LANES], square[FE_MAX_LANES];
} fe_row_lsmr_there;

struct fe_row_lsmr {
    fe_basis basis;
    frg_demean_opts opts;
    fe_row_lsmr_precond *precond; /* NULL: none */
    const void *precond_data;
    fe_slopes *factor; /* the preconditioner, where it is this; or NULL */
    bool may_drop;     /* columns that do not converge with the preconditioner go on without it */
    bool dropped;      /* a column of the last run did so */
    fe_device *device; /* where LSMR runs; NULL: the host */
    fe_row_lsmr_there there;
    /* memory of the run */
    int64_t columns; /* it was laid out for */
    frgi_arena arena;
    double *diagonal, *below2; /* HISTORY x lanes: the tridiagonal matrix of the last steps */
    fe_row_column *state;
    /* of the steps alone */
    frgi_arena vectors;
    double *z;       /* n x lanes: rows of the block */
    double *c, *s;   /* R x lanes: coefficients, sums of the audit */
    double *elim;    /* coefficients of the eliminated levels x lanes */
    double *effects; /* frgi_fe_row_lsmr_kept x columns, column by column: R, then the coefficients
                        of the eliminated levels */
    fe_basis_work work;
    frgi_lsmr lsmr; /* its scalars are read between steps */
    fe_map map;     /* in place of lsmr by method map; the same */
};

/** The rank of D over the rationals, counted in a prime field by at most work_most multiply-adds
 *  and byte_cap bytes (fe_slope_rank.c); -1 where that does not do or the slopes' values were not
 *  kept. */
FRG_MUST_USE frg_status frgi_fe_slope_rank(const fe_basis *b, frg_context *ctx, double work_most,
                                           size_t byte_cap, int64_t *rank);

#pragma GCC visibility pop
#endif
