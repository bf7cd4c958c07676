/* gw_lowrank.cl.h - an alignment in factors on a device: P = Q diag(1/h) W', as gw_lowrank.c has it.
 *
 *     pairs        a component of each row's Q_i. / a_i, a column of W_.c / h_c
 *     rows         distances to both points of a pair, centred; the first side's times the share
 *     gradients    Dx' (Dy W) and Dy' (Dx Q), and theta times those of a linear cost
 *     derived      omega_c = sum_i Q_ic grad_ic, the value, grad_h = -omega / h^2, max |grad|
 *     mirror       xi = (1 - gamma eps) log Q - gamma grad, W and h alike; exp(xi)
 *     a pass       rows of both kernels to their weights; columns and h by Dykstra's algorithm
 *     factors      Q, W, h
 *
 * Most kernels take the groups of LR_CHUNK points of side GID1.  What a group adds by components it
 * leaves to one group that adds those of all, in their order; a pass is two kernels, and those
 * behind the last one leave everything as it is, so that nothing waits for the host between polls.
 */

/* What entries are at least, sums of columns, their scaling; the programs of floats, which no room
 * loads, have limits of their own. */
#if defined(FOURGE_F64)
#define LR_LEAST_ENTRY 1e-300
#define LR_LEAST_SUM   1e-250
#define LR_LEAST_SCALE 1e-100
#else
#define LR_LEAST_ENTRY 1e-37
#define LR_LEAST_SUM   1e-30
#define LR_LEAST_SCALE 1e-15
#endif

FUNCTION GLOBAL const i64 *lowrank_side(GLOBAL const i64 *at, int second)
{
    return at + second * LR_OF_SIDE;
}

/** The first of `count` weights with which their sums pass `share` of all, as the host draws. */
FUNCTION i64 lowrank_component(GLOBAL const real *weight, i64 count, real share)
{
    real total = 0, below = 0;
    i64 last = 0, found = -1;
    for (i64 c = 0; c < count; c++) {
        total += weight[c];
    }
    for (i64 c = 0; c < count && found < 0; c++) {
        below += weight[c];
        last = weight[c] > R(0) ? c : last;
        found = below > share * total ? c : -1;
    }
    return found >= 0 ? found : last;
}

/** Columns of the pairs first, first + 1, ..., a pair a group: random numbers of `count` components,
 *  then of as many columns. */
KERNEL void lowrank_draw(ITEM GLOBAL i32 *column, GLOBAL const i32 *row, GLOBAL const real *uniform,
                         GLOBAL const real *v, GLOBAL const i64 *at, i64 first, i64 count)
{
    LOCAL_MEM(wide, sums, LV_RUNS);
    GLOBAL const i64 *const other = lowrank_side(at, 1);
    const i64 m = other[LR_POINTS], rank = at[LR_RANK], each = (m + LV_RUNS - 1) / LV_RUNS;
    const i64 i = row[first + GID0];
    const i64 c = lowrank_component(v + at[LR_FACTOR] + i * rank, rank, uniform[GID0]);
    GLOBAL const real *const weight = v + other[LR_FACTOR] + c;
    for (i64 run = LID0; run < LV_RUNS; run += LSIZE0) {
        wide sum = W(0);
        for (i64 j = run * each; j < least((run + 1) * each, m); j++) {
            sum += W(weight[j * rank]);
        }
        sums[run] = sum;
    }
    BARRIER;
    if (LID0 == 0) {
        wide below;
        const wide goal = W(uniform[count + GID0]) * level_total(sums);
        const i64 run = level_run(sums, goal, &below);
        i64 last = 0, found = -1;
        for (i64 j = run * each; j < least((run + 1) * each, m) && found < 0; j++) {
            below += W(weight[j * rank]);
            last = weight[j * rank] > R(0) ? j : last;
            found = below > goal ? j : -1;
        }
        column[first + GID0] = (i32)(found >= 0 ? found : last);
    }
}

/** Row GID0 of side GID1: distances from the point of pair first + GID0, less their mean. */
KERNEL void lowrank_rows(ITEM GLOBAL real *v, GLOBAL const i64 *at, GLOBAL const float *x,
                         GLOBAL const float *y, GLOBAL const i32 *row, GLOBAL const i32 *column,
                         i64 first, real share)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const int second = (int)GID1;
    GLOBAL const i64 *const of = lowrank_side(at, second);
    const i64 n = of[LR_POINTS], point = second ? column[first + GID0] : row[first + GID0];
    GLOBAL const float *const from = (second ? y : x) + point * n;
    GLOBAL const real *const weight = v + of[LR_WEIGHTS];
    GLOBAL real *const to = v + of[LR_ROWS] + GID0 * n;
    wide mean = W(0);
    for (i64 i = LID0; i < n; i += LSIZE0) {
        mean += W(weight[i]) * W(from[i]);
    }
    mean = group_sum_wide(mean, room);
    for (i64 i = LID0; i < n; i += LSIZE0) {
        to[i] = (second ? R(1) : share) * R(W(from[i]) - mean);
    }
}

/* ---- gradients ------------------------------------------------------------------------------- */

/** Entry (pair GID0, component GID1 modulo the rank) of the middle of side GID1 / rank. */
KERNEL void lowrank_middle(ITEM GLOBAL real *v, GLOBAL const i64 *at)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const i64 rank = at[LR_RANK], c = GID1 % rank;
    const int second = (int)(GID1 / rank);
    GLOBAL const i64 *const other = lowrank_side(at, 1 - second);
    const i64 n = other[LR_POINTS];
    GLOBAL const real *const row = v + other[LR_ROWS] + GID0 * n;
    GLOBAL const real *const factor = v + other[LR_FACTOR];
    wide sum = W(0);
    for (i64 i = LID0; i < n; i += LSIZE0) {
        sum += W(row[i]) * W(factor[i * rank + c]);
    }
    sum = group_sum_wide(sum, room);
    if (LID0 == 0) {
        v[lowrank_side(at, second)[LR_MIDDLE] + GID0 * rank + c] = R(sum);
    }
}

/** Row GID0 of a side's gradient += theta times that of the linear cost. */
KERNEL void lowrank_linear(ITEM GLOBAL real *v, GLOBAL const i64 *at, GLOBAL const float *linear,
                           real theta, i32 second)
{
    LOCAL_MEM(real, costs, LV_RUNS);
    GLOBAL const i64 *const other = lowrank_side(at, 1 - second);
    const i64 rank = at[LR_RANK], n = other[LR_POINTS], m = lowrank_side(at, 1)[LR_POINTS];
    GLOBAL const real *const factor = v + other[LR_FACTOR];
    GLOBAL real *const to = v + lowrank_side(at, second)[LR_GRADIENT] + GID0 * rank;
    for (i64 first = 0; first < n; first += LV_RUNS) {
        const i64 last = least(first + LV_RUNS, n);
        for (i64 j = first + LID0; j < last; j += LSIZE0) {
            costs[j - first] = theta * (real)linear[second ? j * m + GID0 : GID0 * m + j];
        }
        BARRIER;
        for (i64 c = LID0; c < rank; c += LSIZE0) {
            real sum = 0;
            for (i64 j = first; j < last; j++) {
                sum += costs[j - first] * factor[j * rank + c];
            }
            to[c] += sum;
        }
        BARRIER;
    }
}

FUNCTION real lowrank_entropy(real x)
{
    return x > R(0) ? x * (LOG(x) - R(1)) : R(0);
}

/** Of a group's points, by components: sum factor gradient, max |gradient|, the entropy. */
KERNEL void lowrank_parts(ITEM GLOBAL real *v, GLOBAL const i64 *at)
{
    GLOBAL const i64 *const of = lowrank_side(at, (int)GID1);
    const i64 rank = at[LR_RANK], chunks = of[LR_CHUNKS], first = GID0 * LR_CHUNK;
    const i64 last = least(first + LR_CHUNK, of[LR_POINTS]);
    GLOBAL const real *const factor = v + of[LR_FACTOR], *const gradient = v + of[LR_GRADIENT];
    GLOBAL real *const parts = v + of[LR_PARTS] + GID0 * rank;
    for (i64 c = LID0; c < rank && GID0 < chunks; c += LSIZE0) {
        real sum = 0, most = 0, entropy = 0;
        for (i64 i = first; i < last; i++) {
            const real x = factor[i * rank + c], slope = gradient[i * rank + c];
            sum += x * slope;
            most = FMAX(most, FABS(slope));
            entropy += lowrank_entropy(x);
        }
        parts[c] = sum;
        parts[chunks * rank + c] = most;
        parts[2 * chunks * rank + c] = entropy;
    }
}

/** The value, grad_h and max |gradient|.  One group. */
KERNEL void lowrank_derived(ITEM GLOBAL real *v, GLOBAL const i64 *at, real epsilon)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const i64 rank = at[LR_RANK];
    wide value = W(0), most = W(0);
    for (i64 c = LID0; c < rank; c += LSIZE0) {
        const real h = v[at[LR_H] + c];
        real entropy = lowrank_entropy(h), omega = 0;
        for (int second = 0; second < 2; second++) {
            GLOBAL const i64 *const of = lowrank_side(at, second);
            const i64 all = of[LR_CHUNKS] * rank;
            GLOBAL const real *const parts = v + of[LR_PARTS];
            real largest = 0;
            for (i64 e = c; e < all; e += rank) {
                omega += second ? R(0) : parts[e];
                largest = FMAX(largest, parts[all + e]);
                entropy += parts[2 * all + e];
            }
            most = FMAX(most, W(largest / h));
        }
        const real slope = -omega / (h * h);
        v[at[LR_GRADIENT_H] + c] = slope;
        most = FMAX(most, W(FABS(slope)));
        value += W(epsilon * entropy + omega / h);
    }
    value = group_sum_wide(value, room);
    most = group_max_wide(most, room);
    if (GID0 == 0 && LID0 == 0) {
        v[at[LR_NUMBERS] + LRN_VALUE] = R(value);
        v[at[LR_NUMBERS] + LRN_MOST] = R(most);
    }
}

/* ---- projection ------------------------------------------------------------------------------ */

/** Row i of the kernel <- exp(log - its maximum). */
FUNCTION void lowrank_exponentiate(GLOBAL real *v, GLOBAL const i64 *of, i64 rank, i64 i)
{
    GLOBAL const real *const log_k = v + of[LR_LOG] + i * rank;
    GLOBAL real *const k = v + of[LR_KERNEL] + i * rank;
    real top = log_k[0];
    for (i64 c = 1; c < rank; c++) {
        top = FMAX(top, log_k[c]);
    }
    v[of[LR_SHIFT] + i] = top;
    for (i64 c = 0; c < rank; c++) {
        k[c] = EXP(log_k[c] - top);
    }
}

/** xi and its exponentials, and a projection begins.  pace: a factor on gamma, 0: of the factors as
 *  they are; below 0: xi is there already. */
KERNEL void lowrank_mirror(ITEM GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at,
                           real epsilon, real pace)
{
    GLOBAL const i64 *const of = lowrank_side(at, (int)GID1);
    const i64 rank = at[LR_RANK], first = GID0 * LR_CHUNK;
    const i64 last = least(first + LR_CHUNK, of[LR_POINTS]);
    const real most = v[at[LR_NUMBERS] + LRN_MOST], square = FMAX(most * most, R(1e-30));
    const real gamma = FMAX(pace, R(0)) * FMIN(R(10) / square, R(1) / epsilon);
    const real keep = R(1) - gamma * epsilon;
    GLOBAL const real *const h = v + at[LR_H], *const gradient = v + of[LR_GRADIENT];
    for (i64 i = first + LID0; i < last; i += LSIZE0) {
        for (i64 c = 0; c < rank && pace >= R(0); c++) {
            const real x = FMAX(v[of[LR_FACTOR] + i * rank + c], R(LR_LEAST_ENTRY));
            v[of[LR_LOG] + i * rank + c] = keep * LOG(x) - gamma * (gradient[i * rank + c] / h[c]);
        }
        lowrank_exponentiate(v, of, rank, i);
        v[of[LR_U] + i] = 0;
    }
    for (i64 c = LID0; c < rank && GID0 == 0; c += LSIZE0) {
        v[of[LR_V] + c] = 1;
        if (GID1 == 0) {
            v[at[LR_CORRECTION] + c] = 0;
        }
        if (GID1 == 0 && pace >= R(0)) {
            v[at[LR_LOG_H] + c] = keep * LOG(h[c]) - gamma * v[at[LR_GRADIENT_H] + c];
        }
    }
    for (int q = LID0; q < LRC_COUNT && GID0 == 0 && GID1 == 0; q += LSIZE0) {
        counts[q] = 0;
    }
}

/** u <- weight / (kernel v) of a group's points, and its part of kernel' u. */
KERNEL void lowrank_scale(ITEM GLOBAL real *v, GLOBAL const i32 *counts, GLOBAL const i64 *at)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    GLOBAL const i64 *const of = lowrank_side(at, (int)GID1);
    const i64 rank = at[LR_RANK], first = GID0 * LR_CHUNK, n = of[LR_POINTS];
    const int goes_on = counts[LRC_DONE] == 0 && GID0 < of[LR_CHUNKS];
    const i64 last = goes_on ? least(first + LR_CHUNK, n) : first;
    GLOBAL const real *const kernel_of = v + of[LR_KERNEL], *const scale = v + of[LR_V];
    GLOBAL real *const u = v + of[LR_U];
    wide error = W(0);
    for (i64 i = first + LID0; i < last; i += LSIZE0) {
        const real weight = v[of[LR_WEIGHTS] + i];
        real sum = 0;
        for (i64 c = 0; c < rank; c++) {
            sum += kernel_of[i * rank + c] * scale[c];
        }
        error += W(FABS(u[i] * sum - weight));
        u[i] = weight > R(0) && sum > R(0) ? weight / sum : R(0);
    }
    error = group_sum_wide(error, room);
    for (i64 c = LID0; c < rank && goes_on; c += LSIZE0) {
        real sum = 0;
        for (i64 i = first; i < last; i++) {
            sum += kernel_of[i * rank + c] * u[i];
        }
        v[of[LR_PARTS] + GID0 * rank + c] = sum;
    }
    if (LID0 == 0 && goes_on) {
        v[of[LR_ERRORS] + GID0] = R(error);
    }
}

/** The columns of component c and h: the step of Dykstra's algorithm. */
FUNCTION void lowrank_move(GLOBAL real *v, GLOBAL const i64 *at, i64 c, real least_log)
{
    GLOBAL real *const x = v + lowrank_side(at, 0)[LR_V] + c;
    GLOBAL real *const y = v + lowrank_side(at, 1)[LR_V] + c;
    const real raised = v[at[LR_LOG_H] + c] + v[at[LR_CORRECTION] + c];
    const real kept = FMAX(least_log, raised);
    const real log_x = LOG(v[lowrank_side(at, 0)[LR_SUMS] + c] * *x);
    const real log_y = LOG(v[lowrank_side(at, 1)[LR_SUMS] + c] * *y);
    const real mean = (kept + log_x + log_y) / R(3);
    v[at[LR_CORRECTION] + c] = raised - kept;
    *x *= EXP(mean - log_x);
    *y *= EXP(mean - log_y);
    v[at[LR_LOG_H] + c] = mean;
}

/** Whether sums of a column, or its scaling, are beyond what reals hold. */
FUNCTION int lowrank_is_lost(real sum, real scale)
{
    return !(sum > R(LR_LEAST_SUM) && R(1) / sum > R(LR_LEAST_SUM)) ||
           !(scale > R(LR_LEAST_SCALE) && R(1) / scale > R(LR_LEAST_SCALE));
}

/** The sums of all groups, whether passes go on, and the columns' step.  One group. */
KERNEL void lowrank_columns(ITEM GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at,
                            real least_log)
{
    LOCAL_MEM(wide, room, GROUP_MOST);
    const i64 rank = at[LR_RANK];
    const i32 done = counts[LRC_DONE], again = counts[LRC_AGAIN], passes = counts[LRC_PASSES];
    wide error = W(0), lost[2] = {W(0), W(0)};
    for (int second = 0; second < 2; second++) {
        GLOBAL const i64 *const of = lowrank_side(at, second);
        const i64 chunks = done ? 0 : of[LR_CHUNKS];
        for (i64 c = LID0; c < rank && !done; c += LSIZE0) {
            real sum = 0;
            for (i64 q = 0; q < chunks; q++) {
                sum += v[of[LR_PARTS] + q * rank + c];
            }
            v[of[LR_SUMS] + c] = sum;
            lost[second] += lowrank_is_lost(sum, v[of[LR_V] + c]) ? W(1) : W(0);
        }
        for (i64 q = LID0; q < chunks; q += LSIZE0) {
            error += W(v[of[LR_ERRORS] + q]);
        }
    }
    error = group_sum_wide(error, room) + (again ? W(1) : W(0));
    lost[0] = group_sum_wide(lost[0], room);
    lost[1] = group_sum_wide(lost[1], room);
    const i32 sides = (lost[0] > W(0) ? 1 : 0) + (lost[1] > W(0) ? 2 : 0);
    const int is_number = error - error <= W(0);
    const i32 now = sides && !again                  ? LRD_LOST
                    : !is_number                     ? LRD_NOT_A_NUMBER
                    : error <= W(1e-7) && passes > 0 ? LRD_WITHIN
                                                     : 0;
    for (i64 c = LID0; c < rank && !done && !now; c += LSIZE0) {
        lowrank_move(v, at, c, least_log);
    }
    if (GID0 == 0 && LID0 == 0 && !done) {
        counts[LRC_DONE] = now;
        counts[LRC_LOST] = sides;
        counts[LRC_AGAIN] = 0;
        counts[LRC_PASSES] = passes + (now != LRD_LOST);
        v[at[LR_NUMBERS] + LRN_ERROR] = R(error);
    }
}

/** Of the sides whose columns are lost the scaling of columns goes into the logarithms; of a group's
 *  points by components the largest of these, relative to the row's. */
KERNEL void lowrank_tops(ITEM GLOBAL real *v, GLOBAL const i32 *counts, GLOBAL const i64 *at)
{
    GLOBAL const i64 *const of = lowrank_side(at, (int)GID1);
    const i64 rank = at[LR_RANK], first = GID0 * LR_CHUNK;
    const i64 last = least(first + LR_CHUNK, of[LR_POINTS]);
    const int is_lost = (counts[LRC_LOST] >> GID1 & 1) != 0 && GID0 < of[LR_CHUNKS];
    for (i64 c = LID0; c < rank && is_lost; c += LSIZE0) {
        const real scale = v[of[LR_V] + c], log_v = scale > R(0) ? LOG(scale) : R(0);
        real top = R(-1e30);
        for (i64 i = first; i < last; i++) {
            GLOBAL real *const log_k = v + of[LR_LOG] + i * rank + c;
            *log_k += log_v;
            if (v[of[LR_WEIGHTS] + i] > R(0)) {
                top = FMAX(top, *log_k - v[of[LR_SHIFT] + i]);
            }
        }
        v[of[LR_PARTS] + GID0 * rank + c] = top;
    }
}

/** Behind lowrank_tops: columns far below all others are moved to 0, new exponentials; the pass is
 *  to be done again. */
KERNEL void lowrank_absorb(ITEM GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at)
{
    GLOBAL const i64 *const of = lowrank_side(at, (int)GID1);
    const i64 rank = at[LR_RANK], first = GID0 * LR_CHUNK, n = of[LR_POINTS];
    const int is_lost = (counts[LRC_LOST] >> GID1 & 1) != 0;
    const i64 last = is_lost ? least(first + LR_CHUNK, n) : first;
    for (i64 c = LID0; c < rank && is_lost; c += LSIZE0) {
        real top = R(-1e30);
        for (i64 q = 0; q < of[LR_CHUNKS]; q++) {
            top = FMAX(top, v[of[LR_PARTS] + q * rank + c]);
        }
        for (i64 i = first; i < last && top < R(-300); i++) {
            v[of[LR_LOG] + i * rank + c] -= top;
        }
        if (GID0 == 0) {
            v[of[LR_V] + c] = 1;
        }
    }
    BARRIER;
    for (i64 i = first + LID0; i < last; i += LSIZE0) {
        lowrank_exponentiate(v, of, rank, i);
    }
    if (GID0 == 0 && GID1 == 0 && LID0 == 0) {
        counts[LRC_DONE] = 0;
        counts[LRC_AGAIN] = 1;
    }
}

/** Both factors, and h: where the inner marginals meet. */
KERNEL void lowrank_factors(ITEM GLOBAL real *v, GLOBAL const i64 *at, real least_log)
{
    GLOBAL const i64 *const of = lowrank_side(at, (int)GID1), *const other = lowrank_side(at, 1);
    const i64 rank = at[LR_RANK], from = GID0 * LR_CHUNK * rank;
    const i64 last = least(from + LR_CHUNK * rank, of[LR_POINTS] * rank);
    for (i64 e = from + LID0; e < last; e += LSIZE0) {
        v[of[LR_FACTOR] + e] =
            v[of[LR_U] + e / rank] * v[of[LR_KERNEL] + e] * v[of[LR_V] + e % rank];
    }
    for (i64 c = LID0; c < rank && GID0 == 0 && GID1 == 0; c += LSIZE0) {
        const real x = v[of[LR_SUMS] + c] * v[of[LR_V] + c];
        const real y = v[other[LR_SUMS] + c] * v[other[LR_V] + c];
        v[at[LR_H] + c] = FMAX(SQRT(x * y), EXP(least_log));
    }
}
