/* gw_distances.cl.h - distances inside one side on a device, n x n, before an alignment begins.
 *
 *     points       |z_i - z_k|
 *     landmarks    the same of the landmarks' distances, or the bounds of path lengths that these
 *                  give: max_l |z_il - z_kl| below, min_l (z_il + z_kl) above
 *     paths        of a graph whose arcs go both ways, one source a group:
 *
 *         x_v <- min(x_v, min over arcs u -> v of (x_u + length)),  until nothing falls
 *
 * A length is the least sum along a path, added from the source on.  Sums of floats never fall when
 * a term is replaced by a larger one, so that what the iteration ends at does not depend on its
 * order: the lengths have the bits of any other search that adds in that order.
 *
 *     a matrix     (x_ik + x_ki) / 2 of the caller's, in either type and with any strides
 */

/** An element of distances in either type. */
FUNCTION wide level_element(GLOBAL const void *x, i32 floats, i64 at)
{
    return floats ? (wide)((GLOBAL const float *)x)[at] : ((GLOBAL const wide *)x)[at];
}

/** all[i n + k] <- (x_ik + x_ki) / 2, and what is seen of row i (LV_SEEN_...), a row a group.  A
 *  distance is from 0 to `largest`, or `infinite`. */
KERNEL void level_given(ITEM GLOBAL real *all, GLOBAL wide *seen, GLOBAL const real *x, i32 floats,
                        i64 n, i64 down, i64 right, wide largest, wide infinite)
{
    LOCAL_MEM(wide, scratch, GROUP_MOST);
    const i64 i = GID0;
    GLOBAL wide *const of = seen + i * LV_SEEN_COUNT;
    wide bad = (wide)n, most = 0, gap = 0, diagonal = 0, far = 0, cut = 0, sum = 0;
    for (i64 k = LID0; k < n; k += LSIZE0) {
        const wide one = level_element(x, floats, i * down + k * right);
        const wide other = level_element(x, floats, k * down + i * right);
        const real mean = (real)(W(0.5) * (one + other));
        const int good = one >= W(0) && (one <= largest || one >= infinite);
        bad = good ? bad : FMIN(bad, (wide)k);
        most = one < infinite ? FMAX(most, one) : most;
        gap = one < infinite ? FMAX(gap, FABS(one - other)) : gap;
        diagonal = k == i ? one : diagonal;
        far = (wide)mean < infinite ? FMAX(far, (wide)mean) : far;
        cut = (wide)mean < infinite ? cut : W(1);
        sum += (wide)mean < infinite ? (wide)(k + 1) * (wide)mean : W(0);
        all[i * n + k] = mean;
    }
    bad = group_min_wide(bad, scratch);
    most = group_max_wide(most, scratch);
    gap = group_max_wide(gap, scratch);
    diagonal = group_max_wide(diagonal, scratch);
    far = group_max_wide(far, scratch);
    cut = group_max_wide(cut, scratch);
    sum = group_sum_wide(sum, scratch);
    if (LID0 == 0) {
        of[LV_SEEN_BAD] = bad;
        of[LV_SEEN_MOST] = most;
        of[LV_SEEN_GAP] = gap;
        of[LV_SEEN_DIAGONAL] = diagonal;
        of[LV_SEEN_FAR] = far;
        of[LV_SEEN_CUT] = cut;
        of[LV_SEEN_SUM] = sum;
    }
}

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

/** Bounds of path lengths, scaled: `upper` times that from above, the rest that from below; 0 from a
 *  point to itself.  A row a group. */
KERNEL void level_bounds(ITEM GLOBAL real *all, GLOBAL const real *points, i64 n, i64 d, real scale,
                         real upper)
{
    const i64 k = GID0;
    for (i64 i = LID0; i < n; i += LSIZE0) {
        GLOBAL const real *const z = points + i * d, *const w = points + k * d;
        real low = 0, high = z[0] + w[0];
        for (i64 c = 0; c < d; c++) {
            low = FMAX(low, FABS(z[c] - w[c]));
            high = FMIN(high, z[c] + w[c]);
        }
        all[k * n + i] = i == k ? R(0) : scale * ((R(1) - upper) * low + upper * high);
    }
}

/** Rows first, first + 1, ... of all[k n + i] <- lengths of the shortest paths from k to i, or
 *  `infinite`; a source a group, which has n numbers of `spare`. */
KERNEL void level_paths(ITEM GLOBAL real *all, GLOBAL real *spare, GLOBAL const i64 *starts,
                        GLOBAL const i32 *targets, GLOBAL const real *lengths, i64 n, i64 first,
                        real infinite)
{
    LOCAL_MEM(i64, room, GROUP_MOST);
    const i64 source = first + GID0;
    GLOBAL real *now = all + source * n, *next = spare + GID0 * n;
    i64 moved = 1;
    for (i64 v = LID0; v < n; v += LSIZE0) {
        now[v] = v == source ? R(0) : infinite;
    }
    BARRIER;
    while (moved) { /* behind the last turn both have the same numbers */
        GLOBAL real *const other = now;
        moved = 0;
        for (i64 v = LID0; v < n; v += LSIZE0) {
            const real before = now[v];
            real best = before;
            for (i64 e = starts[v]; e < starts[v + 1]; e++) {
                best = FMIN(best, now[targets[e]] + lengths[e]);
            }
            next[v] = best;
            moved = best < before ? 1 : moved;
        }
        moved = group_max_i64(moved, room);
        now = next;
        next = other;
    }
}

/** out <- scale times x, an infinite one as `beyond`; SK_NARROW elements a group. */
KERNEL void level_rescale(ITEM GLOBAL real *out, GLOBAL const real *x, i64 count, real scale,
                          real beyond, real infinite)
{
    const i64 first = GID0 * SK_NARROW;
    for (i64 e = first + LID0; e < least(first + SK_NARROW, count); e += LSIZE0) {
        out[e] = scale * (x[e] < infinite ? x[e] : beyond);
    }
}
