/* lsmr.h - LSMR for K columns in a block, step by step, under frg_lsmr_* and row-space demeaning.
 *
 *     frgi_lsmr s = {.m = m, .n = n, .k = k};
 *     frgi_lsmr_layout(&arena, &s);            twice: to measure and to carve
 *     frgi_lsmr_start(&s, ctx, &op, &rule, b, columns);
 *     while (!frgi_lsmr_done(&s) && status == FRG_OK)
 *         status = frgi_lsmr_step(&s);         or the heartbeat's FRG_INTERRUPTED, FRG_TIME_LIMIT
 *     frgi_lsmr_finish(&s, x);
 *
 * A run allocates nothing.  A column's bits depend neither on its neighbours nor on k nor on the
 * number of threads, provided that the operator's callbacks have the same property. */
#ifndef FRGI_LSMR_H
#define FRGI_LSMR_H

#include "core/core.h"
#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

enum { FRGI_LSMR_MAX_BLOCK = 32 };

/** Vectors are row-major, k wide: element (i, c) at [i * k + c].  1 <= k <= 32, any k of it may
 *  come: finished columns are taken out of the block. */
typedef struct {
    /** y <- A x, x is n x k, y is m x k */
    void (*times)(const void *data, int64_t k, const double *x, double *y);
    /** x <- A' y */
    void (*transposed)(const void *data, int64_t k, const double *y, double *x);
    const void *data;
    /** v <- P^-1 p, n x k both, P symmetric positive (semi)definite and the same map in every call;
     *  NULL: none.  With it the recurrence is modified LSMR (lsmr.c), and damp must be 0. */
    void (*precond)(const void *data, int64_t k, const double *p, double *v);
    const void *precond_data;
} frgi_lsmr_operator;

typedef struct {
    double atol, btol;
    double cond_limit; /* 0: off */
    double damp;
    int64_t max_iter;
    const char *solver, *phase; /* of the progress reports; NULL: "lsmr", "" */
} frgi_lsmr_rule;

/** The two rotations of a step, in the notation of lsmr.c. */
typedef struct {
    double ab, zb, z; /* alpha bar, zeta bar, zeta */
    double rho, rb;   /* diagonals of R and of R bar */
    double cb, sb;    /* the last rotation bar */
} frgi_lsmr_rotations;

/** The recurrence of ||r||, with the marks of the paper. */
typedef struct {
    double bdd, bd; /* beta with two dots, with one */
    double rd;      /* rho dot */
    double tt, th;  /* tau tilde, theta tilde */
    double dd;      /* sum of the squares of beta check */
} frgi_lsmr_residual;

/** Norms and extreme singular values as the steps so far show them. */
typedef struct {
    double b, r, ar, x;  /* ||b||, ||r||, ||A'r||, ||x|| */
    double a, square;    /* ||B||_F and its square, with the last alpha */
    double mx, mn, cond; /* largest and smallest diagonal of R bar; condition */
    double smallest;     /* singular value of A (of A P^-1/2), from above */
} frgi_lsmr_norms;

/** One column of the block. */
typedef struct {
    double be, al; /* norms that normalised u and v */
    frgi_lsmr_rotations rot;
    frgi_lsmr_residual res;
    frgi_lsmr_norms norm;
    int64_t k;    /* iterations */
    int exponent; /* b was multiplied by 2^-exponent */
    int column;   /* of the caller's block */
    int stop;     /* frg_lsmr_stop */
} frgi_lsmr_scalars;

/** The coefficients of a step's update:  hb <- h - .hb hb,  x <- x + .x hb,  h <- v - .h h. */
typedef struct {
    double hb, x, h;
} frgi_lsmr_coefficients;

/** The scalars of a column whose vectors another machine holds: at the start with u = b / be and
 *  v = A'u / al; */
frgi_lsmr_scalars frgi_lsmr_begin(double be, double al);
/** steps 2 to 6 of the recurrence, with q->be and q->al those of the new u and v, except the norm
 *  of x; */
frgi_lsmr_coefficients frgi_lsmr_advance(frgi_lsmr_scalars *q, double damp);
/** and whether the column stops, once q->norm.x is that of the step. */
frg_lsmr_stop frgi_lsmr_why_stop(const frgi_lsmr_scalars *q, const frgi_lsmr_rule *rule);

typedef struct frgi_lsmr_ops frgi_lsmr_ops;

typedef struct {
    int64_t m, n;
    int64_t k; /* columns of the block, 1 .. 32 */

    /* from here on set by frgi_lsmr_start and the steps */
    int64_t active; /* columns that still run */
    int64_t width;  /* lanes of the vectors: stopped columns leave when half of them are idle */
    frg_context *ctx;
    const frgi_lsmr_ops *ops;
    frgi_lsmr_operator op;
    frgi_lsmr_rule rule;
    frg_lsmr_column *columns;
    double *u, *t;              /* m x width: u and A v */
    double *v, *p, *h, *hb, *x; /* n x width; p is A' u */
    double *answer;             /* n x k, columns that have stopped */
    double *partial;            /* sums of the dot products, chunk by chunk */
    double *pattern;            /* coefficients, repeated for the kernels */
    frgi_lsmr_scalars lane[FRGI_LSMR_MAX_BLOCK];
    frgi_lsmr_scalars ended[FRGI_LSMR_MAX_BLOCK]; /* by column: as they were when it stopped */
} frgi_lsmr;

/** Takes the vectors from the arena: (2 m + 6 n) k doubles and little more. */
void frgi_lsmr_layout(frgi_arena *a, frgi_lsmr *s);
/** Begins on b (m x k, only read).  columns: k reports, filled as columns stop. */
void frgi_lsmr_start(frgi_lsmr *s, frg_context *ctx, const frgi_lsmr_operator *op,
                     const frgi_lsmr_rule *rule, const double *b, frg_lsmr_column *columns);
/** One iteration of every column that runs; a no-op when all have stopped.  Calls the heartbeat. */
FRG_MUST_USE frg_status frgi_lsmr_step(frgi_lsmr *s);
static inline int frgi_lsmr_done(const frgi_lsmr *s)
{
    return s->active == 0;
}
/** Copies the answer (n x k); columns still running give their current iterate. */
void frgi_lsmr_finish(const frgi_lsmr *s, double *x);
/** Recomputes the residuals of the answer and turns a success that they contradict into
 *  FRG_LSMR_REFUSED in the columns' reports.  For runs without preconditioner, after
 *  frgi_lsmr_finish; ends the run's vectors. */
void frgi_lsmr_audit(frgi_lsmr *s, const double *b, const double *x);

/** frg_lsmr_solve as a part of another run, whose time limit goes on. */
FRG_MUST_USE frg_status frgi_lsmr_solve(frg_context *ctx, const frg_operator *op,
                                        const frg_csr *csr, frg_array b, const frg_array *weights,
                                        frg_array x, const frg_lsmr_opts *o,
                                        frg_lsmr_column columns[], frg_info *info);

#pragma GCC visibility pop
#endif
