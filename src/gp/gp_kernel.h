/* gp_kernel.h - covariance functions: the expression tree, its parameters, and what is done with it
 * over tiles.
 *
 * A kernel is a tree of at most 64 nodes: leaves of spec and papers (rbf, matern, ...), sums,
 * products, scales, column selections.  Over a tile of pairs (i, j) it is run forward (values) or
 * forward and backward: with the seed g = W_ij the reverse sweep gives sum_ij W_ij dK_ij/dtheta for
 * all parameters at once; products by prefix and suffix, never by division.  The common {scale *
 * radial (ard)} has a fused path of its own.
 *
 * Letters: D_k = x_ik - x_jk, u_k = D_k / l_k, s = sum u_k^2, h = dk/ds.  Sums over tiles are in
 * double, one accumulator a tile row, added in order.
 */
#ifndef FRGI_GP_KERNEL_H
#define FRGI_GP_KERNEL_H

#include "core/core.h"
#include "gp/gp_params.h"
#include "linalg/spd.h"

#pragma GCC visibility push(hidden)

/** An expression, parsed; immutable. */
typedef struct frgi_gp_kernel frgi_gp_kernel;

/** Parses `text` against d columns with these names; parameters with their starts, bounds and
 *  fixings are appended to `params` in the order of the tree, behind them that of noise(...), which
 *  is no node.  Errors: E_KERNEL with the position, the nearest name, and
 *  the remedy. */
FRG_MUST_USE frg_status frgi_gp_kernel_parse(frgi_gp_kernel **out, frg_context *ctx,
                                             const char *text, ptrdiff_t d,
                                             const char *const *names,
                                             const frg_gp_user_kernel *user,
                                             frgi_gp_params *params);
void frgi_gp_kernel_destroy(frgi_gp_kernel **k, frg_context *ctx);
/** The expression with current values, readable back by the parser; values not set yet are left
 *  out. */
FRG_MUST_USE frg_status frgi_gp_kernel_print(const frgi_gp_kernel *k, frg_context *ctx,
                                             const frgi_gp_params *params, frgi_text *out);
/** The variance s of C = s C0 where one multiplies the whole expression, -1 elsewhere (see
 *  frgi_gp_pass.scale). */
int frgi_gp_kernel_scale(const frgi_gp_kernel *k);
/** Is k(x, x') differentiable in x at x = x'? */
bool frgi_gp_kernel_smooth(const frgi_gp_kernel *k);

/** Points as the tiles want them: one column after another (structure of arrays), in the
 *  arithmetic's type, best with a centre taken out in double precision; linear and polynomial
 *  leaves add it back. */
typedef struct {
    frg_dtype dtype;
    ptrdiff_t n, d;
    ptrdiff_t ld;          /* elements from column to column, >= n */
    const void *x;         /* d x ld */
    const double *centre;  /* d: what was subtracted, the same for bound and new points; NULL:
                              nothing */
    const double *raw;     /* n x d row-major as given: for the user's kernel, NULL without one */
    const double *largest; /* d: the largest |x| of each column, NULL: looked for at every
                              binding */
} frgi_gp_points;

/** An expression bound to parameter values: scaled copies of the points, constants of every node.
 *  Memory is the caller's: frgi_gp_bound_bytes(kernel, dtype, n, threads), 64-byte aligned; the
 *  kernel, theta, the points and what they point to must live as long.  One call at a time on a
 *  bound expression (it holds the threads' scratch). */
typedef struct frgi_gp_bound frgi_gp_bound;
size_t frgi_gp_bound_bytes(const frgi_gp_kernel *k, frg_dtype dtype, ptrdiff_t n, int threads);
/** theta: all parameters of the process (the kernel's come first). */
frgi_gp_bound *frgi_gp_bind(const frg_context *ctx, const frgi_gp_kernel *k, const double *theta,
                            const frgi_gp_points *points, void *memory, int threads);

/** C into the lower triangle of `a`, nothing added to the diagonal; kept: NULL, or the elements of
 *  a second matrix of the same order and type that receive what the pass can use again (the
 *  exponential). Rows of a tile are written up to the next whole vector of 64 bytes. */
FRG_MUST_USE frg_status frgi_gp_build(frg_context *ctx, const frgi_gp_bound *b, const frgi_spd *a,
                                      void *kept);

/** What a gradient pass needs and gives. */
typedef struct {
    const frgi_spd *inverse; /* K^-1, or P itself where alpha is NULL; its type is that of the
                                points or f32 */
    const void *alpha; /* n x q, column-major with ld n, of the points' type: W = alpha alpha' - q
                            K^-1 */
    const void *beta;  /* NULL, or n x q: W = (alpha beta' + beta alpha')/2 - q K^-1 */
    ptrdiff_t q;
    const void *kept;    /* from frgi_gp_build, or NULL: recomputed */
    const double *extra; /* NULL, or n x extra_q, column-major: W gains sum of outer products
                            (REML: sqrt(q) E) */
    ptrdiff_t extra_q;
    const double *scale; /* NULL: all from the pass.  Else 1/2 sum_ij W_ij C_ij, where the caller
                            has it free in f64 (scale_gradient of gp_gradient.c): becomes the
                            gradient of frgi_gp_kernel_scale() */
    double *gradient;    /* kernel parameters: 1/2 sum_ij W_ij dC_ij/dlog theta; fixed ones too */
    double *dx;          /* NULL, or n x d row-major: sum_j W_ij dk(x_i, x_j)/dx_i = d ell/dx_i;
                            twice the price */
    double *trace;       /* NULL, or one value: sum_ij inverse_ij C_ij */
} frgi_gp_pass;
FRG_MUST_USE frg_status frgi_gp_run_pass(frg_context *ctx, const frgi_gp_bound *b,
                                         const frgi_gp_pass *pass);
/** v (n x p, column-major) <- dC/dlog theta_t a for every kernel parameter t: O(p n^2). like: a
 *  matrix of these points, by whose tiles the rows are dealt out. */
FRG_MUST_USE frg_status frgi_gp_derivative_products(frg_context *ctx, const frgi_gp_bound *b,
                                                    const frgi_spd *like, const double *a,
                                                    double *v);

/** m other points against the bound ones: out[i + j * ld] = k(new_i, x_j), i < m; and k(new_i,
 *  new_i). */
FRG_MUST_USE frg_status frgi_gp_cross(frg_context *ctx, const frgi_gp_bound *b,
                                      const frgi_gp_points *new_points, ptrdiff_t first,
                                      ptrdiff_t m, void *out, ptrdiff_t ld);
void frgi_gp_self(const frgi_gp_bound *b, const frgi_gp_points *new_points, ptrdiff_t first,
                  ptrdiff_t m, double *diagonal);
/** The same with white(...), which points of a process (or such as become its points) have with
 *  themselves; and white(...) alone. */
void frgi_gp_self_training(const frgi_gp_bound *b, const frgi_gp_points *points, ptrdiff_t first,
                           ptrdiff_t m, double *diagonal);
void frgi_gp_white(const frgi_gp_bound *b, const frgi_gp_points *points, ptrdiff_t first,
                   ptrdiff_t m, double *white);
/** gx (m x d, row-major) <- sum_j w[i + j * ldw] dk(new_i, x_j)/dnew_i; w in double. */
FRG_MUST_USE frg_status frgi_gp_cross_dx(frg_context *ctx, const frgi_gp_bound *b,
                                         const frgi_gp_points *new_points, ptrdiff_t first,
                                         ptrdiff_t m, const double *w, ptrdiff_t ldw, double *gx);
/** gx (m x d) <- d k(new_i, new_i)/d new_i (not zero for linear and polynomial kernels). */
void frgi_gp_self_dx(const frgi_gp_bound *b, const frgi_gp_points *new_points, ptrdiff_t first,
                     ptrdiff_t m, double *gx);

#pragma GCC visibility pop
#endif
