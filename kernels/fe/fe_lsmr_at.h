/* fe_lsmr_at.h - where the numbers of LSMR in row space lie on a device, behind those of
 * fe_layout.h; for kernels and host.
 */

/** Of `at`; all in v. */
enum {
    FL_ROOT = FD_OWN, /* R: 1 / sqrt(N_l) */
    FL_GOAL,          /* FLG_COUNT x K */
    FL_STATE,         /* 2 x FLS_COUNT x K */
    FL_STEP,          /* FLC_COUNT x K */
    FL_U,             /* n x K: u / sqrt(w); the same as FD_Z without weights */
    FL_V,             /* R x K */
    FL_SCALED,        /* v / sqrt(N), which the rows gather */
    FL_H,
    FL_H_BAR,
    FL_X,
    FL_OF_V, /* groups x K: sums of v^2, */
    FL_OF_X, /* 2 x groups x K: and of x^2 */
    FL_END
};

/** When a column stops. */
enum {
    FLG_ATOL,
    FLG_BTOL,
    FLG_COND, /* the least 1 / cond; 0: any */
    FLG_EPSILON,
    FLG_COUNT
};

/** State of a column, in the notation of sparse/lsmr.c; ||b|| is 1. */
enum {
    FLS_AL,
    FLS_AB,
    FLS_ZB,
    FLS_Z,
    FLS_RHO,
    FLS_RB,
    FLS_CB,
    FLS_SB,
    FLS_BDD,
    FLS_BD,
    FLS_RD,
    FLS_TT,
    FLS_TH,
    FLS_R,      /* ||r|| */
    FLS_A,      /* ||A||_F, */
    FLS_SQUARE, /* and its square with the last alpha */
    FLS_MX,
    FLS_MN,
    FLS_COND,
    FLS_COUNT
};

/** Coefficients of a step. */
enum {
    FLC_H_BAR, /* hb <- h - . hb */
    FLC_X,     /* x <- x + . hb */
    FLC_H,     /* h <- v - . h */
    FLC_V,     /* v <- . v */
    FLC_BACK,  /* u <- A v - . u, the next step's */
    FLC_COUNT
};

/** FDC_DONE: numbers of frg_lsmr_stop. */
enum {
    FL_CONSISTENT = 1,
    FL_LEAST_SQUARES,
    FL_COND_LIMIT,
    FL_CONSISTENT_EPS,
    FL_LEAST_SQUARES_EPS,
    FL_COND_EPS,
    FL_MAX_ITER,
    FL_ZERO
};
