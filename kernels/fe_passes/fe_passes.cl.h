/* fe_passes.cl.h - the passes over the columns: right-hand side and residual with their audits.
 *
 *     right-hand side   m_u = 1/N_u sum_i w_i x_i                      z = w (x - m),   s = D_r' z
 *     residual          m_u = 1/N_u sum_i w_i (x_i - sum_f a[index_if])
 *                       r = x - D_r a - m,   x <- r                    z = w r,         s = D_r' z
 *
 *     fe_column_sums      sums over row pieces, stretches of the rows of one eliminated level
 *     fe_column_rows      m from the pieces of its level; z, and x <- r
 *     fe_column_levels    what the eliminated levels say: moments about the mean, or the audit
 *     fe_pieces           sums of z over stretches of the transposed index
 *     fe_column_unknowns  s
 *     fe_column_moments   the groups' numbers put together, by one group,
 *     fe_column_audit     or those of the audit
 *
 *     fe_column_scale     x <- x times a number a column, beside the passes
 *
 * With varying slopes a row has its values in D_r, and of eliminated levels with slopes the residual
 * is that of fe_slopes.cl.h; a right-hand side takes their means out in any case.
 *
 * As on the host x is taken as the difference to the first row of its eliminated level.  Rows are
 * those of the device, in the order of the eliminated levels; K columns lie side by side.
 */

/** (D_r a)_i of column k; *most, where rows have values: the largest |effect of a factor| that was
 *  seen. */
FUNCTION real fe_column_effects(GLOBAL const real *v, GLOBAL const i32 *w, GLOBAL const i64 *at,
                                i64 i, int k, real *most)
{
    GLOBAL const i32 *const index = w + at[FD_INDEX], *const last = w + at[FC_LAST];
    GLOBAL const real *const a = v + at[FC_A], *const value = v + at[FD_VALUE];
    const int columns = (int)at[FD_K], remaining = (int)at[FD_REMAINING];
    real all = 0, own = 0;
    if (!at[FD_VALUED]) {
        return fe_row_value(a, index, remaining, i, k, columns);
    }
    for (int f = 0; f < remaining; f++) {
        const i64 e = i * remaining + f;
        own += value[e] * a[(i64)index[e] * columns + k];
        if (last[f]) {
            *most = FMAX(*most, FABS(own));
            all += own;
            own = 0;
        }
    }
    return all;
}

/** x of row i and column k, without the effects a where they are taken out; *most: as above. */
FUNCTION real fe_column_value(GLOBAL const real *v, GLOBAL const i32 *w, GLOBAL const i64 *at,
                              i64 i, int k, i32 pass, real *most)
{
    const real x = v[at[FC_X] + i * at[FC_STRIDE] + k];
    return pass != FC_RHS ? x - fe_column_effects(v, w, at, i, k, most) : x;
}

FUNCTION real fe_column_weight(GLOBAL const real *v, GLOBAL const i64 *at, i64 i)
{
    return at[FD_WEIGHTED] ? v[at[FD_WEIGHT] + i] : R(1);
}

/** The sum over rows first + place, first + place + step, ... of a row piece. */
FUNCTION real fe_column_piece(GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i64 piece,
                              int k, int place, int step, i32 pass)
{
    GLOBAL const i32 *const of = w + at[FC_ROW_PIECE] + 3 * piece;
    const i64 start = w[at[FD_ELIM_START] + of[0]], end = of[1] + of[2];
    const real base = v[at[FC_X] + start * at[FC_STRIDE] + k];
    real sum = 0, most = 0;
    for (i64 i = (i64)of[1] + place; i < end; i += step) {
        sum += fe_column_weight(v, at, i) * (fe_column_value(v, w, at, i, k, pass, &most) - base);
    }
    if (of[1] == start && place == 0) {
        v[at[FC_BASE] + of[0] * at[FD_K] + k] = base;
    }
    return sum;
}

KERNEL void fe_column_sums(ITEM GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i32 pass)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    const i64 groups = (at[FC_ROW_SHORT] + FD_PIECE_GROUP - 1) / FD_PIECE_GROUP;
    const i64 first = GID0 * FD_PIECE_GROUP, piece = at[FC_ROW_SHORT] + GID0 - groups;
    const i64 last = GID0 < groups ? least(first + FD_PIECE_GROUP, at[FC_ROW_SHORT]) : first;
    for (int k = l.lane; k < columns; k += l.width) {
        for (i64 s = first + l.place; s < last; s += l.per) {
            v[at[FC_PIECE_SUM] + s * columns + k] = fe_column_piece(v, w, at, s, k, 0, 1, pass);
        }
        real sum = 0;
        if (GID0 >= groups) {
            sum = fe_column_piece(v, w, at, piece, k, l.place, l.per, pass);
        }
        sum = fe_lane_sum(scratch, sum, &l);
        if (l.place == 0 && GID0 >= groups) {
            v[at[FC_PIECE_SUM] + piece * columns + k] = sum;
        }
    }
}

/** Row pieces of eliminated level u. */
FUNCTION i64 fe_column_pieces(GLOBAL const i32 *w, GLOBAL const i64 *at, i64 u)
{
    GLOBAL const i32 *const start = w + at[FD_ELIM_START];
    const i64 rows = start[u + 1] - start[u];
    return rows > FD_ITEM_ENTRIES ? (rows + FD_GROUP_ENTRIES - 1) / FD_GROUP_ENTRIES : 1;
}

/** The sum over the pieces of eliminated level u of a number a piece. */
FUNCTION real fe_column_level(GLOBAL const real *v, GLOBAL const i32 *w, GLOBAL const i64 *at,
                              int which, i64 u, int k)
{
    const i64 first = w[at[FC_LEVEL_FIRST] + u];
    real sum = 0;
    for (i64 s = first; s < first + fe_column_pieces(w, at, u); s++) {
        sum += v[at[which] + s * at[FD_K] + k];
    }
    return sum;
}

/** What is seen of a column: three sums, a largest number, and the largest mean with the eliminated
 *  level where it is, the first of several. */
typedef struct {
    real a, b, c;
    real most;
    real mean, worst;
} fe_column_seen;
#define FE_COLUMN_SEEN 6 /* numbers of it */

FUNCTION fe_column_seen fe_column_nothing(real worst)
{
    fe_column_seen s;
    s.a = s.b = s.c = s.most = s.mean = 0;
    s.worst = worst;
    return s;
}

FUNCTION void fe_column_keep(LOCAL real *scratch, int item, fe_column_seen s)
{
    scratch[item] = s.a;
    scratch[GROUP_MOST + item] = s.b;
    scratch[2 * GROUP_MOST + item] = s.c;
    scratch[3 * GROUP_MOST + item] = s.most;
    scratch[4 * GROUP_MOST + item] = s.mean;
    scratch[5 * GROUP_MOST + item] = s.worst;
}

FUNCTION fe_column_seen fe_column_kept(LOCAL const real *scratch, int item)
{
    fe_column_seen s;
    s.a = scratch[item];
    s.b = scratch[GROUP_MOST + item];
    s.c = scratch[2 * GROUP_MOST + item];
    s.most = scratch[3 * GROUP_MOST + item];
    s.mean = scratch[4 * GROUP_MOST + item];
    s.worst = scratch[5 * GROUP_MOST + item];
    return s;
}

FUNCTION fe_column_seen fe_column_join(fe_column_seen s, fe_column_seen t)
{
    const int other = t.mean > s.mean || (t.mean == s.mean && t.worst < s.worst);
    s.a += t.a;
    s.b += t.b;
    s.c += t.c;
    s.most = FMAX(s.most, t.most);
    s.mean = other ? t.mean : s.mean;
    s.worst = other ? t.worst : s.worst;
    return s;
}

/** What the items of a column have seen, by one tree; every item has it. */
INLINED FUNCTION fe_column_seen fe_column_all(LOCAL real *scratch, fe_column_seen mine,
                                              const fe_lanes *l)
{
    fe_column_keep(scratch, LID0, mine);
    BARRIER;
    for (int span = l->span; span > 0; span /= 2) {
        if (fe_lane_takes(l, span)) {
            fe_column_keep(scratch, LID0,
                           fe_column_join(fe_column_kept(scratch, LID0),
                                          fe_column_kept(scratch, LID0 + span * l->width)));
        }
        BARRIER;
    }
    const fe_column_seen all = fe_column_kept(scratch, l->lane);
    BARRIER;
    return all;
}

/** z of the rows of a piece, and x <- r; a: sum of w (x - m)^2, or of w r^2, b: of w r; the largest
 *  |x|, or |effect of a factor| where rows have values. */
FUNCTION fe_column_seen fe_column_piece_rows(GLOBAL real *v, GLOBAL const i32 *w,
                                             GLOBAL const i64 *at, i64 piece, int k, int place,
                                             int step, i32 pass)
{
    GLOBAL const i32 *const of = w + at[FC_ROW_PIECE] + 3 * piece;
    const i64 u = of[0], end = of[1] + of[2];
    const real base = v[at[FC_BASE] + u * at[FD_K] + k];
    const real mean = fe_column_level(v, w, at, FC_PIECE_SUM, u, k) * v[at[FD_ELIM_INVERSE] + u];
    fe_column_seen seen = fe_column_nothing(0);
    for (i64 i = (i64)of[1] + place; i < end; i += step) {
        real effect = 0;
        const real x = fe_column_value(v, w, at, i, k, pass, &effect);
        const real d = x - base - mean, wd = fe_column_weight(v, at, i) * d;
        v[at[FD_Z] + i * at[FD_K] + k] = wd;
        seen.a += wd * d;
        seen.b += wd;
        seen.most = FMAX(seen.most, pass != FC_RHS ? effect : FABS(x));
        if (pass == FC_RESIDUAL) {
            v[at[FC_X] + i * at[FC_STRIDE] + k] = d;
        }
    }
    return seen;
}

KERNEL void fe_column_rows(ITEM GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i32 pass)
{
    LOCAL_MEM(real, scratch, FE_COLUMN_SEEN * GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    const i64 groups = (at[FC_ROW_SHORT] + FD_PIECE_GROUP - 1) / FD_PIECE_GROUP;
    const i64 first = GID0 * FD_PIECE_GROUP, piece = at[FC_ROW_SHORT] + GID0 - groups;
    const i64 last = GID0 < groups ? least(first + FD_PIECE_GROUP, at[FC_ROW_SHORT]) : first;
    for (int k = l.lane; k < columns; k += l.width) {
        fe_column_seen all = fe_column_nothing(0);
        for (i64 s = first + l.place; s < last; s += l.per) {
            const fe_column_seen one = fe_column_piece_rows(v, w, at, s, k, 0, 1, pass);
            v[at[FC_LEFT] + s * columns + k] = one.b;
            all = fe_column_join(all, one);
        }
        if (GID0 >= groups) {
            all = fe_column_piece_rows(v, w, at, piece, k, l.place, l.per, pass);
        }
        all = fe_column_all(scratch, all, &l);
        if (l.place == 0) {
            v[at[FC_OF_ROWS] + (2 * GID0 + 0) * columns + k] = all.a;
            v[at[FC_OF_ROWS] + (2 * GID0 + 1) * columns + k] = all.most;
            if (GID0 >= groups) {
                v[at[FC_LEFT] + piece * columns + k] = all.b;
            }
        }
    }
}

/** An eliminated level's mean about `shift`; a: weights, b: weighted sum, c: and square. */
FUNCTION fe_column_seen fe_column_level_mean(GLOBAL const real *v, GLOBAL const i32 *w,
                                             GLOBAL const i64 *at, i64 u, int k, real shift)
{
    fe_column_seen seen = fe_column_nothing(0);
    const real inverse = v[at[FD_ELIM_INVERSE] + u], weight = inverse > 0 ? 1 / inverse : 0;
    const real mean = fe_column_level(v, w, at, FC_PIECE_SUM, u, k) * inverse;
    const real c = v[at[FC_BASE] + u * at[FD_K] + k] - shift + mean;
    seen.a = weight;
    seen.b = weight * c;
    seen.c = weight * c * c;
    return seen;
}

/** What is left of an eliminated level: its mean, a: the gradient; the largest |effect|. */
FUNCTION fe_column_seen fe_column_level_left(GLOBAL const real *v, GLOBAL real *effects,
                                             GLOBAL const i32 *w, GLOBAL const i64 *at, i64 u,
                                             int k, i32 pass, i32 add)
{
    fe_column_seen seen = fe_column_nothing(R(u));
    GLOBAL real *const to = effects + at[FC_EFFECT] + u * at[FC_EFFECT_STRIDE] + k;
    const real inverse = v[at[FD_ELIM_INVERSE] + u];
    const real left = fe_column_level(v, w, at, FC_LEFT, u, k);
    const real effect =
        v[at[FC_BASE] + u * at[FD_K] + k] + fe_column_level(v, w, at, FC_PIECE_SUM, u, k) * inverse;
    seen.a = left * left * inverse;
    seen.mean = FABS(left * inverse);
    seen.most = FABS(effect);
    if (pass == FC_RESIDUAL) {
        *to = add ? *to + effect : effect;
    }
    return seen;
}

/** The same of a level with slopes (fe_slopes.cl.h). */
FUNCTION fe_column_seen fe_slope_level_left(GLOBAL const real *v, GLOBAL real *effects,
                                            GLOBAL const i32 *w, GLOBAL const i64 *at, i64 u, int k,
                                            i32 pass, i32 add);

KERNEL void fe_column_levels(ITEM GLOBAL real *v, GLOBAL real *effects, GLOBAL const i32 *w,
                             GLOBAL const i64 *at, i32 pass, i32 add)
{
    LOCAL_MEM(real, scratch, FE_COLUMN_SEEN * GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    const i64 first = GID0 * FD_SPREAD, last = least(first + FD_SPREAD, at[FD_U]);
    for (int k = l.lane; k < columns; k += l.width) {
        const real shift = pass == FC_RHS ? v[at[FC_BASE] + first * columns + k] : R(0);
        fe_column_seen all = fe_column_nothing(R(at[FD_U]));
        for (i64 u = first + l.place; u < last; u += l.per) {
            fe_column_seen one;
            if (pass == FC_RHS) {
                one = fe_column_level_mean(v, w, at, u, k, shift);
            } else if (at[FD_ELIM_WIDTH]) {
                one = fe_slope_level_left(v, effects, w, at, u, k, pass, add);
            } else {
                one = fe_column_level_left(v, effects, w, at, u, k, pass, add);
            }
            all = fe_column_join(all, one);
        }
        all = fe_column_all(scratch, all, &l);
        GLOBAL real *const to = v + at[FC_OF_LEVELS] + 4 * GID0 * columns + k;
        if (l.place == 0) {
            const real middle = all.a > 0 ? all.b / all.a : R(0);
            to[0] = all.a;
            to[columns] = pass != FC_RHS ? all.mean : shift + middle;
            to[2 * columns] = pass != FC_RHS ? all.worst : FMAX(all.c - all.b * middle, R(0));
            to[3 * columns] = all.most;
        }
    }
}

KERNEL void fe_column_unknowns(ITEM GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at)
{
    const int columns = (int)at[FD_K];
    const i64 first = GID0 * FD_UPDATE, last = least(first + FD_UPDATE, at[FD_R]);
    for (i64 e = first * columns + LID0; e < last * columns; e += LSIZE0) {
        v[at[FC_UNKNOWNS] + e] = fe_level_sum(v, w, at, e / columns, (int)(e % columns));
    }
}

/** Number `which` of `of` in group g of the groups' numbers at `from`. */
FUNCTION real fe_column_of(GLOBAL const real *v, GLOBAL const i64 *at, int from, i64 g, int of,
                           int which, int k)
{
    return v[at[from] + (of * g + which) * at[FD_K] + k];
}

/** What the groups that went along the rows have left, by the item's groups; c: the share. */
FUNCTION fe_column_seen fe_column_of_rows(GLOBAL const real *v, GLOBAL const i64 *at, fe_lanes l,
                                          int k)
{
    const i64 short_pieces = at[FC_ROW_SHORT];
    const i64 groups =
        (short_pieces + FD_PIECE_GROUP - 1) / FD_PIECE_GROUP + at[FC_ROW_PIECES] - short_pieces;
    fe_column_seen seen = fe_column_nothing(R(at[FD_U]));
    for (i64 g = l.place; g < groups; g += l.per) {
        seen.c += fe_column_of(v, at, FC_OF_ROWS, g, 2, 0, k);
        seen.most = FMAX(seen.most, fe_column_of(v, at, FC_OF_ROWS, g, 2, 1, k));
    }
    return seen;
}

/* Moments about the mean of all rows, from those of each group about its own (Chan, Golub and
 * LeVeque 1983); by one group. */
KERNEL void fe_column_moments(ITEM GLOBAL real *v, GLOBAL const i64 *at)
{
    LOCAL_MEM(real, scratch, FE_COLUMN_SEEN * GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    for (int k = l.lane; k < columns; k += l.width) {
        const real near = fe_column_of(v, at, FC_OF_LEVELS, GID0, 4, 1, k);
        fe_column_seen all = fe_column_of_rows(v, at, l, k);
        for (i64 g = l.place; g < at[FD_SPREADS]; g += l.per) {
            const real weight = fe_column_of(v, at, FC_OF_LEVELS, g, 4, 0, k);
            all.a += weight;
            all.b += weight * (fe_column_of(v, at, FC_OF_LEVELS, g, 4, 1, k) - near);
        }
        all = fe_column_all(scratch, all, &l);
        const real mean = near + (all.a > 0 ? all.b / all.a : R(0));
        real square = 0;
        for (i64 g = l.place; g < at[FD_SPREADS]; g += l.per) {
            const real gap = fe_column_of(v, at, FC_OF_LEVELS, g, 4, 1, k) - mean;
            square += fe_column_of(v, at, FC_OF_LEVELS, g, 4, 2, k) +
                      fe_column_of(v, at, FC_OF_LEVELS, g, 4, 0, k) * gap * gap;
        }
        square = fe_lane_sum(scratch, square, &l);
        GLOBAL real *const total = v + at[FC_TOTAL] + k;
        if (l.place == 0) {
            total[FCT_WEIGHT * columns] = all.a;
            total[FCT_MEAN * columns] = mean;
            total[FCT_SQUARE * columns] = square + all.c;
            total[FCT_WITHIN * columns] = all.c;
            total[FCT_LARGEST * columns] = all.most;
        }
    }
}

/* The audit of the eliminated levels of all groups, and the sum of squares; by one group. */
KERNEL void fe_column_audit(ITEM GLOBAL real *v, GLOBAL const i64 *at)
{
    LOCAL_MEM(real, scratch, FE_COLUMN_SEEN * GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    for (int k = l.lane; k < columns; k += l.width) {
        fe_column_seen all = fe_column_of_rows(v, at, l, k);
        for (i64 g = GID0 + l.place; g < at[FD_SPREADS]; g += l.per) {
            fe_column_seen one = fe_column_nothing(fe_column_of(v, at, FC_OF_LEVELS, g, 4, 2, k));
            one.a = fe_column_of(v, at, FC_OF_LEVELS, g, 4, 0, k);
            one.mean = fe_column_of(v, at, FC_OF_LEVELS, g, 4, 1, k);
            one.most = fe_column_of(v, at, FC_OF_LEVELS, g, 4, 3, k);
            all = fe_column_join(all, one);
        }
        all = fe_column_all(scratch, all, &l);
        GLOBAL real *const total = v + at[FC_TOTAL] + k;
        if (l.place == 0) {
            total[FCT_LEFT_SQUARE * columns] = all.c;
            total[FCT_GRADIENT * columns] = all.a;
            total[FCT_WORST_MEAN * columns] = all.mean;
            total[FCT_WORST * columns] = all.worst;
            total[FCT_EFFECT * columns] = all.most;
        }
    }
}

KERNEL void fe_column_scale(ITEM GLOBAL real *v, GLOBAL const i64 *at, i64 n)
{
    const i64 columns = at[FD_K], first = GID0 * FC_SCALED;
    const i64 last = least(first + FC_SCALED, n * columns);
    for (i64 e = first + LID0; e < last; e += LSIZE0) {
        const i64 i = e / columns, k = e % columns;
        v[at[FC_X] + i * at[FC_STRIDE] + k] *= v[at[FC_SCALE] + k];
    }
}
