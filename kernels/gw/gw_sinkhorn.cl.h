/* gw_sinkhorn.cl.h - Sinkhorn's iteration on a device, two kernels a pass.
 *
 * In units of log 2, as gw_sweep.h:
 *
 *     x_ij = (G0_j + H0_i) - k c_ij,    S_i = sum_j 2^(x_ij + g_j),    p_i = a_i / S_i
 *     col_j = sum_i p_i 2^(x_ij + g_j),    G_j <- G_j + log2(b_j / col_j)
 *
 * A group of sinkhorn_rows takes SK_EACH rows, eight at a time: a first visit of a row gives S, a
 * second adds its weights to the group's column sums.  A group of sinkhorn_columns takes 32
 * columns: it adds the groups' sums in their order and moves the potentials.  What a pass tells as
 * a whole (its error, the momentum, whether it was the last) every group of the next kernel works
 * out from the same numbers in the same order, so that nothing waits for the host between polls,
 * and kernels behind the last pass return at once.
 *
 * Relaxed marginals, tau = rho / (rho + epsilon): F_i = tau (log2 a_i + H0_i - log2 S_i), G alike,
 * and the constant between them of gw_transport.c.  Partial mass: the dummy row and column of
 * gw_transport.c.  Both move all G by one number, which is added where potentials are read next.
 *
 * No barrier stands behind a condition, in loops alone: PoCL copies what follows a conditional one
 * for either side, which doubles the text each time.
 *
 * Sums have a fixed order: an item's terms in runs of 64, a tree over the items, groups in theirs.
 */

#if defined(FOURGE_PLAIN_C)
#define EXP2(x)  EITHER(exp2, x)(x)
#define LOG2(x)  EITHER(log2, x)(x)
#define EXPM1(x) EITHER(expm1, x)(x)
#define LOG1P(x) EITHER(log1p, x)(x)
#else
#define EXP2(x)  exp2(x)
#define LOG2(x)  log2(x)
#define EXPM1(x) expm1(x)
#define LOG1P(x) log1p(x)
#endif

/** Sums of columns below the one and above the other are taken from their largest term, as rows that
 *  are relaxed may have any mass (gw_sweep.h). */
#define SK_LOST  R(1e-32)
#define SK_BURST R(1e30)

/** How costs are held. */
enum { SK_COST_REAL, SK_COST_FLOAT, SK_COST_FIXED };

/** A problem as kernels see it. */
typedef struct {
    GLOBAL const void *costs;
    int form; /* a constant to the compiler, everywhere */
    int n, m;
    real k, low, step;
    GLOBAL real *v;
    GLOBAL const i64 *at;
    GLOBAL const real *par, *g0, *g, *h0;
} sinkhorn;

typedef struct {
    real of[SKS_COUNT];
    i32 count[SKC_COUNT];
} sinkhorn_state;

FUNCTION sinkhorn sinkhorn_of(GLOBAL const void *costs, int form, GLOBAL real *v,
                              GLOBAL const i64 *at)
{
    sinkhorn s;
    s.costs = costs;
    s.form = form;
    s.n = (int)at[SK_N];
    s.m = (int)at[SK_M];
    s.v = v;
    s.at = at;
    s.par = v + at[SK_PARAMETERS];
    s.k = s.par[SKP_K];
    s.low = s.par[SKP_LOW];
    s.step = s.par[SKP_STEP];
    s.g0 = v + at[SK_G0];
    s.g = v + at[SK_G];
    s.h0 = v + at[SK_H0];
    return s;
}

FUNCTION sinkhorn_state sinkhorn_load(GLOBAL const real *v, GLOBAL const i32 *counts,
                                      GLOBAL const i64 *at, int slot)
{
    sinkhorn_state st;
    for (int q = 0; q < SKS_COUNT; q++) {
        st.of[q] = v[at[SK_STATES] + slot * SKS_COUNT + q];
    }
    for (int q = 0; q < SKC_COUNT; q++) {
        st.count[q] = counts[slot * SKC_COUNT + q];
    }
    return st;
}

FUNCTION void sinkhorn_keep(GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at, int slot,
                            const sinkhorn_state *st)
{
    for (int q = 0; q < SKS_COUNT; q++) {
        v[at[SK_STATES] + slot * SKS_COUNT + q] = st->of[q];
    }
    for (int q = 0; q < SKC_COUNT; q++) {
        counts[slot * SKC_COUNT + q] = st->count[q];
    }
}

FUNCTION real sinkhorn_cost(const sinkhorn *s, int i, int j)
{
    const i64 e = (i64)i * s->m + j;
    return s->form == SK_COST_FIXED  ? s->low + s->step * (real)((GLOBAL const u16 *)s->costs)[e]
           : s->form == SK_COST_REAL ? ((GLOBAL const real *)s->costs)[e]
                                     : (real)((GLOBAL const float *)s->costs)[e];
}

/** x_ij */
FUNCTION real sinkhorn_x(const sinkhorn *s, int i, int j)
{
    return (s->g0[j] + s->h0[i]) - s->k * sinkhorn_cost(s, i, j);
}

/** x[q] over all items: sums of the first `sums` of `count` values, the largest of the others. */
FUNCTION void sinkhorn_reduce(LOCAL real *room, real *x, int sums, int count)
{
    const int item = LID0, items = LSIZE0;
    for (int q = 0; q < count; q++) {
        room[q * items + item] = x[q];
    }
    BARRIER;
    for (int width = items / 2; width > 0; width /= 2) {
        for (int q = 0; q < count && item < width; q++) {
            const real one = room[q * items + item], two = room[q * items + item + width];
            room[q * items + item] = q < sums ? one + two : FMAX(one, two);
        }
        BARRIER;
    }
    for (int q = 0; q < count; q++) {
        x[q] = room[q * items];
    }
    BARRIER;
}

/* ---- between two passes ---------------------------------------------------------------------- */

/** Momentum of the next step, and whether there is one (frgi_transport_solve). */
FUNCTION void sinkhorn_judge(const sinkhorn *s, sinkhorn_state *st, real error)
{
    const int accelerate = (int)s->at[SK_ACCELERATE];
    i32 *const count = st->count;
    count[SKC_PASSES]++;
    count[SKC_SINCE]++;
    if (!accelerate || count[SKC_SINCE] < 5 || count[SKC_LOST] > 0) {
        st->of[SKS_MOMENTUM] = 0;
    } else if (error > st->of[SKS_ERROR]) {
        count[SKC_SINCE] = 5;
        st->of[SKS_MOMENTUM] = 0;
    } else {
        st->of[SKS_MOMENTUM] = (real)(count[SKC_SINCE] - 5) / (real)(count[SKC_SINCE] - 2);
    }
    st->of[SKS_ERROR] = error;
    if (error < st->of[SKS_LEAST]) {
        st->of[SKS_LEAST] = error;
        count[SKC_STEPS] += count[SKC_STALE] + 1;
        count[SKC_STALE] = 0;
    } else {
        count[SKC_STALE]++;
    }
    const real noise = s->par[SKP_NOISE] + s->par[SKP_NOISE_OF_REACH] * st->of[SKS_REACH];
    const int share = count[SKC_STEPS] / 4, wait = share > 8 ? share : 8;
    const int at_floor = st->of[SKS_LEAST] <= noise && count[SKC_STALE] >= wait &&
                         (!accelerate || count[SKC_STALE] >= 32);
    const real tol = s->par[SKP_TOL];
    if (!(error < R(1e38))) {
        count[SKC_DONE] = SKD_NOT_A_NUMBER;
    } else if (tol > R(0) && (error <= tol || at_floor)) {
        count[SKC_DONE] = error <= tol ? SKD_WITHIN : SKD_AT_FLOOR;
    }
}

/** What a pass has left, over all chunks and blocks. */
typedef struct {
    real error, lost, penalty_b, far, dummy, penalty_a;                  /* sums */
    real increment, reach, highest, minus_lowest, top_b, g, last, top_a; /* largest values */
    real log_g, log_last; /* partial: log2 of the sums of 2^G and of 2^G_last */
} sinkhorn_left;

/** Of the chunks' numbers there are two areas: a pass writes one while its groups still read the
 *  other, which the pass before wrote. */
FUNCTION i64 sinkhorn_chunk_area(const sinkhorn *s, int area)
{
    return s->at[SK_OF_CHUNKS] + (i64)area * s->at[SK_CHUNKS] * SK_CHUNK_COUNT;
}

FUNCTION sinkhorn_left sinkhorn_gather(const sinkhorn *s, int area, LOCAL real *room)
{
    enum { SUMS = 6, ALL = 14 };
    GLOBAL const real *const blocks = s->v + s->at[SK_OF_BLOCKS];
    GLOBAL const real *const chunks = s->v + sinkhorn_chunk_area(s, area);
    const int n_blocks = (int)s->at[SK_BLOCKS], n_chunks = (int)s->at[SK_CHUNKS];
    real x[ALL], pair[2] = {R(0), R(0)};
    for (int q = 0; q < ALL; q++) {
        x[q] = q < 8 ? R(0) : R(-1e30);
    }
    for (int b = LID0; b < n_blocks; b += LSIZE0) {
        GLOBAL const real *const block = blocks + b * SK_BLOCK_COUNT;
        for (int q = 0; q < 3; q++) {
            x[q] += block[q];
        }
        for (int q = 3; q < 8; q++) {
            x[q + 3] = FMAX(x[q + 3], block[q]);
        }
        x[11] = FMAX(x[11], block[8]);
        x[12] = FMAX(x[12], block[10]);
    }
    for (int c = LID0; c < n_chunks; c += LSIZE0) {
        GLOBAL const real *const chunk = chunks + c * SK_CHUNK_COUNT;
        for (int q = 0; q < 3; q++) {
            x[q + 3] += chunk[q];
        }
        x[13] = FMAX(x[13], chunk[3]);
    }
    sinkhorn_reduce(room, x, SUMS, ALL);
    for (int b = LID0; b < n_blocks; b += LSIZE0) {
        GLOBAL const real *const block = blocks + b * SK_BLOCK_COUNT;
        pair[0] += block[9] * EXP2(block[8] - x[11]);
        pair[1] += block[11] * EXP2(block[10] - x[12]);
    }
    sinkhorn_reduce(room, pair, 2, 2);
    sinkhorn_left left = {x[0], x[1], x[2],  x[3],  x[4],  x[5],  x[6], x[7],
                          x[8], x[9], x[10], x[11], x[12], x[13], R(0), R(0)};
    left.log_g = x[11] + LOG2(pair[0]);
    left.log_last = x[12] + LOG2(pair[1]);
    return left;
}

/** What exponents are taken from next, the logarithm of the mean of their powers: near 1 every power
 *  counts by its distance to 1. */
FUNCTION real sinkhorn_reference(real mean)
{
    return FABS(mean) < R(1) ? R(0) : mean;
}

/** The constant between F and G (translate of gw_transport.c): with exponents e_i = -rate F_i,
 *
 *     log sum_i a_i exp(e_i) = log(sum a) + from + log1p(sum_i a_i expm1(e_i - from) / sum a),
 *
 *  alike for b.  0 where the sums are out of reach from there: their largest terms take their
 *  place, and the next pass has them from where the shift brings these. */
FUNCTION int sinkhorn_translate(const sinkhorn *s, sinkhorn_state *st, const sinkhorn_left *of)
{
    GLOBAL const real *const par = s->par;
    const real sum_a = par[SKP_SUM_A], sum_b = par[SKP_SUM_B], tau_a = par[SKP_TAU_A];
    const real from_a = st->of[SKS_FROM_A], from_b = st->of[SKS_FROM_B];
    const real rest_a = of->penalty_a / sum_a, rest_b = of->penalty_b / sum_b;
    const int in_range = of->top_a - from_a < R(60) && of->top_b - from_b < R(60) &&
                         R(1) + rest_a > R(1e-5) && R(1) + rest_b > R(1e-5);
    const real of_a = in_range ? from_a + LOG1P(rest_a) : of->top_a;
    const real of_b = in_range ? from_b + LOG1P(rest_b) : of->top_b;
    const real shift = -par[SKP_UNIT] * (LOG(sum_a / sum_b) + (of_a - of_b));
    st->of[SKS_SHIFT] = shift;
    st->of[SKS_FROM_A] = sinkhorn_reference(of_a + par[SKP_RATE_A] * tau_a * shift);
    st->of[SKS_FROM_B] =
        sinkhorn_reference(of_b - par[SKP_RATE_B] * tau_a * par[SKP_TAU_B] * shift);
    return in_range;
}

/** The state behind the pass before; every item of every group has the same. */
FUNCTION void sinkhorn_advance(const sinkhorn *s, sinkhorn_state *st, LOCAL real *room)
{
    const sinkhorn_left of = sinkhorn_gather(s, st->count[SKC_AREA], room);
    if (!st->count[SKC_PENDING] || st->count[SKC_DONE]) {
        return;
    }
    GLOBAL const real *const par = s->par;
    const real total = par[SKP_TOTAL], dummy_a = par[SKP_DUMMY_A], dummy_b = par[SKP_DUMMY_B];
    st->count[SKC_LOST] = (i32)of.lost;
    st->count[SKC_FAR] = (i32)of.far;
    st->of[SKS_REACH] = of.reach;
    st->of[SKS_SHIFT] = 0;
    real error = of.error;
    if (dummy_a > R(0)) {
        error += FABS(of.dummy - dummy_a);
        st->of[SKS_DUMMY_G] += LOG2(dummy_a / FMAX(of.dummy, R(1e-30)));
    }
    error /= total;
    if (dummy_b > R(0)) {
        const real left = dummy_b + total - dummy_b * EXP2(of.log_last - st->of[SKS_LOG_G]);
        st->of[SKS_SHIFT] = left > R(1e-9) * total ? LOG2(total / left) : R(0);
        st->of[SKS_LOG_G] = of.log_g + st->of[SKS_SHIFT];
    }
    if (s->at[SK_RELAXED]) {
        if (par[SKP_TAU_B] < R(1) && error < R(1e38)) { /* the largest step, natural logarithms */
            error = R(0.69314718055994531) * FMAX(FABS(of.highest), FABS(of.minus_lowest));
        }
        error = sinkhorn_translate(s, st, &of) ? error : FMAX(error, R(1));
    }
    st->of[SKS_INCREMENT] = of.increment + FABS(st->of[SKS_SHIFT]);
    sinkhorn_judge(s, st, error);
    st->count[SKC_PENDING] = 0;
}

/** w expm1(e - from) of a row (side 0) or column (side 1), e = -rate x; in *top the largest term of
 *  sum w exp(e) / sum w, its logarithm. */
FUNCTION real sinkhorn_penalty(const sinkhorn *s, const sinkhorn_state *st, int side, real w,
                               real log_w, real x, real *top)
{
    const real sum = s->par[SKP_SUM_A + side], from = st->of[SKS_FROM_A + side];
    const real e = -s->par[SKP_RATE_A + side] * (x - (s->at[SK_PRODUCT] ? log_w : R(0)));
    const real share = R(0.69314718055994531) * log_w - LOG(sum);
    *top = FMAX(*top, e + share);
    return e - from < R(30) ? w * EXPM1(e - from) : sum * EXP(FMIN(e - from + share, R(60)));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/** The sum of row i relative to its largest exponent, which is returned in *top. */
FUNCTION real sinkhorn_far_row(const sinkhorn *s, real shift, LOCAL real *room, int i, real *top)
{
    real most[1] = {R(-1e30)}, sum[1] = {R(0)};
    for (int j = LID0; j < s->m; j += LSIZE0) {
        most[0] = FMAX(most[0], sinkhorn_x(s, i, j) + (s->g[j] + shift));
    }
    sinkhorn_reduce(room, most, 0, 1);
    for (int j = LID0; j < s->m; j += LSIZE0) {
        sum[0] += EXP2(sinkhorn_x(s, i, j) + (s->g[j] + shift) - most[0]);
    }
    sinkhorn_reduce(room, sum, 1, 1);
    *top = most[0];
    return sum[0];
}

/** Sums of eight rows from i0 on, those behind `last` as the last. */
FUNCTION void sinkhorn_row_sums(const sinkhorn *s, real shift, LOCAL real *room, int i0, int last,
                                real *total)
{
    for (int r = 0; r < SK_ROWS; r++) {
        total[r] = 0;
    }
    for (int j = LID0; j < s->m;) {
        real part[SK_ROWS] = {R(0)};
        for (int t = 0; t < SK_STRIP && j < s->m; t++, j += LSIZE0) {
            const real gj = s->g[j] + shift;
            for (int r = 0; r < SK_ROWS; r++) {
                const int i = i0 + r < last ? i0 + r : last - 1;
                part[r] += EXP2(sinkhorn_x(s, i, j) + gj);
            }
        }
        for (int r = 0; r < SK_ROWS; r++) {
            total[r] += part[r];
        }
    }
    sinkhorn_reduce(room, total, SK_ROWS, SK_ROWS);
}

/** p_i = 2^(F_i - H0_i + top) from the sum of a row of weight relative to top; sets lp_i and the
 *  row's sum in the plan. */
FUNCTION real sinkhorn_scale(const sinkhorn *s, const sinkhorn_state *st, int i, real sum, real top,
                             real *chunk)
{
    GLOBAL const real *const par = s->par;
    const real a = s->v[s->at[SK_A] + i], log_a = s->v[s->at[SK_LOG_A] + i], h0 = s->h0[i];
    const real guess = h0 - top, tau = par[SKP_TAU_A];
    const real dummy =
        par[SKP_DUMMY_A] > R(0) ? EXP2(FMIN(st->of[SKS_DUMMY_G] + guess, R(100))) : R(0);
    const real all = sum + dummy;
    real scale = a / all, lp = log_a - LOG2(all) - top;
    if (tau < R(1)) {
        const real F = (s->at[SK_PRODUCT] ? R(1) : tau) * log_a + tau * (guess - LOG2(all));
        lp = F - h0;
        scale = EXP2(F - guess);
    }
    if (s->at[SK_RELAXED]) {
        chunk[2] += sinkhorn_penalty(s, st, 0, a, log_a, h0 + lp, &chunk[3]);
    }
    chunk[1] += scale * dummy;
    if (LID0 == 0) {
        s->v[s->at[SK_LP] + i] = lp;
        s->v[s->at[SK_ROW_SUM] + i] = scale * sum;
    }
    return scale;
}

/** The weights of eight rows are added to the column sums of the group. */
FUNCTION void sinkhorn_add_rows(const sinkhorn *s, real shift, int i0, int last, const real *scale,
                                const real *top, GLOBAL real *partial)
{
    for (int j = LID0; j < s->m; j += LSIZE0) {
        const real gj = s->g[j] + shift;
        real sum = 0;
        for (int r = 0; r < SK_ROWS; r++) {
            const int i = i0 + r < last ? i0 + r : last - 1;
            sum += scale[r] * EXP2(sinkhorn_x(s, i, j) + gj - top[r]);
        }
        partial[j] += sum;
    }
}

FUNCTION void sinkhorn_rows_of(const sinkhorn *s, GLOBAL i32 *counts, int group, int slot,
                               LOCAL real *room)
{
    GLOBAL real *const partial = s->v + s->at[SK_PARTIAL] + (i64)group * s->m;
    sinkhorn_state st = sinkhorn_load(s->v, counts, s->at, slot);
    sinkhorn_advance(s, &st, room);
    st.count[SKC_PENDING] = !st.count[SKC_DONE];
    st.count[SKC_AREA] = 1 - st.count[SKC_AREA];
    if (group == 0 && LID0 == 0) {
        sinkhorn_keep(s->v, counts, s->at, 1 - slot, &st);
    }
    const int each = (int)s->at[SK_EACH], first = group * each;
    const int last = st.count[SKC_DONE] ? first : (int)least(first + each, s->n);
    const real shift = st.of[SKS_SHIFT];
    const i64 a = s->at[SK_A];
    real chunk[SK_CHUNK_COUNT] = {R(0), R(0), R(0), R(-1e30)};
    for (int j = LID0; j < s->m && last > first; j += LSIZE0) {
        partial[j] = 0;
    }
    for (int i0 = first; i0 < last; i0 += SK_ROWS) {
        real total[SK_ROWS], top[SK_ROWS], scale[SK_ROWS];
        int far[SK_ROWS], n_far = 0;
        sinkhorn_row_sums(s, shift, room, i0, last, total);
        for (int r = 0; r < SK_ROWS; r++) {
            const int live = i0 + r < last && s->v[a + i0 + r] > R(0);
            top[r] = live ? R(0) : R(1e30); /* 2^x relative to it is 0, whatever x is */
            scale[r] = 0;
            if (live && !(total[r] >= R(1e-24) && total[r] <= R(1e24))) {
                far[n_far++] = r;
            }
        }
        for (int q = 0; q < n_far; q++) {
            const int r = far[q];
            total[r] = sinkhorn_far_row(s, shift, room, i0 + r, &top[r]);
        }
        chunk[0] += (real)n_far;
        for (int r = 0; r < SK_ROWS; r++) {
            if (top[r] < R(1e30)) {
                scale[r] = sinkhorn_scale(s, &st, i0 + r, total[r], top[r], chunk);
            }
        }
        sinkhorn_add_rows(s, shift, i0, last, scale, top, partial);
    }
    for (int q = 0; q < SK_CHUNK_COUNT && LID0 == 0 && last > first; q++) {
        s->v[sinkhorn_chunk_area(s, st.count[SKC_AREA]) + group * SK_CHUNK_COUNT + q] = chunk[q];
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

/** log2 of the sum of column j relative to its largest term: where sums of it have vanished or
 *  burst. */
FUNCTION real sinkhorn_far_column(const sinkhorn *s, real gj, int j)
{
    real top = R(-1e30), sum = 0;
    for (int i = 0; i < s->n; i++) {
        if (s->v[s->at[SK_A] + i] > R(0)) {
            const real z = sinkhorn_x(s, i, j) + gj + s->v[s->at[SK_LP] + i];
            sum = z > top ? sum * EXP2(top - z) + R(1) : sum + EXP2(z - top);
            top = FMAX(top, z);
        }
    }
    return top + LOG2(sum);
}

/** The step of column j, whose sum over the rows is col, and what it adds to its block. */
FUNCTION void sinkhorn_step(const sinkhorn *s, const sinkhorn_state *st, int j, real col,
                            real *block)
{
    GLOBAL real *const v = s->v;
    GLOBAL const real *const par = s->par;
    const real b = v[s->at[SK_B] + j], log_b = v[s->at[SK_LOG_B] + j], g0 = s->g0[j];
    const real shift = st->of[SKS_SHIFT], g = s->g[j] + shift, tau = par[SKP_TAU_B];
    col += par[SKP_DUMMY_B] > R(0) ? par[SKP_DUMMY_B] * EXP2(g0 + g - st->of[SKS_LOG_G]) : R(0);
    v[s->at[SK_COL] + j] = col;
    block[0] += FMIN(FABS(col - b), SK_BURST); /* also of one that is no number */
    if (!(b > R(0))) {
        return;
    }
    const int lost = !(col > SK_LOST && col < SK_BURST);
    real step = log_b - (lost ? sinkhorn_far_column(s, g, j) : LOG2(col));
    if (tau < R(1)) {
        step =
            (s->at[SK_PRODUCT] ? R(1) - tau : R(0)) * log_b + tau * step - (R(1) - tau) * (g0 + g);
    }
    const real before = v[s->at[SK_G_LAST] + j] + (s->at[SK_RELAXED] ? R(0) : shift);
    const real plain = g + step, momentum = lost ? R(0) : st->of[SKS_MOMENTUM];
    const real next = plain + momentum * (plain - before);
    v[s->at[SK_G_LAST] + j] = plain;
    v[s->at[SK_G] + j] = next;
    block[1] += (real)lost;
    if (s->at[SK_RELAXED]) {
        block[2] += sinkhorn_penalty(s, st, 1, b, log_b, g0 + next, &block[7]);
    }
    block[3] = FMAX(block[3], FABS(next));
    block[4] = FMAX(block[4], FABS(g0 + next));
    block[5] = FMAX(block[5], next - g);
    block[6] = FMAX(block[6], g - next);
}

/** (largest, sum of 2^x relative to it) of G0 + g of a block's columns of weight. */
FUNCTION void sinkhorn_pair(const sinkhorn *s, GLOBAL const real *g, LOCAL real *room, int first,
                            GLOBAL real *pair)
{
    GLOBAL const real *const b = s->v + s->at[SK_B];
    const int end = (int)least(first + SK_BLOCK_COLUMNS, s->m);
    real top[1] = {R(-1e30)}, sum[1] = {R(0)};
    for (int j = first + LID0; j < end; j += LSIZE0) {
        top[0] = b[j] > R(0) ? FMAX(top[0], s->g0[j] + g[j]) : top[0];
    }
    sinkhorn_reduce(room, top, 0, 1);
    for (int j = first + LID0; j < end; j += LSIZE0) {
        sum[0] += b[j] > R(0) ? EXP2(s->g0[j] + g[j] - top[0]) : R(0);
    }
    sinkhorn_reduce(room, sum, 1, 1);
    if (LID0 == 0) {
        pair[0] = top[0];
        pair[1] = sum[0];
    }
}

/** The chunks' sums of column j by one slice of them, in their order: what an addition loses is
 *  kept (Knuth's sum of two). */
FUNCTION real sinkhorn_slice(const sinkhorn *s, int j, int slice, int slices)
{
    GLOBAL const real *const partial = s->v + s->at[SK_PARTIAL] + j;
    const int chunks = (int)s->at[SK_CHUNKS];
    real sum = 0, rest = 0;
    for (int c = slice; c < chunks; c += slices) {
        const real term = partial[(i64)c * s->m], next = sum + term, part = next - sum;
        rest += (sum - (next - part)) + (term - part);
        sum = next;
    }
    return sum + rest;
}

FUNCTION void sinkhorn_columns_of(const sinkhorn *s, GLOBAL i32 *counts, int group, int slot,
                                  LOCAL real *room)
{
    const sinkhorn_state st = sinkhorn_load(s->v, counts, s->at, slot);
    const int items = LSIZE0, item = LID0, first = group * SK_BLOCK_COLUMNS;
    const int width = (int)least(items, SK_BLOCK_COLUMNS), slices = items / width;
    const int column = item % width, slice = item / width;
    GLOBAL real *const block = s->v + s->at[SK_OF_BLOCKS] + group * SK_BLOCK_COUNT;
    real x[8] = {R(0), R(0), R(0), R(0), R(0), R(-1e30), R(-1e30), R(-1e30)};
    const int live = !st.count[SKC_DONE], end = live ? first + SK_BLOCK_COLUMNS : first;
    for (int j0 = first; j0 < end; j0 += width) {
        const int j = j0 + column;
        room[item] = j < s->m ? sinkhorn_slice(s, j, slice, slices) : R(0);
        BARRIER;
        if (slice == 0 && j < s->m) {
            real col = 0;
            for (int k = 0; k < slices; k++) {
                col += room[k * width + column];
            }
            sinkhorn_step(s, &st, j, col, x);
        }
        BARRIER;
    }
    sinkhorn_reduce(room, x, 3, 8);
    for (int q = 0; q < 8 && item == 0 && live; q++) {
        block[q] = x[q];
    }
    const int pairs = live && s->par[SKP_DUMMY_B] > R(0) ? 2 : 0;
    for (int q = 0; q < pairs; q++) {
        sinkhorn_pair(s, q == 0 ? s->g : s->v + s->at[SK_G_LAST], room, first, block + 8 + 2 * q);
    }
}

/* ---- the kernels ----------------------------------------------------------------------------- */

/** The rows of a pass: lp and the groups' column sums, and the state behind the pass before, which
 *  is read from `slot` and written to the other. */
KERNEL void sinkhorn_rows(ITEM GLOBAL const real *costs, GLOBAL real *v, GLOBAL i32 *counts,
                          GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, room, SK_REDUCED * GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_REAL, v, at);
    sinkhorn_rows_of(&s, counts, (int)GID0, slot, room);
}

KERNEL void sinkhorn_rows_float(ITEM GLOBAL const float *costs, GLOBAL real *v, GLOBAL i32 *counts,
                                GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, room, SK_REDUCED * GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FLOAT, v, at);
    sinkhorn_rows_of(&s, counts, (int)GID0, slot, room);
}

KERNEL void sinkhorn_rows_fixed(ITEM GLOBAL const u16 *costs, GLOBAL real *v, GLOBAL i32 *counts,
                                GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, room, SK_REDUCED * GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FIXED, v, at);
    sinkhorn_rows_of(&s, counts, (int)GID0, slot, room);
}

/** The columns of a pass: their sums and the step of G.  `slot` is the one that the rows wrote. */
KERNEL void sinkhorn_columns(ITEM GLOBAL const real *costs, GLOBAL real *v, GLOBAL i32 *counts,
                             GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, room, SK_REDUCED * GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_REAL, v, at);
    sinkhorn_columns_of(&s, counts, (int)GID0, slot, room);
}

KERNEL void sinkhorn_columns_float(ITEM GLOBAL const float *costs, GLOBAL real *v,
                                   GLOBAL i32 *counts, GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, room, SK_REDUCED * GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FLOAT, v, at);
    sinkhorn_columns_of(&s, counts, (int)GID0, slot, room);
}

KERNEL void sinkhorn_columns_fixed(ITEM GLOBAL const u16 *costs, GLOBAL real *v, GLOBAL i32 *counts,
                                   GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, room, SK_REDUCED * GROUP_MOST);
    const sinkhorn s = sinkhorn_of(costs, SK_COST_FIXED, v, at);
    sinkhorn_columns_of(&s, counts, (int)GID0, slot, room);
}

/** The state behind the last pass, for the host; one group. */
KERNEL void sinkhorn_poll(ITEM GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, room, SK_REDUCED * GROUP_MOST);
    const sinkhorn s = sinkhorn_of(v, SK_COST_REAL, v, at);
    sinkhorn_state st = sinkhorn_load(v, counts, at, slot);
    sinkhorn_advance(&s, &st, room);
    if (GID0 == 0 && LID0 == 0) {
        sinkhorn_keep(v, counts, at, 1 - slot, &st);
    }
}

/** G0 and H0 <- the potentials as they are; what G0 rounds off stays in g. */
KERNEL void sinkhorn_fold(ITEM GLOBAL real *v, GLOBAL i32 *counts, GLOBAL const i64 *at, i32 slot)
{
    sinkhorn_state st = sinkhorn_load(v, counts, at, slot);
    const i64 n = at[SK_N], m = at[SK_M], first = GID0 * SK_FOLD, last = first + SK_FOLD;
    GLOBAL real *const g0 = v + at[SK_G0], *const g = v + at[SK_G], *const h0 = v + at[SK_H0];
    for (i64 j = first + LID0; j < least(last, m); j += LSIZE0) {
        if (v[at[SK_B] + j] > R(0)) {
            const real base = g0[j], more = g[j] + st.of[SKS_SHIFT], sum = base + more;
            const real part = sum - base;
            g0[j] = sum;
            g[j] = (base - (sum - part)) + (more - part);
            v[at[SK_G_LAST] + j] = g[j];
        }
    }
    for (i64 i = first + LID0; i < least(last, n); i += LSIZE0) {
        if (v[at[SK_A] + i] > R(0)) {
            h0[i] += v[at[SK_LP] + i] - v[at[SK_LOG_A] + i];
            v[at[SK_LP] + i] = v[at[SK_LOG_A] + i]; /* F stays, whoever reads it next */
        }
    }
    if (GID0 == 0 && LID0 == 0) {
        st.count[SKC_SINCE] = 0;
        st.of[SKS_MOMENTUM] = 0;
        st.of[SKS_SHIFT] = 0;
        sinkhorn_keep(v, counts, at, 1 - slot, &st);
    }
}
