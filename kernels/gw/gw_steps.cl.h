/* gw_steps.cl.h - an alignment's outer step on a device, around the passes of gw_sinkhorn.cl.h.
 *
 *     Dx, Dy   distances of the sampled pairs to all points, less the points' means u and v
 *     cost     c_ij <- keep c_ij - (1 - keep) (2/R sum_r Dx_ri Dy_rj + 2 u_i v_j)
 *     renew    potentials into the exponents, at a new epsilon
 *     passes
 *     change   of G over the step
 *     draw     a column for each row that the host has drawn, from the row's weights in the plan
 *
 * and what is made of a plan: energies.  Weights of a row are sums in `wide`, in LV_RUNS runs of
 * columns whatever the size of a group is, so that a draw depends on the plan alone.
 */

/** Distances between points, scaled: all[k n + i] = scale |z_i - z_k|, a row a group. */
KERNEL void level_distances(ITEM GLOBAL real *all, GLOBAL const real *points, i64 n, i64 d,
                            real scale)
{
    const i64 k = GID0;
    for (i64 i = LID0; i < n; i += LSIZE0) {
        real square = 0;
        for (i64 c = 0; c < d; c++) {
            const real gap = points[i * d + c] - points[k * d + c];
            square += gap * gap;
        }
        all[k * n + i] = scale * SQRT(square);
    }
}

/** out[r n + i] = all[p n + i] - means[i] of the point p = points[index[r]], a row a group. */
KERNEL void level_rows(ITEM GLOBAL real *out, GLOBAL const real *all, GLOBAL const i32 *points,
                       GLOBAL const i32 *index, GLOBAL const real *means, i64 n)
{
    const i64 r = GID0, from = (i64)points[index[r]] * n;
    for (i64 i = LID0; i < n; i += LSIZE0) {
        out[r * n + i] = all[from + i] - means[i];
    }
}

/** sum[4 a + b] = sum_r left[r, i0 + a] right[r, j0 + b], in runs of 64; those beyond the edge as
 *  the last. */
FUNCTION void level_micro(GLOBAL const real *left, GLOBAL const float *right, i64 i0, i64 j0,
                          i64 rows, i64 columns, i64 rank, real *sum)
{
    i64 i[4], j[4];
    for (int q = 0; q < 4; q++) {
        i[q] = least(i0 + q, rows - 1);
        j[q] = least(j0 + q, columns - 1);
    }
    for (int q = 0; q < 16; q++) {
        sum[q] = 0;
    }
    for (i64 first = 0; first < rank; first += SK_STRIP) {
        real part[16] = {R(0)};
        const i64 last = least(first + SK_STRIP, rank);
        for (i64 r = first; r < last; r++) {
            for (int a = 0; a < 4; a++) {
                const real x = left[r * rows + i[a]];
                for (int b = 0; b < 4; b++) {
                    part[4 * a + b] += x * (real)right[r * columns + j[b]];
                }
            }
        }
        for (int q = 0; q < 16; q++) {
            sum[q] += part[q];
        }
    }
}

/** out_ij <- keep out_ij + scale sum_r left_ri right_rj + of_means u_i v_j; a tile a group.  keep
 *  0: what out was is not read; of_means 0: neither are u and v. */
KERNEL void level_product(ITEM GLOBAL real *out, GLOBAL const real *left, GLOBAL const float *right,
                          GLOBAL const real *u, GLOBAL const real *v, i64 rows, i64 columns,
                          i64 rank, real keep, real scale, real of_means)
{
    enum { EDGE = LV_TILE / 4 };
    for (int tile = LID0; tile < EDGE * EDGE; tile += LSIZE0) {
        const i64 i0 = GID0 * LV_TILE + tile / EDGE * 4, j0 = GID1 * LV_TILE + tile % EDGE * 4;
        real sum[16];
        if (i0 >= rows || j0 >= columns) {
            continue;
        }
        level_micro(left, right, i0, j0, rows, columns, rank, sum);
        for (int q = 0; q < 16; q++) {
            const i64 i = i0 + q / 4, j = j0 + q % 4, e = i * columns + j;
            if (i < rows && j < columns) {
                const real means = of_means != R(0) ? of_means * u[i] * v[j] : R(0);
                out[e] = (keep > R(0) ? keep * out[e] : R(0)) + (scale * sum[q] + means);
            }
        }
    }
}

/** An outer step begins: G0 and H0 <- the potentials as they are, times `ratio`, k the new one, and
 *  a new state.  What G0 rounds off stays in g. */
KERNEL void level_renew(ITEM GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at, i32 slot,
                        real k, real ratio, real tol)
{
    const i64 n = at[SK_N], m = at[SK_M], first = GID0 * SK_FOLD, last = first + SK_FOLD;
    GLOBAL real *const g0 = v + at[SK_G0], *const g = v + at[SK_G], *const h0 = v + at[SK_H0];
    GLOBAL real *const lp = v + at[SK_LP];
    GLOBAL const real *const log_a = v + at[SK_LOG_A];
    for (i64 j = first + LID0; j < least(last, m); j += LSIZE0) {
        if (v[at[SK_B] + j] > R(0)) {
            const real base = g0[j], more = g[j], sum = base + more, part = sum - base;
            const real rest = (base - (sum - part)) + (more - part), next = sum * ratio;
            g0[j] = next;
            g[j] = FMA(sum, ratio, -next) + rest * ratio;
            v[at[SK_G_LAST] + j] = g[j];
        }
        v[at[SK_BEFORE_G0] + j] = g0[j];
        v[at[SK_BEFORE_G] + j] = g[j];
    }
    for (i64 i = first + LID0; i < least(last, n); i += LSIZE0) {
        if (v[at[SK_A] + i] > R(0)) {
            h0[i] = (h0[i] + (lp[i] - log_a[i])) * ratio;
            lp[i] = log_a[i];
        }
    }
    if (GID0 == 0 && LID0 == 0) {
        sinkhorn_state st;
        for (int q = 0; q < SKS_COUNT; q++) {
            st.of[q] = q == SKS_ERROR || q == SKS_LEAST ? R(1e30) : R(0);
        }
        for (int q = 0; q < SKC_COUNT; q++) {
            st.count[q] = 0;
        }
        v[at[SK_PARAMETERS] + SKP_K] = k;
        v[at[SK_PARAMETERS] + SKP_TOL] = tol;
        sinkhorn_keep(v, counts, at, slot, &st);
    }
}

/** Largest less smallest change of G since the step began; plain: after accelerated passes G is
 *  that of the last plain step.  One group. */
KERNEL void level_change(ITEM GLOBAL real *v, GLOBAL const i64 *at, i32 plain)
{
    LOCAL_MEM(real, room, 2 * GROUP_MOST);
    GLOBAL real *const g = v + at[SK_G];
    real x[2] = {R(-1e30), R(-1e30)};
    for (i64 j = LID0; j < at[SK_M]; j += LSIZE0) {
        if (v[at[SK_B] + j] > R(0)) {
            g[j] = plain ? v[at[SK_G_LAST] + j] : g[j];
            const real gap =
                (v[at[SK_G0] + j] - v[at[SK_BEFORE_G0] + j]) + (g[j] - v[at[SK_BEFORE_G] + j]);
            x[0] = FMAX(x[0], gap);
            x[1] = FMAX(x[1], -gap);
        }
    }
    sinkhorn_reduce(room, x, 0, 2);
    if (GID0 == 0 && LID0 == 0) {
        v[at[SK_CHANGE]] = x[0] + x[1];
    }
}

/* ---- the plan's rows ------------------------------------------------------------------------- */

/** P_ij of the passes' potentials. */
FUNCTION wide level_weight(GLOBAL const real *cost, GLOBAL const real *v, GLOBAL const i64 *at,
                           i64 i, i64 j)
{
    const wide inside = W(v[at[SK_G0] + j]) + W(v[at[SK_H0] + i]);
    const wide x = inside - W(v[at[SK_PARAMETERS] + SKP_K]) * W(cost[i * at[SK_M] + j]);
    return EXP2(x + W(v[at[SK_G] + j]) + W(v[at[SK_LP] + i]));
}

/** Columns of the pairs first, first + 1, ..., a pair a group: the one where the weights of row
 *  of[first + r], added in order, pass uniform[r] of their sum. */
KERNEL void level_draw(ITEM GLOBAL i32 *column, GLOBAL const i32 *row, GLOBAL const wide *uniform,
                       GLOBAL const real *cost, GLOBAL const real *v, GLOBAL const i64 *at,
                       i64 first)
{
    LOCAL_MEM(wide, sums, LV_RUNS);
    const i64 m = at[SK_M], each = (m + LV_RUNS - 1) / LV_RUNS, i = row[first + GID0];
    for (i64 run = LID0; run < LV_RUNS; run += LSIZE0) {
        wide sum = W(0);
        for (i64 j = run * each; j < least((run + 1) * each, m); j++) {
            sum += level_weight(cost, v, at, i, j);
        }
        sums[run] = sum;
    }
    BARRIER;
    if (LID0 == 0) {
        wide total = W(0), below = W(0);
        for (int run = 0; run < LV_RUNS; run++) {
            total += sums[run];
        }
        const wide goal = uniform[GID0] * total;
        i64 run = 0, last = 0, found = -1;
        while (run < LV_RUNS - 1 && below + sums[run] <= goal) {
            below += sums[run++];
        }
        for (i64 j = run * each; j < least((run + 1) * each, m) && found < 0; j++) {
            const wide weight = level_weight(cost, v, at, i, j);
            below += weight;
            last = weight > W(0) ? j : last;
            found = below > goal ? j : -1;
        }
        column[first + GID0] = (i32)(found >= 0 ? found : last);
    }
}

/** plan <- plan + alpha (P - plan), a row a group; squares[i] <- the sum of the squares of that
 *  change, squares[n + i] of P. */
KERNEL void level_average(ITEM GLOBAL real *plan, GLOBAL wide *squares, GLOBAL const real *cost,
                          GLOBAL const real *v, GLOBAL const i64 *at, wide alpha)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const i64 m = at[SK_M], i = GID0;
    wide change = W(0), whole = W(0);
    for (i64 j = LID0; j < m; j += LSIZE0) {
        const wide before = W(plan[i * m + j]), weight = level_weight(cost, v, at, i, j);
        const wide gap = alpha * (weight - before), now = before + gap;
        change += gap * gap;
        whole += weight * weight;
        plan[i * m + j] = now < W(1.2e-38f) ? R(0) : (real)now;
    }
    change = group_sum_wide(change, room);
    whole = group_sum_wide(whole, room);
    if (LID0 == 0) {
        squares[i] = change;
        squares[at[SK_N] + i] = whole;
    }
}

/** out[0], out[1] <- the sums of the first and of the second `count`.  One group. */
KERNEL void level_two_sums(ITEM GLOBAL wide *out, GLOBAL const wide *x, i64 count)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    for (int part = 0; part < 2; part++) {
        wide sum = W(0);
        for (i64 r = LID0; r < count; r += LSIZE0) {
            sum += x[part * count + r];
        }
        sum = group_sum_wide(sum, room);
        if (GID0 == 0 && LID0 == 0) {
            out[part] = sum;
        }
    }
}

/* ---- energy from pairs ----------------------------------------------------------------------- */

/** Two sets of pairs r = 0 .. count-1, the second from `other` on; group r < count: the mean over
 *  the second set's pairs of (C - D)^2 with the r-th of the first; behind these the other way
 *  round.  centred: distances less the means u, v of both points, plus the mean of these. */
KERNEL void level_gaps(ITEM GLOBAL wide *sides, GLOBAL const real *x, GLOBAL const real *y,
                       GLOBAL const i32 *row, GLOBAL const i32 *column, GLOBAL const real *u,
                       GLOBAL const real *v, i64 n, i64 m, i64 one, i64 other, i64 count,
                       wide scale_x, wide scale_y, i32 centred, wide mean_u, wide mean_v)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const i64 at = GID0 < count ? one + GID0 : other + GID0 - count;
    const i64 from = GID0 < count ? other : one, i = row[at], j = column[at];
    const wide ui = centred ? W(u[i]) - mean_u : W(0), vj = centred ? W(v[j]) - mean_v : W(0);
    wide sum = W(0);
    for (i64 q = LID0; q < count; q += LSIZE0) {
        const i64 k = row[from + q], l = column[from + q];
        wide c = W(x[i * n + k]), d = W(y[j * m + l]);
        c -= centred ? ui + W(u[k]) : W(0);
        d -= centred ? vj + W(v[l]) : W(0);
        const wide gap = scale_x * c - scale_y * d;
        sum += gap * gap;
    }
    sum = group_sum_wide(sum, room);
    if (LID0 == 0) {
        sides[GID0] = sum / (wide)count;
    }
}

/** out[0] <- the mean of the first `count`; out[1] <- the standard error of the mean of the sums of
 *  both sets.  One group. */
KERNEL void level_moments(ITEM GLOBAL wide *out, GLOBAL const wide *sides, i64 count)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    wide mean[2], square = W(0);
    for (int side = 0; side < 2; side++) {
        wide sum = W(0);
        for (i64 r = LID0; r < count; r += LSIZE0) {
            sum += sides[side * count + r];
        }
        mean[side] = group_sum_wide(sum, room) / (wide)count;
    }
    for (int side = 0; side < 2; side++) {
        for (i64 r = LID0; r < count; r += LSIZE0) {
            const wide gap = sides[side * count + r] - mean[side];
            square += gap * gap;
        }
    }
    square = group_sum_wide(square, room);
    if (GID0 == 0 && LID0 == 0) {
        out[0] = mean[0];
        out[1] = count > 1 ? SQRT(square / (wide)(count - 1) / (wide)count) : W(0);
    }
}

/* ---- the whole plan -------------------------------------------------------------------------- */

/** P_ij as it is rounded (gw_sinkhorn_plan.cl.h); the costs are floats. */
FUNCTION real level_rounded(const sinkhorn *s, i64 i, i64 j)
{
    GLOBAL const real *const v = s->v;
    const real p = v[s->at[SK_A] + i] > R(0) ? v[s->at[SK_P] + i] : R(0);
    const real weight = p > R(0) ? p * EXP2(sinkhorn_x(s, (int)i, (int)j) + s->g[j]) : R(0);
    return v[s->at[SK_Y] + j] * weight + v[s->at[SK_U] + i] * v[s->at[SK_V] + j];
}

/** The plan, a row a group. */
KERNEL void level_plan(ITEM GLOBAL real *plan, GLOBAL const float *costs, GLOBAL real *v,
                       GLOBAL const i64 *at)
{
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FLOAT, v, at);
    for (i64 j = LID0; j < s.m; j += LSIZE0) {
        plan[GID0 * s.m + j] = level_rounded(&s, GID0, j);
    }
}

/** out[i] <- sum_j P_ij (scale_x u_i - scale_y v_j)^2, a row a group. */
KERNEL void level_middle(ITEM GLOBAL real *out, GLOBAL const float *costs, GLOBAL real *v,
                         GLOBAL const i64 *at, GLOBAL const float *mean_x,
                         GLOBAL const float *mean_y, real scale_x, real scale_y)
{
    LOCAL_MEM(real, room, GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FLOAT, v, at);
    const real u = scale_x * (real)mean_x[GID0];
    real sum = 0;
    for (i64 j = LID0; j < s.m; j += LSIZE0) {
        const real gap = u - scale_y * (real)mean_y[j];
        sum += level_rounded(&s, GID0, j) * gap * gap;
    }
    sum = group_sum_real(sum, room);
    if (LID0 == 0) {
        out[GID0] = sum;
    }
}

/** By rows of P, n x m: their sums, sum_j P_ij Q_ij and sum_j P_ij (log P_ij - 1), n each. */
KERNEL void level_row_sums(ITEM GLOBAL real *out, GLOBAL const real *plan, GLOBAL const real *q,
                           i64 n, i64 m)
{
    LOCAL_MEM(real, room, 3 * GROUP_MOST);
    real x[3] = {R(0), R(0), R(0)};
    for (i64 j = LID0; j < m; j += LSIZE0) {
        const real p = plan[GID0 * m + j];
        x[0] += p;
        x[1] += p * q[GID0 * m + j];
        x[2] += p > R(0) ? p * (LOG(p) - R(1)) : R(0);
    }
    sinkhorn_reduce(room, x, 3, 3);
    for (int k = 0; k < 3 && LID0 == 0; k++) {
        out[k * n + GID0] = x[k];
    }
}

/** out[j] <- sum_i P_ij, 32 columns a group. */
KERNEL void level_column_sums(ITEM GLOBAL real *out, GLOBAL const real *plan, i64 n, i64 m)
{
    const i64 first = GID0 * SK_BLOCK_COLUMNS;
    for (i64 j = first + LID0; j < least(first + SK_BLOCK_COLUMNS, m); j += LSIZE0) {
        real sum = 0;
        for (i64 i0 = 0; i0 < n; i0 += SK_STRIP) {
            real part = 0;
            for (i64 i = i0; i < least(i0 + SK_STRIP, n); i++) {
                part += plan[i * m + j];
            }
            sum += part;
        }
        out[j] = sum;
    }
}

/** out[i] <- sum_k C_ik^2 w_k, a row a group. */
KERNEL void level_squares(ITEM GLOBAL real *out, GLOBAL const float *all, GLOBAL const real *w,
                          i64 n)
{
    LOCAL_MEM(real, room, GROUP_MOST);
    real sum = 0;
    for (i64 k = LID0; k < n; k += LSIZE0) {
        const real c = (real)all[GID0 * n + k];
        sum += c * c * w[k];
    }
    sum = group_sum_real(sum, room);
    if (LID0 == 0) {
        out[GID0] = sum;
    }
}
