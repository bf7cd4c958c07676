/* fe_cg.cl.h - conjugate gradients on the Schur complement, four kernels a step.
 *
 *     fe_spread     t_u = 1/N_u sum_i w_i e_i,   e_i = sum_f p[index_if]     by eliminated levels
 *                   z = w (e - t),  p'Sp = sum w (e - t)^2
 *     fe_pieces     sums of z over stretches of the transposed index
 *     fe_update     q_l = sum of the pieces of l;  a += alpha p,  r -= alpha q;
 *                   rho' = r'M^-1 r,  sum r^2 / N,  max |r| / N
 *     fe_direction  p <- M^-1 r + (rho'/rho) p, and whether a column goes on (fe_cg.c)
 *
 * p'Sp comes with the product, as a sum of squares, so that a step has two sums over all and no
 * kernel of its own for either: each group of the next kernel adds what the groups of the last
 * have left, in the same order.  Where a row has one reduced index and weight 1, z is -t, of
 * levels instead of rows, and q_l = N_l p_l + sum z.
 *
 * K columns lie side by side (fe_pieces.h).
 */

/** z of eliminated level u and column k; returns its share of p'Sp. */
FUNCTION real fe_spread_level(GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i64 u,
                              int k)
{
    GLOBAL const i32 *const start = w + at[FD_ELIM_START], *const index = w + at[FD_INDEX];
    GLOBAL const real *const p = v + at[FD_P];
    const int remaining = (int)at[FD_REMAINING], columns = (int)at[FD_K];
    const i32 begin = start[u], end = start[u + 1];
    real sum = 0, share = 0;
    for (i64 i = begin; i < end; i++) {
        const real weight = at[FD_WEIGHTED] ? v[at[FD_WEIGHT] + i] : R(1);
        sum += weight * fe_row_value(p, index, remaining, i, k, columns);
    }
    const real mean = sum * v[at[FD_ELIM_INVERSE] + u];
    for (i64 i = begin; i < end; i++) {
        const real weight = at[FD_WEIGHTED] ? v[at[FD_WEIGHT] + i] : R(1);
        const real left = fe_row_value(p, index, remaining, i, k, columns) - mean;
        share += weight * left * left;
        if (!at[FD_BY_LEVEL]) {
            v[at[FD_Z] + i * columns + k] = weight * left;
        }
    }
    if (at[FD_BY_LEVEL]) {
        v[at[FD_Z] + u * columns + k] = -mean;
    }
    return share;
}

KERNEL void fe_spread(ITEM GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i32 *counts,
                      GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    const i64 first = GID0 * FD_SPREAD;
    const i64 last = fe_goes_on(counts, columns, slot) ? least(first + FD_SPREAD, at[FD_U]) : first;
    for (int k = l.lane; k < columns; k += l.width) {
        real share = 0;
        for (i64 u = first + l.place; u < last; u += l.per) {
            share += fe_spread_level(v, w, at, u, k);
        }
        share = fe_lane_sum(scratch, share, &l);
        if (l.place == 0) {
            v[at[FD_OF_SPREADS] + GID0 * columns + k] = share;
        }
    }
}

/** q_l of column k. */
FUNCTION real fe_product_of(GLOBAL const real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i64 l,
                            int k)
{
    const i64 e = l * at[FD_K] + k;
    return fe_level_sum(v, w, at, l, k) + v[at[FD_BASE] + l] * v[at[FD_P] + e];
}

/** start: a step of length 0, for the sums alone. */
KERNEL void fe_update(ITEM GLOBAL real *v, GLOBAL const i32 *w, GLOBAL const i32 *counts,
                      GLOBAL const i64 *at, i32 slot, i32 start)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    GLOBAL const i32 *const done = counts + (slot * FDC_COUNT + FDC_DONE) * columns;
    GLOBAL const real *const state = v + at[FD_STATE] + slot * FDS_COUNT * columns;
    GLOBAL real *const out = v + at[FD_OF_UPDATES] + GID0 * 3 * columns;
    const i64 first = GID0 * FD_UPDATE, end = least(first + FD_UPDATE, at[FD_R]);
    const i64 last = start || fe_goes_on(counts, columns, slot) ? end : first;
    const i64 spreads = start ? 0 : at[FD_SPREADS];
    for (int k = l.lane; k < columns; k += l.width) {
        real curvature = 0, rho = 0, gradient = 0, most = 0;
        for (i64 s = l.place; s < spreads; s += l.per) {
            curvature += v[at[FD_OF_SPREADS] + s * columns + k];
        }
        curvature = fe_lane_sum(scratch, curvature, &l);
        const real before = state[FDS_RHO * columns + k];
        const int moves = !start && done[k] == FD_RUNNING && curvature > R(0) && before > R(0);
        const real alpha = moves ? before / curvature : R(0);
        for (i64 j = first + l.place; j < last; j += l.per) {
            const i64 e = j * columns + k;
            const real q = moves ? fe_product_of(v, w, at, j, k) : R(0);
            const real r = v[at[FD_RESIDUAL] + e] - alpha * q;
            v[at[FD_A] + e] += moves ? alpha * v[at[FD_P] + e] : R(0);
            v[at[FD_RESIDUAL] + e] = r;
            rho += r * (v[at[FD_INVERSE] + j] * r);
            gradient += r * (v[at[FD_LEVEL_INVERSE] + j] * r);
            most = FMAX(most, FABS(r) * v[at[FD_LEVEL_INVERSE] + j]);
        }
        rho = fe_lane_sum(scratch, rho, &l);
        gradient = fe_lane_sum(scratch, gradient, &l);
        most = fe_lane_max(scratch, most, &l);
        if (l.place == 0) {
            out[k] = rho;
            out[columns + k] = gradient;
            out[2 * columns + k] = most;
        }
        if (l.place == 0 && GID0 == 0) {
            v[at[FD_ALPHA] + k] = alpha;
        }
    }
}

/** Is a residual with these sums at the target of column k (at_target of fe_cg.c)?  FDT_GAIN: or so
 *  much smaller than the first, where no more can be told. */
FUNCTION int fe_at_target(GLOBAL const real *target, const real *state, int columns, int k)
{
    const real weight = target[FDT_WEIGHT * columns + k], tol = target[FDT_TOL * columns + k];
    const real energy_left = target[FDT_WITHIN * columns + k] - state[FDS_ENERGY];
    const real left = FMAX(energy_left, target[FDT_NOISE * columns + k]);
    const real most = weight > R(0) ? R(0.5) * tol * SQRT(FMAX(left, R(0)) / weight) : R(0);
    const real allowed = FMAX(most, target[FDT_FLOOR * columns + k]);
    const real total = target[FDT_TOTAL * columns + k];
    return !(weight > R(0)) || state[FDS_MEAN] == R(0) ||
           state[FDS_MEAN] <= target[FDT_GAIN * columns + k] * state[FDS_FIRST_MEAN] ||
           (state[FDS_MEAN] <= allowed && SQRT(state[FDS_GRADIENT]) <= R(0.5) * tol * SQRT(total));
}

/** The step of a column that ran: its entries of the Lanczos matrix, beta (returned), and whether
 *  it goes on. */
FUNCTION real fe_step_of(GLOBAL const real *target, real *state, i32 *count, real alpha, real rho,
                         int columns, int k)
{
    if (alpha == R(0)) { /* no residual left in the range of S */
        count[FDC_DONE] = FD_NULL;
        return R(0);
    }
    const real beta = rho / state[FDS_RHO];
    state[FDS_ENERGY] += alpha * state[FDS_RHO];
    state[FDS_CARRY] = beta / alpha;
    state[FDS_CARRY2] = state[FDS_CARRY] / alpha;
    state[FDS_RHO] = rho;
    count[FDC_STEPS]++;
    count[FDC_DONE] = fe_at_target(target, state, columns, k) ? FD_REACHED
                      : count[FDC_STEPS] >= count[FDC_MOST]   ? FD_GIVEN_UP
                                                              : FD_RUNNING;
    return beta;
}

/** Sums of the residual over all groups of fe_update. */
FUNCTION void fe_gather_updates(GLOBAL const real *v, GLOBAL const i64 *at, LOCAL real *scratch,
                                const fe_lanes *l, int k, real *sums)
{
    const int columns = (int)at[FD_K];
    real rho = 0, gradient = 0, most = 0;
    for (i64 g = l->place; g < at[FD_UPDATES]; g += l->per) {
        GLOBAL const real *const of = v + at[FD_OF_UPDATES] + g * 3 * columns;
        rho += of[k];
        gradient += of[columns + k];
        most = FMAX(most, of[2 * columns + k]);
    }
    sums[0] = fe_lane_sum(scratch, rho, l);
    sums[1] = fe_lane_sum(scratch, gradient, l);
    sums[2] = fe_lane_max(scratch, most, l);
}

/** p <- M^-1 r + beta p; the state, read from `slot`, is written to the other. */
KERNEL void fe_direction(ITEM GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at, i32 slot,
                         i32 start)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    const int columns = (int)at[FD_K];
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    GLOBAL const real *const target = v + at[FD_TARGET];
    const i64 first = GID0 * FD_UPDATE, end = least(first + FD_UPDATE, at[FD_R]);
    const int on = start || fe_goes_on(counts, columns, slot);
    for (int k = l.lane; k < columns; k += l.width) {
        real state[FDS_COUNT], sums[3], beta = 0;
        i32 count[FDC_COUNT];
        for (int q = 0; q < FDS_COUNT; q++) {
            state[q] = v[at[FD_STATE] + (slot * FDS_COUNT + q) * columns + k];
        }
        for (int q = 0; q < FDC_COUNT; q++) {
            count[q] = counts[(slot * FDC_COUNT + q) * columns + k];
        }
        fe_gather_updates(v, at, scratch, &l, k, sums);
        const real alpha = v[at[FD_ALPHA] + k];
        const i32 step = count[FDC_STEPS];
        const real diagonal = alpha > R(0) ? 1 / alpha + state[FDS_CARRY] : R(0);
        const real below = state[FDS_CARRY2];
        state[FDS_GRADIENT] = on ? sums[1] : state[FDS_GRADIENT];
        state[FDS_MEAN] = on ? sums[2] : state[FDS_MEAN];
        const int ran = !start && count[FDC_DONE] == FD_RUNNING;
        if (start) {
            state[FDS_RHO] = state[FDS_FIRST_RHO] = sums[0];
            state[FDS_FIRST_MEAN] = sums[2];
            state[FDS_ENERGY] = state[FDS_CARRY] = state[FDS_CARRY2] = 0;
            count[FDC_STEPS] = 0;
            const int small = sums[2] <= target[FDT_FLOOR * columns + k];
            count[FDC_DONE] = small || fe_at_target(target, state, columns, k) ? FD_REACHED
                              : count[FDC_MOST] <= 0                           ? FD_GIVEN_UP
                                                                               : FD_RUNNING;
        } else if (ran) {
            beta = fe_step_of(target, state, count, alpha, sums[0], columns, k);
        }
        const int goes_on = count[FDC_DONE] == FD_RUNNING;
        for (i64 j = first + l.place; j < end && goes_on; j += l.per) {
            const i64 e = j * columns + k;
            const real p = start ? R(0) : beta * v[at[FD_P] + e];
            v[at[FD_P] + e] = v[at[FD_INVERSE] + j] * v[at[FD_RESIDUAL] + e] + p;
        }
        for (int q = 0; q < FDS_COUNT && l.place == 0 && GID0 == 0; q++) {
            v[at[FD_STATE] + ((1 - slot) * FDS_COUNT + q) * columns + k] = state[q];
        }
        for (int q = 0; q < FDC_COUNT && l.place == 0 && GID0 == 0; q++) {
            counts[((1 - slot) * FDC_COUNT + q) * columns + k] = count[q];
        }
        if (ran && alpha > R(0) && step < FD_KNOWN && l.place == 0 && GID0 == 0) {
            v[at[FD_HISTORY] + (i64)step * columns + k] = diagonal;
            v[at[FD_HISTORY] + (FD_KNOWN + (i64)step) * columns + k] = below;
        }
    }
}
