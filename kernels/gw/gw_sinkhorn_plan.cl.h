/* gw_sinkhorn_plan.cl.h - what is made of a plan on a device: its sums, its cost and its rows; costs
 * in a smaller form, and the caller's own looked at and brought into order.
 *
 *     P_ij = p_i y_j 2^(x_ij + g_j) + u_i v_j,     y 1 and u = v = 0 before it is rounded
 */

/** p 2^(x_ij + g_j), 0 for a row without weight, whatever its exponents are. */
FUNCTION real sinkhorn_weight(const sinkhorn *s, int i, int j, real p)
{
    return p > R(0) ? p * EXP2(sinkhorn_x(s, i, j) + s->g[j]) : R(0);
}

/** Rows' sums, and columns' sums by groups; where SK_EXACT_ROWS is set p is scaled so that rows sum
 *  to a.  Without the term of rank one. */
FUNCTION void sinkhorn_plan_rows_of(const sinkhorn *s, int group, LOCAL real *room)
{
    GLOBAL real *const v = s->v, *const p = v + s->at[SK_P];
    GLOBAL const real *const y = v + s->at[SK_Y], *const a = v + s->at[SK_A];
    GLOBAL real *const partial = v + s->at[SK_PARTIAL] + (i64)group * s->m;
    const int each = (int)s->at[SK_EACH], first = group * each;
    const int last = (int)least(first + each, s->n);
    for (int j = LID0; j < s->m; j += LSIZE0) {
        partial[j] = 0;
    }
    for (int i = first; i < last; i++) {
        const int live = a[i] > R(0); /* else p is 0 */
        real sum[1] = {R(0)};
        for (int j = LID0; j < s->m; j += LSIZE0) {
            sum[0] += sinkhorn_weight(s, i, j, p[i]) * y[j];
        }
        sinkhorn_reduce(room, sum, 1, 1);
        const real scale = s->at[SK_EXACT_ROWS] && live ? a[i] / sum[0] : R(1), pi = p[i] * scale;
        for (int j = LID0; j < s->m; j += LSIZE0) {
            partial[j] += sinkhorn_weight(s, i, j, pi) * y[j];
        }
        BARRIER;
        if (LID0 == 0) {
            p[i] = pi;
            v[s->at[SK_ROW_SUM] + i] = scale * sum[0];
        }
    }
}

/** sum_j P_ij c_ij of eight rows a group. */
FUNCTION void sinkhorn_plan_costs_of(const sinkhorn *s, int group, LOCAL real *room)
{
    GLOBAL real *const v = s->v;
    GLOBAL const real *const y = v + s->at[SK_Y], *const w = v + s->at[SK_V];
    const int first = group * SK_ROWS, last = (int)least(first + SK_ROWS, s->n);
    for (int i = first; i < last; i++) {
        const real p = v[s->at[SK_A] + i] > R(0) ? v[s->at[SK_P] + i] : R(0);
        const real u = v[s->at[SK_U] + i];
        real sum[1] = {R(0)};
        for (int j = LID0; j < s->m; j += LSIZE0) {
            const real weight = sinkhorn_weight(s, i, j, p);
            sum[0] += (y[j] * weight + u * w[j]) * sinkhorn_cost(s, i, j);
        }
        sinkhorn_reduce(room, sum, 1, 1);
        if (LID0 == 0) {
            v[s->at[SK_ROW_COST] + i] = sum[0];
        }
    }
}

KERNEL void sinkhorn_plan_rows(ITEM GLOBAL const real *costs, GLOBAL real *v, GLOBAL const i64 *at)
{
    LOCAL_MEM(real, room, GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_REAL, v, at);
    sinkhorn_plan_rows_of(&s, (int)GID0, room);
}

KERNEL void sinkhorn_plan_rows_float(ITEM GLOBAL const float *costs, GLOBAL real *v,
                                     GLOBAL const i64 *at)
{
    LOCAL_MEM(real, room, GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FLOAT, v, at);
    sinkhorn_plan_rows_of(&s, (int)GID0, room);
}

/** The columns' sums from those of the groups, 32 columns a group. */
KERNEL void sinkhorn_plan_columns(ITEM GLOBAL real *v, GLOBAL const i64 *at)
{
    const sinkhorn s = sinkhorn_of(v, SK_COST_REAL, v, at);
    const int first = (int)GID0 * SK_BLOCK_COLUMNS;
    const int last = (int)least(first + SK_BLOCK_COLUMNS, s.m);
    for (int j = first + LID0; j < last; j += LSIZE0) {
        v[at[SK_COL] + j] = sinkhorn_slice(&s, j, 0, 1);
    }
}

KERNEL void sinkhorn_plan_costs(ITEM GLOBAL const real *costs, GLOBAL real *v, GLOBAL const i64 *at)
{
    LOCAL_MEM(real, room, GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_REAL, v, at);
    sinkhorn_plan_costs_of(&s, (int)GID0, room);
}

KERNEL void sinkhorn_plan_costs_float(ITEM GLOBAL const float *costs, GLOBAL real *v,
                                      GLOBAL const i64 *at)
{
    LOCAL_MEM(real, room, GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FLOAT, v, at);
    sinkhorn_plan_costs_of(&s, (int)GID0, room);
}

/** out <- costs as floats; SK_NARROW elements a group. */
KERNEL void sinkhorn_narrow(ITEM GLOBAL float *out, GLOBAL const real *costs, i64 count)
{
    const i64 first = GID0 * SK_NARROW;
    for (i64 e = first + LID0; e < least(first + SK_NARROW, count); e += LSIZE0) {
        out[e] = (float)costs[e];
    }
}

/** Fixed point: out <- (costs - low) / step to the nearest, within 0 .. 65535. */
KERNEL void sinkhorn_fix(ITEM GLOBAL u16 *out, GLOBAL const real *costs, i64 count, real low,
                         real inverse)
{
    const i64 first = GID0 * SK_NARROW;
    for (i64 e = first + LID0; e < least(first + SK_NARROW, count); e += LSIZE0) {
        const real q = (costs[e] - low) * inverse + R(0.5);
        out[e] = (u16)FMIN(FMAX(q, R(0)), R(65535));
    }
}

/** P_ij of eight rows a group, of first .. last-1, into out, as floats where `narrow` is set. */
FUNCTION void sinkhorn_plan_of(const sinkhorn *s, i64 group, GLOBAL void *out, int narrow,
                               i64 first, i64 last, i64 down, i64 right)
{
    GLOBAL const real *const v = s->v;
    GLOBAL const real *const y = v + s->at[SK_Y], *const w = v + s->at[SK_V];
    const i64 begin = first + group * SK_ROWS, end = least(begin + SK_ROWS, last);
    for (i64 i = begin; i < end; i++) {
        const real p = v[s->at[SK_A] + i] > R(0) ? v[s->at[SK_P] + i] : R(0);
        const real u = v[s->at[SK_U] + i];
        for (int j = LID0; j < s->m; j += LSIZE0) {
            const real x = y[j] * sinkhorn_weight(s, (int)i, j, p) + u * w[j];
            const i64 to = (i - first) * down + j * right;
            if (narrow) {
                ((GLOBAL float *)out)[to] = (float)x;
            } else {
                ((GLOBAL real *)out)[to] = x;
            }
        }
    }
}

KERNEL void sinkhorn_plan_wide(ITEM GLOBAL const real *costs, GLOBAL real *v, GLOBAL const i64 *at,
                               GLOBAL real *out, i64 first, i64 last, i64 down, i64 right)
{
    const sinkhorn s = sinkhorn_of(costs, SK_COST_REAL, v, at);
    sinkhorn_plan_of(&s, GID0, out, 0, first, last, down, right);
}

KERNEL void sinkhorn_plan_wide_float(ITEM GLOBAL const float *costs, GLOBAL real *v,
                                     GLOBAL const i64 *at, GLOBAL real *out, i64 first, i64 last,
                                     i64 down, i64 right)
{
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FLOAT, v, at);
    sinkhorn_plan_of(&s, GID0, out, 0, first, last, down, right);
}

KERNEL void sinkhorn_plan_narrow(ITEM GLOBAL const real *costs, GLOBAL real *v,
                                 GLOBAL const i64 *at, GLOBAL float *out, i64 first, i64 last,
                                 i64 down, i64 right)
{
    const sinkhorn s = sinkhorn_of(costs, SK_COST_REAL, v, at);
    sinkhorn_plan_of(&s, GID0, out, 1, first, last, down, right);
}

KERNEL void sinkhorn_plan_narrow_float(ITEM GLOBAL const float *costs, GLOBAL real *v,
                                       GLOBAL const i64 *at, GLOBAL float *out, i64 first, i64 last,
                                       i64 down, i64 right)
{
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FLOAT, v, at);
    sinkhorn_plan_of(&s, GID0, out, 1, first, last, down, right);
}

/** Element (i, j) of costs with any strides. */
FUNCTION real sinkhorn_given(GLOBAL const void *costs, int form, i64 at)
{
    return form == SK_COST_REAL ? ((GLOBAL const real *)costs)[at]
                                : (real)((GLOBAL const float *)costs)[at];
}

/** Of eight rows a group: the smallest entry, the largest, and the place i m + j of the first that
 *  is not finite, -1 where all are (a place is exact in doubles). */
FUNCTION void sinkhorn_see_of(i64 group, GLOBAL real *seen, GLOBAL const void *costs, int form,
                              i64 n, i64 m, i64 down, i64 right, LOCAL real *room)
{
    const i64 first = group * SK_ROWS, last = least(first + SK_ROWS, n);
    const real none = -EXP2(R(2000)); /* less than all: -infinity */
    real x[3] = {none, none, none};   /* -least, most, -place */
    for (i64 i = first; i < last; i++) {
        for (i64 j = LID0; j < m; j += LSIZE0) {
            const real c = sinkhorn_given(costs, form, i * down + j * right);
            if (c - c == R(0)) {
                x[0] = FMAX(x[0], -c);
                x[1] = FMAX(x[1], c);
            } else {
                x[2] = FMAX(x[2], -(real)((i - first) * m + j));
            }
        }
    }
    sinkhorn_reduce(room, x, 0, 3);
    if (LID0 == 0) {
        seen[group * SK_SEEN_COUNT + SK_SEEN_LEAST] = -x[0];
        seen[group * SK_SEEN_COUNT + SK_SEEN_MOST] = x[1];
        seen[group * SK_SEEN_COUNT + SK_SEEN_BAD] = x[2] == none ? R(-1) : -x[2];
    }
}

KERNEL void sinkhorn_see(ITEM GLOBAL real *seen, GLOBAL const real *costs, i64 n, i64 m, i64 down,
                         i64 right)
{
    LOCAL_MEM(real, room, 3 * GROUP_MOST);
    sinkhorn_see_of(GID0, seen, costs, SK_COST_REAL, n, m, down, right, room);
}

KERNEL void sinkhorn_see_float(ITEM GLOBAL real *seen, GLOBAL const float *costs, i64 n, i64 m,
                               i64 down, i64 right)
{
    LOCAL_MEM(real, room, 3 * GROUP_MOST);
    sinkhorn_see_of(GID0, seen, costs, SK_COST_FLOAT, n, m, down, right, room);
}

/** out <- costs row by row, m to a row; SK_NARROW elements a group. */
KERNEL void sinkhorn_collect(ITEM GLOBAL real *out, GLOBAL const real *costs, i64 count, i64 m,
                             i64 down, i64 right)
{
    const i64 first = GID0 * SK_NARROW;
    for (i64 e = first + LID0; e < least(first + SK_NARROW, count); e += LSIZE0) {
        out[e] = costs[e / m * down + e % m * right];
    }
}

KERNEL void sinkhorn_collect_float(ITEM GLOBAL float *out, GLOBAL const float *costs, i64 count,
                                   i64 m, i64 down, i64 right)
{
    const i64 first = GID0 * SK_NARROW;
    for (i64 e = first + LID0; e < least(first + SK_NARROW, count); e += LSIZE0) {
        out[e] = costs[e / m * down + e % m * right];
    }
}
