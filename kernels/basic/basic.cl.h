/* basic.cl.h - what any room needs of vectors: multiples added, sums, sums by segments, running
 * sums.
 *
 * A group has BASIC_CHUNK elements, so that partial sums depend on n alone. */
#define BASIC_CHUNK 4096

/* y <- y + a x */
KERNEL void axpy(ITEM GLOBAL real *y, GLOBAL const real *x, real a, i64 n)
{
    const i64 end = least(n, (GID0 + 1) * BASIC_CHUNK);
    for (i64 i = GID0 * BASIC_CHUNK + LID0; i < end; i += LSIZE0) {
        y[i] += a * x[i];
    }
}

/* partial[g] <- sum of x in chunk g */
KERNEL void sum_chunks(ITEM GLOBAL wide *partial, GLOBAL const real *x, i64 n)
{
    LOCAL_MEM(wide, scratch, GROUP_MOST);
    const i64 end = least(n, (GID0 + 1) * BASIC_CHUNK);
    wide mine = 0;
    for (i64 i = GID0 * BASIC_CHUNK + LID0; i < end; i += LSIZE0) {
        mine += W(x[i]);
    }
    const wide all = group_sum_wide(mine, scratch);
    if (LID0 == 0) {
        partial[GID0] = all;
    }
}

/* out[0] <- sum of partial, by one group */
KERNEL void sum_partials(ITEM GLOBAL wide *out, GLOBAL const wide *partial, i64 n)
{
    LOCAL_MEM(wide, scratch, GROUP_MOST);
    wide mine = 0;
    for (i64 i = GID0 + LID0; i < n; i += LSIZE0) {
        mine += partial[i];
    }
    const wide all = group_sum_wide(mine, scratch);
    if (LID0 == 0) {
        out[0] = all;
    }
}

/* sums[s] <- sum of x[i], start[s] <= i < start[s + 1], a group for each segment */
KERNEL void sum_segments(ITEM GLOBAL wide *sums, GLOBAL const real *x, GLOBAL const i64 *start)
{
    LOCAL_MEM(wide, scratch, GROUP_MOST);
    wide mine = 0;
    for (i64 i = start[GID0] + LID0; i < start[GID0 + 1]; i += LSIZE0) {
        mine += W(x[i]);
    }
    const wide all = group_sum_wide(mine, scratch);
    if (LID0 == 0) {
        sums[GID0] = all;
    }
}

/* out[i] <- before[g] + sum of x over chunk g up to i; before: sums of the chunks in front */
KERNEL void scan_chunks(ITEM GLOBAL i64 *out, GLOBAL const i64 *x, GLOBAL const i64 *before, i64 n)
{
    LOCAL_MEM(i64, scratch, GROUP_MOST);
    const i64 first = GID0 * BASIC_CHUNK, end = least(n, first + BASIC_CHUNK);
    i64 sum = before[GID0];
    for (i64 i = first; i < end; i += LSIZE0) {
        const i64 up_to_me = group_scan_i64(i + LID0 < end ? x[i + LID0] : 0, scratch);
        if (i + LID0 < end) {
            out[i + LID0] = sum + up_to_me;
        }
        sum += group_max_i64(LID0 == LSIZE0 - 1 ? up_to_me : (i64)-0x7fffffffffffffff, scratch);
    }
}

/* totals[g] <- sum of x in chunk g */
KERNEL void count_chunks(ITEM GLOBAL i64 *totals, GLOBAL const i64 *x, i64 n)
{
    LOCAL_MEM(i64, scratch, GROUP_MOST);
    const i64 end = least(n, (GID0 + 1) * BASIC_CHUNK);
    i64 mine = 0;
    for (i64 i = GID0 * BASIC_CHUNK + LID0; i < end; i += LSIZE0) {
        mine += x[i];
    }
    const i64 all = group_sum_i64(mine, scratch);
    if (LID0 == 0) {
        totals[GID0] = all;
    }
}
