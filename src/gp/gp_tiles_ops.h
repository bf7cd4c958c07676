/* gp_tiles_ops.h - an expression ready to run over pairs of points, and the steps over one patch of
 * pairs.
 *
 * A patch is GP_ROWS points i by up to GP_COLS points j, column by column:  value[j * GP_ROWS + i].
 * Its rows are copied into `x` (one slot after another, GP_ROWS each, zeros behind the last), its
 * columns are read where they stand.  A slot is one coordinate of one leaf, in the form in which
 * the leaf wants it:
 *
 *     factor * x_column + shift         1/l_k for radial leaves, the centre added back for linear
 *                                       ones
 *
 * Forward: the value of every step, in order.  Backward: with the adjoint of the root set to a
 * weight g_ij, adjoints of all steps, then per row i the sums over j of g dk/dlog theta_t or g
 * dk/dx_ik.  Rows beyond `rows` are computed and never used; sums over at most GP_COLS terms are in
 * the arithmetic's type, longer ones in double.
 */
#ifndef FRGI_GP_TILES_OPS_H
#define FRGI_GP_TILES_OPS_H

#include "gp/gp_tree.h"

#pragma GCC visibility push(hidden)

enum { GP_ROWS = 64, GP_COLS = 16, GP_PATCH = GP_ROWS * GP_COLS, GP_CHUNK = 16, GP_AUX = 3 };

typedef struct {
    const void *cols; /* n values */
    int32_t column;   /* of x */
    double factor, shift;
} frgi_gp_slot;

/** One node with its constants. */
typedef struct {
    frgi_gp_kind kind;
    int children, child; /* number, and first in frgi_gp_program.child */
    int dims, degree;
    int slot; /* first of dims */
    int n_groups;
    frgi_gp_group group[GP_GROUPS];
    const void *constant; /* of the arithmetic's type, see gp_leaves and gp_periodic */
} frgi_gp_step;

typedef struct {
    int n_steps, n_slots, n_parameters, max_dims;
    const frgi_gp_step *step;
    const int *child;
    const frgi_gp_slot *slot;
    bool radial; /* [scale *] one radial leaf: step 0, and 1 */
    frg_gp_user_kernel user;
    const double *user_theta;
    const double *user_cols; /* n x dims of the leaf, as given */
    int user_dims;
} frgi_gp_program;

typedef struct {
    /* in use; each thread writes to its patch all the time: cache lines of its own */
    _Alignas(64) int rows, cols;
    int m;            /* rows rounded up to GP_CHUNK */
    ptrdiff_t i0, j0; /* first point of the rows, of the columns */
    bool training;    /* rows are bound points: i0 + i == j0 + j is a point with itself */
    bool lower;       /* only pairs on or below the diagonal are wanted (radial path) */
    bool by_row;      /* sums of the user's kernel are wanted row by row */
    void *x;          /* n_slots x GP_ROWS */
    void *value;      /* n_steps x GP_PATCH */
    void *aux;        /* n_steps x GP_AUX x GP_PATCH */
    void *adjoint;    /* n_steps x GP_PATCH */
    void *lane;       /* work: (3 max_dims + 4) x GP_ROWS, and a patch */
    double *sum;      /* n_parameters x GP_ROWS: per row sums of g dk/dlog theta */
    double *gx;       /* d x GP_ROWS: of g dk/dx_i */
    double *tile;     /* GP_PATCH + n_parameters: for the user's kernel */
    const double *user_rows;
} frgi_gp_patch;

/** Where W of a patch comes from: see frgi_gp_pass. */
typedef struct {
    const void *tile; /* of the inverse; rows and columns begin at row, col of it */
    ptrdiff_t ld, row, col;
    bool transposed; /* the patch lies above the diagonal: its mirror image is read */
    bool diagonal;   /* the tile crosses the diagonal */
    bool full;       /* W as it is; else its lower half, the diagonal halved */
    const void *alpha, *beta;
    ptrdiff_t q, n;
    const double *extra;
    ptrdiff_t extra_q;
} frgi_gp_weights;

typedef struct {
    /** values of all steps */
    void (*forward)(const frgi_gp_program *g, frgi_gp_patch *p);
    /** adjoints of all steps from the root's */
    void (*backward)(const frgi_gp_program *g, frgi_gp_patch *p);
    /** sum += g dk/dlog theta */
    void (*parameters)(const frgi_gp_program *g, frgi_gp_patch *p);
    /** gx += g dk/dx_i */
    void (*inputs)(const frgi_gp_program *g, frgi_gp_patch *p);
    /** the root's adjoint <- W, 0 beyond `rows` */
    void (*seed_weights)(const frgi_gp_program *g, const frgi_gp_weights *w, frgi_gp_patch *p);
    /** trace[i] += sum_j inverse_ij C_ij over the pairs of the patch, those below the diagonal
     *  twice */
    void (*trace)(const frgi_gp_program *g, const frgi_gp_weights *w, const frgi_gp_patch *p,
                  double *trace);
    /** the root's adjoint <- a_j in every row; <- w[i + j * ld], 0 beyond `rows`; <- 2 where row
     *  and column have the same place, 0 elsewhere */
    void (*seed_columns)(const frgi_gp_program *g, const double *a, frgi_gp_patch *p);
    void (*copy_weights)(const frgi_gp_program *g, const double *w, ptrdiff_t ld, frgi_gp_patch *p);
    void (*seed_diagonal)(const frgi_gp_program *g, frgi_gp_patch *p);
    /** diagonal[j] <- the root's value of row j0 + j and column j */
    void (*read_diagonal)(const frgi_gp_program *g, const frgi_gp_patch *p, double *diagonal);
    /** the root's value into out[i + j * ld], exactly `rows` x `cols` */
    void (*store)(const frgi_gp_program *g, const frgi_gp_patch *p, void *out, ptrdiff_t ld);
    /** slots of the rows from m points first, first + 1, ... of a structure of arrays */
    void (*load_rows)(const frgi_gp_program *g, const frgi_gp_points *points, ptrdiff_t first,
                      frgi_gp_patch *p);
    /** [variance *] one radial leaf: C (and what the pass uses again) of the patch, rows rounded up
     *  to 64 bytes */
    void (*radial_build)(const frgi_gp_program *g, frgi_gp_patch *p, void *out, void *kept,
                         ptrdiff_t ld);
    /** the same for its sums and the trace; kept NULL: computed again */
    void (*radial_pass)(const frgi_gp_program *g, const frgi_gp_weights *w, frgi_gp_patch *p,
                        const void *kept, ptrdiff_t ld, double *trace);
    /** one slot of n points */
    void (*fill_slot)(const frgi_gp_slot *slot, const frgi_gp_points *points, void *out);
} frgi_gp_tiles_ops;

#pragma GCC visibility pop
#endif
