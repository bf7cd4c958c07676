/* fe_steps.h - the contract of the demeaner's solver with what holds its vectors: whole steps on
 * state that nothing else looks into.
 *
 *     rows        the passes over the data      rhs, residual; its run stream is fe_runs.h
 *     reduced     S = D_r' W (I - P_1) D_r      apply, multiply, solve, precondition, and what is
 *                                               asked of vectors of reduced unknowns
 *     recurrence  conjugate gradients           start, step, poll; alpha, beta and the stopping
 *                                               test are in the state, column by column
 *
 * A plan takes its table when it is made (`steps` of fe_rows).  Vectors are n x lanes; they, the
 * work memory and the recurrence's state lie in arenas that `open` has made, and only a step may
 * read or write them: the solver holds their addresses and passes them on.  What a step gives back
 * to the solver (moments, audits, sums of lanes) is the solver's own memory.  Passes, products with
 * S and the recurrence take the lanes of the host's tables, the other steps any number.
 *
 * Every step returns FRG_OK, a failure, or FRG_INTERRUPTED / FRG_TIME_LIMIT; a step that did not
 * end with FRG_OK has left vectors in any state, and the columns that `residual` was to write.
 */
#ifndef FRGI_FE_STEPS_H
#define FRGI_FE_STEPS_H

#include "fe/fe_bordered.h"
#include "fe/fe_schur.h"
#include "sparse/approx_chol.h"
#include "sparse/direct.h"

#pragma GCC visibility push(hidden)

/** The level means of one column over the reduced unknowns. */
typedef struct {
    double mean;     /* the largest |s_l| / N_l */
    int64_t worst;   /* where it is; -1: all are 0 */
    double gradient; /* sum of s_l^2 / N_l */
} fe_reduced_audit;

/** What the solver hears of a recurrence. */
typedef struct {
    int running;  /* columns */
    double worst; /* the largest gradient of a running column over its column's norm */
} fe_cg_summary;

/** The passes over the data. */
typedef struct {
    /** b <- D_r' W (I - P_1) x, and the moments of x; f32: the type of x */
    frg_status (*rhs)(const fe_rows *g, frg_context *ctx, int f32, int lanes, const fe_row_work *w,
                      const fe_block *x, double *b, fe_moments *total);
    /** out <- (I - P_1)(x - D_r a);  s <- D_r' W out;  elim_effect <- the eliminated levels' means
     *  taken out; the audit of the eliminated levels */
    frg_status (*residual)(const fe_rows *g, frg_context *ctx, int f32, int lanes,
                           const fe_row_work *w, const fe_block *x, const fe_block *out,
                           const double *a, double *s, double *elim_effect, fe_elim_audit *total);
} fe_rows_steps;

/** The system of the reduced unknowns, and vectors of them. */
typedef struct {
    /** y <- S p through the rows, or with b through the bordered system; f32: the type of p; low:
     *  in float32, as in frgi_fe_apply */
    frg_status (*apply)(const fe_rows *g, const fe_bordered *b, frg_context *ctx, int f32,
                        int lanes, const fe_row_work *w, bool low, const void *p, double *y);
    /** y <- S p with the assembled S */
    frg_status (*multiply)(const fe_schur *s, frg_context *ctx, int f32, int lanes, const void *p,
                           double *y);
    /** x <- S^+ x with a factor;  z <- M^-1 r with an approximate one */
    frg_status (*solve)(const frgi_direct *d, int lanes, double *x, double *scratch);
    frg_status (*precondition)(const frgi_ac *ac, int lanes, const double *r, double *z,
                               double *scratch);
    /** r <- r - W z (z'r) / (z'W z), W the weights of the levels, for the indicator z of each set;
     *  sum, weight: vectors of work memory */
    frg_status (*project)(const fe_rows *g, int lanes, const int32_t *set, double *r, double *sum,
                          double *weight);
    /** of column k of s */
    frg_status (*audit)(const fe_rows *g, int lanes, const double *s, int k, fe_reduced_audit *out);
    /** to[l] <- |s_l| / N_l of column k of s; `to` is one column */
    frg_status (*means)(const fe_rows *g, int lanes, const double *s, int k, double *to);
    /** to <- random numbers in (-1/2, 1/2); one column */
    frg_status (*draw)(int64_t n, frg_context *ctx, double *to);

    /* ---- vectors, n x lanes ---- */
    /** to <- from, 0 where from is NULL */
    frg_status (*copy)(int64_t n, int lanes, const double *from, double *to);
    /** to += alpha from */
    frg_status (*add)(int64_t n, int lanes, double alpha, const double *from, double *to);
    /** v_k *= factor[k], column by column */
    frg_status (*scale)(int64_t n, int lanes, const double *factor, double *v);
    /** z_l <- d_l s_l */
    frg_status (*times_diagonal)(int64_t n, int lanes, const double *d, const double *s, double *z);
    /** sum[k] <- s_k . z_k */
    frg_status (*dot)(int64_t n, int lanes, const double *s, const double *z, double *sum);
    /** max_abs[k] <- the largest |v| of column k */
    frg_status (*largest)(int64_t n, int lanes, const double *v, double *max_abs);
    /** column k of to += from, which is one column */
    frg_status (*add_column)(int64_t n, int lanes, int k, const double *from, double *to);
    /** to <- column k of from; `to` is the solver's memory */
    frg_status (*get_column)(int64_t n, int lanes, int k, const double *from, double *to);
    /** columns at .. of `to`, which has to_lanes, <- columns first .. of `from`, `count` of them */
    frg_status (*move)(int64_t n, int count, int lanes, int first, const double *from, int to_lanes,
                       int at, double *to);
    /** to_l <- from_level[l] */
    frg_status (*gather)(int64_t n, int lanes, const int32_t *level, const double *from,
                         double *to);
    /** to_level[l] += from_l;  energy[k] <- the sum of b_level[l] from_l */
    frg_status (*scatter)(int64_t n, int lanes, const int32_t *level, const double *from,
                          const double *b, double *to, double *energy);
} fe_system_steps;

/** Conjugate gradients. */
typedef struct {
    /** a = 0, r = b = w->r, p = M^-1 b */
    frg_status (*start)(const fe_cg_call *c, const fe_cg_target *target);
    /** Step number `step`, from 0, of the columns that are not finished. */
    frg_status (*step)(const fe_cg_call *c, int64_t step);
    /** column: what is to be said of the columns at the end; NULL: the recurrence goes on */
    frg_status (*poll)(const fe_cg_call *c, fe_cg_summary *summary, fe_cg_column *column);
} fe_recurrence_steps;

struct fe_row_lsmr_steps;

typedef struct fe_steps {
    /** Memory of the states: the arena has been measured. */
    frg_status (*open)(frgi_arena *a, frg_context *ctx, const char *what);
    void (*close)(frgi_arena *a, frg_context *ctx);
    fe_rows_steps rows;
    fe_system_steps reduced;
    fe_recurrence_steps recurrence;
    const struct fe_row_lsmr_steps *row_lsmr; /* of the row-space path (fe_row_lsmr_plan.h) */
} fe_steps;

frg_status frgi_fe_host_cg_start(const fe_cg_call *c, const fe_cg_target *target);
frg_status frgi_fe_host_cg_step(const fe_cg_call *c, int64_t step);
frg_status frgi_fe_host_cg_poll(const fe_cg_call *c, fe_cg_summary *summary, fe_cg_column *column);
/** Vectors in memory, steps by the threads and at the CPU level of the context. */
extern const fe_steps frgi_fe_host_steps;

#pragma GCC visibility pop
#endif
