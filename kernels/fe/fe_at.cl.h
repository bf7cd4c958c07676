/* fe_at.cl.h - where the numbers of conjugate gradients lie on a device, behind those of fe_layout.h;
 * for kernels and host.
 */

/** Of `at`; all in v. */
enum {
    FD_BASE = FD_OWN, /* R: N_l where entries are eliminated levels, else 0 */
    FD_INVERSE,       /* R: the preconditioner */
    FD_TARGET,        /* FDT_COUNT x K */
    FD_STATE,         /* 2 x FDS_COUNT x K */
    FD_ALPHA,         /* K */
    FD_A,             /* R x K */
    FD_RESIDUAL,
    FD_P,
    FD_OF_UPDATES, /* groups x 3 x K */
    FD_CG_END
};

/** When a column has reached its target (fe_cg_target). */
enum { FDT_WEIGHT, FDT_WITHIN, FDT_NOISE, FDT_TOTAL, FDT_TOL, FDT_FLOOR, FDT_GAIN, FDT_COUNT };

/** State of a column. */
enum {
    FDS_RHO,
    FDS_FIRST_RHO,
    FDS_FIRST_MEAN,
    FDS_ENERGY,
    FDS_CARRY,  /* beta / alpha, */
    FDS_CARRY2, /* beta / alpha^2 */
    FDS_GRADIENT,
    FDS_MEAN,
    FDS_COUNT
};

enum { FD_REACHED = FD_RUNNING + 1, FD_GIVEN_UP, FD_NULL }; /* FDC_DONE */
