/* fe_row_lsmr_plan.h - the inside of the row-space path, shared by its run and its rank. */
#ifndef FRGI_FE_ROW_LSMR_PLAN_H
#define FRGI_FE_ROW_LSMR_PLAN_H

#include "fe/fe_basis.h"
#include "fe/fe_map.h"
#include "fe/fe_row_lsmr.h"
#include "fe/fe_slopes.h"
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

struct fe_row_lsmr {
    fe_basis basis;
    frg_demean_opts opts;
    fe_row_lsmr_precond *precond; /* NULL: none */
    const void *precond_data;
    fe_slopes *factor; /* the preconditioner, where it is this; or NULL */
    bool may_drop;     /* columns that do not converge with the preconditioner go on without it */
    bool dropped;      /* a column of the last run did so */
    fe_device *device; /* where LSMR runs; NULL: the host */
    /* memory of the run */
    int64_t columns; /* it was laid out for */
    frgi_arena arena;
    double *z;       /* n x lanes: rows of the block */
    double *c, *s;   /* R x lanes: coefficients, sums of the audit */
    double *elim;    /* coefficients of the eliminated levels x lanes */
    double *effects; /* (R + coefficients of the eliminated levels) x columns, column by column */
    double *diagonal, *below2; /* HISTORY x lanes: the tridiagonal matrix of the last steps */
    fe_row_column *state;
    fe_basis_work work;
    frgi_lsmr lsmr;
    fe_map map; /* in place of lsmr by method map */
};

/** The rank of D over the rationals, counted in a prime field by at most work_most multiply-adds
 *  and byte_cap bytes (fe_slope_rank.c); -1 where that does not do or the slopes' values were not
 *  kept. */
FRG_MUST_USE frg_status frgi_fe_slope_rank(const fe_basis *b, frg_context *ctx, double work_most,
                                           size_t byte_cap, int64_t *rank);

#pragma GCC visibility pop
#endif
