/* fe_layout.h - where the rows lie on a device; for the kernels of fe and fe_lsmr and the host.
 *
 * Notation of fe_rows.h: U eliminated levels, R reduced unknowns, K columns side by side.  One block
 * of reals v, one of whole numbers w; at[FD_...] (i64) says where a vector begins.  A method's own
 * places follow from FD_OWN on.
 */

/** Of `at`. */
enum {
    FD_U,
    FD_R,
    FD_K,
    FD_REMAINING, /* reduced indices of a row */
    FD_WEIGHTED,
    FD_VALUED,      /* a row has FD_VALUE at its indices (varying slopes), else 1 */
    FD_ELIM_WIDTH,  /* orthonormal columns of an eliminated level; 0: its dummy alone */
    FD_BY_LEVEL,    /* entries of the transposed index are eliminated levels, else rows */
    FD_SHORT,       /* pieces that an item adds; those behind are a group's */
    FD_PIECES,      /* all of them */
    FD_SPREADS,     /* groups that go along the eliminated levels */
    FD_UPDATES,     /* groups that go along the reduced unknowns */
    FD_ELIM_START,  /* in w: U + 1 */
    FD_INDEX,       /* n x FD_REMAINING */
    FD_PIECE,       /* 2 x pieces: first entry, number of entries */
    FD_LEVEL_PIECE, /* R + 1: pieces of a level, by way of FD_PIECE_OF */
    FD_PIECE_OF,    /* pieces */
    FD_ENTRY,       /* the transposed index; where rows have values, places of these */
    FD_WEIGHT,      /* in v: n, where there are weights */
    FD_VALUE,       /* n x FD_REMAINING, where rows have values, */
    FD_ELIM_VALUE,  /* and n x FD_ELIM_WIDTH; of LSMR in double in the v of the passes */
    FD_ELIM_INVERSE,
    FD_LEVEL_INVERSE,
    FD_HISTORY,    /* 2 x FD_KNOWN x K: the tridiagonal matrix of the steps */
    FD_Z,          /* n x K, or U x K: what the entries of the transposed index point to */
    FD_SUM,        /* pieces x K */
    FD_OF_SPREADS, /* groups x K */
    FD_OWN,
    FD_AT_COUNT = FD_OWN + 20
};

/** Counts of a column: two slots of FDC_COUNT x K. */
enum { FDC_STEPS, FDC_DONE, FDC_MOST, FDC_COUNT };
enum { FD_RUNNING }; /* FDC_DONE; other numbers are the method's */

enum {
    FD_KNOWN = 1024,        /* steps that the history holds */
    FD_SPREAD = 256,        /* eliminated levels of a group */
    FD_UPDATE = 512,        /* reduced unknowns of a group */
    FD_PIECE_GROUP = 256,   /* short pieces of a group */
    FD_ITEM_ENTRIES = 64,   /* entries of a short piece at most, */
    FD_GROUP_ENTRIES = 8192 /* and of a long one */
};
