/* gw_lowrank_at.h - where the numbers of plans in factors lie on a device; for kernels and host.
 *
 * One block of reals v and one of counts.  at[LR_...] (i64) says where an array begins in v, and how
 * long arrays are: of side 0 from at on, of side 1 from at + LR_OF_SIDE on.
 */

/** Of `at`, for either side: its n points, and the arrays it has. */
enum {
    LR_POINTS,
    LR_CHUNKS,   /* groups of LR_CHUNK points */
    LR_WEIGHTS,  /* n */
    LR_FACTOR,   /* n x rank */
    LR_ROWS,     /* pairs x n: distances to them, centred */
    LR_MIDDLE,   /* pairs x rank: the other side's rows times its factor */
    LR_GRADIENT, /* n x rank, not divided by h */
    LR_LOG,      /* n x rank: what is projected, and its exponential relative to `shift` */
    LR_KERNEL,
    LR_SHIFT, /* n */
    LR_U,     /* n, rank: the scaling of rows and columns */
    LR_V,
    LR_SUMS,   /* rank: kernel' u */
    LR_PARTS,  /* LR_KINDS x chunks x rank */
    LR_ERRORS, /* chunks: of rows before a pass */
    LR_OF_SIDE
};

/** Of `at`, for both. */
enum {
    LR_RANK = 2 * LR_OF_SIDE,
    LR_PAIRS,
    LR_H, /* rank from here on */
    LR_GRADIENT_H,
    LR_LOG_H,
    LR_CORRECTION, /* of h >= h_min */
    LR_NUMBERS,    /* LRN_COUNT */
    LR_AT_COUNT
};

/** Numbers: max |gradient|, the value, the error of the last pass. */
enum { LRN_MOST, LRN_VALUE, LRN_ERROR, LRN_COUNT };

/** Why passes have ended: the error is within 1e-7; columns of a kernel are beyond the range of
 *  reals, and are to be taken into the logarithms; no number. */
enum { LRD_WITHIN = 1, LRD_LOST, LRD_NOT_A_NUMBER };

/** Counts. */
enum {
    LRC_PASSES,
    LRC_DONE,  /* 0, or LRD_... */
    LRC_LOST,  /* bit s: of side s */
    LRC_AGAIN, /* the pass is done once more, behind such columns */
    LRC_COUNT
};

/** Points of a group; kinds of sums by components that groups make. */
enum { LR_CHUNK = 64, LR_KINDS = 3 };
