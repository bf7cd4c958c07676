/* gw_at.cl.h - where the numbers of Sinkhorn's iteration lie on a device; for kernels and host.
 *
 * One block of reals v and one of counts.  at[SK_...] (i64) says where a vector begins in v and how
 * long vectors are.
 */

/** Of `at`: lengths, places of vectors. */
enum {
    SK_N,
    SK_M,
    SK_EACH,   /* rows of a group */
    SK_CHUNKS, /* groups of rows */
    SK_BLOCKS, /* groups of SK_BLOCK_COLUMNS columns */
    SK_ACCELERATE,
    SK_RELAXED,
    SK_PRODUCT,    /* the entropy is relative to a b' */
    SK_EXACT_ROWS, /* of the plan's sums: rows are made a */
    SK_PARAMETERS, /* SKP_COUNT */
    SK_STATES,     /* two of SKS_COUNT */
    SK_A,          /* n from here on */
    SK_LOG_A,
    SK_H0,
    SK_LP, /* F - H0 */
    SK_P,  /* of the plan, as SK_Y .. SK_V of frgi_rounding */
    SK_U,
    SK_ROW_SUM, /* of the plan as the rows of a pass left it, or as it is finished */
    SK_ROW_COST,
    SK_B, /* m from here on */
    SK_LOG_B,
    SK_G0,
    SK_G,
    SK_G_LAST,
    SK_COL,
    SK_Y,
    SK_V,
    SK_BEFORE_G0, /* G0 and g as an outer step began with them */
    SK_BEFORE_G,
    SK_CHANGE,    /* 1: largest less smallest change of G since */
    SK_PARTIAL,   /* chunks x m */
    SK_OF_CHUNKS, /* 2 x chunks x SK_CHUNK_COUNT */
    SK_OF_BLOCKS, /* blocks x SK_BLOCK_COUNT */
    SK_AT_COUNT
};

/** Parameters. */
enum {
    SKP_K,
    SKP_TOL,
    SKP_TOTAL,
    SKP_LOW, /* fixed point: c = low + step q */
    SKP_STEP,
    SKP_TAU_A,
    SKP_TAU_B,
    SKP_BY_A, /* 1 / rho, 0 where balanced */
    SKP_BY_B,
    SKP_RATE_A, /* 1 / (rho k) */
    SKP_RATE_B,
    SKP_UNIT, /* k / (1 / rho_a + 1 / rho_b) */
    SKP_SUM_A,
    SKP_SUM_B,
    SKP_DUMMY_A,
    SKP_DUMMY_B,
    SKP_NOISE, /* what rounding may leave of the error, and how much of the largest |G| */
    SKP_NOISE_OF_REACH,
    SKP_COUNT
};

/** Of eight rows of costs as they are given. */
enum { SK_SEEN_LEAST, SK_SEEN_MOST, SK_SEEN_BAD, SK_SEEN_COUNT };

/** Of a row of distances as they are given; FAR of what becomes of them. */
enum {
    LV_SEEN_BAD,  /* the first column that is no distance, or n */
    LV_SEEN_MOST, /* the largest finite one */
    LV_SEEN_GAP,  /* |x_ik - x_ki| at most */
    LV_SEEN_DIAGONAL,
    LV_SEEN_FAR, /* the largest finite one of (x_ik + x_ki) / 2 as a float */
    LV_SEEN_CUT, /* 1: some are infinite */
    LV_SEEN_SUM, /* sum_k (k + 1) of these, without the infinite ones: tells data apart */
    LV_SEEN_COUNT
};

/** Numbers of a state; slot 0 or 1. */
enum {
    SKS_ERROR,     /* of the last pass that was looked at */
    SKS_MOMENTUM,  /* of the next step */
    SKS_SHIFT,     /* to be added to every g */
    SKS_INCREMENT, /* largest |g| */
    SKS_REACH,     /* largest |G0 + g| */
    SKS_LEAST,     /* error (gw_floor.h) */
    SKS_LOG_G,     /* partial: log2 sum_j 2^G_j */
    SKS_DUMMY_G,   /* partial: potential of the dummy column */
    SKS_FROM_A,    /* relaxed: what exponents of the penalties are taken from */
    SKS_FROM_B,
    SKS_COUNT
};

/** Why passes have ended: the error is within tol, at the floor of rounding (gw_floor.h), no
 *  number. */
enum { SKD_WITHIN = 1, SKD_AT_FLOOR, SKD_NOT_A_NUMBER };

/** Counts of a state; slot 0 or 1. */
enum {
    SKC_PASSES,
    SKC_SINCE,
    SKC_STEPS, /* gw_floor.h */
    SKC_STALE,
    SKC_DONE,    /* 0, or why the passes have ended: SKD_... */
    SKC_PENDING, /* a pass has begun whose error was not looked at */
    SKC_FAR,     /* rows of the last pass that were out of range */
    SKC_LOST,    /* its columns below what sums can tell */
    SKC_AREA,    /* where the last pass wrote its chunks' numbers, 0 or 1 */
    SKC_COUNT
};

enum {
    SK_ROWS = 8,
    SK_REDUCED = 14, /* numbers that are reduced together, at most */
    SK_STRIP = 64,
    SK_BLOCK_COLUMNS = 32,
    SK_FOLD = 1024, /* elements of a group */
    SK_NARROW = 16384,
    LV_TILE = 64,  /* rows and columns of a product that a group makes, four by four an item */
    LV_ENERGY = 0, /* of numbers of a plan, here to LV_MOMENTS: from its pairs */
    LV_ERROR,
    LV_LINEAR, /* the mean of a linear cost at them, squares of what they differ from it */
    LV_LINEAR_SQUARE,
    LV_MASS, /* of the plan */
    LV_MOMENTS,
    SK_CHUNK_COUNT = 4, /* rows out of range, dummy row, penalty, its largest exponent */
    /* error, lost, penalty, increment, reach, highest step, minus the lowest, largest exponent of
     * the penalty; partial: largest G and the sum of 2^G relative to it, the same of G_last */
    SK_BLOCK_COUNT = 12
};
