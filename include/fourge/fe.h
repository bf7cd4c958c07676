/* fe.h - fixed effects: LSMR, demeaning, and the regressions on top.
 *
 * Problem.  Rows i = 1..n with weights w_i >= 0, factors q = 1..Q with levels f_q(i).  D (n x M)
 * holds the dummies of all factors.  For each column b of [y X]
 *
 *     alpha = argmin || W^(1/2) (b - D alpha) ||,      r = b - D alpha
 *
 * r is unique although alpha is not.  By Frisch, Waugh and Lovell the regression of r_y on r_X has
 * the coefficients of the regression with all dummies.
 */
#ifndef FOURGE_FE_H
#define FOURGE_FE_H

#include "fourge/fourge.h"
#include "fourge/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- LSMR ------------------------------------------------------------------------------------ */

/** An m x n operator by its products; K columns at once, row-major: element (i, c) at [i * K +
 *  c]. */
typedef struct {
    int64_t m, n; /* rows and columns of A */
    /** y <- A x,  x is n x K, y is m x K */
    void (*times)(const void *data, int64_t k, const double *x, double *y);
    /** x <- A' y */
    void (*transposed)(const void *data, int64_t k, const double *y, double *x);
    const void *data; /* the caller's, handed to both */
} frg_operator;

/** Compressed sparse rows: row i holds columns[starts[i] .. starts[i+1]) with `values` (NULL: all
 *  1). */
typedef struct {
    int64_t m, n;           /* rows and columns */
    const int64_t *starts;  /* m + 1, from 0 on, never falling */
    const int32_t *columns; /* starts[m], each 0 .. n-1 */
    const double *values;   /* starts[m], or NULL */
} frg_csr;

/** Preconditioner of frg_lsmr_solve. */
typedef enum {
    FRG_PRECOND_NONE,    /* none */
    FRG_PRECOND_DIAGONAL /* the columns scaled to unit norm, see frg_lsmr_opts.precond */
} frg_lsmr_precond;

/** Options of frg_lsmr_solve. */
typedef struct {
    size_t struct_size; /* set by frg_lsmr_defaults */
    double atol, btol;  /* both 1e-10; see Fong and Saunders (2011), section 5 */
    double cond_limit;  /* 0: off */
    double damp;        /* d >= 0 of min ||W^(1/2) (A x - b)||^2 + d^2 ||x||^2, whatever the
                          preconditioner; 0 */
    int64_t max_iter;   /* 1000 */
    int block;          /* columns carried together, 1 .. 32; 8.  The result does not depend on it,
                          to the bit */
    /** diagonal: solves for z of x = C z, C = diag(1 / sqrt(||W^(1/2) a_j||^2 + d^2)), which gives
     *  the columns of [W^(1/2) A; d I] C unit norm (CSR only).  damp keeps acting on x: the
     *  solution is the one without preconditioner. (Whoever wants to damp z, as LSMR on a matrix
     *  scaled beforehand does, gives A C and damp without preconditioner.) Norms and the condition
     *  number in the columns' reports are those of the scaled system, norm_r is sqrt of the
     *  minimised sum either way. */
    frg_lsmr_precond precond;
} frg_lsmr_opts;

/** Why a column stopped; the codes are SciPy's and Fong and Saunders', 8 and 9 are ours. */
typedef enum {
    FRG_LSMR_RUNNING = 0,           /* it has not stopped: the run was ended before */
    FRG_LSMR_CONSISTENT = 1,        /* ||r|| small: the system has a solution */
    FRG_LSMR_LEAST_SQUARES = 2,     /* ||A'r|| small */
    FRG_LSMR_COND_LIMIT = 3,        /* not a success */
    FRG_LSMR_CONSISTENT_EPS = 4,    /* as 1, at machine precision */
    FRG_LSMR_LEAST_SQUARES_EPS = 5, /* as 2, at machine precision */
    FRG_LSMR_COND_EPS = 6,          /* not a success */
    FRG_LSMR_MAX_ITER = 7,          /* not a success */
    FRG_LSMR_ZERO = 8,              /* b = 0 or A'b = 0: x = 0 is the answer */
    FRG_LSMR_REFUSED = 9            /* the audit contradicts the stop; not a success */
} frg_lsmr_stop;

/** How one column of frg_lsmr_solve ended.  With A and b as W^(1/2) A and W^(1/2) b, and the rows
 *  of the damping among them. */
typedef struct {
    frg_lsmr_stop stop; /* why */
    int64_t iterations; /* steps it took */
    /** The estimates at the stop: ||r||, ||A'r||, ||A|| (Frobenius), the condition number of A,
     *  ||x||; r = b - A x. */
    double norm_r, norm_ar, norm_a, cond_a, norm_x;
} frg_lsmr_column;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_lsmr_defaults(frg_lsmr_opts *o, size_t struct_size);
/** The fields of frg_lsmr_opts (frg_option). */
FRG_API const frg_option *frg_lsmr_options(void);
/** Solves min || W^(1/2) (A x - b) ||^2 + d^2 || x ||^2 for every column of b (m x p, f64,
 *  row-major or column-major) into x (n x p).  weights: m values or NULL.  A column that has
 *  stopped is frozen; its bits do not depend on its neighbours.  Exactly one of op and csr is
 *  given.  columns: p reports or NULL; info may be NULL.  Returns FRG_MAX_ITER if any column
 *  failed, FRG_INTERRUPTED and FRG_TIME_LIMIT where it was stopped.  Errors: E_ARG, E_SHAPE,
 *  E_DTYPE, E_NOT_FINITE and E_WEIGHT with the row, E_UNSUPPORTED for an operator with precond
 *  diagonal, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_lsmr_solve(frg_context *ctx, const frg_operator *op,
                                               const frg_csr *csr, frg_array b,
                                               const frg_array *weights, frg_array x,
                                               const frg_lsmr_opts *o, frg_lsmr_column columns[],
                                               frg_info *info);

/* ---- demeaning ------------------------------------------------------------------------------- */

/** How D alpha is taken out. */
typedef enum {
    FRG_FE_AUTO,   /* the solver that the graph of the levels suggests; the report names it */
    FRG_FE_CG,     /* Jacobi CG on the Schur complement of the largest factor */
    FRG_FE_LSMR,   /* LSMR in row space, on W^(1/2) D with columns made orthonormal level by level:
                      the reference */
    FRG_FE_MLSMR,  /* another name of FRG_FE_LSMR */
    FRG_FE_DIRECT, /* sparse Cholesky of the Schur complement */
    FRG_FE_MAP     /* alternating projections, accelerated, for comparison with programs that use
                      them: as many steps as the graph is slow, and the audit of the others */
} frg_fe_method;

/** Preconditioner of conjugate gradients on the Schur complement. */
typedef enum {
    FRG_FE_PRECOND_AUTO,    /* what the graph of the levels suggests */
    FRG_FE_PRECOND_OFF,     /* none */
    FRG_FE_PRECOND_DIAG,    /* the diagonal of the Schur complement */
    FRG_FE_PRECOND_SCHWARZ, /* approximate Cholesky factors of all pairs of factors, added */
    FRG_FE_PRECOND_AC       /* the same of the pairs with the eliminated factor alone */
} frg_fe_precond;
/** Arithmetic of the demeaning. */
typedef enum {
    FRG_FE_F64,   /* double */
    FRG_FE_MIXED, /* search directions of cg in float, sums and the test in double */
    FRG_FE_F32    /* as mixed where cg runs, to a tolerance that f32 columns can reach */
} frg_fe_dtype;
/** Where the scalars of LSMR's steps are computed while the vectors are on a device. */
typedef enum {
    FRG_FE_FUSED_AUTO, /* on */
    FRG_FE_FUSED_ON,   /* there: many steps are submitted at once, and nothing waits for one */
    FRG_FE_FUSED_OFF   /* on the host, in double: a wait and a few numbers a step */
} frg_fe_fused;
/** How the rank of D is counted: the levels of all factors less the redundant ones of each factor
 *  but the first. */
typedef enum {
    FRG_DOF_AUTO,      /* exact where that is cheap, else pairwise */
    FRG_DOF_NAIVE,     /* one redundant level a factor */
    FRG_DOF_FIRSTPAIR, /* of the second factor one for each connected component of the graph of the
                          first two, of the others one */
    FRG_DOF_PAIRWISE,  /* of each factor the largest number of components that its graph with one of
                          the factors before it has */
    FRG_DOF_EXACT      /* the rank itself */
} frg_fe_dof;

/** Options of frg_demean_create, and of the demeaning within frg_fe_fit. */
typedef struct {
    size_t struct_size;     /* set by frg_demean_defaults */
    frg_fe_method method;   /* auto */
    frg_fe_precond precond; /* auto; of methods auto and cg alone */
    frg_fe_dtype dtype;     /* f64; mixed: search directions of cg in f32, sums and the test in f64
                               (methods auto and cg, no slopes); f32: as mixed where cg runs, and
                               tol >= 3.6e-7, what f32 columns can reach */
    double tol;             /* 1e-10: the test of frg_demean_column.converged */
    int64_t max_iter;       /* 1000 Krylov steps a column, all solvers and rounds together.  Where
                               method or precond bind the run to cg, on large data, a column ends
                               sooner, not converged and with the warning FRG-FE-109, once its
                               contraction and its Ritz values both forecast four times the steps it
                               has left, or more */
    double cond_limit;      /* 0: off; refused where LSMR does not run: methods auto, cg and direct
                               without slopes */
    int block;              /* columns carried together at most, 1 .. 32 (8 on the host and 16 on a
                               device are the most); 0: 8, on a device 4, 8 or 16 by size */
    size_t fill_cap;        /* bytes a factor may take; 0: a quarter of the memory limit or of the
                               machine's; a method direct or precond ac that needs more is
                               E_TOO_BIG */
    frg_fe_dof dof;         /* how the rank of D is counted; auto: exact if cheap, else pairwise.
                               With slopes the rank is counted whatever the rule */
    frg_fe_fused fused;     /* of LSMR on a device; on the cpu refused but for auto */
    int64_t max_sweeps;     /* 10000 sweeps of method map a column, all rounds together; refused
                               beside another method, as another max_iter than 1000 is beside it */
} frg_demean_opts;

/** One varying slope: the columns z_i D_i for a factor.  A factor without an intercept has slopes
 *  alone. */
typedef struct {
    int factor;      /* 0 .. Q-1 */
    const double *z; /* n */
} frg_slope;

/** What happened to one column, with the certificate. */
typedef struct {
    frg_status status;    /* FRG_OK: converged is true; else it is false */
    int64_t iterations;   /* Krylov steps, all solvers and rounds, at most max_iter; of several
                             parts the one that takes most; sweeps of method map */
    double audit;         /* max |weighted level mean of r| / sd(r); over sd(b) where absorbed.  Of
                             r as it is returned by lsmr, mlsmr, map and with slopes; else of the
                             double precision r that an f32 column is rounded from */
    double gradient;      /* eta = ||g||_2 / (sqrt(Q) ||W^(1/2)(b - mean)||), g_l = sum_i w_i r_i /
                             sqrt(N_l) */
    double error_bound;   /* of ||W^(1/2)(r - r*)|| / ||W^(1/2)(b - mean)||, r* the exact residual:
                             ||g|| / sqrt(lambda) for the first norm, lambda the smallest Ritz
                             value, NaN where no step gave one; by a factor of the reduced system S
                             sqrt(s' S^+ s), s = D_r' W r */
    int absorbed;         /* ||r|| <= 1e-9 of the centred input */
    int converged;        /* eta <= tol, or what the column's type can reach (4 epsilon), and the
                             audit <= tol or the level means at the rounding floor; the effects
                             taken out are not so large (1e8 sd(b)) that their rounding hides the
                             column; and error_bound, where it is known and no factor solved the
                             column, is <= 1e3 tol */
    int64_t worst_factor; /* where the largest level mean sits, 0 .. Q-1 */
    int64_t worst_level;  /* its code */
} frg_demean_column;

/** What the plan knows. */
typedef struct {
    int64_t n, n_factors;  /* rows, factors */
    int64_t levels;        /* sum of the levels of all factors, empty ones left out */
    const char *method;    /* the last solver used: "closed form", "cg rows", "cg explicit", "cg
                            approximate cholesky", "cg schwarz", "direct", "direct and cg by
                            components", "lsmr", "lsmr, direct factor", "map", ... */
    size_t plan_bytes;     /* held by the plan */
    size_t factor_bytes;   /* of these, a built factor's */
    int64_t n_parts;       /* that components of the graph were taken apart into
                            (frg_demean_get_part); 0: none */
    double tol;            /* that columns were judged by: opts.tol, or 3.6e-7 of dtype f32, or,
                             where a column converged by that alone, what its type can reach (4.8e-7
                             of f32); the warning FRG-FE-105 says so */
    const char *passes_on; /* who computes right-hand sides, residuals and their audit: a device, by
                               its name, or "cpu" */
    /** On a device, while the plan was made, by all of its runs, and by other weights: kernels
     *  launched, waits of the host for them, bytes copied there and from there.  0 on the cpu. */
    int64_t device_launches, device_waits, device_bytes_in, device_bytes_out;
    frg_host_steps host_steps; /* on a device, of the plan and all runs so far, left to the host;
                                  none on the cpu */
} frg_demean_report;

/** A component of the graph, or several, that was solved apart from the others, by the solver that
 *  suits it. */
typedef struct {
    int64_t n;          /* rows */
    int64_t levels;     /* of all factors */
    int64_t components; /* connected, with more than one level beside the largest factor's */
    int64_t iterations; /* the most Krylov steps that one solve of it has taken */
    double audit;       /* of its levels: the largest of all columns demeaned so far, each over its
                           own sd, as frg_demean_column.audit is */
    const char *method; /* as in frg_demean_report */
} frg_demean_part;

/** A plan for taking D alpha out of columns: the levels and weights in compact form, the graph, a
 *  factor where one is built.  Made by frg_demean_create, freed by frg_demean_destroy. */
typedef struct frg_demean frg_demean;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_demean_defaults(frg_demean_opts *o, size_t struct_size);
/** The fields of frg_demean_opts (frg_option). */
FRG_API const frg_option *frg_demean_options(void);
/** Files that keep what a run beyond memory makes of its rows before the first step, for a later
 *  process that goes on with the same data and options.  A file that is there is read, and
 *  nothing is numbered or sorted then; one that is not is written, whole or not at all, once its
 *  size was held against the room in its folder (E_ROOM).  A damaged file, and one of other
 *  options, is of no use (W_KEPT says so) and is replaced; E_CHANGED of another source.  The
 *  caller removes them. */
typedef struct {
    const char
        *codes; /* levels of the effects of a regression, of the keys of its covariances and of
                          what its formula takes by levels, and which rows it uses (4 bytes a row
                          and key, 8 a row where some are left out); NULL: not kept */
    const char *order; /* the rows by the levels of the largest factor (4 bytes a row and further
                          factor, 5 a row that was moved); NULL: not kept */
    uint64_t options;  /* hash (frg_hash) of what decides them: columns, formula, version */
    uint64_t source; /* hash of what tells the data from others, such as a file's length and time */
} frg_layout_files;
/** codes: n x Q int32, any strides, >= 0, gaps allowed.  weights: n f64 >= 0 or NULL.  slopes:
 *  varying slopes, NULL for none; `no_intercept` has bit q set for a factor with slopes alone.
 *  codes and weights are copied in the compact form the plan needs; the caller's arrays are not
 *  touched later.  A common factor of the weights does not matter; E_WEIGHT names a positive one
 *  that is less than 2^-500 of the largest.  Fewer than 2^32 - 1 rows, 1 .. 64 factors. Errors:
 *  E_SHAPE, E_DTYPE, E_CODES with row and factor, E_WEIGHT, E_MEMORY, E_TOO_BIG.
 *
 *  On a device (frg_context_opts.device) the steps of methods cg and lsmr run there, in double, or
 *  in float with dtype mixed and f32 and where the device has no double; right-hand sides and
 *  audited residuals are the device's where it has double, else the host's
 *  (frg_demean_report.passes_on), in double, so that tol means the same.  Columns lie side by side
 *  there, as many as opts.block says: the bits of one depend on their number, not on what is in
 *  them.  Method auto
 *  chooses as on the host, by the same thresholds of the graph, between conjugate gradients there
 *  and a factor of the host's (frg_demean_report.method says which, "direct, on the host"); it
 *  solves no components apart there.  Fewer than 2^31 rows times factors but one.  E_DEVICE_STEP
 *  for methods mlsmr, direct and map, preconds ac and schwarz, and, beside another method than
 *  lsmr, for slopes and fused on or off.  One factor is a closed form, by the same passes.
 *  frg_info.device_name is the device where it has solved anything, else "cpu". */
FRG_API FRG_MUST_USE frg_status frg_demean_create(frg_demean **out, frg_context *ctx,
                                                  frg_array codes, const frg_array *weights,
                                                  const frg_slope *slopes, int n_slopes,
                                                  uint64_t no_intercept, const frg_demean_opts *o);
/** The same, with the order of the rows from files->order where it is there, else kept there.
 *  files may be NULL.  Beside the errors above E_ROOM, E_CHANGED, E_CREATE, E_WRITE, E_READ. */
FRG_API FRG_MUST_USE frg_status frg_demean_create_kept(frg_demean **out, frg_context *ctx,
                                                       frg_array codes, const frg_array *weights,
                                                       const frg_slope *slopes, int n_slopes,
                                                       uint64_t no_intercept,
                                                       const frg_demean_opts *o,
                                                       const frg_layout_files *files);
/** x, out: n x p, f64 or f32, any strides, out may be x; in host memory, or, where passes_on of the
 *  plan is its device and there is no spool, on that device, which works on them in place and
 *  copies no column; out is written when the call returns.  E_DEVICE_HANDLE for an array of another
 *  device, and for one where the passes are the host's.  columns: p reports or NULL.  Values may be
 *  as large as 1e150, and the largest of a column must be 0 or at least 1e-150 (over the root of
 *  the least weight beside the largest): E_NOT_FINITE names what is beyond.  Returns the worst
 *  column's status.  Outputs are untouched when the status is negative.  With a spool
 *  (frg_context_opts.spool) rows whose levels are scattered are brought together by level, a block
 *  of columns at a time, and back; of a run that is stopped meanwhile the columns that it had not
 *  done are as they came, with audits that are NaN. */
FRG_API FRG_MUST_USE frg_status frg_demean_run(frg_demean *d, frg_array x, frg_array out,
                                               frg_demean_column columns[], frg_info *info);
/** The effects of the last run: alpha for column c as `levels` values, factor after factor in order
 *  of code (empty codes left out); slopes follow their factor's intercepts.  Not unique; see
 *  frg_fe_effects.  Errors: E_ARG for a column that the last run did not have. */
FRG_API FRG_MUST_USE frg_status frg_demean_effects(const frg_demean *d, int64_t column,
                                                   double *alpha);
/** Writes what the plan has found out and built (the choice of its solver, the assembled system,
 *  its order and factor) to PATH, whole or not at all; the PATH that was there becomes PATH~.  To
 *  be called after a run: before it there is nothing to be written.  The file holds no rows, and
 *  hashes of codes, weights and options.  Errors: E_UNSUPPORTED for plans of lsmr, mlsmr and map,
 *  with slopes, on a device, and of a graph whose components are solved apart; E_CREATE, E_WRITE,
 *  E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_demean_save(const frg_demean *d, const char *path);
/** The solver in PATH becomes that of a plan, made by frg_demean_create from the same codes,
 *  weights, options and seed: its runs give the bits of the plan that was saved, and assemble,
 *  order and factor nothing.  A damaged file gives PATH~ with a warning, where that is there.
 *  Errors, which leave the plan as it was: E_MISMATCH, which says whether codes, weights or
 *  options are others; E_NO_INPUT, E_CHECKPOINT, E_MEMORY; E_UNSUPPORTED as frg_demean_save. */
FRG_API FRG_MUST_USE frg_status frg_demean_load(frg_demean *d, const char *path);
/** What the plan knows now; its texts are constants of the library, or the context's.  All zeros
 *  for NULL. */
FRG_API frg_demean_report frg_demean_get(const frg_demean *d);
/** Part i of the n_parts of the report, those with the fewest rows first.  Errors: E_ARG. */
FRG_API FRG_MUST_USE frg_status frg_demean_get_part(const frg_demean *d, int64_t i,
                                                    frg_demean_part *out);

/** The rank of D: what the effects absorb. */
typedef struct {
    int64_t rank;       /* columns of D that are independent */
    int exact;          /* 0: an upper bound, or, method "pivots", a count that nothing verifies */
    const char *method; /* "exact", "pairwise", "firstpair", "naive", "pivots" (of a factor in
                           double precision), "bound" (slopes, from above) */
    int64_t components; /* connected components of all levels */
} frg_demean_rank;
/** Counts by opts.dof; a pass over the rows for each pair of factors.  The exact rank of three or
 *  more factors is counted in integers, by two bounds that meet, or in a prime field, where that is
 *  too long by the pivots of the direct factor.  With slopes the count is over the rationals, as
 *  every double is one; columns that depend on each other but for the rounding of their values (z
 *  and 0.1 z) count once, by pivots.  FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped before there was a
 *  count; *out is as it was then, as where it fails.  Errors: E_TOO_BIG where exact is asked for
 *  and fill_cap forbids the factor; E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_demean_get_rank(frg_demean *d, frg_demean_rank *out);
/** Frees the plan; NULL is fine. */
FRG_API void frg_demean_destroy(frg_demean *d);
/** A design before there is a plan. */
typedef struct {
    int64_t n, p;            /* rows, columns */
    int n_factors;           /* 1 .. 64 */
    const int64_t *levels;   /* of each factor, those that occur; NULL: not known, so at most one a
                                row */
    int weighted;            /* there are weights */
    const frg_slope *slopes; /* their z are not read */
    int n_slopes;            /* length of slopes */
    uint64_t no_intercept;   /* as of frg_demean_create */
} frg_demean_shape;
/** Bounds before the work: bytes of the plan after a run (with a spool: and while scattered rows
 *  are brought together), and with the largest factor allowed (fill_cap); *seconds is a guess from
 *  designs that need few steps.  E_TOO_BIG: more rows than frg_demean_create takes. */
FRG_API FRG_MUST_USE frg_status frg_demean_estimate(frg_context *ctx, const frg_demean_shape *shape,
                                                    const frg_demean_opts *o, size_t *plan_bytes,
                                                    size_t *with_factor_bytes, double *seconds);
/** Bytes of the file that keeps the order of such rows (frg_layout_files.order), at most; 0 for
 *  NULL. */
FRG_API size_t frg_demean_layout_bytes(const frg_demean_shape *shape);

/* ---- regression ------------------------------------------------------------------------------ */

/** What a weight w_i means. */
typedef enum {
    FRG_WEIGHTS_ANALYTIC,   /* a variance of 1 / w_i up to a factor; n is the number of rows */
    FRG_WEIGHTS_FREQUENCY,  /* w_i equal rows, whole numbers; n is their sum */
    FRG_WEIGHTS_PROBABILITY /* 1 / w_i is the chance of the draw, up to a factor: as analytic, but
                               that the covariance iid becomes hc1 */
} frg_weights_kind;

/** Where a fit keeps demeaned columns while it runs, and finds those of an earlier run of the same
 *  fit: y first, then the regressors, n rows each.  A column's bits do not depend on the others (on
 *  a device: on how many lie side by side, which `block` decides), so that a run that was stopped
 *  and one that was not end with the same bits.  A negative status of a call ends the fit. */
typedef struct {
    int64_t block; /* columns demeaned between two calls of save; 0: 8 */
    /** Fills the first *done < p columns and their reports; *worst is the worst status of
     *  theirs. */
    frg_status (*load)(void *user, int64_t n, int64_t p, double *values, frg_demean_column *columns,
                       int64_t *done, frg_status *worst);
    /** The first `done` < p columns are finished.  stopped: the fit ends here, interrupted or out
     *  of time. */
    frg_status (*save)(void *user, int64_t n, int64_t p, const double *values,
                       const frg_demean_column *columns, int64_t done, frg_status worst,
                       int stopped);
    void *user;                     /* handed to both */
    const frg_layout_files *layout; /* of the rows; NULL: not kept */
} frg_column_store;

/** What the pivots of X'WX are compared with, below which a regressor is collinear. */
typedef enum {
    FRG_COLLIN_SHARE, /* collin_tol times the column's own variance */
    FRG_COLLIN_FIXEST /* collin_tol itself, in the units of the data, as fixest does */
} frg_fe_collin;

/** Which rows are used by the graph that the rows make of the levels of the first two effects (not
 *  counting slopes alone).  Effects of different connected sets cannot be compared with each other
 *  (Abowd, Creecy and Kramarz 2002). */
typedef enum {
    FRG_CONNECTED_ALL,     /* all rows */
    FRG_CONNECTED_LARGEST, /* those of the connected set with the most rows */
    /** Those of the largest set that stays connected when any one match, a pair of levels of both
     *  effects, is left out (Kline, Saggio and Soelvsten 2020).  A level of the first effect with
     *  one match, a worker who stays, is in it with a match of at least two rows. */
    FRG_CONNECTED_MATCH,
    FRG_CONNECTED_OBSERVATION /* those of the largest set that stays connected when any one row is
                                 left out */
} frg_fe_connected;

/** What is estimated: least squares, or a generalised linear model of the mean mu of y,
 *  link(mu) = X b + D alpha + offset, by iteratively reweighted least squares. */
typedef enum {
    FRG_FAMILY_OLS,      /* least squares, in two stages with instruments */
    FRG_FAMILY_POISSON,  /* y >= 0; log */
    FRG_FAMILY_LOGIT,    /* y 0 or 1; logit */
    FRG_FAMILY_PROBIT,   /* y 0 or 1; the normal distribution's quantile */
    FRG_FAMILY_GAUSSIAN, /* identity: the estimates of ols */
    FRG_FAMILY_GAMMA,    /* y > 0; inverse, or log */
    /** y >= 0; log.  The negative binomial NB2, Var y = mu + mu^2 / theta,
     *
     *      f(y) = Gamma(y + theta) / (Gamma(theta) y!) (theta / (theta + mu))^theta
     *             (mu / (theta + mu))^y,
     *
     *  theta given (frg_fe_opts.theta) or by maximum likelihood: Newton's steps on the score of
     *  theta at the means, and least squares reweighted at theta, by turns until both stand still
     *  (Venables and Ripley 2002, 7.4; Lawless 1987).  Weights multiply the rows' likelihoods.
     *  Covariances are of the expected information, in which theta and the coefficients do not
     *  meet: W = w mu / (1 + mu / theta), as MASS's glm.nb; errors by the observed information of
     *  both together (fixest, statsmodels, Stata) differ by terms of the order of their own
     *  uncertainty.  Robust and clustered ones take the scores w (y - mu) / (1 + mu / theta) x~.
     *  Where outcomes are no more dispersed than Poisson's, the likelihood has its supremum at
     *  theta infinite: the answer is that of poisson then, with the warning FRG-FE-166. */
    FRG_FAMILY_NEGBIN
} frg_fe_family;

/** The link of a family. */
typedef enum {
    FRG_LINK_AUTO,     /* the family's first */
    FRG_LINK_IDENTITY, /* mu */
    FRG_LINK_LOG,      /* log mu */
    FRG_LINK_INVERSE,  /* 1 / mu */
    FRG_LINK_LOGIT,    /* log(mu / (1 - mu)) */
    FRG_LINK_PROBIT    /* the quantile of the normal distribution at mu */
} frg_fe_link;

/** Which rows of a poisson, negbin, logit or probit model are left out because a combination of
 *  regressors and effects predicts them perfectly, so that no finite estimate maximises the
 *  likelihood (Correia, Guimaraes and Zylkin 2019). */
typedef enum {
    FRG_SEPARATION_AUTO,   /* effects, their slopes, two together, and combinations by the
                              iterated rectifier */
    FRG_SEPARATION_LEVELS, /* levels of effects whose outcomes are all 0 (or, binary, all 1) */
    FRG_SEPARATION_NONE    /* none */
} frg_fe_separation;

/** Options of frg_fe_fit. */
typedef struct {
    size_t struct_size;  /* set by frg_fe_defaults */
    const char *vcov[8]; /* "iid", "hc1", "cluster=a+b", ...; the first is the one shown; default
                            {"iid"} */
    int n_vcov;          /* how many of vcov are given, 8 at most; 1 */
    /** fixest's small-sample rules:
     *  "adj=true,fixef=nonnested,cluster.adj=true,cluster.df=min,t.df=min"; NULL: these. What fixef
     *  leaves out is left out with its slopes (reghdfe's rule; fixest always counts slopes in
     *  K). */
    const char *ssc;
    const char *weights;           /* name of a column, NULL: none */
    frg_weights_kind weights_kind; /* analytic */
    const char *subset;            /* an expression; rows where it is not 0 are kept; NULL: all */
    int keep_singletons;           /* 0: drop levels with one row, iterated */
    double collin_tol;             /* 1e-9, 0 <= collin_tol < 1, by the rule `collin` */
    double level;                  /* 0.95 of the confidence intervals, between 0 and 1 */
    int keep_effects;              /* 1: recover the fixed effects (needed for predict) */
    frg_fe_collin collin;          /* share */
    const frg_column_store *store; /* NULL: none; not with keep_effects */
    frg_fe_connected connected;    /* all; else the set with the most rows (the sum of frequency
                                      weights), the earlier of two equal ones; singletons are then
                                      looked for again */
    const char *split;             /* a column: a sample for each of its levels, in their order, by
                                      frg_fe_fit_many; NULL: none */
    const char *fsplit;            /* the same, all rows before them; not both */
    const char *split_value;       /* text of the one level of `split` that is meant; NULL: all */
    const char *panel;    /* "UNIT,TIME": what l(), f() and d() go by; time is a whole number, and a
                          lag is missing where the unit has no row at that time; NULL: none */
    frg_fe_family family; /* ols */
    frg_fe_link link;     /* auto */
    const char *offset;   /* an expression that is added to the linear predictor; of the
                                      families beside ols; NULL: none */
    double glm_tol;       /* 1e-8: the relative change of the deviance that is the last */
    int glm_iter;         /* 25 iterations at most */
    frg_fe_separation separation; /* auto */
    double theta;                 /* of family negbin, > 0; 0: estimated */
    /** "TREATMENT ~ x | unit + time": two-stage difference in differences (Gardner 2022).  The
     *  first stage y = x b + D alpha is fitted where the column TREATMENT, 0 or 1, is 0; formula is
     *  the second stage, of y - x b - D alpha in all rows, without effects and without an intercept
     *  (i() loses its first level as if there were one).  Errors are cluster= or hc1, of both
     *  stages together: scores w (e x - u z), u the first stage's residuals in its own rows, z =
     *  X1 (X1'W0 X1)^-1 X1'W x, W0 its weights; without a small-sample factor unless ssc is given.
     *  Least squares without instruments, panel, store and family.  NULL: none. */
    const char *first_stage;
    /** A file with the solver of an earlier fit of the same rows, effects, weights, options and
     *  seed (frg_fe_save_plan): where it is there, the effects are taken out with its bits and
     *  nothing is ordered or factored; of others E_MISMATCH.  Where it is not, the fit keeps its
     *  solver for frg_fe_save_plan.  Least squares of one model with effects, in one stage, by
     *  methods auto, cg and direct without varying slopes.  NULL: none. */
    const char *plan;
    frg_demean_opts demean; /* the last field, so that it can grow at its end */
} frg_fe_opts;

/** An estimate b under one covariance V, with the t distribution of its df_t degrees of freedom. */
typedef struct {
    const char *term; /* name of the regressor, "(Intercept)" among them */
    /** b; s = sqrt(V_jj); b / s; P(|t| > |b / s|); b - z s and b + z s, z the quantile of t at
     *  (1 + level) / 2.  NaN all but b where V_jj is not known. */
    double estimate, std_error, statistic, p_value, conf_low, conf_high;
} frg_coefficient;

/** A regressor that has no coefficient. */
typedef struct {
    const char *term;   /* its name */
    const char *reason; /* "absorbed by the fixed effects", "collinear with x1, x2" */
} frg_dropped_term;

/** One covariance of the estimates. */
typedef struct {
    const char *spec;            /* as asked: "cluster=firm" */
    const char *type;            /* "iid", "hc1", "hc2", "hc3", "cluster", "cr2", "cr3", "crv3",
                                    "jackknife", "wild", "nw", "dk", "hac", "conley" */
    int n_clusters;              /* variables: clusters; the unit and the period of nw and hac, the
                                    period of dk */
    const char *cluster_name[4]; /* of each, the first n_clusters alone */
    int64_t cluster_count[4];    /* values that it has */
    double df_t;                 /* of the t distribution */
    int64_t k;                   /* K of the small-sample rule: parameters that count */
    const char *ssc;             /* the rule in force, all keys */
    const double *matrix;        /* n_coefficients x n_coefficients */
    const frg_coefficient *coefficients; /* n_coefficients, with the errors of this matrix */
    /** A variance was not positive, and the negative eigenvalues of the matrix were set to 0
     *  (Cameron, Gelbach and Miller 2011).  Where the formula's own variance was not positive the
     *  coefficient has no std_error and what follows from it (NaN); the other errors are those of
     *  the repaired matrix, none smaller than by the formula. */
    int projected;
    double wald_f; /* b' V^-1 b / k over the regressors without the intercept */
    /** K where the effects count as fixest and pyfixest have it: each factor's levels but one, all
     *  of the first, whatever depends on what; dof naive makes it k.  0: not known, slopes. */
    int64_t k_naive;
    int64_t lag;           /* L of nw, dk and hac; -1: none */
    const char *kernel;    /* "bartlett", "uniform" of nw, dk, hac and conley; NULL: none */
    double cutoff;         /* of conley, in kilometres; NaN: none */
    const char *leverage;  /* "exact" or "approx", of hc2 and hc3; NULL: none was needed */
    double leverage_max;   /* the largest; NaN: none */
    double leverage_error; /* the largest standard error of one, 0 where they are exact */
    const char *weights;   /* "rademacher", "webb", "mammen" of wild; NULL: none */
    int64_t reps;          /* random draws of leverages or of a bootstrap; 0: none */
    const double *df;      /* n_coefficients: of each coefficient's t; NULL: df_t for all */
} frg_fe_vcov;

/** The first stage of an endogenous regressor: its regression on the exogenous regressors and the
 *  instruments, with the same effects and weights. */
typedef struct {
    const char *endogenous;
    int n_coefficients;                  /* exogenous regressors, then instruments */
    const frg_coefficient *coefficients; /* n_coefficients, under vcov[0] */
    double rss;                          /* sum w v^2 of its residuals v */
    double partial_r2; /* of the instruments: 1 - rss / what the exogenous regressors leave */
} frg_fe_first_stage;

/** The values b that an Anderson-Rubin test does not reject. */
typedef enum {
    FRG_AR_NONE,     /* not known: several endogenous regressors, or a singular covariance */
    FRG_AR_INTERVAL, /* low <= b <= high */
    FRG_AR_RAYS,     /* b <= low or b >= high: weak instruments */
    FRG_AR_LINE,     /* every b */
    FRG_AR_EMPTY     /* no b: the instruments are not all valid */
} frg_ar_set;

/** What one covariance says of the instruments.  L instruments, m endogenous regressors; NaN where
 *  a matrix is singular, or the covariance has no such test. */
typedef struct {
    const char *vcov; /* its spec */
    /** m values: W / L of the instruments in each first stage, and P(F(L, df) > f). */
    const double *first_stage_f, *first_stage_p;
    /** Kleibergen and Paap (2006): the rank of the first stages is m - 1.  kp_f: the Wald statistic
     *  over L, with the first stages' small-sample rule; kp_lm, without any, is chi2(kp_df). With
     *  iid errors kp_f is Cragg and Donald's F and kp_lm Anderson's canonical correlation test. */
    double kp_f, kp_lm, kp_p;
    int64_t kp_df;      /* L - m + 1 */
    double effective_f; /* Montiel Olea and Pflueger (2013): pi'Z'Z pi / tr(V Z'Z); m = 1 */
    /** e'Z S^-1 Z'e at the estimates that minimise it (Hansen 1982), chi2(L - m): Sargan's under
     *  iid; NaN where L = m. */
    double overid, overid_p;
    int64_t overid_df;
    /** Anderson and Rubin (1949): no endogenous regressor has an effect, F(L, ar_df); and, of one
     *  endogenous regressor, the values that are not rejected at the options' level. */
    double ar_f, ar_p, ar_df;
    frg_ar_set ar_set;
    double ar_low, ar_high;
} frg_fe_iv_tests;

/** First stages and tests of two-stage least squares. */
typedef struct {
    int n_endogenous, n_instruments;        /* kept */
    const char *const *instruments;         /* n_instruments */
    const frg_fe_first_stage *first_stages; /* n_endogenous */
    const frg_fe_iv_tests *tests;           /* one for each of the result's vcov */
    double cragg_donald_f;                  /* least eigenvalue of (V'V)^-1 X'P_Z X (n - K) / L */
    /** Wu (1973) and Hausman (1978): the first stages' residuals add nothing to the equation,
     *  F(m, wu_hausman_df), iid errors. */
    double wu_hausman_f, wu_hausman_p;
    int64_t wu_hausman_df;
} frg_fe_iv;

/** What a generalised linear model has beside.  Sums are with the weights. */
typedef struct {
    const char *family, *link;
    int64_t n_separated;      /* rows left out because they are predicted perfectly */
    const int64_t *separated; /* n_separated: their numbers in the data, from 0, ascending */
    int iterations;           /* of reweighted least squares */
    int converged;            /* the deviance and the estimates are at rest, and so is the result's
                                 converged */
    double deviance, null_deviance; /* sum w d(y, mu), of the model and of a constant (and the
                                       offset) alone */
    double log_likelihood, null_log_likelihood; /* at dispersion phi = deviance / n where there is
                                                   one; of row i phi / w_i, but for frequencies */
    double pseudo_r2;  /* McFadden's, 1 - log_likelihood / null_log_likelihood */
    double aic, bic;   /* -2 log_likelihood + 2 K, + K log n, K = estimated coefficients + rank */
    double dispersion; /* 1; gaussian, gamma: Pearson's statistic / df_residual */
    /** Of negbin, NaN of the other families: theta, infinite in Poisson's limit; its standard error
     *  (- d^2 log L / d theta^2)^(-1/2) at the means, NaN of a theta that is given or infinite.  An
     *  estimated theta counts in K of aic and bic, and in no small-sample factor; null_deviance is
     *  at the same theta, null_log_likelihood at the best one of a constant (and the offset)
     *  alone, unless theta is given. */
    double theta, theta_std_error;
} frg_fe_glm;

/** A point of an event study. */
typedef struct {
    double time;     /* the level of i(), or the relative period of sunab() */
    int coefficient; /* its place among the coefficients; -1: a reference, or dropped */
} frg_fe_event;

/** A fitted regression; everything lives as long as the frg_fe. */
typedef struct {
    const char *formula; /* as given */
    const char *depvar;  /* name of y */
    int64_t n_rows;      /* of the data */
    int64_t n;           /* used (the sum of the weights for frequency weights) */
    /** Rows dropped for a missing value, by `subset`, for a weight of 0, as singletons; and in how
     *  many rounds these were found. */
    int64_t n_missing, n_subset, n_zero_weight, n_singleton, singleton_rounds;
    int64_t n_disconnected; /* rows dropped because they are outside the largest connected set */
    int64_t n_uncompared; /* rows dropped because sunab() or first_stage compares them with none */
    int64_t n_groups;     /* connected sets before that; 0 with FRG_CONNECTED_ALL, where
                               frg_fe_groups counts them */
    const char *split_name, *split_value; /* column and level of the sample; NULL: not split */
    int n_coefficients; /* regressors that were not dropped, in formula order; those
                                             of sunab() as its relative periods */
    const frg_coefficient *coefficients; /* under vcov[0] */
    int n_dropped;                       /* regressors that were */
    const frg_dropped_term *dropped;     /* n_dropped */
    int n_vcov;                          /* covariances that the options asked for */
    const frg_fe_vcov *vcov;             /* n_vcov, in their order */
    int n_factors;                       /* fixed effects */
    const char *const *factor_name;      /* n_factors, as in the formula */
    const int64_t *factor_levels;        /* n_factors: levels that rows in use have */
    int64_t rank;                        /* of the absorbed factors, the intercept included */
    const char *rank_method; /* as frg_demean_rank.method; "none" without effects, "bound" where a
                                stop ended the count */
    int64_t df_residual;     /* n - n_coefficients - rank */
    /** Sums with the weights: rss = sum w e^2, tss that of y about its mean (about 0 without an
     *  intercept and effects); r2 = 1 - rss / tss, adjusted by (n - 1) / df_residual, within:
     *  beside what the effects leave of y (NaN without effects); rmse = sqrt(rss / n). */
    double r2, r2_adjusted, r2_within, rmse, rss, tss;
    int converged;                    /* every demeaned column is */
    int64_t n_demeaned;               /* columns: y first, then the terms in formula order */
    const frg_demean_column *columns; /* n_demeaned */
    const char *const *column_names;  /* n_demeaned, dropped terms included */
    frg_demean_report demean;         /* of the demeaning; zeros without effects */
    const frg_demean_part *parts;     /* demean.n_parts */
    int plan_read;                    /* the solver came from the file opts.plan */
    int64_t n_components; /* connected sets of the levels of all effects; 0 without effects */
    /** Of rows, levels and columns; of demeaning and least squares; of the covariances; of all. */
    double encode_seconds, solve_seconds, vcov_seconds, total_seconds;
    const frg_fe_iv *iv; /* NULL without instruments */
    int n_events; /* of the formula's first i(f) with numbers for levels, or its sunab(); 0: none */
    const frg_fe_event *events; /* n_events, ascending */
    const char *first_stage;    /* as given; NULL: none */
    int64_t n_first_stage;      /* untreated rows that it was fitted on */
    const frg_fe_glm
        *glm; /* NULL of family ols.  With it r2, r2_adjusted and r2_within are NaN, rss
                              is sum w (y - mu)^2, and df_t of poisson, negbin, logit and probit
                              infinite: the normal distribution */
} frg_fe_result;

/** A fitted regression.  Made by frg_fe_fit, freed by frg_fe_destroy before its context and its
 *  table. */
typedef struct frg_fe frg_fe;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_fe_defaults(frg_fe_opts *o, size_t struct_size);
/** The fields of frg_fe_opts (frg_option); those of `demean` are frg_demean_options(). */
FRG_API const frg_option *frg_fe_options(void);
/** Fits `formula` (fixest's grammar, e.g. "y ~ x1 + i(year, ref=1980) | firm^industry + year") on a
 *  table.  sunab(cohort, period) is Sun and Abraham (2021)'s estimator: a dummy for each cohort
 *  g and period t, E = t - g, of the coefficients d_gE the means over cohorts
 *
 *      d_E = sum_g s_gE d_gE,   s_gE = n_gE / sum_g n_gE,   V = S V_d S'
 *
 *  n the sums of weights.  A cohort that is no period is never treated, and a reference as those of
 *  ref.c=; ref.p=-1 names the relative periods that are (numbers, c(-2, -1), .F and .L the first
 *  and the last, no ranges); W_NO_REFERENCE names the cohorts that have no row there.  Cohorts
 *  that are treated all along are left out; without a never treated one the last is the reference
 *  and the periods from its treatment on are left out.  att=TRUE (or sunab_att()) gives the mean
 *  over all E >= 0, no_agg=TRUE the d_gE themselves.
 *
 *  Text and logicals (FALSE, TRUE) are factors, coded as R codes them. Rows are dropped in the
 *  order missing, subset, zero weight, singletons, connected set.  Returns the demeaner's status:
 *  a fit whose columns did not converge comes back marked.  One that was stopped does not come
 *  back with opts.store, nor with thousands of columns left to estimate: *out is NULL then and
 *  the status positive.  The fit reads `data` again for another covariance, residuals and
 *  effects: the table must live as long as the fit; the options need not. Errors: E_FORMULA with
 *  the position, E_COLUMN with the nearest name, E_TYPE (text where numbers were meant, with the
 *  cell), E_TOO_BIG, E_NO_OBS, E_NO_REGRESSOR, E_DF, E_CLUSTER, E_WEIGHT, E_NOT_FINITE; of
 *  sunab() E_COHORT, E_CONTROLS, E_REFERENCE; of first_stage E_CONTROLS, E_TREATMENT,
 *  E_COUNTERFACTUAL.
 *
 *  On a device the effects are taken out there (frg_demean_create), by method auto, cg or lsmr; all
 *  else is computed on the host.  E_DEVICE_STEP for a formula without effects. */
FRG_API FRG_MUST_USE frg_status frg_fe_fit(frg_fe **out, frg_context *ctx, const char *formula,
                                           const frg_table *data, const frg_fe_opts *o);
/** Takes one column name, which lives for the call alone. */
typedef void (*frg_column_visitor)(const char *name, void *user);
/** Writes the solver of a fit with opts.plan, whose file was not there, to PATH for later fits, as
 *  frg_demean_save does, whole or not at all; the PATH that was there becomes PATH~.  What the fit
 *  kept for it alone is freed where it was written.  Errors: E_OPTION for a fit without opts.plan,
 *  one that read its file, and one that was written before; E_UNSUPPORTED for a graph whose
 *  components are solved apart; E_CREATE, E_WRITE, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_save_plan(frg_fe *f, const char *path);
/** Names the columns that frg_fe_fit would read (a name may come twice), so that a reader can leave
 *  the others alone.  o may be NULL.  Errors: E_FORMULA as frg_fe_fit. */
FRG_API FRG_MUST_USE frg_status frg_fe_columns(frg_context *ctx, const char *formula,
                                               const frg_fe_opts *o, frg_column_visitor each,
                                               void *user);
/** The fits of several models, in their order.  Made by frg_fe_fit_many, freed by
 *  frg_fe_many_destroy before its context and its table. */
typedef struct frg_fe_many frg_fe_many;
/** Fits every model that `formula` and the options stand for, as fixest does:
 *
 *      c(y1, y2)        an outcome each                      sw(a, b)     a, then b
 *      csw(a, b)        a, then a + b                        mvsw(a, b)   none, a, b, a + b
 *      sw0(..), csw0(..)  as without the 0, after a model with none of them
 *
 *  The calls stand among the regressors and among the effects; several make all combinations.
 *  opts.split, opts.fsplit: the same for the rows of each level of a column.  Order: samples, then
 *  effects, then outcomes, then regressors, the last changing fastest.  Each model has its own
 *  sample: rows are dropped for missing values of its own columns.  Models whose rows and effects
 *  are the same share rows, codes, plan and demeaned columns; every model has the bits of a fit by
 *  itself.  A model that has no rows, regressors, clusters or degrees of freedom left (E_NO_OBS,
 *  E_NO_REGRESSOR, E_CLUSTER, E_DF), or is not identified or predicted perfectly (E_IDENT,
 *  E_LEVERAGE, E_SEPARATED), is left out with the warning FRG-FE-150, where another is fitted.
 *  With keep_effects or a store nothing is shared.  Returns the worst status of the models; of a
 *  call that was stopped *out is NULL and the status positive.  Errors: as frg_fe_fit, and
 *  E_FORMULA for calls in calls and more than 4096 models, E_OPTION for opts.plan beside several
 *  models. */
FRG_API FRG_MUST_USE frg_status frg_fe_fit_many(frg_fe_many **out, frg_context *ctx,
                                                const char *formula, const frg_table *data,
                                                const frg_fe_opts *o);
/** The number of fits; 0 for NULL. */
FRG_API int64_t frg_fe_many_count(const frg_fe_many *m);
/** Fit i, alive as long as m; NULL outside 0 .. count-1 and for one that was taken. */
FRG_API frg_fe *frg_fe_many_get(const frg_fe_many *m, int64_t i);
/** The status of fit i, as frg_fe_fit would have returned it. */
FRG_API frg_status frg_fe_many_status(const frg_fe_many *m, int64_t i);
/** Fit i, which is the caller's from here on (frg_fe_destroy); NULL as of frg_fe_many_get. */
FRG_API frg_fe *frg_fe_many_take(frg_fe_many *m, int64_t i);
/** Frees the fits that were not taken; NULL is fine. */
FRG_API void frg_fe_many_destroy(frg_fe_many *m);
/** Names the formulas of one model each that `formula` stands for, in the order of frg_fe_fit_many;
 *  one that stands for itself comes as it is.  Errors: E_FORMULA, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_expand(frg_context *ctx, const char *formula,
                                              frg_column_visitor each, void *user);
/** What a fit works on, counted without demeaning or solving. */
typedef struct {
    int64_t n;                            /* rows used */
    int n_factors;                        /* fixed effects */
    int64_t n_columns;                    /* y and the regressors, factors and i() expanded */
    size_t plan_bytes, with_factor_bytes; /* as frg_demean_estimate; 0 without effects */
    size_t matrix_bytes;                  /* n x n_columns doubles, beside the plan */
    double seconds;                       /* NaN without effects */
    size_t spool_bytes; /* of the data and the fit, at most, on the disk, but for a factor and the
                           count of the rank; 0 without a spool (frg_context_opts.spool) */
    size_t spool_with_factor_bytes; /* the same with the largest that the fill cap allows these */
    size_t layout_bytes;            /* of both frg_layout_files, at most */
    int passes; /* along all rows, the file's among them, where the reduced system is
                           assembled; else one more an iteration.  An iteratively reweighted fit
                           makes those behind the file's and the codes' a step */
} frg_fe_size;
/** The size of the fit of `formula` on `data` into *out.  o may be NULL.  Errors: as frg_fe_fit's
 *  of formula, columns and rows: E_FORMULA, E_COLUMN, E_TYPE, E_NO_OBS, E_WEIGHT, E_NOT_FINITE,
 *  E_OPTION, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_estimate(frg_context *ctx, const char *formula,
                                                const frg_table *data, const frg_fe_opts *o,
                                                frg_fe_size *out);
/** The results, alive as long as f; NULL for NULL. */
FRG_API const frg_fe_result *frg_fe_get(const frg_fe *f);
/** Another covariance of the same fit; *out lives as long as f.  With scores s_i = w_i e_i x~_i,
 *  V = factor B M B, B = (X~'WX~)^-1, factors by `ssc` (NULL: the fit's):
 *
 *  iid  hc1  cluster=a+b      as in frg_fe_opts
 *  hc2  hc3                   M = sum s_i s_i' / (1 - h_i)^p, p 1 and 2, h of the full model
 *                             (MacKinnon and White 1985), no factor; ",leverage=approx",
 *                             ",draws=256"
 *  cr2=a                      Bell and McCaffrey (2002), `df` by Pustejovsky and Tipton (2018)
 *  cr3=a jackknife=a crv3=a   sum over clusters of (b_(g) - b)(b_(g) - b)'; times (G - 1) / G;
 *                             times the factors of cluster=
 *  wild=a[,9999]              matrix of cluster=a; p values and intervals by the wild bootstrap
 *                             with the null imposed; ",weights=webb" or mammen
 *  nw=unit,time[,lag]         Bartlett weights 1 - l / (L + 1) within units; factor T / (T - 1),
 *                             T - 1 degrees of freedom, K of all effects; L floor(T^(1/4))
 *  dk=time[,lag]              the same of scores summed by period (Driscoll and Kraay 1998)
 *  hac=unit,time[,lag]        cluster=unit + dk - nw (Chiang, Hansen and Sasaki 2024)
 *  conley=lat,lon,km          pairs within km along a great circle of 6371 km (Conley 1999);
 *                             ",kernel=bartlett", else uniform; factors of hc1
 *
 *  Periods are compared by rank.  Random draws come from the context's seed.  A positive status:
 *  it was stopped, and the errors are NaN.  Errors: E_VCOV, E_SSC, E_COLUMN, E_CLUSTER (a single
 *  one, or a missing value in a row of the fit), E_DUPLICATE (two rows of a unit and period),
 *  E_LEVERAGE, E_PLACE, E_TYPE, E_DF, E_TOO_BIG (leverages or dummies that take too long),
 *  E_UNSUPPORTED (slopes of an effect that clusters cut), E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_vcov_add(frg_fe *f, const char *spec, const char *ssc,
                                                const frg_fe_vcov **out);
/** A joint test of linear restrictions. */
typedef struct {
    double wald, f;     /* W; W / df1 */
    int64_t df1;        /* restrictions */
    double df2;         /* of the covariance's t */
    double p_f, p_chi2; /* P(F(df1, df2) > f), P(chi2(df1) > W) */
} frg_fe_test;
/** R b = q: W = (R b - q)' (R V R')^-1 (R b - q).  v: one of f's covariances; r: rows x
 *  n_coefficients, row-major; q: rows values, NULL: zeros.  Wooldridge (2010), 4.2.3. Errors: E_ARG
 *  (rows that depend on others, a singular or projected covariance, values that are not finite). */
FRG_API FRG_MUST_USE frg_status frg_fe_wald(const frg_fe *f, const frg_fe_vcov *v, const double *r,
                                            const double *q, int64_t rows, frg_fe_test *out);
/** Residuals and fitted values for the rows of the data, NaN where a row was dropped; either may be
 *  NULL.  Of a generalised linear model y - mu and mu.  Errors: E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_residuals(const frg_fe *f, double *residuals,
                                                 double *fitted);
/** What frg_fe_glm_values gives of each row. */
typedef enum {
    FRG_GLM_LINK,     /* X b + D alpha + offset */
    FRG_GLM_RESPONSE, /* mu */
    FRG_GLM_WORKING,  /* (y - mu) d link / d mu */
    FRG_GLM_PEARSON,  /* (y - mu) sqrt(w / V(mu)) */
    FRG_GLM_DEVIANCE, /* sign(y - mu) sqrt(w d(y, mu)) */
    FRG_GLM_WEIGHT    /* of the last least squares: w / (V(mu) (d link / d mu)^2) */
} frg_glm_value;
/** out[i] <- the value of row i of the data, NaN where it was dropped.  Errors: E_OPTION of a fit
 *  by least squares, E_ARG for a value that is none. */
FRG_API FRG_MUST_USE frg_status frg_fe_glm_values(const frg_fe *f, frg_glm_value what, double *out);
/** group[i] <- the connected set of row i of the data in the graph of the first two effects: 1 is
 *  the set with the most rows, 2 the next, 0 a row that was dropped.  *n_groups, where not NULL, is
 *  their number. Errors: E_OPTION where the formula has fewer than two effects with an
 *  intercept. */
FRG_API FRG_MUST_USE frg_status frg_fe_groups(const frg_fe *f, int32_t *group, int64_t *n_groups);
/** Fixed effects as a table: factor, level, effect, identified.  Normalised as fixest does: the
 *  first level of every factor but the first is 0 in each component, and as many further ones, in
 *  their order, as three and more factors or slopes leave free (to 64; identified is 0 in the table
 *  where that does not do).  What is still free, or beyond what the demeaner can solve, is as the
 *  solver left it.  Needs keep_effects.  Errors: E_OPTION where they were not kept, E_TOO_BIG,
 *  E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_effects(const frg_fe *f, frg_table **out);
/** Predictions for the rows of new data, of a generalised linear model mu; an unseen level gives
 *  NaN and is counted.  An offset is one of the columns that are needed.  Needs
 *  keep_effects when the model has fixed effects.  Errors: E_OPTION where effects are needed and
 *  were not kept, E_COLUMN, E_TYPE, E_NOT_FINITE, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_predict(const frg_fe *f, const frg_table *data, double *out,
                                               int64_t *n_unseen);
/** The regressors of new data: out[j * rows + i], j a coefficient of the result, i a row of the
 *  data; fixed effects have no columns here.  A level that the fit has not seen makes the row NaN,
 *  a missing number the columns that it is in; rows with such levels are counted (n_unseen may be
 *  NULL).  Errors: E_OPTION for the means that sunab() shows, E_COLUMN, E_TYPE, E_NOT_FINITE,
 *  E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_regressors(const frg_fe *f, const frg_table *data,
                                                  double *out, int64_t *n_unseen);
/* ---- randomisation inference ----------------------------------------------------------------- */

/** What permutations are compared by. */
typedef enum {
    FRG_RITEST_ESTIMATE, /* the estimate */
    FRG_RITEST_STATISTIC /* the estimate over its standard error, under vcov[0] of the options */
} frg_ritest_statistic;

/** Options of frg_fe_ritest. */
typedef struct {
    size_t struct_size;   /* set by frg_ritest_defaults */
    const char *variable; /* a column of numbers or a logical one, which is one term of the
                                       formula and stands nowhere else in it */
    const char *cluster;  /* a column of groups, in each of which the variable has one value;
                                       it is permuted between them; NULL: between rows */
    const char *strata;   /* a column of strata that it was drawn within: it is permuted in each
                                       of them alone; a group lies in one; NULL: in one */
    int reps;             /* 1000 permutations */
    int64_t seed;         /* of the permutations; -1: the context's */
    frg_ritest_statistic statistic; /* estimate */
} frg_ritest_opts;

/** What frg_fe_ritest finds: of r = 1 .. reps orders the share whose statistic s_r is at least as
 *  large in size as the statistic s of the variable itself. */
typedef struct {
    const char *term; /* the variable's coefficient; it lives as long as the fit */
    double estimate;  /* of the fit */
    double observed;  /* s: that, or its t statistic */
    double p_value;   /* #(|s_r| >= |s|) / reps */
    double std_error; /* of p_value by the draws, (p (1 - p) / reps)^(1/2) */
    int64_t reps;     /* permutations */
    int64_t permuted; /* values that were put in order: rows in use, or groups */
    int64_t strata;   /* within which they were; 1 without strata */
    int converged;    /* every demeaned column of every draw is */
    double seconds;
} frg_ritest;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_ritest_defaults(frg_ritest_opts *o, size_t struct_size);
/** The fields of frg_ritest_opts (frg_option). */
FRG_API const frg_option *frg_ritest_options(void);
/** Randomisation inference (Fisher 1935) on a regressor that was drawn by lot: its values in the
 *  rows of the fit, or those of groups, are put in random orders, by Fisher and Yates' shuffle,
 *  in each stratum alone, and each order is a regression as the fit is.  fit: the options that f
 *  was fitted with, of which store, plan and keep_effects are not looked at and vcov[0] alone of
 *  the covariances.  statistics: reps values s_r, in the order of the draws, or NULL.  A draw
 *  depends on the seed and its number, so that more draws begin with the same.  Warnings of the
 *  draws are not kept.  Returns FRG_MAX_ITER where a draw did not converge; a positive status of
 *  a stop leaves *out zero.  Errors: E_OPTION (no such term; options that are not the fit's),
 *  E_COLUMN, E_TYPE, E_PERMUTED (a group with several values or strata; a missing group or
 *  stratum; strata in each of which there is one value), E_NO_REGRESSOR (a draw that is collinear
 *  with the rest), E_UNSUPPORTED of a fit with first_stage, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_ritest(const frg_fe *f, const frg_fe_opts *fit,
                                              const frg_ritest_opts *o, double *statistics,
                                              frg_ritest *out);

/* ---- local projections ----------------------------------------------------------------------- */

/** Options of frg_lpdid_create. */
typedef struct {
    size_t struct_size;   /* set by frg_lpdid_defaults */
    const char *panel;    /* "UNIT,TIME"; time is a whole number */
    const char *cohort;   /* a column: the period g in which the treatment of the unit begins */
    double never_treated; /* 0: the g of units that are never treated; a missing g and one after the
                             last period are so in any case */
    int pre_window;       /* the first horizon; INT32_MIN: of the data */
    int post_window;      /* the last; INT32_MAX: of the data */
    int pooled;   /* 0; 1: one regression, of the mean outcome from the treatment to post_window */
    int reweight; /* 0; 1: the mean over the treated rows in place of least squares' weights */
    int pmd; /* 1: outcomes are less y_t-1; k: less the mean of y_t-k .. y_t-1; 0: less that of all
                that the unit has before t; of a mean horizon -1 is one like the others */
    const char *subset; /* an expression: the rows that decide on cohorts and the window, which
                           should be those of the fit (frg_fe_opts.subset); NULL: all.  Outcomes and
                           treatments at other times are looked up in all rows */
} frg_lpdid_opts;

/** An outcome of local projections, y_t+h - y_t-1. */
typedef struct {
    int horizon;      /* h; 0 of a pooled one */
    const char *name; /* its column */
} frg_lpdid_outcome;

/** What makes local projections of ordinary fits; alive as long as the frg_lpdid. */
typedef struct {
    const frg_table *table; /* the data's columns, and those of the outcomes and the treatment */
    const char *formula; /* "c(`change::-2`, ...) ~ treat_diff + x | year", of one outcome without
                               c(): for frg_fe_fit_many, whose fits have the outcome for depvar */
    const char *first_stage; /* reweighted: "treat_diff ~ x | year", first_stage of the fits, whose
                                formula is "c(...) ~ 0 + treat_diff" then; else NULL */
    const char *term;        /* "treat_diff", D_t - D_t-1: its coefficient is b_h */
    const char *vcov;        /* "cluster=unit" */
    int n;                   /* outcomes */
    int last;                /* the last horizon, of the data where the options leave it to them */
    const frg_lpdid_outcome *outcomes; /* n, ascending */
} frg_lpdid_design;

/** The columns of local projections.  Made by frg_lpdid_create, freed by frg_lpdid_destroy before
 *  its context and its table. */
typedef struct frg_lpdid frg_lpdid;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_lpdid_defaults(frg_lpdid_opts *o, size_t struct_size);
/** The fields of frg_lpdid_opts (frg_option). */
FRG_API const frg_option *frg_lpdid_options(void);
/** Local projections for difference in differences (Dube, Girardi, Jorda and Taylor 2023): for each
 *  horizon h but the reference -1
 *
 *      y_t+h - y_t-1 = b_h (D_t - D_t-1) + x c + period effects,      D_t = 1 where t >= g, else 0
 *
 *  over the rows whose treatment begins at t and those that are untreated at t + h (h < 0: at t);
 *  pooled: the mean of y_t .. y_t+H for y_t+h, H = post_window, and the untreated are so at t + H.
 *  Least squares weights the differences of the periods, treated less untreated, by
 *  n1 n0 / (n1 + n0); reweight: by n1, so that b_h is the mean effect on the treated rows, and with
 *  covariates their regression adjustment: c and the effects of the untreated rows, b_h the mean of
 *  what is left of the treated; errors are of both steps (frg_fe_opts.first_stage).
 *  formula: "y ~ x1 + x2", or "y ~ 1"; y may be an expression of columns.  The value of a period is
 *  that of the row of the unit and that time, and missing where there is none.  Cohorts without a
 *  period before their treatment are left out, with W_ALWAYS_TREATED.  The table must live as long
 *  as the result; fits are made with the options of frg_fe_fit, panel where x has lags.  Errors:
 *  E_OPTION (no panel or cohort; a window that no treated row is in; effects or instruments in the
 *  formula), E_FORMULA, E_COLUMN, E_TYPE, E_COHORT, E_DUPLICATE (two rows of a unit and period),
 *  E_CONTROLS (none is untreated), E_TREATMENT (none is treated), E_PERIODS (no two successive
 *  ones), E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_lpdid_create(frg_lpdid **out, frg_context *ctx,
                                                 const char *formula, const frg_table *data,
                                                 const frg_lpdid_opts *o);
/** What was made; NULL for NULL. */
FRG_API const frg_lpdid_design *frg_lpdid_get(const frg_lpdid *l);
/** Frees it; NULL is fine. */
FRG_API void frg_lpdid_destroy(frg_lpdid *l);

/* ---- event studies --------------------------------------------------------------------------- */

/** Options of frg_event_study. */
typedef struct {
    size_t struct_size; /* set by frg_event_study_defaults */
    const char *unit;   /* a column; units are counted in the warning alone */
    const char *time;   /* a column of numbers, the period */
    const char *cohort; /* a column of numbers: the period g in which the unit's treatment begins */
    double never_treated; /* 0: units whose g is this or less are never treated; a missing g and one
                             after the last period are so in any case */
    const char *subset;   /* an expression: the rows that decide on all this; NULL: all */
    int calendar; /* 0; 1: E_REFERENCE for cohorts that sunab() cannot read as they are: those whose
                     period no row has, and those without a row at the reference */
} frg_event_study_opts;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_event_study_defaults(frg_event_study_opts *o, size_t struct_size);
/** The fields of frg_event_study_opts (frg_option). */
FRG_API const frg_option *frg_event_study_options(void);
/** The columns of a treatment that begins at different times, to be added to the table for an
 *  ordinary fit: treated, 1 where t >= g and else 0; since, t - g, and of the never treated the
 *  reference; first, g, and of the never treated one more than the last period.  *reference is the
 *  largest negative t - g, -1 where it is there: what the effects are compared with, as in
 *  "y ~ i(since, ref=-1) | unit + year".  Each array has the table's rows and may be NULL.  Rows of
 *  cohorts without a period before their treatment are NaN, with W_ALWAYS_TREATED; those outside
 *  the subset decide nothing, and have values of their own g.  Errors: E_OPTION (no unit, time or
 *  cohort), E_COLUMN, E_COHORT (text), E_FORMULA and E_TYPE of subset, E_CONTROLS (none is
 *  untreated), E_TREATMENT (none is treated), E_REFERENCE, E_MEMORY; the arrays are as they were
 *  then. */
FRG_API FRG_MUST_USE frg_status frg_event_study(frg_context *ctx, const frg_table *data,
                                                const frg_event_study_opts *o, double *treated,
                                                double *since, double *first, double *reference);

/* ---- variance components --------------------------------------------------------------------- */

/** What is left out to estimate the variance of an error. */
typedef enum {
    FRG_LEAVE_MATCH,       /* all rows of a match, a pair of levels of both effects: errors may
                              depend on each other within one */
    FRG_LEAVE_OBSERVATION, /* a row: errors are independent */
    FRG_LEAVE_NONE         /* nothing: the plug-in and the homoscedastic estimates alone */
} frg_leave_out_unit;

/** How leverages are computed. */
typedef enum {
    FRG_LEVERAGE_AUTO,  /* exact up to 4096 levels of the second effect */
    FRG_LEVERAGE_EXACT, /* by a direct factor */
    FRG_LEVERAGE_APPROX /* by random projections */
} frg_leverage;

/** Options of frg_fe_leave_out. */
typedef struct {
    size_t struct_size;           /* set by frg_leave_out_defaults */
    frg_leave_out_unit leave_out; /* match */
    frg_leverage leverage;        /* auto */
    int draws;                    /* 200 random projections of approx, 2 at least */
} frg_leave_out_opts;

/** Variances of the effects a of a row's level of the first effect and b of the second, over rows
 *  with their weights. */
typedef struct {
    double first, second, covariance; /* Var(a), Var(b), Cov(a, b) */
    double correlation;               /* covariance / sqrt(first second); NaN where one is not
                                         positive */
    double explained;                 /* (first + second + 2 covariance) / outcome_variance */
} frg_variance_components;

/** What frg_fe_leave_out finds. */
typedef struct {
    const char *first, *second; /* names of the effects; they live as long as the fit */
    const char *leave_out;      /* "match", "observation", "none" */
    int64_t n;                  /* rows (the sum of frequency weights) */
    int64_t n_first, n_second;  /* levels */
    int64_t n_movers;           /* levels of the first effect with several matches */
    int64_t n_matches;
    double outcome_variance; /* of y - x b */
    double error_variance;   /* of a row of weight 1: sum w e^2 / (n - coefficients - rank) */
    frg_variance_components plug_in;       /* of the estimates, biased by their errors */
    frg_variance_components homoscedastic; /* less that bias if all errors have error_variance */
    frg_variance_components corrected;     /* less that bias by leave-out variances; NaN with
                                              FRG_LEAVE_NONE */
    /** Standard errors that the random projections give homoscedastic and corrected: 0 where
     *  leverages are exact; NaN for correlation and explained. */
    frg_variance_components homoscedastic_error, corrected_error;
    /** Standard errors of corrected over samples of errors, the effects fixed: an upper bound, as
     *  the mean of their squares is at least the variance (frg_fe_leave_out); NaN for correlation
     *  and explained, and with FRG_LEAVE_NONE. */
    frg_variance_components sampling_error;
    const char *leverage; /* "exact" or "approx" */
    double leverage_max;  /* of what is left out: the largest, below 1; NaN with FRG_LEAVE_NONE */
    int64_t draws;        /* 0 where leverages are exact */
    int64_t iterations;   /* the most of a linear system of approx */
    double seconds;
} frg_leave_out;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_leave_out_defaults(frg_leave_out_opts *o, size_t struct_size);
/** The fields of frg_leave_out_opts (frg_option). */
FRG_API const frg_option *frg_leave_out_options(void);
/** Leave-out variance components of two effects, a worker's and a firm's (Abowd, Kramarz and
 *  Margolis 1999; Kline, Saggio and Soelvsten 2020).  With y less the regressors' part, which is
 *  taken as known, rows d_i of both effects' dummies, S = sum w_i d_i d_i' and a component theta =
 *  beta' A beta,
 *
 *      corrected = b' A b - sum_i B_ii s_i,      B_ii = w_i d_i' S^- A S^- d_i,
 *      s_i = w_i (y_i - mean y) e_i / (1 - P_ii),    P_ii = w_i d_i' S^- d_i
 *
 *  over rows, or matches by their means, whose weight is their rows'.  s_i is unbiased for w_i
 *  Var(e_i) whatever the variances.  Of a level of the first effect with one match the rows are
 *  left out one by one in either case.  The homoscedastic estimate (Andrews, Gill, Schank and
 *  Upward 2008) has error_variance for s_i, over rows.
 *
 *  sampling_error^2 = sum_i (corrected - corrected_i)^2, corrected_i with the outcome of i replaced
 *  by what the fit without i predicts: by Efron and Stein (1981) its mean is the variance of
 *  corrected or more, for independent errors of what is left out with any variances; about
 *  1 / (1 - P) times the variance where P is the common leverage and most of it is linear in the
 *  errors, more where little is.  It is of the effects and rows at hand, the regressors' part
 *  known.
 *
 *  The fit has two effects, is one of least squares, keeps its effects (keep_effects) and has
 *  connected = match to leave out matches, match or observation to leave out observations, and
 *  rows that are connected for none.  Workers come first: a first effect with fewer levels than the
 *  second is warned of (FRG-FE-162).  NULL for o: the defaults.  Random signs come from the
 *  context's seed. Returns FRG_MAX_ITER where a linear system of approx did not reach 1e-10; a
 *  positive status of a stop leaves *out zero.  Errors: E_OPTION, E_LEAVE_OUT (other fits and
 *  rows; nobody moves), E_TOO_BIG (exact beyond 16384 levels of the second effect, or many matches
 *  a level of the first), E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_fe_leave_out(const frg_fe *f, const frg_leave_out_opts *o,
                                                 frg_leave_out *out);
/** Frees the fit and its results; NULL is fine. */
FRG_API void frg_fe_destroy(frg_fe *f);

#ifdef __cplusplus
}
#endif
#endif
