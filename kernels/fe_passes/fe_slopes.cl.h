/* fe_slopes.cl.h - the residual where eliminated levels have varying slopes: orthonormal columns phi_j
 * each (fe_basis.h), FD_ELIM_WIDTH of them.
 *
 *     y = x - D_r a                m_uj = sum_i w_i phi_ij y_i
 *     y <- y - sum_j phi_j m_uj    m'_uj, the same sums of it
 *     r = y - sum_j phi_j m'_uj    g_uj, the same of r;   x <- r,   z = w r
 *
 *     fe_slope_rows   a round of these three, over row pieces; y lies in z's place
 *
 * and of the levels fe_column_levels has the effects m + m', and the audit of g.
 *
 * They are taken out twice because a mean may be many times what is left, all columns of a level at
 * once: for orthonormal ones twice is enough.
 */

/** Where sum j of a piece lies. */
FUNCTION i64 fe_slope_at(GLOBAL const i64 *at, int round, i64 piece, int j, int k)
{
    const i64 row = (round * at[FC_ROW_PIECES] + piece) * at[FD_ELIM_WIDTH] + j;
    return at[FC_SLOPE_SUM] + row * at[FD_K] + k;
}

/** The same sum over the pieces of level u. */
FUNCTION real fe_slope_level(GLOBAL const real *v, GLOBAL const i32 *w, GLOBAL const i64 *at,
                             int round, i64 u, int j, int k)
{
    const i64 first = w[at[FC_LEVEL_FIRST] + u];
    real sum = 0;
    for (i64 s = first; s < first + fe_column_pieces(w, at, u); s++) {
        sum += v[fe_slope_at(at, round, s, j, k)];
    }
    return sum;
}

/** y of the item's rows of a piece; the largest |effect of a factor|. */
FUNCTION real fe_slope_values(GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i64 piece,
                              int k, int place, int step)
{
    GLOBAL const i32 *const of = w + at[FC_ROW_PIECE] + 3 * piece;
    const i64 end = of[1] + of[2];
    real most = 0;
    for (i64 i = (i64)of[1] + place; i < end; i += step) {
        v[at[FD_Z] + i * at[FD_K] + k] = fe_column_value(v, w, at, i, k, FC_RESIDUAL, &most);
    }
    return most;
}

/** y <- y - sum_j phi_j m_j, m of the round before; the largest |phi_j m_j|. */
FUNCTION real fe_slope_take(GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i64 piece,
                            int k, int place, int step, int round)
{
    GLOBAL const i32 *const of = w + at[FC_ROW_PIECE] + 3 * piece;
    GLOBAL const real *const phi = v + at[FD_ELIM_VALUE];
    const int width = (int)at[FD_ELIM_WIDTH];
    const i64 end = of[1] + of[2];
    real most = 0;
    for (int j = 0; j < width; j++) {
        const real m = fe_slope_level(v, w, at, round - 1, of[0], j, k);
        for (i64 i = (i64)of[1] + place; i < end; i += step) {
            const real effect = phi[i * width + j] * m;
            v[at[FD_Z] + i * at[FD_K] + k] -= effect;
            most = FMAX(most, FABS(effect));
        }
    }
    return most;
}

/** The item's share of a piece's sum of w phi_j y. */
FUNCTION real fe_slope_sum(GLOBAL const real *v, GLOBAL const i32 *w, GLOBAL const i64 *at,
                           i64 piece, int j, int k, int place, int step)
{
    GLOBAL const i32 *const of = w + at[FC_ROW_PIECE] + 3 * piece;
    GLOBAL const real *const phi = v + at[FD_ELIM_VALUE] + j;
    const i64 end = of[1] + of[2];
    real sum = 0;
    for (i64 i = (i64)of[1] + place; i < end; i += step) {
        sum += fe_column_weight(v, at, i) * phi[i * at[FD_ELIM_WIDTH]] *
               v[at[FD_Z] + i * at[FD_K] + k];
    }
    return sum;
}

/** z <- w r and x <- r of the item's rows; its share of sum w r^2. */
FUNCTION real fe_slope_left(GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i64 piece,
                            int k, int place, int step, i32 pass)
{
    GLOBAL const i32 *const of = w + at[FC_ROW_PIECE] + 3 * piece;
    const i64 end = of[1] + of[2];
    real square = 0;
    for (i64 i = (i64)of[1] + place; i < end; i += step) {
        const i64 z = at[FD_Z] + i * at[FD_K] + k;
        const real r = v[z], wr = fe_column_weight(v, at, i) * r;
        v[z] = wr;
        square += wr * r;
        if (pass == FC_RESIDUAL) {
            v[at[FC_X] + i * at[FC_STRIDE] + k] = r;
        }
    }
    return square;
}

/** A round of a piece, up to its sums; the largest |effect|. */
FUNCTION real fe_slope_round(GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i64 piece,
                             int k, int place, int step, i32 round)
{
    return round == FC_VALUES ? fe_slope_values(v, w, at, piece, k, place, step)
                              : fe_slope_take(v, w, at, piece, k, place, step, round);
}

/** What the group's pieces have left: c: sum of w r^2; the largest |effect| up to the first round in
 *  which phi_j are taken out. */
FUNCTION void fe_slope_note(GLOBAL real *to, int columns, fe_column_seen seen, i32 round)
{
    if (round == FC_TWICE) {
        to[0] = seen.a;
    } else {
        to[columns] = round == FC_VALUES ? seen.most : FMAX(to[columns], seen.most);
    }
}

KERNEL void fe_slope_rows(ITEM GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i32 pass,
                          i32 round)
{
    LOCAL_MEM(real, scratch, FE_COLUMN_SEEN * GROUP_MOST);
    const int columns = (int)at[FD_K], width = (int)at[FD_ELIM_WIDTH], last = round == FC_TWICE;
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    const i64 groups = (at[FC_ROW_SHORT] + FD_PIECE_GROUP - 1) / FD_PIECE_GROUP;
    const i64 first = GID0 * FD_PIECE_GROUP, piece = at[FC_ROW_SHORT] + GID0 - groups;
    const i64 end = GID0 < groups ? least(first + FD_PIECE_GROUP, at[FC_ROW_SHORT]) : first;
    const int together = GID0 >= groups;
    for (int k = l.lane; k < columns; k += l.width) {
        fe_column_seen all = fe_column_nothing(0);
        for (i64 s = first + l.place; s < end; s += l.per) {
            all.most = FMAX(all.most, fe_slope_round(v, w, at, s, k, 0, 1, round));
            for (int j = 0; j < width; j++) {
                v[fe_slope_at(at, round, s, j, k)] = fe_slope_sum(v, w, at, s, j, k, 0, 1);
            }
            all.a += last ? fe_slope_left(v, w, at, s, k, 0, 1, pass) : R(0);
        }
        if (together) {
            all.most = fe_slope_round(v, w, at, piece, k, l.place, l.per, round);
        }
        for (int j = 0; j < width; j++) {
            const real mine = together ? fe_slope_sum(v, w, at, piece, j, k, l.place, l.per) : R(0);
            const real sum = fe_lane_sum(scratch, mine, &l);
            if (l.place == 0 && together) {
                v[fe_slope_at(at, round, piece, j, k)] = sum;
            }
        }
        if (together && last) {
            all.a = fe_slope_left(v, w, at, piece, k, l.place, l.per, pass);
        }
        all = fe_column_all(scratch, all, &l);
        if (l.place == 0) {
            fe_slope_note(v + at[FC_OF_ROWS] + 2 * GID0 * columns + k, columns, all, round);
        }
    }
}

/** What is left of an eliminated level: a: sum of g^2; the largest |g| / sqrt(N_u). */
FUNCTION fe_column_seen fe_slope_level_left(GLOBAL const real *v, GLOBAL real *effects,
                                            GLOBAL const i32 *w, GLOBAL const i64 *at, i64 u, int k,
                                            i32 pass, i32 add)
{
    const int width = (int)at[FD_ELIM_WIDTH];
    const real root = SQRT(v[at[FD_ELIM_INVERSE] + u]);
    fe_column_seen seen = fe_column_nothing(R(u));
    for (int j = 0; j < width; j++) {
        GLOBAL real *const to =
            effects + at[FC_EFFECT] + (u * width + j) * at[FC_EFFECT_STRIDE] + k;
        const real effect = fe_slope_level(v, w, at, FC_VALUES, u, j, k) +
                            fe_slope_level(v, w, at, FC_ONCE, u, j, k);
        const real left = fe_slope_level(v, w, at, FC_TWICE, u, j, k);
        seen.a += left * left;
        seen.mean = FMAX(seen.mean, FABS(left) * root);
        if (pass == FC_RESIDUAL) {
            *to = add ? *to + effect : effect;
        }
    }
    return seen;
}
