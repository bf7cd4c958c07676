/* fe_lsmr.cl.h - LSMR in row space, A = (I - P_1) W^(1/2) D_r N^(-1/2): four kernels a step.
 *
 *     lsmr_rows     u <- A v - (al / be) u, and its projection on the eliminated levels is taken out
 *                   again;  be^2 = ||u||^2.  With varying slopes a level has several orthonormal
 *                   columns phi, and a row its values in them
 *     fe_pieces     sums of W^(1/2) u over stretches of the transposed index
 *     lsmr_levels   v <- A'u / be - be v;  al^2 = ||v||^2
 *     lsmr_step     v <- v / al;  hb <- h - a hb;  x <- x + b hb;  h <- v - c h;  ||x||^2
 *
 * The bidiagonalisation of Golub and Kahan and the rotations of Fong and Saunders (2011), as in
 * sparse/lsmr.c.  u is kept unscaled and over W^(1/2).  Each group of a kernel adds what the groups
 * of the last have left, in the same order.  Fused, each group of lsmr_step computes the scalars of
 * the step, and the first leaves them for the next; else the host has put them into FL_STEP.
 * Whether a step was a column's last is known once ||x|| has been added: in the next lsmr_step,
 * which then leaves the column as it is.
 */

/** Of column k: (A_r v)_i, by the row's values where it has them. */
FUNCTION real lsmr_row_value(GLOBAL const real *v, GLOBAL const real *values, GLOBAL const i32 *w,
                             GLOBAL const i64 *at, i64 i, int k)
{
    GLOBAL const i32 *const index = w + at[FD_INDEX];
    GLOBAL const real *const p = v + at[FL_SCALED], *const value = values + at[FD_VALUE];
    const int remaining = (int)at[FD_REMAINING], columns = (int)at[FD_K];
    real e = 0;
    if (!at[FD_VALUED]) {
        return fe_row_value(p, index, remaining, i, k, columns);
    }
    for (i64 f = i * remaining; f < (i + 1) * remaining; f++) {
        e += value[f] * p[(i64)index[f] * columns + k];
    }
    return e;
}

/** u of the rows of an eliminated level <- u - phi_j (sum w phi_j u), for one of its orthonormal
 *  columns phi_j after another. */
FUNCTION void lsmr_take_out(GLOBAL real *v, GLOBAL const real *values, GLOBAL const i64 *at,
                            i32 begin, i32 end, int k)
{
    GLOBAL const real *const phi = values + at[FD_ELIM_VALUE];
    GLOBAL real *const u = v + at[FL_U];
    const int width = (int)at[FD_ELIM_WIDTH], columns = (int)at[FD_K];
    for (int j = 0; j < width; j++) {
        real sum = 0;
        for (i64 i = begin; i < end; i++) {
            const real weight = at[FD_WEIGHTED] ? v[at[FD_WEIGHT] + i] : R(1);
            sum += weight * phi[i * width + j] * u[i * columns + k];
        }
        for (i64 i = begin; i < end; i++) {
            u[i * columns + k] -= phi[i * width + j] * sum;
        }
    }
}

/** u of eliminated level e and column k; returns its share of ||u||^2. */
FUNCTION real lsmr_level(GLOBAL real *v, GLOBAL const real *values, GLOBAL const i32 *w,
                         GLOBAL const i64 *at, i64 e, int k)
{
    GLOBAL const i32 *const start = w + at[FD_ELIM_START];
    const int columns = (int)at[FD_K], weighted = (int)at[FD_WEIGHTED];
    const real back = v[at[FL_STEP] + FLC_BACK * columns + k];
    const i32 begin = start[e], end = start[e + 1];
    real sum = 0, share = 0;
    for (i64 i = begin; i < end; i++) {
        const real weight = weighted ? v[at[FD_WEIGHT] + i] : R(1);
        const i64 at_u = at[FL_U] + i * columns + k;
        real u = 0;
        if (weight > R(0)) {
            u = lsmr_row_value(v, values, w, at, i, k) - back * v[at_u];
        }
        sum += weight * u;
        v[at_u] = u;
    }
    lsmr_take_out(v, values, at, begin, end, k);
    const real mean = at[FD_ELIM_WIDTH] ? R(0) : sum * v[at[FD_ELIM_INVERSE] + e];
    for (i64 i = begin; i < end; i++) {
        const real weight = weighted ? v[at[FD_WEIGHT] + i] : R(1);
        const i64 at_u = at[FL_U] + i * columns + k;
        const real u = weight > R(0) ? v[at_u] - mean : R(0);
        share += weight * u * u;
        v[at_u] = u;
        if (weighted) {
            v[at[FD_Z] + i * columns + k] = weight * u;
        }
    }
    return share;
}

FUNCTION int lsmr_runs(GLOBAL const i32 *counts, int columns, int slot, int k)
{
    return counts[(slot * FDC_COUNT + FDC_DONE) * columns + k] == FD_RUNNING;
}

/** The sum over all groups of what each has left for column k. */
FUNCTION real lsmr_total(GLOBAL const real *of, i64 groups, int columns, int k, const fe_lanes *l,
                         LOCAL real *scratch)
{
    real sum = 0;
    for (i64 g = l->place; g < groups; g += l->per) {
        sum += of[g * columns + k];
    }
    return fe_lane_sum(scratch, sum, l);
}

KERNEL void lsmr_rows(ITEM GLOBAL real *v, GLOBAL const real *values, GLOBAL const i32 *w,
                      GLOBAL const i32 *counts, GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    const i64 first = GID0 * FD_SPREAD, last = least(first + FD_SPREAD, at[FD_U]);
    for (int k = l.lane; k < columns; k += l.width) {
        const i64 end = lsmr_runs(counts, columns, slot, k) ? last : first;
        real share = 0;
        for (i64 e = first + l.place; e < end; e += l.per) {
            share += lsmr_level(v, values, w, at, e, k);
        }
        share = fe_lane_sum(scratch, share, &l);
        if (l.place == 0) {
            v[at[FD_OF_SPREADS] + GID0 * columns + k] = share;
        }
    }
}

KERNEL void lsmr_levels(ITEM GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i32 *counts,
                        GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    const i64 first = GID0 * FD_UPDATE, last = least(first + FD_UPDATE, at[FD_R]);
    for (int k = l.lane; k < columns; k += l.width) {
        const i64 end = lsmr_runs(counts, columns, slot, k) ? last : first;
        const real be =
            SQRT(lsmr_total(v + at[FD_OF_SPREADS], at[FD_SPREADS], columns, k, &l, scratch));
        const real inverse = be > R(0) ? 1 / be : R(0);
        real square = 0;
        for (i64 j = first + l.place; j < end; j += l.per) {
            const i64 e = at[FL_V] + j * columns + k;
            const real sum = v[at[FL_ROOT] + j] * fe_level_sum(v, w, at, j, k);
            const real next = inverse * sum - be * v[e];
            square += next * next;
            v[e] = next;
        }
        square = fe_lane_sum(scratch, square, &l);
        if (l.place == 0) {
            v[at[FL_OF_V] + GID0 * columns + k] = square;
        }
    }
}

/** (c, s) with c a + s b = r >= 0, -s a + c b = 0; the identity for a = b = 0. */
typedef struct {
    real c, s, r;
} lsmr_rotation;

FUNCTION lsmr_rotation lsmr_rotate(real a, real b)
{
    const real most = FMAX(FABS(a), FABS(b));
    lsmr_rotation q;
    q.c = 1;
    q.s = q.r = 0;
    if (most > R(0)) {
        const real x = a / most, y = b / most;
        q.r = most * SQRT(x * x + y * y);
        q.c = a / q.r;
        q.s = b / q.r;
    }
    return q;
}

FUNCTION real lsmr_quotient(real a, real b)
{
    return b != R(0) ? a / b : R(0);
}

/** ||r||, by one more rotation that makes R bar's transpose triangular. */
FUNCTION real lsmr_residual(real *s, real z_before, real tb, const lsmr_rotation *plain)
{
    const real bh = plain->c * s[FLS_BDD], th_before = s[FLS_TH];
    const lsmr_rotation tilde = lsmr_rotate(s[FLS_RD], tb);
    s[FLS_BDD] = -plain->s * s[FLS_BDD];
    s[FLS_TH] = tilde.s * s[FLS_RB];
    s[FLS_RD] = tilde.c * s[FLS_RB];
    s[FLS_BD] = tilde.c * bh - tilde.s * s[FLS_BD];
    s[FLS_TT] = lsmr_quotient(z_before - th_before * s[FLS_TT], tilde.r);
    const real td = lsmr_quotient(s[FLS_Z] - s[FLS_TH] * s[FLS_TT], s[FLS_RD]);
    const real left = s[FLS_BD] - td;
    return SQRT(left * left + s[FLS_BDD] * s[FLS_BDD]);
}

/** The rotations of step number `steps` and the recurrences of the norms; the step's coefficients. */
FUNCTION void lsmr_advance(real *s, real be, real al, i32 steps, real *step)
{
    const real rho_before = s[FLS_RHO], rb_before = s[FLS_RB], z_before = s[FLS_Z];
    const lsmr_rotation plain = lsmr_rotate(s[FLS_AB], be);
    const real tn = plain.s * al, tb = s[FLS_SB] * plain.r, rt = s[FLS_CB] * plain.r;
    const lsmr_rotation bar = lsmr_rotate(rt, tn);
    s[FLS_AL] = al;
    s[FLS_AB] = plain.c * al;
    s[FLS_CB] = bar.c;
    s[FLS_SB] = bar.s;
    s[FLS_Z] = bar.c * s[FLS_ZB];
    s[FLS_ZB] = -bar.s * s[FLS_ZB];
    s[FLS_RHO] = plain.r;
    s[FLS_RB] = bar.r;
    step[FLC_H_BAR] = lsmr_quotient(tb * plain.r, rho_before * rb_before);
    step[FLC_X] = lsmr_quotient(s[FLS_Z], plain.r * bar.r);
    step[FLC_H] = lsmr_quotient(tn, plain.r);
    step[FLC_V] = lsmr_quotient(R(1), al);
    step[FLC_BACK] = lsmr_quotient(al, be);
    s[FLS_R] = lsmr_residual(s, z_before, tb, &plain);
    s[FLS_SQUARE] += be * be;
    s[FLS_A] = SQRT(s[FLS_SQUARE]);
    s[FLS_SQUARE] += al * al;
    s[FLS_MX] = FMAX(s[FLS_MX], rb_before);
    s[FLS_MN] = steps > 1 ? FMIN(s[FLS_MN], rb_before) : s[FLS_MN];
    s[FLS_COND] = lsmr_quotient(FMAX(s[FLS_MX], rt), FMIN(s[FLS_MN], rt));
}

/** Why column k stops where it is (the rules of sparse/lsmr.c); FD_RUNNING: it goes on. */
FUNCTION i32 lsmr_why(GLOBAL const real *target, const real *s, real x, const i32 *count,
                      int columns, int k)
{
    const real atol = target[FLG_ATOL * columns + k], btol = target[FLG_BTOL * columns + k];
    const real limit = target[FLG_COND * columns + k], tiny = target[FLG_EPSILON * columns + k];
    const real size = s[FLS_A] * x, r = s[FLS_R], most = s[FLS_A] * r, ar = FABS(s[FLS_ZB]);
    const int limited = limit > R(0), flat = !(limit * s[FLS_COND] < R(1));
    return r <= btol + atol * size                   ? FL_CONSISTENT
           : ar <= atol * most                       ? FL_LEAST_SQUARES
           : limited && flat                         ? FL_COND_LIMIT
           : r <= tiny * (1 + size)                  ? FL_CONSISTENT_EPS
           : ar <= tiny * most                       ? FL_LEAST_SQUARES_EPS
           : limited && !(tiny * s[FLS_COND] < R(1)) ? FL_COND_EPS
           : count[FDC_STEPS] >= count[FDC_MOST]     ? FL_MAX_ITER
                                                     : FD_RUNNING;
}

/** T = B'B of Golub and Kahan's bidiagonal B:
 *      T_jj = al_j^2 + be_(j+1)^2,    T_(j+1,j) = al_(j+1) be_(j+1)                   */
FUNCTION void lsmr_remember(GLOBAL real *history, i64 step, real al_before, real be, real al,
                            int columns, int k)
{
    if (step < FD_KNOWN) {
        history[step * columns + k] = al_before * al_before + be * be;
    }
    if (step + 1 < FD_KNOWN) {
        history[(FD_KNOWN + step + 1) * columns + k] = al * al * be * be;
    }
}

/** The scalars of column k's next step, from `slot` to the other where `first`; whether it goes
 *  on. */
FUNCTION int lsmr_scalars(GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at, int slot, int k,
                          const real *sums, int first, real *step)
{
    const int columns = (int)at[FD_K];
    real s[FLS_COUNT];
    i32 count[FDC_COUNT];
    for (int q = 0; q < FLS_COUNT; q++) {
        s[q] = v[at[FL_STATE] + (slot * FLS_COUNT + q) * columns + k];
    }
    for (int q = 0; q < FDC_COUNT; q++) {
        count[q] = counts[(slot * FDC_COUNT + q) * columns + k];
    }
    if (count[FDC_DONE] == FD_RUNNING && count[FDC_STEPS] > 0) {
        count[FDC_DONE] = lsmr_why(v + at[FL_GOAL], s, SQRT(sums[2]), count, columns, k);
    }
    const int runs = count[FDC_DONE] == FD_RUNNING;
    const real al_before = s[FLS_AL], be = SQRT(sums[0]), al = SQRT(sums[1]);
    if (runs) {
        count[FDC_STEPS]++;
        lsmr_advance(s, be, al, count[FDC_STEPS], step);
    }
    for (int q = 0; q < FLS_COUNT && first; q++) {
        v[at[FL_STATE] + ((1 - slot) * FLS_COUNT + q) * columns + k] = s[q];
    }
    for (int q = 0; q < FDC_COUNT && first; q++) {
        counts[((1 - slot) * FDC_COUNT + q) * columns + k] = count[q];
    }
    if (first && runs) {
        v[at[FL_STEP] + FLC_BACK * columns + k] = step[FLC_BACK];
        lsmr_remember(v + at[FD_HISTORY], count[FDC_STEPS] - 1, al_before, be, al, columns, k);
    }
    return runs;
}

/** The vectors' step of unknown j and column k; returns x_j^2. */
FUNCTION real lsmr_vectors(GLOBAL real *v, GLOBAL const i64 *at, i64 j, int k, const real *step)
{
    const i64 e = j * at[FD_K] + k;
    const real next = step[FLC_V] * v[at[FL_V] + e], h = v[at[FL_H] + e];
    const real bar = h - step[FLC_H_BAR] * v[at[FL_H_BAR] + e];
    const real x = v[at[FL_X] + e] + step[FLC_X] * bar;
    v[at[FL_V] + e] = next;
    v[at[FL_SCALED] + e] = v[at[FL_ROOT] + j] * next;
    v[at[FL_H_BAR] + e] = bar;
    v[at[FL_X] + e] = x;
    v[at[FL_H] + e] = next - step[FLC_H] * h;
    return x * x;
}

KERNEL void lsmr_step(ITEM GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at, i32 slot,
                      i32 fused)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    const int columns = (int)at[FD_K], on = fe_goes_on(counts, columns, slot);
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    const i64 groups = at[FD_UPDATES];
    const i64 first = GID0 * FD_UPDATE, last = least(first + FD_UPDATE, at[FD_R]);
    for (int k = l.lane; k < columns; k += l.width) {
        real sums[3], step[FLC_COUNT], square = 0;
        int runs = lsmr_runs(counts, columns, slot, k);
        for (int q = 0; q < FLC_COUNT; q++) {
            step[q] = fused ? R(0) : v[at[FL_STEP] + q * columns + k];
        }
        const i64 of[3] = {at[FD_OF_SPREADS], at[FL_OF_V], at[FL_OF_X] + slot * groups * columns};
        for (int q = 0; q < 3 && fused; q++) {
            const i64 count = on ? (q == 0 ? at[FD_SPREADS] : groups) : 0;
            sums[q] = lsmr_total(v + of[q], count, columns, k, &l, scratch);
        }
        if (fused) {
            runs = lsmr_scalars(v, counts, at, slot, k, sums, l.place == 0 && GID0 == 0, step);
        }
        for (i64 j = first + l.place; j < (runs ? last : first); j += l.per) {
            square += lsmr_vectors(v, at, j, k, step);
        }
        square = fe_lane_sum(scratch, square, &l);
        if (l.place == 0) {
            v[at[FL_OF_X] + ((1 - slot) * groups + GID0) * columns + k] = square;
        }
    }
}
