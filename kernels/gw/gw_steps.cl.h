/* gw_steps.cl.h - an alignment's outer step on a device, around the passes of gw_sinkhorn.cl.h.
 *
 *     Dx, Dy   distances of the sampled pairs to all points, less the points' means u and v
 *     cost     c_ij <- keep c_ij - (1 - keep) ((1 - theta) (2/R sum_r Dx_ri Dy_rj + 2 u_i v_j)
 *                                              - theta linear_ij)
 *     renew    potentials into the exponents, at a new epsilon
 *     passes
 *     change   of G over the step
 *     draw     a column for each row that is drawn, from the row's weights in the plan
 *
 * and what is made of a plan: energies.  Rows are drawn by the host where marginals hold, and here
 * from the plan's row sums where they are relaxed or partial.  There the cost has its terms of rows
 * and columns, as two more distances to every point:
 *
 *     -2/R (sum_r Dx_ri Dy_rj - 1/2 sum_r Dx_ri^2 1 - 1 1/2 sum_r Dy_rj^2)
 *
 * With scale batch_max Dx and Dy are divided by their largest number first.  With diag_exact the two
 * distances more are made of the averaged marginals r and c of the plan, sum_k C_ik^2 r_k instead of
 * 1/R sum_r Dx_ri^2; with store_plan the plan is averaged as a whole, and pairs are drawn from it.
 *
 * Weights are sums in `wide`, in LV_RUNS runs of columns or rows whatever the size of a group is,
 * so that a draw depends on the plan alone.
 */

/** out[r n + i] = all[p n + i] - means[i] of the point p = points[index[r]], a row a group. */
KERNEL void level_rows(ITEM GLOBAL real *out, GLOBAL const real *all, GLOBAL const i32 *points,
                       GLOBAL const i32 *index, GLOBAL const real *means, i64 n)
{
    const i64 r = GID0, from = (i64)points[index[r]] * n;
    for (i64 i = LID0; i < n; i += LSIZE0) {
        out[r * n + i] = all[from + i] - means[i];
    }
}

/** Rows R and R + 1 of `rows` <- -1/2 the sums of the squares of those before, and ones; the other
 *  way round for the second side.  SK_FOLD points a group. */
KERNEL void level_terms(ITEM GLOBAL real *rows, i64 n, i64 rank, i32 second)
{
    const i64 first = GID0 * SK_FOLD;
    for (i64 i = first + LID0; i < least(first + SK_FOLD, n); i += LSIZE0) {
        real sum = 0;
        for (i64 r = 0; r < rank; r++) {
            sum += rows[r * n + i] * rows[r * n + i];
        }
        rows[(rank + second) * n + i] = R(-0.5) * sum;
        rows[(rank + 1 - second) * n + i] = R(1);
    }
}

/** most[r] <- the largest |number| of row r, a row a group. */
KERNEL void level_row_most(ITEM GLOBAL real *most, GLOBAL const real *rows, i64 n)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    real x = R(0);
    for (i64 i = LID0; i < n; i += LSIZE0) {
        x = FMAX(x, FABS(rows[GID0 * n + i]));
    }
    x = group_max_real(x, scratch);
    if (LID0 == 0) {
        most[GID0] = x;
    }
}

/** All of `rank` rows divided by the largest of `most`, a row a group. */
KERNEL void level_divide(ITEM GLOBAL real *rows, GLOBAL const real *most, i64 n, i64 rank)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    real x = R(0);
    for (i64 r = LID0; r < rank; r += LSIZE0) {
        x = FMAX(x, most[r]);
    }
    x = group_max_real(x, scratch);
    const real scale = x > R(0) ? R(1) / x : R(1);
    for (i64 i = LID0; i < n; i += LSIZE0) {
        rows[GID0 * n + i] *= scale;
    }
}

/** sums <- sums + alpha (the plan's row sums, or of the second side column sums, less them), as the
 *  last pass left the plan; SK_FOLD points a group. */
KERNEL void level_keep_sums(ITEM GLOBAL wide *sums, GLOBAL const real *v, GLOBAL const i64 *at,
                            wide alpha, i32 second)
{
    const i64 n = at[second ? SK_M : SK_N], first = GID0 * SK_FOLD;
    GLOBAL const real *const partial = v + at[SK_PARTIAL];
    for (i64 i = first + LID0; i < least(first + SK_FOLD, n); i += LSIZE0) {
        wide now = second ? W(0) : W(v[at[SK_ROW_SUM] + i]);
        for (i64 c = 0; second && c < at[SK_CHUNKS]; c++) {
            now += W(partial[c * n + i]);
        }
        sums[i] += alpha * (now - sums[i]);
    }
}

/** Rows R and R + 1 as level_terms has them, from squares_i = sum_k C_ik^2 w_k and the weights w;
 *  of weights without a sum the terms stay.  SK_FOLD points a group. */
KERNEL void level_kept_terms(ITEM GLOBAL real *rows, GLOBAL const wide *squares,
                             GLOBAL const wide *weights, i64 n, i64 rank, i32 second)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const i64 first = GID0 * SK_FOLD;
    wide total = W(0);
    for (i64 k = LID0; k < n; k += LSIZE0) {
        total += weights[k];
    }
    total = group_sum_wide(total, room);
    for (i64 i = first + LID0; i < least(first + SK_FOLD, n); i += LSIZE0) {
        if (total > W(0)) {
            rows[(rank + second) * n + i] = (real)(W(-0.5) * (wide)rank * squares[i] / total);
        }
        rows[(rank + 1 - second) * n + i] = R(1);
    }
}

/** sum[4 a + b] = sum_r left[r, i0 + a] right[r, j0 + b], in runs of 64; those beyond the edge as
 *  the last.  form: of right, SK_COST_REAL or SK_COST_FLOAT. */
FUNCTION void level_micro(GLOBAL const real *left, GLOBAL const void *right, int form, i64 i0,
                          i64 j0, i64 rows, i64 columns, i64 rank, real *sum)
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
            real y[4];
            for (int b = 0; b < 4; b++) {
                const i64 e = r * columns + j[b];
                y[b] = form == SK_COST_REAL ? ((GLOBAL const real *)right)[e]
                                            : (real)((GLOBAL const float *)right)[e];
            }
            for (int a = 0; a < 4; a++) {
                const real x = left[r * rows + i[a]];
                for (int b = 0; b < 4; b++) {
                    part[4 * a + b] += x * y[b];
                }
            }
        }
        for (int q = 0; q < 16; q++) {
            sum[q] += part[q];
        }
    }
}

/** Tile (x, y) of out_ij <- keep out_ij + scale sum_r left_ri right_rj + of_means u_i v_j + of_linear
 *  linear_ij.  keep 0: what out was is not read; of_means 0: neither are u and v; of_linear 0:
 *  neither is linear.  form: of right, SK_COST_REAL or SK_COST_FLOAT. */
FUNCTION void level_tile(GLOBAL real *out, GLOBAL const real *left, GLOBAL const void *right,
                         int form, GLOBAL const real *u, GLOBAL const real *v,
                         GLOBAL const float *linear, i64 x, i64 y, i64 rows, i64 columns, i64 rank,
                         real keep, real scale, real of_means, real of_linear)
{
    enum { EDGE = LV_TILE / 4 };
    for (int tile = LID0; tile < EDGE * EDGE; tile += LSIZE0) {
        const i64 i0 = x * LV_TILE + tile / EDGE * 4, j0 = y * LV_TILE + tile % EDGE * 4;
        real sum[16];
        if (i0 >= rows || j0 >= columns) {
            continue;
        }
        level_micro(left, right, form, i0, j0, rows, columns, rank, sum);
        for (int q = 0; q < 16; q++) {
            const i64 i = i0 + q / 4, j = j0 + q % 4, e = i * columns + j;
            if (i < rows && j < columns) {
                const real means = of_means != R(0) ? of_means * u[i] * v[j] : R(0);
                const real given = of_linear != R(0) ? of_linear * (real)linear[e] : R(0);
                out[e] = (keep > R(0) ? keep * out[e] : R(0)) + (scale * sum[q] + means + given);
            }
        }
    }
}

/** out <- keep out + scale left' right + of_means u v' + of_linear linear; a tile a group. */
KERNEL void level_product(ITEM GLOBAL real *out, GLOBAL const real *left, GLOBAL const float *right,
                          GLOBAL const real *u, GLOBAL const real *v, GLOBAL const float *linear,
                          i64 rows, i64 columns, i64 rank, real keep, real scale, real of_means,
                          real of_linear)
{
    level_tile(out, left, right, SK_COST_FLOAT, u, v, linear, GID0, GID1, rows, columns, rank, keep,
               scale, of_means, of_linear);
}

/** k = log2(e) / epsilon, and the parameters that depend on it. */
FUNCTION void level_set_epsilon(GLOBAL real *par, real k, int relaxed)
{
    const real epsilon = R(1.4426950408889634) / k, by_a = par[SKP_BY_A], by_b = par[SKP_BY_B];
    par[SKP_K] = k;
    par[SKP_TAU_A] = R(1) / (R(1) + epsilon * by_a);
    par[SKP_TAU_B] = R(1) / (R(1) + epsilon * by_b);
    par[SKP_RATE_A] = by_a / k;
    par[SKP_RATE_B] = by_b / k;
    par[SKP_UNIT] = relaxed ? k / (by_a + by_b) : R(0);
}

/** An outer step begins: G0 and H0 <- the potentials as they are, times `ratio`, k the new one, and
 *  a new state behind that of `slot`.  What G0 rounds off stays in g. */
KERNEL void level_renew(ITEM GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at, i32 slot,
                        real k, real ratio, real tol)
{
    const sinkhorn_state before = sinkhorn_load(v, counts, at, slot);
    const i64 n = at[SK_N], m = at[SK_M], first = GID0 * SK_FOLD, last = first + SK_FOLD;
    GLOBAL real *const g0 = v + at[SK_G0], *const g = v + at[SK_G], *const h0 = v + at[SK_H0];
    GLOBAL real *const lp = v + at[SK_LP];
    GLOBAL const real *const log_a = v + at[SK_LOG_A];
    for (i64 j = first + LID0; j < least(last, m); j += LSIZE0) {
        if (v[at[SK_B] + j] > R(0)) {
            const real base = g0[j], more = g[j] + before.of[SKS_SHIFT], sum = base + more;
            const real part = sum - base;
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
        st.of[SKS_DUMMY_G] = before.of[SKS_DUMMY_G] * ratio;
        st.of[SKS_FROM_A] = before.of[SKS_FROM_A]; /* in cost units, which the step keeps */
        st.of[SKS_FROM_B] = before.of[SKS_FROM_B];
        v[at[SK_PARAMETERS] + SKP_TOL] = tol;
        level_set_epsilon(v + at[SK_PARAMETERS], k, (int)at[SK_RELAXED]);
        sinkhorn_keep(v, counts, at, 1 - slot, &st);
    }
}

/** Partial: log2 sum_j 2^G_j into the state of `slot`, as the first pass wants it.  One group. */
KERNEL void level_log_sum(ITEM GLOBAL real *v, GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, room, GROUP_MOST);
    GLOBAL const real *const b = v + at[SK_B], *const g0 = v + at[SK_G0], *const g = v + at[SK_G];
    real top[1] = {R(-1e30)}, sum[1] = {R(0)};
    for (i64 j = LID0; j < at[SK_M]; j += LSIZE0) {
        top[0] = b[j] > R(0) ? FMAX(top[0], g0[j] + g[j]) : top[0];
    }
    sinkhorn_reduce(room, top, 0, 1);
    for (i64 j = LID0; j < at[SK_M]; j += LSIZE0) {
        sum[0] += b[j] > R(0) ? EXP2(g0[j] + g[j] - top[0]) : R(0);
    }
    sinkhorn_reduce(room, sum, 1, 1);
    if (GID0 == 0 && LID0 == 0) {
        v[at[SK_STATES] + slot * SKS_COUNT + SKS_LOG_G] = top[0] + LOG2(sum[0]);
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

/** log2 P_ij of the passes' potentials, without the shift of a partial plan. */
FUNCTION wide level_exponent(GLOBAL const real *cost, GLOBAL const real *v, GLOBAL const i64 *at,
                             i64 i, i64 j)
{
    const wide inside = W(v[at[SK_G0] + j]) + W(v[at[SK_H0] + i]);
    const wide x = inside - W(v[at[SK_PARAMETERS] + SKP_K]) * W(cost[i * at[SK_M] + j]);
    return x + W(v[at[SK_G] + j]) + W(v[at[SK_LP] + i]);
}

FUNCTION wide level_weight(GLOBAL const real *cost, GLOBAL const real *v, GLOBAL const i64 *at,
                           i64 i, i64 j)
{
    return EXP2(level_exponent(cost, v, at, i, j));
}

/** Weight of row i: its sum in the plan of the passes, or in the averaged one, whose row sums are
 *  the third n numbers of level_average. */
FUNCTION wide level_row_weight(GLOBAL const real *v, GLOBAL const i64 *at,
                               GLOBAL const wide *by_row, i32 averaged, i64 i)
{
    return averaged ? by_row[2 * at[SK_N] + i] : W(v[at[SK_ROW_SUM] + i]);
}

/** Rows of the pairs first .. first + count - 1: those where the plan's row sums, added in order,
 *  pass share[from], share[from + 1], ... of their sum; of a plan without mass all rows are alike.
 *  averaged: of that plan, by_row what level_average left; else by_row is not read.  One group. */
KERNEL void level_draw_rows(ITEM GLOBAL i32 *row, GLOBAL wide *moments, GLOBAL const wide *share,
                            GLOBAL const real *v, GLOBAL const i64 *at, GLOBAL const wide *by_row,
                            i32 averaged, i64 first, i64 from, i64 count)
{
    LOCAL_MEM(wide, sums, LV_RUNS);
    const i64 n = at[SK_N], each = (n + LV_RUNS - 1) / LV_RUNS;
    for (i64 run = LID0; run < LV_RUNS; run += LSIZE0) {
        wide sum = W(0);
        for (i64 i = run * each; i < least((run + 1) * each, n); i++) {
            sum += level_row_weight(v, at, by_row, averaged, i);
        }
        sums[run] = sum;
    }
    BARRIER;
    const wide total = level_total(sums);
    const int flat = !(total > W(1e-9));
    for (i64 r = LID0; r < count; r += LSIZE0) {
        wide below;
        const wide part = share[from + r], goal = part * total;
        const i64 run = level_run(sums, goal, &below);
        i64 last = least((i64)(part * (wide)n), n - 1), found = flat ? last : -1;
        for (i64 i = run * each; i < least((run + 1) * each, n) && found < 0; i++) {
            const wide weight = level_row_weight(v, at, by_row, averaged, i);
            below += weight;
            last = weight > W(0) ? i : last;
            found = below > goal ? i : -1;
        }
        row[first + r] = (i32)(found >= 0 ? found : last);
    }
    if (GID0 == 0 && LID0 == 0) {
        moments[LV_MASS] = total;
    }
}

/** Columns of the pairs first, first + 1, ..., a pair a group: the one where the weights of row
 *  of[first + r], added in order, pass uniform[from + r] of their sum.  averaged: `of` is that plan;
 *  else the costs. */
KERNEL void level_draw(ITEM GLOBAL i32 *column, GLOBAL const i32 *row, GLOBAL const wide *uniform,
                       GLOBAL const real *of, GLOBAL const real *v, GLOBAL const i64 *at,
                       i32 averaged, i64 first, i64 from)
{
    LOCAL_MEM(wide, sums, LV_RUNS);
    const i64 m = at[SK_M], each = (m + LV_RUNS - 1) / LV_RUNS, i = row[first + GID0];
    for (i64 run = LID0; run < LV_RUNS; run += LSIZE0) {
        wide sum = W(0);
        for (i64 j = run * each; j < least((run + 1) * each, m); j++) {
            sum += averaged ? W(of[i * m + j]) : level_weight(of, v, at, i, j);
        }
        sums[run] = sum;
    }
    BARRIER;
    if (LID0 == 0) {
        wide below;
        const wide goal = uniform[from + GID0] * level_total(sums);
        const i64 run = level_run(sums, goal, &below);
        i64 last = 0, found = -1;
        for (i64 j = run * each; j < least((run + 1) * each, m) && found < 0; j++) {
            const wide weight = averaged ? W(of[i * m + j]) : level_weight(of, v, at, i, j);
            below += weight;
            last = weight > W(0) ? j : last;
            found = below > goal ? j : -1;
        }
        column[first + GID0] = (i32)(found >= 0 ? found : last);
    }
}

/** What is added to the exponents of a partial plan; slot: of the state that has it. */
FUNCTION wide level_raised(GLOBAL const real *v, GLOBAL const i64 *at, i32 slot)
{
    const real shift = v[at[SK_STATES] + slot * SKS_COUNT + SKS_SHIFT];
    return at[SK_RELAXED] ? W(0) : W(shift);
}

/** plan <- plan + alpha (P - plan), a row a group; by_row[i] <- the sum of the squares of that
 *  change, by_row[n + i] of P, by_row[2 n + i] <- the row's sum in the new plan. */
KERNEL void level_average(ITEM GLOBAL real *plan, GLOBAL wide *by_row, GLOBAL const real *cost,
                          GLOBAL const real *v, GLOBAL const i64 *at, i32 slot, wide alpha)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const i64 m = at[SK_M], i = GID0;
    const wide raised = level_raised(v, at, slot);
    wide change = W(0), whole = W(0), sum = W(0);
    for (i64 j = LID0; j < m; j += LSIZE0) {
        const wide before = W(plan[i * m + j]);
        const wide weight = EXP2(level_exponent(cost, v, at, i, j) + raised);
        const wide gap = alpha * (weight - before), now = before + gap;
        const real kept = now < W(1.2e-38f) ? R(0) : (real)now;
        change += gap * gap;
        whole += weight * weight;
        sum += W(kept);
        plan[i * m + j] = kept;
    }
    change = group_sum_wide(change, room);
    whole = group_sum_wide(whole, room);
    sum = group_sum_wide(sum, room);
    if (LID0 == 0) {
        by_row[i] = change;
        by_row[at[SK_N] + i] = whole;
        by_row[2 * at[SK_N] + i] = sum;
    }
}

/* ---- the mode landmark: squared distances of both sides are U V' ----------------------------- */

/** image (n x width) <- P V, V of m rows; a row a group. */
KERNEL void level_image(ITEM GLOBAL wide *image, GLOBAL const wide *factor, GLOBAL const real *cost,
                        GLOBAL const real *v, GLOBAL const i64 *at, i64 width)
{
    LOCAL_MEM(wide, weights, LV_RUNS);
    const i64 m = at[SK_M], i = GID0;
    for (i64 first = 0; first < m; first += LV_RUNS) {
        const i64 last = least(first + LV_RUNS, m);
        for (i64 j = first + LID0; j < last; j += LSIZE0) {
            weights[j - first] = level_weight(cost, v, at, i, j);
        }
        BARRIER;
        for (i64 c = LID0; c < width; c += LSIZE0) {
            wide sum = W(0);
            for (i64 j = first; j < last; j++) {
                sum += weights[j - first] * factor[j * width + c];
            }
            image[i * width + c] = first > 0 ? image[i * width + c] + sum : sum;
        }
        BARRIER;
    }
}

/** core <- (1 - alpha) core + alpha V' image, V of n rows; an entry a group. */
KERNEL void level_core(ITEM GLOBAL wide *core, GLOBAL const wide *factor, GLOBAL const wide *image,
                       i64 n, i64 rows, i64 columns, wide alpha)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const i64 c = GID0, b = GID1;
    wide sum = W(0);
    for (i64 i = LID0; i < n; i += LSIZE0) {
        sum += factor[i * rows + c] * image[i * columns + b];
    }
    sum = group_sum_wide(sum, room);
    if (LID0 == 0) {
        core[c * columns + b] = (W(1) - alpha) * core[c * columns + b] + alpha * sum;
    }
}

/** out (columns x n) <- (U core)', U of n rows; SK_FOLD points of one of its rows a group. */
KERNEL void level_left(ITEM GLOBAL real *out, GLOBAL const wide *factor, GLOBAL const wide *core,
                       i64 n, i64 rows, i64 columns)
{
    const i64 first = GID0 * SK_FOLD, b = GID1;
    for (i64 i = first + LID0; i < least(first + SK_FOLD, n); i += LSIZE0) {
        wide sum = W(0);
        for (i64 c = 0; c < rows; c++) {
            sum += factor[i * rows + c] * core[c * columns + b];
        }
        out[b * n + i] = (real)sum;
    }
}

/** sums[i], sums[n + i] <- the sums of P_ij log P_ij and of P_ij over row i, a row a group; slot:
 *  that of the state whose shift a partial plan has. */
KERNEL void level_entropy(ITEM GLOBAL wide *sums, GLOBAL const real *cost, GLOBAL const real *v,
                          GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const i64 m = at[SK_M], i = GID0;
    const wide raised = level_raised(v, at, slot);
    wide entropy = W(0), mass = W(0);
    for (i64 j = LID0; j < m; j += LSIZE0) {
        const wide x = level_exponent(cost, v, at, i, j) + raised, weight = EXP2(x);
        entropy += weight > W(0) ? weight * x * W(0.6931471805599453) : W(0);
        mass += weight;
    }
    entropy = group_sum_wide(entropy, room);
    mass = group_sum_wide(mass, room);
    if (LID0 == 0) {
        sums[i] = entropy;
        sums[at[SK_N] + i] = mass;
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

/** The mean of the linear cost at the pairs of both sets, and the sum of the squares of what they
 *  differ from it.  One group. */
KERNEL void level_linear(ITEM GLOBAL wide *moments, GLOBAL const float *linear,
                         GLOBAL const i32 *row, GLOBAL const i32 *column, i64 m, i64 one, i64 other,
                         i64 count)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    wide mean = W(0), square = W(0);
    for (int turn = 0; turn < 2; turn++) {
        wide sum = W(0);
        for (i64 r = LID0; r < 2 * count; r += LSIZE0) {
            const i64 at = r < count ? one + r : other + r - count;
            const wide x = W(linear[(i64)row[at] * m + column[at]]) - mean;
            sum += turn ? x * x : x;
        }
        sum = group_sum_wide(sum, room);
        mean = turn ? mean : sum / (wide)(2 * count);
        square = sum;
    }
    if (GID0 == 0 && LID0 == 0) {
        moments[LV_LINEAR] = mean;
        moments[LV_LINEAR_SQUARE] = square;
    }
}

/** The mean of the first `count`, and the standard error of the mean of the sums of both sets.  One
 *  group. */
KERNEL void level_moments(ITEM GLOBAL wide *moments, GLOBAL const wide *sides, i64 count)
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
        moments[LV_ENERGY] = mean[0];
        moments[LV_ERROR] = count > 1 ? SQRT(square / (wide)(count - 1) / (wide)count) : W(0);
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

/** The row's cost <- sum_j P_ij (scale_x u_i - scale_y v_j)^2, a row a group. */
KERNEL void level_middle(ITEM GLOBAL const float *costs, GLOBAL real *v, GLOBAL const i64 *at,
                         GLOBAL const float *mean_x, GLOBAL const float *mean_y, real scale_x,
                         real scale_y)
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
        v[at[SK_ROW_COST] + GID0] = sum;
    }
}

/** By rows of P, n x m: their sums, sum_j P_ij Q_ij, sum_j P_ij (log P_ij - 1) and, where there is
 *  a linear cost, sum_j P_ij linear_ij, n each. */
KERNEL void level_row_sums(ITEM GLOBAL real *out, GLOBAL const real *plan, GLOBAL const real *q,
                           GLOBAL const float *linear, i64 n, i64 m, i32 fused)
{
    LOCAL_MEM(real, room, 4 * GROUP_MOST);
    real x[4] = {R(0), R(0), R(0), R(0)};
    for (i64 j = LID0; j < m; j += LSIZE0) {
        const real p = plan[GID0 * m + j];
        x[0] += p;
        x[1] += p * q[GID0 * m + j];
        x[2] += p > R(0) ? p * (LOG(p) - R(1)) : R(0);
        x[3] += fused ? p * (real)linear[GID0 * m + j] : R(0);
    }
    sinkhorn_reduce(room, x, 4, 4);
    for (int k = 0; k < 4 && LID0 == 0; k++) {
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

/** out[i] <- sum_k C_ik^2 w_k, or sum_k C_ik w_k, a row a group. */
FUNCTION void level_row_sum(GLOBAL real *out, GLOBAL const float *all, GLOBAL const real *w, i64 n,
                            i64 row, int squared, LOCAL real *room)
{
    real sum = 0;
    for (i64 k = LID0; k < n; k += LSIZE0) {
        const real c = (real)all[row * n + k];
        sum += (squared ? c * c : c) * w[k];
    }
    sum = group_sum_real(sum, room);
    if (LID0 == 0) {
        out[row] = sum;
    }
}

KERNEL void level_squares(ITEM GLOBAL real *out, GLOBAL const float *all, GLOBAL const real *w,
                          i64 n)
{
    LOCAL_MEM(real, room, GROUP_MOST);
    level_row_sum(out, all, w, n, GID0, 1, room);
}

KERNEL void level_sums(ITEM GLOBAL real *out, GLOBAL const float *all, GLOBAL const real *w, i64 n)
{
    LOCAL_MEM(real, room, GROUP_MOST);
    level_row_sum(out, all, w, n, GID0, 0, room);
}

/* ---- the mode vertex: costs of a plan that is a list ----------------------------------------- */

/** Row q of out (ld long) <- sum_e mass_e all[points[e]] over the entries e = starts[q], ... before
 *  starts[q + 1]; whole 0: the row of the first one alone, without its mass.  A row a group. */
KERNEL void vertex_rows(ITEM GLOBAL real *out, GLOBAL const real *all, GLOBAL const i32 *points,
                        GLOBAL const wide *mass, GLOBAL const i64 *starts, i64 first, i64 ld,
                        i32 whole)
{
    const i64 q = GID0, from = starts[first + q], last = whole ? starts[first + q + 1] : from + 1;
    for (i64 k = LID0; k < ld; k += LSIZE0) {
        real sum = 0;
        for (i64 e = from; e < last; e++) {
            sum += (whole ? R(mass[e]) : R(1)) * all[(i64)points[e] * ld + k];
        }
        out[q * ld + k] = sum;
    }
}

/** out (rows x columns) <- keep out + scale left' right, of `rank` rows each; keep 0: what out was
 *  is not read.  A tile a group. */
KERNEL void vertex_product(ITEM GLOBAL real *out, GLOBAL const real *left, GLOBAL const real *right,
                           i64 rows, i64 columns, i64 rank, i32 keep, real scale)
{
    level_tile(out, left, right, SK_COST_REAL, left, left, (GLOBAL const float *)(GLOBAL void *)out,
               GID0, GID1, rows, columns, rank, keep ? R(1) : R(0), scale, R(0), R(0));
}
