/* gw_runs.h - weights that one is drawn from, summed in LV_RUNS runs whatever the size of a group is,
 * so that a draw depends on the weights alone; for the kernels of gw and gw_lowrank.
 */

enum { LV_RUNS = 256 };

/** The run with which sums[0], sums[1], ... pass `goal`, the last one with weight where rounding
 *  lets none do so; *below: the sum of those before it. */
FUNCTION i64 level_run(LOCAL const wide *sums, wide goal, wide *below)
{
    wide sum = W(0);
    i64 run = 0;
    *below = W(0);
    for (int q = 0; q < LV_RUNS && sum <= goal; q++) {
        run = sums[q] > W(0) ? q : run;
        *below = sums[q] > W(0) ? sum : *below;
        sum += sums[q];
    }
    return run;
}

/** sums[0] + sums[1] + ... */
FUNCTION wide level_total(LOCAL const wide *sums)
{
    wide total = W(0);
    for (int run = 0; run < LV_RUNS; run++) {
        total += sums[run];
    }
    return total;
}
