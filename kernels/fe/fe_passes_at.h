/* fe_passes_at.h - where the numbers of the passes over the columns lie on a device, behind
 * those of fe_layout.h; for kernels and host.
 */

/** Of `at`. */
enum {
    FC_X = FD_OWN,  /* in v: the columns, then what is left of them; rows are FC_STRIDE apart */
    FC_STRIDE,      /* at least K */
    FC_ROW_PIECE,   /* in w: 3 x row pieces: eliminated level, first row, number of rows */
    FC_LEVEL_FIRST, /* U: a level's first row piece; its others follow */
    FC_ROW_SHORT,   /* row pieces that an item adds, each all of a level; those behind are a group's
                     */
    FC_ROW_PIECES,  /* all of them */
    FC_LAST,        /* in w, where rows have values: FD_REMAINING: 1: a factor's last column */
    FC_A,           /* in v: R x K: effects that are taken out */
    FC_BASE,        /* U x K: x of a level's first row */
    FC_PIECE_SUM,   /* row pieces x K: sum of w (x - D_r a - base), */
    FC_LEFT,        /* and of w r */
    FC_SLOPE_SUM,   /* FC_ROUNDS x row pieces x FD_ELIM_WIDTH x K: sums of w phi_j y */
    FC_OF_ROWS,     /* groups x 2 x K */
    FC_OF_LEVELS,   /* groups x 4 x K */
    FC_UNKNOWNS,    /* R x K: D_r' z */
    FC_TOTAL,       /* FCT_COUNT x K */
    FC_EFFECT,      /* in effects: of the eliminated levels, or of their orthonormal columns,
                       FC_EFFECT_STRIDE apart */
    FC_EFFECT_STRIDE,
    FC_SCALE, /* in v: K: what fe_column_scale multiplies by */
    FC_END
};

/** What a pass does. */
enum {
    FC_RHS,
    FC_RESIDUAL,
    FC_TRY /* the residual, but x and the effects stay */
};

/** Of fe_slope_rows: D_r a is taken out, phi_j, and phi_j again. */
enum { FC_VALUES, FC_ONCE, FC_TWICE, FC_ROUNDS };

enum { FC_SCALED = 4096 /* numbers that a group of fe_column_scale has */ };

/** Totals of a column: of the right-hand side, */
enum { FCT_WEIGHT, FCT_MEAN, FCT_SQUARE, FCT_WITHIN, FCT_LARGEST, FCT_COUNT };
/** and of the residual. */
enum { FCT_LEFT_SQUARE, FCT_GRADIENT, FCT_WORST_MEAN, FCT_WORST, FCT_EFFECT };
