/* gw_sinkhorn_plan.cl.h - what is made of a plan on a device: its sums and its cost, and costs in a
 * smaller form.
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
