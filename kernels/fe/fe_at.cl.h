/* fe_at.cl.h - where the numbers of conjugate gradients lie on a device; for kernels and host.
 *
 * Letters of fe_rows.h: U eliminated levels, R reduced unknowns, K columns (1, 2, 4 or 8) side by
 * side.  One block of reals v, one of whole numbers w; at[FD_...] (i64) says where a vector begins.
 */

/** Of `at`. */
enum {
    FD_U,
    FD_R,
    FD_K,
    FD_REMAINING, /* reduced indices of a row */
    FD_WEIGHTED,
    FD_BY_LEVEL,    /* entries of the transposed index are eliminated levels, else rows */
    FD_SHORT,       /* pieces that an item adds; those behind are a group's */
    FD_PIECES,      /* all of them */
    FD_SPREADS,     /* groups of fe_spread */
    FD_UPDATES,     /* groups of fe_update */
    FD_ELIM_START,  /* in w: U + 1 */
    FD_INDEX,       /* n x FD_REMAINING */
    FD_PIECE,       /* 2 x pieces: first entry, number of entries */
    FD_LEVEL_PIECE, /* R + 1: pieces of a level, by way of FD_PIECE_OF */
    FD_PIECE_OF,    /* pieces */
    FD_ENTRY,       /* the transposed index */
    FD_WEIGHT,      /* in v: n, where there are weights */
    FD_ELIM_INVERSE,
    FD_BASE,    /* R: N_l where entries are eliminated levels, else 0 */
    FD_INVERSE, /* R: the preconditioner */
    FD_LEVEL_INVERSE,
    FD_TARGET,  /* FDT_COUNT x K */
    FD_STATE,   /* 2 x FDS_COUNT x K */
    FD_ALPHA,   /* K */
    FD_HISTORY, /* 2 x FD_KNOWN x K: the Lanczos matrix */
    FD_A,       /* R x K */
    FD_RESIDUAL,
    FD_P,
    FD_Z,          /* n x K, or U x K: what the entries of the transposed index point to */
    FD_SUM,        /* pieces x K */
    FD_OF_SPREADS, /* groups x K */
    FD_OF_UPDATES, /* groups x 3 x K */
    FD_AT_COUNT
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

/** Counts of a column: two slots of FDC_COUNT x K. */
enum { FDC_STEPS, FDC_DONE, FDC_MOST, FDC_COUNT };
enum { FD_RUNNING, FD_REACHED, FD_GIVEN_UP, FD_NULL }; /* FDC_DONE */

enum {
    FD_KNOWN = 1024,        /* steps that the history has room for */
    FD_SPREAD = 256,        /* eliminated levels of a group */
    FD_UPDATE = 512,        /* reduced unknowns of a group */
    FD_PIECE_GROUP = 256,   /* short pieces of a group */
    FD_ITEM_ENTRIES = 64,   /* entries of a short piece at most, */
    FD_GROUP_ENTRIES = 8192 /* and of a long one */
};
